//! One direction of the link over the whole run: its settings at the start and every later change.
//!
//! ```text
//!  base    loss 0 %      +--------------+                     at = ...: stays
//!                        |  30 %        |                     from/until: the value in force
//!          --------------+              +-------------->       before comes back at `until`
//!                      from           until
//! ```

use std::mem::discriminant;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use netsim::{Cellular, Change, ConfigError, Leo, Pipe, PipeConfig, RandomStreams};
use units::Timestamp;

/// Everything one direction does in a run. Its settings at the start can be read as its own fields.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionPlan {
    /// The settings at the start, all resolved: a queue of "2 BDP" is a number of bytes.
    pub config: PipeConfig,
    /// Where the slots of a link without a fixed rate come from.
    pub slots_from: Option<SlotSource>,
    /// What changes when, in order of time.
    pub changes: Vec<(Timestamp, Change)>,
}

/// Where the slots of a link come from that has no fixed rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SlotSource {
    /// A mobile link, made anew from each seed.
    Cellular(Cellular, Duration),
    /// A link over satellites, made anew from each seed.
    Leo(Leo, Duration),
}

impl Deref for DirectionPlan {
    type Target = PipeConfig;

    fn deref(&self) -> &PipeConfig {
        &self.config
    }
}

impl DerefMut for DirectionPlan {
    fn deref_mut(&mut self) -> &mut PipeConfig {
        &mut self.config
    }
}

impl DirectionPlan {
    /// The pipe that plays this plan; its random draws come from `streams` under `name`.
    ///
    /// # Errors
    /// What netsim refuses. The scenario reader refuses the same values earlier, with their line.
    pub fn pipe<T: Clone>(
        &self,
        streams: &RandomStreams,
        name: &str,
    ) -> Result<Pipe<T>, ConfigError> {
        let mut config = self.config.clone();
        let mut delays = Vec::new();
        let refused = |problem| ConfigError::Setting {
            pipe: name.to_owned(),
            problem,
        };
        // The seed and the length decide, not the direction: both directions of a link see the same sky.
        match self.slots_from {
            Some(SlotSource::Cellular(cellular, length)) => {
                let mut random = streams.stream(&format!("{name}.cellular"));
                config.trace = Some(cellular.generate(length, &mut random).map_err(refused)?);
            }
            Some(SlotSource::Leo(leo, length)) => {
                let mut random = streams.stream("leo");
                let path = leo.generate(length, &mut random).map_err(refused)?;
                config.trace = Some(path.trace);
                delays = path.delays;
            }
            None => {}
        }
        let mut pipe = Pipe::new(config, streams, name)?;
        for (at, delay) in delays {
            pipe.schedule(at, Change::Delay(delay))?;
        }
        for (at, change) in &self.changes {
            pipe.schedule(*at, *change)?;
        }
        Ok(pipe)
    }
}

/// One setting changed by one phase, with whatever the caller needs to complain about it.
#[derive(Debug, Clone)]
pub(super) struct PhaseChange<O> {
    pub(super) from: Timestamp,
    pub(super) until: Option<Timestamp>,
    pub(super) change: Change,
    pub(super) origin: O,
}

/// Two phases that set the same thing at the same time: the later one, and when the other began.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap<O> {
    pub(super) origin: O,
    pub(super) other_from: Timestamp,
}

/// Lays the phases of one direction onto its plan.
pub(super) fn lay_phases<O: Clone>(
    plan: &mut DirectionPlan,
    phases: &[PhaseChange<O>],
) -> Result<(), Overlap<O>> {
    let mut ordered: Vec<&PhaseChange<O>> = phases.iter().collect();
    ordered.sort_by_key(|phase| phase.from);
    let mut changes = Vec::new();
    let mut is_laid = vec![false; ordered.len()];
    for first in 0..ordered.len() {
        if is_laid[first] {
            continue;
        }
        let kind = discriminant(&ordered[first].change);
        let Some(mut standing) = plan.setting(&ordered[first].change) else {
            changes.push((ordered[first].from, ordered[first].change));
            continue;
        };
        let mut previous: Option<&PhaseChange<O>> = None;
        for index in first..ordered.len() {
            let phase = ordered[index];
            if discriminant(&phase.change) != kind {
                continue;
            }
            is_laid[index] = true;
            if let Some(previous) = previous {
                let is_inside = previous.until.is_some_and(|until| phase.from < until);
                if is_inside || previous.from == phase.from {
                    return Err(Overlap {
                        origin: phase.origin.clone(),
                        other_from: previous.from,
                    });
                }
                // Back to back phases: the second takes over, nothing comes back in between.
                if let Some(until) = previous.until
                    && until < phase.from
                {
                    changes.push((until, standing));
                }
            }
            changes.push((phase.from, phase.change));
            if phase.until.is_none() {
                standing = phase.change;
            }
            previous = Some(phase);
        }
        if let Some(until) = previous.and_then(|phase| phase.until) {
            changes.push((until, standing));
        }
    }
    // Stable: changes of different settings at one instant keep their order.
    changes.sort_by_key(|(at, _)| *at);
    plan.changes = changes;
    Ok(())
}

#[cfg(test)]
mod tests {
    use units::{ByteCount, Fraction, Rate};

    use super::*;

    fn plan() -> DirectionPlan {
        DirectionPlan {
            config: PipeConfig {
                rate: Rate::from_mbps(100),
                delay: Duration::from_millis(5),
                queue: ByteCount::new(250_000),
                ..PipeConfig::default()
            },
            slots_from: None,
            changes: Vec::new(),
        }
    }

    fn phase(from: u64, until: Option<u64>, change: Change) -> PhaseChange<u32> {
        PhaseChange {
            from: Timestamp::from_secs(from),
            until: until.map(Timestamp::from_secs),
            change,
            origin: 7,
        }
    }

    fn mbps(rate: u64) -> Change {
        Change::Rate(Rate::from_mbps(rate))
    }

    fn laid(phases: &[PhaseChange<u32>]) -> Vec<(u64, Change)> {
        let mut plan = plan();
        lay_phases(&mut plan, phases).unwrap();
        plan.changes
            .iter()
            .map(|(at, change)| (at.as_nanos() / 1_000_000_000, *change))
            .collect()
    }

    #[test]
    fn the_value_before_a_phase_comes_back_after_it() {
        assert_eq!(
            laid(&[phase(15, Some(30), mbps(25))]),
            [(15, mbps(25)), (30, mbps(100))]
        );
    }

    #[test]
    fn a_permanent_step_is_what_later_phases_return_to() {
        assert_eq!(
            laid(&[phase(20, Some(30), mbps(5)), phase(10, None, mbps(50))]),
            [(10, mbps(50)), (20, mbps(5)), (30, mbps(50))]
        );
    }

    #[test]
    fn nothing_comes_back_between_phases_that_touch() {
        assert_eq!(
            laid(&[phase(1, Some(2), mbps(5)), phase(2, Some(3), mbps(6))]),
            [(1, mbps(5)), (2, mbps(6)), (3, mbps(100))]
        );
    }

    #[test]
    fn phases_of_different_settings_may_overlap() {
        let loss = Change::Loss(Fraction::from_percent(30).unwrap());
        assert_eq!(
            laid(&[phase(1, Some(3), mbps(5)), phase(2, Some(4), loss)]),
            [
                (1, mbps(5)),
                (2, loss),
                (3, mbps(100)),
                (4, Change::Loss(Fraction::ZERO))
            ]
        );
    }

    #[test]
    fn orders_to_drop_stand_beside_everything() {
        let drop = Change::DropNext(1);
        assert_eq!(
            laid(&[phase(1, None, drop), phase(1, None, drop)]),
            [(1, drop), (1, drop)]
        );
    }

    #[test]
    fn phases_of_one_setting_that_overlap_are_refused() {
        let overlap = lay_phases(
            &mut plan(),
            &[phase(1, Some(3), mbps(5)), phase(2, None, mbps(6))],
        )
        .unwrap_err();
        assert_eq!(overlap.origin, 7);
        assert_eq!(overlap.other_from, Timestamp::from_secs(1));
    }
}
