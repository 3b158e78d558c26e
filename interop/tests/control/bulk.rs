//! Flows that share a link, on the whole QUIC stack in virtual time.
//!
//! ```text
//!   server 1 ──.                                       ,──> client 1
//!   server 2 ──+──> queue ─ serialiser ─ propagation ──+──> client 2
//!   ...        '                                       '    ...
//!      ^           reverse: same rate and delay, no limit      |
//!      '-------------------------------------------------------'
//! ```
//!
//! Each flow is a connection between two endpoints of its own, with full TLS, on which the server sends one stream
//! without end. Nothing but the controller and the link limits it: flow-control windows are 64 MiB. Datagrams have
//! 1,200 bytes and weigh 1,228 on the link.
//!
//! Seeds are for endpoints (connection ids, packet-number skips) and for the pipes' random loss. Nothing else is random.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cc::{Algorithm, State, Transition, Trigger};
use netsim::{Change, Counters, LossPlace, OutputRecord, Pipe, PipeConfig, RandomStreams};
use quic_core::tls::{ServerTls, TlsOptions, Trust, client_config, server_config};
use quic_core::virt::{Datagram, IPV4_UDP_HEADERS, NodeId, World};
use quic_core::{
    ClientConfig, Connection, EndpointConfig, SenderObserver, SenderStats, SenderUpdate,
    ServerConfig,
};
use units::{ByteCount, Fraction, QueueLimit, Rate, Timestamp};

/// A datagram's UDP payload; the packet that windows are counted in.
pub(crate) const PACKET: ByteCount = ByteCount::new(1_200);

/// Delivered bytes are recorded in buckets this wide.
const BUCKET: Duration = Duration::from_millis(100);

/// The forward direction; the reverse one differs in having neither limit nor loss.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) queue: ByteCount,
    /// Strikes before the queue.
    pub(crate) loss: Fraction,
    pub(crate) changes: Vec<(Timestamp, Change)>,
}

impl Link {
    /// A link whose queue holds so many thousandths of its bandwidth-delay product.
    pub(crate) fn new(rate: Rate, rtt: Duration, bdp_thousandths: u64) -> Self {
        let limit = QueueLimit::Bdp {
            thousandths: bdp_thousandths,
        };
        Self {
            rate,
            rtt,
            queue: limit.resolve(rate, rtt, PACKET + IPV4_UDP_HEADERS),
            loss: Fraction::ZERO,
            changes: Vec::new(),
        }
    }

    pub(crate) fn with_loss(self, loss: Fraction) -> Self {
        Self { loss, ..self }
    }

    /// The bandwidth-delay product.
    pub(crate) fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }
}

/// One flow: what controls it, and when it begins.
#[derive(Copy, Clone)]
pub(crate) struct Flow {
    pub(crate) algorithm: Algorithm,
    pub(crate) start: Timestamp,
}

impl Flow {
    /// One that begins at once, by the controller's name.
    #[track_caller]
    pub(crate) fn new(algorithm: &str) -> Self {
        Self {
            algorithm: algorithm.parse().expect("a controller"),
            start: Timestamp::ZERO,
        }
    }

    pub(crate) fn starting_at(self, start: Timestamp) -> Self {
        Self { start, ..self }
    }
}

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) forward: Counters,
    pub(crate) output: OutputRecord,
}

/// What became of one flow.
#[derive(Default)]
pub(crate) struct FlowRecord {
    /// Stream bytes that the client had read by the end of each bucket, in order and without gaps.
    delivered: Vec<u64>,
    /// Each change of the window, with the latest round-trip time of then.
    pub(crate) windows: Vec<Sample>,
    /// Each change of the controller's state.
    pub(crate) passages: Vec<Passage>,
    /// When each full datagram left, if that was asked for.
    pub(crate) departures: Vec<Timestamp>,
    pub(crate) sender: SenderStats,
}

/// The window from an instant on.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Timestamp,
    pub(crate) window: ByteCount,
    pub(crate) rtt: Duration,
}

/// One change of the controller's state.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Passage {
    pub(crate) at: Timestamp,
    pub(crate) transition: Transition,
    /// The window before the event that brought it.
    pub(crate) before: ByteCount,
    /// The window after that event.
    pub(crate) after: ByteCount,
    /// The latest round-trip time.
    pub(crate) rtt: Duration,
    /// Packets that the forward pipe had dropped by then.
    pub(crate) dropped: u64,
}

impl FlowRecord {
    /// Stream bytes delivered between two instants, to the bucket.
    pub(crate) fn delivered(&self, from: Timestamp, until: Timestamp) -> ByteCount {
        let by = |at: Timestamp| match bucket(at) {
            0 => 0,
            index => *self
                .delivered
                .get(index - 1)
                .expect("the run lasted until then"),
        };
        ByteCount::new(by(until) - by(from))
    }

    /// Stream bytes per second between two instants, in Mbit/s.
    pub(crate) fn goodput(&self, from: Timestamp, until: Timestamp) -> f64 {
        let bytes = self.delivered(from, until).as_u64() as f64;
        bytes * 8e-6 / until.saturating_since(from).as_secs_f64()
    }

    /// The window, averaged over the time between two instants, in packets.
    pub(crate) fn mean_window(&self, from: Timestamp, until: Timestamp) -> f64 {
        let spans = self.spans(from, until);
        let areas = spans.map(|(window, span)| u128::from(window.as_u64()) * span.as_nanos());
        let area: u128 = areas.sum();
        area as f64 / until.saturating_since(from).as_nanos() as f64 / PACKET.as_u64() as f64
    }

    /// The share of the time between two instants in which the window was not above a limit.
    pub(crate) fn share_of_time_within(
        &self,
        limit: ByteCount,
        from: Timestamp,
        until: Timestamp,
    ) -> f64 {
        let spans = self.spans(from, until);
        let within = spans.filter(|(window, _)| *window <= limit);
        let total: Duration = within.map(|(_, span)| span).sum();
        total.as_secs_f64() / until.saturating_since(from).as_secs_f64()
    }

    /// Each window between two instants, and how long it held.
    fn spans(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = (ByteCount, Duration)> {
        let ends = self.windows.iter().skip(1).map(|next| next.at);
        let ends = ends.chain([Timestamp::MAX]);
        self.windows.iter().zip(ends).map(move |(sample, end)| {
            let span = end.min(until).saturating_since(sample.at.max(from));
            (sample.window, span)
        })
    }

    /// The cuts: changes into recovery.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Passage> {
        let passages = self.passages.iter();
        passages.filter(|passage| passage.transition.to == State::Recovery)
    }

    /// Ends of recovery periods.
    pub(crate) fn exits(&self) -> impl Iterator<Item = &Passage> {
        let passages = self.passages.iter();
        passages.filter(|passage| passage.transition.trigger == Trigger::RecoveryExited)
    }

    /// The end of the initial slow start.
    #[track_caller]
    pub(crate) fn slow_start_exit(&self) -> &Passage {
        let is_end = |passage: &&Passage| {
            matches!(
                passage.transition.to,
                State::Recovery | State::CongestionAvoidance
            )
        };
        let end = self.passages.iter().find(is_end);
        end.expect("slow start came to an end")
    }
}

/// Plays flows over a link for a while.
pub(crate) struct Play<'a> {
    pub(crate) link: &'a Link,
    pub(crate) flows: &'a [Flow],
    pub(crate) seed: u64,
    pub(crate) until: Timestamp,
    pub(crate) has_departures: bool,
}

impl<'a> Play<'a> {
    pub(crate) fn new(link: &'a Link, flows: &'a [Flow], until: Timestamp) -> Self {
        Self {
            link,
            flows,
            seed: 1,
            until,
            has_departures: false,
        }
    }

    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(crate) fn with_departures(self) -> Self {
        Self {
            has_departures: true,
            ..self
        }
    }

    /// Plays it.
    pub(crate) fn run(self) -> Run {
        let mut world = World::new();
        let streams = RandomStreams::new(self.seed);
        let mut forward = Pipe::<Datagram>::new(
            PipeConfig {
                rate: self.link.rate,
                delay: self.link.rtt / 2,
                queue: self.link.queue,
                loss: self.link.loss,
                loss_place: LossPlace::BeforeQueue,
                ..PipeConfig::default()
            },
            &streams,
            "forward",
        )
        .expect("a valid pipe");
        for &(at, change) in &self.link.changes {
            forward.schedule(at, change).expect("a valid change");
        }
        let forward = world.add_pipe(forward);
        let reverse = PipeConfig {
            rate: self.link.rate,
            delay: self.link.rtt / 2,
            ..PipeConfig::default()
        };
        let reverse = Pipe::<Datagram>::new(reverse, &streams, "reverse").expect("a valid pipe");
        let reverse = world.add_pipe(reverse);

        let passage_count = Arc::new(AtomicU64::new(0));
        let mut ends = Vec::new();
        let mut servers = Vec::new();
        for (index, flow) in (1..).zip(self.flows) {
            let record: Shared = Arc::default();
            let server_address = SocketAddr::from(([10, 0, index, 1], 443));
            let client_address = SocketAddr::from(([10, 0, index, 2], 50_000));
            let seed = self.seed * 1_000 + u64::from(index) * 2;
            let mut config = endpoint(flow.algorithm, seed);
            let (heard, count) = (record.clone(), passage_count.clone());
            config.observer = Some(Arc::new(move || {
                Some(Box::new(Ear {
                    record: heard.clone(),
                    passage_count: count.clone(),
                    window: ByteCount::ZERO,
                    rtt: Duration::ZERO,
                }))
            }));
            let tls = tls();
            let (server_node, server) = world
                .add_endpoint(server_address, config, None, Some(tls.server.clone()))
                .expect("a valid endpoint");
            let (client_node, client) = world
                .add_endpoint(
                    client_address,
                    endpoint(flow.algorithm, seed + 1),
                    Some(tls.client.clone()),
                    None,
                )
                .expect("a valid endpoint");
            world.route(server_node, client_node, forward);
            world.route(client_node, server_node, reverse);
            servers.push(server_node);

            let connection: Arc<Mutex<Option<Connection>>> = Arc::default();
            ends.push((record.clone(), connection.clone()));
            world.spawn(async move {
                let accepted = server.accept().await.expect("a connection");
                *lock(&connection) = Some(accepted.clone());
                let mut stream = accepted.open_uni().await.expect("a stream");
                let block = Bytes::from(vec![0x5a; 65_536]);
                loop {
                    stream.write_chunk(block.clone()).await.expect("a write");
                }
            });
            let (timers, start) = (world.timers(), flow.start);
            world.spawn(async move {
                timers.sleep_until(start).await;
                let connection = client
                    .connect(server_address, "localhost")
                    .expect("a connection");
                let mut stream = connection.accept_uni().await.expect("a stream");
                let mut total = 0;
                loop {
                    let chunk = stream.read_chunk(usize::MAX).await.expect("a read");
                    total += chunk.expect("a stream without end").len() as u64;
                    lock(&record).on_delivered(timers.now(), total);
                }
            });
        }
        let departures: Rc<RefCell<Vec<(Timestamp, NodeId)>>> = Rc::default();
        if self.has_departures {
            let seen = departures.clone();
            world.observe(Box::new(move |now, from, payload| {
                if payload.len() as u64 >= PACKET.as_u64() / 2 {
                    seen.borrow_mut().push((now, from));
                }
            }));
        }

        // The world pauses at every change of state, so that the pipe can be asked what it has dropped so far.
        let mut seen = 0;
        while world.run(self.until, || passage_count.load(Ordering::Relaxed) > seen) {
            seen = passage_count.load(Ordering::Relaxed);
            let dropped = world.pipe(forward).counters().dropped().packets;
            let now = world.now();
            for (record, _) in &ends {
                let mut record = lock(record);
                let news = record.passages.iter_mut().rev();
                for passage in news.take_while(|passage| passage.at == now) {
                    passage.dropped = dropped;
                }
            }
        }
        let flows = ends
            .iter()
            .zip(servers)
            .map(|((record, connection), node)| {
                let mut record = std::mem::take(&mut *lock(record));
                record.on_end(self.until);
                let connection = lock(connection).take();
                record.sender = connection
                    .map_or_else(SenderStats::default, |connection| connection.stats().sender);
                let departures = departures.borrow();
                let departures = departures.iter().filter(|(_, from)| *from == node);
                record.departures = departures.map(|&(at, _)| at).collect();
                record
            });
        let flows = flows.collect();
        let pipe = world.pipe(forward);
        assert!(pipe.counters().is_balanced());
        Run {
            flows,
            forward: pipe.counters().clone(),
            output: pipe.output().clone(),
        }
    }
}

impl Run {
    /// The only flow.
    #[track_caller]
    pub(crate) fn only(&self) -> &FlowRecord {
        let [flow] = &self.flows[..] else {
            panic!("{} flows", self.flows.len());
        };
        flow
    }

    /// The share of the link that was used between two instants.
    pub(crate) fn utilisation(&self, from: Timestamp, until: Timestamp) -> f64 {
        let usage = self.output.usage(from, until).expect("a span of time");
        usage.share().expect("a link with a rate").as_f64()
    }
}

type Shared = Arc<Mutex<FlowRecord>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bucket(at: Timestamp) -> usize {
    let index = at.as_nanos() / u64::try_from(BUCKET.as_nanos()).expect("100 ms");
    usize::try_from(index).expect("a short run")
}

impl FlowRecord {
    fn on_delivered(&mut self, now: Timestamp, total: u64) {
        let index = bucket(now);
        self.on_end(now);
        if self.delivered.len() == index {
            self.delivered.push(total);
        }
        self.delivered[index] = total;
    }

    /// Fills the buckets before `now` in which nothing came.
    fn on_end(&mut self, now: Timestamp) {
        let last = self.delivered.last().copied().unwrap_or(0);
        if self.delivered.len() < bucket(now) {
            self.delivered.resize(bucket(now), last);
        }
    }
}

/// Writes down what the sender does.
struct Ear {
    record: Shared,
    passage_count: Arc<AtomicU64>,
    window: ByteCount,
    rtt: Duration,
}

impl SenderObserver for Ear {
    fn on_update(&mut self, now: Timestamp, update: &SenderUpdate) {
        if let Some(latest) = update.latest_rtt {
            self.rtt = latest;
        }
        if update.window == self.window {
            return;
        }
        self.window = update.window;
        let mut record = lock(&self.record);
        record.windows.push(Sample {
            at: now,
            window: update.window,
            rtt: self.rtt,
        });
        // A change of state is told before the window that it brought.
        let news = record.passages.iter_mut().rev();
        for passage in news.take_while(|passage| passage.at == now) {
            passage.after = update.window;
        }
    }

    fn on_transition(&mut self, now: Timestamp, transition: &Transition) {
        self.passage_count.fetch_add(1, Ordering::Relaxed);
        lock(&self.record).passages.push(Passage {
            at: now,
            transition: *transition,
            before: self.window,
            after: self.window,
            rtt: self.rtt,
            dropped: 0,
        });
    }
}

fn endpoint(algorithm: Algorithm, seed: u64) -> EndpointConfig {
    EndpointConfig {
        algorithm,
        datagram_size: PACKET,
        has_mtu_discovery: false,
        stream_receive_window: ByteCount::mib(64),
        receive_window: ByteCount::mib(64),
        send_window: ByteCount::mib(64),
        idle_timeout: None,
        seed: Some(seed),
        ..EndpointConfig::default()
    }
}

struct Tls {
    server: ServerConfig,
    client: ClientConfig,
}

/// The TLS of all endpoints, with a certificate that is the same in every run.
fn tls() -> &'static Tls {
    static TLS: OnceLock<Tls> = OnceLock::new();
    const ALPN: &[u8] = b"tidegate-bulk";
    TLS.get_or_init(|| {
        let identity = ServerTls::generate_for_tests(&[]).expect("a certificate");
        let options = TlsOptions::virtual_time();
        let trust = Trust::CaDer(identity.chain().to_vec());
        let server = server_config(&identity, &[ALPN], &options).expect("TLS");
        let client = client_config(&trust, &[ALPN], &options).expect("TLS");
        Tls {
            server: ServerConfig::new(server).expect("TLS"),
            client: ClientConfig::new(client).expect("TLS"),
        }
    })
}
