//! Rates.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::ByteCount;
use crate::math::{NANOS_PER_SECOND, duration_from_nanos, mul_div, saturate};
use crate::parse::{ParseError, Quantity, Unit, write_decimal};

const BITS_PER_BYTE: u64 = 8;

/// A rate in bits per second. Prefixes are decimal: 1 Mbit/s is 1,000,000 bit/s.
///
/// [`Rate::ZERO`] is a link that stands still, [`Rate::INFINITE`] one that takes no time at all.
///
/// ```
/// use std::time::Duration;
/// use units::{ByteCount, Rate};
///
/// let rate = Rate::from_mbps(10);
/// assert_eq!(rate.as_bps(), 10_000_000);
/// assert_eq!(rate.bytes_in(Duration::from_secs(1)), ByteCount::new(1_250_000));
/// assert_eq!(rate.time_for(ByteCount::new(1250)), Duration::from_millis(1));
/// assert_eq!(rate.scale(5, 4).to_string(), "12.5 Mbit/s");
/// assert_eq!("64 kbit/s".parse(), Ok(Rate::from_kbps(64)));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// Everything moves at once. Larger than every other rate.
    pub const INFINITE: Self = Self(u64::MAX);
    /// The largest rate that is still a number; arithmetic on finite rates saturates here.
    const LARGEST_FINITE: Self = Self(u64::MAX - 1);

    /// A rate of `bps` bits per second; `u64::MAX` is [`Rate::INFINITE`].
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate of `kbps` times 1,000 bits per second, saturating below [`Rate::INFINITE`].
    #[must_use]
    pub const fn from_kbps(kbps: u64) -> Self {
        Self::finite(kbps.saturating_mul(1_000))
    }

    /// A rate of `mbps` times 1,000,000 bits per second, saturating below [`Rate::INFINITE`].
    #[must_use]
    pub const fn from_mbps(mbps: u64) -> Self {
        Self::finite(mbps.saturating_mul(1_000_000))
    }

    /// The average rate of `bytes` over `span`, rounded down to whole bits per second and
    /// saturating below [`Rate::INFINITE`]; a span of zero gives [`Rate::INFINITE`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use units::{ByteCount, Rate};
    ///
    /// assert_eq!(Rate::from_bytes_per(ByteCount::kb(125), Duration::from_millis(100)), Rate::from_mbps(10));
    /// ```
    #[must_use]
    pub fn from_bytes_per(bytes: ByteCount, span: Duration) -> Self {
        if span.is_zero() {
            return Self::INFINITE;
        }
        // At most 2^64 * 8e9 = 1.5e29, far below 2^128 = 3.4e38.
        let bits_times_nanos =
            u128::from(bytes.as_u64()) * u128::from(BITS_PER_BYTE * NANOS_PER_SECOND);
        Self::finite(saturate(bits_times_nanos / span.as_nanos()))
    }

    /// Bits per second; `u64::MAX` for [`Rate::INFINITE`].
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Whether this is [`Rate::INFINITE`].
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.0 == Self::INFINITE.0
    }

    /// The time `bytes` take at this rate, rounded up to whole nanoseconds: a packet is never
    /// through before its last bit.
    ///
    /// [`Rate::ZERO`] takes `Duration::MAX` for any number of bytes, [`Rate::INFINITE`] takes none.
    #[must_use]
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        match self {
            Self::ZERO => Duration::MAX,
            Self::INFINITE => Duration::ZERO,
            // At most 2^64 * 8e9 = 1.5e29 before the division, which only makes it smaller.
            Self(bps) => {
                let bits_times_nanos =
                    u128::from(bytes.as_u64()) * u128::from(BITS_PER_BYTE * NANOS_PER_SECOND);
                duration_from_nanos(bits_times_nanos.div_ceil(u128::from(bps)))
            }
        }
    }

    /// The whole bytes that pass at this rate in `span`, rounded down.
    ///
    /// [`Rate::INFINITE`] passes [`ByteCount::MAX`] in any span but zero.
    #[must_use]
    pub fn bytes_in(self, span: Duration) -> ByteCount {
        if self.is_infinite() {
            return if span.is_zero() {
                ByteCount::ZERO
            } else {
                ByteCount::MAX
            };
        }
        // Seconds and the rest apart, because nanoseconds as a whole times a rate do not fit 128
        // bits. The sum is at most (2^64-1)^2 + (2^64-1) < 2^128, and dropping the fraction of a
        // bit before dividing by eight does not change the floor.
        let bps = u128::from(self.0);
        let bits = bps * u128::from(span.as_secs())
            + bps * u128::from(span.subsec_nanos()) / u128::from(NANOS_PER_SECOND);
        ByteCount::new(saturate(bits / u128::from(BITS_PER_BYTE)))
    }

    /// This rate times `num / den`, rounded down, saturating below [`Rate::INFINITE`].
    ///
    /// [`Rate::INFINITE`] stays infinite unless `num` is zero. A `den` of zero saturates too.
    #[must_use]
    pub fn scale(self, num: u64, den: u64) -> Self {
        match (self, num) {
            (Self::INFINITE, 0) => Self::ZERO,
            (Self::INFINITE, _) => Self::INFINITE,
            (Self(bps), _) => Self::finite(mul_div(bps, num, den)),
        }
    }

    /// `bps`, kept below [`Rate::INFINITE`].
    const fn finite(bps: u64) -> Self {
        if bps == Self::INFINITE.0 {
            Self::LARGEST_FINITE
        } else {
            Self(bps)
        }
    }
}

const RATE: Quantity = Quantity {
    units: &[
        Unit::new("bit/s", 1),
        Unit::new("kbit/s", 1_000),
        Unit::new("Mbit/s", 1_000_000),
        Unit::new("Gbit/s", 1_000_000_000),
        Unit::new("bps", 1),
        Unit::new("kbps", 1_000),
        Unit::new("Mbps", 1_000_000),
        Unit::new("Gbps", 1_000_000_000),
    ],
    finest: "1 bit/s",
    largest: Rate::LARGEST_FINITE.0,
    largest_text: "18446744073.709551614 Gbit/s",
    allowed: "a rate is a number and one of bit/s, kbit/s, Mbit/s, Gbit/s, bps, kbps, Mbps, Gbps, for example \
              \"100 Mbit/s\" or \"unlimited\"",
};

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads "100 Mbit/s", "2.5 Mbps", "unlimited". All spellings mean bits and decimal prefixes.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.trim() == "unlimited" {
            return Ok(Self::INFINITE);
        }
        RATE.parse(text).map(Self)
    }
}

impl fmt::Display for Rate {
    /// The exact value in the largest unit that keeps a digit before the point: "1.5 Mbit/s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_infinite() {
            return f.pad("unlimited");
        }
        let unit = RATE.units[..4]
            .iter()
            .rev()
            .find(|unit| self.0 >= unit.scale)
            .unwrap_or(&RATE.units[0]);
        f.pad(&write_decimal(self.0, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_second_at_a_rate_moves_exactly_that_many_bits() {
        for bps in [8, 64_000, 1_000_000, 100_000_000, 12_345_678_904] {
            let rate = Rate::from_bps(bps);
            let moved = rate.bytes_in(Duration::from_secs(1));
            assert_eq!(moved.as_u64() * 8, bps);
            assert_eq!(rate.time_for(moved), Duration::from_secs(1));
            assert_eq!(Rate::from_bytes_per(moved, Duration::from_secs(1)), rate);
        }
    }

    #[test]
    fn prefixes_are_decimal() {
        assert_eq!(Rate::from_kbps(1).as_bps(), 1_000);
        assert_eq!(Rate::from_mbps(1).as_bps(), 1_000_000);
        assert_eq!("1 Gbit/s".parse(), Ok(Rate::from_bps(1_000_000_000)));
        assert_eq!(
            Rate::from_mbps(1).bytes_in(Duration::from_secs(1)),
            ByteCount::kb(125)
        );
    }

    #[test]
    fn the_time_of_a_packet_is_rounded_up() {
        // 1500 B at 7 Mbit/s: 12,000 bits / 7e6 = 1,714,285.71... ns.
        assert_eq!(
            Rate::from_mbps(7).time_for(ByteCount::new(1500)),
            Duration::from_nanos(1_714_286)
        );
        assert_eq!(
            Rate::from_bps(8_000_000_000).time_for(ByteCount::new(1)),
            Duration::from_nanos(1)
        );
        assert_eq!(
            Rate::from_bps(16_000_000_000).time_for(ByteCount::new(1)),
            Duration::from_nanos(1)
        );
        assert_eq!(Rate::from_mbps(7).time_for(ByteCount::ZERO), Duration::ZERO);
    }

    #[test]
    fn the_bytes_in_a_span_are_rounded_down() {
        assert_eq!(
            Rate::from_bps(15).bytes_in(Duration::from_secs(1)),
            ByteCount::new(1)
        );
        assert_eq!(
            Rate::from_mbps(7).bytes_in(Duration::from_nanos(1_714_285)),
            ByteCount::new(1499)
        );
        assert_eq!(
            Rate::from_mbps(7).bytes_in(Duration::from_nanos(1_714_286)),
            ByteCount::new(1500)
        );
    }

    #[test]
    fn the_two_ends_are_defined() {
        let packet = ByteCount::new(1200);
        assert_eq!(Rate::ZERO.time_for(packet), Duration::MAX);
        assert_eq!(Rate::ZERO.bytes_in(Duration::MAX), ByteCount::ZERO);
        assert_eq!(Rate::INFINITE.time_for(ByteCount::MAX), Duration::ZERO);
        assert_eq!(
            Rate::INFINITE.bytes_in(Duration::from_nanos(1)),
            ByteCount::MAX
        );
        assert_eq!(Rate::INFINITE.bytes_in(Duration::ZERO), ByteCount::ZERO);
        assert_eq!(Rate::from_bps(1).time_for(ByteCount::MAX), Duration::MAX);
        assert_eq!(
            Rate::from_bps(u64::MAX - 1).bytes_in(Duration::MAX),
            ByteCount::MAX
        );
        assert_eq!(Rate::from_bytes_per(packet, Duration::ZERO), Rate::INFINITE);
    }

    #[test]
    fn only_the_constant_is_infinite() {
        for large in [
            Rate::from_kbps(u64::MAX),
            Rate::from_mbps(u64::MAX),
            Rate::from_mbps(5).scale(u64::MAX, 1),
            Rate::from_mbps(5).scale(1, 0),
            Rate::from_bytes_per(ByteCount::MAX, Duration::from_nanos(1)),
        ] {
            assert!(!large.is_infinite());
            assert!(large < Rate::INFINITE);
        }
        assert!(Rate::INFINITE.scale(1, 2).is_infinite());
        assert_eq!(Rate::INFINITE.scale(0, 2), Rate::ZERO);
    }

    #[test]
    fn scaling_rounds_down_once() {
        assert_eq!(Rate::from_bps(100).scale(2, 3), Rate::from_bps(66));
        assert_eq!(
            Rate::from_bps(u64::MAX / 2).scale(3, 3),
            Rate::from_bps(u64::MAX / 2)
        );
    }

    #[test]
    fn display_is_exact_at_any_value() {
        assert_eq!(Rate::ZERO.to_string(), "0 bit/s");
        assert_eq!(Rate::from_mbps(100).to_string(), "100 Mbit/s");
        assert_eq!(Rate::from_kbps(64).to_string(), "64 kbit/s");
        assert_eq!(Rate::from_kbps(2_500).to_string(), "2.5 Mbit/s");
        assert_eq!(Rate::INFINITE.to_string(), "unlimited");
        assert_eq!(
            Rate::LARGEST_FINITE.to_string(),
            "18446744073.709551614 Gbit/s"
        );
        assert_eq!(format!("{:>10}|", Rate::from_mbps(1)), "  1 Mbit/s|");
    }

    #[test]
    fn what_is_displayed_parses_to_the_same_rate() {
        for bps in [
            0,
            1,
            999,
            1_001,
            95_123_457,
            40_000_000_000,
            u64::MAX - 1,
            u64::MAX,
        ] {
            let rate = Rate::from_bps(bps);
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }

    #[test]
    fn text_means_bits_with_decimal_prefixes() {
        for (text, bps) in [
            ("100 Mbit/s", 100_000_000),
            ("100Mbps", 100_000_000),
            (" 2.5 Mbit/s ", 2_500_000),
            ("64 kbps", 64_000),
            ("300 bit/s", 300),
            ("0.001 kbit/s", 1),
            ("0 Mbit/s", 0),
            ("40 Gbps", 40_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
        }
    }

    #[test]
    fn a_bad_rate_gets_one_clear_line() {
        for (text, problem) in [
            ("100 MB/s", "unknown unit \"MB/s\""),
            ("100 mbit/s", "unknown unit \"mbit/s\""),
            ("100", "the unit is missing"),
            ("-1 bit/s", "negative"),
            ("fast", "not a number"),
            ("0.0001 kbit/s", "finer than 1 bit/s"),
            (
                "18446744073709551615 bit/s",
                "too large, the largest is 18446744073.709551614 Gbit/s",
            ),
        ] {
            assert_eq!(
                text.parse::<Rate>().unwrap_err().to_string(),
                format!(
                    "\"{text}\": {problem}; a rate is a number and one of bit/s, kbit/s, Mbit/s, Gbit/s, bps, \
                     kbps, Mbps, Gbps, for example \"100 Mbit/s\" or \"unlimited\""
                )
            );
        }
    }
}
