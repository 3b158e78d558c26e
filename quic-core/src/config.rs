//! How an endpoint is set up.

use std::{fmt, sync::Arc, time::Duration};

use cc::Algorithm;
use qlogs::TraceHeader;
use quinn_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};
use units::ByteCount;

use crate::{
    error::ConfigError,
    log::LogSink,
    observer::ObserverFactory,
    tap::{ControllerShim, TappedClient, TappedServer},
    unprotected,
};

/// What the round-trip time is taken for before it is measured.
///
/// Deviation: RFC 9002 section 6.2.2 recommends 333 ms, which makes the first probe timeout 1 s. If
/// that timeout strikes, the first RTT sample is a second too long and the next timeouts are several
/// seconds. 100 ms is what several widely deployed stacks use; on longer paths it costs two spare
/// probes in the handshake. Measured in docs/findings.md, "The handshake decides the tail".
pub const DEFAULT_INITIAL_RTT: Duration = Duration::from_millis(100);

/// Opens the log of a connection about to begin, or declines it with `None`.
pub type LogFactory = Arc<dyn Fn(&TraceHeader) -> Option<LogSink> + Send + Sync>;

/// How the connections of an endpoint behave, and where randomness comes from.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The congestion controller of every connection's sending side.
    pub algorithm: Algorithm,
    /// Largest UDP payload sent from the start, 1200 to 65 527 bytes (RFC 9000 section 14.1). Every
    /// path must carry it: larger ones are probed for, smaller ones are not.
    pub datagram_size: ByteCount,
    /// Whether larger datagrams are probed for (RFC 9000 section 14.3), up to 1452 bytes.
    pub has_mtu_discovery: bool,
    /// Flow-control window of each stream this endpoint receives (RFC 9000 section 4).
    pub stream_receive_window: ByteCount,
    /// Flow-control window of a connection this endpoint receives on.
    pub receive_window: ByteCount,
    /// Most bytes that may be unacknowledged on a connection, whatever the congestion window says.
    pub send_window: ByteCount,
    /// Most bytes per stream that the application may hand over ahead of the gate.
    pub send_buffer: ByteCount,
    /// Most concurrent bidirectional streams that the peer may open.
    pub max_bidi_streams: u32,
    /// Most concurrent unidirectional streams that the peer may open; HTTP/3 needs three.
    pub max_uni_streams: u32,
    /// A connection ends when nothing is heard for this long; `None` for never.
    pub idle_timeout: Option<Duration>,
    /// What the round-trip time is taken for before it is measured; above 0. Three times as much
    /// passes before the first probe of the handshake.
    pub initial_rtt: Duration,
    /// Pings keep the connection alive at this interval, if one is set.
    pub keep_alive: Option<Duration>,
    /// A seed that repeats packet-number skips, connection ids and every other choice; `None` takes
    /// them from the operating system.
    pub seed: Option<u64>,
    /// Opens a log per connection.
    pub log: Option<LogFactory>,
    /// Observes the sending side of every connection.
    pub observer: Option<ObserverFactory>,
    /// Shown in the logs, after the controller's name.
    pub log_title: String,
}

impl Default for EndpointConfig {
    /// CUBIC, 1200-byte datagrams with discovery, windows for about 1 Gbit/s at 100 ms.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::CUBIC,
            datagram_size: ByteCount::new(1200),
            has_mtu_discovery: true,
            stream_receive_window: ByteCount::mib(8),
            receive_window: ByteCount::mib(16),
            send_window: ByteCount::mib(16),
            send_buffer: ByteCount::kib(256),
            max_bidi_streams: 100,
            max_uni_streams: 8,
            idle_timeout: Some(Duration::from_secs(30)),
            initial_rtt: DEFAULT_INITIAL_RTT,
            keep_alive: None,
            seed: None,
            log: None,
            observer: None,
            log_title: String::new(),
        }
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("algorithm", &self.algorithm)
            .field("datagram_size", &self.datagram_size)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl EndpointConfig {
    /// What quinn-proto is told. Its loss detection keeps RFC 9002's thresholds; its controller is
    /// the tap's shim, and with it its pacer is out of use.
    pub(crate) fn transport(&self) -> Result<Arc<TransportConfig>, ConfigError> {
        let mut transport = TransportConfig::default();
        let datagram = u16::try_from(self.datagram_size.as_u64())
            .ok()
            .filter(|&size| (1200..=65_527).contains(&size))
            .ok_or(ConfigError::OutOfRange {
                name: "datagram size",
                value: self.datagram_size.as_u64(),
                allowed: "1200 B to 65527 B",
            })?;
        let idle = match self.idle_timeout {
            Some(timeout) => Some(timeout.try_into().map_err(|_| ConfigError::OutOfRange {
                name: "idle timeout in ms",
                value: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                allowed: "0 to 2^62 - 1",
            })?),
            None => None,
        };
        transport
            .initial_mtu(datagram)
            .min_mtu(datagram)
            .mtu_discovery_config(self.has_mtu_discovery.then(MtuDiscoveryConfig::default))
            .stream_receive_window(window("stream receive window", self.stream_receive_window)?)
            .receive_window(window("receive window", self.receive_window)?)
            .send_window(self.send_window.as_u64())
            .max_concurrent_bidi_streams(self.max_bidi_streams.into())
            .max_concurrent_uni_streams(self.max_uni_streams.into())
            .max_idle_timeout(idle)
            .keep_alive_interval(self.keep_alive)
            .initial_rtt(self.initial_rtt)
            .datagram_receive_buffer_size(None)
            .congestion_controller_factory(Arc::new(ControllerShim));
        Ok(Arc::new(transport))
    }
}

fn window(name: &'static str, value: ByteCount) -> Result<VarInt, ConfigError> {
    VarInt::from_u64(value.as_u64()).map_err(|_| ConfigError::OutOfRange {
        name,
        value: value.as_u64(),
        allowed: "0 B to 2^62 - 1 B",
    })
}

/// The TLS side of an endpoint that accepts connections.
#[derive(Clone)]
pub struct ServerConfig {
    pub(crate) crypto: Arc<TappedServer>,
    is_protected: bool,
}

impl ServerConfig {
    /// From a rustls configuration; TLS 1.3 and ALPN are the caller's to set ([`crate::tls`]).
    pub fn new(tls: Arc<rustls::ServerConfig>) -> Result<Self, ConfigError> {
        let crypto = quinn_proto::crypto::rustls::QuicServerConfig::try_from(tls)
            .map_err(|_| ConfigError::NoInitialSuite)?;
        Ok(Self {
            crypto: Arc::new(TappedServer(Arc::new(crypto))),
            is_protected: true,
        })
    }

    /// Without cryptography, offering `alpn`: packets of the same sizes at the same instants as with TLS, for an eighth
    /// less processor time. For [`crate::virt`] only, and only if both ends do so; a UDP host refuses it
    /// ([`ConfigError::Unprotected`]).
    pub fn unprotected(alpn: &[&[u8]]) -> Self {
        let alpn = alpn.iter().map(|name| name.to_vec()).collect();
        Self {
            crypto: Arc::new(TappedServer(Arc::new(unprotected::Server { alpn }))),
            is_protected: false,
        }
    }

    /// Whether its sessions use cryptography.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.is_protected
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig").finish_non_exhaustive()
    }
}

/// The TLS side of an endpoint that opens connections.
#[derive(Clone)]
pub struct ClientConfig {
    pub(crate) crypto: Arc<TappedClient>,
    is_protected: bool,
}

impl ClientConfig {
    /// From a rustls configuration; TLS 1.3 and ALPN are the caller's to set ([`crate::tls`]).
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Result<Self, ConfigError> {
        let crypto = quinn_proto::crypto::rustls::QuicClientConfig::try_from(tls)
            .map_err(|_| ConfigError::NoInitialSuite)?;
        Ok(Self {
            crypto: Arc::new(TappedClient(Arc::new(crypto))),
            is_protected: true,
        })
    }

    /// Without cryptography, asking for one of `alpn`: packets of the same sizes at the same instants as with TLS, for an eighth
    /// less processor time. For [`crate::virt`] only, and only if both ends do so; a UDP host refuses it
    /// ([`ConfigError::Unprotected`]).
    pub fn unprotected(alpn: &[&[u8]]) -> Self {
        let alpn = alpn.iter().map(|name| name.to_vec()).collect();
        Self {
            crypto: Arc::new(TappedClient(Arc::new(unprotected::Client { alpn }))),
            is_protected: false,
        }
    }

    /// Whether its sessions use cryptography.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.is_protected
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig").finish_non_exhaustive()
    }
}
