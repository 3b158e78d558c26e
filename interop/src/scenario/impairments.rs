//! What a direction of the link may do besides rate, delay, queue and loss: the same keys in `[link]`, in its directions
//! and in phases. Each takes `"none"` to switch it off.
//!
//! ```toml
//! queue_packets = 333                                           # a limit in packets besides the one in bytes
//! aqm = "codel"                                                 # or fq-codel, pie, red, dualpi2, drop-tail
//! aqm = { kind = "codel", target = "5 ms", interval = "100 ms", ecn = true }
//! burst_loss = { to_bad = "0.25 %", to_good = "25 %" }          # Gilbert-Elliott, per packet; in_bad = "100 %", in_good = "0 %"
//! burst_loss = { good = "1 s", bad = "40 ms" }                  # the same in time: mean stays
//! policer = { rate = "24 Mbit/s", burst = "16 kB" }             # drops what does not conform
//! shaper = { rate = "24 Mbit/s", burst = "16 kB" }              # delays it
//! jitter = { walk = "20 ms" }                                   # or clamped, reordering, wifi
//! reorder = { share = "1 %", delay = "5 ms" }
//! duplicate = "1 %"
//! corrupt = "1 %"
//! thinning = { at_most = "100 B", every = 10, hold = "20 ms" }  # of small packets every 10th is let through
//! slots = { period = "20 ms", at_most = 8 }                     # released at multiples of a period
//! largest = "1500 B"                                            # larger packets are dropped
//! ```

use netsim::{
    BurstLoss, Change, CoDelConfig, Discipline, DualPi2Config, FqCoDelConfig, Jitter, Mishaps,
    PieConfig, PipeConfig, Policer, RedConfig, Shaper, Slots, Thinning,
};
use units::{ByteCount, Fraction, Rate};

use super::error::{Problem, ScenarioError};
use super::reader::{Table, Value};

/// The keys, in the order in which they take effect.
pub(super) const KEYS: &[&str] = &[
    "queue_packets",
    "aqm",
    "burst_loss",
    "policer",
    "shaper",
    "jitter",
    "reorder",
    "duplicate",
    "corrupt",
    "thinning",
    "slots",
    "largest",
];

const AQMS: &str = "\"codel\", \"fq-codel\", \"pie\", \"red\", \"dualpi2\", \"drop-tail\"";

/// The changes that the keys of a table ask for. `in_force` is what holds without them: a queue discipline is judged with
/// the limit of its queue, and each mishap has a key of its own.
pub(super) fn read<'a>(
    table: &Table<'a>,
    in_force: &PipeConfig,
) -> Result<Vec<(Change, Value<'a>)>, ScenarioError> {
    let mut config = in_force.clone();
    let mut mishaps: Mishaps = config.mishaps;
    let mut changes: Vec<(Change, Value<'a>)> = Vec::new();
    for key in KEYS {
        let Some(value) = table.find(key) else {
            continue;
        };
        let is_off = value.value.as_str() == Some("none");
        let change = match *key {
            "queue_packets" if is_off => Change::QueuePackets(u64::MAX),
            "queue_packets" => Change::QueuePackets(value.integer(1..=1_000_000_000)?),
            "aqm" if is_off => Change::Discipline(Discipline::DropTail),
            "aqm" => Change::Discipline(aqm(&value)?),
            "burst_loss" => Change::BurstLoss(unless(is_off, || burst_loss(&value))?),
            "policer" => Change::Policer(unless(is_off, || {
                let (rate, burst) = bucket(&value)?;
                Ok(Policer { rate, burst })
            })?),
            "shaper" => Change::Shaper(unless(is_off, || {
                let (rate, burst) = bucket(&value)?;
                Ok(Shaper { rate, burst })
            })?),
            "jitter" => Change::Jitter(unless(is_off, || jitter(&value))?),
            "thinning" => Change::Thinning(unless(is_off, || thinning(&value))?),
            "slots" => Change::Slots(unless(is_off, || slots(&value))?),
            "largest" if is_off => Change::LargestPacket(ByteCount::MAX),
            "largest" => Change::LargestPacket(value.quantity("1500 B")?),
            "duplicate" => {
                mishaps.duplicate = share(&value, is_off)?;
                Change::Mishaps(mishaps)
            }
            "corrupt" => {
                mishaps.corrupt = share(&value, is_off)?;
                Change::Mishaps(mishaps)
            }
            _ => {
                (mishaps.reorder, mishaps.reorder_delay) = if is_off {
                    Default::default()
                } else {
                    let table =
                        value.table("a table such as { share = \"1 %\", delay = \"5 ms\" }")?;
                    table.only(&["share", "delay"])?;
                    (
                        table
                            .need("share", "give it, such as \"1 %\"")?
                            .quantity("1 %")?,
                        table
                            .need("delay", "give it, such as \"5 ms\"")?
                            .duration("5 ms")?,
                    )
                };
                Change::Mishaps(mishaps)
            }
        };
        config = config.with(change);
        refuse_unfit(&value, &config)?;
        // One change of the mishaps holds all of them.
        if matches!(change, Change::Mishaps(_)) {
            changes.retain(|(known, _)| !matches!(known, Change::Mishaps(_)));
        }
        changes.push((change, value));
    }
    Ok(changes)
}

/// What the stage itself says of its settings.
fn refuse_unfit(value: &Value<'_>, config: &PipeConfig) -> Result<(), ScenarioError> {
    config.check("link").map_err(|error| {
        let text = error.to_string();
        let reason = text.strip_prefix("pipe \"link\": ").unwrap_or(&text);
        value.error(Problem::Unit(reason.to_owned()))
    })
}

fn unless<T>(
    is_off: bool,
    read: impl FnOnce() -> Result<T, ScenarioError>,
) -> Result<Option<T>, ScenarioError> {
    if is_off { Ok(None) } else { read().map(Some) }
}

fn share(value: &Value<'_>, is_off: bool) -> Result<Fraction, ScenarioError> {
    if is_off {
        return Ok(Fraction::ZERO);
    }
    value.quantity("1 %")
}

fn share_or(table: &Table<'_>, key: &str, default: Fraction) -> Result<Fraction, ScenarioError> {
    table
        .find(key)
        .map_or(Ok(default), |value| value.quantity("1 %"))
}

fn aqm(value: &Value<'_>) -> Result<Discipline, ScenarioError> {
    if value.value.as_str().is_some() {
        return discipline(value, None);
    }
    let table = value.table(
        "a name such as \"codel\", or a table such as { kind = \"codel\", target = \"5 ms\" }",
    )?;
    let kind = table.need("kind", &format!("say which: {AQMS}"))?;
    discipline(&kind, Some(&table))
}

/// The discipline of this name, with what the table says about it.
fn discipline(kind: &Value<'_>, table: Option<&Table<'_>>) -> Result<Discipline, ScenarioError> {
    let allow = |keys: &[&str]| table.map_or(Ok(()), |table| table.only(keys));
    let find = |key: &str| table.and_then(|table| table.find(key));
    let ecn = |default: bool| match find("ecn") {
        Some(value) => value.boolean(),
        None => Ok(default),
    };
    let span = |key: &str, default: std::time::Duration| match find(key) {
        Some(value) => value.duration("5 ms"),
        None => Ok(default),
    };
    let codel = || -> Result<CoDelConfig, ScenarioError> {
        let usual = CoDelConfig::default();
        Ok(CoDelConfig {
            target: span("target", usual.target)?,
            interval: span("interval", usual.interval)?,
            ecn: ecn(usual.ecn)?,
            ..usual
        })
    };
    match kind.text("codel")? {
        "drop-tail" => allow(&["kind"]).map(|()| Discipline::DropTail),
        "codel" => {
            allow(&["kind", "target", "interval", "ecn"])?;
            Ok(Discipline::CoDel(codel()?))
        }
        "fq-codel" => {
            allow(&["kind", "target", "interval", "ecn"])?;
            let usual = FqCoDelConfig::default();
            Ok(Discipline::FqCoDel(FqCoDelConfig {
                codel: CoDelConfig {
                    ecn: ecn(usual.codel.ecn)?,
                    ..codel()?
                },
                ..usual
            }))
        }
        "pie" => {
            allow(&["kind", "target", "ecn"])?;
            let usual = PieConfig::default();
            Ok(Discipline::Pie(PieConfig {
                target: span("target", usual.target)?,
                ecn: ecn(usual.ecn)?,
                ..usual
            }))
        }
        "red" => {
            allow(&["kind", "min", "max", "max_probability", "ecn"])?;
            let usual = RedConfig::default();
            let bytes = |key: &str| match find(key) {
                Some(value) => value.quantity("30 kB").map(Some),
                None => Ok(None),
            };
            Ok(Discipline::Red(RedConfig {
                min: bytes("min")?,
                max: bytes("max")?,
                max_probability: match find("max_probability") {
                    Some(value) => value.quantity("2 %")?,
                    None => usual.max_probability,
                },
                ecn: ecn(usual.ecn)?,
                ..usual
            }))
        }
        "dualpi2" => {
            allow(&["kind", "target", "step"])?;
            let usual = DualPi2Config::default();
            Ok(Discipline::DualPi2(DualPi2Config {
                target: span("target", usual.target)?,
                step: span("step", usual.step)?,
                ..usual
            }))
        }
        other => Err(kind.error(Problem::UnknownWord {
            word: other.to_owned(),
            allowed: AQMS.to_owned(),
        })),
    }
}

fn burst_loss(value: &Value<'_>) -> Result<BurstLoss, ScenarioError> {
    let table = value.table("a table such as { to_bad = \"0.25 %\", to_good = \"25 %\" }")?;
    table.only(&["to_bad", "to_good", "good", "bad", "in_good", "in_bad"])?;
    let loss_in_good = share_or(&table, "in_good", Fraction::ZERO)?;
    let loss_in_bad = share_or(&table, "in_bad", Fraction::ONE)?;
    match (table.find("to_bad"), table.find("good")) {
        (Some(to_bad), None) => Ok(BurstLoss::PerPacket {
            to_bad: to_bad.quantity("0.25 %")?,
            to_good: table.need("to_good", "give it, such as \"25 %\"")?.quantity("25 %")?,
            loss_in_good,
            loss_in_bad,
        }),
        (None, Some(good)) => Ok(BurstLoss::PerTime {
            mean_good: good.duration("1 s")?,
            mean_bad: table.need("bad", "give it, such as \"40 ms\"")?.duration("40 ms")?,
            loss_in_good,
            loss_in_bad,
        }),
        (Some(_), Some(good)) => Err(good.error(Problem::Conflict(
            "give to_bad and to_good (per packet) or good and bad (mean stays in time), not both".to_owned(),
        ))),
        (None, None) => Err(table.missing(
            "to_bad",
            "give to_bad and to_good, such as \"0.25 %\" and \"25 %\", or the mean stays good and bad",
        )),
    }
}

fn bucket(value: &Value<'_>) -> Result<(Rate, ByteCount), ScenarioError> {
    let table = value.table("a table such as { rate = \"24 Mbit/s\", burst = \"16 kB\" }")?;
    table.only(&["rate", "burst"])?;
    Ok((
        table
            .need("rate", "give it, such as \"24 Mbit/s\"")?
            .quantity("24 Mbit/s")?,
        table
            .need("burst", "give it, such as \"16 kB\"")?
            .quantity("16 kB")?,
    ))
}

fn jitter(value: &Value<'_>) -> Result<Jitter, ScenarioError> {
    let table = value.table("a table such as { walk = \"20 ms\" }")?;
    let kinds = ["walk", "clamped", "reordering", "wifi"];
    table.only(&kinds)?;
    let mut given = kinds
        .iter()
        .filter_map(|kind| Some((*kind, table.find(kind)?)));
    let (Some((kind, value)), None) = (given.next(), given.next()) else {
        return Err(table.error(Problem::Conflict(
            "give one of walk, clamped, reordering and wifi".to_owned(),
        )));
    };
    let amplitude = value.duration("20 ms")?;
    Ok(match kind {
        "walk" => Jitter::Walk { amplitude },
        "clamped" => Jitter::IidClamped { amplitude },
        "reordering" => Jitter::IidReorder { amplitude },
        _ => Jitter::Wifi { level: amplitude },
    })
}

fn thinning(value: &Value<'_>) -> Result<Thinning, ScenarioError> {
    let table =
        value.table("a table such as { at_most = \"100 B\", every = 10, hold = \"20 ms\" }")?;
    table.only(&["at_most", "every", "hold"])?;
    Ok(Thinning {
        at_most: table
            .need("at_most", "give it, such as \"100 B\"")?
            .quantity("100 B")?,
        every: table
            .need("every", "give it, such as 10")?
            .integer(1..=1_000_000)?,
        hold: table
            .need("hold", "give it, such as \"20 ms\"")?
            .duration("20 ms")?,
    })
}

fn slots(value: &Value<'_>) -> Result<Slots, ScenarioError> {
    let table = value.table("a table such as { period = \"20 ms\" }")?;
    table.only(&["period", "at_most"])?;
    Ok(Slots {
        period: table
            .need("period", "give it, such as \"20 ms\"")?
            .duration("20 ms")?,
        at_most: match table.find("at_most") {
            Some(value) => Some(value.integer(1..=1_000_000)?),
            None => None,
        },
    })
}
