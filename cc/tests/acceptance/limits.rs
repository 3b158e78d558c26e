//! A8 to A13: the floor, idle time, and senders that do not fill their window.

use cc::testing::TestPath;
use cc::{Algorithm, State};
use units::ByteCount;

use crate::{PACKET, assert_near, at_the_floor, cut_at, ms, packets, report, steps_after_idle};

// The minimum-window trap; the sum of the shifts is looked at where the mutants are.
#[test]
fn a8_a_flow_cut_down_to_the_floor_grows_again() {
    let windows = at_the_floor(Algorithm::CUBIC).batch_rounds(ms(10), 200);
    for (rounds, least) in [(10, 9_600), (100, 110_000)] {
        let got = windows[rounds - 1];
        report(
            &format!("A8/{rounds}cycles"),
            got.as_u64(),
            format!(">={least}"),
        );
        assert!(got >= ByteCount::new(least), "{got} after {rounds}");
    }
}

// RFC 9438 sections 4.2 and 5.8.
#[test]
fn a9_a_minute_of_silence_is_not_time_on_the_curve() {
    let rtt = ms(100);
    let mut path = cut_at(Algorithm::CUBIC, 100, rtt);
    let mut twin = cut_at(Algorithm::CUBIC, 100, rtt);
    path.batch_rounds(rtt, 5);
    twin.batch_rounds(rtt, 5);
    path.wait(ms(60_000));
    let windows = path.batch_rounds(rtt, 10);
    for (round, wanted) in [8_008, 8_166, 8_315, 8_457, 8_590, 8_714]
        .into_iter()
        .enumerate()
    {
        assert_near(&format!("A9/{}rtt", round + 1), windows[round], wanted, 10);
    }
    assert_eq!(windows, twin.batch_rounds(rtt, 10), "as without the pause");
}

#[test]
fn a10_after_silence_a_small_window_grows_a_packet_per_round_trip() {
    for idle in [ms(10_000), ms(30_000), ms(60_000)] {
        let steps = steps_after_idle(Algorithm::CUBIC, idle);
        let most = steps.into_iter().max().unwrap_or_default();
        report(
            &format!("A10/idle-{}s", idle.as_secs()),
            packets(most),
            "<=1.05pkt-per-rtt",
        );
        assert!(most <= PACKET.scale(105, 100), "{most}");
    }
}

// What the curve's clock shows is tested beside it (cubic.rs); here, what the window does.
#[test]
fn a11_a_hundred_pauses_leave_the_trajectory_as_it_is() {
    let rtt = ms(100);
    let mut path = cut_at(Algorithm::CUBIC, 100, rtt);
    let mut twin = cut_at(Algorithm::CUBIC, 100, rtt);
    for round in 0..100 {
        path.wait(ms(1_000));
        path.batch_round(rtt);
        twin.batch_round(rtt);
        assert_eq!(path.window(), twin.window(), "in round {round}");
    }
    report(
        "A11/100-pauses",
        packets(path.window()),
        format!("{}(without-pauses)", packets(twin.window())),
    );
}

// RFC 9002 section 7.8 and draft-ietf-ccwg-ratelimited-increase-08.
#[test]
fn a12_a_sender_at_half_its_window_does_not_grow_it() {
    let rtt = ms(100);
    let mut path = cut_at(Algorithm::CUBIC, 100, rtt);
    let mut twin = cut_at(Algorithm::CUBIC, 100, rtt);
    path.batch_rounds(rtt, 5);
    twin.batch_rounds(rtt, 5);
    let before = path.window();
    path.set_app_limited(true);
    for _ in 0..100 {
        path.send(39);
        path.wait(rtt);
        path.ack(39);
    }
    report(
        "A12/ca-growth",
        format!("{}B", (path.window() - before).as_u64()),
        "0B",
    );
    assert_eq!(path.window(), before);
    path.set_app_limited(false);
    assert_eq!(
        path.batch_rounds(rtt, 10),
        twin.batch_rounds(rtt, 10),
        "the limited span is no time on the curve"
    );

    // In slow start too; and without the mark, which a sender that is short of time does not set, the largest
    // flight still bounds it.
    for is_marked in [true, false] {
        let mut path = TestPath::new(Algorithm::CUBIC);
        path.grow_to(20, rtt);
        path.set_app_limited(is_marked);
        for _ in 0..100 {
            path.send(10);
            path.wait(rtt);
            path.ack(10);
        }
        let bound = PACKET * if is_marked { 20 } else { 38 };
        report(
            &format!("A12/ss/marked-{is_marked}"),
            packets(path.window()),
            format!("<={}", packets(bound)),
        );
        assert!(path.window() <= bound, "{}", path.window());
        assert_eq!(path.state(), State::SlowStart);
    }
}

// The example of draft-ietf-ccwg-ratelimited-increase-08: flights of 4, 8, 4 and 20 packets of 1,000 bytes.
#[test]
fn a13_slow_start_grows_to_twice_the_largest_flight() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::with_controller(algorithm.build(ByteCount::new(1_000)));
        assert_eq!(path.window(), ByteCount::new(10_000));
        for (round, (flight, window)) in [(4, 14_000), (8, 20_000), (4, 20_000), (20, 40_000)]
            .into_iter()
            .enumerate()
        {
            path.send(flight);
            path.wait(ms(100));
            path.ack(flight);
            report(
                &format!("A13/{}-flight-{flight}/{algorithm}", round + 1),
                path.window().as_u64(),
                window,
            );
            assert_eq!(path.window(), ByteCount::new(window));
        }
    }
}

/// Sends as the window allows but never has more than 20 packets in flight, like a sender short of processor time.
fn at_most_20_in_flight(path: &mut TestPath, rounds: u32) {
    for _ in 0..rounds {
        let fits = path.window().as_u64() / PACKET.as_u64();
        let count = usize::try_from(fits.min(20)).expect("20 at most");
        path.send(count);
        path.wait(ms(100));
        path.ack(count);
    }
}

#[test]
fn a13_a_sender_short_of_time_does_not_grow_its_window_without_bound() {
    // 28 packets cut to 19.6: congestion avoidance from the first flight on.
    let mut path = cut_at(Algorithm::CUBIC, 28, ms(100));
    let mut before = path.window();
    for _ in 0..1_000 {
        at_most_20_in_flight(&mut path, 1);
        assert!(path.window() >= before, "the cap never lowers a window");
        before = path.window();
    }
    report("A13/ca", packets(path.window()), "<=30pkt");
    assert!(path.window() <= PACKET * 30, "{}", path.window());

    let mut path = cut_at(Algorithm::NEW_RENO, 38, ms(100));
    at_most_20_in_flight(&mut path, 1_000);
    report("A13/ca/newreno", packets(path.window()), "<=21pkt");
    assert!(path.window() <= PACKET * 21, "{}", path.window());

    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = TestPath::new(algorithm);
        at_most_20_in_flight(&mut path, 1_000);
        report(
            &format!("A13/ss/{algorithm}"),
            packets(path.window()),
            "<=40pkt",
        );
        assert!(path.window() <= PACKET * 40, "{}", path.window());
    }
}

// Right after a cut the largest flight is counted from nothing; the window stays what the cut made it.
#[test]
fn a13_the_cap_never_lowers_the_window() {
    let rtt = ms(100);
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut path = cut_at(algorithm, 100, rtt);
        let before = path.window();
        for _ in 0..20 {
            path.send(2);
            path.wait(rtt);
            path.ack(2);
            assert_eq!(path.window(), before);
        }
        path.batch_rounds(rtt, 2);
        assert!(path.window() > before);
    }
}

// Time in which the cap binds is no time on the curve either.
#[test]
fn a13_time_under_the_cap_is_not_time_on_the_curve() {
    let rtt = ms(100);
    let mut path = cut_at(Algorithm::CUBIC, 100, rtt);
    // 40 packets in flight bear out 60 at most, and the window is 70.
    for _ in 0..1_000 {
        path.send(40);
        path.wait(rtt);
        path.ack(40);
    }
    assert_eq!(path.window(), PACKET * 70);
    let mut twin = cut_at(Algorithm::CUBIC, 100, rtt);
    assert_eq!(path.batch_rounds(rtt, 20), twin.batch_rounds(rtt, 20));
}
