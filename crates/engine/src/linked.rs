//! A slab whose entries form one list in order of insertion: O(1) to append, to take the first, to remove any.
//!
//! Both the queue and the requests in flight are such lists. Slots are reused, and each carries a generation, so a
//! key that outlived its entry finds nothing rather than a stranger.

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
    first: u32,
    last: u32,
    free: u32,
    len: u32,
}

impl<T> LinkedSlab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), first: NONE, last: NONE, free: NONE, len: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_back(&mut self, value: T) -> Key {
        let slot = self.take_free_slot(value);
        match self.last {
            NONE => self.first = slot,
            last => self.slots[last as usize].after = slot,
        }
        self.last = slot;
        self.len += 1;
        Key { slot, generation: self.slots[slot as usize].generation }
    }

    pub(crate) fn pop_front(&mut self) -> Option<(Key, T)> {
        let key = Key { slot: self.first, generation: self.slots.get(self.first as usize)?.generation };
        self.remove(key).map(|value| (key, value))
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index())?;
        if slot.generation == key.generation { slot.value.as_ref() } else { None }
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.slots.get(self.first as usize)?.value.as_ref()
    }

    pub(crate) fn back(&self) -> Option<&T> {
        self.slots.get(self.last as usize)?.value.as_ref()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index()).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.generation = slot.generation.wrapping_add(1);
        slot.after = self.free;
        self.free = key.slot;
        match before {
            NONE => self.first = after,
            before => self.slots[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.slots[after as usize].before = before,
        }
        self.len -= 1;
        Some(value)
    }

    fn take_free_slot(&mut self, value: T) -> u32 {
        if self.free == NONE {
            // Policy bounds keep the number of entries far below 2^32.
            let slot = self.slots.len() as u32;
            self.slots.push(Slot { generation: 0, before: self.last, after: NONE, value: Some(value) });
            return slot;
        }
        let slot = self.free;
        let entry = &mut self.slots[slot as usize];
        self.free = entry.after;
        entry.before = self.last;
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
        let mut list = LinkedSlab::new();
        let old = list.push_back('a');
        assert_eq!(list.remove(old), Some('a'));
        let new = list.push_back('b');
        assert_eq!(old.index(), new.index());
        assert_eq!(list.remove(old), None);
        assert_eq!(list.get(new), Some(&'b'));
    }

    proptest! {
        /// Against the obvious model: a deque that removes by searching.
        #[test]
        fn behaves_like_a_deque(operations in prop::collection::vec((0u8..3, any::<prop::sample::Index>()), 0..200)) {
            let mut list = LinkedSlab::new();
            let mut model: VecDeque<(Key, usize)> = VecDeque::new();
            for (number, (operation, index)) in operations.into_iter().enumerate() {
                match operation {
                    0 => model.push_back((list.push_back(number), number)),
                    1 => prop_assert_eq!(list.pop_front(), model.pop_front()),
                    _ if model.is_empty() => {}
                    _ => {
                        let (key, value) = model.remove(index.index(model.len())).unwrap();
                        prop_assert_eq!(list.remove(key), Some(value));
                    }
                }
                prop_assert_eq!(list.len() as usize, model.len());
                prop_assert_eq!(list.front(), model.front().map(|(_, value)| value));
                prop_assert_eq!(list.back(), model.back().map(|(_, value)| value));
            }
        }
    }
}
