//! Retries: who is one, where it stands in line, and how many there may be, clients' and our own together.
//!
//! When much is refused, much comes back, and then most of what is asked for may be retries: the load feeds itself. So
//! whoever was tried before stands behind those who come for the first time, and of those who say of themselves that they
//! were, no more are let in than a share of the first tries. Whoever comes back when it was told to has done what was
//! asked, and is treated like anybody else.

use core::num::NonZeroU32;

use crate::decision::{Arrival, Attempt};
use crate::policy::RetryPolicy;
use crate::queue::Rank;
use crate::retry::RetryBudget;
use crate::time::Timestamp;
use crate::told::{Return, Told};

/// So many refused callers are remembered: 176 KiB. Of more at a time some are taken for one another, which costs those
/// their place before retries, and nothing else.
const REMEMBERED: NonZeroU32 = NonZeroU32::new(4_096).expect("not zero");

/// What is known of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// Nothing speaks against it being a first try.
    First,
    /// It was refused, and comes when it was told to.
    AsTold,
    /// Its like was refused a moment ago and told to come later. That is not certain enough to refuse it for.
    Suspected,
    /// It says so itself.
    Before,
}

impl Tried {
    pub(crate) const fn rank(self) -> Rank {
        match self {
            Self::First | Self::AsTold => Rank::First,
            Self::Suspected | Self::Before => Rank::Retry,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Damping {
    policy: RetryPolicy,
    budget: RetryBudget,
    told: Told,
}

impl Damping {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self { policy, budget: RetryBudget::of(policy), told: Told::new(REMEMBERED) }
    }

    /// Puts other numbers in force. What was told to whom stays known.
    pub(crate) fn reconfigure(&mut self, policy: RetryPolicy) {
        if self.policy != policy {
            self.policy = policy;
            self.budget = RetryBudget::of(policy);
        }
    }

    /// What is known of an arrival. To be asked once: coming back as told is forgotten with it.
    pub(crate) fn judge(&mut self, now: Timestamp, arrival: &Arrival) -> Tried {
        if !self.policy.damp {
            return Tried::First;
        }
        let returned = arrival.fingerprint.and_then(|fingerprint| self.told.comes(now, fingerprint));
        match (returned, arrival.attempt) {
            (Some(Return::OnTime), _) => Tried::AsTold,
            (_, Attempt::Retry) => Tried::Before,
            (Some(Return::Early), Attempt::Unsaid) => Tried::Suspected,
            (None, Attempt::Unsaid) => Tried::First,
        }
    }

    /// Whether there may be one more.
    pub(crate) fn affords(&mut self, now: Timestamp, tried: Tried) -> bool {
        self.budget.refill(now);
        tried != Tried::Before || self.budget.left() > 0
    }

    /// It was let in.
    pub(crate) fn let_in(&mut self, tried: Tried) {
        match tried {
            Tried::First => self.budget.deposit(),
            Tried::AsTold => {}
            // One that is only suspected to be one may find nothing left to spend.
            Tried::Suspected | Tried::Before => {
                self.budget.try_spend();
            }
        }
    }

    /// Whether the driver may try again by itself, which is counted if so.
    pub(crate) fn spend(&mut self, now: Timestamp) -> bool {
        self.budget.refill(now);
        self.budget.try_spend()
    }

    /// It was refused, and told to come back at this time.
    pub(crate) fn refused(&mut self, now: Timestamp, fingerprint: Option<u64>, until: Timestamp) {
        if let Some(fingerprint) = fingerprint.filter(|_| self.policy.damp) {
            self.told.tell(now, fingerprint, until);
        }
    }

    /// How many retries are left at this moment.
    pub(crate) fn left(&self) -> u32 {
        self.budget.left()
    }
}
