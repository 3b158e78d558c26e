//! The picture as a whole, from recordings that follow a script.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser;
use netsim::RandomStreams;

use super::*;
use crate::cli::{ExitStatus, RunArgs, Streams, run_on};
use crate::play::{PlayError, PlayRequest, Player};
use crate::record::{Ending, LinkEnding, Recorder, Recording};
use crate::results::{Outcome, SenderCounts};
use crate::runner::{Plan, play_all};

const TRAP: &str = include_str!("../../scenarios/loss-phase-30pct-2s.toml");

/// Records runs that read 1 kB every 5 ms and leave the minimum window after 2 s, or breaks.
struct Script {
    outcome: Outcome,
    length: Duration,
    has_samples: bool,
    is_broken: bool,
    played: AtomicUsize,
}

impl Script {
    fn new() -> Self {
        Self {
            outcome: Outcome::Completed,
            length: Duration::from_millis(3_320),
            has_samples: true,
            is_broken: false,
            played: AtomicUsize::new(0),
        }
    }
}

impl Player for Script {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        self.played.fetch_add(1, Ordering::Relaxed);
        if self.is_broken {
            return Err(PlayError("broken".to_owned()));
        }
        let mut recorder = Recorder::new();
        let minimum = ByteCount::new(2_700);
        let mut window = minimum;
        let mut now = Timestamp::ZERO;
        let end = now + self.length;
        recorder.on_first_datagram(now);
        while self.has_samples && now < end {
            recorder.on_app_bytes(now, ByteCount::kb(1));
            recorder.on_window(now, window, minimum);
            let rtt = Duration::from_millis(10) + Duration::from_nanos(window.as_u64() * 80);
            recorder.on_rtt(now, rtt);
            // Seeds and controllers differ.
            let name = request.algorithm.to_string().len();
            if now >= Timestamp::from_secs(2) {
                window += ByteCount::new(1_000 * request.seed + u64::try_from(name).unwrap());
            }
            now += Duration::from_millis(5);
        }
        let streams = RandomStreams::new(request.seed);
        let pipe = |plan: &crate::scenario::DirectionPlan, name| {
            LinkEnding::of(&plan.pipe::<()>(&streams, name).unwrap())
        };
        let ending = Ending {
            outcome: self.outcome.clone(),
            sender: SenderCounts::default(),
            forward: pipe(&request.scenario.forward, "forward"),
            reverse: pipe(&request.scenario.reverse, "reverse"),
            real: None,
            flows: Vec::new(),
        };
        Ok(recorder.finish(end, ending))
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text).unwrap()
}

fn play(scenario: &Scenario, script: &Script, seeds: u64) -> Vec<Group> {
    let plan = Plan {
        scenario,
        controllers: scenario.controllers.clone(),
        seeds: (1..=seeds).collect(),
        limit: scenario.limit,
        jobs: NonZeroUsize::MIN,
        qlog_dir: None,
    };
    play_all(&plan, script, &mut |_| {}).unwrap()
}

fn picture(scenario: &Scenario, script: &Script) -> String {
    let groups = play(scenario, script, 2);
    Plot::of(scenario, &groups, false).svg()
}

/// Elements and texts in order, if tags nest and attributes are quoted; panics otherwise.
#[track_caller]
fn check_well_formed(svg: &str) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("every tag is closed");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        elements += 1;
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let name = tag.split(' ').next().unwrap();
        for (index, part) in tag.split('"').enumerate() {
            check_text(part);
            if index % 2 == 0 && index > 0 && !part.is_empty() {
                assert!(part.starts_with(' ') && part.ends_with('='), "{tag}");
            }
        }
        assert_eq!(tag.split('"').count() % 2, 1, "{tag}");
        if !is_empty {
            open.push(name);
        }
    }
    assert_eq!(rest, "\n");
    assert_eq!(open, [""; 0]);
    elements
}

#[track_caller]
fn check_text(text: &str) {
    assert!(!text.contains('>'), "{text}");
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].split(';').next().unwrap();
        assert!(["&amp", "&lt", "&gt", "&quot"].contains(&entity), "{text}");
    }
    let is_excluded = |letter: char| letter < ' ' && letter != '\n';
    assert!(!text.contains(is_excluded), "{text:?}");
}

/// Every x and every y of every path.
fn path_points(svg: &str) -> (Vec<f64>, Vec<f64>) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for data in svg.split(" d=\"").skip(1) {
        let data = data.split('"').next().unwrap();
        let numbers = |text: &str| -> Vec<f64> {
            text.split(' ')
                .map(|number| number.parse().unwrap())
                .collect()
        };
        let starts: Vec<usize> = data
            .match_indices(|letter: char| letter.is_ascii_alphabetic())
            .map(|(at, _)| at)
            .chain([data.len()])
            .collect();
        for pair in starts.windows(2) {
            let values = numbers(&data[pair[0] + 1..pair[1]]);
            match (&data[pair[0]..=pair[0]], values.as_slice()) {
                ("M" | "L", [x, y]) => {
                    xs.push(*x);
                    ys.push(*y);
                }
                ("H", [x]) => xs.push(*x),
                ("V", [y]) => ys.push(*y),
                other => panic!("{other:?}"),
            }
        }
    }
    (xs, ys)
}

#[test]
fn the_picture_is_well_formed_and_the_same_each_time() {
    let scenario = scenario(TRAP);
    let svg = picture(&scenario, &Script::new());
    assert!(check_well_formed(&svg) > 50);
    assert_eq!(svg, picture(&scenario, &Script::new()));
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\""));
    assert!(svg.contains("@media (prefers-color-scheme:dark)"));
}

#[test]
fn nothing_lies_outside_the_picture() {
    let scenario = scenario(TRAP);
    let svg = picture(&scenario, &Script::new());
    let height = svg.split(" height=\"").nth(1).unwrap();
    let height: f64 = height.split('"').next().unwrap().parse().unwrap();
    let (xs, ys) = path_points(&svg);
    assert!(xs.len() > 1_000 && ys.len() > 1_000);
    assert!(xs.iter().all(|x| (0.0..=900.0).contains(x)));
    assert!(ys.iter().all(|y| (0.0..=height).contains(y)));
}

#[test]
fn every_controller_has_a_legend_entry_three_names_and_its_curves() {
    let scenario = scenario(&TRAP.replace(
        "[\"newreno\", \"cubic\"]",
        "[\"newreno\", \"cubic\", \"fixed:10Mbit/s\"]",
    ));
    let svg = picture(&scenario, &Script::new());
    for (index, name) in ["newreno", "cubic", "fixed:10Mbit/s"].iter().enumerate() {
        assert_eq!(svg.matches(&format!(">{name}</t")).count(), 4, "{name}");
        for class in ["curve", "range", "dots", "end"] {
            let class = format!("\"{class} c{index}\"");
            assert!(svg.contains(&class), "{name}: {class}");
        }
    }
    assert_eq!(svg.matches("10 MB in 3.32 s").count(), 3);
}

#[test]
fn the_panels_say_what_they_show_and_what_to_compare_it_with() {
    let svg = picture(&scenario(TRAP), &Script::new());
    for text in [
        "Goodput per 100 ms",
        "100 Mbit/s",
        "capacity",
        "Congestion window, logarithmic scale",
        "100 kB",
        "minimum 2.7 kB",
        "Round-trip time",
        "idle link",
        "30 % loss",
        "3 s",
        "seed 1, in virtual time",
    ] {
        assert!(svg.contains(&format!(">{text}</")), "{text}");
    }
}

#[test]
fn names_and_sentences_are_escaped() {
    let text = TRAP.replace("10 MB through", "a < b & \\\"c\\\" > d \\u0001");
    let svg = picture(&scenario(&text), &Script::new());
    check_well_formed(&svg);
    assert!(svg.contains("a &lt; b &amp; &quot;c&quot; &gt; d \u{fffd}"));
}

#[test]
fn the_first_seed_of_the_largest_download_is_drawn() {
    let text = TRAP.replace(
        "size = \"10 MB\"",
        "sizes = [\"2 MB\", \"10 MB\", \"1 MB\"]",
    );
    let scenario = scenario(&text);
    let groups = play(&scenario, &Script::new(), 2);
    let plot = Plot::of(&scenario, &groups, false);
    let drawn: Vec<(&str, &str, u64)> = plot
        .runs
        .iter()
        .map(|run| (run.case.as_str(), run.controller.as_str(), run.seed))
        .collect();
    assert_eq!(drawn, [("10 MB", "newreno", 1), ("10 MB", "cubic", 1)]);
    // What is never drawn is not kept.
    let has_track = |run: &RunResult| run.tracks.window.slots().next().is_some();
    for group in &groups {
        let kept: Vec<bool> = group.runs.iter().map(has_track).collect();
        assert_eq!(kept, [true, false]);
    }
}

#[test]
fn runs_that_show_nothing_give_a_picture_without_curves() {
    let script = Script {
        outcome: Outcome::Failed("no answer".to_owned()),
        length: Duration::ZERO,
        has_samples: false,
        ..Script::new()
    };
    let svg = picture(&scenario(TRAP), &script);
    check_well_formed(&svg);
    assert!(svg.contains("failed at 0.00 s"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    assert!(!svg.contains("\"dots c0\""));
    let groups: Vec<Group> = Vec::new();
    check_well_formed(&Plot::of(&scenario(TRAP), &groups, true).svg());
}

#[test]
fn a_run_that_reaches_the_limit_has_no_end_and_says_so() {
    let script = Script {
        outcome: Outcome::LimitReached,
        length: Duration::from_secs(10),
        ..Script::new()
    };
    let svg = picture(&scenario(TRAP), &script);
    assert!(svg.contains("10 MB not complete after 10.00 s"));
    assert!(!svg.contains("<circle") && !svg.contains('●'));
    assert!(!svg.contains("\"end c"));
}

#[test]
fn controllers_beyond_the_colours_share_them() {
    let names = "[\"newreno\", \"cubic\", \"fixed:1Mbit/s\", \"fixed:2Mbit/s\", \
                 \"fixed:3Mbit/s\", \"fixed:4Mbit/s\", \"fixed:5Mbit/s\"]";
    let scenario = scenario(&TRAP.replace("[\"newreno\", \"cubic\"]", names));
    let svg = picture(&scenario, &Script::new());
    check_well_formed(&svg);
    assert_eq!(svg.matches("\"dots c0\"").count(), 2);
    assert!(!svg.contains("\"dots c6\""));
}

/// A run that ended after so many milliseconds, with these bytes in each 100 ms.
fn goodput_in(ended_at_ms: u64, bytes: &[u64], step_ms: u64) -> Vec<(u64, u64)> {
    let scenario = scenario(TRAP);
    let groups = play(&scenario, &Script::new(), 1);
    let run = RunResult {
        ended_at_ns: ended_at_ms * 1_000_000,
        app_bytes_per_100_ms: bytes.to_vec(),
        ..groups[0].runs[0].clone()
    };
    goodput_of(&run, Duration::from_millis(step_ms))
        .into_iter()
        .map(|(until, bps)| (until.as_nanos() / 1_000_000, bps))
        .collect()
}

#[test]
fn the_last_step_of_goodput_is_as_long_as_the_run_goes_on() {
    let steady = 100_000;
    // 8 Mbit/s to the end, although the last entry has no more than 60 ms of it.
    assert_eq!(
        goodput_in(260, &[steady, steady, 60_000], 100),
        [(100, 8_000_000), (200, 8_000_000), (260, 8_000_000)]
    );
    // 20 ms alone would be two packets more or less: they belong to the step before.
    assert_eq!(
        goodput_in(220, &[steady, steady, 20_000], 100),
        [(100, 8_000_000), (220, 8_000_000)]
    );
    assert_eq!(goodput_in(20, &[20_000], 100), [(20, 8_000_000)]);
    assert_eq!(goodput_in(0, &[], 100), []);
}

#[test]
fn goodput_is_zero_while_nothing_is_read() {
    assert_eq!(
        goodput_in(300, &[100_000], 100),
        [(100, 8_000_000), (200, 0), (300, 0)]
    );
    assert_eq!(
        goodput_in(400, &[100_000, 0, 100_000, 100_000], 200),
        [(200, 4_000_000), (400, 8_000_000)]
    );
}

#[test]
fn long_runs_have_longer_steps_of_goodput() {
    let step = |seconds| goodput_step(Timestamp::from_secs(seconds)).as_millis();
    assert_eq!(step(1), 100);
    assert_eq!(step(40), 100);
    assert_eq!(step(45), 200);
    assert_eq!(step(3_600), 10_000);
}

#[test]
fn the_axis_of_windows_is_logarithmic_when_small_ones_last() {
    let seen = |last| Seen {
        min: last,
        max: last,
        last,
    };
    let mut windows = vec![seen(100_000); 99];
    windows.push(seen(2_700));
    assert!(!is_wide(&windows, 100_000));
    windows.extend([seen(2_700); 5]);
    assert!(is_wide(&windows, 100_000));
    assert!(!is_wide(&[], 0));
}

#[test]
fn windows_far_beyond_the_link_do_not_stretch_the_axis() {
    let scenario = scenario(TRAP);
    // 125 kB in flight and 250 kB in the queue.
    assert_eq!(largest_useful_window(&scenario), 375_000 * 20);
    let unlimited = TRAP.replace("2 BDP", "unlimited");
    assert_eq!(largest_useful_window(&self::scenario(&unlimited)), u64::MAX);
}

#[derive(Parser)]
struct RunCommand {
    #[command(flatten)]
    args: RunArgs,
}

/// Runs the trap with these flags; exit status, standard output, standard error.
fn run(flags: &[&str], player: &Script) -> (ExitStatus, String, String) {
    let words = ["run", "loss-phase-30pct-2s", "--seeds", "1"]
        .iter()
        .chain(flags);
    let command = RunCommand::try_parse_from(words).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        shows_progress: false,
    };
    let status = run_on(&command.args, player, &mut streams);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

#[test]
fn the_picture_is_written_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trap.svg");
    fs::write(&path, "x".repeat(1_000_000)).unwrap();
    let flags = ["--plot", path.to_str().unwrap()];
    let (status, out, err) = run(&flags, &Script::new());
    assert_eq!((status, err.as_str()), (ExitStatus::Met, ""));
    assert!(out.starts_with("loss-phase-30pct-2s: "));
    check_well_formed(&fs::read_to_string(&path).unwrap());
}

#[test]
fn the_picture_can_go_to_standard_output() {
    let (status, out, err) = run(&["--plot", "-"], &Script::new());
    assert_eq!(status, ExitStatus::Met);
    check_well_formed(&out);
    assert!(err.starts_with("loss-phase-30pct-2s: "));
    let player = Script::new();
    let (status, out, err) = run(&["--plot", "-", "--json", "-"], &player);
    assert_eq!((status, out.as_str()), (ExitStatus::Error, ""));
    assert_eq!(
        err,
        "error: only one of --json and --plot can go to standard output\n"
    );
    assert_eq!(player.played.into_inner(), 0);
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_before_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no").join("trap.svg");
    for path in [missing.as_path(), folder.path()] {
        for flag in ["--plot", "--json"] {
            let player = Script::new();
            let (status, out, err) = run(&[flag, path.to_str().unwrap()], &player);
            assert_eq!((status, out.as_str()), (ExitStatus::Error, ""));
            let beginning = format!("error: cannot write {}: ", path.display());
            assert!(err.starts_with(&beginning), "{err}");
            assert_eq!(err.lines().count(), 1);
            assert_eq!(player.played.into_inner(), 0);
        }
    }
}

#[test]
fn runs_that_break_leave_files_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (
        folder.path().join("old.svg"),
        folder.path().join("new.json"),
    );
    fs::write(&old, "old").unwrap();
    let broken = Script {
        is_broken: true,
        ..Script::new()
    };
    let flags = [
        "--plot",
        old.to_str().unwrap(),
        "--json",
        new.to_str().unwrap(),
    ];
    let (status, _, _) = run(&flags, &broken);
    assert_eq!(status, ExitStatus::Error);
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    assert!(!new.exists());
}
