//! The endpoint without I/O: one event in, take all it wants to send, sleep until its deadline.
//!
//! ```text
//!            handle_datagram ──┐                      ┌──> poll_transmit
//!   host     handle_timeouts ──┼──> endpoint, conns ──┤                      host
//!            handles (async) ──┘                      └──> next_deadline
//! ```
//!
//! A host owns the socket, or the virtual network, and the clock. Both hosts ([`crate::net`],
//! [`crate::virt`]) drive this type; it cannot tell them apart. Handles reach it through one lock
//! per endpoint, which a host takes per batch of datagrams and a handle per call, never per packet.

use std::{
    collections::{BTreeSet, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    time::Duration,
};

use bytes::BytesMut;
use netsim::Labels;
use qlogs::{TraceHeader, VantagePoint};
use quinn_proto::{
    ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig as QuinnEndpointConfig, Transmit,
};
use slab::Slab;
use units::{ByteCount, Timestamp};

use crate::{
    clock::Clock,
    config::{ClientConfig, EndpointConfig, ServerConfig},
    conn::{Conn, NewConn},
    error::{ConfigError, ConnectError},
    log::{ConnLog, recovery_parameters},
    parameters::Parameters,
    receive::Receive,
    sender::Sender,
    tap::{Collect, Collected, WINDOW_CLOSED, collect},
};

/// Where time comes from when a handle, not the host, needs it.
pub(crate) type TimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The state of one endpoint.
pub(crate) struct Driver {
    endpoint: Endpoint,
    config: EndpointConfig,
    client: Option<quinn_proto::ClientConfig>,
    clock: Clock,
    time: TimeSource,
    reference_time: Duration,
    local_addr: SocketAddr,
    pub(crate) conns: Slab<Conn>,
    /// From quinn-proto's connection numbers to ours.
    by_handle: Vec<Option<usize>>,
    timers: BTreeSet<(Timestamp, usize)>,
    ready: VecDeque<usize>,
    /// Whether `ready` or `responses` has something, for hosts that ask without the lock.
    work_flag: Arc<AtomicBool>,
    /// Datagrams of no connection: version negotiation, stateless resets, refusals.
    responses: VecDeque<(Transmit, Vec<u8>)>,
    is_labelling: bool,
    labels: Vec<Labels>,
    scratch: Vec<u8>,
    accepted: VecDeque<usize>,
    accept_waiters: Vec<Waker>,
    idle_waiters: Vec<Waker>,
    host_waker: Option<Waker>,
    is_accepting: bool,
    pub(crate) is_closed: bool,
    /// Connections begun so far.
    connection_count: u64,
    /// Handles of the endpoint itself.
    pub(crate) handle_count: usize,
}

/// What a host gives a driver.
pub(crate) struct HostParts {
    pub(crate) clock: Clock,
    pub(crate) time: TimeSource,
    /// Time zero as a span since 1970, for the logs.
    pub(crate) reference_time: Duration,
    pub(crate) local_addr: SocketAddr,
    /// Whether datagrams leave unfragmented, which MTU discovery needs.
    pub(crate) may_probe_mtu: bool,
}

impl Driver {
    pub(crate) fn new(
        config: EndpointConfig,
        client: Option<ClientConfig>,
        server: Option<ServerConfig>,
        host: HostParts,
    ) -> Result<Self, ConfigError> {
        let transport = config.transport()?;
        let endpoint_config = endpoint_config(&config);
        let server = server.map(|server| {
            let mut quinn =
                quinn_proto::ServerConfig::new(server.crypto, Arc::new(token_key(config.seed)));
            quinn.transport_config(transport.clone());
            if config.seed.is_some() {
                // Tokens carry the time of day.
                let mut tokens = quinn_proto::ValidationTokenConfig::default();
                tokens.sent(0);
                quinn.validation_token_config(tokens);
            }
            Arc::new(quinn)
        });
        let client = client.map(|client| {
            let mut quinn = quinn_proto::ClientConfig::new(client.crypto);
            quinn.transport_config(transport.clone());
            if let Some(seed) = config.seed {
                let ids = std::sync::Mutex::new(SeededIds::new(seed ^ 0xd1d_c0de, 8));
                quinn.initial_dst_cid_provider(Arc::new(move || match ids.lock() {
                    Ok(mut ids) => ids.generate_cid(),
                    Err(poisoned) => poisoned.into_inner().generate_cid(),
                }));
            }
            quinn
        });
        let is_accepting = server.is_some();
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(endpoint_config), server, host.may_probe_mtu, None),
            config,
            client,
            clock: host.clock,
            time: host.time,
            reference_time: host.reference_time,
            local_addr: host.local_addr,
            conns: Slab::new(),
            by_handle: Vec::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            work_flag: Arc::new(AtomicBool::new(false)),
            responses: VecDeque::new(),
            is_labelling: false,
            labels: Vec::new(),
            scratch: Vec::new(),
            accepted: VecDeque::new(),
            accept_waiters: Vec::new(),
            idle_waiters: Vec::new(),
            host_waker: None,
            is_accepting,
            is_closed: false,
            connection_count: 0,
            handle_count: 0,
        })
    }

    // -- For hosts -------------------------------------------------------------------------------

    pub(crate) fn handle_datagram(
        &mut self,
        now: Timestamp,
        remote: SocketAddr,
        local_ip: Option<IpAddr>,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) {
        let instant = self.clock.instant(now);
        let mut buf = std::mem::take(&mut self.scratch);
        buf.clear();
        let event = self
            .endpoint
            .handle(instant, remote, local_ip, ecn, data, &mut buf);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(key) = self.key_of(handle) {
                    self.conns[key].handle_event(now, event);
                    self.after_event(now, key);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.is_accepting && !self.is_closed {
                    self.accept(now, incoming, &mut buf);
                } else {
                    let transmit = self.endpoint.refuse(incoming, &mut buf);
                    self.respond(transmit, &buf);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(transmit, &buf),
            None => {}
        }
        self.scratch = buf;
    }

    fn respond(&mut self, transmit: Transmit, buf: &[u8]) {
        // A flood of unanswerable datagrams must not grow memory.
        if self.responses.len() < MAX_RESPONSES {
            let bytes = buf.get(..transmit.size).unwrap_or(buf).to_vec();
            self.responses.push_back((transmit, bytes));
            self.work_flag.store(true, Ordering::Release);
        }
    }

    fn accept(&mut self, now: Timestamp, incoming: quinn_proto::Incoming, buf: &mut Vec<u8>) {
        let instant = self.clock.instant(now);
        let remote = incoming.remote_address();
        let mut tapped = Collected::default();
        let how = Collect {
            window: WINDOW_CLOSED,
            with_frames: self.config.log.is_some(),
            ack_delay_exponent: 3,
        };
        let endpoint = &mut self.endpoint;
        let result = collect(&mut tapped, how, || {
            let accepted = endpoint.accept(incoming, instant, buf, None);
            accepted.map_err(Box::new)
        });
        match result {
            Ok((handle, quic)) => {
                let key = self.insert(now, handle, quic, &tapped, remote, VantagePoint::Server);
                self.conns[key].on_accepted(now, &mut tapped);
                self.after_event(now, key);
            }
            Err(error) => {
                tracing::debug!(cause = %error.cause, "connection refused");
                if let Some(transmit) = error.response {
                    self.respond(transmit, buf);
                }
            }
        }
    }

    pub(crate) fn handle_timeouts(&mut self, now: Timestamp) {
        while let Some(&(at, key)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            let conn = &mut self.conns[key];
            conn.timer = None;
            if conn.is_timer_due(now) {
                conn.handle_timeout(now);
            }
            self.after_event(now, key);
        }
    }

    /// The next datagrams to send: a burst of equal ones (the last may be shorter) if the
    /// [`Transmit`] names a segment size. `buf` is overwritten.
    pub(crate) fn poll_transmit(&mut self, now: Timestamp, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        self.labels.clear();
        if let Some((transmit, bytes)) = self.responses.pop_front() {
            buf.extend_from_slice(&bytes);
            return Some(transmit);
        }
        while let Some(key) = self.ready.pop_front() {
            let conn = &mut self.conns[key];
            conn.is_ready = false;
            conn.apply_requests(now);
            let transmit = conn.poll_transmit(now, buf);
            if transmit.is_some() {
                // To the back: connections take turns.
                self.mark_ready(key);
                if self.is_labelling {
                    let conn = &self.conns[key];
                    conn.label(transmit.as_ref()?, &mut self.labels);
                }
                self.after_poll(now, key);
                return transmit;
            }
            self.after_poll(now, key);
        }
        // The loop has emptied both lists.
        self.work_flag.store(false, Ordering::Release);
        None
    }

    /// Has every transmit described by [`Self::labels`].
    pub(crate) fn start_labelling(&mut self) {
        self.is_labelling = true;
    }

    /// What each datagram of the latest transmit carries; nothing unless asked for.
    pub(crate) fn labels(&self) -> &[Labels] {
        &self.labels
    }

    pub(crate) fn work_flag(&self) -> Arc<AtomicBool> {
        self.work_flag.clone()
    }

    /// When [`Self::handle_timeouts`] is next due.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Whether [`Self::poll_transmit`] should be called.
    #[cfg(feature = "net")]
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.responses.is_empty()
    }

    #[cfg(feature = "net")]
    pub(crate) fn set_host_waker(&mut self, waker: &Waker) {
        if !self
            .host_waker
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            self.host_waker = Some(waker.clone());
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.time)()
    }

    // -- For handles -----------------------------------------------------------------------------

    pub(crate) fn connect(
        &mut self,
        remote: SocketAddr,
        name: &str,
    ) -> Result<usize, ConnectError> {
        if self.is_closed {
            return Err(ConnectError::Closed);
        }
        let config = self.client.clone().ok_or(ConnectError::NotAClient)?;
        let now = self.now();
        let instant = self.clock.instant(now);
        let mut tapped = Collected::default();
        let how = Collect {
            window: WINDOW_CLOSED,
            with_frames: false,
            ack_delay_exponent: 3,
        };
        let endpoint = &mut self.endpoint;
        let (handle, quic) = collect(&mut tapped, how, || {
            endpoint.connect(instant, config, remote, name)
        })
        .map_err(|error| ConnectError::from_quinn(error, name))?;
        let key = self.insert(now, handle, quic, &tapped, remote, VantagePoint::Client);
        self.after_event(now, key);
        self.wake_host();
        Ok(key)
    }

    /// Takes the next accepted connection; keeps the waker if there is none. `Err` when none will
    /// come any more.
    pub(crate) fn poll_accept(&mut self, waker: &Waker) -> Result<Option<usize>, ()> {
        if let Some(key) = self.accepted.pop_front() {
            return Ok(Some(key));
        }
        if self.is_closed || !self.is_accepting {
            return Err(());
        }
        self.accept_waiters.push(waker.clone());
        Ok(None)
    }

    /// Accepts no further connections; those that exist go on.
    pub(crate) fn stop_accepting(&mut self) {
        self.is_accepting = false;
        wake_all(&mut self.accept_waiters);
    }

    pub(crate) fn close(&mut self, code: u64, reason: &[u8]) {
        self.is_closed = true;
        let keys: Vec<usize> = self.conns.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.conns[key].request_close(code, reason);
            self.mark_ready(key);
        }
        wake_all(&mut self.accept_waiters);
        self.wake_host();
    }

    /// The last handle of the endpoint is gone: nobody can take what waits to be accepted.
    pub(crate) fn on_last_handle_dropped(&mut self) {
        self.is_closed = true;
        let keys: Vec<usize> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.handle_count == 0)
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            self.conns[key].request_close(0, b"");
            self.mark_ready(key);
        }
        self.accepted.clear();
        self.wake_host();
    }

    /// Whether no connection is left; keeps the waker otherwise.
    pub(crate) fn poll_idle(&mut self, waker: &Waker) -> bool {
        if self.conns.iter().all(|(_, conn)| conn.is_drained) {
            return true;
        }
        self.idle_waiters.push(waker.clone());
        false
    }

    /// A handle changed something: have the host look.
    pub(crate) fn touch(&mut self, key: usize) {
        self.mark_ready(key);
        self.wake_host();
    }

    pub(crate) fn wake_host(&mut self) {
        if let Some(waker) = self.host_waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn send_buffer(&self) -> usize {
        self.config.send_buffer.as_usize()
    }

    /// A handle of the connection is gone. With the last one the connection closes.
    pub(crate) fn release(&mut self, key: usize) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.handle_count -= 1;
        if conn.handle_count > 0 {
            return;
        }
        if conn.is_drained {
            self.remove(key);
        } else {
            conn.request_close(0, b"");
            self.touch(key);
        }
    }

    // -- Inside ----------------------------------------------------------------------------------

    fn key_of(&self, handle: ConnectionHandle) -> Option<usize> {
        *self.by_handle.get(handle.0)?
    }

    fn insert(
        &mut self,
        now: Timestamp,
        handle: ConnectionHandle,
        quic: quinn_proto::Connection,
        tapped: &Collected,
        remote: SocketAddr,
        side: VantagePoint,
    ) -> usize {
        let mtu = ByteCount::new(u64::from(quic.current_mtu()));
        self.connection_count += 1;
        let seed = controller_seed(self.config.seed, self.connection_count);
        let controller = self.config.algorithm.build_with_seed(mtu, seed);
        let log = self.open_log(now, tapped, remote, side, controller.as_ref(), mtu);
        let key = self.conns.insert(Conn::new(NewConn {
            handle,
            quic,
            sender: Sender::new(
                controller,
                mtu,
                self.config.observer.as_ref().and_then(|make| make()),
            ),
            receive: Receive::new(
                self.config.receive_window,
                self.config.stream_receive_window,
            ),
            clock: self.clock,
            log,
        }));
        if self.by_handle.len() <= handle.0 {
            self.by_handle.resize(handle.0 + 1, None);
        }
        self.by_handle[handle.0] = Some(key);
        key
    }

    fn open_log(
        &self,
        now: Timestamp,
        tapped: &Collected,
        remote: SocketAddr,
        side: VantagePoint,
        controller: &dyn cc::Controller,
        mtu: ByteCount,
    ) -> Option<ConnLog> {
        let factory = self.config.log.as_ref()?;
        let odcid = tapped
            .initial_dcid
            .map(|id| id.to_vec())
            .unwrap_or_default();
        let mut header = TraceHeader::new(side, odcid);
        header.reference_time = self.reference_time;
        header.title = if self.config.log_title.is_empty() {
            format!("tidegate {} {}", side.as_str(), controller.name())
        } else {
            self.config.log_title.clone()
        };
        header.code_version = format!("{} {}", header.code_version, controller.name());
        let mut log = ConnLog::new(factory(&header)?, &header)?;
        log.started(now, self.local_addr, remote);
        log.own_parameters(now, &self.own_parameters());
        log.initial_state(
            now,
            controller.state(),
            recovery_parameters(controller, mtu, self.config.initial_rtt),
        );
        Some(log)
    }

    fn own_parameters(&self) -> Parameters {
        let stream = Some(self.config.stream_receive_window.as_u64());
        Parameters {
            max_idle_timeout_ms: self
                .config
                .idle_timeout
                .and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
            initial_max_data_bytes: Some(self.config.receive_window.as_u64()),
            initial_max_stream_data_bidi_local_bytes: stream,
            initial_max_stream_data_bidi_remote_bytes: stream,
            initial_max_stream_data_uni_bytes: stream,
            initial_max_streams_bidi: Some(self.config.max_bidi_streams.into()),
            initial_max_streams_uni: Some(self.config.max_uni_streams.into()),
            ..Parameters::default()
        }
    }

    fn after_event(&mut self, now: Timestamp, key: usize) {
        self.exchange(now, key);
        let milestones = self.conns[key].poll_events(now);
        if milestones.is_established && !self.conns[key].is_client() {
            self.accepted.push_back(key);
            // All of them: one may belong to a future that is gone.
            wake_all(&mut self.accept_waiters);
        }
        if self.conns[key].is_drained {
            // Nothing more will leave, so no poll would come by to clear it away.
            self.after_poll(now, key);
        } else {
            self.mark_ready(key);
        }
    }

    /// Carries messages between quinn-proto's connection and its endpoint until both are silent.
    fn exchange(&mut self, now: Timestamp, key: usize) {
        while let Some(event) = self.conns[key].poll_endpoint_event() {
            let handle = self.conns[key].handle;
            let is_drained = event.is_drained();
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                self.conns[key].handle_event(now, event);
            }
            if is_drained {
                self.by_handle[handle.0] = None;
                let conn = &mut self.conns[key];
                conn.is_drained = true;
                conn.finish_log();
                wake_all(&mut self.idle_waiters);
            }
        }
    }

    fn after_poll(&mut self, now: Timestamp, key: usize) {
        self.exchange(now, key);
        let conn = &mut self.conns[key];
        if conn.is_drained {
            let is_forgotten = conn.handle_count == 0 && !self.accepted.contains(&key);
            self.set_timer(key, None);
            if is_forgotten {
                self.remove(key);
            }
            return;
        }
        let deadline = conn.deadline(now);
        self.set_timer(key, deadline);
    }

    /// Has the connection looked at by `at`. An earlier look that is already due to come is left to
    /// come: with every packet the deadline moves a little later, and a spare look per deadline costs
    /// less than a change of the set per packet.
    fn set_timer(&mut self, key: usize, at: Option<Timestamp>) {
        let conn = &mut self.conns[key];
        let is_early_enough = match (conn.timer, at) {
            (Some(old), Some(at)) => old <= at,
            (old, at) => old == at,
        };
        if is_early_enough {
            return;
        }
        if let Some(old) = conn.timer {
            self.timers.remove(&(old, key));
        }
        if let Some(at) = at {
            self.timers.insert((at, key));
        }
        conn.timer = at;
    }

    fn remove(&mut self, key: usize) {
        if let Some(at) = self.conns[key].timer {
            self.timers.remove(&(at, key));
        }
        self.ready.retain(|&ready| ready != key);
        self.accepted.retain(|&accepted| accepted != key);
        self.conns.remove(key);
    }

    fn mark_ready(&mut self, key: usize) {
        let conn = &mut self.conns[key];
        if !conn.is_ready && !conn.is_drained {
            conn.is_ready = true;
            self.ready.push_back(key);
            self.work_flag.store(true, Ordering::Release);
        }
    }
}

/// Most datagrams of no connection that wait to be sent.
const MAX_RESPONSES: usize = 256;

fn wake_all(list: &mut Vec<Waker>) {
    for waker in list.drain(..) {
        waker.wake();
    }
}

pub(crate) fn endpoint_config(config: &EndpointConfig) -> QuinnEndpointConfig {
    let mut quinn = QuinnEndpointConfig::new(Arc::new(reset_key(config.seed)));
    if let Some(seed) = config.seed {
        let mut bytes = [0; 32];
        for (index, chunk) in bytes.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&mix(seed.wrapping_add(index as u64)).to_le_bytes());
        }
        quinn.rng_seed(Some(bytes));
        quinn.cid_generator(move || Box::new(SeededIds::new(seed, 8)));
    }
    quinn
}

fn reset_key(seed: Option<u64>) -> ring::hmac::Key {
    ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key_bytes(seed, 1))
}

fn token_key(seed: Option<u64>) -> ring::hkdf::Prk {
    ring::hkdf::Salt::new(ring::hkdf::HKDF_SHA256, &[]).extract(&key_bytes(seed, 2))
}

/// Key material: from the operating system, or from the seed when a run must repeat.
fn key_bytes(seed: Option<u64>, purpose: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    match seed {
        Some(seed) => {
            for (index, chunk) in bytes.chunks_mut(8).enumerate() {
                let word = mix(seed ^ purpose.rotate_left(32)).wrapping_add(index as u64);
                chunk.copy_from_slice(&mix(word).to_le_bytes());
            }
        }
        None => {
            use ring::rand::SecureRandom;
            // The operating system's generator does not fail after start-up; if it did, TLS would
            // refuse to work as well.
            let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
        }
    }
    bytes
}

/// What the controller of the endpoint's `number`th connection draws its chances from.
fn controller_seed(seed: Option<u64>, number: u64) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = key_bytes(seed, 3);
    mix(u64::from_le_bytes([a, b, c, d, e, f, g, h]).wrapping_add(number))
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): spreads a counter over 64 bits.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Connection ids from a seed, for runs that must repeat.
struct SeededIds {
    state: u64,
    length: usize,
}

impl SeededIds {
    fn new(seed: u64, length: usize) -> Self {
        Self {
            state: mix(seed),
            length,
        }
    }
}

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.state = self.state.wrapping_add(1);
        ConnectionId::new(&mix(self.state).to_be_bytes()[..self.length])
    }

    fn cid_len(&self) -> usize {
        self.length
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
