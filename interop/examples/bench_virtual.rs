//! Prints how much faster than real time the whole stack runs in virtual time.
//!
//! ```text
//! cargo run --release -p interop --example bench_virtual [-- newreno,cubic]
//! ```
//!
//! One HTTP/3 download of 100 MB over 100 Mbit/s, 40 ms and a queue of one bandwidth-delay product, with full TLS and with
//! sessions that protect nothing: server, client and both pipes on one thread, so on one core. Then eight bulk flows
//! that share such a link for ten seconds, played as `tidegate run` plays them. Each figure is the median of five runs,
//! which differ in the time they take and in nothing else.
//!
//! A packet here is a datagram with data that reached the client. What is said to be spent on it covers
//! both ends, the pipes, HTTP/3, and the ACKs that went back.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cc::Algorithm;
use h3_client::{CountingSink, Job, Quiet, download};
use h3_server::{Link, Server, Shutdown, Site};
use interop::play::{PlayRequest, Player};
use interop::results::summarise;
use interop::scenario::Scenario;
use interop::virtual_player::VirtualPlayer;
use netsim::{Pipe, PipeConfig, RandomStreams};
use quic_core::tls::{ALPN_H3, ServerTls, TlsOptions, Trust, client_config, server_config};
use quic_core::virt::{Datagram, World};
use quic_core::{ClientConfig, EndpointConfig, LogFactory, ServerConfig, h3_adapter};
use units::{ByteCount, QueueLimit, Rate, Timestamp};

use crate::support::{cpu_time, exit_code, median, now, text};

mod support;

const SIZE: ByteCount = ByteCount::mb(100);
const RATE: Rate = Rate::from_mbps(100);
const RTT: Duration = Duration::from_millis(40);
const DATAGRAM: ByteCount = ByteCount::new(1_350);
const REPEATS: usize = 5;
/// Virtual time over real time: what the project wants at least of one flow, with TLS and without.
const WANTED: [f64; 2] = [25.0, 30.0];
/// The same of eight flows, without TLS.
const WANTED_OF_EIGHT: f64 = 10.0;

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> io::Result<()> {
    let names = std::env::args().nth(1);
    let names = names.as_deref().unwrap_or("newreno,cubic");
    let algorithms = Algorithm::parse_list(names).map_err(text)?;
    println!("{SIZE} over HTTP/3, {RATE}, 40 ms, 1 BDP queue, {DATAGRAM} datagrams,");
    println!(
        "one thread, median of {REPEATS}; wanted: ratio of at least {} with TLS, {} without\n",
        WANTED[0], WANTED[1]
    );
    println!(
        "{:<10} {:<4} {:<4} {:>9} {:>7} {:>6} {:>9} {:>9} {:>9} {:>7}",
        "controller",
        "TLS",
        "qlog",
        "virtual s",
        "real s",
        "ratio",
        "CPU ratio",
        "packets/s",
        "ns/packet",
        "log MB"
    );
    let (with, without) = (Tls::new()?, Tls::none());
    for algorithm in &algorithms {
        let name = algorithm.to_string();
        for (tls, has_log) in [(&with, false), (&with, true), (&without, false)] {
            let runs = (0..REPEATS)
                .map(|_| play(tls, *algorithm, has_log))
                .collect::<io::Result<Vec<_>>>()?;
            let of = |figure: fn(&Run) -> f64| median(runs.iter().map(figure));
            println!(
                "{name:<10} {:<4} {:<4} {:>9.3} {:>7.3} {:>6.1} {:>9.1} {:>9.0} {:>9.0} {:>7.1}",
                if tls.is_on { "on" } else { "off" },
                if has_log { "on" } else { "off" },
                of(|run| run.virtual_time.as_secs_f64()),
                of(|run| run.real_time.as_secs_f64()),
                of(|run| run.virtual_time.as_secs_f64() / run.real_time.as_secs_f64()),
                of(|run| run.virtual_time.as_secs_f64() / run.cpu_time.as_secs_f64()),
                of(|run| run.packets as f64 / run.real_time.as_secs_f64()),
                of(|run| run.cpu_time.as_secs_f64() * 1e9 / run.packets as f64),
                of(|run| run.log_bytes as f64 / 1e6),
            );
        }
    }
    println!(
        "\n{FLOWS} bulk flows, {RATE}, 40 ms; wanted: ratio of at least {WANTED_OF_EIGHT} without TLS\n"
    );
    for algorithm in &algorithms {
        for is_on in [true, false] {
            eight(algorithm, is_on)?;
        }
    }
    println!("\nReal time, ratio and packets/s suffer from whatever else the machine does;");
    println!("CPU ratio and ns/packet are from processor time and suffer less.");
    Ok(())
}

/// As many flows as share the link of the second table.
const FLOWS: u64 = 8;

/// Plays [`FLOWS`] flows and prints a line of the second table.
fn eight(algorithm: &Algorithm, is_on: bool) -> io::Result<()> {
    let player = match is_on {
        true => VirtualPlayer::new().map_err(text)?,
        false => VirtualPlayer::without_encryption(),
    };
    let flows: String = (1..FLOWS)
        .map(|flow| format!("[[flow]]\nname = \"flow {flow}\"\napp = \"bulk\"\n"))
        .collect();
    let file = format!(
        "name = \"eight\"\nabout = \"eight flows\"\nlimit = \"10 s\"\nseeds = 1\ncontrollers = [\"cubic\"]\n\
         [link]\nrate = \"100 Mbit/s\"\nrtt = \"40 ms\"\nqueue = \"1 BDP\"\n[download]\nduration = \"10 s\"\n{flows}"
    );
    let scenario = Scenario::parse("eight.toml", &file).map_err(text)?;
    let request = PlayRequest {
        scenario: &scenario,
        case: scenario.cases.first().ok_or_else(|| text("no download"))?,
        algorithm,
        seed: 1,
        limit: scenario.limit,
        qlog_dir: None,
    };
    let mut ratios = Vec::new();
    let mut packets = 0;
    for _ in 0..REPEATS {
        let (began_at, cpu_before) = (now(), cpu_time());
        let recording = player.play(&request).map_err(text)?;
        let (real, cpu) = (began_at.elapsed(), cpu_time().saturating_sub(cpu_before));
        let result = summarise(&request, recording);
        packets = result.forward.delivered_packets;
        let virtual_time = Duration::from_nanos(result.ended_at_ns).as_secs_f64();
        ratios.push((
            virtual_time / real.as_secs_f64(),
            virtual_time / cpu.as_secs_f64(),
        ));
    }
    println!(
        "{:<10} TLS {:<4} ratio {:>6.1}, CPU ratio {:>6.1}, {packets} packets",
        algorithm.to_string(),
        if is_on { "on" } else { "off" },
        median(ratios.iter().map(|ratio| ratio.0)),
        median(ratios.iter().map(|ratio| ratio.1)),
    );
    Ok(())
}

struct Tls {
    server: ServerConfig,
    client: ClientConfig,
    is_on: bool,
}

impl Tls {
    fn new() -> io::Result<Self> {
        let options = TlsOptions::virtual_time();
        let identity = ServerTls::generate_for_tests(&[]).map_err(text)?;
        let trust = Trust::CaDer(identity.chain().to_vec());
        let server = server_config(&identity, &[ALPN_H3], &options).map_err(text)?;
        let client = client_config(&trust, &[ALPN_H3], &options).map_err(text)?;
        Ok(Self {
            server: ServerConfig::new(server).map_err(text)?,
            client: ClientConfig::new(client).map_err(text)?,
            is_on: true,
        })
    }

    fn none() -> Self {
        Self {
            server: ServerConfig::unprotected(&[ALPN_H3]),
            client: ClientConfig::unprotected(&[ALPN_H3]),
            is_on: false,
        }
    }
}

struct Run {
    virtual_time: Duration,
    real_time: Duration,
    cpu_time: Duration,
    packets: u64,
    log_bytes: u64,
}

fn play(tls: &Tls, algorithm: Algorithm, has_log: bool) -> io::Result<Run> {
    let log_bytes = Arc::new(AtomicU64::new(0));
    let config = |seed| EndpointConfig {
        algorithm,
        datagram_size: DATAGRAM,
        has_mtu_discovery: false,
        seed: Some(seed),
        log: has_log.then(|| counted(&log_bytes)),
        ..EndpointConfig::default()
    };
    let mut world = World::new();
    let streams = RandomStreams::new(1);
    let packet = DATAGRAM + quic_core::virt::IPV4_UDP_HEADERS;
    let pipe = |name| {
        let config = PipeConfig {
            rate: RATE,
            delay: RTT / 2,
            queue: QueueLimit::Bdp { thousandths: 1_000 }.resolve(RATE, RTT, packet),
            ..PipeConfig::default()
        };
        Pipe::<Datagram>::new(config, &streams, name).map_err(text)
    };
    let forward = world.add_pipe(pipe("forward")?);
    let reverse = world.add_pipe(pipe("reverse")?);
    let server_address = SocketAddr::from(([10, 0, 0, 1], 443));
    let (server_node, server) = world
        .add_endpoint(server_address, config(1), None, Some(tls.server.clone()))
        .map_err(text)?;
    let client_address = SocketAddr::from(([10, 0, 0, 2], 50_000));
    let (client_node, client) = world
        .add_endpoint(client_address, config(2), Some(tls.client.clone()), None)
        .map_err(text)?;
    world.route(server_node, client_node, forward);
    world.route(client_node, server_node, reverse);

    let spawner = world.spawner();
    let request_spawner = spawner.clone();
    let http = Server::new(
        Arc::new(Site::generated()),
        Arc::new(move |task| request_spawner.spawn(task)),
        Shutdown::new(),
    );
    world.spawn(async move {
        while let Some(connection) = server.accept().await {
            let http = http.clone();
            spawner.spawn(Box::pin(async move {
                http.serve(h3_adapter::Connection::new(connection), Link::default())
                    .await;
            }));
        }
    });
    let is_done = Arc::new(AtomicBool::new(false));
    let result: Arc<Mutex<Option<io::Result<()>>>> = Arc::default();
    let (client_done, client_result) = (is_done.clone(), result.clone());
    world.spawn(async move {
        let fetched = fetch(&client, server_address).await;
        *client_result.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
        client_done.store(true, Ordering::Relaxed);
    });

    let (began_at, cpu_before) = (now(), cpu_time());
    world.run(Timestamp::from_secs(60), || is_done.load(Ordering::Relaxed));
    let (real_time, cpu_time) = (began_at.elapsed(), cpu_time().saturating_sub(cpu_before));
    let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.unwrap_or_else(|| Err(text("not done after 60 s of virtual time")))?;
    let run = Run {
        virtual_time: world.now().saturating_since(Timestamp::ZERO),
        real_time,
        cpu_time,
        packets: world.pipe(forward).counters().delivered.packets,
        log_bytes: 0,
    };
    // Only when the endpoints are gone have the logs been written to their ends.
    drop(world);
    Ok(Run {
        log_bytes: log_bytes.load(Ordering::Relaxed),
        ..run
    })
}

async fn fetch(client: &quic_core::Endpoint, server: SocketAddr) -> io::Result<()> {
    let connection = client.connect(server, "localhost").map_err(text)?;
    connection.handshake().await.map_err(text)?;
    let url = format!("https://localhost/bytes/{}B", SIZE.as_u64());
    let job = Job {
        url: url.parse().map_err(text)?,
        sink: Box::new(CountingSink::default()),
        sha256: None,
    };
    let results = download(
        h3_adapter::Connection::new(connection),
        vec![job],
        1,
        &Quiet,
        std::future::pending(),
    )
    .await;
    for result in results {
        let report = result.map_err(|failure| text(failure.error))?;
        if report.size != SIZE {
            return Err(text(format!("{} arrived instead of {SIZE}", report.size)));
        }
    }
    Ok(())
}

/// Logs of every connection that go nowhere and are counted.
fn counted(total: &Arc<AtomicU64>) -> LogFactory {
    let total = total.clone();
    Arc::new(move |_| Some(Box::new(CountingWriter(total.clone()))))
}

struct CountingWriter(Arc<AtomicU64>);

impl Write for CountingWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
