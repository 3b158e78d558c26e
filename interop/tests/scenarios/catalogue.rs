//! Every built-in scenario, played with three seeds, meets its own bands.

use interop::expect::{Judgement, Metric, Statistic};
use interop::scenario::{BUILT_IN, Scenario};

use crate::bench::{assert_all_met, built_in, is_slow, play, virtual_player};
use crate::slow::catalogue;

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

/// The same with all seeds for what takes too long otherwise; only with the slow tests, which have played it already.
#[track_caller]
fn meets_its_own_bands_if_slow(test: &str, name: &str) {
    if !is_slow(test) {
        return;
    }
    let mut played = catalogue().iter();
    let played = played
        .find(|played| played.scenario.name == name)
        .expect("a built-in scenario");
    assert_all_met(&played.scenario, &played.groups);
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
fn clean_100m_40ms_meets_its_bands() {
    meets_its_own_bands_if_slow("clean_100m_40ms_meets_its_bands", "clean-100m-40ms");
}

#[test]
fn bufferbloat_50m_30ms_meets_its_bands() {
    meets_its_own_bands_if_slow(
        "bufferbloat_50m_30ms_meets_its_bands",
        "bufferbloat-50m-30ms",
    );
}

#[test]
fn ge_burst_1pct_meets_its_bands() {
    meets_its_own_bands("ge-burst-1pct");
}

#[test]
fn policer_10m_24k_meets_its_bands() {
    meets_its_own_bands("policer-10m-24k");
}

#[test]
fn mvno_policer_meets_its_bands() {
    meets_its_own_bands("mvno-policer");
}

#[test]
fn mvno_lossy_meets_its_bands() {
    meets_its_own_bands("mvno-lossy");
}

#[test]
fn mvno_lossy_proxy_meets_its_bands() {
    meets_its_own_bands("mvno-lossy-proxy");
}

#[test]
fn loss_phase_mid_meets_its_bands() {
    meets_its_own_bands("loss-phase-mid");
}

#[test]
fn blackout_2s_meets_its_bands() {
    meets_its_own_bands("blackout-2s");
}

#[test]
fn rate_up_x10_meets_its_bands() {
    meets_its_own_bands_if_slow("rate_up_x10_meets_its_bands", "rate-up-x10");
}

#[test]
fn aqm_codel_20ms_meets_its_bands() {
    meets_its_own_bands("aqm-codel-20ms");
}

#[test]
fn aqm_codel_100ms_meets_its_bands() {
    meets_its_own_bands("aqm-codel-100ms");
}

#[test]
fn intra_fair_meets_its_bands() {
    meets_its_own_bands_if_slow("intra_fair_meets_its_bands", "intra-fair");
}

#[test]
fn two_way_meets_its_bands() {
    meets_its_own_bands_if_slow("two_way_meets_its_bands", "two-way");
}

#[test]
fn rtt_step_up_meets_its_bands() {
    meets_its_own_bands("rtt-step-up");
}

#[test]
fn wifi_jitter_walk_meets_its_bands() {
    meets_its_own_bands("wifi-jitter-walk");
}

#[test]
fn late_joiner_meets_its_bands() {
    meets_its_own_bands_if_slow("late_joiner_meets_its_bands", "late-joiner");
}

#[test]
fn ack_loss_10pct_meets_its_bands() {
    meets_its_own_bands("ack-loss-10pct");
}

#[test]
fn ack_loss_50pct_meets_its_bands() {
    meets_its_own_bands("ack-loss-50pct");
}

#[test]
fn ack_thin_10_meets_its_bands() {
    meets_its_own_bands("ack-thin-10");
}

#[test]
fn ack_thin_32_meets_its_bands() {
    meets_its_own_bands("ack-thin-32");
}

#[test]
fn ack_slots_20ms_meets_its_bands() {
    meets_its_own_bands("ack-slots-20ms");
}

#[test]
fn ecn_codel_meets_its_bands() {
    meets_its_own_bands_if_slow("ecn_codel_meets_its_bands", "ecn-codel");
}

#[test]
fn fairness_meets_its_bands() {
    meets_its_own_bands_if_slow("fairness_meets_its_bands", "fairness");
}

#[test]
fn handover_meets_its_bands() {
    meets_its_own_bands_if_slow("handover_meets_its_bands", "handover");
}

#[test]
fn reorder_1pct_meets_its_bands() {
    meets_its_own_bands_if_slow("reorder_1pct_meets_its_bands", "reorder-1pct");
}

#[test]
fn aqm_pie_20ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_pie_20ms_meets_its_bands", "aqm-pie-20ms");
}

#[test]
fn aqm_pie_100ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_pie_100ms_meets_its_bands", "aqm-pie-100ms");
}

#[test]
fn aqm_red_20ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_red_20ms_meets_its_bands", "aqm-red-20ms");
}

#[test]
fn aqm_red_100ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_red_100ms_meets_its_bands", "aqm-red-100ms");
}

#[test]
fn aqm_dualpi2_20ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_dualpi2_20ms_meets_its_bands", "aqm-dualpi2-20ms");
}

#[test]
fn aqm_dualpi2_100ms_meets_its_bands() {
    meets_its_own_bands_if_slow("aqm_dualpi2_100ms_meets_its_bands", "aqm-dualpi2-100ms");
}

#[test]
fn buffer_tenth_meets_its_bands() {
    meets_its_own_bands_if_slow("buffer_tenth_meets_its_bands", "buffer-tenth");
}

#[test]
fn buffer_quarter_meets_its_bands() {
    meets_its_own_bands_if_slow("buffer_quarter_meets_its_bands", "buffer-quarter");
}

#[test]
fn buffer_half_meets_its_bands() {
    meets_its_own_bands_if_slow("buffer_half_meets_its_bands", "buffer-half");
}

#[test]
fn buffer_4bdp_meets_its_bands() {
    meets_its_own_bands_if_slow("buffer_4bdp_meets_its_bands", "buffer-4bdp");
}

#[test]
fn buffer_16bdp_meets_its_bands() {
    meets_its_own_bands_if_slow("buffer_16bdp_meets_its_bands", "buffer-16bdp");
}

#[test]
fn intra_fair_4_meets_its_bands() {
    meets_its_own_bands_if_slow("intra_fair_4_meets_its_bands", "intra-fair-4");
}

#[test]
fn intra_fair_8_meets_its_bands() {
    meets_its_own_bands_if_slow("intra_fair_8_meets_its_bands", "intra-fair-8");
}

#[test]
fn fair_1v3_meets_its_bands() {
    meets_its_own_bands_if_slow("fair_1v3_meets_its_bands", "fair-1v3");
}

#[test]
fn rtt_fair_meets_its_bands() {
    meets_its_own_bands_if_slow("rtt_fair_meets_its_bands", "rtt-fair");
}

#[test]
fn ecn_coexist_meets_its_bands() {
    meets_its_own_bands_if_slow("ecn_coexist_meets_its_bands", "ecn-coexist");
}

#[test]
fn idle_restart_meets_its_bands() {
    meets_its_own_bands("idle-restart");
}

#[test]
fn idle_restart_12s_meets_its_bands() {
    meets_its_own_bands("idle-restart-12s");
}

#[test]
fn short_flows_meets_its_bands() {
    meets_its_own_bands_if_slow("short_flows_meets_its_bands", "short-flows");
}

#[test]
fn media_vs_bulk_meets_its_bands() {
    meets_its_own_bands_if_slow("media_vs_bulk_meets_its_bands", "media-vs-bulk");
}

#[test]
fn fq_isolation_meets_its_bands() {
    meets_its_own_bands_if_slow("fq_isolation_meets_its_bands", "fq-isolation");
}

#[test]
fn fifo_no_isolation_meets_its_bands() {
    meets_its_own_bands_if_slow("fifo_no_isolation_meets_its_bands", "fifo-no-isolation");
}

#[test]
fn wifi_bad_meets_its_bands() {
    meets_its_own_bands("wifi-bad");
}

#[test]
fn wifi_suspended_meets_its_bands() {
    meets_its_own_bands("wifi-suspended");
}

#[test]
fn wifi_suspended_six_meets_its_bands() {
    meets_its_own_bands("wifi-suspended-six");
}

#[test]
fn geo_600ms_meets_its_bands() {
    meets_its_own_bands_if_slow("geo_600ms_meets_its_bands", "geo-600ms");
}

#[test]
fn ack_narrow_uplink_meets_its_bands() {
    meets_its_own_bands("ack-narrow-uplink");
}

#[test]
fn rand_loss_0_03pct_meets_its_bands() {
    meets_its_own_bands_if_slow("rand_loss_0_03pct_meets_its_bands", "rand-loss-0-03pct");
}

#[test]
fn rand_loss_0_1pct_meets_its_bands() {
    meets_its_own_bands_if_slow("rand_loss_0_1pct_meets_its_bands", "rand-loss-0-1pct");
}

#[test]
fn rand_loss_0_3pct_meets_its_bands() {
    meets_its_own_bands_if_slow("rand_loss_0_3pct_meets_its_bands", "rand-loss-0-3pct");
}

#[test]
fn rand_loss_3pct_meets_its_bands() {
    meets_its_own_bands("rand-loss-3pct");
}

#[test]
fn slow_short_meets_its_bands() {
    meets_its_own_bands("slow-short");
}

#[test]
fn slow_long_meets_its_bands() {
    meets_its_own_bands("slow-long");
}

#[test]
fn cellular_att_meets_its_bands() {
    meets_its_own_bands("cellular-att");
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
        "clean-100m-40ms",
        "bufferbloat-50m-30ms",
        "ge-burst-1pct",
        "policer-10m-24k",
        "mvno-policer",
        "mvno-lossy",
        "mvno-lossy-proxy",
        "loss-phase-mid",
        "blackout-2s",
        "rate-up-x10",
        "aqm-codel-20ms",
        "aqm-codel-100ms",
        "intra-fair",
        "two-way",
        "rtt-step-up",
        "wifi-jitter-walk",
        "late-joiner",
        "ack-loss-10pct",
        "ack-loss-50pct",
        "ack-thin-10",
        "ack-thin-32",
        "ack-slots-20ms",
        "ecn-codel",
        "fairness",
        "handover",
        "reorder-1pct",
        "aqm-pie-20ms",
        "aqm-pie-100ms",
        "aqm-red-20ms",
        "aqm-red-100ms",
        "aqm-dualpi2-20ms",
        "aqm-dualpi2-100ms",
        "buffer-tenth",
        "buffer-quarter",
        "buffer-half",
        "buffer-4bdp",
        "buffer-16bdp",
        "intra-fair-4",
        "intra-fair-8",
        "fair-1v3",
        "rtt-fair",
        "ecn-coexist",
        "idle-restart",
        "idle-restart-12s",
        "short-flows",
        "media-vs-bulk",
        "fq-isolation",
        "fifo-no-isolation",
        "wifi-bad",
        "wifi-suspended",
        "wifi-suspended-six",
        "geo-600ms",
        "ack-narrow-uplink",
        "rand-loss-0-03pct",
        "rand-loss-0-1pct",
        "rand-loss-0-3pct",
        "rand-loss-3pct",
        "slow-short",
        "slow-long",
        "cellular-att",
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
