//! What can go wrong with a download, by who is at fault, each with curl's exit code for it.
//!
//! Where curl has a number with the same meaning it is used, so scripts carry over; 95 and 96 are
//! its HTTP/3 and QUIC errors; 100 is ours.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use h3::error::{Code, ConnectionError, LocalError, StreamError};
use h3::quic::ConnectionErrorIncoming;
use http::StatusCode;
use quic_core::tls::TlsError;
use units::{ByteCount, format_duration};

/// What a download was doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reaching the server: the QUIC and TLS handshake.
    Connect,
    /// Waiting for the response to begin.
    Response,
    /// Receiving the body.
    Body {
        /// Bytes of body so far.
        received: ByteCount,
        /// All of them, if the server has said.
        expected: Option<ByteCount>,
    },
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("while connecting"),
            Self::Response => f.write_str("before the response"),
            Self::Body {
                received,
                expected: Some(expected),
            } => {
                write!(
                    f,
                    "after {} of {} bytes",
                    received.as_u64(),
                    expected.as_u64()
                )
            }
            Self::Body {
                received,
                expected: None,
            } => {
                write!(f, "after {} bytes of unknown length", received.as_u64())
            }
        }
    }
}

/// Why a download did not succeed. Each message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Arguments that do not go together.
    #[error("{problem}")]
    Usage {
        /// What is wrong with them.
        problem: String,
    },
    /// A URL that cannot be downloaded.
    #[error("{}: {problem}", url.escape_debug())]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The host has no address.
    #[error("cannot resolve {}: {problem}", host.escape_debug())]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        problem: String,
    },
    /// Nobody is there.
    #[error("cannot reach {host}: nothing answers on UDP port {port} ({tried})", tried = list(tried))]
    Unreachable {
        /// The host.
        host: String,
        /// Its port.
        port: u16,
        /// Each address that was tried, and what came of it.
        tried: Vec<(SocketAddr, String)>,
    },
    /// The transfer ended before its end.
    #[error("the download ended early, {phase}: {cause}")]
    Incomplete {
        /// How far it had come.
        phase: Phase,
        /// Who ended it and how.
        cause: String,
    },
    /// The server sent something other than the file.
    #[error("the server answers {status}{}", location.as_deref().map(redirect).unwrap_or_default())]
    Status {
        /// The status.
        status: StatusCode,
        /// Where a redirection leads.
        location: Option<String>,
    },
    /// The body cannot be stored.
    #[error("cannot write {target}: {error}{}", needed(*size))]
    Write {
        /// Where to.
        target: String,
        /// What the system says.
        error: io::Error,
        /// The size of the whole body, if known.
        size: Option<ByteCount>,
    },
    /// Time is up.
    #[error("timed out {phase}: {limit}")]
    Timeout {
        /// How far it had come.
        phase: Phase,
        /// Which limit it was.
        limit: String,
    },
    /// TLS failed for another reason than the certificate.
    #[error("the TLS handshake failed: {problem}")]
    Tls {
        /// The alert and its reason.
        problem: String,
    },
    /// The server's certificate is not trusted.
    #[error(
        "the certificate of {host} is refused: {problem}; name a certificate to trust with --ca, \
         or use --insecure to accept any"
    )]
    Certificate {
        /// The host.
        host: String,
        /// Which check failed.
        problem: String,
    },
    /// The server does not speak HTTP/3 on this port.
    #[error(
        "{host} does not speak HTTP/3 on this port: it refuses the protocol \"h3\" (TLS alert 120)"
    )]
    Alpn {
        /// The host.
        host: String,
    },
    /// TLS cannot be set up here.
    #[error(transparent)]
    LocalTls(#[from] TlsError),
    /// A rule of HTTP/3 was broken.
    #[error("HTTP/3 error {code} {side}{}", colon(reason))]
    Http3 {
        /// The name of the error code.
        code: String,
        /// Who noticed.
        side: &'static str,
        /// What it was about.
        reason: String,
    },
    /// The QUIC connection failed.
    #[error("the QUIC connection failed {phase}: {problem}")]
    Quic {
        /// How far it had come.
        phase: Phase,
        /// What happened.
        problem: String,
    },
    /// The body is not the one expected.
    #[error(
        "wrong checksum: expected SHA-256 {}, received {}",
        hex(expected),
        hex(actual)
    )]
    Checksum {
        /// What was asked for.
        expected: [u8; 32],
        /// What came.
        actual: [u8; 32],
    },
    /// The user ended it.
    #[error("interrupted {phase}")]
    Interrupted {
        /// How far it had come.
        phase: Phase,
        /// The signal's number: 2 or 15.
        signal: u8,
    },
}

impl Error {
    /// The exit code of the command line for this error.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Url { .. } => 3,
            Self::Resolve { .. } => 6,
            Self::Unreachable { .. } => 7,
            Self::Incomplete { .. } => 18,
            Self::Status { .. } => 22,
            Self::Write { .. } => 23,
            Self::LocalTls(_) => 26,
            Self::Timeout { .. } => 28,
            Self::Tls { .. } => 35,
            Self::Certificate { .. } => 60,
            Self::Http3 { .. } => 95,
            Self::Alpn { .. } | Self::Quic { .. } => 96,
            Self::Checksum { .. } => 100,
            Self::Interrupted { signal, .. } => 128_u8.saturating_add(*signal),
        }
    }

    /// From a failing request or body.
    pub(crate) fn from_stream(error: StreamError, host: &str, phase: Phase) -> Self {
        match error {
            StreamError::RemoteTerminate { code, .. } => Self::Incomplete {
                phase,
                cause: format!("the server reset the stream with {code}"),
            },
            StreamError::RemoteClosing { .. } => Self::Incomplete {
                phase,
                cause: "the server is shutting down and takes no new requests".into(),
            },
            StreamError::ConnectionError { 0: error, .. } => {
                Self::from_connection(error, host, phase)
            }
            StreamError::StreamError { code, reason, .. } => Self::Http3 {
                code: code.to_string(),
                side: "seen here",
                reason,
            },
            other => Self::Http3 {
                code: Code::H3_EXCESSIVE_LOAD.to_string(),
                side: "seen here",
                reason: other.to_string(),
            },
        }
    }

    /// From a failing connection, as h3 tells it.
    pub(crate) fn from_connection(error: ConnectionError, host: &str, phase: Phase) -> Self {
        match error {
            ConnectionError::Timeout { .. }
            | ConnectionError::Remote {
                0: ConnectionErrorIncoming::Timeout,
                ..
            } => Self::from_quic(&quic_core::ConnectionError::TimedOut, host, phase),
            ConnectionError::Local {
                error: LocalError::Application { code, reason, .. },
                ..
            } => {
                match phase {
                    // h3 ends the connection when a stream ends inside a frame.
                    Phase::Body { .. } if code == Code::H3_FRAME_ERROR => Self::Incomplete {
                        phase,
                        cause: "the server ended the stream inside a frame".into(),
                    },
                    _ => Self::Http3 {
                        code: code.to_string(),
                        side: "seen here",
                        reason,
                    },
                }
            }
            ConnectionError::Remote {
                0: ConnectionErrorIncoming::ApplicationClose { error_code },
                ..
            } => {
                let error = quic_core::ConnectionError::ClosedByPeer {
                    code: error_code,
                    reason: String::new(),
                };
                Self::from_quic(&error, host, phase)
            }
            ConnectionError::Remote {
                0: ConnectionErrorIncoming::Undefined(error),
                ..
            } => match error.downcast_ref::<quic_core::ConnectionError>() {
                Some(error) => Self::from_quic(error, host, phase),
                None => Self::Quic {
                    phase,
                    problem: error.to_string(),
                },
            },
            other => Self::Quic {
                phase,
                problem: other.to_string(),
            },
        }
    }

    /// From a failing QUIC connection to `host`.
    pub fn from_quic(error: &quic_core::ConnectionError, host: &str, phase: Phase) -> Self {
        use quic_core::ConnectionError as Quic;
        if let Some((alert, by_peer)) = error.tls_alert() {
            return Self::from_alert(alert, by_peer, error, host);
        }
        match error {
            Quic::TimedOut => Self::Timeout {
                phase,
                limit: "nothing is heard from the server any more".into(),
            },
            Quic::ClosedByPeer { code, .. } if Code::H3_NO_ERROR == *code => Self::Incomplete {
                phase,
                cause: "the server closed the connection".into(),
            },
            Quic::ClosedByPeer { code, reason } => Self::Http3 {
                code: Code::from(*code).to_string(),
                side: "reported by the server",
                reason: reason.clone(),
            },
            Quic::Reset => Self::Incomplete {
                phase,
                cause: "the server no longer knows the connection (it may have restarted)".into(),
            },
            other => Self::Quic {
                phase,
                problem: other.to_string(),
            },
        }
    }

    /// RFC 8446 section 6.2: 42 to 46 and 48 are about certificates, 112 about names, and RFC 7301
    /// section 3.2: 120 about protocols.
    fn from_alert(
        alert: u8,
        by_peer: bool,
        error: &quic_core::ConnectionError,
        host: &str,
    ) -> Self {
        match alert {
            120 => Self::Alpn { host: host.into() },
            42..=46 | 48 if !by_peer => {
                let reason = error.reason();
                let problem = certificate_problem(reason).map_or(reason, |(_, words)| words);
                Self::Certificate {
                    host: host.into(),
                    problem: problem.into(),
                }
            }
            // A verifier's complaint that has no alert of its own arrives as another number.
            _ if !by_peer && certificate_problem(error.reason()).is_some() => Self::Certificate {
                host: host.into(),
                problem: error.reason().into(),
            },
            _ => Self::Tls {
                problem: error.to_string(),
            },
        }
    }
}

/// What rustls says about a certificate, in words for whoever ran the command.
fn certificate_problem(reason: &str) -> Option<(&'static str, &'static str)> {
    const PROBLEMS: [(&str, &str); 5] = [
        ("UnknownIssuer", "it is signed by nobody trusted here"),
        ("NotValidForName", "it is for another name"),
        ("not valid for name", "it is for another name"),
        ("Expired", "it has expired"),
        ("NotValidYet", "it is not valid yet"),
    ];
    PROBLEMS
        .into_iter()
        .find(|(key, _)| reason.contains(key))
        .or_else(|| {
            reason
                .contains("certificate expired")
                .then_some(PROBLEMS[3])
        })
        .or_else(|| reason.contains("not valid yet").then_some(PROBLEMS[4]))
        .or_else(|| {
            reason
                .contains("invalid peer certificate")
                .then_some(("", "it is invalid"))
        })
}

/// A failed download, and what is left of it.
#[derive(Debug)]
pub struct Failure {
    /// Why it failed; one error may have ended several downloads.
    pub error: Arc<Error>,
    /// Where the bytes that came are kept; never under the name asked for.
    pub kept: Option<PathBuf>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match &self.kept {
            Some(path) => write!(f, "; what arrived is kept in {}", path.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Arc::new(error).into()
    }
}

impl From<Arc<Error>> for Failure {
    fn from(error: Arc<Error>) -> Self {
        Self { error, kept: None }
    }
}

/// A limit in words, for [`Error::Timeout`].
pub(crate) fn limit(name: &str, span: Duration) -> String {
    format!("{name} is {}", format_duration(span))
}

fn list(tried: &[(SocketAddr, String)]) -> String {
    let tried: Vec<_> = tried
        .iter()
        .map(|(address, what)| format!("{address}: {what}"))
        .collect();
    tried.join(", ")
}

fn redirect(location: &str) -> String {
    format!(
        " to {}; redirections are not followed",
        location.escape_debug()
    )
}

fn needed(size: Option<ByteCount>) -> String {
    size.map(|size| format!(" (the whole file needs {} bytes)", size.as_u64()))
        .unwrap_or_default()
}

fn colon(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {}", reason.escape_debug())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use quic_core::ConnectionError as Quic;

    use super::*;

    fn code(error: &Quic) -> (u8, String) {
        let error = Error::from_quic(error, "a.example", Phase::Connect);
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn failing_handshakes_are_told_apart() {
        let here = |alert: u64, reason: &str| Quic::Transport {
            code: 0x100 + alert,
            reason: reason.into(),
        };
        let there = |alert: u64| Quic::AbortedByPeer {
            code: 0x100 + alert,
            reason: String::new(),
        };
        let unknown = "invalid peer certificate: UnknownIssuer";
        let name = "invalid peer certificate: certificate not valid for name \"a.example\"; ...";
        let expired = "invalid peer certificate: certificate expired: verification time 5 (UNIX)";
        for (error, expected, words) in [
            (here(48, unknown), 60, "signed by nobody trusted here"),
            (here(42, name), 60, "another name"),
            (here(45, expired), 60, "expired"),
            (
                here(80, "invalid peer certificate: Other(..)"),
                60,
                "invalid peer certificate",
            ),
            (there(120), 96, "does not speak HTTP/3"),
            (there(40), 35, "handshake_failure"),
            (there(48), 35, "unknown_ca"),
            (Quic::VersionMismatch, 96, "offered"),
            (Quic::TimedOut, 28, "while connecting"),
            (Quic::Reset, 18, "restarted"),
            (
                Quic::ClosedByPeer {
                    code: 0x100,
                    reason: String::new(),
                },
                18,
                "closed the connection",
            ),
            (
                Quic::ClosedByPeer {
                    code: 0x107,
                    reason: "slow down".into(),
                },
                95,
                "slow down",
            ),
            (
                Quic::AbortedByPeer {
                    code: 0x2,
                    reason: String::new(),
                },
                96,
                "CONNECTION_REFUSED",
            ),
        ] {
            let (code, text) = code(&error);
            assert_eq!(code, expected, "{error:?}: {text}");
            assert!(text.contains(words), "{error:?}: {text:?} lacks {words:?}");
        }
    }

    #[test]
    fn nothing_that_a_server_says_breaks_the_line() {
        let reason = "line\nbreak\u{1b}[2J".to_owned();
        for error in [
            Quic::ClosedByPeer {
                code: 0x107,
                reason: reason.clone(),
            },
            Quic::AbortedByPeer {
                code: 0x1,
                reason: reason.clone(),
            },
            Quic::AbortedByPeer {
                code: 0x128,
                reason,
            },
        ] {
            let (_, text) = code(&error);
            assert!(!text.contains(['\n', '\u{1b}']), "{text:?}");
        }
        let location = Some("/\n\u{1b}[2J".to_owned());
        let text = Error::Status {
            status: StatusCode::FOUND,
            location,
        }
        .to_string();
        assert!(!text.contains(['\n', '\u{1b}']), "{text:?}");
    }
}
