//! What holds for every discipline.

use super::*;
use crate::queue::{CoDelConfig, DualPi2Config, FqCoDelConfig, PieConfig, RedConfig};
use crate::random::Fnv1a;

/// One of each, with ECN where it can be switched.
fn disciplines(ecn: bool) -> [Discipline; 6] {
    let codel = CoDelConfig {
        ecn,
        ..CoDelConfig::default()
    };
    [
        Discipline::DropTail,
        Discipline::CoDel(codel),
        Discipline::FqCoDel(FqCoDelConfig {
            codel,
            ..FqCoDelConfig::default()
        }),
        Discipline::Pie(PieConfig {
            ecn,
            ..PieConfig::default()
        }),
        Discipline::Red(RedConfig {
            ecn,
            ..RedConfig::default()
        }),
        Discipline::DualPi2(DualPi2Config::default()),
    ]
}

const NAMES: [&str; 6] = ["drop-tail", "CoDel", "FQ-CoDel", "PIE", "RED", "DualPI2"];

const LIMIT: QueueLimits = QueueLimits {
    bytes: ByteCount::kb(300),
    packets: 300,
};

/// Fails if a drop of another packet than the arriving one were forgotten, if Not-ECT were marked,
/// if a marked packet were dropped, or if CE were taken back.
#[test]
fn packets_and_marks_are_accounted_for() {
    let (mut offered, mut imbalance) = (0, 0);
    for is_on in [true, false] {
        for (discipline, name) in disciplines(is_on).into_iter().zip(NAMES) {
            let has_marks = is_on || matches!(discipline, Discipline::DualPi2(_));
            let is_passive = discipline == Discipline::DropTail;
            let link = mixed_run(LIMIT, discipline);
            link.assert_balance();
            link.assert_honest_marks();
            assert_eq!(link.queue.tally(), Tally::default());
            assert_eq!(
                !link.marked.is_empty(),
                has_marks && !is_passive,
                "{discipline:?}"
            );
            assert_eq!(link.aqm_drops().is_empty(), is_passive, "{discipline:?}");
            assert!(link.most_waiting.bytes <= LIMIT.bytes, "{discipline:?}");
            assert!(link.most_waiting.packets <= LIMIT.packets, "{discipline:?}");

            offered += link.offered.bytes.as_u64();
            imbalance = link.worst_imbalance().max(imbalance);
            let [marked, wrongly, and_dropped, taken_back] = link.marks();
            assert_eq!([wrongly, and_dropped, taken_back], [0; 3], "{discipline:?}");
            if is_on {
                row(
                    PART,
                    &format!("ECN, {name}: marked; of Not-ECT, dropped too, CE cleared"),
                    format!("{marked}; {wrongly}, {and_dropped}, {taken_back}"),
                    if is_passive {
                        "0; 0, 0, 0"
                    } else {
                        "some; 0, 0, 0"
                    },
                );
            }
        }
    }
    assert_eq!(imbalance, 0);
    row(
        PART,
        "byte conservation, 6 disciplines with and without ECN, 20 flows: offered, worst flow off by",
        format!("{offered} B, {imbalance} B"),
        "0 B",
    );
}

/// Fails if a discipline served a flow out of order. DualPI2 may, between its two classes.
#[test]
fn a_flow_stays_in_order() {
    for discipline in disciplines(true) {
        let link = mixed_run(LIMIT, discipline);
        for flow in 0..20 {
            for is_l4s in [true, false] {
                let mut last = None;
                for served in &link.served {
                    let serial = served.packet.payload;
                    let came_with = link.came_with[usize::try_from(serial).unwrap()];
                    let class = matches!(came_with, Ecn::Ect1 | Ecn::Ce);
                    if served.packet.flow != FlowId(flow) || class != is_l4s {
                        continue;
                    }
                    assert!(last < Some(serial), "{discipline:?}");
                    last = Some(serial);
                }
            }
        }
    }
}

/// Packets that wait survive every change of discipline, and leave in the order they came. Fails if
/// one were lost, counted twice or overtaken on the way.
#[test]
fn a_change_of_discipline_keeps_what_waits() {
    for first in disciplines(false) {
        let mut link = Link::new(Rate::from_kbps(8), LIMIT, first);
        for step in 0..100 {
            let ecn = if step % 2 == 0 {
                Ecn::Ect1
            } else {
                Ecn::NotEct
            };
            link.arrive(
                Timestamp::from_micros(step),
                100 + step,
                u32::try_from(step).unwrap(),
                ecn,
            );
        }
        let now = Timestamp::from_millis(1);
        let before = link.queue.tally();
        assert!(before.packets >= 90);
        // Lower limits do not drop anything either.
        let tiny = QueueLimits {
            bytes: ByteCount::new(50),
            packets: 1,
        };
        for next in disciplines(true) {
            link.reconfigure(now, tiny, next);
            assert_eq!(link.queue.tally(), before);
            link.reconfigure(
                now,
                LIMIT,
                Discipline::FqCoDel(FqCoDelConfig {
                    buckets: 3,
                    ..FqCoDelConfig::default()
                }),
            );
            assert_eq!(link.queue.tally(), before);
        }
        link.reconfigure(now, LIMIT, Discipline::DropTail);
        link.advance(Timestamp::MAX);
        link.assert_balance();
        assert!(link.served.is_sorted_by_key(|served| served.packet.payload));
        assert_eq!(link.served.len() + link.dropped.len(), 100);
    }
}

/// New parameters of the same discipline take effect without forgetting its state: a CoDel that is
/// dropping goes on.
#[test]
fn new_parameters_keep_the_state() {
    let run = |has_change: bool| {
        let discipline = Discipline::CoDel(CoDelConfig::default());
        let mut link = Link::new(Rate::from_mbps(100), QueueLimits::NONE, discipline);
        for step in 0..10_000 {
            let at = Timestamp::from_micros(50 * step);
            if has_change && step == 5_000 {
                link.reconfigure(at, QueueLimits::packets(1_000_000), discipline);
            }
            link.arrive(at, 1_250, 0, Ecn::NotEct);
        }
        link.aqm_drops()
    };
    assert!(run(false).len() > 5);
    assert_eq!(run(true), run(false));
}

/// Updates are made up for by the next call; calling more often must change nothing. Busy, idle and
/// stalled times alternate. Fails if an update were left out, made twice or given the delay of the
/// call in place of its own.
#[test]
fn calling_more_often_changes_nothing() {
    for discipline in disciplines(true) {
        let run = |polls: u64| {
            let limit = QueueLimits {
                bytes: ByteCount::mb(1),
                packets: u64::MAX,
            };
            let mut link = Link::new(Rate::from_mbps(10), limit, discipline);
            let mut script = RandomStreams::new(3).stream("script");
            let mut at = Timestamp::ZERO;
            for round in 0..60 {
                let packets = script.below(500);
                for _ in 0..packets {
                    link.arrive(at, 1_250, 0, any_ecn(&mut script));
                    at += Duration::from_micros(script.below(1_200));
                }
                let pause = Duration::from_millis(script.below(400));
                // A stalled link: the packet in service takes long.
                if round % 3 == 0
                    && let Some(until) = &mut link.busy_until
                {
                    *until += pause;
                }
                for poll in 1..=polls {
                    let now = at + pause * u32::try_from(poll).unwrap() / 200;
                    link.advance(now);
                    link.reconfigure(now, limit, discipline);
                }
                at += pause;
            }
            link.advance(Timestamp::MAX);
            link.assert_balance();
            (link.served, link.dropped)
        };
        assert!(run(200) == run(0), "{discipline:?}");
    }
}

/// Disciplines and limits change at random under random arrivals.
#[test]
fn nothing_is_lost_under_random_operations() {
    for seed in 0..10 {
        let mut script = RandomStreams::new(seed).stream("script");
        let mut link = Link::new(Rate::from_mbps(5), LIMIT, Discipline::DropTail);
        let mut at = Timestamp::ZERO;
        for _ in 0..5_000 {
            match script.below(100) {
                0 => {
                    let which = usize::try_from(script.below(6)).unwrap();
                    let limit = QueueLimits {
                        bytes: ByteCount::new(3_000 + script.below(200_000)),
                        packets: 2 + script.below(200),
                    };
                    let before = link.queue.tally();
                    link.reconfigure(at, limit, disciplines(script.below(2) == 0)[which]);
                    assert_eq!(link.queue.tally(), before, "seed {seed}");
                }
                1 => at += Duration::from_millis(script.below(300)),
                _ => {
                    let size = 40 + script.below(1_461);
                    let flow = u32::try_from(script.below(6)).unwrap();
                    link.arrive(at, size, flow, any_ecn(&mut script));
                    at += Duration::from_micros(script.below(2_000));
                }
            }
            link.advance(at);
        }
        link.advance(Timestamp::MAX);
        link.assert_balance();
        assert_eq!(link.queue.tally(), Tally::default());
    }
}

/// The same script gives the same packets at the same instants in every build and on every
/// platform; a change of a number here changes what a seed means. What is wanted of each run is in
/// the other tests.
#[test]
fn a_seed_means_the_same_packets_for_ever() {
    let digests = disciplines(true).map(|discipline| {
        let link = mixed_run(LIMIT, discipline);
        let mut hash = Fnv1a::new();
        for served in &link.served {
            hash.write(&served.at.as_nanos().to_le_bytes());
            hash.write(&served.packet.payload.to_le_bytes());
            hash.write(&[u8::from(served.packet.ecn == Ecn::Ce)]);
        }
        hash.value()
    });
    assert_eq!(
        digests,
        [
            8_267_560_958_150_712_261,
            414_749_588_075_708_854,
            15_921_382_591_982_689_923,
            10_054_276_987_583_549_148,
            17_678_839_404_563_258_614,
            3_855_670_422_148_922_957,
        ]
    );
}

/// Each discipline takes its draws per packet whatever its settings. Fails if a draw were only taken
/// when it is needed.
#[test]
fn settings_do_not_shift_the_draws() {
    let run = |discipline: Discipline| {
        let mut link = Link::new(Rate::from_mbps(10), QueueLimits::NONE, discipline);
        for step in 0..1_000 {
            link.arrive(Timestamp::from_micros(1_500 * step), 1_250, 0, Ecn::Ect0);
        }
        link.advance(Timestamp::from_secs(10));
        link.queue.random.u64()
    };
    let calm = |seconds| PieConfig {
        target: Duration::from_secs(seconds),
        ..PieConfig::default()
    };
    assert_eq!(
        run(Discipline::Pie(calm(1))),
        run(Discipline::Pie(PieConfig {
            burst: Duration::ZERO,
            ..calm(3_000)
        }))
    );
    let red = |min| RedConfig {
        min: Some(ByteCount::new(min)),
        max: Some(ByteCount::kb(5)),
        ..RedConfig::default()
    };
    assert_eq!(
        run(Discipline::Red(red(0))),
        run(Discipline::Red(red(4_000)))
    );
}

/// The table of each discipline's usual limits, which a scenario gets if it names none.
#[test]
fn usual_limits_are_those_of_linux() {
    let packets = disciplines(false).map(|discipline| discipline.usual_limits().packets);
    assert_eq!(packets, [u64::MAX, 1_000, 10_240, 1_000, u64::MAX, 10_000]);
}
