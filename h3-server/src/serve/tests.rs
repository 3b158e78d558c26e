//! Checks of requests, and the lines of the access log.

use super::*;

fn request(uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut builder = Request::builder().uri(uri);
    for &(name, value) in fields {
        builder = builder.header(name, value);
    }
    builder.body(()).unwrap_or_default()
}

#[test]
fn a_plain_request_passes() {
    for fields in [
        &[][..],
        &[("te", "trailers")],
        &[("content-length", "0")],
        &[("content-length", "5"), ("content-length", "5")],
        &[("host", "a.example")],
        &[("accept", "*/*"), ("user-agent", "curl/8")],
    ] {
        assert_eq!(
            check(&request("https://a.example/x?y", fields)),
            Ok(()),
            "{fields:?}"
        );
    }
}

#[test]
fn malformed_requests_are_seen() {
    for (uri, fields) in [
        ("http://a.example/", &[][..]),
        ("ftp://a.example/", &[]),
        ("/", &[]),
        ("https://user@a.example/", &[]),
        ("https://user:secret@a.example/", &[]),
        ("https://a.example/", &[("connection", "close")]),
        ("https://a.example/", &[("keep-alive", "5")]),
        ("https://a.example/", &[("proxy-connection", "close")]),
        ("https://a.example/", &[("transfer-encoding", "chunked")]),
        ("https://a.example/", &[("upgrade", "websocket")]),
        ("https://a.example/", &[("te", "gzip")]),
        ("https://a.example/", &[("te", "trailers"), ("te", "gzip")]),
        ("https://a.example/", &[("content-length", "")]),
        ("https://a.example/", &[("content-length", "-1")]),
        ("https://a.example/", &[("content-length", "+1")]),
        (
            "https://a.example/",
            &[("content-length", "99999999999999999999")],
        ),
        (
            "https://a.example/",
            &[("content-length", "5"), ("content-length", "6")],
        ),
        (
            "https://a.example/",
            &[("host", "a.example"), ("host", "a.example")],
        ),
    ] {
        assert!(
            check(&request(uri, fields)).is_err(),
            "{uri} {fields:?} passes"
        );
    }
}

#[test]
fn a_protocol_is_for_connect_only() {
    let mut request = request("https://a.example/", &[]);
    request
        .extensions_mut()
        .insert(h3::ext::Protocol::WEB_TRANSPORT);
    assert!(check(&request).is_err());
    *request.method_mut() = Method::CONNECT;
    assert_eq!(check(&request), Ok(()));
}

#[test]
fn a_line_of_the_log_cannot_be_forged() {
    let record = AccessRecord {
        peer: Some(SocketAddr::from(([127, 0, 0, 1], 50_612))),
        request: Some((
            Method::GET,
            "/a\n[::1]:1 GET /b 200 6 complete\u{1b}[2J".into(),
        )),
        status: Some(StatusCode::OK),
        sent: ByteCount::new(6),
        failure: None,
    };
    assert_eq!(
        record.to_string(),
        "127.0.0.1:50612 GET /a\\n[::1]:1 GET /b 200 6 complete\\u{1b}[2J 200 6 sent"
    );
    let record = AccessRecord {
        peer: None,
        request: None,
        status: None,
        sent: ByteCount::ZERO,
        failure: Some("reset\r\nby peer".into()),
    };
    assert_eq!(
        record.to_string(),
        "- - - - 0 incomplete: reset\\r\\nby peer"
    );
}
