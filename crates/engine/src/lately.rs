//! How much of something there was of late, without keeping any of it.

use core::time::Duration;

use crate::time::Timestamp;

/// A sum that what was added falls out of within about a window: with each addition, what was there before is worth less by
/// the part of a window that has passed.
#[derive(Debug)]
pub(crate) struct Lately {
    sum: f64,
    seen: Timestamp,
    window: Duration,
}

impl Lately {
    /// Nothing yet, in a window that is longer than nothing.
    pub(crate) const fn of(window: Duration) -> Self {
        Self { sum: 0.0, seen: Timestamp::ZERO, window }
    }

    pub(crate) fn add(&mut self, now: Timestamp, amount: f64) {
        self.sum = self.sum(now) + amount;
        self.seen = self.seen.max(now);
    }

    pub(crate) fn sum(&self, now: Timestamp) -> f64 {
        let passed = now.since(self.seen).as_secs_f64() / self.window.as_secs_f64();
        self.sum * (1.0 - passed).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_a_window_of_it() {
        let mut lately = Lately::of(Duration::from_secs(2));
        for millis in (0..10_000).step_by(10) {
            lately.add(Timestamp::from_millis(millis), 3.0);
        }
        let at = |millis| lately.sum(Timestamp::from_millis(millis));
        assert!((590.0..610.0).contains(&at(10_000)), "{}", at(10_000));
        assert!(at(11_000) < 310.0 && at(12_000) < 10.0);
        assert!(lately.sum(Timestamp::ZERO) > 590.0, "time does not go back");
    }
}
