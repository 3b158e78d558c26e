//! Files in the shape of other programs' output, written by hand after the project's survey of them.

use qlogs::VantagePoint;
use qlogs::read::event::{Event, Frame, PacketId};
use qlogs::read::{Reader, TimeUnit};
use units::{ByteCount, Timestamp};

use super::{packets, whole};

fn events(file: &str) -> Vec<Event> {
    let mut reader = Reader::new(file.as_bytes()).expect("a file");
    let mut events = Vec::new();
    while let Some(record) = reader.next() {
        events.push(Event::of(&record.expect("whole"), reader.header()));
    }
    events
}

fn sequence(records: &[&str]) -> String {
    records
        .iter()
        .map(|record| format!("\x1e{record}\n"))
        .collect()
}

/// One packet sent with stream data and one received that acknowledges it.
#[track_caller]
fn has_the_two_packets(file: &str) {
    let found = packets(file.as_bytes());
    let id = |number| PacketId { space: 2, number };
    let stream = Frame::Stream {
        stream_id: 0,
        offset: 1_000,
        length: Some(1_200),
        fin: false,
    };
    assert_eq!(
        found,
        [
            (id(7), Some(ByteCount::new(1_252)), vec![stream]),
            (
                id(3),
                Some(ByteCount::new(40)),
                vec![Frame::Ack(vec![(5, 7)])]
            ),
        ]
    );
}

/// quiche, mvfst, noq and the current drafts: `quic:` names, sizes below `raw`, a struct as reference.
#[test]
fn current_drafts() {
    let file = sequence(&[
        r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"client","name":"quiche"},"event_schemas":["urn:ietf:params:qlog:events:quic-13"],"common_fields":{"time_format":"relative_to_epoch","reference_time":{"clock_type":"monotonic","epoch":"unknown"}}}}"#,
        r#"{"time":0.5,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7},"raw":{"length":1252,"payload_length":1225},"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"raw":{"length":1203,"payload_length":1200}}]}}"#,
        r#"{"time":20.25,"name":"quic:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":40},"frames":[{"frame_type":"ack","acked_ranges":[[5,7]]}]}}"#,
        r#"{"time":20.25,"name":"quic:recovery_metrics_updated","data":{"smoothed_rtt":19.75,"congestion_window":14520}}"#,
        r#"{"time":20.25,"name":"quic:congestion_state_updated","data":{"new":"bbr_startup"}}"#,
        r#"{"time":21.0,"name":"quic:connection_data_blocked_updated","data":{"new":"blocked","reason":"pacing"}}"#,
    ]);
    has_the_two_packets(&file);
    let records = whole(file.as_bytes());
    assert_eq!(records[1].at, Timestamp::from_micros(20_250));
    let events = events(&file);
    let Event::Metrics(metrics) = &events[2] else {
        panic!("{:?}", events[2]);
    };
    assert_eq!(metrics.window, Some(ByteCount::new(14_520)));
    assert_eq!(
        events[4],
        Event::Blocked {
            is_blocked: true,
            reason: Some("pacing".to_owned())
        }
    );
}

/// quic-go, neqo, ngtcp2: the names of 0.3, with the header of the current drafts beside the old one.
#[test]
fn old_names_with_a_hybrid_header() {
    let file = sequence(&[
        r#"{"qlog_format":"JSON-SEQ","qlog_version":"0.3","file_schema":"x","title":"quic-go qlog","trace":{"vantage_point":{"type":"server"},"common_fields":{"ODCID":"abcd","reference_time":1700000000000.5,"time_format":"relative"}}}"#,
        r#"{"time":1.5,"name":"transport:parameters_set","data":{"initiator":"remote","initial_max_data":786432}}"#,
        r#"{"time":2,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":"7"},"raw":{"length":"1252"},"frames":[{"frame_type":"stream","stream_id":0,"offset":"1000","length":"1200"}]}}"#,
        r#"{"time":3,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":40},"frames":[{"frame_type":"ack","acked_ranges":[["5","7"]]}]}}"#,
        r#"{"time":4,"name":"recovery:loss_timer_updated","data":{"event_type":"expired","timer_type":"pto"}}"#,
    ]);
    has_the_two_packets(&file);
    let reader = Reader::new(file.as_bytes()).expect("a file");
    assert_eq!(reader.header().group_id.as_deref(), Some("abcd"));
    let events = events(&file);
    let Event::Parameters {
        owner, max_data, ..
    } = &events[0]
    else {
        panic!("{:?}", events[0]);
    };
    assert_eq!(
        (*owner, *max_data),
        (Some(qlogs::Owner::Remote), Some(786_432))
    );
    assert_eq!(events[3], Event::PtoExpired);
}

/// picoquic and early mvfst, draft-00: one document, events are arrays, times are microseconds.
#[test]
fn arrays_in_microseconds() {
    let file = r#"{"qlog_version":"draft-00","title":"picoquic","traces":[{"vantage_point":{"name":"backend-67","type":"server"},"title":"picoquic","configuration":{"time_units":"us"},"common_fields":{"protocol_type":"QUIC_HTTP3","reference_time":"1590000000"},"event_fields":["relative_time","category","event","data"],"events":[
        [500,"transport","packet_sent",{"packet_type":"1RTT","header":{"packet_size":1252,"packet_number":7},"frames":[{"frame_type":"stream","id":0,"offset":1000,"length":1200}]}],
        [20250,"transport","packet_received",{"packet_type":"1RTT","header":{"packet_size":40,"packet_number":3},"frames":[{"frame_type":"ack","ack_delay":0,"acked_ranges":[[5,7]]}]}],
        [20250,"recovery","metrics_updated",{"cwnd":15360,"pacing_rate":8000000.5,"smoothed_rtt":19750,"min_rtt":19750}],
        [20300,"METRIC_UPDATE","CONGESTION_METRIC_UPDATE",{"bytes_in_flight":1252,"current_cwnd":15000,"congestion_event":"ack"}]]}]}"#;
    has_the_two_packets(file);
    let reader = Reader::new(file.as_bytes()).expect("a file");
    assert_eq!(reader.header().unit, TimeUnit::Micros);
    assert_eq!(reader.header().vantage_point, Some(VantagePoint::Server));
    assert_eq!(whole(file.as_bytes())[1].at, Timestamp::from_micros(20_250));
    let events = events(file);
    let Event::Metrics(metrics) = &events[2] else {
        panic!("{:?}", events[2]);
    };
    assert_eq!(metrics.window, Some(ByteCount::new(15_360)));
    assert_eq!(
        metrics.pacing_rate.map(units::Rate::as_bps),
        Some(8_000_001)
    );
    assert_eq!(
        metrics.smoothed_rtt,
        Some(std::time::Duration::from_micros(19_750))
    );
    let Event::Metrics(metrics) = &events[3] else {
        panic!("{:?}", events[3]);
    };
    assert_eq!(metrics.window, Some(ByteCount::new(15_000)));
}

/// aioquic: one document, times of a clock without reference, the lost packet outside `header`.
#[test]
fn a_document_with_absolute_times() {
    let file = r#"{"qlog_format":"JSON","qlog_version":"0.3","traces":[{"common_fields":{"ODCID":"aabb"},"events":[
        {"data":{"frames":[{"fin":false,"frame_type":"stream","length":1200,"offset":1000,"stream_id":0}],"header":{"packet_number":7,"packet_type":"1RTT"},"raw":{"length":1252}},"name":"transport:packet_sent","time":5000000.25},
        {"data":{"frames":[{"ack_delay":0.0,"acked_ranges":[[5,7]],"frame_type":"ack"}],"header":{"packet_number":3,"packet_type":"1RTT"},"raw":{"length":40}},"name":"transport:packet_received","time":5000020.5},
        {"data":{"type":"1RTT","packet_number":6},"name":"recovery:packet_lost","time":5000020.5}],
        "vantage_point":{"name":"aioquic","type":"client"}}]}"#;
    has_the_two_packets(file);
    let records = whole(file.as_bytes());
    assert_eq!(records[0].at, Timestamp::ZERO);
    assert_eq!(records[1].at, Timestamp::from_micros(20_250));
    assert_eq!(
        events(file)[2],
        Event::PacketLost {
            id: Some(PacketId {
                space: 2,
                number: 6
            }),
            trigger: None
        }
    );
    let mut reader = Reader::new(file.as_bytes()).expect("a file");
    assert!(reader.by_ref().all(|record| record.is_ok()));
    let vantage_point = reader.header().vantage_point;
    assert_eq!(
        vantage_point,
        Some(VantagePoint::Client),
        "known at the end"
    );
}

/// draft-02 with times since the event before, and events in two parts.
#[test]
fn deltas_and_names_in_parts() {
    let file = r#"{"qlog_version":"draft-02","qlog_format":"JSON","traces":[{"vantage_point":{"type":"client"},"common_fields":{"time_format":"delta"},"events":[
        {"time":5,"category":"transport","type":"packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7},"raw":{"length":1252},"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"length":1200}]}},
        {"time":2.5,"category":"transport","type":"packet_received","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":40},"frames":[{"frame_type":"ack","acked_ranges":[[5,7]]}]}}]},
        {"error_description":"a trace that could not be written"}]}"#;
    has_the_two_packets(file);
    assert_eq!(whole(file.as_bytes())[1].at, Timestamp::from_micros(7_500));
}
