//! The program as a user meets it: exit status, one line per error, results on standard output.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use program::tidegate;

#[path = "support/program.rs"]
mod program;

/// An empty directory for one test.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if path.exists() {
        fs::remove_dir_all(&path).expect("emptied");
    }
    fs::create_dir_all(&path).expect("made");
    path
}

/// A file that plays in a blink, with one text replaced.
fn scenario(folder: &Path, old: &str, new: &str) -> String {
    const TEXT: &str = "name = \"small\"\n\
        about = \"Does a small download complete?\"\n\
        limit = \"10 s\"\n\
        seeds = 2\n\
        controllers = [\"newreno\", \"cubic\"]\n\
        [link]\n\
        rate = \"10 Mbit/s\"\n\
        rtt = \"20 ms\"\n\
        queue = \"1 BDP\"\n\
        [download]\n\
        size = \"50 kB\"\n\
        [expect.all]\n\
        completion = { of = \"every\", max = \"500 ms\" }\n";
    assert_eq!(TEXT.matches(old).count(), 1, "{old:?} occurs once");
    let path = folder.join("small.toml");
    fs::write(&path, TEXT.replacen(old, new, 1)).expect("written");
    path.to_str().expect("text").to_owned()
}

/// The command is refused: status 2, nothing on standard output, one line on standard error that
/// holds each of these texts.
#[track_caller]
fn refuses(words: &[&str], texts: &[&str]) {
    let ended = tidegate(words);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!(lines.len(), 1, "{words:?}: {}", ended.err);
    assert!(lines[0].starts_with("error: "), "{}", ended.err);
    for text in texts {
        assert!(ended.err.contains(text), "{text:?} in {}", ended.err);
    }
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert_eq!(ended.status, Some(2), "{words:?}");
    assert_eq!(ended.out, "", "{words:?}");
}

#[test]
fn an_unknown_scenario_is_answered_with_the_nearest_and_all() {
    for command in ["run", "list"] {
        refuses(
            &[command, "min-cwnd-trp"],
            &[
                "no scenario \"min-cwnd-trp\", did you mean \"min-cwnd-trap\"?",
                "there are min-cwnd-trap, min-cwnd-trap-scripted, loss-phase-30pct-2s, clean-20m-40ms, fct-ladder, rand-loss-1pct, rate-step, clean-100m-40ms, bufferbloat-50m-30ms, ge-burst-1pct, policer-10m-24k, mvno-policer, mvno-lossy, mvno-lossy-proxy, loss-phase-mid, blackout-2s, rate-up-x10, aqm-codel-20ms, aqm-codel-100ms, intra-fair, two-way, rtt-step-up, wifi-jitter-walk, late-joiner, ack-loss-10pct, ack-loss-50pct, ack-thin-10, ack-thin-32, ack-slots-20ms, ecn-codel, fairness, handover, reorder-1pct, aqm-pie-20ms, aqm-pie-100ms, aqm-red-20ms, aqm-red-100ms, aqm-dualpi2-20ms, aqm-dualpi2-100ms, buffer-tenth, buffer-quarter, buffer-half, buffer-4bdp, buffer-16bdp, intra-fair-4, intra-fair-8, fair-1v3, rtt-fair, ecn-coexist, idle-restart, idle-restart-12s, short-flows, media-vs-bulk, fq-isolation, fifo-no-isolation, wifi-bad, wifi-suspended, wifi-suspended-six, geo-600ms, ack-narrow-uplink, rand-loss-0-03pct, rand-loss-0-1pct, rand-loss-0-3pct, rand-loss-3pct, slow-short, slow-long, cellular-att, cubic-single, bufferbloat, random-loss",
            ],
        );
    }
    refuses(&["run", "xyz"], &["no scenario \"xyz\"; there are"]);
}

#[test]
fn an_unreadable_file_is_named() {
    let folder = folder("unreadable");
    let missing = folder.join("missing.toml");
    let missing = missing.to_str().expect("text");
    refuses(
        &["run", missing],
        &[missing, "cannot be read: No such file"],
    );
    let binary = folder.join("binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0]).expect("written");
    let binary = binary.to_str().expect("text");
    refuses(&["run", binary], &[binary, "it is not text in UTF-8"]);
    let folder = folder.to_str().expect("text");
    refuses(&["run", folder], &[folder, "cannot be read: "]);
}

#[test]
fn a_mistake_in_a_file_is_answered_with_line_key_and_what_is_allowed() {
    for (test, old, new, line, texts) in [
        (
            "misspelt",
            "queue",
            "queu",
            9,
            [
                "link.queu: unknown key",
                "allowed are rate, rtt, queue, loss",
            ],
        ),
        (
            "range",
            "20 ms",
            "90 s",
            8,
            ["link.rtt: 90 s is out of range", "allowed is 0 s to 60 s"],
        ),
        (
            "unit",
            "10 Mbit/s",
            "10 MB",
            7,
            ["link.rate: \"10 MB\"", "Mbit/s"],
        ),
        (
            "no-unit",
            "20 ms",
            "20",
            8,
            ["link.rtt: \"20\": the unit is missing", "ms"],
        ),
        (
            "controller",
            "\"cubic\"",
            "\"vegas\"",
            5,
            [
                "\"vegas\": unknown controller",
                "allowed are newreno, cubic",
            ],
        ),
        ("syntax", "size = ", "size ", 11, ["is not valid TOML", ""]),
    ] {
        let path = scenario(&folder(test), old, new);
        refuses(
            &["run", &path],
            &[&format!("{path}:{line}: "), texts[0], texts[1]],
        );
    }
}

#[test]
fn a_wrong_flag_is_answered_with_what_is_allowed() {
    let trap = "min-cwnd-trap";
    for (words, texts) in [
        (
            vec!["run", trap, "--cc", "vegas"],
            [
                "--cc <LIST>",
                "allowed are newreno, cubic, bbr3, fixed:RATE",
            ],
        ),
        (
            vec!["run", trap, "--cc", "fixed:10"],
            ["--cc <LIST>", "Mbit/s"],
        ),
        (
            vec!["run", trap, "--seeds", "0"],
            ["'0' for '--seeds <N>'", "a whole number from 1 to 100000"],
        ),
        (
            vec!["run", trap, "--seeds", "-1"],
            ["'-1' for '--seeds <N>'", "a whole number from 1 to 100000"],
        ),
        (
            vec!["run", trap, "--seeds", "many"],
            [
                "'many' for '--seeds <N>'",
                "a whole number from 1 to 100000",
            ],
        ),
        (
            vec!["run", trap, "--seed", "1.5"],
            ["'1.5' for '--seed <S>'", "a whole number from 0 to"],
        ),
        (
            vec!["run", trap, "--seeds", "3", "--seed", "1"],
            ["'--seeds <N>'", "cannot be used with '--seed <S>'"],
        ),
        (
            vec!["run", trap, "--jobs", "0"],
            ["'0' for '--jobs <N>'", "a whole number above 0"],
        ),
        (
            vec!["run", trap, "--limit", "10"],
            ["'10' for '--limit <TIME>'", "the unit is missing"],
        ),
        (
            vec!["run", trap, "--limit", "2 h"],
            ["'2 h' for '--limit <TIME>'", "up to 3600 s"],
        ),
        (
            vec!["run", trap, "--sed", "4"],
            ["unexpected argument '--sed'", "--seed"],
        ),
        (
            vec!["run", trap, "--frobnicate"],
            [
                "unexpected argument '--frobnicate'",
                "allowed are --cc, --seeds, --seed, --limit",
            ],
        ),
        (
            vec!["run", trap, "other"],
            ["unexpected argument 'other'", ""],
        ),
        (
            vec!["run"],
            ["required arguments were not provided", "<SCENARIO>"],
        ),
        (
            vec!["play", trap],
            [
                "unrecognized subcommand 'play'",
                "allowed are run, sweep, list, serve, get, qlog",
            ],
        ),
    ] {
        refuses(&words, &texts);
    }
}

#[test]
fn results_that_cannot_be_written_are_an_error() {
    let folder = folder("unwritable");
    let path = scenario(&folder, "seeds = 2", "seeds = 1");
    let json = folder.join("no/such/folder.json");
    let ended = tidegate(&["run", &path, "--json", json.to_str().expect("text")]);
    assert_eq!(ended.status, Some(2));
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(
        ended.err.starts_with("error: cannot write "),
        "{}",
        ended.err
    );
    let ended = tidegate(&["run", &path, "--qlog", &path]);
    assert_eq!(ended.status, Some(2));
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(
        ended
            .err
            .starts_with("error: cannot make the qlog directory "),
        "{}",
        ended.err
    );
}

#[test]
fn a_device_is_no_scenario_and_fills_no_memory() {
    refuses(&["run", "/dev/zero"], &["/dev/zero", "larger than 1 MiB"]);
}

#[test]
fn one_file_cannot_take_both_results_and_plot() {
    let folder = folder("one-file");
    let file = scenario(&folder, "seeds = 2", "seeds = 1");
    let path = folder.join("out").to_str().expect("text").to_owned();
    refuses(
        &["run", &file, "--json", &path, "--plot", &path],
        &["--json", "--plot", "same file"],
    );
}

#[test]
fn the_command_that_shows_the_worst_run_again_names_the_file_and_keeps_the_limit() {
    let folder = folder("replay");
    let file = scenario(&folder, "max = \"500 ms\"", "max = \"1 ms\"");
    let ended = tidegate(&["run", &file, "--seeds", "1", "--limit", "5 s"]);
    assert_eq!(ended.status, Some(1), "{}", ended.err);
    let command = format!("tidegate run {file} --cc newreno --seed 1 --limit \"5 s\"");
    assert!(
        ended.out.lines().any(|line| line.trim() == command),
        "{}",
        ended.out
    );
}

/// A limit on the size of files stands in for a full disk.
#[test]
fn a_log_that_does_not_fit_on_the_disk_is_an_error() {
    let folder = folder("full-disk");
    let file = scenario(&folder, "seeds = 2", "seeds = 1");
    let logs = folder.join("logs");
    let ended = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 8; exec \"$0\" run \"$1\" --qlog \"$2\"")
        .arg(env!("CARGO_BIN_EXE_tidegate"))
        .arg(&file)
        .arg(&logs)
        .output()
        .expect("the program starts");
    let err = String::from_utf8(ended.stderr).expect("text");
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("qlog") && err.contains("incomplete"), "{err}");
}

#[test]
fn the_status_is_0_when_everything_is_met_and_1_when_something_is_not() {
    let folder = folder("status");
    let ended = tidegate(&["run", &scenario(&folder, "seeds = 2", "seeds = 3")]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert!(
        ended.out.contains("\nEvery expectation is met.\n"),
        "{}",
        ended.out
    );
    let ended = tidegate(&["run", &scenario(&folder, "500 ms", "5 ms")]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(1), ""));
    assert!(
        ended.out.contains("\n2 expectations are not met.\n"),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains("MISSED  newreno: completion"),
        "{}",
        ended.out
    );
}

#[test]
fn the_table_fits_the_terminal_and_holds_no_progress() {
    let ended = tidegate(&["run", "min-cwnd-trap", "--seeds", "2"]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert_eq!(too_wide(&ended.out), Vec::<&str>::new());
    assert!(!ended.out.contains('\r'), "{:?}", ended.out);
    for row in ["newreno      2/2", "cubic        2/2"] {
        assert!(ended.out.contains(row), "{}", ended.out);
    }
}

#[test]
fn the_list_fits_the_terminal_and_prints_files_that_play() {
    let ended = tidegate(&["list"]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert_eq!(too_wide(&ended.out), Vec::<&str>::new());
    for name in [
        "min-cwnd-trap ",
        "clean-20m-40ms ",
        "fct-ladder ",
        "rand-loss-1pct ",
        "rate-step ",
    ] {
        assert!(
            ended.out.lines().any(|line| line.starts_with(name)),
            "{name}"
        );
    }
    let ended = tidegate(&["list", "fct-ladder"]);
    let path = folder("list").join("copy.toml");
    fs::write(&path, ended.out).expect("written");
    let path = path.to_str().expect("text");
    let ended = tidegate(&["run", path, "--seeds", "1", "--cc", "cubic"]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn json_on_standard_output_is_one_document_with_a_version() {
    let path = scenario(&folder("json"), "seeds = 2", "seeds = 1");
    let ended = tidegate(&["run", &path, "--seed", "1", "--json", "-"]);
    assert_eq!(ended.status, Some(0));
    let document: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON, all of it");
    assert_eq!(document["version"], 1);
    assert_eq!(document["scenario"], "small");
    assert_eq!(document["is_met"], true);
    assert_eq!(document["groups"][1]["controller"], "cubic");
    assert_eq!(document["groups"][1]["runs"][0]["outcome"], "completed");
    assert_eq!(document["groups"][1]["runs"][0]["app_bytes"], 50_000);
    assert!(ended.err.starts_with("small: "), "the table goes elsewhere");
    assert!(!ended.err.contains('\r'), "{:?}", ended.err);
}

#[test]
fn two_processes_write_the_same_logs_to_the_byte() {
    let folder = folder("processes");
    let play = |name: &str, jobs: &str| {
        let path = folder.join(name);
        let text = path.to_str().expect("text");
        let words = [
            "run",
            "min-cwnd-trap",
            "--seeds",
            "2",
            "--jobs",
            jobs,
            "--cc",
            "newreno,cubic",
            "--qlog",
            text,
        ];
        let ended = tidegate(&words);
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
        let mut logs = Vec::new();
        for run in fs::read_dir(path).expect("made") {
            let run = run.expect("an entry").path();
            for log in fs::read_dir(&run).expect("made") {
                let log = log.expect("an entry").path();
                let name = log
                    .strip_prefix(folder.join(name))
                    .expect("below")
                    .to_owned();
                logs.push((name, fs::read(&log).expect("readable")));
            }
        }
        logs.sort();
        (ended.out, logs)
    };
    let (first_table, first) = play("first", "1");
    let (second_table, second) = play("second", "3");
    assert_eq!(first_table, second_table);
    assert_eq!(first.len(), 2 * 2 * 2, "controllers, seeds, sides");
    for ((first_name, first), (second_name, second)) in first.iter().zip(&second) {
        assert_eq!(first_name, second_name);
        assert!(first == second, "{} differs", first_name.display());
    }
}

#[test]
fn help_has_examples_and_fits_the_terminal() {
    for command in ["run", "list", "serve", "get", "qlog"] {
        let ended = tidegate(&[command, "--help"]);
        assert_eq!(
            (ended.status, ended.err.as_str()),
            (Some(0), ""),
            "{command}"
        );
        assert!(
            ended.out.contains("\nExamples:\n"),
            "{command}: {}",
            ended.out
        );
        let example = format!("\n  tidegate {command}");
        assert!(ended.out.contains(&example), "{command}: {}", ended.out);
        assert_eq!(too_wide(&ended.out), Vec::<&str>::new(), "{command}");
    }
    let ended = tidegate(&["--help"]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert_eq!(too_wide(&ended.out), Vec::<&str>::new());
    let ended = tidegate(&["--version"]);
    assert_eq!(ended.status, Some(0));
    assert_eq!(
        ended.out,
        format!("tidegate {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// Without any word the help is shown, as an error.
#[test]
fn nothing_at_all_is_answered_with_the_help() {
    let ended = tidegate(&[]);
    assert_eq!((ended.status, ended.out.as_str()), (Some(2), ""));
    for command in ["run", "list", "serve", "get", "qlog"] {
        assert!(
            ended.err.contains(&format!("\n  {command} ")),
            "{}",
            ended.err
        );
    }
}

fn too_wide(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.chars().count() > 80)
        .collect()
}

/// The worst seed is played again with a log, and a directory that cannot be had is told before the runs.
#[test]
fn the_worst_seed_is_logged_for_every_controller() {
    let folder = folder("worst");
    let file = scenario(&folder, "seeds = 2", "seeds = 3");
    let logs = folder.join("logs");
    let path = logs.to_str().expect("text");
    let ended = tidegate(&["run", &file, "--cc", "newreno,cubic", "--qlog-worst", path]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert!(
        ended.out.contains(", the worst, are below "),
        "{}",
        ended.out
    );
    let runs = fs::read_dir(&logs).expect("made");
    let mut names: Vec<String> = runs
        .map(|run| {
            run.expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    let seeds: Vec<&str> = names
        .iter()
        .filter_map(|name| name.split("seed-").nth(1))
        .collect();
    assert_eq!(seeds.len(), 2, "{names:?}");
    assert_eq!(seeds[0], seeds[1], "{names:?}");

    let in_the_way = folder.join("file");
    fs::write(&in_the_way, "").expect("written");
    let path = in_the_way.to_str().expect("text");
    refuses(
        &["run", &file, "--qlog-worst", path],
        &["cannot make the qlog directory", path],
    );
    refuses(
        &["run", &file, "--real", "--qlog-worst", path],
        &["--qlog-worst", "--real"],
    );
}

#[test]
fn a_pattern_plays_every_scenario_that_fits_and_no_other() {
    let ended = tidegate(&["run", "min-cwnd-*", "--cc", "cubic", "--seeds", "1"]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    let heads: Vec<&str> = ended
        .out
        .lines()
        .filter_map(|line| line.split(": ").next())
        .filter(|word| word.starts_with("min-cwnd"))
        .collect();
    assert_eq!(heads, ["min-cwnd-trap", "min-cwnd-trap-scripted"]);
    refuses(
        &["run", "x*"],
        &[
            "no built-in scenario fits \"x*\"",
            "there are min-cwnd-trap",
        ],
    );
    refuses(
        &["run", "*", "--json", "-"],
        &["--json and --plot take one scenario, not several"],
    );
}

#[test]
fn a_sweep_plays_every_combination_and_fits_the_terminal() {
    let folder = folder("sweep");
    let file = scenario(&folder, "seeds = 2", "seeds = 3");
    let json = folder.join("sweep.json");
    let path = json.to_str().expect("text");
    let ended = tidegate(&[
        "sweep",
        &file,
        "--over",
        "link.rtt=10ms,40ms",
        "--over",
        "cc=newreno,cubic",
        "--json",
        path,
    ]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    let rows: Vec<&str> = ended.out.lines().skip(2).collect();
    assert_eq!(rows.len(), 4, "{}", ended.out);
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ended.out
    );
    let text = fs::read_to_string(&json).expect("written");
    let points: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let median = |index: usize| points[index]["median"].as_u64().expect("a number");
    assert!(median(2) > median(0), "a longer way takes longer");
    let again = tidegate(&[
        "sweep",
        &file,
        "--over",
        "link.rtt=10ms,40ms",
        "--over",
        "cc=newreno,cubic",
    ]);
    assert_eq!(again.out, ended.out);
    refuses(
        &["sweep", &file, "--over", "link.rtt"],
        &["--over \"link.rtt\"", "there is no ="],
    );
    refuses(
        &["sweep", &file, "--over", "link.rtt=soon"],
        &["link.rtt=soon", "not a number"],
    );
}
