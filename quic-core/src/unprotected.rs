//! A session that protects nothing: the packets, sizes and steps of a TLS handshake, without cryptography. For virtual
//! time only, where nobody listens and sealing and opening packets is an eighth of the work.
//!
//! ```text
//!   client                                 server                      as long as in TLS
//!     |-- Hello: parameters, ALPN, name ----->|    Initial keys        ClientHello
//!     |<------------------------- Hello ------|    Handshake keys      ServerHello
//!     |<-- Flight: parameters, ALPN ----------|                        EncryptedExtensions ... Finished
//!     |-- Finished -------------------------->|    1-RTT keys          Finished
//! ```
//!
//! Follows RFC 9001 where it shows from outside: three sets of keys (section 2.1), a tag of 16 bytes (section 5.3), the
//! limits of AES-GCM (section 6.6), key updates (section 6). The tag is a checksum over the key's number, the packet number,
//! header and payload, so a packet that was damaged, or opened with another key, is refused as with an AEAD. Headers are
//! not masked (section 5.4): there is nobody to hide them from.
//!
//! The messages have the lengths of those that [`crate::tls`] makes with [`ServerTls::generate_for_tests`], so both kinds
//! of session send datagrams of the same sizes at the same instants.
//!
//! [`ServerTls::generate_for_tests`]: crate::tls::ServerTls::generate_for_tests

use std::{any::Any, collections::VecDeque, sync::Arc};

use bytes::BytesMut;
use quinn_proto::{
    ConnectError, ConnectionId, Side, TransportError, TransportErrorCode,
    crypto::{
        self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
        UnsupportedVersion, rustls::HandshakeData,
    },
    transport_parameters::TransportParameters,
};

/// The version of RFC 9000, and the only one this session speaks.
const QUIC_V1: u32 = 1;

/// The length of a ClientHello without its three variable parts, as rustls writes it.
const CLIENT_HELLO: usize = 181;
/// The length of a ServerHello without a session id, on X25519 (RFC 8446 section 4.1.3).
const SERVER_HELLO: usize = 90;
/// The length of everything from EncryptedExtensions to Finished without parameters and ALPN: the certificate of
/// [`crate::tls::ServerTls::generate_for_tests`] and its Ed25519 signature.
const SERVER_FLIGHT: usize = 474;
/// The length of Finished with SHA-384 (RFC 8446 section 4.4.4).
const FINISHED: usize = 52;

/// The TLS alerts that this handshake can end with (RFC 8446 section 6).
const DECODE_ERROR: u8 = 50;
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The accepting side.
pub(crate) struct Server {
    pub(crate) alpn: Vec<Vec<u8>>,
}

impl crypto::ServerConfig for Server {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if version != QUIC_V1 {
            return Err(UnsupportedVersion);
        }
        Ok(initial_keys(dst_cid, Side::Server))
    }

    fn retry_tag(&self, _: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; TAG] {
        checksum(RETRY_KEY, 0, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        let offered = self.alpn.clone();
        Box::new(Unprotected::new(Side::Server, offered, "", parameters))
    }
}

/// The opening side.
pub(crate) struct Client {
    pub(crate) alpn: Vec<Vec<u8>>,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        if version != QUIC_V1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let offered = self.alpn.clone();
        let mut session = Unprotected::new(Side::Client, offered, server_name, parameters);
        session.say_hello();
        Ok(Box::new(session))
    }
}

/// One handshake, and the keys after it.
struct Unprotected {
    side: Side,
    /// What this side speaks, the best first.
    offered: Vec<Vec<u8>>,
    server_name: String,
    own_parameters: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
    protocol: Option<Vec<u8>>,
    /// How many messages came.
    heard: usize,
    /// Handshake bytes that are no whole message yet.
    unread: Vec<u8>,
    /// What is to be written, in order: a message, new keys, or a message that new keys follow.
    steps: VecDeque<Step>,
    is_handshaking: bool,
    /// How often the 1-RTT keys were updated.
    generation: u64,
}

struct Step {
    message: Vec<u8>,
    /// The key's number, in both directions.
    keys: Option<u64>,
}

impl Unprotected {
    fn new(
        side: Side,
        offered: Vec<Vec<u8>>,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Self {
        let mut own_parameters = Vec::new();
        parameters.write(&mut own_parameters);
        Self {
            side,
            offered,
            server_name: server_name.to_owned(),
            own_parameters,
            peer_parameters: None,
            protocol: None,
            heard: 0,
            unread: Vec::new(),
            steps: VecDeque::new(),
            is_handshaking: true,
            generation: 0,
        }
    }

    fn say_hello(&mut self) {
        let mut parts = vec![
            self.own_parameters.clone(),
            self.server_name.clone().into_bytes(),
        ];
        parts.extend(self.offered.iter().cloned());
        let message = message(Kind::ClientHello, &parts, CLIENT_HELLO);
        self.steps.push_back(Step {
            message,
            keys: None,
        });
    }

    /// Takes one whole message; says whether the protocol is known now.
    fn on_message(&mut self, kind: u8, body: &[u8]) -> Result<bool, TransportError> {
        let order = match self.side {
            Side::Client => [Kind::ServerHello, Kind::ServerFlight],
            Side::Server => [Kind::ClientHello, Kind::Finished],
        };
        let expected = order.get(self.heard);
        self.heard += 1;
        let mut body = body;
        match expected.filter(|expected| **expected as u8 == kind) {
            Some(Kind::ClientHello) => {
                self.peer_parameters = Some(part(&mut body)?.to_vec());
                self.server_name = String::from_utf8_lossy(part(&mut body)?).into_owned();
                let mut wanted = Vec::new();
                while let Ok(name) = part(&mut body) {
                    wanted.push(name);
                }
                let common = self
                    .offered
                    .iter()
                    .find(|name| wanted.contains(&name.as_slice()));
                let Some(common) = common.cloned() else {
                    return Err(alert(NO_APPLICATION_PROTOCOL, "no common protocol"));
                };
                let parts = [self.own_parameters.clone(), common.clone()];
                self.protocol = Some(common);
                self.steps.extend([
                    Step {
                        message: message(Kind::ServerHello, &[], SERVER_HELLO),
                        keys: Some(HANDSHAKE_KEY),
                    },
                    Step {
                        message: message(Kind::ServerFlight, &parts, SERVER_FLIGHT),
                        keys: Some(FIRST_DATA_KEY),
                    },
                ]);
                Ok(true)
            }
            Some(Kind::ServerHello) => {
                self.steps.push_back(Step {
                    message: Vec::new(),
                    keys: Some(HANDSHAKE_KEY),
                });
                Ok(false)
            }
            Some(Kind::ServerFlight) => {
                self.peer_parameters = Some(part(&mut body)?.to_vec());
                self.protocol = Some(part(&mut body)?.to_vec());
                self.is_handshaking = false;
                self.steps.push_back(Step {
                    message: message(Kind::Finished, &[], FINISHED),
                    keys: Some(FIRST_DATA_KEY),
                });
                Ok(true)
            }
            Some(Kind::Finished) => {
                self.is_handshaking = false;
                Ok(false)
            }
            None => Err(alert(DECODE_ERROR, "unexpected handshake message")),
        }
    }
}

impl Session for Unprotected {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let protocol = self.protocol.clone()?;
        let is_server = self.side == Side::Server;
        Some(Box::new(HandshakeData {
            protocol: Some(protocol),
            server_name: is_server.then(|| self.server_name.clone()),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        (self.side == Side::Client).then_some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.is_handshaking
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend_from_slice(buf);
        let mut has_data = false;
        let unread = std::mem::take(&mut self.unread);
        let mut rest = unread.as_slice();
        while let [kind, high, middle, low, tail @ ..] = rest {
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            let Some((body, next)) = tail.split_at_checked(length) else {
                break;
            };
            has_data |= self.on_message(*kind, body)?;
            rest = next;
        }
        self.unread = rest.to_vec();
        Ok(has_data)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(bytes) = &self.peer_parameters else {
            return Ok(None);
        };
        let parameters = TransportParameters::read(self.side, &mut bytes.as_slice())?;
        Ok(Some(parameters))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let step = self.steps.pop_front()?;
        buf.extend_from_slice(&step.message);
        step.keys.map(|number| keys(number, self.side))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(keys(FIRST_DATA_KEY + self.generation, self.side).packet)
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((token, tag)) = payload.split_last_chunk::<TAG>() else {
            return false;
        };
        let packet = [header, token].concat();
        checksum(RETRY_KEY, 0, orig_dst_cid, &packet) == *tag
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // There is no secret to derive anything from.
        Err(ExportKeyingMaterialError)
    }
}

// ---------------------------------------------------------------------------------------------
// Messages: one byte of kind, three of length, as in TLS (RFC 8446 section 4)

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    ClientHello = 1,
    ServerHello = 2,
    ServerFlight = 8,
    Finished = 20,
}

/// A message of `fixed` bytes and the bytes of the parts.
fn message(kind: Kind, parts: &[Vec<u8>], fixed: usize) -> Vec<u8> {
    let variable: usize = parts.iter().map(Vec::len).sum();
    let length = (fixed + variable).saturating_sub(4);
    let mut out = vec![kind as u8];
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()[1..]);
    for part in parts {
        // Transport parameters are the longest, at a few hundred bytes.
        out.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(part);
    }
    out.resize(length + 4, 0);
    out
}

/// Takes the next part; the padding behind the last one is none.
fn part<'a>(body: &mut &'a [u8]) -> Result<&'a [u8], TransportError> {
    let split = || {
        let (length, rest) = body.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        rest.split_at_checked(length).filter(|_| length > 0)
    };
    let (part, rest) = split().ok_or_else(|| alert(DECODE_ERROR, "cut handshake message"))?;
    *body = rest;
    Ok(part)
}

fn alert(code: u8, reason: &str) -> TransportError {
    TransportError {
        code: TransportErrorCode::crypto(code),
        frame: None,
        reason: reason.to_owned(),
    }
}

// ---------------------------------------------------------------------------------------------
// Keys: numbers that the checksum begins with

const TAG: usize = 16;
const RETRY_KEY: u64 = 0;
const HANDSHAKE_KEY: u64 = 1;
/// Each update takes the next.
const FIRST_DATA_KEY: u64 = 2;
/// Where the numbers of Initial keys begin.
const INITIAL_KEYS: u64 = 1 << 63;

fn initial_keys(dst_cid: &ConnectionId, side: Side) -> Keys {
    let (number, _) = sum(RETRY_KEY, 0, dst_cid, &[]);
    keys(number | INITIAL_KEYS, side)
}

fn keys(number: u64, side: Side) -> Keys {
    // What the client seals and what the server seals differ in the lowest bit.
    let local = Key(number << 1 | u64::from(side == Side::Server));
    let remote = Key(local.0 ^ 1);
    Keys {
        header: KeyPair {
            local: Box::new(NoMask),
            remote: Box::new(NoMask),
        },
        packet: KeyPair {
            local: Box::new(local),
            remote: Box::new(remote),
        },
    }
}

struct Key(u64);

impl PacketKey for Key {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, rest) = buf.split_at_mut(header_len);
        if let Some((payload, tag)) = rest.split_last_chunk_mut::<TAG>() {
            *tag = checksum(self.0, packet, header, payload);
        }
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let (plain, tag) = payload.split_last_chunk::<TAG>().ok_or(CryptoError)?;
        if checksum(self.0, packet, header, plain) != *tag {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    /// RFC 9001 section 6.6: 2^23 packets for AES-GCM, so that keys are updated when TLS updates them.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// RFC 9001 section 6.6: 2^52 for AES-GCM.
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

struct NoMask;

impl HeaderKey for NoMask {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// As with AES (RFC 9001 section 5.4.3): it decides how short a packet may be.
    fn sample_size(&self) -> usize {
        16
    }
}

fn checksum(key: u64, packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG] {
    let (low, high) = sum(key, packet, header, payload);
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&low.to_le_bytes());
    tag[8..].copy_from_slice(&high.to_le_bytes());
    tag
}

/// Four lanes of multiply and rotate, eight bytes each at a time. Every step is a bijection of the lane and of the word, so
/// damage inside one word always changes the sum; wider damage goes unseen once in 2^64.
fn sum(key: u64, packet: u64, header: &[u8], payload: &[u8]) -> (u64, u64) {
    let mut lanes = [
        key,
        packet,
        header.len() as u64,
        (payload.len() as u64) << 32,
    ];
    for bytes in [header, payload] {
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = step(*lane, u64::from_le_bytes(*word));
            }
        }
        let (words, rest) = rest.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        lanes[3] = step(lanes[3], u64::from_le_bytes(last));
    }
    let low = lanes.into_iter().fold(0, step);
    (low, step(low, 1))
}

fn step(lane: u64, word: u64) -> u64 {
    // An odd factor with as many ones as zeros: the golden ratio times 2^64.
    (lane ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

#[cfg(test)]
mod tests {
    use quinn_proto::crypto::{ClientConfig as _, ServerConfig as _};

    use super::*;
    use crate::tls::{
        ALPN_H3, ServerTls, TlsOptions, Trust, client_config, quic_client_config,
        quic_server_config, server_config,
    };

    /// What the sides write in turn until both are silent: who, how many bytes, and whether new keys follow.
    fn handshake(
        mut client: Box<dyn Session>,
        mut server: Box<dyn Session>,
    ) -> Vec<(&'static str, usize, bool)> {
        let mut steps = Vec::new();
        loop {
            let before = steps.len();
            for is_client in [true, false] {
                let (from, to, name) = match is_client {
                    true => (&mut client, &mut server, "client"),
                    false => (&mut server, &mut client, "server"),
                };
                let mut out = Vec::new();
                let has_keys = from.write_handshake(&mut out).is_some();
                if out.is_empty() && !has_keys {
                    continue;
                }
                steps.push((name, out.len(), has_keys));
                // As a receiver may get it: in pieces.
                for piece in out.chunks(100) {
                    to.read_handshake(piece).expect("a good message");
                }
            }
            if steps.len() == before {
                assert!(!client.is_handshaking() && !server.is_handshaking());
                return steps;
            }
        }
    }

    fn parameters() -> TransportParameters {
        TransportParameters::read(Side::Client, &mut [0x01, 0x02, 0x40, 0x64].as_slice())
            .expect("an idle timeout of 100 ms")
    }

    fn unprotected(offered: &[u8], wanted: &[u8]) -> (Box<dyn Session>, Box<dyn Session>) {
        let client = Arc::new(Client {
            alpn: vec![wanted.to_vec()],
        });
        let server = Arc::new(Server {
            alpn: vec![offered.to_vec()],
        });
        (
            client
                .start_session(QUIC_V1, "localhost", &parameters())
                .expect("version 1"),
            server.start_session(QUIC_V1, &parameters()),
        )
    }

    #[test]
    fn its_messages_are_as_long_as_those_of_tls() {
        let options = TlsOptions::virtual_time();
        let identity = ServerTls::generate_for_tests(&[]).expect("a certificate");
        let trust = Trust::CaDer(identity.chain().to_vec());
        for alpn in [ALPN_H3, b"tidegate"] {
            let client = client_config(&trust, &[alpn], &options).expect("trusted");
            let client = quic_client_config(client).expect("its suite is there");
            let server = server_config(&identity, &[alpn], &options).expect("a key");
            let server = quic_server_config(server).expect("its suite is there");
            let tls = handshake(
                Arc::clone(&client)
                    .start_session(QUIC_V1, "localhost", &parameters())
                    .expect("version 1"),
                Arc::clone(&server).start_session(QUIC_V1, &parameters()),
            );
            let (client, server) = unprotected(alpn, alpn);
            assert_eq!(handshake(client, server), tls);
        }
    }

    #[test]
    fn parameters_protocol_and_name_arrive() {
        let (mut client, mut server) = unprotected(b"h3", b"h3");
        let mut out = Vec::new();
        client.write_handshake(&mut out);
        assert!(server.read_handshake(&out).expect("a hello"));
        let told = server.transport_parameters().expect("they parse");
        assert_eq!(told, Some(parameters()));
        let data = server.handshake_data().expect("after the hello");
        let data = data.downcast::<HandshakeData>().expect("of that type");
        assert_eq!(data.protocol.as_deref(), Some(b"h3".as_slice()));
        assert_eq!(data.server_name.as_deref(), Some("localhost"));
    }

    #[test]
    fn what_is_no_handshake_is_refused() {
        let (mut client, mut server) = unprotected(b"h3", b"other");
        let mut out = Vec::new();
        client.write_handshake(&mut out);
        let error = server.read_handshake(&out).expect_err("no common protocol");
        assert_eq!(
            error.code,
            TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL)
        );
        for message in [
            [Kind::Finished as u8, 0, 0, 0].as_slice(),
            &[Kind::ClientHello as u8, 0, 0, 3, 0, 9, 1],
            &[Kind::ClientHello as u8, 0, 0, 2, 0, 0],
        ] {
            let (_, mut server) = unprotected(b"h3", b"h3");
            let error = server.read_handshake(message).expect_err("malformed");
            assert_eq!(error.code, TransportErrorCode::crypto(DECODE_ERROR));
        }
        let (mut client, _) = unprotected(b"h3", b"h3");
        assert!(
            client
                .read_handshake(&[Kind::Finished as u8, 0, 0, 0])
                .is_err()
        );
    }

    #[test]
    fn a_packet_that_is_not_what_was_sealed_is_refused() {
        let client = keys(FIRST_DATA_KEY, Side::Client).packet;
        let server = keys(FIRST_DATA_KEY, Side::Server).packet;
        let header = 9;
        for size in [header + TAG, 40, 77, 1_350] {
            let mut sealed: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
            client.local.encrypt(7, &mut sealed, header);
            let open = |key: &dyn PacketKey, number, packet: &[u8]| {
                let mut payload = BytesMut::from(&packet[header..]);
                let result = key.decrypt(number, &packet[..header], &mut payload);
                result.is_ok().then_some(payload.len())
            };
            let plain = size - header - TAG;
            assert_eq!(open(&*server.remote, 7, &sealed), Some(plain));
            assert_eq!(open(&*server.remote, 8, &sealed), None, "another number");
            assert_eq!(open(&*server.local, 7, &sealed), None, "another direction");
            let next = keys(FIRST_DATA_KEY + 1, Side::Server).packet;
            assert_eq!(open(&*next.remote, 7, &sealed), None, "another phase");
            for bit in 0..size * 8 {
                sealed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&*server.remote, 7, &sealed), None, "bit {bit}");
                sealed[bit / 8] ^= 1 << (bit % 8);
            }
        }
        let mut short = BytesMut::from(&[0; TAG - 1][..]);
        assert!(server.remote.decrypt(0, &[], &mut short).is_err());
    }

    #[test]
    fn a_retry_is_checked_against_what_it_answers() {
        let server = Server { alpn: Vec::new() };
        let (client, _) = unprotected(b"h3", b"h3");
        let id = ConnectionId::new(&[1, 2, 3]);
        let (header, token) = (b"header".as_slice(), b"token".as_slice());
        let tag = server.retry_tag(QUIC_V1, &id, &[header, token].concat());
        let payload = [token, &tag].concat();
        assert!(client.is_valid_retry(&id, header, &payload));
        assert!(!client.is_valid_retry(&ConnectionId::new(&[1, 2, 4]), header, &payload));
        assert!(!client.is_valid_retry(&id, header, &tag[1..]));
    }
}
