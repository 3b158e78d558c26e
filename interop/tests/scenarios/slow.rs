//! Every scenario with all its seeds, and the same over real sockets: `./check slow`.

use std::sync::OnceLock;

use interop::expect::{Dimension, Judgement, Metric, Verdict};
use interop::results::{Outcome, RunResult};
use interop::runner::Group;
use interop::scenario::{Scenario, built_ins};

use crate::bench::{
    amount_in_words, assert_all_met, built_in, is_slow, play, play_in_full, play_real, say,
    virtual_player,
};

/// A scenario with what its runs showed.
pub(crate) struct Played {
    pub(crate) scenario: Scenario,
    pub(crate) groups: Vec<Group>,
}

/// Every scenario with all its seeds in virtual time, played once for all tests.
pub(crate) fn catalogue() -> &'static [Played] {
    static CATALOGUE: OnceLock<Vec<Played>> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let play = |scenario| Played {
            groups: play_in_full(&scenario),
            scenario,
        };
        built_ins()
            .expect("they parse")
            .into_iter()
            .map(play)
            .collect()
    })
}

/// The trap over real sockets, played once for all tests.
pub(crate) fn real_trap() -> &'static Played {
    static TRAP: OnceLock<Played> = OnceLock::new();
    TRAP.get_or_init(|| {
        let mut scenario = built_in("min-cwnd-trap");
        // What is wrong on purpose is played over real sockets in `tests/trap`.
        scenario
            .controllers
            .retain(|controller| !controller.is_faulty());
        Played {
            groups: play_real(&scenario, scenario.real_seeds),
            scenario,
        }
    })
}

/// The clean link over real sockets, one run per controller, played once for all tests.
pub(crate) fn real_clean_link() -> &'static Played {
    static CLEAN: OnceLock<Played> = OnceLock::new();
    CLEAN.get_or_init(|| {
        let scenario = built_in("clean-20m-40ms");
        Played {
            groups: play_real(&scenario, 1),
            scenario,
        }
    })
}

#[test]
fn every_scenario_meets_its_bands_with_all_its_seeds() {
    if !is_slow("every_scenario_meets_its_bands_with_all_its_seeds") {
        return;
    }
    for played in catalogue() {
        let runs = played
            .groups
            .iter()
            .map(|group| group.runs.len())
            .sum::<usize>();
        say(&format!(
            "{}: {runs} runs in virtual time",
            played.scenario.name
        ));
    }
    for played in catalogue() {
        for group in &played.groups {
            assert_eq!(group.runs.len() as u64, played.scenario.seeds);
        }
        assert_all_met(&played.scenario, &played.groups);
    }
}

/// scenarios.md 2.2, row S08: how the goodput falls with the loss, over two decades of it.
#[test]
fn goodput_falls_with_the_square_root_of_the_loss() {
    if !is_slow("goodput_falls_with_the_square_root_of_the_loss") {
        return;
    }
    let points = [
        ("rand-loss-0-03pct", 0.03),
        ("rand-loss-0-1pct", 0.1),
        ("rand-loss-0-3pct", 0.3),
        ("rand-loss-1pct", 1.0),
        ("rand-loss-3pct", 3.0),
    ];
    for (controller, allowed) in [("newreno", -0.60..=-0.45), ("cubic", -0.75..=-0.45)] {
        let logs = points.map(|(name, percent): (&str, f64)| {
            let mut played = catalogue().iter();
            let played = played
                .find(|played| played.scenario.name == name)
                .expect("a built-in scenario");
            let mut groups = played.groups.iter();
            let group = groups
                .find(|group| group.controller.to_string() == controller)
                .expect("played");
            let of_goodput = |verdict: &&Verdict| verdict.band.metric == Metric::Goodput;
            let median = group.verdicts.iter().find(of_goodput).expect("a band");
            (
                percent.ln(),
                (median.measured.expect("a value") as f64).ln(),
            )
        });
        let slope = slope(&logs);
        say(&format!(
            "{controller}: goodput goes with the loss to the power of {slope:.3}"
        ));
        assert!(allowed.contains(&slope), "{controller}: {slope:.3}");
    }
}

/// Of the regression line through these points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    across / along
}

#[test]
fn the_slope_of_a_square_root_is_a_half() {
    let points = [1.0_f64, 4.0, 9.0].map(|x| (x.ln(), (3.0 * x.sqrt()).ln()));
    assert!((slope(&points) - 0.5).abs() < 1e-9);
}

/// Byte for byte, beside other runs on other cores or alone; and another seed is another run.
#[test]
fn every_scenario_repeats_its_runs_from_their_seeds() {
    if !is_slow("every_scenario_repeats_its_runs_from_their_seeds") {
        return;
    }
    for played in catalogue() {
        let scenario = &played.scenario;
        let first = &scenario.controllers[..1];
        let again = play(scenario, first, 1, virtual_player());
        for again in again {
            let mut groups = played.groups.iter();
            let before = groups
                .find(|group| group.controller == first[0] && group.case == again.case)
                .expect("played before");
            let json = |run: &RunResult| serde_json::to_string(run).expect("JSON");
            let name = &scenario.name;
            assert_eq!(json(&again.runs[0]), json(&before.runs[0]), "{name}");
            let digest = |run: &RunResult| run.forward.trace_digest.clone();
            assert_ne!(
                digest(&before.runs[0]),
                digest(&before.runs[1]),
                "{name}: two seeds, one run"
            );
        }
    }
}

#[test]
fn ten_of_ten_real_downloads_leave_the_trap_within_ten_seconds() {
    if !is_slow("ten_of_ten_real_downloads_leave_the_trap_within_ten_seconds") {
        return;
    }
    let played = real_trap();
    for group in &played.groups {
        assert_eq!(group.runs.len(), 10);
        let completions: Vec<String> = group.runs.iter().map(completion_in_words).collect();
        say(&format!(
            "min-cwnd-trap over real sockets, {}: {}",
            group.controller,
            completions.join(", ")
        ));
    }
    for run in played.groups.iter().flat_map(|group| &group.runs) {
        assert_eq!(
            run.outcome,
            Outcome::Completed,
            "{}, seed {}",
            run.controller,
            run.seed
        );
        assert!(run.completion_ns.is_some_and(|span| span <= 10_000_000_000));
    }
}

fn completion_in_words(run: &RunResult) -> String {
    match run.completion_ns {
        Some(completion) => amount_in_words(Dimension::Time, completion),
        None => format!("{:?}", run.outcome),
    }
}

/// The figures of the simulator beside those of sockets on this machine. They are printed, not
/// gated: how late this machine wakes up is no property of the program (scenarios.md 4.3).
#[test]
fn the_clean_link_is_kept_full_over_real_sockets_too() {
    if !is_slow("the_clean_link_is_kept_full_over_real_sockets_too") {
        return;
    }
    let real = real_clean_link();
    let simulated = catalogue()
        .iter()
        .find(|played| played.scenario.name == real.scenario.name)
        .expect("in the catalogue");
    for (real, simulated) in real.groups.iter().zip(&simulated.groups) {
        say(&format!(
            "clean-20m-40ms, {}, seed 1: simulated {}; real {}, {}",
            real.controller,
            clean_link_in_words(&simulated.runs[0]),
            clean_link_in_words(&real.runs[0]),
            lateness_in_words(&real.runs),
        ));
    }
    for group in &real.groups {
        let completed = group
            .verdicts
            .iter()
            .find(|verdict| verdict.band.metric == Metric::Completed)
            .expect("judged over real sockets too");
        // On a machine that is too busy nothing is judged; that it completes is asserted all the same.
        let is_late = group.runs.iter().any(RunResult::is_late);
        assert_eq!(completed.judgement == Judgement::Met, !is_late);
        assert_eq!(group.runs[0].outcome, Outcome::Completed);
    }
}

/// Utilisation and RTT after the start-up of a run on the clean link.
pub(crate) fn clean_link_in_words(run: &RunResult) -> String {
    let window = run.windows.first().expect("its bands have one");
    let rtt = window.rtt.as_ref().map_or(0, |rtt| rtt.p95_ns);
    format!(
        "{} utilisation, {} goodput, RTT p95 {}",
        amount_in_words(Dimension::Share, window.utilisation_ppb),
        amount_in_words(Dimension::Rate, window.goodput_bps),
        amount_in_words(Dimension::RoundTrip, rtt),
    )
}

/// How late the relay was in the worst of these runs.
pub(crate) fn lateness_in_words(runs: &[RunResult]) -> String {
    let timings = runs.iter().filter_map(|run| run.real.as_ref());
    let worst = timings
        .map(|timing| timing.lateness_p99_ns)
        .max()
        .unwrap_or(0);
    format!(
        "relay late by {} (p99)",
        amount_in_words(Dimension::RoundTrip, worst)
    )
}
