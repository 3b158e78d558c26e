//! CUBIC against RFC 9438, paragraph by paragraph.
//!
//! The trajectories are those of an independent model of the RFC: windows in segments of 1,200 bytes after so many round
//! trips of congestion avoidance, with acknowledgements spread evenly over the round trip ("even") or all at
//! once ("batch").

use std::time::Duration;

use cc::cubic::CubicGrowth;
use cc::loss_based::{Avoidance, CountedAck, LARGEST_WINDOW};
use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, Cubic, LossBasedOptions, State, Trigger};
use units::{ByteCount, Timestamp};

const SEGMENT: ByteCount = ByteCount::new(1_200);
const INSTANT: Duration = Duration::from_nanos(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn segments(hundredths: u64) -> ByteCount {
    SEGMENT.scale(hundredths, 100)
}

/// A window of `before` segments has just been cut, the path is empty, and what is sent next counts.
fn cut_at(before: u64, rtt: Duration) -> TestPath {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(before, rtt);
    path.cut(rtt);
    path
}

/// Plays `rounds` round trips, acknowledgements spread evenly, and returns the windows after each.
fn even(path: &mut TestPath, rtt: Duration, rounds: u32) -> Vec<ByteCount> {
    path.even_rounds(rtt, rounds)
}

/// Plays `rounds` round trips, each window acknowledged at once, and returns the windows after each.
fn batch(path: &mut TestPath, rtt: Duration, rounds: u32) -> Vec<ByteCount> {
    path.batch_rounds(rtt, rounds)
}

/// Compares with anchors `(round trips, hundredths of a segment)`.
#[track_caller]
fn assert_follows(windows: &[ByteCount], anchors: &[(usize, u64)], per_mille: u64) {
    for &(round, hundredths) in anchors {
        let (got, wanted) = (windows[round - 1].as_u64(), segments(hundredths).as_u64());
        assert!(
            got.abs_diff(wanted) * 1_000 <= wanted * per_mille,
            "after {round} round trips: {got} B, wanted {wanted} B (off by {:+.2} %)",
            (got as f64 / wanted as f64 - 1.0) * 100.0
        );
    }
}

const PERCENT: u64 = 10;

// RFC 9438 sections 4.2, 4.4 and 4.5: the concave, flat and convex parts.
#[test]
fn a_window_of_100_follows_the_curve_at_100_ms() {
    let rtt = ms(100);
    let windows = even(&mut cut_at(100, rtt), rtt, 70);
    assert_follows(
        &windows,
        &[
            (1, 7_202),
            (5, 7_937),
            (10, 8_662),
            (20, 9_560),
            (30, 9_926),
            (42, 10_000),
            (50, 10_020),
            (60, 10_280),
            (70, 11_270),
        ],
        PERCENT,
    );
    let windows = batch(&mut cut_at(100, rtt), rtt, 30);
    assert_follows(
        &windows,
        &[
            (1, 7_053),
            (2, 7_274),
            (3, 7_475),
            (4, 7_663),
            (5, 7_840),
            (10, 8_590),
            (20, 9_526),
            (30, 9_915),
        ],
        PERCENT,
    );
}

#[test]
fn a_window_of_1000_follows_the_curve_at_100_ms() {
    let rtt = ms(100);
    let windows = even(&mut cut_at(1_000, rtt), rtt, 120);
    assert_follows(
        &windows,
        &[
            (10, 78_840),
            (30, 90_980),
            (50, 97_270),
            (80, 99_950),
            (91, 100_000),
            (120, 100_990),
        ],
        PERCENT,
    );
    let windows = batch(&mut cut_at(1_000, rtt), rtt, 91);
    assert_follows(
        &windows,
        &[(10, 78_400), (30, 90_700), (91, 100_000)],
        PERCENT,
    );
}

#[test]
fn a_window_of_2560_follows_the_curve_at_200_ms() {
    let rtt = ms(200);
    let windows = even(&mut cut_at(2_560, rtt), rtt, 140);
    assert_follows(
        &windows,
        &[
            (1, 182_780),
            (10, 210_560),
            (20, 232_000),
            (30, 245_340),
            (40, 252_500),
            (62, 256_000),
            (100, 273_390),
            (123, 328_150),
            (140, 407_000),
        ],
        PERCENT,
    );
    let windows = batch(&mut cut_at(2_560, rtt), rtt, 10);
    assert_follows(&windows, &[(1, 179_250), (10, 209_030)], PERCENT);
}

// RFC 9438 section 4.3: at a small bandwidth-delay product the window grows as Reno's would, with alpha 9/17 up to the
// window at the cut and 1 from there.
#[test]
fn in_the_reno_friendly_region_growth_is_reno_s() {
    let rtt = ms(10);
    let windows = even(&mut cut_at(20, rtt), rtt, 100);
    assert_follows(
        &windows,
        &[(10, 1_912), (20, 2_805), (50, 5_730), (100, 10_680)],
        PERCENT,
    );
    let windows = even(&mut cut_at(100, rtt), rtt, 422);
    assert_follows(
        &windows,
        &[
            (10, 7_525),
            (50, 9_624),
            (100, 14_240),
            (200, 24_210),
            (422, 46_340),
        ],
        PERCENT,
    );
    let windows = even(&mut cut_at(1_000, rtt), rtt, 1_000);
    assert_follows(
        &windows,
        &[
            (100, 78_860),
            (300, 90_990),
            (500, 97_270),
            (800, 123_260),
            (1_000, 143_240),
        ],
        PERCENT,
    );
}

// RFC 9438 section 4.3: the curve takes over where it is ahead of Reno, here 7.6 s after the cut.
#[test]
fn the_curve_overtakes_reno() {
    let rtt = ms(100);
    let windows = even(&mut cut_at(10, rtt), rtt, 120);
    assert_follows(
        &windows,
        &[
            (5, 940),
            (10, 1_343),
            (20, 2_304),
            (40, 4_237),
            (60, 6_210),
            (76, 8_130),
            (80, 9_760),
            (100, 21_700),
            (120, 41_300),
        ],
        PERCENT,
    );
    let windows = batch(&mut cut_at(10, rtt), rtt, 120);
    assert_follows(
        &windows,
        &[(76, 8_000), (80, 9_570), (100, 21_400), (120, 40_800)],
        PERCENT,
    );
}

// RFC 9438 section 4.7.
#[test]
fn fast_convergence_aims_below_the_last_plateau() {
    let rtt = ms(100);
    let mut path = cut_at(100, rtt);
    // The second cut finds the window as the first one left it: 100, 70, 49.
    path.send(1);
    path.wait(rtt);
    path.lose(1);
    path.wait(INSTANT);
    assert_eq!(path.window(), SEGMENT * 49);
    let mut twin = cut_at(100, rtt);
    twin.send(1);
    twin.wait(rtt);
    twin.lose(1);
    twin.wait(INSTANT);
    let windows = even(&mut path, rtt, 60);
    assert_follows(
        &windows,
        &[
            (1, 4_999),
            (5, 5_341),
            (10, 5_640),
            (20, 5_942),
            (33, 6_620),
            (60, 8_950),
        ],
        PERCENT,
    );
    assert_follows(&batch(&mut twin, rtt, 1), &[(1, 4_953)], PERCENT);
}

#[test]
fn without_fast_convergence_the_curve_aims_higher() {
    let rtt = ms(100);
    let mut path = TestPath::with_controller(Box::new(Cubic::with_options(
        SEGMENT,
        LossBasedOptions {
            fast_convergence: false,
            ..LossBasedOptions::DEFAULT
        },
    )));
    path.grow_to(100, rtt);
    path.cut(rtt);
    path.send(1);
    path.wait(rtt);
    path.lose(1);
    path.wait(INSTANT);
    // W_max 70 and not 59.5: K = cbrt(21 / 0.4) = 3.744 s, and there is the plateau.
    let windows = even(&mut path, rtt, 38);
    assert_follows(&windows, &[(38, 7_000)], PERCENT);
}

/// Drives congestion avoidance alone: in each round trip as many segments as the window holds, evenly spread.
fn grow_alone(
    growth: &mut CubicGrowth,
    mut window: ByteCount,
    rtt: Duration,
    rounds: u32,
) -> Vec<ByteCount> {
    let start = Timestamp::from_secs(1);
    let mut windows = Vec::new();
    for round in 0..rounds {
        let count = u32::try_from(window.as_u64() / SEGMENT.as_u64()).expect("small windows only");
        for n in 0..count {
            let ack = CountedAck {
                size: SEGMENT,
                window,
                limit: LARGEST_WINDOW,
                max_datagram_size: SEGMENT,
                smoothed_rtt: rtt,
            };
            window = growth.on_acked(start + rtt * round + rtt * n / count, &ack);
        }
        windows.push(window);
    }
    windows
}

// RFC 9438 section 4.10: slow start that ends without loss starts on the plateau, and alpha is 1 at once (section 4.3).
#[test]
fn after_a_slow_start_without_loss_the_window_starts_on_the_plateau() {
    let mut growth = CubicGrowth::new(true);
    growth.on_slow_start_exit(SEGMENT * 10);
    let windows = grow_alone(&mut growth, SEGMENT * 10, ms(100), 100);
    assert_follows(
        &windows,
        &[
            (1, 1_096),
            (5, 1_457),
            (10, 1_930),
            (20, 2_904),
            (40, 4_847),
            (50, 5_970),
            (60, 9_590),
            (80, 21_400),
            (100, 40_900),
        ],
        PERCENT,
    );
}

// RFC 9438 section 4.2: K comes from the window at the epoch's beginning, not from beta.
#[test]
fn a_window_far_below_the_plateau_climbs_all_the_way() {
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(SEGMENT * 100, SEGMENT * 10);
    let windows = grow_alone(&mut growth, SEGMENT * 10, ms(100), 70);
    assert_follows(
        &windows,
        &[
            (1, 1_370),
            (5, 2_964),
            (10, 4_700),
            (20, 7_252),
            (40, 9_631),
            (61, 10_000),
            (70, 10_030),
        ],
        PERCENT,
    );
}

// RFC 9438 sections 4.2 and 5.8: idle time is not part of t. Any length gives the trajectory without it.
#[test]
fn idle_time_does_not_move_the_window_along_the_curve() {
    let rtt = ms(100);
    for idle in [ms(300), ms(1_000), ms(60_000), ms(3_600_000)] {
        let mut path = cut_at(100, rtt);
        batch(&mut path, rtt, 5);
        assert_follows(&[path.window()], &[(1, 7_840)], PERCENT);
        path.wait(idle);
        let windows = batch(&mut path, rtt, 10);
        assert_follows(
            &windows,
            &[
                (1, 8_008),
                (2, 8_166),
                (3, 8_315),
                (4, 8_457),
                (5, 8_590),
                (6, 8_714),
            ],
            PERCENT,
        );
        let mut twin = cut_at(100, rtt);
        batch(&mut twin, rtt, 5);
        assert_eq!(
            windows,
            batch(&mut twin, rtt, 10),
            "as if there had been no pause of {idle:?}"
        );
    }
}

// RFC 9438 section 5.8, at a window near the floor: growth after a pause stays at a segment per round trip.
#[test]
fn idle_time_at_a_small_window_does_not_make_it_jump() {
    let rtt = ms(100);
    for idle in [ms(10_000), ms(60_000)] {
        let mut path = cut_at(10, rtt);
        while path.window() < SEGMENT * 9 {
            path.batch_round(rtt);
        }
        path.wait(idle);
        let mut before = path.window();
        for round in 0..10 {
            path.batch_round(rtt);
            let step = path.window() - before;
            assert!(
                step <= segments(105),
                "{step} in round {round} after {idle:?}"
            );
            before = path.window();
        }
    }
}

// RFC 9438 section 4.2: a pause that the application makes is idle time too, and so is a span in which it sends less
// than the window allows. RFC 9002 section 7.8: the window does not grow in it.
#[test]
fn a_span_in_which_the_window_is_not_filled_counts_for_nothing() {
    let rtt = ms(100);
    let mut path = cut_at(100, rtt);
    batch(&mut path, rtt, 5);
    let before = path.window();
    path.set_app_limited(true);
    for _ in 0..100 {
        path.send(30);
        path.wait(rtt);
        path.ack(30);
    }
    assert_eq!(path.window(), before);
    path.set_app_limited(false);
    let windows = batch(&mut path, rtt, 6);
    assert_follows(
        &windows,
        &[
            (1, 8_008),
            (2, 8_166),
            (3, 8_315),
            (4, 8_457),
            (5, 8_590),
            (6, 8_714),
        ],
        PERCENT,
    );
    let mut twin = cut_at(100, rtt);
    batch(&mut twin, rtt, 5);
    assert_eq!(
        windows,
        batch(&mut twin, rtt, 6),
        "as if the span had not been"
    );
}

// One packet that counts is enough: the clock runs on although others of the same event do not count.
#[test]
fn packets_that_do_not_count_beside_others_that_do_stop_no_clock() {
    let rtt = ms(100);
    let play = |uncounted: usize| {
        let mut path = cut_at(100, rtt);
        for _ in 0..8 {
            path.set_app_limited(false);
            path.send(60);
            path.set_app_limited(true);
            path.send(uncounted);
            path.wait(rtt);
            path.ack(60 + uncounted);
        }
        path.window()
    };
    assert!(play(0) > SEGMENT * 70);
    assert_eq!(play(5), play(0));
}

// The minimum-window trap: a window of two datagrams drains the path every round trip, and every send looks like the
// end of a pause. A stack that moved its recovery boundary then never grew again (cloudflare/quiche#2370).
#[test]
fn a_flow_cut_down_to_the_floor_grows_again() {
    let rtt = ms(10);
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.send(1);
    for cut_window in [8_400, 5_880, 4_116, 2_881, 2_400] {
        path.wait(ms(1));
        path.send(2);
        path.wait(ms(1));
        path.lose(path.packets_in_flight() - 1);
        assert_eq!(path.window(), ByteCount::new(cut_window));
    }
    path.lose(1);
    assert_eq!(path.in_flight(), ByteCount::ZERO);
    assert_eq!(path.window(), path.controller().minimum_window());

    let windows = batch(&mut path, rtt, 200);
    assert!(
        windows[9] >= ByteCount::new(9_600),
        "{} after 10 rounds",
        windows[9]
    );
    assert!(
        windows[9] <= ByteCount::new(12_500),
        "{} after 10 rounds",
        windows[9]
    );
    assert!(
        windows[99] >= ByteCount::new(110_000),
        "{} after 100 rounds",
        windows[99]
    );
    assert!(
        windows[99] <= ByteCount::new(118_500),
        "{} after 100 rounds",
        windows[99]
    );
    assert_eq!(path.state(), State::CongestionAvoidance);
    assert_eq!(
        path.transitions().len(),
        2,
        "into recovery once, and out of it once"
    );
}

// The same trap, its other half: what is lost after the cut must still be answered.
#[test]
fn at_the_floor_losses_still_count() {
    let rtt = ms(10);
    let mut path = cut_at(10, rtt);
    batch(&mut path, rtt, 50);
    let before = path.window();
    path.cut(rtt);
    assert_eq!(path.window(), before.scale(7, 10));
}

// RFC 9438 section 4.6 with RFC 9002 section 7.3.2: 0.7, once per recovery period.
#[test]
fn a_window_is_cut_once_per_recovery_period() {
    let rtt = ms(100);
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.send(10);
    path.wait(rtt);
    path.lose(1);
    assert_eq!(path.window(), ByteCount::new(8_400));
    assert_eq!(path.controller().ssthresh(), Some(ByteCount::new(8_400)));
    path.lose(1);
    path.ack(3);
    path.lose(1);
    path.ack(4);
    assert_eq!(path.window(), ByteCount::new(8_400));
    assert_eq!(path.state(), State::Recovery);
}

// RFC 9438 section 4.8: after a timeout, which QUIC reads as persistent congestion, the next congestion avoidance
// starts on its plateau: K = 0.
#[test]
fn after_persistent_congestion_growth_restarts_from_the_window_reached() {
    let rtt = ms(100);
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(100, rtt);
    path.send(100);
    path.wait(rtt);
    path.feedback(Feedback {
        lost: 100,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    assert_eq!(path.window(), ByteCount::new(2_400));
    assert_eq!(
        path.controller().ssthresh(),
        Some(ByteCount::new(84_000)),
        "0.7 and not 0.49"
    );
    assert_eq!(path.state(), State::SlowStart);
    while path.state() == State::SlowStart {
        path.batch_round(rtt);
    }
    let reached = path.window();
    assert!(
        reached >= SEGMENT * 70 && reached <= SEGMENT * 71,
        "{reached}"
    );
    let last = path.transitions().last().map(|t| t.trigger);
    assert_eq!(last, Some(Trigger::SsthreshReached));
    // On the plateau the curve is flat, so Reno's 9/17 segment per round trip is all there is: after ten rounds the
    // curve has risen 0.4 segments.
    let windows = batch(&mut path, rtt, 10);
    assert!(windows[9] <= reached + SEGMENT * 6, "{}", windows[9]);
    assert!(windows[9] >= reached + SEGMENT * 4, "{}", windows[9]);
}

// Peer test of cloudflare/quiche with RFC 9438 numbers: six acknowledgements a round trip apart, and six at once.
#[test]
fn six_acknowledgements_after_a_cut_grow_the_window_as_computed_by_hand() {
    let rtt = ms(100);
    // The window is kept full, or it would not be allowed to grow; what is acknowledged left one RTT ago each time.
    let mut path = cut_at(10, rtt);
    for wanted in [8_491_u64, 8_618, 8_785, 8_976, 9_182, 9_393] {
        path.fill_window();
        path.wait(rtt);
        path.ack_newest(1);
        let got = path.window().as_u64();
        assert!(got.abs_diff(wanted) <= 20, "{got}, wanted {wanted}");
    }
    let mut path = cut_at(10, rtt);
    path.send(6);
    path.wait(rtt);
    path.ack(6);
    let got = path.window().as_u64();
    assert!(got.abs_diff(8_931) <= 20, "{got}");
}

// Acknowledging the same bytes in more pieces must give the same growth.
#[test]
fn growth_does_not_depend_on_how_bytes_are_sliced() {
    let rtt = ms(100);
    let grown = |pieces: u64| {
        let mut path = cut_at(100, rtt);
        batch(&mut path, rtt, 5);
        for _ in 0..60 * pieces {
            path.send_bytes(SEGMENT.scale(1, pieces));
        }
        path.wait(rtt);
        path.ack(path.packets_in_flight());
        path.window().as_u64()
    };
    let whole = grown(1);
    for pieces in [2, 4, 12] {
        assert!(
            grown(pieces).abs_diff(whole) * 200 <= whole,
            "{} and {whole}",
            grown(pieces)
        );
    }
}

// RFC 8899 section 3: a larger datagram must not raise the window; the curve goes on in bytes.
#[test]
fn a_new_datagram_size_does_not_bend_the_curve() {
    let rtt = ms(100);
    let mut path = cut_at(100, rtt);
    let mut twin = cut_at(100, rtt);
    batch(&mut path, rtt, 5);
    batch(&mut twin, rtt, 5);
    let before = path.window();
    path.set_datagram_size(ByteCount::new(1_452));
    assert_eq!(path.window(), before);
    let (with, without) = (batch(&mut path, rtt, 20), batch(&mut twin, rtt, 20));
    for (a, b) in with.iter().zip(&without) {
        assert!(a.as_u64().abs_diff(b.as_u64()) <= 1_452, "{a} and {b}");
    }
    path.set_datagram_size(ByteCount::new(65_527));
    assert_eq!(path.window(), path.window().max(ByteCount::new(131_054)));
    batch(&mut path, rtt, 20);
}
