//! Every built-in scenario, played with three seeds, meets its own bands.

use interop::expect::{Judgement, Metric, Statistic};
use interop::scenario::{BUILT_IN, Scenario};

use crate::bench::{assert_all_met, built_in, play, virtual_player};

/// Enough to see a broken controller; the slow tests play all seeds.
const SEEDS: u64 = 3;

#[track_caller]
fn meets_its_own_bands(name: &str) {
    let scenario = built_in(name);
    let groups = play(&scenario, &scenario.controllers, SEEDS, virtual_player());
    assert_eq!(
        groups.len(),
        scenario.cases.len() * scenario.controllers.len()
    );
    assert_all_met(&scenario, &groups);
}

#[test]
fn min_cwnd_trap_meets_its_bands() {
    meets_its_own_bands("min-cwnd-trap");
}

#[test]
fn min_cwnd_trap_scripted_meets_its_bands() {
    meets_its_own_bands("min-cwnd-trap-scripted");
}

#[test]
fn loss_phase_30pct_2s_meets_its_bands() {
    meets_its_own_bands("loss-phase-30pct-2s");
}

#[test]
fn clean_20m_40ms_meets_its_bands() {
    meets_its_own_bands("clean-20m-40ms");
}

#[test]
fn fct_ladder_meets_its_bands() {
    meets_its_own_bands("fct-ladder");
}

#[test]
fn rand_loss_1pct_meets_its_bands() {
    meets_its_own_bands("rand-loss-1pct");
}

#[test]
fn rate_step_meets_its_bands() {
    meets_its_own_bands("rate-step");
}

#[test]
fn every_built_in_scenario_is_played_here() {
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let played = [
        "min-cwnd-trap",
        "min-cwnd-trap-scripted",
        "loss-phase-30pct-2s",
        "clean-20m-40ms",
        "fct-ladder",
        "rand-loss-1pct",
        "rate-step",
    ];
    assert_eq!(names, played);
}

/// What is required of the scenario that the product is judged by stands here a second time, so
/// that the bands in its file cannot be loosened in silence.
#[test]
fn the_bands_of_the_trap_are_those_required() {
    let scenario = built_in("min-cwnd-trap");
    assert_eq!(
        bands_of(&scenario),
        [
            (Metric::Completed, Statistic::Every, ms(1000), None),
            (Metric::Completion, Statistic::Every, None, ms(4500)),
            (Metric::Escape, Statistic::P95, None, ms(200)),
            (Metric::Escape, Statistic::Every, None, ms(300)),
            (Metric::Completed, Statistic::Every, ms(200), ms(600)),
        ]
    );
    assert_eq!((scenario.seeds, scenario.real_seeds), (100, 10));

    let scenario = built_in("loss-phase-30pct-2s");
    assert_eq!(
        bands_of(&scenario),
        [
            (Metric::Completed, Statistic::Every, ms(1000), None),
            (Metric::Completion, Statistic::Median, ms(3200), ms(4200)),
            (Metric::Completion, Statistic::P95, None, ms(4500)),
            (Metric::Completion, Statistic::Every, None, ms(6000)),
        ]
    );
    assert_eq!((scenario.seeds, scenario.real_seeds), (100, 10));
    let controllers: Vec<String> = scenario.controllers.iter().map(|c| c.to_string()).collect();
    assert_eq!(controllers, ["newreno", "cubic"]);
}

fn ms(millis: u64) -> Option<u64> {
    Some(millis * 1_000_000)
}

fn bands_of(scenario: &Scenario) -> Vec<(Metric, Statistic, Option<u64>, Option<u64>)> {
    let bands = scenario.bands.iter().map(|band| {
        let min = band.min.as_ref().map(|level| level.amount);
        let max = band.max.as_ref().map(|level| level.amount);
        (band.metric, band.statistic, min, max)
    });
    bands.collect()
}

/// A link that carries nothing must not pass for a download that lasted its time.
#[test]
fn a_download_without_a_size_that_gets_nothing_did_not_complete() {
    let text = include_str!("../../scenarios/clean-20m-40ms.toml");
    let text = text.replace("queue = \"1 BDP\"", "queue = \"1 BDP\"\nloss = \"100 %\"");
    let scenario = interop::scenario::Scenario::parse("dead.toml", &text).expect("good");
    let groups = play(&scenario, &scenario.controllers, 1, virtual_player());
    for group in &groups {
        let completed = &group.verdicts[0];
        assert_eq!(completed.band.metric, Metric::Completed);
        assert_eq!(completed.judgement, Judgement::Missed);
        assert_eq!(completed.measured, Some(0));
    }
}
