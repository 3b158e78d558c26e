//! How fast the path is: the long-term maximum and the short-term bound (ccwg-bbr-06 sections 5.5.2 to 5.5.6 and 5.5.10).
//!
//! ```text
//!   delivery-rate samples ──> max over this cycle and the one before ──> max_bw ──┐
//!                        └──> max over one loss round (bw_latest) ──┐             ├── min ──> bw
//!                             a round with losses, not probing ─────┴─> bw_shortterm
//! ```

use units::Rate;

use super::BETA;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct RateModel {
    /// Section 2.11, `MaxBwFilterLen` = 2: the largest samples of the previous cycle and of this one.
    cycles: [Rate; 2],
    /// `BBR.bw_latest`: the largest sample of this loss round.
    latest: Rate,
    /// `BBR.bw_shortterm`; infinite if unset.
    shortterm: Rate,
}

impl RateModel {
    pub(super) const fn new() -> Self {
        Self {
            cycles: [Rate::ZERO; 2],
            latest: Rate::ZERO,
            shortterm: Rate::INFINITE,
        }
    }

    /// Section 5.5.5: a sample that a lack of data held down says something only if it is the largest all the same.
    pub(super) fn on_sample(&mut self, rate: Rate, is_app_limited: bool) {
        if rate >= self.max_bw() || !is_app_limited {
            self.cycles[1] = self.cycles[1].max(rate);
        }
    }

    /// `AdvanceMaxBwFilter` (section 5.5.6): a cycle of probing has ended. One that brought no sample does not count, or
    /// two of them would leave nothing to pace by.
    pub(super) fn advance(&mut self) {
        if self.cycles[1] > Rate::ZERO {
            self.cycles = [self.cycles[1], Rate::ZERO];
        }
    }

    /// `UpdateLatestDeliverySignals`, for the rate.
    pub(super) fn note_latest(&mut self, rate: Rate) {
        self.latest = self.latest.max(rate);
    }

    /// `AdvanceLatestDeliverySignals`, for the rate: a new loss round begins with this sample.
    pub(super) fn restart_latest(&mut self, rate: Rate) {
        self.latest = rate;
    }

    /// `InitLowerBounds` and `LossLowerBounds`, for the rate: give way to what was delivered in the round with losses, but
    /// by no more than beta.
    pub(super) fn give_way(&mut self) {
        let old = self.shortterm.min(self.max_bw());
        self.shortterm = self.latest.max(old.scale(BETA.0, BETA.1));
    }

    /// `ResetShortTermModel`, for the rate.
    pub(super) fn forget_shortterm(&mut self) {
        self.shortterm = Rate::INFINITE;
    }

    /// Takes an earlier bound back into account, after losses that were none (section 5.5.11).
    pub(super) fn restore_shortterm(&mut self, saved: Rate) {
        self.shortterm = self.shortterm.max(saved);
    }

    /// `BBR.max_bw`; zero before the first sample.
    pub(super) fn max_bw(&self) -> Rate {
        self.cycles[0].max(self.cycles[1])
    }

    /// `BBR.bw` (`BoundBWForModel`).
    pub(super) fn bw(&self) -> Rate {
        self.max_bw().min(self.shortterm)
    }

    pub(super) const fn shortterm(&self) -> Rate {
        self.shortterm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mbps(rate: u64) -> Rate {
        Rate::from_mbps(rate)
    }

    #[test]
    fn the_maximum_spans_this_cycle_and_the_one_before() {
        let mut model = RateModel::new();
        model.on_sample(mbps(100), false);
        model.advance();
        model.on_sample(mbps(25), false);
        assert_eq!(model.max_bw(), mbps(100));
        model.advance();
        assert_eq!(model.max_bw(), mbps(25));
    }

    #[test]
    fn a_cycle_without_a_sample_does_not_push_the_old_ones_out() {
        let mut model = RateModel::new();
        model.on_sample(mbps(100), false);
        for _ in 0..5 {
            model.advance();
        }
        assert_eq!(model.max_bw(), mbps(100));
    }

    #[test]
    fn an_app_limited_sample_counts_only_if_it_is_the_largest() {
        let mut model = RateModel::new();
        model.on_sample(mbps(10), true);
        model.advance();
        model.on_sample(mbps(9), true);
        model.advance();
        assert_eq!(model.max_bw(), mbps(10), "the low sample made no cycle");
        model.on_sample(mbps(11), true);
        assert_eq!(model.max_bw(), mbps(11));
    }

    // Checklist item 45: bw_shortterm = max(bw_latest, 0.7 old), and the first old is max_bw.
    #[test]
    fn giving_way_ends_at_what_was_delivered_or_at_seven_tenths() {
        let mut model = RateModel::new();
        model.on_sample(mbps(100), false);
        model.note_latest(mbps(95));
        model.give_way();
        assert_eq!(model.bw(), mbps(95));
        model.restart_latest(mbps(10));
        model.give_way();
        assert_eq!(model.bw(), Rate::from_kbps(66_500));
        model.forget_shortterm();
        assert_eq!(model.bw(), mbps(100));
    }

    #[test]
    fn a_hundred_gigabit_per_second_do_not_overflow() {
        let mut model = RateModel::new();
        model.on_sample(mbps(100_000), false);
        model.give_way();
        assert_eq!(model.bw(), mbps(70_000));
    }
}
