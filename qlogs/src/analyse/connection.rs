//! One connection, rebuilt from its log: what is in flight, what may be sent, what was lost.
//!
//! Where the log has `bytes_in_flight`, that is believed; between two of those, and where it has none, packets
//! are counted. RTT samples are taken as RFC 9002 section 5.1 has it, from the packets and their
//! acknowledgments, because a log need not repeat a sample that equals the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::header::VantagePoint;
use crate::ranges::Ranges;
use crate::read::event::{Event, Frame, Metrics, Packet, PacketId};
use crate::schema::Owner;

/// What is assumed of datagrams until one was seen (RFC 9000 section 14).
const SMALLEST_DATAGRAM: u64 = 1_200;

/// The largest value of `max_udp_payload_size` that means something (RFC 9000 section 18.2).
const LARGEST_DATAGRAM: u64 = 65_527;

/// The connection after the records so far.
#[derive(Debug)]
pub(crate) struct Connection {
    side: Option<VantagePoint>,
    /// What is in flight, as far as packets tell.
    outstanding: BTreeMap<PacketId, Outstanding>,
    outstanding_bytes: u64,
    /// Declared lost and not acknowledged since.
    lost: BTreeSet<PacketId>,
    /// The packet numbers received, by space.
    pub(crate) received_numbers: BTreeMap<u8, Ranges>,
    /// `bytes_in_flight` of the log, with what was sent since.
    in_flight: Option<u64>,
    pub(crate) window: Option<u64>,
    minimum_window: Option<u64>,
    datagram: u64,
    pub(crate) pacing_rate: Option<Rate>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) state: Option<String>,
    pub(crate) controller: Option<String>,
    pub(crate) pto_count: u64,
    pub(crate) handshake_done_at: Option<Timestamp>,
    pub(crate) closed_at: Option<Timestamp>,
    /// Whether data was said to wait, and for what.
    pub(crate) blocked: Option<String>,
    flow: Flow,
    received: BTreeMap<u64, Ranges>,
    acked: BTreeMap<u64, Ranges>,
    pub(crate) counts: Counts,
    pub(crate) rtts: Vec<Duration>,
}

/// A packet in flight.
#[derive(Debug)]
struct Outstanding {
    at: Timestamp,
    length: u64,
    /// Stream, first byte, byte after the last.
    data: Vec<(u64, u64, u64)>,
}

/// The limits the peer has given, and how much of them is used.
#[derive(Debug, Default)]
struct Flow {
    limit: Option<u64>,
    used: u64,
    /// What a new stream gets: opened by the peer, opened by us, ours in one direction.
    initial: [Option<u64>; 3],
    streams: BTreeMap<u64, Stream>,
    /// Streams that have used up their limit and are not at their end.
    full: BTreeSet<u64>,
    /// A frame has said so, and no limit was raised since.
    is_told: bool,
}

#[derive(Debug, Default)]
struct Stream {
    sent: Ranges,
    end: u64,
    limit: Option<u64>,
    is_finished: bool,
}

/// What is counted over the whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    /// Sent and in need of an acknowledgment: what can be lost.
    pub(crate) eliciting_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) lost_bytes: u64,
    /// Of packets that were not declared lost before.
    pub(crate) acked_bytes: u64,
    pub(crate) spurious_packets: u64,
    pub(crate) stream_bytes_sent: u64,
    pub(crate) stream_bytes_repeated: u64,
    pub(crate) stream_bytes_acked: u64,
    pub(crate) stream_bytes_received: u64,
    pub(crate) probe_timeouts: u64,
    pub(crate) most_probe_timeouts: u64,
    pub(crate) blocked_frames: u64,
    pub(crate) persistent_congestions: u64,
}

/// What one record changed.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Bytes that went in flight with new or repeated stream data, or otherwise.
    pub(crate) sent: Option<u64>,
    pub(crate) is_probe: bool,
    /// A probe timeout expired.
    pub(crate) is_timeout: bool,
    /// The packets newly acknowledged: how many, and when the latest of them was sent.
    pub(crate) acked: u64,
    pub(crate) latest_acked_sent_at: Option<Timestamp>,
    pub(crate) lost: Option<PacketId>,
    /// An ACK frame came with a higher count of CE marks than before, or may have.
    pub(crate) is_received: bool,
    pub(crate) state: Option<StateChange>,
    /// An RTT sample.
    pub(crate) rtt: Option<Duration>,
}

/// A change of the congestion state.
#[derive(Debug, Clone)]
pub(crate) struct StateChange {
    pub(crate) new: String,
    pub(crate) trigger: Option<String>,
}

impl Connection {
    pub(crate) fn new(side: Option<VantagePoint>) -> Self {
        Self {
            side,
            outstanding: BTreeMap::new(),
            outstanding_bytes: 0,
            lost: BTreeSet::new(),
            received_numbers: BTreeMap::new(),
            in_flight: None,
            window: None,
            minimum_window: None,
            datagram: SMALLEST_DATAGRAM,
            pacing_rate: None,
            min_rtt: None,
            smoothed_rtt: None,
            state: None,
            controller: None,
            pto_count: 0,
            handshake_done_at: None,
            closed_at: None,
            blocked: None,
            flow: Flow::default(),
            received: BTreeMap::new(),
            acked: BTreeMap::new(),
            counts: Counts::default(),
            rtts: Vec::new(),
        }
    }

    pub(crate) fn on_event(&mut self, at: Timestamp, event: &Event) -> Change {
        let mut change = Change::default();
        match event {
            Event::PacketSent(packet) => self.on_sent(at, packet, &mut change),
            Event::PacketReceived(packet) => self.on_received(at, packet, &mut change),
            Event::PacketLost { id, .. } => {
                self.counts.lost_packets += 1;
                if let Some(id) = id {
                    change.lost = Some(*id);
                    if let Some(packet) = self.outstanding.remove(id) {
                        self.outstanding_bytes -= packet.length;
                        self.counts.lost_bytes += packet.length;
                    }
                    self.lost.insert(*id);
                }
            }
            Event::Metrics(metrics) => self.on_metrics(metrics, &mut change),
            Event::CongestionState { new, trigger, .. } => {
                let trigger = trigger.clone();
                if trigger.as_deref() == Some("persistent_congestion") {
                    self.counts.persistent_congestions += 1;
                }
                change.state = Some(StateChange {
                    new: new.clone(),
                    trigger,
                });
                self.state = Some(new.clone());
            }
            Event::RecoveryParameters {
                controller,
                minimum_window,
                datagram_size,
            } => {
                self.controller = controller.clone().or(self.controller.take());
                self.minimum_window = minimum_window
                    .map(ByteCount::as_u64)
                    .or(self.minimum_window);
                if let Some(size) = datagram_size {
                    self.datagram = self.datagram.max(size.as_u64().min(LARGEST_DATAGRAM));
                }
            }
            Event::Parameters {
                owner: Some(Owner::Remote),
                max_data,
                max_stream_data_bidi_local,
                max_stream_data_bidi_remote,
                max_stream_data_uni,
            } => {
                self.flow.raise(*max_data);
                self.flow.initial = [
                    *max_stream_data_bidi_local,
                    *max_stream_data_bidi_remote,
                    *max_stream_data_uni,
                ];
            }
            Event::ConnectionState(new) => match new.as_str() {
                "handshake_complete" | "handshake_completed" | "handshake_confirmed" => {
                    self.handshake_done_at.get_or_insert(at);
                }
                "closing" | "draining" | "closed" => {
                    self.closed_at.get_or_insert(at);
                }
                _ => {}
            },
            Event::Closed => {
                self.closed_at.get_or_insert(at);
            }
            Event::PtoExpired => {
                self.timed_out(self.pto_count.saturating_add(1), &mut change);
            }
            Event::Blocked { is_blocked, reason } => {
                self.blocked = is_blocked.then(|| reason.clone().unwrap_or_default());
            }
            _ => {}
        }
        change
    }

    fn on_sent(&mut self, at: Timestamp, packet: &Packet, change: &mut Change) {
        let length = packet.length.map_or(0, ByteCount::as_u64);
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += length;
        self.datagram = self.datagram.max(length.min(LARGEST_DATAGRAM));
        if packet.id.is_some_and(|id| id.space == 2) && self.is_before_handshake() {
            // Logs without states of the connection: the first packet of this kind ends the handshake.
            let has_data = packet
                .frames()
                .iter()
                .any(|frame| matches!(frame, Frame::Stream { .. }));
            if has_data && packet.ty == Some(crate::schema::PacketType::OneRtt) {
                self.handshake_done_at = Some(at);
            }
        }
        for frame in packet.frames() {
            if matches!(frame, Frame::DataBlocked) {
                self.counts.blocked_frames += 1;
                self.flow.is_told = true;
            }
        }
        let mut data = Vec::new();
        for frame in packet.frames() {
            let Frame::Stream {
                stream_id,
                offset,
                length,
                fin,
            } = *frame
            else {
                continue;
            };
            let length = length.unwrap_or(0);
            let end = offset.saturating_add(length);
            data.push((stream_id, offset, end));
            let is_ours = self.opens(stream_id);
            let new = self.flow.on_data(stream_id, is_ours, (offset, end), fin);
            self.counts.stream_bytes_sent += length;
            self.counts.stream_bytes_repeated += length - new.min(length);
        }
        let Some(id) = packet.id.filter(|_| packet.is_in_flight()) else {
            return;
        };
        self.counts.eliciting_packets += 1;
        change.sent = Some(length);
        change.is_probe = packet.is_pto_probe || packet.is_mtu_probe;
        if packet.is_pto_probe && self.pto_count == 0 {
            // The count itself is logged behind the packet.
            change.is_timeout = true;
        }
        let packet = Outstanding { at, length, data };
        if let Some(known) = self.outstanding.insert(id, packet) {
            self.outstanding_bytes -= known.length;
        }
        self.outstanding_bytes += length;
        self.in_flight = self.in_flight.map(|bytes| bytes.saturating_add(length));
    }

    fn on_received(&mut self, at: Timestamp, packet: &Packet, change: &mut Change) {
        self.counts.received_packets += 1;
        self.counts.received_bytes += packet.length.map_or(0, ByteCount::as_u64);
        change.is_received = true;
        let Some(id) = packet.id else { return };
        let numbers = self.received_numbers.entry(id.space).or_default();
        numbers.insert(id.number, id.number.saturating_add(1));
        for frame in packet.frames() {
            match frame {
                Frame::Ack(ranges) => self.on_ack(at, id.space, ranges, change),
                Frame::MaxData(limit) => self.flow.raise(Some(*limit)),
                Frame::MaxStreamData(stream, limit) => self.flow.raise_stream(*stream, *limit),
                Frame::Stream {
                    stream_id,
                    offset,
                    length: Some(length),
                    ..
                } => {
                    let stream = self.received.entry(*stream_id).or_default();
                    let new = stream.insert(*offset, offset.saturating_add(*length));
                    let sum = self.counts.stream_bytes_received.saturating_add(new);
                    self.counts.stream_bytes_received = sum;
                }
                _ => {}
            }
        }
    }

    fn on_ack(&mut self, at: Timestamp, space: u8, ranges: &[(u64, u64)], change: &mut Change) {
        let largest = ranges.iter().map(|(_, high)| *high).max();
        for (low, high) in ranges {
            let of = |number: u64| PacketId { space, number };
            while let Some((&id, _)) = self.outstanding.range(of(*low)..=of(*high)).next() {
                let Some(packet) = self.outstanding.remove(&id) else {
                    break;
                };
                self.outstanding_bytes -= packet.length;
                self.counts.acked_bytes += packet.length;
                change.acked += 1;
                change.latest_acked_sent_at = change.latest_acked_sent_at.max(Some(packet.at));
                if largest == Some(id.number) {
                    change.rtt = Some(at.saturating_since(packet.at));
                }
                for (stream, from, until) in packet.data {
                    let acked = self.acked.entry(stream).or_default();
                    self.counts.stream_bytes_acked += acked.insert(from, until);
                }
            }
            while let Some(&id) = self.lost.range(of(*low)..=of(*high)).next() {
                self.lost.remove(&id);
                self.counts.spurious_packets += 1;
            }
        }
        if let Some(rtt) = change.rtt {
            self.rtts.push(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if change.acked > 0 {
            self.in_flight = self.in_flight.map(|_| self.outstanding_bytes);
        }
    }

    fn on_metrics(&mut self, metrics: &Metrics, change: &mut Change) {
        if let Some(rtt) = metrics.latest_rtt
            && self.counts.eliciting_packets == 0
        {
            // A log without packets.
            self.rtts.push(rtt);
            change.rtt = Some(rtt);
        }
        self.min_rtt = match (metrics.min_rtt, self.min_rtt) {
            (Some(new), Some(old)) => Some(new.min(old)),
            (new, old) => new.or(old),
        };
        self.smoothed_rtt = metrics.smoothed_rtt.or(self.smoothed_rtt);
        let bytes = |new: Option<ByteCount>, old| new.map(ByteCount::as_u64).or(old);
        self.window = bytes(metrics.window, self.window);
        self.in_flight = bytes(metrics.in_flight, self.in_flight);
        self.pacing_rate = metrics.pacing_rate.or(self.pacing_rate);
        if let Some(count) = metrics.pto_count {
            if count > self.pto_count {
                self.timed_out(count, change);
            }
            self.pto_count = count;
        }
    }

    fn timed_out(&mut self, count: u64, change: &mut Change) {
        let more = count.saturating_sub(self.pto_count);
        self.counts.probe_timeouts = self.counts.probe_timeouts.saturating_add(more);
        self.counts.most_probe_timeouts = self.counts.most_probe_timeouts.max(count);
        self.pto_count = count;
        change.is_timeout = true;
    }

    /// Whether the side that logs opens streams with this number (RFC 9000 section 2.1).
    fn opens(&self, stream: u64) -> bool {
        let by_server = stream & 1 == 1;
        by_server == (self.side == Some(VantagePoint::Server))
    }

    pub(crate) const fn is_before_handshake(&self) -> bool {
        self.handshake_done_at.is_none()
    }

    /// The bytes in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.unwrap_or(self.outstanding_bytes)
    }

    /// Whether one more full datagram would not fit the window.
    pub(crate) fn is_full(&self) -> bool {
        self.window
            .is_some_and(|window| self.in_flight().saturating_add(self.datagram) > window)
    }

    /// The smallest window the controller allows: as the log says, else two datagrams
    /// (RFC 9002 section 7.2).
    pub(crate) fn minimum_window(&self) -> u64 {
        self.minimum_window.unwrap_or(2 * self.datagram)
    }

    pub(crate) const fn datagram(&self) -> u64 {
        self.datagram
    }

    /// Whether the peer's limits keep data back.
    pub(crate) fn is_flow_blocked(&self) -> bool {
        self.flow.is_blocked()
    }

    /// Whether the congestion state is one in which the window rests after a cut.
    pub(crate) fn is_in_recovery(&self) -> bool {
        self.state.as_deref() == Some("recovery")
    }
}

impl Flow {
    fn raise(&mut self, limit: Option<u64>) {
        if limit > self.limit {
            self.limit = limit;
            self.is_told = false;
        }
    }

    fn raise_stream(&mut self, stream: u64, limit: u64) {
        let entry = self.streams.entry(stream).or_default();
        if Some(limit) > entry.limit {
            entry.limit = Some(limit);
            self.is_told = false;
            self.full.remove(&stream);
        }
    }

    /// Enters data that was sent and says how much of it is new.
    fn on_data(&mut self, id: u64, is_ours: bool, (from, until): (u64, u64), fin: bool) -> u64 {
        let [from_peer, ours, one_way] = self.initial;
        let initial = match (id & 2 == 2, is_ours) {
            (true, _) => one_way,
            (false, true) => ours,
            (false, false) => from_peer,
        };
        let stream = self.streams.entry(id).or_default();
        stream.limit = stream.limit.max(initial);
        let new = stream.sent.insert(from, until);
        let more = until.saturating_sub(stream.end);
        self.used = self.used.saturating_add(more);
        stream.end = stream.end.max(until);
        stream.is_finished |= fin;
        let is_full = stream.limit.is_some_and(|limit| stream.end >= limit) && !stream.is_finished;
        if is_full {
            self.full.insert(id);
        } else {
            self.full.remove(&id);
        }
        new
    }

    fn is_blocked(&self) -> bool {
        self.is_told
            || !self.full.is_empty()
            || self
                .limit
                .is_some_and(|limit| limit > 0 && self.used >= limit)
    }
}
