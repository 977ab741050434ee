//! Any scenario file: it is read, or what is wrong with it is said.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate_workload::Scenario;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A policy in a file of its own would be looked for on the machine that fuzzes.
    if text.contains("file") {
        return;
    }
    if let Err(error) = Scenario::parse(text, Path::new("fuzz.toml")) {
        assert!(!error.to_string().trim().is_empty());
    }
});
