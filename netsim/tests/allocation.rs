//! No packet costs an allocation: a counting allocator watches a busy pipe.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use netsim::{
    BurstLoss, CoDelConfig, Discipline, DualPi2Config, Ecn, FlowId, FqCoDelConfig, Jitter,
    LossPlace, Mishaps, Packet, PieConfig, Pipe, PipeConfig, Policer, RandomStreams, RedConfig,
    Shaper, Slots, Thinning, Trace,
};
use units::{ByteCount, Fraction, Rate, Timestamp};

/// The system's allocator, counting what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    // Fails only while a thread ends, when nobody counts any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[expect(
    unsafe_code,
    reason = "an allocator cannot be written without; every call goes to the system's unchanged"
)]
// SAFETY: all four methods hand the caller's arguments to the system's allocator, which upholds the
// contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        // SAFETY: as above; every block came from the system's allocator.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What [`a_busy_pipe_allocates_nothing_per_packet`] starts from: a link with a queue of half of its bandwidth-delay product.
fn link() -> PipeConfig {
    PipeConfig {
        rate: Rate::from_mbps(100),
        delay: Duration::from_millis(20),
        queue: ByteCount::kb(250),
        ..PipeConfig::default()
    }
}

/// Every queue discipline and every stage, by name.
fn pipes() -> Vec<(&'static str, PipeConfig)> {
    let percent = |value| Fraction::from_percent(value).unwrap();
    let ms = Duration::from_millis;
    let queue = |discipline| PipeConfig {
        discipline,
        ..link()
    };
    let jitter = |jitter| PipeConfig {
        jitter: Some(jitter),
        ..link()
    };
    let loss = |burst_loss, loss_place| PipeConfig {
        loss: percent(1),
        burst_loss: Some(burst_loss),
        loss_place,
        ..link()
    };
    let per_packet = BurstLoss::PerPacket {
        to_bad: percent(1),
        to_good: percent(25),
        loss_in_good: Fraction::ZERO,
        loss_in_bad: percent(100),
    };
    let per_time = BurstLoss::PerTime {
        mean_good: ms(100),
        mean_bad: ms(2),
        loss_in_good: Fraction::ZERO,
        loss_in_bad: percent(100),
    };
    vec![
        ("drop-tail", link()),
        ("codel", queue(Discipline::CoDel(CoDelConfig::default()))),
        (
            "fq-codel",
            queue(Discipline::FqCoDel(FqCoDelConfig::default())),
        ),
        ("pie", queue(Discipline::Pie(PieConfig::default()))),
        ("red", queue(Discipline::Red(RedConfig::default()))),
        (
            "dual-pi2",
            queue(Discipline::DualPi2(DualPi2Config::default())),
        ),
        ("loss after", loss(per_packet, LossPlace::AfterQueue)),
        ("loss before", loss(per_time, LossPlace::BeforeQueue)),
        ("walk", jitter(Jitter::Walk { amplitude: ms(20) })),
        ("clamped", jitter(Jitter::IidClamped { amplitude: ms(5) })),
        ("reordered", jitter(Jitter::IidReorder { amplitude: ms(5) })),
        ("wifi", jitter(Jitter::Wifi { level: ms(12) })),
        (
            "slots",
            PipeConfig {
                slots: Some(Slots {
                    period: ms(20),
                    at_most: None,
                }),
                ..link()
            },
        ),
        (
            "mishaps",
            PipeConfig {
                mishaps: Mishaps {
                    reorder: percent(1),
                    reorder_delay: ms(5),
                    duplicate: percent(1),
                    corrupt: percent(1),
                },
                ..link()
            },
        ),
        (
            "policer",
            PipeConfig {
                policer: Some(Policer {
                    rate: Rate::from_mbps(50),
                    burst: ByteCount::kb(24),
                }),
                ..link()
            },
        ),
        (
            "shaper",
            PipeConfig {
                shaper: Some(Shaper {
                    rate: Rate::from_mbps(50),
                    burst: ByteCount::kb(24),
                }),
                ..link()
            },
        ),
        (
            "thinning",
            PipeConfig {
                thinning: Some(Thinning {
                    at_most: ByteCount::new(100),
                    every: 10,
                    hold: ms(20),
                }),
                ..link()
            },
        ),
        (
            "trace",
            PipeConfig {
                trace: Some(Trace::new((1..=1_000).collect()).unwrap()),
                ..link()
            },
        ),
    ]
}

/// Packets of four flows, large and small, with and without ECN, at 1.15 times the rate.
#[test]
fn a_busy_pipe_allocates_nothing_per_packet() {
    for (name, config) in pipes() {
        let mut pipe = Pipe::new(config, &RandomStreams::new(1), "forward").unwrap();
        let (mut now, mut number) = (Timestamp::ZERO, 0_u32);
        let mut load = |pipe: &mut Pipe<[u64; 4]>, until: Timestamp| {
            while now < until {
                now += Duration::from_micros(90);
                pipe.advance(now, &mut |_, _| ());
                number += 1;
                let size = if number.is_multiple_of(7) { 80 } else { 1_500 };
                let packet = Packet {
                    flow: FlowId(number % 4),
                    ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][number as usize % 3],
                    ..Packet::new(ByteCount::new(size), [0; 4])
                };
                pipe.arrive(now, packet);
            }
        };
        // By then the queues have their size, and the record of the output, one number for 10 ms, has doubled to room for
        // 20.48 s. What follows is steady.
        load(&mut pipe, Timestamp::from_secs(11));
        let (packets, before) = (pipe.counters().offered.packets, allocations());
        load(&mut pipe, Timestamp::from_millis(20_400));
        let allocated = allocations() - before;
        let packets = pipe.counters().offered.packets - packets;

        assert!(packets > 100_000, "{name}: {packets}");
        let delivered = pipe.counters().delivered.packets;
        assert!(delivered > 50_000, "{name}: {delivered}");
        let dropped = pipe.counters().offered.packets - delivered;
        assert!(dropped > 10_000, "{name}: {dropped} dropped or waiting");
        assert_eq!(allocated, 0, "{name}: allocations for {packets} packets");
    }
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    let block = std::hint::black_box(vec![0_u8; 100]);
    assert!(allocations() > before, "{}", block.len());
}
