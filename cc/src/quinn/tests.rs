//! What the controller hears of what quinn calls.

use units::Rate;

use super::*;
use crate::state::{State, Transition};

const PACKET: ByteCount = ByteCount::new(1_200);
const RTT: Duration = Duration::from_millis(20);

/// What a controller was told, without the borrow.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    Sent {
        in_flight: u64,
        was_idle: bool,
    },
    Feedback {
        acked: usize,
        lost_bytes: Vec<u64>,
        ce_count: u64,
        in_flight_before: u64,
        in_flight: u64,
        latest_rtt: Option<Duration>,
        is_round_start: bool,
    },
    AppLimited,
    Mtu(u64),
}

type Story = Arc<Mutex<Vec<Heard>>>;

/// A controller that writes down what it hears.
struct Recorder(Story);

impl Recorder {
    fn note(&self, heard: Heard) {
        self.0.lock().expect("nobody panics with it").push(heard);
    }
}

impl Model for Recorder {
    fn on_sent(&mut self, _now: Timestamp, sent: &SentEvent) {
        self.note(Heard::Sent {
            in_flight: sent.in_flight.as_u64(),
            was_idle: sent.was_idle,
        });
    }

    fn on_feedback(&mut self, _now: Timestamp, event: &FeedbackEvent<'_>) {
        self.note(Heard::Feedback {
            acked: event.acked.len(),
            lost_bytes: event.lost.iter().map(|lost| lost.size.as_u64()).collect(),
            ce_count: event.ce_count,
            in_flight_before: event.in_flight_before.as_u64(),
            in_flight: event.in_flight.as_u64(),
            latest_rtt: event.latest_rtt,
            is_round_start: event.is_round_start,
        });
    }

    fn on_app_limited(&mut self, _now: Timestamp) {
        self.note(Heard::AppLimited);
    }

    fn on_mtu_change(&mut self, _now: Timestamp, max_datagram_size: ByteCount) {
        self.note(Heard::Mtu(max_datagram_size.as_u64()));
    }

    fn window(&self) -> ByteCount {
        PACKET * 10
    }

    fn pacing_rate(&self, _rtt: &RttEstimator) -> Rate {
        Rate::INFINITE
    }

    fn ssthresh(&self) -> Option<ByteCount> {
        None
    }

    fn state(&self) -> State {
        State::FixedRate
    }

    fn take_transition(&mut self) -> Option<Transition> {
        None
    }

    fn minimum_window(&self) -> ByteCount {
        PACKET * 2
    }

    fn max_datagram_size(&self) -> ByteCount {
        PACKET
    }

    fn name(&self) -> &'static str {
        "recorder"
    }

    fn clone_box(&self) -> Box<dyn Model> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}

/// An adapter whose controller writes down, and the clock of its story.
struct Script {
    adapter: Adapter,
    story: Story,
    now: Instant,
}

#[expect(
    clippy::disallowed_methods,
    reason = "an instant can only be had from the clock; nothing depends on its value"
)]
fn base() -> Instant {
    Instant::now()
}

impl Script {
    fn new() -> Self {
        let story = Story::default();
        let now = base();
        Self {
            adapter: Adapter::new(Box::new(Recorder(Arc::clone(&story))), now),
            story,
            now,
        }
    }

    fn send(&mut self, count: u64) -> Instant {
        self.adapter.on_sent(self.now, PACKET.as_u64() * count, 0);
        self.now
    }

    /// What `on_ack` does, for which quinn lends an estimator that nobody can make.
    fn ack(&mut self, sent: Instant) {
        let sender = self.adapter.sender();
        sender.begin_frame(self.now);
        sender.on_acked(sent, PACKET, false);
    }

    fn end_acks(&mut self, in_flight: u64) {
        let in_flight = PACKET.as_u64() * in_flight;
        self.adapter.on_end_acks(self.now, in_flight, false, None);
    }

    fn lose(&mut self, sent: Instant, count: u64) {
        let bytes = PACKET.as_u64() * count;
        self.adapter
            .on_congestion_event(self.now, sent, false, bytes);
    }

    /// Returns what the controller heard since the last call, without asking the adapter anything.
    fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.story.lock().expect("nobody panics with it"))
    }
}

fn feedback(acked: usize, lost: &[u64], in_flight_before: u64, in_flight: u64) -> Heard {
    Heard::Feedback {
        acked,
        lost_bytes: lost.iter().map(|count| PACKET.as_u64() * count).collect(),
        ce_count: 0,
        in_flight_before: PACKET.as_u64() * in_flight_before,
        in_flight: PACKET.as_u64() * in_flight,
        latest_rtt: (acked > 0).then_some(RTT),
        is_round_start: acked > 0,
    }
}

#[test]
fn an_ack_frame_its_losses_and_its_mark_are_one_event() {
    let mut script = Script::new();
    let sent = script.send(10);
    script.now += RTT;
    script.heard();
    script.ack(sent);
    script.ack(sent);
    script.end_acks(8);
    script.lose(sent, 3);
    script
        .adapter
        .on_congestion_event(script.now, sent, false, 0);
    assert_eq!(script.heard(), [], "nobody has asked yet");
    assert_eq!(script.adapter.window(), 12_001);
    let mut expected = feedback(2, &[3], 10, 5);
    if let Heard::Feedback { ce_count, .. } = &mut expected {
        *ce_count = 1;
    }
    assert_eq!(script.heard(), [expected]);
    assert_eq!(script.adapter.window(), 12_001);
    assert_eq!(script.heard(), [], "it is told once");
}

#[test]
fn two_ack_frames_at_one_instant_are_two_events() {
    let mut script = Script::new();
    let first = script.send(2);
    script.now += RTT;
    script.heard();
    script.ack(first);
    script.end_acks(1);
    script.ack(first);
    assert_eq!(script.heard(), [feedback(1, &[], 2, 1)]);
    script.end_acks(0);
    script.send(1);
    let second = script.heard();
    let [
        Heard::Feedback {
            acked,
            latest_rtt,
            in_flight,
            ..
        },
        Heard::Sent { was_idle, .. },
    ] = &second[..]
    else {
        panic!("{second:?}");
    };
    assert_eq!((*acked, *in_flight, *was_idle), (1, 0, true));
    assert_eq!(*latest_rtt, None, "it left no later than the one before");
}

#[test]
fn losses_found_by_a_timer_are_an_event_of_their_own() {
    let mut script = Script::new();
    let sent = script.send(10);
    script.now += RTT;
    script.heard();
    script.ack(sent);
    script.end_acks(9);
    script.now += RTT;
    script.lose(sent, 4);
    assert_eq!(script.heard(), [feedback(1, &[], 10, 9)]);
    script.send(2);
    let sent = Heard::Sent {
        in_flight: PACKET.as_u64() * 7,
        was_idle: false,
    };
    assert_eq!(script.heard(), [feedback(0, &[4], 9, 5), sent]);
}

#[test]
fn losing_everything_makes_the_sender_idle() {
    let mut script = Script::new();
    let sent = script.send(3);
    script.now += RTT;
    script.lose(sent, 3);
    script.heard();
    script.send(1);
    let sent = Heard::Sent {
        in_flight: PACKET.as_u64(),
        was_idle: true,
    };
    assert_eq!(script.heard(), [feedback(0, &[3], 3, 0), sent]);
}

#[test]
fn bare_acks_do_not_count_as_in_flight() {
    let mut script = Script::new();
    for _ in 0..1_000 {
        script.adapter.on_sent(script.now, 45, 0);
    }
    script.send(1);
    let sent = Heard::Sent {
        in_flight: PACKET.as_u64(),
        was_idle: true,
    };
    assert_eq!(script.heard(), [sent]);
}

#[test]
fn lack_of_data_is_told_before_the_acknowledgements_that_found_it() {
    let mut script = Script::new();
    let sent = script.send(1);
    script.now += RTT;
    script.heard();
    script.ack(sent);
    script.adapter.on_end_acks(script.now, 0, true, None);
    script.adapter.window();
    assert_eq!(script.heard(), [Heard::AppLimited, feedback(1, &[], 1, 0)]);
    // The mark of an ACK frame without packets of ours does not stick to the next event.
    script.adapter.on_end_acks(script.now, 0, true, None);
    script.now += RTT;
    script.lose(sent, 1);
    script.adapter.window();
    assert_eq!(script.heard(), [feedback(0, &[1], 1, 0)]);
}

#[test]
fn an_acknowledged_probe_that_nobody_announced_is_taken() {
    let mut script = Script::new();
    script.now += RTT;
    let sent = script.now;
    script.now += RTT;
    script.ack(sent);
    script.end_acks(0);
    script.adapter.on_mtu_update(1_452);
    assert_eq!(script.heard(), [Heard::Mtu(1_452)]);
    script.adapter.window();
    let mut expected = feedback(1, &[], 1, 0);
    if let Heard::Feedback { is_round_start, .. } = &mut expected {
        *is_round_start = false;
    }
    assert_eq!(script.heard(), [expected]);
}

#[test]
fn a_copy_has_nothing_in_flight() {
    let mut script = Script::new();
    script.send(5);
    let mut copy = script.adapter.clone_box();
    script.heard();
    copy.on_sent(script.now, PACKET.as_u64(), 9);
    script.send(1);
    let sent = |count, was_idle| Heard::Sent {
        in_flight: PACKET.as_u64() * count,
        was_idle,
    };
    assert_eq!(script.heard(), [sent(1, true), sent(6, false)]);
}

#[test]
fn the_samples_hidden_in_quinns_average_are_found() {
    let mut history = RttHistory::default();
    let mut quinn = RttEstimator::new();
    // quinn's guess, then its average as of the ACK before.
    history.on_shown(Duration::from_millis(333), Duration::from_millis(333));
    let mut random = 12_345_u64;
    for _ in 0..1_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let sample = Duration::from_micros(20_000 + (random >> 33) % 30_000);
        let delay = Duration::from_micros((random >> 40) % 25_000);
        history.on_sample(sample);
        quinn.update(sample, delay);
        let smoothed = quinn.smoothed().expect("there is a sample");
        let error = history.latest.smoothed().expect("the same sample");
        // At most an eighth of the delay, which quinn shows next time.
        assert!(error.abs_diff(smoothed) <= delay / 8 + Duration::from_nanos(8));
        history.on_shown(smoothed, quinn.minimum().expect("there is a sample"));
        assert_eq!(history.settled.smoothed(), Some(smoothed));
    }
    assert_eq!(history.latest.latest().map(|d| d >= RTT), Some(true));
}

#[test]
fn an_average_that_no_single_sample_explains_starts_a_new_one() {
    let mut history = RttHistory::default();
    let millis = Duration::from_millis;
    history.on_shown(millis(333), millis(333));
    history.on_shown(millis(100), millis(100));
    history.on_shown(millis(30), millis(20));
    assert_eq!(history.settled.smoothed(), Some(millis(30)));
    assert_eq!(history.settled.minimum(), Some(millis(30)));
}

#[test]
fn instants_out_of_range_are_the_nearest_timestamp() {
    let base = base();
    let mut clock = Clock::new(base);
    assert_eq!(clock.read(base), Clock::ORIGIN);
    let later = base + Duration::from_secs(5);
    assert_eq!(clock.read(later), Timestamp::from_secs(65));
    let eons = base + Duration::from_secs(1 << 40);
    assert_eq!(clock.read(eons), Timestamp::MAX);
    if let Some(early) = base.checked_sub(Duration::from_secs(61)) {
        assert_eq!(clock.read(early), Timestamp::ZERO);
    }
}

#[test]
fn old_batches_are_forgotten_and_their_number_is_bounded() {
    let mut script = Script::new();
    for _ in 0..MOST_BATCHES * 2 {
        script.now += Duration::from_micros(1);
        script.send(1);
    }
    let sent = script.now;
    assert_eq!(script.adapter.sender().batches.queue.len(), MOST_BATCHES);
    script.now += RTT;
    script.ack(sent);
    script.end_acks(0);
    script.now += RTT * 3;
    script.lose(sent, 1);
    script.adapter.window();
    assert!(script.adapter.sender().batches.queue.is_empty());
}
