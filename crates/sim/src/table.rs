//! A slab whose keys go stale: what was removed is not found again, even if its place has been taken since.
//!
//! Events refer to requests that may have ended by the time they happen, and must not hit whoever came after.

use slab::Slab;

/// The name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    serial: u32,
}

#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Slab<(u32, T)>,
    serial: u32,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Slab::new(), serial: 0 }
    }

    pub(crate) fn insert(&mut self, entry: T) -> Key {
        self.serial = self.serial.wrapping_add(1);
        Key { index: self.entries.insert((self.serial, entry)) as u32, serial: self.serial }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some((serial, entry)) if *serial == key.serial => Some(entry),
            _ => None,
        }
    }

    /// Gives an entry a new name, so that whatever refers to the old one does not find it any more.
    pub(crate) fn rename(&mut self, key: Key) -> Option<Key> {
        self.get_mut(key)?;
        self.serial = self.serial.wrapping_add(1);
        self.entries[key.index as usize].0 = self.serial;
        Some(Key { serial: self.serial, ..key })
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get_mut(key)?;
        Some(self.entries.remove(key.index as usize).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut table = Table::new();
        let first = table.insert('a');
        let renamed = table.rename(first).unwrap();
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.get_mut(renamed), Some(&mut 'a'));
        assert_eq!(table.remove(renamed), Some('a'));
        let second = table.insert('b');
        assert_eq!(second.index, first.index);
        assert_eq!((table.remove(first), table.remove(renamed), table.len()), (None, None, 1));
    }
}
