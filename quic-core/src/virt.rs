//! Host 2: endpoints on a virtual network in virtual time.
//!
//! ```text
//!   tasks (async) ──> endpoint ──> route ──> pipe ──> endpoint ──> tasks
//!                        ^                                ^
//!                        └── timers ─── one clock ────────┘
//! ```
//!
//! [`World`] owns the clock, the endpoints, the pipes and a small executor. Time moves only when no
//! task can run and no endpoint has anything to send; it then jumps to the next delivery, timer or
//! sleep. Everything happens on one thread, in one fixed order: pipes in the order in which they
//! were added, then endpoints, then tasks. With the same seeds, two runs are the same to the byte.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use netsim::{Ecn, FlowId, Labels, Packet, Pipe};
use quinn_proto::EcnCodepoint;
use units::{ByteCount, Timestamp};

use crate::{
    clock::Clock,
    config::{ClientConfig, EndpointConfig, ServerConfig},
    driver::{Driver, HostParts},
    error::ConfigError,
    handles::{Endpoint, Shared},
};

/// A datagram on its way. Copied only by a wire that duplicates.
#[derive(Clone, Debug)]
pub struct Datagram {
    from: SocketAddr,
    to: NodeId,
    /// Which route it takes, and how many of its pipes lie behind it.
    route: usize,
    hop: usize,
    data: BytesMut,
}

impl Datagram {
    /// The UDP payload, encrypted.
    pub fn payload(&self) -> &[u8] {
        &self.data
    }
}

/// Names an endpoint of a [`World`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(usize);

/// Names a pipe of a [`World`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PipeId(usize);

/// IPv4 and UDP headers (RFC 791, RFC 768): what a datagram's payload weighs more on the wire.
pub const IPV4_UDP_HEADERS: ByteCount = ByteCount::new(28);

/// One departure, for observers: time, sender, UDP payload.
pub type Observer = Box<dyn FnMut(Timestamp, NodeId, &[u8])>;

/// A virtual network with its endpoints and tasks.
pub struct World {
    clock: Clock,
    now: Arc<AtomicU64>,
    nodes: Vec<Node>,
    pipes: Vec<Pipe<Datagram>>,
    /// Where the route of each pair stands in `paths`.
    routes: BTreeMap<(NodeId, SocketAddr), usize>,
    paths: Vec<Path>,
    executor: Executor,
    timers: TimerQueue,
    observer: Option<Observer>,
    arrivals: Vec<Packet<Datagram>>,
    buffer: Vec<u8>,
    is_labelling: bool,
    /// Of the datagrams in `buffer`.
    labels: Vec<Labels>,
}

/// The pipes between two endpoints.
struct Path {
    pipes: Vec<PipeId>,
    to: NodeId,
}

/// One flow per pair of endpoints, as a router that hashes addresses and ports would see them.
fn flow_of(from: NodeId, to: NodeId) -> FlowId {
    let half = |node: NodeId| u32::from(u16::try_from(node.0).unwrap_or(u16::MAX));
    FlowId(half(from) << 16 | half(to))
}

fn ecn_of(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn codepoint_of(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

struct Node {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// How much later than asked for this endpoint's timers fire.
    wake_up_delay: Duration,
    /// The driver's deadline as of the last time it was driven; nothing else changes it.
    deadline: Option<Timestamp>,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

impl World {
    /// An empty network at time zero.
    pub fn new() -> Self {
        let now = Arc::new(AtomicU64::new(0));
        Self {
            clock: Clock::new(),
            now: now.clone(),
            nodes: Vec::new(),
            pipes: Vec::new(),
            routes: BTreeMap::new(),
            paths: Vec::new(),
            executor: Executor::default(),
            timers: TimerQueue {
                now,
                sleepers: Arc::default(),
            },
            observer: None,
            arrivals: Vec::new(),
            buffer: Vec::new(),
            is_labelling: false,
            labels: Vec::new(),
        }
    }

    /// Adds an endpoint at `address`. Give the configuration a seed, or runs will not repeat.
    pub fn add_endpoint(
        &mut self,
        address: SocketAddr,
        config: EndpointConfig,
        client: Option<ClientConfig>,
        server: Option<ServerConfig>,
    ) -> Result<(NodeId, Endpoint), ConfigError> {
        let now = self.now.clone();
        let mut driver = Driver::new(
            config,
            client,
            server,
            HostParts {
                clock: self.clock,
                time: Arc::new(move || Timestamp::from_nanos(now.load(Ordering::Relaxed))),
                reference_time: Duration::ZERO,
                local_addr: address,
                may_probe_mtu: true,
            },
        )?;
        if self.is_labelling {
            driver.start_labelling();
        }
        let shared = Shared::new(driver);
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node {
            shared: shared.clone(),
            address,
            wake_up_delay: Duration::ZERO,
            deadline: None,
        });
        Ok((id, Endpoint::new(shared)))
    }

    /// Adds one direction of a link.
    pub fn add_pipe(&mut self, pipe: Pipe<Datagram>) -> PipeId {
        self.pipes.push(pipe);
        PipeId(self.pipes.len() - 1)
    }

    /// Sends everything from `from` to `to` through `pipe`. Several routes may share a pipe.
    pub fn route(&mut self, from: NodeId, to: NodeId, pipe: PipeId) {
        self.route_through(from, to, &[pipe]);
    }

    /// Sends everything from `from` to `to` through these pipes, one after the other. Without any it arrives at the
    /// instant it was sent.
    pub fn route_through(&mut self, from: NodeId, to: NodeId, pipes: &[PipeId]) {
        let address = self.nodes[to.0].address;
        self.routes.insert((from, address), self.paths.len());
        self.paths.push(Path {
            pipes: pipes.to_vec(),
            to,
        });
    }

    /// Labels all that the endpoints send that are added from now on, so that scripted losses can ask for it; see
    /// [`crate::label`].
    pub fn label_packets(&mut self) {
        self.is_labelling = true;
    }

    /// Lets every timer of `node` fire `delay` late, as on a busy machine.
    pub fn set_wake_up_delay(&mut self, node: NodeId, delay: Duration) {
        self.nodes[node.0].wake_up_delay = delay;
    }

    /// Shows every datagram as it leaves an endpoint, before its pipe.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// A pipe's state and counters.
    pub fn pipe(&self, id: PipeId) -> &Pipe<Datagram> {
        &self.pipes[id.0]
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Something that tasks can sleep on and read the time from.
    pub fn timers(&self) -> TimerQueue {
        self.timers.clone()
    }

    /// Something that starts tasks, from within tasks too.
    pub fn spawner(&self) -> Spawner {
        Spawner {
            incoming: self.executor.incoming.clone(),
        }
    }

    /// Starts a task.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner().spawn(Box::pin(task));
    }

    /// Runs until `is_done`, asked between any two instants, or until nothing can happen any more,
    /// or to `limit` at most. Says whether it was `is_done` that ended it.
    pub fn run(&mut self, limit: Timestamp, mut is_done: impl FnMut() -> bool) -> bool {
        loop {
            self.settle();
            if is_done() {
                self.deliver();
                return true;
            }
            let Some(next) = self.next_event().filter(|&next| next <= limit) else {
                // Nothing more within the limit; the pipes' records still end there.
                if limit < Timestamp::MAX {
                    self.set_now(limit);
                    self.deliver();
                }
                return false;
            };
            self.set_now(next.max(self.now()));
            self.deliver();
            self.fire_timers();
        }
    }

    fn set_now(&self, now: Timestamp) {
        self.now.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn next_event(&self) -> Option<Timestamp> {
        let pipes = self.pipes.iter().filter_map(Pipe::next_delivery);
        let nodes = self
            .nodes
            .iter()
            .filter_map(|node| Some(node.deadline? + node.wake_up_delay));
        pipes.chain(nodes).chain(self.timers.next()).min()
    }

    /// Runs tasks and sends datagrams until neither has anything to do at this instant.
    fn settle(&mut self) {
        loop {
            let mut has_worked = self.executor.run();
            for index in 0..self.nodes.len() {
                has_worked |= self.transmit(NodeId(index));
            }
            if !has_worked {
                return;
            }
        }
    }

    fn transmit(&mut self, from: NodeId) -> bool {
        let now = self.now();
        let mut has_sent = false;
        loop {
            let node = &mut self.nodes[from.0];
            if !node.shared.has_work() {
                return has_sent;
            }
            let mut driver = node.shared.lock();
            let transmit = driver.poll_transmit(now, &mut self.buffer);
            let deadline = driver.next_deadline();
            self.labels.clear();
            self.labels.extend_from_slice(driver.labels());
            drop(driver);
            node.deadline = deadline;
            let Some(transmit) = transmit else {
                return has_sent;
            };
            has_sent = true;
            // quinn-proto writes into a `Vec` and reads from a `BytesMut`; the allocation changes hands.
            self.buffer.truncate(transmit.size);
            let burst = Bytes::from(std::mem::take(&mut self.buffer));
            let mut burst = burst.try_into_mut().unwrap_or_else(|kept| (&*kept).into());
            let route = self.routes.get(&(from, transmit.destination)).copied();
            let source = self.nodes[from.0].address;
            let segment = transmit.segment_size.unwrap_or(burst.len()).max(1);
            for number in 0.. {
                if burst.is_empty() {
                    break;
                }
                let data = burst.split_to(segment.min(burst.len()));
                if let Some(observer) = &mut self.observer {
                    observer(now, from, &data);
                }
                let Some(route) = route else {
                    // No route to there: lost, as on a real network.
                    continue;
                };
                let to = self.paths[route].to;
                let size = ByteCount::new(data.len() as u64) + IPV4_UDP_HEADERS;
                let datagram = Datagram {
                    from: source,
                    to,
                    route,
                    hop: 0,
                    data,
                };
                let packet = Packet {
                    flow: flow_of(from, to),
                    ecn: ecn_of(transmit.ecn),
                    labels: self.labels.get(number).copied().unwrap_or_default(),
                    ..Packet::new(size, datagram)
                };
                self.forward(now, packet);
            }
        }
    }

    /// Hands everything that is due to the next pipe of its route, or to its endpoint.
    fn deliver(&mut self) {
        let now = self.now();
        loop {
            let mut arrivals = std::mem::take(&mut self.arrivals);
            for pipe in &mut self.pipes {
                pipe.advance(now, &mut |_, packet| arrivals.push(packet));
            }
            let is_done = arrivals.is_empty();
            for mut packet in arrivals.drain(..) {
                packet.payload.hop += 1;
                self.forward(now, packet);
            }
            self.arrivals = arrivals;
            // A pipe without delay gives back at once what another has just handed to it.
            if is_done {
                return;
            }
        }
    }

    fn forward(&mut self, now: Timestamp, packet: Packet<Datagram>) {
        let path = &self.paths[packet.payload.route];
        if let Some(pipe) = path.pipes.get(packet.payload.hop) {
            self.pipes[pipe.0].arrive(now, packet);
            return;
        }
        let mut datagram = packet.payload;
        if packet.is_corrupt {
            netsim::damage(&mut datagram.data);
        }
        self.nodes[datagram.to.0].shared.lock().handle_datagram(
            now,
            datagram.from,
            None,
            codepoint_of(packet.ecn),
            datagram.data,
        );
    }

    fn fire_timers(&mut self) {
        let now = self.now();
        for node in &mut self.nodes {
            if node
                .deadline
                .is_some_and(|at| at + node.wake_up_delay <= now)
            {
                let mut driver = node.shared.lock();
                driver.handle_timeouts(now);
                let deadline = driver.next_deadline();
                drop(driver);
                node.deadline = deadline;
            }
        }
        self.timers.fire(now);
    }
}

/// A task as the executor keeps it.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks on a [`World`].
#[derive(Clone)]
pub struct Spawner {
    incoming: Arc<Mutex<Vec<Task>>>,
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").finish_non_exhaustive()
    }
}

impl Spawner {
    /// Starts `task`; it first runs when the world next settles.
    pub fn spawn(&self, task: Task) {
        lock(&self.incoming).push(task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A single-threaded executor: woken tasks run in the order in which they were woken.
#[derive(Default)]
struct Executor {
    incoming: Arc<Mutex<Vec<Task>>>,
    tasks: Vec<Option<(Task, Arc<TaskWaker>)>>,
    free: Vec<usize>,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

struct TaskWaker {
    index: usize,
    is_woken: AtomicBool,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::Relaxed) {
            lock(&self.woken).push_back(self.index);
        }
    }
}

impl Executor {
    /// Polls every woken task; says whether there was any.
    fn run(&mut self) -> bool {
        let mut has_worked = false;
        loop {
            self.admit();
            let Some(index) = lock(&self.woken).pop_front() else {
                return has_worked;
            };
            has_worked = true;
            let Some((task, waker)) = self.tasks[index].as_mut() else {
                continue;
            };
            waker.is_woken.store(false, Ordering::Relaxed);
            let task_waker = Waker::from(waker.clone());
            if task
                .as_mut()
                .poll(&mut Context::from_waker(&task_waker))
                .is_ready()
            {
                self.tasks[index] = None;
                self.free.push(index);
            }
        }
    }

    fn admit(&mut self) {
        let incoming = std::mem::take(&mut *lock(&self.incoming));
        for task in incoming {
            let index = self.free.pop().unwrap_or_else(|| {
                self.tasks.push(None);
                self.tasks.len() - 1
            });
            let waker = Arc::new(TaskWaker {
                index,
                is_woken: AtomicBool::new(false),
                woken: self.woken.clone(),
            });
            waker.wake_by_ref();
            self.tasks[index] = Some((task, waker));
        }
    }
}

type Sleepers = BTreeMap<(Timestamp, u64), Waker>;

/// Virtual time for tasks: reads it, sleeps on it.
#[derive(Clone, Debug)]
pub struct TimerQueue {
    now: Arc<AtomicU64>,
    sleepers: Arc<Mutex<(u64, Sleepers)>>,
}

impl TimerQueue {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Completes at `at`.
    pub fn sleep_until(&self, at: Timestamp) -> Sleep {
        Sleep {
            queue: self.clone(),
            at,
            entry: None,
        }
    }

    /// Completes after `span`.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }

    fn next(&self) -> Option<Timestamp> {
        lock(&self.sleepers).1.keys().next().map(|&(at, _)| at)
    }

    fn fire(&self, now: Timestamp) {
        let mut sleepers = lock(&self.sleepers);
        while let Some(entry) = sleepers.1.first_entry() {
            if entry.key().0 > now {
                return;
            }
            entry.remove().wake();
        }
    }
}

/// A pause of a task.
#[derive(Debug)]
pub struct Sleep {
    queue: TimerQueue,
    at: Timestamp,
    entry: Option<(Timestamp, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.queue.now() >= self.at {
            return Poll::Ready(());
        }
        let at = self.at;
        let known = self.entry;
        let key = {
            let mut sleepers = lock(&self.queue.sleepers);
            let key = known.unwrap_or_else(|| {
                sleepers.0 += 1;
                (at, sleepers.0)
            });
            sleepers.1.insert(key, cx.waker().clone());
            key
        };
        self.entry = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.entry {
            lock(&self.queue.sleepers).1.remove(&key);
        }
    }
}
