//! Startup: the rate doubles every round until the pipe is full (ccwg-bbr-06 section 5.3.1).

use units::{ByteCount, Rate};

use super::loss_round::Probe;
use super::volume_model::is_too_high;
use super::{Ack, Bbr3};
use crate::state::{State, Trigger};

/// Section 2.5, `StartupPacingGain`: 4 ln 2, the least gain that lets the rate double every round.
pub(super) const PACING_GAIN: (u64, u64) = (277, 100);

/// Section 5.3.1.3, `StartupFullLossCnt`.
const FULL_LOSS_RANGES: u32 = 6;

impl Bbr3 {
    /// `EnterStartup`, on a return to it.
    pub(super) fn enter_startup(&mut self, trigger: Trigger) {
        self.state.transition_to(State::Startup, trigger);
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, ack: &Ack) {
        if self.state.current() != State::Startup {
            return;
        }
        if self.full_pipe.is_filled() {
            self.enter_drain(Trigger::BandwidthPlateau);
        } else if self.is_startup_loss_high(ack) {
            self.recovery.ended = Some(Probe::Startup);
            self.full_pipe.set_filled();
            self.volume.longterm = self.bdp(self.rate.bw()).max(self.volume.latest());
            self.enter_drain(Trigger::LossTooHigh);
        }
    }

    /// `CheckStartupHighLoss` (section 5.3.1.3): judged at the end of a loss round, so at least one full round after the
    /// first loss; one lost packet or one burst is no reason.
    fn is_startup_loss_high(&self, ack: &Ack) -> bool {
        self.loss_round.is_start()
            && self.recovery.is_open()
            && self.loss_round.lost_ranges() >= FULL_LOSS_RANGES
            && is_too_high(ack.sample.lost, ack.sample.tx_in_flight)
    }

    /// Section 5.6.2 and checklist of known bugs: before the first RTT sample the initial rate rests on a guess of 1 ms.
    /// It is worked out anew with the first sample, or a flow short of data would keep 266 Mbit/s.
    pub(super) fn take_first_rtt(&mut self, event: &crate::event::FeedbackEvent<'_>) {
        let Some(smoothed) = event.rtt.smoothed() else {
            return;
        };
        if self.has_rtt || self.sabotage.is(super::Bbr3Fault::StalePacing) {
            return;
        }
        self.has_rtt = true;
        if self.rate.max_bw() == Rate::ZERO {
            let initial: ByteCount = self.initial_window();
            self.pacing_rate = super::control::initial_pacing_rate(initial, Some(smoothed));
        }
    }
}
