//! Window, pacing and quantum: checklist items 56 to 60.

use std::time::Duration;

use cc::{Algorithm, State};
use units::{ByteCount, Rate};

use crate::script::{Ack, PACKET, RATE, Script, bounded, packets};

/// Item 56: the window grows by what is acknowledged, never by a jump.
pub(crate) fn the_window_grows_by_what_is_acknowledged(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    let loss = script.lost_packet();
    script.ack(Ack {
        acked: 0,
        in_flight: 20,
        losses: vec![loss],
        is_persistent: true,
        ..Ack::default()
    });
    for grown in [31, 41, 51] {
        script.ack(Ack::default());
        assert_eq!(script.window(), packets(grown));
    }
}

// Item 56: up to gain times volume plus aggregation; P3: not beyond it, however long a flow is short of data.
#[test]
fn the_window_ends_at_two_volumes_also_for_a_flow_short_of_data() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    for _ in 0..1_500 {
        script.round(Ack {
            rate: Some(Rate::from_mbps(1)),
            is_app_limited: true,
            acked: 4,
            in_flight: 4,
            tx_in_flight: 4,
            ..Ack::default()
        });
        if script.state() == State::ProbeBwCruise {
            assert!(script.window() <= packets(800) + script.model().extra_acked);
        }
    }
}

// Item 56: before the pipe is full, the window grows without a look at the model up to twice the initial one.
#[test]
fn the_first_round_grows_the_window_whatever_the_model_says() {
    let mut script = Script::new();
    assert_eq!(script.window(), packets(10));
    for grown in [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 20, 20] {
        // A packet per round trip: the model's goal is four packets.
        script.round(Ack {
            rate: Some(Rate::from_kbps(250)),
            is_app_limited: true,
            acked: 1,
            ..Ack::default()
        });
        assert_eq!(script.window(), packets(grown));
    }
}

// Items 57 and 58, A.14: a path of less than a packet.
#[test]
fn the_window_is_never_below_four_packets() {
    let mut script = Script::drain_at(Algorithm::Bbr3, Rate::from_kbps(64));
    for _ in 0..20 {
        script.round(Ack {
            rate: Some(Rate::from_kbps(64)),
            acked: 1,
            in_flight: 3,
            tx_in_flight: 4,
            delivered: 1,
            ..Ack::default()
        });
        assert!(script.window() >= packets(4));
    }
    assert_eq!(script.controller.minimum_window(), packets(4));
}

// Item 57: one quantum is in flight, however small the product of rate and delay.
#[test]
fn the_window_holds_a_quantum_on_a_fast_and_short_path() {
    let rate = Rate::from_mbps(400);
    let rtt = Duration::from_micros(100);
    let mut script = Script::new();
    for part in [8, 4, 2, 1, 1, 1, 1] {
        script.wait(rtt);
        script.ack(Ack {
            rate: Some(rate.scale(1, part)),
            rtt,
            acked: 4,
            in_flight: 300,
            starts_round: true,
            ..Ack::default()
        });
    }
    script.assert_state(State::Drain);
    for _ in 0..40 {
        script.wait(rtt);
        script.ack(Ack {
            rate: Some(rate),
            rtt,
            acked: 4,
            in_flight: 5,
            tx_in_flight: 6,
            starts_round: true,
            ..Ack::default()
        });
    }
    // The product of rate and delay is 5 kB, a quantum between 44.5 kB in DOWN and 61.8 kB in UP.
    assert!(script.state().is_probe_bw());
    assert!(
        script.window() >= ByteCount::new(44_000),
        "{}",
        script.window()
    );
}

// Item 58: the table of bounds.
#[test]
fn the_long_term_bound_holds_in_every_state_of_the_cycle_and_headroom_in_cruise() {
    let mut script = Script::bounded_down(Algorithm::Bbr3);
    script.ack(bounded());
    let in_cruise = script.window();
    script.assert_state(State::ProbeBwCruise);
    assert_eq!(in_cruise, packets(299) - packets(299).scale(15, 100));
    let mut script = Script::bounded_down(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 290,
        ..bounded()
    });
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.window(), packets(299));
    script.play_until_refill();
    for _ in 0..10 {
        script.ack(bounded());
    }
    script.assert_state(State::ProbeBwRefill);
    assert_eq!(script.window(), packets(299));
    assert_eq!(Script::bounded_up(Algorithm::Bbr3).window(), packets(299));
}

// Item 58: the short-term bound holds as well, and four packets are left whatever the bounds say.
#[test]
fn the_short_term_bound_holds_in_cruise() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    for _ in 0..30 {
        let loss = script.lost_packet();
        script.lose(vec![loss]);
        script.round(Ack {
            delivered: 2,
            rate: Some(Rate::from_kbps(500)),
            in_flight: 2,
            tx_in_flight: 2,
            ..Ack::default()
        });
        if let Some(bound) = script.model().inflight_shortterm {
            assert!(script.window() <= bound.max(packets(4)));
        }
        assert!(script.window() >= packets(4));
    }
}

/// Item 59: one percent below the path.
pub(crate) fn the_pacing_rate_is_one_percent_below_the_path(algorithm: Algorithm) {
    let script = Script::cruise(algorithm);
    assert_eq!(script.pacing_rate(), Rate::from_mbps(99));
}

// Item 59: two packets to 64 kB, a millisecond's worth in between.
#[test]
fn the_quantum_is_a_millisecond_within_its_bounds() {
    let script = Script::new();
    let quantum = |mbps| script.controller.send_quantum(Rate::from_mbps(mbps));
    assert_eq!(quantum(1), PACKET * 2);
    assert_eq!(quantum(100), ByteCount::new(12_500));
    assert_eq!(quantum(40_000), ByteCount::new(64_000));
}

/// Items 59 and 60, P11: values in packets follow the datagram, the model does not.
pub(crate) fn a_new_datagram_size_moves_what_is_in_packets(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    let (before, window) = (script.model(), script.window());
    let large = ByteCount::new(1_452);
    script.controller.on_mtu_change(script.now, large);
    assert_eq!(script.controller.max_datagram_size(), large);
    assert_eq!(script.controller.minimum_window(), large * 4);
    assert_eq!(
        script.controller.send_quantum(Rate::from_mbps(1)),
        large * 2
    );
    assert_eq!(script.model(), before);
    assert_eq!(script.window(), window);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
}

#[test]
fn a_new_datagram_size_before_the_first_acknowledgement_gives_a_new_initial_window() {
    let mut controller = Algorithm::Bbr3.build(ByteCount::new(1_200));
    assert_eq!(controller.window(), ByteCount::new(12_000));
    let script = Script::new();
    controller.on_mtu_change(script.now, ByteCount::new(1_452));
    assert_eq!(controller.window(), ByteCount::new(14_520));
}

crate::on_the_real_controller!(
    the_window_grows_by_what_is_acknowledged,
    the_pacing_rate_is_one_percent_below_the_path,
    a_new_datagram_size_moves_what_is_in_packets,
);
