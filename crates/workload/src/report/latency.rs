//! Times, kept as a histogram of fixed size: three digits from a microsecond to ten minutes.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is told from longer ones, in microseconds.
const MICROS_MAX: u64 = 600_000_000;
const DIGITS: u8 = 3;

/// How long something took, many times.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, MICROS_MAX, DIGITS).expect("these bounds are ones that it takes"))
    }
}

impl Latencies {
    /// Counts one. What is longer than ten minutes counts as that.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// The time that this share of them did not exceed; zero if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(share))
    }

    /// The longest; zero if there are none.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }

    /// The mean; zero if there are none.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.0.mean() / 1e6)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// How many took how long: rising times, each with the share of all that did not take longer. At most so many.
    pub fn curve(&self, points: usize) -> Vec<(Duration, f64)> {
        (0..=points)
            .map(|point| {
                let share = point as f64 / points.max(1) as f64;
                (self.quantile(share), share)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_from_a_microsecond_to_ten_minutes() {
        let mut latencies = Latencies::default();
        for millis in 1..=1000 {
            latencies.record(Duration::from_millis(millis));
        }
        latencies.record(Duration::MAX);
        assert_eq!(latencies.count(), 1001);
        let near = |time: Duration, millis: f64| (time.as_secs_f64() * 1e3 / millis - 1.0).abs() < 0.001;
        assert!(near(latencies.quantile(0.5), 501.0), "{:?}", latencies.quantile(0.5));
        assert!(near(latencies.quantile(0.99), 991.0), "{:?}", latencies.quantile(0.99));
        assert!(near(latencies.max(), 600_000.0), "{:?}", latencies.max());
        assert_eq!(Latencies::default().quantile(0.99), Duration::ZERO);
    }
}
