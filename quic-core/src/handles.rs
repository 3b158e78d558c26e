//! What an application holds: endpoint, connection and stream handles.
//!
//! They are plain futures over one lock per endpoint: no runtime, no clock, no spawning, so they work
//! the same on both hosts. A handle's call takes the lock once; a read fills a small buffer with all
//! that is there, so that the lock is not taken per packet.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use quinn_proto::{Dir, StreamId};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    conn::{Conn, ConnectionStats},
    driver::Driver,
    error::{ConnectError, ConnectionError, ReadError, WriteError},
    streams::varint,
};

/// The lock around an endpoint.
pub(crate) struct Shared {
    driver: Mutex<Driver>,
    has_work: Arc<AtomicBool>,
}

impl Shared {
    pub(crate) fn new(driver: Driver) -> Arc<Self> {
        let has_work = driver.work_flag();
        Arc::new(Self {
            driver: Mutex::new(driver),
            has_work,
        })
    }

    /// Whether [`Driver::poll_transmit`] should be called; asks without the lock.
    pub(crate) fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// A panic elsewhere while the lock was held leaves the state as it was between two calls into
    /// quinn-proto; going on is safe.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A QUIC endpoint: opens connections, accepts them, or both. Clones name the same endpoint.
///
/// The host (the UDP task, the virtual network) ends when the last clone and every connection are
/// gone.
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let mut driver = self.shared.lock();
        driver.handle_count -= 1;
        if driver.handle_count == 0 {
            driver.on_last_handle_dropped();
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.lock().handle_count += 1;
        Self { shared }
    }

    /// Begins a connection; the handshake goes on by itself. `server_name` is what the certificate
    /// must be valid for.
    pub fn connect(
        &self,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let key = self.shared.lock().connect(remote, server_name)?;
        Ok(Connection::new(self.shared.clone(), key))
    }

    /// The next connection whose handshake is complete; `None` when no more will come.
    pub async fn accept(&self) -> Option<Connection> {
        let key = poll_fn(|cx| match self.shared.lock().poll_accept(cx.waker()) {
            Ok(Some(key)) => Poll::Ready(Some(key)),
            Ok(None) => Poll::Pending,
            Err(()) => Poll::Ready(None),
        })
        .await?;
        Some(Connection::new(self.shared.clone(), key))
    }

    /// Refuses new connections from now on; those that exist go on.
    pub fn stop_accepting(&self) {
        self.shared.lock().stop_accepting();
    }

    /// Closes every connection with the application's `code` (RFC 9000 section 10.2) and refuses new
    /// ones.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared.lock().close(code, reason);
    }

    /// Waits until every connection has been closed and its draining period is over.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| {
            if self.shared.lock().poll_idle(cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// The address the endpoint is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.lock().local_addr()
    }
}

/// One QUIC connection. Clones name the same connection; when the last clone and the last stream
/// are dropped, it is closed with code 0.
pub struct Connection {
    shared: Arc<Shared>,
    key: usize,
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone(), self.key)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.lock().release(self.key);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Connection {
    fn new(shared: Arc<Shared>, key: usize) -> Self {
        shared.lock().conns[key].handle_count += 1;
        Self { shared, key }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Conn) -> R) -> R {
        f(&mut self.shared.lock().conns[self.key])
    }

    /// As [`Self::with`], and the host looks at the connection afterwards.
    fn change<R>(&self, f: impl FnOnce(&mut Conn) -> R) -> R {
        let mut driver = self.shared.lock();
        let result = f(&mut driver.conns[self.key]);
        driver.touch(self.key);
        result
    }

    /// Waits for the handshake to complete.
    pub async fn handshake(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            self.with(|conn| match conn.error() {
                Some(error) => Poll::Ready(Err(error.clone())),
                None if conn.is_established() => Poll::Ready(Ok(())),
                None => {
                    conn.await_state(cx.waker());
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Opens a bidirectional stream; waits while the peer's limit is reached.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_open_bi(cx)).await
    }

    /// Opens a unidirectional stream; waits while the peer's limit is reached.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        poll_fn(|cx| self.poll_open_uni(cx)).await
    }

    /// The next bidirectional stream that the peer opens.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_accept_bi(cx)).await
    }

    /// The next unidirectional stream that the peer opens.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        poll_fn(|cx| self.poll_accept_uni(cx)).await
    }

    /// [`Self::open_bi`] as a poll.
    pub fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_stream(|conn| conn.open(Dir::Bi, cx.waker()))
            .map_ok(|id| self.both(id))
    }

    /// [`Self::open_uni`] as a poll.
    pub fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        self.poll_stream(|conn| conn.open(Dir::Uni, cx.waker()))
            .map_ok(|id| SendStream::new(self.clone(), id))
    }

    /// [`Self::accept_bi`] as a poll.
    pub fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_stream(|conn| conn.accept(Dir::Bi, cx.waker()))
            .map_ok(|id| self.both(id))
    }

    /// [`Self::accept_uni`] as a poll.
    pub fn poll_accept_uni(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionError>> {
        self.poll_stream(|conn| conn.accept(Dir::Uni, cx.waker()))
            .map_ok(|id| RecvStream::new(self.clone(), id))
    }

    fn poll_stream(
        &self,
        take: impl FnOnce(&mut Conn) -> Option<StreamId>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        self.with(|conn| {
            if let Some(error) = conn.error() {
                return Poll::Ready(Err(error.clone()));
            }
            take(conn).map_or(Poll::Pending, |id| Poll::Ready(Ok(id)))
        })
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        (
            SendStream::new(self.clone(), id),
            RecvStream::new(self.clone(), id),
        )
    }

    /// Closes the connection at once with the application's `code`; what was not acknowledged may
    /// be lost (RFC 9000 section 10.2).
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.change(|conn| conn.request_close(code, reason));
    }

    /// Waits for the end of the connection and says why.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| {
            self.with(|conn| match conn.error() {
                Some(error) => Poll::Ready(error.clone()),
                None => {
                    conn.await_state(cx.waker());
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Why the connection ended, if it has.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.with(|conn| conn.error().cloned())
    }

    /// A snapshot of counters and figures.
    pub fn stats(&self) -> ConnectionStats {
        let driver = self.shared.lock();
        driver.conns[self.key].stats(driver.now())
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.with(|conn| conn.remote_address())
    }

    /// The application protocol that both agreed on, once the handshake has got there.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.with(|conn| conn.alpn())
    }

    /// Whether this side opened the connection.
    pub fn is_client(&self) -> bool {
        self.with(|conn| conn.is_client())
    }
}

/// The sending half of a stream.
///
/// Dropped before [`finish`](Self::finish), it resets the stream (RFC 9000 section 3.1): a peer never
/// takes an unfinished stream for a complete one.
pub struct SendStream {
    connection: Connection,
    id: StreamId,
    drop_code: u64,
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let (id, code) = (self.id, self.drop_code);
        self.connection.change(|conn| {
            let (quic, streams) = conn.quic_and_streams();
            streams.abandon(id, code, quic);
        });
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendStream({})", self.id())
    }
}

impl SendStream {
    fn new(connection: Connection, id: StreamId) -> Self {
        Self {
            connection,
            id,
            drop_code: 0,
        }
    }

    /// The code of the reset that a drop causes; 0 unless set.
    pub fn set_drop_code(&mut self, code: u64) {
        self.drop_code = code;
    }

    /// The stream's number on the wire.
    pub fn id(&self) -> u64 {
        quinn_proto::VarInt::from(self.id).into_inner()
    }

    /// Queues `data` without copying it, as soon as the stream's buffer has room. A chunk that is
    /// larger than the buffer is taken whole.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_write_chunk(cx, &mut data)).await
    }

    /// [`Self::write_chunk`] as a poll; `data` is empty once it was taken.
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        let mut driver = self.connection.shared.lock();
        let limit = driver.send_buffer();
        let conn = &mut driver.conns[self.connection.key];
        if let Some(error) = conn.error() {
            return Poll::Ready(Err(error.clone().into()));
        }
        let taken = conn.streams.write(self.id, data, limit, cx.waker())?;
        if taken {
            driver.touch(self.connection.key);
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Ends the stream after what was queued.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let id = self.id;
        self.connection.change(|conn| {
            if let Some(error) = conn.error() {
                return Err(error.clone().into());
            }
            conn.streams.finish(id)
        })
    }

    /// Abandons the stream with the application's `code` (RFC 9000 section 19.4).
    pub fn reset(&mut self, code: u64) {
        let id = self.id;
        self.connection.change(|conn| {
            let (quic, streams) = conn.quic_and_streams();
            streams.reset(id, code, quic);
        });
    }

    /// Waits until the peer has acknowledged the whole stream (`None`), or asks to stop with a code.
    pub async fn stopped(&mut self) -> Result<Option<u64>, ConnectionError> {
        poll_fn(|cx| self.poll_stopped(cx)).await
    }

    /// [`Self::stopped`] as a poll.
    pub fn poll_stopped(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<u64>, ConnectionError>> {
        let id = self.id;
        self.connection.with(|conn| {
            if let Some(error) = conn.error() {
                return Poll::Ready(Err(error.clone()));
            }
            conn.streams
                .poll_stopped(id, cx.waker())
                .map_or(Poll::Pending, |stopped| Poll::Ready(Ok(stopped)))
        })
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut data = Bytes::copy_from_slice(buf);
        self.poll_write_chunk(cx, &mut data)
            .map_ok(|()| buf.len())
            .map_err(io::Error::from)
    }

    /// Nothing to do: the driver sends as soon as the gate lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the stream; does not wait for the acknowledgement.
    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(io::Error::from))
    }
}

/// The receiving half of a stream. Dropped before its end, it asks the peer to stop
/// (RFC 9000 section 3.5).
pub struct RecvStream {
    connection: Connection,
    id: StreamId,
    drop_code: u64,
    /// Read under one lock, handed out one by one.
    chunks: VecDeque<Bytes>,
    end: Option<Result<(), ReadError>>,
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.stop(self.drop_code);
        } else {
            let id = self.id;
            self.connection.with(|conn| {
                let (quic, receive) = conn.quic_and_receive();
                receive.forget(id, quic);
            });
        }
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecvStream({})", self.id())
    }
}

/// Most bytes that one lock reads ahead; they count as consumed for flow control.
const READ_AHEAD_BYTES: usize = 64 * 1024;

impl RecvStream {
    fn new(connection: Connection, id: StreamId) -> Self {
        Self {
            connection,
            id,
            drop_code: 0,
            chunks: VecDeque::new(),
            end: None,
        }
    }

    /// The code of the stop that a drop causes; 0 unless set.
    pub fn set_drop_code(&mut self, code: u64) {
        self.drop_code = code;
    }

    /// The stream's number on the wire.
    pub fn id(&self) -> u64 {
        quinn_proto::VarInt::from(self.id).into_inner()
    }

    /// The next bytes in order, at most `max_length` of them; `None` at the end of the stream.
    pub async fn read_chunk(&mut self, max_length: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max_length)).await
    }

    /// [`Self::read_chunk`] as a poll.
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max_length: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if self.chunks.is_empty() {
            self.fill(cx);
        }
        if let Some(front) = self.chunks.front_mut() {
            if front.len() > max_length {
                return Poll::Ready(Ok(Some(front.split_to(max_length))));
            }
            return Poll::Ready(Ok(self.chunks.pop_front()));
        }
        match &self.end {
            Some(end) => Poll::Ready(end.clone().map(|()| None)),
            None => Poll::Pending,
        }
    }

    fn fill(&mut self, cx: &mut Context<'_>) {
        if self.end.is_some() {
            return;
        }
        let mut driver = self.connection.shared.lock();
        let conn = &mut driver.conns[self.connection.key];
        let lost = conn.error().cloned();
        let (quic, receive) = conn.quic_and_receive();
        let read = receive.read(
            self.id,
            READ_AHEAD_BYTES,
            &mut self.chunks,
            cx.waker(),
            lost,
            quic,
        );
        self.end = read.end;
        if read.must_transmit {
            driver.touch(self.connection.key);
        }
    }

    /// Reads no further and asks the peer to stop with the application's `code`
    /// (RFC 9000 section 19.5).
    pub fn stop(&mut self, code: u64) {
        let id = self.id;
        self.chunks.clear();
        self.end = Some(Err(ReadError::Closed));
        self.connection.change(|conn| {
            let (quic, receive) = conn.quic_and_receive();
            receive.forget(id, quic);
            // Fails only if the stream has ended already.
            let _ = quic.recv_stream(id).stop(varint(code));
        });
    }

    /// Whether the end of the stream, or its failure, has been read.
    pub fn is_ended(&self) -> bool {
        self.end.is_some() && self.chunks.is_empty()
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        match self.poll_read_chunk(cx, room) {
            Poll::Ready(Ok(chunk)) => {
                if let Some(chunk) = chunk {
                    buf.put_slice(&chunk);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}
