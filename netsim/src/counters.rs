//! What a pipe counts.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use crate::histogram::DelayHistogram;
use crate::queue::{Fate, QueueDrop};
use crate::random::Fnv1a;

/// A number of packets and of their bytes.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: ByteCount,
}

impl Tally {
    pub(crate) fn add(&mut self, size: ByteCount) {
        self.packets += 1;
        self.bytes += size;
    }

    pub(crate) fn remove(&mut self, size: ByteCount) {
        self.packets -= 1;
        self.bytes -= size;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl FromIterator<ByteCount> for Tally {
    fn from_iter<I: IntoIterator<Item = ByteCount>>(sizes: I) -> Self {
        let mut tally = Self::default();
        for size in sizes {
            tally.add(size);
        }
        tally
    }
}

/// Why a packet was dropped, in the order of the stages.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// It was larger than the link carries.
    TooLarge,
    /// It was one of many small packets.
    Thinned,
    /// The script named this arrival.
    Scripted,
    /// Random loss before the queue.
    LossBefore,
    /// The policer's bucket was empty.
    Policed,
    /// The queue was full.
    Queue,
    /// The queue's discipline wanted the sender to slow down.
    Aqm,
    /// Random loss on the wire.
    LossAfter,
}

/// Everything counted since the pipe was made, and what is inside it now.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Arrivals.
    pub offered: Tally,
    /// Deliveries.
    pub delivered: Tally,
    /// Deliveries of damaged packets, which are among the deliveries.
    pub delivered_corrupt: Tally,
    /// Copies that the wire has made.
    pub duplicated: Tally,
    /// Packets whose ECN field the queue has set to CE.
    pub marked: Tally,
    /// Dropped because they were too large.
    pub dropped_too_large: Tally,
    /// Dropped by the thinning.
    pub dropped_thinned: Tally,
    /// Dropped because the script named them.
    pub dropped_scripted: Tally,
    /// Lost at random before the queue.
    pub dropped_loss_before: Tally,
    /// Dropped by the policer.
    pub dropped_policed: Tally,
    /// Dropped because the queue was full.
    pub dropped_queue: Tally,
    /// Dropped by the queue's discipline.
    pub dropped_aqm: Tally,
    /// Lost at random on the wire, after they used link time.
    pub dropped_loss_after: Tally,
    /// Held back by the thinning now.
    pub held: Tally,
    /// Waiting in the queue now, without the packet being serialised.
    pub queued: Tally,
    /// Being serialised now: one packet or none.
    pub in_service: Tally,
    /// Propagating now.
    pub in_flight: Tally,
    /// The most bytes that ever waited in the queue at once.
    pub max_queue: ByteCount,
    /// Time the serialiser spent on packets that have left it.
    pub busy_time: Duration,
    /// Time each packet that reached the serialiser had waited for it; zero for those that found it
    /// free.
    pub queue_delay: DelayHistogram,
    trace: TraceDigest,
}

impl Counters {
    /// All drops together.
    #[must_use]
    pub fn dropped(&self) -> Tally {
        self.dropped_scripted
            .plus(self.dropped_too_large)
            .plus(self.dropped_thinned)
            .plus(self.dropped_policed)
            .plus(self.dropped_aqm)
            .plus(self.dropped_loss_before)
            .plus(self.dropped_queue)
            .plus(self.dropped_loss_after)
    }

    /// The drops of one cause.
    #[must_use]
    pub fn dropped_by(&self, cause: DropCause) -> Tally {
        match cause {
            DropCause::TooLarge => self.dropped_too_large,
            DropCause::Thinned => self.dropped_thinned,
            DropCause::Policed => self.dropped_policed,
            DropCause::Aqm => self.dropped_aqm,
            DropCause::Scripted => self.dropped_scripted,
            DropCause::LossBefore => self.dropped_loss_before,
            DropCause::Queue => self.dropped_queue,
            DropCause::LossAfter => self.dropped_loss_after,
        }
    }

    /// Everything that is inside the pipe now.
    #[must_use]
    pub fn inside(&self) -> Tally {
        self.held
            .plus(self.queued)
            .plus(self.in_service)
            .plus(self.in_flight)
    }

    /// Whether every packet and byte that arrived, or was copied, is accounted for: delivered, dropped or inside.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.offered.plus(self.duplicated)
            == self.delivered.plus(self.dropped()).plus(self.inside())
    }

    /// A hash of every packet's fate so far: its time, its size and what became of it, in order.
    ///
    /// Two runs with the same digest delivered and dropped the same sizes at the same nanoseconds.
    /// FNV-1a with 64 bits over the time (8 bytes, little endian), the size (8 bytes) and the fate
    /// (1 byte: 0 delivered, 1 scripted, 2 lost before the queue, 3 queue full, 4 lost after it, 5 too large, 6 thinned,
    /// 7 policed, 8 dropped by the discipline, 9 delivered damaged, 10 marked and still on its way).
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.trace.0.value()
    }

    pub(crate) fn on_delivered(&mut self, at: Timestamp, size: ByteCount, is_corrupt: bool) {
        self.in_flight.remove(size);
        self.delivered.add(size);
        if is_corrupt {
            self.delivered_corrupt.add(size);
        }
        self.trace.record(at, size, if is_corrupt { 9 } else { 0 });
    }

    pub(crate) fn on_fate<T>(&mut self, at: Timestamp, fate: Fate<T>) {
        match fate {
            Fate::Dropped(waiting, QueueDrop::Full) => {
                self.on_dropped(at, waiting.packet.size, DropCause::Queue);
            }
            Fate::Dropped(waiting, QueueDrop::Aqm) => {
                self.on_dropped(at, waiting.packet.size, DropCause::Aqm);
            }
            Fate::Marked { size, .. } => {
                self.marked.add(size);
                self.trace.record(at, size, 10);
            }
        }
    }

    pub(crate) fn on_dropped(&mut self, at: Timestamp, size: ByteCount, cause: DropCause) {
        let (tally, fate) = match cause {
            DropCause::TooLarge => (&mut self.dropped_too_large, 5),
            DropCause::Thinned => (&mut self.dropped_thinned, 6),
            DropCause::Policed => (&mut self.dropped_policed, 7),
            DropCause::Aqm => (&mut self.dropped_aqm, 8),
            DropCause::Scripted => (&mut self.dropped_scripted, 1),
            DropCause::LossBefore => (&mut self.dropped_loss_before, 2),
            DropCause::Queue => (&mut self.dropped_queue, 3),
            DropCause::LossAfter => (&mut self.dropped_loss_after, 4),
        };
        tally.add(size);
        self.trace.record(at, size, fate);
    }

    pub(crate) fn on_queue(&mut self, queued: Tally) {
        self.queued = queued;
        self.max_queue = self.max_queue.max(queued.bytes);
    }
}

#[derive(Clone, Debug)]
struct TraceDigest(Fnv1a);

impl TraceDigest {
    fn record(&mut self, at: Timestamp, size: ByteCount, fate: u8) {
        self.0.write(&at.as_nanos().to_le_bytes());
        self.0.write(&size.as_u64().to_le_bytes());
        self.0.write(&[fate]);
    }
}

impl Default for TraceDigest {
    fn default() -> Self {
        Self(Fnv1a::new())
    }
}
