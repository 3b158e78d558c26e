//! Host 1: an endpoint on a UDP socket, driven by tokio.
//!
//! ```text
//!   socket ──recvmmsg, GRO──> driver ──sendmsg, GSO──> socket
//!                               ^
//!             timer (ns) ───────┴─────── handles wake the task
//! ```
//!
//! One task per endpoint. Datagrams come and go in batches; the lock is taken per batch and never
//! held over a system call. Linux's timerfd wakes the pacer to the microsecond; tokio's own timer
//! counts milliseconds and serves elsewhere.

use std::{
    future::Future,
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{io::Interest, net::UdpSocket as TokioSocket};
use units::Timestamp;

use crate::{
    clock::Clock,
    config::{ClientConfig, EndpointConfig, ServerConfig},
    driver::{Driver, HostParts},
    error::ConfigError,
    handles::{Endpoint, Shared},
};

/// Why an endpoint could not be set up on a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The configuration is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The operating system refused.
    #[error("cannot bind UDP {address}: {}", explain(.source, address))]
    Socket {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

fn explain(error: &io::Error, address: &SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "the port is in use; choose another, or 0 for any free one (asked for {})",
            address.port()
        ),
        io::ErrorKind::PermissionDenied if address.port() < 1024 => {
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has the address".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Binds an endpoint to `address` and starts its task on the current tokio runtime.
///
/// Port 0 takes any free port ([`Endpoint::local_addr`] tells which); `[::]` also receives IPv4
/// where the system allows it.
///
/// # Panics
///
/// Outside a tokio runtime with I/O and time enabled.
pub fn bind(
    address: SocketAddr,
    config: EndpointConfig,
    client: Option<ClientConfig>,
    server: Option<ServerConfig>,
) -> Result<Endpoint, BindError> {
    let is_protected = client.as_ref().is_none_or(ClientConfig::is_protected)
        && server.as_ref().is_none_or(ServerConfig::is_protected);
    if !is_protected {
        return Err(BindError::Config(ConfigError::Unprotected));
    }
    let socket = open(address).map_err(|source| BindError::Socket { address, source })?;
    let host = UdpHost::new(socket, config, client, server).map_err(|error| match error {
        HostError::Config(error) => BindError::Config(error),
        HostError::Io(source) => BindError::Socket { address, source },
    })?;
    let endpoint = Endpoint::new(host.shared.clone());
    tokio::spawn(host);
    Ok(endpoint)
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Not every system lets one socket serve both families; IPv6 alone is then what it is.
        let _ = socket.set_only_v6(false);
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

enum HostError {
    Config(ConfigError),
    Io(io::Error),
}

impl From<io::Error> for HostError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ConfigError> for HostError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// What the kernel should hold while the task is busy: 2 MB is 16 ms at 1 Gbit/s.
const SOCKET_BUFFER_BYTES: usize = 2 << 20;
/// Of the buffers one `recvmmsg` could fill, as many are used.
const RECEIVE_BATCH: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };
/// Datagrams handled before tasks of the same thread get a turn.
const RECEIVE_BUDGET: usize = 8;
/// Bursts sent before datagrams are looked for again.
const SEND_BUDGET: usize = 64;

struct UdpHost {
    shared: Arc<Shared>,
    socket: TokioSocket,
    state: UdpSocketState,
    clock: Clock,
    /// One buffer per message of a batch, each large enough for what GRO may merge.
    receive: Vec<u8>,
    receive_size: usize,
    send: Vec<u8>,
    /// A burst that the socket would not take yet, and how much of it has left.
    waiting: Option<(Transmit, usize)>,
    timer: PrecisionTimer,
    has_warned: bool,
}

impl UdpHost {
    fn new(
        socket: UdpSocket,
        config: EndpointConfig,
        client: Option<ClientConfig>,
        server: Option<ServerConfig>,
    ) -> Result<Self, HostError> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        enlarge_buffers(&socket, &state);
        let local_addr = socket.local_addr()?;
        let socket = TokioSocket::from_std(socket)?;
        let clock = Clock::new();
        let driver = Driver::new(
            config,
            client,
            server,
            HostParts {
                clock,
                time: Arc::new(move || clock.now()),
                reference_time: since_1970(),
                local_addr,
                may_probe_mtu: !state.may_fragment(),
            },
        )?;
        let receive_size = (65_536).max(1_500 * state.gro_segments());
        Ok(Self {
            shared: Shared::new(driver),
            socket,
            clock,
            receive: vec![0; receive_size * RECEIVE_BATCH],
            receive_size,
            state,
            send: Vec::new(),
            waiting: None,
            timer: PrecisionTimer::new()?,
            has_warned: false,
        })
    }

    /// Takes in what the socket has, up to the budget; says whether there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        for _ in 0..RECEIVE_BUDGET {
            if self.socket.poll_recv_ready(cx)?.is_pending() {
                return Ok(false);
            }
            let mut metas = [RecvMeta::default(); RECEIVE_BATCH];
            let state = &self.state;
            let socket = &self.socket;
            let buffers = &mut self.receive;
            let size = self.receive_size;
            let received = self.socket.try_io(Interest::READABLE, || {
                let mut parts = buffers.chunks_mut(size);
                let mut slices: [IoSliceMut<'_>; RECEIVE_BATCH] =
                    std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
                state.recv(UdpSockRef::from(socket), &mut slices, &mut metas)
            });
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // An ICMP answer to something sent earlier; the peer's silence will tell.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            let now = self.clock.now();
            let mut driver = self.shared.lock();
            for (meta, buffer) in metas.iter().zip(self.receive.chunks(size)).take(count) {
                let mut data = BytesMut::from(&buffer[..meta.len.min(size)]);
                let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
                while !data.is_empty() {
                    let length = meta.stride.clamp(1, data.len());
                    driver.handle_datagram(now, meta.addr, meta.dst_ip, ecn, data.split_to(length));
                }
            }
        }
        Ok(true)
    }

    /// Sends what may leave now, up to the budget; says whether there may be more.
    fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..SEND_BUDGET {
            let (transmit, done) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => {
                    let now = self.clock.now();
                    let mut driver = self.shared.lock();
                    if !driver.has_work() {
                        return false;
                    }
                    match driver.poll_transmit(now, &mut self.send) {
                        Some(transmit) => (transmit, 0),
                        None => return false,
                    }
                }
            };
            if let Some(waiting) = self.send_burst(cx, transmit, done) {
                self.waiting = Some(waiting);
                return false;
            }
        }
        true
    }

    /// Sends a burst from byte `done` on; what the socket does not take comes back, and the task
    /// wakes when it is writable again.
    fn send_burst(
        &mut self,
        cx: &mut Context<'_>,
        transmit: Transmit,
        mut done: usize,
    ) -> Option<(Transmit, usize)> {
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        while done < transmit.size {
            let most = self.state.max_gso_segments().max(1) * segment;
            let end = transmit.size.min(done + most);
            let datagram = quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: transmit
                    .ecn
                    .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                contents: &self.send[done..end],
                segment_size: (end - done > segment).then_some(segment),
                src_ip: transmit.src_ip,
            };
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state
                    .try_send(UdpSockRef::from(&self.socket), &datagram)
            });
            match sent {
                Ok(()) => done = end,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.socket.poll_send_ready(cx) {
                        Poll::Pending => return Some((transmit, done)),
                        Poll::Ready(_) => continue,
                    }
                }
                Err(error) => {
                    // quinn-udp has given up segmentation offload by now if that was the cause;
                    // for the rest a lost datagram is a lost datagram.
                    if !self.has_warned {
                        self.has_warned = true;
                        tracing::warn!(%error, to = %transmit.destination, "a datagram was not sent");
                    }
                    done = end;
                }
            }
        }
        None
    }
}

impl Future for UdpHost {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        {
            let mut driver = this.shared.lock();
            driver.set_host_waker(cx.waker());
            if driver.handle_count == 0 && driver.conns.is_empty() && !driver.has_work() {
                return Poll::Ready(());
            }
        }
        let may_receive = match this.receive(cx) {
            Ok(more) => more,
            Err(error) => {
                tracing::error!(%error, "the socket failed; the endpoint ends");
                this.shared.lock().close(0, b"");
                return Poll::Ready(());
            }
        };
        let now = this.clock.now();
        {
            let mut driver = this.shared.lock();
            if driver.next_deadline().is_some_and(|at| at <= now) {
                driver.handle_timeouts(now);
            }
        }
        let may_send = this.transmit(cx);
        if may_receive || may_send {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut driver = this.shared.lock();
        // The waker may have been used up while this poll was running.
        driver.set_host_waker(cx.waker());
        if driver.handle_count == 0 && driver.conns.is_empty() && !driver.has_work() {
            return Poll::Ready(());
        }
        let deadline = driver.next_deadline();
        drop(driver);
        if let Some(deadline) = deadline
            && this.timer.poll_until(cx, this.clock, deadline).is_ready()
        {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

fn enlarge_buffers(socket: &UdpSocket, state: &UdpSocketState) {
    // Refused or capped requests show in what is read back.
    let _ = state.set_send_buffer_size(socket.into(), SOCKET_BUFFER_BYTES);
    let _ = state.set_recv_buffer_size(socket.into(), SOCKET_BUFFER_BYTES);
    let send = state.send_buffer_size(socket.into()).unwrap_or(0);
    let receive = state.recv_buffer_size(socket.into()).unwrap_or(0);
    if send < SOCKET_BUFFER_BYTES || receive < SOCKET_BUFFER_BYTES {
        tracing::warn!(
            send,
            receive,
            wanted = SOCKET_BUFFER_BYTES,
            "small UDP buffers: raise net.core.rmem_max and net.core.wmem_max to avoid drops"
        );
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the real host's reading of the calendar, for the log's reference time"
)]
fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
}

#[cfg(target_os = "linux")]
use linux::PrecisionTimer;
#[cfg(not(target_os = "linux"))]
use other::PrecisionTimer;

#[cfg(target_os = "linux")]
mod linux {
    //! A timer to the nanosecond, as a file descriptor (timerfd_create(2)).

    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use super::{Clock, Context, Duration, Poll, Timestamp, io};

    pub(super) struct PrecisionTimer {
        fd: AsyncFd<OwnedFd>,
        armed: Option<Timestamp>,
    }

    impl PrecisionTimer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            #[expect(
                deprecated,
                reason = "its replacement is unsafe for types that could close the descriptor early; an OwnedFd cannot"
            )]
            let fd = AsyncFd::new(fd)?;
            Ok(Self { fd, armed: None })
        }

        /// Ready at or after `deadline`; otherwise the task is woken then. A wake-up that was asked
        /// for earlier is left to come: one spare look costs less than setting the timer anew.
        pub(super) fn poll_until(
            &mut self,
            cx: &mut Context<'_>,
            clock: Clock,
            deadline: Timestamp,
        ) -> Poll<()> {
            let now = clock.now();
            if deadline <= now {
                return Poll::Ready(());
            }
            if self.armed.is_none_or(|at| at <= now || at > deadline) {
                let span = deadline.saturating_since(now);
                if self.arm(span).is_err() {
                    return Poll::Ready(());
                }
                self.armed = Some(deadline);
            }
            while let Poll::Ready(ready) = self.fd.poll_read_ready(cx) {
                let Ok(mut ready) = ready else {
                    return Poll::Ready(());
                };
                let mut count = [0; 8];
                match rustix::io::read(self.fd.get_ref(), &mut count) {
                    Ok(_) => {
                        self.armed = None;
                        return Poll::Ready(());
                    }
                    Err(_) => ready.clear_ready(),
                }
            }
            Poll::Pending
        }

        fn arm(&self, span: Duration) -> io::Result<()> {
            let value = Timespec {
                tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: span.subsec_nanos().max(1).into(),
            };
            let zero = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            timerfd_settime(
                self.fd.get_ref(),
                TimerfdTimerFlags::empty(),
                &Itimerspec {
                    it_interval: zero,
                    it_value: value,
                },
            )?;
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    //! tokio's timer: a millisecond late at worst, which the pacer's catch-up makes up for.

    use tokio::time::{Sleep, sleep};

    use super::{Clock, Context, Future, Pin, Poll, Timestamp, io};

    pub(super) struct PrecisionTimer(Option<Pin<Box<Sleep>>>);

    impl PrecisionTimer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(None))
        }

        pub(super) fn poll_until(
            &mut self,
            cx: &mut Context<'_>,
            clock: Clock,
            deadline: Timestamp,
        ) -> Poll<()> {
            let now = clock.now();
            if deadline <= now {
                return Poll::Ready(());
            }
            let sleep = self
                .0
                .insert(Box::pin(sleep(deadline.saturating_since(now))));
            sleep.as_mut().poll(cx)
        }
    }
}
