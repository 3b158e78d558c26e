//! Every impairment in its place in the pipe: what it takes, what it lets through, and that nothing is lost on the way.

use std::time::Duration;

use netsim::{
    BurstLoss, Change, CoDelConfig, Discipline, Ecn, FlowId, FqCoDelConfig, Jitter, Mishaps,
    Packet, PipeConfig, Policer, RandomStreams, Shaper, Slots, Thinning, Trace,
};
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::bench::{Bench, ms, percent, row, span_ms};

const KB: ByteCount = ByteCount::new(1_000);

fn fast() -> PipeConfig {
    PipeConfig {
        rate: Rate::from_mbps(800),
        delay: span_ms(5),
        ..PipeConfig::default()
    }
}

/// One packet of 1 kB per millisecond.
fn steady(config: PipeConfig, count: u64) -> Bench {
    let mut bench = Bench::new(config);
    for n in 0..count {
        bench.send(ms(n), 1_000);
    }
    bench.drain();
    bench
}

#[test]
fn what_is_larger_than_the_link_carries_is_dropped() {
    let mut bench = Bench::new(PipeConfig {
        largest_packet: ByteCount::new(1_500),
        ..fast()
    });
    for size in [1_500, 1_501, 9_000, 40] {
        bench.send(ms(1), size);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [1, 4]);
    assert_eq!(
        bench.pipe.counters().dropped_too_large.bytes,
        ByteCount::new(10_501)
    );
}

#[test]
fn the_policer_lets_its_burst_through_and_then_its_rate() {
    // 1 kB per ms offered, 0.5 kB per ms allowed, 10 kB at once.
    let bench = steady(
        PipeConfig {
            policer: Some(Policer {
                rate: Rate::from_mbps(4),
                burst: KB * 10,
            }),
            ..fast()
        },
        1_000,
    );
    let counters = bench.pipe.counters();
    // 10 + 0.5 per ms over 999 ms.
    assert!(
        counters.delivered.packets.abs_diff(509) <= 1,
        "{counters:?}"
    );
    assert_eq!(
        counters.dropped_policed.packets,
        1_000 - counters.delivered.packets
    );
    // It never delays.
    let base = Duration::from_micros(5_010);
    for (at, number) in &bench.arrived {
        assert_eq!(*at, ms(*number - 1) + base);
    }
}

#[test]
fn the_shaper_delays_what_the_policer_would_drop() {
    let bench = steady(
        PipeConfig {
            shaper: Some(Shaper {
                rate: Rate::from_mbps(4),
                burst: KB * 10,
            }),
            ..fast()
        },
        1_000,
    );
    let counters = bench.pipe.counters();
    assert_eq!(counters.delivered.packets, 1_000);
    // 990 kB wait for tokens at 0.5 kB per ms.
    let last = bench.arrived.last().expect("all came").0;
    let wanted = ms(1_980 + 5);
    assert!(last.saturating_since(wanted) < span_ms(2), "{last}");
    assert!(wanted.saturating_since(last) < span_ms(2), "{last}");
}

#[test]
fn a_packet_larger_than_the_shaper_s_bucket_does_not_block_the_others() {
    let mut bench = Bench::new(PipeConfig {
        shaper: Some(Shaper {
            rate: Rate::from_mbps(4),
            burst: KB,
        }),
        ..fast()
    });
    for size in [1_000, 1_001, 1_000] {
        bench.send(ms(1), size);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [1, 3]);
}

#[test]
fn bursts_of_loss_have_the_mean_and_the_length_asked_for() {
    let mut config = fast();
    config.burst_loss = Some(BurstLoss::PerPacket {
        to_bad: "0.2525 %".parse().unwrap(),
        to_good: percent(25),
        loss_in_good: Fraction::ZERO,
        loss_in_bad: Fraction::ONE,
    });
    let bench = steady(config, 200_000);
    let lost = bench.pipe.counters().dropped_loss_after.packets;
    // 2,000 expected; bursts of four make the deviation about 118.
    assert!(lost.abs_diff(2_000) < 480, "{lost}");
    let mut runs = 0;
    let mut expected = 1;
    for number in bench.numbers() {
        runs += u64::from(number != expected);
        expected = number + 1;
    }
    let hundredths = lost * 100 / runs;
    assert!((340..470).contains(&hundredths), "{lost} in {runs} runs");
}

#[test]
fn late_doubled_and_damaged_packets_are_where_their_shares_say() {
    let bench = steady(
        PipeConfig {
            mishaps: Mishaps {
                reorder: percent(1),
                reorder_delay: span_ms(20),
                duplicate: percent(2),
                corrupt: percent(3),
            },
            ..fast()
        },
        20_000,
    );
    let counters = bench.pipe.counters();
    // 400 and 600 expected, deviations of 20 and 24.
    assert!(
        counters.duplicated.packets.abs_diff(400) < 80,
        "{counters:?}"
    );
    assert!(
        counters.delivered_corrupt.packets.abs_diff(612) < 100,
        "{counters:?}"
    );
    assert_eq!(
        bench.arrived.len() as u64,
        20_000 + counters.duplicated.packets
    );
    let numbers = bench.numbers();
    let late = numbers.windows(2).filter(|pair| pair[1] < pair[0]).count();
    // 200 late packets; two neighbours that are both late count once.
    assert!(late.abs_diff(200) < 56, "{late}");
}

#[test]
fn jitter_keeps_the_order_unless_asked_not_to() {
    for (jitter, keeps_order) in [
        (
            Jitter::Walk {
                amplitude: span_ms(20),
            },
            true,
        ),
        (
            Jitter::IidClamped {
                amplitude: span_ms(20),
            },
            true,
        ),
        (
            Jitter::Wifi {
                level: Duration::from_micros(12_500),
            },
            true,
        ),
        (
            Jitter::IidReorder {
                amplitude: span_ms(20),
            },
            false,
        ),
    ] {
        let bench = steady(
            PipeConfig {
                jitter: Some(jitter),
                ..fast()
            },
            2_000,
        );
        let numbers = bench.numbers();
        assert_eq!(numbers.len(), 2_000);
        assert_eq!(numbers.is_sorted(), keeps_order, "{jitter:?}");
        assert!(bench.arrived.is_sorted_by_key(|(at, _)| *at));
        let delays = bench
            .arrived
            .iter()
            .map(|(at, n)| at.saturating_since(ms(*n - 1)));
        let most = delays.max().expect("some");
        assert!(most > span_ms(8), "{jitter:?}: {most:?}");
    }
}

#[test]
fn thinning_keeps_every_third_small_packet_and_all_large_ones() {
    let mut bench = Bench::new(PipeConfig {
        thinning: Some(Thinning {
            at_most: ByteCount::new(100),
            every: 3,
            hold: span_ms(50),
        }),
        ..fast()
    });
    for n in 0..9 {
        bench.send(ms(n), 80);
    }
    bench.send(ms(20), 1_000);
    bench.send(ms(21), 80);
    bench.drain();
    assert_eq!(bench.numbers(), [3, 6, 9, 10, 11]);
    // The last one had no others to wait for.
    assert_eq!(bench.arrived[4].0, ms(71 + 5) + Duration::from_nanos(800));
    assert_eq!(bench.pipe.counters().dropped_thinned.packets, 6);
}

#[test]
fn slots_release_at_multiples_of_their_period() {
    let bench = steady(
        PipeConfig {
            slots: Some(Slots {
                period: span_ms(20),
                at_most: None,
            }),
            ..fast()
        },
        200,
    );
    assert_eq!(bench.numbers().len(), 200);
    assert!(bench.numbers().is_sorted());
    for (at, _) in &bench.arrived {
        assert_eq!(at.as_nanos() % 20_000_000, 0, "{at}");
    }
}

#[test]
fn a_trace_sets_the_rate_slot_by_slot() {
    // A slot of 1500 B every 2 ms, and none in the last 10 of 20 ms.
    let trace: Trace = "2\n4\n6\n8\n10\n20\n".parse().expect("a trace");
    let mut bench = Bench::new(PipeConfig {
        trace: Some(trace),
        ..PipeConfig::default()
    });
    for _ in 0..8 {
        bench.send(ms(1), 1_500);
    }
    bench.drain();
    let at: Vec<u64> = bench
        .nanos()
        .iter()
        .map(|nanos| nanos / 1_000_000)
        .collect();
    assert_eq!(at, [2, 4, 6, 8, 10, 20, 22, 24]);
}

/// Sends twice the rate for ten seconds, with this ECN field.
fn overloaded(discipline: Discipline, ecn: Ecn) -> netsim::Pipe<u64> {
    let config = PipeConfig {
        rate: Rate::from_mbps(8),
        queue_packets: 1_000,
        discipline,
        ..PipeConfig::default()
    };
    let mut pipe = netsim::Pipe::new(config, &RandomStreams::new(1), "forward").expect("good");
    for n in 0..20_000 {
        let now = Timestamp::from_micros(n * 500);
        pipe.advance(now, &mut |_, _| {});
        let packet = Packet {
            flow: FlowId(u32::try_from(n % 3).expect("small")),
            ecn,
            ..Packet::new(KB, n)
        };
        pipe.arrive(now, packet);
        assert!(pipe.counters().is_balanced(), "{:?}", pipe.counters());
    }
    pipe
}

#[test]
fn disciplines_mark_what_can_be_marked_and_drop_the_rest() {
    let codel = CoDelConfig {
        ecn: true,
        ..CoDelConfig::default()
    };
    let fq = FqCoDelConfig {
        codel,
        ..FqCoDelConfig::default()
    };
    for discipline in [Discipline::CoDel(codel), Discipline::FqCoDel(fq)] {
        let pipe = overloaded(discipline, Ecn::Ect0);
        let counters = pipe.counters();
        assert!(counters.marked.packets > 20, "{counters:?}");
        assert_eq!(counters.dropped_aqm.packets, 0, "{counters:?}");
        let pipe = overloaded(discipline, Ecn::NotEct);
        let counters = pipe.counters();
        assert_eq!(counters.marked.packets, 0, "{counters:?}");
        assert!(counters.dropped_aqm.packets > 20, "{counters:?}");
    }
    let pipe = overloaded(Discipline::DropTail, Ecn::Ect0);
    assert_eq!(
        pipe.counters().dropped_aqm.packets + pipe.counters().marked.packets,
        0
    );
    assert!(pipe.counters().dropped_queue.packets > 8_000);
}

/// Marks in place of drops leave every random loss where it was: what either run misses is what a long queue misses
/// too, and what the discipline dropped.
#[test]
fn marking_does_not_shift_the_random_losses() {
    let arrived = |discipline, ecn| {
        let config = PipeConfig {
            rate: Rate::from_mbps(8),
            discipline,
            loss: percent(5),
            ..PipeConfig::default()
        };
        let mut pipe = netsim::Pipe::new(config, &RandomStreams::new(1), "forward").expect("good");
        let mut arrived = vec![false; 10_000];
        let mut note = |_, packet: Packet<usize>| arrived[packet.payload] = true;
        for n in 0..10_000 {
            let now = Timestamp::from_micros(n * 800);
            pipe.advance(now, &mut note);
            let number = usize::try_from(n).expect("small");
            let packet = Packet::new(KB, number);
            pipe.arrive(now, Packet { ecn, ..packet });
        }
        pipe.advance(Timestamp::from_secs(100), &mut note);
        (arrived, pipe.counters().clone())
    };
    let (plain, _) = arrived(Discipline::DropTail, Ecn::NotEct);
    let discipline = Discipline::CoDel(CoDelConfig {
        ecn: true,
        ..CoDelConfig::default()
    });
    let wrong = [Ecn::Ect0, Ecn::NotEct].map(|ecn| {
        let (arrived, counters) = arrived(discipline, ecn);
        assert_eq!(counters.marked.packets > 100, ecn == Ecn::Ect0);
        let pairs = || plain.iter().zip(&arrived);
        let came_now = pairs().filter(|(plain, now)| !**plain && **now).count();
        let gone = plain.iter().filter(|has_arrived| !**has_arrived).count();
        let lost = counters.dropped_loss_after.packets;
        let gone_now = arrived.iter().filter(|has_arrived| !**has_arrived).count() as u64;
        assert!(gone > 400 && lost > 300);
        assert_eq!(gone_now, lost + counters.dropped_aqm.packets);
        came_now
    });
    assert_eq!(wrong, [0, 0]);
    row(
        "seed independence, ECN on and off: lost packets that now arrive",
        format!("{}, {}", wrong[0], wrong[1]),
        "0 of 10,000, 0 of 10,000",
    );
}

/// Everything at once.
fn everything() -> PipeConfig {
    PipeConfig {
        largest_packet: ByteCount::new(1_500),
        thinning: Some(Thinning {
            at_most: ByteCount::new(100),
            every: 2,
            hold: span_ms(3),
        }),
        policer: Some(Policer {
            rate: Rate::from_mbps(35),
            burst: KB * 20,
        }),
        shaper: Some(Shaper {
            rate: Rate::from_mbps(30),
            burst: KB * 20,
        }),
        rate: Rate::from_mbps(50),
        delay: span_ms(5),
        jitter: Some(Jitter::IidReorder {
            amplitude: span_ms(4),
        }),
        slots: Some(Slots {
            period: span_ms(2),
            at_most: Some(40),
        }),
        queue: KB * 200,
        queue_packets: 150,
        discipline: Discipline::FqCoDel(FqCoDelConfig::default()),
        loss: percent(1),
        burst_loss: Some(BurstLoss::PerTime {
            mean_good: span_ms(500),
            mean_bad: span_ms(5),
            loss_in_good: Fraction::ZERO,
            loss_in_bad: percent(50),
        }),
        mishaps: Mishaps {
            reorder: percent(1),
            reorder_delay: span_ms(7),
            duplicate: percent(1),
            corrupt: percent(1),
        },
        ..PipeConfig::default()
    }
}

/// 5 s of packets of all sizes, more than the link carries now and then.
fn stress(config: PipeConfig, changes: &[(u64, Change)], step: Duration) -> Bench {
    let mut bench = Bench::new(config);
    for (at, change) in changes {
        bench
            .pipe
            .schedule(ms(*at), *change)
            .expect("a good change");
    }
    let mut now = Timestamp::ZERO;
    for n in 0..25_000_u64 {
        bench.send(now, 60 + (n * n * 31) % 1_500);
        now += if n % 1_000 < 700 { step } else { step * 3 };
    }
    bench.drain();
    bench
}

#[test]
fn with_everything_at_once_every_packet_is_accounted_for_and_a_run_repeats() {
    let run = || stress(everything(), &[], Duration::from_micros(150));
    let (first, again) = (run(), run());
    assert_eq!(
        first.pipe.counters().digest(),
        again.pipe.counters().digest()
    );
    assert_eq!(first.arrived, again.arrived);
    let counters = first.pipe.counters();
    for tally in [
        counters.dropped_too_large,
        counters.dropped_thinned,
        counters.dropped_policed,
        counters.dropped_loss_after,
        counters.duplicated,
        counters.delivered_corrupt,
    ] {
        assert!(tally.packets > 0, "{counters:?}");
    }
    assert_eq!(counters.inside().packets, 0);
    let came_in = counters.offered.bytes + counters.duplicated.bytes;
    let came_out = counters.delivered.bytes + counters.dropped().bytes;
    row(
        "byte conservation, every stage at once: offered and copied, off by",
        format!(
            "{} B, {} B",
            came_in.as_u64(),
            came_in.as_u64().abs_diff(came_out.as_u64())
        ),
        "0 B",
    );
}

/// What is set at an instant before the first packet is as good as what is set at the start.
#[test]
fn a_change_at_the_beginning_is_the_same_as_a_setting() {
    let all = everything();
    let plain = PipeConfig {
        delay: all.delay,
        ..PipeConfig::default()
    };
    let changes: Vec<(u64, Change)> = [
        Change::LargestPacket(all.largest_packet),
        Change::Thinning(all.thinning),
        Change::Policer(all.policer),
        Change::Shaper(all.shaper),
        Change::Rate(all.rate),
        Change::Jitter(all.jitter),
        Change::Slots(all.slots),
        Change::Queue(all.queue),
        Change::QueuePackets(all.queue_packets),
        Change::Discipline(all.discipline),
        Change::Loss(all.loss),
        Change::BurstLoss(all.burst_loss),
        Change::Mishaps(all.mishaps),
    ]
    .into_iter()
    .map(|change| (0, change))
    .collect();
    let set = stress(all.clone(), &[], Duration::from_micros(150));
    let changed = stress(plain, &changes, Duration::from_micros(150));
    assert_eq!(*changed.pipe.config(), all);
    assert_eq!(set.arrived, changed.arrived);
}

/// Each kind of change in the middle of the stress, on and off again: nothing is lost or doubled by it.
#[test]
fn every_change_leaves_the_books_balanced() {
    let all = everything();
    let off = PipeConfig {
        delay: span_ms(5),
        rate: Rate::from_mbps(50),
        ..PipeConfig::default()
    };
    let kinds = [
        Change::LargestPacket(ByteCount::ZERO),
        Change::Thinning(None),
        Change::Policer(None),
        Change::Shaper(None),
        Change::Rate(Rate::ZERO),
        Change::Delay(Duration::ZERO),
        Change::Jitter(None),
        Change::Slots(None),
        Change::Queue(ByteCount::ZERO),
        Change::QueuePackets(0),
        Change::Discipline(Discipline::DropTail),
        Change::Loss(Fraction::ZERO),
        Change::BurstLoss(None),
        Change::Mishaps(Mishaps::default()),
    ];
    for kind in kinds {
        let (on, off) = (
            all.setting(&kind).expect("a setting"),
            off.setting(&kind).expect("one"),
        );
        let changes = [(500, off), (1_500, on), (2_500, off), (3_500, on)];
        let bench = stress(all.clone(), &changes, Duration::from_micros(150));
        let counters = bench.pipe.counters();
        assert!(counters.is_balanced(), "{kind:?}: {counters:?}");
        assert_eq!(counters.inside().packets, 0, "{kind:?}");
        assert_eq!(
            bench.arrived.len() as u64,
            counters.delivered.packets,
            "{kind:?}"
        );
    }
}

/// Each kind of chance has a stream of its own: switching one on moves the losses of no other packet.
#[test]
fn no_impairment_shifts_the_random_losses() {
    let lossy = PipeConfig {
        loss: percent(10),
        ..fast()
    };
    let numbers = |config: PipeConfig| {
        let mut numbers = steady(config, 3_000).numbers();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let plain = numbers(lossy.clone());
    let mut otherwise = Vec::new();
    for config in [
        PipeConfig {
            jitter: Some(Jitter::IidReorder {
                amplitude: span_ms(9),
            }),
            ..lossy.clone()
        },
        PipeConfig {
            mishaps: everything().mishaps,
            ..lossy.clone()
        },
        PipeConfig {
            slots: everything().slots,
            ..lossy.clone()
        },
        PipeConfig {
            shaper: Some(Shaper {
                rate: Rate::from_mbps(9),
                burst: KB * 20,
            }),
            ..lossy.clone()
        },
        PipeConfig {
            discipline: Discipline::CoDel(CoDelConfig::default()),
            ..lossy.clone()
        },
    ] {
        let numbers = numbers(config.clone());
        assert_eq!(numbers, plain, "{config:?}");
        let lost_now = plain.iter().filter(|number| !numbers.contains(number));
        let came_now = numbers.iter().filter(|number| !plain.contains(number));
        otherwise.push((lost_now.count() + came_now.count()).to_string());
    }
    row(
        "seed independence, jitter, mishaps, slots, shaper, CoDel: packets that fare otherwise",
        otherwise.join(", "),
        "0 of 3,000 each",
    );
    let burst = PipeConfig {
        burst_loss: everything().burst_loss,
        ..lossy
    };
    assert!(numbers(burst).iter().all(|number| plain.contains(number)));
}
