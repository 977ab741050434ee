//! Where keys go for which the table has no place: four rows of TATs that keys share.
//!
//! It is a count-min sketch of TATs. The smallest of a key's four is at least the key's own, so it can only restrict
//! too much, never too little, and a caller who keeps changing its name gains nothing: together all names get at most
//! as much as `ROWS · WIDTH` callers would, since each request allowed moves at least one of so many TATs by a whole
//! interval.

pub(super) const ROWS: usize = 4;
pub(super) const WIDTH: usize = 256;

#[derive(Debug)]
pub(super) struct Sketch {
    tats: [[u64; WIDTH]; ROWS],
}

impl Sketch {
    pub(super) const fn new() -> Self {
        Self { tats: [[0; WIDTH]; ROWS] }
    }

    /// A TAT that the key's own does not exceed.
    pub(super) fn tat(&self, key: u64) -> u64 {
        let places = (0..ROWS).map(|row| self.tats[row][column(key, row)]);
        places.min().unwrap_or(0)
    }

    pub(super) fn raise(&mut self, key: u64, tat: u64) {
        for row in 0..ROWS {
            let place = &mut self.tats[row][column(key, row)];
            *place = (*place).max(tat);
        }
    }

    pub(super) fn map(&mut self, change: impl Fn(u64) -> u64) {
        for tat in self.tats.iter_mut().flatten() {
            *tat = change(*tat);
        }
    }
}

/// Eight bits of the key for each row, from four places of it.
const fn column(key: u64, row: usize) -> usize {
    (key >> (16 * row + 4)) as usize % WIDTH
}
