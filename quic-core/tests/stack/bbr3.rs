//! BBRv3 on the whole stack: what limits the sender is told it rightly. `transfer` shows that the books agree.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cc::{Algorithm, State, Transition};
use quic_core::{EndpointConfig, SenderObserver, SenderUpdate};
use units::{ByteCount, Timestamp};

use crate::common::{Setup, download};

type Phases = Arc<Mutex<Vec<(Timestamp, State)>>>;

struct Watch(Phases);

impl SenderObserver for Watch {
    fn on_update(&mut self, _now: Timestamp, _update: &SenderUpdate) {}

    fn on_transition(&mut self, now: Timestamp, transition: &Transition) {
        let mut phases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        phases.push((now, transition.to));
    }
}

fn watched(phases: &Phases) -> EndpointConfig {
    let phases = phases.clone();
    EndpointConfig {
        observer: Some(Arc::new(move || Some(Box::new(Watch(phases.clone()))))),
        ..EndpointConfig::default()
    }
}

// Checklist item 11; litespeedtech/lsquic#544: a sender that waits for the receiver's window took itself for short of data
// and never left Startup.
#[test]
fn a_flow_limited_by_the_receiver_leaves_startup() {
    let phases = Phases::default();
    let mut setup = Setup::new(Algorithm::Bbr3);
    // A third of what the path holds.
    setup.client = EndpointConfig {
        stream_receive_window: ByteCount::kib(160),
        receive_window: ByteCount::kib(160),
        ..EndpointConfig::default()
    };
    setup.server = watched(&phases);
    let mut net = setup.build();
    let outcome = download(&mut net, 10_000_000, Timestamp::from_secs(20));
    assert_eq!(outcome.received, 10_000_000);
    let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
    let first = phases.first().copied();
    assert!(
        first.is_some_and(|(at, state)| state == State::Drain && at < Timestamp::from_secs(1)),
        "{first:?}"
    );
    assert!(outcome.finished_at < Some(Timestamp::ZERO + Duration::from_secs(5)));
}
