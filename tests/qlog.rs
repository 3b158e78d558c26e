//! `tidegate qlog` as a user meets it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use program::tidegate;

#[path = "support/program.rs"]
mod program;

/// An empty directory for one test.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("qlog")
        .join(test);
    if path.exists() {
        fs::remove_dir_all(&path).expect("emptied");
    }
    fs::create_dir_all(&path).expect("made");
    path
}

/// A download of 300 kB with some loss, played with a log: the server's file and the client's.
fn logs(folder: &Path, controller: &str, seed: u64) -> [String; 2] {
    logs_of(folder, "300 kB", controller, seed)
}

fn logs_of(folder: &Path, size: &str, controller: &str, seed: u64) -> [String; 2] {
    let scenario = folder.join("small.toml");
    let text = "name = \"small\"\n\
        about = \"Does a small download complete?\"\n\
        limit = \"10 s\"\n\
        seeds = 1\n\
        controllers = [\"newreno\"]\n\
        [link]\n\
        rate = \"10 Mbit/s\"\n\
        rtt = \"20 ms\"\n\
        queue = \"1 BDP\"\n\
        loss = \"1 %\"\n\
        [download]\n\
        size = \"SIZE\"\n";
    fs::write(&scenario, text.replace("SIZE", size)).expect("written");
    let logs = folder.join(format!("{controller}-{seed}"));
    let seed = seed.to_string();
    let ended = tidegate(&[
        "run",
        scenario.to_str().expect("text"),
        "--cc",
        controller,
        "--seed",
        &seed,
        "--qlog",
        logs.to_str().expect("text"),
    ]);
    assert_eq!(ended.status, Some(0), "{}", ended.err);
    ["_server.sqlog", "_client.sqlog"].map(|end| {
        let runs = fs::read_dir(&logs).expect("a directory for the run");
        let run = runs.last().expect("a run").expect("an entry").path();
        let mut files = fs::read_dir(run).expect("two files");
        files
            .find_map(|file| {
                let path = file.expect("an entry").path().to_str()?.to_owned();
                path.ends_with(end).then_some(path)
            })
            .expect("one for each side")
    })
}

#[track_caller]
fn refuses(words: &[&str], texts: &[&str]) {
    let ended = tidegate(words);
    assert_eq!(ended.err.lines().count(), 1, "{words:?}: {}", ended.err);
    assert!(ended.err.starts_with("error: "), "{}", ended.err);
    for text in texts {
        assert!(ended.err.contains(text), "{text:?} in {}", ended.err);
    }
    assert_eq!(
        (ended.status, ended.out.as_str()),
        (Some(2), ""),
        "{words:?}"
    );
}

#[test]
fn a_wrong_word_is_answered_with_the_verbs_or_flags() {
    refuses(
        &["qlog", "look"],
        &[
            "look",
            "allowed are check, summary, why, oracles, diff, plot, convert",
        ],
    );
    refuses(
        &["qlog", "check", "--all", "x"],
        &["--all", "--for, --most"],
    );
    refuses(
        &["qlog", "summary", "src"],
        &["cannot open src: it is a directory"],
    );
    refuses(
        &["qlog", "check", "--for", "me", "x"],
        &["allowed are structure and qvis"],
    );
    refuses(
        &["qlog", "check", "missing.sqlog"],
        &["cannot open missing.sqlog:", "No such file"],
    );
}

#[test]
fn our_files_are_right_and_a_cut_one_is_told_where() {
    let folder = folder("check");
    let [server, client] = logs(&folder, "cubic", 1);
    let ended = tidegate(&["qlog", "check", &server, &client]);
    assert_eq!(
        (ended.status, ended.err.as_str()),
        (Some(0), ""),
        "{}",
        ended.out
    );
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.out);
    assert!(
        lines[0].ends_with(" events, structure ok, qvis ok"),
        "{}",
        ended.out
    );

    let mut file = fs::read(&server).expect("readable");
    file.truncate(file.len() - 30);
    let cut = folder.join("cut.sqlog");
    fs::write(&cut, file).expect("written");
    let ended = tidegate(&["qlog", "check", cut.to_str().expect("text")]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(1), ""));
    assert!(
        ended
            .out
            .contains(": the file ends in the middle of a record\n"),
        "{}",
        ended.out
    );
}

/// The share of a limit, in thousandths.
fn share(file: &str, limit: &str) -> u64 {
    let ended = tidegate(&["qlog", "why", "--json", file]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    let why: serde_json::Value = serde_json::from_str(&ended.out).expect("one document");
    let causes = why["causes"].as_array().expect("causes");
    let sum: u64 = causes
        .iter()
        .filter_map(|cause| cause["share_per_mille"].as_u64())
        .sum();
    assert_eq!(sum, 1_000);
    causes
        .iter()
        .find(|cause| cause["limit"] == limit)
        .and_then(|cause| cause["share_per_mille"].as_u64())
        .expect("a share")
}

/// A rate set by hand is kept by the pacer; a bulk sender with a controller fills its window.
#[test]
fn why_names_what_is_known_to_limit() {
    let folder = folder("why");
    let [paced, _] = logs(&folder, "fixed:1Mbit/s", 1);
    assert!(share(&paced, "pacing") > 900, "{}", share(&paced, "pacing"));
    let [bulk, client] = logs_of(&folder, "3 MB", "cubic", 1);
    let full = share(&bulk, "window") + share(&bulk, "recovery");
    assert!(full > 700, "{full}");
    assert!(share(&bulk, "application") < 50);
    let ended = tidegate(&["qlog", "why", &client]);
    assert!(
        ended.out.contains("Note: this side mostly received;"),
        "{}",
        ended.out
    );
}

#[test]
fn summary_fits_the_terminal_and_agrees_with_its_json() {
    let folder = folder("summary");
    let [server, client] = logs(&folder, "newreno", 2);
    for file in [&server, &client] {
        let ended = tidegate(&["qlog", "summary", file]);
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
        assert!(ended.out.lines().count() <= 24, "{}", ended.out);
        assert!(
            ended.out.lines().all(|line| line.chars().count() <= 80),
            "{}",
            ended.out
        );
        let json = tidegate(&["qlog", "summary", "--json", file]).out;
        let json: serde_json::Value = serde_json::from_str(&json).expect("one document");
        let lost = json["packets"]["lost"].as_u64().expect("a number");
        assert!(
            ended
                .out
                .contains(&format!("lost            {lost} packets")),
            "{}",
            ended.out
        );
        let delivered = json["delivered_bytes"].as_u64().expect("a number");
        assert!((200_000..310_000).contains(&delivered), "{delivered}");
    }
}

#[test]
fn what_is_left_of_a_cut_file_is_used() {
    let folder = folder("left");
    let [server, _] = logs(&folder, "newreno", 1);
    let mut file = fs::read(&server).expect("readable");
    file.truncate(file.len() / 2);
    let cut = folder.join("cut.sqlog");
    fs::write(&cut, file).expect("written");
    for verb in ["summary", "why"] {
        let ended = tidegate(&["qlog", verb, cut.to_str().expect("text")]);
        assert_eq!(ended.status, Some(0), "{verb}");
        assert!(!ended.out.is_empty());
        assert_eq!(ended.err.lines().count(), 1);
        assert!(
            ended.err.starts_with("warning: ") && ended.err.contains("; what is before it is used"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn what_could_not_be_read_is_not_in_order() {
    let folder = folder("broken");
    let [server, _] = logs(&folder, "newreno", 1);
    let mut file = fs::read(&server).expect("readable");
    file.truncate(file.len() / 2);
    let cut = folder.join("cut.sqlog");
    fs::write(&cut, file).expect("written");
    let other = folder.join("other.json");
    fs::write(&other, "{\"groups\": [{\"runs\": []}]}").expect("written");
    let [cut, other] = [&cut, &other].map(|path| path.to_str().expect("text"));
    let ended = tidegate(&["qlog", "oracles", cut]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(1), ""));
    assert!(
        ended
            .out
            .contains("the file ends in the middle of a record")
    );
    assert!(!ended.out.contains("ok\n"), "{}", ended.out);
    let ended = tidegate(&["qlog", "diff", cut, cut]);
    assert_eq!(ended.status, Some(1), "{}", ended.out);
    // One that cannot be opened hides none of the others.
    for verb in ["oracles", "check"] {
        let ended = tidegate(&["qlog", verb, "missing.sqlog", other, &server]);
        assert_eq!(ended.status, Some(2), "{verb}");
        assert!(ended.out.starts_with(&server) && ended.out.ends_with("ok\n"));
        let errors: Vec<&str> = ended.err.lines().collect();
        assert_eq!(errors.len(), 2, "{}", ended.err);
        assert!(errors[0].starts_with("error: cannot open missing.sqlog"));
        assert!(errors[1].contains("other.json") && errors[1].contains("this is not qlog"));
    }
}

#[test]
fn equal_runs_do_not_part_and_others_do_at_their_first_difference() {
    let folder = folder("diff");
    let [one, client] = logs(&folder, "newreno", 1);
    let other_folder = folder.join("again");
    fs::create_dir_all(&other_folder).expect("made");
    let [again, _] = logs(&other_folder, "newreno", 1);
    let ended = tidegate(&["qlog", "diff", &one, &again]);
    assert_eq!(
        (ended.status, ended.err.as_str()),
        (Some(0), ""),
        "{}",
        ended.out
    );
    let [other, _] = logs(&folder, "cubic", 1);
    let ended = tidegate(&["qlog", "diff", &one, &other]);
    assert_eq!(ended.status, Some(1));
    assert!(
        ended
            .out
            .contains("  cc_algorithm: \"newreno\" | \"cubic\"\n"),
        "{}",
        ended.out
    );
    let ended = tidegate(&["qlog", "diff", &one, &other, "--ignore", "cc_algorithm"]);
    assert_eq!(ended.status, Some(1), "they do not behave alike");
    assert!(
        ended.out.contains(" events are the same, up to record "),
        "{}",
        ended.out
    );
    refuses(&["qlog", "diff", &client], &["<B>"]);
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = folder("itself");
    let [server, _] = logs(&folder, "cubic", 1);
    let before = fs::read(&server).expect("readable");
    let other_name = folder.join("the-same.sqlog");
    fs::hard_link(&server, &other_name).expect("a link");
    for output in [server.as_str(), other_name.to_str().expect("text")] {
        for verb in ["plot", "convert"] {
            let words = ["qlog", verb, &server, "-o", output];
            refuses(&words, &["is the file that is read", "-o"]);
        }
    }
    assert_eq!(fs::read(&server).expect("readable"), before);
}

#[test]
fn pictures_and_tables_are_written_whole() {
    let folder = folder("written");
    let [server, _] = logs(&folder, "cubic", 1);
    let picture = folder.join("a.svg");
    let path = picture.to_str().expect("text");
    let ended = tidegate(&["qlog", "plot", &server, "-o", path]);
    assert_eq!(
        (ended.status, ended.err.as_str(), ended.out.as_str()),
        (Some(0), "", "")
    );
    let svg = fs::read_to_string(&picture).expect("written");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(">congestion_avoidance<"));
    assert_eq!(tidegate(&["qlog", "plot", &server, "-o", "-"]).out, svg);

    let events = fs::read_to_string(&server)
        .expect("readable")
        .lines()
        .count()
        - 1;
    let table = tidegate(&["qlog", "convert", &server]);
    assert_eq!((table.status, table.err.as_str()), (Some(0), ""));
    assert_eq!(table.out.lines().count(), events + 1);
    let written = folder.join("a.csv");
    let ended = tidegate(&[
        "qlog",
        "convert",
        &server,
        "-o",
        written.to_str().expect("text"),
    ]);
    assert_eq!(ended.out, "");
    assert_eq!(fs::read_to_string(written).expect("written"), table.out);

    refuses(
        &["qlog", "plot", &server, "-o", "no/such/folder/a.svg"],
        &["cannot write no/such/folder/a.svg"],
    );
    refuses(
        &["qlog", "convert", &server, "-o", "no/such/folder/a.csv"],
        &["cannot write no/such/folder/a.csv"],
    );
    refuses(&["qlog", "plot", &server], &["--output <FILE>"]);
}

#[test]
fn every_verb_has_examples_and_fits_the_terminal() {
    let verbs = [
        "check", "summary", "why", "oracles", "diff", "plot", "convert",
    ];
    for verb in verbs {
        let ended = tidegate(&["qlog", verb, "--help"]);
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""), "{verb}");
        assert!(
            ended.out.contains("\nExamples:\n  tidegate qlog "),
            "{}",
            ended.out
        );
        assert!(
            ended.out.lines().all(|line| line.chars().count() <= 80),
            "{}",
            ended.out
        );
    }
}

#[test]
fn oracles_are_silent_on_clean_files() {
    let folder = folder("clean");
    for controller in ["newreno", "cubic", "fixed:1Mbit/s"] {
        for seed in 1..=3 {
            let [server, client] = logs(&folder, controller, seed);
            let ended = tidegate(&["qlog", "oracles", &server, &client]);
            assert_eq!(
                (ended.status, ended.err.as_str()),
                (Some(0), ""),
                "{}",
                ended.out
            );
            assert!(
                ended.out.lines().all(|line| line.ends_with(": ok")),
                "{}",
                ended.out
            );
        }
    }
}

/// The fault of quiche's CUBIC, named on the log alone.
#[cfg(feature = "mutants")]
#[test]
fn oracles_name_the_fault_of_the_trap() {
    let folder = folder("trap");
    let logs = folder.join("logs");
    let ended = tidegate(&[
        "run",
        "min-cwnd-trap",
        "--cc",
        "cubic-trap",
        "--seed",
        "3",
        "--qlog",
        logs.to_str().expect("text"),
    ]);
    assert_eq!(ended.err, "");
    let run = fs::read_dir(&logs).expect("made").next().expect("a run");
    let files = fs::read_dir(run.expect("an entry").path()).expect("two files");
    let server = files
        .map(|file| {
            file.expect("an entry")
                .path()
                .to_str()
                .expect("text")
                .to_owned()
        })
        .find(|file| file.ends_with("_server.sqlog"))
        .expect("one of the server");
    let ended = tidegate(&["qlog", "oracles", &server]);
    assert_eq!((ended.status, ended.err.as_str()), (Some(1), ""));
    for oracle in [": O1 at ", ": O3 at "] {
        assert!(ended.out.contains(oracle), "{}", ended.out);
    }
}
