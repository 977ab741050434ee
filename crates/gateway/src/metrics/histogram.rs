//! A histogram of times with fixed buckets, from a tenth of a millisecond to a minute.

use std::time::Duration;

use super::Counter;

/// Upper bounds of the buckets, in microseconds. A refusal takes a fraction of a millisecond, a slow answer seconds;
/// both must be told apart.
const BOUNDS_MICROS: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// One more than there are bounds: the last is for what is beyond them.
    buckets: [Counter; BOUNDS_MICROS.len() + 1],
    nanos: Counter,
}

impl Histogram {
    pub(crate) fn observe(&self, time: Duration) {
        let micros = time.as_nanos().div_ceil(1_000);
        let bucket = BOUNDS_MICROS.iter().position(|&bound| micros <= u128::from(bound));
        self.buckets[bucket.unwrap_or(BOUNDS_MICROS.len())].add(1);
        self.nanos.add_duration(time);
    }

    /// The sum of all times, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.nanos.get() as f64 / 1e9
    }

    /// Each bucket's upper bound in seconds, infinite for the last, and how many were at most that.
    pub(crate) fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_MICROS.iter().map(|&micros| micros as f64 / 1e6).chain([f64::INFINITY]);
        let mut total = 0;
        let mut add = |counter: &Counter| {
            total += counter.get();
            total
        };
        bounds.zip(&self.buckets).map(|(bound, counter)| (bound, add(counter))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_on_the_bound_is_within_it() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 60_000_000, 60_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let cumulative = histogram.cumulative();
        assert_eq!(cumulative[0], (0.0001, 2));
        assert_eq!(cumulative[1].1, 3);
        assert_eq!(cumulative[17], (60.0, 4));
        assert_eq!(cumulative[18], (f64::INFINITY, 5));
    }
}
