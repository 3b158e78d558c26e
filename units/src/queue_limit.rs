//! How much a queue may hold.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::bytes::BYTE_COUNT;
use crate::parse::{ParseError, Quantity, Unit, write_decimal};
use crate::{ByteCount, Rate};

/// A queue limit as people write it; [`QueueLimit::resolve`] turns it into bytes for one link.
///
/// ```
/// use std::time::Duration;
/// use units::{ByteCount, QueueLimit, Rate};
///
/// let limit: QueueLimit = "2 BDP".parse()?;
/// let bytes = limit.resolve(Rate::from_mbps(100), Duration::from_millis(10), ByteCount::new(1500));
/// assert_eq!(bytes, ByteCount::kb(250));
/// # Ok::<(), units::ParseError>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum QueueLimit {
    /// So many bytes.
    Bytes(ByteCount),
    /// A multiple of the bandwidth-delay product, in thousandths.
    Bdp {
        /// 1,000 is one bandwidth-delay product.
        thousandths: u64,
    },
    /// So many packets of full size.
    Packets(u64),
    /// No limit.
    Unlimited,
}

impl QueueLimit {
    /// The limit in bytes on a link of this `rate` and base `rtt` that carries packets of size
    /// `packet`.
    ///
    /// A bandwidth-delay product at [`Rate::INFINITE`] is [`ByteCount::MAX`], unless `rtt` is zero.
    #[must_use]
    pub fn resolve(self, rate: Rate, rtt: Duration, packet: ByteCount) -> ByteCount {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Bdp { thousandths } => match rate.bytes_in(rtt) {
                ByteCount::MAX => ByteCount::MAX,
                bdp => bdp.scale(thousandths, 1_000),
            },
            Self::Packets(count) => packet * count,
            Self::Unlimited => ByteCount::MAX,
        }
    }
}

const BDP: Unit = Unit::new("BDP", 1_000);

const LIMIT_IN_BDP: Quantity = queue_limit(&[BDP], "0.001 BDP", "18446744073709551.615 BDP");
const LIMIT_IN_PACKETS: Quantity = queue_limit(
    &[Unit::new("packets", 1), Unit::new("packet", 1)],
    "1 packet",
    "18446744073709551615 packets",
);
const LIMIT_IN_BYTES: Quantity =
    queue_limit(BYTE_COUNT.units, BYTE_COUNT.finest, BYTE_COUNT.largest_text);

const fn queue_limit(
    units: &'static [Unit],
    finest: &'static str,
    largest_text: &'static str,
) -> Quantity {
    Quantity {
        units,
        finest,
        largest: u64::MAX,
        largest_text,
        allowed: "a queue limit is a number and one of B, kB, MB, GB, KiB, MiB, GiB, BDP, packets, for example \
                  \"250 kB\", \"2 BDP\", \"333 packets\" or \"unlimited\"",
    }
}

impl FromStr for QueueLimit {
    type Err = ParseError;

    /// Reads "250 kB", "1.5 BDP", "333 packets", "unlimited".
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text == "unlimited" {
            Ok(Self::Unlimited)
        } else if text.ends_with("BDP") {
            LIMIT_IN_BDP
                .parse(text)
                .map(|thousandths| Self::Bdp { thousandths })
        } else if text.ends_with("packets") || text.ends_with("packet") {
            LIMIT_IN_PACKETS.parse(text).map(Self::Packets)
        } else {
            LIMIT_IN_BYTES
                .parse(text)
                .map(|bytes| Self::Bytes(ByteCount::new(bytes)))
        }
    }
}

impl fmt::Display for QueueLimit {
    /// The form it is written in: "250 kB", "1.5 BDP", "333 packets", "unlimited".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Bdp { thousandths } => f.pad(&write_decimal(*thousandths, &BDP)),
            Self::Packets(1) => f.pad("1 packet"),
            Self::Packets(count) => f.pad(&format!("{count} packets")),
            Self::Unlimited => f.pad("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_and_prints_itself() {
        for (text, limit) in [
            ("250 kB", QueueLimit::Bytes(ByteCount::kb(250))),
            ("2 BDP", QueueLimit::Bdp { thousandths: 2_000 }),
            ("1.5 BDP", QueueLimit::Bdp { thousandths: 1_500 }),
            ("333 packets", QueueLimit::Packets(333)),
            ("1 packet", QueueLimit::Packets(1)),
            ("unlimited", QueueLimit::Unlimited),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string(), text);
        }
        assert_eq!("64 KiB".parse(), Ok(QueueLimit::Bytes(ByteCount::kib(64))));
        assert_eq!("2BDP".parse(), Ok(QueueLimit::Bdp { thousandths: 2_000 }));
    }

    #[test]
    fn each_form_resolves_to_bytes() {
        let resolve = |text: &str| {
            let limit: QueueLimit = text.parse().unwrap();
            limit.resolve(
                Rate::from_mbps(100),
                Duration::from_millis(20),
                ByteCount::new(1500),
            )
        };
        assert_eq!(resolve("1 BDP"), ByteCount::kb(250));
        assert_eq!(resolve("1.5 BDP"), ByteCount::kb(375));
        assert_eq!(resolve("0 BDP"), ByteCount::ZERO);
        assert_eq!(resolve("10 packets"), ByteCount::kb(15));
        assert_eq!(resolve("64 kB"), ByteCount::kb(64));
        assert_eq!(resolve("unlimited"), ByteCount::MAX);
        let half = QueueLimit::Bdp { thousandths: 500 };
        assert_eq!(
            half.resolve(
                Rate::INFINITE,
                Duration::from_millis(20),
                ByteCount::new(1500)
            ),
            ByteCount::MAX
        );
    }

    #[test]
    fn a_bad_limit_gets_one_clear_line() {
        let units = "a number and one of B, kB, MB, GB, KiB, MiB, GiB, BDP, packets";
        for (text, problem) in [
            ("2 bdp", "unknown unit \"bdp\""),
            ("2", "the unit is missing"),
            ("0.0001 BDP", "finer than 0.001 BDP"),
            ("1.5 packets", "finer than 1 packet"),
            ("-3 packets", "negative"),
            ("big", "not a number"),
        ] {
            assert_eq!(
                text.parse::<QueueLimit>().unwrap_err().to_string(),
                format!(
                    "\"{text}\": {problem}; a queue limit is {units}, for example \"250 kB\", \"2 BDP\", \"333 \
                     packets\" or \"unlimited\""
                )
            );
        }
    }
}
