//! Bands, statistics and verdicts on numbers that are known.

use super::*;
use crate::results::{FlowResult, FlowWindow, LinkCounts};

fn run(seed: u64) -> RunResult {
    RunResult {
        scenario: "s".to_owned(),
        case: "c".to_owned(),
        controller: "newreno".to_owned(),
        seed,
        outcome: Outcome::Completed,
        ended_at_ns: 0,
        completion_ns: Some(1_000_000 * seed),
        handshake_ns: Some(100_000),
        app_bytes: 0,
        goodput_bps: 0,
        windows: Vec::new(),
        packets_sent: 0,
        packets_lost: 0,
        retransmitted_bytes: 0,
        pto_count: 0,
        cuts: 0,
        transitions: Vec::new(),
        flips: 0,
        time_at_minimum_ns: 0,
        window_at_end_bytes: None,
        escape_ns: None,
        largest_burst_bytes: None,
        violation: None,
        fault: None,
        rtt: None,
        queue_delay: None,
        forward: LinkCounts::default(),
        reverse: LinkCounts::default(),
        tracks: crate::record::Tracks::default(),
        app_bytes_per_100_ms: Vec::new(),
        flows: Vec::new(),
        real: None,
    }
}

fn level(amount: u64) -> Option<Level> {
    Some(Level {
        text: amount.to_string(),
        amount,
    })
}

fn band(metric: Metric, statistic: Statistic, min: Option<u64>, max: Option<u64>) -> Band {
    Band {
        metric,
        statistic,
        window: None,
        case: None,
        flow: None,
        goal: None,
        controllers: Vec::new(),
        min_runs: 0,
        min: min.and_then(level),
        max: max.and_then(level),
    }
}

#[track_caller]
fn verdict(band: &Band, runs: &[RunResult]) -> (Option<u64>, Option<u64>, u64, bool) {
    let conditions = Conditions {
        is_real: false,
        limit: Duration::from_secs(10),
    };
    let verdict = judge_band(band, "newreno", "c", runs, conditions);
    (
        verdict.measured,
        verdict.worst_seed,
        verdict.outside_count,
        verdict.judgement == Judgement::Met,
    )
}

/// Completion of 1 ms for seed 1, 2 ms for seed 2, and so on.
fn ten_runs() -> Vec<RunResult> {
    (1..=10).map(run).collect()
}

#[test]
fn both_ends_belong_to_a_band() {
    let runs = ten_runs();
    let completion = |min, max| band(Metric::Completion, Statistic::Median, min, max);
    let median = Some(5_000_000);
    assert!(verdict(&completion(median, median), &runs).3);
    assert!(!verdict(&completion(Some(5_000_001), None), &runs).3);
    assert!(!verdict(&completion(None, Some(4_999_999)), &runs).3);
}

#[test]
fn a_band_for_many_runs_says_nothing_about_few() {
    let conditions = Conditions {
        is_real: false,
        limit: Duration::from_secs(10),
    };
    let mut band = band(Metric::Completed, Statistic::Every, None, Some(0));
    band.min_runs = 10;
    let judged = |runs: &[RunResult]| judge_band(&band, "newreno", "c", runs, conditions);
    assert_eq!(judged(&ten_runs()).judgement, Judgement::Missed);
    assert_eq!(
        judged(&ten_runs()[..9]).judgement,
        Judgement::NotJudged("it takes at least 10 runs".to_owned())
    );
}

#[test]
fn the_least_and_the_most_are_the_ends_of_what_was_seen() {
    let mut runs = ten_runs();
    let measured = |statistic, runs: &[RunResult]| {
        measure_only(&band(Metric::Completion, statistic, None, None), runs)
    };
    assert_eq!(measured(Statistic::Least, &runs), Some(1_000_000));
    assert_eq!(measured(Statistic::Most, &runs), Some(10_000_000));
    runs[3].completion_ns = None;
    assert_eq!(measured(Statistic::Most, &runs), None);
}

#[test]
fn every_run_is_judged_by_the_worst_at_either_end() {
    let runs = ten_runs();
    let completion = |min, max| band(Metric::Completion, Statistic::Every, min, max);
    assert_eq!(
        verdict(&completion(None, Some(8_000_000)), &runs),
        (Some(10_000_000), Some(10), 2, false)
    );
    assert_eq!(
        verdict(&completion(Some(3_000_000), None), &runs),
        (Some(1_000_000), Some(1), 2, false)
    );
    assert_eq!(
        verdict(&completion(Some(3_000_000), Some(10_000_000)), &runs),
        (Some(1_000_000), Some(1), 2, false)
    );
    assert_eq!(
        verdict(&completion(Some(3_000_000), Some(9_000_000)), &runs),
        (Some(10_000_000), Some(10), 3, false)
    );
    assert_eq!(
        verdict(&completion(Some(1_000_000), Some(10_000_000)), &runs),
        (Some(10_000_000), Some(10), 0, true)
    );
}

#[test]
fn a_run_without_a_value_is_worse_than_any() {
    let mut runs = ten_runs();
    runs[0].completion_ns = None;
    let completion = |statistic| band(Metric::Completion, statistic, None, Some(u64::MAX));
    assert_eq!(
        verdict(&completion(Statistic::Every), &runs),
        (None, Some(1), 1, false)
    );
    assert_eq!(
        verdict(&completion(Statistic::P95), &runs),
        (None, None, 1, false)
    );
    assert_eq!(
        verdict(&completion(Statistic::Median), &runs),
        (Some(6_000_000), None, 1, true)
    );
}

#[test]
fn completion_is_a_share_of_all_runs() {
    let mut runs = ten_runs();
    runs[3].outcome = Outcome::LimitReached;
    runs[7].outcome = Outcome::Failed("x".to_owned());
    let completed = |min| band(Metric::Completed, Statistic::Every, Some(min), None);
    let seen = verdict(&completed(800_000_000), &runs);
    assert_eq!((seen.0, seen.1, seen.3), (Some(800_000_000), Some(4), true));
    assert!(!verdict(&completed(800_000_001), &runs).3);
}

#[test]
fn losses_declared_are_compared_with_drops_both_ways() {
    let apart = |lost, dropped| {
        let mut run = run(1);
        run.packets_lost = lost;
        run.forward.dropped_queue_packets = dropped;
        measure_only(
            &band(Metric::LostVsDropped, Statistic::Median, None, None),
            &[run],
        )
    };
    assert_eq!(apart(1000, 1000), Some(0));
    assert_eq!(apart(1020, 1000), Some(20_000_000));
    assert_eq!(apart(980, 1000), Some(20_000_000));
    assert_eq!(apart(0, 0), Some(0));
    assert_eq!(apart(1, 0), Some(PPB));
    assert_eq!(apart(0, 1), Some(PPB));
}

#[test]
fn losses_marks_and_what_was_sent_again_are_counted() {
    let mut seen = run(1);
    seen.forward.offered_packets = 2_000;
    seen.forward.dropped_aqm_packets = 30;
    seen.forward.dropped_after_queue_packets = 10;
    seen.forward.marked_packets = 7;
    seen.retransmitted_bytes = 9_000;
    seen.largest_burst_bytes = Some(2_700);
    let measured = |metric, run: &RunResult| {
        let band = band(metric, Statistic::Median, None, None);
        measure_only(&band, std::slice::from_ref(run))
    };
    assert_eq!(measured(Metric::LossShare, &seen), Some(PPB / 50));
    assert_eq!(measured(Metric::Marks, &seen), Some(7));
    assert_eq!(measured(Metric::Resent, &seen), Some(9_000));
    assert_eq!(measured(Metric::LargestBurst, &seen), Some(2_700));
    assert_eq!(measured(Metric::LossShare, &run(1)), Some(0));
    assert_eq!(measured(Metric::LargestBurst, &run(1)), None);
}

#[test]
fn the_least_and_the_most_share_are_among_greedy_flows_that_go_the_same_way() {
    let window = Window {
        from: Timestamp::ZERO,
        until: Timestamp::from_secs(1),
    };
    let flow = |name: &str, goodput_bps, is_greedy, is_reverse| FlowResult {
        name: name.to_owned(),
        controller: "cubic".to_owned(),
        is_reverse,
        is_greedy,
        app_bytes: 0,
        windows: vec![FlowWindow {
            from_ns: 0,
            until_ns: 1_000_000_000,
            goodput_bps,
            answers: None,
        }],
        answers: None,
        packets_lost: 0,
        pto_count: 0,
        app_bytes_per_100_ms: Vec::new(),
    };
    let mut seen = run(1);
    seen.flows = vec![
        flow("a", 50, true, false),
        flow("b", 20, true, false),
        flow("c", 30, true, false),
        flow("mice", 1, false, false),
        flow("back", 900, true, true),
    ];
    let measured = |metric, run: &RunResult| {
        let mut band = band(metric, Statistic::Median, None, None);
        band.window = Some(window);
        measure_only(&band, std::slice::from_ref(run))
    };
    assert_eq!(measured(Metric::LeastShare, &seen), Some(PPB / 5));
    assert_eq!(measured(Metric::MostShare, &seen), Some(PPB / 2));
    for flow in &mut seen.flows {
        flow.windows[0].goodput_bps = 0;
    }
    assert_eq!(measured(Metric::LeastShare, &seen), None);
}

#[test]
fn no_runs_are_no_success() {
    let completed = band(Metric::Completed, Statistic::Every, Some(PPB), None);
    assert!(!verdict(&completed, &[]).3);
}

#[test]
fn the_transfer_is_the_completion_without_the_handshake() {
    let transfer = band(Metric::Transfer, Statistic::Median, None, None);
    assert_eq!(measure_only(&transfer, &[run(2)]), Some(1_900_000));
}
