//! The states of a controller, and the one door through which they change.
//!
//! ```text
//!              rtt increased                       conservative rounds completed
//!   SlowStart <==============> ConservativeSlowStart -------------.
//!     |  ^     rtt restored          |                            |
//!     |  |                           | packet lost, CE mark       |
//!     |  '--- persistent ---.        |                            |
//!     |       congestion    |        v     recovery exited        v
//!     |        from each    '-----Recovery ------------> CongestionAvoidance
//!     |         other             ^  ^    <------------           ^
//!     |                           |  |     packet lost, CE mark   |
//!     '--- packet lost, CE mark --'  '                            |
//!     '-------------------- ssthresh reached ---------------------'
//! ```
//!
//! This is the state diagram of RFC 9002 section 7.3 with the conservative slow start of RFC 9406, and two more arrows:
//! when persistent congestion finds the slow-start threshold at the minimum window already, congestion avoidance
//! begins at once; and when the losses behind a cut prove to be spurious, the state before the cut comes back from
//! recovery or congestion avoidance.
//!
//! A model-based controller has states of its own; their diagram is in [`bbr3`](crate::bbr3).

use std::collections::VecDeque;

/// What a controller is doing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// The window grows by every byte acknowledged (RFC 9002 section 7.3.1).
    SlowStart,
    /// Slow start at a quarter of its pace, while it is found out whether a rise of the RTT is the queue's
    /// (RFC 9406 section 4.2).
    ConservativeSlowStart,
    /// The window grows as the algorithm decides (RFC 9002 section 7.3.3).
    CongestionAvoidance,
    /// The window was cut and rests until a packet sent after the cut is acknowledged (RFC 9002 section 7.3.2).
    Recovery,
    /// BBR: the rate doubles every round until the pipe is full (ccwg-bbr-06 section 5.3.1).
    Startup,
    /// BBR: the queue that Startup made is drained (section 5.3.2).
    Drain,
    /// BBR: a little slower than the path, to drain what the probe before left (section 5.3.3.1).
    ProbeBwDown,
    /// BBR: as fast as the path (section 5.3.3.2).
    ProbeBwCruise,
    /// BBR: as fast as the path and without short-term bounds, to fill the pipe before the probe (section 5.3.3.3).
    ProbeBwRefill,
    /// BBR: faster than the path, to find out whether there is more (section 5.3.3.4).
    ProbeBwUp,
    /// BBR: little in flight, to see the round-trip time without queues (section 5.3.4).
    ProbeRtt,
    /// The rate is set by hand and reacts to nothing.
    FixedRate,
}

impl State {
    /// Returns the name the qlog events use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::ConservativeSlowStart => "conservative_slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBwDown => "probe_bw_down",
            Self::ProbeBwCruise => "probe_bw_cruise",
            Self::ProbeBwRefill => "probe_bw_refill",
            Self::ProbeBwUp => "probe_bw_up",
            Self::ProbeRtt => "probe_rtt",
            Self::FixedRate => "fixed_rate",
        }
    }

    /// Whether this is one of the four states in which BBR cycles.
    #[must_use]
    pub const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }

    /// Whether this is a state of BBR.
    const fn is_bbr(self) -> bool {
        self.is_probe_bw() || matches!(self, Self::Startup | Self::Drain | Self::ProbeRtt)
    }

    /// Says whether the diagram above has an arrow from here to `to` that carries `trigger`.
    fn may_become(self, to: Self, trigger: Trigger) -> bool {
        if self.is_bbr() {
            self.bbr_may_become(to, trigger)
        } else {
            self.loss_based_may_become(to, trigger)
        }
    }

    /// The arrows of the diagram in [`bbr3`](crate::bbr3).
    fn bbr_may_become(self, to: Self, trigger: Trigger) -> bool {
        use State::{
            Drain, ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp, ProbeRtt, Startup,
        };
        match trigger {
            Trigger::BandwidthPlateau | Trigger::LossTooHigh => {
                matches!((self, to), (Startup, Drain) | (ProbeBwUp, ProbeBwDown))
            }
            Trigger::Precaution => self == ProbeBwUp && to == ProbeBwDown,
            Trigger::Drained => {
                matches!(
                    (self, to),
                    (Drain, ProbeBwDown) | (ProbeBwDown, ProbeBwCruise)
                )
            }
            Trigger::DrainRoundsOver => self == Drain && to == ProbeBwDown,
            Trigger::ProbeTime | Trigger::CleanProbe => {
                matches!(self, ProbeBwDown | ProbeBwCruise) && to == ProbeBwRefill
            }
            Trigger::Refilled => self == ProbeBwRefill && to == ProbeBwUp,
            Trigger::MinRttExpired => to == ProbeRtt,
            Trigger::ProbeRttDone => matches!(
                (self, to),
                (ProbeRtt, ProbeBwDown | Startup) | (ProbeBwDown, ProbeBwCruise)
            ),
            Trigger::SpuriousLoss => self != ProbeRtt && matches!(to, Startup | ProbeBwRefill),
            _ => false,
        }
    }

    fn loss_based_may_become(self, to: Self, trigger: Trigger) -> bool {
        use State::{CongestionAvoidance, ConservativeSlowStart, Recovery, SlowStart};
        match trigger {
            Trigger::PacketLost | Trigger::EcnCe => {
                matches!(
                    self,
                    SlowStart | ConservativeSlowStart | CongestionAvoidance
                ) && to == Recovery
            }
            Trigger::RecoveryExited => self == Recovery && to == CongestionAvoidance,
            Trigger::SsthreshReached => self == SlowStart && to == CongestionAvoidance,
            Trigger::RttIncreased => self == SlowStart && to == ConservativeSlowStart,
            Trigger::RttRestored => self == ConservativeSlowStart && to == SlowStart,
            Trigger::ConservativeRoundsCompleted => {
                self == ConservativeSlowStart && to == CongestionAvoidance
            }
            Trigger::PersistentCongestion => {
                self != State::FixedRate && matches!(to, SlowStart | CongestionAvoidance)
            }
            Trigger::SpuriousLoss => {
                matches!(self, Recovery | CongestionAvoidance)
                    && matches!(to, SlowStart | ConservativeSlowStart | CongestionAvoidance)
            }
            _ => false,
        }
    }
}

/// Why a state changed.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Trigger {
    /// A packet sent after the last cut was declared lost.
    PacketLost,
    /// The peer reported a new Congestion Experienced mark.
    EcnCe,
    /// The transport established persistent congestion.
    PersistentCongestion,
    /// A packet sent after the cut was acknowledged.
    RecoveryExited,
    /// Slow start filled the window up to the slow-start threshold.
    SsthreshReached,
    /// A round of slow start saw the RTT rise by the threshold of HyStart++.
    RttIncreased,
    /// A round of conservative slow start saw the RTT below where it had risen to.
    RttRestored,
    /// The RTT stayed up for all rounds of conservative slow start.
    ConservativeRoundsCompleted,
    /// All packets whose loss was behind the last cut were acknowledged after all.
    SpuriousLoss,
    /// BBR: sending faster delivered no faster for three rounds.
    BandwidthPlateau,
    /// BBR: more than 2 % of what was in flight was lost or marked.
    LossTooHigh,
    /// BBR: the bytes in flight reached what an earlier probe found to be too much.
    Precaution,
    /// BBR: the bytes in flight are down at what the path holds.
    Drained,
    /// BBR: Drain took as many rounds as it may.
    DrainRoundsOver,
    /// BBR: the wait between two probes is over.
    ProbeTime,
    /// BBR: a probe that stopped early by precaution brought no excess of losses.
    CleanProbe,
    /// BBR: the round that fills the pipe is over.
    Refilled,
    /// BBR: no round-trip time as low as the lowest was seen for five seconds.
    MinRttExpired,
    /// BBR: little was in flight for long enough.
    ProbeRttDone,
}

impl Trigger {
    /// Returns the name the qlog events use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PacketLost => "packet_lost",
            Self::EcnCe => "ecn_ce",
            Self::PersistentCongestion => "persistent_congestion",
            Self::RecoveryExited => "recovery_exited",
            Self::SsthreshReached => "ssthresh_reached",
            Self::RttIncreased => "rtt_increased",
            Self::RttRestored => "rtt_restored",
            Self::ConservativeRoundsCompleted => "conservative_rounds_completed",
            Self::SpuriousLoss => "spurious_loss",
            Self::BandwidthPlateau => "bandwidth_plateau",
            Self::LossTooHigh => "loss_too_high",
            Self::Precaution => "precaution",
            Self::Drained => "drained",
            Self::DrainRoundsOver => "drain_rounds_over",
            Self::ProbeTime => "probe_time",
            Self::CleanProbe => "clean_probe",
            Self::Refilled => "refilled",
            Self::MinRttExpired => "min_rtt_expired",
            Self::ProbeRttDone => "probe_rtt_done",
        }
    }
}

/// One change of state.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state that ended.
    pub from: State,
    /// The state that began.
    pub to: State,
    /// Why.
    pub trigger: Trigger,
}

/// The current state and the changes nobody has asked for yet.
#[derive(Clone, Debug)]
pub(crate) struct StateMachine {
    current: State,
    unread: VecDeque<Transition>,
}

/// Changes kept for a reader who does not come; beyond it the oldest are forgotten, so that a controller
/// without a log does not grow. One feedback event makes four at most.
const UNREAD_LIMIT: usize = 64;

impl StateMachine {
    pub(crate) fn new(initial: State) -> Self {
        Self {
            current: initial,
            unread: VecDeque::new(),
        }
    }

    /// Changes the state; nothing happens if it is the current one already.
    ///
    /// Panics in debug builds if the diagram has no such arrow.
    pub(crate) fn transition_to(&mut self, to: State, trigger: Trigger) {
        let from = self.current;
        if from == to {
            return;
        }
        debug_assert!(
            from.may_become(to, trigger),
            "no arrow from {from:?} to {to:?} on {trigger:?}"
        );
        if self.unread.len() == UNREAD_LIMIT {
            self.unread.pop_front();
        }
        self.unread.push_back(Transition { from, to, trigger });
        self.current = to;
    }

    pub(crate) fn take_transition(&mut self) -> Option<Transition> {
        self.unread.pop_front()
    }

    pub(crate) fn current(&self) -> State {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_once_and_in_order() {
        let mut machine = StateMachine::new(State::SlowStart);
        machine.transition_to(State::Recovery, Trigger::PacketLost);
        machine.transition_to(State::CongestionAvoidance, Trigger::RecoveryExited);
        let first = machine.take_transition().map(|t| (t.from, t.to));
        assert_eq!(first, Some((State::SlowStart, State::Recovery)));
        let second = machine.take_transition().map(|t| t.trigger.as_str());
        assert_eq!(second, Some("recovery_exited"));
        assert_eq!(machine.take_transition(), None);
    }

    #[test]
    fn staying_is_not_a_change() {
        let mut machine = StateMachine::new(State::Recovery);
        machine.transition_to(State::Recovery, Trigger::PacketLost);
        assert_eq!(machine.take_transition(), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "no arrow from CongestionAvoidance to SlowStart")]
    fn an_arrow_that_is_not_in_the_diagram_is_refused() {
        let mut machine = StateMachine::new(State::CongestionAvoidance);
        machine.transition_to(State::SlowStart, Trigger::SsthreshReached);
    }

    #[test]
    fn an_unread_queue_forgets_its_oldest_entries_and_stays_a_chain() {
        let mut machine = StateMachine::new(State::CongestionAvoidance);
        for _ in 0..1_000 {
            machine.transition_to(State::Recovery, Trigger::EcnCe);
            machine.transition_to(State::CongestionAvoidance, Trigger::RecoveryExited);
        }
        let mut kept = 0;
        let mut previous: Option<Transition> = None;
        while let Some(next) = machine.take_transition() {
            assert!(previous.is_none_or(|p| p.to == next.from));
            previous = Some(next);
            kept += 1;
        }
        assert_eq!(kept, UNREAD_LIMIT);
        assert_eq!(previous.map(|p| p.to), Some(machine.current()));
    }
}
