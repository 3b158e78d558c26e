//! The contract between a congestion controller and the sender that obeys it.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::event::{FeedbackEvent, SentEvent};
use crate::rtt::RttEstimator;
use crate::state::{State, Transition};

/// A congestion controller: a pure state machine over events, with no clock and no randomness of its own.
///
/// The sender tells it what happened (`on_…`) and reads what is allowed (everything else) before it sends.
/// Implementations never panic on any sequence of events, however absurd.
pub trait Controller: Send {
    /// Notes that packets left.
    fn on_sent(&mut self, now: Timestamp, sent: &SentEvent);

    /// Digests one received datagram or one expiry of the loss timer.
    fn on_feedback(&mut self, now: Timestamp, event: &FeedbackEvent<'_>);

    /// Notes that the sender could send more but has nothing to send.
    fn on_app_limited(&mut self, _now: Timestamp) {}

    /// Notes that the path's largest datagram changed.
    fn on_mtu_change(&mut self, now: Timestamp, max_datagram_size: ByteCount);

    /// Notes that the probe timeout expired. By RFC 9002 section 7.5 that alone is no reason to shrink the window.
    fn on_pto(&mut self, _now: Timestamp) {}

    /// Returns what the sender is to store with a packet that leaves now, and to hand back when the packet is
    /// acknowledged or lost. It means something to this controller only.
    fn send_tag(&self) -> u32 {
        0
    }

    /// Says whether the controller itself keeps the rate so low that what is sent now says nothing about the path. The
    /// sender asks after each feedback event and then treats the flight as limited by a lack of data.
    fn is_self_limited(&self) -> bool {
        false
    }

    /// Returns the congestion window: how many bytes may be in flight.
    fn window(&self) -> ByteCount;

    /// Returns the rate at which packets may leave; infinite until there is an RTT sample to divide by.
    fn pacing_rate(&self, rtt: &RttEstimator) -> Rate;

    /// Returns how many bytes may leave back to back when the sender is paced at `rate`.
    ///
    /// The default is what `rate` moves in one millisecond, at least two datagrams and, unless those are
    /// larger, at most 64,000 bytes (what one segmented send can carry).
    fn send_quantum(&self, rate: Rate) -> ByteCount {
        rate.bytes_in(QUANTUM_SPAN)
            .min(LARGEST_QUANTUM)
            .max(self.max_datagram_size() * 2)
    }

    /// Returns the slow-start threshold; `None` while none has been set.
    fn ssthresh(&self) -> Option<ByteCount>;

    /// Returns the current state; before any transition, the initial one.
    fn state(&self) -> State;

    /// Returns the oldest state change not returned yet.
    fn take_transition(&mut self) -> Option<Transition>;

    /// Returns the floor below which the window never falls.
    fn minimum_window(&self) -> ByteCount;

    /// Returns the largest datagram the controller reckons with.
    fn max_datagram_size(&self) -> ByteCount;

    /// Returns the name of the algorithm, as flags and reports spell it, without options.
    fn name(&self) -> &'static str;

    /// Returns what the controller knows about the path; `None` if it keeps no model of it.
    fn path_model(&self) -> Option<PathModel> {
        None
    }

    /// Returns a copy that shares nothing with this controller.
    fn clone_box(&self) -> Box<dyn Controller>;

    /// Returns what shows whether a deliberate fault has struck; `None` where there is none to have.
    #[cfg(feature = "mutants")]
    fn fault_counters(&self) -> Option<crate::faults::FaultCounters> {
        None
    }
}

/// What a model-based controller knows about its path, for logs. A bound that is not set is `None`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathModel {
    /// `BBR.state`.
    pub phase: State,
    /// `BBR.max_bw`: the largest delivery rate of this cycle of probing and the one before.
    pub max_bw: Rate,
    /// `BBR.bw_shortterm`: the bound that recent losses put on the rate.
    pub bw_shortterm: Option<Rate>,
    /// `BBR.inflight_longterm`: what may be in flight according to the losses of the probes.
    pub inflight_longterm: Option<ByteCount>,
    /// `BBR.inflight_shortterm`: the bound that recent losses put on the bytes in flight.
    pub inflight_shortterm: Option<ByteCount>,
    /// `BBR.min_rtt`: the round-trip time without queues.
    pub min_rtt: Option<Duration>,
    /// `BBR.extra_acked`: how many bytes more than expected were acknowledged at once lately.
    pub extra_acked: ByteCount,
    /// `BBR.round_count`: round trips so far.
    pub round_count: u64,
}

/// How much sending a quantum covers. One millisecond keeps the wake-ups of a fast flow at a thousand a second.
const QUANTUM_SPAN: Duration = Duration::from_millis(1);

/// Below the 65,535 bytes of one segmented UDP send, with room for headers.
const LARGEST_QUANTUM: ByteCount = ByteCount::new(64_000);
