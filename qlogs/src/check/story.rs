//! What must hold within one connection.

use std::collections::BTreeMap;

use units::Timestamp;

use super::List;
use crate::ranges::Ranges;
use crate::read::event::{Event, Frame, Packet, PacketId};
use crate::read::{Header, Record};

/// What a connection has told so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    last_at: Timestamp,
    /// The packet numbers sent, by space.
    sent: BTreeMap<u8, Ranges>,
    state: Option<String>,
}

impl Story {
    pub(super) fn on_record(&mut self, record: &Record, header: &Header, list: &mut List<'_>) {
        if record.at < self.last_at {
            list.wrong(|| format!("{}: time goes back", record.name));
        }
        self.last_at = self.last_at.max(record.at);
        match Event::of(record, header) {
            Event::PacketSent(packet) => self.on_sent(&packet, list),
            Event::PacketReceived(packet) => self.on_received(&packet, list),
            Event::PacketLost { id: Some(id), .. }
                if self.has_sent(id.space) && !self.was_sent(id, id.number) =>
            {
                list.wrong(|| format!("{} was lost and never sent", named(id)));
            }
            Event::CongestionState { old, new, .. } => {
                if let (Some(state), Some(old)) = (&self.state, &old)
                    && state != old
                {
                    list.wrong(|| {
                        format!(
                            "recovery:congestion_state_updated: old is \"{old}\"; \
                             the state before is \"{state}\""
                        )
                    });
                }
                self.state = Some(new);
            }
            _ => {}
        }
    }

    fn on_sent(&mut self, packet: &Packet, list: &mut List<'_>) {
        let Some(id) = packet.id else { return };
        let sent = self.sent.entry(id.space).or_default();
        if sent.insert(id.number, id.number.saturating_add(1)) == 0 {
            list.wrong(|| format!("{} was sent twice", named(id)));
        }
    }

    fn on_received(&self, packet: &Packet, list: &mut List<'_>) {
        // A log that has no sent packets, or began in the middle, proves nothing.
        let Some(id) = packet.id.filter(|id| self.has_sent(id.space)) else {
            return;
        };
        for frame in packet.frames() {
            let Frame::Ack(ranges) = frame else { continue };
            for (low, high) in ranges {
                let first = PacketId { number: *low, ..id };
                if !self.was_sent(first, *high) {
                    list.wrong(|| {
                        format!(
                            "{} acknowledges {low} to {high}, which were not all sent",
                            named(id)
                        )
                    });
                }
            }
        }
    }

    fn has_sent(&self, space: u8) -> bool {
        // Where the first packets are missing, only the others can be judged; so none are.
        self.sent
            .get(&space)
            .is_some_and(|sent| sent.contains(0, 1) || space == 2)
    }

    /// Whether everything from a packet to another one was sent; numbers may be skipped
    /// (RFC 9000 section 12.3), so only the ends count.
    fn was_sent(&self, from: PacketId, high: u64) -> bool {
        self.sent.get(&from.space).is_some_and(|sent| {
            [from.number, high]
                .into_iter()
                .all(|number| sent.contains(number, number.saturating_add(1)))
        })
    }
}

fn named(id: PacketId) -> String {
    let space = match id.space {
        0 => "initial",
        1 => "handshake",
        _ => "application data",
    };
    format!("packet {} of {space}", id.number)
}
