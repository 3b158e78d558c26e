//! How much of a link was used.

use std::time::Duration;

use units::{ByteCount, Fraction, Rate, Timestamp, math};

use crate::trace::Trace;

/// The bytes that left a serialiser, in buckets of 10 ms, and the rate it had meanwhile.
///
/// A packet counts as a whole at the instant its last bit left, whether the wire lost it afterwards
/// or not. Memory grows by 8 bytes for each 10 ms and ends with the first hour, 2.9 MB; later bytes
/// are not recorded.
#[derive(Clone, Debug)]
pub struct OutputRecord {
    buckets: Vec<u64>,
    /// When each rate began, ascending; never empty.
    rates: Vec<(Timestamp, Rate)>,
    /// The slots that the link has instead of the first rate.
    trace: Option<Trace>,
}

impl OutputRecord {
    /// Width of a bucket.
    pub const BUCKET: Duration = Duration::from_millis(10);
    /// How long records are kept, from the beginning of the run.
    pub const SPAN: Duration = Duration::from_secs(3_600);

    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            buckets: Vec::new(),
            rates: vec![(Timestamp::ZERO, rate)],
            trace: None,
        }
    }

    /// Of a link that has slots until a rate takes their place.
    pub(crate) fn of_trace(trace: Trace) -> Self {
        Self {
            trace: Some(trace),
            ..Self::new(Rate::ZERO)
        }
    }

    pub(crate) fn on_left(&mut self, at: Timestamp, size: ByteCount) {
        if at >= Timestamp::ZERO + Self::SPAN {
            return;
        }
        let index = bucket_index(at);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] += size.as_u64();
    }

    pub(crate) fn on_rate(&mut self, at: Timestamp, rate: Rate) {
        self.rates.push((at, rate));
    }

    /// Bytes in each bucket, from the beginning of the run to the latest packet.
    #[must_use]
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// What left the link between two instants, and what could have.
    ///
    /// Both instants are rounded down to a whole bucket. `None` if that leaves nothing between
    /// them, or if `until` is beyond [`OutputRecord::SPAN`].
    #[must_use]
    pub fn usage(&self, from: Timestamp, until: Timestamp) -> Option<Usage> {
        if until > Timestamp::ZERO + Self::SPAN {
            return None;
        }
        let (first, end) = (bucket_index(from), bucket_index(until));
        if first >= end {
            return None;
        }
        let moved = self
            .buckets
            .iter()
            .take(end)
            .skip(first)
            .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        Some(Usage {
            moved: ByteCount::new(moved),
            capacity: self.capacity(bucket_start(first), bucket_start(end)),
        })
    }

    /// The integral of the rate, in whole bytes, or what the slots carry.
    fn capacity(&self, from: Timestamp, until: Timestamp) -> ByteCount {
        let ends = self
            .rates
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain([Timestamp::MAX]);
        let mut bits_times_nanos = 0_u128;
        for (&(begins_at, rate), ends_at) in self.rates.iter().zip(ends) {
            let span = ends_at.min(until).saturating_since(begins_at.max(from));
            if rate.is_infinite() && !span.is_zero() {
                return ByteCount::MAX;
            }
            // At most 2^64 * 3.6e12 in all, because the spans add up to no more than an hour.
            bits_times_nanos += u128::from(rate.as_bps()) * span.as_nanos();
        }
        let by_rate = u64::try_from(bits_times_nanos / 8_000_000_000).unwrap_or(u64::MAX);
        let in_slots = self.trace.as_ref().map_or(ByteCount::ZERO, |trace| {
            let ends_at = self.rates.get(1).map_or(Timestamp::MAX, |(at, _)| *at);
            trace.capacity(from.min(ends_at), until.min(ends_at))
        });
        ByteCount::new(by_rate.saturating_add(in_slots.as_u64()))
    }
}

/// What left a link in some interval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Bytes whose packet left the serialiser in the interval.
    pub moved: ByteCount,
    /// Bytes that the rate, or the slots, allowed; [`ByteCount::MAX`] if it was infinite for a while.
    pub capacity: ByteCount,
}

impl Usage {
    /// The utilisation: moved over capacity, rounded down. At most one, although a packet that
    /// began before the interval may carry `moved` a little above `capacity`. `None` if nothing
    /// could move.
    #[must_use]
    pub fn share(self) -> Option<Fraction> {
        if self.capacity == ByteCount::ZERO {
            return None;
        }
        let one = Fraction::ONE.as_ppb();
        let ppb = math::mul_div(self.moved.as_u64(), u64::from(one), self.capacity.as_u64());
        Fraction::from_ppb(u32::try_from(ppb).unwrap_or(one).min(one))
    }
}

const BUCKET_NANOS: u64 = 10_000_000;

fn bucket_index(at: Timestamp) -> usize {
    usize::try_from(at.as_nanos() / BUCKET_NANOS).unwrap_or(usize::MAX)
}

fn bucket_start(index: usize) -> Timestamp {
    Timestamp::from_nanos(
        u64::try_from(index)
            .unwrap_or(u64::MAX)
            .saturating_mul(BUCKET_NANOS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: ByteCount = ByteCount::new(1_500);

    #[test]
    fn the_bucket_has_the_width_it_names() {
        assert_eq!(OutputRecord::BUCKET, Duration::from_nanos(BUCKET_NANOS));
    }

    #[test]
    fn bytes_count_where_their_packet_left() {
        let mut output = OutputRecord::new(Rate::from_mbps(12));
        output.on_left(Timestamp::from_nanos(9_999_999), MTU);
        output.on_left(Timestamp::from_millis(10), MTU);
        output.on_left(Timestamp::from_millis(35), MTU);
        assert_eq!(output.buckets(), [1_500, 1_500, 0, 1_500]);
        let usage = output
            .usage(Timestamp::from_millis(10), Timestamp::from_millis(30))
            .unwrap();
        assert_eq!(
            usage,
            Usage {
                moved: MTU,
                capacity: ByteCount::kb(30)
            }
        );
        assert_eq!(usage.share(), Fraction::from_percent(5));
    }

    #[test]
    fn capacity_follows_the_rate_through_its_changes() {
        let mut output = OutputRecord::new(Rate::from_mbps(8));
        output.on_rate(Timestamp::from_millis(15), Rate::ZERO);
        output.on_rate(Timestamp::from_millis(25), Rate::from_mbps(80));
        let capacity = |from, until| {
            output
                .usage(Timestamp::from_millis(from), Timestamp::from_millis(until))
                .unwrap()
                .capacity
        };
        assert_eq!(capacity(0, 10), ByteCount::kb(10));
        assert_eq!(capacity(0, 20), ByteCount::kb(15));
        assert_eq!(capacity(10, 30), ByteCount::kb(5 + 50));
        assert_eq!(capacity(0, 1_000), ByteCount::kb(15 + 9_750));
    }

    #[test]
    fn the_capacity_of_a_trace_is_in_its_slots_until_a_rate_comes() {
        // Three slots in every 20 ms, two of them at once.
        let trace = Trace::new(vec![15, 15, 20]).unwrap();
        let mut output = OutputRecord::of_trace(trace);
        let capacity = |output: &OutputRecord, from, until| {
            output
                .usage(Timestamp::from_millis(from), Timestamp::from_millis(until))
                .unwrap()
                .capacity
        };
        assert_eq!(capacity(&output, 0, 10), ByteCount::ZERO);
        assert_eq!(capacity(&output, 0, 20), MTU * 2);
        // The third slot of a round is at its end.
        assert_eq!(capacity(&output, 0, 30), MTU * 3);
        assert_eq!(capacity(&output, 20, 60), MTU * 6);
        output.on_rate(Timestamp::from_millis(30), Rate::from_mbps(12));
        assert_eq!(capacity(&output, 0, 40), MTU * 3 + MTU * 10);
    }

    #[test]
    fn an_unlimited_link_has_no_end_of_capacity() {
        let mut output = OutputRecord::new(Rate::INFINITE);
        output.on_rate(Timestamp::from_millis(10), Rate::from_mbps(8));
        let first = output
            .usage(Timestamp::ZERO, Timestamp::from_millis(20))
            .unwrap();
        assert_eq!(first.capacity, ByteCount::MAX);
        let second = output
            .usage(Timestamp::from_millis(10), Timestamp::from_millis(20))
            .unwrap();
        assert_eq!(second.capacity, ByteCount::kb(10));
    }

    #[test]
    fn what_cannot_be_answered_is_none() {
        let mut output = OutputRecord::new(Rate::ZERO);
        let usage = |output: &OutputRecord, from, until| {
            output.usage(Timestamp::from_millis(from), Timestamp::from_millis(until))
        };
        assert_eq!(usage(&output, 10, 19), None);
        assert_eq!(usage(&output, 30, 20), None);
        assert_eq!(usage(&output, 0, 3_600_001), None);
        assert_eq!(usage(&output, 0, 10).unwrap().share(), None);
        output.on_left(Timestamp::MAX, MTU);
        assert!(output.buckets().is_empty());
    }

    #[test]
    fn records_end_with_their_span() {
        let end = Timestamp::ZERO + OutputRecord::SPAN;
        let before_the_end = Timestamp::from_nanos(end.as_nanos() - 1);
        let mut output = OutputRecord::new(Rate::from_mbps(8));
        output.on_left(before_the_end, MTU);
        output.on_left(end, MTU);
        assert_eq!(output.buckets().len(), 360_000);
        let last_second = end.saturating_sub(Duration::from_secs(1));
        let expected = Usage {
            moved: MTU,
            capacity: ByteCount::mb(1),
        };
        assert_eq!(output.usage(last_second, end), Some(expected));
    }

    #[test]
    fn a_share_is_at_most_one() {
        let usage = Usage {
            moved: ByteCount::new(1_001),
            capacity: ByteCount::kb(1),
        };
        assert_eq!(usage.share(), Some(Fraction::ONE));
        let usage = Usage {
            moved: ByteCount::MAX,
            capacity: ByteCount::new(1),
        };
        assert_eq!(usage.share(), Some(Fraction::ONE));
    }
}
