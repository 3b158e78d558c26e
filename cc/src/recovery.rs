//! The recovery boundary: one cut per round trip, and packets from before it are old news.
//!
//! Follows RFC 9002 sections 7.3.2, B.5 and B.6. The boundary is written in exactly two places, [`Episode::enter`]
//! and [`Episode::clear`], and is never moved in between (a cut that is taken back brings back the whole episode from
//! before it): an algorithm that needs a moving point in time (CUBIC's
//! epoch) keeps its own. Sharing one stamp for both is what pinned several stacks at the minimum window for good.

use units::Timestamp;

/// The latest recovery period: when it began, and whether it still lasts.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Episode {
    boundary: Option<Timestamp>,
    is_open: bool,
}

impl Episode {
    /// Makes one with no boundary: no packet is old.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            boundary: None,
            is_open: false,
        }
    }

    /// Begins a recovery period at `now`.
    pub fn enter(&mut self, now: Timestamp) {
        self.boundary = Some(now);
        self.is_open = true;
    }

    /// Takes the send time of an acknowledged packet and says whether it ends the period. The boundary stays:
    /// packets from before it are old for ever.
    pub fn on_acked(&mut self, sent_at: Timestamp) -> bool {
        let is_over = self.is_open && !self.is_in_recovery(sent_at);
        if is_over {
            self.is_open = false;
        }
        is_over
    }

    /// Forgets the boundary, as persistent congestion demands (RFC 9002 section B.8).
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Moves the boundary, which is exactly what must never happen.
    #[cfg(feature = "mutants")]
    pub(crate) fn misplace(&mut self, boundary: Timestamp) {
        self.boundary = Some(boundary);
    }

    /// Returns when the latest recovery period began.
    #[must_use]
    pub const fn boundary(&self) -> Option<Timestamp> {
        self.boundary
    }

    /// Says whether a packet sent at `sent_at` belongs to the time before the cut. One that left at the very
    /// instant of the cut does.
    #[must_use]
    pub fn is_in_recovery(&self, sent_at: Timestamp) -> bool {
        self.boundary.is_some_and(|boundary| sent_at <= boundary)
    }

    /// Says whether the period lasts, that is, no packet sent after its beginning has been acknowledged.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn nothing_is_old_before_the_first_cut() {
        let episode = Episode::new();
        assert!(!episode.is_in_recovery(Timestamp::ZERO));
        assert!(!episode.is_open());
    }

    #[test]
    fn a_packet_sent_at_the_instant_of_the_cut_is_old() {
        let mut episode = Episode::new();
        episode.enter(at(10));
        assert!(episode.is_in_recovery(at(10)));
        assert!(!episode.is_in_recovery(at(10) + std::time::Duration::from_nanos(1)));
    }

    #[test]
    fn only_a_packet_sent_after_the_cut_ends_the_period_and_it_ends_once() {
        let mut episode = Episode::new();
        episode.enter(at(10));
        assert!(!episode.on_acked(at(9)));
        assert!(!episode.on_acked(at(10)));
        assert!(episode.is_open());
        assert!(episode.on_acked(at(11)));
        assert!(!episode.is_open());
        assert!(!episode.on_acked(at(12)));
        assert!(episode.is_in_recovery(at(9)), "old stays old");
    }

    #[test]
    fn a_cleared_boundary_makes_nothing_old() {
        let mut episode = Episode::new();
        episode.enter(at(10));
        episode.clear();
        assert!(!episode.is_in_recovery(at(5)));
        assert!(!episode.is_open());
    }
}
