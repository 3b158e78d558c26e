//! The ledger of sent packets: which are in flight, and exactly which were acknowledged or lost.
//!
//! ```text
//!            sent                 ACK range covers it
//!   (none) ───────> Outstanding ─────────────────────> Acked
//!                        │  lost prefix (see below)       ^
//!                        └──────────────────────> Lost ───┘ late: the loss was spurious
//! ```
//!
//! quinn-proto tells its controller neither packet numbers nor lost packets. Both follow exactly
//! from what the tap sees: acknowledged packets from the ACK frames, and lost ones from the fact
//! that loss detection (RFC 9002 section 6.1) is monotone in the packet number. What it declares
//! lost is therefore the prefix of the still unacknowledged packets up to the newest lost one,
//! whose send time and byte total quinn-proto reports.

use std::{collections::VecDeque, time::Duration};

use cc::{
    AckedPacket, LostPacket,
    delivery::{Sampler, SendState},
};
use units::{ByteCount, Timestamp};

use crate::tap::Space;

/// What is kept of one sent packet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) sent_at: Timestamp,
    /// Bytes that count as in flight.
    pub(crate) size: ByteCount,
    pub(crate) send_state: SendState,
    /// In flight just after this packet, itself included.
    pub(crate) tx_in_flight: ByteCount,
    pub(crate) is_app_limited: bool,
    pub(crate) is_ack_eliciting: bool,
    pub(crate) is_mtu_probe: bool,
}

#[derive(Copy, Clone, Debug)]
enum Slot {
    /// A number that was skipped, or a packet that never counts as in flight; with its send time.
    Untracked(Option<Timestamp>),
    Outstanding(Entry),
    Acked,
    Lost {
        at: Timestamp,
        packet: LostPacket,
    },
}

/// One acknowledged packet, with what the delivery-rate sampler needs.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) packet: AckedPacket,
    pub(crate) send_state: SendState,
}

/// What one ACK frame changed.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct AckOutcome {
    /// Send time of the largest acknowledged packet, if this ACK newly acknowledged it.
    pub(crate) largest_sent_at: Option<Timestamp>,
    /// Whether the largest acknowledged number rose.
    pub(crate) is_new_largest: bool,
    pub(crate) has_ack_eliciting: bool,
}

/// All packets sent on one connection, by packet number space.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    spaces: [SpaceLedger; 3],
    in_flight: ByteCount,
    in_flight_count: u64,
}

#[derive(Debug, Default)]
struct SpaceLedger {
    /// Packet number of `slots[0]`.
    base: u64,
    slots: VecDeque<Slot>,
    /// No outstanding packet has a smaller number.
    first_outstanding: u64,
    largest_acked: Option<u64>,
    /// The ranges of the newest ACK, ascending: what need not be walked again.
    known: Vec<(u64, u64)>,
    scratch: Vec<(u64, u64)>,
}

impl Ledger {
    /// Enters a packet that counts as in flight.
    pub(crate) fn on_sent(&mut self, space: Space, number: u64, entry: Entry) {
        self.in_flight += entry.size;
        self.in_flight_count += 1;
        self.spaces[space.index()].push(number, Slot::Outstanding(entry));
    }

    /// Enters a packet that does not count as in flight (ACKs only, RFC 9002 section 2).
    pub(crate) fn on_sent_untracked(&mut self, space: Space, number: u64, sent_at: Timestamp) {
        self.spaces[space.index()].push(number, Slot::Untracked(Some(sent_at)));
    }

    /// Applies the ranges of one ACK frame, highest first; appends what is newly acknowledged, and
    /// what was declared lost before and is acknowledged after all (a spurious loss), in ascending
    /// order.
    pub(crate) fn on_ack(
        &mut self,
        space: Space,
        ranges: &[(u64, u64)],
        delivered: &mut Vec<Delivered>,
        late: &mut Vec<LostPacket>,
    ) -> AckOutcome {
        let Some(&(_, largest)) = ranges.first() else {
            return AckOutcome::default();
        };
        let ledger = &mut self.spaces[space.index()];
        let mut outcome = AckOutcome::default();
        if largest >= ledger.end() {
            // Acknowledges what was never sent: quinn-proto closes the connection for it.
            return outcome;
        }
        outcome.is_new_largest = ledger.largest_acked.is_none_or(|known| largest > known);
        if outcome.is_new_largest {
            ledger.largest_acked = Some(largest);
        }

        let mut fresh = std::mem::take(&mut ledger.scratch);
        subtract(ranges, &ledger.known, ledger.base, &mut fresh);
        for &(low, high) in &fresh {
            for number in low..=high {
                let Some(slot) = ledger.slot_mut(number) else {
                    continue;
                };
                match *slot {
                    Slot::Outstanding(entry) => {
                        *slot = Slot::Acked;
                        self.in_flight -= entry.size;
                        self.in_flight_count -= 1;
                        outcome.has_ack_eliciting |= entry.is_ack_eliciting;
                        if number == largest {
                            outcome.largest_sent_at = Some(entry.sent_at);
                        }
                        delivered.push(Delivered {
                            packet: acked(number, &entry),
                            send_state: entry.send_state,
                        });
                    }
                    Slot::Untracked(Some(sent_at)) => {
                        if number == largest {
                            outcome.largest_sent_at = Some(sent_at);
                        }
                    }
                    Slot::Lost { packet, .. } => {
                        *slot = Slot::Acked;
                        late.push(packet);
                    }
                    Slot::Untracked(None) | Slot::Acked => {}
                }
            }
        }
        ledger.scratch = fresh;
        ledger.known.clear();
        ledger.known.extend(ranges.iter().rev());
        outcome
    }

    /// Takes the lost prefix out of flight: the oldest unacknowledged packets that sum up to
    /// `bytes`, the newest of them sent at `sent_at`; counts them in `sampler`. Looks in `likely` first:
    /// quinn-proto does not say which space lost. Returns the space, or `None` if no prefix matches.
    pub(crate) fn on_lost(
        &mut self,
        now: Timestamp,
        likely: Space,
        sent_at: Timestamp,
        bytes: ByteCount,
        sampler: &mut Sampler,
        lost: &mut Vec<LostPacket>,
    ) -> Option<Space> {
        let others = Space::ALL.into_iter().filter(|&space| space != likely);
        let (space, last) = std::iter::once(likely)
            .chain(others)
            .find_map(|space| Some((space, self.spaces[space.index()].prefix(sent_at, bytes)?)))?;
        let ledger = &mut self.spaces[space.index()];
        for number in ledger.first_outstanding.max(ledger.base)..=last {
            let Some(slot) = ledger.slot_mut(number) else {
                continue;
            };
            if let Slot::Outstanding(entry) = *slot
                && !entry.is_mtu_probe
            {
                sampler.on_lost(entry.size);
                let packet = lost_packet(number, &entry, sampler.lost_since(&entry.send_state));
                *slot = Slot::Lost { at: now, packet };
                self.in_flight -= entry.size;
                self.in_flight_count -= 1;
                lost.push(packet);
            }
        }
        Some(space)
    }

    /// Takes the outstanding MTU probe out of flight; its loss is no congestion signal
    /// (RFC 9000 section 14.4).
    pub(crate) fn on_mtu_probe_lost(&mut self) {
        let ledger = &mut self.spaces[Space::Data.index()];
        for slot in &mut ledger.slots {
            if let Slot::Outstanding(entry) = *slot
                && entry.is_mtu_probe
            {
                // Its late acknowledgement would say nothing about congestion.
                *slot = Slot::Acked;
                self.in_flight -= entry.size;
                self.in_flight_count -= 1;
                return;
            }
        }
    }

    /// Forgets a space whose keys were discarded (RFC 9002 section 6.4): no congestion event.
    pub(crate) fn discard(&mut self, space: Space) {
        let ledger = &mut self.spaces[space.index()];
        for slot in &ledger.slots {
            if let Slot::Outstanding(entry) = slot {
                self.in_flight -= entry.size;
                self.in_flight_count -= 1;
            }
        }
        let end = ledger.end();
        *ledger = SpaceLedger {
            base: end,
            first_outstanding: end,
            ..SpaceLedger::default()
        };
    }

    /// Lets go of settled packets; lost ones are kept for `keep` so that a late acknowledgement is
    /// still recognised.
    pub(crate) fn prune(&mut self, now: Timestamp, keep: Duration) {
        for ledger in &mut self.spaces {
            ledger.prune(now, keep);
        }
    }

    /// Bytes in flight over all spaces.
    pub(crate) fn in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// Packets in flight over all spaces.
    pub(crate) fn in_flight_count(&self) -> u64 {
        self.in_flight_count
    }

    /// Packets and skipped numbers of which anything is kept.
    #[cfg(test)]
    pub(crate) fn length(&self) -> usize {
        self.spaces.iter().map(|space| space.slots.len()).sum()
    }

    /// The largest acknowledged number of a space.
    pub(crate) fn largest_acked(&self, space: Space) -> Option<u64> {
        self.spaces[space.index()].largest_acked
    }

    /// Replaces the byte count by quinn-proto's own, after a mismatch was counted.
    pub(crate) fn resync(&mut self, in_flight: ByteCount) {
        self.in_flight = in_flight;
    }
}

impl SpaceLedger {
    fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    fn push(&mut self, number: u64, slot: Slot) {
        if self.slots.is_empty() {
            self.base = number;
            self.first_outstanding = number;
        }
        while self.end() < number {
            self.slots.push_back(Slot::Untracked(None));
        }
        self.slots.push_back(slot);
    }

    fn slot_mut(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slots.get_mut(index)
    }

    /// The number that ends the outstanding prefix of exactly `bytes`, none of it sent after
    /// `sent_at`. Packets of one burst share a send time, and the newest lost packet may be one that
    /// never counted as in flight, so it is the byte total that tells where the prefix ends.
    fn prefix(&self, sent_at: Timestamp, bytes: ByteCount) -> Option<u64> {
        let start = self.first_outstanding.max(self.base);
        let skip = usize::try_from(start - self.base).ok()?;
        let mut sum = ByteCount::ZERO;
        for (number, slot) in (start..).zip(self.slots.iter().skip(skip)) {
            if let Slot::Outstanding(entry) = slot
                && !entry.is_mtu_probe
            {
                sum += entry.size;
                if sum > bytes || entry.sent_at > sent_at {
                    return None;
                }
                if sum == bytes {
                    return Some(number);
                }
            }
        }
        None
    }

    fn prune(&mut self, now: Timestamp, keep: Duration) {
        while let Some(slot) = self.slots.front() {
            let is_settled = match slot {
                Slot::Outstanding(_) => false,
                Slot::Untracked(_) | Slot::Acked => true,
                Slot::Lost { at, .. } => now.saturating_since(*at) > keep,
            };
            // The newest packet stays, so that the next one knows its place.
            if !is_settled || self.slots.len() == 1 {
                break;
            }
            self.slots.pop_front();
            self.base += 1;
        }
        let mut first = self.first_outstanding.max(self.base);
        while let Some(slot) = usize::try_from(first - self.base)
            .ok()
            .and_then(|index| self.slots.get(index))
        {
            if matches!(slot, Slot::Outstanding(_)) {
                break;
            }
            first += 1;
        }
        self.first_outstanding = first;
    }
}

/// `ranges` (descending) without `known` (ascending) and without anything below `base`, ascending.
fn subtract(ranges: &[(u64, u64)], known: &[(u64, u64)], base: u64, out: &mut Vec<(u64, u64)>) {
    out.clear();
    let mut known = known.iter().peekable();
    for &(low, high) in ranges.iter().rev() {
        if high < base {
            continue;
        }
        let mut low = low.max(base);
        while let Some(&&(known_low, known_high)) = known.peek() {
            if known_high < low {
                known.next();
                continue;
            }
            if known_low > high {
                break;
            }
            if known_low > low {
                out.push((low, known_low - 1));
            }
            low = known_high + 1;
            if known_high >= high {
                break;
            }
        }
        if low <= high {
            out.push((low, high));
        }
    }
}

fn acked(number: u64, entry: &Entry) -> AckedPacket {
    AckedPacket {
        packet_number: number,
        sent_at: entry.sent_at,
        size: entry.size,
        is_app_limited: entry.is_app_limited,
        tx_in_flight: entry.tx_in_flight,
    }
}

fn lost_packet(number: u64, entry: &Entry, lost_since_sent: ByteCount) -> LostPacket {
    LostPacket {
        packet_number: number,
        sent_at: entry.sent_at,
        size: entry.size,
        is_app_limited: entry.is_app_limited,
        tx_in_flight: entry.tx_in_flight,
        lost_since_sent,
        send_tag: entry.send_state.send_tag,
    }
}
