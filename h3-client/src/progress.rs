//! How a download goes, on standard error: bars on a terminal, a line now and then elsewhere.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use units::{ByteCount, Rate};

use crate::cli::human;
use crate::download::{Observer, Report};
use crate::error::Failure;

/// Between two lines about the same download, unless a tenth of it is complete first.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Between two such lines at least.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// What is shown of all downloads of one command.
pub(crate) struct Progress {
    downloads: Vec<Download>,
    bars: Option<MultiProgress>,
    is_quiet: bool,
}

struct Download {
    /// Where it goes, for progress.
    name: String,
    /// Where it comes from, for errors.
    url: String,
    state: Mutex<State>,
}

struct State {
    since: Instant,
    received: u64,
    size: Option<u64>,
    /// Tenths that a line was written about.
    told_tenths: u64,
    told_at: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(
        downloads: impl Iterator<Item = (String, String)>,
        is_quiet: bool,
        is_terminal: bool,
    ) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let has_bars = is_terminal && !is_quiet && !is_dumb;
        let now = now();
        let downloads = downloads
            .map(|(name, url)| Download {
                name,
                url,
                state: Mutex::new(State {
                    since: now,
                    received: 0,
                    size: None,
                    told_tenths: 0,
                    told_at: now,
                    bar: None,
                }),
            })
            .collect();
        let bars = has_bars.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Self {
            downloads,
            bars,
            is_quiet,
        }
    }

    /// An observer of the downloads at these places.
    pub(crate) fn of<'a>(&'a self, places: &'a [usize]) -> impl Observer + 'a {
        GroupProgress {
            progress: self,
            places,
        }
    }

    /// The download at `place` is over.
    pub(crate) fn end(&self, place: usize, outcome: &Result<Report, Failure>) {
        let download = &self.downloads[place];
        let state = download
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = &state.bar {
            bar.finish_and_clear();
        }
        let name = &download.name;
        match outcome {
            Ok(_) if self.is_quiet => {}
            Ok(report) => {
                let span = now().saturating_duration_since(state.since);
                let rate = match Rate::from_bytes_per(report.size, span).as_bps() / 1_000_000 {
                    0 => String::new(),
                    mbps => format!(" ({mbps} Mbit/s)"),
                };
                let seconds = format!("{}.{:02} s", span.as_secs(), span.subsec_millis() / 10);
                let checked = if report.sha256.is_some() {
                    ", SHA-256 is right"
                } else {
                    ""
                };
                let size = human(report.size);
                self.say(&format!("{name}: {size} in {seconds}{rate}{checked}"));
            }
            Err(failure) => self.say(&format!("error: {}: {failure}", download.url)),
        }
    }

    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| write_line(line)),
            None => write_line(line),
        }
    }

    fn begin(&self, place: usize, size: Option<ByteCount>) {
        let download = &self.downloads[place];
        let mut state = download
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.since = now();
        state.told_at = state.since;
        state.size = size.map(ByteCount::as_u64);
        if let Some(bars) = &self.bars {
            let bar = ProgressBar::new(0).with_message(download.name.clone());
            let template = match size {
                Some(size) => {
                    bar.set_length(size.as_u64());
                    "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
                }
                None => "{msg} {spinner} {decimal_bytes}, {decimal_bytes_per_sec}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            state.bar = Some(bars.add(bar));
        }
    }

    fn advance(&self, place: usize, size: ByteCount) {
        let download = &self.downloads[place];
        let mut state = download
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.received += size.as_u64();
        if let Some(bar) = &state.bar {
            bar.set_position(state.received);
            return;
        }
        if self.is_quiet {
            return;
        }
        let tenths = state
            .size
            .filter(|&size| size > 0)
            .map_or(0, |size| units::math::mul_div(state.received, 10, size));
        let now = now();
        let is_complete = state.size == Some(state.received);
        let silence = now.saturating_duration_since(state.told_at);
        let is_due = silence >= LINE_INTERVAL
            || (tenths > state.told_tenths && silence >= SHORTEST_INTERVAL);
        // The end is told by the summary.
        if is_complete || !is_due {
            return;
        }
        state.told_tenths = tenths;
        state.told_at = now;
        let received = human(ByteCount::new(state.received));
        let line = match state.size {
            Some(size) => {
                let percent = units::math::mul_div(state.received, 100, size.max(1));
                let size = human(ByteCount::new(size));
                format!("{}: {percent} %, {received} of {size}", download.name)
            }
            None => format!("{}: {received}", download.name),
        };
        write_line(&line);
    }
}

struct GroupProgress<'a> {
    progress: &'a Progress,
    places: &'a [usize],
}

impl Observer for GroupProgress<'_> {
    fn on_response(&self, job: usize, size: Option<ByteCount>) {
        self.progress.begin(self.places[job], size);
    }

    fn on_data(&self, job: usize, size: ByteCount) {
        self.progress.advance(self.places[job], size);
    }
}

fn write_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command line lives in real time"
)]
fn now() -> Instant {
    Instant::now()
}
