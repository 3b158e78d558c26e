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

use std::collections::BTreeMap;
use std::time::Duration;

use netsim::{OutputRecord, Pipe};
use units::{ByteCount, Timestamp};

use crate::results::{LinkCounts, Outcome, Percentiles, RealTiming, SenderCounts};

/// Bytes are counted per stretch of this length; windows of bands end on its multiples.
pub const BUCKET: Duration = OutputRecord::BUCKET;

/// Listens to one run.
#[derive(Debug)]
pub struct Recorder {
    first_datagram_at: Option<Timestamp>,
    handshake_at: Option<Timestamp>,
    last_byte_at: Option<Timestamp>,
    app_bytes: Vec<u64>,
    rtt_samples: Vec<(Timestamp, Duration)>,
    transitions: BTreeMap<(&'static str, &'static str), u64>,
    window: Option<(Timestamp, bool)>,
    at_minimum: Duration,
}

impl Recorder {
    /// An empty record.
    #[must_use]
    pub fn new() -> Self {
        Self {
            first_datagram_at: None,
            handshake_at: None,
            last_byte_at: None,
            app_bytes: Vec::new(),
            rtt_samples: Vec::new(),
            transitions: BTreeMap::new(),
            window: None,
            at_minimum: Duration::ZERO,
        }
    }

    /// The client hands its first datagram to the network; later calls change nothing.
    pub fn on_first_datagram(&mut self, now: Timestamp) {
        self.first_datagram_at.get_or_insert(now);
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
    }

    /// The sender's congestion state changed. Names as in qlog.
    pub fn on_transition(&mut self, from: &'static str, to: &'static str) {
        *self.transitions.entry((from, to)).or_insert(0) += 1;
    }

    /// The sender's window from now on, and the smallest it can be.
    pub fn on_window(&mut self, now: Timestamp, window: ByteCount, minimum: ByteCount) {
        let is_at_minimum = window <= minimum;
        if let Some((since, true)) = self.window {
            self.at_minimum += now.saturating_since(since);
        }
        self.window = Some((now, is_at_minimum));
    }

    /// Closes the record at the end of the run with what only counters know.
    #[must_use]
    pub fn finish(mut self, now: Timestamp, ending: Ending) -> Recording {
        if let Some((since, true)) = self.window.take() {
            self.at_minimum += now.saturating_since(since);
        }
        Recording {
            outcome: ending.outcome,
            ended_at: now,
            first_datagram_at: self.first_datagram_at,
            handshake_at: self.handshake_at,
            last_byte_at: self.last_byte_at,
            app_bytes: self.app_bytes,
            rtt_samples: self.rtt_samples,
            transitions: self.transitions,
            at_minimum: self.at_minimum,
            sender: ending.sender,
            forward: ending.forward,
            reverse: ending.reverse,
            real: ending.real,
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
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
}

/// What a pipe knows at the end of a run.
#[derive(Debug, Clone)]
pub struct LinkEnding {
    pub(crate) counts: LinkCounts,
    pub(crate) queue_delay: Option<Percentiles>,
    pub(crate) output: OutputRecord,
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
    pub(crate) sender: SenderCounts,
    pub(crate) forward: LinkEnding,
    pub(crate) reverse: LinkEnding,
    pub(crate) real: Option<RealTiming>,
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
}
