//! Drain: half the rate, until the queue that Startup made is gone (ccwg-bbr-06 section 5.3.2).

use units::Timestamp;

use super::Bbr3;
use crate::state::{State, Trigger};

/// Section 2.5, `DrainPacingGain`.
pub(super) const PACING_GAIN: (u64, u64) = (1, 2);

/// Section 5.3.2: if the rate was overestimated, the bytes in flight may never come down to the product with it. Drain then
/// ends once this many rounds have passed, that is, with the start of the next one.
const MOST_ROUNDS: u64 = 3;

impl Bbr3 {
    /// `EnterDrain`.
    pub(super) fn enter_drain(&mut self, trigger: Trigger) {
        self.drain_start_round = self.rounds.count();
        self.state.transition_to(State::Drain, trigger);
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, now: Timestamp) {
        if self.state.current() != State::Drain {
            return;
        }
        if self.in_flight <= self.inflight_for(self.rate.bw(), (1, 1)) {
            self.start_down(now, Trigger::Drained);
        } else if self.rounds.count() > self.drain_start_round + MOST_ROUNDS {
            self.start_down(now, Trigger::DrainRoundsOver);
        }
    }
}
