//! How long something took, in buckets narrow enough for percentiles: each is at most an eighth wider than it is long.
//!
//! Counting is two additions. What is asked of it later, such as a percentile of one second, is found from the difference
//! of two looks, by whoever looks.

use std::time::Duration;

use super::Counter;

/// The first buckets are so wide, in microseconds.
const UNIT_MICROS: u64 = 16;
/// Each doubling of time is divided into so many buckets.
const PARTS: u64 = 8;
/// Enough for two minutes; what takes longer is in the last.
pub(crate) const BUCKETS: usize = 176;

/// One counter for each bucket.
#[derive(Debug)]
pub(crate) struct Spread([Counter; BUCKETS]);

impl Default for Spread {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Spread {
    pub(crate) fn observe(&self, time: Duration) {
        self.0[bucket(time)].add(1);
    }

    /// What each bucket has counted.
    pub(crate) fn counts(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|index| self.0[index].get())
    }
}

fn bucket(time: Duration) -> usize {
    let units = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / UNIT_MICROS;
    if units < PARTS {
        return units as usize;
    }
    let doublings = u64::from(units.ilog2()) - u64::from(PARTS.ilog2());
    let part = (units >> doublings) - PARTS;
    usize::try_from(PARTS + doublings * PARTS + part).unwrap_or(usize::MAX).min(BUCKETS - 1)
}

/// Where a bucket begins, in milliseconds.
fn begins(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    let units = if bucket < PARTS {
        bucket
    } else {
        let doublings = (bucket - PARTS) / PARTS;
        (PARTS + (bucket - PARTS) % PARTS) << doublings
    };
    (units * UNIT_MICROS) as f64 / 1e3
}

/// The time in milliseconds that this share of what was counted, from 0 to 1, did not exceed; `None` if nothing was.
pub(crate) fn percentile(counts: &[u32; BUCKETS], share: f64) -> Option<f64> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if total == 0 {
        return None;
    }
    let wanted = (total as f64 * share).max(f64::MIN_POSITIVE);
    let mut below = 0.0;
    for (bucket, &count) in counts.iter().enumerate() {
        let count = f64::from(count);
        if count > 0.0 && below + count >= wanted {
            let (from, to) = (begins(bucket), begins(bucket + 1));
            return Some(from + (to - from) * (wanted - below) / count);
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_a_time_is_in_its_own() {
        for index in 0..BUCKETS - 1 {
            let from = Duration::from_nanos((begins(index) * 1e6) as u64);
            let to = Duration::from_nanos((begins(index + 1) * 1e6) as u64);
            assert_eq!(bucket(from), index, "{from:?}");
            assert_eq!(bucket(to - Duration::from_nanos(1)), index, "{to:?}");
            if index >= PARTS as usize {
                assert!((to - from).as_secs_f64() <= from.as_secs_f64() / 8.0 + 1e-9, "{from:?} to {to:?}");
            }
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
        assert!(begins(BUCKETS - 1) > 120_000.0);
    }

    #[test]
    fn percentiles_are_as_near_as_a_bucket_is_wide() {
        let spread = Spread::default();
        for millis in 1..=1000 {
            spread.observe(Duration::from_millis(millis));
        }
        let counts = spread.counts().map(|count| u32::try_from(count).unwrap());
        for (share, exact) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
            let found = percentile(&counts, share).unwrap();
            assert!((found / exact - 1.0).abs() < 0.04, "{share}: {found}");
        }
        assert_eq!(percentile(&[0; BUCKETS], 0.5), None);
    }
}
