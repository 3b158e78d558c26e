//! A drop-in for plain quinn: the controllers of this crate behind quinn-proto's `ControllerFactory`.
//!
//! One line in any application of quinn 0.11:
//!
//! ```
//! use std::sync::Arc;
//! use cc::Algorithm;
//!
//! let algorithm: Algorithm = "cubic".parse()?;
//! let mut transport = quinn::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(cc::quinn::Factory::new(algorithm)));
//! # Ok::<(), cc::AlgorithmError>(())
//! ```
//!
//! quinn tells a controller what happened call by call; ours wants one digested event per ACK frame
//! ([`FeedbackEvent`]). The adapter collects the one and hands over the other:
//!
//! ```text
//!   on_ack, on_ack, ... , on_end_acks     one ACK frame  \
//!   on_congestion_event (lost bytes)      its losses      >  collected ---> one FeedbackEvent
//!   on_congestion_event (0 bytes)         its CE marks   /              ^
//!                                                                       |
//!   window(), metrics(), on_sent, the next ACK frame, a later instant --'  whatever comes first
//! ```
//!
//! The losses of an ACK frame come *after* its `on_end_acks`, so the end of the acknowledgements cannot be
//! the end of the event. The event is handed over when somebody asks what the outcome is, or when something arrives
//! that cannot belong to it; quinn asks for the window before it sends, so no packet leaves on old knowledge.
//! Losses found by a timer make an event of their own.
//!
//! # What is approximate here
//!
//! quinn 0.11 hides some of what a sender knows. With the stack of this workspace (crate `quic-core`) none of the
//! following holds.
//!
//! | what | here |
//! |---|---|
//! | sent packets | `on_sent` speaks of a whole batch. Packets are told apart by send time only: those of one batch share packet number, delivery snapshot and bytes in flight |
//! | lost packets | only their sum and the send time of the newest are known; they become one lost packet |
//! | bytes in flight | exact at each ACK frame; in between, batches are added and losses subtracted. A batch too small to hold data is taken for a bare ACK and not counted. Packets that vanish with their keys count until the next ACK |
//! | idle | nothing in flight by that account |
//! | RTT | quinn shows its average one ACK late. The adapter completes it with its own latest sample (now minus the send time of the newest packet), from which the peer's ACK delay is not subtracted until quinn's next average shows it |
//! | lack of data | quinn's flag, a state of the connection when the ACK arrives and not of the packet when it left; waiting for flow control is lack of data, waiting for the pacer is not |
//! | CE marks | "at least one", never how many |
//! | pacing | quinn's own pacer (1.25 windows per RTT) decides; the rate of the controller only reaches `metrics()`. BBRv3 lives by its rate: here it is little more than its window |
//! | probes | neither the probe timeout nor path-MTU probes are reported when they leave. A probe's acknowledgement is, and grows the window like any other |
//! | spurious losses | quinn forgets a lost packet, so its late acknowledgement is not seen and no cut is undone |
//! | delivery rate | packets acknowledged that were in no reported batch are missing from it |
//! | path challenge | acknowledgements that arrive while one is pending are not reported |
//! | migration | quinn takes a copy for the new path: same window, same history, nothing in flight. The time until it sends is idle time |
//!
//! # The window is reported as one byte more
//!
//! quinn blocks when the bytes in flight and the next datagram *reach* the window, where RFC 9002 section 7 allows
//! that they fill it. At a window of two datagrams that would let only one leave, and each round trip would wait for
//! the delayed ACK besides. [`window`](Controller::window) therefore returns the window plus one byte, and so do
//! quinn's statistics (`stats().path.cwnd`). `metrics()` has the true window.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use units::{ByteCount, Timestamp};

use crate::algorithm::Algorithm;
use crate::controller::Controller as Model;
use crate::delivery::{Sampler, SendState};
use crate::event::{AckedPacket, FeedbackEvent, LostPacket, SentEvent};
use crate::round::RoundCounter;
use crate::rtt::RttEstimator;

/// Makes controllers for quinn; see the [module](self).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Factory {
    algorithm: Algorithm,
}

impl Factory {
    /// Makes a factory for this algorithm, for `TransportConfig::congestion_controller_factory`.
    #[must_use]
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { algorithm }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let model = self.algorithm.build(ByteCount::new(current_mtu.into()));
        Box::new(Adapter::new(model, now))
    }
}

/// Returns what shows whether a deliberate fault has struck; `None` if this is no loss-based controller of this crate.
#[cfg(feature = "mutants")]
#[must_use]
pub fn fault_counters(controller: &dyn Controller) -> Option<crate::faults::FaultCounters> {
    let copy = controller.clone_box().into_any();
    let adapter = copy.downcast::<Adapter>().ok()?;
    adapter.settled().model.fault_counters()
}

/// One controller of ours, as quinn sees it.
///
/// quinn reads the window through a shared reference, and that may complete an event; hence the lock. Nobody else
/// ever holds it: every writer has exclusive access already. quinn reads the window twice per datagram, so the answer
/// is kept until something happens.
struct Adapter {
    sender: Mutex<Sender>,
    /// What `window()` returns, or `UNKNOWN`.
    window: AtomicU64,
    initial_window: ByteCount,
}

/// No window: ours end at 2^64 - 1 and are reported as one more, saturated, but never as zero.
const UNKNOWN: u64 = 0;

impl Adapter {
    fn new(model: Box<dyn Model>, now: Instant) -> Self {
        Self {
            initial_window: model.window(),
            window: AtomicU64::new(UNKNOWN),
            sender: Mutex::new(Sender::new(model, now)),
        }
    }

    /// Returns the sender, to be told something.
    fn sender(&mut self) -> &mut Sender {
        *self.window.get_mut() = UNKNOWN;
        self.sender
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sender with everything digested.
    fn settled(&self) -> MutexGuard<'_, Sender> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.settle();
        sender
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sender = self.settled();
        f.debug_struct("Adapter")
            .field("name", &sender.model.name())
            .field("state", &sender.model.state())
            .field("window", &sender.model.window())
            .field("in_flight", &sender.in_flight)
            .finish_non_exhaustive()
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.sender()
            .on_sent(now, ByteCount::new(bytes), last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &quinn_proto::RttEstimator,
    ) {
        let sender = self.sender();
        sender.begin_frame(now);
        sender.rtt.on_shown(rtt.get(), rtt.min());
        sender.on_acked(sent, ByteCount::new(bytes), app_limited);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.sender()
            .on_end_acks(now, ByteCount::new(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let sender = self.sender();
        sender.on_congestion(now, sent, ByteCount::new(lost_bytes));
        sender.news.is_persistent_congestion |= is_persistent_congestion;
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let sender = self.sender();
        let now = sender.now;
        sender
            .model
            .on_mtu_change(now, ByteCount::new(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        let known = self.window.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known;
        }
        let window = self.settled().model.window().as_u64().saturating_add(1);
        self.window.store(window, Ordering::Relaxed);
        window
    }

    fn metrics(&self) -> ControllerMetrics {
        let sender = self.settled();
        let rate = sender.model.pacing_rate(&sender.rtt.latest);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = sender.model.window().as_u64();
        metrics.ssthresh = sender.model.ssthresh().map(ByteCount::as_u64);
        metrics.pacing_rate = (!rate.is_infinite()).then(|| rate.as_bps());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let sender = self.settled().for_new_path();
        Box::new(Self {
            sender: Mutex::new(sender),
            window: AtomicU64::new(UNKNOWN),
            initial_window: self.initial_window,
        })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window.as_u64()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The controller and the books that quinn does not show.
struct Sender {
    model: Box<dyn Model>,
    /// Reads the present.
    clock: Clock,
    /// Reads send times.
    sent_clock: Clock,
    /// The latest instant quinn named, for the calls that name none.
    now: Timestamp,
    in_flight: ByteCount,
    batches: Batches,
    sampler: Sampler,
    rounds: RoundCounter,
    rtt: RttHistory,
    /// When the newest packet acknowledged so far left: only a newer one gives an RTT sample.
    newest_acked_at: Option<Timestamp>,
    news: News,
}

/// What quinn has told and the controller has not been told yet.
#[derive(Default)]
struct News {
    at: Timestamp,
    acked: Vec<AckedPacket>,
    acked_bytes: ByteCount,
    lost: Vec<LostPacket>,
    lost_bytes: ByteCount,
    ce_count: u64,
    /// When the packet left whose acknowledgement brought the mark.
    marked_at: Option<Timestamp>,
    is_persistent_congestion: bool,
    is_app_limited: bool,
    /// Whether the acknowledgements of the frame have ended.
    has_ended: bool,
    /// The acknowledged packet sent last.
    newest: Option<Newest>,
}

#[derive(Copy, Clone)]
struct Newest {
    sent_at: Timestamp,
    /// Bytes delivered when it left; `None` if it was in no batch.
    delivered: Option<u64>,
}

impl News {
    fn is_empty(&self) -> bool {
        self.acked.is_empty()
            && self.lost.is_empty()
            && self.ce_count == 0
            && !self.is_persistent_congestion
    }

    /// Begins anew and keeps the memory.
    fn clear(&mut self) {
        let (mut acked, mut lost) = (
            std::mem::take(&mut self.acked),
            std::mem::take(&mut self.lost),
        );
        acked.clear();
        lost.clear();
        *self = Self {
            acked,
            lost,
            ..Self::default()
        };
    }
}

impl Sender {
    fn new(model: Box<dyn Model>, now: Instant) -> Self {
        let clock = Clock::new(now);
        Self {
            model,
            clock,
            sent_clock: clock,
            now: Clock::ORIGIN,
            in_flight: ByteCount::ZERO,
            batches: Batches::default(),
            sampler: Sampler::new(),
            rounds: RoundCounter::new(),
            rtt: RttHistory::default(),
            newest_acked_at: None,
            news: News::default(),
        }
    }

    /// Copies everything but what is on its way: quinn counts the new path's bytes in flight from zero. The first packet on
    /// it therefore ends an idle span.
    fn for_new_path(&self) -> Self {
        Self {
            model: self.model.clone_box(),
            clock: self.clock,
            sent_clock: self.sent_clock,
            now: self.now,
            in_flight: ByteCount::ZERO,
            batches: Batches::default(),
            sampler: self.sampler.clone(),
            rounds: self.rounds,
            rtt: self.rtt,
            newest_acked_at: self.newest_acked_at,
            news: News::default(),
        }
    }

    fn on_sent(&mut self, now: Instant, bytes: ByteCount, last_packet_number: u64) {
        self.settle();
        self.now = self.clock.read(now);
        if bytes < SMALLEST_COUNTED {
            return;
        }
        let was_idle = self.in_flight == ByteCount::ZERO;
        let state = SendState {
            send_tag: self.model.send_tag(),
            ..self.sampler.on_sent(self.now, self.in_flight, bytes)
        };
        self.in_flight += bytes;
        self.batches.push(Batch {
            sent_at: self.now,
            last_packet_number,
            state,
        });
        let sent = SentEvent {
            bytes,
            in_flight: self.in_flight,
            // quinn knows only at its next attempt to send whether there was more.
            is_app_limited: false,
            was_idle,
        };
        self.model.on_sent(self.now, &sent);
    }

    /// Begins an ACK frame, unless this is one more packet of the frame under way.
    fn begin_frame(&mut self, now: Instant) {
        self.begin_instant(now);
        if self.news.has_ended || !self.news.lost.is_empty() || self.news.ce_count > 0 {
            self.settle();
            self.news.at = self.now;
        }
    }

    /// Hands over what belongs to another instant.
    fn begin_instant(&mut self, now: Instant) {
        let now = self.clock.read(now);
        if self.news.at != now {
            self.settle();
        }
        self.now = now;
        self.news.at = now;
    }

    fn on_acked(&mut self, sent: Instant, size: ByteCount, is_app_limited: bool) {
        let sent_at = self.sent_clock.read(sent);
        let batch = self.batches.find(sent_at);
        if let Some(batch) = batch {
            self.sampler.on_acked(self.now, &batch.state, sent_at, size);
        }
        if self
            .news
            .newest
            .is_none_or(|newest| sent_at >= newest.sent_at)
        {
            self.news.newest = Some(Newest {
                sent_at,
                delivered: batch.map(|batch| batch.state.delivered),
            });
        }
        self.news.acked_bytes += size;
        self.news.acked.push(AckedPacket {
            packet_number: batch.map_or(0, |batch| batch.last_packet_number),
            sent_at,
            size,
            is_app_limited,
            tx_in_flight: batch.map_or(self.in_flight, |batch| batch.state.tx_in_flight),
        });
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: ByteCount, is_app_limited: bool) {
        self.begin_instant(now);
        self.in_flight = in_flight;
        self.news.has_ended = true;
        self.news.is_app_limited = is_app_limited;
        if is_app_limited {
            self.sampler.on_app_limited(in_flight);
        }
    }

    /// Takes lost bytes or, if there are none, a mark.
    fn on_congestion(&mut self, now: Instant, sent: Instant, lost_bytes: ByteCount) {
        self.begin_instant(now);
        let sent_at = self.sent_clock.read(sent);
        if lost_bytes == ByteCount::ZERO {
            self.news.ce_count += 1;
            self.news.marked_at = Some(sent_at);
            return;
        }
        let batch = self.batches.find(sent_at);
        self.sampler.on_lost(lost_bytes);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        self.news.lost_bytes += lost_bytes;
        self.news.lost.push(LostPacket {
            packet_number: batch.map_or(0, |batch| batch.last_packet_number),
            sent_at,
            size: lost_bytes,
            is_app_limited: batch.is_some_and(|batch| batch.state.is_app_limited),
            tx_in_flight: batch.map_or(self.in_flight, |batch| batch.state.tx_in_flight),
            lost_since_sent: batch
                .map_or(lost_bytes, |batch| self.sampler.lost_since(&batch.state)),
            send_tag: batch.map_or(0, |batch| batch.state.send_tag),
        });
    }

    /// Hands what has been collected to the controller; does nothing if there is nothing.
    fn settle(&mut self) {
        if self.news.is_empty() {
            if self.news.has_ended {
                self.news.clear();
            }
            return;
        }
        let News { at, newest, .. } = self.news;
        if !self.news.has_ended {
            // Either there are no acknowledgements, or quinn has no total for them (a Retry answers the first packet).
            self.in_flight = self.in_flight.saturating_sub(self.news.acked_bytes);
        }
        let latest_rtt = newest
            .filter(|newest| self.newest_acked_at.is_none_or(|at| newest.sent_at > at))
            .map(|newest| at.saturating_since(newest.sent_at));
        if let Some(latest_rtt) = latest_rtt {
            self.rtt.on_sample(latest_rtt);
            self.newest_acked_at = newest.map(|newest| newest.sent_at);
        }
        let marked = self.model.max_datagram_size() * self.news.ce_count;
        self.sampler.on_marked(marked);
        let sample = self.sampler.finish(at, self.rtt.latest.minimum());
        let delivered = self.sampler.delivered();
        let is_round_start = newest
            .and_then(|newest| newest.delivered)
            .is_some_and(|at_send| self.rounds.on_acked(at_send, delivered));
        if self.news.is_app_limited {
            self.model.on_app_limited(at);
        }
        let event = FeedbackEvent {
            acked: &self.news.acked,
            lost: &self.news.lost,
            late: &[],
            is_persistent_congestion: self.news.is_persistent_congestion,
            ce_count: self.news.ce_count,
            largest_acked_sent_at: self
                .news
                .marked_at
                .or_else(|| newest.map(|newest| newest.sent_at)),
            in_flight_before: self.in_flight + self.news.acked_bytes + self.news.lost_bytes,
            in_flight: self.in_flight,
            rtt: &self.rtt.latest,
            latest_rtt,
            sample,
            is_round_start,
            round_count: self.rounds.count(),
        };
        self.model.on_feedback(at, &event);
        if self.model.is_self_limited() {
            self.sampler.on_app_limited(self.in_flight);
        }
        self.news.clear();
        self.batches.forget_before(at, &self.rtt.latest);
    }
}

/// A bare ACK has a header of up to 26 bytes, a tag of 16 and a frame of some 10 to 40; a packet of the smallest data or
/// of control frames is no larger. Counting either wrongly is an error below this size, but those of a receiver, which
/// sends thousands of bare ACKs and hears nothing, would add up.
const SMALLEST_COUNTED: ByteCount = ByteCount::new(100);

/// The batches whose packets may still be acknowledged or lost, oldest first, send times strictly increasing.
#[derive(Clone, Default)]
struct Batches {
    queue: VecDeque<Batch>,
    /// Where the last search ended: packets are acknowledged in the order they were sent, so the next one finds its
    /// batch here or one further.
    cursor: usize,
}

/// What left in one call, or in several within one instant.
#[derive(Copy, Clone)]
struct Batch {
    sent_at: Timestamp,
    last_packet_number: u64,
    state: SendState,
}

impl Batches {
    fn push(&mut self, batch: Batch) {
        match self.queue.back_mut() {
            Some(last) if last.sent_at == batch.sent_at => {
                last.last_packet_number = batch.last_packet_number;
                last.state.tx_in_flight = batch.state.tx_in_flight;
            }
            // A clock that jumps back: the batch will be missing, which is allowed.
            Some(last) if last.sent_at > batch.sent_at => {}
            _ => {
                if self.queue.len() == MOST_BATCHES {
                    self.forget_first();
                }
                self.queue.push_back(batch);
            }
        }
    }

    fn find(&mut self, sent_at: Timestamp) -> Option<Batch> {
        let is_at = |index: usize| {
            self.queue
                .get(index)
                .is_some_and(|batch| batch.sent_at == sent_at)
        };
        self.cursor = if is_at(self.cursor) {
            self.cursor
        } else if is_at(self.cursor + 1) {
            self.cursor + 1
        } else {
            self.queue
                .binary_search_by_key(&sent_at, |batch| batch.sent_at)
                .ok()?
        };
        self.queue.get(self.cursor).copied()
    }

    fn forget_first(&mut self) {
        self.queue.pop_front();
        self.cursor = self.cursor.saturating_sub(1);
    }

    /// Forgets batches that are decided: a packet unheard of for 9/8 RTT after it left is lost as soon as an ACK for
    /// a later one arrives (RFC 9002 section 6.1.2).
    fn forget_before(&mut self, now: Timestamp, rtt: &RttEstimator) {
        let (Some(smoothed), Some(latest)) = (rtt.smoothed(), rtt.latest()) else {
            return;
        };
        let horizon = now.saturating_sub(smoothed.max(latest).saturating_mul(2));
        while self
            .queue
            .front()
            .is_some_and(|batch| batch.sent_at < horizon)
        {
            self.forget_first();
        }
    }
}

/// At 10 datagrams a batch, 20,000 datagrams in flight and as many acknowledged lately; 320 KiB.
const MOST_BATCHES: usize = 4_096;

/// RTT estimates as good as quinn's, and one ACK newer.
///
/// quinn shows its average before the ACK that is being reported, which it computes as 7/8 of the old one and 1/8 of a
/// sample less ACK delay. Two successive averages therefore give the sample away.
#[derive(Copy, Clone, Default)]
struct RttHistory {
    /// The average that quinn showed last; at first its guess.
    shown: Option<Duration>,
    /// What quinn's averages say.
    settled: RttEstimator,
    /// The same and the sample of the latest ACK, whose delay quinn has not shown yet.
    latest: RttEstimator,
}

impl RttHistory {
    fn on_shown(&mut self, average: Duration, minimum: Duration) {
        let Some(before) = self.shown.replace(average) else {
            return;
        };
        if before == average {
            return;
        }
        let sample = average
            .saturating_mul(8)
            .saturating_sub(before.saturating_mul(7));
        if !self.settled.has_sample() || sample < minimum {
            // The first average is the first sample. And below the smallest sample there is none: several ACKs went
            // unreported, during a path challenge for example, and their sum cannot be taken apart.
            self.settled = RttEstimator::new();
            self.settled.update(average, Duration::ZERO);
        } else {
            self.settled.update(sample, Duration::ZERO);
        }
    }

    fn on_sample(&mut self, sample: Duration) {
        self.latest = self.settled;
        self.latest.update(sample, Duration::ZERO);
    }
}

/// Translates instants into timestamps, the same one again for nothing: the calls of one ACK frame share theirs. No
/// arithmetic on instants can overflow here.
#[derive(Copy, Clone)]
struct Clock {
    base: Instant,
    last: (Instant, Timestamp),
}

impl Clock {
    /// Where the base lies, so that there is a time before it.
    const ORIGIN: Timestamp = Timestamp::from_secs(60);

    fn new(base: Instant) -> Self {
        Self {
            base,
            last: (base, Self::ORIGIN),
        }
    }

    fn read(&mut self, instant: Instant) -> Timestamp {
        if self.last.0 != instant {
            let timestamp = match instant.checked_duration_since(self.base) {
                Some(after) => Self::ORIGIN + after,
                None => Self::ORIGIN.saturating_sub(self.base.saturating_duration_since(instant)),
            };
            self.last = (instant, timestamp);
        }
        self.last.1
    }
}

#[cfg(test)]
mod tests;
