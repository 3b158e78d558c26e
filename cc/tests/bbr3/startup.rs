//! Startup and Drain: checklist items 26 to 31.

use cc::{Algorithm, LostPacket, State};
use units::Rate;

use crate::script::{Ack, RATE, Script, packets};

/// A sender in Startup that has found 50 Mbit/s, and is growing.
fn growing(algorithm: Algorithm) -> Script {
    let mut script = Script::of(algorithm);
    for mbps in [12, 25, 50] {
        script.round(Ack {
            rate: Some(Rate::from_mbps(mbps)),
            ..Ack::default()
        });
    }
    script.assert_state(State::Startup);
    script
}

fn growth() -> Ack {
    Ack {
        rate: Some(RATE),
        in_flight: 800,
        ..Ack::default()
    }
}

/// Loses `ranges` of `size` packets each in one round and lets the loss round end, with `lost` of 400 in the sample.
fn lose_ranges(script: &mut Script, ranges: usize, size: u64, lost: u64) {
    for _ in 0..ranges {
        let first = script.lost_packet();
        let losses = (0..size).map(|number| LostPacket {
            packet_number: first.packet_number + number,
            ..first
        });
        let losses: Vec<LostPacket> = losses.collect();
        script.lose(losses);
    }
    script.round(Ack { lost, ..growth() });
}

// Item 26.
#[test]
fn startup_paces_at_four_ln_two_and_the_rate_only_rises() {
    let mut script = growing(Algorithm::Bbr3);
    let rate = Rate::from_mbps(50).scale(277 * 99, 10_000);
    assert_eq!(script.pacing_rate(), rate);
    script.round(Ack {
        rate: Some(Rate::from_mbps(10)),
        is_app_limited: true,
        ..Ack::default()
    });
    assert_eq!(script.pacing_rate(), rate);
}

/// Item 26: losses in Startup leave the short-term bounds alone.
pub(crate) fn startup_cuts_no_short_term_bound(algorithm: Algorithm) {
    let mut script = growing(algorithm);
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    script.round(growth());
    script.assert_state(State::Startup);
    assert_eq!(script.model().bw_shortterm, None);
    assert_eq!(script.model().inflight_shortterm, None);
}

// Item 27, A.1.
#[test]
fn three_flat_rounds_end_startup() {
    let mut script = growing(Algorithm::Bbr3);
    for round in 0..3 {
        script.assert_state(State::Startup);
        script.round(Ack {
            rate: Some(Rate::from_mbps(62)),
            in_flight: 800,
            ..Ack::default()
        });
        assert_eq!(script.state() == State::Drain, round == 2);
    }
    assert_eq!(script.triggers(), ["bandwidth_plateau"]);
    assert_eq!(script.model().max_bw, Rate::from_mbps(62));
    assert_eq!(script.model().inflight_longterm, None, "no loss, no bound");
}

/// Item 27, A.7: rounds short of data neither count nor start over.
pub(crate) fn app_limited_rounds_neither_end_startup_nor_forget_the_flat_ones(
    algorithm: Algorithm,
) {
    let mut script = growing(algorithm);
    let flat = |is_app_limited| Ack {
        rate: Some(Rate::from_mbps(50)),
        is_app_limited,
        in_flight: 800,
        ..Ack::default()
    };
    script.round(flat(false));
    script.round(flat(false));
    for _ in 0..20 {
        script.round(flat(true));
    }
    script.assert_state(State::Startup);
    script.round(flat(false));
    script.assert_state(State::Drain);
}

// Item 28, A.2: also with samples that are short of data.
#[test]
fn six_ranges_and_more_than_two_percent_in_a_round_end_startup() {
    for is_app_limited in [false, true] {
        let mut script = growing(Algorithm::Bbr3);
        for _ in 0..6 {
            let loss = script.lost_packet();
            script.lose(vec![loss]);
            script.assert_state(State::Startup);
        }
        // In the middle of the round nothing is decided yet.
        script.ack(Ack {
            lost: 9,
            is_app_limited,
            ..growth()
        });
        script.assert_state(State::Startup);
        script.round(Ack {
            lost: 9,
            delivered: 450,
            is_app_limited,
            ..growth()
        });
        script.assert_state(State::Drain);
        assert_eq!(script.triggers(), ["loss_too_high"]);
        // max(BDP of 400 packets, what was delivered in the round).
        assert_eq!(script.model().inflight_longterm, Some(packets(450)));
    }
}

// Item 28: each of the three conditions is needed.
#[test]
fn fewer_ranges_or_a_lower_share_do_not_end_startup() {
    let mut script = growing(Algorithm::Bbr3);
    lose_ranges(&mut script, 5, 1, 9);
    script.assert_state(State::Startup);
    let mut script = growing(Algorithm::Bbr3);
    lose_ranges(&mut script, 6, 1, 8);
    script.assert_state(State::Startup);
    let mut script = growing(Algorithm::Bbr3);
    lose_ranges(&mut script, 6, 1, 9);
    script.assert_state(State::Drain);
}

/// Item 29: one lost packet or one burst is no reason.
pub(crate) fn one_packet_or_one_burst_does_not_end_startup(algorithm: Algorithm) {
    for size in [1, 6, 30] {
        let mut script = growing(algorithm);
        lose_ranges(&mut script, 1, size, 30);
        script.assert_state(State::Startup);
        lose_ranges(&mut script, 1, size, 30);
        script.assert_state(State::Startup);
    }
}

// Item 30, A.3.
#[test]
fn drain_paces_at_half_until_the_path_holds_what_is_in_flight() {
    let mut script = Script::drain(Algorithm::Bbr3);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 200));
    script.ack(Ack {
        in_flight: 401,
        ..Ack::default()
    });
    script.assert_state(State::Drain);
    script.ack(Ack {
        in_flight: 400,
        ..Ack::default()
    });
    // What is enough for the end of Drain is enough for the end of DOWN.
    script.assert_state(State::ProbeBwCruise);
    assert_eq!(
        script.triggers(),
        ["bandwidth_plateau", "drained", "drained"]
    );
}

// Item 30, A.4: the literal condition, round_count > entry + 3.
#[test]
fn drain_ends_after_three_rounds_with_the_start_of_the_fourth() {
    let mut script = Script::drain(Algorithm::Bbr3);
    for _ in 0..3 {
        script.round(Ack {
            in_flight: 700,
            ..Ack::default()
        });
        script.assert_state(State::Drain);
    }
    script.round(Ack {
        in_flight: 700,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.triggers().last(), Some(&"drain_rounds_over"));
}

// Items 30 and 58: the table bounds the window by inflight_longterm in Drain.
#[test]
fn the_long_term_bound_holds_in_drain() {
    let mut script = growing(Algorithm::Bbr3);
    for _ in 0..3 {
        script.ack(Ack {
            acked: 400,
            ..growth()
        });
    }
    assert!(script.window() > packets(600));
    lose_ranges(&mut script, 6, 1, 9);
    script.assert_state(State::Drain);
    let bound = script.model().inflight_longterm.expect("set by the losses");
    assert_eq!(bound, packets(400));
    assert_eq!(script.window(), bound);
}

// Item 31, P19: a flow held back by its peer's window is not short of data. It sees a plateau, leaves Startup, and keeps
// what it reached.
#[test]
fn a_flow_limited_by_the_receiver_leaves_startup_and_keeps_its_rate() {
    let mut script = Script::new();
    for _ in 0..6 {
        script.round(Ack {
            rate: Some(Rate::from_mbps(63)),
            in_flight: 250,
            tx_in_flight: 252,
            delivered: 252,
            ..Ack::default()
        });
    }
    assert!(script.state().is_probe_bw() || script.state() == State::Drain);
    for _ in 0..200 {
        script.round(Ack {
            rate: Some(Rate::from_mbps(63)),
            in_flight: 200,
            tx_in_flight: 252,
            delivered: 252,
            ..Ack::default()
        });
        assert_eq!(script.model().max_bw, Rate::from_mbps(63));
    }
}

/// P1: the rate that rests on a guess of 1 ms is gone with the first sample, also for a flow short of data.
pub(crate) fn the_first_rtt_corrects_the_initial_rate(algorithm: Algorithm) {
    let mut script = Script::of(algorithm);
    assert_eq!(script.pacing_rate(), Rate::from_mbps(277));
    script.ack(Ack {
        acked: 1,
        rate: Some(Rate::from_mbps(1)),
        is_app_limited: true,
        in_flight: 0,
        ..Ack::default()
    });
    // 2.77 x 12,500 B in 40 ms.
    assert_eq!(script.pacing_rate(), Rate::from_kbps(6_925));
}

crate::on_the_real_controller!(
    startup_cuts_no_short_term_bound,
    app_limited_rounds_neither_end_startup_nor_forget_the_flat_ones,
    one_packet_or_one_burst_does_not_end_startup,
    the_first_rtt_corrects_the_initial_rate,
);
