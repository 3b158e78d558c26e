//! Reads qlog: ours, and that of other programs.
//!
//! ```text
//!  file, .gz, .zst --> source --> scan: one record at a time --> serde_json --> Record
//!                                                                                  |  names: 0.3
//!                                                                                  v
//!                                                                              event::Event
//! ```
//!
//! Two containers are read: JSON text sequences (RFC 7464), which may lack their separators and be lines,
//! and one JSON document (main-schema-05 sections 3 and 5). In both only one record is in memory at a
//! time, and no record may be longer than 1 MiB.
//!
//! Of the generations, draft-00 to the current drafts (main-schema-14) are read. A [`Record`] has the
//! name its event has in the dialect 0.3, whatever it was called in the file; [`event`] knows how the
//! members are called in each.
//!
//! A file that is cut or broken is read up to there. Then the [`Reader`] gives one [`Fault`], which says
//! where, and ends.

pub mod event;

mod fault;
mod header;
mod names;
mod scan;
mod source;
pub(crate) mod value;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use units::Timestamp;

pub use self::fault::{Fault, FaultKind};
pub use self::header::{Header, TimeFormat, TimeUnit};
pub(crate) use self::names::canonical;
use self::source::Source;
use self::value::{instant, number};
use crate::json::RECORD_SEPARATOR;

/// One event of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Which record of the file it is. The header is record 1, so that in a JSON text sequence this is
    /// the number of the line.
    pub number: u64,
    /// Where it begins, in bytes of the text, which is that after decompression.
    pub offset: u64,
    /// Which trace of the file it belongs to, from 0.
    pub trace: usize,
    /// When it happened: since the reference time if the file's times are relative, else since the
    /// first event of the trace.
    pub at: Timestamp,
    /// The time as written, in the unit of the file; `None` if it is missing or no number.
    pub time: Option<f64>,
    /// The name as the dialect 0.3 has it, such as `recovery:metrics_updated`; that of the file if the
    /// event is not known there.
    pub name: String,
    /// The name as written.
    pub written_name: String,
    /// The event's data; `null` if there is none.
    pub data: Value,
    /// The members of the record beside time, name and data.
    pub beside: Map<String, Value>,
}

/// How the records of a file lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// A JSON text sequence (RFC 7464).
    Sequence,
    /// One JSON text per line, without separators.
    Lines,
    /// One JSON document.
    Document,
}

/// Reads one file, record by record.
///
/// ```
/// use qlogs::{Event, TraceHeader, VantagePoint, Writer, read::Reader};
/// use units::Timestamp;
///
/// let header = TraceHeader::new(VantagePoint::Server, vec![1, 2, 3, 4, 5, 6, 7, 8]);
/// let mut writer = Writer::new(Vec::new(), &header)?;
/// writer.write(Timestamp::from_millis(20), &Event::Marker { message: "loss begins".into() });
/// let file = writer.finish()?;
///
/// let mut reader = Reader::new(file.as_slice())?;
/// assert_eq!(reader.header().group_id.as_deref(), Some("0102030405060708"));
/// let record = reader.next().expect("one event")?;
/// assert_eq!(record.name, "simulation:marker");
/// assert_eq!(record.at, Timestamp::from_millis(20));
/// assert!(reader.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<'a> {
    source: Source<'a>,
    container: Container,
    place: Place,
    /// The members of the file and of the trace that were seen so far.
    file: Map<String, Value>,
    trace: Map<String, Value>,
    header: Header,
    /// The first bytes of the file, where viewers look for the format.
    first_bytes: Vec<u8>,
    traces: usize,
    /// The number of the record that is read next, and where the present one begins.
    number: u64,
    offset: u64,
    /// What came of reading the first event, where that had to be done at once.
    early: Option<Result<Option<Value>, FaultKind>>,
    text: Vec<u8>,
    clock: Clock,
    is_over: bool,
}

/// Where in a JSON document the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    File,
    Traces,
    Trace { is_alone: bool },
    Events { is_alone: bool },
}

/// Turns times as written into instants.
#[derive(Debug, Default)]
struct Clock {
    first: Option<f64>,
    sum: f64,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("container", &self.container)
            .field("number", &self.number)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Reader<'static> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// As [`Reader::new`], and what the operating system says.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        let file = File::open(path).map_err(|error| Fault {
            record: 1,
            offset: 0,
            kind: FaultKind::Io(error.to_string()),
        })?;
        Self::new(file)
    }
}

impl<'a> Reader<'a> {
    /// Reads up to the first event. The input may be compressed with gzip or zstd.
    ///
    /// # Errors
    ///
    /// The input is empty, is no qlog, or ends within the header record of a sequence.
    pub fn new(input: impl Read + 'a) -> Result<Self, Fault> {
        let at_start = |kind| Fault {
            record: 1,
            offset: 0,
            kind,
        };
        let mut source =
            Source::new(input).map_err(|error| at_start(FaultKind::Io(error.to_string())))?;
        let first = source.next_token(&[]).map_err(at_start)?;
        let container = match first {
            None => return Err(at_start(FaultKind::Empty)),
            Some(RECORD_SEPARATOR) => Container::Sequence,
            Some(b'{') => Container::Document,
            Some(_) => return Err(at_start(FaultKind::NotQlog)),
        };
        let mut reader = Self {
            source,
            container,
            place: Place::File,
            file: Map::new(),
            trace: Map::new(),
            header: Header::default(),
            first_bytes: Vec::new(),
            traces: 0,
            number: 1,
            offset: 0,
            early: None,
            text: Vec::new(),
            clock: Clock::default(),
            is_over: false,
        };
        match container {
            Container::Sequence => reader.read_head().map_err(|kind| reader.fault(kind))?,
            Container::Document | Container::Lines => {
                reader.source.skip();
                reader.number = 2;
                reader.early = Some(reader.next_value());
                // Any JSON object could be read so far; one that neither has events nor says what it is, is no qlog.
                let says_so = ["qlog_version", "qlog_format", "file_schema"]
                    .iter()
                    .any(|key| reader.file.contains_key(*key));
                if matches!(reader.early, Some(Ok(None))) && reader.traces == 0 && !says_so {
                    return Err(at_start(FaultKind::NotQlog));
                }
            }
        }
        Ok(reader)
    }

    /// The header of the trace of the latest record. In a document what stands behind the events is
    /// known only after them.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The members of the file and of the trace that were seen so far, but for the events.
    pub const fn members(&self) -> (&Map<String, Value>, &Map<String, Value>) {
        (&self.file, &self.trace)
    }

    /// How the records lie in the file.
    pub const fn container(&self) -> Container {
        self.container
    }

    /// Whether the file is compressed.
    pub const fn is_compressed(&self) -> bool {
        self.source.is_compressed()
    }

    /// The header record of a sequence as it was written, up to 1 MiB; empty for other containers.
    pub fn head(&self) -> &[u8] {
        &self.first_bytes
    }

    /// The first record of a sequence is the header; if it is an event there is none.
    fn read_head(&mut self) -> Result<(), FaultKind> {
        let Some(first) = self.next_in_sequence()? else {
            return Err(FaultKind::Empty);
        };
        let Value::Object(members) = first else {
            return Err(FaultKind::NotAnEvent("the record is no object"));
        };
        if members.contains_key("name") && !members.contains_key("trace") {
            self.early = Some(Ok(Some(Value::Object(members))));
            return Ok(());
        }
        self.first_bytes = self.text.clone();
        self.number = 2;
        self.file = members;
        if let Some(Value::Object(trace)) = self.file.get("trace") {
            self.trace = trace.clone();
        }
        self.begin_trace();
        Ok(())
    }

    fn begin_trace(&mut self) {
        self.header = Header::of(&self.file, &self.trace);
    }

    /// The next event as JSON, `None` at the end.
    fn next_value(&mut self) -> Result<Option<Value>, FaultKind> {
        match self.container {
            Container::Sequence | Container::Lines => self.next_in_sequence(),
            Container::Document => self.next_in_document(),
        }
    }

    fn next_in_sequence(&mut self) -> Result<Option<Value>, FaultKind> {
        let first = self.source.next_token(&[RECORD_SEPARATOR])?;
        self.offset = self.source.offset();
        if first.is_none() {
            return Ok(None);
        }
        let end = match self.container {
            Container::Sequence => RECORD_SEPARATOR,
            _ => b'\n',
        };
        let mut text = std::mem::take(&mut self.text);
        let read = self.source.until(end, &mut text);
        self.text = text;
        let is_last = !read?;
        // RFC 7464 section 2.4: a record that ends with the text and not with a line feed may be cut.
        parse(&self.text).map(Some).map_err(|kind| match kind {
            FaultKind::NotJson(_) if is_last && !self.text.ends_with(b"\n") => FaultKind::Truncated,
            kind => kind,
        })
    }

    /// Walks through a document: members are kept, traces entered, events handed out.
    fn next_in_document(&mut self) -> Result<Option<Value>, FaultKind> {
        loop {
            let next = self.source.next_token(b",")?;
            self.offset = self.source.offset();
            let Some(next) = next else {
                return Err(FaultKind::Truncated);
            };
            match (self.place, next) {
                (Place::File, b'}') => {
                    self.source.skip();
                    return self.after_document();
                }
                (Place::Traces, b']') => {
                    self.source.skip();
                    self.place = Place::File;
                }
                (Place::Traces, b'{') => {
                    self.source.skip();
                    self.enter_trace(false);
                }
                (Place::Traces, _) => self.skip_value()?,
                (Place::Trace { is_alone }, b'}') => {
                    self.source.skip();
                    self.begin_trace();
                    self.traces += 1;
                    self.place = match is_alone {
                        true => Place::File,
                        false => Place::Traces,
                    };
                }
                (Place::Events { is_alone }, b']') => {
                    self.source.skip();
                    self.place = Place::Trace { is_alone };
                }
                (Place::Events { .. }, _) => {
                    let mut text = std::mem::take(&mut self.text);
                    let read = self.source.value(&mut text);
                    self.text = text;
                    read?;
                    return parse(&self.text).map(Some);
                }
                (Place::File | Place::Trace { .. }, _) => self.member(next)?,
            }
        }
    }

    /// One member of the file or of a trace.
    fn member(&mut self, next: u8) -> Result<(), FaultKind> {
        if next != b'"' {
            return Err(FaultKind::NotJson("the key of a member is missing".into()));
        }
        let key = match self.captured()? {
            Value::String(key) => key,
            _ => return Err(FaultKind::NotJson("a key is no text".into())),
        };
        if self.source.next_token(&[])? != Some(b':') {
            return Err(FaultKind::NotJson(
                "a key is not followed by a colon".into(),
            ));
        }
        self.source.skip();
        let Some(next) = self.source.next_token(&[])? else {
            return Err(FaultKind::Truncated);
        };
        match (self.place, key.as_str(), next) {
            (Place::File, "traces", b'[') => {
                self.source.skip();
                self.place = Place::Traces;
            }
            (Place::File, "trace", b'{') => {
                self.source.skip();
                self.enter_trace(true);
            }
            (Place::Trace { is_alone }, "events", b'[') => {
                self.source.skip();
                self.begin_trace();
                self.place = Place::Events { is_alone };
            }
            (Place::Trace { .. }, _, _) => {
                let value = self.captured()?;
                self.trace.insert(key, value);
            }
            _ => {
                let value = self.captured()?;
                self.file.insert(key, value);
            }
        }
        Ok(())
    }

    fn enter_trace(&mut self, is_alone: bool) {
        self.trace = Map::new();
        self.clock = Clock::default();
        self.place = Place::Trace { is_alone };
    }

    fn captured(&mut self) -> Result<Value, FaultKind> {
        let mut text = std::mem::take(&mut self.text);
        let read = self.source.value(&mut text);
        self.text = text;
        read?;
        parse(&self.text)
    }

    fn skip_value(&mut self) -> Result<(), FaultKind> {
        self.captured().map(|_| ())
    }

    /// What seemed a document may have been the first of many lines.
    fn after_document(&mut self) -> Result<Option<Value>, FaultKind> {
        let next = self.source.next_token(&[])?;
        self.offset = self.source.offset();
        match next {
            None => Ok(None),
            Some(b'{') if self.number == 2 => {
                self.container = Container::Lines;
                self.begin_trace();
                // A file without a header: its first line is an event.
                if self.file.contains_key("name") {
                    return Err(FaultKind::NotAnEvent("the header is missing"));
                }
                self.next_in_sequence()
            }
            Some(_) => Err(FaultKind::NotJson(
                "there is more behind the end of the document".into(),
            )),
        }
    }

    fn record(&mut self, value: Value) -> Result<Record, FaultKind> {
        let mut members = match value {
            Value::Object(members) => members,
            Value::Array(columns) => self.named(columns)?,
            _ => {
                return Err(FaultKind::NotAnEvent(
                    "the record is neither an object nor an array",
                ));
            }
        };
        let written_name = match members.remove("name") {
            Some(Value::String(name)) => name,
            Some(_) => return Err(FaultKind::NotAnEvent("its name is no text")),
            None => self.name_in_parts(&mut members)?,
        };
        let time = members.remove("time");
        let time = number(time.as_ref());
        let at = self.clock.at(time, &self.header);
        Ok(Record {
            number: self.number,
            offset: self.offset,
            trace: self.traces,
            at,
            time,
            name: canonical(&written_name),
            written_name,
            data: members.remove("data").unwrap_or(Value::Null),
            beside: members,
        })
    }

    /// Until draft-02, category and type were two members.
    fn name_in_parts(&self, members: &mut Map<String, Value>) -> Result<String, FaultKind> {
        let mut word = |keys: [&str; 2]| {
            keys.into_iter().find_map(|key| match members.remove(key)? {
                Value::String(word) => Some(word),
                _ => None,
            })
        };
        match (word(["category", ""]), word(["event", "type"])) {
            (Some(category), Some(event)) => Ok(format!("{category}:{event}")),
            (None, Some(event)) => Ok(event),
            _ => Err(FaultKind::NotAnEvent("it has no name")),
        }
    }

    /// Until draft-01, an event was an array whose columns the header names.
    fn named(&self, columns: Vec<Value>) -> Result<Map<String, Value>, FaultKind> {
        if self.header.event_fields.is_empty() {
            return Err(FaultKind::NotAnEvent(
                "it is an array, and the header has no event_fields",
            ));
        }
        let fields = self.header.event_fields.iter();
        let pairs = fields.zip(columns).map(|(field, column)| {
            let field = match field.as_str() {
                "relative_time" | "delta_time" | "timestamp" => "time",
                "event_type" => "event",
                field => field,
            };
            (field.to_owned(), column)
        });
        Ok(pairs.collect())
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault {
            record: self.number,
            offset: self.offset,
            kind,
        }
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Record, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let value = self.early.take().unwrap_or_else(|| self.next_value());
        let record = match value {
            Ok(Some(value)) => self.record(value),
            Ok(None) => {
                self.is_over = true;
                return None;
            }
            Err(kind) => Err(kind),
        };
        match record {
            Ok(record) => {
                self.number += 1;
                Some(Ok(record))
            }
            Err(kind) => {
                self.is_over = true;
                Some(Err(self.fault(kind)))
            }
        }
    }
}

impl Clock {
    fn at(&mut self, time: Option<f64>, header: &Header) -> Timestamp {
        let unit = header.unit.nanos();
        let time = time.unwrap_or(self.sum);
        match header.time {
            TimeFormat::Relative => {
                self.sum = time;
                instant(time, unit)
            }
            TimeFormat::Delta => {
                self.sum += time;
                instant(self.sum, unit)
            }
            TimeFormat::Absolute => {
                self.sum = time;
                instant(time - *self.first.get_or_insert(time), unit)
            }
        }
    }
}

fn parse(text: &[u8]) -> Result<Value, FaultKind> {
    serde_json::from_slice(text).map_err(|error| FaultKind::NotJson(error.to_string()))
}
