//! The minimum-window trap on plain quinn-proto: the layers of the regression test that need a network, through the
//! drop-in.
//!
//! Server and client are unmodified quinn-proto 0.11.19 with quinn's own gate and pacer, 5 ms apart, with no rate limit
//! and in virtual time. The server's controller is the only thing that changes. The layers:
//!
//! | layer | losses | what it tells apart |
//! |---|---|---|
//! | 2 | eight, by script: the first large datagram when 1.5 round trips have passed since the last | the trap, in every run |
//! | 3 | 30 % towards the client for 2 s, at random | how often the trap closes by itself |
//! | 5 | two by script, then silence for 10 and 60 s | controllers that count the silence as time of the curve |
//!
//! Layer 1 has no network (`tests/acceptance/trap.rs`), 4 has sockets and 6 other links; those play on the product's own
//! stack, as do 2 and 3 once more (`interop/tests/trap`).
//!
//! Loss comes from seeded streams; the random parts of TLS are not seeded, so counts of failures may move by a few.

#[path = "../quinn_support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod quinn_support;
#[path = "../../../tests/support/validation_rows.rs"]
#[expect(dead_code, reason = "nothing here is the same in every run")]
mod validation_rows;

mod idle;
mod random_loss;
mod scripted_loss;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cc::quinn::{Factory, fault_counters};
use cc::{Algorithm, Fault, FaultCounters, LossBasedOptions};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_support::Pair;
use validation_rows::unsteady_row;

const ONE_WAY: Duration = Duration::from_millis(5);
const ROUND_TRIP: Duration = Duration::from_millis(10);
const PACKET: u64 = 1_200;
const FLOOR: u64 = 2 * PACKET;
/// The download: 10 MiB, at most 10 s.
const SIZE: usize = 10 << 20;
const LIMIT: Duration = Duration::from_secs(10);

/// Who is put to the test.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Subject {
    Ours(Algorithm),
    StockCubic,
    StockNewReno,
}

impl Subject {
    const FIXED: Self = Self::Ours(Algorithm::CUBIC);
    const NEW_RENO: Self = Self::Ours(Algorithm::NEW_RENO);

    fn mutant(fault: Fault) -> Self {
        Self::Ours(Algorithm::Faulty(fault, LossBasedOptions::DEFAULT))
    }

    fn name(self) -> String {
        match self {
            Self::Ours(algorithm) => algorithm.to_string(),
            Self::StockCubic => "quinn's Cubic".to_owned(),
            Self::StockNewReno => "quinn's NewReno".to_owned(),
        }
    }

    fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Ours(algorithm) => Arc::new(Factory::new(algorithm)),
            Self::StockCubic => Arc::new(CubicConfig::default()),
            Self::StockNewReno => Arc::new(NewRenoConfig::default()),
        }
    }

    /// A pair whose handshake is over on the server's side.
    fn connected(self, one_way: Duration) -> Pair {
        let mut pair = Pair::new(self.factory(), one_way);
        let handshake = pair.run_until(one_way * 20, Pair::is_connected);
        handshake.expect("nothing is lost yet");
        pair
    }
}

/// What became of one download.
#[derive(Debug)]
struct Run {
    /// `None` if it was not complete after 10 s.
    finished: Option<Duration>,
    /// From the end of the losses to a window of ten packets.
    escaped: Option<Duration>,
    /// The window when the run ended.
    window: u64,
    /// The window when the last packet was lost.
    window_at_last_loss: u64,
    counters: Option<FaultCounters>,
}

/// Plays a download over a network that loses what `is_lost` says, towards the client. `losses_end` is when the escape
/// is measured from, after the beginning.
fn download(
    subject: Subject,
    losses_end: Duration,
    mut is_lost: impl FnMut(Duration, usize) -> bool + 'static,
) -> Run {
    let mut pair = subject.connected(ONE_WAY);
    let begin = pair.now;
    let window = Rc::new(Cell::new(0));
    let window_at_last_loss = Rc::new(Cell::new(0));
    let escaped: Rc<Cell<Option<Instant>>> = Rc::default();
    let (seen, at_loss) = (Rc::clone(&window), Rc::clone(&window_at_last_loss));
    pair.is_lost = Box::new(move |now, size| {
        let is_lost = is_lost(now - begin, size);
        if is_lost {
            at_loss.set(seen.get());
        }
        is_lost
    });
    let (seen, out) = (Rc::clone(&window), Rc::clone(&escaped));
    pair.on_window = Box::new(move |now, window| {
        seen.set(window);
        if window >= 10 * PACKET && now >= begin + losses_end && out.get().is_none() {
            out.set(Some(now));
        }
    });
    pair.send(SIZE);
    let finished = pair.run_until(LIMIT, |pair| pair.received >= SIZE);
    Run {
        finished,
        escaped: escaped.get().map(|at| at - begin - losses_end),
        window: window.get(),
        window_at_last_loss: window_at_last_loss.get(),
        counters: fault_counters(pair.controller()),
    }
}

/// The mutants that close the trap share the boundary; the proof that it was that: the guilty line has run, packets
/// left behind the boundary, and their acknowledgements were ignored.
fn assert_guilty_of_the_trap(name: &str, run: &Run) {
    let counters = run.counters.expect("ours counts");
    assert!(counters.shifts > 100, "{name}: {run:?}");
    assert!(counters.sends_behind_boundary > 100, "{name}: {run:?}");
    assert!(counters.acks_ignored > 100, "{name}: {run:?}");
}

/// For a report: hundredths of a second.
fn seconds(span: Option<Duration>) -> String {
    span.map_or_else(
        || "not in 10 s".to_owned(),
        |span| format!("{:.2} s", span.as_secs_f64()),
    )
}

fn report(row: &str, measured: String, allowed: &str) {
    unsteady_row("plain quinn", row, measured, allowed);
}
