//! Oracles: what must hold in every run, whatever the scenario expects.
//!
//! | oracle | what must not happen |
//! |---|---|
//! | O1 stuck | a sender that has data stands at its minimum window for 2 s and 50 round trips, and nothing is lost |
//! | O2 phantom recovery | recovery begins without a packet newly declared lost or a mark |
//! | O4 overfull | more is sent although the bytes in flight fill the window, and neither a probe timeout nor an overdue acknowledgement allows it |
//! | O6 probe storm | three probe timeouts in a row on a link that drops nothing |
//! | O9 double cut | recovery begins twice within one round trip |
//! | O10 conservation | a packet is neither delivered, nor dropped for a cause, nor inside the link |
//!
//! The numbers are those of the project's list; O3 (a recovery or epoch that begins in the future) is an invariant of the
//! controllers themselves (`cc/tests/random_operations.rs`), O5 (pacing) is proven on the stack
//! (`quic-core/tests/stack/pacing.rs`), and O7 is about BBR.
//!
//! An oracle listens and answers nothing. The first violation fails the run.

use std::time::Duration;

use cc::{State, Transition, Trigger};
use quic_core::SenderUpdate;
use serde::Serialize;
use units::{ByteCount, Timestamp};

use crate::results::LinkCounts;

/// How long a sender may stand at its minimum window.
const LONGEST_STAY: Duration = Duration::from_secs(2);
/// How many RTT samples it takes besides, so that silence does not count.
const LONGEST_STAY_SAMPLES: u64 = 50;
/// How many packets a probe timeout lets go (RFC 9002 section 6.2.4).
const PROBES: u64 = 2;
/// How many probe timeouts in a row a link may see that drops nothing.
const MOST_PROBES: u64 = 2;

/// The first thing that must not have happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which oracle: "O1" and so on.
    pub oracle: &'static str,
    /// When, from the beginning of the run.
    pub at_ns: u64,
    /// What happened.
    pub what: &'static str,
}

/// Watches the sender of one run.
#[derive(Debug)]
pub(crate) struct Oracles {
    /// The shortest round-trip time that the link can have.
    shortest_rtt: Duration,
    /// Whether the sender takes what it can get; one without data may stand at any window.
    is_greedy: bool,
    last: Option<Seen>,
    stay: Option<Stay>,
    entered: bool,
    cut_at: Option<Timestamp>,
    /// How many probes may still leave through a full window.
    exempt: u64,
    /// When something left through it that was no probe.
    overfull_at: Option<Timestamp>,
    /// Probe timeouts since the last RTT sample.
    probes: u64,
    most_probes: (u64, Timestamp),
    first: Option<Violation>,
}

/// The sender as it was seen last.
#[derive(Debug, Clone, Copy)]
struct Seen {
    in_flight: ByteCount,
    packets_lost: u64,
    marks: u64,
    probe_timeouts: u64,
    ack_exemptions: u64,
}

/// A stay at the minimum window.
#[derive(Debug, Clone, Copy)]
struct Stay {
    since: Timestamp,
    samples: u64,
    packets_lost: u64,
}

impl Oracles {
    pub(crate) fn new(shortest_rtt: Duration, is_greedy: bool) -> Self {
        Self {
            shortest_rtt,
            is_greedy,
            last: None,
            stay: None,
            entered: false,
            cut_at: None,
            exempt: 0,
            overfull_at: None,
            probes: 0,
            most_probes: (0, Timestamp::ZERO),
            first: None,
        }
    }

    /// The controller's state changed; what brought it is seen with the next update.
    pub(crate) fn on_transition(&mut self, now: Timestamp, transition: &Transition) {
        // A cut that is taken back did not happen.
        if transition.trigger == Trigger::SpuriousLoss {
            self.cut_at = None;
        }
        if transition.to != State::Recovery {
            return;
        }
        self.entered = true;
        let soon = |at: Timestamp| now.saturating_since(at) < self.shortest_rtt;
        if self.cut_at.is_some_and(soon) {
            self.violated("O9", now, "recovery began twice within one round trip");
        }
        self.cut_at = Some(now);
    }

    pub(crate) fn on_update(&mut self, now: Timestamp, update: &SenderUpdate) {
        let seen = Seen {
            in_flight: update.in_flight,
            packets_lost: update.packets_lost,
            marks: update.ce_count,
            probe_timeouts: update.pto_count,
            ack_exemptions: update.ack_exemptions,
        };
        if let Some(last) = self.last {
            let is_told = seen.packets_lost > last.packets_lost || seen.marks > last.marks;
            if self.entered && !is_told {
                self.violated(
                    "O2",
                    now,
                    "recovery began without a packet newly lost or a mark",
                );
            }
            if seen.probe_timeouts > last.probe_timeouts {
                self.exempt = PROBES;
            }
            // What an acknowledgement rode on is counted after it has left.
            let ridden = seen.ack_exemptions - last.ack_exemptions;
            if let Some(at) = self.overfull_at.take()
                && ridden == 0
            {
                self.violated("O4", at, "more was sent although the window was full");
            }
            let has_sent = seen.in_flight > last.in_flight;
            let was_full = last.in_flight >= update.window;
            if has_sent && was_full {
                if self.exempt == 0 {
                    self.overfull_at = Some(now);
                }
                self.exempt = self.exempt.saturating_sub(1);
            }
            self.probes = match update.latest_rtt {
                Some(_) => 0,
                None => self.probes + (seen.probe_timeouts - last.probe_timeouts),
            };
            if self.probes > self.most_probes.0 {
                self.most_probes = (self.probes, now);
            }
        }
        self.entered = false;
        self.watch_the_floor(now, update);
        self.last = Some(seen);
    }

    fn watch_the_floor(&mut self, now: Timestamp, update: &SenderUpdate) {
        if !self.is_greedy || update.window > update.minimum_window {
            self.stay = None;
            return;
        }
        let stay = self.stay.get_or_insert(Stay {
            since: now,
            samples: 0,
            packets_lost: update.packets_lost,
        });
        if update.packets_lost > stay.packets_lost {
            *stay = Stay {
                since: now,
                samples: 0,
                packets_lost: update.packets_lost,
            };
        }
        stay.samples += u64::from(update.latest_rtt.is_some());
        let is_long = now.saturating_since(stay.since) > LONGEST_STAY;
        if is_long && stay.samples > LONGEST_STAY_SAMPLES {
            self.violated(
                "O1",
                now,
                "at the minimum window for 2 s and 50 round trips, with data to send and no loss",
            );
        }
    }

    fn violated(&mut self, oracle: &'static str, now: Timestamp, what: &'static str) {
        self.first.get_or_insert(Violation {
            oracle,
            at_ns: now.as_nanos(),
            what,
        });
    }

    /// The first violation of the run, with what only its end shows.
    pub(crate) fn finish(
        mut self,
        now: Timestamp,
        links: [(&LinkCounts, bool); 2],
    ) -> Option<Violation> {
        let (probes, at) = self.most_probes;
        let dropped: u64 = links
            .iter()
            .map(|(counts, _)| counts.dropped_packets())
            .sum();
        let damaged: u64 = links.iter().map(|(counts, _)| counts.corrupt_packets).sum();
        if probes > MOST_PROBES && dropped + damaged == 0 {
            self.violated(
                "O6",
                at,
                "three probe timeouts in a row on a link that dropped nothing",
            );
        }
        if links.iter().any(|(_, is_balanced)| !is_balanced) {
            self.violated("O10", now, "the link lost count of its packets");
        }
        self.first
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn update() -> SenderUpdate {
        let mut update = SenderUpdate::default();
        update.window = ByteCount::new(27_000);
        update.minimum_window = ByteCount::new(2_700);
        update.in_flight = ByteCount::new(13_500);
        update.pacing_rate = Rate::INFINITE;
        update
    }

    fn recovery() -> Transition {
        Transition {
            from: State::CongestionAvoidance,
            to: State::Recovery,
            trigger: Trigger::PacketLost,
        }
    }

    fn first(oracles: Oracles) -> Option<&'static str> {
        let link = LinkCounts::default();
        let violation = oracles.finish(ms(1_000), [(&link, true), (&link, true)]);
        violation.map(|violation| violation.oracle)
    }

    #[test]
    fn a_stay_at_the_floor_is_told_from_a_visit() {
        let stand = |is_greedy: bool, loses: bool, has_samples: bool, until: u64| {
            let mut oracles = Oracles::new(RTT, is_greedy);
            for at in (0..until).step_by(10) {
                let mut update = update();
                update.window = update.minimum_window;
                update.latest_rtt = has_samples.then_some(RTT);
                update.packets_lost = if loses { at / 500 } else { 0 };
                oracles.on_update(ms(at), &update);
            }
            first(oracles)
        };
        assert_eq!(stand(true, false, true, 2_020), Some("O1"));
        assert_eq!(stand(true, false, true, 2_000), None, "not long enough");
        assert_eq!(stand(true, true, true, 5_000), None, "it keeps losing");
        assert_eq!(
            stand(false, false, true, 5_000),
            None,
            "it has nothing to send"
        );
        assert_eq!(stand(true, false, false, 5_000), None, "it is silent");
    }

    #[test]
    fn recovery_needs_a_loss_or_a_mark() {
        let enter = |lost, marks| {
            let mut oracles = Oracles::new(RTT, true);
            oracles.on_update(ms(0), &update());
            oracles.on_transition(ms(20), &recovery());
            let mut update = update();
            update.packets_lost = lost;
            update.ce_count = marks;
            oracles.on_update(ms(20), &update);
            first(oracles)
        };
        assert_eq!(enter(0, 0), Some("O2"));
        assert_eq!(enter(1, 0), None);
        assert_eq!(enter(0, 1), None);
    }

    #[test]
    fn two_cuts_take_a_round_trip() {
        let undo = Transition {
            from: State::Recovery,
            to: State::CongestionAvoidance,
            trigger: Trigger::SpuriousLoss,
        };
        let cuts = |apart: u64, is_undone: bool| {
            let mut oracles = Oracles::new(RTT, true);
            oracles.on_update(ms(0), &update());
            for (at, lost) in [(20, 1), (20 + apart, 2)] {
                if lost == 2 && is_undone {
                    oracles.on_transition(ms(at), &undo);
                }
                oracles.on_transition(ms(at), &recovery());
                let mut update = update();
                update.packets_lost = lost;
                oracles.on_update(ms(at), &update);
            }
            first(oracles)
        };
        assert_eq!(cuts(9, false), Some("O9"));
        assert_eq!(cuts(10, false), None);
        assert_eq!(cuts(9, true), None, "the first was taken back");
    }

    #[test]
    fn a_full_window_sends_two_probes_and_no_more() {
        let send = |before: u64, pto_count, packets: u64| {
            let mut oracles = Oracles::new(RTT, true);
            let mut update = update();
            update.in_flight = ByteCount::new(before);
            oracles.on_update(ms(0), &update);
            for packet in 1..=packets {
                update.in_flight = ByteCount::new(before + packet * 1_350);
                update.pto_count = pto_count;
                oracles.on_update(ms(packet), &update);
            }
            oracles.on_update(ms(100), &update);
            first(oracles)
        };
        assert_eq!(send(27_000, 0, 1), Some("O4"));
        assert_eq!(send(27_000, 1, 2), None);
        assert_eq!(send(27_000, 1, 3), Some("O4"));
        assert_eq!(send(26_999, 0, 1), None);
        // What an overdue acknowledgement rides on may pass once.
        let mut oracles = Oracles::new(RTT, true);
        let mut full = update();
        full.in_flight = full.window;
        oracles.on_update(ms(0), &full);
        full.in_flight = full.window + ByteCount::new(1_350);
        oracles.on_update(ms(1), &full);
        full.ack_exemptions = 1;
        oracles.on_update(ms(2), &full);
        assert_eq!(first(oracles), None);
    }

    #[test]
    fn probes_on_a_link_that_drops_nothing_are_a_storm() {
        let probe = |count, dropped| {
            let mut oracles = Oracles::new(RTT, true);
            for pto_count in 0..=count {
                let mut update = update();
                update.pto_count = pto_count;
                oracles.on_update(ms(pto_count), &update);
            }
            let link = LinkCounts {
                dropped_queue_packets: dropped,
                ..LinkCounts::default()
            };
            let violation =
                oracles.finish(ms(100), [(&link, true), (&LinkCounts::default(), true)]);
            violation.map(|violation| (violation.oracle, violation.at_ns))
        };
        assert_eq!(probe(3, 0), Some(("O6", 3_000_000)));
        assert_eq!(probe(2, 0), None);
        assert_eq!(probe(9, 1), None);
    }

    #[test]
    fn the_links_must_not_lose_count() {
        let oracles = Oracles::new(RTT, true);
        let link = LinkCounts::default();
        let violation = oracles.finish(ms(7), [(&link, true), (&link, false)]);
        assert_eq!(violation.map(|violation| violation.oracle), Some("O10"));
    }

    #[test]
    fn the_first_violation_is_the_one_that_counts() {
        let mut oracles = Oracles::new(RTT, true);
        oracles.on_update(ms(0), &update());
        oracles.on_transition(ms(5), &recovery());
        oracles.on_update(ms(5), &update());
        oracles.on_transition(ms(6), &recovery());
        assert_eq!(first(oracles), Some("O2"));
    }
}
