//! Sets of whole numbers that come in runs: packet numbers, bytes of a stream.

use std::collections::BTreeMap;

/// A set of numbers, kept as runs. It takes as much memory as there are gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// First number of a run, and the number after its last.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Ranges {
    /// Adds `from..until` and says how many of them are new.
    pub(crate) fn insert(&mut self, from: u64, until: u64) -> u64 {
        if from >= until {
            return 0;
        }
        let (mut start, mut end) = (from, until);
        let mut known = 0;
        if let Some((&before, &its_end)) = self.runs.range(..=from).next_back()
            && its_end >= from
        {
            start = before;
        }
        while let Some((&other, &its_end)) = self.runs.range(start..=end).next() {
            known += its_end.min(until).saturating_sub(other.max(from));
            end = end.max(its_end);
            self.runs.remove(&other);
        }
        self.runs.insert(start, end);
        let new = until - from - known;
        self.count = self.count.saturating_add(new);
        new
    }

    /// Whether all of `from..until` are in the set.
    pub(crate) fn contains(&self, from: u64, until: u64) -> bool {
        from >= until
            || self
                .runs
                .range(..=from)
                .next_back()
                .is_some_and(|(_, &end)| end >= until)
    }

    /// How many numbers are in the set.
    #[cfg(test)]
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The number after the largest; 0 if there is none.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.runs.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// Whether the set is one run, or empty.
    pub(crate) fn is_whole(&self) -> bool {
        self.runs.len() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_together() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(10, 20), 10);
        assert_eq!(set.insert(30, 40), 10);
        assert_eq!(set.insert(15, 35), 10);
        assert!(set.is_whole());
        assert_eq!(set.insert(0, 5), 5);
        assert_eq!(set.insert(5, 10), 5);
        assert!(set.contains(0, 40), "neighbours are one run");
        assert_eq!(set.insert(0, 100), 60);
        assert_eq!((set.count(), set.end()), (100, 100));
        assert_eq!(set.insert(3, 3), 0);
    }

    #[test]
    fn a_run_is_contained_only_as_a_whole() {
        let mut set = Ranges::default();
        set.insert(10, 20);
        set.insert(21, 30);
        assert!(set.contains(10, 20) && set.contains(12, 13) && set.contains(5, 5));
        assert!(!set.contains(9, 11) && !set.contains(19, 22) && !set.contains(40, 41));
        assert!(!set.is_whole());
    }

    #[test]
    fn the_largest_numbers_fit() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(0, u64::MAX), u64::MAX);
        assert_eq!(set.insert(5, u64::MAX), 0);
    }
}
