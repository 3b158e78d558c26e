//! How one event is called in each generation of the drafts.

use crate::schema::PacketType;

/// (type in the file, category in the dialect 0.3, type in the dialect 0.3), by the type alone: the
/// category of an event has changed from draft to draft, and the current ones have only `quic`.
const NAMES: &[(&str, &str, &str)] = &[
    ("alpn_information", "transport", "alpn_information"),
    ("server_listening", "connectivity", "server_listening"),
    ("connection_started", "connectivity", "connection_started"),
    ("connection_closed", "connectivity", "connection_closed"),
    (
        "connection_id_updated",
        "connectivity",
        "connection_id_updated",
    ),
    (
        "connection_state_updated",
        "connectivity",
        "connection_state_updated",
    ),
    ("mtu_updated", "connectivity", "mtu_updated"),
    ("spin_bit_updated", "connectivity", "spin_bit_updated"),
    ("version_information", "transport", "version_information"),
    ("packet_sent", "transport", "packet_sent"),
    ("packet_received", "transport", "packet_received"),
    ("packet_dropped", "transport", "packet_dropped"),
    ("packet_buffered", "transport", "packet_buffered"),
    ("packets_acked", "transport", "packets_acked"),
    ("udp_datagrams_sent", "transport", "datagrams_sent"),
    ("udp_datagrams_received", "transport", "datagrams_received"),
    ("udp_datagram_dropped", "transport", "datagram_dropped"),
    ("datagrams_sent", "transport", "datagrams_sent"),
    ("datagrams_received", "transport", "datagrams_received"),
    ("datagram_dropped", "transport", "datagram_dropped"),
    ("stream_state_updated", "transport", "stream_state_updated"),
    ("stream_data_moved", "transport", "data_moved"),
    ("data_moved", "transport", "data_moved"),
    ("frames_processed", "transport", "frames_processed"),
    ("packet_lost", "recovery", "packet_lost"),
    ("metrics_updated", "recovery", "metrics_updated"),
    ("recovery_metrics_updated", "recovery", "metrics_updated"),
    ("metric_update", "recovery", "metrics_updated"),
    ("congestion_metric_update", "recovery", "metrics_updated"),
    (
        "congestion_state_updated",
        "recovery",
        "congestion_state_updated",
    ),
    ("recovery_parameters_set", "recovery", "parameters_set"),
    ("loss_timer_updated", "recovery", "loss_timer_updated"),
    ("timer_updated", "recovery", "loss_timer_updated"),
    ("marked_for_retransmit", "recovery", "marked_for_retransmit"),
    ("key_updated", "security", "key_updated"),
    ("key_discarded", "security", "key_discarded"),
    ("key_retired", "security", "key_discarded"),
    ("frame_created", "http", "frame_created"),
    ("frame_parsed", "http", "frame_parsed"),
    ("stream_type_set", "http", "stream_type_set"),
    ("marker", "simulation", "marker"),
];

/// The name in the dialect 0.3; the one given, in lower case, if the event is not known there.
pub(crate) fn canonical(written: &str) -> String {
    let written = written.to_lowercase();
    let (category, event) = written.split_once(':').unwrap_or(("", &written));
    // The one type that three categories share.
    if event == "parameters_set" {
        let category = match category {
            "recovery" => "recovery",
            "http" | "http3" => "http",
            _ => "transport",
        };
        return format!("{category}:{event}");
    }
    if let Some((_, category, event)) = NAMES.iter().find(|(known, _, _)| *known == event) {
        return format!("{category}:{event}");
    }
    match category {
        "http3" => format!("http:{event}"),
        "loglevel" => format!("generic:{event}"),
        _ => written,
    }
}

/// The type of a packet, in any spelling of it.
pub(super) fn packet_type(written: &str) -> Option<PacketType> {
    let plain: String = written
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    Some(match plain.as_str() {
        "initial" => PacketType::Initial,
        "handshake" => PacketType::Handshake,
        "0rtt" | "zerortt" => PacketType::ZeroRtt,
        "1rtt" | "onertt" | "short" => PacketType::OneRtt,
        "retry" => PacketType::Retry,
        "versionnegotiation" => PacketType::VersionNegotiation,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_of_a_name_leads_to_one() {
        for written in [
            "recovery:metrics_updated",
            "RECOVERY:METRICS_UPDATED",
            "quic:recovery_metrics_updated",
            "recovery:recovery_metrics_updated",
            "metric_update:congestion_metric_update",
        ] {
            assert_eq!(canonical(written), "recovery:metrics_updated", "{written}");
        }
        assert_eq!(canonical("quic:parameters_set"), "transport:parameters_set");
        assert_eq!(
            canonical("recovery:parameters_set"),
            "recovery:parameters_set"
        );
        assert_eq!(canonical("http3:parameters_set"), "http:parameters_set");
        assert_eq!(canonical("loglevel:info"), "generic:info");
        assert_eq!(canonical("own:event"), "own:event");
    }
}
