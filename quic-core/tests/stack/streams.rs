//! Streams as an application sees them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use cc::Algorithm;
use quic_core::{Connection, EndpointConfig, ReadError, RecvStream, SendStream, WriteError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use units::{ByteCount, Timestamp};

use crate::common::{Net, Setup};

const LIMIT: Timestamp = Timestamp::from_secs(120);

fn net() -> Net {
    Setup::new(Algorithm::CUBIC).build()
}

fn net_with(set: impl Fn(&mut EndpointConfig)) -> Net {
    let mut setup = Setup::new(Algorithm::CUBIC);
    set(&mut setup.client);
    set(&mut setup.server);
    setup.build()
}

/// Bytes that tell their place in their stream.
fn pattern(salt: u64, offset: u64, length: u64) -> Vec<u8> {
    (offset..offset + length)
        .map(|at| {
            (at ^ salt)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes()[0]
        })
        .collect()
}

async fn write_pattern(stream: &mut SendStream, salt: u64, length: u64) {
    let mut offset = 0;
    while offset < length {
        let piece = (length - offset).min(5_000);
        let data = pattern(salt, offset, piece);
        stream.write_chunk(data.into()).await.expect("a write");
        offset += piece;
    }
    stream.finish().expect("an end");
}

async fn expect_pattern(stream: &mut RecvStream, salt: u64, length: u64) {
    let mut offset = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await.expect("a read") {
        let expected = pattern(salt, offset, chunk.len() as u64);
        assert!(chunk == expected, "stream {salt} at {offset}");
        offset += chunk.len() as u64;
    }
    assert_eq!(offset, length);
}

/// Opens `count` streams at once, sends `length` bytes on each and reads as many back.
async fn ask_on_many(connection: Connection, count: u64, length: u64) {
    let tasks = (0..count).map(|_| {
        let connection = connection.clone();
        async move {
            let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
            let salt = send.id();
            tokio::join!(
                write_pattern(&mut send, salt, length),
                expect_pattern(&mut recv, salt, length)
            );
        }
    });
    all(tasks).await;
}

/// Sends the pattern of each stream back on it, `count` times, all at once.
async fn answer_many(connection: Connection, count: u64, length: u64) {
    let tasks = (0..count).map(|_| {
        let connection = connection.clone();
        async move {
            let (mut send, mut recv) = connection.accept_bi().await.expect("a stream");
            let salt = send.id();
            tokio::join!(
                write_pattern(&mut send, salt, length),
                expect_pattern(&mut recv, salt, length)
            );
            assert_eq!(send.stopped().await, Ok(None), "acknowledged to its end");
        }
    });
    all(tasks).await;
}

/// Waits for all futures, each polled when any is woken.
async fn all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut futures {
            if slot
                .as_mut()
                .is_some_and(|future| future.as_mut().poll(cx).is_ready())
            {
                *slot = None;
            }
        }
        if futures.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

/// Both ways on `count` streams; when it was over.
#[track_caller]
fn both_ways(net: &mut Net, count: u64, length: u64) -> Timestamp {
    let [client, server] = net.connected();
    net.world.spawn(answer_many(server.clone(), count, length));
    let done = net.finish(LIMIT, ask_on_many(client.clone(), count, length));
    assert!(done.is_some(), "it did not end");
    for connection in [client, server] {
        assert_eq!(connection.stats().sender.open_gate_stalls, 0);
    }
    net.world.now()
}

#[test]
fn an_unfinished_stream_that_is_dropped_is_reset_and_never_ended() {
    let mut net = net();
    let [client, server] = net.connected();
    net.world.spawn(async move {
        let mut stream = client.open_uni().await.expect("a stream");
        stream.set_drop_code(0x10c);
        let data = Bytes::from_static(b"half of it");
        stream.write_chunk(data).await.expect("a write");
        drop(stream);
        client.closed().await;
    });
    let ending = net.finish(LIMIT, async move {
        let mut stream = server.accept_uni().await.expect("a stream");
        loop {
            match stream.read_chunk(usize::MAX).await {
                Ok(Some(_)) => {}
                ending => break (ending, stream.read_chunk(1).await),
            }
        }
    });
    let reset = Err(ReadError::Reset(0x10c));
    assert_eq!(ending, Some((reset.clone(), reset)), "now and ever after");
}

#[test]
fn a_stream_that_is_reset_after_part_of_it_was_read_says_so() {
    let mut net = net();
    let [client, server] = net.connected();
    let timers = net.world.timers();
    net.world.spawn(async move {
        let mut stream = client.open_uni().await.expect("a stream");
        let data = Bytes::from_static(b"half of it");
        stream.write_chunk(data).await.expect("a write");
        timers.sleep(Duration::from_secs(1)).await;
        stream.reset(7);
        assert_eq!(stream.finish(), Err(WriteError::Closed));
        client.closed().await;
    });
    let (read, ending) = net
        .finish(LIMIT, async move {
            let mut stream = server.accept_uni().await.expect("a stream");
            let read = stream.read_chunk(4).await;
            while let Ok(Some(_)) = stream.read_chunk(usize::MAX).await {}
            (read, stream.read_chunk(1).await)
        })
        .expect("an end");
    assert_eq!(read, Ok(Some(Bytes::from_static(b"half"))));
    assert_eq!(ending, Err(ReadError::Reset(7)));
}

#[test]
fn an_unread_stream_that_is_dropped_asks_the_peer_to_stop() {
    let mut net = net();
    let [client, server] = net.connected();
    net.world.spawn(async move {
        let mut stream = server.accept_uni().await.expect("a stream");
        stream.set_drop_code(0x10d);
        drop(stream);
        server.closed().await;
    });
    let error = net.finish(LIMIT, async move {
        let mut stream = client.open_uni().await.expect("a stream");
        let data = Bytes::from(vec![0; 100_000]);
        stream.write_chunk(data.clone()).await.expect("a write");
        let stopped = stream.stopped().await;
        (stopped, stream.write_chunk(data).await, stream.finish())
    });
    let stopped = Err(WriteError::Stopped(0x10d));
    assert_eq!(error, Some((Ok(Some(0x10d)), stopped.clone(), stopped)));
}

#[test]
fn an_empty_stream_arrives_as_an_empty_stream() {
    let mut net = net();
    let [client, server] = net.connected();
    net.world.spawn(async move {
        let mut stream = client.open_uni().await.expect("a stream");
        stream.write_chunk(Bytes::new()).await.expect("a write");
        stream.finish().expect("an end");
        assert_eq!(stream.finish(), Err(WriteError::Closed));
        client.closed().await;
    });
    let read = net.finish(LIMIT, async move {
        let mut stream = server.accept_uni().await.expect("a stream");
        stream.read_chunk(usize::MAX).await
    });
    assert_eq!(read, Some(Ok(None)));
}

#[test]
fn the_traits_of_tokio_carry_a_stream_there_and_back() {
    let mut net = net();
    let [client, server] = net.connected();
    net.world.spawn(async move {
        let (mut send, mut recv) = server.accept_bi().await.expect("a stream");
        let copied = tokio::io::copy(&mut recv, &mut send).await;
        assert_eq!(copied.expect("a copy"), 300_000);
        send.shutdown().await.expect("an end");
        server.closed().await;
    });
    let returned = net.finish(LIMIT, async move {
        let (mut send, mut recv) = client.open_bi().await.expect("a stream");
        let data = pattern(1, 0, 300_000);
        let writing = async {
            send.write_all(&data).await.expect("a write");
            send.flush().await.expect("a flush");
            send.shutdown().await.expect("an end");
        };
        let mut returned = Vec::new();
        let (_, read) = tokio::join!(writing, recv.read_to_end(&mut returned));
        read.expect("a read");
        returned
    });
    assert!(returned == Some(pattern(1, 0, 300_000)));
}

#[test]
fn a_failed_stream_is_an_io_error_of_a_fitting_kind() {
    let mut net = net();
    let [client, server] = net.connected();
    net.world.spawn(async move {
        let (send, recv) = server.accept_bi().await.expect("a stream");
        drop((send, recv));
        server.closed().await;
    });
    let (read, written) = net
        .finish(LIMIT, async move {
            let (mut send, mut recv) = client.open_bi().await.expect("a stream");
            send.write_all(b"?").await.expect("a write");
            let read = recv.read_u8().await.expect_err("a reset").kind();
            let written = loop {
                if let Err(error) = send.write_all(&[0; 1_000]).await {
                    break error.kind();
                }
            };
            (read, written)
        })
        .expect("an end");
    assert_eq!(read, std::io::ErrorKind::ConnectionReset);
    assert_eq!(written, std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_stream_window_smaller_than_three_datagrams_is_enough() {
    let mut net = net_with(|config| config.stream_receive_window = ByteCount::new(3_000));
    both_ways(&mut net, 1, 100_000);
}

#[test]
fn a_connection_window_smaller_than_one_stream_is_enough() {
    let mut net = net_with(|config| config.receive_window = ByteCount::new(3_001));
    both_ways(&mut net, 1, 100_000);
}

#[test]
fn streams_share_a_connection_window_smaller_than_one_of_them() {
    let mut net = net_with(|config| {
        config.receive_window = ByteCount::new(10_007);
        config.stream_receive_window = ByteCount::new(4_001);
    });
    both_ways(&mut net, 7, 30_000);
}

#[test]
fn a_send_window_of_a_few_datagrams_is_enough() {
    let mut net = net_with(|config| config.send_window = ByteCount::new(5_003));
    both_ways(&mut net, 3, 50_000);
}

#[test]
fn a_send_buffer_of_one_byte_is_enough() {
    let mut net = net_with(|config| config.send_buffer = ByteCount::new(1));
    both_ways(&mut net, 2, 20_000);
}

#[test]
fn a_hundred_streams_at_once_arrive_intact() {
    let mut net = net();
    let finished_at = both_ways(&mut net, 100, 10_000);
    // One megabyte each way.
    assert!(finished_at < Timestamp::from_secs(2), "{finished_at}");
}

#[test]
fn streams_beyond_the_limit_of_the_peer_wait_for_their_turn() {
    let mut net = net_with(|config| config.max_bidi_streams = 4);
    both_ways(&mut net, 50, 3_000);
}

/// Two downloads on one connection, begun together, come forward together.
#[test]
fn streams_take_turns() {
    const SIZE: u64 = 1_000_000;
    let mut net = net();
    let [client, server] = net.connected();
    for _ in 0..2 {
        let server = server.clone();
        net.world.spawn(async move {
            let mut stream = server.open_uni().await.expect("a stream");
            let data = Bytes::from(vec![0; ByteCount::new(SIZE).as_usize()]);
            stream.write_chunk(data).await.expect("a write");
            stream.finish().expect("an end");
            server.closed().await;
        });
    }
    let progress = Arc::new(Mutex::new([0; 2]));
    let keep = progress.clone();
    net.finish(LIMIT, async move {
        let first = client.accept_uni().await.expect("a stream");
        let second = client.accept_uni().await.expect("a stream");
        let read = async |mut stream: RecvStream, index: usize| {
            while let Some(chunk) = stream.read_chunk(usize::MAX).await.expect("a read") {
                keep.lock().expect("unpoisoned")[index] += chunk.len() as u64;
            }
        };
        tokio::select! {
            () = read(first, 0) => {}
            () = read(second, 1) => {}
        }
    })
    .expect("an end");
    let progress = *progress.lock().expect("unpoisoned");
    assert!(progress.contains(&SIZE), "{progress:?}");
    assert!(
        progress.iter().all(|&bytes| bytes > SIZE * 9 / 10),
        "{progress:?}"
    );
}
