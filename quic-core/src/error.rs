//! What can go wrong, by who is at fault.

use std::{io, net::SocketAddr};

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// Nothing was heard from the peer for the idle timeout (RFC 9000 section 10.1), or the handshake
    /// got no answer.
    #[error("timed out: nothing heard from the peer")]
    TimedOut,
    /// The peer has lost its state and said so (RFC 9000 section 10.3).
    #[error("reset by the peer: it no longer knows the connection")]
    Reset,
    /// No QUIC version in common (RFC 9000 section 6).
    #[error("the peer speaks no common QUIC version (offered: 1)")]
    VersionMismatch,
    /// The peer's application closed the connection.
    #[error("closed by the peer with code {code:#x}{}", colon(reason))]
    ClosedByPeer {
        /// The application's code.
        code: u64,
        /// Its reason phrase; may be empty.
        reason: String,
    },
    /// The peer's transport closed the connection.
    #[error("aborted by the peer: {}{}", code_name(*code), colon(reason))]
    AbortedByPeer {
        /// A code of RFC 9000 section 20.1.
        code: u64,
        /// Its reason phrase; may be empty.
        reason: String,
    },
    /// The peer broke the protocol, or its certificate was refused.
    #[error("{}{}", code_name(*code), colon(reason))]
    Transport {
        /// A code of RFC 9000 section 20.1.
        code: u64,
        /// What it was about.
        reason: String,
    },
    /// This side closed the connection.
    #[error("closed locally with code {code:#x}")]
    LocallyClosed {
        /// The application's code.
        code: u64,
    },
    /// No connection ids are left.
    #[error("no connection ids left on this endpoint")]
    IdsExhausted,
}

impl ConnectionError {
    /// The reason phrase that came with it; may be empty.
    pub fn reason(&self) -> &str {
        match self {
            Self::ClosedByPeer { reason, .. }
            | Self::AbortedByPeer { reason, .. }
            | Self::Transport { reason, .. } => reason,
            _ => "",
        }
    }

    /// The TLS alert that ended the handshake, if one did (RFC 9001 section 4.8), and whether the
    /// peer sent it.
    pub fn tls_alert(&self) -> Option<(u8, bool)> {
        let (code, by_peer) = match *self {
            Self::AbortedByPeer { code, .. } => (code, true),
            Self::Transport { code, .. } => (code, false),
            _ => return None,
        };
        let alert = code.checked_sub(0x100)?;
        Some((u8::try_from(alert).ok()?, by_peer))
    }

    pub(crate) fn from_quinn(error: quinn_proto::ConnectionError, local_code: u64) -> Self {
        use quinn_proto::ConnectionError as Q;
        match error {
            Q::VersionMismatch => Self::VersionMismatch,
            Q::TransportError(error) => Self::Transport {
                code: u64::from(error.code),
                reason: error.reason,
            },
            Q::ConnectionClosed(close) => Self::AbortedByPeer {
                code: u64::from(close.error_code),
                reason: String::from_utf8_lossy(&close.reason).into_owned(),
            },
            Q::ApplicationClosed(close) => Self::ClosedByPeer {
                code: close.error_code.into_inner(),
                reason: String::from_utf8_lossy(&close.reason).into_owned(),
            },
            Q::Reset => Self::Reset,
            Q::TimedOut => Self::TimedOut,
            Q::LocallyClosed => Self::LocallyClosed { code: local_code },
            Q::CidsExhausted => Self::IdsExhausted,
        }
    }
}

fn colon(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {}", reason.escape_debug())
    }
}

/// The name of a transport error code (RFC 9000 section 20.1, RFC 8446 section 6 for alerts).
fn code_name(code: u64) -> String {
    let name = match code {
        0x0 => "NO_ERROR",
        0x1 => "INTERNAL_ERROR",
        0x2 => "CONNECTION_REFUSED",
        0x3 => "FLOW_CONTROL_ERROR",
        0x4 => "STREAM_LIMIT_ERROR",
        0x5 => "STREAM_STATE_ERROR",
        0x6 => "FINAL_SIZE_ERROR",
        0x7 => "FRAME_ENCODING_ERROR",
        0x8 => "TRANSPORT_PARAMETER_ERROR",
        0xa => "PROTOCOL_VIOLATION",
        0xc => "APPLICATION_ERROR",
        0xd => "CRYPTO_BUFFER_EXCEEDED",
        0xe => "KEY_UPDATE_ERROR",
        0xf => "AEAD_LIMIT_REACHED",
        0x100..=0x1ff => return format!("TLS alert {}", alert_name(code - 0x100)),
        _ => return format!("transport error {code:#x}"),
    };
    name.to_owned()
}

fn alert_name(alert: u64) -> String {
    let name = match alert {
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        80 => "internal_error",
        109 => "missing_extension",
        112 => "unrecognized_name",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return alert.to_string(),
    };
    format!("{alert} ({name})")
}

/// Why a connection could not even be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was built without client configuration.
    #[error("this endpoint accepts connections only; it has no client configuration")]
    NotAClient,
    /// The endpoint is closing.
    #[error("the endpoint is closed")]
    Closed,
    /// Not a host name or IP address that TLS can check.
    #[error("\"{}\" is no valid server name: expected a host name or an IP address", name.escape_debug())]
    InvalidServerName {
        /// The name as given.
        name: String,
    },
    /// Port 0 or an unspecified address.
    #[error("{0} is no address to connect to: expected a port above 0 and a specific IP address")]
    InvalidAddress(SocketAddr),
    /// quinn-proto refused for another reason.
    #[error("cannot connect: {0}")]
    Other(String),
}

impl ConnectError {
    pub(crate) fn from_quinn(error: quinn_proto::ConnectError, name: &str) -> Self {
        use quinn_proto::ConnectError as Q;
        match error {
            Q::EndpointStopping => Self::Closed,
            Q::InvalidServerName(_) => Self::InvalidServerName {
                name: name.to_owned(),
            },
            Q::InvalidRemoteAddress(address) => Self::InvalidAddress(address),
            Q::NoDefaultClientConfig => Self::NotAClient,
            other => Self::Other(other.to_string()),
        }
    }
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer asked to stop (RFC 9000 section 19.5).
    #[error("the peer stopped reading with code {0:#x}")]
    Stopped(u64),
    /// The stream was finished or reset before.
    #[error("the stream is finished or reset")]
    Closed,
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream (RFC 9000 section 19.4).
    #[error("the peer reset the stream with code {0:#x}")]
    Reset(u64),
    /// Reading was stopped before.
    #[error("reading of the stream was stopped")]
    Closed,
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
            WriteError::Closed => io::ErrorKind::BrokenPipe,
            WriteError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Closed => io::ErrorKind::BrokenPipe,
            ReadError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

/// Why an endpoint could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value that the wire format cannot carry.
    #[error("{name} is {value}, allowed are {allowed}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// What can be.
        allowed: &'static str,
    },
    /// The TLS configuration lacks the suite that QUIC's Initial packets need.
    #[error("the TLS configuration offers no TLS_AES_128_GCM_SHA256, which QUIC needs")]
    NoInitialSuite,
    /// A session without cryptography was to be used on a socket.
    #[error("sessions without cryptography are for virtual time, never for a socket")]
    Unprotected,
}
