//! A slab whose entries form lists in order of insertion: O(1) to append, to take either end, to remove any.
//!
//! All who wait are in one slab, in as many lists as there are lines to wait in, so that a key says who it is wherever
//! that one stands; those in flight are one list. Slots are reused, and each carries a generation, so a key that outlived
//! its entry finds nothing rather than a stranger.

use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Names one entry of one [`LinkedSlab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    slot: u32,
    generation: u32,
}

impl Key {
    pub(crate) const fn index(self) -> usize {
        self.slot as usize
    }
}

/// One list of a slab. Whoever keeps it has to pass it along with every key of its entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    before: u32,
    /// The next entry, or the next free slot.
    after: u32,
    value: Option<T>,
}

#[derive(Debug)]
pub(crate) struct LinkedSlab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: u32,
}

impl<T> LinkedSlab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0 }
    }

    /// Entries in all lists.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn push_back(&mut self, list: &mut List, value: T) -> Key {
        let slot = self.take_free_slot(list.last, value);
        match list.last {
            NONE => list.first = slot,
            last => self.slots[last as usize].after = slot,
        }
        list.last = slot;
        list.len += 1;
        self.len += 1;
        Key { slot, generation: self.slots[slot as usize].generation }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index())?;
        if slot.generation == key.generation { slot.value.as_ref() } else { None }
    }

    pub(crate) fn front(&self, list: &List) -> Option<(Key, &T)> {
        self.at(list.first)
    }

    pub(crate) fn back(&self, list: &List) -> Option<(Key, &T)> {
        self.at(list.last)
    }

    /// Takes an entry out of its list, which has to be this one.
    pub(crate) fn remove(&mut self, list: &mut List, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index()).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.generation = slot.generation.wrapping_add(1);
        slot.after = self.free;
        self.free = key.slot;
        match before {
            NONE => list.first = after,
            before => self.slots[before as usize].after = after,
        }
        match after {
            NONE => list.last = before,
            after => self.slots[after as usize].before = before,
        }
        list.len -= 1;
        self.len -= 1;
        Some(value)
    }

    fn at(&self, slot: u32) -> Option<(Key, &T)> {
        let entry = self.slots.get(slot as usize)?;
        Some((Key { slot, generation: entry.generation }, entry.value.as_ref()?))
    }

    fn take_free_slot(&mut self, before: u32, value: T) -> u32 {
        if self.free == NONE {
            // Policy bounds keep the number of entries far below 2^32.
            let slot = self.slots.len() as u32;
            self.slots.push(Slot { generation: 0, before, after: NONE, value: Some(value) });
            return slot;
        }
        let slot = self.free;
        let entry = &mut self.slots[slot as usize];
        self.free = entry.after;
        entry.before = before;
        entry.after = NONE;
        entry.value = Some(value);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let (mut slab, mut list) = (LinkedSlab::new(), List::EMPTY);
        let old = slab.push_back(&mut list, 'a');
        assert_eq!(slab.remove(&mut list, old), Some('a'));
        let new = slab.push_back(&mut list, 'b');
        assert_eq!(old.index(), new.index());
        assert_eq!(slab.remove(&mut list, old), None);
        assert_eq!(slab.get(new), Some(&'b'));
    }

    proptest! {
        /// Against the obvious model: deques that remove by searching.
        #[test]
        fn behaves_like_deques(
            operations in prop::collection::vec((0u8..4, 0usize..3, any::<prop::sample::Index>()), 0..200)
        ) {
            let (mut slab, mut lists) = (LinkedSlab::new(), [List::EMPTY; 3]);
            let mut models: [VecDeque<(Key, usize)>; 3] = Default::default();
            for (number, (operation, which, index)) in operations.into_iter().enumerate() {
                let (list, model) = (&mut lists[which], &mut models[which]);
                match operation {
                    0 | 1 => model.push_back((slab.push_back(list, number), number)),
                    _ if model.is_empty() => prop_assert!(slab.front(list).is_none()),
                    _ => {
                        let (key, value) = model.remove(index.index(model.len())).unwrap();
                        prop_assert_eq!(slab.remove(list, key), Some(value));
                    }
                }
                prop_assert_eq!(list.len() as usize, model.len());
                prop_assert_eq!(slab.front(list).map(|(key, value)| (key, *value)), model.front().copied());
                prop_assert_eq!(slab.back(list).map(|(key, value)| (key, *value)), model.back().copied());
                prop_assert_eq!(slab.len() as usize, models.iter().map(VecDeque::len).sum::<usize>());
            }
        }
    }
}
