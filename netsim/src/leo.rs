//! A made-up link over satellites in low orbit.
//!
//! ```text
//!  rate   |  ~~~~~~~~~ |             ~~~~~~~~~~ |
//!         |            |  ~~~~~~~~~             |     another level every 15 s,
//!         |  .         |  .          .          |     nothing for a moment as it changes
//!  delay  |            |_____________           |
//!         |____________|             |__________|     and another delay
//!         0           15 s          30 s       45 s
//! ```
//!
//! Synthetic: no recording stands behind it, and there is nothing to fit it to. What it imitates is
//! reported of Starlink: every terminal is given a satellite anew every 15 s, and delay and rate
//! step then (N. Mohan and others, "A multifaceted look at Starlink performance", 2024); latency
//! rises by 30 to 50 ms for a moment at the change, and rates go from 10 to 370 Mbit/s (G. Huston,
//! "A transport protocol's view of Starlink", 2024). The numbers in between are ours.

use std::ops::Range;
use std::time::Duration;

use units::{Rate, Timestamp, format_duration};

use crate::cellular::{TICK, check_length, log_rates, slots, stretch, ticks_in};
use crate::distributions::uniform;
use crate::random::RandomStream;
use crate::trace::Trace;

/// Parameters of a link over satellites. The default is the preset "leo".
///
/// ```
/// use std::time::Duration;
/// use netsim::{Leo, RandomStreams};
///
/// let mut random = RandomStreams::new(7).stream("forward.leo");
/// let path = Leo::default().generate(Duration::from_secs(60), &mut random)?;
/// assert_eq!(path.delays.len(), 4);
/// # Ok::<(), String>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Leo {
    /// Mean rate of all slots, from 1 Mbit/s to 200 Mbit/s. 100 Mbit/s by default.
    pub mean: Rate,
    /// How long a satellite is kept: from 1 s to 60 s in whole ticks of 20 ms. 15 s by default.
    pub period: Duration,
    /// Standard deviation over mean of the rates of different satellites, in thousandths; at most
    /// 1,000. 350 by default.
    pub variation_thousandths: u32,
    /// The same for the rate while a satellite is kept, of 20 ms that know of the last half second;
    /// at most 1,000. 150 by default.
    pub flutter_thousandths: u32,
    /// The shortest and the longest time without a slot at a change, at most half the period. From
    /// 30 to 60 ms by default, so that whatever comes then is as late as reported.
    pub gap: (Duration, Duration),
    /// The smallest and the largest one-way delay, at most 1 s. From 12 to 22 ms by default: 4 to 8
    /// ms up and down again at 550 km, depending on the elevation, and the rest of the way.
    pub delay: (Duration, Duration),
}

impl Default for Leo {
    fn default() -> Self {
        Self {
            mean: Rate::from_mbps(100),
            period: Duration::from_secs(15),
            variation_thousandths: 350,
            flutter_thousandths: 150,
            gap: (Duration::from_millis(30), Duration::from_millis(60)),
            delay: (Duration::from_millis(12), Duration::from_millis(22)),
        }
    }
}

/// What a link over satellites offers, of which both parts repeat together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeoPath {
    /// When it can send.
    pub trace: Trace,
    /// The one-way delay from each instant on, ascending; the first is at 0. They are those of one
    /// round of the trace.
    pub delays: Vec<(Timestamp, Duration)>,
}

impl Leo {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is out of range.
    pub fn check(&self) -> Result<(), String> {
        if !(Rate::from_mbps(1)..=Rate::from_mbps(200)).contains(&self.mean) {
            return Err(format!(
                "leo: mean rate {} is out of range, from 1 Mbit/s to 200 Mbit/s",
                self.mean
            ));
        }
        let is_whole = self.period.as_nanos().is_multiple_of(TICK.as_nanos());
        let periods = Duration::from_secs(1)..=Duration::from_secs(60);
        if !is_whole || !periods.contains(&self.period) {
            return Err(format!(
                "leo: period {} is out of range, from 1 s to 60 s in steps of 20 ms",
                format_duration(self.period)
            ));
        }
        let most = self.variation_thousandths.max(self.flutter_thousandths);
        if most > 1_000 {
            return Err(format!(
                "leo: variation {most} is too large, at most 1000 thousandths"
            ));
        }
        check_span("gap", self.gap, self.period / 2)?;
        check_span("delay", self.delay, Duration::from_secs(1))
    }

    /// A path of the given length, rounded down to a millisecond, from the stream given.
    ///
    /// The same stream and length give the same path on every platform.
    ///
    /// # Errors
    ///
    /// As for [`Self::check`], and if `length` is not one of [`crate::Cellular::LENGTHS`] or the
    /// trace would have more slots than a trace can have.
    pub fn generate(&self, length: Duration, random: &mut RandomStream) -> Result<LeoPath, String> {
        self.check()?;
        check_length(length)?;
        let length = Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        let flutter = stretch(
            &log_rates(ticks_in(length), FLUTTER_CORRELATION, random),
            f64::from(self.flutter_thousandths) / 1_000.0,
        );
        let ticks_per_period = ticks_in(self.period);
        // A correlation of nothing: one satellite tells nothing of the next.
        let satellites = flutter.len().div_ceil(ticks_per_period);
        let levels = stretch(
            &log_rates(satellites, Duration::from_nanos(1), random),
            f64::from(self.variation_thousandths) / 1_000.0,
        );
        let rates: Vec<f64> = flutter
            .chunks(ticks_per_period)
            .zip(&levels)
            .flat_map(|(flutter, level)| flutter.iter().map(move |flutter| flutter * level))
            .collect();

        let mut gaps: Vec<Range<u64>> = Vec::with_capacity(satellites);
        let mut delays = Vec::with_capacity(satellites);
        let mut at = Timestamp::ZERO;
        for _ in 0..satellites {
            let gap = between(self.gap, random);
            let start = at.as_nanos() / NANOS_PER_MILLISECOND;
            gaps.push(start..start + nanos(gap) / NANOS_PER_MILLISECOND);
            delays.push((at, between(self.delay, random)));
            at += self.period;
        }
        let trace = slots(self.mean, &rates, &gaps, length, random)?;
        Ok(LeoPath { trace, delays })
    }
}

fn check_span(
    what: &str,
    (least, most): (Duration, Duration),
    limit: Duration,
) -> Result<(), String> {
    if least <= most && most <= limit {
        return Ok(());
    }
    Err(format!(
        "leo: {what} from {} to {} is out of range, at most {}",
        format_duration(least),
        format_duration(most),
        format_duration(limit)
    ))
}

/// Uniform in a span, both ends included. One draw.
fn between((least, most): (Duration, Duration), random: &mut RandomStream) -> Duration {
    let span = nanos(most.saturating_sub(least));
    least + Duration::from_nanos(uniform(random.u64(), span + 1))
}

/// A minute at most.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX - 1)
}

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

const FLUTTER_CORRELATION: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;

    fn path(leo: Leo, seconds: u64, seed: u64) -> LeoPath {
        let mut random = RandomStreams::new(seed).stream("forward.leo");
        leo.generate(Duration::from_secs(seconds), &mut random)
            .unwrap()
    }

    /// Slots in each second.
    fn per_second(trace: &Trace) -> Vec<f64> {
        let mut counts = vec![0.0; usize::try_from(trace.period().as_secs()).unwrap()];
        for slot in trace.slots() {
            counts[usize::try_from((slot.as_millis() - 1) / 1_000).unwrap()] += 1.0;
        }
        counts
    }

    #[test]
    fn rate_and_delay_step_every_15_seconds_and_stay_in_range() {
        let path = path(Leo::default(), 300, 1);
        assert_eq!(path.delays.len(), 20);
        for (n, (at, delay)) in path.delays.iter().enumerate() {
            assert_eq!(*at, Timestamp::from_secs(15 * n as u64));
            assert!((12_000..=22_000).contains(&delay.as_micros()), "{delay:?}");
        }
        let mean = path.trace.mean_rate().as_bps() as f64 / 1e6;
        assert!((mean - 100.0).abs() < 1.0, "{mean}");

        // The means of different satellites differ by 35 %; within one, seconds differ by less than
        // half of that.
        let seconds = per_second(&path.trace);
        let levels: Vec<f64> = seconds
            .chunks(15)
            .map(|it| it.iter().sum::<f64>() / 15.0)
            .collect();
        let spread = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt() / mean
        };
        assert!((spread(&levels) - 0.35).abs() < 0.05, "{}", spread(&levels));
        assert!(seconds.chunks(15).all(|satellite| spread(satellite) < 0.17));
        // In Mbit/s: 12,000 bit a slot.
        assert!(
            seconds
                .iter()
                .all(|count| (10.0..370.0).contains(&(count * 0.012)))
        );
    }

    #[test]
    fn nothing_is_sent_for_a_moment_at_each_change() {
        let path = path(Leo::default(), 300, 2);
        let slots: Vec<Duration> = path.trace.slots().collect();
        for (at, _) in path.delays {
            let at = at.saturating_since(Timestamp::ZERO);
            let next = slots[slots.partition_point(|slot| *slot <= at)];
            let gap = next - at;
            assert!((30..=65).contains(&gap.as_millis()), "{gap:?} at {at:?}");
        }
    }

    #[test]
    fn one_setting_does_not_shift_the_draws_of_the_others() {
        let calm = Leo {
            flutter_thousandths: 0,
            gap: (Duration::ZERO, Duration::ZERO),
            mean: Rate::from_mbps(20),
            ..Leo::default()
        };
        assert_eq!(
            path(calm, 100, 3).delays,
            path(Leo::default(), 100, 3).delays
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_path() {
        assert_eq!(path(Leo::default(), 40, 5), path(Leo::default(), 40, 5));
        assert_ne!(path(Leo::default(), 40, 5), path(Leo::default(), 40, 6));
    }

    #[test]
    fn a_length_that_is_no_multiple_of_the_period_ends_within_one() {
        let path = path(Leo::default(), 40, 1);
        assert_eq!(path.delays.len(), 3);
        assert_eq!(path.trace.period(), Duration::from_secs(40));
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        let refuse = |change: fn(&mut Leo)| {
            let mut settings = Leo::default();
            change(&mut settings);
            settings.check().unwrap_err()
        };
        assert_eq!(
            refuse(|it| it.mean = Rate::from_mbps(201)),
            "leo: mean rate 201 Mbit/s is out of range, from 1 Mbit/s to 200 Mbit/s"
        );
        assert_eq!(
            refuse(|it| it.period = Duration::from_millis(1_010)),
            "leo: period 1.01 s is out of range, from 1 s to 60 s in steps of 20 ms"
        );
        assert_eq!(
            refuse(|it| it.flutter_thousandths = 1_001),
            "leo: variation 1001 is too large, at most 1000 thousandths"
        );
        assert_eq!(
            refuse(|it| it.delay.0 = Duration::from_millis(23)),
            "leo: delay from 23 ms to 22 ms is out of range, at most 1 s"
        );
        assert_eq!(
            refuse(|it| it.gap.1 = Duration::from_secs(8)),
            "leo: gap from 30 ms to 8 s is out of range, at most 7.5 s"
        );
        assert_eq!(Leo::default().check(), Ok(()));
    }
}
