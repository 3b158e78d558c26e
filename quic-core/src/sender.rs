//! What the sending side knows and decides: ledger, round-trip time, delivery rate, controller and
//! pacing gate of one path.
//!
//! ```text
//!   tap events of one datagram ──> ledger ──> acked, lost ──> one FeedbackEvent ──> controller
//!                                                                                      │
//!   poll_transmit <── allowance(now): datagrams that window and pacing let go <────────┘
//! ```
//!
//! The controller hears once per received datagram or timer, after quinn-proto has digested it and
//! before anything is sent.

use std::time::Duration;

use cc::{
    AckedPacket, Controller, FeedbackEvent, LostPacket, RttEstimator, SentEvent,
    delivery::{Sampler, SendState},
    pacer::Pacer,
    round::RoundCounter,
};
use qlogs::{Bound, Event as LogEvent, LossTrigger, Metrics, PathModel};
use units::{ByteCount, Rate, Timestamp};

use crate::{
    clock::Clock,
    ledger::{Delivered, Entry, Ledger},
    log::ConnLog,
    observer::{SenderObserver, SenderUpdate},
    tap::{Collected, ReceivedPacket, SentPacket, Space, TapEvent},
};

/// Counters of one connection's sending side; all since the connection began.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderStats {
    /// Packets sent that counted as in flight.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: ByteCount,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Their bytes.
    pub bytes_lost: ByteCount,
    /// Congestion Experienced marks that the peer reported.
    pub ce_count: u64,
    /// Packets declared lost and acknowledged after all.
    pub spurious_losses: u64,
    /// Stream bytes that left more than once.
    pub retransmitted_bytes: ByteCount,
    /// Loss batches that quinn-proto reported.
    pub loss_events: u64,
    /// Probe timeouts that sent something (RFC 9002 section 6.2).
    pub pto_count: u64,
    /// State changes of the controller.
    pub transitions: u64,
    /// State changes into recovery.
    pub recoveries: u64,
    /// Persistent congestion episodes (RFC 9002 section 7.6).
    pub persistent_congestions: u64,
    /// Datagrams that left while the gate was closed, so that an acknowledgement could go with them.
    pub ack_exemptions: u64,
    /// Times at which the gate was open, stream data was there, and quinn-proto sent nothing: its own
    /// pacer, or its limit towards an unvalidated address, got in between.
    pub open_gate_stalls: u64,
    /// Times at which the ledger's bytes in flight differed from quinn-proto's own; 0 unless a
    /// packet's frames mean something else to quinn-proto than to the tap.
    pub in_flight_mismatches: u64,
    /// Loss batches for which the ledger found no matching prefix.
    pub loss_mismatches: u64,
    /// What shows whether a deliberate fault of the controller has struck.
    #[cfg(feature = "mutants")]
    pub fault_counters: Option<cc::FaultCounters>,
}

/// Why nothing may be sent now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// That many full datagrams may leave.
    Open(usize),
    /// Pacing holds the next burst back until then.
    Paced(Timestamp),
    /// The congestion window is full.
    WindowFull,
}

pub(crate) struct Sender {
    controller: Box<dyn Controller>,
    ledger: Ledger,
    rtt: RttEstimator,
    sampler: Sampler,
    round: RoundCounter,
    pacer: Pacer,
    mtu: ByteCount,
    /// The peer's parameters (RFC 9000 section 18.2), defaults until they are known.
    peer_max_ack_delay: Duration,
    peer_ack_delay_exponent: u32,
    /// Probe timeouts since the last acknowledgement.
    pto_backoff: u64,
    ce_seen: [u64; 3],
    /// The gate was open and nothing was there to send: pacing restarts from now.
    is_idle: bool,
    /// The handshake is confirmed.
    is_confirmed: bool,
    /// A probe for a larger MTU was sent; its loss shows only in quinn-proto's statistics.
    has_mtu_probe: bool,
    observer: Option<Box<dyn SenderObserver>>,
    stats: SenderStats,
    at_minimum: MinimumWindowTime,

    // Scratch of one event, reused.
    delivered: Vec<Delivered>,
    acked: Vec<AckedPacket>,
    lost: Vec<LostPacket>,
    late: Vec<LostPacket>,
}

/// What the next packets are, beyond what the tap can see.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct SendContext {
    /// The application had nothing more to send after this burst.
    pub(crate) is_app_limited: bool,
    /// The burst left on a probe timeout.
    pub(crate) is_pto_probe: bool,
}

impl Sender {
    pub(crate) fn new(
        controller: Box<dyn Controller>,
        mtu: ByteCount,
        observer: Option<Box<dyn SenderObserver>>,
    ) -> Self {
        Self {
            controller,
            ledger: Ledger::default(),
            rtt: RttEstimator::default(),
            sampler: Sampler::default(),
            round: RoundCounter::default(),
            pacer: Pacer::new(),
            mtu,
            peer_max_ack_delay: Duration::from_millis(25),
            peer_ack_delay_exponent: 3,
            pto_backoff: 0,
            ce_seen: [0; 3],
            is_idle: true,
            is_confirmed: false,
            has_mtu_probe: false,
            observer,
            stats: SenderStats::default(),
            at_minimum: MinimumWindowTime::default(),
            delivered: Vec::new(),
            acked: Vec::new(),
            lost: Vec::new(),
            late: Vec::new(),
        }
    }

    // -- The gate ------------------------------------------------------------------------------

    /// Whether, and how many, full datagrams may leave at `now`.
    pub(crate) fn gate(&self, now: Timestamp) -> Gate {
        let room = self
            .controller
            .window()
            .saturating_sub(self.ledger.in_flight());
        let by_window = room.as_usize() / self.mtu.as_usize();
        if by_window == 0 {
            return Gate::WindowFull;
        }
        // After idle time the pacer's stamp lies in the past; `on_sent` moves it.
        if !self.pacer.can_release(now) {
            return Gate::Paced(self.pacer.release_at());
        }
        let quantum = self.controller.send_quantum(self.pacing_rate());
        let by_quantum = quantum.as_usize().div_ceil(self.mtu.as_usize());
        Gate::Open(by_window.min(by_quantum).clamp(1, MAX_BURST_DATAGRAMS))
    }

    pub(crate) fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate(&self.rtt)
    }

    /// An acknowledgement may leave with one datagram although the gate is closed; see the module
    /// [`conn`](crate::conn). Not while a full datagram beyond the window is already out, unless the
    /// acknowledgement is overdue.
    pub(crate) fn may_exempt(&self, is_overdue: bool) -> bool {
        is_overdue || self.ledger.in_flight() <= self.controller.window() + self.mtu
    }

    pub(crate) fn count_retransmitted(&mut self, bytes: u64) {
        self.stats.retransmitted_bytes += ByteCount::new(bytes);
    }

    pub(crate) fn count_exemption(&mut self) {
        self.stats.ack_exemptions += 1;
    }

    pub(crate) fn count_open_gate_stall(&mut self) {
        self.stats.open_gate_stalls += 1;
    }

    /// The gate was open and nothing was left to send; `is_blocked` if data is there and the peer's flow control
    /// keeps it back. That is no lack of data: the rate is what the peer's window allows
    /// (draft-ietf-ccwg-bbr-06 section 4.1.1.3.1).
    pub(crate) fn on_nothing_to_send(&mut self, now: Timestamp, is_blocked: bool) {
        if !self.is_idle {
            self.is_idle = true;
            self.controller.on_app_limited(now);
        }
        if !is_blocked {
            self.sampler.on_app_limited(self.ledger.in_flight());
        }
    }

    /// A probe timeout expired and its first probe is about to be entered (RFC 9002 section 6.2.4).
    pub(crate) fn on_pto(&mut self, now: Timestamp) {
        self.pto_backoff += 1;
        self.stats.pto_count += 1;
        self.controller.on_pto(now);
    }

    // -- What happened -------------------------------------------------------------------------

    /// Enters the packets of one `poll_transmit`, all sent at `sent_at`.
    pub(crate) fn on_transmitted(
        &mut self,
        sent_at: Timestamp,
        tapped: &Collected,
        context: SendContext,
        mut log: Option<&mut ConnLog>,
    ) {
        let was_idle = self.ledger.in_flight() == ByteCount::ZERO;
        let mut burst = ByteCount::ZERO;
        // A full window limits too, and then it is not the application that does.
        let leaving: ByteCount = tapped.events.iter().map(counted_size).sum();
        let context = SendContext {
            is_app_limited: context.is_app_limited
                && self.ledger.in_flight() + leaving + self.mtu <= self.controller.window(),
            ..context
        };
        for event in &tapped.events {
            match *event {
                TapEvent::Sent(ref sent) => {
                    let is_mtu_probe = self.is_mtu_probe(sent);
                    self.has_mtu_probe |= is_mtu_probe;
                    if counted_size(event) > ByteCount::ZERO {
                        burst += self.enter(sent_at, sent, context, is_mtu_probe);
                    } else {
                        self.ledger
                            .on_sent_untracked(sent.space, sent.number, sent_at);
                    }
                    if let Some(log) = log.as_deref_mut() {
                        log.packet_sent(sent_at, sent, tapped, is_mtu_probe, context.is_pto_probe);
                    }
                }
                TapEvent::KeysDropped(space) => self.on_keys_dropped(space),
                _ => {}
            }
        }
        if burst == ByteCount::ZERO {
            // Nobody need ever acknowledge these, and one who only receives sends nothing else.
            self.ledger.prune(sent_at, 3 * self.pto());
            return;
        }
        let rate = self.pacing_rate();
        if std::mem::take(&mut self.is_idle) {
            self.pacer.on_idle_restart(sent_at);
        }
        let quantum = self.controller.send_quantum(rate);
        self.pacer.on_sent(sent_at, burst, rate, quantum);
        self.controller.on_sent(
            sent_at,
            &SentEvent {
                bytes: burst,
                in_flight: self.ledger.in_flight(),
                is_app_limited: context.is_app_limited,
                was_idle,
            },
        );
        self.after_controller(sent_at, None, log);
    }

    fn enter(
        &mut self,
        sent_at: Timestamp,
        sent: &SentPacket,
        context: SendContext,
        is_mtu_probe: bool,
    ) -> ByteCount {
        let size = ByteCount::new(u64::from(sent.length));
        let send_state = SendState {
            send_tag: self.controller.send_tag(),
            ..self.sampler.on_sent(sent_at, self.ledger.in_flight(), size)
        };
        let tx_in_flight = self.ledger.in_flight() + size;
        self.ledger.on_sent(
            sent.space,
            sent.number,
            Entry {
                sent_at,
                size,
                send_state,
                tx_in_flight,
                is_app_limited: context.is_app_limited,
                is_ack_eliciting: sent.is_ack_eliciting,
                is_mtu_probe,
            },
        );
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += size;
        size
    }

    /// Digests what one received datagram or one expired timer made quinn-proto do.
    pub(crate) fn on_feedback(
        &mut self,
        now: Timestamp,
        clock: &Clock,
        tapped: &Collected,
        mut log: Option<&mut ConnLog>,
    ) {
        self.delivered.clear();
        self.lost.clear();
        self.late.clear();
        let in_flight_before = self.ledger.in_flight();
        let mut seen = Seen::default();
        let mut ack_space = Space::Data;
        for event in &tapped.events {
            match *event {
                TapEvent::Received(ref received) => {
                    if let Some(log) = log.as_deref_mut() {
                        log.packet_received(now, received, tapped);
                    }
                    ack_space = received.space;
                    self.on_ack_frame(now, received, tapped, &mut seen);
                }
                TapEvent::AcksDone { in_flight } => self.compare(in_flight),
                TapEvent::Lost {
                    sent_at,
                    is_persistent,
                    bytes,
                } => {
                    seen.is_persistent |= is_persistent;
                    self.on_lost(
                        now,
                        ack_space,
                        clock.timestamp(sent_at),
                        ByteCount::new(bytes),
                        log.as_deref_mut(),
                    );
                }
                TapEvent::EcnCe => seen.has_ce = true,
                TapEvent::MtuChanged(mtu) => self.on_mtu_changed(now, mtu, log.as_deref_mut()),
                TapEvent::KeysDropped(space) => self.on_keys_dropped(space),
                TapEvent::PeerParameters(ref bytes) => {
                    self.on_peer_parameters(now, bytes, log.as_deref_mut());
                }
                TapEvent::StreamSent { .. } | TapEvent::Sent(_) => {}
            }
        }
        self.stats.spurious_losses += self.late.len() as u64;
        if self.delivered.is_empty() && self.lost.is_empty() && self.late.is_empty() && !seen.has_ce
        {
            return;
        }
        self.tell_controller(now, in_flight_before, &seen);
        self.ledger.prune(now, 3 * self.pto());
        self.after_controller(now, seen.latest_rtt, log);
    }

    fn on_ack_frame(
        &mut self,
        now: Timestamp,
        received: &ReceivedPacket,
        tapped: &Collected,
        seen: &mut Seen,
    ) {
        let Some(ack) = received.ack else { return };
        let ranges = usize::try_from(ack.ranges.0)
            .ok()
            .zip(usize::try_from(ack.ranges.1).ok())
            .and_then(|(from, to)| tapped.ranges.get(from..to))
            .unwrap_or_default();
        let first = self.delivered.len();
        let first_late = self.late.len();
        let outcome =
            self.ledger
                .on_ack(received.space, ranges, &mut self.delivered, &mut self.late);
        for delivered in &self.delivered[first..] {
            self.sampler.on_acked(
                now,
                &delivered.send_state,
                delivered.packet.sent_at,
                delivered.packet.size,
            );
        }
        for late in &self.late[first_late..] {
            self.sampler.on_late(now, late.size);
        }
        if let Some(sent_at) = outcome.largest_sent_at
            && outcome.has_ack_eliciting
        {
            // RFC 9002 section 5.1 and 5.3: the peer's delay counts in the Data space only.
            let latest = now.saturating_since(sent_at);
            let delay = if received.space == Space::Data {
                Duration::from_micros(
                    ack.delay
                        .saturating_mul(1 << self.peer_ack_delay_exponent.min(20)),
                )
                .min(self.peer_max_ack_delay)
            } else {
                Duration::ZERO
            };
            self.rtt.update(latest, delay);
            seen.latest_rtt = Some(latest);
            seen.largest_sent_at = Some(sent_at);
        }
        if self.delivered.len() > first {
            self.pto_backoff = 0;
        }
        if outcome.is_new_largest
            && let Some(ce) = ack.ce
        {
            let known = &mut self.ce_seen[received.space.index()];
            seen.ce_count += ce.saturating_sub(*known);
            *known = (*known).max(ce);
        }
    }

    /// The ledger's view against quinn-proto's, which knows nothing of it.
    fn compare(&mut self, in_flight: u64) {
        let theirs = ByteCount::new(in_flight);
        if theirs != self.ledger.in_flight() {
            self.stats.in_flight_mismatches += 1;
            tracing::debug!(
                ours = self.ledger.in_flight().as_u64(),
                theirs = in_flight,
                "bytes in flight differ; taking quinn-proto's"
            );
            self.ledger.resync(theirs);
        }
    }

    fn on_lost(
        &mut self,
        now: Timestamp,
        likely: Space,
        sent_at: Timestamp,
        bytes: ByteCount,
        log: Option<&mut ConnLog>,
    ) {
        let first = self.lost.len();
        self.stats.loss_events += 1;
        let Some(space) = self.ledger.on_lost(
            now,
            likely,
            sent_at,
            bytes,
            &mut self.sampler,
            &mut self.lost,
        ) else {
            self.stats.loss_mismatches += 1;
            return;
        };
        let largest_acked = self.ledger.largest_acked(space);
        let lost = &self.lost[first..];
        self.stats.packets_lost += lost.len() as u64;
        for packet in lost {
            self.stats.bytes_lost += packet.size;
        }
        if let Some(log) = log {
            for packet in lost {
                // RFC 9002 section 6.1: by number first, else by time.
                let by_number = largest_acked
                    .is_some_and(|acked| acked >= packet.packet_number + PACKET_THRESHOLD);
                log.packet_lost(
                    now,
                    space,
                    packet.packet_number,
                    if by_number {
                        LossTrigger::ReorderingThreshold
                    } else {
                        LossTrigger::TimeThreshold
                    },
                );
            }
        }
    }

    /// RFC 9001 section 4.9.2: the Handshake keys go when the handshake is confirmed.
    fn on_keys_dropped(&mut self, space: Space) {
        self.is_confirmed |= space == Space::Handshake;
        self.ledger.discard(space);
    }

    /// Whether the handshake is confirmed (RFC 9001 section 4.1.2).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// quinn-proto counted another lost MTU probe.
    pub(crate) fn on_mtu_probe_lost(&mut self) {
        self.ledger.on_mtu_probe_lost();
    }

    /// Whether the packet asks whether the path carries it (RFC 9000 section 14.4).
    pub(crate) fn is_mtu_probe(&self, sent: &SentPacket) -> bool {
        sent.is_ping_only && u64::from(sent.length) > self.mtu.as_u64()
    }

    /// Whether MTU discovery is in use on this path.
    pub(crate) fn has_mtu_probe(&self) -> bool {
        self.has_mtu_probe
    }

    pub(crate) fn on_mtu_changed(&mut self, now: Timestamp, mtu: u16, log: Option<&mut ConnLog>) {
        let mtu = ByteCount::new(u64::from(mtu));
        if let Some(log) = log {
            log.mtu_updated(now, self.mtu, mtu);
        }
        self.mtu = mtu;
        self.controller.on_mtu_change(now, mtu);
    }

    fn on_peer_parameters(&mut self, now: Timestamp, bytes: &[u8], log: Option<&mut ConnLog>) {
        let parameters = crate::parameters::parse(bytes);
        if let Some(exponent) = parameters.ack_delay_exponent {
            self.peer_ack_delay_exponent = u32::try_from(exponent).unwrap_or(20).min(20);
        }
        if let Some(delay) = parameters.max_ack_delay_ms {
            self.peer_max_ack_delay = Duration::from_millis(delay.min(1 << 14));
        }
        if let Some(log) = log {
            log.peer_parameters(now, &parameters);
        }
    }

    fn tell_controller(&mut self, now: Timestamp, in_flight_before: ByteCount, seen: &Seen) {
        self.acked.clear();
        self.acked
            .extend(self.delivered.iter().map(|delivered| delivered.packet));
        let ce_count = if seen.has_ce { seen.ce_count.max(1) } else { 0 };
        self.sampler.on_marked(self.mtu * ce_count);
        let newest = self.delivered.iter().max_by_key(|d| d.packet.sent_at);
        let is_round_start = newest.is_some_and(|newest| {
            self.round
                .on_acked(newest.send_state.delivered, self.sampler.delivered())
        });
        let sample = self.sampler.finish(now, self.rtt.minimum());
        if seen.is_persistent {
            self.stats.persistent_congestions += 1;
        }
        let event = FeedbackEvent {
            acked: &self.acked,
            lost: &self.lost,
            late: &self.late,
            is_persistent_congestion: seen.is_persistent,
            ce_count,
            largest_acked_sent_at: seen.largest_sent_at,
            in_flight_before,
            in_flight: self.ledger.in_flight(),
            rtt: &self.rtt,
            latest_rtt: seen.latest_rtt,
            sample,
            is_round_start,
            round_count: self.round.count(),
        };
        self.stats.ce_count += event.ce_count;
        self.controller.on_feedback(now, &event);
        if self.controller.is_self_limited() {
            self.sampler.on_app_limited(self.ledger.in_flight());
        }
    }

    /// After every call into the controller: its state changes and figures go to the log.
    fn after_controller(
        &mut self,
        now: Timestamp,
        latest_rtt: Option<Duration>,
        mut log: Option<&mut ConnLog>,
    ) {
        while let Some(transition) = self.controller.take_transition() {
            self.stats.transitions += 1;
            if transition.to == cc::State::Recovery {
                self.stats.recoveries += 1;
            }
            if let Some(log) = log.as_deref_mut() {
                log.state_updated(now, &transition);
            }
            if let Some(observer) = &mut self.observer {
                observer.on_transition(now, &transition);
            }
        }
        let window = self.controller.window();
        self.at_minimum
            .update(now, window <= self.controller.minimum_window());
        if self.observer.is_some() {
            let update = SenderUpdate {
                window,
                minimum_window: self.controller.minimum_window(),
                in_flight: self.ledger.in_flight(),
                latest_rtt,
                pacing_rate: self.pacing_rate(),
                packets_lost: self.stats.packets_lost,
                ce_count: self.stats.ce_count,
                pto_count: self.stats.pto_count,
                ack_exemptions: self.stats.ack_exemptions,
                persistent_congestions: self.stats.persistent_congestions,
            };
            if let Some(observer) = &mut self.observer {
                observer.on_update(now, &update);
            }
        }
        if let Some(log) = log {
            log.write(now, &LogEvent::MetricsUpdated(self.metrics()));
        }
    }

    // -- Readings ------------------------------------------------------------------------------

    /// The figures as the log shows them.
    pub(crate) fn metrics(&self) -> Metrics {
        let rate = self.pacing_rate();
        Metrics {
            min_rtt: self.rtt.minimum(),
            smoothed_rtt: self.rtt.smoothed(),
            latest_rtt: self.rtt.latest(),
            rtt_variance: self.rtt.variation(),
            pto_count: Some(self.pto_backoff),
            congestion_window: Some(self.controller.window()),
            bytes_in_flight: Some(self.ledger.in_flight()),
            ssthresh: self.controller.ssthresh(),
            packets_in_flight: Some(self.ledger.in_flight_count()),
            pacing_rate: (!rate.is_infinite()).then_some(rate),
            model: self
                .controller
                .path_model()
                .map_or_else(PathModel::default, logged),
        }
    }

    /// The probe timeout without backoff (RFC 9002 section 6.2.1).
    fn pto(&self) -> Duration {
        self.rtt.pto_base() + self.peer_max_ack_delay
    }

    pub(crate) fn stats(&self) -> SenderStats {
        SenderStats {
            #[cfg(feature = "mutants")]
            fault_counters: self.controller.fault_counters(),
            ..self.stats
        }
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    pub(crate) fn in_flight(&self) -> ByteCount {
        self.ledger.in_flight()
    }

    pub(crate) fn mtu(&self) -> ByteCount {
        self.mtu
    }

    #[cfg(test)]
    pub(crate) fn ledger_length(&self) -> usize {
        self.ledger.length()
    }

    pub(crate) fn peer_ack_delay_exponent(&self) -> u32 {
        self.peer_ack_delay_exponent
    }

    /// Total time at the minimum window, and the longest stretch, up to `now`.
    pub(crate) fn time_at_minimum(&self, now: Timestamp) -> (Duration, Duration) {
        self.at_minimum.read(now)
    }
}

/// The model as the log shows it.
fn logged(model: cc::PathModel) -> PathModel {
    fn bound<T>(value: Option<T>) -> Option<Bound<T>> {
        Some(value.map_or(Bound::Unset, Bound::Set))
    }
    PathModel {
        max_bw: Some(model.max_bw),
        bw_shortterm: bound(model.bw_shortterm),
        inflight_longterm: bound(model.inflight_longterm),
        inflight_shortterm: bound(model.inflight_shortterm),
        min_rtt: model.min_rtt,
        extra_acked: Some(model.extra_acked),
        round_count: Some(model.round_count),
    }
}

/// What a sent packet adds to the bytes in flight (RFC 9002 section 2).
fn counted_size(event: &TapEvent) -> ByteCount {
    match event {
        TapEvent::Sent(sent) if sent.is_ack_eliciting || sent.is_padded => {
            ByteCount::new(u64::from(sent.length))
        }
        _ => ByteCount::ZERO,
    }
}

/// What the ACKs of one event said besides the packets.
#[derive(Default)]
struct Seen {
    latest_rtt: Option<Duration>,
    largest_sent_at: Option<Timestamp>,
    is_persistent: bool,
    has_ce: bool,
    ce_count: u64,
}

/// How long the congestion window stood at its minimum.
#[derive(Copy, Clone, Debug, Default)]
struct MinimumWindowTime {
    since: Option<Timestamp>,
    total: Duration,
    longest: Duration,
}

impl MinimumWindowTime {
    fn update(&mut self, now: Timestamp, is_at_minimum: bool) {
        match (self.since, is_at_minimum) {
            (None, true) => self.since = Some(now),
            (Some(_), false) => {
                (self.total, self.longest) = self.read(now);
                self.since = None;
            }
            _ => {}
        }
    }

    fn read(&self, now: Timestamp) -> (Duration, Duration) {
        let running = self
            .since
            .map_or(Duration::ZERO, |since| now.saturating_since(since));
        (self.total + running, self.longest.max(running))
    }
}

/// One UDP GSO send carries at most this many segments (Linux UDP_MAX_SEGMENTS).
const MAX_BURST_DATAGRAMS: usize = 64;

/// RFC 9002 section 6.1.1, kPacketThreshold; quinn-proto is configured with it.
pub(crate) const PACKET_THRESHOLD: u64 = 3;
