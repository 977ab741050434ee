//! Who was told when to come back, in a fixed amount of memory.
//!
//! A refusal names a time. Whoever comes before it did not listen; whoever comes at it has done what was asked, and is no
//! retry to be held against. This remembers the times, and no callers: it is a sketch of four rows of cells, and a key
//! is due at the smallest of its four. Keys that share a cell can only make each other's time later, so nobody who did
//! not listen passes for somebody who did, except by having been forgotten. What it is not: a reservation, or a list.

use alloc::boxed::Box;
use alloc::vec;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::time::Timestamp;

const ROWS: usize = 4;
/// Cells in a row for each hundred keys. A key that was told nothing finds all of its cells taken with a probability of
/// (1 − e^(−100/264))⁴ < 1 % when all keys that it was made for are remembered (Bloom, "Space/Time Trade-offs in Hash
/// Coding with Allowable Errors", 1970); at twice as many, 8 %.
const CELLS_PER_100: u64 = 264;
const ROW_MAX: u64 = 1 << 26;
/// A cell is a time in milliseconds, doubled; the lowest bit says that whoever was told has come back.
const TICK: Duration = Duration::from_millis(1);
const CAME: u32 = 1;
/// Past so many milliseconds the epoch is moved: twelve days, so that a cell can still hold the twelve after it.
const MILLIS_MAX: u64 = 1 << 30;

/// Who was told when to come back.
///
/// A key is a 64-bit hash of whatever tells one caller from another, made by the driver with a secret seed. It takes
/// 43 bytes for each key that it is made for, at least 4 KiB, allocated once. With that many keys remembered, one in a
/// hundred of those who were told nothing is taken for somebody who was; a key is forgotten by itself
/// [`GRACE`](Self::GRACE) after its time.
#[derive(Debug)]
pub struct Told {
    now: Timestamp,
    /// What millisecond 0 stands for.
    epoch: Timestamp,
    width: u64,
    /// Row by row.
    cells: Box<[u32]>,
}

/// How somebody who was told a time has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// Before its time: it did not listen.
    Early,
    /// At its time, or at most [`Told::GRACE`] later.
    OnTime,
}

impl Told {
    /// How long after its time a key is remembered: as much as clients lose that round up to whole seconds, and the
    /// same again for the way. Whoever comes later comes of its own accord.
    pub const GRACE: Duration = Duration::from_secs(2);

    /// Room for so many `keys` that are told something at the same time.
    pub fn new(keys: NonZeroU32) -> Self {
        let width = (u64::from(keys.get()) * CELLS_PER_100).div_ceil(100).clamp(256, ROW_MAX);
        let cells = vec![0; ROWS * width as usize].into_boxed_slice();
        Self { now: Timestamp::ZERO, epoch: Timestamp::ZERO, width, cells }
    }

    /// This key is told not to come before `until`, which counts as at most twelve days ahead. If it was told a later
    /// time before, that one holds.
    pub fn tell(&mut self, now: Timestamp, key: u64, until: Timestamp) {
        self.advance(now);
        let cell = u32::try_from(self.millis(until).saturating_mul(2)).unwrap_or(!CAME);
        for place in self.places(key) {
            let known = &mut self.cells[place];
            *known = (*known).max(cell);
        }
    }

    /// When this key is to come back, rounded down to a millisecond; `None` if it was told nothing, or has been
    /// forgotten. It may be up to [`GRACE`](Self::GRACE) ago.
    pub fn due(&mut self, now: Timestamp, key: u64) -> Option<Timestamp> {
        self.advance(now);
        let until = self.until(self.smallest(key))?;
        (self.now < until.after(Self::GRACE)).then_some(until)
    }

    /// Somebody with this key comes. `None` if it was told nothing, has been forgotten, or has come back on time
    /// before: whoever did what it was told is a caller like any other from then on.
    pub fn comes(&mut self, now: Timestamp, key: u64) -> Option<Return> {
        let due = self.due(now, key)?;
        if due > self.now {
            return Some(Return::Early);
        }
        let cell = self.smallest(key);
        if cell & CAME != 0 {
            return None;
        }
        for place in self.places(key) {
            let known = &mut self.cells[place];
            *known = (*known).max(cell | CAME);
        }
        Some(Return::OnTime)
    }

    fn smallest(&self, key: u64) -> u32 {
        self.places(key).into_iter().map(|place| self.cells[place]).min().unwrap_or(0)
    }

    /// A key's cells, by double hashing (Kirsch and Mitzenmacher, "Less Hashing, Same Performance", 2006).
    fn places(&self, key: u64) -> [usize; ROWS] {
        let (mut hash, step) = (key & 0xffff_ffff, (key >> 32) | 1);
        core::array::from_fn(|row| {
            let column = ((hash & 0xffff_ffff) * self.width) >> 32;
            hash += step;
            row * self.width as usize + column as usize
        })
    }

    /// `None` for an empty cell.
    fn until(&self, cell: u32) -> Option<Timestamp> {
        let millis = cell / 2;
        (millis > 0).then(|| self.epoch.after(TICK * millis))
    }

    fn millis(&self, at: Timestamp) -> u64 {
        u64::try_from(at.since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }

    /// Moves time, never back.
    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let passed = self.millis(self.now);
        if passed < MILLIS_MAX {
            return;
        }
        self.epoch = self.epoch.after(Duration::from_millis(passed));
        let passed = u32::try_from(passed.saturating_mul(2)).unwrap_or(!CAME);
        for cell in &mut self.cells {
            *cell = cell.saturating_sub(passed);
        }
    }
}
