//! Any file, read as each of the known formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_all;
use tidegate_workload::access_log::{Choice, Format};

fuzz_target!(|bytes: &[u8]| {
    for format in Format::ALL {
        read_all(bytes, Choice::Known(format));
    }
});
