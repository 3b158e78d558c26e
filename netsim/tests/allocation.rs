//! No packet costs an allocation: a counting allocator watches a busy pipe.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use netsim::{Packet, Pipe, PipeConfig, RandomStreams};
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

#[test]
fn a_busy_pipe_allocates_nothing_per_packet() {
    let config = PipeConfig {
        rate: Rate::from_mbps(1_000),
        delay: Duration::from_millis(20),
        queue: ByteCount::kb(250),
        loss: Fraction::from_percent(1).unwrap(),
        ..PipeConfig::default()
    };
    let mut pipe = Pipe::new(config, &RandomStreams::new(1), "forward").unwrap();
    let mut now = Timestamp::ZERO;
    let mut load = |pipe: &mut Pipe<[u64; 4]>, until: Timestamp| {
        // One packet each 10 us is 1.2 times the rate: the queue is full and drops.
        while now < until {
            now += Duration::from_micros(10);
            pipe.advance(now, &mut |_, _| ());
            pipe.arrive(now, Packet::new(ByteCount::new(1_500), [0; 4]));
        }
    };
    // After 6 s the queues have their size, and the record of the output, one number for 10 ms, has
    // doubled to room for 10.24 s. What follows is steady.
    load(&mut pipe, Timestamp::from_secs(6));
    let (packets, before) = (pipe.counters().offered.packets, allocations());
    load(&mut pipe, Timestamp::from_secs(9));
    let (packets, allocated) = (
        pipe.counters().offered.packets - packets,
        allocations() - before,
    );

    assert_eq!(packets, 300_000);
    assert!(
        pipe.counters().dropped_queue.packets > 10_000
            && pipe.counters().dropped_loss_after.packets > 1_000
    );
    assert_eq!(allocated, 0, "allocations for {packets} packets");
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    let block = std::hint::black_box(vec![0_u8; 100]);
    assert!(allocations() > before, "{}", block.len());
}
