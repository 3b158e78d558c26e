//! A shaper: what comes faster than agreed waits.

use units::{ByteCount, Rate, Timestamp};

use crate::token_bucket::TokenBucket;

/// Lets each packet wait until a token bucket covers it.
///
/// The bucket starts full. The shaper itself holds nothing: what waits, waits in the queue before
/// it, under the limit of that. A packet larger than `burst` can never leave and has to be dropped,
/// as `tc tbf` does. Bytes are those of the IP packet, header included. A burst passes at once; the
/// serialiser behind the shaper is the peak rate.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shaper {
    /// How fast the bucket fills, in bits of IP packets per second.
    pub rate: Rate,
    /// How much the bucket holds; at least 1 byte, and sensibly not less than the largest packet.
    pub burst: ByteCount,
}

impl Shaper {
    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong: a burst of nothing.
    pub fn check(&self) -> Result<(), String> {
        if self.burst == ByteCount::ZERO {
            return Err("shaper: a burst of 0 B lets nothing through, at least 1 B".to_owned());
        }
        Ok(())
    }
}

/// The running bucket of a [`Shaper`].
#[derive(Clone, Debug)]
pub(crate) struct ShaperBucket {
    bucket: TokenBucket,
    burst: ByteCount,
}

impl ShaperBucket {
    pub(crate) fn new(config: Shaper) -> Self {
        Self {
            bucket: TokenBucket::new(config.rate, config.burst),
            burst: config.burst,
        }
    }

    /// Pays for the packet that leaves at `now`, which is not before [`Self::ready_at`].
    pub(crate) fn take(&mut self, now: Timestamp, size: ByteCount) {
        let is_covered = self.bucket.try_take(now, size);
        debug_assert!(is_covered, "a packet of {size} left early, at {now}");
    }

    /// Goes on with another rate and burst; see [`TokenBucket::reconfigure`]. Instants given by
    /// [`Self::ready_at`] before hold no longer.
    pub(crate) fn reconfigure(&mut self, now: Timestamp, config: Shaper) {
        self.burst = config.burst;
        self.bucket.reconfigure(now, config.rate, config.burst);
    }

    /// The first instant, not before `now`, at which a packet may leave if none other does until
    /// then; [`Timestamp::MAX`] if never.
    pub(crate) fn ready_at(&self, now: Timestamp, size: ByteCount) -> Timestamp {
        self.bucket.ready_at(now, size)
    }

    /// Whether a packet can leave at all, once the bucket is full.
    pub(crate) fn fits(&self, size: ByteCount) -> bool {
        size <= self.burst
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::policer::{Policer, PolicerBucket};
    use crate::random::RandomStreams;
    use crate::token_bucket::law;
    use crate::validation_rows::row;

    type Arrival = (Timestamp, ByteCount);

    const RATE: Rate = Rate::from_mbps(10);
    const BURST: ByteCount = ByteCount::kb(15);

    fn shaper() -> Shaper {
        Shaper {
            rate: RATE,
            burst: BURST,
        }
    }

    /// Shapes `arrivals` behind a queue of `limit` bytes: departures, and the number of drops.
    fn shape(arrivals: &[Arrival], limit: ByteCount) -> (Vec<Arrival>, usize) {
        let mut bucket = ShaperBucket::new(shaper());
        let mut queue: VecDeque<ByteCount> = VecDeque::new();
        let (mut waiting, mut departures, mut dropped) = (ByteCount::ZERO, Vec::new(), 0);
        let mut now = Timestamp::ZERO;
        let mut arrivals = arrivals.iter().copied().peekable();
        loop {
            let arrives_at = arrivals.peek().map_or(Timestamp::MAX, |(at, _)| *at);
            match queue.front().copied() {
                Some(first) if bucket.ready_at(now, first) <= arrives_at => {
                    now = bucket.ready_at(now, first);
                    bucket.take(now, first);
                    departures.push((now, first));
                    queue.pop_front();
                    waiting -= first;
                }
                _ => match arrivals.next() {
                    None => break,
                    Some((at, size)) if waiting + size <= limit => {
                        now = at;
                        queue.push_back(size);
                        waiting += size;
                    }
                    Some((at, _)) => {
                        now = at;
                        dropped += 1;
                    }
                },
            }
        }
        (departures, dropped)
    }

    fn police(arrivals: &[Arrival]) -> Vec<Arrival> {
        let mut bucket = PolicerBucket::new(Policer {
            rate: RATE,
            burst: BURST,
        });
        let mut passed = arrivals.to_vec();
        passed.retain(|(at, size)| bucket.admits(*at, *size));
        passed
    }

    fn bytes(packets: &[Arrival]) -> u64 {
        packets.iter().map(|(_, size)| size.as_u64()).sum()
    }

    /// Bursts of exactly `BURST` whenever the bucket is full again, in uneven packets.
    fn conforming() -> Vec<Arrival> {
        let refill = RATE.time_for(BURST);
        (0..500_u32)
            .flat_map(|burst| {
                let at = Timestamp::ZERO + refill * burst;
                [1_500, 40, 13_460].map(|size| (at, ByteCount::new(size)))
            })
            .collect()
    }

    /// Twice the rate, at random.
    fn overload() -> Vec<Arrival> {
        let mut random = RandomStreams::new(8).stream("arrivals");
        let mut now = Timestamp::ZERO;
        (0..100_000)
            .map(|_| {
                now += Duration::from_nanos(random.below(640_000));
                (now, ByteCount::new(100 + random.below(1_401)))
            })
            .collect()
    }

    /// The longest time from an arrival to its departure, of what passed in order.
    fn longest_delay(arrivals: &[Arrival], passed: &[Arrival]) -> Duration {
        let waits = passed.iter().zip(arrivals);
        waits
            .map(|(after, before)| after.0.saturating_since(before.0))
            .max()
            .unwrap()
    }

    /// The row "shaper vs policer", conforming input.
    #[test]
    fn conforming_input_passes_both_untouched() {
        let arrivals = conforming();
        let (shaped, dropped) = shape(&arrivals, ByteCount::kb(15));
        let policed = police(&arrivals);
        for (who, passed, dropped) in [
            ("policer", &policed, arrivals.len() - policed.len()),
            ("shaper", &shaped, dropped),
        ] {
            row(
                "link model",
                &format!("shaper vs policer, conforming input, {who}: dropped, longest delay"),
                format!(
                    "{dropped}, {} ns",
                    longest_delay(&arrivals, passed).as_nanos()
                ),
                "0, 0 ns",
            );
        }
        assert_eq!(police(&conforming()), conforming());
        assert_eq!(shape(&conforming(), ByteCount::kb(15)), (conforming(), 0));
    }

    /// The row "shaper vs policer", overload.
    #[test]
    fn under_overload_the_policer_drops_and_the_shaper_delays() {
        let arrivals = overload();
        let policed = police(&arrivals);
        let policed_burst = law::assert_obeyed(&policed, RATE, BURST);
        assert!(bytes(&policed) < bytes(&arrivals) / 100 * 52);
        // No delay: each one that passes does so at its own instant.
        let mut rest = arrivals.iter();
        let late = policed
            .iter()
            .filter(|passed| !rest.any(|arrival| arrival == *passed))
            .count();
        assert_eq!(late, 0);

        // With room for all, the shaper drops nothing and keeps the order.
        let (shaped, dropped) = shape(&arrivals, ByteCount::MAX);
        assert_eq!(dropped, 0);
        let shaped_burst = law::assert_obeyed(&shaped, RATE, BURST);
        let name = |what| format!("shaper vs policer, twice the rate: {what}");
        row(
            "link model",
            &name("share of the bytes passed, packets passed late, policer"),
            format!(
                "{:.2} %, {late}",
                bytes(&policed) as f64 / bytes(&arrivals) as f64 * 100.0
            ),
            "at most 52 %, 0",
        );
        row(
            "link model",
            &name("dropped, longest delay, shaper with room for all"),
            format!(
                "{dropped}, {:.3} s",
                longest_delay(&arrivals, &shaped).as_secs_f64()
            ),
            "0, not bounded",
        );
        row(
            "link model",
            &name("smallest B that the output obeys, policer and shaper"),
            format!("{} B, {} B", policed_burst.as_u64(), shaped_burst.as_u64()),
            format!("at most {} B", BURST.as_u64()),
        );
        assert!(
            shaped
                .iter()
                .map(|(_, size)| size)
                .eq(arrivals.iter().map(|(_, size)| size))
        );
        assert!(
            shaped
                .iter()
                .zip(&arrivals)
                .all(|(after, before)| after.0 >= before.0)
        );

        // With a limit, what is not dropped still obeys the law, and the rate is used up.
        let (limited, dropped) = shape(&arrivals, ByteCount::kb(30));
        assert_eq!(limited.len() + dropped, arrivals.len());
        law::assert_obeyed(&limited, RATE, BURST);
        let (last, _) = limited[limited.len() - 1];
        let allowed = RATE.bytes_in(last.saturating_since(Timestamp::ZERO)) + BURST;
        assert!(bytes(&limited) > allowed.as_u64() - 2_000);
        row(
            "link model",
            &name("dropped by a shaper with 30 kB of room, bytes passed"),
            format!("{dropped}, {} B", bytes(&limited)),
            format!("B + r t, {} B, less 2,000 B", allowed.as_u64()),
        );
    }

    #[test]
    fn a_saturated_shaper_keeps_the_rate_exactly() {
        // 1,000 B at 30 Mbit/s take 266.67 us.
        let rate = Rate::from_mbps(30);
        let size = ByteCount::kb(1);
        let mut bucket = ShaperBucket::new(Shaper {
            rate,
            burst: ByteCount::kb(10),
        });
        let mut now = Timestamp::ZERO;
        for packet in 1..=100_000_u64 {
            now = bucket.ready_at(now, size);
            bucket.take(now, size);
            let paid = packet.saturating_sub(10) * 8_000_000;
            assert_eq!(
                now,
                Timestamp::from_nanos(paid.div_ceil(30)),
                "packet {packet}"
            );
        }
    }

    #[test]
    fn a_packet_beyond_the_burst_never_leaves() {
        let bucket = ShaperBucket::new(shaper());
        assert!(bucket.fits(BURST));
        assert!(!bucket.fits(BURST + ByteCount::new(1)));
        assert_eq!(
            bucket.ready_at(Timestamp::ZERO, BURST + ByteCount::new(1)),
            Timestamp::MAX
        );
    }

    #[test]
    fn a_live_change_counts_from_its_instant() {
        let mut bucket = ShaperBucket::new(shaper());
        bucket.take(Timestamp::ZERO, BURST);
        let size = ByteCount::new(1_250);
        assert_eq!(
            bucket.ready_at(Timestamp::ZERO, size),
            Timestamp::from_millis(1)
        );
        let tenth = Shaper {
            rate: Rate::from_mbps(1),
            burst: size,
        };
        bucket.reconfigure(Timestamp::from_micros(500), tenth);
        // Half is there; the other 625 B take 5 ms.
        assert_eq!(
            bucket.ready_at(Timestamp::ZERO, size),
            Timestamp::from_micros(5_500)
        );
        assert!(!bucket.fits(BURST));
    }

    #[test]
    fn a_burst_of_nothing_is_refused_in_one_line() {
        let nothing = Shaper {
            burst: ByteCount::ZERO,
            ..shaper()
        };
        assert_eq!(
            nothing.check().unwrap_err(),
            "shaper: a burst of 0 B lets nothing through, at least 1 B"
        );
        assert_eq!(shaper().check(), Ok(()));
    }
}
