//! The JSON document of a report.

use serde::Serialize;

use super::{JSON_VERSION, Report, completed_count, completion_interval, nanos};
use crate::expect::{Dimension, Judgement, Level, Metric, Statistic, Verdict, measure_only};
use crate::results::{Percentiles, RunResult};
use crate::runner::Group;
use crate::scenario::{Article, Figure};
use crate::stats::failure_bound;

impl Report<'_> {
    /// The JSON document, with a line break at its end.
    ///
    /// # Errors
    /// None in practice: the data has no map with keys that are not text.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let groups = self.groups.iter().map(GroupJson::of).collect();
        let article = self.scenario.article.as_ref();
        let document = DocumentJson {
            version: JSON_VERSION,
            program: concat!("tidegate ", env!("CARGO_PKG_VERSION")),
            scenario: &self.scenario.name,
            about: &self.scenario.about,
            is_real: self.is_real,
            limit_ns: nanos(self.limit),
            base_rtt_ns: nanos(self.scenario.base_rtt()),
            is_met: self.is_met(),
            groups,
            article: article.map(|article| ArticleJson::of(article, self.groups)),
        };
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        Ok(text)
    }
}

#[derive(Serialize)]
struct DocumentJson<'a> {
    version: u32,
    program: &'static str,
    scenario: &'a str,
    about: &'a str,
    is_real: bool,
    limit_ns: u64,
    base_rtt_ns: u64,
    is_met: bool,
    groups: Vec<GroupJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    article: Option<ArticleJson<'a>>,
}

/// What somebody else measured, and what was measured here.
#[derive(Serialize)]
struct ArticleJson<'a> {
    source: &'a str,
    figures: Vec<FigureJson<'a>>,
}

#[derive(Serialize)]
struct FigureJson<'a> {
    metric: &'static str,
    statistic: Statistic,
    flow: Option<&'a str>,
    from_ns: Option<u64>,
    until_ns: Option<u64>,
    says: &'a str,
    /// The unit of what was measured here.
    unit: &'static str,
    measured: Vec<MeasuredJson<'a>>,
}

#[derive(Serialize)]
struct MeasuredJson<'a> {
    case: &'a str,
    controller: String,
    amount: Option<u64>,
}

impl<'a> ArticleJson<'a> {
    fn of(article: &'a Article, groups: &'a [Group]) -> Self {
        let figure = |figure: &'a Figure| {
            let measure = &figure.measure;
            let is_meant = |group: &&Group| {
                let case = measure.case.as_ref();
                case.is_none_or(|case| *case == group.case.name)
            };
            let measured = groups.iter().filter(is_meant).map(|group| MeasuredJson {
                case: &group.case.name,
                controller: group.controller.to_string(),
                amount: measure_only(measure, &group.runs),
            });
            FigureJson {
                metric: measure.metric.key(),
                statistic: measure.statistic,
                flow: measure.flow.as_deref(),
                from_ns: measure.window.map(|window| window.from.as_nanos()),
                until_ns: measure.window.map(|window| window.until.as_nanos()),
                says: &figure.says,
                unit: unit_of(measure.metric),
                measured: measured.collect(),
            }
        };
        Self {
            source: &article.source,
            figures: article.figures.iter().map(figure).collect(),
        }
    }
}

#[derive(Serialize)]
struct GroupJson<'a> {
    case: &'a str,
    controller: String,
    run_count: usize,
    completed_count: usize,
    completion: Option<Percentiles>,
    /// 95 % interval of the median.
    completion_median_interval_s: Option<(f64, f64)>,
    /// What no failure proves; absent when there was one.
    failure_rate_bound: Option<f64>,
    verdicts: Vec<VerdictJson<'a>>,
    runs: &'a [RunResult],
}

impl<'a> GroupJson<'a> {
    fn of(group: &'a Group) -> Self {
        let run_count = group.runs.len();
        let completed_count = completed_count(&group.runs);
        let mut completions: Vec<u64> = group
            .runs
            .iter()
            .filter_map(|run| run.completion_ns)
            .collect();
        Self {
            case: &group.case.name,
            controller: group.controller.to_string(),
            run_count,
            completed_count,
            completion: Percentiles::of(&mut completions),
            completion_median_interval_s: completion_interval(&group.runs),
            failure_rate_bound: (completed_count == run_count).then(|| failure_bound(run_count)),
            verdicts: group.verdicts.iter().map(VerdictJson::of).collect(),
            runs: &group.runs,
        }
    }
}

#[derive(Serialize)]
struct VerdictJson<'a> {
    metric: &'static str,
    statistic: Statistic,
    from_ns: Option<u64>,
    until_ns: Option<u64>,
    min: &'a Option<Level>,
    max: &'a Option<Level>,
    /// The unit of `measured` and of the amounts of `min` and `max`.
    unit: &'static str,
    measured: Option<u64>,
    outside_count: u64,
    worst_seed: Option<u64>,
    #[serde(flatten)]
    judgement: &'a Judgement,
}

impl<'a> VerdictJson<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let band = &verdict.band;
        let window = band.window;
        Self {
            metric: band.metric.key(),
            statistic: band.statistic,
            from_ns: window.map(|window| window.from.as_nanos()),
            until_ns: window.map(|window| window.until.as_nanos()),
            min: &band.min,
            max: &band.max,
            unit: unit_of(band.metric),
            measured: verdict.measured,
            outside_count: verdict.outside_count,
            worst_seed: verdict.worst_seed,
            judgement: &verdict.judgement,
        }
    }
}

/// In what the amounts of a metric are.
fn unit_of(metric: Metric) -> &'static str {
    match metric.dimension() {
        Dimension::Share => "parts per billion",
        Dimension::Time | Dimension::RoundTrip => "ns",
        Dimension::Rate => "bit/s",
        Dimension::Count => "count",
        Dimension::Size => "B",
    }
}
