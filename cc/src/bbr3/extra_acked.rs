//! How bunched acknowledgements come: the volume beyond the expected one (ccwg-bbr-06 section 5.5.9).
//!
//! While an aggregating hop is silent, the window must allow what the bunch then acknowledges at once, or the sender
//! stops for lack of window although the path is fine.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ExtraAcked {
    /// `BBR.extra_acked_interval_start`.
    began_at: Timestamp,
    /// `BBR.extra_acked_delivered`.
    delivered: ByteCount,
    /// The largest excess of each of the last rounds; round `n` is at `n` modulo the length. A ring is exact where the
    /// three-value filter of Linux is not, and ten comparisons cost less than its branches.
    rounds: [ByteCount; FILTER_ROUNDS],
    newest_round: u64,
    /// `BBR.extra_acked`.
    extra: ByteCount,
}

/// Section 2.12, `ExtraAckedFilterLen`.
const FILTER_ROUNDS: usize = 10;

/// What one event acknowledges, and what it is measured by.
#[derive(Copy, Clone, Debug)]
pub(super) struct Acked {
    pub(super) size: ByteCount,
    pub(super) bw: Rate,
    pub(super) window: ByteCount,
    pub(super) round: u64,
    /// Before the pipe was full once, only the current round counts.
    pub(super) is_pipe_filled: bool,
}

impl ExtraAcked {
    pub(super) const fn new() -> Self {
        Self {
            began_at: Timestamp::ZERO,
            delivered: ByteCount::ZERO,
            rounds: [ByteCount::ZERO; FILTER_ROUNDS],
            newest_round: 0,
            extra: ByteCount::ZERO,
        }
    }

    /// Begins a new interval: at the beginning, and when the flow restarts from idle.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.began_at = now;
        self.delivered = ByteCount::ZERO;
    }

    /// `UpdateACKAggregation`.
    pub(super) fn on_acked(&mut self, now: Timestamp, acked: &Acked) {
        let interval: Duration = now.saturating_since(self.began_at);
        let mut expected = acked.bw.bytes_in(interval);
        if self.delivered <= expected {
            self.restart(now);
            expected = ByteCount::ZERO;
        }
        self.delivered += acked.size;
        let excess = (self.delivered - expected).min(acked.window);
        self.remember(acked.round, excess);
        self.extra = if acked.is_pipe_filled {
            self.rounds.iter().copied().max().unwrap_or(ByteCount::ZERO)
        } else {
            self.rounds[slot(acked.round)]
        };
    }

    fn remember(&mut self, round: u64, excess: ByteCount) {
        let skipped = round.saturating_sub(self.newest_round);
        for age in 0..skipped.min(FILTER_ROUNDS as u64) {
            self.rounds[slot(round - age)] = ByteCount::ZERO;
        }
        self.newest_round = self.newest_round.max(round);
        let place = &mut self.rounds[slot(round)];
        *place = excess.max(*place);
    }

    pub(super) const fn get(&self) -> ByteCount {
        self.extra
    }
}

fn slot(round: u64) -> usize {
    usize::try_from(round % FILTER_ROUNDS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_250);

    fn acked(packets: u64, round: u64) -> Acked {
        Acked {
            size: PACKET * packets,
            bw: Rate::from_mbps(10),
            window: PACKET * 100,
            round,
            is_pipe_filled: true,
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000 + millis)
    }

    // 10 Mbit/s are one packet a millisecond.
    #[test]
    fn a_bunch_of_twenty_is_an_excess_of_twenty() {
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        for bunch in 1..=5 {
            model.on_acked(at(bunch * 20), &acked(20, bunch));
        }
        assert_eq!(model.get(), PACKET * 20);
    }

    #[test]
    fn within_an_interval_the_expected_volume_is_taken_off() {
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        model.on_acked(at(0), &acked(20, 1));
        model.on_acked(at(5), &acked(5, 1));
        // 25 acknowledged in 5 ms, 5 expected.
        assert_eq!(model.get(), PACKET * 20);
        model.on_acked(at(6), &acked(11, 1));
        assert_eq!(model.get(), PACKET * 30);
    }

    #[test]
    fn the_largest_excess_is_kept_for_ten_rounds_and_for_one_in_startup() {
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        model.on_acked(at(100), &acked(30, 7));
        for round in 8..=16 {
            model.on_acked(at(round * 100), &acked(1, round));
            assert_eq!(model.get(), PACKET * 30, "round {round}");
        }
        model.on_acked(at(1_700), &acked(1, 17));
        assert_eq!(model.get(), PACKET);

        let startup = |packets, round| Acked {
            is_pipe_filled: false,
            ..acked(packets, round)
        };
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        model.on_acked(at(100), &startup(30, 1));
        assert_eq!(model.get(), PACKET * 30);
        model.on_acked(at(200), &startup(1, 2));
        assert_eq!(model.get(), PACKET);
    }

    #[test]
    fn rounds_that_passed_without_a_word_are_forgotten_too() {
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        model.on_acked(at(100), &acked(30, 3));
        model.on_acked(at(900_000), &acked(1, 1_000_003));
        assert_eq!(model.get(), PACKET);
        model.on_acked(at(1_000_000), &acked(1, u64::MAX));
    }

    #[test]
    fn the_excess_is_never_above_the_window() {
        let mut model = ExtraAcked::new();
        model.restart(at(0));
        model.on_acked(at(1), &acked(1_000, 1));
        assert_eq!(model.get(), PACKET * 100);
    }
}
