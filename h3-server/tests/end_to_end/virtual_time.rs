//! The same server and client code in a virtual network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h3_client::{Cancel, Job, Quiet, Report, Sink, download};
use h3_server::content::Verifier;
use h3_server::{Link, Served, Server, Shutdown, Site};
use netsim::{Pipe, PipeConfig, RandomStreams};
use quic_core::tls::{self, ALPN_H3, ServerTls, TlsOptions, Trust};
use quic_core::virt::World;
use quic_core::{ClientConfig, EndpointConfig};
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::support::{Outcome, server_tls};

/// Checks each byte and keeps none.
struct Checking(Verifier);

impl Sink for Checking {
    fn write(&mut self, data: Bytes) -> std::io::Result<()> {
        self.0.update(&data).map_err(std::io::Error::other)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.0.finish().map_err(std::io::Error::other)
    }

    fn name(&self) -> String {
        "the verifier".into()
    }
}

struct Run {
    ended_at: Timestamp,
    report: Report,
    served: Served,
    /// Time, sender and size of every datagram.
    datagrams: Vec<(Timestamp, usize)>,
}

fn download_in_a_world(seed: u64, loss_percent: u32) -> Outcome<Run> {
    const SIZE: ByteCount = ByteCount::mb(2);
    let streams = RandomStreams::new(seed);
    let pipe = |name: &str| {
        let config = PipeConfig {
            rate: Rate::from_mbps(20),
            delay: Duration::from_millis(20),
            queue: ByteCount::kb(100),
            loss: Fraction::from_percent(loss_percent).unwrap_or(Fraction::ZERO),
            ..PipeConfig::default()
        };
        Pipe::new(config, &streams, name)
    };
    let (client_address, server_address): (SocketAddr, SocketAddr) =
        ("10.0.0.1:5000".parse()?, "10.0.0.2:443".parse()?);
    let config = EndpointConfig {
        seed: Some(seed),
        ..EndpointConfig::default()
    };

    let mut world = World::new();
    let trust = Trust::CaDer(ServerTls::generate_for_tests(&[])?.chain().to_vec());
    let client_tls = tls::client_config(&trust, &[ALPN_H3], &TlsOptions::virtual_time())?;
    let client_tls = ClientConfig::new(client_tls)?;
    let (client, endpoint) =
        world.add_endpoint(client_address, config.clone(), Some(client_tls), None)?;
    let server_tls = server_tls(&[ALPN_H3])?;
    let (server, accepting) = world.add_endpoint(server_address, config, None, Some(server_tls))?;
    let forward = world.add_pipe(pipe("forward")?);
    let backward = world.add_pipe(pipe("backward")?);
    world.route(client, server, forward);
    world.route(server, client, backward);
    let datagrams = Arc::new(Mutex::new(Vec::new()));
    let seen = datagrams.clone();
    world.observe(Box::new(move |at, _, payload| {
        if let Ok(mut seen) = seen.lock() {
            seen.push((at, payload.len()));
        }
    }));

    let (spawner, timers) = (world.spawner(), world.timers());
    let spawn_request = spawner.clone();
    let http = Server::new(
        Arc::new(Site::generated()),
        Arc::new(move |task| spawn_request.spawn(task)),
        Shutdown::new(),
    )
    .with_timer(Arc::new(move |span| Box::pin(timers.sleep(span))));
    let served = Arc::new(Mutex::new(None));
    let what_was_served = served.clone();
    world.spawn(async move {
        if let Some(connection) = accepting.accept().await {
            let connection = quic_core::h3_adapter::Connection::new(connection);
            let outcome = http.serve(connection, Link::default()).await;
            if let Ok(mut served) = what_was_served.lock() {
                *served = Some(outcome);
            }
        }
    });
    let reports = Arc::new(Mutex::new(None));
    let what_came = reports.clone();
    let url = "https://localhost/bytes/2MB".parse()?;
    let connection = endpoint.connect(server_address, "localhost")?;
    world.spawn(async move {
        if connection.handshake().await.is_err() {
            return;
        }
        let connection = quic_core::h3_adapter::Connection::new(connection);
        let sink = Box::new(Checking(Verifier::new(SIZE)));
        let jobs = vec![Job {
            url,
            sink,
            sha256: Some(h3_server::content::sha256_of(SIZE)),
        }];
        let never = std::future::pending::<Cancel>();
        let outcome = download(connection, jobs, 1, &Quiet, never).await;
        if let Ok(mut reports) = what_came.lock() {
            *reports = Some(outcome);
        }
    });
    let is_over = || served.lock().is_ok_and(|served| served.is_some());
    world.run(Timestamp::from_secs(60), is_over);
    let ended_at = world.now();
    let outcome = reports
        .lock()
        .map_err(|_| "poisoned")?
        .take()
        .ok_or("no download")?;
    let report = outcome.into_iter().next().ok_or("no result")??;
    let served = served
        .lock()
        .map_err(|_| "poisoned")?
        .take()
        .ok_or("nothing served")?;
    let datagrams = datagrams.lock().map_err(|_| "poisoned")?.clone();
    Ok(Run {
        ended_at,
        report,
        served,
        datagrams,
    })
}

#[test]
fn a_download_takes_the_time_that_the_link_needs() -> Outcome {
    let run = download_in_a_world(1, 0)?;
    assert_eq!(run.report.size, ByteCount::mb(2));
    assert_eq!((run.served.completed, run.served.failed), (1, 0));
    // 2 MB at 20 Mbit/s are 800 ms; with the handshake and slow start at 40 ms a round trip it
    // is below two seconds.
    let limits = Timestamp::from_millis(800)..Timestamp::from_millis(2_000);
    assert!(limits.contains(&run.ended_at), "{}", run.ended_at);
    Ok(())
}

#[test]
fn a_lossy_download_is_complete_and_the_same_in_every_run() -> Outcome {
    let (one, two) = (download_in_a_world(7, 5)?, download_in_a_world(7, 5)?);
    assert_eq!(one.report.size, ByteCount::mb(2));
    assert_eq!(one.ended_at, two.ended_at);
    assert_eq!(one.datagrams, two.datagrams);
    let other = download_in_a_world(8, 5)?;
    assert_ne!(
        one.datagrams, other.datagrams,
        "another seed is another run"
    );
    Ok(())
}
