//! Additive increase, multiplicative decrease: one more after a window of healthy responses, half after a slow one.
//!
//! The rules are those of "Backpressure in Microservices: Queue Depth Limits and Load Shedding" (its `AIMDLimiter`),
//! with one guard that its sketch lacks: only responses that came while at least half of the limit was in use count
//! as healthy. Netflix concurrency-limits has the same guard, and RFC 7661 gives its reason for TCP.

use crate::decision::Outcome;
use crate::limit::Sample;
use crate::policy::{AimdPolicy, LIMIT_MAX};
use crate::time::Timestamp;

#[derive(Debug)]
pub(crate) struct Aimd {
    policy: AimdPolicy,
    limit: u32,
    healthy: u32,
    last_cut: Option<Timestamp>,
}

impl Aimd {
    pub(crate) fn new(policy: AimdPolicy) -> Self {
        let mut aimd = Self { limit: policy.initial.get(), policy, healthy: 0, last_cut: None };
        aimd.limit = aimd.clamp(aimd.limit);
        aimd
    }

    pub(crate) const fn current(&self) -> u32 {
        self.limit
    }

    pub(crate) fn reconfigure(&mut self, policy: AimdPolicy) {
        self.policy = policy;
        self.limit = self.clamp(self.limit);
    }

    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        match sample.outcome {
            Outcome::Failure | Outcome::Ignore => {}
            Outcome::Overload => self.overloaded(now),
            Outcome::Success if sample.latency > self.policy.slow => self.overloaded(now),
            Outcome::Success if sample.in_use => self.healthy(),
            Outcome::Success => {}
        }
    }

    fn overloaded(&mut self, now: Timestamp) {
        self.healthy = 0;
        let cooled_down = self.last_cut.is_none_or(|cut| now.since(cut) >= self.policy.cooldown);
        if cooled_down {
            self.limit = self.clamp(self.limit / 2);
            self.last_cut = Some(now);
        }
    }

    fn healthy(&mut self) {
        self.healthy += 1;
        if self.healthy >= self.policy.window.get() {
            self.healthy = 0;
            self.limit = self.clamp(self.limit + 1);
        }
    }

    /// Policy bounds win over each other in this order: the floor, the ceiling, the engine's own maximum.
    fn clamp(&self, limit: u32) -> u32 {
        limit.min(self.policy.max.get()).max(self.policy.min.get()).min(LIMIT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::sample;
    use core::num::NonZeroU32;
    use core::time::Duration;

    /// The article's numbers: from 20, between 2 and 200, slow above 100 ms, window 100, cooldown 1 s.
    fn aimd() -> Aimd {
        let number = |n| NonZeroU32::new(n).unwrap();
        Aimd::new(AimdPolicy {
            min: number(2),
            max: number(200),
            initial: number(20),
            slow: Duration::from_millis(100),
            window: number(100),
            cooldown: Duration::from_secs(1),
        })
    }

    fn feed(aimd: &mut Aimd, at_ms: u64, latency_ms: u64, outcome: Outcome, times: u32) -> u32 {
        let sample = sample(latency_ms, outcome);
        for _ in 0..times {
            aimd.on_sample(Timestamp::from_millis(at_ms), sample);
        }
        aimd.current()
    }

    #[test]
    fn one_more_after_a_window() {
        let mut aimd = aimd();
        assert_eq!(feed(&mut aimd, 0, 50, Outcome::Success, 99), 20);
        assert_eq!(feed(&mut aimd, 0, 50, Outcome::Success, 1), 21);
    }

    #[test]
    fn half_at_most_once_in_a_cooldown() {
        let mut aimd = aimd();
        assert_eq!(feed(&mut aimd, 0, 101, Outcome::Success, 50), 10);
        assert_eq!(feed(&mut aimd, 999, 0, Outcome::Overload, 50), 10);
        assert_eq!(feed(&mut aimd, 1000, 0, Outcome::Overload, 50), 5);
    }

    #[test]
    fn a_slow_response_starts_the_window_anew() {
        let mut aimd = aimd();
        feed(&mut aimd, 0, 50, Outcome::Success, 99);
        feed(&mut aimd, 0, 500, Outcome::Success, 1);
        assert_eq!(feed(&mut aimd, 0, 50, Outcome::Success, 99), 10);
        assert_eq!(feed(&mut aimd, 0, 50, Outcome::Success, 1), 11);
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut aimd = aimd();
        for second in 0..100 {
            feed(&mut aimd, second * 1000, 0, Outcome::Overload, 1);
        }
        assert_eq!(aimd.current(), 2);
        assert_eq!(feed(&mut aimd, 0, 1, Outcome::Success, 100_000), 200);
        // Netflix/concurrency-limits#155: at its maximum a limit stays there; nothing halves it.
        assert_eq!(feed(&mut aimd, 0, 1, Outcome::Success, 100_000), 200);
    }

    #[test]
    fn does_not_grow_unused_and_ignores_what_says_nothing() {
        let mut aimd = aimd();
        let idle = Sample { in_use: false, ..sample(0, Outcome::Success) };
        for _ in 0..1000 {
            aimd.on_sample(Timestamp::ZERO, idle);
        }
        assert_eq!(aimd.current(), 20);
        assert_eq!(feed(&mut aimd, 0, 10_000, Outcome::Ignore, 1000), 20);
    }
}
