//! One quantity over time: axis, grid, curves, and the names at their ends.

use units::Timestamp;

use super::canvas::{Anchor, Canvas, Path, Px};
use super::layout::Layout;
use super::scale::Scale;
use super::style::style_of;
use crate::text::decimal;

/// The longest label of a line to compare with; names of controllers may be longer.
pub(super) const MINIMUM_LABEL: &str = "minimum 2.7 kB";

/// Labels at the ends of curves are at least this far apart.
const LABEL_LINE: Px = Px::whole(14);

/// A panel that is being filled; it draws itself at the end.
pub(super) struct Panel {
    title: String,
    scale: Scale,
    unit: Unit,
    top: Px,
    bottom: Px,
    marks: Vec<Mark>,
    labels: Vec<Label>,
}

/// A word at the right end of what it names.
struct Label {
    y: Px,
    class: String,
    text: String,
}

impl Panel {
    /// A panel between two heights.
    pub(super) fn new((top, bottom): (Px, Px), title: String, scale: Scale, unit: Unit) -> Self {
        Self {
            title,
            scale,
            unit,
            top,
            bottom,
            marks: Vec::new(),
            labels: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    /// A line to compare with: the value that begins at each instant; `None` breaks the line.
    pub(super) fn reference(
        &mut self,
        layout: &Layout,
        name: &str,
        steps: &[(Timestamp, Option<u64>)],
    ) {
        let mut path = Path::default();
        let ends = steps.iter().skip(1).map(|(at, _)| *at);
        let mut is_open = false;
        for ((from, value), until) in steps.iter().zip(ends.chain([layout.end])) {
            if let Some(value) = value {
                let y = self.y(*value);
                if is_open {
                    path.down_to(y);
                } else {
                    path.move_to(layout.x(*from), y);
                }
                path.across_to(layout.x(until));
            }
            is_open = value.is_some();
        }
        self.marks.push(Mark::reference(path));
        if let Some((_, Some(value))) = steps.last() {
            self.labels.push(Label {
                y: self.y(*value),
                class: String::new(),
                text: name.to_owned(),
            });
        }
    }

    /// Puts the name of a controller at the end of its curve, if it has one.
    pub(super) fn name_curve(&mut self, index: usize, name: &str, last: Option<u64>) {
        if let Some(last) = last {
            self.labels.push(Label {
                y: self.y(last),
                class: format!("t{}", style_of(index)),
                text: shortened(name),
            });
        }
    }

    pub(super) fn y(&self, value: u64) -> Px {
        self.bottom - self.scale.position(value, self.bottom - self.top)
    }

    pub(super) fn draw(mut self, canvas: &mut Canvas, layout: &Layout) {
        self.draw_axes(canvas, layout);
        for mark in &self.marks {
            canvas.path(mark);
        }
        // Stable: of two labels at one height, the one that came first is above.
        self.labels.sort_by_key(|label| label.y);
        let x = layout.right + Px::whole(8);
        let wanted: Vec<Px> = self.labels.iter().map(|label| label.y).collect();
        for (label, y) in self.labels.iter().zip(apart(&wanted, self.bottom)) {
            canvas.text(
                x,
                y + Px::whole(4),
                Anchor::Start,
                &label.class,
                &label.text,
            );
        }
    }

    fn draw_axes(&self, canvas: &mut Canvas, layout: &Layout) {
        let title_y = self.top - Px::whole(9);
        canvas.text(layout.left, title_y, Anchor::Start, "title", &self.title);
        let (mut grid, mut short, mut axis) = (Path::default(), Path::default(), Path::default());
        for tick in layout.time.ticks() {
            let x = layout.x(Timestamp::from_nanos(tick.value));
            grid.move_to(x, self.top);
            grid.down_to(self.bottom);
        }
        let ticks = self.scale.ticks();
        let last = ticks
            .iter()
            .rfind(|tick| tick.has_label)
            .map(|tick| tick.value);
        for tick in ticks {
            let y = self.y(tick.value);
            if tick.has_label {
                grid.move_to(layout.left, y);
                grid.across_to(layout.right);
                let label = self.unit.label(tick.value, Some(tick.value) == last);
                let x = layout.left - Px::whole(8);
                canvas.text(x, y + Px::whole(4), Anchor::End, "", &label);
            } else {
                short.move_to(layout.left, y);
                short.across_to(layout.left - Px::whole(4));
            }
        }
        axis.move_to(layout.left, self.top);
        axis.down_to(self.bottom);
        axis.across_to(layout.right);
        canvas.path(&Mark::plain("grid", grid));
        canvas.path(&Mark::plain("axis", short));
        canvas.path(&Mark::plain("axis", axis));
    }
}

/// A path with its looks.
pub(super) struct Mark {
    pub(super) class: String,
    pub(super) path: Path,
    /// Instead of the width of the class.
    pub(super) width: Option<Px>,
}

impl Mark {
    pub(super) fn plain(class: &str, path: Path) -> Self {
        Self {
            class: class.to_owned(),
            path,
            width: None,
        }
    }

    /// The curve of a controller. Where curves lie on each other the first one, which is wider,
    /// remains visible.
    pub(super) fn curve(index: usize, path: Path) -> Self {
        let width = Px::tenths(if index == 0 { 26 } else { 15 });
        Self::of(index, "curve", path, Some(width))
    }

    /// From the smallest to the largest value of each slot of this width.
    pub(super) fn range(index: usize, path: Path, width: Px) -> Self {
        Self::of(index, "range", path, Some(width))
    }

    /// Samples.
    pub(super) fn dots(index: usize, path: Path) -> Self {
        let width = Px::tenths(if index == 0 { 32 } else { 22 });
        Self::of(index, "dots", path, Some(width))
    }

    /// Where a run ended.
    pub(super) fn end(index: usize, path: Path) -> Self {
        Self::of(index, "end", path, None)
    }

    fn reference(path: Path) -> Self {
        Self::plain("reference", path)
    }

    fn of(index: usize, class: &str, path: Path, width: Option<Px>) -> Self {
        Self {
            class: format!("{class} c{}", style_of(index)),
            path,
            width,
        }
    }
}

/// The unit in which an axis is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    scale: u64,
    name: &'static str,
}

impl Unit {
    /// The last of the units (from which value on, its size, its name) that fits `largest`.
    pub(super) fn of(largest: u64, units: &[(u64, u64, &'static str)]) -> Self {
        let fitting = units.iter().rfind(|(from, _, _)| largest >= *from);
        fitting.map_or(Self { scale: 1, name: "" }, |(_, scale, name)| Self {
            scale: *scale,
            name,
        })
    }

    /// For spans of time in nanoseconds.
    pub(super) fn of_time(largest: u64) -> Self {
        Self::of(
            largest,
            &[
                (0, 1_000, "us"),
                (2_000_000, 1_000_000, "ms"),
                (10_000_000_000, 1_000_000_000, "s"),
            ],
        )
    }

    /// For rates in bits per second.
    pub(super) fn of_rate(largest: u64) -> Self {
        Self::of(
            largest,
            &[
                (0, 1_000, "kbit/s"),
                (1_000_000, 1_000_000, "Mbit/s"),
                (1_000_000_000, 1_000_000_000, "Gbit/s"),
            ],
        )
    }

    /// The value; only the last label of an axis has the unit.
    pub(super) fn label(&self, value: u64, is_last: bool) -> String {
        let number = trimmed(value, self.scale);
        if is_last {
            format!("{number} {}", self.name)
        } else {
            number
        }
    }
}

/// `value / unit` with up to three decimals, without zeros at the end.
pub(super) fn trimmed(value: u64, unit: u64) -> String {
    let text = decimal(value, unit, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A name with its end cut off if it would be too wide for the margin.
pub(super) fn shortened(name: &str) -> String {
    const LONGEST: usize = 22;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    let beginning: String = name.chars().take(LONGEST - 1).collect();
    format!("{beginning}…")
}

/// Heights for labels that want to be at `wanted` (ascending): none above another's line, and none
/// below `bottom` if that can be.
fn apart(wanted: &[Px], bottom: Px) -> Vec<Px> {
    let mut heights: Vec<Px> = Vec::with_capacity(wanted.len());
    for want in wanted {
        let free = heights.last().map_or(*want, |above| *above + LABEL_LINE);
        heights.push(free.max(*want));
    }
    let mut free = bottom;
    for height in heights.iter_mut().rev() {
        *height = free.min(*height);
        free = *height - LABEL_LINE;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(wanted: &[i64], bottom: i64) -> Vec<i64> {
        let wanted: Vec<Px> = wanted.iter().map(|y| Px::whole(*y)).collect();
        apart(&wanted, Px::whole(bottom))
            .iter()
            .map(|y| y.as_tenths() / 10)
            .collect()
    }

    #[test]
    fn labels_stay_where_they_are_if_there_is_room() {
        assert_eq!(heights(&[10, 30, 90], 100), [10, 30, 90]);
    }

    #[test]
    fn labels_that_would_lie_on_each_other_are_pushed_down_and_at_the_bottom_up() {
        assert_eq!(heights(&[10, 12, 20], 100), [10, 24, 38]);
        assert_eq!(heights(&[50, 97, 99], 100), [50, 86, 100]);
    }

    #[test]
    fn only_the_last_label_has_the_unit() {
        let unit = Unit::of_rate(100_000_000);
        assert_eq!(unit.label(2_500_000, false), "2.5");
        assert_eq!(unit.label(100_000_000, true), "100 Mbit/s");
        assert_eq!(unit.label(0, false), "0");
        assert_eq!(
            Unit::of_rate(1_500_000_000).label(1_500_000_000, true),
            "1.5 Gbit/s"
        );
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("fixed:10Mbit/s"), "fixed:10Mbit/s");
        assert_eq!(shortened(&"x".repeat(40)).chars().count(), 22);
    }
}
