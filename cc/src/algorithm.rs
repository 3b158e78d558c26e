//! The table of controllers: names, settings, construction.
//!
//! A new controller is a file of its own, one variant here with its name, and a conformance test.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use units::{ByteCount, ParseError, Rate};

use crate::controller::Controller;
use crate::cubic::Cubic;
use crate::fixed::{Fixed, FixedConfig};
use crate::new_reno::NewReno;

/// A controller by name, with its settings.
///
/// ```
/// use cc::Algorithm;
/// use units::ByteCount;
///
/// let algorithm: Algorithm = "cubic".parse()?;
/// let controller = algorithm.build(ByteCount::new(1_200));
/// assert_eq!(controller.window(), ByteCount::new(12_000));
/// # Ok::<(), cc::AlgorithmError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// NewReno, RFC 9002 section 7.
    NewReno,
    /// CUBIC, RFC 9438.
    Cubic,
    /// A fixed rate, for tests and measurements.
    Fixed(FixedConfig),
}

impl Algorithm {
    /// What [`FromStr`] takes; words in capitals stand for a value.
    pub const NAMES: &'static [&'static str] = &["newreno", "cubic", "fixed:RATE"];

    /// Makes a controller for a path with this largest datagram.
    #[must_use]
    pub fn build(&self, max_datagram_size: ByteCount) -> Box<dyn Controller> {
        match *self {
            Self::NewReno => Box::new(NewReno::new(max_datagram_size)),
            Self::Cubic => Box::new(Cubic::new(max_datagram_size)),
            Self::Fixed(config) => Box::new(Fixed::new(config, max_datagram_size)),
        }
    }

    /// Reads names separated by commas, such as `newreno,cubic`.
    ///
    /// # Errors
    ///
    /// As [`FromStr`]; an empty entry, hence an empty list, is an unknown name.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, AlgorithmError> {
        text.split(',').map(str::parse).collect()
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;

    /// Reads `newreno`, `cubic`, `fixed:10Mbit/s` or, with a window, `fixed:10Mbit/s:64KiB`.
    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        let text = text.trim();
        match text {
            "newreno" => return Ok(Self::NewReno),
            "cubic" => return Ok(Self::Cubic),
            _ => {}
        }
        let Some(settings) = text.strip_prefix("fixed:") else {
            return Err(AlgorithmError::Unknown(text.to_owned()));
        };
        let (rate, window) = match settings.split_once(':') {
            Some((rate, window)) => (rate, Some(window)),
            None => (settings, None),
        };
        let mut config = FixedConfig::new(rate.parse()?);
        if config.rate == Rate::ZERO {
            return Err(AlgorithmError::NoRate(text.to_owned()));
        }
        if let Some(window) = window {
            config.window = window.parse()?;
        }
        Ok(Self::Fixed(config))
    }
}

impl fmt::Display for Algorithm {
    /// Writes what [`FromStr`] reads, without spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let without_spaces = |text: String| text.replace(' ', "");
        match self {
            Self::NewReno => f.write_str("newreno"),
            Self::Cubic => f.write_str("cubic"),
            Self::Fixed(config) => {
                write!(f, "fixed:{}", without_spaces(config.rate.to_string()))?;
                if config.window != FixedConfig::LARGE_WINDOW {
                    write!(f, ":{}", without_spaces(config.window.to_string()))?;
                }
                Ok(())
            }
        }
    }
}

/// Why a text names no controller. Displays as one line that says what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AlgorithmError {
    /// There is no controller of this name.
    Unknown(String),
    /// A fixed rate of zero would never send anything.
    NoRate(String),
    /// The rate or the window of a fixed-rate controller cannot be read.
    Setting(ParseError),
}

impl fmt::Display for AlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(
                f,
                "{name:?}: unknown controller; allowed are {}, for example \"fixed:10Mbit/s\"",
                Algorithm::NAMES.join(", ")
            ),
            Self::NoRate(text) => write!(
                f,
                "{text:?}: a fixed rate must be above zero, for example \"fixed:10Mbit/s\""
            ),
            Self::Setting(error) => write!(f, "fixed-rate controller: {error}"),
        }
    }
}

impl Error for AlgorithmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Setting(error) => Some(error),
            Self::Unknown(_) | Self::NoRate(_) => None,
        }
    }
}

impl From<ParseError> for AlgorithmError {
    fn from(error: ParseError) -> Self {
        Self::Setting(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_and_writes_itself() {
        for name in ["newreno", "cubic", "fixed:10Mbit/s", "fixed:64kbit/s:64KiB"] {
            let algorithm: Algorithm = name.parse().expect(name);
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm), "{name}");
            let controller = algorithm.build(ByteCount::new(1_200));
            assert!(name.starts_with(controller.name()), "{name}");
        }
        for name in Algorithm::NAMES {
            let example = name.replace("RATE", "1 Mbit/s");
            assert!(example.parse::<Algorithm>().is_ok(), "{example}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_allowed_ones() {
        let error = "vegas".parse::<Algorithm>().expect_err("not in the table");
        assert_eq!(
            error.to_string(),
            "\"vegas\": unknown controller; allowed are newreno, cubic, fixed:RATE, for example \"fixed:10Mbit/s\""
        );
    }

    #[test]
    fn a_fixed_rate_needs_a_rate_above_zero() {
        for text in [
            "fixed",
            "fixed:",
            "fixed:fast",
            "fixed:0bit/s",
            "fixed:1Mbit/s:much",
        ] {
            let error = text.parse::<Algorithm>().expect_err(text);
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn lists_are_read_in_order_and_empty_entries_refused() {
        let list = Algorithm::parse_list("newreno, cubic").expect("both exist");
        assert_eq!(list, [Algorithm::NewReno, Algorithm::Cubic]);
        assert!(Algorithm::parse_list("").is_err());
        assert!(Algorithm::parse_list("newreno,,cubic").is_err());
    }
}
