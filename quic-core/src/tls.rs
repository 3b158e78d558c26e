//! TLS 1.3 for both ends: who the server is, whom the client trusts, and what the handshake may read.
//!
//! ```text
//!   PEM files --\                               /--> server_config --> quic_server_config
//!                >-- ServerTls (chain and key) -
//!   generate ---/         |
//!                         +-- write_certificate --> Trust::CaFile --> client_config --> quic_client_config
//! ```
//!
//! Follows RFC 9001 (TLS 1.3 only) and RFC 8446. The provider is *ring* and is named at every
//! builder, so nothing depends on a process-wide default. What would make two virtual runs differ
//! (the wall clock, resumption state, signatures of varying length) can be switched off with
//! [`TlsOptions::virtual_time`] and [`ServerTls::generate_for_tests`].

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{DnsName, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{DigitallySignedStruct, InconsistentKeys, RootCertStore, SignatureScheme};

pub use rustls::pki_types::CertificateDer;

/// The application protocol of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN_H3: &[u8] = b"h3";

/// The instant, since the Unix epoch, that certificate checks see in virtual time: the first
/// second of 2030, inside the validity of [`ServerTls::generate_for_tests`].
pub const VIRTUAL_NOW: Duration = Duration::from_secs(1_893_456_000);

/// The largest PEM file that is read. A chain with a few intermediates is below 20 kB; the bound
/// keeps a mistyped path (a disk image, a device) from filling memory.
const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// How long a generated certificate is valid after the moment it is made. With the day before it
/// (clocks that are a little behind) that stays within the 14 days browsers accept for
/// certificates trusted by hash.
const GENERATED_VALIDITY: Duration = Duration::from_secs(13 * 86_400 - 3_600);

/// How far before the moment of generation a generated certificate starts.
const GENERATED_BACKDATE: Duration = Duration::from_secs(86_400);

/// The kind of key made for a generated certificate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Ed25519 (RFC 8032): small, and its signatures never vary in length. Browsers refuse it.
    Ed25519,
    /// ECDSA on P-256 with SHA-256: what browsers accept. Its DER signatures are 70 to 72 bytes.
    EcdsaP256,
}

/// A certificate chain and the key that belongs to it.
#[derive(Debug)]
pub struct ServerTls {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// DER of the leaf's SubjectPublicKeyInfo.
    spki: Vec<u8>,
}

impl ServerTls {
    /// Reads a certificate chain (leaf first) and a private key (PKCS#8, PKCS#1 or SEC1) from PEM
    /// files; both may be the same file.
    ///
    /// # Errors
    /// Says which of the two files is at fault and why: unreadable, no such section in it, broken
    /// PEM, a key of an unsupported kind, or a key that does not belong to the certificate.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates(certificate)?;
        let private = match PrivateKeyDer::from_pem_slice(&read_pem(key)?) {
            Ok(private) => private,
            Err(rustls::pki_types::pem::Error::NoItemsFound) => {
                return Err(TlsError::NoPrivateKey { path: key.into() });
            }
            Err(error) => {
                return Err(TlsError::BrokenPem {
                    path: key.into(),
                    problem: error.to_string(),
                });
            }
        };
        let spki = subject_public_key_info(&chain).map_err(|problem| TlsError::BadCertificate {
            path: certificate.into(),
            problem,
        })?;
        let signing = provider()
            .key_provider
            .load_private_key(private.clone_key())
            .map_err(|error| TlsError::BadKey {
                path: key.into(),
                problem: error.to_string(),
            })?;
        match CertifiedKey::new(chain.clone(), signing).keys_match() {
            // A key that cannot tell its public half cannot be compared; the handshake will.
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                return Err(TlsError::KeyMismatch {
                    certificate: certificate.into(),
                    key: key.into(),
                });
            }
            Err(error) => {
                return Err(TlsError::BadCertificate {
                    path: certificate.into(),
                    problem: error.to_string(),
                });
            }
        }
        Ok(Self {
            chain,
            key: private,
            spki,
        })
    }

    /// Makes a self-signed certificate for local use, valid from yesterday for two weeks by the
    /// wall clock: for `localhost`, `127.0.0.1`, `::1` and each of `names` (host names or IP
    /// addresses; a leading `*.` is allowed).
    ///
    /// # Errors
    /// A name that is neither a host name nor an address, or a failing random generator.
    pub fn generate(names: &[String], kind: KeyKind) -> Result<Self, TlsError> {
        let now = Duration::from_secs(UnixTime::now().as_secs());
        Self::generate_at(names, kind, now)
    }

    /// As [`ServerTls::generate`], made at `now` (since the Unix epoch) instead of the wall clock.
    ///
    /// # Errors
    /// As [`ServerTls::generate`].
    pub fn generate_at(names: &[String], kind: KeyKind, now: Duration) -> Result<Self, TlsError> {
        let algorithm = match kind {
            KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
            KeyKind::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        };
        let pair = rcgen::KeyPair::generate_for(algorithm).map_err(TlsError::generation)?;
        let mut params = certificate_params(names)?;
        // Below the year 9999, where ASN.1 times end; `now` is about 2^31.
        let now = now.min(Duration::from_secs(200_000_000_000));
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(GENERATED_BACKDATE);
        params.not_after = epoch + now + GENERATED_VALIDITY;
        Self::self_signed(&params, &pair)
    }

    /// The same certificate and key in every run, for `localhost`, `127.0.0.1`, `::1` and each of
    /// `names`: Ed25519 from a fixed seed, fixed serial number, valid from 2020 to 2049.
    ///
    /// The private key is in the source for everyone to read: for tests and virtual time only.
    /// Ed25519 because its signatures have one length, so handshakes of two runs have the same
    /// sizes although their random values differ.
    ///
    /// # Errors
    /// A name that is neither a host name nor an address.
    pub fn generate_for_tests(names: &[String]) -> Result<Self, TlsError> {
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(
            &PrivatePkcs8KeyDer::from(ed25519_pkcs8(TEST_KEY_SEED)),
            &rcgen::PKCS_ED25519,
        )
        .map_err(TlsError::generation)?;
        let mut params = certificate_params(names)?;
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&[0x54, 0x49, 0x44, 0x45]));
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2049, 12, 31);
        Self::self_signed(&params, &pair)
    }

    fn self_signed(
        params: &rcgen::CertificateParams,
        pair: &rcgen::KeyPair,
    ) -> Result<Self, TlsError> {
        let certificate = params.self_signed(pair).map_err(TlsError::generation)?;
        let chain = vec![certificate.der().clone()];
        let spki =
            subject_public_key_info(&chain).map_err(|problem| TlsError::Generation { problem })?;
        let key = PrivatePkcs8KeyDer::from(pair.serialize_der()).into();
        Ok(Self { chain, key, spki })
    }

    /// The chain, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The leaf as PEM text (RFC 7468), for `--ca` of a client or `--cacert` of curl.
    pub fn certificate_pem(&self) -> String {
        let mut pem = String::new();
        for certificate in &self.chain {
            pem.push_str("-----BEGIN CERTIFICATE-----\n");
            let text = base64(certificate);
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (line, tail) = rest.split_at(rest.len().min(64));
                pem.push_str(line);
                pem.push('\n');
                rest = tail;
            }
            pem.push_str("-----END CERTIFICATE-----\n");
        }
        pem
    }

    /// Writes [`ServerTls::certificate_pem`] to `path`. The key is never written.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn write_certificate(&self, path: &Path) -> Result<(), TlsError> {
        fs::write(path, self.certificate_pem()).map_err(|error| TlsError::Unwritable {
            path: path.into(),
            error,
        })
    }

    /// Base64 of the SHA-256 of the leaf's SubjectPublicKeyInfo: what Chromium's
    /// `--ignore-certificate-errors-spki-list` takes.
    pub fn spki_sha256_base64(&self) -> String {
        base64(ring::digest::digest(&ring::digest::SHA256, &self.spki).as_ref())
    }
}

/// Whom a client believes.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The certificate authorities of the operating system.
    Platform,
    /// The certificates in a PEM file, and no others.
    CaFile(PathBuf),
    /// These certificates, and no others.
    CaDer(Vec<CertificateDer<'static>>),
    /// Anyone. The connection is encrypted, but to whom is unknown.
    Insecure,
}

/// What a handshake may read and remember.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Append the secrets of each connection to this file, in the NSS key log format.
    pub key_log: Option<PathBuf>,
    /// The time certificates are checked against, since the Unix epoch; `None` is the wall clock.
    pub fixed_time: Option<Duration>,
    /// Whether sessions are remembered and resumed.
    pub has_resumption: bool,
}

impl TlsOptions {
    /// For real sockets: the wall clock, resumption on, no key log.
    pub const REAL: Self = Self {
        key_log: None,
        fixed_time: None,
        has_resumption: true,
    };

    /// For virtual time: the clock stands at [`VIRTUAL_NOW`], nothing is remembered between
    /// connections, no key log.
    pub const fn virtual_time() -> Self {
        Self {
            key_log: None,
            fixed_time: Some(VIRTUAL_NOW),
            has_resumption: false,
        }
    }

    /// The same with a key log at `path`, if there is one.
    pub fn with_key_log(mut self, path: Option<&Path>) -> Self {
        self.key_log = path.map(Path::to_path_buf);
        self
    }

    fn time_provider(&self) -> Arc<dyn TimeProvider> {
        match self.fixed_time {
            Some(since_epoch) => Arc::new(FixedTime(UnixTime::since_unix_epoch(since_epoch))),
            None => Arc::new(DefaultTimeProvider),
        }
    }

    fn open_key_log(&self) -> Result<Option<Arc<KeyLogFile>>, TlsError> {
        let Some(path) = &self.key_log else {
            return Ok(None);
        };
        let file = KeyLogFile::append(path).map_err(|error| TlsError::KeyLog {
            path: path.clone(),
            error,
        })?;
        Ok(Some(Arc::new(file)))
    }
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self::REAL
    }
}

/// The server's half of TLS 1.3, offering `alpn` in this order. No 0-RTT.
///
/// # Errors
/// The key cannot sign, or the key log cannot be opened.
pub fn server_config(
    tls: &ServerTls,
    alpn: &[&[u8]],
    options: &TlsOptions,
) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let mut config =
        rustls::ServerConfig::builder_with_details(provider(), options.time_provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::setup)?
            .with_no_client_auth()
            .with_single_cert(tls.chain.clone(), tls.key.clone_key())
            .map_err(TlsError::setup)?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.max_early_data_size = 0;
    if !options.has_resumption {
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    }
    if let Some(key_log) = options.open_key_log()? {
        config.key_log = key_log;
    }
    Ok(Arc::new(config))
}

/// The client's half of TLS 1.3, asking for one of `alpn`. No 0-RTT, no client certificate.
///
/// # Errors
/// The trusted certificates cannot be read or are none, or the key log cannot be opened.
pub fn client_config(
    trust: &Trust,
    alpn: &[&[u8]],
    options: &TlsOptions,
) -> Result<Arc<rustls::ClientConfig>, TlsError> {
    let provider = provider();
    let builder =
        rustls::ClientConfig::builder_with_details(provider.clone(), options.time_provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::setup)?;
    let builder = match trust {
        Trust::Platform => {
            let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
                TlsError::NoPlatformRoots {
                    problem: error.to_string(),
                }
            })?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::CaFile(path) => {
            let roots = root_store(read_certificates(path)?).map_err(|problem| {
                TlsError::BadCertificate {
                    path: path.clone(),
                    problem,
                }
            })?;
            builder.with_root_certificates(roots)
        }
        Trust::CaDer(certificates) => {
            let roots = root_store(certificates.clone())
                .map_err(|problem| TlsError::BadTrustAnchor { problem })?;
            builder.with_root_certificates(roots)
        }
        Trust::Insecure => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnyone { provider })),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.enable_early_data = false;
    if !options.has_resumption {
        config.resumption = rustls::client::Resumption::disabled();
    }
    if let Some(key_log) = options.open_key_log()? {
        config.key_log = key_log;
    }
    Ok(Arc::new(config))
}

/// Wraps a TLS server configuration for quinn-proto.
///
/// # Errors
/// The configuration lacks AES-128-GCM, which protects Initial packets (RFC 9001 section 5.2).
pub fn quic_server_config(
    config: Arc<rustls::ServerConfig>,
) -> Result<Arc<QuicServerConfig>, TlsError> {
    let config = QuicServerConfig::try_from(config).map_err(|error| TlsError::Setup {
        problem: error.to_string(),
    })?;
    Ok(Arc::new(config))
}

/// Wraps a TLS client configuration for quinn-proto.
///
/// # Errors
/// As [`quic_server_config`].
pub fn quic_client_config(
    config: Arc<rustls::ClientConfig>,
) -> Result<Arc<QuicClientConfig>, TlsError> {
    let config = QuicClientConfig::try_from(config).map_err(|error| TlsError::Setup {
        problem: error.to_string(),
    })?;
    Ok(Arc::new(config))
}

/// Why TLS cannot be set up. Each message is one line and names the file or value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write the certificate to {}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file is larger than any PEM file.
    #[error("{} is larger than 1 MiB: not a PEM file of certificates or keys", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file is not PEM text.
    #[error("{} is not valid PEM: {problem}", path.display())]
    BrokenPem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate: expected a PEM section \"BEGIN CERTIFICATE\"", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no private key.
    #[error(
        "{} holds no private key: expected a PEM section \"BEGIN PRIVATE KEY\", \
         \"BEGIN EC PRIVATE KEY\" or \"BEGIN RSA PRIVATE KEY\" (not encrypted)",
        path.display()
    )]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// A certificate cannot be used.
    #[error("the certificate in {} cannot be used: {problem}", path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A private key cannot be used.
    #[error(
        "the private key in {} cannot be used: {problem} (allowed: Ed25519, ECDSA P-256, P-384, RSA)",
        path.display()
    )]
    BadKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A private key that belongs to another certificate.
    #[error(
        "the private key in {} does not belong to the certificate in {}",
        key.display(),
        certificate.display()
    )]
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A name that no certificate can be made for.
    #[error("{name:?} is not a name for a certificate: expected a host name or an IP address")]
    BadName {
        /// The name.
        name: String,
    },
    /// A certificate cannot be generated.
    #[error("cannot generate a certificate: {problem}")]
    Generation {
        /// What is wrong.
        problem: String,
    },
    /// A certificate given in memory cannot be trusted.
    #[error("a trusted certificate cannot be used: {problem}")]
    BadTrustAnchor {
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system has no trusted certificates.
    #[error("no certificate authorities of this system can be used: {problem}; name one with --ca")]
    NoPlatformRoots {
        /// What is wrong.
        problem: String,
    },
    /// The key log cannot be opened.
    #[error("cannot open the key log {}: {error}", path.display())]
    KeyLog {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A configuration that TLS refuses.
    #[error("TLS cannot be set up: {problem}")]
    Setup {
        /// What is wrong.
        problem: String,
    },
}

impl TlsError {
    fn generation(error: rcgen::Error) -> Self {
        Self::Generation {
            problem: error.to_string(),
        }
    }

    fn setup(error: rustls::Error) -> Self {
        Self::Setup {
            problem: error.to_string(),
        }
    }
}

/// A clock that stands still.
#[derive(Debug)]
struct FixedTime(UnixTime);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

/// A verifier that accepts every certificate, but still checks that the peer holds its key.
#[derive(Debug)]
struct TrustAnyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A key log in the NSS format, readable by its owner only. One line is one write, so several
/// processes may append to the same file.
struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    fn append(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self(Mutex::new(options.open(path)?)))
    }
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        if let Ok(mut file) = self.0.lock() {
            // A full disk must not end a connection; the log then simply lacks this line.
            let _ = file.write_all(line.as_bytes());
        }
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogFile")
    }
}

/// The seed of the key of [`ServerTls::generate_for_tests`]: no secret.
const TEST_KEY_SEED: [u8; 32] = *b"tidegate test key, not a secret.";

/// A PKCS#8 version 1 document around an Ed25519 seed (RFC 8410 section 7).
fn ed25519_pkcs8(seed: [u8; 32]) -> Vec<u8> {
    let mut der = vec![
        0x30, 0x2e, // SEQUENCE
        0x02, 0x01, 0x00, // version 0
        0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, // algorithm 1.3.101.112
        0x04, 0x22, 0x04, 0x20, // OCTET STRING in OCTET STRING
    ];
    der.extend_from_slice(&seed);
    der
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificate_params(names: &[String]) -> Result<rcgen::CertificateParams, TlsError> {
    let mut subjects: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    for name in names {
        let host = name.strip_prefix("*.").unwrap_or(name);
        if name.parse::<std::net::IpAddr>().is_err() && DnsName::try_from(host).is_err() {
            return Err(TlsError::BadName { name: name.clone() });
        }
        if !subjects.contains(name) {
            subjects.push(name.clone());
        }
    }
    let mut params = rcgen::CertificateParams::new(subjects).map_err(TlsError::generation)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "tidegate local");
    params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn subject_public_key_info(chain: &[CertificateDer<'static>]) -> Result<Vec<u8>, String> {
    let leaf = chain.first().ok_or("the chain is empty")?;
    let leaf = ParsedCertificate::try_from(leaf).map_err(|error| error.to_string())?;
    Ok(leaf.subject_public_key_info().to_vec())
}

fn root_store(certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is none".into());
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read_pem(path)?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::BrokenPem {
            path: path.into(),
            problem: error.to_string(),
        })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { path: path.into() });
    }
    Ok(certificates)
}

fn read_pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::Unreadable {
        path: path.into(),
        error,
    };
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_PEM_BYTES + 1).read_to_end(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_PEM_BYTES {
        return Err(TlsError::TooLarge { path: path.into() });
    }
    Ok(text)
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for position in 0..4 {
            if position <= group.len() {
                let index = (word >> (18 - 6 * position)) & 0x3f;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 0xf] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('?'));
        }
    }
    text
}

#[cfg(test)]
mod tests;
