//! The same seed gives the same run; one stream's draws never shift another's.

use std::time::Duration;

use netsim::{Change, LossPlace, Packet, Pipe, PipeConfig, RandomStreams};
use units::{ByteCount, Rate, Timestamp};

use crate::bench::{Bench, ms, percent, row, span_ms};

fn lossy() -> PipeConfig {
    PipeConfig {
        rate: Rate::from_mbps(10),
        delay: span_ms(7),
        queue: ByteCount::kb(20),
        loss: percent(2),
        ..PipeConfig::default()
    }
}

/// A fixed workload on a lossy pipe whose every setting changes on the way; integers only.
fn play(seed: u64) -> Bench {
    let streams = RandomStreams::new(seed);
    let mut bench = Bench::with_streams(lossy(), &streams, "forward");
    for (at, change) in [
        (ms(300), Change::Loss(percent(30))),
        (ms(500), Change::Loss(percent(2))),
        (ms(500), Change::Rate(Rate::from_mbps(3))),
        (ms(700), Change::Delay(span_ms(2))),
        (ms(800), Change::LossPlace(LossPlace::BeforeQueue)),
        (ms(900), Change::Queue(ByteCount::kb(8))),
        (ms(950), Change::DropNext(3)),
    ] {
        bench.pipe.schedule(at, change).unwrap();
    }
    let mut workload = streams.stream("workload");
    let mut at = Timestamp::ZERO;
    for _ in 0..2_000 {
        at += Duration::from_nanos(workload.below(1_300_000));
        bench.send(at, 40 + workload.below(1_460));
    }
    bench.drain();
    bench
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (first, second) = (play(1), play(1));
    assert_eq!(first.arrived, second.arrived);
    assert_eq!(
        first.pipe.counters().digest(),
        second.pipe.counters().digest()
    );
    row(
        "determinism, the same seed twice: hash of all events",
        format!(
            "{:016x}, {:016x}",
            first.pipe.counters().digest(),
            second.pipe.counters().digest()
        ),
        "equal",
    );
}

#[test]
fn another_seed_gives_another_run() {
    let mut digests: Vec<u64> = (0..50)
        .map(|seed| play(seed).pipe.counters().digest())
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 50);
    row(
        "determinism, 50 seeds: different hashes",
        digests.len(),
        "50",
    );
}

/// One number for debug and release builds and for every platform. It changes with the meaning of a
/// seed or of a stage, and then every result of the laboratory may. What is wanted of this run is
/// asserted beside it.
#[test]
fn a_run_is_the_same_in_every_build_and_on_every_platform() {
    let bench = play(1);
    let counters = bench.pipe.counters();
    assert_eq!(counters.offered.packets, 2_000);
    assert!(counters.is_balanced() && counters.inside().packets == 0);
    assert_eq!(counters.dropped_scripted.packets, 3);
    // 30 % of about 310 arrivals, and 2 % of the others.
    let lost = counters.dropped_loss_before.packets + counters.dropped_loss_after.packets;
    assert!((80..=170).contains(&lost), "{lost}");
    let expected = 0x518f_683d_5353_1bd7_u64;
    assert_eq!(counters.digest(), expected, "{:#018x}", counters.digest());
    row(
        "determinism, debug and release: hash of all events",
        format!("{:016x}", counters.digest()),
        format!("{expected:016x} in every build"),
    );
}

#[test]
fn one_long_step_is_as_good_as_many_short_ones() {
    let run = |step: Option<Duration>| {
        let mut pipe = Pipe::new(lossy(), &RandomStreams::new(4), "forward").unwrap();
        pipe.schedule(ms(40), Change::Delay(span_ms(1))).unwrap();
        let mut arrived = Vec::new();
        for n in 0..60_u64 {
            pipe.arrive(Timestamp::ZERO, Packet::new(ByteCount::new(300 + n), n));
        }
        let end = ms(200);
        if let Some(step) = step {
            let mut at = Timestamp::ZERO;
            while at < end {
                pipe.advance(at, &mut |at, packet| arrived.push((at, packet.payload)));
                at += step;
            }
        }
        pipe.advance(end, &mut |at, packet| arrived.push((at, packet.payload)));
        (arrived, pipe.counters().digest())
    };
    let expected = run(None);
    assert!(expected.0.len() > 40);
    for step in [Duration::from_nanos(99_991), span_ms(1), span_ms(33)] {
        assert_eq!(run(Some(step)), expected, "{step:?}");
    }
}

#[test]
fn an_arrival_meets_the_queue_of_its_instant_even_if_the_caller_did_not_advance() {
    let run = |advances: bool| {
        let mut pipe = Pipe::new(lossy(), &RandomStreams::new(5), "forward").unwrap();
        pipe.schedule(ms(30), Change::Rate(Rate::from_mbps(2)))
            .unwrap();
        let mut arrived = Vec::new();
        for n in 0..100_u64 {
            let at = Timestamp::from_micros(n * 900);
            if advances {
                pipe.advance(at, &mut |at, packet: Packet<u64>| {
                    arrived.push((at, packet.payload))
                });
            }
            pipe.arrive(at, Packet::new(ByteCount::new(1_200), n));
        }
        pipe.advance(ms(1_000), &mut |at, packet| {
            arrived.push((at, packet.payload))
        });
        arrived
    };
    let expected = run(true);
    assert!(expected.len() > 50 && expected.len() < 98);
    assert_eq!(run(false), expected);
}

#[test]
fn time_does_not_run_backwards() {
    let mut bench = Bench::new(PipeConfig {
        rate: Rate::from_mbps(8),
        ..PipeConfig::default()
    });
    bench.run_until(ms(10));
    bench.pipe.arrive(ms(4), Packet::new(ByteCount::kb(1), 1));
    bench.run_until(ms(5));
    assert_eq!(bench.pipe.next_event(), Some(ms(11)));
}

#[test]
fn the_loss_of_one_pipe_does_not_shift_the_draws_of_another() {
    let reverse_with = |forward_loss: u32| {
        let streams = RandomStreams::new(6);
        let config = PipeConfig {
            loss: percent(forward_loss),
            ..PipeConfig::default()
        };
        let mut forward = Bench::with_streams(config, &streams, "forward");
        let config = PipeConfig {
            loss: percent(10),
            ..PipeConfig::default()
        };
        let mut reverse = Bench::with_streams(config, &streams, "reverse");
        for n in 0..1_000 {
            forward.send(ms(n), 1_000);
            reverse.send(ms(n), 50);
        }
        forward.drain();
        reverse.drain();
        (forward.arrived.len(), reverse.arrived)
    };
    let (all, without) = reverse_with(0);
    let (some, with) = reverse_with(30);
    assert!(all == 1_000 && some < 800);
    assert_eq!(with, without);
    assert!(with.len() < 1_000);
    row(
        "seed independence, loss on another pipe switched on: packets that fare otherwise",
        without
            .iter()
            .filter(|packet| !with.contains(packet))
            .count(),
        "0",
    );
}

#[test]
fn pipes_of_different_names_lose_different_packets() {
    let arrived = |name: &str| {
        let config = PipeConfig {
            loss: percent(10),
            ..PipeConfig::default()
        };
        let mut bench = Bench::with_streams(config, &RandomStreams::new(6), name);
        for n in 0..1_000 {
            bench.send(ms(n), 1_000);
        }
        bench.drain();
        bench.numbers()
    };
    assert_ne!(arrived("forward"), arrived("reverse"));
    assert_eq!(arrived("forward"), arrived("forward"));
}

/// The hash computed again from its description. The second packet is lost on the wire at the
/// instant the first is delivered: the end of serialisation comes first.
#[test]
fn the_digest_is_the_documented_hash_in_the_documented_order() {
    let mut bench = Bench::new(PipeConfig {
        rate: Rate::from_mbps(8),
        delay: span_ms(1),
        ..PipeConfig::default()
    });
    bench
        .pipe
        .schedule(ms(2), Change::Loss(percent(100)))
        .unwrap();
    bench.send(Timestamp::ZERO, 1_000);
    bench.send(Timestamp::ZERO, 1_000);
    bench.drain();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for fate in [4, 0] {
        let record = [
            2_000_000_u64.to_le_bytes().as_slice(),
            &1_000_u64.to_le_bytes(),
            &[fate],
        ]
        .concat();
        for byte in record {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    assert_eq!(bench.pipe.counters().digest(), hash);
}

#[test]
fn the_digest_sees_time_size_and_fate() {
    let digest = |at: Timestamp, size: u64, config: PipeConfig| {
        let mut bench = Bench::new(config);
        bench.send(at, size);
        bench.drain();
        bench.pipe.counters().digest()
    };
    let dropped = PipeConfig {
        drop_packets: vec![1],
        ..PipeConfig::default()
    };
    let lost_before = PipeConfig {
        loss: percent(100),
        loss_place: LossPlace::BeforeQueue,
        ..PipeConfig::default()
    };
    let lost_after = PipeConfig {
        loss: percent(100),
        ..PipeConfig::default()
    };
    let no_room = PipeConfig {
        rate: Rate::ZERO,
        queue: ByteCount::ZERO,
        ..PipeConfig::default()
    };
    let mut digests = vec![
        digest(ms(1), 1_000, PipeConfig::default()),
        digest(
            Timestamp::from_nanos(1_000_001),
            1_000,
            PipeConfig::default(),
        ),
        digest(ms(1), 1_001, PipeConfig::default()),
        digest(ms(1), 1_000, dropped),
        digest(ms(1), 1_000, lost_before),
        digest(ms(1), 1_000, lost_after),
        digest(ms(1), 1_000, no_room),
    ];
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 7);
}
