//! How long a packet occupies the link.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

/// Computes when each packet has left the link.
///
/// A packet that finds the link idle at t has left it at t + size * 8e9 / rate, rounded up to a
/// nanosecond. Within a busy period the part by which that was rounded up is credited to the next
/// packet, so completions stay on the exact line and a saturated link moves rate * time / 8 bytes
/// however long it runs. Without it, 64 B at 30 Gbit/s (17.07 ns, rounded to 18) would run 5 %
/// slow.
///
/// ```text
///   exact   |-----17.07-----|-----17.07-----|-----17.07-----|
///   whole   |-----18---------|-----17-------|------17--------|       0, 18, 35, 52
/// ```
///
/// The credit lasts while packets follow each other without a gap at one rate; it is always below 1
/// ns.
#[derive(Clone, Debug)]
pub(crate) struct Serialiser {
    /// When the latest packet has left, or leaves, the link.
    free_at: Timestamp,
    /// The rate of the latest packet.
    rate: Rate,
    /// What rounding up has added to `free_at`, in bits times nanoseconds per second: below `rate`,
    /// which is 1 ns.
    credit: u128,
}

const BITS_TIMES_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl Serialiser {
    pub(crate) const fn new() -> Self {
        Self {
            free_at: Timestamp::ZERO,
            rate: Rate::INFINITE,
            credit: 0,
        }
    }

    /// Puts a packet on the link at `now`, which the latest has left by then, and returns when it
    /// leaves.
    ///
    /// `rate` is not zero. A result of [`Timestamp::MAX`] means never.
    pub(crate) fn start(&mut self, now: Timestamp, size: ByteCount, rate: Rate) -> Timestamp {
        if now != self.free_at || rate != self.rate {
            self.credit = 0;
        }
        self.rate = rate;
        self.free_at = if rate.is_infinite() {
            now
        } else {
            now + self.occupy(size, u128::from(rate.as_bps()))
        };
        self.free_at
    }

    /// The whole nanoseconds a packet takes with what is credited, and the new credit.
    fn occupy(&mut self, size: ByteCount, bps: u128) -> Duration {
        // At most 2^64 * 8e9 = 1.5e29: far from 2^128.
        let work = u128::from(size.as_u64()) * BITS_TIMES_NANOS_PER_BYTE;
        let nanos = work.saturating_sub(self.credit).div_ceil(bps);
        self.credit = (self.credit + nanos * bps).saturating_sub(work);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: ByteCount = ByteCount::new(64);

    fn fast() -> Rate {
        "30 Gbit/s".parse().unwrap()
    }

    #[test]
    fn completions_stay_on_the_exact_line() {
        let mut serialiser = Serialiser::new();
        let mut at = Timestamp::ZERO;
        for packet in 1..=1_000_u64 {
            at = serialiser.start(at, SMALL, fast());
            assert_eq!(
                at,
                Timestamp::from_nanos((packet * 64 * 8).div_ceil(30)),
                "packet {packet}"
            );
        }
    }

    #[test]
    fn the_credit_ends_with_the_busy_period() {
        let mut serialiser = Serialiser::new();
        assert_eq!(
            serialiser.start(Timestamp::ZERO, SMALL, fast()),
            Timestamp::from_nanos(18)
        );
        assert_eq!(
            serialiser.start(Timestamp::from_nanos(19), SMALL, fast()),
            Timestamp::from_nanos(37)
        );
    }

    #[test]
    fn the_credit_ends_with_the_rate() {
        let mut serialiser = Serialiser::new();
        let first = serialiser.start(Timestamp::ZERO, SMALL, fast());
        // 64 B at 15 Gbit/s take 34.13 ns; less the credit of the first, 0.93 ns, it would be 34.
        let second = serialiser.start(first, SMALL, fast().scale(1, 2));
        assert_eq!(second.saturating_since(first), Duration::from_nanos(35));
    }

    #[test]
    fn a_packet_within_the_credit_takes_no_time() {
        let mut serialiser = Serialiser::new();
        let rate = Rate::from_mbps(1_000_000);
        // One byte takes 0.008 ns: 125 of them share the first nanosecond.
        let mut at = Timestamp::ZERO;
        for _ in 0..125 {
            at = serialiser.start(at, ByteCount::new(1), rate);
            if at == Timestamp::ZERO {
                at = Timestamp::from_nanos(1);
            }
        }
        assert_eq!(at, Timestamp::from_nanos(1));
        assert_eq!(
            serialiser.start(at, ByteCount::new(1), rate),
            Timestamp::from_nanos(2)
        );
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let mut serialiser = Serialiser::new();
        assert_eq!(
            serialiser.start(Timestamp::ZERO, ByteCount::MAX, Rate::from_bps(1)),
            Timestamp::MAX
        );
        let now = Timestamp::from_secs(1);
        assert_eq!(serialiser.start(now, ByteCount::MAX, Rate::INFINITE), now);
        assert_eq!(
            serialiser.start(now, ByteCount::ZERO, Rate::from_bps(u64::MAX - 1)),
            now
        );
    }
}
