//! The table of controllers: names, settings, construction.
//!
//! A new controller is a file of its own, one variant here with its name, and a conformance test.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use units::{ByteCount, ParseError, Rate};

use crate::bbr3::Bbr3;
#[cfg(feature = "mutants")]
use crate::bbr3::Bbr3Fault;
use crate::controller::Controller;
use crate::cubic::Cubic;
#[cfg(feature = "mutants")]
use crate::faults::Fault;
use crate::fixed::{Fixed, FixedConfig};
use crate::new_reno::NewReno;
use crate::options::{CUBIC_OPTIONS, LossBasedOptions, NEW_RENO_OPTIONS, OptionError};
#[cfg(feature = "mutants")]
use crate::zoo::{Defect, Defective, Victim};

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
///
/// Options of a loss-based controller follow its name, each with a `+` or `-`; see [`options`](crate::options):
///
/// ```
/// use cc::Algorithm;
///
/// let algorithm: Algorithm = "cubic+prr-hystart".parse()?;
/// assert_eq!(algorithm.to_string(), "cubic-hystart+prr");
/// # Ok::<(), cc::AlgorithmError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Algorithm {
    /// NewReno, RFC 9002 section 7.
    NewReno(LossBasedOptions),
    /// CUBIC, RFC 9438.
    Cubic(LossBasedOptions),
    /// BBRv3, draft-ietf-ccwg-bbr-06.
    Bbr3,
    /// CUBIC with one thing wrong, for tests.
    #[cfg(feature = "mutants")]
    Faulty(Fault, LossBasedOptions),
    /// BBRv3 with one thing wrong, for tests.
    #[cfg(feature = "mutants")]
    FaultyBbr3(Bbr3Fault),
    /// A controller that is told or tells something wrong, for tests: see [`crate::zoo`].
    #[cfg(feature = "mutants")]
    Defective(Defect, Victim),
    /// A fixed rate, for tests and measurements.
    Fixed(FixedConfig),
}

impl Algorithm {
    /// NewReno with the default options.
    pub const NEW_RENO: Self = Self::NewReno(LossBasedOptions::DEFAULT);

    /// CUBIC with the default options.
    pub const CUBIC: Self = Self::Cubic(LossBasedOptions::DEFAULT);

    /// What [`FromStr`] takes, without options; words in capitals stand for a value.
    pub const NAMES: &'static [&'static str] = &["newreno", "cubic", "bbr3", "fixed:RATE"];

    /// The controllers that are wrong on purpose. They can be told by name in every build, and are there only in those with
    /// the feature `mutants`.
    pub const FAULTY_NAMES: &'static [&'static str] = &[
        "cubic-trap",
        "cubic-trap-clamp",
        "cubic-m2",
        "cubic-m3",
        "cubic-noshift",
        "cubic-m1fix",
        "bbr3-sticky-loss",
        "bbr3-headroom",
        "bbr3-reno-bytes",
        "bbr3-loss-packets",
        "bbr3-startup-bounds",
        "bbr3-probe-remainder",
        "bbr3-filter-every-round",
        "bbr3-unset-stamp",
        "bbr3-stale-pacing",
        "bbr3-resave",
        "bbr3-window-jump",
        "bbr3-foreign-loss",
        "bbr3-app-limited-plateau",
        "bbr3-no-plateau",
        "bbr3-idle-min-rtt",
        "bbr3-round-32-bit",
        "bbr3-no-margin",
        "bbr3-recovery-cut",
        "bbr3-late-cwnd-test",
        "bbr3-mtu-stale",
    ];

    /// Makes a controller for a path with this largest datagram; what it leaves to chance follows from the seed 0.
    #[must_use]
    pub fn build(&self, max_datagram_size: ByteCount) -> Box<dyn Controller> {
        self.build_with_seed(max_datagram_size, 0)
    }

    /// Makes a controller for a path with this largest datagram; what it leaves to chance follows from `seed`. Only BBR
    /// leaves anything to it: how long it waits between two probes.
    #[must_use]
    pub fn build_with_seed(&self, max_datagram_size: ByteCount, seed: u64) -> Box<dyn Controller> {
        match *self {
            Self::NewReno(options) => Box::new(NewReno::with_options(max_datagram_size, options)),
            Self::Cubic(options) => Box::new(Cubic::with_options(max_datagram_size, options)),
            #[cfg(feature = "mutants")]
            Self::Faulty(fault, options) => {
                Box::new(Cubic::with_fault(max_datagram_size, options, fault))
            }
            Self::Bbr3 => Box::new(Bbr3::new(max_datagram_size, seed)),
            #[cfg(feature = "mutants")]
            Self::FaultyBbr3(fault) => Box::new(Bbr3::with_fault(max_datagram_size, seed, fault)),
            #[cfg(feature = "mutants")]
            Self::Defective(defect, victim) => {
                Box::new(Defective::new(max_datagram_size, defect, victim))
            }
            Self::Fixed(config) => Box::new(Fixed::new(config, max_datagram_size)),
        }
    }

    /// Whether this is one of the controllers that are wrong on purpose.
    #[must_use]
    pub const fn is_faulty(&self) -> bool {
        #[cfg(feature = "mutants")]
        return matches!(
            self,
            Self::Faulty(..) | Self::FaultyBbr3(_) | Self::Defective(..)
        );
        #[cfg(not(feature = "mutants"))]
        return false;
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

    /// Reads `newreno`, `cubic`, either with options such as `cubic+prr-hystart`, `bbr3`, `fixed:10Mbit/s` or, with a
    /// window, `fixed:10Mbit/s:64KiB`.
    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        let text = text.trim();
        #[cfg(not(feature = "mutants"))]
        if Self::FAULTY_NAMES.contains(&text) {
            return Err(AlgorithmError::NotBuilt(text.to_owned()));
        }
        if text == "bbr3" {
            return Ok(Self::Bbr3);
        }
        #[cfg(feature = "mutants")]
        if let Some(fault) = Bbr3Fault::ALL
            .into_iter()
            .find(|fault| fault.name() == text)
        {
            return Ok(Self::FaultyBbr3(fault));
        }
        #[cfg(feature = "mutants")]
        if let Some(algorithm) = defective(text) {
            return Ok(algorithm);
        }
        if text.starts_with("bbr3+") || text.starts_with("bbr3-") {
            return Err(AlgorithmError::NoOptions(text.to_owned()));
        }
        if let Some((base, options)) = split_options(text) {
            return base.with_options(text, options);
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

/// Reads the name of a controller with a defect, such as `cubic!first-ack`.
#[cfg(feature = "mutants")]
fn defective(text: &str) -> Option<Algorithm> {
    let (victim, defect) = text.split_once('!')?;
    let victim = Victim::ALL.into_iter().find(|row| row.name() == victim)?;
    let defect = Defect::ALL.into_iter().find(|row| row.name() == defect)?;
    Some(Algorithm::Defective(defect, victim))
}

/// Splits a loss-based controller's text into its row of the table and the options; `None` if it is no such text.
///
/// Some names begin with others (`cubic-trap-clamp`, `cubic-trap`, `cubic`), so the longest that fits is meant.
fn split_options(text: &str) -> Option<(Base, &str)> {
    Base::all()
        .filter_map(|base| Some((base, text.strip_prefix(base.name)?)))
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with(['+', '-']))
        .max_by_key(|(base, _)| base.name.len())
}

/// A controller that takes options.
#[derive(Copy, Clone)]
struct Base {
    name: &'static str,
    allowed: &'static [&'static str],
    kind: Kind,
}

#[derive(Copy, Clone)]
enum Kind {
    NewReno,
    Cubic,
    #[cfg(feature = "mutants")]
    Faulty(Fault),
}

impl Base {
    fn all() -> impl Iterator<Item = Self> {
        let bases = [
            Self {
                name: "newreno",
                allowed: NEW_RENO_OPTIONS,
                kind: Kind::NewReno,
            },
            Self {
                name: "cubic",
                allowed: CUBIC_OPTIONS,
                kind: Kind::Cubic,
            },
        ]
        .into_iter();
        #[cfg(feature = "mutants")]
        let bases = bases.chain(Fault::ALL.map(|fault| Self {
            name: fault.name(),
            allowed: CUBIC_OPTIONS,
            kind: Kind::Faulty(fault),
        }));
        bases
    }

    fn with_options(self, text: &str, options: &str) -> Result<Algorithm, AlgorithmError> {
        let options = LossBasedOptions::parse(options, self.allowed).map_err(|error| {
            let text = text.to_owned();
            let allowed = self.allowed;
            match error {
                OptionError::Unknown(option) => AlgorithmError::UnknownOption {
                    text,
                    option,
                    allowed,
                },
                OptionError::Repeated(option) => AlgorithmError::RepeatedOption { text, option },
            }
        })?;
        Ok(match self.kind {
            Kind::NewReno => Algorithm::NewReno(options),
            Kind::Cubic => Algorithm::Cubic(options),
            #[cfg(feature = "mutants")]
            Kind::Faulty(fault) => Algorithm::Faulty(fault, options),
        })
    }
}

impl fmt::Display for Algorithm {
    /// Writes what [`FromStr`] reads, without spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let without_spaces = |text: String| text.replace(' ', "");
        match self {
            Self::NewReno(options) => write!(f, "newreno{options}"),
            Self::Cubic(options) => write!(f, "cubic{options}"),
            #[cfg(feature = "mutants")]
            Self::Faulty(fault, options) => write!(f, "{}{options}", fault.name()),
            Self::Bbr3 => f.write_str("bbr3"),
            #[cfg(feature = "mutants")]
            Self::FaultyBbr3(fault) => f.write_str(fault.name()),
            #[cfg(feature = "mutants")]
            Self::Defective(defect, victim) => write!(f, "{}!{}", victim.name(), defect.name()),
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
    /// The controller is wrong on purpose and not in this build.
    NotBuilt(String),
    /// The controller has no option of this name.
    UnknownOption {
        /// The whole text.
        text: String,
        /// The option.
        option: String,
        /// The options there are.
        allowed: &'static [&'static str],
    },
    /// An option is named more than once.
    RepeatedOption {
        /// The whole text.
        text: String,
        /// The option.
        option: String,
    },
    /// The controller has no options.
    NoOptions(String),
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
            Self::NotBuilt(name) => write!(
                f,
                "{name:?} is wrong on purpose and only in builds with the feature mutants, for example \"cargo run \
                 --release --features mutants -- run ...\""
            ),
            Self::UnknownOption {
                text,
                option,
                allowed,
            } => write!(
                f,
                "{text:?}: unknown option {option:?}; allowed are {}, each once and with + or - before it, for \
                 example \"cubic+prr-hystart\"",
                allowed.join(", ")
            ),
            Self::RepeatedOption { text, option } => {
                write!(f, "{text:?}: option {option:?} is given more than once")
            }
            Self::NoOptions(text) => write!(f, "{text:?}: bbr3 takes no options"),
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
            Self::Unknown(_)
            | Self::NotBuilt(_)
            | Self::UnknownOption { .. }
            | Self::RepeatedOption { .. }
            | Self::NoOptions(_)
            | Self::NoRate(_) => None,
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
        for name in [
            "newreno",
            "cubic",
            "cubic+prr",
            "newreno-hystart+abe",
            "bbr3",
            "fixed:10Mbit/s",
            "fixed:64kbit/s:64KiB",
        ] {
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
    fn a_controller_without_options_says_so() {
        for text in ["bbr3+prr", "bbr3-pacing"] {
            let refused = text.parse::<Algorithm>().expect_err("no options");
            assert_eq!(
                refused.to_string(),
                format!("{text:?}: bbr3 takes no options")
            );
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_allowed_ones() {
        let error = "vegas".parse::<Algorithm>().expect_err("not in the table");
        assert_eq!(
            error.to_string(),
            format!(
                "\"vegas\": unknown controller; allowed are {}, for example \"fixed:10Mbit/s\"",
                Algorithm::NAMES.join(", ")
            )
        );
        for name in ["cubical", "cubic:prr", "+prr", "CUBIC"] {
            assert_eq!(
                name.parse::<Algorithm>(),
                Err(AlgorithmError::Unknown(name.to_owned()))
            );
        }
    }

    #[test]
    fn options_are_read_and_refused_by_name() {
        let options = LossBasedOptions {
            prr: true,
            hystart: false,
            ..LossBasedOptions::DEFAULT
        };
        assert_eq!("cubic+prr-hystart".parse(), Ok(Algorithm::Cubic(options)));
        assert_eq!("cubic-prr+hystart".parse(), Ok(Algorithm::CUBIC));
        let error = |text: &str| text.parse::<Algorithm>().expect_err(text).to_string();
        assert_eq!(
            error("newreno+fastconv"),
            "\"newreno+fastconv\": unknown option \"fastconv\"; allowed are hystart, abe, prr, undo, pacing, each once and \
             with + or - before it, for example \"cubic+prr-hystart\""
        );
        assert_eq!(
            error("cubic+prr+prr"),
            "\"cubic+prr+prr\": option \"prr\" is given more than once"
        );
    }

    #[test]
    #[cfg(not(feature = "mutants"))]
    fn a_build_without_mutants_has_none_by_name() {
        for name in Algorithm::FAULTY_NAMES {
            let error = name.parse::<Algorithm>().expect_err("not built");
            assert_eq!(error, AlgorithmError::NotBuilt((*name).to_owned()));
            assert!(error.to_string().contains("the feature mutants"), "{error}");
        }
    }

    #[test]
    #[cfg(feature = "mutants")]
    fn a_mutant_is_chosen_by_its_name_and_one_of_cubic_takes_its_options() {
        let cubic = Fault::ALL.map(Fault::name).into_iter();
        let bbr = Bbr3Fault::ALL.map(Bbr3Fault::name);
        let all: Vec<&str> = cubic.chain(bbr).collect();
        assert_eq!(Algorithm::FAULTY_NAMES, all);
        for fault in Bbr3Fault::ALL {
            let algorithm = Algorithm::FaultyBbr3(fault);
            assert_eq!(fault.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.to_string(), fault.name());
            assert!(algorithm.is_faulty());
            let controller = algorithm.build(ByteCount::new(1_200));
            assert_eq!(controller.name(), fault.name());
        }
        for fault in Fault::ALL {
            let algorithm = Algorithm::Faulty(fault, LossBasedOptions::DEFAULT);
            assert_eq!(fault.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.to_string(), fault.name());
            let controller = algorithm.build(ByteCount::new(1_200));
            assert_eq!(controller.name(), fault.name());
        }
        assert_eq!(
            "cubic-trap-hystart".parse(),
            Ok(Algorithm::Faulty(
                Fault::M1,
                LossBasedOptions::WITHOUT_HYSTART
            ))
        );
    }

    #[test]
    #[cfg(feature = "mutants")]
    fn a_defect_follows_the_name_of_its_victim() {
        for (defect, victim) in Defect::ALL.into_iter().zip(Victim::ALL.into_iter().cycle()) {
            let algorithm = Algorithm::Defective(defect, victim);
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
            assert!(algorithm.is_faulty());
            let controller = algorithm.build(ByteCount::new(1_200));
            assert_eq!(controller.name(), victim.name());
        }
        assert!("cubic!unknown".parse::<Algorithm>().is_err());
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
        assert_eq!(list, [Algorithm::NEW_RENO, Algorithm::CUBIC]);
        assert!(Algorithm::parse_list("").is_err());
        assert!(Algorithm::parse_list("newreno,,cubic").is_err());
    }
}
