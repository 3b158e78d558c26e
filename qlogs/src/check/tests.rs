use super::*;

const HEAD: &str = "{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"common_fields\":\
    {\"time_format\":\"relative\"},\"vantage_point\":{\"type\":\"server\"}}}";

/// Events that make a file right for both.
const RIGHT: [&str; 5] = [
    r#"{"time":0.0,"name":"transport:parameters_set","data":{"owner":"local","initial_max_data":1000}}"#,
    r#"{"time":0.0,"name":"recovery:congestion_state_updated","data":{"new":"slow_start"}}"#,
    r#"{"time":1.0,"name":"recovery:metrics_updated","data":{"congestion_window":12000}}"#,
    r#"{"time":1.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":100},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":70}]}}"#,
    r#"{"time":2.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":40},"frames":[{"frame_type":"ack","acked_ranges":[[0,0]]}]}}"#,
];

fn checked(head: &str, events: &[&str]) -> Checked {
    let records = [&[head], events].concat();
    let file: String = records
        .iter()
        .map(|record| format!("\x1e{record}\n"))
        .collect();
    let reader = Reader::new(file.as_bytes()).expect("a file");
    check(reader, &[Profile::Structure, Profile::Qvis], 10)
}

/// What is found when one more event follows those that are right.
fn found(event: &str) -> Vec<String> {
    let checked = checked(HEAD, &[&RIGHT[..], &[event]].concat());
    checked.findings.iter().map(Finding::to_string).collect()
}

#[test]
fn a_right_file_is_right() {
    let checked = checked(HEAD, &RIGHT);
    assert_eq!(checked.findings, []);
    assert!(checked.is_right());
    assert_eq!(checked.event_count, 5);
}

#[test]
fn every_rule_speaks() {
    for (event, found_here) in [
        (
            r#"{"time":3.0,"name":"recovery:metrics_updated","data":{"congestion_window":-1}}"#,
            "record 7: structure: recovery:metrics_updated: congestion_window is -1; allowed is a whole number from 0 to 9007199254740992",
        ),
        (
            r#"{"time":3.0,"name":"recovery:metrics_updated","data":{"ssthresh":18446744073709551615}}"#,
            "record 7: structure: recovery:metrics_updated: ssthresh is 18446744073709551615; allowed is a whole number from 0 to 9007199254740992",
        ),
        (
            r#"{"time":3.0,"name":"recovery:metrics_updated","data":{"min_rtt":"NaN"}}"#,
            "record 7: structure: recovery:metrics_updated: min_rtt is \"NaN\"; allowed is a number that is not negative",
        ),
        (
            r#"{"time":3.0,"name":"recovery:congestion_state_updated","data":{"old":"recovery","new":"slow_start"}}"#,
            "record 7: structure: recovery:congestion_state_updated: old is \"recovery\"; the state before is \"slow_start\"",
        ),
        (
            r#"{"time":3.0,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":9}}}"#,
            "record 7: structure: packet 9 of application data was lost and never sent",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"ack","acked_ranges":[[0,4]]}]}}"#,
            "record 7: structure: packet 1 of application data acknowledges 0 to 4, which were not all sent",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":9}}}"#,
            "record 7: structure: packet 0 of application data was sent twice",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT"},"raw":{"length":9}}}"#,
            "record 7: structure: transport:packet_sent: header.packet_number is missing",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1rtt","packet_number":1},"raw":{"length":9}}}"#,
            "record 7: structure: transport:packet_sent: header.packet_type is \"1rtt\"; allowed is initial, handshake, 0RTT, 1RTT, retry, version_negotiation, stateless_reset, unknown",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"max_data"}]}}"#,
            "record 7: structure: transport:packet_received: frames[0] max_data: maximum is missing",
        ),
        (
            r#"{"time":1.0,"name":"own:event","data":{}}"#,
            "record 7: structure: own:event: time goes back",
        ),
        (
            r#"{"name":"own:event","data":{}}"#,
            "record 7: structure: own:event: time is missing or no number",
        ),
        (
            r#"{"time":3.0,"name":"event","data":{}}"#,
            "record 7: structure: event: the name has no category before a colon",
        ),
        (
            r#"{"time":3.0,"name":"own:event"}"#,
            "record 7: structure: own:event: data is missing or no object",
        ),
        (
            r#"{"time":3.0,"name":"connectivity:connection_id_updated","data":{"owner":"local","new":"ABC"}}"#,
            "record 7: structure: connectivity:connection_id_updated: new is \"ABC\"; allowed is pairs of lowercase hexadecimal digits",
        ),
        (
            r#"{"time":3.0,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":1},"raw":{"length":9}}}"#,
            "record 7: qvis: quic:packet_sent: it looks for transport:packet_sent",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":1}}}"#,
            "record 7: qvis: transport:packet_sent: without raw.length the packet is not drawn",
        ),
        (
            r#"{"time":3.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"raw":{"payload_length":9}}]}}"#,
            "record 7: qvis: transport:packet_received: a stream frame without length is taken for a duplicate",
        ),
    ] {
        let found = found(event);
        assert!(found.iter().any(|line| line == found_here), "{found:#?}");
    }
}

#[test]
fn own_events_and_own_metrics_are_nobodys_fault() {
    let own = r#"{"time":3.0,"name":"recovery:metrics_updated","data":{"inflight_hi":"x"}}"#;
    assert_eq!(found(own), Vec::<String>::new());
    let own = r#"{"time":3.0,"name":"cc:round","data":{"n":1}}"#;
    assert_eq!(found(own), Vec::<String>::new());
}

#[test]
fn the_header_is_checked() {
    let found = |head: &str| -> Vec<String> {
        let checked = checked(head, &RIGHT);
        checked.findings.iter().map(Finding::to_string).collect()
    };
    assert_eq!(
        found(&HEAD.replace("server", "middle")),
        [
            "record 1: structure: trace.vantage_point.type is \"middle\"; allowed is client, server, network, unknown",
            "record 1: qvis: trace.vantage_point.type must be client or server, else directions are wrong",
        ]
    );
    assert_eq!(
        found(&HEAD.replace("0.3", "0.4")),
        [
            "record 1: qvis: qlog_version is \"0.4\"; allowed is 0.3, draft-02, draft-02-RC1, qlog-03-WIP"
        ]
    );
    let padded = HEAD.replace(
        "{\"qlog_version",
        &format!("{{\"a\":\"{}\",\"qlog_version", "x".repeat(2_000)),
    );
    assert_eq!(
        found(&padded),
        [
            "record 1: qvis: \"qlog_version\" does not stand in the first 1024 bytes",
            "record 1: qvis: \"qlog_format\" does not stand in the first 1024 bytes",
        ]
    );
    assert_eq!(
        found(&HEAD.replace("relative", "sometimes")),
        [
            "record 1: structure: trace.common_fields.time_format is \"sometimes\"; allowed is absolute, relative, delta, relative_to_epoch, relative_to_previous_event"
        ]
    );
}

#[test]
fn only_so_many_are_kept_and_all_are_counted() {
    let event = r#"{"time":3.0,"name":"own:event"}"#;
    let checked = checked(HEAD, &[&RIGHT[..], &[event; 30]].concat());
    assert_eq!(checked.findings.len(), 10);
    assert_eq!((checked.structure_count, checked.qvis_count), (30, 30));
}

#[test]
fn a_file_without_what_views_need_is_told_so() {
    let checked = checked(HEAD, &[r#"{"time":3.0,"name":"own:event","data":{}}"#]);
    assert_eq!((checked.structure_count, checked.qvis_count), (0, 3));
}
