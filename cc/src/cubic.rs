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
#[cfg(feature = "mutants")]
use crate::faults::Fault;
use crate::loss_based::{Avoidance, CountedAck, LossBased};
use crate::options::LossBasedOptions;

/// The CUBIC controller.
pub type Cubic = LossBased<CubicGrowth>;

impl Cubic {
    /// Makes a controller in slow start at the initial window, with the default options.
    #[must_use]
    pub fn new(max_datagram_size: ByteCount) -> Self {
        Self::with_options(max_datagram_size, LossBasedOptions::DEFAULT)
    }

    /// Makes one with the options given.
    #[must_use]
    pub fn with_options(max_datagram_size: ByteCount, options: LossBasedOptions) -> Self {
        let growth = CubicGrowth::new(options.fast_convergence);
        Self::with_avoidance(max_datagram_size, options, growth)
    }

    /// Makes one with a fault built in.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_fault(
        max_datagram_size: ByteCount,
        options: LossBasedOptions,
        fault: Fault,
    ) -> Self {
        let growth = CubicGrowth {
            sabotage: Sabotage {
                fault: Some(fault),
                ..Sabotage::default()
            },
            ..CubicGrowth::new(options.fast_convergence)
        };
        Self::with_avoidance(max_datagram_size, options, growth)
    }
}

#[cfg(feature = "mutants")]
impl Cubic {
    /// Makes one that forgets the fraction of a datagram after each acknowledgement: [`crate::zoo::Defect::WholePackets`].
    pub(crate) fn with_whole_packets(max_datagram_size: ByteCount) -> Self {
        let options = LossBasedOptions::DEFAULT;
        let growth = CubicGrowth {
            sabotage: Sabotage {
                drops_fractions: true,
                ..Sabotage::default()
            },
            ..CubicGrowth::new(options.fast_convergence)
        };
        Self::with_avoidance(max_datagram_size, options, growth)
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
    #[cfg(feature = "mutants")]
    sabotage: Sabotage,
}

impl CubicGrowth {
    /// Makes the state of a flow without history, with or without fast convergence.
    #[must_use]
    pub fn new(has_fast_convergence: bool) -> Self {
        Self {
            has_fast_convergence,
            w_max: ByteCount::ZERO,
            prior: ByteCount::ZERO,
            epoch: None,
            last_sent_at: Timestamp::ZERO,
            last_feedback_at: Timestamp::ZERO,
            #[cfg(feature = "mutants")]
            sabotage: Sabotage::default(),
        }
    }

    /// Returns `W_max`, the level of the next plateau, or of the one the window is about to reach; zero before the
    /// first cut or the first end of slow start.
    #[must_use]
    pub fn plateau(&self) -> ByteCount {
        self.w_max
    }

    /// Returns `cwnd_prior`, the window at the last cut or, without one, at the end of slow start.
    #[must_use]
    pub fn prior_window(&self) -> ByteCount {
        self.prior
    }

    /// Returns `K`, the curve's time at which it reaches the plateau; `None` between a cut and the first
    /// acknowledgement that counts.
    #[must_use]
    pub fn time_to_plateau(&self) -> Option<Duration> {
        self.epoch.map(|epoch| epoch.curve.time_to_plateau())
    }

    /// Returns `t`, the curve's time at `now`; `None` like `K`.
    #[must_use]
    pub fn curve_time(&self, now: Timestamp) -> Option<Duration> {
        self.epoch.map(|epoch| epoch.elapsed(now))
    }

    /// Leaves the time since the flow fell silent out of the epoch.
    fn exclude_idle(&mut self, now: Timestamp) {
        let quiet_since = self.last_sent_at.max(self.last_feedback_at);
        let Some(epoch) = &mut self.epoch else {
            return;
        };
        let floor = epoch.began_at;
        #[cfg(feature = "mutants")]
        let excluded_before = epoch.excluded;
        #[cfg(feature = "mutants")]
        let (quiet_since, floor) =
            self.sabotage
                .idle_bounds(now, self.last_sent_at, quiet_since, floor);
        epoch.exclude_idle(now, quiet_since.max(floor));
        #[cfg(feature = "mutants")]
        self.sabotage
            .count(epoch.excluded.saturating_sub(excluded_before));
    }
}

impl Avoidance for CubicGrowth {
    const NAME: &'static str = "cubic";

    /// RFC 9438 section 4.6, `beta_cubic`.
    const REDUCTION: (u64, u64) = (7, 10);

    /// RFC 8511 section 3.
    const MARKED_REDUCTION: (u64, u64) = (17, 20);

    /// A full window of `largest_flight` would have grown by half at most along the curve, and by a datagram in the
    /// Reno-friendly region. The draft's flight and one datagram would hold the curve back to Reno where
    /// acknowledgements come in one batch per round trip: 790 segments after 91 round trips instead of 1,000.
    fn growth_limit(largest_flight: ByteCount, max_datagram_size: ByteCount) -> ByteCount {
        (largest_flight + max_datagram_size).max(largest_flight.scale(3, 2))
    }

    #[cfg(feature = "mutants")]
    fn name(&self) -> &'static str {
        self.sabotage.fault.map_or(Self::NAME, Fault::name)
    }

    /// RFC 9438 sections 4.2 and 5.8: time in which the window could not be tried does not count. With nothing in
    /// flight that is the time since the last thing that happened, be it a departure or feedback.
    fn on_sent(&mut self, now: Timestamp, was_idle: bool) {
        if was_idle {
            self.exclude_idle(now);
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
    /// it was at the last cut; where there was none it is the window, so alpha is 1 at once.
    fn on_slow_start_exit(&mut self, window: ByteCount) {
        self.w_max = window;
        if self.prior == ByteCount::ZERO {
            self.prior = window;
        }
        self.epoch = None;
    }

    /// RFC 9438 section 4.9: `W_max`, `cwnd_prior` and the epoch with its `K` and `W_est`.
    fn restore(&mut self, saved: &Self) {
        self.w_max = saved.w_max;
        self.prior = saved.prior;
        self.epoch = saved.epoch;
    }

    fn on_acked(&mut self, now: Timestamp, ack: &CountedAck) -> ByteCount {
        #[cfg(feature = "mutants")]
        let (began_at, drawn_from) = self.sabotage.epoch_start(now, ack, self.w_max);
        #[cfg(not(feature = "mutants"))]
        let (began_at, drawn_from) = (now, ack.window);
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::begin(began_at, ack, drawn_from, self.w_max));
        epoch.resume(now);
        #[cfg(feature = "mutants")]
        if self.sabotage.fault == Some(Fault::M2) {
            epoch.reno_window = Sabotage::timed_reno_window(epoch.elapsed(now), ack, self.w_max);
        }
        #[cfg(feature = "mutants")]
        if self.sabotage.drops_fractions {
            let grown = epoch.grow(now, ack, self.prior) - ack.window;
            let datagram = ack.max_datagram_size.as_u64();
            return ack.window + ByteCount::new(grown.as_u64() / datagram * datagram);
        }
        epoch.grow(now, ack, self.prior)
    }

    fn on_untested(&mut self, now: Timestamp) {
        #[cfg(feature = "mutants")]
        if self.sabotage.fault == Some(Fault::NoShift) {
            return;
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.pause(now);
        }
    }

    fn on_feedback_end(&mut self, now: Timestamp) {
        self.last_feedback_at = now;
    }

    #[cfg(feature = "mutants")]
    fn misplaced_boundary(
        &mut self,
        now: Timestamp,
        was_idle: bool,
        boundary: Timestamp,
    ) -> Timestamp {
        let Some(fault) = self.sabotage.fault.filter(|fault| fault.shares_stamp()) else {
            return boundary;
        };
        let quiet_since = self.last_sent_at.max(self.last_feedback_at);
        let idle_since = fault.idle_since(now, self.last_sent_at, quiet_since);
        let span = now.saturating_since(idle_since);
        let mut stamp = boundary;
        if was_idle && span > Duration::ZERO {
            stamp += span;
            if fault == Fault::M1Clamp {
                stamp = stamp.min(now);
            }
            self.sabotage.count(stamp.saturating_since(boundary));
        }
        self.sabotage.stamp = Some(stamp);
        if let Some(epoch) = &mut self.epoch {
            epoch.began_at = stamp;
        }
        stamp
    }

    #[cfg(feature = "mutants")]
    fn shifts(&self) -> (u64, Duration) {
        (self.sabotage.shifts, self.sabotage.shifted)
    }
}

/// What is wrong with the growth, and what it has done.
#[cfg(feature = "mutants")]
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Sabotage {
    fault: Option<Fault>,
    /// Whether growth is rounded down to whole datagrams.
    drops_fractions: bool,
    /// The one stamp of those that have only one, once there was a cut.
    stamp: Option<Timestamp>,
    shifts: u64,
    shifted: Duration,
}

#[cfg(feature = "mutants")]
impl Sabotage {
    /// Since when the flow is taken to have been idle, and from when on that is left out. Where boundary and epoch
    /// share a stamp, the boundary's move is the epoch's.
    fn idle_bounds(
        &self,
        now: Timestamp,
        last_sent_at: Timestamp,
        quiet_since: Timestamp,
        began_at: Timestamp,
    ) -> (Timestamp, Timestamp) {
        match self.fault {
            None => (quiet_since, began_at),
            Some(fault) if fault.shares_stamp() && self.stamp.is_some() => (now, now),
            Some(fault) => {
                let idle_since = fault.idle_since(now, last_sent_at, quiet_since);
                let floor = if fault.overshoots() {
                    Timestamp::ZERO
                } else {
                    began_at
                };
                (idle_since, floor)
            }
        }
    }

    fn count(&mut self, span: Duration) {
        self.shifts += u64::from(span > Duration::ZERO);
        self.shifted = self.shifted.saturating_add(span);
    }

    /// When an epoch begins, and where its curve does.
    fn epoch_start(
        &self,
        now: Timestamp,
        ack: &CountedAck,
        w_max: ByteCount,
    ) -> (Timestamp, ByteCount) {
        match self.fault {
            Some(fault) if fault.shares_stamp() => (self.stamp.unwrap_or(now), ack.window),
            // RFC 8312 section 4.1: K = cbrt(W_max (1 - beta) / C), wherever the window is.
            Some(Fault::M2) => (now, w_max.scale(7, 10)),
            _ => (now, ack.window),
        }
    }

    /// RFC 8312 section 4.2: 0.7 of the plateau, and 9/17 segment per RTT.
    fn timed_reno_window(t: Duration, ack: &CountedAck, w_max: ByteCount) -> ByteCount {
        let span = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let per_rtt = ack.max_datagram_size.scale(9, 17);
        w_max.scale(7, 10) + per_rtt.scale(span(t), span(ack.smoothed_rtt).max(1))
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
    /// Begins one whose curve starts at `drawn_from`.
    fn begin(
        began_at: Timestamp,
        ack: &CountedAck,
        drawn_from: ByteCount,
        w_max: ByteCount,
    ) -> Self {
        Self {
            began_at,
            excluded: Duration::ZERO,
            paused_at: None,
            curve: CubicCurve::new(drawn_from, w_max, ack.max_datagram_size),
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
            self.exclude(now.saturating_since(quiet_since));
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
        let grown = self.reno_window
            + self
                .reno_remainder
                .divide(numerator, ack.window.as_u64() * 17);
        // Beyond the limit it would wait there for the window to be allowed to jump.
        self.reno_window = grown.min(ack.limit.max(self.reno_window));
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
    use crate::loss_based::LARGEST_WINDOW;

    const SEGMENT: ByteCount = ByteCount::new(1_200);
    const RTT: Duration = Duration::from_millis(100);

    fn ack(window: ByteCount, size: ByteCount) -> CountedAck {
        CountedAck {
            size,
            window,
            limit: LARGEST_WINDOW,
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
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(false);
        growth.on_reduction(ByteCount::new(100_000), ByteCount::new(70_000));
        growth.on_reduction(ByteCount::new(80_000), ByteCount::new(56_000));
        assert_eq!(growth.w_max, ByteCount::new(80_000));
    }

    // RFC 9438 section 4.4: 2,000 segments, the curve at 2,300.8 one RTT ahead: 0.1504 segments per segment.
    #[test]
    fn the_step_along_the_curve_is_the_gap_over_the_window_per_acknowledged_byte() {
        let window = ByteCount::new(2_400_000);
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(true);
        growth.on_reduction(ByteCount::new(2_764_800), ByteCount::new(1_935_360));
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &ack(window, ByteCount::new(1)));
        let now = start + Duration::from_millis(125_800);
        let step = growth.on_acked(now, &ack(window, ByteCount::new(1_000))) - window;
        assert_eq!(step, ByteCount::new(500));
    }

    #[test]
    fn time_without_anything_in_flight_is_not_counted() {
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(true);
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
        let mut growth = CubicGrowth::new(true);
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
