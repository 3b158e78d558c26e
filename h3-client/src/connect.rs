//! From a host and port to a connection: addresses, attempts side by side, and clear failures.
//!
//! ```text
//!   t = 0       first address ----------------------------> handshake
//!   t = 250 ms  second address (if the first is still busy) --> handshake     first one wins
//!   t = 300 ms  after its start, each attempt is probed: does the system know that nobody is there?
//! ```
//!
//! The stagger follows RFC 8305 section 5. The probe is an empty datagram from a connected socket:
//! only such a socket is told of ICMP errors, and without it a closed port looks like a slow server.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::task::Poll;
use std::time::Duration;

use quic_core::{ClientConfig, Connection, Endpoint, EndpointConfig, net};
use tokio::net::UdpSocket;

use crate::error::{Error, Phase, limit};
use crate::url::Url;

/// How long one address is tried alone.
const STAGGER: Duration = Duration::from_millis(250);

/// How long an attempt goes on before the system is asked whether anybody is there.
const PROBE_AFTER: Duration = Duration::from_millis(300);

/// How long an ICMP error is waited for.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// What connections are made with.
#[derive(Clone, Debug)]
pub struct Connector {
    /// The transport.
    pub config: EndpointConfig,
    /// TLS.
    pub client: ClientConfig,
    /// Addresses given by hand.
    pub overrides: Vec<Override>,
    /// How long it may take altogether.
    pub timeout: Duration,
}

/// An address given by hand for a host and port: `HOST:PORT:ADDR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    host: String,
    port: u16,
    address: IpAddr,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not HOST:PORT:ADDR, such as files.example:443:192.0.2.1 or \
                 files.example:443:[2001:db8::1]"
            )
        };
        // The host may be an IPv6 address in brackets, so the port is looked for behind it.
        let host_end = if text.starts_with('[') {
            text.find(']').ok_or_else(wrong)?
        } else {
            0
        };
        let colon = text[host_end..].find(':').ok_or_else(wrong)? + host_end;
        let (host, rest) = (&text[..colon], &text[colon + 1..]);
        let (port, address) = rest.split_once(':').ok_or_else(wrong)?;
        let address = address
            .strip_prefix('[')
            .and_then(|a| a.strip_suffix(']'))
            .unwrap_or(address);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: port
                .parse()
                .ok()
                .filter(|&port| port > 0)
                .ok_or_else(wrong)?,
            address: address.parse().map_err(|_| wrong())?,
        })
    }
}

/// Connects to whoever serves `url`. The endpoint has to be kept as long as the connection.
///
/// # Errors
/// The first error of a server that did answer; otherwise what came of every address.
pub async fn connect(connector: &Connector, url: &Url) -> Result<(Endpoint, Connection), Error> {
    let work = async {
        let addresses = addresses(connector, url).await?;
        race(connector, url, &addresses).await
    };
    match tokio::time::timeout(connector.timeout, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::Timeout {
            phase: Phase::Connect,
            limit: format!(
                "no answer from {} on UDP port {} ({})",
                url.host(),
                url.port(),
                limit("--connect-timeout", connector.timeout)
            ),
        }),
    }
}

async fn addresses(connector: &Connector, url: &Url) -> Result<Vec<SocketAddr>, Error> {
    let port = url.port();
    let by_hand: Vec<_> = connector
        .overrides
        .iter()
        .filter(|by_hand| by_hand.port == port && by_hand.host.eq_ignore_ascii_case(url.host()))
        .map(|by_hand| SocketAddr::new(by_hand.address, port))
        .collect();
    if !by_hand.is_empty() {
        return Ok(by_hand);
    }
    if let Ok(address) = url.host().parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let unresolved = |problem: String| Error::Resolve {
        host: url.host().into(),
        problem,
    };
    let found = tokio::net::lookup_host((url.host(), port))
        .await
        .map_err(|error| unresolved(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(unresolved("it has no address".into()));
    }
    Ok(alternate(&addresses))
}

/// The families in turn, beginning with the first one's (RFC 8305 section 4), so that a family that
/// does not work costs one stagger, not one for each of its addresses.
fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_first_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut two): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .copied()
        .rev()
        .partition(|address| address.is_ipv6() == is_first_v6);
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(one.pop());
        ordered.extend(two.pop());
    }
    ordered
}

type Attempt<'a> =
    Pin<Box<dyn Future<Output = Result<(Endpoint, Connection), Missed>> + Send + 'a>>;

/// Why one address gave no connection.
enum Missed {
    /// Somebody answered, and it went wrong: other addresses would tell the same.
    Answered(Error),
    /// Nobody did.
    Silent(String),
}

async fn race(
    connector: &Connector,
    url: &Url,
    addresses: &[SocketAddr],
) -> Result<(Endpoint, Connection), Error> {
    let mut attempts: Vec<Option<Attempt<'_>>> = Vec::new();
    let mut tried: Vec<(SocketAddr, String)> = Vec::new();
    let mut rest = addresses.iter().copied();
    let mut stagger = Box::pin(tokio::time::sleep(Duration::ZERO));
    let mut has_more = true;
    poll_fn(|cx| {
        loop {
            let mut has_failed = false;
            for (attempt, (_, outcome)) in attempts.iter_mut().zip(&mut tried) {
                let Some(future) = attempt else { continue };
                match future.as_mut().poll(cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(connected)) => return Poll::Ready(Ok(connected)),
                    Poll::Ready(Err(Missed::Answered(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(Err(Missed::Silent(what))) => {
                        *attempt = None;
                        has_failed = true;
                        *outcome = what;
                    }
                }
            }
            let is_idle = attempts.iter().all(Option::is_none);
            if has_more && (has_failed || is_idle || stagger.as_mut().poll(cx).is_ready()) {
                match rest.next() {
                    Some(address) => {
                        tried.push((address, String::new()));
                        attempts.push(Some(Box::pin(attempt(connector, url, address))));
                        stagger = Box::pin(tokio::time::sleep(STAGGER));
                        continue;
                    }
                    None => has_more = false,
                }
            }
            if is_idle && !has_more {
                return Poll::Ready(Err(Error::Unreachable {
                    host: url.host().into(),
                    port: url.port(),
                    tried: std::mem::take(&mut tried),
                }));
            }
            return Poll::Pending;
        }
    })
    .await
}

async fn attempt(
    connector: &Connector,
    url: &Url,
    address: SocketAddr,
) -> Result<(Endpoint, Connection), Missed> {
    let local: IpAddr = if address.is_ipv6() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let (config, client) = (connector.config.clone(), connector.client.clone());
    let endpoint = net::bind(SocketAddr::new(local, 0), config, Some(client), None)
        .map_err(|error| Missed::Silent(error.to_string()))?;
    let connection = endpoint
        .connect(address, url.host())
        .map_err(|error| Missed::Silent(error.to_string()))?;
    tokio::select! {
        outcome = connection.handshake() => match outcome {
            Ok(()) => Ok((endpoint, connection)),
            Err(quic_core::ConnectionError::TimedOut) => {
                Err(Missed::Silent("no answer".into()))
            }
            Err(error) => {
                Err(Missed::Answered(Error::from_quic(&error, url.host(), Phase::Connect)))
            }
        },
        error = refusal(address) => Err(Missed::Silent(explain(&error))),
    }
}

/// Ready only if the system says that `address` cannot be reached.
async fn refusal(address: SocketAddr) -> io::Error {
    tokio::time::sleep(PROBE_AFTER).await;
    let probe = async {
        let local: IpAddr = if address.is_ipv6() {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind(SocketAddr::new(local, 0)).await?;
        socket.connect(address).await?;
        // No QUIC endpoint answers an empty datagram, and none minds it.
        socket.send(&[]).await?;
        socket.recv(&mut [0; 1]).await
    };
    match tokio::time::timeout(PROBE_WAIT, probe).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => std::future::pending().await,
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the port is closed".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_host_port_and_address() {
        for (text, host, port, address) in [
            ("a.example:443:192.0.2.1", "a.example", 443, "192.0.2.1"),
            (
                "A.example:4433:2001:db8::1",
                "a.example",
                4433,
                "2001:db8::1",
            ),
            ("a.example:443:[::1]", "a.example", 443, "::1"),
            ("[::1]:443:127.0.0.1", "::1", 443, "127.0.0.1"),
        ] {
            let parsed = text.parse::<Override>();
            let expected = address.parse().map(|address| Override {
                host: host.into(),
                port,
                address,
            });
            assert_eq!(parsed.ok(), expected.ok(), "{text}");
        }
        for text in [
            "",
            "a",
            "a:443",
            "a:0:192.0.2.1",
            "a:x:192.0.2.1",
            "a:443:b",
            ":443:192.0.2.1",
        ] {
            let error = text.parse::<Override>().err().unwrap_or_default();
            assert!(error.contains("HOST:PORT:ADDR"), "{text:?}: {error:?}");
        }
    }

    #[test]
    fn families_take_turns() {
        let list = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let given = list(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        let turns = list(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]);
        assert_eq!(alternate(&given), turns);
        assert_eq!(alternate(&turns[1..2]), turns[1..2]);
        assert!(alternate(&[]).is_empty());
    }
}
