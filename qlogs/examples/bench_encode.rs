//! Measures what one event costs: `cargo run --release -p qlogs --example bench_encode`.
//!
//! The sink throws everything away, so this is the encoder alone, without a disk.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use qlogs::{Event, Frame, Metrics, PacketType, TraceHeader, VantagePoint, Writer};
use units::{ByteCount, Rate, Timestamp};

const ROUNDS: u64 = 1_000_000;

fn main() -> io::Result<()> {
    let stream = |n: u64| {
        vec![Frame::Stream {
            stream_id: 0,
            offset: n * 1_170,
            length: 1_170,
            fin: false,
        }]
    };
    measure("packet_sent, one stream frame", |n| sent(n, stream(n)))?;
    measure("packet_sent, no frames", |n| sent(n, Vec::new()))?;
    measure("packet_received, ack of 3 ranges", |n| {
        Event::PacketReceived {
            ty: PacketType::OneRtt,
            pn: n,
            length: ByteCount::new(45),
            frames: vec![Frame::Ack {
                ack_delay: Duration::from_micros(160),
                ranges: vec![(n, n + 9), (n / 2, n / 2 + 4), (0, 2)],
                ecn: None,
            }],
        }
    })?;
    measure("metrics_updated, 6 fields changed", |n| {
        Event::MetricsUpdated(Metrics {
            min_rtt: Some(Duration::from_millis(10)),
            smoothed_rtt: Some(Duration::from_nanos(12_345_678 + n)),
            latest_rtt: Some(Duration::from_nanos(11_345_678 + n)),
            rtt_variance: Some(Duration::from_nanos(345_678 + n)),
            congestion_window: Some(ByteCount::new(100_000 + n)),
            bytes_in_flight: Some(ByteCount::new(90_000 + n)),
            pacing_rate: Some(Rate::from_bps(100_000_000 + n)),
            ..Metrics::default()
        })
    })
}

fn sent(pn: u64, frames: Vec<Frame>) -> Event {
    let (ty, length) = (PacketType::OneRtt, ByteCount::new(1_200));
    Event::PacketSent {
        ty,
        pn,
        length,
        frames,
        is_mtu_probe: false,
        is_pto_probe: false,
    }
}

/// Prints the nanoseconds and bytes per event, the making of the event not counted.
fn measure(what: &str, event: impl Fn(u64) -> Event) -> io::Result<()> {
    let header = TraceHeader::new(VantagePoint::Server, vec![0xab; 8]);
    let mut writer = Writer::new(Discard { bytes: 0 }, &header)?;
    let mut spent = Duration::ZERO;
    for batch in 0..ROUNDS / BATCH {
        let events: Vec<Event> = (batch * BATCH..(batch + 1) * BATCH).map(&event).collect();
        let begin = now();
        for (n, event) in (0..).zip(&events) {
            let at = Timestamp::from_nanos((batch * BATCH + n) * 96_123);
            writer.write(at, black_box(event));
        }
        spent += now() - begin;
    }
    // The header's few hundred bytes vanish in a million events.
    let bytes = writer.finish()?.bytes;
    let nanos = spent.as_nanos() / u128::from(ROUNDS);
    println!("{what:36} {nanos:5} ns/event {:5} B/event", bytes / ROUNDS);
    Ok(())
}

/// Events are made ahead in batches, so that the clock is read rarely and the memory stays small.
const BATCH: u64 = 1_000;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

struct Discard {
    bytes: u64,
}

impl io::Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
