//! A token bucket, without rounding.
//!
//! ```text
//!            rate
//!              |
//!              v
//!     |                 |  <- burst: what does not fit is lost
//!     |~~~~~~~~~~~~~~~~~|
//!     |     tokens      |
//!     +--------+--------+
//!              | size of each packet
//!              v
//! ```
//!
//! For any two packets i <= k that have been paid for, the bytes from i to k, both included, are at
//! most burst + rate * (t_k - t_i) / 8: the token bucket meter of RFC 3290 section 5, in exact
//! arithmetic.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

/// Counts tokens in bits times nanoseconds per second, of which a byte is 8e9 and a nanosecond
/// brings `rate`: whole numbers both, so nothing is ever rounded and nothing drifts.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    burst: ByteCount,
    /// At `counted_at`. What is beyond a `burst` that has become smaller counts for nothing.
    tokens: u128,
    counted_at: Timestamp,
}

const TOKENS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl TokenBucket {
    /// A bucket that is full at the beginning of a run.
    pub(crate) fn new(rate: Rate, burst: ByteCount) -> Self {
        Self {
            rate,
            burst,
            tokens: tokens_for(burst),
            counted_at: Timestamp::ZERO,
        }
    }

    /// Pays for a packet, or returns false and takes nothing.
    pub(crate) fn try_take(&mut self, now: Timestamp, size: ByteCount) -> bool {
        self.count(now);
        let left = self.tokens.checked_sub(tokens_for(size));
        if let Some(left) = left {
            self.tokens = left;
        }
        left.is_some()
    }

    /// Another rate and burst from `now` on. What has been saved up to then at the old rate stays,
    /// as far as it fits.
    pub(crate) fn reconfigure(&mut self, now: Timestamp, rate: Rate, burst: ByteCount) {
        self.count(now);
        self.rate = rate;
        self.burst = burst;
    }

    /// The first instant, not before `now`, at which there is enough for a packet;
    /// [`Timestamp::MAX`] if never: because it is larger than the burst or the rate is zero.
    pub(crate) fn ready_at(&self, now: Timestamp, size: ByteCount) -> Timestamp {
        let now = now.max(self.counted_at);
        let missing = tokens_for(size).saturating_sub(self.tokens_at(now));
        if size > self.burst || (missing > 0 && self.rate == Rate::ZERO) {
            return Timestamp::MAX;
        }
        if missing == 0 {
            return now;
        }
        // An infinite rate misses nothing within its burst.
        let nanos = missing.div_ceil(u128::from(self.rate.as_bps()));
        now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn count(&mut self, now: Timestamp) {
        self.tokens = self.tokens_at(now);
        self.counted_at = self.counted_at.max(now);
    }

    fn tokens_at(&self, now: Timestamp) -> u128 {
        let full = tokens_for(self.burst);
        if self.rate.is_infinite() {
            return full;
        }
        // At most (2^64 - 1)^2 < 2^128.
        let elapsed = now.saturating_since(self.counted_at).as_nanos();
        let earned = u128::from(self.rate.as_bps()) * elapsed;
        self.tokens.saturating_add(earned).min(full)
    }
}

/// At most 2^64 * 8e9 = 1.5e29: far from 2^128.
fn tokens_for(size: ByteCount) -> u128 {
    u128::from(size.as_u64()) * TOKENS_PER_BYTE
}

/// The law of a token bucket, for the tests of those that stand on it.
#[cfg(test)]
pub(crate) mod law {
    use super::*;

    /// Fails unless for every i <= k, bytes(i..=k) <= burst + rate * (t_k - t_i) / 8, exactly.
    ///
    /// Returns the smallest burst with which that holds, to a whole byte.
    #[track_caller]
    pub(crate) fn assert_obeyed(
        passed: &[(Timestamp, ByteCount)],
        rate: Rate,
        burst: ByteCount,
    ) -> ByteCount {
        let mut most = 0;
        for (k, needed) in needed(passed, rate).enumerate() {
            let (at, _) = passed[k];
            assert!(
                needed <= tokens_for(burst),
                "packet {k} at {at} is beyond the bucket"
            );
            most = needed.max(most);
        }
        ByteCount::new(u64::try_from(most.div_ceil(TOKENS_PER_BYTE)).unwrap())
    }

    /// The tokens that each packet and those before it need a bucket for.
    ///
    /// With S_k the bytes up to and with k: S_k - r t_k less the minimum over i <= k of (S_i-1 - r t_i).
    fn needed(passed: &[(Timestamp, ByteCount)], rate: Rate) -> impl Iterator<Item = u128> {
        let signed = |wide: u128| i128::try_from(wide).unwrap();
        let earned =
            move |at: Timestamp| signed(u128::from(rate.as_bps()) * u128::from(at.as_nanos()));
        let mut sum = 0_i128;
        let mut lowest = i128::MAX;
        passed.iter().map(move |(at, size)| {
            lowest = lowest.min(sum - earned(*at));
            sum += signed(tokens_for(*size));
            // At least the size of the packet itself, so never negative.
            u128::try_from(sum - earned(*at) - lowest).unwrap()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: ByteCount = ByteCount::kb(1);

    #[test]
    fn the_law_tells_a_byte_too_many_and_a_nanosecond_too_early() {
        let rate = Rate::from_mbps(8);
        let half = ByteCount::new(500);
        let pairs = |last: u64, size| {
            [
                (Timestamp::from_millis(7), half),
                (Timestamp::from_millis(7), half),
                (Timestamp::from_nanos(7_000_000 + last), size),
            ]
        };
        let is_obeyed = |passed: &[_]| {
            std::panic::catch_unwind(|| law::assert_obeyed(passed, rate, KB)).is_ok()
        };
        assert!(is_obeyed(&pairs(500_000, half)));
        assert!(!is_obeyed(&pairs(499_999, half)));
        assert!(!is_obeyed(&pairs(500_000, ByteCount::new(501))));
    }

    #[test]
    fn tokens_do_not_drift() {
        // At 7 bit/s a byte takes 8/7 s, 1,142,857,142.86 ns.
        let rate = Rate::from_bps(7);
        let one = ByteCount::new(1);
        let mut bucket = TokenBucket::new(rate, ByteCount::new(2));
        assert!(bucket.try_take(Timestamp::ZERO, ByteCount::new(2)));
        let mut at = Timestamp::ZERO;
        for byte in 1..=10_000_u64 {
            // A look in between changes nothing.
            bucket.count(at + Duration::from_nanos(333));
            at = bucket.ready_at(at, one);
            assert_eq!(
                at,
                Timestamp::from_nanos((byte * 8_000_000_000).div_ceil(7))
            );
            assert!(
                !bucket
                    .clone()
                    .try_take(at.saturating_sub(Duration::from_nanos(1)), one)
            );
            assert!(bucket.try_take(at, one));
        }
    }

    #[test]
    fn a_change_of_rate_keeps_what_was_saved_at_the_old_one() {
        let mut bucket = TokenBucket::new(Rate::from_mbps(8), KB);
        assert!(bucket.try_take(Timestamp::ZERO, KB));
        // 500 us at 1 B/us, then 1 ms at 0.1 B/us.
        bucket.reconfigure(Timestamp::from_micros(500), Rate::from_kbps(800), KB);
        let now = Timestamp::from_micros(1_500);
        assert!(!bucket.try_take(now, ByteCount::new(601)));
        assert!(bucket.try_take(now, ByteCount::new(600)));
    }

    #[test]
    fn a_smaller_burst_spills_and_a_larger_one_has_to_fill() {
        let mut bucket = TokenBucket::new(Rate::from_mbps(8), KB);
        bucket.reconfigure(Timestamp::ZERO, Rate::from_mbps(8), ByteCount::new(100));
        bucket.reconfigure(Timestamp::ZERO, Rate::from_mbps(8), KB);
        assert!(!bucket.try_take(Timestamp::ZERO, ByteCount::new(101)));
        assert_eq!(
            bucket.ready_at(Timestamp::ZERO, KB),
            Timestamp::from_micros(900)
        );
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let largest = Rate::from_bps(u64::MAX - 1);
        let mut bucket = TokenBucket::new(largest, ByteCount::MAX);
        assert!(bucket.try_take(Timestamp::ZERO, ByteCount::MAX));
        assert!(bucket.try_take(Timestamp::MAX, ByteCount::MAX));

        let mut endless = TokenBucket::new(Rate::INFINITE, KB);
        assert!(endless.try_take(Timestamp::ZERO, KB));
        assert!(endless.try_take(Timestamp::ZERO, KB));
        assert!(!endless.try_take(Timestamp::ZERO, ByteCount::new(1_001)));

        let mut closed = TokenBucket::new(Rate::ZERO, KB);
        assert_eq!(closed.ready_at(Timestamp::ZERO, KB), Timestamp::ZERO);
        assert!(closed.try_take(Timestamp::ZERO, KB));
        assert_eq!(closed.ready_at(Timestamp::ZERO, KB), Timestamp::MAX);
    }

    #[test]
    fn time_does_not_run_backwards() {
        let mut bucket = TokenBucket::new(Rate::from_mbps(8), KB);
        assert!(bucket.try_take(Timestamp::from_millis(5), KB));
        assert!(!bucket.try_take(Timestamp::ZERO, ByteCount::new(1)));
        assert_eq!(
            bucket.ready_at(Timestamp::ZERO, KB),
            Timestamp::from_millis(6)
        );
    }
}
