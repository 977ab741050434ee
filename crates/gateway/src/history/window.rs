//! Percentiles of the last second and of the last minute, from what a [`Spread`] has counted in all.

use crate::metrics::{BUCKETS, Spread, percentile};

/// The minute is made of so many parts of so many seconds each, and is forgotten a part at a time.
const PARTS: usize = 12;
const PART_SECONDS: usize = 5;

const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// What has been seen of one spread: nine kilobytes.
#[derive(Debug)]
pub(super) struct Window {
    before: [u64; BUCKETS],
    second: [u32; BUCKETS],
    parts: Box<[[u32; BUCKETS]; PARTS]>,
    part: usize,
    seconds: usize,
}

impl Window {
    /// What was counted up to now is not of this window.
    pub(super) fn new(spread: &Spread) -> Self {
        Self {
            before: spread.counts(),
            second: [0; BUCKETS],
            parts: Box::new([[0; BUCKETS]; PARTS]),
            part: 0,
            seconds: 0,
        }
    }

    /// A second is over.
    pub(super) fn look(&mut self, spread: &Spread) {
        if self.seconds == PART_SECONDS {
            self.part = (self.part + 1) % PARTS;
            self.parts[self.part] = [0; BUCKETS];
            self.seconds = 0;
        }
        self.seconds += 1;
        let now = spread.counts();
        for (index, (now, before)) in now.iter().zip(&self.before).enumerate() {
            self.second[index] = u32::try_from(now.saturating_sub(*before)).unwrap_or(u32::MAX);
            let part = &mut self.parts[self.part][index];
            *part = part.saturating_add(self.second[index]);
        }
        self.before = now;
    }

    /// The times in milliseconds that half, nine tenths and all but one in a hundred did not exceed, in the last second.
    pub(super) fn second(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        of(self.second)
    }

    /// The same for the last minute, give or take a part of it.
    pub(super) fn minute(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        let mut sum = [0_u32; BUCKETS];
        for part in self.parts.iter() {
            for (sum, count) in sum.iter_mut().zip(part) {
                *sum = sum.saturating_add(*count);
            }
        }
        of(sum)
    }
}

fn of(counts: [u32; BUCKETS]) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    SHARES.into_iter().map(move |(name, share)| (name, percentile(&counts, share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn median(mut all: impl Iterator<Item = (&'static str, Option<f64>)>) -> Option<f64> {
        all.next().unwrap().1
    }

    #[test]
    fn the_second_and_the_minute_forget() {
        let spread = Spread::default();
        spread.observe(Duration::from_secs(9));
        let mut window = Window::new(&spread);
        spread.observe(Duration::from_millis(100));
        window.look(&spread);
        assert!(median(window.second()).is_some_and(|found| (90.0..115.0).contains(&found)));
        window.look(&spread);
        assert_eq!(median(window.second()), None, "a second without an answer");
        assert!(median(window.minute()).is_some());
        for _ in 0..PARTS * PART_SECONDS {
            window.look(&spread);
        }
        assert_eq!(median(window.minute()), None, "a minute without an answer");
    }
}
