//! Whole transfers over a link in virtual time.

use std::time::Duration;

use cc::Algorithm;
use netsim::{Pipe, PipeConfig, RandomStreams};
use quic_core::virt::Datagram;
use units::{ByteCount, Fraction, Timestamp};

use crate::common::{Setup, download};

#[test]
fn ten_megabytes_arrive_over_a_clean_link() {
    for algorithm in [Algorithm::CUBIC, Algorithm::Bbr3] {
        let mut net = Setup::new(algorithm).build();
        let outcome = download(&mut net, 10_000_000, Timestamp::from_secs(20));
        assert_eq!(outcome.received, 10_000_000, "{algorithm}");
        let server = outcome.server.expect("figures").sender;
        assert_eq!(server.in_flight_mismatches, 0, "{algorithm}");
        assert_eq!(server.open_gate_stalls, 0, "{algorithm}");
        // 100 Mbit/s move 10 MB in 0.8 s; a few round trips of 40 ms go to the start.
        let finished_at = outcome.finished_at.expect("an end");
        assert!(
            (Timestamp::from_millis(900)..Timestamp::from_millis(1_600)).contains(&finished_at),
            "{algorithm}: {finished_at}"
        );
    }
}

#[test]
fn three_megabytes_arrive_over_a_lossy_link() {
    for (algorithm, loss) in [(Algorithm::NEW_RENO, 2), (Algorithm::Bbr3, 1)] {
        let mut setup = Setup::new(algorithm);
        setup.loss = Fraction::from_percent(loss).expect("a fraction");
        setup.queue = ByteCount::new(100_000);
        let mut net = setup.build();
        let outcome = download(&mut net, 3_000_000, Timestamp::from_secs(60));
        assert_eq!(outcome.received, 3_000_000, "{algorithm}");
        let server = outcome.server.expect("figures").sender;
        assert!(server.packets_lost > 0, "{algorithm}");
        assert_eq!(server.in_flight_mismatches, 0, "{algorithm}");
        assert_eq!(server.loss_mismatches, 0, "{algorithm}");
        assert_eq!(server.open_gate_stalls, 0, "{algorithm}");
    }
}

/// The bottleneck with half of the delay on it, the other half on pipes of their own behind it.
#[test]
fn a_route_through_two_pipes_takes_the_time_of_both() {
    let finished_at = |is_split: bool| {
        let mut setup = Setup::new(Algorithm::CUBIC);
        let rtt = setup.rtt;
        if is_split {
            setup.rtt = rtt / 2;
        }
        let mut net = setup.build();
        if is_split {
            let config = PipeConfig {
                delay: rtt / 4,
                ..PipeConfig::default()
            };
            let mut access = |name: &str| {
                let pipe = Pipe::<Datagram>::new(config.clone(), &RandomStreams::new(1), name);
                net.world.add_pipe(pipe.expect("a valid pipe"))
            };
            let (there, back) = (access("there"), access("back"));
            let (server, client) = (net.server_node, net.client_node);
            net.world
                .route_through(server, client, &[net.forward, there]);
            net.world
                .route_through(client, server, &[back, net.reverse]);
        }
        let outcome = download(&mut net, 1_000_000, Timestamp::from_secs(20));
        assert_eq!(outcome.received, 1_000_000);
        outcome.finished_at.expect("an end")
    };
    let (whole, split) = (finished_at(false), finished_at(true));
    // Back, the serialiser comes after the delay instead of before it; that moves nothing on an idle link.
    let apart = whole
        .saturating_since(split)
        .max(split.saturating_since(whole));
    assert!(apart < Duration::from_micros(200), "{whole} and {split}");
}
