//! A `log_format` of nginx on the first line, and a log after it; and all of it as an nginx.conf.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{first_line, read_all};
use tidegate_workload::access_log::{Choice, LogFormat};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(conf) = std::str::from_utf8(bytes) {
        let _ = LogFormat::from_conf(conf, None);
    }
    let Some((text, log)) = first_line(bytes) else { return };
    if let Ok(format) = text.parse::<LogFormat>() {
        read_all(log, Choice::Nginx(format));
    }
});
