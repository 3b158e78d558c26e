//! Things that will happen, soonest first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use units::Timestamp;

/// A priority queue of events in the order (time, insertion).
///
/// Two events at the same instant come out in the order they went in, which a plain heap does not
/// promise and a simulation must have to be repeatable.
///
/// ```
/// use netsim::EventHeap;
/// use units::Timestamp;
///
/// let mut events = EventHeap::new();
/// events.push(Timestamp::from_millis(2), "later");
/// events.push(Timestamp::from_millis(1), "first");
/// events.push(Timestamp::from_millis(1), "second");
/// assert_eq!(events.peek_time(), Some(Timestamp::from_millis(1)));
/// assert_eq!(events.pop(), Some((Timestamp::from_millis(1), "first")));
/// assert_eq!(events.pop(), Some((Timestamp::from_millis(1), "second")));
/// assert_eq!(events.pop(), Some((Timestamp::from_millis(2), "later")));
/// assert_eq!(events.pop(), None);
/// ```
#[derive(Clone, Debug)]
pub struct EventHeap<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// Number of the next insertion. 64 bits outlast any run.
    next_insertion: u64,
}

impl<E> EventHeap<E> {
    /// An empty heap.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next_insertion: 0,
        }
    }

    /// Adds an event that happens at `at`, after everything already added for that instant.
    pub fn push(&mut self, at: Timestamp, event: E) {
        let insertion = self.next_insertion;
        self.next_insertion += 1;
        self.heap.push(Reverse(Entry {
            at,
            insertion,
            event,
        }));
    }

    /// Takes the next event and the instant it happens at.
    pub fn pop(&mut self) -> Option<(Timestamp, E)> {
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// Takes the next event if it happens at or before `now`.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, E)> {
        if self.peek_time()? <= now {
            self.pop()
        } else {
            None
        }
    }

    /// The instant of the next event.
    #[must_use]
    pub fn peek_time(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// How many events are waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventHeap<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// An event with its place in the order; the event itself takes no part in comparisons.
#[derive(Clone, Debug)]
struct Entry<E> {
    at: Timestamp,
    insertion: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.insertion).cmp(&(other.at, other.insertion))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_one_instant_keep_their_order_among_others() {
        let mut heap = EventHeap::new();
        for round in 0..100_u64 {
            for at in [3, 1, 2] {
                heap.push(Timestamp::from_nanos(at), (at, round));
            }
        }
        let mut expected = Vec::new();
        for at in [1, 2, 3] {
            expected.extend((0..100).map(|round| (at, round)));
        }
        let popped: Vec<_> = std::iter::from_fn(|| heap.pop())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(popped, expected);
    }

    #[test]
    fn only_what_is_due_is_taken() {
        let mut heap = EventHeap::default();
        heap.push(Timestamp::from_nanos(5), 'a');
        assert_eq!(heap.pop_due(Timestamp::from_nanos(4)), None);
        assert_eq!(heap.len(), 1);
        assert_eq!(
            heap.pop_due(Timestamp::from_nanos(5)),
            Some((Timestamp::from_nanos(5), 'a'))
        );
        assert!(heap.is_empty());
        assert_eq!(heap.pop_due(Timestamp::MAX), None);
    }
}
