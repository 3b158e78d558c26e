//! A20: how much of a link one CUBIC flow uses, once slow start is over.
//!
//! Utilisation is the share of the link's bytes that left its serialiser from the sixth second on, headers and
//! retransmissions included.

use std::time::Duration;

use units::{Rate, Timestamp};

use crate::bulk::{Flow, Link, Play};
use crate::verdict::{Verdict, is_slow, record};

struct Steady {
    utilisation: f64,
    /// Stream bytes, in Mbit/s.
    goodput: f64,
    cuts: usize,
    lost: u64,
}

fn play(algorithm: &str, bdp_thousandths: u64, seconds: u64) -> Steady {
    let link = Link::new(
        Rate::from_mbps(100),
        Duration::from_millis(40),
        bdp_thousandths,
    );
    let (from, until) = (Timestamp::from_secs(5), Timestamp::from_secs(seconds));
    let flows = [Flow::new(algorithm)];
    let run = Play::new(&link, &flows, until).run();
    let flow = run.only();
    Steady {
        utilisation: run.utilisation(from, until),
        goodput: flow.goodput(from, until),
        cuts: flow.cuts().filter(|cut| cut.at >= from).count(),
        lost: flow.sender.packets_lost,
    }
}

fn judge(steady: &Steady, wanted: f64) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.expect(
        steady.utilisation >= wanted,
        format!("utilisation {:.4}", steady.utilisation),
    );
    // Nothing is known about a flow that was never cut.
    verdict.expect(steady.cuts > 0, "cuts 0");
    verdict
}

#[track_caller]
fn assert_used(queue: &str, bdp_thousandths: u64, seconds: u64, wanted: f64) {
    let steady = play("cubic", bdp_thousandths, seconds);
    record(
        &format!("A20 100 Mbit/s, 40 ms, {queue} BDP, seconds 5 to {seconds}"),
        format!(
            "{:.2} % used, goodput {:.2} Mbit/s, {} cuts, {} packets lost in all",
            steady.utilisation * 100.0,
            steady.goodput,
            steady.cuts,
            steady.lost
        ),
        format!("at least {:.0} % used", wanted * 100.0),
    );
    judge(&steady, wanted).require();
}

#[test]
fn a20_a_short_run_uses_the_link_with_a_tenth_of_a_bdp() {
    assert_used("0.1", 100, 20, 0.75);
}

#[test]
fn a20_a_minute_uses_the_link_with_one_bdp() {
    if is_slow("a20_a_minute_uses_the_link_with_one_bdp") {
        assert_used("1", 1_000, 60, 0.95);
    }
}

#[test]
fn a20_a_minute_uses_the_link_with_half_a_bdp() {
    if is_slow("a20_a_minute_uses_the_link_with_half_a_bdp") {
        assert_used("0.5", 500, 60, 0.90);
    }
}

#[test]
fn a20_a_minute_uses_the_link_with_a_tenth_of_a_bdp() {
    if is_slow("a20_a_minute_uses_the_link_with_a_tenth_of_a_bdp") {
        assert_used("0.1", 100, 60, 0.75);
    }
}

#[test]
fn a20_finds_out_a_sender_at_half_the_rate() {
    let verdict = judge(&play("fixed:50Mbit/s", 100, 10), 0.75);
    assert!(verdict.has_missed("utilisation 0.5"));
    assert!(verdict.has_missed("cuts"));
}
