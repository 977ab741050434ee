//! The log of a real hour under overload, from the Debian package `python3-haproxy-log-analysis`. It is not ours to copy,
//! so it is read where it is installed; `cargo xtask test` installs it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tidegate_workload::access_log::{AccessLog, Entry, Options};

const LOG: &str = "/usr/lib/python3/dist-packages/haproxy/tests/files/huge.log";

#[test]
fn an_hour_of_an_overloaded_haproxy() {
    if !Path::new(LOG).exists() {
        eprintln!("skipped: {LOG} is missing; apt-get install python3-haproxy-log-analysis");
        return;
    }
    let mut log = AccessLog::open(File::open(LOG).unwrap(), Options::default()).unwrap();
    assert_eq!(log.recognised().format, "haproxy");
    let entries: Vec<Entry> = log.by_ref().collect();
    let tally = log.tally();
    assert!(log.failure().is_none());
    assert_eq!((tally.lines, tally.entries, tally.unreadable, tally.late), (4_610, 4_610, 0, 0));

    let queued = sorted(&entries, |entry| entry.queued);
    let service = sorted(&entries, |entry| entry.service);
    assert_eq!((queued.len(), service.len()), (4_610, 4_610));
    let millis = |times: &[Duration], share: f64| times[(times.len() as f64 * share) as usize].as_millis();
    let percentiles = |times: &[Duration]| [0.5, 0.95, 0.99].map(|share| millis(times, share));
    assert_eq!(percentiles(&queued), [6_126, 47_195, 67_886]);
    assert_eq!(percentiles(&service), [11_039, 36_964, 45_208]);

    let nobody_left = entries.iter().all(|entry| !entry.left && !entry.refused && entry.attempts == 1);
    assert!(nobody_left);
}

fn sorted(entries: &[Entry], time: impl Fn(&Entry) -> Option<Duration>) -> Vec<Duration> {
    let mut times: Vec<Duration> = entries.iter().filter_map(time).collect();
    times.sort();
    times
}
