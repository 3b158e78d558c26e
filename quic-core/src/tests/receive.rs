//! What comes out of order, in any amount: nothing is lost, nothing grows without limit.

use std::{collections::VecDeque, task::Waker, time::Duration};

use bytes::Bytes;
use cc::{Algorithm, FixedConfig};
use units::{ByteCount, Rate, Timestamp};

use super::{
    Faults, config,
    network::{CLIENT, Net},
    pattern, percent,
    raw::{self, Pair},
    shared, wide_open,
};
use crate::{
    config::EndpointConfig,
    handles::{Connection, RecvStream},
    receive::Receive,
};

const LENGTH: usize = 12_000_000;

/// A server that sends as fast as it is told to, whatever gets lost.
fn net(client: EndpointConfig) -> Net {
    let server = EndpointConfig {
        algorithm: Algorithm::Fixed(FixedConfig::new(Rate::from_mbps(4_000))),
        ..wide_open(config(2))
    };
    Net::new(1, Faults::NONE, client, server)
}

/// Starts a transfer of [`LENGTH`] bytes to the client, who has the stream and has not read from it.
fn offer(net: &mut Net) -> (Connection, RecvStream) {
    let client = net.connect();
    let server = net.server.clone();
    net.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        let mut stream = connection.open_uni().await.expect("a stream");
        let data = Bytes::from(pattern(7, 0, LENGTH));
        // What leaves first tells the client of the stream.
        stream
            .write_chunk(data.slice(..1))
            .await
            .expect("an open stream");
        stream
            .write_chunk(data.slice(1..))
            .await
            .expect("an open stream");
        stream.finish().expect("an open stream");
        stream.stopped().await.expect("a connection");
    });
    let (accepted, kept) = (client.clone(), shared(None));
    let keep = kept.clone();
    net.spawn(async move {
        let stream = accepted.accept_uni().await.expect("a stream");
        *keep.lock().expect("unpoisoned") = Some(stream);
    });
    net.run_until(Timestamp::from_secs(1), |_| {
        kept.lock().expect("unpoisoned").is_some()
    });
    let stream = kept.lock().expect("unpoisoned").take();
    (client, stream.expect("a stream"))
}

/// Reads to the end and compares every byte.
async fn read_all(mut stream: RecvStream) {
    let expected = pattern(7, 0, LENGTH);
    let mut at = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await.expect("a whole stream") {
        assert_eq!(chunk, expected[at..at + chunk.len()], "at offset {at}");
        at += chunk.len();
    }
    assert_eq!(at, LENGTH);
}

#[test]
fn more_holes_than_quinn_proto_keeps_are_filled() {
    let mut net = net(wide_open(config(1)));
    let (_client, stream) = offer(&mut net);
    net.holes = 7_000;
    net.spawn(read_all(stream));
    let mut most = 0;
    let limit = Timestamp::from_secs(10);
    assert!(net.run_until(limit, |net| {
        most = most.max(net.each(CLIENT, |conn| conn.receive.waiting().1)[0]);
        net.is_idle()
    }));
    assert!(most > 2_048, "at most {most} pieces waited");
}

#[test]
fn a_reader_that_sleeps_meanwhile_finds_everything() {
    let mut net = net(wide_open(config(1)));
    let (_client, stream) = offer(&mut net);
    net.holes = 7_000;
    net.pass(Duration::from_millis(500));
    assert!(net.each(CLIENT, |conn| conn.receive.waiting().0)[0] > 0);
    net.spawn(read_all(stream));
    assert!(net.run(Timestamp::from_secs(10)));
}

#[test]
fn what_waits_is_taken_off_the_connections_window() {
    let window = ByteCount::mib(1);
    let mut net = net(EndpointConfig {
        receive_window: window,
        ..wide_open(config(1))
    });
    let (_client, stream) = offer(&mut net);
    net.spawn(read_all(stream));
    net.faults.loss = percent(20);
    let mut most = 0;
    let limit = Timestamp::from_secs(60);
    assert!(net.run_until(limit, |net| {
        let counts = net.each(CLIENT, |conn| conn.receive.waiting());
        most = most.max(counts[0].0);
        net.is_idle()
    }));
    assert!(
        most > window.as_u64() / 2 && most <= window.as_u64() * 9 / 8,
        "up to {most} bytes waited"
    );
}

#[test]
fn a_stream_that_nobody_wants_gives_the_window_back() {
    let mut net = net(EndpointConfig {
        receive_window: ByteCount::mib(8),
        ..wide_open(config(1))
    });
    let (_client, mut stream) = offer(&mut net);
    net.holes = 7_000;
    net.pass(Duration::from_millis(20));
    assert!(net.each(CLIENT, |conn| conn.receive.waiting().2)[0] > 0);
    stream.stop(3);
    assert_eq!(
        net.each(CLIENT, |conn| (
            conn.receive.waiting(),
            conn.receive.entry_count()
        )),
        [((0, 0, 0), 0)]
    );
}

/// RFC 9000 section 21.8 and the like: bytes one by one cost more memory than they hold.
#[test]
fn small_pieces_are_kept_up_to_a_number_and_all_arrive() {
    const BATCHES: usize = 5;
    const BATCH: usize = 600;
    let mut pair = Pair::connected(1);
    let id = pair.open(raw::SERVER);
    // A window of a mebibyte allows 1024 pieces.
    let mut receive = Receive::new(ByteCount::mib(1), ByteCount::mib(1));
    receive.add(id);
    let (waker, mut out, mut most) = (Waker::noop(), VecDeque::new(), 0);
    let mut is_ended = false;
    for step in 0..5_000 {
        if step < BATCHES {
            pair.write_with_holes(raw::SERVER, id, BATCH);
        }
        if step == BATCHES {
            let mut stream = pair.sides[raw::SERVER].quic().send_stream(id);
            stream.finish().expect("an end");
        }
        let next = pair.now + Duration::from_millis(1);
        pair.run(next, |_| false);
        let quic = pair.sides[raw::CLIENT].quic();
        let read = receive.read(id, usize::MAX, &mut out, waker, None, quic);
        most = most.max(receive.waiting().1);
        if let Some(end) = read.end {
            end.expect("a whole stream");
            is_ended = true;
            break;
        }
    }
    assert!(is_ended);
    assert_eq!(most, 1_024);
    assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), BATCHES * BATCH);
    assert_eq!(receive.waiting(), (0, 0, 0));
}
