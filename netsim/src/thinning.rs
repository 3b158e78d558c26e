//! Thinning: of many small packets in a row only some are let through.
//!
//! ```text
//!  small, every 3rd      1   2   3   4   5                    6
//!                        |   |   |   |   |                    |
//!  held                  1   2   -   4   5 . . hold . -       6
//!  out                           3                    5
//!  dropped                   1   2       4
//! ```
//!
//! Cable and cellular modems do this to acknowledgements on a thin uplink: RFC 3449 section 5.2
//! (ACK filtering). It works for QUIC to the extent that a later acknowledgement repeats what an
//! earlier one said.

use std::time::Duration;

use units::{ByteCount, Timestamp, format_duration};

use crate::packet::FlowId;

/// Of the small packets of each flow only every n-th is let through, the others are dropped.
///
/// A group begins with a small packet and ends with the `every`-th, which is let through at once,
/// or `hold` after it has begun, when the latest that has come is. No larger packet overtakes a
/// held one: it ends the group too, and follows what was held. There is no randomness in it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Thinning {
    /// Larger packets are let through. Bytes on the wire, IP header included.
    pub at_most: ByteCount,
    /// One in so many; 1 lets everything through at once. Not 0.
    pub every: u64,
    /// How long a group lasts at most, so that the last packets of a burst do not wait for ever; at
    /// most [`Thinning::LONGEST_HOLD`].
    pub hold: Duration,
}

impl Thinning {
    /// The longest hold that is accepted: one minute.
    pub const LONGEST_HOLD: Duration = Duration::from_secs(60);

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is out of range.
    pub fn check(&self) -> Result<(), String> {
        if self.every == 0 {
            return Err("thinning: one in 0 packets is none at all, at least 1".to_owned());
        }
        if self.hold > Self::LONGEST_HOLD {
            return Err(format!(
                "thinning: hold {} is too long, at most {}",
                format_duration(self.hold),
                format_duration(Self::LONGEST_HOLD)
            ));
        }
        Ok(())
    }
}

/// What becomes of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Thinned<P> {
    /// It goes on, now.
    Passed(P),
    /// It is gone.
    Dropped(P),
}

/// What the thinning has to know of a packet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Small {
    pub(crate) size: ByteCount,
    pub(crate) flow: FlowId,
}

/// The running state of a [`Thinning`], which holds packets of type `P`: one for each flow at most.
///
/// The caller asks [`Self::next_timer`] and calls [`Self::on_timer`] then.
#[derive(Clone, Debug)]
pub(crate) struct Thinner<P> {
    config: Thinning,
    /// In the order in which they began. Memory is allocated when there are more than ever before.
    groups: Vec<Group<P>>,
}

#[derive(Clone, Debug)]
struct Group<P> {
    flow: FlowId,
    /// When it ends at the latest.
    ends_at: Timestamp,
    /// The packets it has had.
    count: u64,
    /// The latest of them.
    held: P,
}

impl<P> Thinner<P> {
    pub(crate) const fn new(config: Thinning) -> Self {
        Self {
            config,
            groups: Vec::new(),
        }
    }

    /// Takes a packet in at `now` and tells `fate` what becomes of it and of the one that was held
    /// before it, in the order in which they go on; of those that are held, later. What was due
    /// before `now` is run first.
    pub(crate) fn arrive(
        &mut self,
        now: Timestamp,
        what: Small,
        packet: P,
        fate: &mut dyn FnMut(Thinned<P>),
    ) {
        self.on_timer(now, &mut *fate);
        let found = self.groups.iter().position(|group| group.flow == what.flow);
        if what.size > self.config.at_most {
            if let Some(index) = found {
                fate(Thinned::Passed(self.groups.remove(index).held));
            }
            fate(Thinned::Passed(packet));
            return;
        }
        let Some(index) = found else {
            self.begin(now, what.flow, packet, fate);
            return;
        };
        let group = &mut self.groups[index];
        group.count += 1;
        if group.count >= self.config.every {
            fate(Thinned::Dropped(self.groups.remove(index).held));
            fate(Thinned::Passed(packet));
        } else {
            fate(Thinned::Dropped(std::mem::replace(&mut group.held, packet)));
        }
    }

    /// Lets go of what has been held until `now`.
    pub(crate) fn on_timer(&mut self, now: Timestamp, fate: &mut dyn FnMut(Thinned<P>)) {
        // Few at a time, so looking through them again is cheap.
        while let Some(index) = self.first_to_end() {
            if self.groups[index].ends_at > now {
                return;
            }
            fate(Thinned::Passed(self.groups.remove(index).held));
        }
    }

    /// Goes on with other settings. Groups that have begun keep their end; they end with the next
    /// packet if they have had enough by the new count.
    pub(crate) const fn reconfigure(&mut self, config: Thinning) {
        self.config = config;
    }

    /// When something that is held goes on, if no packet comes.
    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.groups.iter().map(|group| group.ends_at).min()
    }

    /// The packets that are held.
    pub(crate) fn held(&self) -> impl Iterator<Item = &P> {
        self.groups.iter().map(|group| &group.held)
    }

    fn begin(&mut self, now: Timestamp, flow: FlowId, packet: P, fate: &mut dyn FnMut(Thinned<P>)) {
        if self.config.every <= 1 || self.config.hold.is_zero() {
            fate(Thinned::Passed(packet));
            return;
        }
        self.groups.push(Group {
            flow,
            ends_at: now + self.config.hold,
            count: 1,
            held: packet,
        });
    }

    /// The group that ends first; of several, the one that began first.
    fn first_to_end(&self) -> Option<usize> {
        (0..self.groups.len()).min_by_key(|index| self.groups[*index].ends_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: ByteCount = ByteCount::new(75);
    const DATA: ByteCount = ByteCount::new(1_378);
    const HOLD: Duration = Duration::from_millis(20);

    fn one_in(every: u64) -> Thinning {
        Thinning {
            at_most: ByteCount::new(100),
            every,
            hold: HOLD,
        }
    }

    /// A thinner and what has come out of it, by packet number.
    struct Line {
        thinner: Thinner<u64>,
        passed: Vec<(u64, u64)>,
        dropped: Vec<u64>,
    }

    impl Line {
        fn new(config: Thinning) -> Self {
            Self {
                thinner: Thinner::new(config),
                passed: Vec::new(),
                dropped: Vec::new(),
            }
        }

        fn send(&mut self, at_ms: u64, flow: u32, size: ByteCount, packet: u64) {
            let what = Small {
                size,
                flow: FlowId(flow),
            };
            self.wait(at_ms);
            let now = Timestamp::from_millis(at_ms);
            let (passed, dropped) = (&mut self.passed, &mut self.dropped);
            self.thinner
                .arrive(now, what, packet, &mut |fate| match fate {
                    Thinned::Passed(packet) => passed.push((at_ms, packet)),
                    Thinned::Dropped(packet) => dropped.push(packet),
                });
        }

        /// Runs the timers up to `until_ms`, each at its instant.
        fn wait(&mut self, until_ms: u64) {
            while let Some(at) = self.thinner.next_timer() {
                let at_ms = at.as_nanos() / 1_000_000;
                if at_ms > until_ms {
                    return;
                }
                let passed = &mut self.passed;
                self.thinner.on_timer(at, &mut |fate| match fate {
                    Thinned::Passed(packet) => passed.push((at_ms, packet)),
                    Thinned::Dropped(_) => panic!("a timer drops nothing"),
                });
            }
        }
    }

    #[test]
    fn every_third_is_let_through_at_once() {
        let mut line = Line::new(one_in(3));
        for packet in 1..=9 {
            line.send(packet, 0, ACK, packet);
        }
        assert_eq!(line.passed, [(3, 3), (6, 6), (9, 9)]);
        assert_eq!(line.dropped, [1, 2, 4, 5, 7, 8]);
        assert_eq!(line.thinner.next_timer(), None);
        assert_eq!(line.thinner.held().count(), 0);
    }

    #[test]
    fn the_latest_of_an_unfinished_group_leaves_after_the_hold() {
        let mut line = Line::new(one_in(32));
        line.send(10, 0, ACK, 1);
        line.send(25, 0, ACK, 2);
        assert_eq!(line.thinner.next_timer(), Some(Timestamp::from_millis(30)));
        assert_eq!(line.thinner.held().collect::<Vec<_>>(), [&2]);
        line.wait(29);
        assert_eq!(line.passed, []);
        line.wait(30);
        assert_eq!(line.passed, [(30, 2)]);
        assert_eq!(line.dropped, [1]);
        // The next one begins a group of its own.
        line.send(31, 0, ACK, 3);
        line.wait(100);
        assert_eq!(line.passed, [(30, 2), (51, 3)]);
    }

    #[test]
    fn a_larger_packet_follows_what_was_held() {
        let mut line = Line::new(one_in(10));
        line.send(1, 0, ACK, 1);
        line.send(2, 0, DATA, 2);
        line.send(3, 0, DATA, 3);
        assert_eq!(line.passed, [(2, 1), (2, 2), (3, 3)]);
        assert_eq!(line.dropped, []);
        assert_eq!(line.thinner.next_timer(), None);
        // One of exactly the limit is small.
        line.send(4, 0, ByteCount::new(100), 4);
        assert_eq!(line.thinner.held().count(), 1);
    }

    #[test]
    fn flows_are_thinned_apart() {
        let mut line = Line::new(one_in(2));
        line.send(1, 0, ACK, 10);
        line.send(2, 1, ACK, 20);
        line.send(3, 1, DATA, 21);
        line.send(4, 0, ACK, 11);
        line.send(5, 2, ACK, 30);
        line.send(5, 3, ACK, 40);
        line.wait(100);
        assert_eq!(line.passed, [(3, 20), (3, 21), (4, 11), (25, 30), (25, 40)]);
        assert_eq!(line.dropped, [10]);
    }

    #[test]
    fn a_caller_that_comes_late_still_gets_the_order_right() {
        let mut line = Line::new(one_in(5));
        line.send(1, 0, ACK, 1);
        let what = Small {
            size: ACK,
            flow: FlowId(0),
        };
        let mut fates = Vec::new();
        let now = Timestamp::from_millis(30);
        line.thinner
            .arrive(now, what, 2, &mut |fate| fates.push(fate));
        assert_eq!(fates, [Thinned::Passed(1)]);
        assert_eq!(line.thinner.next_timer(), Some(now + HOLD));
    }

    #[test]
    fn one_in_one_and_no_hold_change_nothing() {
        let no_hold = Thinning {
            hold: Duration::ZERO,
            ..one_in(10)
        };
        for config in [one_in(1), no_hold] {
            let mut line = Line::new(config);
            for packet in 1..=5 {
                line.send(packet, 0, ACK, packet);
            }
            assert_eq!(line.passed, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
        }
    }

    #[test]
    fn a_smaller_count_ends_a_group_that_has_had_enough() {
        let mut line = Line::new(one_in(100));
        for packet in 1..=5 {
            line.send(packet, 0, ACK, packet);
        }
        line.thinner.reconfigure(one_in(3));
        line.send(6, 0, ACK, 6);
        assert_eq!(line.passed, [(6, 6)]);
        assert_eq!(line.dropped, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        assert_eq!(
            one_in(0).check().unwrap_err(),
            "thinning: one in 0 packets is none at all, at least 1"
        );
        let long = Thinning {
            hold: Duration::from_secs(61),
            ..one_in(2)
        };
        assert_eq!(
            long.check().unwrap_err(),
            "thinning: hold 61 s is too long, at most 60 s"
        );
        assert_eq!(one_in(32).check(), Ok(()));
    }
}
