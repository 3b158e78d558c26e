//! What the model allows: pacing rate and window (ccwg-bbr-06 section 5.6).
//!
//! | state | pacing gain | window gain | bounds on the window |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | short-term (never set there) |
//! | Drain | 0.5 | 2 | long-term, short-term |
//! | ProbeBW_DOWN | 0.9 | 2 | long-term, short-term |
//! | ProbeBW_CRUISE | 1 | 2 | long-term less headroom, short-term |
//! | ProbeBW_REFILL | 1 | 2 | long-term |
//! | ProbeBW_UP | 1.25 | 2.25 | long-term |
//! | ProbeRTT | 1 | 0.5 | long-term less headroom, short-term |
//!
//! The send quantum is the [default](crate::Controller::send_quantum): it is the draft's.

use std::time::Duration;

use units::{ByteCount, Rate};

use super::{Bbr3, Bbr3Fault, MIN_PIPE_PACKETS, drain, probe_bw, probe_rtt, startup};
use crate::controller::Controller;
use crate::loss_based::{LARGEST_WINDOW, initial_window};
use crate::state::State;

/// Section 2.6, `DefaultCwndGain`.
const DEFAULT_WINDOW_GAIN: (u64, u64) = (2, 1);

/// Section 5.6.2, `PacingMarginPercent` = 1: a little below the path, so that queues go down in the long run.
const PACING_MARGIN: (u64, u64) = (99, 100);

/// Section 5.6.2: the RTT taken for granted until there is one.
const UNKNOWN_RTT: Duration = Duration::from_millis(1);

/// `InitPacingRate` (section 5.6.2).
pub(super) fn initial_pacing_rate(initial_window: ByteCount, smoothed: Option<Duration>) -> Rate {
    let (num, den) = startup::PACING_GAIN;
    Rate::from_bytes_per(initial_window, smoothed.unwrap_or(UNKNOWN_RTT))
        .scale(num, den)
        .max(Rate::from_bps(1))
}

impl Bbr3 {
    /// `BBR.pacing_gain`, by the table of section 5.6.1.
    pub(super) fn pacing_gain(&self) -> (u64, u64) {
        match self.state.current() {
            State::Startup => startup::PACING_GAIN,
            State::Drain => drain::PACING_GAIN,
            State::ProbeBwDown => probe_bw::DOWN_PACING_GAIN,
            State::ProbeBwUp => probe_bw::UP_PACING_GAIN,
            _ => (1, 1),
        }
    }

    /// `BBR.cwnd_gain`, by the table of section 5.6.1.
    fn window_gain(&self) -> (u64, u64) {
        match self.state.current() {
            State::ProbeBwUp => probe_bw::UP_WINDOW_GAIN,
            State::ProbeRtt => probe_rtt::WINDOW_GAIN,
            _ => DEFAULT_WINDOW_GAIN,
        }
    }

    /// `SetPacingRateWithGain` (section 5.6.2): before the pipe was full once, the rate only rises.
    pub(super) fn set_pacing_rate(&mut self, gain: (u64, u64)) {
        let margin = if self.sabotage.is(Bbr3Fault::NoMargin) {
            (1, 1)
        } else {
            PACING_MARGIN
        };
        let rate = self.rate.bw().scale(gain.0 * margin.0, gain.1 * margin.1);
        if rate > Rate::ZERO && (self.full_pipe.is_filled() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// What `bw` moves in the minimum RTT; `None` before the first RTT sample.
    fn known_bdp(&self, bw: Rate) -> Option<ByteCount> {
        let min_rtt = self.min_rtt.get()?;
        Some(bw.bytes_in(min_rtt).min(LARGEST_WINDOW))
    }

    /// `BBR.bdp`, and the initial window before the first RTT sample.
    pub(super) fn bdp(&self, bw: Rate) -> ByteCount {
        self.bdp_multiple(bw, (1, 1))
    }

    /// `BDPMultiple` (section 5.6.4.2).
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: (u64, u64)) -> ByteCount {
        match self.known_bdp(bw) {
            // At most 2^40 x 225, well within 64 bits.
            Some(bdp) => ByteCount::new(bdp.as_u64() * gain.0 / gain.1),
            None => self.initial_window(),
        }
    }

    /// `Inflight` (section 5.6.4.2): that multiple, rounded up to what the path's ends need.
    pub(super) fn inflight_for(&self, bw: Rate, gain: (u64, u64)) -> ByteCount {
        self.quantized(self.bdp_multiple(bw, gain))
    }

    /// `QuantizationBudget` (section 5.6.4.2), with the offload budget of QUIC: one quantum (section 5.5.8).
    fn quantized(&self, inflight: ByteCount) -> ByteCount {
        let budget = self.send_quantum(self.pacing_rate);
        let floor = self.max_datagram_size * MIN_PIPE_PACKETS;
        let more = if self.state.current() == State::ProbeBwUp {
            self.max_datagram_size * 2
        } else {
            ByteCount::ZERO
        };
        inflight.max(budget).max(floor) + more
    }

    /// `TargetInflight` (section 5.3.3.8): the product of rate and delay, unless congestion made the window smaller.
    pub(super) fn target_inflight(&self) -> ByteCount {
        self.bdp(self.rate.bw()).min(self.window)
    }

    /// `SetCwnd` (section 5.6.4.6).
    pub(super) fn set_window(&mut self, acked: ByteCount) {
        let goal = self.bdp_multiple(self.rate.bw(), self.window_gain());
        let most = self.quantized(goal + self.extra_acked.get());
        let grown = self.window + acked;
        self.window = if self.sabotage.is(Bbr3Fault::WindowJump) {
            most
        } else if self.full_pipe.is_filled() {
            grown.min(most)
        } else if self.window < most || self.window < self.initial_window() * 2 {
            // Deviation: Linux's guard. The draft's (delivered below the initial window) ends with the first round, when the
            // estimate rests on one sample of a burst.
            grown
        } else {
            self.window
        };
        self.bound_window();
    }

    /// `BoundCwndForProbeRTT` and `BoundCwndForModel` (sections 5.6.4.5 and 5.6.4.7), within floor and ceiling.
    ///
    /// The long-term bound holds in Drain too: the table of section 5.6.1 says so, and the pseudocode forgets it.
    pub(super) fn bound_window(&mut self) {
        let floor = self.max_datagram_size * MIN_PIPE_PACKETS;
        let state = self.state.current();
        if state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let longterm = match state {
            State::Startup => ByteCount::MAX,
            State::ProbeRtt | State::ProbeBwCruise => self.headroom_target(),
            _ => self.volume.longterm,
        };
        let bound = longterm.min(self.volume.shortterm()).max(floor);
        self.window = self.window.max(floor).min(bound).min(LARGEST_WINDOW);
    }

    /// `InflightWithHeadroom` (section 5.3.3.9).
    pub(super) fn headroom_target(&self) -> ByteCount {
        let target = self.volume.with_headroom(self.max_datagram_size);
        if self.sabotage.is(Bbr3Fault::Headroom) && self.volume.is_longterm_set() {
            return self.volume.longterm - target;
        }
        target
    }

    /// `SaveCwnd` (section 5.6.4.4).
    pub(super) fn save_window(&mut self) {
        let is_fresh = !self.recovery.is_open() && self.state.current() != State::ProbeRtt;
        self.prior_window = if is_fresh {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    /// `RestoreCwnd` (section 5.6.4.4).
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// `C.InitialCwnd`.
    pub(super) fn initial_window(&self) -> ByteCount {
        initial_window(self.max_datagram_size).max(self.minimum_window())
    }

    /// `ResetShortTermModel` (section 5.5.10).
    pub(super) fn forget_shortterm(&mut self) {
        self.rate.forget_shortterm();
        self.volume.forget_shortterm();
    }
}
