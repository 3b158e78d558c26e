//! ProbeRTT and idle flows: checklist items 51 to 55.

use std::time::Duration;

use cc::{Algorithm, State};
use units::Rate;

use crate::script::{Ack, PACKET, RATE, RTT, Script, packets};

/// An event whose RTT is above the smallest one.
fn high() -> Ack {
    Ack {
        rtt: RTT + Duration::from_millis(5),
        ..Ack::default()
    }
}

/// A controller in ProbeRTT, entered from CRUISE or REFILL or wherever the cycle was, with 400 packets in flight.
fn probing(algorithm: Algorithm) -> Script {
    let mut script = Script::cruise(algorithm);
    for _ in 0..200 {
        if script.state() == State::ProbeRtt {
            break;
        }
        script.round(high());
    }
    script.assert_state(State::ProbeRtt);
    script
}

// Item 51, A.10.
#[test]
fn five_seconds_without_an_rtt_as_low_begin_a_probe() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    let start = script.now;
    while script.state() != State::ProbeRtt {
        script.wait(Duration::from_millis(10));
        script.ack(high());
    }
    let waited = script.now.saturating_since(start);
    assert!(waited > Duration::from_millis(4_950), "{waited:?}");
    assert!(waited < Duration::from_millis(5_050), "{waited:?}");
}

// Item 51: on a perfectly steady path there is nothing to look for.
#[test]
fn a_steady_path_is_never_probed() {
    let mut script = Script::cruise(Algorithm::Bbr3);
    for _ in 0..2_000 {
        script.round(Ack {
            in_flight: 200,
            ..Ack::default()
        });
        assert_ne!(script.state(), State::ProbeRtt);
    }
}

// Item 51, A.20: from Startup, and back to it.
#[test]
fn startup_is_interrupted_and_resumed() {
    let mut script = Script::new();
    let slow = || Ack {
        rate: Some(Rate::from_mbps(10)),
        is_app_limited: true,
        in_flight: 3,
        ..high()
    };
    script.ack(Ack {
        is_app_limited: true,
        ..Ack::default()
    });
    while script.state() != State::ProbeRtt {
        script.round(slow());
    }
    assert_eq!(script.triggers(), ["min_rtt_expired"]);
    while script.state() == State::ProbeRtt {
        script.round(slow());
    }
    script.assert_state(State::Startup);
}

// Item 52.
#[test]
fn half_the_volume_is_allowed_at_the_rate_of_the_path() {
    let mut script = probing(Algorithm::Bbr3);
    script.ack(high());
    assert_eq!(script.window(), packets(200));
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
    assert!(script.controller.is_self_limited());
    assert!(!Script::cruise(Algorithm::Bbr3).controller.is_self_limited());
}

// Items 52 and 58: never below four packets.
#[test]
fn on_a_tiny_path_four_packets_are_allowed() {
    let mut script = Script::drain_at(Algorithm::Bbr3, Rate::from_kbps(250));
    for _ in 0..400 {
        if script.state() == State::ProbeRtt {
            break;
        }
        script.round(Ack {
            rate: Some(Rate::from_kbps(250)),
            acked: 1,
            in_flight: 4,
            tx_in_flight: 4,
            ..high()
        });
    }
    script.assert_state(State::ProbeRtt);
    assert_eq!(script.window(), packets(4));
}

// Item 53.
#[test]
fn the_time_runs_from_when_little_is_in_flight_for_200_ms_and_a_round() {
    let mut script = probing(Algorithm::Bbr3);
    let window = script.window();
    for _ in 0..20 {
        script.round(Ack {
            in_flight: 201,
            ..high()
        });
    }
    script.assert_state(State::ProbeRtt);
    script.ack(Ack {
        in_flight: 200,
        ..high()
    });
    script.wait(Duration::from_millis(201));
    script.ack(Ack {
        in_flight: 200,
        ..high()
    });
    script.assert_state(State::ProbeRtt);
    script.ack(Ack {
        in_flight: 200,
        starts_round: true,
        ..high()
    });
    // The window is back, and what is in flight is low already: no DOWN.
    script.assert_state(State::ProbeBwCruise);
    let last: Vec<State> = script
        .transitions
        .iter()
        .rev()
        .take(2)
        .map(|t| t.to)
        .collect();
    assert_eq!(last, [State::ProbeBwCruise, State::ProbeBwDown]);
    assert!(script.window() > window);
    assert!(script.window() >= packets(800));
    assert_eq!(script.model().bw_shortterm, None);
}

#[test]
fn a_round_alone_does_not_end_the_probe() {
    let mut script = probing(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 200,
        ..high()
    });
    for _ in 0..4 {
        script.round(Ack {
            in_flight: 200,
            ..high()
        });
        script.assert_state(State::ProbeRtt);
    }
    script.round(Ack {
        in_flight: 200,
        ..high()
    });
    script.wait(Duration::from_millis(1));
    script.round(Ack {
        in_flight: 200,
        ..high()
    });
    script.assert_state(State::ProbeBwCruise);
}

// Item 53: the next one is due five seconds later.
#[test]
fn the_next_probe_is_due_five_seconds_after_the_end_of_this_one() {
    let mut script = probing(Algorithm::Bbr3);
    // The lowest sample is the one it began with, a second before its end.
    let later = |in_flight| Ack {
        rtt: RTT * 2,
        in_flight,
        ..Ack::default()
    };
    for _ in 0..20 {
        script.round(later(300));
    }
    while script.state() == State::ProbeRtt {
        script.round(later(190));
    }
    let end = script.now;
    while script.state() != State::ProbeRtt {
        script.wait(Duration::from_millis(10));
        script.ack(Ack {
            rtt: RTT * 2,
            in_flight: 190,
            ..Ack::default()
        });
    }
    let gap = script.now.saturating_since(end);
    assert!(
        (Duration::from_secs(5)..Duration::from_millis(5_600)).contains(&gap),
        "{gap:?}"
    );
}

/// Everything is acknowledged, and the application has nothing more.
fn go_idle(script: &mut Script) {
    script.controller.on_app_limited(script.now);
    script.ack(Ack {
        in_flight: 0,
        ..Ack::default()
    });
}

// Item 54, S37: gain 1, no probe, no more than a quantum at once.
#[test]
fn a_restart_from_idle_paces_at_the_rate_of_the_path_and_skips_the_probe() {
    let mut script = Script::down(Algorithm::Bbr3);
    assert_eq!(script.pacing_rate(), RATE.scale(9 * 99, 1_000));
    go_idle(&mut script);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
    script.wait(Duration::from_secs(6));
    script.send(10, 10, true);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
    let quantum = script.controller.send_quantum(script.pacing_rate());
    assert_eq!(
        quantum,
        RATE.scale(99, 100).bytes_in(Duration::from_millis(1))
    );
    script.wait(RTT);
    script.ack(high());
    assert_ne!(script.state(), State::ProbeRtt);
    script.wait(RTT);
    script.ack(high());
    assert_ne!(
        script.state(),
        State::ProbeRtt,
        "the idle time looked instead"
    );
}

// Item 54: the same if the lack of data shows only after the last acknowledgement.
#[test]
fn a_restart_from_idle_paces_at_the_rate_of_the_path_however_the_silence_began() {
    let mut script = Script::down(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 500,
        ..Ack::default()
    });
    script.ack(Ack {
        acked: 0,
        in_flight: 0,
        ..Ack::default()
    });
    assert_eq!(script.pacing_rate(), RATE.scale(9 * 99, 1_000));
    script.controller.on_app_limited(script.now);
    script.wait(Duration::from_secs(1));
    script.send(10, 10, true);
    assert_eq!(script.pacing_rate(), RATE.scale(99, 100));
}

// Item 54, G20: a flow that goes idle within ProbeRTT leaves it with its next packet.
#[test]
fn a_restart_from_idle_ends_a_probe_that_is_over() {
    let mut script = probing(Algorithm::Bbr3);
    script.ack(Ack {
        in_flight: 100,
        ..high()
    });
    go_idle(&mut script);
    script.assert_state(State::ProbeRtt);
    script.wait(Duration::from_secs(5));
    script.send(1, 1, true);
    script.assert_state(State::ProbeBwCruise);
    assert!(script.window() >= packets(800));
}

// Item 54: silence for want of acknowledgements is no idleness.
#[test]
fn a_flow_that_has_data_does_not_restart_from_idle() {
    let mut script = Script::down(Algorithm::Bbr3);
    let rate = script.pacing_rate();
    script.ack(Ack {
        acked: 0,
        in_flight: 0,
        losses: vec![],
        ..Ack::default()
    });
    script.wait(Duration::from_secs(6));
    script.send(1, 1, true);
    assert_eq!(script.pacing_rate(), rate);
    script.wait(RTT);
    script.ack(high());
    script.assert_state(State::ProbeRtt);
}

/// Item 55: after twelve seconds of silence the first sample may be inflated.
pub(crate) fn idle_time_does_not_replace_the_minimum_rtt(algorithm: Algorithm) {
    let mut script = Script::cruise(algorithm);
    go_idle(&mut script);
    script.wait(Duration::from_secs(12));
    script.send(10, 10, true);
    script.wait(RTT * 3);
    script.ack(Ack {
        rtt: RTT * 3,
        in_flight: 100,
        ..Ack::default()
    });
    assert_eq!(script.model().min_rtt, Some(RTT));
    assert!(script.window() >= PACKET * 800);
}

crate::on_the_real_controller!(idle_time_does_not_replace_the_minimum_rtt);
