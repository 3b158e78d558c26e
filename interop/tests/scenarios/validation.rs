//! `docs/validation.md`: what is claimed, which test shows it, and what was measured.
//!
//! The parts between `<!-- measured: NAME -->` and `<!-- end -->` are written by this program when it
//! runs with `TIDEGATE_SLOW=1 TIDEGATE_WRITE_DOCS=1`. Those in virtual time are compared with the
//! measurement whenever the slow tests run, so a figure changes only in the same change as what it
//! measures. Those over real sockets are the figures of one run on one machine and not compared.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use interop::expect::{Dimension, Judgement, Metric, Verdict};
use interop::results::RunResult;
use interop::stats::nearest_rank;

use crate::bench::{amount_in_words, is_slow, measured, say};
use crate::mutants::fails_when;
use crate::slow::{
    Played, catalogue, clean_link_in_words, lateness_in_words, real_clean_link, real_trap,
};

const VIRTUAL: &str = "virtual time";
const REAL: &str = "real sockets";

#[test]
fn the_validation_document_says_what_was_measured() {
    if !is_slow("the_validation_document_says_what_was_measured") {
        return;
    }
    if !cfg!(feature = "mutants") {
        say(
            "docs/validation.md: not compared, it has figures of controllers that are only there with --all-features",
        );
        return;
    }
    let path = root().join("docs/validation.md");
    let document = fs::read_to_string(&path).expect("docs/validation.md is text");
    let simulated = virtual_part(catalogue());
    if env::var_os("TIDEGATE_WRITE_DOCS").is_some_and(|value| value == "1") {
        let document = with_part(&document, VIRTUAL, &simulated);
        let document = with_part(&document, REAL, &real_part(real_trap(), real_clean_link()));
        fs::write(&path, document).expect("docs/validation.md can be written");
        say("docs/validation.md: written");
        return;
    }
    let (_, written, _) = cut(&document, VIRTUAL);
    assert!(
        written == simulated,
        "docs/validation.md says\n{written}\nbut measured was\n{simulated}\nIf that is meant, write \
         it with TIDEGATE_SLOW=1 TIDEGATE_WRITE_DOCS=1 cargo test --release --all-features -p \
         interop --test scenarios"
    );
}

#[test]
fn every_test_that_the_validation_document_names_exists() {
    let document = fs::read_to_string(root().join("docs/validation.md")).expect("text");
    let named = test_names(&document);
    assert!(named.len() > 20, "the document names tests: {named:?}");
    let mut sources = String::new();
    for part in [
        "units",
        "cc",
        "netsim",
        "qlogs",
        "quic-core",
        "h3-client",
        "h3-server",
        "interop",
        "tests",
        "src",
    ] {
        read_sources(&root().join(part), &mut sources);
    }
    let missing: Vec<&String> = named
        .iter()
        .filter(|name| !sources.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

/// Words in code font that are sentences: four words or more, joined by underscores.
fn test_names(document: &str) -> BTreeSet<String> {
    let is_name = |text: &&str| {
        text.matches('_').count() >= 3
            && text
                .bytes()
                .all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    document
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(is_name)
        .map(str::to_owned)
        .collect()
}

fn read_sources(folder: &Path, sources: &mut String) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_sources(&path, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            sources.push_str(&fs::read_to_string(&path).expect("source text"));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One row per band, controller and download.
fn virtual_part(catalogue: &[Played]) -> String {
    let mut text = String::from(
        "\n| scenario, runs | measure | controller | measured | allowed | fails when |\n\
         |---|---|---|---|---|---|\n",
    );
    for played in catalogue {
        let scenario = &played.scenario;
        for group in &played.groups {
            for verdict in &group.verdicts {
                writeln!(
                    text,
                    "| `{}`, {} | {} | {} | {}{} | {} | {} |",
                    scenario.name,
                    group.runs.len(),
                    measure_in_words(verdict, scenario.cases.len() > 1),
                    group.controller,
                    measured(verdict),
                    match verdict.judgement {
                        Judgement::Met => "",
                        Judgement::Missed | Judgement::NotJudged(_) => " **MISSED**",
                    },
                    verdict.band.range_words(),
                    fails_when(&scenario.name, &verdict.band),
                )
                .expect("memory");
            }
        }
    }
    text.push('\n');
    text
}

fn measure_in_words(verdict: &Verdict, has_cases: bool) -> String {
    let band = &verdict.band;
    let mut words = band.metric.key().replace('_', " ");
    if has_cases {
        write!(words, " of {}", verdict.case).expect("memory");
    }
    if let Some(flow) = &band.flow {
        write!(words, " of flow {flow}").expect("memory");
    }
    if let Some(window) = band.window {
        let seconds = |at: units::Timestamp| at.as_nanos() / 1_000_000_000;
        let (from, until) = (seconds(window.from), seconds(window.until));
        write!(words, " in {from} to {until} s").expect("memory");
    }
    match band.metric {
        Metric::Completed => words,
        _ => format!("{words}, {}", band.statistic.words()),
    }
}

fn real_part(trap: &Played, clean: &Played) -> String {
    let mut text =
        String::from("\n| scenario, runs | controller | measured | relay |\n|---|---|---|---|\n");
    for group in &trap.groups {
        writeln!(
            text,
            "| `{}`, {} | {} | {} | {} |",
            trap.scenario.name,
            group.runs.len(),
            group.controller,
            completions_in_words(&group.runs),
            lateness_in_words(&group.runs),
        )
        .expect("memory");
    }
    for group in &clean.groups {
        writeln!(
            text,
            "| `{}`, {} | {} | {} | {} |",
            clean.scenario.name,
            group.runs.len(),
            group.controller,
            clean_link_in_words(&group.runs[0]),
            lateness_in_words(&group.runs),
        )
        .expect("memory");
    }
    text.push('\n');
    text
}

fn completions_in_words(runs: &[RunResult]) -> String {
    let mut spans: Vec<u64> = runs.iter().filter_map(|run| run.completion_ns).collect();
    spans.sort_unstable();
    let at = |thousandths| {
        nearest_rank(&spans, thousandths).map_or_else(
            || "-".to_owned(),
            |span| amount_in_words(Dimension::Time, span),
        )
    };
    format!(
        "{} of {} complete, median {}, longest {}",
        spans.len(),
        runs.len(),
        at(500),
        at(1000)
    )
}

/// What stands before, in and after the part of this name.
#[track_caller]
fn cut<'a>(document: &'a str, name: &str) -> (&'a str, &'a str, &'a str) {
    let begin = format!("<!-- measured: {name} -->\n");
    let (before, rest) = document.split_once(&begin).expect("the part begins");
    let (part, after) = rest.split_once("<!-- end -->").expect("the part ends");
    (before, part, after)
}

#[track_caller]
fn with_part(document: &str, name: &str, part: &str) -> String {
    let (before, _, after) = cut(document, name);
    format!("{before}<!-- measured: {name} -->\n{part}<!-- end -->{after}")
}

#[test]
fn a_part_is_replaced_and_nothing_else() {
    let document = "a\n<!-- measured: x -->\nold\n<!-- end -->\nb\n";
    let written = with_part(document, "x", "new\n");
    assert_eq!(written, "a\n<!-- measured: x -->\nnew\n<!-- end -->\nb\n");
    assert_eq!(with_part(&written, "x", "new\n"), written);
}
