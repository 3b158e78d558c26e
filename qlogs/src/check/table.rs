//! Which members an event has and of what kind they are, after quic-events-04 and h3-events-04.
//!
//! The table is our own, and shorter than the documents: members nobody reads are left out, and members
//! that are not listed are nobody's fault. `a|b` stands for two names of one member: that of 0.3 and that
//! of the current drafts (quic-events-13).

use self::Kind::{Any, Array, Bool, Bytes, Frames, Hex, Object, Text, Time, U16, U32, U64, Word};

/// The kind of value a member has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number that fits 16 bits.
    U16,
    /// A whole number that fits 32 bits.
    U32,
    /// A whole number that fits 64 bits.
    U64,
    /// A whole number of bytes: at most 2^53, so that every reader sees the same.
    Bytes,
    /// A time in milliseconds or another number that is not negative; fractions are allowed.
    Time,
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Lowercase hexadecimal digits, an even number of them.
    Hex,
    /// True or false.
    Bool,
    /// An object.
    Object,
    /// An array.
    Array,
    /// An array of frames.
    Frames,
    /// Anything.
    Any,
}

/// A member of `data`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Where it is: names separated by dots.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
}

const fn must(path: &'static str, kind: Kind) -> Member {
    Member {
        path,
        kind,
        is_required: true,
    }
}

const fn may(path: &'static str, kind: Kind) -> Member {
    Member {
        path,
        kind,
        is_required: false,
    }
}

pub(super) const PACKET_TYPES: &[&str] = &[
    "initial",
    "handshake",
    "0RTT",
    "1RTT",
    "retry",
    "version_negotiation",
    "stateless_reset",
    "unknown",
];

/// The packets without a number (RFC 9000 sections 17.2.1, 17.2.5 and 10.3).
pub(super) const WITHOUT_NUMBER: &[&str] =
    &["retry", "version_negotiation", "stateless_reset", "unknown"];

const SIDES: &[&str] = &["local", "remote"];

const CONNECTION_STATES: &[&str] = &[
    "attempted",
    "peer_validated",
    "handshake_started",
    "early_write",
    "handshake_complete",
    "handshake_confirmed",
    "closing",
    "draining",
    "closed",
];

const CLOSE_TRIGGERS: &[&str] = &[
    "clean",
    "handshake_timeout",
    "idle_timeout",
    "error",
    "stateless_reset",
    "version_mismatch",
    "application",
    "aborted",
    "unspecified",
];

const SENT_TRIGGERS: &[&str] = &[
    "retransmit_reordered",
    "retransmit_timeout",
    "pto_probe",
    "retransmit_crypto",
    "cc_bandwidth_probe",
];

const LOST_TRIGGERS: &[&str] = &["reordering_threshold", "time_threshold", "pto_expired"];

const STREAM_SIDES: &[&str] = &["sending", "receiving"];

const STREAM_TYPES: &[&str] = &["unidirectional", "bidirectional"];

const TIMER_EVENTS: &[&str] = &["set", "expired", "cancelled"];

/// Event, and its members.
pub(super) const EVENTS: &[(&str, &[Member])] = &[
    (
        "connectivity:connection_started",
        &[
            must("src_ip|local", Any),
            must("dst_ip|remote", Any),
            may("ip_version", Word(&["v4", "v6"])),
            may("src_port", U16),
            may("dst_port", U16),
            may("src_cid", Hex),
            may("dst_cid", Hex),
        ],
    ),
    (
        "connectivity:connection_state_updated",
        &[
            must("new", Word(CONNECTION_STATES)),
            may("old", Word(CONNECTION_STATES)),
        ],
    ),
    (
        "connectivity:connection_closed",
        &[
            may("owner|initiator", Word(SIDES)),
            may("reason", Text),
            may("trigger", Word(CLOSE_TRIGGERS)),
        ],
    ),
    (
        "connectivity:connection_id_updated",
        &[
            must("owner|initiator", Word(SIDES)),
            may("old", Hex),
            may("new", Hex),
        ],
    ),
    ("connectivity:spin_bit_updated", &[must("state", Bool)]),
    (
        "connectivity:mtu_updated",
        &[must("new", U32), may("old", U32), may("done", Bool)],
    ),
    (
        "transport:version_information",
        &[
            may("server_versions", Array),
            may("client_versions", Array),
            may("chosen_version", Text),
        ],
    ),
    ("transport:alpn_information", &[may("chosen_alpn", Any)]),
    (
        "transport:parameters_set",
        &[
            may("owner|initiator", Word(SIDES)),
            may("tls_cipher", Text),
            may("disable_active_migration", Bool),
            may("original_destination_connection_id", Hex),
            may("initial_source_connection_id", Hex),
            may("retry_source_connection_id", Hex),
            may("max_idle_timeout", U64),
            may("max_udp_payload_size", U32),
            may("ack_delay_exponent", U16),
            may("max_ack_delay", U16),
            may("active_connection_id_limit", U32),
            may("initial_max_data", U64),
            may("initial_max_stream_data_bidi_local", U64),
            may("initial_max_stream_data_bidi_remote", U64),
            may("initial_max_stream_data_uni", U64),
            may("initial_max_streams_bidi", U64),
            may("initial_max_streams_uni", U64),
        ],
    ),
    (
        "transport:packet_sent",
        &[
            must("header", Object),
            must("header.packet_type", Word(PACKET_TYPES)),
            may("header.packet_number", U64),
            may("raw.length", U64),
            may("frames", Frames),
            may("is_mtu_probe_packet", Bool),
            may("trigger", Word(SENT_TRIGGERS)),
        ],
    ),
    (
        "transport:packet_received",
        &[
            must("header", Object),
            must("header.packet_type", Word(PACKET_TYPES)),
            may("header.packet_number", U64),
            may("raw.length", U64),
            may("frames", Frames),
            may("trigger", Word(&["keys_available"])),
        ],
    ),
    (
        "transport:packet_dropped",
        &[
            may("header.packet_type", Word(PACKET_TYPES)),
            may("raw.length", U64),
            may("trigger", Text),
        ],
    ),
    (
        "transport:data_moved",
        &[
            may("stream_id", U64),
            may("offset", U64),
            may("length", U64),
            may("from", Text),
            may("to", Text),
        ],
    ),
    (
        "transport:stream_state_updated",
        &[
            must("stream_id", U64),
            must("new", Text),
            may("stream_side", Word(STREAM_SIDES)),
            may("stream_type", Word(STREAM_TYPES)),
        ],
    ),
    (
        "recovery:packet_lost",
        &[
            must("header", Object),
            must("header.packet_type", Word(PACKET_TYPES)),
            must("header.packet_number", U64),
            may("trigger", Word(LOST_TRIGGERS)),
            may("is_mtu_probe_packet", Bool),
        ],
    ),
    (
        "recovery:metrics_updated",
        &[
            may("min_rtt", Time),
            may("smoothed_rtt", Time),
            may("latest_rtt", Time),
            may("rtt_variance", Time),
            may("pto_count", U16),
            may("congestion_window", Bytes),
            may("bytes_in_flight", Bytes),
            may("ssthresh", Bytes),
            may("packets_in_flight", U64),
            may("pacing_rate", Bytes),
        ],
    ),
    (
        "recovery:congestion_state_updated",
        &[must("new", Text), may("old", Text), may("trigger", Text)],
    ),
    (
        "recovery:parameters_set",
        &[
            must("timer_granularity", U16),
            may("reordering_threshold", U16),
            may("time_threshold", Time),
            may("initial_rtt", Time),
            may("max_datagram_size", U32),
            may("initial_congestion_window", Bytes),
            may("minimum_congestion_window", Bytes),
            may("loss_reduction_factor", Time),
            may("persistent_congestion_threshold", U16),
        ],
    ),
    (
        "recovery:loss_timer_updated",
        &[
            must("event_type", Word(TIMER_EVENTS)),
            may("timer_type", Text),
            may("delta", Time),
        ],
    ),
    ("security:key_updated", &[must("key_type", Text)]),
    ("security:key_discarded", &[must("key_type", Text)]),
    (
        "http:frame_created",
        &[
            must("stream_id", U64),
            may("length", U64),
            must("frame.frame_type", Text),
        ],
    ),
    (
        "http:frame_parsed",
        &[
            must("stream_id", U64),
            may("length", U64),
            must("frame.frame_type", Text),
        ],
    ),
    (
        "http:stream_type_set",
        &[must("stream_id", U64), must("stream_type", Text)],
    ),
    ("simulation:marker", &[may("message", Text)]),
];

/// Frame, and its members. The current drafts have the sizes of stream, crypto and padding below `raw`.
pub(super) const FRAMES: &[(&str, &[Member])] = &[
    ("padding", &[]),
    ("ping", &[]),
    (
        "ack",
        &[
            may("ack_delay", Time),
            may("acked_ranges", Array),
            may("ect0", U64),
            may("ect1", U64),
            may("ce", U64),
        ],
    ),
    (
        "reset_stream",
        &[must("stream_id", U64), must("final_size", U64)],
    ),
    ("stop_sending", &[must("stream_id", U64)]),
    ("crypto", &[must("offset", U64), may("length", U64)]),
    ("new_token", &[]),
    (
        "stream",
        &[
            must("stream_id", U64),
            must("offset", U64),
            must("length|raw", Any),
            may("fin", Bool),
        ],
    ),
    ("max_data", &[must("maximum", U64)]),
    (
        "max_stream_data",
        &[must("stream_id", U64), must("maximum", U64)],
    ),
    (
        "max_streams",
        &[
            must("stream_type", Word(STREAM_TYPES)),
            must("maximum", U64),
        ],
    ),
    ("data_blocked", &[must("limit", U64)]),
    (
        "stream_data_blocked",
        &[must("stream_id", U64), must("limit", U64)],
    ),
    (
        "streams_blocked",
        &[must("stream_type", Word(STREAM_TYPES)), must("limit", U64)],
    ),
    (
        "new_connection_id",
        &[must("sequence_number", U64), must("retire_prior_to", U64)],
    ),
    ("retire_connection_id", &[must("sequence_number", U64)]),
    ("path_challenge", &[]),
    ("path_response", &[]),
    ("connection_close", &[may("reason", Text)]),
    ("handshake_done", &[]),
];
