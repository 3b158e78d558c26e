//! The transport traits of the crate `h3` on quic-core's connections.
//!
//! Duties that the traits leave to the transport: an unfinished stream that is dropped becomes a
//! RESET, never a FIN; a request that is not read to its end is stopped with H3_NO_ERROR on a server
//! and H3_REQUEST_CANCELLED on a client (RFC 9114 section 4.1.1 and 8.1).

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h3::{
    error::Code,
    quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf},
};

use crate::{
    error::{ConnectionError, ReadError, WriteError},
    handles,
};

/// A connection as `h3` wants it.
pub struct Connection {
    inner: handles::Connection,
}

impl Connection {
    /// Wraps a connection; the handshake should be complete.
    pub fn new(inner: handles::Connection) -> Self {
        Self { inner }
    }
}

/// Opens streams on behalf of `h3`.
#[derive(Clone)]
pub struct OpenStreams {
    inner: handles::Connection,
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let stream = ready!(self.inner.poll_accept_uni(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(RecvStream::new(stream, &self.inner)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let streams = ready!(self.inner.poll_accept_bi(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(BidiStream::new(streams, &self.inner)))
    }

    fn opener(&self) -> Self::OpenStreams {
        OpenStreams {
            inner: self.inner.clone(),
        }
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        poll_open_bidi(&self.inner, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        poll_open_send(&self.inner, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(code.value(), reason);
    }
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        poll_open_bidi(&self.inner, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        poll_open_send(&self.inner, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(code.value(), reason);
    }
}

fn poll_open_bidi<B: Buf>(
    connection: &handles::Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let streams = ready!(connection.poll_open_bi(cx)).map_err(lost)?;
    Poll::Ready(Ok(BidiStream::new(streams, connection)))
}

fn poll_open_send<B: Buf>(
    connection: &handles::Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    let stream = ready!(connection.poll_open_uni(cx)).map_err(lost)?;
    Poll::Ready(Ok(SendStream::new(stream, connection)))
}

/// Both halves of a bidirectional stream.
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    fn new(
        (send, recv): (handles::SendStream, handles::RecvStream),
        connection: &handles::Connection,
    ) -> Self {
        Self {
            send: SendStream::new(send, connection),
            recv: RecvStream::new(recv, connection),
        }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Self::Buf>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// The sending half of a stream.
pub struct SendStream<B: Buf> {
    stream: handles::SendStream,
    /// What `h3` handed over and the stream's buffer has not taken yet.
    writing: Option<WriteBuf<B>>,
    piece: Bytes,
}

impl<B: Buf> SendStream<B> {
    fn new(mut stream: handles::SendStream, connection: &handles::Connection) -> Self {
        stream.set_drop_code(if connection.is_client() {
            Code::H3_REQUEST_CANCELLED.value()
        } else {
            Code::H3_INTERNAL_ERROR.value()
        });
        Self {
            stream,
            writing: None,
            piece: Bytes::new(),
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        loop {
            if !self.piece.is_empty() {
                ready!(self.stream.poll_write_chunk(cx, &mut self.piece)).map_err(write_error)?;
            }
            let Some(writing) = self.writing.as_mut().filter(|buf| buf.has_remaining()) else {
                self.writing = None;
                return Poll::Ready(Ok(()));
            };
            // `h3` owns the buffer's type, so its bytes can only be copied out.
            self.piece = Bytes::copy_from_slice(writing.chunk());
            writing.advance(self.piece.len());
        }
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(
                    "data handed over before the previous data was taken".to_owned(),
                ),
            });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        Poll::Ready(self.stream.finish().map_err(write_error))
    }

    fn reset(&mut self, reset_code: u64) {
        self.writing = None;
        self.piece = Bytes::new();
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        let mut piece = Bytes::copy_from_slice(buf.chunk());
        let length = piece.len();
        ready!(self.stream.poll_write_chunk(cx, &mut piece)).map_err(write_error)?;
        buf.advance(length);
        Poll::Ready(Ok(length))
    }
}

/// The receiving half of a stream.
pub struct RecvStream {
    stream: handles::RecvStream,
}

impl RecvStream {
    fn new(mut stream: handles::RecvStream, connection: &handles::Connection) -> Self {
        stream.set_drop_code(if connection.is_client() {
            Code::H3_REQUEST_CANCELLED.value()
        } else {
            Code::H3_NO_ERROR.value()
        });
        Self { stream }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Self::Buf>, StreamErrorIncoming>> {
        self.stream
            .poll_read_chunk(cx, usize::MAX)
            .map_err(read_error)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

/// A stream number from quinn-proto always fits.
fn stream_id(id: u64) -> StreamId {
    StreamId::try_from(id).unwrap_or_else(|_| unreachable!("stream numbers are below 2^62"))
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ClosedByPeer { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code },
        WriteError::ConnectionLost(error) => lost(error),
        WriteError::Closed => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code },
        ReadError::ConnectionLost(error) => lost(error),
        ReadError::Closed => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
