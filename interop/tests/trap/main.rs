//! The minimum-window trap on the product's own stack: the layers of the regression test that need a network.
//!
//! | layer | what is played | where |
//! |---|---|---|
//! | 2 | eight losses by script | `scripted.rs` |
//! | 3 | 30 % loss towards the client for 2 s, 100 seeds | `random.rs` |
//! | 4 | 2 and 3 over real UDP sockets, through the relay | `real.rs`, slow |
//! | 6 | other round-trip times and loss rates | `sweep.rs` |
//!
//! Layer 1 is a controller by itself (`cc/tests/acceptance/trap.rs`); 2, 3 and 5 are played on plain quinn
//! too (`cc/tests/quinn_trap`). What each mutant must pass and fail in a layer is the kill matrix; a layer that grew weaker
//! breaks it.

#[path = "../../../tests/support/validation_rows.rs"]
mod validation_rows;

mod random;
mod real;
mod scripted;
mod sweep;

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::{env, thread};

use cc::{Algorithm, Fault, LossBasedOptions};
use interop::play::Player;
use interop::real_player::RealPlayer;
use interop::results::{FaultCounts, Outcome, RunResult};
use interop::runner::{Plan, play_all};
use interop::scenario::{Scenario, find};
use interop::virtual_player::VirtualPlayer;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DATAGRAM: u64 = 1_350;

/// Runs over real sockets have the cores for themselves.
static CORES: RwLock<()> = RwLock::new(());

fn mutant(fault: Fault) -> Algorithm {
    Algorithm::Faulty(fault, LossBasedOptions::DEFAULT)
}

fn is_slow(test: &str) -> bool {
    let is_slow = env::var_os("TIDEGATE_SLOW").is_some_and(|value| value == "1");
    let word = if is_slow {
        "running"
    } else {
        "SKIPPED, TIDEGATE_SLOW=1 runs it"
    };
    // Past the test harness, which keeps what a passing test prints.
    writeln!(io::stderr(), "slow test {test}: {word}").expect("standard error is open");
    is_slow
}

fn built_in(name: &str) -> Scenario {
    find(name).expect("a built-in scenario")
}

/// Plays the seeds 1 to `seeds` in virtual time.
fn play(scenario: &Scenario, algorithm: Algorithm, seeds: u64) -> Vec<RunResult> {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    let player = PLAYER.get_or_init(|| VirtualPlayer::new().expect("a player"));
    let _guard = CORES.read().unwrap_or_else(PoisonError::into_inner);
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    play_with(scenario, algorithm, 1..=seeds, player, cores)
}

/// Plays these seeds over real sockets, one after the other, while nothing else here is played.
fn play_real(
    scenario: &Scenario,
    algorithm: Algorithm,
    seeds: std::ops::RangeInclusive<u64>,
) -> Vec<RunResult> {
    let player = RealPlayer::new().expect("a player");
    let _guard = CORES.write().unwrap_or_else(PoisonError::into_inner);
    play_with(scenario, algorithm, seeds, &player, NonZeroUsize::MIN)
}

fn play_with(
    scenario: &Scenario,
    algorithm: Algorithm,
    seeds: std::ops::RangeInclusive<u64>,
    player: &dyn Player,
    jobs: NonZeroUsize,
) -> Vec<RunResult> {
    let plan = Plan {
        scenario,
        controllers: vec![algorithm],
        seeds: seeds.collect(),
        limit: scenario.limit,
        jobs,
        qlog_dir: None,
    };
    let mut groups = play_all(&plan, player, &mut |_| {}).expect("every run can be played");
    groups.remove(0).runs
}

fn failures(runs: &[RunResult]) -> impl Iterator<Item = &RunResult> {
    runs.iter().filter(|run| run.outcome != Outcome::Completed)
}

fn fault_of(run: &RunResult) -> FaultCounts {
    run.fault.expect("a faulty controller counts")
}

/// The proof that it was the trap: the guilty line has run, packets left behind the boundary, and their
/// acknowledgements were ignored.
fn assert_guilty_of_the_trap(run: &RunResult) {
    let fault = fault_of(run);
    let name = format!("{}, seed {}: {fault:?}", run.controller, run.seed);
    assert!(fault.shifts > 100, "{name}");
    assert!(fault.sends_behind_boundary > 100, "{name}");
    assert!(fault.acks_ignored > 100, "{name}");
}

/// A time for the report, "not in 10 s" if there is none.
fn in_seconds(nanos: Option<u64>) -> String {
    nanos.map_or_else(
        || "not in 10 s".to_owned(),
        |nanos| format!("{}.{:03} s", nanos / SECOND, nanos % SECOND / MS),
    )
}

/// The largest value; `None` if a run has none.
fn largest(runs: &[RunResult], value: fn(&RunResult) -> Option<u64>) -> Option<u64> {
    let values: Option<Vec<u64>> = runs.iter().map(value).collect();
    values?.into_iter().max()
}
