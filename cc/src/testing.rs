//! A path for tests: tell a controller a story, see what it does.
//!
//! [`TestPath`] is a sender without a network. The test says what leaves, what is acknowledged, what is lost and how
//! much time passes; the path keeps the books a real sender would keep (RTT, delivery rate, rounds, in flight)
//! and hands the controller complete events.

use std::collections::VecDeque;
use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::algorithm::Algorithm;
use crate::controller::Controller;
use crate::delivery::{Sampler, SendState};
use crate::event::{AckedPacket, FeedbackEvent, LostPacket, SentEvent};
use crate::round::RoundCounter;
use crate::rtt::RttEstimator;
use crate::state::{State, Transition};

/// A controller and the books of its sender.
pub struct TestPath {
    controller: Box<dyn Controller>,
    datagram: ByteCount,
    now: Timestamp,
    outstanding: VecDeque<Outstanding>,
    /// What was declared lost and has not turned up, oldest declaration first.
    missing: VecDeque<LostPacket>,
    in_flight: ByteCount,
    next_packet_number: u64,
    is_app_limited: bool,
    rtt: RttEstimator,
    sampler: Sampler,
    rounds: RoundCounter,
    transitions: Vec<Transition>,
}

#[derive(Copy, Clone, Debug)]
struct Outstanding {
    packet_number: u64,
    sent_at: Timestamp,
    size: ByteCount,
    is_app_limited: bool,
    state: SendState,
}

/// What one datagram of feedback says about the oldest packets in flight.
///
/// Losses come first in send order, then acknowledgements, as a receiver would report a hole.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Feedback {
    /// How many of the oldest packets are lost.
    pub lost: usize,
    /// How many of the packets after those are acknowledged.
    pub acked: usize,
    /// How many of the packets declared lost earlier, longest ago first, are acknowledged after all.
    pub late: usize,
    /// Newly reported Congestion Experienced marks.
    pub ce_count: u64,
    /// Whether the transport found persistent congestion.
    pub is_persistent_congestion: bool,
}

impl TestPath {
    /// Makes a path for 1,200-byte datagrams, at one second, so that there is a time before.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        let datagram = ByteCount::new(1_200);
        Self::with_controller(algorithm.build(datagram))
    }

    /// Makes a path for a controller built elsewhere; datagrams are as large as it reckons with.
    #[must_use]
    pub fn with_controller(controller: Box<dyn Controller>) -> Self {
        Self {
            datagram: controller.max_datagram_size(),
            controller,
            now: Timestamp::from_secs(1),
            outstanding: VecDeque::new(),
            missing: VecDeque::new(),
            in_flight: ByteCount::ZERO,
            next_packet_number: 0,
            is_app_limited: false,
            rtt: RttEstimator::new(),
            sampler: Sampler::new(),
            rounds: RoundCounter::new(),
            transitions: Vec::new(),
        }
    }

    /// Sends `count` full datagrams at once, whatever the window says.
    pub fn send(&mut self, count: usize) {
        for _ in 0..count {
            self.send_bytes(self.datagram);
        }
    }

    /// Sends one packet of `size`.
    pub fn send_bytes(&mut self, size: ByteCount) {
        let was_idle = self.in_flight == ByteCount::ZERO;
        let state = SendState {
            send_tag: self.controller.send_tag(),
            ..self.sampler.on_sent(self.now, self.in_flight, size)
        };
        self.outstanding.push_back(Outstanding {
            packet_number: self.next_packet_number,
            sent_at: self.now,
            size,
            is_app_limited: self.is_app_limited,
            state,
        });
        self.next_packet_number += 1;
        self.in_flight += size;
        let sent = SentEvent {
            bytes: size,
            in_flight: self.in_flight,
            is_app_limited: self.is_app_limited,
            was_idle,
        };
        self.controller.on_sent(self.now, &sent);
        self.note_transitions();
    }

    fn note_transitions(&mut self) {
        while let Some(transition) = self.controller.take_transition() {
            self.transitions.push(transition);
        }
    }

    /// Sends full datagrams as long as the window has room for one; returns how many.
    pub fn fill_window(&mut self) -> usize {
        let mut count = 0;
        while self.in_flight + self.datagram <= self.controller.window() {
            self.send(1);
            count += 1;
        }
        count
    }

    /// Acknowledges the `count` oldest packets in flight in one datagram.
    #[track_caller]
    pub fn ack(&mut self, count: usize) {
        self.feedback(Feedback {
            acked: count,
            ..Feedback::default()
        });
    }

    /// Acknowledges the `count` newest packets in flight in one datagram, ahead of the older ones.
    #[track_caller]
    pub fn ack_newest(&mut self, count: usize) {
        let known = self.outstanding.len();
        assert!(count <= known, "only {known} packets are in flight");
        self.outstanding.rotate_right(count);
        self.ack(count);
    }

    /// Declares the `count` oldest packets in flight lost.
    #[track_caller]
    pub fn lose(&mut self, count: usize) {
        self.feedback(Feedback {
            lost: count,
            ..Feedback::default()
        });
    }

    /// Acknowledges in one datagram `count` packets that were declared lost before, those declared longest ago first.
    #[track_caller]
    pub fn ack_late(&mut self, count: usize) {
        self.feedback(Feedback {
            late: count,
            ..Feedback::default()
        });
    }

    /// Delivers any mix of news in one datagram.
    ///
    /// Panics if it speaks of more packets than are in flight or, for late ones, than are missing.
    #[track_caller]
    pub fn feedback(&mut self, feedback: Feedback) {
        let known = self.outstanding.len();
        assert!(
            feedback.lost + feedback.acked <= known,
            "{feedback:?} speaks of more than the {known} packets in flight"
        );
        assert!(
            feedback.late <= self.missing.len(),
            "{feedback:?} speaks of more than the {} packets missing",
            self.missing.len()
        );
        let in_flight_before = self.in_flight;
        let late: Vec<LostPacket> = self.missing.drain(..feedback.late).collect();
        for packet in &late {
            self.sampler.on_late(self.now, packet.size);
        }
        let mut lost = Vec::new();
        for packet in self.outstanding.drain(..feedback.lost) {
            self.sampler.on_lost(packet.size);
            self.in_flight -= packet.size;
            lost.push(declared_lost(
                packet,
                self.sampler.lost_since(&packet.state),
            ));
        }
        self.missing.extend(&lost);
        let acked: Vec<Outstanding> = self.outstanding.drain(..feedback.acked).collect();
        for packet in &acked {
            self.sampler
                .on_acked(self.now, &packet.state, packet.sent_at, packet.size);
            self.in_flight -= packet.size;
        }
        let newest = acked.last();
        let latest_rtt = newest.map(|packet| self.now.saturating_since(packet.sent_at));
        if let Some(latest_rtt) = latest_rtt {
            self.rtt.update(latest_rtt, Duration::ZERO);
        }
        let marked = self.datagram * feedback.ce_count;
        self.sampler.on_marked(marked);
        let sample = self.sampler.finish(self.now, self.rtt.minimum());
        let delivered = self.sampler.delivered();
        let is_round_start =
            newest.is_some_and(|packet| self.rounds.on_acked(packet.state.delivered, delivered));
        let largest_acked_sent_at = newest.map(|packet| packet.sent_at);
        let acked: Vec<AckedPacket> = acked.into_iter().map(acknowledged).collect();
        let event = FeedbackEvent {
            acked: &acked,
            lost: &lost,
            late: &late,
            is_persistent_congestion: feedback.is_persistent_congestion,
            ce_count: feedback.ce_count,
            largest_acked_sent_at,
            in_flight_before,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            latest_rtt,
            sample,
            is_round_start,
            round_count: self.rounds.count(),
        };
        self.controller.on_feedback(self.now, &event);
        if self.controller.is_self_limited() {
            self.sampler.on_app_limited(self.in_flight);
        }
        self.note_transitions();
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Plays one round trip in the shape that drains the path: the window leaves at once and is acknowledged at
    /// once, `rtt` later.
    #[track_caller]
    pub fn batch_round(&mut self, rtt: Duration) {
        let count = self.fill_window();
        self.wait(rtt);
        self.ack(count);
    }

    /// Plays `rounds` such round trips and returns the windows after each.
    #[track_caller]
    pub fn batch_rounds(&mut self, rtt: Duration, rounds: u32) -> Vec<ByteCount> {
        let round = |_| {
            self.batch_round(rtt);
            self.window()
        };
        (0..rounds).map(round).collect()
    }

    /// Plays `rounds` round trips with a window that leaves and is acknowledged packet by packet, evenly spread, and
    /// returns the windows after each. It begins with nothing in flight and spreads the first window itself.
    #[track_caller]
    pub fn even_rounds(&mut self, rtt: Duration, rounds: u32) -> Vec<ByteCount> {
        let count = self.controller.window().as_u64() / self.datagram.as_u64();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for _ in 0..count {
            self.send(1);
            self.wait(rtt / count);
        }
        let start = self
            .oldest_sent_at()
            .map_or(self.now, |sent_at| sent_at + rtt);
        let mut windows = Vec::new();
        for round in 1..=rounds {
            self.ack_in_time(rtt, start + rtt * round);
            windows.push(self.window());
        }
        windows
    }

    /// Acknowledges each packet `rtt` after it left, and fills the window after each, until `end`.
    #[track_caller]
    pub fn ack_in_time(&mut self, rtt: Duration, end: Timestamp) {
        while let Some(sent_at) = self.oldest_sent_at() {
            let due = (sent_at + rtt).max(self.now);
            if due >= end {
                break;
            }
            self.now = due;
            self.ack(1);
            self.fill_window();
        }
    }

    /// Fills the window, loses the first packet of it and has the rest acknowledged at once, `rtt` later. Nothing is
    /// in flight then, and what is sent next counts for growth.
    #[track_caller]
    pub fn cut(&mut self, rtt: Duration) {
        let count = self.fill_window();
        self.wait(rtt);
        self.feedback(Feedback {
            lost: 1,
            acked: count - 1,
            ..Feedback::default()
        });
        self.wait(Duration::from_nanos(1));
    }

    /// Grows the window to `count` full datagrams in slow start, `rtt` per round; nothing is in flight afterwards.
    ///
    /// The last flight is larger than the growth it is to cause; what is too much of it leaves for lack of more data
    /// and does not count.
    #[track_caller]
    pub fn grow_to(&mut self, count: u64, rtt: Duration) {
        let goal = self.datagram * count;
        let datagram = self.datagram.as_u64();
        let datagrams =
            |bytes: ByteCount| usize::try_from(bytes.as_u64() / datagram).unwrap_or(usize::MAX);
        while self.controller.window() < goal {
            assert_eq!(self.state(), State::SlowStart);
            let fits = datagrams(self.controller.window());
            let wanted = fits.min(datagrams(goal - self.controller.window()));
            self.send(wanted);
            if wanted + 1 < fits {
                let was_app_limited = self.is_app_limited;
                self.is_app_limited = true;
                self.send(fits - 1 - wanted);
                self.is_app_limited = was_app_limited;
            }
            self.wait(rtt);
            self.ack(self.outstanding.len());
        }
        assert_eq!(self.controller.window(), goal);
    }

    /// Sets whether packets sent from now on leave for lack of more data.
    pub fn set_app_limited(&mut self, is_app_limited: bool) {
        self.is_app_limited = is_app_limited;
        if is_app_limited {
            self.sampler.on_app_limited(self.in_flight);
            self.controller.on_app_limited(self.now);
        }
    }

    /// Changes the size of datagrams.
    pub fn set_datagram_size(&mut self, size: ByteCount) {
        self.datagram = size;
        self.controller.on_mtu_change(self.now, size);
        self.note_transitions();
    }

    /// Returns the controller's window.
    #[must_use]
    pub fn window(&self) -> ByteCount {
        self.controller.window()
    }

    /// Returns the controller's pacing rate, given the path's RTT.
    #[must_use]
    pub fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate(&self.rtt)
    }

    /// Returns the controller's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.controller.state()
    }

    /// Returns all changes of state so far.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// Returns the bytes in flight.
    #[must_use]
    pub fn in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// Returns the number of packets in flight.
    #[must_use]
    pub fn packets_in_flight(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns the number of packets declared lost that have not turned up.
    #[must_use]
    pub fn packets_missing(&self) -> usize {
        self.missing.len()
    }

    /// Returns when the oldest packet in flight left.
    #[must_use]
    pub fn oldest_sent_at(&self) -> Option<Timestamp> {
        self.outstanding.front().map(|packet| packet.sent_at)
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the RTT estimates.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the controller.
    #[must_use]
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// Returns the controller, to be told things that the path has no word for.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.controller.as_mut()
    }
}

fn acknowledged(packet: Outstanding) -> AckedPacket {
    AckedPacket {
        packet_number: packet.packet_number,
        sent_at: packet.sent_at,
        size: packet.size,
        is_app_limited: packet.is_app_limited,
        tx_in_flight: packet.state.tx_in_flight,
    }
}

fn declared_lost(packet: Outstanding, lost_since_sent: ByteCount) -> LostPacket {
    LostPacket {
        packet_number: packet.packet_number,
        sent_at: packet.sent_at,
        size: packet.size,
        is_app_limited: packet.is_app_limited,
        tx_in_flight: packet.state.tx_in_flight,
        lost_since_sent,
        send_tag: packet.state.send_tag,
    }
}
