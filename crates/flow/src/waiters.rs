//! Who waits for room, in the order in which they came.
//!
//! What a waiter wants to hand over waits here and not in its future. So whoever makes room also moves the item, under
//! the one lock, and there is no moment at which room is free, somebody waits for it, and a third takes it. It decides
//! nothing: who may go is said by the state that owns it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Waker};

/// A place in the line. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The line: `P` is what a waiter hands over, `E` is how its wait ended.
///
/// It is as long as there are futures that wait, and each of these belongs to a producer who does nothing else
/// meanwhile: so its bound is the number of producers.
#[derive(Debug)]
pub(crate) struct Waiters<P, E> {
    next: u64,
    /// First come, first in order.
    waiting: BTreeMap<Ticket, Waiting<P>>,
    /// Ended, and not looked at yet.
    ended: BTreeMap<Ticket, E>,
}

#[derive(Debug)]
struct Waiting<P> {
    parcel: P,
    waker: Waker,
}

/// What was left of a place that was given up.
#[derive(Debug)]
pub(crate) enum Closed<P, E> {
    /// It still waited.
    Waiting(P),
    /// It had ended and nobody had looked.
    Ended(E),
    /// Its end had been fetched.
    Gone,
}

impl<P, E> Default for Waiters<P, E> {
    fn default() -> Self {
        Self { next: 0, waiting: BTreeMap::new(), ended: BTreeMap::new() }
    }
}

impl<P, E> Waiters<P, E> {
    /// The last place in the line.
    pub(crate) fn open(&mut self, parcel: P, cx: &Context<'_>) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.insert(ticket, Waiting { parcel, waker: cx.waker().clone() });
        ticket
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What the first in line hands over, to look at.
    pub(crate) fn first(&self) -> Option<&P> {
        self.waiting.first_key_value().map(|(_, waiting)| &waiting.parcel)
    }

    /// The same, to change.
    pub(crate) fn first_mut(&mut self) -> Option<&mut P> {
        self.waiting.first_entry().map(|entry| &mut entry.into_mut().parcel)
    }

    /// The first in line is done waiting: takes what it hands over, says how its wait ended, and gives the waker to wake
    /// once the lock is released.
    pub(crate) fn end_front<X>(&mut self, end: impl FnOnce(P) -> (E, X)) -> Option<(Waker, X)> {
        let (ticket, Waiting { parcel, waker }) = self.waiting.pop_first()?;
        let (end, rest) = end(parcel);
        self.ended.insert(ticket, end);
        Some((waker, rest))
    }

    /// Fetches how it ended; if it has not, remembers whom to wake.
    pub(crate) fn poll(&mut self, ticket: Ticket, cx: &Context<'_>, wakes: &mut Wakes) -> Option<E> {
        if let Some(waiting) = self.waiting.get_mut(&ticket) {
            wakes.replace(&mut waiting.waker, cx);
            return None;
        }
        self.ended.remove(&ticket)
    }

    /// Gives the place up.
    pub(crate) fn close(&mut self, ticket: Ticket, wakes: &mut Wakes) -> Closed<P, E> {
        match (self.waiting.remove(&ticket), self.ended.remove(&ticket)) {
            (Some(waiting), _) => {
                wakes.retire(waiting.waker);
                Closed::Waiting(waiting.parcel)
            }
            (None, Some(end)) => Closed::Ended(end),
            (None, None) => Closed::Gone,
        }
    }
}

/// Whom to wake once the lock is released. It is one nearly always, which needs no allocation.
///
/// A waker is the executor's code, and to drop one may drop a task and all that it holds, which may be handles of this very
/// publisher. So those that are not needed any more come here too.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    first: Option<Waker>,
    more: Vec<Waker>,
    retired: Vec<Waker>,
}

impl Wakes {
    /// Wakes this one too.
    pub(crate) fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    /// Drops this one.
    pub(crate) fn retire(&mut self, waker: Waker) {
        self.retired.push(waker);
    }

    /// From now on the task of `cx` is to be woken in the place of `known`.
    pub(crate) fn replace(&mut self, known: &mut Waker, cx: &Context<'_>) {
        if !known.will_wake(cx.waker()) {
            self.retire(std::mem::replace(known, cx.waker().clone()));
        }
    }

    /// Wakes all, in the order in which they came. A waker that panics does not keep the others asleep; its panic goes on
    /// when all have been woken.
    pub(crate) fn wake(self) {
        let mut panicked = None;
        for waker in self.first.into_iter().chain(self.more) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                panicked.get_or_insert(payload);
            }
        }
        if let Some(payload) = panicked {
            resume_unwind(payload);
        }
    }
}
