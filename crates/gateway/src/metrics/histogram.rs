//! A histogram of times with fixed buckets, from a tenth of a millisecond to a minute.

use std::time::Duration;

use super::Counter;

/// Upper bounds of the buckets, in microseconds. From 5 ms to 10 s they are those that OpenTelemetry's semantic
/// conventions advise for `http.server.request.duration`, so that both can be drawn together. A refusal takes a fraction
/// of a millisecond, and an upstream's timeout may be a minute: hence those below and above.
const BOUNDS_MICROS: [u64; 21] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000,
    1_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000, 30_000_000, 60_000_000,
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
        assert_eq!(cumulative[20], (60.0, 4));
        assert_eq!(cumulative[21], (f64::INFINITY, 5));
    }

    /// <https://opentelemetry.io/docs/specs/semconv/http/http-metrics/>, the advised boundaries.
    #[test]
    fn the_buckets_that_opentelemetry_advises_are_among_ours() {
        let ours: Vec<f64> = Histogram::default().cumulative().iter().map(|(bound, _)| *bound).collect();
        for advised in [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0] {
            assert!(ours.contains(&advised), "{advised}");
        }
        assert!(ours.iter().filter(|bound| **bound < 0.001).count() >= 3, "a refusal takes less");
        assert!(ours.is_sorted());
    }
}
