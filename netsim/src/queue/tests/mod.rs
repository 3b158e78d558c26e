//! A queue in front of a serialiser of fixed rate, and what it does to scripted arrivals.

mod codel;
mod drop_tail;
mod dual_pi2;
mod fq_codel;
mod laws;
mod pie;
mod red;

use std::collections::BTreeMap;
use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use super::{Discipline, Fate, Queue, QueueConfig, QueueDrop, QueueLimits};
use crate::counters::Tally;
use crate::packet::{Ecn, FlowId, Fortunes, Packet, Waiting};
use crate::random::{RandomStream, RandomStreams};
use crate::validation_rows::row;

/// The part of `docs/validation.md` that these tests write.
const PART: &str = "link model";

/// Packets carry the number of their arrival.
type Serial = u64;

/// A queue, its serialiser, and a record of everything that happened.
#[derive(Clone, Debug)]
struct Link {
    queue: Queue<Serial>,
    rate: Rate,
    fortunes: Fortunes,
    /// The end of the packet in service.
    busy_until: Option<Timestamp>,
    offered: Tally,
    /// The ECN field of each arrival.
    came_with: Vec<Ecn>,
    /// The bytes that each flow offered.
    offered_by: BTreeMap<FlowId, u64>,
    served: Vec<Served>,
    dropped: Vec<Dropped>,
    marked: Vec<(FlowId, ByteCount)>,
    most_waiting: Tally,
}

#[derive(Clone, PartialEq, Debug)]
struct Served {
    /// When it got into the serialiser.
    at: Timestamp,
    delay: Duration,
    packet: Packet<Serial>,
}

#[derive(Clone, PartialEq, Debug)]
struct Dropped {
    at: Timestamp,
    cause: QueueDrop,
    packet: Packet<Serial>,
}

impl Link {
    fn new(rate: Rate, limit: QueueLimits, discipline: Discipline) -> Self {
        let streams = RandomStreams::new(1);
        let config = QueueConfig { limit, discipline };
        config.check().unwrap();
        Self {
            queue: Queue::new(config, streams.stream("forward.aqm")),
            rate,
            fortunes: Fortunes::new(&streams, "forward"),
            busy_until: None,
            offered: Tally::default(),
            came_with: Vec::new(),
            offered_by: BTreeMap::new(),
            served: Vec::new(),
            dropped: Vec::new(),
            marked: Vec::new(),
            most_waiting: Tally::default(),
        }
    }

    /// Serves what is due before or at `at`, then takes the packet in.
    fn arrive(&mut self, at: Timestamp, size: u64, flow: u32, ecn: Ecn) {
        self.advance(at);
        let packet = Packet {
            flow: FlowId(flow),
            ecn,
            ..Packet::new(ByteCount::new(size), self.offered.packets)
        };
        self.offered.add(packet.size);
        self.came_with.push(ecn);
        *self.offered_by.entry(packet.flow).or_default() += size;
        let waiting = Waiting {
            packet,
            arrived_at: at,
            fortune: self.fortunes.draw(),
        };
        let mut record = Record {
            at,
            dropped: &mut self.dropped,
            marked: &mut self.marked,
        };
        if self.busy_until.is_none() {
            let passed = self
                .queue
                .pass(at, waiting, self.rate, &mut |fate| record.write(fate));
            self.serve(at, passed);
        } else {
            self.queue
                .enqueue(at, waiting, self.rate, &mut |fate| record.write(fate));
        }
        let waiting = self.queue.tally();
        self.most_waiting.packets = self.most_waiting.packets.max(waiting.packets);
        self.most_waiting.bytes = self.most_waiting.bytes.max(waiting.bytes);
    }

    /// Serves what is due before or at `now`.
    fn advance(&mut self, now: Timestamp) {
        while let Some(at) = self.busy_until.filter(|at| *at <= now) {
            let mut record = Record {
                at,
                dropped: &mut self.dropped,
                marked: &mut self.marked,
            };
            let next = self.queue.dequeue(at, &mut |fate| record.write(fate));
            self.serve(at, next);
        }
    }

    fn serve(&mut self, at: Timestamp, next: Option<Waiting<Serial>>) {
        self.busy_until = next
            .as_ref()
            .map(|waiting| at + self.rate.time_for(waiting.packet.size));
        self.served.extend(next.map(|waiting| Served {
            at,
            delay: at.saturating_since(waiting.arrived_at),
            packet: waiting.packet,
        }));
    }

    fn reconfigure(&mut self, now: Timestamp, limit: QueueLimits, discipline: Discipline) {
        let config = QueueConfig { limit, discipline };
        config.check().unwrap();
        self.queue.reconfigure(now, config);
    }

    /// Packets of one size and one flow at equal gaps, until `end`.
    fn arrive_evenly(&mut self, gap: Duration, size: u64, ecn: Ecn, end: Timestamp) {
        let mut at = Timestamp::ZERO;
        while at < end {
            self.arrive(at, size, 0, ecn);
            at += gap;
        }
    }

    /// When the discipline dropped packets.
    fn aqm_drops(&self) -> Vec<Timestamp> {
        self.dropped
            .iter()
            .filter(|dropped| dropped.cause == QueueDrop::Aqm)
            .map(|dropped| dropped.at)
            .collect()
    }

    /// The mean delay of the packets served from `since` on, in seconds.
    fn mean_delay(&self, since: Timestamp) -> f64 {
        let delays = self.served.iter().filter(|served| served.at >= since);
        let (sum, count) = delays.fold((0.0, 0_u32), |(sum, count), served| {
            (sum + served.delay.as_secs_f64(), count + 1)
        });
        sum / f64::from(count)
    }

    /// Offered = served + dropped + waiting, each packet once, in packets and bytes.
    #[track_caller]
    fn assert_balance(&self) {
        let mut sum = self.queue.tally();
        let mut seen = vec![false; self.came_with.len()];
        let served = self.served.iter().map(|served| &served.packet);
        let dropped = self.dropped.iter().map(|dropped| &dropped.packet);
        for packet in served.chain(dropped) {
            sum.add(packet.size);
            let serial = usize::try_from(packet.payload).unwrap();
            assert!(!seen[serial], "packet {serial} came out twice");
            seen[serial] = true;
        }
        assert_eq!(sum, self.offered);
    }

    /// By how many bytes what came out of a flow differs from what it offered, at most, once nothing waits.
    fn worst_imbalance(&self) -> u64 {
        let mut came_out = BTreeMap::<FlowId, u64>::new();
        let served = self.served.iter().map(|served| &served.packet);
        let dropped = self.dropped.iter().map(|dropped| &dropped.packet);
        for packet in served.chain(dropped) {
            *came_out.entry(packet.flow).or_default() += packet.size.as_u64();
        }
        let flows = self.offered_by.keys().chain(came_out.keys());
        let of = |bytes: &BTreeMap<FlowId, u64>, flow| bytes.get(flow).copied().unwrap_or(0);
        flows
            .map(|flow| of(&self.offered_by, flow).abs_diff(of(&came_out, flow)))
            .max()
            .unwrap_or(0)
    }

    /// Packets marked here; of those that came without ECT; packets marked and dropped; CE taken back.
    fn marks(&self) -> [usize; 4] {
        let came_with =
            |packet: &Packet<Serial>| self.came_with[usize::try_from(packet.payload).unwrap()];
        let mut counts = [0; 4];
        for served in &self.served {
            let (before, after) = (came_with(&served.packet), served.packet.ecn);
            let is_marked = before != Ecn::Ce && after == Ecn::Ce;
            counts[0] += usize::from(is_marked);
            counts[1] += usize::from(is_marked && before == Ecn::NotEct);
            counts[3] += usize::from(before == Ecn::Ce && after != Ecn::Ce);
        }
        for dropped in &self.dropped {
            counts[2] += usize::from(dropped.packet.ecn != came_with(&dropped.packet));
        }
        counts
    }

    /// Marks went to ECT packets only, none of which was dropped, and CE is for ever.
    #[track_caller]
    fn assert_honest_marks(&self) {
        let came_with =
            |packet: &Packet<Serial>| self.came_with[usize::try_from(packet.payload).unwrap()];
        for dropped in &self.dropped {
            assert_eq!(dropped.packet.ecn, came_with(&dropped.packet));
        }
        let mut changed = Vec::new();
        for served in &self.served {
            let before = came_with(&served.packet);
            if served.packet.ecn != before {
                assert!(matches!(before, Ecn::Ect0 | Ecn::Ect1), "{served:?}");
                assert_eq!(served.packet.ecn, Ecn::Ce);
                changed.push((served.packet.flow, served.packet.size));
            }
        }
        if self.queue.tally().packets == 0 {
            let mut told = self.marked.clone();
            told.sort_unstable();
            changed.sort_unstable();
            assert_eq!(changed, told);
        }
    }
}

struct Record<'a> {
    at: Timestamp,
    dropped: &'a mut Vec<Dropped>,
    marked: &'a mut Vec<(FlowId, ByteCount)>,
}

impl Record<'_> {
    fn write(&mut self, fate: Fate<Serial>) {
        match fate {
            Fate::Dropped(waiting, cause) => self.dropped.push(Dropped {
                at: self.at,
                cause,
                packet: waiting.packet,
            }),
            Fate::Marked { flow, size } => self.marked.push((flow, size)),
        }
    }
}

/// A run that mixes sizes, flows and ECN fields at random, 1.5 times what the link carries.
fn mixed_run(limit: QueueLimits, discipline: Discipline) -> Link {
    let mut link = Link::new(Rate::from_mbps(10), limit, discipline);
    let mut script = RandomStreams::new(7).stream("script");
    let mut at = Timestamp::ZERO;
    for _ in 0..20_000 {
        let size = 100 + script.below(1_401);
        let ecn = any_ecn(&mut script);
        let flow = u32::try_from(script.below(20)).unwrap();
        link.arrive(at, size, flow, ecn);
        at += Duration::from_nanos(script.below(853_334));
    }
    link.advance(Timestamp::MAX);
    link
}

fn any_ecn(script: &mut RandomStream) -> Ecn {
    match script.below(4) {
        0 => Ecn::NotEct,
        1 => Ecn::Ect0,
        2 => Ecn::Ect1,
        _ => Ecn::Ce,
    }
}

/// Times in milliseconds to a tenth, in one line.
fn list_ms(times: impl Iterator<Item = Duration>) -> String {
    let times: Vec<String> = times
        .map(|time| format!("{:.1}", time.as_secs_f64() * 1e3))
        .collect();
    format!("{} ms", times.join(", "))
}

/// A count as a float, for reports and tolerances.
fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}
