//! Whole transfers over a link in virtual time.

mod common;

use cc::Algorithm;
use common::{Setup, download};
use units::{ByteCount, Fraction, Timestamp};

#[test]
fn ten_megabytes_arrive_over_a_clean_link() {
    let mut net = Setup::new(Algorithm::Cubic).build();
    let outcome = download(&mut net, 10_000_000, Timestamp::from_secs(20));
    eprintln!("{outcome:#?}");
    assert_eq!(outcome.received, 10_000_000);
}

#[test]
fn ten_megabytes_arrive_over_a_lossy_link() {
    let mut setup = Setup::new(Algorithm::NewReno);
    setup.loss = Fraction::from_percent(2).expect("a fraction");
    setup.queue = ByteCount::new(100_000);
    let mut net = setup.build();
    let outcome = download(&mut net, 3_000_000, Timestamp::from_secs(60));
    eprintln!("{outcome:#?}");
    assert_eq!(outcome.received, 3_000_000);
}
