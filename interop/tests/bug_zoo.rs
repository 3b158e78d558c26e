//! The bug zoo (scenarios.md 4.5): what real stacks got wrong is played under the name of the controller that it stands in,
//! and the row of the catalogue that is there for it must notice. The intact controller passes the same run.
//!
//! | entry | caught by |
//! |---|---|
//! | idle measured from the last send | `min-cwnd-trap`: its bands, O1 |
//! | recovery left on the first acknowledgement | any queue that overflows: O9; `clean-100m-40ms`: its bands |
//! | no persistent congestion | `blackout-2s`: O11. No band: a sender that does not collapse is back sooner |
//! | recovery stamp kept after persistent congestion | the controller by itself, below. No band: its boundary is not ahead of the present, so all it costs is one round trip |
//! | 32-bit delivered counter | nothing: NewReno and CUBIC read neither samples nor, after slow start, rounds |
//! | fractional growth dropped | `clean-100m-40ms`: too few cuts; D1 (`control/curve.rs`) |
//! | bytes in flight checked after the send | [`IDLE_RESTART`]: the curve ran on while nobody sent |
//!
//! The other seven entries of the list are about BBR.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;

use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, Defect, Fault, Victim};
use interop::expect::Judgement;
use interop::play::{PlayError, PlayRequest, Player};
use interop::record::Recording;
use interop::runner::{Plan, play_all};
use interop::scenario::{Scenario, find};
use interop::virtual_player::VirtualPlayer;

/// Scenarios.md 2.3, row S37, with a queue that nothing overflows, so that the window is all that grows the round-trip time.
/// One packet is lost at 900 ms; 18 s of the 48 are spent sending. Along that much of the curve the last burst's round trips
/// come to 328 to 341 ms (measured, 4 seeds; NewReno 170); with the pauses counted as growth to 472 to 1310 ms.
const IDLE_RESTART: &str = r#"name = "idle-restart"
about = "Bulk for 3 s, silence for 5 s, again and again: does silence grow the window?"
limit = "48 s"
controllers = ["newreno", "cubic"]

[link]
rate = "50 Mbit/s"
rtt = "100 ms"
queue = "20 BDP"

[[phase]]
at = "900 ms"
forward = { drop = 1 }

[[flow]]
name = "bursts"
app = "bursts"
busy = "3 s"
idle = "5 s"

[expect."newreno, cubic"]
cuts = { max = 1 }
rtt_p95 = { from = "40 s", until = "48 s", max = "4 RTT" }
"#;

/// What is wrong, and where it must show.
struct Exhibit {
    name: &'static str,
    /// The controllers that are wrong, and under whose name each is judged.
    played: &'static [(&'static str, &'static str)],
    scenario: &'static str,
    seeds: u64,
    /// An oracle or the key of a missed band. `None`: the run is the intact controller's, packet for packet.
    caught_by: Option<&'static str>,
}

const ZOO: &[Exhibit] = &[
    Exhibit {
        name: "idle measured from the last send",
        played: &[("cubic-trap", "cubic")],
        scenario: "min-cwnd-trap",
        seeds: 8,
        caught_by: Some("O1"),
    },
    Exhibit {
        name: "recovery left on the first acknowledgement",
        played: &[
            ("newreno!first-ack", "newreno"),
            ("cubic!first-ack", "cubic"),
        ],
        scenario: "clean-20m-40ms",
        seeds: 1,
        caught_by: Some("O9"),
    },
    Exhibit {
        name: "recovery left on the first acknowledgement",
        played: &[
            ("newreno!first-ack", "newreno"),
            ("cubic!first-ack", "cubic"),
        ],
        scenario: "clean-100m-40ms",
        seeds: 1,
        caught_by: Some("cuts"),
    },
    Exhibit {
        name: "no persistent congestion",
        played: &[
            ("newreno!no-collapse", "newreno"),
            ("cubic!no-collapse", "cubic"),
        ],
        scenario: "blackout-2s",
        seeds: 2,
        caught_by: Some("O11"),
    },
    Exhibit {
        name: "32-bit delivered counter",
        played: &[
            ("newreno!counter-32", "newreno"),
            ("cubic!counter-32", "cubic"),
        ],
        scenario: "clean-20m-40ms",
        seeds: 1,
        caught_by: None,
    },
    Exhibit {
        name: "fractional growth dropped",
        played: &[("cubic!whole-packets", "cubic")],
        scenario: "clean-100m-40ms",
        seeds: 1,
        caught_by: Some("cuts"),
    },
    Exhibit {
        name: "bytes in flight checked after the send",
        played: &[("cubic!never-idle", "cubic")],
        scenario: "idle-restart",
        seeds: 3,
        caught_by: Some("rtt_p95"),
    },
];

/// Plays this controller, whichever is judged.
struct Disguise {
    inner: VirtualPlayer,
    played: Algorithm,
}

impl Player for Disguise {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        self.inner.play(&PlayRequest {
            algorithm: &self.played,
            ..*request
        })
    }
}

/// What a few runs showed.
struct Seen {
    /// Oracles that spoke, and keys of bands that were missed.
    complaints: BTreeSet<String>,
    /// What happened to every packet.
    digests: Vec<String>,
}

fn play(scenario: &Scenario, judged: &str, played: &str, seeds: u64) -> Seen {
    let player = Disguise {
        inner: VirtualPlayer::without_encryption(),
        played: played.parse().expect("a controller"),
    };
    let plan = Plan {
        scenario,
        controllers: vec![judged.parse().expect("a controller")],
        seeds: (1..=seeds).collect(),
        limit: scenario.limit,
        jobs: NonZeroUsize::MIN,
        qlog_dir: None,
    };
    let groups = play_all(&plan, &player, &mut |_| {}).expect("every run can be played");
    let runs = groups.iter().flat_map(|group| &group.runs);
    let violations = runs.clone().filter_map(|run| run.violation.as_ref());
    let verdicts = groups.iter().flat_map(|group| &group.verdicts);
    let missed = verdicts.filter(|verdict| verdict.judgement == Judgement::Missed);
    Seen {
        complaints: violations
            .map(|violation| violation.oracle.to_owned())
            .chain(missed.map(|verdict| verdict.band.metric.key().to_owned()))
            .collect(),
        digests: runs.map(|run| run.forward.trace_digest.clone()).collect(),
    }
}

fn scenario(name: &str) -> Scenario {
    match name {
        "idle-restart" => Scenario::parse("idle-restart.toml", IDLE_RESTART).expect("a good file"),
        name => find(name).expect("a built-in scenario"),
    }
}

/// Prints a line that is seen even when the test passes.
fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("standard error is open");
}

#[test]
fn each_exhibit_is_caught_where_it_should_be_and_the_intact_controller_is_not() {
    let (mut caught, mut all) = (0, 0);
    for exhibit in ZOO {
        let scenario = scenario(exhibit.scenario);
        for (played, judged) in exhibit.played {
            let intact = play(&scenario, judged, judged, exhibit.seeds);
            assert!(
                intact.complaints.is_empty(),
                "{judged} in {}: {:?}",
                exhibit.scenario,
                intact.complaints
            );
            let wrong = play(&scenario, judged, played, exhibit.seeds);
            let complaints = wrong.complaints.iter().cloned().collect::<Vec<_>>();
            let is_caught = match exhibit.caught_by {
                Some(wanted) => wrong.complaints.contains(wanted),
                None => {
                    assert_eq!(wrong.digests, intact.digests, "{played}");
                    false
                }
            };
            say(&format!(
                "bug zoo: {} ({played}) in {}: {}",
                exhibit.name,
                exhibit.scenario,
                if complaints.is_empty() {
                    "nothing".to_owned()
                } else {
                    complaints.join(", ")
                }
            ));
            assert_eq!(is_caught, exhibit.caught_by.is_some(), "{played}");
            all += 1;
            caught += u32::from(is_caught);
        }
    }
    say(&format!(
        "bug zoo: {caught} of {all} wrong controllers caught by a scenario"
    ));
}

/// RFC 9002 sections 7.6.2 and B.8: after persistent congestion no packet is old, so what left before it grows the window.
#[test]
fn a_stamp_kept_after_persistent_congestion_is_caught_by_the_controller_alone() {
    let grows = |name: &str| {
        let mut path = TestPath::new(name.parse().expect("a controller"));
        path.send(10);
        path.feedback(Feedback {
            lost: 4,
            is_persistent_congestion: true,
            ..Feedback::default()
        });
        let before = path.window();
        path.ack(2);
        path.window() > before
    };
    for victim in Victim::ALL {
        let name = victim.name();
        assert!(grows(name), "{name}");
        assert!(!grows(&format!("{name}!stamp-kept")), "{name}");
    }
}

/// Every defect is an exhibit or has a test of its own.
#[test]
fn the_zoo_is_complete() {
    let shown: BTreeSet<&str> = ZOO
        .iter()
        .flat_map(|exhibit| exhibit.played)
        .filter_map(|(played, _)| played.split_once('!'))
        .map(|(_, defect)| defect)
        .collect();
    for defect in Defect::ALL {
        let is_elsewhere = defect == Defect::StampKept;
        assert_ne!(shown.contains(defect.name()), is_elsewhere, "{defect:?}");
    }
    let played: Vec<&str> = ZOO
        .iter()
        .flat_map(|exhibit| exhibit.played)
        .map(|(played, _)| *played)
        .collect();
    assert!(played.contains(&Fault::M1.name()));
}
