//! Acknowledgements leave in time although the gate is closed, seen in the logs of both sides.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use cc::{Algorithm, FixedConfig};
use serde_json::Value;
use units::{ByteCount, Rate, Timestamp};

use super::{
    Faults, Memory, config,
    network::{CLIENT, Net, SERVER},
    percent, shared, wide_open,
};
use crate::{config::EndpointConfig, handles::Connection};

/// RFC 9000 section 13.2.1's limit, and what the driver may add.
const ACK_LIMIT_MS: f64 = 25.0 + 2.0;

/// Writes without end; ends with the connection.
async fn pour(connection: Connection) {
    let mut stream = connection.open_uni().await.expect("a stream");
    let block = Bytes::from(vec![0x5a; 4_096]);
    while stream.write_chunk(block.clone()).await.is_ok() {}
}

/// Takes in without end; ends with the connection.
async fn drink(connection: Connection) {
    let mut stream = connection.accept_uni().await.expect("a stream");
    while let Ok(Some(_)) = stream.read_chunk(usize::MAX).await {}
}

/// Both sides send all the time as `algorithm` lets them, for ten seconds; the logs and the number of
/// exemptions of each.
fn pour_both_ways(algorithm: Algorithm, faults: Faults) -> [(Vec<Value>, u64); 2] {
    let logs = [Memory::default(), Memory::default()];
    let configured = |side: usize| {
        EndpointConfig {
            algorithm,
            log: Some(logs[side].factory()),
            // No flow-control frames, which would wait at the gate like data.
            ..wide_open(config(side as u64 + 1))
        }
    };
    let mut net = Net::new(1, faults, configured(CLIENT), configured(SERVER));
    let connections = shared(vec![net.connect()]);
    let (server, keep) = (net.server.clone(), connections.clone());
    net.spawn(async move {
        let connection = server.accept().await.expect("a connection");
        keep.lock().expect("unpoisoned").push(connection);
    });
    assert!(net.run(Timestamp::from_secs(10)));
    let exemptions = || {
        let connections = connections.lock().expect("unpoisoned");
        [CLIENT, SERVER].map(|side| connections[side].stats().sender.ack_exemptions)
    };
    net.pass(Duration::from_secs(1));
    let during_the_handshake = exemptions();
    for connection in connections.lock().expect("unpoisoned").iter() {
        net.spawn(pour(connection.clone()));
        net.spawn(drink(connection.clone()));
    }
    net.pass(Duration::from_secs(10));
    let exemptions = exemptions();
    net.client.close(0, b"");
    let end = net.now() + Duration::from_secs(40);
    assert!(net.run(end));
    net.pass(Duration::from_secs(40));
    [
        (
            logs[CLIENT].records(),
            exemptions[CLIENT] - during_the_handshake[CLIENT],
        ),
        (
            logs[SERVER].records(),
            exemptions[SERVER] - during_the_handshake[SERVER],
        ),
    ]
}

/// Milliseconds from the arrival of each ack-eliciting 1-RTT packet to the first ACK frame that
/// covers it. Those that the end of the connection overtook are left out, and so is the handshake:
/// quinn-proto stops its ACK timer of the Data space whenever an ACK leaves in another space.
fn ack_delays(records: &[Value]) -> Vec<f64> {
    let mut waiting = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut delays = Vec::new();
    let is_application_data = |record: &&Value| {
        let frames = record["data"]["frames"].as_array();
        frames.is_some_and(|frames| frames.iter().any(|frame| frame["frame_type"] == "stream"))
    };
    let first = records
        .iter()
        .position(|record| is_application_data(&record));
    for record in &records[first.expect("application data")..] {
        let data = &record["data"];
        if data["header"]["packet_type"] != "1RTT" {
            continue;
        }
        let at = record["time"].as_f64().expect("a time");
        let frames = data["frames"].as_array().map_or(&[][..], Vec::as_slice);
        if record["name"] == "transport:packet_received" {
            let elicits = |frame: &Value| {
                let kind = frame["frame_type"].as_str().expect("a type");
                !["ack", "padding", "connection_close"].contains(&kind)
            };
            if frames.iter().any(elicits) {
                let number = data["header"]["packet_number"].as_u64();
                let number = number.expect("a number");
                if known.insert(number) {
                    waiting.insert(number, at);
                }
            }
        } else if record["name"] == "transport:packet_sent" {
            for range in frames
                .iter()
                .filter_map(|frame| frame["acked_ranges"].as_array())
                .flatten()
            {
                let low = range[0].as_u64().expect("a number");
                let high = range[1].as_u64().unwrap_or(low);
                let numbers = waiting.keys().copied();
                let covered: Vec<u64> = numbers
                    .filter(|number| (low..=high).contains(number))
                    .collect();
                for number in covered {
                    delays.push(at - waiting.remove(&number).expect("a packet that waits"));
                }
            }
        }
    }
    delays
}

#[track_caller]
fn expect_timely_acks(algorithm: Algorithm, faults: Faults, least_exemptions: u64) {
    for (records, exemptions) in pour_both_ways(algorithm, faults) {
        let delays = ack_delays(&records);
        assert!(delays.len() > 50, "{} packets", delays.len());
        let worst = delays.iter().copied().fold(0.0, f64::max);
        assert!(worst <= ACK_LIMIT_MS, "{worst} ms");
        assert!(exemptions >= least_exemptions, "{exemptions} exemptions");
    }
}

fn fixed(rate: Rate, window: ByteCount) -> Algorithm {
    Algorithm::Fixed(FixedConfig { rate, window })
}

fn lossy(delay: Duration) -> Faults {
    Faults {
        delay,
        loss: percent(10),
        ..Faults::NONE
    }
}

/// The window is full for most of a round trip of 400 ms, and lost packets wait for it.
#[test]
fn acknowledgements_leave_in_time_while_the_window_is_full() {
    let algorithm = fixed(Rate::from_mbps(10), ByteCount::new(4_800));
    expect_timely_acks(algorithm, lossy(Duration::from_millis(200)), 3);
}

/// Each datagram waits 150 ms for its predecessor's share of the rate.
#[test]
fn acknowledgements_leave_in_time_while_pacing_holds_data_back() {
    let algorithm = fixed(Rate::from_kbps(64), ByteCount::mb(1));
    expect_timely_acks(algorithm, lossy(Duration::from_millis(10)), 5);
}

/// Late datagrams elicit immediate acknowledgements (RFC 9000 section 13.2.1).
#[test]
fn acknowledgements_of_reordered_packets_leave_in_time() {
    for rate in [Rate::from_kbps(64), Rate::from_mbps(10)] {
        let algorithm = fixed(rate, ByteCount::new(6_000));
        let faults = Faults {
            reordering: percent(30),
            lateness: Duration::from_millis(300),
            duplication: percent(10),
            ..lossy(Duration::from_millis(50))
        };
        expect_timely_acks(algorithm, faults, 1);
    }
}

/// Without loss nothing is ever pending in quinn-proto while the gate is closed (late binding), and
/// acknowledgements need no exemption.
#[test]
fn late_binding_alone_lets_acknowledgements_leave_on_a_clean_path() {
    for rate in [Rate::from_kbps(64), Rate::from_mbps(10)] {
        let algorithm = fixed(rate, ByteCount::new(4_800));
        expect_timely_acks(algorithm, Faults::NONE, 0);
        for (_, exemptions) in pour_both_ways(algorithm, Faults::NONE) {
            assert_eq!(exemptions, 0);
        }
    }
}
