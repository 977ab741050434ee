//! Whatever a file has in it: nothing panics, every line is accounted for, and entries come in order.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_workload::access_log::{AccessLog, Choice, Format, LogFormat, Options, Window};

use super::fixture;

const LOGS: [&str; 13] = [
    "apache-common.log",
    "nginx-combined.log",
    "ingress-nginx.log",
    "haproxy-rfc3164.log",
    "haproxy-1.5.log",
    "envoy.log",
    "istio.log",
    "envoy-json.log",
    "alb.log",
    "traefik.log",
    "traefik-json.log",
    "caddy.log",
    "tidegate.log",
];

/// A log that somebody has scribbled on: bytes are replaced, put in and taken out.
fn scribbled() -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..60);
    (0..LOGS.len(), edits).prop_map(|(log, edits)| {
        let mut bytes = fixture(LOGS[log]);
        for (at, byte, kind) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => {
                    bytes.remove(at);
                }
            }
        }
        bytes
    })
}

fn choices() -> impl Strategy<Value = Choice> {
    let csv = "arrival=1,duration=2:ms,path=3".parse().unwrap();
    let json = "end=time,duration=total_ms,client=client".parse().unwrap();
    prop_oneof![
        Just(Choice::Detect),
        (0..Format::ALL.len()).prop_map(|at| Choice::Known(Format::ALL[at])),
        Just(Choice::Mapped(csv)),
        Just(Choice::Mapped(json)),
        Just(Choice::Nginx("$remote_addr $a [$time_local] $request $status".parse().unwrap())),
    ]
}

fn every_line_is_accounted_for(bytes: &[u8], format: Choice, entries: usize) -> Result<(), TestCaseError> {
    let window = Window { entries, ..Window::default() };
    let options = Options { format, window, line_max: 512, ..Options::default() };
    let Ok(mut log) = AccessLog::open(Cursor::new(bytes.to_vec()), options) else { return Ok(()) };
    let mut last = None;
    let mut count = 0;
    for entry in log.by_ref() {
        prop_assert!(last <= Some(entry.arrived));
        last = Some(entry.arrived);
        count += 1;
    }
    let tally = log.tally();
    prop_assert_eq!(tally.entries, count);
    prop_assert_eq!(tally.lines, tally.entries + tally.unreadable + tally.skipped + tally.filtered.total());
    prop_assert_eq!(tally.unreadable_first.len() as u64, tally.unreadable.min(20));
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let open_end = usize::from(bytes.last().is_some_and(|&byte| byte != b'\n'));
        prop_assert_eq!(tally.lines, (ends + open_end) as u64);
    }
    Ok(())
}

proptest! {
    #[test]
    fn scribbled_logs(bytes in scribbled(), format in choices(), window in 1..100_usize) {
        every_line_is_accounted_for(&bytes, format, window)?;
    }

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..2_000), format in choices()) {
        every_line_is_accounted_for(&bytes, format, 10)?;
    }

    #[test]
    fn arbitrary_formats_compile_or_say_why(text in "(\\$(msec|status|request|host|uri|x)|[ \"\\[\\]'\\\\${};]|log_format|\\PC){0,24}") {
        if let Ok(format) = text.parse::<LogFormat>() {
            every_line_is_accounted_for(&fixture("nginx-timed.log"), Choice::Nginx(format), 10)?;
        }
    }
}
