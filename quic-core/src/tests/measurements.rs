//! What quinn-proto was measured to do, and the design rests on; to be measured again whenever its
//! version changes.

use std::time::Duration;

use units::Timestamp;

use super::{
    Faults, percent,
    raw::{CLIENT, Pair, SERVER},
};
use crate::tap::{WINDOW_CLOSED, WINDOW_OPEN};

const DATAGRAM: u64 = 1200;

fn lossy_and_reordering() -> Faults {
    Faults {
        loss: percent(8),
        reordering: percent(15),
        lateness: Duration::from_millis(20),
        ..Faults::NONE
    }
}

/// Sends all that quinn-proto gives at one instant; returns the datagrams of each poll.
fn drain(pair: &mut Pair, from: usize) -> Vec<usize> {
    std::iter::from_fn(|| pair.transmit(from)).collect()
}

#[test]
fn an_open_window_lets_twenty_megabytes_leave_at_one_instant() {
    let mut pair = Pair::connected(1);
    pair.sides[SERVER].window = WINDOW_OPEN;
    pair.sides[SERVER].burst = 7;
    pair.write(SERVER, 20_000_000);
    let polls = drain(&mut pair, SERVER);
    let (last, full) = polls.split_last().expect("polls");
    assert!(full.iter().all(|&datagrams| datagrams == 7), "{polls:?}");
    assert!((1..=7).contains(last));
    let sent = pair.sides[SERVER].shadow.ledger.in_flight().as_u64();
    assert!((20_000_000..21_000_000).contains(&sent), "{sent}");
}

/// The counter-test: below 2^32 quinn-proto's pacer is at work, which [`WINDOW_OPEN`] avoids.
#[test]
fn a_window_below_four_gigabytes_is_paced_by_quinn_proto() {
    let mut pair = Pair::connected(1);
    pair.sides[SERVER].window = u64::from(u32::MAX) - 1;
    pair.sides[SERVER].burst = 7;
    pair.write(SERVER, 20_000_000);
    drain(&mut pair, SERVER);
    let sent = pair.sides[SERVER].shadow.ledger.in_flight().as_u64();
    assert!(sent < 1_000_000, "{sent} left without a pause");
}

#[test]
fn a_window_of_exactly_four_datagrams_lets_three_leave_and_one_byte_more_four() {
    for (window, expected) in [(4 * DATAGRAM, 3), (4 * DATAGRAM + 1, 4)] {
        let mut pair = Pair::connected(1);
        pair.sides[SERVER].window = window;
        pair.write(SERVER, 100_000);
        assert_eq!(drain(&mut pair, SERVER).len(), expected, "window {window}");
    }
}

/// Plays forty seeds of a lossy, reordering transfer both ways. Every comparison is in [`Pair`].
fn compare_every_event(burst: usize) {
    let (mut comparisons, mut batches) = (0, 0);
    for seed in 0..40 {
        let mut pair = Pair::new(seed, lossy_and_reordering(), burst);
        let limit = Timestamp::from_secs(60);
        pair.run(limit, |pair| {
            pair.sides.iter().all(|side| side.is_connected)
        });
        for side in [CLIENT, SERVER] {
            pair.sides[side].window = 40 * DATAGRAM + 1;
            pair.write(side, 500_000);
        }
        pair.run(limit, |pair| {
            pair.sides.iter().all(|side| side.finished_streams == 1)
        });
        for side in &pair.sides {
            assert_eq!(side.finished_streams, 1, "seed {seed}");
            comparisons += side.shadow.comparisons;
            batches += side.shadow.batches;
        }
    }
    // That there was something to compare.
    assert!(comparisons > 4_000, "{comparisons}");
    assert!(batches > 2_000, "{batches}");
}

#[test]
fn lost_packets_and_bytes_in_flight_are_known_exactly_with_one_packet_per_poll() {
    compare_every_event(1);
}

#[test]
fn lost_packets_and_bytes_in_flight_are_known_exactly_with_bursts() {
    compare_every_event(5);
}

/// Closes the server's gate, lets the client send 8 KB, and counts the acknowledgements of the next
/// 60 ms.
fn acks_behind_a_closed_window(has_data: bool) -> u64 {
    let mut pair = Pair::connected(1);
    pair.sides[SERVER].window = WINDOW_CLOSED;
    if has_data {
        pair.write(SERVER, 100_000);
    }
    pair.write(CLIENT, 8_000);
    let before = pair.sides[SERVER].acks_sent;
    let limit = pair.now + Duration::from_millis(10 + 60);
    pair.run(limit, |_| false);
    pair.sides[SERVER].acks_sent - before
}

#[test]
fn a_closed_window_without_pending_data_lets_acknowledgements_leave() {
    assert_eq!(acks_behind_a_closed_window(false), 1, "all came at once");
}

/// The defect that late binding and the exemption of [`crate::conn`] exist for.
#[test]
fn a_closed_window_with_pending_data_holds_acknowledgements_back() {
    assert_eq!(acks_behind_a_closed_window(true), 0);
}
