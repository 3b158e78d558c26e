//! Layer 2: losses by script.

use std::time::Duration;

use cc::Fault;

use crate::{
    PACKET, ROUND_TRIP, Run, Subject, assert_guilty_of_the_trap, download, report, seconds,
};

/// Drops the first server datagram of at least 1000 bytes whenever the gap has passed since the last drop.
#[derive(Copy, Clone, Debug)]
struct Script {
    drops: u32,
    gap: Duration,
    /// When the first is due.
    begin: Duration,
}

/// The one that every run of a layer is judged on, twenty times: only the random parts of TLS differ.
const SCRIPT: Script = Script {
    drops: 8,
    gap: Duration::from_millis(15),
    begin: Duration::ZERO,
};

/// The same with fewer and more losses, nearer and farther apart.
fn variants() -> [Script; 4] {
    let variant = |drops, gap| Script {
        drops,
        gap: Duration::from_millis(gap),
        begin: Duration::ZERO,
    };
    [
        variant(6, 15),
        variant(12, 15),
        variant(8, 25),
        variant(20, 25),
    ]
}

fn all_scripts() -> Vec<Script> {
    let mut scripts = vec![SCRIPT; 20];
    scripts.extend(variants());
    scripts
}

fn play(subject: Subject, script: Script) -> Run {
    let mut due = script.begin;
    let mut drops = 0;
    download(subject, Duration::ZERO, move |since, size| {
        let is_lost = drops < script.drops && since >= due && size >= 1_000;
        if is_lost {
            due = since + script.gap;
            drops += 1;
        }
        is_lost
    })
}

fn runs(subject: Subject, scripts: &[Script]) -> Vec<Run> {
    scripts
        .iter()
        .map(|script| play(subject, *script))
        .collect()
}

fn range(runs: &[Run]) -> String {
    let finished = |run: &Run| run.finished.unwrap_or(Duration::MAX);
    let show = |span: Duration| seconds((span != Duration::MAX).then_some(span));
    let first = runs.iter().map(finished).min().unwrap_or_default();
    let last = runs.iter().map(finished).max().unwrap_or_default();
    format!("{} to {}", show(first), show(last))
}

#[test]
fn the_real_controller_and_those_without_the_trap_are_soon_done() {
    let passing = [Fault::M3, Fault::NoShift, Fault::M1Fix].map(Subject::mutant);
    for subject in [Subject::FIXED, Subject::NEW_RENO]
        .into_iter()
        .chain(passing)
    {
        let runs = runs(subject, &all_scripts());
        let name = subject.name();
        report(
            &format!("L2 {name}, 20 runs and 4 variants"),
            range(&runs),
            "at most 2.5 s",
        );
        for run in runs {
            let finished = run.finished.unwrap_or(Duration::MAX);
            assert!(finished <= Duration::from_millis(2_500), "{name}: {run:?}");
        }
    }
}

fn assert_trapped(name: &str, run: &Run) {
    let finished = run.finished.unwrap_or(Duration::MAX);
    assert!(finished >= Duration::from_secs(8), "{name}: {run:?}");
    assert_guilty_of_the_trap(name, run);
    let counters = run.counters.expect("ours counts");
    assert!(counters.losses_ignored >= 1, "{name}: {run:?}");
    let moved = run.window.abs_diff(run.window_at_last_loss);
    assert!(moved <= PACKET, "{name}: {run:?}");
}

#[test]
fn one_stamp_for_boundary_and_epoch_ignores_the_losses_and_stands_still() {
    for fault in [Fault::M1, Fault::M1Clamp] {
        let subject = Subject::mutant(fault);
        let runs = runs(subject, &all_scripts());
        let name = subject.name();
        report(
            &format!("L2 {name}, 20 runs and 4 variants"),
            range(&runs),
            "at least 8 s",
        );
        for run in &runs {
            assert_trapped(&name, run);
        }
    }
}

// It matters to the clamp alone what the window was when the script began: when the first burst is spared, it comes out.
#[test]
fn the_trap_closes_wherever_in_a_round_trip_the_losses_begin() {
    let begins: Vec<Script> = (0..10)
        .map(|tenth| Script {
            begin: ROUND_TRIP * tenth / 10,
            ..SCRIPT
        })
        .collect();
    let name = Subject::mutant(Fault::M1).name();
    let runs = runs(Subject::mutant(Fault::M1), &begins);
    report(
        &format!("L2 {name}, 10 beginnings"),
        range(&runs),
        "at least 8 s",
    );
    for run in &runs {
        assert_trapped(&name, run);
    }
}

#[test]
fn an_epoch_that_stands_still_does_not_come_to_an_end() {
    let subject = Subject::mutant(Fault::M2);
    let runs = runs(subject, &all_scripts());
    report("L2 cubic-m2, 20 runs and 4 variants", range(&runs), "never");
    for run in runs {
        assert_eq!(run.finished, None, "{run:?}");
        let counters = run.counters.expect("ours counts");
        assert!(counters.shifts > 100, "{run:?}");
    }
}
