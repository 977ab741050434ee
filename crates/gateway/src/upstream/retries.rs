//! The gateway's own second tries: whether there may be one, and what it says to those who watch.
//!
//! There is one rule for all. A request is sent again at most once, and only if nothing of it was sent, or if doing it
//! twice is as good as once, the connection was a kept one, and it died before a byte of the answer had come. Then the
//! budget has to allow it, which counts from this decision on (envoy#30205). What the upstream refuses, and what we
//! refuse ourselves, is never tried again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Method;
use tidegate_engine::{RetryBudget, RetryPolicy, Timestamp};

use crate::metrics::Counter;

/// What was decided about a try that had failed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is sent again.
    Retried,
    /// The budget is spent.
    Budget,
    /// Something was sent, and it may have been done.
    NotSafe,
    /// There is no other endpoint to send it to.
    Nowhere,
    /// It was the second try.
    Second,
    /// Its time is over, or its client has gone.
    Late,
}

impl Decision {
    /// Every decision with its name. `decision as usize` is its index here.
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Retried, "retried"),
        (Self::Budget, "budget"),
        (Self::NotSafe, "not_safe"),
        (Self::Nowhere, "nowhere"),
        (Self::Second, "second"),
        (Self::Late, "late"),
    ];
}

pub(crate) struct Retries {
    state: Mutex<State>,
    decided: [Counter; Decision::ALL.len()],
}

struct State {
    policy: RetryPolicy,
    budget: RetryBudget,
}

impl Retries {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        let state = State { policy, budget: RetryBudget::of(policy) };
        Self { state: Mutex::new(state), decided: Default::default() }
    }

    /// Another policy does not fill the budget again, unless it changes something.
    pub(super) fn reconfigure(&self, policy: RetryPolicy) {
        let mut state = self.lock();
        if state.policy != policy {
            state.policy = policy;
            state.budget = RetryBudget::of(policy);
        }
    }

    /// A request is sent for the first time.
    pub(super) fn deposit(&self) {
        self.lock().budget.deposit();
    }

    /// Whether the budget allows another try, which is counted if so.
    pub(super) fn try_spend(&self, now: Timestamp) -> bool {
        let mut state = self.lock();
        state.budget.refill(now);
        state.budget.try_spend()
    }

    pub(super) fn count(&self, decision: Decision) {
        self.decided[decision as usize].add(1);
    }

    pub(crate) fn decided(&self, decision: Decision) -> u64 {
        self.decided[decision as usize].get()
    }

    /// How many the budget allows just now.
    pub(crate) fn left(&self) -> u32 {
        self.lock().budget.left()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether doing it twice is as good as once (RFC 9110 section 9.2.2).
pub(super) const fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_its_own_index() {
        for (index, (decision, _)) in Decision::ALL.into_iter().enumerate() {
            assert_eq!(decision as usize, index, "{decision:?}");
        }
    }

    /// How many of a thousand requests in each of ten seconds, all of which fail, are sent again.
    fn retried(policy: RetryPolicy) -> usize {
        let retries = Retries::new(policy);
        let mut retried = 0;
        for at in 0..10_000 {
            retries.deposit();
            retried += usize::from(retries.try_spend(Timestamp::from_millis(at)));
        }
        retried
    }

    /// H5 (envoy#30205). Whatever fails, there are no more retries than the budget says, and none where it says none.
    #[test]
    fn the_budget_holds() {
        let most = 2_000 + 100 + 10 * 10;
        let retries = retried(RetryPolicy { percent: 20, burst: 100, per_second: 10 });
        assert!((2_000..=most).contains(&retries), "{retries} of 10000");
        assert_eq!(retried(RetryPolicy { percent: 0, burst: 0, per_second: 0 }), 0);
        assert_eq!(retried(RetryPolicy { percent: 20, burst: 0, per_second: 0 }), 2_000);
    }

    /// H5. With few requests there are a few in any case.
    #[test]
    fn a_few_a_second_in_any_case() {
        assert_eq!(retried(RetryPolicy { percent: 0, burst: 0, per_second: 10 }), 10 * 10 + 9);
        let few = Retries::new(RetryPolicy { percent: 20, burst: 0, per_second: 3 });
        let at = |millis| few.try_spend(Timestamp::from_millis(millis));
        assert_eq!([0, 1, 2, 3, 400, 401].map(at), [true, true, true, false, true, false]);
    }

    /// A reload that changes nothing fills nothing.
    #[test]
    fn a_reload_does_not_fill_the_budget() {
        let policy = RetryPolicy { percent: 20, burst: 1, per_second: 0 };
        let retries = Retries::new(policy);
        assert!(retries.try_spend(Timestamp::ZERO));
        retries.reconfigure(policy);
        assert!(!retries.try_spend(Timestamp::ZERO));
    }
}
