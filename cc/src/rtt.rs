//! Round-trip time estimates (RFC 9002 section 5), in whole nanoseconds.

use std::time::Duration;

/// The latest, smoothed and smallest round-trip time and their variation.
///
/// ```
/// use std::time::Duration;
/// use cc::RttEstimator;
///
/// let mut rtt = RttEstimator::new();
/// rtt.update(Duration::from_millis(100), Duration::ZERO);
/// rtt.update(Duration::from_millis(180), Duration::from_millis(0));
/// assert_eq!(rtt.smoothed(), Some(Duration::from_millis(110)));
/// assert_eq!(rtt.minimum(), Some(Duration::from_millis(100)));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RttEstimator {
    estimates: Option<Estimates>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Estimates {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    minimum: Duration,
}

/// RFC 9002 section 6.2.2: the RTT assumed before there is a sample.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// RFC 9002 section 6.1.2, kGranularity: no timer is set finer than this.
const GRANULARITY: Duration = Duration::from_millis(1);

impl RttEstimator {
    /// Makes an estimator that has seen no sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { estimates: None }
    }

    /// Takes one sample.
    ///
    /// `ack_delay` is what the peer says it waited before acknowledging, already limited to the agreed
    /// maximum (RFC 9002 section 5.3). It is not subtracted where that would give less than the smallest RTT
    /// seen, because the peer's clock is not ours.
    ///
    /// Divisions round down; the loss is below one nanosecond per sample and does not add up, because both
    /// averages forget.
    pub fn update(&mut self, latest: Duration, ack_delay: Duration) {
        let Some(old) = self.estimates else {
            // RFC 9002 section 5.3: the first sample stands alone and ignores the delay.
            self.estimates = Some(Estimates {
                latest,
                smoothed: latest,
                variation: latest / 2,
                minimum: latest,
            });
            return;
        };
        // RFC 9002 section 5.2: the minimum takes raw samples only.
        let minimum = old.minimum.min(latest);
        let adjusted = if latest >= minimum.saturating_add(ack_delay) {
            latest.saturating_sub(ack_delay)
        } else {
            latest
        };
        // RFC 9002 section 5.3: the deviation is taken from the average before this sample moves it.
        let deviation = old.smoothed.abs_diff(adjusted);
        self.estimates = Some(Estimates {
            latest,
            smoothed: weigh(old.smoothed, 7, adjusted),
            variation: weigh(old.variation, 3, deviation),
            minimum,
        });
    }

    /// Says whether there has been a sample.
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.estimates.is_some()
    }

    /// Returns the latest raw sample, the peer's delay included.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        self.estimates.map(|e| e.latest)
    }

    /// Returns the smoothed RTT.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimates.map(|e| e.smoothed)
    }

    /// Returns the mean deviation of the samples.
    #[must_use]
    pub fn variation(&self) -> Option<Duration> {
        self.estimates.map(|e| e.variation)
    }

    /// Returns the smallest RTT seen, the peer's delay included.
    #[must_use]
    pub fn minimum(&self) -> Option<Duration> {
        self.estimates.map(|e| e.minimum)
    }

    /// Returns the smoothed RTT or, before the first sample, the 333 ms assumed until then.
    #[must_use]
    pub fn smoothed_or_initial(&self) -> Duration {
        self.smoothed().unwrap_or(INITIAL_RTT)
    }

    /// Returns the probe timeout without the peer's delay and without backoff: smoothed RTT plus four times
    /// the variation, the latter at least a millisecond (RFC 9002 section 6.2.1).
    #[must_use]
    pub fn pto_base(&self) -> Duration {
        let variation = self.variation().unwrap_or(INITIAL_RTT / 2);
        self.smoothed_or_initial()
            .saturating_add(variation.saturating_mul(4).max(GRANULARITY))
    }
}

/// Averages with `old` counting `weight` times and `new` once, rounded down. `weight + 1` is a power of two.
fn weigh(old: Duration, weight: u32, new: Duration) -> Duration {
    old.saturating_mul(weight).saturating_add(new) / (weight + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn nothing_is_known_before_the_first_sample_but_a_timeout_exists() {
        let rtt = RttEstimator::new();
        assert!(!rtt.has_sample());
        assert_eq!(rtt.smoothed(), None);
        assert_eq!(rtt.minimum(), None);
        // 333 ms + 4 x 166.5 ms, RFC 9002 section 6.2.2.
        assert_eq!(rtt.pto_base(), ms(999));
    }

    #[test]
    fn the_first_sample_ignores_the_acknowledgement_delay() {
        let mut rtt = RttEstimator::new();
        rtt.update(ms(100), ms(25));
        assert_eq!(rtt.latest(), Some(ms(100)));
        assert_eq!(rtt.smoothed(), Some(ms(100)));
        assert_eq!(rtt.variation(), Some(ms(50)));
        assert_eq!(rtt.pto_base(), ms(300));
    }

    #[test]
    fn later_samples_move_the_averages_by_an_eighth_and_a_quarter() {
        let mut rtt = RttEstimator::new();
        rtt.update(ms(100), ms(0));
        rtt.update(ms(200), ms(20));
        // adjusted 180: smoothed 100 x 7/8 + 180/8 = 110, variation 50 x 3/4 + 80/4 = 57.5.
        assert_eq!(rtt.smoothed(), Some(ms(110)));
        assert_eq!(rtt.variation(), Some(Duration::from_micros(57_500)));
        assert_eq!(rtt.minimum(), Some(ms(100)));
    }

    #[test]
    fn a_delay_that_would_undercut_the_minimum_is_not_subtracted() {
        let mut rtt = RttEstimator::new();
        rtt.update(ms(100), ms(0));
        rtt.update(ms(108), ms(10));
        assert_eq!(rtt.smoothed(), Some(ms(101)));
        rtt.update(ms(110), ms(10));
        // exactly at the minimum after subtraction, so it is subtracted: (7 x 101 + 100) / 8.
        assert_eq!(rtt.smoothed(), Some(Duration::from_micros(100_875)));
    }

    #[test]
    fn the_minimum_follows_raw_samples_down_and_never_up() {
        let mut rtt = RttEstimator::new();
        for sample in [100, 90, 120, 91] {
            rtt.update(ms(sample), ms(25));
        }
        assert_eq!(rtt.minimum(), Some(ms(90)));
    }

    #[test]
    fn a_steady_path_brings_the_timeout_down_to_the_granularity() {
        let mut rtt = RttEstimator::new();
        for _ in 0..200 {
            rtt.update(ms(10), ms(0));
        }
        assert_eq!(rtt.pto_base(), ms(11));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::new();
        rtt.update(Duration::MAX, Duration::MAX);
        rtt.update(Duration::ZERO, Duration::MAX);
        rtt.update(Duration::MAX, Duration::ZERO);
        assert_eq!(rtt.minimum(), Some(Duration::ZERO));
        assert!(rtt.pto_base() > ms(1));
    }
}
