//! What must hold of every access log, whatever is in it.

use std::io::Cursor;

use tidegate_workload::access_log::{AccessLog, Choice, Options, Window};

/// Reads all of a log. Every line is accounted for, entries come in order, and messages have an end.
pub fn read_all(bytes: &[u8], format: Choice) {
    let window = Window { entries: 8, ..Window::default() };
    let options = Options { format, window, line_max: 1_024, ..Options::default() };
    let mut log = match AccessLog::open(Cursor::new(bytes.to_vec()), options) {
        Ok(log) => log,
        Err(error) => {
            assert!(error.to_string().len() < 4_096, "{error}");
            return;
        }
    };
    let mut last = None;
    let mut count = 0;
    for entry in log.by_ref() {
        assert!(last <= Some(entry.arrived), "out of order");
        assert!(entry.path.len() <= 1_024);
        last = Some(entry.arrived);
        count += 1;
    }
    let tally = log.tally();
    assert_eq!(tally.entries, count);
    assert_eq!(tally.lines, tally.entries + tally.unreadable + tally.skipped + tally.filtered.total());
    for unreadable in &tally.unreadable_first {
        assert!(unreadable.to_string().len() < 4_096, "{unreadable}");
    }
}

/// The first line of the input, and the rest.
pub fn first_line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}
