//! One parser for every quantity written as text: a decimal number, an optional space, a unit.
//!
//! ```text
//!   "2.5 ms"  -->  2 | 5 | "ms"  -->  2 * 1,000,000 + 5 * 1,000,000 / 10  -->  2,500,000 ns
//! ```
//!
//! Everything is done in integers. A number that the smallest step of its quantity cannot express
//! exactly is refused rather than rounded, so no file says one thing and runs another.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::math::NANOS_PER_SECOND;

/// Why a text is not the quantity it should be.
///
/// Its `Display` is one line: the text, what is wrong with it, the allowed forms, an example.
///
/// ```
/// let error = units::parse_duration("25 sec").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"25 sec\": unknown unit \"sec\"; a duration is a number and one of ns, us, ms, s, min, h, \
///      for example \"25 ms\"",
/// );
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    text: String,
    problem: Problem,
    allowed: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `Debug` of a string escapes line breaks, which keeps the message on one line.
        write!(f, "{:?}: {}; {}", self.text, self.problem, self.allowed)
    }
}

impl Error for ParseError {}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Problem {
    Empty,
    NotANumber,
    Negative,
    MissingUnit,
    UnknownUnit(String),
    TooFine { finest: &'static str },
    TooLarge { largest: &'static str },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::NotANumber => f.write_str("not a number"),
            Self::Negative => f.write_str("negative"),
            Self::MissingUnit => f.write_str("the unit is missing"),
            Self::UnknownUnit(unit) => write!(f, "unknown unit {unit:?}"),
            Self::TooFine { finest } => write!(f, "finer than {finest}"),
            Self::TooLarge { largest } => write!(f, "too large, the largest is {largest}"),
        }
    }
}

/// Reads a span of time: "25 ms", "2.5 s", "50us", "1 min".
///
/// # Errors
///
/// [`ParseError`] for anything else, for a negative number, for more than 584 years (2^64 ns) and
/// for fractions of a nanosecond.
///
/// ```
/// use std::time::Duration;
/// use units::parse_duration;
///
/// assert_eq!(parse_duration("2.5 ms"), Ok(Duration::from_micros(2_500)));
/// assert_eq!(parse_duration("1 min"), Ok(Duration::from_secs(60)));
/// assert!(parse_duration("25").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// Writes a span exactly, in the largest of ns, us, ms, s that keeps a digit before the point.
///
/// ```
/// use std::time::Duration;
/// use units::format_duration;
///
/// assert_eq!(format_duration(Duration::from_millis(25)), "25 ms");
/// assert_eq!(format_duration(Duration::from_micros(2_500)), "2.5 ms");
/// assert_eq!(format_duration(Duration::from_secs(90)), "90 s");
/// ```
#[must_use]
pub fn format_duration(span: Duration) -> String {
    if span.is_zero() {
        return "0 s".to_owned();
    }
    let fraction = u64::from(span.subsec_nanos());
    if span.as_secs() > 0 {
        // Not through one number of nanoseconds: the longest durations have more than 64 bits of
        // them.
        return format!("{} s", decimal(span.as_secs(), fraction, NANOS_PER_SECOND));
    }
    let below_a_second = &DURATION.units[..3];
    let unit = below_a_second
        .iter()
        .rev()
        .find(|unit| fraction >= unit.scale);
    write_decimal(fraction, unit.unwrap_or(&below_a_second[0]))
}

const DURATION: Quantity = Quantity {
    units: &[
        Unit::new("ns", 1),
        Unit::new("us", 1_000),
        Unit::new("ms", 1_000_000),
        Unit::new("s", NANOS_PER_SECOND),
        Unit::new("min", 60 * NANOS_PER_SECOND),
        Unit::new("h", 3_600 * NANOS_PER_SECOND),
    ],
    finest: "1 ns",
    largest: u64::MAX,
    largest_text: "18446744073.709551615 s",
    allowed: "a duration is a number and one of ns, us, ms, s, min, h, for example \"25 ms\"",
};

/// One unit of a quantity.
pub(crate) struct Unit {
    /// As it is written. The empty name stands for a bare number.
    pub(crate) name: &'static str,
    /// How many of the smallest step one of it is.
    pub(crate) scale: u64,
}

impl Unit {
    pub(crate) const fn new(name: &'static str, scale: u64) -> Self {
        Self { name, scale }
    }
}

/// How a quantity is written, and its range.
pub(crate) struct Quantity {
    /// Units, smallest decimal ones first.
    pub(crate) units: &'static [Unit],
    /// The smallest step, for messages.
    pub(crate) finest: &'static str,
    /// The largest value, in smallest steps.
    pub(crate) largest: u64,
    /// The largest value, for messages.
    pub(crate) largest_text: &'static str,
    /// The last part of every message: what may be written, with an example.
    pub(crate) allowed: &'static str,
}

impl Quantity {
    /// The value of `text` in smallest steps, exact.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, ParseError> {
        let text = text.trim();
        self.value(text).map_err(|problem| ParseError {
            text: text.to_owned(),
            problem,
            allowed: self.allowed,
        })
    }

    fn value(&self, text: &str) -> Result<u64, Problem> {
        if text.is_empty() {
            return Err(Problem::Empty);
        }
        let is_negative = text.starts_with('-');
        let text = text.strip_prefix('-').unwrap_or(text);
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = split_number(number).ok_or(Problem::NotANumber)?;
        if is_negative {
            return Err(Problem::Negative);
        }
        let unit = self.unit(unit.trim_start())?;
        self.scaled(whole, fraction, unit.scale)
    }

    fn unit(&self, name: &str) -> Result<&'static Unit, Problem> {
        self.units
            .iter()
            .find(|unit| unit.name == name)
            .ok_or_else(|| {
                if name.is_empty() {
                    Problem::MissingUnit
                } else {
                    Problem::UnknownUnit(name.to_owned())
                }
            })
    }

    /// `whole.fraction * scale`, or why it cannot be.
    fn scaled(&self, whole: &str, fraction: &str, scale: u64) -> Result<u64, Problem> {
        let too_fine = Problem::TooFine {
            finest: self.finest,
        };
        let too_large = Problem::TooLarge {
            largest: self.largest_text,
        };
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        // 2^64 has 20 digits; 19 decimals are more than any unit here can use. Both bounds keep the
        // products below 10^20 * 3.6e12 = 3.6e32, well inside 128 bits (3.4e38).
        if whole.len() > 20 {
            return Err(too_large);
        }
        if fraction.len() > 19 {
            return Err(too_fine);
        }
        let scale = u128::from(scale);
        let fraction_steps = digits(fraction) * scale;
        let divisor = fraction.bytes().fold(1_u128, |power, _| power * 10);
        if !fraction_steps.is_multiple_of(divisor) {
            return Err(too_fine);
        }
        u64::try_from(digits(whole) * scale + fraction_steps / divisor)
            .ok()
            .filter(|&value| value <= self.largest)
            .ok_or(too_large)
    }
}

/// Splits "12.5" into "12" and "5". At least one digit must stand on each side of a point.
fn split_number(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    (!whole.is_empty() && !fraction.contains('.')).then_some((whole, fraction))
}

/// The value of at most 20 ASCII digits; none at all is zero.
fn digits(text: &str) -> u128 {
    text.bytes()
        .fold(0, |value, digit| value * 10 + u128::from(digit - b'0'))
}

/// `steps` in `unit`, whose scale is a power of ten, with the decimals it needs: "2.5 Mbit/s".
pub(crate) fn write_decimal(steps: u64, unit: &Unit) -> String {
    format!(
        "{} {}",
        decimal(steps / unit.scale, steps % unit.scale, unit.scale),
        unit.name
    )
}

/// "whole.fraction" where `fraction` counts parts of the power of ten `scale`; no trailing zeros.
fn decimal(whole: u64, fraction: u64, scale: u64) -> String {
    if fraction == 0 {
        return whole.to_string();
    }
    let places = usize::try_from(scale.ilog10()).unwrap_or(0);
    let text = format!("{whole}.{fraction:0places$}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, nanos) in [
            ("25 ms", 25_000_000),
            ("2.5 ms", 2_500_000),
            ("0.1 s", 100_000_000),
            ("0.000000001 s", 1),
            ("50us", 50_000),
            ("1.000 us", 1_000),
            ("007 ns", 7),
            ("1 min", 60_000_000_000),
            ("1.5 h", 5_400_000_000_000),
            ("0 s", 0),
            ("18446744073.709551615 s", u64::MAX),
            ("18446744073709551615 ns", u64::MAX),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, problem) in [
            ("", "empty"),
            ("   ", "empty"),
            ("ms", "not a number"),
            ("NaN", "not a number"),
            ("-inf", "not a number"),
            ("inf s", "not a number"),
            (".5 s", "not a number"),
            ("5. s", "not a number"),
            ("1.2.3 s", "not a number"),
            ("+1 s", "not a number"),
            ("-1 s", "negative"),
            ("-0 s", "negative"),
            ("25", "the unit is missing"),
            ("25 m", "unknown unit \"m\""),
            ("1e3 s", "unknown unit \"e3 s\""),
            ("1_000 s", "unknown unit \"_000 s\""),
            ("1,5 s", "unknown unit \",5 s\""),
            ("0.5 ns", "finer than 1 ns"),
            ("0.00000000000000000001 h", "finer than 1 ns"),
            (
                "18446744073.709551616 s",
                "too large, the largest is 18446744073.709551615 s",
            ),
            (
                "99999999999999999999999999999999999999999 s",
                "too large, the largest is 18446744073.709551615 s",
            ),
        ] {
            let message = parse_duration(text).unwrap_err().to_string();
            let start = format!("{:?}: {problem}; ", text.trim());
            assert_eq!(message, format!("{start}{}", DURATION.allowed));
        }
    }

    #[test]
    fn a_message_is_one_line_whatever_the_text() {
        let message = parse_duration("1\nms\t\u{7}é").unwrap_err().to_string();
        assert!(
            message.starts_with("\"1\\nms\\t\\u{7}é\": unknown unit"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn every_unit_is_listed_in_the_message() {
        for unit in DURATION.units {
            assert!(DURATION.allowed.contains(unit.name), "{}", unit.name);
        }
    }

    #[test]
    fn formatting_is_exact_and_parses_again() {
        for (nanos, text) in [
            (0, "0 s"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (1_050, "1.05 us"),
            (2_500_000, "2.5 ms"),
            (25_000_000, "25 ms"),
            (999_999_999, "999.999999 ms"),
            (1_000_000_001, "1.000000001 s"),
            (60_000_000_000, "60 s"),
            (u64::MAX, "18446744073.709551615 s"),
        ] {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
        }
        assert_eq!(
            format_duration(Duration::MAX),
            "18446744073709551615.999999999 s"
        );
    }
}
