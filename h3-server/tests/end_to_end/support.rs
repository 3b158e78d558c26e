//! A server and its clients on loopback, in one process.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3_client::{Cancel, FileSink, Job, Observer, Quiet, Report, Sink, download};
use h3_server::{AccessRecord, Link, Served, Server, Shutdown, Site};
use http::{HeaderMap, Method, Request, StatusCode};
use quic_core::tls::{self, ALPN_H3, ServerTls, TlsOptions, Trust};
use quic_core::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, net};
use tokio::task::JoinHandle;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A server of a site, and what it has logged.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) endpoint: Endpoint,
    pub(crate) shutdown: Shutdown,
    log: Arc<Mutex<Vec<AccessRecord>>>,
    connections: JoinHandle<Vec<JoinHandle<Served>>>,
}

impl TestServer {
    pub(crate) fn start(site: Site) -> Outcome<Self> {
        let tls = server_tls(&[ALPN_H3])?;
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = net::bind(local, EndpointConfig::default(), None, Some(tls))?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let shutdown = Shutdown::new();
        let records = log.clone();
        let spawn = |task| {
            tokio::spawn(task);
        };
        let server = Server::new(Arc::new(site), Arc::new(spawn), shutdown.clone())
            .with_timer(Arc::new(|span| Box::pin(tokio::time::sleep(span))))
            .with_log(move |record| {
                if let Ok(mut records) = records.lock() {
                    records.push(record.clone());
                }
            });
        let accepting = endpoint.clone();
        let connections = tokio::spawn(async move {
            let mut serving = Vec::new();
            while let Some(connection) = accepting.accept().await {
                let server = server.clone();
                serving.push(tokio::spawn(async move {
                    let connection = quic_core::h3_adapter::Connection::new(connection);
                    server.serve(connection, Link::default()).await
                }));
            }
            serving
        });
        let address = endpoint.local_addr();
        Ok(Self {
            address,
            endpoint,
            shutdown,
            log,
            connections,
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// What has been logged so far.
    pub(crate) fn log(&self) -> Vec<AccessRecord> {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    /// Waits until so many requests have been logged.
    pub(crate) async fn logged(&self, count: usize) -> Outcome<Vec<AccessRecord>> {
        for _ in 0..500 {
            if self.log().len() >= count {
                return Ok(self.log());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err(format!("{:?} is all that was logged", self.log()).into())
    }

    /// Stops accepting and says what became of every connection.
    pub(crate) async fn served(self) -> Outcome<Vec<Served>> {
        self.endpoint.stop_accepting();
        let mut all = Vec::new();
        for serving in self.connections.await? {
            all.push(tokio::time::timeout(Duration::from_secs(10), serving).await??);
        }
        Ok(all)
    }
}

pub(crate) fn server_tls(alpn: &[&[u8]]) -> Outcome<ServerConfig> {
    let tls = ServerTls::generate_for_tests(&[])?;
    Ok(ServerConfig::new(tls::server_config(
        &tls,
        alpn,
        &test_time(),
    )?)?)
}

/// The test certificate is judged by a fixed clock, so that these tests do not expire with it.
fn test_time() -> TlsOptions {
    TlsOptions::virtual_time()
}

/// A connection to `address`, and the endpoint it needs.
pub(crate) async fn connect(address: SocketAddr) -> Outcome<(Endpoint, Connection)> {
    let trust = Trust::CaDer(ServerTls::generate_for_tests(&[])?.chain().to_vec());
    let tls = ClientConfig::new(tls::client_config(&trust, &[ALPN_H3], &test_time())?)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = net::bind(local, EndpointConfig::default(), Some(tls), None)?;
    let connection = endpoint.connect(address, "localhost")?;
    connection.handshake().await?;
    Ok((endpoint, connection))
}

/// What a test client gets back from one request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Plays `requests` one after the other over one connection, with h3 alone and no check of ours.
pub(crate) async fn ask_all(
    address: SocketAddr,
    requests: Vec<Request<()>>,
) -> Outcome<Vec<Result<Answer, String>>> {
    let (_endpoint, connection) = connect(address).await?;
    let connection = quic_core::h3_adapter::Connection::new(connection);
    let (mut driver, mut handle) = h3::client::builder()
        .send_grease(false)
        .build::<_, _, Bytes>(connection)
        .await?;
    let work = async move {
        let mut answers = Vec::new();
        for request in requests {
            answers.push(
                ask(&mut handle, request)
                    .await
                    .map_err(|error| error.to_string()),
            );
        }
        answers
    };
    let mut work = pin!(work);
    Ok(poll_fn(|cx| {
        let _ = driver.poll_close(cx);
        work.as_mut().poll(cx)
    })
    .await)
}

async fn ask<O: h3::quic::OpenStreams<Bytes>>(
    handle: &mut h3::client::SendRequest<O, Bytes>,
    request: Request<()>,
) -> Result<Answer, h3::error::StreamError> {
    let mut stream = handle.send_request(request).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    Ok(Answer {
        status: response.status(),
        fields: response.headers().clone(),
        body,
    })
}

pub(crate) fn request(method: &Method, url: &str) -> Outcome<Request<()>> {
    Ok(Request::builder().method(method).uri(url).body(())?)
}

/// Downloads one URL into a file, with an observer.
pub(crate) async fn fetch_watched(
    address: SocketAddr,
    url: &str,
    path: PathBuf,
    sha256: Option<[u8; 32]>,
    observer: &dyn Observer,
) -> Outcome<Result<Report, h3_client::Failure>> {
    fetch_into(
        address,
        url,
        Box::new(FileSink::new(path)),
        sha256,
        observer,
    )
    .await
}

pub(crate) async fn fetch(
    address: SocketAddr,
    url: &str,
    path: PathBuf,
    sha256: Option<[u8; 32]>,
) -> Outcome<Result<Report, h3_client::Failure>> {
    fetch_watched(address, url, path, sha256, &Quiet).await
}

pub(crate) async fn fetch_into(
    address: SocketAddr,
    url: &str,
    sink: Box<dyn Sink>,
    sha256: Option<[u8; 32]>,
    observer: &dyn Observer,
) -> Outcome<Result<Report, h3_client::Failure>> {
    let (endpoint, connection) = connect(address).await?;
    let connection = quic_core::h3_adapter::Connection::new(connection);
    let jobs = vec![Job {
        url: url.parse()?,
        sink,
        sha256,
    }];
    let never = std::future::pending::<Cancel>();
    let mut results = download(connection, jobs, 1, observer, never).await;
    drop(endpoint);
    results.pop().ok_or_else(|| "no result".into())
}

/// Runs `work`, and fails when it takes longer than 20 s.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> Outcome<T> {
    Ok(tokio::time::timeout(Duration::from_secs(20), work).await?)
}
