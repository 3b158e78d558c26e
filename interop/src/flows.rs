//! The flows that share a link with the download, or take its place, in virtual time.
//!
//! Each has two endpoints of its own with full TLS, and sends on plain QUIC streams. The sender is always the endpoint that
//! accepts the connection; a flow in the reverse direction has it at the client's end of the link. A flow that is
//! farther away than the link goes through a pipe of its own as well, with half of the difference each way.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cc::Algorithm;
use netsim::{Pipe, PipeConfig, RandomStream, RandomStreams};
use quic_core::virt::{Datagram, NodeId, PipeId, Spawner, TimerQueue, World};
use quic_core::{Connection, Endpoint, EndpointConfig, RecvStream, SendStream};
use units::{ByteCount, Timestamp};

use crate::play::{PlayError, PlayRequest};
use crate::record::{FlowRecorder, FlowRecording};
use crate::scenario::{App, FlowPlan, LARGEST_ANSWER};
use crate::stack::{Identity, LogTrouble, SERVER_NAME, SharedRecorder, endpoint_config, lock};

/// The protocol of these connections.
pub(crate) const ALPN: &[u8] = b"tidegate-flow";

/// One flow of a run under way.
pub(crate) struct PlayedFlow {
    name: String,
    algorithm: Algorithm,
    recorder: Arc<Mutex<FlowRecorder>>,
    sender: Arc<Mutex<Option<Connection>>>,
    is_reverse: bool,
    is_greedy: bool,
    /// Where the client's datagrams come from.
    pub(crate) client_node: NodeId,
    /// Where the sender's come from.
    pub(crate) sender_node: NodeId,
}

/// What a flow is played on.
pub(crate) struct Stage<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) identity: &'a Identity,
    pub(crate) request: &'a PlayRequest<'a>,
    pub(crate) trouble: &'a LogTrouble,
    pub(crate) forward: PipeId,
    pub(crate) reverse: PipeId,
}

/// What makes a flow the tested one: its sender's observer, and the record of the run.
pub(crate) struct Tested {
    pub(crate) observer: quic_core::ObserverFactory,
    pub(crate) recorder: SharedRecorder,
}

impl Stage<'_> {
    /// Adds a flow to the world. `number` tells its addresses from those of others.
    pub(crate) fn add(
        &mut self,
        plan: &FlowPlan,
        number: u8,
        tested: Option<Tested>,
    ) -> Result<PlayedFlow, PlayError> {
        let algorithm = plan.controller.unwrap_or(*self.request.algorithm);
        let mut seeds =
            RandomStreams::new(self.request.seed).stream(&format!("flow.{}", plan.name));
        let mut config = |is_server| EndpointConfig {
            algorithm,
            seed: Some(seeds.u64()),
            ..endpoint_config(self.request, is_server, self.trouble)
        };
        let mut server_config = config(true);
        let client_config = config(false);
        let (observer, main) = match tested {
            Some(tested) => (Some(tested.observer), Some(tested.recorder)),
            None => (None, None),
        };
        server_config.observer = observer;
        let address = |host| SocketAddr::from(([10, 1, number, host], 443));
        let problem = |error: quic_core::ConfigError| PlayError(error.to_string());
        let (server_node, server) = self
            .world
            .add_endpoint(
                address(1),
                server_config,
                None,
                Some(self.identity.flow_server.clone()),
            )
            .map_err(problem)?;
        let (client_node, client) = self
            .world
            .add_endpoint(
                address(2),
                client_config,
                Some(self.identity.flow_client.clone()),
                None,
            )
            .map_err(problem)?;
        self.route(plan, server_node, client_node)?;

        let recorder: Arc<Mutex<FlowRecorder>> = Arc::default();
        let sender: Arc<Mutex<Option<Connection>>> = Arc::default();
        let timers = self.world.timers();
        self.world.spawn(send(
            server,
            plan.app,
            timers.clone(),
            self.world.spawner(),
            sender.clone(),
        ));
        let rtt = self.request.scenario.base_rtt() + plan.extra_rtt;
        let reader = Reader {
            timers,
            spawner: self.world.spawner(),
            recorder: recorder.clone(),
            main,
        };
        let times = Times {
            start: plan.start_at(self.request.seed, rtt),
            stop: plan.stop.map(|stop| Timestamp::ZERO + stop),
        };
        self.world
            .spawn(receive(client, address(1), plan.app, times, reader, seeds));
        Ok(PlayedFlow {
            name: plan.name.clone(),
            algorithm,
            recorder,
            sender,
            is_reverse: plan.is_reverse,
            is_greedy: plan.app == App::Bulk,
            client_node,
            sender_node: server_node,
        })
    }

    fn route(&mut self, plan: &FlowPlan, server: NodeId, client: NodeId) -> Result<(), PlayError> {
        let (there, back) = match plan.is_reverse {
            false => (self.forward, self.reverse),
            true => (self.reverse, self.forward),
        };
        let mut paths = [vec![there], vec![back]];
        if !plan.extra_rtt.is_zero() {
            for (path, half) in paths.iter_mut().zip(["there", "back"]) {
                let config = PipeConfig {
                    delay: plan.extra_rtt / 2,
                    ..PipeConfig::default()
                };
                let streams = RandomStreams::new(self.request.seed);
                let name = format!("flow.{}.{half}", plan.name);
                let pipe = Pipe::<Datagram>::new(config, &streams, &name)
                    .map_err(|error| PlayError(error.to_string()))?;
                path.push(self.world.add_pipe(pipe));
            }
        }
        self.world.route_through(server, client, &paths[0]);
        self.world.route_through(client, server, &paths[1]);
        Ok(())
    }
}

impl PlayedFlow {
    /// What became of it.
    pub(crate) fn finish(self) -> FlowRecording {
        let recorder = std::mem::take(&mut *lock(&self.recorder));
        let stats = lock(&self.sender)
            .take()
            .map(|sender| sender.stats().sender);
        FlowRecording {
            is_reverse: self.is_reverse,
            is_greedy: self.is_greedy,
            ..recorder.finish(
                self.name,
                self.algorithm.to_string(),
                stats.map_or(0, |stats| stats.packets_lost),
                stats.map_or(0, |stats| stats.pto_count),
            )
        }
    }

    /// The connection of its sender.
    pub(crate) fn sender(&self) -> Option<Connection> {
        lock(&self.sender).clone()
    }
}

/// When a flow speaks.
#[derive(Copy, Clone)]
struct Times {
    start: Timestamp,
    stop: Option<Timestamp>,
}

/// What is sent where nothing depends on it.
static BLOCK: [u8; 65_536] = [0x5a; 65_536];

/// The side that sends: takes the one connection and does what the app wants until it is closed.
async fn send(
    server: Endpoint,
    app: App,
    timers: TimerQueue,
    spawner: Spawner,
    sender: Arc<Mutex<Option<Connection>>>,
) {
    let Some(connection) = server.accept().await else {
        return;
    };
    *lock(&sender) = Some(connection.clone());
    match app {
        App::Bulk => send_until(&connection, &timers, None).await,
        App::Bursts { busy, idle } => {
            let Ok(mut stream) = connection.open_uni().await else {
                return;
            };
            loop {
                let end = timers.now() + busy;
                if write_until(&mut stream, &timers, Some(end)).await.is_none() {
                    return;
                }
                timers.sleep_until(end + idle).await;
            }
        }
        App::Requests { size, .. } => {
            while let Ok((stream, request)) = connection.accept_bi().await {
                spawner.spawn(Box::pin(answer_to(request, stream, size)));
            }
        }
        App::Media { every, size } => {
            let mut next = timers.now();
            while connection.close_reason().is_none() {
                let Ok(stream) = connection.open_uni().await else {
                    return;
                };
                spawner.spawn(Box::pin(frame(stream, size, next)));
                next += every;
                timers.sleep_until(next).await;
            }
        }
    }
}

async fn send_until(connection: &Connection, timers: &TimerQueue, end: Option<Timestamp>) {
    if let Ok(mut stream) = connection.open_uni().await {
        write_until(&mut stream, timers, end).await;
    }
}

/// Writes as much as fits until `end`. `None` if the connection broke.
async fn write_until(
    stream: &mut SendStream,
    timers: &TimerQueue,
    end: Option<Timestamp>,
) -> Option<()> {
    while end.is_none_or(|end| timers.now() < end) {
        let block = Bytes::from_static(&BLOCK);
        stream.write_chunk(block).await.ok()?;
    }
    Some(())
}

async fn answer(mut stream: SendStream, size: ByteCount) {
    let mut left = size.as_usize();
    while left > 0 {
        let block = Bytes::from_static(&BLOCK[..left.min(BLOCK.len())]);
        left -= block.len();
        if stream.write_chunk(block).await.is_err() {
            return;
        }
    }
    // Nobody is left to hear of a stream that cannot be finished.
    let _ = stream.finish();
    let _ = stream.stopped().await;
}

/// A request of eight bytes says how much it asks for; any other asks for the usual size.
async fn answer_to(mut request: RecvStream, stream: SendStream, usual: ByteCount) {
    let mut asked = Vec::new();
    while let Ok(Some(chunk)) = request.read_chunk(8).await {
        asked.extend_from_slice(&chunk);
        if asked.len() > 8 {
            break;
        }
    }
    let size = asked.try_into().map(u64::from_be_bytes);
    let size = size.map_or(usual, |size| ByteCount::new(size).min(LARGEST_ANSWER));
    answer(stream, size).await;
}

/// A frame begins with the instant it was made, as far as it is long enough for that.
async fn frame(mut stream: SendStream, size: ByteCount, made_at: Timestamp) {
    let head = Bytes::copy_from_slice(&made_at.as_nanos().to_be_bytes());
    if stream.write_chunk(head).await.is_ok() {
        answer(stream, size.saturating_sub(ByteCount::new(8))).await;
    }
}

/// The side that reads, and what it writes down.
#[derive(Clone)]
struct Reader {
    timers: TimerQueue,
    spawner: Spawner,
    recorder: Arc<Mutex<FlowRecorder>>,
    /// The record of the run, if this is the tested flow.
    main: Option<SharedRecorder>,
}

async fn receive(
    client: Endpoint,
    address: SocketAddr,
    app: App,
    times: Times,
    reader: Reader,
    gaps: RandomStream,
) {
    let timers = reader.timers.clone();
    timers.sleep_until(times.start).await;
    let Ok(connection) = client.connect(address, SERVER_NAME) else {
        return;
    };
    if let Some(stop) = times.stop {
        let (timers, connection) = (timers.clone(), connection.clone());
        reader.spawner.spawn(Box::pin(async move {
            timers.sleep_until(stop).await;
            connection.close(0, b"");
        }));
    }
    if connection.handshake().await.is_err() {
        return;
    }
    if let Some(main) = &reader.main {
        lock(main).on_handshake(timers.now());
    }
    match app {
        App::Bulk | App::Bursts { .. } => {
            if let Ok(stream) = connection.accept_uni().await {
                reader.read(stream, None).await;
            }
        }
        App::Media { .. } => {
            while let Ok(stream) = connection.accept_uni().await {
                let frame = reader.clone();
                reader
                    .spawner
                    .spawn(Box::pin(async move { frame.read_frame(stream).await }));
            }
        }
        App::Requests {
            every,
            size,
            size_p95,
        } => {
            let asks = Asks {
                every,
                sizes: size_p95.map(|p95| (size, p95)),
                random: gaps,
            };
            reader.ask(connection, asks).await;
        }
    }
}

/// When a client asks, and for how much.
struct Asks {
    /// The mean gap.
    every: Duration,
    /// Median and 95th percentile, if sizes differ.
    sizes: Option<(ByteCount, ByteCount)>,
    random: RandomStream,
}

impl Asks {
    fn request(&mut self) -> Bytes {
        let Some((median, p95)) = self.sizes else {
            return Bytes::from_static(b"?");
        };
        let drawn = self.random.log_normal(median.as_u64(), p95.as_u64());
        let size = drawn.clamp(1, LARGEST_ANSWER.as_u64());
        Bytes::copy_from_slice(&size.to_be_bytes())
    }
}

impl Reader {
    fn on_bytes(&self, bytes: usize) {
        let (now, bytes) = (self.timers.now(), ByteCount::new(bytes as u64));
        lock(&self.recorder).on_app_bytes(now, bytes);
        if let Some(main) = &self.main {
            lock(main).on_app_bytes(now, bytes);
        }
    }

    /// Reads to the end; then the time since `asked_at` counts as the time of an answer.
    async fn read(&self, mut stream: RecvStream, asked_at: Option<Timestamp>) {
        while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
            self.on_bytes(chunk.len());
        }
        if let Some(asked_at) = asked_at.filter(|_| stream.is_ended()) {
            lock(&self.recorder).on_answer(asked_at, self.timers.now());
        }
    }

    async fn read_frame(&self, mut stream: RecvStream) {
        let mut head = Vec::new();
        while head.len() < 8 {
            let Ok(Some(chunk)) = stream.read_chunk(8 - head.len()).await else {
                return;
            };
            self.on_bytes(chunk.len());
            head.extend_from_slice(&chunk);
        }
        let made_at = head.try_into().map_or(0, u64::from_be_bytes);
        self.read(stream, Some(Timestamp::from_nanos(made_at)))
            .await;
    }

    /// Asks at exponential gaps.
    async fn ask(&self, connection: Connection, mut asks: Asks) {
        let mut next = self.timers.now();
        while connection.close_reason().is_none() {
            next += asks.random.exponential(asks.every);
            let request = asks.request();
            self.timers.sleep_until(next).await;
            let Ok((mut send, recv)) = connection.open_bi().await else {
                return;
            };
            let (reader, asked_at) = (self.clone(), self.timers.now());
            self.spawner.spawn(Box::pin(async move {
                if send.write_chunk(request).await.is_ok() && send.finish().is_ok() {
                    reader.read(recv, Some(asked_at)).await;
                }
            }));
        }
    }
}
