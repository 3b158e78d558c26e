//! When a server stops: first it drains, then it closes.
//!
//! ```text
//!   Running --drain()--> Draining --close()--> Closing
//!   accepts              GOAWAY; requests      every connection is closed
//!                        that run go on        with H3_NO_ERROR
//! ```
//!
//! The phases are moved by whoever holds the clock and hears the signals; the server only watches.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How far the end has come. Later phases compare greater.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Serving.
    #[default]
    Running,
    /// No new requests; those accepted are completed (RFC 9114 section 5.2).
    Draining,
    /// Everything ends now.
    Closing,
}

/// A switch shared by everything that has to stop. Clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    phase: Phase,
    waiting: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl Shutdown {
    /// A switch in [`Phase::Running`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to drain. Does nothing if that has begun.
    pub fn drain(&self) {
        self.advance_to(Phase::Draining);
    }

    /// Closes everything.
    pub fn close(&self) {
        self.advance_to(Phase::Closing);
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Waits until the phase is `phase` or later.
    pub async fn reached(&self, phase: Phase) {
        let watch = self.watch();
        poll_fn(|cx| watch.poll_reached(phase, cx)).await;
    }

    /// A place to wait in, for one task. Leaving it takes its waker with it.
    pub(crate) fn watch(&self) -> Watch {
        let mut inner = self.lock();
        let key = inner.next_key;
        inner.next_key += 1;
        drop(inner);
        Watch {
            shutdown: self.clone(),
            key,
        }
    }

    fn advance_to(&self, phase: Phase) {
        let mut inner = self.lock();
        if inner.phase < phase {
            inner.phase = phase;
            let waiting = std::mem::take(&mut inner.waiting);
            drop(inner);
            waiting.into_values().for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half done, so a panic elsewhere does not matter.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Watch {
    shutdown: Shutdown,
    key: u64,
}

impl Watch {
    pub(crate) fn phase(&self) -> Phase {
        self.shutdown.phase()
    }

    pub(crate) fn poll_reached(&self, phase: Phase, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.shutdown.lock();
        if inner.phase >= phase {
            return Poll::Ready(());
        }
        inner.waiting.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shutdown.lock().waiting.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_only_go_forward_and_wake_who_waits() {
        let shutdown = Shutdown::new();
        let watch = shutdown.watch();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(watch.poll_reached(Phase::Draining, &mut cx).is_pending());
        shutdown.clone().drain();
        assert_eq!(watch.phase(), Phase::Draining);
        assert!(watch.poll_reached(Phase::Draining, &mut cx).is_ready());
        assert!(watch.poll_reached(Phase::Closing, &mut cx).is_pending());
        shutdown.close();
        shutdown.drain();
        assert_eq!(shutdown.phase(), Phase::Closing);
    }

    #[test]
    fn a_task_that_ended_leaves_no_waker_behind() {
        let shutdown = Shutdown::new();
        let watch = shutdown.watch();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(watch.poll_reached(Phase::Draining, &mut cx).is_pending());
        assert_eq!(shutdown.lock().waiting.len(), 1);
        drop(watch);
        assert_eq!(shutdown.lock().waiting.len(), 0);
    }
}
