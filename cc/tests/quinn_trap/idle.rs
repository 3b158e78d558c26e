//! Layer 5, the idle twin: silence is not time of the curve.
//!
//! A controller that never discounts idle time passes every test of the trap. Here the window stands at nine packets,
//! nothing is sent for a while, and then it may grow by what one round trip of congestion avoidance allows, no more.

use std::time::Duration;

use cc::Fault;

use crate::quinn_support::Pair;
use crate::{FLOOR, PACKET, Subject, report};

const ONE_WAY: Duration = Duration::from_millis(50);
const ROUND_TRIP: Duration = Duration::from_millis(100);
const ROUNDS: usize = 10;

/// Two losses, growth back to nine packets, silence; then the growth in each of ten round trips, in packets.
fn growth_after(subject: Subject, silence: Duration) -> Vec<f64> {
    let mut pair = subject.connected(ONE_WAY);
    let begin = pair.now;
    let mut drops = [ROUND_TRIP, ROUND_TRIP * 4].into_iter().peekable();
    pair.is_lost = Box::new(move |now, size| {
        let is_due = drops.peek().is_some_and(|due| now - begin >= *due);
        is_due && size >= 1_000 && drops.next().is_some()
    });
    for _ in 0..8 {
        a_full_round(&mut pair);
    }
    pair.run_for(Duration::from_secs(1));
    for _ in 0..300 {
        if window(&pair) >= 9 * PACKET {
            break;
        }
        a_full_round(&mut pair);
    }
    let before = window(&pair);
    assert!(before >= 9 * PACKET, "{}: {before}", subject.name());
    assert!(before <= 25 * PACKET, "{}: {before}", subject.name());
    // What was offered beyond the window is sent; then there is nothing more.
    pair.run_for(Duration::from_secs(2));
    let mut before = window(&pair);
    pair.run_for(silence);
    pair.send(50_000_000);
    let mut growth = Vec::new();
    for _ in 0..ROUNDS {
        pair.run_for(ROUND_TRIP);
        let now = window(&pair);
        growth.push((now as f64 - before as f64) / PACKET as f64);
        before = now;
    }
    growth
}

/// Offers a little more than the window allows, for one round trip.
fn a_full_round(pair: &mut Pair) {
    let more = window(pair).max(FLOOR) + PACKET;
    pair.send(usize::try_from(more).expect("small"));
    pair.run_for(ROUND_TRIP);
}

fn window(pair: &Pair) -> u64 {
    pair.controller().metrics().congestion_window
}

fn most(growth: &[f64]) -> f64 {
    growth.iter().copied().fold(0.0, f64::max)
}

#[test]
fn after_silence_cubic_grows_by_one_packet_per_round_trip() {
    for silence in [10, 60] {
        for subject in [Subject::FIXED, Subject::mutant(Fault::M3)] {
            let growth = growth_after(subject, Duration::from_secs(silence));
            report(
                &format!("L5 {}, {silence} s of silence", subject.name()),
                format!("{:.2} packets", most(&growth)),
                "at most 1.05 packets per round trip",
            );
            assert!(most(&growth) <= 1.05, "{}: {growth:?}", subject.name());
            let total: f64 = growth.iter().sum();
            assert!(total >= 3.0, "it grows at all: {growth:?}");
        }
    }
}

#[test]
fn a_controller_that_counts_the_silence_explodes() {
    for silence in [10, 60] {
        for subject in [Subject::mutant(Fault::NoShift), Subject::StockCubic] {
            let growth = growth_after(subject, Duration::from_secs(silence));
            report(
                &format!("L5 {}, {silence} s of silence", subject.name()),
                format!("{:.2} packets", most(&growth)),
                "more than 3 packets in one round trip",
            );
            assert!(most(&growth) > 3.0, "{}: {growth:?}", subject.name());
        }
    }
}
