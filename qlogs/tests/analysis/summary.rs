//! The figures of a connection whose figures are known.

use std::time::Duration;

use serde_json::json;
use units::Rate;

use super::tape::{Tape, analysis};

/// 4 packets in flight, one of them lost and sent again.
fn file() -> Vec<u8> {
    let mut tape = Tape::before_handshake(1 << 40, 1 << 40);
    tape.complete(30);
    tape.at(30).window(4).send(4);
    tape.at(50)
        .lose(1)
        .state("recovery", "packet_lost")
        .window(2);
    tape.ack_but(1).probe();
    tape.at(80)
        .ack()
        .state("congestion_avoidance", "recovery_exited");
    tape.at(130).send(1);
    tape.at(230).ack();
    tape.end(330)
}

#[test]
fn the_figures() {
    let summary = analysis(&file()).summary;
    assert_eq!(summary.side, Some("server"));
    assert_eq!(summary.controller.as_deref(), Some("cubic"));
    assert_eq!(summary.duration, Duration::from_millis(330));
    assert_eq!(summary.handshake, Some(Duration::from_millis(30)));
    let ms = Duration::from_millis;
    assert_eq!(summary.rtt, Some([ms(20), ms(30), ms(100)]));
    assert_eq!(summary.delivered().as_u64(), 5_000);
    assert_eq!(
        summary.goodput(),
        Some(Rate::from_bps(5_000 * 8 * 1_000 / 230))
    );
    assert_eq!(summary.loss_ppm(), Some(166_666), "1 of 6");
    assert_eq!(summary.window, Some([2_400, 4_800, 2_400]));
    let states: Vec<(&str, u128, u64)> = summary
        .states
        .iter()
        .map(|state| (state.state.as_str(), state.time.as_millis(), state.entries))
        .collect();
    assert_eq!(
        states,
        [
            ("slow_start", 50, 1),
            ("recovery", 30, 1),
            ("congestion_avoidance", 250, 1),
        ]
    );
}

#[test]
fn the_same_as_json() {
    let json = analysis(&file()).summary.json();
    assert_eq!(json["duration_ns"], json!(330_000_000));
    assert_eq!(json["packets"]["lost"], json!(1));
    assert_eq!(json["stream_bytes"]["retransmitted"], json!(1_000));
    assert_eq!(json["rtt_ns"]["p95"], json!(100_000_000));
    assert_eq!(json["states"][1]["state"], json!("recovery"));
    assert_eq!(json["limited_by"]["what"], json!("application"));
}

#[test]
fn one_screen() {
    let text = analysis(&file()).summary.to_string();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.lines().count() <= 24, "{text}");
    for line in [
        "seen from       server, tidegate 0.1.0, cubic",
        "handshake       30 ms",
        "RTT             min 20 ms, p50 30 ms, p95 100 ms (3 samples)",
        "lost            1 packets, 16.66 %",
        "retransmitted   1000 B of 6000 B",
        "window          2400 B to 4800 B, 2400 B at the end",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line:?} in\n{text}"
        );
    }
}

/// A lost packet that is acknowledged after all was not lost.
#[test]
fn spurious_losses_are_told() {
    let mut tape = Tape::new(1 << 40, 1 << 40);
    tape.window(10).send(4);
    tape.at(20).lose(1);
    tape.at(30).receive(vec![qlogs::Frame::Ack {
        ack_delay: Duration::ZERO,
        ranges: vec![(0, 3)],
        ecn: None,
    }]);
    let text = analysis(&tape.end(100)).summary.to_string();
    assert!(
        text.contains("1 packets, 25.00 %, 1 of them acknowledged after all"),
        "{text}"
    );
}

/// Without packets and metrics there is little to tell, and no panic.
#[test]
fn a_file_with_almost_nothing() {
    let text = analysis(&Tape::new(0, 0).end(0)).summary.to_string();
    assert!(text.contains("RTT             not in the file\n"), "{text}");
}
