//! What there is to say of a run on real sockets besides: how late its generator was, and what it saw on the wire.
//!
//! Times of requests count from when they were to be sent. The naive ones, which count from when they were sent, are
//! kept beside them: the difference is what a generator hides that waits for answers before it sends again
//! (coordinated omission; Gil Tene, "How NOT to Measure Latency").

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Latencies, words};

/// How late the generator may be for 99 in a hundred of what it sends, before it is said that it was the limit.
const LAG_MAX: Duration = Duration::from_millis(10);

/// How an attempt ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WireError {
    /// No connection could be opened.
    Connect,
    /// The connection ended before the answer did.
    Closed,
    /// What came is no answer.
    Malformed,
    /// Nothing came for as long as its client waited.
    Timeout,
    /// The generator had no port or descriptor for another connection.
    Exhausted,
}

impl WireError {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Connect, Self::Closed, Self::Malformed, Self::Timeout, Self::Exhausted];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Closed => "connection closed",
            Self::Malformed => "no answer but bytes",
            Self::Timeout => "timeout",
            Self::Exhausted => "no port or descriptor",
        }
    }
}

/// What the load generator counted.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// From when an attempt was to be sent until it was, without the time that opening a connection for it took.
    pub lag: Latencies,
    /// Of those, the ones that waited because as many connections were busy as may be open: how long for one.
    pub held: Latencies,
    /// How long it took to open connections.
    pub connecting: Latencies,
    /// Useful answers as tools show them that do not keep to a schedule: from the sending of the attempt that brought it.
    pub naive: Latencies,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Attempts without one.
    pub errors: [u64; WireError::ALL.len()],
    /// Connections that were opened.
    pub connections: u64,
    /// The most that were open at once.
    pub connections_most: u64,
    /// Attempts that were given up because more were outstanding than are kept track of.
    pub unsent: u64,
    /// Attempts that were silently sent once more, since their connection was being closed when they came.
    pub resent: u64,
    /// How many connections may be open at once, and how many attempts outstanding.
    pub connections_max: u64,
    /// See [`connections_max`](Self::connections_max).
    pub outstanding_max: u64,
}

/// Why a run says less about its target than it seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Attempts were never sent.
    Unsent(u64),
    /// It had no port or descriptor for so many.
    Exhausted(u64),
    /// Attempts waited for a connection.
    Connections(u64),
    /// It did not keep up.
    Late(Duration),
}

impl Sending {
    /// How late it was at most for 99 in a hundred; longer than anything if some were never sent.
    pub fn lag_p99(&self) -> Duration {
        if self.unsent > 0 { Duration::MAX } else { self.lag.quantile(0.99) }
    }

    /// Whether the generator was the limit, and in what.
    pub fn limited(&self) -> Option<Limited> {
        if self.unsent > 0 {
            return Some(Limited::Unsent(self.unsent));
        }
        let exhausted = self.errors[WireError::Exhausted as usize];
        if exhausted > 0 {
            return Some(Limited::Exhausted(exhausted));
        }
        let late = self.lag.quantile(0.99);
        if late <= LAG_MAX {
            return None;
        }
        let held = self.held.count();
        // It is the cap's doing as far as enough were held back to make that many late.
        if held.saturating_mul(100) > self.lag.count() {
            return Some(Limited::Connections(held));
        }
        Some(Limited::Late(late))
    }

    /// The same in words; `None` if it kept to its schedule.
    pub fn limited_in_words(&self) -> Option<String> {
        let lag = words::time(self.lag.quantile(0.99));
        Some(match self.limited()? {
            Limited::Unsent(count) => format!(
                "The generator was the limit: {} attempts were never sent, since {} were outstanding.",
                words::count(count as f64),
                words::count(self.outstanding_max as f64),
            ),
            Limited::Exhausted(count) => format!(
                "The generator was the limit: its machine had no port or no descriptor for {} attempts. Allow more of \
                 them, or less to be open (--connections).",
                words::count(count as f64),
            ),
            Limited::Connections(count) if self.connections_most < self.connections_max => format!(
                "The generator was the limit: {} attempts waited behind others for a connection to be opened, and 1 in \
                 100 was sent {lag} late or later. Begin with less.",
                words::count(count as f64),
            ),
            Limited::Connections(count) => format!(
                "The generator was the limit: {} attempts waited for one of its {} connections, and 1 in 100 was \
                 sent {lag} late or later. Allow more (--connections).",
                words::count(count as f64),
                words::count(self.connections_max as f64),
            ),
            Limited::Late(_) => format!(
                "The generator was the limit: 1 in 100 attempts was sent {lag} late or later. Send less, or from \
                 a machine with more room."
            ),
        })
    }

    /// Counts an attempt that ended without an answer.
    pub fn failed(&mut self, error: WireError) {
        self.errors[error as usize] += 1;
    }

    /// Adds what another run has counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, others) in [
            (&mut self.lag, &other.lag),
            (&mut self.held, &other.held),
            (&mut self.connecting, &other.connecting),
            (&mut self.naive, &other.naive),
        ] {
            mine.add(others);
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (count, more) in self.errors.iter_mut().zip(other.errors) {
            *count += more;
        }
        self.connections += other.connections;
        self.unsent += other.unsent;
        self.resent += other.resent;
        self.connections_most = self.connections_most.max(other.connections_most);
        self.connections_max = self.connections_max.max(other.connections_max);
        self.outstanding_max = self.outstanding_max.max(other.outstanding_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(late: u64, held: u64) -> Sending {
        let mut sending =
            Sending { connections_max: 2, connections_most: 2, outstanding_max: 9, ..Sending::default() };
        for number in 0..1_000 {
            sending.lag.record(if number < late { Duration::from_secs(1) } else { Duration::ZERO });
        }
        for _ in 0..held {
            sending.held.record(Duration::from_secs(1));
        }
        sending
    }

    #[test]
    fn what_limits_it_is_named() {
        for number in 0..WireError::ALL.len() {
            assert_eq!(WireError::ALL[number] as usize, number);
        }
        assert_eq!(sending(9, 9).limited(), None, "nine in a thousand are less than one in a hundred");
        assert_eq!(sending(20, 20).limited(), Some(Limited::Connections(20)));
        assert!(matches!(sending(20, 2).limited(), Some(Limited::Late(_))));
        assert_eq!(Sending { unsent: 3, ..sending(0, 0) }.limited(), Some(Limited::Unsent(3)));
        assert_eq!(Sending { unsent: 3, ..sending(0, 0) }.lag_p99(), Duration::MAX);
        let mut exhausted = sending(0, 0);
        exhausted.failed(WireError::Exhausted);
        assert_eq!(exhausted.limited(), Some(Limited::Exhausted(1)));
        let words = sending(20, 20).limited_in_words().unwrap_or_default();
        assert!(words.contains("20 attempts waited for one of its 2 connections"), "{words}");
        let words = Sending { connections_max: 3, ..sending(20, 20) }.limited_in_words().unwrap_or_default();
        assert!(words.contains("20 attempts waited behind others for a connection"), "{words}");
    }
}
