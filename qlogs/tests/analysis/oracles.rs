//! Each oracle speaks on a log of what it watches for, and is silent next to it.

use qlogs::Frame;

use super::tape::{Tape, analysis};

const PLENTY: u64 = 1 << 40;

#[track_caller]
fn of(tape: Tape, end: u64) -> Vec<&'static str> {
    let violations = analysis(&tape.end(end)).violations;
    violations
        .iter()
        .map(|violation| violation.oracle)
        .collect()
}

/// Two packets per round trip of 10 ms, for so long, in a state.
fn at_the_floor(is_greedy: bool, loses: bool, state: &'static str, until: u64) -> Tape {
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(2);
    if state == "recovery" {
        tape.send(2).lose(1).state("recovery", "packet_lost");
    }
    for round in 1..until / 10 {
        tape.at(round * 10);
        if round > 1 {
            if loses && round % 50 == 0 {
                tape.lose(1);
            }
            tape.ack();
        }
        tape.send(if is_greedy { 2 } else { 1 });
    }
    tape
}

#[test]
fn o1_a_stay_at_the_floor() {
    let avoid = "congestion_avoidance";
    assert_eq!(of(at_the_floor(true, false, avoid, 2_100), 2_200), ["O1"]);
    assert_eq!(of(at_the_floor(true, false, avoid, 1_900), 1_950), [""; 0]);
    assert_eq!(
        of(at_the_floor(true, true, avoid, 3_000), 3_000),
        [""; 0],
        "it loses"
    );
    assert_eq!(
        of(at_the_floor(false, false, avoid, 3_000), 3_000),
        [""; 0],
        "no data"
    );
}

#[test]
fn o2_recovery_without_a_loss() {
    let enter = |loses: bool, is_marked: bool, later: u64| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(10).send(10);
        tape.at(10).ack_but(5).send(5);
        tape.at(20).ack_but(5).send(5);
        // The log names losses, if not here.
        tape.lose(1);
        tape.at(500).ack().send(5);
        if loses {
            tape.lose(1);
        }
        tape.at(500 + later);
        tape.state("recovery", if is_marked { "ecn_ce" } else { "packet_lost" });
        tape.at(510 + later).ack();
        of(tape, 1_000)
    };
    assert_eq!(enter(false, false, 0), ["O2"]);
    assert_eq!(enter(true, false, 0), [""; 0]);
    assert_eq!(enter(true, false, 5), [""; 0], "within the round trip");
    assert_eq!(enter(true, false, 200), ["O2"], "long ago");
    assert_eq!(enter(false, true, 0), [""; 0], "a mark");
}

#[test]
fn o2_recovery_that_flips() {
    let flip = |loses: bool| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(20).send(20);
        tape.at(10).ack_but(1).send(10);
        for entry in 0..6 {
            tape.at(20 + entry * 12);
            if loses || entry == 0 {
                tape.lose(1);
            }
            tape.state("recovery", "ecn_ce");
            tape.at(25 + entry * 12);
            tape.state("congestion_avoidance", "recovery_exited")
                .send(1);
        }
        of(tape, 200)
    };
    assert_eq!(flip(false), ["O2"]);
    assert_eq!(flip(true), [""; 0]);
}

#[test]
fn o3_recovery_that_began_in_the_future() {
    let exits = |exits: bool| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(4).send(4);
        tape.at(10).lose(1).state("recovery", "packet_lost").ack();
        for round in 2..20 {
            tape.at(round * 10).send(4);
            tape.at(round * 10 + 10).ack();
            if exits && round == 2 {
                tape.state("congestion_avoidance", "recovery_exited");
            }
        }
        of(tape, 300)
    };
    assert_eq!(exits(false), ["O3"]);
    assert_eq!(exits(true), [""; 0]);
}

#[test]
fn o4_more_than_the_window() {
    let send = |before: u64, is_probe: bool| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(10).send(before);
        tape.at(5);
        if is_probe {
            tape.probe().timeouts(1);
            tape.send(1);
        } else {
            tape.send(1);
        }
        tape.at(10).ack();
        of(tape, 20)
    };
    assert_eq!(send(10, false), ["O4"]);
    assert_eq!(send(9, false), [""; 0]);
    assert_eq!(send(10, true), [""; 0]);
}

#[test]
fn o6_probes_without_need() {
    let probe = |count: u64, peer_loses: bool| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(10).send(2);
        tape.at(10).ack();
        tape.send(1);
        for timeout in 1..=count {
            tape.at(10 + 50 * timeout).probe().timeouts(timeout);
        }
        if peer_loses {
            tape.miss();
        }
        tape.at(900).ack();
        of(tape, 1_000)
    };
    assert_eq!(probe(3, false), ["O6"]);
    assert_eq!(probe(2, false), [""; 0]);
    assert_eq!(probe(3, true), [""; 0], "acknowledgments were lost");

    // Acknowledgments arrive, and the count goes on.
    let mut tape = Tape::new(PLENTY, PLENTY);
    tape.window(10).send(2);
    tape.lose(1);
    for timeout in 1..=6 {
        tape.at(50 * timeout).probe().timeouts(timeout);
        let number = timeout + 1;
        tape.receive(vec![Frame::Ack {
            ack_delay: std::time::Duration::ZERO,
            ranges: vec![(number, number)],
            ecn: None,
        }]);
    }
    assert_eq!(of(tape, 1_000), ["O6"]);
}

#[test]
fn o9_two_cuts_in_a_round_trip() {
    let cuts = |apart: u64, is_undone: bool| {
        let mut tape = Tape::new(PLENTY, PLENTY);
        tape.window(20).send(20);
        tape.at(10).ack_but(10);
        tape.at(11).lose(1).state("recovery", "packet_lost");
        let why = if is_undone {
            "spurious_loss"
        } else {
            "recovery_exited"
        };
        tape.at(12).state("congestion_avoidance", why);
        tape.at(11 + apart).lose(1).state("recovery", "packet_lost");
        tape.at(40).ack();
        of(tape, 100)
    };
    assert_eq!(cuts(9, false), ["O9"]);
    assert_eq!(cuts(10, false), [""; 0]);
    assert_eq!(cuts(9, true), [""; 0], "the first was taken back");
}
