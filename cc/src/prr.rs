//! Proportional rate reduction: during recovery send in proportion to what arrives.
//!
//! Follows RFC 9937. Without it a sender whose window was cut to 0.7 sends nothing until three tenths of its packets
//! have left the path, and then as fast as before; with it about seven packets leave for every ten that arrive, from
//! the first acknowledgement on, and the bytes in flight reach the threshold when the round trip is over.
//!
//! | here | RFC 9937 |
//! |---|---|
//! | `flight` | `RecoverFS`: bytes in flight when recovery began, the lost ones included |
//! | `delivered` | `prr_delivered` |
//! | `sent` | `prr_out` |
//! | `allowance` | `sndcnt` |

use units::ByteCount;
use units::math::mul_div_ceil;

/// One recovery period.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProportionalReduction {
    flight: ByteCount,
    ssthresh: ByteCount,
    delivered: ByteCount,
    sent: ByteCount,
    /// What the latest feedback left in flight, and what may be added to it.
    window: ByteCount,
}

/// One feedback event of a recovery period.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Bytes newly delivered.
    pub(crate) delivered: ByteCount,
    /// Bytes in flight afterwards.
    pub(crate) in_flight: ByteCount,
    /// Whether packets were newly declared lost.
    pub(crate) has_loss: bool,
    /// The largest datagram.
    pub(crate) max_datagram_size: ByteCount,
}

impl ProportionalReduction {
    /// Begins a period, with `flight` bytes in flight before the event that began it.
    pub(crate) fn new(flight: ByteCount, ssthresh: ByteCount) -> Self {
        Self {
            flight,
            ssthresh,
            delivered: ByteCount::ZERO,
            sent: ByteCount::ZERO,
            window: ssthresh,
        }
    }

    /// Notes that packets left.
    pub(crate) fn on_sent(&mut self, bytes: ByteCount) {
        self.sent += bytes;
    }

    /// Digests one event, also the one that began the period.
    pub(crate) fn on_feedback(&mut self, progress: &Progress) {
        self.delivered += progress.delivered;
        let allowance = self.allowance(progress);
        // Section 6.2: the first retransmission always goes out.
        let is_stuck = self.sent == ByteCount::ZERO && allowance == ByteCount::ZERO;
        let allowance = if is_stuck {
            progress.max_datagram_size
        } else {
            allowance
        };
        self.window = progress.in_flight + allowance;
    }

    /// Returns how many bytes may be in flight.
    pub(crate) fn window(&self) -> ByteCount {
        self.window
    }

    fn allowance(&self, progress: &Progress) -> ByteCount {
        if progress.in_flight > self.ssthresh {
            let delivered = self.delivered.as_u64();
            let flight = self.flight.as_u64().max(1);
            let due = mul_div_ceil(delivered, self.ssthresh.as_u64(), flight);
            return ByteCount::new(due) - self.sent;
        }
        // Below the threshold by more loss than the cut made up for: at most what arrives, one datagram more if the
        // acknowledgement brings no new loss, and never beyond the threshold.
        let mut allowance = (self.delivered - self.sent).max(progress.delivered);
        if !progress.has_loss && progress.delivered > ByteCount::ZERO {
            allowance += progress.max_datagram_size;
        }
        allowance.min(self.ssthresh - progress.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: ByteCount = ByteCount::new(1_000);

    fn bytes(count: u64) -> ByteCount {
        ByteCount::new(count)
    }

    fn progress(delivered: u64, in_flight: u64, has_loss: bool) -> Progress {
        Progress {
            delivered: bytes(delivered),
            in_flight: bytes(in_flight),
            has_loss,
            max_datagram_size: DATAGRAM,
        }
    }

    // Peer case 10 of cloudflare/quiche.
    #[test]
    fn above_the_threshold_half_is_sent_for_what_is_delivered_at_a_cut_by_half() {
        let mut prr = ProportionalReduction::new(bytes(10_000), bytes(5_000));
        prr.on_feedback(&progress(1_000, 9_000, true));
        assert_eq!(prr.window(), bytes(9_500));
        prr.on_sent(bytes(500));
        prr.on_feedback(&progress(1_000, 8_500, false));
        assert_eq!(prr.window(), bytes(9_000));
    }

    #[test]
    fn what_was_not_sent_stays_allowed() {
        let mut prr = ProportionalReduction::new(bytes(100_000), bytes(70_000));
        prr.on_feedback(&progress(1_000, 98_000, true));
        assert_eq!(prr.window(), bytes(98_700));
        prr.on_feedback(&progress(1_000, 97_000, false));
        assert_eq!(prr.window(), bytes(98_400));
        prr.on_sent(bytes(1_000));
        prr.on_feedback(&progress(1_000, 97_000, false));
        assert_eq!(prr.window(), bytes(98_100));
    }

    #[test]
    fn at_the_end_of_the_round_trip_the_threshold_is_in_flight() {
        let mut prr = ProportionalReduction::new(bytes(100_000), bytes(70_000));
        let mut in_flight = bytes(99_000);
        let mut sent = 0;
        for arrived in 0..99 {
            in_flight -= DATAGRAM;
            prr.on_feedback(&progress(1_000, in_flight.as_u64(), arrived == 0));
            while in_flight + DATAGRAM <= prr.window() {
                prr.on_sent(DATAGRAM);
                in_flight += DATAGRAM;
                sent += 1;
            }
            assert!(in_flight >= bytes(69_000), "{in_flight} after {arrived}");
        }
        assert_eq!((sent, in_flight), (70, bytes(70_000)));
    }

    #[test]
    fn below_the_threshold_it_comes_back_by_one_extra_datagram_per_good_acknowledgement() {
        let mut prr = ProportionalReduction::new(bytes(20_000), bytes(10_000));
        prr.on_feedback(&progress(1_000, 4_000, true));
        assert_eq!(prr.window(), bytes(5_000));
        prr.on_sent(bytes(1_000));
        prr.on_feedback(&progress(1_000, 4_000, false));
        assert_eq!(prr.window(), bytes(6_000));
        prr.on_sent(bytes(2_000));
        prr.on_feedback(&progress(9_000, 1_000, false));
        assert_eq!(prr.window(), bytes(10_000), "never beyond the threshold");
    }

    #[test]
    fn the_first_retransmission_always_goes_out() {
        let mut prr = ProportionalReduction::new(bytes(10_000), bytes(7_000));
        prr.on_feedback(&progress(0, 9_000, true));
        assert_eq!(prr.window(), bytes(10_000));
        prr.on_sent(bytes(1_000));
        prr.on_feedback(&progress(0, 10_000, true));
        assert_eq!(prr.window(), bytes(10_000));
    }

    #[test]
    fn nothing_and_everything_do_no_harm() {
        for extreme in [0, 1, u64::MAX] {
            for other in [0, 1, u64::MAX] {
                let mut prr = ProportionalReduction::new(bytes(extreme), bytes(other));
                for has_loss in [true, false] {
                    prr.on_feedback(&progress(other, extreme, has_loss));
                    prr.on_sent(bytes(extreme));
                    prr.on_feedback(&progress(extreme, other, has_loss));
                }
            }
        }
    }
}
