//! What can be switched on and off in a loss-based controller, and how that is written.
//!
//! Options follow the name of the controller: `+` switches one on, `-` off, in any order and each at most once.
//! `cubic+prr-hystart` is CUBIC with proportional rate reduction and without HyStart++. What is not mentioned keeps its
//! default, and what has its default is not written.

use std::fmt;

/// The options of a loss-based controller.
///
/// ```
/// use cc::{Algorithm, LossBasedOptions};
///
/// let options = LossBasedOptions { prr: true, ..LossBasedOptions::DEFAULT };
/// assert_eq!("cubic+prr".parse(), Ok(Algorithm::Cubic(options)));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LossBasedOptions {
    /// `hystart`: leave the initial slow start when the RTT rises (RFC 9406). On by default.
    pub hystart: bool,
    /// `abe`: in congestion avoidance, give way less to a congestion mark than to a loss (RFC 8511, experimental).
    /// Off by default.
    pub abe: bool,
    /// `prr`: during recovery, send in proportion to what is delivered (RFC 9937), instead of falling silent until
    /// the bytes in flight are below the reduced window. Off by default.
    pub prr: bool,
    /// `fastconv`: a flow that is cut before it is back at its last plateau aims lower (RFC 9438 section 4.7). CUBIC
    /// only. On by default; a lone flow may do without.
    pub fast_convergence: bool,
    /// `undo`: take a cut back when all the losses behind it turn out to be late packets (RFC 9438 section 4.9). On
    /// by default.
    pub undo: bool,
    /// `pacing`: spread packets over the round trip (RFC 9002 section 7.7). Off, all that the window allows leaves at
    /// once. On by default; off is for reproducing what senders without a pacer suffer.
    pub pacing: bool,
}

impl LossBasedOptions {
    /// HyStart++, fast convergence, undo and pacing; no ABE, no PRR.
    pub const DEFAULT: Self = Self {
        hystart: true,
        abe: false,
        prr: false,
        fast_convergence: true,
        undo: true,
        pacing: true,
    };

    /// The defaults without HyStart++: slow start ends with a loss or a mark.
    pub const WITHOUT_HYSTART: Self = Self {
        hystart: false,
        ..Self::DEFAULT
    };

    /// Reads `+prr-hystart`, given the names that may be used.
    pub(crate) fn parse(text: &str, allowed: &[&str]) -> Result<Self, OptionError> {
        let mut options = Self::DEFAULT;
        let mut seen: Vec<&str> = Vec::new();
        let mut rest = text;
        while let Some(sign) = rest.chars().next() {
            let word = &rest[sign.len_utf8()..];
            let name = &word[..word.find(['+', '-']).unwrap_or(word.len())];
            rest = &word[name.len()..];
            let switch = SWITCHES.iter().find(|switch| switch.name == name);
            let (Some(switch), true) = (switch, allowed.contains(&name)) else {
                return Err(OptionError::Unknown(name.to_owned()));
            };
            if seen.contains(&name) {
                return Err(OptionError::Repeated(name.to_owned()));
            }
            seen.push(name);
            *(switch.place)(&mut options) = sign == '+';
        }
        Ok(options)
    }
}

impl Default for LossBasedOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for LossBasedOptions {
    /// Writes what differs from the defaults, as [`Algorithm`](crate::Algorithm) reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut options, mut defaults) = (*self, Self::DEFAULT);
        for switch in &SWITCHES {
            let is_on = *(switch.place)(&mut options);
            if is_on != *(switch.place)(&mut defaults) {
                write!(f, "{}{}", if is_on { '+' } else { '-' }, switch.name)?;
            }
        }
        Ok(())
    }
}

/// One option: its name and its place. The only list of them.
struct Switch {
    name: &'static str,
    place: fn(&mut LossBasedOptions) -> &mut bool,
}

const SWITCHES: [Switch; 6] = [
    Switch {
        name: "hystart",
        place: |options| &mut options.hystart,
    },
    Switch {
        name: "abe",
        place: |options| &mut options.abe,
    },
    Switch {
        name: "prr",
        place: |options| &mut options.prr,
    },
    Switch {
        name: "undo",
        place: |options| &mut options.undo,
    },
    Switch {
        name: "pacing",
        place: |options| &mut options.pacing,
    },
    Switch {
        name: "fastconv",
        place: |options| &mut options.fast_convergence,
    },
];

/// What CUBIC takes.
pub(crate) const CUBIC_OPTIONS: &[&str] = &["hystart", "abe", "prr", "undo", "pacing", "fastconv"];

/// What NewReno takes: it has no plateau to lower.
pub(crate) const NEW_RENO_OPTIONS: &[&str] = &["hystart", "abe", "prr", "undo", "pacing"];

/// What is wrong with a list of options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OptionError {
    Unknown(String),
    Repeated(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_reads_and_writes_itself() {
        for bits in 0..1_u32 << SWITCHES.len() {
            let mut options = LossBasedOptions::DEFAULT;
            for (bit, switch) in SWITCHES.iter().enumerate() {
                *(switch.place)(&mut options) = bits >> bit & 1 == 1;
            }
            let text = options.to_string();
            assert_eq!(
                LossBasedOptions::parse(&text, CUBIC_OPTIONS),
                Ok(options),
                "{text}"
            );
        }
        assert_eq!(LossBasedOptions::DEFAULT.to_string(), "");
    }

    #[test]
    fn order_does_not_matter_and_saying_the_default_is_allowed() {
        let parse = |text| LossBasedOptions::parse(text, CUBIC_OPTIONS);
        assert_eq!(parse("+prr-hystart"), parse("-hystart+prr"));
        assert_eq!(parse("+hystart-prr"), Ok(LossBasedOptions::DEFAULT));
    }

    #[test]
    fn an_option_is_named_once_and_must_exist() {
        let parse = |text| LossBasedOptions::parse(text, NEW_RENO_OPTIONS);
        assert_eq!(
            parse("+prr-prr"),
            Err(OptionError::Repeated("prr".to_owned()))
        );
        for text in ["+", "-", "+prr+", "+PRR", "+fastconv", "+ prr", "prr"] {
            assert!(
                matches!(parse(text), Err(OptionError::Unknown(_))),
                "{text:?}"
            );
        }
    }
}
