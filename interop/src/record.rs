//! What a player writes down while a run goes on.
//!
//! ```text
//!  client: first datagram, handshake, bytes read  --+
//!  server: RTT samples, window, transitions       --+-->  Recorder  --finish-->  Recording
//!  link:   both pipes, at the end                 --+                               |
//!                                                            results::summarise  <--+
//! ```
//!
//! The recorder only listens. It is fed with instants and never asks for one, so it serves both the
//! virtual network and real sockets.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cc::Transition;
use netsim::{OutputRecord, Pipe};
use quic_core::SenderUpdate;
use units::{ByteCount, Timestamp};

use crate::oracles::{Oracles, Surroundings, Violation};
use crate::results::{LinkCounts, Outcome, Percentiles, RealTiming, SenderCounts};
use crate::scenario::{DOWNLOAD_NAME, Scenario};

/// Bytes are counted per stretch of this length; windows of bands end on its multiples.
pub const BUCKET: Duration = OutputRecord::BUCKET;

/// A quantity over time, as finely as a picture can show it: what was seen of it in each slot.
///
/// Slots begin at [`BUCKET`]. A run that needs more than [`Track::MAX_SLOTS`] of them gets slots
/// twice as long, again and again, so a track never takes more than 128 kB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    slot_ns: u64,
    slots: Vec<Option<Seen>>,
}

/// What a [`Track`] keeps of the values of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The latest.
    pub last: u64,
}

impl Track {
    /// The most slots a track has.
    pub const MAX_SLOTS: usize = 2_000;

    /// A track that begins with slots of this length.
    pub(crate) fn with_slots_of(slot: Duration) -> Self {
        Self {
            slot_ns: u64::try_from(slot.as_nanos()).unwrap_or(u64::MAX).max(1),
            slots: Vec::new(),
        }
    }

    /// Notes a value. Instants ascend.
    pub fn on_value(&mut self, now: Timestamp, value: u64) {
        let index = loop {
            let index = usize::try_from(now.as_nanos() / self.slot_ns).unwrap_or(usize::MAX);
            if index < Self::MAX_SLOTS {
                break index;
            }
            self.widen();
        };
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        let seen = Seen {
            min: value,
            max: value,
            last: value,
        };
        self.slots[index] = Some(match self.slots[index] {
            Some(earlier) => earlier.then(seen),
            None => seen,
        });
    }

    /// The slots in which there was a value, in order: when each begins, and what was seen.
    pub fn slots(&self) -> impl Iterator<Item = (Timestamp, Seen)> {
        let slots = self.slots.iter().zip(0_u64..);
        slots.filter_map(|(seen, index)| {
            Some((Timestamp::from_nanos(index * self.slot_ns), (*seen)?))
        })
    }

    /// How long a slot is.
    #[must_use]
    pub fn slot(&self) -> Duration {
        Duration::from_nanos(self.slot_ns)
    }

    /// Makes one slot of every two. After 30 times the slots reach to the end of time.
    fn widen(&mut self) {
        self.slot_ns *= 2;
        self.slots = self
            .slots
            .chunks(2)
            .map(|pair| {
                let mut seen = pair.iter().flatten().copied();
                let first = seen.next()?;
                Some(seen.fold(first, Seen::then))
            })
            .collect();
    }
}

impl Default for Track {
    fn default() -> Self {
        Self::with_slots_of(BUCKET)
    }
}

impl Seen {
    fn then(self, later: Self) -> Self {
        Self {
            min: self.min.min(later.min),
            max: self.max.max(later.max),
            last: later.last,
        }
    }
}

/// What a picture of a run shows beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracks {
    /// The sender's congestion window, in bytes, each time something happened to the sender.
    pub window: Track,
    /// The sender's RTT samples, in nanoseconds.
    pub rtt: Track,
    /// The smallest window the controller knows; `None` before the first update.
    pub minimum_window: Option<ByteCount>,
}

/// Listens to one run.
#[derive(Debug)]
pub struct Recorder {
    first_datagram_at: Option<Timestamp>,
    handshake_at: Option<Timestamp>,
    last_byte_at: Option<Timestamp>,
    app_bytes: Vec<u64>,
    rtt_samples: Vec<(Timestamp, Duration)>,
    transitions: BTreeMap<(&'static str, &'static str), u64>,
    window: Option<(Timestamp, ByteCount, bool)>,
    at_minimum: Duration,
    watch: Option<Watch>,
    escape: Option<Duration>,
    oracles: Option<Oracles>,
    tracks: Tracks,
    burst: Burst,
}

/// The most that was sent within a stretch of time.
#[derive(Debug, Default)]
struct Burst {
    /// What was sent within the last such stretch, in order of time.
    recent: VecDeque<(Timestamp, ByteCount)>,
    sum: ByteCount,
    largest: Option<ByteCount>,
}

impl Burst {
    /// Long enough for what a pacer lets go at once, short beside a round trip.
    const STRETCH: Duration = Duration::from_millis(1);

    fn on_sent(&mut self, now: Timestamp, bytes: ByteCount) {
        while let Some((at, old)) = self.recent.front().copied() {
            if now.saturating_since(at) < Self::STRETCH {
                break;
            }
            self.recent.pop_front();
            self.sum = self.sum.saturating_sub(old);
        }
        self.recent.push_back((now, bytes));
        self.sum += bytes;
        self.largest = self.largest.max(Some(self.sum));
    }
}

/// When a window counts as escaped.
#[derive(Debug, Clone, Copy)]
struct Watch {
    from: Timestamp,
    window: ByteCount,
}

impl Recorder {
    /// A record of a run of this scenario, with the oracles on. Over real sockets instants are those of a busy machine, and
    /// nothing is said of what takes a round trip.
    #[must_use]
    pub fn of(scenario: &Scenario, is_real: bool) -> Self {
        let mut surroundings = Surroundings {
            is_greedy: scenario.is_greedy(),
            ..Surroundings::default()
        };
        if !is_real {
            surroundings.shortest_rtt = scenario.shortest_rtt();
            surroundings.bdp = scenario.smallest_bdp();
            surroundings.is_punctual = true;
        }
        Self {
            oracles: Some(Oracles::new(surroundings)),
            watch: scenario.phases_end.map(|from| Watch {
                from,
                window: scenario.datagram * 10,
            }),
            ..Self::new()
        }
    }

    /// An empty record.
    #[must_use]
    pub fn new() -> Self {
        Self {
            watch: None,
            escape: None,
            oracles: None,
            first_datagram_at: None,
            handshake_at: None,
            last_byte_at: None,
            app_bytes: Vec::new(),
            rtt_samples: Vec::new(),
            transitions: BTreeMap::new(),
            window: None,
            at_minimum: Duration::ZERO,
            tracks: Tracks::default(),
            burst: Burst::default(),
        }
    }

    /// The client hands its first datagram to the network; later calls change nothing.
    pub fn on_first_datagram(&mut self, now: Timestamp) {
        self.first_datagram_at.get_or_insert(now);
    }

    /// The tested sender hands a datagram to the network, headers not counted.
    pub fn on_datagram_sent(&mut self, now: Timestamp, bytes: ByteCount) {
        self.burst.on_sent(now, bytes);
    }

    /// The handshake is complete at the client; later calls change nothing.
    pub fn on_handshake(&mut self, now: Timestamp) {
        self.handshake_at.get_or_insert(now);
    }

    /// The client's application read this many bytes of the download, in order.
    pub fn on_app_bytes(&mut self, now: Timestamp, bytes: ByteCount) {
        if bytes > ByteCount::ZERO {
            self.last_byte_at = Some(now);
            add_to_bucket(&mut self.app_bytes, now, bytes.as_u64());
        }
    }

    /// The sender of the download took an RTT sample from an acknowledgement, ACK delay included.
    pub fn on_rtt(&mut self, now: Timestamp, latest: Duration) {
        self.rtt_samples.push((now, latest));
        let nanos = u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX);
        self.tracks.rtt.on_value(now, nanos);
    }

    /// The oracles see what the sender does.
    pub(crate) fn on_update(&mut self, now: Timestamp, update: &SenderUpdate) {
        if let Some(oracles) = &mut self.oracles {
            oracles.on_update(now, update);
        }
    }

    /// The oracles see a change of state, before the update that explains it.
    pub(crate) fn on_change(&mut self, now: Timestamp, transition: &Transition) {
        if let Some(oracles) = &mut self.oracles {
            oracles.on_transition(now, transition);
        }
    }

    /// The sender's congestion state changed. Names as in qlog.
    pub fn on_transition(&mut self, from: &'static str, to: &'static str) {
        *self.transitions.entry((from, to)).or_insert(0) += 1;
    }

    /// The sender's window from now on, and the smallest it can be.
    pub fn on_window(&mut self, now: Timestamp, window: ByteCount, minimum: ByteCount) {
        let is_at_minimum = window <= minimum;
        if let Some((since, _, true)) = self.window {
            self.at_minimum += now.saturating_since(since);
        }
        self.look_for_escape(now, window);
        self.window = Some((now, window, is_at_minimum));
        self.tracks.window.on_value(now, window.as_u64());
        self.tracks.minimum_window = Some(minimum);
    }

    /// The download as one of several flows.
    pub(crate) fn download(&self, controller: String, sender: &SenderCounts) -> FlowRecording {
        FlowRecording {
            name: DOWNLOAD_NAME.to_owned(),
            controller,
            app_bytes: self.app_bytes.clone(),
            answers: Vec::new(),
            packets_lost: sender.packets_lost,
            pto_count: sender.pto_count,
            is_reverse: false,
            is_greedy: true,
        }
    }

    /// A window that was large enough when the watch began has nothing to escape from.
    fn look_for_escape(&mut self, now: Timestamp, window: ByteCount) {
        let Some(watch) = self.watch else {
            return;
        };
        if self.escape.is_some() || now < watch.from {
            return;
        }
        let was_out = self
            .window
            .is_some_and(|(since, before, _)| since < watch.from && before >= watch.window);
        if was_out {
            self.escape = Some(Duration::ZERO);
        } else if window >= watch.window {
            self.escape = Some(now.saturating_since(watch.from));
        }
    }

    /// Closes the record at the end of the run with what only counters know.
    #[must_use]
    pub fn finish(mut self, now: Timestamp, ending: Ending) -> Recording {
        let last = self.window.take();
        if let Some((since, _, true)) = last {
            self.at_minimum += now.saturating_since(since);
        }
        let links = [&ending.forward, &ending.reverse];
        let links = links.map(|link| (&link.counts, link.is_balanced));
        let violation = self
            .oracles
            .take()
            .and_then(|oracles| oracles.finish(now, links));
        // What must never happen fails the run, unless it has failed already.
        let outcome = match (&violation, ending.outcome) {
            (_, Outcome::Failed(reason)) => Outcome::Failed(reason),
            (Some(violation), _) => {
                Outcome::Failed(format!("oracle {}: {}", violation.oracle, violation.what))
            }
            (None, outcome) => outcome,
        };
        Recording {
            violation,
            window_at_end: last.map(|(_, window, _)| window),
            escape: self.escape,
            largest_burst: self.burst.largest,
            outcome,
            ended_at: now,
            first_datagram_at: self.first_datagram_at,
            handshake_at: self.handshake_at,
            last_byte_at: self.last_byte_at,
            app_bytes: self.app_bytes,
            rtt_samples: self.rtt_samples,
            transitions: self.transitions,
            at_minimum: self.at_minimum,
            tracks: self.tracks,
            sender: ending.sender,
            forward: ending.forward,
            reverse: ending.reverse,
            real: ending.real,
            flows: ending.flows,
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

/// Listens to one of several flows.
#[derive(Debug, Default)]
pub struct FlowRecorder {
    app_bytes: Vec<u64>,
    answers: Vec<(Timestamp, Duration)>,
}

impl FlowRecorder {
    /// The application read this many bytes.
    pub fn on_app_bytes(&mut self, now: Timestamp, bytes: ByteCount) {
        add_to_bucket(&mut self.app_bytes, now, bytes.as_u64());
    }

    /// Something that was asked for, or made, at an instant has been read to its end.
    pub fn on_answer(&mut self, asked_at: Timestamp, now: Timestamp) {
        self.answers
            .push((asked_at, now.saturating_since(asked_at)));
    }

    /// Closes the record with what only others know.
    #[must_use]
    pub fn finish(
        self,
        name: String,
        controller: String,
        packets_lost: u64,
        pto_count: u64,
    ) -> FlowRecording {
        FlowRecording {
            name,
            controller,
            app_bytes: self.app_bytes,
            answers: self.answers,
            packets_lost,
            pto_count,
            is_reverse: false,
            is_greedy: true,
        }
    }
}

/// What one of several flows did.
#[derive(Debug, Clone)]
pub struct FlowRecording {
    pub(crate) name: String,
    pub(crate) controller: String,
    /// Per bucket, from the beginning of the run.
    pub(crate) app_bytes: Vec<u64>,
    /// When each answer was asked for, and how long it took.
    pub(crate) answers: Vec<(Timestamp, Duration)>,
    pub(crate) packets_lost: u64,
    pub(crate) pto_count: u64,
    /// Whether it goes towards the server.
    pub(crate) is_reverse: bool,
    /// Whether it takes what it can get.
    pub(crate) is_greedy: bool,
}

/// What the player reads from counters when a run is over.
#[derive(Debug, Clone)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// What the sender of the download counted.
    pub sender: SenderCounts,
    /// The forward pipe.
    pub forward: LinkEnding,
    /// The reverse pipe.
    pub reverse: LinkEnding,
    /// How well the relay kept time, over real sockets.
    pub real: Option<RealTiming>,
    /// All flows, the tested one first; empty if there is only the download.
    pub flows: Vec<FlowRecording>,
}

/// What a pipe knows at the end of a run.
#[derive(Debug, Clone)]
pub struct LinkEnding {
    pub(crate) counts: LinkCounts,
    pub(crate) queue_delay: Option<Percentiles>,
    pub(crate) output: OutputRecord,
    pub(crate) is_balanced: bool,
}

impl LinkEnding {
    /// Copies it from the pipe.
    #[must_use]
    pub fn of<T>(pipe: &Pipe<T>) -> Self {
        let counters = pipe.counters();
        Self {
            counts: LinkCounts::of(counters),
            queue_delay: Percentiles::of_histogram(&counters.queue_delay),
            output: pipe.output().clone(),
            is_balanced: counters.is_balanced(),
        }
    }

    /// What the pipe counted.
    #[must_use]
    pub fn counts(&self) -> &LinkCounts {
        &self.counts
    }
}

/// One run as it was recorded; [`crate::results::summarise`] turns it into a result.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(crate) outcome: Outcome,
    pub(crate) ended_at: Timestamp,
    pub(crate) first_datagram_at: Option<Timestamp>,
    pub(crate) handshake_at: Option<Timestamp>,
    pub(crate) last_byte_at: Option<Timestamp>,
    /// Per bucket, from the beginning of the run.
    pub(crate) app_bytes: Vec<u64>,
    /// In order of time.
    pub(crate) rtt_samples: Vec<(Timestamp, Duration)>,
    pub(crate) transitions: BTreeMap<(&'static str, &'static str), u64>,
    pub(crate) at_minimum: Duration,
    pub(crate) window_at_end: Option<ByteCount>,
    pub(crate) violation: Option<Violation>,
    pub(crate) escape: Option<Duration>,
    /// The most datagram bytes that the sender sent within a millisecond; unknown over real sockets.
    pub(crate) largest_burst: Option<ByteCount>,
    pub(crate) tracks: Tracks,
    pub(crate) sender: SenderCounts,
    pub(crate) forward: LinkEnding,
    pub(crate) reverse: LinkEnding,
    pub(crate) real: Option<RealTiming>,
    pub(crate) flows: Vec<FlowRecording>,
}

fn add_to_bucket(buckets: &mut Vec<u64>, now: Timestamp, bytes: u64) {
    let index = bucket_of(now);
    if buckets.len() <= index {
        buckets.resize(index + 1, 0);
    }
    buckets[index] += bytes;
}

/// The bucket an instant belongs to: its beginning belongs to it, its end does not.
pub(crate) fn bucket_of(at: Timestamp) -> usize {
    let bucket = u64::try_from(BUCKET.as_nanos()).unwrap_or(u64::MAX);
    usize::try_from(at.as_nanos() / bucket).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use netsim::{PipeConfig, RandomStreams};

    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn ending() -> Ending {
        let pipe = |name| {
            let pipe: Pipe<()> =
                Pipe::new(PipeConfig::default(), &RandomStreams::new(1), name).unwrap();
            LinkEnding::of(&pipe)
        };
        Ending {
            outcome: Outcome::Completed,
            sender: SenderCounts::default(),
            forward: pipe("forward"),
            reverse: pipe("reverse"),
            real: None,
            flows: Vec::new(),
        }
    }

    #[test]
    fn bytes_fall_into_the_bucket_their_instant_begins() {
        let mut recorder = Recorder::new();
        recorder.on_app_bytes(ms(9), ByteCount::new(1));
        recorder.on_app_bytes(ms(10), ByteCount::new(2));
        recorder.on_app_bytes(ms(25), ByteCount::new(4));
        let recording = recorder.finish(ms(30), ending());
        assert_eq!(recording.app_bytes, [1, 2, 4]);
        assert_eq!(recording.last_byte_at, Some(ms(25)));
    }

    #[test]
    fn time_at_the_minimum_ends_with_the_window_s_growth_or_the_run() {
        let minimum = ByteCount::new(2700);
        let mut recorder = Recorder::new();
        recorder.on_window(ms(0), ByteCount::new(13_500), minimum);
        recorder.on_window(ms(100), minimum, minimum);
        recorder.on_window(ms(150), minimum, minimum);
        recorder.on_window(ms(400), ByteCount::new(2701), minimum);
        recorder.on_window(ms(900), minimum, minimum);
        let recording = recorder.finish(ms(1000), ending());
        assert_eq!(recording.at_minimum, Duration::from_millis(400));
    }

    #[test]
    fn the_escape_is_timed_from_the_end_of_the_last_phase() {
        let watching = || Recorder {
            watch: Some(Watch {
                from: ms(2000),
                window: ByteCount::new(13_500),
            }),
            ..Recorder::new()
        };
        let minimum = ByteCount::new(2700);
        let escape = |windows: &[(u64, u64)]| {
            let mut recorder = watching();
            for (at, window) in windows {
                recorder.on_window(ms(*at), ByteCount::new(*window), minimum);
            }
            recorder.finish(ms(3000), ending()).escape
        };
        let millis = |span| Some(Duration::from_millis(span));
        assert_eq!(escape(&[(10, 20_000), (1000, 2700), (2100, 9000)]), None);
        assert_eq!(
            escape(&[(1000, 2700), (2150, 13_500), (2200, 14_000)]),
            millis(150)
        );
        assert_eq!(escape(&[(1000, 13_500), (2150, 2700)]), millis(0));
        // What happened before the end of the phase and was undone is no escape.
        assert_eq!(
            escape(&[(1000, 20_000), (1500, 2700), (2500, 13_500)]),
            millis(500)
        );
    }

    #[test]
    fn a_burst_is_what_leaves_within_a_millisecond() {
        let burst = |sent: &[(u64, u64)]| {
            let mut recorder = Recorder::new();
            for (micros, bytes) in sent {
                let now = Timestamp::ZERO + Duration::from_micros(*micros);
                recorder.on_datagram_sent(now, ByteCount::new(*bytes));
            }
            let largest = recorder.finish(ms(30), ending()).largest_burst;
            largest.map(ByteCount::as_u64)
        };
        assert_eq!(burst(&[]), None);
        assert_eq!(burst(&[(0, 7)]), Some(7));
        // Across the border of two milliseconds, but not a whole one apart.
        assert_eq!(
            burst(&[(600, 10), (1100, 20), (1599, 40), (1600, 80)]),
            Some(140)
        );
        assert_eq!(burst(&[(0, 1), (999, 2)]), Some(3));
        assert_eq!(burst(&[(0, 1), (1000, 1), (2000, 1)]), Some(1));
    }

    #[test]
    fn the_window_at_the_end_is_the_last_one_seen() {
        let mut recorder = Recorder::new();
        recorder.on_window(ms(0), ByteCount::new(13_500), ByteCount::new(2700));
        recorder.on_window(ms(5), ByteCount::new(4000), ByteCount::new(2700));
        let recording = recorder.finish(ms(9), ending());
        assert_eq!(recording.window_at_end, Some(ByteCount::new(4000)));
    }

    fn seen(track: &Track) -> Vec<(u64, [u64; 3])> {
        track
            .slots()
            .map(|(at, seen)| (at.as_nanos() / 1_000_000, [seen.min, seen.max, seen.last]))
            .collect()
    }

    #[test]
    fn a_slot_keeps_the_smallest_the_largest_and_the_latest_value() {
        let mut track = Track::default();
        for (at, value) in [(0, 7), (3, 2), (9, 5), (10, 4), (35, 6)] {
            track.on_value(ms(at), value);
        }
        assert_eq!(track.slot(), BUCKET);
        assert_eq!(
            seen(&track),
            [(0, [2, 7, 5]), (10, [4, 4, 4]), (30, [6, 6, 6])]
        );
    }

    #[test]
    fn long_runs_get_longer_slots_instead_of_more() {
        let mut track = Track::default();
        for (at, value) in [(0, 9), (10, 3), (20, 4), (50, 8), (20_000, 1)] {
            track.on_value(ms(at), value);
        }
        assert_eq!(track.slot(), Duration::from_millis(20));
        assert_eq!(
            seen(&track),
            [
                (0, [3, 9, 3]),
                (20, [4, 4, 4]),
                (40, [8, 8, 8]),
                (20_000, [1, 1, 1])
            ]
        );
        track.on_value(Timestamp::MAX, 5);
        assert_eq!(track.slots().count(), 2);
        assert!(track.slots.len() <= Track::MAX_SLOTS);
    }

    #[test]
    fn windows_and_rtt_samples_leave_tracks() {
        let mut recorder = Recorder::new();
        recorder.on_window(ms(0), ByteCount::new(13_500), ByteCount::new(2700));
        recorder.on_rtt(ms(12), Duration::from_micros(10_250));
        recorder.on_window(ms(12), ByteCount::new(14_850), ByteCount::new(2700));
        let tracks = recorder.finish(ms(30), ending()).tracks;
        assert_eq!(seen(&tracks.window), [(0, [13_500; 3]), (10, [14_850; 3])]);
        assert_eq!(seen(&tracks.rtt), [(10, [10_250_000; 3])]);
        assert_eq!(tracks.minimum_window, Some(ByteCount::new(2700)));
    }
}
