//! Timed changes: rate, delay and queue steps, loss phases, and what is refused.

use std::time::Duration;

use netsim::{Change, ConfigError, LossPlace, Pipe, PipeConfig, RandomStreams};
use units::{ByteCount, Fraction, Rate, Timestamp};

use crate::bench::{Bench, ms, percent, row, span_ms};

const MS_PER_KB: Rate = Rate::from_mbps(8);

fn plain() -> PipeConfig {
    PipeConfig {
        rate: MS_PER_KB,
        ..PipeConfig::default()
    }
}

#[test]
fn a_rate_step_applies_from_the_next_packet() {
    let mut bench = Bench::new(plain());
    // 1.5 ms in, the second packet is in the serialiser: it ends at the old rate, the third takes 4
    // ms.
    bench
        .pipe
        .schedule(
            Timestamp::from_micros(1_500),
            Change::Rate(Rate::from_mbps(2)),
        )
        .unwrap();
    for _ in 0..4 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench.drain();
    assert_eq!(
        bench.arrived,
        [(ms(1), 1), (ms(2), 2), (ms(6), 3), (ms(10), 4)]
    );
    let mut before = Timestamp::ZERO;
    let times = bench.arrived.iter().map(|(at, _)| {
        let time = at.saturating_since(before);
        before = *at;
        time
    });
    row(
        "rate step, 8 to 2 Mbit/s while the second of 4 packets is sent: serialisation of each",
        list_ms(times),
        "1, 1, 4, 4 ms, exact",
    );
}

fn list_ms(times: impl Iterator<Item = Duration>) -> String {
    let times: Vec<String> = times
        .map(|time| format!("{:.3}", time.as_secs_f64() * 1e3))
        .collect();
    format!("{} ms", times.join(", "))
}

#[test]
fn a_packet_that_starts_at_the_instant_of_a_rate_step_has_the_new_rate() {
    let mut bench = Bench::new(plain());
    bench
        .pipe
        .schedule(ms(1), Change::Rate(Rate::from_mbps(4)))
        .unwrap();
    bench
        .pipe
        .schedule(ms(20), Change::Rate(Rate::from_mbps(16)))
        .unwrap();
    bench.send(Timestamp::ZERO, 1_000);
    bench.send(Timestamp::ZERO, 1_000); // starts at 1 ms, when the first has left
    bench.send(ms(20), 1_000); // finds the pipe idle at the instant of the second step
    bench.drain();
    assert_eq!(bench.nanos(), [1_000_000, 3_000_000, 20_500_000]);
}

#[test]
fn steps_neither_lose_nor_repeat_a_packet() {
    let mut bench = Bench::new(PipeConfig {
        delay: span_ms(10),
        ..plain()
    });
    for step in 1..200 {
        let at = Timestamp::from_micros(step * 777);
        bench
            .pipe
            .schedule(at, Change::Rate(Rate::from_kbps(step * 7_919 % 20_000)))
            .unwrap();
        bench
            .pipe
            .schedule(
                at,
                Change::Delay(Duration::from_micros(step * 7_907 % 30_000)),
            )
            .unwrap();
    }
    bench
        .pipe
        .schedule(ms(200), Change::Rate(MS_PER_KB))
        .unwrap();
    for n in 0..300 {
        bench.send(Timestamp::from_micros(n * 500), 1_000);
    }
    bench.drain();
    assert_eq!(bench.numbers(), (1..=300).collect::<Vec<_>>());
    assert!(bench.arrived.is_sorted());

    let numbers = bench.numbers();
    let mut known = numbers.clone();
    known.sort_unstable();
    known.dedup();
    let overtaken = numbers.windows(2).filter(|pair| pair[1] < pair[0]).count();
    row(
        "rate and RTT steps, 398 among 300 packets: lost, doubled, overtaken",
        format!(
            "{}, {}, {overtaken}",
            bench.sent - known.len() as u64,
            numbers.len() - known.len()
        ),
        "0, 0, 0",
    );
}

#[test]
fn a_rate_of_zero_holds_packets_until_it_is_raised() {
    let mut bench = Bench::new(plain());
    bench
        .pipe
        .schedule(Timestamp::from_micros(500), Change::Rate(Rate::ZERO))
        .unwrap();
    for _ in 0..3 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench.drain();
    // The packet in the serialiser ended at its own rate; nothing will happen by itself any more.
    assert_eq!(bench.arrived, [(ms(1), 1)]);
    assert_eq!(bench.pipe.next_event(), None);
    assert_eq!(bench.pipe.counters().queued.packets, 2);

    bench.send(ms(70), 1_000);
    bench
        .pipe
        .schedule(ms(90), Change::Rate(MS_PER_KB))
        .unwrap();
    bench.drain();
    assert_eq!(bench.arrived[1..], [(ms(91), 2), (ms(92), 3), (ms(93), 4)]);
}

#[test]
fn a_pipe_may_begin_standing_still_and_its_queue_has_its_limit() {
    let mut bench = Bench::new(PipeConfig {
        rate: Rate::ZERO,
        queue: ByteCount::kb(2),
        ..plain()
    });
    for _ in 0..3 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench
        .pipe
        .schedule(ms(5), Change::Rate(Rate::INFINITE))
        .unwrap();
    bench.drain();
    assert_eq!(bench.arrived, [(ms(5), 1), (ms(5), 2)]);
}

#[test]
fn a_longer_delay_holds_from_the_instant_of_the_change() {
    let mut bench = Bench::new(PipeConfig {
        delay: span_ms(10),
        ..plain()
    });
    bench
        .pipe
        .schedule(ms(2), Change::Delay(span_ms(30)))
        .unwrap();
    for _ in 0..3 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench.drain();
    // They leave at 1, 2 and 3 ms; the second leaves at the instant of the change.
    assert_eq!(bench.arrived, [(ms(11), 1), (ms(32), 2), (ms(33), 3)]);
    let delays = bench
        .arrived
        .iter()
        .map(|(at, n)| at.saturating_since(ms(*n)));
    row(
        "RTT step, delay 10 to 30 ms as the second of 3 packets leaves: delay of each",
        list_ms(delays),
        "10, 30, 30 ms, exact",
    );
}

#[test]
fn a_shorter_delay_never_overtakes() {
    let mut bench = Bench::new(PipeConfig {
        delay: span_ms(30),
        ..plain()
    });
    bench
        .pipe
        .schedule(ms(2), Change::Delay(span_ms(10)))
        .unwrap();
    for n in 0..3 {
        bench.send(ms(n), 1_000);
    }
    bench.send(ms(40), 1_000);
    bench.drain();
    // The second and third would be there at 12 and 13 ms; they wait for the first.
    assert_eq!(
        bench.arrived,
        [(ms(31), 1), (ms(31), 2), (ms(31), 3), (ms(51), 4)]
    );
}

#[test]
fn a_smaller_queue_refuses_newcomers_and_keeps_what_waits() {
    let mut bench = Bench::new(PipeConfig {
        queue: ByteCount::kb(4),
        ..plain()
    });
    bench
        .pipe
        .schedule(Timestamp::from_micros(100), Change::Queue(ByteCount::kb(2)))
        .unwrap();
    for _ in 0..5 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench.send(Timestamp::from_micros(100), 1_000); // 4 wait: refused
    bench.send(ms(2), 1_000); // 3 left at 1 ms, 2 at 2 ms: refused
    bench.send(ms(3), 1_000); // 1 waits: accepted
    bench.drain();
    assert_eq!(bench.numbers(), [1, 2, 3, 4, 5, 8]);
}

#[test]
fn a_loss_phase_covers_its_first_instant_and_not_its_last() {
    for place in [LossPlace::BeforeQueue, LossPlace::AfterQueue] {
        let mut bench = Bench::new(PipeConfig {
            loss_place: place,
            ..PipeConfig::default()
        });
        bench
            .pipe
            .schedule(ms(10), Change::Loss(Fraction::ONE))
            .unwrap();
        bench
            .pipe
            .schedule(ms(20), Change::Loss(Fraction::ZERO))
            .unwrap();
        for nanos in [9_999_999, 10_000_000, 15_000_000, 19_999_999, 20_000_000] {
            bench.send(Timestamp::from_nanos(nanos), 1_000);
        }
        bench.drain();
        assert_eq!(bench.nanos(), [9_999_999, 20_000_000], "{place:?}");
    }
}

#[test]
fn wire_loss_is_that_of_the_instant_the_packet_leaves() {
    let mut bench = Bench::new(plain());
    bench
        .pipe
        .schedule(ms(2), Change::Loss(Fraction::ONE))
        .unwrap();
    for _ in 0..3 {
        bench.send(Timestamp::ZERO, 1_000);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [1]);
    assert_eq!(bench.pipe.counters().dropped_loss_after.packets, 2);
}

#[test]
fn the_place_of_loss_can_move() {
    let mut bench = Bench::new(PipeConfig {
        loss: Fraction::ONE,
        ..plain()
    });
    bench
        .pipe
        .schedule(ms(5), Change::LossPlace(LossPlace::BeforeQueue))
        .unwrap();
    bench.send(Timestamp::ZERO, 1_000);
    bench.send(ms(5), 1_000);
    bench.drain();
    let counters = bench.pipe.counters();
    assert_eq!(
        (
            counters.dropped_loss_after.packets,
            counters.dropped_loss_before.packets
        ),
        (1, 1)
    );
    assert_eq!(counters.busy_time, span_ms(1));
}

#[test]
fn the_next_arrivals_can_be_dropped() {
    let mut bench = Bench::new(PipeConfig {
        drop_packets: vec![3],
        ..plain()
    });
    bench.pipe.schedule(ms(2), Change::DropNext(2)).unwrap();
    bench.pipe.schedule(ms(7), Change::DropNext(1)).unwrap();
    bench.pipe.schedule(ms(7), Change::DropNext(1)).unwrap();
    for n in 1..=10 {
        bench.send(ms(n), 500);
    }
    bench.drain();
    assert_eq!(bench.numbers(), [1, 4, 5, 6, 9, 10]);
    assert_eq!(bench.pipe.counters().dropped_scripted.packets, 4);
}

#[test]
fn changes_at_one_instant_happen_in_the_order_they_were_scheduled() {
    let mut bench = Bench::new(plain());
    for kbps in [1_000, 32_000, 4_000] {
        bench
            .pipe
            .schedule(ms(1), Change::Rate(Rate::from_kbps(kbps)))
            .unwrap();
    }
    bench.send(ms(1), 1_000);
    bench.drain();
    assert_eq!(bench.arrived, [(ms(3), 1)]);
}

#[test]
fn the_settings_in_force_can_be_read() {
    let mut bench = Bench::new(plain());
    let changes = [
        Change::Rate(Rate::from_mbps(1)),
        Change::Delay(span_ms(2)),
        Change::Queue(ByteCount::kb(3)),
        Change::Loss(percent(4)),
        Change::LossPlace(LossPlace::BeforeQueue),
    ];
    for change in changes {
        bench.pipe.schedule(ms(5), change).unwrap();
    }
    bench.run_until(Timestamp::from_nanos(4_999_999));
    assert_eq!(*bench.pipe.config(), plain());
    bench.run_until(ms(5));
    let now = PipeConfig {
        rate: Rate::from_mbps(1),
        delay: span_ms(2),
        queue: ByteCount::kb(3),
        loss: percent(4),
        loss_place: LossPlace::BeforeQueue,
        ..PipeConfig::default()
    };
    assert_eq!(*bench.pipe.config(), now);
}

#[test]
fn what_is_out_of_range_is_refused_in_one_clear_line() {
    let streams = RandomStreams::new(1);
    let refused = |config: PipeConfig| {
        Pipe::<()>::new(config, &streams, "forward")
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let too_long = PipeConfig::LONGEST_DELAY + Duration::from_nanos(1);
    assert_eq!(
        refused(PipeConfig {
            delay: too_long,
            ..PipeConfig::default()
        }),
        "pipe \"forward\": delay 3600.000000001 s is too long, at most 3600 s"
    );
    assert_eq!(
        refused(PipeConfig {
            drop_packets: vec![5, 0],
            ..PipeConfig::default()
        }),
        "pipe \"forward\": there is no packet 0 to drop, the first is 1"
    );

    let mut pipe = Pipe::<()>::new(PipeConfig::default(), &streams, "reverse").unwrap();
    pipe.advance(ms(5), &mut |_, _| ());
    let refused = |error: Result<(), ConfigError>| error.unwrap_err().to_string();
    assert_eq!(
        refused(pipe.schedule(ms(9), Change::Delay(too_long))),
        "pipe \"reverse\": delay 3600.000000001 s is too long, at most 3600 s"
    );
    assert_eq!(
        refused(pipe.schedule(ms(9), Change::DropNext(0))),
        "pipe \"reverse\": dropping the next 0 packets does nothing, at least 1"
    );
    assert_eq!(
        refused(pipe.schedule(ms(4), Change::Rate(MS_PER_KB))),
        "pipe \"reverse\": a change at 0.004000000 s is in the past, at least 0.005000000 s"
    );
    // A refused change leaves nothing behind; the present and the longest delay are within range.
    assert_eq!(pipe.next_event(), None);
    assert_eq!(
        pipe.schedule(ms(5), Change::Delay(PipeConfig::LONGEST_DELAY)),
        Ok(())
    );
}
