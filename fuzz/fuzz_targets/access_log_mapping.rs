//! A mapping on the first line, and CSV or JSON lines after it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{first_line, read_all};
use tidegate_workload::access_log::{Choice, Mapping};

fuzz_target!(|bytes: &[u8]| {
    let Some((text, log)) = first_line(bytes) else { return };
    if let Ok(mapping) = text.parse::<Mapping>() {
        read_all(log, Choice::Mapped(mapping));
    }
});
