//! CUBIC: after a cut, back to the old window fast, linger there, then look for more.
//!
//! Follows RFC 9438; slow start, the reaction to congestion and the recovery period are in
//! [`loss_based`](crate::loss_based), the curve itself in its own file.
//!
//! Three stamps are kept strictly apart:
//!
//! - the recovery boundary (`Episode`): set by a cut, never moved. It decides which packets are old news;
//! - the epoch (`Epoch::began_at`): set by the first acknowledgement that counts after a cut, never moved either;
//! - the time the epoch does not count (`Epoch::excluded`): it only grows, by idle and by untested spans.
//!
//! The curve's time is `now - began_at - excluded`. A stack that moved one shared stamp instead found its boundary
//! ahead of every packet it sent, and stayed at two datagrams for good.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use crate::cubic_curve::CubicCurve;
use crate::loss_based::{Avoidance, CountedAck, LossBased};

/// The CUBIC controller.
pub type Cubic = LossBased<CubicGrowth>;

impl Cubic {
    /// Makes a controller in slow start at the initial window, with fast convergence.
    #[must_use]
    pub fn new(max_datagram_size: ByteCount) -> Self {
        Self::with_avoidance(max_datagram_size, CubicGrowth::new())
    }

    /// Makes one that never gives way to newcomers (RFC 9438 section 4.7 is off). For lone flows.
    #[must_use]
    pub fn without_fast_convergence(max_datagram_size: ByteCount) -> Self {
        let growth = CubicGrowth {
            has_fast_convergence: false,
            ..CubicGrowth::new()
        };
        Self::with_avoidance(max_datagram_size, growth)
    }
}

/// Growth along the cubic curve or, where that is slower, as fast as Reno.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CubicGrowth {
    has_fast_convergence: bool,
    /// `W_max`: the level of the next epoch's plateau; zero before the first cut.
    w_max: ByteCount,
    /// `cwnd_prior`: the window at the last cut; zero before the first one.
    prior: ByteCount,
    /// The growth since the last cut; `None` until an acknowledgement counts.
    epoch: Option<Epoch>,
    last_sent_at: Timestamp,
    last_feedback_at: Timestamp,
}

impl Default for CubicGrowth {
    fn default() -> Self {
        Self::new()
    }
}

impl CubicGrowth {
    /// Makes the state of a flow without history, with fast convergence.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            has_fast_convergence: true,
            w_max: ByteCount::ZERO,
            prior: ByteCount::ZERO,
            epoch: None,
            last_sent_at: Timestamp::ZERO,
            last_feedback_at: Timestamp::ZERO,
        }
    }
}

impl Avoidance for CubicGrowth {
    const NAME: &'static str = "cubic";

    /// RFC 9438 section 4.6, `beta_cubic`.
    const REDUCTION: (u64, u64) = (7, 10);

    /// RFC 9438 sections 4.2 and 5.8: time in which the window could not be tried does not count. With nothing in
    /// flight that is the time since the last thing that happened, be it a departure or feedback.
    fn on_sent(&mut self, now: Timestamp, was_idle: bool) {
        let quiet_since = self.last_sent_at.max(self.last_feedback_at);
        if let (true, Some(epoch)) = (was_idle, &mut self.epoch) {
            epoch.exclude_idle(now, quiet_since);
        }
        self.last_sent_at = now;
    }

    /// RFC 9438 sections 4.6 and 4.7. The window itself stands for the flight size, because it does not grow
    /// while it is not filled.
    fn on_reduction(&mut self, before: ByteCount, _after: ByteCount) {
        // Fast convergence: a flow that is cut before it is back at its last plateau leaves room for others and
        // aims at (1 + beta) / 2 of its window.
        self.w_max = if self.has_fast_convergence && before < self.w_max {
            before.scale(17, 20)
        } else {
            before
        };
        self.prior = before;
        self.epoch = None;
    }

    /// RFC 9438 sections 4.8 and 4.10: the plateau is the window itself, so `K` is zero. `cwnd_prior` stays what
    /// it was at the last cut; where there was none, no window is below it and alpha is 1 at once.
    fn on_slow_start_exit(&mut self, window: ByteCount) {
        self.w_max = window;
        self.epoch = None;
    }

    fn on_acked(&mut self, now: Timestamp, ack: &CountedAck) -> ByteCount {
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::begin(now, ack, self.w_max));
        epoch.resume(now);
        epoch.grow(now, ack, self.prior)
    }

    fn on_untested(&mut self, now: Timestamp) {
        if let Some(epoch) = &mut self.epoch {
            epoch.pause(now);
        }
    }

    fn on_feedback_end(&mut self, now: Timestamp) {
        self.last_feedback_at = now;
    }
}

/// The growth since one cut.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Epoch {
    /// `t_epoch`: when the first acknowledgement after the cut counted.
    began_at: Timestamp,
    /// Time since then that the curve does not count.
    excluded: Duration,
    /// Since when acknowledgements have not counted, if the latest did not.
    paused_at: Option<Timestamp>,
    curve: CubicCurve,
    /// `W_est`: the window Reno would have, up to the remainder.
    reno_window: ByteCount,
    reno_remainder: Remainder,
    /// Growth of the window along the curve that is not whole bytes yet.
    remainder: Remainder,
}

impl Epoch {
    fn begin(now: Timestamp, ack: &CountedAck, w_max: ByteCount) -> Self {
        Self {
            began_at: now,
            excluded: Duration::ZERO,
            paused_at: None,
            curve: CubicCurve::new(ack.window, w_max, ack.max_datagram_size),
            reno_window: ack.window,
            reno_remainder: Remainder::default(),
            remainder: Remainder::default(),
        }
    }

    /// Stops the curve's clock, unless it is stopped.
    fn pause(&mut self, now: Timestamp) {
        self.paused_at.get_or_insert(now);
    }

    /// Lets the curve's clock run again, if it is stopped.
    fn resume(&mut self, now: Timestamp) {
        if let Some(paused_at) = self.paused_at.take() {
            self.exclude(now.saturating_since(paused_at));
        }
    }

    /// Leaves the time from `quiet_since` to `now` out, unless the clock is stopped anyway.
    fn exclude_idle(&mut self, now: Timestamp, quiet_since: Timestamp) {
        if self.paused_at.is_none() {
            self.exclude(now.saturating_since(quiet_since.max(self.began_at)));
        }
    }

    fn exclude(&mut self, span: Duration) {
        self.excluded = self.excluded.saturating_add(span);
    }

    fn grow(&mut self, now: Timestamp, ack: &CountedAck, prior: ByteCount) -> ByteCount {
        self.grow_reno_window(ack, prior);
        let t = self.elapsed(now);
        if self.curve.at(t) < self.reno_window {
            // RFC 9438 section 4.3, the Reno-friendly region.
            return self.reno_window.max(ack.window);
        }
        // Section 4.2: aim at where the curve is one RTT ahead, but no more than half as much again.
        let ahead = t.saturating_add(ack.smoothed_rtt);
        let target = self
            .curve
            .at(ahead)
            .clamp(ack.window, ack.window.scale(3, 2));
        // Sections 4.4 and 4.5: (target - cwnd) / cwnd of a segment per segment; here per byte. The product is
        // below 2^39 (half the largest window) x 2^24 = 2^63.
        let gap = (target - ack.window).as_u64();
        let numerator = gap.saturating_mul(ack.size.as_u64());
        ack.window + self.remainder.divide(numerator, ack.window.as_u64())
    }

    /// RFC 9438 section 4.3: `W_est` grows by alpha segments per window of acknowledged segments, not with time.
    /// Alpha is 3 (1 - beta) / (1 + beta) = 9/17 until the window at the last cut is reached, and 1 from there.
    fn grow_reno_window(&mut self, ack: &CountedAck, prior: ByteCount) {
        let seventeenths = if self.reno_window < prior { 9 } else { 17 };
        // Below 17 x 2^16 x 2^24 = 2^45 over 17 x 2^40 = 2^45.
        let per_byte = ack.max_datagram_size * seventeenths;
        let numerator = per_byte.as_u64().saturating_mul(ack.size.as_u64());
        self.reno_window += self
            .reno_remainder
            .divide(numerator, ack.window.as_u64() * 17);
    }

    /// Returns the curve's time.
    fn elapsed(&self, now: Timestamp) -> Duration {
        now.saturating_since(self.began_at)
            .saturating_sub(self.excluded)
    }
}

/// Divides a stream of numbers and loses nothing: what one division leaves over, the next one gets.
///
/// The divisor is a window and moves by a fraction of a percent between calls; taking the leftover for one in the new
/// units is off by that fraction of less than a byte.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Remainder(u64);

impl Remainder {
    fn divide(&mut self, numerator: u64, denominator: u64) -> ByteCount {
        let denominator = denominator.max(1);
        let total = numerator.saturating_add(self.0);
        self.0 = total % denominator;
        ByteCount::new(total / denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: ByteCount = ByteCount::new(1_200);
    const RTT: Duration = Duration::from_millis(100);

    fn ack(window: ByteCount, size: ByteCount) -> CountedAck {
        CountedAck {
            size,
            window,
            max_datagram_size: SEGMENT,
            smoothed_rtt: RTT,
        }
    }

    fn epoch_at(growth: &CubicGrowth, now: Timestamp) -> Duration {
        growth
            .epoch
            .expect("an acknowledgement has counted")
            .elapsed(now)
    }

    // RFC 9438 section 4.7; quinn-rs/quinn#2640 applied it twice.
    #[test]
    fn fast_convergence_lowers_the_plateau_once_per_cut() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(ByteCount::new(100_000), ByteCount::new(70_000));
        assert_eq!(growth.w_max, ByteCount::new(100_000));
        growth.on_reduction(ByteCount::new(80_000), ByteCount::new(56_000));
        assert_eq!(growth.w_max, ByteCount::new(68_000));
        growth.on_reduction(ByteCount::new(60_000), ByteCount::new(42_000));
        assert_eq!(growth.w_max, ByteCount::new(51_000));
        growth.on_reduction(ByteCount::new(55_000), ByteCount::new(38_500));
        assert_eq!(
            growth.w_max,
            ByteCount::new(55_000),
            "it had passed its plateau"
        );
    }

    #[test]
    fn without_fast_convergence_the_plateau_is_the_window_at_the_cut() {
        let mut growth = CubicGrowth {
            has_fast_convergence: false,
            ..CubicGrowth::new()
        };
        growth.on_reduction(ByteCount::new(100_000), ByteCount::new(70_000));
        growth.on_reduction(ByteCount::new(80_000), ByteCount::new(56_000));
        assert_eq!(growth.w_max, ByteCount::new(80_000));
    }

    // RFC 9438 section 4.4: 2,000 segments, the curve at 2,300.8 one RTT ahead: 0.1504 segments per segment.
    #[test]
    fn the_step_along_the_curve_is_the_gap_over_the_window_per_acknowledged_byte() {
        let window = ByteCount::new(2_400_000);
        let mut growth = CubicGrowth::new();
        growth.on_reduction(ByteCount::new(2_764_800), ByteCount::new(1_935_360));
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &ack(ByteCount::new(1_935_360), ByteCount::new(1)));
        let now = start + Duration::from_millis(9_800);
        let counted = CountedAck {
            smoothed_rtt: Duration::from_millis(200),
            ..ack(window, SEGMENT)
        };
        let step = growth.on_acked(now, &counted) - window;
        assert!((180..=181).contains(&step.as_u64()), "{step}");
    }

    // RFC 9438 section 4.2: target at most 1.5 cwnd.
    #[test]
    fn the_window_grows_by_half_per_round_trip_at_most() {
        let window = ByteCount::new(3_600_000);
        let mut growth = CubicGrowth::new();
        growth.on_reduction(ByteCount::new(2_764_800), ByteCount::new(1_935_360));
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &ack(window, ByteCount::new(1)));
        let now = start + Duration::from_millis(125_800);
        let step = growth.on_acked(now, &ack(window, ByteCount::new(1_000))) - window;
        assert_eq!(step, ByteCount::new(500));
    }

    #[test]
    fn time_without_anything_in_flight_is_not_counted() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(SEGMENT * 100, SEGMENT * 70);
        let mut now = Timestamp::from_secs(1);
        growth.on_acked(now, &ack(SEGMENT * 70, SEGMENT));
        growth.on_feedback_end(now);
        // A hundred times: a busy round trip, then a second of silence.
        for _ in 0..100 {
            growth.on_sent(now, true);
            now += RTT;
            growth.on_acked(now, &ack(SEGMENT * 70, SEGMENT));
            growth.on_feedback_end(now);
            now += Duration::from_secs(1);
        }
        growth.on_sent(now, true);
        assert_eq!(epoch_at(&growth, now), RTT * 100);
    }

    #[test]
    fn at_a_small_window_that_drains_every_round_trip_no_time_is_left_out() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(SEGMENT * 3, SEGMENT * 2);
        let mut now = Timestamp::from_secs(1);
        for _ in 0..200 {
            growth.on_sent(now, true);
            now += RTT;
            growth.on_acked(now, &ack(SEGMENT * 2, SEGMENT * 2));
            growth.on_feedback_end(now);
        }
        growth.on_sent(now, true);
        let epoch = growth.epoch.expect("an acknowledgement has counted");
        assert_eq!(epoch.excluded, Duration::ZERO);
        assert_eq!(epoch.elapsed(now), RTT * 199);
    }

    #[test]
    fn silence_begins_with_the_last_packet_if_that_came_after_the_last_feedback() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(SEGMENT * 100, SEGMENT * 70);
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &ack(SEGMENT * 70, SEGMENT));
        growth.on_feedback_end(start);
        // This packet is forgotten with its keys, so no feedback ends its flight.
        growth.on_sent(start + RTT, false);
        growth.on_sent(start + RTT * 10, true);
        assert_eq!(epoch_at(&growth, start + RTT * 10), RTT);
    }

    #[test]
    fn an_untested_span_is_left_out_once_even_with_idle_time_inside() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(SEGMENT * 100, SEGMENT * 70);
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &ack(SEGMENT * 70, SEGMENT));
        growth.on_feedback_end(start);
        growth.on_untested(start + RTT);
        growth.on_feedback_end(start + RTT);
        growth.on_sent(start + RTT * 10, true);
        growth.on_untested(start + RTT * 11);
        growth.on_feedback_end(start + RTT * 11);
        growth.on_acked(start + RTT * 20, &ack(SEGMENT * 70, SEGMENT));
        assert_eq!(epoch_at(&growth, start + RTT * 21), RTT * 2);
    }

    #[test]
    fn a_clock_that_jumps_back_does_no_harm() {
        let mut growth = CubicGrowth::new();
        growth.on_reduction(SEGMENT * 100, SEGMENT * 70);
        growth.on_acked(Timestamp::from_secs(10), &ack(SEGMENT * 70, SEGMENT));
        growth.on_sent(Timestamp::from_secs(5), true);
        let window = growth.on_acked(Timestamp::from_secs(4), &ack(SEGMENT * 70, SEGMENT));
        assert!(window >= SEGMENT * 70 && window <= SEGMENT * 71);
    }

    #[test]
    fn leftovers_of_a_division_are_not_lost() {
        let mut remainder = Remainder::default();
        let total: ByteCount = (0..1_000).map(|_| remainder.divide(1, 3)).sum();
        assert_eq!(total, ByteCount::new(333));
    }
}
