//! Tells acknowledgements that may grow the window from those that say nothing about it.
//!
//! RFC 9002 section 7.8: a window that was not filled was not tested, so it should not grow; but a sender that was held
//! back by its pacer does fill it in time and is not to blame.
//!
//! A packet counts if it left while there was more to send, or if the window was full at some moment between the
//! packet's departure and its acknowledgement. The second half matters: the mark "lacks data" of the
//! delivery-rate sampler stays for a round trip after every pause, so the first flight after a pause bears it
//! although it may well fill the window.

use units::{ByteCount, Timestamp};

use crate::event::AckedPacket;

/// When the window was last full.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct WindowUse {
    full_at: Option<Timestamp>,
}

impl WindowUse {
    /// Notes how full the window is after a batch has left: full is without room for one more datagram.
    pub(crate) fn on_sent(
        &mut self,
        now: Timestamp,
        in_flight: ByteCount,
        window: ByteCount,
        datagram: ByteCount,
    ) {
        if in_flight + datagram > window {
            self.full_at = Some(now);
        }
    }

    /// Says whether the packet, acknowledged just now, bears witness for the window.
    pub(crate) fn counts(&self, packet: &AckedPacket) -> bool {
        !packet.is_app_limited || self.was_full_since(packet.sent_at)
    }

    /// Says whether the window was full at some moment since `sent_at`.
    pub(crate) fn was_full_since(&self, sent_at: Timestamp) -> bool {
        self.full_at.is_some_and(|full_at| full_at >= sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: ByteCount = ByteCount::new(1_200);

    fn packet(sent_at: Timestamp, is_app_limited: bool) -> AckedPacket {
        AckedPacket {
            packet_number: 0,
            sent_at,
            size: DATAGRAM,
            is_app_limited,
            tx_in_flight: DATAGRAM,
        }
    }

    #[test]
    fn a_packet_with_data_behind_it_counts_even_if_the_window_never_filled() {
        let window_use = WindowUse::default();
        assert!(window_use.counts(&packet(Timestamp::ZERO, false)));
    }

    #[test]
    fn a_packet_without_data_behind_it_counts_only_if_its_flight_filled_the_window() {
        let mut window_use = WindowUse::default();
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
        assert!(!window_use.counts(&packet(early, true)));
        window_use.on_sent(early, DATAGRAM * 9, DATAGRAM * 10, DATAGRAM);
        assert!(
            !window_use.counts(&packet(early, true)),
            "there was room for one more"
        );
        window_use.on_sent(
            late,
            DATAGRAM * 9 + ByteCount::new(1),
            DATAGRAM * 10,
            DATAGRAM,
        );
        assert!(window_use.counts(&packet(early, true)));
        assert!(window_use.counts(&packet(late, true)));
        assert!(!window_use.counts(&packet(Timestamp::from_millis(3), true)));
    }
}
