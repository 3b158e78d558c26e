//! The frame that all controllers share which grow until something is lost: RFC 9002 section 7.
//!
//! Slow start, the reaction to loss, to marks and to persistent congestion, the recovery period and the pacing rate
//! are here; how the window grows in congestion avoidance is what an [`Avoidance`] decides. Read
//! [`state`](crate::state) for the diagram first.
//!
//! One feedback event is digested in this order:
//!
//! 1. an acknowledged packet sent after the last cut ends the recovery period;
//! 2. if the losses behind the last cut have all turned up, the cut is taken back;
//! 3. new losses or marks cut the window, once; persistent congestion drops it to the floor;
//! 4. what was acknowledged grows the window, unless it is old news (sent before the cut) or says nothing about the
//!    window because the window was not filled, and never beyond what the largest flight since the cut bears out
//!    (draft-ietf-ccwg-ratelimited-increase-08);
//! 5. in the initial slow start, the delay is judged (HyStart++, RFC 9406);
//! 6. in recovery, if so chosen, what may be sent is worked out in proportion (PRR, RFC 9937).

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::controller::Controller;
use crate::event::{AckedPacket, FeedbackEvent, SentEvent};
#[cfg(feature = "mutants")]
use crate::faults::{FaultCounters, Witness};
use crate::hystart::{CONSERVATIVE_GROWTH_DIVISOR, HyStart, Observation, Verdict};
use crate::options::LossBasedOptions;
use crate::prr::{Progress, ProportionalReduction};
use crate::recovery::Episode;
use crate::rtt::RttEstimator;
use crate::state::{State, StateMachine, Transition, Trigger};
use crate::undo::Undo;
use crate::window_use::WindowUse;

/// How a loss-based controller behaves in congestion avoidance.
pub trait Avoidance: Copy + Send + 'static {
    /// Name of the algorithm, as flags and reports spell it.
    const NAME: &'static str;

    /// The share of the window that a cut leaves, as numerator and denominator.
    const REDUCTION: (u64, u64);

    /// The share that a cut for a mark leaves in congestion avoidance, with ABE (RFC 8511).
    const MARKED_REDUCTION: (u64, u64);

    /// Returns up to where the window may grow in congestion avoidance, given the largest flight since the last cut
    /// (draft-ietf-ccwg-ratelimited-increase-08).
    fn growth_limit(largest_flight: ByteCount, max_datagram_size: ByteCount) -> ByteCount;

    /// Returns the name, if a variant has one of its own.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Notes that packets left; `was_idle` if nothing was in flight before them.
    fn on_sent(&mut self, _now: Timestamp, _was_idle: bool) {}

    /// Notes that the window was cut from `before` to `after`.
    fn on_reduction(&mut self, before: ByteCount, after: ByteCount);

    /// Notes that congestion avoidance begins at `window` without a cut: slow start has reached its threshold.
    fn on_slow_start_exit(&mut self, window: ByteCount);

    /// Takes bytes whose acknowledgement counts and returns the new window, never below the old one.
    fn on_acked(&mut self, now: Timestamp, ack: &CountedAck) -> ByteCount;

    /// Notes that packets were acknowledged but none of them bore witness for a larger window.
    fn on_untested(&mut self, _now: Timestamp) {}

    /// Takes back what the last cut changed, given the state from before it (RFC 9438 section 4.9).
    fn restore(&mut self, saved: &Self);

    /// Notes the end of a feedback event.
    fn on_feedback_end(&mut self, _now: Timestamp) {}

    /// Returns where a faulty controller moves the recovery boundary to before packets leave.
    #[cfg(feature = "mutants")]
    fn misplaced_boundary(
        &mut self,
        _now: Timestamp,
        _was_idle: bool,
        boundary: Timestamp,
    ) -> Timestamp {
        boundary
    }

    /// Returns how often, and by how much, idle time was left out.
    #[cfg(feature = "mutants")]
    fn shifts(&self) -> (u64, Duration) {
        (0, Duration::ZERO)
    }
}

/// Acknowledged bytes that count for congestion avoidance, and what they are measured by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CountedAck {
    /// Acknowledged bytes.
    pub size: ByteCount,
    /// The window they meet.
    pub window: ByteCount,
    /// Up to where the window may grow; above `window`.
    pub limit: ByteCount,
    /// The largest datagram.
    pub max_datagram_size: ByteCount,
    /// The smoothed RTT.
    pub smoothed_rtt: Duration,
}

/// A loss-based controller with congestion avoidance `A`.
#[derive(Clone, Debug)]
pub struct LossBased<A> {
    max_datagram_size: ByteCount,
    window: ByteCount,
    ssthresh: Option<ByteCount>,
    episode: Episode,
    state: StateMachine,
    window_use: WindowUse,
    /// The most bytes that were in flight within the window since the last cut; at first the initial window.
    largest_flight: ByteCount,
    /// Acknowledged bytes that conservative slow start has not grown the window by yet; below its divisor.
    conservative_rest: ByteCount,
    options: LossBasedOptions,
    hystart: HyStart,
    prr: Option<ProportionalReduction>,
    undo: Option<Undo<A>>,
    /// Whether anything was acknowledged yet; until then a changed datagram size gives a new initial window.
    has_acked: bool,
    avoidance: A,
    #[cfg(feature = "mutants")]
    witness: Witness,
}

/// RFC 9002 section 7.2: the initial window is ten datagrams, but at most 14,720 bytes or two datagrams,
/// whichever is larger.
#[must_use]
pub fn initial_window(max_datagram_size: ByteCount) -> ByteCount {
    let most = ByteCount::new(14_720).max(max_datagram_size * 2);
    (max_datagram_size * 10).min(most)
}

/// RFC 9002 section 7.2: the window never falls below two datagrams.
#[must_use]
pub fn floor_window(max_datagram_size: ByteCount) -> ByteCount {
    max_datagram_size * 2
}

/// No window grows beyond 2^40 bytes, which is 8.8 s at 1 Tbit/s. With it, products of a window and a packet
/// (below 2^24 bytes) fit 64 bits.
pub const LARGEST_WINDOW: ByteCount = ByteCount::new(1 << 40);

/// In slow start the pacing rate is twice the window per RTT: the window doubles every round, and a slower pacer
/// would hold that back.
pub const SLOW_START_PACING_GAIN: (u64, u64) = (2, 1);

/// RFC 9002 section 7.7: otherwise a little more than the window per RTT, so that variations of the RTT do not
/// leave the window unused.
///
/// It holds in conservative slow start too. The window grows by a quarter per round there, which this is just
/// enough for; and what the rounds are to find out is whether the queue stays, so twice the rate would spoil the
/// measurement with bursts of its own.
pub const PACING_GAIN: (u64, u64) = (5, 4);

/// A datagram holds something, or the window would be zero; and none in UDP holds 64 KiB.
pub(crate) fn possible_datagram(size: ByteCount) -> ByteCount {
    size.clamp(ByteCount::new(1), ByteCount::kib(64))
}

impl<A: Avoidance> LossBased<A> {
    pub(crate) fn with_avoidance(
        max_datagram_size: ByteCount,
        options: LossBasedOptions,
        avoidance: A,
    ) -> Self {
        let max_datagram_size = possible_datagram(max_datagram_size);
        let window = initial_window(max_datagram_size);
        Self {
            max_datagram_size,
            window,
            ssthresh: None,
            episode: Episode::new(),
            state: StateMachine::new(State::SlowStart),
            window_use: WindowUse::default(),
            largest_flight: window,
            conservative_rest: ByteCount::ZERO,
            options,
            hystart: HyStart::default(),
            prr: None,
            undo: None,
            has_acked: false,
            avoidance,
            #[cfg(feature = "mutants")]
            witness: Witness::default(),
        }
    }

    /// Returns the options it was made with.
    #[must_use]
    pub fn options(&self) -> LossBasedOptions {
        self.options
    }

    /// Returns what congestion avoidance remembers.
    #[must_use]
    pub fn avoidance(&self) -> &A {
        &self.avoidance
    }

    /// Notes bytes in flight. What is beyond the window (probes, or an old flight after a cut) tests nothing.
    fn note_flight(&mut self, in_flight: ByteCount) {
        self.largest_flight = self.largest_flight.max(in_flight.min(self.window));
    }

    fn leave_recovery(&mut self, event: &FeedbackEvent<'_>) {
        let mut acked = event.acked.iter();
        if acked.any(|packet| self.episode.on_acked(packet.sent_at)) {
            self.state
                .transition_to(State::CongestionAvoidance, Trigger::RecoveryExited);
        }
    }

    /// RFC 9438 section 4.9: all losses behind the last cut were only late, so its effects are taken back, once. A mark
    /// or persistent congestion within the period is a sign of its own that there was congestion.
    fn take_back_spurious_cut(&mut self, event: &FeedbackEvent<'_>) {
        let (Some(undo), Some(boundary)) = (&mut self.undo, self.episode.boundary()) else {
            return;
        };
        if event.ce_count > 0 || event.is_persistent_congestion {
            self.undo = None;
            return;
        }
        if !undo.on_feedback(boundary, event) {
            return;
        }
        let saved = *undo;
        self.undo = None;
        if self.window >= saved.window {
            return;
        }
        self.window = saved.window.max(self.minimum_window());
        self.ssthresh = saved.ssthresh;
        self.largest_flight = self.largest_flight.max(saved.largest_flight);
        self.episode = saved.episode;
        self.avoidance.restore(&saved.avoidance);
        self.hystart.on_limited();
        // A cut within a recovery period ends that period as well: what ended the later one is news to both.
        let state = match saved.state {
            State::Recovery => State::CongestionAvoidance,
            state => state,
        };
        self.state.transition_to(state, Trigger::SpuriousLoss);
    }

    fn react_to_congestion(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        let cause = self.new_congestion(now, event);
        if let Some(trigger) = cause {
            self.reduce(now, trigger, event);
        }
        // RFC 9002 section 7.6.2: persistent congestion has its own say, also within a recovery period.
        if event.is_persistent_congestion {
            self.collapse();
        } else if let Some(trigger) = cause {
            self.state.transition_to(State::Recovery, trigger);
        }
    }

    /// Finds out whether the event reports congestion that the last cut did not answer already
    /// (RFC 9002 sections 7.1, B.6 and B.7).
    fn new_congestion(&self, now: Timestamp, event: &FeedbackEvent<'_>) -> Option<Trigger> {
        let is_news = |sent_at| !self.episode.is_in_recovery(sent_at);
        if event.lost.iter().any(|packet| is_news(packet.sent_at)) {
            return Some(Trigger::PacketLost);
        }
        // A mark without a known packet is taken for new: better one cut too many than none.
        let marked_at = event.largest_acked_sent_at.unwrap_or(now);
        (event.ce_count > 0 && is_news(marked_at)).then_some(Trigger::EcnCe)
    }

    fn reduce(&mut self, now: Timestamp, trigger: Trigger, event: &FeedbackEvent<'_>) {
        let before = self.window;
        let saved = Undo {
            window: before,
            ssthresh: self.ssthresh,
            state: self.state.current(),
            largest_flight: self.largest_flight,
            episode: self.episode,
            avoidance: self.avoidance,
            missing: 0,
        };
        // RFC 8511 section 3: in slow start a mark means what a loss means.
        let is_gentle = self.options.abe
            && trigger == Trigger::EcnCe
            && saved.state == State::CongestionAvoidance;
        let (num, den) = if is_gentle {
            A::MARKED_REDUCTION
        } else {
            A::REDUCTION
        };
        self.window = before.scale(num, den).max(self.minimum_window());
        self.ssthresh = Some(self.window);
        self.largest_flight = ByteCount::ZERO;
        self.episode.enter(now);
        self.avoidance.on_reduction(before, self.window);
        self.prr = self
            .options
            .prr
            .then(|| ProportionalReduction::new(event.in_flight_before, self.window));
        let may_be_spurious = self.options.undo && event.ce_count == 0;
        self.undo = may_be_spurious.then_some(saved);
        if let Some(undo) = &mut self.undo {
            undo.on_cut(now, event);
        }
        #[cfg(feature = "mutants")]
        self.witness.on_cut(now);
    }

    /// RFC 9002 sections 7.6.2 and B.8: the window falls to the floor and no packet is old any more.
    fn collapse(&mut self) {
        self.window = self.minimum_window();
        self.largest_flight = ByteCount::ZERO;
        self.episode.clear();
        self.undo = None;
        if self.is_below_ssthresh() {
            self.state
                .transition_to(State::SlowStart, Trigger::PersistentCongestion);
        } else {
            self.avoid_congestion(Trigger::PersistentCongestion);
        }
    }

    /// Grows the window and says whether packets were acknowledged that were no test of a larger one.
    fn grow(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) -> bool {
        let smoothed_rtt = event.rtt.smoothed_or_initial();
        let limit = A::growth_limit(self.largest_flight, self.max_datagram_size);
        let mut has_counted = false;
        let mut has_untested = false;
        for packet in event.acked {
            if self.episode.is_in_recovery(packet.sent_at) {
                #[cfg(feature = "mutants")]
                self.witness.on_acked(packet.sent_at, &self.episode);
                continue;
            }
            let is_untested = !self.window_use.counts(packet)
                || if self.is_in_slow_start() {
                    self.window >= self.slow_start_limit()
                } else {
                    self.window >= limit
                };
            if is_untested {
                has_untested = true;
                continue;
            }
            has_counted = true;
            let rest = self.slow_start(packet);
            if rest > ByteCount::ZERO {
                let ack = CountedAck {
                    size: rest,
                    window: self.window,
                    limit,
                    max_datagram_size: self.max_datagram_size,
                    smoothed_rtt,
                };
                let grown = self.avoidance.on_acked(now, &ack);
                self.window = grown.min(limit).max(self.window).min(LARGEST_WINDOW);
            }
        }
        if has_untested && !has_counted {
            self.avoidance.on_untested(now);
        }
        has_untested
    }

    /// Grows the window by what the packet has (by a quarter of it in conservative slow start), up to the threshold
    /// exactly, and returns what is left over for congestion avoidance; that is all of it outside slow start.
    fn slow_start(&mut self, packet: &AckedPacket) -> ByteCount {
        let earned = match self.state.current() {
            State::SlowStart => packet.size,
            State::ConservativeSlowStart => {
                let total = (packet.size + self.conservative_rest).as_u64();
                self.conservative_rest = ByteCount::new(total % CONSERVATIVE_GROWTH_DIVISOR);
                ByteCount::new(total / CONSERVATIVE_GROWTH_DIVISOR)
            }
            _ => return packet.size,
        };
        let goal = self.ssthresh.unwrap_or(LARGEST_WINDOW);
        let room = goal.min(self.slow_start_limit()) - self.window;
        let grown = earned.min(room);
        self.window += grown;
        if self.is_below_ssthresh() {
            return ByteCount::ZERO;
        }
        self.avoid_congestion(Trigger::SsthreshReached);
        earned - grown
    }

    /// What a full window of the largest flight would have grown to.
    fn slow_start_limit(&self) -> ByteCount {
        self.largest_flight * 2
    }

    /// RFC 9406 section 4.3: only the initial slow start is watched, that is, while there is no threshold.
    fn judge_delay(&mut self, now: Timestamp, event: &FeedbackEvent<'_>, is_limited: bool) {
        if !self.options.hystart || self.ssthresh.is_some() {
            return;
        }
        let seen = Observation {
            newest_sent_at: event
                .largest_acked_sent_at
                .or(event.acked.last().map(|packet| packet.sent_at)),
            rtt: event.latest_rtt,
            is_limited,
        };
        match self.hystart.on_feedback(now, &seen) {
            Some(Verdict::Slow) => self
                .state
                .transition_to(State::ConservativeSlowStart, Trigger::RttIncreased),
            Some(Verdict::Resume) => self
                .state
                .transition_to(State::SlowStart, Trigger::RttRestored),
            Some(Verdict::Exit) => {
                self.ssthresh = Some(self.window);
                self.avoid_congestion(Trigger::ConservativeRoundsCompleted);
            }
            None => {}
        }
    }

    fn reduce_in_proportion(&mut self, event: &FeedbackEvent<'_>) {
        if self.state.current() != State::Recovery {
            self.prr = None;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_feedback(&Progress {
                delivered: event.acked.iter().map(|packet| packet.size).sum(),
                in_flight: event.in_flight,
                has_loss: !event.lost.is_empty(),
                max_datagram_size: self.max_datagram_size,
            });
        }
    }

    fn avoid_congestion(&mut self, trigger: Trigger) {
        self.state
            .transition_to(State::CongestionAvoidance, trigger);
        self.avoidance.on_slow_start_exit(self.window);
    }

    fn is_in_slow_start(&self) -> bool {
        matches!(
            self.state.current(),
            State::SlowStart | State::ConservativeSlowStart
        )
    }

    fn is_below_ssthresh(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }
}

impl<A: Avoidance> Controller for LossBased<A> {
    fn on_sent(&mut self, now: Timestamp, sent: &SentEvent) {
        #[cfg(feature = "mutants")]
        if let Some(boundary) = self.episode.boundary() {
            let moved = self
                .avoidance
                .misplaced_boundary(now, sent.was_idle, boundary);
            self.episode.misplace(moved);
            self.witness.on_sent(now, &self.episode);
        }
        self.note_flight(sent.in_flight);
        self.window_use
            .on_sent(now, sent.in_flight, self.window(), self.max_datagram_size);
        self.avoidance.on_sent(now, sent.was_idle);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(sent.bytes);
        }
    }

    fn on_feedback(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        self.has_acked |= !event.acked.is_empty();
        self.note_flight(event.in_flight_before);
        #[cfg(feature = "mutants")]
        for packet in event.lost {
            self.witness.on_lost(packet.sent_at, &self.episode);
        }
        self.leave_recovery(event);
        self.take_back_spurious_cut(event);
        self.react_to_congestion(now, event);
        let has_untested = self.grow(now, event);
        self.judge_delay(now, event, has_untested);
        self.reduce_in_proportion(event);
        self.avoidance.on_feedback_end(now);
        #[cfg(feature = "mutants")]
        self.witness.on_event(now, &self.episode);
    }

    fn on_app_limited(&mut self, _now: Timestamp) {
        self.hystart.on_limited();
    }

    /// Before the first acknowledgement the initial window is worked out anew (RFC 9002 section 7.2). Later the
    /// window keeps its bytes, because a larger datagram is no sign of a faster path (RFC 8899 section 3);
    /// only the floor may lift it.
    fn on_mtu_change(&mut self, _now: Timestamp, max_datagram_size: ByteCount) {
        self.max_datagram_size = possible_datagram(max_datagram_size);
        if !self.has_acked && self.ssthresh.is_none() {
            self.window = initial_window(self.max_datagram_size);
            self.largest_flight = self.window;
        }
        self.window = self.window.max(self.minimum_window());
    }

    /// In recovery with proportional reduction the window is what is in flight and what may be added; the floor holds
    /// there too, or a flow that lost everything could not probe with two packets.
    fn window(&self) -> ByteCount {
        match &self.prr {
            Some(prr) => prr.window().max(self.minimum_window()),
            None => self.window,
        }
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Rate {
        let (Some(smoothed), Some(latest)) = (rtt.smoothed(), rtt.latest()) else {
            return Rate::INFINITE;
        };
        if !self.options.pacing {
            return Rate::INFINITE;
        }
        // RFC 9002 section 7.7 asks for at least one window per round trip. Lost ACKs give samples of
        // many round trips, and the average takes dozens of good ones to come down: measured after
        // 30 % loss, a window of 2 left every 90 to 180 ms on a 10 ms path. The latest sample bounds
        // the average from above; the window still bounds what is in flight.
        let round_trip = smoothed.min(latest);
        let (num, den) = match self.state.current() {
            State::SlowStart => SLOW_START_PACING_GAIN,
            _ => PACING_GAIN,
        };
        // One bit per second is for RTTs of hours, where the quotient is zero and would stop the sender for good.
        Rate::from_bytes_per(self.window, round_trip)
            .scale(num, den)
            .max(Rate::from_bps(1))
    }

    fn ssthresh(&self) -> Option<ByteCount> {
        self.ssthresh
    }

    fn state(&self) -> State {
        self.state.current()
    }

    fn take_transition(&mut self) -> Option<Transition> {
        self.state.take_transition()
    }

    fn minimum_window(&self) -> ByteCount {
        floor_window(self.max_datagram_size)
    }

    fn max_datagram_size(&self) -> ByteCount {
        self.max_datagram_size
    }

    fn name(&self) -> &'static str {
        self.avoidance.name()
    }

    #[cfg(feature = "mutants")]
    fn fault_counters(&self) -> Option<FaultCounters> {
        let (shifts, shifted) = self.avoidance.shifts();
        Some(FaultCounters {
            shifts,
            shifted,
            ..self.witness.counters()
        })
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
