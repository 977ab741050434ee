//! How many requests were at work at once, from their arrivals and times: what the limit of the old system was, if it
//! had one, is how many were at work while anybody waited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use tidegate_engine::Timestamp;

/// So many requests may be under way at once. With more it is given up to count them.
const UNDER_WAY_MAX: usize = 1_000_000;
/// So many levels are told apart.
const LEVELS_MAX: usize = 65_536;

/// What happens next to a request. At one moment, places come free before they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ends,
    Begins,
}

/// Counts as requests are taken in, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    steps: BinaryHeap<Reverse<(Timestamp, Step)>>,
    now: Timestamp,
    at_work: usize,
    waiting: usize,
    /// How long so many were at work while somebody waited.
    while_waiting: Vec<Duration>,
    most: usize,
    is_given_up: bool,
}

impl Busy {
    /// A request waited so long and was then at work so long.
    pub(crate) fn take(&mut self, arrived: Timestamp, waited: Duration, worked: Duration) {
        if self.is_given_up || self.steps.len() >= 2 * UNDER_WAY_MAX {
            self.is_given_up = true;
            self.steps.clear();
            return;
        }
        self.advance(arrived);
        let begins = arrived.after(waited);
        self.waiting += 1;
        self.steps.push(Reverse((begins, Step::Begins)));
        self.steps.push(Reverse((begins.after(worked), Step::Ends)));
    }

    /// The limit, if there seems to have been one: how many were at work for most of the time that anybody waited, and
    /// for which share of that time.
    pub(crate) fn limit(mut self) -> Option<(usize, f64)> {
        self.advance(Timestamp::MAX);
        let whole: Duration = self.while_waiting.iter().sum();
        if self.is_given_up || whole.is_zero() {
            return None;
        }
        let (level, time) = self.while_waiting.iter().enumerate().max_by_key(|(_, time)| **time)?;
        Some((level, time.as_secs_f64() / whole.as_secs_f64()))
    }

    /// How many were at work at once at most, so far.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    fn advance(&mut self, until: Timestamp) {
        while let Some(Reverse((at, step))) = self.steps.peek().copied()
            && at <= until
        {
            self.steps.pop();
            self.pass(at);
            match step {
                Step::Ends => self.at_work = self.at_work.saturating_sub(1),
                Step::Begins => {
                    self.at_work += 1;
                    self.waiting = self.waiting.saturating_sub(1);
                    self.most = self.most.max(self.at_work);
                }
            }
        }
        if until < Timestamp::MAX {
            self.pass(until);
        }
    }

    fn pass(&mut self, at: Timestamp) {
        if self.waiting > 0 && self.at_work < LEVELS_MAX {
            if self.while_waiting.len() <= self.at_work {
                self.while_waiting.resize(self.at_work + 1, Duration::ZERO);
            }
            self.while_waiting[self.at_work] += at.since(self.now);
        }
        self.now = self.now.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_are_found() {
        let mut busy = Busy::default();
        let at = |millis| Timestamp::ZERO.after(Duration::from_millis(millis));
        let millis = Duration::from_millis;
        // Six come at once, of 100 ms each; two at a time.
        for (index, waited) in [0, 0, 100, 100, 200, 200].into_iter().enumerate() {
            busy.take(at(1_000 + index as u64), millis(waited), millis(100));
        }
        let (limit, share) = busy.clone().limit().unwrap();
        assert_eq!(limit, 2);
        assert!(share > 0.95, "{share}");
        let mut idle = Busy::default();
        idle.take(at(0), Duration::ZERO, millis(100));
        idle.take(at(50), Duration::ZERO, millis(100));
        idle.advance(at(60));
        assert_eq!(idle.most(), 2);
        assert_eq!(idle.limit(), None, "nobody waited");
    }
}
