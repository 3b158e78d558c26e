//! A long transfer (scenarios.md 2.3, row S38): counters pass 2^32, nothing grows, the link stays full to the end.
//!
//! 5 GB at 1 Gbit/s and 10 ms over plain QUIC streams, without cryptography and without a record of the run, which grows by
//! design. An allocator counts the bytes in use. What the pipes may add is their record of the output, eight bytes for
//! 10 ms: 32 kB in these 42 s.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cc::Algorithm;
use netsim::{Pipe, PipeConfig, RandomStreams};
use quic_core::virt::{Datagram, World};
use quic_core::{ClientConfig, Connection, EndpointConfig, ServerConfig};
use units::{ByteCount, QueueLimit, Rate, Timestamp};

/// The system's allocator, counting what the thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn add(bytes: usize) {
    // Fails only while a thread ends, when nobody counts any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn remove(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

/// The most that was held since the last call.
fn take_peak() -> usize {
    PEAK.replace(HELD.get())
}

#[expect(
    unsafe_code,
    reason = "an allocator cannot be written without; every call goes to the system's unchanged"
)]
// SAFETY: both methods hand the caller's arguments to the system's allocator, which upholds the contract; the default
// ones call them.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above; every block came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RATE: Rate = Rate::from_mbps(1_000);
const RTT: Duration = Duration::from_millis(10);
const ALPN: &[u8] = b"long";

/// A part of the transfer: how long it took, and the most that was held meanwhile.
#[derive(Copy, Clone, Debug)]
struct Part {
    time: Duration,
    peak: usize,
}

/// Moves `parts` parts of `size`, one after the other, on one stream.
fn transfer(algorithm: Algorithm, parts: usize, size: ByteCount) -> (Vec<Part>, Connection) {
    let config = |seed| EndpointConfig {
        algorithm,
        datagram_size: ByteCount::new(1_350),
        has_mtu_discovery: false,
        seed: Some(seed),
        ..EndpointConfig::default()
    };
    let mut world = World::new();
    let streams = RandomStreams::new(1);
    let pipe = |name| {
        let packet = ByteCount::new(1_378);
        let config = PipeConfig {
            rate: RATE,
            delay: RTT / 2,
            queue: QueueLimit::Bdp { thousandths: 1_000 }.resolve(RATE, RTT, packet),
            ..PipeConfig::default()
        };
        Pipe::<Datagram>::new(config, &streams, name).expect("a valid pipe")
    };
    let forward = world.add_pipe(pipe("forward"));
    let reverse = world.add_pipe(pipe("reverse"));
    let address = SocketAddr::from(([10, 0, 0, 1], 443));
    let server = ServerConfig::unprotected(&[ALPN]);
    let (server_node, server) = world
        .add_endpoint(address, config(1), None, Some(server))
        .expect("a server");
    let client = ClientConfig::unprotected(&[ALPN]);
    let client_address = SocketAddr::from(([10, 0, 0, 2], 50_000));
    let (client_node, client) = world
        .add_endpoint(client_address, config(2), Some(client), None)
        .expect("a client");
    world.route(server_node, client_node, forward);
    world.route(client_node, server_node, reverse);

    let sender: Arc<Mutex<Option<Connection>>> = Arc::default();
    let serving = sender.clone();
    world.spawn(async move {
        let connection = server.accept().await.expect("a client");
        *serving.lock().expect("unpoisoned") = Some(connection.clone());
        let mut stream = connection.open_uni().await.expect("a stream");
        let block = Bytes::from_static(&[0x5a; 65_536]);
        while stream.write_chunk(block.clone()).await.is_ok() {}
    });
    let (is_done, timers) = (Arc::new(AtomicBool::new(false)), world.timers());
    let done: Arc<Mutex<Vec<Part>>> = Arc::default();
    let (reader_done, reader_parts) = (is_done.clone(), done.clone());
    world.spawn(async move {
        let connection = client.connect(address, "localhost").expect("a connection");
        connection.handshake().await.expect("a handshake");
        let mut stream = connection.accept_uni().await.expect("a stream");
        let (mut left, mut began_at) = (size.as_u64(), timers.now());
        loop {
            let chunk = stream.read_chunk(usize::MAX).await.expect("data");
            left = left.saturating_sub(chunk.expect("no end").len() as u64);
            if left > 0 {
                continue;
            }
            let mut list = reader_parts.lock().expect("unpoisoned");
            list.push(Part {
                time: timers.now().saturating_since(began_at),
                peak: take_peak(),
            });
            (left, began_at) = (size.as_u64(), timers.now());
            if list.len() == parts {
                reader_done.store(true, Ordering::Relaxed);
            }
        }
    });
    let is_over = world.run(Timestamp::from_secs(3_600), || {
        is_done.load(Ordering::Relaxed)
    });
    assert!(is_over);
    let parts = done.lock().expect("unpoisoned").clone();
    let sender = sender.lock().expect("unpoisoned").clone();
    (parts, sender.expect("it was accepted"))
}

/// After the first part, the warm-up, no part takes longer, and none holds more but for what is given.
#[track_caller]
fn assert_flat(parts: &[Part], spare: usize) {
    let (first, last) = (parts[1], parts.last().expect("several"));
    for part in &parts[1..] {
        let ratio = part.time.as_secs_f64() / first.time.as_secs_f64();
        assert!((0.98..=1.02).contains(&ratio), "{parts:?}");
    }
    assert!(last.peak <= first.peak + spare, "{parts:?}");
}

/// At a fixed rate, so that the window, and with it what is in flight, stays the same.
#[test]
fn a_transfer_of_a_quarter_of_a_gigabyte_holds_no_more_at_its_end() {
    let algorithm = "fixed:900Mbit/s".parse().expect("a controller");
    let (parts, _) = transfer(algorithm, 5, ByteCount::mb(50));
    assert_flat(&parts, 20_000);
}

#[test]
fn a_transfer_beyond_four_gibibytes_is_flat() {
    let is_slow = std::env::var_os("TIDEGATE_SLOW").is_some_and(|value| value == "1");
    let word = if is_slow {
        "running"
    } else {
        "SKIPPED, TIDEGATE_SLOW=1 runs it"
    };
    let say = |text: &str| writeln!(io::stderr(), "{text}").expect("standard error is open");
    say(&format!(
        "slow test a_transfer_beyond_four_gibibytes_is_flat: {word}"
    ));
    if !is_slow {
        return;
    }
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let (parts, sender) = transfer(algorithm, 5, ByteCount::mb(1_000));
        for (number, part) in (1..).zip(&parts) {
            say(&format!(
                "long run, {algorithm}: GB {number} in {:.3} s, at most {} kB in use",
                part.time.as_secs_f64(),
                part.peak / 1_000
            ));
        }
        let stats = sender.stats().sender;
        assert!(stats.bytes_sent > ByteCount::new(1 << 32), "{stats:?}");
        assert_eq!(stats.in_flight_mismatches, 0, "{stats:?}");
        // A sawtooth's highest tooth is not always in the same part.
        assert_flat(&parts, parts[1].peak / 10);
    }
}
