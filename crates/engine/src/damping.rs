//! Retries: who is one, where it stands in line, and how many there may be, clients' and our own together.
//!
//! When much is refused, much comes back, and then most of what is asked for may be retries: the load feeds itself. So
//! whoever was tried before stands behind those who come for the first time, and of those who say of themselves that they
//! were, no more are let in than a share of the first tries. Whoever comes back when it was told to has done what was
//! asked, and is treated like anybody else.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::comeback::Line;
use crate::decision::{Arrival, Attempt};
use crate::lately::Lately;
use crate::policy::RetryPolicy;
use crate::queue::Rank;
use crate::retry::RetryBudget;
use crate::time::Timestamp;
use crate::told::{Return, Told};

/// So many refused callers are remembered: 176 KiB. When there are more at a time, nobody is suspected any more: in a sketch
/// that is too full everybody looks like somebody who was refused.
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

/// A caller is remembered for at most so long, and [`Told::GRACE`]. Whoever comes back later than that and still too early
/// has waited long enough to be treated like anybody else.
const MEMORY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Damping {
    policy: RetryPolicy,
    budget: RetryBudget,
    told: Told,
    /// How many were told something of late.
    crowd: Lately,
}

/// So long a caller is remembered at most.
const WINDOW: Duration = MEMORY.saturating_add(Told::GRACE);

impl Damping {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            budget: RetryBudget::of(policy),
            told: Told::new(REMEMBERED),
            crowd: Lately::of(WINDOW),
        }
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
        let fingerprint = arrival.fingerprint.filter(|_| !self.is_crowded(now));
        let returned = fingerprint.and_then(|fingerprint| self.told.comes(now, fingerprint));
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
        // A part is kept for our own retries, which anybody could use up otherwise by calling all that it sends a retry.
        tried != Tried::Before || self.budget.left() > self.policy.burst / 4
    }

    /// It was let in.
    pub(crate) fn let_in(&mut self, tried: Tried) {
        match tried {
            Tried::First => self.budget.deposit(),
            Tried::AsTold | Tried::Suspected => {}
            Tried::Before => {
                self.budget.try_spend();
            }
        }
    }

    /// Whether the driver may try again by itself, which is counted if so.
    pub(crate) fn spend(&mut self, now: Timestamp) -> bool {
        self.budget.refill(now);
        self.budget.try_spend()
    }

    /// Whether a caller that is refused was told a time before that has not come yet.
    pub(crate) fn line(&mut self, now: Timestamp, fingerprint: Option<u64>) -> Line {
        let known = fingerprint.filter(|_| self.policy.damp && !self.is_crowded(now));
        let due = known.and_then(|known| self.told.due(now, known));
        if due.is_some_and(|due| due > now) { Line::Joined } else { Line::New }
    }

    /// It was refused, and told to come back at this time. Whoever is told so again is no more of a crowd than before.
    pub(crate) fn refused(&mut self, now: Timestamp, fingerprint: Option<u64>, until: Timestamp, line: Line) {
        if let Some(fingerprint) = fingerprint.filter(|_| self.policy.damp) {
            self.told.tell(now, fingerprint, until.min(now.after(MEMORY)));
            if line == Line::New {
                self.crowd.add(now, 1.0);
            }
        }
    }

    fn is_crowded(&self, now: Timestamp) -> bool {
        self.crowd.sum(now) > f64::from(REMEMBERED.get())
    }

    /// How many retries are left at this moment.
    pub(crate) fn left(&self) -> u32 {
        self.budget.left()
    }
}
