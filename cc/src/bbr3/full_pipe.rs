//! Whether sending faster still delivers faster (ccwg-bbr-06 section 5.3.1.2).
//!
//! Three rounds, none of them short of data, in which the delivery rate does not reach 1.25 times the base: the pipe is
//! full. Startup and ProbeBW_UP end by it.

use units::Rate;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct FullPipe {
    /// `BBR.full_bw`: what growth is measured from.
    base: Rate,
    /// `BBR.full_bw_count`: rounds without growth.
    flat_rounds: u8,
    /// `BBR.full_bw_now`.
    is_full_now: bool,
    /// `BBR.full_bw_reached`: whether the pipe was ever full.
    is_filled: bool,
}

/// Section 5.3.1.2: growth by a quarter is growth.
const GROWTH: (u64, u64) = (5, 4);

/// Section 5.3.1.2: so many rounds without it are a plateau.
const FLAT_ROUNDS: u8 = 3;

impl FullPipe {
    pub(super) const fn new() -> Self {
        Self {
            base: Rate::ZERO,
            flat_rounds: 0,
            is_full_now: false,
            is_filled: false,
        }
    }

    /// `ResetFullBW`, from a known rate.
    pub(super) fn restart(&mut self, base: Rate) {
        self.base = base;
        self.flat_rounds = 0;
        self.is_full_now = false;
    }

    /// `CheckFullBWReached`. The caller leaves out samples without a rate (they would pass for a round without growth)
    /// and those short of data.
    ///
    /// Deviation: growth is looked for in every event, as Linux does, and not only in the one that begins a round, or one
    /// unlucky event per round could fake a plateau.
    pub(super) fn on_sample(&mut self, rate: Rate, is_round_start: bool) {
        if self.is_full_now {
            return;
        }
        if rate >= self.base.scale(GROWTH.0, GROWTH.1) {
            self.restart(rate);
        } else if is_round_start {
            self.flat_rounds += 1;
            self.is_full_now = self.flat_rounds >= FLAT_ROUNDS;
            self.is_filled |= self.is_full_now;
        }
    }

    /// Notes that the pipe is full for another reason: losses.
    pub(super) fn set_filled(&mut self) {
        self.is_filled = true;
    }

    /// Takes that back.
    pub(super) fn clear_filled(&mut self) {
        self.is_filled = false;
    }

    pub(super) const fn is_full_now(&self) -> bool {
        self.is_full_now
    }

    pub(super) const fn is_filled(&self) -> bool {
        self.is_filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_flat_rounds_fill_the_pipe_and_growth_between_them_starts_over() {
        let mut pipe = FullPipe::new();
        pipe.on_sample(Rate::from_mbps(8), true);
        pipe.on_sample(Rate::from_mbps(9), true);
        pipe.on_sample(Rate::from_mbps(9), true);
        pipe.on_sample(Rate::from_mbps(10), true);
        assert!(!pipe.is_filled(), "10 is a quarter above 8");
        for _ in 0..2 {
            pipe.on_sample(Rate::from_mbps(12), true);
            assert!(!pipe.is_filled());
        }
        pipe.on_sample(Rate::from_mbps(12), true);
        assert!(pipe.is_filled() && pipe.is_full_now());
    }

    #[test]
    fn growth_counts_in_any_event_and_a_flat_one_only_at_the_start_of_a_round() {
        let mut pipe = FullPipe::new();
        pipe.on_sample(Rate::from_mbps(8), true);
        for _ in 0..100 {
            pipe.on_sample(Rate::from_mbps(8), false);
        }
        assert!(!pipe.is_full_now());
        pipe.on_sample(Rate::from_mbps(8), true);
        pipe.on_sample(Rate::from_mbps(8), true);
        pipe.on_sample(Rate::from_mbps(11), false);
        pipe.on_sample(Rate::from_mbps(11), true);
        assert!(!pipe.is_full_now(), "the growth in between started over");
    }

    #[test]
    fn a_restart_keeps_that_the_pipe_was_full_once() {
        let mut pipe = FullPipe::new();
        for _ in 0..4 {
            pipe.on_sample(Rate::from_mbps(8), true);
        }
        pipe.restart(Rate::from_mbps(8));
        assert!(pipe.is_filled());
        assert!(!pipe.is_full_now());
    }
}
