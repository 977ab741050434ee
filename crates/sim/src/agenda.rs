//! What is still to happen, in order of time; what happens at the same time, by rank and then in the order in which it
//! was planned.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tidegate_engine::Timestamp;

/// What comes first of two things at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Whoever arrives at the very moment at which a place is given up does not find it free.
    Arrival,
    /// Everything else.
    Work,
    /// An answer at the last moment is in time.
    Patience,
}

/// A heap of events.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Entry<E>>,
    now: Timestamp,
    planned: u64,
    /// How many events have happened.
    pub(crate) happened: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Timestamp,
    /// The rank in the uppermost bits, below it a number that rises.
    order: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), now: Timestamp::ZERO, planned: 0, happened: 0 }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Plans an event. What should have happened before now happens now.
    pub(crate) fn plan(&mut self, at: Timestamp, rank: Rank, event: E) {
        self.planned += 1;
        self.heap.push(Entry { at: at.max(self.now), order: (rank as u64) << 62 | self.planned, event });
    }

    /// The next event up to and including a moment, which becomes now.
    pub(crate) fn next_until(&mut self, until: Timestamp) -> Option<E> {
        if self.heap.peek()?.at > until {
            return None;
        }
        let Entry { at, event, .. } = self.heap.pop()?;
        self.now = at;
        self.happened += 1;
        Some(event)
    }

    /// Time goes on to a moment before which nothing is left to happen.
    pub(crate) fn advance(&mut self, to: Timestamp) {
        debug_assert!(self.heap.peek().is_none_or(|next| next.at >= to), "an event was passed over");
        self.now = self.now.max(to);
    }
}

impl<E> Ord for Entry<E> {
    /// The earliest is the greatest, since the heap gives out the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_by_rank_then_by_when_it_was_planned() {
        let mut agenda = Agenda::new();
        let at = Timestamp::from_millis;
        let planned = [
            (2, Rank::Patience, "e"),
            (2, Rank::Work, "d"),
            (1, Rank::Work, "a"),
            (2, Rank::Arrival, "c"),
            (1, Rank::Work, "b"),
            (9, Rank::Work, "later"),
        ];
        for (millis, rank, event) in planned {
            agenda.plan(at(millis), rank, event);
        }
        let mut seen = Vec::new();
        while let Some(event) = agenda.next_until(at(5)) {
            seen.push(event);
            if event == "c" {
                agenda.plan(Timestamp::ZERO, Rank::Work, "too late for its time");
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "too late for its time", "e"]);
        assert_eq!((agenda.now(), agenda.happened), (at(2), 6));
    }
}
