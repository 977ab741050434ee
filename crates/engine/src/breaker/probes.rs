//! The probes of a half-open breaker. Each is a lease with an end: whoever holds one and is never heard of again keeps
//! nobody else from trying (resilience4j#544, #903, #935; OmniRoute#13836 was shut for six days).

use core::time::Duration;

use crate::policy::PROBES_MAX;
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: u64,
    until: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Probes {
    leases: [Option<Lease>; PROBES_MAX as usize],
    next: u64,
    /// How many have succeeded.
    successes: u32,
}

impl Probes {
    /// Takes one of `places`, until its end.
    pub(super) fn lease(&mut self, now: Timestamp, places: u32, until: Timestamp) -> Option<u64> {
        let id = self.next;
        let place = self.places_mut(places).iter_mut().find(|lease| is_free(**lease, now))?;
        *place = Some(Lease { id, until });
        self.next = self.next.wrapping_add(1);
        Some(id)
    }

    pub(super) fn has_place(&self, now: Timestamp, places: u32) -> bool {
        self.places(places).iter().any(|lease| is_free(*lease, now))
    }

    /// How long until the first place is free, if nobody gives one back.
    pub(super) fn wait(&self, now: Timestamp, places: u32) -> Duration {
        let ends = self.places(places).iter().map(|lease| lease.map_or(now, |lease| lease.until));
        ends.min().map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Nothing happens to a place that has been given to another since.
    pub(super) fn give_back(&mut self, id: u64) {
        for lease in &mut self.leases {
            lease.take_if(|lease| lease.id == id);
        }
    }

    /// One has succeeded: how many that makes.
    pub(super) const fn succeeded(&mut self) -> u32 {
        self.successes = self.successes.saturating_add(1);
        self.successes
    }

    /// No lease lasts longer than to this moment.
    pub(super) fn shorten(&mut self, until: Timestamp) {
        for lease in self.leases.iter_mut().flatten() {
            lease.until = lease.until.min(until);
        }
    }

    /// Begins anew. Names of leases are not used again.
    pub(super) fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }

    fn places(&self, places: u32) -> &[Option<Lease>] {
        &self.leases[..places.min(PROBES_MAX) as usize]
    }

    fn places_mut(&mut self, places: u32) -> &mut [Option<Lease>] {
        &mut self.leases[..places.min(PROBES_MAX) as usize]
    }
}

fn is_free(lease: Option<Lease>, now: Timestamp) -> bool {
    lease.is_none_or(|lease| lease.until <= now)
}
