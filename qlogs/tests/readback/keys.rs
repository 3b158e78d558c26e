//! Which keys the `data` of each event has.

/// Name, keys that must be there, keys that may be there (quic-events-04 and main-schema-05).
pub(crate) type Keys = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Every event the crate writes.
pub(crate) const KEYS: [Keys; 12] = [
    (
        "connectivity:connection_started",
        &["src_ip", "dst_ip"],
        &["ip_version", "src_port", "dst_port", "src_cid", "dst_cid"],
    ),
    ("connectivity:connection_state_updated", &["new"], &["old"]),
    (
        "connectivity:connection_closed",
        &["trigger"],
        &["owner", "connection_code", "application_code", "reason"],
    ),
    (
        "transport:parameters_set",
        &[
            "owner",
            "initial_max_data",
            "initial_max_stream_data_bidi_remote",
        ],
        &[
            "tls_cipher",
            "original_destination_connection_id",
            "initial_source_connection_id",
            "retry_source_connection_id",
            "disable_active_migration",
            "max_idle_timeout",
            "max_udp_payload_size",
            "ack_delay_exponent",
            "max_ack_delay",
            "active_connection_id_limit",
            "initial_max_stream_data_bidi_local",
            "initial_max_stream_data_uni",
            "initial_max_streams_bidi",
            "initial_max_streams_uni",
        ],
    ),
    (
        "transport:packet_sent",
        &["header", "raw", "frames"],
        &["is_mtu_probe_packet", "trigger"],
    ),
    (
        "transport:packet_received",
        &["header", "raw", "frames"],
        &[],
    ),
    ("recovery:packet_lost", &["header", "trigger"], &[]),
    (
        "recovery:metrics_updated",
        &[],
        &[
            "min_rtt",
            "smoothed_rtt",
            "latest_rtt",
            "rtt_variance",
            "pto_count",
            "congestion_window",
            "bytes_in_flight",
            "ssthresh",
            "packets_in_flight",
            "pacing_rate",
        ],
    ),
    (
        "recovery:congestion_state_updated",
        &["new"],
        &["old", "trigger"],
    ),
    (
        "recovery:parameters_set",
        &["timer_granularity"],
        &[
            "reordering_threshold",
            "time_threshold",
            "initial_rtt",
            "max_datagram_size",
            "initial_congestion_window",
            "minimum_congestion_window",
            "loss_reduction_factor",
            "persistent_congestion_threshold",
        ],
    ),
    ("connectivity:mtu_updated", &["new"], &["old", "done"]),
    ("simulation:marker", &["message"], &["type"]),
];
