//! A controller that does as it is told: one rate, one window, whatever happens.
//!
//! It is for tests of pacing and for measuring links. It is not for networks one shares.

use units::{ByteCount, Rate, Timestamp};

use crate::controller::Controller;
use crate::event::{FeedbackEvent, SentEvent};
use crate::rtt::RttEstimator;
use crate::state::{State, Transition};

/// What a fixed-rate controller is set to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FixedConfig {
    /// The pacing rate, from the first packet on.
    pub rate: Rate,
    /// The window.
    pub window: ByteCount,
}

impl FixedConfig {
    /// Makes a setting whose window is so large (1 GiB) that only the rate matters.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            window: Self::LARGE_WINDOW,
        }
    }

    pub(crate) const LARGE_WINDOW: ByteCount = ByteCount::mib(1_024);
}

/// The fixed-rate controller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fixed {
    config: FixedConfig,
    max_datagram_size: ByteCount,
}

impl Fixed {
    /// Makes a controller that paces at the given rate and never changes its mind.
    #[must_use]
    pub const fn new(config: FixedConfig, max_datagram_size: ByteCount) -> Self {
        Self {
            config,
            max_datagram_size,
        }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _now: Timestamp, _sent: &SentEvent) {}

    fn on_feedback(&mut self, _now: Timestamp, _event: &FeedbackEvent<'_>) {}

    fn on_mtu_change(&mut self, _now: Timestamp, max_datagram_size: ByteCount) {
        self.max_datagram_size = max_datagram_size;
    }

    /// Returns the configured window, but room for two datagrams at least, or nothing would ever be sent.
    fn window(&self) -> ByteCount {
        self.config.window.max(self.minimum_window())
    }

    fn pacing_rate(&self, _rtt: &RttEstimator) -> Rate {
        self.config.rate
    }

    fn ssthresh(&self) -> Option<ByteCount> {
        None
    }

    fn state(&self) -> State {
        State::FixedRate
    }

    fn take_transition(&mut self) -> Option<Transition> {
        None
    }

    fn minimum_window(&self) -> ByteCount {
        self.max_datagram_size * 2
    }

    fn max_datagram_size(&self) -> ByteCount {
        self.max_datagram_size
    }

    fn name(&self) -> &'static str {
        "fixed"
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: ByteCount = ByteCount::new(1_200);

    #[test]
    fn the_rate_holds_before_and_after_rtt_samples() {
        let fixed = Fixed::new(FixedConfig::new(Rate::from_mbps(10)), DATAGRAM);
        let mut rtt = RttEstimator::new();
        assert_eq!(fixed.pacing_rate(&rtt), Rate::from_mbps(10));
        rtt.update(std::time::Duration::from_secs(3), std::time::Duration::ZERO);
        assert_eq!(fixed.pacing_rate(&rtt), Rate::from_mbps(10));
    }

    #[test]
    fn the_quantum_covers_a_millisecond_within_its_bounds() {
        let fixed = Fixed::new(FixedConfig::new(Rate::from_mbps(10)), DATAGRAM);
        assert_eq!(fixed.send_quantum(Rate::from_kbps(64)), DATAGRAM * 2);
        assert_eq!(
            fixed.send_quantum(Rate::from_mbps(100)),
            ByteCount::new(12_500)
        );
        assert_eq!(
            fixed.send_quantum(Rate::from_mbps(10_000)),
            ByteCount::new(64_000)
        );
        assert_eq!(fixed.send_quantum(Rate::INFINITE), ByteCount::new(64_000));
    }

    #[test]
    fn the_window_has_room_for_two_datagrams() {
        let config = FixedConfig {
            rate: Rate::from_mbps(1),
            window: ByteCount::new(1),
        };
        assert_eq!(Fixed::new(config, DATAGRAM).window(), DATAGRAM * 2);
    }
}
