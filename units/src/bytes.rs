//! Numbers of bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::math::mul_div;
use crate::parse::{ParseError, Quantity, Unit};

/// A number of bytes. Arithmetic saturates at both ends of the range.
///
/// ```
/// use units::ByteCount;
///
/// let window = ByteCount::new(1200) * 10;
/// assert_eq!(window - ByteCount::kb(1), ByteCount::new(11_000));
/// assert_eq!(window.to_string(), "12 kB");
/// assert_eq!("10 MB".parse(), Ok(ByteCount::mb(10)));
/// assert_eq!("1 MiB".parse(), Ok(ByteCount::new(1_048_576)));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ByteCount(u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest number of bytes, which also stands for "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kilobytes` times 1,000 bytes.
    #[must_use]
    pub const fn kb(kilobytes: u64) -> Self {
        Self(kilobytes.saturating_mul(1_000))
    }

    /// `megabytes` times 1,000,000 bytes.
    #[must_use]
    pub const fn mb(megabytes: u64) -> Self {
        Self(megabytes.saturating_mul(1_000_000))
    }

    /// `kibibytes` times 1,024 bytes.
    #[must_use]
    pub const fn kib(kibibytes: u64) -> Self {
        Self(kibibytes.saturating_mul(1 << 10))
    }

    /// `mebibytes` times 1,048,576 bytes.
    #[must_use]
    pub const fn mib(mebibytes: u64) -> Self {
        Self(mebibytes.saturating_mul(1 << 20))
    }

    /// The number as a bare integer.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number as a length in memory; `usize::MAX` where it does not fit (32-bit targets).
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// This number less `other`, at least zero. The operator `-` does the same; the name says it
    /// aloud.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This number times `num / den`, rounded down; [`ByteCount::MAX`] if that is too large or
    /// `den` is zero.
    ///
    /// ```
    /// use units::ByteCount;
    ///
    /// assert_eq!(ByteCount::kb(100).scale(7, 10), ByteCount::kb(70));
    /// ```
    #[must_use]
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
}

impl Add for ByteCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for ByteCount {
    type Output = Self;

    fn mul(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

pub(crate) const BYTE_COUNT: Quantity = Quantity {
    units: &[
        Unit::new("B", 1),
        Unit::new("kB", 1_000),
        Unit::new("MB", 1_000_000),
        Unit::new("GB", 1_000_000_000),
        Unit::new("KiB", 1 << 10),
        Unit::new("MiB", 1 << 20),
        Unit::new("GiB", 1 << 30),
    ],
    finest: "1 B",
    largest: u64::MAX,
    largest_text: "18446744073709551615 B",
    allowed: "a size is a number and one of B, kB, MB, GB, KiB, MiB, GiB, for example \"10 MB\"",
};

impl FromStr for ByteCount {
    type Err = ParseError;

    /// Reads "1350 B", "10 MB" (decimal), "1.5 MiB" (binary); always a whole number of bytes.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        BYTE_COUNT.parse(text).map(Self)
    }
}

impl fmt::Display for ByteCount {
    /// The exact value in the largest decimal unit that needs no decimals: "1350 B", "10 MB".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &&Unit| self.0 >= unit.scale && self.0.is_multiple_of(unit.scale);
        let unit = BYTE_COUNT.units[..4]
            .iter()
            .rev()
            .find(whole)
            .unwrap_or(&BYTE_COUNT.units[0]);
        f.pad(&format!("{} {}", self.0 / unit.scale, unit.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_prefixes_differ() {
        assert_eq!(ByteCount::kb(1).as_u64(), 1_000);
        assert_eq!(ByteCount::kib(1).as_u64(), 1_024);
        assert_eq!(ByteCount::mb(1).as_u64(), 1_000_000);
        assert_eq!(ByteCount::mib(1).as_u64(), 1_048_576);
        for (text, bytes) in [
            ("1 kB", 1_000),
            ("1 KiB", 1_024),
            ("1 MB", 1_000_000),
            ("1 MiB", 1_048_576),
            ("1 GB", 1_000_000_000),
            ("1 GiB", 1_073_741_824),
            ("1.5MiB", 1_572_864),
            ("0.0000019073486328125 GiB", 2_048), // 19 decimals, the most there may be
            ("0 B", 0),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount::new(bytes)), "{text}");
        }
    }

    #[test]
    fn arithmetic_stops_at_both_ends() {
        assert_eq!(ByteCount::MAX + ByteCount::new(1), ByteCount::MAX);
        assert_eq!(ByteCount::ZERO - ByteCount::new(1), ByteCount::ZERO);
        assert_eq!(ByteCount::mb(u64::MAX), ByteCount::MAX);
        assert_eq!(ByteCount::MAX * 2, ByteCount::MAX);
        assert_eq!(ByteCount::MAX.scale(2, 1), ByteCount::MAX);
    }

    #[test]
    fn sums_add_up() {
        let mut sum: ByteCount = [1, 2, 3].into_iter().map(ByteCount::new).sum();
        sum += ByteCount::new(4);
        sum -= ByteCount::new(1);
        assert_eq!(sum, ByteCount::new(9));
    }

    #[test]
    fn display_is_exact_at_any_value() {
        for (bytes, text) in [
            (0, "0 B"),
            (1, "1 B"),
            (1_350, "1350 B"),
            (1_000, "1 kB"),
            (250_000, "250 kB"),
            (10_000_000, "10 MB"),
            (1_000_000_000, "1 GB"),
            (u64::MAX, "18446744073709551615 B"),
        ] {
            assert_eq!(ByteCount::new(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(ByteCount::new(bytes)));
        }
    }

    #[test]
    fn a_length_in_memory_is_the_same_number() {
        assert_eq!(ByteCount::kib(64).as_usize(), 65_536);
        assert_eq!(ByteCount::MAX.as_usize(), usize::MAX);
    }

    #[test]
    fn a_bad_size_gets_one_clear_line() {
        for (text, problem) in [
            ("10 mb", "unknown unit \"mb\""),
            ("10 kb", "unknown unit \"kb\""),
            ("1.5 B", "finer than 1 B"),
            ("0.1 KiB", "finer than 1 B"),
            ("10", "the unit is missing"),
            ("-1 B", "negative"),
        ] {
            let message = text.parse::<ByteCount>().unwrap_err().to_string();
            assert_eq!(
                message,
                format!(
                    "\"{text}\": {problem}; a size is a number and one of B, kB, MB, GB, KiB, MiB, GiB, for \
                     example \"10 MB\""
                )
            );
        }
    }
}
