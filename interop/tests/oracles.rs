//! What must never happen fails a run by itself: a controller that is wrong on purpose is caught without any band, and the
//! right one is not accused.

use std::num::NonZeroUsize;

use interop::results::{Outcome, RunResult};
use interop::runner::{Plan, play_all};
use interop::scenario::Scenario;
use interop::virtual_player::VirtualPlayer;

/// 30 % loss towards the client for two seconds, then nothing, and nothing that is expected.
const TRAP: &str = r#"name = "trap"
about = "Does the window leave its minimum?"
limit = "10 s"
controllers = ["cubic", "cubic-trap"]

[link]
rtt = "10 ms"
rate = "unlimited"

[[phase]]
until = "2 s"
from = "0 s"
forward = { loss = "30 %" }

[download]
size = "10 MB"
"#;

const SEEDS: u64 = 12;

#[test]
fn the_fault_is_caught_without_a_band_and_the_right_controller_is_not() {
    let scenario = Scenario::parse("trap.toml", TRAP).expect("a good file");
    let player = VirtualPlayer::new().expect("a player");
    let plan = Plan {
        controllers: scenario.controllers.clone(),
        scenario: &scenario,
        seeds: (1..=SEEDS).collect(),
        limit: scenario.limit,
        jobs: NonZeroUsize::MIN,
        qlog_dir: None,
    };
    let groups = play_all(&plan, &player, &mut |_| {}).expect("played");

    assert_eq!(groups[0].controller.to_string(), "cubic");
    for run in &groups[0].runs {
        assert_eq!(run.violation, None, "seed {}", run.seed);
        assert_eq!(run.outcome, Outcome::Completed, "seed {}", run.seed);
    }

    let accused: Vec<&RunResult> = groups[1]
        .runs
        .iter()
        .filter(|run| run.violation.is_some())
        .collect();
    assert!(!accused.is_empty(), "no run of cubic-trap was caught");
    for run in accused {
        let violation = run.violation.as_ref().expect("accused");
        assert_eq!(violation.oracle, "O1", "seed {}: {violation:?}", run.seed);
        let Outcome::Failed(reason) = &run.outcome else {
            panic!("seed {}: {:?}", run.seed, run.outcome);
        };
        assert!(reason.starts_with("oracle O1: "), "{reason}");
    }
}
