//! Layer 2: eight losses by script.

use cc::{Algorithm, Fault};

use crate::validation_rows::row;
use crate::{
    DATAGRAM, SECOND, assert_guilty_of_the_trap, built_in, failures, fault_of, in_seconds, largest,
    mutant, play,
};

const SCENARIO: &str = "min-cwnd-trap-scripted";
const SEEDS: u64 = 20;

#[test]
fn the_script_traps_every_run_of_the_fault_and_no_other() {
    let scenario = built_in(SCENARIO);
    let passing = [Fault::M3, Fault::NoShift, Fault::M1Fix].map(mutant);
    for algorithm in [Algorithm::CUBIC, Algorithm::NEW_RENO]
        .into_iter()
        .chain(passing)
    {
        let runs = play(&scenario, algorithm, SEEDS);
        let slowest = largest(&runs, |run| run.completion_ns);
        row(
            "trap",
            &format!("L2 {algorithm}, slowest of 20"),
            in_seconds(slowest),
            "at most 2.5 s",
        );
        let slowest = slowest.unwrap_or(u64::MAX);
        assert!(slowest <= 5 * SECOND / 2, "{algorithm}: {slowest} ns");
        assert!(
            runs.iter()
                .all(|run| run.forward.dropped_scripted_packets == 8)
        );
    }
    for fault in [Fault::M1, Fault::M1Clamp, Fault::M2] {
        let runs = play(&scenario, mutant(fault), SEEDS);
        let failed = failures(&runs).count();
        row(
            "trap",
            &format!("L2 {}, unfinished of 20", fault.name()),
            failed,
            "20",
        );
        assert_eq!(failed, 20, "{}", fault.name());
        for run in &runs {
            if fault == Fault::M2 {
                assert!(fault_of(run).shifts > 100, "{run:?}");
                continue;
            }
            assert_guilty_of_the_trap(run);
            assert!(fault_of(run).losses_ignored >= 1, "{:?}", run.fault);
            // Pinned where the last loss that counted left it: a few datagrams, not yet the floor.
            let window = run.window_at_end_bytes.unwrap_or(u64::MAX);
            assert!(window <= 10 * DATAGRAM, "{window}");
        }
    }
}
