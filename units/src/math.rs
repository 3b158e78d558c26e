//! Products and quotients whose middle is 128 bits wide.

use std::time::Duration;

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Returns `a * b / c`, rounded down; `u64::MAX` if the result is larger than that or `c` is zero.
///
/// The product of two `u64` is at most (2^64 - 1)^2 < 2^128, so the middle never overflows.
///
/// ```
/// assert_eq!(units::math::mul_div(u64::MAX, 7, 8), 16_140_901_064_495_857_663);
/// assert_eq!(units::math::mul_div(10, 1, 3), 3);
/// assert_eq!(units::math::mul_div(u64::MAX, 2, 1), u64::MAX);
/// ```
#[must_use]
pub fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return u64::MAX;
    }
    saturate(u128::from(a) * u128::from(b) / u128::from(c))
}

/// Returns `a * b / c`, rounded up; `u64::MAX` if the result is larger than that or `c` is zero.
///
/// ```
/// assert_eq!(units::math::mul_div_ceil(10, 1, 3), 4);
/// assert_eq!(units::math::mul_div_ceil(9, 1, 3), 3);
/// ```
#[must_use]
pub fn mul_div_ceil(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return u64::MAX;
    }
    saturate((u128::from(a) * u128::from(b)).div_ceil(u128::from(c)))
}

/// Narrows to 64 bits; what does not fit becomes `u64::MAX`.
pub(crate) fn saturate(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// A span of `nanos` nanoseconds; `Duration::MAX` if a `Duration` cannot hold it.
pub(crate) fn duration_from_nanos(nanos: u128) -> Duration {
    let second = u128::from(NANOS_PER_SECOND);
    match (u64::try_from(nanos / second), u32::try_from(nanos % second)) {
        (Ok(secs), Ok(subsec)) => Duration::new(secs, subsec),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_wider_than_the_operands() {
        assert_eq!(mul_div(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(mul_div(u64::MAX, 3, 6), u64::MAX / 2);
        assert_eq!(mul_div_ceil(u64::MAX, 3, 6), u64::MAX / 2 + 1);
    }

    #[test]
    fn a_zero_divisor_saturates_instead_of_panicking() {
        assert_eq!(mul_div(0, 0, 0), u64::MAX);
        assert_eq!(mul_div_ceil(1, 1, 0), u64::MAX);
    }

    #[test]
    fn rounding_goes_down_in_one_and_up_in_the_other() {
        for (a, b, c) in [(7, 5, 4), (1, 1, 1_000_000_000), (999, 1001, 1000)] {
            assert_eq!(
                mul_div(a, b, c) + 1,
                mul_div_ceil(a, b, c),
                "{a} * {b} / {c}"
            );
        }
        assert_eq!(mul_div(8, 5, 4), 10);
        assert_eq!(mul_div_ceil(8, 5, 4), 10);
    }

    #[test]
    fn a_span_too_long_for_a_duration_is_the_longest_one() {
        assert_eq!(
            duration_from_nanos(1_500_000_000),
            Duration::from_millis(1500)
        );
        assert_eq!(duration_from_nanos(u128::MAX), Duration::MAX);
        assert_eq!(duration_from_nanos(Duration::MAX.as_nanos()), Duration::MAX);
    }
}
