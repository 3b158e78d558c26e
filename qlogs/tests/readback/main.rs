//! What is written is read back with an independent JSON reader and compared with what was meant.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use qlogs::{
    AddressDetail, CloseCode, CloseTrigger, Event, Frame, Metrics, PacketType, TraceHeader,
    TransportParameters, VantagePoint, Writer,
};
use serde_json::{Value, json};
use units::{ByteCount, Rate, Timestamp};

use keys::KEYS;

#[path = "../events/mod.rs"]
mod events;
mod keys;
mod model;

#[test]
fn a_file_is_a_json_text_sequence() {
    let file = file_of(&events::header(), &events::story());
    assert_eq!(file[0], 0x1e);
    assert_eq!(file.last(), Some(&b'\n'));
    for record in file.split_inclusive(|&byte| byte == b'\n') {
        assert_eq!(record[0], 0x1e, "every line is one record");
        assert_eq!(record.iter().filter(|&&byte| byte == 0x1e).count(), 1);
        serde_json::from_slice::<Value>(&record[1..]).expect("every record is valid JSON");
    }
}

#[test]
fn the_header_says_what_a_viewer_needs() {
    let records = records_of(&file_of(&events::header(), &[]));
    let title = "sample: every event once";
    assert_eq!(
        records,
        [json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": title,
            "trace": {
                "title": title,
                "vantage_point": {
                    "name": concat!("tidegate ", env!("CARGO_PKG_VERSION")),
                    "type": "server",
                },
                "common_fields": {
                    "group_id": "c0ffee00010203a4",
                    "time_format": "relative",
                    "reference_time": 0.0,
                },
            },
        })]
    );
}

#[test]
fn the_reference_time_is_in_milliseconds() {
    let header = TraceHeader {
        reference_time: Duration::from_micros(1_700_000_000_123_500),
        ..events::header()
    };
    let text = String::from_utf8(file_of(&header, &[])).expect("UTF-8");
    assert!(
        text.contains(r#""reference_time":1700000000123.5,"#),
        "{text}"
    );
}

#[test]
fn needed_keys_stand_in_the_first_1024_bytes_whatever_the_texts() {
    let header = TraceHeader {
        title: "\u{1}\"".repeat(5_000),
        code_version: "\u{1f}ü".repeat(5_000),
        // The longest connection ID of any version (RFC 8999 section 5.1).
        ..TraceHeader::new(VantagePoint::Client, vec![0xab; 255])
    };
    let file = file_of(&header, &[]);
    let start = String::from_utf8_lossy(&file[..1_024]);
    for key in [
        r#""qlog_version":"0.3""#,
        r#""qlog_format":"JSON-SEQ""#,
        r#""time_format":"relative""#,
        r#""reference_time":0.0"#,
        r#""group_id":"abab"#,
        r#""type":"client""#,
        r#""name":""#,
    ] {
        assert!(start.contains(key), "{key} is not in {start}");
    }
    let [read] = &records_of(&file)[..] else {
        panic!("one record")
    };
    assert_eq!(read["title"], header.title);
    assert_eq!(read["trace"]["vantage_point"]["name"], header.code_version);
}

#[test]
fn every_event_has_its_name_and_required_keys() {
    let story = events::story();
    let records = records_of(&file_of(&events::header(), &story));
    assert_eq!(
        records.len(),
        story.len() + 1,
        "one record for each event, and the header"
    );
    let mut seen = BTreeSet::new();
    for (record, (at, event)) in records[1..].iter().zip(&story) {
        let name = record["name"].as_str().expect("a name");
        assert_eq!(name, event.name());
        let (known, required, optional) = KEYS
            .into_iter()
            .find(|(known, ..)| *known == name)
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        let data = record["data"].as_object().expect("data is an object");
        for key in required {
            assert!(data.contains_key(*key), "{name} lacks {key}: {record}");
        }
        for key in data.keys() {
            let is_known = required.contains(&key.as_str()) || optional.contains(&key.as_str());
            assert!(is_known, "{name} has the unknown key {key}: {record}");
        }
        let time = record["time"].as_f64().expect("time is a float");
        let wanted = Duration::from_nanos(at.as_nanos()).as_secs_f64() * 1e3;
        assert!((time - wanted).abs() < 1e-6, "{time} ms for {at:?}");
        seen.insert(known);
    }
    assert_eq!(
        seen,
        KEYS.iter().map(|(name, ..)| *name).collect(),
        "every event occurs"
    );
}

#[test]
fn connection_events_read_as_meant() {
    assert_eq!(
        data_of("connectivity:connection_started"),
        [json!({
            "ip_version": "v4", "src_ip": "192.0.2.0", "dst_ip": "198.51.100.0",
            "src_port": 443, "dst_port": 50_123, "src_cid": "ab01", "dst_cid": "",
        })]
    );
    assert_eq!(
        data_of("connectivity:connection_state_updated"),
        [
            json!({ "new": "attempted" }),
            json!({ "old": "attempted", "new": "closed" })
        ]
    );
    assert_eq!(
        data_of("connectivity:connection_closed"),
        [
            json!({
                "owner": "remote", "connection_code": "protocol_violation", "trigger": "error",
                "reason": "bad \"frame\"\r\n\u{1e}\u{7f}\\",
            }),
            json!({ "owner": "remote", "connection_code": "crypto_error_0x128", "trigger": "error" }),
            json!({
                "owner": "remote", "application_code": 0x100, "trigger": "application",
                "reason": "done",
            }),
            json!({ "trigger": "idle_timeout" }),
        ]
    );
    assert_eq!(
        data_of("connectivity:mtu_updated"),
        [json!({ "old": 1_200, "new": 1_452, "done": true })]
    );
    assert_eq!(
        data_of("simulation:marker"),
        [json!({ "message": "loss ends" })]
    );
}

#[test]
fn transport_parameters_read_as_meant() {
    let [local, remote] = &data_of("transport:parameters_set")[..] else {
        panic!("two events")
    };
    assert_eq!(local["owner"], "local");
    assert_eq!(
        *remote,
        json!({
            "owner": "remote",
            "tls_cipher": "TLS_AES_128_GCM_SHA256",
            "original_destination_connection_id": "c0ffee00010203a4",
            "initial_source_connection_id": "ab01",
            "retry_source_connection_id": "",
            "disable_active_migration": false,
            "max_idle_timeout": 30_000,
            "max_udp_payload_size": 1_472,
            "ack_delay_exponent": 3,
            "max_ack_delay": 25,
            "active_connection_id_limit": 5,
            "initial_max_data": 1_250_000,
            "initial_max_stream_data_bidi_local": 625_000,
            "initial_max_stream_data_bidi_remote": 625_001,
            "initial_max_stream_data_uni": 625_002,
            "initial_max_streams_bidi": 100,
            "initial_max_streams_uni": 3,
        })
    );
}

#[test]
fn recovery_parameters_read_as_meant() {
    let record = &records_named("recovery:parameters_set", &events::story())[0];
    assert_eq!(
        record["data"],
        json!({
            "reordering_threshold": 3,
            "time_threshold": 1.125,
            "timer_granularity": 1,
            "initial_rtt": 333.0,
            "max_datagram_size": 1_200,
            "initial_congestion_window": 12_000,
            "minimum_congestion_window": 2_400,
            "loss_reduction_factor": 0.7,
            "persistent_congestion_threshold": 3,
        })
    );
    assert_eq!(record["cc_algorithm"], "cubic");
}

#[test]
fn packets_read_as_meant() {
    let sent = data_of("transport:packet_sent");
    let headers: Vec<&Value> = sent.iter().map(|data| &data["header"]).collect();
    assert_eq!(
        headers[0],
        &json!({ "packet_type": "initial", "packet_number": 0 })
    );
    assert_eq!(
        headers[1],
        &json!({ "packet_type": "handshake", "packet_number": 0 })
    );
    assert_eq!(
        headers[5],
        &json!({ "packet_type": "1RTT", "packet_number": 3 })
    );
    assert_eq!(headers[6], &json!({ "packet_type": "retry" }));
    assert_eq!(headers[7], &json!({ "packet_type": "version_negotiation" }));
    assert_eq!(
        sent[4],
        json!({
            "header": { "packet_type": "1RTT", "packet_number": 2 },
            "raw": { "length": 1_452 },
            "frames": [
                { "frame_type": "ping" },
                { "frame_type": "padding", "payload_length": 1_400 },
            ],
            "is_mtu_probe_packet": true,
        })
    );
    assert_eq!(sent[5]["trigger"], "pto_probe");
    assert_eq!(
        data_of("transport:packet_received")[1],
        json!({
            "header": { "packet_type": "0RTT", "packet_number": 1 },
            "raw": { "length": 1_200 },
            "frames": [{ "frame_type": "ping" }],
        })
    );
    assert_eq!(
        data_of("recovery:packet_lost"),
        [
            (0, "reordering_threshold"),
            (1, "time_threshold"),
            (2, "pto_expired")
        ]
        .map(|(number, trigger)| json!({
            "header": { "packet_type": "1RTT", "packet_number": number },
            "trigger": trigger,
        }))
    );
}

#[test]
fn every_frame_has_the_fields_of_its_type() {
    let mut frames = events::frames_of_the_schema();
    frames.extend(events::frames_beyond_the_schema());
    assert_eq!(
        frames_read_back(frames),
        [
            json!({ "frame_type": "padding", "payload_length": 3 }),
            json!({ "frame_type": "ping" }),
            json!({ "frame_type": "ack", "ack_delay": 0.16, "acked_ranges": [[0, 0]] }),
            json!({
                "frame_type": "ack", "ack_delay": 0.0, "acked_ranges": [[0, 2], [4, 4], [7, 9]],
                "ect0": 12, "ect1": 0, "ce": 1,
            }),
            json!({
                "frame_type": "reset_stream", "stream_id": 4, "error_code": 268,
                "final_size": 12_000,
            }),
            json!({ "frame_type": "stop_sending", "stream_id": 8, "error_code": 268 }),
            json!({ "frame_type": "crypto", "offset": 0, "length": 280 }),
            json!({ "frame_type": "new_token", "token": { "raw": { "length": 73 } } }),
            json!({ "frame_type": "stream", "stream_id": 0, "offset": 0, "length": 1_100 }),
            json!({
                "frame_type": "stream", "stream_id": 0, "offset": 1_100, "length": 0, "fin": true,
            }),
            json!({ "frame_type": "max_data", "maximum": 1_250_000 }),
            json!({ "frame_type": "max_stream_data", "stream_id": 0, "maximum": 625_000 }),
            json!({ "frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 100 }),
            json!({ "frame_type": "max_streams", "stream_type": "unidirectional", "maximum": 3 }),
            json!({ "frame_type": "data_blocked", "limit": 1_250_000 }),
            json!({ "frame_type": "stream_data_blocked", "stream_id": 0, "limit": 625_000 }),
            json!({ "frame_type": "streams_blocked", "stream_type": "bidirectional", "limit": 100 }),
            json!({ "frame_type": "streams_blocked", "stream_type": "unidirectional", "limit": 3 }),
            json!({
                "frame_type": "new_connection_id", "sequence_number": 2, "retire_prior_to": 1,
                "connection_id_length": 8, "connection_id": "",
            }),
            json!({ "frame_type": "retire_connection_id", "sequence_number": 0 }),
            json!({ "frame_type": "path_challenge" }),
            json!({ "frame_type": "path_response" }),
            json!({
                "frame_type": "connection_close", "error_space": "transport",
                "error_code": "no_error",
            }),
            json!({
                "frame_type": "connection_close", "error_space": "transport",
                "error_code": 0x178, "reason": "no application protocol",
            }),
            json!({
                "frame_type": "connection_close", "error_space": "transport",
                "error_code": 0x4_7e57, "reason": "a code without a name",
            }),
            json!({
                "frame_type": "connection_close", "error_space": "application",
                "error_code": 0x100, "reason": "bye\n",
            }),
            json!({
                "frame_type": "connection_close", "error_space": "application",
                "error_code_value": 1_u64 << 40,
            }),
            json!({ "frame_type": "handshake_done" }),
            json!({ "frame_type": "unknown", "frame_type_value": 0x4_2ea1 }),
            json!({ "frame_type": "datagram", "length": 500 }),
            json!({ "frame_type": "immediate_ack" }),
            json!({
                "frame_type": "ack_frequency", "sequence_number": 1,
                "ack_eliciting_threshold": 10, "request_max_ack_delay": 25.0,
                "reordering_threshold": 3,
            }),
        ]
    );
}

#[test]
fn transport_codes_have_their_names_from_first_to_last() {
    let codes = |code| {
        let event = Event::ConnectionClosed {
            owner: None,
            code: CloseCode::Transport(code),
            reason: String::new(),
            trigger: CloseTrigger::Error,
        };
        let records = records_of(&file_of(&events::header(), &[(Timestamp::ZERO, event)]));
        records[1]["data"]["connection_code"].clone()
    };
    assert_eq!(codes(0x00), "no_error");
    assert_eq!(codes(0x0c), "application_error");
    assert_eq!(codes(0x10), "no_viable_path");
    assert_eq!(codes(0x11), 0x11);
    assert_eq!(codes(0xff), 0xff);
    assert_eq!(codes(0x100), "crypto_error_0x100");
    assert_eq!(codes(0x1ff), "crypto_error_0x1ff");
    assert_eq!(codes(0x200), 0x200);
    assert_eq!(codes(u64::from(u32::MAX)), u32::MAX);
    assert_eq!(
        codes(1 << 32),
        Value::Null,
        "the schema has 32 bits for a number"
    );
}

#[test]
fn values_without_room_are_left_out() {
    let huge = 1 << 62;
    assert_eq!(
        frames_read_back(vec![
            Frame::MaxData { maximum: huge - 1 },
            Frame::Ack {
                ack_delay: Duration::MAX,
                ranges: vec![],
                ecn: None
            },
        ]),
        [
            json!({ "frame_type": "max_data" }),
            json!({ "frame_type": "ack" })
        ]
    );
    let parameters = TransportParameters {
        max_idle_timeout: Some(Duration::MAX),
        max_udp_payload_size: Some(huge),
        ack_delay_exponent: Some(1 << 16),
        max_ack_delay: Some(Duration::from_millis(1 << 16)),
        active_connection_id_limit: Some(1 << 32),
        initial_max_data: Some(huge),
        initial_max_streams_uni: Some((1 << 53) + 1),
        ..TransportParameters::default()
    };
    let event = Event::ParametersSet {
        owner: qlogs::Owner::Local,
        parameters: Box::new(parameters),
    };
    let records = records_of(&file_of(&events::header(), &[(Timestamp::ZERO, event)]));
    assert_eq!(records[1]["data"], json!({ "owner": "local" }));
}

#[test]
fn the_trigger_of_a_state_stands_beside_data_and_in_it_only_where_the_schema_has_a_word() {
    let records = records_named("recovery:congestion_state_updated", &events::story());
    let read: Vec<_> = records
        .iter()
        .map(|record| (&record["data"], &record["cc_trigger"]))
        .collect();
    assert_eq!(
        read,
        [
            (&json!({ "new": "slow_start" }), &Value::Null),
            (
                &json!({ "old": "slow_start", "new": "recovery" }),
                &json!("packet_lost")
            ),
            (
                &json!({
                    "old": "recovery", "new": "slow_start", "trigger": "persistent_congestion",
                }),
                &json!("persistent_congestion")
            ),
            (
                &json!({ "old": "slow_start", "new": "recovery", "trigger": "ECN" }),
                &json!("ecn_ce")
            ),
            (
                &json!({ "old": "recovery", "new": "congestion_avoidance" }),
                &json!("recovery_exited")
            ),
        ]
    );
}

#[test]
fn metrics_have_their_names_and_units() {
    assert_eq!(
        data_of("recovery:metrics_updated"),
        [json!({
            "min_rtt": 10.000_001,
            "smoothed_rtt": 12.345,
            "latest_rtt": 13.0,
            "rtt_variance": 0.5,
            "pto_count": 0,
            "congestion_window": 14_520,
            "bytes_in_flight": 2_400,
            "ssthresh": 7_260,
            "packets_in_flight": 2,
            "pacing_rate": 100_000_000,
        })]
    );
}

#[test]
fn of_the_metrics_only_what_changed_is_written() {
    let first = events::metrics();
    let grown = Metrics {
        congestion_window: Some(ByteCount::new(14_521)),
        ..first
    };
    // Each step: what is given, and what must be read, if a record is written at all.
    let everything = data_of("recovery:metrics_updated")[0].clone();
    let steps = [
        (Metrics::default(), None),
        (first, Some(everything)),
        (first, None),
        (grown, Some(json!({ "congestion_window": 14_521 }))),
        // "Not known" says nothing new; a reader keeps the last value, and so does the comparison.
        (
            Metrics {
                ssthresh: None,
                ..grown
            },
            None,
        ),
        (grown, None),
        // A value that cannot be written does not hide the next one that can.
        (
            Metrics {
                pacing_rate: Some(Rate::INFINITE),
                ..grown
            },
            None,
        ),
        (
            Metrics {
                ssthresh: Some(ByteCount::MAX),
                ..grown
            },
            None,
        ),
        (
            Metrics {
                latest_rtt: Some(Duration::MAX),
                ..grown
            },
            None,
        ),
        (
            Metrics {
                pto_count: Some(1 << 16),
                ..grown
            },
            None,
        ),
        (
            Metrics {
                pacing_rate: Some(Rate::from_kbps(64)),
                pto_count: Some(2),
                ..grown
            },
            Some(json!({ "pacing_rate": 64_000, "pto_count": 2 })),
        ),
        (
            first,
            Some(json!({
                "congestion_window": 14_520, "pacing_rate": 100_000_000, "pto_count": 0,
            })),
        ),
    ];
    let given: Vec<_> = steps
        .iter()
        .map(|(metrics, _)| (Timestamp::ZERO, Event::MetricsUpdated(*metrics)))
        .collect();
    let wanted: Vec<Value> = steps.into_iter().filter_map(|(_, data)| data).collect();
    assert_eq!(data_named("recovery:metrics_updated", &given), wanted);
}

#[test]
fn every_metric_is_compared_for_itself() {
    let first = events::metrics();
    let mut changes = vec![(Timestamp::ZERO, Event::MetricsUpdated(first))];
    let one_more = |bytes: Option<ByteCount>| bytes.map(|bytes| bytes + ByteCount::new(1));
    let later = |span: Option<Duration>| span.map(|span| span + Duration::from_nanos(1));
    let mut now = first;
    let mut change = |edit: &dyn Fn(&mut Metrics)| {
        edit(&mut now);
        changes.push((Timestamp::ZERO, Event::MetricsUpdated(now)));
    };
    change(&|m| m.min_rtt = later(m.min_rtt));
    change(&|m| m.smoothed_rtt = later(m.smoothed_rtt));
    change(&|m| m.latest_rtt = later(m.latest_rtt));
    change(&|m| m.rtt_variance = later(m.rtt_variance));
    change(&|m| m.pto_count = Some(1));
    change(&|m| m.congestion_window = one_more(m.congestion_window));
    change(&|m| m.bytes_in_flight = one_more(m.bytes_in_flight));
    change(&|m| m.ssthresh = one_more(m.ssthresh));
    change(&|m| m.packets_in_flight = Some(3));
    change(&|m| m.pacing_rate = Some(Rate::from_mbps(99)));
    assert_eq!(
        data_named("recovery:metrics_updated", &changes)[1..],
        [
            json!({ "min_rtt": 10.000_002 }),
            json!({ "smoothed_rtt": 12.345_001 }),
            json!({ "latest_rtt": 13.000_001 }),
            json!({ "rtt_variance": 0.500_001 }),
            json!({ "pto_count": 1 }),
            json!({ "congestion_window": 14_521 }),
            json!({ "bytes_in_flight": 2_401 }),
            json!({ "ssthresh": 7_261 }),
            json!({ "packets_in_flight": 3 }),
            json!({ "pacing_rate": 99_000_000 }),
        ]
    );
}

#[test]
fn times_are_exact_and_never_decrease() {
    let marker = |nanos| {
        (
            Timestamp::from_nanos(nanos),
            Event::Marker {
                message: "x".into(),
            },
        )
    };
    let nothing_new = (
        Timestamp::from_millis(70),
        Event::MetricsUpdated(Metrics::default()),
    );
    let story = [
        marker(12_345_678),
        marker(60_000_000),
        marker(59_999_999),
        nothing_new,
        marker(1 << 60),
    ];
    let text = String::from_utf8(file_of(&events::header(), &story)).expect("UTF-8");
    let times: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(r#""time":"#)?.1.split_once(','))
        .map(|(time, _)| time)
        .collect();
    assert_eq!(times, ["12.345678", "60.0", "60.0", "1152921504606.846976"]);
}

#[test]
fn arbitrary_text_from_the_network_stays_one_text() {
    let reason: String = (0..=0xff_u8)
        .map(char::from)
        .chain("\"}\n\u{1e}{\"time\":0}\u{2028}\u{10ffff}".chars())
        .collect();
    let story = [
        (
            Timestamp::ZERO,
            Event::ConnectionClosed {
                owner: None,
                code: CloseCode::None,
                reason: reason.clone(),
                trigger: CloseTrigger::Clean,
            },
        ),
        (
            Timestamp::ZERO,
            Event::Marker {
                message: reason.clone(),
            },
        ),
    ];
    let records = records_of(&file_of(&events::header(), &story));
    assert_eq!(records.len(), 3);
    assert_eq!(records[1]["data"]["reason"], reason);
    assert_eq!(records[2]["data"]["message"], reason);
    let close = Frame::ConnectionClose {
        is_application: true,
        error_code: 0,
        reason: reason.clone(),
    };
    assert_eq!(frames_read_back(vec![close])[0]["reason"], reason);
}

#[test]
fn addresses_show_as_much_as_the_header_allows() {
    let started = |local: &str, remote: &str, addresses| {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let event = Event::ConnectionStarted {
            local: address(local),
            remote: address(remote),
            local_cid: vec![],
            remote_cid: vec![],
        };
        let header = TraceHeader {
            addresses,
            ..events::header()
        };
        records_of(&file_of(&header, &[(Timestamp::ZERO, event)]))[1]["data"].clone()
    };
    let (v6_local, v6_remote) = (
        "[2001:db8:aaaa:bbbb::1]:443",
        "[2001:db8:cccc:dddd::2]:5000",
    );
    assert_eq!(
        started(v6_local, v6_remote, AddressDetail::Full),
        json!({
            "ip_version": "v6", "src_ip": "2001:db8:aaaa:bbbb::1",
            "dst_ip": "2001:db8:cccc:dddd::2", "src_port": 443, "dst_port": 5_000,
            "src_cid": "", "dst_cid": "",
        })
    );
    let cut = started(v6_local, v6_remote, AddressDetail::Prefix);
    assert_eq!(
        (&cut["src_ip"], &cut["dst_ip"]),
        (&json!("2001:db8:aaaa::"), &json!("2001:db8:cccc::"))
    );
    let mapped = started(
        "[::ffff:10.1.2.3]:1",
        "[::ffff:10.9.8.7]:2",
        AddressDetail::Full,
    );
    assert_eq!(
        (&mapped["ip_version"], &mapped["dst_ip"]),
        (&json!("v4"), &json!("10.9.8.7"))
    );
    assert_eq!(
        started("10.1.2.3:1", "10.9.8.7:2", AddressDetail::Omitted),
        json!({ "src_ip": "", "dst_ip": "", "src_cid": "", "dst_cid": "" })
    );
}

#[test]
fn the_same_events_give_the_same_bytes() {
    let file = || file_of(&events::header(), &events::story());
    assert_eq!(file(), file());
}

fn data_of(name: &str) -> Vec<Value> {
    data_named(name, &events::story())
}

fn data_named(name: &str, story: &[(Timestamp, Event)]) -> Vec<Value> {
    records_named(name, story)
        .into_iter()
        .map(|record| record["data"].clone())
        .collect()
}

fn records_named(name: &str, story: &[(Timestamp, Event)]) -> Vec<Value> {
    let records = records_of(&file_of(&events::header(), story));
    records
        .into_iter()
        .filter(|record| record["name"] == name)
        .collect()
}

fn frames_read_back(frames: Vec<Frame>) -> Vec<Value> {
    let event = Event::PacketReceived {
        ty: PacketType::OneRtt,
        pn: 0,
        length: ByteCount::new(1_200),
        frames,
    };
    let records = records_of(&file_of(&events::header(), &[(Timestamp::ZERO, event)]));
    records[1]["data"]["frames"]
        .as_array()
        .expect("frames")
        .clone()
}

fn file_of(header: &TraceHeader, story: &[(Timestamp, Event)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).expect("memory takes everything");
    for (at, event) in story {
        writer.write(*at, event);
    }
    writer.finish().expect("memory takes everything")
}

fn records_of(file: &[u8]) -> Vec<Value> {
    file.split(|&byte| byte == 0x1e)
        .skip(1)
        .map(|record| serde_json::from_slice(record).expect("valid JSON"))
        .collect()
}
