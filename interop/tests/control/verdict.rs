//! Measured against allowed, and the switch for slow tests.

use std::env;
use std::fmt::Display;
use std::io::{self, Write as _};

use crate::validation_rows;

/// The bounds of a test and which of them were missed.
///
/// Everything is measured and written down before anything fails.
#[derive(Default)]
pub(crate) struct Verdict {
    missed: Vec<String>,
}

impl Verdict {
    /// Notes whether a bound is met; `text` says what was measured.
    pub(crate) fn expect(&mut self, is_met: bool, text: impl Display) {
        if !is_met {
            self.missed.push(text.to_string());
        }
    }

    /// Says whether a bound was missed whose text begins like this.
    pub(crate) fn has_missed(&self, beginning: &str) -> bool {
        self.missed.iter().any(|text| text.starts_with(beginning))
    }

    /// Fails unless every bound is met.
    #[track_caller]
    pub(crate) fn require(&self) {
        assert!(
            self.missed.is_empty(),
            "missed:\n{}",
            self.missed.join("\n")
        );
    }
}

impl Verdict {
    /// Fails unless exactly these bounds are missed: misses that are measured, explained in docs/findings.md and not to be
    /// mended in silence, nor to grow.
    #[track_caller]
    pub(crate) fn require_all_but(&self, known: &[&str]) {
        assert_eq!(
            self.missed, known,
            "docs/findings.md explains the second list"
        );
    }
}

/// Prints a measured value and holds it against docs/validation.md.
#[track_caller]
pub(crate) fn record(name: &str, measured: impl Display, allowed: impl Display) {
    println!("{name}: {measured} ({allowed})");
    validation_rows::row("links", name, measured, allowed);
}

/// Whether the slow tests were asked for. A test that was not says so, past the test harness, which
/// keeps what a passing test prints to itself.
pub(crate) fn is_slow(test: &str) -> bool {
    let is_slow = env::var_os("TIDEGATE_SLOW").is_some_and(|value| value == "1");
    let text = if is_slow {
        "running"
    } else {
        "SKIPPED, TIDEGATE_SLOW=1 runs it"
    };
    writeln!(io::stderr(), "slow test {test}: {text}").expect("standard error is open");
    is_slow
}

/// The value in the middle; of an even number, the mean of the two.
#[track_caller]
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    low.midpoint(high)
}

/// The smallest value.
pub(crate) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The largest value.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
