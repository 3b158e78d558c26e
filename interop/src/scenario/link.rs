//! `[link]`: what the link does before any phase.

use std::fs;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use netsim::{Cellular, Leo, LossPlace, PipeConfig, Trace};
use units::{ByteCount, Fraction, QueueLimit, Rate};

use super::error::{Problem, ScenarioError};
use super::impairments;
use super::parse::{DELAYS, DROPS, HEADERS, RATES, check, duration_in, with_impairments};
use super::reader::{Table, Value};
use super::timeline::{DirectionPlan, SlotSource};

/// scenarios.md 1.0: the UDP payload of a full datagram unless the file says otherwise.
const DEFAULT_DATAGRAM: ByteCount = ByteCount::new(1350);
/// scenarios.md 2.1: the reverse queue unless the file says otherwise.
const DEFAULT_REVERSE_QUEUE: QueueLimit = QueueLimit::Packets(1000);
/// RFC 9000 section 14: no path below 1200 bytes carries QUIC. The upper end is a jumbo frame.
const DATAGRAMS: RangeInclusive<ByteCount> = ByteCount::new(1200)..=ByteCount::new(8972);
const LINK: &[&str] = &[
    "rate",
    "rtt",
    "queue",
    "loss",
    "loss_place",
    "datagram",
    "cellular",
    "satellite",
    "trace",
    "forward",
    "reverse",
];
const LINK_DIRECTION: &[&str] = &[
    "rate",
    "delay",
    "queue",
    "loss",
    "loss_place",
    "drop",
    "cellular",
    "satellite",
    "trace",
];

/// `[link]`: what holds for both directions first, then what one direction has of its own.
pub(super) fn read_link(
    link: &Table<'_>,
    limit: Duration,
) -> Result<(ByteCount, DirectionPlan, DirectionPlan), ScenarioError> {
    link.only(&with_impairments(LINK))?;
    let datagram = match link.find("datagram") {
        Some(value) => {
            let datagram: ByteCount = value.quantity("1350 B")?;
            check(&value, datagram, DATAGRAMS)?
        }
        None => DEFAULT_DATAGRAM,
    };
    let halves = match link.find("rtt") {
        // The odd nanosecond goes to the reverse direction, so that the two add up exactly.
        Some(value) => {
            let rtt = duration_in(&value, "40 ms", DELAYS)?;
            let half = rtt / 2;
            Some((value, half, rtt - half))
        }
        None => None,
    };
    let directions = (
        direction_table(link, "forward")?,
        direction_table(link, "reverse")?,
    );
    let delays = match &halves {
        Some((value, forward, reverse)) => {
            for table in [&directions.0, &directions.1].into_iter().flatten() {
                if let Some(delay) = table.find("delay") {
                    return Err(delay.error(Problem::Conflict(format!(
                        "give {} or a delay per direction, not both",
                        value.key
                    ))));
                }
            }
            (*forward, *reverse)
        }
        None => (
            delay_of(link, directions.0.as_ref(), "forward")?,
            delay_of(link, directions.1.as_ref(), "reverse")?,
        ),
    };
    let rtt = delays.0 + delays.1;
    let common = Common {
        link,
        rtt,
        packet: datagram + HEADERS,
        limit,
    };
    let forward = common.direction(directions.0.as_ref(), "forward", delays.0)?;
    let reverse = common.direction(directions.1.as_ref(), "reverse", delays.1)?;
    Ok((datagram, forward, reverse))
}

fn direction_table<'a>(link: &Table<'a>, name: &str) -> Result<Option<Table<'a>>, ScenarioError> {
    let Some(value) = link.find(name) else {
        return Ok(None);
    };
    let table = value.table("a table such as { loss = \"1 %\" }")?;
    table.only(&with_impairments(LINK_DIRECTION))?;
    Ok(Some(table))
}

fn delay_of(
    link: &Table<'_>,
    table: Option<&Table<'_>>,
    name: &str,
) -> Result<Duration, ScenarioError> {
    let Some(value) = table.and_then(|table| table.find("delay")) else {
        return Err(link.missing(
            "rtt",
            &format!("give it, such as \"40 ms\", or a delay for each direction ({name} has none)"),
        ));
    };
    duration_in(&value, "20 ms", DELAYS)
}

/// What both directions are read against.
struct Common<'t, 'a> {
    link: &'t Table<'a>,
    rtt: Duration,
    packet: ByteCount,
    limit: Duration,
}

impl<'a> Common<'_, 'a> {
    /// The value for one direction: its own, or else the one of the whole link.
    fn find(&self, own: Option<&Table<'a>>, key: &str) -> Option<Value<'a>> {
        own.and_then(|table| table.find(key))
            .or_else(|| self.link.find(key))
    }

    fn direction(
        &self,
        own: Option<&Table<'a>>,
        name: &str,
        delay: Duration,
    ) -> Result<DirectionPlan, ScenarioError> {
        let slots = self.slots(own)?;
        let rate = match (self.find(own, "rate"), &slots) {
            (Some(value), None) => rate(&value)?,
            (None, Some(slots)) => slots.mean_rate(),
            (Some(value), Some(_)) => {
                return Err(value.error(Problem::Conflict(
                    "give a rate or where slots come from (cellular, satellite, trace), not both"
                        .to_owned(),
                )));
            }
            (None, None) => {
                return Err(self.link.missing("rate", "give it, such as \"100 Mbit/s\""));
            }
        };
        // scenarios.md 2.1: the queue of the link is the forward one, the bottleneck's.
        let queue_value = match name {
            "forward" => self.find(own, "queue"),
            _ => own.and_then(|table| table.find("queue")),
        };
        let queue = match (&queue_value, name) {
            (Some(value), _) => queue(value, rate, self.rtt, self.packet)?,
            // Nothing ever waits there.
            (None, _) if rate.is_infinite() => ByteCount::MAX,
            (None, "reverse") => DEFAULT_REVERSE_QUEUE.resolve(rate, self.rtt, self.packet),
            (None, _) => {
                return Err(self
                    .link
                    .missing("queue", "give it, such as \"1 BDP\" or \"250 kB\""));
            }
        };
        let loss = match self.find(own, "loss") {
            Some(value) => value.quantity("1 %")?,
            None => Fraction::ZERO,
        };
        let loss_place = match self.find(own, "loss_place") {
            Some(value) => loss_place(&value)?,
            None => LossPlace::default(),
        };
        let drop_packets = match own.and_then(|table| table.find("drop")) {
            Some(value) => drops(&value)?,
            None => Vec::new(),
        };
        let mut config = PipeConfig {
            rate,
            delay,
            queue,
            loss,
            loss_place,
            drop_packets,
            ..PipeConfig::default()
        };
        // What holds for both directions first, then what this one has of its own.
        for table in [Some(self.link), own].into_iter().flatten() {
            for (change, _) in impairments::read(table, &config)? {
                config = config.with(change);
            }
        }
        let slots_from = match slots {
            Some(LinkSlots::Recorded(trace)) => {
                config.trace = Some(trace);
                None
            }
            Some(LinkSlots::Generated(source, _)) => Some(source),
            None => None,
        };
        Ok(DirectionPlan {
            config,
            slots_from,
            changes: Vec::new(),
        })
    }
}

/// What a link has instead of a rate.
enum LinkSlots {
    Recorded(Trace),
    Generated(SlotSource, Rate),
}

impl LinkSlots {
    fn mean_rate(&self) -> Rate {
        match self {
            Self::Recorded(trace) => trace.mean_rate(),
            Self::Generated(_, mean) => *mean,
        }
    }
}

impl<'a> Common<'_, 'a> {
    fn slots(&self, own: Option<&Table<'a>>) -> Result<Option<LinkSlots>, ScenarioError> {
        let keys = ["cellular", "satellite", "trace"];
        // What a direction has of its own comes before what the link has.
        let tables = [own, Some(self.link)];
        let mut given = tables
            .into_iter()
            .flatten()
            .flat_map(|table| keys.iter().filter_map(|key| Some((*key, table.find(key)?))));
        let Some((key, value)) = given.next() else {
            return Ok(None);
        };
        let text = value.text("att-lte")?;
        let unknown = |allowed: String| {
            value.error(Problem::UnknownWord {
                word: text.to_owned(),
                allowed,
            })
        };
        let length = self.limit.max(*Cellular::LENGTHS.start());
        Ok(Some(match key {
            "cellular" => {
                let cellular = Cellular::preset(text).ok_or_else(|| {
                    let names = Cellular::PRESETS.map(|(name, _)| format!("\"{name}\""));
                    unknown(names.join(", "))
                })?;
                LinkSlots::Generated(SlotSource::Cellular(cellular, length), cellular.mean)
            }
            "satellite" if text == "leo" => {
                let leo = Leo::default();
                LinkSlots::Generated(SlotSource::Leo(leo, length), leo.mean)
            }
            "satellite" => return Err(unknown("\"leo\"".to_owned())),
            _ => LinkSlots::Recorded(read_trace(&value, text)?),
        }))
    }
}

/// A recorded trace; its path is relative to the scenario file.
fn read_trace(value: &Value<'_>, path: &str) -> Result<Trace, ScenarioError> {
    let folder = Path::new(value.source.file)
        .parent()
        .unwrap_or(Path::new(""));
    let path = folder.join(path);
    let unreadable = |problem: String| {
        value.error(Problem::Unreadable(format!(
            "{}: {problem}",
            path.display()
        )))
    };
    let mut text = String::new();
    fs::File::open(&path)
        .and_then(|file| {
            let limit = Trace::LONGEST_TEXT.as_u64() + 1;
            file.take(limit).read_to_string(&mut text)
        })
        .map_err(|error| unreadable(error.to_string()))?;
    text.parse()
        .map_err(|error: netsim::TraceError| unreadable(error.to_string()))
}

pub(super) fn rate(value: &Value<'_>) -> Result<Rate, ScenarioError> {
    let rate: Rate = value.quantity("100 Mbit/s")?;
    if rate.is_infinite() || RATES.contains(&rate) {
        return Ok(rate);
    }
    Err(value.out_of_range(
        rate,
        format!("{} to {}, or unlimited", RATES.start(), RATES.end()),
    ))
}

pub(super) fn queue(
    value: &Value<'_>,
    rate: Rate,
    rtt: Duration,
    packet: ByteCount,
) -> Result<ByteCount, ScenarioError> {
    let limit: QueueLimit = value.quantity("1 BDP")?;
    let bytes = limit.resolve(rate, rtt, packet);
    if bytes < packet {
        return Err(value.out_of_range(
            format!("{limit} ({bytes})"),
            format!("at least one full packet, {packet}"),
        ));
    }
    Ok(bytes)
}

fn loss_place(value: &Value<'_>) -> Result<LossPlace, ScenarioError> {
    match value.text("after queue")? {
        "after queue" => Ok(LossPlace::AfterQueue),
        "before queue" => Ok(LossPlace::BeforeQueue),
        other => Err(value.error(Problem::UnknownWord {
            word: other.to_owned(),
            allowed: "\"after queue\", \"before queue\"".to_owned(),
        })),
    }
}

fn drops(value: &Value<'_>) -> Result<Vec<u64>, ScenarioError> {
    let mut drops = Vec::new();
    for item in value.items("a list of packet numbers such as [5, 9], counted from 1")? {
        drops.push(item.integer(DROPS)?);
    }
    drops.sort_unstable();
    drops.dedup();
    Ok(drops)
}
