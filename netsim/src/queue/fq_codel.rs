//! FQ-CoDel, fair queueing with a CoDel per flow: RFC 8290.
//!
//! ```text
//!              hash of the flow
//!  packet  ->  +-----+-----+-----+ ... +------+
//!              |  0  |  1  |  2  |     | 1023 |   buckets: a FIFO, a CoDel, a deficit
//!              +-----+-----+-----+ ... +------+
//!
//!    bucket was idle                     deficit used up
//!  ------------------> new flows ---------------------------> old flows <--+ deficit used up:
//!                          |     empty, and old flows wait        |     ---+ + 1 quantum, to the end
//!                          | empty, and none waits                | empty
//!                          +----------------> idle <--------------+
//! ```
//!
//! New flows are served before old ones. A flow that sends no more than its share is always new,
//! and waits for one packet at most.

use std::collections::VecDeque;

use units::{ByteCount, Timestamp};

use super::codel::{CoDelConfig, Control, ETHERNET_FRAME, Source};
use super::fifo::Fifo;
use super::{Arrival, Fate, Fates, QueueDrop};
use crate::counters::Tally;
use crate::packet::{FlowId, Waiting};

/// Parameters of FQ-CoDel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FqCoDelConfig {
    /// The CoDel of each bucket; ECN is on unless told otherwise (RFC 8290 section 5.2.6). As in
    /// Linux its [`CoDelConfig::mtu`] is compared with what waits in all buckets.
    pub codel: CoDelConfig,
    /// The bytes a flow may send per turn: RFC 8290 section 5.2.4, one Ethernet frame. At least 1.
    pub quantum: ByteCount,
    /// The number of buckets: RFC 8290 section 5.2.5, 1,024. At least 1. A change of this number
    /// distributes the packets anew and forgets the state of the controllers.
    pub buckets: u16,
}

impl FqCoDelConfig {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.quantum == ByteCount::ZERO {
            Err("the FQ-CoDel quantum is zero, at least 1 B")
        } else if self.quantum > LARGEST_QUANTUM {
            Err("the FQ-CoDel quantum is too large, at most 1 MB")
        } else if self.buckets == 0 {
            Err("FQ-CoDel has no buckets, at least 1")
        } else {
            self.codel.check()
        }
    }
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        Self {
            codel: CoDelConfig {
                ecn: true,
                ..CoDelConfig::default()
            },
            quantum: ETHERNET_FRAME,
            buckets: 1_024,
        }
    }
}

const LARGEST_QUANTUM: ByteCount = ByteCount::mb(1);

/// The most packets that are dropped at once when the queue is full, so that looking for the
/// fattest bucket pays. As in Linux.
const OVERLOAD_BATCH: u64 = 64;

/// FIFOs that take turns.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel<T> {
    config: FqCoDelConfig,
    buckets: Vec<Bucket<T>>,
    /// Buckets that were idle, in order of their turns. Bucket numbers.
    new: VecDeque<usize>,
    /// Buckets that have had their first turn, in order of their turns.
    old: VecDeque<usize>,
    tally: Tally,
}

#[derive(Clone, Debug)]
struct Bucket<T> {
    fifo: Fifo<T>,
    control: Control,
    /// Bytes it may still send in this turn; below zero, what the last packet was too large.
    deficit: i128,
    /// Whether it is among the new or the old ones. One that has run empty stays there until its
    /// next turn.
    is_listed: bool,
}

impl<T> FqCoDel<T> {
    pub(super) fn new(config: FqCoDelConfig) -> Self {
        let count = usize::from(config.buckets.max(1));
        let mut buckets = Vec::with_capacity(count);
        buckets.resize_with(count, || Bucket {
            fifo: Fifo::new(),
            control: Control::new(),
            deficit: 0,
            is_listed: false,
        });
        Self {
            config,
            buckets,
            new: VecDeque::with_capacity(count),
            old: VecDeque::with_capacity(count),
            tally: Tally::default(),
        }
    }

    /// RFC 8290 section 4.1. The packet is let in first; if that is too much, the fattest bucket
    /// pays for it, whosever packet it is.
    pub(super) fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        let limit = arrival.limit;
        self.take_over(arrival.waiting);
        while limit.is_exceeded_by(self.tally) && self.tally.packets > 0 {
            self.drop_from_fattest(fates);
        }
    }

    /// RFC 8290 section 4.2.
    pub(super) fn dequeue(
        &mut self,
        now: Timestamp,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let turns = if is_new { &mut self.new } else { &mut self.old };
            let index = *turns.front()?;
            let bucket = &mut self.buckets[index];
            if bucket.deficit <= 0 {
                bucket.deficit += i128::from(self.config.quantum.as_u64().max(1));
                turns.pop_front();
                self.old.push_back(index);
                continue;
            }
            let mut source = BucketSource {
                fifo: &mut bucket.fifo,
                total: &mut self.tally,
            };
            let codel = &self.config.codel;
            if let Some(waiting) = bucket.control.dequeue(now, codel, &mut source, fates) {
                bucket.deficit -= i128::from(waiting.packet.size.as_u64());
                return Some(waiting);
            }
            turns.pop_front();
            // Straight to idle, a flow that sends single packets would be new for ever and starve
            // the old ones.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                bucket.is_listed = false;
            }
        }
    }

    /// Gives the settings back if they need other buckets.
    pub(super) fn adjust(&mut self, config: FqCoDelConfig) -> Result<(), FqCoDelConfig> {
        if config.buckets != self.config.buckets {
            return Err(config);
        }
        self.config = config;
        Ok(())
    }

    pub(super) fn take_over(&mut self, waiting: Waiting<T>) {
        let index = bucket_of(waiting.packet.flow, self.buckets.len());
        let bucket = &mut self.buckets[index];
        self.tally.add(waiting.packet.size);
        bucket.fifo.push(waiting);
        if !bucket.is_listed {
            bucket.is_listed = true;
            bucket.deficit = i128::from(self.config.quantum.as_u64());
            self.new.push_back(index);
        }
    }

    /// For a queue that is thrown away afterwards: the turns are left as they are.
    pub(super) fn drain_into(&mut self, packets: &mut Vec<Waiting<T>>) {
        for bucket in &mut self.buckets {
            bucket.fifo.drain_into(packets);
        }
        self.tally = Tally::default();
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Drops half of the bytes of the fattest bucket at its head, at least one packet and at most
    /// 64. Of several the one with the lowest number.
    fn drop_from_fattest(&mut self, fates: &mut Fates<'_, T>) {
        // By packets as well, lest an empty bucket look as fat as one of empty packets.
        let fatness = |index: usize| {
            let tally = self.buckets[index].fifo.tally();
            (tally.bytes, tally.packets, usize::MAX - index)
        };
        let listed = self.new.iter().chain(&self.old).copied();
        let Some(fattest) = listed.max_by_key(|index| fatness(*index)) else {
            return;
        };
        let half = fatness(fattest).0.as_u64() / 2;
        let bucket = &mut self.buckets[fattest];
        let mut dropped = Tally::default();
        while let Some(waiting) = bucket.fifo.pop() {
            let size = waiting.packet.size;
            dropped.add(size);
            self.tally.remove(size);
            fates(Fate::Dropped(waiting, QueueDrop::Full));
            if dropped.packets >= OVERLOAD_BATCH || dropped.bytes.as_u64() >= half {
                break;
            }
        }
        bucket.control.on_overload(dropped.packets);
    }
}

/// One bucket as seen by its CoDel.
struct BucketSource<'a, T> {
    fifo: &'a mut Fifo<T>,
    total: &'a mut Tally,
}

impl<T> Source<T> for BucketSource<'_, T> {
    fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.fifo.pop()?;
        self.total.remove(waiting.packet.size);
        Some(waiting)
    }

    fn backlog(&self) -> ByteCount {
        self.total.bytes
    }
}

/// The bucket of a flow: the finalizer of SplitMix64 over its number, scaled to the number of
/// buckets. The same in every run; two flows that share a bucket always do.
pub(super) fn bucket_of(flow: FlowId, buckets: usize) -> usize {
    let mut mixed = u64::from(flow.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let scaled = (u128::from(mixed) * buckets as u128) >> u64::BITS;
    // Below `buckets`, which is a usize.
    usize::try_from(scaled).unwrap_or(0)
}
