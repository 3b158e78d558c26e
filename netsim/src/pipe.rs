//! One direction of a link.
//!
//! The order of the stages follows `lib.rs`. A packet draws its fortune once, at arrival, whatever the settings and
//! whatever else happens to it; the stages only read it. So the n-th arrival of a run has the same luck with and
//! without a script, with a long and a short queue, with 0 % and 30 %.

use std::collections::VecDeque;

use units::{Rate, Timestamp};

use crate::config::{Change, ConfigError, LossPlace, PipeConfig};
use crate::counters::{Counters, DropCause};
use crate::event_heap::EventHeap;
use crate::gilbert_elliott::LossChain;
use crate::jitter::JitterSource;
use crate::output::OutputRecord;
use crate::packet::{Fortune, Fortunes, Packet, Waiting};
use crate::policer::PolicerBucket;
use crate::queue::Queue;
use crate::random::RandomStreams;
use crate::script::DropScript;
use crate::serialiser::Serialiser;
use crate::shaper::ShaperBucket;
use crate::slots::SlotGate;
use crate::thinning::{Small, Thinned, Thinner};
use crate::trace::TraceLink;

/// One direction of a link.
///
/// Memory is allocated when the pipe is made, when more packets are inside than ever before, and
/// for each 10 ms of output recorded; not for each packet.
#[derive(Clone, Debug)]
pub struct Pipe<T> {
    name: String,
    /// The settings in force now.
    config: PipeConfig,
    changes: EventHeap<Change>,
    fortunes: Fortunes,
    thinner: Option<Thinner<Packet<T>>>,
    script: DropScript,
    /// Packets that have come past the thinning.
    admitted: u64,
    policer: Option<PolicerBucket>,
    queue: Queue<T>,
    shaper: Option<ShaperBucket>,
    trace: Option<TraceLink>,
    serialiser: Serialiser,
    in_service: Option<InService<T>>,
    bursts: Option<LossChain>,
    jitter: JitterSource,
    slots: Option<SlotGate>,
    /// Propagating, in order; delivery times never descend.
    propagating: VecDeque<Propagating<T>>,
    /// Propagating out of order.
    strays: EventHeap<Packet<T>>,
    /// The latest delivery time given out in order; nothing is delivered in order before it any more.
    last_delivery_at: Timestamp,
    /// The latest instant the caller has named.
    now: Timestamp,
    counters: Counters,
    output: OutputRecord,
}

impl<T: Clone> Pipe<T> {
    /// A pipe at the beginning of a run. Each kind of chance draws from a stream of its own: "`name`.loss", ".burst",
    /// ".mishap", ".jitter" and ".aqm".
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a setting is out of its range.
    pub fn new(
        config: PipeConfig,
        streams: &RandomStreams,
        name: &str,
    ) -> Result<Self, ConfigError> {
        config.check(name)?;
        let output = match &config.trace {
            Some(trace) => OutputRecord::of_trace(trace.clone()),
            None => OutputRecord::new(config.rate),
        };
        Ok(Self {
            name: name.to_owned(),
            changes: EventHeap::new(),
            fortunes: Fortunes::new(streams, name),
            thinner: config.thinning.map(Thinner::new),
            script: DropScript::new(&config.drop_packets, &config.drop_spaced),
            admitted: 0,
            policer: config.policer.map(PolicerBucket::new),
            queue: Queue::new(
                config.queue_config(),
                streams.stream(&format!("{name}.aqm")),
            ),
            shaper: config.shaper.map(ShaperBucket::new),
            trace: config.trace.clone().map(TraceLink::new),
            serialiser: Serialiser::new(),
            in_service: None,
            bursts: config.burst_loss.map(LossChain::new),
            jitter: JitterSource::new(
                config.jitter_or_none(),
                streams.stream(&format!("{name}.jitter")),
            ),
            slots: config.slots.map(SlotGate::new),
            propagating: VecDeque::new(),
            strays: EventHeap::new(),
            last_delivery_at: Timestamp::ZERO,
            now: Timestamp::ZERO,
            counters: Counters::default(),
            output,
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
        if size > self.config.largest_packet {
            self.counters.on_dropped(now, size, DropCause::TooLarge);
        } else if let Some(mut thinner) = self.thinner.take() {
            let what = Small {
                size,
                flow: packet.flow,
            };
            thinner.arrive(now, what, packet, &mut |fate| self.on_thinned(now, fate));
            self.put_back(thinner);
        } else {
            self.admit(now, packet);
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
            match self.first_out() {
                Some(at) if at <= now && inside.is_none_or(|(inside_at, _)| at < inside_at) => {
                    if let Some(packet) = self.take_out(at) {
                        self.counters
                            .on_delivered(at, packet.size, packet.is_corrupt);
                        deliver(at, packet);
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
        inside.into_iter().chain(self.first_out()).min()
    }

    /// When [`Self::advance`] next has something to deliver, at the earliest, if no packet arrives.
    ///
    /// Not before the packet that propagates first as long as packets do not overtake each other; so a
    /// caller that only waits for deliveries may sleep over what happens inside, which the next
    /// arrival or advance makes up for in its own time. `None` if nothing will come out.
    #[must_use]
    pub fn next_delivery(&self) -> Option<Timestamp> {
        let inside = || self.next_inside().map(|(at, _)| at);
        match self.propagating.front() {
            Some(first) if self.strays.is_empty() => Some(first.deliver_at),
            _ => self.first_out().into_iter().chain(inside()).min(),
        }
    }

    /// The next event that does not need the caller, changes first if two are due at once.
    fn next_inside(&self) -> Option<(Timestamp, Inside)> {
        let change = self.changes.peek_time().map(|at| (at, Inside::Change));
        let release = self.thinner.as_ref().and_then(Thinner::next_timer);
        let release = release.map(|at| (at, Inside::Release));
        let end = self
            .in_service
            .as_ref()
            .map(|served| (served.leaves_at, Inside::EndOfService));
        change.into_iter().chain(release).chain(end).min()
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
            Inside::Release => self.release(at, at),
            Inside::EndOfService => {
                if let Some(served) = self.in_service.take() {
                    self.leave(at, served);
                }
            }
        }
        self.serve(at);
    }

    fn apply(&mut self, at: Timestamp, change: Change) {
        self.config.set(change);
        match change {
            Change::Rate(rate) => {
                self.trace = None;
                self.output.on_rate(at, rate);
            }
            Change::Queue(_) | Change::QueuePackets(_) | Change::Discipline(_) => {
                self.queue.reconfigure(at, self.config.queue_config());
            }
            Change::BurstLoss(bursts) => adjust(
                &mut self.bursts,
                bursts,
                |chain, config| chain.reconfigure(at, config),
                LossChain::new,
            ),
            Change::Policer(policer) => adjust(
                &mut self.policer,
                policer,
                |bucket, config| bucket.reconfigure(at, config),
                PolicerBucket::new,
            ),
            Change::Shaper(shaper) => adjust(
                &mut self.shaper,
                shaper,
                |bucket, config| bucket.reconfigure(at, config),
                ShaperBucket::new,
            ),
            Change::Slots(slots) => {
                adjust(&mut self.slots, slots, SlotGate::reconfigure, SlotGate::new)
            }
            Change::Jitter(_) => self.jitter.reconfigure(self.config.jitter_or_none()),
            Change::Thinning(thinning) => {
                if thinning.is_none() {
                    self.release(at, Timestamp::MAX);
                }
                adjust(
                    &mut self.thinner,
                    thinning,
                    Thinner::reconfigure,
                    Thinner::new,
                );
            }
            Change::DropNext(count) => self.script.drop_next(count),
            Change::Delay(_)
            | Change::Loss(_)
            | Change::LossPlace(_)
            | Change::Mishaps(_)
            | Change::LargestPacket(_) => {}
        }
    }

    /// Lets go of what the thinning would hold until `until`.
    fn release(&mut self, now: Timestamp, until: Timestamp) {
        if let Some(mut thinner) = self.thinner.take() {
            thinner.on_timer(until, &mut |fate| self.on_thinned(now, fate));
            self.put_back(thinner);
        }
    }

    fn put_back(&mut self, thinner: Thinner<Packet<T>>) {
        self.counters.held = thinner.held().map(|packet| packet.size).collect();
        self.thinner = Some(thinner);
    }

    fn on_thinned(&mut self, now: Timestamp, fate: Thinned<Packet<T>>) {
        match fate {
            Thinned::Passed(packet) => self.admit(now, packet),
            Thinned::Dropped(packet) => {
                self.counters
                    .on_dropped(now, packet.size, DropCause::Thinned);
            }
        }
    }

    /// Stages "scripted drop", "loss before" and "policer".
    fn admit(&mut self, now: Timestamp, packet: Packet<T>) {
        let (size, fortune) = (packet.size, self.fortunes.draw());
        self.admitted += 1;
        let cause = if self.script.takes(now, self.admitted, size, packet.labels) {
            DropCause::Scripted
        } else if self.is_lost(LossPlace::BeforeQueue, now, fortune) {
            DropCause::LossBefore
        } else if self
            .policer
            .as_mut()
            .is_some_and(|policer| !policer.admits(now, size))
        {
            DropCause::Policed
        } else if self
            .shaper
            .as_ref()
            .is_some_and(|shaper| !shaper.fits(size))
        {
            // It would wait for tokens for ever.
            DropCause::Queue
        } else {
            return self.enqueue(Waiting {
                packet,
                arrived_at: now,
                fortune,
            });
        };
        self.counters.on_dropped(now, size, cause);
    }

    /// Random and burst loss at the place where they strike.
    fn is_lost(&mut self, place: LossPlace, now: Timestamp, fortune: Fortune) -> bool {
        if self.config.loss_place != place {
            return false;
        }
        let in_burst = match &mut self.bursts {
            Some(bursts) => bursts.is_lost(now, fortune.burst),
            None => false,
        };
        fortune.loss.is_within(self.config.loss) || in_burst
    }

    /// Nothing leaves a link without a rate.
    fn stands_still(&self) -> bool {
        self.config.rate == Rate::ZERO && self.trace.is_none()
    }

    /// Stage "queue": past it into a free serialiser, else into it.
    fn enqueue(&mut self, waiting: Waiting<T>) {
        let now = waiting.arrived_at;
        let (rate, stands_still) = (self.config.rate, self.stands_still());
        let counters = &mut self.counters;
        let is_free = self.in_service.is_none() && self.queue.tally().packets == 0;
        if is_free && !stands_still {
            let passed = self.queue.pass(now, waiting, rate, &mut |fate| {
                counters.on_fate(now, fate);
            });
            if let Some(waiting) = passed {
                self.start(now, waiting);
            }
            return;
        }
        self.queue.enqueue(now, waiting, rate, &mut |fate| {
            counters.on_fate(now, fate);
        });
        self.counters.on_queue(self.queue.tally());
    }

    /// Lets the next packet into the serialiser if that is free and not standing still.
    fn serve(&mut self, now: Timestamp) {
        if self.in_service.is_some() || self.stands_still() {
            return;
        }
        let counters = &mut self.counters;
        let next = self
            .queue
            .dequeue(now, &mut |fate| counters.on_fate(now, fate));
        self.counters.on_queue(self.queue.tally());
        if let Some(waiting) = next {
            self.start(now, waiting);
        }
    }

    /// Stages "shaper" and "serialiser", first half.
    fn start(&mut self, now: Timestamp, waiting: Waiting<T>) {
        let Waiting {
            packet,
            arrived_at,
            fortune,
        } = waiting;
        self.counters
            .queue_delay
            .record(now.saturating_since(arrived_at));
        self.counters.in_service.add(packet.size);
        let starts_at = match &mut self.shaper {
            Some(shaper) => {
                let starts_at = shaper.ready_at(now, packet.size);
                shaper.take(starts_at, packet.size);
                starts_at
            }
            None => now,
        };
        let leaves_at = match &mut self.trace {
            Some(trace) => trace.next_departure(starts_at, packet.size),
            None => self
                .serialiser
                .start(starts_at, packet.size, self.config.rate),
        };
        self.in_service = Some(InService {
            packet,
            started_at: starts_at,
            leaves_at,
            fortune,
        });
    }

    /// Stages "serialiser", second half, "loss after" and what may befall a packet on the wire.
    fn leave(&mut self, now: Timestamp, served: InService<T>) {
        let InService {
            mut packet,
            started_at,
            fortune,
            ..
        } = served;
        self.counters.in_service.remove(packet.size);
        self.counters.busy_time += now.saturating_since(started_at);
        self.output.on_left(now, packet.size);
        if self.is_lost(LossPlace::AfterQueue, now, fortune) {
            self.counters
                .on_dropped(now, packet.size, DropCause::LossAfter);
            return;
        }
        let mishap = self.config.mishaps.of(fortune.mishap);
        packet.is_corrupt |= mishap.is_corrupted;
        let mut deliver_at = now + self.config.delay + self.jitter.offset(now);
        if let Some(slots) = &mut self.slots {
            deliver_at = slots.take(deliver_at);
        }
        if mishap.is_duplicated {
            self.counters.duplicated.add(packet.size);
            self.propagate(packet.clone(), deliver_at, mishap.extra_delay);
        }
        self.propagate(packet, deliver_at, mishap.extra_delay);
    }

    /// Stage "propagation".
    fn propagate(
        &mut self,
        packet: Packet<T>,
        deliver_at: Timestamp,
        extra: Option<std::time::Duration>,
    ) {
        self.counters.in_flight.add(packet.size);
        if let Some(extra) = extra {
            self.strays.push(deliver_at + extra, packet);
        } else if self.jitter.may_reorder() {
            self.strays.push(deliver_at, packet);
        } else {
            let deliver_at = deliver_at.max(self.last_delivery_at);
            self.last_delivery_at = deliver_at;
            self.propagating
                .push_back(Propagating { deliver_at, packet });
        }
    }

    /// Takes out what arrives first; what keeps its order comes before what does not.
    fn take_out(&mut self, at: Timestamp) -> Option<Packet<T>> {
        match self.propagating.front() {
            Some(first) if first.deliver_at <= at => {
                self.propagating.pop_front().map(|first| first.packet)
            }
            _ => self.strays.pop().map(|(_, packet)| packet),
        }
    }
}

impl<T> Pipe<T> {
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

    /// When the packet that propagates and arrives first does so.
    fn first_out(&self) -> Option<Timestamp> {
        let ordered = self.propagating.front().map(|first| first.deliver_at);
        ordered.into_iter().chain(self.strays.peek_time()).min()
    }
}

/// Puts new settings of a stage in force that may also come and go.
fn adjust<S, C>(
    stage: &mut Option<S>,
    config: Option<C>,
    change: impl FnOnce(&mut S, C),
    make: impl FnOnce(C) -> S,
) {
    match (stage.as_mut(), config) {
        (Some(running), Some(config)) => change(running, config),
        (None, Some(config)) => *stage = Some(make(config)),
        (_, None) => *stage = None,
    }
}

/// Events inside a pipe, in the order they happen at one instant.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Inside {
    Change,
    Release,
    EndOfService,
}

#[derive(Clone, Debug)]
struct InService<T> {
    packet: Packet<T>,
    started_at: Timestamp,
    leaves_at: Timestamp,
    fortune: Fortune,
}

#[derive(Clone, Debug)]
struct Propagating<T> {
    deliver_at: Timestamp,
    packet: Packet<T>,
}
