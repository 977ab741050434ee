//! What came of the requests of the last while: exact counts in a ring of buckets, so that old ones are forgotten and
//! memory does not depend on how many there are.
//!
//! It is not a moving average: with few requests an average remembers one bad one for longer than it is true.

use core::time::Duration;

use crate::time::{Timestamp, nanos};

const BUCKETS: usize = 10;

/// How many requests there were in the window, and how many of them went badly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests of which something is known.
    pub requests: u32,
    /// Those that failed.
    pub failures: u32,
    /// Those that were too much for the other end, or too slow. They are no failures.
    pub overloads: u32,
}

impl Tally {
    /// Both tallies together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            failures: self.failures.saturating_add(other.failures),
            overloads: self.overloads.saturating_add(other.overloads),
        }
    }

    /// The share of those that went badly, for whatever reason: from 0 to 1, and 0 for none.
    pub fn badness(self) -> f64 {
        f64::from(self.failures.saturating_add(self.overloads)) / f64::from(self.requests.max(1))
    }
}

#[derive(Debug)]
pub(super) struct Window {
    buckets: [Tally; BUCKETS],
    /// How long a bucket lasts, in nanoseconds; never zero.
    length: u64,
    /// The number of the bucket that is being filled, counted from the epoch.
    newest: u64,
}

impl Window {
    pub(super) fn new(window: Duration) -> Self {
        Self { buckets: Default::default(), length: Self::length(window), newest: 0 }
    }

    const fn length(window: Duration) -> u64 {
        let length = nanos(window) / BUCKETS as u64;
        if length == 0 { 1 } else { length }
    }

    /// Whether it reaches back as far as this.
    pub(super) const fn is_of(&self, window: Duration) -> bool {
        self.length == Self::length(window)
    }

    /// Counts into the present bucket.
    pub(super) fn count(&mut self, now: Timestamp, what: Tally) {
        self.advance(now);
        let bucket = &mut self.buckets[(self.newest % BUCKETS as u64) as usize];
        *bucket = bucket.plus(what);
    }

    /// Everything that is not older than the window.
    pub(super) fn sum(&mut self, now: Timestamp) -> Tally {
        self.advance(now);
        self.buckets.iter().fold(Tally::default(), |sum, bucket| sum.plus(*bucket))
    }

    pub(super) fn clear(&mut self) {
        self.buckets = Default::default();
    }

    /// Empties the buckets that have come round again.
    fn advance(&mut self, now: Timestamp) {
        let newest = now.as_nanos() / self.length;
        for stale in 1..=newest.saturating_sub(self.newest).min(BUCKETS as u64) {
            self.buckets[(self.newest.saturating_add(stale) % BUCKETS as u64) as usize] = Tally::default();
        }
        self.newest = self.newest.max(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Tally = Tally { requests: 1, failures: 1, overloads: 0 };

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let at = Timestamp::from_millis;
        let mut window = Window::new(Duration::from_secs(1));
        for millis in [0, 50, 99, 100, 950] {
            window.count(at(millis), ONE);
        }
        let mut requests = |millis| window.sum(at(millis)).requests;
        assert_eq!([999, 1_000, 1_099, 1_100, 1_899, 1_900].map(&mut requests), [5, 2, 2, 1, 1, 0]);
        assert_eq!([2_000, 3_000, u64::MAX].map(&mut requests), [0, 0, 0]);
        window.count(Timestamp::MAX, ONE);
        assert_eq!(window.sum(Timestamp::ZERO).requests, 1, "time does not go back");
    }

    #[test]
    fn counts_saturate() {
        let most = Tally { requests: u32::MAX, failures: u32::MAX, overloads: u32::MAX };
        assert_eq!(most.plus(ONE), most);
        assert!((0.0..=1.0).contains(&most.badness()));
        let mut window = Window::new(Duration::ZERO);
        window.count(Timestamp::MAX, most);
        assert_eq!(window.sum(Timestamp::MAX), most);
        assert_eq!(Tally::default().badness(), 0.0);
    }
}
