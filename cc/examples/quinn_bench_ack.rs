//! Prints what one acknowledged packet costs quinn-proto's own controllers and ours through the drop-in, in nanoseconds.
//!
//! ```text
//! cargo run --release --manifest-path cc/Cargo.toml --features quinn --example quinn_bench_ack
//! ```
//!
//! The calls are those quinn makes for a backlogged flow whose receiver acknowledges every other packet: two `on_ack`,
//! `on_end_acks`, two looks at the window per packet sent, `on_sent`; one packet in 10,000 is lost. What it costs to
//! make the calls at all, on a controller that does nothing, is subtracted.

#[expect(
    dead_code,
    reason = "a benchmark needs an RTT estimator, not a network"
)]
#[path = "../tests/quinn_support/mod.rs"]
mod quinn_support;

use std::any::Any;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cc::quinn::Factory;
use cc::{Algorithm, AlgorithmError};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_support::{harvest_rtt, origin};

const MTU: u64 = 1_350;
const RTT: Duration = Duration::from_millis(50);
const FRAMES: u64 = 2_000_000;
const LOSS_EVERY: u64 = 5_000;

fn main() -> Result<(), AlgorithmError> {
    let rtt = harvest_rtt(RTT);
    let idle = measure(&mut Idle, &rtt);
    println!("{:<24} {:>10}", "controller", "ns/ACK");
    let contestants: [(&str, Arc<dyn ControllerFactory>); 4] = [
        ("quinn-proto Cubic", Arc::new(CubicConfig::default())),
        ("cubic, drop-in", our("cubic")?),
        ("quinn-proto NewReno", Arc::new(NewRenoConfig::default())),
        ("newreno, drop-in", our("newreno")?),
    ];
    for (name, factory) in contestants {
        let mut controller = factory.build(origin(), 1_350);
        let nanos = measure(controller.as_mut(), &rtt) - idle;
        println!("{name:<24} {nanos:>10.1}");
    }
    Ok(())
}

fn our(name: &str) -> Result<Arc<Factory>, AlgorithmError> {
    let algorithm: Algorithm = name.parse()?;
    Ok(Arc::new(Factory::new(algorithm)))
}

/// Returns nanoseconds per acknowledged packet.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(controller: &mut dyn Controller, rtt: &RttEstimator) -> f64 {
    let start = origin();
    let began_at = Instant::now();
    for frame in 0..FRAMES {
        play(controller, rtt, start, frame);
    }
    began_at.elapsed().as_secs_f64() * 1e9 / (2 * FRAMES) as f64
}

/// Plays one ACK frame at a steady pace of 50,000 a second, and what it releases.
fn play(controller: &mut dyn Controller, rtt: &RttEstimator, start: Instant, frame: u64) {
    let now = start + Duration::from_micros(frame * 20);
    // The first flights are answered sooner than they can be.
    let sent = now.checked_sub(RTT).map_or(start, |sent| sent.max(start));
    for _ in 0..2 {
        controller.on_ack(now, sent, MTU, false, black_box(rtt));
    }
    controller.on_end_acks(now, 100 * MTU, false, Some(frame * 2));
    if frame % LOSS_EVERY == LOSS_EVERY - 1 {
        controller.on_congestion_event(now, sent, false, MTU);
    }
    for _ in 0..4 {
        black_box(controller.window());
    }
    controller.on_sent(now, 2 * MTU, frame * 2);
}

/// A controller that does nothing.
struct Idle;

impl Controller for Idle {
    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _is_persistent: bool,
        _lost_bytes: u64,
    ) {
    }

    fn on_mtu_update(&mut self, _mtu: u16) {}

    fn window(&self) -> u64 {
        MTU
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self)
    }

    fn initial_window(&self) -> u64 {
        MTU
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
