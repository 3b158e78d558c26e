//! Events as lines of comma-separated values (RFC 4180), for spreadsheets and data frames.

use std::fmt::Write as _;
use std::time::Duration;

use units::{ByteCount, Rate};

use crate::read::event::{Event, Frame, Packet};
use crate::read::{Header, Record};

/// The columns. A cell is empty where the event does not have it. `stream_bytes` is the stream data in a
/// packet, `acked_ranges` the ranges of its ACK frames as "low-high" with spaces between them, `data` the data of
/// the event as JSON, and `beside` what stands beside it, such as `cc_model`.
pub const COLUMNS: [&str; 23] = [
    "record",
    "time_ms",
    "name",
    "packet_type",
    "packet_number",
    "length_bytes",
    "stream_bytes",
    "acked_ranges",
    "trigger",
    "old_state",
    "new_state",
    "min_rtt_ms",
    "smoothed_rtt_ms",
    "latest_rtt_ms",
    "rtt_variance_ms",
    "pto_count",
    "congestion_window_bytes",
    "bytes_in_flight_bytes",
    "ssthresh_bytes",
    "packets_in_flight",
    "pacing_rate_bps",
    "data",
    "beside",
];

/// The line of the columns' names.
pub fn head() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

/// The line of one event.
pub fn line(record: &Record, header: &Header) -> String {
    let mut cells: [String; COLUMNS.len()] = Default::default();
    let mut set = |column: &str, value: Option<String>| {
        let index = COLUMNS.iter().position(|name| *name == column);
        if let (Some(index), Some(value)) = (index, value) {
            cells[index] = value;
        }
    };
    set("record", Some(record.number.to_string()));
    set("time_ms", Some(millis(record.at.as_nanos())));
    set("name", Some(record.name.clone()));
    let event = Event::of(record, header);
    match &event {
        Event::PacketSent(packet) | Event::PacketReceived(packet) => {
            set("packet_type", packet.ty.map(|ty| ty.as_str().to_owned()));
            set("packet_number", packet.id.map(|id| id.number.to_string()));
            set("length_bytes", bytes(packet.length));
            let (stream, acked) = contents(packet);
            set("stream_bytes", stream);
            set("acked_ranges", acked);
            if packet.is_pto_probe {
                set("trigger", Some("pto_probe".to_owned()));
            }
        }
        Event::PacketLost { id, trigger } => {
            set("packet_number", id.map(|id| id.number.to_string()));
            set("trigger", trigger.clone());
        }
        Event::CongestionState { old, new, trigger } => {
            set("old_state", old.clone());
            set("new_state", Some(new.clone()));
            set("trigger", trigger.clone());
        }
        Event::ConnectionState(new) => set("new_state", Some(new.clone())),
        Event::Metrics(metrics) => {
            let span = |span: Option<Duration>| {
                let ns = u64::try_from(span?.as_nanos()).ok()?;
                Some(millis(ns))
            };
            set("min_rtt_ms", span(metrics.min_rtt));
            set("smoothed_rtt_ms", span(metrics.smoothed_rtt));
            set("latest_rtt_ms", span(metrics.latest_rtt));
            set("rtt_variance_ms", span(metrics.rtt_variance));
            set(
                "pto_count",
                metrics.pto_count.map(|count| count.to_string()),
            );
            set("congestion_window_bytes", bytes(metrics.window));
            set("bytes_in_flight_bytes", bytes(metrics.in_flight));
            set("ssthresh_bytes", bytes(metrics.ssthresh));
            set(
                "packets_in_flight",
                metrics.packets_in_flight.map(|count| count.to_string()),
            );
            set(
                "pacing_rate_bps",
                metrics
                    .pacing_rate
                    .map(Rate::as_bps)
                    .map(|bps| bps.to_string()),
            );
        }
        _ => {}
    }
    set("data", Some(record.data.to_string()));
    if !record.beside.is_empty() {
        let beside = serde_json::to_string(&record.beside);
        set("beside", beside.ok());
    }
    let mut line = String::new();
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        push(&mut line, cell);
    }
    line.push_str("\r\n");
    line
}

/// The stream data of a packet, and what it acknowledges.
fn contents(packet: &Packet) -> (Option<String>, Option<String>) {
    let mut stream: Option<u64> = None;
    let mut acked = String::new();
    for frame in packet.frames() {
        match frame {
            Frame::Stream {
                length: Some(length),
                ..
            } => stream = Some(stream.unwrap_or(0).saturating_add(*length)),
            Frame::Ack(ranges) => {
                for (low, high) in ranges {
                    let gap = if acked.is_empty() { "" } else { " " };
                    // Writing to a String cannot fail.
                    let _ = write!(acked, "{gap}{low}-{high}");
                }
            }
            _ => {}
        }
    }
    (
        stream.map(|bytes| bytes.to_string()),
        (!acked.is_empty()).then_some(acked),
    )
}

fn bytes(bytes: Option<ByteCount>) -> Option<String> {
    bytes.map(|bytes| bytes.as_u64().to_string())
}

fn millis(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// RFC 4180 section 2: a cell with commas, quotes or line breaks stands in quotes, and quotes are doubled. One that
/// a spreadsheet would take for a formula gets a quote in front, because names come from the network.
fn push(line: &mut String, cell: &str) {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if is_formula { "'" } else { "" };
    if is_formula || cell.contains([',', '"', '\n', '\r']) {
        let _ = write!(line, "\"{guard}{}\"", cell.replace('"', "\"\""));
    } else {
        line.push_str(cell);
    }
}
