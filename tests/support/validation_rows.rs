//! Rows of `docs/validation.md` that single tests write.
//!
//! A test that measures something calls [`row`]. The row must stand in the document as measured, or the test fails; with
//! `TIDEGATE_WRITE_DOCS=1` it is put there instead, so a figure changes only in the same change as what it measures.
//! What is not the same in every run (real sockets, random keys) goes through [`unsteady_row`], which only writes.
//!
//! Each part of the document lies between `<!-- rows: PART -->` and `<!-- end -->` and is kept in the order of its
//! first column, numbers by value. The last column is the test that called, by the name of its thread.

use std::cmp::Ordering;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, thread};

/// One test at a time touches the document; test programs run one after the other.
static DOCUMENT: Mutex<()> = Mutex::new(());

/// Compares a measured value with the document, or writes it there.
#[track_caller]
pub(crate) fn row(part: &str, name: &str, measured: impl Display, allowed: impl Display) {
    let line = line_of(name, &measured, &allowed);
    let _guard = DOCUMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if is_writing() {
        write(part, name, &line);
        return;
    }
    let found = find(part, name);
    assert!(
        found.as_deref() == Some(&line),
        "docs/validation.md, part {part}, says\n{}\nbut measured was\n{line}\nIf that is meant, run this test with \
         TIDEGATE_WRITE_DOCS=1",
        found.as_deref().unwrap_or("nothing")
    );
}

/// Writes a measured value that differs from run to run. It is not compared, but its row must be there.
#[track_caller]
pub(crate) fn unsteady_row(part: &str, name: &str, measured: impl Display, allowed: impl Display) {
    let line = line_of(name, &measured, &allowed);
    println!("{line}");
    let _guard = DOCUMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if is_writing() {
        write(part, name, &line);
    } else {
        assert!(
            find(part, name).is_some(),
            "docs/validation.md, part {part}, has no row {name}; run this test with TIDEGATE_WRITE_DOCS=1"
        );
    }
}

fn is_writing() -> bool {
    env::var_os("TIDEGATE_WRITE_DOCS").is_some_and(|value| value == "1")
}

fn line_of(name: &str, measured: &dyn Display, allowed: &dyn Display) -> String {
    let thread = thread::current();
    let test = thread.name().unwrap_or("main");
    let test = test.rsplit("::").next().unwrap_or(test);
    format!("| {name} | {measured} | {allowed} | `{test}` |")
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/validation.md")
}

fn read() -> String {
    fs::read_to_string(path()).expect("docs/validation.md is text")
}

/// The document before a part's rows, the rows, and what follows them.
fn cut<'a>(document: &'a str, part: &str) -> (&'a str, Vec<&'a str>, &'a str) {
    let mark = format!("<!-- rows: {part} -->\n");
    let begin = document.find(&mark).map(|at| at + mark.len());
    let begin = begin.unwrap_or_else(|| panic!("docs/validation.md has no part {part}"));
    let head = document[begin..].find("|---").expect("a table");
    let rows = begin + head + document[begin + head..].find('\n').expect("a line") + 1;
    let end = document[rows..].find("\n<!-- end -->").expect("an end") + rows;
    let lines = document[rows..end].lines().filter(|line| !line.is_empty());
    (&document[..rows], lines.collect(), &document[end..])
}

fn name_of(line: &str) -> &str {
    line.split('|').nth(1).unwrap_or("").trim()
}

fn find(part: &str, name: &str) -> Option<String> {
    let document = read();
    let (_, lines, _) = cut(&document, part);
    let line = lines.into_iter().find(|line| name_of(line) == name);
    line.map(str::to_owned)
}

fn write(part: &str, name: &str, line: &str) {
    let document = read();
    let (before, mut lines, after) = cut(&document, part);
    lines.retain(|known| name_of(known) != name);
    lines.push(line);
    lines.sort_by(|a, b| natural_order(name_of(a), name_of(b)));
    let document = format!("{before}{}\n{after}", lines.join("\n"));
    fs::write(path(), document).expect("docs/validation.md can be written");
}

/// "A4" before "A10": runs of digits compare as numbers.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (head_a, rest_a) = head(a);
        let (head_b, rest_b) = head(b);
        let order = match (head_a.parse::<u64>(), head_b.parse::<u64>()) {
            (Ok(x), Ok(y)) => x.cmp(&y),
            _ => head_a.cmp(head_b),
        };
        if order.is_ne() || (head_a.is_empty() && head_b.is_empty()) {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// The digits, or the other letters, that a text begins with.
fn head(text: &str) -> (&str, &str) {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != is_number);
    text.split_at(end.unwrap_or(text.len()))
}
