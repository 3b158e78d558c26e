//! First in, first out; what does not fit as a whole is dropped.

use super::fifo::Fifo;
use super::{Arrival, Fate, Fates, QueueDrop};
use crate::counters::Tally;
use crate::packet::Waiting;

#[derive(Clone, Debug)]
pub(super) struct DropTail<T> {
    fifo: Fifo<T>,
}

impl<T> DropTail<T> {
    pub(super) const fn new() -> Self {
        Self { fifo: Fifo::new() }
    }

    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        if arrival.has_room(self.fifo.tally()) {
            self.fifo.push(arrival.waiting);
        } else {
            fates(Fate::Dropped(arrival.waiting, QueueDrop::Full));
        }
    }

    pub(super) fn dequeue(&mut self) -> Option<Waiting<T>> {
        self.fifo.pop()
    }

    pub(super) fn take_over(&mut self, waiting: Waiting<T>) {
        self.fifo.push(waiting);
    }

    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        self.fifo.drain_into(packets);
    }

    pub(super) fn tally(&self) -> Tally {
        self.fifo.tally()
    }
}
