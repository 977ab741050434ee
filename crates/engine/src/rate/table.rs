//! A table of TATs with a fixed number of places, allocated once.
//!
//! Keys are chosen by whoever sends requests, so the table must not grow, and forgetting the oldest key when it is
//! full would hand an attacker a fresh quota for each new name. A TAT in the past carries no information, so such a
//! place is free for anybody, with nothing lost and nothing to sweep. If all places that a key may use are in use, the
//! table says so, and the [sketch](super::sketch) takes over.
//!
//! A key may live in two buckets of eight places, each 128 bytes: a look-up touches four cache lines at most, whatever
//! the size and whatever the attacker does. With five keys to a bucket on average, and each new key put into the
//! emptier of its two, a bucket practically never overflows (Azar et al., "Balanced Allocations", 1994).

use alloc::boxed::Box;
use alloc::vec;

const WAYS: usize = 8;
/// Keys per bucket when as many keys are in use as were asked for.
const FILL: usize = 5;
/// Buckets looked at, at most, to say how many places are in use.
const SAMPLE: usize = 8192;

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    keys: [u64; WAYS],
    /// In ticks. Zero, and all that is past, is a free place.
    tats: [u64; WAYS],
}

#[derive(Debug)]
pub(super) struct Table {
    buckets: Box<[Bucket]>,
}

/// A place in the table, and what it holds of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    bucket: u32,
    way: u8,
}

/// What the table knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Its TAT, which lies ahead.
    Here(Place, u64),
    /// Nothing; it may take this place.
    Free(Place),
    /// Nothing, and no place is free.
    Full,
}

impl Table {
    /// A table that tells at least `max_keys` keys apart.
    pub(super) fn new(max_keys: u32) -> Self {
        let buckets = (max_keys as usize).div_ceil(FILL).max(2);
        Self { buckets: vec![Bucket::default(); buckets].into_boxed_slice() }
    }

    pub(super) fn find(&self, now: u64, key: u64) -> Found {
        let choices = self.choices(key);
        // A key has one place at most: it takes another only when this one has gone to another key.
        for index in choices {
            let bucket = &self.buckets[index];
            if let Some(way) = bucket.keys.iter().position(|known| *known == key) {
                let place = Place { bucket: index as u32, way: way as u8 };
                let tat = bucket.tats[way];
                return if tat > now { Found::Here(place, tat) } else { Found::Free(place) };
            }
        }
        self.free_place(now, choices)
    }

    /// A place for a new key, in the emptier of its two buckets.
    fn free_place(&self, now: u64, choices: [usize; 2]) -> Found {
        let free = choices.map(|index| self.buckets[index].tats.iter().filter(|tat| **tat <= now).count());
        let index = if free[1] > free[0] { choices[1] } else { choices[0] };
        match self.buckets[index].tats.iter().position(|tat| *tat <= now) {
            Some(way) => Found::Free(Place { bucket: index as u32, way: way as u8 }),
            None => Found::Full,
        }
    }

    pub(super) fn set(&mut self, place: Place, key: u64, tat: u64) {
        let bucket = &mut self.buckets[place.bucket as usize];
        bucket.keys[usize::from(place.way)] = key;
        bucket.tats[usize::from(place.way)] = tat;
    }

    /// How many places are in use: exactly for a small table; for a large one from a sample, since whoever asks holds
    /// up everybody else. Keys are spread evenly, so a sample says as much as the whole.
    pub(super) fn in_use(&self, now: u64) -> usize {
        let step = self.buckets.len().div_ceil(SAMPLE);
        let looked_at = self.buckets.iter().step_by(step);
        let seen = looked_at.len();
        let in_use = looked_at.flat_map(|bucket| bucket.tats).filter(|tat| *tat > now).count();
        if step == 1 { in_use } else { in_use * self.buckets.len() / seen }
    }

    pub(super) fn map(&mut self, change: impl Fn(u64) -> u64) {
        for tat in self.buckets.iter_mut().flat_map(|bucket| &mut bucket.tats) {
            *tat = change(*tat);
        }
    }

    /// The two halves of the key, each scaled to the number of buckets (Lemire, "Fast Random Integer Generation in an
    /// Interval", 2019). The key is already a hash with a secret seed, so both are as good as random.
    fn choices(&self, key: u64) -> [usize; 2] {
        let buckets = self.buckets.len() as u64;
        [((key >> 32) * buckets) >> 32, ((key & 0xffff_ffff) * buckets) >> 32].map(|index| index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many keys as were asked for find a place each.
    #[test]
    fn holds_what_was_asked_for() {
        for max_keys in [1, 10, 100, 1000, 100_000] {
            let mut table = Table::new(max_keys);
            for number in 0..u64::from(max_keys) {
                let key = scramble(number);
                let Found::Free(place) = table.find(0, key) else {
                    panic!("no place for {number} of {max_keys}")
                };
                table.set(place, key, 1);
            }
            let (in_use, asked_for) = (table.in_use(0), max_keys as usize);
            let exact = table.buckets.len() <= SAMPLE;
            assert!(if exact { in_use == asked_for } else { in_use.abs_diff(asked_for) < asked_for / 50 });
        }
    }

    #[test]
    fn what_is_past_is_free() {
        let mut table = Table::new(1);
        let full = (0..1000).map(scramble).find(|&key| match table.find(0, key) {
            Found::Free(place) => {
                table.set(place, key, 7);
                false
            }
            Found::Here(..) => panic!("{key} came twice"),
            Found::Full => true,
        });
        let key = full.expect("two buckets have sixteen places");
        assert_eq!(table.find(6, key), Found::Full);
        assert!(matches!(table.find(7, key), Found::Free(_)));
    }

    /// SplitMix64: as good as the driver's keyed hash for a test.
    fn scramble(number: u64) -> u64 {
        let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
