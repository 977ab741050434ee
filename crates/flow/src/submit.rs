//! [`Submit`]: a producer that waits for room.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::coop::poll_proceed;

use crate::publisher::{Publisher, Shared};
use crate::signal::Refused;
use crate::state::Entry;
use crate::timer::Timer;
use crate::waiters::Ticket;

/// The future of [`Publisher::submit`]. It does nothing until it is polled; the first poll takes the place in line.
///
/// Once it is ready the item has been taken, or is given back. Dropped before, it leaves the line, and whoever is behind
/// moves up.
#[must_use = "nothing is submitted unless it is awaited"]
pub struct Submit<'a, T> {
    publisher: &'a Publisher<T>,
    submission: Submission<T>,
}

impl<'a, T> Submit<'a, T> {
    pub(crate) const fn new(publisher: &'a Publisher<T>, item: T) -> Self {
        Self { publisher, submission: Submission::New(item) }
    }

    /// Gives up waiting, and gives the item back; `None` when it has been taken meanwhile.
    pub fn take_back(mut self) -> Option<T> {
        self.submission.leave(&self.publisher.shared)
    }
}

impl<T> Future for Submit<'_, T> {
    type Output = Result<(), Refused<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { publisher, submission } = &mut *self;
        submission.poll(&publisher.shared, cx)
    }
}

impl<T> Drop for Submit<'_, T> {
    fn drop(&mut self) {
        drop(self.submission.leave(&self.publisher.shared));
    }
}

// The item is moved, never borrowed in place.
impl<T> Unpin for Submit<'_, T> {}

impl<T> fmt::Debug for Submit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submit").field("submission", &self.submission).finish_non_exhaustive()
    }
}

/// One submission, wherever it is kept. Whoever keeps it sees to it that it leaves the line.
pub(crate) enum Submission<T> {
    /// Not looked at yet.
    New(T),
    /// In line; the item is there.
    Waiting { ticket: Ticket, timer: Timer },
    /// Taken, or given back.
    Done,
}

impl<T> Submission<T> {
    pub(crate) fn poll(&mut self, shared: &Shared<T>, cx: &mut Context<'_>) -> Poll<Result<(), Refused<T>>> {
        // A producer that always finds room would keep its thread for itself.
        let turn = ready!(poll_proceed(cx));
        let ended = self.proceed(shared, cx);
        if ended.is_ready() {
            turn.made_progress();
        }
        ended
    }

    fn proceed(&mut self, shared: &Shared<T>, cx: &mut Context<'_>) -> Poll<Result<(), Refused<T>>> {
        match mem::replace(self, Self::Done) {
            Self::New(item) => match shared.enter(item, Some(cx)) {
                Entry::Accepted => Poll::Ready(Ok(())),
                Entry::Refused(why, item) => Poll::Ready(Err(Refused { why, item })),
                Entry::Waiting(ticket) => self.wait(ticket, Timer::default(), shared, cx),
            },
            Self::Waiting { ticket, timer } => self.wait(ticket, timer, shared, cx),
            Self::Done => unreachable!("a future is not polled after it is ready"),
        }
    }

    fn wait(
        &mut self,
        ticket: Ticket,
        mut timer: Timer,
        shared: &Shared<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused<T>>> {
        loop {
            let until = match shared.input(|state, now| state.poll_waiter(now, ticket, cx)) {
                Ok(end) => return Poll::Ready(end.map_err(|(why, item)| Refused { why, item })),
                Err(until) => until,
            };
            match until {
                // Patience with whoever is in the way is over; looking again lets that be seen.
                Some(until) if timer.is_up(shared.clock, until, cx) => timer = Timer::default(),
                _ => {
                    *self = Self::Waiting { ticket, timer };
                    return Poll::Pending;
                }
            }
        }
    }

    /// Leaves the line, with the item if it has not been taken.
    pub(crate) fn leave(&mut self, shared: &Shared<T>) -> Option<T> {
        match mem::replace(self, Self::Done) {
            Self::New(item) => Some(item),
            Self::Waiting { ticket, .. } => shared.input(|state, now| state.leave(now, ticket)),
            Self::Done => None,
        }
    }
}

impl<T> fmt::Debug for Submission<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New(_) => "New",
            Self::Waiting { .. } => "Waiting",
            Self::Done => "Done",
        })
    }
}
