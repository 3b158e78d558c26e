//! Counts rounds: a round ends when data sent after its beginning is delivered.
//!
//! Follows draft-ietf-ccwg-bbr-06 section 5.5.1. The marker is the delivered count of
//! [`Sampler`](crate::delivery::Sampler), so the three packet-number spaces of QUIC need no special care.

/// The round-trip counter.
///
/// ```
/// use cc::round::RoundCounter;
///
/// let mut rounds = RoundCounter::new();
/// assert!(rounds.on_acked(0, 1_200), "the first acknowledgement begins round 1");
/// assert!(!rounds.on_acked(0, 2_400), "this packet left before round 1 began");
/// assert!(rounds.on_acked(1_200, 3_600));
/// assert_eq!(rounds.count(), 2);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RoundCounter {
    next_round_delivered: u64,
    count: u64,
}

impl RoundCounter {
    /// Makes a counter at round 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next_round_delivered: 0,
            count: 0,
        }
    }

    /// Takes an acknowledged packet's `delivered_at_send` (bytes delivered when it left) and `delivered_now`
    /// (bytes delivered after this feedback event), and says whether a new round begins.
    ///
    /// Of several packets acknowledged by one event, the one sent last decides.
    pub fn on_acked(&mut self, delivered_at_send: u64, delivered_now: u64) -> bool {
        if delivered_at_send < self.next_round_delivered {
            return false;
        }
        self.next_round_delivered = delivered_now;
        self.count += 1;
        true
    }

    /// Begins the current round anew: it now lasts until something sent from here on is delivered.
    pub fn restart(&mut self, delivered_now: u64) {
        self.next_round_delivered = delivered_now;
    }

    /// Returns how many rounds have begun.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_flight_makes_one_round_however_it_is_acknowledged() {
        let mut rounds = RoundCounter::new();
        let mut delivered = 0;
        for round in 0..5_u64 {
            let at_send = delivered;
            for packet in 0..10 {
                delivered += 1_200;
                assert_eq!(rounds.on_acked(at_send, delivered), packet == 0);
            }
            assert_eq!(rounds.count(), round + 1);
        }
    }

    #[test]
    fn a_restarted_round_lasts_a_full_round_trip() {
        let mut rounds = RoundCounter::new();
        rounds.on_acked(0, 10_000);
        rounds.restart(15_000);
        assert!(!rounds.on_acked(12_000, 20_000), "left before the restart");
        assert!(rounds.on_acked(15_000, 25_000));
    }
}
