//! Losses outside of probes, recovery, timeouts, losses that were none, and marks: checklist items 44 to 49 and 61.

use cc::{Algorithm, LostPacket, State};
use units::{ByteCount, Rate};

use crate::script::{Ack, RATE, Script, packets};

/// A round at 60 Mbit/s that delivers 240 packets.
fn slow() -> Ack {
    Ack {
        rate: Some(Rate::from_mbps(60)),
        delivered: 240,
        ..Ack::default()
    }
}

/// A loss in CRUISE and the round trip after it, in which 60 Mbit/s come through.
fn cut(script: &mut Script) -> LostPacket {
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    script.round(slow());
    loss
}

fn seven_tenths(bytes: ByteCount) -> ByteCount {
    bytes.scale(7, 10)
}

// Item 44: the round of a loss begins with the loss.
#[test]
fn the_bounds_are_cut_one_round_after_the_loss_and_not_before() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    script.round(slow());
    // The middle of a round: the loss begins one of its own.
    script.ack(slow());
    let loss = script.lost_packet();
    let marker = script.total_delivered;
    script.lose(vec![loss]);
    assert_eq!(script.model().bw_shortterm, None);
    script.ack(Ack {
        prior_delivered: Some(marker - 1),
        ..slow()
    });
    assert_eq!(script.model().bw_shortterm, None);
    script.ack(Ack {
        prior_delivered: Some(marker),
        ..slow()
    });
    assert!(script.model().bw_shortterm.is_some());
}

/// Item 45: once per round with a loss, to what was delivered or 0.7; and not in the rounds after it.
pub(crate) fn a_round_with_losses_cuts_the_bounds_once(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    script.round(slow());
    let window = script.window();
    cut(&mut script);
    assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(70)));
    let first = script.model().inflight_shortterm;
    assert_eq!(first, Some(seven_tenths(window).max(packets(240))));
    for _ in 0..5 {
        script.round(slow());
        assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(70)));
        assert_eq!(script.model().inflight_shortterm, first);
    }
    // The next loss ends at what was delivered: 60 is above 0.7 x 70.
    cut(&mut script);
    assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(60)));
}

// Item 45: several losses in one round are one reason.
#[test]
fn many_losses_in_a_round_cut_once() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    script.round(slow());
    for _ in 0..20 {
        let loss = script.lost_packet();
        script.lose(vec![loss]);
    }
    script.round(slow());
    assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(70)));
}

// Item 45: not while probing.
#[test]
fn losses_in_refill_and_up_cut_no_short_term_bound() {
    for mut script in [Script::refill(Algorithm::Bbr3), Script::up(Algorithm::Bbr3)] {
        let loss = script.lost_packet();
        script.lose(vec![loss]);
        script.round(Ack::default());
        assert_eq!(script.model().bw_shortterm, None);
    }
}

/// Item 46: recovery itself takes nothing from the window.
pub(crate) fn recovery_does_not_cut_the_window(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    let window = script.window();
    let loss = script.lost_packet();
    script.ack(Ack {
        acked: 0,
        in_flight: 100,
        losses: vec![loss],
        ..Ack::default()
    });
    assert_eq!(script.window(), window);
}

// Items 46 and 47: after a timeout the window is what is in flight and a packet, grows by what is acknowledged, and is
// back when a round without losses ends the recovery, within the bounds of the model.
#[test]
fn a_timeout_leaves_a_small_window_that_comes_back_with_the_recovery() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let before = (script.window(), script.model().max_bw);
    let loss = script.lost_packet();
    script.ack(Ack {
        acked: 0,
        in_flight: 20,
        losses: vec![loss],
        is_persistent: true,
        ..Ack::default()
    });
    assert_eq!(script.window(), packets(21));
    assert_eq!(script.model().inflight_shortterm, Some(before.0));
    script.ack(Ack::default());
    assert_eq!(script.window(), packets(31));
    assert_eq!(script.model().max_bw, before.1, "the model stays");
    // The round of the loss, and one without.
    script.round(Ack::default());
    assert!(script.window() < packets(60));
    script.round(Ack::default());
    let bound = script.model().inflight_shortterm.expect("a bound");
    assert!(script.window() >= bound.min(before.0));
}

#[test]
fn a_timeout_with_nothing_in_flight_leaves_four_packets() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let loss = script.lost_packet();
    script.ack(Ack {
        acked: 0,
        in_flight: 0,
        losses: vec![loss],
        is_persistent: true,
        ..Ack::default()
    });
    assert_eq!(script.window(), packets(4));
}

// Item 48, A.19: a timeout that was none.
#[test]
fn a_spurious_timeout_is_taken_back() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let window = script.window();
    let loss = script.lost_packet();
    script.ack(Ack {
        acked: 0,
        in_flight: 0,
        losses: vec![loss],
        is_persistent: true,
        ..Ack::default()
    });
    script.ack(Ack {
        late: vec![loss],
        ..Ack::default()
    });
    assert!(script.window() >= window);
}

// Item 48, A.18: Startup ended by losses that were none goes on.
#[test]
fn startup_goes_on_when_the_losses_that_ended_it_turn_up() {
    let mut script = Script::new();
    for mbps in [25, 50] {
        script.round(Ack {
            rate: Some(Rate::from_mbps(mbps)),
            ..Ack::default()
        });
    }
    let losses: Vec<LostPacket> = (0..6).map(|_| script.lost_packet()).collect();
    script.lose(losses.clone());
    script.round(Ack {
        lost: 9,
        in_flight: 800,
        ..Ack::default()
    });
    script.assert_state(State::Drain);
    script.ack(Ack {
        late: losses[..5].to_vec(),
        in_flight: 800,
        ..Ack::default()
    });
    script.assert_state(State::Drain);
    script.ack(Ack {
        late: losses[5..].to_vec(),
        ..Ack::default()
    });
    script.assert_state(State::Startup);
    assert_eq!(script.model().inflight_longterm, None);
    assert_eq!(script.triggers(), ["loss_too_high", "spurious_loss"]);
    // It is looking for growth again, from the beginning.
    for _ in 0..3 {
        script.assert_state(State::Startup);
        script.round(Ack {
            in_flight: 800,
            ..Ack::default()
        });
    }
    script.assert_state(State::Drain);
}

// Item 48: a probe ended by losses that were none begins again with a refill, and its bound is gone.
#[test]
fn a_probe_begins_again_when_the_losses_that_ended_it_turn_up() {
    let mut script = Script::up(Algorithm::Bbr3);
    let loss = script.lost_probe_packet(400, 20);
    script.lose(vec![loss]);
    script.assert_state(State::ProbeBwDown);
    script.ack(Ack {
        late: vec![loss],
        ..Ack::default()
    });
    script.assert_state(State::ProbeBwRefill);
    assert_eq!(script.model().inflight_longterm, None);
    assert_eq!(script.triggers().last(), Some(&"spurious_loss"));
}

/// Item 49: what is restored is from before the episode, not from its latest round.
pub(crate) fn the_state_to_go_back_to_is_saved_once_per_episode(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    script.round(slow());
    let window = script.window();
    let losses = vec![cut(&mut script), cut(&mut script), cut(&mut script)];
    assert!(script.model().bw_shortterm.is_some());
    script.ack(Ack {
        late: losses,
        ..Ack::default()
    });
    assert_eq!(script.model().bw_shortterm, None);
    assert_eq!(script.model().inflight_shortterm, None);
    assert!(script.window() >= window);
}

// Item 49: losses of an earlier episode are not this one's.
#[test]
fn a_late_packet_of_an_earlier_episode_takes_nothing_back() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    script.round(slow());
    let old = cut(&mut script);
    // Two rounds without losses end the episode.
    script.round(slow());
    script.round(slow());
    cut(&mut script);
    let bound = script.model().bw_shortterm;
    script.ack(Ack {
        late: vec![old],
        ..slow()
    });
    assert_eq!(script.model().bw_shortterm, bound);
}

// Item 61: a marked round is a round with losses, and nothing is taken back.
#[test]
fn marks_cut_the_bounds_like_losses_and_are_not_taken_back() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    script.round(slow());
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    script.ack(Ack {
        ce_count: 1,
        ..slow()
    });
    script.round(slow());
    assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(70)));
    script.ack(Ack {
        late: vec![loss],
        ..slow()
    });
    assert_eq!(script.model().bw_shortterm, Some(Rate::from_mbps(70)));
}

// Item 61.
#[test]
fn marks_above_two_percent_end_a_probe_and_below_do_not() {
    for (marked, state) in [(8, State::ProbeBwUp), (9, State::ProbeBwDown)] {
        let mut script = Script::up(Algorithm::Bbr3);
        let send_tag = script.controller.send_tag();
        script.ack(Ack {
            ce_count: marked,
            lost: marked,
            send_tag,
            ..Ack::default()
        });
        script.assert_state(state);
    }
}

// Item 61: six events with marks and more than 2 % of them end Startup.
#[test]
fn marks_end_startup_like_ranges_of_losses() {
    let mut script = Script::new();
    script.round(Ack {
        rate: Some(Rate::from_mbps(25)),
        ..Ack::default()
    });
    let loss = script.lost_packet();
    script.lose(vec![loss]);
    for _ in 0..5 {
        script.ack(Ack {
            ce_count: 2,
            rate: Some(RATE),
            ..Ack::default()
        });
    }
    script.round(Ack {
        lost: 11,
        in_flight: 800,
        ..Ack::default()
    });
    script.assert_state(State::Drain);
}

// Item 61: also when no packet is lost at all, as on a path that marks.
#[test]
fn marks_alone_end_startup() {
    let mut script = Script::new();
    script.round(Ack {
        rate: Some(Rate::from_mbps(25)),
        ..Ack::default()
    });
    for _ in 0..6 {
        script.ack(Ack {
            ce_count: 2,
            rate: Some(RATE),
            ..Ack::default()
        });
    }
    script.round(Ack {
        lost: 12,
        in_flight: 800,
        ..Ack::default()
    });
    script.assert_state(State::Drain);
}

crate::on_the_real_controller!(
    a_round_with_losses_cuts_the_bounds_once,
    recovery_does_not_cut_the_window,
    the_state_to_go_back_to_is_saved_once_per_episode,
);
