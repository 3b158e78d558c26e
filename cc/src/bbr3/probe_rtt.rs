//! ProbeRTT: little in flight for a moment, to see the round-trip time without queues (ccwg-bbr-06 section 5.3.4).

use std::time::Duration;

use units::{ByteCount, Timestamp};

use super::Bbr3;
use super::probe_bw::AckPhase;
use crate::state::{State, Trigger};

/// Section 2.16.2, `ProbeRTTCwndGain`.
pub(super) const WINDOW_GAIN: (u64, u64) = (1, 2);

/// Section 2.16.2, `ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);

/// How far a ProbeRTT is.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct ProbeRtt {
    /// `BBR.probe_rtt_done_stamp`; `None` until the bytes in flight are low.
    done_at: Option<Timestamp>,
    /// `BBR.probe_rtt_round_done`.
    is_round_done: bool,
}

impl Bbr3 {
    /// `CheckProbeRTT` (section 5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, now: Timestamp) {
        if self.state.current() != State::ProbeRtt
            && self.min_rtt.is_probe_due()
            && !self.is_idle_restart
        {
            // Before the state changes: within ProbeRTT a window is not worth remembering.
            self.save_window();
            self.state
                .transition_to(State::ProbeRtt, Trigger::MinRttExpired);
            self.probe_rtt = ProbeRtt::default();
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.restart_round();
        }
        if self.state.current() == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        // Every event that comes here delivered something.
        self.is_idle_restart = false;
    }

    /// `HandleProbeRTT`: the time runs from when the bytes in flight are low, for 200 ms and a round.
    fn handle_probe_rtt(&mut self, now: Timestamp) {
        if self.probe_rtt.done_at.is_none() {
            if self.in_flight <= self.probe_rtt_window() {
                self.probe_rtt = ProbeRtt {
                    done_at: Some(now + DURATION),
                    is_round_done: false,
                };
                self.restart_round();
            }
            return;
        }
        self.probe_rtt.is_round_done |= self.is_round_start;
        if self.probe_rtt.is_round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT` (section 5.3.4.4).
    pub(super) fn check_probe_rtt_done(&mut self, now: Timestamp) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.on_probe_done(now);
        self.restore_window();
        self.forget_shortterm();
        if self.full_pipe.is_filled() {
            // The next probe may cause losses, so its wait begins anew; but what is in flight is low already.
            self.start_down(now, Trigger::ProbeRttDone);
            self.start_cruise(Trigger::ProbeRttDone);
        } else {
            self.enter_startup(Trigger::ProbeRttDone);
        }
        self.bound_window();
    }

    /// `ProbeRTTCwnd` (section 5.6.4.5).
    pub(super) fn probe_rtt_window(&self) -> ByteCount {
        self.bdp_multiple(self.rate.bw(), WINDOW_GAIN)
            .max(self.max_datagram_size * super::MIN_PIPE_PACKETS)
    }
}
