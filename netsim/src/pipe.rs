//! One direction of a link.
//!
//! The order of the stages follows `lib.rs`. A packet draws its luck once, at arrival, whatever the
//! loss probability and whatever else happens to it; the place of loss, before or after the queue,
//! only reads it. So the n-th arrival of a run has the same luck with and without a script, with a
//! long and a short queue, with 0 % and 30 %.

use std::collections::VecDeque;

use units::{Rate, Timestamp};

use crate::config::{Change, ConfigError, LossPlace, PipeConfig};
use crate::counters::{Counters, DropCause};
use crate::event_heap::EventHeap;
use crate::output::OutputRecord;
use crate::packet::{Packet, Waiting};
use crate::random::{Luck, RandomStream, RandomStreams};
use crate::script::DropScript;
use crate::serialiser::Serialiser;

/// One direction of a link: scripted and random loss, a byte-limited drop-tail queue, a serialiser,
/// propagation.
///
/// Memory is allocated when the pipe is made, when more packets are inside than ever before, and
/// for each 10 ms of output recorded; not for each packet.
#[derive(Clone, Debug)]
pub struct Pipe<T> {
    name: String,
    /// The settings in force now.
    config: PipeConfig,
    changes: EventHeap<Change>,
    script: DropScript,
    loss: RandomStream,
    /// Waiting, in order of arrival.
    queue: VecDeque<Waiting<T>>,
    serialiser: Serialiser,
    in_service: Option<InService<T>>,
    /// Propagating, in order; delivery times never descend.
    propagating: VecDeque<Propagating<T>>,
    /// The latest delivery time given out; nothing is delivered before it any more.
    last_delivery_at: Timestamp,
    /// The latest instant the caller has named.
    now: Timestamp,
    counters: Counters,
    output: OutputRecord,
}

impl<T> Pipe<T> {
    /// A pipe at the beginning of a run. Its random loss draws from the stream "`name`.loss".
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the delay is longer than [`PipeConfig::LONGEST_DELAY`] or packet 0 is to
    /// be dropped.
    pub fn new(
        config: PipeConfig,
        streams: &RandomStreams,
        name: &str,
    ) -> Result<Self, ConfigError> {
        config.check(name)?;
        Ok(Self {
            name: name.to_owned(),
            changes: EventHeap::new(),
            script: DropScript::new(&config.drop_packets, &config.drop_spaced),
            loss: streams.stream(&format!("{name}.loss")),
            queue: VecDeque::new(),
            serialiser: Serialiser::new(),
            in_service: None,
            propagating: VecDeque::new(),
            last_delivery_at: Timestamp::ZERO,
            now: Timestamp::ZERO,
            counters: Counters::default(),
            output: OutputRecord::new(config.rate),
            config,
        })
    }

    /// Lets a change happen at `at`, before any packet that arrives or leaves the serialiser at
    /// that instant. Changes at one instant happen in the order they were scheduled.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if `at` is in the past or the new value is out of range.
    pub fn schedule(&mut self, at: Timestamp, change: Change) -> Result<(), ConfigError> {
        change.check(&self.name)?;
        if at < self.now {
            return Err(ConfigError::ChangeInThePast {
                pipe: self.name.clone(),
                at,
                now: self.now,
            });
        }
        self.changes.push(at, change);
        Ok(())
    }

    /// Takes a packet in at `now`.
    ///
    /// The caller has advanced the pipe to `now` first; if not, the packet still meets the queue as
    /// it is at `now`, and what is due is delivered, with its true time, at the next advance. Time
    /// does not run backwards: a `now` before an earlier one counts as that.
    pub fn arrive(&mut self, now: Timestamp, packet: Packet<T>) {
        self.now = self.now.max(now);
        let now = self.now;
        self.run_inside(now);

        let size = packet.size;
        self.counters.offered.add(size);
        let luck = self.loss.luck();
        if self.script.takes(now, self.counters.offered.packets, size) {
            self.counters.on_dropped(now, size, DropCause::Scripted);
        } else if self.is_lost(LossPlace::BeforeQueue, luck) {
            self.counters.on_dropped(now, size, DropCause::LossBefore);
        } else {
            self.enqueue(Waiting {
                packet,
                arrived_at: now,
                luck,
            });
        }
        // At an infinite rate the packet has already left the serialiser.
        self.run_inside(now);
    }

    /// Runs everything due at or before `now`, in the order of time, and hands each packet that
    /// reaches the end to `deliver` with the instant it does so.
    ///
    /// One long step gives the same packets at the same times as many short ones.
    pub fn advance(&mut self, now: Timestamp, deliver: &mut dyn FnMut(Timestamp, Packet<T>)) {
        self.now = self.now.max(now);
        let now = self.now;
        loop {
            let inside = self.next_inside();
            match self.propagating.front() {
                Some(first)
                    if first.deliver_at <= now
                        && inside.is_none_or(|(at, _)| first.deliver_at < at) =>
                {
                    if let Some(Propagating { deliver_at, packet }) = self.propagating.pop_front() {
                        self.counters.on_delivered(deliver_at, packet.size);
                        deliver(deliver_at, packet);
                    }
                }
                _ => match inside {
                    Some((at, event)) if at <= now => self.run(at, event),
                    _ => return,
                },
            }
        }
    }

    /// When something happens next if no packet arrives: a change, the end of a serialisation, a
    /// delivery. `None` if nothing ever will.
    #[must_use]
    pub fn next_event(&self) -> Option<Timestamp> {
        let inside = self.next_inside().map(|(at, _)| at);
        let delivery = self.propagating.front().map(|first| first.deliver_at);
        inside.into_iter().chain(delivery).min()
    }

    /// When [`Self::advance`] next has something to deliver, at the earliest, if no packet arrives.
    ///
    /// Not before the packet that propagates first, since packets never overtake each other; so a
    /// caller that only waits for deliveries may sleep over what happens inside, which the next
    /// arrival or advance makes up for in its own time. `None` if nothing will come out.
    #[must_use]
    pub fn next_delivery(&self) -> Option<Timestamp> {
        match self.propagating.front() {
            Some(first) => Some(first.deliver_at),
            None => self.next_inside().map(|(at, _)| at),
        }
    }

    /// What the pipe has counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The settings in force now, after the changes so far.
    #[must_use]
    pub fn config(&self) -> &PipeConfig {
        &self.config
    }

    /// The bytes that left the serialiser over time, from which utilisation follows.
    #[must_use]
    pub fn output(&self) -> &OutputRecord {
        &self.output
    }

    /// The name given at creation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next event that does not need the caller, changes first if two are due at once.
    fn next_inside(&self) -> Option<(Timestamp, Inside)> {
        let change = self.changes.peek_time().map(|at| (at, Inside::Change));
        let end = self
            .in_service
            .as_ref()
            .map(|served| (served.leaves_at, Inside::EndOfService));
        change.into_iter().chain(end).min()
    }

    /// Runs what is due inside, up to but without deliveries.
    fn run_inside(&mut self, now: Timestamp) {
        while let Some((at, event)) = self.next_inside().filter(|(at, _)| *at <= now) {
            self.run(at, event);
        }
    }

    fn run(&mut self, at: Timestamp, event: Inside) {
        match event {
            Inside::Change => {
                if let Some((_, change)) = self.changes.pop() {
                    self.apply(at, change);
                }
            }
            Inside::EndOfService => {
                if let Some(served) = self.in_service.take() {
                    self.leave(at, served);
                }
            }
        }
        self.serve(at);
    }

    fn apply(&mut self, at: Timestamp, change: Change) {
        match change {
            Change::Rate(rate) => {
                self.config.rate = rate;
                self.output.on_rate(at, rate);
            }
            Change::Delay(delay) => self.config.delay = delay,
            Change::Queue(limit) => self.config.queue = limit,
            Change::Loss(loss) => self.config.loss = loss,
            Change::LossPlace(place) => self.config.loss_place = place,
            Change::DropNext(count) => self.script.drop_next(count),
        }
    }

    fn is_lost(&self, place: LossPlace, luck: Luck) -> bool {
        self.config.loss_place == place && luck.is_within(self.config.loss)
    }

    /// Stage "queue": straight into a free serialiser, else into the queue if the packet fits as a
    /// whole.
    fn enqueue(&mut self, waiting: Waiting<T>) {
        if self.in_service.is_none() && self.queue.is_empty() && self.config.rate != Rate::ZERO {
            self.start(waiting.arrived_at, waiting);
            return;
        }
        let size = waiting.packet.size;
        if self.counters.queued.bytes + size > self.config.queue {
            self.counters
                .on_dropped(waiting.arrived_at, size, DropCause::Queue);
        } else {
            self.counters.on_queued(size);
            self.queue.push_back(waiting);
        }
    }

    /// Lets the next packet into the serialiser if that is free and not standing still.
    fn serve(&mut self, now: Timestamp) {
        if self.in_service.is_some() || self.config.rate == Rate::ZERO {
            return;
        }
        if let Some(waiting) = self.queue.pop_front() {
            self.counters.queued.remove(waiting.packet.size);
            self.start(now, waiting);
        }
    }

    /// Stage "serialiser", first half.
    fn start(&mut self, now: Timestamp, waiting: Waiting<T>) {
        let Waiting {
            packet,
            arrived_at,
            luck,
        } = waiting;
        self.counters
            .queue_delay
            .record(now.saturating_since(arrived_at));
        self.counters.in_service.add(packet.size);
        let leaves_at = self.serialiser.start(now, packet.size, self.config.rate);
        self.in_service = Some(InService {
            packet,
            started_at: now,
            leaves_at,
            luck,
        });
    }

    /// Stages "serialiser", second half, "loss after" and "propagation".
    fn leave(&mut self, now: Timestamp, served: InService<T>) {
        let InService {
            packet,
            started_at,
            luck,
            ..
        } = served;
        self.counters.in_service.remove(packet.size);
        self.counters.busy_time += now.saturating_since(started_at);
        self.output.on_left(now, packet.size);
        if self.is_lost(LossPlace::AfterQueue, luck) {
            self.counters
                .on_dropped(now, packet.size, DropCause::LossAfter);
            return;
        }
        self.counters.in_flight.add(packet.size);
        let deliver_at = (now + self.config.delay).max(self.last_delivery_at);
        self.last_delivery_at = deliver_at;
        self.propagating
            .push_back(Propagating { deliver_at, packet });
    }
}

/// Events inside a pipe, in the order they happen at one instant.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Inside {
    Change,
    EndOfService,
}

#[derive(Clone, Debug)]
struct InService<T> {
    packet: Packet<T>,
    started_at: Timestamp,
    leaves_at: Timestamp,
    luck: Luck,
}

#[derive(Clone, Debug)]
struct Propagating<T> {
    deliver_at: Timestamp,
    packet: Packet<T>,
}
