//! Whole transfers over a link in virtual time.

use cc::Algorithm;
use units::{ByteCount, Fraction, Timestamp};

use crate::common::{Setup, download};

#[test]
fn ten_megabytes_arrive_over_a_clean_link() {
    let mut net = Setup::new(Algorithm::CUBIC).build();
    let outcome = download(&mut net, 10_000_000, Timestamp::from_secs(20));
    assert_eq!(outcome.received, 10_000_000);
    let server = outcome.server.expect("figures").sender;
    assert_eq!(server.in_flight_mismatches, 0);
    assert_eq!(server.open_gate_stalls, 0);
    // 100 Mbit/s move 10 MB in 0.8 s; a few round trips of 40 ms go to slow start.
    let finished_at = outcome.finished_at.expect("an end");
    assert!(
        (Timestamp::from_millis(900)..Timestamp::from_millis(1_600)).contains(&finished_at),
        "{finished_at}"
    );
}

#[test]
fn ten_megabytes_arrive_over_a_lossy_link() {
    let mut setup = Setup::new(Algorithm::NEW_RENO);
    setup.loss = Fraction::from_percent(2).expect("a fraction");
    setup.queue = ByteCount::new(100_000);
    let mut net = setup.build();
    let outcome = download(&mut net, 3_000_000, Timestamp::from_secs(60));
    assert_eq!(outcome.received, 3_000_000);
    let server = outcome.server.expect("figures").sender;
    assert!(server.packets_lost > 0);
    assert_eq!(server.in_flight_mismatches, 0);
    assert_eq!(server.loss_mismatches, 0);
    assert_eq!(server.open_gate_stalls, 0);
}
