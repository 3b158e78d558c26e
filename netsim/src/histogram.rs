//! A histogram of delays of fixed size.

use std::time::Duration;

/// Counts delays in buckets whose width grows with the value, so that any percentile is within 1.6
/// % and recording never allocates.
///
/// ```text
///  value (ns)  0 .. 127     128 .. 255    256 .. 511    ...
///  width       1            2             4             ...      64 buckets for each power of two
/// ```
///
/// Count, mean and maximum are exact.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    /// Allocated once, when the histogram is made.
    buckets: Box<[u64]>,
    count: u64,
    /// 2^64 delays of 2^64 ns fit.
    total_nanos: u128,
    max: Duration,
}

/// 64 buckets for each power of two: a bucket is at most 1/64 of its values wide.
const BITS: u32 = 6;
const BUCKETS_PER_DOUBLING: u64 = 1 << BITS;
/// Values below 64 have a bucket each, then each of the powers 2^6 to 2^63 has 64.
const BUCKET_COUNT: usize = (64 - BITS as usize + 1) << BITS;

impl DelayHistogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: vec![0; BUCKET_COUNT].into_boxed_slice(),
            count: 0,
            total_nanos: 0,
            max: Duration::ZERO,
        }
    }

    /// Counts one delay; beyond 2^64 ns (584 years) it counts as that.
    pub fn record(&mut self, delay: Duration) {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)] += 1;
        self.count += 1;
        self.total_nanos += u128::from(nanos);
        self.max = self.max.max(Duration::from_nanos(nanos));
    }

    /// How many delays were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest delay, exact; zero if there is none.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The mean, rounded down to a nanosecond; `None` if there is none.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.total_nanos.checked_div(u128::from(self.count))?;
        // A mean is no larger than the largest value, which has 64 bits.
        u64::try_from(mean).ok().map(Duration::from_nanos)
    }

    /// The smallest delay that at least `per_mille` thousandths of all delays do not exceed, up to
    /// 1.6 % too large and never above the maximum; `None` if there is none. `per_mille` above
    /// 1,000 counts as that.
    ///
    /// ```
    /// use std::time::Duration;
    /// use netsim::DelayHistogram;
    ///
    /// let mut delays = DelayHistogram::new();
    /// for millis in 1..=100 {
    ///     delays.record(Duration::from_millis(millis));
    /// }
    /// let p95 = delays.percentile(950).unwrap();
    /// assert!((95.0..=96.6).contains(&(p95.as_secs_f64() * 1e3)));
    /// assert_eq!(delays.percentile(1_000), Some(Duration::from_millis(100)));
    /// ```
    #[must_use]
    pub fn percentile(&self, per_mille: u32) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank =
            units::math::mul_div_ceil(self.count, u64::from(per_mille.min(1_000)), 1_000).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_nanos(largest_in(bucket)).min(self.max))
    }
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The bucket of a value: below 64 the value itself; else 64 for each doubling, and the six bits
/// after the leading one within it.
fn bucket_of(nanos: u64) -> usize {
    let index = match nanos.checked_ilog2() {
        Some(power) if power >= BITS => {
            let shift = power - BITS;
            (u64::from(shift) << BITS) + (nanos >> shift)
        }
        _ => nanos,
    };
    // At most 57 * 64 + 127 for 2^64 - 1, the last bucket.
    usize::try_from(index).unwrap_or(BUCKET_COUNT - 1)
}

/// The largest value of a bucket; the inverse of [`bucket_of`].
fn largest_in(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    let doubling = bucket / BUCKETS_PER_DOUBLING;
    if doubling < 2 {
        return bucket;
    }
    let shift = doubling - 1;
    let first = (bucket - (shift << BITS)) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for power in 0..64 {
            for nanos in [
                (1_u64 << power) - 1,
                1 << power,
                (1 << power) + ((1 << power) / 3),
            ] {
                let bucket = bucket_of(nanos);
                assert!(nanos <= largest_in(bucket), "{nanos}");
                assert!(bucket == 0 || nanos > largest_in(bucket - 1), "{nanos}");
                assert!(largest_in(bucket) - nanos <= nanos / 64, "{nanos}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
        assert_eq!(largest_in(BUCKET_COUNT - 1), u64::MAX);
    }

    #[test]
    fn percentiles_are_within_their_error_and_never_too_small() {
        let mut delays = DelayHistogram::new();
        for nanos in (1..=100_000_u64).rev() {
            delays.record(Duration::from_nanos(nanos * 1_000));
        }
        for per_mille in [1_u32, 10, 500, 900, 950, 990, 999, 1_000, 5_000] {
            let exact = u64::from(per_mille.min(1_000)) * 100 * 1_000;
            let reported = u64::try_from(delays.percentile(per_mille).unwrap().as_nanos()).unwrap();
            assert!(
                (exact..=exact + exact / 64).contains(&reported),
                "{per_mille}: {reported} for {exact}"
            );
        }
        assert_eq!(
            delays.percentile(0),
            delays.percentile(1).map(|_| Duration::from_nanos(1_007))
        );
    }

    #[test]
    fn count_mean_and_maximum_are_exact() {
        let mut delays = DelayHistogram::new();
        assert_eq!(
            (delays.mean(), delays.percentile(500), delays.max()),
            (None, None, Duration::ZERO)
        );
        for nanos in [1_000_001, 2_000_003, 6_000_005] {
            delays.record(Duration::from_nanos(nanos));
        }
        assert_eq!(delays.count(), 3);
        assert_eq!(delays.mean(), Some(Duration::from_nanos(3_000_003)));
        assert_eq!(delays.max(), Duration::from_nanos(6_000_005));
    }

    #[test]
    fn the_longest_duration_is_counted_at_the_end() {
        let mut delays = DelayHistogram::new();
        delays.record(Duration::MAX);
        assert_eq!(delays.percentile(500), Some(Duration::from_nanos(u64::MAX)));
    }
}
