//! How it went over time: a fixed number of stretches, each with what was counted and how things stood.

use std::time::Duration;

/// How many stretches there are, whatever the duration.
const BUCKETS: usize = 120;

/// What was counted in each stretch of time, and how things stood, over all runs.
#[derive(Clone, Debug)]
pub struct Series {
    /// How long each stretch is.
    pub every: Duration,
    /// The stretches, from the beginning.
    pub buckets: Vec<Bucket>,
}

/// One stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bucket {
    /// Requests that clients wanted an answer to.
    pub offered: u64,
    /// Useful answers.
    pub goodput: u64,
    /// Attempts that were refused.
    pub rejected: u64,
    /// Work finished for nobody.
    pub late: u64,
    /// How often it was looked how things stand.
    pub looks: u64,
    /// The sum of the limits seen.
    pub limit: f64,
    /// The sum of what was seen in flight, orphans included.
    pub in_flight: f64,
    /// The sum of the queues seen before the service.
    pub queue: f64,
    /// The sum of the queues seen in the service.
    pub service_queue: f64,
}

/// A stretch of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
}

impl Series {
    /// Nothing yet, of a scenario of this length.
    pub fn new(duration: Duration) -> Self {
        let every = (duration / BUCKETS as u32).max(Duration::from_nanos(1));
        Self { every, buckets: vec![Bucket::default(); BUCKETS] }
    }

    /// The stretch that holds this moment; the last for whatever is later.
    pub fn at(&mut self, moment: Duration) -> &mut Bucket {
        let index = (moment.as_nanos() / self.every.as_nanos()).min(BUCKETS as u128 - 1) as usize;
        &mut self.buckets[index]
    }

    /// The sum of the stretches that lie in a window, as far as they do so with at least half of their length.
    pub fn sum(&self, window: Window) -> Bucket {
        let mut sum = Bucket::default();
        for (index, bucket) in self.buckets.iter().enumerate() {
            let middle = self.every * index as u32 + self.every / 2;
            if (window.from..window.until).contains(&middle) {
                sum.add(bucket);
            }
        }
        sum
    }

    /// Adds what another run has counted.
    pub fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.add(more);
        }
    }
}

impl Bucket {
    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.goodput += other.goodput;
        self.rejected += other.rejected;
        self.late += other.late;
        self.looks += other.looks;
        self.limit += other.limit;
        self.in_flight += other.in_flight;
        self.queue += other.queue;
        self.service_queue += other.service_queue;
    }

    /// The mean of one of the sums of what was seen; zero if nobody looked.
    pub fn mean(&self, sum: f64) -> f64 {
        if self.looks == 0 { 0.0 } else { sum / self.looks as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_stretches_within_it() {
        let mut series = Series::new(Duration::from_secs(120));
        for second in 0..130 {
            series.at(Duration::from_secs(second)).offered += 1;
        }
        let sum = |from, until| {
            series.sum(Window { from: Duration::from_secs(from), until: Duration::from_secs(until) }).offered
        };
        assert_eq!((sum(0, 60), sum(10, 11), sum(0, 1000)), (60, 1, 130));
        assert_eq!(sum(119, 120), 11, "what comes after the end is counted at the end");
    }
}
