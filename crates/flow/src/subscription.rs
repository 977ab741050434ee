//! [`Subscription`]: where items come out, as many as are asked for.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use tokio::task::coop::poll_proceed;

use crate::parcel::Key;
use crate::publisher::Shared;
use crate::signal::Failure;
use crate::snapshot::Snapshot;
use crate::sync::Arc;

/// One subscriber's side. It gets what it has asked for with [`request`](Self::request), in the order in which it was
/// submitted; then, once, how it ended. Dropping it cancels it.
///
/// All futures here are cancel safe: an item is taken out only when it is returned.
#[must_use = "a subscription that is dropped is cancelled"]
pub struct Subscription<T> {
    demand: Demand<T>,
}

/// Asks on behalf of one [`Subscription`], from wherever demand becomes known: another task, a callback, a socket.
pub struct Demand<T> {
    shared: Arc<Shared<T>>,
    key: Key,
}

impl<T> Subscription<T> {
    pub(crate) const fn new(shared: Arc<Shared<T>>, key: Key) -> Self {
        Self { demand: Demand { shared, key } }
    }

    /// Asks for `more` items on top of those asked for before; the sum saturates at `u64::MAX`, which is without end.
    ///
    /// Asking for none is a mistake, and the subscription fails with [`Failure::AskedForNothing`]; its buffer is dropped.
    pub fn request(&self, more: u64) {
        self.demand.request(more);
    }

    /// The next signal: an item that was asked for, the failure that ended the subscription, or `None` when it has ended.
    /// After a failure there is nothing but `None`.
    ///
    /// Waits as long as nothing is asked for, save for the end, which needs no demand when the buffer is empty.
    ///
    /// # Errors
    ///
    /// Why the subscription ended, once.
    pub async fn next(&mut self) -> Option<Result<T, Failure>> {
        poll_fn(|cx| self.poll_signal(cx, 0)).await
    }

    /// The next signal, of which one is asked for if nothing is: one item at a time, at the consumer's pace.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn pull(&mut self) -> Option<Result<T, Failure>> {
        poll_fn(|cx| self.poll_signal(cx, 1)).await
    }

    /// What [`next`](Self::next) does, for futures and streams written by hand. When nothing is asked for any more it asks
    /// for `ask` first; zero asks for nothing, and is no mistake here.
    pub fn poll_signal(&mut self, cx: &mut Context<'_>, ask: u64) -> Poll<Option<Result<T, Failure>>> {
        // A consumer that always finds something would keep its thread for itself.
        let turn = ready!(poll_proceed(cx));
        let Demand { shared, key } = &self.demand;
        let signal = shared.input(|state, now| state.poll_next(now, *key, ask, cx));
        if signal.is_ready() {
            turn.made_progress();
        }
        signal
    }

    /// Wants no more: what is in the buffer is dropped, and nothing follows, not even an end. Safe to call at any time.
    pub fn cancel(&self) {
        self.demand.cancel();
    }

    /// A handle to ask with from elsewhere.
    pub fn demand(&self) -> Demand<T> {
        self.demand.clone()
    }

    /// How it stands, as far as this one is concerned.
    pub fn snapshot(&self) -> Snapshot {
        self.demand.shared.input(|state, _| state.snapshot_of(self.demand.key))
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        let Demand { shared, key } = &self.demand;
        shared.input(|state, now| state.forget(now, *key));
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.snapshot()).finish()
    }
}

impl<T> Demand<T> {
    /// As [`Subscription::request`]. Does nothing once the subscription has ended.
    pub fn request(&self, more: u64) {
        self.shared.input(|state, now| state.request(now, self.key, more));
    }

    /// As [`Subscription::cancel`].
    pub fn cancel(&self) {
        self.shared.input(|state, now| state.cancel(now, self.key));
    }

    /// How many items are asked for that have not been fetched.
    pub fn outstanding(&self) -> u64 {
        self.shared.input(|state, _| state.demand_of(self.key))
    }
}

impl<T> Clone for Demand<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), key: self.key }
    }
}

impl<T> fmt::Debug for Demand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demand").field("outstanding", &self.outstanding()).finish_non_exhaustive()
    }
}
