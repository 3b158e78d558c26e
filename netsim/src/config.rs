//! What can be set on a pipe, and what can change while it runs.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use units::{ByteCount, Fraction, Rate, Timestamp, format_duration};

/// The settings of a pipe. The default is an ideal wire: no delay, no limit, no loss.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipeConfig {
    /// Rate of the serialiser. [`Rate::ZERO`] stands still until a [`Change::Rate`] raises it;
    /// [`Rate::INFINITE`] passes everything at once.
    pub rate: Rate,
    /// Propagation delay, at most [`PipeConfig::LONGEST_DELAY`].
    pub delay: Duration,
    /// What may wait in the queue. Neither the packet being serialised nor what propagates counts.
    pub queue: ByteCount,
    /// Probability that a packet is lost, each independently of all others.
    pub loss: Fraction,
    /// Where `loss` strikes.
    pub loss_place: LossPlace,
    /// Arrivals to drop, counted from 1. Order and repetitions do not matter.
    pub drop_packets: Vec<u64>,
    /// Large packets to drop one at a time. Each rule keeps its own count; a packet that several of
    /// them claim is counted by the first.
    pub drop_spaced: Vec<SpacedDrops>,
}

/// Drops the first packet of a size whenever a time has passed since it last did so.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SpacedDrops {
    /// How many packets to drop in all.
    pub count: u64,
    /// How long each drop keeps away the next.
    pub gap: Duration,
    /// Smaller packets are let through. Bytes on the wire, IP header included.
    pub at_least: ByteCount,
    /// How many packets of that size to let through before the first drop.
    pub skip: u64,
}

impl PipeConfig {
    /// The longest propagation delay that is accepted: one hour.
    pub const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

    pub(crate) fn check(&self, pipe: &str) -> Result<(), ConfigError> {
        check_delay(pipe, self.delay)?;
        if self.drop_packets.contains(&0) {
            return Err(ConfigError::DropPacketZero {
                pipe: pipe.to_owned(),
            });
        }
        Ok(())
    }
}

impl Default for PipeConfig {
    fn default() -> Self {
        Self {
            rate: Rate::INFINITE,
            delay: Duration::ZERO,
            queue: ByteCount::MAX,
            loss: Fraction::ZERO,
            loss_place: LossPlace::default(),
            drop_packets: Vec::new(),
            drop_spaced: Vec::new(),
        }
    }
}

/// Where random loss strikes.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum LossPlace {
    /// At arrival: a lost packet neither waits nor uses link time. Removes a share of the *load*.
    BeforeQueue,
    /// On the wire, after serialisation: a lost packet has used link time. Removes a share of the
    /// *output*.
    #[default]
    AfterQueue,
}

/// A change of one setting at one instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A new rate, from the next packet to be serialised on. A packet already in the serialiser
    /// ends at the old one.
    Rate(Rate),
    /// A new propagation delay for packets that leave the serialiser from now on. A shorter one
    /// does not let them overtake those before them.
    Delay(Duration),
    /// A new queue limit for packets that arrive from now on. What already waits stays.
    Queue(ByteCount),
    /// A new loss probability for packets that reach the place of loss from now on.
    Loss(Fraction),
    /// A new place of loss. A packet that waits in the queue meanwhile is subject to the place that
    /// is in force when it gets there: to none if the place moves from behind it ahead of it.
    LossPlace(LossPlace),
    /// Drop so many of the arrivals that follow, in addition to those an earlier one still has to
    /// take.
    DropNext(u64),
}

impl Change {
    pub(crate) fn check(self, pipe: &str) -> Result<(), ConfigError> {
        match self {
            Self::Delay(delay) => check_delay(pipe, delay),
            Self::DropNext(0) => Err(ConfigError::DropNextZero {
                pipe: pipe.to_owned(),
            }),
            Self::Rate(_)
            | Self::Queue(_)
            | Self::Loss(_)
            | Self::LossPlace(_)
            | Self::DropNext(_) => Ok(()),
        }
    }
}

fn check_delay(pipe: &str, delay: Duration) -> Result<(), ConfigError> {
    if delay <= PipeConfig::LONGEST_DELAY {
        Ok(())
    } else {
        Err(ConfigError::DelayTooLong {
            pipe: pipe.to_owned(),
            delay,
        })
    }
}

/// A setting or a change that a pipe does not accept. The fault is with whoever wrote the
/// configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A delay beyond [`PipeConfig::LONGEST_DELAY`].
    DelayTooLong {
        /// Name of the pipe.
        pipe: String,
        /// What was asked for.
        delay: Duration,
    },
    /// Packet 0 is to be dropped.
    DropPacketZero {
        /// Name of the pipe.
        pipe: String,
    },
    /// The next 0 packets are to be dropped.
    DropNextZero {
        /// Name of the pipe.
        pipe: String,
    },
    /// A change is to happen before the present.
    ChangeInThePast {
        /// Name of the pipe.
        pipe: String,
        /// When it was to happen.
        at: Timestamp,
        /// The present.
        now: Timestamp,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DelayTooLong { pipe, delay } => {
                let longest = format_duration(PipeConfig::LONGEST_DELAY);
                write!(
                    f,
                    "pipe {pipe:?}: delay {} is too long, at most {longest}",
                    format_duration(*delay)
                )
            }
            Self::DropPacketZero { pipe } => {
                write!(
                    f,
                    "pipe {pipe:?}: there is no packet 0 to drop, the first is 1"
                )
            }
            Self::DropNextZero { pipe } => {
                write!(
                    f,
                    "pipe {pipe:?}: dropping the next 0 packets does nothing, at least 1"
                )
            }
            Self::ChangeInThePast { pipe, at, now } => {
                write!(
                    f,
                    "pipe {pipe:?}: a change at {at} is in the past, at least {now}"
                )
            }
        }
    }
}

impl Error for ConfigError {}
