//! What is to happen when: a queue by time, and by order of planning where times are the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Plans, soonest first.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    plans: BinaryHeap<Reverse<Plan<E>>>,
    planned: u64,
}

#[derive(Debug)]
struct Plan<E> {
    at: Duration,
    number: u64,
    event: E,
}

impl<E> PartialEq for Plan<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Plan<E> {}

impl<E> PartialOrd for Plan<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Plan<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { plans: BinaryHeap::new(), planned: 0 }
    }

    pub(crate) fn plan(&mut self, at: Duration, event: E) {
        self.planned += 1;
        self.plans.push(Reverse(Plan { at, number: self.planned, event }));
    }

    /// The moment of the next.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.plans.peek().map(|Reverse(plan)| plan.at)
    }

    /// The next that is due by now, with the moment that it was planned for.
    pub(crate) fn due(&mut self, now: Duration) -> Option<(Duration, E)> {
        if self.next_at()? > now {
            return None;
        }
        self.plans.pop().map(|Reverse(plan)| (plan.at, plan.event))
    }
}
