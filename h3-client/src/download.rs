//! From an open connection to files that are complete, or an error that says why not.
//!
//! A body is complete when the stream has ended with FIN, as many bytes came as Content-Length
//! said (RFC 9114 section 4.1.2; h3 0.0.8 does not compare them), and the checksum is right if one
//! was given. Everything else ends in [`Sink::abandon`].

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::error::{Code, StreamError};
use h3::quic;
use http::{Method, Request, Response, header};
use ring::digest;
use units::ByteCount;

use crate::error::{Error, Failure, Phase, limit};
use crate::sink::{Abandoned, Sink};
use crate::url::Url;
use quic_core::h3_guard::{Guarded, Role};

/// The largest header section, decoded (RFC 9114 section 4.2.2): name, value and 32 bytes a field.
pub const MAX_FIELD_SECTION: u64 = 16 * 1024;

/// The most interim responses (RFC 9110 section 15.2) before the final one.
const MAX_INTERIM: usize = 20;

/// One thing to download, and where to.
pub struct Job {
    /// What.
    pub url: Url,
    /// Where to.
    pub sink: Box<dyn Sink>,
    /// The SHA-256 it has to have.
    pub sha256: Option<[u8; 32]>,
}

/// A completed download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Bytes of body.
    pub size: ByteCount,
    /// Its SHA-256, if one was asked for.
    pub sha256: Option<[u8; 32]>,
}

/// Hears how downloads go on. The number is the job's place in the list.
pub trait Observer: Send + Sync {
    /// The response is good; its body has this size, if the server says so.
    fn on_response(&self, job: usize, size: Option<ByteCount>) {
        let _ = (job, size);
    }

    /// So many more bytes of body came.
    fn on_data(&self, job: usize, size: ByteCount) {
        let _ = (job, size);
    }
}

/// An observer that does nothing.
#[derive(Copy, Clone, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {}

/// Why downloads are given up from outside.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// The time for all of them is up.
    MaxTime(Duration),
    /// A signal came: 2 (SIGINT) or 15 (SIGTERM).
    Signal(u8),
}

impl Cancel {
    pub(crate) fn error(self, phase: Phase) -> Error {
        match self {
            Self::MaxTime(span) => Error::Timeout {
                phase,
                limit: limit("--max-time", span),
            },
            Self::Signal(signal) => Error::Interrupted { phase, signal },
        }
    }
}

/// Downloads all `jobs` over one connection, up to `parallel` at the same time, and closes it.
///
/// All URLs have to be of the connection's authority. There is one result a job, in their order.
/// When `cancel` is ready, what is under way is given up; `std::future::pending()` never is.
///
/// Waits for the peer, but reads no clock: a peer that goes silent is the transport's to notice.
pub async fn download<C>(
    connection: C,
    mut jobs: Vec<Job>,
    parallel: usize,
    observer: &dyn Observer,
    cancel: impl Future<Output = Cancel>,
) -> Vec<Result<Report, Failure>>
where
    C: quic::Connection<Bytes>,
    C::OpenStreams: Clone + Send,
    C::BidiStream: Send,
{
    let host = jobs
        .first()
        .map_or_else(String::new, |job| job.url.host().to_owned());
    let mut cancel = pin!(cancel);
    let guarded = Guarded::new(connection, Role::Client);
    let opened = race(cancel.as_mut(), async {
        h3::client::builder()
            .max_field_section_size(MAX_FIELD_SECTION)
            .send_grease(false)
            .build::<_, _, Bytes>(guarded)
            .await
    })
    .await;
    let (mut driver, requests) = match opened {
        Raced::Done(Ok(opened)) => opened,
        Raced::Done(Err(error)) => {
            let error = Error::from_connection(error, &host, Phase::Connect);
            return fail_all(&jobs, error);
        }
        Raced::Cancelled(why) => return fail_all(&jobs, why.error(Phase::Connect)),
    };

    let states: Vec<_> = jobs.iter().map(|_| SharedPhase::default()).collect();
    let mut tasks: Vec<Task<'_>> = jobs
        .iter_mut()
        .zip(&states)
        .enumerate()
        .map(|(index, (job, state))| {
            let task = fetch(requests.clone(), job, index, observer, state);
            Task::Waiting(Box::pin(task))
        })
        .collect();
    let mut is_driver_done = false;
    let cancelled = poll_fn(|cx| {
        if let Poll::Ready(why) = cancel.as_mut().poll(cx) {
            return Poll::Ready(Some(why));
        }
        // Control frames and their errors; the streams hear of the latter by themselves.
        if !is_driver_done {
            is_driver_done = driver.poll_close(cx).is_ready();
        }
        poll_tasks(&mut tasks, parallel.max(1), cx).map(|()| None)
    })
    .await;
    let mut outcomes: Vec<_> = tasks.into_iter().map(Task::outcome).collect();

    // The last handle gone, h3 closes with H3_NO_ERROR as soon as it is driven once more.
    drop(requests);
    if !is_driver_done {
        poll_fn(|cx| driver.poll_close(cx)).await;
    }
    let mut results = Vec::with_capacity(jobs.len());
    for ((job, state), outcome) in jobs.iter_mut().zip(&states).zip(outcomes.drain(..)) {
        results.push(match (outcome, cancelled) {
            (Some(outcome), _) => outcome,
            (None, Some(why)) => Err(give_up(job, why.error(state.phase()))),
            // Every task is done unless something was cancelled.
            (None, None) => Err(give_up(
                job,
                Error::Interrupted {
                    phase: state.phase(),
                    signal: 2,
                },
            )),
        });
    }
    results
}

type Outcome = Result<Report, Failure>;

fn fail_all(jobs: &[Job], error: Error) -> Vec<Outcome> {
    let error = Arc::new(error);
    jobs.iter().map(|_| Err(error.clone().into())).collect()
}

enum Task<'a> {
    Waiting(Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>),
    Done(Outcome),
}

impl Task<'_> {
    fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Waiting(_) => None,
            Self::Done(outcome) => Some(outcome),
        }
    }
}

/// Polls the first `parallel` tasks that are not done, in their order.
fn poll_tasks(tasks: &mut [Task<'_>], parallel: usize, cx: &mut Context<'_>) -> Poll<()> {
    let mut running = 0;
    for task in tasks {
        if let Task::Waiting(future) = task {
            match future.as_mut().poll(cx) {
                Poll::Ready(outcome) => *task = Task::Done(outcome),
                Poll::Pending => running += 1,
            }
        }
        if running == parallel {
            break;
        }
    }
    if running == 0 {
        Poll::Ready(())
    } else {
        Poll::Pending
    }
}

enum Raced<T> {
    Done(T),
    Cancelled(Cancel),
}

async fn race<T>(
    mut cancel: Pin<&mut impl Future<Output = Cancel>>,
    work: impl Future<Output = T>,
) -> Raced<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Raced::Done(done)),
        Poll::Pending => cancel.as_mut().poll(cx).map(Raced::Cancelled),
    })
    .await
}

/// How far a job has come, readable after its task was dropped.
#[derive(Clone, Default)]
struct SharedPhase(Arc<Mutex<Option<Phase>>>);

impl SharedPhase {
    fn set(&self, phase: Phase) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(phase);
    }

    fn phase(&self) -> Phase {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unwrap_or(Phase::Response)
    }
}

/// Plays one job to its end, whichever that is.
async fn fetch<O>(
    requests: SendRequest<O, Bytes>,
    job: &mut Job,
    index: usize,
    observer: &dyn Observer,
    state: &SharedPhase,
) -> Outcome
where
    O: quic::OpenStreams<Bytes>,
{
    match receive(requests, job, index, observer, state).await {
        Ok(report) => Ok(report),
        Err(error) => Err(give_up(job, error)),
    }
}

fn give_up(job: &mut Job, error: Error) -> Failure {
    let why = match error {
        Error::Checksum { .. } => Abandoned::BadChecksum,
        _ => Abandoned::Incomplete,
    };
    Failure {
        kept: job.sink.abandon(why),
        error: Arc::new(error),
    }
}

async fn receive<O>(
    mut requests: SendRequest<O, Bytes>,
    job: &mut Job,
    index: usize,
    observer: &dyn Observer,
    state: &SharedPhase,
) -> Result<Report, Error>
where
    O: quic::OpenStreams<Bytes>,
{
    let host = job.url.host().to_owned();
    let failed = |error: StreamError| Error::from_stream(error, &host, state.phase());
    state.set(Phase::Response);
    let request = Request::builder()
        .method(Method::GET)
        .uri(job.url.uri().clone())
        .header(
            header::USER_AGENT,
            concat!("tidegate/", env!("CARGO_PKG_VERSION")),
        )
        .header(header::ACCEPT, "*/*")
        .body(())
        .map_err(|error| Error::Url {
            url: job.url.to_string(),
            problem: error.to_string(),
        })?;
    let mut stream = requests.send_request(request).await.map_err(failed)?;
    drop(requests);
    stream.finish().await.map_err(failed)?;

    let mut response = stream.recv_response().await.map_err(failed)?;
    for _ in 0..MAX_INTERIM {
        if !response.status().is_informational() {
            break;
        }
        response = stream.recv_response().await.map_err(failed)?;
    }
    let expected = judge(&response)?;
    let cannot_write = |sink: &dyn Sink, error| Error::Write {
        target: sink.name(),
        error,
        size: expected.map(ByteCount::new),
    };
    job.sink
        .begin(expected.map(ByteCount::new))
        .map_err(|e| cannot_write(&*job.sink, e))?;
    observer.on_response(index, expected.map(ByteCount::new));

    let mut sum = job.sha256.map(|_| digest::Context::new(&digest::SHA256));
    let mut received = 0;
    loop {
        state.set(Phase::Body {
            received: ByteCount::new(received),
            expected: expected.map(ByteCount::new),
        });
        let Some(mut data) = stream.recv_data().await.map_err(failed)? else {
            break;
        };
        let data = data.copy_to_bytes(data.remaining());
        received += data.len() as u64;
        if expected.is_some_and(|expected| received > expected) {
            return Err(wrong_length(
                state.phase(),
                "more bytes came than Content-Length says",
            ));
        }
        if let Some(sum) = &mut sum {
            sum.update(&data);
        }
        let size = ByteCount::new(data.len() as u64);
        job.sink
            .write(data)
            .map_err(|error| cannot_write(&*job.sink, error))?;
        observer.on_data(index, size);
    }
    // Trailers may follow; only after them comes FIN, or a reset.
    stream.recv_trailers().await.map_err(failed)?;
    if expected.is_some_and(|expected| received < expected) {
        let cause = "the server ended the stream before all that Content-Length says had come";
        return Err(wrong_length(state.phase(), cause));
    }
    let sha256 = sum.map(|sum| {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(sum.finish().as_ref());
        bytes
    });
    if let (Some(expected), Some(actual)) = (job.sha256, sha256)
        && expected != actual
    {
        return Err(Error::Checksum { expected, actual });
    }
    job.sink
        .finish()
        .map_err(|error| cannot_write(&*job.sink, error))?;
    Ok(Report {
        size: ByteCount::new(received),
        sha256,
    })
}

fn wrong_length(phase: Phase, cause: &str) -> Error {
    Error::Incomplete {
        phase,
        cause: cause.into(),
    }
}

/// Whether a response is the file asked for; if so, how long it says it is.
fn judge(response: &Response<()>) -> Result<Option<u64>, Error> {
    let status = response.status();
    if status != http::StatusCode::OK {
        let location = response
            .headers()
            .get(header::LOCATION)
            .filter(|_| status.is_redirection());
        let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        return Err(Error::Status { status, location });
    }
    let mut lengths = response
        .headers()
        .get_all(header::CONTENT_LENGTH)
        .iter()
        .map(|value| {
            let text = value.to_str().unwrap_or("");
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u64>().ok()).flatten()
        });
    match lengths.next() {
        None => Ok(None),
        Some(Some(length)) if lengths.all(|other| other == Some(length)) => Ok(Some(length)),
        Some(_) => Err(Error::Http3 {
            code: Code::H3_MESSAGE_ERROR.to_string(),
            side: "seen here",
            reason: "Content-Length is no number, or several numbers".into(),
        }),
    }
}
