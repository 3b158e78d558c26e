//! Plays a run in virtual time: both endpoints, both pipes and HTTP/3 on one thread, without a clock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use h3_server::{Link, Server, Shutdown, Site};
use netsim::RandomStreams;
use quic_core::virt::{Datagram, NodeId, World};
use quic_core::{Connection, ObserverFactory, h3_adapter};
use units::{ByteCount, Timestamp};

use crate::flows::{PlayedFlow, Stage, Tested};
use crate::play::{PlayError, PlayRequest, Player};
use crate::record::{Ending, FlowRecording, LinkEnding, Recorder, Recording};
use crate::results::SenderCounts;
use crate::stack::{
    Identity, LogTrouble, RunClock, SERVER_NAME, SenderEar, SharedRecorder, check_logs, end_of,
    endpoint_config, fetch, lock, outcome, sender_counts,
};

/// Plays runs on the virtual network.
pub struct VirtualPlayer {
    identity: Identity,
}

impl VirtualPlayer {
    /// Makes the certificate that all runs share.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, PlayError> {
        Ok(Self {
            identity: Identity::new()?,
        })
    }

    /// Plays without cryptography, for an eighth less processor time: every datagram has the size, the instant and the fate
    /// that it has with TLS.
    #[must_use]
    pub fn without_encryption() -> Self {
        Self {
            identity: Identity::unprotected(),
        }
    }
}

impl Player for VirtualPlayer {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        let mut world = World::new();
        if request.scenario.asks_for_labels() {
            world.label_packets();
        }
        let streams = RandomStreams::new(request.seed);
        let pipe = |plan: &crate::scenario::DirectionPlan, name| {
            plan.pipe::<Datagram>(&streams, name)
                .map_err(|error| PlayError(error.to_string()))
        };
        let forward = world.add_pipe(pipe(&request.scenario.forward, "forward")?);
        let reverse = world.add_pipe(pipe(&request.scenario.reverse, "reverse")?);
        let recorder: SharedRecorder = Arc::new(Mutex::new(Recorder::of(request.scenario, false)));
        let timers = world.timers();
        let clock: RunClock = {
            let timers = timers.clone();
            Arc::new(move || timers.now())
        };

        let trouble = LogTrouble::default();
        let observer: ObserverFactory = {
            let (recorder, clock) = (recorder.clone(), clock.clone());
            Arc::new(move || {
                Some(Box::new(SenderEar {
                    recorder: recorder.clone(),
                    clock: clock.clone(),
                }))
            })
        };
        let start = request.scenario.start_at(request.seed);
        let wanted = request.case.download;
        let mut download = None;
        let mut stage = Stage {
            world: &mut world,
            identity: &self.identity,
            request,
            trouble: &trouble,
            forward,
            reverse,
        };
        if request.scenario.has_download {
            let run = Download {
                start,
                observer: observer.clone(),
                recorder: recorder.clone(),
                clock,
            };
            download = Some(run.begin(&mut stage)?);
        }
        let mut flows = Vec::new();
        for (number, plan) in (1..).zip(&request.scenario.flows) {
            let is_tested = number == 1 && download.is_none();
            let tested = is_tested.then(|| Tested {
                observer: observer.clone(),
                recorder: recorder.clone(),
            });
            flows.push(stage.add(plan, number, tested)?);
        }
        let (client, sender) = match (&download, flows.first()) {
            (Some(download), _) => (Some(download.client_node), Some(download.server_node)),
            (None, first) => (
                first.map(|flow| flow.client_node),
                first.map(|flow| flow.sender_node),
            ),
        };
        let tested = recorder.clone();
        world.observe(Box::new(move |now, from, datagram| {
            if Some(from) == client {
                lock(&tested).on_first_datagram(now);
            } else if Some(from) == sender {
                lock(&tested).on_datagram_sent(now, ByteCount::new(datagram.len() as u64));
            }
        }));

        let end: Timestamp = end_of(request, start);
        world.run(end, || {
            let is_done = |download: &Begun| download.is_done.load(Ordering::Relaxed);
            download.as_ref().is_some_and(is_done)
        });
        let (result, sender) = match &download {
            Some(download) => (
                lock(&download.result).take(),
                lock(&download.sender).clone(),
            ),
            None => (None, flows.first().and_then(PlayedFlow::sender)),
        };
        let outcome = outcome(wanted, result);
        let sender = sender.map_or_else(SenderCounts::default, |connection| {
            sender_counts(&connection.stats(), request.algorithm)
        });
        let mut recordings: Vec<FlowRecording> = Vec::new();
        if download.is_some() && !flows.is_empty() {
            recordings.push(lock(&recorder).download(request.algorithm.to_string(), &sender));
        }
        recordings.extend(flows.into_iter().map(PlayedFlow::finish));
        let ending = Ending {
            outcome,
            sender,
            forward: LinkEnding::of(world.pipe(forward)),
            reverse: LinkEnding::of(world.pipe(reverse)),
            real: None,
            flows: recordings,
        };
        let now = world.now();
        // With the world the logs are written out to their end.
        drop(world);
        check_logs(&trouble)?;
        let recorder = std::mem::take(&mut *lock(&recorder));
        Ok(recorder.finish(now, ending))
    }
}

/// A download over HTTP/3, to be begun.
struct Download {
    start: Timestamp,
    observer: ObserverFactory,
    recorder: SharedRecorder,
    clock: RunClock,
}

/// A download under way.
struct Begun {
    client_node: NodeId,
    server_node: NodeId,
    result: Arc<Mutex<Option<Result<(), String>>>>,
    is_done: Arc<AtomicBool>,
    sender: Arc<Mutex<Option<Connection>>>,
}

impl Download {
    fn begin(self, stage: &mut Stage<'_>) -> Result<Begun, PlayError> {
        let (world, request) = (&mut *stage.world, stage.request);
        let mut server_config = endpoint_config(request, true, stage.trouble);
        server_config.observer = Some(self.observer);
        let config_error = |error: quic_core::ConfigError| PlayError(error.to_string());
        let server_address = SocketAddr::from(([10, 0, 0, 1], 443));
        let (server_node, server) = world
            .add_endpoint(
                server_address,
                server_config,
                None,
                Some(stage.identity.server.clone()),
            )
            .map_err(config_error)?;
        let (client_node, client) = world
            .add_endpoint(
                SocketAddr::from(([10, 0, 0, 2], 50_000)),
                endpoint_config(request, false, stage.trouble),
                Some(stage.identity.client.clone()),
                None,
            )
            .map_err(config_error)?;
        world.route(server_node, client_node, stage.forward);
        world.route(client_node, server_node, stage.reverse);

        // The server: one task per connection, one per request.
        let sender: Arc<Mutex<Option<Connection>>> = Arc::default();
        let spawner = world.spawner();
        let request_spawner = spawner.clone();
        let http = Server::new(
            Arc::new(Site::generated()),
            Arc::new(move |task| request_spawner.spawn(task)),
            Shutdown::new(),
        );
        let serving = sender.clone();
        world.spawn(async move {
            while let Some(connection) = server.accept().await {
                lock(&serving).get_or_insert_with(|| connection.clone());
                let http = http.clone();
                spawner.spawn(Box::pin(async move {
                    http.serve(h3_adapter::Connection::new(connection), Link::default())
                        .await;
                }));
            }
        });

        // The client.
        let wanted = request.case.download;
        let result: Arc<Mutex<Option<Result<(), String>>>> = Arc::default();
        let is_done = Arc::new(AtomicBool::new(false));
        let (client_result, client_done) = (result.clone(), is_done.clone());
        let (timers, start) = (world.timers(), self.start);
        let (recorder, clock) = (self.recorder, self.clock);
        world.spawn(async move {
            timers.sleep_until(start).await;
            let fetched = match client.connect(server_address, SERVER_NAME) {
                Ok(connection) => fetch(connection, wanted, recorder, clock).await,
                Err(error) => Err(error.to_string()),
            };
            *lock(&client_result) = Some(fetched);
            client_done.store(true, Ordering::Relaxed);
        });
        Ok(Begun {
            client_node,
            server_node,
            result,
            is_done,
            sender,
        })
    }
}
