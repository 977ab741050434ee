//! One submission on its way: an item for the one subscriber, or a copy for each of several.

use tidegate_engine::Timestamp;

/// Which subscription. A place in the table is used again, its number is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: usize,
    pub(crate) number: u64,
}

/// What a submission brings. All that can be done outside of the lock has been done: it is weighed, and copied.
#[derive(Debug)]
pub(crate) struct Parcel<T> {
    pub(crate) copies: Copies<T>,
    pub(crate) bytes: u64,
    pub(crate) since: Timestamp,
}

/// For whom it is.
#[derive(Debug)]
pub(crate) enum Copies<T> {
    /// For whoever is the only subscriber.
    Sole(T),
    /// For each of those who were there when it was submitted. Never empty.
    Each(Vec<(Key, T)>),
}

impl<T> Copies<T> {
    /// The item as it was given, and the copies of it, which are done with.
    pub(crate) fn give_back(self, spent: &mut Vec<T>) -> T {
        match self {
            Self::Sole(item) => item,
            Self::Each(mut copies) => {
                let (_, item) = copies.pop().expect("there is a copy for somebody, even if he has left");
                spent.extend(copies.into_iter().map(|(_, copy)| copy));
                item
            }
        }
    }
}
