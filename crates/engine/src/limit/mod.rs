//! How much may be in flight: one enum over the algorithms, and what they learn from.
//!
//! A limit counts nothing and hands out nothing; [`Admission`](crate::Admission) does. It sees samples and says a
//! number, so each algorithm is tested by feeding it samples.

mod aimd;
mod ebb;
mod gradient2;
mod reported;
mod vegas;

use core::time::Duration;

use aimd::Aimd;
use ebb::Ebb;
use gradient2::Gradient2;
use reported::Reported;
use vegas::Vegas;

use crate::decision::Outcome;
use crate::policy::{LIMIT_MAX, LimitPolicy, RangePolicy};
use crate::time::Timestamp;

/// What a limit learns from one response head, or from its absence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// From the dispatch to the response head.
    pub(crate) latency: Duration,
    pub(crate) outcome: Outcome,
    /// The client did not wait for it; the upstream may work on.
    pub(crate) gave_up: bool,
    /// At least half of the limit was in use. A limit that nobody needs must not grow, or it is of no use when the
    /// flood comes.
    pub(crate) in_use: bool,
    /// After how long an answer is too late for clients that do not say how long they wait, as far as it is known.
    pub(crate) patience: Option<Duration>,
}

/// What an algorithm says, under a ceiling by what the upstream says of itself.
#[derive(Debug)]
pub(crate) struct Limit {
    algorithm: Algorithm,
    reported: Reported,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each upstream, and nearly always it is the largest"
)]
enum Algorithm {
    Fixed(u32),
    Ebb(Ebb),
    Aimd(Aimd),
    Vegas(Vegas),
    Gradient2(Gradient2),
}

impl Limit {
    pub(crate) fn new(policy: &LimitPolicy) -> Self {
        Self { algorithm: Algorithm::new(policy), reported: Reported::default() }
    }

    /// The limit in force; at least 1.
    pub(crate) fn current(&self) -> u32 {
        self.algorithm.current().min(self.reported.ceiling())
    }

    /// How things have stood since this was called last; called before they change.
    pub(crate) fn observe(&mut self, now: Timestamp, in_flight: u32, waiting: bool) {
        // Under the ceiling it is not the algorithm's limit that holds anybody back.
        let waiting = waiting && !self.is_under_ceiling();
        if let Algorithm::Ebb(ebb) = &mut self.algorithm {
            ebb.observe(now, in_flight, waiting);
        }
        self.reported.observe(now);
    }

    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        let sample = Sample { in_use: sample.in_use && !self.is_under_ceiling(), ..sample };
        match &mut self.algorithm {
            Algorithm::Fixed(_) => {}
            Algorithm::Ebb(ebb) => ebb.on_sample(now, sample),
            Algorithm::Aimd(aimd) => aimd.on_sample(now, sample),
            Algorithm::Vegas(vegas) => vegas.on_sample(sample),
            Algorithm::Gradient2(gradient) => gradient.on_sample(now, sample),
        }
    }

    /// The upstream has answered a request whose client had given up.
    pub(crate) fn on_late(&mut self, now: Timestamp) {
        if let Algorithm::Ebb(ebb) = &mut self.algorithm {
            ebb.on_late(now);
        }
    }

    /// The upstream reports this load, as a part of what it should be.
    pub(crate) fn on_load(&mut self, now: Timestamp, load: f64, in_flight: u32) {
        self.reported.on_load(now, load, in_flight);
    }

    /// Takes a new policy. An adaptive limit keeps what it has learned.
    pub(crate) fn reconfigure(&mut self, policy: &LimitPolicy) {
        match (&mut self.algorithm, policy) {
            (Algorithm::Ebb(ebb), LimitPolicy::Ebb(policy)) => ebb.reconfigure(policy.clone()),
            (Algorithm::Aimd(aimd), LimitPolicy::Aimd(policy)) => aimd.reconfigure(policy.clone()),
            (Algorithm::Vegas(vegas), LimitPolicy::Vegas(policy)) => vegas.reconfigure(policy),
            (Algorithm::Gradient2(gradient), LimitPolicy::Gradient2(policy)) => gradient.reconfigure(policy),
            (algorithm, _) => *algorithm = Algorithm::new(policy),
        }
    }

    fn is_under_ceiling(&self) -> bool {
        self.reported.ceiling() < self.algorithm.current()
    }
}

impl Algorithm {
    fn new(policy: &LimitPolicy) -> Self {
        match policy {
            LimitPolicy::Fixed(limit) => Self::Fixed(limit.get().min(LIMIT_MAX)),
            LimitPolicy::Ebb(policy) => Self::Ebb(Ebb::new(policy.clone())),
            LimitPolicy::Aimd(policy) => Self::Aimd(Aimd::new(policy.clone())),
            LimitPolicy::Vegas(policy) => Self::Vegas(Vegas::new(policy)),
            LimitPolicy::Gradient2(policy) => Self::Gradient2(Gradient2::new(policy)),
        }
    }

    fn current(&self) -> u32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Ebb(ebb) => ebb.current(),
            Self::Aimd(aimd) => aimd.current(),
            Self::Vegas(vegas) => vegas.current(),
            Self::Gradient2(gradient) => gradient.current(),
        }
    }
}

/// The bounds of a limit that is a real number inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    least: f64,
    most: f64,
}

impl Range {
    pub(crate) fn new(policy: &RangePolicy) -> Self {
        let most = policy.max.get().min(LIMIT_MAX);
        Self { least: f64::from(policy.min.get().min(most)), most: f64::from(most) }
    }

    pub(crate) fn initial(self, policy: &RangePolicy) -> f64 {
        self.clamp(f64::from(policy.initial.get()))
    }

    /// NaN is the least.
    pub(crate) fn clamp(self, limit: f64) -> f64 {
        if limit > self.least { limit.min(self.most) } else { self.least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;

    pub(super) fn range(min: u32, max: u32, initial: u32) -> RangePolicy {
        let number = |n| NonZeroU32::new(n).unwrap();
        RangePolicy { min: number(min), max: number(max), initial: number(initial) }
    }

    pub(super) fn sample(millis: u64, outcome: Outcome) -> Sample {
        Sample {
            latency: Duration::from_millis(millis),
            outcome,
            gave_up: false,
            in_use: true,
            patience: None,
        }
    }
}
