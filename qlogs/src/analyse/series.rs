//! Quantities over time, for pictures.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use super::connection::Connection;
use crate::read::event::Event;
use crate::read::{Fault, Reader};

/// A connection at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Since the first event.
    pub at: Timestamp,
    /// Sent so far: whole packets.
    pub sent: ByteCount,
    /// Acknowledged of those that needed it.
    pub acked: ByteCount,
    /// Declared lost.
    pub lost: ByteCount,
    /// The congestion window.
    pub window: Option<ByteCount>,
    /// The bytes in flight.
    pub in_flight: ByteCount,
    /// A new sample of the round-trip time.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The rate of the pacer.
    pub pacing_rate: Option<Rate>,
    /// The congestion state, if this event entered it.
    pub state: Option<String>,
}

/// Reads the first trace of a file and hands over the connection after each of its events.
pub fn follow(mut reader: Reader<'_>, mut each: impl FnMut(Sample)) -> Option<Fault> {
    let mut connection = Connection::new(reader.header().vantage_point);
    let mut first = None;
    let mut last = Timestamp::ZERO;
    while let Some(record) = reader.next() {
        let record = match record {
            Ok(record) => record,
            Err(fault) => return Some(fault),
        };
        if record.trace > 0 {
            break;
        }
        let event = Event::of(&record, reader.header());
        last = last.max(record.at);
        let start = *first.get_or_insert(last);
        let change = connection.on_event(last, &event);
        let counts = &connection.counts;
        each(Sample {
            at: Timestamp::ZERO + last.saturating_since(start),
            sent: ByteCount::new(counts.sent_bytes),
            acked: ByteCount::new(counts.acked_bytes),
            lost: ByteCount::new(counts.lost_bytes),
            window: connection.window.map(ByteCount::new),
            in_flight: ByteCount::new(connection.in_flight()),
            rtt: change.rtt,
            smoothed_rtt: connection.smoothed_rtt,
            pacing_rate: connection.pacing_rate,
            state: change.state.map(|state| state.new),
        });
    }
    None
}
