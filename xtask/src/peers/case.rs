//! One thing that is tried with everybody: what the service can do, who comes, and what is asked of the result.
//!
//! Only the form; the cases themselves are in [`overload`](super::overload), [`priorities`](super::priorities) and
//! [`fairness`](super::fairness).

use std::ops::Range;
use std::time::Duration;

use super::load::{Patience, Stream};
use super::plan::{Plan, Spacing, Stretch};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What happens, in a few words.
    pub(crate) title: String,
    /// How many requests the service works on at once.
    pub(crate) workers: u32,
    /// What the service does, one phase after the other.
    pub(crate) phases: Vec<Phase>,
    /// Who comes.
    pub(crate) kinds: Vec<Kind>,
    /// How their moments lie.
    pub(crate) spacing: Spacing,
    /// How long they wait, and how often they try again.
    pub(crate) patience: Patience,
    /// What the gateways are told of their clients.
    pub(crate) story: Story,
    /// What is asked.
    pub(crate) figures: Vec<Asked>,
}

/// What the gateways are told of their clients, as far as each can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// Nothing: all are alike.
    Untold,
    /// The checkout is important, analytics is not.
    Priorities,
    /// The header `x-tenant` says whose request it is.
    Tenants,
}

/// A time in which nothing changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// How long it lasts.
    pub(crate) length: Duration,
    /// How long the service works on a request.
    pub(crate) service_time: Duration,
}

/// Clients of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// What they are called in the report.
    pub(crate) name: &'static str,
    /// What they ask for.
    pub(crate) path: &'static str,
    /// A header line, such as `x-tenant: a`.
    pub(crate) header: Option<String>,
    /// How many come a second, one number for each phase.
    pub(crate) rates: Vec<f64>,
}

/// A figure, and what tidegate is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// What is asked.
    pub(crate) figure: Figure,
    /// What tidegate is held to; `None` when it is shown only.
    pub(crate) goal: Option<Goal>,
}

/// What can be asked of a run. Phases and kinds are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// Good answers, as a share of what was possible, in all phases or in one.
    Goodput {
        /// In which phase only.
        phase: Option<usize>,
    },
    /// Good answers to one kind in one phase, as a share of what the service can do.
    ShareOfCapacity {
        /// Whose.
        kind: usize,
        /// When.
        phase: usize,
    },
    /// Of the clients of one kind that came in one phase, the share whose first try was good.
    Served {
        /// Whose.
        kind: usize,
        /// When.
        phase: usize,
    },
    /// The 99th percentile of the good answers' latency in phase 1, as a multiple of that in phase 0.
    Slowdown {
        /// Whose.
        kind: usize,
    },
    /// The latency of good answers: the median.
    AnswerMedian,
    /// How long refusals took: the median.
    RefusalMedian,
    /// How long refusals took: the 99th percentile.
    RefusalTail,
    /// How long the slowest refusal took.
    RefusalMax,
    /// The share of clients whose first try was refused.
    Refused,
    /// The share of clients that gave up waiting on their first try.
    GaveUp,
    /// How long after the beginning of the last phase goodput is back at 95 %.
    Recovery,
}

/// What tidegate is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// At least this much.
    AtLeast(f64),
    /// At most this much.
    AtMost(f64),
}

impl Goal {
    /// Whether `value` is as it should be. What is not a number was not there to be measured, such as the latency of
    /// refusals where nobody was refused, and misses nothing.
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value.is_nan() || value >= least,
            Self::AtMost(most) => value.is_nan() || value <= most,
        }
    }
}

impl Case {
    /// Whether anything that is asked is compared with what the service can do, so that this has to be measured.
    pub(crate) fn asks_for_capacity(&self) -> bool {
        self.figures.iter().any(|asked| match asked.figure {
            Figure::Goodput { .. } | Figure::ShareOfCapacity { .. } | Figure::Recovery => true,
            Figure::Served { .. }
            | Figure::Slowdown { .. }
            | Figure::AnswerMedian
            | Figure::RefusalMedian
            | Figure::RefusalTail
            | Figure::RefusalMax
            | Figure::Refused
            | Figure::GaveUp => false,
        })
    }

    /// How many answers a second the service could give in a phase if its timers were exact.
    pub(crate) fn nominal_capacity(&self, phase: usize) -> f64 {
        let time = self.phases.get(phase).map_or(Duration::MAX, |phase| phase.service_time);
        f64::from(self.workers) / time.as_secs_f64()
    }

    /// From the first request to the end of the plan.
    pub(crate) fn span(&self) -> Range<Duration> {
        Duration::ZERO..self.phases.iter().map(|phase| phase.length).sum()
    }

    /// When a phase begins and ends.
    pub(crate) fn span_of(&self, phase: usize) -> Range<Duration> {
        let before = self.phases.iter().take(phase).map(|phase| phase.length).sum();
        let length = self.phases.get(phase).map_or(Duration::ZERO, |phase| phase.length);
        before..before + length
    }

    /// How many come a second in a phase.
    pub(crate) fn offered(&self, phase: usize) -> f64 {
        self.kinds.iter().filter_map(|kind| kind.rates.get(phase)).sum()
    }

    /// How many good answers a second are possible in a phase: what is offered, and no more than the service can do,
    /// which is nothing when it takes longer than anybody waits.
    pub(crate) fn possible(&self, phase: usize, capacity: f64) -> f64 {
        match self.phases.get(phase) {
            Some(now) if now.service_time < self.patience.timeout => self.offered(phase).min(capacity),
            _ => 0.0,
        }
    }

    /// The load, ready to be sent.
    pub(crate) fn streams(&self, seed: u64) -> Vec<Stream> {
        let stream = |(index, kind): (u64, &Kind)| {
            let stretch = |(phase, rate): (&Phase, &f64)| Stretch { rate: *rate, length: phase.length };
            let stretches = self.phases.iter().zip(&kind.rates).map(stretch).collect();
            let spacing = match self.spacing {
                Spacing::Even => Spacing::Even,
                Spacing::Poisson { seed: own } => Spacing::Poisson { seed: own + seed + (index << 32) },
            };
            Stream { path: kind.path, header: kind.header.clone(), plan: Plan { stretches, spacing } }
        };
        (0..).zip(&self.kinds).map(stream).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(timeout: u64) -> Case {
        let phase = |seconds, millis| Phase {
            length: Duration::from_secs(seconds),
            service_time: Duration::from_millis(millis),
        };
        Case {
            name: "case",
            title: String::new(),
            workers: 10,
            phases: vec![phase(5, 20), phase(3, 500)],
            kinds: vec![
                Kind { name: "a", path: "/a", header: None, rates: vec![100.0, 300.0] },
                Kind { name: "b", path: "/b", header: None, rates: vec![300.0, 300.0] },
            ],
            spacing: Spacing::Even,
            patience: Patience { timeout: Duration::from_millis(timeout), repetitions: 0 },
            story: Story::Untold,
            figures: Vec::new(),
        }
    }

    #[test]
    fn possible_is_what_is_offered_and_what_can_be_done_in_time() {
        assert_eq!(case(400).possible(0, 450.0), 400.0);
        assert_eq!(case(400).possible(0, 350.0), 350.0);
        assert_eq!(case(1000).possible(1, 20.0), 20.0);
        // Nobody waits for half a second.
        assert_eq!(case(400).possible(1, 20.0), 0.0);
        assert_eq!(case(400).possible(2, 20.0), 0.0);
    }

    #[test]
    fn phases_follow_each_other() {
        let seconds = |span: Range<Duration>| span.start.as_secs()..span.end.as_secs();
        assert_eq!(seconds(case(400).span()), 0..8);
        assert_eq!(seconds(case(400).span_of(1)), 5..8);
        let moments = case(400).streams(0)[0].plan.moments().count();
        // The last of them would come at the very end.
        assert_eq!(moments, 5 * 100 + 3 * 300 - 1);
    }

    #[test]
    fn a_goal_is_met_by_what_is_enough_and_by_what_is_not_there() {
        assert!(Goal::AtLeast(0.98).is_met(0.98) && !Goal::AtLeast(0.98).is_met(0.979));
        assert!(Goal::AtMost(2.0).is_met(2.0) && !Goal::AtMost(2.0).is_met(f64::INFINITY));
        assert!(Goal::AtMost(1.0).is_met(f64::NAN));
    }
}
