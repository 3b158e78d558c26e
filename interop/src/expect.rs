//! Bands: what a scenario expects of its runs, and the verdict on each.
//!
//! ```text
//!  metric of a run  -->  one number per seed  -->  statistic over the seeds  -->  inside min..max?
//!  (in a window)                                   median, p95 or every
//! ```
//!
//! Everything is compared in whole units (ns, bit/s, parts per billion, counts), never in floats.
//! scenarios.md 4.2 and 4.3: the value of a run first, then across seeds; bands are written before
//! the run and a missed one is reported, not loosened.

use std::time::Duration;

use serde::Serialize;
use units::{Fraction, Rate, Timestamp, math};

use self::flows::{Flows, reach};
use crate::results::{Outcome, RunResult};
use crate::scenario::Scenario;
use crate::stats;

mod flows;

/// What is measured in each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The share of runs that completed.
    Completed,
    /// First client datagram to last stream byte read.
    Completion,
    /// First client datagram to the end of the handshake at the client.
    Handshake,
    /// Completion without the handshake.
    Transfer,
    /// Bytes handed to the application in the window, as a rate.
    Goodput,
    /// Wire bytes that left the bottleneck in the window, as a rate.
    Delivery,
    /// Wire bytes that left the bottleneck over what it could have carried in the window.
    Utilisation,
    /// The median of the sender's RTT samples in the window.
    RttP50,
    /// Their 95th percentile.
    RttP95,
    /// Their 99th percentile.
    RttP99,
    /// The median time a packet waited in the bottleneck's queue.
    QueueDelayP50,
    /// Its 95th percentile.
    QueueDelayP95,
    /// How often the sender's probe timer fired (RFC 9002 section 6.2).
    PtoCount,
    /// How often the window was cut.
    Cuts,
    /// How often the congestion state changed.
    Transitions,
    /// How often the sender entered recovery or came back to congestion avoidance.
    Flips,
    /// How long the window stood at its minimum.
    TimeAtMinimum,
    /// From the end of the last phase to a window of ten datagrams.
    Escape,
    /// The window at the end of the run.
    WindowAtEnd,
    /// A flow's part of what all greedy flows of its direction delivered in the window.
    Share,
    /// Jain's index over those flows: 1 if all got the same, 1/n if one got everything.
    Jain,
    /// What all flows of that direction delivered together in the window, as a rate.
    TotalGoodput,
    /// From the beginning of the window to the first instant, in steps of 100 ms, after which a given goodput is
    /// kept up for a second or ten round trips, whichever is longer.
    Reach,
    /// The median time of the answers, or frames, of a flow that were asked for in the window.
    AnswerP50,
    /// Its 95th percentile.
    AnswerP95,
    /// How far the packets declared lost are from the packets the forward link dropped, as a share
    /// of the latter.
    LostVsDropped,
    /// Packets the forward link dropped, for any cause, over those that entered it.
    LossShare,
    /// Packets the bottleneck's queue marked with CE.
    Marks,
    /// Stream bytes that the sender sent again.
    Resent,
    /// The most datagram bytes that the sender sent within a millisecond.
    LargestBurst,
    /// The smallest share that one of the greedy flows got.
    LeastShare,
    /// The largest.
    MostShare,
}

/// In what a metric is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Parts per billion.
    Share,
    /// Nanoseconds.
    Time,
    /// Nanoseconds; a bound may be given in multiples of the base round-trip time.
    RoundTrip,
    /// Bits per second.
    Rate,
    /// A plain number.
    Count,
    /// Bytes.
    Size,
}

impl Metric {
    /// All of them with the key in a scenario file.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("completed", Self::Completed),
        ("completion", Self::Completion),
        ("handshake", Self::Handshake),
        ("transfer", Self::Transfer),
        ("goodput", Self::Goodput),
        ("delivery", Self::Delivery),
        ("utilisation", Self::Utilisation),
        ("rtt_p50", Self::RttP50),
        ("rtt_p95", Self::RttP95),
        ("rtt_p99", Self::RttP99),
        ("queue_delay_p50", Self::QueueDelayP50),
        ("queue_delay_p95", Self::QueueDelayP95),
        ("pto_count", Self::PtoCount),
        ("cuts", Self::Cuts),
        ("transitions", Self::Transitions),
        ("flips", Self::Flips),
        ("time_at_minimum", Self::TimeAtMinimum),
        ("escape", Self::Escape),
        ("window_at_end", Self::WindowAtEnd),
        ("share", Self::Share),
        ("jain", Self::Jain),
        ("total_goodput", Self::TotalGoodput),
        ("reach", Self::Reach),
        ("answer_p50", Self::AnswerP50),
        ("answer_p95", Self::AnswerP95),
        ("lost_vs_dropped", Self::LostVsDropped),
        ("loss_share", Self::LossShare),
        ("marks", Self::Marks),
        ("resent", Self::Resent),
        ("largest_burst", Self::LargestBurst),
        ("least_share", Self::LeastShare),
        ("most_share", Self::MostShare),
    ];

    /// The key in a scenario file.
    #[must_use]
    pub fn key(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, metric)| *metric == self)
            .map_or("", |(key, _)| key)
    }

    /// In what it is counted.
    #[must_use]
    pub fn dimension(self) -> Dimension {
        match self {
            Self::Completed
            | Self::Utilisation
            | Self::Share
            | Self::LeastShare
            | Self::MostShare
            | Self::Jain
            | Self::LossShare
            | Self::LostVsDropped => Dimension::Share,
            Self::Completion | Self::Handshake | Self::Transfer | Self::TimeAtMinimum => {
                Dimension::Time
            }
            Self::Escape
            | Self::Reach
            | Self::AnswerP50
            | Self::AnswerP95
            | Self::RttP50
            | Self::RttP95
            | Self::RttP99
            | Self::QueueDelayP50
            | Self::QueueDelayP95 => Dimension::RoundTrip,
            Self::Goodput | Self::Delivery | Self::TotalGoodput => Dimension::Rate,
            Self::PtoCount | Self::Cuts | Self::Transitions | Self::Flips | Self::Marks => {
                Dimension::Count
            }
            Self::WindowAtEnd | Self::Resent | Self::LargestBurst => Dimension::Size,
        }
    }

    /// Whether it needs a window, "always stated" as scenarios.md 4.1 has it.
    #[must_use]
    pub fn is_windowed(self) -> bool {
        matches!(
            self,
            Self::Goodput
                | Self::Share
                | Self::LeastShare
                | Self::MostShare
                | Self::Jain
                | Self::TotalGoodput
                | Self::Reach
                | Self::AnswerP50
                | Self::AnswerP95
                | Self::Delivery
                | Self::Utilisation
                | Self::RttP50
                | Self::RttP95
                | Self::RttP99
        )
    }

    /// Whether it needs several flows.
    #[must_use]
    pub fn is_of_flows(self) -> bool {
        matches!(
            self,
            Self::Share | Self::LeastShare | Self::MostShare | Self::Jain | Self::TotalGoodput
        )
    }

    /// Whether it may be, or has to be, about one flow by name.
    #[must_use]
    pub fn takes_flow(self) -> bool {
        matches!(
            self,
            Self::Goodput | Self::Share | Self::Reach | Self::AnswerP50 | Self::AnswerP95
        )
    }

    /// The value of one run; `None` when the run has none, such as the completion time of a run
    /// that did not complete.
    fn of(self, run: &RunResult, band: &Band) -> Option<u64> {
        let window = band.window;
        let flows = || Flows::of(run, band);
        let seen = || {
            let window = window?;
            run.windows.iter().find(|seen| seen.window() == window)
        };
        match self {
            Self::Completed => Some(u64::from(run.outcome == Outcome::Completed)),
            Self::Completion => run.completion_ns,
            Self::Handshake => run.handshake_ns,
            Self::Transfer => run.completion_ns?.checked_sub(run.handshake_ns?),
            Self::Goodput if band.flow.is_some() => Some(flows()?.meant?.goodput_bps),
            Self::Reach => reach(run, band),
            Self::Share => flows()?.share(),
            Self::LeastShare => flows()?.shares()?.min(),
            Self::MostShare => flows()?.shares()?.max(),
            Self::Jain => flows()?.jain(),
            Self::TotalGoodput => Some(flows()?.total),
            Self::AnswerP50 => Some(flows()?.meant?.answers.as_ref()?.p50_ns),
            Self::AnswerP95 => Some(flows()?.meant?.answers.as_ref()?.p95_ns),
            Self::Goodput => seen().map(|seen| seen.goodput_bps),
            Self::Delivery => seen().map(|seen| seen.delivery_bps),
            Self::Utilisation => seen().map(|seen| seen.utilisation_ppb),
            Self::RttP50 => seen()?.rtt.as_ref().map(|rtt| rtt.p50_ns),
            Self::RttP95 => seen()?.rtt.as_ref().map(|rtt| rtt.p95_ns),
            Self::RttP99 => seen()?.rtt.as_ref().map(|rtt| rtt.p99_ns),
            Self::QueueDelayP50 => run.queue_delay.as_ref().map(|delay| delay.p50_ns),
            Self::QueueDelayP95 => run.queue_delay.as_ref().map(|delay| delay.p95_ns),
            Self::PtoCount => Some(run.pto_count),
            Self::Cuts => Some(run.cuts),
            Self::Transitions => Some(run.transition_count()),
            Self::Flips => Some(run.flips),
            Self::TimeAtMinimum => Some(run.time_at_minimum_ns),
            Self::Escape => run.escape_ns,
            Self::WindowAtEnd => run.window_at_end_bytes,
            Self::LossShare => {
                let offered = run.forward.offered_packets;
                let dropped = run.forward.dropped_packets();
                Some(math::mul_div(dropped, PPB, offered.max(1)))
            }
            Self::Marks => Some(run.forward.marked_packets),
            Self::Resent => Some(run.retransmitted_bytes),
            Self::LargestBurst => run.largest_burst_bytes,
            Self::LostVsDropped => {
                let dropped = run.forward.dropped_packets();
                let apart = run.packets_lost.abs_diff(dropped);
                match (apart, dropped) {
                    (0, _) => Some(0),
                    (_, 0) => Some(PPB),
                    (apart, dropped) => Some(math::mul_div(apart, PPB, dropped)),
                }
            }
        }
    }
}

/// One in parts per billion.
const PPB: u64 = 1_000_000_000;

/// A stretch of a run, from its beginning: `from` belongs to it, `until` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// Where it begins.
    pub from: Timestamp,
    /// Where it ends.
    pub until: Timestamp,
}

impl Window {
    /// How long it is.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.until.saturating_since(self.from)
    }
}

/// How the values of all seeds become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The nearest-rank 50th percentile.
    Median,
    /// The nearest-rank 95th percentile.
    P95,
    /// Each run on its own: one outside is a miss.
    Every,
    /// The smallest.
    Least,
    /// The largest; a run without a value is larger than any.
    Most,
}

impl Statistic {
    /// All of them with the word in a scenario file.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("median", Self::Median),
        ("p95", Self::P95),
        ("every", Self::Every),
        ("least", Self::Least),
        ("most", Self::Most),
    ];

    /// What it is called behind the name of a metric; the runs are meant, not the samples in one.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P95 => "p95",
            Self::Every => "worst run",
            Self::Least => "least",
            Self::Most => "most",
        }
    }
}

/// One end of a band: what the file says and what it means in the metric's unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    /// As written in the scenario.
    pub text: String,
    /// In ns, bit/s, parts per billion or a plain number.
    pub amount: u64,
}

/// A goodput kept up for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The goodput.
    pub rate: Rate,
    /// For how long, in whole steps of 100 ms.
    pub span: Duration,
}

/// What is expected of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Band {
    /// What is measured.
    pub metric: Metric,
    /// How the seeds are put together.
    pub statistic: Statistic,
    /// The stretch of the run it is measured in.
    pub window: Option<Window>,
    /// The download it is about; all of them when `None`.
    pub case: Option<String>,
    /// The flow it is about; the tested one when `None`.
    pub flow: Option<String>,
    /// The goodput to be reached, and how long it has to be kept up.
    pub goal: Option<Goal>,
    /// From how many runs on it is judged: a share of few runs says nothing.
    pub min_runs: u64,
    /// The controllers it is about, as they print themselves; all of them when empty.
    pub controllers: Vec<String>,
    /// The smallest allowed value.
    pub min: Option<Level>,
    /// The largest allowed value.
    pub max: Option<Level>,
}

impl Band {
    /// All runs complete.
    fn completed() -> Self {
        Self {
            metric: Metric::Completed,
            statistic: Statistic::Every,
            window: None,
            case: None,
            flow: None,
            goal: None,
            controllers: Vec::new(),
            min_runs: 0,
            min: Some(Level {
                text: Fraction::ONE.to_string(),
                amount: PPB,
            }),
            max: None,
        }
    }

    fn is_about(&self, controller: &str, case: &str) -> bool {
        (self.controllers.is_empty() || self.controllers.iter().any(|name| name == controller))
            && self.case.as_ref().is_none_or(|name| name == case)
    }

    /// Whether `amount` lies inside; no value lies outside of every band.
    fn holds(&self, amount: Option<u64>) -> bool {
        amount.is_some_and(|amount| {
            self.min.as_ref().is_none_or(|min| amount >= min.amount)
                && self.max.as_ref().is_none_or(|max| amount <= max.amount)
        })
    }

    /// The allowed range in words.
    #[must_use]
    pub fn range_words(&self) -> String {
        match (&self.min, &self.max) {
            (Some(min), Some(max)) if min == max => format!("exactly {}", min.text),
            (Some(min), Some(max)) => format!("{} to {}", min.text, max.text),
            (Some(min), None) => format!("at least {}", min.text),
            (None, Some(max)) => format!("at most {}", max.text),
            (None, None) => "anything".to_owned(),
        }
    }
}

/// Whether a band is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Judgement {
    /// The value lies inside.
    Met,
    /// The value lies outside, or there is none.
    Missed,
    /// The band says nothing about these runs, for the reason given.
    NotJudged(String),
}

/// One band, judged on the runs of one controller and one download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The controller, as it prints itself.
    pub controller: String,
    /// The download.
    pub case: String,
    /// The band.
    pub band: Band,
    /// The value that was judged: the statistic, or the worst run of `every`.
    pub measured: Option<u64>,
    /// The seed of the worst run, where one run decides.
    pub worst_seed: Option<u64>,
    /// How many runs lie outside, where each is judged.
    pub outside_count: u64,
    /// How many runs there were.
    pub run_count: u64,
    /// The judgement.
    pub judgement: Judgement,
}

/// Where and for how long the runs were played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Over real sockets, where only completion is judged (scenarios.md 4.3: real-time results are
    /// never gated at the tolerances of the simulator).
    pub is_real: bool,
    /// When a run ended at the latest.
    pub limit: Duration,
}

/// Judges the runs of one controller and one download against every band that is about them.
#[must_use]
pub fn judge(
    scenario: &Scenario,
    controller: &str,
    case: &str,
    runs: &[RunResult],
    conditions: Conditions,
) -> Vec<Verdict> {
    let bands = || {
        let bands = scenario.bands.iter();
        bands.filter(|band| band.is_about(controller, case))
    };
    // Completion of every run is expected unless the file says otherwise of this controller, so that no failed run passes
    // in silence.
    let is_told = bands().any(|band| band.metric == Metric::Completed);
    let implied = (!is_told).then(Band::completed);
    implied
        .iter()
        .chain(bands())
        .map(|band| judge_band(band, controller, case, runs, conditions))
        .collect()
}

fn judge_band(
    band: &Band,
    controller: &str,
    case: &str,
    runs: &[RunResult],
    conditions: Conditions,
) -> Verdict {
    let values = sorted_values(band, runs);
    let is_outside = |value: Option<u64>| match band.metric {
        Metric::Completed => value != Some(1),
        _ => !band.holds(value),
    };
    let outside_count = values
        .iter()
        .filter(|(value, _)| is_outside(*value))
        .count();
    let (measured, worst_seed) = measure(band, &values);
    let judgement = match why_not_judged(band, runs, conditions) {
        Some(reason) => Judgement::NotJudged(reason),
        None if band.holds(measured) => Judgement::Met,
        None => Judgement::Missed,
    };
    Verdict {
        controller: controller.to_owned(),
        case: case.to_owned(),
        band: band.clone(),
        measured,
        worst_seed,
        outside_count: count(outside_count),
        run_count: count(runs.len()),
        judgement,
    }
}

/// The value to judge and the seed that decided it; `values` are sorted.
fn measure(band: &Band, values: &[(Option<u64>, u64)]) -> (Option<u64>, Option<u64>) {
    let total = count(values.len());
    if band.metric == Metric::Completed {
        let completed = values.iter().filter(|(value, _)| *value == Some(1)).count();
        let failed = values.iter().find(|(value, _)| *value == Some(0));
        let share = math::mul_div(count(completed), PPB, total.max(1));
        return (Some(share), failed.map(|(_, seed)| *seed));
    }
    match band.statistic {
        Statistic::Least => values.first().map_or((None, None), |(v, s)| (*v, Some(*s))),
        Statistic::Most => values.last().map_or((None, None), |(v, s)| (*v, Some(*s))),
        Statistic::Median => (nearest(values, 500), None),
        Statistic::P95 => (nearest(values, 950), None),
        Statistic::Every => {
            let (Some(first), Some(last)) = (values.first(), values.last()) else {
                return (None, None);
            };
            // Both ends may lie outside; then the upper one is reported.
            let is_too_low = |value: u64| band.min.as_ref().is_some_and(|min| value < min.amount);
            let is_too_high = match (last.0, &band.max) {
                (None, _) => true,
                (Some(value), Some(max)) => value > max.amount,
                (Some(_), None) => false,
            };
            let is_low_end =
                !is_too_high && (band.max.is_none() || first.0.is_some_and(is_too_low));
            let worst = if is_low_end { first } else { last };
            (worst.0, Some(worst.1))
        }
    }
}

fn nearest(values: &[(Option<u64>, u64)], thousandths: u32) -> Option<u64> {
    stats::nearest_rank(values, thousandths).and_then(|(value, _)| value)
}

/// The value that a band without ends would be judged on, for those who only want to see it.
#[must_use]
pub fn measure_only(band: &Band, runs: &[RunResult]) -> Option<u64> {
    measure(band, &sorted_values(band, runs)).0
}

/// What each run has to say, smallest first. A run without a value is worse than any value: it comes last.
fn sorted_values(band: &Band, runs: &[RunResult]) -> Vec<(Option<u64>, u64)> {
    let mut values: Vec<(Option<u64>, u64)> = runs
        .iter()
        .map(|run| (band.metric.of(run, band), run.seed))
        .collect();
    values.sort_by_key(|(value, seed)| (value.is_none(), *value, *seed));
    values
}

fn why_not_judged(band: &Band, runs: &[RunResult], conditions: Conditions) -> Option<String> {
    let run_count = count(runs.len());
    if run_count == 0 {
        return Some("there are no runs".to_owned());
    }
    if runs.iter().any(RunResult::is_late) {
        return Some("the relay was late by more than 1 ms; this machine was too busy".to_owned());
    }
    if run_count < band.min_runs {
        return Some(format!("it takes at least {} runs", band.min_runs));
    }
    if conditions.is_real && band.metric != Metric::Completed {
        return Some("over real sockets only whether runs complete is judged".to_owned());
    }
    let window = band.window?;
    if window.until > Timestamp::ZERO + conditions.limit {
        return Some(format!(
            "its window ends at {}, after the limit of {}",
            units::format_duration(window.until.saturating_since(Timestamp::ZERO)),
            units::format_duration(conditions.limit)
        ));
    }
    None
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
