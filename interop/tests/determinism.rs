//! Same scenario, controller and seed: the same run, to the byte.
//!
//! In two runs, for one worker or many, with and without qlog, in debug and in release.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use cc::Algorithm;
use interop::play::{PlayRequest, Player};
use interop::report::Report;
use interop::results::{Outcome, RunResult, summarise};
use interop::runner::{Plan, play_all};
use interop::scenario::{Scenario, find};
use interop::virtual_player::VirtualPlayer;
use netsim::{Packet, RandomStreams};
use units::{ByteCount, Timestamp};

/// Path below the directory and content of every file.
type Files = BTreeMap<String, Vec<u8>>;

fn player() -> &'static VirtualPlayer {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    PLAYER.get_or_init(|| VirtualPlayer::new().expect("a player"))
}

#[track_caller]
fn built_in(name: &str) -> Scenario {
    find(name).expect("a built-in scenario")
}

/// One run of the scenario's last download.
#[track_caller]
fn run(
    player: &VirtualPlayer,
    scenario: &Scenario,
    algorithm: Algorithm,
    seed: u64,
    qlog_dir: Option<&Path>,
) -> RunResult {
    let request = PlayRequest {
        scenario,
        case: scenario.cases.last().expect("a download"),
        algorithm: &algorithm,
        seed,
        limit: scenario.limit,
        qlog_dir,
    };
    let recording = player.play(&request).expect("it can be played");
    summarise(&request, recording)
}

/// The same with its qlog files.
#[track_caller]
fn logged_run(
    player: &VirtualPlayer,
    scenario: &Scenario,
    algorithm: Algorithm,
    seed: u64,
) -> (RunResult, Files) {
    let folder = tempfile::tempdir().expect("a folder");
    let result = run(player, scenario, algorithm, seed, Some(folder.path()));
    let mut files = Files::new();
    read_files(folder.path(), "", &mut files);
    assert_eq!(files.len(), 2, "one file per side");
    for (name, content) in &files {
        assert!(content.len() > 10_000, "{name}: {} bytes", content.len());
    }
    (result, files)
}

fn read_files(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("named").to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            read_files(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(&path).expect("readable"));
        }
    }
}

/// Names the first line in which two sets of files differ; megabytes say nothing.
#[track_caller]
fn assert_same_files(left: &Files, right: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(left), names(right));
    for (name, left) in left {
        let right = &right[name];
        let mut lines = left
            .split(|b| *b == b'\n')
            .zip(right.split(|b| *b == b'\n'));
        if let Some((index, (left, right))) = lines.by_ref().enumerate().find(|(_, (l, r))| l != r)
        {
            panic!(
                "{name}, line {}:\n{}\n{}",
                index + 1,
                String::from_utf8_lossy(left),
                String::from_utf8_lossy(right)
            );
        }
        assert_eq!(left.len(), right.len(), "{name}");
    }
}

#[test]
fn two_runs_write_the_same_logs_to_the_byte() {
    for (name, algorithm) in [
        ("loss-phase-30pct-2s", Algorithm::CUBIC),
        ("loss-phase-30pct-2s", Algorithm::NEW_RENO),
        ("fct-ladder", Algorithm::CUBIC),
    ] {
        let scenario = built_in(name);
        let first = logged_run(player(), &scenario, algorithm, 7);
        // A player of its own: not even the certificate is shared.
        let other = VirtualPlayer::new().expect("a player");
        let second = logged_run(&other, &scenario, algorithm, 7);
        assert_same_files(&first.1, &second.1);
        assert_eq!(first.0, second.0);
        assert_eq!(first.0.outcome, Outcome::Completed);
    }
}

#[test]
fn another_seed_gives_another_run() {
    let scenario = built_in("loss-phase-30pct-2s");
    let (first, first_files) = logged_run(player(), &scenario, Algorithm::CUBIC, 1);
    let (second, second_files) = logged_run(player(), &scenario, Algorithm::CUBIC, 2);
    assert_ne!(first.forward.trace_digest, second.forward.trace_digest);
    assert_ne!(first.reverse.trace_digest, second.reverse.trace_digest);
    assert_ne!(first.completion_ns, second.completion_ns);
    let contents = |files: Files| files.into_values().collect::<Vec<_>>();
    for content in contents(first_files) {
        assert!(!contents(second_files.clone()).contains(&content));
    }
    // Without any loss, the seed still moves the start.
    let clean = built_in("fct-ladder");
    let first = run(player(), &clean, Algorithm::CUBIC, 1, None);
    let second = run(player(), &clean, Algorithm::CUBIC, 2, None);
    assert_ne!(first.forward.trace_digest, second.forward.trace_digest);
}

#[test]
fn writing_logs_changes_no_packet() {
    for name in ["loss-phase-30pct-2s", "fct-ladder"] {
        let scenario = built_in(name);
        for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
            let silent = run(player(), &scenario, algorithm, 3, None);
            let (logged, _) = logged_run(player(), &scenario, algorithm, 3);
            assert_eq!(silent.forward.trace_digest, logged.forward.trace_digest);
            assert_eq!(silent.reverse.trace_digest, logged.reverse.trace_digest);
            assert_eq!(silent, logged);
        }
    }
}

#[test]
fn one_worker_or_many_give_the_same_results_and_logs() {
    let scenario = built_in("loss-phase-30pct-2s");
    let play = |workers: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = Plan {
            scenario: &scenario,
            controllers: scenario.controllers.clone(),
            seeds: (1..=4).collect(),
            limit: scenario.limit,
            jobs: NonZeroUsize::new(workers).expect("above 0"),
            qlog_dir: Some(folder.path().to_owned()),
        };
        let groups = play_all(&plan, player(), &mut |_| {}).expect("played");
        let report = Report {
            scenario: &scenario,
            groups: &groups,
            is_real: false,
            limit: scenario.limit,
        };
        let mut files = Files::new();
        read_files(folder.path(), "", &mut files);
        assert_eq!(files.len(), 2 * 2 * 4, "runs times sides");
        (report.json().expect("serialises"), files)
    };
    let alone = play(1);
    let many = play(5);
    assert_same_files(&alone.1, &many.1);
    assert!(alone.0 == many.0, "the JSON documents differ");
}

/// What the first seed of the trap is in every build: per controller the digests of the packet
/// traces of the forward and the reverse pipe, and the hashes of the client's and the server's log.
///
/// A change of behaviour that is meant changes them, and says why where it lands. What is wanted of
/// these runs stands in the test itself.
const GOLDEN: [(Algorithm, [&str; 4]); 2] = [
    (
        Algorithm::NEW_RENO,
        [
            "a108efb40bc12b67",
            "84f830a8844f2433",
            "30a460453dd94887",
            "656ba38a9c60dd50",
        ],
    ),
    (
        Algorithm::CUBIC,
        [
            "b7941ad5d3575d8e",
            "fb87eb407dd77449",
            "79135e0d3aef809d",
            "44553873910d9bbe",
        ],
    ),
];

/// `cargo test` checks it in a debug build, `./check slow` in a release build.
#[test]
fn the_first_seed_of_the_trap_is_the_same_in_every_build() {
    let scenario = built_in("loss-phase-30pct-2s");
    let seen = GOLDEN.map(|(algorithm, _)| {
        let (result, files) = logged_run(player(), &scenario, algorithm, 1);
        assert_eq!(result.outcome, Outcome::Completed);
        assert_eq!(result.app_bytes, 10_000_000);
        let completion = Duration::from_nanos(result.completion_ns.expect("completed"));
        let wanted = Duration::from_millis(3200)..=Duration::from_millis(4200);
        assert!(wanted.contains(&completion), "{algorithm}: {completion:?}");
        let log_of = |side: &str| {
            let (_, content) = files
                .iter()
                .find(|(name, _)| name.ends_with(&format!("_{side}.sqlog")))
                .expect("one file per side");
            format!("{:016x}", fnv_1a(content))
        };
        let digests = [
            result.forward.trace_digest.clone(),
            result.reverse.trace_digest.clone(),
            log_of("client"),
            log_of("server"),
        ];
        (algorithm, digests)
    });
    let golden = GOLDEN.map(|(algorithm, digests)| (algorithm, digests.map(str::to_owned)));
    assert_eq!(golden, seen);
}

/// Fowler, Noll and Vo's hash of 64 bits, variant 1a.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_hash_is_the_published_one() {
    assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
}

/// The digest of 20 000 packets that meet the forward pipe of this scenario.
fn forward_fates(scenario: &Scenario, seed: u64) -> u64 {
    let streams = RandomStreams::new(seed);
    // Both pipes are made, as in a run, and both are used.
    let mut forward = scenario.forward.pipe(&streams, "forward").expect("good");
    let mut reverse = scenario.reverse.pipe(&streams, "reverse").expect("good");
    for index in 0..20_000 {
        let now = Timestamp::from_micros(150 * index);
        for (pipe, size) in [(&mut forward, 1378), (&mut reverse, 70)] {
            pipe.advance(now, &mut |_, _: Packet<()>| {});
            let size = ByteCount::new(size);
            pipe.arrive(now, Packet::new(size, ()));
        }
    }
    forward.advance(Timestamp::from_secs(4), &mut |_, _| {});
    assert!(forward.counters().dropped_loss_after.packets > 1000);
    forward.counters().digest()
}

#[test]
fn what_the_reverse_link_does_moves_no_draw_of_the_forward_link() {
    let text = include_str!("../scenarios/loss-phase-30pct-2s.toml");
    let with_reverse = |reverse: &str| {
        let link = format!("queue = \"2 BDP\"\nreverse = {{ {reverse} }}");
        let text = text.replacen("queue = \"2 BDP\"", &link, 1);
        Scenario::parse("changed.toml", &text).expect("good")
    };
    let plain = built_in("loss-phase-30pct-2s");
    let fates = forward_fates(&plain, 1);
    for reverse in [
        "loss = \"7 %\"",
        "loss = \"7 %\", loss_place = \"before queue\"",
        "rate = \"3 Mbit/s\", queue = \"10 packets\"",
    ] {
        let changed = with_reverse(reverse);
        assert_eq!(forward_fates(&changed, 1), fates, "{reverse}");
        assert_eq!(changed.start_at(1), plain.start_at(1), "{reverse}");
    }
    assert_ne!(forward_fates(&plain, 2), fates, "another seed");
}

#[test]
fn the_controller_moves_neither_the_start_nor_the_handshake() {
    let scenario = built_in("fct-ladder");
    let newreno = run(player(), &scenario, Algorithm::NEW_RENO, 5, None);
    let cubic = run(player(), &scenario, Algorithm::CUBIC, 5, None);
    assert_eq!(newreno.handshake_ns, cubic.handshake_ns);
    assert_ne!(newreno.forward.trace_digest, cubic.forward.trace_digest);
}

fn unencrypted() -> &'static VirtualPlayer {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    PLAYER.get_or_init(VirtualPlayer::without_encryption)
}

/// A link on which the last bit of some packets is another, and half of the first ones are lost.
fn damaging_link(corrupt: &str) -> Scenario {
    let text = format!(
        "name = \"damage\"\nabout = \"damaged\"\nlimit = \"60 s\"\nseeds = 1\ncontrollers = [\"cubic\"]\n\
         [link]\nrate = \"20 Mbit/s\"\nrtt = \"40 ms\"\nqueue = \"1 BDP\"\nduplicate = \"1 %\"\ncorrupt = \"{corrupt}\"\n\
         [[phase]]\nfrom = \"0 s\"\nuntil = \"300 ms\"\nboth = {{ loss = \"50 %\" }}\n\
         [download]\nsize = \"2 MB\"\n[expect.cubic]\ncompletion = {{ max = \"60 s\" }}\n"
    );
    Scenario::parse("damage.toml", &text).expect("good")
}

/// The fate of every packet, on both links, is in the digests; the logs of both ends have every frame. The same for clean
/// links, loss, damage, and keys that are updated.
#[test]
fn a_run_without_encryption_is_the_run_with_tls_to_the_byte() {
    for (scenario, algorithm, seed) in [
        (built_in("fct-ladder"), Algorithm::NEW_RENO, 3),
        (built_in("loss-phase-30pct-2s"), Algorithm::CUBIC, 1),
        (built_in("loss-phase-30pct-2s"), Algorithm::NEW_RENO, 17),
        (damaging_link("2 %"), Algorithm::CUBIC, 1),
        (damaging_link("2 %"), Algorithm::CUBIC, 2),
    ] {
        let (tls, tls_logs) = logged_run(player(), &scenario, algorithm, seed);
        let (plain, plain_logs) = logged_run(unencrypted(), &scenario, algorithm, seed);
        assert_eq!(tls.outcome, Outcome::Completed, "{}", scenario.name);
        let json = |run: &RunResult| serde_json::to_string(run).expect("JSON");
        assert_eq!(json(&plain), json(&tls), "{}", scenario.name);
        assert_same_files(&plain_logs, &tls_logs);
        let again = run(unencrypted(), &scenario, algorithm, seed, None);
        assert_eq!(json(&again), json(&plain), "{}", scenario.name);
    }
}

/// HTTP/3 would end the connection over a byte that is wrong, and the download's own check would fail it.
#[test]
fn a_damaged_packet_is_refused_without_encryption_too() {
    let clean = run(
        unencrypted(),
        &damaging_link("0 %"),
        Algorithm::CUBIC,
        1,
        None,
    );
    let damaged = run(
        unencrypted(),
        &damaging_link("5 %"),
        Algorithm::CUBIC,
        1,
        None,
    );
    assert_eq!(clean.outcome, Outcome::Completed);
    assert_eq!(damaged.outcome, Outcome::Completed);
    assert!(damaged.forward.corrupt_packets > 50);
    assert!(damaged.packets_lost > clean.packets_lost + damaged.forward.corrupt_packets / 2);
}
