//! Times, kept as a histogram of fixed size: three digits from a microsecond to ten minutes.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is told from longer ones, in microseconds.
const MICROS_MAX: u64 = 600_000_000;
const DIGITS: u8 = 3;
/// How many lines of a list of percentiles halve the distance to all, as in wrk2 and HdrHistogram.
const TICKS: u32 = 5;

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

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// All percentiles as text, in milliseconds, in the form that HdrHistogram prints and its plotters read (`.hgrm`).
    pub fn percentiles(&self) -> String {
        let histogram = &self.0;
        let millis = |micros: f64| micros / 1e3;
        let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
        let mut below = 0;
        for step in histogram.iter_quantiles(TICKS) {
            below += step.count_since_last_iteration();
            let share = step.quantile_iterated_to();
            let value = millis(step.value_iterated_to() as f64);
            let _ = match share {
                1.0 => writeln!(text, "{value:12.3} {share:2.12} {below:10}"),
                share => writeln!(text, "{value:12.3} {share:2.12} {below:10} {:14.2}", 1.0 / (1.0 - share)),
            };
        }
        let (mean, deviation) = (millis(histogram.mean()), millis(histogram.stdev()));
        let most = millis(histogram.max() as f64);
        let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
        let _ = writeln!(text, "#[Max     = {most:12.3}, Total count    = {:12}]", histogram.len());
        // What these were made with: the buckets say how far the histogram reaches, the others how finely.
        let (buckets, sub_buckets) = (histogram.buckets(), 2 * 10_u32.pow(DIGITS.into()));
        let _ = writeln!(
            text,
            "#[Buckets = {buckets:12}, SubBuckets     = {:12}]",
            sub_buckets.next_power_of_two()
        );
        text
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
    fn percentiles_in_the_form_that_plotters_read() {
        let mut latencies = Latencies::default();
        for millis in 1..=4 {
            latencies.record(Duration::from_millis(millis));
        }
        let text = latencies.percentiles();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[2], "       1.000 0.000000000000          1           1.00");
        let half = lines.iter().find(|line| line.contains(" 0.500000000000 "));
        assert_eq!(half, Some(&"       2.000 0.500000000000          2           2.00"), "{text}");
        assert!(text.contains("\n       4.001 1.000000000000          4\n#[Mean    ="), "{text}");
        assert!(text.contains("#[Max     =        4.001, Total count    =            4]\n"), "{text}");
    }

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
