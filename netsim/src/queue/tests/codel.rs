//! CoDel against its control law.

use super::*;
use crate::packet::Fortunes;
use crate::queue::CoDelConfig;
use crate::queue::codel::{Control, Source};

/// The gap between two packets that leave: 1,250 bytes at 100 Mbit/s.
const SERVICE: Duration = Duration::from_micros(100);

fn config(ecn: bool) -> Discipline {
    Discipline::CoDel(CoDelConfig {
        ecn,
        ..CoDelConfig::default()
    })
}

/// Two arrivals per departure for half a second.
fn double_load(discipline: Discipline, ecn: Ecn) -> Link {
    let mut link = Link::new(Rate::from_mbps(100), QueueLimits::NONE, discipline);
    link.arrive_evenly(SERVICE / 2, 1_250, ecn, Timestamp::from_millis(500));
    link.assert_balance();
    link.assert_honest_marks();
    link
}

/// By how much the drops miss 100, 170.7, 228.4, 278.4 and 323.2 ms after the first, at most; in
/// seconds.
fn error(link: &Link) -> f64 {
    let drops = link.aqm_drops();
    let expected = [0.100, 0.170_711, 0.228_446, 0.278_446, 0.323_167];
    expected
        .iter()
        .zip(&drops[1..])
        .map(|(expected, at)| (at.saturating_since(drops[0]).as_secs_f64() - expected).abs())
        .fold(0.0, f64::max)
}

/// Fails if the spacing followed 1/count (the third drop would come at 150 ms), if it were counted
/// from the time of the drop rather than from when it was due, or with another interval.
#[test]
fn drops_follow_the_square_root_law() {
    let link = double_load(config(false), Ecn::NotEct);
    let tolerance = SERVICE.as_secs_f64();
    assert!(error(&link) <= tolerance, "{}", error(&link));
    let off = Discipline::CoDel(CoDelConfig {
        interval: Duration::from_micros(100_500),
        ..CoDelConfig::default()
    });
    assert!(error(&double_load(off, Ecn::NotEct)) > tolerance);

    let drops = &link.aqm_drops()[..6];
    let gaps = || {
        drops
            .windows(2)
            .map(|pair| pair[1].saturating_since(pair[0]))
    };
    for (gap, expected) in gaps().zip([100.0, 70.711, 57.735, 50.0, 44.721]) {
        let error = (gap.as_secs_f64() * 1e3 - expected).abs();
        assert!(error <= tolerance * 1e3, "{gap:?}, {expected} ms expected");
    }
    row(
        PART,
        "CoDel law, two arrivals per departure: drops after entry",
        list_ms(drops[1..].iter().map(|at| at.saturating_since(drops[0]))),
        "100, 170.7, 228.4, 278.4, 323.2 ms, each +- 0.1 ms",
    );
    row(
        PART,
        "CoDel law, two arrivals per departure: gaps",
        list_ms(gaps()),
        "100, 70.7, 57.7, 50, 44.7 ms, each +- 0.1 ms",
    );
}

/// With half of the load in excess, a packet waits half of its arrival time: 5 ms after 10 ms. That
/// starts the interval; the first drop comes when it ends. Fails if dropping began at once, or if
/// the target were compared with anything but the time waited.
#[test]
fn the_first_drop_comes_an_interval_after_the_target_was_passed() {
    let link = double_load(config(false), Ecn::NotEct);
    let first = link.aqm_drops()[0];
    let passed = Timestamp::from_millis(10);
    let error = first
        .saturating_since(passed)
        .abs_diff(Duration::from_millis(100));
    assert!(error <= SERVICE, "{first}");
    row(
        PART,
        "CoDel law, two arrivals per departure: entry, after the target was passed",
        list_ms(std::iter::once(first.saturating_since(passed))),
        "100 +- 0.1 ms",
    );
    // Dropped at the head: the packet that had waited longest.
    let index = link.dropped[0].packet.payload;
    assert!(index < link.offered.packets / 2, "{index}");
}

/// Fails if marks followed another schedule than drops, or if a packet were marked and dropped.
#[test]
fn marks_take_the_place_of_drops() {
    let link = double_load(config(true), Ecn::Ect0);
    assert!(link.aqm_drops().is_empty());
    let marks: Vec<Timestamp> = link
        .served
        .iter()
        .filter(|served| served.packet.ecn == Ecn::Ce)
        .map(|served| served.at)
        .collect();
    let drops = double_load(config(false), Ecn::Ect0).aqm_drops();
    // A dropped packet makes the next one leave at the same instant; a marked one does not.
    assert!(marks.len().abs_diff(drops.len()) <= 1);
    for (mark, drop) in marks.iter().zip(&drops) {
        assert!(
            mark.saturating_since(*drop)
                .max(drop.saturating_since(*mark))
                <= SERVICE
        );
    }
}

#[test]
fn packets_without_ecn_are_dropped_even_if_marking_is_on() {
    let link = double_load(config(true), Ecn::NotEct);
    assert!(!link.aqm_drops().is_empty());
    assert!(link.marked.is_empty());
}

/// On a link where one packet takes 150 ms every packet waits too long, but at most one waits
/// behind it. Fails without the MTU rule, which the second half shows.
#[test]
fn the_last_packet_is_never_dropped() {
    for (mtu, is_starved) in [(1_514, false), (0, true)] {
        let discipline = Discipline::CoDel(CoDelConfig {
            mtu: ByteCount::new(mtu),
            ..CoDelConfig::default()
        });
        let mut link = Link::new(Rate::from_kbps(80), QueueLimits::NONE, discipline);
        for _ in 0..2 {
            link.arrive(Timestamp::ZERO, 1_500, 0, Ecn::NotEct);
        }
        let end = Timestamp::from_secs(30);
        link.arrive_evenly(Duration::from_millis(150), 1_500, Ecn::NotEct, end);
        assert_eq!(!link.aqm_drops().is_empty(), is_starved, "{mtu}");
    }
}

/// An endless queue whose packets have all waited as long as wanted.
struct Endless {
    arrived_at: Timestamp,
}

impl Source<Serial> for Endless {
    fn pop(&mut self) -> Option<Waiting<Serial>> {
        Some(Waiting {
            packet: Packet::new(ByteCount::new(1_250), 0),
            arrived_at: self.arrived_at,
            fortune: Fortunes::new(&RandomStreams::new(1), "").draw(),
        })
    }

    fn backlog(&self) -> ByteCount {
        ByteCount::mb(1)
    }
}

/// Lets one packet out, late or not, and counts the drops.
fn step(control: &mut Control, millis: u64, is_late: bool) -> usize {
    let now = Timestamp::from_millis(millis);
    let waited = Duration::from_millis(if is_late { 10 } else { 1 });
    let mut source = Endless {
        arrived_at: now.saturating_sub(waited),
    };
    let mut drops = 0;
    control.dequeue(now, &CoDelConfig::default(), &mut source, &mut |_| {
        drops += 1
    });
    drops
}

/// Ten drops, a pause, then late packets again: the drops go on about as closely as they were if
/// the pause was short, and start over after a long one. Fails if the count were always reset, if it
/// were never, and if the pause were measured against anything but 16 intervals.
#[test]
fn dropping_resumes_where_it_left_off() {
    for (pause, second_gap) in [
        // The count was 10 when dropping ended, 1 when it began: it resumes at 9, 100 / 3 ms.
        (1_000, 34),
        (3_000, 100),
    ] {
        let mut control = Control::new();
        let mut millis = 1_000;
        let mut drops = 0;
        while drops < 10 {
            drops += step(&mut control, millis, true);
            millis += 1;
        }
        step(&mut control, millis, false);
        millis += pause;
        let mut at = Vec::new();
        while at.len() < 2 {
            if step(&mut control, millis, true) > 0 {
                at.push(millis);
            }
            millis += 1;
        }
        assert_eq!(at[1] - at[0], second_gap, "pause {pause}");
    }
}

/// A packet in time ends dropping at once, however many drops were due. Fails if it did not.
#[test]
fn one_packet_in_time_ends_dropping() {
    let mut control = Control::new();
    assert_eq!(step(&mut control, 1_000, true), 0);
    assert_eq!(step(&mut control, 1_099, true), 0);
    assert_eq!(step(&mut control, 1_100, true), 1);
    assert_eq!(step(&mut control, 1_199, true), 0);
    assert_eq!(step(&mut control, 1_300, false), 0);
    assert_eq!(step(&mut control, 1_301, true), 0);
    assert_eq!(step(&mut control, 1_400, true), 0);
    assert_eq!(step(&mut control, 1_401, true), 1);
}

/// Several drops may be due by the time a packet leaves a slow link. Fails if at most one were
/// dropped per departure.
#[test]
fn overdue_drops_are_made_up_for() {
    let mut control = Control::new();
    step(&mut control, 1_000, true);
    assert_eq!(step(&mut control, 1_100, true), 1);
    // Due at 1200, 1270.7, 1328.4, 1378.4.
    assert_eq!(step(&mut control, 1_380, true), 4);
}

#[test]
fn settings_out_of_range_are_refused() {
    let check = |target, interval| {
        CoDelConfig {
            target: Duration::from_millis(target),
            interval: Duration::from_millis(interval),
            ..CoDelConfig::default()
        }
        .check()
    };
    assert_eq!(check(5, 100), Ok(()));
    assert_eq!(check(5, 5), Ok(()));
    assert!(check(0, 100).is_err());
    assert!(check(5, 4).is_err());
    assert!(check(5, 3_600_001).is_err());
}

/// Fails if a packet that came with CE were dropped, or counted as marked here.
#[test]
fn congestion_that_was_signalled_before_is_signal_enough() {
    let link = double_load(config(true), Ecn::Ce);
    assert!(link.dropped.is_empty());
    assert!(link.marked.is_empty());
}
