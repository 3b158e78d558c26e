//! Made-up recordings of mobile links.
//!
//! ```text
//!  log-rate   an AR(1) process, a step every 20 ms: wanders around its mean, forgets within seconds
//!     |
//!     x  outages   nothing at all for a while: exponential times between them, lengths with a tail
//!     |
//!     v
//!  Poisson slots of 1,500 B in each millisecond  ->  a `Trace`
//! ```
//!
//! The presets are fitted to the mean, the variation in 100 ms, the share of 100 ms without a slot
//! and the longest gap of the downlink traces that come with mahimahi (recorded by K. Winstein and
//! others for "Stochastic forecasts achieve high throughput and low delay over cellular networks",
//! 2013). They are not those recordings, and they have no structure beyond those figures.
//!
//! A sample of a few minutes of such a process differs from its parameters by tens of percent. The
//! generator therefore takes the chance out of the figures above and leaves it in everything else:
//! the log-rate is stretched until the rate varies as much as it should, the lengths of the outages
//! are spread evenly over their distribution, and the whole is scaled to the mean rate.

use std::ops::Range;
use std::time::Duration;

use units::{Rate, format_duration};

use crate::distributions::{normal, poisson, uniform, unit, whole};
use crate::random::RandomStream;
use crate::trace::Trace;

/// Parameters of a mobile link's slots.
///
/// ```
/// use std::time::Duration;
/// use netsim::{Cellular, RandomStreams};
///
/// let mut random = RandomStreams::new(7).stream("forward.cellular");
/// let trace = Cellular::ATT_LTE.generate(Duration::from_secs(120), &mut random)?;
/// assert_eq!(trace.period(), Duration::from_secs(120));
/// # Ok::<(), String>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cellular {
    /// Mean rate of all slots, outages included, from 12 kbit/s to [`Cellular::HIGHEST_MEAN`].
    pub mean: Rate,
    /// Standard deviation of the rate between outages over its mean, in thousandths; at most 1,500.
    pub variation_thousandths: u32,
    /// How long the rate takes to forget all but the e-th part; from 20 ms to one minute.
    pub correlation: Duration,
    /// When there is no rate at all.
    pub outages: Outages,
}

/// Times without a slot, as long as the lengths of a Pareto distribution cut off at both ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Outages {
    /// How many there are in an hour on average; together less than half the time.
    pub per_hour: u32,
    /// The shortest, from 1 ms.
    pub shortest: Duration,
    /// The longest, up to one minute.
    pub longest: Duration,
    /// The exponent of the Pareto distribution, in thousandths, from 100 to 10,000: the larger, the
    /// fewer long ones.
    pub steepness_thousandths: u32,
}

impl Cellular {
    /// AT&T's LTE, driving (2012): 5.17 Mbit/s, variation 0.60, 5.1 % of 100 ms empty, longest gap
    /// 1.5 s.
    pub const ATT_LTE: Self = Self {
        mean: Rate::from_kbps(5_170),
        variation_thousandths: 530,
        correlation: Duration::from_millis(5_000),
        outages: Outages {
            per_hour: 330,
            shortest: Duration::from_millis(200),
            longest: Duration::from_millis(1_515),
            steepness_thousandths: 100,
        },
    };
    /// T-Mobile's LTE, driving (2013): 12.77 Mbit/s, variation 0.89, 8.0 % of 100 ms empty, longest
    /// gap 1.1 s.
    pub const TMOBILE_LTE: Self = Self {
        mean: Rate::from_kbps(12_770),
        variation_thousandths: 800,
        correlation: Duration::from_millis(3_500),
        outages: Outages {
            per_hour: 660,
            shortest: Duration::from_millis(200),
            longest: Duration::from_millis(1_058),
            steepness_thousandths: 100,
        },
    };
    /// T-Mobile's UMTS, driving (2012): 2.02 Mbit/s, variation 0.83, 11.7 % of 100 ms empty,
    /// longest gap 5.8 s.
    pub const TMOBILE_UMTS: Self = Self {
        mean: Rate::from_kbps(2_020),
        variation_thousandths: 665,
        correlation: Duration::from_millis(8_000),
        outages: Outages {
            per_hour: 660,
            shortest: Duration::from_millis(200),
            longest: Duration::from_millis(5_753),
            steepness_thousandths: 950,
        },
    };
    /// Verizon's LTE, a short drive (2012): 5.03 Mbit/s, variation 0.71, 1.6 % of 100 ms empty,
    /// longest gap 1.4 s.
    pub const VERIZON_LTE: Self = Self {
        mean: Rate::from_kbps(5_030),
        variation_thousandths: 675,
        correlation: Duration::from_millis(3_500),
        outages: Outages {
            per_hour: 129,
            shortest: Duration::from_millis(200),
            longest: Duration::from_millis(1_447),
            steepness_thousandths: 400,
        },
    };
    /// Verizon's EV-DO, driving (2012): 0.52 Mbit/s, variation 1.17, 25 % of 100 ms empty, longest
    /// gap 11.6 s.
    pub const VERIZON_EVDO: Self = Self {
        mean: Rate::from_kbps(520),
        variation_thousandths: 835,
        correlation: Duration::from_millis(3_000),
        outages: Outages {
            per_hour: 1_480,
            shortest: Duration::from_millis(200),
            longest: Duration::from_millis(11_567),
            steepness_thousandths: 1_500,
        },
    };

    /// All presets by name.
    pub const PRESETS: [(&str, Self); 5] = [
        ("att-lte", Self::ATT_LTE),
        ("tmobile-lte", Self::TMOBILE_LTE),
        ("tmobile-umts", Self::TMOBILE_UMTS),
        ("verizon-lte", Self::VERIZON_LTE),
        ("verizon-evdo", Self::VERIZON_EVDO),
    ];

    /// The highest mean rate that is accepted.
    pub const HIGHEST_MEAN: Rate = Rate::from_mbps(200);
    /// How long a trace may be: from 1 s, less than which has no meaning, to one hour.
    pub const LENGTHS: std::ops::RangeInclusive<Duration> =
        Duration::from_secs(1)..=Duration::from_secs(3_600);

    /// The preset of this name, if there is one.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let mut presets = Self::PRESETS.into_iter();
        presets.find_map(|(known, preset)| (known == name).then_some(preset))
    }

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is out of range.
    pub fn check(&self) -> Result<(), String> {
        if !(Rate::from_kbps(12)..=Self::HIGHEST_MEAN).contains(&self.mean) {
            return Err(format!(
                "cellular: mean rate {} is out of range, from 12 kbit/s to {}",
                self.mean,
                Self::HIGHEST_MEAN
            ));
        }
        if self.variation_thousandths > 1_500 {
            return Err(format!(
                "cellular: variation {} is too large, at most 1500 thousandths",
                self.variation_thousandths
            ));
        }
        if !(TICK..=Duration::from_secs(60)).contains(&self.correlation) {
            return Err(format!(
                "cellular: correlation {} is out of range, from 20 ms to 60 s",
                format_duration(self.correlation)
            ));
        }
        self.outages.check()
    }

    /// A trace of the given length, rounded down to a millisecond, from the stream given.
    ///
    /// The same stream and length give the same slots on every platform.
    ///
    /// # Errors
    ///
    /// As for [`Self::check`], and if `length` is not one of [`Self::LENGTHS`] or the trace would
    /// have more slots than a trace can have.
    pub fn generate(&self, length: Duration, random: &mut RandomStream) -> Result<Trace, String> {
        self.check()?;
        check_length(length)?;
        let log_rates = log_rates(ticks_in(length), self.correlation, random);
        let rates = stretch(&log_rates, f64::from(self.variation_thousandths) / 1_000.0);
        let outages = self.outages.place(length, random);
        slots(self.mean, &rates, &outages, length, random)
    }
}

impl Outages {
    fn check(&self) -> Result<(), String> {
        let (millisecond, minute) = (Duration::from_millis(1), Duration::from_secs(60));
        if self.shortest < millisecond || self.longest < self.shortest || self.longest > minute {
            return Err(format!(
                "cellular: outages from {} to {} are out of range, from 1 ms to 60 s",
                format_duration(self.shortest),
                format_duration(self.longest)
            ));
        }
        if !(100..=10_000).contains(&self.steepness_thousandths) {
            return Err(format!(
                "cellular: steepness {} is out of range, from 100 to 10000 thousandths",
                self.steepness_thousandths
            ));
        }
        // The mean of a hundred lengths is close enough to refuse what cannot be placed.
        let mean = (0..100_u32)
            .map(|percent| self.length(f64::from(percent) / 100.0 + 0.005))
            .sum::<f64>()
            / 100.0;
        if mean * f64::from(self.per_hour) >= 1_800_000.0 {
            return Err(format!(
                "cellular: {} outages an hour would take more than half the time",
                self.per_hour
            ));
        }
        Ok(())
    }

    /// The length in milliseconds below which a share of `quantile` of all lengths is.
    fn length(&self, quantile: f64) -> f64 {
        let steepness = f64::from(self.steepness_thousandths) / 1_000.0;
        let tail = |length: Duration| libm::pow(length.as_secs_f64(), -steepness);
        let (shortest, longest) = (tail(self.shortest), tail(self.longest));
        let tail = shortest - quantile * (shortest - longest);
        libm::pow(tail, -1.0 / steepness) * 1_000.0
    }

    /// The outages of a trace, in milliseconds, ascending and apart.
    fn place(&self, length: Duration, random: &mut RandomStream) -> Vec<Range<u64>> {
        let length = milliseconds(length);
        let count = (u64::from(self.per_hour) * length + 1_800_000) / 3_600_000;
        // One length from each of `count` equal parts of the distribution, in random order.
        let mut lengths: Vec<u64> = (0..count)
            .map(|part| {
                let quantile = (part as f64 + unit(random.u64())) / count as f64;
                whole(self.length(quantile) + 0.5)
            })
            .collect();
        for last in (1..lengths.len()).rev() {
            let other = uniform(random.u64(), last as u64 + 1);
            lengths.swap(last, usize::try_from(other).unwrap_or(last));
        }
        // Anywhere in the time that is left between them: exponential gaps.
        let between = length.saturating_sub(lengths.iter().sum());
        let mut starts: Vec<u64> = (0..count).map(|_| uniform(random.u64(), between)).collect();
        starts.sort_unstable();
        let mut before = 0;
        starts
            .into_iter()
            .zip(lengths)
            .map(|(start, length)| {
                let start = start + before;
                before += length;
                start..start + length
            })
            .collect()
    }
}

/// The step of the log-rate.
pub(crate) const TICK: Duration = Duration::from_millis(20);
const MILLISECONDS_PER_TICK: usize = 20;

/// In standard deviations: the radio has a highest rate. For EV-DO this is about the 3.1 Mbit/s of
/// the standard.
const HIGHEST_LOG_RATE: f64 = 2.5;

pub(crate) fn check_length(length: Duration) -> Result<(), String> {
    if Cellular::LENGTHS.contains(&length) {
        return Ok(());
    }
    Err(format!(
        "trace: length {} is out of range, from 1 s to 3600 s",
        format_duration(length)
    ))
}

/// The ticks that cover a length.
pub(crate) fn ticks_in(length: Duration) -> usize {
    // At most an hour of them.
    usize::try_from(length.as_millis().div_ceil(TICK.as_millis())).unwrap_or(0)
}

/// An AR(1) process with normal steps, brought to mean 0 and variance 1. Two draws a tick.
pub(crate) fn log_rates(
    ticks: usize,
    correlation: Duration,
    random: &mut RandomStream,
) -> Vec<f64> {
    let kept = libm::exp(-TICK.as_secs_f64() / correlation.as_secs_f64());
    let renewed = (1.0 - kept * kept).sqrt();
    let mut value = 0.0;
    let mut values: Vec<f64> = (0..ticks)
        .map(|tick| {
            let step = normal([random.u64(), random.u64()]);
            value = if tick == 0 {
                step
            } else {
                kept * value + renewed * step
            };
            value
        })
        .collect();
    let n = ticks as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let scale = if variance > 0.0 {
        1.0 / variance.sqrt()
    } else {
        0.0
    };
    for value in &mut values {
        *value = (*value - mean) * scale;
    }
    values
}

/// Rates whose logarithms are those given times the factor that makes their standard deviation over
/// their mean the one wanted, or the nearest there is.
pub(crate) fn stretch(log_rates: &[f64], variation: f64) -> Vec<f64> {
    let rates = |factor: f64| {
        log_rates
            .iter()
            .map(move |log_rate| libm::exp(factor * log_rate.min(HIGHEST_LOG_RATE)))
    };
    let n = log_rates.len() as f64;
    let (mut low, mut high) = (0.0, 4.0);
    // Halving 4 so often leaves 4e-6.
    for _ in 0..20 {
        let factor = 0.5 * (low + high);
        let mean = rates(factor).sum::<f64>() / n;
        let square = rates(factor).map(|rate| rate * rate).sum::<f64>() / n;
        if square - mean * mean < variation * variation * mean * mean {
            low = factor;
        } else {
            high = factor;
        }
    }
    rates(low).collect()
}

/// A trace of Poisson slots, with the mean rate given and in proportion to `rates`, of which there
/// is one for each tick, without any in `outages`. One draw a millisecond.
///
/// The last millisecond has a slot in any case, so that the trace repeats after its length.
pub(crate) fn slots(
    mean: Rate,
    rates: &[f64],
    outages: &[Range<u64>],
    length: Duration,
    random: &mut RandomStream,
) -> Result<Trace, String> {
    let length_ms = milliseconds(length);
    let wanted = mean.bytes_in(length).as_u64() as f64 / Trace::SLOT.as_u64() as f64;
    if wanted > Trace::MOST_SLOTS as f64 * 0.9 {
        return Err(format!(
            "trace: {mean} for {} are too many slots, at most {}",
            format_duration(length),
            Trace::MOST_SLOTS
        ));
    }
    let mut weights: Vec<f64> = (0..length_ms)
        .map(|ms| {
            let tick = usize::try_from(ms).unwrap_or(usize::MAX) / MILLISECONDS_PER_TICK;
            rates.get(tick).copied().unwrap_or(0.0)
        })
        .collect();
    for ms in outages.iter().cloned().flatten() {
        if let Some(weight) = usize::try_from(ms).ok().and_then(|ms| weights.get_mut(ms)) {
            *weight = 0.0;
        }
    }
    let total: f64 = weights.iter().sum();
    let scale = if total > 0.0 { wanted / total } else { 0.0 };
    let mut slots = Vec::with_capacity(usize::try_from(whole(wanted * 1.1)).unwrap_or(0));
    for (weight, ms) in weights.iter().zip(1_u32..) {
        // What would be beyond the method is 6 Gbit/s.
        let count = poisson(random.u64(), (weight * scale).min(500.0));
        slots.extend((0..count).map(|_| ms));
    }
    let last = u32::try_from(length_ms).unwrap_or(u32::MAX);
    if slots.last() != Some(&last) {
        slots.push(last);
    }
    Trace::new(slots).map_err(|error| error.to_string())
}

/// At most an hour of them.
fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod figures {
    use super::*;

    /// What the table of the traces says of each.
    #[derive(Copy, Clone, Debug)]
    pub(crate) struct Figures {
        pub(crate) mean_mbps: f64,
        /// Standard deviation over mean of the slots in 100 ms.
        pub(crate) variation: f64,
        /// Share of 100 ms without a slot, in percent.
        pub(crate) empty_percent: f64,
        pub(crate) longest_gap_ms: f64,
        pub(crate) long_gaps: usize,
    }

    pub(crate) fn measure(trace: &Trace) -> Figures {
        let bins = usize::try_from(trace.period().as_millis() / 100).unwrap();
        let mut counts = vec![0.0_f64; bins];
        for slot in trace.slots() {
            // The slot at the end of a bin belongs to it.
            let index = usize::try_from((slot.as_millis() - 1) / 100).unwrap();
            if let Some(count) = counts.get_mut(index) {
                *count += 1.0;
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let empty = counts.iter().filter(|count| **count < 0.5).count();
        let instants: Vec<Duration> = trace.slots().collect();
        let gaps = || instants.windows(2).map(|pair| pair[1] - pair[0]);
        Figures {
            mean_mbps: trace.mean_rate().as_bps() as f64 / 1e6,
            variation: variance.sqrt() / mean,
            empty_percent: empty as f64 * 100.0 / n,
            longest_gap_ms: gaps().max().unwrap().as_secs_f64() * 1_000.0,
            long_gaps: gaps().filter(|gap| gap.as_millis() >= 200).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::figures::{Figures, measure};
    use super::*;
    use crate::random::{Fnv1a, RandomStreams};
    use crate::validation_rows::row;

    /// The rows "cellular" of the catalogue: mean to 10 %, variation in 100 ms to 0.1, empty 100 ms
    /// to 2 percent points, longest gap 0.5 to 2 times; for traces as long as the recordings, and
    /// any seed.
    #[test]
    fn presets_have_the_figures_of_the_recordings() {
        #[rustfmt::skip]
        let table = [
            // seconds, Mbit/s, variation, empty %, longest gap ms, gaps of 200 ms and more
            ("att-lte",        786,  5.17, 0.60,  5.1,  1_515.0,  69),
            ("tmobile-lte",    475, 12.77, 0.89,  8.0,  1_058.0,  81),
            ("tmobile-umts",   928,  2.02, 0.83, 11.7,  5_753.0, 166),
            ("verizon-lte",    140,  5.03, 0.71,  1.6,  1_447.0,   5),
            ("verizon-evdo", 1_062,  0.52, 1.17, 25.0, 11_567.0, 581),
        ];
        for (name, seconds, mean, variation, empty, longest, gaps) in table {
            let mut figures = Vec::new();
            for seed in 0..8 {
                let mut random = RandomStreams::new(seed).stream("forward.cellular");
                let length = Duration::from_secs(seconds);
                let preset = Cellular::preset(name).unwrap();
                let trace = preset.generate(length, &mut random).unwrap();
                assert_eq!(trace.period(), length);
                let seen = measure(&trace);
                assert!(
                    (seen.mean_mbps / mean - 1.0).abs() < 0.1,
                    "{name}: {seen:?}"
                );
                assert!((seen.variation - variation).abs() < 0.1, "{name}: {seen:?}");
                assert!((seen.empty_percent - empty).abs() < 2.0, "{name}: {seen:?}");
                let ratio = seen.longest_gap_ms / longest;
                assert!((0.5..2.0).contains(&ratio), "{name}: {seen:?}");
                // Not in the row: long gaps are as many to a fifth.
                assert!(
                    seen.long_gaps.abs_diff(gaps) * 5 <= gaps,
                    "{name}: {seen:?}"
                );
                figures.push(seen);
            }
            let range = |of: fn(&Figures) -> f64, decimals: usize| {
                let least = figures.iter().map(of).fold(f64::INFINITY, f64::min);
                let most = figures.iter().map(of).fold(0.0, f64::max);
                format!("{least:.decimals$} to {most:.decimals$}")
            };
            row(
                "link model",
                &format!("cellular, {name}, {seconds} s, 8 seeds: Mbit/s, variation in 100 ms"),
                format!(
                    "{}, {}",
                    range(|seen| seen.mean_mbps, 2),
                    range(|seen| seen.variation, 2)
                ),
                format!("{mean} +- 10 %, {variation} +- 0.1"),
            );
            row(
                "link model",
                &format!("cellular, {name}, {seconds} s, 8 seeds: empty 100 ms, longest gap"),
                format!(
                    "{} %, {} ms",
                    range(|seen| seen.empty_percent, 1),
                    range(|seen| seen.longest_gap_ms, 0)
                ),
                format!("{empty} % +- 2, {longest} ms x 0.5 to 2"),
            );
        }
    }

    #[test]
    fn other_lengths_keep_the_mean_and_the_variation() {
        for seconds in [30, 120, 3_600] {
            let mut random = RandomStreams::new(1).stream("forward.cellular");
            let length = Duration::from_secs(seconds);
            let seen = measure(&Cellular::ATT_LTE.generate(length, &mut random).unwrap());
            assert!(
                (seen.mean_mbps / 5.17 - 1.0).abs() < 0.1,
                "{seconds}: {seen:?}"
            );
            assert!((seen.variation - 0.6).abs() < 0.1, "{seconds}: {seen:?}");
        }
    }

    /// Here the rate is all there is: no outage, no variation.
    #[test]
    fn without_variation_the_slots_are_a_poisson_process() {
        let steady = Cellular {
            variation_thousandths: 0,
            outages: Outages {
                per_hour: 0,
                ..Cellular::ATT_LTE.outages
            },
            mean: Rate::from_mbps(12),
            ..Cellular::ATT_LTE
        };
        let mut random = RandomStreams::new(1).stream("forward.cellular");
        let trace = steady
            .generate(Duration::from_secs(600), &mut random)
            .unwrap();
        // 100 slots in 100 ms vary by 1 / sqrt(100).
        let seen = measure(&trace);
        assert!((seen.variation - 0.1).abs() < 0.003, "{seen:?}");
        assert!((seen.mean_mbps - 12.0).abs() < 0.06, "{seen:?}");
    }

    /// The digest was computed once; a change here changes what every seed means.
    #[test]
    fn a_seed_means_the_same_slots_for_ever() {
        let digest = |seed| {
            let mut random = RandomStreams::new(seed).stream("forward.cellular");
            let length = Duration::from_secs(60);
            let trace = Cellular::VERIZON_EVDO
                .generate(length, &mut random)
                .unwrap();
            let mut digest = Fnv1a::new();
            for slot in trace.slots() {
                digest.write(&slot.as_millis().to_le_bytes());
            }
            digest.value()
        };
        assert_eq!(digest(42), 10_531_029_921_451_111_214);
        assert_ne!(digest(43), digest(42));
    }

    #[test]
    fn a_change_of_the_rates_does_not_move_the_outages() {
        let outages = |preset: Cellular| {
            let mut random = RandomStreams::new(4).stream("forward.cellular");
            let length = Duration::from_secs(300);
            log_rates(ticks_in(length), preset.correlation, &mut random);
            preset.outages.place(length, &mut random)
        };
        let other = Cellular {
            mean: Rate::from_mbps(1),
            variation_thousandths: 100,
            correlation: Duration::from_millis(100),
            ..Cellular::ATT_LTE
        };
        assert_eq!(outages(other), outages(Cellular::ATT_LTE));
        assert_eq!(outages(other).len(), 28);
    }

    #[test]
    fn outages_are_apart_and_within_their_bounds() {
        let mut random = RandomStreams::new(4).stream("forward.cellular");
        let preset = Cellular::VERIZON_EVDO.outages;
        let outages = preset.place(Duration::from_secs(1_062), &mut random);
        assert!(outages.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(
            outages
                .iter()
                .all(|outage| (200..=11_567).contains(&(outage.end - outage.start)))
        );
        assert!(outages.last().unwrap().end <= 1_062_000);
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        let refuse = |change: fn(&mut Cellular)| {
            let mut settings = Cellular::ATT_LTE;
            change(&mut settings);
            settings.check().unwrap_err()
        };
        assert_eq!(
            refuse(|it| it.mean = Rate::from_mbps(201)),
            "cellular: mean rate 201 Mbit/s is out of range, from 12 kbit/s to 200 Mbit/s"
        );
        assert_eq!(
            refuse(|it| it.variation_thousandths = 1_501),
            "cellular: variation 1501 is too large, at most 1500 thousandths"
        );
        assert_eq!(
            refuse(|it| it.correlation = Duration::from_millis(19)),
            "cellular: correlation 19 ms is out of range, from 20 ms to 60 s"
        );
        assert_eq!(
            refuse(|it| it.outages.longest = Duration::from_millis(199)),
            "cellular: outages from 200 ms to 199 ms are out of range, from 1 ms to 60 s"
        );
        assert_eq!(
            refuse(|it| it.outages.steepness_thousandths = 99),
            "cellular: steepness 99 is out of range, from 100 to 10000 thousandths"
        );
        assert_eq!(
            refuse(|it| it.outages.per_hour = 4_000),
            "cellular: 4000 outages an hour would take more than half the time"
        );
        let mut random = RandomStreams::new(1).stream("forward.cellular");
        let short = Cellular::ATT_LTE.generate(Duration::from_millis(999), &mut random);
        assert_eq!(
            short.unwrap_err(),
            "trace: length 999 ms is out of range, from 1 s to 3600 s"
        );
        let mut fast = Cellular::ATT_LTE;
        fast.mean = Cellular::HIGHEST_MEAN;
        assert_eq!(
            fast.generate(Duration::from_secs(3_600), &mut random)
                .unwrap_err(),
            "trace: 200 Mbit/s for 3600 s are too many slots, at most 20000000"
        );
        assert!(
            Cellular::PRESETS
                .iter()
                .all(|(_, preset)| preset.check().is_ok())
        );
        assert_eq!(Cellular::preset("att"), None);
    }
}
