//! HyStart++: leave slow start when the RTT says that the queue grows, before the queue overflows.
//!
//! Follows RFC 9406; section numbers are its own.
//!
//! ```text
//!                 8 samples, minimum of the round up by a threshold
//!   slow start ----------------------------------------------------> conservative slow start ----> congestion
//!        ^                                                               |      5 rounds           avoidance
//!        '------------ 8 samples, minimum below the baseline ------------'
//! ```
//!
//! Rounds are told by send time: a round ends when a packet is acknowledged that left at or after the round's beginning.
//! That needs no packet number, of which QUIC has three spaces. One event gives one sample, the raw RTT of its newest
//! packet.
//!
//! A round in which the window was not filled, for lack of data, gives no verdict: its delay says nothing about a full
//! window. Nor does the round after it, which would be compared with it.
//!
//! The growth per acknowledgement is not limited (L is infinite), because the sender is paced (section 4.3).

use std::time::Duration;

use units::Timestamp;

/// Section 4.3: the RTT must rise by an eighth, but by 4 ms at least (smaller ones are noise) and 16 ms suffice.
const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
const LARGEST_THRESHOLD: Duration = Duration::from_millis(16);
const THRESHOLD_DIVISOR: u32 = 8;

/// Section 4.3, N_RTT_SAMPLE: samples in a round before it is judged.
const SAMPLES_FOR_A_VERDICT: u32 = 8;

/// Section 4.3, CSS_ROUNDS: rounds of conservative slow start; the rest of the round it begins in is the first.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Section 4.3, CSS_GROWTH_DIVISOR: conservative slow start grows by this part of what is acknowledged.
pub(crate) const CONSERVATIVE_GROWTH_DIVISOR: u64 = 4;

/// What the delay says.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The RTT has risen: go on conservatively.
    Slow,
    /// The RTT has come down again: it was not the queue, so go on as before.
    Resume,
    /// The RTT has stayed up: slow start is over.
    Exit,
}

/// One feedback event, as far as the delay is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Observation {
    /// When the newest acknowledged packet left.
    pub(crate) newest_sent_at: Option<Timestamp>,
    /// Its RTT, if it gave a sample.
    pub(crate) rtt: Option<Duration>,
    /// Whether something was acknowledged that was no test of the window.
    pub(crate) is_limited: bool,
}

/// The observer of the delay in slow start.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct HyStart {
    round: Round,
    /// `lastRoundMinRTT`, if the last round may be compared with.
    last_minimum: Option<Duration>,
    /// Set while slow start is conservative.
    conservative: Option<Conservative>,
}

#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Round {
    began_at: Timestamp,
    /// `currentRoundMinRTT`.
    minimum: Option<Duration>,
    /// `rttSampleCount`.
    sample_count: u32,
    is_limited: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: Duration,
    round_count: u32,
}

impl HyStart {
    /// Digests one event of slow start.
    pub(crate) fn on_feedback(&mut self, now: Timestamp, seen: &Observation) -> Option<Verdict> {
        let is_round_over = seen
            .newest_sent_at
            .is_some_and(|sent_at| sent_at >= self.round.began_at);
        if is_round_over && self.begin_round(now) {
            return Some(Verdict::Exit);
        }
        self.round.is_limited |= seen.is_limited;
        if let Some(rtt) = seen.rtt {
            self.round.sample_count = self.round.sample_count.saturating_add(1);
            self.round.minimum = Some(self.round.minimum.map_or(rtt, |least| least.min(rtt)));
        }
        self.judge()
    }

    /// Notes that the current round is no test of the window: there was nothing to send, or growth was interrupted.
    pub(crate) fn on_limited(&mut self) {
        self.round.is_limited = true;
    }

    /// Ends a round and says whether conservative slow start ends with it. Limited rounds do not count there
    /// either, because the window did not grow in them.
    fn begin_round(&mut self, now: Timestamp) -> bool {
        let ended = std::mem::replace(
            &mut self.round,
            Round {
                began_at: now,
                ..Round::default()
            },
        );
        self.last_minimum = ended.minimum.filter(|_| !ended.is_limited);
        let Some(conservative) = &mut self.conservative else {
            return false;
        };
        conservative.round_count += u32::from(!ended.is_limited);
        conservative.round_count >= CONSERVATIVE_ROUNDS
    }

    fn judge(&mut self) -> Option<Verdict> {
        if self.round.is_limited || self.round.sample_count < SAMPLES_FOR_A_VERDICT {
            return None;
        }
        let minimum = self.round.minimum?;
        let has_risen = self
            .last_minimum
            .is_some_and(|last| minimum >= last.saturating_add(threshold(last)));
        match &mut self.conservative {
            None if has_risen => {
                self.conservative = Some(Conservative {
                    baseline: minimum,
                    round_count: 0,
                });
                Some(Verdict::Slow)
            }
            // The baseline is the minimum of the round in which it was set. Later samples of that round may lower it;
            // as long as it is still a rise they do not contradict it. Read to the letter, each of them would
            // end conservative slow start and the next sample begin it again.
            Some(conservative) if minimum < conservative.baseline && has_risen => {
                conservative.baseline = minimum;
                None
            }
            Some(conservative) if minimum < conservative.baseline => {
                self.conservative = None;
                Some(Verdict::Resume)
            }
            _ => None,
        }
    }
}

/// Section 4.2, `RttThresh`.
fn threshold(last: Duration) -> Duration {
    (last / THRESHOLD_DIVISOR).clamp(LEAST_THRESHOLD, LARGEST_THRESHOLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Plays rounds of samples in milliseconds; a round's packets leave when the previous round's news is in.
    struct Story {
        hystart: HyStart,
        now: Timestamp,
    }

    impl Story {
        fn new() -> Self {
            Self {
                hystart: HyStart::default(),
                now: Timestamp::from_secs(1),
            }
        }

        fn round(&mut self, samples: &[u64]) -> Vec<Verdict> {
            self.any_round(samples, false)
        }

        fn any_round(&mut self, samples: &[u64], is_limited: bool) -> Vec<Verdict> {
            let sent_at = self.now;
            let mut verdicts = Vec::new();
            for &sample in samples {
                self.now = self.now.max(sent_at + ms(sample));
                let seen = Observation {
                    newest_sent_at: Some(sent_at),
                    rtt: Some(ms(sample)),
                    is_limited,
                };
                verdicts.extend(self.hystart.on_feedback(self.now, &seen));
            }
            self.now += Duration::from_nanos(1);
            verdicts
        }
    }

    // Section 4.3.
    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        for (rtt_ms, wanted_us) in [
            (10, 4_000),
            (32, 4_000),
            (40, 5_000),
            (60, 7_500),
            (100, 12_500),
            (128, 16_000),
            (200, 16_000),
        ] {
            assert_eq!(threshold(ms(rtt_ms)), Duration::from_micros(wanted_us));
        }
    }

    #[test]
    fn a_rise_by_the_threshold_slows_down_on_the_eighth_sample() {
        let mut story = Story::new();
        assert_eq!(story.round(&[40; 8]), []);
        assert_eq!(story.round(&[46; 7]), []);
        let mut story = Story::new();
        story.round(&[40; 8]);
        assert_eq!(story.round(&[46; 8]), [Verdict::Slow]);
        let mut story = Story::new();
        story.round(&[40; 8]);
        assert_eq!(story.round(&[44; 50]), []);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_slow_start() {
        let mut story = Story::new();
        story.round(&[40; 8]);
        assert_eq!(story.round(&[46; 8]), [Verdict::Slow]);
        assert_eq!(story.round(&[46; 8]), []);
        assert_eq!(story.round(&[38; 7]), [], "too few samples");
        assert_eq!(story.round(&[38; 8]), [Verdict::Resume]);
        assert_eq!(story.round(&[38; 50]), []);
    }

    // Section 4.3: the round in which conservative slow start begins is the first of five.
    #[test]
    fn five_rounds_end_slow_start() {
        let mut story = Story::new();
        story.round(&[40; 8]);
        assert_eq!(story.round(&[50; 20]), [Verdict::Slow]);
        for _ in 0..4 {
            assert_eq!(story.round(&[60; 20]), []);
        }
        assert_eq!(story.round(&[60; 1]), [Verdict::Exit]);
    }

    #[test]
    fn within_the_round_it_began_in_a_smaller_rise_is_still_a_rise() {
        let mut story = Story::new();
        story.round(&[40; 8]);
        let falling = [60, 60, 60, 60, 60, 60, 60, 60, 55, 50, 47];
        assert_eq!(story.round(&falling), [Verdict::Slow]);
        assert_eq!(story.round(&[48; 8]), [], "47 is the baseline now");
        assert_eq!(story.round(&[46; 8]), [Verdict::Resume]);
        let mut story = Story::new();
        story.round(&[40; 8]);
        let none = [60, 60, 60, 60, 60, 60, 60, 60, 44];
        assert_eq!(story.round(&none), [Verdict::Slow, Verdict::Resume]);
    }

    #[test]
    fn a_limited_round_gives_no_verdict_and_is_no_reference() {
        let mut story = Story::new();
        story.round(&[40; 8]);
        assert_eq!(story.any_round(&[60; 20], true), []);
        assert_eq!(story.round(&[80; 20]), [], "the last round was limited");
        assert_eq!(story.round(&[100; 20]), [Verdict::Slow]);
        // In conservative slow start neither a fall nor the round itself counts.
        for _ in 0..10 {
            assert_eq!(story.any_round(&[40; 20], true), []);
        }
        for _ in 0..4 {
            assert_eq!(story.round(&[100; 20]), []);
        }
        assert_eq!(story.round(&[100; 1]), [Verdict::Exit]);
    }

    #[test]
    fn after_a_pause_old_delays_are_no_reference() {
        let mut story = Story::new();
        story.round(&[40; 8]);
        story.hystart.on_limited();
        story.now += Duration::from_secs(60);
        assert_eq!(story.round(&[90; 20]), []);
    }

    #[test]
    fn a_path_that_stays_as_it_is_is_never_judged() {
        let mut story = Story::new();
        for _ in 0..1_000 {
            assert_eq!(story.round(&[40; 30]), []);
        }
    }

    #[test]
    fn absurd_samples_do_no_harm() {
        let mut hystart = HyStart::default();
        for (at, rtt) in [
            (Timestamp::MAX, Duration::MAX),
            (Timestamp::ZERO, Duration::ZERO),
            (Timestamp::MAX, Duration::MAX),
        ] {
            for _ in 0..10 {
                hystart.on_feedback(
                    at,
                    &Observation {
                        newest_sent_at: Some(at),
                        rtt: Some(rtt),
                        is_limited: false,
                    },
                );
            }
        }
        assert_eq!(hystart.round.minimum, Some(Duration::MAX));
    }
}
