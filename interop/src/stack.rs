//! The two endpoints of a run, whatever carries their datagrams: an HTTP/3 server of generated
//! bytes and an HTTP/3 client that downloads them, both on quic-core.
//!
//! Both players use the same set-up, so a run in virtual time and a run over real sockets differ in
//! the host only.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cc::{Algorithm, Transition};
use h3_client::{CountingSink, Job, Quiet, Sink, Url, download};
use h3_server::content::Verifier;
use quic_core::tls::{ALPN_H3, ServerTls, TlsOptions, Trust, client_config, server_config};
use quic_core::{
    ClientConfig, Connection, ConnectionStats, EndpointConfig, SenderObserver, SenderUpdate,
    ServerConfig, h3_adapter, log_to_directory,
};
use units::{ByteCount, Timestamp};

use crate::play::{PlayError, PlayRequest};
use crate::record::Recorder;
use crate::results::{FaultCounts, Outcome, SenderCounts};
use crate::scenario::Download;

/// The name in the server's certificate, and the host of every URL.
pub(crate) const SERVER_NAME: &str = "localhost";

/// More than any link of a scenario moves in an hour: what a download without a size asks for.
const ENDLESS: ByteCount = h3_server::content::MAX_SIZE;

/// A recorder that several parts of a run write to.
pub(crate) type SharedRecorder = Arc<Mutex<Recorder>>;

/// What time it is on the clock of the run.
pub(crate) type RunClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The TLS of both ends, made once and used by every run.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) server: ServerConfig,
    pub(crate) client: ClientConfig,
    /// Of flows that are not HTTP/3.
    pub(crate) flow_server: ServerConfig,
    pub(crate) flow_client: ClientConfig,
}

impl Identity {
    /// A certificate that is the same in every run; no resumption, so that handshakes are too.
    pub(crate) fn new() -> Result<Self, PlayError> {
        let options = TlsOptions::virtual_time();
        let problem = |error: &dyn std::fmt::Display| PlayError(format!("TLS: {error}"));
        let identity = ServerTls::generate_for_tests(&[]).map_err(|e| problem(&e))?;
        let trust = Trust::CaDer(identity.chain().to_vec());
        let server = |alpn| {
            let config = server_config(&identity, &[alpn], &options).map_err(|e| problem(&e))?;
            ServerConfig::new(config).map_err(|e| problem(&e))
        };
        let client = |alpn| {
            let config = client_config(&trust, &[alpn], &options).map_err(|e| problem(&e))?;
            ClientConfig::new(config).map_err(|e| problem(&e))
        };
        Ok(Self {
            server: server(ALPN_H3)?,
            client: client(ALPN_H3)?,
            flow_server: server(crate::flows::ALPN)?,
            flow_client: client(crate::flows::ALPN)?,
        })
    }

    /// Nobody's: packets of the same sizes at the same instants, without cryptography. For virtual time only.
    pub(crate) fn unprotected() -> Self {
        Self {
            server: ServerConfig::unprotected(&[ALPN_H3]),
            client: ClientConfig::unprotected(&[ALPN_H3]),
            flow_server: ServerConfig::unprotected(&[crate::flows::ALPN]),
            flow_client: ClientConfig::unprotected(&[crate::flows::ALPN]),
        }
    }
}

/// How the endpoints of a run are set up. `is_server` is the side that sends the download.
pub(crate) fn endpoint_config(
    request: &PlayRequest<'_>,
    is_server: bool,
    problem: &LogTrouble,
) -> EndpointConfig {
    EndpointConfig {
        algorithm: *request.algorithm,
        datagram_size: request.scenario.datagram,
        // scenarios.md 2.1: no discovery, and windows that never limit.
        has_mtu_discovery: false,
        stream_receive_window: ByteCount::mib(32),
        receive_window: ByteCount::mib(64),
        send_window: ByteCount::mib(64),
        // A run whose link stays silent is ended by the scenario's limit, not by the transport.
        idle_timeout: None,
        seed: Some(request.seed.wrapping_mul(2) + u64::from(is_server)),
        log: request.qlog_dir.map(|dir| {
            let problem = problem.clone();
            log_to_directory(
                dir,
                Arc::new(move |text: &str| {
                    lock(&problem).get_or_insert_with(|| text.to_owned());
                }),
            )
        }),
        log_title: format!(
            "{}, {}, seed {}",
            request.scenario.name, request.case.name, request.seed
        ),
        ..EndpointConfig::default()
    }
}

/// The first thing that went wrong with the logs of a run.
pub(crate) type LogTrouble = Arc<Mutex<Option<String>>>;

/// A run whose logs are incomplete is no result: whoever asked for them would not notice.
pub(crate) fn check_logs(problem: &LogTrouble) -> Result<(), PlayError> {
    match lock(problem).take() {
        Some(text) => Err(PlayError(text)),
        None => Ok(()),
    }
}

/// Passes what the download's sender does to the recorder.
pub(crate) struct SenderEar {
    pub(crate) recorder: SharedRecorder,
    pub(crate) clock: RunClock,
}

impl SenderObserver for SenderEar {
    fn on_update(&mut self, _: Timestamp, update: &SenderUpdate) {
        let now = (self.clock)();
        let mut recorder = lock(&self.recorder);
        recorder.on_update(now, update);
        if let Some(latest) = update.latest_rtt {
            recorder.on_rtt(now, latest);
        }
        recorder.on_window(now, update.window, update.minimum_window);
    }

    fn on_transition(&mut self, _: Timestamp, transition: &Transition) {
        let now = (self.clock)();
        let mut recorder = lock(&self.recorder);
        recorder.on_change(now, transition);
        recorder.on_transition(transition.from.as_str(), transition.to.as_str());
    }
}

/// Counts and checks what the client reads.
struct RecordingSink {
    recorder: SharedRecorder,
    clock: RunClock,
    verifier: Verifier,
    inner: CountingSink,
}

impl Sink for RecordingSink {
    fn write(&mut self, data: Bytes) -> io::Result<()> {
        self.verifier
            .update(&data)
            .map_err(|mismatch| io::Error::other(mismatch.to_string()))?;
        let bytes = ByteCount::new(data.len() as u64);
        lock(&self.recorder).on_app_bytes((self.clock)(), bytes);
        self.inner.write(data)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.verifier
            .finish()
            .map_err(|mismatch| io::Error::other(mismatch.to_string()))?;
        self.inner.finish()
    }

    fn name(&self) -> String {
        "the recorder".to_owned()
    }
}

/// The client's part: handshake, download, close. `Err` says in one line what broke.
pub(crate) async fn fetch(
    connection: Connection,
    wanted: Download,
    recorder: SharedRecorder,
    clock: RunClock,
) -> Result<(), String> {
    connection
        .handshake()
        .await
        .map_err(|error| format!("handshake: {error}"))?;
    lock(&recorder).on_handshake(clock());
    let size = match wanted {
        Download::Size(size) => size,
        Download::Duration(_) => ENDLESS,
    };
    let url = format!("https://{SERVER_NAME}/bytes/{}B", size.as_u64());
    let job = Job {
        url: url.parse::<Url>().map_err(|error| error.to_string())?,
        sink: Box::new(RecordingSink {
            recorder,
            clock,
            verifier: Verifier::new(size),
            inner: CountingSink::default(),
        }),
        sha256: None,
    };
    let results = download(
        h3_adapter::Connection::new(connection),
        vec![job],
        1,
        &Quiet,
        std::future::pending(),
    )
    .await;
    for result in results {
        result.map_err(|failure| failure.error.to_string())?;
    }
    Ok(())
}

/// What the sender counted, from its connection's statistics.
pub(crate) fn sender_counts(stats: &ConnectionStats, algorithm: &Algorithm) -> SenderCounts {
    SenderCounts {
        packets_sent: stats.sender.packets_sent,
        packets_lost: stats.sender.packets_lost,
        retransmitted_bytes: stats.sender.retransmitted_bytes.as_u64(),
        pto_count: stats.sender.pto_count,
        cuts: stats.sender.recoveries,
        fault: fault_counts(stats, algorithm),
    }
}

/// What a deliberate fault did; nothing for a controller that has none.
#[cfg(feature = "mutants")]
fn fault_counts(stats: &ConnectionStats, algorithm: &Algorithm) -> Option<FaultCounts> {
    let counters = stats.sender.fault_counters?;
    algorithm.is_faulty().then(|| FaultCounts {
        shifts: counters.shifts,
        shifted_ns: u64::try_from(counters.shifted.as_nanos()).unwrap_or(u64::MAX),
        sends_behind_boundary: counters.sends_behind_boundary,
        acks_ignored: counters.acks_ignored,
        losses_ignored: counters.losses_ignored,
        flips: counters.flips,
    })
}

#[cfg(not(feature = "mutants"))]
fn fault_counts(_: &ConnectionStats, _: &Algorithm) -> Option<FaultCounts> {
    None
}

/// How a run ended, from what the client's task left behind by `limit`.
pub(crate) fn outcome(wanted: Download, result: Option<Result<(), String>>) -> Outcome {
    match (wanted, result) {
        (_, Some(Err(problem))) => Outcome::Failed(problem),
        (Download::Size(_), Some(Ok(()))) => Outcome::Completed,
        (Download::Size(_), None) => Outcome::LimitReached,
        // A download without a size lasts until its time is up.
        (Download::Duration(_), None) => Outcome::Completed,
        (Download::Duration(_), Some(Ok(()))) => {
            Outcome::Failed("the endless download ended before its time".to_owned())
        }
    }
}

/// When a run ends at the latest: the limit, or the end of a download that lasts for a time.
pub(crate) fn end_of(request: &PlayRequest<'_>, start: Timestamp) -> Timestamp {
    let limit = Timestamp::ZERO + request.limit;
    match request.case.download {
        Download::Size(_) => limit,
        Download::Duration(span) => limit.min(start + span),
    }
}
