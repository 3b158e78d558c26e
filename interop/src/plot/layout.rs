//! Where everything goes on the picture.

use std::time::Duration;

use units::Timestamp;

use super::canvas::{Anchor, Canvas, Path, Px, width_of};
use super::panel::{MINIMUM_LABEL, Mark, Unit, shortened};
use super::phases::stretches;
use super::scale::Scale;
use super::style::{ABOUT, SMALL, TEXT, style_of};
use crate::results::{Outcome, RunResult};
use crate::scenario::{Case, Download, Scenario};
use crate::text::decimal;

/// The width of the picture.
pub(super) const WIDTH: Px = Px::whole(900);

/// The length of a line in the legend.
const SWATCH: Px = Px::whole(20);

/// Goodput, window, RTT.
const PANEL_HEIGHTS: [Px; 3] = [Px::whole(110), Px::whole(160), Px::whole(100)];

/// From the bottom of a panel, or of the phases' names, to the top of the next panel.
const PANEL_HEAD: Px = Px::whole(34);

const ABOUT_LINE: Px = Px::whole(18);

/// Positions, and the axis of time.
pub(super) struct Layout {
    about: Vec<String>,
    pub(super) legend: Vec<LegendEntry>,
    /// The top of the strip in which the phases have their names.
    pub(super) strip: Px,
    strip_height: Px,
    heights: &'static [Px],
    pub(super) left: Px,
    pub(super) right: Px,
    /// The end of the axis of time.
    pub(super) end: Timestamp,
    pub(super) time: Scale,
}

/// One controller in the legend.
pub(super) struct LegendEntry {
    pub(super) index: usize,
    pub(super) x: Px,
    pub(super) y: Px,
    pub(super) name: String,
    /// What marks the end of the run in the panels.
    pub(super) sign: &'static str,
    pub(super) fact: String,
}

impl Layout {
    pub(super) fn of(scenario: &Scenario, case: Option<&Case>, runs: &[&RunResult]) -> Self {
        let about = lines(&scenario.about, WIDTH, ABOUT);
        let about_end = about.iter().fold(Px::whole(24), |y, _| y + ABOUT_LINE);
        let legend = legend(about_end + Px::whole(26), case, runs);
        let legend_end = legend.last().map_or(about_end, |entry| entry.y);
        let end = runs.iter().map(|run| run.ended_at_ns).max().unwrap_or(0);
        // A millisecond at least, so that there is an axis even if nothing happened.
        let end = Timestamp::from_nanos(end.max(1_000_000));
        let has_phases = !stretches(scenario, end).is_empty();
        let widest = runs
            .iter()
            .map(|run| width_of(&shortened(&run.controller), TEXT))
            .chain([width_of(MINIMUM_LABEL, SMALL)])
            .max()
            .unwrap_or(Px::whole(0));
        Self {
            about,
            legend,
            strip: legend_end + Px::whole(16),
            strip_height: if has_phases {
                Px::whole(14)
            } else {
                Px::whole(-8)
            },
            heights: &PANEL_HEIGHTS,
            left: Px::whole(68),
            right: WIDTH - widest - Px::whole(10),
            end,
            time: Scale::linear(end.as_nanos(), 10),
        }
    }

    /// Room for panels of these heights below a line of text, a legend of these (name, fact), and a strip. The
    /// widest of `names` fits beside the panels.
    pub(super) fn plain(
        about: &str,
        legend: &[(String, String)],
        names: &[&str],
        heights: &'static [Px],
        end: Timestamp,
    ) -> Self {
        let about = lines(about, WIDTH, ABOUT);
        let about_end = about.iter().fold(Px::whole(24), |y, _| y + ABOUT_LINE);
        let entries = legend
            .iter()
            .map(|(name, fact)| (name.clone(), "", fact.clone()));
        let legend = arranged(about_end + Px::whole(26), entries);
        let legend_end = legend.last().map_or(about_end, |entry| entry.y);
        let end = end.max(Timestamp::from_millis(1));
        let widest = names.iter().map(|name| width_of(name, TEXT)).max();
        Self {
            about,
            legend,
            strip: legend_end + Px::whole(16),
            strip_height: Px::whole(14),
            heights,
            left: Px::whole(68),
            right: WIDTH - widest.unwrap_or(Px::whole(0)) - Px::whole(10),
            end,
            time: Scale::linear(end.as_nanos(), 10),
        }
    }

    pub(super) fn title_y(&self) -> Px {
        Px::whole(20)
    }

    /// The lines below the title, and where they stand.
    pub(super) fn about(&self) -> impl Iterator<Item = (Px, &str)> {
        let mut y = Px::whole(24);
        self.about.iter().map(move |line| {
            y = y + ABOUT_LINE;
            (y, line.as_str())
        })
    }

    pub(super) fn x(&self, at: Timestamp) -> Px {
        self.left + self.time.position(at.as_nanos(), self.right - self.left)
    }

    /// How wide a span of time is, but never too narrow to be seen.
    pub(super) fn width_of(&self, span: Duration) -> Px {
        let width = self.time.position(nanos(span), self.right - self.left);
        width.max(Px::tenths(12))
    }

    /// Top and bottom of a panel, counted from above.
    pub(super) fn panel(&self, index: usize) -> (Px, Px) {
        let mut bottom = self.strip + self.strip_height;
        let mut top = bottom;
        for height in self.heights.iter().take(index + 1) {
            top = bottom + PANEL_HEAD;
            bottom = top + *height;
        }
        (top, bottom)
    }

    /// The bottom of the last panel.
    pub(super) fn bottom(&self) -> Px {
        self.panel(self.heights.len() - 1).1
    }

    pub(super) fn height(&self) -> Px {
        self.bottom() + Px::whole(40)
    }

    /// The legend: a piece of each curve, its name, and what there is to say of it.
    pub(super) fn draw_legend(&self, canvas: &mut Canvas) {
        for entry in &self.legend {
            let mut swatch = Path::default();
            swatch.move_to(entry.x, entry.y - Px::whole(4));
            swatch.across_to(entry.x + SWATCH);
            canvas.path(&Mark::curve(entry.index, swatch));
            let x = entry.x + SWATCH + Px::whole(7);
            let style = style_of(entry.index);
            let texts = [&entry.name, entry.sign, &entry.fact];
            canvas.pair(x, entry.y, &format!("t{style}"), texts);
        }
    }

    /// The labels of the axis of time, below the last panel.
    pub(super) fn draw_time(&self, canvas: &mut Canvas, name: &str) {
        let unit = Unit::of(
            self.end.as_nanos(),
            &[(0, 1_000_000, "ms"), (1_000_000_000, 1_000_000_000, "s")],
        );
        let y = self.bottom() + Px::whole(16);
        let ticks = self.time.ticks();
        for (index, tick) in ticks.iter().enumerate() {
            let x = self.x(Timestamp::from_nanos(tick.value));
            let label = unit.label(tick.value, index + 1 == ticks.len());
            canvas.text(x, y, Anchor::Middle, "", &label);
        }
        let middle = self.left.middle(self.right);
        canvas.text(middle, y + Px::whole(18), Anchor::Middle, "", name);
    }
}

fn legend(top: Px, case: Option<&Case>, runs: &[&RunResult]) -> Vec<LegendEntry> {
    let entries = runs.iter().map(|run| {
        let sign = if run.completion_ns.is_some() {
            "●"
        } else {
            ""
        };
        (run.controller.clone(), sign, fact_of(run, case))
    });
    arranged(top, entries)
}

/// Entries of (name, sign, fact) side by side, as many lines as it takes.
fn arranged(top: Px, of: impl Iterator<Item = (String, &'static str, String)>) -> Vec<LegendEntry> {
    let (mut x, mut y) = (Px::whole(0), top);
    let mut entries = Vec::new();
    for (index, (name, sign, fact)) in of.enumerate() {
        let text = width_of(&format!("{name} o {fact}"), TEXT);
        let width = SWATCH + text + Px::whole(26);
        if x > Px::whole(0) && x + width > WIDTH {
            x = Px::whole(0);
            y = y + Px::whole(19);
        }
        entries.push(LegendEntry {
            index,
            x,
            y,
            name,
            sign,
            fact,
        });
        x = x + width;
    }
    entries
}

/// What became of the download, in a few words.
fn fact_of(run: &RunResult, case: Option<&Case>) -> String {
    let ended_at = decimal(run.ended_at_ns, 1_000_000_000, 2);
    match (&run.outcome, run.completion_ns, case) {
        (Outcome::Completed, Some(time), Some(case)) => {
            format!("{} in {} s", case.name, decimal(time, 1_000_000_000, 2))
        }
        (Outcome::Completed, _, _) => {
            let rate = decimal(run.goodput_bps, 1_000_000, 2);
            format!("{rate} Mbit/s on average")
        }
        (Outcome::LimitReached, _, Some(case)) if matches!(case.download, Download::Size(_)) => {
            format!("{} not complete after {ended_at} s", case.name)
        }
        (Outcome::LimitReached, _, _) => format!("limit reached at {ended_at} s"),
        (Outcome::Failed(_), _, _) => format!("failed at {ended_at} s"),
    }
}

/// Breaks a text into lines that are no wider than `width`, as far as its words allow.
fn lines(text: &str, width: Px, size: Px) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
