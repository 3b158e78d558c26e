//! What waits for the serialiser, and who decides which of it to drop or to mark.
//!
//! ```text
//!                                     Queue
//!  enqueue ->  limits  ->  drop tail   one FIFO, nothing else
//!                          CoDel       one FIFO, drops at the head by time waited
//!                          FQ-CoDel    a FIFO and a CoDel per bucket of flows, served in turns
//!                          PIE         one FIFO, drops at the tail by a controlled probability
//!                          RED         one FIFO, drops at the tail by the average length
//!                          DualPI2     two FIFOs, L4S and classic, coupled    -> dequeue
//!                  |                            |
//!                  v                            v
//!            Fate::Dropped Full          Fate::Dropped Aqm, Fate::Marked
//! ```
//!
//! Laws that hold for every discipline:
//!
//! * what came in = what went out + what was dropped + what waits, in packets and bytes;
//! * after an arrival the limits are kept, unless a change lowered them below what waits: then no
//!   packet gets in until they are (with FQ-CoDel, the next arrival makes the fattest bucket pay);
//!   the packet being serialised is not here and does not count;
//! * a packet is marked at most once, never both marked and dropped by one discipline, and marked
//!   only if its ECN field allows it; CE is never taken back;
//! * the packets of one flow and one ECN class leave in the order they came;
//! * nothing is computed in floating point: time is in nanoseconds, probabilities are multiples of
//!   2^-60 (see `probability.rs`), so every build and platform decides alike;
//! * the periodic updates of PIE and DualPI2 need no timer. Between two calls nothing changes but
//!   the time, so each call first makes up for the updates that were due before it, each with the
//!   delay as it was at its own instant.
//!
//! Read `drop_tail.rs` first, then `codel.rs`.

mod codel;
mod drop_tail;
mod dual_pi2;
mod fifo;
mod fq_codel;
mod pi;
mod pie;
mod probability;
mod red;
#[cfg(test)]
mod tests;

use units::{ByteCount, Rate, Timestamp};

use self::codel::CoDel;
use self::drop_tail::DropTail;
use self::dual_pi2::DualPi2;
use self::fq_codel::FqCoDel;
use self::pie::Pie;
use self::red::Red;
use crate::counters::Tally;
use crate::packet::{Ecn, FlowId, Waiting};
use crate::random::RandomStream;

pub use self::codel::CoDelConfig;
pub use self::dual_pi2::DualPi2Config;
pub use self::fq_codel::FqCoDelConfig;
pub use self::pi::Gain;
pub use self::pie::PieConfig;
pub use self::red::RedConfig;

/// A queue: how much may wait, and who decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// What may wait.
    pub limit: QueueLimits,
    /// Who decides.
    pub discipline: Discipline,
}

impl QueueConfig {
    /// Whether the settings make sense, alone and together.
    ///
    /// # Errors
    ///
    /// What is wrong and what is allowed, in one line.
    pub fn check(&self) -> Result<(), &'static str> {
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::CoDel(config) => config.check(),
            Discipline::FqCoDel(config) => config.check(),
            Discipline::Pie(config) => config.check(),
            Discipline::Red(config) => config.check(self.limit),
            Discipline::DualPi2(config) => config.check(),
        }
    }
}

impl Default for QueueConfig {
    /// Drop-tail without a limit.
    fn default() -> Self {
        Self {
            limit: QueueLimits::NONE,
            discipline: Discipline::DropTail,
        }
    }
}

/// What may wait. The packet being serialised never counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Bytes on the wire; [`ByteCount::MAX`] for no limit.
    pub bytes: ByteCount,
    /// Packets; [`u64::MAX`] for no limit.
    pub packets: u64,
}

impl QueueLimits {
    /// No limit.
    pub const NONE: Self = Self {
        bytes: ByteCount::MAX,
        packets: u64::MAX,
    };

    /// A limit in bytes only.
    #[must_use]
    pub const fn bytes(bytes: ByteCount) -> Self {
        Self {
            bytes,
            packets: u64::MAX,
        }
    }

    /// A limit in packets only.
    #[must_use]
    pub const fn packets(packets: u64) -> Self {
        Self {
            bytes: ByteCount::MAX,
            packets,
        }
    }

    /// Whether one more packet fits as a whole.
    fn has_room(self, waiting: Tally, size: ByteCount) -> bool {
        waiting.packets < self.packets && waiting.bytes + size <= self.bytes
    }

    fn is_exceeded_by(self, waiting: Tally) -> bool {
        waiting.packets > self.packets || waiting.bytes > self.bytes
    }
}

/// Who decides what to drop, what to mark and what leaves next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    DropTail,
    /// Controlled delay: RFC 8289.
    CoDel(CoDelConfig),
    /// Fair queueing with a CoDel per flow: RFC 8290.
    FqCoDel(FqCoDelConfig),
    /// Proportional integral controller, enhanced: RFC 8033.
    Pie(PieConfig),
    /// Random early detection: RFC 2309, Floyd and Jacobson 1993.
    Red(RedConfig),
    /// Dual queue, coupled: RFC 9332.
    DualPi2(DualPi2Config),
}

impl Discipline {
    /// The limits each discipline has in Linux when none are given: 10,240 packets and 32 MiB for
    /// FQ-CoDel, 10,000 packets for DualPI2, 1,000 packets for CoDel and PIE. Drop-tail and RED
    /// have none that would make sense on every link.
    #[must_use]
    pub const fn usual_limits(&self) -> QueueLimits {
        match self {
            Self::DropTail | Self::Red(_) => QueueLimits::NONE,
            Self::CoDel(_) | Self::Pie(_) => QueueLimits::packets(1_000),
            Self::FqCoDel(_) => QueueLimits {
                bytes: ByteCount::mib(32),
                packets: 10_240,
            },
            Self::DualPi2(_) => QueueLimits::packets(10_000),
        }
    }
}

/// Why a queue dropped a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum QueueDrop {
    /// The limit was reached.
    Full,
    /// The discipline wanted the sender to slow down.
    Aqm,
}

/// What became of a packet inside a queue, other than that it waits or has left.
#[derive(Clone, Debug)]
pub(crate) enum Fate<T> {
    /// It was dropped: the packet that is just arriving or one that waited.
    Dropped(Waiting<T>, QueueDrop),
    /// Its ECN field was set to CE. It goes on to wait or is just leaving.
    Marked {
        #[cfg_attr(not(test), expect(dead_code, reason = "tests tell flows apart"))]
        flow: FlowId,
        size: ByteCount,
    },
}

/// Who is told about every [`Fate`] the moment it happens.
pub(crate) type Fates<'a, T> = dyn FnMut(Fate<T>) + 'a;

/// The packets that wait for the serialiser.
///
/// Memory is allocated when the queue is made and when more packets wait than ever before, in all
/// or, with FQ-CoDel, in one bucket; not for each packet.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    limit: QueueLimits,
    policy: Policy<T>,
    random: RandomStream,
}

impl<T> Queue<T> {
    /// An empty queue at the beginning of a run. `random` is a stream of its own; each packet takes
    /// a fixed number of draws from it whatever the settings (PIE and RED one at its arrival,
    /// DualPI2 one when it leaves), the other disciplines take none.
    pub(crate) fn new(config: QueueConfig, random: RandomStream) -> Self {
        Self {
            limit: config.limit,
            policy: Policy::new(config.discipline, Timestamp::ZERO),
            random,
        }
    }

    /// Takes a packet in, if the limits and the discipline let it. May drop it or others, may mark
    /// it. `rate` is that of the serialiser now.
    pub(crate) fn enqueue(
        &mut self,
        now: Timestamp,
        waiting: Waiting<T>,
        rate: Rate,
        fates: &mut Fates<'_, T>,
    ) {
        let arrival = Arrival {
            now,
            waiting,
            limit: self.limit,
            rate,
            random: &mut self.random,
        };
        self.policy.enqueue(arrival, fates);
    }

    /// Takes a packet past a free serialiser: in and out again at once. No limit refuses it, since
    /// the packet in service does not count, but the discipline sees it and may drop or mark it.
    ///
    /// For an empty queue; if something waits, that leaves first.
    pub(crate) fn pass(
        &mut self,
        now: Timestamp,
        waiting: Waiting<T>,
        rate: Rate,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        let arrival = Arrival {
            now,
            waiting,
            limit: QueueLimits::NONE,
            rate,
            random: &mut self.random,
        };
        self.policy.enqueue(arrival, fates);
        self.dequeue(now, fates)
    }

    /// The packet the serialiser gets now; `None` if nothing waits, or if the discipline has just
    /// dropped all that did.
    pub(crate) fn dequeue(
        &mut self,
        now: Timestamp,
        fates: &mut Fates<'_, T>,
    ) -> Option<Waiting<T>> {
        match &mut self.policy {
            Policy::DropTail(queue) => queue.dequeue(),
            Policy::CoDel(queue) => queue.dequeue(now, fates),
            Policy::FqCoDel(queue) => queue.dequeue(now, fates),
            Policy::Pie(queue) => queue.dequeue(now),
            Policy::Red(queue) => queue.dequeue(now),
            Policy::DualPi2(queue) => queue.dequeue(now, &mut self.random, fates),
        }
    }

    /// Puts new settings in force. What waits stays, even if it is more than the new limits allow.
    /// A discipline that only changes its parameters keeps its state; another one starts afresh
    /// and takes the packets over in the order they arrived.
    pub(crate) fn reconfigure(&mut self, now: Timestamp, config: QueueConfig) {
        self.limit = config.limit;
        if let Err(discipline) = self.policy.adjust(now, config.discipline) {
            let mut next = Policy::new(discipline, now);
            for waiting in self.policy.drain() {
                next.take_over(waiting);
            }
            self.policy = next;
        }
    }

    /// What waits.
    pub(crate) fn tally(&self) -> Tally {
        match &self.policy {
            Policy::DropTail(queue) => queue.tally(),
            Policy::CoDel(queue) => queue.tally(),
            Policy::FqCoDel(queue) => queue.tally(),
            Policy::Pie(queue) => queue.tally(),
            Policy::Red(queue) => queue.tally(),
            Policy::DualPi2(queue) => queue.tally(),
        }
    }
}

/// A packet at the door, and what the discipline may need to know to decide about it.
struct Arrival<'a, T> {
    now: Timestamp,
    waiting: Waiting<T>,
    limit: QueueLimits,
    rate: Rate,
    random: &'a mut RandomStream,
}

impl<T> Arrival<'_, T> {
    fn size(&self) -> ByteCount {
        self.waiting.packet.size
    }

    fn has_room(&self, waiting: Tally) -> bool {
        self.limit.has_room(waiting, self.size())
    }
}

#[derive(Clone, Debug)]
enum Policy<T> {
    DropTail(DropTail<T>),
    CoDel(CoDel<T>),
    FqCoDel(FqCoDel<T>),
    Pie(Pie<T>),
    Red(Red<T>),
    DualPi2(DualPi2<T>),
}

impl<T> Policy<T> {
    fn new(discipline: Discipline, now: Timestamp) -> Self {
        match discipline {
            Discipline::DropTail => Self::DropTail(DropTail::new()),
            Discipline::CoDel(config) => Self::CoDel(CoDel::new(config)),
            Discipline::FqCoDel(config) => Self::FqCoDel(FqCoDel::new(config)),
            Discipline::Pie(config) => Self::Pie(Pie::new(config, now)),
            Discipline::Red(config) => Self::Red(Red::new(config, now)),
            Discipline::DualPi2(config) => Self::DualPi2(DualPi2::new(config, now)),
        }
    }

    fn enqueue(&mut self, arrival: Arrival<'_, T>, fates: &mut Fates<'_, T>) {
        match self {
            Self::DropTail(queue) => queue.enqueue(arrival, fates),
            Self::CoDel(queue) => queue.enqueue(arrival, fates),
            Self::FqCoDel(queue) => queue.enqueue(arrival, fates),
            Self::Pie(queue) => queue.enqueue(arrival, fates),
            Self::Red(queue) => queue.enqueue(arrival, fates),
            Self::DualPi2(queue) => queue.enqueue(arrival, fates),
        }
    }

    /// Takes new parameters in place; gives the discipline back if it takes another policy.
    fn adjust(&mut self, now: Timestamp, discipline: Discipline) -> Result<(), Discipline> {
        match (self, discipline) {
            (Self::DropTail(_), Discipline::DropTail) => Ok(()),
            (Self::CoDel(queue), Discipline::CoDel(config)) => {
                queue.adjust(config);
                Ok(())
            }
            (Self::FqCoDel(queue), Discipline::FqCoDel(config)) => {
                queue.adjust(config).map_err(Discipline::FqCoDel)
            }
            (Self::Pie(queue), Discipline::Pie(config)) => {
                queue.adjust(now, config);
                Ok(())
            }
            (Self::Red(queue), Discipline::Red(config)) => {
                queue.adjust(config);
                Ok(())
            }
            (Self::DualPi2(queue), Discipline::DualPi2(config)) => {
                queue.adjust(now, config);
                Ok(())
            }
            (_, discipline) => Err(discipline),
        }
    }

    /// Takes in a packet that has been let in before.
    fn take_over(&mut self, waiting: Waiting<T>) {
        match self {
            Self::DropTail(queue) => queue.take_over(waiting),
            Self::CoDel(queue) => queue.take_over(waiting),
            Self::FqCoDel(queue) => queue.take_over(waiting),
            Self::Pie(queue) => queue.take_over(waiting),
            Self::Red(queue) => queue.take_over(waiting),
            Self::DualPi2(queue) => queue.take_over(waiting),
        }
    }

    /// Everything that waits, in order of arrival; the queue is empty afterwards. Packets of
    /// different buckets or classes that arrived at one instant may change places.
    fn drain(&mut self) -> Vec<Waiting<T>> {
        let mut packets = Vec::new();
        match self {
            Self::DropTail(queue) => queue.drain_into(&mut packets),
            Self::CoDel(queue) => queue.drain_into(&mut packets),
            Self::FqCoDel(queue) => queue.drain_into(&mut packets),
            Self::Pie(queue) => queue.drain_into(&mut packets),
            Self::Red(queue) => queue.drain_into(&mut packets),
            Self::DualPi2(queue) => queue.drain_into(&mut packets),
        }
        packets.sort_by_key(|waiting| waiting.arrived_at);
        packets
    }
}

/// Sets CE if the sender allows it, and tells so. A packet that came with CE keeps it, which is
/// signal enough.
fn mark<T>(waiting: &mut Waiting<T>, fates: &mut Fates<'_, T>) -> bool {
    let packet = &mut waiting.packet;
    match packet.ecn {
        Ecn::NotEct => false,
        Ecn::Ce => true,
        Ecn::Ect0 | Ecn::Ect1 => {
            packet.ecn = Ecn::Ce;
            fates(Fate::Marked {
                flow: packet.flow,
                size: packet.size,
            });
            true
        }
    }
}
