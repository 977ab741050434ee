//! The gateway's own second tries: whether there may be one, and what it says to those who watch.
//!
//! There is one rule for all. A request is sent again at most once, and only if nothing of it was sent, or if doing it
//! twice is as good as once, the connection was a kept one, and it died before a byte of the answer had come. Then the
//! budget has to allow it, which is the one that pays for clients' retries too (`Gate::spend_retry`). What the upstream
//! refuses, and what we refuse ourselves, is never tried again.

use http::Method;

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

#[derive(Default)]
pub(crate) struct Retries {
    decided: [Counter; Decision::ALL.len()],
}

impl Retries {
    pub(super) fn count(&self, decision: Decision) {
        self.decided[decision as usize].add(1);
    }

    pub(crate) fn decided(&self, decision: Decision) -> u64 {
        self.decided[decision as usize].get()
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
}
