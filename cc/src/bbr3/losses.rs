//! What losses and marks do to the model (ccwg-bbr-06 sections 5.5.10, 5.5.11 and 5.6.4.4).

use units::{ByteCount, Rate, Timestamp};

use super::loss_round::{Probe, Saved};
use super::volume_model::{inflight_at_loss, is_too_high};
use super::{BETA, Bbr3, Bbr3Fault};
use crate::event::{FeedbackEvent, LostPacket};
use crate::state::{State, Trigger};

/// What a loss or a mark says about the bytes in flight.
#[derive(Copy, Clone, Debug)]
struct Excess {
    /// In flight when it became too much.
    in_flight: ByteCount,
    is_app_limited: bool,
}

impl Bbr3 {
    /// Takes losses, marks and packets that turned up; all of it before the acknowledgements of the same event, because the
    /// sample of those counts these losses.
    pub(super) fn on_losses(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        for packet in event.lost {
            self.on_lost(now, packet, event.in_flight);
        }
        if event.ce_count > 0 {
            self.on_marked(now, event);
        }
        if event.is_persistent_congestion {
            self.on_persistent_congestion(event);
        }
        if !event.late.is_empty()
            && let Some(saved) = self.recovery.on_late(event.late)
        {
            self.take_back_losses(saved);
        }
    }

    /// `HandleLostPacket` (section 5.5.10). The draft writes the packet's figures into the sample of the acknowledgement;
    /// here they stay apart.
    fn on_lost(&mut self, now: Timestamp, packet: &LostPacket, in_flight: ByteCount) {
        let is_first_in_round = !self.loss_round.has_loss;
        self.loss_round.note_loss(self.delivered);
        let counts_packets = self.sabotage.is(Bbr3Fault::LossPackets);
        self.loss_round
            .count_range(packet.packet_number, counts_packets);

        if !self.recovery.is_open() {
            self.save_window();
        }
        let saved = Saved {
            bw_shortterm: self.rate.shortterm(),
            inflight_shortterm: self.volume.shortterm(),
            inflight_longterm: self.volume.longterm,
        };
        let is_resaved = is_first_in_round && self.sabotage.is(Bbr3Fault::Resave);
        let is_new = self.recovery.on_lost(packet, saved, is_resaved);
        if is_new && self.sabotage.is(Bbr3Fault::RecoveryCut) {
            self.window = (in_flight + self.max_datagram_size)
                .min(self.window)
                .max(self.max_datagram_size * super::MIN_PIPE_PACKETS);
        }

        let is_own = self.cycle.owns(packet.send_tag) || self.sabotage.is(Bbr3Fault::ForeignLoss);
        if !self.cycle.is_probe_sample || !is_own {
            return;
        }
        if is_too_high(packet.lost_since_sent, packet.tx_in_flight) {
            let excess = Excess {
                in_flight: inflight_at_loss(
                    packet.size,
                    packet.tx_in_flight,
                    packet.lost_since_sent,
                ),
                is_app_limited: packet.is_app_limited,
            };
            self.on_inflight_too_high(now, excess);
        }
    }

    /// Marks count like losses, packet by packet the stack does not know them: the sample of the event speaks for them.
    fn on_marked(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        self.loss_round.note_loss(self.delivered);
        self.loss_round.count_marks();
        if !self.recovery.is_open() {
            self.save_window();
        }
        self.recovery.on_marked();
        if let Some(sample) = &event.sample
            && self.cycle.is_probe_sample
            && self.cycle.owns(sample.send_tag)
            && is_too_high(sample.lost, sample.tx_in_flight)
        {
            let excess = Excess {
                in_flight: sample.tx_in_flight,
                is_app_limited: sample.is_app_limited,
            };
            self.on_inflight_too_high(now, excess);
        }
    }

    /// `HandleInflightTooHigh`: once per probe.
    fn on_inflight_too_high(&mut self, now: Timestamp, excess: Excess) {
        self.cycle.is_prev_probe_too_high = true;
        self.cycle.is_probe_sample = false;
        if !excess.is_app_limited {
            let least = self.target_inflight().scale(BETA.0, BETA.1);
            self.volume.longterm = excess.in_flight.max(least);
        }
        if self.state.current() == State::ProbeBwUp {
            self.recovery.ended = Some(Probe::Up);
            self.start_down(now, Trigger::LossTooHigh);
        }
    }

    /// `AdaptLowerBoundsFromCongestion` (section 5.5.10), at the end of a loss round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        let may_cut = !self.is_probing() || self.sabotage.is(Bbr3Fault::StartupBounds);
        if self.loss_round.has_loss && may_cut {
            if self.rate.max_bw() > Rate::ZERO {
                self.rate.give_way();
            }
            self.volume.give_way(self.window);
        }
        // One implementation sets the flag here instead, and cuts every round from then on.
        self.loss_round.has_loss =
            self.loss_round.has_loss && self.sabotage.is(Bbr3Fault::StickyLoss);
    }

    /// `OnEnterRTO` (section 5.6.4.4). QUIC has no timeout that declares all packets lost; persistent congestion (RFC 9002
    /// section 7.6) is what it has for the same news.
    fn on_persistent_congestion(&mut self, event: &FeedbackEvent<'_>) {
        self.save_window();
        let floor = self.max_datagram_size * super::MIN_PIPE_PACKETS;
        let prior = self.prior_window;
        self.window = (event.in_flight + self.max_datagram_size)
            .max(floor)
            .min(self.window);
        // From here on as Linux does, where the draft is silent.
        self.full_pipe.restart(Rate::ZERO);
        if !self.is_probing() {
            self.volume.bound_shortterm(prior);
        }
    }

    /// `HandleSpuriousLossDetection` (section 5.5.11): all losses of the episode were late packets.
    fn take_back_losses(&mut self, saved: Saved) {
        self.restore_window();
        self.loss_round.has_loss = false;
        self.full_pipe.restart(Rate::ZERO);
        self.rate.restore_shortterm(saved.bw_shortterm);
        self.volume
            .restore(saved.inflight_shortterm, saved.inflight_longterm);
        let is_in_probe_rtt = self.state.current() == State::ProbeRtt;
        match self.recovery.ended.take() {
            Some(Probe::Startup) if self.state.current() != State::Startup => {
                self.full_pipe.clear_filled();
                if !is_in_probe_rtt {
                    self.enter_startup(Trigger::SpuriousLoss);
                }
            }
            Some(Probe::Up) if self.state.current() != State::ProbeBwUp && !is_in_probe_rtt => {
                self.start_refill(Trigger::SpuriousLoss);
            }
            _ => {}
        }
        self.bound_window();
    }
}
