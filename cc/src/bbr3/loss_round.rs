//! Losses by rounds, and by recovery episodes (ccwg-bbr-06 sections 5.3.1.3, 5.5.10 and 5.5.11).
//!
//! A loss round lasts a round trip, from the first loss (or the end of the loss round before) until something sent
//! since is acknowledged. An episode begins with the first loss and ends with a loss round that saw none, as TCP's fast
//! recovery goes on while repairs get lost; RFC 9002's recovery period, one round trip by definition, could never be "one
//! round old" as the exit of Startup asks.

use units::{ByteCount, Rate};

use crate::delivery::RateSample;
use crate::event::LostPacket;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LossRound {
    /// `BBR.loss_round_delivered`: the round ends with a packet that left when this much was delivered.
    delivered: u64,
    /// `BBR.loss_round_start`.
    is_start: bool,
    /// `BBR.is_loss_in_round`.
    pub(super) has_loss: bool,
    /// Separate ranges of packet numbers lost in this round; an event with congestion marks counts as one.
    lost_ranges: u32,
    last_lost_number: Option<u64>,
}

impl LossRound {
    pub(super) const fn new() -> Self {
        Self {
            delivered: 0,
            is_start: false,
            has_loss: false,
            lost_ranges: 0,
            last_lost_number: None,
        }
    }

    /// `NoteLoss`: the first loss of a round begins a round of its own.
    pub(super) fn note_loss(&mut self, total_delivered: u64) {
        if !self.has_loss {
            self.delivered = total_delivered;
        }
        self.has_loss = true;
    }

    /// Counts the ranges that lost packets make, told in ascending order.
    pub(super) fn count_range(&mut self, packet_number: u64, counts_packets: bool) {
        let follows = self
            .last_lost_number
            .is_some_and(|last| last.checked_add(1) == Some(packet_number));
        if !follows || counts_packets {
            self.lost_ranges = self.lost_ranges.saturating_add(1);
        }
        self.last_lost_number = Some(packet_number);
    }

    /// Counts an event with congestion marks.
    pub(super) fn count_marks(&mut self) {
        self.lost_ranges = self.lost_ranges.saturating_add(1);
    }

    /// Finds out whether the round has ended (`UpdateLatestDeliverySignals`).
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        self.is_start = sample.prior_delivered >= self.delivered;
        if self.is_start {
            self.delivered = sample.total_delivered;
        }
    }

    /// Begins the count of ranges anew, once the end of the round has been judged.
    pub(super) fn restart_ranges(&mut self) {
        self.lost_ranges = 0;
        self.last_lost_number = None;
    }

    pub(super) const fn is_start(&self) -> bool {
        self.is_start
    }

    pub(super) const fn lost_ranges(&self) -> u32 {
        self.lost_ranges
    }
}

/// Where to return to if the losses of an episode turn out to be none.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Probe {
    /// Losses ended Startup.
    Startup,
    /// Losses ended ProbeBW_UP.
    Up,
}

/// The bounds from before an episode.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Saved {
    pub(super) bw_shortterm: Rate,
    pub(super) inflight_shortterm: ByteCount,
    pub(super) inflight_longterm: ByteCount,
}

/// A recovery episode: what was before it, and which of its losses have not turned up.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Recovery {
    is_open: bool,
    /// Whether this loss round of it has seen a loss.
    has_loss: bool,
    /// `BBR.undo_*`; `None` once it was used, or if marks say that there was congestion anyway.
    saved: Option<Saved>,
    /// `BBR.undo_state`.
    pub(super) ended: Option<Probe>,
    /// The number of the first packet lost. What was declared lost before the episode has a smaller one, because loss
    /// detection goes by packet number (RFC 9002 section 6.1).
    first_lost: u64,
    /// Losses of the episode that have not turned up.
    missing: u64,
}

impl Recovery {
    /// Takes a loss; `saved` is the state at this moment. Says whether it began an episode.
    ///
    /// The state is saved once per episode. The draft's text saves it at each loss round and would overwrite good values
    /// with reduced ones.
    pub(super) fn on_lost(&mut self, packet: &LostPacket, saved: Saved, is_resaved: bool) -> bool {
        let is_new = !self.is_open;
        if is_new {
            *self = Self {
                is_open: true,
                has_loss: true,
                saved: Some(saved),
                ended: None,
                first_lost: packet.packet_number,
                missing: 0,
            };
        } else if is_resaved {
            self.saved = Some(saved);
        }
        self.has_loss = true;
        self.missing = self.missing.saturating_add(1);
        is_new
    }

    /// Notes that the network marked packets: that is an episode too, and as there was congestion, there is nothing to take
    /// back.
    pub(super) fn on_marked(&mut self) {
        if !self.is_open {
            *self = Self {
                is_open: true,
                first_lost: u64::MAX,
                ..Self::default()
            };
        }
        self.has_loss = true;
        self.saved = None;
    }

    /// Takes packets that turned up and returns the saved state if they were the last ones missing.
    pub(super) fn on_late(&mut self, late: &[LostPacket]) -> Option<Saved> {
        let is_own = |packet: &&LostPacket| packet.packet_number >= self.first_lost;
        let found = late.iter().filter(is_own).count() as u64;
        if found == 0 {
            return None;
        }
        self.missing = self.missing.saturating_sub(found);
        if self.missing > 0 {
            return None;
        }
        let saved = self.saved.take();
        if saved.is_some() {
            self.is_open = false;
        }
        saved
    }

    /// Takes the end of a loss round and says whether it ended the episode.
    pub(super) fn on_loss_round_end(&mut self) -> bool {
        let is_over = self.is_open && !self.has_loss;
        self.is_open &= self.has_loss;
        self.has_loss = false;
        is_over
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }
}
