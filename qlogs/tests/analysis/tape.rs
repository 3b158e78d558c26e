//! Writes the log of a connection as a story.

use std::collections::BTreeMap;
use std::time::Duration;

use qlogs::analyse::{Analysis, analyse};
use qlogs::read::Reader;
use qlogs::{
    ConnectionState, Event, Frame, LossTrigger, Metrics, Owner, PacketType, RecoveryParameters,
    TraceHeader, TransportParameters, VantagePoint, Writer,
};
use units::{ByteCount, Rate, Timestamp};

/// The size of every packet with data, and how much of it is data.
pub(crate) const PACKET: u64 = 1_200;
const DATA: u64 = 1_000;

/// A server's log that is being written. Times are milliseconds and ascend.
pub(crate) struct Tape {
    writer: Writer<Vec<u8>>,
    at: Timestamp,
    next: u64,
    received: u64,
    offset: u64,
    in_flight: BTreeMap<u64, u64>,
    metrics: Metrics,
    state: &'static str,
}

impl Tape {
    /// The handshake is complete at 0; the limits of flow control are those given, in bytes.
    pub(crate) fn new(connection_limit: u64, stream_limit: u64) -> Self {
        let mut tape = Self::before_handshake(connection_limit, stream_limit);
        tape.complete(0);
        tape
    }

    pub(crate) fn before_handshake(connection_limit: u64, stream_limit: u64) -> Self {
        let header = TraceHeader::new(VantagePoint::Server, vec![1, 2]);
        let mut tape = Self {
            writer: Writer::new(Vec::new(), &header).expect("a vector takes all"),
            at: Timestamp::ZERO,
            next: 0,
            received: 0,
            offset: 0,
            in_flight: BTreeMap::new(),
            metrics: Metrics {
                pto_count: Some(0),
                ..Metrics::default()
            },
            state: "slow_start",
        };
        tape.write(&Event::ConnectionStateUpdated {
            old: None,
            new: ConnectionState::Attempted,
        });
        for owner in [Owner::Local, Owner::Remote] {
            tape.write(&Event::ParametersSet {
                owner,
                parameters: Box::new(TransportParameters {
                    initial_max_data: Some(connection_limit),
                    initial_max_stream_data_bidi_local: Some(stream_limit),
                    initial_max_stream_data_bidi_remote: Some(stream_limit),
                    ..TransportParameters::default()
                }),
            });
        }
        tape.write(&Event::RecoveryParametersSet(RecoveryParameters {
            congestion_control: Some("cubic"),
            max_datagram_size: Some(ByteCount::new(PACKET)),
            minimum_congestion_window: Some(ByteCount::new(2 * PACKET)),
            ..RecoveryParameters::default()
        }));
        tape.write(&Event::CongestionStateUpdated {
            old: None,
            new: "slow_start",
            trigger: None,
        });
        tape
    }

    pub(crate) fn write(&mut self, event: &Event) {
        self.writer.write(self.at, event);
    }

    /// From now on it is this instant.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.at = Timestamp::from_millis(ms);
        self
    }

    pub(crate) fn complete(&mut self, ms: u64) {
        self.at(ms).write(&Event::ConnectionStateUpdated {
            old: Some(ConnectionState::Attempted),
            new: ConnectionState::HandshakeComplete,
        });
    }

    fn metrics(&mut self) -> &mut Self {
        let bytes: u64 = self.in_flight.values().sum();
        self.metrics.bytes_in_flight = Some(ByteCount::new(bytes));
        let metrics = Event::MetricsUpdated(self.metrics);
        self.write(&metrics);
        self
    }

    pub(crate) fn window(&mut self, packets: u64) -> &mut Self {
        self.metrics.congestion_window = Some(ByteCount::new(packets * PACKET));
        self.metrics()
    }

    pub(crate) fn pacing(&mut self, rate: Rate) -> &mut Self {
        self.metrics.pacing_rate = Some(rate);
        self.metrics()
    }

    pub(crate) fn timeouts(&mut self, count: u64) -> &mut Self {
        self.metrics.pto_count = Some(count);
        self.metrics()
    }

    pub(crate) fn state(&mut self, new: &'static str, trigger: &'static str) -> &mut Self {
        let old = std::mem::replace(&mut self.state, new);
        self.write(&Event::CongestionStateUpdated {
            old: Some(old),
            new,
            trigger: Some(trigger),
        });
        self
    }

    /// Sends packets with new data on stream 0.
    pub(crate) fn send(&mut self, packets: u64) -> &mut Self {
        for _ in 0..packets {
            let offset = self.offset;
            self.offset += DATA;
            self.send_data(offset, false);
        }
        self.metrics()
    }

    /// Sends a probe with old data.
    pub(crate) fn probe(&mut self) -> &mut Self {
        self.send_data(0, true);
        self
    }

    fn send_data(&mut self, offset: u64, is_pto_probe: bool) {
        let event = Event::PacketSent {
            ty: PacketType::OneRtt,
            pn: self.next,
            length: ByteCount::new(PACKET),
            frames: vec![Frame::Stream {
                stream_id: 0,
                offset,
                length: DATA,
                fin: false,
            }],
            is_mtu_probe: false,
            is_pto_probe,
        };
        self.write(&event);
        self.in_flight.insert(self.next, PACKET);
        self.next += 1;
    }

    pub(crate) fn send_frame(&mut self, frame: Frame) -> &mut Self {
        let event = Event::PacketSent {
            ty: PacketType::OneRtt,
            pn: self.next,
            length: ByteCount::new(40),
            frames: vec![frame],
            is_mtu_probe: false,
            is_pto_probe: false,
        };
        self.write(&event);
        self.in_flight.insert(self.next, 40);
        self.next += 1;
        self.metrics()
    }

    pub(crate) fn receive(&mut self, frames: Vec<Frame>) -> &mut Self {
        let event = Event::PacketReceived {
            ty: PacketType::OneRtt,
            pn: self.received,
            length: ByteCount::new(40),
            frames,
        };
        self.write(&event);
        self.received += 1;
        self
    }

    /// A packet of the peer was lost on its way.
    pub(crate) fn miss(&mut self) -> &mut Self {
        self.received += 1;
        self
    }

    /// Everything in flight is acknowledged.
    pub(crate) fn ack(&mut self) -> &mut Self {
        self.ack_but(0)
    }

    /// Everything in flight is acknowledged but for so many of the newest.
    pub(crate) fn ack_but(&mut self, newest: u64) -> &mut Self {
        let until = self.next - newest;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in self.in_flight.keys().filter(|number| **number < until) {
            match ranges.last_mut() {
                Some((_, high)) if *high + 1 == number => *high = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges.reverse();
        self.in_flight.retain(|number, _| *number >= until);
        self.metrics.pto_count = Some(0);
        self.receive(vec![Frame::Ack {
            ack_delay: Duration::ZERO,
            ranges,
            ecn: None,
        }])
        .metrics()
    }

    /// The oldest packets in flight are declared lost.
    pub(crate) fn lose(&mut self, packets: usize) -> &mut Self {
        let lost: Vec<u64> = self.in_flight.keys().copied().take(packets).collect();
        for number in lost {
            self.in_flight.remove(&number);
            self.write(&Event::PacketLost {
                ty: PacketType::OneRtt,
                pn: number,
                trigger: LossTrigger::ReorderingThreshold,
            });
        }
        self.metrics()
    }

    /// The connection ends at this instant.
    pub(crate) fn end(mut self, ms: u64) -> Vec<u8> {
        self.at(ms).write(&Event::ConnectionStateUpdated {
            old: Some(ConnectionState::HandshakeComplete),
            new: ConnectionState::Closing,
        });
        self.writer.finish().expect("a vector takes all")
    }
}

/// The analysis of a file.
#[track_caller]
pub(crate) fn analysis(file: &[u8]) -> Analysis {
    let analysis = analyse(Reader::new(file).expect("a file"));
    assert_eq!(analysis.fault, None);
    analysis
}
