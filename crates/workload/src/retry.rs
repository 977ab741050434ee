//! What a client does about a failure: try again or not, and when.
//!
//! It decides with the engine's own back-off and budget. It does not send anything.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{Advice, Backoff, Reason, Reply, RetryBudget};

use crate::breaker::{RetryBreaker, Seen};
use crate::random::Random;

/// How clients of one sort retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first among them.
    pub attempts: u32,
    /// How long they wait before the next.
    pub backoff: Backoff,
    /// They are so many callers, none of whom knows of the others: each has a budget and a breaker of its own.
    pub callers: NonZeroU32,
    /// Retries for a hundred first tries, of each caller; `None` for no bound.
    pub budget_percent: Option<u32>,
    /// When a caller does not try again because of what it has seen; `None` for never.
    pub breaker: Option<RetryBreaker>,
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
        callers: NonZeroU32::MIN,
        budget_percent: None,
        breaker: None,
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

/// Which of the callers of one sort a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerId(u32);

/// A try that was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Whose it was.
    pub caller: CallerId,
    /// So many tries of the request have failed in a row, this one among them.
    pub failures: u32,
    /// What was said about trying again.
    pub hint: Hint,
}

/// Clients of one sort, as far as they decide about retries.
#[derive(Clone, Debug)]
pub struct Retries {
    policy: RetryPolicy,
    /// One for each caller, or none if there is no bound.
    budgets: Vec<RetryBudget>,
    /// What each caller has seen, or nothing if none has a breaker.
    seen: Vec<Seen>,
}

impl Retries {
    /// How many retries can be saved up.
    const BURST: u32 = 10;

    /// Clients who have not failed yet.
    pub fn new(policy: RetryPolicy) -> Self {
        let callers = policy.callers.get() as usize;
        let budget = policy.budget_percent.map(|percent| RetryBudget::new(percent, Self::BURST));
        Self {
            policy,
            budgets: budget.map_or_else(Vec::new, |budget| vec![budget; callers]),
            seen: policy.breaker.map_or_else(Vec::new, |_| vec![Seen::default(); callers]),
        }
    }

    /// One of them, drawn by lot, makes a first try: requests that come at random and go to one of several at random come
    /// to each at random.
    pub fn first_try(&mut self, random: &mut Random) -> CallerId {
        let caller = match self.policy.callers.get() {
            1 => CallerId(0),
            callers => CallerId(random.below(callers as usize) as u32),
        };
        if let Some(budget) = self.budgets.get_mut(caller.index()) {
            budget.deposit();
        }
        caller
    }

    /// A try of one of them was of use.
    pub fn succeeded(&mut self, now: Duration, caller: CallerId) {
        self.saw(now, caller, false);
    }

    /// A try of one of them was not.
    pub fn failed(&mut self, now: Duration, failed: Failed, random: &mut Random) -> Next {
        let Failed { caller, failures, hint } = failed;
        self.saw(now, caller, true);
        let hint = if self.policy.honours_retry_after { hint } else { Hint::Unsaid };
        if failures >= self.policy.attempts || hint == Hint::Never || self.is_open(now, caller) {
            return Next::GiveUp;
        }
        if self.budgets.get_mut(caller.index()).is_some_and(|budget| !budget.try_spend()) {
            return Next::GiveUp;
        }
        let backoff = self.policy.backoff.wait(failures, random.bits());
        match hint {
            // Whoever is told a time and backs off besides waits for the longer of the two.
            Hint::After(told) => Next::Again { after: told.max(backoff), told: true },
            Hint::Unsaid | Hint::Never => Next::Again { after: backoff, told: false },
        }
    }

    fn saw(&mut self, now: Duration, caller: CallerId, failed: bool) {
        if let (Some(breaker), Some(seen)) = (&self.policy.breaker, self.seen.get_mut(caller.index())) {
            seen.count(now, breaker, failed);
        }
    }

    fn is_open(&mut self, now: Duration, caller: CallerId) -> bool {
        match (&self.policy.breaker, self.seen.get_mut(caller.index())) {
            (Some(breaker), Some(seen)) => seen.is_open(now, breaker),
            _ => false,
        }
    }
}

impl CallerId {
    const fn index(self) -> usize {
        self.0 as usize
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

    const fn failed(failures: u32, hint: Hint) -> Failed {
        Failed { caller: CallerId(0), failures, hint }
    }

    #[test]
    fn tries_are_counted() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let mut three = retries(3, false);
        let again = Next::Again { after: Duration::ZERO, told: false };
        assert_eq!(
            [1, 2, 3].map(|failures| three.failed(SECOND, failed(failures, Hint::Unsaid), &mut random)),
            [again, again, Next::GiveUp]
        );
    }

    #[test]
    fn what_is_told_is_honoured_by_whoever_does() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let told = Next::Again { after: SECOND, told: true };
        let mut next = |honours, hint| retries(2, honours).failed(SECOND, failed(1, hint), &mut random);
        assert_eq!(next(true, Hint::After(SECOND)), told);
        assert_eq!(next(true, Hint::Never), Next::GiveUp);
        let not = Next::Again { after: Duration::ZERO, told: false };
        for hint in [Hint::After(SECOND), Hint::Never] {
            assert_eq!(next(false, hint), not);
        }
    }

    /// The retries that are made when so many requests come in a second, and this share of all tries fails.
    fn made(policy: RetryPolicy, requests: u32, share: f64) -> u32 {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let mut retries = Retries::new(RetryPolicy { attempts: 2, ..policy });
        let mut made = 0;
        for _ in 0..requests {
            let caller = retries.first_try(&mut random);
            if random.uniform() >= share {
                retries.succeeded(SECOND, caller);
                continue;
            }
            let failed = Failed { caller, failures: 1, hint: Hint::Unsaid };
            made += u32::from(retries.failed(SECOND, failed, &mut random) != Next::GiveUp);
        }
        made
    }

    /// What one has spent, the others have not; and each begins with what can be saved up.
    #[test]
    fn each_caller_has_a_budget_of_its_own() {
        for callers in [1, 20] {
            let callers = NonZeroU32::new(callers).unwrap();
            let budget = RetryPolicy { callers, budget_percent: Some(0), ..RetryPolicy::NONE };
            assert_eq!(made(budget, 10_000, 1.0), callers.get() * Retries::BURST);
        }
    }

    /// A caller who has seen a thousand tries knows their share, and one who has seen ten knows its own luck.
    #[test]
    fn each_caller_knows_what_it_has_seen_itself() {
        let breaker = Some(RetryBreaker { percent: 10, window: 10 * SECOND, min_tries: NonZeroU32::MIN });
        let with = |callers, share| {
            let callers = NonZeroU32::new(callers).unwrap();
            made(RetryPolicy { callers, breaker, ..RetryPolicy::NONE }, 10_000, share)
        };
        let (few, many) = (with(10, 0.05), with(1_000, 0.05));
        assert!((400..600).contains(&few) && (10..100).contains(&many), "{few} and {many} of about 500");
        assert_eq!(with(10, 0.5), 0);
    }
}
