//! Two bare quinn-proto endpoints with our tap and shim, no driver: what the driver is built on can
//! be measured here by itself.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use cc::{LostPacket, delivery::Sampler};
use netsim::{EventHeap, RandomStream, RandomStreams};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, StreamEvent, StreamId,
};
use units::{ByteCount, Timestamp};

use super::{Faults, tls_pair, wide_open};
use crate::{
    clock::Clock,
    driver::endpoint_config,
    ledger::{Delivered, Entry, Ledger},
    tap::{Collect, Collected, Space, TapEvent, collect},
};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// The two endpoints, the datagrams between them, and the time.
pub(super) struct Pair {
    clock: Clock,
    pub(super) now: Timestamp,
    pub(super) sides: [Side; 2],
    wire: EventHeap<(usize, BytesMut)>,
    faults: Faults,
    chance: RandomStream,
}

/// One endpoint and its only connection.
pub(super) struct Side {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    pub(super) quic: Option<Connection>,
    address: SocketAddr,
    /// What the shim reports.
    pub(super) window: u64,
    /// Most datagrams per poll.
    pub(super) burst: usize,
    last_sent_at: Timestamp,
    pub(super) collected: Collected,
    pub(super) shadow: Shadow,
    pub(super) is_connected: bool,
    pub(super) finished_streams: u64,
    /// Packets of the Data space that carried an ACK frame.
    pub(super) acks_sent: u64,
    buffer: Vec<u8>,
}

impl Pair {
    pub(super) fn new(seed: u64, faults: Faults, burst: usize) -> Self {
        let (server_tls, client_tls) = tls_pair();
        let config = |seed| wide_open(super::config(seed));
        let transport = config(seed).transport().expect("a transport");
        let mut server = quinn_proto::ServerConfig::new(
            server_tls.crypto,
            Arc::new(
                ring::hkdf::Salt::new(ring::hkdf::HKDF_SHA256, &[]).extract(&seed.to_le_bytes()),
            ),
        );
        server.transport_config(transport.clone());
        let mut client = quinn_proto::ClientConfig::new(client_tls.crypto);
        client.transport_config(transport);
        let clock = Clock::new();
        let side = |server, seed, host| Side {
            endpoint: Endpoint::new(Arc::new(endpoint_config(&config(seed))), server, true, None),
            handle: None,
            quic: None,
            address: SocketAddr::from(([10, 0, 0, host], 443)),
            window: u64::MAX >> 8,
            burst,
            last_sent_at: Timestamp::ZERO,
            collected: Collected::default(),
            shadow: Shadow::default(),
            is_connected: false,
            finished_streams: 0,
            acks_sent: 0,
            buffer: Vec::new(),
        };
        let mut pair = Self {
            clock,
            now: Timestamp::ZERO,
            sides: [
                side(None, seed * 2 + 1, 1),
                side(Some(Arc::new(server)), seed * 2, 2),
            ],
            wire: EventHeap::new(),
            faults,
            chance: RandomStreams::new(seed).stream("network"),
        };
        let remote = pair.sides[SERVER].address;
        let now = clock.instant(pair.now);
        let side = &mut pair.sides[CLIENT];
        let (handle, quic) = side
            .endpoint
            .connect(now, client, remote, "localhost")
            .expect("a connection");
        side.handle = Some(handle);
        side.quic = Some(quic);
        pair
    }

    /// As [`Self::new`], and the handshake and all that follows it are over.
    pub(super) fn connected(seed: u64) -> Self {
        let mut pair = Self::new(seed, Faults::NONE, 1);
        let limit = Timestamp::from_secs(2);
        pair.run(limit, |pair| {
            pair.sides.iter().all(|side| side.is_connected)
        });
        assert!(pair.sides.iter().all(|side| side.is_connected));
        pair.run(limit, |_| false);
        for side in &pair.sides {
            assert_eq!(side.shadow.ledger.in_flight(), ByteCount::ZERO);
        }
        pair
    }

    /// Opens a stream and hands quinn-proto all of `length` bytes and the end at once.
    pub(super) fn write(&mut self, from: usize, length: usize) -> StreamId {
        let quic = self.sides[from].quic();
        let id = quic.streams().open(Dir::Uni).expect("a stream");
        let mut stream = quic.send_stream(id);
        let mut chunks = [Bytes::from(vec![0x5a; length])];
        let written = stream.write_chunks(&mut chunks).expect("room");
        assert_eq!(written.bytes, length, "the limits are wide");
        stream.finish().expect("an end");
        id
    }

    pub(super) fn open(&mut self, from: usize) -> StreamId {
        let quic = self.sides[from].quic();
        quic.streams().open(Dir::Uni).expect("a stream")
    }

    /// Sends `count` pieces of one byte in as many datagrams, of which every other one, the first too,
    /// is lost.
    pub(super) fn write_with_holes(&mut self, from: usize, id: StreamId, count: usize) {
        for number in 0..count {
            let mut stream = self.sides[from].quic().send_stream(id);
            assert_eq!(stream.write(&[0x5a]).expect("room"), 1);
            self.faults.loss = super::percent(if number % 2 == 0 { 100 } else { 0 });
            assert_eq!(self.transmit(from), Some(1));
        }
        self.faults.loss = super::percent(0);
    }

    /// Goes on until `is_done`, or to `limit`.
    pub(super) fn run(&mut self, limit: Timestamp, mut is_done: impl FnMut(&Self) -> bool) {
        loop {
            for side in [CLIENT, SERVER] {
                while self.transmit(side).is_some() {}
            }
            if is_done(self) {
                return;
            }
            let timers = self.sides.iter_mut().filter_map(|side| {
                let due = side.quic.as_mut()?.poll_timeout()?;
                Some(self.clock.timestamp(due))
            });
            let next = timers.chain(self.wire.peek_time()).min();
            let Some(next) = next.filter(|&next| next <= limit) else {
                self.now = limit;
                return;
            };
            self.now = self.now.max(next);
            while let Some((_, (to, data))) = self.wire.pop_due(self.now) {
                self.deliver(to, data);
            }
            for side in [CLIENT, SERVER] {
                self.fire_timers(side);
            }
        }
    }

    /// One poll; the number of datagrams that left.
    pub(super) fn transmit(&mut self, from: usize) -> Option<usize> {
        let side = &mut self.sides[from];
        let quic = side.quic.as_mut()?;
        let sent_at = self.now.max(side.last_sent_at + Duration::from_nanos(1));
        let now = self.clock.instant(sent_at);
        let how = how(side.window);
        let (buffer, burst) = (&mut side.buffer, side.burst);
        buffer.clear();
        let transmit = collect(&mut side.collected, how, || {
            quic.poll_transmit(now, burst, buffer)
        });
        side.digest(&self.clock, sent_at);
        let transmit = transmit?;
        side.last_sent_at = sent_at;
        let size = transmit.segment_size.unwrap_or(transmit.size);
        let datagrams = side.buffer[..transmit.size].chunks(size).len();
        for datagram in self.sides[from].buffer[..transmit.size].chunks(size) {
            for delay in self.faults.fates(&mut self.chance) {
                self.wire
                    .push(self.now + delay, (1 - from, BytesMut::from(datagram)));
            }
        }
        Some(datagrams)
    }

    fn deliver(&mut self, to: usize, data: BytesMut) {
        let remote = self.sides[1 - to].address;
        let now = self.clock.instant(self.now);
        let side = &mut self.sides[to];
        side.buffer.clear();
        let event = side
            .endpoint
            .handle(now, remote, None, None, data, &mut side.buffer);
        let how = how(side.window);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let lost = side.lost();
                let quic = side.quic.as_mut().expect("a connection");
                collect(&mut side.collected, how, || quic.handle_event(event));
                side.after_event(&self.clock, self.now, lost);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                assert!(side.quic.is_none(), "only one connection is made");
                let (endpoint, buffer) = (&mut side.endpoint, &mut side.buffer);
                let (handle, quic) = collect(&mut side.collected, how, || {
                    let accepted = endpoint.accept(incoming, now, buffer, None);
                    accepted.map_err(|error| error.cause)
                })
                .expect("an acceptable connection");
                side.handle = Some(handle);
                side.quic = Some(quic);
                side.after_event(&self.clock, self.now, (0, 0));
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn fire_timers(&mut self, at: usize) {
        let now = self.clock.instant(self.now);
        let side = &mut self.sides[at];
        let lost = side.lost();
        let Some(quic) = side.quic.as_mut() else {
            return;
        };
        if quic.poll_timeout().is_some_and(|due| due <= now) {
            collect(&mut side.collected, how(side.window), || {
                quic.handle_timeout(now);
            });
            side.after_event(&self.clock, self.now, lost);
        }
    }
}

impl Side {
    pub(super) fn quic(&mut self) -> &mut Connection {
        self.quic.as_mut().expect("a connection")
    }

    /// quinn-proto's own count of lost packets and bytes.
    pub(super) fn lost(&self) -> (u64, u64) {
        self.quic.as_ref().map_or((0, 0), |quic| {
            let path = quic.stats().path;
            (path.lost_packets, path.lost_bytes)
        })
    }

    fn after_event(&mut self, clock: &Clock, now: Timestamp, lost_before: (u64, u64)) {
        self.digest(clock, now);
        let (packets, bytes) = self.lost();
        self.shadow
            .expect_lost((packets - lost_before.0, bytes - lost_before.1));
        let quic = self.quic.as_mut().expect("a connection");
        let handle = self.handle.expect("a connection");
        loop {
            while let Some(event) = quic.poll() {
                match event {
                    Event::Connected => self.is_connected = true,
                    Event::Stream(StreamEvent::Finished { .. }) => self.finished_streams += 1,
                    Event::ConnectionLost { reason } => panic!("{reason}"),
                    _ => {}
                }
            }
            let Some(event) = quic.poll_endpoint_events() else {
                return;
            };
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                quic.handle_event(event);
            }
        }
    }

    fn digest(&mut self, clock: &Clock, now: Timestamp) {
        for event in &self.collected.events {
            if let TapEvent::Sent(sent) = event
                && sent.space == Space::Data
                && sent.has_ack
            {
                self.acks_sent += 1;
            }
        }
        self.shadow.digest(clock, now, &self.collected);
        self.collected.events.clear();
    }
}

fn how(window: u64) -> Collect {
    Collect {
        window,
        with_frames: false,
        ack_delay_exponent: 3,
    }
}

/// The ledger under test, beside a plain list of everything unacknowledged, and quinn-proto as the
/// judge of both.
#[derive(Default)]
pub(super) struct Shadow {
    pub(super) ledger: Ledger,
    /// Per space: packet number to send time and bytes in flight, packets that carry only ACKs with
    /// zero bytes included.
    unacknowledged: [BTreeMap<u64, (Timestamp, u64)>; 3],
    pub(super) comparisons: u64,
    pub(super) batches: u64,
    /// Of the event just digested.
    lost: (u64, u64),
    delivered: Vec<Delivered>,
}

impl Shadow {
    fn digest(&mut self, clock: &Clock, now: Timestamp, tapped: &Collected) {
        let mut ack_space = Space::Data;
        for event in &tapped.events {
            match *event {
                TapEvent::Sent(sent) => {
                    let counts = sent.is_ack_eliciting || sent.is_padded;
                    let size = if counts { u64::from(sent.length) } else { 0 };
                    self.unacknowledged[sent.space.index()].insert(sent.number, (now, size));
                    if counts {
                        self.ledger.on_sent(
                            sent.space,
                            sent.number,
                            entry(now, size, sent.is_ack_eliciting),
                        );
                    } else {
                        self.ledger.on_sent_untracked(sent.space, sent.number, now);
                    }
                }
                TapEvent::Received(received) => {
                    ack_space = received.space;
                    let Some(ack) = received.ack else { continue };
                    let ranges = &tapped.ranges[ack.ranges.0 as usize..ack.ranges.1 as usize];
                    self.delivered.clear();
                    self.ledger.on_ack(
                        received.space,
                        ranges,
                        &mut self.delivered,
                        &mut Vec::new(),
                    );
                    self.unacknowledged[received.space.index()].retain(|&number, _| {
                        !ranges
                            .iter()
                            .any(|&(low, high)| (low..=high).contains(&number))
                    });
                }
                TapEvent::AcksDone { in_flight } => {
                    self.comparisons += 1;
                    assert_eq!(self.ledger.in_flight(), ByteCount::new(in_flight));
                    assert_eq!(self.in_flight(), in_flight);
                }
                TapEvent::Lost { sent_at, bytes, .. } => {
                    self.on_lost(now, ack_space, clock.timestamp(sent_at), bytes);
                }
                TapEvent::KeysDropped(space) => {
                    self.ledger.discard(space);
                    self.unacknowledged[space.index()].clear();
                }
                _ => {}
            }
        }
        self.ledger.prune(now, Duration::from_secs(1));
    }

    fn in_flight(&self) -> u64 {
        self.unacknowledged
            .iter()
            .flat_map(BTreeMap::values)
            .map(|&(_, size)| size)
            .sum()
    }

    /// The ledger's lost packets must be exactly the unacknowledged ones sent up to `sent_at`.
    ///
    /// Packets of one burst share a send time, and the batch may end within a burst: then the byte
    /// total says where.
    fn on_lost(&mut self, now: Timestamp, likely: Space, sent_at: Timestamp, bytes: u64) {
        self.batches += 1;
        let mut lost: Vec<LostPacket> = Vec::new();
        let space = self
            .ledger
            .on_lost(
                now,
                likely,
                sent_at,
                ByteCount::new(bytes),
                &mut Sampler::new(),
                &mut lost,
            )
            .expect("a prefix of the ledger that sums up to the lost bytes");
        let list = &mut self.unacknowledged[space.index()];
        let mut sum = 0;
        let mut expected = Vec::new();
        while let Some((&number, &(at, size))) = list.first_key_value() {
            if at > sent_at || sum + size > bytes {
                break;
            }
            list.pop_first();
            sum += size;
            self.lost.0 += 1;
            if size > 0 {
                expected.push((number, at, size));
            }
        }
        assert_eq!(sum, bytes, "the plain list's prefix");
        self.lost.1 += sum;
        let lost: Vec<_> = lost
            .iter()
            .map(|packet| (packet.packet_number, packet.sent_at, packet.size.as_u64()))
            .collect();
        assert_eq!(lost, expected);
    }

    /// Against what quinn-proto counted during the event just digested.
    #[track_caller]
    fn expect_lost(&mut self, (packets, bytes): (u64, u64)) {
        let mut lost = std::mem::take(&mut self.lost);
        if bytes == 0 {
            // A batch of packets that carried only ACKs is no congestion event and not reported;
            // it is a prefix all the same.
            let is_silent = |list: &&mut BTreeMap<u64, (Timestamp, u64)>| {
                let mut oldest = list.values().zip(0..packets);
                list.len() as u64 >= packets && oldest.all(|(&(_, size), _)| size == 0)
            };
            if let Some(list) = self.unacknowledged.iter_mut().rev().find(is_silent) {
                for _ in 0..packets {
                    list.pop_first();
                }
                lost.0 += packets;
            }
        }
        assert_eq!(lost, (packets, bytes), "packets and bytes");
    }
}

fn entry(sent_at: Timestamp, size: u64, is_ack_eliciting: bool) -> Entry {
    Entry {
        sent_at,
        size: ByteCount::new(size),
        send_state: Sampler::default().on_sent(sent_at, ByteCount::ZERO, ByteCount::new(size)),
        tx_in_flight: ByteCount::ZERO,
        is_app_limited: false,
        is_ack_eliciting,
        is_mtu_probe: false,
    }
}
