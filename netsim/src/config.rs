//! What can be set on a pipe, and what can change while it runs.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::gilbert_elliott::BurstLoss;
use crate::jitter::Jitter;
use crate::mishap::Mishaps;
use crate::packet::Labels;
use crate::policer::Policer;
use crate::queue::{Discipline, QueueConfig, QueueLimits};
use crate::shaper::Shaper;
use crate::slots::Slots;
use crate::thinning::Thinning;
use crate::trace::Trace;
use units::{ByteCount, Fraction, Rate, Timestamp, format_duration};

/// The settings of a pipe. The default is an ideal wire: no delay, no limit, no loss.
#[derive(Clone, PartialEq, Debug)]
pub struct PipeConfig {
    /// Packets larger than this are dropped on arrival.
    pub largest_packet: ByteCount,
    /// Whether of many small packets in a row only some are let through.
    pub thinning: Option<Thinning>,
    /// A token bucket that drops what does not conform.
    pub policer: Option<Policer>,
    /// A token bucket that what does not conform waits for, ahead of the serialiser.
    pub shaper: Option<Shaper>,
    /// Rate of the serialiser. [`Rate::ZERO`] stands still until a [`Change::Rate`] raises it;
    /// [`Rate::INFINITE`] passes everything at once.
    pub rate: Rate,
    /// Instead of a rate: when which slot leaves. A [`Change::Rate`] ends it.
    pub trace: Option<Trace>,
    /// Propagation delay, at most [`PipeConfig::LONGEST_DELAY`].
    pub delay: Duration,
    /// What is added to the delay of each packet.
    pub jitter: Option<Jitter>,
    /// What packets are released at, behind the delay.
    pub slots: Option<Slots>,
    /// What may wait in the queue. Neither the packet being serialised nor what propagates counts.
    pub queue: ByteCount,
    /// How many packets may wait in it, besides.
    pub queue_packets: u64,
    /// Who decides what to drop or mark in it.
    pub discipline: Discipline,
    /// Probability that a packet is lost, each independently of all others.
    pub loss: Fraction,
    /// Loss that comes in bursts, besides.
    pub burst_loss: Option<BurstLoss>,
    /// Where `loss` and `burst_loss` strike.
    pub loss_place: LossPlace,
    /// Shares of packets that are late, doubled or damaged.
    pub mishaps: Mishaps,
    /// Arrivals to drop, counted from 1. Order and repetitions do not matter.
    pub drop_packets: Vec<u64>,
    /// Large packets to drop one at a time. Each rule keeps its own count; a packet that several of
    /// them claim is counted by the first.
    pub drop_spaced: Vec<SpacedDrops>,
}

/// Drops the first packet of a size and kind whenever a time has passed since it last did so.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SpacedDrops {
    /// How many packets to drop in all.
    pub count: u64,
    /// How long each drop keeps away the next.
    pub gap: Duration,
    /// Smaller packets are let through. Bytes on the wire, IP header included.
    pub at_least: ByteCount,
    /// A packet is meant if it has a label in common with each of these that is not empty.
    pub wants: [Labels; 3],
    /// How many packets of those meant to let through before the first drop.
    pub skip: u64,
}

impl PipeConfig {
    /// The longest propagation delay that is accepted: one hour.
    pub const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

    /// Whether every setting is in its range; `pipe` is the name in the message.
    ///
    /// # Errors
    ///
    /// The first that is not.
    pub fn check(&self, pipe: &str) -> Result<(), ConfigError> {
        check_delay(pipe, self.delay)?;
        if self.drop_packets.contains(&0) {
            return Err(ConfigError::DropPacketZero {
                pipe: pipe.to_owned(),
            });
        }
        self.check_stages().map_err(|problem| ConfigError::Setting {
            pipe: pipe.to_owned(),
            problem,
        })
    }

    fn check_stages(&self) -> Result<(), String> {
        self.thinning.as_ref().map_or(Ok(()), Thinning::check)?;
        self.policer.as_ref().map_or(Ok(()), Policer::check)?;
        self.shaper.as_ref().map_or(Ok(()), Shaper::check)?;
        self.jitter.as_ref().map_or(Ok(()), Jitter::check)?;
        self.slots.as_ref().map_or(Ok(()), Slots::check)?;
        self.burst_loss.as_ref().map_or(Ok(()), BurstLoss::check)?;
        self.mishaps.check()?;
        self.queue_config()
            .check()
            .map_err(|problem| format!("queue: {problem}"))
    }

    pub(crate) fn queue_config(&self) -> QueueConfig {
        QueueConfig {
            limit: QueueLimits {
                bytes: self.queue,
                packets: self.queue_packets,
            },
            discipline: self.discipline,
        }
    }

    pub(crate) fn jitter_or_none(&self) -> Jitter {
        self.jitter.unwrap_or(Jitter::Walk {
            amplitude: Duration::ZERO,
        })
    }

    /// The same settings after a change. An order to drop packets is no setting.
    #[must_use]
    pub fn with(mut self, change: Change) -> Self {
        self.set(change);
        self
    }

    /// The change that would bring the setting of the same kind as `like` to what it is here; `None` for what is no
    /// setting but an order.
    #[must_use]
    pub fn setting(&self, like: &Change) -> Option<Change> {
        Some(match like {
            Change::Rate(_) => Change::Rate(self.rate),
            Change::Delay(_) => Change::Delay(self.delay),
            Change::Jitter(_) => Change::Jitter(self.jitter),
            Change::Slots(_) => Change::Slots(self.slots),
            Change::Queue(_) => Change::Queue(self.queue),
            Change::QueuePackets(_) => Change::QueuePackets(self.queue_packets),
            Change::Discipline(_) => Change::Discipline(self.discipline),
            Change::Loss(_) => Change::Loss(self.loss),
            Change::BurstLoss(_) => Change::BurstLoss(self.burst_loss),
            Change::LossPlace(_) => Change::LossPlace(self.loss_place),
            Change::Mishaps(_) => Change::Mishaps(self.mishaps),
            Change::Thinning(_) => Change::Thinning(self.thinning),
            Change::Policer(_) => Change::Policer(self.policer),
            Change::Shaper(_) => Change::Shaper(self.shaper),
            Change::LargestPacket(_) => Change::LargestPacket(self.largest_packet),
            Change::DropNext(_) => return None,
        })
    }

    /// Writes a change down.
    pub(crate) fn set(&mut self, change: Change) {
        match change {
            Change::Rate(rate) => {
                self.rate = rate;
                self.trace = None;
            }
            Change::Delay(delay) => self.delay = delay,
            Change::Jitter(jitter) => self.jitter = jitter,
            Change::Slots(slots) => self.slots = slots,
            Change::Queue(limit) => self.queue = limit,
            Change::QueuePackets(limit) => self.queue_packets = limit,
            Change::Discipline(discipline) => self.discipline = discipline,
            Change::Loss(loss) => self.loss = loss,
            Change::BurstLoss(bursts) => self.burst_loss = bursts,
            Change::LossPlace(place) => self.loss_place = place,
            Change::Mishaps(mishaps) => self.mishaps = mishaps,
            Change::Thinning(thinning) => self.thinning = thinning,
            Change::Policer(policer) => self.policer = policer,
            Change::Shaper(shaper) => self.shaper = shaper,
            Change::LargestPacket(size) => self.largest_packet = size,
            Change::DropNext(_) => {}
        }
    }
}

impl Default for PipeConfig {
    fn default() -> Self {
        Self {
            largest_packet: ByteCount::MAX,
            thinning: None,
            policer: None,
            shaper: None,
            rate: Rate::INFINITE,
            trace: None,
            delay: Duration::ZERO,
            jitter: None,
            slots: None,
            queue: ByteCount::MAX,
            queue_packets: u64::MAX,
            discipline: Discipline::DropTail,
            loss: Fraction::ZERO,
            burst_loss: None,
            loss_place: LossPlace::default(),
            mishaps: Mishaps::default(),
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
    /// Another jitter, or none, for packets that leave the serialiser from now on.
    Jitter(Option<Jitter>),
    /// Other slots, or none. Packets keep the slots they have taken.
    Slots(Option<Slots>),
    /// A new queue limit for packets that arrive from now on. What already waits stays.
    Queue(ByteCount),
    /// The same in packets.
    QueuePackets(u64),
    /// Another discipline, or other parameters. What waits stays, in the order it arrived.
    Discipline(Discipline),
    /// A new loss probability for packets that reach the place of loss from now on.
    Loss(Fraction),
    /// Other bursts of loss, or none.
    BurstLoss(Option<BurstLoss>),
    /// A new place of loss. A packet that waits in the queue meanwhile is subject to the place that
    /// is in force when it gets there: to none if the place moves from behind it ahead of it.
    LossPlace(LossPlace),
    /// Other shares of packets that are late, doubled or damaged, from those on that leave the serialiser next.
    Mishaps(Mishaps),
    /// Another thinning, or none, which lets go of what is held.
    Thinning(Option<Thinning>),
    /// Another policer, or none. A new one begins with a full bucket.
    Policer(Option<Policer>),
    /// Another shaper, or none. A new one begins with a full bucket.
    Shaper(Option<Shaper>),
    /// Another largest packet.
    LargestPacket(ByteCount),
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
            other => {
                // RED looks at the limit too, which another change may set before this one: only what it says itself
                // is checked.
                let mut config = PipeConfig {
                    queue: ByteCount::new(1_000_000),
                    ..PipeConfig::default()
                };
                config.set(other);
                config.check(pipe)
            }
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
    /// A stage refuses its settings.
    Setting {
        /// Name of the pipe.
        pipe: String,
        /// Which, and why.
        problem: String,
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
            Self::Setting { pipe, problem } => write!(f, "pipe {pipe:?}: {problem}"),
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
