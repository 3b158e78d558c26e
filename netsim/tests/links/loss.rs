//! Scripted and random loss.

use std::time::Duration;

use netsim::{Labels, LossPlace, PipeConfig, RandomStreams, SpacedDrops};
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::bench::{Bench, percent, row, span_ms};

const MS_PER_KB: Rate = Rate::from_mbps(8);

#[test]
fn scripted_drops_take_the_arrivals_they_name() {
    let mut bench = Bench::new(PipeConfig {
        drop_packets: vec![7, 2, 2, 1, 999],
        ..PipeConfig::default()
    });
    for _ in 0..10 {
        bench.send(Timestamp::ZERO, 100);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [3, 4, 5, 6, 8, 9, 10]);
    assert_eq!(
        bench.pipe.counters().dropped_scripted.bytes,
        ByteCount::new(300)
    );
}

/// Offers twice the rate for 20 s with 10 % loss.
fn overloaded(loss_place: LossPlace) -> Bench {
    let mut bench = Bench::new(PipeConfig {
        rate: MS_PER_KB,
        queue: ByteCount::kb(50),
        loss: percent(10),
        loss_place,
        ..PipeConfig::default()
    });
    for n in 0..40_000 {
        bench.send(Timestamp::from_micros(n * 500), 1_000);
    }
    bench
}

#[test]
fn loss_before_the_queue_takes_from_the_load() {
    let bench = overloaded(LossPlace::BeforeQueue);
    let counters = bench.pipe.counters();
    // 4,000 expected, standard deviation 60. What is left of the load still saturates the link.
    assert!(counters.dropped_loss_before.packets.abs_diff(4_000) < 240);
    assert!(
        counters.delivered.packets.abs_diff(20_000) <= 1,
        "{}",
        counters.delivered.packets
    );
    assert_eq!(counters.dropped_loss_after.packets, 0);
}

#[test]
fn loss_after_the_queue_takes_from_the_output() {
    let bench = overloaded(LossPlace::AfterQueue);
    let counters = bench.pipe.counters();
    // 2,000 of the 20,000 that crossed the link expected, standard deviation 42.
    assert!(counters.dropped_loss_after.packets.abs_diff(2_000) < 170);
    assert!(
        (counters.delivered.packets + counters.dropped_loss_after.packets).abs_diff(20_000) <= 1
    );
    assert_eq!(counters.dropped_loss_before.packets, 0);
}

#[test]
fn a_packet_lost_on_the_wire_has_used_link_time() {
    for (loss_place, busy) in [
        (LossPlace::BeforeQueue, span_ms(0)),
        (LossPlace::AfterQueue, span_ms(10)),
    ] {
        let mut bench = Bench::new(PipeConfig {
            rate: MS_PER_KB,
            loss: Fraction::ONE,
            loss_place,
            ..PipeConfig::default()
        });
        for _ in 0..10 {
            bench.send(Timestamp::ZERO, 1_000);
        }
        bench.drain();
        assert_eq!(bench.pipe.counters().busy_time, busy);
        assert_eq!(bench.pipe.counters().dropped().packets, 10);
    }
}

#[test]
fn below_saturation_both_places_lose_the_same_packets() {
    let arrived = |loss_place| {
        let mut bench = Bench::new(PipeConfig {
            rate: MS_PER_KB,
            loss: percent(10),
            loss_place,
            ..PipeConfig::default()
        });
        for n in 0..10_000 {
            bench.send(Timestamp::from_micros(n * 2_000), 1_000);
        }
        bench.drain();
        bench.arrived
    };
    let before = arrived(LossPlace::BeforeQueue);
    assert!(before.len() > 8_000 && before.len() < 10_000);
    assert_eq!(before, arrived(LossPlace::AfterQueue));
}

/// A million arrivals: the number of losses is binomial (z below 4) and they come in no pattern
/// (the number of runs of equal fate is what chance gives, two-sided p above 0.001).
#[test]
fn random_loss_is_binomial_and_without_memory() {
    for (ppb, loss_place) in [
        (10_000_000, LossPlace::AfterQueue),
        (10_000_000, LossPlace::BeforeQueue),
        (300_000_000, LossPlace::AfterQueue),
    ] {
        let n = 1_000_000_u32;
        let loss = Fraction::from_ppb(ppb).unwrap();
        let mut bench = Bench::new(PipeConfig {
            loss,
            loss_place,
            ..PipeConfig::default()
        });
        for at in 0..n {
            bench.send(Timestamp::from_nanos(u64::from(at)), 100);
        }
        bench.drain();
        let mut is_lost = vec![true; bench.sent.try_into().unwrap()];
        for number in bench.numbers() {
            is_lost[usize::try_from(number - 1).unwrap()] = false;
        }
        let lost = f64::from(u32::try_from(is_lost.iter().filter(|lost| **lost).count()).unwrap());
        let runs = 1 + is_lost.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let runs = f64::from(u32::try_from(runs).unwrap());
        let n = f64::from(n);

        let p = loss.as_f64();
        let z = (lost - n * p) / (n * p * (1.0 - p)).sqrt();
        assert!(z.abs() < 4.0, "{lost} lost of {n} at {loss}: z = {z:.2}");
        let place = match loss_place {
            LossPlace::BeforeQueue => "before",
            LossPlace::AfterQueue => "after",
        };
        let name = |what| format!("Bernoulli {loss} {place} the queue, a million packets: {what}");
        row(
            &name("lost"),
            format!("{lost}, z = {z:.2}"),
            format!("{:.0}, z below 4", n * p),
        );

        // Wald and Wolfowitz: given the counts, the number of runs is about normal.
        let expected = 1.0 + 2.0 * lost * (n - lost) / n;
        let variance = (expected - 1.0) * (expected - 2.0) / (n - 1.0);
        let z = (runs - expected) / variance.sqrt();
        assert!(
            z.abs() < 3.29,
            "{runs} runs, {expected:.0} expected at {loss}: z = {z:.2}"
        );
        let p = libm::erfc(z.abs() / std::f64::consts::SQRT_2);
        assert!(p > 0.001);
        row(
            &name("runs of equal fate"),
            format!("{runs}, p = {p:.3}"),
            format!("{expected:.0}, p above 0.001"),
        );
    }
}

#[test]
fn the_fate_of_an_arrival_depends_on_its_number_only() {
    let lost_with = |config: PipeConfig, gap: Duration| {
        let mut bench = Bench::with_streams(config, &RandomStreams::new(9), "forward");
        let mut at = Timestamp::ZERO;
        for _ in 0..2_000 {
            bench.send(at, 1_000);
            at += gap;
        }
        bench.drain();
        let arrived = bench.numbers();
        (1..=2_000)
            .filter(|number| arrived.binary_search(number).is_err())
            .collect::<Vec<u64>>()
    };
    let plain = PipeConfig {
        loss: percent(3),
        ..PipeConfig::default()
    };
    let expected = lost_with(plain.clone(), span_ms(1));
    assert!(expected.len() > 30);

    // The rate and the gaps make no difference, with packets in a queue neither.
    assert_eq!(
        lost_with(
            PipeConfig {
                rate: MS_PER_KB,
                ..plain.clone()
            },
            Duration::ZERO
        ),
        expected
    );

    // A script takes its packets and leaves the luck of the others alone.
    let mut with_script = lost_with(
        PipeConfig {
            drop_packets: vec![1, 2, 3],
            ..plain.clone()
        },
        span_ms(1),
    );
    with_script.retain(|number| *number > 3);
    assert_eq!(
        with_script,
        expected
            .iter()
            .copied()
            .filter(|number| *number > 3)
            .collect::<Vec<_>>()
    );

    // A lower probability loses a part of the same packets.
    let fewer = lost_with(
        PipeConfig {
            loss: percent(1),
            ..plain
        },
        span_ms(1),
    );
    assert!(!fewer.is_empty() && fewer.len() < expected.len());
    assert!(fewer.iter().all(|number| expected.contains(number)));
}

#[test]
fn spaced_drops_take_the_first_large_packet_when_their_time_has_come() {
    let mut bench = Bench::new(PipeConfig {
        drop_spaced: vec![SpacedDrops {
            count: 3,
            gap: span_ms(10),
            at_least: ByteCount::new(1_000),
            wants: [Labels(0); 3],
            skip: 1,
        }],
        ..PipeConfig::default()
    });
    // Numbers 1 to 20, every 4 ms from 0 on; the even ones are small.
    for n in 0..20 {
        let size = if n % 2 == 0 { 1_000 } else { 999 };
        bench.send(Timestamp::from_millis(n * 4), size);
    }
    bench.drain();
    // The second large one, number 3 at 8 ms, then 10 ms after each drop: 24 ms (7), 40 ms (11), and no fourth.
    assert_eq!(
        bench.numbers(),
        [1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    );
    let counters = bench.pipe.counters();
    assert_eq!(counters.dropped_scripted.packets, 3);
}

#[test]
fn spaced_drops_without_a_gap_take_one_packet_after_the_other() {
    let rule = |count| SpacedDrops {
        count,
        gap: span_ms(0),
        at_least: ByteCount::ZERO,
        wants: [Labels(0); 3],
        skip: 0,
    };
    let mut bench = Bench::new(PipeConfig {
        // The second rule starts where the first has done its work.
        drop_spaced: vec![rule(2), rule(1)],
        ..PipeConfig::default()
    });
    for _ in 0..5 {
        bench.send(Timestamp::ZERO, 100);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [4, 5]);
}

#[test]
fn spaced_drops_take_what_has_one_of_the_labels_wanted_of_each_kind() {
    let rule = |wants| PipeConfig {
        drop_spaced: vec![SpacedDrops {
            count: 100,
            gap: span_ms(0),
            at_least: ByteCount::ZERO,
            wants,
            skip: 1,
        }],
        ..PipeConfig::default()
    };
    let dropped = |wants: [u64; 3]| -> Vec<u64> {
        let mut bench = Bench::new(rule(wants.map(Labels)));
        for labels in 0..8 {
            bench.send_labelled(Timestamp::ZERO, 100, Labels(labels));
        }
        bench.drain();
        let arrived = bench.numbers();
        (1..=8).filter(|number| !arrived.contains(number)).collect()
    };
    // Packet n has the labels of n - 1; the first that is meant is let through.
    assert_eq!(dropped([0, 0, 0]), [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(dropped([0b001, 0, 0]), [4, 6, 8]);
    assert_eq!(dropped([0, 0b011, 0]), [3, 4, 6, 7, 8]);
    assert_eq!(dropped([0b001, 0b110, 0]), [6, 8]);
    assert_eq!(dropped([0b001, 0b010, 0b100]), Vec::<u64>::new());
    assert_eq!(dropped([0b1000, 0, 0]), Vec::<u64>::new());
}
