//! The `[[flow]]` tables: what shares the link with the download, or takes its place.
//!
//! ```toml
//! [[flow]]
//! name = "other"            # default "flow 2" and so on; the download, if there is one, is flow 1
//! controller = "newreno"    # default: the one that is played
//! app = "bulk"              # or "bursts", "requests", "media"
//! direction = "forward"     # or "reverse": the same towards the server
//! start = "60 s"            # default 0 s; a seeded offset below one round trip is added
//! stop = "90 s"             # default: the end of the run
//! rtt = "120 ms"            # its own round-trip time on the idle link; default and least: the link's
//! busy = "3 s"              # bursts: as much as fits for so long,
//! idle = "5 s"              #   then nothing for so long, again and again
//! size = "16 KiB"           # requests: the size of an answer; media: of a frame
//! size_p95 = "300 kB"       # requests: sizes are log-normal, size their median and this their 95th percentile
//! every = "200 ms"          # requests: the mean of the gaps, which are exponential; media: the gap
//! ```

use std::ops::RangeInclusive;
use std::time::Duration;

use cc::Algorithm;
use units::{ByteCount, Timestamp, format_duration};

use super::error::{Problem, ScenarioError};
use super::reader::{Table, Value};

const FLOW: &[&str] = &[
    "name",
    "controller",
    "app",
    "direction",
    "start",
    "stop",
    "rtt",
    "busy",
    "idle",
    "size",
    "size_p95",
    "every",
];
const APPS: &str = "\"bulk\", \"bursts\", \"requests\", \"media\"";
const SIZES: RangeInclusive<ByteCount> = ByteCount::new(1)..=ByteCount::mb(1_000);
/// What one endpoint of the virtual network can tell apart in an address.
const MOST_FLOWS: usize = 200;

/// One flow beside the download, or in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPlan {
    /// What it is called in tables and bands.
    pub name: String,
    /// Its controller; the one that is played if `None`.
    pub controller: Option<Algorithm>,
    /// What it sends.
    pub app: App,
    /// Whether the data goes towards the server.
    pub is_reverse: bool,
    /// When it begins, before the seeded offset.
    pub start: Duration,
    /// When it falls silent for good.
    pub stop: Option<Duration>,
    /// What it is longer away than the link, there and back.
    pub extra_rtt: Duration,
}

/// What a flow sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    /// As much as fits.
    Bulk,
    /// As much as fits for a while, then nothing for a while, and so on.
    Bursts {
        /// How long it sends.
        busy: Duration,
        /// How long it does not.
        idle: Duration,
    },
    /// The client asks for something, at exponential gaps, whether the last answer has come or not.
    Requests {
        /// The mean gap.
        every: Duration,
        /// The size of an answer, or the median of the sizes.
        size: ByteCount,
        /// The 95th percentile of sizes that are drawn, each anew, from a log-normal distribution.
        size_p95: Option<ByteCount>,
    },
    /// One frame after the other at fixed gaps, each on a stream of its own.
    Media {
        /// The gap.
        every: Duration,
        /// The size of a frame.
        size: ByteCount,
    },
}

/// Reads the tables. `first` is the number of the first flow among them.
pub(super) fn read(
    root: &Table<'_>,
    limit: Duration,
    rtt: Duration,
    first: usize,
) -> Result<Vec<FlowPlan>, ScenarioError> {
    let Some(tables) = root.find("flow") else {
        return Ok(Vec::new());
    };
    let mut flows: Vec<FlowPlan> = Vec::new();
    for (index, item) in tables
        .items("a list of tables; write [[flow]]")?
        .iter()
        .enumerate()
    {
        let table = item.table("a table; write [[flow]]")?;
        let flow = read_one(&table, limit, rtt, first + index)?;
        if flows.iter().any(|known| known.name == flow.name) || flow.name == DOWNLOAD_NAME {
            return Err(table.error(Problem::Conflict(format!(
                "there are two flows of the name \"{}\"",
                flow.name
            ))));
        }
        flows.push(flow);
        if flows.len() > MOST_FLOWS {
            return Err(table.error(Problem::Conflict(format!(
                "is one flow too many; at most {MOST_FLOWS} are allowed"
            ))));
        }
    }
    Ok(flows)
}

/// What the download is called among the flows.
pub const DOWNLOAD_NAME: &str = "download";

fn read_one(
    table: &Table<'_>,
    limit: Duration,
    link_rtt: Duration,
    number: usize,
) -> Result<FlowPlan, ScenarioError> {
    table.only(FLOW)?;
    let name = match table.find("name") {
        Some(value) => {
            let name = value.text("other")?;
            if name.is_empty() || name.len() > 40 || name.chars().any(char::is_control) {
                return Err(value.out_of_range(format!("{name:?}"), "1 to 40 letters on one line"));
            }
            name.to_owned()
        }
        None => format!("flow {number}"),
    };
    let controller = match table.find("controller") {
        Some(value) => Some(
            value
                .text("newreno")?
                .parse()
                .map_err(|error| value.error(Problem::Controller(format!("{error}"))))?,
        ),
        None => None,
    };
    let is_reverse = match table.find("direction") {
        None => false,
        Some(value) => match value.text("forward")? {
            "forward" => false,
            "reverse" => true,
            other => {
                return Err(value.error(Problem::UnknownWord {
                    word: other.to_owned(),
                    allowed: "\"forward\", \"reverse\"".to_owned(),
                }));
            }
        },
    };
    let start = match table.find("start") {
        Some(value) => before(&value, limit)?,
        None => Duration::ZERO,
    };
    let stop = match table.find("stop") {
        Some(value) => {
            let stop = value.duration("90 s")?;
            if stop <= start {
                return Err(value.out_of_range(
                    format_duration(stop),
                    format!("after start, {}", format_duration(start)),
                ));
            }
            Some(stop)
        }
        None => None,
    };
    let extra_rtt = match table.find("rtt") {
        Some(value) => {
            let rtt = value.duration("120 ms")?;
            if rtt < link_rtt || rtt > Duration::from_secs(60) {
                return Err(value.out_of_range(
                    format_duration(rtt),
                    format!("{} (the link's) to 60 s", format_duration(link_rtt)),
                ));
            }
            rtt - link_rtt
        }
        None => Duration::ZERO,
    };
    Ok(FlowPlan {
        name,
        controller,
        app: app(table)?,
        is_reverse,
        start,
        stop,
        extra_rtt,
    })
}

fn before(value: &Value<'_>, limit: Duration) -> Result<Duration, ScenarioError> {
    let start = value.duration("60 s")?;
    if start < limit {
        return Ok(start);
    }
    Err(value.out_of_range(
        format_duration(start),
        format!("before the limit of {}", format_duration(limit)),
    ))
}

fn app(table: &Table<'_>) -> Result<App, ScenarioError> {
    let word = table.need("app", &format!("say what the flow sends: {APPS}"))?;
    let (allowed, app): (&[&str], App) = match word.text("bulk")? {
        "bulk" => (&[], App::Bulk),
        "bursts" => (
            &["busy", "idle"],
            App::Bursts {
                busy: span(table, "busy", "3 s")?,
                idle: span(table, "idle", "5 s")?,
            },
        ),
        "requests" => (
            &["every", "size", "size_p95"],
            App::Requests {
                every: span(table, "every", "200 ms")?,
                size: size(table)?,
                size_p95: size_p95(table)?,
            },
        ),
        "media" => (
            &["every", "size"],
            App::Media {
                every: span(table, "every", "33 ms")?,
                size: size(table)?,
            },
        ),
        other => {
            return Err(word.error(Problem::UnknownWord {
                word: other.to_owned(),
                allowed: APPS.to_owned(),
            }));
        }
    };
    for key in ["busy", "idle", "size", "size_p95", "every"] {
        if let Some(value) = table.find(key).filter(|_| !allowed.contains(&key)) {
            return Err(value.error(Problem::Conflict(format!(
                "says nothing about the app {:?}",
                word.text("bulk")?
            ))));
        }
    }
    Ok(app)
}

fn span(table: &Table<'_>, key: &str, example: &str) -> Result<Duration, ScenarioError> {
    let value = table.need(key, &format!("give a time such as \"{example}\""))?;
    let span = value.duration(example)?;
    if span < Duration::from_micros(100) || span > Duration::from_secs(3_600) {
        return Err(value.out_of_range(format_duration(span), "100 us to 1 h"));
    }
    Ok(span)
}

fn size(table: &Table<'_>) -> Result<ByteCount, ScenarioError> {
    let value = table.need("size", "give a size such as \"16 KiB\"")?;
    let size: ByteCount = value.quantity("16 KiB")?;
    if SIZES.contains(&size) {
        return Ok(size);
    }
    Err(value.out_of_range(size, format!("{} to {}", SIZES.start(), SIZES.end())))
}

/// The 95th percentile of sizes whose median is `size`.
fn size_p95(table: &Table<'_>) -> Result<Option<ByteCount>, ScenarioError> {
    let Some(value) = table.find("size_p95") else {
        return Ok(None);
    };
    let (median, p95): (_, ByteCount) = (size(table)?, value.quantity("300 kB")?);
    if (median..=*SIZES.end()).contains(&p95) {
        return Ok(Some(p95));
    }
    Err(value.out_of_range(
        p95,
        format!("{median} (the median, size) to {}", SIZES.end()),
    ))
}

/// What a size that is drawn may be at most: what one may be that is given.
pub(crate) const LARGEST_ANSWER: ByteCount = *SIZES.end();

impl FlowPlan {
    /// When it begins in the run with this seed: the offset has a stream of its own.
    #[must_use]
    pub fn start_at(&self, seed: u64, rtt: Duration) -> Timestamp {
        let span = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
        let mut stream =
            netsim::RandomStreams::new(seed).stream(&format!("flow.{}.start", self.name));
        Timestamp::ZERO + self.start + Duration::from_nanos(stream.below(span.max(1)))
    }
}
