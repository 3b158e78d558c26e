//! Percentiles over runs, bootstrap intervals, and what a run without failures proves.
//!
//! scenarios.md 4.1 and 4.2. Percentiles are nearest-rank: always one of the values that occurred.

use netsim::RandomStreams;

/// Resamples of a bootstrap, scenarios.md 4.2.
pub const RESAMPLES: usize = 10_000;

/// The nearest-rank percentile of sorted values: the smallest value such that at least
/// `thousandths` of a thousand are not above it. `None` when there are no values.
///
/// ```
/// use interop::stats::nearest_rank;
///
/// assert_eq!(nearest_rank(&[15, 20, 35, 40, 50], 300), Some(20));
/// assert_eq!(nearest_rank(&[15, 20, 35, 40, 50], 1000), Some(50));
/// ```
#[must_use]
pub fn nearest_rank<T: Copy>(sorted: &[T], thousandths: u32) -> Option<T> {
    let count = sorted.len() as u128;
    let rank = (count * u128::from(thousandths.min(1000))).div_ceil(1000);
    let index = usize::try_from(rank.saturating_sub(1)).ok()?;
    sorted.get(index).copied()
}

/// The median of values in any order: the middle one, or the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[half - 1], upper))
}

/// The 95 % interval of the median by percentile bootstrap, seeded, so that the same values always
/// give the same interval. `None` for fewer than two values.
#[must_use]
pub fn median_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    bootstrap(values, seed, &|resample| {
        resample.sort_by(f64::total_cmp);
        median_of_sorted(resample).unwrap_or(f64::NAN)
    })
}

/// The 95 % interval of the mean by percentile bootstrap.
#[must_use]
pub fn mean_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    bootstrap(values, seed, &|resample| {
        resample.iter().sum::<f64>() / count(resample.len())
    })
}

fn bootstrap(
    values: &[f64],
    seed: u64,
    statistic: &dyn Fn(&mut [f64]) -> f64,
) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mut draws = RandomStreams::new(seed).stream("bootstrap");
    let below = values.len() as u64;
    let mut resample = vec![0.0; values.len()];
    let mut results = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for slot in &mut resample {
            let drawn = usize::try_from(draws.below(below)).unwrap_or(0);
            *slot = values[drawn];
        }
        results.push(statistic(&mut resample));
    }
    results.sort_by(f64::total_cmp);
    Some((nearest_rank(&results, 25)?, nearest_rank(&results, 975)?))
}

/// The failure rate, as a share, that zero failures in `runs` runs still allow at 95 % confidence:
/// `1 - 0.05^(1/n)`.
#[must_use]
pub fn failure_bound(runs: usize) -> f64 {
    if runs == 0 {
        return 1.0;
    }
    1.0 - 0.05_f64.powf(1.0 / count(runs))
}

/// Exact up to 2^52, far above any number of runs.
#[expect(
    clippy::cast_precision_loss,
    reason = "the number of runs is far below 2^52"
)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank_takes_a_value_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 500), Some(50));
        assert_eq!(nearest_rank(&hundred, 950), Some(95));
        assert_eq!(nearest_rank(&hundred, 990), Some(99));
        assert_eq!(nearest_rank(&hundred, 0), Some(1));
        assert_eq!(nearest_rank(&[7], 950), Some(7));
        assert_eq!(nearest_rank::<u64>(&[], 500), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_middle_of_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_interval_is_reproducible_holds_the_median_and_depends_on_the_seed() {
        let values: Vec<f64> = (0..40).map(|step| f64::from(step * step % 37)).collect();
        let interval = median_interval(&values, 1).unwrap();
        assert_eq!(median_interval(&values, 1).unwrap(), interval);
        let middle = median(&values).unwrap();
        assert!(interval.0 <= middle && middle <= interval.1);
        assert!(interval.0 < interval.1);
        let mean = mean_interval(&values, 1).unwrap();
        assert_ne!(mean_interval(&values, 2).unwrap(), mean);
    }

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_each_way() {
        // 100 values 0 or 1, half of each: the standard error of the mean is 0.05.
        let values: Vec<f64> = (0..100).map(|step| f64::from(step % 2)).collect();
        let (low, high) = mean_interval(&values, 3).unwrap();
        assert!((low - 0.402).abs() < 0.015, "{low}");
        assert!((high - 0.598).abs() < 0.015, "{high}");
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(median_interval(&[1.0], 1), None);
        let (low, high) = median_interval(&[2.0, 2.0], 1).unwrap();
        assert!((low - 2.0).abs() < f64::EPSILON && (high - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn zero_failures_bound_the_rate_as_tabulated() {
        // scenarios.md 4.2: n = 20, 40, 100 and 200.
        for (runs, percent) in [(20, 14.0), (40, 7.2), (100, 3.0), (200, 1.5)] {
            let bound = failure_bound(runs) * 100.0;
            assert!((bound - percent).abs() < 0.1, "{runs}: {bound}");
        }
    }
}
