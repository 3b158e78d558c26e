//! HTTP/3 downloads: what is asked for, where it goes, and when it may be called complete.
//!
//! ```text
//!   url --> download --> crate h3 --> guard --> QUIC connection (any h3::quic)
//!              |
//!              +--> sink: NAME.part --(length and checksum right)--> NAME
//!                                   \-(anything else)--> stays NAME.part, or becomes NAME.bad
//! ```
//!
//! The library names no QUIC implementation beyond reading its errors, spawns nothing and reads no
//! clock, so the same code runs over UDP and in virtual time. Read [`mod@download`] first; the command
//! line is in [`cli`].

pub mod cli;
pub mod connect;
pub mod download;
mod error;
mod progress;
pub mod sink;
mod url;

pub use download::{Cancel, Job, Observer, Quiet, Report, download};
pub use error::{Error, Failure, Phase};
pub use sink::{CountingSink, FileSink, Sink, WriteSink};
pub use url::Url;
