//! What a pipe counts.

use std::time::Duration;

use units::{ByteCount, Timestamp};

use crate::histogram::DelayHistogram;
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

/// Why a packet was dropped, in the order of the stages.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// The script named this arrival.
    Scripted,
    /// Random loss before the queue.
    LossBefore,
    /// The queue was full.
    Queue,
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
    /// Dropped because the script named them.
    pub dropped_scripted: Tally,
    /// Lost at random before the queue.
    pub dropped_loss_before: Tally,
    /// Dropped because the queue was full.
    pub dropped_queue: Tally,
    /// Lost at random on the wire, after they used link time.
    pub dropped_loss_after: Tally,
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
            .plus(self.dropped_loss_before)
            .plus(self.dropped_queue)
            .plus(self.dropped_loss_after)
    }

    /// The drops of one cause.
    #[must_use]
    pub fn dropped_by(&self, cause: DropCause) -> Tally {
        match cause {
            DropCause::Scripted => self.dropped_scripted,
            DropCause::LossBefore => self.dropped_loss_before,
            DropCause::Queue => self.dropped_queue,
            DropCause::LossAfter => self.dropped_loss_after,
        }
    }

    /// Everything that is inside the pipe now.
    #[must_use]
    pub fn inside(&self) -> Tally {
        self.queued.plus(self.in_service).plus(self.in_flight)
    }

    /// Whether every packet and byte that arrived is accounted for: delivered, dropped or inside.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.offered == self.delivered.plus(self.dropped()).plus(self.inside())
    }

    /// A hash of every packet's fate so far: its time, its size and what became of it, in order.
    ///
    /// Two runs with the same digest delivered and dropped the same sizes at the same nanoseconds.
    /// FNV-1a with 64 bits over the time (8 bytes, little endian), the size (8 bytes) and the fate
    /// (1 byte: 0 delivered, 1 scripted, 2 lost before the queue, 3 queue full, 4 lost after it).
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.trace.0.value()
    }

    pub(crate) fn on_delivered(&mut self, at: Timestamp, size: ByteCount) {
        self.in_flight.remove(size);
        self.delivered.add(size);
        self.trace.record(at, size, 0);
    }

    pub(crate) fn on_dropped(&mut self, at: Timestamp, size: ByteCount, cause: DropCause) {
        let (tally, fate) = match cause {
            DropCause::Scripted => (&mut self.dropped_scripted, 1),
            DropCause::LossBefore => (&mut self.dropped_loss_before, 2),
            DropCause::Queue => (&mut self.dropped_queue, 3),
            DropCause::LossAfter => (&mut self.dropped_loss_after, 4),
        };
        tally.add(size);
        self.trace.record(at, size, fate);
    }

    pub(crate) fn on_queued(&mut self, size: ByteCount) {
        self.queued.add(size);
        self.max_queue = self.max_queue.max(self.queued.bytes);
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
