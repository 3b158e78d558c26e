//! The commands `run` and `list`: their flags, what they print, and their exit status.

use std::cmp::Reverse;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use cc::Algorithm;
use clap::Args;
use netsim::OutputRecord;
use units::format_duration;

use crate::play::Player;
use crate::plot::Plot;
use crate::report::Report;
use crate::results::Outcome;
use crate::runner::{Group, Plan, play_all};
use crate::scenario::{self, BUILT_IN, OTHER_NAMES, SMOKE, SMOKE_NAME, SMOKE_SEEDS, Scenario};
use crate::sweep::{SweepArgs, sweep_on};
use crate::text::wrap;

/// The flags of `tidegate run`.
#[derive(Args, Debug, Clone)]
#[command(
    about = "Play a scenario for a list of controllers and seeds, and judge the results",
    after_help = "Examples:\n  \
        tidegate run min-cwnd-trap\n  \
        tidegate run min-cwnd-trap --cc cubic --seed 17 --qlog traces\n  \
        tidegate run fct-ladder --seeds 3 --json results.json\n  \
        tidegate run min-cwnd-trap --seeds 1 --plot trap.svg\n  \
        tidegate run my-scenario.toml --cc newreno,cubic,fixed:10Mbit/s\n  \
        tidegate run min-cwnd-trap --real\n  \
        tidegate run smoke --no-encryption\n\n\
        Exit status: 0 every expectation met, 1 some expectation not met, 2 error,\n\
        3 not judged: over real sockets on a machine that was too busy."
)]
pub struct RunArgs {
    /// Name of a built-in scenario (see `tidegate list`), a pattern such as "min-cwnd-*", "smoke" for a minute's selection
    /// with three seeds of each, or path of a scenario file
    pub scenario: String,

    /// Controllers to play, separated by commas, instead of the scenario's own: newreno, cubic, bbr3, fixed:RATE. Options
    /// follow the name, + switches one on and - off: hystart, abe, prr, undo, pacing, for cubic also fastconv
    #[arg(long = "cc", value_name = "LIST", value_parser = parse_controllers)]
    pub controllers: Option<Controllers>,

    /// Play the seeds 1 to N instead of the scenario's own number
    #[arg(long, value_name = "N", value_parser = parse_seeds, allow_negative_numbers = true, conflicts_with = "seed")]
    pub seeds: Option<u64>,

    /// Play this one seed
    #[arg(long, value_name = "S", value_parser = parse_seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// End every run after this time, such as "5 s", instead of the scenario's own limit
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub limit: Option<Duration>,

    /// Play over real UDP sockets on this machine, in real time, through a relay that plays the link
    #[arg(long)]
    pub real: bool,

    /// Do not encrypt packets, for speed: each has the same size, and every result is the same. Not with --real
    #[arg(long, conflicts_with = "real")]
    pub no_encryption: bool,

    /// Runs played at once [default: the number of cores; 1 with --real]
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Write all results as JSON to this file, or to standard output if it is "-"
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw the first seed of every controller and write the picture as SVG to this file, or to
    /// standard output if it is "-"; of several downloads the largest is drawn
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Write qlog of every run below this directory
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,

    /// Afterwards play the worst seed again with every controller and write qlog below this directory, to be
    /// laid side by side. The worst is the seed of the run that took longest; of those cut off by the limit, the one
    /// longest at the minimum window; of downloads that last for a time, the one that got least. Not with --real
    #[arg(long, value_name = "DIR", conflicts_with = "real")]
    pub qlog_worst: Option<PathBuf>,
}

/// How many seeds may be asked for.
const SEEDS: RangeInclusive<u64> = 1..=100_000;

/// A list of controllers from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controllers(
    /// In the order given.
    pub Vec<Algorithm>,
);

fn parse_controllers(text: &str) -> Result<Controllers, String> {
    Algorithm::parse_list(text)
        .map(Controllers)
        .map_err(|error| error.to_string())
}

pub(crate) fn parse_seeds(text: &str) -> Result<u64, String> {
    let seeds = text.parse().ok().filter(|seeds| SEEDS.contains(seeds));
    seeds.ok_or_else(|| {
        format!(
            "allowed is a whole number from {} to {}",
            SEEDS.start(),
            SEEDS.end()
        )
    })
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("allowed is a whole number from 0 to {}", u64::MAX))
}

pub(crate) fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "allowed is a whole number above 0".to_owned())
}

fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = units::parse_duration(text).map_err(|error| error.to_string())?;
    if limit.is_zero() || limit > OutputRecord::SPAN {
        return Err(format!(
            "out of range; allowed is above 0 s, up to {}",
            format_duration(OutputRecord::SPAN)
        ));
    }
    Ok(limit)
}

/// The flags of `tidegate list`.
#[derive(Args, Debug, Clone)]
#[command(
    about = "List the built-in scenarios, or print one of them",
    after_help = "Examples:\n  \
        tidegate list\n  \
        tidegate list min-cwnd-trap > my-scenario.toml"
)]
pub struct ListArgs {
    /// Print the file of this scenario, to read it or to change a copy of it
    pub scenario: Option<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Everything is as expected: 0.
    Met,
    /// Over real sockets the relay was late by more than a millisecond, so some runs were not judged; no other
    /// expectation is missed: 3.
    NotJudged,
    /// Some expectation is not met: 1.
    NotMet,
    /// The command could not do its work: 2.
    Error,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Met => 0,
            ExitStatus::NotJudged => 3,
            ExitStatus::NotMet => 1,
            ExitStatus::Error => 2,
        })
    }
}

/// Where a command prints.
pub struct Streams<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Errors and progress.
    pub err: &'a mut dyn Write,
    /// Whether progress shall be shown: `err` is a terminal.
    pub shows_progress: bool,
}

/// Runs `tidegate run` on the standard streams.
pub fn run(args: &RunArgs, player: &dyn Player) -> ExitStatus {
    let shows_progress = io::stderr().is_terminal();
    let mut streams = Streams {
        out: &mut io::stdout().lock(),
        err: &mut io::stderr(),
        shows_progress,
    };
    run_on(args, player, &mut streams)
}

/// Runs `tidegate run` on the given streams. Whether runs are real is up to the player: the caller
/// chooses it by [`RunArgs::real`].
pub fn run_on(args: &RunArgs, player: &dyn Player, streams: &mut Streams<'_>) -> ExitStatus {
    match try_run(args, player, streams) {
        Ok(status) => status,
        Err(message) => complain(streams, &message),
    }
}

/// One scenario, a selection, or every built-in one whose name fits a pattern.
fn try_run(
    args: &RunArgs,
    player: &dyn Player,
    streams: &mut Streams<'_>,
) -> Result<ExitStatus, String> {
    let is_smoke = args.scenario == SMOKE_NAME;
    if !is_smoke && !args.scenario.contains(['*', '?']) {
        return try_run_one(args, player, streams);
    }
    if args.json.is_some() || args.plot.is_some() {
        return Err("--json and --plot take one scenario, not several".to_owned());
    }
    let names: Vec<&str> = match is_smoke {
        true => SMOKE.to_vec(),
        false => BUILT_IN
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| fits(&args.scenario, name))
            .collect(),
    };
    if names.is_empty() {
        let all: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no built-in scenario fits \"{}\"; there are {}",
            args.scenario,
            all.join(", ")
        ));
    }
    let mut statuses = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            print(streams.out, "\n\n", "standard output")?;
        }
        let one = RunArgs {
            scenario: (*name).to_owned(),
            seeds: args.seeds.or(is_smoke.then_some(SMOKE_SEEDS)),
            ..args.clone()
        };
        statuses.push(try_run_one(&one, player, streams)?);
    }
    let worst = [ExitStatus::NotMet, ExitStatus::NotJudged];
    let worst = worst.into_iter().find(|status| statuses.contains(status));
    Ok(worst.unwrap_or(ExitStatus::Met))
}

/// Whether a name fits a pattern: `*` stands for any letters, `?` for one.
fn fits(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            fits(rest, name) || {
                let mut shorter = name.chars();
                shorter.next().is_some() && fits(pattern, shorter.as_str())
            }
        }
        Some(letter) => {
            let mut named = name.chars();
            named
                .next()
                .is_some_and(|found| letter == '?' || letter == found)
                && fits(letters.as_str(), named.as_str())
        }
    }
}

fn try_run_one(
    args: &RunArgs,
    player: &dyn Player,
    streams: &mut Streams<'_>,
) -> Result<ExitStatus, String> {
    let scenario = scenario::find(&args.scenario).map_err(|error| error.to_string())?;
    let plan = plan_of(args, &scenario, player.is_real());
    let total = plan.run_count();
    if args.json.is_some() && args.json == args.plot && args.json != Some("-".into()) {
        return Err("--json and --plot name the same file".to_owned());
    }
    // Before the runs, which may take minutes.
    if let Some(dir) = &args.qlog_worst {
        fs::create_dir_all(dir).map_err(|error| {
            format!("cannot make the qlog directory {}: {error}", dir.display())
        })?;
    }
    let json = args.json.as_deref().map(Target::open).transpose()?;
    let plot = args.plot.as_deref().map(Target::open).transpose()?;
    let on_stdout = [&json, &plot].into_iter().flatten();
    let on_stdout = on_stdout.filter(|target| target.is_stdout()).count();
    if on_stdout > 1 {
        return Err("only one of --json and --plot can go to standard output".to_owned());
    }
    let groups = {
        let mut progress = Progress::new(&scenario.name, total, streams);
        let groups = play_all(&plan, player, &mut |done| progress.show(done));
        progress.clear();
        groups.map_err(|error| error.to_string())?
    };
    let report = Report {
        scenario: &scenario,
        groups: &groups,
        is_real: player.is_real(),
        limit: plan.limit,
    };
    let mut text = report.text();
    if args.controllers.is_none() && !scenario.left_out.is_empty() {
        let note = format!(
            "Not played: {}, wrong on purpose and only in builds with the feature mutants.",
            scenario.left_out.join(", ")
        );
        text.push_str(&wrap(&note, 2));
        text.push('\n');
    }
    if let Some(dir) = &args.qlog_worst {
        text.push_str(&log_worst(dir, &plan, &groups, player)?);
    }
    if on_stdout > 0 {
        print(streams.err, &text, "standard error")?;
    } else {
        print(streams.out, &text, "standard output")?;
    }
    if let Some(target) = json {
        let json = report.json().map_err(|error| error.to_string())?;
        target.write(streams, &json)?;
    }
    if let Some(target) = plot {
        let plot = Plot::of(&scenario, &groups, player.is_real());
        target.write(streams, &plot.svg())?;
    }
    Ok(match (report.is_met(), report.is_late()) {
        (false, _) => ExitStatus::NotMet,
        (true, true) => ExitStatus::NotJudged,
        (true, false) => ExitStatus::Met,
    })
}

/// As many runs at once as there are cores.
pub(crate) fn default_jobs() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Runs `tidegate sweep` on the standard streams.
pub fn sweep(args: &SweepArgs, player: &dyn Player) -> ExitStatus {
    let mut streams = Streams {
        out: &mut io::stdout().lock(),
        err: &mut io::stderr(),
        shows_progress: false,
    };
    sweep_on(args, player, &mut streams)
}

/// Plays the worst seed again with logs, and says where they are.
fn log_worst(
    dir: &Path,
    plan: &Plan<'_>,
    groups: &[Group],
    player: &dyn Player,
) -> Result<String, String> {
    let Some(seed) = worst_seed(groups) else {
        return Ok(String::new());
    };
    let again = Plan {
        seeds: vec![seed],
        qlog_dir: Some(dir.to_path_buf()),
        ..plan.clone()
    };
    play_all(&again, player, &mut |_| {}).map_err(|error| error.to_string())?;
    let note = format!(
        "The logs of seed {seed}, the worst, are below {}, one directory per controller.",
        dir.display()
    );
    Ok(format!("{}\n", wrap(&note, 2)))
}

/// The seed of the run that took longest; among those that did not complete, of the one that stood longest at the minimum
/// window.
fn worst_seed(groups: &[Group]) -> Option<u64> {
    let runs = groups.iter().flat_map(|group| &group.runs);
    let worst = runs.max_by_key(|run| {
        let time = run.completion_ns.unwrap_or(u64::MAX);
        let did_not_complete = run.outcome != Outcome::Completed;
        let at_minimum = if did_not_complete {
            run.time_at_minimum_ns
        } else {
            0
        };
        (
            time,
            did_not_complete,
            at_minimum,
            Reverse(run.app_bytes),
            Reverse(run.seed),
        )
    });
    worst.map(|run| run.seed)
}

/// Where results go after the runs: a file, or standard output for "-".
///
/// A file is opened beforehand to find out whether it can be written. What it holds stays until
/// then, and one that was made here goes away again if nothing comes to be written.
pub(crate) struct Target<'a> {
    path: &'a Path,
    is_new: bool,
}

impl<'a> Target<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, String> {
        let mut target = Self {
            path,
            is_new: false,
        };
        // Pipes and devices are left alone: to open them may mean something to their other end.
        let is_special = fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir());
        if target.is_stdout() || is_special {
            return Ok(target);
        }
        let is_there = path.exists();
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| target.problem(&error))?;
        target.is_new = !is_there;
        Ok(target)
    }

    pub(crate) fn write(mut self, streams: &mut Streams<'_>, text: &str) -> Result<(), String> {
        if self.is_stdout() {
            return print(streams.out, text, "standard output");
        }
        self.is_new = false;
        fs::write(self.path, text).map_err(|error| self.problem(&error))
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    fn problem(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // An empty file that stays behind does no harm.
            let _ = fs::remove_file(self.path);
        }
    }
}

fn plan_of<'a>(args: &RunArgs, scenario: &'a Scenario, is_real: bool) -> Plan<'a> {
    let controllers = match &args.controllers {
        Some(Controllers(list)) => list.clone(),
        None => scenario.controllers.clone(),
    };
    let usual = if is_real {
        scenario.real_seeds
    } else {
        scenario.seeds
    };
    let seeds = match args.seed {
        Some(seed) => vec![seed],
        None => (1..=args.seeds.unwrap_or(usual)).collect(),
    };
    // Real runs side by side would take the cores from each other and be late.
    let cores = || match is_real {
        true => NonZeroUsize::MIN,
        false => default_jobs(),
    };
    Plan {
        scenario,
        controllers,
        seeds,
        limit: args.limit.unwrap_or(scenario.limit),
        jobs: args.jobs.unwrap_or_else(cores),
        qlog_dir: args.qlog.clone(),
    }
}

/// One line on a terminal that is written over and over.
struct Progress<'a, 'b> {
    name: &'a str,
    total: usize,
    streams: &'a mut Streams<'b>,
}

impl<'a, 'b> Progress<'a, 'b> {
    fn new(name: &'a str, total: usize, streams: &'a mut Streams<'b>) -> Self {
        let mut progress = Self {
            name,
            total,
            streams,
        };
        progress.show(0);
        progress
    }

    fn show(&mut self, done: usize) {
        if self.streams.shows_progress {
            // A terminal that has gone away is no reason to stop the runs.
            let _ = write!(
                self.streams.err,
                "\r{}: {done} of {} runs",
                self.name, self.total
            );
            let _ = self.streams.err.flush();
        }
    }

    fn clear(&mut self) {
        if self.streams.shows_progress {
            let _ = write!(self.streams.err, "\r{:79}\r", "");
            let _ = self.streams.err.flush();
        }
    }
}

/// Runs `tidegate list` on the standard streams.
pub fn list(args: &ListArgs) -> ExitStatus {
    let mut streams = Streams {
        out: &mut io::stdout().lock(),
        err: &mut io::stderr(),
        shows_progress: false,
    };
    list_on(args, &mut streams)
}

/// Runs `tidegate list` on the given streams.
pub fn list_on(args: &ListArgs, streams: &mut Streams<'_>) -> ExitStatus {
    let text = match &args.scenario {
        Some(name) => file_of(name),
        None => overview(),
    };
    match text.and_then(|text| print(streams.out, &text, "standard output")) {
        Ok(()) => ExitStatus::Met,
        Err(message) => complain(streams, &message),
    }
}

fn file_of(name: &str) -> Result<String, String> {
    // Paths are no business of this command, but a misspelt name gets the same answer as in `run`.
    match scenario::built_in(name) {
        Some((_, text)) => Ok(text.to_owned()),
        None => match scenario::find(name) {
            Ok(_) => Err(format!("{name} is a file, not a built-in scenario")),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn overview() -> Result<String, String> {
    let scenarios = scenario::built_ins().map_err(|error| error.to_string())?;
    let longest = scenarios
        .iter()
        .map(|scenario| scenario.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for scenario in &scenarios {
        let entry = format!("{:longest$}  {}", scenario.name, scenario.about);
        text.push_str(&wrap(&entry, longest + 2));
        text.push('\n');
    }
    for (other, ours) in OTHER_NAMES {
        let entry = format!("{other:longest$}  Another name of {ours}.");
        text.push_str(&wrap(&entry, longest + 2));
        text.push('\n');
    }
    Ok(text)
}

/// Prints, and treats a reader who has left as satisfied.
pub(crate) fn print(stream: &mut dyn Write, text: &str, name: &str) -> Result<(), String> {
    let result = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to {name}: {error}"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn complain(streams: &mut Streams<'_>, message: &str) -> ExitStatus {
    // Where an error cannot be printed, the exit status still tells.
    let _ = writeln!(streams.err, "error: {message}");
    ExitStatus::Error
}
