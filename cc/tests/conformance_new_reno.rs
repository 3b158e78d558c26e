//! NewReno, and the frame of all loss-based controllers, against RFC 9002 section 7.

use std::time::Duration;

use cc::loss_based::{LARGEST_WINDOW, initial_window};
use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, Controller, Cubic, NewReno, State, Transition, Trigger};
use units::{ByteCount, Rate};

const DATAGRAM: ByteCount = ByteCount::new(1_200);
const RTT: Duration = Duration::from_millis(100);
const INSTANT: Duration = Duration::from_nanos(1);

/// A flow in congestion avoidance at `window` datagrams, with nothing in flight; what is sent next counts.
fn avoiding_congestion_at(window: u64) -> TestPath {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.grow_to(window * 2, RTT);
    path.send(1);
    path.wait(RTT);
    path.lose(1);
    path.wait(INSTANT);
    path.send(1);
    path.wait(RTT);
    path.ack(1);
    assert_eq!(path.state(), State::CongestionAvoidance);
    assert_eq!(path.window(), DATAGRAM * window);
    path
}

/// Sends and acknowledges one packet of this size. A flight beside it fills the window, or the window would not be
/// allowed to grow, and is never acknowledged in these stories.
fn ack_beside_a_full_window(path: &mut TestPath, size: ByteCount) {
    path.fill_window();
    path.send_bytes(size);
    path.wait(RTT);
    path.ack_newest(1);
}

// Section 7.2.
#[test]
fn the_initial_window_is_ten_datagrams_within_bounds() {
    for (datagram, window) in [
        (1_200, 12_000),
        (1_350, 13_500),
        (1_472, 14_720),
        (2_000, 14_720),
        (8_000, 16_000),
    ] {
        let datagram = ByteCount::new(datagram);
        assert_eq!(initial_window(datagram), ByteCount::new(window));
        for controller in [
            &NewReno::new(datagram) as &dyn Controller,
            &Cubic::new(datagram),
        ] {
            assert_eq!(controller.window(), ByteCount::new(window));
            assert_eq!(controller.minimum_window(), datagram * 2);
            assert_eq!(controller.state(), State::SlowStart);
            assert_eq!(controller.ssthresh(), None);
        }
    }
}

// Section 7.2: the floor is two datagrams.
#[test]
fn thirty_losses_in_a_row_end_at_the_floor() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        for _ in 0..30 {
            path.wait(INSTANT);
            path.send(1);
            path.wait(RTT);
            path.lose(1);
            assert!(path.window() >= DATAGRAM * 2);
        }
        assert_eq!(path.window(), DATAGRAM * 2);
    }
}

// Section 7.3.1.
#[test]
fn slow_start_grows_by_the_bytes_acknowledged() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.send(10);
    path.wait(RTT);
    path.ack(1);
    assert_eq!(path.window(), ByteCount::new(13_200));
    path.ack(2);
    assert_eq!(path.window(), ByteCount::new(15_600));
}

// Section 7.3.1: from 10 datagrams to 5,120 in nine round trips.
#[test]
fn slow_start_doubles_each_round_trip() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        for round in 1..=9 {
            path.batch_round(RTT);
            assert_eq!(path.window(), DATAGRAM * (10 << round));
        }
    }
}

// Sections 7.3.1 and 7.3.3: slow start stops at the threshold; what is left of the acknowledgement counts for
// congestion avoidance.
#[test]
fn slow_start_stops_at_the_threshold_exactly() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(RTT);
        path.feedback(Feedback {
            lost: 10,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        let ssthresh = path.controller().ssthresh().expect("a loss has set it");
        // 6,000 or 8,400 bytes, from 2,400: up to 50 bytes below, and then 100 at once.
        path.wait(INSTANT);
        while path.window() < ssthresh - ByteCount::new(50) {
            let room = ssthresh - ByteCount::new(50) - path.window();
            let size = room.min(path.window());
            ack_beside_a_full_window(&mut path, size);
        }
        assert_eq!(path.window(), ssthresh - ByteCount::new(50));
        assert_eq!(path.state(), State::SlowStart);
        ack_beside_a_full_window(&mut path, ByteCount::new(100));
        assert_eq!(path.state(), State::CongestionAvoidance);
        assert!(path.window() >= ssthresh && path.window() < ssthresh + ByteCount::new(50));
        let last = path.transitions().last().map(|t| t.trigger);
        assert_eq!(last, Some(Trigger::SsthreshReached));
    }
}

// The excess of that acknowledgement is NewReno's credit: 50 bytes less are needed for the first step.
#[test]
fn the_excess_over_the_threshold_counts_for_congestion_avoidance() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.send(10);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 10,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    assert_eq!(path.controller().ssthresh(), Some(ByteCount::new(6_000)));
    // 3,600 bytes to the threshold and 50 more; 5,949 are one too few for a window, the next one completes it.
    for (bytes, window) in [(2_400, 4_800), (1_250, 6_000), (5_949, 6_000), (1, 7_200)] {
        ack_beside_a_full_window(&mut path, ByteCount::new(bytes));
        assert_eq!(path.window(), ByteCount::new(window));
    }
}

// Section 7.3.3.
#[test]
fn congestion_avoidance_adds_a_datagram_per_window_acknowledged() {
    let mut path = avoiding_congestion_at(20);
    path.send(20);
    path.wait(RTT);
    path.ack(19);
    assert_eq!(path.window(), DATAGRAM * 20);
    path.ack(1);
    assert_eq!(path.window(), DATAGRAM * 21);
    for grown in [22, 23, 24] {
        path.batch_round(RTT);
        assert_eq!(path.window(), DATAGRAM * grown);
    }
}

// Section 7.3.3, in one piece and in bytes: an acknowledgement may be worth more than a window.
#[test]
fn the_remainder_of_a_window_is_kept() {
    let mut path = avoiding_congestion_at(5);
    for (bytes, window) in [
        (ByteCount::new(6_000), 6),
        (ByteCount::new(1), 6),
        (ByteCount::new(7_198), 6),
        (ByteCount::new(1), 7),
    ] {
        ack_beside_a_full_window(&mut path, bytes);
        assert_eq!(path.window(), DATAGRAM * window, "after {bytes}");
    }
}

// Section 7.3.2: half, once; until a packet sent during recovery is acknowledged nothing else happens.
#[test]
fn the_window_is_halved_once_per_recovery_period() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.send(10);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 1,
        acked: 3,
        ..Feedback::default()
    });
    assert_eq!(path.window(), ByteCount::new(6_000));
    assert_eq!(path.controller().ssthresh(), Some(ByteCount::new(6_000)));
    // A packet sent at the very instant of the cut is old too (sections B.5 and B.6).
    path.send(1);
    path.wait(INSTANT);
    path.send(1);
    path.wait(RTT);
    path.lose(2);
    path.ack(4);
    assert_eq!(path.window(), ByteCount::new(6_000));
    path.ack(1);
    assert_eq!(path.state(), State::Recovery, "the packet of that instant");
    path.ack(1);
    assert_eq!(path.state(), State::CongestionAvoidance);
    assert_eq!(
        path.transitions(),
        [
            Transition {
                from: State::SlowStart,
                to: State::Recovery,
                trigger: Trigger::PacketLost
            },
            Transition {
                from: State::Recovery,
                to: State::CongestionAvoidance,
                trigger: Trigger::RecoveryExited
            },
        ]
    );
}

// Section 7.3.2: a loss of a packet sent after the cut is a new period, also if the same datagram ends the old one.
#[test]
fn a_loss_after_the_cut_is_a_new_period() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.send(10);
    path.wait(RTT);
    path.lose(1);
    path.wait(INSTANT);
    path.ack(9);
    path.send(5);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 1,
        acked: 4,
        ..Feedback::default()
    });
    assert_eq!(path.window(), ByteCount::new(3_000));
    let triggers: Vec<&str> = path
        .transitions()
        .iter()
        .map(|t| t.trigger.as_str())
        .collect();
    assert_eq!(triggers, ["packet_lost", "recovery_exited", "packet_lost"]);
}

// Section 7.3.2: acknowledgements of packets from before the cut never grow the window, however late they are.
#[test]
fn old_packets_do_not_grow_the_window_after_recovery_either() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.send(30);
        path.wait(RTT);
        path.lose(1);
        let cut = path.window();
        path.wait(INSTANT);
        path.send(1);
        path.wait(RTT);
        path.ack_newest(1);
        assert_eq!(path.state(), State::CongestionAvoidance);
        let after = path.window();
        assert!(after < cut + DATAGRAM);
        path.ack(28);
        path.lose(1);
        assert_eq!(path.window(), after);
        assert_eq!(path.state(), State::CongestionAvoidance);
    }
}

// Section 7.1: a mark is answered like a loss, and only once per period.
#[test]
fn a_congestion_mark_cuts_like_a_loss() {
    for (algorithm, window) in [(Algorithm::NEW_RENO, 6_000), (Algorithm::CUBIC, 8_400)] {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(RTT);
        let marked = Feedback {
            acked: 2,
            ce_count: 1,
            ..Feedback::default()
        };
        path.feedback(marked);
        assert_eq!(path.window(), ByteCount::new(window));
        assert_eq!(path.transitions()[0].trigger, Trigger::EcnCe);
        path.wait(INSTANT);
        path.feedback(marked);
        path.lose(1);
        assert_eq!(path.window(), ByteCount::new(window));
    }
}

// Sections 7.6.2 and B.8.
#[test]
fn persistent_congestion_drops_the_window_to_the_floor() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.grow_to(40, RTT);
    path.send(40);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 40,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    assert_eq!(path.window(), DATAGRAM * 2);
    assert_eq!(
        path.controller().ssthresh(),
        Some(DATAGRAM * 20),
        "cut once, not twice"
    );
    assert_eq!(path.state(), State::SlowStart);
    // The boundary is gone: what leaves at this very instant counts.
    path.send(2);
    path.wait(RTT);
    path.ack(2);
    assert_eq!(path.window(), DATAGRAM * 4);
}

// Section 7.6.2: it has its own say while a recovery period lasts.
#[test]
fn persistent_congestion_counts_within_recovery() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(RTT);
        path.lose(1);
        let ssthresh = path.controller().ssthresh();
        path.feedback(Feedback {
            lost: 5,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        assert_eq!(path.window(), DATAGRAM * 2);
        assert_eq!(
            path.controller().ssthresh(),
            ssthresh,
            "all of them were old"
        );
        assert_eq!(path.state(), State::SlowStart);
        let last = path.transitions().last().map(|t| t.trigger.as_str());
        assert_eq!(last, Some("persistent_congestion"));
        path.ack(1);
        assert_eq!(path.window(), DATAGRAM * 3, "no packet is old any more");
    }
}

// Section 7.6.2 at the floor: the threshold is the floor, so there is nothing to start slowly for.
#[test]
fn persistent_congestion_at_the_floor_goes_to_congestion_avoidance() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        for _ in 0..8 {
            path.wait(INSTANT);
            path.send(1);
            path.wait(RTT);
            path.lose(1);
        }
        path.send(2);
        path.wait(RTT);
        path.feedback(Feedback {
            lost: 2,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        assert_eq!(path.state(), State::CongestionAvoidance);
        path.send(2);
        path.wait(RTT);
        path.ack(2);
        assert!(path.window() > DATAGRAM * 2);
    }
}

// Section 7.8.
#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        for is_slow_start in [true, false] {
            let mut path = TestPath::new(algorithm);
            if !is_slow_start {
                path.send(10);
                path.wait(RTT);
                path.lose(1);
                path.ack(9);
                path.wait(INSTANT);
            }
            let before = path.window();
            path.set_app_limited(true);
            for _ in 0..100 {
                path.send(3);
                path.wait(RTT);
                path.ack(3);
            }
            assert_eq!(
                path.window(),
                before,
                "{algorithm}, slow start: {is_slow_start}"
            );
            path.set_app_limited(false);
            path.batch_round(RTT);
            path.batch_round(RTT);
            assert!(path.window() > before);
        }
    }
}

// Section 7.8: the last packets of a flight that fills the window, and a first flight after a pause, are marked as
// lacking data; the window was tested all the same.
#[test]
fn a_flight_that_fills_the_window_counts_although_it_is_marked_app_limited() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.set_app_limited(true);
    path.send(10);
    path.wait(RTT);
    path.ack(5);
    path.ack(5);
    assert_eq!(path.window(), DATAGRAM * 20);
    path.send(18);
    path.wait(RTT);
    path.ack(18);
    assert_eq!(path.window(), DATAGRAM * 20, "there was room for two more");
}

// Section 7.8: a sender held back by its pacer does not lack data.
#[test]
fn a_paced_flight_counts_although_it_never_fills_the_window() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    for _ in 0..10 {
        path.send(1);
        path.wait(RTT);
        path.ack(1);
    }
    assert_eq!(path.window(), DATAGRAM * 20);
}

// The bound that keeps the arithmetic within 64 bits; no path is that large.
#[test]
fn no_window_grows_beyond_the_largest() {
    let piece = ByteCount::new(1 << 23);
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        for _ in 0..40 {
            path.send_bytes(path.window());
            path.wait(RTT);
            path.ack(1);
        }
        assert_eq!(path.window(), LARGEST_WINDOW);
        path.send_bytes(piece);
        path.wait(RTT);
        path.lose(1);
        path.wait(INSTANT);
        // Full windows from here on, of which a piece is acknowledged at a time.
        path.send_bytes(LARGEST_WINDOW);
        path.send_bytes(piece);
        path.wait(Duration::from_secs(1_000_000));
        path.ack_newest(1);
        // CUBIC is far beyond its plateau now and grows by half a byte per byte.
        for _ in 0..100_000 {
            path.send_bytes(piece);
            path.wait(Duration::from_secs(1));
            path.ack_newest(1);
            assert!(path.window() <= LARGEST_WINDOW);
        }
        let is_at_bound = path.window() == LARGEST_WINDOW;
        assert_eq!(is_at_bound, algorithm == Algorithm::CUBIC);
    }
}

// Section 7.5: a probe timeout is no congestion.
#[test]
fn a_probe_timeout_leaves_the_window_alone() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        let now = path.now();
        for _ in 0..20 {
            path.controller_mut().on_pto(now);
        }
        assert_eq!(path.window(), DATAGRAM * 10);
        assert_eq!(path.state(), State::SlowStart);
    }
}

// Section 7.7.
#[test]
fn the_pacing_rate_is_a_multiple_of_the_window_per_round_trip() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    assert!(path.pacing_rate().is_infinite(), "no RTT sample yet");
    path.batch_round(RTT);
    // 20 datagrams of 9,600 bits in 0.1 s, twice in slow start.
    assert_eq!(path.pacing_rate(), Rate::from_bps(2 * 1_920_000));
    path.send(1);
    path.wait(RTT);
    path.lose(1);
    assert_eq!(
        path.pacing_rate(),
        Rate::from_bps(1_200_000),
        "1.25 of half the window"
    );
}

// Section 7.2 and RFC 8899 section 3.
#[test]
fn a_new_datagram_size_changes_the_window_only_before_the_first_acknowledgement() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.set_datagram_size(ByteCount::new(1_452));
        assert_eq!(path.window(), ByteCount::new(14_520));
        path.set_datagram_size(DATAGRAM);
        path.send(1);
        path.wait(RTT);
        path.ack(1);
        let before = path.window();
        path.set_datagram_size(ByteCount::new(1_452));
        assert_eq!(path.window(), before);
        path.set_datagram_size(ByteCount::new(9_000));
        assert_eq!(
            path.window(),
            ByteCount::new(18_000),
            "only the floor lifts it"
        );
        path.set_datagram_size(DATAGRAM);
        assert_eq!(path.window(), ByteCount::new(18_000));
    }
}

// Section 7.2: a window that was cut is no initial window any more, even if nothing was acknowledged yet.
#[test]
fn a_new_datagram_size_does_not_undo_a_cut() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(RTT);
        path.lose(1);
        let cut = path.window();
        path.set_datagram_size(ByteCount::new(1_452));
        assert_eq!(path.window(), cut);
    }
}

// The minimum-window trap, for the baseline that never had it.
#[test]
fn newreno_leaves_the_floor() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    for _ in 0..6 {
        path.wait(INSTANT);
        path.send(1);
        path.wait(RTT);
        path.lose(1);
    }
    assert_eq!(path.window(), DATAGRAM * 2);
    for _ in 0..10 {
        path.batch_round(RTT);
    }
    // The first flight leaves at the instant of the last cut and counts as old; nine count.
    assert_eq!(path.window(), DATAGRAM * 11);
}
