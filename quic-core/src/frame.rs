//! Reads QUIC frames out of a packet's plaintext (RFC 9000 section 19), without copying.
//!
//! The packet tap walks every packet that leaves or arrives. It needs little of each frame, so a
//! [`Frame`] carries numbers only; payload bytes are skipped. What a peer sends may be malformed:
//! the walk then ends with `None` and quinn-proto, which parses the same bytes itself, closes the
//! connection.

use qlogs::Frame as LogFrame;

/// What the transport needs to know of one frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A run of PADDING.
    Padding(u64),
    /// ACK or ACK_ECN.
    Ack(Ack<'a>),
    /// STREAM.
    Stream {
        id: u64,
        offset: u64,
        length: u64,
        is_fin: bool,
    },
    /// CONNECTION_CLOSE of either kind.
    Close(Close<'a>),
    /// Any other frame, with up to three of its integers in wire order.
    Other { ty: u64, fields: [u64; 3] },
}

/// An ACK frame (RFC 9000 section 19.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack<'a> {
    /// Still scaled by the sender's ack_delay_exponent.
    pub(crate) delay: u64,
    pub(crate) ecn: Option<(u64, u64, u64)>,
    largest: u64,
    first_range: u64,
    range_count: u64,
    ranges: &'a [u8],
}

/// A CONNECTION_CLOSE frame (RFC 9000 section 19.19).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close<'a> {
    pub(crate) is_application: bool,
    pub(crate) error_code: u64,
    pub(crate) reason: &'a [u8],
}

impl Ack<'_> {
    /// The acknowledged ranges `(low, high)`, both inclusive, from the highest down.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut reader = Reader(self.ranges);
        let mut left = self.range_count;
        let mut next = self
            .largest
            .checked_sub(self.first_range)
            .map(|low| (low, self.largest));
        std::iter::from_fn(move || {
            let current = next?;
            next = if left == 0 {
                None
            } else {
                left -= 1;
                range_below(current.0, &mut reader)
            };
            Some(current)
        })
    }
}

/// The range after a gap; RFC 9000 section 19.3.1 counts the gap and the length from one below.
fn range_below(low: u64, reader: &mut Reader<'_>) -> Option<(u64, u64)> {
    let gap = reader.varint()?;
    let length = reader.varint()?;
    let high = low.checked_sub(gap)?.checked_sub(2)?;
    Some((high.checked_sub(length)?, high))
}

impl Frame<'_> {
    /// Whether a packet with this frame must be acknowledged (RFC 9002 section 2).
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::Close(_))
    }

    /// The frame as the log shows it. Tokens, connection ids and payloads stay out.
    pub(crate) fn to_log(self, ack_delay_exponent: u32) -> LogFrame {
        match self {
            Self::Padding(length) => LogFrame::Padding { length },
            Self::Ack(ack) => LogFrame::Ack {
                ack_delay: std::time::Duration::from_micros(
                    ack.delay.saturating_mul(1 << ack_delay_exponent.min(20)),
                ),
                ranges: ack.ranges().collect(),
                ecn: ack.ecn,
            },
            Self::Stream {
                id,
                offset,
                length,
                is_fin,
            } => LogFrame::Stream {
                stream_id: id,
                offset,
                length,
                fin: is_fin,
            },
            Self::Close(close) => LogFrame::ConnectionClose {
                is_application: close.is_application,
                error_code: close.error_code,
                reason: String::from_utf8_lossy(close.reason).into_owned(),
            },
            Self::Other {
                ty,
                fields: [a, b, c],
            } => other_to_log(ty, a, b, c),
        }
    }
}

fn other_to_log(ty: u64, a: u64, b: u64, c: u64) -> LogFrame {
    match ty {
        ty::PING => LogFrame::Ping,
        ty::RESET_STREAM => LogFrame::ResetStream {
            stream_id: a,
            error_code: b,
            final_size: c,
        },
        ty::STOP_SENDING => LogFrame::StopSending {
            stream_id: a,
            error_code: b,
        },
        ty::CRYPTO => LogFrame::Crypto {
            offset: a,
            length: b,
        },
        ty::NEW_TOKEN => LogFrame::NewToken { length: a },
        ty::MAX_DATA => LogFrame::MaxData { maximum: a },
        ty::MAX_STREAM_DATA => LogFrame::MaxStreamData {
            stream_id: a,
            maximum: b,
        },
        ty::MAX_STREAMS_BIDI | ty::MAX_STREAMS_UNI => LogFrame::MaxStreams {
            bidi: ty == ty::MAX_STREAMS_BIDI,
            maximum: a,
        },
        ty::DATA_BLOCKED => LogFrame::DataBlocked { limit: a },
        ty::STREAM_DATA_BLOCKED => LogFrame::StreamDataBlocked {
            stream_id: a,
            limit: b,
        },
        ty::STREAMS_BLOCKED_BIDI | ty::STREAMS_BLOCKED_UNI => LogFrame::StreamsBlocked {
            bidi: ty == ty::STREAMS_BLOCKED_BIDI,
            limit: a,
        },
        ty::NEW_CONNECTION_ID => LogFrame::NewConnectionId {
            sequence_number: a,
            retire_prior_to: b,
            cid_length: u8::try_from(c).unwrap_or(u8::MAX),
        },
        ty::RETIRE_CONNECTION_ID => LogFrame::RetireConnectionId { sequence_number: a },
        ty::PATH_CHALLENGE => LogFrame::PathChallenge,
        ty::PATH_RESPONSE => LogFrame::PathResponse,
        ty::HANDSHAKE_DONE => LogFrame::HandshakeDone,
        ty::DATAGRAM | ty::DATAGRAM_LEN => LogFrame::Datagram { length: a },
        ty::IMMEDIATE_ACK => LogFrame::ImmediateAck,
        _ => LogFrame::Unknown { frame_type: ty },
    }
}

/// Walks the frames of one plaintext payload; ends early at the first malformed or unknown one.
pub(crate) struct Frames<'a>(Reader<'a>);

impl<'a> Frames<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(Reader(payload))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let reader = &mut self.0;
        let ty = reader.varint()?;
        Some(match ty {
            ty::PADDING => Frame::Padding(1 + reader.skip_zeros()),
            ty::ACK | ty::ACK_ECN => Frame::Ack(reader.ack(ty == ty::ACK_ECN)?),
            ty::STREAM..=ty::STREAM_LAST => reader.stream(ty)?,
            ty::CLOSE | ty::CLOSE_APPLICATION => {
                let error_code = reader.varint()?;
                if ty == ty::CLOSE {
                    reader.varint()?;
                }
                let length = reader.varint()?;
                Frame::Close(Close {
                    is_application: ty == ty::CLOSE_APPLICATION,
                    error_code,
                    reason: reader.take(length)?,
                })
            }
            _ => Frame::Other {
                ty,
                fields: reader.other(ty)?,
            },
        })
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A variable-length integer (RFC 9000 section 16).
    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let length = 1usize << (first >> 6);
        let bytes = self.0.get(..length)?;
        let mut value = u64::from(first & 0x3f);
        for &byte in &bytes[1..] {
            value = value << 8 | u64::from(byte);
        }
        self.0 = &self.0[length..];
        Some(value)
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let bytes = self.0.get(..length)?;
        self.0 = &self.0[length..];
        Some(bytes)
    }

    fn rest(&mut self) -> u64 {
        let length = self.0.len() as u64;
        self.0 = &[];
        length
    }

    fn skip_zeros(&mut self) -> u64 {
        let zeros = self.0.iter().take_while(|&&byte| byte == 0).count();
        self.0 = &self.0[zeros..];
        zeros as u64
    }

    fn ack(&mut self, has_ecn: bool) -> Option<Ack<'a>> {
        let largest = self.varint()?;
        let delay = self.varint()?;
        let range_count = self.varint()?;
        let first_range = self.varint()?;
        let start = self.0;
        for _ in 0..range_count {
            self.varint()?;
            self.varint()?;
        }
        let ranges = &start[..start.len() - self.0.len()];
        let ecn = if has_ecn {
            Some((self.varint()?, self.varint()?, self.varint()?))
        } else {
            None
        };
        Some(Ack {
            delay,
            ecn,
            largest,
            first_range,
            range_count,
            ranges,
        })
    }

    fn stream(&mut self, ty: u64) -> Option<Frame<'a>> {
        let id = self.varint()?;
        let offset = if ty & 0x4 != 0 { self.varint()? } else { 0 };
        let length = if ty & 0x2 != 0 {
            let length = self.varint()?;
            self.take(length)?;
            length
        } else {
            self.rest()
        };
        Some(Frame::Stream {
            id,
            offset,
            length,
            is_fin: ty & 0x1 != 0,
        })
    }

    fn other(&mut self, ty: u64) -> Option<[u64; 3]> {
        let mut fields = [0; 3];
        let count = match ty {
            ty::PING | ty::HANDSHAKE_DONE | ty::IMMEDIATE_ACK => 0,
            ty::MAX_DATA
            | ty::MAX_STREAMS_BIDI
            | ty::MAX_STREAMS_UNI
            | ty::DATA_BLOCKED
            | ty::STREAMS_BLOCKED_BIDI
            | ty::STREAMS_BLOCKED_UNI
            | ty::RETIRE_CONNECTION_ID
            | ty::NEW_TOKEN
            | ty::DATAGRAM_LEN => 1,
            ty::STOP_SENDING
            | ty::CRYPTO
            | ty::MAX_STREAM_DATA
            | ty::STREAM_DATA_BLOCKED
            | ty::NEW_CONNECTION_ID => 2,
            ty::RESET_STREAM => 3,
            ty::PATH_CHALLENGE | ty::PATH_RESPONSE => {
                self.take(8)?;
                0
            }
            ty::DATAGRAM => {
                fields[0] = self.rest();
                0
            }
            ty::ACK_FREQUENCY => {
                self.varint()?;
                3
            }
            _ => return None,
        };
        for field in &mut fields[..count] {
            *field = self.varint()?;
        }
        match ty {
            ty::NEW_TOKEN | ty::DATAGRAM_LEN => {
                self.take(fields[0])?;
            }
            ty::CRYPTO => {
                self.take(fields[1])?;
            }
            ty::NEW_CONNECTION_ID => {
                let length = *self.take(1)?.first()?;
                fields[2] = u64::from(length);
                self.take(fields[2] + 16)?;
            }
            _ => {}
        }
        Some(fields)
    }
}

/// Frame types (RFC 9000 section 19, RFC 9221, draft-ietf-quic-ack-frequency).
pub(crate) mod ty {
    pub(crate) const PADDING: u64 = 0x00;
    pub(crate) const PING: u64 = 0x01;
    pub(crate) const ACK: u64 = 0x02;
    pub(crate) const ACK_ECN: u64 = 0x03;
    pub(crate) const RESET_STREAM: u64 = 0x04;
    pub(crate) const STOP_SENDING: u64 = 0x05;
    pub(crate) const CRYPTO: u64 = 0x06;
    pub(crate) const NEW_TOKEN: u64 = 0x07;
    pub(crate) const STREAM: u64 = 0x08;
    pub(crate) const STREAM_LAST: u64 = 0x0f;
    pub(crate) const MAX_DATA: u64 = 0x10;
    pub(crate) const MAX_STREAM_DATA: u64 = 0x11;
    pub(crate) const MAX_STREAMS_BIDI: u64 = 0x12;
    pub(crate) const MAX_STREAMS_UNI: u64 = 0x13;
    pub(crate) const DATA_BLOCKED: u64 = 0x14;
    pub(crate) const STREAM_DATA_BLOCKED: u64 = 0x15;
    pub(crate) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
    pub(crate) const STREAMS_BLOCKED_UNI: u64 = 0x17;
    pub(crate) const NEW_CONNECTION_ID: u64 = 0x18;
    pub(crate) const RETIRE_CONNECTION_ID: u64 = 0x19;
    pub(crate) const PATH_CHALLENGE: u64 = 0x1a;
    pub(crate) const PATH_RESPONSE: u64 = 0x1b;
    pub(crate) const CLOSE: u64 = 0x1c;
    pub(crate) const CLOSE_APPLICATION: u64 = 0x1d;
    pub(crate) const HANDSHAKE_DONE: u64 = 0x1e;
    pub(crate) const DATAGRAM: u64 = 0x30;
    pub(crate) const DATAGRAM_LEN: u64 = 0x31;
    pub(crate) const ACK_FREQUENCY: u64 = 0xaf;
    pub(crate) const IMMEDIATE_ACK: u64 = 0x1f;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ack_ranges_come_from_the_highest_down() {
        // largest 100, delay 5, 2 more ranges, first range 10 long; gap 3, length 4; gap 0, length 0.
        let payload = [0x02, 0x40, 100, 5, 2, 10, 3, 4, 0, 0];
        let Some(Frame::Ack(ack)) = Frames::new(&payload).next() else {
            panic!("an ACK frame was expected");
        };
        let ranges: Vec<_> = ack.ranges().collect();
        assert_eq!(ranges, [(90, 100), (81, 85), (79, 79)]);
        assert_eq!(ack.delay, 5);
    }

    #[test]
    fn frames_of_one_packet_are_walked_in_order() {
        let payload = [
            0x01, // PING
            0x00, 0x00, 0x00, // PADDING
            0x0e, 0x04, 0x40, 0x64, 0x02, b'h', b'i', // STREAM 4, offset 100, 2 bytes
            0x09, 0x08, b'x', // STREAM 8, no length, FIN
        ];
        let frames: Vec<_> = Frames::new(&payload).collect();
        assert_eq!(
            frames,
            [
                Frame::Other {
                    ty: ty::PING,
                    fields: [0; 3]
                },
                Frame::Padding(3),
                Frame::Stream {
                    id: 4,
                    offset: 100,
                    length: 2,
                    is_fin: false
                },
                Frame::Stream {
                    id: 8,
                    offset: 0,
                    length: 1,
                    is_fin: true
                },
            ]
        );
    }

    #[test]
    fn every_prefix_and_any_bytes_are_walked_without_panic() {
        let mut state = 1u64;
        for length in 0..200usize {
            for _ in 0..200 {
                let bytes: Vec<u8> = (0..length)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        (state >> 56) as u8 & 0x3f
                    })
                    .collect();
                for frame in Frames::new(&bytes) {
                    let _ = frame.to_log(3);
                }
            }
        }
    }

    #[test]
    fn a_range_below_zero_ends_the_ranges() {
        let payload = [0x02, 5, 0, 1, 2, 9, 1];
        let Some(Frame::Ack(ack)) = Frames::new(&payload).next() else {
            panic!("an ACK frame was expected");
        };
        assert_eq!(ack.ranges().collect::<Vec<_>>(), [(3, 5)]);
    }
}
