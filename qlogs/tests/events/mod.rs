//! A short connection in which every kind of event and every kind of frame occurs once or more.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use qlogs::{
    Bound, CloseCode, CloseTrigger, ConnectionState, Event, Frame, LossTrigger, Metrics,
    Multiplier, Owner, PacketType, PathModel, RecoveryParameters, TraceHeader, TransportParameters,
    VantagePoint,
};
use units::{ByteCount, Rate, Timestamp};

/// The header of the sample.
pub(crate) fn header() -> TraceHeader {
    TraceHeader {
        title: "sample: every event once".into(),
        ..TraceHeader::new(VantagePoint::Server, ODCID.to_vec())
    }
}

const ODCID: [u8; 8] = [0xc0, 0xff, 0xee, 0x00, 0x01, 0x02, 0x03, 0xa4];

/// The events of the sample, in order of time.
pub(crate) fn story() -> Vec<(Timestamp, Event)> {
    let events = [
        Event::ConnectionStarted {
            local: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 17), 443)),
            remote: SocketAddr::from((Ipv4Addr::new(198, 51, 100, 99), 50_123)),
            local_cid: vec![0xab, 0x01],
            remote_cid: vec![],
        },
        Event::ConnectionStateUpdated {
            old: None,
            new: ConnectionState::Attempted,
        },
        parameters(Owner::Local),
        parameters(Owner::Remote),
        Event::RecoveryParametersSet(RecoveryParameters {
            congestion_control: Some("cubic"),
            reordering_threshold: Some(3),
            time_threshold: Some(Multiplier::from_thousandths(1_125)),
            timer_granularity: Duration::from_millis(1),
            initial_rtt: Some(Duration::from_millis(333)),
            max_datagram_size: Some(ByteCount::new(1_200)),
            initial_congestion_window: Some(ByteCount::new(12_000)),
            minimum_congestion_window: Some(ByteCount::new(2_400)),
            loss_reduction_factor: Some(Multiplier::from_thousandths(700)),
            persistent_congestion_threshold: Some(3),
        }),
        Event::CongestionStateUpdated {
            old: None,
            new: "slow_start",
            trigger: None,
        },
        received(
            PacketType::Initial,
            0,
            vec![crypto(), Frame::Padding { length: 900 }],
        ),
        sent(PacketType::Initial, 0, vec![ack(), crypto()]),
        sent(PacketType::Handshake, 0, vec![crypto()]),
        received(PacketType::ZeroRtt, 1, vec![Frame::Ping]),
        sent(PacketType::OneRtt, 0, frames_of_the_schema()),
        sent(PacketType::OneRtt, 1, frames_beyond_the_schema()),
        Event::PacketSent {
            ty: PacketType::OneRtt,
            pn: 2,
            length: ByteCount::new(1_452),
            frames: vec![Frame::Ping, Frame::Padding { length: 1_400 }],
            is_mtu_probe: true,
            is_pto_probe: false,
        },
        Event::PacketSent {
            ty: PacketType::OneRtt,
            pn: 3,
            length: ByteCount::new(40),
            frames: vec![Frame::Ping],
            is_mtu_probe: false,
            is_pto_probe: true,
        },
        sent(PacketType::Retry, 0, vec![]),
        sent(PacketType::VersionNegotiation, 0, vec![]),
        received(PacketType::OneRtt, 1, vec![ack_with_ecn()]),
        Event::MetricsUpdated(metrics()),
        lost(0, LossTrigger::ReorderingThreshold),
        lost(1, LossTrigger::TimeThreshold),
        lost(2, LossTrigger::PtoExpired),
        congestion("slow_start", "recovery", "packet_lost"),
        congestion("recovery", "slow_start", "persistent_congestion"),
        congestion("slow_start", "recovery", "ecn_ce"),
        congestion("recovery", "congestion_avoidance", "recovery_exited"),
        Event::MtuUpdated {
            old: Some(ByteCount::new(1_200)),
            new: ByteCount::new(1_452),
            is_done: true,
        },
        Event::Marker {
            message: "loss ends".into(),
        },
        Event::ConnectionStateUpdated {
            old: Some(ConnectionState::Attempted),
            new: ConnectionState::Closed,
        },
        closed(
            CloseCode::Transport(0x0a),
            CloseTrigger::Error,
            "bad \"frame\"\r\n\u{1e}\u{7f}\\",
        ),
        closed(CloseCode::Transport(0x128), CloseTrigger::Error, ""),
        closed(
            CloseCode::Application(0x100),
            CloseTrigger::Application,
            "done",
        ),
        closed(CloseCode::None, CloseTrigger::IdleTimeout, ""),
    ];
    (0..)
        .map(|n| Timestamp::from_nanos(n * 1_234_567))
        .zip(events)
        .collect()
}

/// Metrics in which every field has a value of its own.
pub(crate) fn metrics() -> Metrics {
    Metrics {
        min_rtt: Some(Duration::from_nanos(10_000_001)),
        smoothed_rtt: Some(Duration::from_micros(12_345)),
        latest_rtt: Some(Duration::from_millis(13)),
        rtt_variance: Some(Duration::from_micros(500)),
        pto_count: Some(0),
        congestion_window: Some(ByteCount::new(14_520)),
        bytes_in_flight: Some(ByteCount::new(2_400)),
        ssthresh: Some(ByteCount::new(7_260)),
        packets_in_flight: Some(2),
        pacing_rate: Some(Rate::from_mbps(100)),
        model: PathModel {
            max_bw: Some(Rate::from_mbps(96)),
            bw_shortterm: Some(Bound::Set(Rate::from_mbps(90))),
            inflight_longterm: Some(Bound::Set(ByteCount::new(120_000))),
            inflight_shortterm: Some(Bound::Unset),
            min_rtt: Some(Duration::from_micros(10_500)),
            extra_acked: Some(ByteCount::new(4_050)),
            round_count: Some(7),
        },
    }
}

/// Every frame that quic-events-04 describes.
pub(crate) fn frames_of_the_schema() -> Vec<Frame> {
    vec![
        Frame::Padding { length: 3 },
        Frame::Ping,
        ack(),
        ack_with_ecn(),
        Frame::ResetStream {
            stream_id: 4,
            error_code: 0x10c,
            final_size: 12_000,
        },
        Frame::StopSending {
            stream_id: 8,
            error_code: 0x10c,
        },
        crypto(),
        Frame::NewToken { length: 73 },
        Frame::Stream {
            stream_id: 0,
            offset: 0,
            length: 1_100,
            fin: false,
        },
        Frame::Stream {
            stream_id: 0,
            offset: 1_100,
            length: 0,
            fin: true,
        },
        Frame::MaxData { maximum: 1_250_000 },
        Frame::MaxStreamData {
            stream_id: 0,
            maximum: 625_000,
        },
        Frame::MaxStreams {
            bidi: true,
            maximum: 100,
        },
        Frame::MaxStreams {
            bidi: false,
            maximum: 3,
        },
        Frame::DataBlocked { limit: 1_250_000 },
        Frame::StreamDataBlocked {
            stream_id: 0,
            limit: 625_000,
        },
        Frame::StreamsBlocked {
            bidi: true,
            limit: 100,
        },
        Frame::StreamsBlocked {
            bidi: false,
            limit: 3,
        },
        Frame::NewConnectionId {
            sequence_number: 2,
            retire_prior_to: 1,
            cid_length: 8,
        },
        Frame::RetireConnectionId { sequence_number: 0 },
        Frame::PathChallenge,
        Frame::PathResponse,
        connection_close(false, 0x0, ""),
        connection_close(false, 0x178, "no application protocol"),
        connection_close(false, 0x4_7e57, "a code without a name"),
        connection_close(true, 0x100, "bye\n"),
        connection_close(true, 1 << 40, ""),
        Frame::HandshakeDone,
        Frame::Unknown {
            frame_type: 0x4_2ea1,
        },
    ]
}

/// Frames of later documents, for which quic-events-04 leaves room without naming them.
pub(crate) fn frames_beyond_the_schema() -> Vec<Frame> {
    vec![
        Frame::Datagram { length: 500 },
        Frame::ImmediateAck,
        Frame::AckFrequency {
            sequence_number: 1,
            ack_eliciting_threshold: 10,
            request_max_ack_delay: Duration::from_millis(25),
            reordering_threshold: 3,
        },
    ]
}

fn parameters(owner: Owner) -> Event {
    let parameters = TransportParameters {
        tls_cipher: Some("TLS_AES_128_GCM_SHA256".into()),
        original_destination_connection_id: Some(ODCID.to_vec()),
        initial_source_connection_id: Some(vec![0xab, 0x01]),
        retry_source_connection_id: Some(vec![]),
        disable_active_migration: Some(false),
        max_idle_timeout: Some(Duration::from_secs(30)),
        max_udp_payload_size: Some(1_472),
        ack_delay_exponent: Some(3),
        max_ack_delay: Some(Duration::from_millis(25)),
        active_connection_id_limit: Some(5),
        initial_max_data: Some(1_250_000),
        initial_max_stream_data_bidi_local: Some(625_000),
        initial_max_stream_data_bidi_remote: Some(625_001),
        initial_max_stream_data_uni: Some(625_002),
        initial_max_streams_bidi: Some(100),
        initial_max_streams_uni: Some(3),
    };
    Event::ParametersSet {
        owner,
        parameters: Box::new(parameters),
    }
}

fn sent(ty: PacketType, pn: u64, frames: Vec<Frame>) -> Event {
    let length = ByteCount::new(1_200);
    Event::PacketSent {
        ty,
        pn,
        length,
        frames,
        is_mtu_probe: false,
        is_pto_probe: false,
    }
}

fn received(ty: PacketType, pn: u64, frames: Vec<Frame>) -> Event {
    Event::PacketReceived {
        ty,
        pn,
        length: ByteCount::new(1_200),
        frames,
    }
}

fn lost(pn: u64, trigger: LossTrigger) -> Event {
    Event::PacketLost {
        ty: PacketType::OneRtt,
        pn,
        trigger,
    }
}

fn congestion(old: &'static str, new: &'static str, trigger: &'static str) -> Event {
    Event::CongestionStateUpdated {
        old: Some(old),
        new,
        trigger: Some(trigger),
    }
}

fn closed(code: CloseCode, trigger: CloseTrigger, reason: &str) -> Event {
    let owner = (code != CloseCode::None).then_some(Owner::Remote);
    Event::ConnectionClosed {
        owner,
        code,
        reason: reason.into(),
        trigger,
    }
}

fn connection_close(is_application: bool, error_code: u64, reason: &str) -> Frame {
    Frame::ConnectionClose {
        is_application,
        error_code,
        reason: reason.into(),
    }
}

fn crypto() -> Frame {
    Frame::Crypto {
        offset: 0,
        length: 280,
    }
}

fn ack() -> Frame {
    Frame::Ack {
        ack_delay: Duration::from_micros(160),
        ranges: vec![(0, 0)],
        ecn: None,
    }
}

fn ack_with_ecn() -> Frame {
    Frame::Ack {
        ack_delay: Duration::ZERO,
        ranges: vec![(7, 9), (4, 4), (0, 2)],
        ecn: Some((12, 0, 1)),
    }
}
