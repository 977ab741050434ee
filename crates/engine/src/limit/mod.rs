//! How much may be in flight: one enum over the algorithms, and what they learn from.
//!
//! A limit counts nothing and hands out nothing; [`Admission`](crate::Admission) does. It sees samples and says a
//! number, so each algorithm is tested by feeding it samples.

mod aimd;

use core::time::Duration;

use aimd::Aimd;

use crate::decision::Outcome;
use crate::policy::{LIMIT_MAX, LimitPolicy};
use crate::time::Timestamp;

/// What a limit learns from one response head, or from its absence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// From the dispatch to the response head.
    pub(crate) latency: Duration,
    pub(crate) outcome: Outcome,
    /// At least half of the limit was in use. A limit that nobody needs must not grow, or it is of no use when the
    /// flood comes.
    pub(crate) in_use: bool,
}

#[derive(Debug)]
pub(crate) enum Limit {
    Fixed(u32),
    Aimd(Aimd),
}

impl Limit {
    pub(crate) fn new(policy: &LimitPolicy) -> Self {
        match policy {
            LimitPolicy::Fixed(limit) => Self::Fixed(limit.get().min(LIMIT_MAX)),
            LimitPolicy::Aimd(policy) => Self::Aimd(Aimd::new(policy.clone())),
        }
    }

    /// The limit in force; at least 1.
    pub(crate) fn current(&self) -> u32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Aimd(aimd) => aimd.current(),
        }
    }

    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        match self {
            Self::Fixed(_) => {}
            Self::Aimd(aimd) => aimd.on_sample(now, sample),
        }
    }

    /// Takes a new policy. An adaptive limit keeps what it has learned.
    pub(crate) fn reconfigure(&mut self, policy: &LimitPolicy) {
        match (&mut *self, policy) {
            (Self::Aimd(aimd), LimitPolicy::Aimd(policy)) => aimd.reconfigure(policy.clone()),
            _ => *self = Self::new(policy),
        }
    }
}
