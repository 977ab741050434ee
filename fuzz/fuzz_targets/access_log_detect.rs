//! Any file, its format to be found out; compressed ones too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_all;
use tidegate_workload::access_log::Choice;

fuzz_target!(|bytes: &[u8]| read_all(bytes, Choice::Detect));
