//! Delivery-rate sampling: how fast the path took what was sent.
//!
//! Follows draft-ietf-ccwg-bbr-06 section 4.1. Each packet carries a snapshot of the connection's counters from the
//! moment it left; when it is acknowledged, the difference between then and now is a rate:
//!
//! ```text
//!            first_sent_at          sent_at
//!   sends   ------|====================|------------------->   send interval
//!   acks    ----------------|=====================|-------->   ack interval
//!                     delivered_at               now
//!                     rate = bytes delivered in between / the longer of the two
//! ```
//!
//! The longer interval wins because acknowledgements that arrive bunched make the second one too short, and
//! nothing can be delivered faster than it was sent.

use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

/// The snapshot stored with a sent packet (or with a whole segmented send) and given back when it is acknowledged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SendState {
    /// `P.delivered`: bytes the connection had delivered when the packet left.
    pub delivered: u64,
    /// `P.delivered_time`: when `delivered` last changed, or when this flight began if nothing was in flight.
    pub delivered_at: Timestamp,
    /// `P.first_send_time`: the beginning of the send interval that this packet ends.
    pub first_sent_at: Timestamp,
    /// `P.is_app_limited`: whether the packet left while a lack of data was limiting the rate.
    pub is_app_limited: bool,
    /// `P.tx_in_flight`: bytes in flight just after the packet left, itself included.
    pub tx_in_flight: ByteCount,
    /// `P.lost`: bytes the connection had declared lost, or learned to be marked, when the packet left.
    pub lost: u64,
    /// What the controller said of the packet when it left ([`send_tag`](crate::Controller::send_tag)); the sampler
    /// itself leaves it at 0.
    pub send_tag: u32,
}

/// What one feedback event says about the path's rate; it speaks for the acknowledged packet that was sent last.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// `RS.delivery_rate`: `delivered` over `interval`; `None` if both intervals are so short that the quotient would
    /// be far too high.
    pub delivery_rate: Option<Rate>,
    /// `RS.delivered`: bytes delivered since the packet left.
    pub delivered: ByteCount,
    /// `RS.interval`: the longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// `RS.is_app_limited`: whether a lack of data may have kept the rate down.
    pub is_app_limited: bool,
    /// `RS.prior_delivered`: bytes the connection had delivered when the packet left.
    pub prior_delivered: u64,
    /// `C.delivered`: bytes the connection has delivered with this event.
    pub total_delivered: u64,
    /// `RS.lost`: bytes declared lost, or learned to be marked, since the packet left.
    pub lost: ByteCount,
    /// `RS.tx_in_flight`: bytes in flight just after the packet left, itself included.
    pub tx_in_flight: ByteCount,
    /// What the controller said of the packet when it left.
    pub send_tag: u32,
}

/// The connection's counters and the sample under construction.
///
/// Per packet: [`on_sent`](Self::on_sent) and later either [`on_acked`](Self::on_acked) or
/// [`on_lost`](Self::on_lost), at most once each; per feedback event: [`finish`](Self::finish) after all of its
/// packets. Counters have 64 bits: 46 years at 100 Gbit/s.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// `C.delivered`: bytes delivered so far.
    delivered: u64,
    /// `C.delivered_time`: when `delivered` last changed.
    delivered_at: Timestamp,
    /// `C.first_send_time`: send time of the packet most recently used for a sample.
    first_sent_at: Timestamp,
    /// `C.app_limited`: samples are app-limited until `delivered` has passed this count.
    app_limited_until: Option<u64>,
    /// `C.lost`: bytes declared lost so far, and bytes that arrived with a congestion mark.
    lost: u64,
    /// The acknowledged packet of this event that was sent last.
    newest: Option<Newest>,
}

#[derive(Copy, Clone, Debug)]
struct Newest {
    state: SendState,
    sent_at: Timestamp,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampler {
    /// Makes a sampler for a connection that has sent nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Timestamp::ZERO,
            first_sent_at: Timestamp::ZERO,
            app_limited_until: None,
            lost: 0,
            newest: None,
        }
    }

    /// Takes the snapshot of a packet of `size` that leaves at `now` with `in_flight_before` ahead of it.
    pub fn on_sent(
        &mut self,
        now: Timestamp,
        in_flight_before: ByteCount,
        size: ByteCount,
    ) -> SendState {
        if in_flight_before == ByteCount::ZERO {
            // Section 4.1.2.2: both intervals begin with the flight, or they would contain the idle time.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_until.is_some(),
            tx_in_flight: in_flight_before + size,
            lost: self.lost,
            send_tag: 0,
        }
    }

    /// Marks everything up to what is in flight now as limited by a lack of data (section 4.1.2.4).
    ///
    /// The caller has checked that this is so: nothing waits to be sent or resent, and neither window nor
    /// pacing would hold it back.
    pub fn on_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight.as_u64()));
    }

    /// Counts an acknowledged packet. The packets of one event come in the order they were sent.
    pub fn on_acked(
        &mut self,
        now: Timestamp,
        state: &SendState,
        sent_at: Timestamp,
        size: ByteCount,
    ) {
        self.delivered = self.delivered.saturating_add(size.as_u64());
        self.delivered_at = now;
        // Of two packets with one send time the later call wins: it has the larger packet number.
        if self.newest.is_none_or(|newest| sent_at >= newest.sent_at) {
            self.newest = Some(Newest {
                state: *state,
                sent_at,
            });
        }
    }

    /// Counts a packet declared lost.
    pub fn on_lost(&mut self, size: ByteCount) {
        self.lost = self.lost.saturating_add(size.as_u64());
    }

    /// Counts a packet that was declared lost and is acknowledged after all: it has been delivered (section 4.1.3.5).
    /// It speaks for no sample, because what its snapshot would be compared with is long past.
    pub fn on_late(&mut self, now: Timestamp, size: ByteCount) {
        self.delivered = self.delivered.saturating_add(size.as_u64());
        self.delivered_at = now;
    }

    /// Counts bytes that were delivered with a congestion mark as if they were lost, for the loss rates of the samples
    /// only: RFC 3168 section 5 asks for the same response to both.
    pub fn on_marked(&mut self, bytes: ByteCount) {
        self.lost = self.lost.saturating_add(bytes.as_u64());
    }

    /// Returns `RS.lost` as seen by a packet that left with `state`: what was lost or marked since.
    #[must_use]
    pub fn lost_since(&self, state: &SendState) -> ByteCount {
        ByteCount::new(self.lost.saturating_sub(state.lost))
    }

    /// Ends the event and returns its sample; there is none if nothing was acknowledged.
    ///
    /// The sample has no rate if both intervals are shorter than `min_rtt`: then the acknowledgements, or the sending,
    /// were so bunched that the quotient would be far too high (section 4.1.2.3). Its volumes hold all the same.
    pub fn finish(&mut self, now: Timestamp, min_rtt: Option<Duration>) -> Option<RateSample> {
        debug_assert!(
            self.newest.is_none() || self.delivered_at == now,
            "one event, one instant"
        );
        if self
            .app_limited_until
            .is_some_and(|mark| self.delivered > mark)
        {
            self.app_limited_until = None;
        }
        let Newest { state, sent_at } = self.newest.take()?;
        // The next send interval begins where this packet's ended. Moving it here, when the packet is
        // acknowledged, and not when it leaves, is what makes the send interval span a whole flight.
        self.first_sent_at = sent_at;
        let send_interval = sent_at.saturating_since(state.first_sent_at);
        let ack_interval = now.saturating_since(state.delivered_at);
        let interval = send_interval.max(ack_interval);
        let is_too_short = interval.is_zero() || min_rtt.is_some_and(|min_rtt| interval < min_rtt);
        let delivered = ByteCount::new(self.delivered.saturating_sub(state.delivered));
        Some(RateSample {
            delivery_rate: (!is_too_short).then(|| Rate::from_bytes_per(delivered, interval)),
            delivered,
            interval,
            is_app_limited: state.is_app_limited,
            prior_delivered: state.delivered,
            total_delivered: self.delivered,
            lost: self.lost_since(&state),
            tx_in_flight: state.tx_in_flight,
            send_tag: state.send_tag,
        })
    }

    /// Returns the bytes delivered so far.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the bytes declared lost so far.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Says whether packets sent now are limited by a lack of data.
    #[must_use]
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_250);
    const MIN_RTT: Option<Duration> = Some(Duration::from_millis(10));

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rate(sample: Option<RateSample>) -> Option<Rate> {
        sample?.delivery_rate
    }

    /// Sends `count` packets, one each millisecond from `start`, the first with nothing in flight.
    fn flight(sampler: &mut Sampler, start: u64, count: u64) -> Vec<(Timestamp, SendState)> {
        (0..count)
            .map(|n| {
                let sent_at = at(start + n);
                (sent_at, sampler.on_sent(sent_at, PACKET * n, PACKET))
            })
            .collect()
    }

    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut sampler = Sampler::new();
        let sent = flight(&mut sampler, 0, 20);
        let mut last = None;
        for (sent_at, state) in &sent {
            let now = *sent_at + Duration::from_millis(10);
            sampler.on_acked(now, state, *sent_at, PACKET);
            last = sampler.finish(now, MIN_RTT);
        }
        // 20 packets from 0 to 29 ms; the last one left at 19 ms when nothing was delivered.
        let last = last.expect("an interval of 29 ms is long enough");
        assert_eq!(last.delivered, PACKET * 20);
        assert_eq!(last.interval, Duration::from_millis(29));
        assert_eq!(last.tx_in_flight, PACKET * 20);
        assert_eq!(sampler.delivered(), 25_000);
    }

    #[test]
    fn bunched_acknowledgements_are_capped_by_the_send_interval() {
        let mut sampler = Sampler::new();
        let mut in_flight = ByteCount::ZERO;
        let mut sent = Vec::new();
        // A long flow: one packet a millisecond = 10 Mbit/s; acks of 1 to 20 come in time, 21 to 60 in one bunch.
        for n in 0..60_u64 {
            if (20..40).contains(&n) {
                let (sent_at, state): (Timestamp, SendState) =
                    sent[usize::try_from(n - 20).expect("small")];
                sampler.on_acked(at(n), &state, sent_at, PACKET);
                assert!(rate(sampler.finish(at(n), MIN_RTT)).is_some());
                in_flight -= PACKET;
            }
            sent.push((at(n), sampler.on_sent(at(n), in_flight, PACKET)));
            in_flight += PACKET;
        }
        for (sent_at, state) in &sent[20..60] {
            sampler.on_acked(at(60), state, *sent_at, PACKET);
        }
        let sample = sampler.finish(at(60), MIN_RTT).expect("a sample");
        // Sent at 59 ms, snapshot at 39 ms (20 packets): 40 packets in max(59 - 19, 60 - 39) = 40 ms.
        assert_eq!(sample.delivered, PACKET * 40);
        assert_eq!(sample.interval, Duration::from_millis(40));
        assert_eq!(sample.delivery_rate, Some(Rate::from_mbps(10)));
    }

    #[test]
    fn idle_time_is_in_neither_interval() {
        let mut sampler = Sampler::new();
        for start in [0, 10_000] {
            let sent = flight(&mut sampler, start, 10);
            let now = at(start + 20);
            for (sent_at, state) in &sent {
                sampler.on_acked(now, state, *sent_at, PACKET);
            }
            let sample = sampler.finish(now, MIN_RTT).expect("a sample");
            assert_eq!(sample.interval, Duration::from_millis(20));
            assert_eq!(sample.delivered, PACKET * 10);
            assert_eq!(sample.delivery_rate, Some(Rate::from_mbps(5)));
        }
    }

    #[test]
    fn an_interval_below_the_smallest_rtt_gives_no_rate_but_counts() {
        let mut sampler = Sampler::new();
        let state = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        sampler.on_acked(at(9), &state, at(0), PACKET);
        let sample = sampler.finish(at(9), MIN_RTT).expect("its volumes");
        assert_eq!(sample.delivery_rate, None);
        assert_eq!(sample.delivered, PACKET);
        assert_eq!(sample.tx_in_flight, PACKET);
        assert_eq!(sample.total_delivered, PACKET.as_u64());

        let state = sampler.on_sent(at(20), ByteCount::ZERO, PACKET);
        sampler.on_acked(at(30), &state, at(20), PACKET);
        assert!(
            rate(sampler.finish(at(30), MIN_RTT)).is_some(),
            "exactly the smallest RTT is enough"
        );
    }

    #[test]
    fn an_event_without_acknowledgements_gives_no_sample() {
        let mut sampler = Sampler::new();
        sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        sampler.on_lost(PACKET);
        assert_eq!(sampler.finish(at(50), MIN_RTT), None);
        assert_eq!(sampler.lost(), PACKET.as_u64());
    }

    #[test]
    fn the_packet_sent_last_speaks_for_the_event() {
        let mut sampler = Sampler::new();
        let first = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        let second = sampler.on_sent(at(5), PACKET, PACKET);
        sampler.on_acked(at(30), &second, at(5), PACKET);
        sampler.on_acked(at(30), &first, at(0), PACKET);
        let sample = sampler.finish(at(30), MIN_RTT).expect("a sample");
        assert_eq!(sample.tx_in_flight, PACKET * 2);
    }

    #[test]
    fn of_packets_that_left_together_the_last_one_speaks() {
        let mut sampler = Sampler::new();
        let first = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        let second = sampler.on_sent(at(0), PACKET, PACKET);
        sampler.on_acked(at(10), &first, at(0), PACKET);
        sampler.on_acked(at(10), &second, at(0), PACKET);
        let sample = sampler.finish(at(10), MIN_RTT).expect("a sample");
        assert_eq!(sample.tx_in_flight, PACKET * 2);
    }

    #[test]
    fn losses_since_the_packet_left_are_in_its_sample() {
        let mut sampler = Sampler::new();
        sampler.on_lost(PACKET * 3);
        let state = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        sampler.on_lost(PACKET * 2);
        sampler.on_acked(at(10), &state, at(0), PACKET);
        let sample = sampler.finish(at(10), MIN_RTT).expect("a sample");
        assert_eq!(sample.lost, PACKET * 2);
    }

    #[test]
    fn a_late_packet_counts_as_delivered_once_and_makes_no_sample() {
        let mut sampler = Sampler::new();
        sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        sampler.on_lost(PACKET);
        sampler.on_late(at(40), PACKET);
        assert_eq!(sampler.delivered(), PACKET.as_u64());
        assert_eq!(sampler.finish(at(40), MIN_RTT), None);
    }

    #[test]
    fn marked_bytes_count_for_the_loss_of_a_sample() {
        let mut sampler = Sampler::new();
        let state = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        sampler.on_acked(at(10), &state, at(0), PACKET);
        sampler.on_marked(PACKET);
        let sample = sampler.finish(at(10), MIN_RTT).expect("a sample");
        assert_eq!(sample.lost, PACKET);
        assert_eq!(sample.delivered, PACKET);
    }

    #[test]
    fn the_app_limited_mark_lasts_until_more_than_the_marked_bytes_are_delivered() {
        let mut sampler = Sampler::new();
        let before = sampler.on_sent(at(0), ByteCount::ZERO, PACKET);
        assert!(!before.is_app_limited);
        sampler.on_app_limited(PACKET);
        let marked = sampler.on_sent(at(1), PACKET, PACKET);
        assert!(marked.is_app_limited);

        sampler.on_acked(at(10), &before, at(0), PACKET);
        let sample = sampler.finish(at(10), MIN_RTT).expect("a sample");
        assert!(!sample.is_app_limited, "it left before the mark");
        assert!(
            sampler.is_app_limited(),
            "delivered has reached the mark, not passed it"
        );

        sampler.on_acked(at(11), &marked, at(1), PACKET);
        let sample = sampler.finish(at(11), MIN_RTT).expect("a sample");
        assert!(sample.is_app_limited);
        assert!(!sampler.is_app_limited());
        assert!(
            !sampler
                .on_sent(at(12), ByteCount::ZERO, PACKET)
                .is_app_limited
        );
    }

    #[test]
    fn a_mark_on_an_empty_connection_still_marks() {
        let mut sampler = Sampler::new();
        sampler.on_app_limited(ByteCount::ZERO);
        assert!(
            sampler
                .on_sent(at(0), ByteCount::ZERO, PACKET)
                .is_app_limited
        );
    }

    #[test]
    fn counters_go_on_beyond_four_gigabytes() {
        let mut sampler = Sampler::new();
        let big = ByteCount::mib(1);
        for n in 0..5_000_u64 {
            let state = sampler.on_sent(at(n * 10), ByteCount::ZERO, big);
            sampler.on_acked(at(n * 10 + 10), &state, at(n * 10), big);
            let sample = sampler.finish(at(n * 10 + 10), MIN_RTT).expect("a sample");
            assert_eq!(sample.delivered, big);
        }
        assert_eq!(sampler.delivered(), 5_000 * 1_048_576);
    }
}
