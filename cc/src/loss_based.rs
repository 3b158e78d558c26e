//! The frame that all controllers share which grow until something is lost: RFC 9002 section 7.
//!
//! Slow start, the reaction to loss, to marks and to persistent congestion, the recovery period and the pacing rate
//! are here; how the window grows in congestion avoidance is what an [`Avoidance`] decides. Read
//! [`state`](crate::state) for the diagram first.
//!
//! One feedback event is digested in this order:
//!
//! 1. an acknowledged packet sent after the last cut ends the recovery period;
//! 2. new losses or marks cut the window, once; persistent congestion drops it to the floor;
//! 3. what was acknowledged grows the window, unless it is old news (sent before the cut) or says nothing about the
//!    window because the window was not filled.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::controller::Controller;
use crate::event::{AckedPacket, FeedbackEvent, SentEvent};
use crate::recovery::Episode;
use crate::rtt::RttEstimator;
use crate::state::{State, StateMachine, Transition, Trigger};
use crate::window_use::WindowUse;

/// How a loss-based controller behaves in congestion avoidance.
pub trait Avoidance: Send {
    /// Name of the algorithm, as flags and reports spell it.
    const NAME: &'static str;

    /// The share of the window that a cut leaves, as numerator and denominator.
    const REDUCTION: (u64, u64);

    /// Notes that packets left; `was_idle` if nothing was in flight before them.
    fn on_sent(&mut self, _now: Timestamp, _was_idle: bool) {}

    /// Notes that the window was cut from `before` to `after`.
    fn on_reduction(&mut self, before: ByteCount, after: ByteCount);

    /// Notes that congestion avoidance begins at `window` without a cut: slow start has reached its threshold.
    fn on_slow_start_exit(&mut self, window: ByteCount);

    /// Takes bytes whose acknowledgement counts and returns the new window, never below the old one.
    fn on_acked(&mut self, now: Timestamp, ack: &CountedAck) -> ByteCount;

    /// Notes that packets were acknowledged but none of them bore witness for the window.
    fn on_untested(&mut self, _now: Timestamp) {}

    /// Notes the end of a feedback event.
    fn on_feedback_end(&mut self, _now: Timestamp) {}
}

/// Acknowledged bytes that count for congestion avoidance, and what they are measured by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CountedAck {
    /// Acknowledged bytes.
    pub size: ByteCount,
    /// The window they meet.
    pub window: ByteCount,
    /// The largest datagram.
    pub max_datagram_size: ByteCount,
    /// The smoothed RTT.
    pub smoothed_rtt: Duration,
}

/// A loss-based controller with congestion avoidance `A`.
#[derive(Debug)]
pub struct LossBased<A> {
    max_datagram_size: ByteCount,
    window: ByteCount,
    ssthresh: Option<ByteCount>,
    episode: Episode,
    state: StateMachine,
    window_use: WindowUse,
    /// Whether anything was acknowledged yet; until then a changed datagram size gives a new initial window.
    has_acked: bool,
    avoidance: A,
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
pub const PACING_GAIN: (u64, u64) = (5, 4);

/// A datagram holds something, or the window would be zero; and none in UDP holds 64 KiB.
fn possible_datagram(size: ByteCount) -> ByteCount {
    size.clamp(ByteCount::new(1), ByteCount::kib(64))
}

impl<A: Avoidance> LossBased<A> {
    pub(crate) fn with_avoidance(max_datagram_size: ByteCount, avoidance: A) -> Self {
        let max_datagram_size = possible_datagram(max_datagram_size);
        Self {
            max_datagram_size,
            window: initial_window(max_datagram_size),
            ssthresh: None,
            episode: Episode::new(),
            state: StateMachine::new(State::SlowStart),
            window_use: WindowUse::default(),
            has_acked: false,
            avoidance,
        }
    }

    fn leave_recovery(&mut self, event: &FeedbackEvent<'_>) {
        let mut acked = event.acked.iter();
        if acked.any(|packet| self.episode.on_acked(packet.sent_at)) {
            self.state
                .transition_to(State::CongestionAvoidance, Trigger::RecoveryExited);
        }
    }

    fn react_to_congestion(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        let cause = self.new_congestion(now, event);
        if cause.is_some() {
            self.reduce(now);
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

    fn reduce(&mut self, now: Timestamp) {
        let (num, den) = A::REDUCTION;
        let before = self.window;
        self.window = before.scale(num, den).max(self.minimum_window());
        self.ssthresh = Some(self.window);
        self.episode.enter(now);
        self.avoidance.on_reduction(before, self.window);
    }

    /// RFC 9002 sections 7.6.2 and B.8: the window falls to the floor and no packet is old any more.
    fn collapse(&mut self) {
        self.window = self.minimum_window();
        self.episode.clear();
        if self.is_below_ssthresh() {
            self.state
                .transition_to(State::SlowStart, Trigger::PersistentCongestion);
        } else {
            self.avoid_congestion(Trigger::PersistentCongestion);
        }
    }

    fn grow(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        let smoothed_rtt = event.rtt.smoothed_or_initial();
        let mut has_counted = false;
        let mut has_untested = false;
        for packet in event.acked {
            if self.episode.is_in_recovery(packet.sent_at) {
                continue;
            }
            if !self.window_use.counts(packet) {
                has_untested = true;
                continue;
            }
            has_counted = true;
            let rest = self.slow_start(packet);
            if rest > ByteCount::ZERO {
                let ack = CountedAck {
                    size: rest,
                    window: self.window,
                    max_datagram_size: self.max_datagram_size,
                    smoothed_rtt,
                };
                self.window = self.avoidance.on_acked(now, &ack).min(LARGEST_WINDOW);
            }
        }
        if has_untested && !has_counted {
            self.avoidance.on_untested(now);
        }
    }

    /// Grows the window by what the packet has, up to the threshold exactly, and returns what is left over for
    /// congestion avoidance; that is all of it outside slow start.
    fn slow_start(&mut self, packet: &AckedPacket) -> ByteCount {
        if self.state.current() != State::SlowStart {
            return packet.size;
        }
        let goal = self.ssthresh.unwrap_or(LARGEST_WINDOW);
        let grown = packet.size.min(goal - self.window);
        self.window += grown;
        if self.is_below_ssthresh() {
            return ByteCount::ZERO;
        }
        self.avoid_congestion(Trigger::SsthreshReached);
        packet.size - grown
    }

    fn avoid_congestion(&mut self, trigger: Trigger) {
        self.state
            .transition_to(State::CongestionAvoidance, trigger);
        self.avoidance.on_slow_start_exit(self.window);
    }

    fn is_below_ssthresh(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }
}

impl<A: Avoidance> Controller for LossBased<A> {
    fn on_sent(&mut self, now: Timestamp, sent: &SentEvent) {
        self.window_use
            .on_sent(now, sent.in_flight, self.window, self.max_datagram_size);
        self.avoidance.on_sent(now, sent.was_idle);
    }

    fn on_feedback(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        self.has_acked |= !event.acked.is_empty();
        self.leave_recovery(event);
        self.react_to_congestion(now, event);
        self.grow(now, event);
        self.avoidance.on_feedback_end(now);
    }

    /// Before the first acknowledgement the initial window is worked out anew (RFC 9002 section 7.2). Later the
    /// window keeps its bytes, because a larger datagram is no sign of a faster path (RFC 8899 section 3);
    /// only the floor may lift it.
    fn on_mtu_change(&mut self, _now: Timestamp, max_datagram_size: ByteCount) {
        self.max_datagram_size = possible_datagram(max_datagram_size);
        if !self.has_acked && self.ssthresh.is_none() {
            self.window = initial_window(self.max_datagram_size);
        }
        self.window = self.window.max(self.minimum_window());
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Rate {
        let (Some(smoothed), Some(latest)) = (rtt.smoothed(), rtt.latest()) else {
            return Rate::INFINITE;
        };
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
        A::NAME
    }
}
