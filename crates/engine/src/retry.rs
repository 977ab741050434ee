//! When to try again, and whether to: back-off and the budget for retries. For callers, real and simulated.
//!
//! Neither knows what failed. Whether a failure is worth another try is for the caller to say.

use core::time::Duration;

use crate::policy::RetryPolicy;
use crate::time::{Timestamp, nanos};

/// How long to wait before the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Not at all.
    None,
    /// Always so long.
    Fixed(Duration),
    /// Twice as long each time, from `base` to at most `cap`.
    Exponential {
        /// Before the second try.
        base: Duration,
        /// The longest.
        cap: Duration,
    },
    /// Anything from nothing to what [`Exponential`](Self::Exponential) says. Callers that failed together come back
    /// spread over the whole time, which is what keeps their number at the other end smallest (M. Brooker,
    /// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    FullJitter {
        /// The most before the second try.
        base: Duration,
        /// The longest.
        cap: Duration,
    },
}

impl Backoff {
    /// The wait after `failures` tries have failed, at least one. `random` is uniform over all numbers; only full
    /// jitter looks at it.
    pub const fn wait(self, failures: u32, random: u64) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(wait) => wait,
            Self::Exponential { base, cap } => Duration::from_nanos(doubled(base, cap, failures)),
            Self::FullJitter { base, cap } => {
                let most = doubled(base, cap, failures) as u128;
                Duration::from_nanos((((most + 1) * random as u128) >> 64) as u64)
            }
        }
    }
}

const fn doubled(base: Duration, cap: Duration, failures: u32) -> u64 {
    let (base, cap) = (nanos(base), nanos(cap));
    let doublings = failures.saturating_sub(1);
    // What does not fit has passed every cap.
    let wait = if doublings >= base.leading_zeros() { u64::MAX } else { base << doublings };
    if base == 0 {
        0
    } else if wait < cap {
        wait
    } else {
        cap
    }
}

/// Bounds retries to a share of the first tries, so that a failure cannot multiply the load.
///
/// A token bucket that fills with requests (Finagle's `RetryBudget`): each first try puts in a share of a token, each
/// retry takes out one. What is not used is kept, up to a bound. Besides it may fill with time, so that where little is
/// asked for there can be a retry too.
///
/// Whoever calls [`deposit`](Self::deposit) for successes only, as [`Caller`](crate::Caller) does, has a budget that
/// runs dry while nothing succeeds, where one that fills with first tries still lets in its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// In thousandths of a token, like all that follow.
    deposit: u32,
    most: u32,
    left: u32,
    per_second: u64,
    filled: Timestamp,
}

impl RetryBudget {
    const TOKEN: u32 = 1_000;

    /// A budget of `percent` retries for a hundred first tries, of which at most `burst` can be saved up. It begins full,
    /// so that a caller that has only just begun may retry too.
    pub const fn new(percent: u32, burst: u32) -> Self {
        let most = burst.saturating_mul(Self::TOKEN);
        let deposit = percent.saturating_mul(Self::TOKEN / 100);
        Self { deposit, most, left: most, per_second: 0, filled: Timestamp::ZERO }
    }

    /// The same budget, with so many retries a second besides, if [`refill`](Self::refill) is called.
    #[must_use]
    pub const fn with_per_second(self, per_second: u32) -> Self {
        Self { per_second: per_second as u64 * Self::TOKEN as u64, ..self }
    }

    /// The same for whoever asks so little that one a second would be a second try for everything: so many retries a
    /// minute besides, if [`refill`](Self::refill) is called.
    #[must_use]
    pub const fn with_per_minute(self, per_minute: u32) -> Self {
        Self { per_second: per_minute as u64 * Self::TOKEN as u64 / 60, ..self }
    }

    /// The budget that a policy asks for. What a second brings can be saved up in any case, and one if it allows any: a
    /// budget that could save up nothing would allow nothing.
    pub fn of(policy: RetryPolicy) -> Self {
        let one = u32::from(policy.percent > 0);
        let burst = policy.burst.max(policy.per_second).max(one);
        Self::new(policy.percent, burst).with_per_second(policy.per_second)
    }

    /// Time passes.
    pub fn refill(&mut self, now: Timestamp) {
        const SECOND: u128 = 1_000_000_000;
        let rate = u128::from(self.per_second);
        let gained = now.since(self.filled).as_nanos() * rate / SECOND;
        // Less than a thousandth of a token stays with the time that it came from: whoever looks often gains no less.
        if gained > 0 {
            let took = u64::try_from((gained * SECOND).div_ceil(rate)).unwrap_or(u64::MAX);
            self.filled = self.filled.after(Duration::from_nanos(took)).min(now);
            let gained = u32::try_from(gained).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(gained).min(self.most);
        }
    }

    /// A first try is made, or, for whoever counts those, has succeeded.
    pub const fn deposit(&mut self) {
        let left = self.left.saturating_add(self.deposit);
        self.left = if left < self.most { left } else { self.most };
    }

    /// Says whether there may be a retry, and if so counts it.
    pub const fn try_spend(&mut self) -> bool {
        match self.left.checked_sub(Self::TOKEN) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// A retry that was counted is not made after all.
    pub const fn give_back(&mut self) {
        let left = self.left.saturating_add(Self::TOKEN);
        self.left = if left < self.most { left } else { self.most };
    }

    /// How many retries there may be just now.
    pub const fn left(&self) -> u32 {
        self.left / Self::TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);
    const CAP: Duration = Duration::from_secs(1);

    #[test]
    fn doubles_up_to_the_cap() {
        let backoff = Backoff::Exponential { base: BASE, cap: CAP };
        let waits = [1, 2, 3, 4, 5, 40, u32::MAX].map(|failures| backoff.wait(failures, 0).as_millis());
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000, 1000]);
        assert_eq!(Backoff::Exponential { base: Duration::ZERO, cap: CAP }.wait(99, 0), Duration::ZERO);
        assert_eq!(
            Backoff::Exponential { base: Duration::MAX, cap: Duration::MAX }.wait(9, 0).as_nanos(),
            u64::MAX.into()
        );
    }

    #[test]
    fn jitter_is_anything_up_to_that() {
        let backoff = Backoff::FullJitter { base: BASE, cap: CAP };
        assert_eq!(
            [0, u64::MAX / 2, u64::MAX].map(|random| backoff.wait(2, random).as_millis()),
            [0, 100, 200]
        );
    }

    /// However many fail, there is one retry for ten first tries, and what was saved up.
    #[test]
    fn the_budget_is_a_share_of_the_first_tries() {
        let mut budget = RetryBudget::new(10, 5);
        let retries = (0..1000).filter(|_| {
            budget.deposit();
            budget.try_spend()
        });
        assert_eq!(retries.count(), 100 + 4);
        assert_eq!((budget.left(), RetryBudget::new(10, 5).left()), (0, 5));
        assert!(!RetryBudget::new(0, 0).try_spend());
        assert!(RetryBudget::new(u32::MAX, u32::MAX).try_spend());
    }

    /// tower#857: a budget of 0.6 allowed as much as one of 1.
    #[test]
    fn a_budget_of_six_tenths_allows_six_tenths() {
        for percent in [1, 10, 33, 60, 99, 100, 150] {
            let mut budget = RetryBudget::new(percent, 2);
            while budget.try_spend() {}
            let mut retries = 0;
            for _ in 0..1000 {
                budget.deposit();
                while budget.try_spend() {
                    retries += 1;
                }
            }
            assert_eq!(retries, 10 * percent, "{percent} %");
        }
    }

    #[test]
    fn what_is_given_back_is_there_again_and_not_more() {
        let mut budget = RetryBudget::new(10, 2);
        assert!(budget.try_spend());
        budget.give_back();
        budget.give_back();
        assert_eq!(budget.left(), 2);
    }

    /// However little is asked for, and also after a night in which nothing was (aws-sdk-go-v2#3550).
    #[test]
    fn time_fills_it_too() {
        let mut budget = RetryBudget::new(0, 2).with_per_second(1);
        let mut spent = |millis| {
            budget.refill(Timestamp::from_millis(millis));
            (0..9).take_while(|_| budget.try_spend()).count()
        };
        assert_eq!([0, 999, 1000, 1500, 2600, 100_000_000, 0].map(&mut spent), [2, 0, 1, 0, 1, 2, 0]);
        let mut slow = RetryBudget::new(0, 1).with_per_minute(6);
        assert!(slow.try_spend());
        let mut left = |millis| {
            slow.refill(Timestamp::from_millis(millis));
            slow.left()
        };
        assert_eq!([5_000, 9_990, 10_010].map(&mut left), [0, 0, 1]);
        let mut looked_at_often = RetryBudget::new(0, 1).with_per_minute(6);
        assert!(looked_at_often.try_spend());
        (0..=10_000 / 19).for_each(|look| looked_at_often.refill(Timestamp::from_millis(19 * look + 19)));
        assert_eq!(looked_at_often.left(), 1);
        let mut extreme = RetryBudget::new(0, u32::MAX).with_per_second(u32::MAX);
        extreme.refill(Timestamp::MAX);
        assert!(extreme.left() > 0);
    }
}
