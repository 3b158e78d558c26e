//! The command line of the client: from URLs to files, with a word on how it goes.
//!
//! Everything here lives in real time on tokio; the work is in [`mod@crate::download`]. Standard output
//! carries nothing but the body (with `--output -`); all words go to standard error.

use std::fs;
use std::future::Future;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cc::Algorithm;
use clap::Args;
use quic_core::tls::{self, ALPN_H3, TlsOptions, Trust};
use quic_core::{ClientConfig, EndpointConfig, LogFactory, log_to_directory};
use tokio::sync::watch;
use units::ByteCount;

use crate::connect::{Connector, Override, connect};
use crate::download::{Cancel, Job, Report, download};
use crate::error::{Error, Failure, Phase};
use crate::progress::Progress;
use crate::sink::{FileSink, Sink, WriteSink};
use crate::url::Url;

const EXAMPLES: &str = "\
Examples:
  tidegate get https://files.example/disk.img
  tidegate get --ca ca.pem https://localhost:4433/hello.txt
  tidegate get --insecure https://localhost:4433/bytes/10MB -o ten.bin
  tidegate get --sha256 SUM https://files.example/disk.img --output-dir downloads
  tidegate get --output - https://files.example/list.txt | sort

A file that is not complete is NAME.part, one with a wrong checksum is NAME.bad; NAME itself
appears only when everything is right.

Exit codes: 2 usage, 3 URL, 6 name not resolved, 7 unreachable, 18 ended early, 22 HTTP error,
23 cannot write, 26 cannot read a local file, 28 timeout, 35 TLS, 60 certificate, 95 HTTP/3,
96 QUIC or not HTTP/3, 100 wrong checksum, 130 SIGINT, 143 SIGTERM.";

/// Download files over HTTP/3
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    /// What to download: https URLs. Those of one server share a connection
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,

    /// File to write to, or - for standard output; needs exactly one URL. The default is the last
    /// part of the URL
    #[arg(long, short, value_name = "FILE", conflicts_with = "output_dir")]
    pub output: Option<PathBuf>,

    /// Directory to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub output_dir: PathBuf,

    /// SHA-256 that the file must have, 64 hexadecimal digits; needs exactly one URL
    #[arg(long, value_name = "SUM", value_parser = parse_sha256)]
    pub sha256: Option<Sha256>,

    /// Trust the certificates in this PEM file, and no others
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Trust any certificate; whoever answers is believed
    #[arg(long)]
    pub insecure: bool,

    /// Congestion controller of this side: newreno, cubic, bbr3 or fixed:RATE. The speed of a download
    /// is decided by the server's
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: Algorithm,

    /// Write one qlog file per connection into this directory
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,

    /// Append the TLS secrets of every connection to this file, for Wireshark [env: SSLKEYLOGFILE]
    #[arg(long, value_name = "FILE")]
    pub keylog: Option<PathBuf>,

    /// How long connecting may take
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = units::parse_duration)]
    pub connect_timeout: Duration,

    /// How long everything may take
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub max_time: Option<Duration>,

    /// Connect to ADDR when a URL says HOST:PORT; the certificate must still be for HOST
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub resolve: Vec<Override>,

    /// How many downloads of one server go on at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub parallel: u16,

    /// No progress and no summary; errors only
    #[arg(long, short)]
    pub quiet: bool,
}

/// A SHA-256 given on the command line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sha256(pub [u8; 32]);

fn parse_sha256(text: &str) -> Result<Sha256, String> {
    let wrong = || {
        format!(
            "expected 64 hexadecimal digits, got {}",
            text.chars().count()
        )
    };
    let mut sum = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    for (byte, pair) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(Sha256(sum))
}

/// Runs the downloads. 0: all are complete; otherwise the code of the first that is not.
pub fn run(args: &GetArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say_error(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        let (sender, signal) = watch::channel(None);
        tokio::spawn(forward_signals(sender));
        tokio::spawn(give_up_on_blocked_writes(args.max_time, signal.clone()));
        let key_log = std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from);
        let outcomes = get(args, key_log, signal).await;
        outcomes
            .into_iter()
            .find_map(Result::err)
            .map_or(0, |failure| failure.error.exit_code())
    });
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// Downloads what `args` ask for and says how it went on standard error. One result a URL, in
/// their order. `key_log` is used if the arguments name none; a number in `signal` ends it all.
pub async fn get(
    args: &GetArgs,
    key_log: Option<PathBuf>,
    signal: watch::Receiver<Option<u8>>,
) -> Vec<Result<Report, Failure>> {
    let plan = match plan(args, key_log) {
        Ok(plan) => plan,
        Err(error) => {
            say_error(&error.to_string());
            return vec![Err(error.into())];
        }
    };
    let Plan { targets, connector } = plan;
    let downloads = targets
        .iter()
        .map(|target| (target.sink.name(), target.url.to_string()));
    let progress = Progress::new(downloads, args.quiet, io::stderr().is_terminal());
    let deadline = args.max_time.map(tokio::time::sleep);
    let cancel = cancel(args.max_time, deadline, signal);
    // One future that keeps its answer, so that each connection can ask it.
    let cancelled = Arc::new(tokio::sync::OnceCell::new());
    let mut cancel = std::pin::pin!(async { *cancelled.get_or_init(|| cancel).await });

    let mut results: Vec<Option<Result<Report, Failure>>> = targets.iter().map(|_| None).collect();
    let mut waiting: Vec<(usize, Target)> = targets.into_iter().enumerate().collect();
    while let Some((_, first)) = waiting.first() {
        let url = first.url.clone();
        let (group, rest) = waiting
            .into_iter()
            .partition(|(_, target)| target.url.has_same_authority(&url));
        waiting = rest;
        let (places, group): (Vec<usize>, Vec<Target>) = group.into_iter().unzip();
        let outcomes = match cancelled.get() {
            Some(why) => fail_all(&group, why.error(Phase::Connect)),
            None => {
                get_group(
                    args,
                    &connector,
                    &url,
                    group,
                    &places,
                    &progress,
                    &mut cancel,
                )
                .await
            }
        };
        for (place, outcome) in places.into_iter().zip(outcomes) {
            progress.end(place, &outcome);
            results[place] = Some(outcome);
        }
    }
    results.into_iter().flatten().collect()
}

/// One URL and where it goes.
struct Target {
    url: Url,
    sink: Box<dyn Sink>,
    sha256: Option<[u8; 32]>,
}

/// Everything that can be known to be wrong before a packet is sent.
struct Plan {
    targets: Vec<Target>,
    connector: Connector,
}

fn plan(args: &GetArgs, key_log: Option<PathBuf>) -> Result<Plan, Error> {
    let usage = |problem: &str| Error::Usage {
        problem: problem.into(),
    };
    if args.urls.len() > 1 && args.output.is_some() {
        return Err(usage(
            "--output needs exactly one URL; use --output-dir for several",
        ));
    }
    if args.urls.len() > 1 && args.sha256.is_some() {
        return Err(usage("--sha256 needs exactly one URL"));
    }
    let mut targets: Vec<Target> = Vec::new();
    for text in &args.urls {
        let url: Url = text.parse()?;
        let sink: Box<dyn Sink> = match &args.output {
            Some(path) if path == Path::new("-") => Box::new(WriteSink::stdout()),
            Some(path) => Box::new(FileSink::new(path)),
            None => Box::new(FileSink::new(args.output_dir.join(url.file_name()?))),
        };
        if targets
            .iter()
            .any(|target| target.sink.name() == sink.name())
        {
            return Err(usage(&format!(
                "two URLs would both be saved as {}",
                sink.name()
            )));
        }
        targets.push(Target {
            url,
            sink,
            sha256: args.sha256.map(|sum| sum.0),
        });
    }
    let trust = match (&args.ca, args.insecure) {
        (Some(path), _) => Trust::CaFile(path.clone()),
        (None, true) => {
            warn("--insecure: the certificate is not checked, anyone could have answered");
            Trust::Insecure
        }
        (None, false) => Trust::Platform,
    };
    let key_log = args.keylog.clone().or(key_log);
    if let Some(path) = &key_log {
        warn(&format!(
            "TLS secrets go to {}: whoever reads it reads the traffic",
            path.display()
        ));
    }
    let options = TlsOptions::REAL.with_key_log(key_log.as_deref());
    let tls = tls::client_config(&trust, &[ALPN_H3], &options)?;
    let local = |problem: String| Error::Quic {
        phase: Phase::Connect,
        problem,
    };
    let client = ClientConfig::new(tls).map_err(|error| local(error.to_string()))?;
    let config = EndpointConfig {
        algorithm: args.cc,
        log: args.qlog.as_deref().map(qlog_factory).transpose()?,
        ..EndpointConfig::default()
    };
    let overrides = args.resolve.clone();
    let connector = Connector {
        config,
        client,
        overrides,
        timeout: args.connect_timeout,
    };
    Ok(Plan { targets, connector })
}

fn fail_all(group: &[Target], error: Error) -> Vec<Result<Report, Failure>> {
    let error = Arc::new(error);
    group.iter().map(|_| Err(error.clone().into())).collect()
}

/// Everything of one server, over one connection.
async fn get_group(
    args: &GetArgs,
    connector: &Connector,
    url: &Url,
    group: Vec<Target>,
    places: &[usize],
    progress: &Progress,
    mut cancel: &mut std::pin::Pin<&mut impl Future<Output = Cancel>>,
) -> Vec<Result<Report, Failure>> {
    let connected = tokio::select! {
        connected = connect(connector, url) => connected,
        why = &mut cancel => Err(why.error(Phase::Connect)),
    };
    let (endpoint, connection) = match connected {
        Ok(connected) => connected,
        Err(error) => return fail_all(&group, error),
    };
    let jobs = group
        .into_iter()
        .map(|Target { url, sink, sha256 }| Job { url, sink, sha256 })
        .collect();
    let connection = quic_core::h3_adapter::Connection::new(connection);
    let observer = progress.of(places);
    let parallel = usize::from(args.parallel);
    let results = download(connection, jobs, parallel, &observer, cancel).await;
    // The last packet says that the connection is closed; what the server says to that is not
    // waited for.
    let _ = tokio::time::timeout(Duration::from_millis(100), endpoint.wait_idle()).await;
    results
}

async fn cancel(
    max_time: Option<Duration>,
    deadline: Option<tokio::time::Sleep>,
    mut signal: watch::Receiver<Option<u8>>,
) -> Cancel {
    let time_is_up = async {
        match (max_time, deadline) {
            (Some(span), Some(deadline)) => {
                deadline.await;
                Cancel::MaxTime(span)
            }
            _ => std::future::pending().await,
        }
    };
    let interrupted = async {
        let number = signal.wait_for(Option::is_some).await.map(|number| *number);
        match number {
            Ok(number) => Cancel::Signal(number.unwrap_or(2)),
            // Nobody can send one any more.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        why = time_is_up => why,
        why = interrupted => why,
    }
}

/// Ends the process when a signal or the time limit has not ended the downloads two seconds later: a
/// write to a pipe that nobody reads blocks for as long as it likes. What is incomplete still has the
/// name of something incomplete.
async fn give_up_on_blocked_writes(
    max_time: Option<Duration>,
    signal: watch::Receiver<Option<u8>>,
) {
    let deadline = max_time.map(tokio::time::sleep);
    let why = cancel(max_time, deadline, signal).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    say_error("given up: the output takes no more data");
    std::process::exit(match why {
        Cancel::MaxTime(_) => 28,
        Cancel::Signal(number) => 128 + i32::from(number),
    });
}

async fn forward_signals(sender: watch::Sender<Option<u8>>) {
    use tokio::signal::unix::{SignalKind, signal};
    let handlers = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    let (Ok(mut interrupt), Ok(mut terminate)) = handlers else {
        return;
    };
    let number = tokio::select! {
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
    };
    if sender.send(Some(number)).is_ok() {
        sender.closed().await;
    }
}

fn qlog_factory(directory: &Path) -> Result<LogFactory, Error> {
    fs::create_dir_all(directory).map_err(|error| Error::Write {
        target: directory.display().to_string(),
        error,
        size: None,
    })?;
    Ok(log_to_directory(directory, Arc::new(warn)))
}

fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}

fn say_error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {text}");
}

/// A size for people: "10 MB" stays, "1048577 B" becomes "1.0 MB".
pub(crate) fn human(size: ByteCount) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
    ];
    let bytes = size.as_u64();
    for (unit, name) in UNITS {
        if bytes >= unit {
            let tenths = units::math::mul_div(bytes, 10, unit);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: GetArgs,
    }

    fn parse(words: &[&str]) -> Result<GetArgs, String> {
        let words = std::iter::once("get").chain(words.iter().copied());
        Cli::try_parse_from(words)
            .map(|cli| cli.args)
            .map_err(|error| error.to_string())
    }

    fn problem(words: &[&str]) -> String {
        match parse(words).map(|args| plan(&args, None)) {
            Err(usage) => usage,
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(_)) => String::new(),
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_named() {
        let url = "https://a.example/x";
        assert_eq!(problem(&["--insecure", url]), "");
        for (words, expected) in [
            (&[][..], "URL"),
            (&["-o", "f", url, "https://a.example/y"], "exactly one URL"),
            (
                &["--sha256", &"0".repeat(64), url, "https://a.example/y"],
                "exactly one URL",
            ),
            (
                &["--insecure", url, "https://b.example/x"],
                "both be saved as ./x",
            ),
            (
                &["-o", "f", "--output-dir", "d", url],
                "cannot be used with",
            ),
            (&["--ca", "f", "--insecure", url], "cannot be used with"),
            (&["--sha256", "abc", url], "64 hexadecimal digits"),
            (&["--cc", "vegas", url], "newreno, cubic"),
            (&["--max-time", "5 parsecs", url], "parsecs"),
            (&["--resolve", "a:443", url], "HOST:PORT:ADDR"),
            (&["--parallel", "0", url], "1..=100"),
            (&["--ca", "/nowhere/ca.pem", url], "/nowhere/ca.pem"),
            (&["http://a.example/"], "only https"),
        ] {
            let problem = problem(words);
            assert!(
                problem.contains(expected),
                "{words:?}: {problem:?} lacks {expected:?}"
            );
        }
    }

    #[test]
    fn sizes_are_rounded_down_to_a_tenth() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (1_999, "1.9 kB"),
            (10_000_000, "10.0 MB"),
            (u64::MAX, "18446744.0 TB"),
        ] {
            assert_eq!(human(ByteCount::new(bytes)), text);
        }
    }
}
