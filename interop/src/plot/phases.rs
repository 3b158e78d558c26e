//! When the link is not what it was at the start, and in what.

use std::fmt::Display;
use std::time::Duration;

use netsim::{Change, LossPlace};
use units::{ByteCount, Fraction, Rate, Timestamp, format_duration};

use crate::scenario::{DirectionPlan, Scenario};

/// A stretch of time in which the link differs from its start, or an instant at which it drops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: Timestamp,
    /// The same as `from` for an instant.
    pub(super) until: Timestamp,
    /// In what it differs: "30 % loss".
    pub(super) label: String,
}

/// The stretches of a scenario before `end`, in order.
pub(super) fn stretches(scenario: &Scenario, end: Timestamp) -> Vec<Stretch> {
    let base = [&scenario.forward, &scenario.reverse].map(Settings::at_start);
    let mut now = base;
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut open: Option<Stretch> = None;
    let mut close = |open: Option<Stretch>, until: Timestamp| {
        if let Some(stretch) = open {
            stretches.push(Stretch { until, ..stretch });
        }
    };
    let mut drops = Vec::new();
    for at in instants(scenario, end) {
        let mut dropped = 0;
        for (settings, plan) in now.iter_mut().zip([&scenario.forward, &scenario.reverse]) {
            for (_, change) in plan.changes.iter().filter(|(when, _)| *when == at) {
                dropped += settings.apply(*change);
            }
        }
        if dropped > 0 {
            drops.push(Stretch {
                from: at,
                until: at,
                label: format!("{dropped} dropped"),
            });
        }
        let label = differences(&base, &now);
        if open.as_ref().map(|stretch| &stretch.label) != label.as_ref() {
            close(open.take(), at);
            open = label.map(|label| Stretch {
                from: at,
                until: at,
                label,
            });
        }
    }
    close(open, end);
    stretches.extend(drops);
    stretches.sort_by_key(|stretch| stretch.from);
    stretches
}

/// The values that `value` has over time: when each begins.
pub(super) fn steps<T: PartialEq>(
    scenario: &Scenario,
    end: Timestamp,
    value: impl Fn(&[Settings; 2]) -> T,
) -> Vec<(Timestamp, T)> {
    let mut now = [&scenario.forward, &scenario.reverse].map(Settings::at_start);
    let mut steps = vec![(Timestamp::ZERO, value(&now))];
    for at in instants(scenario, end) {
        for (settings, plan) in now.iter_mut().zip([&scenario.forward, &scenario.reverse]) {
            for (_, change) in plan.changes.iter().filter(|(when, _)| *when == at) {
                settings.apply(*change);
            }
        }
        let next = value(&now);
        if steps.last().is_none_or(|(_, last)| *last != next) {
            steps.push((at, next));
        }
    }
    steps
}

/// When something changes, without repetition, in order.
fn instants(scenario: &Scenario, end: Timestamp) -> Vec<Timestamp> {
    let changes = scenario
        .forward
        .changes
        .iter()
        .chain(&scenario.reverse.changes);
    let mut instants: Vec<Timestamp> = changes.map(|(at, _)| *at).filter(|at| *at < end).collect();
    instants.sort_unstable();
    instants.dedup();
    instants
}

/// What one direction is set to at some instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) rate: Rate,
    pub(super) delay: Duration,
    pub(super) queue: ByteCount,
    loss: Fraction,
    loss_place: LossPlace,
}

impl Settings {
    fn at_start(plan: &DirectionPlan) -> Self {
        Self {
            rate: plan.rate,
            delay: plan.delay,
            queue: plan.queue,
            loss: plan.loss,
            loss_place: plan.loss_place,
        }
    }

    /// How many packets the change orders to be dropped.
    fn apply(&mut self, change: Change) -> u64 {
        match change {
            Change::Rate(rate) => self.rate = rate,
            Change::Delay(delay) => self.delay = delay,
            Change::Queue(queue) => self.queue = queue,
            Change::Loss(loss) => self.loss = loss,
            Change::LossPlace(place) => self.loss_place = place,
            Change::DropNext(count) => return count,
            // Not drawn: there would be no end of words.
            Change::Jitter(_)
            | Change::Slots(_)
            | Change::QueuePackets(_)
            | Change::Discipline(_)
            | Change::BurstLoss(_)
            | Change::Mishaps(_)
            | Change::Thinning(_)
            | Change::Policer(_)
            | Change::Shaper(_)
            | Change::LargestPacket(_) => {}
        }
        0
    }
}

/// In what the two directions, forward first, differ from their start; `None` if in nothing.
fn differences(base: &[Settings; 2], now: &[Settings; 2]) -> Option<String> {
    let words = [
        difference(base, now, |side| side.rate, |rate| rate.to_string()),
        difference(base, now, |side| side.loss, |loss| format!("{loss} loss")),
        difference(
            base,
            now,
            |side| side.delay,
            |delay| format!("{} delay", format_duration(delay)),
        ),
        difference(
            base,
            now,
            |side| side.queue,
            |queue| format!("{queue} queue"),
        ),
        difference(
            base,
            now,
            |side| side.loss_place,
            |place| match place {
                LossPlace::BeforeQueue => "loss before the queue".to_owned(),
                LossPlace::AfterQueue => "loss after the queue".to_owned(),
            },
        ),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn difference<T: PartialEq, D: Display>(
    base: &[Settings; 2],
    now: &[Settings; 2],
    value: impl Fn(&Settings) -> T,
    words: impl Fn(T) -> D,
) -> Option<String> {
    let is_changed = |side: usize| value(&base[side]) != value(&now[side]);
    let [forward, reverse] = [0, 1].map(|side| value(&now[side]));
    match (is_changed(0), is_changed(1)) {
        (false, false) => None,
        (true, true) if forward == reverse => Some(words(forward).to_string()),
        (true, true) => Some(format!(
            "{} to the client, {} back",
            words(forward),
            words(reverse)
        )),
        (true, false) => Some(format!("{} to the client", words(forward))),
        (false, true) => Some(format!("{} to the server", words(reverse))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(phases: &str) -> Scenario {
        let text = format!(
            "name = \"s\"\nabout = \"a\"\nlimit = \"10 s\"\ncontrollers = [\"cubic\"]\n[link]\nrate = \"100 Mbit/s\"\n\
             rtt = \"10 ms\"\nqueue = \"250 kB\"\n{phases}\n[download]\nsize = \"1 MB\"\n"
        );
        Scenario::parse("test.toml", &text).unwrap()
    }

    fn seen(phases: &str) -> Vec<(u64, u64, String)> {
        let ms = |at: Timestamp| at.as_nanos() / 1_000_000;
        stretches(&scenario(phases), Timestamp::from_secs(5))
            .into_iter()
            .map(|stretch| (ms(stretch.from), ms(stretch.until), stretch.label))
            .collect()
    }

    #[test]
    fn a_phase_is_a_stretch_with_what_it_changes() {
        assert_eq!(
            seen("[[phase]]\nfrom = \"1 s\"\nuntil = \"2 s\"\nboth = { loss = \"30 %\" }"),
            [(1_000, 2_000, "30 % loss".to_owned())]
        );
    }

    #[test]
    fn a_step_that_stays_ends_with_the_picture() {
        assert_eq!(
            seen("[[phase]]\nat = \"1 s\"\nforward = { rate = \"25 Mbit/s\" }"),
            [(1_000, 5_000, "25 Mbit/s to the client".to_owned())]
        );
    }

    #[test]
    fn what_happens_after_the_end_is_not_shown() {
        let late = "[[phase]]\nfrom = \"5 s\"\nuntil = \"6 s\"\nboth = { loss = \"30 %\" }";
        assert_eq!(seen(late), []);
    }

    #[test]
    fn overlapping_phases_are_cut_where_something_changes() {
        let phases = "[[phase]]\nfrom = \"1 s\"\nuntil = \"3 s\"\nboth = { rate = \"5 Mbit/s\" }\n\
                      [[phase]]\nfrom = \"2 s\"\nuntil = \"4 s\"\nreverse = { loss = \"1 %\" }";
        assert_eq!(
            seen(phases),
            [
                (1_000, 2_000, "5 Mbit/s".to_owned()),
                (2_000, 3_000, "5 Mbit/s, 1 % loss to the server".to_owned()),
                (3_000, 4_000, "1 % loss to the server".to_owned()),
            ]
        );
    }

    #[test]
    fn steps_follow_the_forward_rate() {
        let scenario = scenario(
            "[[phase]]\nfrom = \"1 s\"\nuntil = \"3 s\"\nboth = { rate = \"5 Mbit/s\" }\n\
             [[phase]]\nfrom = \"2 s\"\nuntil = \"4 s\"\nreverse = { loss = \"1 %\" }",
        );
        let rates = steps(&scenario, Timestamp::from_secs(5), |sides| sides[0].rate);
        assert_eq!(
            rates,
            [
                (Timestamp::ZERO, Rate::from_mbps(100)),
                (Timestamp::from_secs(1), Rate::from_mbps(5)),
                (Timestamp::from_secs(3), Rate::from_mbps(100)),
            ]
        );
    }
}
