//! The estimate of the knee, and what a pair of phases tells about it.
//!
//! A pair is noisy: thirty outcomes have a spread of a sixth. So the estimate moves by a part of what the pair says,
//! the larger the more outcomes there were (a Kalman filter with a fixed prior), on a logarithmic scale, where too high
//! and too low by the same factor are equally far.

use super::sums::Sums;
use crate::limit::Range;
use crate::policy::{EbbPart, EbbPolicy};

/// The high phase lies so far above the knee. Too low costs goodput, too high only delay; nearer than this the two are
/// hard to tell apart.
pub(super) const BIAS: f64 = 1.4;
/// How far the estimate is off before a pair is heard, as the variance of its logarithm.
const PRIOR: f64 = 0.08;
/// The largest step of one pair, as a logarithm: a pair that a standstill fell into must not empty the limit.
const STEP_MAX: f64 = 0.5;
/// A pair that says less than this has agreed with the estimate.
const AGREES: f64 = 0.15;
/// With less in flight there cannot be more throughput. If there is so much more, the upstream has changed between the two.
pub(super) const CHANGED: f64 = 1.3;
/// The lower response time cannot really be the higher one by more than noise.
const RATIO_MAX: f64 = 1.2;
/// A response time of more than this share of the deadline is queueing, whatever it was like in the low phase.
pub(super) const DEADLINE_SHARE: f64 = 0.25;
/// If more than this share gives up in the high phase, the limit is too high, whatever else was measured ...
const GAVE_UP_MAX: f64 = 0.2;
/// ... and is lowered to this share.
const CUT: f64 = 0.8;
/// If more than this share gives up, what counts as deadline is how long they really waited.
pub(super) const IMPATIENT: f64 = 0.05;
/// Fewer answers in a phase are none.
const RESPONSES_MIN: f64 = 4.0;
/// Below this a limit of one is meant, and from one nothing can be learned.
const ESTIMATE_MIN: f64 = 1.5;

#[derive(Debug)]
pub(super) struct Estimate {
    value: f64,
    range: Range,
    without: Option<EbbPart>,
}

impl Estimate {
    pub(super) fn new(policy: &EbbPolicy) -> Self {
        let mut estimate =
            Self { value: f64::from(policy.initial.get()), range: range(policy), without: policy.without };
        estimate.reconfigure(policy);
        estimate
    }

    pub(super) fn reconfigure(&mut self, policy: &EbbPolicy) {
        self.range = range(policy);
        self.without = policy.without;
        self.set(self.value);
    }

    pub(super) const fn value(&self) -> f64 {
        self.value
    }

    /// Learns from a pair of phases. Says whether it agreed with what was thought before. Times are in seconds; the
    /// patience is zero as long as nobody has given up.
    pub(super) fn learn(&mut self, high: &Sums, low: &Sums, deadline: f64, patience: f64) -> bool {
        if (self.has(EbbPart::GivingUp) && high.gave_up_share() > GAVE_UP_MAX)
            || high.responses < RESPONSES_MIN
            || low.responses < RESPONSES_MIN
        {
            self.set(self.value * CUT);
            return false;
        }
        if self.has(EbbPart::Changed) && low.throughput() > CHANGED * high.throughput() {
            return false;
        }
        let impatient = high.gave_up_share() > IMPATIENT && patience > 0.0;
        let deadline = if impatient { deadline.min(patience) } else { deadline };
        let innovation = self.innovation(high, low, deadline);
        let variance = 1.0 / high.responses + 1.0 / low.responses;
        self.set(self.value * libm::exp(PRIOR / (PRIOR + variance) * innovation));
        innovation.abs() <= AGREES
    }

    /// What a pair says, as the logarithm of the knee (times the bias) over the estimate.
    fn innovation(&self, high: &Sums, low: &Sums, deadline: f64) -> f64 {
        // One: nothing queues.
        let mut ratio = (low.response_time() / high.response_time().max(1e-9)).min(RATIO_MAX);
        let queueing = (high.response_time() / (DEADLINE_SHARE * deadline).max(1e-9)).max(1.0);
        if ratio < 1.0 && self.has(EbbPart::DeadlineShare) {
            ratio = libm::pow(ratio, queueing * queueing);
        }
        let most = if self.has(EbbPart::StepMax) { STEP_MAX } else { f64::INFINITY };
        libm::log(BIAS * high.in_flight() * ratio / self.value).clamp(-most, most)
    }

    /// Twice as much as `self.value()`, or nearly, was in flight: the estimate is at least what it was, and follows as
    /// far as it paid. See [`Doubled`](super::room::Doubled).
    pub(super) fn rise(&mut self, doubled: f64, ratio: f64) {
        self.set((BIAS * doubled * ratio).min(doubled).max(self.value));
    }

    fn has(&self, part: EbbPart) -> bool {
        self.without != Some(part)
    }

    fn set(&mut self, value: f64) {
        self.value = self.range.clamp(value);
    }
}

fn range(policy: &EbbPolicy) -> Range {
    let most = f64::from(policy.max.get()).max(ESTIMATE_MIN);
    Range { least: f64::from(policy.min.get()).max(ESTIMATE_MIN).min(most), most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;
    use core::time::Duration;

    const LARGE: f64 = 1e9;

    fn estimate(value: f64) -> Estimate {
        let number = |n| NonZeroU32::new(n).unwrap();
        let policy = EbbPolicy {
            min: number(1),
            max: number(4000),
            initial: number(24),
            deadline: Duration::from_secs(1),
            without: None,
        };
        Estimate { value, ..Estimate::new(&policy) }
    }

    /// A phase of so many seconds with so many in flight and so many answers a second.
    fn phase(seconds: f64, in_flight: f64, throughput: f64) -> Sums {
        Sums::of(seconds, in_flight, seconds * throughput, 0.0)
    }

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() < 5e-3, "{is} and not {should}");
    }

    #[test]
    fn at_the_knee_nothing_moves() {
        let (high, low) = (phase(1.0, 14.0, 500.0), phase(1.0, 9.0, 450.0));
        near(estimate(14.0).innovation(&high, &low, LARGE), 0.0);
        let mut there = estimate(14.0);
        assert!(there.learn(&high, &low, LARGE, 0.0));
        near(there.value(), 14.0);
    }

    #[test]
    fn where_nothing_queues_it_grows() {
        // Thirty answers each: a gain of .545.
        let (high, low) = (phase(1.0, 30.0, 30.0), phase(1.5, 20.0, 20.0));
        let mut limit = estimate(30.0);
        near(limit.innovation(&high, &low, LARGE), 0.336);
        assert!(!limit.learn(&high, &low, LARGE, 0.0));
        near(limit.value() / 30.0, 1.201);
    }

    #[test]
    fn where_both_queue_it_falls_and_faster_near_the_deadline() {
        let (high, low) = (phase(1.0, 20.0, 500.0), phase(1.0, 13.0, 500.0));
        near(estimate(20.0).innovation(&high, &low, LARGE), -0.094);
        // A response time of 160 ms is 1.6 times a quarter of 400 ms.
        let (high, low) = (phase(1.0, 20.0, 125.0), phase(1.0, 13.0, 125.0));
        near(estimate(20.0).innovation(&high, &low, 0.4), -0.5);
    }

    #[test]
    fn an_upstream_that_changed_in_between_teaches_nothing() {
        let mut limit = estimate(20.0);
        assert!(!limit.learn(&phase(1.0, 20.0, 100.0), &phase(1.0, 13.0, 140.0), LARGE, 0.0));
        assert_eq!(limit.value(), 20.0);
    }

    #[test]
    fn clients_that_give_up_lower_it_and_never_below_its_floor() {
        let high = Sums::of(1.0, 20.0, 75.0, 25.0);
        let mut limit = estimate(20.0);
        assert!(!limit.learn(&high, &phase(1.0, 13.0, 75.0), LARGE, 0.4));
        near(limit.value(), 16.0);
        for _ in 0..100 {
            limit.learn(&high, &phase(1.0, 13.0, 75.0), LARGE, 0.4);
        }
        assert_eq!(limit.value(), ESTIMATE_MIN);
    }

    #[test]
    fn it_rises_as_far_as_it_paid_and_never_falls_by_it() {
        let mut limit = estimate(20.0);
        limit.rise(40.0, 0.6);
        near(limit.value(), 33.6);
        limit.rise(60.0, 1.0);
        near(limit.value(), 60.0);
        limit.rise(30.0, 0.5);
        near(limit.value(), 60.0);
        limit.rise(f64::NAN, f64::NAN);
        near(limit.value(), 60.0);
    }

    #[test]
    fn nothing_that_is_measured_can_break_it() {
        let numbers = [0.0, 1e-300, 1.0, 1e300, f64::INFINITY, f64::NAN];
        for first in numbers {
            for second in numbers {
                let mut limit = estimate(20.0);
                limit.learn(
                    &Sums::of(first, second, 100.0, 0.0),
                    &Sums::of(second, first, 100.0, 0.0),
                    first,
                    second,
                );
                assert!(
                    (ESTIMATE_MIN..=4000.0).contains(&limit.value()),
                    "{first} {second}: {}",
                    limit.value()
                );
            }
        }
    }
}
