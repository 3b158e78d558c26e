//! DualPI2, two coupled queues: RFC 9332, appendix A.
//!
//! ```text
//!                     +---------+  waited 1 ms: mark
//!   ECT(1), CE  ----> | L queue | ------ k p': mark ----\
//!                     +---------+                        \   weighted turns
//!                          ^                              >------------------>
//!                          | k     p' every 16 ms        /   L first, classic
//!                     +---------+                       /    at least 10 %
//!   ECT(0),     ----> | classic | ----- p'^2: drop, ---/
//!   Not-ECT           +---------+       mark ECT(0)
//! ```
//!
//! A classic sender's rate goes with `1 / sqrt(p)`, a scalable one's with `1 / p`; hence the
//! square, and hence the coupling makes their rates about equal. When `k p'` reaches 100 % marking
//! is no longer enough: the L queue drops with `p'^2` too, and the classic queue drops what it
//! would have marked (RFC 9332 section 4.2, appendix A.1).

use std::time::Duration;

use units::{ByteCount, Fraction, Timestamp};

use super::codel::ETHERNET_FRAME;
use super::fifo::Fifo;
use super::pi::{self, Clock, Delays, Gain};
use super::probability::{Draw, Probability};
use super::{Arrival, Fate, Fates, QueueDrop, mark};
use crate::counters::Tally;
use crate::packet::{Ecn, Waiting};
use crate::random::RandomStream;

/// Parameters of DualPI2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DualPi2Config {
    /// The delay aimed at in the queue that has the longer one: RFC 9332 appendix A.1, 15 ms.
    pub target: Duration,
    /// How often the base probability is computed: RFC 9332 appendix A.1, 16 ms. At least 1 us.
    pub update: Duration,
    /// Gain on the distance from the target: RFC 9332 appendix A.1, 0.16 Hz.
    pub alpha: Gain,
    /// Gain on the trend: RFC 9332 appendix A.1, 3.2 Hz.
    pub beta: Gain,
    /// How many times the base probability an L4S packet is marked: RFC 9332 section 2.1, `k`, 2.
    /// At least 1.
    pub coupling: u8,
    /// An L4S packet that waited this long is marked for certain: RFC 9332 appendix A.1, 1 ms.
    pub step: Duration,
    /// The share of the bytes the classic queue gets when both wait: 10 %, as in Linux.
    pub classic_weight: Fraction,
    /// With less than two of these waiting nothing is dropped or marked by probability. One
    /// Ethernet frame, 1,514 bytes.
    pub mtu: ByteCount,
}

impl DualPi2Config {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.target.is_zero() {
            Err("the DualPI2 target is zero, at least 1 ns")
        } else if self.target > LONGEST || self.update > LONGEST {
            Err("a DualPI2 target or update is too long, at most 1 h")
        } else if self.update < Clock::SHORTEST {
            Err("the DualPI2 update period is too short, at least 1 us")
        } else if self.alpha > Gain::HIGHEST || self.beta > Gain::HIGHEST {
            Err("a DualPI2 gain is too high, at most 1000 Hz")
        } else if self.coupling == 0 {
            Err("the DualPI2 coupling is zero, at least 1")
        } else {
            Ok(())
        }
    }
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: Gain::from_millihertz(160),
            beta: Gain::from_millihertz(3_200),
            coupling: 2,
            step: Duration::from_millis(1),
            classic_weight: Fraction::from_percent(10).unwrap_or(Fraction::ZERO),
            mtu: ETHERNET_FRAME,
        }
    }
}

const LONGEST: Duration = Duration::from_secs(3_600);

/// Two FIFOs under one controller.
#[derive(Clone, Debug)]
pub(super) struct DualPi2<T> {
    config: DualPi2Config,
    l4s: Fifo<T>,
    classic: Fifo<T>,
    clock: Clock,
    /// `p'`.
    base: Probability,
    /// The longer delay at the last update. RFC 9332: `prevq`.
    delay_before: Duration,
    /// Whose turn it is: the L queue's up to zero. Bytes times parts per billion.
    credit: i128,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Class {
    L4s,
    Classic,
}

impl<T> DualPi2<T> {
    pub(super) fn new(config: DualPi2Config, now: Timestamp) -> Self {
        let mut queue = Self {
            config,
            l4s: Fifo::new(),
            classic: Fifo::new(),
            clock: Clock::new(now, config.update),
            base: Probability::ZERO,
            delay_before: Duration::ZERO,
            credit: 0,
        };
        queue.reset_credit();
        queue
    }

    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        self.catch_up(arrival.now);
        if arrival.has_room(self.tally()) {
            self.take_over(arrival.waiting);
        } else {
            fates(Fate::Dropped(arrival.waiting, QueueDrop::Full));
        }
    }

    pub(super) fn dequeue(
        &mut self,
        now: Timestamp,
        random: &mut RandomStream,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        self.catch_up(now);
        while let Some(class) = self.next_class() {
            let is_short = self.tally().bytes < self.config.mtu * 2;
            let draw = Draw::from_stream(random);
            let mut waiting = match class {
                Class::L4s => self.l4s.pop()?,
                Class::Classic => self.classic.pop()?,
            };
            let delay = now.saturating_since(waiting.arrived_at);
            let is_let_out = match class {
                Class::L4s => self.treat_l4s(&mut waiting, delay, is_short, draw, fates),
                Class::Classic => self.treat_classic(&mut waiting, is_short, draw, fates),
            };
            if is_let_out {
                self.charge(class, waiting.packet.size);
                return Some(waiting);
            }
            fates(Fate::Dropped(waiting, QueueDrop::Aqm));
        }
        self.reset_credit();
        None
    }

    pub(super) fn adjust(&mut self, now: Timestamp, config: DualPi2Config) {
        self.catch_up(now);
        self.clock.adjust(now, config.update);
        let has_other_weight = config.classic_weight != self.config.classic_weight;
        self.config = config;
        if has_other_weight {
            self.reset_credit();
        }
    }

    /// RFC 9331 section 5.1: CE counts as L4S, since it may have been ECT(1).
    pub(super) fn take_over(&mut self, waiting: Waiting<T>) {
        match waiting.packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(waiting),
            Ecn::Ect0 | Ecn::NotEct => self.classic.push(waiting),
        }
    }

    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        self.l4s.drain_into(packets);
        self.classic.drain_into(packets);
    }

    pub(super) fn tally(&self) -> Tally {
        let (l4s, classic) = (self.l4s.tally(), self.classic.tally());
        Tally {
            packets: l4s.packets + classic.packets,
            bytes: l4s.bytes + classic.bytes,
        }
    }

    #[cfg(test)]
    pub(super) const fn base(&self) -> Probability {
        self.base
    }

    /// Pins the base probability until the next update.
    #[cfg(test)]
    pub(super) const fn pin_base(&mut self, base: Probability) {
        self.base = base;
    }

    /// Whether the L4S packet goes out, with or without a mark.
    fn treat_l4s(
        &self,
        waiting: &mut Waiting<T>,
        delay: Duration,
        is_short: bool,
        draw: Draw,
        fates: &mut Fates<'_, T>,
    ) -> bool {
        let coupled = self.coupled();
        let is_overload = coupled == Probability::ONE;
        if is_overload && !is_short && draw.is_within(self.classic_probability()) {
            return false;
        }
        if delay >= self.config.step || (!is_short && draw.is_within(coupled)) {
            mark(waiting, fates);
        }
        true
    }

    /// Whether the classic packet goes out, with or without a mark.
    fn treat_classic(
        &self,
        waiting: &mut Waiting<T>,
        is_short: bool,
        draw: Draw,
        fates: &mut Fates<'_, T>,
    ) -> bool {
        if is_short || !draw.is_within(self.classic_probability()) {
            return true;
        }
        self.coupled() < Probability::ONE && mark(waiting, fates)
    }

    /// RFC 9332 section 2.1: `p_CL = k p'`.
    fn coupled(&self) -> Probability {
        self.base.multiply(self.config.coupling.into())
    }

    /// RFC 9332 section 2.1: `p_C = p'^2`.
    const fn classic_probability(&self) -> Probability {
        self.base.times(self.base)
    }

    /// The L queue goes first as long as it has credit left or the classic one is empty.
    fn next_class(&self) -> Option<Class> {
        match (self.l4s.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Class::L4s),
            (true, false) => Some(Class::Classic),
            (false, false) if self.credit <= 0 => Some(Class::L4s),
            (false, false) => Some(Class::Classic),
        }
    }

    /// Only what goes out while the other queue waits is charged.
    fn charge(&mut self, class: Class, size: ByteCount) {
        let classic = i128::from(self.config.classic_weight.as_ppb());
        let size = i128::from(size.as_u64());
        match class {
            Class::L4s if !self.classic.is_empty() => self.credit += size * classic,
            Class::Classic if !self.l4s.is_empty() => self.credit -= size * (WHOLE - classic),
            Class::L4s | Class::Classic => (),
        }
    }

    fn reset_credit(&mut self) {
        let classic = i128::from(self.config.classic_weight.as_ppb());
        self.credit = i128::from(self.config.mtu.as_u64()) * (classic - (WHOLE - classic));
    }

    /// Makes up for the updates that were due, each with the delays of its instant.
    fn catch_up(&mut self, now: Timestamp) {
        while let Some(due_at) = self.clock.take_due(now) {
            let before = (self.base, self.delay_before);
            self.update(due_at);
            // At rest with nothing waiting, or saturated with a delay that only grows until
            // something leaves: the other updates change nothing but the delay they remember.
            let is_saturated =
                self.base == Probability::ONE && self.delay_before >= self.config.target;
            let is_at_rest = self.tally().packets == 0 && before == (self.base, self.delay_before);
            if (is_at_rest || is_saturated)
                && let Some(last_at) = self.clock.skip(now)
            {
                self.delay_before = self.longer_delay(last_at);
            }
        }
    }

    /// RFC 9332 appendix A.1.
    fn update(&mut self, at: Timestamp) {
        let delay = self.longer_delay(at);
        let delays = Delays {
            now: delay,
            before: self.delay_before,
            target: self.config.target,
        };
        let step = pi::step(self.config.alpha, self.config.beta, delays);
        self.base = self.base.shift(step);
        self.delay_before = delay;
    }

    /// How long the first packet of either queue has waited, the longer of the two.
    fn longer_delay(&self, at: Timestamp) -> Duration {
        let delay = |queue: &Fifo<T>| {
            queue.front().map_or(Duration::ZERO, |first| {
                at.saturating_since(first.arrived_at)
            })
        };
        delay(&self.l4s).max(delay(&self.classic))
    }
}

const WHOLE: i128 = Fraction::ONE.as_ppb() as i128;
