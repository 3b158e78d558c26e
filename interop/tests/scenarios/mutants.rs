//! A scenario counts once something wrong has been shown to fail it.
//!
//! Each mutant plays something wrong, a controller that is not the one judged or a link that is not
//! the one of the file, and must miss the ends of bands that it names. Every end of every band of
//! every built-in scenario is named by at least one mutant.

mod each;
mod flows;
mod links;
mod rows;

use std::collections::BTreeSet;

use cc::Algorithm;
use interop::expect::{Band, Judgement, Verdict};
use interop::play::{PlayError, PlayRequest, Player};
use interop::record::Recording;
use interop::scenario::{BUILT_IN, Scenario, built_ins};

use crate::bench::{built_in, measured, play, virtual_player};

/// What is wrong in a run.
#[derive(Clone, Copy)]
enum Wrong {
    /// This controller plays under the name of the one that is judged.
    Controller(&'static str),
    /// The link is that of the scenario with these texts replaced.
    Link(&'static [(&'static str, &'static str)]),
}

/// One wrong thing and what it must not get away with.
struct Mutant {
    scenario: &'static str,
    /// What is wrong, in words.
    name: &'static str,
    wrong: Wrong,
    /// The controllers under whose name it is judged.
    judged_as: &'static str,
    /// The seeds 1 to `seeds` are played, ...
    seeds: u64,
    /// ... those from here on wrongly.
    wrong_from: u64,
    /// The ends of bands that are missed, as [`ends_of`] names them.
    misses: &'static [&'static str],
    /// Bands that are met all the same, and show that the missed one was needed.
    meets: &'static [&'static str],
}

/// One wrong run is enough to see it.
const fn one_run(
    scenario: &'static str,
    name: &'static str,
    wrong: Wrong,
    judged_as: &'static str,
    misses: &'static [&'static str],
    meets: &'static [&'static str],
) -> Mutant {
    Mutant {
        scenario,
        name,
        wrong,
        judged_as,
        seeds: 1,
        wrong_from: 1,
        misses,
        meets,
    }
}

const BOTH: &str = "newreno,cubic";

/// Every packet is lost from the first instant on.
const DEAD_LINK: Wrong = Wrong::Link(&[("queue = ", "loss = \"100 %\"\nqueue = ")]);

/// Two datagrams per round trip, for ever.
const PINNED: Wrong = Wrong::Controller("fixed:2Mbit/s:2700B");

const MUTANTS: &[Mutant] = &[
    Mutant {
        scenario: "min-cwnd-trap",
        name: "the window stays at its minimum",
        wrong: PINNED,
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &[
            "completed every min",
            "completion every max",
            "escape p95 max",
            "escape every max",
        ],
        meets: &[],
    },
    #[cfg(feature = "mutants")]
    Mutant {
        scenario: "min-cwnd-trap",
        name: "one stamp is recovery boundary and epoch (`cubic-trap`)",
        wrong: Wrong::Controller("cubic-trap"),
        judged_as: "cubic",
        seeds: 20,
        wrong_from: 1,
        misses: &[
            "completed every min",
            "completion every max",
            "escape p95 max",
            "escape every max",
        ],
        meets: &[],
    },
    Mutant {
        scenario: "min-cwnd-trap",
        name: "the loss lasts 5 s",
        wrong: Wrong::Link(&[("until = \"2 s\"", "until = \"5 s\"")]),
        judged_as: BOTH,
        seeds: 3,
        wrong_from: 1,
        misses: &["completion every max"],
        meets: &["completed every min"],
    },
    #[cfg(feature = "mutants")]
    Mutant {
        scenario: "min-cwnd-trap",
        name: "the fault is not there",
        wrong: Wrong::Controller("cubic"),
        judged_as: "cubic-trap",
        seeds: 100,
        wrong_from: 1,
        misses: &["completed every max"],
        meets: &["completed every min"],
    },
    #[cfg(feature = "mutants")]
    Mutant {
        scenario: "min-cwnd-trap",
        name: "the fault lets nobody out",
        wrong: Wrong::Controller("cubic-m2"),
        judged_as: "cubic-trap",
        seeds: 100,
        wrong_from: 1,
        misses: &["completed every min"],
        meets: &["completed every max"],
    },
    Mutant {
        scenario: "min-cwnd-trap-scripted",
        name: "the window stays at its minimum",
        wrong: PINNED,
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every min", "completion every max"],
        meets: &[],
    },
    #[cfg(feature = "mutants")]
    Mutant {
        scenario: "min-cwnd-trap-scripted",
        name: "the fault is not there",
        wrong: Wrong::Controller("cubic"),
        judged_as: "cubic-trap",
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every max"],
        meets: &[],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "the window stays at two packets per round trip",
        wrong: Wrong::Controller("fixed:2Mbit/s"),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &[
            "completed every min",
            "completion median max",
            "completion p95 max",
            "completion every max",
        ],
        meets: &[],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "the loss never ends",
        wrong: Wrong::Link(&[("until = \"2 s\"", "until = \"10 s\"")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every min"],
        meets: &[],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "there is no loss",
        wrong: Wrong::Link(&[("30 %", "0 %")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completion median min"],
        meets: &["completed every min", "completion p95 max"],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "the loss lasts 3.2 s",
        wrong: Wrong::Link(&[("until = \"2 s\"", "until = \"3.2 s\"")]),
        judged_as: BOTH,
        seeds: 5,
        wrong_from: 1,
        misses: &["completion median max"],
        meets: &["completed every min", "completion every max"],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "in two runs of twenty the loss lasts 4 s",
        wrong: Wrong::Link(&[("until = \"2 s\"", "until = \"4 s\"")]),
        judged_as: "cubic",
        seeds: 20,
        wrong_from: 19,
        misses: &["completion p95 max"],
        meets: &["completed every min", "completion median max"],
    },
    Mutant {
        scenario: "loss-phase-30pct-2s",
        name: "in one run of twenty the loss lasts 6 s",
        wrong: Wrong::Link(&[("until = \"2 s\"", "until = \"6 s\"")]),
        judged_as: "cubic",
        seeds: 20,
        wrong_from: 20,
        misses: &["completion every max"],
        meets: &[
            "completed every min",
            "completion median max",
            "completion p95 max",
        ],
    },
    Mutant {
        scenario: "clean-20m-40ms",
        name: "the link is dead",
        wrong: DEAD_LINK,
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every min", "utilisation 5-30 s median min"],
        meets: &[],
    },
    Mutant {
        scenario: "clean-20m-40ms",
        name: "the sender uses half of the link",
        wrong: Wrong::Controller("fixed:10Mbit/s"),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["utilisation 5-30 s median min"],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "clean-20m-40ms",
        name: "the queue is twice as long",
        wrong: Wrong::Link(&[("1 BDP", "2 BDP")]),
        judged_as: "newreno",
        seeds: 1,
        wrong_from: 1,
        misses: &["rtt_p95 5-30 s median max"],
        meets: &["completed every min", "utilisation 5-30 s median min"],
    },
    Mutant {
        scenario: "fct-ladder",
        name: "the link is dead",
        wrong: DEAD_LINK,
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every min"],
        meets: &[],
    },
    Mutant {
        scenario: "fct-ladder",
        name: "the round trip takes three times as long",
        wrong: Wrong::Link(&[("40 ms", "120 ms")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &[
            "transfer 100 kB median max",
            "transfer 1 MB median max",
            "transfer 10 MB median max",
        ],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "fct-ladder",
        name: "the sender never exceeds 20 Mbit/s",
        wrong: Wrong::Controller("fixed:20Mbit/s"),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["transfer 1 MB median max", "transfer 10 MB median max"],
        meets: &["completed every min", "transfer 100 kB median max"],
    },
    Mutant {
        scenario: "rand-loss-1pct",
        name: "the link is dead",
        wrong: Wrong::Link(&[("loss = \"1 %\"", "loss = \"100 %\"")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["completed every min", "goodput 5-120 s median min"],
        meets: &[],
    },
    Mutant {
        scenario: "rand-loss-1pct",
        name: "the sender is ten times too eager",
        wrong: Wrong::Controller("fixed:30Mbit/s"),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["goodput 5-120 s median max"],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "rand-loss-1pct",
        name: "a quarter of the loss",
        wrong: Wrong::Link(&[("loss = \"1 %\"", "loss = \"0.25 %\"")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["goodput 5-120 s median max"],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "rand-loss-1pct",
        name: "four times the loss",
        wrong: Wrong::Link(&[("loss = \"1 %\"", "loss = \"4 %\"")]),
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &["goodput 5-120 s median min"],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "rate-step",
        name: "the link is dead",
        wrong: DEAD_LINK,
        judged_as: BOTH,
        seeds: 1,
        wrong_from: 1,
        misses: &[
            "completed every min",
            "goodput 31-35 s median min",
            "goodput 35-45 s median min",
        ],
        meets: &[],
    },
    Mutant {
        scenario: "rate-step",
        name: "the sender never finds more than half of the rate",
        wrong: Wrong::Controller("fixed:50Mbit/s"),
        judged_as: "newreno",
        seeds: 1,
        wrong_from: 1,
        misses: &["goodput 31-35 s median min", "goodput 35-45 s median min"],
        meets: &["completed every min"],
    },
    Mutant {
        scenario: "rate-step",
        name: "in one run of two the link slows down too little",
        wrong: Wrong::Link(&[("25 Mbit/s", "30 Mbit/s")]),
        judged_as: "newreno",
        seeds: 2,
        wrong_from: 2,
        misses: &["delivery 19-20 s every max"],
        meets: &["completed every min", "pto_count every max"],
    },
    Mutant {
        scenario: "rate-step",
        name: "the link is silent for a second",
        wrong: Wrong::Link(&[(
            "[download]",
            "[[phase]]\nfrom = \"20 s\"\nuntil = \"21 s\"\nboth = { loss = \"100 %\" }\n\n[download]",
        )]),
        judged_as: "cubic",
        seeds: 1,
        wrong_from: 1,
        misses: &["pto_count every max"],
        meets: &["completed every min", "delivery 19-20 s every max"],
    },
    Mutant {
        scenario: "rate-step",
        name: "the last packets vanish and nobody tells",
        wrong: Wrong::Link(&[(
            "[download]",
            "[[phase]]\nfrom = \"44.5 s\"\nuntil = \"44.99 s\"\nboth = { loss = \"100 %\" }\n\n\
             [download]",
        )]),
        judged_as: "newreno",
        seeds: 1,
        wrong_from: 1,
        misses: &["lost_vs_dropped every max"],
        meets: &["completed every min", "delivery 19-20 s every max"],
    },
];

/// Those above, and those of the links of the catalogue.
fn all() -> impl Iterator<Item = &'static Mutant> {
    let more = [links::MUTANTS, rows::MUTANTS, flows::MUTANTS];
    MUTANTS.iter().chain(more.into_iter().flatten())
}

/// Plays the seeds from `wrong_from` on wrongly and the others as asked.
struct MutantPlayer {
    link: Option<Scenario>,
    controller: Option<Algorithm>,
    wrong_from: u64,
}

impl MutantPlayer {
    fn new(mutant: &Mutant) -> Self {
        let (link, controller) = match mutant.wrong {
            Wrong::Controller(name) => (None, Some(name.parse().expect("a controller"))),
            Wrong::Link(replacements) => (Some(changed(mutant.scenario, replacements)), None),
        };
        Self {
            link,
            controller,
            wrong_from: mutant.wrong_from,
        }
    }
}

impl Player for MutantPlayer {
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError> {
        let mut played = *request;
        if request.seed >= self.wrong_from {
            played.scenario = self.link.as_ref().unwrap_or(request.scenario);
            played.algorithm = self.controller.as_ref().unwrap_or(request.algorithm);
        }
        virtual_player().play(&played)
    }
}

#[track_caller]
fn changed(name: &str, replacements: &[(&str, &str)]) -> Scenario {
    let (_, text) = BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a built-in scenario");
    // Words about the link are not the link.
    let is_code = |line: &&str| !line.starts_with('#') && !line.starts_with("about = ");
    let code: Vec<&str> = text.lines().filter(is_code).collect();
    let mut text = format!("about = \"A mutant.\"\n{}\n", code.join("\n"));
    for (old, new) in replacements {
        assert_eq!(text.matches(old).count(), 1, "{name}: {old:?} occurs once");
        text = text.replacen(old, new, 1);
    }
    Scenario::parse(&format!("mutant of {name}"), &text).expect("a scenario")
}

/// What a band is called in the table above, without its end.
fn name_of(band: &Band) -> String {
    let mut name = band.metric.key().to_owned();
    if let Some(case) = &band.case {
        name.push_str(&format!(" {case}"));
    }
    if let Some(flow) = &band.flow {
        name.push_str(&format!(" of {flow}"));
    }
    if let Some(window) = band.window {
        let seconds = |at: units::Timestamp| at.as_nanos() / 1_000_000_000;
        name.push_str(&format!(
            " {}-{} s",
            seconds(window.from),
            seconds(window.until)
        ));
    }
    let statistic = interop::expect::Statistic::ALL
        .iter()
        .find(|(_, statistic)| *statistic == band.statistic)
        .map_or("", |(word, _)| *word);
    format!("{name} {statistic}")
}

/// The ends that a band has.
fn ends_of(band: &Band) -> Vec<String> {
    let name = name_of(band);
    let min = band.min.as_ref().map(|_| format!("{name} min"));
    let max = band.max.as_ref().map(|_| format!("{name} max"));
    min.into_iter().chain(max).collect()
}

/// The end beyond which the value of a missed band lies. No value at all is worse than any.
fn missed_end(verdict: &Verdict) -> Option<String> {
    if verdict.judgement != Judgement::Missed {
        return None;
    }
    let band = &verdict.band;
    let is_too_low = match (verdict.measured, &band.min) {
        (Some(measured), Some(min)) => measured < min.amount,
        (None, Some(_)) => band.max.is_none(),
        (_, None) => false,
    };
    let end = if is_too_low { "min" } else { "max" };
    Some(format!("{} {end}", name_of(band)))
}

#[track_caller]
fn mutants_fail(name: &str) {
    let scenario = built_in(name);
    for mutant in all().filter(|mutant| mutant.scenario == name) {
        let controllers = Algorithm::parse_list(mutant.judged_as).expect("controllers");
        let player = MutantPlayer::new(mutant);
        let groups = play(&scenario, &controllers, mutant.seeds, &player);
        let verdicts = || groups.iter().flat_map(|group| &group.verdicts);
        let what = |verdict: &Verdict| {
            format!(
                "{name}, {}: {} of {}: {} is {}",
                mutant.name,
                name_of(&verdict.band),
                verdict.controller,
                measured(verdict),
                if verdict.judgement == Judgement::Met {
                    "met"
                } else {
                    "missed"
                }
            )
        };
        for end in mutant.misses {
            let mut is_seen = false;
            for verdict in verdicts().filter(|v| ends_of(&v.band).iter().any(|e| e == end)) {
                is_seen = true;
                assert_eq!(
                    missed_end(verdict).as_deref(),
                    Some(*end),
                    "{}",
                    what(verdict)
                );
                let is_about_one_run = mutant.wrong_from == mutant.seeds && mutant.seeds > 1;
                if is_about_one_run {
                    assert_eq!(verdict.outside_count, 1, "{}", what(verdict));
                    assert_eq!(verdict.worst_seed, Some(mutant.seeds), "{}", what(verdict));
                }
            }
            assert!(is_seen, "{name}, {}: nothing judges {end}", mutant.name);
        }
        for end in mutant.meets {
            let mut is_seen = false;
            for verdict in verdicts().filter(|v| ends_of(&v.band).iter().any(|e| e == end)) {
                is_seen = true;
                assert_ne!(
                    missed_end(verdict).as_deref(),
                    Some(*end),
                    "{}",
                    what(verdict)
                );
            }
            assert!(is_seen, "{name}, {}: nothing judges {end}", mutant.name);
        }
    }
}

#[test]
fn every_end_of_every_band_is_missed_by_a_mutant() {
    for scenario in built_ins().expect("they parse") {
        // What is expected of a controller that this build does not have cannot be missed in it.
        let is_judged = |band: &&Band| {
            band.controllers.is_empty()
                || band
                    .controllers
                    .iter()
                    .any(|name| name.parse::<Algorithm>().is_ok())
        };
        let bands = scenario.bands.iter().filter(is_judged);
        let mut ends: BTreeSet<String> = bands.flat_map(ends_of).collect();
        // Always expected, whether the file says so or not.
        ends.insert("completed every min".to_owned());
        let missed: BTreeSet<String> = all()
            .filter(|mutant| mutant.scenario == scenario.name)
            .flat_map(|mutant| mutant.misses)
            .map(|end| (*end).to_owned())
            .collect();
        assert_eq!(ends, missed, "{}", scenario.name);
    }
}

/// What makes each end of this band fail: of the mutants that miss it, the one that misses least else.
pub(crate) fn fails_when(scenario: &str, band: &Band) -> String {
    let is_about = |mutant: &Mutant| {
        let mut judged = mutant.judged_as.split(',');
        band.controllers.is_empty() || judged.any(|name| band.controllers.iter().any(|c| c == name))
    };
    let of_end = |end: &String| {
        all()
            .filter(|mutant| mutant.scenario == scenario)
            .filter(|mutant| is_about(mutant))
            .filter(|mutant| mutant.misses.contains(&end.as_str()))
            .min_by_key(|mutant| mutant.misses.len())
            .map(|mutant| mutant.name)
    };
    let names: Vec<&str> = ends_of(band).iter().filter_map(of_end).collect();
    names.join("; ")
}
