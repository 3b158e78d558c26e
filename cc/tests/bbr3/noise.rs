//! Not a story but noise: no order of time, samples that no path could give, packets that never left. Nothing panics (debug
//! builds check each arrow of the state diagram), and the promises of the contract hold.
//!
//! Stories with the books of a real sender are in `random_operations`.

use std::time::Duration;

use cc::loss_based::LARGEST_WINDOW;
use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LostPacket, RateSample, RttEstimator,
    SentEvent,
};
use units::{ByteCount, Rate, Timestamp};

const SEEDS: u64 = 200;
const CALLS: u64 = 3_000;

#[test]
fn no_sequence_of_calls_breaks_a_promise() {
    let mut states = Vec::new();
    for seed in 0..SEEDS {
        batter(seed, &mut states);
    }
    states.sort_unstable();
    states.dedup();
    assert_eq!(states.len(), 7, "noise reaches every state: {states:?}");
}

fn batter(seed: u64, states: &mut Vec<&'static str>) {
    let mut random = Random(seed);
    let mut controller = Algorithm::Bbr3.build_with_seed(ByteCount::new(1_200), seed);
    let mut rtt = RttEstimator::new();
    let mut now = Timestamp::from_secs(5);
    let mut total_delivered = 0;
    let mut state = controller.state();
    let mut rounds = 0;
    for call in 0..CALLS {
        now = random.instant_after(now);
        match random.below(12) {
            0..=3 => controller.on_sent(
                now,
                &SentEvent {
                    bytes: random.bytes(),
                    in_flight: random.volume(),
                    is_app_limited: random.is_one_in(5),
                    was_idle: random.is_one_in(3),
                },
            ),
            4 => controller.on_app_limited(now),
            5 => controller.on_pto(now),
            6 if random.is_one_in(20) => {
                controller.on_mtu_change(now, ByteCount::new(random.below(70_000)));
            }
            _ => feed(
                controller.as_mut(),
                &mut rtt,
                &mut random,
                now,
                &mut total_delivered,
            ),
        }
        let context = format!("seed {seed}, call {call}");
        let window = controller.window();
        assert!(window >= controller.minimum_window(), "{context}: {window}");
        assert!(window <= LARGEST_WINDOW, "{context}: {window}");
        let rate = controller.pacing_rate(&rtt);
        assert!(rate > Rate::ZERO, "{context}");
        assert!(!rate.is_infinite(), "{context}");
        while let Some(transition) = controller.take_transition() {
            assert_eq!(transition.from, state, "{context}");
            state = transition.to;
            states.push(state.as_str());
        }
        assert_eq!(controller.state(), state, "{context}");
        let model = controller.path_model().expect("a model");
        assert!(model.round_count >= rounds, "{context}");
        rounds = model.round_count;
    }
    states.push(state.as_str());
}

/// Makes up one feedback event.
fn feed(
    controller: &mut dyn Controller,
    rtt: &mut RttEstimator,
    random: &mut Random,
    now: Timestamp,
    total_delivered: &mut u64,
) {
    let acked: Vec<AckedPacket> = (0..random.below(4))
        .map(|_| AckedPacket {
            packet_number: random.below(1_000),
            sent_at: random.departure(now),
            size: random.bytes(),
            is_app_limited: random.is_one_in(4),
            tx_in_flight: random.volume(),
        })
        .collect();
    let tag = controller.send_tag();
    let losses = |odds: u64, random: &mut Random| -> Vec<LostPacket> {
        let count = if random.is_one_in(odds) {
            random.below(8)
        } else {
            0
        };
        (0..count)
            .map(|_| LostPacket {
                packet_number: random.below(1_000),
                sent_at: random.departure(now),
                size: random.bytes(),
                is_app_limited: random.is_one_in(4),
                tx_in_flight: random.volume(),
                lost_since_sent: random.bytes(),
                send_tag: if random.is_one_in(2) { tag } else { 3 },
            })
            .collect()
    };
    let (lost, late) = (losses(12, random), losses(12, random));
    let latest = Duration::from_micros(random.below(300_000));
    rtt.update(latest, Duration::ZERO);
    let sum: ByteCount = acked.iter().map(|packet| packet.size).sum();
    *total_delivered += sum.as_u64();
    let sample = (!acked.is_empty() && !random.is_one_in(20)).then(|| RateSample {
        delivery_rate: (!random.is_one_in(10)).then(|| random.rate()),
        delivered: random.volume(),
        interval: latest,
        is_app_limited: random.is_one_in(4),
        prior_delivered: if random.is_one_in(3) {
            *total_delivered
        } else {
            random.below(*total_delivered + 1)
        },
        total_delivered: *total_delivered,
        lost: if random.is_one_in(5) {
            random.volume()
        } else {
            ByteCount::ZERO
        },
        tx_in_flight: random.volume(),
        send_tag: tag,
    });
    let event = FeedbackEvent {
        acked: &acked,
        lost: &lost,
        late: &late,
        is_persistent_congestion: random.is_one_in(100),
        ce_count: u64::from(random.is_one_in(50)),
        largest_acked_sent_at: acked.last().map(|packet| packet.sent_at),
        in_flight_before: random.volume(),
        in_flight: if random.is_one_in(3) {
            ByteCount::ZERO
        } else {
            random.volume()
        },
        rtt,
        latest_rtt: (!random.is_one_in(3)).then_some(latest),
        sample,
        is_round_start: false,
        round_count: 0,
    };
    controller.on_feedback(now, &event);
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
        self.next() % bound.max(1)
    }

    fn is_one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// Mostly the next few milliseconds; sometimes the same instant, the past, days on, or the end of time.
    fn instant_after(&mut self, now: Timestamp) -> Timestamp {
        match self.below(400) {
            0 => Timestamp::MAX,
            1..=8 => now + Duration::from_secs(self.below(1_000_000)),
            9..=28 => now.saturating_sub(Duration::from_millis(self.below(10_000))),
            29..=100 => now,
            _ => now + Duration::from_micros(self.below(20_000)),
        }
    }

    fn departure(&mut self, now: Timestamp) -> Timestamp {
        if self.is_one_in(50) {
            now + Duration::from_millis(self.below(100))
        } else {
            now.saturating_sub(Duration::from_millis(self.below(300)))
        }
    }

    fn bytes(&mut self) -> ByteCount {
        ByteCount::new(match self.below(4) {
            0 => self.below(65_536),
            1 => 0,
            _ => 1_200,
        })
    }

    fn volume(&mut self) -> ByteCount {
        match self.below(40) {
            0 => ByteCount::MAX,
            1 => ByteCount::new(self.next()),
            _ => ByteCount::new(self.below(300_000)),
        }
    }

    fn rate(&mut self) -> Rate {
        match self.below(40) {
            0 => Rate::from_bps(self.below(3)),
            1 => Rate::from_bps(self.next() >> 1),
            _ => Rate::from_kbps(self.below(20_000)),
        }
    }
}
