//! An HTTP/3 download server: what is served, how a request is answered, and when to stop.
//!
//! ```text
//!   QUIC connection --> guard --> crate h3 --> serve --> site --> file (one opened descriptor)
//!   (any h3::quic)      limits,   framing,     one task   path      or content (bytes made
//!                       resets    QPACK        a request  to body   from their offset)
//! ```
//!
//! The library names no QUIC implementation, spawns on no runtime and reads no clock: all three are
//! arguments of [`Server`]. So the same code answers over UDP and in virtual time. Read [`serve`]
//! first; the command line is in [`cli`].

pub mod cli;
pub mod content;
mod file;
mod path;
pub mod serve;
pub mod shutdown;
pub mod site;

pub use serve::{AccessRecord, BoxFuture, End, Link, Served, Server, serve_connection};
pub use shutdown::Shutdown;
pub use site::{Site, SiteError};
