//! The drop-in for quinn: on the real protocol core, and under any sequence of calls.

#[expect(dead_code, reason = "other test programs use the rest")]
mod quinn_support;
#[path = "../../tests/support/validation_rows.rs"]
#[expect(dead_code, reason = "the random parts of TLS are not seeded")]
mod validation_rows;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cc::Algorithm;
use cc::quinn::Factory;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_support::{Pair, harvest_rtt, origin};
use validation_rows::unsteady_row;

const ONE_WAY: Duration = Duration::from_millis(10);
const DATAGRAM: u16 = 1_200;
const MTU: u64 = DATAGRAM as u64;
const FLOOR: u64 = 2 * MTU;

fn factory(name: &str) -> Arc<Factory> {
    let algorithm: Algorithm = name.parse().expect("in the table");
    Arc::new(Factory::new(algorithm))
}

// On the real core: A29, whole transfers, a NAT that forgets.

#[test]
fn at_the_floor_two_full_datagrams_leave_back_to_back() {
    let bursts = bursts_at_the_floor(factory("fixed:100Mbit/s:2400B"));
    let most = bursts.iter().copied().max().unwrap_or(0);
    unsteady_row(
        "control",
        "A29/at the floor",
        format!("{most} datagrams per burst"),
        "2 back to back",
    );
    assert!(bursts.len() >= 40, "one burst per round trip: {bursts:?}");
    assert!(bursts.iter().all(|count| *count == 2), "{bursts:?}");
}

#[test]
fn a_controller_that_reports_its_exact_window_sends_one_datagram_at_the_floor() {
    let bursts = bursts_at_the_floor(Arc::new(ExactFactory(factory("fixed:100Mbit/s:2400B"))));
    let most = bursts.iter().copied().max().unwrap_or(0);
    unsteady_row(
        "control",
        "A29/without the extra byte",
        format!("{most} datagram per burst"),
        "1, then the delayed ACK",
    );
    assert!(bursts.iter().all(|count| *count == 1), "{bursts:?}");
    // And waits for the delayed ACK each time.
    assert!(bursts.len() <= 25, "{bursts:?}");
}

/// Has a second of traffic at a window of two datagrams, and returns how many full ones left at each instant.
fn bursts_at_the_floor(factory: Arc<dyn ControllerFactory + Send + Sync>) -> Vec<usize> {
    let mut pair = Pair::new(factory, ONE_WAY);
    pair.send(5_000_000);
    pair.run_for(Duration::from_millis(100));
    pair.bursts.clear();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.controller().metrics().congestion_window, FLOOR);
    assert_eq!(
        pair.server_connection().stats().path.cwnd,
        pair.controller().window()
    );
    pair.bursts
        .iter()
        .map(|burst| burst.full_datagrams)
        .collect()
}

#[test]
fn cubic_climbs_from_the_floor_when_the_loss_is_over() {
    let mut pair = Pair::new(factory("cubic"), ONE_WAY);
    pair.send(5_000_000);
    pair.run_for(Duration::from_millis(100));
    let lossy_until = pair.now + Duration::from_secs(2);
    let mut arrivals = 0;
    pair.is_lost = Box::new(move |now, _| {
        arrivals += 1;
        now < lossy_until && arrivals % 3 == 0
    });
    pair.run_for(Duration::from_secs(2));
    let at_the_floor = pair
        .bursts
        .iter()
        .filter(|burst| burst.window == FLOOR)
        .count();
    assert!(at_the_floor >= 10, "one datagram in three is lost");
    pair.run_for(Duration::from_millis(500));
    let window = pair.controller().metrics().congestion_window;
    unsteady_row(
        "control",
        "A29/25 round trips after the loss",
        format!("{window} B"),
        format!("at least {} B", 10 * MTU),
    );
    assert!(window >= 10 * MTU, "{window}");
}

/// The drop-in without its extra byte.
struct ExactFactory(Arc<Factory>);

impl ControllerFactory for ExactFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Exact(Arc::clone(&self.0).build(now, mtu)))
    }
}

struct Exact(Box<dyn Controller>);

impl Controller for Exact {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.0.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.0.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.0.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        lost_bytes: u64,
    ) {
        self.0
            .on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.0.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.0.metrics().congestion_window
    }

    fn metrics(&self) -> ControllerMetrics {
        self.0.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self(self.0.clone_box()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[test]
fn metrics_have_the_true_window_and_the_rate_once_there_is_an_rtt() {
    let mut pair = Pair::new(factory("cubic"), ONE_WAY);
    pair.run_for(ONE_WAY);
    let metrics = pair.controller().metrics();
    assert_eq!(metrics.congestion_window, 12_000);
    assert_eq!(metrics.ssthresh, None);
    assert_eq!(metrics.pacing_rate, None);
    assert_eq!(pair.controller().window(), 12_001);
    assert_eq!(pair.controller().initial_window(), 12_000);

    pair.send(3_000_000);
    let mut arrivals = 0;
    pair.is_lost = Box::new(move |_, _| {
        arrivals += 1;
        arrivals == 200
    });
    pair.run_for(Duration::from_secs(2));
    let metrics = pair.controller().metrics();
    let rate = metrics.pacing_rate.expect("there have been many samples");
    // 1.25 windows per 20 ms in bits; quinn's window of a moment and ours of the same.
    let expected = metrics.congestion_window * 8 * 5 / 4 * 50;
    assert!(
        rate.abs_diff(expected) <= expected / 20,
        "{rate} against {expected}"
    );
    assert!(metrics.ssthresh.is_some(), "one datagram was lost");
    assert_eq!(pair.received, 3_000_000);
}

#[test]
fn every_algorithm_moves_its_bytes_through_loss() {
    for name in ["newreno", "cubic", "cubic+prr", "fixed:20Mbit/s:60kB"] {
        let mut pair = Pair::new(factory(name), ONE_WAY);
        pair.send(1_000_000);
        let mut arrivals = 0;
        pair.is_lost = Box::new(move |_, _| {
            arrivals += 1;
            arrivals % 50 == 49
        });
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.received, 1_000_000, "{name}");
        let stats = pair.server_connection().stats().path;
        assert!(stats.congestion_events >= 5, "{name}: {stats:?}");
        let window = pair.controller().metrics().congestion_window;
        assert!((FLOOR..200_000).contains(&window), "{name}: {window}");
    }
}

#[test]
fn a_client_that_changes_its_port_keeps_the_window_of_the_path() {
    let mut pair = Pair::new(factory("cubic"), ONE_WAY);
    pair.send(200_000);
    let mut arrivals = 0;
    pair.is_lost = Box::new(move |_, _| {
        arrivals += 1;
        arrivals == 60
    });
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.received, 200_000);
    let before = pair.controller().metrics();
    let port_before = pair.server_connection().remote_address().port();

    pair.rebind_client();
    pair.ping_from_client();
    pair.run_for(Duration::from_secs(60));
    let after = pair.controller().metrics();
    let port = pair.server_connection().remote_address().port();
    assert_ne!(port, port_before, "the server has noticed");
    assert_eq!(after.ssthresh, before.ssthresh);
    let bound = before.congestion_window + MTU;
    assert!((before.congestion_window..=bound).contains(&after.congestion_window));

    pair.send(200_000);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.received, 400_000);
    let after = pair.controller().metrics().congestion_window;
    // The minute of silence is no time of the curve: some 20 rounds of slow growth, not a jump.
    assert!(
        after <= before.congestion_window * 2,
        "{before} to {after}",
        before = before.congestion_window
    );
}

// The trait, called directly.

/// One flow that talks to a controller as quinn does.
struct Flow {
    controller: Box<dyn Controller>,
    now: Instant,
    rtt: RttEstimator,
    packet_number: u64,
}

const RTT: Duration = Duration::from_millis(100);

impl Flow {
    fn new(name: &str) -> Self {
        let now = origin();
        Self {
            controller: factory(name).build(now, DATAGRAM),
            now,
            rtt: harvest_rtt(RTT),
            packet_number: 0,
        }
    }

    /// Sends `count` datagrams, in batches of two, and returns when they left.
    fn send(&mut self, count: u64) -> Instant {
        for batch in 0..count.div_ceil(2) {
            let datagrams = (count - batch * 2).min(2);
            self.packet_number += datagrams;
            self.controller
                .on_sent(self.now, datagrams * MTU, self.packet_number);
        }
        self.now
    }

    fn ack(&mut self, sent: Instant, count: u64, in_flight: u64) {
        for _ in 0..count {
            self.controller
                .on_ack(self.now, sent, MTU, false, &self.rtt);
        }
        self.controller
            .on_end_acks(self.now, in_flight * MTU, false, Some(self.packet_number));
    }

    fn lose(&mut self, sent: Instant, count: u64, is_persistent: bool) {
        self.controller
            .on_congestion_event(self.now, sent, is_persistent, count * MTU);
    }

    fn mark(&mut self, sent: Instant) {
        self.controller
            .on_congestion_event(self.now, sent, false, 0);
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    fn window(&self) -> u64 {
        self.controller.metrics().congestion_window
    }
}

#[test]
fn packets_acknowledged_together_with_a_loss_do_not_grow_the_window() {
    let mut flow = Flow::new("newreno");
    let sent = flow.send(10);
    flow.wait(RTT);
    flow.ack(sent, 9, 1);
    flow.lose(sent, 1, false);
    assert_eq!(
        flow.window(),
        6_000,
        "half of 12,000: the cut comes first, and all nine are older than it"
    );
}

#[test]
fn reading_the_window_changes_nothing_but_ends_the_event() {
    let mut flow = Flow::new("newreno");
    let sent = flow.send(10);
    flow.wait(RTT);
    flow.ack(sent, 9, 1);
    assert_eq!(flow.window(), 22_800);
    assert_eq!(flow.window(), 22_800);
    assert_eq!(flow.controller.window(), 22_801);
    flow.lose(sent, 1, false);
    assert_eq!(flow.window(), 11_400);
}

#[test]
fn a_mark_cuts_once_per_round_trip_and_a_loss_beside_it_no_further() {
    let mut flow = Flow::new("cubic");
    let sent = flow.send(10);
    flow.wait(RTT);
    flow.ack(sent, 4, 6);
    flow.mark(sent);
    assert_eq!(flow.window(), 8_400);
    flow.wait(Duration::from_millis(1));
    flow.ack(sent, 4, 2);
    flow.mark(sent);
    flow.lose(sent, 2, false);
    assert_eq!(flow.window(), 8_400);
}

#[test]
fn persistent_congestion_leads_to_the_floor_even_within_recovery() {
    for name in ["newreno", "cubic"] {
        let mut flow = Flow::new(name);
        let sent = flow.send(10);
        flow.wait(RTT);
        flow.lose(sent, 1, false);
        assert!(flow.window() > FLOOR);
        flow.wait(Duration::from_millis(1));
        flow.lose(sent, 9, true);
        assert_eq!(flow.window(), FLOOR, "{name}");
    }
}

#[test]
fn a_larger_datagram_before_the_first_acknowledgement_gives_a_new_initial_window() {
    let mut flow = Flow::new("cubic");
    flow.controller.on_mtu_update(1_452);
    assert_eq!(flow.window(), 14_520);
    let sent = flow.send(1);
    flow.wait(RTT);
    flow.ack(sent, 1, 0);
    let before = flow.window();
    flow.controller.on_mtu_update(9_000);
    assert_eq!(
        flow.window(),
        before.max(18_000),
        "later only the floor lifts it"
    );
}

#[test]
fn acknowledgements_without_data_behind_them_do_not_grow_the_window() {
    let mut flow = Flow::new("cubic");
    for _ in 0..50 {
        let sent = flow.send(2);
        flow.wait(RTT);
        for _ in 0..2 {
            flow.controller.on_ack(flow.now, sent, MTU, true, &flow.rtt);
        }
        flow.controller
            .on_end_acks(flow.now, 0, true, Some(flow.packet_number));
    }
    assert_eq!(flow.window(), 12_000);
}

#[test]
fn a_copy_begins_where_the_original_stands_and_then_goes_its_own_way() {
    for name in ["newreno", "cubic"] {
        let mut flow = Flow::new(name);
        let sent = flow.send(10);
        flow.wait(RTT);
        flow.ack(sent, 9, 1);
        flow.lose(sent, 1, false);
        flow.wait(Duration::from_millis(1));
        // An acknowledgement that nobody has asked about yet belongs to the copy too.
        let sent = flow.send(5);
        flow.wait(RTT);
        flow.ack(sent, 5, 0);
        let copy = flow.controller.clone_box();
        let (window, ssthresh) = (flow.window(), flow.controller.metrics().ssthresh);
        assert_eq!(copy.metrics().congestion_window, window, "{name}");
        assert_eq!(copy.metrics().ssthresh, ssthresh, "{name}");
        assert_eq!(copy.initial_window(), 12_000, "{name}");

        let original = std::mem::replace(&mut flow.controller, copy);
        let sent = flow.send(5);
        flow.wait(RTT);
        flow.lose(sent, 5, true);
        assert_eq!(flow.window(), FLOOR, "{name}");
        assert_eq!(original.metrics().congestion_window, window, "{name}");
        assert_eq!(original.metrics().ssthresh, ssthresh, "{name}");
    }
}

#[test]
fn a_copy_that_waits_for_its_path_does_not_jump_along_the_curve() {
    let mut flow = Flow::new("cubic");
    let mut sent = flow.send(10);
    for _ in 0..3 {
        flow.wait(RTT);
        let full = flow.window() / MTU;
        flow.ack(sent, full, 0);
        sent = flow.send(flow.window() / MTU);
    }
    flow.wait(RTT);
    flow.lose(sent, 1, false);
    let mut rounds = Vec::new();
    for round in 0..10 {
        flow.wait(Duration::from_millis(1));
        if round == 5 {
            flow.send(3);
            flow.controller = flow.controller.clone_box();
            flow.wait(Duration::from_secs(60));
        }
        let full = flow.window() / MTU;
        let sent = flow.send(full);
        flow.wait(RTT);
        flow.ack(sent, full, 0);
        rounds.push(flow.window());
    }
    for pair in rounds.windows(2) {
        assert!(pair[1] <= pair[0] + pair[0] / 20, "{rounds:?}");
    }
}

// A27.

#[test]
fn no_sequence_of_calls_panics_or_breaks_a_promise() {
    let estimators = [1, 100, 3_000].map(|millis| harvest_rtt(Duration::from_millis(millis)));
    for name in ["newreno", "cubic", "cubic+prr+abe", "fixed:10Mbit/s"] {
        for seed in 0..25 {
            play(name, seed, &estimators);
        }
    }
}

const STEPS: u64 = 10_000;

fn play(name: &str, seed: u64, estimators: &[RttEstimator]) {
    let mut random = Random(seed);
    let start = origin();
    let mut now = start;
    let mut mtu = MTU;
    let mut controller = factory(name).build(now, DATAGRAM);
    for step in 0..STEPS {
        let context = || format!("{name}, seed {seed}, step {step}");
        let rtt = &estimators[usize::try_from(random.below(3)).expect("below 3")];
        let before = controller.metrics().congestion_window;
        let mut earned = 0;
        match random.below(40) {
            0..=9 => controller.on_sent(now, random.below(65_536), step),
            10..=19 => {
                for _ in 0..random.below(20) {
                    let bytes = random.below(65_536);
                    earned += bytes;
                    let sent = random.instant(start, now);
                    controller.on_ack(now, sent, bytes, random.below(4) == 0, rtt);
                }
                controller.on_end_acks(
                    now,
                    random.below(1 << 24),
                    random.below(4) == 0,
                    Some(step),
                );
            }
            20 => {
                earned = random.below(65_536);
                controller.on_ack(now, random.instant(start, now), earned, false, rtt);
            }
            21 => controller.on_end_acks(now, random.below(1 << 30), random.below(2) == 0, None),
            22..=23 => {
                let lost = random.below(65_536);
                let sent = random.instant(start, now);
                controller.on_congestion_event(now, sent, random.below(8) == 0, lost);
            }
            24 => controller.on_congestion_event(now, random.instant(start, now), false, 0),
            25 => {
                mtu = random.below(65_536).max(1);
                controller.on_mtu_update(u16::try_from(mtu).expect("below 2^16"));
                // The floor or the initial window may lift it, by that much.
                earned = 10 * mtu;
            }
            26 => controller = controller.clone_box(),
            27 if random.below(20) == 0 => now += Duration::from_secs(random.below(1_000_000)),
            28 => {
                now = now
                    .checked_sub(Duration::from_millis(random.below(50)))
                    .unwrap_or(now)
            }
            _ => now += Duration::from_micros(random.below(20_000)),
        }
        let after = controller.metrics().congestion_window;
        assert_eq!(controller.window(), after + 1, "{}", context());
        assert!(after <= 1 << 62, "{after} at {}", context());
        // With PRR, the window follows the bytes in flight during recovery (RFC 9937), and those are arbitrary here.
        if !name.contains("prr") {
            assert!(after >= mtu * 2, "{after} at {}", context());
            assert!(
                after <= before + earned + mtu,
                "{before} to {after} for {earned} at {}",
                context()
            );
        }
    }
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

    /// Mostly a little before `now`; now and then from before the start, or from the future.
    fn instant(&mut self, start: Instant, now: Instant) -> Instant {
        let span = Duration::from_millis(self.below(400));
        match self.below(20) {
            0 => now + span,
            1 => start.checked_sub(span).unwrap_or(start),
            2 => now,
            _ => now.checked_sub(span).unwrap_or(start),
        }
    }
}
