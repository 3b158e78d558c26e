//! The same seed gives the same run, to the byte; and looking at a run does not change it.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use cc::Algorithm;
use netsim::Change;
use quic_core::{EndpointConfig, LogFactory};
use units::{ByteCount, Fraction, Timestamp};

use crate::common::{Setup, download};

/// A log in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn factory(&self) -> LogFactory {
        let memory = self.clone();
        Arc::new(move |_| Some(Box::new(memory.clone())))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("unpoisoned").clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What can be told of a run from outside.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    /// Digests of all that went through the pipes, forward and reverse.
    pipes: [u64; 2],
    /// Logs of client and server; empty without logging.
    logs: [Vec<u8>; 2],
    finished_at: Option<Timestamp>,
}

impl Run {
    fn fingerprint(&self) -> u64 {
        fnv1a(self.logs.iter().flatten().copied())
    }
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Two megabytes over a link that loses packets at random, and 30 % of them for a while.
fn play(algorithm: Algorithm, seed: u64, has_logs: bool) -> Run {
    let percent = |value| Fraction::from_percent(value).expect("a share");
    let logs = [Memory::default(), Memory::default()];
    let mut setup = Setup::new(algorithm);
    setup.seed = seed;
    setup.loss = percent(1);
    setup.queue = ByteCount::new(100_000);
    setup.changes = vec![
        (Timestamp::from_millis(200), Change::Loss(percent(30))),
        (Timestamp::from_millis(700), Change::Loss(percent(1))),
    ];
    let configured = |log: &Memory| EndpointConfig {
        log: has_logs.then(|| log.factory()),
        idle_timeout: Some(Duration::from_secs(10)),
        ..EndpointConfig::default()
    };
    setup.client = configured(&logs[0]);
    setup.server = configured(&logs[1]);
    let mut net = setup.build();
    let outcome = download(&mut net, 2_000_000, Timestamp::from_secs(60));
    assert_eq!(outcome.received, 2_000_000);
    // Both connections have drained and closed their logs.
    let end = net.world.now() + Duration::from_secs(30);
    net.world.run(end, || false);
    Run {
        pipes: [net.forward, net.reverse].map(|pipe| net.world.pipe(pipe).counters().digest()),
        logs: logs.map(|log| log.bytes()),
        finished_at: outcome.finished_at,
    }
}

const CONTROLLED: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::Bbr3];

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    for algorithm in CONTROLLED {
        let first = play(algorithm, 7, true);
        assert!(first.logs.iter().all(|log| log.len() > 50_000));
        assert!(
            first == play(algorithm, 7, true),
            "{algorithm}: the second run differs"
        );
    }
}

#[test]
fn another_seed_gives_another_run() {
    for algorithm in CONTROLLED {
        let (one, other) = (play(algorithm, 7, true), play(algorithm, 8, true));
        assert_ne!(one.pipes, other.pipes, "{algorithm}");
        for side in 0..2 {
            assert!(one.logs[side] != other.logs[side], "{algorithm}");
        }
    }
}

#[test]
fn a_log_changes_nothing_on_the_link() {
    for algorithm in CONTROLLED {
        let (with, without) = (play(algorithm, 7, true), play(algorithm, 7, false));
        assert_eq!(without.logs, [Vec::<u8>::new(), Vec::new()]);
        assert_eq!(with.pipes, without.pipes, "{algorithm}");
        assert_eq!(with.finished_at, without.finished_at, "{algorithm}");
    }
}

/// One run's logs, pinned: the same in debug and in release, on every platform.
///
/// Whoever changes what is sent, when, or how it is logged changes the number, and says why in the
/// commit that does so. What is wanted of the run is in the plain assertions beside it.
#[test]
fn a_pinned_run_is_the_same_in_every_build() {
    for (algorithm, fingerprint, earliest_ms, latest_ms) in [
        (Algorithm::NEW_RENO, 0x937b_d0b8_8d6a_f549, 3_000, 9_000),
        (Algorithm::CUBIC, 0x0142_1e16_f4e8_07b3, 1_000, 9_000),
        // BBR does not follow the response function: 0.2 s at the link's rate, the hard phase, and what the window
        // needs to come back.
        (Algorithm::Bbr3, 0x58df_1b62_b00a_6cfa, 500, 3_000),
    ] {
        let run = play(algorithm, 3, true);
        let finished_at = run.finished_at.expect("an end");
        println!("{algorithm}: {:#018x}, {finished_at}", run.fingerprint());
        // With 1 % loss and 40 ms NewReno moves about 1.22 * 1350 B / (40 ms * sqrt(1 %)) = 412 kB/s:
        // two megabytes in 4.9 s, and half a second more for the hard phase.
        let span = Timestamp::from_millis(earliest_ms)..Timestamp::from_millis(latest_ms);
        assert!(span.contains(&finished_at), "{algorithm}: {finished_at}");
        assert_eq!(run.fingerprint(), fingerprint, "{algorithm}");
    }
}
