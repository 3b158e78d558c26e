//! Plays a run in virtual time: both endpoints, both pipes and HTTP/3 on one thread, without a clock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use h3_server::{Link, Server, Shutdown, Site};
use netsim::RandomStreams;
use quic_core::virt::{Datagram, World};
use quic_core::{Connection, h3_adapter};
use units::Timestamp;

use crate::play::{PlayError, PlayRequest, Player};
use crate::record::{Ending, LinkEnding, Recorder, Recording};
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
}

impl Player for VirtualPlayer {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        let mut world = World::new();
        let streams = RandomStreams::new(request.seed);
        let pipe = |plan: &crate::scenario::DirectionPlan, name| {
            plan.pipe::<Datagram>(&streams, name)
                .map_err(|error| PlayError(error.to_string()))
        };
        let forward = world.add_pipe(pipe(&request.scenario.forward, "forward")?);
        let reverse = world.add_pipe(pipe(&request.scenario.reverse, "reverse")?);
        let recorder: SharedRecorder = Arc::new(Mutex::new(Recorder::of(request.scenario)));
        let timers = world.timers();
        let clock: RunClock = {
            let timers = timers.clone();
            Arc::new(move || timers.now())
        };

        let trouble = LogTrouble::default();
        let mut server_config = endpoint_config(request, true, &trouble);
        let (ear_recorder, ear_clock) = (recorder.clone(), clock.clone());
        server_config.observer = Some(Arc::new(move || {
            Some(Box::new(SenderEar {
                recorder: ear_recorder.clone(),
                clock: ear_clock.clone(),
            }))
        }));
        let config_error = |error: quic_core::ConfigError| PlayError(error.to_string());
        let server_address = SocketAddr::from(([10, 0, 0, 1], 443));
        let (server_node, server) = world
            .add_endpoint(
                server_address,
                server_config,
                None,
                Some(self.identity.server.clone()),
            )
            .map_err(config_error)?;
        let (client_node, client) = world
            .add_endpoint(
                SocketAddr::from(([10, 0, 0, 2], 50_000)),
                endpoint_config(request, false, &trouble),
                Some(self.identity.client.clone()),
                None,
            )
            .map_err(config_error)?;
        world.route(server_node, client_node, forward);
        world.route(client_node, server_node, reverse);
        let first = recorder.clone();
        world.observe(Box::new(move |now, from, _| {
            if from == client_node {
                lock(&first).on_first_datagram(now);
            }
        }));

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
        let start = request.scenario.start_at(request.seed);
        let wanted = request.case.download;
        let result: Arc<Mutex<Option<Result<(), String>>>> = Arc::default();
        let is_done = Arc::new(AtomicBool::new(false));
        let (client_result, client_done) = (result.clone(), is_done.clone());
        let (client_recorder, client_clock) = (recorder.clone(), clock);
        world.spawn(async move {
            timers.sleep_until(start).await;
            let fetched = match client.connect(server_address, SERVER_NAME) {
                Ok(connection) => fetch(connection, wanted, client_recorder, client_clock).await,
                Err(error) => Err(error.to_string()),
            };
            *lock(&client_result) = Some(fetched);
            client_done.store(true, Ordering::Relaxed);
        });

        let end: Timestamp = end_of(request, start);
        world.run(end, || is_done.load(Ordering::Relaxed));
        let outcome = outcome(wanted, lock(&result).take());
        let sender = lock(&sender)
            .take()
            .map_or_else(SenderCounts::default, |connection| {
                sender_counts(&connection.stats(), request.algorithm)
            });
        let ending = Ending {
            outcome,
            sender,
            forward: LinkEnding::of(world.pipe(forward)),
            reverse: LinkEnding::of(world.pipe(reverse)),
            real: None,
        };
        let now = world.now();
        // With the world the logs are written out to their end.
        drop(world);
        check_logs(&trouble)?;
        let recorder = std::mem::take(&mut *lock(&recorder));
        Ok(recorder.finish(now, ending))
    }
}
