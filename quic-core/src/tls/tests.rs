//! Certificates, trust and whole handshakes in memory.

use std::error::Error;

use super::*;

type Outcome = Result<(), Box<dyn Error>>;

/// A fresh directory that is removed with its content.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, content)?;
        Ok(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pem_pair(names: &[&str]) -> Result<(String, String), Box<dyn Error>> {
    let pair = rcgen::KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let certificate = rcgen::CertificateParams::new(names)?.self_signed(&pair)?;
    Ok((certificate.pem(), pair.serialize_pem()))
}

use rustls::quic::{ClientConnection, ServerConnection, Version};

struct Played {
    client: ClientConnection,
    server: ServerConnection,
    /// Bytes of each flight, the client's and the server's in turn.
    sizes: Vec<usize>,
}

/// Plays a whole handshake in memory. What is written between two changes of keys is one
/// piece, as QUIC would carry it in one packet number space.
fn handshake(
    client: Arc<rustls::ClientConfig>,
    server: Arc<rustls::ServerConfig>,
    name: &str,
) -> Result<Played, rustls::Error> {
    let name = ServerName::try_from(name.to_owned())
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut client = ClientConnection::new(client, Version::V1, name, b"c".to_vec())?;
    let mut server = ServerConnection::new(server, Version::V1, b"s".to_vec())?;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(flight(
            |bytes| client.write_hs(bytes),
            |bytes| server.read_hs(bytes),
        )?);
        sizes.push(flight(
            |bytes| server.write_hs(bytes),
            |bytes| client.read_hs(bytes),
        )?);
    }
    Ok(Played {
        client,
        server,
        sizes,
    })
}

fn flight(
    mut write: impl FnMut(&mut Vec<u8>) -> Option<rustls::quic::KeyChange>,
    mut read: impl FnMut(&[u8]) -> Result<(), rustls::Error>,
) -> Result<usize, rustls::Error> {
    let mut total = 0;
    loop {
        let mut piece = Vec::new();
        let is_last = write(&mut piece).is_none();
        total += piece.len();
        read(&piece)?;
        if is_last && piece.is_empty() {
            return Ok(total);
        }
    }
}

#[test]
fn a_generated_certificate_is_trusted_through_its_file() -> Outcome {
    let dir = Dir::new("trusted")?;
    for kind in [KeyKind::Ed25519, KeyKind::EcdsaP256] {
        let tls = ServerTls::generate(&["files.example".into(), "10.1.2.3".into()], kind)?;
        let ca = dir.0.join("ca.pem");
        tls.write_certificate(&ca)?;
        let server = server_config(&tls, &[ALPN_H3], &TlsOptions::REAL)?;
        let trust = Trust::CaFile(ca);
        let client = client_config(&trust, &[ALPN_H3], &TlsOptions::REAL)?;
        for name in ["localhost", "127.0.0.1", "::1", "files.example", "10.1.2.3"] {
            let played = handshake(client.clone(), server.clone(), name)?;
            assert!(!played.client.is_handshaking(), "{name}");
            assert!(!played.server.is_handshaking(), "{name}");
            assert_eq!(played.client.alpn_protocol(), Some(ALPN_H3), "{name}");
        }
        let refused = handshake(client, server, "other.example").err();
        assert!(
            matches!(refused, Some(rustls::Error::InvalidCertificate(_))),
            "a name outside the certificate: {refused:?}"
        );
    }
    Ok(())
}

#[test]
fn a_stranger_is_refused_unless_anyone_is_trusted() -> Outcome {
    let stranger = ServerTls::generate(&[], KeyKind::EcdsaP256)?;
    let friend = ServerTls::generate(&[], KeyKind::EcdsaP256)?;
    let server = server_config(&stranger, &[ALPN_H3], &TlsOptions::REAL)?;
    let trust = Trust::CaDer(friend.chain().to_vec());
    let strict = client_config(&trust, &[ALPN_H3], &TlsOptions::REAL)?;
    let refused = handshake(strict, server.clone(), "localhost").err();
    assert!(
        matches!(refused, Some(rustls::Error::InvalidCertificate(_))),
        "{refused:?}"
    );
    let lax = client_config(&Trust::Insecure, &[ALPN_H3], &TlsOptions::REAL)?;
    let played = handshake(lax, server, "unheard.example")?;
    assert!(!played.client.is_handshaking());
    Ok(())
}

#[test]
fn protocols_that_do_not_match_end_the_handshake() -> Outcome {
    let tls = ServerTls::generate_for_tests(&[])?;
    let server = server_config(&tls, &[ALPN_H3], &TlsOptions::virtual_time())?;
    let trust = Trust::CaDer(tls.chain().to_vec());
    let client = client_config(&trust, &[b"hq-interop"], &TlsOptions::virtual_time())?;
    let refused = handshake(client, server, "localhost").err();
    assert!(
        matches!(refused, Some(rustls::Error::NoApplicationProtocol)),
        "{refused:?}"
    );
    Ok(())
}

#[test]
fn the_test_certificate_and_the_sizes_of_its_handshake_never_vary() -> Outcome {
    let (one, two) = (
        ServerTls::generate_for_tests(&[])?,
        ServerTls::generate_for_tests(&[])?,
    );
    assert_eq!(one.chain(), two.chain());
    assert_eq!(one.spki_sha256_base64(), two.spki_sha256_base64());
    let sizes = |tls: &ServerTls| {
        let options = TlsOptions::virtual_time();
        let server = server_config(tls, &[ALPN_H3], &options)?;
        let client = client_config(&Trust::CaDer(tls.chain().to_vec()), &[ALPN_H3], &options)?;
        let played = handshake(client, server, "localhost")?;
        Ok::<_, Box<dyn Error>>(played.sizes)
    };
    let first = sizes(&one)?;
    for _ in 0..20 {
        assert_eq!(sizes(&two)?, first);
    }
    Ok(())
}

#[test]
fn virtual_time_sends_no_ticket_and_real_time_does() -> Outcome {
    let tls = ServerTls::generate_for_tests(&[])?;
    let sent = |options: &TlsOptions| {
        let server = server_config(&tls, &[ALPN_H3], options)?;
        let client = client_config(&Trust::Insecure, &[ALPN_H3], options)?;
        // The server's second flight is its tickets.
        let played = handshake(client, server, "localhost")?;
        Ok::<_, Box<dyn Error>>(played.sizes.get(3).copied().unwrap_or(0))
    };
    assert_eq!(sent(&TlsOptions::virtual_time())?, 0);
    assert!(sent(&TlsOptions::REAL)? > 0);
    Ok(())
}

#[test]
fn a_certificate_is_judged_by_the_given_clock() -> Outcome {
    let made_at = Duration::from_secs(1_000_000_000);
    let tls = ServerTls::generate_at(&[], KeyKind::Ed25519, made_at)?;
    let trust = Trust::CaDer(tls.chain().to_vec());
    let day = Duration::from_secs(86_400);
    for (now, is_valid) in [
        (made_at, true),
        (made_at - day + Duration::from_secs(1), true),
        (made_at - 2 * day, false),
        (made_at + 12 * day, true),
        (made_at + 14 * day, false),
    ] {
        let options = TlsOptions {
            fixed_time: Some(now),
            ..TlsOptions::virtual_time()
        };
        let server = server_config(&tls, &[ALPN_H3], &options)?;
        let client = client_config(&trust, &[ALPN_H3], &options)?;
        let outcome = handshake(client, server, "localhost");
        assert_eq!(outcome.is_ok(), is_valid, "at {now:?}: {:?}", outcome.err());
    }
    Ok(())
}

#[test]
fn pem_files_are_read_and_each_fault_names_its_file() -> Outcome {
    let dir = Dir::new("faults")?;
    let (cert_pem, key_pem) = pem_pair(&["a.example"])?;
    let (_, other_key_pem) = pem_pair(&["b.example"])?;
    let cert = dir.file("cert.pem", &cert_pem)?;
    let key = dir.file("key.pem", &key_pem)?;
    let both = dir.file("both.pem", &format!("{cert_pem}{key_pem}"))?;
    let other = dir.file("other.pem", &other_key_pem)?;
    let empty = dir.file("empty.pem", "nothing here\n")?;
    let broken = dir.file("broken.pem", "-----BEGIN CERTIFICATE-----\n!!\n")?;
    let junk = dir.file(
        "junk.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )?;
    let junk_key = dir.file(
        "junk-key.pem",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    )?;
    let missing = dir.0.join("missing.pem");
    let large = dir.file("large.pem", &"x".repeat(1024 * 1024 + 1))?;

    let tls = ServerTls::from_pem_files(&cert, &key)?;
    assert_eq!(
        tls.certificate_pem().replace("\r\n", "\n"),
        cert_pem.replace("\r\n", "\n")
    );
    ServerTls::from_pem_files(&both, &both)?;

    for (cert, key, culprit, words) in [
        (&missing, &key, &missing, "cannot read"),
        (&cert, &missing, &missing, "cannot read"),
        (&empty, &key, &empty, "holds no certificate"),
        (&cert, &empty, &empty, "holds no private key"),
        (&cert, &cert, &cert, "holds no private key"),
        (&broken, &key, &broken, "not valid PEM"),
        (&junk, &key, &junk, "cannot be used"),
        (&cert, &junk_key, &junk_key, "cannot be used"),
        (&cert, &other, &other, "does not belong"),
        (&large, &key, &large, "larger than 1 MiB"),
        (&dir.0, &key, &dir.0, "cannot read"),
    ] {
        let error = ServerTls::from_pem_files(cert, key)
            .err()
            .ok_or("accepted")?
            .to_string();
        assert!(error.contains(words), "{error:?} lacks {words:?}");
        assert!(
            error.contains(&*culprit.to_string_lossy()),
            "{error:?} lacks the file"
        );
        assert!(!error.contains('\n'), "{error:?} is more than one line");
    }
    Ok(())
}

#[test]
fn a_trust_file_without_certificates_is_refused() -> Outcome {
    let dir = Dir::new("trust")?;
    let empty = dir.file("empty.pem", "")?;
    let error = client_config(&Trust::CaFile(empty.clone()), &[ALPN_H3], &TlsOptions::REAL)
        .err()
        .ok_or("accepted")?
        .to_string();
    assert!(error.contains("holds no certificate"), "{error}");
    assert!(error.contains(&*empty.to_string_lossy()), "{error}");
    let error = client_config(&Trust::CaDer(vec![]), &[ALPN_H3], &TlsOptions::REAL)
        .err()
        .ok_or("accepted")?
        .to_string();
    assert!(error.contains("there is none"), "{error}");
    Ok(())
}

#[test]
fn a_name_that_is_no_host_name_is_refused() -> Outcome {
    for name in ["", "a b", "-x.example", "ex\u{e9}mple", "*."] {
        let error = ServerTls::generate(&[name.into()], KeyKind::Ed25519)
            .err()
            .ok_or("accepted")?;
        assert!(
            matches!(error, TlsError::BadName { .. }),
            "{name:?}: {error}"
        );
    }
    ServerTls::generate(&["*.files.example".into()], KeyKind::Ed25519)?;
    Ok(())
}

#[test]
fn the_key_log_is_private_appended_and_holds_both_directions() -> Outcome {
    let dir = Dir::new("keylog")?;
    let log = dir.file("keys.log", "# earlier\n")?;
    fs::remove_file(&log)?;
    let tls = ServerTls::generate_for_tests(&[])?;
    let options = TlsOptions::virtual_time().with_key_log(Some(&log));
    let server = server_config(&tls, &[ALPN_H3], &TlsOptions::virtual_time())?;
    for run in 1..=2 {
        let client = client_config(&Trust::Insecure, &[ALPN_H3], &options)?;
        handshake(client, server.clone(), "localhost")?;
        let text = fs::read_to_string(&log)?;
        for label in ["CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "] {
            assert_eq!(text.matches(label).count(), run, "{label} in {text}");
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&log)?.permissions().mode() & 0o777, 0o600);
    }
    let options = TlsOptions::REAL.with_key_log(Some(&dir.0));
    let error = server_config(&tls, &[ALPN_H3], &options)
        .err()
        .ok_or("accepted")?;
    assert!(
        error.to_string().contains("cannot open the key log"),
        "{error}"
    );
    Ok(())
}

#[test]
fn configurations_fit_quinn_proto() -> Outcome {
    let tls = ServerTls::generate_for_tests(&[])?;
    let options = TlsOptions::virtual_time();
    quic_server_config(server_config(&tls, &[ALPN_H3], &options)?)?;
    quic_client_config(client_config(&Trust::Insecure, &[ALPN_H3], &options)?)?;
    Ok(())
}

#[test]
fn base64_agrees_with_the_vectors_of_rfc_4648() {
    for (plain, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(plain.as_bytes()), text);
    }
    assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
}
