//! A pipe with a packet counter at each end.

use std::fmt::Display;
use std::time::Duration;

use netsim::{Labels, Packet, Pipe, PipeConfig, RandomStreams};
use units::{ByteCount, Fraction, Timestamp};

use crate::validation_rows;

/// Sends numbered packets, 1, 2, 3 and so on, and notes which arrived when.
pub(crate) struct Bench {
    pub(crate) pipe: Pipe<u64>,
    pub(crate) sent: u64,
    pub(crate) arrived: Vec<(Timestamp, u64)>,
}

impl Bench {
    pub(crate) fn new(config: PipeConfig) -> Self {
        Self::with_streams(config, &RandomStreams::new(1), "forward")
    }

    pub(crate) fn with_streams(config: PipeConfig, streams: &RandomStreams, name: &str) -> Self {
        Self {
            pipe: Pipe::new(config, streams, name).unwrap(),
            sent: 0,
            arrived: Vec::new(),
        }
    }

    /// Sends a packet of `size` bytes at `at`.
    pub(crate) fn send(&mut self, at: Timestamp, size: u64) {
        self.send_labelled(at, size, Labels::default());
    }

    pub(crate) fn send_labelled(&mut self, at: Timestamp, size: u64, labels: Labels) {
        self.run_until(at);
        self.sent += 1;
        let packet = Packet {
            labels,
            ..Packet::new(ByteCount::new(size), self.sent)
        };
        self.pipe.arrive(at, packet);
    }

    #[track_caller]
    pub(crate) fn run_until(&mut self, now: Timestamp) {
        self.pipe.advance(now, &mut |at, packet| {
            self.arrived.push((at, packet.payload))
        });
        assert!(
            self.pipe.counters().is_balanced(),
            "{:?}",
            self.pipe.counters()
        );
    }

    /// Runs until the pipe is empty.
    #[track_caller]
    pub(crate) fn drain(&mut self) {
        while let Some(at) = self.pipe.next_event() {
            self.run_until(at);
        }
    }

    /// The numbers of the packets that arrived, in that order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.arrived.iter().map(|(_, number)| *number).collect()
    }

    /// The nanoseconds at which packets arrived.
    pub(crate) fn nanos(&self) -> Vec<u64> {
        self.arrived.iter().map(|(at, _)| at.as_nanos()).collect()
    }
}

/// Compares a measured value with `docs/validation.md`, part "link model", or writes it there.
#[track_caller]
pub(crate) fn row(name: &str, measured: impl Display, allowed: impl Display) {
    validation_rows::row("link model", name, measured, allowed);
}

pub(crate) fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn span_ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn percent(percent: u32) -> Fraction {
    Fraction::from_percent(percent).unwrap()
}
