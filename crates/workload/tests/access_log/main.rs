//! The access-log readers, tried on logs of the real programs, on layouts written by hand, and on everything that can be
//! wrong with a line.
//!
//! One file a family of formats, then what is common to all: detection, order, malformed lines, properties.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod by_hand;
mod detection;
mod envoy;
mod haproxy;
mod json;
mod malformed;
mod mapped;
mod nginx;
mod properties;
mod reading;

use std::fmt::Write as _;
use std::io::Cursor;
use std::time::Duration;

use expect_test::Expect;
use tidegate_workload::access_log::{AccessLog, Entry, Options, Tally};

/// The bytes of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reads all of a log.
#[track_caller]
pub(crate) fn read(bytes: impl Into<Vec<u8>>, options: Options) -> (Vec<Entry>, Tally, AccessLog) {
    let mut log =
        AccessLog::open(Cursor::new(bytes.into()), options).unwrap_or_else(|error| panic!("{error}"));
    let entries: Vec<Entry> = log.by_ref().collect();
    let tally = log.tally().clone();
    let filtered = tally.filtered.total();
    assert_eq!(tally.lines, tally.entries + tally.unreadable + tally.skipped + filtered, "{tally:?}");
    assert!(entries.is_sorted_by_key(|entry| entry.arrived), "out of order");
    (entries, tally, log)
}

/// Reads all of a log and compares: what it was taken for, its entries, its unreadable lines.
#[track_caller]
pub(crate) fn check_with(bytes: impl Into<Vec<u8>>, options: Options, expected: &Expect) {
    let (entries, tally, log) = read(bytes, options);
    let mut text = format!("{}\n", log.recognised());
    for entry in &entries {
        writeln!(text, "{}", show(entry)).unwrap();
    }
    for unreadable in &tally.unreadable_first {
        writeln!(text, "unreadable: {unreadable}").unwrap();
    }
    assert!(log.failure().is_none());
    expected.assert_eq(&text);
}

/// [`check_with`] the format found out.
#[track_caller]
pub(crate) fn check(bytes: impl Into<Vec<u8>>, expected: &Expect) {
    check_with(bytes, Options::default(), expected);
}

/// An entry as one line: what it does not say is left out.
pub(crate) fn show(entry: &Entry) -> String {
    let nanos = entry.arrived.as_nanos();
    let (seconds, millis) = (nanos / 1_000_000_000 % 86_400, nanos / 1_000_000 % 1_000);
    let clock = format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{} {clock}", entry.line);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(text, " {name}{value}").unwrap();
        }
    };
    let millis = |time: Option<Duration>| time.map(|time| format!("{}", time.as_micros() as f64 / 1e3));
    let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    add("", entry.status.map(|status| status.to_string()));
    add("", owned(&entry.method));
    add("", Some(format!("{:?}", entry.path)));
    add("total=", millis(entry.total));
    add("queued=", millis(entry.queued));
    add("service=", millis(entry.service));
    add("host=", owned(&entry.host));
    add("client=", owned(&entry.client));
    add("bytes=", entry.bytes.map(|bytes| bytes.to_string()));
    add("route=", owned(&entry.route));
    add("tenant=", owned(&entry.tenant));
    add("attempts=", (entry.attempts != 1).then(|| entry.attempts.to_string()));
    add("refused", entry.refused.then(String::new));
    add("left", entry.left.then(String::new));
    text
}
