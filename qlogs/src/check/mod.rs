//! Is a file right? Two answers: by the specification, and for qvis.
//!
//! ```text
//!  Reader --> header: version, format, vantage point
//!     |
//!     +-----> record: name, data, time ---> table: members, kinds ---> story: what follows from
//!     |                                                                what came before
//!     +-----> qvis: what its views look for
//! ```
//!
//! *Structure* is what quic-events-04 and its successors demand, as far as `table.rs` has it, and what must
//! hold within a connection (packet numbers are used once, what is acknowledged or lost was sent, a state
//! begins where the one before ended). *qvis* is what that viewer needs to draw all its views; a file that
//! follows the current drafts to the letter fails there.

mod qvis;
mod story;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use self::story::Story;
use self::table::{EVENTS, FRAMES, Kind, Member, WITHOUT_NUMBER};
use crate::read::{Container, Fault, Reader, Record};

/// What a file is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// The specification.
    Structure,
    /// The viewer qvis.
    Qvis,
}

impl Profile {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Qvis => "qvis",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which record; the header is record 1.
    pub record: u64,
    /// What it offends.
    pub profile: Profile,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.profile.as_str();
        write!(f, "record {}: {profile}: {}", self.record, self.what)
    }
}

/// What came of checking a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The first findings, as many as were asked for.
    pub findings: Vec<Finding>,
    /// How many there are of structure.
    pub structure_count: u64,
    /// How many there are for qvis.
    pub qvis_count: u64,
    /// How many events were read.
    pub event_count: u64,
    /// What ended the reading too early.
    pub fault: Option<Fault>,
}

impl Checked {
    /// Whether nothing at all is wrong.
    pub const fn is_right(&self) -> bool {
        self.structure_count == 0 && self.qvis_count == 0 && self.fault.is_none()
    }
}

/// Checks a whole file against these profiles and keeps the first `most` findings.
pub fn check(mut reader: Reader<'_>, profiles: &[Profile], most: usize) -> Checked {
    let mut list = List {
        checked: Checked {
            findings: Vec::new(),
            structure_count: 0,
            qvis_count: 0,
            event_count: 0,
            fault: None,
        },
        profiles,
        most,
        record: 1,
    };
    let mut story = Story::default();
    let mut viewer = qvis::Viewer::default();
    let mut trace = None;
    while let Some(record) = reader.next() {
        let record = match record {
            Ok(record) => record,
            Err(fault) => {
                list.checked.fault = Some(fault);
                break;
            }
        };
        if trace != Some(record.trace) {
            trace = Some(record.trace);
            story = Story::default();
            // In a document the head may stand behind the events.
            if reader.container() != Container::Document {
                header(&reader, &mut list);
            }
        }
        list.checked.event_count += 1;
        list.record = record.number;
        event(&record, &mut list);
        story.on_record(&record, reader.header(), &mut list);
        viewer.on_record(&record, &mut list);
    }
    list.record = 1;
    if reader.container() == Container::Document || trace.is_none() {
        header(&reader, &mut list);
    }
    viewer.finish(&reader, &mut list);
    list.checked
}

/// The findings so far.
struct List<'a> {
    checked: Checked,
    profiles: &'a [Profile],
    most: usize,
    record: u64,
}

impl List<'_> {
    fn add(&mut self, profile: Profile, what: impl FnOnce() -> String) {
        if !self.profiles.contains(&profile) {
            return;
        }
        match profile {
            Profile::Structure => self.checked.structure_count += 1,
            Profile::Qvis => self.checked.qvis_count += 1,
        }
        if self.checked.findings.len() < self.most {
            self.checked.findings.push(Finding {
                record: self.record,
                profile,
                what: what(),
            });
        }
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.add(Profile::Structure, what);
    }
}

fn header(reader: &Reader<'_>, list: &mut List<'_>) {
    list.record = 1;
    let header = reader.header();
    if header.version.is_none() && header.file_schema.is_none() {
        list.wrong(|| "the header has neither qlog_version nor file_schema".to_owned());
    }
    let (_, trace) = reader.members();
    let vantage = trace
        .get("vantage_point")
        .and_then(|point| point.get("type"));
    const SIDES: &[&str] = &["client", "server", "network", "unknown"];
    match vantage {
        None => list.wrong(|| "trace.vantage_point.type is missing".to_owned()),
        Some(value) => of_kind("trace.vantage_point.type", value, Kind::Word(SIDES), list),
    }
    const FORMATS: &[&str] = &[
        "absolute",
        "relative",
        "delta",
        "relative_to_epoch",
        "relative_to_previous_event",
    ];
    let common = trace.get("common_fields");
    if let Some(format) = common.and_then(|common| common.get("time_format")) {
        of_kind(
            "trace.common_fields.time_format",
            format,
            Kind::Word(FORMATS),
            list,
        );
    }
}

fn event(record: &Record, list: &mut List<'_>) {
    if record.time.is_none() {
        list.wrong(|| format!("{}: time is missing or no number", record.name));
    }
    if !record.written_name.contains(':') {
        let name = &record.written_name;
        list.wrong(|| format!("{name}: the name has no category before a colon"));
    }
    if !record.data.is_object() {
        list.wrong(|| format!("{}: data is missing or no object", record.name));
        return;
    }
    let Some((_, rules)) = EVENTS.iter().find(|(name, _)| *name == record.name) else {
        return;
    };
    members(&record.name, &record.data, rules, list);
    let needs_number = matches!(
        record.name.as_str(),
        "transport:packet_sent" | "transport:packet_received"
    );
    if needs_number {
        let header = record.data.get("header");
        let ty = header.and_then(|header| header.get("packet_type")?.as_str());
        let has_none = ty.is_none_or(|ty| WITHOUT_NUMBER.contains(&ty));
        if !has_none && header.is_some_and(|header| header.get("packet_number").is_none()) {
            list.wrong(|| format!("{}: header.packet_number is missing", record.name));
        }
    }
}

fn members(name: &str, data: &Value, rules: &[Member], list: &mut List<'_>) {
    for rule in rules {
        match rule.path.split('|').find_map(|path| member(data, path)) {
            Some(value) => {
                let path = format!("{name}: {}", rule.path);
                of_kind(&path, value, rule.kind, list);
            }
            None if rule.is_required => {
                let path = rule.path.replace('|', " or ");
                list.wrong(|| format!("{name}: {path} is missing"));
            }
            None => {}
        }
    }
}

fn member<'a>(data: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(data, |value, key| value.get(key))
}

fn of_kind(path: &str, value: &Value, kind: Kind, list: &mut List<'_>) {
    let is_whole = |most: u64| value.as_u64().is_some_and(|number| number <= most);
    let wanted = match kind {
        Kind::Any => return,
        Kind::Frames => return frames(path, value, list),
        Kind::U16 if is_whole(u64::from(u16::MAX)) => return,
        Kind::U32 if is_whole(u64::from(u32::MAX)) => return,
        Kind::U64 if is_whole(u64::MAX) => return,
        Kind::Bytes if is_whole(1 << 53) => return,
        Kind::Time if value.as_f64().is_some_and(|number| number >= 0.0) => return,
        Kind::Text if value.is_string() => return,
        Kind::Bool if value.is_boolean() => return,
        Kind::Object if value.is_object() => return,
        Kind::Array if value.is_array() => return,
        Kind::Hex if value.as_str().is_some_and(is_hex) => return,
        Kind::Word(words) if value.as_str().is_some_and(|word| words.contains(&word)) => return,
        Kind::U16 => "a whole number from 0 to 65535".to_owned(),
        Kind::U32 => "a whole number from 0 to 4294967295".to_owned(),
        Kind::U64 => "a whole number from 0 to 18446744073709551615".to_owned(),
        Kind::Bytes => "a whole number from 0 to 9007199254740992".to_owned(),
        Kind::Time => "a number that is not negative".to_owned(),
        Kind::Text => "a text".to_owned(),
        Kind::Bool => "true and false".to_owned(),
        Kind::Object => "an object".to_owned(),
        Kind::Array => "an array".to_owned(),
        Kind::Hex => "pairs of lowercase hexadecimal digits".to_owned(),
        Kind::Word(words) => words.join(", "),
    };
    list.wrong(|| format!("{path} is {}; allowed is {wanted}", shortened(value)));
}

fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn frames(path: &str, value: &Value, list: &mut List<'_>) {
    let Some(frames) = value.as_array() else {
        list.wrong(|| format!("{path} is {}; allowed is an array", shortened(value)));
        return;
    };
    for (index, frame) in frames.iter().enumerate() {
        let Some(ty) = frame.get("frame_type").and_then(Value::as_str) else {
            list.wrong(|| format!("{path}[{index}]: frame_type is missing or no text"));
            continue;
        };
        if let Some((_, rules)) = FRAMES.iter().find(|(known, _)| *known == ty) {
            members(&format!("{path}[{index}] {ty}"), frame, rules, list);
        }
    }
}

/// A value in a few letters, for a line of text.
fn shortened(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    let beginning: String = text.chars().take(LONGEST).collect();
    format!("{beginning}...")
}
