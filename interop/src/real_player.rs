//! Plays a run over real UDP sockets on this machine, through the relay, in real time.
//!
//! ```text
//!   server (quic-core::net) <──loopback──> relay (netsim's pipes) <──loopback──> client
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use h3_server::{Link, Server, Shutdown, Site};
use quic_core::{Connection, h3_adapter, net};
use tokio::runtime;
use units::Timestamp;

use crate::play::{PlayError, PlayRequest, Player};
use crate::record::{Ending, Recorder, Recording};
use crate::relay::{Relay, RelayConfig};
use crate::results::SenderCounts;
use crate::stack::{
    Identity, LogTrouble, RunClock, SERVER_NAME, SenderEar, SharedRecorder, check_logs, end_of,
    endpoint_config, fetch, lock, outcome, sender_counts,
};

/// Plays runs over loopback sockets.
pub struct RealPlayer {
    identity: Identity,
}

impl RealPlayer {
    /// Makes the certificate that all runs share.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, PlayError> {
        Ok(Self {
            identity: Identity::new()?,
        })
    }
}

impl Player for RealPlayer {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        if !request.scenario.flows.is_empty() {
            return Err(PlayError(
                "several flows are played in virtual time only, not over real sockets".to_owned(),
            ));
        }
        if request.scenario.asks_for_labels() {
            return Err(PlayError(
                "losses by space, frames or state are played in virtual time only: a relay cannot look into packets"
                    .to_owned(),
            ));
        }
        // One thread for both endpoints and HTTP/3; the relay has its own.
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| PlayError(format!("cannot start a runtime: {error}")))?;
        let trouble = LogTrouble::default();
        let played = runtime.block_on(self.play_real(request, &trouble));
        // With the endpoints' tasks the logs are written out to their end.
        drop(runtime);
        check_logs(&trouble)?;
        played
    }

    fn is_real(&self) -> bool {
        true
    }
}

impl RealPlayer {
    async fn play_real(
        &self,
        request: &PlayRequest<'_>,
        trouble: &LogTrouble,
    ) -> Result<Recording, PlayError> {
        let recorder: SharedRecorder = Arc::new(Mutex::new(Recorder::of(request.scenario, true)));
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bind_error = |error: net::BindError| PlayError(error.to_string());
        let relay_error = |error: crate::relay::RelayError| PlayError(error.to_string());

        // The relay's phases and the record count from the same instant, within microseconds.
        let began_at = now();
        let clock = clock_from(began_at);
        let mut server_config = endpoint_config(request, true, trouble);
        let (ear_recorder, ear_clock) = (recorder.clone(), clock.clone());
        server_config.observer = Some(Arc::new(move || {
            Some(Box::new(SenderEar {
                recorder: ear_recorder.clone(),
                clock: ear_clock.clone(),
            }))
        }));
        let server = net::bind(
            local,
            server_config,
            None,
            Some(self.identity.server.clone()),
        )
        .map_err(bind_error)?;
        let client = net::bind(
            local,
            endpoint_config(request, false, trouble),
            Some(self.identity.client.clone()),
            None,
        )
        .map_err(bind_error)?;
        let relay = Relay::start(&RelayConfig {
            server: server.local_addr(),
            forward: request.scenario.forward.clone(),
            reverse: request.scenario.reverse.clone(),
            seed: request.seed,
            began_at,
        })
        .map_err(relay_error)?;

        let http = Server::new(
            Arc::new(Site::generated()),
            Arc::new(|task| drop(tokio::spawn(task))),
            Shutdown::new(),
        );
        let sender: Arc<Mutex<Option<Connection>>> = Arc::default();
        let (serving, accepting) = (sender.clone(), server.clone());
        let server_task = tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                lock(&serving).get_or_insert_with(|| connection.clone());
                let http = http.clone();
                tokio::spawn(async move {
                    http.serve(h3_adapter::Connection::new(connection), Link::default())
                        .await;
                });
            }
        });

        let start = request.scenario.start_at(request.seed);
        sleep_until(&clock, start).await;
        let wanted = request.case.download;
        let end = end_of(request, start);
        lock(&recorder).on_first_datagram(clock());
        let connection = client
            .connect(relay.address(), SERVER_NAME)
            .map_err(|error| PlayError(error.to_string()))?;
        let fetched = tokio::time::timeout(
            end.saturating_since(clock()),
            fetch(connection, wanted, recorder.clone(), clock.clone()),
        )
        .await
        .ok();
        let ended_at = clock();
        let outcome = outcome(wanted, fetched);
        let sender = lock(&sender)
            .take()
            .map_or_else(SenderCounts::default, |connection| {
                sender_counts(&connection.stats(), request.algorithm)
            });
        let report = relay.stop().map_err(relay_error)?;
        server.close(0, b"");
        client.close(0, b"");
        server_task.abort();
        let ending = Ending {
            outcome,
            sender,
            forward: report.forward,
            reverse: report.reverse,
            real: Some(report.timing),
            flows: Vec::new(),
        };
        let recorder = std::mem::take(&mut *lock(&recorder));
        Ok(recorder.finish(ended_at, ending))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a real run is measured by the real clock"
)]
fn now() -> Instant {
    Instant::now()
}

fn clock_from(began_at: Instant) -> RunClock {
    Arc::new(move || {
        let nanos = began_at.elapsed().as_nanos();
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    })
}

async fn sleep_until(clock: &RunClock, at: Timestamp) {
    let left: Duration = at.saturating_since(clock());
    tokio::time::sleep(left).await;
}
