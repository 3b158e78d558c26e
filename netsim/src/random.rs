//! Named streams of random numbers derived from one master seed.
//!
//! Every use of chance has a stream of its own ("forward.loss", "flow.0.start"), so switching one
//! feature on never shifts the draws of another. The numbers are part of what a seed means; they
//! must be the same on every platform and in every release, hence the whole recipe is written out
//! here:
//!
//! ```text
//!  seed (8 bytes, little endian) ++ name (UTF-8)
//!      | FNV-1a, 64 bits
//!      v
//!  SplitMix64 started at the hash: four outputs = 32 bytes, little endian
//!      | Pcg64::from_seed
//!      v
//!  PCG XSL RR 128/64
//! ```
//!
//! FNV-1a reads the bytes, SplitMix64 spreads similar hashes far apart, PCG has the quality and the
//! period (2^128) of the draws themselves.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use units::Fraction;

use crate::distributions::{normal, unit, whole};

/// The source of every random stream of one run.
///
/// ```
/// use netsim::RandomStreams;
///
/// let streams = RandomStreams::new(7);
/// let mut loss = streams.stream("forward.loss");
/// let mut again = RandomStreams::new(7).stream("forward.loss");
/// assert_eq!(loss.u64(), again.u64());
/// assert_ne!(loss.u64(), streams.stream("reverse.loss").u64());
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RandomStreams {
    seed: u64,
}

impl RandomStreams {
    /// The streams of the run with this master seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of this name, from its beginning. Asking twice for one name gives the same
    /// numbers twice.
    #[must_use]
    pub fn stream(&self, name: &str) -> RandomStream {
        let mut hash = Fnv1a::new();
        hash.write(&self.seed.to_le_bytes());
        hash.write(name.as_bytes());
        let mut state = hash.value();
        let mut seed = [0; 32];
        for word in seed.chunks_exact_mut(8) {
            word.copy_from_slice(&split_mix(&mut state).to_le_bytes());
        }
        RandomStream {
            generator: Pcg64::from_seed(seed),
        }
    }

    /// The master seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    generator: Pcg64,
}

impl RandomStream {
    /// The next number, uniform over all 64 bits.
    pub fn u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 to `bound - 1`, each exactly as likely as the others; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // 2^64 is seldom a multiple of `bound`; the numbers of the last, incomplete round are drawn
        // again.
        let incomplete = (u64::MAX % bound + 1) % bound;
        loop {
            let number = self.u64();
            if number <= u64::MAX - incomplete {
                return number % bound;
            }
        }
    }

    /// Whether something of this probability happens. Compares integers, so the probability is
    /// exact.
    ///
    /// One draw is taken whatever the probability, so changing a probability, to zero even, leaves
    /// all later draws of the stream where they were.
    pub fn chance(&mut self, probability: Fraction) -> bool {
        self.luck().is_within(probability)
    }

    /// A time with the exponential distribution of this mean: the gap between events that do not know of each other.
    /// One draw; at most 37 times the mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let mean = u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX) as f64;
        // 1 - [0, 1) is never zero.
        let nanos = -mean * libm::log(1.0 - unit(self.u64()));
        Duration::from_nanos(whole(nanos))
    }

    /// A number with the log-normal distribution of this median and this 95th percentile: many small and a few large
    /// ones, as the sizes of what is asked for on the web. Two draws, whatever the parameters; saturating.
    ///
    /// A 95th percentile below the median counts as the median, which is then always drawn.
    pub fn log_normal(&mut self, median: u64, p95: u64) -> u64 {
        /// The 95th percentile of the standard normal distribution.
        const NORMAL_P95: f64 = 1.644_853_626_951_472_2;
        let standard = normal([self.u64(), self.u64()]);
        if p95 <= median || median == 0 {
            return median;
        }
        let (median, p95) = (median as f64, p95 as f64);
        let sigma = libm::log(p95 / median) / NORMAL_P95;
        whole(median * libm::exp(sigma * standard))
    }

    /// A draw to be compared with probabilities later.
    pub(crate) fn luck(&mut self) -> Luck {
        let parts = u64::from(Fraction::ONE.as_ppb());
        // Always fits: the bound is 10^9.
        Luck(u32::try_from(self.below(parts)).unwrap_or(u32::MAX))
    }
}

/// A number from 0 to 999,999,999 that decides one random event.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Luck(u32);

impl Luck {
    /// Whether an event of this probability happens to the bearer.
    pub(crate) fn is_within(self, probability: Fraction) -> bool {
        self.0 < probability.as_ppb()
    }
}

/// FNV-1a with 64 bits: multiply-and-xor over bytes, with the published offset basis and prime.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fnv1a(u64);

impl Fnv1a {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

/// SplitMix64: a counter with the golden-ratio step, then two rounds of xor-shift and multiply.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let mut hash = Fnv1a::new();
        hash.write(b"foobar");
        assert_eq!(hash.value(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_mixer_is_the_published_one() {
        let mut state = 1_234_567;
        let first = [
            split_mix(&mut state),
            split_mix(&mut state),
            split_mix(&mut state),
        ];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    /// The expected numbers come from an independent implementation of the recipe above; a change
    /// here would silently change what every seed means.
    #[test]
    fn a_seed_means_the_same_numbers_for_ever() {
        let mut stream = RandomStreams::new(42).stream("forward.loss");
        assert_eq!(
            [stream.u64(), stream.u64(), stream.u64()],
            [
                0xed7f_eb20_778c_b216,
                0x9351_42be_06eb_a3d0,
                0xcc79_acca_af8f_e78f
            ]
        );
    }

    #[test]
    fn names_and_seeds_part_the_streams() {
        let mut firsts: Vec<u64> = Vec::new();
        for seed in 0..50 {
            for name in [
                "forward.loss",
                "reverse.loss",
                "flow.0.start",
                "flow.1.start",
                "",
            ] {
                firsts.push(RandomStreams::new(seed).stream(name).u64());
            }
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 250);
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut stream = RandomStreams::new(1).stream("below");
        let mut counts = [0_i64; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(stream.below(6)).unwrap()] += 1;
        }
        // The standard deviation of each count is 91.
        assert!(
            counts.iter().all(|count| (count - 10_000).abs() < 400),
            "{counts:?}"
        );
        assert_eq!(stream.below(1), 0);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn no_number_of_the_incomplete_round_is_used() {
        // With this bound a third of all draws is drawn again; without that, small numbers come
        // twice as often.
        let bound = u64::MAX / 3 * 2;
        let mut stream = RandomStreams::new(1).stream("below");
        let low = (0..10_000)
            .filter(|_| stream.below(bound) < bound / 2)
            .count();
        assert!((4_800..5_200).contains(&low), "{low}");
    }

    #[test]
    fn certain_and_impossible_events_are_just_that() {
        let mut stream = RandomStreams::new(1).stream("chance");
        assert!((0..1_000).all(|_| stream.chance(Fraction::ONE)));
        assert!((0..1_000).all(|_| !stream.chance(Fraction::ZERO)));
    }

    #[test]
    fn luck_is_compared_exactly() {
        let probability = Fraction::from_ppb(300).unwrap();
        assert!(Luck(299).is_within(probability));
        assert!(!Luck(300).is_within(probability));
        assert!(!Luck(0).is_within(Fraction::ZERO));
        assert!(Luck(999_999_999).is_within(Fraction::ONE));
    }

    #[test]
    fn log_normal_numbers_have_the_percentiles_asked_for() {
        let mut stream = RandomStreams::new(1).stream("sizes");
        let mut sizes: Vec<u64> = (0..40_000)
            .map(|_| stream.log_normal(12_000, 300_000))
            .collect();
        sizes.sort_unstable();
        // The standard deviation of these ranks is 0.25 % and 0.11 %; four of them, on either side.
        assert!(sizes[19_600] < 12_000 && sizes[20_400] > 12_000);
        assert!(sizes[37_820] < 300_000 && sizes[38_180] > 300_000);
        let mut of_no_width = RandomStreams::new(2).stream("sizes");
        let mut twin = of_no_width.clone();
        assert_eq!(of_no_width.log_normal(500, 500), 500);
        assert_eq!((twin.u64(), twin.u64()).1, {
            let mut again = RandomStreams::new(2).stream("sizes");
            again.u64();
            again.u64()
        });
        assert_eq!(of_no_width.u64(), twin.u64(), "two draws all the same");
    }

    #[test]
    fn a_probability_of_zero_still_takes_its_draw() {
        let mut with_loss = RandomStreams::new(3).stream("chance");
        let mut without = RandomStreams::new(3).stream("chance");
        for _ in 0..10 {
            with_loss.chance(Fraction::from_percent(30).unwrap());
            without.chance(Fraction::ZERO);
        }
        assert_eq!(with_loss.u64(), without.u64());
    }
}
