//! What limited the sender, in shares of the time, with the evidence.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use units::Timestamp;

use super::connection::Connection;
use super::limits::{Limit, Stretch, Total};
use super::summary::short;

/// What limited the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The time that was looked at: from the first event to the end of the connection, or of the file.
    pub total: Duration,
    /// One for each limit, in the order of [`Limit::ALL`]. The shares sum to 1,000.
    pub causes: Vec<Cause>,
    /// What the file lacks for a better answer.
    pub notes: Vec<String>,
}

/// One limit and its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What limited.
    pub limit: Limit,
    /// For how long altogether.
    pub time: Duration,
    /// Thousandths of the time.
    pub per_mille: u32,
    /// How many stretches.
    pub count: u64,
    /// The longest of them.
    pub longest: Option<Stretch>,
    /// What speaks for it.
    pub evidence: String,
}

impl Why {
    pub(super) fn new(total: Duration, totals: [Total; 7], connection: &Connection) -> Self {
        let shares = shares(&totals.each_ref().map(|total| total.time));
        let causes: Vec<Cause> = Limit::ALL
            .into_iter()
            .zip(totals)
            .zip(shares)
            .map(|((limit, total), per_mille)| Cause {
                limit,
                time: total.time,
                per_mille,
                count: total.count,
                evidence: evidence(limit, &total, connection),
                longest: total.longest,
            })
            .collect();
        Self {
            total,
            causes,
            notes: notes(connection),
        }
    }

    /// The limit with the largest share; `None` if no time passed.
    pub fn main(&self) -> Option<(Limit, u32)> {
        let main = self
            .causes
            .iter()
            .rev()
            .max_by_key(|cause| (cause.per_mille, cause.time))?;
        (main.per_mille > 0).then_some((main.limit, main.per_mille))
    }

    /// The same as a JSON object; times in nanoseconds.
    pub fn json(&self) -> Value {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|cause| {
                json!({
                    "limit": cause.limit.as_str(),
                    "time_ns": ns(cause.time),
                    "share_per_mille": cause.per_mille,
                    "stretches": cause.count,
                    "longest": cause.longest.map(|longest| json!({
                        "from_ns": longest.from.as_nanos(),
                        "until_ns": longest.until.as_nanos(),
                        "record": longest.record,
                    })),
                    "evidence": cause.evidence,
                })
            })
            .collect();
        json!({ "total_ns": ns(self.total), "causes": causes, "notes": self.notes })
    }
}

/// Thousandths that sum to 1,000 (by the largest remainder), or zeros if no time passed.
fn shares(times: &[Duration; 7]) -> [u32; 7] {
    let total: u128 = times.iter().map(Duration::as_nanos).sum();
    let mut shares = [0_u32; 7];
    if total == 0 {
        return shares;
    }
    let mut rest = 1_000;
    let mut remainders: Vec<(u128, usize)> = Vec::new();
    for (index, time) in times.iter().enumerate() {
        let scaled = time.as_nanos() * 1_000;
        shares[index] = u32::try_from(scaled / total).unwrap_or(1_000);
        rest -= shares[index].min(rest);
        remainders.push((scaled % total, index));
    }
    remainders.sort_by_key(|(remainder, index)| (std::cmp::Reverse(*remainder), *index));
    for (_, index) in remainders.into_iter().take(rest as usize) {
        shares[index] += 1;
    }
    shares
}

fn evidence(limit: Limit, total: &Total, connection: &Connection) -> String {
    let c = &connection.counts;
    let window = match total.windows {
        Some((least, most)) if least == most => format!("window {least} B"),
        Some((least, most)) => format!("window {least} B to {most} B"),
        None => String::new(),
    };
    match limit {
        _ if total.time.is_zero() => String::new(),
        Limit::Application => "room in the window, credit and pacer, and nothing sent".to_owned(),
        Limit::FlowControl => match c.blocked_frames {
            0 => "the peer's limit was used up to the last byte".to_owned(),
            count => format!("{count} DATA_BLOCKED or STREAM_DATA_BLOCKED sent"),
        },
        Limit::Window => window,
        Limit::Pacing => match connection.pacing_rate {
            Some(rate) => format!("packets left as the pacing rate let them, {rate} last"),
            None => "the file says so".to_owned(),
        },
        Limit::Pto => format!(
            "{} probe timeouts, {} in a row at most",
            c.probe_timeouts, c.most_probe_timeouts
        ),
        Limit::Recovery => format!("{} packets lost, {window}", c.lost_packets),
        Limit::Handshake => match connection.handshake_done_at {
            Some(at) => {
                let at = at.saturating_since(Timestamp::ZERO);
                format!("complete at {}", short(at))
            }
            None => "never complete in this file".to_owned(),
        },
    }
}

fn notes(connection: &Connection) -> Vec<String> {
    let mut notes = Vec::new();
    let c = &connection.counts;
    if c.stream_bytes_received / 10 > c.stream_bytes_sent {
        notes.push(
            "this side mostly received; what limited the transfer is in the file of the other side"
                .to_owned(),
        );
    }
    if connection.window.is_none() {
        notes.push("the file has no congestion window, so nothing counts as window".to_owned());
    }
    if connection.pacing_rate.is_none() {
        notes.push("the file has no pacing rate, so nothing counts as pacing".to_owned());
    }
    notes
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Of {}, the sender was limited by:", short(self.total))?;
        writeln!(f)?;
        writeln!(f, "limit            share        time  stretches  longest")?;
        for cause in &self.causes {
            let longest = cause.longest.map_or(String::new(), |longest| {
                let at = longest.from.saturating_since(Timestamp::ZERO);
                format!(
                    "  {} at {}, record {}",
                    short(longest.length()),
                    short(at),
                    longest.record
                )
            });
            let line = format!(
                "{:<14}{:>4}.{} %  {:>10}  {:>9}{longest}",
                cause.limit.as_str(),
                cause.per_mille / 10,
                cause.per_mille % 10,
                short(cause.time),
                cause.count,
            );
            writeln!(f, "{}", line.trim_end())?;
            if !cause.evidence.is_empty() {
                writeln!(f, "    {}", cause.evidence)?;
            }
        }
        for note in &self.notes {
            writeln!(f, "Note: {note}.")?;
        }
        Ok(())
    }
}
