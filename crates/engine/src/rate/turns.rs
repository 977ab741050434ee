//! When each of those who are refused should come back: a cursor for each key that is being refused.
//!
//! The exact time to the next token is the same for all who are refused at one moment, and if all were told that, one
//! would get in and the others be refused again. So a key's cursor goes on by the emission interval of every request
//! that it refuses, as the bucket will when they come. A turn is a hint and no reservation: whoever comes in between
//! may take it.
//!
//! What the clamp does. No turn lies further ahead than the longest time that the driver tells anybody. Whoever would
//! have a later one is told a time in the upper half of that, each another: the golden ratio's multiples cut a stretch
//! more evenly than chance does, however many there are (Knuth, "The Art of Computer Programming", volume 3, section
//! 6.4, theorem S). They come too early, and are told again; by then there are fewer of them.
//!
//! A cursor that time has passed is forgotten, and its place free. The table is small, since most keys are not being
//! refused; if a key finds no place, it takes that of the key whose cursor is passed first.

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;

use crate::time::{Timestamp, nanos};

const WAYS: usize = 4;
/// One cursor for so many keys of the rate limit: 24 bytes for eight of them, three for each.
const KEYS_PER_CURSOR: usize = 8;
/// The fractional part of the golden ratio, as a part of 2⁶⁴.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    key: u64,
    /// The turn given out last.
    at: Timestamp,
    /// How many would have had a turn beyond the longest.
    beyond: u32,
}

type Bucket = [Cursor; WAYS];

#[derive(Debug)]
pub(crate) struct Turns {
    buckets: Box<[Bucket]>,
}

impl Turns {
    /// Cursors for a rate limit that tells so many keys apart.
    pub(crate) fn new(max_keys: u32) -> Self {
        let buckets = (max_keys as usize).div_ceil(KEYS_PER_CURSOR * WAYS);
        Self { buckets: vec![Bucket::default(); buckets].into_boxed_slice() }
    }

    /// The next turn of a key that is refused, seen from now. It conforms after `wait` if nobody else comes; `interval`
    /// is what it will use up, and `longest` what it can be told at most.
    pub(crate) fn next(
        &mut self,
        now: Timestamp,
        key: u64,
        wait: Duration,
        interval: Duration,
        longest: Duration,
    ) -> Duration {
        let cursor = self.cursor(now, key);
        let exact = now.after(wait);
        let turn = if cursor.at > now { exact.max(cursor.at.after(interval)) } else { exact };
        let ahead = turn.since(now);
        if ahead <= longest {
            cursor.at = turn;
            return ahead;
        }
        cursor.at = cursor.at.max(now.after(longest));
        let part = u64::from(cursor.beyond).wrapping_mul(GOLDEN);
        cursor.beyond = cursor.beyond.wrapping_add(1);
        let back = (u128::from(nanos(longest) / 2) * u128::from(part)) >> 64;
        longest.saturating_sub(Duration::from_nanos(back as u64))
    }

    /// Under another quota other turns are right.
    pub(super) fn forget(&mut self) {
        self.buckets.fill(Bucket::default());
    }

    fn cursor(&mut self, now: Timestamp, key: u64) -> &mut Cursor {
        // Not the bits of the key by which the other tables choose alone: those who share a bucket there need not here.
        let index = ((key.wrapping_mul(GOLDEN) >> 32) * self.buckets.len() as u64) >> 32;
        let bucket = &mut self.buckets[index as usize];
        let known = bucket.iter().position(|cursor| cursor.key == key);
        let way = known.unwrap_or_else(|| {
            let first = (0..WAYS).min_by_key(|way| bucket[*way].at);
            let way = first.unwrap_or(0);
            bucket[way] = Cursor { key, ..Cursor::default() };
            way
        });
        let cursor = &mut bucket[way];
        if cursor.at <= now {
            cursor.beyond = 0;
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn told(turns: &mut Turns, at_ms: u64, key: u64, wait_ms: u64) -> u128 {
        let (now, wait) = (Timestamp::from_millis(at_ms), Duration::from_millis(wait_ms));
        turns.next(now, key, wait, SECOND / 10, MINUTE).as_millis()
    }

    #[test]
    fn each_is_told_a_time_of_its_own() {
        let mut turns = Turns::new(100);
        assert_eq!([0, 0, 0].map(|at| told(&mut turns, at, 1, 30)), [30, 130, 230]);
        assert_eq!(told(&mut turns, 0, 2, 30), 30, "another key has nothing to do with that");
        assert_eq!(told(&mut turns, 100, 1, 30), 230, "the turn after the last, seen from later on");
        assert_eq!(
            told(&mut turns, 330, 1, 30),
            30,
            "after the last turn it is as if nobody had been told anything"
        );
        assert_eq!(told(&mut turns, 330, 1, 5000), 5000, "nobody is told less than the exact time");
    }

    /// A thousand who have to wait for hours, and all are told a minute or less, no two the same.
    #[test]
    fn beyond_the_longest_they_are_spread_too() {
        let mut turns = Turns::new(100);
        let mut all: Vec<u128> = (0..1000).map(|_| told(&mut turns, 0, 1, 7_200_000)).collect();
        assert_eq!(all[0], 60_000, "alone, as late as can be");
        all.sort_unstable();
        assert!(all[0] >= 30_000 && all[999] <= 60_000);
        let gaps = all.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| (10..=60).contains(&gap)), "{:?}", gaps.max());
        // Half a minute later the first of them have gone, but not the last.
        assert!(told(&mut turns, 30_000, 1, 7_200_000) < 60_000);
        assert_eq!(told(&mut turns, 95_000, 1, 7_200_000), 60_000);
        // Where the exact time is near, turns are exact up to the longest, and no hammering moves them further.
        let near: Vec<u128> = (0..100_000).map(|_| told(&mut turns, 200_000, 2, 100)).collect();
        assert_eq!((near[0], near[599]), (100, 60_000));
        assert!(near[600..].iter().all(|told| (30_000..=60_000).contains(told)));
        assert_eq!(told(&mut turns, 260_000, 2, 100), 100);
    }

    /// C1: a key that is refused takes the place of another at worst, and both are told something sensible.
    #[test]
    fn a_flood_of_keys_takes_no_memory() {
        let mut turns = Turns::new(1);
        for key in 0..10_000 {
            assert_eq!(told(&mut turns, 0, key, 30), 30);
        }
        assert_eq!((turns.buckets.len(), size_of::<Bucket>()), (1, 96));
    }
}
