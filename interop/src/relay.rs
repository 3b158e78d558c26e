//! A UDP relay on this machine that plays a link: netsim's pipes under the real clock.
//!
//! ```text
//!   client  <-- socket A -->  [ reverse pipe --> ]  <-- socket B -->  server
//!                             [ <-- forward pipe ]
//! ```
//!
//! One thread owns both sockets and both pipes: it sleeps in `ppoll` until a datagram arrives or the
//! pipes have something due, with the precision of the kernel's timers (about 0.05 ms). Every
//! datagram weighs its payload plus 28 bytes, the IPv4 and UDP headers, whatever the address family.
//!
//! Nothing is lost in silence: what the kernel dropped, what could not be sent and what came from
//! strangers is counted in the report. ECN marks are not carried over.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netsim::{ConfigError, DelayHistogram, Packet, Pipe, RandomStreams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};
use units::{ByteCount, Timestamp};

use crate::record::LinkEnding;
use crate::results::RealTiming;
use crate::scenario::{DirectionPlan, HEADERS};

/// What the sockets ask the kernel for; at 100 Mbit/s it covers a third of a second.
const SOCKET_BUFFER: usize = 4 << 20;
/// The relay looks at least this often whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(10);
/// Datagrams taken from one socket before the pipes get their turn.
const BATCH: usize = 32;
/// The largest UDP payload there is.
const LARGEST_DATAGRAM: usize = 65_535;

/// What a relay stands between, and what it plays.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where the server listens.
    pub server: SocketAddr,
    /// Server to client.
    pub forward: DirectionPlan,
    /// Client to server.
    pub reverse: DirectionPlan,
    /// The seed of the random draws, the same ones as in virtual time.
    pub seed: u64,
    /// The instant that counts as the beginning of the run: phases are counted from it.
    pub began_at: Instant,
}

/// A running relay.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shall_stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<RelayReport, RelayError>>>,
}

/// What a relay did.
#[derive(Debug, Clone)]
pub struct RelayReport {
    /// The forward pipe.
    pub forward: LinkEnding,
    /// The reverse pipe.
    pub reverse: LinkEnding,
    /// How late packets left, and what the kernel dropped.
    pub timing: RealTiming,
    /// Datagrams that could not be sent on: the other side refused them, or its buffer stayed full.
    pub unsent_packets: u64,
    /// Datagrams from an address that is neither the server nor the first client.
    pub stray_packets: u64,
    /// The receive buffer that the kernel granted, the smaller of the two sockets.
    pub receive_buffer_bytes: u64,
}

/// Why a relay does not run.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A socket operation failed.
    #[error("relay: cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A pipe refused its settings.
    #[error("relay: {0}")]
    Config(#[from] ConfigError),
    /// The thread of the relay broke down.
    #[error("relay: its thread broke down (this is a bug)")]
    Panic,
}

impl Relay {
    /// Opens the sockets and starts the thread.
    ///
    /// # Errors
    /// A socket cannot be opened, or a pipe refuses its settings.
    pub fn start(config: &RelayConfig) -> Result<Self, RelayError> {
        let mut worker = Worker::new(config)?;
        let address = local_address(&worker.client_side.socket)?;
        let shall_stop = Arc::clone(&worker.shall_stop);
        let thread = thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || worker.run())
            .map_err(|source| RelayError::Io {
                what: "start a thread",
                source,
            })?;
        Ok(Self {
            address,
            shall_stop,
            thread: Some(thread),
        })
    }

    /// Where the client shall connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the relay within a few milliseconds; what is inside the pipes then stays there.
    ///
    /// # Errors
    /// What broke the relay while it ran.
    pub fn stop(mut self) -> Result<RelayReport, RelayError> {
        self.shall_stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            Some(Err(_)) | None => Err(RelayError::Panic),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shall_stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Whoever drops a relay does not want its report.
            let _ = thread.join();
        }
    }
}

/// The real clock, counted from the beginning of the run.
#[derive(Debug, Clone, Copy)]
struct Clock {
    began_at: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a relay of real datagrams lives in real time; nothing else here reads the clock"
    )]
    fn now(self) -> Timestamp {
        Timestamp::ZERO + Instant::now().saturating_duration_since(self.began_at)
    }
}

/// A socket and where it sends.
struct Side {
    socket: UdpSocket,
    /// The client once it has spoken; the server's socket is connected instead.
    peer: Option<SocketAddr>,
    receive_buffer: u64,
}

impl Side {
    /// Sends one datagram, waiting for room in the kernel's buffer if there is none.
    fn send(&self, datagram: &[u8]) -> bool {
        loop {
            let sent = match self.peer {
                Some(peer) => self.socket.send_to(datagram, peer),
                None => self.socket.send(datagram),
            };
            match sent {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut ends = [PollFd::new(&self.socket, PollFlags::OUT)];
                    match poll(&mut ends, Some(&timespec(STOP_CHECK))) {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => return false,
                    }
                }
                Err(_) => return false,
            }
        }
    }
}

/// Everything the thread owns.
struct Worker {
    clock: Clock,
    server: SocketAddr,
    client_side: Side,
    server_side: Side,
    forward: Pipe<Vec<u8>>,
    reverse: Pipe<Vec<u8>>,
    outlet: Outlet,
    scratch: Vec<u8>,
    stray_packets: u64,
    shall_stop: Arc<AtomicBool>,
}

/// What happens to packets that come out of a pipe.
struct Outlet {
    clock: Clock,
    lateness: DelayHistogram,
    unsent_packets: u64,
    /// Empty buffers to use again.
    spare: Vec<Vec<u8>>,
}

impl Outlet {
    fn send(&mut self, due_at: Timestamp, mut packet: Packet<Vec<u8>>, side: &Side) {
        if packet.is_corrupt {
            netsim::damage(&mut packet.payload);
        }
        if !side.send(&packet.payload) {
            self.unsent_packets += 1;
        }
        self.lateness
            .record(self.clock.now().saturating_since(due_at));
        self.spare.push(packet.payload);
    }
}

impl Worker {
    fn new(config: &RelayConfig) -> Result<Self, RelayError> {
        let streams = RandomStreams::new(config.seed);
        let clock = Clock {
            began_at: config.began_at,
        };
        let client_side = open(config.server)?;
        let server_side = open(config.server)?;
        server_side
            .socket
            .connect(config.server)
            .map_err(|source| RelayError::Io {
                what: "connect to the server's address",
                source,
            })?;
        Ok(Self {
            clock,
            server: config.server,
            client_side,
            server_side,
            forward: config.forward.pipe(&streams, "forward")?,
            reverse: config.reverse.pipe(&streams, "reverse")?,
            outlet: Outlet {
                clock,
                lateness: DelayHistogram::new(),
                unsent_packets: 0,
                spare: Vec::new(),
            },
            scratch: vec![0; LARGEST_DATAGRAM],
            stray_packets: 0,
            shall_stop: Arc::new(AtomicBool::new(false)),
        })
    }

    fn run(&mut self) -> Result<RelayReport, RelayError> {
        loop {
            self.advance(self.clock.now());
            if self.shall_stop.load(Ordering::Relaxed) {
                return Ok(self.report());
            }
            let (from_client, from_server) = self.wait()?;
            if from_client {
                self.take_from_client()?;
            }
            if from_server {
                self.take_from_server()?;
            }
        }
    }

    fn advance(&mut self, now: Timestamp) {
        let Self {
            client_side,
            server_side,
            forward,
            reverse,
            outlet,
            ..
        } = self;
        forward.advance(now, &mut |due_at, packet| {
            outlet.send(due_at, packet, client_side);
        });
        reverse.advance(now, &mut |due_at, packet| {
            outlet.send(due_at, packet, server_side);
        });
    }

    /// Sleeps until a datagram is there, something is due, or it is time to look for the stop.
    fn wait(&self) -> Result<(bool, bool), RelayError> {
        let due_at = [self.forward.next_event(), self.reverse.next_event()]
            .into_iter()
            .flatten()
            .min();
        let patience = due_at.map_or(STOP_CHECK, |due_at| {
            due_at.saturating_since(self.clock.now()).min(STOP_CHECK)
        });
        let mut ends = [
            PollFd::new(&self.client_side.socket, PollFlags::IN),
            PollFd::new(&self.server_side.socket, PollFlags::IN),
        ];
        match poll(&mut ends, Some(&timespec(patience))) {
            // An error state is readable too: reading is what clears it.
            Ok(_) => Ok((!ends[0].revents().is_empty(), !ends[1].revents().is_empty())),
            Err(rustix::io::Errno::INTR) => Ok((false, false)),
            Err(error) => Err(RelayError::Io {
                what: "wait for datagrams",
                source: error.into(),
            }),
        }
    }

    fn take_from_client(&mut self) -> Result<(), RelayError> {
        for _ in 0..BATCH {
            let Some((length, source)) =
                receive(self.client_side.socket.recv_from(&mut self.scratch))?
            else {
                break;
            };
            let client = *self.client_side.peer.get_or_insert(source);
            if source != client {
                self.stray_packets += 1;
                continue;
            }
            let now = self.clock.now();
            self.advance(now);
            let packet = self.packet(length);
            self.reverse.arrive(now, packet);
        }
        Ok(())
    }

    fn take_from_server(&mut self) -> Result<(), RelayError> {
        for _ in 0..BATCH {
            let Some((length, _)) = receive(
                self.server_side
                    .socket
                    .recv(&mut self.scratch)
                    .map(|length| (length, self.server)),
            )?
            else {
                break;
            };
            // A server that speaks before any client has is not answering anybody.
            if self.client_side.peer.is_none() {
                self.stray_packets += 1;
                continue;
            }
            let now = self.clock.now();
            self.advance(now);
            let packet = self.packet(length);
            self.forward.arrive(now, packet);
        }
        Ok(())
    }

    fn packet(&mut self, length: usize) -> Packet<Vec<u8>> {
        let mut payload = self.outlet.spare.pop().unwrap_or_default();
        payload.clear();
        payload.extend_from_slice(&self.scratch[..length]);
        let bytes = u64::try_from(length).unwrap_or(u64::MAX);
        Packet::new(ByteCount::new(bytes) + HEADERS, payload)
    }

    fn report(&self) -> RelayReport {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let lateness = &self.outlet.lateness;
        let dropped = [&self.client_side.socket, &self.server_side.socket]
            .into_iter()
            .map(kernel_drops)
            .sum();
        RelayReport {
            forward: LinkEnding::of(&self.forward),
            reverse: LinkEnding::of(&self.reverse),
            timing: RealTiming {
                lateness_p99_ns: lateness.percentile(990).map_or(0, nanos),
                lateness_max_ns: nanos(lateness.max()),
                kernel_dropped_packets: dropped,
            },
            unsent_packets: self.outlet.unsent_packets,
            stray_packets: self.stray_packets,
            receive_buffer_bytes: self
                .client_side
                .receive_buffer
                .min(self.server_side.receive_buffer),
        }
    }
}

/// A datagram, or `None` when there is none. Refusals of earlier datagrams are reported by reading;
/// they are news about the peer, not about the relay.
fn receive(
    result: io::Result<(usize, SocketAddr)>,
) -> Result<Option<(usize, SocketAddr)>, RelayError> {
    match result {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset => Ok(None),
            _ => Err(RelayError::Io {
                what: "receive",
                source: error,
            }),
        },
    }
}

/// A non-blocking socket on a free port of the loopback address that can reach `server`.
fn open(server: SocketAddr) -> Result<Side, RelayError> {
    let step = |what| move |source| RelayError::Io { what, source };
    let local = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
    };
    let socket = Socket::new(
        Domain::for_address(server),
        Type::DGRAM,
        Some(Protocol::UDP),
    )
    .map_err(step("open a socket"))?;
    // The kernel may grant less; the report says how much it was.
    socket
        .set_recv_buffer_size(SOCKET_BUFFER)
        .map_err(step("enlarge the receive buffer"))?;
    socket
        .set_send_buffer_size(SOCKET_BUFFER)
        .map_err(step("enlarge the send buffer"))?;
    let receive_buffer = socket
        .recv_buffer_size()
        .map_err(step("read the size of the receive buffer"))?;
    socket
        .bind(&local.into())
        .map_err(step("bind to the loopback address"))?;
    socket
        .set_nonblocking(true)
        .map_err(step("make a socket non-blocking"))?;
    Ok(Side {
        socket: socket.into(),
        peer: None,
        receive_buffer: u64::try_from(receive_buffer).unwrap_or(u64::MAX),
    })
}

fn local_address(socket: &UdpSocket) -> Result<SocketAddr, RelayError> {
    socket.local_addr().map_err(|source| RelayError::Io {
        what: "read the address of a socket",
        source,
    })
}

/// Datagrams the kernel threw away because the receive buffer was full, where Linux tells: the last
/// column of /proc/net/udp, on the line of the local port.
fn kernel_drops(socket: &UdpSocket) -> Option<u64> {
    let address = socket.local_addr().ok()?;
    let table = match address {
        SocketAddr::V4(_) => "/proc/net/udp",
        SocketAddr::V6(_) => "/proc/net/udp6",
    };
    drops_in(&fs::read_to_string(table).ok()?, address.port())
}

fn drops_in(table: &str, port: u16) -> Option<u64> {
    let port = format!(":{port:04X}");
    let line = table.lines().find(|line| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|address| address.ends_with(&port))
    })?;
    line.split_whitespace().last()?.parse().ok()
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::drops_in;

    #[test]
    fn drops_are_the_last_column_of_the_line_with_the_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
             12: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 21 2 0 7\n\
             13: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 22 2 0 41\n";
        assert_eq!(drops_in(table, 8080), Some(41));
        assert_eq!(drops_in(table, 53), Some(7));
        assert_eq!(drops_in(table, 54), None);
    }
}
