//! One class of requests: who of it waits, what the policy owes it, and how much of the capacity it uses.

use core::time::Duration;

use super::Place;
use super::flows::{Flows, UNKNOWN, smoothed};
use crate::lately::Lately;
use crate::patience::Patience;
use crate::standing::Standing;
use crate::time::Timestamp;

/// What a class is owed can grow to the worth of so many of its requests: enough that it has its share on average, and too
/// little for a burst at the others' cost.
const OWED_MOST: f64 = 2.0;

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) flows: Flows,
    /// The share of the capacity that it has whatever the others want.
    pub(crate) floor: f64,
    /// What it is owed, in slot-nanoseconds.
    owed: f64,
    /// How long its requests usually take a slot, in nanoseconds; zero while unknown.
    pub(crate) service: u64,
    /// Slots that it takes.
    pub(crate) in_flight: u32,
    /// Slots that it has taken lately, and those of them that first tries took.
    pub(crate) usage: Usage,
    pub(crate) first_tries: Usage,
    /// Whether somebody of it, or more important, waits all the time.
    pub(crate) standing: Standing,
    /// After how long clients of it leave.
    pub(crate) patience: Patience,
    /// How many of it wait.
    pub(crate) len: u32,
}

impl Class {
    pub(crate) fn new() -> Self {
        Self {
            flows: Flows::new(),
            floor: 0.0,
            owed: 0.0,
            service: 0,
            in_flight: 0,
            usage: Usage::NONE,
            first_tries: Usage::NONE,
            standing: Standing::default(),
            patience: Patience::default(),
            len: 0,
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many slots are given to others of the class before somebody has one who joins it now.
    pub(crate) fn ahead(&self, place: Place) -> u64 {
        self.flows.ahead(place.flow, place.rank, place.weight, place.cost.get(), self.service)
    }

    /// Whether it is its turn although more important ones wait.
    pub(crate) fn is_owed(&self) -> bool {
        self.floor > 0.0 && !self.is_empty() && self.owed >= self.one()
    }

    /// A slot was given out that is expected to be taken for so long: if somebody waits, a part of that is owed to them.
    pub(crate) fn earn(&mut self, slot_nanos: u64) {
        if self.floor > 0.0 && !self.is_empty() {
            self.owed = (self.owed + self.floor * slot_nanos as f64).min(OWED_MOST * self.one());
        }
    }

    /// What one of its requests is worth.
    const fn one(&self) -> f64 {
        if self.service == 0 { UNKNOWN as f64 } else { self.service as f64 }
    }

    /// One of its own was given the slot. If that was because it was owed, all of it counts, also what is more than it was
    /// owed; if it was its turn anyway, what it was owed is settled by it.
    pub(crate) fn pay(&mut self, slot_nanos: u64) {
        let left = self.owed - slot_nanos as f64;
        self.owed = if self.owed >= self.one() { left } else { left.max(self.owed.min(0.0)) };
    }

    /// One of its requests took a slot for so long.
    pub(crate) fn observe(&mut self, slot_nanos: u64) {
        self.service = smoothed(self.service, slot_nanos);
    }

    /// A request of another class did. As long as nothing is known of this one it is taken to be like the others.
    pub(crate) fn guess(&mut self, slot_nanos: u64) {
        if self.service == 0 {
            self.service = slot_nanos;
        }
    }
}

/// How many slots are taken on average, by what was given out over about the last second.
#[derive(Debug)]
pub(crate) struct Usage(Lately);

impl Usage {
    const NONE: Self = Self(Lately::of(Duration::from_secs(1)));

    pub(crate) fn add(&mut self, now: Timestamp, slot_nanos: u64) {
        self.0.add(now, slot_nanos as f64 / 1e9);
    }

    pub(crate) fn slots(&self, now: Timestamp) -> f64 {
        self.0.sum(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_slots_on_average() {
        let mut usage = Usage::NONE;
        for millis in (0..5000).step_by(10) {
            // A hundred a second, each of 50 ms.
            usage.add(Timestamp::from_millis(millis), 50_000_000);
        }
        let slots = usage.slots(Timestamp::from_millis(5000));
        assert!((4.9..5.1).contains(&slots), "{slots}");
        assert!(usage.slots(Timestamp::from_millis(6000)) < 0.1);
        assert!(usage.slots(Timestamp::ZERO) > 4.9, "time does not go back");
    }

    #[test]
    fn what_is_owed_is_bounded() {
        let mut class = Class::new();
        (class.floor, class.len, class.service) = (0.1, 1, 100);
        class.earn(999);
        assert!(!class.is_owed());
        class.earn(1);
        assert!(class.is_owed());
        class.earn(u64::MAX);
        class.pay(100);
        class.pay(100);
        assert!(!class.is_owed(), "it was owed two at most");
        class.len = 0;
        class.earn(u64::MAX);
        class.len = 1;
        assert!(!class.is_owed(), "nothing is owed to who does not wait");
    }
}
