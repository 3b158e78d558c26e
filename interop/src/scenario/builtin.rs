//! The scenarios inside the program, and how a name or a path finds one.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::error::{Problem, ScenarioError};
use super::{Scenario, parse};

/// Name and text of every scenario that ships with the program, in the order in which they are
/// listed.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "min-cwnd-trap",
        include_str!("../../scenarios/min-cwnd-trap.toml"),
    ),
    (
        "min-cwnd-trap-scripted",
        include_str!("../../scenarios/min-cwnd-trap-scripted.toml"),
    ),
    (
        "loss-phase-30pct-2s",
        include_str!("../../scenarios/loss-phase-30pct-2s.toml"),
    ),
    (
        "clean-20m-40ms",
        include_str!("../../scenarios/clean-20m-40ms.toml"),
    ),
    (
        "fct-ladder",
        include_str!("../../scenarios/fct-ladder.toml"),
    ),
    (
        "rand-loss-1pct",
        include_str!("../../scenarios/rand-loss-1pct.toml"),
    ),
    ("rate-step", include_str!("../../scenarios/rate-step.toml")),
    (
        "clean-100m-40ms",
        include_str!("../../scenarios/clean-100m-40ms.toml"),
    ),
    (
        "bufferbloat-50m-30ms",
        include_str!("../../scenarios/bufferbloat-50m-30ms.toml"),
    ),
    (
        "ge-burst-1pct",
        include_str!("../../scenarios/ge-burst-1pct.toml"),
    ),
    (
        "policer-10m-24k",
        include_str!("../../scenarios/policer-10m-24k.toml"),
    ),
    (
        "mvno-policer",
        include_str!("../../scenarios/mvno-policer.toml"),
    ),
    (
        "mvno-lossy",
        include_str!("../../scenarios/mvno-lossy.toml"),
    ),
    (
        "mvno-lossy-proxy",
        include_str!("../../scenarios/mvno-lossy-proxy.toml"),
    ),
    (
        "loss-phase-mid",
        include_str!("../../scenarios/loss-phase-mid.toml"),
    ),
    (
        "blackout-2s",
        include_str!("../../scenarios/blackout-2s.toml"),
    ),
    (
        "rate-up-x10",
        include_str!("../../scenarios/rate-up-x10.toml"),
    ),
    (
        "aqm-codel-20ms",
        include_str!("../../scenarios/aqm-codel-20ms.toml"),
    ),
    (
        "aqm-codel-100ms",
        include_str!("../../scenarios/aqm-codel-100ms.toml"),
    ),
    (
        "intra-fair",
        include_str!("../../scenarios/intra-fair.toml"),
    ),
    ("two-way", include_str!("../../scenarios/two-way.toml")),
    (
        "rtt-step-up",
        include_str!("../../scenarios/rtt-step-up.toml"),
    ),
    (
        "wifi-jitter-walk",
        include_str!("../../scenarios/wifi-jitter-walk.toml"),
    ),
    (
        "late-joiner",
        include_str!("../../scenarios/late-joiner.toml"),
    ),
    (
        "ack-loss-10pct",
        include_str!("../../scenarios/ack-loss-10pct.toml"),
    ),
    (
        "ack-loss-50pct",
        include_str!("../../scenarios/ack-loss-50pct.toml"),
    ),
    (
        "ack-thin-10",
        include_str!("../../scenarios/ack-thin-10.toml"),
    ),
    (
        "ack-thin-32",
        include_str!("../../scenarios/ack-thin-32.toml"),
    ),
    (
        "ack-slots-20ms",
        include_str!("../../scenarios/ack-slots-20ms.toml"),
    ),
    ("ecn-codel", include_str!("../../scenarios/ecn-codel.toml")),
    ("fairness", include_str!("../../scenarios/fairness.toml")),
    ("handover", include_str!("../../scenarios/handover.toml")),
    (
        "reorder-1pct",
        include_str!("../../scenarios/reorder-1pct.toml"),
    ),
    (
        "aqm-pie-20ms",
        include_str!("../../scenarios/aqm-pie-20ms.toml"),
    ),
    (
        "aqm-pie-100ms",
        include_str!("../../scenarios/aqm-pie-100ms.toml"),
    ),
    (
        "aqm-red-20ms",
        include_str!("../../scenarios/aqm-red-20ms.toml"),
    ),
    (
        "aqm-red-100ms",
        include_str!("../../scenarios/aqm-red-100ms.toml"),
    ),
    (
        "aqm-dualpi2-20ms",
        include_str!("../../scenarios/aqm-dualpi2-20ms.toml"),
    ),
    (
        "aqm-dualpi2-100ms",
        include_str!("../../scenarios/aqm-dualpi2-100ms.toml"),
    ),
    (
        "buffer-tenth",
        include_str!("../../scenarios/buffer-tenth.toml"),
    ),
    (
        "buffer-quarter",
        include_str!("../../scenarios/buffer-quarter.toml"),
    ),
    (
        "buffer-half",
        include_str!("../../scenarios/buffer-half.toml"),
    ),
    (
        "buffer-4bdp",
        include_str!("../../scenarios/buffer-4bdp.toml"),
    ),
    (
        "buffer-16bdp",
        include_str!("../../scenarios/buffer-16bdp.toml"),
    ),
    (
        "intra-fair-4",
        include_str!("../../scenarios/intra-fair-4.toml"),
    ),
    (
        "intra-fair-8",
        include_str!("../../scenarios/intra-fair-8.toml"),
    ),
    ("fair-1v3", include_str!("../../scenarios/fair-1v3.toml")),
    ("rtt-fair", include_str!("../../scenarios/rtt-fair.toml")),
    (
        "ecn-coexist",
        include_str!("../../scenarios/ecn-coexist.toml"),
    ),
    (
        "idle-restart",
        include_str!("../../scenarios/idle-restart.toml"),
    ),
    (
        "idle-restart-12s",
        include_str!("../../scenarios/idle-restart-12s.toml"),
    ),
    (
        "short-flows",
        include_str!("../../scenarios/short-flows.toml"),
    ),
    (
        "media-vs-bulk",
        include_str!("../../scenarios/media-vs-bulk.toml"),
    ),
    (
        "fq-isolation",
        include_str!("../../scenarios/fq-isolation.toml"),
    ),
    (
        "fifo-no-isolation",
        include_str!("../../scenarios/fifo-no-isolation.toml"),
    ),
    ("wifi-bad", include_str!("../../scenarios/wifi-bad.toml")),
    (
        "wifi-suspended",
        include_str!("../../scenarios/wifi-suspended.toml"),
    ),
    (
        "wifi-suspended-six",
        include_str!("../../scenarios/wifi-suspended-six.toml"),
    ),
    ("geo-600ms", include_str!("../../scenarios/geo-600ms.toml")),
    (
        "ack-narrow-uplink",
        include_str!("../../scenarios/ack-narrow-uplink.toml"),
    ),
    (
        "rand-loss-0-03pct",
        include_str!("../../scenarios/rand-loss-0-03pct.toml"),
    ),
    (
        "rand-loss-0-1pct",
        include_str!("../../scenarios/rand-loss-0-1pct.toml"),
    ),
    (
        "rand-loss-0-3pct",
        include_str!("../../scenarios/rand-loss-0-3pct.toml"),
    ),
    (
        "rand-loss-3pct",
        include_str!("../../scenarios/rand-loss-3pct.toml"),
    ),
    (
        "slow-short",
        include_str!("../../scenarios/slow-short.toml"),
    ),
    ("slow-long", include_str!("../../scenarios/slow-long.toml")),
    (
        "cellular-att",
        include_str!("../../scenarios/cellular-att.toml"),
    ),
];

/// The name of the set [`SMOKE`], where a scenario's is asked for.
pub const SMOKE_NAME: &str = "smoke";

/// How many seeds of each are played in the set, unless told otherwise.
pub const SMOKE_SEEDS: u64 = 3;

/// The scenarios that show in a minute whether something is badly wrong: the rows that scenarios.md 2 marks so.
pub const SMOKE: &[&str] = &[
    "clean-20m-40ms",
    "clean-100m-40ms",
    "fct-ladder",
    "bufferbloat-50m-30ms",
    "rand-loss-1pct",
    "loss-phase-30pct-2s",
    "blackout-2s",
    "rate-step",
    "mvno-lossy",
];

/// What an article calls some of them: that name, and ours.
pub const OTHER_NAMES: &[(&str, &str)] = &[
    ("cubic-single", "clean-100m-40ms"),
    ("bufferbloat", "bufferbloat-50m-30ms"),
    ("random-loss", "rand-loss-1pct"),
];

/// Name and text of the built-in scenario of this name, which may be one of [`OTHER_NAMES`].
#[must_use]
pub fn built_in(name: &str) -> Option<(&'static str, &'static str)> {
    let mut others = OTHER_NAMES.iter();
    let other = others.find(|(other, _)| *other == name);
    let name = other.map_or(name, |(_, ours)| *ours);
    BUILT_IN.iter().find(|(known, _)| *known == name).copied()
}

/// Why no scenario was found under a name or path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No scenario has this name and no file has this path.
    #[error("no scenario \"{name}\"{}; there are {known}, or give the path of a .toml file",
        nearest.as_ref().map(|near| format!(", did you mean \"{near}\"?")).unwrap_or_default())]
    Unknown {
        /// The name as given.
        name: String,
        /// The built-in name that resembles it most, if any does.
        nearest: Option<String>,
        /// All built-in names.
        known: String,
    },
    /// The file was found but cannot be used.
    #[error(transparent)]
    Invalid(#[from] ScenarioError),
}

/// Every built-in scenario, parsed.
///
/// # Errors
/// The first that does not parse; a test keeps that from happening.
pub fn built_ins() -> Result<Vec<Scenario>, ScenarioError> {
    BUILT_IN
        .iter()
        .map(|(name, text)| parse::parse(&format!("built-in {name}"), text))
        .collect()
}

/// Finds a scenario by the name of a built-in one or by the path of a file.
///
/// What contains a separator, ends in `.toml`, or names an existing file is a path.
///
/// # Errors
/// An unknown name (with the nearest known one), an unreadable file, or what is wrong in the file.
pub fn find(name_or_path: &str) -> Result<Scenario, LookupError> {
    if let Some((name, text)) = built_in(name_or_path) {
        return Ok(parse::parse(&format!("built-in {name}"), text)?);
    }
    let path = Path::new(name_or_path);
    let looks_like_path = name_or_path.contains(['/', '\\'])
        || path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
        || path.is_file();
    if looks_like_path {
        return Ok(Scenario::load(path)?);
    }
    let known: Vec<&str> = BUILT_IN
        .iter()
        .chain(OTHER_NAMES)
        .map(|(name, _)| *name)
        .collect();
    Err(LookupError::Unknown {
        name: name_or_path.to_owned(),
        nearest: nearest(name_or_path, &known).map(str::to_owned),
        known: known.join(", "),
    })
}

/// A scenario has a few hundred bytes; a device or a film named by mistake must not fill memory.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Scenario {
    /// Reads a scenario from a text; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong with it, in one line with line number and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        parse::parse(file, text)
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// The file cannot be read, or what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let unreadable = |problem: String| ScenarioError {
            file: file.clone(),
            line: None,
            key: String::new(),
            problem: Problem::Unreadable(problem),
        };
        let mut bytes = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(unreadable(
                "it is larger than 1 MiB; a scenario is a small text file".to_owned(),
            ));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| unreadable("it is not text in UTF-8".to_owned()))?;
        let mut scenario = parse::parse(&file, &text)?;
        scenario.path = Some(file);
        Ok(scenario)
    }
}

/// The word among `known` that `word` was probably meant to be: the least number of typing slips
/// away, and no more than a third of its length; a known word that starts with it also counts.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let closest = known
        .iter()
        .map(|candidate| (slips(word, candidate), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().div_ceil(3))
        .map(|(_, candidate)| candidate);
    closest.or_else(|| {
        known
            .iter()
            .find(|candidate| word.len() >= 3 && candidate.contains(word))
            .copied()
    })
}

/// Levenshtein's distance: single-letter insertions, deletions and replacements between two words.
fn slips(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_as_by_hand() {
        assert_eq!(slips("kitten", "sitting"), 3);
        assert_eq!(slips("", "abc"), 3);
        assert_eq!(slips("rate-step", "rate-step"), 0);
    }

    #[test]
    fn a_misspelt_name_suggests_the_nearest_and_lists_all() {
        let message = find("min-cwdn-trap").unwrap_err().to_string();
        assert_eq!(
            message,
            "no scenario \"min-cwdn-trap\", did you mean \"min-cwnd-trap\"?; there are \
             min-cwnd-trap, min-cwnd-trap-scripted, loss-phase-30pct-2s, clean-20m-40ms, \
             fct-ladder, rand-loss-1pct, rate-step, clean-100m-40ms, bufferbloat-50m-30ms, \
             ge-burst-1pct, policer-10m-24k, mvno-policer, mvno-lossy, mvno-lossy-proxy, \
             loss-phase-mid, blackout-2s, rate-up-x10, aqm-codel-20ms, aqm-codel-100ms, \
             intra-fair, two-way, rtt-step-up, wifi-jitter-walk, late-joiner, \
             ack-loss-10pct, ack-loss-50pct, ack-thin-10, ack-thin-32, ack-slots-20ms, \
             ecn-codel, fairness, handover, reorder-1pct, aqm-pie-20ms, aqm-pie-100ms, \
             aqm-red-20ms, aqm-red-100ms, aqm-dualpi2-20ms, aqm-dualpi2-100ms, buffer-tenth, \
             buffer-quarter, buffer-half, buffer-4bdp, buffer-16bdp, intra-fair-4, \
             intra-fair-8, fair-1v3, rtt-fair, ecn-coexist, idle-restart, idle-restart-12s, \
             short-flows, media-vs-bulk, fq-isolation, fifo-no-isolation, wifi-bad, \
             wifi-suspended, wifi-suspended-six, geo-600ms, ack-narrow-uplink, \
             rand-loss-0-03pct, rand-loss-0-1pct, rand-loss-0-3pct, rand-loss-3pct, \
             slow-short, slow-long, cellular-att, cubic-single, bufferbloat, random-loss, or \
             give the path of a .toml file"
        );
        let message = find("fct").unwrap_err().to_string();
        assert!(
            message.contains("did you mean \"fct-ladder\"?"),
            "{message}"
        );
        let message = find("zzz").unwrap_err().to_string();
        assert!(message.starts_with("no scenario \"zzz\"; there are min-cwnd-trap"));
    }

    #[test]
    fn other_names_find_what_they_stand_for() {
        for (other, ours) in OTHER_NAMES {
            assert_eq!(find(other).unwrap().name, *ours);
            assert!(BUILT_IN.iter().all(|(name, _)| name != other), "{other}");
        }
    }

    #[test]
    fn every_built_in_scenario_is_named_like_its_file() {
        let scenarios = built_ins().unwrap();
        for name in SMOKE {
            assert!(BUILT_IN.iter().any(|(known, _)| known == name), "{name}");
        }
        assert!(BUILT_IN.iter().all(|(name, _)| *name != SMOKE_NAME));
        for ((name, _), scenario) in BUILT_IN.iter().zip(&scenarios) {
            assert_eq!(scenario.name, *name);
            assert!(
                scenario.about.len() <= 140,
                "{name}: the sentence is too long"
            );
        }
    }
}
