//! A QUIC endpoint on the unmodified crate quinn-proto, with congestion control, pacing and logging
//! of its own, in real and in virtual time.
//!
//! ```text
//!   handles (async)      Endpoint, Connection, SendStream, RecvStream
//!        |
//!   driver               endpoint and connections, no I/O
//!        |   conn        what may leave, and when (gate)
//!        |   sender      ledger of sent packets, RTT, delivery rate, controller
//!        |   tap         every packet in plaintext, every call to the controller
//!        v
//!   host                 net: UDP socket and tokio      virt: virtual network and clock
//! ```
//!
//! quinn-proto is named in this crate only. Read `tap`, then `ledger`, `sender` and `conn`, in that
//! order; ARCHITECTURE.md follows one byte through all of them.

mod clock;
mod config;
mod conn;
mod driver;
mod error;
mod frame;
pub mod h3_adapter;
pub mod h3_guard;
mod handles;
pub mod label;
mod ledger;
mod log;
#[cfg(feature = "net")]
pub mod net;
mod observer;
mod parameters;
mod receive;
mod sender;
mod streams;
mod tap;
#[cfg(test)]
mod tests;
pub mod tls;
mod unprotected;
pub mod virt;

pub use config::{ClientConfig, DEFAULT_INITIAL_RTT, EndpointConfig, LogFactory, ServerConfig};
pub use conn::ConnectionStats;
pub use error::{ConfigError, ConnectError, ConnectionError, ReadError, WriteError};
pub use handles::{Connection, Endpoint, RecvStream, SendStream};
pub use log::{LogProblem, LogSink, log_to_directory};
pub use observer::{ObserverFactory, SenderObserver, SenderUpdate};
pub use sender::SenderStats;
