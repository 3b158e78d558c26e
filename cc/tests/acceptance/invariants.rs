//! A27 and A28: what holds whatever comes, and however it is sliced.

use std::time::Duration;

use cc::loss_based::LARGEST_WINDOW;
use cc::testing::TestPath;
use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LossBasedOptions, LostPacket, RttEstimator,
    SentEvent, State,
};
use units::{ByteCount, Rate, Timestamp};

use crate::{PACKET, cut_at, ms, report};

const CALLS: u64 = 1_000_000;

/// SplitMix64.
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

    fn is_one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// Mostly the next few milliseconds; sometimes the same instant, the past, or eleven days on.
    fn instant_after(&mut self, now: Timestamp) -> Timestamp {
        match self.below(20) {
            0 => now + Duration::from_secs(self.below(1_000_000)),
            1 => now.saturating_sub(Duration::from_millis(self.below(10_000))),
            2..=6 => now,
            _ => now + Duration::from_micros(self.below(20_000)),
        }
    }

    fn bytes(&mut self) -> ByteCount {
        ByteCount::new(match self.below(4) {
            0 => self.below(65_536),
            1 => 0,
            _ => 1_200,
        })
    }

    fn packet(&mut self, now: Timestamp) -> AckedPacket {
        AckedPacket {
            packet_number: self.below(1_000),
            // Now and then a packet that left later than now.
            sent_at: if self.is_one_in(50) {
                now + Duration::from_millis(self.below(100))
            } else {
                now.saturating_sub(Duration::from_millis(self.below(300)))
            },
            size: self.bytes(),
            is_app_limited: self.is_one_in(4),
            tx_in_flight: self.bytes(),
        }
    }
}

fn lost(packet: AckedPacket) -> LostPacket {
    LostPacket {
        packet_number: packet.packet_number,
        sent_at: packet.sent_at,
        size: packet.size,
        is_app_limited: packet.is_app_limited,
        tx_in_flight: packet.tx_in_flight,
        lost_since_sent: packet.size,
        send_tag: 0,
    }
}

/// Every loss-based controller, with everything off, by default, and with everything on.
fn algorithms() -> Vec<Algorithm> {
    let off = LossBasedOptions {
        hystart: false,
        abe: false,
        prr: false,
        fast_convergence: false,
        undo: false,
        pacing: false,
    };
    let on = LossBasedOptions {
        hystart: true,
        abe: true,
        prr: true,
        fast_convergence: true,
        undo: true,
        pacing: true,
    };
    let mut all = Vec::new();
    for options in [off, LossBasedOptions::DEFAULT, on] {
        all.push(Algorithm::NewReno(options));
        all.push(Algorithm::Cubic(options));
    }
    all
}

// Not a story but noise: no order of time, packets that never left, sizes out of proportion.
#[test]
fn a27_no_sequence_of_calls_breaks_a_promise() {
    let algorithms = algorithms();
    let each = CALLS.div_ceil(algorithms.len() as u64);
    for (seed, algorithm) in (1..).zip(&algorithms) {
        batter(*algorithm, Random(seed), each);
    }
    report("A27/calls", each * algorithms.len() as u64, CALLS);
}

fn batter(algorithm: Algorithm, mut random: Random, calls: u64) {
    let mut controller = algorithm.build(PACKET);
    let mut rtt = RttEstimator::new();
    let mut now = Timestamp::from_secs(5);
    for call in 0..calls {
        now = random.instant_after(now);
        let before = (controller.window(), controller.state());
        let mut acked_bytes = None;
        match random.below(12) {
            0..=4 => {
                let bytes = random.bytes();
                controller.on_sent(
                    now,
                    &SentEvent {
                        bytes,
                        in_flight: controller.window().min(bytes * random.below(300)),
                        is_app_limited: random.is_one_in(5),
                        was_idle: random.is_one_in(3),
                    },
                );
            }
            5 => controller.on_app_limited(now),
            6 => controller.on_pto(now),
            7 if random.is_one_in(20) => {
                controller.on_mtu_change(now, ByteCount::new(random.below(70_000)));
            }
            _ => acked_bytes = Some(feed(controller.as_mut(), &mut rtt, &mut random, now)),
        }
        let context = || format!("{algorithm}, call {call}");
        check(controller.as_mut(), &rtt, &context());
        if let Some(acked) = acked_bytes.filter(|_| !has_prr(algorithm)) {
            assert_growth(controller.as_ref(), before, acked, &context());
        }
    }
}

fn has_prr(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::NewReno(options) | Algorithm::Cubic(options) if options.prr
    )
}

/// Makes up one feedback event and returns the bytes it acknowledges; `None` in its place if it may undo a cut.
fn feed(
    controller: &mut dyn Controller,
    rtt: &mut RttEstimator,
    random: &mut Random,
    now: Timestamp,
) -> Growth {
    let acked: Vec<AckedPacket> = (0..random.below(5)).map(|_| random.packet(now)).collect();
    let mut losses = |odds: u64| -> Vec<LostPacket> {
        let count = if random.is_one_in(odds) {
            random.below(4)
        } else {
            0
        };
        (0..count).map(|_| lost(random.packet(now))).collect()
    };
    let (lost, late) = (losses(20), losses(20));
    let sample = Duration::from_micros(random.below(300_000));
    rtt.update(sample, Duration::ZERO);
    let event = FeedbackEvent {
        acked: &acked,
        lost: &lost,
        late: &late,
        is_persistent_congestion: random.is_one_in(300),
        ce_count: u64::from(random.is_one_in(100)),
        largest_acked_sent_at: acked.last().map(|packet| packet.sent_at),
        in_flight_before: controller.window().scale(random.below(4), 3),
        in_flight: ByteCount::new(random.below(100_000)),
        rtt,
        latest_rtt: (!random.is_one_in(3)).then_some(sample),
        sample: None,
        is_round_start: false,
        round_count: 0,
    };
    controller.on_feedback(now, &event);
    Growth {
        acked: acked.iter().map(|packet| packet.size).sum(),
        may_undo: !late.is_empty(),
    }
}

struct Growth {
    acked: ByteCount,
    may_undo: bool,
}

fn check(controller: &mut dyn Controller, rtt: &RttEstimator, context: &str) {
    let window = controller.window();
    assert!(window >= controller.minimum_window(), "{window}: {context}");
    let is_prr = controller.state() == State::Recovery;
    assert!(is_prr || window <= LARGEST_WINDOW, "{window}: {context}");
    assert!(controller.pacing_rate(rtt) > Rate::ZERO, "{context}");
    while controller.take_transition().is_some() {}
}

/// In slow start by what is acknowledged at most, so twice per round trip; in congestion avoidance by half of it, so
/// 1.5 times, and a datagram, which NewReno pays for in advance and the Reno-friendly region may be ahead by.
fn assert_growth(
    controller: &dyn Controller,
    (window, state): (ByteCount, State),
    growth: Growth,
    context: &str,
) {
    if growth.may_undo {
        return;
    }
    let step = controller.window() - window;
    let datagram = controller.max_datagram_size();
    let bound = match state {
        State::SlowStart | State::ConservativeSlowStart => growth.acked + datagram,
        _ => growth.acked.scale(1, 2) + datagram,
    };
    assert!(
        step <= bound,
        "{window} by {step} for {}: {context}",
        growth.acked
    );
}

// RFC 9438 section 4.5, in bytes: neither packets nor events are what is counted.
#[test]
fn a28_growth_does_not_depend_on_how_acknowledgements_are_sliced() {
    let rtt = ms(100);
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let play = |events: usize, pieces: u64| {
            let mut path = cut_at(algorithm, 100, rtt);
            path.batch_rounds(rtt, 5);
            for _ in 0..20 {
                let count = path.window().as_u64() / PACKET.as_u64();
                for _ in 0..count * pieces {
                    path.send_bytes(PACKET.scale(1, pieces));
                }
                path.wait(rtt);
                let share = path.packets_in_flight().div_ceil(events);
                while path.packets_in_flight() > 0 {
                    path.ack(share.min(path.packets_in_flight()));
                }
            }
            path.window().as_u64()
        };
        let whole = play(1, 1);
        let mut most = 0;
        for (events, pieces) in [(2, 1), (usize::MAX, 1), (1, 2), (2, 4), (usize::MAX, 12)] {
            most = most.max(play(events, pieces).abs_diff(whole));
        }
        report(
            &format!("A28/slices/{algorithm}"),
            format!("{most}B-of-{whole}B"),
            "<=0.5%",
        );
        assert!(most * 200 <= whole, "{most} of {whole}");
    }
}

#[test]
fn a28_twice_the_datagram_gives_twice_the_bytes() {
    let rtt = ms(100);
    let play = |datagram: u64| {
        let datagram = ByteCount::new(datagram);
        let mut path = TestPath::with_controller(Algorithm::CUBIC.build(datagram));
        // The initial window is not ten datagrams for all sizes, so it is filled up to that.
        path.send_bytes(datagram * 10 - path.window());
        path.wait(rtt);
        path.ack(path.packets_in_flight());
        path.grow_to(100, rtt);
        path.cut(rtt);
        path.batch_rounds(rtt, 80)
    };
    let (small, large) = (play(1_200), play(2_400));
    let apart = |(a, b): (&ByteCount, &ByteCount)| (*a * 2).as_u64().abs_diff(b.as_u64());
    let most = small.iter().zip(&large).map(apart).max().unwrap_or(0);
    report("A28/twice-the-datagram", format!("{most}B"), "<=2400B");
    assert!(most <= 2_400, "{most}");
}
