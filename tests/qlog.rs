//! `tidegate qlog` as a user meets it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// What a run of the program left.
struct Ended {
    status: Option<i32>,
    out: String,
    err: String,
}

fn tidegate(words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(words).env_remove("COLUMNS");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    Ended {
        status: status.code(),
        out: String::from_utf8(stdout).expect("text"),
        err: String::from_utf8(stderr).expect("text"),
    }
}

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
        size = \"300 kB\"\n";
    fs::write(&scenario, text).expect("written");
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
        let file = files
            .find_map(|file| {
                let path = file.expect("an entry").path().to_str()?.to_owned();
                path.ends_with(end).then_some(path)
            })
            .expect("one for each side");
        file
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
    refuses(&["qlog", "look"], &["look", "allowed are check"]);
    refuses(
        &["qlog", "check", "--all", "x"],
        &["--all", "--for, --most"],
    );
    refuses(
        &["qlog", "check", "--for", "me", "x"],
        &["allowed are structure and qvis"],
    );
    refuses(
        &["qlog", "check", "missing.sqlog"],
        &["missing.sqlog: record 1, byte 0:", "No such file"],
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
