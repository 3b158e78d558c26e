//! The application's side of the streams of one connection: the sending half.
//!
//! ```text
//!   write ──> queue (bounded, here) ──bind──> quinn-proto's stream ──> packets
//!                                     ^
//!                                     only as much as the open gate is about to take
//! ```
//!
//! Late binding: as long as nothing is bound, quinn-proto has no stream data pending, so an
//! acknowledgement leaves although the gate is closed. A packet that would carry stream data is held
//! back as a whole, its ACK frame with it.

use std::{
    collections::{BTreeMap, VecDeque},
    task::Waker,
};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, StreamId, VarInt};
use units::ByteCount;

use crate::error::{ConnectionError, WriteError};

/// Everything the application waits for or has queued on one connection.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    send: BTreeMap<StreamId, SendSide>,
    /// Streams with something queued, in turn.
    active: VecDeque<StreamId>,
    /// Bytes queued over all streams.
    queued: usize,
    /// Bytes handed to quinn-proto and not yet sent for the first time.
    unsent: u64,
    acceptors: [Vec<Waker>; 2],
    openers: [Vec<Waker>; 2],
}

#[derive(Debug, Default)]
struct SendSide {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Stream offset up to which data was handed to quinn-proto.
    bound_to: u64,
    /// Stream offset up to which data was sent at least once.
    sent_to: u64,
    is_active: bool,
    is_blocked: bool,
    /// No handle names the stream any more.
    is_abandoned: bool,
    finish: Finish,
    stopped: Option<u64>,
    writer: Option<Waker>,
    watchers: Vec<Waker>,
}

/// How far the end of a stream has come.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Finish {
    #[default]
    Open,
    Requested,
    Bound,
    Acknowledged,
    Reset,
}

fn dir_index(dir: Dir) -> usize {
    match dir {
        Dir::Bi => 0,
        Dir::Uni => 1,
    }
}

impl Streams {
    // -- Called by handles -----------------------------------------------------------------------

    /// A stream of ours, or the sending half of one the peer opened, came into use.
    pub(crate) fn add(&mut self, id: StreamId) {
        self.send.entry(id).or_default();
    }

    /// Queues `data`; `false`, and the waker kept, if the queue is full.
    pub(crate) fn write(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
        limit: usize,
        waker: &Waker,
    ) -> Result<bool, WriteError> {
        let side = self.send.get_mut(&id).ok_or(WriteError::Closed)?;
        if let Some(code) = side.stopped {
            return Err(WriteError::Stopped(code));
        }
        if side.finish != Finish::Open {
            return Err(WriteError::Closed);
        }
        if side.queued >= limit {
            side.writer = Some(waker.clone());
            return Ok(false);
        }
        let data = std::mem::take(data);
        if !data.is_empty() {
            side.queued += data.len();
            self.queued += data.len();
            side.queue.push_back(data);
            self.activate(id);
        }
        Ok(true)
    }

    /// Asks for a FIN after what is queued.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let side = self.send.get_mut(&id).ok_or(WriteError::Closed)?;
        if let Some(code) = side.stopped {
            return Err(WriteError::Stopped(code));
        }
        if side.finish != Finish::Open {
            return Err(WriteError::Closed);
        }
        side.finish = Finish::Requested;
        self.activate(id);
        Ok(())
    }

    /// Drops what is queued and resets the stream, unless it has come to its end already.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64, quic: &mut Connection) {
        let Some(side) = self.send.get_mut(&id) else {
            return;
        };
        if matches!(side.finish, Finish::Reset | Finish::Acknowledged) {
            return;
        }
        self.unsent -= side.bound_to - side.sent_to;
        side.sent_to = side.bound_to;
        self.queued -= side.queued;
        side.queued = 0;
        side.queue.clear();
        side.finish = Finish::Reset;
        // The stream may be gone on quinn-proto's side; then there is nothing to reset.
        let _ = quic.send_stream(id).reset(varint(code));
    }

    /// Resets the stream unless its end was asked for: what a dropped handle does.
    pub(crate) fn abandon(&mut self, id: StreamId, code: u64, quic: &mut Connection) {
        if self
            .send
            .get(&id)
            .is_some_and(|side| side.finish == Finish::Open)
        {
            self.reset(id, code, quic);
        }
        if let Some(side) = self.send.get_mut(&id) {
            side.is_abandoned = true;
            if matches!(side.finish, Finish::Reset | Finish::Acknowledged) {
                self.send.remove(&id);
            }
        }
    }

    /// Whether the stream has been stopped (`Some(code)`) or acknowledged to its end (`None`); keeps
    /// the waker while neither is so.
    pub(crate) fn poll_stopped(&mut self, id: StreamId, waker: &Waker) -> Option<Option<u64>> {
        let Some(side) = self.send.get_mut(&id) else {
            return Some(None);
        };
        match (side.stopped, side.finish) {
            (Some(code), _) => Some(Some(code)),
            (None, Finish::Acknowledged | Finish::Reset) => Some(None),
            _ => {
                keep(&mut side.watchers, waker);
                None
            }
        }
    }

    pub(crate) fn await_accept(&mut self, dir: Dir, waker: &Waker) {
        keep(&mut self.acceptors[dir_index(dir)], waker);
    }

    pub(crate) fn await_open(&mut self, dir: Dir, waker: &Waker) {
        keep(&mut self.openers[dir_index(dir)], waker);
    }

    // -- Called by the driver --------------------------------------------------------------------

    /// Whether anything is queued here that the gate could let go.
    pub(crate) fn has_queued(&self) -> bool {
        !self.active.is_empty()
    }

    /// Bytes that wait to be sent for the first time, here and in quinn-proto.
    pub(crate) fn waiting(&self) -> ByteCount {
        ByteCount::new(self.queued as u64 + self.unsent)
    }

    /// Bytes that quinn-proto holds and has never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Streams of which anything is kept.
    #[cfg(test)]
    pub(crate) fn entry_count(&self) -> usize {
        self.send.len()
    }

    /// Hands up to `budget` bytes to quinn-proto, in turn over the active streams; each gets a
    /// datagram's worth at least. `overhead` is what a datagram needs besides one STREAM frame.
    pub(crate) fn bind(
        &mut self,
        datagrams: u64,
        mtu: ByteCount,
        overhead: u64,
        quic: &mut Connection,
    ) {
        if self.active.is_empty() {
            return;
        }
        let mut left = None;
        // Each stream is visited at most once per round; blocked ones leave the list.
        while let Some(id) = self.active.pop_front() {
            let Some(side) = self.send.get_mut(&id) else {
                continue;
            };
            side.is_active = false;
            let room = mtu.as_u64().saturating_sub(overhead);
            let payload = room.saturating_sub(stream_header(id, side.bound_to)).max(1);
            let left = left.get_or_insert_with(|| {
                burst_capacity(id, side.bound_to, datagrams, room).saturating_sub(self.unsent)
            });
            if *left == 0 && side.queued > 0 {
                side.is_active = true;
                self.active.push_front(id);
                return;
            }
            let share = (*left).min(payload.max(*left / (self.active.len() as u64 + 1)));
            let bound = side.bind(id, share, quic);
            *left -= bound.min(*left);
            self.unsent += bound;
            self.queued -= ByteCount::new(bound).as_usize();
            if side.queued == 0 && side.finish == Finish::Requested && !side.is_blocked {
                side.finish = Finish::Bound;
                // Fails only if the stream was stopped meanwhile; an event says so.
                let _ = quic.send_stream(id).finish();
            } else if side.queued > 0 && !side.is_blocked {
                side.is_active = true;
                self.active.push_back(id);
            }
            if let Some(waker) = side.writer.take() {
                waker.wake();
            }
        }
    }

    /// A STREAM frame left; says how many of its bytes had left before.
    pub(crate) fn on_frame_sent(&mut self, id: u64, end: u64, length: u64) -> u64 {
        let Some(side) = VarInt::from_u64(id)
            .ok()
            .and_then(|id| self.send.get_mut(&StreamId::from(id)))
        else {
            return 0;
        };
        let end = end.min(side.bound_to);
        let fresh = end.saturating_sub(side.sent_to);
        self.unsent -= fresh;
        side.sent_to += fresh;
        length.saturating_sub(fresh)
    }

    pub(crate) fn on_writable(&mut self, id: StreamId) {
        if let Some(side) = self.send.get_mut(&id) {
            side.is_blocked = false;
            if side.queued > 0 || side.finish == Finish::Requested {
                self.activate(id);
            }
        }
    }

    /// The peer reads no further: answered with a reset of the same code (RFC 9000 section 3.5), or
    /// the stream would stay for ever, its credit with it.
    pub(crate) fn on_stopped(&mut self, id: StreamId, code: u64, quic: &mut Connection) {
        self.reset(id, code, quic);
        if let Some(side) = self.send.get_mut(&id) {
            side.stopped = Some(code);
            side.wake();
            if side.is_abandoned {
                self.send.remove(&id);
            }
        }
    }

    pub(crate) fn on_finished(&mut self, id: StreamId) {
        if let Some(mut side) = self.send.remove(&id) {
            self.unsent -= side.bound_to - side.sent_to;
            self.queued -= side.queued;
            side.finish = Finish::Acknowledged;
            side.wake();
        }
    }

    pub(crate) fn on_opened(&mut self, dir: Dir) {
        wake_all(&mut self.acceptors[dir_index(dir)]);
    }

    pub(crate) fn on_available(&mut self, dir: Dir) {
        wake_all(&mut self.openers[dir_index(dir)]);
    }

    /// The connection is over: everybody learns it.
    pub(crate) fn on_closed(&mut self, _error: &ConnectionError) {
        for side in self.send.values_mut() {
            side.wake();
            side.queue.clear();
            side.queued = 0;
        }
        self.queued = 0;
        self.unsent = 0;
        self.active.clear();
        self.send.clear();
        for list in self.acceptors.iter_mut().chain(&mut self.openers) {
            wake_all(list);
        }
    }

    fn activate(&mut self, id: StreamId) {
        if let Some(side) = self.send.get_mut(&id)
            && !side.is_active
            && !side.is_blocked
        {
            side.is_active = true;
            self.active.push_back(id);
        }
    }
}

impl SendSide {
    /// Moves up to `share` bytes into quinn-proto's stream.
    fn bind(&mut self, id: StreamId, share: u64, quic: &mut Connection) -> u64 {
        let mut bound = 0;
        while bound < share
            && let Some(front) = self.queue.front_mut()
        {
            let wanted = ByteCount::new(share - bound).as_usize().min(front.len());
            let mut piece = [front.slice(..wanted)];
            match quic.send_stream(id).write_chunks(&mut piece) {
                Ok(written) => {
                    let bytes = written.bytes;
                    bound += bytes as u64;
                    self.queued -= bytes;
                    if bytes == front.len() {
                        self.queue.pop_front();
                    } else {
                        let _ = front.split_to(bytes);
                    }
                    // If it took less than offered, a limit was reached. quinn-proto promises an event
                    // only to a write that it refuses whole, and that is the next one.
                }
                Err(_) => {
                    // Blocked by flow control, or stopped: an event will say which.
                    self.is_blocked = true;
                    break;
                }
            }
        }
        self.bound_to += bound;
        bound
    }

    fn wake(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
        wake_all(&mut self.watchers);
    }
}

/// Bytes of one stream that fill `datagrams` of `room` bytes each, from `offset` on.
///
/// To the byte: what is too much would stay behind the closing gate, and so would what is a little
/// too little, because quinn-proto then keeps 8 bytes of the last datagram free for a length field.
fn burst_capacity(id: StreamId, offset: u64, datagrams: u64, room: u64) -> u64 {
    let mut end = offset;
    for _ in 0..datagrams {
        end += room.saturating_sub(stream_header(id, end)).max(1);
    }
    end - offset
}

/// Bytes of a STREAM frame's header without a length field (RFC 9000 section 19.8).
fn stream_header(id: StreamId, offset: u64) -> u64 {
    let offset = if offset == 0 { 0 } else { varint_size(offset) };
    1 + varint_size(VarInt::from(id).into_inner()) + offset
}

fn varint_size(value: u64) -> u64 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// An application's error code; the wire carries 62 bits.
pub(crate) fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn keep(list: &mut Vec<Waker>, waker: &Waker) {
    if !list.iter().any(|known| known.will_wake(waker)) {
        list.push(waker.clone());
    }
}

fn wake_all(list: &mut Vec<Waker>) {
    for waker in list.drain(..) {
        waker.wake();
    }
}
