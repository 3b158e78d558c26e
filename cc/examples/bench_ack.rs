//! Prints what one feedback event costs each controller, in nanoseconds; the bound is 100 (row A30).
//!
//! ```text
//! cargo run --release --manifest-path cc/Cargo.toml --example bench_ack
//! ```
//!
//! Each controller is measured in five passes, of which the fastest is printed: what else the machine does can only add.
//!
//! An event acknowledges two packets, as a receiver does that acknowledges every other one, and two more are sent; the
//! flow is backlogged, loses one packet in 10,000, and has an RTT of 50 ms. The time it takes to build the event is
//! measured apart and subtracted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cc::{AckedPacket, Algorithm, Controller, FeedbackEvent, LostPacket, RttEstimator, SentEvent};
use units::{ByteCount, Timestamp};

const DATAGRAM: ByteCount = ByteCount::new(1_350);
const RTT: Duration = Duration::from_millis(50);
const EVENTS: u64 = 2_000_000;
const LOSS_EVERY: u64 = 5_000;

const PASSES: usize = 5;
const BOUND_NS: u32 = 100;

const CONTROLLERS: [&str; 8] = [
    "newreno",
    "newreno-hystart",
    "newreno+prr+abe",
    "cubic",
    "cubic-hystart",
    "cubic+prr",
    "cubic+prr+abe-fastconv-undo",
    "fixed:100Mbit/s",
];

fn main() {
    println!("{:<28} {:>9} {:>14}", "controller", "ns/event", "window");
    for name in CONTROLLERS {
        match name.parse::<Algorithm>() {
            Ok(algorithm) => run(name, algorithm),
            Err(error) => println!("{error}"),
        }
    }
}

fn run(name: &str, algorithm: Algorithm) {
    let mut best = f64::INFINITY;
    let mut window = ByteCount::ZERO;
    for _ in 0..PASSES {
        let mut controller = algorithm.build(DATAGRAM);
        best = best.min(measure(controller.as_mut()));
        window = controller.window();
    }
    println!("{name:<28} {best:>9.1} {:>14}", window.to_string());
    println!("A30 {name}: {best:.1} ns, allowed {BOUND_NS} ns");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(controller: &mut dyn Controller) -> f64 {
    let mut rtt = RttEstimator::new();
    rtt.update(RTT, Duration::ZERO);
    let overhead = Instant::now();
    for event in 0..EVENTS {
        black_box(feed(None, &rtt, event));
    }
    let overhead = overhead.elapsed();
    let work = Instant::now();
    for event in 0..EVENTS {
        black_box(feed(Some(controller), &rtt, event));
    }
    work.elapsed().saturating_sub(overhead).as_secs_f64() * 1e9 / EVENTS as f64
}

/// Plays one event at a steady pace of 100,000 a second.
fn feed(controller: Option<&mut dyn Controller>, rtt: &RttEstimator, number: u64) -> ByteCount {
    let now = Timestamp::from_secs(1) + Duration::from_micros(number * 10);
    // The flow fills its window, or it would not be let grow and cost less.
    let in_flight = controller
        .as_ref()
        .map_or(DATAGRAM * 100, |controller| controller.window());
    let sent_at = now.saturating_sub(RTT);
    let packet = |packet_number| AckedPacket {
        packet_number,
        sent_at,
        size: DATAGRAM,
        is_app_limited: false,
        tx_in_flight: DATAGRAM * 100,
    };
    let acked = [packet(number * 2), packet(number * 2 + 1)];
    let lost = [LostPacket {
        packet_number: number,
        sent_at,
        size: DATAGRAM,
        is_app_limited: false,
        tx_in_flight: DATAGRAM * 100,
        lost_since_sent: DATAGRAM,
        send_tag: 0,
    }];
    let has_loss = number % LOSS_EVERY == LOSS_EVERY - 1;
    let event = FeedbackEvent {
        acked: &acked,
        lost: if has_loss { &lost } else { &[] },
        late: &[],
        is_persistent_congestion: false,
        ce_count: 0,
        largest_acked_sent_at: Some(sent_at),
        in_flight_before: in_flight + DATAGRAM * 2,
        in_flight,
        rtt,
        latest_rtt: Some(RTT),
        sample: None,
        is_round_start: false,
        round_count: 0,
    };
    let event = black_box(event);
    let Some(controller) = controller else {
        return event.in_flight;
    };
    controller.on_feedback(now, &event);
    while controller.take_transition().is_some() {}
    let sent = SentEvent {
        bytes: DATAGRAM * 2,
        in_flight: in_flight + DATAGRAM * 2,
        is_app_limited: false,
        was_idle: false,
    };
    controller.on_sent(now, &sent);
    controller.window()
}
