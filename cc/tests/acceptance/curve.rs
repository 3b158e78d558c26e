//! A4 to A7: the curve and its plateau.

use std::time::Duration;

use cc::cubic::CubicGrowth;
use cc::loss_based::{Avoidance, CountedAck, LARGEST_WINDOW};
use cc::testing::TestPath;
use cc::{Algorithm, LossBasedOptions, State, Trigger};
use units::{ByteCount, Timestamp};

use crate::{
    BATCHED_CURVE, INSTANT, PACKET, assert_near, batched_curve, cut_at, ms, packets, report,
};

fn ack(window: ByteCount) -> CountedAck {
    CountedAck {
        size: ByteCount::new(1),
        window,
        limit: LARGEST_WINDOW,
        max_datagram_size: PACKET,
        smoothed_rtt: ms(100),
    }
}

/// Growth that starts its epoch at `window` after cuts from each of `before`.
fn growth_after(before: &[ByteCount], window: ByteCount) -> CubicGrowth {
    let mut growth = CubicGrowth::new(true);
    for &before in before {
        growth.on_reduction(before, before.scale(7, 10));
    }
    growth.on_acked(Timestamp::from_secs(1), &ack(window));
    growth
}

// RFC 9438 section 4.2: K = cbrt((W_max - cwnd_epoch) / C).
#[test]
fn a4_the_time_to_the_plateau_follows_from_window_and_plateau() {
    let packets = |count: u64| PACKET * count;
    for (name, growth, wanted_ms) in [
        (
            "K(100,70)",
            growth_after(&[packets(100)], packets(70)),
            4_217,
        ),
        // 100 packets and then another cut of 100 that fast convergence does not touch, so 85 is set by itself.
        ("K(85,70)", growth_after(&[packets(85)], packets(70)), 3_347),
        (
            "K(2304,1612.8)",
            growth_after(&[packets(2_304)], ByteCount::new(1_935_360)),
            12_000,
        ),
        ("K(10,7)", growth_after(&[packets(10)], packets(7)), 1_957),
    ] {
        let k = growth.time_to_plateau().expect("the epoch has begun");
        report(
            &format!("A4/{name}"),
            format!("{:.3}s", k.as_secs_f64()),
            format!("{:.3}s+-1ms", ms(wanted_ms).as_secs_f64()),
        );
        assert!(k.abs_diff(ms(wanted_ms)) <= ms(1), "{name}: {k:?}");
    }
}

// RFC 9438 section 4.10, by way of RFC 9406: the delay ends slow start, no loss does.
#[test]
fn a5_after_an_exit_without_loss_the_window_starts_on_the_plateau() {
    let mut growth = CubicGrowth::new(true);
    let window = PACKET * 100;
    growth.on_slow_start_exit(window);
    growth.on_acked(Timestamp::from_secs(1), &ack(window));
    assert_eq!(growth.plateau(), window);
    assert_eq!(growth.prior_window(), window);
    assert_eq!(growth.time_to_plateau(), Some(Duration::ZERO));

    let mut path = TestPath::new(Algorithm::CUBIC);
    let mut rtt = ms(40);
    'slow_start: loop {
        path.fill_window();
        path.wait(rtt);
        while path.packets_in_flight() > 0 {
            path.ack(1);
            if path.state() == State::CongestionAvoidance {
                break 'slow_start;
            }
        }
        // The queue grows by a quarter each round.
        rtt = rtt * 5 / 4;
    }
    let exit = path.transitions().last().map(|t| t.trigger);
    assert_eq!(exit, Some(Trigger::ConservativeRoundsCompleted));
    assert_eq!(path.controller().ssthresh(), Some(path.window()));
    let before = path.window();
    path.ack(path.packets_in_flight());
    let step = path.window() - before;
    report("A5/first-rtt", packets(step), "<=1pkt");
    assert!(step <= PACKET, "{step}");
}

#[test]
fn a6a_1000_packets_at_100_ms_with_even_acknowledgements() {
    let windows = cut_at(Algorithm::CUBIC, 1_000, ms(100)).even_rounds(ms(100), 120);
    for (round, wanted) in [
        (10, 78_840),
        (30, 90_980),
        (50, 97_270),
        (80, 99_950),
        (91, 100_000),
        (120, 100_990),
    ] {
        assert_near(&format!("A6a/{round}rtt"), windows[round - 1], wanted, 10);
    }
}

#[test]
fn a6b_1000_packets_at_100_ms_acknowledged_a_window_at_once() {
    let windows = batched_curve(Algorithm::CUBIC);
    for (round, wanted) in BATCHED_CURVE {
        assert_near(&format!("A6b/{round}rtt"), windows[round - 1], wanted, 10);
    }
}

#[test]
fn a6c_20_packets_at_10_ms_grow_like_reno() {
    let windows = cut_at(Algorithm::CUBIC, 20, ms(10)).even_rounds(ms(10), 100);
    report("A6c/100rtt", packets(windows[99]), ">=101pkt");
    assert!(windows[99] >= PACKET * 101, "{}", windows[99]);
}

#[test]
fn a6d_2560_packets_at_200_ms() {
    let windows = cut_at(Algorithm::CUBIC, 2_560, ms(200)).even_rounds(ms(200), 140);
    for (round, wanted) in [
        (1, 182_780),
        (10, 210_560),
        (20, 232_000),
        (30, 245_340),
        (40, 252_500),
        (62, 256_000),
        (100, 273_390),
        (123, 328_150),
        (140, 407_000),
    ] {
        assert_near(&format!("A6d/{round}rtt"), windows[round - 1], wanted, 20);
    }
}

// RFC 9438 section 4.7.
#[test]
fn a7_a_second_cut_before_the_plateau_aims_lower() {
    let rtt = ms(100);
    let twice_cut = |algorithm| {
        let mut path = cut_at(algorithm, 100, rtt);
        path.send(1);
        path.wait(rtt);
        path.lose(1);
        path.wait(INSTANT);
        assert_eq!(path.window(), PACKET * 49);
        path
    };
    let windows = twice_cut(Algorithm::CUBIC).even_rounds(rtt, 10);
    report("A7/1rtt", packets(windows[0]), ">49pkt");
    assert!(windows[0] > PACKET * 49);
    for (round, hundredths) in [(5, 5_340), (10, 5_640)] {
        let (got, wanted) = (windows[round - 1], PACKET.scale(hundredths, 100));
        report(
            &format!("A7/{round}rtt"),
            packets(got),
            format!("{}+-0.5pkt", packets(wanted)),
        );
        assert!(got.as_u64().abs_diff(wanted.as_u64()) <= 600, "{got}");
    }
    let mut growth = CubicGrowth::new(true);
    let mut without = CubicGrowth::new(false);
    for growth in [&mut growth, &mut without] {
        growth.on_reduction(PACKET * 100, PACKET * 70);
        growth.on_reduction(PACKET * 70, PACKET * 49);
    }
    report("A7/W_max", packets(growth.plateau()), "59.5pkt");
    report("A7/W_max-off", packets(without.plateau()), "70pkt");
    assert_eq!(growth.plateau(), PACKET.scale(595, 10));
    assert_eq!(without.plateau(), PACKET * 70);
    let options = LossBasedOptions {
        fast_convergence: false,
        ..LossBasedOptions::DEFAULT
    };
    let higher = twice_cut(Algorithm::Cubic(options)).even_rounds(rtt, 10);
    assert!(higher[9] > windows[9], "{} and {}", higher[9], windows[9]);
}
