//! Observers of a connection's sending side: they listen and answer nothing, so a run with one and a
//! run without it send the same packets at the same instants.

use std::{sync::Arc, time::Duration};

use units::{ByteCount, Rate, Timestamp};

/// The sending side after something changed it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderUpdate {
    /// The congestion window.
    pub window: ByteCount,
    /// The smallest window that the controller knows.
    pub minimum_window: ByteCount,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The round-trip time sample that this event gave, the peer's ACK delay included.
    pub latest_rtt: Option<Duration>,
    /// The pacing rate.
    pub pacing_rate: Rate,
    /// Packets declared lost since the connection began.
    pub packets_lost: u64,
    /// Congestion Experienced marks reported since then.
    pub ce_count: u64,
    /// Probe timeouts since then (RFC 9002 section 6.2).
    pub pto_count: u64,
    /// Datagrams that left while the gate was closed, so that an acknowledgement could go with them.
    pub ack_exemptions: u64,
    /// How often persistent congestion was established (RFC 9002 section 7.6).
    pub persistent_congestions: u64,
}

impl Default for SenderUpdate {
    /// A sender of which nothing is known: no window, nothing in flight, no pacing.
    fn default() -> Self {
        Self {
            window: ByteCount::ZERO,
            minimum_window: ByteCount::ZERO,
            in_flight: ByteCount::ZERO,
            latest_rtt: None,
            pacing_rate: Rate::INFINITE,
            packets_lost: 0,
            ce_count: 0,
            pto_count: 0,
            ack_exemptions: 0,
            persistent_congestions: 0,
        }
    }
}

/// Hears what the sending side of one connection does, in order.
pub trait SenderObserver: Send {
    /// Something was sent, acknowledged or lost.
    fn on_update(&mut self, now: Timestamp, update: &SenderUpdate);

    /// The controller's state changed.
    fn on_transition(&mut self, now: Timestamp, transition: &cc::Transition);
}

/// Makes the observer of a connection about to begin, or declines with `None`.
pub type ObserverFactory = Arc<dyn Fn() -> Option<Box<dyn SenderObserver>> + Send + Sync>;
