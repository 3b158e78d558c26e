//! What PIE and DualPI2 share: a proportional integral controller of the delay, and its clock.

use std::time::Duration;

use units::Timestamp;

use super::probability::BITS;

/// The gain of a controller: probability per second of delay and update, in thousandths of a hertz.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Gain {
    millihertz: u32,
}

impl Gain {
    /// The highest gain that is accepted: 1,000 Hz, where 1 ms decides between 0 % and 100 %.
    pub const HIGHEST: Self = Self::from_millihertz(1_000_000);

    /// `millihertz` thousandths of a hertz.
    #[must_use]
    pub const fn from_millihertz(millihertz: u32) -> Self {
        Self { millihertz }
    }

    /// Thousandths of a hertz.
    #[must_use]
    pub const fn as_millihertz(self) -> u32 {
        self.millihertz
    }
}

/// The delay a controller sees, and the one it wants.
#[derive(Copy, Clone, Debug)]
pub(super) struct Delays {
    pub(super) now: Duration,
    /// At the update before.
    pub(super) before: Duration,
    pub(super) target: Duration,
}

/// One step of the controller, in 2^-60 of probability: `alpha` times the distance from the target
/// plus `beta` times the trend (RFC 8033 section 4.2, RFC 9332 appendix A.1).
///
/// A gain is at most 10^6 mHz < 2^20, a delay is cut at 2^45 ns (ten hours), so the sum stays below
/// 2^66 and, times 2^60, below 2^126.
pub(super) fn step(alpha: Gain, beta: Gain, delays: Delays) -> i128 {
    let nanos = |span: Duration| {
        i128::try_from(span.as_nanos())
            .unwrap_or(i128::MAX)
            .min(1 << 45)
    };
    let distance = nanos(delays.now) - nanos(delays.target);
    let trend = nanos(delays.now) - nanos(delays.before);
    let gain = |gain: Gain| i128::from(gain.millihertz.min(Gain::HIGHEST.millihertz));
    ((gain(alpha) * distance + gain(beta) * trend) << BITS) / MILLIHERTZ_NANOS
}

/// Hertz times seconds in millihertz times nanoseconds.
const MILLIHERTZ_NANOS: i128 = 1_000 * 1_000_000_000;

/// When the updates are due.
#[derive(Copy, Clone, Debug)]
pub(super) struct Clock {
    period: Duration,
    next_at: Timestamp,
}

impl Clock {
    /// The first update is due a period from `now`.
    pub(super) fn new(now: Timestamp, period: Duration) -> Self {
        let period = period.max(Self::SHORTEST);
        Self {
            period,
            next_at: now + period,
        }
    }

    /// The shortest period that is accepted.
    pub(super) const SHORTEST: Duration = Duration::from_micros(1);

    /// The instant of the next update if that is due, which it then no longer is.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let due_at = self.next_at;
        if due_at > now || due_at == Timestamp::MAX {
            return None;
        }
        self.next_at = due_at + self.period;
        Some(due_at)
    }

    /// Leaves out the updates up to `now`, which would change nothing, and says when the last of
    /// them was due.
    pub(super) fn skip(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.next_at > now {
            return None;
        }
        let late = now.as_nanos() - self.next_at.as_nanos();
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let last_at = self.next_at + Duration::from_nanos(late - late % period);
        self.next_at = last_at + self.period;
        Some(last_at)
    }

    /// The next update is due a period from now, or when it was anyway if that is sooner.
    pub(super) fn adjust(&mut self, now: Timestamp, period: Duration) {
        if period != self.period {
            let afresh = Self::new(now, period);
            self.period = afresh.period;
            self.next_at = self.next_at.min(afresh.next_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a delay were not cut before it is multiplied.
    #[test]
    fn the_longest_delays_do_not_overflow() {
        let delays = |now| Delays {
            now,
            before: Duration::ZERO,
            target: Duration::ZERO,
        };
        let longest = step(Gain::HIGHEST, Gain::HIGHEST, delays(Duration::MAX));
        let cut = step(
            Gain::HIGHEST,
            Gain::HIGHEST,
            delays(Duration::from_nanos(1 << 45)),
        );
        assert_eq!(longest, cut);
        assert!(cut > 1 << BITS);
    }

    /// Fails if an update were due early, left out or given twice.
    #[test]
    fn the_clock_counts_every_period_once() {
        let millis = Timestamp::from_millis;
        let mut clock = Clock::new(millis(5), Duration::from_millis(10));
        assert_eq!(clock.take_due(millis(14)), None);
        assert_eq!(clock.take_due(millis(47)), Some(millis(15)));
        assert_eq!(clock.take_due(millis(47)), Some(millis(25)));
        assert_eq!(clock.skip(millis(47)), Some(millis(45)));
        assert_eq!(clock.skip(millis(54)), None);
        assert_eq!(clock.take_due(millis(55)), Some(millis(55)));
        assert_eq!(clock.take_due(Timestamp::MAX), Some(millis(65)));
        clock.skip(Timestamp::MAX);
        assert_eq!(clock.take_due(Timestamp::MAX), None);
    }
}
