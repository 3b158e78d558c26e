//! From the text of a scenario file to a [`Scenario`].
//!
//! Every key is read through `reader`, so an unknown key, a wrong unit and a value out of range all
//! come back as one line with file, line, key and what is allowed.

use std::ops::RangeInclusive;
use std::time::Duration;

use cc::{Algorithm, AlgorithmError};
use netsim::{Change, OutputRecord};
use toml::de::DeTable;
use units::{ByteCount, Rate, Timestamp, format_duration};

use super::error::{Problem, ScenarioError};
use super::link::{queue, rate, read_link};
use super::reader::{Source, Table, Value};
use super::timeline::{DirectionPlan, PhaseChange, lay_phases};
use super::{Case, Download, Scenario};
use super::{bands, drops, flows, impairments};

/// IPv4 and UDP headers, scenarios.md 1.0: what a datagram weighs on the wire beyond its payload.
pub const HEADERS: ByteCount = ByteCount::new(28);

/// scenarios.md 2.1: seeds of the full tier.
const DEFAULT_SEEDS: u64 = 20;
/// scenarios.md 4.3: rows over real UDP are played five times.
const DEFAULT_REAL_SEEDS: u64 = 5;

const SEEDS: RangeInclusive<u64> = 1..=10_000;
pub(super) const RATES: RangeInclusive<Rate> = Rate::from_kbps(1)..=Rate::from_mbps(100_000);
pub(super) const DELAYS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
/// Longer runs would outgrow what the pipes record.
const LIMITS: RangeInclusive<Duration> = Duration::from_millis(10)..=OutputRecord::SPAN;
const SIZES: RangeInclusive<ByteCount> = ByteCount::new(1)..=ByteCount::new(1_000_000_000_000);

pub(super) const DROPS: RangeInclusive<u64> = 1..=1_000_000_000;

const TOP: &[&str] = &[
    "name",
    "about",
    "seeds",
    "real_seeds",
    "limit",
    "controllers",
    "link",
    "phase",
    "drop",
    "download",
    "flow",
    "expect",
    "article",
];
const PHASE: &[&str] = &["at", "from", "until", "forward", "reverse", "both"];
const PHASE_DIRECTION: &[&str] = &["rate", "delay", "queue", "loss", "drop"];
const DOWNLOAD: &[&str] = &["size", "sizes", "duration", "start"];

pub(super) fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let source = Source { file, text };
    let document = DeTable::parse(text).map_err(|error| {
        source.error(
            error.span(),
            "",
            Problem::Syntax(error.message().to_owned()),
        )
    })?;
    let root = Table::root(source, document.get_ref());
    root.only(TOP)?;

    let name = name(&root)?;
    let about = about(&root)?;
    let seeds = seed_count(&root, "seeds", DEFAULT_SEEDS)?;
    let real_seeds = seed_count(&root, "real_seeds", DEFAULT_REAL_SEEDS)?;
    let limit = {
        let value = root.need(
            "limit",
            "give the time at which a run ends, such as \"10 s\"",
        )?;
        duration_in(&value, "10 s", LIMITS)?
    };
    let (controllers, left_out) = controllers(&root)?;

    let link = root
        .need("link", "give a [link] table with rate, rtt and queue")?
        .table("a table")?;
    let (datagram, mut forward, mut reverse) = read_link(&link, limit)?;
    let phases_end = read_phases(&root, limit, datagram, &mut forward, &mut reverse)?;
    drops::read(&root, limit, &mut forward, &mut reverse)?;

    let download = root.find("download");
    let first = if download.is_some() { 2 } else { 1 };
    let flows = flows::read(&root, limit, forward.delay + reverse.delay, first)?;
    let has_download = download.is_some();
    let (cases, start) = match download {
        Some(download) => read_download(&download.table("a table")?, limit)?,
        // The first flow is what is tested, for as long as the run takes.
        None if !flows.is_empty() => (
            vec![Case {
                name: format_duration(limit),
                download: Download::Duration(limit),
            }],
            Duration::ZERO,
        ),
        None => {
            return Err(root.missing(
                "download",
                "give a [download] table with size, sizes or duration, or [[flow]] tables",
            ));
        }
    };

    let mut scenario = Scenario {
        name,
        path: None,
        about,
        seeds,
        real_seeds,
        limit,
        controllers,
        datagram,
        forward,
        reverse,
        cases,
        start,
        flows,
        has_download,
        phases_end,
        bands: Vec::new(),
        article: None,
        left_out,
    };
    refuse_endless(&root, &scenario)?;
    scenario.bands = match root.find("expect") {
        Some(expect) => bands::read(&expect, &scenario)?,
        None => Vec::new(),
    };
    scenario.article = match root.find("article") {
        Some(article) => Some(bands::read_article(&article, &scenario)?),
        None => None,
    };
    Ok(scenario)
}

/// On a link without a rate limit, what takes all it can get would take for ever to play.
fn refuse_endless(root: &Table<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
    let is_endless = |case: &Case| matches!(case.download, Download::Duration(_));
    let plans = [&scenario.forward, &scenario.reverse];
    if !plans.iter().any(|plan| plan.rate.is_infinite()) {
        return Ok(());
    }
    if scenario.base_rtt().is_zero() {
        return Err(root.error_at(
            "link.rtt",
            Problem::Conflict(
                "a link without a rate limit needs a round-trip time above 0 s".to_owned(),
            ),
        ));
    }
    if scenario.cases.iter().any(is_endless) {
        return Err(root.error_at(
            "link.rate",
            Problem::Conflict(
                "a link without a rate limit is for downloads of a size; what takes all it can get for a time \
                 needs a rate"
                    .to_owned(),
            ),
        ));
    }
    Ok(())
}

fn name(root: &Table<'_>) -> Result<String, ScenarioError> {
    let value = root.need("name", "give the scenario a name such as \"loss-phase\"")?;
    let name = value.text("loss-phase")?;
    let is_well_formed = (1..=40).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_well_formed {
        Ok(name.to_owned())
    } else {
        Err(value.out_of_range(
            format!("\"{name}\""),
            "1 to 40 lower-case letters, digits and hyphens",
        ))
    }
}

fn about(root: &Table<'_>) -> Result<String, ScenarioError> {
    let value = root.need("about", "say in one sentence what the scenario shows")?;
    let about = value.text("What does it show?")?.trim();
    if about.is_empty() || about.contains('\n') {
        return Err(value.out_of_range(format!("{about:?}"), "one sentence on one line"));
    }
    Ok(about.to_owned())
}

fn seed_count(root: &Table<'_>, key: &str, default: u64) -> Result<u64, ScenarioError> {
    root.find(key)
        .map_or(Ok(default), |value| value.integer(SEEDS))
}

/// The controllers, and those that this build does not have because they are wrong on purpose.
fn controllers(root: &Table<'_>) -> Result<(Vec<Algorithm>, Vec<String>), ScenarioError> {
    let value = root.need(
        "controllers",
        "give a list such as [\"newreno\", \"cubic\"]",
    )?;
    let mut controllers = Vec::new();
    let mut left_out = Vec::new();
    for item in value.items("a list such as [\"newreno\", \"cubic\"]")? {
        let name = item.text("newreno")?;
        match name.parse() {
            Ok(algorithm) => controllers.push(algorithm),
            Err(AlgorithmError::NotBuilt(name)) => left_out.push(name),
            Err(error) => return Err(item.error(Problem::Controller(error.to_string()))),
        }
    }
    if controllers.is_empty() {
        return Err(value.out_of_range("[]", "at least one controller that this build has"));
    }
    Ok((controllers, left_out))
}

pub(super) fn with_impairments<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    keys.iter().chain(impairments::KEYS).copied().collect()
}

/// The `[[phase]]` tables, laid onto the two plans; returns when the last one ends.
fn read_phases(
    root: &Table<'_>,
    limit: Duration,
    datagram: ByteCount,
    forward: &mut DirectionPlan,
    reverse: &mut DirectionPlan,
) -> Result<Option<Timestamp>, ScenarioError> {
    let Some(phases) = root.find("phase") else {
        return Ok(None);
    };
    let rtt = forward.delay + reverse.delay;
    let packet = datagram + HEADERS;
    let mut forward_changes = Vec::new();
    let mut reverse_changes = Vec::new();
    let mut last_end = None;
    for phase in phases.items("a list of tables; write [[phase]]")? {
        let table = phase.table("a table; write [[phase]]")?;
        table.only(PHASE)?;
        let (from, until) = phase_times(&table, limit)?;
        last_end = last_end.max(until);
        let mut is_empty = true;
        for (name, plan, changes) in [
            ("forward", &*forward, &mut forward_changes),
            ("reverse", &*reverse, &mut reverse_changes),
        ] {
            for scope in ["both", name] {
                let Some(value) = table.find(scope) else {
                    continue;
                };
                let settings = value.table("a table such as { loss = \"30 %\" }")?;
                settings.only(&with_impairments(PHASE_DIRECTION))?;
                for (change, origin) in settings_of(&settings, plan, rtt, packet, until.is_none())?
                {
                    is_empty = false;
                    changes.push(PhaseChange {
                        from,
                        until,
                        change,
                        origin,
                    });
                }
            }
        }
        if is_empty {
            return Err(table.error(Problem::Missing(
                "what it changes; give forward, reverse or both, such as \
                 both = { loss = \"30 %\" }"
                    .to_owned(),
            )));
        }
    }
    for (plan, changes) in [(forward, &forward_changes), (reverse, &reverse_changes)] {
        lay_phases(plan, changes).map_err(|overlap| {
            overlap.origin.error(Problem::Conflict(format!(
                "is also set by the phase that begins at {}; phases may not overlap on one setting",
                format_duration(overlap.other_from.saturating_since(Timestamp::ZERO))
            )))
        })?;
    }
    Ok(last_end)
}

fn phase_times(
    table: &Table<'_>,
    limit: Duration,
) -> Result<(Timestamp, Option<Timestamp>), ScenarioError> {
    let begin = match (table.find("at"), table.find("from")) {
        (Some(at), Some(_)) => {
            return Err(at.error(Problem::Conflict(
                "give at (the change stays) or from and until (it ends), not both".to_owned(),
            )));
        }
        (Some(begin), None) | (None, Some(begin)) => begin,
        (None, None) => {
            return Err(table.missing("at", "give at, or from and until, such as \"2 s\""));
        }
    };
    let from = begin.duration("2 s")?;
    if from >= limit {
        return Err(begin.out_of_range(
            format_duration(from),
            format!("before the limit of {}", format_duration(limit)),
        ));
    }
    let is_step = table.find("at").is_some();
    let until = match (table.find("until"), is_step) {
        (Some(until), true) => {
            return Err(until.error(Problem::Conflict(
                "give at (the change stays) or from and until (it ends), not both".to_owned(),
            )));
        }
        (Some(value), false) => {
            let until = value.duration("4 s")?;
            if until <= from {
                return Err(value.out_of_range(
                    format_duration(until),
                    format!("after from, {}", format_duration(from)),
                ));
            }
            Some(Timestamp::ZERO + until)
        }
        (None, true) => None,
        (None, false) => {
            return Err(table.missing(
                "until",
                "say when the phase ends, or write at instead of from if it stays",
            ));
        }
    };
    Ok((Timestamp::ZERO + from, until))
}

/// The changes one table of settings asks for. A queue in BDP is resolved with the rate of the same
/// table, or else the rate of the link, and with the round-trip time of the link.
fn settings_of<'a>(
    settings: &Table<'a>,
    plan: &DirectionPlan,
    rtt: Duration,
    packet: ByteCount,
    is_step: bool,
) -> Result<Vec<(Change, Value<'a>)>, ScenarioError> {
    let mut changes = Vec::new();
    let mut rate_in_force = plan.rate;
    if let Some(value) = settings.find("rate") {
        rate_in_force = rate(&value)?;
        changes.push((Change::Rate(rate_in_force), value));
    }
    if let Some(value) = settings.find("delay") {
        changes.push((Change::Delay(duration_in(&value, "20 ms", DELAYS)?), value));
    }
    if let Some(value) = settings.find("queue") {
        let bytes = queue(&value, rate_in_force, rtt, packet)?;
        changes.push((Change::Queue(bytes), value));
    }
    if let Some(value) = settings.find("loss") {
        changes.push((Change::Loss(value.quantity("30 %")?), value));
    }
    if let Some(value) = settings.find("drop") {
        if !is_step {
            return Err(value.error(Problem::Conflict(
                "drops the packets that follow one instant; write at instead of from and until"
                    .to_owned(),
            )));
        }
        changes.push((Change::DropNext(value.integer(DROPS)?), value));
    }
    changes.extend(impairments::read(settings, plan)?);
    Ok(changes)
}

fn read_download(
    table: &Table<'_>,
    limit: Duration,
) -> Result<(Vec<Case>, Duration), ScenarioError> {
    table.only(DOWNLOAD)?;
    let start = match table.find("start") {
        Some(value) => {
            let start = value.duration("1 s")?;
            if start >= limit {
                return Err(value.out_of_range(
                    format_duration(start),
                    format!("before the limit of {}", format_duration(limit)),
                ));
            }
            start
        }
        None => Duration::ZERO,
    };
    let ways: Vec<Value<'_>> = ["size", "sizes", "duration"]
        .into_iter()
        .filter_map(|key| table.find(key))
        .collect();
    let way = match ways.as_slice() {
        [way] => way,
        [] => {
            return Err(table.missing(
                "size",
                "give size (\"10 MB\"), sizes ([\"1 MB\", \"10 MB\"]) or duration (\"30 s\")",
            ));
        }
        [_, second, ..] => {
            return Err(second.error(Problem::Conflict(
                "give one of size, sizes and duration".to_owned(),
            )));
        }
    };
    let mut cases = Vec::new();
    if table.find("duration").is_some() {
        let duration = way.duration("30 s")?;
        if duration.is_zero() || duration > limit {
            return Err(way.out_of_range(
                format_duration(duration),
                format!("above 0 s, up to the limit of {}", format_duration(limit)),
            ));
        }
        cases.push(Case {
            name: format_duration(duration),
            download: Download::Duration(duration),
        });
    } else if table.find("sizes").is_some() {
        for item in way.items("a list such as [\"1 MB\", \"10 MB\"]")? {
            let case = sized(&item)?;
            if cases.contains(&case) {
                return Err(item.error(Problem::Conflict(format!(
                    "{} is in the list twice",
                    case.name
                ))));
            }
            cases.push(case);
        }
        if cases.is_empty() {
            return Err(way.out_of_range("[]", "at least one size"));
        }
    } else {
        cases.push(sized(way)?);
    }
    Ok((cases, start))
}

fn sized(value: &Value<'_>) -> Result<Case, ScenarioError> {
    let size: ByteCount = value.quantity("10 MB")?;
    let size = check(value, size, SIZES)?;
    Ok(Case {
        name: size.to_string(),
        download: Download::Size(size),
    })
}

/// A span of time within a range.
pub(super) fn duration_in(
    value: &Value<'_>,
    example: &str,
    range: RangeInclusive<Duration>,
) -> Result<Duration, ScenarioError> {
    let found = value.duration(example)?;
    if range.contains(&found) {
        return Ok(found);
    }
    Err(value.out_of_range(
        format_duration(found),
        format!(
            "{} to {}",
            format_duration(*range.start()),
            format_duration(*range.end())
        ),
    ))
}

/// A quantity within a range.
pub(super) fn check<T>(
    value: &Value<'_>,
    found: T,
    range: RangeInclusive<T>,
) -> Result<T, ScenarioError>
where
    T: PartialOrd + std::fmt::Display + Copy,
{
    if range.contains(&found) {
        return Ok(found);
    }
    Err(value.out_of_range(found, format!("{} to {}", range.start(), range.end())))
}
