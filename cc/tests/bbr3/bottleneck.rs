//! The loop closed over one bottleneck.

use std::time::Duration;

use cc::State;
use units::{Fraction, Rate, Timestamp};

use crate::link::{App, Outcome, Setup, seconds};

#[test]
fn explore() {
    for (mbps, rtt) in [
        (10, 20),
        (10, 40),
        (10, 100),
        (100, 20),
        (100, 40),
        (100, 100),
    ] {
        let setup = Setup::new(mbps, rtt);
        let bdp = setup.bdp();
        let o = setup.run();
        println!(
            "{mbps} M {rtt} ms: util {:.4} rtt p50 {:?} p95 {:?} most {} / bdp {bdp} lost {} sent {} to {}",
            o.goodput(2.0, 20.0) / (mbps as f64 * 1e6),
            o.rtt_percentile(2.0, 20.0, 50),
            o.rtt_percentile(2.0, 20.0, 95),
            o.most_in_flight(2.0, 20.0),
            o.lost,
            o.sent,
            o.timeouts
        );
        for s in [
            State::Startup,
            State::Drain,
            State::ProbeBwDown,
            State::ProbeBwCruise,
            State::ProbeBwRefill,
            State::ProbeBwUp,
            State::ProbeRtt,
        ] {
            print!(
                " {} {:.3} {};",
                s.as_str(),
                o.share(s, 0.0),
                o.entries(s).len()
            );
        }
        println!();
        for p in o.phases.iter().take(14) {
            println!("   {:.4} {} {}", seconds(p.0), p.1.as_str(), p.2.as_str());
        }
    }
    for seed in 1..4 {
        let o = Setup {
            loss: Fraction::from_percent(1).unwrap(),
            queue_percent: 1000,
            seed,
            duration: Duration::from_secs(30),
            ..Setup::new(100, 40)
        }
        .run();
        println!(
            "1 %: {:.2} Mbit/s, lost {} of {}, timeouts {}",
            o.goodput(2.0, 30.0) / 1e6,
            o.lost,
            o.sent,
            o.timeouts
        );
        for s in [
            State::Startup,
            State::Drain,
            State::ProbeBwDown,
            State::ProbeBwCruise,
            State::ProbeBwRefill,
            State::ProbeBwUp,
            State::ProbeRtt,
        ] {
            print!(
                " {} {:.3} {};",
                s.as_str(),
                o.share(s, 0.0),
                o.entries(s).len()
            );
        }
        println!();
    }
    let o = Setup {
        drift_per_second: Duration::from_micros(10),
        duration: Duration::from_secs(31),
        ..Setup::new(100, 40)
    }
    .run();
    println!("probe rtt {:?}", o.entries(State::ProbeRtt));
}
