//! Any controller, any sequence of events: no panic, and the promises of the contract hold.
//!
//! A failure prints the seed and the step; the seeds are fixed, so the run repeats itself.

use std::time::Duration;

use cc::loss_based::LARGEST_WINDOW;
use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, FixedConfig, LossBasedOptions, State};
use units::{ByteCount, Rate};

#[derive(Copy, Clone, Debug)]
enum Op {
    Send(usize),
    SendBytes(u64),
    FillWindow,
    Ack(usize),
    Lose(usize),
    LosePersistently(usize),
    Mark(usize),
    AckAndLose(usize, usize),
    AckLate(usize),
    Wait(Duration),
    AppLimited(bool),
    DatagramSize(u64),
    Pto,
}

const SEEDS: u64 = 60;
const STEPS: usize = 2_000;

#[test]
fn every_controller_keeps_its_promises_under_any_events() {
    let options = LossBasedOptions {
        abe: true,
        undo: false,
        ..LossBasedOptions::WITHOUT_HYSTART
    };
    let algorithms = [
        Algorithm::NEW_RENO,
        Algorithm::CUBIC,
        Algorithm::NewReno(options),
        Algorithm::Cubic(options),
        Algorithm::Bbr3,
        Algorithm::Fixed(FixedConfig::new(Rate::from_mbps(10))),
    ]
    .into_iter();
    #[cfg(feature = "mutants")]
    let algorithms = {
        // Two break the very promises: one lets the window jump, one does not hear of a new datagram size.
        let breaks_promises =
            |fault| matches!(fault, cc::Bbr3Fault::WindowJump | cc::Bbr3Fault::MtuStale);
        let bbr = cc::Bbr3Fault::ALL
            .into_iter()
            .filter(move |fault| !breaks_promises(*fault));
        algorithms
            .chain(cc::Fault::ALL.map(|fault| Algorithm::Faulty(fault, options)))
            .chain(bbr.map(Algorithm::FaultyBbr3))
    };
    for algorithm in algorithms {
        // Of those the tests in `bbr3` prove one thing each; here they need only not panic.
        let is_faulty_bbr = algorithm.to_string().starts_with("bbr3-");
        for seed in 0..if is_faulty_bbr { SEEDS / 10 } else { SEEDS } {
            play(algorithm, seed);
        }
    }
}

fn play(algorithm: Algorithm, seed: u64) {
    let mut random = Random(seed);
    let mut path = TestPath::new(algorithm);
    let initial = path.state();
    let mut seen = 0;
    let mut state = initial;
    let mut largest = path.window();
    for step in 0..STEPS {
        let op = random.op();
        let context = || format!("{algorithm}, seed {seed}, step {step}, {op:?}");
        let before = Before {
            window: path.window(),
            state: path.state(),
            largest,
        };
        let acked = apply(&mut path, op);

        let window = path.window();
        largest = largest.max(window);
        assert!(
            window >= path.controller().minimum_window(),
            "{window} at {}",
            context()
        );
        assert!(window <= LARGEST_WINDOW, "{window} at {}", context());
        assert!(path.pacing_rate() > Rate::ZERO, "{}", context());
        let quantum = path.controller().send_quantum(path.pacing_rate());
        assert!(
            quantum >= path.controller().max_datagram_size() * 2,
            "{}",
            context()
        );
        if path.controller().name() != "fixed" {
            assert_growth_is_earned(&before, window, acked, &path, &context());
        }
        for transition in &path.transitions()[seen..] {
            assert_eq!(transition.from, state, "{}", context());
            assert_ne!(transition.to, transition.from, "{}", context());
            state = transition.to;
        }
        seen = path.transitions().len();
        assert_eq!(state, path.state(), "{}", context());
    }
    assert!(
        initial == State::FixedRate || algorithm.is_faulty() || seen > 10,
        "{algorithm}, seed {seed}: nothing happened"
    );
}

struct Before {
    window: ByteCount,
    state: State,
    /// The largest window so far.
    largest: ByteCount,
}

/// No event grows the window by more than it acknowledges; only a new datagram size may lift it otherwise. BBR also returns
/// to a window it had before, when a recovery or a ProbeRTT is over.
#[track_caller]
fn assert_growth_is_earned(
    before: &Before,
    window: ByteCount,
    acked: Option<ByteCount>,
    path: &TestPath,
    context: &str,
) {
    let Some(acked) = acked else {
        return;
    };
    // NewReno pays for a datagram with a window of bytes that it may have collected earlier.
    let collected = path.controller().max_datagram_size();
    let is_return =
        path.controller().name().starts_with("bbr3") && window <= before.largest + acked;
    assert!(
        is_return || window <= before.window + acked + collected,
        "{} to {window} at {context}",
        before.window
    );
    let can_grow = before.state != State::Recovery || path.state() != State::Recovery;
    assert!(
        can_grow || window <= before.window,
        "{} to {window} in recovery at {context}",
        before.window
    );
}

/// Does it, and returns the bytes acknowledged; `None` if the datagram size changed or lost packets turned up.
fn apply(path: &mut TestPath, op: Op) -> Option<ByteCount> {
    let known = path.packets_in_flight();
    let before = path.in_flight();
    let datagram = path.controller().max_datagram_size();
    let mut feedback = Feedback::default();
    match op {
        Op::Send(count) => path.send(count),
        Op::SendBytes(bytes) => path.send_bytes(ByteCount::new(bytes)),
        // A window of gigabytes, or of a million tiny packets, is not worth playing packet by packet.
        Op::FillWindow if path.window() > ByteCount::mb(5).min(datagram * 20_000) => path.send(100),
        Op::FillWindow => {
            path.fill_window();
        }
        Op::Wait(span) => path.wait(span),
        Op::AppLimited(is_app_limited) => path.set_app_limited(is_app_limited),
        Op::Pto => {
            let now = path.now();
            path.controller_mut().on_pto(now);
        }
        Op::DatagramSize(bytes) => {
            path.set_datagram_size(ByteCount::new(bytes));
            return None;
        }
        Op::Ack(count) => feedback.acked = count.min(known),
        Op::Lose(count) => feedback.lost = count.min(known),
        Op::AckLate(count) => {
            feedback.late = count.min(path.packets_missing());
            path.feedback(feedback);
            // A cut may have been taken back.
            return None;
        }
        Op::LosePersistently(count) => {
            feedback.lost = count.min(known);
            feedback.is_persistent_congestion = true;
        }
        Op::Mark(count) => {
            feedback.acked = count.min(known);
            feedback.ce_count = 1;
        }
        Op::AckAndLose(acked, lost) => {
            feedback.lost = lost.min(known);
            feedback.acked = acked.min(known - feedback.lost);
        }
    }
    if feedback == Feedback::default() {
        return Some(ByteCount::ZERO);
    }
    path.feedback(feedback);
    Some(before - path.in_flight())
}

/// SplitMix64: enough for choosing, and three lines.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn count(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap_or(0)
    }

    /// Mostly everyday life (fill the window, wait about a round trip, acknowledge), now and then something absurd.
    fn op(&mut self) -> Op {
        match self.below(40) {
            0..=9 => Op::FillWindow,
            10..=17 => Op::Ack(self.count(200)),
            18..=25 => Op::Wait(Duration::from_micros(self.below(50_000))),
            26 => Op::Send(self.count(30)),
            27 => Op::SendBytes(self.below(65_536)),
            28 => Op::Lose(self.count(10)),
            29..=30 => Op::AckAndLose(self.count(50), self.count(3)),
            31 => Op::Mark(self.count(10)),
            32 => Op::LosePersistently(self.count(100)),
            33..=35 => Op::AppLimited(self.below(3) == 0),
            36 => Op::DatagramSize(1_200 + self.below(300)),
            37 if self.below(20) == 0 => Op::DatagramSize(self.below(65_536)),
            38 => Op::Wait(Duration::from_secs(self.below(1_000_000))),
            39 if self.below(2) == 0 => Op::AckLate(self.count(12)),
            _ => Op::Pto,
        }
    }
}
