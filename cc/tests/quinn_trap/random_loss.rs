//! Layer 3: 30 % random loss towards the client for 2 s.

use std::time::Duration;

use cc::Fault;
use netsim::RandomStreams;
use units::Fraction;

use crate::{Run, Subject, assert_guilty_of_the_trap, download, report, seconds};

const LOSSES_END: Duration = Duration::from_secs(2);
const SEEDS: u64 = 100;

fn play(subject: Subject, seed: u64) -> Run {
    let mut stream = RandomStreams::new(seed).stream("forward.loss");
    let share = Fraction::from_percent(30).expect("below 100");
    download(subject, LOSSES_END, move |since, _| {
        // One draw per datagram, so that the end of the phase shifts nothing.
        stream.chance(share) && since < LOSSES_END
    })
}

struct Outcome {
    runs: Vec<Run>,
}

impl Outcome {
    fn of(subject: Subject) -> Self {
        let runs = (1..=SEEDS).map(|seed| play(subject, seed)).collect();
        let outcome = Self { runs };
        println!("{}: {} failed", subject.name(), outcome.failed());
        outcome
    }

    fn failed(&self) -> usize {
        let failed = self.runs.iter().filter(|run| run.finished.is_none());
        failed.count()
    }

    /// The longest download; `None` if one never ended.
    fn slowest(&self) -> Option<Duration> {
        let finished: Option<Vec<_>> = self.runs.iter().map(|run| run.finished).collect();
        finished?.into_iter().max()
    }

    fn latest_escape(&self) -> Option<Duration> {
        let escaped: Option<Vec<_>> = self.runs.iter().map(|run| run.escaped).collect();
        escaped?.into_iter().max()
    }
}

fn assert_escapes(subject: Subject) {
    let outcome = Outcome::of(subject);
    let (slowest, escape) = (outcome.slowest(), outcome.latest_escape());
    let name = subject.name();
    report(
        &format!("L3 {name}, slowest of 100"),
        seconds(slowest),
        "at most 4.5 s",
    );
    report(
        &format!("L3 {name}, latest escape of 100"),
        seconds(escape),
        "at most 0.3 s",
    );
    let slowest = slowest.unwrap_or(Duration::MAX);
    assert!(
        slowest <= Duration::from_millis(4_500),
        "{name}: {slowest:?}"
    );
    let escape = escape.unwrap_or(Duration::MAX);
    assert!(escape <= Duration::from_millis(300), "{name}: {escape:?}");
}

#[test]
fn cubic_and_newreno_escape_with_all_hundred_seeds() {
    assert_escapes(Subject::FIXED);
    assert_escapes(Subject::NEW_RENO);
}

// What stock quinn has is other faults, not this one.
#[test]
fn the_controllers_of_quinn_have_no_trap() {
    for subject in [Subject::StockCubic, Subject::StockNewReno] {
        let outcome = Outcome::of(subject);
        report(
            &format!("L3 {}, slowest of 100", subject.name()),
            seconds(outcome.slowest()),
            "at most 10 s",
        );
        assert_eq!(outcome.failed(), 0, "{}", subject.name());
    }
}

fn assert_trapped(fault: Fault, failures: std::ops::RangeInclusive<usize>) {
    let subject = Subject::mutant(fault);
    let name = subject.name();
    let outcome = Outcome::of(subject);
    report(
        &format!("L3 {name}, failed of 100"),
        outcome.failed().to_string(),
        &format!("{} to {}", failures.start(), failures.end()),
    );
    assert!(
        failures.contains(&outcome.failed()),
        "{name}: {} of {SEEDS} failed",
        outcome.failed()
    );
    for run in outcome.runs.iter().filter(|run| run.finished.is_none()) {
        if fault == Fault::M2 {
            let counters = run.counters.expect("ours counts");
            assert!(counters.shifts > 100, "{name}: {run:?}");
        } else {
            assert_guilty_of_the_trap(&name, run);
        }
    }
    let trapped = outcome.runs.iter().filter(|run| run.finished.is_none());
    let mut flips: Vec<u64> = trapped
        .filter_map(|run| Some(run.counters?.flips))
        .collect();
    flips.sort_unstable();
    report(
        &format!("L3 {name}, flips of the recovery state in a trapped run"),
        format!(
            "median {}, most {}",
            flips.get(flips.len() / 2).copied().unwrap_or(0),
            flips.last().copied().unwrap_or(0)
        ),
        "the article: 999 in 6.7 s",
    );
}

#[test]
fn one_stamp_for_boundary_and_epoch_traps_about_half_of_the_runs() {
    assert_trapped(Fault::M1, 40..=80);
}

#[test]
fn a_clamp_to_the_present_is_no_remedy() {
    assert_trapped(Fault::M1Clamp, 40..=85);
}

#[test]
fn an_epoch_that_stands_still_traps_nearly_all() {
    assert_trapped(Fault::M2, 90..=100);
}

// The kill matrix: what passes here must be caught elsewhere.
#[test]
fn the_other_mutants_pass_and_the_fix_of_the_stack_that_had_the_fault_does_too() {
    for fault in [Fault::M3, Fault::NoShift, Fault::M1Fix] {
        let subject = Subject::mutant(fault);
        let outcome = Outcome::of(subject);
        report(
            &format!("L3 {}, failed of 100", subject.name()),
            outcome.failed().to_string(),
            "0",
        );
        assert_eq!(outcome.failed(), 0, "{}", subject.name());
    }
}
