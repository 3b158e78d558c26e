//! Whether virtual time is like real time: four scenarios, shortened, in virtual time and over real sockets through the
//! relay, side by side. `./check slow`.
//!
//! The k-th packet has the same fate in both, because losses are drawn per packet from the same seed; what differs is when
//! things happen. link-model.md 1.4: where the relay was late by more than a millisecond nothing is judged.

use std::num::NonZeroUsize;
use std::time::Duration;

use interop::expect::Dimension;
use interop::play::Player;
use interop::real_player::RealPlayer;
use interop::results::{Outcome, RunResult};
use interop::runner::{Plan, play_all};
use interop::scenario::{Download, Scenario};

use crate::bench::{alone, amount_in_words, built_in, is_slow, say, virtual_player};
use crate::slow::lateness_in_words;

/// Name, length, controller: 77 s in all.
const ROWS: [(&str, u64, &str); 5] = [
    ("clean-20m-40ms", 12, "cubic"),
    ("bufferbloat-50m-30ms", 20, "cubic"),
    ("rand-loss-1pct", 15, "newreno"),
    ("rand-loss-1pct", 15, "cubic"),
    ("blackout-2s", 15, "cubic"),
];

/// How far real time may be from virtual time, in percent of the latter.
const GOODPUT: u64 = 15;
const MEDIAN_RTT: u64 = 20;

fn play(scenario: &Scenario, controller: &str, player: &dyn Player) -> RunResult {
    let plan = Plan {
        scenario,
        controllers: vec![controller.parse().expect("a controller")],
        seeds: vec![1],
        limit: scenario.limit,
        jobs: NonZeroUsize::MIN,
        qlog_dir: None,
    };
    let mut groups = play_all(&plan, player, &mut |_| {}).expect("it can be played");
    groups.remove(0).runs.remove(0)
}

fn in_words(run: &RunResult) -> String {
    format!(
        "goodput {}, median RTT {}",
        amount_in_words(Dimension::Rate, run.goodput_bps),
        amount_in_words(Dimension::RoundTrip, median_rtt(run)),
    )
}

fn median_rtt(run: &RunResult) -> u64 {
    run.rtt.as_ref().map_or(0, |rtt| rtt.p50_ns)
}

/// Whether two values are within so many percent of the first.
fn are_near(wanted: u64, got: u64, percent: u64) -> bool {
    wanted.abs_diff(got) * 100 <= wanted * percent
}

#[test]
fn real_time_is_like_virtual_time() {
    if !is_slow("real_time_is_like_virtual_time") {
        return;
    }
    let real_player = RealPlayer::new().expect("a player");
    let mut wrong = Vec::new();
    for (name, seconds, controller) in ROWS {
        let mut scenario = built_in(name);
        scenario.limit = Duration::from_secs(seconds);
        scenario.cases.truncate(1);
        scenario.cases[0].download = Download::Duration(scenario.limit);
        let simulated = play(&scenario, controller, virtual_player());
        let real = alone(|| play(&scenario, controller, &real_player));
        let late = lateness_in_words(std::slice::from_ref(&real));
        let verdict = if real.is_late() {
            "NOT JUDGED, this machine was too busy"
        } else if real.outcome == Outcome::Completed
            && are_near(simulated.goodput_bps, real.goodput_bps, GOODPUT)
            && are_near(median_rtt(&simulated), median_rtt(&real), MEDIAN_RTT)
        {
            "alike"
        } else {
            "NOT ALIKE"
        };
        let line = format!(
            "{name}, {controller}, {seconds} s: virtual {}; real {}, {late}: {verdict}",
            in_words(&simulated),
            in_words(&real)
        );
        say(&line);
        if verdict == "NOT ALIKE" {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn near_is_a_share_of_the_first() {
    assert!(are_near(100, 115, 15) && are_near(100, 85, 15));
    assert!(!are_near(100, 116, 15) && !are_near(100, 84, 15));
}
