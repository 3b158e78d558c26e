//! From recordings to verdicts, tables, JSON and exit status, with a player that follows a script.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use cc::Algorithm;
use clap::Parser;
use interop::cli::{ExitStatus, ListArgs, RunArgs, Streams, list_on, run_on};
use interop::play::{PlayError, PlayRequest, Player};
use interop::record::{Ending, LinkEnding, Recorder, Recording};
use interop::report::Report;
use interop::results::{Outcome, RealTiming, SenderCounts};
use interop::runner::{Group, Plan, RunError, play_all};
use interop::scenario::{Scenario, find};
use netsim::{Packet, RandomStreams};
use units::{ByteCount, Timestamp};

/// A run with known numbers.
#[derive(Clone)]
struct Script {
    outcome: Outcome,
    /// First datagram, end of the handshake, last byte.
    times_ms: [u64; 3],
    /// A steady rate of packets through the forward pipe and of bytes to the application.
    packet_every_us: u64,
    rtt_ms: u64,
    sender: SenderCounts,
    at_minimum_ms: u64,
    real: Option<RealTiming>,
}

impl Script {
    fn completing_in(seconds_thousandths: u64) -> Self {
        Self {
            outcome: Outcome::Completed,
            times_ms: [5, 15, 5 + seconds_thousandths],
            packet_every_us: 1000,
            rtt_ms: 12,
            sender: SenderCounts {
                packets_sent: 8000,
                packets_lost: 55,
                retransmitted_bytes: 70_000,
                pto_count: 4,
                cuts: 9,
                fault: None,
            },
            at_minimum_ms: 410,
            real: None,
        }
    }

    fn record(&self, request: &PlayRequest<'_>) -> Recording {
        let ms = Timestamp::from_millis;
        let scenario = request.scenario;
        let streams = RandomStreams::new(request.seed);
        let mut forward = scenario.forward.pipe(&streams, "forward").expect("good");
        let reverse = scenario
            .reverse
            .pipe::<()>(&streams, "reverse")
            .expect("good");
        let [first, handshake, last] = self.times_ms.map(ms);
        let mut recorder = Recorder::new();
        recorder.on_first_datagram(first);
        recorder.on_handshake(handshake);
        recorder.on_window(handshake, ByteCount::new(13_500), ByteCount::new(2700));
        recorder.on_transition("slow_start", "recovery");
        recorder.on_transition("recovery", "congestion_avoidance");
        recorder.on_window(handshake, ByteCount::new(2700), ByteCount::new(2700));
        recorder.on_window(
            handshake + Duration::from_millis(self.at_minimum_ms),
            ByteCount::new(2701),
            ByteCount::new(2700),
        );
        let mut now = Timestamp::ZERO;
        while now <= last {
            forward.advance(now, &mut |_, _| {});
            forward.arrive(now, Packet::new(ByteCount::new(1378), ()));
            recorder.on_app_bytes(now, ByteCount::new(1315));
            recorder.on_rtt(now, Duration::from_millis(self.rtt_ms));
            now += Duration::from_micros(self.packet_every_us);
        }
        forward.advance(last, &mut |_, _| {});
        recorder.on_app_bytes(last, ByteCount::new(1));
        recorder.finish(
            last,
            Ending {
                outcome: self.outcome.clone(),
                sender: self.sender.clone(),
                forward: LinkEnding::of(&forward),
                reverse: LinkEnding::of(&reverse),
                real: self.real.clone(),
                flows: Vec::new(),
            },
        )
    }
}

struct Scripted<F> {
    script: F,
    is_real: bool,
}

impl<F> Player for Scripted<F>
where
    F: Fn(&PlayRequest<'_>) -> Result<Script, PlayError> + Sync,
{
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        (self.script)(request).map(|script| script.record(request))
    }

    fn is_real(&self) -> bool {
        self.is_real
    }
}

fn scripted<F>(script: F) -> Scripted<F>
where
    F: Fn(&PlayRequest<'_>) -> Result<Script, PlayError> + Sync,
{
    Scripted {
        script,
        is_real: false,
    }
}

/// Completion of 3.20 s for seed 1, 3.21 s for seed 2, and so on.
fn slower_with_the_seed(request: &PlayRequest<'_>) -> Result<Script, PlayError> {
    Ok(Script::completing_in(3190 + 10 * request.seed))
}

fn jobs(jobs: usize) -> NonZeroUsize {
    NonZeroUsize::new(jobs).expect("above 0")
}

fn plan(scenario: &Scenario, seeds: u64, workers: usize) -> Plan<'_> {
    Plan {
        scenario,
        controllers: scenario.controllers.clone(),
        seeds: (1..=seeds).collect(),
        limit: scenario.limit,
        jobs: jobs(workers),
        qlog_dir: None,
    }
}

fn text_of(scenario: &Scenario, groups: &[Group]) -> String {
    Report {
        scenario,
        groups,
        is_real: false,
        limit: scenario.limit,
    }
    .text()
}

#[derive(Parser)]
struct RunCommand {
    #[command(flatten)]
    args: RunArgs,
}

#[derive(Parser)]
struct ListCommand {
    #[command(flatten)]
    args: ListArgs,
}

/// Runs the command line and returns exit status, standard output and standard error.
fn run(words: &[&str], player: &dyn Player) -> (ExitStatus, String, String) {
    let words = ["run"].iter().chain(words);
    let command = RunCommand::try_parse_from(words).expect("good flags");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run_on(
        &command.args,
        player,
        &mut Streams {
            out: &mut out,
            err: &mut err,
            shows_progress: false,
        },
    );
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status, text(out), text(err))
}

#[test]
fn a_met_table_reads_like_this() {
    let scenario = find("loss-phase-30pct-2s").expect("built in");
    let player = scripted(slower_with_the_seed);
    let groups = play_all(&plan(&scenario, 100, 2), &player, &mut |_| {}).expect("played");
    let text = text_of(&scenario, &groups);
    assert_eq!(
        text,
        "\
loss-phase-30pct-2s: 10 MB through 30 % loss both ways for 2 s: how soon is the
window back?
100 runs per controller, in virtual time, limit 10 s

               runs   time   time   time   lost,         state    min.
controller     done  p50 s  p95 s  max s  resent  PTO  changes  window  verdict
newreno     100/100  3.690  4.140  4.190      55    4        2  0.41 s  met
cubic       100/100  3.690  4.140  4.190      55    4        2  0.41 s  met

Packets lost and resent, probe timeouts (PTO), changes of the congestion state
and time at the minimum window are medians over the runs.
No failure in 100 runs bounds a controller's failure rate at 3.0 % (95 %
confidence).
95 % interval of the median time: newreno 3.600 to 3.790 s; cubic 3.600 to 3.790
  s.

Expected:
  met     newreno: runs completed: 100.00 %, expected at least 100 %
  met     newreno: completion, median: 3.690 s, expected 3.2 s to 4.2 s
  met     newreno: completion, p95: 4.140 s, expected at most 4.5 s
  met     newreno: completion, worst run: 4.190 s, expected at most 6 s
  met     cubic: runs completed: 100.00 %, expected at least 100 %
  met     cubic: completion, median: 3.690 s, expected 3.2 s to 4.2 s
  met     cubic: completion, p95: 4.140 s, expected at most 4.5 s
  met     cubic: completion, worst run: 4.190 s, expected at most 6 s

Every expectation is met.
"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for name in [
        "loss-phase-30pct-2s",
        "clean-20m-40ms",
        "fct-ladder",
        "rate-step",
    ] {
        let scenario = find(name).expect("built in");
        let player = scripted(slower_with_the_seed);
        let groups = play_all(&plan(&scenario, 3, 2), &player, &mut |_| {}).expect("played");
        let text = text_of(&scenario, &groups);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line:?}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let scenario = find("fct-ladder").expect("built in");
    let json = |workers| {
        let player = scripted(slower_with_the_seed);
        let groups = play_all(&plan(&scenario, 7, workers), &player, &mut |_| {}).expect("played");
        let report = Report {
            scenario: &scenario,
            groups: &groups,
            is_real: false,
            limit: scenario.limit,
        };
        report.json().expect("serialises")
    };
    let alone = json(1);
    assert_eq!(alone, json(2));
    assert_eq!(alone, json(16));
}

#[test]
fn every_run_is_played_once_and_reported_in_order() {
    let scenario = find("fct-ladder").expect("built in");
    let played = Mutex::new(Vec::new());
    let player = scripted(|request: &PlayRequest<'_>| {
        played.lock().expect("not poisoned").push((
            request.case.name.clone(),
            request.algorithm.to_string(),
            request.seed,
        ));
        slower_with_the_seed(request)
    });
    let mut progress = Vec::new();
    let groups = play_all(&plan(&scenario, 3, 4), &player, &mut |done| {
        progress.push(done)
    })
    .expect("played");
    let reported: Vec<(String, String, u64)> = groups
        .iter()
        .flat_map(|group| &group.runs)
        .map(|run| (run.case.clone(), run.controller.clone(), run.seed))
        .collect();
    let mut expected = Vec::new();
    for case in ["100 kB", "1 MB", "10 MB"] {
        for controller in ["newreno", "cubic"] {
            for seed in 1..=3 {
                expected.push((case.to_owned(), controller.to_owned(), seed));
            }
        }
    }
    assert_eq!(reported, expected);
    let mut played = played.into_inner().expect("not poisoned");
    played.sort();
    expected.sort();
    assert_eq!(played, expected);
    assert_eq!(progress, (1..=18).collect::<Vec<_>>());
}

#[test]
fn a_run_that_never_ends_misses_its_bands_and_is_named() {
    let player = scripted(|request: &PlayRequest<'_>| {
        let mut script = slower_with_the_seed(request)?;
        if *request.algorithm == Algorithm::CUBIC && request.seed.is_multiple_of(2) {
            script.outcome = Outcome::LimitReached;
            script.times_ms[2] = 10_000;
        }
        Ok(script)
    });
    let (status, out, err) = run(&["loss-phase-30pct-2s", "--seeds", "20"], &player);
    assert_eq!(status, ExitStatus::NotMet);
    assert_eq!(err, "");
    assert!(
        out.contains(
            "cubic: 10 of 20 runs did not complete: the limit was reached (seeds 2, 4, 6,"
        ),
        "{out}"
    );
    assert!(
        out.contains("MISSED  cubic: runs completed: 50.00 %, expected at least 100 %"),
        "{out}"
    );
    assert!(
        out.contains("MISSED  cubic: completion, p95: no value"),
        "{out}"
    );
    assert!(out.contains("--cc cubic --seed"), "{out}");
    assert!(out.contains("newreno: runs completed: 100.00 %"), "{out}");
    let row = out
        .lines()
        .find(|line| line.starts_with("cubic "))
        .expect("a row");
    assert!(row.contains(">10") && row.ends_with("  MISSED"), "{row}");
    let row = out
        .lines()
        .find(|line| line.starts_with("newreno "))
        .expect("a row");
    assert!(row.ends_with(" met"), "{row}");
}

#[test]
fn exit_status_is_0_for_met_1_for_not_met_and_2_for_errors() {
    let good = scripted(slower_with_the_seed);
    assert_eq!(
        run(&["loss-phase-30pct-2s", "--seeds", "5"], &good).0,
        ExitStatus::Met
    );
    let slow = scripted(|_: &PlayRequest<'_>| Ok(Script::completing_in(5000)));
    assert_eq!(
        run(&["loss-phase-30pct-2s", "--seeds", "5"], &slow).0,
        ExitStatus::NotMet
    );
    let (status, out, err) = run(&["loss-phase-30pct-2sp"], &good);
    assert_eq!(status, ExitStatus::Error);
    assert_eq!(out, "");
    assert!(
        err.starts_with("error: no scenario \"loss-phase-30pct-2sp\", did you mean"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn a_player_that_cannot_play_or_breaks_names_the_run() {
    let scenario = find("loss-phase-30pct-2s").expect("built in");
    let cannot = scripted(|request: &PlayRequest<'_>| match request.seed {
        3 => Err(PlayError("no sockets left".to_owned())),
        _ => slower_with_the_seed(request),
    });
    let error = play_all(&plan(&scenario, 5, 1), &cannot, &mut |_| {}).expect_err("seed 3");
    assert_eq!(
        error.to_string(),
        "loss-phase-30pct-2s, 10 MB, newreno, seed 3: no sockets left"
    );
    let breaks = scripted(|request: &PlayRequest<'_>| match request.seed {
        2 => panic!("seed {} is cursed", request.seed),
        _ => slower_with_the_seed(request),
    });
    let error = play_all(&plan(&scenario, 2, 2), &breaks, &mut |_| {}).expect_err("seed 2");
    assert!(matches!(error, RunError::Panic { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "loss-phase-30pct-2s, 10 MB, newreno, seed 2: the program broke down (this is a bug): seed 2 is \
         cursed"
    );
}

#[test]
fn one_seed_and_other_controllers_can_be_asked_for() {
    let seen = Mutex::new(Vec::new());
    let player = scripted(|request: &PlayRequest<'_>| {
        let run = (request.algorithm.to_string(), request.seed, request.limit);
        seen.lock().expect("not poisoned").push(run);
        slower_with_the_seed(request)
    });
    let words = [
        "loss-phase-30pct-2s",
        "--seed",
        "17",
        "--cc",
        "cubic,fixed:10Mbit/s",
    ];
    let (_, out, _) = run(
        &[&words[..], &["--limit", "8 s", "--jobs", "1"]].concat(),
        &player,
    );
    let limit = Duration::from_secs(8);
    assert_eq!(
        seen.into_inner().expect("not poisoned"),
        [
            ("cubic".to_owned(), 17, limit),
            ("fixed:10Mbit/s".to_owned(), 17, limit)
        ]
    );
    assert!(
        out.contains("1 run per controller, in virtual time, limit 8 s"),
        "{out}"
    );
}

#[test]
fn wrong_flags_are_refused_with_what_is_allowed() {
    for (words, expected) in [
        (
            ["run", "x", "--cc", "vegas"],
            "allowed are newreno, cubic, bbr3, fixed:RATE",
        ),
        (["run", "x", "--limit", "5"], "the unit is missing"),
        (
            ["run", "x", "--limit", "0 s"],
            "allowed is above 0 s, up to 3600 s",
        ),
        (
            ["run", "x", "--seeds", "0"],
            "allowed is a whole number from 1 to 100000",
        ),
        (
            ["run", "x", "--seeds", "-3"],
            "allowed is a whole number from 1 to 100000",
        ),
        (
            ["run", "x", "--seed", "one"],
            "allowed is a whole number from 0 to 18446744073709551615",
        ),
        (
            ["run", "x", "--jobs", "0"],
            "allowed is a whole number above 0",
        ),
    ] {
        let error = RunCommand::try_parse_from(words).err().expect("refused");
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn bands_with_windows_see_only_their_window() {
    let scenario = find("clean-20m-40ms").expect("built in");
    // 1378 B every 551.2 us fill 20 Mbit/s; every 0.58 ms they fill 95.03 %.
    let player = scripted(|_: &PlayRequest<'_>| {
        Ok(Script {
            packet_every_us: 580,
            rtt_ms: 81,
            ..Script::completing_in(29_995)
        })
    });
    let groups = play_all(&plan(&scenario, 2, 2), &player, &mut |_| {}).expect("played");
    let text = text_of(&scenario, &groups);
    // Without the line breaks, which fall where they may.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("MISSED newreno: utilisation from 5 s to 30 s, median: 95.0"),
        "{text}"
    );
    assert!(text.contains("expected at least 97 %"), "{text}");
    assert!(
        text.contains("met newreno: 95th percentile of the RTT from 5 s to 30 s"),
        "{text}"
    );
    assert!(text.contains("81.00 ms (2.025 RTT)"), "{text}");
    let run = &groups[0].runs[0];
    assert_eq!(run.windows.len(), 1);
    assert_eq!(
        run.completion_ns, None,
        "a download without a size has none"
    );
    // 1315 B every 0.58 ms.
    let goodput = run.windows[0].goodput_bps;
    assert!((18_130_000..18_150_000).contains(&goodput), "{goodput}");
}

#[test]
fn a_window_beyond_a_shorter_limit_is_not_judged_and_says_so() {
    let player = scripted(|_: &PlayRequest<'_>| Ok(Script::completing_in(9_000)));
    let words = [
        "clean-20m-40ms",
        "--seeds",
        "1",
        "--limit",
        "9 s",
        "--cc",
        "cubic",
    ];
    let (status, out, _) = run(&words, &player);
    assert_eq!(status, ExitStatus::Met);
    for words in [
        "not judged: its window ends at 30 s, after the limit of 9 s",
        "Every expectation that could be judged is met; 1 could not.",
    ] {
        assert!(out.contains(words), "{out}");
    }
}

/// A relay that is late by this, over real sockets.
fn play_late(lateness_p99_ns: u64) -> (ExitStatus, String) {
    let player = Scripted {
        script: |_: &PlayRequest<'_>| {
            Ok(Script {
                real: Some(RealTiming {
                    lateness_p99_ns,
                    lateness_max_ns: 9_000_000,
                    kernel_dropped_packets: Some(2),
                }),
                ..Script::completing_in(7000)
            })
        },
        is_real: true,
    };
    let (status, out, _) = run(&["loss-phase-30pct-2s", "--real"], &player);
    (status, out)
}

#[track_caller]
fn assert_says(out: &str, words: &[&str]) {
    for words in words {
        assert!(out.contains(words), "{words:?} in\n{out}");
    }
}

#[test]
fn over_real_sockets_only_completion_is_judged_and_lateness_is_told() {
    let (status, out) = play_late(1_000_000);
    assert_eq!(status, ExitStatus::Met);
    let words = [
        "10 runs per controller, over real sockets",
        "not judged: over real sockets only whether runs complete is",
        "The relay was late by 1.00 ms at most",
        "The kernel dropped 40 datagrams",
    ];
    assert_says(&out, &words);
    assert!(!out.contains("too busy"), "{out}");
}

#[test]
fn a_relay_that_is_late_by_more_than_a_millisecond_is_not_judged() {
    let (status, out) = play_late(1_300_000);
    assert_eq!(status, ExitStatus::NotJudged);
    let words = [
        "The relay was late by 1.30 ms at most",
        "In 20 of 20 runs that is more than 1 ms",
        "not judged: the relay was late by more than 1 ms",
    ];
    assert_says(&out, &words);
    assert!(!out.contains("only whether runs complete is"), "{out}");
}

#[test]
fn json_has_a_version_units_in_its_keys_and_goes_where_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.json");
    let path = path.to_str().expect("text");
    let player = scripted(slower_with_the_seed);
    let (status, out, _) = run(
        &["loss-phase-30pct-2s", "--seeds", "2", "--json", path],
        &player,
    );
    assert_eq!(status, ExitStatus::Met);
    assert!(
        out.starts_with("loss-phase-30pct-2s: "),
        "the table is still printed"
    );
    let text = std::fs::read_to_string(path).expect("written");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["version"], 1);
    assert_eq!(json["scenario"], "loss-phase-30pct-2s");
    assert_eq!(json["is_met"], true);
    assert_eq!(json["base_rtt_ns"], 10_000_000);
    let group = &json["groups"][1];
    assert_eq!(group["controller"], "cubic");
    assert_eq!(group["completed_count"], 2);
    let run = &group["runs"][1];
    assert_eq!(run["seed"], 2);
    assert_eq!(run["outcome"], "completed");
    assert_eq!(run["completion_ns"], 3_210_000_000_u64);
    assert_eq!(run["handshake_ns"], 10_000_000);
    assert_eq!(run["time_at_minimum_ns"], 410_000_000);
    assert_eq!(run["transitions"][0]["from"], "recovery");
    assert_eq!(run["forward"]["offered_packets"], 3216);
    let band = &group["verdicts"][1];
    assert_eq!(band["metric"], "completion");
    assert_eq!(band["min"]["amount"], 3_200_000_000_u64);
    assert_eq!(band["unit"], "ns");
    assert_eq!(band["verdict"], "met");

    let (_, out, err) = run_to_stdout(&player);
    let on_stdout: serde_json::Value = serde_json::from_str(&out).expect("only JSON");
    assert_eq!(on_stdout, json);
    assert!(
        err.starts_with("loss-phase-30pct-2s: "),
        "the table goes to standard error"
    );
}

#[test]
fn figures_of_an_article_stand_in_the_json_document() {
    let player = scripted(slower_with_the_seed);
    let (_, out, _) = run(
        &["mvno-lossy-proxy", "--seeds", "1", "--json", "-"],
        &player,
    );
    let json: serde_json::Value = serde_json::from_str(&out).expect("only JSON");
    let figure = &json["article"]["figures"][0];
    assert_eq!(figure["metric"], "completion");
    assert_eq!(figure["says"], "107 s");
    assert_eq!(figure["unit"], "ns");
    assert_eq!(figure["measured"][0]["controller"], "cubic");
    assert_eq!(figure["measured"][0]["amount"], 3_200_000_000_u64);
    let (_, out, _) = run_to_stdout(&player);
    let json: serde_json::Value = serde_json::from_str(&out).expect("only JSON");
    assert!(json.get("article").is_none(), "there is none");
}

fn run_to_stdout(player: &dyn Player) -> (ExitStatus, String, String) {
    run(
        &["loss-phase-30pct-2s", "--seeds", "2", "--json", "-"],
        player,
    )
}

#[test]
fn json_that_cannot_be_written_is_an_error() {
    let player = scripted(slower_with_the_seed);
    let words = [
        "loss-phase-30pct-2s",
        "--seeds",
        "1",
        "--json",
        "/no/such/folder/x.json",
    ];
    let (status, _, err) = run(&words, &player);
    assert_eq!(status, ExitStatus::Error);
    assert!(
        err.starts_with("error: cannot write /no/such/folder/x.json: No such file"),
        "{err}"
    );
}

#[test]
fn every_run_gets_its_own_directory_for_qlog() {
    let folder = tempfile::tempdir().expect("a folder");
    let parent = folder.path().join("traces");
    let player = scripted(|request: &PlayRequest<'_>| {
        let dir = request.qlog_dir.expect("asked for");
        assert!(dir.is_dir());
        std::fs::write(dir.join("x.sqlog"), "").expect("written");
        slower_with_the_seed(request)
    });
    let parent_text = parent.to_str().expect("text");
    let words = [
        "loss-phase-30pct-2s",
        "--seeds",
        "2",
        "--cc",
        "cubic,fixed:10Mbit/s",
    ];
    let (_, _, err) = run(&[&words[..], &["--qlog", parent_text]].concat(), &player);
    assert_eq!(err, "");
    let mut names: Vec<String> = std::fs::read_dir(&parent)
        .expect("made")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "loss-phase-30pct-2s_10MB_cubic_seed-0001",
            "loss-phase-30pct-2s_10MB_cubic_seed-0002",
            "loss-phase-30pct-2s_10MB_fixed-10Mbit-s_seed-0001",
            "loss-phase-30pct-2s_10MB_fixed-10Mbit-s_seed-0002",
        ]
    );
}

#[test]
fn a_qlog_directory_that_cannot_be_made_is_an_error() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    let player = scripted(slower_with_the_seed);
    let (status, _, err) = run(
        &["loss-phase-30pct-2s", "--seeds", "1", "--qlog", path],
        &player,
    );
    assert_eq!(status, ExitStatus::Error);
    assert!(
        err.starts_with("error: cannot make the qlog directory "),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn progress_is_shown_on_a_terminal_only_and_wiped_afterwards() {
    let command =
        RunCommand::try_parse_from(["run", "loss-phase-30pct-2s", "--seeds", "1"]).expect("good");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let player = scripted(slower_with_the_seed);
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        shows_progress: true,
    };
    assert_eq!(
        run_on(&command.args, &player, &mut streams),
        ExitStatus::Met
    );
    let err = String::from_utf8(err).expect("text");
    assert!(
        err.contains("\rloss-phase-30pct-2s: 1 of 2 runs\rloss-phase-30pct-2s: 2 of 2 runs\r "),
        "{err:?}"
    );
    assert!(err.ends_with('\r') && !err.contains('\n'), "{err:?}");
}

#[test]
fn the_list_shows_every_scenario_in_80_columns_and_prints_files() {
    let list = |words: &[&str]| {
        let words = ["list"].iter().chain(words);
        let command = ListCommand::try_parse_from(words).expect("good flags");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = list_on(
            &command.args,
            &mut Streams {
                out: &mut out,
                err: &mut err,
                shows_progress: false,
            },
        );
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (status, text(out), text(err))
    };
    let (status, out, _) = list(&[]);
    assert_eq!(status, ExitStatus::Met);
    assert!(out.ends_with("random-loss             Another name of rand-loss-1pct.\n"));
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(
        out.lines().take(2).collect::<Vec<_>>(),
        [
            "min-cwnd-trap           10 MB through 30 % loss for 2 s on a fast link: does the",
            "                        window leave its minimum again?",
        ]
    );
    let (status, out, _) = list(&["rate-step"]);
    assert_eq!(status, ExitStatus::Met);
    let again = Scenario::parse("copy.toml", &out).expect("what is printed can be played");
    assert_eq!(again.name, "rate-step");
    let other_name = list(&["cubic-single"]);
    assert_eq!(other_name, list(&["clean-100m-40ms"]));
    assert!(other_name.1.contains("name = \"clean-100m-40ms\""));
    let (status, _, err) = list(&["rate-stp"]);
    assert_eq!(status, ExitStatus::Error);
    assert!(err.contains("did you mean \"rate-step\"?"), "{err}");
}
