//! The gradient controller of Envoy's adaptive concurrency filter: every minute it measures at a limit of three what an
//! answer takes at best, and ten times a second it compares the median with that.
//!
//! After source/extensions/filters/http/adaptive_concurrency/controller/gradient_controller.cc of
//! <https://github.com/envoyproxy/envoy> and the defaults of its documentation. The client's timeout is Envoy's own here,
//! so whoever leaves is one of its samples, as its own 504 is.

use std::time::Duration;

use tidegate_engine::Timestamp;
use tidegate_workload::Random;

use super::{LIMIT_MAX, Sample};

/// The limit while it measures what an answer takes at best, and the lowest there is.
const LIMIT_MIN: u32 = 3;
const PROBE_EVERY: Duration = Duration::from_secs(60);
/// Up to so much of it is added at random.
const PROBE_JITTER: f64 = 0.15;
const PROBE_SAMPLES: usize = 50;
const WINDOW: Duration = Duration::from_millis(100);
/// So much above the best is as good as the best.
const BUFFER: f64 = 0.25;
/// After so many windows at the lowest limit the best is not believed any more.
const WINDOWS_AT_MIN: u32 = 5;
/// What comes in a window beyond this is not remembered. It moves no median, and memory is not endless.
const SAMPLES_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct EnvoyGradient {
    limit: u32,
    /// The limit to go back to, while it measures the best.
    probe: Option<u32>,
    /// What an answer takes at best, in nanoseconds.
    best: f64,
    /// Response times of this window or probe, in nanoseconds.
    samples: Vec<u64>,
    /// What was sent earlier says nothing, since more was in flight then.
    epoch: Timestamp,
    next_window: Timestamp,
    next_probe: Timestamp,
    windows_at_min: u32,
    random: Random,
}

impl EnvoyGradient {
    /// It begins with a probe.
    pub(super) const fn new(random: Random) -> Self {
        Self {
            limit: LIMIT_MIN,
            probe: Some(LIMIT_MIN),
            best: 0.0,
            samples: Vec::new(),
            epoch: Timestamp::ZERO,
            next_window: Timestamp::MAX,
            next_probe: Timestamp::MAX,
            windows_at_min: 0,
            random,
        }
    }

    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) fn next_wake(&self) -> Timestamp {
        self.next_window.min(self.next_probe)
    }

    pub(super) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        if sample.sent < self.epoch {
            return;
        }
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample.latency(now).as_nanos().try_into().unwrap_or(u64::MAX));
        }
        if let Some(before) = self.probe
            && self.samples.len() >= PROBE_SAMPLES
        {
            self.end_probe(now, before);
        }
    }

    pub(super) fn wake(&mut self, now: Timestamp) {
        if now >= self.next_probe {
            self.begin_probe(now);
        } else if now >= self.next_window {
            self.next_window = now.after(WINDOW);
            if let Some(median) = self.take_median() {
                self.adjust(now, median);
            }
        }
    }

    fn begin_probe(&mut self, now: Timestamp) {
        self.probe = Some(self.limit);
        self.limit = LIMIT_MIN;
        self.windows_at_min = 0;
        self.samples.clear();
        self.epoch = now;
        (self.next_window, self.next_probe) = (Timestamp::MAX, Timestamp::MAX);
    }

    fn end_probe(&mut self, now: Timestamp, before: u32) {
        if let Some(median) = self.take_median() {
            self.best = median;
        }
        self.probe = None;
        self.limit = before;
        self.windows_at_min = 0;
        self.next_window = now.after(WINDOW);
        self.next_probe = now.after(PROBE_EVERY.mul_f64(1.0 + PROBE_JITTER * self.random.uniform()));
    }

    fn adjust(&mut self, now: Timestamp, median: f64) {
        let gradient = (self.best * (1.0 + BUFFER) / median).clamp(0.5, 2.0);
        let limit = f64::from(self.limit) * gradient;
        let next = ((limit + libm::sqrt(limit)) as u32).clamp(LIMIT_MIN, LIMIT_MAX);
        let stays_at_min = (self.limit, next) == (LIMIT_MIN, LIMIT_MIN);
        self.windows_at_min = if stays_at_min { self.windows_at_min + 1 } else { 0 };
        self.limit = next;
        if self.windows_at_min >= WINDOWS_AT_MIN {
            self.begin_probe(now);
        }
    }

    /// The median of what has been gathered, which begins anew.
    fn take_median(&mut self) -> Option<f64> {
        let middle = self.samples.len().checked_sub(1)? / 2;
        let (_, median, _) = self.samples.select_nth_unstable(middle);
        let median = (*median).max(1) as f64;
        self.samples.clear();
        Some(median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ending::Ending;
    use tidegate_workload::Purpose;

    fn envoy() -> EnvoyGradient {
        EnvoyGradient::new(Random::stream(1, Purpose::Model, 0))
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn feed(envoy: &mut EnvoyGradient, now_ms: u64, latency_ms: u64, times: usize) -> u32 {
        for _ in 0..times {
            let sent = at(now_ms - latency_ms);
            envoy.on_sample(at(now_ms), Sample { sent, ending: Ending::Answered });
        }
        envoy.limit()
    }

    #[test]
    fn first_it_measures_the_best_with_fifty_answers_at_three() {
        let mut envoy = envoy();
        assert_eq!((feed(&mut envoy, 1000, 20, 49), envoy.next_wake()), (3, Timestamp::MAX));
        feed(&mut envoy, 1000, 20, 1);
        assert_eq!((envoy.best, envoy.limit(), envoy.next_wake()), (20e6, 3, at(1100)));
        assert!((at(61_000)..at(70_000)).contains(&envoy.next_probe));
    }

    #[test]
    fn each_window_it_follows_the_gradient_and_adds_the_root() {
        let mut envoy = envoy();
        feed(&mut envoy, 1000, 20, 50);
        // As quick as at best: 3 * 1.25 = 3.75, and sqrt(3.75) = 1.9.
        feed(&mut envoy, 1100, 20, 5);
        envoy.wake(at(1100));
        assert_eq!(envoy.limit(), 5);
        // Much quicker: twice as many at the most, 10 + 3.2.
        feed(&mut envoy, 1200, 1, 5);
        envoy.wake(at(1200));
        assert_eq!(envoy.limit(), 13);
        // Much slower: half at the least, 6.5 + 2.5.
        feed(&mut envoy, 1300, 500, 5);
        envoy.wake(at(1300));
        assert_eq!(envoy.limit(), 9);
        // Nothing was heard.
        envoy.wake(at(1400));
        assert_eq!((envoy.limit(), envoy.next_wake()), (9, at(1500)));
    }

    #[test]
    fn the_probe_counts_only_what_it_has_sent_itself_and_then_goes_back() {
        let mut envoy = envoy();
        feed(&mut envoy, 1000, 20, 50);
        feed(&mut envoy, 1100, 1, 5);
        envoy.wake(at(1100));
        let before = envoy.limit();
        let probe = envoy.next_probe;
        envoy.wake(probe);
        assert_eq!(envoy.limit(), 3);
        let later = probe.after(Duration::from_millis(30)).as_nanos() / 1_000_000;
        feed(&mut envoy, later, 40, 1000);
        assert_eq!(envoy.limit(), 3, "these were sent before");
        assert_eq!((feed(&mut envoy, later, 10, 50), envoy.best), (before, 10e6));
    }

    #[test]
    fn five_windows_at_the_lowest_limit_make_it_measure_again() {
        let mut envoy = envoy();
        feed(&mut envoy, 1000, 20, 50);
        for window in 1..=5 {
            assert!(envoy.probe.is_none(), "window {window}");
            feed(&mut envoy, 1000 + 100 * window, 1000, 5);
            envoy.wake(at(1000 + 100 * window));
            assert_eq!(envoy.limit(), 3);
        }
        assert!(envoy.probe.is_some());
    }
}
