//! Plays a scenario for a list of controllers and seeds, over all cores.
//!
//! ```text
//!  cases x controllers x seeds --> one list of runs --> worker 1..n take the next --> slots by index
//! ```
//!
//! A result goes into the slot of its run, so the order of results never depends on the number of
//! workers or on which of them was faster.

use std::fs;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cc::Algorithm;

use crate::expect::{Conditions, Judgement, Verdict, judge};
use crate::play::{PlayError, PlayRequest, Player};
use crate::record::Tracks;
use crate::results::{RunResult, summarise};
use crate::scenario::{Case, Scenario};

/// What to play.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The controllers, in the order of the report.
    pub controllers: Vec<Algorithm>,
    /// The seeds, in the order of the report.
    pub seeds: Vec<u64>,
    /// When a run ends whatever happens.
    pub limit: Duration,
    /// How many runs are played at once.
    pub jobs: NonZeroUsize,
    /// The directory below which every run gets one for its qlog.
    pub qlog_dir: Option<PathBuf>,
}

impl Plan<'_> {
    /// How many runs there are.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.scenario.cases.len() * self.controllers.len() * self.seeds.len()
    }
}

/// All runs of one download with one controller, and what is to be thought of them.
#[derive(Debug, Clone)]
pub struct Group {
    /// The download.
    pub case: Case,
    /// The controller.
    pub controller: Algorithm,
    /// One result per seed, in the order of the plan.
    pub runs: Vec<RunResult>,
    /// One verdict per band that is about them.
    pub verdicts: Vec<Verdict>,
}

impl Group {
    /// Whether no band is missed.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.verdicts
            .iter()
            .all(|verdict| verdict.judgement != Judgement::Missed)
    }
}

/// Why the runs could not all be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A directory for qlog files cannot be made.
    #[error("cannot make the qlog directory {}: {problem}", path.display())]
    QlogDir {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// One run could not be played.
    #[error("{run}: {problem}")]
    Play {
        /// Which run.
        run: String,
        /// Why.
        problem: PlayError,
    },
    /// The program broke while it played a run.
    #[error("{run}: the program broke down (this is a bug): {message}")]
    Panic {
        /// Which run.
        run: String,
        /// The message of the panic.
        message: String,
    },
}

/// Plays every run of the plan and judges the results.
///
/// `progress` is told how many runs are done, on the caller's thread, after each of them.
///
/// # Errors
/// The first run, in the order of the plan, among those that could not be played.
pub fn play_all(
    plan: &Plan<'_>,
    player: &dyn Player,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Group>, RunError> {
    let runs: Vec<Run<'_>> = list_runs(plan);
    let mut results = play_runs(plan, player, &runs, progress)?.into_iter();
    let conditions = Conditions {
        is_real: player.is_real(),
        limit: plan.limit,
    };
    let mut groups = Vec::new();
    for case in &plan.scenario.cases {
        for controller in &plan.controllers {
            let runs: Vec<RunResult> = results.by_ref().take(plan.seeds.len()).collect();
            let verdicts = judge(
                plan.scenario,
                &controller.to_string(),
                &case.name,
                &runs,
                conditions,
            );
            groups.push(Group {
                case: case.clone(),
                controller: *controller,
                runs,
                verdicts,
            });
        }
    }
    Ok(groups)
}

/// One entry of the list of runs.
struct Run<'a> {
    case: &'a Case,
    controller: &'a Algorithm,
    seed: u64,
}

fn list_runs<'a>(plan: &'a Plan<'_>) -> Vec<Run<'a>> {
    let mut runs = Vec::with_capacity(plan.run_count());
    for case in &plan.scenario.cases {
        for controller in &plan.controllers {
            for seed in &plan.seeds {
                runs.push(Run {
                    case,
                    controller,
                    seed: *seed,
                });
            }
        }
    }
    runs
}

fn play_runs(
    plan: &Plan<'_>,
    player: &dyn Player,
    runs: &[Run<'_>],
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<RunResult>, RunError> {
    let next = AtomicUsize::new(0);
    let is_broken = AtomicBool::new(false);
    let mut slots: Vec<Option<Result<RunResult, RunError>>> = Vec::new();
    slots.resize_with(runs.len(), || None);
    let workers = plan.jobs.get().min(runs.len().max(1));
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..workers {
            let sender = sender.clone();
            let (next, is_broken) = (&next, &is_broken);
            scope.spawn(move || {
                while !is_broken.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(index) else {
                        break;
                    };
                    let result = play_one(plan, player, run);
                    is_broken.fetch_or(result.is_err(), Ordering::Relaxed);
                    if sender.send((index, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (done, (index, result)) in receiver.iter().enumerate() {
            slots[index] = Some(result);
            progress(done + 1);
        }
    });
    // Runs are taken in order, so everything before an error has a result, and an error ends this.
    slots.into_iter().flatten().collect()
}

fn play_one(plan: &Plan<'_>, player: &dyn Player, run: &Run<'_>) -> Result<RunResult, RunError> {
    let qlog_dir = match &plan.qlog_dir {
        Some(parent) => Some(make_qlog_dir(parent, plan.scenario, run)?),
        None => None,
    };
    let request = PlayRequest {
        scenario: plan.scenario,
        case: run.case,
        algorithm: run.controller,
        seed: run.seed,
        limit: plan.limit,
        qlog_dir: qlog_dir.as_deref(),
    };
    let name = || {
        format!(
            "{}, {}, {}, seed {}",
            plan.scenario.name, run.case.name, run.controller, run.seed
        )
    };
    // The player keeps nothing between runs that a broken one could spoil: every run has its own
    // network, endpoints and controller.
    match catch_unwind(AssertUnwindSafe(|| player.play(&request))) {
        Ok(Ok(recording)) => {
            let mut result = summarise(&request, recording);
            if plan.seeds.first() != Some(&run.seed) {
                result.tracks = Tracks::default();
            }
            Ok(result)
        }
        Ok(Err(problem)) => Err(RunError::Play {
            run: name(),
            problem,
        }),
        Err(payload) => Err(RunError::Panic {
            run: name(),
            message: panic_message(payload.as_ref()),
        }),
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").replace('\n', " ")
}

/// One directory per run, named so that a listing sorts by download, controller and seed.
fn make_qlog_dir(parent: &Path, scenario: &Scenario, run: &Run<'_>) -> Result<PathBuf, RunError> {
    let name = format!(
        "{}_{}_{}_seed-{:04}",
        scenario.name, run.case.name, run.controller, run.seed
    );
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = name
        .chars()
        .filter(|letter| *letter != ' ')
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect();
    let path = parent.join(name);
    fs::create_dir_all(&path).map_err(|error| RunError::QlogDir {
        path: path.clone(),
        problem: error.to_string(),
    })?;
    Ok(path)
}
