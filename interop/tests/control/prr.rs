//! Proportional rate reduction (RFC 9937), on and off.
//!
//! A link of 20 Mbit/s and 40 ms with a queue of one bandwidth-delay product, once as it is and once with 1 % random
//! loss. Silence is the longest time between two full datagrams that leave in a recovery period or go into it, in
//! round-trip times as they were at the cut. Without PRR the sender waits until the bytes in flight are below the
//! reduced window: 0.3 of a round trip for CUBIC, half of one for NewReno.
//!
//! At 1 % the window is a dozen packets. With two datagrams per acknowledgement some silence is always there.

use std::time::Duration;

use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::bulk::{Flow, FlowRecord, Link, PACKET, Play};
use crate::verdict::{Verdict, largest, median, record};

/// What counts begins when slow start is over.
const FROM: Timestamp = Timestamp::from_secs(5);

struct Reductions {
    /// One per cut, in round trips.
    silences: Vec<f64>,
    /// How far the window was from the slow-start threshold when recovery had ended, in packets.
    after: Vec<f64>,
    /// The same just before that, when PRR decided what may be in flight.
    before: Vec<f64>,
    /// Mbit/s.
    goodput: f64,
    lost: u64,
}

impl Reductions {
    fn play(algorithm: &str, share: (u64, u64), loss: Fraction, until: Timestamp) -> Self {
        let link = Link::new(Rate::from_mbps(20), Duration::from_millis(40), 1_000).with_loss(loss);
        let flows = [Flow::new(algorithm)];
        let run = Play::new(&link, &flows, until).with_departures().run();
        let flow = run.only();
        let mut reductions = Self {
            silences: Vec::new(),
            after: Vec::new(),
            before: Vec::new(),
            goodput: flow.goodput(FROM, until),
            lost: flow.sender.packets_lost,
        };
        let off = |window: ByteCount, ssthresh: ByteCount| {
            let bytes = window.as_u64().abs_diff(ssthresh.as_u64());
            bytes as f64 / PACKET.as_u64() as f64
        };
        let cuts = flow.cuts().filter(|cut| cut.at >= FROM);
        for cut in cuts {
            let Some(exit) = flow.exits().find(|exit| exit.at > cut.at) else {
                continue;
            };
            let silence = longest_gap(flow, cut.at, exit.at).as_secs_f64();
            reductions.silences.push(silence / cut.rtt.as_secs_f64());
            // A cut in the very event that ends the last recovery begins the next one.
            if flow.cuts().any(|next| next.at == exit.at) {
                continue;
            }
            let ssthresh = cut.before.scale(share.0, share.1).max(PACKET * 2);
            reductions.after.push(off(exit.after, ssthresh));
            reductions.before.push(off(exit.before, ssthresh));
        }
        reductions
    }
}

/// The longest time without a full datagram that reaches into the span.
fn longest_gap(flow: &FlowRecord, from: Timestamp, until: Timestamp) -> Duration {
    let first = flow.departures.partition_point(|&at| at <= from);
    let around = &flow.departures[first.saturating_sub(1)..];
    let gaps = around.windows(2).take_while(|gap| gap[0] < until);
    let gaps = gaps.map(|gap| gap[1].saturating_since(gap[0]));
    gaps.max().unwrap_or_default()
}

/// What RFC 9937 promises whatever the path: less silence, and a window of ssthresh at the end.
fn judge(with: &Reductions, without: &Reductions) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.expect(with.silences.len() >= 5, "cuts");
    verdict.expect(without.silences.len() >= 5, "cuts");
    let (on, off) = (median(&with.silences), median(&without.silences));
    verdict.expect(on < off, format!("silence {on:.3} against {off:.3}"));
    let after = largest(&with.after);
    verdict.expect(after <= 1.0, format!("window {after:.3} packets off"));
    verdict
}

#[track_caller]
fn compare(
    controller: &str,
    share: (u64, u64),
    loss_percent: u32,
    until: Timestamp,
) -> (Reductions, Verdict) {
    let loss = Fraction::from_percent(loss_percent).expect("a probability");
    let without = Reductions::play(controller, share, loss, until);
    let with = Reductions::play(&format!("{controller}+prr"), share, loss, until);
    let row = format!("PRR {controller}, 20 Mbit/s, 40 ms, 1 BDP, {loss_percent} % random loss");
    record(
        &format!("{row}, silence after a cut"),
        format!(
            "median {:.3} RTT, longest {:.3}; without PRR {:.3}, {:.3}",
            median(&with.silences),
            largest(&with.silences),
            median(&without.silences),
            largest(&without.silences)
        ),
        "median shorter with PRR",
    );
    record(
        &format!("{row}, goodput and packets lost"),
        format!(
            "{:.3} Mbit/s, {}; without PRR {:.3} Mbit/s, {}",
            with.goodput, with.lost, without.goodput, without.lost
        ),
        "shown",
    );
    record(
        &format!("{row}, window at the end of recovery"),
        format!(
            "at most {:.3} packets from ssthresh, {:.3} just before",
            largest(&with.after),
            largest(&with.before)
        ),
        "within 1 packet of ssthresh",
    );
    let verdict = judge(&with, &without);
    (with, verdict)
}

/// One packet is lost per cut, so PRR itself has to arrive at the threshold.
#[track_caller]
fn assert_full_queue(controller: &str, share: (u64, u64)) {
    let (with, mut verdict) = compare(controller, share, 0, Timestamp::from_secs(50));
    let before = largest(&with.before);
    verdict.expect(before <= 1.0, format!("PRR {before:.3} packets off"));
    verdict.require();
}

#[track_caller]
fn assert_random_loss(controller: &str, share: (u64, u64)) {
    compare(controller, share, 1, Timestamp::from_secs(60))
        .1
        .require();
}

#[test]
fn prr_lets_cubic_go_on_sending_after_a_full_queue() {
    assert_full_queue("cubic", (7, 10));
}

#[test]
fn prr_lets_newreno_go_on_sending_after_a_full_queue() {
    assert_full_queue("newreno", (1, 2));
}

#[test]
fn prr_lets_cubic_go_on_sending_after_random_loss() {
    assert_random_loss("cubic", (7, 10));
}

#[test]
fn prr_lets_newreno_go_on_sending_after_random_loss() {
    assert_random_loss("newreno", (1, 2));
}

#[test]
fn prr_is_found_out_when_it_is_off_or_cuts_too_little() {
    let until = Timestamp::from_secs(50);
    let without = Reductions::play("cubic", (7, 10), Fraction::ZERO, until);
    assert!(judge(&without, &without).has_missed("silence"));
    let halved = Reductions::play("cubic+prr", (1, 2), Fraction::ZERO, until);
    let verdict = judge(&halved, &without);
    assert!(verdict.has_missed("window"));
    assert!(!verdict.has_missed("silence"));
}
