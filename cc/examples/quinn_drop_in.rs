//! A download between a plain quinn server and a plain quinn client on loopback, with a controller of this crate.
//!
//! ```text
//! cargo run --release --manifest-path cc/Cargo.toml --features quinn --example quinn_drop_in
//! cargo run --release --manifest-path cc/Cargo.toml --features quinn --example quinn_drop_in newreno
//! ```
//!
//! The one line that matters is in `transport`. The certificate is made on the spot and the client trusts it alone;
//! a real server has one that others trust too.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cc::Algorithm;
use cc::quinn::Factory;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

type Failure = Box<dyn Error + Send + Sync>;

const DOWNLOAD_BYTES: usize = 20_000_000;
const TIME_LIMIT: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let algorithm: Algorithm = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("cubic")
        .parse()?;
    tokio::time::timeout(TIME_LIMIT, download(algorithm)).await?
}

/// Both ends use the controller; here the server sends, so its own matters.
fn transport(algorithm: Algorithm) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(algorithm)));
    Arc::new(transport)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a download over real sockets takes real time"
)]
async fn download(algorithm: Algorithm) -> Result<(), Failure> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (server_config, client_config) = configs(algorithm)?;
    let server = Endpoint::server(server_config, loopback)?;
    let address = server.local_addr()?;
    let mut client = Endpoint::client(loopback)?;
    client.set_default_client_config(client_config);

    let serving = tokio::spawn(serve(server));
    let connection = client.connect(address, "localhost")?.await?;
    let began_at = Instant::now();
    let received = fetch(&connection).await?;
    let took = began_at.elapsed();
    connection.close(0_u32.into(), b"done");
    client.wait_idle().await;
    let sender = serving.await??;

    let megabits = received as f64 * 8.0 / 1e6 / took.as_secs_f64();
    println!("{algorithm}: {received} bytes in {took:.2?}, {megabits:.0} Mbit/s");
    let path = sender.stats().path;
    // quinn's statistics show `window()`, one byte above the true window; `metrics()` has the truth.
    let metrics = sender.congestion_state().metrics();
    println!(
        "server: window {} B (quinn's statistics: {}), slow-start threshold {:?}, RTT {:.2?}",
        metrics.congestion_window, path.cwnd, metrics.ssthresh, path.rtt
    );
    println!(
        "server: {} packets sent, {} lost ({} B), {} congestion events",
        path.sent_packets, path.lost_packets, path.lost_bytes, path.congestion_events
    );
    Ok(())
}

/// Serves one connection and returns it when the client has closed it.
async fn serve(endpoint: Endpoint) -> Result<Connection, Failure> {
    let incoming = endpoint.accept().await.ok_or("the endpoint is closed")?;
    let connection = incoming.await?;
    let mut stream = connection.open_uni().await?;
    let chunk = [7; 64 * 1_024];
    let mut rest = DOWNLOAD_BYTES;
    while rest > 0 {
        let length = rest.min(chunk.len());
        stream.write_all(&chunk[..length]).await?;
        rest -= length;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(connection)
}

/// Reads the one stream to its end and returns how long it is.
async fn fetch(connection: &Connection) -> Result<usize, Failure> {
    let mut stream = connection.accept_uni().await?;
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len();
    }
    Ok(received)
}

fn configs(algorithm: Algorithm) -> Result<(ServerConfig, ClientConfig), Failure> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    server.transport_config(transport(algorithm));
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport(algorithm));
    Ok((server, client))
}
