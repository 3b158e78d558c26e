//! Timestamps, rates, byte counts, and the one parser for quantities written as text.
//!
//! A quantity that crosses a function boundary has a type of its own, so that bits are never taken
//! for bytes, a point in time never for a span, and a decimal megabyte never for a binary one:
//!
//! ```text
//!                 Rate (bit/s)
//!                /            \
//!   ByteCount --+-- time_for --+--> Duration      Timestamp + Duration = Timestamp
//!   ByteCount <-+-- bytes_in --+--- Duration      Timestamp.saturating_since(Timestamp) = Duration
//! ```
//!
//! * Everything is an integer: nanoseconds, bits per second, bytes, parts per billion. No float
//!   takes part in any calculation, so the same input gives the same output on every platform.
//! * Arithmetic saturates at the ends of the range instead of wrapping or panicking. Products pass
//!   through [`math::mul_div`], whose middle is 128 bits wide.
//! * Prefixes are decimal (1 Mbit/s is 1,000,000 bit/s, 1 MB is 1,000,000 B) unless spelt binary
//!   (`KiB`, `MiB`, `GiB`).
//! * There is no `now()` here: time is an argument.
//!
//! The same text forms serve scenario files and command-line flags. What is displayed can be parsed
//! again:
//!
//! ```
//! use std::time::Duration;
//! use units::{ByteCount, Rate, parse_duration};
//!
//! let rate: Rate = "100 Mbit/s".parse()?;
//! let rtt = parse_duration("20 ms")?;
//! assert_eq!(rate.bytes_in(rtt), ByteCount::kb(250));
//! assert_eq!(rate.time_for(ByteCount::new(1500)), Duration::from_micros(120));
//! assert_eq!(rate.to_string(), "100 Mbit/s");
//! # Ok::<(), units::ParseError>(())
//! ```

mod bytes;
mod fraction;
pub mod math;
mod parse;
mod queue_limit;
mod rate;
mod timestamp;

pub use bytes::ByteCount;
pub use fraction::Fraction;
pub use parse::{ParseError, format_duration, parse_duration};
pub use queue_limit::QueueLimit;
pub use rate::Rate;
pub use timestamp::Timestamp;
