//! The acceptance rows that can be shown on a controller alone, each a test named after its row.
//!
//! Windows are given in packets of 1,200 bytes where the text says so. Each measured value that a row names stands in
//! `docs/validation.md`, part "control"; the tests compare, and with `TIDEGATE_WRITE_DOCS=1` write it.
//!
//! Rows that need the whole stack, or quinn beside it (A19 to A21, A23, A24, A26, A29), are tested there; A30 is
//! the example `bench_ack`.

#[path = "../../../tests/support/validation_rows.rs"]
#[expect(
    dead_code,
    reason = "a controller without a network is the same in every run"
)]
mod validation_rows;

mod curve;
mod events;
mod hystart;
mod invariants;
mod limits;
mod response;
#[cfg(feature = "mutants")]
mod trap;

use std::fmt::Display;
use std::time::Duration;

use cc::Algorithm;
use cc::testing::TestPath;
use units::ByteCount;
use validation_rows::row;

const PACKET: ByteCount = ByteCount::new(1_200);
const INSTANT: Duration = Duration::from_nanos(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Compares a measured value with the document, or writes it there.
#[track_caller]
fn report(name: &str, measured: impl Display, bound: impl Display) {
    row("control", name, in_words(measured), in_words(bound));
}

/// The tests write values as one word each.
fn in_words(value: impl Display) -> String {
    let text = value.to_string();
    [
        ("pkt", " packets"),
        ("+-", " ± "),
        ("permille", " ‰"),
        ("<=", "≤ "),
        (">=", "≥ "),
    ]
    .into_iter()
    .fold(text, |text, (short, long)| text.replace(short, long))
}

/// A window in packets, with three decimals.
fn packets(window: ByteCount) -> String {
    let thousandths = window.as_u64() * 1_000 / PACKET.as_u64();
    format!("{}.{:03}pkt", thousandths / 1_000, thousandths % 1_000)
}

/// A flow whose window of `before` packets has just been cut; the path is empty, and what is sent next counts.
fn cut_at(algorithm: Algorithm, before: u64, rtt: Duration) -> TestPath {
    let mut path = TestPath::new(algorithm);
    path.grow_to(before, rtt);
    path.cut(rtt);
    path
}

/// Compares `got` with hundredths of a packet, within so many per mille, and reports it.
#[track_caller]
fn assert_near(row: &str, got: ByteCount, hundredths: u64, per_mille: u64) {
    let wanted = PACKET.scale(hundredths, 100);
    report(
        row,
        packets(got),
        format!("{}+-{}permille", packets(wanted), per_mille),
    );
    let off = got.as_u64().abs_diff(wanted.as_u64());
    assert!(
        off * 1_000 <= wanted.as_u64() * per_mille,
        "{row}: {got}, wanted {wanted}"
    );
}

/// Five losses, 12,000 -> 8,400 -> 5,880 -> 4,116 -> 2,881 -> 2,400 bytes with packets in flight throughout, and a
/// last one that leaves the path empty. It is the beginning of the minimum-window trap.
fn at_the_floor(algorithm: Algorithm) -> TestPath {
    let mut path = TestPath::new(algorithm);
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
    path
}

/// A window of nine packets at 100 ms, the path empty, after `idle`; returns the growth in each of the ten
/// round trips that follow.
fn steps_after_idle(algorithm: Algorithm, idle: Duration) -> Vec<ByteCount> {
    let rtt = ms(100);
    let mut path = cut_at(algorithm, 10, rtt);
    for _ in 0..100 {
        if path.window() < PACKET * 9 {
            path.batch_round(rtt);
        }
    }
    assert!(path.window() >= PACKET * 9, "{algorithm} does not grow");
    path.wait(idle);
    let mut before = path.window();
    let mut steps = Vec::new();
    for window in path.batch_rounds(rtt, 10) {
        steps.push(window - before);
        before = window;
    }
    steps
}

/// 1,000 packets cut to 700 at 100 ms, a window acknowledged at once: the windows after each of 91 round trips.
fn batched_curve(algorithm: Algorithm) -> Vec<ByteCount> {
    let rtt = ms(100);
    cut_at(algorithm, 1_000, rtt).batch_rounds(rtt, 91)
}

/// `batched_curve` within one percent: round trips and hundredths of a packet.
const BATCHED_CURVE: [(usize, u64); 3] = [(10, 78_400), (30, 90_700), (91, 100_000)];
