//! The figures of a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use units::{ByteCount, Rate, Timestamp, format_duration};

use super::connection::{Change, Connection, Counts};
use super::limits::Limit;
use crate::read::Header;

/// The figures of a connection, as `tidegate qlog summary` shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The title of the trace.
    pub title: Option<String>,
    /// "client" or "server".
    pub side: Option<&'static str>,
    /// The name of the vantage point: program and version.
    pub name: Option<String>,
    /// The name of the controller, where the log has it.
    pub controller: Option<String>,
    /// How many events were read.
    pub event_count: u64,
    /// How many traces the file has; the others are not part of this.
    pub trace_count: usize,
    /// From the first event to the end of the connection, or of the file.
    pub duration: Duration,
    /// From the first event to the end of the handshake.
    pub handshake: Option<Duration>,
    /// From the first event to the last stream byte acknowledged or received.
    pub delivered_within: Option<Duration>,
    /// Round-trip times over all samples: smallest, median, 95th percentile.
    pub rtt: Option<[Duration; 3]>,
    /// How many samples there are.
    pub rtt_count: usize,
    /// What limited the sender for the longest time.
    pub limit: Option<(Limit, u32)>,
    /// The congestion states in the order in which they were entered first.
    pub states: Vec<StateTime>,
    /// The window: smallest, largest, last.
    pub window: Option<[u64; 3]>,
    counts: Counts,
}

/// How long and how often a connection was in a congestion state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTime {
    /// The state, in the file's word.
    pub state: String,
    /// How long altogether.
    pub time: Duration,
    /// How often it was entered.
    pub entries: u64,
}

/// The states while the file is read.
#[derive(Debug, Default)]
pub(super) struct States {
    order: Vec<String>,
    times: BTreeMap<String, (Duration, u64)>,
    last_at: Option<Timestamp>,
    window: Option<[u64; 3]>,
}

impl States {
    pub(super) fn advance(&mut self, at: Timestamp, connection: &Connection) {
        if let Some(window) = connection.window {
            let [least, most, _] = self.window.unwrap_or([window; 3]);
            self.window = Some([least.min(window), most.max(window), window]);
        }
        let last = self.last_at.replace(at).unwrap_or(at);
        if let Some(state) = &connection.state
            && let Some((time, _)) = self.times.get_mut(state)
        {
            *time += at.saturating_since(last);
        }
    }

    pub(super) fn on_change(&mut self, change: &Change) {
        if let Some(state) = &change.state {
            if !self.times.contains_key(&state.new) {
                self.order.push(state.new.clone());
            }
            let (_, entries) = self.times.entry(state.new.clone()).or_default();
            *entries += 1;
        }
    }
}

impl Summary {
    pub(super) fn new(
        header: &Header,
        connection: &Connection,
        states: States,
        (start, end): (Timestamp, Timestamp),
    ) -> Self {
        let mut rtts = connection.rtts.clone();
        rtts.sort_unstable();
        let of = |percent: usize| {
            // Nearest rank.
            let rank = (rtts.len() * percent).div_ceil(100).max(1);
            rtts.get(rank - 1).copied()
        };
        let rtt = match (connection.min_rtt.or(of(0)), of(50), of(95)) {
            (Some(least), Some(p50), Some(p95)) => Some([least.min(p50), p50, p95]),
            _ => None,
        };
        let States {
            order,
            mut times,
            window,
            ..
        } = states;
        let states = order
            .into_iter()
            .map(|state| {
                let (time, entries) = times.remove(&state).unwrap_or_default();
                StateTime {
                    state,
                    time,
                    entries,
                }
            })
            .collect();
        Self {
            title: header.title.clone().filter(|title| !title.is_empty()),
            side: header.vantage_point.map(crate::VantagePoint::as_str),
            name: header.name.clone(),
            controller: connection.controller.clone(),
            event_count: 0,
            trace_count: 1,
            duration: end.saturating_since(start),
            handshake: connection
                .handshake_done_at
                .map(|at| at.saturating_since(start)),
            delivered_within: None,
            rtt,
            rtt_count: rtts.len(),
            limit: None,
            states,
            window,
            counts: connection.counts.clone(),
        }
    }

    /// Whether this side sent more stream data than it received.
    const fn is_sender(&self) -> bool {
        self.counts.stream_bytes_acked >= self.counts.stream_bytes_received
    }

    /// Stream bytes in the direction that has more of them: sent and acknowledged, or received.
    pub const fn delivered(&self) -> ByteCount {
        ByteCount::new(match self.is_sender() {
            true => self.counts.stream_bytes_acked,
            false => self.counts.stream_bytes_received,
        })
    }

    /// Those bytes over the time from the first event to the last of them.
    pub fn goodput(&self) -> Option<Rate> {
        let within = self.delivered_within.filter(|time| !time.is_zero())?;
        Some(Rate::from_bytes_per(self.delivered(), within))
    }

    /// Packets lost of those that needed an acknowledgment, in parts per million.
    pub fn loss_ppm(&self) -> Option<u64> {
        let sent = self.counts.eliciting_packets;
        (sent > 0).then(|| units::math::mul_div(self.counts.lost_packets, 1_000_000, sent))
    }

    /// The same as a JSON object; times in nanoseconds, rates in bit/s.
    pub fn json(&self) -> Value {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let c = &self.counts;
        json!({
            "title": self.title,
            "vantage_point": self.side,
            "name": self.name,
            "controller": self.controller,
            "events": self.event_count,
            "traces": self.trace_count,
            "duration_ns": ns(self.duration),
            "handshake_ns": self.handshake.map(ns),
            "direction": if self.is_sender() { "sent" } else { "received" },
            "delivered_bytes": self.delivered().as_u64(),
            "delivered_within_ns": self.delivered_within.map(ns),
            "goodput_bps": self.goodput().map(Rate::as_bps),
            "rtt_ns": self.rtt.map(|[least, p50, p95]| json!({
                "min": ns(least), "p50": ns(p50), "p95": ns(p95), "samples": self.rtt_count,
            })),
            "packets": {
                "sent": c.sent_packets,
                "received": c.received_packets,
                "in_need_of_ack": c.eliciting_packets,
                "lost": c.lost_packets,
                "spuriously_lost": c.spurious_packets,
                "loss_ppm": self.loss_ppm(),
            },
            "bytes": { "sent": c.sent_bytes, "received": c.received_bytes },
            "stream_bytes": {
                "sent": c.stream_bytes_sent,
                "retransmitted": c.stream_bytes_repeated,
                "acknowledged": c.stream_bytes_acked,
                "received": c.stream_bytes_received,
            },
            "probe_timeouts": c.probe_timeouts,
            "probe_timeouts_in_a_row": c.most_probe_timeouts,
            "persistent_congestion": c.persistent_congestions,
            "window_bytes": self.window.map(|[least, most, last]| json!({
                "min": least, "max": most, "last": last,
            })),
            "states": self.states.iter().map(|state| json!({
                "state": state.state,
                "time_ns": ns(state.time),
                "entries": state.entries,
            })).collect::<Vec<_>>(),
            "limited_by": self.limit.map(|(limit, per_mille)| json!({
                "what": limit.as_str(), "share_per_mille": per_mille,
            })),
        })
    }
}

/// Four digits are enough to read.
pub(super) fn short(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let step = 10_u64.pow(ns.max(1).ilog10().saturating_sub(3));
    format_duration(Duration::from_nanos((ns / step).saturating_mul(step)))
}

/// `value / unit` with some decimals.
fn decimal(value: u64, unit: u64, digits: u32) -> String {
    let scale = 10_u64.pow(digits);
    let scaled = units::math::mul_div(value, scale, unit);
    let width = digits as usize;
    format!("{}.{:0width$}", scaled / scale, scaled % scale)
}

/// The share of a span in another, as "12.3 %".
fn share(part: Duration, whole: Duration) -> String {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let per_mille = units::math::mul_div(ns(part), 1_000, ns(whole).max(1));
    format!("{} %", decimal(per_mille, 10, 1))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        let mut line = |name: &str, text: String| writeln!(f, "{name:<16}{text}");
        let unknown = || "not in the file".to_owned();
        line("trace", self.title.clone().unwrap_or_else(unknown))?;
        let side = self.side.unwrap_or("unknown side").to_owned();
        // Our own name of a vantage point ends in the controller's.
        let is_named = |controller: &&String| {
            let name = self.name.as_deref().unwrap_or_default();
            !name.split(' ').any(|word| word == controller.as_str())
        };
        let controller = self.controller.as_ref().filter(is_named).cloned();
        let who = [Some(side), self.name.clone(), controller];
        let who: Vec<String> = who.into_iter().flatten().collect();
        line("seen from", who.join(", "))?;
        line(
            "duration",
            format!("{}, {} events", short(self.duration), self.event_count),
        )?;
        let handshake = self.handshake.map_or_else(unknown, short);
        line("handshake", handshake)?;
        let goodput = self.goodput().map_or_else(unknown, |rate| {
            let word = if self.is_sender() {
                "acknowledged"
            } else {
                "received"
            };
            let rate = decimal(rate.as_bps(), 1_000_000, 3);
            format!("{rate} Mbit/s: {} B {word}", self.delivered().as_u64())
        });
        line("goodput", goodput)?;
        let rtt = self.rtt.map_or_else(unknown, |[least, p50, p95]| {
            format!(
                "min {}, p50 {}, p95 {} ({} samples)",
                short(least),
                short(p50),
                short(p95),
                self.rtt_count
            )
        });
        line("RTT", rtt)?;
        line(
            "packets",
            format!("{} sent, {} received", c.sent_packets, c.received_packets),
        )?;
        let loss = self.loss_ppm().map_or_else(unknown, |ppm| {
            let spurious = match c.spurious_packets {
                0 => String::new(),
                count => format!(", {count} of them acknowledged after all"),
            };
            let share = decimal(ppm, 10_000, 2);
            format!("{} packets, {share} %{spurious}", c.lost_packets)
        });
        line("lost", loss)?;
        line(
            "retransmitted",
            format!("{} B of {} B", c.stream_bytes_repeated, c.stream_bytes_sent),
        )?;
        let row = match c.most_probe_timeouts {
            0 | 1 => String::new(),
            most => format!(", {most} in a row at most"),
        };
        line("probe timeouts", format!("{}{row}", c.probe_timeouts))?;
        let window = self.window.map_or_else(unknown, |[least, most, last]| {
            format!("{least} B to {most} B, {last} B at the end")
        });
        line("window", window)?;
        for (index, state) in self.states.iter().enumerate() {
            let times = if state.entries == 1 { "time" } else { "times" };
            line(
                if index == 0 { "states" } else { "" },
                format!(
                    "{:<26} {:>10}  {:>7}  {} {times}",
                    state.state,
                    short(state.time),
                    share(state.time, self.duration),
                    state.entries
                ),
            )?;
        }
        let limit = self.limit.map_or_else(unknown, |(limit, per_mille)| {
            let share = decimal(u64::from(per_mille), 10, 1);
            format!(
                "{}, {share} % of the time (tidegate qlog why)",
                limit.as_str()
            )
        });
        line("limited by", limit)?;
        if self.trace_count > 1 {
            line(
                "more",
                format!("{} traces, not shown", self.trace_count - 1),
            )?;
        }
        Ok(())
    }
}
