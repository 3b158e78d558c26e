//! PIE: where it settles, and what it lets through.

use super::*;
use crate::queue::probability::Probability;
use crate::queue::{PieConfig, Policy};

/// 1,250 bytes at 10 Mbit/s take 1 ms.
const RATE: Rate = Rate::from_mbps(10);
const SIZE: u64 = 1_250;

fn probability(link: &Link) -> f64 {
    let Policy::Pie(pie) = &link.queue.policy else {
        panic!("not PIE");
    };
    share(pie.probability())
}

fn share(probability: Probability) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share, to 53 bits")]
    let steps = probability.steps() as f64;
    steps / (1_u64 << 60) as f64
}

/// The mean delay, the mean probability and the share of drops over the second half of two minutes
/// at 1.2 times what the link carries.
fn settled(config: PieConfig) -> (f64, f64, f64) {
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::Pie(config));
    let gap = Duration::from_nanos(833_333);
    let half = Timestamp::from_secs(60);
    let mut at = Timestamp::ZERO;
    let (mut sum, mut count) = (0.0, 0_u32);
    while at < Timestamp::from_secs(120) {
        link.arrive(at, SIZE, 0, Ecn::NotEct);
        if at >= half {
            sum += probability(&link);
            count += 1;
        }
        at += gap;
    }
    link.assert_balance();
    let late = link.dropped.iter().filter(|dropped| dropped.at >= half);
    let dropped = float(late.count()) / f64::from(count);
    (link.mean_delay(half), sum / f64::from(count), dropped)
}

#[track_caller]
fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value / expected - 1.0).abs() <= tolerance,
        "{value}, {expected} expected"
    );
}

/// The rows of one way to drop, and the probability it needs.
fn settled_rows(way: &str, (delay, probability, dropped): (f64, f64, f64), allowed: &str) {
    let name = |what| format!("PIE, 1.2 times the rate, {way}: {what}");
    let millis = format!("{:.2} ms", delay * 1e3);
    row(PART, &name("delay"), millis, "15 ms +- 10 %");
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    row(PART, &name("probability p"), percent(probability), allowed);
    row(
        PART,
        &name("share dropped"),
        percent(dropped),
        "16.7 % +- 1 %",
    );
}

/// Every arrival is dropped with the same probability, so that must be the excess, 1 - 1 / 1.2.
/// Fails if the sign or the scale of a gain were wrong (the delay would run away), and with another
/// target.
#[test]
fn delay_and_probability_settle_without_derandomisation() {
    let (delay, probability, dropped) = settled(PieConfig {
        derandomise: false,
        ..PieConfig::default()
    });
    assert_close(delay, 0.015, 0.1);
    assert_close(probability, 1.0 / 6.0, 0.1);
    assert_close(dropped, 1.0 / 6.0, 0.01);
    settled_rows(
        "without derandomisation",
        (delay, probability, dropped),
        "16.7 % +- 10 %",
    );
}

/// After a drop nothing is dropped until the probabilities add up to 0.85, and then each packet by
/// the probability p, so one in `ceil(0.85 / p) - 1 + 1 / p` is. For one in six, p must be where that
/// steps from 5.5 to 6.5: at 0.85 / 3 = 0.283. Fails if the pause after a drop were left out.
#[test]
fn delay_and_drops_settle_with_derandomisation() {
    let (delay, probability, dropped) = settled(PieConfig::default());
    assert_close(delay, 0.015, 0.1);
    assert_close(probability, 0.283, 0.1);
    assert_close(dropped, 1.0 / 6.0, 0.01);
    settled_rows(
        "derandomised (the default)",
        (delay, probability, dropped),
        "28.3 % +- 10 %: 0.85 / 3, and not the share dropped",
    );
}

/// Fails if the burst allowance were not there, or not spent by the updates.
#[test]
fn a_burst_is_let_through() {
    for burst in [150, 0] {
        let config = PieConfig {
            burst: Duration::from_millis(burst),
            ..PieConfig::default()
        };
        let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::Pie(config));
        link.arrive_evenly(
            Duration::from_micros(200),
            SIZE,
            Ecn::NotEct,
            Timestamp::from_secs(1),
        );
        let first = link.aqm_drops()[0];
        assert_eq!(
            first >= Timestamp::from_millis(150),
            burst == 150,
            "{first}"
        );
        assert!(first < Timestamp::from_millis(400), "{first}");
    }
}

/// Fails if marks went on above 10 %.
#[test]
fn high_probabilities_drop_what_could_be_marked() {
    let config = PieConfig {
        ecn: true,
        ..PieConfig::default()
    };
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::Pie(config));
    // Marks slow nobody down here, so the probability soon passes 10 %.
    link.arrive_evenly(
        Duration::from_micros(800),
        SIZE,
        Ecn::Ect0,
        Timestamp::from_secs(20),
    );
    assert!(probability(&link) > 0.1);
    assert!(!link.marked.is_empty());
    assert!(!link.aqm_drops().is_empty());
    let last_mark = link
        .served
        .iter()
        .rfind(|served| served.packet.ecn == Ecn::Ce)
        .unwrap();
    assert!(last_mark.at < Timestamp::from_secs(10), "{}", last_mark.at);
    link.advance(Timestamp::MAX);
    link.assert_balance();
    link.assert_honest_marks();
}

/// On a slow link every packet waits for the two before it, 200 ms, but one or two are too few to
/// drop any.
/// Fails without the rule of two MTU.
#[test]
fn a_short_queue_is_left_alone() {
    for (mtu, is_dropped) in [(1_514, false), (0, true)] {
        let config = PieConfig {
            mtu: ByteCount::new(mtu),
            burst: Duration::ZERO,
            ..PieConfig::default()
        };
        let mut link = Link::new(
            Rate::from_kbps(100),
            QueueLimits::NONE,
            Discipline::Pie(config),
        );
        for _ in 0..2 {
            link.arrive(Timestamp::ZERO, SIZE, 0, Ecn::NotEct);
        }
        link.arrive_evenly(
            Duration::from_millis(100),
            SIZE,
            Ecn::NotEct,
            Timestamp::from_secs(60),
        );
        assert_eq!(!link.aqm_drops().is_empty(), is_dropped, "{mtu}");
    }
}

/// Fails if the probability stayed up once the queue is empty; and, since the whole idle time is
/// made up for by one call, if that missed any update.
#[test]
fn the_probability_decays_while_nothing_waits() {
    let mut link = Link::new(
        RATE,
        QueueLimits::NONE,
        Discipline::Pie(PieConfig::default()),
    );
    link.arrive_evenly(
        Duration::from_micros(500),
        SIZE,
        Ecn::NotEct,
        Timestamp::from_secs(20),
    );
    link.advance(Timestamp::from_secs(30));
    let idle = link.clone();
    let before = probability(&link);
    assert!(before > 0.3, "{before}");
    for (secs, most) in [(31, before * 0.75), (40, before * 0.01), (10_000, 0.0)] {
        let mut link = idle.clone();
        link.arrive(Timestamp::from_secs(secs), SIZE, 0, Ecn::NotEct);
        assert!(
            probability(&link) <= most,
            "{secs} s: {}",
            probability(&link)
        );
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let with = |change: fn(&mut PieConfig)| {
        let mut config = PieConfig::default();
        change(&mut config);
        config.check()
    };
    assert_eq!(with(|_| ()), Ok(()));
    assert!(with(|config| config.target = Duration::ZERO).is_err());
    assert!(with(|config| config.update = Duration::from_nanos(999)).is_err());
    assert!(with(|config| config.burst = Duration::from_secs(3_601)).is_err());
    assert!(with(|config| config.beta = crate::Gain::from_millihertz(1_000_001)).is_err());
}

/// While the delay is below half of the target, a probability below 20 % drops nothing. Fails
/// without that rule: of 40 packets about six would go.
#[test]
fn a_small_delay_lets_everything_in() {
    let config = PieConfig {
        derandomise: false,
        ..PieConfig::default()
    };
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::Pie(config));
    let end = Timestamp::from_secs(60);
    link.arrive_evenly(Duration::from_nanos(833_333), SIZE, Ecn::NotEct, end);
    // The queue drains in about 15 ms and stays empty for some updates.
    let at = end + Duration::from_millis(100);
    link.advance(at);
    let before = link.dropped.len();
    for _ in 0..40 {
        link.arrive(at, SIZE, 0, Ecn::NotEct);
    }
    assert!(
        (0.05..0.2).contains(&probability(&link)),
        "{}",
        probability(&link)
    );
    assert_eq!(link.dropped.len(), before);
}

/// Fails if a shorter period waited for the end of a longer one.
#[test]
fn a_shorter_period_holds_at_once() {
    let slow = PieConfig {
        update: Duration::from_secs(3_600),
        ..PieConfig::default()
    };
    let mut link = Link::new(RATE, QueueLimits::NONE, Discipline::Pie(slow));
    link.arrive_evenly(
        Duration::from_micros(800),
        SIZE,
        Ecn::NotEct,
        Timestamp::from_secs(1),
    );
    assert!(link.dropped.is_empty());
    let now = Timestamp::from_secs(1);
    link.reconfigure(
        now,
        QueueLimits::NONE,
        Discipline::Pie(PieConfig::default()),
    );
    for step in 0..2_000 {
        link.arrive(
            now + Duration::from_micros(800) * step,
            SIZE,
            0,
            Ecn::NotEct,
        );
    }
    assert!(!link.dropped.is_empty());
}
