//! How much the path holds: the bounds on the bytes in flight (ccwg-bbr-06 sections 5.3.3.9, 5.5.10 and 5.6.4).
//!
//! `inflight_longterm` is what the probes found to be safe, `inflight_shortterm` what recent losses outside of probes
//! suggest. [`ByteCount::MAX`] stands for "not set", as infinity does in the draft.

use units::ByteCount;

use super::{BETA, LOSS_THRESHOLD, MIN_PIPE_PACKETS};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct VolumeModel {
    /// `BBR.inflight_longterm`.
    pub(super) longterm: ByteCount,
    /// `BBR.inflight_shortterm`.
    shortterm: ByteCount,
    /// `BBR.inflight_latest`: the most that was delivered within one round trip of this loss round.
    latest: ByteCount,
}

impl VolumeModel {
    pub(super) const fn new() -> Self {
        Self {
            longterm: ByteCount::MAX,
            shortterm: ByteCount::MAX,
            latest: ByteCount::ZERO,
        }
    }

    /// `UpdateLatestDeliverySignals`, for the volume.
    pub(super) fn note_latest(&mut self, delivered: ByteCount) {
        self.latest = self.latest.max(delivered);
    }

    /// `AdvanceLatestDeliverySignals`, for the volume.
    pub(super) fn restart_latest(&mut self, delivered: ByteCount) {
        self.latest = delivered;
    }

    /// `InitLowerBounds` and `LossLowerBounds`, for the volume.
    pub(super) fn give_way(&mut self, window: ByteCount) {
        let old = if self.shortterm == ByteCount::MAX {
            window
        } else {
            self.shortterm
        };
        self.shortterm = self.latest.max(old.scale(BETA.0, BETA.1));
    }

    /// Sets the short-term bound if there is none (after a timeout; Linux does so, the draft is silent).
    pub(super) fn bound_shortterm(&mut self, bound: ByteCount) {
        if self.shortterm == ByteCount::MAX {
            self.shortterm = bound;
        }
    }

    /// `ResetShortTermModel`, for the volume.
    pub(super) fn forget_shortterm(&mut self) {
        self.shortterm = ByteCount::MAX;
    }

    /// Takes earlier bounds back into account, after losses that were none (section 5.5.11).
    pub(super) fn restore(&mut self, shortterm: ByteCount, longterm: ByteCount) {
        self.shortterm = self.shortterm.max(shortterm);
        self.longterm = self.longterm.max(longterm);
    }

    pub(super) const fn shortterm(&self) -> ByteCount {
        self.shortterm
    }

    pub(super) const fn latest(&self) -> ByteCount {
        self.latest
    }

    pub(super) fn is_longterm_set(&self) -> bool {
        self.longterm != ByteCount::MAX
    }

    /// `InflightWithHeadroom` (section 5.3.3.9): leaves 15 % of the long-term bound, one packet at least, to others.
    pub(super) fn with_headroom(&self, datagram: ByteCount) -> ByteCount {
        if !self.is_longterm_set() {
            return ByteCount::MAX;
        }
        let headroom = self.longterm.scale(HEADROOM.0, HEADROOM.1).max(datagram);
        (self.longterm - headroom).max(datagram * MIN_PIPE_PACKETS)
    }
}

/// Section 2.8, `BBR.Headroom`.
const HEADROOM: (u64, u64) = (15, 100);

/// `IsInflightTooHigh` (section 5.5.10): more than 2 % of what was in flight with the packet is lost.
pub(super) fn is_too_high(lost: ByteCount, tx_in_flight: ByteCount) -> bool {
    // 50 lost > in flight, without a division; a saturated product is above anything that can be in flight.
    lost * LOSS_THRESHOLD.1 > tx_in_flight * LOSS_THRESHOLD.0
}

/// `InflightAtLoss` (section 5.5.10): at how many bytes in flight the losses reached 2 %, which may have been in the middle
/// of a lost packet (or segmented send) of `size`.
///
/// From `(lost_prev + prefix) / (inflight_prev + prefix) = 2 %` follows `prefix = (inflight_prev - 50 lost_prev) / 49`.
/// The prefix is part of the packet: no less than nothing and no more than all of it.
pub(super) fn inflight_at_loss(
    size: ByteCount,
    tx_in_flight: ByteCount,
    lost_since_sent: ByteCount,
) -> ByteCount {
    let before = tx_in_flight - size;
    let lost_before = lost_since_sent - size;
    let excess = before * LOSS_THRESHOLD.0 - lost_before * LOSS_THRESHOLD.1;
    let prefix = excess.scale(1, LOSS_THRESHOLD.1 - LOSS_THRESHOLD.0);
    before + prefix.min(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_000);

    #[test]
    fn two_in_a_hundred_are_allowed_and_a_byte_more_is_not() {
        assert!(!is_too_high(PACKET * 2, PACKET * 100));
        assert!(is_too_high(PACKET * 2 + ByteCount::new(1), PACKET * 100));
        assert!(!is_too_high(ByteCount::ZERO, ByteCount::ZERO));
        assert!(!is_too_high(ByteCount::ZERO, ByteCount::MAX));
    }

    // Checklist item 43.
    #[test]
    fn the_losses_reached_two_percent_within_the_packet() {
        // 99 packets before it, one of them lost: (99 - 50) / 49 = 1 packet, all of it.
        assert_eq!(
            inflight_at_loss(PACKET, PACKET * 100, PACKET * 2),
            PACKET * 100
        );
        // A segmented send of ten after 99 with nothing lost: 99 / 49 = 2.02 packets of it.
        assert_eq!(
            inflight_at_loss(PACKET * 10, PACKET * 109, PACKET * 10),
            ByteCount::new(101_020)
        );
    }

    #[test]
    fn the_prefix_is_never_negative_and_never_above_the_packet() {
        // Far above the threshold before the packet: nothing of it was safe.
        assert_eq!(
            inflight_at_loss(PACKET, PACKET * 100, PACKET * 50),
            PACKET * 99
        );
        // Far below it with the whole packet: all of it was.
        assert_eq!(inflight_at_loss(PACKET, PACKET * 200, PACKET), PACKET * 200);
        for (size, tx, lost) in [(10, 5, 3), (0, 0, 0), (1, u64::MAX, u64::MAX), (7, 9, 0)] {
            let [size, tx, lost] = [size, tx, lost].map(ByteCount::new);
            let at = inflight_at_loss(size, tx, lost);
            assert!(at >= tx - size && at <= (tx - size) + size, "{at}");
        }
    }

    // Checklist item 33; another implementation left 15 % and not 85 %.
    #[test]
    fn the_headroom_is_fifteen_percent_one_packet_at_least_and_leaves_four() {
        let bound = |packets: u64| VolumeModel {
            longterm: PACKET * packets,
            ..VolumeModel::new()
        };
        assert_eq!(bound(100).with_headroom(PACKET), PACKET * 85);
        assert_eq!(bound(6).with_headroom(PACKET), PACKET * 5);
        assert_eq!(bound(2).with_headroom(PACKET), PACKET * 4);
        assert_eq!(VolumeModel::new().with_headroom(PACKET), ByteCount::MAX);
    }

    #[test]
    fn giving_way_begins_at_the_window_and_ends_at_what_was_delivered() {
        let mut model = VolumeModel::new();
        model.note_latest(PACKET * 40);
        model.give_way(PACKET * 100);
        assert_eq!(model.shortterm(), PACKET * 70);
        model.give_way(PACKET * 100);
        assert_eq!(model.shortterm(), PACKET * 49);
        model.give_way(PACKET * 100);
        assert_eq!(model.shortterm(), PACKET * 40);
    }
}
