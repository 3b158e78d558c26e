//! One sender, one bottleneck, one receiver that acknowledges every packet: enough of a network to see a controller close
//! its loop. Losses are found by packet and time threshold (RFC 9002 section 6.1); what is lost is not sent again, because
//! a bulk flow always has something else to send.

use std::collections::VecDeque;
use std::time::Duration;

use cc::delivery::{Sampler, SendState};
use cc::pacer::Pacer;
use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LostPacket, PathModel, RttEstimator,
    SentEvent, State, Trigger,
};
use netsim::{Change, Packet, Pipe, PipeConfig, RandomStreams};
use units::{ByteCount, Fraction, Rate, Timestamp, math};

pub(crate) const DATAGRAM: ByteCount = ByteCount::new(1_250);

/// What the application does.
#[derive(Copy, Clone, Debug)]
pub(crate) enum App {
    Bulk,
    /// Writes so many bytes at each multiple of the span.
    Writes(u64, Duration),
    /// Bulk for the first span, silence for the second, again and again.
    OnOff(Duration, Duration),
}

/// A path and what is sent over it.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) algorithm: Algorithm,
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    /// In hundredths of the product of rate and delay.
    pub(crate) queue_percent: u64,
    pub(crate) loss: Fraction,
    /// Packets to drop, counted from 1.
    pub(crate) drops: Vec<u64>,
    /// Acknowledgements are released at multiples of this.
    pub(crate) ack_slots: Option<Duration>,
    /// How much the way back gets longer per second, so that no sample is as low as one before.
    pub(crate) drift_per_second: Duration,
    pub(crate) steps: Vec<(Timestamp, Rate)>,
    pub(crate) app: App,
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
}

impl Setup {
    pub(crate) fn new(mbps: u64, rtt_ms: u64) -> Self {
        Self {
            algorithm: Algorithm::Bbr3,
            rate: Rate::from_mbps(mbps),
            rtt: Duration::from_millis(rtt_ms),
            queue_percent: 200,
            loss: Fraction::ZERO,
            drops: Vec::new(),
            ack_slots: None,
            drift_per_second: Duration::ZERO,
            steps: Vec::new(),
            app: App::Bulk,
            seed: 1,
            duration: Duration::from_secs(20),
        }
    }

    pub(crate) fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }

    pub(crate) fn run(self) -> Outcome {
        Link::new(self).run()
    }
}

/// The state at an acknowledgement.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Timestamp,
    pub(crate) rtt: Duration,
    pub(crate) in_flight: ByteCount,
    pub(crate) delivered: u64,
    pub(crate) pacing_rate: Rate,
    pub(crate) window: ByteCount,
    pub(crate) model: PathModel,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) moments: Vec<Moment>,
    pub(crate) phases: Vec<(Timestamp, State, Trigger)>,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) timeouts: u64,
    /// The most that left at once, after the first second.
    pub(crate) largest_burst: ByteCount,
}

impl Outcome {
    fn between(&self, from: f64, until: f64) -> impl Iterator<Item = &Moment> {
        self.moments
            .iter()
            .filter(move |moment| (from..until).contains(&seconds(moment.at)))
    }

    /// Delivered bits per second.
    pub(crate) fn goodput(&self, from: f64, until: f64) -> f64 {
        let first = self.between(from, until).next();
        let last = self.between(from, until).last();
        match (first, last) {
            (Some(first), Some(last)) if last.at > first.at => {
                (last.delivered - first.delivered) as f64 * 8.0
                    / (seconds(last.at) - seconds(first.at))
            }
            _ => 0.0,
        }
    }

    pub(crate) fn rtt_percentile(&self, from: f64, until: f64, percent: usize) -> Duration {
        let mut all: Vec<Duration> = self.between(from, until).map(|m| m.rtt).collect();
        all.sort_unstable();
        all.get((all.len() * percent / 100).min(all.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn most_in_flight(&self, from: f64, until: f64) -> ByteCount {
        let all = self.between(from, until).map(|moment| moment.in_flight);
        all.max().unwrap_or_default()
    }

    pub(crate) fn last(&self) -> &Moment {
        self.moments.last().expect("something was acknowledged")
    }

    /// When each stay in `state` began.
    pub(crate) fn entries(&self, state: State) -> Vec<f64> {
        let of_state = self.phases.iter().filter(|phase| phase.1 == state);
        of_state.map(|phase| seconds(phase.0)).collect()
    }

    /// The share of the time from `from` on that was spent in `state`.
    pub(crate) fn share(&self, state: State, from: f64) -> f64 {
        let mut in_state = 0.0;
        let mut all = 0.0;
        for pair in self.moments.windows(2) {
            let span = seconds(pair[1].at) - seconds(pair[0].at);
            if seconds(pair[0].at) >= from {
                all += span;
                in_state += if pair[0].model.phase == state {
                    span
                } else {
                    0.0
                };
            }
        }
        in_state / all
    }
}

pub(crate) fn seconds(at: Timestamp) -> f64 {
    at.as_nanos() as f64 / 1e9
}

#[derive(Copy, Clone, Debug)]
struct Outstanding {
    number: u64,
    sent_at: Timestamp,
    state: SendState,
    is_app_limited: bool,
}

struct Link {
    setup: Setup,
    controller: Box<dyn Controller>,
    pipe: Pipe<u64>,
    now: Timestamp,
    /// When which packet's acknowledgement arrives.
    acks: VecDeque<(Timestamp, u64)>,
    outstanding: VecDeque<Outstanding>,
    next_number: u64,
    largest_acked: Option<u64>,
    in_flight: ByteCount,
    rtt: RttEstimator,
    sampler: Sampler,
    pacer: Pacer,
    is_idle: bool,
    last_progress_at: Timestamp,
    timeouts_in_a_row: u32,
    outcome: Outcome,
}

impl Link {
    fn new(setup: Setup) -> Self {
        let config = PipeConfig {
            rate: setup.rate,
            delay: setup.rtt / 2,
            queue: setup
                .bdp()
                .scale(setup.queue_percent, 100)
                .max(DATAGRAM * 2),
            loss: setup.loss,
            drop_packets: setup.drops.clone(),
            ..PipeConfig::default()
        };
        let streams = RandomStreams::new(setup.seed);
        let mut pipe = Pipe::new(config, &streams, "forward").expect("a valid pipe");
        for (at, rate) in &setup.steps {
            pipe.schedule(*at, Change::Rate(*rate)).expect("a rate");
        }
        Self {
            controller: setup.algorithm.build_with_seed(DATAGRAM, setup.seed),
            setup,
            pipe,
            now: Timestamp::ZERO,
            acks: VecDeque::new(),
            outstanding: VecDeque::new(),
            next_number: 0,
            largest_acked: None,
            in_flight: ByteCount::ZERO,
            rtt: RttEstimator::new(),
            sampler: Sampler::new(),
            pacer: Pacer::new(),
            is_idle: true,
            last_progress_at: Timestamp::ZERO,
            timeouts_in_a_row: 0,
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        let end = Timestamp::ZERO + self.setup.duration;
        loop {
            self.send();
            let next = self.next_event();
            if next > end {
                return self.outcome;
            }
            self.now = next;
            self.move_packets();
            while let Some(&(at, number)) = self.acks.front() {
                if at > self.now {
                    break;
                }
                let mut numbers = vec![number];
                self.acks.pop_front();
                while let Some(&(same, number)) = self.acks.front() {
                    if same != at {
                        break;
                    }
                    numbers.push(number);
                    self.acks.pop_front();
                }
                self.on_ack(&numbers);
            }
            if !self.outstanding.is_empty() && self.now >= self.timeout_at() {
                self.on_timeout();
            }
        }
    }

    fn next_event(&self) -> Timestamp {
        let mut next = Timestamp::MAX;
        let mut consider = |at: Timestamp| next = next.min(at.max(self.now));
        if let Some(at) = self.pipe.next_event() {
            consider(at);
        }
        if let Some(&(at, _)) = self.acks.front() {
            consider(at);
        }
        if !self.outstanding.is_empty() {
            consider(self.timeout_at());
        }
        if self.unsent() == 0 {
            consider(self.next_write());
        } else if self.has_room() {
            consider(self.pacer.release_at());
        }
        next
    }

    /// Bytes that the application has and that have not left, up to a large number.
    fn unsent(&self) -> u64 {
        let sent = self.next_number * DATAGRAM.as_u64();
        match self.setup.app {
            App::Bulk => u64::MAX,
            App::Writes(bytes, every) => {
                let writes = self.now.as_nanos() / nanos(every) + 1;
                (writes * bytes).saturating_sub(sent)
            }
            App::OnOff(on, off) => {
                let in_cycle = self.now.as_nanos() % nanos(on + off);
                if in_cycle < nanos(on) { u64::MAX } else { 0 }
            }
        }
    }

    fn next_write(&self) -> Timestamp {
        let cycle = match self.setup.app {
            App::Bulk => return Timestamp::MAX,
            App::Writes(_, every) => nanos(every),
            App::OnOff(on, off) => nanos(on + off),
        };
        Timestamp::from_nanos((self.now.as_nanos() / cycle + 1) * cycle)
    }

    fn has_room(&self) -> bool {
        self.in_flight + DATAGRAM <= self.controller.window()
    }

    fn send(&mut self) {
        while self.unsent() > 0 && self.has_room() && self.pacer.can_release(self.now) {
            self.send_burst();
        }
        if self.unsent() == 0 && self.has_room() && self.pacer.can_release(self.now) {
            if !self.is_idle {
                self.is_idle = true;
                self.controller.on_app_limited(self.now);
            }
            self.sampler.on_app_limited(self.in_flight);
        }
    }

    fn send_burst(&mut self) {
        let rate = self.controller.pacing_rate(&self.rtt);
        let quantum = self.controller.send_quantum(rate);
        let room = self.controller.window() - self.in_flight;
        let most = quantum
            .min(room)
            .min(ByteCount::new(self.unsent()).max(DATAGRAM));
        let count = (most.as_u64() / DATAGRAM.as_u64()).clamp(1, 64);
        let was_idle = self.in_flight == ByteCount::ZERO;
        if std::mem::take(&mut self.is_idle) {
            self.pacer.on_idle_restart(self.now);
        }
        let after = self.unsent().saturating_sub(count * DATAGRAM.as_u64());
        let is_app_limited =
            after == 0 && self.in_flight + DATAGRAM * (count + 1) <= self.controller.window();
        for _ in 0..count {
            let state = SendState {
                send_tag: self.controller.send_tag(),
                ..self.sampler.on_sent(self.now, self.in_flight, DATAGRAM)
            };
            self.outstanding.push_back(Outstanding {
                number: self.next_number,
                sent_at: self.now,
                state,
                is_app_limited,
            });
            self.pipe
                .arrive(self.now, Packet::new(DATAGRAM, self.next_number));
            self.next_number += 1;
            self.in_flight += DATAGRAM;
        }
        let bytes = DATAGRAM * count;
        self.outcome.sent += count;
        if self.now > Timestamp::from_secs(1) {
            self.outcome.largest_burst = self.outcome.largest_burst.max(bytes);
        }
        self.pacer.on_sent(self.now, bytes, rate, quantum);
        self.controller.on_sent(
            self.now,
            &SentEvent {
                bytes,
                in_flight: self.in_flight,
                is_app_limited,
                was_idle,
            },
        );
        self.note_phases();
    }

    fn move_packets(&mut self) {
        let back = self.setup.rtt / 2;
        let drift = nanos(self.setup.drift_per_second);
        let slots = self.setup.ack_slots;
        let acks = &mut self.acks;
        self.pipe.advance(self.now, &mut |at, packet| {
            let late = Duration::from_nanos(math::mul_div(drift, at.as_nanos(), 1_000_000_000));
            let arrival = at + back + late;
            let arrival = match slots {
                Some(slot) => {
                    Timestamp::from_nanos(arrival.as_nanos().div_ceil(nanos(slot)) * nanos(slot))
                }
                None => arrival,
            };
            acks.push_back((arrival, packet.payload));
        });
    }

    /// Three probe timeouts without news are taken for persistent congestion.
    fn timeout_at(&self) -> Timestamp {
        let pto = self.rtt.pto_base() * 3 * 2_u32.pow(self.timeouts_in_a_row.min(4));
        self.last_progress_at.max(
            self.outstanding
                .front()
                .map_or(Timestamp::ZERO, |oldest| oldest.sent_at),
        ) + pto
    }

    fn on_ack(&mut self, numbers: &[u64]) {
        self.last_progress_at = self.now;
        self.timeouts_in_a_row = 0;
        let in_flight_before = self.in_flight;
        let mut acked = Vec::new();
        let mut newest: Option<Outstanding> = None;
        for &number in numbers {
            let Ok(index) = self
                .outstanding
                .binary_search_by_key(&number, |packet| packet.number)
            else {
                continue;
            };
            let Some(packet) = self.outstanding.remove(index) else {
                continue;
            };
            self.in_flight -= DATAGRAM;
            self.sampler
                .on_acked(self.now, &packet.state, packet.sent_at, DATAGRAM);
            newest = Some(packet);
            self.largest_acked = self.largest_acked.max(Some(number));
            acked.push(AckedPacket {
                packet_number: number,
                sent_at: packet.sent_at,
                size: DATAGRAM,
                is_app_limited: packet.is_app_limited,
                tx_in_flight: packet.state.tx_in_flight,
            });
        }
        let Some(newest) = newest else { return };
        let latest_rtt = self.now.saturating_since(newest.sent_at);
        self.rtt.update(latest_rtt, Duration::ZERO);
        let largest = self.largest_acked.unwrap_or(0);
        let threshold = self.rtt.smoothed_or_initial().max(latest_rtt) * 9 / 8;
        let now = self.now;
        let mut lost = Vec::new();
        while self.outstanding.front().is_some_and(|oldest| {
            oldest.number + 3 <= largest
                || oldest.number < largest && oldest.sent_at + threshold <= now
        }) {
            lost.extend(self.lose_oldest());
        }
        self.tell(&acked, &lost, in_flight_before, Some(newest.sent_at), false);
    }

    fn lose_oldest(&mut self) -> Option<LostPacket> {
        let packet = self.outstanding.pop_front()?;
        self.in_flight -= DATAGRAM;
        self.sampler.on_lost(DATAGRAM);
        self.outcome.lost += 1;
        Some(LostPacket {
            packet_number: packet.number,
            sent_at: packet.sent_at,
            size: DATAGRAM,
            is_app_limited: packet.is_app_limited,
            tx_in_flight: packet.state.tx_in_flight,
            lost_since_sent: self.sampler.lost_since(&packet.state),
            send_tag: packet.state.send_tag,
        })
    }

    fn on_timeout(&mut self) {
        let in_flight_before = self.in_flight;
        self.timeouts_in_a_row += 1;
        self.last_progress_at = self.now;
        self.outcome.timeouts += 1;
        let mut lost = Vec::new();
        while let Some(packet) = self.lose_oldest() {
            lost.push(packet);
        }
        self.tell(&[], &lost, in_flight_before, None, true);
    }

    fn tell(
        &mut self,
        acked: &[AckedPacket],
        lost: &[LostPacket],
        in_flight_before: ByteCount,
        newest_sent_at: Option<Timestamp>,
        is_persistent_congestion: bool,
    ) {
        let sample = self.sampler.finish(self.now, self.rtt.minimum());
        let latest_rtt = newest_sent_at.map(|sent_at| self.now.saturating_since(sent_at));
        let event = FeedbackEvent {
            acked,
            lost,
            late: &[],
            is_persistent_congestion,
            ce_count: 0,
            largest_acked_sent_at: newest_sent_at,
            in_flight_before,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            latest_rtt,
            sample,
            is_round_start: false,
            round_count: 0,
        };
        self.controller.on_feedback(self.now, &event);
        if self.controller.is_self_limited() {
            self.sampler.on_app_limited(self.in_flight);
        }
        self.note_phases();
        if let (Some(rtt), Some(model)) = (latest_rtt, self.controller.path_model()) {
            self.outcome.moments.push(Moment {
                at: self.now,
                rtt,
                in_flight: self.in_flight,
                delivered: self.sampler.delivered(),
                pacing_rate: self.controller.pacing_rate(&self.rtt),
                window: self.controller.window(),
                model,
            });
        }
    }

    fn note_phases(&mut self) {
        while let Some(change) = self.controller.take_transition() {
            self.outcome
                .phases
                .push((self.now, change.to, change.trigger));
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
