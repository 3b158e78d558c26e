//! Prints how fast one HTTP/3 download over real loopback sockets is, on this stack and on quinn.
//!
//! ```text
//! cargo run --release -p interop --example bench_loopback [-- SIZE] [--pairs N] [--runtime KIND]
//!
//!   parent ──starts──> server process ──address──> parent ──starts──> client process
//!             ours:    h3-server on quic-core::net                    h3-client on quic-core::net
//!             quinn:   h3-server on h3-quinn                          h3-client on h3-quinn
//! ```
//!
//! Only the transport differs. Server and client of either stack run the same HTTP/3 code, the same TLS
//! and the same kind of runtime, over sockets with the same buffers; both have CUBIC and the same
//! flow-control windows, begin with 1200-byte datagrams and probe up to 1452. The body is generated, so
//! making it costs nothing, and its bytes are counted, not compared. The two take turns, so that what
//! else the machine does meets both.
//!
//! Time runs from the end of the handshake to the last byte. CPU is all that the process used, user and
//! system mode, its start and end included. Memory is what is resident, read ten times a second.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clap::{Parser, ValueEnum};
use h3::quic;
use h3_client::{CountingSink, Job, Quiet, download};
use h3_server::{Link, Server, Shutdown, Site};
use quic_core::tls::{
    ALPN_H3, ServerTls, TlsOptions, Trust, client_config, quic_client_config, quic_server_config,
    server_config,
};
use quic_core::{ClientConfig, EndpointConfig, ServerConfig, h3_adapter, net};
use socket2::{Domain, Protocol, Socket, Type};
use units::ByteCount;

use crate::support::{cpu_time, exit_code, median, now, text};

mod support;

/// As quic-core's defaults, whatever they become.
const STREAM_WINDOW: ByteCount = ByteCount::mib(8);
const WINDOW: ByteCount = ByteCount::mib(16);
/// What quic-core's host asks the system for; quinn's sockets get it too.
const SOCKET_BUFFER: usize = 2 << 20;
/// What is wanted: this stack's rate over quinn's, and the memory of either side at its highest.
const WANTED_RATIO: f64 = 0.9;
const WANTED_MB: f64 = 64.0;
/// A transfer that takes longer is given up.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// After so long no further pair begins.
const BUDGET: Duration = Duration::from_secs(100);
const SERVER_NAME: &str = "localhost";

/// One HTTP/3 download over loopback, on this stack and on quinn in turn.
#[derive(Debug, Parser)]
struct Arguments {
    /// How much is downloaded each time.
    #[arg(default_value = "1GB")]
    size: ByteCount,
    /// How often each of the two is measured; fewer if that takes longer than 100 s.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    pairs: u32,
    /// What runs the tasks of each process.
    #[arg(long, value_enum, default_value_t = Flavour::CurrentThread)]
    runtime: Flavour,
    /// Measure one of the two only.
    #[arg(long, value_enum)]
    only: Option<Stack>,
    /// What a process that this program started has to do.
    #[arg(long, value_enum, hide = true, requires = "only")]
    role: Option<Role>,
    /// Where the server is; for the client's role.
    #[arg(long, hide = true, default_value = "127.0.0.1:0")]
    address: SocketAddr,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Flavour {
    CurrentThread,
    MultiThread,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    Ours,
    Quinn,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Server,
    Client,
}

/// A choice as it is spelt on the command line.
fn spelling(choice: &impl ValueEnum) -> String {
    choice
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn main() -> ExitCode {
    exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> io::Result<()> {
    match (arguments.role, arguments.only) {
        (Some(role), Some(stack)) => runtime(arguments.runtime)?.block_on(async {
            tokio::time::timeout(RUN_LIMIT, play(arguments, stack, role))
                .await
                .unwrap_or_else(|_| Err(text(format!("not done within {RUN_LIMIT:?}"))))
        }),
        _ => compare(arguments),
    }
}

// -- The parent: starts the processes, reads their reports, prints the table -------------------------

/// The figures of one run, in the order in which they are printed.
struct Run([f64; 8]);

impl Run {
    const RATE: usize = 0;
    /// The places of the two peaks of memory.
    const PEAKS: [usize; 2] = [4, 6];

    fn new(size: ByteCount, server: &Report, client: &Report) -> Self {
        Self([
            size.as_u64() as f64 * 8.0 / 1e9 / client.seconds,
            server.cpu_seconds,
            client.cpu_seconds,
            server.steady_mb,
            server.peak_mb,
            client.steady_mb,
            client.peak_mb,
            server.lost,
        ])
    }

    /// Each figure's median by itself.
    fn median_of<'a>(runs: impl Iterator<Item = &'a Self> + Clone) -> Self {
        Self(std::array::from_fn(|figure| {
            median(runs.clone().map(|run| run.0[figure]))
        }))
    }

    fn print(&self, name: &str) {
        let [rate, cpu1, cpu2, steady1, peak1, steady2, peak2, lost] = self.0;
        println!(
            "{name:<14} {rate:>7.3} {cpu1:>7.2} {cpu2:>7.2} {steady1:>7.1} {peak1:>6.1} \
             {steady2:>7.1} {peak2:>6.1} {lost:>7.0}"
        );
    }
}

fn compare(arguments: &Arguments) -> io::Result<()> {
    println!(
        "{} over HTTP/3 on loopback, two processes, {} runtime; CUBIC;",
        arguments.size,
        spelling(&arguments.runtime)
    );
    println!("stream window 8 MiB, connection and send window 16 MiB; datagrams of 1200 B,");
    println!("probing up to 1452 B; 2 MiB of socket buffer each way\n");
    println!(
        "{:<14} {:>7} {:>15} {:>14} {:>14} {:>7}",
        "", "", "CPU s", "server MB", "client MB", "packets"
    );
    println!(
        "{:<14} {:>7} {:>7} {:>7} {:>7} {:>6} {:>7} {:>6} {:>7}",
        "run", "Gbit/s", "server", "client", "steady", "peak", "steady", "peak", "lost"
    );
    let stacks: Vec<Stack> = match arguments.only {
        Some(stack) => vec![stack],
        None => vec![Stack::Ours, Stack::Quinn],
    };
    let began_at = now();
    let mut runs: Vec<(Stack, Run)> = Vec::new();
    for pair in 1..=arguments.pairs {
        if began_at.elapsed() > BUDGET {
            println!("no pair {pair}: {BUDGET:?} are over");
            break;
        }
        for &stack in &stacks {
            let run = measure(arguments, stack)?;
            run.print(&format!("{pair} {}", spelling(&stack)));
            runs.push((stack, run));
        }
    }
    println!();
    let of = |stack| {
        let runs = runs.iter().filter(move |(of, _)| *of == stack);
        runs.map(|(_, run)| run)
    };
    for &stack in &stacks {
        Run::median_of(of(stack)).print(&format!("median {}", spelling(&stack)));
    }
    println!();
    if arguments.only.is_none() {
        let rates = of(Stack::Ours).zip(of(Stack::Quinn));
        let ratios: Vec<f64> = rates
            .map(|(ours, quinn)| ours.0[Run::RATE] / quinn.0[Run::RATE])
            .collect();
        let list: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        let middle = median(ratios);
        println!(
            "ours / quinn, pair by pair: {}; median {middle:.2}, wanted {WANTED_RATIO}: {}",
            list.join(" "),
            verdict(middle >= WANTED_RATIO)
        );
    }
    let peak = of(Stack::Ours)
        .flat_map(|run| Run::PEAKS.map(|place| run.0[place]))
        .fold(0.0, f64::max);
    if arguments.only != Some(Stack::Quinn) {
        println!(
            "ours, memory of either side at its highest: {peak:.1} MB, wanted below {WANTED_MB}: {}",
            verdict(peak < WANTED_MB)
        );
    }
    Ok(())
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT MET" }
}

/// One server process, one client process, one download.
fn measure(arguments: &Arguments, stack: Stack) -> io::Result<Run> {
    let (mut server, mut output) = start(arguments, stack, Role::Server, arguments.address)?;
    let address = next_line(&mut output)?.parse().map_err(text)?;
    let (mut client, mut client_output) = start(arguments, stack, Role::Client, address)?;
    let client_report = next_line(&mut client_output)?.parse()?;
    let server_report = next_line(&mut output)?.parse()?;
    for child in [&mut server, &mut client] {
        let status = child.wait()?;
        if !status.success() {
            return Err(text(format!("a process ended with {status}")));
        }
    }
    Ok(Run::new(arguments.size, &server_report, &client_report))
}

/// Starts this program again with a role. The process ends by itself, after `RUN_LIMIT` at the latest.
fn start(
    arguments: &Arguments,
    stack: Stack,
    role: Role,
    address: SocketAddr,
) -> io::Result<(Child, BufReader<ChildStdout>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(format!("{}B", arguments.size.as_u64()))
        .args(["--runtime", &spelling(&arguments.runtime)])
        .args(["--only", &spelling(&stack)])
        .args(["--role", &spelling(&role)])
        .args(["--address", &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or_else(|| text("no pipe"))?;
    Ok((child, BufReader::new(output)))
}

fn next_line(output: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    if line.is_empty() {
        return Err(text("a process ended without its report"));
    }
    Ok(line.trim_end().to_owned())
}

// -- What a process says about itself ----------------------------------------------------------------

/// One line of standard output.
struct Report {
    /// How long the download took; the client's only.
    seconds: f64,
    cpu_seconds: f64,
    /// Resident memory: the median over the run, and the most.
    steady_mb: f64,
    peak_mb: f64,
    /// Packets declared lost; the server's matter.
    lost: f64,
}

impl Report {
    fn print(&self) -> io::Result<()> {
        let Self {
            seconds,
            cpu_seconds,
            steady_mb,
            peak_mb,
            lost,
        } = self;
        let mut out = io::stdout();
        writeln!(out, "{seconds} {cpu_seconds} {steady_mb} {peak_mb} {lost}")?;
        out.flush()
    }
}

impl std::str::FromStr for Report {
    type Err = io::Error;

    fn from_str(line: &str) -> io::Result<Self> {
        let figures: Vec<f64> = line
            .split(' ')
            .map(|word| word.parse().map_err(text))
            .collect::<io::Result<_>>()?;
        match figures[..] {
            [seconds, cpu_seconds, steady_mb, peak_mb, lost] => Ok(Self {
                seconds,
                cpu_seconds,
                steady_mb,
                peak_mb,
                lost,
            }),
            _ => Err(text(format!("{line:?} is no report"))),
        }
    }
}

/// Reads this process's memory while the rest of it works.
struct MemoryWatch(Arc<Mutex<Vec<f64>>>);

impl MemoryWatch {
    const INTERVAL: Duration = Duration::from_millis(100);

    fn start() -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let kept = samples.clone();
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(Self::INTERVAL);
            loop {
                interval.tick().await;
                let mut samples = kept.lock().unwrap_or_else(PoisonError::into_inner);
                samples.push(memory_mb("VmRSS:"));
            }
        });
        Self(samples)
    }

    fn report(&self, seconds: f64, lost: u64) -> Report {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Report {
            seconds,
            cpu_seconds: cpu_time().as_secs_f64(),
            steady_mb: median(samples.iter().copied()),
            peak_mb: memory_mb("VmHWM:"),
            lost: lost as f64,
        }
    }
}

/// A line of proc(5)'s status, in MB; not a number where there is no such file.
fn memory_mb(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<f64>().ok())
        .map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
}

// -- The two ends ------------------------------------------------------------------------------------

fn runtime(flavour: Flavour) -> io::Result<tokio::runtime::Runtime> {
    match flavour {
        Flavour::CurrentThread => tokio::runtime::Builder::new_current_thread(),
        Flavour::MultiThread => tokio::runtime::Builder::new_multi_thread(),
    }
    .enable_all()
    .build()
}

async fn play(arguments: &Arguments, stack: Stack, role: Role) -> io::Result<()> {
    match (stack, role) {
        (Stack::Ours, Role::Server) => serve_ours().await,
        (Stack::Ours, Role::Client) => fetch_ours(arguments.address, arguments.size).await,
        (Stack::Quinn, Role::Server) => serve_quinn().await,
        (Stack::Quinn, Role::Client) => fetch_quinn(arguments.address, arguments.size).await,
    }
}

fn ours() -> EndpointConfig {
    EndpointConfig {
        stream_receive_window: STREAM_WINDOW,
        receive_window: WINDOW,
        send_window: WINDOW,
        ..EndpointConfig::default()
    }
}

async fn serve_ours() -> io::Result<()> {
    let config = ServerConfig::new(server_tls()?).map_err(text)?;
    let endpoint = net::bind(any_port(), ours(), None, Some(config)).map_err(text)?;
    tell(endpoint.local_addr())?;
    let connection = endpoint.accept().await.ok_or_else(|| text("no client"))?;
    let memory = MemoryWatch::start();
    serve(h3_adapter::Connection::new(connection.clone())).await;
    memory
        .report(0.0, connection.stats().sender.packets_lost)
        .print()
}

async fn fetch_ours(server: SocketAddr, size: ByteCount) -> io::Result<()> {
    let config = ClientConfig::new(client_tls()?).map_err(text)?;
    let endpoint = net::bind(any_port(), ours(), Some(config), None).map_err(text)?;
    let memory = MemoryWatch::start();
    let connection = endpoint.connect(server, SERVER_NAME).map_err(text)?;
    connection.handshake().await.map_err(text)?;
    let seconds = fetch(h3_adapter::Connection::new(connection), size).await?;
    memory.report(seconds, 0).print()?;
    endpoint.close(0, b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// quinn's own defaults besides the windows: CUBIC, and the same search for the path's MTU.
fn quinn_transport() -> io::Result<Arc<quinn::TransportConfig>> {
    let window = |window: ByteCount| quinn::VarInt::try_from(window.as_u64()).map_err(text);
    let mut transport = quinn::TransportConfig::default();
    transport
        .stream_receive_window(window(STREAM_WINDOW)?)
        .receive_window(window(WINDOW)?)
        .send_window(WINDOW.as_u64());
    Ok(Arc::new(transport))
}

fn quinn_endpoint(server: Option<quinn::ServerConfig>) -> io::Result<quinn::Endpoint> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&any_port().into())?;
    quinn::Endpoint::new(
        quinn::EndpointConfig::default(),
        server,
        UdpSocket::from(socket),
        Arc::new(quinn::TokioRuntime),
    )
}

async fn serve_quinn() -> io::Result<()> {
    let tls = quic_server_config(server_tls()?).map_err(text)?;
    let mut config = quinn::ServerConfig::with_crypto(tls);
    config.transport_config(quinn_transport()?);
    let endpoint = quinn_endpoint(Some(config))?;
    tell(endpoint.local_addr()?)?;
    let incoming = endpoint.accept().await.ok_or_else(|| text("no client"))?;
    let connection = incoming.await?;
    let memory = MemoryWatch::start();
    serve(h3_quinn::Connection::new(connection.clone())).await;
    memory
        .report(0.0, connection.stats().path.lost_packets)
        .print()
}

async fn fetch_quinn(server: SocketAddr, size: ByteCount) -> io::Result<()> {
    let tls = quic_client_config(client_tls()?).map_err(text)?;
    let mut config = quinn::ClientConfig::new(tls);
    config.transport_config(quinn_transport()?);
    let endpoint = quinn_endpoint(None)?;
    let memory = MemoryWatch::start();
    let connecting = endpoint.connect_with(config, server, SERVER_NAME);
    let connection = connecting.map_err(text)?.await?;
    let seconds = fetch(h3_quinn::Connection::new(connection), size).await?;
    memory.report(seconds, 0).print()?;
    endpoint.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// Serves one connection until the client closes it.
async fn serve<C>(connection: C)
where
    C: quic::Connection<Bytes> + 'static,
    C::BidiStream: Send + 'static,
{
    let server = Server::new(
        Arc::new(Site::generated()),
        Arc::new(|task| drop(tokio::spawn(task))),
        Shutdown::new(),
    );
    server.serve(connection, Link::default()).await;
}

/// Downloads once and gives the seconds that it took.
async fn fetch<C>(connection: C, size: ByteCount) -> io::Result<f64>
where
    C: quic::Connection<Bytes>,
    C::OpenStreams: Clone + Send,
    C::BidiStream: Send,
{
    let url = format!("https://{SERVER_NAME}/bytes/{}B", size.as_u64());
    let job = Job {
        url: url.parse().map_err(text)?,
        sink: Box::new(CountingSink::default()),
        sha256: None,
    };
    let began_at = now();
    let results = download(connection, vec![job], 1, &Quiet, std::future::pending()).await;
    let seconds = began_at.elapsed().as_secs_f64();
    for result in results {
        let report = result.map_err(|failure| text(failure.error))?;
        if report.size != size {
            return Err(text(format!("{} arrived instead of {size}", report.size)));
        }
    }
    Ok(seconds)
}

/// The same certificate in every process, so that none has to be passed on.
fn identity() -> io::Result<ServerTls> {
    ServerTls::generate_for_tests(&[]).map_err(text)
}

fn server_tls() -> io::Result<Arc<rustls::ServerConfig>> {
    server_config(&identity()?, &[ALPN_H3], &TlsOptions::virtual_time()).map_err(text)
}

fn client_tls() -> io::Result<Arc<rustls::ClientConfig>> {
    let trust = Trust::CaDer(identity()?.chain().to_vec());
    client_config(&trust, &[ALPN_H3], &TlsOptions::virtual_time()).map_err(text)
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn tell(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{address}")?;
    out.flush()
}
