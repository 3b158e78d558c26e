//! Writing an event allocates nothing. Alone in its file, because the counter sees the whole process.
#![expect(unsafe_code, reason = "an allocator that counts has no safe form")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;

use qlogs::Writer;
use units::Timestamp;

mod events;

#[test]
fn nothing_is_allocated_per_event() {
    let story = events::story();
    let mut writer = Writer::new(io::sink(), &events::header()).expect("a header");
    let mut play = |rounds: u64| {
        for round in 0..rounds {
            for (at, event) in &story {
                writer.write(Timestamp::from_secs(round).max(*at), event);
            }
        }
    };
    let before = allocation_count();
    play(100);
    let after = allocation_count();
    assert!(after > 0, "the counter counts");
    // 3,100 events and about ten pieces handed over.
    assert_eq!(after - before, 0);
}

thread_local! {
    /// Per thread, so that the test harness, which has its own, does not disturb.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocation_count() -> u64 {
    ALLOCATIONS.get()
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
