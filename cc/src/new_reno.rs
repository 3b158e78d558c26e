//! NewReno: half the window on congestion, one datagram per window of acknowledged bytes otherwise.
//!
//! Follows RFC 9002 section 7; everything but the growth in congestion avoidance is in
//! [`loss_based`](crate::loss_based).

use units::{ByteCount, Timestamp};

use crate::loss_based::{Avoidance, CountedAck, LossBased};
use crate::options::LossBasedOptions;

/// The NewReno controller.
pub type NewReno = LossBased<RenoGrowth>;

impl NewReno {
    /// Makes a controller in slow start at the initial window, with the default options.
    #[must_use]
    pub fn new(max_datagram_size: ByteCount) -> Self {
        Self::with_options(max_datagram_size, LossBasedOptions::DEFAULT)
    }

    /// Makes one with the options given.
    #[must_use]
    pub fn with_options(max_datagram_size: ByteCount, options: LossBasedOptions) -> Self {
        Self::with_avoidance(max_datagram_size, options, RenoGrowth::default())
    }
}

/// Additive increase.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RenoGrowth {
    /// Acknowledged bytes that have not grown the window yet; less than a window.
    credit: ByteCount,
}

impl Avoidance for RenoGrowth {
    const NAME: &'static str = "newreno";

    /// RFC 9002 section 7.3.2, kLossReductionFactor.
    const REDUCTION: (u64, u64) = (1, 2);

    /// RFC 8511 section 3.
    const MARKED_REDUCTION: (u64, u64) = (4, 5);

    /// What a full window of `largest_flight` would have grown to.
    fn growth_limit(largest_flight: ByteCount, max_datagram_size: ByteCount) -> ByteCount {
        largest_flight + max_datagram_size
    }

    fn on_reduction(&mut self, _before: ByteCount, _after: ByteCount) {
        self.credit = ByteCount::ZERO;
    }

    fn on_slow_start_exit(&mut self, _window: ByteCount) {
        self.credit = ByteCount::ZERO;
    }

    fn restore(&mut self, saved: &Self) {
        *self = *saved;
    }

    /// RFC 9002 section 7.3.3: one datagram for every window of acknowledged bytes. Bytes are collected, so the
    /// result does not depend on how acknowledgements slice them.
    fn on_acked(&mut self, _now: Timestamp, ack: &CountedAck) -> ByteCount {
        let mut window = ack.window;
        self.credit += ack.size;
        while self.credit >= window {
            self.credit -= window;
            window += ack.max_datagram_size;
        }
        // What was collected beyond the limit is gone with it.
        window.min(ack.limit)
    }
}
