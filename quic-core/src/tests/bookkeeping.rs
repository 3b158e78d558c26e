//! The sender's books against quinn-proto's, over a network that loses, reorders and duplicates.

use std::time::Duration;

use bytes::Bytes;
use cc::Algorithm;
use serde_json::Value;
use units::{ByteCount, Timestamp};

use super::{
    Faults, Memory, config,
    network::{CLIENT, Net, SERVER},
    pattern, percent,
};
use crate::{
    config::EndpointConfig,
    conn::ConnectionStats,
    handles::{Connection, RecvStream, SendStream},
    sender::SenderStats,
};

const BULK: u64 = 300_000;
const REQUESTS: u64 = 8;
const RESPONSE: u64 = 5_000;

fn hostile() -> Faults {
    Faults {
        loss: percent(8),
        reordering: percent(15),
        lateness: Duration::from_millis(20),
        duplication: percent(5),
        ..Faults::NONE
    }
}

/// Writes the pattern of `salt` in pieces of odd sizes, and waits until it is acknowledged.
async fn send_pattern(mut stream: SendStream, salt: u64, length: u64) {
    let mut offset = 0;
    while offset < length {
        let piece = (1 + (offset * 7_919) % 9_000).min(length - offset);
        let data = pattern(salt, offset, ByteCount::new(piece).as_usize());
        stream
            .write_chunk(Bytes::from(data))
            .await
            .expect("a write");
        offset += piece;
    }
    stream.finish().expect("an end");
    assert_eq!(stream.stopped().await, Ok(None));
}

async fn expect_pattern(mut stream: RecvStream, salt: u64, length: u64) {
    let mut offset = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await.expect("a read") {
        assert!(chunk == pattern(salt, offset, chunk.len()), "at {offset}");
        offset += chunk.len() as u64;
    }
    assert_eq!(offset, length);
}

async fn bulk_both_ways(connection: &Connection, own_salt: u64, peer_salt: u64) {
    let stream = connection.open_uni().await.expect("a stream");
    let incoming = async {
        let stream = connection.accept_uni().await.expect("a stream");
        expect_pattern(stream, peer_salt, BULK).await;
    };
    tokio::join!(send_pattern(stream, own_salt, BULK), incoming);
}

async fn serve(connection: Connection) {
    let answers = async {
        for request in 0..REQUESTS {
            let (send, recv) = connection.accept_bi().await.expect("a request");
            expect_pattern(recv, request, 100).await;
            send_pattern(send, request, RESPONSE).await;
        }
    };
    tokio::join!(bulk_both_ways(&connection, 90, 80), answers);
    connection.closed().await;
}

async fn ask(connection: Connection) -> Connection {
    connection.handshake().await.expect("a handshake");
    let requests = async {
        for request in 0..REQUESTS {
            let (send, recv) = connection.open_bi().await.expect("a stream");
            tokio::join!(
                send_pattern(send, request, 100),
                expect_pattern(recv, request, RESPONSE)
            );
        }
    };
    tokio::join!(bulk_both_ways(&connection, 80, 90), requests);
    connection
}

/// Plays one seed to its end; the books of both sides, compared.
fn play(seed: u64, set: impl Fn(&mut EndpointConfig)) -> [SenderStats; 2] {
    let configured = |seed| {
        let mut config = config(seed);
        set(&mut config);
        config
    };
    let faults = hostile();
    let mut net = Net::new(seed, faults, configured(seed * 2 + 1), configured(seed * 2));
    let server = net.server.clone();
    net.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        serve(connection).await;
    });
    let held = super::shared(None);
    let (connection, keep) = (net.connect(), held.clone());
    net.spawn(async move {
        let connection = ask(connection).await;
        *keep.lock().expect("unpoisoned") = Some(connection);
    });
    let is_over = net.run_until(Timestamp::from_secs(120), |_| {
        held.lock().expect("unpoisoned").is_some()
    });
    assert!(is_over, "seed {seed}: everything arrives");
    // The last acknowledgements, and the probes for those that get lost.
    net.pass(Duration::from_secs(5));

    let books = [CLIENT, SERVER].map(|side| {
        let now = net.now();
        let books = net.each(side, |conn| {
            let stats = conn.stats(now);
            let path = conn.quic_and_streams().0.stats().path;
            assert_eq!(stats.in_flight, ByteCount::ZERO, "seed {seed}, side {side}");
            assert_eq!(
                stats.smoothed_rtt,
                Some(path.rtt),
                "seed {seed}, side {side}"
            );
            assert_eq!(
                stats.min_rtt,
                Some(path.min_rtt),
                "seed {seed}, side {side}"
            );
            assert_eq!(
                stats.sender.bytes_lost.as_u64(),
                path.lost_bytes,
                "seed {seed}, side {side}"
            );
            stats.sender
        });
        let [books] = books[..] else {
            panic!("one connection")
        };
        assert_eq!(books.in_flight_mismatches, 0, "seed {seed}, side {side}");
        assert_eq!(books.loss_mismatches, 0, "seed {seed}, side {side}");
        assert_eq!(books.open_gate_stalls, 0, "seed {seed}, side {side}");
        books
    });
    let connection = held.lock().expect("unpoisoned").take();
    connection.expect("a connection").close(0, b"");
    let end = net.now() + Duration::from_secs(40);
    assert!(net.run(end), "seed {seed}: the close arrives");
    books
}

fn play_all(set: impl Fn(&mut EndpointConfig)) {
    let mut total = SenderStats::default();
    for seed in 0..40 {
        for books in play(seed, &set) {
            total.packets_lost += books.packets_lost;
            total.loss_events += books.loss_events;
            total.spurious_losses += books.spurious_losses;
            total.pto_count += books.pto_count;
        }
    }
    // That there was something to compare.
    assert!(total.loss_events > 1_500, "{total:?}");
    assert!(total.packets_lost > 2_000, "{total:?}");
    assert!(total.spurious_losses > 300, "{total:?}");
    assert!(total.pto_count > 40, "{total:?}");
}

#[test]
fn the_books_agree_with_quinn_proto_in_every_event_under_cubic() {
    play_all(|config| config.algorithm = Algorithm::CUBIC);
}

#[test]
fn the_books_agree_with_quinn_proto_in_every_event_under_new_reno_with_mtu_discovery() {
    play_all(|config| {
        config.algorithm = Algorithm::NEW_RENO;
        config.has_mtu_discovery = true;
    });
}

/// A transfer from the server to the client, with whatever `disturb` does to it every 50 ms; the
/// server's figures at its end.
fn download(mut net: Net, disturb: impl Fn(&mut Net)) -> ConnectionStats {
    let server = net.server.clone();
    net.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        let stream = connection.open_uni().await.expect("a stream");
        send_pattern(stream, 1, 5 * BULK).await;
        connection.closed().await;
    });
    let is_done = super::shared(false);
    let (connection, done) = (net.connect(), is_done.clone());
    let client = connection.clone();
    net.spawn(async move {
        let stream = client.accept_uni().await.expect("a stream");
        expect_pattern(stream, 1, 5 * BULK).await;
        *done.lock().expect("unpoisoned") = true;
        client.closed().await;
    });
    while !*is_done.lock().expect("unpoisoned") {
        net.pass(Duration::from_millis(50));
        disturb(&mut net);
        assert!(net.now() < Timestamp::from_secs(60), "it does not end");
    }
    net.pass(Duration::from_secs(5));
    let now = net.now();
    let stats = net.each(SERVER, |conn| conn.stats(now));
    assert_eq!(stats[0].in_flight, ByteCount::ZERO);
    assert_eq!(stats[0].sender.loss_mismatches, 0);
    connection.close(0, b"");
    let end = net.now() + Duration::from_secs(40);
    assert!(net.run(end));
    stats[0].clone()
}

#[test]
fn congestion_marks_shrink_the_window_without_a_loss() {
    let mut net = Net::new(1, Faults::NONE, config(1), config(2));
    net.marking = percent(2);
    let stats = download(net, |_| {});
    assert_eq!(stats.sender.packets_lost, 0);
    assert_eq!(stats.sender.in_flight_mismatches, 0);
    // 1250 datagrams, of which 25 are marked, mostly in round trips of their own.
    assert!(stats.sender.recoveries >= 5, "{stats:?}");
}

/// RFC 9001 section 6: keys that replace one another discard no packets.
#[test]
fn key_updates_leave_the_books_alone() {
    let net = Net::new(1, hostile(), config(1), config(2));
    let stats = download(net, |net| {
        net.each(SERVER, |conn| conn.quic_and_streams().0.force_key_update());
    });
    assert!(stats.sender.packets_lost > 20, "{stats:?}");
    assert_eq!(stats.sender.in_flight_mismatches, 0);
}

/// RFC 9000 section 14.3: a path that no longer carries what it carried before.
#[test]
fn a_path_whose_mtu_shrinks_is_survived() {
    let discovering = |seed| EndpointConfig {
        has_mtu_discovery: true,
        ..config(seed)
    };
    let net = Net::new(1, Faults::NONE, discovering(1), discovering(2));
    let stats = download(net, |net| {
        let now = net.now();
        let sizes = net.each(SERVER, |conn| conn.stats(now).datagram_size);
        if sizes[0] == ByteCount::new(1_452) {
            net.path_mtu = 1_250;
        }
    });
    assert!(stats.datagram_size <= ByteCount::new(1_250), "{stats:?}");
    assert_eq!(stats.sender.in_flight_mismatches, 0);
}

/// RFC 9000 section 9.3.3: a NAT gives the client another port. quinn-proto starts a new path with
/// nothing in flight, and the books follow it.
#[test]
fn a_client_whose_port_changes_keeps_its_transfer() {
    let net = Net::new(1, Faults::NONE, config(1), config(2));
    let stats = download(net, |net| {
        if net.now() == Timestamp::from_millis(150) {
            net.client_port += 1;
        }
    });
    assert!(stats.sender.in_flight_mismatches > 0, "{stats:?}");
}

/// RFC 9000 section 14.4: the search for a larger MTU goes on after an idle time too, and what starts
/// it then is a timer; but its probes answer no lost packet.
#[test]
fn a_probe_for_a_larger_mtu_is_never_taken_for_a_timeout_probe() {
    let log = Memory::default();
    let client = EndpointConfig {
        has_mtu_discovery: true,
        keep_alive: Some(Duration::from_secs(20)),
        log: Some(log.factory()),
        ..config(1)
    };
    let mut net = Net::new(1, Faults::NONE, client, config(2));
    net.path_mtu = 1_300;
    let connection = net.connect();
    // quinn-proto searches again after ten minutes.
    net.pass(Duration::from_secs(700));
    let size = connection.stats().datagram_size.as_u64();
    assert!((1_260..=1_300).contains(&size), "{size}");
    assert_eq!(connection.stats().sender.in_flight_mismatches, 0);
    connection.close(0, b"");
    net.pass(Duration::from_secs(60));

    let records = log.records();
    let probes: Vec<_> = records
        .iter()
        .filter(|record| record["data"]["is_mtu_probe_packet"] == true)
        .collect();
    let is_late = |record: &&&Value| record["time"].as_f64().is_some_and(|ms| ms > 600_000.0);
    assert!(probes.iter().any(|record| is_late(&record)), "{probes:?}");
    for probe in probes {
        assert!(probe["data"]["trigger"].is_null(), "{probe}");
    }
}
