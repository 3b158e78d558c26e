//! Shares of a whole.

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseError, Quantity, Unit, write_decimal};

/// A probability or a share of a whole, in parts per billion from 0 to 1,000,000,000.
///
/// ```
/// use units::Fraction;
///
/// let loss: Fraction = "30 %".parse()?;
/// assert_eq!(Some(loss), Fraction::from_percent(30));
/// assert_eq!("0.3".parse(), Ok(loss));
/// assert_eq!(loss.as_ppb(), 300_000_000);
/// assert_eq!(loss.to_string(), "30 %");
/// # Ok::<(), units::ParseError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Fraction(u32);

impl Fraction {
    /// Never, or nothing.
    pub const ZERO: Self = Self(0);
    /// Always, or all.
    pub const ONE: Self = Self(1_000_000_000);

    /// `ppb` parts per billion, or `None` above 1,000,000,000.
    #[must_use]
    pub const fn from_ppb(ppb: u32) -> Option<Self> {
        if ppb <= Self::ONE.0 {
            Some(Self(ppb))
        } else {
            None
        }
    }

    /// `percent` hundredths, or `None` above 100.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        if percent <= 100 {
            Some(Self(percent * PPB_PER_PERCENT))
        } else {
            None
        }
    }

    /// Parts per billion.
    #[must_use]
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// The value between 0.0 and 1.0, for reports only; decisions compare integers.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}

const PPB_PER_PERCENT: u32 = 10_000_000;

const PERCENT: Unit = Unit::new("%", PPB_PER_PERCENT as u64);

/// The unit with the empty name is the bare number "0.013".
const FRACTION: Quantity = Quantity {
    units: &[PERCENT, Unit::new("", 1_000_000_000)],
    finest: "0.0000001 %",
    largest: 1_000_000_000,
    largest_text: "100 %",
    allowed: "a fraction is a percentage or a number from 0 to 1, for example \"30 %\" or \"0.3\"",
};

impl FromStr for Fraction {
    type Err = ParseError;

    /// Reads "30 %", "0.03 %" or a bare number from 0 to 1 such as "0.013".
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let ppb = FRACTION.parse(text)?;
        // `largest` in the table keeps the value within 32 bits.
        Ok(Self(u32::try_from(ppb).unwrap_or(Self::ONE.0)))
    }
}

impl fmt::Display for Fraction {
    /// The exact percentage: "30 %", "0.03 %".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&write_decimal(u64::from(self.0), &PERCENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_above_one_exists() {
        assert_eq!(Fraction::from_ppb(1_000_000_000), Some(Fraction::ONE));
        assert_eq!(Fraction::from_ppb(1_000_000_001), None);
        assert_eq!(Fraction::from_percent(100), Some(Fraction::ONE));
        assert_eq!(Fraction::from_percent(101), None);
        assert_eq!(Fraction::default(), Fraction::ZERO);
    }

    #[test]
    fn text_is_exact_to_the_billionth() {
        for (text, ppb) in [
            ("30 %", 300_000_000),
            ("30%", 300_000_000),
            ("0.03 %", 300_000),
            ("0.0000001 %", 1),
            ("0.013", 13_000_000),
            ("0", 0),
            ("1", 1_000_000_000),
            ("1.000", 1_000_000_000),
            ("100 %", 1_000_000_000),
            ("0.000000001", 1),
        ] {
            assert_eq!(
                text.parse::<Fraction>().map(Fraction::as_ppb),
                Ok(ppb),
                "{text}"
            );
        }
    }

    #[test]
    fn a_bad_fraction_gets_one_clear_line() {
        for (text, problem) in [
            ("30", "too large, the largest is 100 %"),
            ("100.1 %", "too large, the largest is 100 %"),
            ("-1 %", "negative"),
            ("0.00000001 %", "finer than 0.0000001 %"),
            ("30 percent", "unknown unit \"percent\""),
            ("NaN", "not a number"),
            ("1e-3", "unknown unit \"e-3\""),
            ("", "empty"),
        ] {
            assert_eq!(
                text.parse::<Fraction>().unwrap_err().to_string(),
                format!(
                    "\"{text}\": {problem}; a fraction is a percentage or a number from 0 to 1, for example \
                     \"30 %\" or \"0.3\""
                )
            );
        }
    }

    #[test]
    fn display_is_exact_and_parses_again() {
        for (ppb, text) in [
            (0, "0 %"),
            (1, "0.0000001 %"),
            (300_000, "0.03 %"),
            (13_000_000, "1.3 %"),
            (1_000_000_000, "100 %"),
        ] {
            let fraction = Fraction::from_ppb(ppb).unwrap();
            assert_eq!(fraction.to_string(), text);
            assert_eq!(text.parse(), Ok(fraction));
        }
    }

    #[test]
    fn a_report_sees_the_usual_number() {
        assert!((Fraction::from_percent(25).unwrap().as_f64() - 0.25).abs() < 1e-12);
    }
}
