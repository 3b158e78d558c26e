//! Waiting times against queueing theory.

use netsim::{Packet, Pipe, PipeConfig, RandomStreams};
use units::{ByteCount, Rate, Timestamp};

use crate::bench::row;

/// M/D/1: Poisson arrivals, one fixed size, no limit. The mean wait is load / (2 * (1 - load))
/// service times. The tolerances are four standard deviations of a run of two million packets.
#[test]
fn poisson_arrivals_wait_as_long_as_theory_says() {
    const PACKETS: u32 = 2_000_000;
    const SERVICE_NANOS: f64 = 1e6;
    for (load, tolerance) in [
        (0.3, 0.01),
        (0.5, 0.01),
        (0.8, 0.02),
        (0.9, 0.04),
        (0.95, 0.08),
    ] {
        let streams = RandomStreams::new(1);
        let mut gaps = streams.stream("gaps");
        let config = PipeConfig {
            rate: Rate::from_mbps(8),
            ..PipeConfig::default()
        };
        let mut pipe = Pipe::new(config, &streams, "forward").unwrap();
        let mut at = 0.0;
        for _ in 0..PACKETS {
            at += -libm::log(uniform(gaps.u64())) * SERVICE_NANOS / load;
            let now = Timestamp::from_nanos(whole(at));
            pipe.advance(now, &mut |_, _| ());
            pipe.arrive(now, Packet::new(ByteCount::kb(1), ()));
        }
        pipe.advance(Timestamp::MAX, &mut |_, _| ());
        let waits = &pipe.counters().queue_delay;
        assert_eq!(waits.count(), u64::from(PACKETS));
        let mean = waits.mean().unwrap().as_secs_f64() * 1e9 / SERVICE_NANOS;
        let expected = load / (2.0 * (1.0 - load));
        let error = (mean / expected - 1.0).abs();
        assert!(
            error < tolerance,
            "load {load}: {mean:.4} service times, {expected:.4} expected"
        );
        row(
            &format!("M/D/1 mean wait, load {load:.2}, two million packets"),
            format!("{mean:.4} service times"),
            format!("{expected:.4} +- {:.0} %", tolerance * 100.0),
        );
    }
}

/// A number in (0, 1] from the upper 32 bits.
fn uniform(bits: u64) -> f64 {
    (f64::from(u32::try_from(bits >> 32).unwrap()) + 1.0) / 4_294_967_296.0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and below 2^53 here"
)]
fn whole(nanos: f64) -> u64 {
    nanos as u64
}
