//! The bug zoo: what real stacks got wrong between the transport and its controller, to prove that a scenario or an oracle
//! notices.
//!
//! Only built with the feature `mutants`. Where [`faults`](crate::faults) are variants of one controller around one trap, a
//! defect here stands between the sender and an intact controller and falsifies what passes, so that it can be had with
//! NewReno as well as with CUBIC. `interop/tests/bug_zoo.rs` says what catches which.
//!
//! | name | what is wrong | found in |
//! |---|---|---|
//! | `first-ack` | the recovery period ends with the first acknowledgement, so each batch of losses of one flight is a cut | zquic PR 175 |
//! | `no-collapse` | persistent congestion is not told to the controller | quiche issue 2680 |
//! | `stamp-kept` | persistent congestion leaves the recovery boundary where it was | xquic PR 939 |
//! | `counter-32` | bytes delivered are counted in 32 bits: from 2^32 on there are no rate samples and no rounds | xquic PR 552 |
//! | `whole-packets` | CUBIC's growth is rounded down to whole datagrams with every acknowledgement | quiche PR 951 |
//! | `never-idle` | whether nothing is in flight is asked after the packet has been counted | quiche PR 1598 |

use units::{ByteCount, Rate, Timestamp};

use crate::controller::Controller;
use crate::cubic::Cubic;
use crate::event::{AckedPacket, FeedbackEvent, LostPacket, SentEvent};
use crate::faults::FaultCounters;
use crate::new_reno::NewReno;
use crate::options::LossBasedOptions;
use crate::rtt::RttEstimator;
use crate::state::{State, Transition};

/// What is wrong.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Defect {
    /// The recovery period ends with the first acknowledgement.
    FirstAck,
    /// Persistent congestion goes unheard.
    NoCollapse,
    /// Persistent congestion leaves the recovery boundary where it was.
    StampKept,
    /// Delivered bytes are counted in 32 bits.
    Counter32,
    /// CUBIC's growth is cut to whole datagrams.
    WholePackets,
    /// The flow never seems idle.
    NeverIdle,
}

impl Defect {
    /// All defects, in the order of the table above.
    pub const ALL: [Self; 6] = [
        Self::FirstAck,
        Self::NoCollapse,
        Self::StampKept,
        Self::Counter32,
        Self::WholePackets,
        Self::NeverIdle,
    ];

    /// Returns the name, which follows that of the controller and a `!`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstAck => "first-ack",
            Self::NoCollapse => "no-collapse",
            Self::StampKept => "stamp-kept",
            Self::Counter32 => "counter-32",
            Self::WholePackets => "whole-packets",
            Self::NeverIdle => "never-idle",
        }
    }
}

/// The intact controller behind a defect, with its default options.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Victim {
    /// NewReno.
    NewReno,
    /// CUBIC.
    Cubic,
}

impl Victim {
    /// Both.
    pub const ALL: [Self; 2] = [Self::NewReno, Self::Cubic];

    /// Returns the controller's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
        }
    }
}

/// Where [`Defect::Counter32`] begins to count, so that it need not be shown with 4.3 GB: 4 MiB before 2^32.
const FIRST_COUNT: u64 = (1 << 32) - (4 << 20);

/// A controller behind a defect.
pub(crate) struct Defective {
    inner: Box<dyn Controller>,
    defect: Defect,
    /// The boundary of [`Defect::StampKept`].
    kept: Option<Timestamp>,
    /// Bytes delivered, for [`Defect::Counter32`].
    delivered: u64,
    acked: Vec<AckedPacket>,
    lost: Vec<LostPacket>,
}

impl Defective {
    pub(crate) fn new(max_datagram_size: ByteCount, defect: Defect, victim: Victim) -> Self {
        let options = LossBasedOptions::DEFAULT;
        let inner: Box<dyn Controller> = match (victim, defect) {
            (Victim::Cubic, Defect::WholePackets) => {
                Box::new(Cubic::with_whole_packets(max_datagram_size))
            }
            (Victim::Cubic, _) => Box::new(Cubic::with_options(max_datagram_size, options)),
            (Victim::NewReno, _) => Box::new(NewReno::with_options(max_datagram_size, options)),
        };
        Self {
            inner,
            defect,
            kept: None,
            delivered: FIRST_COUNT,
            acked: Vec::new(),
            lost: Vec::new(),
        }
    }
}

impl Controller for Defective {
    fn on_sent(&mut self, now: Timestamp, sent: &SentEvent) {
        let was_idle = sent.was_idle && self.defect != Defect::NeverIdle;
        self.inner.on_sent(now, &SentEvent { was_idle, ..*sent });
    }

    fn on_feedback(&mut self, now: Timestamp, event: &FeedbackEvent<'_>) {
        let mut event = *event;
        match self.defect {
            Defect::FirstAck => {
                // What is acknowledged or lost now looks as if it had left after every cut so far.
                self.acked.clear();
                self.acked.extend_from_slice(event.acked);
                self.acked
                    .iter_mut()
                    .for_each(|packet| packet.sent_at = now);
                self.lost.clear();
                self.lost.extend_from_slice(event.lost);
                self.lost.iter_mut().for_each(|packet| packet.sent_at = now);
                event.acked = &self.acked;
                event.lost = &self.lost;
            }
            Defect::NoCollapse => event.is_persistent_congestion = false,
            Defect::StampKept => {
                // What left before the boundary neither grows nor cuts the window. A new cut has a boundary of its own.
                let is_news = |sent_at| self.kept.is_none_or(|kept| sent_at > kept);
                self.acked.clear();
                let acked = event.acked.iter();
                self.acked
                    .extend(acked.filter(|packet| is_news(packet.sent_at)));
                self.lost.clear();
                let lost = event.lost.iter();
                self.lost
                    .extend(lost.filter(|packet| is_news(packet.sent_at)));
                if event.is_persistent_congestion {
                    self.kept = Some(now);
                }
                event.acked = &self.acked;
                event.lost = &self.lost;
            }
            Defect::Counter32 => {
                let acked: ByteCount = event.acked.iter().map(|packet| packet.size).sum();
                self.delivered += acked.as_u64();
                if self.delivered >> 32 > 0 {
                    event.sample = None;
                    event.is_round_start = false;
                }
            }
            Defect::WholePackets | Defect::NeverIdle => {}
        }
        self.inner.on_feedback(now, &event);
    }

    fn on_app_limited(&mut self, now: Timestamp) {
        self.inner.on_app_limited(now);
    }

    fn on_mtu_change(&mut self, now: Timestamp, max_datagram_size: ByteCount) {
        self.inner.on_mtu_change(now, max_datagram_size);
    }

    fn on_pto(&mut self, now: Timestamp) {
        self.inner.on_pto(now);
    }

    fn window(&self) -> ByteCount {
        self.inner.window()
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Rate {
        self.inner.pacing_rate(rtt)
    }

    fn send_quantum(&self, rate: Rate) -> ByteCount {
        self.inner.send_quantum(rate)
    }

    fn ssthresh(&self) -> Option<ByteCount> {
        self.inner.ssthresh()
    }

    fn state(&self) -> State {
        self.inner.state()
    }

    fn take_transition(&mut self) -> Option<Transition> {
        self.inner.take_transition()
    }

    fn minimum_window(&self) -> ByteCount {
        self.inner.minimum_window()
    }

    fn max_datagram_size(&self) -> ByteCount {
        self.inner.max_datagram_size()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            defect: self.defect,
            kept: self.kept,
            delivered: self.delivered,
            acked: Vec::new(),
            lost: Vec::new(),
        })
    }

    fn fault_counters(&self) -> Option<FaultCounters> {
        self.inner.fault_counters()
    }
}
