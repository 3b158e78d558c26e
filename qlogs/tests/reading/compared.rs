//! Two files are compared, and one is turned into lines of a table.

use qlogs::csv;
use qlogs::diff::{Comparison, compare};
use qlogs::read::Reader;

use super::{ours, whole};

fn compared(one: &[u8], other: &[u8]) -> Comparison {
    compared_but(one, other, &[])
}

fn compared_but(one: &[u8], other: &[u8], ignored: &[String]) -> Comparison {
    compare(
        Reader::new(one).expect("a file"),
        Reader::new(other).expect("a file"),
        ignored,
    )
}

fn replaced(from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(ours()).expect("text");
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn equal_files_do_not_part() {
    let comparison = compared(&ours(), &ours());
    assert!(comparison.is_same());
    assert_eq!(comparison.header, [""; 0]);
    assert_eq!(comparison.same_count, whole(&ours()).len() as u64);
}

#[test]
fn the_first_difference_is_named_by_its_members() {
    let other = replaced("\"new\":\"attempted\"", "\"new\":\"closed\",\"more\":1");
    let comparison = compared(&ours(), &other);
    assert_eq!(comparison.same_count, 1);
    let ignored = ["data.new".to_owned(), "data.more".to_owned()];
    assert!(!compared_but(&ours(), &other, &ignored[..1]).is_same());
    assert!(compared_but(&ours(), &other, &ignored).is_same());
    let parting = comparison.parting.expect("a difference");
    let numbers = parting
        .records
        .map(|record| record.expect("a record").number);
    assert_eq!(numbers, [3, 3]);
    assert_eq!(
        parting.members,
        [
            "data.new: \"attempted\" | \"closed\"",
            "data.more: none | 1"
        ]
    );
}

#[test]
fn headers_that_differ_are_told_and_do_not_part() {
    let other = replaced("sample: every event once", "another");
    let comparison = compared(&ours(), &other);
    assert!(comparison.is_same());
    assert_eq!(
        comparison.header,
        ["trace.title: \"sample: every event once\" | \"another\""]
    );
}

#[test]
fn the_shorter_file_parts_at_its_end() {
    let mut shorter = ours();
    let last = whole(&shorter).last().expect("events").offset - 1;
    shorter.truncate(usize::try_from(last).expect("small"));
    let parting = compared(&shorter, &ours()).parting.expect("a difference");
    assert!(parting.records[0].is_none());
    assert!(parting.records[1].is_some());
}

#[test]
fn a_table_has_all_cells_and_quotes_what_needs_it() {
    let file = ours();
    let mut reader = Reader::new(file.as_slice()).expect("a file");
    let mut lines = vec![csv::head()];
    while let Some(record) = reader.next() {
        lines.push(csv::line(&record.expect("whole"), reader.header()));
    }
    assert!(lines[0].starts_with("record,time_ms,name,packet_type,"));
    for line in &lines {
        assert!(line.ends_with("\r\n"));
        // Outside quotes there are as many commas in every line.
        let mut is_quoted = false;
        let commas = line.chars().filter(|letter| {
            is_quoted ^= *letter == '"';
            *letter == ',' && !is_quoted
        });
        assert_eq!(commas.count(), csv::COLUMNS.len() - 1, "{line}");
    }
    let metrics = lines
        .iter()
        .find(|line| line.contains("recovery:metrics_updated"));
    let cells: Vec<&str> = metrics.expect("some").split(',').collect();
    let column = |name: &str| csv::COLUMNS.iter().position(|known| *known == name);
    let window = cells[column("congestion_window_bytes").expect("a column")];
    assert!(window.parse::<u64>().is_ok(), "{window}");
    let sent = lines
        .iter()
        .find(|line| line.contains("transport:packet_sent"));
    assert!(sent.expect("some").contains(",initial,0,"), "{sent:?}");
}

/// Names come from the network.
#[test]
fn a_cell_is_no_formula() {
    let file = b"\x1e{\"qlog_version\":\"0.3\",\"trace\":{}}\n\x1e{\"time\":1,\"name\":\"=1+1\",\"data\":{}}\n";
    let mut reader = Reader::new(&file[..]).expect("a file");
    let record = reader.next().expect("an event").expect("whole");
    let line = csv::line(&record, reader.header());
    assert!(line.starts_with("2,0.000000,\"'=1+1\","), "{line}");
}
