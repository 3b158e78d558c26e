//! The command `qlog`: looks into qlog files, ours and those of other programs.
//!
//! The work is in the crate `qlogs`; here are the flags, the files, what is printed and the exit status.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use qlogs::analyse::{Analysis, analyse, follow};
use qlogs::check::{Profile, check};
use qlogs::csv;
use qlogs::diff::{compare, millis};
use qlogs::read::{Fault, Reader};

use crate::cli::{ExitStatus, Streams, Target, complain, print};
use crate::plot::trace::TracePlot;

/// The flags of `tidegate qlog`.
#[derive(Args, Debug, Clone)]
#[command(
    about = "Look into qlog files, ours and those of other programs",
    after_help = "Examples:\n  \
        tidegate qlog check traces/*.sqlog\n  \
        tidegate qlog summary traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog why traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog oracles traces/*_server.sqlog\n  \
        tidegate qlog diff before.sqlog after.sqlog\n  \
        tidegate qlog plot traces/8eb7041ee7431fb4_server.sqlog -o trace.svg\n  \
        tidegate qlog convert traces/8eb7041ee7431fb4_server.sqlog -o trace.csv\n\n\
        A file is a JSON text sequence, a JSON document or lines of JSON, of draft-00\n\
        up to the current drafts, also compressed with gzip or zstd. A file that is cut\n\
        or broken is read up to there."
)]
pub struct QlogArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with a file.
#[derive(Subcommand, Debug, Clone)]
pub enum Verb {
    /// Check files against the specification, and for what qvis needs
    Check(CheckArgs),
    /// Show the figures of a connection on one screen
    Summary(OneFileArgs),
    /// Show what limited the sender, in shares of the time, with the evidence
    Why(OneFileArgs),
    /// Look for what must not happen: a window that never recovers, recovery without
    /// a loss, storms of probes
    Oracles(OraclesArgs),
    /// Show where two files part: the first events that differ
    Diff(DiffArgs),
    /// Draw a file as SVG: bytes, window, round-trip time, pacing rate, states
    Plot(PlotArgs),
    /// Write the events of a file as comma-separated values
    Convert(ConvertArgs),
}

/// The flags of `tidegate qlog check`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog check traces/*.sqlog\n  \
        tidegate qlog check --for structure other.qlog.gz\n\n\
        Exit status: 0 nothing is wrong, 1 something is, 2 error.")]
pub struct CheckArgs {
    /// Files to check
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// What to check for: structure (the specification), qvis (the viewer)
    #[arg(long = "for", value_name = "LIST", value_delimiter = ',', value_parser = parse_profile,
        default_value = "structure,qvis")]
    pub profiles: Vec<Profile>,

    /// How many findings to print for each file; all are counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub most: usize,
}

/// The flags of `tidegate qlog summary` and `tidegate qlog why`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog summary traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog why traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog why --json server.sqlog.gz\n\n\
        Exit status: 0 done, 2 error.")]
pub struct OneFileArgs {
    /// File to look into
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `tidegate qlog oracles`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog oracles traces/*_server.sqlog\n\n\
        Exit status: 0 nothing was found, 1 something was, 2 error.")]
pub struct OraclesArgs {
    /// Files to look into
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// The flags of `tidegate qlog diff`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog diff before/8eb7041ee7431fb4_server.sqlog \\\n    \
        after/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog diff cubic.sqlog newreno.sqlog --ignore cc_algorithm\n\n\
        Headers may differ; what counts is events. Exit status: 0 the same, 1 not the\n\
        same, 2 error.")]
pub struct DiffArgs {
    /// One file
    #[arg(value_name = "A")]
    pub one: PathBuf,

    /// The other
    #[arg(value_name = "B")]
    pub other: PathBuf,

    /// Members that may differ, separated by commas, by the names this command prints
    #[arg(long = "ignore", value_name = "LIST", value_delimiter = ',')]
    pub ignored: Vec<String>,
}

/// The flags of `tidegate qlog plot`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog plot traces/8eb7041ee7431fb4_server.sqlog -o trace.svg\n\n\
        Exit status: 0 done, 2 error.")]
pub struct PlotArgs {
    /// File to draw
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// File to write to, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

/// The flags of `tidegate qlog convert`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:\n  \
        tidegate qlog convert traces/8eb7041ee7431fb4_server.sqlog -o trace.csv\n  \
        tidegate qlog convert server.sqlog.zst | head -3\n\n\
        Exit status: 0 done, 2 error.")]
pub struct ConvertArgs {
    /// File to convert
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// File to write to, or - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}

fn parse_profile(word: &str) -> Result<Profile, String> {
    [Profile::Structure, Profile::Qvis]
        .into_iter()
        .find(|profile| profile.as_str() == word)
        .ok_or_else(|| "allowed are structure and qvis".to_owned())
}

/// Runs `tidegate qlog` on the standard streams.
pub fn run(args: &QlogArgs) -> ExitStatus {
    let shows_progress = io::stderr().is_terminal();
    let mut streams = Streams {
        out: &mut io::stdout().lock(),
        err: &mut io::stderr(),
        shows_progress,
    };
    run_on(args, &mut streams)
}

/// Runs `tidegate qlog` on the given streams.
pub fn run_on(args: &QlogArgs, streams: &mut Streams<'_>) -> ExitStatus {
    let done = match &args.verb {
        Verb::Check(args) => check_files(args, streams),
        Verb::Summary(args) => summarise(args, streams),
        Verb::Why(args) => explain(args, streams),
        Verb::Oracles(args) => ask_oracles(args, streams),
        Verb::Diff(args) => show_difference(args, streams),
        Verb::Plot(args) => draw(args, streams),
        Verb::Convert(args) => convert(args, streams),
    };
    match done {
        Ok(true) => ExitStatus::Met,
        Ok(false) => ExitStatus::NotMet,
        Err(message) => complain(streams, &message),
    }
}

fn open(path: &Path) -> Result<Reader<'static>, String> {
    match fs::metadata(path) {
        Err(error) => return Err(format!("cannot open {}: {error}", path.display())),
        Ok(data) if data.is_dir() => {
            return Err(format!("cannot open {}: it is a directory", path.display()));
        }
        Ok(_) => {}
    }
    Reader::open(path).map_err(|fault| unreadable(path, &fault))
}

fn unreadable(path: &Path, fault: &Fault) -> String {
    format!("{}: {fault}", path.display())
}

/// Analyses a file. That it ends too early is told, and what is before the end is used.
fn analysed(path: &Path, streams: &mut Streams<'_>) -> Result<Analysis, String> {
    let analysis = analyse(open(path)?);
    if let Some(fault) = &analysis.fault {
        warn(streams, path, fault)?;
    }
    Ok(analysis)
}

fn warn(streams: &mut Streams<'_>, path: &Path, fault: &Fault) -> Result<(), String> {
    let line = format!(
        "warning: {}; what is before it is used\n",
        unreadable(path, fault)
    );
    print(streams.err, &line, "standard error")
}

fn summarise(args: &OneFileArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    let summary = analysed(&args.file, streams)?.summary;
    let text = match args.json {
        true => format!("{:#}\n", summary.json()),
        false => summary.to_string(),
    };
    print(streams.out, &text, "standard output")?;
    Ok(true)
}

fn explain(args: &OneFileArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    let why = analysed(&args.file, streams)?.why;
    let text = match args.json {
        true => format!("{:#}\n", why.json()),
        false => why.to_string(),
    };
    print(streams.out, &text, "standard output")?;
    Ok(true)
}

fn ask_oracles(args: &OraclesArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    each_file(&args.files, streams, |path, streams| {
        let name = path.display();
        let analysis = analyse(open(path)?);
        let mut text = String::new();
        for violation in &analysis.violations {
            text.push_str(&format!("{name}: {violation}\n"));
        }
        // What could not be read to its end is not in order, whatever came before.
        if let Some(fault) = &analysis.fault {
            text.push_str(&format!("{name}: {fault}\n"));
        }
        let is_silent = text.is_empty();
        if is_silent {
            text.push_str(&format!("{name}: ok\n"));
        }
        print(streams.out, &text, "standard output")?;
        Ok(is_silent)
    })
}

/// Looks into one file after the other, also after one that cannot be opened; the last error is the result then.
fn each_file(
    files: &[PathBuf],
    streams: &mut Streams<'_>,
    mut look: impl FnMut(&Path, &mut Streams<'_>) -> Result<bool, String>,
) -> Result<bool, String> {
    let (mut is_well, mut failed) = (true, None);
    for path in files {
        match look(path, streams) {
            Ok(is_right) => is_well &= is_right,
            Err(message) => {
                if let Some(earlier) = failed.replace(message) {
                    complain(streams, &earlier);
                }
            }
        }
    }
    failed.map_or(Ok(is_well), Err)
}

fn show_difference(args: &DiffArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    /// More members than this tell nothing more.
    const MOST_MEMBERS: usize = 12;
    let paths = [&args.one, &args.other];
    let comparison = compare(open(paths[0])?, open(paths[1])?, &args.ignored);
    for (path, fault) in paths.iter().zip(&comparison.faults) {
        if let Some(fault) = fault {
            warn(streams, path, fault)?;
        }
    }
    let mut text = String::new();
    for line in &comparison.header {
        text.push_str(&format!("header: {line}\n"));
    }
    let upto = comparison.last_same.map_or(String::new(), |(number, at)| {
        format!(", up to record {number} at {}", millis(at))
    });
    text.push_str(&format!(
        "{} events are the same{upto}\n",
        comparison.same_count
    ));
    if let Some(parting) = &comparison.parting {
        for ((letter, path), record) in ["A", "B"].iter().zip(paths).zip(&parting.records) {
            let what = match record {
                Some(record) => format!(
                    "record {} at {}: {}",
                    record.number,
                    millis(record.at),
                    record.name
                ),
                None => "has ended".to_owned(),
            };
            text.push_str(&format!("{letter} {}: {what}\n", path.display()));
        }
        for member in parting.members.iter().take(MOST_MEMBERS) {
            text.push_str(&format!("  {member}\n"));
        }
        let hidden = parting.members.len().saturating_sub(MOST_MEMBERS);
        if hidden > 0 {
            text.push_str(&format!("  and {hidden} more\n"));
        }
    }
    print(streams.out, &text, "standard output")?;
    Ok(comparison.is_same())
}

fn draw(args: &PlotArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    let reader = open(&args.file)?;
    refuse_to_overwrite(&args.file, &args.output)?;
    let target = Target::open(&args.output)?;
    let header = reader.header();
    let title = header.title.clone().filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| args.file.display().to_string());
    let side = header.vantage_point.map(|side| side.as_str().to_owned());
    let about: Vec<String> = [side, header.name.clone(), header.group_id.clone()]
        .into_iter()
        .flatten()
        .collect();
    let mut plot = TracePlot::default();
    if let Some(fault) = follow(reader, |sample| plot.on_sample(&sample)) {
        warn(streams, &args.file, &fault)?;
    }
    target.write(streams, &plot.svg(&title, &about.join(", ")))?;
    Ok(true)
}

/// The file that is read is not written over, by whatever name it is called.
fn refuse_to_overwrite(file: &Path, output: &Path) -> Result<(), String> {
    let identity = |path| fs::metadata(path).map(|data| (data.dev(), data.ino()));
    match (identity(file), identity(output)) {
        (Ok(file), Ok(there)) if file == there => Err(format!(
            "{} is the file that is read; give -o another name",
            output.display()
        )),
        _ => Ok(()),
    }
}

/// Line by line: a file of any size passes.
fn convert(args: &ConvertArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    let mut reader = open(&args.file)?;
    refuse_to_overwrite(&args.file, &args.output)?;
    let is_stdout = args.output.as_os_str() == "-";
    let name = match is_stdout {
        true => "standard output".to_owned(),
        false => args.output.display().to_string(),
    };
    let mut file = match is_stdout {
        true => None,
        false => {
            let file = File::create(&args.output);
            let file = file.map_err(|error| format!("cannot write {name}: {error}"))?;
            Some(BufWriter::new(file))
        }
    };
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => streams.out,
    };
    let mut text = csv::head();
    let mut fault = None;
    loop {
        let next = reader.next();
        if let Some(Ok(record)) = &next {
            text.push_str(&csv::line(record, reader.header()));
        }
        let is_over = !matches!(next, Some(Ok(_)));
        if is_over || text.len() > PIECE_BYTES {
            match out.write_all(text.as_bytes()) {
                // A reader who has left is satisfied.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(true),
                other => other.map_err(|error| format!("cannot write to {name}: {error}"))?,
            }
            text.clear();
        }
        if is_over {
            if let Some(Err(found)) = next {
                fault = Some(found);
            }
            break;
        }
    }
    print(out, "", &name)?;
    if let Some(fault) = fault {
        warn(streams, &args.file, &fault)?;
    }
    Ok(true)
}

/// How much of a table is handed over at once.
const PIECE_BYTES: usize = 64 * 1024;

fn check_files(args: &CheckArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    each_file(&args.files, streams, |path, streams| {
        let name = path.display();
        let checked = check(open(path)?, &args.profiles, args.most);
        let mut text = String::new();
        for finding in &checked.findings {
            text.push_str(&format!("{name}: {finding}\n"));
        }
        if let Some(fault) = &checked.fault {
            text.push_str(&format!("{name}: {fault}\n"));
        }
        let shown = checked.findings.len() as u64;
        let hidden = checked.structure_count + checked.qvis_count - shown;
        if hidden > 0 {
            text.push_str(&format!("{name}: {hidden} more\n"));
        }
        let counts: Vec<String> = [
            (Profile::Structure, checked.structure_count),
            (Profile::Qvis, checked.qvis_count),
        ]
        .into_iter()
        .filter(|(profile, _)| args.profiles.contains(profile))
        .map(|(profile, count)| {
            let word = match count {
                0 => "ok".to_owned(),
                1 => "1 finding".to_owned(),
                count => format!("{count} findings"),
            };
            format!("{} {word}", profile.as_str())
        })
        .collect();
        text.push_str(&format!(
            "{name}: {} events, {}\n",
            checked.event_count,
            counts.join(", ")
        ));
        print(streams.out, &text, "standard output")?;
        Ok(checked.is_right())
    })
}
