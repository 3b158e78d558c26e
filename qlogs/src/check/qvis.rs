//! What qvis looks for, found by trying (docs/qlog.md): names, keys, and the place of the header.

use serde_json::Value;

use super::{List, Profile, member};
use crate::read::{Container, Reader, Record};

/// The versions it knows.
const VERSIONS: [&str; 4] = ["0.3", "draft-02", "draft-02-RC1", "qlog-03-WIP"];

/// How much of a file it searches for the format.
const SEARCHED_BYTES: usize = 1_024;

/// What the views have found so far.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    last: Option<f64>,
    has_metrics: bool,
    has_sent: bool,
    has_owner: bool,
    has_events: bool,
}

/// The names its congestion and sequence views ask for, category and all.
const NAMES: [&str; 5] = [
    "transport:packet_sent",
    "transport:packet_received",
    "transport:parameters_set",
    "recovery:packet_lost",
    "recovery:metrics_updated",
];

impl Viewer {
    pub(super) fn on_record(&mut self, record: &Record, list: &mut List<'_>) {
        self.has_events = true;
        let name = record.name.as_str();
        if NAMES.contains(&name) && record.written_name != name {
            wrong(list, || {
                format!("{}: it looks for {name}", record.written_name)
            });
        }
        if record.data.is_null() {
            wrong(list, || format!("{name}: an event without data stops it"));
        }
        if let (Some(last), Some(time)) = (self.last, record.time)
            && time < last
        {
            wrong(list, || {
                format!("{name}: time goes back, an alert box follows")
            });
        }
        self.last = record.time.or(self.last);
        self.on_data(name, &record.data, list);
    }

    fn on_data(&mut self, name: &str, data: &Value, list: &mut List<'_>) {
        let is_packet = matches!(name, "transport:packet_sent" | "transport:packet_received");
        if name == "transport:packet_sent" {
            self.has_sent = true;
            if member(data, "raw.length").is_none() {
                wrong(list, || {
                    format!("{name}: without raw.length the packet is not drawn")
                });
            }
        }
        if name == "recovery:packet_lost" {
            for path in ["header.packet_type", "header.packet_number"] {
                if member(data, path).is_none() {
                    wrong(list, || format!("{name}: without {path} no loss is drawn"));
                }
            }
        }
        if name == "recovery:metrics_updated" {
            self.has_metrics |= member(data, "congestion_window").is_some();
            let texts = ["congestion_window", "bytes_in_flight", "smoothed_rtt"];
            for path in texts {
                if member(data, path).is_some_and(Value::is_string) {
                    wrong(list, || format!("{name}: {path} as a text bends the axis"));
                }
            }
        }
        if name == "transport:parameters_set" {
            self.has_owner |= member(data, "owner").is_some();
        }
        let frames = data.get("frames").and_then(Value::as_array);
        for frame in frames.into_iter().flatten().filter(|_| is_packet) {
            let is_stream = frame.get("frame_type").and_then(Value::as_str) == Some("stream");
            if is_stream && frame.get("length").is_none() {
                wrong(list, || {
                    format!("{name}: a stream frame without length is taken for a duplicate")
                });
            }
        }
    }

    /// What only the header and the whole file show.
    pub(super) fn finish(&self, reader: &Reader<'_>, list: &mut List<'_>) {
        let header = reader.header();
        if reader.is_compressed() {
            wrong(list, || "it takes no compressed file".to_owned());
        }
        match header.version.as_deref() {
            Some(version) if VERSIONS.contains(&version) => {}
            version => wrong(list, || {
                format!(
                    "qlog_version is {}; allowed is {}",
                    version.map_or("missing".to_owned(), |version| format!("\"{version}\"")),
                    VERSIONS.join(", ")
                )
            }),
        }
        if reader.container() == Container::Sequence {
            if header.format.as_deref() != Some("JSON-SEQ") {
                wrong(list, || "qlog_format must be JSON-SEQ".to_owned());
            }
            let head = reader.head();
            let searched = &head[..head.len().min(SEARCHED_BYTES)];
            for key in ["\"qlog_version\"", "\"qlog_format\""] {
                let is_there = |bytes: &[u8]| {
                    bytes
                        .windows(key.len())
                        .any(|window| window == key.as_bytes())
                };
                if is_there(head) && !is_there(searched) {
                    wrong(list, || {
                        format!("{key} does not stand in the first {SEARCHED_BYTES} bytes")
                    });
                }
            }
        }
        if header.vantage_point.is_none() {
            wrong(list, || {
                "trace.vantage_point.type must be client or server, else directions are wrong"
                    .to_owned()
            });
        }
        if !self.has_events {
            wrong(list, || "it cannot load a file without events".to_owned());
        }
        for (is_there, what) in [
            (
                self.has_sent,
                "there is no transport:packet_sent: no view has packets",
            ),
            (
                self.has_metrics,
                "no recovery:metrics_updated has congestion_window: no window is drawn",
            ),
            (
                self.has_owner,
                "no transport:parameters_set has owner: no flow control is drawn",
            ),
        ] {
            if !is_there {
                wrong(list, || what.to_owned());
            }
        }
    }
}

fn wrong(list: &mut List<'_>, what: impl FnOnce() -> String) {
    list.add(Profile::Qvis, what);
}
