//! Eight defects of the controllers that quinn-proto 0.11.19 brings along, each shown there and absent here.
//!
//! One script per defect is played on quinn's controller and on ours through the drop-in, call by call as quinn makes
//! them. What is measured stands in `docs/validation.md`, part
//! "quinn beside ours". The packets are of 1,200 bytes, and windows are given in
//! packets where the text says so.

#[expect(dead_code, reason = "scripts need an RTT estimator, not a network")]
mod quinn_support;
#[path = "../../tests/support/validation_rows.rs"]
#[expect(
    dead_code,
    reason = "quinn's part is its own affair and is not compared"
)]
mod validation_rows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cc::Algorithm;
use cc::quinn::Factory;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_support::{harvest_rtt, origin};
use validation_rows::unsteady_row;

/// The defect in the controllers of quinn, and the same script played on ours.
fn report(defect: &str, stock: String, ours: String) {
    unsteady_row(
        "control",
        &format!("A26/{defect}"),
        ours,
        format!("quinn: {stock}"),
    );
}

const MTU: u64 = 1_200;
const FLOOR: u64 = 2 * MTU;
const LONG: Duration = Duration::from_millis(100);
const SHORT: Duration = Duration::from_millis(10);

// RFC 9438 sections 4.2 and 5.8: time without data in flight is not time of the curve.
#[test]
fn d1_a_minute_of_silence_does_not_make_the_window_explode() {
    let play = |mut script: Script, silence| {
        script.grow_to(100);
        script.cut();
        script.rounds(5);
        script.wait(silence);
        script.rounds(5);
        let soon = script.packets();
        script.rounds(5);
        (soon, script.packets())
    };
    let minute = Duration::from_secs(60);
    let (_, stock) = play(stock_cubic(LONG), minute);
    let (soon, ours) = play(our("cubic", LONG), minute);
    let (_, without_silence) = play(our("cubic", LONG), Duration::ZERO);
    report("D1", format!("{stock:.1}"), format!("{ours:.1}"));
    assert!(stock > 10_000.0, "quinn: {stock}");
    assert!(
        (ours - without_silence).abs() < 0.1,
        "ours: {ours}, without silence {without_silence}"
    );
    // 85.90 by the independent model of RFC 9438, windows acknowledged at once.
    assert!((85.0..86.8).contains(&soon), "ours: {soon}");
}

// RFC 9438 section 4.2: K comes from the window at the start of the epoch.
#[test]
fn d2_after_fast_convergence_the_window_grows_in_the_first_rounds() {
    let mut measured = Vec::new();
    for round_trip in [LONG, SHORT] {
        for mut script in [stock_cubic(round_trip), our("cubic", round_trip)] {
            script.grow_to(100);
            script.cut();
            script.rounds_until(99 * MTU);
            script.cut();
            measured.push(script.rounds_until(script.window() + MTU));
        }
    }
    let [stock_long, ours_long, stock_short, ours_short] = measured[..] else {
        panic!("two scripts at two round-trip times");
    };
    report(
        "D2",
        format!("{stock_long}|{stock_short}"),
        format!("{ours_long}|{ours_short}"),
    );
    assert!(
        stock_long >= 5 && stock_short >= 15,
        "quinn: {stock_long}, {stock_short}"
    );
    // One datagram takes two rounds at the Reno-friendly 9/17 of a datagram per round.
    assert!(
        ours_long <= 2 && ours_short <= 2,
        "ours: {ours_long}, {ours_short}"
    );
}

// RFC 9438 section 4.3: W_est follows the acknowledgements, and alpha is 1 above the old window.
#[test]
fn d3_on_a_short_path_the_window_keeps_up_with_reno() {
    let reno = stock_new_reno(SHORT);
    let [stock, ours, reno] = [stock_cubic(SHORT), our("cubic", SHORT), reno].map(|mut script| {
        script.grow_to(20);
        script.cut();
        script.rounds(100);
        script.packets()
    });
    report("D3", format!("{stock:.1}"), format!("{ours:.1}"));
    assert!(stock < 75.0, "quinn: {stock}");
    // 106.8 by the independent model of RFC 9438; quinn's own NewReno, which began four packets lower, has 110.
    assert!(ours > 101.0, "ours: {ours}");
    assert!(ours > 0.95 * reno, "ours {ours}, NewReno {reno}");
}

// RFC 9002 sections 7.6.2 and B.8: persistent congestion has its say within a recovery period too.
#[test]
fn d4_persistent_congestion_within_recovery_leads_to_the_floor() {
    let scripts = [
        stock_cubic(LONG),
        stock_new_reno(LONG),
        our("cubic", LONG),
        our("newreno", LONG),
    ];
    let [stock_cubic, stock_reno, our_cubic, our_reno] = scripts.map(|mut script| {
        script.grow_to(100);
        let sent = script.now;
        script.wait(LONG);
        script.lose(sent, false);
        script.wait(LONG);
        script.lose(sent, true);
        script.window()
    });
    report(
        "D4",
        format!("{stock_cubic}|{stock_reno}"),
        format!("{our_cubic}|{our_reno}"),
    );
    assert_eq!([stock_cubic, stock_reno], [84_000, 60_000]);
    assert_eq!([our_cubic, our_reno], [FLOOR, FLOOR]);
}

// RFC 9438 sections 4.6 and 4.8: one reduction, by 0.7.
#[test]
fn d5_persistent_congestion_reduces_the_threshold_once() {
    let [stock, ours] = [stock_cubic(LONG), our("cubic", LONG)].map(|mut script| {
        script.grow_to(100);
        let sent = script.now;
        script.wait(LONG);
        script.lose(sent, true);
        assert_eq!(script.window(), FLOOR);
        script.ssthresh().expect("it was set just now")
    });
    report("D5", format!("{stock}"), format!("{ours}"));
    assert!(stock < 59_000, "quinn: 0.49 of 120,000 is {stock}");
    assert_eq!(ours, 84_000, "0.7 of 120,000");
}

// RFC 9002 section 7.3.1: the first flight is in slow start, whenever it left.
#[test]
fn d6_packets_sent_at_the_instant_of_construction_grow_the_window() {
    let [stock, ours] = [stock_new_reno(LONG), our("newreno", LONG)].map(|mut script| {
        script.rounds(1);
        script.window()
    });
    report("D6", format!("{stock}"), format!("{ours}"));
    assert_eq!(stock, 12_000);
    assert_eq!(ours, 24_000);
}

// RFC 8511 section 3 (experimental, an option here): a mark costs less than a loss.
#[test]
fn d7_a_mark_can_be_told_from_a_loss() {
    let scripts = [
        stock_cubic(LONG),
        our("cubic+abe", LONG),
        our("cubic", LONG),
    ];
    let [stock, ours, ours_by_default] = scripts.map(|mut script| {
        script.grow_to(100);
        script.cut();
        script.rounds(3);
        let before = script.window();
        let sent = script.now;
        script.wait(LONG);
        script
            .controller
            .on_congestion_event(script.now, sent, false, 0);
        script.window() as f64 / before as f64
    });
    report("D7", format!("{stock:.3}"), format!("{ours:.3}"));
    assert!((stock - 0.7).abs() < 0.001, "quinn: {stock}");
    assert!((ours - 0.85).abs() < 0.001, "ours: {ours}");
    assert!(
        (ours_by_default - 0.7).abs() < 0.001,
        "ours without the option: {ours_by_default}"
    );
}

// RFC 9002 section 7.2, a SHOULD: the initial window follows the datagram size until data flows.
#[test]
fn d8_a_larger_datagram_before_the_first_acknowledgement_gives_a_new_initial_window() {
    let [stock, ours] = [stock_cubic(LONG), our("cubic", LONG)].map(|mut script| {
        script.controller.on_mtu_update(1_452);
        script.window()
    });
    report("D8", format!("{stock}"), format!("{ours}"));
    assert_eq!(stock, 12_000);
    assert_eq!(ours, 14_520);
}

fn stock_cubic(round_trip: Duration) -> Script {
    Script::new(Arc::new(CubicConfig::default()), round_trip)
}

fn stock_new_reno(round_trip: Duration) -> Script {
    Script::new(Arc::new(NewRenoConfig::default()), round_trip)
}

fn our(name: &str, round_trip: Duration) -> Script {
    let algorithm: Algorithm = name.parse().expect("in the table");
    Script::new(Arc::new(Factory::new(algorithm)), round_trip)
}

/// A flow without a network: it makes the calls quinn makes.
struct Script {
    controller: Box<dyn Controller>,
    now: Instant,
    round_trip: Duration,
    rtt: RttEstimator,
    packet_number: u64,
}

impl Script {
    fn new(factory: Arc<dyn ControllerFactory>, round_trip: Duration) -> Self {
        let now = origin();
        Self {
            controller: factory.build(now, 1_200),
            now,
            round_trip,
            rtt: harvest_rtt(round_trip),
            packet_number: 0,
        }
    }

    /// The true window in bytes: ours reports one more through `window()`.
    fn window(&self) -> u64 {
        self.controller.metrics().congestion_window
    }

    fn packets(&self) -> f64 {
        self.window() as f64 / MTU as f64
    }

    fn ssthresh(&self) -> Option<u64> {
        self.controller.metrics().ssthresh
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Sends a full window at once and has `count` of its packets acknowledged at once, a round-trip time later. Nobody
    /// hears of the others again.
    fn flight(&mut self, count: u64) {
        let sent = self.now;
        for _ in 0..self.window() / MTU {
            self.packet_number += 1;
            self.controller.on_sent(sent, MTU, self.packet_number);
        }
        self.wait(self.round_trip);
        for _ in 0..count {
            self.controller
                .on_ack(self.now, sent, MTU, false, &self.rtt);
        }
        self.controller
            .on_end_acks(self.now, 0, false, Some(self.packet_number));
    }

    /// Plays this many round trips of a full window.
    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.flight(self.window() / MTU);
        }
    }

    /// Plays round trips until the window is this large; returns how many it took.
    #[track_caller]
    fn rounds_until(&mut self, window: u64) -> usize {
        for count in 1..1_000 {
            self.rounds(1);
            if self.window() >= window {
                return count;
            }
        }
        panic!("the window stands at {} B", self.window());
    }

    /// Lets slow start fill the window to this many packets exactly.
    #[track_caller]
    fn grow_to(&mut self, packets: u64) {
        // quinn's NewReno takes what leaves at the instant of construction for old.
        self.wait(Duration::from_millis(1));
        while self.window() < packets * MTU {
            let before = self.window();
            self.flight((packets - before / MTU).min(before / MTU));
            assert!(self.window() > before, "slow start stands at {before} B");
        }
        assert_eq!(self.window(), packets * MTU);
    }

    fn lose(&mut self, sent: Instant, is_persistent: bool) {
        self.controller
            .on_congestion_event(self.now, sent, is_persistent, MTU);
    }

    /// Loses one packet of a flight that left just now; what leaves afterwards is new.
    fn cut(&mut self) {
        let sent = self.now;
        self.wait(self.round_trip);
        self.lose(sent, false);
        self.wait(Duration::from_micros(1));
    }
}
