//! What a log says about its connection: a summary, what limited the sender, and what must not have happened.
//!
//! ```text
//!  Reader --> Event --> connection (in flight, window, streams, losses)
//!                          |                 |                |
//!                          v                 v                v
//!                      summary            limits           oracles
//! ```
//!
//! Everything is found in one pass; of a file with several traces the first is analysed.

pub(crate) mod connection;
mod limits;
mod series;
mod summary;
mod why;

use units::Timestamp;

use self::connection::Connection;
use self::limits::Limits;
pub use self::limits::{Limit, Stretch};
pub use self::series::{Sample, follow};
pub use self::summary::{StateTime, Summary};
pub use self::why::{Cause, Why};
use crate::oracles::{FileOracles, Violation};
use crate::read::event::Event;
use crate::read::{Fault, Reader};

/// What a log says about its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The figures.
    pub summary: Summary,
    /// What limited the sender.
    pub why: Why,
    /// What must not have happened: the first violation of each oracle.
    pub violations: Vec<Violation>,
    /// What ended the reading too early; everything else is about what is before it.
    pub fault: Option<Fault>,
}

/// Reads a file to its end, or to its fault.
pub fn analyse(mut reader: Reader<'_>) -> Analysis {
    let mut connection = Connection::new(reader.header().vantage_point);
    let mut limits = Limits::default();
    let mut oracles = FileOracles::default();
    let mut states = summary::States::default();
    let mut span: Option<(Timestamp, Timestamp)> = None;
    let mut event_count = 0;
    let mut trace_count = 1;
    let mut fault = None;
    let mut last_delivery = None;
    while let Some(record) = reader.next() {
        let record = match record {
            Ok(record) => record,
            Err(found) => {
                fault = Some(found);
                break;
            }
        };
        if record.trace > 0 {
            trace_count = record.trace + 1;
            continue;
        }
        event_count += 1;
        // Times that go back would make negative spans; `check` tells of them.
        let at = span.map_or(record.at, |(_, last)| last.max(record.at));
        let start = span.map_or(at, |(start, _)| start);
        span = Some((start, at));
        let event = Event::of(&record, reader.header());
        if connection.closed_at.is_none() {
            limits.advance(at, record.number, &connection);
            states.advance(at, &connection);
        }
        oracles.advance(at, record.number, &connection);
        let before = connection.counts.clone();
        let change = connection.on_event(at, &event);
        let now = &connection.counts;
        if now.stream_bytes_acked > before.stream_bytes_acked
            || now.stream_bytes_received > before.stream_bytes_received
        {
            last_delivery = Some(at);
        }
        limits.on_change(at, &change, &connection);
        oracles.on_change(at, record.number, &event, &change, &connection);
        states.on_change(&change);
    }
    let (start, last) = span.unwrap_or((Timestamp::ZERO, Timestamp::ZERO));
    let end = connection.closed_at.unwrap_or(last);
    let why = Why::new(end.saturating_since(start), limits.finish(), &connection);
    let mut summary = Summary::new(reader.header(), &connection, states, (start, end));
    summary.event_count = event_count;
    summary.trace_count = trace_count;
    summary.delivered_within = last_delivery.map(|at| at.saturating_since(start));
    summary.limit = why.main();
    Analysis {
        summary,
        why,
        violations: oracles.finish(&connection),
        fault,
    }
}
