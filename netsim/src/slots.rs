//! Slotted release: packets leave in batches, at the ticks of a clock.
//!
//! ```text
//!  ready      |  || |            |||||
//!  slots      .         .         .         .         .
//!  out                  ||||                |||       ||      at most 3 per slot: the rest waits
//! ```
//!
//! Shared uplinks (cable, cellular, Wi-Fi) grant a station its turn every so often; what has
//! gathered meanwhile leaves together. To a sender whose acknowledgements do, it looks as if the
//! path were a series of bursts.

use std::time::Duration;

use units::{Timestamp, format_duration};

/// Releases packets only at whole multiples of a period, counted from the beginning of the run. A
/// packet that is ready at the very instant of a slot leaves with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slots {
    /// From 1 ns to [`Slots::LONGEST_PERIOD`].
    pub period: Duration,
    /// How many packets one slot takes, at least 1; `None` for all that wait.
    pub at_most: Option<u64>,
}

impl Slots {
    /// The longest period that is accepted: one minute.
    pub const LONGEST_PERIOD: Duration = Duration::from_secs(60);

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is out of range.
    pub fn check(&self) -> Result<(), String> {
        if !(Duration::from_nanos(1)..=Self::LONGEST_PERIOD).contains(&self.period) {
            return Err(format!(
                "slots: period {} is out of range, from 1 ns to {}",
                format_duration(self.period),
                format_duration(Self::LONGEST_PERIOD)
            ));
        }
        if self.at_most == Some(0) {
            return Err("slots: a slot for 0 packets lets none through, at least 1".to_owned());
        }
        Ok(())
    }
}

/// The running clock of [`Slots`]. It holds nothing itself.
///
/// Two ways to use it: let what waits wait in a queue until [`Self::ready_at`], and [`Self::take`]
/// then; or take at once, ahead of time, and let the packet wait elsewhere until the instant given.
/// Slots are given out in order either way.
#[derive(Clone, Debug)]
pub(crate) struct SlotGate {
    config: Slots,
    /// The slot that was used last.
    slot_at: Timestamp,
    /// How many packets have left, or will leave, with it.
    used: u64,
}

impl SlotGate {
    pub(crate) const fn new(config: Slots) -> Self {
        Self {
            config,
            slot_at: Timestamp::ZERO,
            used: 0,
        }
    }

    /// Takes a place in the slot in which the next packet leaves if it is ready at `now`, and
    /// returns the instant of that slot.
    pub(crate) fn take(&mut self, now: Timestamp) -> Timestamp {
        let slot_at = self.ready_at(now);
        if slot_at > self.slot_at {
            self.slot_at = slot_at;
            self.used = 0;
        }
        self.used += 1;
        slot_at
    }

    /// Goes on with other settings. Packets keep the slots they have taken.
    pub(crate) const fn reconfigure(&mut self, config: Slots) {
        self.config = config;
    }

    /// When the next packet leaves if it is ready at `now`: not before any that has taken its place
    /// already.
    pub(crate) fn ready_at(&self, now: Timestamp) -> Timestamp {
        let now = now.max(self.slot_at);
        let slot_at = self.slot_from(now);
        let is_full = self.config.at_most.is_some_and(|limit| self.used >= limit);
        if is_full && slot_at == self.slot_at {
            return self.slot_from(slot_at + Duration::from_nanos(1));
        }
        slot_at
    }

    /// The first slot at or after `now`.
    fn slot_from(&self, now: Timestamp) -> Timestamp {
        // `check` keeps the period within 36 bits.
        let period = u64::try_from(self.config.period.as_nanos()).unwrap_or(u64::MAX);
        now.as_nanos()
            .checked_next_multiple_of(period)
            .map_or(Timestamp::MAX, Timestamp::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(20);

    const fn ms(count: u64) -> Timestamp {
        Timestamp::from_millis(count)
    }

    fn gate(at_most: Option<u64>) -> SlotGate {
        SlotGate::new(Slots {
            period: PERIOD,
            at_most,
        })
    }

    fn release(gate: &mut SlotGate, ready_ms: &[u64]) -> Vec<u64> {
        ready_ms
            .iter()
            .map(|ready| gate.take(ms(*ready)).as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn what_gathers_between_two_slots_leaves_together() {
        assert_eq!(
            release(&mut gate(None), &[1, 5, 19, 20, 21, 59, 60, 61]),
            [20, 20, 20, 20, 40, 60, 60, 80]
        );
    }

    #[test]
    fn a_nanosecond_after_the_slot_is_too_late() {
        let just_after = ms(20) + Duration::from_nanos(1);
        assert_eq!(gate(None).take(just_after), ms(40));
        assert_eq!(gate(None).take(Timestamp::ZERO), Timestamp::ZERO);
    }

    #[test]
    fn a_full_slot_sends_the_rest_to_the_next() {
        assert_eq!(
            release(&mut gate(Some(3)), &[1, 1, 1, 1, 1, 41, 41, 41, 41, 100]),
            [20, 20, 20, 40, 40, 60, 60, 60, 80, 100]
        );
        // A backlog keeps filling whole slots.
        let backlog = release(&mut gate(Some(2)), &[1; 100]);
        assert!(
            backlog
                .iter()
                .enumerate()
                .all(|(n, at)| *at == 20 * (n as u64 / 2 + 1))
        );
        // The slot at 0 counts like any other.
        assert_eq!(release(&mut gate(Some(1)), &[0, 0, 0]), [0, 20, 40]);
    }

    #[test]
    fn waiting_in_a_queue_gives_the_same_slots_as_taking_ahead() {
        let ready = [1, 1, 1, 1, 45, 45, 46, 47, 48, 200];
        let mut waiting = gate(Some(2));
        let mut now = Timestamp::ZERO;
        let waited: Vec<Timestamp> = ready
            .iter()
            .map(|ready| {
                now = now.max(ms(*ready));
                now = waiting.ready_at(now);
                assert_eq!(waiting.take(now), now);
                now
            })
            .collect();
        let mut ahead = gate(Some(2));
        let taken: Vec<Timestamp> = ready.iter().map(|ready| ahead.take(ms(*ready))).collect();
        assert_eq!(waited, taken);
    }

    #[test]
    fn a_change_of_period_keeps_the_order() {
        let mut gate = gate(Some(1));
        assert_eq!(release(&mut gate, &[1, 1, 1]), [20, 40, 60]);
        gate.reconfigure(Slots {
            period: Duration::from_millis(7),
            at_most: Some(1),
        });
        assert_eq!(release(&mut gate, &[2, 2, 64]), [63, 70, 77]);
    }

    #[test]
    fn the_end_of_time_is_never() {
        assert_eq!(gate(None).ready_at(Timestamp::MAX), Timestamp::MAX);
        assert_eq!(gate(Some(1)).take(Timestamp::MAX), Timestamp::MAX);
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        let slots = |period, at_most| Slots { period, at_most };
        assert_eq!(
            slots(Duration::ZERO, None).check().unwrap_err(),
            "slots: period 0 s is out of range, from 1 ns to 60 s"
        );
        assert_eq!(
            slots(PERIOD, Some(0)).check().unwrap_err(),
            "slots: a slot for 0 packets lets none through, at least 1"
        );
        assert_eq!(slots(PERIOD, Some(1)).check(), Ok(()));
    }
}
