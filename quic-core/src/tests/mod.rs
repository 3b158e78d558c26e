//! Tests that need to look inside: quinn-proto's measured behaviour, the ledger against it, and what
//! becomes of connections and streams once nobody needs them.
//!
//! `raw` is two bare quinn-proto endpoints with our tap, `network` two drivers on a network that
//! loses, reorders and duplicates. Tests that need only the public interface are in the directory
//! `tests` beside `src`.

mod acknowledgements;
mod bookkeeping;
mod handshake;
mod lifetimes;
mod measurements;
mod network;
mod raw;
mod receive;
#[cfg(feature = "net")]
mod unprotected;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use netsim::RandomStream;
use serde_json::Value;
use units::{ByteCount, Fraction};

use crate::{
    config::{ClientConfig, EndpointConfig, LogFactory, ServerConfig},
    tls::{self, ServerTls, TlsOptions, Trust},
};

const ALPN: &[u8] = b"tidegate-test";

/// A server's and a client's TLS side that trust each other.
fn tls_pair() -> (ServerConfig, ClientConfig) {
    let identity = ServerTls::generate_for_tests(&[]).expect("a certificate");
    let options = TlsOptions::virtual_time();
    let trust = Trust::CaDer(identity.chain().to_vec());
    let server = tls::server_config(&identity, &[ALPN], &options).expect("a server's TLS");
    let client = tls::client_config(&trust, &[ALPN], &options).expect("a client's TLS");
    (
        ServerConfig::new(server).expect("the suite for Initial packets"),
        ClientConfig::new(client).expect("the suite for Initial packets"),
    )
}

/// Both endpoints' configuration unless a test says otherwise.
fn config(seed: u64) -> EndpointConfig {
    EndpointConfig {
        has_mtu_discovery: false,
        seed: Some(seed),
        ..EndpointConfig::default()
    }
}

fn percent(value: u32) -> Fraction {
    Fraction::from_percent(value).expect("at most one hundred")
}

/// What a direction does to datagrams, each independently of the others.
#[derive(Copy, Clone, Debug)]
struct Faults {
    delay: Duration,
    loss: Fraction,
    reordering: Fraction,
    /// A reordered datagram is late by up to this.
    lateness: Duration,
    duplication: Fraction,
}

impl Faults {
    const NONE: Self = Self {
        delay: Duration::from_millis(10),
        loss: Fraction::ZERO,
        reordering: Fraction::ZERO,
        lateness: Duration::ZERO,
        duplication: Fraction::ZERO,
    };

    /// The delays of the copies that arrive: none for a lost datagram, two for a duplicated one.
    fn fates(&self, chance: &mut RandomStream) -> Vec<Duration> {
        if chance.chance(self.loss) {
            return Vec::new();
        }
        let copies = if chance.chance(self.duplication) {
            2
        } else {
            1
        };
        (0..copies)
            .map(|_| {
                let late = u64::try_from(self.lateness.as_nanos()).expect("a short time");
                if chance.chance(self.reordering) {
                    self.delay + Duration::from_nanos(chance.below(late + 1))
                } else {
                    self.delay
                }
            })
            .collect()
    }
}

/// Bytes that tell their place in a stream, so that a shifted or mixed-up one shows.
fn pattern(salt: u64, offset: u64, length: usize) -> Vec<u8> {
    (offset..)
        .take(length)
        .map(|at| {
            let word = (at ^ salt.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word.to_be_bytes()[0]
        })
        .collect()
}

/// A transport whose limits do not bind within a test.
fn wide_open(mut config: EndpointConfig) -> EndpointConfig {
    config.stream_receive_window = ByteCount::mib(64);
    config.receive_window = ByteCount::mib(64);
    config.send_window = ByteCount::mib(64);
    config
}

/// A log in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn factory(&self) -> LogFactory {
        let memory = self.clone();
        Arc::new(move |_| Some(Box::new(memory.clone())))
    }

    /// The records of the log in order, without its header.
    fn records(&self) -> Vec<Value> {
        let bytes = self.0.lock().expect("unpoisoned");
        let text = std::str::from_utf8(&bytes).expect("text");
        let records = text.split('\u{1e}').map(str::trim);
        records
            .filter(|record| !record.is_empty())
            .skip(1)
            .map(|record| serde_json::from_str(record).expect("JSON"))
            .collect()
    }
}

fn shared<T>(value: T) -> Arc<Mutex<T>> {
    Arc::new(Mutex::new(value))
}
