//! What is common to all formats: compression, broken files, filters, memory.

use std::io::{self, Cursor, Read, Write};

use tidegate_engine::Timestamp;
use tidegate_workload::access_log::{AccessLog, Filter, Options, Spread, Window};

use super::{fixture, read, show};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_compressed_log_says_the_same() {
    let plain = fixture("haproxy.log");
    let half = plain.len() / 2;
    let members = [packed(&plain[..half]), packed(&plain[half..])].concat();
    let (entries, _, log) = read(members, Options::default());
    assert!(log.recognised().compressed);
    assert_eq!(entries, read(plain, Options::default()).0);
}

#[test]
fn a_cut_file_gives_all_that_was_before_the_cut_and_says_where() {
    let lines = fixture("nginx-combined.log").repeat(100);
    let mut whole = packed(&lines);
    whole.truncate(whole.len() - 200);
    let mut log = AccessLog::open(Cursor::new(whole), Options::default()).unwrap();
    let entries = log.by_ref().count() as u64;
    let failure = log.failure().unwrap();
    assert!((201..2_800).contains(&entries), "{entries}");
    assert_eq!((failure.after_line, log.tally().lines), (entries, entries));
    assert!(failure.to_string().starts_with(&format!("the log cannot be read beyond line {entries} (byte ")));
}

/// Gives some lines, then fails.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_file_that_fails_within_its_first_lines_still_gives_them() {
    let mut log = AccessLog::open(Failing(Cursor::new(fixture("caddy.log"))), Options::default()).unwrap();
    assert_eq!(log.by_ref().count(), 27);
    let failure = log.failure().unwrap().to_string();
    assert!(failure.ends_with("the disk is gone"), "{failure}");
    let error = AccessLog::open(Failing(Cursor::new(Vec::new())), Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "the log cannot be read: the disk is gone");
    let error = AccessLog::open(Failing(Cursor::new(b"\n".repeat(9))), Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "the log cannot be read beyond line 9 (byte 9): the disk is gone");
}

#[test]
fn entries_that_are_not_wanted_are_counted_by_what_speaks_against_them() {
    let count = |filter: Filter| {
        let (entries, tally, _) = read(fixture("haproxy.log"), Options { filter, ..Options::default() });
        (entries.len(), tally.filtered)
    };
    let (kept, filtered) = count(Filter { without_paths: vec!["/orders/*".into()], ..Filter::default() });
    assert_eq!((kept, filtered.path, filtered.total()), (20, 8, 8));
    let (kept, filtered) = count(Filter { paths: vec!["/orders/*".into()], ..Filter::default() });
    assert_eq!((kept, filtered.path), (8, 20));
    let (kept, filtered) = count(Filter { statuses: vec![500..=599, 429..=429], ..Filter::default() });
    assert_eq!((kept, filtered.status), (10, 18));
    let (kept, filtered) = count(Filter { methods: vec!["post".into()], ..Filter::default() });
    assert_eq!((kept, filtered.method), (1, 27));
    let (kept, filtered) = count(Filter { routes: vec!["dead".into(), "no*".into()], ..Filter::default() });
    assert_eq!((kept, filtered.route), (2, 26));
    let (kept, filtered) = count(Filter { hosts: vec!["*.test".into()], ..Filter::default() });
    assert_eq!((kept, filtered.host), (0, 28));
}

#[test]
fn a_window_of_time_has_a_first_moment_and_one_after_its_last() {
    let all = read(fixture("haproxy.log"), Options::default()).0;
    let at = |index: usize| Timestamp::from_nanos(all[index].arrived.as_nanos());
    let filter = Filter { from: Some(at(3)), until: Some(at(8)), ..Filter::default() };
    let (entries, tally, _) = read(fixture("haproxy.log"), Options { filter, ..Options::default() });
    assert_eq!(entries, all[3..8]);
    assert_eq!(tally.filtered.time, 23);
}

#[test]
fn whole_seconds_can_be_kept_as_they_are() {
    let options = Options { spread: Spread::Off, ..Options::default() };
    let (entries, _, log) = read(fixture("apache-common.log"), options);
    assert!(log.recognised().time.ends_with("all requests of a second come at its beginning."));
    assert!(entries.iter().all(|entry| entry.arrived.as_nanos() % 1_000_000_000 == 0));
}

#[test]
fn what_comes_too_late_for_a_narrow_window_is_counted() {
    let window = Window { entries: 1, ..Window::default() };
    let (entries, tally, _) = read(fixture("haproxy.log"), Options { window, ..Options::default() });
    assert_eq!(entries.len(), 28);
    assert!(tally.late > 0);
    assert_eq!(read(fixture("haproxy.log"), Options::default()).1.late, 0);
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    let line = b"127.0.0.1 - - [14/Mar/2025:09:26:53 +0100] \"GET /caf\xe9 HTTP/1.1\" 200 5\n";
    let (entries, _, _) = read(line.to_vec(), Options::default());
    assert_eq!(show(&entries[0]), "1 08:26:53.500 200 GET \"/caf\u{fffd}\" client=127.0.0.1 bytes=5");
}
