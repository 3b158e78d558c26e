//! The events of one connection, as plain data, independent of any dialect of qlog.
//!
//! The names and meanings follow draft-ietf-quic-qlog-quic-events-04; each item cites the section
//! of the protocol it describes. Integers inside [`Frame`] and [`TransportParameters`] are the
//! fields of the wire format (RFC 9000 sections 18 and 19), so they stay bare `u64`; their docs name
//! the unit.

use std::net::SocketAddr;
use std::time::Duration;

use units::{ByteCount, Rate};

/// One thing that happened on a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The connection came into being: the first packet was sent or accepted
    /// (`connectivity:connection_started`).
    ConnectionStarted {
        /// The address of the side that logs.
        local: SocketAddr,
        /// The address of its peer.
        remote: SocketAddr,
        /// The connection ID the logging side chose for itself; may be empty.
        local_cid: Vec<u8>,
        /// The connection ID used towards the peer at that moment; may be empty.
        remote_cid: Vec<u8>,
    },
    /// The connection went from one stage of its life to the next
    /// (`connectivity:connection_state_updated`).
    ConnectionStateUpdated {
        /// The stage left, `None` for the first event.
        old: Option<ConnectionState>,
        /// The stage entered.
        new: ConnectionState,
    },
    /// The connection ended (`connectivity:connection_closed`).
    ConnectionClosed {
        /// Who ended it; `None` when nobody did, as in an idle timeout.
        owner: Option<Owner>,
        /// The code of the CONNECTION_CLOSE frame.
        code: CloseCode,
        /// The reason phrase; arbitrary text from the network, may be empty.
        reason: String,
        /// What kind of end it was.
        trigger: CloseTrigger,
    },
    /// The transport parameters of one side became known (`transport:parameters_set`).
    ParametersSet {
        /// Whose parameters these are: the ones we sent, or the ones we received.
        owner: Owner,
        /// The parameters.
        parameters: Box<TransportParameters>,
    },
    /// A packet was handed to the network (`transport:packet_sent`).
    PacketSent {
        /// The packet's type.
        ty: PacketType,
        /// The packet number; ignored for types that have none.
        pn: u64,
        /// The size of the whole packet, with header and authentication tag.
        length: ByteCount,
        /// Every frame in it, in wire order; a run of padding is one entry.
        frames: Vec<Frame>,
        /// Sent to find out whether packets of this size arrive (RFC 9000 section 14.4).
        is_mtu_probe: bool,
        /// Sent because the probe timeout expired (RFC 9002 section 6.2.4).
        is_pto_probe: bool,
    },
    /// A packet arrived and was decrypted (`transport:packet_received`).
    PacketReceived {
        /// The packet's type.
        ty: PacketType,
        /// The packet number; ignored for types that have none.
        pn: u64,
        /// The size of the whole packet, with header and authentication tag.
        length: ByteCount,
        /// Every frame in it, in wire order; a run of padding is one entry.
        frames: Vec<Frame>,
    },
    /// A packet was declared lost (`recovery:packet_lost`).
    PacketLost {
        /// The type it was sent with.
        ty: PacketType,
        /// Its packet number.
        pn: u64,
        /// The rule that declared it lost.
        trigger: LossTrigger,
    },
    /// The quantities of loss recovery and congestion control, all that are known; the writer picks
    /// out what changed (`recovery:metrics_updated`).
    MetricsUpdated(Metrics),
    /// The controller changed its state (`recovery:congestion_state_updated`). The words are listed
    /// in the crate's documentation.
    CongestionStateUpdated {
        /// The state left, `None` for the event that gives the initial state.
        old: Option<&'static str>,
        /// The state entered.
        new: &'static str,
        /// Why.
        trigger: Option<&'static str>,
    },
    /// The constants loss recovery and congestion control work with (`recovery:parameters_set`).
    RecoveryParametersSet(RecoveryParameters),
    /// The largest datagram the path is known to carry changed (`connectivity:mtu_updated`).
    MtuUpdated {
        /// The size before, if there was one.
        old: Option<ByteCount>,
        /// The size from now on.
        new: ByteCount,
        /// No larger size will be tried.
        is_done: bool,
    },
    /// A remark of the scenario that plays the connection, such as the begin of a phase
    /// (`simulation:marker`).
    Marker {
        /// The remark.
        message: String,
    },
}

/// The type of a packet (RFC 9000 section 17).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PacketType {
    /// Initial (RFC 9000 section 17.2.2).
    Initial,
    /// Handshake (RFC 9000 section 17.2.4).
    Handshake,
    /// 0-RTT (RFC 9000 section 17.2.3).
    ZeroRtt,
    /// 1-RTT, the short header (RFC 9000 section 17.3.1).
    OneRtt,
    /// Retry (RFC 9000 section 17.2.5); has no packet number.
    Retry,
    /// Version Negotiation (RFC 9000 section 17.2.1); has no packet number.
    VersionNegotiation,
}

impl PacketType {
    /// The word qlog uses for this type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::ZeroRtt => "0RTT",
            Self::OneRtt => "1RTT",
            Self::Retry => "retry",
            Self::VersionNegotiation => "version_negotiation",
        }
    }

    /// Whether packets of this type carry a packet number.
    pub const fn has_number(self) -> bool {
        !matches!(self, Self::Retry | Self::VersionNegotiation)
    }
}

/// A frame (RFC 9000 section 19, RFC 9221, draft-ietf-quic-ack-frequency).
///
/// Neither stream data nor tokens nor keys are part of the model, only their lengths, so that none of
/// them can reach a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A run of PADDING frames.
    Padding {
        /// How many bytes the run has.
        length: u64,
    },
    /// PING.
    Ping,
    /// ACK.
    Ack {
        /// How long the sender of the frame held the acknowledgment back, decoded.
        ack_delay: Duration,
        /// The acknowledged ranges (low, high), both inclusive, highest first as on the wire.
        ranges: Vec<(u64, u64)>,
        /// The counters ECT(0), ECT(1), CE of an ACK_ECN frame.
        ecn: Option<(u64, u64, u64)>,
    },
    /// RESET_STREAM.
    ResetStream {
        /// The stream.
        stream_id: u64,
        /// The application's code.
        error_code: u64,
        /// The size of the stream, in bytes.
        final_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// The stream.
        stream_id: u64,
        /// The application's code.
        error_code: u64,
    },
    /// CRYPTO.
    Crypto {
        /// The position of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// NEW_TOKEN.
    NewToken {
        /// The size of the token, in bytes.
        length: u64,
    },
    /// STREAM.
    Stream {
        /// The stream.
        stream_id: u64,
        /// The position of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
        /// Whether the stream ends here.
        fin: bool,
    },
    /// MAX_DATA.
    MaxData {
        /// The limit for the whole connection, in bytes.
        maximum: u64,
    },
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        stream_id: u64,
        /// The limit, in bytes.
        maximum: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Whether the limit is for bidirectional streams.
        bidi: bool,
        /// The limit, in streams.
        maximum: u64,
    },
    /// DATA_BLOCKED.
    DataBlocked {
        /// The limit that was hit, in bytes.
        limit: u64,
    },
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        stream_id: u64,
        /// The limit that was hit, in bytes.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Whether the limit is for bidirectional streams.
        bidi: bool,
        /// The limit that was hit, in streams.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// The number of the new ID.
        sequence_number: u64,
        /// IDs below this number shall be retired.
        retire_prior_to: u64,
        /// The size of the ID, in bytes.
        cid_length: u8,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// The number of the ID.
        sequence_number: u64,
    },
    /// PATH_CHALLENGE.
    PathChallenge,
    /// PATH_RESPONSE.
    PathResponse,
    /// CONNECTION_CLOSE.
    ConnectionClose {
        /// Whether the code is the application's (frame type 0x1d).
        is_application: bool,
        /// The code.
        error_code: u64,
        /// The reason phrase; arbitrary text from the network, may be empty.
        reason: String,
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// DATAGRAM (RFC 9221 section 4).
    Datagram {
        /// The size of the payload, in bytes.
        length: u64,
    },
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency).
    ImmediateAck,
    /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
    AckFrequency {
        /// The number of the request.
        sequence_number: u64,
        /// How many ack-eliciting packets may arrive without an acknowledgment.
        ack_eliciting_threshold: u64,
        /// The `max_ack_delay` asked for.
        request_max_ack_delay: Duration,
        /// How many packets of reordering are tolerated before an immediate acknowledgment.
        reordering_threshold: u64,
    },
    /// A frame this crate has no name for.
    Unknown {
        /// The type as on the wire.
        frame_type: u64,
    },
}

/// The rule that declared a packet lost (RFC 9002 section 6).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LossTrigger {
    /// A packet sent sufficiently later was acknowledged (RFC 9002 section 6.1.1).
    ReorderingThreshold,
    /// It was sent too long before an acknowledged packet (RFC 9002 section 6.1.2).
    TimeThreshold,
    /// Given up when the probe timeout expired (RFC 9002 section 6.2).
    PtoExpired,
}

impl LossTrigger {
    /// The word qlog uses for this rule.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReorderingThreshold => "reordering_threshold",
            Self::TimeThreshold => "time_threshold",
            Self::PtoExpired => "pto_expired",
        }
    }
}

/// The quantities of loss recovery and congestion control (RFC 9002 appendices A.3 and B.2).
///
/// `None` means "not known" or "not applicable" and is never written. The same goes for a value no
/// reader could represent: an unlimited rate, or a byte count above 2^53.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Metrics {
    /// The smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The latest sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// The mean deviation of the round-trip time.
    pub rtt_variance: Option<Duration>,
    /// How often the probe timeout expired in a row.
    pub pto_count: Option<u64>,
    /// The congestion window.
    pub congestion_window: Option<ByteCount>,
    /// What was sent and neither acknowledged nor declared lost.
    pub bytes_in_flight: Option<ByteCount>,
    /// The slow-start threshold; `None` until the first congestion event.
    pub ssthresh: Option<ByteCount>,
    /// The number of packets in flight, over all packet number spaces.
    pub packets_in_flight: Option<u64>,
    /// The rate at which the pacer releases data.
    pub pacing_rate: Option<Rate>,
    /// What a controller with a model of the path knows. Our own: written as `cc_model` beside `data`.
    pub model: PathModel,
}

/// What BBR knows about the path, under the draft's names (draft-ietf-ccwg-bbr-06 section 2). All `None`
/// without such a model; then nothing of it is written.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct PathModel {
    /// The largest delivery rate of this cycle of probing and the one before.
    pub max_bw: Option<Rate>,
    /// The bound that recent losses put on the rate.
    pub bw_shortterm: Option<Bound<Rate>>,
    /// What may be in flight according to the losses of the probes.
    pub inflight_longterm: Option<Bound<ByteCount>>,
    /// The bound that recent losses put on the bytes in flight.
    pub inflight_shortterm: Option<Bound<ByteCount>>,
    /// The smallest round-trip time of the last ten seconds, which is not that of the connection.
    pub min_rtt: Option<Duration>,
    /// How many bytes more than expected were acknowledged at once lately.
    pub extra_acked: Option<ByteCount>,
    /// Round trips so far.
    pub round_count: Option<u64>,
}

/// A bound that may be absent, which is worth writing too: as `null`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Bound<T> {
    /// There is none.
    Unset,
    /// This much.
    Set(T),
}

/// A stage in the life of a connection (quic-events-04, `ConnectionState`).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConnectionState {
    /// The first Initial packet was sent or received.
    Attempted,
    /// The TLS handshake is under way.
    HandshakeStarted,
    /// Both Finished messages are through (RFC 9001 section 4.1.1).
    HandshakeComplete,
    /// HANDSHAKE_DONE was sent or received (RFC 9001 section 4.1.2).
    HandshakeConfirmed,
    /// We sent CONNECTION_CLOSE (RFC 9000 section 10.2.1).
    Closing,
    /// We received CONNECTION_CLOSE (RFC 9000 section 10.2.2).
    Draining,
    /// All state is gone.
    Closed,
}

impl ConnectionState {
    /// The word qlog uses for this stage.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempted => "attempted",
            Self::HandshakeStarted => "handshake_started",
            Self::HandshakeComplete => "handshake_complete",
            Self::HandshakeConfirmed => "handshake_confirmed",
            Self::Closing => "closing",
            Self::Draining => "draining",
            Self::Closed => "closed",
        }
    }
}

/// One of the two sides, seen from the one that logs.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Owner {
    /// The side that logs.
    Local,
    /// Its peer.
    Remote,
}

impl Owner {
    /// The word qlog uses for this side.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
        }
    }
}

/// The code a connection was closed with.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum CloseCode {
    /// No code: nobody sent CONNECTION_CLOSE.
    None,
    /// A transport code (RFC 9000 section 20.1).
    Transport(u64),
    /// A code of the application.
    Application(u64),
}

/// The kind of end a connection had (quic-events-04, `ConnectivityConnectionClosed`).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum CloseTrigger {
    /// Closed after all work was done.
    Clean,
    /// The handshake took too long.
    HandshakeTimeout,
    /// Nothing was heard for the idle timeout (RFC 9000 section 10.1).
    IdleTimeout,
    /// The transport closed it because of an error (RFC 9000 section 11.1).
    Error,
    /// A stateless reset arrived (RFC 9000 section 10.3).
    StatelessReset,
    /// No common version (RFC 9000 section 6).
    VersionMismatch,
    /// The application closed it.
    Application,
}

impl CloseTrigger {
    /// The word qlog uses for this kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Error => "error",
            Self::StatelessReset => "stateless_reset",
            Self::VersionMismatch => "version_mismatch",
            Self::Application => "application",
        }
    }
}

/// Transport parameters (RFC 9000 section 18.2). Those that are `None` are not written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TransportParameters {
    /// The name of the TLS cipher suite, as `TLS_AES_128_GCM_SHA256`.
    pub tls_cipher: Option<String>,
    /// The connection ID of the client's very first packet.
    pub original_destination_connection_id: Option<Vec<u8>>,
    /// The source connection ID of this side's first Initial packet.
    pub initial_source_connection_id: Option<Vec<u8>>,
    /// The source connection ID of the Retry packet.
    pub retry_source_connection_id: Option<Vec<u8>>,
    /// Whether the peer must not change its address.
    pub disable_active_migration: Option<bool>,
    /// The idle timeout; zero means none. Written in whole milliseconds.
    pub max_idle_timeout: Option<Duration>,
    /// The largest UDP payload accepted, in bytes.
    pub max_udp_payload_size: Option<u64>,
    /// The power of two by which ACK Delay fields are scaled.
    pub ack_delay_exponent: Option<u64>,
    /// The longest time an acknowledgment is held back. Written in whole milliseconds.
    pub max_ack_delay: Option<Duration>,
    /// How many connection IDs of the peer are stored.
    pub active_connection_id_limit: Option<u64>,
    /// Flow control of the whole connection, in bytes.
    pub initial_max_data: Option<u64>,
    /// Flow control of a bidirectional stream this side opens, in bytes.
    pub initial_max_stream_data_bidi_local: Option<u64>,
    /// Flow control of a bidirectional stream the peer opens, in bytes.
    pub initial_max_stream_data_bidi_remote: Option<u64>,
    /// Flow control of a unidirectional stream the peer opens, in bytes.
    pub initial_max_stream_data_uni: Option<u64>,
    /// How many bidirectional streams the peer may open.
    pub initial_max_streams_bidi: Option<u64>,
    /// How many unidirectional streams the peer may open.
    pub initial_max_streams_uni: Option<u64>,
}

/// The constants of loss recovery and congestion control (RFC 9002 appendices A.2 and B.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RecoveryParameters {
    /// The name of the congestion controller.
    pub congestion_control: Option<&'static str>,
    /// kPacketThreshold, in packets.
    pub reordering_threshold: Option<u64>,
    /// kTimeThreshold, as a multiple of the round-trip time.
    pub time_threshold: Option<Multiplier>,
    /// kGranularity. Written in whole milliseconds, rounded up.
    pub timer_granularity: Duration,
    /// kInitialRtt.
    pub initial_rtt: Option<Duration>,
    /// The size of the datagrams sent.
    pub max_datagram_size: Option<ByteCount>,
    /// kInitialWindow.
    pub initial_congestion_window: Option<ByteCount>,
    /// kMinimumWindow.
    pub minimum_congestion_window: Option<ByteCount>,
    /// What the window is multiplied with on a loss (kLossReductionFactor).
    pub loss_reduction_factor: Option<Multiplier>,
    /// kPersistentCongestionThreshold, as a multiple of the probe timeout.
    pub persistent_congestion_threshold: Option<u64>,
}

impl Default for RecoveryParameters {
    /// Nothing known but the timer granularity RFC 9002 section 6.1.2 recommends, 1 ms.
    fn default() -> Self {
        Self {
            congestion_control: None,
            reordering_threshold: None,
            time_threshold: None,
            timer_granularity: Duration::from_millis(1),
            initial_rtt: None,
            max_datagram_size: None,
            initial_congestion_window: None,
            minimum_congestion_window: None,
            loss_reduction_factor: None,
            persistent_congestion_threshold: None,
        }
    }
}

/// A factor without a unit, exact to a thousandth: 1.125 is 1,125 thousandths.
///
/// ```
/// let time_threshold = qlogs::Multiplier::from_thousandths(1_125);
/// assert_eq!(time_threshold.as_thousandths(), 1_125);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Multiplier(u32);

impl Multiplier {
    /// A factor given in thousandths.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }

    /// The factor in thousandths.
    pub const fn as_thousandths(self) -> u32 {
        self.0
    }
}
