//! The command `sweep`: one scenario, played over a grid of settings.
//!
//! ```text
//!  tidegate sweep rand-loss-1pct --over link.loss=0.1%,1%,3% --over cc=newreno,cubic --seeds 5
//!
//!  file --> TOML --> one copy per combination, with the settings written in --> the same reader as always
//! ```
//!
//! `cc` is the list of controllers; every other key is a path into the file, `link.rtt`, `download.size`,
//! `phase.0.both.loss`. What the file expects of its own settings says nothing about others, so nothing is judged.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cc::Algorithm;
use clap::Args;
use serde::Serialize;
use toml::{Table, Value};

use crate::cli::{ExitStatus, Streams, Target, complain, default_jobs, print};
use crate::expect::Dimension;
use crate::play::Player;
use crate::results::{Outcome, RunResult};
use crate::runner::{Plan, play_all};
use crate::scenario::{self, Scenario};
use crate::stats::{median_interval, nearest_rank};
use crate::text::{Columns, decimal};

/// The flags of `tidegate sweep`.
#[derive(Args, Debug, Clone)]
#[command(
    about = "Play a scenario over a grid of settings",
    after_help = "Examples:\n  \
        tidegate sweep rand-loss-1pct --over link.loss=0.1%,1% --seeds 3\n  \
        tidegate sweep fct-ladder --over link.rtt=10ms,80ms --over cc=cubic\n\n\
        cc is the list of controllers; every other key is a path into the file, such as\n\
        link.rate, download.size or phase.0.both.loss (see tidegate list NAME). What the\n\
        file expects is not judged.\n\n\
        Exit status: 0 played, 2 error."
)]
pub struct SweepArgs {
    /// Name of a built-in scenario (see `tidegate list`) or path of a scenario file
    pub scenario: String,

    /// A setting and the values it takes, separated by commas; several are combined with each other
    #[arg(long = "over", value_name = "KEY=A,B", required = true)]
    pub over: Vec<String>,

    /// Play the seeds 1 to N instead of the scenario's own number
    #[arg(long, value_name = "N", value_parser = crate::cli::parse_seeds, allow_negative_numbers = true)]
    pub seeds: Option<u64>,

    /// Do not encrypt packets, for speed: each has the same size, and every result is the same
    #[arg(long)]
    pub no_encryption: bool,

    /// Runs played at once [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = crate::cli::parse_jobs, allow_negative_numbers = true)]
    pub jobs: Option<std::num::NonZeroUsize>,

    /// Write all results as JSON to this file, or to standard output if it is "-"
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The most combinations of settings in one sweep.
const MOST_POINTS: usize = 10_000;

/// Plays the sweep on the given streams.
pub fn sweep_on(args: &SweepArgs, player: &dyn Player, streams: &mut Streams<'_>) -> ExitStatus {
    match try_sweep(args, player, streams) {
        Ok(()) => ExitStatus::Met,
        Err(message) => complain(streams, &message),
    }
}

fn try_sweep(
    args: &SweepArgs,
    player: &dyn Player,
    streams: &mut Streams<'_>,
) -> Result<(), String> {
    let (file, text) = text_of(&args.scenario)?;
    let axes: Vec<Axis> = args
        .over
        .iter()
        .map(|over| Axis::parse(over))
        .collect::<Result<_, _>>()?;
    let points = combine(&axes)?;
    let json = args.json.as_deref().map(Target::open).transpose()?;
    // Every combination is read before the first is played.
    let scenarios = points
        .iter()
        .map(|point| read(&file, &text, point))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for (point, (scenario, controllers)) in points.iter().zip(&scenarios) {
        let plan = Plan {
            scenario,
            controllers: controllers.clone(),
            seeds: (1..=args.seeds.unwrap_or(scenario.seeds)).collect(),
            limit: scenario.limit,
            jobs: args.jobs.unwrap_or_else(default_jobs),
            qlog_dir: None,
        };
        let groups = play_all(&plan, player, &mut |_| {}).map_err(|error| error.to_string())?;
        for group in groups {
            rows.push(Row {
                settings: point
                    .iter()
                    .filter(|(axis, _)| axis.key != CONTROLLERS)
                    .map(|(axis, value)| (axis.key.clone(), (*value).clone()))
                    .collect(),
                case: group.case.name.clone(),
                controller: group.controller.to_string(),
                is_bulk: scenario.is_bulk(),
                runs: group.runs,
            });
        }
    }
    let table = table(&axes, &rows);
    if json.as_ref().is_some_and(Target::is_stdout) {
        print(streams.err, &table, "standard error")?;
    } else {
        print(streams.out, &table, "standard output")?;
    }
    if let Some(target) = json {
        let points: Vec<PointJson<'_>> = rows.iter().map(PointJson::of).collect();
        let mut text = serde_json::to_string_pretty(&points).map_err(|error| error.to_string())?;
        text.push('\n');
        target.write(streams, &text)?;
    }
    Ok(())
}

/// The name that stands for the list of controllers.
const CONTROLLERS: &str = "cc";

/// One setting and its values.
struct Axis {
    key: String,
    values: Vec<String>,
}

impl Axis {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "--over {text:?}: {what}; write KEY=VALUE,VALUE, for example link.rtt=10ms,80ms"
            )
        };
        let (key, values) = text.split_once('=').ok_or_else(|| wrong("there is no ="))?;
        let (key, values) = (
            key.trim(),
            values.split(',').map(|value| value.trim().to_owned()),
        );
        let values: Vec<String> = values.collect();
        if key.is_empty() {
            return Err(wrong("there is no key"));
        }
        if values.iter().any(String::is_empty) {
            return Err(wrong("a value is empty"));
        }
        Ok(Self {
            key: key.to_owned(),
            values,
        })
    }
}

type Point<'a> = Vec<(&'a Axis, &'a String)>;

/// Every combination, the last setting varying first.
fn combine(axes: &[Axis]) -> Result<Vec<Point<'_>>, String> {
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|other| other.key == axis.key) {
            return Err(format!("--over {}: is given twice", axis.key));
        }
    }
    let mut points: Vec<Point<'_>> = vec![Vec::new()];
    for axis in axes {
        // All controllers of a list are played together.
        let values: &[String] = match axis.key.as_str() {
            CONTROLLERS => &axis.values[..1],
            _ => &axis.values,
        };
        if points.len().saturating_mul(values.len()) > MOST_POINTS {
            return Err(format!(
                "the settings have more than {MOST_POINTS} combinations; give fewer values"
            ));
        }
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.push((axis, value));
                    longer
                })
            })
            .collect();
    }
    Ok(points)
}

/// The name of the file in messages, and its text.
fn text_of(name: &str) -> Result<(String, String), String> {
    if let Some((name, text)) = scenario::built_in(name) {
        return Ok((name.to_owned(), text.to_owned()));
    }
    // The reader's own message for what is neither a name nor a file, nor a file that can be read.
    scenario::find(name).map_err(|error| error.to_string())?;
    let text = fs::read_to_string(name).map_err(|error| format!("cannot read {name}: {error}"))?;
    Ok((name.to_owned(), text))
}

/// The scenario with the settings of a point, and the controllers to play.
fn read(file: &str, text: &str, point: &Point<'_>) -> Result<(Scenario, Vec<Algorithm>), String> {
    let mut table: Table = text.parse().map_err(|error| format!("{file}: {error}"))?;
    // What is expected belongs to the settings that the file has, and so do the figures of an article.
    table.remove("expect");
    table.remove("article");
    let mut controllers = None;
    let mut words = Vec::new();
    for (axis, value) in point {
        if axis.key == CONTROLLERS {
            let list = axis.values.join(",");
            controllers = Some(Algorithm::parse_list(&list).map_err(|error| error.to_string())?);
            continue;
        }
        set(&mut table, &axis.key, value)?;
        words.push(format!("{}={value}", axis.key));
    }
    let text = toml::to_string(&table).map_err(|error| error.to_string())?;
    let name = format!("{file} with {}", words.join(", "));
    let scenario = Scenario::parse(&name, &text).map_err(|error| {
        // The lines are those of a text that nobody has seen.
        let mut error = error;
        error.line = None;
        error.to_string()
    })?;
    let controllers = controllers.unwrap_or_else(|| scenario.controllers.clone());
    Ok((scenario, controllers))
}

/// Writes a value at a path; a table on the way is made if there is none.
fn set(table: &mut Table, path: &str, text: &str) -> Result<(), String> {
    let value = match (text.parse::<i64>(), text.parse::<bool>()) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(flag)) => Value::Boolean(flag),
        _ => Value::String(text.to_owned()),
    };
    let mut words: Vec<&str> = path.split('.').collect();
    let last = words.pop().unwrap_or_default();
    let lost = |word: &str| format!("--over {path}: there is no {word:?} to look into");
    let mut place = Place::Table(table);
    for word in words {
        place = match place {
            Place::Table(table) => {
                let next = table
                    .entry(word.to_owned())
                    .or_insert_with(|| Value::Table(Table::new()));
                Place::of(next).ok_or_else(|| lost(word))?
            }
            Place::Array(array) => {
                let next = word
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| array.get_mut(index));
                next.and_then(Place::of).ok_or_else(|| lost(word))?
            }
        };
    }
    match place {
        Place::Table(table) => {
            table.insert(last.to_owned(), value);
        }
        Place::Array(array) => {
            let next = last
                .parse::<usize>()
                .ok()
                .and_then(|index| array.get_mut(index));
            *next.ok_or_else(|| lost(last))? = value;
        }
    }
    Ok(())
}

enum Place<'a> {
    Table(&'a mut Table),
    Array(&'a mut Vec<Value>),
}

impl<'a> Place<'a> {
    fn of(value: &'a mut Value) -> Option<Self> {
        match value {
            Value::Table(table) => Some(Self::Table(table)),
            Value::Array(array) => Some(Self::Array(array)),
            _ => None,
        }
    }
}

/// One combination with one download and one controller.
struct Row {
    settings: Vec<(String, String)>,
    case: String,
    controller: String,
    is_bulk: bool,
    runs: Vec<RunResult>,
}

impl Row {
    fn completed(&self) -> usize {
        let completed = self
            .runs
            .iter()
            .filter(|run| run.outcome == Outcome::Completed);
        completed.count()
    }

    /// Completion times, or goodputs where nothing comes to an end; of the runs that completed.
    fn values(&self) -> Vec<u64> {
        let mut values: Vec<u64> = match self.is_bulk {
            true => self.runs.iter().map(|run| run.goodput_bps).collect(),
            false => self
                .runs
                .iter()
                .filter_map(|run| run.completion_ns)
                .collect(),
        };
        values.sort_unstable();
        values
    }

    fn dimension(&self) -> Dimension {
        match self.is_bulk {
            true => Dimension::Rate,
            false => Dimension::Time,
        }
    }

    /// The 95 % interval of the median.
    fn interval(&self) -> Option<(u64, u64)> {
        let values: Vec<f64> = self.values().iter().map(|value| *value as f64).collect();
        let (low, high) = median_interval(&values, 1)?;
        let whole = |value: f64| Duration::try_from_secs_f64(value / 1e9).ok();
        let nanos = |value: f64| u64::try_from(whole(value)?.as_nanos()).ok();
        Some((nanos(low)?, nanos(high)?))
    }
}

fn table(axes: &[Axis], rows: &[Row]) -> String {
    let keys: Vec<&str> = axes
        .iter()
        .map(|axis| axis.key.as_str())
        .filter(|key| *key != CONTROLLERS)
        .collect();
    let has_cases = rows.iter().any(|row| row.case != rows[0].case);
    let unit = match rows.first().map(Row::dimension) {
        Some(Dimension::Rate) => "Mbit/s",
        _ => "s",
    };
    let mut header: Vec<(&str, &str)> = keys.iter().map(|key| ("", *key)).collect();
    if has_cases {
        header.push(("", "download"));
    }
    header.extend([
        ("", "controller"),
        ("runs", "done"),
        (unit, "median"),
        ("95 % of", "low"),
        ("median", "high"),
        ("", "p95"),
        ("", "lost"),
    ]);
    let mut columns = Columns::new(header).with_numbers_only();
    for row in rows {
        let values = row.values();
        let cell = |value: Option<u64>| {
            let steps = match row.dimension() {
                Dimension::Rate => 1_000_000,
                _ => 1_000_000_000,
            };
            value.map_or_else(|| "-".to_owned(), |value| decimal(value, steps, 3))
        };
        let mut cells: Vec<String> = row
            .settings
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        if has_cases {
            cells.push(row.case.clone());
        }
        let mut lost: Vec<u64> = row.runs.iter().map(|run| run.packets_lost).collect();
        lost.sort_unstable();
        cells.extend([
            row.controller.clone(),
            format!("{}/{}", row.completed(), row.runs.len()),
            cell(nearest_rank(&values, 500)),
            cell(row.interval().map(|(low, _)| low)),
            cell(row.interval().map(|(_, high)| high)),
            cell(nearest_rank(&values, 950)),
            nearest_rank(&lost, 500).unwrap_or(0).to_string(),
        ]);
        columns.row(cells);
    }
    let mut text = String::new();
    columns.write_to(&mut text);
    text
}

#[derive(Serialize)]
struct PointJson<'a> {
    settings: &'a [(String, String)],
    case: &'a str,
    controller: &'a str,
    completed_count: usize,
    run_count: usize,
    /// Of completion times in ns, or of goodputs in bit/s.
    unit: &'static str,
    median: Option<u64>,
    median_interval: Option<(u64, u64)>,
    p95: Option<u64>,
    runs: &'a [RunResult],
}

impl<'a> PointJson<'a> {
    fn of(row: &'a Row) -> Self {
        let values = row.values();
        Self {
            settings: &row.settings,
            case: &row.case,
            controller: &row.controller,
            completed_count: row.completed(),
            run_count: row.runs.len(),
            unit: if row.is_bulk { "bit/s" } else { "ns" },
            median: nearest_rank(&values, 500),
            median_interval: row.interval(),
            p95: nearest_rank(&values, 950),
            runs: &row.runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::BUILT_IN;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        let axes = texts.iter().map(|text| Axis::parse(text));
        axes.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn combinations_are_all_there_once_and_controllers_stay_together() {
        let axes = axes(&[
            "link.rtt=10ms,20ms",
            "cc=newreno,cubic",
            "link.loss=0%,1%,3%",
        ]);
        let points = combine(&axes).unwrap();
        assert_eq!(points.len(), 6);
        let words: Vec<&str> = points[1].iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(words, ["10ms", "newreno", "1%"]);
    }

    #[test]
    fn settings_are_written_where_their_path_leads() {
        let text = BUILT_IN
            .iter()
            .find(|(name, _)| *name == "min-cwnd-trap")
            .unwrap()
            .1;
        let axes = axes(&[
            "phase.0.forward.loss=10 %",
            "link.rtt=20 ms",
            "seeds=7",
            "cc=cubic",
        ]);
        let points = combine(&axes).unwrap();
        let (scenario, controllers) = read("trap", text, &points[0]).unwrap();
        assert_eq!(scenario.base_rtt(), Duration::from_millis(20));
        assert_eq!(scenario.seeds, 7);
        assert_eq!(controllers, [Algorithm::CUBIC]);
        assert_eq!(scenario.forward.changes.len(), 2);
        assert!(scenario.bands.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (over, message) in [
            ("rtt", "--over \"rtt\": there is no ="),
            ("=1", "--over \"=1\": there is no key"),
            (
                "link.rtt=1ms,",
                "--over \"link.rtt=1ms,\": a value is empty",
            ),
        ] {
            let error = Axis::parse(over).err().unwrap();
            assert!(error.starts_with(message), "{error}");
        }
        let text = BUILT_IN[0].1;
        let problem = |over: &str| {
            let axes = axes(&[over]);
            let points = combine(&axes).unwrap();
            read("trap", text, &points[0]).err().unwrap()
        };
        assert!(problem("link.rtt=soon").starts_with(
            "trap with link.rtt=soon: link.rtt: \"soon\": not a number; a duration is"
        ));
        assert_eq!(
            problem("phase.3.both.loss=1%"),
            "--over phase.3.both.loss: there is no \"3\" to look into"
        );
        assert!(
            problem("link.colour=red")
                .starts_with("trap with link.colour=red: link.colour: unknown key")
        );
        assert!(
            combine(&axes(&["a=1", "a=2"]))
                .err()
                .unwrap()
                .contains("given twice")
        );
    }
}
