//! Events in the dialect "0.3": main-schema-05, quic-events-04.
//!
//! Names, keys and units are those of the documents, and their optional keys are left out when the
//! value is unknown or has no room in the schema. One exception is forced on us: a *mandatory* integer
//! above 2^53 (a peer may send MAX_DATA with 2^62 - 1) is left out as well, because a reader
//! written in JavaScript would silently show another number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use units::{ByteCount, Rate, Timestamp};

use crate::header::{AddressDetail, TraceHeader};
use crate::json::{Json, LARGEST_INTEGER, RECORD_SEPARATOR};
use crate::schema::{
    Bound, CloseCode, Event, Frame, Metrics, PacketType, PathModel, RecoveryParameters,
    TransportParameters,
};

/// The header record. Everything a reader needs stands before the two texts of free length, so that
/// it is found in the first 1,024 bytes however long those are.
pub(crate) fn header(out: &mut Vec<u8>, header: &TraceHeader) {
    record(out, |json| {
        json.word_field("qlog_version", "0.3");
        json.word_field("qlog_format", "JSON-SEQ");
        json.object_field("trace", |trace| {
            trace.object_field("common_fields", |common| {
                common.word_field("time_format", "relative");
                common.millis_field("reference_time", header.reference_time);
                common.hex_field("group_id", &header.odcid);
            });
            trace.object_field("vantage_point", |vantage_point| {
                vantage_point.word_field("type", header.vantage_point.as_str());
                vantage_point.text_field("name", &header.code_version);
            });
            trace.text_field("title", &header.title);
        });
        json.text_field("title", &header.title);
    });
}

/// The record of one event.
pub(crate) fn event(out: &mut Vec<u8>, at: Timestamp, event: &Event, addresses: AddressDetail) {
    record(out, |json| {
        json.decimal_field("time", at.as_nanos(), 6);
        json.word_field("name", event.name());
        json.object_field("data", |data| body(data, event, addresses));
        own_fields(json, event);
    });
}

impl Event {
    /// The event's name in the dialect 0.3, category and type.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectionStarted { .. } => "connectivity:connection_started",
            Self::ConnectionStateUpdated { .. } => "connectivity:connection_state_updated",
            Self::ConnectionClosed { .. } => "connectivity:connection_closed",
            Self::ParametersSet { .. } => "transport:parameters_set",
            Self::PacketSent { .. } => "transport:packet_sent",
            Self::PacketReceived { .. } => "transport:packet_received",
            Self::PacketLost { .. } => "recovery:packet_lost",
            Self::MetricsUpdated(_) => "recovery:metrics_updated",
            Self::CongestionStateUpdated { .. } => "recovery:congestion_state_updated",
            Self::RecoveryParametersSet(_) => "recovery:parameters_set",
            Self::MtuUpdated { .. } => "connectivity:mtu_updated",
            Self::Marker { .. } => "simulation:marker",
        }
    }
}

impl Metrics {
    /// The fields that a reader who has seen `written` does not know yet; the others are `None`.
    pub(crate) fn changed_since(&self, written: &Self) -> Self {
        fn new<T: Copy + PartialEq>(value: Option<T>, written: Option<T>) -> Option<T> {
            value.filter(|_| value != written)
        }
        let given = self.representable();
        Self {
            min_rtt: new(given.min_rtt, written.min_rtt),
            smoothed_rtt: new(given.smoothed_rtt, written.smoothed_rtt),
            latest_rtt: new(given.latest_rtt, written.latest_rtt),
            rtt_variance: new(given.rtt_variance, written.rtt_variance),
            pto_count: new(given.pto_count, written.pto_count),
            congestion_window: new(given.congestion_window, written.congestion_window),
            bytes_in_flight: new(given.bytes_in_flight, written.bytes_in_flight),
            ssthresh: new(given.ssthresh, written.ssthresh),
            packets_in_flight: new(given.packets_in_flight, written.packets_in_flight),
            pacing_rate: new(given.pacing_rate, written.pacing_rate),
            model: PathModel {
                max_bw: new(given.model.max_bw, written.model.max_bw),
                bw_shortterm: new(given.model.bw_shortterm, written.model.bw_shortterm),
                inflight_longterm: new(
                    given.model.inflight_longterm,
                    written.model.inflight_longterm,
                ),
                inflight_shortterm: new(
                    given.model.inflight_shortterm,
                    written.model.inflight_shortterm,
                ),
                min_rtt: new(given.model.min_rtt, written.model.min_rtt),
                extra_acked: new(given.model.extra_acked, written.model.extra_acked),
                round_count: new(given.model.round_count, written.model.round_count),
            },
        }
    }

    /// Takes over every field that `newer` has.
    pub(crate) fn update(&mut self, newer: &Self) {
        *self = Self {
            min_rtt: newer.min_rtt.or(self.min_rtt),
            smoothed_rtt: newer.smoothed_rtt.or(self.smoothed_rtt),
            latest_rtt: newer.latest_rtt.or(self.latest_rtt),
            rtt_variance: newer.rtt_variance.or(self.rtt_variance),
            pto_count: newer.pto_count.or(self.pto_count),
            congestion_window: newer.congestion_window.or(self.congestion_window),
            bytes_in_flight: newer.bytes_in_flight.or(self.bytes_in_flight),
            ssthresh: newer.ssthresh.or(self.ssthresh),
            packets_in_flight: newer.packets_in_flight.or(self.packets_in_flight),
            pacing_rate: newer.pacing_rate.or(self.pacing_rate),
            model: PathModel {
                max_bw: newer.model.max_bw.or(self.model.max_bw),
                bw_shortterm: newer.model.bw_shortterm.or(self.model.bw_shortterm),
                inflight_longterm: newer
                    .model
                    .inflight_longterm
                    .or(self.model.inflight_longterm),
                inflight_shortterm: newer
                    .model
                    .inflight_shortterm
                    .or(self.model.inflight_shortterm),
                min_rtt: newer.model.min_rtt.or(self.model.min_rtt),
                extra_acked: newer.model.extra_acked.or(self.model.extra_acked),
                round_count: newer.model.round_count.or(self.model.round_count),
            },
        };
    }

    /// Without the values that the encoder would leave out.
    fn representable(&self) -> Self {
        let time = |span: &Duration| u64::try_from(span.as_nanos()).is_ok();
        let bytes = |bytes: &ByteCount| bytes.as_u64() <= LARGEST_INTEGER;
        let rate = |rate: &Rate| !rate.is_infinite() && rate.as_bps() <= LARGEST_INTEGER;
        Self {
            min_rtt: self.min_rtt.filter(time),
            smoothed_rtt: self.smoothed_rtt.filter(time),
            latest_rtt: self.latest_rtt.filter(time),
            rtt_variance: self.rtt_variance.filter(time),
            pto_count: self.pto_count.filter(|&count| count <= U16),
            congestion_window: self.congestion_window.filter(bytes),
            bytes_in_flight: self.bytes_in_flight.filter(bytes),
            ssthresh: self.ssthresh.filter(bytes),
            packets_in_flight: self
                .packets_in_flight
                .filter(|&count| count <= LARGEST_INTEGER),
            pacing_rate: self.pacing_rate.filter(rate),
            model: PathModel {
                max_bw: self.model.max_bw.filter(rate),
                bw_shortterm: bound(self.model.bw_shortterm, rate),
                inflight_longterm: bound(self.model.inflight_longterm, bytes),
                inflight_shortterm: bound(self.model.inflight_shortterm, bytes),
                min_rtt: self.model.min_rtt.filter(time),
                extra_acked: self.model.extra_acked.filter(bytes),
                round_count: self
                    .model
                    .round_count
                    .filter(|&count| count <= LARGEST_INTEGER),
            },
        }
    }
}

/// A bound that cannot be written is as good as none.
fn bound<T: Copy>(bound: Option<Bound<T>>, is_writable: impl Fn(&T) -> bool) -> Option<Bound<T>> {
    Some(match bound? {
        Bound::Set(value) if is_writable(&value) => Bound::Set(value),
        _ => Bound::Unset,
    })
}

/// RFC 7464 section 2.2: a record separator, the JSON text, a line feed.
fn record(out: &mut Vec<u8>, fields: impl FnOnce(&mut Json<'_>)) {
    out.push(RECORD_SEPARATOR);
    Json::new(out).object(fields);
    out.push(b'\n');
}

/// Our own additions. They stand beside `data`, because main-schema-05 lets every event carry custom
/// fields there, while the type of `data` of these events has no room for them.
fn own_fields(json: &mut Json<'_>, event: &Event) {
    match event {
        Event::CongestionStateUpdated {
            trigger: Some(trigger),
            ..
        } => {
            json.text_field("cc_trigger", trigger);
        }
        Event::RecoveryParametersSet(RecoveryParameters {
            congestion_control: Some(name),
            ..
        }) => json.text_field("cc_algorithm", name),
        Event::MetricsUpdated(metrics) if metrics.model != PathModel::default() => {
            json.object_field("cc_model", |model| path_model(model, &metrics.model));
        }
        _ => {}
    }
}

fn path_model(fields: &mut Json<'_>, model: &PathModel) {
    if let Some(rate) = model.max_bw {
        fields.integer_field("max_bw", rate.as_bps());
    }
    bound_field(fields, "bw_shortterm", model.bw_shortterm, Rate::as_bps);
    for (key, bound) in [
        ("inflight_longterm", model.inflight_longterm),
        ("inflight_shortterm", model.inflight_shortterm),
    ] {
        bound_field(fields, key, bound, ByteCount::as_u64);
    }
    if let Some(span) = model.min_rtt {
        fields.millis_field("min_rtt", span);
    }
    bytes_field(fields, "extra_acked", model.extra_acked);
    fields.integer_field_up_to(LARGEST_INTEGER, "round_count", model.round_count);
}

fn bound_field<T>(
    fields: &mut Json<'_>,
    key: &str,
    bound: Option<Bound<T>>,
    number: impl Fn(T) -> u64,
) {
    match bound {
        Some(Bound::Set(value)) => fields.integer_field(key, number(value)),
        Some(Bound::Unset) => fields.null_field(key),
        None => {}
    }
}

fn body(data: &mut Json<'_>, event: &Event, addresses: AddressDetail) {
    match event {
        Event::ConnectionStarted {
            local,
            remote,
            local_cid,
            remote_cid,
        } => {
            endpoints(data, *local, *remote, addresses);
            data.hex_field("src_cid", local_cid);
            data.hex_field("dst_cid", remote_cid);
        }
        Event::ConnectionStateUpdated { old, new } => {
            if let Some(old) = old {
                data.word_field("old", old.as_str());
            }
            data.word_field("new", new.as_str());
        }
        Event::ConnectionClosed {
            owner,
            code,
            reason,
            trigger,
        } => {
            if let Some(owner) = owner {
                data.word_field("owner", owner.as_str());
            }
            match *code {
                CloseCode::None => {}
                // RFC 9001 section 4.8: 0x0100 plus the TLS alert.
                CloseCode::Transport(code @ 0x100..=0x1ff) => {
                    data.plain_field("connection_code", format_args!("crypto_error_{code:#x}"));
                }
                CloseCode::Transport(code) => transport_error_field(data, "connection_code", code),
                CloseCode::Application(code) => {
                    data.integer_field_up_to(U32, "application_code", Some(code));
                }
            }
            if !reason.is_empty() {
                data.text_field("reason", reason);
            }
            data.word_field("trigger", trigger.as_str());
        }
        Event::ParametersSet { owner, parameters } => {
            data.word_field("owner", owner.as_str());
            transport_parameters(data, parameters);
        }
        Event::PacketSent {
            ty,
            pn,
            length,
            frames,
            is_mtu_probe,
            is_pto_probe,
        } => {
            packet(data, *ty, *pn, *length, frames);
            if *is_mtu_probe {
                data.bool_field("is_mtu_probe_packet", true);
            }
            if *is_pto_probe {
                data.word_field("trigger", "pto_probe");
            }
        }
        Event::PacketReceived {
            ty,
            pn,
            length,
            frames,
        } => {
            packet(data, *ty, *pn, *length, frames);
        }
        Event::PacketLost { ty, pn, trigger } => {
            packet_header(data, *ty, *pn);
            data.word_field("trigger", trigger.as_str());
        }
        Event::MetricsUpdated(metrics) => metrics_updated(data, metrics),
        Event::CongestionStateUpdated { old, new, trigger } => {
            if let Some(old) = old {
                data.text_field("old", old);
            }
            data.text_field("new", new);
            if let Some(word) = trigger.and_then(schema_trigger) {
                data.word_field("trigger", word);
            }
        }
        Event::RecoveryParametersSet(parameters) => recovery_parameters(data, parameters),
        Event::MtuUpdated { old, new, is_done } => {
            bytes_field(data, "old", *old);
            data.integer_field("new", new.as_u64());
            data.bool_field("done", *is_done);
        }
        Event::Marker { message } => data.text_field("message", message),
    }
}

/// The two triggers of a congestion state that quic-events-04 has words for.
fn schema_trigger(trigger: &str) -> Option<&'static str> {
    match trigger {
        "persistent_congestion" => Some("persistent_congestion"),
        "ecn_ce" => Some("ECN"),
        _ => None,
    }
}

fn packet(data: &mut Json<'_>, ty: PacketType, pn: u64, length: ByteCount, frames: &[Frame]) {
    packet_header(data, ty, pn);
    // Only the whole length: viewers that also find payload_length take the tag off twice.
    data.object_field("raw", |raw| raw.integer_field("length", length.as_u64()));
    data.array_field("frames", |array| {
        for frame in frames {
            array.object(|fields| frame_fields(fields, frame));
        }
    });
}

fn packet_header(data: &mut Json<'_>, ty: PacketType, pn: u64) {
    data.object_field("header", |header| {
        header.word_field("packet_type", ty.as_str());
        if ty.has_number() {
            header.integer_field("packet_number", pn);
        }
    });
}

fn frame_fields(json: &mut Json<'_>, frame: &Frame) {
    json.word_field("frame_type", frame_type(frame));
    match frame {
        Frame::Ping
        | Frame::PathChallenge
        | Frame::PathResponse
        | Frame::HandshakeDone
        | Frame::ImmediateAck => {}
        Frame::Padding { length } => json.integer_field("payload_length", *length),
        Frame::Ack {
            ack_delay,
            ranges,
            ecn,
        } => {
            json.millis_field("ack_delay", *ack_delay);
            if !ranges.is_empty() {
                json.array_field("acked_ranges", |array| {
                    for &(low, high) in ranges.iter().rev() {
                        array.pair(low, high);
                    }
                });
            }
            if let Some((ect0, ect1, ce)) = *ecn {
                json.integer_field("ect0", ect0);
                json.integer_field("ect1", ect1);
                json.integer_field("ce", ce);
            }
        }
        Frame::ResetStream {
            stream_id,
            error_code,
            final_size,
        } => {
            json.integer_field("stream_id", *stream_id);
            json.integer_field("error_code", *error_code);
            json.integer_field("final_size", *final_size);
        }
        Frame::StopSending {
            stream_id,
            error_code,
        } => {
            json.integer_field("stream_id", *stream_id);
            json.integer_field("error_code", *error_code);
        }
        Frame::Crypto { offset, length } => {
            json.integer_field("offset", *offset);
            json.integer_field("length", *length);
        }
        Frame::NewToken { length } => json.object_field("token", |token| {
            token.object_field("raw", |raw| raw.integer_field("length", *length));
        }),
        Frame::Stream {
            stream_id,
            offset,
            length,
            fin,
        } => {
            json.integer_field("stream_id", *stream_id);
            json.integer_field("offset", *offset);
            json.integer_field("length", *length);
            if *fin {
                json.bool_field("fin", true);
            }
        }
        Frame::MaxData { maximum } => json.integer_field("maximum", *maximum),
        Frame::MaxStreamData { stream_id, maximum } => {
            json.integer_field("stream_id", *stream_id);
            json.integer_field("maximum", *maximum);
        }
        Frame::MaxStreams { bidi, maximum } => {
            json.word_field("stream_type", stream_type(*bidi));
            json.integer_field("maximum", *maximum);
        }
        Frame::DataBlocked { limit } => json.integer_field("limit", *limit),
        Frame::StreamDataBlocked { stream_id, limit } => {
            json.integer_field("stream_id", *stream_id);
            json.integer_field("limit", *limit);
        }
        Frame::StreamsBlocked { bidi, limit } => {
            json.word_field("stream_type", stream_type(*bidi));
            json.integer_field("limit", *limit);
        }
        Frame::NewConnectionId {
            sequence_number,
            retire_prior_to,
            cid_length,
        } => {
            json.integer_field("sequence_number", *sequence_number);
            json.integer_field("retire_prior_to", *retire_prior_to);
            json.integer_field("connection_id_length", u64::from(*cid_length));
            // The schema demands the key; the length beside it says that the ID is withheld.
            json.hex_field("connection_id", &[]);
        }
        Frame::RetireConnectionId { sequence_number } => {
            json.integer_field("sequence_number", *sequence_number);
        }
        Frame::ConnectionClose {
            is_application,
            error_code,
            reason,
        } => {
            connection_close(json, *is_application, *error_code, reason);
        }
        Frame::Datagram { length } => json.integer_field("length", *length),
        Frame::AckFrequency {
            sequence_number,
            ack_eliciting_threshold,
            request_max_ack_delay,
            reordering_threshold,
        } => {
            json.integer_field("sequence_number", *sequence_number);
            json.integer_field("ack_eliciting_threshold", *ack_eliciting_threshold);
            json.millis_field("request_max_ack_delay", *request_max_ack_delay);
            json.integer_field("reordering_threshold", *reordering_threshold);
        }
        Frame::Unknown { frame_type } => json.integer_field("frame_type_value", *frame_type),
    }
}

/// The word for a frame's type. The last three have none in quic-events-04, whose `QuicFrame` is open
/// to further ones; they are named after their documents.
fn frame_type(frame: &Frame) -> &'static str {
    match frame {
        Frame::Padding { .. } => "padding",
        Frame::Ping => "ping",
        Frame::Ack { .. } => "ack",
        Frame::ResetStream { .. } => "reset_stream",
        Frame::StopSending { .. } => "stop_sending",
        Frame::Crypto { .. } => "crypto",
        Frame::NewToken { .. } => "new_token",
        Frame::Stream { .. } => "stream",
        Frame::MaxData { .. } => "max_data",
        Frame::MaxStreamData { .. } => "max_stream_data",
        Frame::MaxStreams { .. } => "max_streams",
        Frame::DataBlocked { .. } => "data_blocked",
        Frame::StreamDataBlocked { .. } => "stream_data_blocked",
        Frame::StreamsBlocked { .. } => "streams_blocked",
        Frame::NewConnectionId { .. } => "new_connection_id",
        Frame::RetireConnectionId { .. } => "retire_connection_id",
        Frame::PathChallenge => "path_challenge",
        Frame::PathResponse => "path_response",
        Frame::ConnectionClose { .. } => "connection_close",
        Frame::HandshakeDone => "handshake_done",
        Frame::Unknown { .. } => "unknown",
        Frame::Datagram { .. } => "datagram",
        Frame::ImmediateAck => "immediate_ack",
        Frame::AckFrequency { .. } => "ack_frequency",
    }
}

fn stream_type(is_bidirectional: bool) -> &'static str {
    if is_bidirectional {
        "bidirectional"
    } else {
        "unidirectional"
    }
}

fn connection_close(json: &mut Json<'_>, is_application: bool, error_code: u64, reason: &str) {
    if is_application {
        json.word_field("error_space", "application");
        json.integer_field_up_to(U32, "error_code", Some(error_code));
    } else {
        json.word_field("error_space", "transport");
        // Unlike the event, the frame has no word for TLS alerts: they are numbers here.
        transport_error_field(json, "error_code", error_code);
    }
    if error_code > U32 {
        json.integer_field("error_code_value", error_code);
    }
    if !reason.is_empty() {
        json.text_field("reason", reason);
    }
}

/// A transport code by its name, or as a number if it has none.
fn transport_error_field(json: &mut Json<'_>, key: &str, code: u64) {
    // RFC 9000 section 20.1, by code.
    const NAMES: [&str; 17] = [
        "no_error",
        "internal_error",
        "connection_refused",
        "flow_control_error",
        "stream_limit_error",
        "stream_state_error",
        "final_size_error",
        "frame_encoding_error",
        "transport_parameter_error",
        "connection_id_limit_error",
        "protocol_violation",
        "invalid_token",
        "application_error",
        "crypto_buffer_exceeded",
        "key_update_error",
        "aead_limit_reached",
        "no_viable_path",
    ];
    match usize::try_from(code)
        .ok()
        .and_then(|index| NAMES.get(index))
    {
        Some(name) => json.word_field(key, name),
        None => json.integer_field_up_to(U32, key, Some(code)),
    }
}

fn metrics_updated(data: &mut Json<'_>, metrics: &Metrics) {
    for (key, span) in [
        ("min_rtt", metrics.min_rtt),
        ("smoothed_rtt", metrics.smoothed_rtt),
        ("latest_rtt", metrics.latest_rtt),
        ("rtt_variance", metrics.rtt_variance),
    ] {
        if let Some(span) = span {
            data.millis_field(key, span);
        }
    }
    data.integer_field_up_to(U16, "pto_count", metrics.pto_count);
    bytes_field(data, "congestion_window", metrics.congestion_window);
    bytes_field(data, "bytes_in_flight", metrics.bytes_in_flight);
    bytes_field(data, "ssthresh", metrics.ssthresh);
    data.integer_field_up_to(
        LARGEST_INTEGER,
        "packets_in_flight",
        metrics.packets_in_flight,
    );
    if let Some(rate) = metrics.pacing_rate.filter(|rate| !rate.is_infinite()) {
        data.integer_field("pacing_rate", rate.as_bps());
    }
}

fn recovery_parameters(data: &mut Json<'_>, parameters: &RecoveryParameters) {
    let p = parameters;
    data.integer_field_up_to(U16, "reordering_threshold", p.reordering_threshold);
    if let Some(factor) = p.time_threshold {
        data.decimal_field("time_threshold", u64::from(factor.as_thousandths()), 3);
    }
    let granularity_ms = p.timer_granularity.as_nanos().div_ceil(1_000_000);
    // The key is mandatory and holds 16 bits; a granularity over a minute is nobody's.
    data.integer_field(
        "timer_granularity",
        u64::try_from(granularity_ms).unwrap_or(U16).min(U16),
    );
    if let Some(rtt) = p.initial_rtt {
        data.millis_field("initial_rtt", rtt);
    }
    data.integer_field_up_to(
        U32,
        "max_datagram_size",
        p.max_datagram_size.map(ByteCount::as_u64),
    );
    bytes_field(
        data,
        "initial_congestion_window",
        p.initial_congestion_window,
    );
    bytes_field(
        data,
        "minimum_congestion_window",
        p.minimum_congestion_window,
    );
    if let Some(factor) = p.loss_reduction_factor {
        data.decimal_field(
            "loss_reduction_factor",
            u64::from(factor.as_thousandths()),
            3,
        );
    }
    data.integer_field_up_to(
        U16,
        "persistent_congestion_threshold",
        p.persistent_congestion_threshold,
    );
}

fn transport_parameters(data: &mut Json<'_>, parameters: &TransportParameters) {
    let p = parameters;
    let millis =
        |span: Option<Duration>| span.and_then(|span| u64::try_from(span.as_millis()).ok());
    if let Some(cipher) = &p.tls_cipher {
        data.text_field("tls_cipher", cipher);
    }
    for (key, id) in [
        (
            "original_destination_connection_id",
            &p.original_destination_connection_id,
        ),
        (
            "initial_source_connection_id",
            &p.initial_source_connection_id,
        ),
        ("retry_source_connection_id", &p.retry_source_connection_id),
    ] {
        if let Some(id) = id {
            data.hex_field(key, id);
        }
    }
    if let Some(is_disabled) = p.disable_active_migration {
        data.bool_field("disable_active_migration", is_disabled);
    }
    for (most, key, value) in [
        (
            LARGEST_INTEGER,
            "max_idle_timeout",
            millis(p.max_idle_timeout),
        ),
        (U32, "max_udp_payload_size", p.max_udp_payload_size),
        (U16, "ack_delay_exponent", p.ack_delay_exponent),
        (U16, "max_ack_delay", millis(p.max_ack_delay)),
        (
            U32,
            "active_connection_id_limit",
            p.active_connection_id_limit,
        ),
        (LARGEST_INTEGER, "initial_max_data", p.initial_max_data),
        (
            LARGEST_INTEGER,
            "initial_max_stream_data_bidi_local",
            p.initial_max_stream_data_bidi_local,
        ),
        (
            LARGEST_INTEGER,
            "initial_max_stream_data_bidi_remote",
            p.initial_max_stream_data_bidi_remote,
        ),
        (
            LARGEST_INTEGER,
            "initial_max_stream_data_uni",
            p.initial_max_stream_data_uni,
        ),
        (
            LARGEST_INTEGER,
            "initial_max_streams_bidi",
            p.initial_max_streams_bidi,
        ),
        (
            LARGEST_INTEGER,
            "initial_max_streams_uni",
            p.initial_max_streams_uni,
        ),
    ] {
        data.integer_field_up_to(most, key, value);
    }
}

fn bytes_field(json: &mut Json<'_>, key: &str, bytes: Option<ByteCount>) {
    json.integer_field_up_to(LARGEST_INTEGER, key, bytes.map(ByteCount::as_u64));
}

fn endpoints(data: &mut Json<'_>, local: SocketAddr, remote: SocketAddr, detail: AddressDetail) {
    if detail == AddressDetail::Omitted {
        // The schema demands both keys.
        data.word_field("src_ip", "");
        data.word_field("dst_ip", "");
        return;
    }
    let shown = |address: SocketAddr| match (address.ip().to_canonical(), detail) {
        (IpAddr::V4(ip), AddressDetail::Prefix) => {
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & !0xff))
        }
        (IpAddr::V6(ip), AddressDetail::Prefix) => {
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (!0 << 80)))
        }
        (ip, _) => ip,
    };
    let (local_ip, remote_ip) = (shown(local), shown(remote));
    data.word_field("ip_version", if remote_ip.is_ipv4() { "v4" } else { "v6" });
    data.plain_field("src_ip", local_ip);
    data.plain_field("dst_ip", remote_ip);
    data.integer_field("src_port", u64::from(local.port()));
    data.integer_field("dst_port", u64::from(remote.port()));
}

/// The largest values of the schema's `uint16` and `uint32`.
const U16: u64 = u16::MAX as u64;
const U32: u64 = u32::MAX as u64;
