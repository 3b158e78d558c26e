//! The command lines of server and client, from arguments to exit codes.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Parser;
use h3_client::cli::{GetArgs, get};
use h3_client::{Failure, Report};
use h3_server::cli::{Ready, ServeArgs, ServeError, serve};
use quic_core::{EndpointConfig, net};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::support::{Outcome, server_tls, within};

#[derive(Parser)]
struct Serve {
    #[command(flatten)]
    args: ServeArgs,
}

#[derive(Parser)]
struct Get {
    #[command(flatten)]
    args: GetArgs,
}

/// A server started by its command line.
struct Running {
    port: u16,
    stop: mpsc::UnboundedSender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

async fn start(words: &[&str]) -> Outcome<Running> {
    let base = ["serve", "--quiet", "--listen", "127.0.0.1:0"];
    let args = Serve::try_parse_from(base.iter().chain(words))?.args;
    let (stop, stopped) = mpsc::unbounded_channel();
    let (sender, ready) = oneshot::channel();
    let task = tokio::spawn(async move {
        let on_ready = |ready: &Ready| {
            let _ = sender.send(ready.clone());
        };
        serve(&args, None, stopped, on_ready).await
    });
    match ready.await {
        Ok(ready) => Ok(Running {
            port: ready.address.port(),
            stop,
            task,
        }),
        Err(_) => Err(task.await?.err().ok_or("ended without an error")?.into()),
    }
}

async fn refused(words: &[&str]) -> Outcome<String> {
    match start(words).await {
        Ok(_) => Err(format!("{words:?} is accepted").into()),
        Err(error) => Ok(error.to_string()),
    }
}

async fn get_all(words: &[&str]) -> Outcome<Vec<Result<Report, Failure>>> {
    let words = ["get", "--quiet"].iter().chain(words);
    let args = Get::try_parse_from(words)?.args;
    let (_sender, signal) = watch::channel(None);
    within(get(&args, None, signal)).await
}

async fn get_one(words: &[&str]) -> Outcome<Result<Report, Failure>> {
    get_all(words)
        .await?
        .pop()
        .ok_or_else(|| "no result".into())
}

/// The exit code and the message of a command that must fail, with `words` in it.
async fn fails(words: &[&str], code: u8, parts: &[&str]) -> Outcome<Failure> {
    let failure = get_one(words)
        .await?
        .err()
        .ok_or(format!("{words:?} succeeds"))?;
    let text = failure.to_string();
    assert_eq!(failure.error.exit_code(), code, "{words:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{words:?}: {text:?} lacks {part:?}");
    }
    assert!(!text.contains('\n'), "{text:?} is one line");
    Ok(failure)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

fn silent_socket() -> Outcome<(UdpSocket, u16)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

#[tokio::test]
async fn files_are_served_downloaded_and_the_server_stops_cleanly() -> Outcome {
    let dir = TempDir::new()?;
    let (root, out) = (dir.path().join("root"), dir.path().join("out"));
    fs::create_dir_all(&root)?;
    fs::create_dir_all(&out)?;
    fs::write(root.join("a.txt"), "A")?;
    fs::write(root.join("b c.txt"), "B")?;
    let (ca, logs) = (dir.path().join("ca.pem"), dir.path().join("logs"));
    let keys = dir.path().join("keys");
    let server = start(&[
        text(&root),
        "--write-cert",
        text(&ca),
        "--qlog",
        text(&logs),
        "--keylog",
        text(&keys),
        "--cc",
        "newreno",
    ])
    .await?;
    let base = format!("https://localhost:{}", server.port);
    let urls = [
        format!("{base}/a.txt"),
        format!("{base}/b%20c.txt"),
        format!("{base}/bytes/1MB"),
    ];
    let resolve = format!("localhost:{}:127.0.0.1", server.port);
    let results = get_all(&[
        "--ca",
        text(&ca),
        "--output-dir",
        text(&out),
        "--resolve",
        &resolve,
        "--qlog",
        text(&logs),
        &urls[0],
        &urls[1],
        &urls[2],
    ])
    .await?;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(fs::read_to_string(out.join("a.txt"))?, "A");
    assert_eq!(fs::read_to_string(out.join("b c.txt"))?, "B");
    assert_eq!(fs::metadata(out.join("1MB"))?.len(), 1_000_000);
    assert!(fs::read_to_string(&keys)?.contains("SERVER_TRAFFIC_SECRET_0"));
    server.stop.send(())?;
    within(server.task).await???;
    let logs: Vec<String> = fs::read_dir(&logs)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    for side in ["_client.sqlog", "_server.sqlog"] {
        assert_eq!(
            logs.iter().filter(|name| name.ends_with(side)).count(),
            1,
            "{logs:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_name_with_a_dead_address_still_connects() -> Outcome {
    let server = start(&[]).await?;
    let url = format!("https://localhost:{}/bytes/1kB", server.port);
    let dir = TempDir::new()?;
    let file = dir.path().join("f");
    let (dead, alive) = (
        format!("localhost:{}:192.0.2.1", server.port),
        format!("localhost:{}:127.0.0.1", server.port),
    );
    let words = [
        "--insecure",
        "--resolve",
        &dead,
        "--resolve",
        &alive,
        "-o",
        text(&file),
        &url,
    ];
    let report = get_one(&words).await??;
    assert_eq!(report.size.as_u64(), 1_000);
    Ok(())
}

#[tokio::test]
async fn downloads_that_cannot_begin_have_their_code_and_one_clear_line() -> Outcome {
    let server = start(&["--name", "files.example"]).await?;
    let dir = TempDir::new()?;
    let file = dir.path().join("f");
    let here = format!("https://127.0.0.1:{}/bytes/1kB", server.port);
    let out = ["-o", text(&file)];
    let with = |words: &[&'static str], url: &str| -> Vec<String> {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .chain([url.to_owned()])
            .collect()
    };
    let (_silent, silent_port) = silent_socket()?;
    let (closed, closed_port) = silent_socket()?;
    drop(closed);
    let (silent, closed) = (
        format!("https://127.0.0.1:{silent_port}/x"),
        format!("https://127.0.0.1:{closed_port}/x"),
    );
    let elsewhere = format!("https://other.example:{}/x", server.port);
    for (words, code, parts) in [
        (
            with(&[], &here),
            60,
            &["127.0.0.1", "--ca", "--insecure"][..],
        ),
        (
            with(&["--insecure"], "https://no-such-host.invalid/x"),
            6,
            &["no-such-host.invalid"],
        ),
        (
            with(&["--insecure"], &closed),
            7,
            &["nothing answers", "127.0.0.1", "the port is closed"],
        ),
        (
            with(&["--insecure", "--connect-timeout", "1.5 s"], &silent),
            28,
            &["--connect-timeout"],
        ),
        (
            with(&["--insecure"], "http://localhost/x"),
            3,
            &["only https"],
        ),
        (
            with(&["--ca", "/nowhere/ca.pem"], &here),
            26,
            &["/nowhere/ca.pem"],
        ),
        (
            with(&["--insecure"], &here.replace("1kB", "x")),
            22,
            &["404 Not Found"],
        ),
    ] {
        let words: Vec<&str> = out
            .iter()
            .copied()
            .chain(words.iter().map(String::as_str))
            .collect();
        let started_at = now();
        fails(&words, code, parts).await?;
        let span = now().saturating_duration_since(started_at);
        // A resolver takes its own time.
        assert!(
            code == 6 || span < Duration::from_secs(5),
            "{words:?} takes {span:?}"
        );
        assert_eq!(
            fs::read_dir(dir.path())?.count(),
            0,
            "{words:?} leaves a file"
        );
    }
    let resolve = format!("other.example:{}:127.0.0.1", server.port);
    let ca = dir.path().join("ca.pem");
    let named = start(&["--write-cert", text(&ca)]).await?;
    let elsewhere = elsewhere.replace(&server.port.to_string(), &named.port.to_string());
    let resolve = resolve.replace(&server.port.to_string(), &named.port.to_string());
    fails(
        &["--ca", text(&ca), "--resolve", &resolve, &elsewhere],
        60,
        &["another name"],
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_server_without_http3_is_told_apart() -> Outcome {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let tls = server_tls(&[b"hq-interop"])?;
    let endpoint = net::bind(local, EndpointConfig::default(), None, Some(tls))?;
    let url = format!("https://127.0.0.1:{}/x", endpoint.local_addr().port());
    fails(
        &["--insecure", &url],
        96,
        &["does not speak HTTP/3", "alert 120"],
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn places_that_cannot_be_written_have_their_code() -> Outcome {
    let server = start(&[]).await?;
    let url = format!("https://127.0.0.1:{}/bytes/1MB", server.port);
    let dir = TempDir::new()?;
    let missing = dir.path().join("missing/f");
    let get = |path: &Path| -> Vec<String> {
        ["--insecure", "-o", text(path), &url]
            .map(str::to_owned)
            .into()
    };
    for (path, parts) in [
        (missing.as_path(), &["missing/f", "No such file"][..]),
        (dir.path(), &["is a directory"]),
        (Path::new("/dev/full"), &["No space left", "1000000 bytes"]),
    ] {
        let words = get(path);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fails(&words, 23, parts).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_time_limit_ends_a_download_and_keeps_its_part() -> Outcome {
    // 1 Mbit/s, so that the limit comes first.
    let server = start(&["--cc", "fixed:1Mbit/s"]).await?;
    let url = format!("https://127.0.0.1:{}/bytes/10MB", server.port);
    let dir = TempDir::new()?;
    let file = dir.path().join("f");
    let words = ["--insecure", "--max-time", "1 s", "-o", text(&file), &url];
    let failure = fails(
        &words,
        28,
        &["--max-time is 1 s", "of 10000000 bytes", "f.part"],
    )
    .await?;
    assert_eq!(failure.kept.as_deref(), Some(&*dir.path().join("f.part")));
    assert!(!file.exists());
    Ok(())
}

#[tokio::test]
async fn a_stopping_server_finishes_downloads_and_cuts_them_at_the_deadline() -> Outcome {
    for (grace, is_finished) in [("20 s", true), ("300 ms", false)] {
        // 2 MB at 10 Mbit/s take 1.6 s.
        let server = start(&["--cc", "fixed:10Mbit/s", "--grace", grace]).await?;
        let url = format!("https://127.0.0.1:{}/bytes/2MB", server.port);
        let dir = TempDir::new()?;
        let file = dir.path().join("f");
        let words = ["--insecure", "-o", text(&file), &url];
        let stop = async {
            while !dir.path().join("f.part").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            server.stop.send(())
        };
        let (outcome, stopped) = tokio::join!(get_one(&words), stop);
        stopped?;
        let ended = within(server.task).await??;
        match outcome? {
            Ok(report) => {
                assert!(is_finished, "finished within {grace}");
                assert_eq!(report.size.as_u64(), 2_000_000);
                ended?;
            }
            Err(failure) => {
                assert!(!is_finished, "{failure}");
                assert_eq!(failure.error.exit_code(), 18, "{failure}");
                assert!(
                    matches!(ended, Err(ServeError::CutOff { count: 1 })),
                    "{ended:?}"
                );
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_peer_that_stays_idle_does_not_hold_up_the_end() -> Outcome {
    let server = start(&["--grace", "15 s"]).await?;
    let trust = quic_core::tls::Trust::Insecure;
    let options = quic_core::tls::TlsOptions::REAL;
    let tls = quic_core::tls::client_config(&trust, &[quic_core::tls::ALPN_H3], &options)?;
    let tls = quic_core::ClientConfig::new(tls)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = net::bind(local, EndpointConfig::default(), Some(tls), None)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let connection = endpoint.connect(address, "localhost")?;
    connection.handshake().await?;
    server.stop.send(())?;
    let started_at = now();
    within(server.task).await???;
    assert!(now().saturating_duration_since(started_at) < Duration::from_secs(5));
    let error = connection.closed().await;
    assert!(
        error.to_string().contains("0x100"),
        "closed with H3_NO_ERROR: {error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_in_one_line() -> Outcome {
    let dir = TempDir::new()?;
    let file = dir.path().join("file");
    fs::write(&file, "x")?;
    let (_taken, port) = silent_socket()?;
    let taken = format!("127.0.0.1:{port}");
    for (words, parts) in [
        (&["/nowhere/at/all"][..], &["/nowhere/at/all"][..]),
        (&[text(&file)], &["not a directory"]),
        (
            &["--cert", text(&file), "--key", text(&file)],
            &["holds no certificate", text(&file)],
        ),
        (&["--cert", text(&file)], &["--key"]),
        (&["--write-cert", "/nowhere/ca.pem"], &["/nowhere/ca.pem"]),
        (&["--name", "a b"], &["a b", "host name"]),
        (&["--cc", "vegas"], &["newreno, cubic"]),
        (&["--grace", "soon"], &["soon"]),
        (&["--qlog", text(&file)], &[text(&file)]),
        (&["--keylog", "/nowhere/keys"], &["/nowhere/keys"]),
    ] {
        let error = refused(words).await?;
        for part in parts {
            assert!(error.contains(part), "{words:?}: {error:?} lacks {part:?}");
        }
    }
    let args = Serve::try_parse_from(["serve", "--quiet", "--listen", &taken])?.args;
    let (_stop, stopped) = mpsc::unbounded_channel();
    let error = serve(&args, None, stopped, |_| {})
        .await
        .err()
        .ok_or("accepted")?
        .to_string();
    assert!(
        error.contains(&taken) && error.contains("in use"),
        "{error}"
    );
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command lines live in real time"
)]
fn now() -> Instant {
    Instant::now()
}
