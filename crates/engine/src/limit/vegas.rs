//! Vegas: keeps a few requests queued in the upstream, as TCP Vegas does with packets.
//!
//! How many are queued is estimated from the ratio of the response time now to the lowest one seen. The rules and the
//! numbers are those of Netflix concurrency-limits (`VegasLimit`), which is what people who know it expect. Its weakness
//! is the baseline: when the upstream becomes slower without being full, the old one makes it look full, until a probe
//! takes the present for the new baseline, full or not.

use core::time::Duration;

use crate::decision::Outcome;
use crate::limit::{Range, Sample};
use crate::policy::RangePolicy;

/// A probe comes once in so many samples for each place of the limit.
const PROBE_EVERY: f64 = 30.0;

#[derive(Debug)]
pub(crate) struct Vegas {
    range: Range,
    limit: f64,
    /// The lowest response time seen since the last probe; zero as long as there is none.
    baseline: Duration,
    samples: u32,
    /// Goes from probe to probe, so that their distance varies as Netflix's random one does, and is the same in each run.
    jitter: f64,
}

impl Vegas {
    pub(crate) fn new(policy: &RangePolicy) -> Self {
        let range = Range::new(policy);
        Self { limit: range.initial(policy), range, baseline: Duration::ZERO, samples: 0, jitter: 0.0 }
    }

    pub(crate) fn current(&self) -> u32 {
        self.limit as u32
    }

    pub(crate) fn reconfigure(&mut self, policy: &RangePolicy) {
        self.range = Range::new(policy);
        self.limit = self.range.clamp(self.limit);
    }

    pub(crate) fn on_sample(&mut self, sample: Sample) {
        let step = libm::floor(libm::log10(self.limit)).max(1.0);
        match sample.outcome {
            Outcome::Failure | Outcome::Ignore => return,
            Outcome::Overload => {
                self.limit = self.range.clamp(self.limit - step);
                return;
            }
            Outcome::Success => {}
        }
        self.samples += 1;
        if f64::from(self.samples) >= PROBE_EVERY * self.limit * (0.5 + self.jitter / 2.0) {
            // The golden ratio spreads the distances evenly.
            self.jitter = libm::fmod(self.jitter + 0.618_033_988_749_895, 1.0);
            self.samples = 0;
            self.baseline = sample.latency;
            return;
        }
        if self.baseline.is_zero() || sample.latency < self.baseline {
            self.baseline = sample.latency;
            return;
        }
        if !sample.in_use {
            return;
        }
        let share = self.baseline.as_secs_f64() / sample.latency.as_secs_f64().max(1e-9);
        let queued = libm::ceil(self.limit * (1.0 - share));
        let (few, many) = (3.0 * step, 6.0 * step);
        self.limit = self.range.clamp(if queued <= step {
            self.limit + many
        } else if queued < few {
            self.limit + step
        } else if queued > many {
            self.limit - step
        } else {
            self.limit
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::{range, sample};

    #[test]
    fn grows_while_nothing_queues_and_shrinks_when_much_does() {
        let mut vegas = Vegas::new(&range(1, 1000, 20));
        vegas.on_sample(sample(10, Outcome::Success));
        assert_eq!(vegas.current(), 20, "the first sample is the baseline");
        vegas.on_sample(sample(10, Outcome::Success));
        assert_eq!(vegas.current(), 26, "nothing queues: by six steps");
        // At 26 and 11 ms there are three in the queue: neither few nor many.
        vegas.on_sample(sample(11, Outcome::Success));
        assert_eq!(vegas.current(), 26);
        vegas.on_sample(sample(20, Outcome::Success));
        assert_eq!(vegas.current(), 25, "thirteen queue");
        vegas.on_sample(sample(1, Outcome::Overload));
        assert_eq!(vegas.current(), 24);
        vegas.on_sample(sample(1, Outcome::Ignore));
        assert_eq!(vegas.current(), 24);
    }

    #[test]
    fn a_probe_takes_the_present_for_the_baseline() {
        let mut vegas = Vegas::new(&range(20, 20, 20));
        vegas.on_sample(sample(10, Outcome::Success));
        for _ in 0..300 {
            vegas.on_sample(sample(50, Outcome::Success));
        }
        assert_eq!(vegas.baseline, Duration::from_millis(50));
    }

    #[test]
    fn stays_within_its_range() {
        let mut vegas = Vegas::new(&range(2, 40, 20));
        for _ in 0..1000 {
            vegas.on_sample(sample(10, Outcome::Success));
        }
        assert_eq!(vegas.current(), 40);
        for _ in 0..1000 {
            vegas.on_sample(sample(0, Outcome::Overload));
        }
        assert_eq!(vegas.current(), 2);
    }
}
