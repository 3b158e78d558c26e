//! What an event says that analyses ask for, whatever its members are called.
//!
//! | here | 0.3 | elsewhere |
//! |---|---|---|
//! | type and number of a packet | `header.packet_type`, `header.packet_number` | the same without `header` (draft-00, aioquic's losses), `type` |
//! | size of a packet | `raw.length` | `header.packet_size` (draft-00), `packet_size`, `header.length` |
//! | size of stream data | `length` | `raw.length`, `raw.payload_length` (current drafts) |
//! | window | `congestion_window` | `cwnd` (draft-00), `current_cwnd` (mvfst) |
//! | whose parameters | `owner` | `initiator` (current drafts, quic-go) |
//! | smoothed, smallest RTT | `smoothed_rtt`, `min_rtt` | `srtt`, `mrtt` (mvfst) |
//! | PTO counted | `pto_count` | `loss_timer_updated` with `event_type` "expired" |

use std::time::Duration;

use serde_json::Value;
use units::{ByteCount, Rate};

use super::header::Header;
use super::value::{number, span, text, whole};
use super::{Record, names};
use crate::schema::{Owner, PacketType};

/// An event as analyses see it. What none of them asks for is [`Event::Other`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `transport:packet_sent`.
    PacketSent(Packet),
    /// `transport:packet_received`.
    PacketReceived(Packet),
    /// `recovery:packet_lost`.
    PacketLost {
        /// Which packet; `None` if the file does not say.
        id: Option<PacketId>,
        /// The rule, in the file's word.
        trigger: Option<String>,
    },
    /// `recovery:metrics_updated`: the fields that the event has.
    Metrics(Metrics),
    /// `recovery:congestion_state_updated`.
    CongestionState {
        /// The state left, if the file says so.
        old: Option<String>,
        /// The state entered.
        new: String,
        /// Why: our `cc_trigger`, or `trigger`.
        trigger: Option<String>,
    },
    /// `recovery:parameters_set`.
    RecoveryParameters {
        /// Our `cc_algorithm`.
        controller: Option<String>,
        /// `minimum_congestion_window`.
        minimum_window: Option<ByteCount>,
        /// `max_datagram_size`.
        datagram_size: Option<ByteCount>,
    },
    /// `transport:parameters_set`.
    Parameters {
        /// Whose.
        owner: Option<Owner>,
        /// `initial_max_data`.
        max_data: Option<u64>,
        /// `initial_max_stream_data_bidi_local`: for streams the owner opens.
        max_stream_data_bidi_local: Option<u64>,
        /// `initial_max_stream_data_bidi_remote`: for streams the owner's peer opens.
        max_stream_data_bidi_remote: Option<u64>,
        /// `initial_max_stream_data_uni`.
        max_stream_data_uni: Option<u64>,
    },
    /// `connectivity:connection_state_updated`: the state entered.
    ConnectionState(String),
    /// `connectivity:connection_closed`.
    Closed,
    /// `recovery:loss_timer_updated`: the probe timeout expired.
    PtoExpired,
    /// `quic:connection_data_blocked_updated` and `quic:stream_data_blocked_updated` of the current
    /// drafts.
    Blocked {
        /// Whether data waits from now on.
        is_blocked: bool,
        /// For what, in the file's word.
        reason: Option<String>,
    },
    /// `recovery:marked_for_retransmit`, `simulation:marker` and everything else.
    Other,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Which one; `None` if the file does not say, or if packets of its type have no number.
    pub id: Option<PacketId>,
    /// The type.
    pub ty: Option<PacketType>,
    /// The size of the whole packet.
    pub length: Option<ByteCount>,
    /// The frames; `None` if the file has none.
    pub frames: Option<Vec<Frame>>,
    /// Sent because the probe timeout expired.
    pub is_pto_probe: bool,
    /// Sent to find out whether packets of this size arrive.
    pub is_mtu_probe: bool,
}

/// Which packet of a connection: its packet number space and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketId {
    /// 0 Initial, 1 Handshake, 2 application data (RFC 9000 section 12.3).
    pub space: u8,
    /// The packet number.
    pub number: u64,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// STREAM.
    Stream {
        /// The stream.
        stream_id: u64,
        /// The position of the first byte.
        offset: u64,
        /// The number of bytes; `None` if the file does not say.
        length: Option<u64>,
        /// Whether the stream ends here.
        fin: bool,
    },
    /// ACK: the ranges, both ends inclusive.
    Ack(Vec<(u64, u64)>),
    /// MAX_DATA: the limit in bytes.
    MaxData(u64),
    /// MAX_STREAM_DATA: stream, and limit in bytes.
    MaxStreamData(u64, u64),
    /// DATA_BLOCKED or STREAM_DATA_BLOCKED.
    DataBlocked,
    /// PADDING, CONNECTION_CLOSE: what elicits no acknowledgment (RFC 9000 section 13.2.1), besides ACK.
    Quiet,
    /// Any other.
    Eliciting,
}

/// The quantities of loss recovery and congestion control that an event has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// `min_rtt`.
    pub min_rtt: Option<Duration>,
    /// `smoothed_rtt`.
    pub smoothed_rtt: Option<Duration>,
    /// `latest_rtt`.
    pub latest_rtt: Option<Duration>,
    /// `rtt_variance`.
    pub rtt_variance: Option<Duration>,
    /// `pto_count`.
    pub pto_count: Option<u64>,
    /// `congestion_window`.
    pub window: Option<ByteCount>,
    /// `bytes_in_flight`.
    pub in_flight: Option<ByteCount>,
    /// `ssthresh`.
    pub ssthresh: Option<ByteCount>,
    /// `packets_in_flight`.
    pub packets_in_flight: Option<u64>,
    /// `pacing_rate`.
    pub pacing_rate: Option<Rate>,
}

impl Packet {
    /// Whether the packet counts as in flight (RFC 9002 section 2); one whose frames are not known does.
    pub fn is_in_flight(&self) -> bool {
        self.id.is_some()
            && self.frames.as_ref().is_none_or(|frames| {
                frames
                    .iter()
                    .any(|frame| !matches!(frame, Frame::Ack(_) | Frame::Quiet))
            })
    }

    /// Its frames; none if they are not known.
    pub fn frames(&self) -> &[Frame] {
        self.frames.as_deref().unwrap_or_default()
    }
}

impl Event {
    /// Finds in a record what an analysis asks for.
    pub fn of(record: &Record, header: &Header) -> Self {
        let data = &record.data;
        match record.name.as_str() {
            "transport:packet_sent" => Self::PacketSent(packet(data)),
            "transport:packet_received" => Self::PacketReceived(packet(data)),
            "recovery:packet_lost" => Self::PacketLost {
                id: packet_id(data),
                trigger: text(data.get("trigger")),
            },
            "recovery:metrics_updated" => Self::Metrics(metrics(data, header)),
            "recovery:congestion_state_updated" => Self::CongestionState {
                old: text(data.get("old")),
                new: text(data.get("new")).unwrap_or_default(),
                trigger: text(record.beside.get("cc_trigger"))
                    .or_else(|| text(data.get("trigger"))),
            },
            "recovery:parameters_set" => Self::RecoveryParameters {
                controller: text(record.beside.get("cc_algorithm"))
                    .or_else(|| text(data.get("congestion_control"))),
                minimum_window: bytes(data.get("minimum_congestion_window")),
                datagram_size: bytes(data.get("max_datagram_size")),
            },
            "transport:parameters_set" => Self::Parameters {
                owner: match first_text(data, &["owner", "initiator"]).as_deref() {
                    Some("local") => Some(Owner::Local),
                    Some("remote") => Some(Owner::Remote),
                    _ => None,
                },
                max_data: whole(data.get("initial_max_data")),
                max_stream_data_bidi_local: whole(data.get("initial_max_stream_data_bidi_local")),
                max_stream_data_bidi_remote: whole(data.get("initial_max_stream_data_bidi_remote")),
                max_stream_data_uni: whole(data.get("initial_max_stream_data_uni")),
            },
            "connectivity:connection_state_updated" => {
                Self::ConnectionState(text(data.get("new")).unwrap_or_default().to_lowercase())
            }
            "connectivity:connection_closed" => Self::Closed,
            "recovery:loss_timer_updated" if is_expired_pto(data) => Self::PtoExpired,
            "quic:connection_data_blocked_updated" | "quic:stream_data_blocked_updated" => {
                Self::Blocked {
                    is_blocked: text(data.get("new")).as_deref() == Some("blocked"),
                    reason: text(data.get("reason")),
                }
            }
            _ => Self::Other,
        }
    }
}

fn is_expired_pto(data: &Value) -> bool {
    let is =
        |key, word: &str| text(data.get(key)).is_some_and(|found| found.eq_ignore_ascii_case(word));
    is("event_type", "expired") && is("timer_type", "pto")
}

fn first_text(data: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text(data.get(key)))
}

fn bytes(value: Option<&Value>) -> Option<ByteCount> {
    whole(value).map(ByteCount::new)
}

/// A UDP datagram holds no more (RFC 768), so a packet or frame that is longer is a mistake of the file.
const LARGEST_PACKET: u64 = 65_535;

fn packet(data: &Value) -> Packet {
    let header = data.get("header");
    let inside =
        |object: Option<&Value>, key: &str| whole(object.and_then(|object| object.get(key)));
    let frames = data.get("frames").and_then(Value::as_array);
    Packet {
        id: packet_id(data),
        ty: packet_type(data),
        length: inside(data.get("raw"), "length")
            .or_else(|| inside(header, "packet_size"))
            .or_else(|| inside(Some(data), "packet_size"))
            .or_else(|| inside(header, "length"))
            .filter(|length| *length <= LARGEST_PACKET)
            .map(ByteCount::new),
        frames: frames.map(|frames| frames.iter().map(frame).collect()),
        is_pto_probe: text(data.get("trigger")).as_deref() == Some("pto_probe"),
        is_mtu_probe: data.get("is_mtu_probe_packet").and_then(Value::as_bool) == Some(true),
    }
}

fn packet_id(data: &Value) -> Option<PacketId> {
    let number = data
        .get("header")
        .and_then(|header| header.get("packet_number"));
    let number = whole(number.or_else(|| data.get("packet_number")))?;
    // A packet without a type is one of application data: the others are few.
    let space = match packet_type(data) {
        Some(PacketType::Initial) => 0,
        Some(PacketType::Handshake) => 1,
        Some(PacketType::ZeroRtt | PacketType::OneRtt) | None => 2,
        Some(PacketType::Retry | PacketType::VersionNegotiation) => return None,
    };
    Some(PacketId { space, number })
}

fn packet_type(data: &Value) -> Option<PacketType> {
    let inside = data
        .get("header")
        .and_then(|header| header.get("packet_type"));
    let word = text(inside).or_else(|| first_text(data, &["packet_type", "type"]))?;
    names::packet_type(&word)
}

fn metrics(data: &Value, header: &Header) -> Metrics {
    // Where times are in microseconds, so are round-trip times.
    let unit = header.unit.nanos();
    let rtt = |keys: &[&str]| keys.iter().find_map(|key| span(data.get(key), unit));
    let size = |keys: &[&str]| keys.iter().find_map(|key| bytes(data.get(key)));
    Metrics {
        min_rtt: rtt(&["min_rtt", "mrtt"]),
        smoothed_rtt: rtt(&["smoothed_rtt", "srtt"]),
        latest_rtt: rtt(&["latest_rtt"]),
        rtt_variance: rtt(&["rtt_variance", "rttvar"]),
        pto_count: whole(data.get("pto_count")),
        window: size(&["congestion_window", "cwnd", "current_cwnd"]),
        in_flight: size(&["bytes_in_flight"]),
        // Some write the largest number of all for "no threshold".
        ssthresh: size(&["ssthresh"]).filter(|bytes| bytes.as_u64() < 1 << 53),
        packets_in_flight: whole(data.get("packets_in_flight")),
        pacing_rate: pacing_rate(data.get("pacing_rate")),
    }
}

/// Some stacks write fractions of a bit per second.
fn pacing_rate(value: Option<&Value>) -> Option<Rate> {
    whole(value)
        .or_else(|| Some(u64::try_from(span(value, 1.0)?.as_nanos()).unwrap_or(u64::MAX)))
        .filter(|bps| *bps < 1 << 53 && number(value).is_some())
        .map(Rate::from_bps)
}

fn frame(data: &Value) -> Frame {
    let field = |key: &str| whole(data.get(key));
    let raw = |key: &str| whole(data.get("raw").and_then(|raw| raw.get(key)));
    let ty = text(data.get("frame_type")).unwrap_or_default();
    match ty.to_lowercase().as_str() {
        "stream" => Frame::Stream {
            stream_id: field("stream_id").or_else(|| field("id")).unwrap_or(0),
            offset: field("offset").unwrap_or(0),
            length: field("length")
                .or_else(|| raw("payload_length"))
                .or_else(|| raw("length"))
                .filter(|length| *length <= LARGEST_PACKET),
            fin: data.get("fin").and_then(Value::as_bool) == Some(true),
        },
        "ack" => {
            let ranges = data.get("acked_ranges").and_then(Value::as_array);
            Frame::Ack(ranges.into_iter().flatten().filter_map(range).collect())
        }
        "max_data" => field("maximum").map_or(Frame::Eliciting, Frame::MaxData),
        "max_stream_data" => match (field("stream_id").or_else(|| field("id")), field("maximum")) {
            (Some(stream), Some(limit)) => Frame::MaxStreamData(stream, limit),
            _ => Frame::Eliciting,
        },
        "data_blocked" | "stream_data_blocked" => Frame::DataBlocked,
        "padding" | "connection_close" => Frame::Quiet,
        _ => Frame::Eliciting,
    }
}

/// `[low, high]`, or `[only]`.
fn range(value: &Value) -> Option<(u64, u64)> {
    let ends = value.as_array()?;
    let low = whole(ends.first())?;
    let high = match ends.get(1) {
        Some(high) => whole(Some(high))?,
        None => low,
    };
    Some((low.min(high), low.max(high)))
}
