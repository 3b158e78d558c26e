//! FQ-CoDel: shares and delays per flow.

use super::*;
use crate::queue::fq_codel::bucket_of;
use crate::queue::{CoDelConfig, FqCoDelConfig};

const QUANTUM: u64 = 1_514;

fn config(buckets: u16) -> Discipline {
    Discipline::FqCoDel(FqCoDelConfig {
        buckets,
        ..FqCoDelConfig::default()
    })
}

/// Flows of constant rate, each with its own packet size and its own share of the link, for ten
/// seconds at 20 Mbit/s; the bytes each got through from the first second on, when all of them have
/// a queue.
fn shares(buckets: u16, flows: &[(u64, u64)]) -> Vec<u64> {
    let rate = Rate::from_mbps(20);
    let mut link = Link::new(rate, config(buckets).usual_limits(), config(buckets));
    let mut next: Vec<(Timestamp, u32)> = (0..)
        .take(flows.len())
        .map(|flow| (Timestamp::ZERO, flow))
        .collect();
    let end = Timestamp::from_secs(10);
    loop {
        let (at, flow) = *next.iter().min().unwrap();
        if at >= end {
            break;
        }
        let index = usize::try_from(flow).unwrap();
        let (size, percent) = flows[index];
        link.arrive(at, size, flow, Ecn::NotEct);
        let gap = rate.scale(percent, 100).time_for(ByteCount::new(size));
        next[index].0 += gap;
    }
    link.assert_balance();
    let mut bytes = vec![0; flows.len()];
    for served in link
        .served
        .iter()
        .filter(|served| served.at >= Timestamp::from_secs(1))
    {
        bytes[usize::try_from(served.packet.flow.0).unwrap()] += served.packet.size.as_u64();
    }
    bytes
}

fn spread(bytes: &[u64]) -> u64 {
    bytes.iter().max().unwrap() - bytes.iter().min().unwrap()
}

/// Fails with one bucket, and if turns were counted in packets rather than bytes (the flow with
/// packets of 300 bytes would get a fifth of the one with 1,500).
#[test]
fn flows_over_capacity_get_equal_bytes() {
    let equal = shares(1_024, &[(1_250, 25); 8]);
    assert!(spread(&equal) <= QUANTUM * 8);

    let unequal = [
        (1_500, 25),
        (1_500, 50),
        (300, 25),
        (1_000, 25),
        (700, 40),
        (1_499, 30),
        (1_200, 25),
        (450, 20),
    ];
    let bytes = shares(1_024, &unequal);
    assert!(spread(&bytes) <= QUANTUM * 8, "{bytes:?}");
    let shared = shares(1, &unequal);
    assert!(spread(&shared) > QUANTUM * 8 * 10, "{shared:?}");
    for (which, bytes) in [("equal", &equal), ("of all sizes and rates", &bytes)] {
        row(
            PART,
            &format!("FQ-CoDel, 8 flows over capacity, {which}: most bytes less fewest"),
            format!("{} of {}", spread(bytes), bytes.iter().max().unwrap()),
            format!("at most {}, quantum x 8", QUANTUM * 8),
        );
    }
}

/// The flows of this and the next test are in buckets of their own.
#[test]
fn few_flows_share_no_bucket() {
    let mut buckets: Vec<usize> = (0..20).map(|flow| bucket_of(FlowId(flow), 1_024)).collect();
    buckets.sort_unstable();
    buckets.dedup();
    assert_eq!(buckets.len(), 20);
    assert!(buckets.iter().all(|bucket| *bucket < 1_024));
}

/// Thousands of flows spread evenly over the buckets.
#[test]
fn many_flows_fill_the_buckets_evenly() {
    let mut counts = [0_u32; 64];
    for flow in 0..64_000 {
        counts[bucket_of(FlowId(flow), 64)] += 1;
    }
    // The standard deviation of each count is 32.
    assert!(
        counts.iter().all(|count| count.abs_diff(1_000) < 150),
        "{counts:?}"
    );
}

/// The longest delay of a small packet every 10 ms beside a flow with twice the rate of the link.
fn sparse_delay(buckets: u16) -> Duration {
    let mut link = Link::new(
        Rate::from_mbps(10),
        QueueLimits::packets(10_240),
        config(buckets),
    );
    for step in 0..20_000 {
        let at = Timestamp::from_micros(step * 600);
        link.arrive(at, 1_500, 0, Ecn::NotEct);
        if step % 17 == 16 {
            link.arrive(at + Duration::from_nanos(1), 200, 1, Ecn::NotEct);
        }
    }
    let sparse = link
        .served
        .iter()
        .filter(|served| served.packet.flow == FlowId(1));
    let mut dropped = link.dropped.iter();
    assert!(buckets == 1 || dropped.all(|dropped| dropped.packet.flow == FlowId(0)));
    sparse.map(|served| served.delay).max().unwrap()
}

/// Fails with one bucket, and if old flows were served before new ones.
#[test]
fn a_sparse_flow_waits_for_two_packets_at_most() {
    let packet = Rate::from_mbps(10).time_for(ByteCount::new(1_514));
    assert!(
        sparse_delay(1_024) <= packet * 2,
        "{:?}",
        sparse_delay(1_024)
    );
    assert!(sparse_delay(1) > packet * 2);
    row(
        PART,
        "FQ new-flow, sparse beside bulk: longest delay",
        format!("{:.4} ms", sparse_delay(1_024).as_secs_f64() * 1e3),
        format!("at most {:.4} ms, two packets", packet.as_secs_f64() * 2e3),
    );
}

/// Two flows whose packets arrive in turns, each just before the other has run empty, would together
/// be new for ever and take the whole link. Fails if a new flow that runs empty became idle at once
/// while old ones wait.
#[test]
fn flows_that_look_new_do_not_starve_old_ones() {
    let limit = QueueLimits::packets(10_240);
    let mut link = Link::new(Rate::from_mbps(12), limit, config(1_024));
    for _ in 0..1_000 {
        link.arrive(Timestamp::ZERO, 1_500, 0, Ecn::NotEct);
    }
    // Each packet takes 1 ms.
    for millis in 1..500 {
        let at = Timestamp::from_micros(1_000 * millis + 500);
        let flow = if millis % 2 == 0 { 1 } else { 2 };
        link.arrive(at, 1_500, flow, Ecn::NotEct);
    }
    let served = link.served.iter();
    let bulk = served.filter(|served| served.packet.flow == FlowId(0));
    let share = float(bulk.count()) / float(link.served.len());
    assert!(share > 0.3, "{share}");
}

/// Drops for want of room count as signals of the flow's CoDel too, which then drops more often.
/// Fails if they did not.
#[test]
fn overload_strengthens_the_signal() {
    let drops = |limit| {
        let mut link = Link::new(Rate::from_mbps(100), limit, config(1_024));
        let end = Timestamp::from_millis(500);
        link.arrive_evenly(Duration::from_micros(50), 1_250, Ecn::NotEct, end);
        link.aqm_drops().len()
    };
    let (tight, wide) = (drops(QueueLimits::packets(2_500)), drops(QueueLimits::NONE));
    assert!(tight > 2 * wide, "{tight} {wide}");
}

/// A full queue takes from the fattest flow: half of its bytes, at most 64 packets, and never from
/// the sparse one. Fails if the arriving packet were dropped instead.
#[test]
fn overload_is_paid_for_by_the_fattest() {
    for (fat, expected) in [(99, 50), (199, 64)] {
        let limit = QueueLimits::packets(fat);
        let mut link = Link::new(Rate::from_kbps(8), limit, config(1_024));
        // One in service, the rest waits.
        for _ in 0..=fat {
            link.arrive(Timestamp::ZERO, 1_000, 0, Ecn::Ect0);
        }
        assert!(link.dropped.is_empty());
        link.arrive(Timestamp::ZERO, 1_000, 1, Ecn::Ect0);
        assert_eq!(link.dropped.len(), expected);
        assert!(link.dropped.iter().all(|dropped| {
            dropped.cause == QueueDrop::Full && dropped.packet.flow == FlowId(0)
        }));
        // At the head: the first to come is in service, those after it go.
        assert_eq!(link.dropped[0].packet.payload, 1);
        link.assert_balance();
        link.assert_honest_marks();
    }
}

#[test]
fn a_byte_limit_is_kept_too() {
    let limit = QueueLimits::bytes(ByteCount::kb(50));
    let link = mixed_run(limit, config(1_024));
    assert!(
        link.dropped
            .iter()
            .any(|dropped| dropped.cause == QueueDrop::Full)
    );
    assert!(link.most_waiting.bytes <= ByteCount::kb(50));
    link.assert_balance();
}

/// Each bucket has a CoDel: one flow that overloads the link meets the law alone.
#[test]
fn a_single_flow_meets_codel() {
    let mut link = Link::new(
        Rate::from_mbps(100),
        QueueLimits::packets(10_240),
        config(1_024),
    );
    let end = Timestamp::from_millis(500);
    link.arrive_evenly(Duration::from_micros(50), 1_250, Ecn::NotEct, end);
    let mut plain = Link::new(
        Rate::from_mbps(100),
        QueueLimits::packets(10_240),
        Discipline::CoDel(CoDelConfig::default()),
    );
    plain.arrive_evenly(Duration::from_micros(50), 1_250, Ecn::NotEct, end);
    assert!(link.aqm_drops().len() > 5);
    assert_eq!(link.aqm_drops(), plain.aqm_drops());
}

#[test]
fn settings_out_of_range_are_refused() {
    let check = |quantum, buckets| {
        FqCoDelConfig {
            quantum: ByteCount::new(quantum),
            buckets,
            ..FqCoDelConfig::default()
        }
        .check()
    };
    assert_eq!(check(1, 1), Ok(()));
    assert!(check(0, 1).is_err());
    assert!(check(1_000_001, 1).is_err());
    assert!(check(1, 0).is_err());
}

/// Fails if one round of drops had to do, or if a limit in packets were not kept for empty ones.
#[test]
fn a_lowered_limit_is_enforced_by_the_next_arrival() {
    for size in [1_000, 0] {
        let mut link = Link::new(Rate::from_kbps(8), QueueLimits::NONE, config(1_024));
        link.arrive(Timestamp::ZERO, 1_000, 0, Ecn::NotEct);
        for serial in 0..2_000 {
            link.arrive(Timestamp::ZERO, size, serial % 20, Ecn::NotEct);
        }
        link.reconfigure(Timestamp::ZERO, QueueLimits::packets(10), config(1_024));
        assert_eq!(link.queue.tally().packets, 2_000);
        link.arrive(Timestamp::ZERO, size, 0, Ecn::NotEct);
        assert!(link.queue.tally().packets <= 10);
        link.assert_balance();
    }
}

/// A flow that never has more than 1,600 bytes waiting, 1,200 behind the packet that leaves, but
/// beside others, and too long: as in Linux its CoDel looks at what waits in all buckets. Fails if it looked at its own only.
#[test]
fn the_mtu_rule_asks_for_all_buckets() {
    let mut link = Link::new(Rate::from_mbps(10), QueueLimits::NONE, config(1_024));
    for serial in 0..8_000 {
        link.arrive(Timestamp::ZERO, 1_500, 1 + serial % 8, Ecn::NotEct);
    }
    let is_small = |packet: &Packet<Serial>| packet.flow == FlowId(0);
    let mut offered = 0;
    let drops = |link: &Link| {
        link.dropped
            .iter()
            .filter(|dropped| is_small(&dropped.packet))
            .count()
    };
    for step in 0..10_000 {
        let at = Timestamp::from_micros(100 * step);
        link.advance(at);
        let served = link
            .served
            .iter()
            .filter(|served| is_small(&served.packet))
            .count();
        while offered - served - drops(&link) < 4 {
            link.arrive(at, 400, 0, Ecn::NotEct);
            offered += 1;
        }
    }
    assert!(drops(&link) > 3, "{}", drops(&link));
}

/// Fails if packets were counted in place of bytes.
#[test]
fn the_fattest_has_most_bytes_not_most_packets() {
    let limit = QueueLimits::packets(60);
    let mut link = Link::new(Rate::from_kbps(8), limit, config(1_024));
    link.arrive(Timestamp::ZERO, 1_000, 2, Ecn::NotEct);
    for serial in 0..61 {
        let (flow, size) = if serial < 50 { (0, 40) } else { (1, 1_500) };
        link.arrive(Timestamp::ZERO, size, flow, Ecn::NotEct);
    }
    let dropped: Vec<u32> = link
        .dropped
        .iter()
        .map(|dropped| dropped.packet.flow.0)
        .collect();
    assert_eq!(dropped, [1; 6]);
}
