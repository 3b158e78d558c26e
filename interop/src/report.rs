//! What the user sees of the runs: a table for a terminal of 80 columns, and JSON.
//!
//! Floats live here and in `stats` only; they are for reading and never decide anything.

use std::fmt::Write as _;
use std::time::Duration;

use units::{Timestamp, format_duration};

use crate::expect::{Dimension, Judgement, Metric, Verdict, measure_only};
use crate::results::{FlowResult, Outcome, Percentiles, RunResult};
use crate::runner::Group;
use crate::scenario::Scenario;
use crate::stats::{failure_bound, median_interval, nearest_rank};
use crate::text::{Columns, WIDTH, decimal, show, wrap};

mod json;

/// The version of the JSON document; it changes when a key changes its meaning or goes away.
pub const JSON_VERSION: u32 = 1;

/// The bootstrap draws from its own seed, so that a report is the same each time.
const BOOTSTRAP_SEED: u64 = 1;

/// Everything a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its runs, by download and controller.
    pub groups: &'a [Group],
    /// Whether they were played over real sockets.
    pub is_real: bool,
    /// When a run ended whatever happens.
    pub limit: Duration,
}

impl Report<'_> {
    /// Whether every band of every group is met.
    ///
    /// Bands that say nothing about these runs, because they are over real sockets, too few or too short, do not
    /// count against them.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.groups
            .iter()
            .flat_map(|group| &group.verdicts)
            .all(Self::counts_as_met)
    }

    /// Whether some run is not judged because the relay could not keep time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let mut runs = self.groups.iter().flat_map(|group| &group.runs);
        runs.any(RunResult::is_late)
    }

    fn counts_as_met(verdict: &Verdict) -> bool {
        match verdict.judgement {
            Judgement::Met | Judgement::NotJudged(_) => true,
            Judgement::Missed => false,
        }
    }

    /// The table and everything below it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write_head(&mut out);
        self.write_table(&mut out);
        self.write_failures(&mut out);
        self.write_intervals(&mut out);
        self.write_timing(&mut out);
        self.write_flows(&mut out);
        self.write_article(&mut out);
        self.write_bands(&mut out);
        out
    }

    fn write_head(&self, out: &mut String) {
        line(
            out,
            0,
            &format!("{}: {}", self.scenario.name, self.scenario.about),
        );
        let runs = self.groups.first().map_or(0, |group| group.runs.len());
        let clock = if self.is_real {
            "over real sockets"
        } else {
            "in virtual time"
        };
        line(
            out,
            0,
            &format!(
                "{runs} {} per controller, {clock}, limit {}",
                plural(runs, "run"),
                format_duration(self.limit)
            ),
        );
        out.push('\n');
    }

    fn write_table(&self, out: &mut String) {
        let is_bulk = self.scenario.is_bulk();
        let values = if is_bulk {
            [("Mbit/s", "p50"), ("Mbit/s", "min"), ("Mbit/s", "max")]
        } else {
            [("time", "p50 s"), ("time", "p95 s"), ("time", "max s")]
        };
        let mut header = vec![("", "controller"), ("runs", "done")];
        header.extend(values);
        header.extend([
            ("lost,", "resent"),
            ("", "PTO"),
            ("state", "changes"),
            ("min.", "window"),
            ("", "verdict"),
        ]);
        let mut columns = Columns::new(header);
        let has_cases = self.scenario.cases.len() > 1;
        let mut case = None;
        for group in self.groups {
            if has_cases && case != Some(&group.case) {
                columns.heading(format!("{}:", group.case.name));
                case = Some(&group.case);
            }
            columns.row(self.row(group, is_bulk));
        }
        columns.write_to(out);
        out.push('\n');
        line(
            out,
            0,
            "Packets lost and resent, probe timeouts (PTO), changes of the congestion state and time \
             at the minimum window are medians over the runs.",
        );
    }

    fn row(&self, group: &Group, is_bulk: bool) -> Vec<String> {
        let runs = &group.runs;
        let completed = completed_count(runs);
        let mut cells = vec![
            group.controller.to_string(),
            format!("{completed}/{}", runs.len()),
        ];
        if is_bulk {
            let rates = sorted(runs.iter().map(|run| run.goodput_bps));
            let cell = |rate: Option<u64>| {
                rate.map_or_else(|| "-".to_owned(), |rate| decimal(rate, 1_000_000, 2))
            };
            cells.push(cell(nearest_rank(&rates, 500)));
            cells.push(cell(rates.first().copied()));
            cells.push(cell(rates.last().copied()));
        } else {
            let mut times: Vec<Option<u64>> = runs.iter().map(|run| run.completion_ns).collect();
            times.sort_by_key(|time| (time.is_none(), *time));
            // A run that did not complete has no time; where it decides, the cell says so.
            let limit = format!(">{}", decimal(nanos(self.limit), 1_000_000_000, 0));
            let cell = |time: Option<Option<u64>>| match time {
                Some(Some(time)) => decimal(time, 1_000_000_000, 3),
                Some(None) => limit.clone(),
                None => "-".to_owned(),
            };
            cells.push(cell(nearest_rank(&times, 500)));
            cells.push(cell(nearest_rank(&times, 950)));
            cells.push(cell(times.last().copied()));
        }
        let median = |value: fn(&RunResult) -> u64| {
            nearest_rank(&sorted(runs.iter().map(value)), 500).unwrap_or(0)
        };
        cells.push(median(|run| run.packets_lost).to_string());
        cells.push(median(|run| run.pto_count).to_string());
        cells.push(median(RunResult::transition_count).to_string());
        let at_minimum = median(|run| run.time_at_minimum_ns);
        cells.push(format!("{} s", decimal(at_minimum, 1_000_000_000, 2)));
        cells.push(self.verdict_word(group));
        cells
    }

    fn verdict_word(&self, group: &Group) -> String {
        let is_met = group.verdicts.iter().all(Self::counts_as_met);
        let is_judged = |verdict: &Verdict| !matches!(verdict.judgement, Judgement::NotJudged(_));
        let word = match (group.verdicts.iter().any(is_judged), is_met) {
            (false, _) => "-",
            (true, false) => "MISSED",
            // What is wrong on purpose has failed as it is expected to.
            (true, true) if group.controller.is_faulty() => "caught",
            (true, true) => "met",
        };
        word.to_owned()
    }

    /// Which runs did not complete, by reason; or what it means that all did.
    fn write_failures(&self, out: &mut String) {
        let mut whole = Vec::new();
        for group in self.groups {
            let mut reasons: Vec<(String, Vec<u64>)> = Vec::new();
            for run in &group.runs {
                let reason = match &run.outcome {
                    Outcome::Completed => continue,
                    Outcome::LimitReached => "the limit was reached".to_owned(),
                    Outcome::Failed(reason) => reason.clone(),
                };
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, seeds)) => seeds.push(run.seed),
                    None => reasons.push((reason, vec![run.seed])),
                }
            }
            if reasons.is_empty() {
                whole.push(group.runs.len());
            }
            for (reason, seeds) in reasons {
                line(
                    out,
                    2,
                    &format!(
                        "{}: {} of {} {} did not complete: {reason} ({} {})",
                        self.group_name(group),
                        seeds.len(),
                        group.runs.len(),
                        plural(group.runs.len(), "run"),
                        plural(seeds.len(), "seed"),
                        seed_list(&seeds)
                    ),
                );
            }
        }
        if whole.len() == self.groups.len()
            && let Some(runs) = whole.first()
        {
            line(
                out,
                0,
                &format!(
                    "No failure in {runs} {} bounds a controller's failure rate at {:.1} % (95 % \
                     confidence).",
                    plural(*runs, "run"),
                    failure_bound(*runs) * 100.0
                ),
            );
        }
    }

    fn write_intervals(&self, out: &mut String) {
        let intervals: Vec<String> = self
            .groups
            .iter()
            .filter_map(|group| {
                let (low, high) = completion_interval(&group.runs)?;
                Some(format!(
                    "{} {low:.3} to {high:.3} s",
                    self.group_name(group)
                ))
            })
            .collect();
        if !intervals.is_empty() {
            let text = format!(
                "95 % interval of the median time: {}.",
                intervals.join("; ")
            );
            line(out, 2, &text);
        }
    }

    /// Over real sockets: whether the relay kept time.
    fn write_timing(&self, out: &mut String) {
        let timings: Vec<_> = self
            .groups
            .iter()
            .flat_map(|group| &group.runs)
            .filter_map(|run| run.real.as_ref())
            .collect();
        let Some(worst) = timings.iter().map(|timing| timing.lateness_p99_ns).max() else {
            return;
        };
        let late = timings.iter().filter(|timing| !timing.is_on_time()).count();
        line(
            out,
            0,
            &format!(
                "The relay was late by {} at most (99th percentile of the worst run).",
                show(Dimension::Time, worst)
            ),
        );
        if late > 0 {
            line(
                out,
                0,
                &format!(
                    "In {late} of {} runs that is more than 1 ms: this machine was too busy for \
                     their times to mean much.",
                    timings.len()
                ),
            );
        }
        let dropped: u64 = timings
            .iter()
            .filter_map(|timing| timing.kernel_dropped_packets)
            .sum();
        if dropped > 0 {
            line(
                out,
                0,
                &format!("The kernel dropped {dropped} datagrams that the relay never saw."),
            );
        }
    }

    /// What each flow did, where there are several.
    fn write_flows(&self, out: &mut String) {
        let count = |group: &Group| group.runs.first().map_or(0, |run| run.flows.len());
        if self.groups.iter().all(|group| count(group) < 2) {
            return;
        }
        out.push('\n');
        let mut columns = Columns::new(vec![
            ("", "flow"),
            ("", "controller"),
            ("", "Mbit/s"),
            ("", "lost"),
            ("", "PTO"),
            ("answers", "p50"),
            ("", "p95"),
        ])
        .with_numbers_only();
        for group in self.groups {
            columns.heading(format!("{}:", self.group_name(group)));
            for index in 0..count(group) {
                let flows: Vec<&FlowResult> = group
                    .runs
                    .iter()
                    .filter_map(|run| run.flows.get(index))
                    .collect();
                let Some(first) = flows.first() else {
                    continue;
                };
                let median = |value: &dyn Fn(&FlowResult) -> u64| {
                    nearest_rank(&sorted(flows.iter().map(|flow| value(flow))), 500).unwrap_or(0)
                };
                let time = |value: fn(&Percentiles) -> u64| {
                    let times = flows
                        .iter()
                        .filter_map(|flow| flow.answers.as_ref().map(value));
                    nearest_rank(&sorted(times), 500)
                        .map_or_else(|| "-".to_owned(), |time| show(Dimension::Time, time))
                };
                let nanos = group
                    .runs
                    .iter()
                    .map(|run| run.ended_at_ns)
                    .max()
                    .unwrap_or(1);
                let rate = median(&|flow| {
                    units::math::mul_div(flow.app_bytes * 8, 1_000_000_000, nanos.max(1))
                });
                columns.row(vec![
                    first.name.clone(),
                    first.controller.clone(),
                    decimal(rate, 1_000_000, 2),
                    median(&|flow| flow.packets_lost).to_string(),
                    median(&|flow| flow.pto_count).to_string(),
                    time(|answers| answers.p50_ns),
                    time(|answers| answers.p95_ns),
                ]);
            }
        }
        columns.write_to(out);
        out.push('\n');
        line(
            out,
            0,
            "Flows: medians over the runs; rates over the whole run.",
        );
    }

    /// What an article says about the same, and what these runs showed.
    fn write_article(&self, out: &mut String) {
        let Some(article) = &self.scenario.article else {
            return;
        };
        out.push('\n');
        line(out, 0, &format!("Beside {}:", article.source));
        let names: Vec<String> = self.groups.iter().map(|g| self.group_name(g)).collect();
        let mut header = vec![("", "figure"), ("", "article")];
        header.extend(names.iter().map(|name| ("", name.as_str())));
        let mut columns = Columns::new(header).with_numbers_only();
        for figure in &article.figures {
            let measure = &figure.measure;
            let mut words = metric_words(measure.metric).to_owned();
            if let Some(flow) = &measure.flow {
                let _ = write!(words, " of {flow}");
            }
            if let Some(case) = &measure.case {
                let _ = write!(words, " of {case}");
            }
            if let Some(window) = measure.window {
                let _ = write!(words, ", {} to {}", since(window.from), since(window.until));
            }
            if measure.metric != Metric::Completed {
                let _ = write!(words, ", {}", measure.statistic.words());
            }
            let mut cells = vec![words, figure.says.clone()];
            cells.extend(self.groups.iter().map(|group| {
                let is_meant = measure
                    .case
                    .as_ref()
                    .is_none_or(|case| *case == group.case.name);
                match measure_only(measure, &group.runs).filter(|_| is_meant) {
                    Some(amount) => show(measure.metric.dimension(), amount),
                    None => "-".to_owned(),
                }
            }));
            columns.row(cells);
        }
        let mut table = String::new();
        columns.write_to(&mut table);
        if table.lines().all(|line| line.chars().count() <= WIDTH) {
            out.push_str(&table);
            return;
        }
        // Too wide for the terminal: one line for each cell.
        for (figure, cells) in article.figures.iter().zip(columns.cells()) {
            line(out, 4, &format!("  {}: {}", cells[0], figure.says));
            for (name, cell) in names.iter().zip(&cells[2..]) {
                line(out, 6, &format!("    {name}: {cell}"));
            }
        }
    }

    fn write_bands(&self, out: &mut String) {
        let mut is_headed = false;
        for group in self.groups {
            for verdict in &group.verdicts {
                if !is_headed {
                    out.push_str("\nExpected:\n");
                    is_headed = true;
                }
                self.write_verdict(out, group, verdict);
            }
        }
        out.push('\n');
        let missed = self
            .groups
            .iter()
            .flat_map(|group| &group.verdicts)
            .filter(|verdict| !Self::counts_as_met(verdict))
            .count();
        let unjudged = self
            .groups
            .iter()
            .flat_map(|group| &group.verdicts)
            .filter(|verdict| matches!(verdict.judgement, Judgement::NotJudged(_)))
            .count();
        let verdict = match (missed, unjudged) {
            (0, 0) => "Every expectation is met.".to_owned(),
            (0, unjudged) => {
                format!("Every expectation that could be judged is met; {unjudged} could not.")
            }
            (missed, _) => format!("{missed} {} not met.", plural_is(missed, "expectation")),
        };
        line(out, 0, &verdict);
    }

    fn write_verdict(&self, out: &mut String, group: &Group, verdict: &Verdict) {
        let band = &verdict.band;
        let word = match verdict.judgement {
            Judgement::Met => "met   ",
            Judgement::Missed => "MISSED",
            Judgement::NotJudged(_) => "-     ",
        };
        let mut text = format!(
            "  {word}  {}: {}",
            self.group_name(group),
            metric_words(band.metric)
        );
        if let Some(flow) = &band.flow {
            let _ = write!(text, " of {flow}");
        }
        if let Some(goal) = band.goal {
            let _ = write!(text, " of {}", goal.rate);
        }
        if let Some(window) = band.window {
            let _ = write!(
                text,
                " from {} to {}",
                since(window.from),
                since(window.until)
            );
        }
        if band.metric != Metric::Completed {
            let _ = write!(text, ", {}", band.statistic.words());
        }
        let _ = write!(
            text,
            ": {}, expected {}",
            self.measured_words(verdict),
            band.range_words()
        );
        line(out, 10, &text);
        match &verdict.judgement {
            Judgement::Met => {}
            Judgement::NotJudged(reason) => {
                line(out, 10, &format!("          not judged: {reason}"))
            }
            Judgement::Missed => {
                if let Some(seed) = verdict.worst_seed {
                    let outside = format!(
                        "          {} of {} runs outside; the worst again:",
                        verdict.outside_count, verdict.run_count
                    );
                    line(out, 10, &outside);
                    // On a line of its own and never wrapped, so that it can be copied.
                    out.push_str(&self.replay_command(group, seed));
                }
            }
        }
    }

    fn replay_command(&self, group: &Group, seed: u64) -> String {
        let real = if self.is_real { " --real" } else { "" };
        let limit = if self.limit == self.scenario.limit {
            String::new()
        } else {
            format!(" --limit \"{}\"", format_duration(self.limit))
        };
        format!(
            "          tidegate run {} --cc {} --seed {seed}{limit}{real}\n",
            quoted(self.scenario.path.as_deref().unwrap_or(&self.scenario.name)),
            group.controller
        )
    }

    fn measured_words(&self, verdict: &Verdict) -> String {
        let dimension = verdict.band.metric.dimension();
        let Some(amount) = verdict.measured else {
            return "no value".to_owned();
        };
        let mut text = show(dimension, amount);
        let base = u64::try_from(self.scenario.base_rtt().as_nanos()).unwrap_or(u64::MAX);
        if dimension == Dimension::RoundTrip && base > 0 {
            let _ = write!(text, " ({} RTT)", decimal(amount, base, 3));
        }
        text
    }

    /// The controller, with the download where there are several.
    fn group_name(&self, group: &Group) -> String {
        if self.scenario.cases.len() > 1 {
            format!("{}, {}", group.controller, group.case.name)
        } else {
            group.controller.to_string()
        }
    }
}

fn metric_words(metric: Metric) -> &'static str {
    match metric {
        Metric::Completed => "runs completed",
        Metric::Completion => "completion",
        Metric::Handshake => "handshake",
        Metric::Transfer => "completion without the handshake",
        Metric::Goodput => "goodput",
        Metric::Delivery => "rate at the bottleneck",
        Metric::Utilisation => "utilisation",
        Metric::RttP50 => "median RTT",
        Metric::RttP95 => "95th percentile of the RTT",
        Metric::RttP99 => "99th percentile of the RTT",
        Metric::QueueDelayP50 => "median queue delay",
        Metric::QueueDelayP95 => "95th percentile of the queue delay",
        Metric::PtoCount => "probe timeouts",
        Metric::Cuts => "window cuts",
        Metric::Transitions => "state changes",
        Metric::Flips => "flips of recovery",
        Metric::TimeAtMinimum => "time at the minimum window",
        Metric::Escape => "escape from a small window",
        Metric::WindowAtEnd => "window at the end",
        Metric::Reach => "time to the goodput",
        Metric::Share => "share of what all flows got",
        Metric::Jain => "Jain's index",
        Metric::TotalGoodput => "goodput of all flows",
        Metric::AnswerP50 => "median time of answers",
        Metric::AnswerP95 => "95th percentile of the time of answers",
        Metric::LostVsDropped => "difference between packets declared lost and dropped",
        Metric::LossShare => "share of packets dropped",
        Metric::Marks => "packets marked with CE",
        Metric::Resent => "stream bytes sent again",
        Metric::LargestBurst => "most sent within 1 ms",
        Metric::LeastShare => "smallest share of a flow",
        Metric::MostShare => "largest share of a flow",
    }
}

/// The interval in seconds, when every run completed and there are at least two.
fn completion_interval(runs: &[RunResult]) -> Option<(f64, f64)> {
    let times: Option<Vec<f64>> = runs
        .iter()
        .map(|run| {
            run.completion_ns
                .map(|time| Duration::from_nanos(time).as_secs_f64())
        })
        .collect();
    median_interval(&times?, BOOTSTRAP_SEED)
}

fn completed_count(runs: &[RunResult]) -> usize {
    runs.iter()
        .filter(|run| run.outcome == Outcome::Completed)
        .count()
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if word.chars().all(is_plain) && !word.is_empty() {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn since(at: Timestamp) -> String {
    format_duration(at.saturating_since(Timestamp::ZERO))
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

fn plural_is(count: usize, word: &str) -> String {
    if count == 1 {
        format!("{word} is")
    } else {
        format!("{word}s are")
    }
}

/// The first ten seeds, and how many more there are.
fn seed_list(seeds: &[u64]) -> String {
    let shown: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
    let more = seeds.len().saturating_sub(10);
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

fn line(out: &mut String, indent: usize, text: &str) {
    out.push_str(&wrap(text, indent));
    out.push('\n');
}
