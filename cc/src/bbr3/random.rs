//! The chance that the wait between two probes needs: small, seeded, the same on every platform.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): 64
//! bits of state and no bad seed. It spreads flows apart and guards no secret.

use std::time::Duration;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a span from zero up to `bound`, in whole nanoseconds.
    pub(super) fn span_below(&mut self, bound: Duration) -> Duration {
        let bound = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1);
        Duration::from_nanos(self.next() % bound)
    }

    /// Returns 0 or 1.
    pub(super) fn bit(&mut self) -> u64 {
        self.next() >> 63
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first two outputs for seed 1234567 of the reference generator.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn spans_fill_their_range_and_stay_below_its_end() {
        let mut random = SplitMix64::new(1);
        let bound = Duration::from_secs(1);
        let spans: Vec<Duration> = (0..1_000).map(|_| random.span_below(bound)).collect();
        assert!(spans.iter().all(|span| *span < bound));
        assert!(spans.iter().any(|span| *span < bound / 20));
        assert!(spans.iter().any(|span| *span > bound / 20 * 19));
    }
}
