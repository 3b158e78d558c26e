//! Two endpoints and a link between them, in virtual time: the fixture of the full-stack tests.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cc::Algorithm;
use netsim::{Change, Pipe, PipeConfig, RandomStreams};
use quic_core::{
    ClientConfig, Connection, ConnectionStats, Endpoint, EndpointConfig, ServerConfig,
    tls::{self, KeyKind, ServerTls, TlsOptions, Trust},
    virt::{Datagram, NodeId, PipeId, World},
};
use units::{ByteCount, Fraction, Rate, Timestamp};

/// What the two test endpoints speak.
pub(crate) const ALPN: &[u8] = b"tidegate-test";

/// Server to client is the forward direction.
pub(crate) struct Net {
    pub(crate) world: World,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) server_address: SocketAddr,
    pub(crate) server_node: NodeId,
    pub(crate) client_node: NodeId,
    pub(crate) forward: PipeId,
    pub(crate) reverse: PipeId,
}

/// How the link and the endpoints are set up.
pub(crate) struct Setup {
    pub(crate) algorithm: Algorithm,
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) queue: ByteCount,
    pub(crate) seed: u64,
    pub(crate) loss: Fraction,
    pub(crate) changes: Vec<(Timestamp, Change)>,
    /// What the client offers; the server knows [`ALPN`] only.
    pub(crate) client_alpn: &'static [u8],
    /// Whether the client trusts the server's certificate.
    pub(crate) is_trusted: bool,
    pub(crate) server: EndpointConfig,
    pub(crate) client: EndpointConfig,
}

impl Net {
    /// Connects, and runs until both sides have the connection.
    pub(crate) fn connected(&mut self) -> [Connection; 2] {
        let accepted = Arc::new(Mutex::new(None));
        let (server, keep) = (self.server.clone(), accepted.clone());
        self.world.spawn(async move {
            let connection = server.accept().await;
            *keep.lock().expect("unpoisoned") = connection;
        });
        let client = self.connect();
        let limit = self.world.now() + Duration::from_secs(5);
        self.world
            .run(limit, || accepted.lock().expect("unpoisoned").is_some());
        let server = accepted.lock().expect("unpoisoned").take();
        [client, server.expect("a connection")]
    }

    pub(crate) fn connect(&self) -> Connection {
        self.client
            .connect(self.server_address, "localhost")
            .expect("a connection")
    }

    /// Runs a task to its end, and returns what it found; `None` if it did not end by `limit`.
    pub(crate) fn finish<T: Send + 'static>(
        &mut self,
        limit: Timestamp,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let result = Arc::new(Mutex::new(None));
        let keep = result.clone();
        self.world.spawn(async move {
            let value = task.await;
            *keep.lock().expect("unpoisoned") = Some(value);
        });
        self.world
            .run(limit, || result.lock().expect("unpoisoned").is_some());
        result.lock().expect("unpoisoned").take()
    }

    /// Runs for `span`.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.world.now() + span;
        self.world.run(end, || false);
    }
}

impl Setup {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            rate: Rate::from_mbps(100),
            rtt: Duration::from_millis(40),
            queue: ByteCount::new(500_000),
            seed: 1,
            loss: Fraction::ZERO,
            changes: Vec::new(),
            client_alpn: ALPN,
            is_trusted: true,
            server: endpoint(1),
            client: endpoint(2),
        }
    }

    pub(crate) fn build(mut self) -> Net {
        let mut world = World::new();
        let streams = RandomStreams::new(self.seed);
        let config = |queue| PipeConfig {
            rate: self.rate,
            delay: self.rtt / 2,
            queue,
            loss: self.loss,
            ..PipeConfig::default()
        };
        let mut forward =
            Pipe::<Datagram>::new(config(self.queue), &streams, "forward").expect("a valid pipe");
        let mut reverse =
            Pipe::<Datagram>::new(config(ByteCount::new(1_400_000)), &streams, "reverse")
                .expect("a valid pipe");
        for &(at, change) in &self.changes {
            forward.schedule(at, change).expect("a valid change");
            reverse.schedule(at, change).expect("a valid change");
        }
        let identity = ServerTls::generate_for_tests(&[]).expect("a certificate");
        let options = TlsOptions::virtual_time();
        let server_tls = tls::server_config(&identity, &[ALPN], &options).expect("TLS");
        let trusted = if self.is_trusted {
            identity.chain().to_vec()
        } else {
            let stranger = ServerTls::generate(&[], KeyKind::Ed25519).expect("a certificate");
            stranger.chain().to_vec()
        };
        let client_tls =
            tls::client_config(&Trust::CaDer(trusted), &[self.client_alpn], &options).expect("TLS");
        self.server.algorithm = self.algorithm;
        self.client.algorithm = self.algorithm;
        self.server.seed = Some(self.seed * 2);
        self.client.seed = Some(self.seed * 2 + 1);
        let server_address: SocketAddr = ([10, 0, 0, 1], 443).into();
        let (server_node, server) = world
            .add_endpoint(
                server_address,
                self.server,
                None,
                Some(ServerConfig::new(server_tls).expect("TLS")),
            )
            .expect("a valid configuration");
        let (client_node, client) = world
            .add_endpoint(
                ([10, 0, 0, 2], 50_000).into(),
                self.client,
                Some(ClientConfig::new(client_tls).expect("TLS")),
                None,
            )
            .expect("a valid configuration");
        let forward = world.add_pipe(forward);
        let reverse = world.add_pipe(reverse);
        world.route(server_node, client_node, forward);
        world.route(client_node, server_node, reverse);
        Net {
            world,
            client,
            server,
            server_address,
            server_node,
            client_node,
            forward,
            reverse,
        }
    }
}

fn endpoint(seed: u64) -> EndpointConfig {
    EndpointConfig {
        datagram_size: ByteCount::new(1350),
        has_mtu_discovery: false,
        seed: Some(seed),
        ..EndpointConfig::default()
    }
}

/// What a download ended in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) received: u64,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) server: Option<ConnectionStats>,
    pub(crate) client: Option<ConnectionStats>,
}

/// The server sends `size` bytes on a stream that the client opens; runs until all arrived and the
/// connection is closed, or to the limit.
pub(crate) fn download(net: &mut Net, size: u64, limit: Timestamp) -> Outcome {
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let is_done = Arc::new(AtomicBool::new(false));
    serve(net, size, outcome.clone());
    let client = net.client.clone();
    let address = net.server_address;
    let timers = net.world.timers();
    let (result, done) = (outcome.clone(), is_done.clone());
    net.world.spawn(async move {
        let connection = client.connect(address, "localhost").expect("a connection");
        connection.handshake().await.expect("a handshake");
        let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
        send.write_chunk(Bytes::from_static(b"go"))
            .await
            .expect("a write");
        send.finish().expect("a finish");
        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
            result.lock().expect("unpoisoned").received += chunk.len() as u64;
        }
        {
            let mut result = result.lock().expect("unpoisoned");
            result.finished_at = Some(timers.now());
            result.client = Some(connection.stats());
        }
        connection.close(0, b"done");
        done.store(true, Ordering::Relaxed);
    });
    net.world.run(limit, || is_done.load(Ordering::Relaxed));
    // Let the close travel, so that the server's last figures are there.
    let end = net.world.now() + Duration::from_secs(1);
    net.world.run(end, || false);
    outcome.lock().expect("unpoisoned").clone()
}

fn serve(net: &mut Net, size: u64, outcome: Arc<Mutex<Outcome>>) {
    let server = net.server.clone();
    let spawner = net.world.spawner();
    net.world.spawn(async move {
        while let Some(connection) = server.accept().await {
            spawner.spawn(Box::pin(answer(connection, size, outcome.clone())));
        }
    });
}

async fn answer(connection: Connection, size: u64, outcome: Arc<Mutex<Outcome>>) {
    if let Ok((mut send, mut recv)) = connection.accept_bi().await {
        while let Ok(Some(_)) = recv.read_chunk(usize::MAX).await {}
        let block = Bytes::from(vec![0x5a; 65_536]);
        let mut left = size;
        while left > 0 {
            let piece = block.slice(..ByteCount::new(left).as_usize().min(block.len()));
            left -= piece.len() as u64;
            if send.write_chunk(piece).await.is_err() {
                break;
            }
        }
        let _ = send.finish();
        let _ = send.stopped().await;
    }
    connection.closed().await;
    outcome.lock().expect("unpoisoned").server = Some(connection.stats());
}
