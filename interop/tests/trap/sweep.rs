//! Layer 6: the escape at other round-trip times and loss rates.

use cc::Algorithm;
use interop::scenario::Scenario;

use crate::validation_rows::row;
use crate::{MS, in_seconds, is_slow, largest, play};

/// Twenty round trips or 1.5 s, whichever is longer.
fn allowed(rtt_ms: u64) -> u64 {
    (20 * rtt_ms * MS).max(1_500 * MS)
}

fn scenario(rtt_ms: u64, loss_percent: u64) -> Scenario {
    let text = include_str!("../../scenarios/min-cwnd-trap.toml");
    let text = text
        .replace("rtt = \"10 ms\"", &format!("rtt = \"{rtt_ms} ms\""))
        .replace("30 %", &format!("{loss_percent} %"));
    Scenario::parse("sweep.toml", &text).expect("good")
}

fn assert_escapes(rtt_ms: u64, loss_percent: u64, seeds: u64) -> Option<u64> {
    let runs = play(&scenario(rtt_ms, loss_percent), Algorithm::CUBIC, seeds);
    let escape = largest(&runs, |run| run.escape_ns);
    assert!(
        escape.is_some_and(|escape| escape <= allowed(rtt_ms)),
        "{rtt_ms} ms, {loss_percent} %: {escape:?}"
    );
    escape
}

#[test]
fn cubic_escapes_at_every_corner_of_the_sweep() {
    for (rtt_ms, loss_percent) in [(2, 10), (2, 50), (100, 10), (100, 50)] {
        assert_escapes(rtt_ms, loss_percent, 2);
    }
}

#[test]
fn cubic_escapes_at_every_round_trip_time_and_loss_rate() {
    if !is_slow("cubic_escapes_at_every_round_trip_time_and_loss_rate") {
        return;
    }
    let mut missed = Vec::new();
    for rtt_ms in [2, 10, 20, 50, 100] {
        for loss_percent in [10, 20, 30, 50] {
            let runs = play(&scenario(rtt_ms, loss_percent), Algorithm::CUBIC, 10);
            let escape = largest(&runs, |run| run.escape_ns);
            row(
                "trap",
                &format!("L6 {rtt_ms} ms, {loss_percent} %: latest escape of 10"),
                in_seconds(escape),
                format!("at most {}", in_seconds(Some(allowed(rtt_ms)))),
            );
            if escape.is_none_or(|escape| escape > allowed(rtt_ms)) {
                missed.push((rtt_ms, loss_percent, escape));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
