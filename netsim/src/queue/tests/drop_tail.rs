//! Drop-tail against arithmetic.

use super::*;

/// D/D/1/K with 1.25 times what the link carries: 20 % are lost, and the queue is full.
///
/// Fails if the packet in service counted towards the limit (the queue would stay one short), and
/// if a packet were let in that does not fit as a whole. Returns the drops and how many theory wants.
fn overload(limit: QueueLimits, most: Tally) -> (usize, u64) {
    let mut link = Link::new(Rate::from_mbps(10), limit, Discipline::DropTail);
    let end = Timestamp::from_secs(10);
    link.arrive_evenly(Duration::from_micros(800), 1_250, Ecn::Ect0, end);
    link.advance(end);
    // The first packets fill the queue: 12,500 arrive, 10,000 are served, the rest of them waits.
    let lost = link.offered.packets - 10_000 - most.packets;
    assert!(
        link.dropped.len().abs_diff(usize::try_from(lost).unwrap()) <= 1,
        "{} of {}",
        link.dropped.len(),
        link.offered.packets
    );
    assert_eq!(link.most_waiting, most);
    assert!(link.aqm_drops().is_empty());
    link.assert_balance();
    link.assert_honest_marks();
    (link.dropped.len(), lost)
}

#[test]
fn a_packet_limit_is_used_to_the_last_packet() {
    let most = Tally {
        packets: 50,
        bytes: ByteCount::new(62_500),
    };
    let (dropped, wanted) = overload(QueueLimits::packets(50), most);
    row(
        PART,
        "D/D/1/K, 1.25 times the rate for 10 s, 50 packets: dropped",
        dropped,
        format!("{wanted} +- 1, the queue filled"),
    );
}

#[test]
fn a_byte_limit_is_used_to_the_last_whole_packet() {
    let most = Tally {
        packets: 50,
        bytes: ByteCount::new(62_500),
    };
    overload(QueueLimits::bytes(ByteCount::new(62_500)), most);
    overload(QueueLimits::bytes(ByteCount::new(63_749)), most);
}

/// Fails if either limit were ignored when both are set.
#[test]
fn the_tighter_limit_wins() {
    let most = Tally {
        packets: 7,
        bytes: ByteCount::new(8_750),
    };
    for (packets, bytes) in [(7, 1_000_000), (1_000, 8_750)] {
        let bytes = ByteCount::new(bytes);
        overload(QueueLimits { bytes, packets }, most);
    }
}

/// Fails if `pass` asked the limits.
#[test]
fn a_free_serialiser_takes_a_packet_whatever_the_limit() {
    let mut link = Link::new(
        Rate::from_mbps(10),
        QueueLimits::packets(0),
        Discipline::DropTail,
    );
    link.arrive(Timestamp::ZERO, 1_250, 0, Ecn::NotEct);
    link.arrive(Timestamp::ZERO, 1_250, 0, Ecn::NotEct);
    assert_eq!(link.served.len(), 1);
    assert_eq!(link.dropped.len(), 1);
}
