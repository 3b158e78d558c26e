//! What a datagram carries and in what state it left, as bits that a scripted loss of netsim can ask for.
//!
//! ```text
//!   bit   0 to 2     3 to 31              32 to 63
//!         spaces     frame types          state of the controller
//! ```
//!
//! Names are those of the logs. A datagram has all bits of all its packets.

use cc::State;
use netsim::Labels;

use crate::{
    frame::{Frame, ty},
    tap::{SentPacket, Space},
};

/// The packet number spaces (RFC 9000 section 12.3).
const SPACES: [(Space, &str); 3] = [
    (Space::Initial, "initial"),
    (Space::Handshake, "handshake"),
    (Space::Data, "application_data"),
];

/// The frame types that can be told apart; unknown ones have no bit.
const FRAMES: [&str; 20] = [
    "padding",
    "ping",
    "ack",
    "reset_stream",
    "stop_sending",
    "crypto",
    "new_token",
    "stream",
    "max_data",
    "max_stream_data",
    "max_streams",
    "data_blocked",
    "stream_data_blocked",
    "streams_blocked",
    "new_connection_id",
    "retire_connection_id",
    "path_challenge",
    "path_response",
    "connection_close",
    "handshake_done",
];

const STATES: [State; 12] = [
    State::SlowStart,
    State::ConservativeSlowStart,
    State::CongestionAvoidance,
    State::Recovery,
    State::FixedRate,
    State::Startup,
    State::Drain,
    State::ProbeBwDown,
    State::ProbeBwCruise,
    State::ProbeBwRefill,
    State::ProbeBwUp,
    State::ProbeRtt,
];

const FIRST_FRAME: u32 = 3;
const FIRST_STATE: u32 = 32;

/// The label of a packet number space by its name.
pub fn space(name: &str) -> Option<Labels> {
    let (space, _) = SPACES.iter().find(|(_, known)| *known == name)?;
    Some(of_space(*space))
}

/// The label of a frame type by its name.
pub fn frame(name: &str) -> Option<Labels> {
    let index = (FIRST_FRAME..)
        .zip(FRAMES)
        .find(|(_, known)| *known == name)?
        .0;
    Some(Labels(1 << index))
}

/// The label of a state of the controller by its name.
pub fn state(name: &str) -> Option<Labels> {
    let state = STATES.iter().find(|state| state.as_str() == name)?;
    Some(of_state(*state))
}

/// The names that [`space`] knows.
pub fn spaces() -> impl Iterator<Item = &'static str> {
    SPACES.iter().map(|(_, name)| *name)
}

/// The names that [`frame`] knows.
pub fn frames() -> impl Iterator<Item = &'static str> {
    FRAMES.into_iter()
}

/// The names that [`state`] knows.
pub fn states() -> impl Iterator<Item = &'static str> {
    STATES.iter().map(|state| state.as_str())
}

fn of_space(space: Space) -> Labels {
    Labels(1 << space.index())
}

pub(crate) fn of_state(state: State) -> Labels {
    let index = match state {
        State::SlowStart => 0,
        State::ConservativeSlowStart => 1,
        State::CongestionAvoidance => 2,
        State::Recovery => 3,
        State::FixedRate => 4,
        State::Startup => 5,
        State::Drain => 6,
        State::ProbeBwDown => 7,
        State::ProbeBwCruise => 8,
        State::ProbeBwRefill => 9,
        State::ProbeBwUp => 10,
        State::ProbeRtt => 11,
    };
    Labels(1 << (FIRST_STATE + index))
}

pub(crate) fn of_packet(packet: &SentPacket) -> Labels {
    of_space(packet.space) | packet.frame_labels
}

pub(crate) fn of_frame(frame: &Frame<'_>) -> Labels {
    let index = match frame {
        Frame::Padding(_) => 0,
        Frame::Ack(_) => 2,
        Frame::Stream { .. } => 7,
        Frame::Close(_) => 18,
        Frame::Other { ty, .. } => match *ty {
            ty::PING => 1,
            ty::RESET_STREAM => 3,
            ty::STOP_SENDING => 4,
            ty::CRYPTO => 5,
            ty::NEW_TOKEN => 6,
            ty::MAX_DATA => 8,
            ty::MAX_STREAM_DATA => 9,
            ty::MAX_STREAMS_BIDI | ty::MAX_STREAMS_UNI => 10,
            ty::DATA_BLOCKED => 11,
            ty::STREAM_DATA_BLOCKED => 12,
            ty::STREAMS_BLOCKED_BIDI | ty::STREAMS_BLOCKED_UNI => 13,
            ty::NEW_CONNECTION_ID => 14,
            ty::RETIRE_CONNECTION_ID => 15,
            ty::PATH_CHALLENGE => 16,
            ty::PATH_RESPONSE => 17,
            ty::HANDSHAKE_DONE => 19,
            _ => return Labels::default(),
        },
    };
    Labels(1 << (FIRST_FRAME + index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_bit_of_its_own() {
        let mut seen = Labels::default();
        let labels = spaces()
            .map(space)
            .chain(frames().map(frame))
            .chain(states().map(state));
        for label in labels {
            let label = label.expect("a known name");
            assert_eq!(label.0.count_ones(), 1);
            assert!(!seen.meets(label), "{label:?} twice");
            seen = seen | label;
        }
        assert_eq!(space("app"), None);
        assert_eq!(frame("acks"), None);
        assert_eq!(state("asleep"), None);
    }

    #[test]
    fn a_frame_has_the_bit_of_its_name() {
        let ping = Frame::Other {
            ty: ty::PING,
            fields: [0; 3],
        };
        let done = Frame::Other {
            ty: ty::HANDSHAKE_DONE,
            fields: [0; 3],
        };
        let stream = Frame::Stream {
            id: 0,
            offset: 0,
            length: 1,
            is_fin: false,
        };
        for (value, name) in [
            (ping, "ping"),
            (done, "handshake_done"),
            (stream, "stream"),
            (Frame::Padding(3), "padding"),
        ] {
            assert_eq!(Some(of_frame(&value)), frame(name), "{name}");
        }
    }
}
