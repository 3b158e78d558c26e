//! Serialisation, delay, rate, queue and byte conservation.

use std::time::Duration;

use netsim::{Change, DropCause, LossPlace, PipeConfig, RandomStreams};
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::bench::{Bench, ms, percent, row, span_ms};

/// 1,000 bytes take 1 ms at this rate.
const MS_PER_KB: Rate = Rate::from_mbps(8);

#[test]
fn one_packet_takes_its_size_over_the_rate_rounded_up() {
    let (mut cases, mut worst) = (0, 0);
    for bps in [300, 64_000, 999_999, 7_000_000, 100_000_000, 97_300_000_000] {
        for size in [1, 40, 1_200, 1_350, 1_500, 65_535] {
            let mut bench = Bench::new(PipeConfig {
                rate: Rate::from_bps(bps),
                ..PipeConfig::default()
            });
            bench.send(ms(3), size);
            bench.drain();
            let nanos = (u128::from(size) * 8_000_000_000).div_ceil(u128::from(bps));
            let expected = 3_000_000 + u64::try_from(nanos).unwrap();
            assert_eq!(bench.nanos(), [expected], "{size} bytes at {bps} bit/s");
            cases += 1;
            worst = bench.nanos()[0].abs_diff(expected).max(worst);
        }
    }
    row(
        "serialisation, sizes and rates: largest error",
        format!("{worst} ns in {cases} cases"),
        "0 ns",
    );
}

#[test]
fn a_packet_on_an_idle_pipe_arrives_after_serialisation_plus_delay() {
    let (mut cases, mut worst) = (0, 0);
    for delay in [
        Duration::ZERO,
        Duration::from_nanos(1),
        span_ms(25),
        PipeConfig::LONGEST_DELAY,
    ] {
        let mut bench = Bench::new(PipeConfig {
            rate: Rate::from_mbps(7),
            delay,
            ..PipeConfig::default()
        });
        bench.send(ms(1), 1_500);
        bench.drain();
        // 12,000 bits at 7 Mbit/s: 1,714,285.7 ns.
        let expected = ms(1) + Duration::from_nanos(1_714_286) + delay;
        assert_eq!(bench.arrived, [(expected, 1)]);
        cases += 1;
        worst = bench.nanos()[0].abs_diff(expected.as_nanos()).max(worst);
    }
    row(
        "delay exactness, delays of 0 to 1 h: largest error",
        format!("{worst} ns in {cases} cases"),
        "0 ns",
    );
}

#[test]
fn the_caller_is_told_each_instant_at_which_something_happens() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        delay: span_ms(5),
        ..PipeConfig::default()
    });
    assert_eq!(bench.pipe.next_event(), None);
    bench.send(ms(10), 1_000);
    bench
        .pipe
        .schedule(ms(13), Change::Delay(span_ms(6)))
        .unwrap();
    let mut instants = Vec::new();
    while let Some(at) = bench.pipe.next_event() {
        instants.push(at);
        bench.run_until(at);
    }
    assert_eq!(instants, [ms(11), ms(13), ms(16)]);
}

#[test]
fn a_saturated_pipe_moves_its_rate_for_ten_seconds_to_within_a_packet() {
    for (bps, size) in [(7_000_000, 1_350), (64_000, 1_200), (99_999_999, 1_499)] {
        assert_rate_is_kept(Rate::from_bps(bps), size, Duration::from_secs(10));
    }
}

/// 64 B at 30 Gbit/s take 17.07 ns; rounding each up to 18 would lose 5 %, 30,000 packets here.
#[test]
fn the_rate_is_kept_when_packets_take_few_nanoseconds() {
    assert_rate_is_kept("30 Gbit/s".parse().unwrap(), 64, span_ms(10));
}

#[track_caller]
fn assert_rate_is_kept(rate: Rate, size: u64, time: Duration) {
    let mut bench = Bench::new(PipeConfig {
        rate,
        ..PipeConfig::default()
    });
    let due = rate.bytes_in(time).as_u64();
    for _ in 0..due / size + 2 {
        bench.send(Timestamp::ZERO, size);
    }
    bench.run_until(Timestamp::ZERO + time);
    let moved = bench.pipe.counters().delivered.bytes.as_u64();
    assert!(
        moved.abs_diff(due) <= size,
        "{moved} bytes moved, {due} due at {rate}"
    );
    assert!(
        bench.pipe.counters().queued.packets > 0,
        "the pipe was not saturated"
    );
    row(
        &format!(
            "rate conservation, {rate}, {}",
            units::format_duration(time)
        ),
        format!("{moved} B"),
        format!("{due} +- {size} B"),
    );
}

#[test]
fn packets_within_a_busy_period_stay_on_the_exact_line() {
    let mut bench = Bench::new(PipeConfig {
        rate: Rate::from_mbps(7),
        ..PipeConfig::default()
    });
    for _ in 0..100 {
        bench.send(Timestamp::ZERO, 1_500);
    }
    bench.drain();
    let line: Vec<u64> = (1..=100_u64)
        .map(|n| (n * 1_500 * 8 * 1_000).div_ceil(7))
        .collect();
    assert_eq!(bench.nanos(), line);
}

#[test]
fn an_infinite_rate_passes_everything_at_once_and_in_order() {
    let mut bench = Bench::new(PipeConfig {
        delay: span_ms(2),
        queue: ByteCount::ZERO,
        ..PipeConfig::default()
    });
    for _ in 0..50 {
        bench.send(ms(1), 1_500);
    }
    assert_eq!(bench.pipe.next_event(), Some(ms(3)));
    bench.drain();
    assert_eq!(bench.numbers(), (1..=50).collect::<Vec<_>>());
    assert!(bench.arrived.iter().all(|(at, _)| *at == ms(3)));
}

#[test]
fn neither_the_packet_in_service_nor_what_propagates_counts_towards_the_limit() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        delay: span_ms(100),
        queue: ByteCount::kb(2),
        ..PipeConfig::default()
    });
    // Ten packets propagate when the burst comes: one is served, two wait, the others find no room.
    for n in 0..10 {
        bench.send(ms(n), 1_000);
    }
    for _ in 0..5 {
        bench.send(ms(10), 1_000);
    }
    let counters = bench.pipe.counters();
    assert_eq!(
        (
            counters.in_flight.packets,
            counters.in_service.packets,
            counters.queued.packets
        ),
        (10, 1, 2)
    );
    assert_eq!(counters.dropped_by(DropCause::Queue).packets, 2);
    bench.drain();
    assert_eq!(bench.numbers(), (1..=13).collect::<Vec<_>>());
}

#[test]
fn a_packet_is_queued_only_if_it_fits_as_a_whole() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        queue: ByteCount::new(2_500),
        ..PipeConfig::default()
    });
    for size in [1_000, 1_500, 1_001, 1_000, 1] {
        bench.send(Timestamp::ZERO, size);
    }
    assert_eq!(bench.pipe.counters().max_queue, ByteCount::new(2_500));
    bench.drain();
    assert_eq!(bench.numbers(), [1, 2, 4]);

    // The largest backlog is remembered through smaller ones.
    bench.send(ms(100), 1_000);
    bench.send(ms(100), 1_000);
    assert_eq!(bench.pipe.counters().max_queue, ByteCount::new(2_500));
}

#[test]
fn without_a_queue_a_packet_passes_only_a_free_serialiser() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        queue: ByteCount::ZERO,
        ..PipeConfig::default()
    });
    // The third arrives at the very instant the first has left.
    for at in [Timestamp::ZERO, Timestamp::from_nanos(999_999), ms(1)] {
        bench.send(at, 1_000);
    }
    bench.drain();
    assert_eq!(bench.arrived, [(ms(1), 1), (ms(2), 3)]);
}

/// D/D/1/K: arrivals every 0.8 ms, service 1 ms, so a fifth is dropped once the queue is full.
#[test]
fn constant_overload_loses_its_excess_and_fills_the_queue_to_its_limit() {
    let limit = ByteCount::kb(20);
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        queue: limit,
        ..PipeConfig::default()
    });
    let mut at = Timestamp::ZERO;
    let mut dropped_before = 0;
    for n in 0..11_000 {
        if n == 1_000 {
            dropped_before = bench.pipe.counters().dropped_queue.packets;
        }
        bench.send(at, 1_000);
        at += Duration::from_micros(800);
    }
    let counters = bench.pipe.counters();
    let dropped = counters.dropped_queue.packets - dropped_before;
    assert!(dropped.abs_diff(2_000) <= 1, "{dropped} of 10,000 dropped");
    assert_eq!(counters.max_queue, limit);
    // The last to fit finds 19 waiting and one in service: 20 ms if that one has just begun, as
    // every 4 ms.
    assert_eq!(counters.queue_delay.max(), span_ms(20));
    row(
        "D/D/1/K, 1.25 times the rate, 20 kB: dropped of 10,000, longest queue, longest delay",
        format!(
            "{dropped}, {} B, {} ms",
            counters.max_queue.as_u64(),
            counters.queue_delay.max().as_millis()
        ),
        "2000 +- 1, 20000 B, 20 ms",
    );
}

#[test]
fn the_queue_delay_is_the_time_before_serialisation_begins() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        delay: span_ms(50),
        ..PipeConfig::default()
    });
    for _ in 0..4 {
        bench.send(ms(7), 1_000);
    }
    bench.drain();
    let delays = &bench.pipe.counters().queue_delay;
    assert_eq!(delays.count(), 4);
    assert_eq!(delays.mean(), Some(Duration::from_micros(1_500)));
    assert_eq!(delays.max(), span_ms(3));
    assert_eq!(delays.percentile(250), Some(Duration::ZERO));
}

#[test]
fn busy_time_and_utilisation_are_those_of_the_serialiser() {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        delay: span_ms(300),
        ..PipeConfig::default()
    });
    for n in 0..50 {
        bench.send(ms(4 * n), 1_000);
    }
    bench.drain();
    assert_eq!(bench.pipe.counters().busy_time, span_ms(50));
    let usage = bench.pipe.output().usage(ms(40), ms(140)).unwrap();
    assert_eq!(
        (usage.moved, usage.capacity),
        (ByteCount::kb(25), ByteCount::kb(100))
    );
    assert_eq!(usage.share(), Fraction::from_percent(25));

    bench
        .pipe
        .schedule(ms(600), Change::Rate(MS_PER_KB.scale(2, 1)))
        .unwrap();
    bench.run_until(ms(700));
    let usage = bench.pipe.output().usage(ms(590), ms(610)).unwrap();
    assert_eq!(
        (usage.moved, usage.capacity),
        (ByteCount::ZERO, ByteCount::kb(30))
    );
}

/// Random sizes, gaps, changes and losses of every kind. The counters are compared with what the
/// two ends saw, not only with each other.
#[test]
fn every_byte_offered_is_delivered_dropped_or_inside() {
    let (mut offered, mut off_by) = (0, 0);
    for seed in 0..20 {
        let streams = RandomStreams::new(seed);
        let mut workload = streams.stream("workload");
        let mut bench = Bench::with_streams(
            PipeConfig {
                rate: Rate::from_mbps(10),
                delay: span_ms(5),
                queue: ByteCount::kb(30),
                loss: percent(5),
                loss_place: LossPlace::AfterQueue,
                drop_packets: vec![3, 100, 4],
                ..PipeConfig::default()
            },
            &streams,
            "forward",
        );
        let mut sizes = vec![0];
        let mut at = Timestamp::ZERO;
        for _ in 0..5_000 {
            at += Duration::from_nanos(workload.below(2_000_000));
            if workload.below(20) == 0 {
                let change = match workload.below(6) {
                    0 => Change::Rate(Rate::from_kbps(workload.below(20_000))),
                    1 => Change::Delay(Duration::from_nanos(workload.below(20_000_000))),
                    2 => Change::Queue(ByteCount::new(workload.below(60_000))),
                    3 => Change::Loss(percent(u32::try_from(workload.below(101)).unwrap())),
                    4 => Change::LossPlace(
                        [LossPlace::BeforeQueue, LossPlace::AfterQueue]
                            [usize::try_from(workload.below(2)).unwrap()],
                    ),
                    _ => Change::DropNext(1 + workload.below(3)),
                };
                let soon = at + Duration::from_nanos(workload.below(10_000_000));
                bench.pipe.schedule(soon, change).unwrap();
            }
            let size = 1 + workload.below(1_500);
            sizes.push(size);
            bench.send(at, size);
        }
        let everything: u64 = sizes.iter().sum();
        let delivered: u64 = bench
            .numbers()
            .iter()
            .map(|n| sizes[usize::try_from(*n).unwrap()])
            .sum();
        let counters = bench.pipe.counters();
        assert_eq!(counters.offered.bytes.as_u64(), everything);
        assert_eq!(counters.delivered.bytes.as_u64(), delivered);
        assert_eq!(
            counters.delivered.packets,
            u64::try_from(bench.arrived.len()).unwrap()
        );
        assert_eq!(
            counters.dropped().bytes.as_u64() + counters.inside().bytes.as_u64(),
            everything - delivered,
            "seed {seed}"
        );
        offered += everything;
        let elsewhere = counters.dropped().bytes + counters.inside().bytes;
        off_by += elsewhere.as_u64().abs_diff(everything - delivered);
        for cause in [
            DropCause::Scripted,
            DropCause::LossBefore,
            DropCause::Queue,
            DropCause::LossAfter,
        ] {
            assert!(
                counters.dropped_by(cause).packets > 0,
                "seed {seed} exercises {cause:?}"
            );
        }

        bench
            .pipe
            .schedule(at, Change::Rate(Rate::from_mbps(10)))
            .unwrap();
        bench.drain();
        assert_eq!(bench.pipe.counters().inside().packets, 0);
        assert!(
            bench.arrived.is_sorted(),
            "seed {seed}: numbers or times out of order"
        );
        assert!(
            bench.numbers().windows(2).all(|pair| pair[0] < pair[1]),
            "seed {seed}: reordered or repeated"
        );
    }
    row(
        "byte conservation, 20 runs with random changes, 4 causes of loss: offered, off by",
        format!("{offered} B, {off_by} B"),
        "0 B",
    );
}
