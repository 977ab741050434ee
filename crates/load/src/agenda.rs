//! What is to happen when: a queue by time, and by order of planning where times are the same.

use std::collections::BTreeMap;
use std::time::Duration;

/// Plans, soonest first.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    plans: BTreeMap<Plan, E>,
    planned: u64,
}

/// What was planned, for whoever may have to take it back. What is not taken back stays until it is due, which may be long after
/// it has lost its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Plan {
    at: Duration,
    number: u64,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { plans: BTreeMap::new(), planned: 0 }
    }

    pub(crate) fn plan(&mut self, at: Duration, event: E) -> Plan {
        self.planned += 1;
        let plan = Plan { at, number: self.planned };
        self.plans.insert(plan, event);
        plan
    }

    /// It will not happen, if it has not yet.
    pub(crate) fn cancel(&mut self, plan: Plan) {
        self.plans.remove(&plan);
    }

    /// The moment of the next.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.plans.first_key_value().map(|(plan, _)| plan.at)
    }

    /// The next that is due by now, with the moment that it was planned for.
    pub(crate) fn due(&mut self, now: Duration) -> Option<(Duration, E)> {
        let first = self.plans.first_entry().filter(|first| first.key().at <= now)?;
        let (plan, event) = first.remove_entry();
        Some((plan.at, event))
    }

    /// How much is planned.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }
}
