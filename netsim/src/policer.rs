//! A policer: what comes faster than agreed is dropped.

use units::{ByteCount, Rate, Timestamp};

use crate::token_bucket::TokenBucket;

/// Drops what a token bucket does not cover, and never delays anything.
///
/// The bucket starts full. A packet larger than `burst` never passes. Bytes are those of the IP
/// packet, header included. This is `tc ... police` with its default action; RFC 2475 section 2.3.3
/// has the word.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Policer {
    /// How fast the bucket fills, in bits of IP packets per second. [`Rate::INFINITE`] lets every
    /// packet up to `burst` pass.
    pub rate: Rate,
    /// How much the bucket holds; at least 1 byte.
    pub burst: ByteCount,
}

impl Policer {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong: a burst of nothing.
    pub fn check(&self) -> Result<(), String> {
        if self.burst == ByteCount::ZERO {
            return Err("policer: a burst of 0 B lets nothing through, at least 1 B".to_owned());
        }
        Ok(())
    }
}

/// The running bucket of a [`Policer`].
#[derive(Clone, Debug)]
pub(crate) struct PolicerBucket {
    bucket: TokenBucket,
}

impl PolicerBucket {
    pub(crate) fn new(config: Policer) -> Self {
        Self {
            bucket: TokenBucket::new(config.rate, config.burst),
        }
    }

    /// Whether the packet that comes at `now` may pass; then its tokens are gone. One that may not
    /// is to be dropped, and takes none.
    pub(crate) fn admits(&mut self, now: Timestamp, size: ByteCount) -> bool {
        self.bucket.try_take(now, size)
    }

    /// Goes on with another rate and burst; see [`TokenBucket::reconfigure`].
    pub(crate) fn reconfigure(&mut self, now: Timestamp, config: Policer) {
        self.bucket.reconfigure(now, config.rate, config.burst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::random::RandomStreams;
    use crate::token_bucket::law;
    use crate::validation_rows::row;

    const BURST: ByteCount = ByteCount::new(24_576);

    fn policer() -> Policer {
        Policer {
            rate: Rate::from_mbps(10),
            burst: BURST,
        }
    }

    /// Random arrivals at about twice the rate, what passes of them.
    fn passed(
        bucket: &mut PolicerBucket,
        from: Timestamp,
        n: usize,
    ) -> Vec<(Timestamp, ByteCount)> {
        let mut random = RandomStreams::new(4).stream("arrivals");
        let mut now = from;
        let mut passed = Vec::new();
        for _ in 0..n {
            // 800 B on average in 320 us on average: 20 Mbit/s, in clumps.
            now += Duration::from_nanos(random.below(2) * random.below(1_280_000));
            let size = ByteCount::new(100 + random.below(1_401));
            if bucket.admits(now, size) {
                passed.push((now, size));
            }
        }
        passed
    }

    /// The row "token bucket", first half: for every i <= k.
    #[test]
    fn no_stretch_of_packets_exceeds_the_bucket() {
        let passed = passed(&mut PolicerBucket::new(policer()), Timestamp::ZERO, 200_000);
        let explains = law::assert_obeyed(&passed, policer().rate, BURST);
        // And the policer is no stricter than that: it lets through all that the rate allows.
        let bytes: u64 = passed.iter().map(|(_, size)| size.as_u64()).sum();
        let (last, _) = passed[passed.len() - 1];
        let allowed = policer()
            .rate
            .bytes_in(last.saturating_since(Timestamp::ZERO))
            + BURST;
        assert!(bytes <= allowed.as_u64());
        assert!(
            bytes > allowed.as_u64() / 1_000 * 998,
            "{bytes} of {allowed}"
        );
        // A bucket a fiftieth smaller would have been broken.
        let is_tight = std::panic::catch_unwind(|| {
            law::assert_obeyed(&passed, policer().rate, ByteCount::new(24_000));
        });
        assert!(is_tight.is_err());
        row(
            "link model",
            "token bucket, policer, 200,000 random arrivals: smallest B that the output obeys",
            format!("{} B", explains.as_u64()),
            format!("at most {} B", BURST.as_u64()),
        );
        row(
            "link model",
            "token bucket, policer, 200,000 random arrivals: passed",
            format!("{bytes} B"),
            format!("99.8 % to 100 % of B + r t, {} B", allowed.as_u64()),
        );
    }

    /// The row "token bucket", second half.
    #[test]
    fn after_idle_exactly_the_burst_passes() {
        let mut bucket = PolicerBucket::new(policer());
        let used = passed(&mut bucket, Timestamp::ZERO, 10_000);
        let (last, _) = used[used.len() - 1];
        let full = last + policer().rate.time_for(BURST);
        let all_at_once = [full, full + Duration::from_secs(9)].map(|idle_until| {
            let mut bucket = bucket.clone();
            for _ in 0..23 {
                assert!(bucket.admits(idle_until, ByteCount::new(1_024)));
            }
            let mut bytes = 23 * 1_024;
            while bucket.admits(idle_until, ByteCount::new(1)) {
                bytes += 1;
            }
            bytes
        });
        assert_eq!(all_at_once, [BURST.as_u64(); 2]);
        row(
            "link model",
            "token bucket, policer, after idle of B / r and of 9 s more: passed at once",
            all_at_once.map(|bytes| format!("{bytes} B")).join(", "),
            format!("{} B", BURST.as_u64()),
        );
    }

    #[test]
    fn a_packet_that_is_dropped_takes_no_tokens() {
        let mut bucket = PolicerBucket::new(policer());
        assert!(!bucket.admits(Timestamp::ZERO, BURST + ByteCount::new(1)));
        assert!(bucket.admits(Timestamp::ZERO, BURST));
    }

    #[test]
    fn a_live_change_obeys_each_law_in_its_time() {
        let mut bucket = PolicerBucket::new(policer());
        let before = passed(&mut bucket, Timestamp::ZERO, 20_000);
        let (change_at, _) = before[before.len() - 1];
        let slower = Policer {
            rate: Rate::from_mbps(3),
            burst: ByteCount::kb(10),
        };
        bucket.reconfigure(change_at, slower);
        let after = passed(&mut bucket, change_at, 20_000);
        law::assert_obeyed(&before, policer().rate, policer().burst);
        law::assert_obeyed(&after, slower.rate, slower.burst);
        assert!(after.len() < before.len() / 2);
    }

    #[test]
    fn a_burst_of_nothing_is_refused_in_one_line() {
        let nothing = Policer {
            burst: ByteCount::ZERO,
            ..policer()
        };
        assert_eq!(
            nothing.check().unwrap_err(),
            "policer: a burst of 0 B lets nothing through, at least 1 B"
        );
        assert_eq!(policer().check(), Ok(()));
    }
}
