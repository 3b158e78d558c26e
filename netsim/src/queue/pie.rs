//! PIE, proportional integral controller, enhanced: RFC 8033.
//!
//! ```text
//!  packet  ->  full?  ->  burst allowance left?  ->  little delay, ->  draw    ->  FIFO  ->
//!              drop       let in                     or two MTU:       by p:             |
//!                                                    let in            drop, mark        | delay
//!                            every 15 ms:            ^                                   v
//!                            p += alpha (delay - target) + beta (delay - delay before)  <-+
//! ```
//!
//! The delay is what the last packet to leave had waited (RFC 8033 section 4.3 allows time stamps,
//! and Linux uses them); zero when nothing waits any more.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use super::codel::ETHERNET_FRAME;
use super::fifo::Fifo;
use super::pi::{self, Clock, Delays, Gain};
use super::probability::{Draw, Probability};
use super::{Arrival, Fate, Fates, QueueDrop, mark};
use crate::counters::Tally;
use crate::packet::Waiting;

/// Parameters of PIE.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PieConfig {
    /// The delay aimed at: RFC 8033 section 4.2 `QDELAY_REF`, 15 ms.
    pub target: Duration,
    /// How often the probability is computed: RFC 8033 section 4.2 `T_UPDATE`, 15 ms. At least
    /// 1 us.
    pub update: Duration,
    /// How long a burst may last before anything is dropped: RFC 8033 section 4.4 `MAX_BURST`,
    /// 150 ms. At most one hour.
    pub burst: Duration,
    /// Gain on the distance from the target: RFC 8033 section 4.2, 0.125 Hz.
    pub alpha: Gain,
    /// Gain on the trend: RFC 8033 section 4.2, 1.25 Hz.
    pub beta: Gain,
    /// With less than two of these waiting nothing is dropped: RFC 8033 section 4.1. One Ethernet
    /// frame, 1,514 bytes.
    pub mtu: ByteCount,
    /// Whether drops are kept from coming too close together and too far apart: RFC 8033 section
    /// 5.4. On. Fewer packets are dropped then than the probability says, since each drop is
    /// followed by a pause; the controller makes up for it by a higher probability.
    pub derandomise: bool,
    /// Whether packets that can carry a mark get one in place of being dropped, as long as the
    /// probability is at most 10 %: RFC 8033 section 5.1. Off.
    pub ecn: bool,
}

impl PieConfig {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.target.is_zero() {
            Err("the PIE target is zero, at least 1 ns")
        } else if self.target > LONGEST || self.update > LONGEST || self.burst > LONGEST {
            Err("a PIE target, update or burst is too long, at most 1 h")
        } else if self.update < Clock::SHORTEST {
            Err("the PIE update period is too short, at least 1 us")
        } else if self.alpha > Gain::HIGHEST || self.beta > Gain::HIGHEST {
            Err("a PIE gain is too high, at most 1000 Hz")
        } else {
            Ok(())
        }
    }
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            alpha: Gain::from_millihertz(125),
            beta: Gain::from_millihertz(1_250),
            mtu: ETHERNET_FRAME,
            derandomise: true,
            ecn: false,
        }
    }
}

const LONGEST: Duration = Duration::from_secs(3_600);

/// RFC 8033 section 5.1: above it the queue drops what it could mark.
const MARKS_UP_TO: Probability = Probability::from_percent(10);
/// RFC 8033 section 4.1: below it a small delay lets everything in.
const LOW: Probability = Probability::from_percent(20);
/// RFC 8033 section 5.5: the largest step up, once the probability has reached 10 %.
const LARGEST_STEP: Probability = Probability::from_percent(2);
/// RFC 8033 section 5.4: no drop before the probabilities since the last one add up to 0.85, and
/// one for certain when they add up to 8.5.
const DRY_SPELL: u64 = Probability::from_percent(85).steps();
const CERTAIN: u64 = DRY_SPELL * 10;
/// Above this delay the probability takes an extra 2 % per update, as in Linux.
const EMERGENCY: Duration = Duration::from_millis(250);

/// One FIFO under PIE.
#[derive(Clone, Debug)]
pub(super) struct Pie<T> {
    config: PieConfig,
    fifo: Fifo<T>,
    clock: Clock,
    control: Control,
    /// The probabilities since the last drop, in 2^-60; at most about 9.5. RFC 8033 `accu_prob`.
    since_drop: u64,
    /// What the last packet to leave had waited; zero once nothing waits.
    delay: Duration,
}

/// What an update works on: RFC 8033 section 4.2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Control {
    /// RFC 8033: `drop_prob_`.
    probability: Probability,
    /// The delay at the last update. `qdelay_old_`.
    delay_before: Duration,
    /// `burst_allowance_`.
    burst_left: Duration,
}

impl<T> Pie<T> {
    pub(super) fn new(config: PieConfig, now: Timestamp) -> Self {
        Self {
            config,
            fifo: Fifo::new(),
            clock: Clock::new(now, config.update),
            control: Control {
                probability: Probability::ZERO,
                delay_before: Duration::ZERO,
                burst_left: config.burst,
            },
            since_drop: 0,
            delay: Duration::ZERO,
        }
    }

    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        self.catch_up(arrival.now);
        let has_room = arrival.has_room(self.fifo.tally());
        let draw = Draw::from_stream(arrival.random);
        let mut waiting = arrival.waiting;
        if !has_room {
            self.since_drop = 0;
            fates(Fate::Dropped(waiting, QueueDrop::Full));
            return;
        }
        if self.is_unlucky(draw) {
            self.since_drop = 0;
            let may_mark = self.config.ecn && self.control.probability <= MARKS_UP_TO;
            if !(may_mark && mark(&mut waiting, fates)) {
                fates(Fate::Dropped(waiting, QueueDrop::Aqm));
                return;
            }
        }
        self.fifo.push(waiting);
    }

    pub(super) fn dequeue(&mut self, now: Timestamp) -> Option<Waiting<T>> {
        self.catch_up(now);
        let waiting = self.fifo.pop()?;
        self.delay = if self.fifo.is_empty() {
            Duration::ZERO
        } else {
            now.saturating_since(waiting.arrived_at)
        };
        Some(waiting)
    }

    pub(super) fn adjust(&mut self, now: Timestamp, config: PieConfig) {
        self.catch_up(now);
        self.clock.adjust(now, config.update);
        self.control.burst_left = self.control.burst_left.min(config.burst);
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

    #[cfg(test)]
    pub(super) const fn probability(&self) -> Probability {
        self.control.probability
    }

    /// Sections 4.1 and 5.4: whether the packet that arrives is to be dropped or marked.
    fn is_unlucky(&mut self, draw: Draw) -> bool {
        let probability = self.control.probability;
        let is_calm = self.control.delay_before < self.config.target / 2 && probability < LOW;
        let is_short = self.fifo.tally().bytes < self.config.mtu * 2;
        if !self.control.burst_left.is_zero() || is_calm || is_short {
            return false;
        }
        if !self.config.derandomise {
            return draw.is_within(probability);
        }
        if probability == Probability::ZERO {
            self.since_drop = 0;
        }
        self.since_drop += probability.steps();
        match self.since_drop {
            ..DRY_SPELL => false,
            CERTAIN.. => true,
            _ => draw.is_within(probability),
        }
    }

    /// Makes up for the updates that were due. They all see the delay as it was left by the last
    /// packet to leave, so once an update changes nothing the others would not either.
    fn catch_up(&mut self, now: Timestamp) {
        while self.clock.take_due(now).is_some() {
            let before = self.control;
            self.update();
            if self.control == before {
                self.clock.skip(now);
            }
        }
    }

    fn update(&mut self) {
        let Control {
            probability,
            delay_before,
            burst_left,
        } = self.control;
        let delays = Delays {
            now: self.delay,
            before: delay_before,
            target: self.config.target,
        };
        let mut step = pi::step(self.config.alpha, self.config.beta, delays) / divisor(probability);
        let largest = i128::from(LARGEST_STEP.steps());
        if probability >= MARKS_UP_TO {
            step = step.min(largest);
        }
        if self.delay > EMERGENCY {
            step += largest;
        }
        let mut next = probability.shift(step);
        if self.delay.is_zero() && delay_before.is_zero() && self.fifo.is_empty() {
            // RFC 8033 section 4.2: decay by about 2 %, in Linux by 1/64.
            next = probability_after_decay(next);
        }
        let is_over = next == Probability::ZERO
            && self.delay < self.config.target / 2
            && delay_before < self.config.target / 2;
        self.control = Control {
            probability: next,
            delay_before: self.delay,
            // RFC 8033 section 4.4.
            burst_left: if is_over {
                self.config.burst
            } else {
                burst_left.saturating_sub(self.config.update)
            },
        };
    }
}

fn probability_after_decay(probability: Probability) -> Probability {
    probability.shift(-i128::from(probability.divide(64).steps()))
}

/// RFC 8033 section 4.2: small probabilities move in small steps.
const fn divisor(probability: Probability) -> i128 {
    const PPM: u128 = 1_000_000;
    let steps = probability.steps();
    if steps < Probability::ratio(1, PPM).steps() {
        2_048
    } else if steps < Probability::ratio(10, PPM).steps() {
        512
    } else if steps < Probability::ratio(100, PPM).steps() {
        128
    } else if steps < Probability::ratio(1_000, PPM).steps() {
        32
    } else if steps < Probability::ratio(10_000, PPM).steps() {
        8
    } else if steps < Probability::ratio(100_000, PPM).steps() {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::super::probability::BITS;
    use super::*;
    use crate::packet::{Fortunes, Packet};
    use crate::random::RandomStreams;

    /// One update from a probability, a delay before and a delay now, in ppm and ms.
    fn updated(ppm: u32, before: u64, now: u64, has_packet: bool) -> Control {
        let mut pie = Pie::new(PieConfig::default(), Timestamp::ZERO);
        if has_packet {
            pie.take_over(Waiting {
                packet: Packet::new(ByteCount::kb(1), ()),
                arrived_at: Timestamp::ZERO,
                fortune: Fortunes::new(&RandomStreams::new(1), "").draw(),
            });
        }
        pie.control = Control {
            probability: Probability::ratio(ppm.into(), 1_000_000),
            delay_before: Duration::from_millis(before),
            burst_left: Duration::from_millis(100),
        };
        pie.delay = Duration::from_millis(now);
        pie.update();
        pie.control
    }

    /// The rules of RFC 8033 section 4.2 one by one, and the two on large delays. Fails with another
    /// gain, divisor, cap or decay.
    #[test]
    fn the_probability_moves_by_the_book() {
        for (ppm, before, now, has_packet, expected) in [
            // 0.125 Hz * 5 ms = 0.000625, in steps that grow with the probability.
            (0, 20, 20, true, 0.000_625 / 2_048.0),
            (5, 20, 20, true, 0.000_005 + 0.000_625 / 512.0),
            (50, 20, 20, true, 0.000_05 + 0.000_625 / 128.0),
            (500, 20, 20, true, 0.000_5 + 0.000_625 / 32.0),
            (5_000, 20, 20, true, 0.005 + 0.000_625 / 8.0),
            (50_000, 20, 20, true, 0.05 + 0.000_625 / 2.0),
            (500_000, 20, 20, true, 0.500_625),
            // The trend: 1.25 Hz * 5 ms and 0.125 Hz * 5 ms.
            (500_000, 15, 20, true, 0.506_875),
            // No more than 2 % from 10 % on; below, half of 0.1375.
            (100_000, 15, 115, true, 0.12),
            (90_000, 15, 115, true, 0.09 + 0.137_5 / 2.0),
            // An extra 2 % above 250 ms.
            (500_000, 250, 250, true, 0.52),
            (500_000, 251, 251, true, 0.54),
            // Down by 0.125 Hz * 15 ms, and by a 64th more if the queue is empty, twice in a row.
            (500_000, 0, 0, true, 0.498_125),
            (500_000, 0, 0, false, 0.498_125 * 63.0 / 64.0),
            (500_000, 15, 0, false, 0.5 - 0.001_875 - 0.018_75),
            (1_000, 20, 0, false, 0.001 - (0.001_875 + 0.025) / 8.0),
            (1_000_000, 500, 600, true, 1.0),
        ] {
            #[expect(clippy::cast_precision_loss, reason = "a share, to 53 bits")]
            let share = updated(ppm, before, now, has_packet).probability.steps() as f64
                / (1_u64 << BITS) as f64;
            let expected = f64::max(expected, 0.0);
            assert!(
                (share - expected).abs() < 1e-15,
                "{ppm} ppm, {before} ms, {now} ms: {share}, {expected} expected"
            );
        }
    }

    /// RFC 8033 section 4.4. Fails if the allowance were not spent, or came back before congestion
    /// was over.
    #[test]
    fn the_burst_allowance_comes_back_once_congestion_is_over() {
        let left = |ppm, before, now| updated(ppm, before, now, true).burst_left.as_millis();
        assert_eq!(left(0, 7, 7), 150);
        assert_eq!(left(0, 7, 8), 85);
        assert_eq!(left(0, 8, 7), 85);
        assert_eq!(left(500_000, 7, 7), 85);
    }
}
