//! Controllers that are wrong on purpose, to prove that the tests notice.
//!
//! Only built with the feature `mutants`, which is for this workspace's own tests and demonstrations. Each fault changes
//! the one thing that its line names; everything else is the real CUBIC, constants and code alike.
//!
//! | name | what is changed | found in |
//! |---|---|---|
//! | `cubic-trap` (M1) | one stamp is the recovery boundary and the beginning of the epoch, and each send with nothing in flight moves it by the time since the last send | quiche 2020 to 2026, tquic |
//! | `cubic-trap-clamp` (M1Clamp) | the same, but never beyond the present | the second of the two Linux patches alone |
//! | `cubic-m2` (M2) | the boundary stays; the epoch moves by the time since the last send; the Reno-friendly window follows time, and K the formula of RFC 8312. The one fault that models a whole stack | quicly before its rework |
//! | `cubic-m3` (M3) | the boundary stays; the epoch moves by the time since the last send | nobody known; no stall, but no curve at small windows |
//! | `cubic-noshift` (NoShift) | no time is left out of the epoch | quinn's own CUBIC |
//! | `cubic-m1fix` (M1Fix) | one stamp as in M1, moved by the time since the last send or acknowledgement | quiche since 2026; it must pass |
//!
//! That the guilty line has run is shown by [`FaultCounters`], which the real controller keeps too in such builds.

use std::time::Duration;

use units::Timestamp;

use crate::recovery::Episode;

/// What is wrong.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// One stamp for boundary and epoch, moved by the time since the last send.
    M1,
    /// M1, but the stamp never lies ahead of the present.
    M1Clamp,
    /// The epoch moves by the time since the last send, and the Reno-friendly window follows time.
    M2,
    /// The epoch moves by the time since the last send.
    M3,
    /// The epoch never moves.
    NoShift,
    /// One stamp for boundary and epoch, moved by the time since anything happened.
    M1Fix,
}

impl Fault {
    /// All faults, in the order of the table above.
    pub const ALL: [Self; 6] = [
        Self::M1,
        Self::M1Clamp,
        Self::M2,
        Self::M3,
        Self::NoShift,
        Self::M1Fix,
    ];

    /// Returns the name by which the controller is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::M1 => "cubic-trap",
            Self::M1Clamp => "cubic-trap-clamp",
            Self::M2 => "cubic-m2",
            Self::M3 => "cubic-m3",
            Self::NoShift => "cubic-noshift",
            Self::M1Fix => "cubic-m1fix",
        }
    }

    /// Whether the recovery boundary is also the beginning of the epoch.
    pub(crate) const fn shares_stamp(self) -> bool {
        matches!(self, Self::M1 | Self::M1Clamp | Self::M1Fix)
    }

    /// Whether the epoch may be moved to where it ends in the future.
    pub(crate) const fn overshoots(self) -> bool {
        matches!(self, Self::M2 | Self::M3)
    }

    /// Since when it takes the flow to have been idle, given when the real controller does.
    pub(crate) fn idle_since(
        self,
        now: Timestamp,
        last_sent_at: Timestamp,
        quiet_since: Timestamp,
    ) -> Timestamp {
        match self {
            Self::M1 | Self::M1Clamp | Self::M2 | Self::M3 => last_sent_at,
            Self::NoShift => now,
            Self::M1Fix => quiet_since,
        }
    }
}

/// What shows that a fault has struck. All zero in the real controller, but for `shifts`, `shifted` and `flips`.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct FaultCounters {
    /// How often the epoch was moved because nothing was in flight.
    pub shifts: u64,
    /// By how much in total.
    pub shifted: Duration,
    /// Batches that left with the boundary moved to their own send time or beyond.
    pub sends_behind_boundary: u64,
    /// Acknowledged packets that were taken for older than the cut and were not.
    pub acks_ignored: u64,
    /// Lost packets that were taken for older than the cut and were not.
    pub losses_ignored: u64,
    /// How often the boundary changed between ahead of the present and behind it, as seen at each event. That is what
    /// the stack with the original fault showed as entering and leaving recovery.
    pub flips: u64,
}

/// Keeps the counters of one controller.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Witness {
    /// Where the boundary was set; the episode's own may have been moved since.
    cut_at: Option<Timestamp>,
    is_ahead: bool,
    counters: FaultCounters,
}

impl Witness {
    pub(crate) fn on_cut(&mut self, now: Timestamp) {
        self.cut_at = Some(now);
    }

    /// Looks at the boundary after an event.
    pub(crate) fn on_event(&mut self, now: Timestamp, episode: &Episode) {
        let is_ahead = episode.is_in_recovery(now);
        self.counters.flips += u64::from(is_ahead != self.is_ahead);
        self.is_ahead = is_ahead;
    }

    pub(crate) fn on_sent(&mut self, now: Timestamp, episode: &Episode) {
        self.counters.sends_behind_boundary += u64::from(self.is_wronged(now, episode));
        self.on_event(now, episode);
    }

    pub(crate) fn on_acked(&mut self, sent_at: Timestamp, episode: &Episode) {
        self.counters.acks_ignored += u64::from(self.is_wronged(sent_at, episode));
    }

    pub(crate) fn on_lost(&mut self, sent_at: Timestamp, episode: &Episode) {
        self.counters.losses_ignored += u64::from(self.is_wronged(sent_at, episode));
    }

    pub(crate) fn counters(&self) -> FaultCounters {
        self.counters
    }

    /// Whether a packet left after the cut and is on the wrong side of the boundary.
    fn is_wronged(&self, sent_at: Timestamp, episode: &Episode) -> bool {
        episode.is_in_recovery(sent_at) && self.cut_at.is_some_and(|cut_at| sent_at > cut_at)
    }
}
