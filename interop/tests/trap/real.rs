//! Layer 4: over real UDP sockets, through the relay. The machine decides how late things are, so virtual time carries the
//! gates and this confirms.

use cc::{Algorithm, Fault};
use interop::results::RunResult;

use crate::validation_rows::unsteady_row;
use crate::{
    SECOND, assert_guilty_of_the_trap, built_in, failures, in_seconds, is_slow, largest, mutant,
    play_real,
};

/// Whether the window came out within a second after the losses.
fn is_out(run: &RunResult) -> bool {
    run.escape_ns.is_some_and(|escape| escape <= SECOND)
}

#[test]
fn over_real_sockets_cubic_escapes_and_the_fault_is_trapped() {
    if !is_slow("over_real_sockets_cubic_escapes_and_the_fault_is_trapped") {
        return;
    }
    let scenario = built_in("min-cwnd-trap");
    let runs = play_real(&scenario, Algorithm::CUBIC, 1..=10);
    let failed = failures(&runs).count();
    let escape = largest(&runs, |run| run.escape_ns);
    unsteady_row(
        "real trap",
        "L4 cubic, finished within 10 s",
        format!("{} of 10", 10 - failed),
        "10 of 10",
    );
    unsteady_row(
        "real trap",
        "L4 cubic, latest escape of 10",
        in_seconds(escape),
        "at most 1.0 s",
    );
    assert_eq!(failed, 0);
    assert!(runs.iter().all(is_out), "{escape:?}");

    // Until three are stuck: each costs ten seconds. At a chance of one half, sixteen runs miss that once in 500 times.
    let mut runs = Vec::new();
    let stuck = |runs: &[RunResult]| runs.iter().filter(|run| !is_out(run)).count();
    for seed in 1..=16 {
        runs.extend(play_real(&scenario, mutant(Fault::M1), seed..=seed));
        if stuck(&runs) >= 3 {
            break;
        }
    }
    unsteady_row(
        "real trap",
        "L4 cubic-trap, stuck for more than a second",
        format!("{} of the first {}", stuck(&runs), runs.len()),
        "3 of at most 16",
    );
    assert!(stuck(&runs) >= 3, "{} of {}", stuck(&runs), runs.len());
    for run in failures(&runs) {
        assert_guilty_of_the_trap(run);
    }
}

#[test]
fn over_real_sockets_the_script_tells_them_apart() {
    if !is_slow("over_real_sockets_the_script_tells_them_apart") {
        return;
    }
    let scenario = built_in("min-cwnd-trap-scripted");
    let runs = play_real(&scenario, Algorithm::CUBIC, 1..=6);
    let slowest = largest(&runs, |run| run.completion_ns);
    unsteady_row(
        "real trap",
        "L4 by script, cubic, slowest of 6",
        in_seconds(slowest),
        "at most 3.0 s",
    );
    assert!(
        slowest.is_some_and(|slowest| slowest <= 3 * SECOND),
        "{slowest:?}"
    );
    let runs = play_real(&scenario, mutant(Fault::M1), 1..=6);
    let mut times: Vec<u64> = runs
        .iter()
        .map(|run| run.completion_ns.unwrap_or(u64::MAX))
        .collect();
    times.sort_unstable();
    let median = times[3];
    unsteady_row(
        "real trap",
        "L4 by script, cubic-trap, median of 6",
        in_seconds((median != u64::MAX).then_some(median)),
        "at least 3.3 s",
    );
    assert!(median >= 33 * SECOND / 10, "{times:?}");
}
