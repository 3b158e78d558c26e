//! Oracles: what must not happen on any connection, as far as a log can show it.
//!
//! | oracle | what must not happen |
//! |---|---|
//! | O1 stuck | a sender that fills its window stands at the minimum for 2 s and 50 RTT samples, and nothing is lost |
//! | O2 phantom recovery | recovery begins and nothing was lost within the last round trip; or it begins six times in ten round trips for fewer losses |
//! | O3 recovery ahead | recovery goes on although packets sent after its begin are acknowledged |
//! | O4 overfull | a packet with data leaves although the bytes in flight fill the window, and neither a probe timeout nor an acknowledgment to be sent allows it |
//! | O6 probe storm | six probe timeouts in a row while acknowledgments arrive; or three where no packet was lost in either direction |
//! | O9 double cut | recovery begins twice within one round trip |
//!
//! The limits are those the oracles of a run have too, which see the sender itself and the link. O5, O7, O8 and
//! O10 need more than a log has: the burst the pacer may make, the path's capacity, the link.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use units::Timestamp;

use crate::analyse::connection::{Change, Connection};
use crate::read::event::{Event, Frame};

/// How long a sender may stand at its minimum window (O1).
pub const LONGEST_STAY: Duration = Duration::from_secs(2);
/// How many RTT samples it takes besides, so that silence does not count (O1).
pub const LONGEST_STAY_SAMPLES: u64 = 50;
/// How many packets a probe timeout lets go (O4; RFC 9002 section 6.2.4).
pub const PROBES: u64 = 2;
/// How many probe timeouts in a row a link may see that drops nothing (O6).
pub const MOST_PROBES: u64 = 2;
/// How many there may be in a row on any link while acknowledgments arrive (O6).
pub const MOST_PROBES_ANSWERED: u64 = 5;
/// How often recovery may begin within [`MOST_RECOVERIES_ROUNDS`] (O2).
pub const MOST_RECOVERIES: u64 = 5;
/// In how many round trips (O2).
pub const MOST_RECOVERIES_ROUNDS: u32 = 10;
/// How many times packets sent after the begin of recovery are acknowledged before it must have ended (O3);
/// the first of them ends it (RFC 9002 section 7.3.2), and one round trip is allowed on top.
pub const MOST_ACKS_IN_RECOVERY: u64 = 3;

/// Something that must not have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle: "O1" and so on.
    pub oracle: &'static str,
    /// When it was certain.
    pub at: Timestamp,
    /// The record with which it was certain.
    pub record: u64,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = units::format_duration(self.at.saturating_since(Timestamp::ZERO));
        write!(
            f,
            "record {}: {} at {at}: {}",
            self.record, self.oracle, self.what
        )
    }
}

/// Watches the records of one connection.
#[derive(Debug, Default)]
pub(crate) struct FileOracles {
    found: Vec<Violation>,
    last_at: Timestamp,
    stay: Option<Stay>,
    /// When recovery began last, and the record.
    entered: Option<(Timestamp, u64)>,
    /// Recovery began, and what was lost then may still follow.
    unproven: Option<(Timestamp, u64)>,
    /// When recovery began, and how many packets had been lost by then.
    entries: VecDeque<(Timestamp, u64)>,
    lost_at: Option<Timestamp>,
    acks_in_recovery: u64,
    exit_due_at: Option<Timestamp>,
    exempt: u64,
    answered_probes: u64,
    storm: Option<(Timestamp, u64, u64)>,
}

/// A stay at the minimum window.
#[derive(Debug)]
struct Stay {
    since: Timestamp,
    samples: u64,
    full: Duration,
}

impl FileOracles {
    /// The time up to a record. Call before the record is applied.
    pub(crate) fn advance(&mut self, at: Timestamp, record: u64, connection: &Connection) {
        let passed = at.saturating_since(self.last_at);
        if passed.is_zero() {
            return;
        }
        self.last_at = at;
        if let Some(stay) = &mut self.stay
            && connection.is_full()
        {
            stay.full += passed;
        }
        self.judge_entry(connection);
        self.judge_exit(at, record, connection);
    }

    /// What the record changed. Call after it was applied.
    pub(crate) fn on_change(
        &mut self,
        at: Timestamp,
        record: u64,
        event: &Event,
        change: &Change,
        connection: &Connection,
    ) {
        if change.lost.is_some() {
            self.lost_at = Some(at);
            self.stay = None;
        }
        if let Some(state) = &change.state {
            self.on_state(at, record, &state.new, state.trigger.as_deref(), connection);
        }
        self.on_acked(at, change);
        self.on_sent(at, record, event, change, connection);
        self.on_timeout(at, record, event, change, connection);
        self.watch_the_floor(at, record, change, connection);
    }

    fn on_state(
        &mut self,
        at: Timestamp,
        record: u64,
        new: &str,
        trigger: Option<&str>,
        connection: &Connection,
    ) {
        self.exit_due_at = None;
        self.acks_in_recovery = 0;
        if trigger == Some("spurious_loss") {
            // A cut that is taken back did not happen.
            self.entered = None;
        }
        if new != "recovery" {
            return;
        }
        let rtt = connection.min_rtt;
        if let (Some((before, _)), Some(rtt)) = (self.entered, rtt)
            && at.saturating_since(before) < rtt
        {
            self.violated(
                "O9",
                at,
                record,
                "recovery began twice within one round trip",
            );
        }
        self.entered = Some((at, record));
        let is_marked =
            trigger.is_some_and(|word| word.eq_ignore_ascii_case("ecn") || word == "ecn_ce");
        self.unproven = (!is_marked).then_some((at, record));
        let lost = connection.counts.lost_packets;
        self.entries.push_back((at, lost));
        if self.entries.len() as u64 > MOST_RECOVERIES {
            let first = self.entries.pop_front();
            if let (Some((first, lost_then)), Some(rtt)) = (first, rtt)
                && at.saturating_since(first) < rtt * MOST_RECOVERIES_ROUNDS
                && lost - lost_then < MOST_RECOVERIES
            {
                self.violated(
                    "O2",
                    at,
                    record,
                    "recovery began six times within ten round trips, and fewer packets were lost",
                );
            }
        }
    }

    /// Whether what was lost when recovery began has been named, before or with it.
    fn judge_entry(&mut self, connection: &Connection) {
        let Some((at, record)) = self.unproven.take() else {
            return;
        };
        let round = connection.smoothed_rtt.or(connection.min_rtt);
        let round = round.unwrap_or(Duration::from_millis(100));
        let is_told = self
            .lost_at
            .is_some_and(|lost| at.saturating_since(lost) <= round);
        // A log that names no losses at all proves nothing.
        if !is_told && connection.counts.lost_packets > 0 {
            self.violated(
                "O2",
                at,
                record,
                "recovery began, and no packet was declared lost in the round trip before",
            );
        }
    }

    fn on_acked(&mut self, at: Timestamp, change: &Change) {
        let Some(((entered_at, _), sent_at)) = self.entered.zip(change.latest_acked_sent_at) else {
            return;
        };
        if sent_at > entered_at {
            self.acks_in_recovery += 1;
            self.exit_due_at.get_or_insert(at);
        }
    }

    fn judge_exit(&mut self, at: Timestamp, record: u64, connection: &Connection) {
        let (Some(due), Some(rtt)) = (
            self.exit_due_at,
            connection.smoothed_rtt.or(connection.min_rtt),
        ) else {
            return;
        };
        if !connection.is_in_recovery() {
            self.exit_due_at = None;
            return;
        }
        if self.acks_in_recovery > MOST_ACKS_IN_RECOVERY && at.saturating_since(due) > rtt {
            let since = self.entered.map_or(Timestamp::ZERO, |(at, _)| at);
            let since = units::format_duration(since.saturating_since(Timestamp::ZERO));
            self.violated(
                "O3",
                at,
                record,
                &format!(
                    "recovery, begun at {since}, goes on although packets sent since are \
                     acknowledged: its begin lies in the future"
                ),
            );
            self.exit_due_at = None;
        }
    }

    fn on_sent(
        &mut self,
        at: Timestamp,
        record: u64,
        event: &Event,
        change: &Change,
        connection: &Connection,
    ) {
        if change.is_timeout {
            self.exempt = PROBES;
        }
        let (Some(length), Event::PacketSent(packet)) = (change.sent, event) else {
            return;
        };
        let before = connection.in_flight().saturating_sub(length);
        let rides = packet
            .frames()
            .iter()
            .any(|frame| matches!(frame, Frame::Ack(_)));
        let has_data = packet
            .frames()
            .iter()
            .any(|frame| matches!(frame, Frame::Stream { .. }));
        let is_full = connection.window.is_some_and(|window| before >= window);
        if !is_full || connection.is_before_handshake() {
            return;
        }
        if self.exempt > 0 || change.is_probe {
            self.exempt = self.exempt.saturating_sub(1);
            return;
        }
        // RFC 9002 section 7.3.2 lets one packet go when recovery begins.
        let begins = self
            .entered
            .is_some_and(|(entered, _)| connection.is_in_recovery() && entered == at);
        if has_data && !rides && !begins {
            self.violated(
                "O4",
                at,
                record,
                &format!(
                    "a packet was sent with {before} B in flight and a window of {} B",
                    connection.window.unwrap_or(0)
                ),
            );
        }
    }

    fn on_timeout(
        &mut self,
        at: Timestamp,
        record: u64,
        event: &Event,
        change: &Change,
        connection: &Connection,
    ) {
        if change.acked > 0 && connection.pto_count > 0 {
            self.answered_probes += 1;
        }
        if !change.is_timeout || matches!(event, Event::PacketSent(_)) {
            if connection.pto_count == 0 {
                self.answered_probes = 0;
            }
            return;
        }
        let count = connection.pto_count;
        if count > MOST_PROBES_ANSWERED && self.answered_probes > 1 {
            self.violated(
                "O6",
                at,
                record,
                &format!("{count} probe timeouts in a row while acknowledgments arrive"),
            );
        }
        if count > MOST_PROBES && self.storm.is_none_or(|(_, _, most)| count > most) {
            self.storm = Some((at, record, count));
        }
    }

    fn watch_the_floor(
        &mut self,
        at: Timestamp,
        record: u64,
        change: &Change,
        connection: &Connection,
    ) {
        let is_low = connection
            .window
            .is_some_and(|window| window <= connection.minimum_window());
        if !is_low || connection.is_before_handshake() || connection.closed_at.is_some() {
            self.stay = None;
            return;
        }
        let stay = self.stay.get_or_insert(Stay {
            since: at,
            samples: 0,
            full: Duration::ZERO,
        });
        stay.samples += u64::from(change.rtt.is_some());
        let length = at.saturating_since(stay.since);
        // With data to send the window is full, but for the instants between an acknowledgment and
        // the next packet.
        if length > LONGEST_STAY && stay.samples > LONGEST_STAY_SAMPLES && stay.full * 2 > length {
            let since = units::format_duration(stay.since.saturating_since(Timestamp::ZERO));
            self.violated(
                "O1",
                at,
                record,
                &format!(
                    "at the minimum window since {since}, with data to send and nothing lost: \
                     2 s and 50 round trips"
                ),
            );
        }
    }

    fn violated(&mut self, oracle: &'static str, at: Timestamp, record: u64, what: &str) {
        // The first of each tells; a fault that stays would fill pages.
        if self.found.iter().all(|known| known.oracle != oracle) {
            self.found.push(Violation {
                oracle,
                at,
                record,
                what: what.to_owned(),
            });
        }
    }

    /// The first violation of each oracle, with what only the end shows.
    pub(crate) fn finish(mut self, connection: &Connection) -> Vec<Violation> {
        self.judge_entry(connection);
        // Nothing lost: no packet of ours, and no gap in the numbers of the peer.
        let is_clean = connection.counts.lost_packets == 0
            && connection
                .received_numbers
                .values()
                .all(|numbers| numbers.is_whole() && numbers.contains(0, 1));
        if let Some((at, record, count)) = self.storm.filter(|_| is_clean) {
            self.violated(
                "O6",
                at,
                record,
                &format!("{count} probe timeouts in a row, and nothing was lost"),
            );
        }
        self.found
    }
}
