//! Gradient2: follows the ratio of the response time over the last minutes to that of the last second.
//!
//! The rules and the numbers are those of Netflix concurrency-limits (`Gradient2Limit` within its `WindowedLimit`), which
//! is what people who know it expect. Its weakness is that the long-term mean learns from overload too: an overload that
//! lasts becomes the new normal, and the limit runs away.

use core::time::Duration;

use crate::decision::Outcome;
use crate::limit::{Range, Sample};
use crate::policy::RangePolicy;
use crate::time::Timestamp;

/// One window, and how many samples it has to have.
const WINDOW: Duration = Duration::from_secs(1);
const SAMPLES_MIN: u32 = 10;
/// Over so many windows the long-term mean reaches, and over so many it is an average at first.
const LONG: f64 = 600.0;
const WARM_UP: u32 = 10;
/// The response time may be so many times the long-term mean before the limit falls.
const TOLERANCE: f64 = 1.5;
/// What may queue in the upstream.
const QUEUE: f64 = 4.0;
/// How much of a new limit is taken over at once.
const SMOOTHING: f64 = 0.2;

#[derive(Debug)]
pub(crate) struct Gradient2 {
    range: Range,
    limit: f64,
    long: f64,
    windows: u32,
    window: Window,
}

#[derive(Debug, Default)]
struct Window {
    since: Timestamp,
    samples: u32,
    sum: f64,
    in_use: bool,
}

impl Gradient2 {
    pub(crate) fn new(policy: &RangePolicy) -> Self {
        let range = Range::new(policy);
        Self { limit: range.initial(policy), range, long: 0.0, windows: 0, window: Window::default() }
    }

    pub(crate) fn current(&self) -> u32 {
        self.limit as u32
    }

    pub(crate) fn reconfigure(&mut self, policy: &RangePolicy) {
        self.range = Range::new(policy);
        self.limit = self.range.clamp(self.limit);
    }

    /// A timeout counts with the time that it took; beyond that it is told nothing of overload, and looks at nothing else.
    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        if matches!(sample.outcome, Outcome::Failure | Outcome::Ignore) {
            return;
        }
        self.window.samples += 1;
        self.window.sum += sample.latency.as_secs_f64();
        self.window.in_use |= sample.in_use;
        if self.window.samples >= SAMPLES_MIN && now.since(self.window.since) >= WINDOW {
            let short = self.window.sum / f64::from(self.window.samples);
            let in_use = self.window.in_use;
            self.window = Window { since: now, ..Window::default() };
            self.learn(short.max(1e-9), in_use);
        }
    }

    fn learn(&mut self, short: f64, in_use: bool) {
        self.windows = self.windows.saturating_add(1);
        self.long = if self.windows <= WARM_UP {
            self.long + (short - self.long) / f64::from(self.windows)
        } else {
            self.long + (short - self.long) * 2.0 / (LONG + 1.0)
        };
        if self.long > 2.0 * short {
            // The load was high for long, and is not any more.
            self.long *= 0.95;
        }
        if !in_use {
            return;
        }
        let gradient = (TOLERANCE * self.long / short).clamp(0.5, 1.0);
        let new = self.limit * gradient + QUEUE;
        self.limit = self.range.clamp((1.0 - SMOOTHING) * self.limit + SMOOTHING * new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::{range, sample};

    /// A window of so many milliseconds each.
    fn window(gradient: &mut Gradient2, second: u64, millis: u64) -> u32 {
        for _ in 0..10 {
            gradient.on_sample(Timestamp::from_millis(second * 1000), sample(millis, Outcome::Success));
        }
        gradient.current()
    }

    #[test]
    fn grows_by_the_queue_while_nothing_changes() {
        let mut gradient = Gradient2::new(&range(1, 200, 20));
        // .8 · 20 + .2 · (20 + 4)
        assert_eq!([1, 2, 3].map(|second| window(&mut gradient, second, 10)), [20, 21, 22]);
    }

    #[test]
    fn falls_when_it_is_slower_than_it_used_to_be() {
        let mut gradient = Gradient2::new(&range(1, 200, 100));
        for second in 1..=20 {
            window(&mut gradient, second, 10);
        }
        let before = gradient.current();
        assert!(window(&mut gradient, 21, 100) < before, "ten times as slow");
    }

    /// What is wrong with it: an overload that lasts is taken for normal.
    #[test]
    fn an_overload_that_lasts_becomes_normal() {
        let mut gradient = Gradient2::new(&range(1, 200, 20));
        for second in 1..=3600 {
            window(&mut gradient, second, 10 + second);
        }
        assert_eq!(gradient.current(), 200);
    }

    #[test]
    fn learns_nothing_where_it_is_not_needed() {
        let mut gradient = Gradient2::new(&range(1, 200, 20));
        let idle = Sample { in_use: false, ..sample(10, Outcome::Success) };
        for second in 0..100 {
            gradient.on_sample(Timestamp::from_millis(second * 100), idle);
        }
        assert_eq!(gradient.current(), 20);
    }
}
