//! RED, random early detection: RFC 2309; S. Floyd and V. Jacobson, "Random Early Detection
//! Gateways for Congestion Avoidance", 1993 (below: the paper).
//!
//! ```text
//!  p_b
//!  100 % |                               /------   above: drop everything
//!        |                             /
//!        |                           /    gentle
//!  max_p |                       __/
//!        |               __---'''
//!      0 +--------------+----------+------------+--  average length in bytes
//!                      min        max         2 max
//! ```
//!
//! The chance of a packet grows with the number let through since the last drop, `p_b / (1 - count
//! p_b)`, which spreads the drops evenly: the gap between two is uniform.
//!
//! The average is kept in 2^-20 of a byte; there is no floating point.

use units::{ByteCount, Fraction, Rate, Timestamp};

use super::fifo::Fifo;
use super::probability::{Draw, Probability};
use super::{Arrival, Fate, Fates, QueueDrop, QueueLimits, mark};
use crate::counters::Tally;
use crate::packet::Waiting;

/// Parameters of RED.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RedConfig {
    /// Below this average length nothing is dropped; a sixth of the limit if `None`.
    pub min: Option<ByteCount>,
    /// At this average length `max_probability` is reached; half of the limit if `None`.
    pub max: Option<ByteCount>,
    /// The probability at `max`: 2 % (the paper, section 6).
    pub max_probability: Fraction,
    /// The share of the average that each arrival renews: 0.2 % (the paper, section 6). Above 0.
    pub weight: Fraction,
    /// Whether the probability rises gently to 100 % at twice `max` in place of jumping there at
    /// `max`. On.
    pub gentle: bool,
    /// In an idle time the average decays as if packets of this size had passed an empty queue (the
    /// paper, section 4); a limit in packets alone is taken as one in bytes by it as well. 1,500
    /// bytes.
    pub typical_packet: ByteCount,
    /// Whether packets that can carry a mark get one in place of being dropped, except where
    /// everything is dropped. Off.
    pub ecn: bool,
}

impl RedConfig {
    /// Whether the settings make sense with a limit.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self, limit: QueueLimits) -> Result<(), &'static str> {
        let thresholds = self.thresholds(limit);
        let is_relative = self.min.is_none() || self.max.is_none();
        if self.weight == Fraction::ZERO {
            Err("the RED weight is zero, above 0 %")
        } else if self.typical_packet == ByteCount::ZERO {
            Err("the typical packet of RED is empty, at least 1 B")
        } else if thresholds.max > LONGEST || (is_relative && self.room(limit) > LONGEST) {
            Err("RED needs a limit or thresholds, at most 1 TB")
        } else if thresholds.min >= thresholds.max {
            Err("the RED min is not below the max")
        } else {
            Ok(())
        }
    }

    fn room(&self, limit: QueueLimits) -> ByteCount {
        limit.bytes.min(self.typical_packet * limit.packets)
    }

    fn thresholds(&self, limit: QueueLimits) -> Thresholds {
        // A change may lift the limit.
        let limit = self.room(limit).min(LONGEST);
        Thresholds {
            min: self.min.unwrap_or(limit.scale(1, 6)),
            max: self.max.unwrap_or(limit.scale(1, 2)),
        }
    }
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            min: None,
            max: None,
            max_probability: Fraction::from_percent(2).unwrap_or(Fraction::ZERO),
            weight: Fraction::from_ppb(2_000_000).unwrap_or(Fraction::ZERO),
            gentle: true,
            typical_packet: ByteCount::new(1_500),
            ecn: false,
        }
    }
}

/// The longest average that is told from longer ones.
const LONGEST: ByteCount = ByteCount::new(1_000_000_000_000);

#[derive(Copy, Clone, Debug)]
struct Thresholds {
    min: ByteCount,
    max: ByteCount,
}

/// One FIFO under RED.
#[derive(Clone, Debug)]
pub(super) struct Red<T> {
    config: RedConfig,
    fifo: Fifo<T>,
    average: Average,
    /// Packets let through since the last drop or since the average rose above `min`, if it is.
    /// `None` is the -1 of the paper.
    count: Option<u64>,
    /// Since when nothing waits, as far as the average knows.
    empty_since: Option<Timestamp>,
}

enum Verdict {
    LetIn,
    DropOrMark,
    Drop,
}

impl<T> Red<T> {
    pub(super) const fn new(config: RedConfig, now: Timestamp) -> Self {
        Self {
            config,
            fifo: Fifo::new(),
            average: Average(0),
            count: None,
            empty_since: Some(now),
        }
    }

    /// Every arrival is measured, even one that does not fit.
    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        self.measure(arrival.now, arrival.rate);
        let draw = Draw::from_stream(arrival.random);
        let has_room = arrival.has_room(self.fifo.tally());
        let thresholds = self.config.thresholds(arrival.limit);
        let mut waiting = arrival.waiting;
        if !has_room {
            fates(Fate::Dropped(waiting, QueueDrop::Full));
            return;
        }
        let is_let_in = match self.judge(thresholds, draw) {
            Verdict::LetIn => true,
            Verdict::DropOrMark => self.config.ecn && mark(&mut waiting, fates),
            Verdict::Drop => false,
        };
        if is_let_in {
            self.empty_since = None;
            self.fifo.push(waiting);
        } else {
            fates(Fate::Dropped(waiting, QueueDrop::Aqm));
        }
    }

    pub(super) fn dequeue(&mut self, now: Timestamp) -> Option<Waiting<T>> {
        let waiting = self.fifo.pop()?;
        if self.fifo.is_empty() {
            self.empty_since = Some(now);
        }
        Some(waiting)
    }

    pub(super) fn adjust(&mut self, config: RedConfig) {
        self.config = config;
    }

    /// The average starts at the length that is there, rather than take hundreds of arrivals to
    /// notice it.
    pub(super) fn take_over(&mut self, waiting: Waiting<T>) {
        self.fifo.push(waiting);
        self.average = Average::of(self.fifo.tally().bytes);
        self.empty_since = None;
    }

    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        self.fifo.drain_into(packets);
    }

    pub(super) fn tally(&self) -> Tally {
        self.fifo.tally()
    }

    /// Renews the average with the length the arrival finds, or lets it decay over the idle time:
    /// the paper, section 4, figure 2.
    fn measure(&mut self, now: Timestamp, rate: Rate) {
        if let Some(since) = self.empty_since {
            let idle = now.saturating_since(since);
            let per_packet = rate.time_for(self.config.typical_packet);
            let packets = match per_packet.as_nanos() {
                0 if idle.is_zero() => 0,
                0 => u64::MAX,
                nanos => u64::try_from(idle.as_nanos() / nanos).unwrap_or(u64::MAX),
            };
            self.average.decay(packets, self.config.weight);
            // What is left of a packet's time counts the next time.
            let counted = u32::try_from(packets).map_or(idle, |packets| {
                per_packet.checked_mul(packets).unwrap_or(idle)
            });
            self.empty_since = Some(since + counted);
        } else {
            self.average
                .renew(self.fifo.tally().bytes, self.config.weight);
        }
    }

    /// The paper, section 4, figure 2, and the gentle part of the ramp.
    fn judge(&mut self, thresholds: Thresholds, draw: Draw) -> Verdict {
        let Some(base) = self.base_probability(thresholds) else {
            self.count = Some(0);
            return Verdict::Drop;
        };
        if self.average.0 < Average::of(thresholds.min).0 {
            self.count = None;
            return Verdict::LetIn;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let spent = base.multiply(count).complement();
        let probability = Probability::ratio(base.steps().into(), spent.steps().into());
        if draw.is_within(probability) {
            self.count = Some(0);
            Verdict::DropOrMark
        } else {
            self.count = Some(count);
            Verdict::LetIn
        }
    }

    /// `p_b` by the picture above; `None` where everything is dropped.
    fn base_probability(&self, thresholds: Thresholds) -> Option<Probability> {
        let min = Average::of(thresholds.min).0;
        let max = Average::of(thresholds.max).0;
        let average = self.average.0;
        let top = Probability::from_fraction(self.config.max_probability);
        if average < min {
            Some(Probability::ZERO)
        } else if average < max {
            Some(top.times(Probability::ratio(average - min, max - min)))
        } else if self.config.gentle && average < 2 * max {
            let rise = top
                .complement()
                .times(Probability::ratio(average - max, max));
            Some(top.shift(rise.steps().into()))
        } else {
            None
        }
    }
}

/// The average length in 2^-20 of a byte: at most 10^12 bytes, which is below 2^60 steps.
#[derive(Copy, Clone, Debug)]
struct Average(u128);

impl Average {
    fn of(bytes: ByteCount) -> Self {
        Self(u128::from(bytes.min(LONGEST).as_u64()) << 20)
    }

    /// Moves by `weight` of the distance, rounded towards the average it was: at a weight of 0.2 %
    /// it comes to rest within 500 steps, 0.0005 bytes, of a constant length.
    fn renew(&mut self, length: ByteCount, weight: Fraction) {
        let length = Self::of(length).0;
        let whole = u128::from(Fraction::ONE.as_ppb());
        let part = self.0.abs_diff(length) * u128::from(weight.as_ppb()) / whole;
        if length > self.0 {
            self.0 += part;
        } else {
            self.0 -= part;
        }
    }

    /// As if so many packets had found the queue empty.
    fn decay(&mut self, packets: u64, weight: Fraction) {
        let kept = Probability::from_fraction(weight)
            .complement()
            .power(packets);
        self.0 = (self.0 * u128::from(kept.steps())) >> super::probability::BITS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;

    fn red() -> Red<()> {
        let config = RedConfig {
            max_probability: Fraction::ZERO,
            ..RedConfig::default()
        };
        Red::new(config, Timestamp::ZERO)
    }

    /// Fails if the count survived a time below min, since the paper starts over then.
    #[test]
    fn the_count_starts_over_once_the_average_was_low() {
        let mut random = RandomStreams::new(1).stream("forward.aqm");
        let mut red = red();
        let thresholds = Thresholds {
            min: ByteCount::kb(10),
            max: ByteCount::kb(20),
        };
        let mut counts = Vec::new();
        for kilobytes in [15, 15, 15, 5, 15, 15] {
            red.average = Average::of(ByteCount::kb(kilobytes));
            red.judge(thresholds, Draw::from_stream(&mut random));
            counts.push(red.count);
        }
        assert_eq!(counts, [Some(0), Some(1), Some(2), None, Some(0), Some(1)]);
    }

    /// Arrivals that are dropped while nothing waits measure the same idle time piece by piece.
    /// Fails if a piece counted twice, or if what is left of a packet's time were lost.
    #[test]
    fn measuring_an_idle_time_in_pieces_changes_nothing() {
        let rate = Rate::from_mbps(12);
        let after = |pieces: u64| {
            let mut red = red();
            red.average = Average::of(ByteCount::kb(100));
            for piece in 1..=pieces {
                // A packet takes 1 ms.
                red.measure(Timestamp::from_micros(300_000 / pieces * piece), rate);
            }
            red.average.0
        };
        let whole = after(1);
        assert!(whole < Average::of(ByteCount::new(55_000)).0, "{whole}");
        for pieces in [2, 8, 1_000] {
            let error = after(pieces).abs_diff(whole);
            // Each piece may round down by one step.
            assert!(error <= 1_000, "{pieces}: {error}");
        }
    }

    /// Fails if an infinite rate left the average as it is, or a link that stands still did not.
    #[test]
    fn idle_time_is_counted_at_any_rate() {
        for (rate, expected) in [
            (Rate::INFINITE, 0),
            (Rate::ZERO, Average::of(ByteCount::kb(100)).0),
        ] {
            let mut red = red();
            red.average = Average::of(ByteCount::kb(100));
            red.measure(Timestamp::from_secs(1), rate);
            assert_eq!(red.average.0, expected);
        }
    }
}
