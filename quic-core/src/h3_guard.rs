//! A shield between a QUIC connection and the crate `h3`, which wraps any `h3::quic` connection.
//!
//! What h3 0.0.8 leaves to its transport (hyperium/h3#294, #321):
//! * it buffers a HEADERS or unknown frame whole before it looks at its size. Here each frame header
//!   is read on its way in; a frame that h3 would have to buffer may announce at most 64 KiB, and all
//!   that are under way on one connection at most 256 KiB. Beyond that the stream ends with
//!   H3_EXCESSIVE_LOAD before the bytes arrive. DATA passes at any length, for h3 hands it on in
//!   pieces.
//! * a dropped stream says nothing, or the wrong thing. Here a send side dropped before its end is
//!   reset, never finished, so half a body can never look like a whole one (RFC 9114 section 4.1),
//!   and a receive side dropped before its end is stopped with an HTTP/3 code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

/// The largest frame, other than DATA, that is let through.
pub const MAX_FRAME: u64 = 64 * 1024;

/// What all such frames that are not yet complete may announce together, per connection.
pub const MAX_BUFFERED: u64 = 256 * 1024;

/// Which codes a dropped stream says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A response that could not be completed: H3_INTERNAL_ERROR. The rest of a request that is
    /// not needed: H3_NO_ERROR (RFC 9114 section 4.1).
    Server,
    /// A request that is given up: H3_REQUEST_CANCELLED on both sides.
    Client,
}

impl Role {
    const fn reset_code(self) -> Code {
        match self {
            Self::Server => Code::H3_INTERNAL_ERROR,
            Self::Client => Code::H3_REQUEST_CANCELLED,
        }
    }

    const fn stop_code(self) -> Code {
        match self {
            Self::Server => Code::H3_NO_ERROR,
            Self::Client => Code::H3_REQUEST_CANCELLED,
        }
    }
}

/// A connection, or its opener, whose streams are guarded.
#[derive(Clone, Debug)]
pub struct Guarded<C> {
    inner: C,
    role: Role,
    budget: Budget,
}

impl<C> Guarded<C> {
    /// Guards `connection`.
    pub fn new(connection: C, role: Role) -> Self {
        Self {
            inner: connection,
            role,
            budget: Budget::default(),
        }
    }

    fn stream<S>(&self, inner: S) -> GuardedStream<S>
    where
        S: quic::SendStream<Bytes> + quic::RecvStream,
    {
        GuardedStream {
            inner,
            role: self.role,
            scanner: Scanner::new(State::FrameType, self.budget.clone()),
            is_send_ended: false,
            is_receive_ended: false,
        }
    }
}

impl<C: quic::OpenStreams<Bytes>> quic::OpenStreams<Bytes> for Guarded<C> {
    type BidiStream = GuardedStream<C::BidiStream>;
    type SendStream = C::SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        let stream = ready!(self.inner.poll_open_bidi(cx))?;
        Poll::Ready(Ok(self.stream(stream)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.inner.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(code, reason);
    }
}

impl<C: quic::Connection<Bytes>> quic::Connection<Bytes> for Guarded<C> {
    type RecvStream = GuardedRecv<C::RecvStream>;
    type OpenStreams = Guarded<C::OpenStreams>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let inner = ready!(self.inner.poll_accept_recv(cx))?;
        let scanner = Scanner::new(State::StreamType, self.budget.clone());
        Poll::Ready(Ok(GuardedRecv { inner, scanner }))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let stream = ready!(self.inner.poll_accept_bidi(cx))?;
        Poll::Ready(Ok(self.stream(stream)))
    }

    fn opener(&self) -> Self::OpenStreams {
        Guarded {
            inner: self.inner.opener(),
            role: self.role,
            budget: self.budget.clone(),
        }
    }
}

/// A request stream.
#[derive(Debug)]
pub struct GuardedStream<S>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    inner: S,
    role: Role,
    scanner: Scanner,
    /// Finished or reset.
    is_send_ended: bool,
    /// Read to its end, ended by the peer, or stopped.
    is_receive_ended: bool,
}

impl<S> quic::SendStream<Bytes> for GuardedStream<S>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.inner.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.inner.poll_finish(cx))?;
        self.is_send_ended = true;
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        if !self.is_send_ended {
            self.is_send_ended = true;
            self.inner.reset(reset_code);
        }
    }

    fn send_id(&self) -> StreamId {
        self.inner.send_id()
    }
}

impl<S> quic::RecvStream for GuardedStream<S>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(poll_scanned(&mut self.inner, &mut self.scanner, cx));
        if !matches!(read, Ok(Some(_))) {
            self.is_receive_ended = true;
        }
        Poll::Ready(read)
    }

    fn stop_sending(&mut self, error_code: u64) {
        if !self.is_receive_ended {
            self.is_receive_ended = true;
            self.inner.stop_sending(error_code);
        }
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl<S> Drop for GuardedStream<S>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    fn drop(&mut self) {
        quic::SendStream::reset(self, self.role.reset_code().value());
        quic::RecvStream::stop_sending(self, self.role.stop_code().value());
    }
}

/// A unidirectional stream of the peer: control, QPACK, push or unknown.
#[derive(Debug)]
pub struct GuardedRecv<S> {
    inner: S,
    scanner: Scanner,
}

impl<S: quic::RecvStream> quic::RecvStream for GuardedRecv<S> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        poll_scanned(&mut self.inner, &mut self.scanner, cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.inner.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

fn poll_scanned<S: quic::RecvStream>(
    stream: &mut S,
    scanner: &mut Scanner,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
    let Some(mut data) = ready!(stream.poll_data(cx))? else {
        return Poll::Ready(Ok(None));
    };
    // No copy when the stream hands out `Bytes`, as every stream of ours does.
    let data = data.copy_to_bytes(data.remaining());
    if scanner.scan(&data).is_err() {
        let error_code = Code::H3_EXCESSIVE_LOAD.value();
        stream.stop_sending(error_code);
        return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
    }
    Poll::Ready(Ok(Some(data)))
}

/// What the incomplete frames of one connection have announced.
#[derive(Clone, Debug, Default)]
struct Budget(Arc<AtomicU64>);

impl Budget {
    fn reserve(&self, bytes: u64) -> Result<(), TooLarge> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&held| held <= MAX_BUFFERED)
            })
            .map(|_| ())
            .map_err(|_| TooLarge)
    }

    fn release(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A frame announces more than may be buffered.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// Follows the frames of one stream (RFC 9114 section 7.1) without keeping any of them.
#[derive(Debug)]
struct Scanner {
    state: State,
    /// The bytes of a variable-length integer (RFC 9000 section 16) seen so far.
    partial: u64,
    seen: u32,
    budget: Budget,
    /// This stream's share of the budget.
    reserved: u64,
}

#[derive(Debug)]
enum State {
    /// At the start of a unidirectional stream (RFC 9114 section 6.2).
    StreamType,
    FrameType,
    FrameLength {
        is_data: bool,
    },
    Payload {
        remaining: u64,
    },
    /// QPACK, push and unknown streams: no frames that h3 would buffer.
    Opaque,
}

impl Scanner {
    const CONTROL_STREAM: u64 = 0x0;
    const DATA_FRAME: u64 = 0x0;

    fn new(state: State, budget: Budget) -> Self {
        Self {
            state,
            partial: 0,
            seen: 0,
            budget,
            reserved: 0,
        }
    }

    fn scan(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            match self.state {
                State::Opaque => return Ok(()),
                State::Payload { remaining } => {
                    let taken = remaining.min(bytes.len() as u64);
                    bytes = &bytes[usize::try_from(taken).unwrap_or(bytes.len())..];
                    self.skip_to(remaining - taken);
                }
                State::StreamType => match self.integer(&mut bytes) {
                    Some(Self::CONTROL_STREAM) => self.state = State::FrameType,
                    Some(_) => self.state = State::Opaque,
                    None => {}
                },
                State::FrameType => {
                    if let Some(kind) = self.integer(&mut bytes) {
                        self.state = State::FrameLength {
                            is_data: kind == Self::DATA_FRAME,
                        };
                    }
                }
                State::FrameLength { is_data } => {
                    if let Some(length) = self.integer(&mut bytes) {
                        if !is_data {
                            if length > MAX_FRAME {
                                return Err(TooLarge);
                            }
                            self.budget.reserve(length)?;
                            self.reserved = length;
                        }
                        self.skip_to(length);
                    }
                }
            }
        }
        Ok(())
    }

    fn skip_to(&mut self, remaining: u64) {
        if remaining > 0 {
            self.state = State::Payload { remaining };
        } else {
            self.budget.release(self.reserved);
            self.reserved = 0;
            self.state = State::FrameType;
        }
    }

    /// Takes bytes of one integer; gives it when its last byte is there.
    fn integer(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.partial = (self.partial << 8) | u64::from(byte);
            self.seen += 1;
            // The two top bits of the first byte say how many bytes there are: 1, 2, 4 or 8.
            let prefix = (self.partial >> (8 * self.seen - 2)) & 0b11;
            if self.seen == 1 << prefix {
                let value = self.partial & (u64::MAX >> (66 - 8 * self.seen));
                (self.partial, self.seen) = (0, 0);
                return Some(value);
            }
        }
        None
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.budget.release(self.reserved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanner() -> (Scanner, Budget) {
        let budget = Budget::default();
        (Scanner::new(State::FrameType, budget.clone()), budget)
    }

    fn frame(kind: u64, length: u64) -> Vec<u8> {
        let mut bytes = integer(kind);
        bytes.extend(integer(length));
        bytes
    }

    fn integer(value: u64) -> Vec<u8> {
        if value < 1 << 6 {
            value.to_be_bytes()[7..].to_vec()
        } else if value < 1 << 14 {
            (value | 1 << 14).to_be_bytes()[6..].to_vec()
        } else if value < 1 << 30 {
            (value | 2 << 30).to_be_bytes()[4..].to_vec()
        } else {
            (value | 3 << 62).to_be_bytes().to_vec()
        }
    }

    #[test]
    fn integers_of_every_length_are_read_across_cuts() {
        for value in [
            0,
            37,
            63,
            64,
            15_293,
            16_383,
            16_384,
            494_878_333,
            1 << 30,
            (1 << 62) - 1,
        ] {
            let (mut scanner, _) = scanner();
            let bytes = integer(value);
            let (last, head) = bytes
                .split_last()
                .map(|(l, h)| (*l, h.to_vec()))
                .unwrap_or_default();
            for byte in head {
                assert_eq!(scanner.integer(&mut &[byte][..]), None);
            }
            assert_eq!(scanner.integer(&mut &[last][..]), Some(value));
        }
    }

    #[test]
    fn a_headers_frame_of_a_gigabyte_is_refused_at_its_header() {
        let (mut scanner, budget) = scanner();
        assert_eq!(scanner.scan(&frame(0x1, 1 << 30)), Err(TooLarge));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_reserved_frame_of_a_gigabyte_is_refused_and_a_data_frame_is_not() {
        let (mut grease, _) = scanner();
        assert_eq!(grease.scan(&frame(0x21, 1 << 30)), Err(TooLarge));
        let (mut data, budget) = scanner();
        assert_eq!(data.scan(&frame(0x0, 1 << 40)), Ok(()));
        assert_eq!(data.scan(&[0xff; 100_000]), Ok(()));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn frames_are_followed_byte_by_byte() {
        let (mut scanner, budget) = scanner();
        let mut stream = frame(0x1, 300);
        stream.extend(vec![0xc0; 300]);
        stream.extend(frame(0x0, 0));
        stream.extend(frame(0x0, 70_000));
        stream.extend(vec![0xff; 70_000]);
        stream.extend(frame(0x1, MAX_FRAME));
        for byte in stream {
            assert_eq!(scanner.scan(&[byte]), Ok(()));
        }
        assert_eq!(
            budget.0.load(Ordering::Relaxed),
            MAX_FRAME,
            "the last frame is incomplete"
        );
        assert_eq!(scanner.scan(&vec![0; 65_536]), Ok(()));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
        assert_eq!(scanner.scan(&frame(0x1, MAX_FRAME + 1)), Err(TooLarge));
    }

    #[test]
    fn incomplete_frames_of_one_connection_share_a_budget() {
        let budget = Budget::default();
        let mut streams: Vec<Scanner> = (0..5)
            .map(|_| Scanner::new(State::FrameType, budget.clone()))
            .collect();
        for scanner in &mut streams[..4] {
            assert_eq!(scanner.scan(&frame(0x1, MAX_FRAME)), Ok(()));
        }
        assert_eq!(streams[4].scan(&frame(0x1, 1)), Err(TooLarge));
        drop(streams);
        assert_eq!(
            budget.0.load(Ordering::Relaxed),
            0,
            "dropped streams give back their share"
        );
    }

    #[test]
    fn only_the_control_stream_carries_frames_of_the_unidirectional_ones() {
        let mut control = Scanner::new(State::StreamType, Budget::default());
        assert_eq!(control.scan(&[0x00]), Ok(()));
        assert_eq!(control.scan(&frame(0x4, 1 << 30)), Err(TooLarge));
        let mut qpack = Scanner::new(State::StreamType, Budget::default());
        assert_eq!(qpack.scan(&[0x02]), Ok(()));
        assert_eq!(qpack.scan(&frame(0x4, 1 << 30)), Ok(()));
    }
}
