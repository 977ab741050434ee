//! Who waits for which ticket: the engine's events on one side, wakers on the other.

use std::mem;
use std::task::Waker;

use tidegate_engine::{Permit, Rejection, TicketId};

/// Where one waiter stands.
#[derive(Debug, Default)]
enum Waiter {
    /// Nobody has this place.
    #[default]
    Vacant,
    /// Still in the queue; the waker is `None` until its future is polled first.
    Waiting(Option<Waker>),
    /// An event has told how it ends, but its future has not looked yet.
    Ended(Result<Permit, Rejection>),
}

/// A table with one place for each ticket. Its size is the longest queue that there ever was, which the policy bounds.
///
/// A ticket's place is taken from when it is issued until its future has seen the end, so the engine may give the
/// same index to another ticket while the first one's end has not been fetched. Places are therefore chosen here, and
/// the table remembers which ticket has which.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    places: Vec<Waiter>,
    vacant: Vec<usize>,
    /// The ticket that has this index and is in the engine's queue, and its place.
    tickets: Vec<Option<(TicketId, usize)>>,
}

impl Waiters {
    /// Makes a place for a ticket that was just issued.
    pub(crate) fn open(&mut self, ticket: TicketId) -> usize {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Waiter::Vacant);
            self.places.len() - 1
        });
        self.places[place] = Waiter::Waiting(None);
        if self.tickets.len() <= ticket.index() {
            self.tickets.resize(ticket.index() + 1, None);
        }
        self.tickets[ticket.index()] = Some((ticket, place));
        place
    }

    /// The engine has decided on a ticket. Gives the waker to wake once the lock is released.
    pub(crate) fn end(&mut self, ticket: TicketId, end: Result<Permit, Rejection>) -> Option<Waker> {
        let (known, place) =
            self.tickets[ticket.index()].take().expect("the engine ends tickets that it has issued");
        assert_eq!(known, ticket, "a ticket's end came after its index was another's");
        match mem::replace(&mut self.places[place], Waiter::Ended(end)) {
            Waiter::Waiting(waker) => waker,
            Waiter::Vacant | Waiter::Ended(_) => unreachable!("the engine ends each ticket once"),
        }
    }

    /// Fetches how it ended; if it has not, remembers whom to wake.
    pub(crate) fn poll(&mut self, place: usize, waker: &Waker) -> Option<Result<Permit, Rejection>> {
        match &mut self.places[place] {
            Waiter::Waiting(Some(old)) if old.will_wake(waker) => None,
            Waiter::Waiting(old) => {
                *old = Some(waker.clone());
                None
            }
            Waiter::Vacant | Waiter::Ended(_) => self.close(place),
        }
    }

    /// Gives the place up. Returns an end that nobody had fetched.
    pub(crate) fn close(&mut self, place: usize) -> Option<Result<Permit, Rejection>> {
        let waiter = mem::take(&mut self.places[place]);
        self.vacant.push(place);
        match waiter {
            Waiter::Ended(end) => Some(end),
            Waiter::Vacant | Waiter::Waiting(_) => None,
        }
    }
}
