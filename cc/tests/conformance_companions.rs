//! What goes along with the loss-based controllers: undo of spurious losses (RFC 9438 section 4.9), proportional rate
//! reduction (RFC 9937), and how HyStart++ (RFC 9406) meets losses, pauses and pacing.

use std::time::Duration;

use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, Cubic, LossBasedOptions, State, Trigger};
use units::{ByteCount, Rate};

const PACKET: ByteCount = ByteCount::new(1_200);
const RTT: Duration = Duration::from_millis(100);
const INSTANT: Duration = Duration::from_nanos(1);

const BOTH: [Algorithm; 2] = [Algorithm::NEW_RENO, Algorithm::CUBIC];

fn with_prr(algorithm: Algorithm) -> Algorithm {
    let options = LossBasedOptions {
        prr: true,
        ..LossBasedOptions::DEFAULT
    };
    match algorithm {
        Algorithm::NewReno(_) => Algorithm::NewReno(options),
        _ => Algorithm::Cubic(options),
    }
}

fn lose(lost: usize, acked: usize) -> Feedback {
    Feedback {
        lost,
        acked,
        ..Feedback::default()
    }
}

fn triggers(path: &TestPath) -> Vec<&'static str> {
    path.transitions()
        .iter()
        .map(|transition| transition.trigger.as_str())
        .collect()
}

/// A flow cut at 100 packets and grown for five round trips, twice the same.
fn avoiding_congestion(algorithm: Algorithm) -> TestPath {
    let mut path = TestPath::new(algorithm);
    path.grow_to(100, RTT);
    path.cut(RTT);
    path.batch_rounds(RTT, 5);
    path
}

// RFC 9438 section 4.9.

#[test]
fn a_cut_is_taken_back_when_all_its_losses_turn_up() {
    for algorithm in BOTH {
        let mut path = avoiding_congestion(algorithm);
        let (window, ssthresh) = (path.window(), path.controller().ssthresh());
        let count = path.fill_window();
        path.wait(RTT);
        path.feedback(lose(3, 10));
        path.feedback(lose(1, 10));
        let cut = path.window();
        assert!(cut < window);
        // One more of each datagram; only the last one is the proof. What is missing from before (the packet that the
        // first cut lost) belongs to that cut and is not waited for.
        path.wait(INSTANT);
        path.feedback(Feedback {
            late: 4,
            ..Feedback::default()
        });
        assert_eq!(path.window(), cut, "{algorithm}: three of four");
        path.feedback(Feedback {
            late: 1,
            ..Feedback::default()
        });
        assert_eq!(path.window(), window, "{algorithm}");
        assert_eq!(path.controller().ssthresh(), ssthresh);
        assert_eq!(path.state(), State::CongestionAvoidance);
        assert_eq!(triggers(&path).last(), Some(&"spurious_loss"));
        // The rest of the flight is no old news any more: a loss among it is answered.
        path.ack(count - 24 - 1);
        let before = path.window();
        assert!(before >= window);
        path.lose(1);
        assert!(path.window() < before, "{algorithm}");
    }
}

// W_max, K, the epoch and W_est come back too: the flow goes on as one that was never cut.
#[test]
fn after_an_undone_cut_the_curve_goes_on_where_it_was() {
    let mut path = avoiding_congestion(Algorithm::CUBIC);
    let mut twin = avoiding_congestion(Algorithm::CUBIC);
    let count = path.fill_window();
    path.wait(RTT);
    path.lose(1);
    assert_eq!(path.state(), State::Recovery);
    // The packet that the first cut lost is the oldest one missing.
    path.ack_late(2);
    path.ack(count - 1);
    twin.batch_round(RTT);
    let apart = |a: ByteCount, b: ByteCount| a.as_u64().abs_diff(b.as_u64());
    // The late packet itself does not count for growth; all others do.
    assert!(apart(path.window(), twin.window()) <= 40);
    let (with, without) = (path.batch_rounds(RTT, 60), twin.batch_rounds(RTT, 60));
    let most = with.iter().zip(&without).map(|(a, b)| apart(*a, *b)).max();
    assert!(most <= Some(120), "{most:?} B");
}

#[test]
fn an_undone_cut_of_slow_start_goes_on_with_slow_start() {
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.grow_to(40, RTT);
        path.fill_window();
        path.wait(RTT);
        path.lose(2);
        path.wait(INSTANT);
        path.ack_late(2);
        assert_eq!(path.window(), PACKET * 40);
        assert_eq!(path.controller().ssthresh(), None);
        assert_eq!(path.state(), State::SlowStart);
        assert_eq!(triggers(&path), ["packet_lost", "spurious_loss"]);
        path.ack(38);
        assert_eq!(path.window(), PACKET * 78);
    }
}

// "Once", "only if the window is below", "never persistent congestion", and marks are no losses.
#[test]
fn a_cut_stays_where_there_was_congestion() {
    for algorithm in BOTH {
        let cut_path = || {
            let mut path = TestPath::new(algorithm);
            path.grow_to(40, RTT);
            path.fill_window();
            path.wait(RTT);
            path
        };
        // One of two stays lost.
        let mut path = cut_path();
        path.lose(2);
        let cut = path.window();
        path.ack_late(1);
        assert_eq!(path.window(), cut);

        // A mark within the period.
        let mut path = cut_path();
        path.lose(1);
        path.feedback(Feedback {
            acked: 1,
            ce_count: 1,
            ..Feedback::default()
        });
        path.ack_late(1);
        assert_eq!(path.window(), cut);

        // A mark in place of the loss.
        let mut path = cut_path();
        path.feedback(Feedback {
            acked: 1,
            ce_count: 1,
            ..Feedback::default()
        });
        path.lose(1);
        path.ack_late(1);
        assert_eq!(path.window(), cut);

        // Persistent congestion, with the loss or after it.
        for is_at_once in [true, false] {
            let mut path = cut_path();
            path.feedback(Feedback {
                lost: 20,
                is_persistent_congestion: is_at_once,
                ..Feedback::default()
            });
            path.feedback(Feedback {
                lost: 20,
                is_persistent_congestion: true,
                ..Feedback::default()
            });
            path.ack_late(40);
            assert_eq!(path.window(), PACKET * 2);
        }

        // The window is back by itself already.
        let mut path = cut_path();
        path.feedback(lose(1, 39));
        path.wait(INSTANT);
        while path.window() < PACKET * 41 {
            path.batch_round(RTT);
        }
        let window = path.window();
        let state = path.state();
        path.ack_late(1);
        assert_eq!((path.window(), path.state()), (window, state));

        // Once: the same cut is not taken back a second time by packets of an earlier one.
        let mut path = cut_path();
        path.lose(1);
        path.ack_late(1);
        path.wait(INSTANT);
        path.lose(1);
        path.lose(1);
        path.ack_late(1);
        assert!(path.window() < PACKET * 40);
        path.ack_late(1);
        assert_eq!(path.window(), PACKET * 40);
    }
}

#[test]
fn without_undo_a_cut_is_final() {
    let options = LossBasedOptions {
        undo: false,
        ..LossBasedOptions::DEFAULT
    };
    let mut path = TestPath::new(Algorithm::Cubic(options));
    path.grow_to(40, RTT);
    path.fill_window();
    path.wait(RTT);
    path.lose(1);
    path.ack_late(1);
    assert_eq!(path.window(), PACKET * 28);
}

// A loss that is news in the very event that proves the old ones spurious cuts what was given back.
#[test]
fn a_new_loss_beside_the_proof_cuts_the_window_given_back() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(100, RTT);
    path.send(50);
    path.wait(RTT);
    path.lose(1);
    path.ack(48);
    path.wait(INSTANT);
    path.send(10);
    path.wait(RTT);
    // The 50th packet is acknowledged; of the ten new ones the first is lost.
    path.ack(1);
    assert_eq!(path.window(), PACKET * 70);
    path.feedback(Feedback {
        lost: 1,
        late: 1,
        ..Feedback::default()
    });
    assert_eq!(
        path.window(),
        PACKET * 70,
        "100 given back, and 0.7 of that"
    );
    assert_eq!(path.state(), State::Recovery);
}

// RFC 9937.

#[test]
fn proportional_reduction_sends_seven_for_ten_and_ends_at_the_threshold() {
    let mut path = TestPath::new(with_prr(Algorithm::CUBIC));
    path.grow_to(100, RTT);
    path.fill_window();
    path.wait(RTT);
    path.feedback(lose(1, 3));
    path.wait(INSTANT);
    let mut sent = path.fill_window();
    assert_eq!(path.state(), State::Recovery);
    let mut acked = 3_usize;
    while acked < 99 {
        path.ack(1);
        acked += 1;
        // One may be held back until a whole packet is due, and the lost one leaves room that is not made up for.
        let due = (acked * 7).div_ceil(10);
        sent += path.fill_window();
        assert!(
            sent <= due && due <= sent + 2,
            "{sent} of {due} after {acked}"
        );
    }
    let threshold = path.controller().ssthresh().expect("cut");
    assert!(path.in_flight() + PACKET >= threshold && path.in_flight() <= threshold);
    // The first packet sent in recovery ends it, and the window is the threshold.
    path.wait(RTT);
    path.ack(1);
    assert_eq!(path.state(), State::CongestionAvoidance);
    assert!(path.window() >= threshold && path.window() < threshold + PACKET);
}

#[test]
fn without_it_nothing_is_sent_until_the_flight_is_below_the_threshold() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(100, RTT);
    path.fill_window();
    path.wait(RTT);
    path.feedback(lose(1, 3));
    for _ in 0..26 {
        assert_eq!(path.fill_window(), 0, "{} in flight", path.in_flight());
        path.ack(1);
    }
    path.ack(1);
    assert_eq!(path.fill_window(), 1);
}

// RFC 9002 section 7.2 before RFC 9937: two packets may always be in flight.
#[test]
fn with_proportional_reduction_the_floor_holds() {
    for algorithm in BOTH {
        let mut path = TestPath::new(with_prr(algorithm));
        for _ in 0..30 {
            path.wait(INSTANT);
            path.send(1);
            path.wait(RTT);
            path.lose(1);
            assert!(path.window() >= PACKET * 2);
        }
        path.feedback(Feedback {
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        assert_eq!(path.window(), PACKET * 2);
    }
}

#[test]
fn the_cut_itself_is_the_same_with_proportional_reduction() {
    for algorithm in BOTH {
        let play = |algorithm| {
            let mut path = TestPath::new(algorithm);
            path.grow_to(100, RTT);
            path.cut(RTT);
            path.batch_rounds(RTT, 20)
        };
        assert_eq!(play(algorithm), play(with_prr(algorithm)), "{algorithm}");
    }
}

// RFC 9406.

/// Plays a round of slow start with every packet acknowledged by itself.
fn round(path: &mut TestPath, rtt: Duration) {
    let count = path.fill_window();
    path.wait(rtt);
    for _ in 0..count {
        path.ack(1);
    }
}

#[test]
fn a_loss_or_a_mark_ends_careful_slow_start_for_good() {
    for feedback in [
        lose(1, 1),
        Feedback {
            acked: 1,
            ce_count: 1,
            ..Feedback::default()
        },
    ] {
        let mut path = TestPath::new(Algorithm::CUBIC);
        round(&mut path, RTT);
        round(&mut path, RTT + RTT / 2);
        assert_eq!(path.state(), State::ConservativeSlowStart);
        let before = path.window();
        path.fill_window();
        path.wait(RTT);
        path.feedback(feedback);
        assert_eq!(path.window(), before.scale(7, 10));
        assert_eq!(path.state(), State::Recovery);
        assert_eq!(path.controller().ssthresh(), Some(path.window()));
        path.ack(path.packets_in_flight());
        path.wait(INSTANT);
        for extra in 1..10 {
            round(&mut path, RTT * extra);
        }
        let later = triggers(&path).split_off(2);
        assert_eq!(later, ["recovery_exited"], "no delay is judged any more");
    }
}

// RFC 9406 section 4.3: only the initial slow start. The one after persistent congestion has a threshold to run into.
#[test]
fn slow_start_after_persistent_congestion_is_not_watched() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(100, RTT);
    path.send(100);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 100,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    path.wait(INSTANT);
    let mut rtt = RTT;
    while path.state() == State::SlowStart {
        round(&mut path, rtt);
        rtt = rtt * 3 / 2;
    }
    assert_eq!(triggers(&path).last(), Some(&"ssthresh_reached"));
}

#[test]
fn persistent_congestion_in_careful_slow_start_starts_over() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    round(&mut path, RTT);
    round(&mut path, RTT + RTT / 2);
    assert_eq!(path.state(), State::ConservativeSlowStart);
    let count = path.fill_window();
    path.wait(RTT);
    path.feedback(Feedback {
        lost: count,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    assert_eq!(path.state(), State::SlowStart);
    assert_eq!(
        path.transitions().last().map(|t| t.trigger),
        Some(Trigger::PersistentCongestion)
    );
    assert_eq!(path.window(), PACKET * 2);
}

// A sender that has nothing to send for a while is not to be told that its queue grows.
#[test]
fn rounds_without_enough_data_are_not_judged() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    round(&mut path, RTT);
    path.set_app_limited(true);
    for extra in 2..6 {
        path.send(10);
        path.wait(RTT * extra);
        for _ in 0..10 {
            path.ack(1);
        }
    }
    assert_eq!(path.state(), State::SlowStart);
    path.set_app_limited(false);
    round(&mut path, RTT * 7);
    assert_eq!(
        path.state(),
        State::SlowStart,
        "nothing to compare with yet"
    );
    round(&mut path, RTT * 8);
    assert_eq!(path.state(), State::ConservativeSlowStart);
}

#[test]
fn the_pacing_gain_is_two_in_slow_start_and_five_quarters_in_the_careful_one() {
    let mut path = TestPath::with_controller(Box::new(Cubic::new(PACKET)));
    round(&mut path, RTT);
    let plain = |path: &TestPath| {
        Rate::from_bytes_per(path.window(), path.rtt().smoothed().expect("sampled"))
    };
    assert_eq!(path.pacing_rate(), plain(&path).scale(2, 1));
    round(&mut path, RTT + RTT / 2);
    assert_eq!(path.state(), State::ConservativeSlowStart);
    assert_eq!(path.pacing_rate(), plain(&path).scale(5, 4));
}
