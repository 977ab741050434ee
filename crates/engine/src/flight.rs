//! What is in flight, orphans included, in the order it was dispatched.

use crate::bulkhead::Held;
use crate::linked::{Key, LinkedSlab, List};
use crate::queue::Place;
use crate::time::Timestamp;

/// One request that is worked on, with the slots that it takes.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) since: Timestamp,
    pub(crate) held: Held,
    pub(crate) place: Place,
    /// How many slots it takes. A request that takes more than there are takes all.
    pub(crate) slots: u32,
    /// What its tenant was charged when it was dispatched.
    pub(crate) charged: u64,
}

#[derive(Debug)]
pub(crate) struct Flight {
    flying: LinkedSlab<Flying>,
    order: List,
    taken: u32,
    orphans: u32,
    most: u32,
}

impl Flight {
    pub(crate) const fn new() -> Self {
        Self { flying: LinkedSlab::new(), order: List::EMPTY, taken: 0, orphans: 0, most: 0 }
    }

    /// Where one belongs that is worked on.
    pub(crate) fn place(&self, key: Key) -> Option<Place> {
        self.flying.get(key).map(|flying| flying.place)
    }

    /// Requests worked on.
    pub(crate) const fn len(&self) -> u32 {
        self.order.len()
    }

    /// Slots taken.
    pub(crate) const fn taken(&self) -> u32 {
        self.taken
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
        self.taken = self.taken.saturating_add(flying.slots);
        self.most = self.most.max(self.taken);
        self.flying.push_back(&mut self.order, flying)
    }

    /// The client of this one is gone; the work may go on.
    pub(crate) fn orphan(&mut self, key: Key) {
        self.orphans += self.flying.get(key).map_or(0, |flying| flying.slots);
    }

    /// Frees what one has taken. `None` when the key is not of this flight, which a driver with two admissions could
    /// cause.
    pub(crate) fn free(&mut self, key: Key, orphan: bool) -> Option<Flying> {
        let flying = self.flying.remove(&mut self.order, key)?;
        self.taken -= flying.slots;
        self.orphans -= if orphan { flying.slots } else { 0 };
        Some(flying)
    }

    /// Since when the one dispatched longest ago has been worked on.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.flying.front(&self.order).map(|(_, flying)| flying.since)
    }

    /// Since when the one dispatched last has been worked on.
    pub(crate) fn youngest(&self) -> Option<Timestamp> {
        self.flying.back(&self.order).map(|(_, flying)| flying.since)
    }
}
