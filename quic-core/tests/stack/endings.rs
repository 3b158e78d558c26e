//! How connections begin and end, and what either side hears of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use cc::Algorithm;
use quic_core::{ConnectError, ConnectionError, ReadError, WriteError};
use units::Timestamp;

use crate::common::{ALPN, Net, Setup};

const LIMIT: Timestamp = Timestamp::from_secs(300);

fn setup() -> Setup {
    Setup::new(Algorithm::CUBIC)
}

fn within(at: Timestamp, from: Duration, span: Duration) -> bool {
    let from = Timestamp::ZERO + from;
    (from..=from + span).contains(&at)
}

#[test]
fn a_close_takes_its_code_and_reason_to_the_other_side() {
    for closer in 0..2 {
        let mut net = setup().build();
        let ends = net.connected();
        ends[closer].close(0x10c, b"enough");
        let other = ends[1 - closer].clone();
        let heard = net.finish(LIMIT, async move { other.closed().await });
        let reason = "enough".to_owned();
        assert_eq!(
            heard,
            Some(ConnectionError::ClosedByPeer {
                code: 0x10c,
                reason
            })
        );
        assert_eq!(
            ends[closer].close_reason(),
            Some(ConnectionError::LocallyClosed { code: 0x10c })
        );
    }
}

#[test]
fn a_close_ends_every_wait() {
    let mut net = setup().build();
    let [client, server] = net.connected();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let (connection, keep) = (client.clone(), errors.clone());
    net.world.spawn(async move {
        let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
        let block = Bytes::from(vec![0; 1_000_000]);
        let writing = async { while send.write_chunk(block.clone()).await.is_ok() {} };
        let (_, read, accepted, bi, closed) = tokio::join!(
            writing,
            recv.read_chunk(1),
            async { connection.accept_uni().await.map(drop) },
            async { connection.accept_bi().await.map(drop) },
            connection.closed()
        );
        let lost = ConnectionError::LocallyClosed { code: 5 };
        assert_eq!(read, Err(ReadError::ConnectionLost(lost.clone())));
        assert_eq!(accepted, Err(lost.clone()));
        assert_eq!(bi, Err(lost.clone()));
        assert_eq!(
            send.write_chunk(block).await,
            Err(WriteError::ConnectionLost(lost.clone()))
        );
        assert_eq!(send.finish(), Err(WriteError::ConnectionLost(lost.clone())));
        assert_eq!(send.stopped().await, Err(lost.clone()));
        assert_eq!(connection.open_uni().await.map(drop), Err(lost));
        keep.lock().expect("unpoisoned").push(closed);
    });
    net.pass(Duration::from_secs(1));
    assert!(errors.lock().expect("unpoisoned").is_empty(), "all wait");
    client.close(5, b"");
    net.pass(Duration::from_secs(1));
    assert_eq!(errors.lock().expect("unpoisoned").len(), 1);
    drop(server);
}

#[test]
fn the_last_handle_closes_the_connection_with_code_zero() {
    let mut net = setup().build();
    let [client, server] = net.connected();
    let clone = client.clone();
    drop(client);
    net.pass(Duration::from_secs(1));
    assert_eq!(server.close_reason(), None, "one handle is left");
    drop(clone);
    let heard = net.finish(LIMIT, async move { server.closed().await });
    let reason = String::new();
    assert_eq!(
        heard,
        Some(ConnectionError::ClosedByPeer { code: 0, reason })
    );
}

#[test]
fn an_endpoint_closes_all_its_connections_and_becomes_idle() {
    let mut net = setup().build();
    let [first, first_end] = net.connected();
    let [second, second_end] = net.connected();
    let server = net.server.clone();
    server.close(9, b"over");
    let idle = server.clone();
    let waited = net.finish(LIMIT, async move { idle.wait_idle().await });
    assert!(waited.is_some());
    for connection in [&first, &second] {
        let reason = "over".to_owned();
        assert_eq!(
            connection.close_reason(),
            Some(ConnectionError::ClosedByPeer { code: 9, reason })
        );
    }
    let accepted = net.finish(LIMIT, async move { server.accept().await.map(drop) });
    assert_eq!(accepted, Some(None), "no more will come");
    drop((first_end, second_end));
}

#[test]
fn a_server_that_stopped_accepting_refuses_newcomers_and_keeps_its_connections() {
    let mut net = setup().build();
    let [client, server] = net.connected();
    net.server.stop_accepting();
    let late = net.connect();
    let refused = net.finish(LIMIT, async move { late.handshake().await });
    assert!(
        matches!(
            refused,
            Some(Err(ConnectionError::AbortedByPeer { code: 2, .. }))
        ),
        "{refused:?}"
    );
    net.pass(Duration::from_secs(1));
    assert_eq!(client.close_reason(), None);
    assert_eq!(server.close_reason(), None);
}

/// RFC 9000 section 10.1: the idle time counts from the last packet.
#[test]
fn a_silent_connection_times_out_on_both_sides_when_it_should() {
    let mut setup = setup();
    setup.client.idle_timeout = Some(Duration::from_secs(5));
    setup.server.idle_timeout = Some(Duration::from_secs(8));
    let mut net = setup.build();
    let last_departure = Arc::new(Mutex::new(Timestamp::ZERO));
    let keep = last_departure.clone();
    net.world.observe(Box::new(move |now, _, _| {
        *keep.lock().expect("unpoisoned") = now;
    }));
    let ends = net.connected();
    for connection in ends {
        let timers = net.world.timers();
        let (error, at) = net
            .finish(LIMIT, async move {
                let error = connection.closed().await;
                (error, timers.now())
            })
            .expect("an end");
        assert_eq!(error, ConnectionError::TimedOut);
        // The smaller of both sides' limits; the last packet takes 20 ms to arrive.
        let idle = at.saturating_since(*last_departure.lock().expect("unpoisoned"));
        let allowed = Duration::from_secs(5)..=Duration::from_millis(5_050);
        assert!(allowed.contains(&idle), "{idle:?}");
    }
}

#[test]
fn pings_keep_a_silent_connection_alive() {
    let mut setup = setup();
    setup.client.idle_timeout = Some(Duration::from_secs(5));
    setup.client.keep_alive = Some(Duration::from_secs(2));
    let mut net = setup.build();
    let [client, server] = net.connected();
    net.pass(Duration::from_secs(120));
    assert_eq!(client.close_reason(), None);
    assert_eq!(server.close_reason(), None);
    assert_eq!(client.stats().sender.pto_count, 0);
}

#[test]
fn an_address_without_a_route_times_out() {
    let mut setup = setup();
    setup.client.idle_timeout = Some(Duration::from_secs(10));
    let mut net = setup.build();
    let nowhere = ([10, 9, 9, 9], 443).into();
    let connection = net.client.connect(nowhere, "localhost").expect("a start");
    let timers = net.world.timers();
    let (result, at) = net
        .finish(LIMIT, async move {
            let result = connection.handshake().await;
            (result, timers.now())
        })
        .expect("an end");
    assert_eq!(result, Err(ConnectionError::TimedOut));
    assert!(
        within(at, Duration::from_secs(10), Duration::from_millis(1)),
        "{at}"
    );
}

/// Tries a handshake that must fail; what client and server say of it.
fn failed_handshake(mut net: Net) -> ConnectionError {
    let server = net.server.clone();
    net.world.spawn(async move {
        assert!(server.accept().await.is_none(), "nothing to accept");
    });
    let connection = net.connect();
    net.finish(LIMIT, async move { connection.handshake().await })
        .expect("an end")
        .expect_err("a failure")
}

#[test]
fn protocols_that_do_not_match_end_with_an_alert_of_the_server() {
    let mut setup = setup();
    assert_ne!(ALPN, b"other");
    setup.client_alpn = b"other";
    let error = failed_handshake(setup.build());
    // RFC 7301 section 3.2: no_application_protocol.
    assert_eq!(error.tls_alert(), Some((120, true)), "{error}");
}

#[test]
fn an_unknown_certificate_ends_with_an_alert_of_the_client() {
    let mut setup = setup();
    setup.is_trusted = false;
    let error = failed_handshake(setup.build());
    // RFC 8446 section 6.2: decrypt_error. The stranger bears the trusted one's name, so that only
    // its signature gives it away.
    assert_eq!(error.tls_alert(), Some((51, false)), "{error}");
}

#[test]
fn a_name_that_is_no_name_is_refused_before_anything_is_sent() {
    let net = setup().build();
    let result = net.client.connect(net.server_address, "not a name");
    assert!(
        matches!(result, Err(ConnectError::InvalidServerName { .. })),
        "{result:?}"
    );
    let result = net.server.connect(net.server_address, "localhost");
    assert!(
        matches!(result, Err(ConnectError::NotAClient)),
        "{result:?}"
    );
    net.client.close(0, b"");
    let result = net.client.connect(net.server_address, "localhost");
    assert!(matches!(result, Err(ConnectError::Closed)), "{result:?}");
}
