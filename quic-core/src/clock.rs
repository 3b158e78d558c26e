//! The one place where a [`Timestamp`] becomes quinn-proto's `Instant` and back.
//!
//! quinn-proto counts in `Instant`, which only the operating system can make. Every endpoint
//! therefore fixes one `Instant` as its time zero; all that quinn-proto sees are sums of that zero
//! and a [`Timestamp`], so in virtual time the zero itself never shows.

use std::time::Instant;

use units::Timestamp;

/// Maps [`Timestamp`]s onto `Instant`s by one fixed zero.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    /// Fixes the zero at the present instant.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only reading of the clock; its value never reaches anything simulated"
    )]
    pub(crate) fn new() -> Self {
        Self {
            zero: Instant::now(),
        }
    }

    /// The operating system's present time, for the real host only.
    #[expect(
        clippy::disallowed_methods,
        reason = "the real host's reading of the clock"
    )]
    #[cfg(feature = "net")]
    pub(crate) fn now(&self) -> Timestamp {
        self.timestamp(Instant::now())
    }

    /// The `Instant` that stands for `at`.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        self.zero + std::time::Duration::from_nanos(at.as_nanos())
    }

    /// The [`Timestamp`] that `instant` stands for; zero for anything earlier than the zero.
    pub(crate) fn timestamp(&self, instant: Instant) -> Timestamp {
        let nanos = instant.saturating_duration_since(self.zero).as_nanos();
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
