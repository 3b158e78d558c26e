//! A picture of one qlog file, as SVG.
//!
//! ```text
//!  title                                                  server, tidegate 0.1.0 cubic
//!  -- slow_start 30 ms   -- recovery 1.2 s   -- congestion_avoidance 2 s
//!  ###===###========#####====================   the state at each instant
//!  Bytes           |  sent, acked, lost
//!  Window          |  window, in flight
//!  Round-trip time |  samples, smoothed
//!  Pacing rate     |  rate
//!                  0                     3 s
//! ```
//!
//! What a file does not have is not drawn. Panels, axes and colours are those of the picture of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use qlogs::analyse::Sample;
use units::{Rate, Timestamp, format_duration};

use super::canvas::{Anchor, Canvas, Path, Px, width_of};
use super::layout::{Layout, WIDTH, nanos};
use super::panel::{Mark, Panel, Unit};
use super::scale::Scale;
use super::style::{SMALL, STYLE};
use super::{is_wide, with_headroom};
use crate::record::{Seen, Track};

/// Bytes, window, round-trip time, pacing rate.
const PANEL_HEIGHTS: [Px; 4] = [
    Px::whole(120),
    Px::whole(140),
    Px::whole(100),
    Px::whole(80),
];

/// How finely a short trace is drawn; longer ones get longer slots.
const SLOT: Duration = Duration::from_micros(50);

/// More stretches of states than this are not told apart; short ones are joined.
const NARROWEST: Px = Px::tenths(3);

/// The names at the right ends of curves; the widest of them makes the margin.
const NAMES: [&str; 8] = [
    "sent",
    "acked",
    "lost",
    "window",
    "in flight",
    "sample",
    "smoothed",
    "rate",
];

/// A trace that is being drawn: give it every sample, then ask for the picture.
#[derive(Debug)]
pub struct TracePlot {
    sent: Track,
    acked: Track,
    lost: Track,
    window: Track,
    in_flight: Track,
    rtt: Track,
    smoothed: Track,
    pacing: Track,
    /// When each state began.
    states: Vec<(Timestamp, usize)>,
    names: Vec<String>,
    end: Timestamp,
}

impl Default for TracePlot {
    fn default() -> Self {
        let track = || Track::with_slots_of(SLOT);
        Self {
            sent: track(),
            acked: track(),
            lost: track(),
            window: track(),
            in_flight: track(),
            rtt: track(),
            smoothed: track(),
            pacing: track(),
            states: Vec::new(),
            names: Vec::new(),
            end: Timestamp::ZERO,
        }
    }
}

impl TracePlot {
    /// Notes what a file says at one instant.
    pub fn on_sample(&mut self, sample: &Sample) {
        let at = sample.at;
        self.end = self.end.max(at);
        self.sent.on_value(at, sample.sent.as_u64());
        self.acked.on_value(at, sample.acked.as_u64());
        self.lost.on_value(at, sample.lost.as_u64());
        self.in_flight.on_value(at, sample.in_flight.as_u64());
        let times = [
            (&mut self.rtt, sample.rtt),
            (&mut self.smoothed, sample.smoothed_rtt),
        ];
        for (track, time) in times {
            if let Some(time) = time {
                track.on_value(at, nanos(time));
            }
        }
        let numbers = [
            (
                &mut self.window,
                sample.window.map(units::ByteCount::as_u64),
            ),
            (&mut self.pacing, sample.pacing_rate.map(Rate::as_bps)),
        ];
        for (track, number) in numbers {
            if let Some(number) = number {
                track.on_value(at, number);
            }
        }
        if let Some(state) = &sample.state {
            let known = self.names.iter().position(|name| name == state);
            let index = known.unwrap_or_else(|| {
                self.names.push(state.clone());
                self.names.len() - 1
            });
            self.states.push((at, index));
        }
    }

    /// The document, with a line break at its end.
    #[must_use]
    pub fn svg(&self, title: &str, about: &str) -> String {
        let legend = self.legend();
        let layout = Layout::plain(about, &legend, &NAMES, &PANEL_HEIGHTS, self.end);
        let label = format!("qlog: {title}");
        let mut canvas = Canvas::new(WIDTH, layout.height(), &label, STYLE);
        let left = Px::whole(0);
        canvas.text(left, layout.title_y(), Anchor::Start, "name", title);
        for (y, line) in layout.about() {
            canvas.text(left, y, Anchor::Start, "about", line);
        }
        layout.draw_legend(&mut canvas);
        self.draw_states(&mut canvas, &layout);
        for panel in [
            self.bytes(&layout),
            self.windows(&layout),
            self.rtts(&layout),
            self.rates(&layout),
        ] {
            panel.draw(&mut canvas, &layout);
        }
        layout.draw_time(&mut canvas, "time since the first event");
        canvas.finish()
    }

    /// Each state with its time.
    fn legend(&self) -> Vec<(String, String)> {
        let mut times: BTreeMap<usize, Duration> = BTreeMap::new();
        for (from, until, state) in self.stretches() {
            *times.entry(state).or_default() += until.saturating_since(from);
        }
        let names = self.names.iter().enumerate();
        names
            .map(|(index, name)| {
                let time = times.get(&index).copied().unwrap_or_default();
                let ms = Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                (name.clone(), format_duration(ms))
            })
            .collect()
    }

    fn stretches(&self) -> impl Iterator<Item = (Timestamp, Timestamp, usize)> {
        let ends = self.states.iter().skip(1).map(|(at, _)| *at);
        let states = self.states.iter().zip(ends.chain([self.end]));
        states.map(|((from, state), until)| (*from, until, *state))
    }

    /// The strip of states above the panels, each in its colour.
    fn draw_states(&self, canvas: &mut Canvas, layout: &Layout) {
        let y = layout.strip + Px::whole(7);
        let mut paths: BTreeMap<usize, Path> = BTreeMap::new();
        for (from, until, state) in self.stretches() {
            let (left, right) = (layout.x(from), layout.x(until));
            if right - left < NARROWEST && until != self.end && self.states.len() > 2_000 {
                continue;
            }
            let path = paths.entry(state).or_default();
            path.move_to(left, y);
            path.across_to(right.max(left + NARROWEST));
        }
        for (state, path) in paths {
            let mut mark = Mark::curve(state, path);
            mark.width = Some(Px::whole(12));
            canvas.path(&mark);
        }
        if self.states.is_empty() {
            let text = "the file has no congestion states";
            let middle = layout.left + width_of(text, SMALL).half();
            canvas.text(middle, y, Anchor::Middle, "", text);
        }
    }

    fn bytes(&self, layout: &Layout) -> Panel {
        let largest = largest(&[&self.sent, &self.acked, &self.lost]);
        let mut panel = Panel::new(
            layout.panel(0),
            "Bytes of packets since the first event".to_owned(),
            Scale::linear(with_headroom(largest), 5),
            bytes_unit(largest),
        );
        for (index, name, track) in [
            (0, "sent", &self.sent),
            (2, "acked", &self.acked),
            (1, "lost", &self.lost),
        ] {
            curve(&mut panel, layout, (index, name), track);
        }
        panel
    }

    fn windows(&self, layout: &Layout) -> Panel {
        let largest = largest(&[&self.window, &self.in_flight]);
        let seen: Vec<Seen> = self.window.slots().map(|(_, seen)| seen).collect();
        let smallest = seen.iter().map(|seen| seen.min).min().unwrap_or(1);
        let (title, scale) = if is_wide(&seen, largest) {
            (
                "Congestion window and bytes in flight, logarithmic scale",
                Scale::log(smallest, largest),
            )
        } else {
            (
                "Congestion window and bytes in flight",
                Scale::linear(with_headroom(largest), 5),
            )
        };
        let mut panel = Panel::new(
            layout.panel(1),
            title.to_owned(),
            scale,
            bytes_unit(largest),
        );
        curve(&mut panel, layout, (3, "in flight"), &self.in_flight);
        curve(&mut panel, layout, (0, "window"), &self.window);
        panel
    }

    fn rtts(&self, layout: &Layout) -> Panel {
        let largest = largest(&[&self.rtt, &self.smoothed]);
        let mut panel = Panel::new(
            layout.panel(2),
            "Round-trip time".to_owned(),
            Scale::linear(with_headroom(largest), 5),
            Unit::of_time(largest),
        );
        let mut dots = Path::default();
        let mut last = None;
        for (start, seen) in self.rtt.slots() {
            let at = (start + self.rtt.slot() / 2).min(layout.end);
            dots.move_to(layout.x(at), panel.y(seen.min));
            dots.down_to(panel.y(seen.max));
            last = Some(seen.last);
        }
        panel.add(Mark::dots(1, dots));
        panel.name_curve(1, "sample", last);
        curve(&mut panel, layout, (0, "smoothed"), &self.smoothed);
        panel
    }

    fn rates(&self, layout: &Layout) -> Panel {
        let largest = largest(&[&self.pacing]);
        let title = match largest {
            0 => "Pacing rate: not in the file",
            _ => "Pacing rate",
        };
        let mut panel = Panel::new(
            layout.panel(3),
            title.to_owned(),
            Scale::linear(with_headroom(largest), 4),
            Unit::of_rate(largest),
        );
        curve(&mut panel, layout, (0, "rate"), &self.pacing);
        panel
    }
}

/// A curve that stands still where nothing was logged, with its range in each slot behind it.
fn curve(panel: &mut Panel, layout: &Layout, (index, name): (usize, &str), track: &Track) {
    let (mut range, mut path) = (Path::default(), Path::default());
    let mut last: Option<u64> = None;
    for (start, seen) in track.slots() {
        let at = (start + track.slot() / 2).min(layout.end);
        let (x, y) = (layout.x(at), panel.y(seen.last));
        range.move_to(x, panel.y(seen.min));
        range.down_to(panel.y(seen.max));
        if last.is_none() {
            path.move_to(x, y);
        } else {
            path.across_to(x);
            path.down_to(y);
        }
        last = Some(seen.last);
    }
    if last.is_some() {
        path.across_to(layout.right);
    }
    panel.add(Mark::range(index, range, layout.width_of(track.slot())));
    let mut mark = Mark::curve(index, path);
    mark.width = Some(Px::tenths(15));
    panel.add(mark);
    panel.name_curve(index, name, last);
}

fn largest(tracks: &[&Track]) -> u64 {
    let seen = tracks.iter().flat_map(|track| track.slots());
    seen.map(|(_, seen)| seen.max).max().unwrap_or(0)
}

fn bytes_unit(largest: u64) -> Unit {
    Unit::of(largest, &[(0, 1_000, "kB"), (10_000_000, 1_000_000, "MB")])
}

#[cfg(test)]
mod tests {
    use units::ByteCount;

    use super::*;

    fn sample(ms: u64, state: Option<&str>) -> Sample {
        Sample {
            at: Timestamp::from_millis(ms),
            sent: ByteCount::new(ms * 100),
            acked: ByteCount::new(ms * 90),
            lost: ByteCount::new(ms),
            window: Some(ByteCount::new(20_000 + ms)),
            in_flight: ByteCount::new(10_000),
            rtt: Some(Duration::from_millis(20)),
            smoothed_rtt: Some(Duration::from_millis(21)),
            pacing_rate: Some(Rate::from_mbps(8)),
            state: state.map(str::to_owned),
        }
    }

    #[test]
    fn every_quantity_and_state_is_drawn() {
        let mut plot = TracePlot::default();
        for ms in 0..1_000 {
            let state = match ms {
                0 => Some("slow_start"),
                400 => Some("recovery"),
                500 => Some("congestion_avoidance"),
                _ => None,
            };
            plot.on_sample(&sample(ms, state));
        }
        let svg = plot.svg("a < b", "server");
        assert!(svg.contains("a &lt; b"), "escaped");
        for name in NAMES {
            assert!(svg.contains(&format!(">{name}<")), "{name}");
        }
        for legend in [">slow_start<", "> 400 ms<", "> 100 ms<", "> 499 ms<"] {
            assert!(svg.contains(legend), "{legend} in {svg}");
        }
        let strips = svg.matches("stroke-width=\"12\"").count();
        assert_eq!(strips, 3, "one for each state");
        assert_eq!(plot.svg("a < b", "server"), svg, "a function of its input");
    }

    #[test]
    fn what_a_file_does_not_have_is_not_drawn() {
        let empty = Sample {
            window: None,
            rtt: None,
            smoothed_rtt: None,
            pacing_rate: None,
            ..sample(5, None)
        };
        let mut plot = TracePlot::default();
        plot.on_sample(&empty);
        let svg = plot.svg("", "");
        assert!(svg.contains("Pacing rate: not in the file"));
        assert!(svg.contains("the file has no congestion states"));
        assert!(!svg.contains(">window<") && !svg.contains(">smoothed<"));
        let svg = TracePlot::default().svg("", "");
        assert!(svg.ends_with("</svg>\n"));
    }
}
