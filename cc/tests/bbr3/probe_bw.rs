//! The cycle of probing: checklist items 32 to 43.

use std::time::Duration;

use cc::{Algorithm, State};
use units::Rate;

use crate::script::{Ack, RATE, RTT, Script, bounded, packets};

/// Plays rounds in CRUISE until the next probe; returns the wait since DOWN began, with `seed`.
fn wait_of(seed: u64) -> Duration {
    let mut script = Script::with_seed(Algorithm::Bbr3, seed);
    for part in [8, 4, 2, 1, 1, 1, 1] {
        script.round(Ack {
            rate: Some(RATE.scale(1, part)),
            in_flight: 800,
            acked: 400,
            ..Ack::default()
        });
    }
    script.ack(Ack {
        in_flight: 300,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwCruise);
    let began = script.now;
    while script.state() != State::ProbeBwRefill {
        script.wait(Duration::from_millis(1));
        script.ack(Ack {
            in_flight: 300,
            ..Ack::default()
        });
    }
    script.now.saturating_since(began)
}

// Item 32.
#[test]
fn down_paces_at_nine_tenths() {
    let script = Script::down(Algorithm::Bbr3);
    assert_eq!(script.pacing_rate(), RATE.scale(9 * 99, 1_000));
}

// Item 32: 2 to 3 s, drawn from the seed.
#[test]
fn the_wait_is_two_to_three_seconds_and_differs_from_seed_to_seed() {
    let waits: Vec<Duration> = (0..12).map(wait_of).collect();
    for wait in &waits {
        assert!(
            (Duration::from_secs(2)..=Duration::from_millis(3_002)).contains(wait),
            "{wait:?}"
        );
    }
    let (least, most) = (waits.iter().min(), waits.iter().max());
    assert!(most.zip(least).is_some_and(|(a, b)| *a - *b > RTT * 5));
    assert_eq!(wait_of(3), wait_of(3));
}

/// Item 33, A.8.
pub(crate) fn down_ends_with_headroom_below_the_long_term_bound(algorithm: Algorithm) {
    let mut script = Script::bounded_down(algorithm);
    // 85 % of 299 packets are 254.15.
    script.ack(Ack {
        in_flight: 255,
        tx_in_flight: 250,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwDown);
    script.ack(Ack {
        in_flight: 254,
        tx_in_flight: 250,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwCruise);
    assert!(script.window() <= packets(255));
}

// Item 33: without a bound the path's volume alone decides, by the largest rate, not by a bound that losses put on it.
#[test]
fn down_ends_at_the_volume_of_the_largest_rate() {
    let mut script = Script::down(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 401,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwDown);
    script.ack(Ack {
        in_flight: 400,
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwCruise);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
}

/// Item 34: on a path of ten packets a Reno flow grows by a window in ten rounds.
pub(crate) fn a_small_path_is_probed_after_as_many_rounds_as_it_holds_packets(
    algorithm: Algorithm,
) {
    let rate = Rate::from_kbps(2_500);
    let ack = || Ack {
        rate: Some(rate),
        acked: 1,
        in_flight: 10,
        tx_in_flight: 10,
        delivered: 10,
        ..Ack::default()
    };
    let mut script = Script::drain_at(algorithm, rate);
    script.ack(ack());
    script.assert_state(State::ProbeBwCruise);
    let mut rounds = 0;
    while script.state() != State::ProbeBwRefill {
        script.round(ack());
        rounds += 1;
        assert!(rounds <= 10, "the wall clock would ring after 50");
    }
    // The count begins at 0 or 1.
    assert!(rounds >= 9, "{rounds}");
}

// Item 34: 62 or 63 rounds at most, however large the path.
#[test]
fn a_short_path_is_probed_after_sixty_two_or_sixty_three_rounds() {
    let rtt = Duration::from_millis(10);
    let rate = Rate::from_mbps(400);
    let ack = |part| Ack {
        rate: Some(rate.scale(1, part)),
        rtt,
        in_flight: 300,
        ..Ack::default()
    };
    let mut script = Script::new();
    let round = |script: &mut Script, part| {
        script.wait(rtt);
        script.ack(Ack {
            starts_round: true,
            ..ack(part)
        });
    };
    for part in [8, 4, 2, 1, 1, 1, 1] {
        round(&mut script, part);
    }
    script.ack(ack(1));
    script.assert_state(State::ProbeBwCruise);
    let mut rounds = 0;
    while script.state() != State::ProbeBwRefill {
        round(&mut script, 1);
        rounds += 1;
    }
    assert!((62..=63).contains(&rounds), "{rounds}");
}

// Item 34, A.9: DOWN goes straight to REFILL when the time has come before the queue is gone.
#[test]
fn down_goes_straight_to_refill_when_the_wait_is_over() {
    let mut script = Script::down(Algorithm::Bbr3);
    for _ in 0..31 {
        script.wait(Duration::from_millis(100));
        // No round ends, so it is the wall clock that rings.
        script.ack(Ack {
            in_flight: 500,
            ..Ack::default()
        });
        if script.state() != State::ProbeBwDown {
            break;
        }
    }
    script.assert_state(State::ProbeBwRefill);
}

// Item 35.
#[test]
fn refill_drops_the_short_term_bounds_and_takes_one_round() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    script.round(Ack {
        rate: Some(Rate::from_mbps(60)),
        ..Ack::default()
    });
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    script.round(Ack {
        rate: Some(Rate::from_mbps(60)),
        ..Ack::default()
    });
    assert!(script.model().bw_shortterm.is_some());
    script.play_until_refill();
    assert_eq!(script.model().bw_shortterm, None);
    assert_eq!(script.model().inflight_shortterm, None);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
    script.round(Ack::default());
    script.assert_state(State::ProbeBwUp);
}

// Item 36.
#[test]
fn up_paces_at_five_quarters_and_allows_two_and_a_quarter_volumes() {
    let mut script = Script::up(Algorithm::Bbr3);
    assert_eq!(script.pacing_rate(), RATE.scale(125 * 99, 10_000));
    for _ in 0..2 {
        script.round(Ack {
            acked: 400,
            ..Ack::default()
        });
    }
    script.assert_state(State::ProbeBwUp);
    // 2.25 BDP and, by items 22 and 57, what was acknowledged beyond expectation and two packets.
    let extra = script.model().extra_acked;
    assert_eq!(script.window(), packets(900 + 2) + extra);
}

/// Items 37 and P7: the bound grows by 1, 2, 4, 8 packets in successive rounds, as long as it is what limits: the window is
/// asked about on the way out, not after the acknowledged bytes have left it.
pub(crate) fn the_long_term_bound_grows_by_doubling_steps(algorithm: Algorithm) {
    let mut script = Script::bounded_up(algorithm);
    for expected in [300, 302, 306, 314] {
        let window = script.window().as_u64() / packets(1).as_u64();
        let part = |acked| Ack {
            acked,
            is_window_full: true,
            ..bounded()
        };
        // Most events of a round make no step, and find the window at its bound: no plateau.
        script.ack(part(window - 30));
        script.ack(part(10));
        script.ack(part(10));
        script.round(part(10));
        script.assert_state(State::ProbeBwUp);
        assert_eq!(script.model().inflight_longterm, Some(packets(expected)));
    }
}

/// Item 37, P13: what is left of a step counts for the next one.
pub(crate) fn the_rest_of_a_step_is_kept(algorithm: Algorithm) {
    let mut script = Script::bounded_up(algorithm);
    // A packet per 299 acknowledged: 200 make none, 400 one, 600 two.
    for expected in [299, 300, 301] {
        script.wait(Duration::from_millis(10));
        script.ack(Ack {
            acked: 200,
            is_window_full: true,
            ..bounded()
        });
        assert_eq!(script.model().inflight_longterm, Some(packets(expected)));
    }
}

// Item 37.
#[test]
fn the_long_term_bound_rests_while_it_does_not_limit() {
    let mut script = Script::bounded_up(Algorithm::Bbr3);
    for _ in 0..3 {
        // Longer than the round trip, so that the window was not full on the way.
        script.wait(RTT * 2);
        script.ack(Ack {
            acked: 299,
            starts_round: true,
            ..bounded()
        });
    }
    assert_eq!(script.model().inflight_longterm, Some(packets(299)));
}

// Item 38.
#[test]
fn a_safe_acknowledgement_raises_the_bound_to_what_was_in_flight() {
    let mut script = Script::bounded_down(Algorithm::Bbr3);
    script.ack(Ack {
        tx_in_flight: 340,
        lost: 7,
        ..Ack::default()
    });
    assert_eq!(
        script.model().inflight_longterm,
        Some(packets(299)),
        "7 of 340 are too many"
    );
    script.ack(Ack {
        tx_in_flight: 340,
        lost: 6,
        ..Ack::default()
    });
    assert_eq!(script.model().inflight_longterm, Some(packets(340)));
}

// Item 39.
#[test]
fn a_plateau_that_the_bound_makes_does_not_end_the_probe() {
    let mut script = Script::bounded_up(Algorithm::Bbr3);
    for _ in 0..6 {
        script.round(Ack {
            is_window_full: true,
            ..bounded()
        });
        script.assert_state(State::ProbeBwUp);
    }
}

/// Items 36 and 40, A.5.
pub(crate) fn a_plateau_ends_the_probe(algorithm: Algorithm) {
    let mut script = Script::up(algorithm);
    for round in 0..3 {
        script.assert_state(State::ProbeBwUp);
        script.round(Ack {
            in_flight: 420,
            ..Ack::default()
        });
        assert_eq!(script.state() == State::ProbeBwDown, round == 2);
    }
    assert_eq!(script.triggers().last(), Some(&"bandwidth_plateau"));
}

// Item 40: growth keeps the probe going; A.15.
#[test]
fn growth_keeps_the_probe_going() {
    let mut script = Script::up(Algorithm::Bbr3);
    let mut rate = RATE;
    for _ in 0..10 {
        rate = rate.scale(5, 4);
        script.round(Ack {
            rate: Some(rate),
            ..Ack::default()
        });
        script.assert_state(State::ProbeBwUp);
    }
    assert_eq!(script.model().max_bw, rate);
}

// Item 40: precaution, and the probe right after it.
#[test]
fn after_too_high_a_probe_the_next_stops_at_the_bound_and_a_clean_one_follows_at_once() {
    let mut script = Script::bounded_up(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 298,
        ..bounded()
    });
    script.assert_state(State::ProbeBwUp);
    script.ack(Ack {
        in_flight: 299,
        ..bounded()
    });
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.triggers().last(), Some(&"precaution"));
    script.round(bounded());
    script.assert_state(State::ProbeBwRefill);
    assert_eq!(script.triggers().last(), Some(&"clean_probe"));
    script.round(bounded());
    script.assert_state(State::ProbeBwUp);
    // It may stay at the bound now.
    script.ack(Ack {
        in_flight: 299,
        ..bounded()
    });
    script.assert_state(State::ProbeBwUp);
}

// Item 40: losses among the packets of a precautious probe call the next one off.
#[test]
fn a_precautious_probe_with_losses_is_followed_by_a_wait() {
    let mut script = Script::bounded_up(Algorithm::Bbr3);
    let loss = script.lost_probe_packet(299, 20);
    script.ack(Ack {
        in_flight: 299,
        ..bounded()
    });
    assert_eq!(script.triggers().last(), Some(&"precaution"));
    script.lose(vec![loss]);
    script.round(bounded());
    assert_ne!(script.state(), State::ProbeBwRefill);
}

// Items 41, A.7 and A.22.
#[test]
fn a_flow_short_of_data_passes_refill_and_stays_in_up() {
    let mut script = Script::refill(Algorithm::Bbr3);
    let limited = || Ack {
        rate: Some(Rate::from_mbps(10)),
        is_app_limited: true,
        in_flight: 40,
        ..Ack::default()
    };
    script.round(limited());
    script.assert_state(State::ProbeBwUp);
    for _ in 0..100 {
        script.round(limited());
    }
    script.assert_state(State::ProbeBwUp);
    assert_eq!(script.model().max_bw, RATE);
}

/// Item 42, P31: a probe answers for its own packets only.
pub(crate) fn losses_from_before_the_probe_do_not_end_it(algorithm: Algorithm) {
    let mut script = Script::up(algorithm);
    let mut loss = script.lost_probe_packet(400, 20);
    loss.send_tag = 0;
    script.lose(vec![loss]);
    script.assert_state(State::ProbeBwUp);
    assert_eq!(script.model().inflight_longterm, None);
}

// Item 42.
#[test]
fn a_probe_reacts_once_and_at_once() {
    let mut script = Script::up(Algorithm::Bbr3);
    let first = script.lost_probe_packet(500, 11);
    let second = script.lost_probe_packet(450, 30);
    script.lose(vec![first]);
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.model().inflight_longterm, Some(packets(499)));
    script.lose(vec![second]);
    assert_eq!(script.model().inflight_longterm, Some(packets(499)));
}

// Item 42, A.21: no less than 0.7 of the target.
#[test]
fn the_bound_after_a_probe_is_at_least_seven_tenths_of_the_target() {
    let mut script = Script::up(Algorithm::Bbr3);
    let loss = script.lost_probe_packet(50, 5);
    script.lose(vec![loss]);
    assert_eq!(script.model().inflight_longterm, Some(packets(280)));
}

// Item 42, A.6: a packet that was short of data ends the probe and sets no bound.
#[test]
fn an_app_limited_loss_ends_the_probe_and_sets_no_bound() {
    let mut script = Script::up(Algorithm::Bbr3);
    let mut loss = script.lost_probe_packet(50, 5);
    loss.is_app_limited = true;
    script.lose(vec![loss]);
    script.assert_state(State::ProbeBwDown);
    assert_eq!(script.model().inflight_longterm, None);
}

// Items 42 and 43: two percent is not more than two percent.
#[test]
fn losses_at_the_threshold_do_not_end_the_probe() {
    let mut script = Script::up(Algorithm::Bbr3);
    let loss = script.lost_probe_packet(400, 8);
    script.lose(vec![loss]);
    script.assert_state(State::ProbeBwUp);
}

crate::on_the_real_controller!(
    down_ends_with_headroom_below_the_long_term_bound,
    a_small_path_is_probed_after_as_many_rounds_as_it_holds_packets,
    the_long_term_bound_grows_by_doubling_steps,
    the_rest_of_a_step_is_kept,
    a_plateau_ends_the_probe,
    losses_from_before_the_probe_do_not_end_it,
);
