//! BBRv3: a controller that paces by a model of the path instead of waiting for losses.
//!
//! Follows draft-ietf-ccwg-bbr-06 ("ccwg-bbr-06" in this folder); section numbers without a document are that draft's.
//! This file conducts; each part of the model and each phase has a file of its own:
//!
//! ```text
//!                      ┌───────────────────────── model ─────────────────────────┐
//!   FeedbackEvent ──>  loss_round, rate_model, extra_acked, full_pipe, min_rtt,   ──> phases ──> control
//!                      volume_model                                                  (below)     (window, rate)
//!
//!   Startup ── plateau, or 2 % loss in 6 ranges ──> Drain ── in flight <= BDP, or 3 rounds ──┐
//!                                                                                            v
//!        ┌──────────────────────── ProbeBwDown <──── plateau, 2 % loss, precaution ──── ProbeBwUp
//!        │ in flight <= BDP            │ 2 to 3 s, 62 rounds,                               ^
//!        v and headroom                v or a clean cautious probe                          │ one round
//!   ProbeBwCruise ── 2 to 3 s, ──> ProbeBwRefill ───────────────────────────────────────────┘
//!                    or 62 rounds
//!
//!   any ── 5 s without an RTT as low ──> ProbeRtt ── 200 ms and a round ──> ProbeBwDown, ProbeBwCruise (or Startup)
//!   any but ProbeRtt ── the losses were none ──> Startup or ProbeBwRefill, whichever they had ended
//! ```
//!
//! One feedback event is digested in the order of section 5.2.3: its losses first, then sample, bounds, aggregation, full
//! pipe, phases, minimum RTT, and at last rate and window.
//!
//! What the stack must provide beyond what a loss-based controller needs: per lost packet what was lost since it left and
//! the tag it left with ([`send_tag`](Controller::send_tag): which probe it belongs to), and a mark "lacks data" while
//! [`is_self_limited`](Controller::is_self_limited).
//!
//! Congestion marks: the draft has no rule, and a sender that sets ECT must respond (RFC 3168). Here marked bytes count
//! like lost ones for the 2 % tests, and mark the round as one with losses; nothing is resent and nothing taken back.
//!
//! Not there: the exit of Startup by RTT, a jitter buffer, seeding from an earlier connection.
//!
//! Not in the hands of a controller: asking the peer for more or fewer acknowledgements (draft-ietf-quic-ack-frequency).

mod control;
mod drain;
mod extra_acked;
mod fault;
mod full_pipe;
mod loss_round;
mod losses;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod random;
mod rate_model;
mod startup;
mod volume_model;

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::controller::{Controller, PathModel};
use crate::delivery::RateSample;
use crate::event::{FeedbackEvent, SentEvent};
use crate::loss_based::{initial_window, possible_datagram};
use crate::round::RoundCounter;
use crate::rtt::RttEstimator;
use crate::state::{State, StateMachine, Transition};
use crate::window_use::WindowUse;

#[cfg(feature = "mutants")]
pub use fault::Bbr3Fault;
#[cfg(not(feature = "mutants"))]
use fault::Bbr3Fault;

use extra_acked::{Acked, ExtraAcked};
use fault::Sabotage;
use full_pipe::FullPipe;
use loss_round::{LossRound, Recovery};
use min_rtt::MinRtt;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use random::SplitMix64;
use rate_model::RateModel;
use volume_model::VolumeModel;

/// Section 2.8, `BBR.Beta`: a bound gives way by no more than this at once, as CUBIC's window does.
const BETA: (u64, u64) = (7, 10);

/// Section 2.8, `BBR.LossThresh`: 2 %.
const LOSS_THRESHOLD: (u64, u64) = (1, 50);

/// Section 2.8, `BBR.MinPipeCwnd`: two packets on their way there, acknowledgements of two on their way back.
const MIN_PIPE_PACKETS: u64 = 4;

/// The BBRv3 controller.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    max_datagram_size: ByteCount,
    /// `C.cwnd`.
    window: ByteCount,
    /// `C.pacing_rate`.
    pacing_rate: Rate,
    state: StateMachine,

    /// `C.delivered`, as of the latest sample.
    delivered: u64,
    /// `C.inflight`, as of the latest event.
    in_flight: ByteCount,
    /// Whether there was an event: the clocks of the model begin with it.
    has_begun: bool,
    has_rtt: bool,
    /// `C.app_limited`, as of the latest packet or lack of one.
    lacks_data: bool,
    idle_since: Option<Timestamp>,
    /// `BBR.idle_restart`.
    is_idle_restart: bool,

    rounds: RoundCounter,
    /// `BBR.round_start`.
    is_round_start: bool,
    loss_round: LossRound,
    recovery: Recovery,
    /// `BBR.prior_cwnd`: the window before a recovery or a ProbeRTT.
    prior_window: ByteCount,
    rate: RateModel,
    volume: VolumeModel,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    full_pipe: FullPipe,
    /// `BBR.drain_start_round`.
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    window_use: WindowUse,
    random: SplitMix64,
    sabotage: Sabotage,
}

/// What an event with acknowledgements says, summed up.
#[derive(Copy, Clone, Debug)]
struct Ack {
    sample: RateSample,
    /// `RS.newly_acked`.
    acked: ByteCount,
    /// `C.is_cwnd_limited`: whether the window was full at some moment since the packet left that the sample speaks for.
    is_window_limited: bool,
    /// The RTT of the newest packet acknowledged, the peer's delay included.
    rtt: Option<Duration>,
}

impl Bbr3 {
    /// Makes a controller for a path with this largest datagram; its waits between probes follow from `seed`.
    #[must_use]
    pub fn new(max_datagram_size: ByteCount, seed: u64) -> Self {
        let max_datagram_size = possible_datagram(max_datagram_size);
        let window = initial_window(max_datagram_size).max(max_datagram_size * MIN_PIPE_PACKETS);
        Self {
            max_datagram_size,
            window,
            pacing_rate: control::initial_pacing_rate(window, None),
            state: StateMachine::new(State::Startup),
            delivered: 0,
            in_flight: ByteCount::ZERO,
            has_begun: false,
            has_rtt: false,
            lacks_data: false,
            idle_since: None,
            is_idle_restart: false,
            rounds: RoundCounter::new(),
            is_round_start: false,
            loss_round: LossRound::new(),
            recovery: Recovery::default(),
            prior_window: ByteCount::ZERO,
            rate: RateModel::new(),
            volume: VolumeModel::new(),
            min_rtt: MinRtt::new(),
            extra_acked: ExtraAcked::new(),
            full_pipe: FullPipe::new(),
            drain_start_round: 0,
            cycle: Cycle::new(),
            probe_rtt: ProbeRtt::default(),
            window_use: WindowUse::default(),
            random: SplitMix64::new(seed),
            sabotage: Sabotage::default(),
        }
    }

    /// Makes one with something wrong.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_fault(max_datagram_size: ByteCount, seed: u64, fault: Bbr3Fault) -> Self {
        Self {
            sabotage: Sabotage::new(fault),
            ..Self::new(max_datagram_size, seed)
        }
    }

    /// Sets the clocks at the first event: a state machine has none before.
    fn begin(&mut self, now: Timestamp) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        if !self.sabotage.is(Bbr3Fault::UnsetStamp) {
            self.min_rtt.start(now);
        }
        self.extra_acked.restart(now);
    }

    /// `UpdateOnACK` (section 5.2.3).
    fn on_ack(&mut self, now: Timestamp, ack: &Ack) {
        self.update_signals(ack);
        self.extra_acked.on_acked(
            now,
            &Acked {
                size: ack.acked,
                bw: self.rate.bw(),
                window: self.window,
                round: self.rounds.count(),
                is_pipe_filled: self.full_pipe.is_filled(),
            },
        );
        self.check_full_pipe(ack);
        self.check_startup_done(ack);
        self.check_drain_done(now);
        self.update_cycle(now, ack);
        self.min_rtt.on_acked(now, ack.rtt);
        self.check_probe_rtt(now);
        if self.loss_round.is_start() {
            self.rate
                .restart_latest(ack.sample.delivery_rate.unwrap_or(Rate::ZERO));
            self.volume.restart_latest(ack.sample.delivered);
            self.loss_round.restart_ranges();
            if self.recovery.on_loss_round_end() {
                self.restore_window();
            }
        }
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(ack.acked);
    }

    /// `UpdateLatestDeliverySignals` and `UpdateCongestionSignals` (sections 5.5.1, 5.5.5 and 5.5.10).
    fn update_signals(&mut self, ack: &Ack) {
        let sample = &ack.sample;
        self.loss_round.on_sample(sample);
        self.volume.note_latest(sample.delivered);
        self.is_round_start = self.on_round_sample(sample);
        if self.is_round_start {
            self.cycle.rounds_since_probe_up += 1;
        }
        if let Some(rate) = sample.delivery_rate.filter(|rate| *rate > Rate::ZERO) {
            self.rate.note_latest(rate);
            self.rate.on_sample(rate, sample.is_app_limited);
        }
        if self.loss_round.is_start() {
            self.adapt_lower_bounds();
        }
    }

    fn on_round_sample(&mut self, sample: &RateSample) -> bool {
        let (before, now) = (sample.prior_delivered, sample.total_delivered);
        if self.sabotage.is(Bbr3Fault::Round32Bit) {
            return self.rounds.on_acked(before & u64::from(u32::MAX), now);
        }
        self.rounds.on_acked(before, now)
    }

    /// `StartRound` (section 5.5.1): the current round lasts until something sent from here on is acknowledged.
    fn restart_round(&mut self) {
        self.rounds.restart(self.delivered);
    }

    /// `CheckFullBWReached` (section 5.3.1.2).
    fn check_full_pipe(&mut self, ack: &Ack) {
        let counts = !ack.sample.is_app_limited || self.sabotage.is(Bbr3Fault::AppLimitedPlateau);
        if let Some(rate) = ack.sample.delivery_rate
            && counts
        {
            self.full_pipe.on_sample(rate, self.is_round_start);
        }
    }

    /// `IsProbingBW` (section 5.3.3.9): losses are the price of these states and no news about the path.
    fn is_probing(&self) -> bool {
        matches!(
            self.state.current(),
            State::Startup | State::ProbeBwRefill | State::ProbeBwUp
        )
    }

    /// `HandleRestartFromIdle` (section 5.4.1).
    fn restart_from_idle(&mut self, now: Timestamp) {
        self.is_idle_restart = true;
        self.extra_acked.restart(now);
        match self.state.current() {
            State::ProbeRtt => self.check_probe_rtt_done(now),
            state if state.is_probe_bw() => self.set_pacing_rate((1, 1)),
            _ => {}
        }
    }

    fn ack_of(&self, event: &FeedbackEvent<'_>) -> Option<Ack> {
        let sample = event.sample?;
        let acked = event.acked.iter().map(|packet| packet.size).sum();
        let newest = event.acked.iter().map(|packet| packet.sent_at).max()?;
        let is_window_limited = if self.sabotage.is(Bbr3Fault::LateCwndTest) {
            event.in_flight + self.max_datagram_size > self.window
        } else {
            self.window_use.was_full_since(newest)
        };
        Some(Ack {
            sample,
            acked,
            is_window_limited,
            rtt: event.latest_rtt,
        })
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, now: Timestamp, sent: &SentEvent) {
        self.begin(now);
        self.in_flight = sent.in_flight;
        if sent.was_idle {
            if let Some(since) = self.idle_since.take()
                && !self.sabotage.is(Bbr3Fault::IdleMinRtt)
            {
                self.min_rtt.on_idle(now.saturating_since(since));
            }
            if self.lacks_data {
                self.restart_from_idle(now);
            }
        }
        self.lacks_data = sent.is_app_limited;
        self.window_use
            .on_sent(now, sent.in_flight, self.window, self.max_datagram_size);
    }

    fn on_feedback(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        self.begin(now);
        self.in_flight = event.in_flight;
        if let Some(sample) = &event.sample {
            self.delivered = sample.total_delivered;
        }
        self.take_first_rtt(event);
        self.on_losses(now, event);
        if let Some(ack) = self.ack_of(event) {
            self.on_ack(now, &ack);
        }
        if event.in_flight == ByteCount::ZERO {
            self.idle_since = Some(now);
            if self.lacks_data && self.state.current().is_probe_bw() {
                // Section 5.4.1, ahead of time: the pacer charges the first burst by the rate it finds.
                self.set_pacing_rate((1, 1));
            }
        }
    }

    fn on_app_limited(&mut self, _now: Timestamp) {
        self.lacks_data = true;
    }

    /// Values in packets follow the new size; the model is in bytes and stays. Before the first acknowledgement the initial
    /// window is worked out anew (RFC 9002 section 7.2).
    fn on_mtu_change(&mut self, _now: Timestamp, max_datagram_size: ByteCount) {
        if self.sabotage.is(Bbr3Fault::MtuStale) {
            return;
        }
        self.max_datagram_size = possible_datagram(max_datagram_size);
        if self.delivered == 0 && !self.recovery.is_open() {
            self.window = initial_window(self.max_datagram_size);
        }
        self.window = self.window.max(self.minimum_window());
    }

    fn send_tag(&self) -> u32 {
        self.cycle.tag(self.state.current())
    }

    /// In ProbeRTT the rate is low by choice (section 5.3.4.3, `MarkConnectionAppLimited`).
    fn is_self_limited(&self) -> bool {
        self.state.current() == State::ProbeRtt
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn pacing_rate(&self, _rtt: &RttEstimator) -> Rate {
        self.pacing_rate
    }

    /// BBR has none.
    fn ssthresh(&self) -> Option<ByteCount> {
        None
    }

    fn state(&self) -> State {
        self.state.current()
    }

    fn take_transition(&mut self) -> Option<Transition> {
        self.state.take_transition()
    }

    fn minimum_window(&self) -> ByteCount {
        self.max_datagram_size * MIN_PIPE_PACKETS
    }

    fn max_datagram_size(&self) -> ByteCount {
        self.max_datagram_size
    }

    fn name(&self) -> &'static str {
        #[cfg(feature = "mutants")]
        if let Some(fault) = self.sabotage.fault() {
            return fault.name();
        }
        "bbr3"
    }

    fn path_model(&self) -> Option<PathModel> {
        let set = |bytes: ByteCount| (bytes != ByteCount::MAX).then_some(bytes);
        let shortterm = self.rate.shortterm();
        Some(PathModel {
            phase: self.state.current(),
            max_bw: self.rate.max_bw(),
            bw_shortterm: (!shortterm.is_infinite()).then_some(shortterm),
            inflight_longterm: set(self.volume.longterm),
            inflight_shortterm: set(self.volume.shortterm()),
            min_rtt: self.min_rtt.get(),
            extra_acked: self.extra_acked.get(),
            round_count: self.rounds.count(),
        })
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
