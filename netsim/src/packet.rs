//! What travels.

use std::ops::BitOr;

use units::{ByteCount, Timestamp};

use crate::gilbert_elliott::BurstLuck;
use crate::mishap::MishapLuck;
use crate::random::{Luck, RandomStream, RandomStreams};

/// A packet on its way through a pipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<T> {
    /// Bytes on the wire, IP header included.
    pub size: ByteCount,
    /// Which flow it belongs to, for queues that tell flows apart.
    pub flow: FlowId,
    /// The ECN field of its IP header (RFC 3168 section 5).
    pub ecn: Ecn,
    /// What the sender says about it, for scripted losses.
    pub labels: Labels,
    /// Whether the wire has damaged it; the receiver will not be able to make sense of it.
    pub is_corrupt: bool,
    /// What the caller wants to have back at the other end.
    pub payload: T,
}

impl<T> Packet<T> {
    /// A packet of the first flow, without ECN.
    pub const fn new(size: ByteCount, payload: T) -> Self {
        Self {
            size,
            flow: FlowId(0),
            ecn: Ecn::NotEct,
            labels: Labels(0),
            is_corrupt: false,
            payload,
        }
    }
}

/// Names a flow on a link.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FlowId(pub u32);

/// Properties of a packet, one bit each. What they mean is up to the caller.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Labels(pub u64);

impl Labels {
    /// Whether the two have one in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Labels {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The ECN field: RFC 3168 section 5, RFC 9331.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Ecn {
    /// The sender does not do ECN.
    #[default]
    NotEct,
    /// It does, and takes a mark for a loss.
    Ect0,
    /// It does, and wants frequent marks (L4S).
    Ect1,
    /// Congestion was experienced. Never taken back.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) packet: Packet<T>,
    pub(crate) arrived_at: Timestamp,
    pub(crate) fortune: Fortune,
}

/// What chance has in store for a packet, drawn when it arrives, whatever the settings.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Fortune {
    pub(crate) loss: Luck,
    pub(crate) burst: BurstLuck,
    pub(crate) mishap: MishapLuck,
}

/// Where fortunes come from: one stream for each kind of chance.
#[derive(Clone, Debug)]
pub(crate) struct Fortunes {
    loss: RandomStream,
    burst: RandomStream,
    mishap: RandomStream,
}

impl Fortunes {
    /// The streams "`name`.loss", "`name`.burst" and "`name`.mishap".
    pub(crate) fn new(streams: &RandomStreams, name: &str) -> Self {
        let stream = |kind| streams.stream(&format!("{name}.{kind}"));
        Self {
            loss: stream("loss"),
            burst: stream("burst"),
            mishap: stream("mishap"),
        }
    }

    pub(crate) fn draw(&mut self) -> Fortune {
        Fortune {
            loss: self.loss.luck(),
            burst: BurstLuck::draw(&mut self.burst),
            mishap: MishapLuck::draw(&mut self.mishap),
        }
    }
}
