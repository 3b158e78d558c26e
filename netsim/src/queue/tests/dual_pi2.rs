//! DualPI2: the coupling, the turns, the step, the overload.

use super::*;
use crate::queue::probability::Probability;
use crate::queue::{DualPi2Config, Gain, Policy};

const RATE: Rate = Rate::from_mbps(10);
const SIZE: u64 = 1_250;

/// A controller that stands still.
fn pinned(coupling: u8) -> DualPi2Config {
    DualPi2Config {
        alpha: Gain::from_millihertz(0),
        beta: Gain::from_millihertz(0),
        step: Duration::from_secs(3_600),
        coupling,
        ..DualPi2Config::default()
    }
}

fn dual(link: &mut Link) -> &mut crate::queue::dual_pi2::DualPi2<Serial> {
    let Policy::DualPi2(dual) = &mut link.queue.policy else {
        panic!("not DualPI2");
    };
    dual
}

/// What became of equally many packets of one class at a base probability: the shares that were
/// served with a mark and dropped.
fn shares(config: DualPi2Config, percent: u8, ecn: Ecn, packets: u64) -> (f64, f64) {
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(config));
    dual(&mut link).pin_base(Probability::from_percent(percent));
    // Of 13 packets at once the first goes past the queue, and the last two are below two MTU and
    // left alone; ten count.
    let (mut marked, mut dropped, mut counted) = (0, 0, 0);
    let mut at = Timestamp::ZERO;
    while counted < packets {
        for _ in 0..13 {
            link.arrive(at, SIZE, 0, ecn);
        }
        at += Duration::from_millis(20);
        link.advance(at);
        counted += 10;
    }
    link.assert_balance();
    link.assert_honest_marks();
    marked += u64::try_from(link.marked.len()).unwrap();
    dropped += u64::try_from(link.aqm_drops().len()).unwrap();
    assert_eq!(dual(&mut link).base(), Probability::from_percent(percent));
    let whole = float(usize::try_from(counted).unwrap());
    let share = |count: u64| float(usize::try_from(count).unwrap()) / whole;
    (share(marked), share(dropped))
}

#[track_caller]
fn assert_close(value: f64, expected: f64) {
    assert!(
        (value / expected - 1.0).abs() <= 0.05,
        "{value}, {expected} expected"
    );
}

/// p_L = k p' and p_C = p'^2.
///
/// Fails if the square were left out, if k were applied to the classic queue, or if it were another.
#[test]
fn the_classes_are_coupled() {
    // 10,000 marks or drops each, one standard deviation 1 %.
    for (percent, coupling) in [(20, 2), (30, 2), (10, 5)] {
        let base = f64::from(percent) / 100.0;
        let scalable = base * f64::from(coupling);
        let (marked, dropped) = shares(pinned(coupling), percent, Ecn::Ect1, 40_000);
        assert_close(marked, scalable);
        assert!(dropped.abs() < 1e-9);
        let l4s = marked;
        let classic = base * base;
        let (marked, dropped) = shares(pinned(coupling), percent, Ecn::NotEct, 1_000_000);
        assert_close(dropped, classic);
        assert!(marked.abs() < 1e-9);
        let classic_dropped = dropped;
        let (marked, dropped) = shares(pinned(coupling), percent, Ecn::Ect0, 1_000_000);
        assert_close(marked, classic);
        assert!(dropped.abs() < 1e-9);
        row(
            PART,
            &format!("DualPI2, p' = {percent} %, k = {coupling}: L marked"),
            format!("{:.2} %", l4s * 100.0),
            format!("k p' = {:.0} %, +- 5 %", scalable * 100.0),
        );
        row(
            PART,
            &format!("DualPI2, p' = {percent} %, k = {coupling}: C dropped, C marked"),
            format!(
                "{:.3} % of Not-ECT, {:.3} % of ECT(0)",
                classic_dropped * 100.0,
                marked * 100.0
            ),
            format!("p'^2 = {:.0} %, +- 5 %", classic * 100.0),
        );
    }
    let (marked, _) = shares(pinned(2), 22, Ecn::Ect1, 40_000);
    assert!((marked / 0.4 - 1.0).abs() > 0.05);
}

/// At 60 % and k = 2 marks are saturated: the L queue drops 36 % as the classic one does, marks the
/// rest, and ECT(0) gets no mark any more. Fails if any class were spared.
#[test]
fn overload_drops_from_both() {
    let (marked, dropped) = shares(pinned(2), 60, Ecn::Ect1, 100_000);
    assert_close(dropped, 0.36);
    assert_close(marked, 0.64);
    let (marked, dropped) = shares(pinned(2), 60, Ecn::Ect0, 100_000);
    assert_close(dropped, 0.36);
    assert!(marked.abs() < 1e-9);
}

/// Fails with another step, if the step asked the base probability, or if it touched the classic
/// queue.
#[test]
fn an_l4s_packet_is_marked_once_it_waited_a_millisecond() {
    let config = DualPi2Config {
        step: Duration::from_millis(1),
        ..pinned(2)
    };
    for ecn in [Ecn::Ect1, Ecn::Ect0] {
        let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(config));
        // 500 us each: the third waits 1 ms.
        for _ in 0..4 {
            link.arrive(Timestamp::ZERO, 625, 0, ecn);
        }
        link.advance(Timestamp::from_secs(1));
        let fields: Vec<Ecn> = link.served.iter().map(|served| served.packet.ecn).collect();
        match ecn {
            Ecn::Ect1 => assert_eq!(fields, [Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ce]),
            _ => assert_eq!(fields, [ecn; 4]),
        }
    }
}

/// With both queues never empty the classic one gets a tenth of the bytes, whatever the sizes.
/// Fails without weights, with swapped ones, and if packets were counted instead of bytes.
#[test]
fn turns_are_weighted_in_bytes() {
    for (l4s_size, classic_size) in [(1_250, 1_250), (300, 1_500), (1_500, 300)] {
        let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(pinned(2)));
        for _ in 0..5_000 {
            link.arrive(Timestamp::ZERO, l4s_size, 1, Ecn::Ect1);
            link.arrive(Timestamp::ZERO, classic_size, 0, Ecn::NotEct);
        }
        link.advance(Timestamp::from_millis(500));
        let bytes = |flow| -> ByteCount {
            let served = link
                .served
                .iter()
                .filter(|served| served.packet.flow == FlowId(flow));
            served.map(|served| served.packet.size).sum()
        };
        let (l4s, classic) = (bytes(1).as_u64(), bytes(0).as_u64());
        // A packet of slack on either side, weighted.
        assert!((classic * 9).abs_diff(l4s) < 30_000, "{l4s} {classic}");
        // The L queue goes first.
        assert_eq!(link.served[1].packet.flow, FlowId(1));
    }
}

/// At 1.05 times what the link carries a classic queue must drop 1 - 1 / 1.05 = 4.76 %, so p' is its
/// square root. Fails if a gain were wrong, or with another target.
#[test]
fn a_classic_load_settles_at_the_target() {
    let mut link = Link::new(
        RATE,
        QueueLimits::NONE,
        Discipline::DualPi2(DualPi2Config::default()),
    );
    let half = Timestamp::from_secs(100);
    let mut at = Timestamp::ZERO;
    let (mut sum, mut count) = (0.0, 0_u32);
    while at < Timestamp::from_secs(200) {
        link.arrive(at, SIZE, 0, Ecn::NotEct);
        if at >= half {
            #[expect(clippy::cast_precision_loss, reason = "a share, to 53 bits")]
            let base = dual(&mut link).base().steps() as f64 / (1_u64 << 60) as f64;
            sum += base;
            count += 1;
        }
        at += Duration::from_nanos(952_381);
    }
    let base = sum / f64::from(count);
    assert!(
        (link.mean_delay(half) / 0.015 - 1.0).abs() < 0.1,
        "{}",
        link.mean_delay(half)
    );
    assert!((base / 0.2182 - 1.0).abs() < 0.1, "{base}");
    row(
        PART,
        "DualPI2, 1.05 times the rate, classic: delay, p'",
        format!(
            "{:.2} ms, {:.2} %",
            link.mean_delay(half) * 1e3,
            base * 100.0
        ),
        "15 ms +- 10 %, 21.8 % +- 10 %",
    );
}

/// A stalled link is where the delay keeps growing without a call: all updates are made up for
/// later, each with the delay of its instant. Fails if only the last one were.
#[test]
fn a_stall_saturates_the_controller() {
    let mut link = Link::new(
        Rate::from_bps(1),
        QueueLimits::NONE,
        Discipline::DualPi2(DualPi2Config::default()),
    );
    for _ in 0..3 {
        link.arrive(Timestamp::ZERO, SIZE, 0, Ecn::NotEct);
    }
    link.arrive(Timestamp::from_millis(159), SIZE, 0, Ecn::NotEct);
    let early = dual(&mut link).base();
    // Nine updates: 3.2 Hz * 144 ms, and 0.16 Hz times the sum of 16 n - 15 ms.
    let expected = 3.2 * 0.144 + 0.16 * (0.016 * 45.0 - 0.015 * 9.0);
    #[expect(clippy::cast_precision_loss, reason = "a share, to 53 bits")]
    let share = early.steps() as f64 / (1_u64 << 60) as f64;
    assert!((share - expected).abs() < 1e-9, "{share} {expected}");
    link.arrive(Timestamp::from_secs(5_000), SIZE, 0, Ecn::NotEct);
    assert_eq!(dual(&mut link).base(), Probability::ONE);
}

#[test]
fn settings_out_of_range_are_refused() {
    let with = |change: fn(&mut DualPi2Config)| {
        let mut config = DualPi2Config::default();
        change(&mut config);
        config.check()
    };
    assert_eq!(with(|_| ()), Ok(()));
    assert!(with(|config| config.target = Duration::ZERO).is_err());
    assert!(with(|config| config.update = Duration::from_nanos(999)).is_err());
    assert!(with(|config| config.coupling = 0).is_err());
    assert!(with(|config| config.alpha = Gain::from_millihertz(1_000_001)).is_err());
}

/// Fails if what one queue sent alone were held against it or in its favour once the other comes.
#[test]
fn a_queue_alone_neither_earns_nor_spends() {
    for alone in [Ecn::Ect1, Ecn::NotEct] {
        let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(pinned(2)));
        for _ in 0..1_000 {
            link.arrive(Timestamp::ZERO, SIZE, 2, alone);
        }
        // All but the last few have left.
        link.advance(Timestamp::from_millis(990));
        for _ in 0..500 {
            link.arrive(Timestamp::from_millis(990), SIZE, 1, Ecn::Ect1);
            link.arrive(Timestamp::from_millis(990), SIZE, 0, Ecn::NotEct);
        }
        link.advance(Timestamp::from_millis(1_200));
        let classic = link.served[1_000..1_200]
            .iter()
            .filter(|served| served.packet.ecn == Ecn::NotEct);
        let count = classic.count();
        assert!((17..=23).contains(&count), "{alone:?}: {count}");
    }
}

/// Ten L4S packets earn the classic queue a turn; it takes that when the other has run empty. Fails
/// if the turn were kept over the idle time, so that the classic queue went first afterwards.
#[test]
fn turns_start_over_after_an_idle_time() {
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(pinned(2)));
    for _ in 0..11 {
        link.arrive(Timestamp::ZERO, SIZE, 1, Ecn::Ect1);
    }
    link.arrive(Timestamp::ZERO, SIZE, 0, Ecn::NotEct);
    let later = Timestamp::from_secs(1);
    link.advance(later);
    assert_eq!(link.served.last().unwrap().packet.flow, FlowId(0));
    link.arrive(later, SIZE, 1, Ecn::Ect1);
    link.arrive(later, SIZE, 0, Ecn::NotEct);
    link.arrive(later, SIZE, 1, Ecn::Ect1);
    link.advance(Timestamp::from_secs(2));
    let flows: Vec<u32> = link.served[12..]
        .iter()
        .map(|served| served.packet.flow.0)
        .collect();
    assert_eq!(flows, [1, 1, 0]);
}

/// Fails if CE, which may have been ECT(1), went with the classic packets.
#[test]
fn congestion_experienced_counts_as_l4s() {
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::DualPi2(pinned(2)));
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ect1] {
        link.arrive(Timestamp::ZERO, SIZE, 0, ecn);
    }
    link.advance(Timestamp::from_secs(1));
    let order: Vec<Serial> = link
        .served
        .iter()
        .map(|served| served.packet.payload)
        .collect();
    assert_eq!(order, [0, 3, 4, 1, 2]);
}

/// Fails if only the classic queue's delay were controlled.
#[test]
fn a_long_l_queue_raises_the_probability_too() {
    let mut link = Link::new(
        RATE,
        QueueLimits::NONE,
        Discipline::DualPi2(DualPi2Config::default()),
    );
    link.arrive_evenly(
        Duration::from_micros(900),
        SIZE,
        Ecn::Ect1,
        Timestamp::from_secs(2),
    );
    assert!(dual(&mut link).base() > Probability::from_percent(10));
}
