//! What the tests of this program share: players, plans, and the switch for slow tests.

use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::thread;

use cc::Algorithm;
use interop::expect::{Dimension, Judgement, Verdict};
use interop::play::Player;
use interop::real_player::RealPlayer;
use interop::runner::{Group, Plan, play_all};
use interop::scenario::{Scenario, find};
use interop::virtual_player::VirtualPlayer;

/// Runs over real sockets have the cores for themselves; runs in virtual time share them.
static CORES: RwLock<()> = RwLock::new(());

/// Whether the slow tests were asked for. A test that was not says so, past the test harness, which
/// keeps what a passing test prints to itself.
pub(crate) fn is_slow(test: &str) -> bool {
    let is_slow = env::var_os("TIDEGATE_SLOW").is_some_and(|value| value == "1");
    say(&if is_slow {
        format!("slow test {test}: running")
    } else {
        format!("slow test {test}: SKIPPED, TIDEGATE_SLOW=1 runs it")
    });
    is_slow
}

/// Prints a line that is seen even when the test passes.
pub(crate) fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("standard error is open");
}

#[track_caller]
pub(crate) fn built_in(name: &str) -> Scenario {
    find(name).expect("a built-in scenario")
}

pub(crate) fn virtual_player() -> &'static VirtualPlayer {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    PLAYER.get_or_init(|| VirtualPlayer::new().expect("a player"))
}

/// The same results in less time: `tests/determinism.rs` shows that they are, and so does
/// `every_scenario_repeats_its_runs_from_their_seeds`.
fn quick_player() -> &'static VirtualPlayer {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    PLAYER.get_or_init(VirtualPlayer::without_encryption)
}

/// Plays the seeds 1 to `seeds` one after the other, on this thread's share of the machine.
#[track_caller]
pub(crate) fn play(
    scenario: &Scenario,
    controllers: &[Algorithm],
    seeds: u64,
    player: &dyn Player,
) -> Vec<Group> {
    let _guard = CORES.read().unwrap_or_else(PoisonError::into_inner);
    play_with(scenario, controllers, seeds, player, NonZeroUsize::MIN)
}

/// Plays all seeds of the scenario for all its controllers on all cores.
#[track_caller]
pub(crate) fn play_in_full(scenario: &Scenario) -> Vec<Group> {
    let _guard = CORES.read().unwrap_or_else(PoisonError::into_inner);
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let controllers = &scenario.controllers;
    play_with(scenario, controllers, scenario.seeds, quick_player(), cores)
}

/// Plays over real sockets while nothing else here is played.
#[track_caller]
pub(crate) fn play_real(scenario: &Scenario, seeds: u64) -> Vec<Group> {
    let _guard = CORES.write().unwrap_or_else(PoisonError::into_inner);
    let player = RealPlayer::new().expect("a player");
    let controllers = &scenario.controllers;
    play_with(scenario, controllers, seeds, &player, NonZeroUsize::MIN)
}

/// Does something over real sockets while nothing else here is played.
pub(crate) fn alone<T>(play: impl FnOnce() -> T) -> T {
    let _guard = CORES.write().unwrap_or_else(PoisonError::into_inner);
    play()
}

#[track_caller]
fn play_with(
    scenario: &Scenario,
    controllers: &[Algorithm],
    seeds: u64,
    player: &dyn Player,
    jobs: NonZeroUsize,
) -> Vec<Group> {
    let plan = Plan {
        scenario,
        controllers: controllers.to_vec(),
        seeds: (1..=seeds).collect(),
        limit: scenario.limit,
        jobs,
        qlog_dir: None,
    };
    play_all(&plan, player, &mut |_| {}).expect("every run can be played")
}

/// Every band of every group is met; otherwise says which is not, with the figure.
#[track_caller]
pub(crate) fn assert_all_met(scenario: &Scenario, groups: &[Group]) {
    let mut missed = String::new();
    for verdict in groups.iter().flat_map(|group| &group.verdicts) {
        if verdict.judgement == Judgement::Missed {
            writeln!(missed, "{}", in_words(verdict)).expect("memory");
        }
    }
    assert!(missed.is_empty(), "{}:\n{missed}", scenario.name);
    assert!(groups.iter().all(|group| !group.verdicts.is_empty()));
}

fn in_words(verdict: &Verdict) -> String {
    format!(
        "{}, {}: {}, {}: {}, expected {} ({} of {} runs outside, worst seed {:?})",
        verdict.controller,
        verdict.case,
        verdict.band.metric.key(),
        verdict.band.statistic.words(),
        measured(verdict),
        verdict.band.range_words(),
        verdict.outside_count,
        verdict.run_count,
        verdict.worst_seed,
    )
}

/// The value that was judged, with its unit, rounded down to what a reader needs.
pub(crate) fn measured(verdict: &Verdict) -> String {
    let Some(amount) = verdict.measured else {
        return "no value".to_owned();
    };
    amount_in_words(verdict.band.metric.dimension(), amount)
}

pub(crate) fn amount_in_words(dimension: Dimension, amount: u64) -> String {
    let decimals = |unit: u64, steps: u64, digits: usize| {
        format!(
            "{}.{:0digits$}",
            amount / unit,
            amount % unit / (unit / steps)
        )
    };
    match dimension {
        Dimension::Share => format!("{} %", decimals(10_000_000, 100, 2)),
        Dimension::Time => format!("{} s", decimals(1_000_000_000, 1000, 3)),
        Dimension::RoundTrip => format!("{} ms", decimals(1_000_000, 100, 2)),
        Dimension::Rate => format!("{} Mbit/s", decimals(1_000_000, 1000, 3)),
        Dimension::Count => amount.to_string(),
        Dimension::Size => format!("{amount} B"),
    }
}
