//! A22 and D2: the mean window at random loss.
//!
//! Every packet is lost with probability p, independently of all others, before a queue on a link of 1 Gbit/s: neither
//! its rate nor its queue matters. The window is averaged over time, after a fifth of the run has passed; "by goodput"
//! is stream bytes per base RTT, from which headers, retransmissions and the time it takes to fill a window are missing.
//!
//! The models have a loss exactly every 1/p packets:
//!
//! - RFC 9438 section 4.3: AIMD with alpha = 9/17 and beta = 0.7 has the mean window of Reno, sqrt(3/2) / sqrt(p). It
//!   holds at 40 ms, where CUBIC is in its Reno-friendly region;
//! - RFC 9438 section 5: (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4). It holds at 200 ms.
//!
//! The models' losses come at even distances and random ones do not, so a ratio of 1 is not to be expected. Besides, the
//! window rests for a round trip after each cut, and several losses in one are answered with one cut. At 3 % the window
//! is 8 packets and goodput is a sixth below it, more than elsewhere. How often a probe timeout struck, and how long the
//! window stood at two packets, is shown with each point.

use std::ops::RangeInclusive;
use std::time::Duration;

use units::{Fraction, Rate, Timestamp};

use crate::bulk::{Flow, Link, PACKET, Play};
use crate::verdict::{Verdict, is_slow, largest, least, mean, record};

const SEEDS: RangeInclusive<u64> = 1..=5;
/// Measured over model.
const ALLOWED: RangeInclusive<f64> = 0.67..=1.5;
/// How far the exponent of p may be from the model's.
const SLOPE_TOLERANCE: f64 = 0.08;
/// Cuts of all seeds together that a point needs.
const LEAST_CUTS: usize = 200;

/// One probability of loss.
#[derive(Copy, Clone)]
struct Point {
    loss_ppb: u32,
    seconds: u64,
}

const fn point(loss_ppb: u32, seconds: u64) -> Point {
    Point { loss_ppb, seconds }
}

impl Point {
    fn p(self) -> f64 {
        f64::from(self.loss_ppb) / 1e9
    }

    fn percent(self) -> f64 {
        f64::from(self.loss_ppb) / 1e7
    }
}

/// A path, and the model that holds on it.
#[derive(Copy, Clone)]
struct Regime {
    name: &'static str,
    rtt: Duration,
    model: fn(f64, Duration) -> f64,
    slope: f64,
}

const RENO_FRIENDLY: Regime = Regime {
    name: "40 ms",
    rtt: Duration::from_millis(40),
    model: |p, _| (1.5 / p).sqrt(),
    slope: -0.5,
};

const CUBIC: Regime = Regime {
    name: "200 ms",
    rtt: Duration::from_millis(200),
    model: |p, rtt| {
        let (c, beta) = (0.4_f64, 0.7);
        (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * (rtt.as_secs_f64() / p).powf(0.75)
    },
    slope: -0.75,
};

/// What the flows of all seeds had at one point.
struct Response {
    point: Point,
    model: f64,
    /// Mean windows, one per seed, in packets.
    windows: Vec<f64>,
    /// The same, by goodput.
    by_goodput: Vec<f64>,
    cuts: usize,
    timeouts: u64,
    /// Shares of time at the smallest window, one per seed.
    at_floor: Vec<f64>,
}

impl Response {
    /// Plays a flow per seed. `factor` multiplies the loss that the link has, not the model's.
    fn play(algorithm: &str, regime: Regime, point: Point, factor: u32) -> Self {
        let mut response = Self {
            point,
            model: (regime.model)(point.p(), regime.rtt),
            windows: Vec::new(),
            by_goodput: Vec::new(),
            cuts: 0,
            timeouts: 0,
            at_floor: Vec::new(),
        };
        let loss = Fraction::from_ppb(point.loss_ppb * factor).expect("a probability");
        let link = Link::new(Rate::from_mbps(1_000), regime.rtt, 10_000).with_loss(loss);
        let until = Timestamp::from_secs(point.seconds);
        let from = Timestamp::from_secs(point.seconds / 5);
        for seed in SEEDS {
            let flows = [Flow::new(algorithm)];
            let run = Play::new(&link, &flows, until).with_seed(seed).run();
            assert_eq!(run.forward.dropped(), run.forward.dropped_loss_before);
            let flow = run.only();
            response.windows.push(flow.mean_window(from, until));
            let bytes = flow.goodput(from, until) * 1e6 / 8.0 * regime.rtt.as_secs_f64();
            response.by_goodput.push(bytes / PACKET.as_u64() as f64);
            response.cuts += flow.cuts().filter(|cut| cut.at >= from).count();
            response.timeouts += flow.sender.pto_count;
            response
                .at_floor
                .push(flow.share_of_time_within(PACKET * 2, from, until));
        }
        response
    }

    fn ratios(&self) -> Vec<f64> {
        self.windows
            .iter()
            .map(|window| window / self.model)
            .collect()
    }

    fn judge(&self, verdict: &mut Verdict) {
        let mut ratios = self.ratios();
        ratios.push(mean(&self.by_goodput) / self.model);
        let p = self.point.percent();
        for ratio in ratios {
            verdict.expect(
                ALLOWED.contains(&ratio),
                format!("ratio {ratio:.3} at {p} %"),
            );
        }
        verdict.expect(
            self.cuts >= LEAST_CUTS,
            format!("cuts {} at {p} %", self.cuts),
        );
    }

    fn record(&self, regime: Regime) {
        let ratios = self.ratios();
        record(
            &format!(
                "D2 {}, {} % loss, mean window",
                regime.name,
                self.point.percent()
            ),
            format!(
                "{:.1} packets, model {:.1}: {:.3}, seeds {:.3} to {:.3}, by goodput {:.3}; {} cuts, {} PTO, {:.2} % of time at 2 packets",
                mean(&self.windows),
                self.model,
                mean(&ratios),
                least(&ratios),
                largest(&ratios),
                mean(&self.by_goodput) / self.model,
                self.cuts,
                self.timeouts,
                mean(&self.at_floor) * 100.0
            ),
            "0.67 to 1.5 of the model",
        );
    }
}

/// The exponent of p: the slope of the regression of log window on log p.
fn slope(responses: &[Response]) -> f64 {
    let logs = responses.iter();
    let logs = logs.map(|response| (response.point.p().ln(), mean(&response.windows).ln()));
    let (x, y): (Vec<f64>, Vec<f64>) = logs.unzip();
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let pairs = || x.iter().zip(&y);
    let xy: f64 = pairs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let xx: f64 = x.iter().map(|x| (x - mean_x) * (x - mean_x)).sum();
    xy / xx
}

/// Plays all points on a path; says whether they are where the model has them.
fn sweep(
    algorithm: &str,
    regime: Regime,
    points: &[Point],
    factor: u32,
) -> (Vec<Response>, Verdict) {
    let points = points.iter();
    let responses = points.map(|&point| Response::play(algorithm, regime, point, factor));
    let responses: Vec<Response> = responses.collect();
    let mut verdict = Verdict::default();
    for response in &responses {
        response.judge(&mut verdict);
    }
    let slope = slope(&responses);
    verdict.expect(
        (slope - regime.slope).abs() <= SLOPE_TOLERANCE,
        format!("slope {slope:.3}"),
    );
    (responses, verdict)
}

/// The first `recorded` points have their rows from this sweep, the others from another one.
#[track_caller]
fn assert_sweep(regime: Regime, points: &[Point], recorded: usize) {
    let (responses, verdict) = sweep("cubic", regime, points, 1);
    for response in &responses[..recorded] {
        response.record(regime);
    }
    let (first, last) = (
        points.first().expect("points"),
        points.last().expect("points"),
    );
    record(
        &format!(
            "D2 {}, {} % to {} % loss, slope of log window over log p",
            regime.name,
            first.percent(),
            last.percent()
        ),
        format!("{:.3}", slope(&responses)),
        format!("{:.2} +- {SLOPE_TOLERANCE}", regime.slope),
    );
    verdict.require();
}

const HIGH_LOSS: [Point; 3] = [
    point(3_000_000, 40),
    point(10_000_000, 30),
    point(30_000_000, 30),
];

#[test]
fn d2_at_high_loss_cubic_s_window_is_reno_s() {
    assert_sweep(RENO_FRIENDLY, &HIGH_LOSS, HIGH_LOSS.len());
}

#[test]
fn d2_on_a_short_path_cubic_s_window_is_reno_s() {
    if is_slow("d2_on_a_short_path_cubic_s_window_is_reno_s") {
        let mut points = vec![point(300_000, 130), point(1_000_000, 80)];
        points.extend(HIGH_LOSS);
        assert_sweep(RENO_FRIENDLY, &points, 2);
    }
}

#[test]
fn d2_on_a_long_path_cubic_s_window_is_rfc_9438_s() {
    if is_slow("d2_on_a_long_path_cubic_s_window_is_rfc_9438_s") {
        let points = [
            point(100_000, 330),
            point(300_000, 260),
            point(1_000_000, 200),
        ];
        assert_sweep(CUBIC, &points, points.len());
    }
}

#[test]
fn d2_finds_out_ten_times_the_loss() {
    let (_, verdict) = sweep("cubic", RENO_FRIENDLY, &[point(3_000_000, 10)], 10);
    assert!(verdict.has_missed("ratio 0.3"));
}

#[test]
fn d2_finds_out_newreno_on_a_long_path() {
    let points = [point(300_000, 100), point(3_000_000, 100)];
    let (_, verdict) = sweep("newreno", CUBIC, &points, 1);
    assert!(verdict.has_missed("ratio 0.4"));
    assert!(verdict.has_missed("slope -0.4"));
}
