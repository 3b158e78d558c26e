//! The packet tap: sees every packet in plaintext, and every call that quinn-proto makes to its
//! congestion controller, without changing quinn-proto.
//!
//! ```text
//!   driver ── collect(|| connection.handle_event(..)) ──> quinn-proto
//!                ^                                          |  crypto::PacketKey::{encrypt, decrypt}
//!                └────── events, in order ──── thread-local <┘  congestion::Controller::{on_*, window}
//! ```
//!
//! quinn-proto calls its crypto keys and its controller synchronously, inside the one call that the
//! driver makes. So the wrappers need no state of their own and no lock: they append to one
//! thread-local list, which the driver arms before the call and takes after it. Outside a
//! collection nothing is recorded.

use std::{
    any::Any,
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

use bytes::BytesMut;
use netsim::Labels;
use quinn_proto::{
    ConnectError, ConnectionId, Side, TransportError,
    congestion::{Controller, ControllerFactory, ControllerMetrics},
    crypto::{
        self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
        UnsupportedVersion,
    },
    transport_parameters::TransportParameters,
};

use crate::frame::{Frame, Frames};
use crate::label;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Initial,
    Handshake,
    Data,
}

impl Space {
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Initial => 0,
            Self::Handshake => 1,
            Self::Data => 2,
        }
    }
}

/// One thing that happened inside a collected call, in the order in which it happened.
#[derive(Debug)]
pub(crate) enum TapEvent {
    /// A STREAM frame of the packet whose `Sent` follows.
    StreamSent { id: u64, end: u64, length: u64 },
    /// A packet was sealed.
    Sent(SentPacket),
    /// A packet was opened and authenticated.
    Received(ReceivedPacket),
    /// quinn-proto has taken the acknowledged packets of one ACK frame out of flight.
    AcksDone { in_flight: u64 },
    /// quinn-proto declared packets lost; `sent_at` is the newest one's send time.
    Lost {
        sent_at: Instant,
        is_persistent: bool,
        bytes: u64,
    },
    /// The peer's count of CE marks rose.
    EcnCe,
    /// The path's largest datagram changed.
    MtuChanged(u16),
    /// The keys of a space are gone, and what was in flight in it with them.
    KeysDropped(Space),
    /// The peer's transport parameters were parsed, as sent.
    PeerParameters(Vec<u8>),
}

/// A packet as it was sealed.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SentPacket {
    pub(crate) space: Space,
    pub(crate) number: u64,
    /// Whole packet, tag included.
    pub(crate) length: u32,
    pub(crate) header_length: u32,
    pub(crate) is_ack_eliciting: bool,
    pub(crate) is_padded: bool,
    pub(crate) has_ack: bool,
    /// Nothing but PING and PADDING: what an MTU probe looks like (RFC 9000 section 14.4).
    pub(crate) is_ping_only: bool,
    /// Bytes of stream payload.
    pub(crate) stream_bytes: u32,
    /// One of each frame type in it.
    pub(crate) frame_labels: Labels,
    pub(crate) frames: (u32, u32),
}

/// A packet as it was opened.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReceivedPacket {
    pub(crate) space: Space,
    pub(crate) number: u64,
    pub(crate) length: u32,
    pub(crate) is_ack_eliciting: bool,
    pub(crate) ack: Option<ReceivedAck>,
    pub(crate) frames: (u32, u32),
}

/// The ACK frame of a received packet; the ranges are in [`Collected::ranges`].
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReceivedAck {
    pub(crate) delay: u64,
    pub(crate) ce: Option<u64>,
    pub(crate) ranges: (u32, u32),
}

/// What one collected call left behind. Reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) events: Vec<TapEvent>,
    /// `(low, high)` inclusive, each ACK's from the highest down.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Filled only when the collection asks for frames.
    pub(crate) frames: Vec<qlogs::Frame>,
    /// The destination connection id from which the Initial keys were made.
    pub(crate) initial_dcid: Option<ConnectionId>,
}

impl Collected {
    fn clear(&mut self) {
        self.events.clear();
        self.ranges.clear();
        self.frames.clear();
        self.initial_dcid = None;
    }
}

/// How a collection is to be done.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Collect {
    /// What the controller reports as its window; see [`WINDOW_OPEN`] and [`WINDOW_CLOSED`].
    pub(crate) window: u64,
    /// Keep every frame, for the log.
    pub(crate) with_frames: bool,
    /// To scale the acknowledgement delay of our own ACK frames in the log.
    pub(crate) ack_delay_exponent: u32,
}

/// A window that never binds, and for which quinn-proto's own pacer never waits: it caps its token
/// bucket by this value, so the bucket is never empty and its timer is never armed.
pub(crate) const WINDOW_OPEN: u64 = u32::MAX as u64 + (1 << 40);
/// A window under which no ack-eliciting packet leaves, except probes. Zero would trip a debug
/// assertion in quinn-proto's pacer.
pub(crate) const WINDOW_CLOSED: u64 = 1;

struct Armed {
    how: Collect,
    collected: Collected,
}

thread_local! {
    static TAP: RefCell<Option<Armed>> = const { RefCell::new(None) };
}

/// Runs `call` with the tap armed, and hands what it recorded to `collected`.
///
/// Collections do not nest: quinn-proto never calls back into a driver.
pub(crate) fn collect<R>(collected: &mut Collected, how: Collect, call: impl FnOnce() -> R) -> R {
    collected.clear();
    TAP.with_borrow_mut(|tap| {
        debug_assert!(tap.is_none(), "collections do not nest");
        *tap = Some(Armed {
            how,
            collected: std::mem::take(collected),
        });
    });
    let result = call();
    TAP.with_borrow_mut(|tap| {
        if let Some(armed) = tap.take() {
            *collected = armed.collected;
        }
    });
    result
}

/// Appends to the armed collection, if there is one. `try_with`: keys may be dropped while a thread
/// is being torn down.
fn record(f: impl FnOnce(&Collect, &mut Collected)) {
    let _ = TAP.try_with(|tap| {
        if let Ok(mut tap) = tap.try_borrow_mut()
            && let Some(armed) = tap.as_mut()
        {
            f(&armed.how, &mut armed.collected);
        }
    });
}

// ---------------------------------------------------------------------------------------------
// Crypto wrappers

/// Wraps a server's crypto configuration so that its sessions are tapped.
pub(crate) struct TappedServer(pub(crate) Arc<dyn crypto::ServerConfig>);

impl crypto::ServerConfig for TappedServer {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(tap_keys(
            self.0.initial_keys(version, dst_cid)?,
            Space::Initial,
        ))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(TappedSession::new(
            self.0.clone().start_session(version, params),
        ))
    }
}

/// Wraps a client's crypto configuration so that its sessions are tapped.
pub(crate) struct TappedClient(pub(crate) Arc<dyn crypto::ClientConfig>);

impl crypto::ClientConfig for TappedClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = self.0.clone().start_session(version, server_name, params)?;
        Ok(Box::new(TappedSession::new(session)))
    }
}

struct TappedSession {
    inner: Box<dyn Session>,
    /// 0: the next keys are for the Handshake space; later ones are for the Data space.
    key_phase: u8,
    /// Whether the peer's parameters were recorded; the trait reads them through `&self`.
    has_reported: AtomicU8,
}

impl TappedSession {
    fn new(inner: Box<dyn Session>) -> Self {
        Self {
            inner,
            key_phase: 0,
            has_reported: AtomicU8::new(0),
        }
    }
}

impl Session for TappedSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        record(|_, out| out.initial_dcid = Some(*dst_cid));
        tap_keys(self.inner.initial_keys(dst_cid, side), Space::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.inner.early_crypto()?;
        Some((header, tap_key(packet, Space::Data)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let params = self.inner.transport_parameters()?;
        if let Some(params) = &params
            && self.has_reported.swap(1, Ordering::Relaxed) == 0
        {
            record(|_, out| {
                let mut bytes = Vec::new();
                params.write(&mut bytes);
                out.events.push(TapEvent::PeerParameters(bytes));
            });
        }
        Ok(params)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        let space = if self.key_phase == 0 {
            Space::Handshake
        } else {
            Space::Data
        };
        self.key_phase = 1;
        Some(tap_keys(keys, space))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(KeyPair {
            local: tap_key(keys.local, Space::Data),
            remote: tap_key(keys.remote, Space::Data),
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

fn tap_keys(keys: Keys, space: Space) -> Keys {
    Keys {
        header: keys.header,
        packet: KeyPair {
            local: tap_key(keys.packet.local, space),
            remote: tap_key(keys.packet.remote, space),
        },
    }
}

fn tap_key(inner: Box<dyn PacketKey>, space: Space) -> Box<dyn PacketKey> {
    Box::new(TappedKey { inner, space })
}

struct TappedKey {
    inner: Box<dyn PacketKey>,
    space: Space,
}

impl Drop for TappedKey {
    fn drop(&mut self) {
        // Data keys come and go with key updates; only the handshake's spaces are ever discarded.
        if self.space != Space::Data {
            record(|_, out| out.events.push(TapEvent::KeysDropped(self.space)));
        }
    }
}

impl PacketKey for TappedKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        record(|how, out| {
            let end = buf.len().saturating_sub(self.inner.tag_len());
            let payload = buf.get(header_len..end).unwrap_or_default();
            let sent = sent_packet(how, out, self.space, packet, header_len, buf.len(), payload);
            out.events.push(TapEvent::Sent(sent));
        });
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(packet, header, payload)?;
        record(|how, out| {
            let received = received_packet(how, out, self.space, packet, length, payload);
            out.events.push(TapEvent::Received(received));
        });
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

fn sent_packet(
    how: &Collect,
    out: &mut Collected,
    space: Space,
    number: u64,
    header_length: usize,
    length: usize,
    payload: &[u8],
) -> SentPacket {
    let first_frame = index(out.frames.len());
    let mut sent = SentPacket {
        space,
        number,
        length: index(length),
        header_length: index(header_length),
        is_ack_eliciting: false,
        is_padded: false,
        has_ack: false,
        is_ping_only: true,
        stream_bytes: 0,
        frame_labels: Labels::default(),
        frames: (first_frame, first_frame),
    };
    for frame in Frames::new(payload) {
        sent.is_ack_eliciting |= frame.is_ack_eliciting();
        sent.frame_labels = sent.frame_labels | label::of_frame(&frame);
        match frame {
            Frame::Padding(_) => sent.is_padded = true,
            Frame::Ack(_) => sent.has_ack = true,
            Frame::Stream {
                id, offset, length, ..
            } => {
                sent.stream_bytes += u32::try_from(length).unwrap_or(u32::MAX);
                out.events.push(TapEvent::StreamSent {
                    id,
                    end: offset + length,
                    length,
                });
            }
            _ => {}
        }
        sent.is_ping_only &= matches!(
            frame,
            Frame::Padding(_)
                | Frame::Other {
                    ty: crate::frame::ty::PING | crate::frame::ty::IMMEDIATE_ACK,
                    ..
                }
        );
        if how.with_frames {
            out.frames.push(frame.to_log(OWN_ACK_DELAY_EXPONENT));
        }
    }
    sent.frames.1 = index(out.frames.len());
    sent
}

/// quinn-proto always uses the default exponent for its own ACKs (RFC 9000 section 18.2).
const OWN_ACK_DELAY_EXPONENT: u32 = 3;

fn received_packet(
    how: &Collect,
    out: &mut Collected,
    space: Space,
    number: u64,
    length: usize,
    payload: &[u8],
) -> ReceivedPacket {
    let first_frame = index(out.frames.len());
    let mut received = ReceivedPacket {
        space,
        number,
        length: index(length),
        is_ack_eliciting: false,
        ack: None,
        frames: (first_frame, first_frame),
    };
    for frame in Frames::new(payload) {
        received.is_ack_eliciting |= frame.is_ack_eliciting();
        if let Frame::Ack(ack) = frame {
            let first = index(out.ranges.len());
            out.ranges.extend(ack.ranges());
            received.ack = Some(ReceivedAck {
                delay: ack.delay,
                ce: ack.ecn.map(|(_, _, ce)| ce),
                ranges: (first, index(out.ranges.len())),
            });
        }
        if how.with_frames {
            out.frames.push(frame.to_log(how.ack_delay_exponent));
        }
    }
    received.frames.1 = index(out.frames.len());
    received
}

/// Lists of one call are far shorter than 2^32.
fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

// ---------------------------------------------------------------------------------------------
// Controller shim

/// Stands in for a controller inside quinn-proto: reports the gate's window and records every call.
///
/// It has no state, so a path migration may clone or rebuild it freely.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ControllerShim;

impl ControllerFactory for ControllerShim {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for ControllerShim {
    fn on_end_acks(
        &mut self,
        _now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        record(|_, out| out.events.push(TapEvent::AcksDone { in_flight }));
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        record(|_, out| {
            // RFC 9002 section 7.1: zero lost bytes is quinn-proto's way to say ECN-CE.
            out.events.push(if lost_bytes == 0 {
                TapEvent::EcnCe
            } else {
                TapEvent::Lost {
                    sent_at: sent,
                    is_persistent: is_persistent_congestion,
                    bytes: lost_bytes,
                }
            });
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        record(|_, out| out.events.push(TapEvent::MtuChanged(new_mtu)));
    }

    fn window(&self) -> u64 {
        let mut window = WINDOW_CLOSED;
        record(|how, _| window = how.window);
        window
    }

    fn metrics(&self) -> ControllerMetrics {
        ControllerMetrics::default()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        WINDOW_OPEN
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
