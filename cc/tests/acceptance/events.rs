//! A1 to A3, A14 to A17 and A25: what single events do to the window.

use cc::loss_based::{LARGEST_WINDOW, initial_window};
use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, LossBasedOptions, State, Trigger};
use units::ByteCount;

use crate::{INSTANT, PACKET, cut_at, ms, packets, report};

const BOTH: [Algorithm; 2] = [Algorithm::NEW_RENO, Algorithm::CUBIC];

fn with_abe(algorithm: Algorithm) -> Algorithm {
    let options = LossBasedOptions {
        abe: true,
        ..LossBasedOptions::DEFAULT
    };
    match algorithm {
        Algorithm::NewReno(_) => Algorithm::NewReno(options),
        _ => Algorithm::Cubic(options),
    }
}

// RFC 9002 section 7.2.
#[test]
fn a1_the_initial_window_and_the_floor() {
    for (datagram, window) in [
        (1_200, 12_000),
        (1_350, 13_500),
        (1_472, 14_720),
        (2_000, 14_720),
        (8_000, 16_000),
    ] {
        let got = initial_window(ByteCount::new(datagram));
        report(&format!("A1/IW({datagram})"), got.as_u64(), window);
        assert_eq!(got, ByteCount::new(window));
        for algorithm in BOTH {
            let controller = algorithm.build(ByteCount::new(datagram));
            assert_eq!(controller.window(), ByteCount::new(window));
        }
    }
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        for _ in 0..30 {
            path.wait(INSTANT);
            path.send(1);
            path.wait(ms(100));
            path.lose(1);
            assert!(path.window() >= PACKET * 2);
        }
        report(
            &format!("A1/floor/{algorithm}"),
            path.window().as_u64(),
            2_400,
        );
        assert_eq!(path.window(), PACKET * 2);
    }
}

// RFC 9002 section 7.3.1.
#[test]
fn a2_slow_start_doubles_per_round_trip_and_stops_at_the_threshold() {
    let rtt = ms(100);
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        let windows = path.batch_rounds(rtt, 9);
        report(
            &format!("A2/9rtt/{algorithm}"),
            packets(windows[8]),
            "5120+-1pkt",
        );
        assert_eq!(windows[8], PACKET * 5_120);

        // Never more than what is acknowledged, in pieces of any size; the window is kept full by a flight beside.
        let mut path = TestPath::new(algorithm);
        for size in [1, 7, 1_199, 1_200, 3, 600] {
            path.fill_window();
            path.send_bytes(ByteCount::new(size));
            path.wait(rtt);
            let before = path.window();
            path.ack_newest(1);
            assert_eq!(path.window(), before + ByteCount::new(size));
        }

        // Persistent congestion leaves a threshold to run into: 120 packets, of which 60 or 84 are left.
        let mut path = TestPath::new(algorithm);
        path.grow_to(120, rtt);
        path.send(120);
        path.wait(rtt);
        path.feedback(Feedback {
            lost: 120,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        path.wait(INSTANT);
        let ssthresh = path.controller().ssthresh().expect("set by the loss");
        while path.state() == State::SlowStart {
            assert!(path.window() < ssthresh);
            path.batch_round(rtt);
        }
        let over = path.window() - ssthresh;
        report(
            &format!("A2/ssthresh/{algorithm}"),
            format!("{}B-over", over.as_u64()),
            "<=1pkt(excess-counts-as-CA)",
        );
        assert!(over <= PACKET, "{over}");
    }
}

// RFC 9438 section 4.6 and RFC 9002 section 7.3.2.
#[test]
fn a3_a_window_is_cut_once_per_recovery_period() {
    for (algorithm, cut) in [(Algorithm::CUBIC, 84_000), (Algorithm::NEW_RENO, 60_000)] {
        let mut path = TestPath::new(algorithm);
        path.grow_to(100, ms(100));
        path.send(100);
        path.wait(ms(100));
        for _ in 0..3 {
            path.lose(1);
            path.ack(5);
        }
        report(
            &format!("A3/cut/{algorithm}"),
            path.window().as_u64(),
            format!("{cut}+-1B"),
        );
        assert_eq!(path.window(), ByteCount::new(cut));
        assert_eq!(path.transitions().len(), 1, "three losses, one cut");
    }
}

// RFC 9002 sections 7.6.2 and B.8; RFC 9438 section 4.8.
#[test]
fn a14_persistent_congestion_cuts_once_and_drops_to_the_floor() {
    let rtt = ms(100);
    for (algorithm, ssthresh) in [(Algorithm::CUBIC, 84_000), (Algorithm::NEW_RENO, 60_000)] {
        let mut path = TestPath::new(algorithm);
        path.grow_to(100, rtt);
        path.send(100);
        path.wait(rtt);
        path.feedback(Feedback {
            lost: 100,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        report(
            &format!("A14/window/{algorithm}"),
            path.window().as_u64(),
            2_400,
        );
        assert_eq!(path.window(), PACKET * 2);
        let got = path.controller().ssthresh().expect("set by the loss");
        report(&format!("A14/ssthresh/{algorithm}"), got.as_u64(), ssthresh);
        assert_eq!(got, ByteCount::new(ssthresh));

        // W_max = cwnd and K = 0 when congestion avoidance begins: Reno's pace, 9/17 packet per round trip below the
        // old window for CUBIC, one for NewReno, and no climb back to 100 packets.
        while path.state() == State::SlowStart {
            path.batch_round(rtt);
        }
        let before = path.window();
        let grown = path.batch_rounds(rtt, 10)[9] - before;
        report(
            &format!("A14/ca-10rtt/{algorithm}"),
            packets(grown),
            "<=10.1pkt",
        );
        assert!(grown <= PACKET * 10 + ByteCount::new(120), "{grown}");
    }
}

// RFC 9002 section 7.6.2: it does not matter whether its packets are older than the last cut.
#[test]
fn a15_persistent_congestion_has_its_say_in_recovery() {
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(ms(100));
        path.lose(1);
        assert_eq!(path.state(), State::Recovery);
        let ssthresh = path.controller().ssthresh();
        path.feedback(Feedback {
            lost: 5,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        report(
            &format!("A15/window/{algorithm}"),
            path.window().as_u64(),
            2_400,
        );
        assert_eq!(path.window(), PACKET * 2);
        assert_eq!(path.controller().ssthresh(), ssthresh, "no second cut");
        path.ack(1);
        report(
            &format!("A15/next-ack/{algorithm}"),
            path.window().as_u64(),
            3_600,
        );
        assert_eq!(path.window(), PACKET * 3, "no packet is old any more");
    }
}

// RFC 9002 section 7.2 and RFC 8899 section 3.
#[test]
fn a16_a_new_datagram_size_moves_no_bytes_once_data_has_flowed() {
    let rtt = ms(100);
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.set_datagram_size(ByteCount::new(1_452));
        report(
            &format!("A16/IW/{algorithm}"),
            path.window().as_u64(),
            14_520,
        );
        assert_eq!(path.window(), ByteCount::new(14_520));

        let mut path = cut_at(algorithm, 100, rtt);
        let mut twin = cut_at(algorithm, 100, rtt);
        path.batch_rounds(rtt, 5);
        twin.batch_rounds(rtt, 5);
        let before = path.window();
        path.set_datagram_size(ByteCount::new(1_452));
        assert_eq!(path.window(), before, "an increase keeps bytes");
        if algorithm == Algorithm::CUBIC {
            // NewReno grows by datagrams, so its bytes do follow the size.
            let (with, without) = (path.batch_rounds(rtt, 20), twin.batch_rounds(rtt, 20));
            let apart = |(a, b): (&ByteCount, &ByteCount)| a.as_u64().abs_diff(b.as_u64());
            let most = with.iter().zip(&without).map(apart).max();
            report("A16/curve", format!("{}B", most.unwrap_or(0)), "<=1452B");
            assert!(most.unwrap_or(0) <= 1_452, "{most:?}");
        }
        let before = path.window();
        path.set_datagram_size(PACKET);
        assert_eq!(path.window(), before, "a decrease keeps bytes");
        path.set_datagram_size(ByteCount::new(65_527));
        assert_eq!(path.window(), before.max(ByteCount::new(131_054)));
        path.batch_rounds(rtt, 20);
        path.cut(rtt);
        assert!(path.window() >= ByteCount::new(131_054));
        assert!(path.window() <= LARGEST_WINDOW);
    }
}

// RFC 9002 section 7.1 and RFC 8511.
#[test]
fn a17_a_mark_cuts_like_a_loss_or_less_where_chosen() {
    let rtt = ms(100);
    let marked = Feedback {
        acked: 10,
        ce_count: 1,
        ..Feedback::default()
    };
    let in_avoidance = |algorithm| {
        let mut path = cut_at(algorithm, 100, rtt);
        path.fill_window();
        path.wait(rtt);
        path.ack(1);
        assert_eq!(path.state(), State::CongestionAvoidance);
        path
    };
    for (algorithm, for_mark, for_loss) in [
        (Algorithm::CUBIC, 70, 70),
        (with_abe(Algorithm::CUBIC), 85, 70),
        (Algorithm::NEW_RENO, 50, 50),
        (with_abe(Algorithm::NEW_RENO), 80, 50),
    ] {
        let mut path = in_avoidance(algorithm);
        let before = path.window();
        path.feedback(marked);
        let cut = path.window();
        report(
            &format!("A17/ce/{algorithm}"),
            format!("{}B-of-{}B", cut.as_u64(), before.as_u64()),
            format!("{for_mark}%"),
        );
        assert_eq!(cut, before.scale(for_mark, 100), "{algorithm}");
        let last = path.transitions().last().map(|t| t.trigger);
        assert_eq!(last, Some(Trigger::EcnCe));

        // What follows within the round trip cuts no further: a loss of an old packet, another mark.
        path.lose(1);
        path.feedback(marked);
        assert_eq!(path.window(), cut);

        // Together with a loss it is a loss.
        let mut path = in_avoidance(algorithm);
        let before = path.window();
        path.feedback(Feedback { lost: 1, ..marked });
        assert_eq!(path.window(), before.scale(for_loss, 100), "{algorithm}");
    }
    // In slow start a mark counts in full, with ABE too.
    let mut path = TestPath::new(with_abe(Algorithm::CUBIC));
    path.send(20);
    path.wait(rtt);
    path.feedback(marked);
    assert_eq!(path.window(), ByteCount::new(8_400));
}

#[test]
fn a25_newreno_halves_and_adds_a_packet_per_window() {
    let rtt = ms(100);
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    // Packets sent at the instant the controller was made do count (quinn's own forgets them).
    path.send(10);
    path.wait(rtt);
    path.ack(10);
    report("A25/first-instant", packets(path.window()), "20pkt");
    assert_eq!(path.window(), PACKET * 20);
    path.grow_to(40, rtt);
    path.cut(rtt);
    report("A25/cut", packets(path.window()), "20pkt");
    assert_eq!(path.window(), PACKET * 20);
    path.batch_rounds(rtt, 3);
    report("A25/3-windows", packets(path.window()), "23pkt");
    assert_eq!(path.window(), PACKET * 23);
}
