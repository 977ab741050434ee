//! A heap whose entries have names, so that one can be moved or taken out wherever it stands.
//!
//! Used for the flows of a class: which is to be served next, and which is the longest. It allocates only to grow.

use alloc::vec::Vec;

/// Where an entry stands; the smallest is first. The second number decides between equals.
pub(crate) type Order = (u64, u64);

const NOWHERE: u16 = u16::MAX;

/// Entries are small numbers, each there at most once.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    nodes: Vec<(Order, u16)>,
    /// Where each number stands among the nodes.
    places: Vec<u16>,
}

impl Heap {
    pub(crate) fn first(&self) -> Option<u16> {
        self.nodes.first().map(|(_, id)| *id)
    }

    pub(crate) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Puts an entry in, or moves it.
    pub(crate) fn set(&mut self, id: u16, order: Order) {
        match self.place(id) {
            Some(place) => {
                self.nodes[place].0 = order;
                self.settle(place);
            }
            None => {
                if self.places.len() <= usize::from(id) {
                    self.places.resize(usize::from(id) + 1, NOWHERE);
                }
                self.places[usize::from(id)] = self.nodes.len() as u16;
                self.nodes.push((order, id));
                self.settle(self.nodes.len() - 1);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: u16) {
        let Some(place) = self.place(id) else { return };
        self.nodes.swap_remove(place);
        self.places[usize::from(id)] = NOWHERE;
        if let Some((_, moved)) = self.nodes.get(place) {
            self.places[usize::from(*moved)] = place as u16;
            self.settle(place);
        }
    }

    fn place(&self, id: u16) -> Option<usize> {
        self.places.get(usize::from(id)).filter(|place| **place != NOWHERE).map(|place| usize::from(*place))
    }

    /// Brings the node at this place to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.nodes[place] < self.nodes[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let below = [2 * place + 1, 2 * place + 2].into_iter().filter(|child| *child < self.nodes.len());
            let Some(child) = below.min_by_key(|child| self.nodes[*child]) else { return };
            if self.nodes[place] <= self.nodes[child] {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.nodes.swap(one, other);
        for place in [one, other] {
            let (_, id) = self.nodes[place];
            self.places[usize::from(id)] = place as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Against the obvious model: a map that is searched for its smallest.
        #[test]
        fn the_first_is_the_smallest(operations in prop::collection::vec((0u16..20, 0u64..50, any::<bool>()), 0..300)) {
            let (mut heap, mut model) = (Heap::default(), BTreeMap::new());
            for (id, rank, puts_in) in operations {
                if puts_in {
                    heap.set(id, (rank, 0));
                    model.insert(id, rank);
                } else {
                    heap.remove(id);
                    model.remove(&id);
                }
                prop_assert_eq!(heap.len() as usize, model.len());
                let smallest = model.iter().map(|(id, rank)| (*rank, *id)).min();
                prop_assert_eq!(heap.first(), smallest.map(|(_, id)| id));
            }
        }
    }
}
