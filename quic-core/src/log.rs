//! Turns what the transport saw into qlog events. Exists only for connections that are logged.

use std::{
    fs::File,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cc::Transition;
use qlogs::{
    CloseCode, CloseTrigger, ConnectionState, Event, LossTrigger, Multiplier, Owner, PacketType,
    RecoveryParameters, TraceHeader, TransportParameters, Writer,
};
use units::{ByteCount, Timestamp};

use crate::{
    config::LogFactory,
    error::ConnectionError,
    parameters::Parameters,
    tap::{Collected, ReceivedPacket, SentPacket, Space},
};

/// Where a log goes: anything that takes bytes.
pub type LogSink = Box<dyn Write + Send>;

/// Hears, in one line, why a log could not be begun or is incomplete.
pub type LogProblem = Arc<dyn Fn(&str) + Send + Sync>;

/// One file per connection and side in `directory` ([`qlogs::create_in`]). What goes wrong with a
/// file is told once; the connection goes on.
pub fn log_to_directory(directory: &Path, on_problem: LogProblem) -> LogFactory {
    let directory = directory.to_owned();
    Arc::new(move |header| {
        match qlogs::create_in(&directory, &header.odcid, header.vantage_point) {
            Ok((file, path)) => Some(Box::new(LogFile {
                file,
                path,
                on_problem: on_problem.clone(),
                has_failed: false,
            }) as LogSink),
            Err(error) => {
                on_problem(&format!(
                    "no qlog for a connection in {}: {error}",
                    directory.display()
                ));
                None
            }
        }
    })
}

struct LogFile {
    file: File,
    path: PathBuf,
    on_problem: LogProblem,
    has_failed: bool,
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if !std::mem::replace(&mut self.has_failed, true) {
                (self.on_problem)(&format!(
                    "the qlog {} is incomplete: {error}",
                    self.path.display()
                ));
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The log of one connection.
pub(crate) struct ConnLog {
    writer: Writer<LogSink>,
    state: Option<ConnectionState>,
}

impl ConnLog {
    /// Begins a log; `None`, and a warning, if the sink refuses the header.
    pub(crate) fn new(sink: LogSink, header: &TraceHeader) -> Option<Self> {
        match Writer::new(sink, header) {
            Ok(writer) => Some(Self {
                writer,
                state: None,
            }),
            Err(error) => {
                tracing::warn!(%error, "no qlog for this connection");
                None
            }
        }
    }

    pub(crate) fn write(&mut self, at: Timestamp, event: &Event) {
        self.writer.write(at, event);
    }

    pub(crate) fn started(&mut self, at: Timestamp, local: SocketAddr, remote: SocketAddr) {
        self.write(
            at,
            &Event::ConnectionStarted {
                local,
                remote,
                local_cid: Vec::new(),
                remote_cid: Vec::new(),
            },
        );
        self.connection_state(at, ConnectionState::Attempted);
    }

    pub(crate) fn connection_state(&mut self, at: Timestamp, new: ConnectionState) {
        if self.state == Some(new) {
            return;
        }
        let old = self.state.replace(new);
        self.write(at, &Event::ConnectionStateUpdated { old, new });
    }

    pub(crate) fn closed(&mut self, at: Timestamp, error: &ConnectionError) {
        let (owner, code, trigger) = match *error {
            ConnectionError::TimedOut => (None, CloseCode::None, CloseTrigger::IdleTimeout),
            ConnectionError::Reset => (
                Some(Owner::Remote),
                CloseCode::None,
                CloseTrigger::StatelessReset,
            ),
            ConnectionError::VersionMismatch => {
                (None, CloseCode::None, CloseTrigger::VersionMismatch)
            }
            ConnectionError::ClosedByPeer { code, .. } => (
                Some(Owner::Remote),
                CloseCode::Application(code),
                CloseTrigger::Application,
            ),
            ConnectionError::AbortedByPeer { code, .. } => (
                Some(Owner::Remote),
                CloseCode::Transport(code),
                CloseTrigger::Error,
            ),
            ConnectionError::Transport { code, .. } => (
                Some(Owner::Local),
                CloseCode::Transport(code),
                CloseTrigger::Error,
            ),
            ConnectionError::LocallyClosed { code } => (
                Some(Owner::Local),
                CloseCode::Application(code),
                CloseTrigger::Application,
            ),
            ConnectionError::IdsExhausted => {
                (Some(Owner::Local), CloseCode::None, CloseTrigger::Error)
            }
        };
        self.write(
            at,
            &Event::ConnectionClosed {
                owner,
                code,
                reason: error.reason().to_owned(),
                trigger,
            },
        );
    }

    pub(crate) fn packet_sent(
        &mut self,
        at: Timestamp,
        sent: &SentPacket,
        tapped: &Collected,
        is_mtu_probe: bool,
        is_pto_probe: bool,
    ) {
        self.write(
            at,
            &Event::PacketSent {
                ty: packet_type(sent.space),
                pn: sent.number,
                length: ByteCount::new(u64::from(sent.length)),
                frames: frames(tapped, sent.frames),
                is_mtu_probe,
                is_pto_probe,
            },
        );
    }

    pub(crate) fn packet_received(
        &mut self,
        at: Timestamp,
        received: &ReceivedPacket,
        tapped: &Collected,
    ) {
        self.write(
            at,
            &Event::PacketReceived {
                ty: packet_type(received.space),
                pn: received.number,
                length: ByteCount::new(u64::from(received.length)),
                frames: frames(tapped, received.frames),
            },
        );
    }

    pub(crate) fn packet_lost(
        &mut self,
        at: Timestamp,
        space: Space,
        number: u64,
        trigger: LossTrigger,
    ) {
        self.write(
            at,
            &Event::PacketLost {
                ty: packet_type(space),
                pn: number,
                trigger,
            },
        );
    }

    pub(crate) fn mtu_updated(&mut self, at: Timestamp, old: ByteCount, new: ByteCount) {
        self.write(
            at,
            &Event::MtuUpdated {
                old: Some(old),
                new,
                is_done: false,
            },
        );
    }

    pub(crate) fn initial_state(
        &mut self,
        at: Timestamp,
        state: cc::State,
        parameters: RecoveryParameters,
    ) {
        self.write(at, &Event::RecoveryParametersSet(parameters));
        self.write(
            at,
            &Event::CongestionStateUpdated {
                old: None,
                new: state.as_str(),
                trigger: None,
            },
        );
    }

    pub(crate) fn state_updated(&mut self, at: Timestamp, transition: &Transition) {
        self.write(
            at,
            &Event::CongestionStateUpdated {
                old: Some(transition.from.as_str()),
                new: transition.to.as_str(),
                trigger: Some(transition.trigger.as_str()),
            },
        );
    }

    pub(crate) fn own_parameters(&mut self, at: Timestamp, parameters: &Parameters) {
        self.parameters(at, Owner::Local, parameters);
    }

    pub(crate) fn peer_parameters(&mut self, at: Timestamp, parameters: &Parameters) {
        self.parameters(at, Owner::Remote, parameters);
    }

    fn parameters(&mut self, at: Timestamp, owner: Owner, from: &Parameters) {
        let parameters = Box::new(TransportParameters {
            max_idle_timeout: from.max_idle_timeout_ms.map(Duration::from_millis),
            max_udp_payload_size: from.max_udp_payload_size_bytes,
            ack_delay_exponent: from.ack_delay_exponent,
            max_ack_delay: from.max_ack_delay_ms.map(Duration::from_millis),
            active_connection_id_limit: from.active_connection_id_limit,
            initial_max_data: from.initial_max_data_bytes,
            initial_max_stream_data_bidi_local: from.initial_max_stream_data_bidi_local_bytes,
            initial_max_stream_data_bidi_remote: from.initial_max_stream_data_bidi_remote_bytes,
            initial_max_stream_data_uni: from.initial_max_stream_data_uni_bytes,
            initial_max_streams_bidi: from.initial_max_streams_bidi,
            initial_max_streams_uni: from.initial_max_streams_uni,
            ..TransportParameters::default()
        });
        self.write(at, &Event::ParametersSet { owner, parameters });
    }

    /// Writes out what is buffered; called when nothing more will come.
    pub(crate) fn finish(self) {
        if let Err(error) = self.writer.finish() {
            tracing::warn!(%error, "the qlog of a connection is incomplete");
        }
    }
}

/// The constants the transport works with, for the head of the log.
pub(crate) fn recovery_parameters(
    controller: &dyn cc::Controller,
    max_datagram_size: ByteCount,
    initial_rtt: Duration,
) -> RecoveryParameters {
    RecoveryParameters {
        congestion_control: Some(controller.name()),
        reordering_threshold: Some(crate::sender::PACKET_THRESHOLD),
        time_threshold: Some(Multiplier::from_thousandths(1_125)),
        timer_granularity: Duration::from_millis(1),
        initial_rtt: Some(initial_rtt),
        max_datagram_size: Some(max_datagram_size),
        initial_congestion_window: Some(controller.window()),
        minimum_congestion_window: Some(controller.minimum_window()),
        loss_reduction_factor: None,
        persistent_congestion_threshold: Some(3),
    }
}

fn packet_type(space: Space) -> PacketType {
    match space {
        Space::Initial => PacketType::Initial,
        Space::Handshake => PacketType::Handshake,
        Space::Data => PacketType::OneRtt,
    }
}

fn frames(tapped: &Collected, (from, to): (u32, u32)) -> Vec<qlogs::Frame> {
    usize::try_from(from)
        .ok()
        .zip(usize::try_from(to).ok())
        .and_then(|(from, to)| tapped.frames.get(from..to))
        .map(<[_]>::to_vec)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_full_disk_is_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let mut log = LogFile {
            file: File::options()
                .write(true)
                .open("/dev/full")
                .expect("the device that is always full"),
            path: "traces/ab_server.sqlog".into(),
            on_problem: Arc::new(move |text: &str| {
                heard.lock().expect("unpoisoned").push(text.to_owned());
            }),
            has_failed: false,
        };
        assert!(log.write(b"x").is_err());
        assert!(log.write(b"y").is_err());
        let told = told.lock().expect("unpoisoned");
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("the qlog traces/ab_server.sqlog is incomplete: "));
    }
}
