//! Scenarios: what the link does, what is downloaded, and what is expected of it.
//!
//! A scenario is a TOML file with units in the text. [`Scenario::parse`] turns it into plain data
//! in which every quantity is resolved (a queue of "2 BDP" is a number of bytes, a phase is a list
//! of changes with their instants), or says in one line what is wrong with it.
//! `interop/scenarios/README.md` is the reference of the format; read
//! `interop/scenarios/min-cwnd-trap.toml` first.

mod bands;
mod builtin;
mod drops;
mod error;
mod flows;
mod impairments;
mod link;
mod parse;
mod reader;
mod timeline;

use std::time::Duration;

use cc::Algorithm;
use netsim::RandomStreams;
use units::{ByteCount, Timestamp};

use crate::expect::{Band, Window};

pub use builtin::{
    BUILT_IN, LookupError, OTHER_NAMES, SMOKE, SMOKE_NAME, SMOKE_SEEDS, built_in, built_ins, find,
};
pub use error::{Problem, ScenarioError};
pub(crate) use flows::LARGEST_ANSWER;
pub use flows::{App, DOWNLOAD_NAME, FlowPlan};
pub use parse::HEADERS;
pub use timeline::{DirectionPlan, SlotSource};

/// One scenario, checked and resolved.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What the user calls it: lower-case letters, digits and hyphens.
    pub name: String,
    /// The file it was read from; `None` if it is built in.
    pub path: Option<String>,
    /// What it shows, in one sentence.
    pub about: String,
    /// How many seeds a run plays unless told otherwise, in virtual time.
    pub seeds: u64,
    /// How many runs are played unless told otherwise, over real sockets.
    pub real_seeds: u64,
    /// When a run ends whatever happens, counted from its beginning.
    pub limit: Duration,
    /// The controllers that are played unless told otherwise.
    pub controllers: Vec<Algorithm>,
    /// The UDP payload of a full datagram.
    pub datagram: ByteCount,
    /// Server to client.
    pub forward: DirectionPlan,
    /// Client to server.
    pub reverse: DirectionPlan,
    /// What is downloaded: one entry, or several that are played one after the other.
    pub cases: Vec<Case>,
    /// What shares the link with the download, or takes its place.
    pub flows: Vec<FlowPlan>,
    /// Whether there is a download; otherwise the first of `flows` is what is tested.
    pub has_download: bool,
    /// When the last phase ends; `None` if there is none that does.
    pub phases_end: Option<Timestamp>,
    /// What an article says about the same thing.
    pub article: Option<Article>,
    /// Controllers of the file that this build does not have, because they are wrong on purpose.
    pub left_out: Vec<String>,
    /// When the client starts, before the seeded offset of [`Scenario::start_at`].
    pub start: Duration,
    /// What is expected.
    pub bands: Vec<Band>,
}

/// Figures of an article, to stand beside ours.
#[derive(Debug, Clone)]
pub struct Article {
    /// Which article, in a few words.
    pub source: String,
    /// What it says.
    pub figures: Vec<Figure>,
}

/// One figure of an article.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What is measured, and how the runs are put together; without ends.
    pub measure: Band,
    /// The article's value, in its own words.
    pub says: String,
}

/// One of the downloads of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What it is called in tables: the size or duration as the file writes it.
    pub name: String,
    /// What is downloaded.
    pub download: Download,
}

/// What the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Download {
    /// A resource of this size; the run ends when its last byte was read.
    Size(ByteCount),
    /// As much as fits into this time, counted from the client's start or cut off at the limit.
    Duration(Duration),
}

impl Scenario {
    /// The round-trip time of the idle link at the start: both propagation delays.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        self.forward.delay + self.reverse.delay
    }

    /// The shortest round-trip time that the idle link ever has; zero where the delay is made anew from each seed.
    #[must_use]
    pub fn shortest_rtt(&self) -> Duration {
        let shortest = |plan: &DirectionPlan| {
            let delays = plan.changes.iter().filter_map(|(_, change)| match change {
                netsim::Change::Delay(delay) => Some(*delay),
                _ => None,
            });
            match plan.slots_from {
                Some(SlotSource::Leo(..)) => Duration::ZERO,
                _ => delays.fold(plan.delay, Duration::min),
            }
        };
        shortest(&self.forward) + shortest(&self.reverse)
    }

    /// The smallest product of bandwidth and round-trip time that the idle link ever has towards the client; `None` where
    /// it is not known: without a rate, with a trace, with a link made anew from each seed, or with flows that take their
    /// part of it.
    #[must_use]
    pub fn smallest_bdp(&self) -> Option<ByteCount> {
        let is_shared = self.flows.len() + usize::from(self.has_download) > 1;
        if is_shared || self.forward.slots_from.is_some() || self.forward.trace.is_some() {
            return None;
        }
        let policer = self.forward.policer.map(|policer| policer.rate);
        let shaper = self.forward.shaper.map(|shaper| shaper.rate);
        let changed = self.forward.changes.iter().map(|(_, change)| match change {
            netsim::Change::Rate(rate) => Some(*rate),
            netsim::Change::Policer(policer) => policer.map(|policer| policer.rate),
            netsim::Change::Shaper(shaper) => shaper.map(|shaper| shaper.rate),
            _ => None,
        });
        let rates = [Some(self.forward.rate), policer, shaper].into_iter();
        let slowest = rates.chain(changed).flatten().min()?;
        (!slowest.is_infinite()).then(|| slowest.bytes_in(self.shortest_rtt()))
    }

    /// Whether the tested sender takes what it can get.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.has_download || self.flows.first().is_some_and(|flow| flow.app == App::Bulk)
    }

    /// When the client starts in the run with this seed.
    ///
    /// scenarios.md 2.1: an offset between zero and one round trip is drawn from the seed, in steps
    /// of 1 ns, or else the phases of every run meet the same packet and phase effects masquerade
    /// as results.
    #[must_use]
    pub fn start_at(&self, seed: u64) -> Timestamp {
        let span = u64::try_from(self.base_rtt().as_nanos()).unwrap_or(u64::MAX);
        let offset = match span {
            0 => 0,
            span => RandomStreams::new(seed).stream("start").below(span),
        };
        Timestamp::ZERO + self.start + Duration::from_nanos(offset)
    }

    /// Whether a scripted loss looks at what packets carry, and not at their size and number alone.
    #[must_use]
    pub fn asks_for_labels(&self) -> bool {
        let rules = self
            .forward
            .drop_spaced
            .iter()
            .chain(&self.reverse.drop_spaced);
        rules
            .flat_map(|rule| &rule.wants)
            .any(|wanted| !wanted.is_empty())
    }

    /// The windows that some band or figure looks at, without repetition, in order.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        let figures = self.article.iter().flat_map(|article| &article.figures);
        let measures = figures.map(|figure| &figure.measure).chain(&self.bands);
        let mut windows: Vec<Window> = measures.filter_map(|band| band.window).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }

    /// Whether every download lasts for a time instead of having a size.
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        self.cases
            .iter()
            .all(|case| matches!(case.download, Download::Duration(_)))
    }
}
