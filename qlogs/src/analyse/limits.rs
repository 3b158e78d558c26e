//! What kept the sender from sending more, at every instant.
//!
//! ```text
//!                                             | looked at in this order
//!  handshake     1-RTT keys are not there yet v
//!  PTO           from the last sign of life until the probe timeout expires, and until an answer comes
//!  recovery      the window is full, and it was cut
//!  window        the window is full
//!  flow control  the peer's limit of a stream or of the connection is used up
//!  pacing        the pacer has not released the next packet yet
//!  application   none of these: there was nothing to send
//! ```
//!
//! Two of these are known only afterwards. That one waited for a probe timeout shows when it expires; that
//! one waited for the pacer shows when the next packet leaves as soon as it may. Until then the time is kept
//! apart, between two packets sent.

use std::time::Duration;

use units::Timestamp;

use super::connection::{Change, Connection};

/// What limits a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// There was nothing to send.
    Application,
    /// The peer's limit was used up (RFC 9000 section 4.1).
    FlowControl,
    /// The congestion window was full.
    Window,
    /// The pacer spread packets over time (RFC 9002 section 7.7).
    Pacing,
    /// A probe timeout had to expire (RFC 9002 section 6.2).
    Pto,
    /// The window was full after it was cut (RFC 9002 section 7.3.2).
    Recovery,
    /// Keys for data were not there yet (RFC 9001 section 4).
    Handshake,
}

impl Limit {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Application,
        Self::FlowControl,
        Self::Window,
        Self::Pacing,
        Self::Pto,
        Self::Recovery,
        Self::Handshake,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::FlowControl => "flow control",
            Self::Window => "window",
            Self::Pacing => "pacing",
            Self::Pto => "PTO",
            Self::Recovery => "recovery",
            Self::Handshake => "handshake",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// A time without a change of what limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub until: Timestamp,
    /// The record behind which it began.
    pub record: u64,
    /// What limited.
    pub limit: Limit,
}

impl Stretch {
    /// How long it was.
    pub fn length(&self) -> Duration {
        self.until.saturating_since(self.from)
    }
}

/// The stretches of one limit, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) time: Duration,
    pub(crate) count: u64,
    pub(crate) longest: Option<Stretch>,
    /// The smallest and the largest window in that time.
    pub(crate) windows: Option<(u64, u64)>,
}

/// A stretch that may yet turn out to be another's.
#[derive(Debug)]
struct Pending {
    stretch: Stretch,
    window: Option<u64>,
    /// It counts as the pacer's, or as time after the pacer's, by its rate only.
    is_guess: bool,
}

/// Adds up what limited a connection.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    totals: [Total; 7],
    /// The last stretch that is settled, which the next one may lengthen.
    settled: Option<Stretch>,
    /// Since the last packet sent.
    pending: Vec<Pending>,
    /// How many of them were before the last sign of life: no timeout was waited for in them.
    alive: usize,
    last_at: Timestamp,
    last_record: u64,
    /// When the pacer lets the next packet go.
    paced_until: Timestamp,
    /// A probe timeout expired, and nothing was acknowledged since.
    is_probing: bool,
    has_begun: bool,
}

/// Stretches kept apart at most. A sender that does nothing while its metrics change that often is not
/// paced.
const MOST_PENDING: usize = 4_096;

/// How much later than the pacer allowed a packet may leave and still have waited for the pacer.
const SLACK: Duration = Duration::from_millis(1);

impl Limits {
    /// The time up to a record, judged by what was known before it. Call before the record is applied.
    pub(crate) fn advance(&mut self, at: Timestamp, record: u64, connection: &Connection) {
        if !self.has_begun {
            self.has_begun = true;
            self.last_at = at;
        }
        if at > self.last_at {
            let (from, window) = (self.last_at, connection.window);
            for (from, until, limit, is_guess) in self.judge(from, at, connection) {
                let stretch = Stretch {
                    from,
                    until,
                    record: self.last_record,
                    limit,
                };
                self.pending.push(Pending {
                    stretch,
                    window,
                    is_guess,
                });
            }
            self.last_at = at;
            if self.pending.len() > MOST_PENDING {
                self.settle();
            }
        }
        self.last_record = record;
    }

    /// One or two stretches from one instant to another.
    fn judge(
        &self,
        from: Timestamp,
        until: Timestamp,
        connection: &Connection,
    ) -> Vec<(Timestamp, Timestamp, Limit, bool)> {
        let limit = if connection.is_before_handshake() {
            Limit::Handshake
        } else if self.is_probing {
            Limit::Pto
        } else if let Some(limit) = connection.blocked.as_deref().and_then(said) {
            limit
        } else if connection.is_full() {
            match connection.is_in_recovery() {
                true => Limit::Recovery,
                false => Limit::Window,
            }
        } else if connection.is_flow_blocked() {
            Limit::FlowControl
        } else if self.paced_until > from {
            let released = self.paced_until.min(until);
            let mut parts = vec![(from, released, Limit::Pacing, true)];
            if released < until {
                parts.push((released, until, Limit::Application, true));
            }
            return parts;
        } else {
            return vec![(from, until, Limit::Application, true)];
        };
        vec![(from, until, limit, false)]
    }

    /// What the record changed. Call after it was applied.
    pub(crate) fn on_change(&mut self, at: Timestamp, change: &Change, connection: &Connection) {
        if change.is_timeout {
            if !connection.is_before_handshake() {
                for Pending { stretch, .. } in self.pending.iter_mut().skip(self.alive) {
                    if stretch.limit != Limit::Handshake {
                        stretch.limit = Limit::Pto;
                    }
                }
            }
            self.settle();
            self.is_probing = true;
        }
        if change.acked > 0 {
            self.alive = self.pending.len();
            self.is_probing = false;
        }
        let Some(length) = change.sent else { return };
        if !change.is_timeout {
            self.judge_pacing(at, connection);
            self.settle();
        }
        let Some(rate) = connection.pacing_rate.filter(|rate| rate.as_bps() > 0) else {
            self.paced_until = Timestamp::ZERO;
            return;
        };
        let debt = rate.time_for(units::ByteCount::new(length));
        self.paced_until = self.paced_until.max(at) + debt;
    }

    /// A packet leaves: if long after the pacer allowed it, it was the application that had nothing.
    fn judge_pacing(&mut self, at: Timestamp, connection: &Connection) {
        let two = connection.pacing_rate.map_or(Duration::ZERO, |rate| {
            rate.time_for(units::ByteCount::new(2 * connection.datagram()))
        });
        let is_late = at > self.paced_until + (SLACK + two);
        let has_pacer = connection.pacing_rate.is_some();
        for Pending { stretch, .. } in self.pending.iter_mut().filter(|part| part.is_guess) {
            let is_idle = stretch.limit == Limit::Application;
            if is_late && stretch.limit == Limit::Pacing {
                stretch.limit = Limit::Application;
            } else if has_pacer && !is_late && is_idle && stretch.from >= self.paced_until {
                // The little that the pacer was late itself.
                stretch.limit = Limit::Pacing;
            }
        }
    }

    fn settle(&mut self) {
        for part in std::mem::take(&mut self.pending) {
            let Pending {
                stretch, window, ..
            } = part;
            let total = &mut self.totals[stretch.limit.index()];
            total.time += stretch.length();
            if let Some(window) = window {
                let (least, most) = total.windows.unwrap_or((window, window));
                total.windows = Some((least.min(window), most.max(window)));
            }
            let whole = match self.settled {
                Some(last) if last.limit == stretch.limit && last.until == stretch.from => {
                    Stretch {
                        until: stretch.until,
                        ..last
                    }
                }
                _ => {
                    total.count += 1;
                    stretch
                }
            };
            self.settled = Some(whole);
            if total
                .longest
                .is_none_or(|longest| whole.length() > longest.length())
            {
                total.longest = Some(whole);
            }
        }
        self.alive = 0;
    }

    /// The totals, in the order of [`Limit::ALL`].
    pub(crate) fn finish(mut self) -> [Total; 7] {
        // Nothing more was sent, so the pacer held nothing back.
        for Pending { stretch, .. } in self.pending.iter_mut().filter(|part| part.is_guess) {
            if stretch.limit == Limit::Pacing {
                stretch.limit = Limit::Application;
            }
        }
        self.settle();
        self.totals
    }
}

/// The reasons of quic-events-13 for data that waits.
fn said(reason: &str) -> Option<Limit> {
    Some(match reason {
        "pacing" => Limit::Pacing,
        "congestion_control" => Limit::Window,
        "connection_flow_control" | "stream_flow_control" | "stream_id" => Limit::FlowControl,
        "application" => Limit::Application,
        "amplification_protection" => Limit::Handshake,
        _ => return None,
    })
}
