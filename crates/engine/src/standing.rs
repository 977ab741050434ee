//! Whether there is a queue all the time, or only now and then.
//!
//! A queue that comes and goes with bursts does what it is for: it holds a burst until there is room. One that is always
//! there holds nothing; it only makes everybody wait for as long as it is (K. Nichols and V. Jacobson, "Controlling Queue
//! Delay", 2012, call it the standing queue). So then people are let in to wait only shortly, and the others are refused
//! at once: throughput is the same, and everybody who is served is served sooner.

use core::time::Duration;

use crate::time::Timestamp;

/// Over about so much time it is looked.
const WINDOW: Duration = Duration::from_secs(1);
/// It stands if there was a queue for more than this share of the time.
const STANDS: f64 = 0.8;

/// The share of the time, lately, in which somebody waited.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    share: f64,
    seen: Timestamp,
}

impl Standing {
    /// Since this was called last, somebody has waited, or nobody has.
    pub(crate) fn observe(&mut self, now: Timestamp, waiting: bool) {
        if now <= self.seen {
            return;
        }
        let weight = (now.since(self.seen).as_nanos() as f64 / WINDOW.as_nanos() as f64).min(1.0);
        let target = if waiting { 1.0 } else { 0.0 };
        self.share += (target - self.share) * weight;
        self.seen = now;
    }

    pub(crate) fn is_standing(&self) -> bool {
        self.share > STANDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_no_standing_queue_and_an_overload_is() {
        let mut standing = Standing::default();
        for millis in (0..600).step_by(10) {
            standing.observe(Timestamp::from_millis(millis), true);
        }
        assert!(!standing.is_standing(), "half a second: {}", standing.share);
        for millis in (600..3000).step_by(10) {
            standing.observe(Timestamp::from_millis(millis), true);
        }
        assert!(standing.is_standing(), "three seconds: {}", standing.share);
        for millis in (3000..3500).step_by(10) {
            standing.observe(Timestamp::from_millis(millis), false);
        }
        assert!(!standing.is_standing(), "it has gone: {}", standing.share);
    }

    #[test]
    fn after_a_long_silence_only_the_present_counts() {
        let mut standing = Standing::default();
        standing.observe(Timestamp::from_millis(60_000), true);
        assert!(standing.is_standing());
        standing.observe(Timestamp::from_millis(120_000), false);
        assert!(!standing.is_standing());
        standing.observe(Timestamp::ZERO, true);
        assert!(!standing.is_standing(), "time does not go back");
    }
}
