//! The relay against a UDP echo: delay, loss, conservation, silence about nothing.
//!
//! These tests live in real time. Bounds are one-sided where a busy machine can only make things
//! later, and medians are used where one late wake-up says nothing about the relay.
#![expect(
    clippy::disallowed_methods,
    reason = "a relay of real datagrams is measured with the real clock"
)]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use interop::relay::{Relay, RelayConfig, RelayReport};
use interop::scenario::Scenario;

/// Sends back what it receives.
struct Echo {
    address: SocketAddr,
    shall_stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Echo {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a timeout");
        let address = socket.local_addr().expect("bound");
        let shall_stop = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&shall_stop);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 2048];
            let mut echoed = 0;
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, source)) = socket.recv_from(&mut buffer) {
                    socket.send_to(&buffer[..length], source).expect("sent");
                    echoed += 1;
                }
            }
            echoed
        });
        Self {
            address,
            shall_stop,
            thread,
        }
    }

    fn stop(self) -> u64 {
        self.shall_stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the echo does not panic")
    }
}

fn start(server: SocketAddr, link: &str) -> Relay {
    let scenario = Scenario::parse(
        "relay.toml",
        &format!(
            "name = \"relay\"\nabout = \"relay\"\nlimit = \"60 s\"\ncontrollers = [\"cubic\"]\n\
             [link]\n{link}\n[download]\nduration = \"60 s\"\n"
        ),
    )
    .expect("good");
    Relay::start(&RelayConfig {
        server,
        forward: scenario.forward,
        reverse: scenario.reverse,
        seed: 1,
        began_at: Instant::now(),
    })
    .expect("started")
}

fn client_of(relay: &Relay) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    client.connect(relay.address()).expect("connected");
    client
        .set_read_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    client
}

/// Reads until nothing comes for the read timeout.
fn drain(client: &UdpSocket) -> u64 {
    let mut buffer = [0; 2048];
    let mut received = 0;
    loop {
        match client.recv(&mut buffer) {
            Ok(_) => received += 1,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                return received;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[track_caller]
fn assert_nothing_vanished(report: &RelayReport) {
    assert_eq!(report.unsent_packets, 0);
    assert_eq!(report.stray_packets, 0);
    assert_eq!(report.timing.kernel_dropped_packets.unwrap_or(0), 0);
}

#[test]
fn a_datagram_takes_the_delay_of_both_directions_and_little_more() {
    let echo = Echo::start();
    let relay = start(
        echo.address,
        "rate = \"100 Mbit/s\"\nqueue = \"1 MB\"\nforward = { delay = \"20 ms\" }\n\
         reverse = { delay = \"10 ms\" }",
    );
    let client = client_of(&relay);
    let mut times: Vec<Duration> = (0..30_u8)
        .map(|number| {
            let sent_at = Instant::now();
            client.send(&[number; 972]).expect("sent");
            let mut buffer = [0; 2048];
            let length = client.recv(&mut buffer).expect("echoed");
            assert_eq!(buffer[..length], [number; 972]);
            sent_at.elapsed()
        })
        .collect();
    times.sort();
    // 1000 B at 100 Mbit/s take 0.08 ms in each direction.
    let ideal = Duration::from_micros(30_160);
    assert!(times[0] >= ideal, "never early: {:?}", times[0]);
    let median = times[times.len() / 2];
    assert!(median < ideal + Duration::from_millis(2), "{median:?}");
    let report = relay.stop().expect("no error");
    assert_nothing_vanished(&report);
    assert_eq!(echo.stop(), 30);
    assert!(report.timing.lateness_p99_ns > 0);
    assert!(report.receive_buffer_bytes >= 100_000);
}

#[test]
fn losses_have_their_share_and_every_datagram_is_accounted_for() {
    const SENT: u64 = 4000;
    let echo = Echo::start();
    let relay = start(
        echo.address,
        "rate = \"1 Gbit/s\"\nrtt = \"2 ms\"\nqueue = \"10 MB\"\n\
         forward = { loss = \"10 %\" }\nreverse = { loss = \"30 %\" }",
    );
    let client = client_of(&relay);
    client.set_nonblocking(true).expect("non-blocking");
    let mut received = 0;
    let mut buffer = [0; 2048];
    let mut take = || {
        while client.recv(&mut buffer).is_ok() {
            received += 1;
        }
    };
    for number in 0..SENT {
        client.send(&[7; 100]).expect("sent");
        take();
        // Small pauses keep the socket buffers of this test, not of the relay, from running over.
        if number % 20 == 19 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    client.set_nonblocking(false).expect("blocking");
    received += drain(&client);
    let report = relay.stop().expect("no error");
    let echoed = echo.stop();
    assert_nothing_vanished(&report);

    let reverse = report.reverse.counts();
    let forward = report.forward.counts();
    assert_eq!(reverse.offered_packets, SENT);
    assert_eq!(
        reverse.offered_bytes,
        SENT * 128,
        "28 bytes of headers each"
    );
    assert_eq!(reverse.delivered_packets, echoed);
    assert_eq!(
        reverse.offered_packets,
        reverse.delivered_packets + reverse.dropped_packets()
    );
    assert_eq!(forward.offered_packets, echoed);
    assert_eq!(forward.delivered_packets, received);
    assert_eq!(
        forward.offered_packets,
        forward.delivered_packets + forward.dropped_packets()
    );
    // The draws are seeded: 4 sigma are 116 of 4000 at 30 %, and 64 of 2800 at 10 %.
    let lost = reverse.dropped_after_queue_packets;
    assert!((1084..=1316).contains(&lost), "{lost}");
    let lost = forward.dropped_after_queue_packets;
    assert!((216..=344).contains(&lost), "{lost}");
}

#[test]
fn what_the_link_damages_arrives_damaged() {
    let echo = Echo::start();
    let relay = start(
        echo.address,
        "rate = \"1 Gbit/s\"\nrtt = \"2 ms\"\nqueue = \"10 MB\"\nforward = { corrupt = \"50 %\" }",
    );
    let client = client_of(&relay);
    let mut buffer = [0; 2048];
    let mut damaged = 0;
    for _ in 0..100 {
        client.send(&[7; 100]).expect("sent");
        let length = client.recv(&mut buffer).expect("echoed");
        assert_eq!(buffer[..99], [7; 99]);
        assert_eq!(length, 100);
        damaged += u64::from(buffer[99] != 7);
    }
    let report = relay.stop().expect("no error");
    assert_nothing_vanished(&report);
    echo.stop();
    assert_eq!(report.forward.counts().corrupt_packets, damaged);
    // The draws are seeded: 4 sigma are 20.
    assert!((30..=70).contains(&damaged), "{damaged}");
}

#[test]
fn the_rate_holds_and_the_queue_drops_what_is_too_much() {
    let echo = Echo::start();
    let relay = start(
        echo.address,
        "rate = \"8 Mbit/s\"\nrtt = \"2 ms\"\nqueue = \"100 kB\"\n\
         reverse = { queue = \"50 kB\" }",
    );
    let client = client_of(&relay);
    // 200 packets of 1000 B at once: one in service, 50 wait, the others find the queue full,
    // but for the few that leave while the burst comes in, one each millisecond.
    let began_at = Instant::now();
    for _ in 0..200 {
        client.send(&[7; 972]).expect("sent");
    }
    let burst = began_at.elapsed();
    let received = drain(&client);
    let report = relay.stop().expect("no error");
    assert_nothing_vanished(&report);
    let reverse = report.reverse.counts();
    let spare = u64::try_from(burst.as_millis()).expect("short") + 20;
    assert_eq!(reverse.offered_packets, 200);
    assert_eq!(reverse.delivered_packets, received);
    assert!(
        (51..=51 + spare).contains(&received),
        "{received}, {burst:?}"
    );
    assert_eq!(reverse.dropped_queue_packets, 200 - received);
    assert_eq!(reverse.max_queue_bytes, 50_000);
    echo.stop();
}

#[test]
fn strangers_are_counted_and_not_served() {
    let echo = Echo::start();
    let relay = start(
        echo.address,
        "rate = \"8 Mbit/s\"\nrtt = \"2 ms\"\nqueue = \"100 kB\"",
    );
    let client = client_of(&relay);
    client.send(b"client").expect("sent");
    assert_eq!(client.recv(&mut [0; 64]).expect("echoed"), 6);
    let stranger = client_of(&relay);
    stranger.send(b"stranger").expect("sent");
    assert_eq!(drain(&stranger), 0);
    client.send(b"again").expect("sent");
    assert_eq!(client.recv(&mut [0; 64]).expect("still served"), 5);
    let report = relay.stop().expect("no error");
    assert_eq!(report.stray_packets, 1);
    assert_eq!(report.reverse.counts().offered_packets, 2);
    echo.stop();
}

#[test]
fn a_server_that_is_gone_does_not_stop_the_relay() {
    let gone = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = gone.local_addr().expect("bound");
    drop(gone);
    let relay = start(
        address,
        "rate = \"8 Mbit/s\"\nrtt = \"0 s\"\nqueue = \"100 kB\"",
    );
    let client = client_of(&relay);
    for _ in 0..3 {
        client.send(b"anyone?").expect("sent");
        thread::sleep(Duration::from_millis(20));
    }
    let began_at = Instant::now();
    let report = relay.stop().expect("no error");
    assert!(began_at.elapsed() < Duration::from_secs(1), "stops at once");
    assert_eq!(report.reverse.counts().delivered_packets, 3);
}

#[test]
fn the_relay_speaks_ipv6_when_the_server_does() {
    let Ok(server) = UdpSocket::bind("[::1]:0") else {
        // A machine without IPv6 has nothing to test here.
        return;
    };
    let relay = start(
        server.local_addr().expect("bound"),
        "rate = \"8 Mbit/s\"\nrtt = \"0 s\"\nqueue = \"100 kB\"",
    );
    assert!(relay.address().is_ipv6());
    let client = UdpSocket::bind("[::1]:0").expect("a free port");
    client.send_to(b"hello", relay.address()).expect("sent");
    server
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a timeout");
    assert_eq!(server.recv(&mut [0; 64]).expect("relayed"), 5);
    relay.stop().expect("no error");
}
