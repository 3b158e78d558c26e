//! Prints what one feedback event costs each controller, in nanoseconds; the bound is 100 (row A30), and 150 for BBR, which
//! keeps a model besides.
//!
//! ```text
//! cargo run --release --manifest-path cc/Cargo.toml --example bench_ack
//! ```
//!
//! Each controller is measured in five passes, of which the fastest is printed: what else the machine does can only add.
//!
//! An event acknowledges two packets, as a receiver does that acknowledges every other one, and two more are sent; the
//! flow is backlogged, loses one packet in 10,000, and has an RTT of 50 ms. The time it takes to build the event is
//! measured apart and subtracted. BBR is measured with windows of 100 to 100,000 packets: nothing it does may depend on how
//! much is in flight.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LostPacket, RateSample, RttEstimator,
    SentEvent,
};
use units::{ByteCount, Rate, Timestamp};

const DATAGRAM: ByteCount = ByteCount::new(1_350);
const RTT: Duration = Duration::from_millis(50);
const EVENTS: u64 = 2_000_000;
const LOSS_EVERY: u64 = 5_000;

const PASSES: usize = 5;
const BOUND_NS: u32 = 100;
const BOUND_BBR_NS: u32 = 150;

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
    println!(
        "{:<28} {:>9} {:>9} {:>14}",
        "controller", "packets", "ns/event", "window"
    );
    for name in CONTROLLERS {
        match name.parse::<Algorithm>() {
            Ok(algorithm) => run(name, algorithm, 10_000, BOUND_NS),
            Err(error) => println!("{error}"),
        }
    }
    for packets in [100, 1_000, 10_000, 100_000] {
        run("bbr3", Algorithm::Bbr3, packets, BOUND_BBR_NS);
    }
}

fn run(name: &str, algorithm: Algorithm, packets: u64, bound: u32) {
    let mut best = f64::INFINITY;
    let mut window = ByteCount::ZERO;
    for _ in 0..PASSES {
        let mut controller = algorithm.build(DATAGRAM);
        best = best.min(measure(controller.as_mut(), packets));
        window = controller.window();
    }
    println!(
        "{name:<28} {packets:>9} {best:>9.1} {:>14}",
        window.to_string()
    );
    println!("A30 {name}, {packets} packets: {best:.1} ns, allowed {bound} ns");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(controller: &mut dyn Controller, packets: u64) -> f64 {
    let mut rtt = RttEstimator::new();
    rtt.update(RTT, Duration::ZERO);
    let overhead = Instant::now();
    for event in 0..EVENTS {
        black_box(feed(None, &rtt, event, packets));
    }
    let overhead = overhead.elapsed();
    let work = Instant::now();
    for event in 0..EVENTS {
        black_box(feed(Some(controller), &rtt, event, packets));
    }
    work.elapsed().saturating_sub(overhead).as_secs_f64() * 1e9 / EVENTS as f64
}

/// Plays one event at the steady pace of a path that holds `packets` packets within the RTT.
fn feed(
    controller: Option<&mut dyn Controller>,
    rtt: &RttEstimator,
    number: u64,
    packets: u64,
) -> ByteCount {
    let nanos_per_event = 2 * 50_000_000 / packets;
    let now = Timestamp::from_secs(1) + Duration::from_nanos(number * nanos_per_event);
    // The flow fills its window, or it would not be let grow and cost less.
    let in_flight = controller
        .as_ref()
        .map_or(DATAGRAM * packets, |controller| controller.window());
    let sent_at = now.saturating_sub(RTT);
    let packet = |packet_number| AckedPacket {
        packet_number,
        sent_at,
        size: DATAGRAM,
        is_app_limited: false,
        tx_in_flight: DATAGRAM * packets,
    };
    let acked = [packet(number * 2), packet(number * 2 + 1)];
    let lost = [LostPacket {
        packet_number: number,
        sent_at,
        size: DATAGRAM,
        is_app_limited: false,
        tx_in_flight: DATAGRAM * packets,
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
        sample: Some(RateSample {
            delivery_rate: Some(Rate::from_bytes_per(DATAGRAM * packets, RTT)),
            delivered: DATAGRAM * packets,
            interval: RTT,
            is_app_limited: false,
            prior_delivered: (DATAGRAM * number.saturating_sub(packets / 2) * 2).as_u64(),
            total_delivered: (DATAGRAM * number * 2).as_u64(),
            lost: ByteCount::ZERO,
            tx_in_flight: DATAGRAM * packets,
            send_tag: 0,
        }),
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
