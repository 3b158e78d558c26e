//! Packets in order of arrival, counted.

use std::collections::VecDeque;

use crate::counters::Tally;
use crate::packet::Waiting;

/// First in, first out. Keeps the memory it once needed.
#[derive(Clone, Debug)]
pub(super) struct Fifo<T> {
    packets: VecDeque<Waiting<T>>,
    tally: Tally,
}

impl<T> Fifo<T> {
    pub(super) const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            tally: Tally {
                packets: 0,
                bytes: units::ByteCount::ZERO,
            },
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting<T>) {
        self.tally.add(waiting.packet.size);
        self.packets.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.packets.pop_front()?;
        self.tally.remove(waiting.packet.size);
        Some(waiting)
    }

    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        self.tally = Tally::default();
        packets.extend(self.packets.drain(..));
    }

    pub(super) fn front(&self) -> Option<&Waiting<T>> {
        self.packets.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }
}
