//! The order of arrival, from the order of lines: a log is written when requests end, and its clock may be coarse.
//!
//! First the requests of one second are spread over it, if that is all that the log says of their time. Then a window
//! sorts by arrival. Both hold back a bounded number of entries; what comes too late for the window gets the time of
//! the last entry that went out, and is counted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use tidegate_engine::Timestamp;

use super::draft::{Reading, shares_its_second};
use super::entry::Entry;

const SECOND: u64 = 1_000_000_000;

/// What becomes of requests whose log has whole seconds only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// They are spread evenly over their second, in the order of their lines. A burst within a second is lost: the log
    /// does not have it.
    #[default]
    Even,
    /// They all come at the beginning of their second.
    Off,
}

impl Spread {
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Even => {
                "It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a \
                 second are lost."
            }
            Self::Off => "It has whole seconds only, and all requests of a second come at its beginning.",
        }
    }
}

/// How far entries may be out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// So many entries are held back at most. From 1 to 1,048,576.
    pub entries: usize,
    /// An entry goes out when one has come that arrived so much later. A request that took longer is late in a log that
    /// is written at the end.
    pub time: Duration,
}

impl Window {
    /// The largest number of entries.
    pub const ENTRIES_MAX: usize = 1_048_576;
}

impl Default for Window {
    fn default() -> Self {
        Self { entries: 65_536, time: Duration::from_secs(600) }
    }
}

/// Entries go in by line and come out by arrival.
#[derive(Debug)]
pub(crate) struct Order {
    spread: Spread,
    window: Window,
    /// The requests of each second that is not over yet.
    seconds: BTreeMap<u64, Vec<Entry>>,
    in_seconds: usize,
    /// By arrival, then by line.
    heap: BinaryHeap<Reverse<Sorted>>,
    out: VecDeque<Entry>,
    last_out: Timestamp,
    pub(crate) late: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Sorted(Entry);

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.arrived, self.0.line).cmp(&(other.0.arrived, other.0.line))
    }
}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Order {
    pub(crate) fn new(spread: Spread, window: Window) -> Self {
        let window = Window { entries: window.entries.clamp(1, Window::ENTRIES_MAX), ..window };
        Self {
            spread,
            window,
            seconds: BTreeMap::new(),
            in_seconds: 0,
            heap: BinaryHeap::new(),
            out: VecDeque::new(),
            last_out: Timestamp::ZERO,
            late: 0,
        }
    }

    /// Takes in the next line's entry.
    pub(crate) fn push(&mut self, reading: Reading) {
        let Reading { entry, stamp } = reading;
        if self.spread == Spread::Off || !shares_its_second(&entry) {
            return self.sort(entry);
        }
        let second = stamp.as_nanos() / SECOND;
        self.seconds.entry(second).or_default().push(entry);
        self.in_seconds += 1;
        // Workers write a little out of order, so a second is over when the one after the next has begun: by this line,
        // since by the latest of all, one line from the future would end every second that comes after it.
        while let Some(first) = self.seconds.first_entry()
            && (*first.key() + 1 < second || self.in_seconds > self.window.entries)
        {
            let entries = first.remove();
            self.spread_out(entries);
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        while let Some((_, entries)) = self.seconds.pop_first() {
            self.spread_out(entries);
        }
        while let Some(Reverse(Sorted(entry))) = self.heap.pop() {
            self.release(entry);
        }
    }

    /// The next entry that is ready.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.out.pop_front()
    }

    fn spread_out(&mut self, entries: Vec<Entry>) {
        self.in_seconds -= entries.len();
        let count = entries.len() as u64;
        for (index, mut entry) in (0..).zip(entries) {
            // The middle of the entry's share of the second.
            let offset = (2 * index + 1) * (SECOND / 2) / count;
            entry.arrived = entry.arrived.after(Duration::from_nanos(offset));
            self.sort(entry);
        }
    }

    fn sort(&mut self, entry: Entry) {
        let arrived = entry.arrived;
        self.heap.push(Reverse(Sorted(entry)));
        while let Some(Reverse(Sorted(first))) = self.heap.peek()
            && (self.heap.len() > self.window.entries || arrived.since(first.arrived) > self.window.time)
        {
            if let Some(Reverse(Sorted(entry))) = self.heap.pop() {
                self.release(entry);
            }
        }
    }

    fn release(&mut self, mut entry: Entry) {
        if entry.arrived < self.last_out {
            entry.arrived = self.last_out;
            self.late += 1;
        }
        self.last_out = entry.arrived;
        self.out.push_back(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::draft::Draft;
    use crate::access_log::role::{Clock, Role};
    use crate::access_log::stamp::Zone;
    use crate::access_log::value::Unit;

    /// Pushes `(end, duration)` pairs, in seconds as a log writes them; gives `line@milliseconds` as they come out.
    fn order(window: Window, requests: &[(&str, &str)]) -> (Vec<String>, u64) {
        let mut order = Order::new(Spread::Even, window);
        for (line, (end, total)) in (1..).zip(requests) {
            let mut draft = Draft::default();
            draft.set(Role::End(Clock::Epoch(Unit::Seconds)), end, &Zone::UTC).unwrap();
            draft.set(Role::Total(Unit::Seconds), total, &Zone::UTC).unwrap();
            order.push(draft.finish(line).unwrap());
        }
        order.finish();
        let shown = |entry: Entry| format!("{}@{}", entry.line, entry.arrived.as_nanos() / 1_000_000);
        (std::iter::from_fn(|| order.pop()).map(shown).collect(), order.late)
    }

    #[test]
    fn a_second_is_spread_evenly_and_a_finer_time_is_kept() {
        let requests =
            [("5", "-"), ("5", "-"), ("5.100", "-"), ("6", "-"), ("5", "-"), ("5", "-"), ("9", "0.5")];
        let expected = ["3@5100", "1@5125", "2@5375", "5@5625", "6@5875", "4@6500", "7@9000"];
        assert_eq!(order(Window::default(), &requests), (expected.map(String::from).into(), 0));
    }

    #[test]
    fn a_long_request_is_moved_to_where_it_began() {
        let requests = [("10.0", "0.1"), ("11.0", "0.1"), ("12.0", "11.5")];
        assert_eq!(order(Window::default(), &requests).0, ["3@500", "1@9900", "2@10900"]);
    }

    #[test]
    fn what_is_too_late_for_the_window_gets_the_last_time_and_is_counted() {
        let requests = [("10.0", "0.1"), ("11.0", "0.1"), ("12.0", "11.5"), ("12.1", "0.1")];
        let narrow = Window { entries: 1, time: Duration::from_secs(600) };
        assert_eq!(
            order(narrow, &requests),
            (["1@9900", "3@9900", "2@10900", "4@12000"].map(String::from).into(), 1)
        );
        let brief = Window { entries: 100, time: Duration::from_millis(500) };
        assert_eq!(
            order(brief, &requests),
            (["1@9900", "3@9900", "2@10900", "4@12000"].map(String::from).into(), 1)
        );
    }

    #[test]
    fn one_line_from_the_future_disturbs_only_its_neighbours() {
        let requests = [("5", "-"), ("999999", "-"), ("6", "-"), ("6", "-"), ("7", "-"), ("9", "-")];
        let expected = ["1@5500", "3@6250", "4@6750", "5@7500", "6@9500", "2@999999500"];
        assert_eq!(order(Window::default(), &requests), (expected.map(String::from).into(), 0));
    }

    #[test]
    fn what_is_held_back_has_a_bound() {
        let mut order = Order::new(Spread::Even, Window { entries: 10, time: Duration::MAX });
        for line in 1..=1_000 {
            let mut draft = Draft::default();
            draft.set(Role::Start(Clock::Any), "1700000000", &Zone::UTC).unwrap();
            order.push(draft.finish(line).unwrap());
            assert!(order.in_seconds <= 11 && order.heap.len() <= 10);
            while order.pop().is_some() {}
        }
    }
}
