//! Layer 3: 30 % loss towards the client for 2 s, at random.

use std::ops::RangeInclusive;

use cc::{Algorithm, Fault};

use crate::validation_rows::row;
use crate::{
    MS, SECOND, assert_guilty_of_the_trap, built_in, failures, fault_of, in_seconds, is_slow,
    largest, mutant, play,
};

const SCENARIO: &str = "min-cwnd-trap";
const SEEDS: u64 = 100;

fn assert_escapes(algorithm: Algorithm) {
    let runs = play(&built_in(SCENARIO), algorithm, SEEDS);
    let slowest = largest(&runs, |run| run.completion_ns);
    let escape = largest(&runs, |run| run.escape_ns);
    let mut escapes: Vec<u64> = runs.iter().filter_map(|run| run.escape_ns).collect();
    escapes.sort_unstable();
    let within_20_rtt = escapes.iter().filter(|escape| **escape <= 200 * MS).count();
    row(
        "trap",
        &format!("L3 {algorithm}, slowest of 100"),
        in_seconds(slowest),
        "at most 4.5 s",
    );
    row(
        "trap",
        &format!("L3 {algorithm}, latest escape of 100"),
        in_seconds(escape),
        "at most 0.3 s",
    );
    row(
        "trap",
        &format!("L3 {algorithm}, escapes within 20 round trips"),
        format!("{within_20_rtt} of 100"),
        "at least 95; docs/findings.md",
    );
    assert!(slowest.is_some_and(|slowest| slowest <= 9 * SECOND / 2));
    assert!(escape.is_some_and(|escape| escape <= 300 * MS));
    assert!(within_20_rtt >= 95, "{algorithm}: {within_20_rtt}");
}

#[test]
fn cubic_escapes_with_every_seed() {
    assert_escapes(Algorithm::CUBIC);
}

#[test]
fn newreno_escapes_with_every_seed() {
    assert_escapes(Algorithm::NEW_RENO);
}

fn assert_trapped(fault: Fault, allowed: RangeInclusive<usize>) {
    let runs = play(&built_in(SCENARIO), mutant(fault), SEEDS);
    let failed = failures(&runs).count();
    let name = fault.name();
    row(
        "trap",
        &format!("L3 {name}, unfinished of 100"),
        failed,
        format!("{} to {}", allowed.start(), allowed.end()),
    );
    assert!(allowed.contains(&failed), "{name}: {failed}");
    for run in failures(&runs) {
        if fault == Fault::M2 {
            assert!(fault_of(run).shifts > 100, "{run:?}");
        } else {
            assert_guilty_of_the_trap(run);
        }
    }
    // Trapped for good: whoever does not finish is still small in the end.
    let windows: Vec<u64> = failures(&runs)
        .filter_map(|run| run.window_at_end_bytes)
        .collect();
    assert!(
        windows.iter().all(|window| *window <= 15 * 1_350),
        "{windows:?}"
    );
    let flips = failures(&runs).map(|run| run.flips).max().unwrap_or(0);
    let stay = failures(&runs).map(|run| run.time_at_minimum_ns).max();
    row(
        "trap",
        &format!("L3 {name}, most flips and longest time at the minimum window"),
        format!("{flips}, {}", in_seconds(stay)),
        "the article: 999 in 6.7 s",
    );
}

#[test]
fn one_stamp_for_boundary_and_epoch_traps_about_half_of_the_runs() {
    assert_trapped(Fault::M1, 40..=80);
}

#[test]
fn the_other_mutants_pass_and_fail_as_the_kill_matrix_says() {
    if !is_slow("the_other_mutants_pass_and_fail_as_the_kill_matrix_says") {
        return;
    }
    assert_trapped(Fault::M1Clamp, 40..=85);
    assert_trapped(Fault::M2, 90..=100);
    for fault in [Fault::M3, Fault::NoShift, Fault::M1Fix] {
        let runs = play(&built_in(SCENARIO), mutant(fault), SEEDS);
        let failed = failures(&runs).count();
        row(
            "trap",
            &format!("L3 {}, unfinished of 100", fault.name()),
            failed,
            "0",
        );
        assert_eq!(failed, 0, "{}", fault.name());
    }
}

// A link with a rate spreads what leaves together, and the trap does not close as often (docs/findings.md). The real controller
// does not care.
#[test]
fn on_a_link_with_a_rate_the_fault_shows_less_often() {
    if !is_slow("on_a_link_with_a_rate_the_fault_shows_less_often") {
        return;
    }
    for (rate, queue) in [("100 Mbit/s", "2 BDP"), ("10 Gbit/s", "2 BDP")] {
        let text = include_str!("../../scenarios/min-cwnd-trap.toml");
        let text = text.replace(
            "rate = \"unlimited\"",
            &format!("rate = \"{rate}\"\nqueue = \"{queue}\""),
        );
        let scenario = interop::scenario::Scenario::parse("rated.toml", &text).expect("good");
        let failed = |algorithm| failures(&play(&scenario, algorithm, SEEDS)).count();
        let (real, faulty) = (failed(Algorithm::CUBIC), failed(mutant(Fault::M1)));
        row(
            "trap",
            &format!("L3 at {rate}, cubic-trap, unfinished of 100"),
            faulty,
            "fewer than 40; docs/findings.md",
        );
        assert_eq!(real, 0);
        assert!((1..40).contains(&faulty), "{faulty}");
    }
}
