//! What a controller is told: one event per batch of sent packets and one per received datagram.
//!
//! The stack digests a datagram completely (acknowledgements, losses, congestion marks, RTT, delivery rate) and
//! hands over the result in one piece, before anything more is sent. A controller therefore never sees half of
//! an acknowledgement, and the order in which the stack found out does not matter.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use crate::delivery::RateSample;
use crate::rtt::RttEstimator;

/// A packet that has been acknowledged for the first time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AckedPacket {
    /// Packet number within its packet-number space.
    pub packet_number: u64,
    /// When the packet left.
    pub sent_at: Timestamp,
    /// Size of the packet: UDP payload bytes.
    pub size: ByteCount,
    /// Whether the sender had nothing more to send when this packet left.
    pub is_app_limited: bool,
    /// Bytes in flight just after the packet was sent, the packet itself included.
    pub tx_in_flight: ByteCount,
}

/// A packet that has been declared lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LostPacket {
    /// Packet number within its packet-number space.
    pub packet_number: u64,
    /// When the packet left.
    pub sent_at: Timestamp,
    /// Size of the packet: UDP payload bytes.
    pub size: ByteCount,
    /// Whether the sender had nothing more to send when this packet left.
    pub is_app_limited: bool,
    /// Bytes in flight just after the packet was sent, the packet itself included.
    pub tx_in_flight: ByteCount,
    /// Bytes declared lost, or learned to be marked, since the packet was sent, the packet itself included. Of several
    /// packets that one event declares lost, each has those before it in its figure and not those after it.
    pub lost_since_sent: ByteCount,
    /// What the controller said of the packet when it left ([`send_tag`](crate::Controller::send_tag)).
    pub send_tag: u32,
}

/// Everything one received datagram, or one expiry of the loss timer, told the sender.
///
/// It is delivered once, after the stack has digested the datagram and before anything is sent in answer.
#[derive(Copy, Clone, Debug)]
pub struct FeedbackEvent<'a> {
    /// Newly acknowledged packets that counted as in flight, in the order they were sent; may be empty.
    pub acked: &'a [AckedPacket],
    /// Packets newly declared lost, in the order they were sent; may be empty.
    pub lost: &'a [LostPacket],
    /// Packets that earlier events declared lost and that this datagram acknowledges after all, in the order they
    /// were sent; may be empty. They left the bytes in flight when they were declared lost, so they are not among
    /// [`acked`](Self::acked), and each is reported once.
    pub late: &'a [LostPacket],
    /// Whether the transport established persistent congestion (RFC 9002 section 7.6).
    pub is_persistent_congestion: bool,
    /// Newly reported Congestion Experienced marks (RFC 9002 section 7.1); 0 if none.
    pub ce_count: u64,
    /// When the largest newly acknowledged packet left.
    pub largest_acked_sent_at: Option<Timestamp>,
    /// Bytes in flight before this event.
    pub in_flight_before: ByteCount,
    /// Bytes in flight after this event.
    pub in_flight: ByteCount,
    /// RTT estimates, already updated with this event's sample.
    pub rtt: &'a RttEstimator,
    /// The raw RTT sample this event gave, if it gave one.
    pub latest_rtt: Option<Duration>,
    /// The delivery-rate sample this event gave; `None` if it acknowledged nothing.
    pub sample: Option<RateSample>,
    /// Whether this event begins a new round ([`RoundCounter`](crate::round::RoundCounter)).
    pub is_round_start: bool,
    /// Rounds begun so far, this event's included.
    pub round_count: u64,
}

/// One batch of packets handed to the network in one go.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SentEvent {
    /// Bytes of the batch that count as in flight.
    pub bytes: ByteCount,
    /// Bytes in flight afterwards, the batch included.
    pub in_flight: ByteCount,
    /// Whether the sender has nothing more to send.
    pub is_app_limited: bool,
    /// Whether nothing was in flight before the batch.
    pub was_idle: bool,
}
