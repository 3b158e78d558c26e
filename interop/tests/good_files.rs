//! What a scenario file says is what the run does.

use std::time::Duration;

use cc::Algorithm;
use interop::expect::{Conditions, Metric, Statistic, judge};
use interop::scenario::{Download, Scenario, built_ins, find};
use netsim::{Change, LossPlace};
use units::{ByteCount, Fraction, Rate, Timestamp};

#[track_caller]
fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text).expect("good")
}

fn with_link(link: &str, rest: &str) -> Scenario {
    scenario(&format!(
        "name = \"t\"\nabout = \"t\"\nlimit = \"60 s\"\ncontrollers = [\"cubic\"]\n\
         [link]\n{link}\n[download]\nduration = \"60 s\"\n{rest}"
    ))
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[test]
fn the_minimum_window_trap_is_the_published_one() {
    let scenario = find("loss-phase-30pct-2s").expect("built in");
    assert_eq!(scenario.seeds, 100);
    assert_eq!(scenario.real_seeds, 10);
    assert_eq!(scenario.limit, Duration::from_secs(10));
    assert_eq!(
        scenario.controllers,
        [Algorithm::NEW_RENO, Algorithm::CUBIC]
    );
    assert_eq!(
        scenario.cases[0].download,
        Download::Size(ByteCount::new(10_000_000))
    );
    assert_eq!(scenario.datagram, ByteCount::new(1350));
    assert_eq!(scenario.base_rtt(), Duration::from_millis(10));
    for direction in [&scenario.forward, &scenario.reverse] {
        assert_eq!(direction.rate, Rate::from_mbps(100));
        assert_eq!(direction.delay, Duration::from_millis(5));
        assert_eq!(direction.loss_place, LossPlace::AfterQueue);
        assert_eq!(
            direction.changes,
            [
                (
                    seconds(0),
                    Change::Loss(Fraction::from_percent(30).expect("a share"))
                ),
                (seconds(2), Change::Loss(Fraction::ZERO)),
            ]
        );
    }
    assert_eq!(scenario.forward.queue, ByteCount::new(250_000));
    assert_eq!(scenario.reverse.queue, ByteCount::new(1_378_000));
}

#[test]
fn built_in_bands_are_those_of_the_specification() {
    let bands: Vec<String> = built_ins()
        .expect("all parse")
        .iter()
        .flat_map(|scenario| {
            scenario.bands.iter().map(|band| {
                let window = band.window.map_or(String::new(), |window| {
                    format!(" [{}, {}]", window.from, window.until)
                });
                format!(
                    "{} {}{} {:?}{}{window}: {} {:?}",
                    scenario.name,
                    band.metric.key(),
                    band.flow
                        .as_ref()
                        .map_or(String::new(), |flow| format!(" of {flow}")),
                    band.statistic,
                    band.case
                        .as_ref()
                        .map_or(String::new(), |case| format!(" {case}")),
                    band.range_words(),
                    band.controllers,
                )
            })
        })
        .collect();
    let expected = r#"min-cwnd-trap completed Every: at least 100 % ["newreno", "cubic"]
min-cwnd-trap completion Every: at most 4.5 s ["newreno", "cubic"]
min-cwnd-trap escape P95: at most 20 RTT ["newreno", "cubic"]
min-cwnd-trap escape Every: at most 300 ms ["newreno", "cubic"]
min-cwnd-trap completed Every: 20 % to 60 % ["cubic-trap"]
min-cwnd-trap-scripted completed Every: at least 100 % ["newreno", "cubic"]
min-cwnd-trap-scripted completion Every: at most 2.5 s ["newreno", "cubic"]
min-cwnd-trap-scripted completed Every: at most 0 % ["cubic-trap"]
loss-phase-30pct-2s completed Every: at least 100 % []
loss-phase-30pct-2s completion Median: 3.2 s to 4.2 s ["newreno", "cubic"]
loss-phase-30pct-2s completion P95: at most 4.5 s ["newreno", "cubic"]
loss-phase-30pct-2s completion Every: at most 6 s ["newreno", "cubic"]
clean-20m-40ms utilisation Median [5.000000000 s, 30.000000000 s]: at least 97 % ["newreno"]
clean-20m-40ms rtt_p95 Median [5.000000000 s, 30.000000000 s]: at most 2.05 RTT ["newreno"]
clean-20m-40ms utilisation Median [5.000000000 s, 30.000000000 s]: at least 98 % ["cubic"]
fct-ladder transfer Median 100 kB: at most 193.2 ms ["newreno", "cubic"]
fct-ladder transfer Median 1 MB: at most 414 ms ["newreno", "cubic"]
fct-ladder transfer Median 10 MB: at most 1.38 s ["newreno", "cubic"]
rand-loss-1pct goodput Median [5.000000000 s, 120.000000000 s]: 2.1 Mbit/s to 3.9 Mbit/s ["newreno", "cubic"]
rate-step delivery Every [19.000000000 s, 20.000000000 s]: at most 25.1 Mbit/s []
rate-step pto_count Every: at most 0 []
rate-step lost_vs_dropped Every: at most 2 % []
rate-step goodput Median [31.000000000 s, 35.000000000 s]: at least 90 Mbit/s ["newreno", "cubic"]
rate-step goodput Median [35.000000000 s, 45.000000000 s]: at least 80 Mbit/s ["newreno", "cubic"]
clean-100m-40ms utilisation Median [5.000000000 s, 30.000000000 s]: at least 98 % ["newreno", "newreno-hystart", "cubic"]
clean-100m-40ms cuts Median: at most 4 ["newreno"]
clean-100m-40ms cuts Median: 3 to 4 ["newreno-hystart"]
clean-100m-40ms goodput Median [5.000000000 s, 30.000000000 s]: at least 93.5 Mbit/s ["cubic"]
clean-100m-40ms cuts Median: 3 to 6 ["cubic"]
clean-100m-40ms pto_count Every: at most 0 ["cubic"]
bufferbloat-50m-30ms rtt_p50 Median [30.000000000 s, 60.000000000 s]: at most 1.5 s ["newreno"]
bufferbloat-50m-30ms rtt_p50 Median [30.000000000 s, 60.000000000 s]: 750 ms to 1.5 s ["newreno-hystart"]
bufferbloat-50m-30ms rtt_p50 Median [30.000000000 s, 60.000000000 s]: 950 ms to 1.53 s ["cubic"]
ge-burst-1pct goodput Median [5.000000000 s, 120.000000000 s]: 4.24 Mbit/s to 6.89 Mbit/s ["newreno"]
ge-burst-1pct goodput Median [5.000000000 s, 120.000000000 s]: 5.1 Mbit/s to 8.29 Mbit/s ["cubic"]
policer-10m-24k completion Median: at most 11 s ["newreno", "cubic"]
mvno-policer completion Median: 10.5 s to 15 s ["newreno", "cubic"]
mvno-policer completion Median: at least 60 s ["newreno-pacing", "cubic-pacing"]
mvno-lossy completion Median: 94 s to 115 s ["newreno"]
mvno-lossy completion Median: 78 s to 95 s ["cubic"]
mvno-lossy-proxy completion Median: 95 s to 113 s ["cubic"]
loss-phase-mid reach Median [12.000000000 s, 40.000000000 s]: 5.5 s to 7.5 s ["newreno"]
loss-phase-mid reach Median [12.000000000 s, 40.000000000 s]: 5 s to 7.5 s ["cubic"]
blackout-2s goodput Every [12.000000000 s, 14.100000000 s]: at least 5 kbit/s ["newreno", "cubic"]
blackout-2s reach Median [12.000000000 s, 30.000000000 s]: at most 3 s ["newreno", "cubic"]
rate-up-x10 reach Median [10.000000000 s, 60.000000000 s]: 9 s to 13 s ["newreno"]
rate-up-x10 reach Median [10.000000000 s, 60.000000000 s]: 8 s to 13.5 s ["cubic"]
aqm-codel-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["newreno"]
aqm-codel-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 95 % ["cubic"]
aqm-codel-20ms queue_delay_p95 Median: at most 15 ms ["cubic"]
aqm-codel-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 75 % ["newreno"]
aqm-codel-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["cubic"]
aqm-codel-100ms queue_delay_p95 Median: at most 15 ms ["cubic"]
intra-fair jain Median [60.000000000 s, 120.000000000 s]: at least 95 % ["newreno"]
intra-fair jain Median [60.000000000 s, 120.000000000 s]: at least 88 % ["cubic"]
two-way goodput Median [5.000000000 s, 60.000000000 s]: at least 28.63 Mbit/s ["newreno", "cubic"]
two-way goodput of back Median [5.000000000 s, 60.000000000 s]: at least 28.63 Mbit/s ["newreno", "cubic"]
rtt-step-up utilisation Median [30.000000000 s, 50.000000000 s]: at least 90 % ["newreno", "cubic"]
rtt-step-up lost_vs_dropped Every: at most 2 % ["newreno", "cubic"]
wifi-jitter-walk utilisation Median [5.000000000 s, 60.000000000 s]: at least 90 % ["newreno", "cubic"]
late-joiner reach of late Median [60.000000000 s, 85.000000000 s]: at most 15 s ["newreno", "cubic"]
late-joiner share of late Median [75.000000000 s, 80.000000000 s]: at least 35 % ["newreno", "cubic"]
ack-loss-10pct utilisation Median [5.000000000 s, 30.000000000 s]: at least 95 % ["newreno", "cubic"]
ack-loss-50pct utilisation Median [5.000000000 s, 30.000000000 s]: at least 95 % ["newreno", "cubic"]
ack-thin-10 utilisation Median [5.000000000 s, 30.000000000 s]: at least 95 % ["newreno", "cubic"]
ack-thin-32 utilisation Median [5.000000000 s, 30.000000000 s]: at least 95 % ["newreno", "cubic"]
ack-slots-20ms utilisation Median [5.000000000 s, 30.000000000 s]: at least 90 % ["newreno", "cubic"]
ecn-codel resent Every: at most 0 B ["newreno", "cubic"]
ecn-codel loss_share Every: at most 0 % ["newreno", "cubic"]
ecn-codel marks Every: at least 1 ["newreno", "cubic"]
ecn-codel cuts Every: at least 1 ["newreno", "cubic"]
ecn-codel rtt_p50 Median [5.000000000 s, 30.000000000 s]: at most 2.1 RTT ["newreno", "cubic"]
ecn-codel share Median [5.000000000 s, 30.000000000 s]: 35 % to 65 % ["newreno", "cubic"]
fairness utilisation Median [20.000000000 s, 60.000000000 s]: at least 95 % ["newreno", "cubic"]
fairness least_share Every [20.000000000 s, 60.000000000 s]: at least 10 % ["newreno", "cubic"]
handover reach Median [10.300000000 s, 20.000000000 s]: at most 4 s ["newreno", "cubic"]
handover reach Median [20.300000000 s, 40.000000000 s]: at most 4 s ["newreno", "cubic"]
reorder-1pct utilisation Median [5.000000000 s, 60.000000000 s]: at least 94.22 % ["newreno"]
reorder-1pct utilisation Median [5.000000000 s, 60.000000000 s]: at least 95 % ["cubic"]
aqm-pie-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["newreno"]
aqm-pie-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 95 % ["cubic"]
aqm-pie-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 75 % ["newreno"]
aqm-pie-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["cubic"]
aqm-red-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["newreno"]
aqm-red-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 95 % ["cubic"]
aqm-red-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 75 % ["newreno"]
aqm-red-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["cubic"]
aqm-dualpi2-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["newreno"]
aqm-dualpi2-20ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 95 % ["cubic"]
aqm-dualpi2-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 75 % ["newreno"]
aqm-dualpi2-100ms utilisation Median [5.000000000 s, 60.000000000 s]: at least 88 % ["cubic"]
buffer-tenth utilisation Median [10.000000000 s, 60.000000000 s]: 77.8 % to 85.7 % ["newreno"]
buffer-tenth utilisation Median [10.000000000 s, 60.000000000 s]: at least 86 % ["cubic"]
buffer-quarter utilisation Median [10.000000000 s, 60.000000000 s]: 85.3 % to 93.2 % ["newreno"]
buffer-quarter utilisation Median [10.000000000 s, 60.000000000 s]: at least 93 % ["cubic"]
buffer-half utilisation Median [10.000000000 s, 60.000000000 s]: at least 92.5 % ["newreno"]
buffer-half utilisation Median [10.000000000 s, 60.000000000 s]: at least 94 % ["cubic"]
buffer-4bdp utilisation Median [10.000000000 s, 60.000000000 s]: at least 96 % ["newreno"]
buffer-4bdp utilisation Median [10.000000000 s, 60.000000000 s]: at least 96 % ["cubic"]
buffer-16bdp utilisation Median [10.000000000 s, 60.000000000 s]: at least 96 % ["newreno"]
buffer-16bdp utilisation Median [10.000000000 s, 60.000000000 s]: at least 96 % ["cubic"]
intra-fair-4 jain Median [60.000000000 s, 120.000000000 s]: at least 95 % ["newreno"]
intra-fair-4 jain Median [60.000000000 s, 120.000000000 s]: at least 93 % ["cubic"]
intra-fair-8 jain Median [60.000000000 s, 120.000000000 s]: at least 95 % ["newreno"]
intra-fair-8 jain Median [60.000000000 s, 120.000000000 s]: at least 93 % ["cubic"]
fair-1v3 utilisation Median [5.000000000 s, 120.000000000 s]: at least 97 % ["cubic"]
fair-1v3 least_share Median [5.000000000 s, 120.000000000 s]: at least 18 % ["cubic"]
fair-1v3 most_share Median [5.000000000 s, 120.000000000 s]: at most 39 % ["cubic"]
rtt-fair share Median [20.000000000 s, 300.000000000 s]: 72.83 % to 87.77 % ["newreno"]
rtt-fair share Median [20.000000000 s, 300.000000000 s]: 61.02 % to 76.21 % ["cubic"]
ecn-coexist least_share Every [20.000000000 s, 60.000000000 s]: at least 5 % ["newreno", "cubic"]
idle-restart largest_burst Every: at most 13500 B ["newreno", "cubic"]
idle-restart-12s largest_burst Every: at most 13500 B ["newreno", "cubic"]
short-flows utilisation Median [5.000000000 s, 60.000000000 s]: at least 90 % ["newreno", "cubic"]
short-flows answer_p95 of mice Median [5.000000000 s, 60.000000000 s]: 268 ms to 652 ms ["newreno"]
short-flows answer_p95 of mice Median [5.000000000 s, 60.000000000 s]: 253 ms to 628 ms ["cubic"]
media-vs-bulk answer_p95 of media Median [5.000000000 s, 60.000000000 s]: at most 1.295 s ["newreno"]
media-vs-bulk answer_p95 of media Median [5.000000000 s, 60.000000000 s]: at most 188.7 ms ["cubic"]
fq-isolation answer_p95 of answers Median [5.000000000 s, 60.000000000 s]: at most 140.6 ms ["newreno", "cubic"]
fifo-no-isolation answer_p95 of answers Median [5.000000000 s, 60.000000000 s]: at least 234.5 ms ["newreno", "cubic"]
wifi-bad completion Median: at most 5 s ["newreno", "cubic"]
wifi-suspended completion Median: at most 3.1 s ["newreno", "cubic"]
wifi-suspended-six completion Median: at most 4.6 s ["newreno"]
wifi-suspended-six completion Median: at most 5 s ["cubic"]
geo-600ms completion Median: 11.385 s to 12.583 s ["newreno"]
ack-narrow-uplink completion Median: at most 7 s ["newreno", "cubic"]
rand-loss-0-03pct goodput Median [5.000000000 s, 120.000000000 s]: 12.05 Mbit/s to 22.22 Mbit/s ["newreno", "cubic"]
rand-loss-0-1pct goodput Median [5.000000000 s, 120.000000000 s]: 6.6 Mbit/s to 12.17 Mbit/s ["newreno", "cubic"]
rand-loss-0-3pct goodput Median [5.000000000 s, 120.000000000 s]: 3.81 Mbit/s to 7.02 Mbit/s ["newreno", "cubic"]
rand-loss-3pct goodput Median [5.000000000 s, 120.000000000 s]: 1.21 Mbit/s to 2.22 Mbit/s ["newreno", "cubic"]
slow-short utilisation Median [5.000000000 s, 30.000000000 s]: at least 97 % ["newreno", "cubic"]
slow-long completion Median: at most 90 s ["newreno", "cubic"]
cellular-att utilisation Median [5.000000000 s, 120.000000000 s]: at least 75 % ["newreno"]
cellular-att utilisation Median [5.000000000 s, 120.000000000 s]: at least 80 % ["cubic"]"#;
    assert_eq!(bands.join("\n"), expected);
}

#[test]
fn levels_mean_what_they_say_in_the_unit_of_the_metric() {
    let scenarios = built_ins().expect("all parse");
    let amount = |name: &str, metric: Metric, statistic: Statistic| {
        let scenario = scenarios.iter().find(|scenario| scenario.name == name);
        let band = scenario
            .expect("there")
            .bands
            .iter()
            .find(|band| band.metric == metric && band.statistic == statistic);
        let band = band.expect("there");
        let level = band.max.as_ref().or(band.min.as_ref());
        level.expect("one end").amount
    };
    assert_eq!(
        amount("loss-phase-30pct-2s", Metric::Completion, Statistic::P95),
        4_500_000_000
    );
    assert_eq!(
        amount("clean-20m-40ms", Metric::RttP95, Statistic::Median),
        82_000_000
    );
    assert_eq!(
        amount("clean-20m-40ms", Metric::Utilisation, Statistic::Median),
        970_000_000
    );
    assert_eq!(
        amount("rate-step", Metric::Delivery, Statistic::Every),
        25_100_000
    );
}

#[test]
fn the_ladder_has_its_bound_from_the_doubling_argument() {
    let scenario = find("fct-ladder").expect("built in");
    let sizes = [(100_000_u64, 4_u64), (1_000_000, 7), (10_000_000, 10)];
    for ((size, rounds), case) in sizes.into_iter().zip(&scenario.cases) {
        assert_eq!(case.download, Download::Size(ByteCount::new(size)));
        // ceil(log2(1 + S / 13 500)): the first sum of doubled windows that covers the size.
        assert!(13_500 * ((1 << rounds) - 1) >= size && 13_500 * ((1 << (rounds - 1)) - 1) < size);
        let ideal_ns = rounds * 40_000_000 + size * 8 * 10;
        let band = scenario
            .bands
            .iter()
            .find(|band| band.case.as_ref() == Some(&case.name))
            .expect("a band for each size");
        let level = band.max.as_ref().expect("an upper end");
        assert_eq!(level.amount, ideal_ns * 115 / 100, "{}", case.name);
    }
}

#[test]
fn an_odd_round_trip_is_split_without_loss() {
    let scenario = with_link(
        "rate = \"1 Mbit/s\"\nrtt = \"15 ns\"\nqueue = \"10 kB\"",
        "",
    );
    assert_eq!(scenario.forward.delay, Duration::from_nanos(7));
    assert_eq!(scenario.reverse.delay, Duration::from_nanos(8));
}

#[test]
fn one_direction_may_differ_from_the_other() {
    let scenario = with_link(
        "rate = \"40 Mbit/s\"\nqueue = \"1 BDP\"\nloss = \"1 %\"\n\
         forward = { delay = \"1 ms\", loss_place = \"before queue\", drop = [9, 5, 5] }\n\
         reverse = { rate = \"400 kbit/s\", delay = \"3 ms\", loss = \"0 %\", queue = \"20 packets\" }",
        "",
    );
    let (forward, reverse) = (&scenario.forward, &scenario.reverse);
    assert_eq!(scenario.base_rtt(), Duration::from_millis(4));
    assert_eq!(forward.rate, Rate::from_mbps(40));
    assert_eq!(forward.queue, ByteCount::new(20_000));
    assert_eq!(forward.loss, Fraction::from_percent(1).expect("a share"));
    assert_eq!(forward.loss_place, LossPlace::BeforeQueue);
    assert_eq!(forward.drop_packets, [5, 9]);
    assert_eq!(reverse.rate, Rate::from_kbps(400));
    assert_eq!(reverse.queue, ByteCount::new(20 * 1378));
    assert_eq!(reverse.loss, Fraction::ZERO);
    assert_eq!(reverse.loss_place, LossPlace::AfterQueue);
    assert_eq!(reverse.drop_packets, Vec::<u64>::new());
}

#[test]
fn phases_change_one_direction_or_both_and_steps_stay() {
    let scenario = with_link(
        "rate = \"100 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"1 BDP\"",
        "[[phase]]\nfrom = \"10 s\"\nuntil = \"20 s\"\nboth = { rate = \"25 Mbit/s\" }\n\
         forward = { queue = \"2 BDP\" }\n\
         [[phase]]\nat = \"30 s\"\nreverse = { delay = \"50 ms\" }\n\
         [[phase]]\nat = \"40 s\"\nforward = { drop = 3 }\n",
    );
    let slow = Change::Rate(Rate::from_mbps(25));
    let fast = Change::Rate(Rate::from_mbps(100));
    assert_eq!(
        scenario.forward.changes,
        [
            (seconds(10), slow),
            // 2 BDP of the link as it was: the rate of this table counts, and it has none.
            (seconds(10), Change::Queue(ByteCount::new(500_000))),
            (seconds(20), fast),
            (seconds(20), Change::Queue(ByteCount::new(250_000))),
            (seconds(40), Change::DropNext(3)),
        ]
    );
    assert_eq!(
        scenario.reverse.changes,
        [
            (seconds(10), slow),
            (seconds(20), fast),
            (seconds(30), Change::Delay(Duration::from_millis(50))),
        ]
    );
}

#[test]
fn runs_must_complete_unless_the_file_says_otherwise() {
    let link = "rate = \"1 Mbit/s\"\nrtt = \"10 ms\"\nqueue = \"10 kB\"";
    let judged = |expect: &str, controller: &str| -> Vec<String> {
        let scenario = with_link(link, expect);
        let conditions = Conditions {
            is_real: false,
            limit: scenario.limit,
        };
        let verdicts = judge(
            &scenario,
            controller,
            &scenario.cases[0].name,
            &[],
            conditions,
        );
        let bands = verdicts.iter().map(|verdict| &verdict.band);
        bands
            .map(|band| format!("{} {}", band.metric.key(), band.range_words()))
            .collect()
    };
    assert_eq!(judged("", "newreno"), ["completed at least 100 %"]);
    assert_eq!(
        judged("[expect.all]\npto_count = { max = 3 }", "newreno"),
        ["completed at least 100 %", "pto_count at most 3"]
    );
    let lenient = "[expect.newreno]\ncompleted = { min = \"90 %\" }";
    assert_eq!(judged(lenient, "newreno"), ["completed at least 90 %"]);
    // What is said of one controller says nothing of another.
    assert_eq!(judged(lenient, "cubic"), ["completed at least 100 %"]);
}

#[test]
fn the_start_is_drawn_from_the_seed_within_one_round_trip() {
    let scenario = find("clean-20m-40ms").expect("built in");
    let starts: Vec<u64> = (1..=200)
        .map(|seed| scenario.start_at(seed).as_nanos())
        .collect();
    assert!(starts.iter().all(|start| *start < 40_000_000));
    assert!(starts.iter().any(|start| *start < 10_000_000));
    assert!(starts.iter().any(|start| *start > 30_000_000));
    assert_eq!(scenario.start_at(7), scenario.start_at(7));
    assert_ne!(scenario.start_at(7), scenario.start_at(8));
}

#[test]
fn the_pipes_carry_out_the_plan() {
    let scenario = find("loss-phase-30pct-2s").expect("built in");
    let streams = netsim::RandomStreams::new(1);
    let mut pipe = scenario.forward.pipe(&streams, "forward").expect("good");
    let mut delivered = 0_u64;
    // One packet every 1 ms for 4 s: 30 % of the first half are lost and none of the second.
    for millis in 0..4000 {
        let now = Timestamp::from_millis(millis);
        pipe.advance(now, &mut |_, _| delivered += 1);
        let size = ByteCount::new(1378);
        pipe.arrive(now, netsim::Packet::new(size, ()));
    }
    pipe.advance(seconds(5), &mut |_, _| delivered += 1);
    let lost = pipe.counters().dropped_loss_after.packets;
    assert_eq!(delivered + lost, 4000);
    assert!((520..=680).contains(&lost), "{lost} of 2000, 4 sigma is 82");
}

#[test]
fn the_example_in_the_reference_can_be_played() {
    let reference = include_str!("../scenarios/README.md");
    let mut examples: Vec<&str> = reference
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 5);
    // The second is a link of its own.
    let impairments = examples.remove(1);
    let download = "[download]\nsize = \"1 MB\"\n";
    let about = "name = \"x\"\nabout = \"y\"\nlimit = \"10 s\"\ncontrollers = [\"cubic\"]\n";
    let impaired = scenario(&format!("{about}{impairments}{download}"));
    let streams = netsim::RandomStreams::new(7);
    for (direction, plan) in [
        ("forward", &impaired.forward),
        ("reverse", &impaired.reverse),
    ] {
        plan.pipe::<()>(&streams, direction).expect("a pipe");
    }
    // The first has a rtt and a delay to show both; only one of them is allowed at a time. The
    // bands of the second need a longer run and two sizes.
    let text = examples.join("\n");
    let text = text
        .replace("delay = \"5 ms\", ", "")
        .replace("limit = \"10 s\"", "limit = \"30 s\"")
        .replace("size = \"10 MB\"", "sizes = [\"100 kB\", \"1 MB\"]");
    let scenario = scenario(&text);
    assert_eq!(scenario.forward.drop_spaced.len(), 1);
    assert_eq!(
        scenario
            .article
            .as_ref()
            .map(|article| article.figures.len()),
        Some(2)
    );
    assert_eq!(scenario.cases.len(), 2);
    assert_eq!(scenario.bands.len(), 7);
    for (key, _) in Metric::ALL {
        assert!(
            reference.contains(&format!("`{key}`")),
            "{key} is not explained"
        );
    }
}
