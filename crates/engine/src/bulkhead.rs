//! Bulkheads: how many of one route's requests may be inside, waiting or in flight.
//!
//! Counting those who wait too keeps one slow route from filling the queue that all share, and means that a slot can
//! always be given to whoever is first in line.

use alloc::collections::BTreeMap;
use core::num::NonZeroU32;

use crate::decision::RouteId;

/// The bulkhead that a request counts against, if its route has one.
pub(crate) type Held = Option<RouteId>;

#[derive(Debug)]
pub(crate) struct Bulkheads {
    /// Few: only routes that have a bulkhead, or had one and still hold places in it.
    by_route: BTreeMap<RouteId, Bulkhead>,
}

#[derive(Debug)]
struct Bulkhead {
    cap: Option<NonZeroU32>,
    held: u32,
}

impl Bulkheads {
    pub(crate) fn new(caps: &[(RouteId, NonZeroU32)]) -> Self {
        let mut bulkheads = Self { by_route: BTreeMap::new() };
        bulkheads.reconfigure(caps);
        bulkheads
    }

    /// Puts new caps in force. What is held stays held, so a cap may be exceeded until enough have left.
    pub(crate) fn reconfigure(&mut self, caps: &[(RouteId, NonZeroU32)]) {
        for bulkhead in self.by_route.values_mut() {
            bulkhead.cap = None;
        }
        for &(route, cap) in caps {
            self.by_route.entry(route).or_insert(Bulkhead { cap: None, held: 0 }).cap = Some(cap);
        }
        self.by_route.retain(|_, bulkhead| bulkhead.cap.is_some() || bulkhead.held > 0);
    }

    /// How many of the route's requests may be inside, if that is bounded.
    pub(crate) fn cap(&self, route: RouteId) -> Option<NonZeroU32> {
        self.by_route.get(&route)?.cap
    }

    pub(crate) fn has_room(&self, route: RouteId) -> bool {
        match self.by_route.get(&route) {
            Some(Bulkhead { cap: Some(cap), held }) => *held < cap.get(),
            _ => true,
        }
    }

    pub(crate) fn enter(&mut self, route: RouteId) -> Held {
        let bulkhead = self.by_route.get_mut(&route)?;
        bulkhead.held += 1;
        Some(route)
    }

    pub(crate) fn leave(&mut self, held: Held) {
        let Some(route) = held else { return };
        let Some(bulkhead) = self.by_route.get_mut(&route) else { return };
        bulkhead.held -= 1;
        if bulkhead.held == 0 && bulkhead.cap.is_none() {
            self.by_route.remove(&route);
        }
    }

    pub(crate) fn held(&self) -> u32 {
        self.by_route.values().map(|bulkhead| bulkhead.held).sum()
    }
}
