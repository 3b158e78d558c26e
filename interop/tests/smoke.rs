//! The set "smoke": which scenarios it plays, and how many seeds of each. `tidegate run smoke --no-encryption` is the
//! command; how long it takes is for the release build to show.

use clap::Parser;
use interop::cli::{ExitStatus, RunArgs, Streams, run_on};
use interop::scenario::SMOKE;
use interop::virtual_player::VirtualPlayer;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: RunArgs,
}

/// Ends every run at once: what is played is the question, not how it goes.
fn run(words: &[&str]) -> (ExitStatus, String, String) {
    let words = ["run", "--limit", "1ms"].iter().chain(words);
    let command = Command::parse_from(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        shows_progress: false,
    };
    let status = run_on(
        &command.args,
        &VirtualPlayer::without_encryption(),
        &mut streams,
    );
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status, text(out), text(err))
}

#[test]
fn smoke_plays_three_seeds_of_every_scenario_of_the_set() {
    let (status, out, err) = run(&["smoke"]);
    assert_eq!(status, ExitStatus::NotMet, "{err}");
    for name in SMOKE {
        assert!(out.contains(&format!("{name}: ")), "{name} in\n{out}");
    }
    let heads = |runs: &str| out.matches(runs).count();
    assert_eq!(heads("3 runs per controller"), SMOKE.len(), "{out}");
}

#[test]
fn smoke_takes_other_seeds_and_refuses_one_file_for_all() {
    let (_, out, _) = run(&["smoke", "--seeds", "1", "--cc", "cubic"]);
    let heads = out.matches("1 run per controller").count();
    assert_eq!(heads, SMOKE.len(), "{out}");
    let (status, _, err) = run(&["smoke", "--json", "-"]);
    assert_eq!(status, ExitStatus::Error);
    assert!(err.contains("take one scenario, not several"), "{err}");
}
