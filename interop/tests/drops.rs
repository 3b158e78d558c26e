//! Losses by script that look at what packets carry.

use std::fs;

use cc::Algorithm;
use interop::play::{PlayRequest, Player};
use interop::real_player::RealPlayer;
use interop::results::{RunResult, summarise};
use interop::scenario::Scenario;
use interop::virtual_player::VirtualPlayer;
use serde_json::Value;

fn parse(rule: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
name = "drops"
about = "Losses by script."
limit = "20 s"
controllers = ["newreno"]

[link]
rate = "20 Mbit/s"
rtt = "40 ms"
queue = "1 BDP"

[[drop]]
gap = "0 s"
{rule}

[download]
size = "4 MB"
"#
    );
    Scenario::parse("drops.toml", &text).map_err(|error| error.to_string())
}

/// The result, and the names of the frames of each packet that the server sent.
fn play(rule: &str) -> (RunResult, Vec<Vec<String>>) {
    let scenario = parse(rule).expect("a good rule");
    let folder = tempfile::tempdir().expect("a folder");
    let request = PlayRequest {
        scenario: &scenario,
        case: &scenario.cases[0],
        algorithm: &Algorithm::NEW_RENO,
        seed: 1,
        limit: scenario.limit,
        qlog_dir: Some(folder.path()),
    };
    let player = VirtualPlayer::new().expect("a player");
    let recording = player.play(&request).expect("it can be played");
    let paths = fs::read_dir(folder.path()).expect("readable");
    let mut servers = paths
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("server"));
    let text = fs::read_to_string(servers.next().expect("a log")).expect("text");
    let sent = text.lines().filter_map(|line| {
        let record: Value = serde_json::from_str(line.trim_start_matches('\u{1e}')).ok()?;
        (record["name"] == "transport:packet_sent").then_some(())?;
        let frames = record["data"]["frames"].as_array()?;
        let name = |frame: &Value| frame["frame_type"].as_str().map(str::to_owned);
        Some(frames.iter().filter_map(name).collect())
    });
    (summarise(&request, recording), sent.collect())
}

#[test]
fn a_packet_number_space_can_be_hit_alone() {
    let (plain, _) = play("direction = \"reverse\"\ncount = 1\nskip = 1000000");
    assert_eq!(plain.reverse.dropped_scripted_packets, 0);
    // The client's Finished, and what repeats it.
    let (hit, _) = play("direction = \"reverse\"\ncount = 2\nspace = \"handshake\"");
    assert_eq!(hit.reverse.dropped_scripted_packets, 2);
    assert!(hit.completion_ns > plain.completion_ns.map(|ns| ns + 100_000_000));
    // The client is through with the handshake when it sends them, not with its Initial packets.
    assert_eq!(hit.handshake_ns, plain.handshake_ns);
    let (first, _) = play("direction = \"reverse\"\ncount = 1\nspace = \"initial\"");
    assert_eq!(first.reverse.dropped_scripted_packets, 1);
    assert!(first.handshake_ns > plain.handshake_ns);
    // Only the handshake has Handshake packets.
    let (few, _) = play(
        "direction = \"reverse\"\ncount = 1000\nspace = [\"initial\", \"handshake\"]\nskip = 4",
    );
    assert!(few.reverse.dropped_scripted_packets < 10);
    assert_eq!(few.packets_lost, plain.packets_lost);
}

#[test]
fn a_frame_can_be_hit_until_it_comes_through() {
    let with_done = |sent: &[Vec<String>]| {
        let has_done = |frames: &&Vec<String>| frames.iter().any(|name| name == "handshake_done");
        sent.iter().filter(has_done).count()
    };
    let (result, sent) = play("direction = \"forward\"\ncount = 3\nframes = \"handshake_done\"");
    assert_eq!(result.forward.dropped_scripted_packets, 3);
    assert!(with_done(&sent) > 3);
    let (_, sent) = play("direction = \"forward\"\ncount = 3\nframes = \"path_challenge\"");
    assert_eq!(with_done(&sent), 1);
}

#[test]
fn a_state_of_the_controller_can_be_hit() {
    let in_recovery = "direction = \"forward\"\ncount = 5\nstate = \"recovery\"";
    let (plain, _) = play("direction = \"forward\"\ncount = 5\nstate = \"fixed_rate\"");
    assert_eq!(plain.forward.dropped_scripted_packets, 0);
    assert!(plain.cuts > 0);
    let (hit, _) = play(in_recovery);
    assert_eq!(hit.forward.dropped_scripted_packets, 5);
    // Both conditions hold, or nothing is dropped.
    let (none, _) = play(&format!("{in_recovery}\nspace = \"initial\""));
    assert_eq!(none.forward.dropped_scripted_packets, 0);
    assert_eq!(none.forward.trace_digest, plain.forward.trace_digest);
}

#[test]
fn what_is_no_space_frame_or_state_is_refused_by_name() {
    let rule = "direction = \"forward\"\ncount = 1\n";
    let refusals = [
        (
            "space = \"1-RTT\"",
            "drops.toml:16: drop.space: unknown word \"1-RTT\"; allowed are \"initial\", \"handshake\", \"application_data\"",
        ),
        (
            "frames = []",
            "drops.toml:16: drop.frames: an empty list is out of range; allowed is one word or more",
        ),
        (
            "state = [\"recovery\", 3]",
            "drops.toml:16: drop.state: is a whole number; expected a text such as \"slow_start\"",
        ),
    ];
    for (key, message) in refusals {
        assert_eq!(parse(&format!("{rule}{key}")).expect_err(key), message);
    }
    let unknown = parse(&format!("{rule}frames = \"data\"")).expect_err("no such frame");
    assert!(unknown.contains("unknown word \"data\"; allowed are \"padding\", \"ping\", \"ack\""));
    assert!(unknown.contains("\"handshake_done\""));
}

#[test]
fn a_relay_that_cannot_look_into_packets_says_so() {
    let scenario = parse("direction = \"forward\"\ncount = 1\nframes = \"crypto\"").expect("good");
    let request = PlayRequest {
        scenario: &scenario,
        case: &scenario.cases[0],
        algorithm: &Algorithm::NEW_RENO,
        seed: 1,
        limit: scenario.limit,
        qlog_dir: None,
    };
    let player = RealPlayer::new().expect("a player");
    let error = player.play(&request).expect_err("not over real sockets");
    assert!(error.to_string().contains("virtual time only"), "{error}");
}
