//! How it stands: plain data for metrics and pages. What is counted for several subscribers is counted for each.

use std::time::Duration;

/// How a [`Publisher`](crate::Publisher), or one [`Subscription`](crate::Subscription) of it, stands at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Who is subscribed and has not ended.
    pub subscribers: u32,
    /// Items in buffers, all buffers together.
    pub depth: u64,
    /// The most items that ever were in one buffer at once.
    pub depth_max: u64,
    /// What the items in buffers weigh together, in bytes.
    pub bytes: u64,
    /// Producers that wait for room.
    pub producers_waiting: u64,
    /// What has happened so far.
    pub counts: Counts,
}

/// Counters since the publisher was made. An item for three subscribers counts as three.
///
/// `submitted = delivered + dropped + depth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Items taken into a buffer, or dropped at its door.
    pub submitted: u64,
    /// Items that their subscriber has fetched.
    pub delivered: u64,
    /// Items dropped: by an offer, or with the buffer of a subscriber that left or was cut off.
    pub dropped: u64,
    /// Subscribers cut off because they were too slow.
    pub cut_off: u64,
    /// Items given back to their producer, each counted once.
    pub refused: u64,
    /// How long delivered items were in the buffer, summed up.
    pub waited: Duration,
    /// The longest that a delivered item was in the buffer.
    pub waited_max: Duration,
    /// Submissions that had to wait for room and got it, each counted once.
    pub blocked: u64,
    /// How long these waited, summed up.
    pub blocked_for: Duration,
}

impl Counts {
    /// Adds what another has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.submitted = self.submitted.saturating_add(other.submitted);
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.cut_off = self.cut_off.saturating_add(other.cut_off);
        self.refused = self.refused.saturating_add(other.refused);
        self.waited = self.waited.saturating_add(other.waited);
        self.waited_max = self.waited_max.max(other.waited_max);
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.blocked_for = self.blocked_for.saturating_add(other.blocked_for);
    }
}
