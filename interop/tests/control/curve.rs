//! D1: the window after a cut against RFC 9438's curve.
//!
//! ```text
//!  W_max  ------------------------ plateau ------------------.-'
//!         |            .  -  '  '                        from here Reno
//!         |       .-'                                    may be faster
//!   cut   |   .-'
//!         '-.'----|----------------|-----------------------------> t
//!           0     samples          K
//! ```
//!
//! A clean link of 100 Mbit/s and 40 ms, whose queue is too long to drop anything, loses one packet by script. The
//! window from the end of recovery on is read every 10 ms, in packets, and C (t - K)^3 + W_max is fitted to it by
//! least squares: K by scanning, C and W_max by linear regression on (t - K)^3.
//!
//! Time begins with the first acknowledgement that counts, which is the one that ends recovery (section 4.2).
//!
//! The window aims at the curve one smoothed RTT ahead, but goes only (target - cwnd) / cwnd of a packet towards it per
//! packet acknowledged (section 4.4), so it follows its target with a delay of one round trip. Lead and delay cancel:
//! for a round trip r the solution of r W' = W_cubic(t + r) - W is W_cubic(t) + 3 C r^2 (t - K) - 2 C r^3, whatever
//! queue there is, because acknowledgements come with the link's rate. With r = 0.1 s that is less than 0.1 packets off
//! within 8 s of K. So no correction is made.
//!
//! Samples end when Reno's estimate, integrated from the sampled RTT, reaches RFC 9438's curve.

use std::time::Duration;

use netsim::Change;
use units::{Rate, Timestamp};

use crate::bulk::{Flow, FlowRecord, Link, PACKET, Passage, Play};
use crate::verdict::{Verdict, record};

/// RFC 9438 section 4.1.
const C: f64 = 0.4;
/// RFC 9438 section 4.3, for the multiplicative decrease of 0.7.
const ALPHA: f64 = 9.0 / 17.0;
const STEP: Duration = Duration::from_millis(10);

/// A curve C (t - K)^3 + W_max in seconds and packets.
#[derive(Copy, Clone, Debug)]
struct Cubic {
    c: f64,
    k: f64,
    w_max: f64,
}

impl Cubic {
    /// RFC 9438's, from the plateau and the window at the beginning of the epoch (section 4.2).
    fn expected(w_max: f64, begin: f64) -> Self {
        let k = ((w_max - begin) / C).cbrt();
        Self { c: C, k, w_max }
    }

    fn at(self, t: f64) -> f64 {
        self.c * (t - self.k).powi(3) + self.w_max
    }
}

/// The best curve through samples.
#[derive(Copy, Clone, Debug)]
struct Fit {
    curve: Cubic,
    r_squared: f64,
    /// Root of the mean square of what the curve is off, in packets.
    error: f64,
}

impl Fit {
    /// The best C and W_max for a given K.
    fn with_k(samples: &[(f64, f64)], k: f64) -> Self {
        let count = samples.len() as f64;
        let cubes = || samples.iter().map(|&(t, w)| ((t - k).powi(3), w));
        let mean_x = cubes().map(|(x, _)| x).sum::<f64>() / count;
        let mean_w = cubes().map(|(_, w)| w).sum::<f64>() / count;
        let (mut xx, mut xw, mut ww) = (0.0, 0.0, 0.0);
        for (x, w) in cubes() {
            xx += (x - mean_x) * (x - mean_x);
            xw += (x - mean_x) * (w - mean_w);
            ww += (w - mean_w) * (w - mean_w);
        }
        let c = xw / xx;
        Self {
            curve: Cubic {
                c,
                k,
                w_max: mean_w - c * mean_x,
            },
            r_squared: xw * xw / (xx * ww),
            // Rounding may take it a little below zero.
            error: ((ww - c * xw) / count).max(0.0).sqrt(),
        }
    }

    /// Scans K from 0 to twice what is expected, then ever finer around the best.
    fn of(samples: &[(f64, f64)], expected_k: f64) -> Self {
        let (mut centre, mut reach) = (expected_k, expected_k);
        let mut best = Self::with_k(samples, centre);
        for _ in 0..4 {
            for step in -50..=50 {
                let fit = Self::with_k(samples, centre + reach * f64::from(step) / 50.0);
                if fit.r_squared > best.r_squared {
                    best = fit;
                }
            }
            (centre, reach) = (best.curve.k, reach / 20.0);
        }
        best
    }
}

/// One epoch of a flow: what was sampled and what was to be expected.
struct Epoch {
    expected: Cubic,
    fit: Fit,
    /// Where the samples end.
    until: f64,
}

fn packets(passage: &Passage) -> (f64, f64) {
    let of = |window: units::ByteCount| window.as_u64() as f64 / PACKET.as_u64() as f64;
    (of(passage.before), of(passage.after))
}

impl Epoch {
    /// The epoch after the last cut, whose plateau is the window at the cut times `plateau`.
    fn last(flow: &FlowRecord, plateau: f64, end: Timestamp) -> Self {
        let (before, begin) = packets(flow.cuts().last().expect("a cut"));
        let began_at = flow.exits().last().expect("an end of recovery").at;
        let expected = Cubic::expected(before * plateau, begin);
        let mut samples = Vec::new();
        let (mut reno, mut at) = (begin, began_at);
        let mut windows = flow.windows.iter().peekable();
        let mut latest = *windows.peek().expect("a window");
        while at < end {
            while let Some(next) = windows.next_if(|next| next.at <= at) {
                latest = next;
            }
            let t = at.saturating_since(began_at).as_secs_f64();
            // Both begin at the same window.
            if !samples.is_empty() && reno > expected.at(t) {
                break;
            }
            let window = latest.window.as_u64() as f64 / PACKET.as_u64() as f64;
            samples.push((t, window));
            let alpha = if reno < before { ALPHA } else { 1.0 };
            reno += alpha * STEP.as_secs_f64() / latest.rtt.as_secs_f64();
            at += STEP;
        }
        Self {
            expected,
            fit: Fit::of(&samples, expected.k),
            until: samples.last().expect("samples").0,
        }
    }

    fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        let (curve, expected) = (self.fit.curve, self.expected);
        verdict.expect(
            (0.38..=0.42).contains(&curve.c),
            format!("C {:.4}", curve.c),
        );
        verdict.expect(
            self.fit.r_squared >= 0.999,
            format!("R^2 {:.6}", self.fit.r_squared),
        );
        verdict.expect(
            (curve.k / expected.k - 1.0).abs() <= 0.05,
            format!("K {:.3} s instead of {:.3} s", curve.k, expected.k),
        );
        verdict.expect(
            (curve.w_max / expected.w_max - 1.0).abs() <= 0.01,
            format!("W_max {:.1} instead of {:.1}", curve.w_max, expected.w_max),
        );
        // The whole of the concave part and a good part of the convex one.
        verdict.expect(
            self.until >= 1.3 * expected.k,
            format!("samples end at {:.2} s", self.until),
        );
        verdict
    }

    fn record(&self, name: &str) {
        let (curve, expected) = (self.fit.curve, self.expected);
        record(
            &format!("D1 {name}: C, R^2"),
            format!(
                "{:.4}, {:.6}; off by {:.3} packets (rms)",
                curve.c, self.fit.r_squared, self.fit.error
            ),
            "0.38 to 0.42, at least 0.999",
        );
        record(
            &format!("D1 {name}: K"),
            format!(
                "{:.3} s, {:.3} of RFC 9438's",
                curve.k,
                curve.k / expected.k
            ),
            "0.95 to 1.05",
        );
        record(
            &format!("D1 {name}: W_max"),
            format!(
                "{:.1} packets, {:.1} by RFC 9438; samples to {:.2} K",
                curve.w_max,
                expected.w_max,
                self.until / expected.k
            ),
            "within 1 %",
        );
    }
}

/// One packet dropped at each of these instants, in ms.
fn play(algorithm: &str, drops: &[u64], until: Timestamp) -> FlowRecord {
    let mut link = Link::new(Rate::from_mbps(100), Duration::from_millis(40), 20_000);
    let change = |&at| (Timestamp::from_millis(at), Change::DropNext(1));
    link.changes = drops.iter().map(change).collect();
    let mut run = Play::new(&link, &[Flow::new(algorithm)], until).run();
    // Nothing was lost but by script, and each loss cut once.
    assert_eq!(run.forward.dropped().packets, drops.len() as u64);
    let flow = run.flows.remove(0);
    assert_eq!(flow.sender.packets_lost, drops.len() as u64);
    assert_eq!(flow.cuts().count(), drops.len());
    flow
}

#[track_caller]
fn assert_curve(name: &str, algorithm: &str, drops: &[u64], plateau: f64, until: Timestamp) {
    let epoch = Epoch::last(&play(algorithm, drops, until), plateau, until);
    epoch.record(name);
    epoch.judge().require();
}

#[test]
fn d1_after_one_drop_the_window_follows_the_curve_to_beyond_the_plateau() {
    let until = Timestamp::from_secs(12);
    assert_curve("one drop", "cubic", &[300], 1.0, until);
}

#[test]
fn d1_after_a_second_drop_below_the_plateau_the_curve_aims_lower() {
    // RFC 9438 section 4.7: (1 + 0.7) / 2.
    let until = Timestamp::from_secs(14);
    let name = "second drop below the plateau, fast convergence";
    assert_curve(name, "cubic", &[320, 3_500], 0.85, until);
}

#[test]
fn d1_without_fast_convergence_a_second_drop_leaves_the_curve_as_it_is() {
    let until = Timestamp::from_millis(15_500);
    let name = "second drop below the plateau, no fast convergence";
    assert_curve(name, "cubic-fastconv", &[320, 3_500], 1.0, until);
}

#[test]
fn d1_finds_out_newreno() {
    let until = Timestamp::from_secs(7);
    let verdict = Epoch::last(&play("newreno", &[300], until), 1.0, until).judge();
    assert!(verdict.has_missed("C 0.0"));
    assert!(verdict.has_missed("K"));
}

#[test]
#[cfg(feature = "mutants")]
fn d1_finds_out_growth_in_whole_packets() {
    let until = Timestamp::from_secs(12);
    let verdict = Epoch::last(&play("cubic!whole-packets", &[300], until), 1.0, until).judge();
    assert!(verdict.has_missed("C"));
}

#[test]
fn d1_finds_out_a_plateau_that_should_have_been_lowered() {
    let until = Timestamp::from_secs(14);
    let flow = play("cubic-fastconv", &[320, 3_500], until);
    let verdict = Epoch::last(&flow, 0.85, until).judge();
    assert!(verdict.has_missed("K"));
    assert!(verdict.has_missed("W_max"));
}
