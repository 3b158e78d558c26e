//! A link whose capacity is a recording: the traces of mahimahi.
//!
//! ```text
//!  slots (ms)   3     5 5         9 |  12    14 14        18 |  21 ...     times, 9 ms a round
//!               |     | |         | |   |     |  |         |
//!  link        [A]   [A|B]      lost   [C]  [C] [D..]
//!
//!  A, 2,000 B: a slot and a third.  B, 1,000 B: the rest of the second slot.
//!  C, 3,000 B: two slots.  D: as soon as C has left.
//! ```
//!
//! R. Netravali and others, "Mahimahi: accurate record-and-replay for HTTP", 2015, section 3: each
//! line of a trace is a millisecond at which up to 1,500 bytes may leave. A packet may be spread
//! over several slots, and leaves with the last; a slot may serve several packets. What nobody
//! waits for at its instant is lost.
//!
//! Deviation: mahimahi loses the slot to a packet that comes at the very same millisecond, since it
//! runs what is due before it reads packets; here that packet catches the slot. A slot holds 1,500
//! bytes of IP; mahimahi's 1,504 count four bytes of its own device.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

/// The instants at which a link can send, repeated for ever. Cheap to clone.
///
/// ```
/// use netsim::Trace;
/// use units::Rate;
///
/// // A slot every 2 ms: 1,500 B, 12,000 bit, in each.
/// let trace: Trace = "2\n4\n6\n".parse()?;
/// assert_eq!(trace.mean_rate(), Rate::from_mbps(6));
/// assert_eq!(trace.period().as_millis(), 6);
/// assert!("2\n1\n".parse::<Trace>().is_err());
/// # Ok::<(), netsim::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds from the beginning of a round, ascending, of which the last is the length of
    /// the round. Not empty; the last is not 0.
    slots: Arc<[u32]>,
}

impl Trace {
    /// What one slot carries: 1,500 bytes.
    pub const SLOT: ByteCount = ByteCount::new(1_500);
    /// The longest text that is read: 64 MiB. Whoever reads a file may stop beyond.
    pub const LONGEST_TEXT: ByteCount = ByteCount::mib(64);
    /// The most lines that are read.
    pub const MOST_SLOTS: usize = 20_000_000;

    /// A trace of these slots, in milliseconds from the beginning of a round.
    ///
    /// # Errors
    ///
    /// As for a text with one of them on each line.
    pub fn new(slots: Vec<u32>) -> Result<Self, TraceError> {
        if slots.len() > Self::MOST_SLOTS {
            return Err(TraceError::TooManyLines);
        }
        if let Some(earlier) = slots.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::GoesBack { line: earlier + 2 });
        }
        match slots.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::TakesNoTime { line: slots.len() }),
            Some(_) => Ok(Self {
                slots: slots.into(),
            }),
        }
    }

    /// How many slots a round has.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// How long a round lasts: up to and with its last slot.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.slots
            .last()
            .map_or(Duration::ZERO, |last| milliseconds(*last))
    }

    /// The rate of a link that uses every slot.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let slots = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        Rate::from_bytes_per(Self::SLOT * slots, self.period())
    }

    /// What the slots between two instants carry, rounds repeated for ever; the first instant belongs to it, the second
    /// does not.
    #[must_use]
    pub fn capacity(&self, from: Timestamp, until: Timestamp) -> ByteCount {
        let slots = self
            .first_slot_from(until)
            .saturating_sub(self.first_slot_from(from));
        Self::SLOT * u64::try_from(slots).unwrap_or(u64::MAX)
    }

    /// The first slot at or after `now`, over all rounds.
    fn first_slot_from(&self, now: Timestamp) -> u128 {
        let period = self.period_nanos();
        // A round ends with its last slot, so the end of a round belongs to it.
        let round = now.as_nanos().saturating_sub(1) / period;
        let phase = Duration::from_nanos(now.as_nanos() - round * period);
        // There is one, since the phase is at most the period.
        let index = self
            .slots
            .partition_point(|slot| milliseconds(*slot) < phase);
        u128::from(round) * self.slots_per_round() + index as u128
    }

    fn slots_per_round(&self) -> u128 {
        self.slots.len() as u128
    }

    /// At most 2^32 ms, which is below 2^52 ns.
    fn period_nanos(&self) -> u64 {
        u64::try_from(self.period().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The slots of one round, from its beginning.
    pub fn slots(&self) -> impl Iterator<Item = Duration> + '_ {
        self.slots.iter().map(|slot| milliseconds(*slot))
    }
}

/// Reads a trace: on each line a whole number of milliseconds, not less than that before.
impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        if text.len() > Self::LONGEST_TEXT.as_usize() {
            return Err(TraceError::TooLong);
        }
        let mut slots = Vec::new();
        for (index, text) in text.lines().enumerate() {
            slots.push(read_line(index + 1, text.trim())?);
        }
        Self::new(slots)
    }
}

fn read_line(line: usize, text: &str) -> Result<u32, TraceError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| TraceError::NotANumber {
            line,
            text: text.chars().take(LONGEST_QUOTE).collect(),
        })
}

/// How much of a bad line is shown, in characters.
const LONGEST_QUOTE: usize = 40;

/// Not all twenty million slots.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("slot_count", &self.slot_count())
            .field("period", &self.period())
            .finish_non_exhaustive()
    }
}

/// A text that is not a trace. The fault is with whoever wrote it. Lines are counted from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceError {
    /// Beyond [`Trace::LONGEST_TEXT`].
    TooLong,
    /// Beyond [`Trace::MOST_SLOTS`].
    TooManyLines,
    /// No line at all.
    Empty,
    /// A line that is not a whole number of milliseconds below 2^32.
    NotANumber {
        /// Where.
        line: usize,
        /// How the line begins.
        text: String,
    },
    /// A slot before that of the line above.
    GoesBack {
        /// Where.
        line: usize,
    },
    /// The last slot is at 0, so the trace would repeat within no time.
    TakesNoTime {
        /// Where.
        line: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "trace: too long, at most {}", Trace::LONGEST_TEXT),
            Self::TooManyLines => {
                write!(f, "trace: too many lines, at most {}", Trace::MOST_SLOTS)
            }
            Self::Empty => write!(f, "trace: empty, at least one line"),
            Self::NotANumber { line, text } => write!(
                f,
                "trace, line {line}: {text:?} is not a whole number of milliseconds below 2^32"
            ),
            Self::GoesBack { line } => {
                write!(f, "trace, line {line}: earlier than the line before")
            }
            Self::TakesNoTime { line } => {
                write!(f, "trace, line {line}: the last slot is at 0, at least 1")
            }
        }
    }
}

impl Error for TraceError {}

/// Takes the place of the serialiser on a link with a [`Trace`]. Rounds begin with the run.
#[derive(Clone, Debug)]
pub(crate) struct TraceLink {
    trace: Trace,
    /// The slot from which the next packet may be served, counted over all rounds.
    slot: u128,
    /// What is left of it, in bytes.
    left: u64,
}

impl TraceLink {
    pub(crate) const fn new(trace: Trace) -> Self {
        Self {
            trace,
            slot: 0,
            left: Trace::SLOT.as_u64(),
        }
    }

    /// Puts a packet on the link at `now`, which the latest has left by then, and returns when it
    /// leaves: with the slot that carries its last byte. [`Timestamp::MAX`] means never.
    pub(crate) fn next_departure(&mut self, now: Timestamp, size: ByteCount) -> Timestamp {
        let slot_size = Trace::SLOT.as_u64();
        let first = self.trace.first_slot_from(now);
        if first > self.slot {
            self.slot = first;
            self.left = slot_size;
        }
        // A packet of no bytes needs a slot with room too.
        let size = size.as_u64().max(1);
        if let Some(left) = self.left.checked_sub(size) {
            self.left = left;
        } else {
            let spilled = size - self.left;
            self.slot += u128::from(spilled.div_ceil(slot_size));
            // The part of the last slot that is not used; 0 if it is used up.
            self.left = (slot_size - spilled % slot_size) % slot_size;
        }
        self.time_of(self.slot)
    }

    fn time_of(&self, slot: u128) -> Timestamp {
        let per_round = self.trace.slots_per_round();
        // Below the number of slots, which fits.
        let index = usize::try_from(slot % per_round).unwrap_or(0);
        let phase = u128::from(self.trace.slots[index]) * NANOS_PER_MILLISECOND;
        // The largest packet, 2^64 B, takes 1.3e16 slots; at one per round of 2^32 ms, 4.3e15 ns,
        // that is 5.4e31, and `now` adds 1.9e19: far from 2^128.
        let nanos = (slot / per_round) * u128::from(self.trace.period_nanos()) + phase;
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const NANOS_PER_MILLISECOND: u128 = 1_000_000;

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;
    use crate::validation_rows::row;

    /// Ten slots in 20 ms, three of them at once.
    const TEN: &str = "1\n2\n4\n4\n4\n7\n11\n12\n19\n20\n";

    fn link() -> TraceLink {
        TraceLink::new(TEN.parse().unwrap())
    }

    const fn ms(count: u64) -> Timestamp {
        Timestamp::from_millis(count)
    }

    /// The milliseconds at which packets of these sizes leave, all waiting from `start_ms` on.
    fn departures(link: &mut TraceLink, start_ms: u64, sizes: &[u64]) -> Vec<u64> {
        let mut now = ms(start_ms);
        sizes
            .iter()
            .map(|size| {
                now = link.next_departure(now, ByteCount::new(*size));
                assert_eq!(now.as_nanos() % 1_000_000, 0);
                now.as_nanos() / 1_000_000
            })
            .collect()
    }

    /// The row "trace link": slot count, wraparound, repeat.
    #[test]
    fn every_slot_carries_one_full_packet_round_after_round() {
        let departures = departures(&mut link(), 0, &[1_500; 33]);
        let by_hand = [
            1, 2, 4, 4, 4, 7, 11, 12, 19, 20, //
            21, 22, 24, 24, 24, 27, 31, 32, 39, 40, //
            41, 42, 44, 44, 44, 47, 51, 52, 59, 60, //
            61, 62, 64,
        ];
        assert_eq!(departures, by_hand);
        let trace: Trace = TEN.parse().unwrap();
        assert_eq!(trace.slot_count(), 10);
        assert_eq!(trace.period(), Duration::from_millis(20));
        assert_eq!(trace.mean_rate(), Rate::from_mbps(6));
        let pairs = departures.iter().zip(&by_hand);
        let wrong = pairs.filter(|(computed, hand)| computed != hand).count();
        row(
            "link model",
            "trace link, three rounds and a bit: slots a round, period, departures not as by hand",
            format!(
                "{}, {} ms, {wrong} of {}",
                trace.slot_count(),
                trace.period().as_millis(),
                departures.len()
            ),
            "10, 20 ms, 0",
        );
    }

    /// The row "trace link": the spill rule.
    #[test]
    fn a_packet_spills_into_the_next_slot_and_a_slot_serves_several() {
        // 2,000: slot 1 and 500 B of slot 2. 1,000: the rest of it. 4,500: the three at 4. 1, 1,499:
        // both with slot 7. 1,501: slot 11 and 1 B of 12. 1,499: the rest.
        let within = departures(
            &mut link(),
            0,
            &[2_000, 1_000, 4_500, 1, 1_499, 1_501, 1_499, 1_500],
        );
        assert_eq!(within, [2, 2, 4, 7, 7, 12, 12, 19]);
        // Over the end of the round: 19, 20, 21, 22 and half of the first at 24.
        let over_the_end = departures(&mut link(), 13, &[6_750, 750, 750]);
        assert_eq!(over_the_end, [24, 24, 24]);
        row(
            "link model",
            "trace link, spill: departures within a round, over its end",
            format!("{} ms, {} ms", list(&within), list(&over_the_end)),
            "by hand: 2 2 4 7 7 12 12 19 ms, 24 24 24 ms",
        );
    }

    fn list(millis: &[u64]) -> String {
        let millis: Vec<String> = millis.iter().map(u64::to_string).collect();
        millis.join(" ")
    }

    /// The row "trace link": what nobody waits for is lost.
    #[test]
    fn an_unused_slot_is_lost_and_so_is_the_rest_of_one() {
        let mut link = link();
        assert_eq!(departures(&mut link, 0, &[500]), [1]);
        let departures: Vec<u64> = [
            // Just after slot 1 its other 1,000 B are gone: all of these 1,500 have to wait for 2.
            Timestamp::from_nanos(1_000_001),
            // The slots at 4, 7 and 11 pass unused.
            Timestamp::from_nanos(11_000_001),
            // Whole rounds too.
            ms(1_000_013),
        ]
        .into_iter()
        .map(|start| link.next_departure(start, Trace::SLOT).as_nanos())
        .inspect(|nanos| assert_eq!(nanos % 1_000_000, 0))
        .map(|nanos| nanos / 1_000_000)
        .collect();
        assert_eq!(departures, [2, 12, 1_000_019]);
        row(
            "link model",
            "trace link, unused slots are lost: departures after 1, 11 and 1,000,013 ms",
            format!("{} ms", list(&departures)),
            "by hand: 2 12 1000019 ms",
        );
    }

    #[test]
    fn a_packet_that_comes_with_a_slot_catches_it() {
        assert_eq!(departures(&mut link(), 7, &[1_500]), [7]);
        assert_eq!(departures(&mut link(), 20, &[1_500, 1_500]), [20, 21]);
        assert_eq!(departures(&mut link(), 4, &[1_500; 4]), [4, 4, 4, 7]);
        let starts_at_once = TraceLink::new("0\n5\n".parse().unwrap());
        assert_eq!(
            departures(&mut starts_at_once.clone(), 0, &[1_500; 5]),
            [0, 5, 5, 10, 10]
        );
        assert_eq!(
            departures(&mut starts_at_once.clone(), 5, &[1_500; 3]),
            [5, 5, 10]
        );
    }

    /// Against a second model, which plays slot after slot with a queue.
    #[test]
    fn random_packets_leave_as_if_slots_were_played_one_by_one() {
        let mut random = RandomStreams::new(1).stream("arrivals");
        let (mut packets, mut wrong) = (0, 0);
        for slots in [TEN, "3\n", "0\n0\n1\n8\n"] {
            let trace: Trace = slots.parse().unwrap();
            let mut at = 0;
            let arrivals: Vec<(u64, u64)> = (0..5_000)
                .map(|_| {
                    at += random.below(2) * random.below(8_000_000);
                    (at, 1 + random.below(4_000))
                })
                .collect();

            let mut link = TraceLink::new(trace.clone());
            let mut free_at = Timestamp::ZERO;
            let computed: Vec<u64> = arrivals
                .iter()
                .map(|(at, size)| {
                    let start = free_at.max(Timestamp::from_nanos(*at));
                    free_at = link.next_departure(start, ByteCount::new(*size));
                    free_at.as_nanos()
                })
                .collect();

            let mut played = Vec::new();
            let (mut served, mut missing) = (0, arrivals[0].1);
            'rounds: for round in 0.. {
                for slot in trace.slots() {
                    let now = round * trace.period() + slot;
                    let now = u64::try_from(now.as_nanos()).unwrap();
                    let mut left = 1_500;
                    while left > 0 && arrivals[served].0 <= now {
                        let sent = missing.min(left);
                        left -= sent;
                        missing -= sent;
                        if missing == 0 {
                            played.push(now);
                            served += 1;
                            if served == arrivals.len() {
                                break 'rounds;
                            }
                            missing = arrivals[served].1;
                        }
                    }
                }
            }
            assert_eq!(computed, played, "{slots:?}");
            packets += computed.len();
            wrong += computed.iter().zip(&played).filter(|(a, b)| a != b).count();
        }
        row(
            "link model",
            "trace link, random packets on 3 traces: departures not as with slots played one by one",
            format!("{wrong} of {packets}"),
            "0",
        );
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let slow = Trace::new(vec![u32::MAX]).unwrap();
        let mut link = TraceLink::new(slow);
        assert_eq!(
            link.next_departure(Timestamp::ZERO, ByteCount::MAX),
            Timestamp::MAX
        );
        assert_eq!(
            link.next_departure(Timestamp::MAX, ByteCount::MAX),
            Timestamp::MAX
        );
        let mut fast = TraceLink::new("1\n".parse().unwrap());
        assert_eq!(fast.next_departure(ms(1), Trace::SLOT), ms(1));
        assert_eq!(fast.next_departure(ms(1), ByteCount::ZERO), ms(2));
    }

    #[test]
    fn a_text_that_is_not_a_trace_is_refused_with_its_line() {
        let refuse = |text: &str| text.parse::<Trace>().unwrap_err().to_string();
        assert_eq!(refuse(""), "trace: empty, at least one line");
        assert_eq!(
            refuse("1\n2\n\n4\n"),
            "trace, line 3: \"\" is not a whole number of milliseconds below 2^32"
        );
        assert_eq!(
            refuse("1\n2.5\n"),
            "trace, line 2: \"2.5\" is not a whole number of milliseconds below 2^32"
        );
        assert!(refuse("+1\n").starts_with("trace, line 1: \"+1\" is not"));
        assert!(refuse("4294967296\n").starts_with("trace, line 1: \"4294967296\" is not"));
        assert!(refuse(&"x".repeat(1_000)).len() < 120);
        assert_eq!(
            refuse("1\n5\n4\n"),
            "trace, line 3: earlier than the line before"
        );
        assert_eq!(
            refuse("0\n0\n"),
            "trace, line 2: the last slot is at 0, at least 1"
        );
        let lines = "1\n".repeat(Trace::MOST_SLOTS + 1);
        assert_eq!(refuse(&lines), "trace: too many lines, at most 20000000");
        let long = "1".repeat(Trace::LONGEST_TEXT.as_usize() + 1);
        assert_eq!(refuse(&long), "trace: too long, at most 67108864 B");
    }

    #[test]
    fn line_ends_and_spaces_do_not_matter() {
        assert_eq!("1\r\n 2 \r\n4".parse::<Trace>(), Trace::new(vec![1, 2, 4]));
    }
}
