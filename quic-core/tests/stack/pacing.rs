//! Pacing as seen on the wire.
//!
//! Bytes are counted as the pacer counts them: UDP payload, which is QUIC packets with header and
//! tag, without IP and UDP headers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use cc::{Algorithm, FixedConfig};
use units::{ByteCount, Rate, Timestamp};

use crate::common::{Net, Setup, download};

const DATAGRAM: u64 = 1_350;

/// What left one endpoint at one instant.
#[derive(Copy, Clone, Debug)]
struct Burst {
    at: Timestamp,
    bytes: u64,
}

/// Departures of the server, those within a microsecond taken as one burst.
#[derive(Clone, Default)]
struct Departures(Arc<Mutex<Vec<Burst>>>);

impl Departures {
    fn of_the_server(net: &mut Net) -> Self {
        let departures = Self::default();
        let (seen, server) = (departures.clone(), net.server_node);
        net.world.observe(Box::new(move |now, node, payload| {
            if node != server {
                return;
            }
            let mut bursts = seen.0.lock().expect("unpoisoned");
            let bytes = payload.len() as u64;
            match bursts.last_mut() {
                Some(last) if now.saturating_since(last.at) <= Duration::from_micros(1) => {
                    last.bytes += bytes;
                }
                _ => bursts.push(Burst { at: now, bytes }),
            }
        }));
        departures
    }

    /// The bursts from `from` to just before `to`.
    fn between(&self, from: Timestamp, to: Timestamp) -> Vec<Burst> {
        let bursts = self.0.lock().expect("unpoisoned");
        let bursts = bursts.iter().copied();
        bursts
            .filter(|burst| (from..to).contains(&burst.at))
            .collect()
    }
}

fn fixed(rate: Rate) -> Setup {
    Setup::new(Algorithm::Fixed(FixedConfig::new(rate)))
}

/// Sends as much as `rate` allows for `span`, from one second on; the server's departures then.
fn departures(rate: Rate, span: Duration, wake_up_delay: Duration) -> Vec<Burst> {
    let mut net = fixed(rate).build();
    net.world.set_wake_up_delay(net.server_node, wake_up_delay);
    let departures = Departures::of_the_server(&mut net);
    let (from, to) = (Timestamp::from_secs(1), Timestamp::from_secs(1) + span);
    // Twice as much as can leave.
    let size = 2 * rate.bytes_in(span + Duration::from_secs(1)).as_u64();
    let outcome = download(&mut net, size, to);
    assert!(outcome.received < size, "there was always more to send");
    departures.between(from, to)
}

/// What leaves must be `rate` to one per cent, and never more than `quantum` at once.
#[track_caller]
fn expect_rate(bursts: &[Burst], rate: Rate, span: Duration, quantum: u64) {
    let sent: u64 = bursts.iter().map(|burst| burst.bytes).sum();
    let wanted = rate.bytes_in(span).as_u64();
    assert!(
        sent.abs_diff(wanted) * 100 <= wanted,
        "{sent} bytes left, {wanted} were wanted"
    );
    let largest = bursts.iter().map(|burst| burst.bytes).max();
    assert!(largest <= Some(quantum), "{largest:?} at once");
}

#[test]
fn ten_megabits_per_second_leave_evenly() {
    let (rate, span) = (Rate::from_mbps(10), Duration::from_secs(6));
    let bursts = departures(rate, span, Duration::ZERO);
    expect_rate(&bursts, rate, span, 2 * DATAGRAM);
}

/// The quantum is a millisecond's worth, 10 kB, rounded up to datagrams.
#[test]
fn eighty_megabits_per_second_leave_in_bursts_of_a_millisecond() {
    let (rate, span) = (Rate::from_mbps(80), Duration::from_secs(5));
    let bursts = departures(rate, span, Duration::ZERO);
    expect_rate(&bursts, rate, span, 8 * DATAGRAM);
}

#[test]
fn sixty_four_kilobits_per_second_leave_with_even_gaps() {
    let (rate, span) = (Rate::from_kbps(64), Duration::from_secs(30));
    let bursts = departures(rate, span, Duration::ZERO);
    expect_rate(&bursts, rate, span, 2 * DATAGRAM);
    assert!(bursts.len() > 80, "{}", bursts.len());
    for pair in bursts.windows(2) {
        let gap = pair[1].at.saturating_since(pair[0].at).as_nanos();
        let wanted = rate.time_for(ByteCount::new(pair[0].bytes)).as_nanos();
        assert!(gap.abs_diff(wanted) * 20 <= wanted, "{pair:?}");
    }
}

#[test]
fn wake_ups_a_millisecond_late_do_not_lower_the_rate() {
    for rate in [Rate::from_mbps(10), Rate::from_mbps(40)] {
        let span = Duration::from_secs(6);
        let bursts = departures(rate, span, Duration::from_millis(1));
        // One millisecond's worth, two datagrams at least.
        let quantum = rate.bytes_in(Duration::from_millis(1)).as_u64();
        let quantum = quantum.div_ceil(DATAGRAM).max(2) * DATAGRAM;
        expect_rate(&bursts, rate, span, quantum);
    }
}

/// Nothing was held back while there was nothing to send, so there is nothing to make up for.
#[test]
fn a_restart_after_idle_sends_one_quantum() {
    let rate = Rate::from_mbps(10);
    let mut net = fixed(rate).build();
    let departures = Departures::of_the_server(&mut net);
    let server = net.server.clone();
    let timers = net.world.timers();
    net.world.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        let mut stream = connection.open_uni().await.expect("a stream");
        for second in 1..5 {
            timers.sleep_until(Timestamp::from_secs(second)).await;
            let data = Bytes::from(vec![0; 50_000]);
            stream.write_chunk(data).await.expect("a write");
        }
        connection.closed().await;
    });
    let connection = net
        .client
        .connect(net.server_address, "localhost")
        .expect("a connection");
    net.world.run(Timestamp::from_secs(6), || false);
    drop(connection);

    for second in 1..5 {
        let from = Timestamp::from_secs(second);
        let bursts = departures.between(from, from + Duration::from_millis(30));
        let first = bursts.first().expect("a burst");
        assert_eq!(first.at, from, "the first leaves at once");
        expect_no_burst_above_the_quantum(&bursts, rate);
    }
}

#[track_caller]
fn expect_no_burst_above_the_quantum(bursts: &[Burst], rate: Rate) {
    assert!(bursts.len() > 5, "{bursts:?}");
    for pair in bursts.windows(2) {
        assert!(pair[0].bytes <= 2 * DATAGRAM, "{pair:?}");
        let gap = pair[1].at.saturating_since(pair[0].at);
        let wanted = rate.time_for(ByteCount::new(pair[0].bytes));
        // To the rounding of a nanosecond.
        assert!(gap + Duration::from_nanos(2) >= wanted, "{pair:?}");
    }
}

/// Forty milliseconds a round trip: more than a window never leaves in one, and hardly less.
#[test]
fn the_window_bounds_what_a_round_trip_carries() {
    let window = ByteCount::new(20 * DATAGRAM);
    let rate = Rate::from_mbps(80);
    let mut net = Setup::new(Algorithm::Fixed(FixedConfig { rate, window })).build();
    let departures = Departures::of_the_server(&mut net);
    let end = Timestamp::from_secs(6);
    download(&mut net, 20_000_000, end);
    let mut sent = 0;
    for round in 0..100 {
        let from = Timestamp::from_secs(1) + Duration::from_millis(40) * round;
        let bursts = departures.between(from, from + Duration::from_millis(40));
        let bytes: u64 = bursts.iter().map(|burst| burst.bytes).sum();
        // An acknowledgement of the client's flow control may be among them.
        assert!(bytes <= window.as_u64() + 100, "{bytes} in round {round}");
        sent += bytes;
    }
    assert!(sent > 90 * window.as_u64(), "{sent}");
}

/// Whatever controller is in charge, quinn-proto's own pacer never holds data back.
#[test]
fn the_pacer_of_quinn_proto_never_waits() {
    for name in ["newreno", "cubic", "fixed:10Mbit/s", "fixed:95Mbit/s"] {
        let algorithm: Algorithm = name.parse().expect("an algorithm");
        let mut net = Setup::new(algorithm).build();
        let outcome = download(&mut net, 3_000_000, Timestamp::from_secs(20));
        assert_eq!(outcome.received, 3_000_000, "{name}");
        let sender = outcome.server.expect("figures").sender;
        assert_eq!(sender.open_gate_stalls, 0, "{name}");
    }
}
