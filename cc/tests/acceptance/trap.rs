//! The minimum-window trap: the columns of the kill matrix that a controller alone can show.
//!
//! Each mutant differs from the real CUBIC in one thing. A layer that all of them pass proves nothing, so the matrix states
//! for each what it must pass and what it must fail, and a test that grew weaker is noticed. The layers over a network are
//! tested where there is one.

use cc::testing::TestPath;
use cc::{Algorithm, Fault, FaultCounters, LossBasedOptions};
use units::ByteCount;

use crate::{
    BATCHED_CURVE, PACKET, at_the_floor, batched_curve, ms, packets, report, steps_after_idle,
};

const CYCLES: u32 = 200;

fn faulty(fault: Fault) -> Algorithm {
    Algorithm::Faulty(fault, LossBasedOptions::DEFAULT)
}

fn counters(path: &TestPath) -> FaultCounters {
    let counters = path.controller().fault_counters();
    counters.expect("loss-based controllers count")
}

/// Layer 1, the trap: growth from the floor by the numbers of A8, and no time left out in 200 cycles without a pause.
struct Trap {
    windows: Vec<ByteCount>,
    counters: FaultCounters,
}

impl Trap {
    fn play(algorithm: Algorithm) -> Self {
        let mut path = at_the_floor(algorithm);
        let windows = path.batch_rounds(ms(10), CYCLES);
        Self {
            windows,
            counters: counters(&path),
        }
    }

    fn grows(&self) -> bool {
        self.windows[9] >= ByteCount::new(9_600) && self.windows[99] >= ByteCount::new(110_000)
    }

    fn passes(&self) -> bool {
        self.grows() && self.counters.shifted.is_zero()
    }
}

/// Layer 1, the idle twin: at most 1.05 packets per round trip after 10 and 60 seconds of silence.
fn passes_idle(algorithm: Algorithm) -> bool {
    [ms(10_000), ms(60_000)]
        .into_iter()
        .flat_map(|idle| steps_after_idle(algorithm, idle))
        .all(|step| step <= PACKET.scale(105, 100))
}

/// A6b: 1,000 packets cut to 700, within one percent.
fn passes_curve(algorithm: Algorithm) -> bool {
    let windows = batched_curve(algorithm);
    BATCHED_CURVE.into_iter().all(|(round, hundredths)| {
        let (got, wanted) = (windows[round - 1], PACKET.scale(hundredths, 100));
        got.as_u64().abs_diff(wanted.as_u64()) * 100 <= wanted.as_u64()
    })
}

// `None` where the matrix has no entry: the mutant's behaviour there is not what it is kept for.
#[test]
fn the_kill_matrix_holds_to_the_letter() {
    let real = Algorithm::CUBIC;
    let (pass, fail) = (Some(true), Some(false));
    for (name, algorithm, trap, idle, curve) in [
        ("M1", faulty(Fault::M1), fail, None, None),
        ("M1Clamp", faulty(Fault::M1Clamp), fail, None, None),
        ("M2", faulty(Fault::M2), fail, None, fail),
        ("M3", faulty(Fault::M3), fail, pass, fail),
        ("NoShift", faulty(Fault::NoShift), pass, fail, pass),
        ("M1Fix", faulty(Fault::M1Fix), pass, None, None),
        ("Fixed", real, pass, pass, pass),
    ] {
        type Layer = fn(Algorithm) -> bool;
        let layers: [(&str, Option<bool>, Layer); 3] = [
            ("L1-trap", trap, |algorithm| Trap::play(algorithm).passes()),
            ("L1-idle", idle, passes_idle),
            ("curve", curve, passes_curve),
        ];
        for (layer, wanted, passes) in layers {
            let Some(wanted) = wanted else {
                continue;
            };
            let got = passes(algorithm);
            let word = |passes| if passes { "pass" } else { "fail" };
            report(&format!("matrix/{layer}/{name}"), word(got), word(wanted));
            assert_eq!(got, wanted, "{name} in {layer}");
        }
    }
}

// 2,400 bytes exactly, for ever; and it is the guilty line that does it.
#[test]
fn the_trapped_stay_at_the_floor() {
    for fault in [Fault::M1, Fault::M1Clamp, Fault::M2] {
        let trap = Trap::play(faulty(fault));
        assert_eq!(trap.windows[199], ByteCount::new(2_400), "{fault:?}");
        let counters = trap.counters;
        report(
            &format!("trap/{}/200cycles", fault.name()),
            trap.windows[199].as_u64(),
            format!(
                "2400(shifts-{},sends-behind-{},acks-ignored-{},flips-{})",
                counters.shifts,
                counters.sends_behind_boundary,
                counters.acks_ignored,
                counters.flips
            ),
        );
        assert!(counters.shifts > 100, "{fault:?}: {counters:?}");
        if fault != Fault::M2 {
            assert!(
                counters.sends_behind_boundary > 100,
                "{fault:?}: {counters:?}"
            );
            assert!(counters.acks_ignored > 100, "{fault:?}: {counters:?}");
            assert!(counters.flips > 300, "{fault:?}: {counters:?}");
        }
    }
}

// The other half of the trap: congestion is not answered either.
#[test]
fn the_trapped_ignore_losses() {
    for fault in [Fault::M1, Fault::M1Clamp] {
        let mut path = at_the_floor(faulty(fault));
        path.batch_rounds(ms(10), 50);
        let before = path.transitions().len();
        for _ in 0..5 {
            path.cut(ms(10));
            path.batch_rounds(ms(10), 3);
        }
        let counters = counters(&path);
        report(
            &format!("trap/{}/losses-ignored", fault.name()),
            counters.losses_ignored,
            ">=1",
        );
        assert!(counters.losses_ignored >= 1, "{fault:?}: {counters:?}");
        assert_eq!(path.transitions().len(), before, "no new recovery period");
    }
}

#[test]
fn m3_is_caught_by_the_sum_of_its_shifts_alone() {
    let trap = Trap::play(faulty(Fault::M3));
    assert!(trap.grows(), "it does not stall: {}", trap.windows[199]);
    assert!(trap.counters.shifts > 100, "{:?}", trap.counters);
    assert!(trap.counters.shifted > ms(1_000), "{:?}", trap.counters);
    // The curve is frozen at its beginning, so what growth there is is Reno's: 705 after 10 round trips and 748
    // after 91, where the curve has 784 and 1,000.
    let windows = batched_curve(faulty(Fault::M3));
    for (round, wanted) in [(10, 705), (91, 748)] {
        let got = windows[round - 1];
        report(
            &format!("M3/curve/{round}rtt"),
            packets(got),
            format!("{wanted}pkt"),
        );
        assert_eq!(got.as_u64() / PACKET.as_u64(), wanted);
    }
}

#[test]
fn noshift_never_shifts_and_explodes_after_silence() {
    let mut path = at_the_floor(faulty(Fault::NoShift));
    path.batch_rounds(ms(10), 10);
    path.wait(ms(60_000));
    path.batch_rounds(ms(10), 1);
    assert_eq!(counters(&path).shifts, 0);
    let steps = steps_after_idle(faulty(Fault::NoShift), ms(60_000));
    let total: ByteCount = steps.into_iter().sum();
    report("NoShift/idle-60s/10rtt", packets(total), ">100pkt");
    assert!(total > PACKET * 100, "{total}");
}

// The fix of the stack that had the fault must pass the trap; its one stamp still moves when there is a pause.
#[test]
fn m1fix_escapes_and_still_moves_its_boundary_after_a_pause() {
    let trap = Trap::play(faulty(Fault::M1Fix));
    report(
        "trap/cubic-m1fix/10-and-100cycles",
        format!("{}-{}", trap.windows[9].as_u64(), trap.windows[99].as_u64()),
        ">=9600->=110000",
    );
    assert!(trap.passes());
    let mut path = at_the_floor(faulty(Fault::M1Fix));
    path.batch_rounds(ms(10), 10);
    path.wait(ms(1_000));
    path.batch_rounds(ms(10), 1);
    let counters = counters(&path);
    assert_eq!((counters.shifts, counters.shifted), (1, ms(1_000)));
}

#[test]
fn the_real_controller_leaves_no_time_out_and_ignores_nothing() {
    let trap = Trap::play(Algorithm::CUBIC);
    let counters = trap.counters;
    report(
        "A8/shifted-over-200cycles",
        format!("{}ns", counters.shifted.as_nanos()),
        "0ns",
    );
    assert_eq!(counters.shifts, 0);
    assert_eq!(counters.sends_behind_boundary, 0);
    assert_eq!(counters.acks_ignored, 0);
    assert_eq!(counters.losses_ignored, 0);
    assert!(counters.flips <= 12, "two per cut: {}", counters.flips);
    // And what a pause leaves out is the pause.
    let mut path = at_the_floor(Algorithm::CUBIC);
    path.batch_rounds(ms(10), 10);
    path.wait(ms(1_000));
    path.batch_rounds(ms(10), 1);
    assert_eq!(self::counters(&path).shifted, ms(1_000));
}
