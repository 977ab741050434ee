//! Proves that the engine links without std: this library brings its own panic handler, and there can be only one.
//!
//! Not for running: the allocator is always out of memory. With the feature `canary` the build has to fail.
#![no_std]

#[cfg(feature = "canary")]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::time::Duration;

use tidegate_engine::Timestamp;

/// Gives nothing, which an allocator may always do.
struct Empty;

// SAFETY: a null pointer is the documented answer of an allocator that has no memory, so no block is ever handed out
// and none can be given back.
unsafe impl GlobalAlloc for Empty {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Empty = Empty;

#[panic_handler]
fn stop(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Something of the engine that has to be linked.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_probe(nanos: u64) -> u64 {
    Timestamp::from_nanos(nanos).after(Duration::from_secs(1)).as_nanos()
}
