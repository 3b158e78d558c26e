//! Connections of which it is known what limited them.

use qlogs::Frame;
use qlogs::analyse::{Limit, Why, analyse};
use qlogs::read::Reader;
use units::Rate;

use super::tape::{PACKET, Tape, analysis};

const PLENTY: u64 = 1 << 40;

/// The shares in thousandths, largest first, without those that are zero. They sum to 1,000.
#[track_caller]
fn shares(why: &Why) -> Vec<(Limit, u32)> {
    let sum: u32 = why.causes.iter().map(|cause| cause.per_mille).sum();
    assert_eq!(sum, 1_000, "{why}");
    let time: u128 = why.causes.iter().map(|cause| cause.time.as_nanos()).sum();
    assert_eq!(time, why.total.as_nanos(), "every nanosecond has one cause");
    let mut shares: Vec<(Limit, u32)> = why
        .causes
        .iter()
        .map(|cause| (cause.limit, cause.per_mille))
        .filter(|(_, share)| *share > 0)
        .collect();
    shares.sort_by_key(|(limit, share)| (std::cmp::Reverse(*share), *limit));
    shares
}

#[track_caller]
fn of(file: &[u8]) -> Vec<(Limit, u32)> {
    shares(&analysis(file).why)
}

#[test]
fn a_slow_handshake() {
    let mut tape = Tape::before_handshake(PLENTY, PLENTY);
    tape.complete(900);
    tape.at(900).window(10).send(1);
    tape.at(950).ack();
    assert_eq!(
        of(&tape.end(1_000)),
        [(Limit::Handshake, 900), (Limit::Application, 100)]
    );
}

#[test]
fn an_application_that_has_nothing_to_send() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).pacing(Rate::from_mbps(12));
    for round in 0..10 {
        tape.at(round * 100).send(1);
        tape.at(round * 100 + 50).ack();
    }
    assert_eq!(of(&tape.end(1_000)), [(Limit::Application, 1_000)]);
}

#[test]
fn a_stream_without_credit() {
    let mut tape = Tape::new(PLENTY, 4_000);
    tape.window(100);
    for round in 0..10 {
        tape.at(round * 100).send(4);
        tape.at(round * 100 + 80).ack();
        let maximum = 4_000 * (round + 2);
        tape.at(round * 100 + 100)
            .receive(vec![Frame::MaxStreamData {
                stream_id: 0,
                maximum,
            }]);
    }
    assert_eq!(of(&tape.end(1_000)), [(Limit::FlowControl, 1_000)]);
}

/// The credit is not used to the last byte; that it is short is said by a frame.
#[test]
fn a_connection_without_credit() {
    let mut tape = Tape::new(4_500, PLENTY);
    tape.window(100).send(4);
    tape.send_frame(Frame::DataBlocked { limit: 4_500 });
    tape.at(50).ack();
    tape.at(800)
        .receive(vec![Frame::MaxData { maximum: 9_000 }]);
    let file = tape.end(1_000);
    assert_eq!(
        of(&file),
        [(Limit::FlowControl, 800), (Limit::Application, 200)]
    );
    let why = analysis(&file).why;
    let cause = &why.causes[1];
    assert_eq!(cause.evidence, "1 DATA_BLOCKED or STREAM_DATA_BLOCKED sent");
}

#[test]
fn a_full_window() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).send(10);
    for round in 1..=10 {
        tape.at(round * 100).ack().send(10);
    }
    let file = tape.end(1_050);
    assert_eq!(of(&file), [(Limit::Window, 1_000)]);
    let why = analysis(&file).why;
    assert_eq!(why.causes[2].evidence, "window 12000 B");
    assert_eq!(
        why.causes[2].count, 1,
        "the instants without data do not part it"
    );
}

/// 1,200 B every 8 ms are 1.2 Mbit/s. The window never fills.
#[test]
fn a_pacer() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(1_000).pacing(Rate::from_kbps(1_200));
    for packet in 0..125 {
        tape.at(packet * 8).send(1);
        if packet % 5 == 4 {
            tape.at(packet * 8 + 4).ack();
        }
    }
    tape.at(1_000).send(1);
    assert_eq!(of(&tape.end(1_000)), [(Limit::Pacing, 1_000)]);
}

/// The same rate, but the application takes ten times as long as the pacer.
#[test]
fn an_application_slower_than_its_pacer() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(1_000).pacing(Rate::from_kbps(1_200));
    for packet in 0..12 {
        tape.at(packet * 80).send(1);
        tape.at(packet * 80 + 30).ack();
    }
    assert_eq!(of(&tape.end(960)), [(Limit::Application, 1_000)]);
}

/// Everything sent is lost: the time until the timer expires, and until there is an answer.
#[test]
fn probe_timeouts() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).send(10);
    tape.at(100).ack().send(10);
    tape.at(200).ack().send(5);
    for (count, ms) in [(1, 300), (2, 500)] {
        tape.at(ms).probe().timeouts(count);
    }
    tape.at(800).ack_but(0);
    tape.at(800).send(10);
    let file = tape.end(1_000);
    assert_eq!(of(&file), [(Limit::Pto, 600), (Limit::Window, 400)]);
    let why = analysis(&file).why;
    assert_eq!(
        why.causes[4].evidence,
        "2 probe timeouts, 2 in a row at most"
    );
}

#[test]
fn a_window_cut_by_losses() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).send(10);
    tape.at(100)
        .lose(1)
        .state("recovery", "packet_lost")
        .window(5);
    tape.at(400).ack().send(5);
    tape.state("congestion_avoidance", "recovery_exited");
    assert_eq!(
        of(&tape.end(1_000)),
        [(Limit::Window, 700), (Limit::Recovery, 300)]
    );
}

/// Thirds have no whole number of thousandths; the first of equals gets what is left.
#[test]
fn shares_sum_to_the_whole() {
    let mut tape = Tape::before_handshake(PLENTY, PLENTY);
    tape.complete(100);
    tape.at(100).window(10).send(10);
    tape.at(200).ack();
    assert_eq!(
        of(&tape.end(300)),
        [
            (Limit::Application, 334),
            (Limit::Window, 333),
            (Limit::Handshake, 333),
        ]
    );
}

#[test]
fn one_after_the_other() {
    let mut tape = Tape::before_handshake(PLENTY, 20_000);
    tape.complete(100);
    tape.at(100).window(10).send(10);
    tape.at(300).ack().send(10);
    tape.at(400).ack();
    // 20,000 B are used up.
    tape.at(700).receive(vec![Frame::MaxStreamData {
        stream_id: 0,
        maximum: PLENTY,
    }]);
    tape.at(900).send(1);
    assert_eq!(
        of(&tape.end(1_000)),
        [
            (Limit::Application, 300),
            (Limit::FlowControl, 300),
            (Limit::Window, 300),
            (Limit::Handshake, 100),
        ]
    );
}

/// The current drafts have events that say it.
#[test]
fn a_file_that_says_it_itself() {
    let file: String = [
        r#"{"file_schema":"x","trace":{"vantage_point":{"type":"server"},"common_fields":{"time_format":"relative_to_epoch","reference_time":{"epoch":"unknown"}}}}"#,
        r#"{"time":0,"name":"quic:connection_state_updated","data":{"new":"handshake_complete"}}"#,
        r#"{"time":0,"name":"quic:connection_data_blocked_updated","data":{"new":"blocked","reason":"pacing"}}"#,
        r#"{"time":400,"name":"quic:connection_data_blocked_updated","data":{"new":"blocked","reason":"congestion_control"}}"#,
        r#"{"time":700,"name":"quic:stream_data_blocked_updated","data":{"new":"blocked","reason":"stream_flow_control"}}"#,
        r#"{"time":900,"name":"quic:stream_data_blocked_updated","data":{"new":"unblocked"}}"#,
        r#"{"time":1000,"name":"quic:connection_closed","data":{}}"#,
    ]
    .iter()
    .map(|record| format!("\x1e{record}\n"))
    .collect();
    let why = analyse(Reader::new(file.as_bytes()).expect("a file")).why;
    assert_eq!(
        shares(&why),
        [
            (Limit::Pacing, 400),
            (Limit::Window, 300),
            (Limit::FlowControl, 200),
            (Limit::Application, 100),
        ]
    );
    assert_eq!(why.notes.len(), 2, "{why}");
}

#[test]
fn the_longest_stretch_is_named_with_its_record() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(2).send(2);
    tape.at(100).ack();
    tape.at(200).send(2);
    tape.at(500).ack();
    let file = tape.end(600);
    let why = analysis(&file).why;
    let longest = why.causes[2].longest.expect("a stretch");
    assert_eq!(
        (longest.from.as_nanos(), longest.length().as_millis()),
        (200_000_000, 300)
    );
    let text = String::from_utf8(file).expect("text");
    let line = text
        .lines()
        .nth(usize::try_from(longest.record).expect("small") - 1);
    assert!(
        line.is_some_and(|line| line.contains("\"time\":200.0")),
        "{line:?}"
    );
    assert_eq!(PACKET * 2, 2_400);
}

#[test]
fn the_text_fits_the_terminal() {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).send(10);
    tape.at(100_000).lose(1).state("recovery", "packet_lost");
    tape.at(200_000).ack();
    let text = analysis(&tape.end(300_000)).why.to_string();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
