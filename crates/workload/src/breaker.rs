//! A breaker for retries: a caller stops trying again while too many of its own last tries have failed. First tries go on.
//!
//! So it needs no state but what it has seen: first tries are its probes, and it is open or shut by what came of them. It
//! knows nothing of other callers, and is not the gateway's breaker, which keeps first tries away too.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::Tally;

/// When a caller does not try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBreaker {
    /// More failures than this among a hundred of its tries, the one that has just failed among them.
    pub percent: u32,
    /// How far back its tries are counted, by halves: for half of it at least.
    pub window: Duration,
    /// With fewer tries in that time it tries again.
    pub min_tries: NonZeroU32,
}

impl RetryBreaker {
    const fn is_open(&self, seen: Tally) -> bool {
        seen.requests >= self.min_tries.get()
            && seen.failures as u64 * 100 > self.percent as u64 * seen.requests as u64
    }
}

/// What has become of a caller's tries: of this half of the window, and of the one before. So it goes back for half of the
/// window at least and for all of it at most, and is as large for a caller who asks once an hour as for the busiest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Which half this is, counted from the beginning.
    half: u64,
    present: Tally,
    before: Tally,
}

impl Seen {
    /// A try has ended like this.
    pub(crate) fn count(&mut self, now: Duration, breaker: &RetryBreaker, failed: bool) {
        self.advance(now, breaker.window);
        self.present = self.present.plus(Tally { requests: 1, failures: u32::from(failed), overloads: 0 });
    }

    /// Whether the caller tries again no more, for now.
    pub(crate) fn is_open(&mut self, now: Duration, breaker: &RetryBreaker) -> bool {
        self.advance(now, breaker.window);
        breaker.is_open(self.before.plus(self.present))
    }

    fn advance(&mut self, now: Duration, window: Duration) {
        let half = (now.as_nanos() / (window.as_nanos() / 2).max(1)) as u64;
        // A step back counts into the present half.
        if half > self.half {
            let next = half == self.half + 1;
            self.before = if next { self.present } else { Tally::default() };
            self.present = Tally::default();
            self.half = half;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: RetryBreaker =
        RetryBreaker { percent: 10, window: Duration::from_secs(10), min_tries: NonZeroU32::MIN };

    /// Counts so many tries, and says whether it is open then.
    fn after(seen: &mut Seen, second: u64, good: u32, bad: u32, breaker: &RetryBreaker) -> bool {
        let now = Duration::from_secs(second);
        (0..good).for_each(|_| seen.count(now, breaker, false));
        (0..bad).for_each(|_| seen.count(now, breaker, true));
        seen.is_open(now, breaker)
    }

    #[test]
    fn it_opens_above_its_share_and_not_at_it() {
        let mut seen = Seen::default();
        assert!(!after(&mut seen, 0, 9, 1, &BREAKER));
        assert!(after(&mut seen, 0, 8, 1, &BREAKER), "two of nineteen");
        assert!(!after(&mut seen, 0, 1, 0, &BREAKER), "two of twenty");
    }

    /// Whoever has asked once, and in vain, has seen nothing but failures.
    #[test]
    fn one_failure_is_all_that_a_caller_has_seen_unless_it_waits_for_more() {
        assert!(after(&mut Seen::default(), 0, 0, 1, &BREAKER));
        let patient = RetryBreaker { min_tries: NonZeroU32::new(10).unwrap(), ..BREAKER };
        let mut seen = Seen::default();
        assert!(!after(&mut seen, 0, 0, 9, &patient));
        assert!(after(&mut seen, 0, 0, 1, &patient));
    }

    /// It needs nobody to shut it: the time does.
    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut seen = Seen::default();
        assert!(after(&mut seen, 4, 0, 3, &BREAKER));
        assert!(after(&mut seen, 9, 0, 0, &BREAKER), "it is of the half before");
        assert!(!after(&mut seen, 10, 0, 0, &BREAKER));
        assert!(after(&mut seen, 11, 0, 3, &BREAKER));
        assert!(!after(&mut seen, 1_000, 0, 0, &BREAKER), "and after a long pause all of it is");
    }

    #[test]
    fn time_that_steps_back_forgets_nothing() {
        let mut seen = Seen::default();
        assert!(after(&mut seen, 7, 0, 3, &BREAKER));
        assert!(after(&mut seen, 3, 0, 0, &BREAKER));
    }

    /// Ten thousand callers in each of 64 sorts are what a scenario may have.
    #[test]
    fn what_a_caller_has_seen_is_small() {
        assert!(size_of::<Seen>() <= 32);
    }
}
