//! The receiving half of the streams of one connection: what has come out of order waits here.
//!
//! ```text
//!   quinn-proto's buffer ──unordered──> next byte? ──yes──> handle
//!                                          │ no              ^
//!                                          v                 │ once the hole is filled
//!                                        pieces ─────────────┘
//! ```
//!
//! quinn-proto 0.11 keeps at most 1024 pieces of a stream between which something is missing and ends
//! the connection when there are more (`connection/assembler.rs`); a slow start that overshoots a deep
//! queue leaves twice as many. So everything is taken out of its buffer, in whatever order, and kept
//! here, where the receive window is the only limit.
//!
//! Flow control does not notice: quinn-proto takes what was read from it for consumed and grants credit
//! for it (RFC 9000 section 4.1). As much as waits here is therefore taken off the connection's window,
//! in steps of an eighth.

use std::{
    collections::{BTreeMap, VecDeque},
    task::Waker,
};

use bytes::{Bytes, BytesMut};
use quinn_proto::{Chunks, Connection, ReadError as QuinnReadError, StreamId};
use units::ByteCount;

use crate::{
    error::{ConnectionError, ReadError},
    streams::varint,
};

/// The receiving halves that handles read from.
#[derive(Debug)]
pub(crate) struct Receive {
    sides: BTreeMap<StreamId, Side>,
    held: Held,
    /// The connection's receive window, and one stream's.
    window: u64,
    stream_window: u64,
    /// What is at present taken off the connection's window.
    withheld: u64,
}

/// What waits in all sides together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    bytes: u64,
    pieces: usize,
}

#[derive(Debug, Default)]
struct Side {
    /// Offset of the next byte for the handle.
    next: u64,
    /// Copies, by offset, that do not overlap: a slice would keep a whole receive buffer alive.
    pieces: BTreeMap<u64, BytesMut>,
    bytes: u64,
    /// STREAM frames since quinn-proto's buffer was last looked into.
    frames: u32,
    /// Everything up to the end of the stream was taken from quinn-proto, which has forgotten it.
    is_complete: bool,
    reader: Option<Waker>,
}

/// What one look into a stream found.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// The stream is over: at its end, or by an error.
    pub(crate) end: Option<Result<(), ReadError>>,
    /// Credit for the peer may be due.
    pub(crate) must_transmit: bool,
}

impl Receive {
    pub(crate) fn new(window: ByteCount, stream_window: ByteCount) -> Self {
        Self {
            sides: BTreeMap::new(),
            held: Held::default(),
            window: window.as_u64(),
            stream_window: stream_window.as_u64(),
            withheld: 0,
        }
    }

    /// A handle to read from came into being.
    pub(crate) fn add(&mut self, id: StreamId) {
        self.sides.insert(id, Side::default());
    }

    /// Moves the next bytes in order, up to about `limit`, to `out`; keeps the waker if there are none
    /// and more may come. `lost` says why there will not be more.
    pub(crate) fn read(
        &mut self,
        id: StreamId,
        limit: usize,
        out: &mut VecDeque<Bytes>,
        waker: &Waker,
        lost: Option<ConnectionError>,
        quic: &mut Connection,
    ) -> Read {
        let most = self.most_pieces();
        let Some(side) = self.sides.get_mut(&id) else {
            return Read {
                end: Some(Err(ReadError::Closed)),
                must_transmit: false,
            };
        };
        let before = out.len();
        let (taken, must_transmit) = side.read(id, limit, out, &mut self.held, most, quic);
        let end = match taken {
            Taken::Complete => Some(Ok(())),
            Taken::Reset(code) => Some(Err(ReadError::Reset(code))),
            Taken::Closed => Some(Err(lost.map_or(ReadError::Closed, ReadError::from))),
            Taken::Nothing if out.len() > before => None,
            Taken::Nothing => match lost {
                Some(error) => Some(Err(error.into())),
                None => {
                    side.reader = Some(waker.clone());
                    None
                }
            },
            Taken::Next(_) | Taken::Kept => None,
        };
        if end.is_some()
            && let Some(mut side) = self.sides.remove(&id)
        {
            side.clear(&mut self.held);
        }
        Read {
            end,
            must_transmit: must_transmit | self.adjust_window(quic),
        }
    }

    /// A STREAM frame came. The handle reads as a rule; if it does not, and many frames have come, what
    /// they brought is taken out of quinn-proto's buffer before it counts the pieces.
    pub(crate) fn on_readable(&mut self, id: StreamId, quic: &mut Connection) {
        let most = self.most_pieces();
        let Some(side) = self.sides.get_mut(&id) else {
            return;
        };
        if let Some(waker) = side.reader.take() {
            waker.wake();
        }
        side.frames += 1;
        if side.frames < FRAMES_PER_LOOK || side.is_complete {
            return;
        }
        side.frames = 0;
        // A reader that is slow keeps its own stream waiting, not the others.
        if side.has_next() && side.bytes >= self.stream_window {
            return;
        }
        let mut recv = quic.recv_stream(id);
        // Fails only if the stream was stopped.
        let Ok(mut chunks) = recv.read(false) else {
            return;
        };
        loop {
            match side.take_aside(&mut chunks, &mut self.held, most) {
                Taken::Next(_) | Taken::Kept => {}
                Taken::Complete => {
                    side.is_complete = true;
                    break;
                }
                // Read again, and reported, by the handle.
                Taken::Reset(_) | Taken::Nothing | Taken::Closed => break,
            }
        }
        drop(chunks);
        self.adjust_window(quic);
    }

    /// The handle is gone, or wants no more: what waits is dropped. After its end nothing does.
    pub(crate) fn forget(&mut self, id: StreamId, quic: &mut Connection) {
        if let Some(mut side) = self.sides.remove(&id) {
            side.clear(&mut self.held);
            self.adjust_window(quic);
        }
    }

    /// The connection is over: everybody learns it.
    pub(crate) fn on_closed(&mut self) {
        for side in self.sides.values_mut() {
            if let Some(waker) = side.reader.take() {
                waker.wake();
            }
        }
    }

    /// Streams of which anything is kept.
    #[cfg(test)]
    pub(crate) fn entry_count(&self) -> usize {
        self.sides.len()
    }

    /// Bytes and pieces that wait, and what is taken off the connection's window.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (u64, usize, u64) {
        (self.held.bytes, self.held.pieces, self.withheld)
    }

    /// Full datagrams leave far fewer holes in the window; pieces as small as a peer likes would cost
    /// more memory than they hold.
    fn most_pieces(&self) -> usize {
        usize::try_from(self.window / 1024)
            .unwrap_or(usize::MAX)
            .max(1024)
    }

    /// Whether it grew, and the peer may be told.
    fn adjust_window(&mut self, quic: &mut Connection) -> bool {
        let held = self.held.bytes.min(self.window);
        let is_step = held.abs_diff(self.withheld) >= self.window / 8;
        if held == self.withheld || !(is_step || held == 0) {
            return false;
        }
        let has_grown = held < self.withheld;
        self.withheld = held;
        quic.set_receive_window(varint(self.window - held));
        has_grown
    }
}

/// What came out of quinn-proto's buffer.
enum Taken {
    /// The next bytes of the stream.
    Next(Bytes),
    /// Bytes further on; they are kept.
    Kept,
    /// There is nothing, for now.
    Nothing,
    /// There is nothing, and there will be nothing.
    Complete,
    /// The peer reset the stream with this code.
    Reset(u64),
    /// quinn-proto does not know the stream (any more).
    Closed,
}

impl Side {
    fn has_next(&self) -> bool {
        self.pieces
            .first_key_value()
            .is_some_and(|(&offset, _)| offset == self.next)
    }

    /// The next bytes, if they wait here.
    fn pop(&mut self, held: &mut Held) -> Option<Bytes> {
        let first = self.pieces.first_entry()?;
        if *first.key() != self.next {
            return None;
        }
        let bytes = first.remove().freeze();
        self.next += bytes.len() as u64;
        self.bytes -= bytes.len() as u64;
        held.bytes -= bytes.len() as u64;
        held.pieces -= 1;
        Some(bytes)
    }

    /// Moves the next bytes to `out` until it got `limit` of them; says what ended that, and whether
    /// credit for the peer may be due.
    fn read(
        &mut self,
        id: StreamId,
        limit: usize,
        out: &mut VecDeque<Bytes>,
        held: &mut Held,
        most: usize,
        quic: &mut Connection,
    ) -> (Taken, bool) {
        let mut left = self.drain(limit, out, held);
        if left == 0 {
            return (Taken::Kept, false);
        }
        if self.is_complete {
            return (Taken::Complete, false);
        }
        self.frames = 0;
        let mut recv = quic.recv_stream(id);
        let Ok(mut chunks) = recv.read(false) else {
            return (Taken::Closed, false);
        };
        let ended_by = loop {
            match self.take(&mut chunks, left, held, most) {
                Taken::Next(bytes) => {
                    left -= bytes.len();
                    out.push_back(bytes);
                    left = self.drain(left, out, held);
                    if left == 0 {
                        break Taken::Kept;
                    }
                }
                Taken::Kept => {}
                Taken::Complete => {
                    self.is_complete = true;
                    break Taken::Complete;
                }
                other => break other,
            }
        };
        (ended_by, chunks.finalize().should_transmit())
    }

    /// Moves the next bytes that wait here to `out`; says how much of `limit` is left.
    fn drain(&mut self, limit: usize, out: &mut VecDeque<Bytes>, held: &mut Held) -> usize {
        let mut left = limit;
        while left > 0
            && let Some(bytes) = self.pop(held)
        {
            left = left.saturating_sub(bytes.len());
            out.push_back(bytes);
        }
        left
    }

    /// The chunk of the lowest offset, handed out if it is the next one.
    fn take(
        &mut self,
        chunks: &mut Chunks<'_>,
        limit: usize,
        held: &mut Held,
        most: usize,
    ) -> Taken {
        match self.lowest(chunks, limit, held, most) {
            Ok((offset, bytes)) if offset == self.next => {
                self.next += bytes.len() as u64;
                Taken::Next(bytes)
            }
            Ok((offset, bytes)) => {
                self.keep(offset, &bytes, held);
                Taken::Kept
            }
            Err(other) => other,
        }
    }

    /// The same with the next one kept too.
    fn take_aside(&mut self, chunks: &mut Chunks<'_>, held: &mut Held, most: usize) -> Taken {
        match self.lowest(chunks, usize::MAX, held, most) {
            Ok((offset, bytes)) => {
                self.keep(offset, &bytes, held);
                Taken::Kept
            }
            Err(other) => other,
        }
    }

    fn lowest(
        &mut self,
        chunks: &mut Chunks<'_>,
        limit: usize,
        held: &Held,
        most: usize,
    ) -> Result<(u64, Bytes), Taken> {
        // With as many pieces as are allowed only the next bytes make progress. A read of no length
        // tells the offset and takes nothing.
        if held.pieces >= most
            && let Ok(Some(chunk)) = chunks.next(0)
            && chunk.offset != self.next
        {
            return Err(Taken::Nothing);
        }
        match chunks.next(limit) {
            Ok(Some(chunk)) => Ok((chunk.offset, chunk.bytes)),
            Ok(None) => Err(Taken::Complete),
            Err(QuinnReadError::Blocked) => Err(Taken::Nothing),
            Err(QuinnReadError::Reset(code)) => Err(Taken::Reset(code.into_inner())),
        }
    }

    fn keep(&mut self, offset: u64, bytes: &[u8], held: &mut Held) {
        self.bytes += bytes.len() as u64;
        held.bytes += bytes.len() as u64;
        if let Some((&start, piece)) = self.pieces.range_mut(..offset).next_back()
            && start + piece.len() as u64 == offset
            && piece.len() < LARGEST_PIECE
        {
            piece.extend_from_slice(bytes);
            return;
        }
        self.pieces.insert(offset, BytesMut::from(bytes));
        held.pieces += 1;
    }

    fn clear(&mut self, held: &mut Held) {
        held.bytes -= self.bytes;
        held.pieces -= self.pieces.len();
        self.bytes = 0;
        self.pieces.clear();
    }
}

/// A quarter of the pieces that quinn-proto keeps for certain.
const FRAMES_PER_LOOK: u32 = 256;

/// Neighbours are joined up to here, so that a piece costs far less than it holds.
const LARGEST_PIECE: usize = 64 * 1024;
