//! What is left of connections and streams when nobody needs them any more: nothing.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use units::{ByteCount, Timestamp};

use super::{
    Faults, config,
    network::{CLIENT, Net, SERVER},
    shared, wide_open,
};
use crate::{
    error::{ReadError, WriteError},
    handles::Connection,
};

fn net() -> Net {
    Net::new(1, Faults::NONE, config(1), config(2))
}

/// A connection's two ends, established.
fn connected(net: &mut Net) -> [Connection; 2] {
    let accepted = shared(None);
    let (server, keep) = (net.server.clone(), accepted.clone());
    net.spawn(async move {
        let connection = server.accept().await;
        *keep.lock().expect("unpoisoned") = connection;
    });
    let client = net.connect();
    let limit = net.now() + Duration::from_secs(1);
    assert!(net.run(limit));
    let server = accepted.lock().expect("unpoisoned").take();
    [client, server.expect("a connection")]
}

fn connection_counts(net: &Net) -> [usize; 2] {
    [CLIENT, SERVER].map(|side| net.drivers[side].lock().conns.len())
}

/// Streams known to our side and to quinn-proto's.
fn stream_counts(net: &Net, side: usize) -> (usize, usize) {
    let counts = net.each(side, |conn| {
        let (quic, streams) = conn.quic_and_streams();
        let known = (streams.entry_count(), quic.streams().send_streams());
        (known.0 + conn.receive.entry_count(), known.1)
    });
    counts[0]
}

#[test]
fn closed_connections_leave_nothing_behind() {
    let mut net = net();
    for _ in 0..5 {
        let [client, server] = connected(&mut net);
        assert_eq!(connection_counts(&net), [1, 1]);
        client.close(7, b"bye");
        drop((client, server));
        // Draining takes three probe timeouts.
        net.pass(Duration::from_secs(5));
        assert_eq!(connection_counts(&net), [0, 0]);
        for driver in &net.drivers {
            assert_eq!(driver.lock().next_deadline(), None);
        }
    }
}

#[test]
fn a_connection_that_is_dropped_without_a_close_leaves_nothing_behind() {
    let mut net = net();
    drop(connected(&mut net));
    net.pass(Duration::from_secs(5));
    assert_eq!(connection_counts(&net), [0, 0]);
}

#[test]
fn a_handle_that_outlives_its_connection_still_tells_why_it_ended() {
    let mut net = net();
    let [client, server] = connected(&mut net);
    client.close(7, b"bye");
    drop(client);
    net.pass(Duration::from_secs(5));
    assert_eq!(connection_counts(&net), [0, 1]);
    assert!(server.close_reason().is_some());
    drop(server);
    assert_eq!(connection_counts(&net), [0, 0]);
}

#[test]
fn a_handshake_without_an_answer_leaves_nothing_behind() {
    let mut net = net();
    net.faults.loss = super::percent(100);
    let client = net.connect();
    let failed = shared(None);
    let keep = failed.clone();
    net.spawn(async move {
        let error = client.handshake().await.expect_err("nobody answers");
        *keep.lock().expect("unpoisoned") = Some(error);
    });
    assert!(net.run(Timestamp::from_secs(60)));
    assert!(failed.lock().expect("unpoisoned").is_some());
    net.pass(Duration::from_secs(60));
    assert_eq!(connection_counts(&net), [0, 0]);
}

/// Reads every stream that the peer opens to its end, and sends one byte back on it.
async fn echo_one_byte(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        while let Ok(Some(_)) = recv.read_chunk(usize::MAX).await {}
        if send.write_chunk(Bytes::from_static(b"!")).await.is_ok() {
            let _ = send.finish();
        }
    }
}

#[test]
fn streams_that_came_to_their_end_leave_nothing_behind() {
    let mut net = net();
    let [client, server] = connected(&mut net);
    net.spawn(echo_one_byte(server));
    let connection = client.clone();
    let done = shared(false);
    let keep = done.clone();
    net.spawn(async move {
        for _ in 0..300 {
            let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
            send.write_chunk(Bytes::from_static(b"?"))
                .await
                .expect("a write");
            send.finish().expect("an end");
            while let Some(chunk) = recv.read_chunk(16).await.expect("a read") {
                assert_eq!(&chunk[..], b"!");
            }
        }
        *keep.lock().expect("unpoisoned") = true;
    });
    let is_done = net.run_until(Timestamp::from_secs(60), |_| {
        *done.lock().expect("unpoisoned")
    });
    assert!(is_done);
    net.pass(Duration::from_secs(1));
    assert_eq!(stream_counts(&net, CLIENT), (0, 0));
    assert_eq!(stream_counts(&net, SERVER), (0, 0));
}

#[test]
fn a_dropped_stream_leaves_nothing_behind() {
    let mut net = net();
    let [client, server] = connected(&mut net);
    net.spawn(async move {
        let mut stream = client.open_uni().await.expect("a stream");
        stream
            .write_chunk(Bytes::from(vec![0; 100_000]))
            .await
            .expect("a write");
        drop(stream);
        client.closed().await;
    });
    net.spawn(async move {
        let mut stream = server.accept_uni().await.expect("a stream");
        while let Ok(Some(_)) = stream.read_chunk(usize::MAX).await {}
        server.closed().await;
    });
    net.pass(Duration::from_secs(1));
    assert_eq!(stream_counts(&net, CLIENT), (0, 0));
    assert_eq!(stream_counts(&net, SERVER), (0, 0));
}

/// RFC 9000 section 3.5: a stopped stream is reset, also when all of it was written and its handle is
/// gone.
#[test]
fn a_stream_that_the_peer_stopped_leaves_nothing_behind() {
    for is_dropped in [true, false] {
        let mut net = net();
        let [client, server] = connected(&mut net);
        let seen = shared(None);
        let keep = seen.clone();
        net.spawn(async move {
            let mut stream = client.open_uni().await.expect("a stream");
            stream
                .write_chunk(Bytes::from(vec![0; 10_000_000]))
                .await
                .expect("a write");
            stream.finish().expect("an end");
            if !is_dropped {
                *keep.lock().expect("unpoisoned") = Some(stream.stopped().await);
            }
            drop(stream);
            client.closed().await;
        });
        net.spawn(async move {
            let mut stream = server.accept_uni().await.expect("a stream");
            stream.stop(42);
            drop(stream);
            server.closed().await;
        });
        net.pass(Duration::from_secs(2));
        assert_eq!(stream_counts(&net, CLIENT), (0, 0), "dropped: {is_dropped}");
        assert_eq!(stream_counts(&net, SERVER), (0, 0), "dropped: {is_dropped}");
        if !is_dropped {
            assert_eq!(*seen.lock().expect("unpoisoned"), Some(Ok(Some(42))));
        }
        // Flow control and send window are free again.
        let stats = net.each(CLIENT, |conn| conn.quic_and_streams().1.unsent());
        assert_eq!(stats, [0]);
    }
}

#[test]
fn a_writer_learns_that_the_peer_stopped() {
    let mut net = net();
    let [client, server] = connected(&mut net);
    let seen = shared(None);
    let keep = seen.clone();
    net.spawn(async move {
        let mut stream = client.open_uni().await.expect("a stream");
        let block = Bytes::from(vec![0; 10_000]);
        let error = loop {
            if let Err(error) = stream.write_chunk(block.clone()).await {
                break error;
            }
        };
        *keep.lock().expect("unpoisoned") = Some(error);
        drop(stream);
        client.closed().await;
    });
    net.spawn(async move {
        let mut stream = server.accept_uni().await.expect("a stream");
        assert!(stream.read_chunk(100).await.is_ok());
        stream.stop(42);
        assert_eq!(stream.read_chunk(100).await, Err(ReadError::Closed));
        server.closed().await;
    });
    net.pass(Duration::from_secs(2));
    assert_eq!(
        *seen.lock().expect("unpoisoned"),
        Some(WriteError::Stopped(42))
    );
    assert_eq!(stream_counts(&net, CLIENT), (0, 0));
}

/// Of two tasks that accept, one gives up; the connection must go to the other.
#[test]
fn an_acceptor_that_gives_up_takes_no_wake_up_with_it() {
    let mut net = net();
    let accepted = shared(0);
    let (server, keep) = (net.server.clone(), accepted.clone());
    net.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        *keep.lock().expect("unpoisoned") += 1;
        connection.closed().await;
    });
    let server = net.server.clone();
    net.spawn(async move {
        // Asks once, leaves its waker behind, and ends.
        let mut accept = pin!(server.accept());
        poll_fn(|cx| {
            assert!(accept.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    });
    let _client = net.connect();
    net.pass(Duration::from_secs(1));
    assert_eq!(*accepted.lock().expect("unpoisoned"), 1);
}

/// A client that only acknowledges gets none of its packets acknowledged, and still must not keep
/// them all.
#[test]
fn packets_that_carry_only_acknowledgements_are_not_kept_for_ever() {
    let mut net = Net::new(1, Faults::NONE, wide_open(config(1)), wide_open(config(2)));
    let [client, server] = connected(&mut net);
    const SIZE: u64 = 6_000_000;
    net.spawn(async move {
        let mut stream = server.open_uni().await.expect("a stream");
        let data = Bytes::from(vec![0; ByteCount::new(SIZE).as_usize()]);
        stream.write_chunk(data).await.expect("a write");
        stream.finish().expect("an end");
        server.closed().await;
    });
    let received = shared(0);
    let keep = received.clone();
    net.spawn(async move {
        let mut stream = client.accept_uni().await.expect("a stream");
        while let Some(chunk) = stream.read_chunk(usize::MAX).await.expect("a read") {
            *keep.lock().expect("unpoisoned") += chunk.len() as u64;
        }
        client.closed().await;
    });
    net.pass(Duration::from_secs(20));
    assert_eq!(*received.lock().expect("unpoisoned"), SIZE);
    let now = net.now();
    let sent = net.each(CLIENT, |conn| conn.stats(now).datagrams_sent);
    let kept = net.each(CLIENT, |conn| conn.ledger_length());
    assert!(sent[0] > 100, "{sent:?}");
    assert!(kept[0] < 20, "{kept:?} of {sent:?}");
}

/// RFC 9000 section 14.4: a probe for a larger MTU is a packet like any other to the timers, and it
/// is not sent because a timer expired.
#[test]
fn a_probe_for_a_larger_mtu_is_no_probe_timeout() {
    let discovering = |seed| crate::EndpointConfig {
        has_mtu_discovery: true,
        ..config(seed)
    };
    let mut net = Net::new(1, Faults::NONE, discovering(1), discovering(2));
    let [client, server] = connected(&mut net);
    net.pass(Duration::from_secs(5));
    for connection in [client, server] {
        let stats = connection.stats();
        assert_eq!(stats.datagram_size, ByteCount::new(1452));
        assert_eq!(stats.sender.pto_count, 0, "{stats:?}");
    }
}
