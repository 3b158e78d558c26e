//! CoDel, controlled delay: RFC 8289.
//!
//! The sign of a standing queue is that every packet of a whole interval waited longer than the
//! target. From then on one packet after the other is dropped at the head, ever closer together,
//! until one leaves in time:
//!
//! ```text
//!              a packet waited >= target, and more than one MTU waits behind it,
//!              and so did all others for an interval: drop it
//!   +---------+ ------------------------------------------------> +----------+ --+ every
//!   | waiting |                                                   | dropping |   | I / sqrt(count):
//!   +---------+ <------------------------------------------------ +----------+ <-+ drop one
//!              a packet waited < target, or at most one MTU waits
//! ```
//!
//! Time runs in nanoseconds, the spacing is an integer square root; there is no floating point.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use super::fifo::Fifo;
use super::{Arrival, Fate, Fates, QueueDrop, mark};
use crate::counters::Tally;
use crate::packet::Waiting;

/// Parameters of CoDel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CoDelConfig {
    /// The standing delay that is tolerated: RFC 8289 section 4.4, 5 ms.
    pub target: Duration,
    /// How long the delay must stand before it counts, of the order of the round-trip times: RFC
    /// 8289 section 4.3, 100 ms. From [`CoDelConfig::target`] to one hour.
    pub interval: Duration,
    /// With no more than this behind a packet nothing is dropped, however slow the link: RFC 8289
    /// section 4.2. One Ethernet frame, 1,514 bytes, as in Linux.
    pub mtu: ByteCount,
    /// Whether packets that can carry a mark get one in place of being dropped. Off.
    pub ecn: bool,
}

impl CoDelConfig {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.target.is_zero() {
            Err("the CoDel target is zero, at least 1 ns")
        } else if self.interval < self.target {
            Err("the CoDel interval is shorter than the target, at least as long")
        } else if self.interval > LONGEST_INTERVAL {
            Err("the CoDel interval is too long, at most 1 h")
        } else {
            Ok(())
        }
    }
}

impl Default for CoDelConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: ETHERNET_FRAME,
            ecn: false,
        }
    }
}

const LONGEST_INTERVAL: Duration = Duration::from_secs(3_600);

/// 1,500 bytes and a header.
pub(super) const ETHERNET_FRAME: ByteCount = ByteCount::new(1_514);

/// One FIFO under one CoDel.
#[derive(Clone, Debug)]
pub(super) struct CoDel<T> {
    config: CoDelConfig,
    control: Control,
    fifo: Fifo<T>,
}

impl<T> CoDel<T> {
    pub(super) const fn new(config: CoDelConfig) -> Self {
        Self {
            config,
            control: Control::new(),
            fifo: Fifo::new(),
        }
    }

    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        if arrival.has_room(self.fifo.tally()) {
            self.fifo.push(arrival.waiting);
        } else {
            fates(Fate::Dropped(arrival.waiting, QueueDrop::Full));
        }
    }

    pub(super) fn dequeue(
        &mut self,
        now: Timestamp,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        self.control
            .dequeue(now, &self.config, &mut self.fifo, fates)
    }

    pub(super) fn adjust(&mut self, config: CoDelConfig) {
        self.config = config;
    }

    pub(super) fn take_over(&mut self, waiting: Waiting<T>) {
        self.fifo.push(waiting);
    }

    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        self.fifo.drain_into(packets);
    }

    pub(super) fn tally(&self) -> Tally {
        self.fifo.tally()
    }
}

/// Where a [`Control`] takes its packets from.
pub(super) trait Source<T> {
    fn pop(&mut self) -> Option<Waiting<T>>;
    /// The bytes that still wait, by which the controller sees whether dropping would starve the
    /// link.
    fn backlog(&self) -> ByteCount;
}

impl<T> Source<T> for Fifo<T> {
    fn pop(&mut self) -> Option<Waiting<T>> {
        Self::pop(self)
    }

    fn backlog(&self) -> ByteCount {
        self.tally().bytes
    }
}

/// The state of one CoDel: RFC 8289 section 5.2.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// When the delay will have stood for an interval; `None` while it does not stand. RFC 8289:
    /// `first_above_time_`.
    condemns_at: Option<Timestamp>,
    /// When the next packet is dropped, or would have been when dropping ended. `drop_next_`.
    next_drop_at: Timestamp,
    /// Packets dropped since dropping began; when it begins again soon, most of the former. Never
    /// 0 while dropping. `count_`.
    count: u64,
    /// `count` as it was when dropping began. `lastcount_`.
    count_at_entry: u64,
    is_dropping: bool,
}

impl Control {
    pub(super) const fn new() -> Self {
        Self {
            condemns_at: None,
            next_drop_at: Timestamp::ZERO,
            count: 0,
            count_at_entry: 0,
            is_dropping: false,
        }
    }

    /// RFC 8289 section 5.5: the packet that leaves now, after those that are dropped in its
    /// favour. At most one packet is marked per call, and it is the one that leaves, as in Linux.
    pub(super) fn dequeue<T>(
        &mut self,
        now: Timestamp,
        config: &CoDelConfig,
        source: &mut impl Source<T>,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        let (first, mut is_condemned) = self.pop(now, config, source);
        let Some(mut waiting) = first else {
            self.is_dropping = false;
            return None;
        };
        if !self.is_dropping {
            if !is_condemned {
                return Some(waiting);
            }
            if !(config.ecn && mark(&mut waiting, fates)) {
                fates(Fate::Dropped(waiting, QueueDrop::Aqm));
                let (next, _) = self.pop(now, config, source);
                self.enter(now, config);
                return next;
            }
            self.enter(now, config);
            return Some(waiting);
        }
        if !is_condemned {
            self.is_dropping = false;
        }
        while self.is_dropping && now >= self.next_drop_at {
            self.count = self.count.saturating_add(1);
            if config.ecn && mark(&mut waiting, fates) {
                self.next_drop_at += spacing(config.interval, self.count);
                break;
            }
            fates(Fate::Dropped(waiting, QueueDrop::Aqm));
            let next;
            (next, is_condemned) = self.pop(now, config, source);
            match next {
                Some(packet) if is_condemned => {
                    waiting = packet;
                    self.next_drop_at += spacing(config.interval, self.count);
                }
                next => {
                    self.is_dropping = false;
                    return next;
                }
            }
        }
        Some(waiting)
    }

    /// Strengthens the signal by packets that were dropped for want of room.
    pub(super) fn on_overload(&mut self, dropped: u64) {
        self.count = self.count.saturating_add(dropped);
    }

    /// RFC 8289 section 5.6: takes the next packet, and says whether it may be dropped because it
    /// and all others for an interval waited too long.
    fn pop<T>(
        &mut self,
        now: Timestamp,
        config: &CoDelConfig,
        source: &mut impl Source<T>,
    ) -> (Option<Waiting<T>>, bool) {
        let waiting = source.pop();
        let is_in_time = waiting.as_ref().is_none_or(|waiting| {
            now.saturating_since(waiting.arrived_at) < config.target
                || source.backlog() <= config.mtu
        });
        if is_in_time {
            self.condemns_at = None;
            return (waiting, false);
        }
        match self.condemns_at {
            Some(at) => (waiting, now >= at),
            None => {
                self.condemns_at = Some(now + config.interval);
                (waiting, false)
            }
        }
    }

    /// Dropping begins; if it ended no longer than 16 intervals ago, about where it ended, since
    /// that spacing was nearly right (RFC 8289 section 5.5).
    fn enter(&mut self, now: Timestamp, config: &CoDelConfig) {
        let gained = self.count.saturating_sub(self.count_at_entry);
        let is_soon = now.saturating_since(self.next_drop_at) < config.interval * 16;
        self.count = if gained > 1 && is_soon { gained } else { 1 };
        self.count_at_entry = self.count;
        self.next_drop_at = now + spacing(config.interval, self.count);
        self.is_dropping = true;
    }
}

/// The control law, `interval / sqrt(count)`, rounded down: RFC 8289 section 5.6.
///
/// `floor(sqrt(floor(x)))` is `floor(sqrt(x))`, so squaring first loses nothing. One hour squared is
/// 1.3 * 10^25 ns^2, well below 2^128.
fn spacing(interval: Duration, count: u64) -> Duration {
    let interval = interval.as_nanos();
    let nanos = (interval.saturating_mul(interval) / u128::from(count.max(1))).isqrt();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
