//! Processor sharing with a knee: everybody is worked on at once, each the slower the more there are.
//!
//! All have the same speed, so one clock of work done serves all: it runs at that speed, and a job is done when it has
//! gone on by the job's own work. Entering and leaving cost a heap operation, whoever else is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use tidegate_engine::Timestamp;

/// Who shares, and how far each has come.
#[derive(Debug)]
pub(crate) struct Sharing {
    knee: f64,
    hard: f64,
    /// Work that each job has had, in nanoseconds, since the first one.
    worked: f64,
    since: Timestamp,
    paused_until: Timestamp,
    /// Those here, by when they are done on the clock of work. Who has left is marked by its entry's serial.
    ends: BinaryHeap<Reverse<(Work, u32, u32)>>,
    /// The serial of whoever is at an index now; even: nobody.
    serials: Vec<u32>,
    count: u32,
    plan: u32,
}

/// A reading of the clock of work. It is never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work(f64);

impl Eq for Work {}

impl PartialOrd for Work {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Work {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Sharing {
    /// Readings that differ by less than this, in nanoseconds, are the same.
    const GRAIN: f64 = 0.5;

    pub(crate) fn new(knee: f64, hard: f64) -> Self {
        Self {
            knee,
            hard,
            worked: 0.0,
            since: Timestamp::ZERO,
            paused_until: Timestamp::ZERO,
            ends: BinaryHeap::new(),
            serials: Vec::new(),
            count: 0,
            plan: 0,
        }
    }

    pub(crate) fn enter(&mut self, now: Timestamp, index: u32, work: Duration) {
        self.advance(now);
        let place = index as usize;
        if self.serials.len() <= place {
            self.serials.resize(place + 1, 0);
        }
        self.serials[place] += 1;
        self.count += 1;
        self.ends.push(Reverse((Work(self.worked + work.as_nanos() as f64), index, self.serials[place])));
    }

    pub(crate) fn leave(&mut self, now: Timestamp, index: u32) {
        self.advance(now);
        self.serials[index as usize] += 1;
        self.count -= 1;
    }

    pub(crate) fn pause(&mut self, now: Timestamp, until: Timestamp) {
        self.advance(now);
        self.paused_until = until;
    }

    /// Whoever is done by now, one at a time.
    pub(crate) fn pop_done(&mut self, now: Timestamp) -> Option<u32> {
        self.advance(now);
        self.forget_those_who_left();
        let &Reverse((end, index, _)) = self.ends.peek()?;
        if end.0 > self.worked + Self::GRAIN {
            return None;
        }
        self.ends.pop();
        self.serials[index as usize] += 1;
        self.count -= 1;
        Some(index)
    }

    /// When to look again, if anybody is here. Only the latest plan counts.
    pub(crate) fn plan(&mut self, now: Timestamp) -> Option<(Timestamp, u32)> {
        self.advance(now);
        self.forget_those_who_left();
        self.plan = self.plan.wrapping_add(1);
        let Reverse((end, ..)) = self.ends.peek()?;
        let nanos = ((end.0 - self.worked).max(0.0) / self.speed()).ceil();
        let from = now.max(self.paused_until);
        Some((from.after(Duration::from_nanos(nanos as u64)), self.plan))
    }

    pub(crate) fn is_current(&self, plan: u32) -> bool {
        plan == self.plan
    }

    fn forget_those_who_left(&mut self) {
        while let Some(&Reverse((_, index, serial))) = self.ends.peek()
            && self.serials[index as usize] != serial
        {
            self.ends.pop();
        }
    }

    fn advance(&mut self, now: Timestamp) {
        let from = self.since.max(self.paused_until);
        self.worked += now.since(from).as_nanos() as f64 * self.speed();
        self.since = self.since.max(now);
    }

    /// How fast each is worked on, as a share of how fast one alone is.
    fn speed(&self) -> f64 {
        let crowding = self.knee / f64::from(self.count.max(1));
        if crowding >= 1.0 { 1.0 } else { crowding * libm::pow(crowding, self.hard) }
    }
}
