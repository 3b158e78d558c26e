//! A22: the average window at a given share of lost packets.
//!
//! Every n-th packet is lost, whatever the flow does about it. The average is over time, and over whole cycles after the
//! first ones, which still show the end of slow start. There are two references, and two ways to count:
//!
//! - RFC 9438 section 5 gives the response function. It is compared with every packet and all time;
//! - the acceptance row's figures are those of an independent model in which the window grows again at once. A real sender
//!   rests for a round trip after each cut, because what is acknowledged then was sent before it. With 12 packets in
//!   flight that is a tenth of the cycle, so for this comparison neither the packets nor the time of recovery count.

use std::time::Duration;

use cc::testing::TestPath;
use cc::{Algorithm, LossBasedOptions, State};
use units::ByteCount;

use crate::{PACKET, ms, packets, report};

/// How a run is counted.
#[derive(Copy, Clone)]
struct Count {
    /// Cycles before it is counted, and cycles that are.
    warm_up: u64,
    cycles: u64,
    has_recovery: bool,
}

const ALL: Count = Count {
    warm_up: 12,
    cycles: 24,
    has_recovery: true,
};

const AS_THE_MODEL: Count = Count {
    has_recovery: false,
    ..ALL
};

fn average_window(algorithm: Algorithm, rtt: Duration, every: u64, count: Count) -> ByteCount {
    let mut path = TestPath::new(algorithm);
    let flight = u32::try_from(path.window().as_u64() / PACKET.as_u64()).expect("ten");
    for _ in 0..flight {
        path.send(1);
        path.wait(rtt / flight);
    }
    let mut number = 0;
    let (mut area, mut span) = (0_u128, 0_u128);
    while number < every * (count.warm_up + count.cycles) {
        let sent_at = path.oldest_sent_at().expect("the window is never empty");
        let passed = (sent_at + rtt).saturating_since(path.now());
        let is_counted = count.has_recovery || path.state() != State::Recovery;
        if is_counted && number >= every * count.warm_up {
            area += u128::from(path.window().as_u64()) * passed.as_nanos();
            span += passed.as_nanos();
        }
        path.wait(passed);
        number += u64::from(is_counted);
        if is_counted && number % every == 0 {
            path.lose(1);
        } else {
            path.ack(1);
        }
        path.fill_window();
    }
    ByteCount::new(u64::try_from(area / span).expect("an average"))
}

#[track_caller]
fn assert_average(row: &str, got: ByteCount, tenths: u64) {
    let wanted = PACKET.scale(tenths, 10);
    report(row, packets(got), format!("{}+-10%", packets(wanted)));
    let off = got.as_u64().abs_diff(wanted.as_u64());
    assert!(off * 10 <= wanted.as_u64(), "{row}: {got}, wanted {wanted}");
}

#[track_caller]
fn assert_response(every: u64, model: [u64; 2], rfc: [u64; 2]) {
    for (index, rtt) in [ms(100), ms(10)].into_iter().enumerate() {
        let row = format!("A22/1-in-{every}/{}ms", rtt.as_millis());
        let got = average_window(Algorithm::CUBIC, rtt, every, AS_THE_MODEL);
        assert_average(&row, got, model[index]);
        let got = average_window(Algorithm::CUBIC, rtt, every, ALL);
        assert_average(&format!("{row}/rfc-table"), got, rfc[index]);
    }
}

#[test]
fn a22_the_average_window_at_one_loss_in_100() {
    assert_response(100, [126, 126], [120, 120]);
}

#[test]
fn a22_the_average_window_at_one_loss_in_1000() {
    assert_response(1_000, [401, 389], [380, 380]);
}

#[test]
fn a22_the_average_window_at_one_loss_in_10000() {
    assert_response(10_000, [1_797, 1_227], [1_870, 1_200]);
}

// Without fast convergence the way from slow start's window to the steady state is long: the curve is flat where it is
// cut, by a percent or two less each time.
#[test]
fn a22_without_fast_convergence_the_average_is_higher() {
    let options = LossBasedOptions {
        fast_convergence: false,
        ..LossBasedOptions::DEFAULT
    };
    let count = Count {
        warm_up: 100,
        ..AS_THE_MODEL
    };
    let got = average_window(Algorithm::Cubic(options), ms(100), 10_000, count);
    assert_average("A22/1-in-10000/100ms/-fastconv", got, 2_024);
}
