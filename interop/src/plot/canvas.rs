//! SVG, written by hand: lengths, paths, and the few elements a picture needs.
//!
//! Lengths are tenths of a pixel in integers, so a picture is the same text on every machine.

use std::fmt::{self, Write as _};
use std::ops::{Add, Sub};

use super::panel::Mark;

/// A length or a coordinate on the picture, in tenths of a pixel; `y` grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Px(i64);

impl Px {
    pub(super) const fn whole(pixels: i64) -> Self {
        Self(pixels * 10)
    }

    pub(super) const fn tenths(tenths: i64) -> Self {
        Self(tenths)
    }

    pub(super) const fn as_tenths(self) -> i64 {
        self.0
    }

    pub(super) const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// Half way to another point.
    pub(super) const fn middle(self, other: Self) -> Self {
        Self((self.0 + other.0) / 2)
    }
}

impl Add for Px {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Px {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Px {
    /// "12", "12.3", "-0.5".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, tenth) = (self.0.unsigned_abs() / 10, self.0.unsigned_abs() % 10);
        match tenth {
            0 => write!(f, "{sign}{whole}"),
            tenth => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

/// Where the text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How wide text of a size is, about: fonts differ, and the picture is laid out without one.
pub(super) fn width_of(text: &str, size: Px) -> Px {
    let letters = i64::try_from(text.chars().count()).unwrap_or(i64::MAX / 1_000);
    // Wide fonts such as Verdana have 0.6 em on average; there is too much room for the others.
    Px(letters.saturating_mul(size.0) * 60 / 100)
}

/// The commands of a path.
#[derive(Debug, Default)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn move_to(&mut self, x: Px, y: Px) {
        self.push(format_args!("M{x} {y}"));
    }

    pub(super) fn line_to(&mut self, x: Px, y: Px) {
        self.push(format_args!("L{x} {y}"));
    }

    pub(super) fn across_to(&mut self, x: Px) {
        self.push(format_args!("H{x}"));
    }

    pub(super) fn down_to(&mut self, y: Px) {
        self.push(format_args!("V{y}"));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, command: fmt::Arguments<'_>) {
        // Writing to a String cannot fail; the same below.
        let _ = self.0.write_fmt(command);
    }
}

/// An SVG document that grows element by element.
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// Opens the document. `label` is what a screen reader says.
    pub(super) fn new(width: Px, height: Px, label: &str, style: &str) -> Self {
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n\
             <style>\n{style}</style>\n",
            escape(label)
        );
        Self { out }
    }

    pub(super) fn text(&mut self, x: Px, y: Px, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\"{anchor} class=\"{class}\">{}</text>",
            escape(text)
        );
    }

    /// Two texts one after the other: the first one, and whatever is between, has the class.
    pub(super) fn pair(&mut self, x: Px, y: Px, class: &str, texts: [&str; 3]) {
        let [first, between, second] = texts.map(escape);
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\"><tspan class=\"{class}\">{first}</tspan> \
             <tspan class=\"{class}\">{between}</tspan> {second}</text>",
        );
    }

    /// A path, unless it is empty.
    pub(super) fn path(&mut self, mark: &Mark) {
        if mark.path.is_empty() {
            return;
        }
        let _ = write!(self.out, "<path class=\"{}\"", mark.class);
        if let Some(width) = mark.width {
            let _ = write!(self.out, " stroke-width=\"{width}\"");
        }
        let _ = writeln!(self.out, " d=\"{}\"/>", mark.path.0);
    }

    /// A shaded rectangle whose `title` a browser shows under the pointer.
    pub(super) fn band(&mut self, (x, y): (Px, Px), (right, bottom): (Px, Px), title: &str) {
        let _ = writeln!(
            self.out,
            "<rect class=\"phase\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\">\
             <title>{}</title></rect>",
            right - x,
            bottom - y,
            escape(title)
        );
    }

    pub(super) fn dot(&mut self, x: Px, y: Px, radius: Px, class: &str) {
        let _ = writeln!(
            self.out,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        );
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// Text as XML may contain it. Characters that XML 1.0 section 2.2 excludes become U+FFFD.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_at_most_one_decimal() {
        for (tenths, text) in [(0, "0"), (120, "12"), (123, "12.3"), (-5, "-0.5")] {
            assert_eq!(Px::tenths(tenths).to_string(), text);
        }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("a < b & \"c\" > d\n\u{1}é"),
            "a &lt; b &amp; &quot;c&quot; &gt; d \u{fffd}é"
        );
    }

    #[test]
    fn empty_paths_are_not_drawn() {
        let mut canvas = Canvas::new(Px::whole(10), Px::whole(10), "", "");
        let before = canvas.out.clone();
        canvas.path(&Mark::plain("a", Path::default()));
        assert_eq!(canvas.out, before);
    }
}
