//! Random quantities with a given distribution.
//!
//! Each is a pure function of a fixed number of 64-bit draws, by inversion, so a change of a
//! parameter never changes how many draws a stream has given. Logarithms, exponentials and cosines
//! come from the `libm` crate, not from the platform, and everything else is `+ - * /` and the
//! square root, which IEEE 754 rounds in one way: the results are the same everywhere.

/// A number in [0, 1): the upper 53 bits of a draw.
pub(crate) fn unit(draw: u64) -> f64 {
    const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
    (draw >> 11) as f64 * SCALE
}

/// A number in [0, `bound`), exactly uniform to within 2^-64; 0 if `bound` is 0.
pub(crate) fn uniform(draw: u64, bound: u64) -> u64 {
    let scaled = (u128::from(draw) * u128::from(bound)) >> 64;
    // Below `bound`, which fits.
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A count with the Poisson distribution of this mean. A mean of 0 or less gives 0.
///
/// Walks up the distribution until it has passed the draw: `mean` steps on average. The mean is at
/// most 700, where e^-mean is still a normal number.
pub(crate) fn poisson(draw: u64, mean: f64) -> u64 {
    debug_assert!(mean <= 700.0, "{mean} is beyond this method");
    if mean <= 0.0 {
        return 0;
    }
    let draw = unit(draw);
    let mut probability = libm::exp(-mean);
    let mut cumulative = probability;
    let mut count = 0_u64;
    // The probabilities may add up to a little less than the largest draw; they vanish by then.
    while draw >= cumulative && probability > 0.0 {
        count += 1;
        probability *= mean / count as f64;
        cumulative += probability;
    }
    count
}

/// A number with the standard normal distribution, by the method of Box and Muller.
pub(crate) fn normal(draws: [u64; 2]) -> f64 {
    // 1 - [0, 1) is never zero.
    let radius = (-2.0 * libm::log(1.0 - unit(draws[0]))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * unit(draws[1]))
}

/// The `index`-th number of the sequence that belongs to `key`, without those before it.
///
/// Two rounds of multiply and xor-shift, as at the end of SplitMix64, over a golden-ratio counter.
pub(crate) fn nth(key: u64, index: u64) -> u64 {
    let mut mixed = key.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The whole part of a number, 0 for a negative one, saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dropping the fraction is the purpose, and `as` saturates"
)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;

    #[test]
    fn the_ends_of_a_draw_stay_in_range() {
        assert!(unit(0) < f64::MIN_POSITIVE);
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(uniform(u64::MAX, 7), 6);
        assert_eq!(uniform(u64::MAX, 0), 0);
        assert_eq!(uniform(u64::MAX, u64::MAX), u64::MAX - 1);
        assert_eq!(uniform(0, 7), 0);
        assert!(normal([u64::MAX, 0]).is_finite());
        assert!(poisson(u64::MAX, 1.0) < 30);
        assert_eq!(poisson(u64::MAX, 0.0), 0);
    }

    #[test]
    fn counts_have_the_poisson_mean_and_variance() {
        let mut stream = RandomStreams::new(1).stream("poisson");
        for mean in [0.05, 1.0, 12.0, 200.0] {
            let n = 40_000;
            let counts: Vec<f64> = (0..n).map(|_| poisson(stream.u64(), mean) as f64).collect();
            let (average, variance) = moments(&counts);
            // Standard deviations: sqrt(mean / n), and about mean * sqrt(2 / n) (more if rare).
            let sigma = (mean / f64::from(n)).sqrt();
            assert!((average - mean).abs() < 4.0 * sigma, "{mean}: {average}");
            let sigma = ((mean + 2.0 * mean * mean) / f64::from(n)).sqrt();
            assert!((variance - mean).abs() < 4.0 * sigma, "{mean}: {variance}");
        }
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut stream = RandomStreams::new(1).stream("normal");
        let n = 40_000_u32;
        let numbers: Vec<f64> = (0..n)
            .map(|_| normal([stream.u64(), stream.u64()]))
            .collect();
        let (average, variance) = moments(&numbers);
        assert!(average.abs() < 0.02, "{average}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        let beyond_two = numbers.iter().filter(|number| number.abs() > 2.0).count();
        // 4.55 % of 40,000 is 1,820, with a standard deviation of 42.
        assert!((1_650..1_990).contains(&beyond_two), "{beyond_two}");
    }

    /// Independent values of the same recipe: they hold on every platform.
    #[test]
    fn the_results_are_fixed_to_the_last_bit() {
        // The first two outputs published for SplitMix64 started at 1,234,567.
        assert_eq!(nth(1_234_567, 1), 6_457_827_717_110_365_317);
        assert_eq!(nth(1_234_567, 2), 3_203_168_211_198_807_973);
    }

    fn moments(numbers: &[f64]) -> (f64, f64) {
        let n = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        let variance = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (mean, variance)
    }
}
