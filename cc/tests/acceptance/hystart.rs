//! A18: HyStart++ by delay samples.
//!
//! The flow here is played by hand, event by event, because the samples are to jitter while the packets stay in order.

use std::time::Duration;

use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LossBasedOptions, RttEstimator, SentEvent,
    State, Trigger,
};
use units::{ByteCount, Timestamp};

use crate::{PACKET, ms, report};

/// A flow that sends a window evenly over each round trip and has every packet acknowledged by itself.
struct Flow {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    now: Timestamp,
}

impl Flow {
    fn new(algorithm: Algorithm) -> Self {
        Self {
            controller: algorithm.build(PACKET),
            rtt: RttEstimator::new(),
            now: Timestamp::from_secs(1),
        }
    }

    /// Plays a round of the window, or of `most` packets, with the samples given.
    fn round(&mut self, most: u64, mut sample: impl FnMut() -> Duration) -> u64 {
        let window = self.controller.window();
        let count = (window.as_u64() / PACKET.as_u64()).min(most);
        let sent_at = self.now;
        for sent in 1..=count {
            self.controller.on_sent(
                sent_at,
                &SentEvent {
                    bytes: PACKET,
                    in_flight: PACKET * sent,
                    is_app_limited: false,
                    was_idle: sent == 1,
                },
            );
        }
        for left in (0..count).rev() {
            let sample = sample();
            self.now = self.now.max(sent_at + sample);
            self.rtt.update(sample, Duration::ZERO);
            let acked = [AckedPacket {
                packet_number: 0,
                sent_at,
                size: PACKET,
                is_app_limited: false,
                tx_in_flight: window,
            }];
            let event = FeedbackEvent {
                acked: &acked,
                lost: &[],
                late: &[],
                is_persistent_congestion: false,
                ce_count: 0,
                largest_acked_sent_at: Some(sent_at),
                in_flight_before: PACKET * (left + 1),
                in_flight: PACKET * left,
                rtt: &self.rtt,
                latest_rtt: Some(sample),
                sample: None,
                is_round_start: false,
                round_count: 0,
            };
            self.controller.on_feedback(self.now, &event);
        }
        self.now += Duration::from_nanos(1);
        count
    }

    fn triggers(&mut self) -> Vec<Trigger> {
        std::iter::from_fn(|| self.controller.take_transition())
            .map(|transition| transition.trigger)
            .collect()
    }
}

// RFC 9406 section 4.3 at the controller: the smallest rise that counts, to the microsecond.
#[test]
fn a18_slow_start_turns_careful_at_the_threshold() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        for (base_ms, threshold_us) in [
            (10, 4_000),
            (32, 4_000),
            (60, 7_500),
            (100, 12_500),
            (128, 16_000),
            (200, 16_000),
        ] {
            let risen = |micros: u64| {
                let mut flow = Flow::new(algorithm);
                flow.round(u64::MAX, || ms(base_ms));
                flow.round(u64::MAX, || ms(base_ms) + Duration::from_micros(micros));
                flow.controller.state() == State::ConservativeSlowStart
            };
            let least = (100..20_000).step_by(100).find(|&micros| risen(micros));
            report(
                &format!("A18/threshold({base_ms}ms)/{algorithm}"),
                format!("{}us", least.unwrap_or(0)),
                format!("{threshold_us}us"),
            );
            assert!(
                risen(threshold_us) && !risen(threshold_us - 1),
                "{base_ms} ms"
            );
        }
    }
}

#[test]
fn a18_seven_samples_are_never_enough() {
    let mut flow = Flow::new(Algorithm::CUBIC);
    flow.round(u64::MAX, || ms(40));
    for extra in 1..20 {
        flow.round(7, || ms(40 + 50 * extra));
    }
    assert_eq!(flow.triggers(), []);
    assert_eq!(flow.controller.state(), State::SlowStart);
}

#[test]
fn a18_off_means_off() {
    let options = LossBasedOptions::WITHOUT_HYSTART;
    for algorithm in [Algorithm::NewReno(options), Algorithm::Cubic(options)] {
        let mut flow = Flow::new(algorithm);
        for round in 0..8 {
            flow.round(u64::MAX, || ms(40 + 40 * round));
        }
        assert_eq!(flow.triggers(), []);
        assert_eq!(flow.controller.window(), PACKET * (10 << 8));
    }
}

// RFC 9406 section 4.3: five rounds, each of which grows the window by a quarter.
#[test]
fn a18_five_careful_rounds_end_slow_start_at_the_window_reached() {
    let mut flow = Flow::new(Algorithm::CUBIC);
    flow.round(u64::MAX, || ms(40));
    flow.round(u64::MAX, || ms(50));
    assert_eq!(flow.triggers(), [Trigger::RttIncreased]);
    // 20 packets: eight counted in full, twelve by a quarter.
    let mut window = PACKET * 31;
    assert_eq!(flow.controller.window(), window);
    for _ in 0..4 {
        let count = flow.round(u64::MAX, || ms(60));
        window += (PACKET * count).scale(1, 4);
        assert_eq!(flow.controller.window(), window);
    }
    flow.round(u64::MAX, || ms(60));
    assert_eq!(flow.triggers(), [Trigger::ConservativeRoundsCompleted]);
    // The acknowledgement that ends the fifth round still counts by a quarter.
    let wanted = window + PACKET.scale(1, 4);
    assert_eq!(flow.controller.ssthresh(), Some(wanted));
    assert!(flow.controller.window() <= wanted + PACKET);
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

#[test]
fn a18_jitter_of_3_ms_at_40_ms_does_not_end_slow_start() {
    let mut careful_count = 0;
    for seed in 0..100 {
        let mut random = Random(seed);
        let mut flow = Flow::new(Algorithm::CUBIC);
        while flow.controller.window() < PACKET * 5_000 {
            flow.round(u64::MAX, || {
                ms(37) + Duration::from_micros(random.below(6_001))
            });
            let triggers = flow.triggers();
            careful_count += triggers
                .iter()
                .filter(|&&trigger| trigger == Trigger::RttIncreased)
                .count();
            assert!(
                !triggers.contains(&Trigger::ConservativeRoundsCompleted),
                "seed {seed} at {}",
                flow.controller.window()
            );
        }
        assert_eq!(flow.controller.state(), State::SlowStart, "seed {seed}");
    }
    report(
        "A18/jitter-exits",
        "0-of-100",
        format!("0(turned-careful-{careful_count}-times)"),
    );
}

// A smoothed RTT would hide this, and a stale one would invent it: only the raw sample counts.
#[test]
fn a18_an_event_without_a_sample_is_no_sample() {
    let mut flow = Flow::new(Algorithm::CUBIC);
    flow.round(u64::MAX, || ms(40));
    let mut controller = flow.controller;
    let sent_at = flow.now;
    let mut late_rtt = RttEstimator::new();
    late_rtt.update(ms(400), Duration::ZERO);
    for _ in 0..50 {
        let event = FeedbackEvent {
            acked: &[],
            lost: &[],
            late: &[],
            is_persistent_congestion: false,
            ce_count: 0,
            largest_acked_sent_at: Some(sent_at),
            in_flight_before: ByteCount::ZERO,
            in_flight: ByteCount::ZERO,
            rtt: &late_rtt,
            latest_rtt: None,
            sample: None,
            is_round_start: false,
            round_count: 0,
        };
        controller.on_feedback(sent_at + ms(400), &event);
    }
    assert_eq!(controller.state(), State::SlowStart);
}
