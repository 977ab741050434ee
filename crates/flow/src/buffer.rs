//! One subscriber's buffer, and what it has asked for. No clock, no lock, no wakers.

use std::collections::VecDeque;

use tidegate_engine::Timestamp;

use crate::policy::Drops;
use crate::snapshot::Counts;

/// Items that wait for one subscriber, the oldest first.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    items: VecDeque<Held<T>>,
    bytes: u64,
    demand: u64,
    items_max: u32,
    bytes_max: u64,
    depth_max: usize,
    pub(crate) counts: Counts,
}

#[derive(Debug)]
struct Held<T> {
    item: T,
    bytes: u64,
    since: Timestamp,
}

impl<T> Buffer<T> {
    pub(crate) fn new(items_max: u32, bytes_max: u64) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            demand: 0,
            items_max,
            bytes_max,
            depth_max: 0,
            counts: Counts::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn demand(&self) -> u64 {
        self.demand
    }

    pub(crate) const fn depth_max(&self) -> usize {
        self.depth_max
    }

    /// Asks for `more` items on top of what is asked for already. Past 2^64-1 it stays there, which counts as without
    /// end (rules 3.8 and 3.17).
    pub(crate) const fn request(&mut self, more: u64) {
        self.demand = self.demand.saturating_add(more);
    }

    /// Whether one more item of this weight may come in.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        // The item that the subscriber has asked for and will fetch next does not wait for demand, so it takes none of
        // the places of those that do. It is one at most, whatever the demand: to ask for a million items is no promise
        // to fetch them soon.
        let places = u64::from(self.items_max) + u64::from(self.demand > 0);
        let fits = self.bytes.checked_add(bytes).is_some_and(|sum| sum <= self.bytes_max);
        (self.items.len() as u64) < places && fits
    }

    /// Takes an item in for which there is room.
    pub(crate) fn push(&mut self, now: Timestamp, item: T, bytes: u64) {
        debug_assert!(self.has_room(bytes), "an item came in where there was no room");
        self.items.push_back(Held { item, bytes, since: now });
        self.bytes += bytes;
        self.depth_max = self.depth_max.max(self.items.len());
        self.counts.submitted += 1;
    }

    /// The oldest item, if it has been asked for.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<T> {
        if self.demand == 0 {
            return None;
        }
        let held = self.take_oldest()?;
        // What is without end does not become less (rule 3.17).
        if self.demand < u64::MAX {
            self.demand -= 1;
        }
        let waited = now.since(held.since);
        self.counts.delivered += 1;
        self.counts.waited = self.counts.waited.saturating_add(waited);
        self.counts.waited_max = self.counts.waited_max.max(waited);
        Some(held.item)
    }

    /// Takes an item in, or drops what the policy says; what was dropped goes to `dropped`. Gives whether it came in.
    pub(crate) fn offer(
        &mut self,
        now: Timestamp,
        item: T,
        bytes: u64,
        drops: Drops,
        dropped: &mut Vec<T>,
    ) -> bool {
        if drops == Drops::Oldest && bytes <= self.bytes_max {
            while !self.has_room(bytes)
                && let Some(oldest) = self.take_oldest()
            {
                self.counts.dropped += 1;
                dropped.push(oldest.item);
            }
        }
        if self.has_room(bytes) {
            self.push(now, item, bytes);
            return true;
        }
        self.turn_away(item, dropped);
        false
    }

    /// An item that was offered and does not come in.
    pub(crate) fn turn_away(&mut self, item: T, dropped: &mut Vec<T>) {
        self.counts.submitted += 1;
        self.counts.dropped += 1;
        dropped.push(item);
    }

    /// Drops everything, and asks for nothing any more. Gives how many there were.
    pub(crate) fn clear(&mut self, dropped: &mut Vec<T>) -> u64 {
        let missed = self.items.len() as u64;
        self.counts.dropped += missed;
        self.bytes = 0;
        self.demand = 0;
        // The memory goes with the items.
        dropped.extend(std::mem::take(&mut self.items).into_iter().map(|held| held.item));
        missed
    }

    /// What must hold after every input.
    pub(crate) fn check_invariants(&self) {
        let Counts { submitted, delivered, dropped, .. } = self.counts;
        assert_eq!(submitted, delivered + dropped + self.items.len() as u64, "an item was lost or made");
        assert_eq!(self.bytes, self.items.iter().map(|held| held.bytes).sum::<u64>(), "bytes");
        assert!(
            self.items.len() as u64 <= u64::from(self.items_max) + 1,
            "more items than the bound and one"
        );
        assert!(self.bytes <= self.bytes_max, "more bytes than the bound");
    }

    fn take_oldest(&mut self) -> Option<Held<T>> {
        let held = self.items.pop_front()?;
        self.bytes -= held.bytes;
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::ZERO;

    fn offered(buffer: &mut Buffer<u32>, items: std::ops::Range<u32>, bytes: u64, drops: Drops) -> Vec<u32> {
        let mut dropped = Vec::new();
        for item in items {
            buffer.offer(NOW, item, bytes, drops, &mut dropped);
            buffer.check_invariants();
        }
        dropped
    }

    #[test]
    fn demand_gives_one_more_place_however_large_it_is() {
        let mut buffer = Buffer::new(2, u64::MAX);
        assert_eq!(offered(&mut buffer, 0..4, 0, Drops::Newest), [2, 3]);
        buffer.request(u64::MAX);
        assert_eq!(offered(&mut buffer, 4..6, 0, Drops::Newest), [5]);
        assert_eq!(buffer.len(), 3);
    }

    #[test]
    fn the_oldest_go_until_there_is_room_in_items_and_in_bytes() {
        let mut buffer = Buffer::new(10, 100);
        assert_eq!(offered(&mut buffer, 0..3, 30, Drops::Oldest), []);
        assert_eq!(offered(&mut buffer, 3..4, 70, Drops::Oldest), [0, 1]);
        // What never fits does not throw out those who do.
        assert_eq!(offered(&mut buffer, 4..5, 101, Drops::Oldest), [4]);
        assert_eq!((buffer.len(), buffer.bytes()), (2, 100));
    }

    #[test]
    fn a_buffer_without_places_takes_only_what_is_asked_for() {
        let mut buffer = Buffer::new(0, u64::MAX);
        assert_eq!(offered(&mut buffer, 0..1, 0, Drops::Oldest), [0]);
        buffer.request(1);
        assert_eq!(offered(&mut buffer, 1..2, 0, Drops::Oldest), []);
        assert_eq!(buffer.pop(NOW), Some(1));
        assert_eq!(buffer.pop(NOW), None);
    }
}
