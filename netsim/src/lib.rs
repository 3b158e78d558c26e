//! Links in virtual or real time: impairment, queue, serialiser, propagation.
//!
//! A [`Pipe`] is one direction of a link. It moves opaque packets and knows nothing about what is
//! in them. It reads no clock: the caller says what time it is, so the same pipe runs inside a
//! simulation on virtual time and inside a relay of real UDP datagrams. Two pipes make a link,
//! several make a path.
//!
//! ```text
//!  arrive(now, packet)
//!      |
//!      v
//!  largest   ACK        scripted  loss before             queue:                       serialiser:
//!  packet -> thinning -> drop  -> the queue -> policer -> drop-tail, CoDel,  -> shaper -> size * 8 / rate,
//!                                                         FQ-CoDel, PIE,                 or a trace of slots
//!                                                         RED, DualPI2                      |
//!                                                                                           v
//!  advance(now, deliver) <- propagation: delay, jitter,  <- corruption,  <- loss after the queue
//!                           slots; in order unless          duplication,    (the wire)
//!                           asked otherwise                 reordering
//!
//!  inside now:  `held` (thinning)   `queued`   `in_service` (shaper, serialiser)   `in_flight`
//! ```
//!
//! Every drop has its cause in [`Counters`]. Everything in [`PipeConfig`] but a trace can be changed at an instant by a
//! [`Change`], in either direction.
//!
//! The laws every run obeys, each of them a test in `tests/`:
//!
//! * offered + copied = delivered + dropped by each cause + held + queued + in service + in flight, in
//!   packets and in bytes;
//! * one packet on an idle pipe arrives after size * 8 / rate, rounded up to a nanosecond, plus the
//!   delay;
//! * a saturated pipe moves rate * time / 8 bytes, to within one packet, however long it runs;
//! * the packet being serialised does not count towards the queue limit, and neither does what
//!   propagates;
//! * loss before the queue takes from the load, loss after it takes from the output;
//! * a timed [`Change`] holds for every packet that reaches its stage at that instant or later, and
//!   loses or duplicates none itself;
//! * at one instant the order is: changes, then the end of serialisation, then deliveries; an
//!   arrival comes after the first two; packets leave in the order they came, unless a setting that says so
//!   puts them out of order;
//! * the same seed and the same calls give the same packets at the same nanoseconds on every
//!   platform.
//!
//! Read `pipe.rs` first; `config.rs` says what can be set and changed, `counters.rs` what can be
//! asked.
//!
//! ```
//! use std::time::Duration;
//! use netsim::{Packet, Pipe, PipeConfig, RandomStreams};
//! use units::{ByteCount, Rate, Timestamp};
//!
//! let config = PipeConfig {
//!     rate: Rate::from_mbps(10),
//!     delay: Duration::from_millis(5),
//!     queue: ByteCount::kb(25),
//!     ..PipeConfig::default()
//! };
//! let mut pipe = Pipe::new(config, &RandomStreams::new(1), "forward")?;
//! pipe.arrive(Timestamp::ZERO, Packet::new(ByteCount::new(1250), "hello"));
//! assert_eq!(pipe.next_event(), Some(Timestamp::from_millis(1)));
//!
//! let mut arrived = Vec::new();
//! pipe.advance(Timestamp::from_millis(10), &mut |at, packet| arrived.push((at, packet.payload)));
//! assert_eq!(arrived, [(Timestamp::from_millis(6), "hello")]);
//! # Ok::<(), netsim::ConfigError>(())
//! ```

mod cellular;
mod config;
mod counters;
mod distributions;
mod event_heap;
mod gilbert_elliott;
mod histogram;
mod jitter;
mod leo;
mod mishap;
mod output;
mod packet;
mod pipe;
mod policer;
mod queue;
mod random;
mod script;
mod serialiser;
mod shaper;
mod slots;
mod thinning;
mod token_bucket;
mod trace;
#[cfg(test)]
#[path = "../../tests/support/validation_rows.rs"]
#[expect(dead_code, reason = "a link is the same in every run")]
mod validation_rows;

pub use cellular::{Cellular, Outages};
pub use config::{Change, ConfigError, LossPlace, PipeConfig, SpacedDrops};
pub use counters::{Counters, DropCause, Tally};
pub use event_heap::EventHeap;
pub use gilbert_elliott::BurstLoss;
pub use histogram::DelayHistogram;
pub use jitter::Jitter;
pub use leo::{Leo, LeoPath};
pub use mishap::{Mishaps, damage};
pub use output::{OutputRecord, Usage};
pub use packet::{Ecn, FlowId, Labels, Packet};
pub use pipe::Pipe;
pub use policer::Policer;
pub use queue::{
    CoDelConfig, Discipline, DualPi2Config, FqCoDelConfig, Gain, PieConfig, QueueConfig,
    QueueLimits, RedConfig,
};
pub use random::{RandomStream, RandomStreams};
pub use shaper::Shaper;
pub use slots::Slots;
pub use thinning::Thinning;
pub use trace::{Trace, TraceError};
