//! From a connection to answered requests.
//!
//! ```text
//!   accept --> resolve --> check --> answer --> body --> finish --> read the request to its end
//!     |        (deadline)    |                   |                  or STOP_SENDING H3_NO_ERROR
//!     |                      |                   +-- file changed: RESET H3_INTERNAL_ERROR
//!     |                      +-- malformed: RESET H3_MESSAGE_ERROR
//!     +-- after GOAWAY: RESET H3_REQUEST_REJECTED
//! ```
//!
//! RFC 9114 sections 4.1 (request and response), 4.1.2 (malformed), 5.2 (shutdown). What the crate
//! h3 0.0.8 leaves out is done here or in [`quic_core::h3_guard`]: GOAWAY names the first request that is
//! *not* served, although h3 would name the last that is; a connection is held until its requests
//! are done and its peer has gone.

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::{Buf, Bytes};
use h3::error::{Code, ConnectionError, StreamError};
use h3::quic;
use h3::server::{RequestResolver, RequestStream};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use units::ByteCount;

use crate::content;
use crate::shutdown::{Phase, Shutdown, Watch};
use crate::site::{Answer, Body, Site};
use quic_core::h3_guard::{Guarded, GuardedStream, Role};

/// A task without a result.
pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts a task on whatever runs this server.
pub type Spawn = Arc<dyn Fn(BoxFuture) + Send + Sync>;

/// Gives a future that is ready after a span of whatever time this server lives in.
pub type Timer = Arc<dyn Fn(Duration) -> BoxFuture + Send + Sync>;

/// Hears of every request once it is over.
type Log = Arc<dyn Fn(&AccessRecord) + Send + Sync>;

/// The largest header section, decoded (RFC 9114 section 4.2.2): name, value and 32 bytes a field.
pub const MAX_FIELD_SECTION: u64 = 16 * 1024;

/// The most field lines in a request.
const MAX_FIELDS: usize = 100;

/// How long a request may take to arrive, if there is a timer.
const HEADER_DEADLINE: Duration = Duration::from_secs(10);

/// How much of a request's body is read and thrown away once its response is complete.
const MAX_DRAINED: usize = 64 * 1024;

/// So many requests without a usable header section end the connection, unless more were served.
const MAX_FAILED: u64 = 200;

/// Serves `connection` until it ends. See [`Server`] for what can be set.
pub async fn serve_connection<C>(
    connection: C,
    site: Arc<Site>,
    spawn: impl Fn(BoxFuture) + Send + Sync + 'static,
    shutdown: Shutdown,
) -> Served
where
    C: quic::Connection<Bytes> + 'static,
    C::BidiStream: Send + 'static,
{
    Server::new(site, Arc::new(spawn), shutdown)
        .serve(connection, Link::default())
        .await
}

/// What all connections of one server share. Clones share it too.
#[derive(Clone)]
pub struct Server {
    site: Arc<Site>,
    spawn: Spawn,
    shutdown: Shutdown,
    timer: Option<Timer>,
    log: Option<Log>,
    wall_clock: Option<fn() -> SystemTime>,
}

impl Server {
    /// A server of `site` that starts one task a request with `spawn` and ends with `shutdown`.
    pub fn new(site: Arc<Site>, spawn: Spawn, shutdown: Shutdown) -> Self {
        Self {
            site,
            spawn,
            shutdown,
            timer: None,
            log: None,
            wall_clock: None,
        }
    }

    /// Resets requests whose header section takes longer than 10 s by this timer.
    pub fn with_timer(mut self, timer: Timer) -> Self {
        self.timer = Some(timer);
        self
    }

    /// Tells `log` of every request once it is over.
    pub fn with_log(mut self, log: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// Puts this clock's time into the `Date` of every response. Without it there is no `Date`
    /// (RFC 9110 section 6.6.1 asks servers that have a clock to send it).
    pub fn with_wall_clock(mut self, wall_clock: fn() -> SystemTime) -> Self {
        self.wall_clock = Some(wall_clock);
        self
    }

    /// Serves one connection until it ends: the peer closes or is lost; or the server drains, all
    /// requests are done, and the peer has left or has everything; or the server closes.
    ///
    /// Dropping the future closes the connection.
    pub async fn serve<C>(&self, connection: C, link: Link) -> Served
    where
        C: quic::Connection<Bytes> + 'static,
        C::BidiStream: Send + 'static,
    {
        let requests = Requests::default();
        let end = match self.accept_requests(connection, link, &requests).await {
            Ok(end) => end,
            Err(error) if error.is_h3_no_error() => End::Peer,
            Err(error) => End::Error(error.to_string()),
        };
        let counts = requests.lock();
        Served {
            completed: counts.completed,
            failed: counts.failed,
            end,
        }
    }

    async fn accept_requests<C>(
        &self,
        connection: C,
        mut link: Link,
        requests: &Requests,
    ) -> Result<End, ConnectionError>
    where
        C: quic::Connection<Bytes> + 'static,
        C::BidiStream: Send + 'static,
    {
        let watch = self.shutdown.watch();
        let guarded = Guarded::new(connection, Role::Server);
        let mut connection = h3::server::builder()
            .max_field_section_size(MAX_FIELD_SECTION)
            .send_grease(false)
            .build::<_, Bytes>(guarded)
            .await?;
        let mut next_id = 0;
        // RFC 9114 section 5.2: requests from this identifier on are not served.
        let mut rejected_from = u64::MAX;
        loop {
            let phase = if rejected_from == u64::MAX {
                Phase::Draining
            } else {
                Phase::Closing
            };
            let settled = link.settled.as_mut().filter(|_| phase == Phase::Closing);
            match next_step(&mut connection, &watch, phase, requests, settled).await {
                Step::Request(mut resolver) => {
                    let id = resolver.frame_stream.id().into_inner();
                    if id >= rejected_from {
                        quic::SendStream::<Bytes>::reset(
                            &mut resolver.frame_stream,
                            Code::H3_REQUEST_REJECTED.value(),
                        );
                        continue;
                    }
                    next_id = id + 4;
                    requests.begin();
                    let task = answer_request(self.clone(), resolver, link.peer, requests.clone());
                    (self.spawn)(Box::pin(task));
                }
                Step::Drain => {
                    // h3 sends the last identifier it accepted plus this many requests.
                    let beyond = usize::from(next_id > 0);
                    rejected_from = next_id;
                    connection.shutdown(beyond).await?;
                }
                Step::Close => return Ok(End::Closed),
                Step::Excessive => {
                    let reason = b"too many requests without a header section";
                    quic::OpenStreams::<Bytes>::close(
                        &mut connection.inner.conn,
                        Code::H3_EXCESSIVE_LOAD,
                        reason,
                    );
                    return Ok(End::Error(String::from_utf8_lossy(reason).into()));
                }
                Step::Left(result) => {
                    result?;
                    // The peer has sent GOAWAY and has no request under way: it is done, but may
                    // still lack the end of a response. It closes when it has everything.
                    wait_for_close(&mut connection, &watch).await;
                    return Ok(End::Peer);
                }
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// What [`Server::serve`] is told about one connection besides the connection itself.
#[derive(Default)]
pub struct Link {
    /// Who is at the other end, for the log.
    pub peer: Option<SocketAddr>,
    /// Ready when the peer has everything that was sent. It is first polled when the server drains
    /// and no request is left, and ends the wait for a peer that keeps an idle connection open.
    /// Without it such a connection stays until [`Shutdown::close`].
    pub settled: Option<BoxFuture>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Requests answered to the last byte.
    pub completed: u64,
    /// Requests that ended before that.
    pub failed: u64,
    /// Why the connection ended.
    pub end: End,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it without an error.
    Peer,
    /// This side closed it, being told to.
    Closed,
    /// It was lost, or broke a rule.
    Error(String),
}

/// One request, after it is over. Its `Display` is a line of the access log:
/// `[::1]:50612 GET /hello.txt 200 6 sent`. Sent means handed to the transport to the last byte; whether
/// the peer has acknowledged it is in the qlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRecord {
    /// Who asked.
    pub peer: Option<SocketAddr>,
    /// The method and the path with its query; `None` if no header section came.
    pub request: Option<(Method, String)>,
    /// The status sent, if one was.
    pub status: Option<StatusCode>,
    /// Bytes of body handed to QUIC.
    pub sent: ByteCount,
    /// Why the response is not complete, or `None` if it is.
    pub failure: Option<String>,
}

impl fmt::Display for AccessRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "{peer} ")?,
            None => f.write_str("- ")?,
        }
        match &self.request {
            // Escaped, so that no path can forge a line or drive a terminal.
            Some((method, path)) => write!(f, "{method} {} ", path.escape_default())?,
            None => f.write_str("- - ")?,
        }
        match self.status {
            Some(status) => write!(f, "{} ", status.as_u16())?,
            None => f.write_str("- ")?,
        }
        write!(f, "{} ", self.sent.as_u64())?;
        match &self.failure {
            None => f.write_str("sent"),
            Some(failure) => write!(f, "incomplete: {}", failure.escape_debug()),
        }
    }
}

enum Step<C: quic::Connection<Bytes>> {
    Request(RequestResolver<Guarded<C>, Bytes>),
    Drain,
    Close,
    Excessive,
    Left(Result<(), ConnectionError>),
}

/// Waits for whatever comes first: a request, the next phase of the shutdown, or too much trouble.
async fn next_step<C>(
    connection: &mut h3::server::Connection<Guarded<C>, Bytes>,
    watch: &Watch,
    phase: Phase,
    requests: &Requests,
    mut settled: Option<&mut BoxFuture>,
) -> Step<C>
where
    C: quic::Connection<Bytes>,
{
    let mut accept = pin!(connection.accept());
    poll_fn(|cx| {
        if watch.poll_reached(phase, cx).is_ready() {
            let is_closing = watch.phase() == Phase::Closing;
            return Poll::Ready(if is_closing { Step::Close } else { Step::Drain });
        }
        if requests.poll_excessive(cx).is_ready() {
            return Poll::Ready(Step::Excessive);
        }
        if let Some(settled) = &mut settled
            && !requests.is_active()
            && settled.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Step::Close);
        }
        accept.as_mut().poll(cx).map(|accepted| match accepted {
            Ok(Some(resolver)) => Step::Request(resolver),
            Ok(None) => Step::Left(Ok(())),
            Err(error) => Step::Left(Err(error)),
        })
    })
    .await
}

async fn wait_for_close<C>(
    connection: &mut h3::server::Connection<Guarded<C>, Bytes>,
    watch: &Watch,
) where
    C: quic::Connection<Bytes>,
{
    poll_fn(|cx| {
        if watch.poll_reached(Phase::Closing, cx).is_ready() {
            return Poll::Ready(());
        }
        // A request after the peer's own GOAWAY is dropped, and so reset.
        while let Poll::Ready(accepted) = connection.inner.poll_accept_bi(cx) {
            if accepted.is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

type Stream<S> = RequestStream<GuardedStream<S>, Bytes>;

/// Lives as one task: a request from its first byte to the last of its response.
async fn answer_request<C>(
    server: Server,
    resolver: RequestResolver<Guarded<C>, Bytes>,
    peer: Option<SocketAddr>,
    requests: Requests,
) where
    C: quic::Connection<Bytes>,
{
    let mut record = AccessRecord {
        peer,
        request: None,
        status: None,
        sent: ByteCount::ZERO,
        failure: None,
    };
    let outcome = match resolve(&server, resolver).await {
        Ok((request, stream)) => {
            let target = request
                .uri()
                .path_and_query()
                .map_or("", |target| target.as_str());
            record.request = Some((request.method().clone(), target.into()));
            respond(&server, &request, stream, &mut record).await
        }
        Err(failure) => Err(failure),
    };
    record.failure = outcome.err();
    requests.end(&record);
    if let Some(log) = &server.log {
        log(&record);
    }
}

async fn resolve<C>(
    server: &Server,
    resolver: RequestResolver<Guarded<C>, Bytes>,
) -> Result<(Request<()>, Stream<C::BidiStream>), String>
where
    C: quic::Connection<Bytes>,
{
    let mut resolve = pin!(resolver.resolve_request());
    let mut deadline = server.timer.as_ref().map(|timer| timer(HEADER_DEADLINE));
    poll_fn(|cx| {
        if let Poll::Ready(resolved) = resolve.as_mut().poll(cx) {
            return Poll::Ready(resolved.map_err(|error| error.to_string()));
        }
        let is_late = deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready());
        if is_late {
            return Poll::Ready(Err(format!("no header section within {HEADER_DEADLINE:?}")));
        }
        Poll::Pending
    })
    .await
}

async fn respond<S>(
    server: &Server,
    request: &Request<()>,
    mut stream: Stream<S>,
    record: &mut AccessRecord,
) -> Result<(), String>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    if let Err(problem) = check(request) {
        stream.stop_stream(Code::H3_MESSAGE_ERROR);
        stream.stop_sending(Code::H3_MESSAGE_ERROR);
        return Err(format!("malformed request: {problem}"));
    }
    let answer = if request.headers().len() > MAX_FIELDS {
        Answer::error(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
    } else {
        server.site.answer(request.method(), request.uri().path())
    };
    let Answer {
        status,
        fields,
        body,
    } = answer;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    if let Some(now) = server.wall_clock
        && let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(now()))
    {
        response.headers_mut().insert(header::DATE, date);
    }
    let given_up = |error: StreamError| error.to_string();
    stream.send_response(response).await.map_err(given_up)?;
    record.status = Some(status);
    send_body(&mut stream, body, &mut record.sent).await?;
    stream.finish().await.map_err(given_up)?;
    read_to_end(&mut stream).await;
    Ok(())
}

/// Sends the body piece by piece. Returns only if all of it went out and still is what it was.
async fn send_body<S>(
    stream: &mut Stream<S>,
    body: Body,
    sent: &mut ByteCount,
) -> Result<(), String>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    let size = match &body {
        Body::Empty => 0,
        Body::Text(text) => text.len() as u64,
        Body::Generated(size) => size.as_u64(),
        Body::File(file) => file.size(),
    };
    let mut offset = 0;
    while offset < size {
        let piece = match &body {
            Body::Empty => Ok(Bytes::new()),
            Body::Text(text) => Ok(text.clone()),
            Body::Generated(_) => Ok(content::chunk(offset, size - offset)),
            Body::File(file) => file.piece(offset),
        };
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return Err(break_off(stream, &error)),
        };
        let length = piece.len() as u64;
        stream
            .send_data(piece)
            .await
            .map_err(|error| error.to_string())?;
        offset += length;
        *sent = ByteCount::new(offset);
    }
    if let Body::File(file) = &body
        && let Err(error) = file.check_unchanged()
    {
        return Err(break_off(stream, &error));
    }
    Ok(())
}

/// What was sent can no longer be completed truthfully: never a FIN after it.
fn break_off<S>(stream: &mut Stream<S>, error: &std::io::Error) -> String
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    stream.stop_stream(Code::H3_INTERNAL_ERROR);
    error.to_string()
}

/// Reads what has already arrived of the request after its header section. If its end has not, the
/// guard stops it with H3_NO_ERROR when the stream is dropped: curl takes any other code for a
/// failed transfer (hyperium/h3#321).
async fn read_to_end<S>(stream: &mut Stream<S>)
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    let mut drained = 0;
    poll_fn(|cx| {
        while drained <= MAX_DRAINED {
            match stream.poll_recv_data(cx) {
                Poll::Ready(Ok(Some(data))) => drained += data.remaining(),
                Poll::Ready(Ok(None) | Err(_)) | Poll::Pending => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

/// What makes a request malformed (RFC 9114 sections 4.1.2, 4.2 and 4.3.1) and is still visible
/// after h3 has parsed it.
fn check(request: &Request<()>) -> Result<(), &'static str> {
    const FORBIDDEN: [HeaderName; 3] = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    const FORBIDDEN_TOO: [&str; 2] = ["keep-alive", "proxy-connection"];

    let (uri, fields) = (request.uri(), request.headers());
    if FORBIDDEN.iter().any(|name| fields.contains_key(name))
        || FORBIDDEN_TOO.iter().any(|&name| fields.contains_key(name))
    {
        return Err("a connection-specific field");
    }
    if fields
        .get_all(header::TE)
        .iter()
        .any(|value| value != "trailers")
    {
        return Err("TE other than trailers");
    }
    check_content_length(fields)?;
    if fields.get_all(header::HOST).iter().count() > 1 {
        return Err("more than one Host");
    }
    match uri.authority() {
        None => return Err("no authority"),
        Some(authority) if authority.as_str().contains('@') => return Err("user information"),
        Some(_) => {}
    }
    if request.method() == Method::CONNECT {
        return Ok(());
    }
    if request.extensions().get::<h3::ext::Protocol>().is_some() {
        return Err(":protocol without CONNECT");
    }
    if uri.scheme_str() != Some("https") {
        return Err("a scheme other than https");
    }
    if !uri.path().starts_with('/') && uri.path() != "*" {
        return Err("a path that does not start with a slash");
    }
    Ok(())
}

fn check_content_length(fields: &HeaderMap) -> Result<(), &'static str> {
    let mut lengths = fields.get_all(header::CONTENT_LENGTH).iter().map(|value| {
        let text = value.to_str().unwrap_or("");
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    });
    match lengths.next() {
        None => Ok(()),
        Some(Some(first)) if lengths.all(|length| length == Some(first)) => Ok(()),
        Some(_) => Err("a Content-Length that is no number or several numbers"),
    }
}

/// The requests of one connection, counted.
#[derive(Clone, Debug, Default)]
struct Requests(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    active: u64,
    completed: u64,
    failed: u64,
    /// Of those failed: ended before a usable header section.
    unusable: u64,
    waker: Option<Waker>,
}

impl Requests {
    fn begin(&self) {
        self.lock().active += 1;
    }

    fn end(&self, record: &AccessRecord) {
        let mut counts = self.lock();
        counts.active = counts.active.saturating_sub(1);
        if record.failure.is_none() {
            counts.completed += 1;
        } else {
            counts.failed += 1;
            counts.unusable += u64::from(record.status.is_none());
        }
        let waker = counts.waker.take();
        drop(counts);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_active(&self) -> bool {
        self.lock().active > 0
    }

    fn poll_excessive(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut counts = self.lock();
        if counts.unusable > MAX_FAILED && counts.unusable > counts.completed {
            return Poll::Ready(());
        }
        counts.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
