//! Everything a link can be set to can change while the run is under way, and nothing else changes
//! with it.
//!
//! For every setting: a change at the very beginning gives the run in which the link was like that from the
//! start, byte for byte, so what is declared is what is injected; a change in the middle moves nothing that comes
//! before it, something after it, and the same every time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cc::Algorithm;
use interop::play::{PlayRequest, Player};
use interop::results::{RunResult, summarise};
use interop::scenario::Scenario;
use interop::virtual_player::VirtualPlayer;
use netsim::Change;

/// Every setting of a direction, each to a value that four seconds at 20 Mbit/s feel. One that only shows on
/// acknowledgements stands in the reverse direction.
const SETTINGS: [(&str, &str); 27] = [
    ("forward", r#"rate = "5 Mbit/s""#),
    ("forward", r#"rate = "40 Mbit/s""#),
    ("forward", r#"delay = "50 ms""#),
    ("forward", r#"delay = "3 ms""#),
    ("forward", r#"queue = "20 kB""#),
    ("forward", r#"queue_packets = 12"#),
    ("forward", r#"loss = "3 %""#),
    ("forward", r#"aqm = "codel""#),
    ("forward", r#"aqm = "fq-codel""#),
    ("forward", r#"aqm = "pie""#),
    ("forward", r#"aqm = "red""#),
    ("forward", r#"aqm = "dualpi2""#),
    (
        "forward",
        r#"burst_loss = { to_bad = "1 %", to_good = "25 %" }"#,
    ),
    (
        "forward",
        r#"burst_loss = { good = "200 ms", bad = "20 ms" }"#,
    ),
    (
        "forward",
        r#"policer = { rate = "10 Mbit/s", burst = "16 kB" }"#,
    ),
    (
        "forward",
        r#"shaper = { rate = "10 Mbit/s", burst = "16 kB" }"#,
    ),
    ("forward", r#"jitter = { walk = "10 ms" }"#),
    ("forward", r#"jitter = { clamped = "10 ms" }"#),
    ("forward", r#"jitter = { reordering = "10 ms" }"#),
    ("forward", r#"jitter = { wifi = "10 ms" }"#),
    ("forward", r#"reorder = { share = "5 %", delay = "5 ms" }"#),
    ("forward", r#"duplicate = "5 %""#),
    ("forward", r#"corrupt = "5 %""#),
    ("forward", r#"largest = "1300 B""#),
    ("forward", r#"slots = { period = "20 ms", at_most = 20 }"#),
    (
        "reverse",
        r#"thinning = { at_most = "100 B", every = 10, hold = "20 ms" }"#,
    ),
    ("reverse", r#"loss = "60 %""#),
];

/// Four seconds on a link that is like `set` from the start, or that `phase` changes.
fn scenario(set: Option<(&str, &str)>, phase: &str) -> Scenario {
    let direction = |name: &str| {
        let setting = set.filter(|(direction, _)| *direction == name);
        let setting = setting.map_or("", |(_, setting)| setting);
        format!("[link.{name}]\ndelay = \"10 ms\"\n{setting}")
    };
    let text = format!(
        r#"
name = "live-change"
about = "A change under way."
limit = "4 s"
controllers = ["cubic"]

[link]
rate = "20 Mbit/s"
queue = "100 kB"
loss = "0.01 %"
{}
{}
{phase}
[download]
duration = "4 s"
"#,
        direction("forward"),
        direction("reverse")
    );
    Scenario::parse("live-change.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The result as JSON, and the records of the server's qlog.
fn play(player: &VirtualPlayer, scenario: &Scenario) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let request = PlayRequest {
        scenario,
        case: &scenario.cases[0],
        algorithm: &Algorithm::CUBIC,
        seed: 1,
        limit: scenario.limit,
        qlog_dir: Some(folder.path()),
    };
    let recording = player.play(&request).expect("it can be played");
    let result: RunResult = summarise(&request, recording);
    let json = serde_json::to_string(&result).expect("JSON");
    (json, records(folder.path()))
}

fn records(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).expect("readable");
    let mut servers = paths
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("server"));
    let path = servers.next().expect("a server's log");
    let text = fs::read_to_string(path).expect("text");
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Milliseconds since the beginning.
fn time_of(record: &str) -> f64 {
    let json = serde_json::from_str(record.trim_start_matches('\u{1e}'));
    let record: serde_json::Value = json.expect("JSON");
    record["time"].as_f64().expect("a time")
}

#[test]
fn a_change_at_the_beginning_is_a_setting() {
    let player = VirtualPlayer::new().expect("a player");
    for (direction, setting) in SETTINGS {
        // The client starts within a round trip of the link as it is declared: another link, another start.
        if setting.starts_with("delay") {
            continue;
        }
        let set = scenario(Some((direction, setting)), "");
        let phase = format!("[[phase]]\nat = \"0 s\"\n{direction} = {{ {setting} }}");
        let changed = scenario(None, &phase);
        let [set, changed] = [&set, &changed].map(|scenario| play(&player, scenario));
        assert_eq!(set.0, changed.0, "{setting}");
        assert_eq!(set.1, changed.1, "{setting}");
    }
}

#[test]
fn a_change_in_the_middle_moves_nothing_before_it_and_repeats() {
    let player = VirtualPlayer::new().expect("a player");
    let plain = play(&player, &scenario(None, ""));
    let before = |records: &[String]| {
        let count = records
            .iter()
            .take_while(|record| time_of(record) < 2_000.0)
            .count();
        records[..count].to_vec()
    };
    let expected = before(&plain.1);
    assert!(expected.len() > 5_000);
    for (direction, setting) in SETTINGS {
        let phase = format!("[[phase]]\nat = \"2 s\"\n{direction} = {{ {setting} }}");
        let changed = scenario(None, &phase);
        let first = play(&player, &changed);
        assert_eq!(before(&first.1), expected, "{setting}: something before it");
        assert_ne!(first.0, plain.0, "{setting}: nothing after it");
        assert_eq!(first, play(&player, &changed), "{setting}: twice");
    }
}

#[test]
fn no_kind_of_change_is_left_out() {
    let mut covered = BTreeSet::new();
    for (direction, setting) in SETTINGS {
        let phase = format!("[[phase]]\nat = \"2 s\"\n{direction} = {{ {setting} }}");
        let scenario = scenario(None, &phase);
        for (_, change) in scenario
            .forward
            .changes
            .iter()
            .chain(&scenario.reverse.changes)
        {
            covered.insert(name(change));
        }
    }
    // An order to drop and the place of the losses are no settings of a phase that lasts.
    let all = [
        "rate",
        "delay",
        "jitter",
        "slots",
        "queue",
        "packets",
        "discipline",
        "loss",
        "bursts",
        "mishaps",
        "thinning",
        "policer",
        "shaper",
        "largest",
    ];
    assert_eq!(covered, BTreeSet::from(all));
}

/// A new kind of change does not compile before it is in the table above.
fn name(change: &Change) -> &'static str {
    match change {
        Change::Rate(_) => "rate",
        Change::Delay(_) => "delay",
        Change::Jitter(_) => "jitter",
        Change::Slots(_) => "slots",
        Change::Queue(_) => "queue",
        Change::QueuePackets(_) => "packets",
        Change::Discipline(_) => "discipline",
        Change::Loss(_) => "loss",
        Change::BurstLoss(_) => "bursts",
        Change::LossPlace(_) => "place",
        Change::Mishaps(_) => "mishaps",
        Change::Thinning(_) => "thinning",
        Change::Policer(_) => "policer",
        Change::Shaper(_) => "shaper",
        Change::LargestPacket(_) => "largest",
        Change::DropNext(_) => "drop",
    }
}
