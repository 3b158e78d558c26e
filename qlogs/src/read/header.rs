//! What a trace says about itself, whatever generation of the drafts it follows.

use serde_json::{Map, Value};

use super::value::{number, text};
use crate::header::VantagePoint;

/// The head of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// `qlog_version`, which the current drafts have replaced by `file_schema`.
    pub version: Option<String>,
    /// The URN of the current drafts (main-schema-14).
    pub file_schema: Option<String>,
    /// `qlog_format` or `serialization_format`.
    pub format: Option<String>,
    /// The title of the trace, or of the file.
    pub title: Option<String>,
    /// The side that logs, if the file says client or server.
    pub vantage_point: Option<VantagePoint>,
    /// The name of the vantage point: usually program and version.
    pub name: Option<String>,
    /// The group of the trace: usually the original destination connection ID.
    pub group_id: Option<String>,
    /// What the times of events mean.
    pub time: TimeFormat,
    /// The unit of all times: draft-00 and draft-01 let a file choose microseconds.
    pub unit: TimeUnit,
    /// The names of the columns where an event is an array, as it was until draft-01.
    pub event_fields: Vec<String>,
}

/// What the times of events mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeFormat {
    /// Since the reference time of the trace.
    Relative,
    /// Since 1970 or whatever the clock of the program began with.
    #[default]
    Absolute,
    /// Since the previous event.
    Delta,
}

/// The unit of the times in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Milliseconds, as in every draft since draft-02.
    #[default]
    Millis,
    /// Microseconds.
    Micros,
}

impl TimeUnit {
    /// Nanoseconds in one of it.
    pub(super) const fn nanos(self) -> f64 {
        match self {
            Self::Millis => 1e6,
            Self::Micros => 1e3,
        }
    }
}

impl Header {
    /// From the members of the file and those of the trace in it.
    pub(super) fn of(file: &Map<String, Value>, trace: &Map<String, Value>) -> Self {
        let word = |key: &str| text(trace.get(key)).or_else(|| text(file.get(key)));
        let object = |key: &str| trace.get(key).and_then(Value::as_object);
        let none = Map::new();
        let vantage = object("vantage_point").unwrap_or(&none);
        let common = object("common_fields").unwrap_or(&none);
        let settings = object("configuration").unwrap_or(&none);
        let fields = trace.get("event_fields").and_then(Value::as_array);
        let event_fields: Vec<String> = fields
            .into_iter()
            .flatten()
            .filter_map(|field| Some(field.as_str()?.to_lowercase()))
            .collect();
        let group = ["group_id", "ODCID", "odcid"]
            .into_iter()
            .find_map(|key| text(common.get(key)));
        Self {
            version: word("qlog_version"),
            file_schema: word("file_schema"),
            format: word("qlog_format").or_else(|| word("serialization_format")),
            title: word("title"),
            vantage_point: match text(vantage.get("type"))
                .map(|side| side.to_lowercase())
                .as_deref()
            {
                Some("client") => Some(VantagePoint::Client),
                Some("server") => Some(VantagePoint::Server),
                _ => None,
            },
            name: text(vantage.get("name")),
            group_id: group,
            time: time_format(common, &event_fields),
            unit: match text(settings.get("time_units")).as_deref() {
                Some("us") => TimeUnit::Micros,
                _ => TimeUnit::Millis,
            },
            event_fields,
        }
    }
}

fn time_format(common: &Map<String, Value>, event_fields: &[String]) -> TimeFormat {
    if event_fields.iter().any(|field| field == "relative_time") {
        return TimeFormat::Relative;
    }
    if event_fields.iter().any(|field| field == "delta_time") {
        return TimeFormat::Delta;
    }
    let reference = common.get("reference_time");
    match text(common.get("time_format")).as_deref() {
        Some("relative") => TimeFormat::Relative,
        Some("delta" | "relative_to_previous_event") => TimeFormat::Delta,
        // main-schema-14: since an epoch, which is 1970 unless the file says that it is unknown.
        Some("relative_to_epoch") => {
            let epoch = reference.and_then(|reference| text(reference.get("epoch")));
            match epoch.as_deref() {
                Some("unknown") => TimeFormat::Relative,
                _ => TimeFormat::Absolute,
            }
        }
        Some(_) => TimeFormat::Absolute,
        // Nobody gives a reference for times that need none.
        None if number(reference).is_some() => TimeFormat::Relative,
        None => TimeFormat::Absolute,
    }
}
