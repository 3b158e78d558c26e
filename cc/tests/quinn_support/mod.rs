//! Two quinn-proto endpoints in memory and in virtual time, and a harvester of RTT estimators.

use std::any::Any;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, RttEstimator, ServerConfig, StreamId, TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Where virtual time begins.
#[expect(
    clippy::disallowed_methods,
    reason = "an instant can only be had from the clock; nothing depends on its value"
)]
pub(crate) fn origin() -> Instant {
    // With room below, for scripts that look back.
    Instant::now() + Duration::from_secs(1_000)
}

/// Lets a real connection of this round-trip time run its handshake and returns the estimator it shows its controller.
pub(crate) fn harvest_rtt(round_trip: Duration) -> RttEstimator {
    let harvest = Arc::new(Harvest::default());
    let mut pair = Pair::new(harvest.clone(), round_trip / 2);
    pair.send(10_000);
    pair.run_for(round_trip * 10);
    let seen = harvest.seen.lock().expect("nobody panics with it");
    let estimator = seen.expect("the client has acknowledged something");
    assert_eq!(estimator.get(), round_trip, "virtual time is exact");
    estimator
}

/// A controller that only looks.
#[derive(Default)]
struct Harvest {
    seen: Mutex<Option<RttEstimator>>,
}

struct Look(Arc<Harvest>);

impl ControllerFactory for Harvest {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new(Look(self))
    }
}

impl Controller for Look {
    fn on_ack(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _bytes: u64,
        _limited: bool,
        rtt: &RttEstimator,
    ) {
        *self.0.seen.lock().expect("nobody panics with it") = Some(*rtt);
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _persistent: bool,
        _lost: u64,
    ) {
    }

    fn on_mtu_update(&mut self, _mtu: u16) {}

    fn window(&self) -> u64 {
        1_000_000
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self(Arc::clone(&self.0)))
    }

    fn initial_window(&self) -> u64 {
        1_000_000
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A server that sends and a client that reads, `delay` apart.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    delay: Duration,
    client: Side,
    server: Side,
    in_transit: VecDeque<Datagram>,
    stream: Option<StreamId>,
    to_send: usize,
    pub(crate) received: usize,
    /// Says which of the server's datagrams the network loses.
    pub(crate) is_lost: Box<dyn FnMut(Instant, usize) -> bool>,
    /// Says which of the client's.
    pub(crate) is_answer_lost: Box<dyn FnMut(Instant) -> bool>,
    /// Sees the server's true window each time the server may have sent.
    pub(crate) on_window: Box<dyn FnMut(Instant, u64)>,
    /// Every batch of full datagrams the server sent at one instant.
    pub(crate) bursts: Vec<Burst>,
}

/// What the server sent at one instant.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Burst {
    /// Datagrams of the full size.
    pub(crate) full_datagrams: usize,
    /// The true window just before.
    pub(crate) window: u64,
}

struct Side {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
}

struct Datagram {
    arrives_at: Instant,
    is_for_client: bool,
    from: SocketAddr,
    payload: BytesMut,
}

/// quinn's datagram size with path-MTU discovery switched off.
const DATAGRAM: usize = 1_200;

impl Pair {
    /// Makes a pair whose server uses this controller; the client has quinn's default.
    pub(crate) fn new(factory: Arc<dyn ControllerFactory + Send + Sync>, delay: Duration) -> Self {
        let now = origin();
        let (client_config, server_config) = configs(factory);
        let server_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4_433));
        let client_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000));
        let endpoint_config = Arc::new(EndpointConfig::default());
        let mut client = Endpoint::new(Arc::clone(&endpoint_config), None, true, Some([1; 32]));
        let server = Endpoint::new(
            endpoint_config,
            Some(Arc::new(server_config)),
            true,
            Some([2; 32]),
        );
        let connection = client
            .connect(now, client_config, server_address, "localhost")
            .expect("the configuration is complete");
        Self {
            now,
            delay,
            client: Side {
                endpoint: client,
                address: client_address,
                connection: Some(connection),
            },
            server: Side {
                endpoint: server,
                address: server_address,
                connection: None,
            },
            in_transit: VecDeque::new(),
            stream: None,
            to_send: 0,
            received: 0,
            is_lost: Box::new(|_, _| false),
            is_answer_lost: Box::new(|_| false),
            on_window: Box::new(|_, _| {}),
            bursts: Vec::new(),
        }
    }

    /// Lets the server send so many bytes more, as soon as it can.
    pub(crate) fn send(&mut self, bytes: usize) {
        self.to_send += bytes;
    }

    /// The server's controller.
    pub(crate) fn controller(&self) -> &dyn Controller {
        self.server_connection().congestion_state()
    }

    pub(crate) fn server_connection(&self) -> &Connection {
        let (_, connection) = self
            .server
            .connection
            .as_ref()
            .expect("the handshake has begun");
        connection
    }

    /// Whether the server has finished the handshake.
    pub(crate) fn is_connected(&self) -> bool {
        let connection = self.server.connection.as_ref();
        connection.is_some_and(|(_, connection)| !connection.is_handshaking())
    }

    /// Moves the client to another port, as a NAT does that forgot it.
    pub(crate) fn rebind_client(&mut self) {
        self.client.address.set_port(self.client.address.port() + 1);
    }

    /// Lets the client say something, so that the server notices where it is.
    pub(crate) fn ping_from_client(&mut self) {
        if let Some((_, connection)) = &mut self.client.connection {
            connection.ping();
        }
    }

    /// Plays everything that happens within this span.
    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Plays until `is_done`, and returns after how long; `None` if it was not within this span.
    pub(crate) fn run_until(
        &mut self,
        span: Duration,
        mut is_done: impl FnMut(&Self) -> bool,
    ) -> Option<Duration> {
        let begin = self.now;
        let end = begin + span;
        loop {
            self.transmit();
            if is_done(self) {
                return Some(self.now - begin);
            }
            let timers = [&mut self.client, &mut self.server].map(|side| {
                let (_, connection) = side.connection.as_mut()?;
                connection.poll_timeout()
            });
            let arrival = self.in_transit.front().map(|datagram| datagram.arrives_at);
            let Some(next) = timers.into_iter().chain([arrival]).flatten().min() else {
                break;
            };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            for side in [&mut self.client, &mut self.server] {
                if let Some((_, connection)) = &mut side.connection {
                    connection.handle_timeout(self.now);
                }
            }
            while self
                .in_transit
                .front()
                .is_some_and(|d| d.arrives_at <= self.now)
            {
                let datagram = self.in_transit.pop_front().expect("just seen");
                self.deliver(datagram);
            }
        }
        self.now = end;
        None
    }

    fn deliver(&mut self, datagram: Datagram) {
        let now = self.now;
        let side = if datagram.is_for_client {
            &mut self.client
        } else {
            &mut self.server
        };
        let mut reply = Vec::new();
        match side
            .endpoint
            .handle(now, datagram.from, None, None, datagram.payload, &mut reply)
        {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut side.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = side.endpoint.accept(incoming, now, &mut reply, None);
                side.connection = accepted.ok();
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn transmit(&mut self) {
        self.write();
        self.read();
        for is_client in [true, false] {
            let side = if is_client {
                &mut self.client
            } else {
                &mut self.server
            };
            let from = side.address;
            let Some((handle, connection)) = &mut side.connection else {
                continue;
            };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = side.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let window = connection.congestion_state().metrics().congestion_window;
            let mut full_datagrams = 0;
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(self.now, 1, &mut buffer) {
                assert_eq!(transmit.size, buffer.len());
                let payload = BytesMut::from(&buffer[..]);
                buffer.clear();
                full_datagrams += usize::from(payload.len() == DATAGRAM);
                let is_lost = match is_client {
                    true => (self.is_answer_lost)(self.now),
                    false => (self.is_lost)(self.now, payload.len()),
                };
                if is_lost {
                    continue;
                }
                self.in_transit.push_back(Datagram {
                    arrives_at: self.now + self.delay,
                    is_for_client: !is_client,
                    from,
                    payload,
                });
            }
            if !is_client {
                let metrics = connection.congestion_state().metrics();
                (self.on_window)(self.now, metrics.congestion_window);
            }
            if !is_client && full_datagrams > 0 {
                self.bursts.push(Burst {
                    full_datagrams,
                    window,
                });
            }
        }
    }

    fn write(&mut self) {
        let Some((_, connection)) = &mut self.server.connection else {
            return;
        };
        while connection.poll().is_some() {}
        if self.stream.is_none() && !connection.is_handshaking() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let Some(stream) = self.stream else {
            return;
        };
        let data = [7; 10_000];
        while self.to_send > 0 {
            let chunk = &data[..self.to_send.min(data.len())];
            match connection.send_stream(stream).write(chunk) {
                Ok(written) => self.to_send -= written,
                Err(_) => break,
            }
        }
    }

    fn read(&mut self) {
        let Some((_, connection)) = &mut self.client.connection else {
            return;
        };
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                panic!("the connection broke: {reason}");
            }
        }
        let stream = match connection.streams().accept(Dir::Uni) {
            Some(stream) => stream,
            None => StreamId::new(quinn_proto::Side::Server, Dir::Uni, 0),
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += chunk.bytes.len();
        }
        let _ = chunks.finalize();
    }
}

/// Configures both ends: one fresh certificate, no path-MTU discovery, windows that never limit.
fn configs(factory: Arc<dyn ControllerFactory + Send + Sync>) -> (ClientConfig, ServerConfig) {
    let (certificate, key) = self_signed();
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key)
        .expect("the key belongs to the certificate");
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(factory)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .send_window(64 << 20);
    server.transport_config(Arc::new(transport));
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate)
        .expect("the certificate is well-formed");
    let mut client =
        ClientConfig::with_root_certificates(Arc::new(roots)).expect("the store has a certificate");
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(64 << 20))
        .receive_window(VarInt::from_u32(64 << 20));
    client.transport_config(Arc::new(transport));
    (client, server)
}

/// Makes a certificate for `localhost` and its key.
fn self_signed() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .expect("the name is valid");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    (made.cert.der().clone(), key.into())
}
