//! How many calls are under way at once, and how many wait for that: the bound in front of the connection pool.
//!
//! A pool without one opens a connection for each call, or keeps its callers in a queue that nobody sees. Here the queue has
//! a length and an end, and who leaves passes the place on, which tokio's fair semaphore sees to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tidegate_engine::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use crate::clock::Clock;
use crate::error::Refusal;

/// How many calls to one upstream are under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomPolicy {
    /// So many at once, until the body of the answer has ended; at least one.
    pub calls: u32,
    /// So many may wait for that.
    pub waiting: u32,
    /// For so long at the most.
    pub wait: Duration,
}

/// The place of one call. Dropping it gives it to the next in line.
#[derive(Debug)]
pub(crate) struct Slot(
    #[expect(dead_code, reason = "it is held, and its drop is what counts")] OwnedSemaphorePermit,
);

#[derive(Debug)]
pub(crate) struct Room {
    policy: RoomPolicy,
    places: Arc<Semaphore>,
    waiting: AtomicU32,
}

impl Room {
    pub(crate) fn new(policy: RoomPolicy) -> Self {
        let policy = RoomPolicy { calls: policy.calls.max(1), ..policy };
        // A semaphore of tokio holds at most this.
        let places = (policy.calls as usize).min(Semaphore::MAX_PERMITS);
        Self { policy, places: Arc::new(Semaphore::new(places)), waiting: AtomicU32::new(0) }
    }

    /// A place, if there is one now.
    pub(crate) fn try_enter(&self) -> Option<Slot> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(Slot)
    }

    /// A place, at the latest at the end of the wait or at the deadline.
    pub(crate) async fn enter(&self, clock: Clock, deadline: Timestamp) -> Result<Slot, Refusal> {
        if let Some(slot) = self.try_enter() {
            return Ok(slot);
        }
        let _in_line = self.stand_in_line()?;
        let end = clock.now().after(self.policy.wait);
        let permit = Arc::clone(&self.places).acquire_owned();
        match timeout_at(clock.instant(end.min(deadline)), permit).await {
            Ok(Ok(permit)) => Ok(Slot(permit)),
            // Nobody closes the semaphore, so this is the end of the wait.
            Ok(Err(_)) | Err(_) => Err(if end < deadline { Refusal::WaitTooLong } else { Refusal::Deadline }),
        }
    }

    fn stand_in_line(&self) -> Result<InLine<'_>, Refusal> {
        let one_more = |waiting| (waiting < self.policy.waiting).then(|| waiting + 1);
        match self.waiting.fetch_update(Relaxed, Relaxed, one_more) {
            Ok(_) => Ok(InLine(&self.waiting)),
            Err(_) => Err(Refusal::NoRoom),
        }
    }

    /// How many are under way.
    pub(crate) fn taken(&self) -> u32 {
        self.policy.calls.saturating_sub(u32::try_from(self.places.available_permits()).unwrap_or(u32::MAX))
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }
}

struct InLine<'a>(&'a AtomicU32);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
