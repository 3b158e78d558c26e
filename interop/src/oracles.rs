//! Oracles: what must hold in every run, whatever the scenario expects.
//!
//! | oracle | what must not happen |
//! |---|---|
//! | O1 stuck | a sender that has data stands at its minimum window for 2 s and 50 round trips, and nothing is lost |
//! | O2 phantom recovery | recovery begins without a packet newly declared lost or a mark |
//! | O4 overfull | more is sent although the bytes in flight fill the window, and neither a probe timeout nor an overdue acknowledgement allows it |
//! | O5 unpaced | something leaves before the pacing rate allows, and neither a probe timeout nor an overdue acknowledgement does |
//! | O6 probe storm | three probe timeouts in a row on a link that drops nothing |
//! | O8 plateau | a sender that has data and the link for itself, without losses or marks, fills a window below a quarter of the bandwidth-delay product for 30 round trips, and the window does not grow |
//! | O9 double cut | recovery begins twice within one round trip |
//! | O10 conservation | a packet is neither delivered, nor dropped for a cause, nor inside the link |
//! | O11 no collapse | persistent congestion leaves a loss-based sender's window where it was |
//!
//! The numbers are those of the project's list, O11 is ours; O3 (a recovery or epoch that begins in the future) is an
//! invariant of the controllers themselves (`cc/tests/random_operations.rs`), which do not tell where their boundary is, and
//! O7 is about BBR.
//!
//! What a log shows afterwards is judged by `qlogs::oracles`, which has the limits too.
//!
//! An oracle listens and answers nothing. The first violation fails the run.

use std::time::Duration;

use cc::{State, Transition, Trigger};
use qlogs::oracles::{LONGEST_STAY, LONGEST_STAY_SAMPLES, MOST_PROBES, PROBES};
use quic_core::SenderUpdate;
use serde::Serialize;
use units::{ByteCount, Rate, Timestamp};

use crate::results::LinkCounts;

/// How many round trips a plateau lasts.
const PLATEAU_ROUNDS: u64 = 30;
/// The least a full window grows in them, in datagrams: Reno would grow by 30, CUBIC's Reno-friendly region by 16 (RFC 9438
/// section 4.3).
const PLATEAU_GROWTH: u64 = 8;

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

/// What is known of a run beforehand. The default knows nothing and has little to say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings {
    /// The shortest round-trip time that the link can have.
    pub(crate) shortest_rtt: Duration,
    /// Whether the sender takes what it can get; one without data may stand at any window.
    pub(crate) is_greedy: bool,
    /// The smallest bandwidth-delay product that the link can have, if it is known.
    pub(crate) bdp: Option<ByteCount>,
    /// Whether things happen when they should, as in virtual time.
    pub(crate) is_punctual: bool,
}

/// Watches the sender of one run.
#[derive(Debug)]
pub(crate) struct Oracles {
    around: Surroundings,
    last: Option<Seen>,
    stay: Option<Stay>,
    plateau: Option<Plateau>,
    pacing: Pacing,
    entered: bool,
    cut_at: Option<Timestamp>,
    /// Whether the sender's states are those of RFC 9002 section 7.3.
    is_loss_based: bool,
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
    persistent_congestions: u64,
    pacing_rate: Rate,
    window: ByteCount,
}

/// Full windows in a row that are too small for the link.
#[derive(Debug, Clone, Copy)]
struct Plateau {
    /// The window at its beginning.
    window: ByteCount,
    packets_lost: u64,
    marks: u64,
    rounds: u64,
    round_began_at: Timestamp,
    /// Whether the window was filled since then.
    was_full: bool,
}

/// When a paced sender may send next.
#[derive(Debug, Clone, Copy, Default)]
struct Pacing {
    release_at: Timestamp,
    /// How many probes may still leave before that.
    probes: u64,
    /// When something left before that which was no probe.
    early_at: Option<Timestamp>,
}

/// A stay at the minimum window.
#[derive(Debug, Clone, Copy)]
struct Stay {
    since: Timestamp,
    samples: u64,
    packets_lost: u64,
}

impl Oracles {
    pub(crate) fn new(around: Surroundings) -> Self {
        Self {
            around,
            last: None,
            stay: None,
            plateau: None,
            pacing: Pacing::default(),
            is_loss_based: false,
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
        self.is_loss_based = matches!(
            transition.to,
            State::SlowStart
                | State::ConservativeSlowStart
                | State::CongestionAvoidance
                | State::Recovery
        );
        // A cut that is taken back did not happen.
        if transition.trigger == Trigger::SpuriousLoss {
            self.cut_at = None;
        }
        if transition.to != State::Recovery {
            return;
        }
        self.entered = true;
        let soon = |at: Timestamp| now.saturating_since(at) < self.around.shortest_rtt;
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
            persistent_congestions: update.persistent_congestions,
            pacing_rate: update.pacing_rate,
            window: update.window,
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
            let has_collapsed = seen.persistent_congestions > last.persistent_congestions;
            if has_collapsed && self.is_loss_based && !is_near_the_floor(last.window, update) {
                self.violated(
                    "O11",
                    now,
                    "persistent congestion left the window where it was",
                );
            }
            self.watch_the_pace(now, update, last);
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
        self.watch_for_a_plateau(now, update);
        self.last = Some(seen);
    }

    /// cc::pacer: what leaves puts off the next release by the time it takes at the pacing rate, and lateness is made up for
    /// by one quantum at most.
    fn watch_the_pace(&mut self, now: Timestamp, update: &SenderUpdate, last: Seen) {
        let rides = update.ack_exemptions - last.ack_exemptions;
        self.pacing.probes += (update.pto_count - last.probe_timeouts) * PROBES;
        if let Some(at) = self.pacing.early_at.take()
            && rides == 0
        {
            self.violated("O5", at, "more left than the pacing rate allows");
        }
        if !self.around.is_punctual || update.in_flight <= last.in_flight {
            return;
        }
        let rate = last.pacing_rate.max(update.pacing_rate);
        let pacing = &mut self.pacing;
        if pacing.release_at > now + SEND_CLOCK {
            match pacing.probes.checked_sub(1) {
                Some(left) => pacing.probes = left,
                // What an acknowledgement rode on is counted after it has left.
                None => pacing.early_at = Some(now),
            }
        }
        let datagram = update.minimum_window.scale(1, 2);
        let quantum = rate
            .bytes_in(QUANTUM_SPAN)
            .clamp(datagram * 2, LARGEST_QUANTUM);
        let earliest = now.saturating_sub(rate.time_for(quantum));
        let sent = update.in_flight - last.in_flight;
        // Rounded down: a sender that is paced all the time, as BBR is, would come early by what rounding up adds.
        let charge = rate.time_for(sent).saturating_sub(Duration::from_nanos(1));
        pacing.release_at = pacing.release_at.max(earliest) + charge;
    }

    fn watch_for_a_plateau(&mut self, now: Timestamp, update: &SenderUpdate) {
        let is_small = self
            .around
            .bdp
            .is_some_and(|bdp| update.window < bdp.scale(1, 4));
        // A stay at the minimum is O1's.
        let is_at_minimum = update.window <= update.minimum_window;
        if !is_small || is_at_minimum || !self.around.is_greedy {
            self.plateau = None;
            return;
        }
        let datagram = update.minimum_window.scale(1, 2);
        let fresh = Plateau {
            window: update.window,
            packets_lost: update.packets_lost,
            marks: update.ce_count,
            rounds: 0,
            round_began_at: now,
            was_full: false,
        };
        let plateau = self.plateau.get_or_insert(fresh);
        let has_grown = update.window >= plateau.window + datagram * PLATEAU_GROWTH;
        let marks = update.ce_count > plateau.marks;
        if has_grown || update.packets_lost > plateau.packets_lost || marks {
            *plateau = fresh;
        }
        plateau.was_full |= update.in_flight + datagram > update.window;
        let Some(latest) = update.latest_rtt else {
            return;
        };
        if now.saturating_since(plateau.round_began_at) < latest {
            return;
        }
        // A round without enough to send says nothing.
        plateau.rounds += u64::from(plateau.was_full);
        plateau.round_began_at = now;
        plateau.was_full = false;
        if plateau.rounds > PLATEAU_ROUNDS {
            self.violated(
                "O8",
                now,
                "the window stands below a quarter of the bandwidth-delay product for 30 round trips, full and without loss",
            );
        }
    }

    fn watch_the_floor(&mut self, now: Timestamp, update: &SenderUpdate) {
        if !self.around.is_greedy || update.window > update.minimum_window {
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

/// RFC 9002 section 7.6.2: the window falls to the minimum. What the same event acknowledges lets it grow from there.
fn is_near_the_floor(before: ByteCount, update: &SenderUpdate) -> bool {
    update.window <= (update.minimum_window * 2).max(before.scale(1, 4))
}

/// draft-ietf-ccwg-bbr-06 section 5.6.3, and the default of [`cc::Controller::send_quantum`].
const QUANTUM_SPAN: Duration = Duration::from_millis(1);
/// The sender's clock runs ahead of the run's by a nanosecond for each packet of an instant, to tell them apart.
const SEND_CLOCK: Duration = Duration::from_micros(1);
const LARGEST_QUANTUM: ByteCount = ByteCount::new(64_000);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn watch(is_greedy: bool) -> Oracles {
        Oracles::new(Surroundings {
            shortest_rtt: RTT,
            is_greedy,
            bdp: Some(ByteCount::new(108_004)),
            is_punctual: true,
        })
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
            let mut oracles = watch(is_greedy);
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
            let mut oracles = watch(true);
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
            let mut oracles = watch(true);
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
            let mut oracles = watch(true);
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
        let mut oracles = watch(true);
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
            let mut oracles = watch(true);
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
        let oracles = watch(true);
        let link = LinkCounts::default();
        let violation = oracles.finish(ms(7), [(&link, true), (&link, false)]);
        assert_eq!(violation.map(|violation| violation.oracle), Some("O10"));
    }

    #[test]
    fn the_first_violation_is_the_one_that_counts() {
        let mut oracles = watch(true);
        oracles.on_update(ms(0), &update());
        oracles.on_transition(ms(5), &recovery());
        oracles.on_update(ms(5), &update());
        oracles.on_transition(ms(6), &recovery());
        assert_eq!(first(oracles), Some("O2"));
    }

    #[test]
    fn a_full_window_that_stands_still_below_a_quarter_of_the_link_is_a_plateau() {
        let stand = |window: u64, in_flight: u64, growth: u64, news: &str, rounds: u64| {
            let mut oracles = watch(true);
            for round in 0..=rounds {
                let mut update = update();
                update.window = ByteCount::new(window + round * growth);
                update.in_flight = ByteCount::new(in_flight + round * growth);
                update.latest_rtt = Some(RTT);
                let count = |what| if news == what { round / 20 } else { 0 };
                update.packets_lost = count("losses");
                update.ce_count = count("marks");
                oracles.on_update(ms(10 * round), &update);
            }
            first(oracles)
        };
        assert_eq!(stand(27_000, 27_000, 0, "", 31), Some("O8"));
        assert_eq!(stand(27_000, 27_000, 0, "", 30), None, "too short");
        assert_eq!(stand(27_001, 27_001, 0, "", 99), None, "a quarter");
        assert_eq!(stand(27_000, 13_500, 0, "", 99), None, "not full");
        assert_eq!(stand(27_000, 27_000, 0, "losses", 99), None, "it loses");
        assert_eq!(stand(27_000, 27_000, 0, "marks", 99), None, "marked");
        assert_eq!(stand(6_750, 6_750, 540, "", 37), None, "it grows");
    }

    #[test]
    fn no_more_leaves_than_the_pacing_rate_allows() {
        // 10.8 Mbit/s are 1,350 bytes a millisecond; the quantum is two datagrams, and another two may catch up.
        let send = |every_us: u64, batch: u64, probes: u64, rides: u64| {
            let mut oracles = watch(true);
            let mut update = update();
            update.window = ByteCount::mb(1);
            update.in_flight = ByteCount::ZERO;
            update.pacing_rate = Rate::from_bps(10_800_000);
            let mut now = ms(100);
            oracles.on_update(now, &update);
            for _ in 0..100 {
                now += Duration::from_micros(every_us);
                update.in_flight += ByteCount::new(1_350 * batch);
                update.pto_count += probes;
                update.latest_rtt = Some(RTT);
                oracles.on_update(now, &update);
                update.ack_exemptions += rides;
            }
            oracles.on_update(now, &update);
            first(oracles)
        };
        assert_eq!(send(1_000, 1, 0, 0), None);
        assert_eq!(send(2_000, 2, 0, 0), None);
        assert_eq!(send(980, 1, 0, 0), None, "two of a hundred caught up");
        assert_eq!(send(950, 1, 0, 0), Some("O5"));
        assert_eq!(send(500, 1, 1, 0), None, "probes");
        assert_eq!(send(500, 1, 0, 1), None, "acknowledgements ride on them");
    }

    /// What the pacer rounds off must not add up, or a sender that is never held up by anything else looks early.
    #[test]
    fn a_sender_that_is_paced_all_the_time_is_never_early() {
        let mut oracles = watch(true);
        let mut pacer = cc::pacer::Pacer::new();
        let mut update = update();
        update.window = ByteCount::mb(100_000);
        update.in_flight = ByteCount::ZERO;
        update.pacing_rate = Rate::from_bps(48_499_993);
        oracles.on_update(ms(100), &update);
        pacer.on_idle_restart(ms(100));
        let quantum = ByteCount::new(6_062);
        for _ in 0..3_000_000 {
            let now = pacer.release_at();
            let burst = ByteCount::new(6_750);
            pacer.on_sent(now, burst, update.pacing_rate, quantum);
            update.in_flight += burst;
            update.latest_rtt = Some(RTT);
            oracles.on_update(now, &update);
        }
        assert_eq!(first(oracles), None);
    }

    #[test]
    fn persistent_congestion_brings_the_window_down() {
        let collapse = |window: u64, has_state: bool| {
            let mut oracles = watch(true);
            oracles.on_update(ms(0), &update());
            if has_state {
                oracles.on_transition(ms(5), &recovery());
            }
            let mut update = update();
            update.packets_lost = 1;
            update.persistent_congestions = 1;
            update.window = ByteCount::new(window);
            oracles.on_update(ms(5), &update);
            first(oracles)
        };
        assert_eq!(collapse(13_500, true), Some("O11"), "halved");
        assert_eq!(collapse(2_700, true), None);
        assert_eq!(collapse(6_750, true), None, "grown again");
        assert_eq!(collapse(13_500, false), None, "not loss-based");
    }
}
