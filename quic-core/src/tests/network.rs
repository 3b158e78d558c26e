//! Two drivers on a network that loses, reorders and duplicates, in virtual time, and tasks that are
//! polled only when woken: a waker that gets lost shows as a run that does not end.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use bytes::BytesMut;
use netsim::{EventHeap, RandomStream, RandomStreams};
use quinn_proto::EcnCodepoint;
use units::{Fraction, Timestamp};

use super::{Faults, tls_pair};
use crate::{
    clock::Clock,
    config::EndpointConfig,
    conn::Conn,
    driver::{Driver, HostParts},
    handles::{Connection, Endpoint, Shared},
};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

type Task = Pin<Box<dyn Future<Output = ()>>>;

pub(super) struct Net {
    now: Arc<AtomicU64>,
    pub(super) drivers: [Arc<Shared>; 2],
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    wire: EventHeap<Letter>,
    pub(super) faults: Faults,
    /// What the server sends arrives.
    pub(super) spares_server: bool,
    /// Every other one of that many full datagrams of the server is lost.
    pub(super) holes: u64,
    chance: RandomStream,
    tasks: Vec<(Task, Arc<Flag>)>,
    /// Larger datagrams are dropped.
    pub(super) path_mtu: usize,
    /// Marks each ECN-capable datagram with this chance (RFC 3168 section 5).
    pub(super) marking: Fraction,
    /// What the server sees the client come from; changes as a NAT changes its mind.
    pub(super) client_port: u16,
    buffer: Vec<u8>,
}

struct Letter {
    to: usize,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Net {
    pub(super) fn new(
        seed: u64,
        faults: Faults,
        client: EndpointConfig,
        server: EndpointConfig,
    ) -> Self {
        let (server_tls, client_tls) = tls_pair();
        let now = Arc::new(AtomicU64::new(0));
        let clock = Clock::new();
        let host = |side| {
            let now = now.clone();
            HostParts {
                clock,
                time: Arc::new(move || Timestamp::from_nanos(now.load(Ordering::Relaxed))),
                reference_time: Duration::ZERO,
                local_addr: address(side),
                may_probe_mtu: true,
            }
        };
        let client = Driver::new(client, Some(client_tls), None, host(CLIENT));
        let server = Driver::new(server, None, Some(server_tls), host(SERVER));
        let drivers = [
            Shared::new(client.expect("a valid configuration")),
            Shared::new(server.expect("a valid configuration")),
        ];
        Self {
            now,
            client: Endpoint::new(drivers[CLIENT].clone()),
            server: Endpoint::new(drivers[SERVER].clone()),
            drivers,
            wire: EventHeap::new(),
            faults,
            spares_server: false,
            holes: 0,
            chance: RandomStreams::new(seed).stream("network"),
            tasks: Vec::new(),
            path_mtu: usize::MAX,
            marking: Fraction::ZERO,
            client_port: PORT,
            buffer: Vec::new(),
        }
    }

    pub(super) fn connect(&self) -> Connection {
        self.client
            .connect(address(SERVER), "localhost")
            .expect("a connection")
    }

    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        let flag = Arc::new(Flag::default());
        flag.0.store(true, Ordering::Relaxed);
        self.tasks.push((Box::pin(task), flag));
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Looks at the connections of one side.
    pub(super) fn each<R>(&self, side: usize, mut f: impl FnMut(&mut Conn) -> R) -> Vec<R> {
        let mut driver = self.drivers[side].lock();
        driver.conns.iter_mut().map(|(_, conn)| f(conn)).collect()
    }

    /// Whether every task has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Runs until every task has ended (`true`), or to `limit`.
    pub(super) fn run(&mut self, limit: Timestamp) -> bool {
        self.run_until(limit, Self::is_idle)
    }

    /// Runs for `span`, whatever the tasks do.
    pub(super) fn pass(&mut self, span: Duration) {
        let limit = self.now() + span;
        self.run_until(limit, |_| false);
    }

    pub(super) fn run_until(
        &mut self,
        limit: Timestamp,
        mut is_done: impl FnMut(&Self) -> bool,
    ) -> bool {
        loop {
            self.settle();
            if is_done(self) {
                return true;
            }
            let deadlines = self
                .drivers
                .iter()
                .filter_map(|driver| driver.lock().next_deadline());
            let next = deadlines.chain(self.wire.peek_time()).min();
            let next = next.filter(|&next| next <= limit);
            let now = next.unwrap_or(limit).max(self.now());
            self.now.store(now.as_nanos(), Ordering::Relaxed);
            if next.is_none() {
                return false;
            }
            while let Some((_, letter)) = self.wire.pop_due(now) {
                let mut from = address(1 - letter.to);
                if letter.to == SERVER {
                    from.set_port(self.client_port);
                }
                self.drivers[letter.to].lock().handle_datagram(
                    now,
                    from,
                    None,
                    letter.ecn,
                    letter.data,
                );
            }
            for driver in &self.drivers {
                driver.lock().handle_timeouts(now);
            }
        }
    }

    /// Polls woken tasks and lets datagrams leave until neither has anything to do.
    fn settle(&mut self) {
        loop {
            let mut has_worked = false;
            self.tasks.retain_mut(|(task, flag)| {
                if !flag.0.swap(false, Ordering::Relaxed) {
                    return true;
                }
                has_worked = true;
                let waker = Waker::from(flag.clone());
                task.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            });
            for side in [CLIENT, SERVER] {
                while self.transmit(side) {
                    has_worked = true;
                }
            }
            if !has_worked {
                return;
            }
        }
    }

    fn transmit(&mut self, from: usize) -> bool {
        let now = self.now();
        let transmit = self.drivers[from]
            .lock()
            .poll_transmit(now, &mut self.buffer);
        let Some(transmit) = transmit else {
            return false;
        };
        if from == SERVER && transmit.destination.port() != self.client_port {
            // To an address that the NAT has given up.
            return true;
        }
        let size = transmit.segment_size.unwrap_or(transmit.size);
        for datagram in self.buffer[..transmit.size].chunks(size) {
            if datagram.len() > self.path_mtu {
                continue;
            }
            if from == SERVER && self.holes > 0 && datagram.len() > 1_000 {
                self.holes -= 1;
                if self.holes.is_multiple_of(2) {
                    continue;
                }
            }
            let faults = if self.spares_server && from == SERVER {
                Faults::NONE
            } else {
                self.faults
            };
            for delay in faults.fates(&mut self.chance) {
                let letter = Letter {
                    to: 1 - from,
                    ecn: match transmit.ecn {
                        Some(_) if self.chance.chance(self.marking) => Some(EcnCodepoint::Ce),
                        unmarked => unmarked,
                    },
                    data: BytesMut::from(datagram),
                };
                self.wire.push(now + delay, letter);
            }
        }
        true
    }
}

fn address(side: usize) -> SocketAddr {
    let host = if side == CLIENT { 2 } else { 1 };
    SocketAddr::from(([10, 0, 0, host], PORT))
}

const PORT: u16 = 443;
