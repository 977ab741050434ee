//! How long answers take: a percentile of the latest, from which it follows when a second request makes sense.
//!
//! The exact percentile of a short memory rather than an estimate from a long one: what was slow a minute ago says little
//! about what is slow now.

use core::time::Duration;

use crate::time::nanos;

/// So many answers are remembered.
const MEMORY: usize = 128;
/// With fewer there is no percentile worth the name.
const ENOUGH: u32 = 20;
/// After so many more it is looked at again. A selection among 128 takes a microsecond.
const EVERY: u32 = 16;

#[derive(Debug)]
pub(super) struct Pace {
    percentile: u8,
    /// In microseconds, which reach to 71 minutes.
    latest: [u32; MEMORY],
    seen: u32,
    known: Option<Duration>,
}

impl Pace {
    pub(super) fn new(percentile: u8) -> Self {
        Self { percentile: percentile.min(100), latest: [0; MEMORY], seen: 0, known: None }
    }

    /// An answer took so long.
    pub(super) fn took(&mut self, time: Duration) {
        let micros = u32::try_from(nanos(time) / 1_000).unwrap_or(u32::MAX);
        self.latest[self.seen as usize % MEMORY] = micros;
        // Stays above what is remembered when it has come round.
        self.seen = self.seen.checked_add(1).unwrap_or(MEMORY as u32);
        if self.seen >= ENOUGH && (self.known.is_none() || self.seen.is_multiple_of(EVERY)) {
            self.known = Some(self.select());
        }
    }

    /// In which time so many of a hundred answers come; `None` before there were enough.
    pub(super) const fn known(&self) -> Option<Duration> {
        self.known
    }

    fn select(&self) -> Duration {
        let mut sorted = self.latest;
        let count = (self.seen as usize).min(MEMORY);
        let sorted = &mut sorted[..count];
        // The smallest number that is not below so many of a hundred of them.
        let rank = (count * usize::from(self.percentile)).div_ceil(100).saturating_sub(1);
        let (_, at, _) = sorted.select_nth_unstable(rank);
        Duration::from_micros(u64::from(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(percentile: u8, times: impl Iterator<Item = u64>) -> Option<u128> {
        let mut pace = Pace::new(percentile);
        times.for_each(|millis| pace.took(Duration::from_millis(millis)));
        pace.known().map(|time| time.as_millis())
    }

    #[test]
    fn it_is_the_percentile_of_the_latest() {
        assert_eq!(after(95, 1..=19), None);
        assert_eq!(after(95, 1..=20), Some(19));
        assert_eq!(after(50, 1..=128), Some(64));
        assert_eq!(after(100, 1..=128), Some(128));
        assert_eq!(after(0, 1..=128), Some(1));
        // What is older than 128 answers is forgotten.
        assert_eq!(after(95, (0..128).map(|_| 1_000).chain((0..128).map(|_| 1))), Some(1));
        assert_eq!(after(255, (0..20).map(|_| u64::MAX)), Some(u128::from(u32::MAX) / 1_000));
    }

    #[test]
    fn it_goes_on_when_the_count_comes_round() {
        let mut pace = Pace { seen: u32::MAX, ..Pace::new(50) };
        for _ in 0..200 {
            pace.took(Duration::from_millis(7));
        }
        assert_eq!(pace.known(), Some(Duration::from_millis(7)));
    }
}
