//! The `[[drop]]` tables: losses by script.
//!
//! ```toml
//! [[drop]]
//! direction = "forward"   # or "reverse"
//! count = 8               # in all
//! gap = "15 ms"           # between one drop and the next
//! at_least = "1000 B"     # smaller packets are let through; default: all are meant
//! space = "handshake"     # packets of this packet number space, or of one in a list; default: all
//! frames = ["crypto"]     # with one of these frames
//! state = "recovery"      # sent while the sender's controller is in this state
//! skip = 3                # so many of those meant are let through first; default 0
//! ```

use std::ops::RangeInclusive;
use std::time::Duration;

use netsim::{Labels, SpacedDrops};
use quic_core::label;
use units::{ByteCount, format_duration};

use super::error::{Problem, ScenarioError};
use super::reader::{Table, Value};
use super::timeline::DirectionPlan;

const DROP: &[&str] = &[
    "direction",
    "count",
    "gap",
    "at_least",
    "space",
    "frames",
    "state",
    "skip",
];
const COUNTS: RangeInclusive<u64> = 1..=1_000_000_000;

/// Lays the tables onto the two plans.
pub(super) fn read(
    root: &Table<'_>,
    limit: Duration,
    forward: &mut DirectionPlan,
    reverse: &mut DirectionPlan,
) -> Result<(), ScenarioError> {
    let Some(rules) = root.find("drop") else {
        return Ok(());
    };
    for rule in rules.items("a list of tables; write [[drop]]")? {
        let table = rule.table("a table; write [[drop]]")?;
        table.only(DROP)?;
        let direction = table.need(
            "direction",
            "say in which direction, \"forward\" or \"reverse\"",
        )?;
        let plan = match direction.text("forward")? {
            "forward" => &mut *forward,
            "reverse" => &mut *reverse,
            other => {
                return Err(direction.error(Problem::UnknownWord {
                    word: other.to_owned(),
                    allowed: "\"forward\", \"reverse\"".to_owned(),
                }));
            }
        };
        let count = table.need("count", "say how many packets to drop, such as 8")?;
        let gap = table.need(
            "gap",
            "say how long each drop keeps away the next, such as \"15 ms\"",
        )?;
        let at_least: ByteCount = match table.find("at_least") {
            Some(value) => value.quantity("1000 B")?,
            None => ByteCount::ZERO,
        };
        plan.drop_spaced.push(SpacedDrops {
            count: count.integer(COUNTS)?,
            gap: within(&gap, limit)?,
            at_least,
            wants: [
                labels(&table, "space", label::space, label::spaces())?,
                labels(&table, "frames", label::frame, label::frames())?,
                labels(&table, "state", label::state, label::states())?,
            ],
            skip: match table.find("skip") {
                Some(value) => value.integer(0..=*COUNTS.end())?,
                None => 0,
            },
        });
    }
    Ok(())
}

/// One word or a list of them; none if the key is missing.
fn labels(
    table: &Table<'_>,
    key: &str,
    label: impl Fn(&str) -> Option<Labels>,
    known: impl Iterator<Item = &'static str>,
) -> Result<Labels, ScenarioError> {
    let known: Vec<&str> = known.collect();
    let mut all = Labels::default();
    let Some(value) = table.find(key) else {
        return Ok(all);
    };
    let words = value.one_or_many();
    if words.is_empty() {
        return Err(value.out_of_range("an empty list", "one word or more"));
    }
    for word in words {
        let name = word.text(known.first().copied().unwrap_or_default())?;
        let Some(found) = label(name) else {
            return Err(word.error(Problem::UnknownWord {
                word: name.to_owned(),
                allowed: format!("\"{}\"", known.join("\", \"")),
            }));
        };
        all = all | found;
    }
    Ok(all)
}

/// A time after the limit would never come.
fn within(value: &Value<'_>, limit: Duration) -> Result<Duration, ScenarioError> {
    let span = value.duration("15 ms")?;
    if span < limit {
        return Ok(span);
    }
    Err(value.out_of_range(
        format_duration(span),
        format!("below the limit of {}", format_duration(limit)),
    ))
}
