//! The result of one run: plain data, with the unit in every key.

use std::time::Duration;

use cc::State;
use netsim::{Counters, DelayHistogram, Usage};
use serde::Serialize;
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::expect::Window;
use crate::oracles::Violation;
use crate::play::PlayRequest;
use crate::record::{FlowRecording, Recording, Tracks, bucket_of};
use crate::scenario::Download;
use crate::stats::nearest_rank;

/// Buckets of the recording that make one entry of `app_bytes_per_100_ms` in a result.
const BUCKETS_PER_ENTRY: usize = 10;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum Outcome {
    /// The last byte was read, or a download without a size lasted its time.
    Completed,
    /// The limit came first.
    LimitReached,
    /// Something broke; in one line, what.
    Failed(String),
}

/// Everything one run showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The download.
    pub case: String,
    /// The controller.
    pub controller: String,
    /// The seed.
    pub seed: u64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When it ended, from its beginning.
    pub ended_at_ns: u64,
    /// First client datagram to last stream byte read; `None` if it did not complete or has no size.
    pub completion_ns: Option<u64>,
    /// First client datagram to the end of the handshake at the client.
    pub handshake_ns: Option<u64>,
    /// Bytes of the download the application read.
    pub app_bytes: u64,
    /// The same per second, between first datagram and last byte.
    pub goodput_bps: u64,
    /// What was seen in each window that a band looks at.
    pub windows: Vec<WindowResult>,
    /// Packets the sender of the download sent.
    pub packets_sent: u64,
    /// Packets it declared lost (RFC 9002 section 6.1).
    pub packets_lost: u64,
    /// Stream bytes it sent again.
    pub retransmitted_bytes: u64,
    /// Probe timeouts of the sender (RFC 9002 section 6.2).
    pub pto_count: u64,
    /// Window reductions.
    pub cuts: u64,
    /// Congestion-state changes by kind.
    pub transitions: Vec<TransitionCount>,
    /// How often the sender entered recovery or came back to congestion avoidance. Of a controller that is wrong on
    /// purpose: how often its recovery boundary passed the present, which is what its state amounts to.
    pub flips: u64,
    /// How long the window stood at its minimum.
    pub time_at_minimum_ns: u64,
    /// The window at the end of the run.
    pub window_at_end_bytes: Option<u64>,
    /// From the end of the last phase to a window of ten datagrams; `None` without a phase that ends, or if it never
    /// came to that.
    pub escape_ns: Option<u64>,
    /// The most datagram bytes that the sender sent within a millisecond; unknown over real sockets.
    pub largest_burst_bytes: Option<u64>,
    /// What must never happen and did, if anything: the first of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<Violation>,
    /// What the controller's deliberate fault did, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultCounts>,
    /// The sender's RTT samples over the whole run.
    pub rtt: Option<Percentiles>,
    /// Waiting times in the bottleneck's queue over the whole run.
    pub queue_delay: Option<Percentiles>,
    /// The forward link.
    pub forward: LinkCounts,
    /// The reverse link.
    pub reverse: LinkCounts,
    /// Bytes of the download read by the application in each 100 ms from the beginning.
    pub app_bytes_per_100_ms: Vec<u64>,
    /// What a picture shows: empty for all but the first seed of a plan, to bound its memory, and
    /// not part of the JSON document.
    #[serde(skip)]
    pub tracks: Tracks,
    /// All flows, the tested one first; empty if there is only the download.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowResult>,
    /// How well real time was kept; only over real sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real: Option<RealTiming>,
}

impl RunResult {
    /// Whether it was played over real sockets on a machine that was too busy for that.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.real.as_ref().is_some_and(|real| !real.is_on_time())
    }

    /// All congestion-state changes.
    #[must_use]
    pub fn transition_count(&self) -> u64 {
        self.transitions.iter().map(|kind| kind.count).sum()
    }
}

/// What shows that a deliberate fault has struck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// How often the beginning of the cubic epoch was moved because nothing was in flight.
    pub shifts: u64,
    /// By how much in total.
    pub shifted_ns: u64,
    /// Batches that left with the recovery boundary at their own send time or beyond.
    pub sends_behind_boundary: u64,
    /// Acknowledged packets taken for older than the cut that were not.
    pub acks_ignored: u64,
    /// Lost packets taken for older than the cut that were not.
    pub losses_ignored: u64,
    /// How often the boundary changed between ahead of the present and behind it.
    pub flips: u64,
}

/// How often one state followed another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransitionCount {
    /// The state left.
    pub from: String,
    /// The state entered.
    pub to: String,
    /// How often.
    pub count: u64,
}

/// What one of several flows did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowResult {
    /// Its name in the scenario; `download` for the download.
    pub name: String,
    /// Its controller.
    pub controller: String,
    /// Whether it goes towards the server.
    pub is_reverse: bool,
    /// Whether it takes what it can get: the download, and bulk flows.
    pub is_greedy: bool,
    /// Bytes its application read.
    pub app_bytes: u64,
    /// What was seen of it in each window that a band looks at.
    pub windows: Vec<FlowWindow>,
    /// How long its answers, or frames, took over the whole run.
    pub answers: Option<Percentiles>,
    /// Packets its sender declared lost.
    pub packets_lost: u64,
    /// Probe timeouts of its sender.
    pub pto_count: u64,
    /// Bytes its application read in each 100 ms from the beginning.
    pub app_bytes_per_100_ms: Vec<u64>,
}

/// What one flow did in one stretch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowWindow {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub until_ns: u64,
    /// Bytes the application read, per second.
    pub goodput_bps: u64,
    /// How long the answers took that were asked for inside.
    pub answers: Option<Percentiles>,
}

impl FlowResult {
    /// What was seen in this window.
    #[must_use]
    pub fn in_window(&self, window: Window) -> Option<&FlowWindow> {
        let (from, until) = (window.from.as_nanos(), window.until.as_nanos());
        let mut windows = self.windows.iter();
        windows.find(|seen| seen.from_ns == from && seen.until_ns == until)
    }
}

/// What was seen in one stretch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowResult {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub until_ns: u64,
    /// Bytes the application read, per second.
    pub goodput_bps: u64,
    /// Wire bytes that left the bottleneck, per second.
    pub delivery_bps: u64,
    /// Wire bytes that left the bottleneck over those it could have sent, in parts per billion.
    pub utilisation_ppb: u64,
    /// RTT samples taken inside.
    pub rtt: Option<Percentiles>,
}

impl WindowResult {
    /// The stretch.
    #[must_use]
    pub fn window(&self) -> Window {
        Window {
            from: Timestamp::from_nanos(self.from_ns),
            until: Timestamp::from_nanos(self.until_ns),
        }
    }
}

/// Nearest-rank percentiles of spans of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// How many values there were.
    pub sample_count: u64,
    /// The smallest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Percentiles {
    /// The percentiles of `values`, which are sorted in place; `None` when there are none.
    #[must_use]
    pub fn of(values: &mut [u64]) -> Option<Self> {
        values.sort_unstable();
        Some(Self {
            sample_count: u64::try_from(values.len()).unwrap_or(u64::MAX),
            min_ns: *values.first()?,
            p50_ns: nearest_rank(values, 500)?,
            p95_ns: nearest_rank(values, 950)?,
            p99_ns: nearest_rank(values, 990)?,
            max_ns: *values.last()?,
        })
    }

    /// The percentiles of a histogram, up to 1.6 % too large; its smallest value counts as the
    /// 0th percentile.
    #[must_use]
    pub fn of_histogram(histogram: &DelayHistogram) -> Option<Self> {
        let at = |per_mille| histogram.percentile(per_mille).map(nanos);
        Some(Self {
            sample_count: histogram.count(),
            min_ns: at(0)?,
            p50_ns: at(500)?,
            p95_ns: at(950)?,
            p99_ns: at(990)?,
            max_ns: nanos(histogram.max()),
        })
    }
}

/// What the sender of the download counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Stream bytes sent again.
    pub retransmitted_bytes: u64,
    /// Probe timeouts.
    pub pto_count: u64,
    /// Window reductions.
    pub cuts: u64,
    /// What the controller's deliberate fault did.
    pub fault: Option<FaultCounts>,
}

/// What one direction of the link counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Packets that entered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that came out.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue_packets: u64,
    /// Packets the queue's discipline dropped.
    pub dropped_aqm_packets: u64,
    /// Packets the policer dropped.
    pub dropped_policed_packets: u64,
    /// Small packets the thinning dropped.
    pub dropped_thinned_packets: u64,
    /// Packets larger than the link carries.
    pub dropped_too_large_packets: u64,
    /// Packets the queue marked with CE.
    pub marked_packets: u64,
    /// Copies the wire made.
    pub duplicated_packets: u64,
    /// Packets that arrived damaged.
    pub corrupt_packets: u64,
    /// Packets lost before the queue.
    pub dropped_before_queue_packets: u64,
    /// Packets lost after it.
    pub dropped_after_queue_packets: u64,
    /// Packets dropped by script.
    pub dropped_scripted_packets: u64,
    /// The most the queue held.
    pub max_queue_bytes: u64,
    /// A hash of every packet's instant, size and fate, in hexadecimal.
    pub trace_digest: String,
}

impl LinkCounts {
    /// The counts of a pipe.
    #[must_use]
    pub fn of(counters: &Counters) -> Self {
        Self {
            offered_packets: counters.offered.packets,
            offered_bytes: counters.offered.bytes.as_u64(),
            delivered_packets: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes.as_u64(),
            dropped_queue_packets: counters.dropped_queue.packets,
            dropped_aqm_packets: counters.dropped_aqm.packets,
            dropped_policed_packets: counters.dropped_policed.packets,
            dropped_thinned_packets: counters.dropped_thinned.packets,
            dropped_too_large_packets: counters.dropped_too_large.packets,
            marked_packets: counters.marked.packets,
            duplicated_packets: counters.duplicated.packets,
            corrupt_packets: counters.delivered_corrupt.packets,
            dropped_before_queue_packets: counters.dropped_loss_before.packets,
            dropped_after_queue_packets: counters.dropped_loss_after.packets,
            dropped_scripted_packets: counters.dropped_scripted.packets,
            max_queue_bytes: counters.max_queue.as_u64(),
            trace_digest: format!("{:016x}", counters.digest()),
        }
    }

    /// Packets dropped for any cause.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_queue_packets
            + self.dropped_aqm_packets
            + self.dropped_policed_packets
            + self.dropped_thinned_packets
            + self.dropped_too_large_packets
            + self.dropped_before_queue_packets
            + self.dropped_after_queue_packets
            + self.dropped_scripted_packets
    }
}

/// How well a relay over real sockets kept time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RealTiming {
    /// 99th percentile of how late a packet left the relay.
    pub lateness_p99_ns: u64,
    /// The largest.
    pub lateness_max_ns: u64,
    /// Datagrams the kernel threw away before the relay saw them, where it tells.
    pub kernel_dropped_packets: Option<u64>,
}

impl RealTiming {
    /// link-model.md 1.4: a run is not trusted when packets leave more than 1 ms late.
    #[must_use]
    pub fn is_on_time(&self) -> bool {
        self.lateness_p99_ns <= 1_000_000
    }
}

/// Turns the record of a run into its result.
#[must_use]
pub fn summarise(request: &PlayRequest<'_>, recording: Recording) -> RunResult {
    let since_first = |at: Option<Timestamp>| {
        let span = at?.saturating_since(recording.first_datagram_at?);
        Some(nanos(span))
    };
    let app_bytes: u64 = recording.app_bytes.iter().sum();
    let active_ns = since_first(recording.last_byte_at).unwrap_or(0);
    let is_sized = matches!(request.case.download, Download::Size(_));
    let completion_ns = (is_sized && recording.outcome == Outcome::Completed)
        .then(|| since_first(recording.last_byte_at))
        .flatten();
    let windows = request
        .scenario
        .windows()
        .into_iter()
        .map(|window| window_result(&recording, window))
        .collect();
    let transitions = recording
        .transitions
        .iter()
        .map(|((from, to), count)| TransitionCount {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            count: *count,
        })
        .collect();
    let flips = match recording.sender.fault {
        Some(fault) => fault.flips,
        None => recording
            .transitions
            .iter()
            .filter(|((from, to), _)| is_flip(from, to))
            .map(|(_, count)| count)
            .sum(),
    };
    let mut rtts: Vec<u64> = recording
        .rtt_samples
        .iter()
        .map(|(_, rtt)| nanos(*rtt))
        .collect();
    RunResult {
        scenario: request.scenario.name.clone(),
        case: request.case.name.clone(),
        controller: request.algorithm.to_string(),
        seed: request.seed,
        ended_at_ns: recording.ended_at.as_nanos(),
        completion_ns,
        handshake_ns: since_first(recording.handshake_at),
        app_bytes,
        goodput_bps: per_second(app_bytes, active_ns),
        windows,
        packets_sent: recording.sender.packets_sent,
        packets_lost: recording.sender.packets_lost,
        retransmitted_bytes: recording.sender.retransmitted_bytes,
        pto_count: recording.sender.pto_count,
        cuts: recording.sender.cuts,
        transitions,
        flips,
        time_at_minimum_ns: nanos(recording.at_minimum),
        window_at_end_bytes: recording.window_at_end.map(ByteCount::as_u64),
        escape_ns: recording.escape.map(nanos),
        largest_burst_bytes: recording.largest_burst.map(ByteCount::as_u64),
        violation: recording.violation,
        fault: recording.sender.fault,
        rtt: Percentiles::of(&mut rtts),
        queue_delay: recording.forward.queue_delay.clone(),
        forward: recording.forward.counts.clone(),
        reverse: recording.reverse.counts.clone(),
        app_bytes_per_100_ms: recording
            .app_bytes
            .chunks(BUCKETS_PER_ENTRY)
            .map(|chunk| chunk.iter().sum())
            .collect(),
        flows: recording
            .flows
            .iter()
            .map(|flow| flow_result(flow, &request.scenario.windows()))
            .collect(),
        tracks: recording.tracks,
        real: recording.real,
        outcome: match (request.case.download, recording.outcome) {
            // It lasted its time, but a link that carries nothing completes nothing.
            (Download::Duration(_), Outcome::Completed) if app_bytes == 0 => {
                Outcome::Failed("not one byte of the download arrived".to_owned())
            }
            (_, outcome) => outcome,
        },
    }
}

fn is_flip(from: &str, to: &str) -> bool {
    let states = [
        State::Recovery.as_str(),
        State::CongestionAvoidance.as_str(),
    ];
    from != to && states.contains(&from) && states.contains(&to)
}

fn window_result(recording: &Recording, window: Window) -> WindowResult {
    let range = bucket_of(window.from)..bucket_of(window.until);
    let sum = |buckets: &[u64]| -> u64 {
        let end = range.end.min(buckets.len());
        buckets
            .get(range.start..end)
            .map_or(0, |inside| inside.iter().sum())
    };
    let usage = recording.forward.output.usage(window.from, window.until);
    let departed = usage.map_or(0, |usage| usage.moved.as_u64());
    let utilisation = usage.and_then(Usage::share).unwrap_or(Fraction::ZERO);
    let length_ns = nanos(window.length());
    let mut rtts: Vec<u64> = recording
        .rtt_samples
        .iter()
        .filter(|(at, _)| (window.from..window.until).contains(at))
        .map(|(_, rtt)| nanos(*rtt))
        .collect();
    WindowResult {
        from_ns: window.from.as_nanos(),
        until_ns: window.until.as_nanos(),
        goodput_bps: per_second(sum(&recording.app_bytes), length_ns),
        delivery_bps: per_second(departed, length_ns),
        utilisation_ppb: u64::from(utilisation.as_ppb()),
        rtt: Percentiles::of(&mut rtts),
    }
}

fn flow_result(flow: &FlowRecording, windows: &[Window]) -> FlowResult {
    let answers = |range: Option<Window>| {
        let is_meant =
            |at: Timestamp| range.is_none_or(|window| (window.from..window.until).contains(&at));
        let asked = flow.answers.iter().filter(|(at, _)| is_meant(*at));
        let mut spans: Vec<u64> = asked.map(|(_, span)| nanos(*span)).collect();
        Percentiles::of(&mut spans)
    };
    let bytes_in = |window: &Window| -> u64 {
        let end = bucket_of(window.until).min(flow.app_bytes.len());
        let inside = flow.app_bytes.get(bucket_of(window.from)..end);
        inside.map_or(0, |inside| inside.iter().sum())
    };
    let windows = windows.iter().map(|window| FlowWindow {
        from_ns: window.from.as_nanos(),
        until_ns: window.until.as_nanos(),
        goodput_bps: per_second(bytes_in(window), nanos(window.length())),
        answers: answers(Some(*window)),
    });
    FlowResult {
        name: flow.name.clone(),
        controller: flow.controller.clone(),
        is_reverse: flow.is_reverse,
        is_greedy: flow.is_greedy,
        app_bytes: flow.app_bytes.iter().sum(),
        windows: windows.collect(),
        answers: answers(None),
        packets_lost: flow.packets_lost,
        pto_count: flow.pto_count,
        app_bytes_per_100_ms: flow
            .app_bytes
            .chunks(BUCKETS_PER_ENTRY)
            .map(|chunk| chunk.iter().sum())
            .collect(),
    }
}

/// Bits per second, rounded down; 0 for no time at all.
fn per_second(bytes: u64, span_ns: u64) -> u64 {
    if span_ns == 0 {
        return 0;
    }
    Rate::from_bytes_per(ByteCount::new(bytes), Duration::from_nanos(span_ns)).as_bps()
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
