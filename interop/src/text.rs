//! Text for a terminal of 80 columns: wrapping, columns, and quantities rounded for reading.

use std::fmt::Write as _;

use crate::expect::Dimension;

/// Columns of a terminal nobody has resized.
pub(crate) const WIDTH: usize = 80;

/// Breaks `text` into lines of at most [`WIDTH`] letters; lines after the first are indented. Words
/// longer than a line stand alone on theirs.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut used = 0;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 {
            if used + 1 + length > WIDTH {
                wrapped.push('\n');
                wrapped.push_str(&" ".repeat(indent));
                used = indent;
            } else {
                wrapped.push(' ');
                used += 1;
            }
        }
        wrapped.push_str(word);
        used += length;
    }
    wrapped
}

/// A table: every column as wide as its widest cell, the first one to the left, the others to the
/// right but for the last if that holds words, two spaces between them or one if two would not fit.
pub(crate) struct Columns<'a> {
    header: Vec<(&'a str, &'a str)>,
    rows: Vec<Row>,
    /// Whether the last column holds words.
    ends_in_words: bool,
}

enum Row {
    Cells(Vec<String>),
    Heading(String),
}

impl<'a> Columns<'a> {
    /// A table with two lines of header.
    pub(crate) fn new(header: Vec<(&'a str, &'a str)>) -> Self {
        Self {
            header,
            rows: Vec::new(),
            ends_in_words: true,
        }
    }

    /// The last column holds numbers too.
    pub(crate) fn with_numbers_only(mut self) -> Self {
        self.ends_in_words = false;
        self
    }

    pub(crate) fn heading(&mut self, text: String) {
        self.rows.push(Row::Heading(text));
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    /// The cells of each row that has some.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) => None,
        })
    }

    pub(crate) fn write_to(&self, out: &mut String) {
        let mut widths: Vec<usize> = self
            .header
            .iter()
            .map(|(upper, lower)| upper.len().max(lower.len()))
            .collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let gaps = widths.len().saturating_sub(1);
        let total: usize = widths.iter().sum();
        let gap = if total + 2 * gaps <= WIDTH { "  " } else { " " };
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (index, (cell, width)) in cells.zip(&widths).enumerate() {
                let width = *width;
                // Writing to a String cannot fail.
                let _ = if index == 0 {
                    write!(text, "{cell:<width$}")
                } else if index == gaps && self.ends_in_words {
                    write!(text, "{gap}{cell}")
                } else {
                    write!(text, "{gap}{cell:>width$}")
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&mut self.header.iter().map(|(upper, _)| *upper));
        line(&mut self.header.iter().map(|(_, lower)| *lower));
        for row in &self.rows {
            match row {
                Row::Cells(cells) => line(&mut cells.iter().map(String::as_str)),
                Row::Heading(text) => line(&mut std::iter::once(text.as_str())),
            }
        }
    }
}

/// An amount in the unit of its dimension, rounded for reading.
pub(crate) fn show(dimension: Dimension, amount: u64) -> String {
    match dimension {
        Dimension::Share => format!("{} %", decimal(amount, 10_000_000, 2)),
        Dimension::Time | Dimension::RoundTrip if amount >= 1_000_000_000 => {
            format!("{} s", decimal(amount, 1_000_000_000, 3))
        }
        Dimension::Time | Dimension::RoundTrip => format!("{} ms", decimal(amount, 1_000_000, 2)),
        Dimension::Rate if amount >= 1_000_000 => {
            format!("{} Mbit/s", decimal(amount, 1_000_000, 3))
        }
        Dimension::Rate => format!("{} kbit/s", decimal(amount, 1_000, 1)),
        Dimension::Count => amount.to_string(),
        Dimension::Size => format!("{amount} B"),
    }
}

/// `amount / unit` with this many decimals, rounded half up.
pub(crate) fn decimal(amount: u64, unit: u64, decimals: u32) -> String {
    let steps = 10_u64.pow(decimals);
    let scaled = units::math::mul_div(amount, 2 * steps, unit).saturating_add(1) / 2;
    if decimals == 0 {
        return scaled.to_string();
    }
    let places = usize::try_from(decimals).unwrap_or(0);
    format!("{}.{:0places$}", scaled / steps, scaled % steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_before_the_word_that_would_not_fit() {
        let text = format!("{} {} {}", "a".repeat(40), "b".repeat(39), "c".repeat(90));
        assert_eq!(
            wrap(&text, 2),
            format!(
                "{} {}\n  {}",
                "a".repeat(40),
                "b".repeat(39),
                "c".repeat(90)
            )
        );
        assert_eq!(wrap("short", 4), "short");
    }

    #[test]
    fn amounts_are_rounded_half_up_in_a_unit_that_reads_well() {
        assert_eq!(show(Dimension::Share, 999_994_999), "100.00 %");
        assert_eq!(show(Dimension::Share, 13_040_000), "1.30 %");
        assert_eq!(show(Dimension::Time, 3_394_499_999), "3.394 s");
        assert_eq!(show(Dimension::Time, 141_005_000), "141.01 ms");
        assert_eq!(show(Dimension::Time, 0), "0.00 ms");
        assert_eq!(show(Dimension::Rate, 93_417_600), "93.418 Mbit/s");
        assert_eq!(show(Dimension::Rate, 64_000), "64.0 kbit/s");
        assert_eq!(show(Dimension::Count, 7), "7");
        assert_eq!(decimal(u64::MAX, 1_000_000_000, 0), "18446744074");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut columns = Columns::new(vec![("", "name"), ("time", "s"), ("", "so")]);
        columns.row(vec!["cubic".into(), "3.39".into(), "met".into()]);
        columns.heading("a longer line".into());
        columns.row(vec!["x".into(), "13.39".into(), "MISSED".into()]);
        let mut text = String::new();
        columns.write_to(&mut text);
        assert_eq!(
            text,
            "        time\nname       s  so\ncubic   3.39  met\na longer line\nx      13.39  MISSED\n"
        );
    }
}
