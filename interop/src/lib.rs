//! Scenarios played on the whole stack, in virtual time and over real UDP.
//!
//! ```text
//!  scenario file --> scenario --> runner --> player (virtual network, or sockets through a relay)
//!                       |                       |
//!                       |                    record --> results
//!                       v                                  |
//!                     expect (bands) <---------------------+--> stats --> report (table, JSON), plot
//! ```
//!
//! - [`scenario`]: the files: link, phases, downloads, bands;
//! - [`play`]: the seam: one run in, one [`record::Recording`] out;
//! - [`results`], [`stats`], [`expect`]: what a run showed, over seeds, against the bands;
//! - [`runner`]: all runs over all cores, in an order that does not depend on them;
//! - [`report`], [`plot`], [`cli`]: what the user sees;
//! - [`qlog_cli`]: looks into the logs of a run, or of anybody;
//! - [`relay`]: the link between real sockets.

pub mod cli;
pub mod expect;
pub mod play;
pub mod plot;
pub mod qlog_cli;
pub mod record;
pub mod relay;
pub mod report;
pub mod results;
pub mod runner;
pub mod scenario;
pub mod stats;
pub mod sweep;

mod flows;
pub mod oracles;
pub mod real_player;
mod stack;
mod text;
pub mod virtual_player;
