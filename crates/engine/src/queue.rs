//! The queue: who waits, in what order, and until when.
//!
//! First come, first served. Each entry has its own end: the wait budget, or the moment after which an answer would
//! come too late. Ends are kept in a heap whose dead entries are skipped, so leaving the queue costs O(1). It does
//! not decide who may wait; that is [`Admission`](crate::Admission).

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::bulkhead::Held;
use crate::linked::{Key, LinkedSlab};
use crate::time::Timestamp;

/// One who waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) until: Timestamp,
    /// What refuses it when `until` comes.
    pub(crate) end: WaitEnd,
    pub(crate) held: Held,
}

/// Which of the two bounds ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Budget,
    Deadline,
}

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: LinkedSlab<Waiting>,
    ends: BinaryHeap<Reverse<(Timestamp, Key)>>,
    longest: u32,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { waiting: LinkedSlab::new(), ends: BinaryHeap::new(), longest: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.waiting.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The longest it has ever been.
    pub(crate) const fn longest(&self) -> u32 {
        self.longest
    }

    pub(crate) fn push(&mut self, waiting: Waiting) -> Key {
        let until = waiting.until;
        let key = self.waiting.push_back(waiting);
        // Budgets end in the order of arrival, so a push rarely has to sift up.
        self.ends.push(Reverse((until, key)));
        self.longest = self.longest.max(self.len());
        key
    }

    pub(crate) fn pop(&mut self) -> Option<(Key, Waiting)> {
        let popped = self.waiting.pop_front();
        self.forget_dead_ends();
        popped
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Waiting> {
        let removed = self.waiting.remove(key);
        self.forget_dead_ends();
        removed
    }

    /// When the next wait ends. Dead ends were dropped when they came to the top, so the top is alive.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.ends.peek().map(|Reverse((until, _))| *until)
    }

    /// Takes out one whose wait has ended.
    pub(crate) fn pop_ended(&mut self, now: Timestamp) -> Option<(Key, Waiting)> {
        let &Reverse((until, key)) = self.ends.peek()?;
        if until > now {
            return None;
        }
        self.remove(key).map(|waiting| (key, waiting))
    }

    /// How many ends are kept, dead ones included.
    pub(crate) fn ends_kept(&self) -> usize {
        self.ends.len()
    }

    fn forget_dead_ends(&mut self) {
        while let Some(&Reverse((_, key))) = self.ends.peek()
            && self.waiting.get(key).is_none()
        {
            self.ends.pop();
        }
        // Dead ends below the top are swept when they are the majority: each sweep of n is paid for by n/2 removals.
        if self.ends.len() > 2 * self.waiting.len() as usize + 64 {
            self.ends.retain(|Reverse((_, key))| self.waiting.get(*key).is_some());
        }
    }
}
