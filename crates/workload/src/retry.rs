//! What a client does about a failure: try again or not, and when.
//!
//! It decides with the engine's own back-off and budget. It does not send anything.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{Advice, Backoff, Reason, Reply, RetryBudget};

use crate::random::Random;

/// How clients of one sort retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first among them.
    pub attempts: u32,
    /// How long they wait before the next.
    pub backoff: Backoff,
    /// Retries for a hundred first tries, of all these clients together; `None` for no bound.
    pub budget_percent: Option<u32>,
    /// Whether they come back when they were told to, and not earlier.
    pub honours_retry_after: bool,
    /// Whether all these clients together slow down when they are refused, by [`CubicRate`](crate::CubicRate).
    pub slows_down: bool,
    /// Whether they say so when a request was tried before.
    pub marked: bool,
    /// They are so many callers with tidegate's own client, each with a budget, a breaker and a throttle of its own, who
    /// do as [`CallerPolicy::careful`](tidegate_engine::CallerPolicy::careful) says; of the above, `attempts` and `marked`
    /// count then. `None`: they have no such thing.
    pub resilient: Option<NonZeroU32>,
}

impl RetryPolicy {
    /// One try.
    pub const NONE: Self = Self {
        attempts: 1,
        backoff: Backoff::None,
        budget_percent: None,
        honours_retry_after: false,
        slows_down: false,
        marked: false,
        resilient: None,
    };
}

/// What a refusal says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing, or it was no refusal.
    Unsaid,
    /// It makes sense after so long.
    After(Duration),
    /// Not to.
    Never,
}

impl Hint {
    /// The same, in the words of our own client, of a reply that was read like this.
    pub const fn advice(self, reply: Reply) -> Advice {
        match self {
            // After 504 the work may go on, and another try would be more of it.
            Self::Unsaid if matches!(reply, Reply::TimedOut) => Advice::Never,
            Self::Unsaid => Advice::Unsaid,
            Self::After(wait) => Advice::After(wait),
            Self::Never => Advice::Never,
        }
    }

    /// What a refusal for this reason says, when a client was told to come back after so long.
    pub fn of(reason: Reason, told: Option<Duration>) -> Self {
        match reason {
            // Too late is too late, whenever one comes back.
            Reason::UpstreamTimeout | Reason::Deadline => Self::Unsaid,
            Reason::RetryBudget => Self::Never,
            _ => told.map_or(Self::Unsaid, Self::After),
        }
    }
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It tries again after so long.
    Again {
        /// From now.
        after: Duration,
        /// Because it was told so.
        told: bool,
    },
    /// It gives up.
    GiveUp,
}

/// Clients of one sort, as far as they decide about retries together.
#[derive(Clone, Debug)]
pub struct Retries {
    policy: RetryPolicy,
    budget: Option<RetryBudget>,
}

impl Retries {
    /// How many retries can be saved up.
    const BURST: u32 = 10;

    /// Clients who have not failed yet.
    pub fn new(policy: RetryPolicy) -> Self {
        let budget = policy.budget_percent.map(|percent| RetryBudget::new(percent, Self::BURST));
        Self { policy, budget }
    }

    /// One of them makes a first try.
    pub fn first_try(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.deposit();
        }
    }

    /// One of them has failed `failures` times in a row, and the last time this was said about trying again.
    pub fn failed(&mut self, failures: u32, hint: Hint, random: &mut Random) -> Next {
        let hint = if self.policy.honours_retry_after { hint } else { Hint::Unsaid };
        if failures >= self.policy.attempts || hint == Hint::Never {
            return Next::GiveUp;
        }
        if self.budget.as_mut().is_some_and(|budget| !budget.try_spend()) {
            return Next::GiveUp;
        }
        let backoff = self.policy.backoff.wait(failures, random.bits());
        match hint {
            // Whoever is told a time and backs off besides waits for the longer of the two.
            Hint::After(told) => Next::Again { after: told.max(backoff), told: true },
            Hint::Unsaid | Hint::Never => Next::Again { after: backoff, told: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const SECOND: Duration = Duration::from_secs(1);

    fn retries(attempts: u32, honours_retry_after: bool) -> Retries {
        Retries::new(RetryPolicy { attempts, honours_retry_after, ..RetryPolicy::NONE })
    }

    #[test]
    fn tries_are_counted() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let mut three = retries(3, false);
        let again = Next::Again { after: Duration::ZERO, told: false };
        assert_eq!(
            [1, 2, 3].map(|failures| three.failed(failures, Hint::Unsaid, &mut random)),
            [again, again, Next::GiveUp]
        );
    }

    #[test]
    fn what_is_told_is_honoured_by_whoever_does() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let told = Next::Again { after: SECOND, told: true };
        assert_eq!(retries(2, true).failed(1, Hint::After(SECOND), &mut random), told);
        assert_eq!(retries(2, true).failed(1, Hint::Never, &mut random), Next::GiveUp);
        let not = Next::Again { after: Duration::ZERO, told: false };
        for hint in [Hint::After(SECOND), Hint::Never] {
            assert_eq!(retries(2, false).failed(1, hint, &mut random), not);
        }
    }
}
