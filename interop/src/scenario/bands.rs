//! The `[expect]` section: tables of bands per controller.
//!
//! ```toml
//! [expect.all]
//! completed = { min = "100 %" }
//!
//! [expect."newreno, cubic"]
//! completion = [{ of = "median", min = "3.2 s", max = "4.2 s" }, { of = "every", max = "6 s" }]
//! ```

use std::time::Duration;

use cc::{Algorithm, AlgorithmError};
use netsim::Change;
use units::{ByteCount, Fraction, Rate, Timestamp, format_duration, math};

use super::error::{Problem, ScenarioError};
use super::reader::{Table, Value};
use super::{Article, DOWNLOAD_NAME, Figure, Scenario};
use crate::expect::{Band, Dimension, Goal, Level, Metric, Statistic, Window};
use crate::record::BUCKET;

const BAND: &[&str] = &[
    "of", "case", "flow", "rate", "from", "until", "min", "max", "min_runs",
];
const FIGURE: &[&str] = &[
    "metric", "of", "case", "flow", "rate", "from", "until", "says",
];
const BAND_EXAMPLE: &str = "a table such as { max = \"4.5 s\" }, or a list of them";

/// Reads the section.
pub(super) fn read(expect: &Value<'_>, scenario: &Scenario) -> Result<Vec<Band>, ScenarioError> {
    let mut bands = Vec::new();
    for (name, value) in expect
        .table("a table of tables, such as [expect.all]")?
        .entries()
    {
        let controllers = controllers(name, &value)?;
        let metrics = value.table("a table such as [expect.all]")?;
        let keys: Vec<&str> = Metric::ALL.iter().map(|(key, _)| *key).collect();
        metrics.only(&keys)?;
        for (key, value) in metrics.entries() {
            let Some((_, metric)) = Metric::ALL.iter().find(|(name, _)| *name == key) else {
                continue;
            };
            for band in value.one_or_many() {
                bands.push(read_band(*metric, &controllers, &band, scenario)?);
            }
        }
    }
    Ok(bands)
}

/// The controllers a table of bands is about: "all" is the empty list.
fn controllers(name: &str, value: &Value<'_>) -> Result<Vec<String>, ScenarioError> {
    if name == "all" {
        return Ok(Vec::new());
    }
    name.split(',')
        .map(|word| {
            word.trim()
                .parse::<Algorithm>()
                .map(|algorithm| algorithm.to_string())
                .or_else(|error| match error {
                    // What is expected of it can be said all the same.
                    AlgorithmError::NotBuilt(name) => Ok(name),
                    error => Err(value.error(Problem::Controller(format!("{error}, or all")))),
                })
        })
        .collect()
}

fn read_band(
    metric: Metric,
    controllers: &[String],
    value: &Value<'_>,
    scenario: &Scenario,
) -> Result<Band, ScenarioError> {
    let table = value.table(BAND_EXAMPLE)?;
    table.only(BAND)?;
    let min = level(metric, table.find("min"), scenario)?;
    let max = level(metric, table.find("max"), scenario)?;
    match (&min, &max) {
        (None, None) => return Err(table.missing("max", "give min, max or both")),
        (Some(min), Some(max)) if min.amount > max.amount => {
            return Err(table.error(Problem::Conflict(format!(
                "min, {}, is above max, {}",
                min.text, max.text
            ))));
        }
        _ => {}
    }
    let min_runs = match table.find("min_runs") {
        Some(value) => value.integer(1..=10_000)?,
        None => 0,
    };
    Ok(Band {
        controllers: controllers.to_vec(),
        min_runs,
        min,
        max,
        ..read_measure(metric, &table, scenario)?
    })
}

/// What is measured and how the runs are put together, without ends.
fn read_measure(
    metric: Metric,
    table: &Table<'_>,
    scenario: &Scenario,
) -> Result<Band, ScenarioError> {
    if metric == Metric::Escape && scenario.phases_end.is_none() {
        return Err(table.error(Problem::Conflict(
            "escape is timed from the end of the last phase; add one with from and until"
                .to_owned(),
        )));
    }
    let is_unlimited = scenario.forward.rate.is_infinite()
        || scenario
            .forward
            .changes
            .iter()
            .any(|(_, change)| matches!(change, Change::Rate(rate) if rate.is_infinite()));
    if metric == Metric::Utilisation && is_unlimited {
        return Err(table.error(Problem::Conflict(
            "a link without a rate limit has no utilisation".to_owned(),
        )));
    }
    let statistic = match table.find("of") {
        Some(value) => statistic(&value)?,
        None if metric == Metric::Completed => Statistic::Every,
        None => Statistic::Median,
    };
    let case = match table.find("case") {
        Some(value) => Some(case(&value, scenario)?),
        None => None,
    };
    Ok(Band {
        metric,
        statistic,
        window: window(metric, table, scenario)?,
        case,
        flow: flow(metric, table, scenario)?,
        goal: goal(metric, table, scenario)?,
        controllers: Vec::new(),
        min_runs: 0,
        min: None,
        max: None,
    })
}

/// Reads the `[article]` table: what somebody else measured, to stand beside our figures.
pub(super) fn read_article(
    article: &Value<'_>,
    scenario: &Scenario,
) -> Result<Article, ScenarioError> {
    let table = article.table("a table with source and figures")?;
    table.only(&["source", "figures"])?;
    let source = table
        .need("source", "say in a few words which article it is")?
        .text("Author, May 2026")
        .and_then(|text| one_line(text, &table, "source"))?;
    let list = table.need("figures", "give a list of figures")?;
    let mut figures = Vec::new();
    for item in list.items("a list of tables such as { metric = \"flips\", says = \"999\" }")? {
        let figure = item.table("a table such as { metric = \"flips\", says = \"999\" }")?;
        figure.only(FIGURE)?;
        let metric = figure.need("metric", "say what was measured, such as \"flips\"")?;
        let word = metric.text("flips")?;
        let Some((_, known)) = Metric::ALL.iter().find(|(name, _)| *name == word) else {
            return Err(metric.error(Problem::UnknownWord {
                word: word.to_owned(),
                allowed: words(Metric::ALL.iter().map(|(name, _)| *name)),
            }));
        };
        figures.push(Figure {
            measure: read_measure(*known, &figure, scenario)?,
            says: figure
                .need("says", "give the value of the article in its own words")?
                .text("999 in 6.7 s")
                .and_then(|text| one_line(text, &figure, "says"))?,
        });
    }
    if figures.is_empty() {
        return Err(list.out_of_range("[]", "at least one figure"));
    }
    Ok(Article { source, figures })
}

/// A text that fits into a table on a terminal.
fn one_line(text: &str, table: &Table<'_>, key: &str) -> Result<String, ScenarioError> {
    let is_good = !text.trim().is_empty() && !text.chars().any(char::is_control);
    match table.find(key) {
        Some(value) if !is_good => {
            Err(value.out_of_range(format!("{text:?}"), "some words on one line"))
        }
        _ => Ok(text.to_owned()),
    }
}

fn statistic(value: &Value<'_>) -> Result<Statistic, ScenarioError> {
    let word = value.text("median")?;
    Statistic::ALL
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, statistic)| *statistic)
        .ok_or_else(|| {
            value.error(Problem::UnknownWord {
                word: word.to_owned(),
                allowed: words(Statistic::ALL.iter().map(|(name, _)| *name)),
            })
        })
}

fn case(value: &Value<'_>, scenario: &Scenario) -> Result<String, ScenarioError> {
    let word = value.text("10 MB")?;
    scenario
        .cases
        .iter()
        .find(|case| case.name == word)
        .map(|case| case.name.clone())
        .ok_or_else(|| {
            value.error(Problem::UnknownWord {
                word: word.to_owned(),
                allowed: words(scenario.cases.iter().map(|case| case.name.as_str())),
            })
        })
}

/// The goodput that `reach` waits for.
fn goal(
    metric: Metric,
    table: &Table<'_>,
    scenario: &Scenario,
) -> Result<Option<Goal>, ScenarioError> {
    match (table.find("rate"), metric) {
        (None, Metric::Reach) => Err(table.missing(
            "rate",
            "say which goodput is to be reached, such as \"90 Mbit/s\"",
        )),
        (None, _) => Ok(None),
        (Some(value), Metric::Reach) => {
            let step = Duration::from_millis(100);
            // scenarios.md 4.1: a second or ten round trips.
            let span = (scenario.base_rtt() * 10).max(Duration::from_secs(1));
            let steps = span.as_nanos().div_ceil(step.as_nanos());
            Ok(Some(Goal {
                rate: value.quantity("90 Mbit/s")?,
                span: step * u32::try_from(steps).unwrap_or(u32::MAX),
            }))
        }
        (Some(value), _) => Err(value.error(Problem::Conflict(format!(
            "{} takes no rate; reach does",
            metric.key()
        )))),
    }
}

/// The flow a band names; some metrics need several flows, some need one by name.
fn flow(
    metric: Metric,
    table: &Table<'_>,
    scenario: &Scenario,
) -> Result<Option<String>, ScenarioError> {
    let download = scenario.has_download.then_some(DOWNLOAD_NAME);
    let names = || {
        download
            .into_iter()
            .chain(scenario.flows.iter().map(|flow| flow.name.as_str()))
    };
    if metric.is_of_flows() && names().count() < 2 {
        return Err(table.error(Problem::Conflict(format!(
            "{} needs several flows; add [[flow]] tables",
            metric.key()
        ))));
    }
    match table.find("flow") {
        Some(value) if !metric.takes_flow() => Err(value.error(Problem::Conflict(format!(
            "{} is not measured for one flow",
            metric.key()
        )))),
        Some(value) => {
            let word = value.text("other")?;
            if scenario.flows.is_empty() || !names().any(|name| name == word) {
                return Err(value.error(Problem::UnknownWord {
                    word: word.to_owned(),
                    allowed: words(names()),
                }));
            }
            Ok(Some(word.to_owned()))
        }
        None if matches!(metric, Metric::AnswerP50 | Metric::AnswerP95) => {
            Err(table.missing("flow", &format!("say whose answers: {}", words(names()))))
        }
        None => Ok(None),
    }
}

fn words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    quoted.join(", ")
}

fn level(
    metric: Metric,
    value: Option<Value<'_>>,
    scenario: &Scenario,
) -> Result<Option<Level>, ScenarioError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let level = match metric.dimension() {
        Dimension::Share => {
            let share: Fraction = value.quantity("97 %")?;
            Level {
                text: share.to_string(),
                amount: u64::from(share.as_ppb()),
            }
        }
        Dimension::Rate => {
            let rate: Rate = value.quantity("90 Mbit/s")?;
            Level {
                text: rate.to_string(),
                amount: rate.as_bps(),
            }
        }
        Dimension::Count => {
            let count = value.integer(0..=1_000_000_000_000)?;
            Level {
                text: count.to_string(),
                amount: count,
            }
        }
        Dimension::Size => {
            let size: ByteCount = value.quantity("13500 B")?;
            Level {
                text: size.to_string(),
                amount: size.as_u64(),
            }
        }
        Dimension::Time => time(&value, "4.5 s")?,
        Dimension::RoundTrip => round_trips(&value, scenario)?,
    };
    Ok(Some(level))
}

fn time(value: &Value<'_>, example: &str) -> Result<Level, ScenarioError> {
    let span = value.duration(example)?;
    Ok(Level {
        text: format_duration(span),
        amount: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
    })
}

/// A span of time, or a multiple of the base round-trip time written as "2.05 RTT".
fn round_trips(value: &Value<'_>, scenario: &Scenario) -> Result<Level, ScenarioError> {
    let text = value.text("2.05 RTT")?;
    let Some(number) = text.trim().strip_suffix("RTT") else {
        return time(value, "2.05 RTT");
    };
    let Some(thousandths) = thousandths(number.trim()) else {
        return Err(value.error(Problem::Unit(format!(
            "{text:?}: not a number; a multiple of the base round-trip time is a number with up \
             to three decimals and RTT, for example \"2.05 RTT\""
        ))));
    };
    let base = u64::try_from(scenario.base_rtt().as_nanos()).unwrap_or(u64::MAX);
    Ok(Level {
        text: format!("{} RTT", number.trim()),
        amount: math::mul_div(base, thousandths, 1000),
    })
}

/// A decimal number with up to three decimals, in thousandths.
fn thousandths(number: &str) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 3 || !are_digits(whole) || !are_digits(decimals) {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(decimals)
}

fn window(
    metric: Metric,
    table: &Table<'_>,
    scenario: &Scenario,
) -> Result<Option<Window>, ScenarioError> {
    let ends = (table.find("from"), table.find("until"));
    let (from, until) = match (metric.is_windowed(), ends) {
        (false, (None, None)) => return Ok(None),
        (false, (Some(value), _) | (_, Some(value))) => {
            return Err(value.error(Problem::Conflict(format!(
                "{} is measured over the whole run and takes no from or until",
                metric.key()
            ))));
        }
        (true, (Some(from), Some(until))) => (from, until),
        (true, _) => {
            return Err(table.missing(
                "from",
                "say in which part of the run it is measured, such as from = \"5 s\", until = \
                 \"30 s\"",
            ));
        }
    };
    let window = Window {
        from: Timestamp::ZERO + window_end(&from)?,
        until: Timestamp::ZERO + window_end(&until)?,
    };
    if window.from >= window.until {
        return Err(until.out_of_range(
            format_duration(window_end(&until)?),
            format!("after from, {}", format_duration(window_end(&from)?)),
        ));
    }
    if window.until > Timestamp::ZERO + scenario.limit {
        return Err(until.out_of_range(
            format_duration(window_end(&until)?),
            format!("up to the limit of {}", format_duration(scenario.limit)),
        ));
    }
    Ok(Some(window))
}

/// Runs are recorded in buckets, so a window begins and ends on the border of one.
fn window_end(value: &Value<'_>) -> Result<std::time::Duration, ScenarioError> {
    let end = value.duration("5 s")?;
    if end.as_nanos() % BUCKET.as_nanos() == 0 {
        return Ok(end);
    }
    Err(value.out_of_range(
        format_duration(end),
        format!("a multiple of {}", format_duration(BUCKET)),
    ))
}

#[cfg(test)]
mod tests {
    use super::thousandths;

    #[test]
    fn multiples_are_read_exactly_to_three_decimals() {
        assert_eq!(thousandths("2.05"), Some(2050));
        assert_eq!(thousandths("1"), Some(1000));
        assert_eq!(thousandths("0.125"), Some(125));
        assert_eq!(thousandths("1."), Some(1000));
        for wrong in ["", ".5", "1.2345", "-1", "1e3", "x"] {
            assert_eq!(thousandths(wrong), None, "{wrong}");
        }
    }
}
