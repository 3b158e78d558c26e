//! What a cut took, kept in case it proves to have been for nothing.
//!
//! Follows RFC 9438 section 4.9: packets that were declared lost and are acknowledged after all were late, not lost. Once
//! that holds for every loss of the recovery period, the state from before its cut comes back.
//!
//! Whose losses they are is told by send time, so no list of packets is kept: the period's own are those that left after
//! the previous cut, up to this one. A loss from before the previous cut was answered by that one, and a loss from after
//! this cut makes a new one.

use units::{ByteCount, Timestamp};

use crate::event::{FeedbackEvent, LostPacket};
use crate::recovery::Episode;
use crate::state::State;

/// The state from before the latest cut; `A` is what congestion avoidance remembers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Undo<A> {
    pub(crate) window: ByteCount,
    pub(crate) ssthresh: Option<ByteCount>,
    pub(crate) state: State,
    pub(crate) largest_flight: ByteCount,
    /// The recovery period before.
    pub(crate) episode: Episode,
    pub(crate) avoidance: A,
    /// Losses of this period that have not turned up.
    pub(crate) missing: u64,
}

impl<A> Undo<A> {
    /// Takes the losses of the event that made the cut at `boundary`.
    pub(crate) fn on_cut(&mut self, boundary: Timestamp, event: &FeedbackEvent<'_>) {
        self.missing = self.count(boundary, event.lost);
    }

    /// Takes a later event and says whether all losses have turned up with it.
    pub(crate) fn on_feedback(&mut self, boundary: Timestamp, event: &FeedbackEvent<'_>) -> bool {
        self.missing += self.count(boundary, event.lost);
        let found = self.count(boundary, event.late);
        self.missing = self.missing.saturating_sub(found);
        found > 0 && self.missing == 0
    }

    fn count(&self, boundary: Timestamp, packets: &[LostPacket]) -> u64 {
        let is_own = |packet: &&LostPacket| {
            packet.sent_at <= boundary && !self.episode.is_in_recovery(packet.sent_at)
        };
        packets.iter().filter(is_own).count() as u64
    }
}
