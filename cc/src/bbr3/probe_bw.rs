//! ProbeBW: slower, as fast, and faster than the path in turn (ccwg-bbr-06 section 5.3.3).

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use super::volume_model::is_too_high;
use super::{Ack, Bbr3, Bbr3Fault};
use crate::state::{State, Trigger};

/// Section 5.6.1, ProbeBW_DOWN.
pub(super) const DOWN_PACING_GAIN: (u64, u64) = (9, 10);

/// Section 5.6.1, ProbeBW_UP.
pub(super) const UP_PACING_GAIN: (u64, u64) = (5, 4);

/// Section 5.6.1, ProbeBW_UP.
pub(super) const UP_WINDOW_GAIN: (u64, u64) = (9, 4);

/// Section 5.3.3.8: the wait between two probes is 2 s ...
const SHORTEST_WAIT: Duration = Duration::from_secs(2);

/// ... and up to another second, drawn each time.
const RANDOM_WAIT: Duration = Duration::from_secs(1);

/// Section 5.3.3.8: at the latest after 62 or 63 rounds, as the count begins at 1 or 0.
const MOST_ROUNDS: u64 = 63;

/// Section 5.3.3.9: the growth of the long-term bound doubles each round, this many times.
const MOST_DOUBLINGS: u32 = 30;

/// `BBR.ack_phase`: what acknowledgements speak of, seen from the latest probe.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    /// No probe.
    Init,
    /// The pipe is being refilled.
    Refilling,
    /// The probe has begun, its packets are still on their way.
    ProbeStarting,
    /// The probe's packets are being acknowledged.
    ProbeFeedback,
    /// The probe has ended, its last packets are being acknowledged.
    ProbeStopping,
}

/// Where the cycle of probing is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// `BBR.rounds_since_probe_up`.
    pub(super) rounds_since_probe_up: u64,
    /// `BBR.is_bw_probe_sample`: whether losses are judged as the probe's.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub(super) is_prev_probe_too_high: bool,
    /// `BBR.prev_probe_precautionary`.
    is_prev_probe_precautionary: bool,
    /// `BBR.cycle_stamp`.
    began_at: Timestamp,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    /// `BBR.bw_probe_up_rounds`.
    doublings: u32,
    /// `BBR.bw_probe_up_acked`.
    acked: ByteCount,
    /// `BBR.probe_up_acked_per_inc`.
    acked_per_step: ByteCount,
    /// Number of the latest probe, from 1.
    probe_number: u32,
}

impl Cycle {
    pub(super) const fn new() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            rounds_since_probe_up: 0,
            is_probe_sample: false,
            is_prev_probe_too_high: false,
            is_prev_probe_precautionary: false,
            began_at: Timestamp::ZERO,
            wait: Duration::ZERO,
            doublings: 0,
            acked: ByteCount::ZERO,
            acked_per_step: ByteCount::MAX,
            probe_number: 0,
        }
    }

    /// Returns the tag of packets sent in `state`: the number of the probe they belong to, or 0.
    pub(super) fn tag(&self, state: State) -> u32 {
        match state {
            State::ProbeBwRefill | State::ProbeBwUp => self.probe_number,
            _ => 0,
        }
    }

    /// Says whether a packet with this tag was sent by the latest probe. A probe answers for its own losses only.
    pub(super) const fn owns(&self, tag: u32) -> bool {
        tag == self.probe_number && tag != 0
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN` and `PickProbeWait`.
    pub(super) fn start_down(&mut self, now: Timestamp, trigger: Trigger) {
        self.loss_round.has_loss = false;
        self.rate.restart_latest(Rate::ZERO);
        self.volume.restart_latest(ByteCount::ZERO);
        self.cycle.acked_per_step = ByteCount::MAX;
        self.cycle.rounds_since_probe_up = self.random.bit();
        self.cycle.wait = SHORTEST_WAIT + self.random.span_below(RANDOM_WAIT);
        self.cycle.began_at = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.restart_round();
        self.state.transition_to(State::ProbeBwDown, trigger);
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_cruise(&mut self, trigger: Trigger) {
        self.state.transition_to(State::ProbeBwCruise, trigger);
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self, trigger: Trigger) {
        self.forget_shortterm();
        self.cycle.doublings = 0;
        self.cycle.acked = ByteCount::ZERO;
        self.cycle.is_prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        // 0 means "no probe"; after four billion probes the numbers begin again.
        self.cycle.probe_number = self.cycle.probe_number.checked_add(1).unwrap_or(1);
        self.restart_round();
        self.state.transition_to(State::ProbeBwRefill, trigger);
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &Ack) {
        self.cycle.is_probe_sample = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.restart_round();
        self.restart_full_pipe(ack);
        self.state
            .transition_to(State::ProbeBwUp, Trigger::Refilled);
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase` (section 5.3.3.9).
    pub(super) fn update_cycle(&mut self, now: Timestamp, ack: &Ack) {
        if !self.full_pipe.is_filled() || self.adapt_long_term_model(ack) {
            return;
        }
        match self.state.current() {
            State::ProbeBwDown => {
                if self.is_time_to_probe(now) {
                    self.start_refill(Trigger::ProbeTime);
                } else if self.is_time_to_cruise() {
                    self.start_cruise(Trigger::Drained);
                }
            }
            State::ProbeBwCruise if self.is_time_to_probe(now) => {
                self.start_refill(Trigger::ProbeTime);
            }
            State::ProbeBwRefill if self.is_round_start => self.start_up(ack),
            State::ProbeBwUp => {
                if let Some(trigger) = self.reason_to_go_down(ack) {
                    self.cycle.is_prev_probe_too_high = false;
                    self.start_down(now, trigger);
                }
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel`; says whether it changed the state.
    fn adapt_long_term_model(&mut self, ack: &Ack) -> bool {
        let is_probe_bw = self.state.current().is_probe_bw();
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.is_round_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.sabotage.is(Bbr3Fault::FilterEveryRound) && self.is_round_start && is_probe_bw {
            self.rate.advance();
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.is_round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if is_probe_bw && !ack.sample.is_app_limited {
                self.rate.advance();
            }
            let was_cautious = self.cycle.is_prev_probe_precautionary;
            if is_probe_bw && was_cautious && !self.cycle.is_prev_probe_too_high {
                self.start_refill(Trigger::CleanProbe);
                return true;
            }
        }
        let is_safe = !is_too_high(ack.sample.lost, ack.sample.tx_in_flight);
        if is_safe && self.volume.is_longterm_set() {
            self.volume.longterm = self.volume.longterm.max(ack.sample.tx_in_flight);
            if self.state.current() == State::ProbeBwUp {
                self.probe_longterm_upward(ack);
            }
        }
        false
    }

    /// `IsTimeToProbeBW` (section 5.3.3.8): by the wall clock, or after as many rounds as a Reno flow in its place would
    /// need to grow by a window. The target is counted in packets there; the draft's pseudocode compares bytes.
    fn is_time_to_probe(&self, now: Timestamp) -> bool {
        if now > self.cycle.began_at + self.cycle.wait {
            return true;
        }
        let target = self.target_inflight().as_u64();
        let reno_rounds = if self.sabotage.is(Bbr3Fault::RenoBytes) {
            target
        } else {
            (target / self.max_datagram_size.as_u64()).min(MOST_ROUNDS)
        };
        self.cycle.rounds_since_probe_up >= reno_rounds
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.headroom_target()
            && self.in_flight <= self.inflight_for(self.rate.max_bw(), (1, 1))
    }

    /// `IsTimeToGoDown`.
    fn reason_to_go_down(&mut self, ack: &Ack) -> Option<Trigger> {
        let longterm = self.volume.longterm;
        if self.cycle.is_prev_probe_too_high && self.in_flight >= longterm {
            self.cycle.is_prev_probe_precautionary = true;
            return Some(Trigger::Precaution);
        }
        if self.sabotage.is(Bbr3Fault::NoPlateau) {
            let is_over = self.in_flight >= self.inflight_for(self.rate.max_bw(), UP_PACING_GAIN);
            return is_over.then_some(Trigger::BandwidthPlateau);
        }
        if ack.is_window_limited && self.window >= longterm {
            // The bound, not the path, keeps the rate down.
            self.restart_full_pipe(ack);
            return None;
        }
        self.full_pipe
            .is_full_now()
            .then_some(Trigger::BandwidthPlateau)
    }

    fn restart_full_pipe(&mut self, ack: &Ack) {
        self.full_pipe
            .restart(ack.sample.delivery_rate.unwrap_or(Rate::ZERO));
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4, 8 ... packets per window of acknowledged bytes, hence per round.
    fn raise_slope(&mut self) {
        let steps = 1 << self.cycle.doublings;
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
        self.cycle.acked_per_step = self.window.scale(1, steps).max(self.max_datagram_size);
    }

    /// `ProbeInflightLongtermUpward`: only while the bound is what limits. What is left over of a step counts for the next.
    fn probe_longterm_upward(&mut self, ack: &Ack) {
        if !ack.is_window_limited || self.window < self.volume.longterm {
            return;
        }
        self.cycle.acked += ack.acked;
        let per_step = self.cycle.acked_per_step.as_u64().max(1);
        let steps = self.cycle.acked.as_u64() / per_step;
        if steps > 0 {
            self.cycle.acked = if self.sabotage.is(Bbr3Fault::ProbeRemainder) {
                ByteCount::ZERO
            } else {
                ByteCount::new(self.cycle.acked.as_u64() % per_step)
            };
            self.volume.longterm += self.max_datagram_size * steps;
        }
        if self.is_round_start {
            self.raise_slope();
        }
    }
}
