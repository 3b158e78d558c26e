//! Probabilities as integers, in multiples of 2^-60.
//!
//! Fine enough for the smallest steps of PIE (one part in 10^9 of 10^-6), and the product of two
//! fits in 128 bits. Every operation is exact or rounds down, on every platform alike.

use units::Fraction;

use crate::random::RandomStream;

/// A probability from 0 to 1.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Probability(u64);

impl Probability {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ONE: Self = Self(1 << BITS);

    /// `part / whole`, at most 1; 1 if `whole` is 0. `part` is below 2^68.
    pub(super) const fn ratio(part: u128, whole: u128) -> Self {
        if part >= whole {
            Self::ONE
        } else {
            Self::narrow((part << BITS) / whole)
        }
    }

    pub(super) fn from_fraction(fraction: Fraction) -> Self {
        Self::ratio(
            u128::from(fraction.as_ppb()),
            u128::from(Fraction::ONE.as_ppb()),
        )
    }

    pub(super) const fn from_percent(percent: u8) -> Self {
        Self::ratio(percent as u128, 100)
    }

    /// This and `steps` (in 2^-60) more or less, from 0 to 1.
    pub(super) fn shift(self, steps: i128) -> Self {
        let moved = i128::from(self.0)
            .saturating_add(steps)
            .clamp(0, i128::from(Self::ONE.0));
        Self(u64::try_from(moved).unwrap_or(0))
    }

    /// The probability of both of two independent events; also a share of a probability.
    pub(super) const fn times(self, other: Self) -> Self {
        Self::narrow((self.0 as u128 * other.0 as u128) >> BITS)
    }

    /// `factor` times as likely, at most 1.
    pub(super) const fn multiply(self, factor: u64) -> Self {
        Self::narrow(self.0 as u128 * factor as u128)
    }

    pub(super) const fn divide(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }

    /// That an event does not happen.
    pub(super) const fn complement(self) -> Self {
        Self(Self::ONE.0 - self.0)
    }

    /// That an independent event happens `times` times in a row, by repeated squaring.
    pub(super) const fn power(self, times: u64) -> Self {
        let (mut result, mut base, mut left) = (Self::ONE, self, times);
        while left > 0 {
            if left % 2 == 1 {
                result = result.times(base);
            }
            base = base.times(base);
            left /= 2;
        }
        result
    }

    /// The probability as a number of steps of 2^-60.
    pub(super) const fn steps(self) -> u64 {
        self.0
    }

    const fn narrow(steps: u128) -> Self {
        if steps >= Self::ONE.0 as u128 {
            Self::ONE
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below 2^60, and try_from is not const"
            )]
            Self(steps as u64)
        }
    }
}

/// The exponent of a step: 2^-60.
pub(super) const BITS: u32 = 60;

/// A draw that decides one event.
#[derive(Copy, Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn from_stream(random: &mut RandomStream) -> Self {
        Self(random.u64() >> (u64::BITS - BITS))
    }

    /// Whether an event of this probability happens: never at 0, always at 1.
    pub(super) const fn is_within(self, probability: Probability) -> bool {
        self.0 < probability.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_and_impossible_events_are_just_that() {
        let last = Draw(Probability::ONE.0 - 1);
        assert!(last.is_within(Probability::ONE));
        assert!(!last.is_within(Probability(Probability::ONE.0 - 1)));
        assert!(!Draw(0).is_within(Probability::ZERO));
    }

    #[test]
    fn a_half_has_exact_powers() {
        let half = Probability::from_percent(50);
        assert_eq!(half.times(half), Probability::from_percent(25));
        assert_eq!(half.power(0), Probability::ONE);
        assert_eq!(half.power(60), Probability(1));
        assert_eq!(half.power(61), Probability::ZERO);
        assert_eq!(half.power(u64::MAX), Probability::ZERO);
        assert_eq!(Probability::ONE.power(u64::MAX), Probability::ONE);
    }

    #[test]
    fn nothing_leaves_the_range() {
        let half = Probability::from_percent(50);
        assert_eq!(half.shift(i128::MAX), Probability::ONE);
        assert_eq!(half.shift(i128::MIN), Probability::ZERO);
        assert_eq!(half.multiply(3), Probability::ONE);
        assert_eq!(Probability::ratio(2, 1), Probability::ONE);
        assert_eq!(Probability::ratio(0, 0), Probability::ONE);
        assert_eq!(Probability::from_fraction(Fraction::ONE), Probability::ONE);
        assert_eq!(half.complement(), half);
    }
}
