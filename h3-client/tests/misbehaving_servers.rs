//! What a download makes of servers that break the rules, or that use rules few servers use.

use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use h3_client::{Cancel, Failure, FileSink, Job, Quiet, Report, download};
use quic_core::tls::{self, ALPN_H3, ServerTls, TlsOptions, Trust};
use quic_core::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, net};
use tempfile::TempDir;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// HEADERS with ":status: 200" as the static table has it (RFC 9204 appendix A, entry 25) and, if
/// given, content-length as a literal with a name reference (entry 4).
fn headers(status: u8, lengths: &[&str]) -> Vec<u8> {
    let mut section = vec![0, 0, 0xc0 | status];
    for length in lengths {
        section.extend([0x54, u8::try_from(length.len()).unwrap_or(0)]);
        section.extend(length.as_bytes());
    }
    frame(0x1, &section)
}

const STATUS_103: u8 = 24;
const STATUS_200: u8 = 25;

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap_or(0) | 0x4000;
    let mut frame = vec![kind];
    frame.extend(length.to_be_bytes());
    frame.extend(payload);
    frame
}

/// How the server ends its response.
#[derive(Copy, Clone)]
enum Ending {
    Finish,
    Reset(u64),
    CloseConnection(u64),
    Nothing,
}

/// Answers the first request of the first connection with these bytes, whatever it asks.
async fn serve(endpoint: Endpoint, response: Vec<u8>, ending: Ending) -> Outcome {
    let connection = endpoint.accept().await.ok_or("nobody came")?;
    let mut control = connection.open_uni().await?;
    control
        .write_chunk(Bytes::from_static(&[0x00, 0x04, 0x00]))
        .await?;
    let (mut send, mut recv) = connection.accept_bi().await?;
    while recv.read_chunk(usize::MAX).await?.is_some() {}
    send.write_chunk(response.into()).await?;
    match ending {
        Ending::Finish => send.finish()?,
        Ending::Reset(code) => {
            // After the data has arrived, so that the client has something to keep.
            tokio::time::sleep(Duration::from_millis(100)).await;
            send.reset(code);
        }
        Ending::CloseConnection(code) => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            connection.close(code, b"because");
        }
        Ending::Nothing => {}
    }
    connection.closed().await;
    Ok(())
}

async fn connect(address: SocketAddr, tls: &ServerTls) -> Outcome<(Endpoint, Connection)> {
    let trust = Trust::CaDer(tls.chain().to_vec());
    let config = tls::client_config(&trust, &[ALPN_H3], &TlsOptions::virtual_time())?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ClientConfig::new(config)?;
    let endpoint = net::bind(local, EndpointConfig::default(), Some(config), None)?;
    let connection = endpoint.connect(address, "localhost")?;
    connection.handshake().await?;
    Ok((endpoint, connection))
}

/// Downloads from such a server; says what came of it and what is in the directory afterwards.
async fn play(
    response: Vec<u8>,
    ending: Ending,
    patience: Duration,
) -> Outcome<(Result<Report, Failure>, Vec<(String, Vec<u8>)>)> {
    let tls = ServerTls::generate_for_tests(&[])?;
    let config = tls::server_config(&tls, &[ALPN_H3], &TlsOptions::virtual_time())?;
    let config = ServerConfig::new(config)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = net::bind(local, EndpointConfig::default(), None, Some(config))?;
    let address = server.local_addr();
    let dir = TempDir::new()?;
    let (_endpoint, connection) = connect(address, &tls).await?;
    let connection = quic_core::h3_adapter::Connection::new(connection);
    let job = Job {
        url: format!("https://localhost:{}/f", address.port()).parse()?,
        sink: Box::new(FileSink::new(dir.path().join("f"))),
        sha256: None,
    };
    let cancel = async {
        tokio::time::sleep(patience).await;
        Cancel::MaxTime(patience)
    };
    let work = download(connection, vec![job], 1, &Quiet, cancel);
    let (mut results, _) = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::join!(work, serve(server, response, ending))
    })
    .await?;
    let mut files = Vec::new();
    for entry in fs::read_dir(dir.path())? {
        let entry = entry?;
        files.push((
            entry.file_name().to_string_lossy().into_owned(),
            fs::read(entry.path())?,
        ));
    }
    Ok((results.pop().ok_or("no result")?, files))
}

fn response(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn whole_responses_of_unusual_form_are_complete() -> Outcome {
    let (body, head) = (frame(0x0, b"hello"), headers(STATUS_200, &["5"]));
    let grease = frame(0x21, b"whatever");
    let trailers = frame(0x1, &[0, 0]);
    let interim = headers(STATUS_103, &[]);
    let (first, second) = (frame(0x0, b"hel"), frame(0x0, b"lo"));
    for (name, response) in [
        ("plain", response(&[&head, &body])),
        ("no length", response(&[&headers(STATUS_200, &[]), &body])),
        (
            "the same length twice",
            response(&[&headers(STATUS_200, &["5", "5"]), &body]),
        ),
        (
            "two interim responses",
            response(&[&interim, &interim, &head, &body]),
        ),
        ("two frames", response(&[&head, &first, &second])),
        (
            "an empty frame at the end",
            response(&[&head, &body, &frame(0x0, b"")]),
        ),
        (
            "unknown frames",
            response(&[&grease, &head, &grease, &body, &grease]),
        ),
        ("trailers", response(&[&head, &body, &trailers])),
    ] {
        let (outcome, files) = play(response, Ending::Finish, LONG).await?;
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
        assert_eq!(files, [("f".to_owned(), b"hello".to_vec())], "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_file_is_a_file() -> Outcome {
    for lengths in [&["0"][..], &[]] {
        let (outcome, files) = play(headers(STATUS_200, lengths), Ending::Finish, LONG).await?;
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(files, [("f".to_owned(), Vec::new())]);
    }
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_not_whole_is_never_called_so() -> Outcome {
    let (body, head) = (frame(0x0, b"hello"), headers(STATUS_200, &["9"]));
    let whole = response(&[&headers(STATUS_200, &["5"]), &body]);
    let short = response(&[&head, &body]);
    let inside_a_frame = response(&[&head, &[0x0, 0x40, 9], b"hello"]);
    let no_length = response(&[&headers(STATUS_200, &[]), &body]);
    for (name, response, ending, code, words) in [
        ("short", &short, Ending::Finish, 18, "after 5 of 9 bytes"),
        (
            "inside a frame",
            &inside_a_frame,
            Ending::Finish,
            18,
            "of 9 bytes",
        ),
        (
            "reset",
            &short,
            Ending::Reset(0x102),
            18,
            "H3_INTERNAL_ERROR",
        ),
        (
            "reset at the end",
            &whole,
            Ending::Reset(0x102),
            18,
            "H3_INTERNAL_ERROR",
        ),
        (
            "reset without a length",
            &no_length,
            Ending::Reset(0x10c),
            18,
            "of unknown length",
        ),
        (
            "closed",
            &short,
            Ending::CloseConnection(0x100),
            18,
            "closed the connection",
        ),
        (
            "closed with an error",
            &short,
            Ending::CloseConnection(0x107),
            95,
            "H3_EXCESSIVE_LOAD",
        ),
        (
            "silence",
            &short,
            Ending::Nothing,
            28,
            "--max-time is 500 ms",
        ),
    ] {
        let patience = if code == 28 {
            Duration::from_millis(500)
        } else {
            LONG
        };
        let (outcome, files) = play(response.clone(), ending, patience).await?;
        let failure = outcome.err().ok_or(format!("{name}: called complete"))?;
        assert_eq!(failure.error.exit_code(), code, "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
        assert!(
            files.iter().all(|(name, _)| name == "f.part"),
            "{name}: {files:?}"
        );
        assert_eq!(failure.kept.is_some(), !files.is_empty(), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_makes_no_sense_is_an_error_of_http3() -> Outcome {
    let body = frame(0x0, b"hello");
    let gigabyte = [0x1, 0xc0, 0, 0, 0, 0x40, 0, 0, 0];
    for (name, response, code, words) in [
        (
            "two lengths",
            response(&[&headers(STATUS_200, &["5", "6"]), &body]),
            95,
            "Content-Length",
        ),
        (
            "a length of -5",
            response(&[&headers(STATUS_200, &["-5"]), &body]),
            95,
            "Content-Length",
        ),
        (
            "more than said",
            response(&[&headers(STATUS_200, &["3"]), &body]),
            18,
            "more bytes",
        ),
        // Legal, but h3 0.0.8 takes an empty DATA frame for the end of the body. What follows it
        // must not get lost in silence.
        (
            "an empty frame inside",
            response(&[&headers(STATUS_200, &[]), &frame(0x0, b""), &body]),
            95,
            "H3_FRAME_UNEXPECTED",
        ),
        ("a body first", body.clone(), 95, "H3_FRAME_UNEXPECTED"),
        (
            "headers of a gigabyte",
            gigabyte.to_vec(),
            18,
            "H3_EXCESSIVE_LOAD",
        ),
        ("no status", frame(0x1, &[0, 0]), 95, "H3_MESSAGE_ERROR"),
        (
            "settings on a request",
            frame(0x4, &[]),
            95,
            "H3_FRAME_UNEXPECTED",
        ),
        (
            "a broken header section",
            frame(0x1, &[0xff; 4]),
            95,
            "QPACK_DECOMPRESSION_FAILED",
        ),
    ] {
        let (outcome, files) = play(response, Ending::Finish, LONG).await?;
        let failure = outcome.err().ok_or(format!("{name}: called complete"))?;
        assert_eq!(failure.error.exit_code(), code, "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
        assert!(
            files.iter().all(|(name, _)| name == "f.part"),
            "{name}: {files:?}"
        );
    }
    Ok(())
}
