//! Tells a controller, event by event, what a network would have said: every figure of a sample is the test's choice.

use std::time::Duration;

use cc::{
    AckedPacket, Algorithm, Controller, FeedbackEvent, LostPacket, PathModel, RateSample,
    RttEstimator, SentEvent, State, Transition,
};
use units::{ByteCount, Rate, Timestamp};

pub(crate) const PACKET: ByteCount = ByteCount::new(1_250);
pub(crate) const RTT: Duration = Duration::from_millis(40);

/// At this rate the path holds 400 packets within [`RTT`].
pub(crate) const RATE: Rate = Rate::from_mbps(100);

pub(crate) const fn packets(count: u64) -> ByteCount {
    ByteCount::new(PACKET.as_u64() * count)
}

/// One event. The default acknowledges ten packets of a path that is just full, in the middle of a round.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) acked: u64,
    pub(crate) rate: Option<Rate>,
    pub(crate) rtt: Duration,
    /// Packets in flight afterwards.
    pub(crate) in_flight: u64,
    /// Packets in flight when the packet left that the sample speaks for.
    pub(crate) tx_in_flight: u64,
    /// Packets delivered since then.
    pub(crate) delivered: u64,
    /// Packets lost since then.
    pub(crate) lost: u64,
    pub(crate) is_app_limited: bool,
    pub(crate) starts_round: bool,
    /// Bytes delivered when the packet left that the sample speaks for, if that is to be told.
    pub(crate) prior_delivered: Option<u64>,
    /// The window was full on the way.
    pub(crate) is_window_full: bool,
    pub(crate) losses: Vec<LostPacket>,
    pub(crate) late: Vec<LostPacket>,
    pub(crate) ce_count: u64,
    pub(crate) is_persistent: bool,
    pub(crate) send_tag: u32,
}

impl Default for Ack {
    fn default() -> Self {
        Self {
            acked: 10,
            rate: Some(RATE),
            rtt: RTT,
            in_flight: 400,
            tx_in_flight: 400,
            delivered: 400,
            lost: 0,
            is_app_limited: false,
            starts_round: false,
            prior_delivered: None,
            is_window_full: false,
            losses: Vec::new(),
            late: Vec::new(),
            ce_count: 0,
            is_persistent: false,
            send_tag: 0,
        }
    }
}

pub(crate) struct Script {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) now: Timestamp,
    pub(crate) total_delivered: u64,
    rtt: RttEstimator,
    next_lost: u64,
    pub(crate) transitions: Vec<Transition>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::of(Algorithm::Bbr3)
    }

    pub(crate) fn of(algorithm: Algorithm) -> Self {
        Self::with_seed(algorithm, 0)
    }

    pub(crate) fn with_seed(algorithm: Algorithm, seed: u64) -> Self {
        let mut script = Self {
            controller: algorithm.build_with_seed(PACKET, seed),
            // Long after the beginning of time: a clock that was never set shows.
            now: Timestamp::from_secs(1_000),
            total_delivered: 0,
            rtt: RttEstimator::new(),
            next_lost: 1_000,
            transitions: Vec::new(),
        };
        script.send(10, 10, true);
        script.wait(RTT);
        script
    }

    /// A controller that found [`RATE`] and [`RTT`] and is in Drain with twice the path's volume in flight.
    pub(crate) fn drain(algorithm: Algorithm) -> Self {
        Self::drain_at(algorithm, RATE)
    }

    pub(crate) fn drain_at(algorithm: Algorithm, rate: Rate) -> Self {
        let mut script = Self::of(algorithm);
        for part in [8, 4, 2, 1, 1, 1, 1] {
            script.round(Ack {
                rate: Some(rate.scale(1, part)),
                in_flight: 800,
                acked: 400,
                ..Ack::default()
            });
        }
        script.assert_state(State::Drain);
        script
    }

    pub(crate) fn cruise(algorithm: Algorithm) -> Self {
        let mut script = Self::drain(algorithm);
        // What is enough for the end of Drain is enough for the end of DOWN.
        script.ack(Ack {
            in_flight: 390,
            ..Ack::default()
        });
        script.assert_state(State::ProbeBwCruise);
        // The first round of the cycle, after which the bandwidth filter has moved on.
        script.round(Ack::default());
        script
    }

    /// A controller in ProbeBW_DOWN that Drain has left with too much in flight.
    pub(crate) fn down(algorithm: Algorithm) -> Self {
        let mut script = Self::drain(algorithm);
        for _ in 0..4 {
            script.round(Ack {
                in_flight: 700,
                ..Ack::default()
            });
        }
        script.assert_state(State::ProbeBwDown);
        script
    }

    pub(crate) fn refill(algorithm: Algorithm) -> Self {
        let mut script = Self::cruise(algorithm);
        script.play_until_refill();
        script
    }

    pub(crate) fn up(algorithm: Algorithm) -> Self {
        let mut script = Self::refill(algorithm);
        script.round(Ack::default());
        script.assert_state(State::ProbeBwUp);
        script
    }

    /// A controller in ProbeBW_DOWN after a probe that losses ended; the long-term bound is 299 packets.
    pub(crate) fn bounded_down(algorithm: Algorithm) -> Self {
        let mut script = Self::up(algorithm);
        let loss = script.lost_probe_packet(300, 7);
        script.ack(Ack {
            losses: vec![loss],
            in_flight: 290,
            tx_in_flight: 250,
            ..Ack::default()
        });
        script.assert_state(State::ProbeBwDown);
        assert_eq!(script.model().inflight_longterm, Some(packets(299)));
        script
    }

    /// The same in the next probe, with the window at its bound and 200 packets in flight.
    pub(crate) fn bounded_up(algorithm: Algorithm) -> Self {
        let mut script = Self::bounded_down(algorithm);
        script.play_until_refill();
        for _ in 0..10 {
            script.ack(bounded());
        }
        script.round(bounded());
        script.assert_state(State::ProbeBwUp);
        assert_eq!(script.window(), packets(299));
        script
    }

    pub(crate) fn play_until_refill(&mut self) {
        for _ in 0..40 {
            if self.state() == State::ProbeBwRefill {
                return;
            }
            self.wait(Duration::from_millis(100));
            self.ack(bounded());
        }
        panic!("no probe after four seconds in {:?}", self.state());
    }

    #[track_caller]
    pub(crate) fn assert_state(&self, state: State) {
        assert_eq!(self.state(), state);
    }

    pub(crate) fn state(&self) -> State {
        self.controller.state()
    }

    pub(crate) fn model(&self) -> PathModel {
        self.controller.path_model().expect("BBR has a model")
    }

    pub(crate) fn window(&self) -> ByteCount {
        self.controller.window()
    }

    pub(crate) fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate(&self.rtt)
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Sends `count` packets after which `in_flight` are in flight.
    pub(crate) fn send(&mut self, count: u64, in_flight: u64, was_idle: bool) {
        let sent = SentEvent {
            bytes: packets(count),
            in_flight: packets(in_flight),
            is_app_limited: false,
            was_idle,
        };
        self.controller.on_sent(self.now, &sent);
        self.note_transitions();
    }

    /// Waits a round trip and lets an event begin a round.
    pub(crate) fn round(&mut self, ack: Ack) {
        self.wait(RTT);
        self.ack(Ack {
            starts_round: true,
            ..ack
        });
    }

    /// Makes up a packet of the latest probe that is lost with `lost` packets in all since it left.
    pub(crate) fn lost_probe_packet(&mut self, tx_in_flight: u64, lost: u64) -> LostPacket {
        LostPacket {
            send_tag: self.controller.send_tag(),
            tx_in_flight: packets(tx_in_flight),
            lost_since_sent: packets(lost),
            ..self.lost_packet()
        }
    }

    /// Makes up a lost packet that belongs to no probe; each with a number apart from the one before.
    pub(crate) fn lost_packet(&mut self) -> LostPacket {
        self.next_lost += 10;
        LostPacket {
            packet_number: self.next_lost,
            sent_at: self.now.saturating_sub(RTT),
            size: PACKET,
            is_app_limited: false,
            tx_in_flight: packets(400),
            lost_since_sent: PACKET,
            send_tag: 0,
        }
    }

    /// Delivers an event that knows of losses and nothing else: the timer's.
    pub(crate) fn lose(&mut self, losses: Vec<LostPacket>) {
        self.ack(Ack {
            acked: 0,
            losses,
            ..Ack::default()
        });
    }

    pub(crate) fn ack(&mut self, ack: Ack) {
        let sent_at = self.now.saturating_sub(ack.rtt);
        if ack.is_window_full {
            // In time before this event; the window is full with what is in flight then.
            let sent = SentEvent {
                bytes: PACKET,
                in_flight: self.window(),
                is_app_limited: false,
                was_idle: false,
            };
            self.controller.on_sent(self.now, &sent);
        }
        let before = self.total_delivered;
        self.total_delivered += packets(ack.acked).as_u64();
        let acked: Vec<AckedPacket> = (0..ack.acked)
            .map(|number| AckedPacket {
                packet_number: number,
                sent_at,
                size: PACKET,
                is_app_limited: ack.is_app_limited,
                tx_in_flight: packets(ack.tx_in_flight),
            })
            .collect();
        let latest_rtt = (ack.acked > 0).then_some(ack.rtt);
        if let Some(rtt) = latest_rtt {
            self.rtt.update(rtt, Duration::ZERO);
        }
        let sample = (ack.acked > 0).then(|| RateSample {
            delivery_rate: ack.rate,
            delivered: packets(ack.delivered),
            interval: ack.rtt,
            is_app_limited: ack.is_app_limited,
            prior_delivered: ack.prior_delivered.unwrap_or(if ack.starts_round {
                before
            } else {
                0
            }),
            total_delivered: self.total_delivered,
            lost: packets(ack.lost),
            tx_in_flight: packets(ack.tx_in_flight),
            send_tag: ack.send_tag,
        });
        let event = FeedbackEvent {
            acked: &acked,
            lost: &ack.losses,
            late: &ack.late,
            is_persistent_congestion: ack.is_persistent,
            ce_count: ack.ce_count,
            largest_acked_sent_at: (ack.acked > 0).then_some(sent_at),
            in_flight_before: packets(ack.in_flight + ack.acked),
            in_flight: packets(ack.in_flight),
            rtt: &self.rtt,
            latest_rtt,
            sample,
            is_round_start: false,
            round_count: 0,
        };
        self.controller.on_feedback(self.now, &event);
        self.note_transitions();
    }

    fn note_transitions(&mut self) {
        while let Some(transition) = self.controller.take_transition() {
            self.transitions.push(transition);
        }
    }

    /// The triggers of all changes so far.
    pub(crate) fn triggers(&self) -> Vec<&'static str> {
        let all = self.transitions.iter();
        all.map(|transition| transition.trigger.as_str()).collect()
    }
}

/// An event below the long-term bound of [`Script::bounded_down`].
pub(crate) fn bounded() -> Ack {
    Ack {
        in_flight: 200,
        tx_in_flight: 250,
        delivered: 250,
        ..Ack::default()
    }
}
