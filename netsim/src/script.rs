//! Which arrivals to drop whatever their luck.

use units::{ByteCount, Timestamp};

use crate::config::SpacedDrops;
use crate::packet::Labels;

/// What is still to be dropped.
#[derive(Clone, Debug)]
pub(crate) struct DropScript {
    /// Arrivals still to be dropped, the next one last.
    arrivals: Vec<u64>,
    /// How many to drop from now on.
    next: u64,
    spaced: Vec<Spaced>,
}

#[derive(Copy, Clone, Debug)]
struct Spaced {
    rule: SpacedDrops,
    /// From when on the next drop is due; at once in the beginning.
    due_at: Timestamp,
}

impl DropScript {
    pub(crate) fn new(arrivals: &[u64], spaced: &[SpacedDrops]) -> Self {
        let mut arrivals = arrivals.to_vec();
        arrivals.sort_unstable_by(|a, b| b.cmp(a));
        arrivals.dedup();
        let spaced = spaced.iter().map(|rule| Spaced {
            rule: *rule,
            due_at: Timestamp::ZERO,
        });
        Self {
            arrivals,
            next: 0,
            spaced: spaced.collect(),
        }
    }

    pub(crate) fn drop_next(&mut self, count: u64) {
        self.next = self.next.saturating_add(count);
    }

    /// Whether to drop the arrival of this number. Numbers are asked for in ascending order, each
    /// once.
    pub(crate) fn takes(
        &mut self,
        now: Timestamp,
        arrival: u64,
        size: ByteCount,
        labels: Labels,
    ) -> bool {
        let is_named = self.arrivals.pop_if(|next| *next == arrival).is_some();
        let is_next = self.next > 0;
        self.next = self.next.saturating_sub(1);
        let is_spaced = self
            .spaced
            .iter_mut()
            .any(|spaced| spaced.takes(now, size, labels));
        is_named || is_next || is_spaced
    }
}

impl Spaced {
    fn takes(&mut self, now: Timestamp, size: ByteCount, labels: Labels) -> bool {
        let is_meant = size >= self.rule.at_least
            && self
                .rule
                .wants
                .iter()
                .all(|wanted| wanted.is_empty() || wanted.meets(labels));
        if !is_meant || now < self.due_at {
            return false;
        }
        if self.rule.skip > 0 {
            self.rule.skip -= 1;
            return false;
        }
        let is_taken = self.rule.count > 0;
        if is_taken {
            self.rule.count -= 1;
            self.due_at = now + self.rule.gap;
        }
        is_taken
    }
}
