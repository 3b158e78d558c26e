//! A picture of the first run of each controller, as SVG.
//!
//! ```text
//!  name                                    seed 1, in virtual time
//!  what the scenario shows
//!  -- newreno 10 MB in 3.32 s   -- cubic 10 MB in 3.38 s
//!       .    30 % loss     .
//!  100  |                  .    .-----  capacity, newreno, cubic
//!       |     goodput      .   /
//!       +-------------------------------
//!  100  |     window       .    _,-'
//!       +-------------------------------
//!   30  |      RTT         .  ........
//!       +-------------------------------
//!       0                  2         3 s
//! ```
//!
//! All panels share the axis of time, which begins with the run. The picture has no background and
//! carries its colours for light and for dark pages. It is a function of scenario and results
//! alone, and everything is computed in integers: the same runs give the same text everywhere.
//!
//! `trace` draws one qlog file in the same way.
//!
//! `canvas` writes SVG, `scale` lays values onto an axis, `phases` knows when the link changes,
//! `layout` where everything goes, `panel` draws one quantity, `style` has the colours.

mod canvas;
mod layout;
mod panel;
mod phases;
mod scale;
mod style;
#[cfg(test)]
mod tests;
pub mod trace;

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp, format_duration};

use self::canvas::{Anchor, Canvas, Path, Px, width_of};
use self::layout::{Layout, WIDTH};
use self::panel::{Mark, Panel, Unit, trimmed};
use self::phases::{Settings, Stretch, steps, stretches};
use self::scale::{Scale, round_up};
use self::style::{SMALL, STYLE, style_of};
use crate::record::Seen;
use crate::results::RunResult;
use crate::runner::Group;
use crate::scenario::{Case, Download, Scenario};

/// The length of one entry of [`RunResult::app_bytes_per_100_ms`].
const ENTRY_NS: u64 = 100_000_000;

/// More steps of goodput than this would be narrower than two pixels.
const MOST_STEPS: u64 = 400;

/// The picture of some runs of one scenario, one per controller.
#[derive(Debug, Clone)]
pub struct Plot<'a> {
    scenario: &'a Scenario,
    case: Option<&'a Case>,
    runs: Vec<&'a RunResult>,
    is_real: bool,
}

impl<'a> Plot<'a> {
    /// Picks from the groups of a plan the first seed of each controller, for the largest download
    /// of the scenario.
    #[must_use]
    pub fn of(scenario: &'a Scenario, groups: &'a [Group], is_real: bool) -> Self {
        let case = groups
            .iter()
            .map(|group| &group.case)
            .max_by_key(|case| match case.download {
                Download::Size(size) => u128::from(size.as_u64()),
                Download::Duration(span) => span.as_nanos(),
            });
        let runs = groups
            .iter()
            .filter(|group| Some(&group.case) == case)
            .filter_map(|group| group.runs.first())
            .collect();
        Self {
            scenario,
            case,
            runs,
            is_real,
        }
    }

    /// The document, with a line break at its end.
    #[must_use]
    pub fn svg(&self) -> String {
        let layout = Layout::of(self.scenario, self.case, &self.runs);
        let label = format!("{}: {}", self.scenario.name, self.scenario.about);
        let mut canvas = Canvas::new(WIDTH, layout.height(), &label, STYLE);
        self.draw_head(&mut canvas, &layout);
        self.draw_phases(&mut canvas, &layout);
        for panel in [
            self.goodput(&layout),
            self.window(&layout),
            self.rtt(&layout),
        ] {
            panel.draw(&mut canvas, &layout);
        }
        self.draw_ends(&mut canvas, &layout);
        layout.draw_time(&mut canvas, "time since the beginning of the run");
        canvas.finish()
    }

    fn draw_head(&self, canvas: &mut Canvas, layout: &Layout) {
        let left = Px::whole(0);
        let y = layout.title_y();
        canvas.text(left, y, Anchor::Start, "name", &self.scenario.name);
        let seed = self.runs.first().map_or(0, |run| run.seed);
        let clock = match self.is_real {
            true => "over real sockets",
            false => "in virtual time",
        };
        canvas.text(WIDTH, y, Anchor::End, "", &format!("seed {seed}, {clock}"));
        for (y, line) in layout.about() {
            canvas.text(left, y, Anchor::Start, "about", line);
        }
        layout.draw_legend(canvas);
    }

    fn draw_phases(&self, canvas: &mut Canvas, layout: &Layout) {
        let mut free_from = Px::whole(0);
        for Stretch { from, until, label } in stretches(self.scenario, layout.end) {
            let (left, right) = (layout.x(from), layout.x(until));
            let (top, bottom) = (layout.strip, layout.bottom());
            canvas.band(
                (left, top),
                (right.max(left + Px::whole(1)), bottom),
                &label,
            );
            // A label that would run into the one before it is left to the band's tooltip.
            let half = width_of(&label, SMALL).half();
            let middle = left.middle(right).min(WIDTH - half).max(half);
            if middle - half >= free_from {
                canvas.text(middle, top + Px::whole(14), Anchor::Middle, "", &label);
                free_from = middle + half + Px::whole(8);
            }
        }
    }

    /// Marks where each run ended, through all panels; with a dot if the download was complete, and
    /// not at all if it was not but went on to the end of the picture.
    fn draw_ends(&self, canvas: &mut Canvas, layout: &Layout) {
        for (index, run) in self.runs.iter().enumerate() {
            let ended_at = Timestamp::from_nanos(run.ended_at_ns);
            if run.completion_ns.is_none() && ended_at == layout.end {
                continue;
            }
            let x = layout.x(ended_at);
            let (top, bottom) = (layout.panel(0).0, layout.bottom());
            let mut end = Path::default();
            end.move_to(x, top);
            end.down_to(bottom);
            canvas.path(&Mark::end(index, end));
            if run.completion_ns.is_some() {
                canvas.dot(x, top, Px::tenths(35), &format!("f{}", style_of(index)));
            }
        }
    }

    fn goodput(&self, layout: &Layout) -> Panel {
        let step = goodput_step(layout.end);
        let curves: Vec<Vec<(Timestamp, u64)>> =
            self.runs.iter().map(|run| goodput_of(run, step)).collect();
        let capacity: Vec<(Timestamp, Option<u64>)> =
            steps(self.scenario, layout.end, |[forward, _]| forward.rate)
                .into_iter()
                .map(|(at, rate)| (at, (!rate.is_infinite()).then(|| rate.as_bps())))
                .collect();
        let limits = capacity.iter().filter_map(|(_, bps)| *bps);
        let values = curves.iter().flatten().map(|(_, bps)| *bps);
        let largest = limits.chain(values).max().unwrap_or(0);
        let mut panel = Panel::new(
            layout.panel(0),
            format!("Goodput per {}", format_duration(step)),
            Scale::linear(with_headroom(largest), 6),
            Unit::of_rate(largest),
        );
        panel.reference(layout, "capacity", &capacity);
        for (index, (run, curve)) in self.runs.iter().zip(&curves).enumerate() {
            let mut path = Path::default();
            let mut from = layout.x(Timestamp::ZERO);
            for (until, bps) in curve {
                let y = panel.y(*bps);
                if path.is_empty() {
                    path.move_to(from, y);
                } else {
                    path.down_to(y);
                }
                from = layout.x(*until);
                path.across_to(from);
            }
            panel.add(Mark::curve(index, path));
            let last = curve.last().map(|(_, bps)| *bps);
            panel.name_curve(index, &run.controller, last);
        }
        panel
    }

    fn window(&self, layout: &Layout) -> Panel {
        let mut seen: Vec<Seen> = self
            .runs
            .iter()
            .flat_map(|run| run.tracks.window.slots().map(|(_, seen)| seen))
            .collect();
        // Curves above the axis lie on its upper end.
        let useful = largest_useful_window(self.scenario);
        if seen.iter().any(|seen| seen.max <= useful) {
            seen.retain(|seen| seen.max <= useful);
        }
        let mut minima: Vec<u64> = self
            .runs
            .iter()
            .filter_map(|run| run.tracks.minimum_window.map(ByteCount::as_u64))
            .collect();
        minima.sort_unstable();
        minima.dedup();
        let largest = seen.iter().map(|seen| seen.max).max().unwrap_or(0);
        let smallest = seen
            .iter()
            .map(|seen| seen.min)
            .chain(minima.iter().copied())
            .min();
        let (title, scale) = if is_wide(&seen, largest) {
            let scale = Scale::log(smallest.unwrap_or(1), largest);
            ("Congestion window, logarithmic scale", scale)
        } else {
            (
                "Congestion window",
                Scale::linear(with_headroom(largest), 5),
            )
        };
        let unit = Unit::of(largest, &[(0, 1_000, "kB"), (10_000_000, 1_000_000, "MB")]);
        let mut panel = Panel::new(layout.panel(1), title.to_owned(), scale, unit);
        for minimum in minima {
            let name = format!("minimum {} kB", trimmed(minimum, 1_000));
            panel.reference(layout, &name, &[(Timestamp::ZERO, Some(minimum))]);
        }
        for (index, run) in self.runs.iter().enumerate() {
            let track = &run.tracks.window;
            let (mut range, mut path) = (Path::default(), Path::default());
            let mut last: Option<(Timestamp, u64)> = None;
            for (start, seen) in track.slots() {
                let at = (start + track.slot() / 2).min(layout.end);
                let (x, y) = (layout.x(at), panel.y(seen.last));
                range.move_to(x, panel.y(seen.min));
                range.down_to(panel.y(seen.max));
                match last {
                    None => path.move_to(x, y),
                    // Without an update in between the window stood where it was.
                    Some((last_at, _)) if at.saturating_since(last_at) > track.slot() => {
                        path.across_to(x);
                        path.down_to(y);
                    }
                    Some(_) => path.line_to(x, y),
                }
                last = Some((at, seen.last));
            }
            if last.is_some() {
                path.across_to(layout.x(Timestamp::from_nanos(run.ended_at_ns)));
            }
            panel.add(Mark::range(index, range, layout.width_of(track.slot())));
            panel.add(Mark::curve(index, path));
            panel.name_curve(index, &run.controller, last.map(|(_, value)| value));
        }
        panel
    }

    fn rtt(&self, layout: &Layout) -> Panel {
        let idle: Vec<(Timestamp, Option<u64>)> = steps(self.scenario, layout.end, round_trip)
            .into_iter()
            .map(|(at, delay)| (at, Some(layout::nanos(delay))))
            .collect();
        let samples = self
            .runs
            .iter()
            .flat_map(|run| run.tracks.rtt.slots().map(|(_, seen)| seen.max));
        let delays = idle.iter().filter_map(|(_, delay)| *delay);
        let largest = samples.chain(delays).max().unwrap_or(0);
        let mut panel = Panel::new(
            layout.panel(2),
            "Round-trip time".to_owned(),
            Scale::linear(with_headroom(largest), 5),
            Unit::of_time(largest),
        );
        panel.reference(layout, "idle link", &idle);
        for (index, run) in self.runs.iter().enumerate() {
            let track = &run.tracks.rtt;
            let mut dots = Path::default();
            let mut last = None;
            for (start, seen) in track.slots() {
                let at = (start + track.slot() / 2).min(layout.end);
                // A single sample is a line without length, which its round ends make a dot.
                dots.move_to(layout.x(at), panel.y(seen.min));
                dots.down_to(panel.y(seen.max));
                last = Some(seen.last);
            }
            panel.add(Mark::dots(index, dots));
            panel.name_curve(index, &run.controller, last);
        }
        panel
    }
}

/// A little more than `largest`, so that no curve touches the title above.
fn with_headroom(largest: u64) -> u64 {
    units::math::mul_div(largest, 108, 100)
}

/// Beyond this many bytes a window says "as much as you like", as that of a fixed rate does: twenty
/// times what the link and its queue hold at the highest rate and the longest delay.
fn largest_useful_window(scenario: &Scenario) -> u64 {
    let end = Timestamp::MAX;
    let rates = steps(scenario, end, |[forward, _]| forward.rate);
    let queues = steps(scenario, end, |[forward, _]| forward.queue);
    let rtts = steps(scenario, end, round_trip);
    let rate = rates.into_iter().map(|(_, rate)| rate).max();
    let queue = queues.into_iter().map(|(_, queue)| queue).max();
    let rtt = rtts.into_iter().map(|(_, rtt)| rtt).max();
    match (rate, queue, rtt) {
        (Some(rate), Some(queue), Some(rtt)) => ((rate.bytes_in(rtt) + queue) * 20).as_u64(),
        _ => u64::MAX,
    }
}

fn round_trip(sides: &[Settings; 2]) -> Duration {
    sides.iter().map(|side| side.delay).sum()
}

/// Whether windows are too different for a linear axis: a twentieth of the slots would show less
/// than a twentieth of its height.
fn is_wide(seen: &[Seen], largest: u64) -> bool {
    let low = seen.iter().filter(|seen| seen.last <= largest / 20).count();
    low > 0 && low * 20 >= seen.len()
}

/// 100 ms, or in long runs so much more that the steps remain visible.
fn goodput_step(end: Timestamp) -> Duration {
    let entries = end.as_nanos().div_ceil(ENTRY_NS).div_ceil(MOST_STEPS);
    Duration::from_nanos(ENTRY_NS.saturating_mul(round_up(entries)))
}

/// The goodput in bit/s until each instant, from the instant before. The run's end makes the last
/// step shorter; if less than half of it is left, it belongs to the one before.
fn goodput_of(run: &RunResult, step: Duration) -> Vec<(Timestamp, u64)> {
    let step_ns = layout::nanos(step);
    let entries = usize::try_from(step_ns / ENTRY_NS).unwrap_or(1).max(1);
    let mut bytes: Vec<u64> = run
        .app_bytes_per_100_ms
        .chunks(entries)
        .map(|chunk| chunk.iter().sum())
        .collect();
    let full = usize::try_from(run.ended_at_ns / step_ns).unwrap_or(0);
    let rest = run.ended_at_ns % step_ns;
    let count = full + usize::from(rest * 2 >= step_ns || full == 0);
    let beyond: u64 = bytes.iter().skip(count).sum();
    bytes.resize(count, 0);
    if let Some(last) = bytes.last_mut() {
        *last += beyond;
    }
    let mut from = 0;
    let mut curve = Vec::with_capacity(count);
    for (index, bytes) in bytes.into_iter().enumerate() {
        let until = if index + 1 == count {
            run.ended_at_ns
        } else {
            from + step_ns
        };
        let span = Duration::from_nanos(until.saturating_sub(from));
        if !span.is_zero() {
            let rate = Rate::from_bytes_per(ByteCount::new(bytes), span);
            curve.push((Timestamp::from_nanos(until), rate.as_bps()));
        }
        from = until;
    }
    curve
}
