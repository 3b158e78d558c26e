//! RED: its gaps, its average, its ramp.

use super::*;
use crate::packet::Fortunes;
use crate::queue::RedConfig;
use units::Fraction;

/// A queue of 40 packets of 1,000 bytes whose average is exactly that, since it is renewed as a
/// whole; the numbers of arrivals from one drop to the next, of 200,000 arrivals.
fn gaps(max_percent: u32) -> Vec<usize> {
    let config = RedConfig {
        min: Some(ByteCount::kb(30)),
        max: Some(ByteCount::kb(50)),
        max_probability: Fraction::from_percent(max_percent).unwrap(),
        weight: Fraction::ONE,
        ..RedConfig::default()
    };
    let mut queue = Queue::new(
        QueueConfig::default(),
        RandomStreams::new(1).stream("forward.aqm"),
    );
    let mut fortunes = Fortunes::new(&RandomStreams::new(1), "forward");
    let mut waiting = || Waiting {
        packet: Packet::new(ByteCount::kb(1), 0),
        arrived_at: Timestamp::ZERO,
        fortune: fortunes.draw(),
    };
    let rate = Rate::from_mbps(8);
    for _ in 0..40 {
        queue.enqueue(Timestamp::ZERO, waiting(), rate, &mut |_| ());
    }
    queue.reconfigure(
        Timestamp::ZERO,
        QueueConfig {
            limit: QueueLimits::NONE,
            discipline: Discipline::Red(config),
        },
    );
    let mut gaps = Vec::new();
    let mut gap = 0;
    for _ in 0..200_000 {
        let mut is_dropped = false;
        queue.enqueue(Timestamp::ZERO, waiting(), rate, &mut |_| is_dropped = true);
        gap += 1;
        if is_dropped {
            gaps.push(gap);
            gap = 0;
        } else {
            queue.dequeue(Timestamp::ZERO, &mut |_| ());
        }
    }
    // The first does not begin with a drop.
    gaps.remove(0);
    gaps
}

/// P(k) = p_a(k) * the product of 1 - p_a over the arrivals before, with p_a(k) = p_b / (1 - k
/// p_b).
fn pmf(base: f64) -> Vec<f64> {
    let mut left = 1.0;
    let mut pmf = vec![0.0];
    let mut count = 1.0;
    while left > 1e-9 {
        let chance = (base / (1.0 - count * base)).clamp(0.0, 1.0);
        let chance = if count * base >= 1.0 { 1.0 } else { chance };
        pmf.push(left * chance);
        left *= 1.0 - chance;
        count += 1.0;
    }
    pmf
}

fn chi_square(gaps: &[usize], pmf: &[f64]) -> f64 {
    let mut chi_square = 0.0;
    for (gap, probability) in pmf.iter().enumerate().skip(1) {
        let expected = probability * float(gaps.len());
        let observed = float(gaps.iter().filter(|seen| **seen == gap).count());
        chi_square += (observed - expected) * (observed - expected) / expected;
    }
    chi_square
}

/// Half way between min and max the base probability is half of 20 %, so a gap of 1 to 9 is equally
/// likely. Fails without the count (the gaps would be geometric, up to 100), if the count started
/// at 0 (1 to 10), and with another ramp.
#[test]
fn gaps_between_drops_are_as_floyd_says() {
    let gaps = gaps(20);
    assert!(gaps.len() > 30_000);
    let mean = float(gaps.iter().sum::<usize>()) / float(gaps.len());
    assert!((mean / 5.0 - 1.0).abs() < 0.05, "{mean}");
    assert_eq!(gaps.iter().max(), Some(&9));
    let pmf_expected = pmf(0.1);
    assert_eq!(pmf_expected.len(), 10);
    // 99 % point for 8 degrees of freedom.
    let chi_square_right = chi_square(&gaps, &pmf_expected);
    assert!(chi_square_right < 20.09, "{chi_square_right}");
    assert!(chi_square(&gaps, &pmf(0.105)) > 20.09);
    row(
        PART,
        "RED pmf, 200,000 arrivals at p_b = 10 %: mean gap, longest",
        format!("{mean:.3}, {}", gaps.iter().max().unwrap()),
        "5 +- 5 %, 9",
    );
    row(
        PART,
        "RED pmf, 200,000 arrivals at p_b = 10 %: chi-squared of the gaps",
        format!("{chi_square_right:.2}"),
        "below 20.09, the 99 % point",
    );
}

fn config() -> RedConfig {
    RedConfig {
        min: Some(ByteCount::kb(10)),
        max: Some(ByteCount::kb(20)),
        weight: Fraction::ONE,
        ..RedConfig::default()
    }
}

/// The share of 50,000 arrivals dropped at a standing queue of so many packets of 1,000 bytes.
fn share(config: RedConfig, packets: u32) -> f64 {
    let mut link = Link::new(Rate::from_mbps(8), QueueLimits::NONE, Discipline::DropTail);
    for _ in 0..=packets {
        link.arrive(Timestamp::ZERO, 1_000, 0, Ecn::Ect0);
    }
    link.reconfigure(Timestamp::ZERO, QueueLimits::NONE, Discipline::Red(config));
    let before = link.queue.tally().packets;
    let mut dropped = 0;
    let mut marked = 0;
    for serial in 0..50_000 {
        let waiting = Waiting {
            packet: Packet {
                ecn: Ecn::Ect0,
                ..Packet::new(ByteCount::kb(1), serial)
            },
            arrived_at: Timestamp::ZERO,
            fortune: link.fortunes.draw(),
        };
        let rate = link.rate;
        let mut is_let_in = true;
        link.queue
            .enqueue(Timestamp::ZERO, waiting, rate, &mut |fate| match fate {
                Fate::Dropped(..) => {
                    dropped += 1;
                    is_let_in = false;
                }
                Fate::Marked { .. } => marked += 1,
            });
        if is_let_in {
            link.queue.dequeue(Timestamp::ZERO, &mut |_| ());
        }
    }
    assert_eq!(link.queue.tally().packets, before);
    assert!(marked == 0 || (config.ecn && dropped == 0));
    f64::from(dropped + marked) / 50_000.0
}

/// A gap is uniform over 1 to 1 / p_b - 1, so its mean is half of 1 / p_b, and twice the base
/// probability is dropped. Fails for another slope on either part of the ramp.
#[test]
fn the_ramp_is_gentle_above_max() {
    for (packets, expected) in [(9, 0.0), (10, 0.0), (15, 0.02), (30, 1.0), (40, 1.0)] {
        let share = share(config(), packets);
        assert!(
            (share - expected).abs() < 0.001,
            "{packets} packets: {share}"
        );
    }
    // Right above max, 2 % and a twentieth of the other 98 %: 6.9 %.
    let just_above = share(config(), 21);
    assert!(
        (just_above / (2.0 * 0.069) - 1.0).abs() < 0.05,
        "{just_above}"
    );
    let abrupt = RedConfig {
        gentle: false,
        ..config()
    };
    assert!((share(abrupt, 20) - 1.0).abs() < 1e-9);
}

/// Fails if marks were given where everything is to go, or not given on the ramp.
#[test]
fn marks_take_the_place_of_drops_on_the_ramp_only() {
    let ecn = RedConfig {
        ecn: true,
        ..config()
    };
    let marked = share(ecn, 15);
    assert!((marked / 0.02 - 1.0).abs() < 0.05, "{marked}");
    assert!((share(ecn, 40) - 1.0).abs() < 1e-9);
}

/// Fails if the thresholds were taken from anything but the limit. The average is the length, so
/// nothing is dropped up to a sixth, and everything at the limit.
#[test]
fn thresholds_follow_the_limit() {
    let plain = RedConfig {
        weight: Fraction::ONE,
        gentle: false,
        ..RedConfig::default()
    };
    for limit in [
        QueueLimits::bytes(ByteCount::kb(90)),
        QueueLimits::packets(60),
    ] {
        let mut link = Link::new(Rate::from_kbps(8), limit, Discipline::Red(plain));
        for _ in 0..1_000 {
            link.arrive(Timestamp::ZERO, 1_500, 0, Ecn::NotEct);
        }
        // One is in service; half of 90 kB are 30 packets; all others met the ramp or the end.
        assert_eq!(link.queue.tally().packets, 30, "{limit:?}");
        let first = link.dropped[0].packet.payload;
        assert!(first > 11, "{first}");
        assert_eq!(
            link.dropped
                .iter()
                .filter(|dropped| dropped.cause == QueueDrop::Full)
                .count(),
            0
        );
    }
}

/// A slow average does not see a burst that fits into the queue; a fast one does. Fails if the
/// length itself were used.
#[test]
fn a_burst_passes_a_slow_average() {
    for (weight, is_dropped) in [(2_000_000, false), (1_000_000_000, true)] {
        let config = RedConfig {
            weight: Fraction::from_ppb(weight).unwrap(),
            ..RedConfig::default()
        };
        let limit = QueueLimits::bytes(ByteCount::kb(90));
        let mut link = Link::new(Rate::from_mbps(10), limit, Discipline::Red(config));
        for _ in 0..60 {
            link.arrive(Timestamp::ZERO, 1_500, 0, Ecn::NotEct);
        }
        assert_eq!(!link.dropped.is_empty(), is_dropped, "{weight}");
    }
}

/// Fills the average up to three times max, drains, and waits so many packet times. Whether the
/// next packet then passes tells how far the average has come down: (1 - 0.002)^m * 60 kB.
///
/// Fails if the idle time counted in milliseconds or not at all; a packet takes 1.5 ms here.
#[test]
fn the_average_decays_in_packet_times_while_idle() {
    let config = RedConfig {
        weight: Fraction::from_ppb(2_000_000).unwrap(),
        ..config()
    };
    // Below max, and so let in most probably, after ln 3 / 0.002 = 549 packets; everything is
    // dropped above 2 max, before ln 1.5 / 0.002 = 203.
    for (packets, is_let_in) in [(190, false), (900, true)] {
        let mut link = Link::new(Rate::from_mbps(8), QueueLimits::NONE, Discipline::DropTail);
        for _ in 0..=60 {
            link.arrive(Timestamp::ZERO, 1_000, 0, Ecn::NotEct);
        }
        link.reconfigure(Timestamp::ZERO, QueueLimits::NONE, Discipline::Red(config));
        // 60 ms until the last of the sixty is in service, then idle time.
        link.advance(Timestamp::from_secs(1));
        let at = Timestamp::from_millis(60) + Duration::from_micros(1_500) * packets;
        let at = at.max(Timestamp::from_millis(61));
        let before = link.dropped.len();
        link.arrive(at, 1_000, 0, Ecn::NotEct);
        assert_eq!(link.dropped.len() == before, is_let_in, "{packets}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let limit = QueueLimits::bytes(ByteCount::kb(100));
    assert_eq!(RedConfig::default().check(limit), Ok(()));
    assert!(RedConfig::default().check(QueueLimits::NONE).is_err());
    assert_eq!(config().check(QueueLimits::NONE), Ok(()));
    let with = |change: fn(&mut RedConfig)| {
        let mut config = RedConfig::default();
        change(&mut config);
        config.check(QueueLimits::bytes(ByteCount::kb(100)))
    };
    assert!(with(|config| config.weight = Fraction::ZERO).is_err());
    assert!(with(|config| config.typical_packet = ByteCount::ZERO).is_err());
    assert!(with(|config| config.min = Some(ByteCount::kb(50))).is_err());
    assert!(with(|config| config.max = Some(ByteCount::mb(10_000_000))).is_err());
}
