//! How much of what a caller would like to ask it does not ask, because most of it is refused.
//!
//! Unlike a breaker it is never shut: it follows what is accepted, up and down. It knows no time of day and draws no
//! lots; the number that decides is an argument.

use crate::caller::policy::ThrottlePolicy;
use crate::time::{Timestamp, nanos};

const BUCKETS: usize = 10;

/// Requests that were held back or have ended, and those that were accepted, by when that was.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    requests: u32,
    accepts: u32,
}

#[derive(Debug)]
pub(super) struct Throttle {
    policy: ThrottlePolicy,
    buckets: [Bucket; BUCKETS],
    /// How long a bucket lasts, in nanoseconds; never zero.
    length: u64,
    /// The number of the bucket that is being filled, counted from the epoch.
    newest: u64,
}

impl Throttle {
    pub(super) fn new(policy: ThrottlePolicy) -> Self {
        let length = (nanos(policy.window) / BUCKETS as u64).max(1);
        Self { policy, buckets: Default::default(), length, newest: 0 }
    }

    /// Somebody wants to ask. Whether it is held back, which is counted as a request: only so does the share follow what is
    /// wanted and not what is sent. What is sent is counted when it has [`ended`](Self::ended), since nobody knows before
    /// whether it will be refused, and a burst to an upstream that is slow and well would look like an outage.
    pub(super) fn holds_back(&mut self, now: Timestamp, random: u64) -> bool {
        // 53 bits are what a float can hold.
        let is_held_back = ((random >> 11) as f64) < self.share(now) * (1_u64 << 53) as f64;
        if is_held_back {
            let bucket = self.bucket();
            bucket.requests = bucket.requests.saturating_add(1);
        }
        is_held_back
    }

    /// What was sent has ended, with an answer that was no refusal or without one.
    pub(super) fn ended(&mut self, now: Timestamp, accepted: bool) {
        self.advance(now);
        let bucket = self.bucket();
        bucket.requests = bucket.requests.saturating_add(1);
        bucket.accepts = bucket.accepts.saturating_add(accepted.into());
    }

    /// The probability that the next is held back.
    pub(super) fn share(&mut self, now: Timestamp) -> f64 {
        self.advance(now);
        let (requests, accepts) = self.buckets.iter().fold((0_u64, 0_u64), |(requests, accepts), bucket| {
            (requests + u64::from(bucket.requests), accepts + u64::from(bucket.accepts))
        });
        if requests < u64::from(self.policy.min_requests) {
            return 0.0;
        }
        let (requests, accepts) = (requests as f64, accepts as f64);
        // `max` before `min`, so that a policy of nonsense still gives a number.
        let tolerated = self.policy.tolerance.max(1.0) * accepts;
        ((requests - tolerated) / (requests + 1.0)).max(0.0).min(self.policy.most.clamp(0.0, 1.0))
    }

    const fn bucket(&mut self) -> &mut Bucket {
        &mut self.buckets[(self.newest % BUCKETS as u64) as usize]
    }

    /// Empties the buckets that have come round again.
    fn advance(&mut self, now: Timestamp) {
        let newest = now.as_nanos() / self.length;
        for stale in 1..=newest.saturating_sub(self.newest).min(BUCKETS as u64) {
            self.buckets[(self.newest.saturating_add(stale) % BUCKETS as u64) as usize] = Bucket::default();
        }
        self.newest = self.newest.max(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const POLICY: ThrottlePolicy = ThrottlePolicy { min_requests: 0, ..ThrottlePolicy::CAREFUL };

    fn after(requests: u32, accepts: u32, policy: ThrottlePolicy) -> f64 {
        let mut throttle = Throttle::new(policy);
        let now = Timestamp::from_millis(5);
        (0..requests).for_each(|request| throttle.ended(now, request < accepts));
        throttle.share(now)
    }

    /// The formula of the book, by hand.
    #[test]
    fn the_share_is_the_published_one() {
        for (requests, accepts, share) in
            [(0, 0, 0.0), (99, 99, 0.0), (99, 50, 0.0), (99, 25, 0.49), (99, 0, 0.9), (4, 0, 0.8)]
        {
            assert_eq!(after(requests, accepts, POLICY), share, "{requests} {accepts}");
        }
        assert_eq!(after(99, 0, ThrottlePolicy { most: 1.0, ..POLICY }), 0.99);
        assert_eq!(after(19, 0, ThrottlePolicy::CAREFUL), 0.0);
        assert_eq!(after(9, 0, ThrottlePolicy { most: f64::NAN, tolerance: f64::NAN, ..POLICY }), 0.9);
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut throttle = Throttle::new(POLICY);
        (0..100).for_each(|_| throttle.ended(Timestamp::ZERO, false));
        assert_eq!(throttle.share(Timestamp::from_millis(9_999)), 0.9);
        assert_eq!(throttle.share(Timestamp::from_millis(10_000)), 0.0);
        throttle.ended(Timestamp::MAX, false);
        assert_eq!(throttle.share(Timestamp::ZERO), 0.5, "time does not go back");
        assert_eq!(Throttle::new(ThrottlePolicy { window: Duration::ZERO, ..POLICY }).length, 1);
    }

    /// What is held back was wanted too; what is let through counts when it has ended.
    #[test]
    fn who_is_held_back_is_counted() {
        let mut throttle = Throttle::new(POLICY);
        throttle.ended(Timestamp::ZERO, false);
        assert!(!throttle.holds_back(Timestamp::ZERO, u64::MAX));
        assert_eq!(throttle.share(Timestamp::ZERO), 0.5);
        assert!(throttle.holds_back(Timestamp::ZERO, 0));
        assert_eq!(throttle.share(Timestamp::ZERO), 2.0 / 3.0);
    }

    /// As many are held back as the share says.
    #[test]
    fn the_number_decides() {
        let mut throttle = Throttle::new(POLICY);
        (0..1_000_000).for_each(|_| throttle.ended(Timestamp::ZERO, false));
        let share = throttle.policy.most;
        let below = (share * (1_u64 << 53) as f64) as u64;
        assert!(throttle.holds_back(Timestamp::ZERO, 0));
        assert!(throttle.holds_back(Timestamp::ZERO, (below - 1) << 11));
        assert!(!throttle.holds_back(Timestamp::ZERO, (below + 1) << 11));
        assert!(!throttle.holds_back(Timestamp::ZERO, u64::MAX));
    }
}
