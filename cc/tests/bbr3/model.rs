//! Sampling, rounds, rate, delay, aggregation and the order of work: checklist items 5 to 8, 13 and 15 to 25.

use std::time::Duration;

use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, State};
use units::{ByteCount, Rate, Timestamp};

use crate::script::{Ack, PACKET, RATE, RTT, Script, packets};

// Item 6: no rate, but the volumes and the round hold.
#[test]
fn a_sample_without_a_rate_moves_rounds_and_bounds_but_no_bandwidth() {
    let mut script = Script::bounded_down(Algorithm::Bbr3);
    let before = script.model();
    script.round(Ack {
        rate: None,
        tx_in_flight: 350,
        ..Ack::default()
    });
    let after = script.model();
    assert_eq!(after.max_bw, before.max_bw);
    assert_eq!(after.round_count, before.round_count + 1);
    assert_eq!(after.inflight_longterm, Some(packets(350)));
}

// Section 2.10 of the checklist: it would count as a round of the plateau.
#[test]
fn a_sample_without_a_rate_is_no_round_of_a_plateau() {
    let mut script = Script::new();
    script.round(Ack::default());
    for _ in 0..8 {
        script.round(Ack {
            rate: None,
            ..Ack::default()
        });
    }
    script.assert_state(State::Startup);
}

// Item 13, with the books of a real sender: the round of a late packet's bytes is not counted twice.
#[test]
fn a_late_packet_is_delivered_once() {
    let mut path = TestPath::new(Algorithm::Bbr3);
    path.send(10);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 2,
        acked: 5,
        ..Feedback::default()
    });
    path.ack_late(2);
    path.ack(3);
    assert_eq!(path.in_flight(), ByteCount::ZERO);
    assert_eq!(path.packets_missing(), 0);
}

/// Item 15: a marker of 32 bits stops the rounds at 4.3 GB.
pub(crate) fn rounds_go_on_beyond_four_gigabytes(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    script.total_delivered = 5_000_000_000;
    let before = script.model().round_count;
    for _ in 0..5 {
        script.round(Ack::default());
    }
    assert_eq!(script.model().round_count, before + 5);
}

// Item 16.
#[test]
fn a_round_begins_with_a_packet_sent_after_the_one_before_began() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let before = script.model().round_count;
    let marker = script.total_delivered - packets(10).as_u64();
    // The latest round began when `marker` and ten packets were delivered.
    script.ack(Ack {
        prior_delivered: Some(marker),
        ..Ack::default()
    });
    assert_eq!(script.model().round_count, before);
    script.ack(Ack {
        prior_delivered: Some(marker + packets(10).as_u64()),
        ..Ack::default()
    });
    assert_eq!(script.model().round_count, before + 1);
}

// Item 17: the wall clock begins a refill in the middle of a round.
#[test]
fn a_refill_lasts_a_whole_round_from_its_beginning() {
    let mut script = Script::refill(Algorithm::Bbr3);
    let began = script.total_delivered;
    script.ack(Ack {
        prior_delivered: Some(began - 1),
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwRefill);
    script.ack(Ack {
        prior_delivered: Some(began),
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwUp);
}

// Item 18.
#[test]
fn an_app_limited_sample_counts_only_if_it_is_the_largest() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let limited = |mbps| Ack {
        rate: Some(Rate::from_mbps(mbps)),
        is_app_limited: true,
        ..Ack::default()
    };
    script.ack(limited(20));
    assert_eq!(script.model().max_bw, RATE);
    script.ack(limited(120));
    assert_eq!(script.model().max_bw, Rate::from_mbps(120));
}

fn half() -> Ack {
    Ack {
        rate: Some(Rate::from_mbps(50)),
        in_flight: 200,
        tx_in_flight: 200,
        ..Ack::default()
    }
}

/// Plays rounds at 50 Mbit/s until one round after the end of the next probe.
fn play_cycle_at_half(script: &mut Script) {
    while script.state() != State::ProbeBwUp {
        script.round(half());
    }
    while script.state() == State::ProbeBwUp {
        script.round(half());
    }
    script.round(half());
}

/// Item 19: only one round after a probe does the filter move on.
pub(crate) fn the_bandwidth_filter_advances_once_per_cycle(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    for _ in 0..10 {
        script.round(half());
    }
    assert_eq!(script.model().max_bw, RATE, "ten rounds of cruise");
    let mut cycles = 0;
    while script.model().max_bw == RATE {
        assert!(cycles < 3, "two cycles are the filter's length");
        play_cycle_at_half(&mut script);
        cycles += 1;
    }
    assert!(cycles >= 1);
    assert_eq!(script.model().max_bw, Rate::from_mbps(50));
}

// Item 19: not if that sample is short of data.
#[test]
fn an_app_limited_round_after_a_probe_does_not_advance_the_filter() {
    let mut script = Script::up(Algorithm::Bbr3);
    for _ in 0..3 {
        script.round(Ack::default());
    }
    script.assert_state(State::ProbeBwDown);
    script.round(Ack {
        rate: Some(Rate::from_mbps(10)),
        is_app_limited: true,
        ..Ack::default()
    });
    // Had it advanced, the end of the next cycle would push the old maximum out.
    play_cycle_at_half(&mut script);
    assert_eq!(script.model().max_bw, RATE);
}

// Item 20.
#[test]
fn the_minimum_rtt_rises_only_after_ten_seconds() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let start = script.now;
    while script.model().min_rtt == Some(RTT) {
        script.wait(Duration::from_millis(50));
        script.ack(Ack {
            rtt: RTT * 2,
            in_flight: 4,
            starts_round: true,
            ..Ack::default()
        });
        assert!(script.now < start + Duration::from_secs(12));
    }
    assert!(script.now > start + Duration::from_secs(10));
    assert_eq!(script.model().min_rtt, Some(RTT * 2));
    assert!(
        script.triggers().contains(&"min_rtt_expired"),
        "looked first"
    );
}

/// Item 21 and P34.
pub(crate) fn the_first_acknowledgement_makes_no_probe_rtt(algorithm: Algorithm) {
    let mut script = Script::of(algorithm);
    assert!(script.now > Timestamp::from_secs(900));
    for _ in 0..100 {
        script.round(Ack {
            // No sample is as low as the first.
            rtt: RTT + Duration::from_millis(1),
            is_app_limited: true,
            ..Ack::default()
        });
        assert_ne!(script.state(), State::ProbeRtt);
    }
}

// Item 22, on the controller: the window allows what bunched acknowledgements need.
#[test]
fn bunched_acknowledgements_widen_the_window() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    for _ in 0..6 {
        script.wait(Duration::from_millis(20));
        script.ack(Ack {
            acked: 200,
            ..Ack::default()
        });
    }
    assert!(script.model().extra_acked >= packets(190));
    assert!(script.window() >= packets(800 + 190), "{}", script.window());
}

// Items 23 and 24: the loss that came with an acknowledgement is known when that is judged, so a probe that is over by
// loss is not continued by the same event.
#[test]
fn losses_are_digested_before_the_acknowledgements_of_their_event() {
    let mut script = Script::up(Algorithm::Bbr3);
    let loss = script.lost_probe_packet(400, 20);
    script.round(Ack {
        losses: vec![loss],
        lost: 20,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.model().inflight_longterm, Some(packets(399)));
    // DOWN began with this event, so the bytes it delivered are its marker.
    let before = script.model().round_count;
    script.ack(Ack {
        prior_delivered: Some(script.total_delivered - 1),
        ..Ack::default()
    });
    assert_eq!(script.model().round_count, before);
}

// Item 25, G18.
#[test]
fn an_event_with_losses_only_changes_no_bandwidth_and_no_round() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let before = (script.model(), script.pacing_rate(), script.window());
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    assert_eq!(
        before,
        (script.model(), script.pacing_rate(), script.window())
    );
}

// P18, P31: no overflow at the far end.
#[test]
fn a_hundred_gigabit_per_second_over_a_second_do_not_overflow() {
    let mut script = Script::new();
    for _ in 0..8 {
        script.wait(Duration::from_secs(1));
        script.ack(Ack {
            rate: Some(Rate::from_mbps(100_000)),
            rtt: Duration::from_secs(1),
            in_flight: 20_000_000,
            starts_round: true,
            ..Ack::default()
        });
        if script.state() == State::Drain {
            break;
        }
    }
    script.assert_state(State::Drain);
    assert_eq!(script.pacing_rate(), Rate::from_mbps(49_500));
    assert!(script.window() > PACKET);
}

crate::on_the_real_controller!(
    rounds_go_on_beyond_four_gigabytes,
    the_bandwidth_filter_advances_once_per_cycle,
    the_first_acknowledgement_makes_no_probe_rtt,
);
