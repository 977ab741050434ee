//! What a publisher is told once: how much each of its subscribers may leave lying, and what becomes of a slow one.

use std::fmt;
use std::time::Duration;

/// The bounds of each subscriber's buffer, and what is done about a subscriber who does not keep up.
pub struct Policy<T> {
    pub(crate) items: u32,
    pub(crate) bytes: u64,
    pub(crate) weigh: fn(&T) -> u64,
    pub(crate) slowest: Slowest,
}

/// Who decides the pace when there are several subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slowest {
    /// The slowest: a submission waits until all have room.
    #[default]
    Decides,
    /// A subscriber that has kept a producer waiting for so long is cut off: what is in its buffer is dropped, and its
    /// last signal is [`Failure::TooSlow`](crate::Failure::TooSlow). With zero, nobody ever waits for a subscriber.
    ///
    /// Only [`submit`](crate::Publisher::submit) waits, so only it cuts off; it does so by a timer of tokio's, and has to
    /// be awaited in a runtime that has timers. A subscriber that takes an item in time is never cut off, however slow.
    CutOff {
        /// How long a producer waits for it.
        after: Duration,
    },
}

/// What [`offer`](crate::Publisher::offer) drops when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// What is offered: those who are in the buffer keep their places.
    Newest,
    /// As many of the oldest as it takes. Right where recent data matter more than complete data.
    Oldest,
}

impl<T> Policy<T> {
    /// So many items may wait for each subscriber; what weighs how much does not matter, and the slowest decides.
    ///
    /// One more may be there than `items` while the subscriber has asked for one that it has not fetched: that one does
    /// not wait for demand. So with zero nothing waits at all, and an item passes only when it is wanted.
    pub const fn new(items: u32) -> Self {
        Self { items, bytes: u64::MAX, weigh: |_| 0, slowest: Slowest::Decides }
    }

    /// Also bounded by what the items in a buffer weigh together, `weigh` being asked once for each item.
    ///
    /// The bound is strict: an item that alone is heavier is refused with [`Why::TooLarge`](crate::Why::TooLarge).
    pub const fn with_bytes(mut self, bytes: u64, weigh: fn(&T) -> u64) -> Self {
        self.bytes = bytes;
        self.weigh = weigh;
        self
    }

    /// What is done about a subscriber who does not keep up.
    pub const fn with_slowest(mut self, slowest: Slowest) -> Self {
        self.slowest = slowest;
        self
    }
}

impl<T> Clone for Policy<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Policy<T> {}

impl<T> fmt::Debug for Policy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("items", &self.items)
            .field("bytes", &self.bytes)
            .field("slowest", &self.slowest)
            .finish_non_exhaustive()
    }
}
