//! Where two files part.
//!
//! Records are laid side by side, the first with the first, and compared by time, name and data. For two runs
//! that should be the same the first difference is what matters: everything after it follows from it.

use serde_json::{Map, Value};
use units::Timestamp;

use crate::read::{Fault, Reader, Record};

/// How two files compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What differs in the headers, as "member: one | other".
    pub header: Vec<String>,
    /// How many events are the same before the first that is not.
    pub same_count: u64,
    /// The last record that is the same: its number in the first file, and its time.
    pub last_same: Option<(u64, Timestamp)>,
    /// Where they part; `None` if they do not.
    pub parting: Option<Parting>,
    /// What ended the reading of one or the other.
    pub faults: [Option<Fault>; 2],
}

/// The first two records that differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Parting {
    /// The records; `None` where a file has ended.
    pub records: [Option<Record>; 2],
    /// The members that differ, as "member: one | other".
    pub members: Vec<String>,
}

impl Comparison {
    /// Whether the events of both files are the same, to their ends, and the ends could be read.
    pub const fn is_same(&self) -> bool {
        self.parting.is_none() && matches!(self.faults, [None, None])
    }
}

/// Compares two files, up to the first events that differ. Members with these names, such as "cc_algorithm" or
/// "data.initial_rtt", count for nothing.
pub fn compare(mut one: Reader<'_>, mut other: Reader<'_>, ignored: &[String]) -> Comparison {
    let header = {
        let ((file, trace), (other_file, other_trace)) = (one.members(), other.members());
        let mut found = Vec::new();
        let without_trace = |members: &Map<String, Value>| {
            let mut members = members.clone();
            members.remove("trace");
            Value::Object(members)
        };
        differences(
            "",
            &without_trace(file),
            &without_trace(other_file),
            &mut found,
        );
        differences(
            "trace",
            &Value::Object(trace.clone()),
            &Value::Object(other_trace.clone()),
            &mut found,
        );
        found
    };
    let mut comparison = Comparison {
        header,
        same_count: 0,
        last_same: None,
        parting: None,
        faults: [None, None],
    };
    loop {
        let mut next = |reader: &mut Reader<'_>, side: usize| match reader.next() {
            Some(Ok(record)) => Some(record),
            Some(Err(fault)) => {
                comparison.faults[side] = Some(fault);
                None
            }
            None => None,
        };
        let records = [next(&mut one, 0), next(&mut other, 1)];
        let members = match &records {
            [None, None] => break,
            [Some(one), Some(other)] => {
                let mut members = of_records(one, other);
                members.retain(|line| {
                    let name = line.split_once(": ").map_or("", |(name, _)| name);
                    ignored.iter().all(|ignored| ignored != name)
                });
                if members.is_empty() {
                    comparison.same_count += 1;
                    comparison.last_same = Some((one.number, one.at));
                    continue;
                }
                members
            }
            _ => Vec::new(),
        };
        comparison.parting = Some(Parting { records, members });
        break;
    }
    comparison
}

fn of_records(one: &Record, other: &Record) -> Vec<String> {
    let mut found = Vec::new();
    if one.at != other.at {
        found.push(format!("time: {} | {}", millis(one.at), millis(other.at)));
    }
    if one.name != other.name {
        found.push(format!("name: {} | {}", one.name, other.name));
    }
    differences("data", &one.data, &other.data, &mut found);
    differences(
        "",
        &Value::Object(one.beside.clone()),
        &Value::Object(other.beside.clone()),
        &mut found,
    );
    found
}

/// An instant in milliseconds, as files have it.
pub fn millis(at: Timestamp) -> String {
    let ns = at.as_nanos();
    let text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} ms")
}

/// Adds a line for each member that differs. Nested as deep as a file can be: 128 levels.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    if one == other {
        return;
    }
    let within = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                let value_there = other.get(key).unwrap_or(&Value::Null);
                differences(&within(key), value, value_there, found);
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                differences(&within(key), &Value::Null, value, found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}[{index}]"), one, other, found);
            }
        }
        _ => {
            let text = |value: &Value| match value {
                Value::Null => "none".to_owned(),
                value => value.to_string(),
            };
            found.push(format!("{path}: {} | {}", text(one), text(other)));
        }
    }
}
