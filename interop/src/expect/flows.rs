//! Values of runs with several flows: who got how much, and since when.

use units::{Timestamp, math};

use super::{Band, PPB};
use crate::results::{FlowResult, FlowWindow, RunResult};

/// When the goal of the band is first kept up, from the beginning of its window.
pub(super) fn reach(run: &RunResult, band: &Band) -> Option<u64> {
    const STEP_NS: u64 = 100_000_000;
    let (window, goal) = (band.window?, band.goal?);
    let steps = match &band.flow {
        Some(name) => {
            &run.flows
                .iter()
                .find(|flow| flow.name == *name)?
                .app_bytes_per_100_ms
        }
        None => &run.app_bytes_per_100_ms,
    };
    let index = |at: Timestamp| usize::try_from(at.as_nanos() / STEP_NS).unwrap_or(usize::MAX);
    let length = u64::try_from(goal.span.as_nanos()).unwrap_or(u64::MAX) / STEP_NS;
    let length = usize::try_from(length).unwrap_or(usize::MAX).max(1);
    let wanted = goal.rate.bytes_in(goal.span).as_u64();
    let first = index(window.from);
    let last = index(window.until).min(steps.len());
    let inside = steps.get(first..last)?;
    let at = inside
        .windows(length)
        .position(|span| span.iter().sum::<u64>() >= wanted)?;
    u64::try_from(at).ok()?.checked_mul(STEP_NS)
}

/// The flows of a run in the window of a band.
pub(super) struct Flows<'a> {
    /// The one the band names, or the tested one.
    pub(super) meant: Option<&'a FlowWindow>,
    /// Of all greedy ones that go the same way as the tested one, in bit/s.
    greedy: Vec<u64>,
    /// Of all that go that way.
    pub(super) total: u64,
}

impl<'a> Flows<'a> {
    pub(super) fn of(run: &'a RunResult, band: &Band) -> Option<Self> {
        let window = band.window?;
        let tested = run.flows.first()?;
        let meant = match &band.flow {
            Some(name) => run.flows.iter().find(|flow| flow.name == *name)?,
            None => tested,
        };
        let together = || {
            let flows = run.flows.iter();
            flows.filter(|flow| flow.is_reverse == tested.is_reverse)
        };
        let goodput = |flow: &FlowResult| flow.in_window(window).map_or(0, |seen| seen.goodput_bps);
        Some(Self {
            meant: meant.in_window(window),
            greedy: together()
                .filter(|flow| flow.is_greedy)
                .map(goodput)
                .collect(),
            total: together().map(goodput).sum(),
        })
    }

    pub(super) fn share(&self) -> Option<u64> {
        let total: u64 = self.greedy.iter().sum();
        let own = self.meant?.goodput_bps;
        (total > 0).then(|| math::mul_div(own, PPB, total))
    }

    /// The shares of all greedy flows; none where nobody got anything.
    pub(super) fn shares(&self) -> Option<impl Iterator<Item = u64>> {
        let total: u64 = self.greedy.iter().sum();
        let share = move |own: &u64| math::mul_div(*own, PPB, total);
        (total > 0).then(|| self.greedy.iter().map(share))
    }

    /// (sum of x)^2 / (n times the sum of x^2), in units of 1 kbit/s so that squares fit.
    pub(super) fn jain(&self) -> Option<u64> {
        let kbps: Vec<u128> = self
            .greedy
            .iter()
            .map(|bps| u128::from(bps / 1_000))
            .collect();
        let sum: u128 = kbps.iter().sum();
        let squares: u128 = kbps.iter().map(|x| x * x).sum();
        let count = u128::try_from(kbps.len()).ok()?;
        let index = (sum * sum * u128::from(PPB)).checked_div(count * squares)?;
        u64::try_from(index).ok()
    }
}
