//! Delay that varies from packet to packet.
//!
//! ```text
//!  walk      offset     .-'`-._            a new target every 100 ms, straight lines between
//!                    .-'       `-._   _
//!                  -'              `-'
//!  iid       |  |   | | |    |     |       every packet for itself
//!
//!  wifi      ||:|.|||.|:|  ...:::|||       short waits for the medium, now and then a long one
//! ```
//!
//! The walk is the default because it is what a queue somewhere else on the path looks like.
//! Offsets drawn for each packet alone either put the packets out of order, which networks seldom
//! do to so many, or, kept in order, make a late one hold up all that follow, so that many arrive
//! at one instant: an artefact that looks like ACK compression.

use std::time::Duration;

use units::{Timestamp, format_duration, math};

use crate::distributions::{nth, poisson, uniform, unit};
use crate::random::RandomStream;

/// What is added to the propagation delay of each packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Jitter {
    /// The offset moves in straight lines between targets drawn every [`Jitter::STEP`], uniform in
    /// [0, amplitude). It never moves faster than amplitude per step, so it does not put packets
    /// out of order.
    Walk {
        /// At most [`Jitter::STEP`], for the reason above. Zero is no jitter.
        amplitude: Duration,
    },
    /// Each packet draws its own offset, uniform in [0, amplitude); one that would overtake arrives
    /// together with the packet before it. Compresses gaps; prefer the walk.
    IidClamped {
        /// At most [`Jitter::LONGEST`].
        amplitude: Duration,
    },
    /// Each packet draws its own offset, uniform in [0, amplitude), and overtakes if that makes it
    /// earlier, as under `tc netem delay TIME JITTER`.
    IidReorder {
        /// At most [`Jitter::LONGEST`].
        amplitude: Duration,
    },
    /// Waits for a contended radio channel, kept in order: a Poisson count (mean 1) of slots of 1
    /// ms, and with probability (level - 1 ms) / 84 ms also a Poisson count (mean 12) of slots of
    /// 7.5 ms; of each count that is not zero, up to one slot is taken off again, uniformly.
    ///
    /// The model picoquic's simulator uses for "bad Wi-Fi", fitted there to measurements. The mean
    /// is 0.68 ms plus 86.25 ms times the probability.
    Wifi {
        /// From 1 ms, short waits only, to 85 ms, always a long one. About the mean, and 12.5 ms
        /// for a bad network.
        level: Duration,
    },
}

impl Jitter {
    /// Time between two targets of the walk.
    pub const STEP: Duration = Duration::from_millis(100);
    /// The largest amplitude that is accepted: one minute.
    pub const LONGEST: Duration = Duration::from_secs(60);

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is out of range.
    pub fn check(&self) -> Result<(), String> {
        let (what, value, range) = match *self {
            Self::Walk { amplitude } => ("amplitude", amplitude, Duration::ZERO..=Self::STEP),
            Self::IidClamped { amplitude } | Self::IidReorder { amplitude } => {
                ("amplitude", amplitude, Duration::ZERO..=Self::LONGEST)
            }
            Self::Wifi { level } => ("level", level, SHORT_SLOT..=SHORT_SLOT + LONG_WAITS_SPAN),
        };
        if range.contains(&value) {
            return Ok(());
        }
        Err(format!(
            "jitter: {what} {} is out of range for this kind, from {} to {}",
            format_duration(value),
            format_duration(*range.start()),
            format_duration(*range.end())
        ))
    }
}

/// The running source of a [`Jitter`].
///
/// Takes one draw for each packet, which is spread into as many numbers as the kind needs, and one
/// at the beginning for the walk. So a change of kind or amplitude shifts nothing: the targets of
/// the walk are a function of time alone.
#[derive(Clone, Debug)]
pub(crate) struct JitterSource {
    config: Jitter,
    random: RandomStream,
    /// Stands for all targets of the walk.
    walk: u64,
}

impl JitterSource {
    pub(crate) fn new(config: Jitter, mut random: RandomStream) -> Self {
        let walk = random.u64();
        Self {
            config,
            random,
            walk,
        }
    }

    /// What is added to the delay of the packet that enters propagation at `now`.
    pub(crate) fn offset(&mut self, now: Timestamp) -> Duration {
        let draw = self.random.u64();
        match self.config {
            Jitter::Walk { amplitude } => self.walk(now, amplitude),
            Jitter::IidClamped { amplitude } | Jitter::IidReorder { amplitude } => {
                Duration::from_nanos(uniform(draw, nanos(amplitude)))
            }
            Jitter::Wifi { level } => wifi(draw, level),
        }
    }

    /// Goes on with other settings.
    pub(crate) const fn reconfigure(&mut self, config: Jitter) {
        self.config = config;
    }

    /// Whether a packet that comes out earlier than those before it overtakes them. If not, it
    /// arrives with them.
    pub(crate) const fn may_reorder(&self) -> bool {
        matches!(self.config, Jitter::IidReorder { .. })
    }

    /// Rounded to a nanosecond, towards the target behind. The line falls by at most the step in a
    /// step, so now + offset never falls; nor does it rounded up, since `now` is whole.
    fn walk(&self, now: Timestamp, amplitude: Duration) -> Duration {
        let step = nanos(Jitter::STEP);
        let (index, phase) = (now.as_nanos() / step, now.as_nanos() % step);
        let target = |index| uniform(nth(self.walk, index), nanos(amplitude));
        let (from, to) = (target(index), target(index.wrapping_add(1)));
        let offset = if to >= from {
            from + math::mul_div(to - from, phase, step)
        } else {
            from - math::mul_div(from - to, phase, step)
        };
        Duration::from_nanos(offset)
    }
}

const SHORT_SLOT: Duration = Duration::from_millis(1);
const LONG_SLOT: Duration = Duration::from_micros(7_500);
/// The span of levels over which long waits go from never to always.
const LONG_WAITS_SPAN: Duration = Duration::from_millis(84);

fn wifi(draw: u64, level: Duration) -> Duration {
    let draw = |index| nth(draw, index);
    let short = waits(draw(1), draw(2), 1.0, SHORT_SLOT);
    let chance = level.saturating_sub(SHORT_SLOT).as_secs_f64() / LONG_WAITS_SPAN.as_secs_f64();
    if unit(draw(3)) < chance {
        short + waits(draw(4), draw(5), 12.0, LONG_SLOT)
    } else {
        short
    }
}

/// A Poisson count of slots, less up to one of them.
fn waits(count: u64, part: u64, mean: f64, slot: Duration) -> Duration {
    let slots = poisson(count, mean).saturating_mul(nanos(slot));
    Duration::from_nanos(slots.saturating_sub(uniform(part, nanos(slot))))
}

/// All that `check` accepts fits.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;
    use crate::validation_rows::row;

    const AMPLITUDE: Duration = Duration::from_millis(20);

    fn source(config: Jitter, seed: u64) -> JitterSource {
        JitterSource::new(config, RandomStreams::new(seed).stream("forward.jitter"))
    }

    fn offsets(config: Jitter, seed: u64, n: u64, spacing: Duration) -> Vec<Duration> {
        let mut source = source(config, seed);
        let mut now = Timestamp::ZERO;
        (0..n)
            .map(|_| {
                now += spacing;
                source.offset(now)
            })
            .collect()
    }

    fn mean_ms(offsets: &[Duration]) -> f64 {
        offsets.iter().sum::<Duration>().as_secs_f64() * 1e3 / offsets.len() as f64
    }

    /// The row "jitter walk": offset in [0, 20 ms), slew at most 20 ms in 100 ms, no reordering,
    /// all exact.
    #[test]
    fn the_walk_stays_in_its_bounds_and_in_order() {
        // A prime spacing, to meet all phases; 200 s.
        let spacing = Duration::from_nanos(99_991);
        let offsets = offsets(
            Jitter::Walk {
                amplitude: AMPLITUDE,
            },
            1,
            2_000_000,
            spacing,
        );
        assert!(offsets.iter().all(|offset| *offset < AMPLITUDE));
        for pair in offsets.windows(2) {
            // Rounding moves each end by less than 1 ns.
            assert!(pair[0].abs_diff(pair[1]) <= spacing / 5 + Duration::from_nanos(1));
            assert!(pair[1] + spacing >= pair[0]);
        }
        // It uses its range: 2,000 targets with a mean of 10 ms, standard deviation 0.13 ms.
        assert!(offsets.iter().max() > Some(&Duration::from_micros(19_900)));
        assert!(offsets.iter().min() < Some(&Duration::from_micros(100)));
        let mean = mean_ms(&offsets);
        assert!((mean - 10.0).abs() < 0.5, "{mean}");

        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let (least, most) = (offsets.iter().min().unwrap(), offsets.iter().max().unwrap());
        row(
            "link model",
            "jitter walk of 20 ms, 200 s: smallest and largest offset",
            format!("{:.6} ms, {:.6} ms", millis(*least), millis(*most)),
            "in [0, 20 ms)",
        );
        let slews = offsets
            .windows(2)
            .map(|pair| pair[0].abs_diff(pair[1]))
            .max();
        row(
            "link model",
            "jitter walk of 20 ms, 200 s: fastest change within 99.991 us",
            format!("{} ns", slews.unwrap().as_nanos()),
            "at most 19,999 ns, 20 ms in 100 ms and a nanosecond of rounding",
        );
        let overtaken = offsets
            .windows(2)
            .filter(|pair| pair[1] + spacing < pair[0])
            .count();
        row(
            "link model",
            "jitter walk of 20 ms, 200 s: packets out of order",
            format!("{overtaken} of {}", offsets.len()),
            "0",
        );
    }

    #[test]
    fn the_fastest_walk_there_is_keeps_the_order_of_every_nanosecond() {
        let source = source(
            Jitter::Walk {
                amplitude: Jitter::STEP,
            },
            1,
        );
        let arrival = |now: u64| {
            let now = Timestamp::from_nanos(now);
            now + source.walk(now, Jitter::STEP)
        };
        for step in 0..200 {
            // Around each target, and somewhere between.
            for start in [step * 100_000_000, step * 100_000_000 + 33_333_333] {
                for now in start..start + 500 {
                    assert!(arrival(now + 1) >= arrival(now), "at {now} ns");
                }
            }
        }
    }

    #[test]
    fn the_walk_is_a_function_of_time_alone() {
        let config = Jitter::Walk {
            amplitude: AMPLITUDE,
        };
        let (mut often, mut seldom) = (source(config, 3), source(config, 3));
        for ms in 1..5_000 {
            let offset = often.offset(Timestamp::from_millis(ms));
            if ms % 777 == 0 {
                assert_eq!(offset, seldom.offset(Timestamp::from_millis(ms)));
            }
        }
        assert!(seldom.offset(Timestamp::MAX) < AMPLITUDE);
    }

    #[test]
    fn independent_offsets_are_uniform() {
        let config = Jitter::IidReorder {
            amplitude: AMPLITUDE,
        };
        let offsets = offsets(config, 1, 100_000, Duration::from_millis(1));
        assert!(offsets.iter().all(|offset| *offset < AMPLITUDE));
        // Ten classes, nine degrees of freedom: the 99 % point is 21.7.
        let mut counts = [0.0_f64; 10];
        for offset in &offsets {
            counts[usize::try_from(offset.as_millis() / 2).unwrap()] += 1.0;
        }
        let chi_squared: f64 = counts.iter().map(|n| (n - 1e4) * (n - 1e4) / 1e4).sum();
        assert!(chi_squared < 21.7, "{chi_squared}");
    }

    #[test]
    fn only_one_kind_reorders() {
        let level = Duration::from_millis(12);
        for (config, may_reorder) in [
            (
                Jitter::Walk {
                    amplitude: AMPLITUDE,
                },
                false,
            ),
            (
                Jitter::IidClamped {
                    amplitude: AMPLITUDE,
                },
                false,
            ),
            (
                Jitter::IidReorder {
                    amplitude: AMPLITUDE,
                },
                true,
            ),
            (Jitter::Wifi { level }, false),
        ] {
            assert_eq!(source(config, 1).may_reorder(), may_reorder, "{config:?}");
        }
    }

    #[test]
    fn wifi_waits_as_long_as_its_formula_says() {
        // E[N ms - U] over N > 0, N Poisson of mean 1: 1 - (1 - 1/e) / 2 = 0.684 ms. The long wait:
        // 12 * 7.5 - 7.5 / 2 = 86.25 ms, of which the 11.5 / 84th part comes: 11.81 ms.
        let wifi = |level_us, n| {
            let level = Duration::from_micros(level_us);
            offsets(Jitter::Wifi { level }, 1, n, Duration::from_millis(1))
        };
        let short = wifi(1_000, 100_000);
        assert!(
            (mean_ms(&short) - 0.684).abs() < 0.02,
            "{}",
            mean_ms(&short)
        );
        // A count of zero, in 1 of e packets: no wait at all.
        let none = short.iter().filter(|offset| offset.is_zero()).count();
        assert!((36_200..37_400).contains(&none), "{none}");

        let bad = wifi(12_500, 400_000);
        assert!((mean_ms(&bad) - 12.49).abs() < 0.2, "{}", mean_ms(&bad));
        let long = bad.iter().filter(|offset| offset.as_millis() >= 20).count();
        // 400,000 * 11.5 / 84 = 54,762, nearly all of them beyond 20 ms; and nearly none else.
        assert!((54_000..55_500).contains(&long), "{long}");

        let always = wifi(85_000, 100_000);
        assert!(
            (mean_ms(&always) - 86.93).abs() < 0.4,
            "{}",
            mean_ms(&always)
        );
    }

    #[test]
    fn kinds_and_amplitudes_do_not_shift_the_draws() {
        let level = Duration::from_millis(12);
        let mut next = [
            Jitter::Walk {
                amplitude: Duration::ZERO,
            },
            Jitter::Walk {
                amplitude: AMPLITUDE,
            },
            Jitter::IidClamped {
                amplitude: AMPLITUDE,
            },
            Jitter::IidReorder {
                amplitude: Duration::ZERO,
            },
            Jitter::Wifi { level },
        ]
        .map(|config| {
            let mut source = source(config, 2);
            for ms in 0..1_000 {
                source.offset(Timestamp::from_millis(ms));
            }
            source.reconfigure(Jitter::IidClamped {
                amplitude: AMPLITUDE,
            });
            source.offset(Timestamp::from_secs(1))
        })
        .into_iter();
        let first = next.next().unwrap();
        assert!(next.all(|offset| offset == first));
    }

    #[test]
    fn the_same_seed_gives_the_same_offsets() {
        let level = Duration::from_millis(40);
        for config in [
            Jitter::Walk {
                amplitude: AMPLITUDE,
            },
            Jitter::Wifi { level },
        ] {
            let play = |seed| offsets(config, seed, 10_000, Duration::from_micros(700));
            assert_eq!(play(5), play(5));
            assert_ne!(play(5), play(6));
        }
    }

    #[test]
    fn no_amplitude_is_no_jitter() {
        for config in [
            Jitter::Walk {
                amplitude: Duration::ZERO,
            },
            Jitter::IidClamped {
                amplitude: Duration::ZERO,
            },
        ] {
            let offsets = offsets(config, 1, 1_000, Duration::from_millis(1));
            assert!(offsets.iter().all(Duration::is_zero));
        }
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        let fast = Jitter::Walk {
            amplitude: Duration::from_millis(101),
        };
        assert_eq!(
            fast.check().unwrap_err(),
            "jitter: amplitude 101 ms is out of range for this kind, from 0 s to 100 ms"
        );
        let low = Jitter::Wifi {
            level: Duration::from_micros(999),
        };
        assert_eq!(
            low.check().unwrap_err(),
            "jitter: level 999 us is out of range for this kind, from 1 ms to 85 ms"
        );
        assert_eq!(
            Jitter::Walk {
                amplitude: AMPLITUDE
            }
            .check(),
            Ok(())
        );
        assert_eq!(
            Jitter::Wifi {
                level: Duration::from_millis(85)
            }
            .check(),
            Ok(())
        );
        assert_eq!(
            Jitter::IidReorder {
                amplitude: Jitter::LONGEST
            }
            .check(),
            Ok(())
        );
    }
}
