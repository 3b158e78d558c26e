//! The command `qlog`: looks into qlog files, ours and those of other programs.
//!
//! The work is in the crate `qlogs`; here are the flags, the files, what is printed and the exit status.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use qlogs::analyse::{Analysis, analyse};
use qlogs::check::{Profile, check};
use qlogs::read::{Fault, Reader};

use crate::cli::{ExitStatus, Streams, complain, print};

/// The flags of `tidegate qlog`.
#[derive(Args, Debug, Clone)]
#[command(
    about = "Look into qlog files, ours and those of other programs",
    after_help = "Examples:\n  \
        tidegate qlog check traces/*.sqlog\n  \
        tidegate qlog summary traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog why traces/8eb7041ee7431fb4_server.sqlog\n  \
        tidegate qlog oracles traces/*_server.sqlog\n\n\
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
    };
    match done {
        Ok(true) => ExitStatus::Met,
        Ok(false) => ExitStatus::NotMet,
        Err(message) => complain(streams, &message),
    }
}

fn open(path: &Path) -> Result<Reader<'static>, String> {
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
    let mut is_silent = true;
    for path in &args.files {
        let name = path.display();
        let violations = analysed(path, streams)?.violations;
        is_silent &= violations.is_empty();
        let mut text = String::new();
        for violation in &violations {
            text.push_str(&format!("{name}: {violation}\n"));
        }
        if violations.is_empty() {
            text.push_str(&format!("{name}: ok\n"));
        }
        print(streams.out, &text, "standard output")?;
    }
    Ok(is_silent)
}

fn check_files(args: &CheckArgs, streams: &mut Streams<'_>) -> Result<bool, String> {
    let mut is_right = true;
    for path in &args.files {
        let name = path.display();
        let checked = check(open(path)?, &args.profiles, args.most);
        is_right &= checked.is_right();
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
    }
    Ok(is_right)
}
