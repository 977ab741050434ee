//! What is in flight, orphans included, in the order it was dispatched.

use crate::bulkhead::Held;
use crate::linked::{Key, LinkedSlab};
use crate::time::Timestamp;

/// One slot that is taken.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) since: Timestamp,
    pub(crate) held: Held,
}

#[derive(Debug)]
pub(crate) struct Flight {
    flying: LinkedSlab<Flying>,
    orphans: u32,
    most: u32,
}

impl Flight {
    pub(crate) const fn new() -> Self {
        Self { flying: LinkedSlab::new(), orphans: 0, most: 0 }
    }

    /// Slots taken.
    pub(crate) const fn len(&self) -> u32 {
        self.flying.len()
    }

    /// Of those, slots whose client has had its answer.
    pub(crate) const fn orphans(&self) -> u32 {
        self.orphans
    }

    /// The most slots ever taken at once.
    pub(crate) const fn most(&self) -> u32 {
        self.most
    }

    pub(crate) fn take(&mut self, flying: Flying) -> Key {
        let key = self.flying.push_back(flying);
        self.most = self.most.max(self.len());
        key
    }

    pub(crate) const fn orphan(&mut self) {
        self.orphans += 1;
    }

    /// Frees a slot. `None` when the key is not of this flight, which a driver with two admissions could cause.
    pub(crate) fn free(&mut self, key: Key, orphan: bool) -> Option<Flying> {
        let flying = self.flying.remove(key)?;
        self.orphans -= u32::from(orphan);
        Some(flying)
    }

    /// Since when the slot taken longest ago has been taken.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.flying.front().map(|flying| flying.since)
    }

    /// Since when the slot taken last has been taken.
    pub(crate) fn youngest(&self) -> Option<Timestamp> {
        self.flying.back().map(|flying| flying.since)
    }
}
