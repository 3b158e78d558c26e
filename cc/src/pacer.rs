//! Spreads packets over time: says when the next batch may leave.
//!
//! RFC 9002 section 7.7 asks for pacing or a bound on bursts; this does both. The arithmetic is a single instant, the
//! release, that every batch pushes ahead by the time it takes at the current rate:
//!
//! ```text
//!   release := max(release, now - quantum/rate) + bytes/rate
//! ```
//!
//! The lower bound on the old release is the catch-up: a sender that is woken late may make up for the delay, by one
//! quantum at most. Without it (`max(release, now)`) wake-ups 50 µs late cost 5 % of the rate at a quantum of
//! 1 ms; without a bound an hour's silence would be an hour's burst. After idle there is nothing to make up
//! for, so [`Pacer::on_idle_restart`] moves the release to `now` first and a restart sends one quantum, not two.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

/// The release time of the next batch.
///
/// ```
/// use cc::pacer::Pacer;
/// use units::{ByteCount, Rate, Timestamp};
///
/// let mut pacer = Pacer::new();
/// let packet = ByteCount::new(1_250);
/// let now = Timestamp::from_millis(5);
/// pacer.on_idle_restart(now);
/// pacer.on_sent(now, packet, Rate::from_mbps(10), packet * 2);
/// assert_eq!(pacer.release_at(), Timestamp::from_millis(6));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Pacer {
    /// The release, rounded down to whole nanoseconds.
    release_at: Timestamp,
    /// What was rounded off, in units of `1 / carry_rate` nanoseconds: `0 <= carry < carry_rate`.
    ///
    /// Without it, 64 packets of 1,200 B at 10 Gbit/s lose nothing, but at 7 Gbit/s each loses 0.43 ns of
    /// 1,371: 0.03 %, as much as a tenth of what the pacer is allowed to be wrong.
    carry: u64,
    /// The rate, in bits per second, in whose units `carry` is kept.
    carry_rate: u64,
}

impl Pacer {
    /// Makes a pacer that allows a first batch at once.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            release_at: Timestamp::ZERO,
            carry: 0,
            carry_rate: 1,
        }
    }

    /// Charges a batch that left at `now`: `bytes` in total, probes and acknowledgements included.
    ///
    /// `quantum` bounds how much lateness may be made up for. At [`Rate::INFINITE`] the charge is nothing; at
    /// [`Rate::ZERO`] the release never comes, until the rate and a restart say otherwise.
    pub fn on_sent(&mut self, now: Timestamp, bytes: ByteCount, rate: Rate, quantum: ByteCount) {
        let earliest = now.saturating_sub(rate.time_for(quantum));
        if self.release_at < earliest {
            self.release_at = earliest;
            self.carry = 0;
        }
        if rate == Rate::ZERO {
            self.release_at = Timestamp::MAX;
        } else if !rate.is_infinite() {
            self.advance(bytes, rate.as_bps());
        }
    }

    /// Begins a busy period: nothing waited to be sent until `now`, so nothing is to be made up for.
    ///
    /// A release still ahead stays, or a sender with many short pauses would not be paced at all.
    pub fn on_idle_restart(&mut self, now: Timestamp) {
        if self.release_at < now {
            self.release_at = now;
            self.carry = 0;
        }
    }

    /// Returns when the next batch may leave.
    #[must_use]
    pub const fn release_at(&self) -> Timestamp {
        self.release_at
    }

    /// Says whether a batch may leave at `now`.
    #[must_use]
    pub fn can_release(&self, now: Timestamp) -> bool {
        now >= self.release_at
    }

    /// Moves the release ahead by the time `bytes` take at `bps` bits per second, exactly.
    fn advance(&mut self, bytes: ByteCount, bps: u64) {
        if bps != self.carry_rate {
            // The same fraction of a nanosecond, in the new unit; rounding down keeps it below one.
            self.carry = units::math::mul_div(self.carry, bps, self.carry_rate);
            self.carry_rate = bps;
        }
        // At most 2^64 x 8e9 + 2^64 = 1.5e29, far below 2^128.
        let numerator = u128::from(bytes.as_u64()) * BITS_TIMES_NANOS + u128::from(self.carry);
        let nanos = u64::try_from(numerator / u128::from(bps)).unwrap_or(u64::MAX);
        self.carry = u64::try_from(numerator % u128::from(bps)).unwrap_or(0);
        self.release_at += Duration::from_nanos(nanos);
    }
}

/// Eight bits per byte times 10^9 nanoseconds per second.
const BITS_TIMES_NANOS: u128 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_350);
    const QUANTUM: ByteCount = ByteCount::new(2_700);

    /// Sends a quantum at each release for `span`, every wake-up `late` after it; returns all bytes sent.
    fn run(rate: Rate, span: Duration, late: Duration) -> ByteCount {
        let mut pacer = Pacer::new();
        let start = Timestamp::from_secs(1);
        let mut now = start;
        pacer.on_idle_restart(now);
        let mut sent = ByteCount::ZERO;
        while now.saturating_since(start) < span {
            assert!(pacer.can_release(now));
            pacer.on_sent(now, QUANTUM, rate, QUANTUM);
            sent += QUANTUM;
            now = now.max(pacer.release_at() + late);
        }
        sent
    }

    #[track_caller]
    fn assert_within_a_thousandth(sent: ByteCount, wanted: ByteCount) {
        let off = sent.as_u64().abs_diff(wanted.as_u64());
        assert!(
            off * 1_000 <= wanted.as_u64(),
            "sent {sent}, wanted {wanted}"
        );
    }

    #[test]
    fn ten_megabit_per_second_hold_over_ten_seconds_with_exact_wake_ups() {
        let sent = run(Rate::from_mbps(10), Duration::from_secs(10), Duration::ZERO);
        assert_within_a_thousandth(sent, ByteCount::new(12_500_000));
    }

    #[test]
    fn ten_megabit_per_second_hold_over_ten_seconds_with_wake_ups_a_millisecond_late() {
        let sent = run(
            Rate::from_mbps(10),
            Duration::from_secs(10),
            Duration::from_millis(1),
        );
        assert_within_a_thousandth(sent, ByteCount::new(12_500_000));
    }

    #[test]
    fn the_remainder_below_a_nanosecond_is_carried() {
        // 2,700 B at 7 Gbit/s take 3,085.714... ns: after 7 batches exactly 21,600 ns.
        let mut pacer = Pacer::new();
        let now = Timestamp::from_secs(1);
        pacer.on_idle_restart(now);
        for _ in 0..7 {
            pacer.on_sent(now, QUANTUM, Rate::from_mbps(7_000), QUANTUM);
        }
        assert_eq!(pacer.release_at(), now + Duration::from_nanos(21_600));
    }

    #[test]
    fn a_changed_rate_keeps_the_fraction_of_a_nanosecond() {
        let mut pacer = Pacer::new();
        let now = Timestamp::from_secs(1);
        pacer.on_idle_restart(now);
        // 1 B at 3 bit/s = 2,666,666,666.67 ns, then 1 B at 6 bit/s = 1,333,333,333.33 ns: 4 s together.
        pacer.on_sent(now, ByteCount::new(1), Rate::from_bps(3), QUANTUM);
        pacer.on_sent(now, ByteCount::new(1), Rate::from_bps(6), QUANTUM);
        assert_eq!(pacer.release_at(), now + Duration::from_secs(4));
    }

    #[test]
    fn at_64_kbit_per_second_every_gap_is_exact() {
        let mut pacer = Pacer::new();
        let mut now = Timestamp::from_millis(3);
        pacer.on_idle_restart(now);
        for _ in 0..100 {
            pacer.on_sent(now, PACKET, Rate::from_kbps(64), QUANTUM);
            let gap = pacer.release_at().saturating_since(now);
            assert_eq!(gap, Duration::from_micros(168_750));
            now = pacer.release_at();
        }
    }

    #[test]
    fn a_long_delay_is_made_up_for_by_one_quantum_at_most() {
        let rate = Rate::from_mbps(10);
        let mut pacer = Pacer::new();
        pacer.on_idle_restart(Timestamp::from_secs(1));
        pacer.on_sent(Timestamp::from_secs(1), QUANTUM, rate, QUANTUM);
        let now = Timestamp::from_secs(100);
        let mut batches = 0;
        while pacer.can_release(now) {
            pacer.on_sent(now, QUANTUM, rate, QUANTUM);
            batches += 1;
        }
        assert_eq!(batches, 2, "the quantum that was due, and one to catch up");
        assert_eq!(pacer.release_at(), now + rate.time_for(QUANTUM));
    }

    #[test]
    fn a_restart_after_idle_sends_one_quantum() {
        let rate = Rate::from_mbps(10);
        let mut pacer = Pacer::new();
        pacer.on_sent(Timestamp::from_secs(1), QUANTUM, rate, QUANTUM);
        let now = Timestamp::from_secs(100);
        pacer.on_idle_restart(now);
        let mut batches = 0;
        while pacer.can_release(now) {
            pacer.on_sent(now, QUANTUM, rate, QUANTUM);
            batches += 1;
        }
        assert_eq!(batches, 1);
    }

    #[test]
    fn a_restart_does_not_shorten_a_gap_that_is_still_running() {
        let mut pacer = Pacer::new();
        let now = Timestamp::from_secs(1);
        pacer.on_idle_restart(now);
        pacer.on_sent(now, PACKET, Rate::from_kbps(64), QUANTUM);
        let release = pacer.release_at();
        pacer.on_idle_restart(now + Duration::from_millis(1));
        assert_eq!(pacer.release_at(), release);
    }

    #[test]
    fn an_infinite_rate_delays_nothing_and_a_rate_of_zero_delays_for_ever() {
        let mut pacer = Pacer::new();
        let now = Timestamp::from_secs(1);
        pacer.on_sent(now, ByteCount::MAX, Rate::INFINITE, QUANTUM);
        assert!(pacer.can_release(now));
        pacer.on_sent(now, PACKET, Rate::ZERO, QUANTUM);
        assert_eq!(pacer.release_at(), Timestamp::MAX);
    }

    #[test]
    fn the_largest_charge_saturates() {
        let mut pacer = Pacer::new();
        pacer.on_sent(
            Timestamp::MAX,
            ByteCount::MAX,
            Rate::from_bps(1),
            ByteCount::MAX,
        );
        assert_eq!(pacer.release_at(), Timestamp::MAX);
    }
}
