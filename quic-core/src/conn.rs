//! One connection inside the driver: quinn-proto's state machine, the sender beside it, the
//! application's streams, and the rules by which a datagram may leave.
//!
//! ```text
//!   datagram / timer ──> quinn-proto ──tap──> sender (ledger, controller)
//!                                                │ gate
//!      bind just enough stream data <────────────┤
//!                                                v
//!   poll_transmit: window "open" for n datagrams, or "closed": ACKs and probes only
//! ```
//!
//! What may leave, in this order:
//! 1. after a timer: probes, which ignore window and pacing and are charged to both; before the
//!    handshake is confirmed one datagram more, of whatever packet number space has something;
//! 2. gate open: up to a quantum of full datagrams, whatever quinn-proto has, ACKs included;
//! 3. gate closed: packets that carry only ACKs;
//! 4. gate closed, an ACK due, and data pending in quinn-proto (a retransmission, or what did not
//!    fit): one datagram, charged like any other. Otherwise a sender waiting for its window would
//!    stop acknowledging (see `streams`).

use std::{net::SocketAddr, task::Waker, time::Duration};

use bytes::Bytes;
use netsim::Labels;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, EndpointEvent, Event, StreamEvent, Transmit,
};
use units::{ByteCount, Rate, Timestamp};

use crate::{
    clock::Clock,
    error::ConnectionError,
    label,
    log::ConnLog,
    receive::Receive,
    sender::{Gate, SendContext, Sender, SenderStats},
    streams::{Streams, varint},
    tap::{Collect, Collected, Space, TapEvent, WINDOW_CLOSED, WINDOW_OPEN, collect},
};

/// A snapshot of one connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Counters of the sending side.
    pub sender: SenderStats,
    /// The controller's name.
    pub algorithm: &'static str,
    /// The controller's state, by its qlog name.
    pub state: &'static str,
    /// The congestion window.
    pub window: ByteCount,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// Stream bytes that the application handed over and that have never been sent.
    pub unsent: ByteCount,
    /// The pacing rate.
    pub pacing_rate: Rate,
    /// Largest datagram sent at present.
    pub datagram_size: ByteCount,
    /// Smoothed round-trip time (RFC 9002 section 5.3), if measured.
    pub smoothed_rtt: Option<Duration>,
    /// Smallest round-trip time, if measured.
    pub min_rtt: Option<Duration>,
    /// Time that the window stood at its minimum.
    pub time_at_minimum: Duration,
    /// The longest stretch of it.
    pub longest_at_minimum: Duration,
    /// UDP datagrams sent and their payload bytes.
    pub datagrams_sent: u64,
    /// Payload bytes of the datagrams sent.
    pub datagram_bytes_sent: ByteCount,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// Payload bytes of the datagrams received.
    pub datagram_bytes_received: ByteCount,
    /// Bytes of stream data acknowledged or not, without retransmissions, that left.
    pub handshake_done_at: Option<Timestamp>,
    /// Whether TLS has finished.
    pub is_established: bool,
}

pub(crate) struct Conn {
    pub(crate) handle: ConnectionHandle,
    quic: Connection,
    sender: Sender,
    pub(crate) streams: Streams,
    pub(crate) receive: Receive,
    log: Option<ConnLog>,
    collected: Collected,
    clock: Clock,
    /// Send times are unique: quinn-proto names lost packets by them.
    last_sent_at: Timestamp,
    acks: AckClock,
    received: Received,
    /// A timer fired: what leaves through the closed gate now is a probe.
    is_probing: bool,
    has_counted_pto: bool,
    /// The probe timeout may also let a datagram of any packet number space go.
    is_handshake_probe_due: bool,
    /// Something may be waiting for the gate.
    wants_gate: bool,
    overhead: u64,
    mtu_probes_lost: u64,
    close_request: Option<(u64, Bytes)>,
    local_close_code: u64,
    established_at: Option<Timestamp>,
    error: Option<ConnectionError>,
    state_waiters: Vec<Waker>,
    /// Handles that name this connection.
    pub(crate) handle_count: usize,
    pub(crate) is_drained: bool,
    /// In the driver's ready list.
    pub(crate) is_ready: bool,
    pub(crate) timer: Option<Timestamp>,
}

/// What has to be acknowledged in the Data space.
#[derive(Copy, Clone, Debug, Default)]
struct AckClock {
    pending: u32,
    since: Option<Timestamp>,
}

impl AckClock {
    /// RFC 9000 section 13.2.2: an ACK for every second ack-eliciting packet.
    fn is_due(self, now: Timestamp) -> bool {
        self.pending >= 2 || self.is_overdue(now)
    }

    /// RFC 9000 section 13.2.1: within max_ack_delay.
    fn is_overdue(self, now: Timestamp) -> bool {
        self.overdue_at().is_some_and(|at| at <= now)
    }

    fn overdue_at(self) -> Option<Timestamp> {
        Some(self.since? + MAX_ACK_DELAY)
    }

    fn on_sent(&mut self) {
        *self = Self::default();
    }
}

/// The newest packet numbers received in the Data space. quinn-proto drops a duplicate only after
/// the tap has seen it, and nothing has to be acknowledged twice.
#[derive(Copy, Clone, Debug, Default)]
struct Received {
    /// One more than the largest.
    end: u64,
    /// Bit n: `end - 1 - n` was received.
    window: u128,
}

impl Received {
    /// Whether `number` is new; what is too old to be known is not, as in quinn-proto.
    fn insert(&mut self, number: u64) -> bool {
        if let Some(ahead) = (number + 1).checked_sub(self.end).filter(|&n| n > 0) {
            let shift = u32::try_from(ahead).unwrap_or(u32::MAX);
            self.window = self.window.checked_shl(shift).unwrap_or(0) | 1;
            self.end = number + 1;
            return true;
        }
        let age = u32::try_from(self.end - 1 - number).unwrap_or(u32::MAX);
        let bit = 1u128.checked_shl(age).unwrap_or(0);
        let is_new = bit != 0 && self.window & bit == 0;
        self.window |= bit;
        is_new
    }
}

/// quinn-proto's own max_ack_delay (RFC 9000 section 18.2, the default).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// What a new connection is made of.
pub(crate) struct NewConn {
    pub(crate) handle: ConnectionHandle,
    pub(crate) quic: Connection,
    pub(crate) sender: Sender,
    pub(crate) receive: Receive,
    pub(crate) clock: Clock,
    pub(crate) log: Option<ConnLog>,
}

impl Conn {
    pub(crate) fn new(parts: NewConn) -> Self {
        Self {
            handle: parts.handle,
            quic: parts.quic,
            sender: parts.sender,
            streams: Streams::default(),
            receive: parts.receive,
            log: parts.log,
            collected: Collected::default(),
            clock: parts.clock,
            last_sent_at: Timestamp::ZERO,
            acks: AckClock::default(),
            received: Received::default(),
            is_probing: false,
            has_counted_pto: false,
            is_handshake_probe_due: false,
            wants_gate: true,
            // Short header with an 8-byte connection id and a 2-byte number, and the tag; learnt
            // from the first packet.
            overhead: 1 + 8 + 2 + 16,
            mtu_probes_lost: 0,
            close_request: None,
            local_close_code: 0,
            established_at: None,
            error: None,
            state_waiters: Vec::new(),
            handle_count: 0,
            is_drained: false,
            is_ready: false,
            timer: None,
        }
    }

    fn how(&self, window: u64) -> Collect {
        Collect {
            window,
            with_frames: self.log.is_some(),
            ack_delay_exponent: self.sender.peer_ack_delay_exponent(),
        }
    }

    // -- Events in -----------------------------------------------------------------------------

    /// What `Endpoint::accept` already did inside quinn-proto before this object existed.
    pub(crate) fn on_accepted(&mut self, now: Timestamp, tapped: &mut Collected) {
        std::mem::swap(&mut self.collected, tapped);
        self.digest(now);
    }

    pub(crate) fn handle_event(&mut self, now: Timestamp, event: ConnectionEvent) {
        let how = self.how(WINDOW_CLOSED);
        let quic = &mut self.quic;
        collect(&mut self.collected, how, || quic.handle_event(event));
        self.digest(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        let instant = self.clock.instant(now);
        let how = self.how(WINDOW_CLOSED);
        let quic = &mut self.quic;
        collect(&mut self.collected, how, || quic.handle_timeout(instant));
        self.is_probing = true;
        self.has_counted_pto = false;
        self.is_handshake_probe_due = !self.sender.is_confirmed();
        self.digest(now);
    }

    fn digest(&mut self, now: Timestamp) {
        for event in &self.collected.events {
            if let TapEvent::Received(received) = event
                && received.space == Space::Data
                && self.received.insert(received.number)
                && received.is_ack_eliciting
            {
                self.acks.pending += 1;
                self.acks.since.get_or_insert(now);
            }
        }
        self.sender
            .on_feedback(now, &self.clock, &self.collected, self.log.as_mut());
        if self.sender.has_mtu_probe() {
            let lost = self.quic.stats().path.lost_plpmtud_probes;
            if lost > self.mtu_probes_lost {
                self.mtu_probes_lost = lost;
                self.sender.on_mtu_probe_lost();
            }
        }
        self.wants_gate = true;
    }

    /// Passes on what quinn-proto has to say to the application.
    pub(crate) fn poll_events(&mut self, now: Timestamp) -> Milestones {
        let mut milestones = Milestones::default();
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => {
                    self.established_at = Some(now);
                    milestones.is_established = true;
                    if let Some(log) = &mut self.log {
                        log.connection_state(now, qlogs::ConnectionState::HandshakeComplete);
                    }
                    self.wake_state_waiters();
                    // The peer's limits are known now, and quinn-proto says nothing of them.
                    for dir in [Dir::Bi, Dir::Uni] {
                        self.streams.on_available(dir);
                    }
                }
                Event::ConnectionLost { reason } => {
                    let error = ConnectionError::from_quinn(reason, self.local_close_code);
                    self.on_lost(now, error);
                    milestones.is_lost = true;
                }
                Event::Stream(StreamEvent::Opened { dir }) => self.streams.on_opened(dir),
                Event::Stream(StreamEvent::Available { dir }) => self.streams.on_available(dir),
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.receive.on_readable(id, &mut self.quic);
                }
                Event::Stream(StreamEvent::Writable { id }) => self.streams.on_writable(id),
                Event::Stream(StreamEvent::Finished { id }) => self.streams.on_finished(id),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.streams
                        .on_stopped(id, error_code.into_inner(), &mut self.quic);
                }
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
        milestones
    }

    fn on_lost(&mut self, now: Timestamp, error: ConnectionError) {
        if self.error.is_some() {
            return;
        }
        if let Some(log) = &mut self.log {
            log.closed(now, &error);
        }
        self.streams.on_closed(&error);
        self.receive.on_closed();
        self.error = Some(error);
        self.wake_state_waiters();
    }

    fn wake_state_waiters(&mut self) {
        for waker in self.state_waiters.drain(..) {
            waker.wake();
        }
    }

    pub(crate) fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.quic.poll_endpoint_events()
    }

    // -- Datagrams out ---------------------------------------------------------------------------

    /// Does what handles have asked for since the last call.
    pub(crate) fn apply_requests(&mut self, now: Timestamp) {
        if let Some((code, reason)) = self.close_request.take() {
            self.local_close_code = code;
            self.quic
                .close(self.clock.instant(now), varint(code), reason);
            self.on_lost(now, ConnectionError::LocallyClosed { code });
        }
    }

    /// The next datagram, or burst of equal ones, that may leave at `now`.
    pub(crate) fn poll_transmit(&mut self, now: Timestamp, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.sync_mtu(now);
        if self.is_probing {
            if self.has_counted_pto {
                // RFC 9002 section 6.2.4: a probe should carry new data. Only the first one, a PING
                // then, is left to tell that the timer was the probe timeout.
                self.streams
                    .bind(1, self.sender.mtu(), self.overhead, &mut self.quic);
            }
            if let Some(transmit) = self.poll_quic(now, WINDOW_CLOSED, 1, buf) {
                return Some(transmit);
            }
            if self.has_counted_pto && self.is_handshake_probe_due {
                // RFC 9002 section 6.2.4: a probe timeout of one packet number space is an occasion for
                // the others. quinn-proto probes the space whose timer fired; what was lost in another
                // waits for a window that may never open, because the peer cannot acknowledge what fills
                // it before it has that.
                self.is_handshake_probe_due = false;
                if let Some(transmit) = self.poll_quic(now, WINDOW_OPEN, 1, buf) {
                    return Some(transmit);
                }
            }
            self.is_probing = false;
        }
        match self.sender.gate(now) {
            Gate::Open(datagrams) => {
                self.streams.bind(
                    datagrams as u64,
                    self.sender.mtu(),
                    self.overhead,
                    &mut self.quic,
                );
                let sent = self.poll_quic(now, WINDOW_OPEN, datagrams, buf);
                if sent.is_none() {
                    if self.streams.unsent() > 0 {
                        self.sender.count_open_gate_stall();
                    }
                    self.wants_gate = false;
                    let is_blocked = self.streams.waiting() > ByteCount::ZERO;
                    self.sender.on_nothing_to_send(now, is_blocked);
                }
                sent
            }
            Gate::Paced(_) | Gate::WindowFull => self
                .poll_quic(now, WINDOW_CLOSED, 1, buf)
                .or_else(|| self.poll_exempt(now, buf)),
        }
    }

    /// One datagram through the closed gate because an ACK is due and could not leave alone.
    fn poll_exempt(&mut self, now: Timestamp, buf: &mut Vec<u8>) -> Option<Transmit> {
        if !self.acks.is_due(now) || !self.sender.may_exempt(self.acks.is_overdue(now)) {
            return None;
        }
        let is_overdue = self.acks.is_overdue(now);
        let sent = self.poll_quic(now, WINDOW_OPEN, 1, buf);
        // Whether or not the ACK was in it: once per occasion, and once more when it is overdue.
        self.acks.pending = 0;
        if is_overdue {
            self.acks.on_sent();
        }
        if sent.is_some() {
            self.sender.count_exemption();
        }
        sent
    }

    fn poll_quic(
        &mut self,
        now: Timestamp,
        window: u64,
        datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let sent_at = now.max(self.last_sent_at + Duration::from_nanos(1));
        let instant = self.clock.instant(sent_at);
        let how = self.how(window);
        let quic = &mut self.quic;
        let transmit = collect(&mut self.collected, how, || {
            quic.poll_transmit(instant, datagrams, buf)
        });
        if transmit.is_none() && self.collected.events.is_empty() {
            return None;
        }
        self.last_sent_at = sent_at;
        let mut elicits = false;
        let mut is_mtu_probe = false;
        for event in &self.collected.events {
            match event {
                TapEvent::StreamSent { id, end, length } => {
                    let again = self.streams.on_frame_sent(*id, *end, *length);
                    self.sender.count_retransmitted(again);
                }
                TapEvent::Sent(sent) => {
                    elicits |= sent.is_ack_eliciting;
                    is_mtu_probe |= self.sender.is_mtu_probe(sent);
                    if sent.space == Space::Data {
                        self.overhead = u64::from(sent.header_length) + TAG_LENGTH;
                        if sent.has_ack {
                            self.acks.on_sent();
                        }
                    }
                }
                _ => {}
            }
        }
        let is_pto_probe = self.is_probing && elicits && !is_mtu_probe;
        if is_pto_probe && !self.has_counted_pto {
            self.has_counted_pto = true;
            self.sender.on_pto(sent_at);
        }
        let context = SendContext {
            is_app_limited: !self.streams.has_queued() && self.streams.unsent() == 0,
            is_pto_probe,
        };
        self.sender
            .on_transmitted(sent_at, &self.collected, context, self.log.as_mut());
        if elicits {
            self.wants_gate = true;
        }
        transmit
    }

    /// What each datagram of the transmit just polled carries, and the state it left in.
    pub(crate) fn label(&self, transmit: &Transmit, out: &mut Vec<Labels>) {
        let state = label::of_state(self.sender.controller().state());
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        let mut labels = state;
        let mut length = 0;
        for event in &self.collected.events {
            let TapEvent::Sent(sent) = event else {
                continue;
            };
            labels = labels | label::of_packet(sent);
            length += sent.length as usize;
            if length >= segment {
                out.push(labels);
                (labels, length) = (state, 0);
            }
        }
        if length > 0 {
            out.push(labels);
        }
    }

    fn sync_mtu(&mut self, now: Timestamp) {
        let mtu = self.quic.current_mtu();
        if ByteCount::new(u64::from(mtu)) != self.sender.mtu() {
            self.sender.on_mtu_changed(now, mtu, self.log.as_mut());
        }
    }

    /// When this connection next wants to be looked at without anything arriving.
    pub(crate) fn deadline(&mut self, now: Timestamp) -> Option<Timestamp> {
        let timer = self
            .quic
            .poll_timeout()
            .map(|instant| self.clock.timestamp(instant));
        let release = match self.sender.gate(now) {
            Gate::Paced(at) if self.wants_gate || self.streams.has_queued() => Some(at),
            _ => None,
        };
        // quinn-proto arms no timer for an ACK that it wants to send at once, and a closed gate may
        // hold that ACK back.
        let acks = self.acks.overdue_at().filter(|&at| at > now);
        [timer, release, acks].into_iter().flatten().min()
    }

    /// quinn-proto's own next deadline.
    pub(crate) fn is_timer_due(&mut self, now: Timestamp) -> bool {
        let instant = self.clock.instant(now);
        self.quic.poll_timeout().is_some_and(|due| due <= instant)
    }

    // -- For handles -----------------------------------------------------------------------------

    pub(crate) fn quic_and_streams(&mut self) -> (&mut Connection, &mut Streams) {
        (&mut self.quic, &mut self.streams)
    }

    pub(crate) fn quic_and_receive(&mut self) -> (&mut Connection, &mut Receive) {
        (&mut self.quic, &mut self.receive)
    }

    pub(crate) fn open(&mut self, dir: Dir, waker: &Waker) -> Option<quinn_proto::StreamId> {
        let Some(id) = self.quic.streams().open(dir) else {
            self.streams.await_open(dir, waker);
            return None;
        };
        self.streams.add(id);
        if dir == Dir::Bi {
            self.receive.add(id);
        }
        Some(id)
    }

    pub(crate) fn accept(&mut self, dir: Dir, waker: &Waker) -> Option<quinn_proto::StreamId> {
        let Some(id) = self.quic.streams().accept(dir) else {
            self.streams.await_accept(dir, waker);
            return None;
        };
        if dir == Dir::Bi {
            self.streams.add(id);
        }
        self.receive.add(id);
        Some(id)
    }

    pub(crate) fn await_state(&mut self, waker: &Waker) {
        if !self.state_waiters.iter().any(|w| w.will_wake(waker)) {
            self.state_waiters.push(waker.clone());
        }
    }

    pub(crate) fn request_close(&mut self, code: u64, reason: &[u8]) {
        if self.error.is_none() && self.close_request.is_none() {
            self.close_request = Some((code, Bytes::copy_from_slice(reason)));
        }
    }

    pub(crate) fn is_established(&self) -> bool {
        self.established_at.is_some()
    }

    pub(crate) fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    pub(crate) fn remote_address(&self) -> SocketAddr {
        self.quic.remote_address()
    }

    pub(crate) fn is_client(&self) -> bool {
        self.quic.side().is_client()
    }

    /// The negotiated application protocol, once known.
    pub(crate) fn alpn(&self) -> Option<Vec<u8>> {
        let data = self.quic.crypto_session().handshake_data()?;
        let data = data
            .downcast::<quinn_proto::crypto::rustls::HandshakeData>()
            .ok()?;
        data.protocol
    }

    #[cfg(test)]
    pub(crate) fn ledger_length(&self) -> usize {
        self.sender.ledger_length()
    }

    pub(crate) fn finish_log(&mut self) {
        if let Some(log) = self.log.take() {
            log.finish();
        }
    }

    pub(crate) fn stats(&self, now: Timestamp) -> ConnectionStats {
        let quic = self.quic.stats();
        let (time_at_minimum, longest_at_minimum) = self.sender.time_at_minimum(now);
        let controller = self.sender.controller();
        ConnectionStats {
            sender: self.sender.stats(),
            algorithm: controller.name(),
            state: controller.state().as_str(),
            window: controller.window(),
            in_flight: self.sender.in_flight(),
            unsent: self.streams.waiting(),
            pacing_rate: self.sender.pacing_rate(),
            datagram_size: self.sender.mtu(),
            smoothed_rtt: self.sender.rtt().smoothed(),
            min_rtt: self.sender.rtt().minimum(),
            time_at_minimum,
            longest_at_minimum,
            datagrams_sent: quic.udp_tx.datagrams,
            datagram_bytes_sent: ByteCount::new(quic.udp_tx.bytes),
            datagrams_received: quic.udp_rx.datagrams,
            datagram_bytes_received: ByteCount::new(quic.udp_rx.bytes),
            handshake_done_at: self.established_at,
            is_established: self.established_at.is_some(),
        }
    }
}

/// What happened that the driver cares about.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Milestones {
    pub(crate) is_established: bool,
    pub(crate) is_lost: bool,
}

/// Every AEAD of TLS 1.3 has a 16-byte tag (RFC 9001 section 5.3).
const TAG_LENGTH: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_received_number_is_new_once_in_whatever_order_it_comes() {
        let mut received = Received::default();
        let numbers = [
            0, 3, 1, 3, 0, 2, 130, 2, 3, 129, 129, 1_000, 872, 873, 873, 871,
        ];
        let new = numbers.map(|number| received.insert(number));
        let expected = [
            true, true, true, false, false, true, // 0, 3, 1; 3 and 0 again; 2
            true, false, false, true, false, // 130; 2 is beyond the window, 3 is known; 129
            true, false, true, false,
            false, // 1000; 872 is beyond; 873 is its edge; 871 is beyond
        ];
        assert_eq!(new, expected);
    }
}
