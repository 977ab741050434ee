//! The estimate of the knee, and what a pair of phases tells about it.
//!
//! A pair is noisy: thirty outcomes have a spread of a sixth. So the estimate moves by a part of what the pair says,
//! the larger the more outcomes there were (a Kalman filter with a fixed prior), on a logarithmic scale, where too high
//! and too low by the same factor are equally far.

use super::LOW;
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
/// And no shorter than by all that the low phase has less, or something has broken meanwhile.
const RATIO_MIN: f64 = LOW;
/// A response time of more than this share of the deadline may be queueing, even if the low phase hardly shows it: that of
/// several gateways before one service, where each yields a part of what it has and the others do not. Then what it shows
/// counts more, and growth less. But it may also be as long as answers take there, so what counts more is the mean of ...
pub(super) const DEADLINE_SHARE: f64 = 0.25;
/// ... about so many pairs: what is made more of must not be the noise of one.
const PAIRS: f64 = 4.0;
/// If more than this share gives up in the high phase, the limit is too high, whatever else was measured ...
pub(super) const GAVE_UP_MAX: f64 = 0.2;
/// ... and is lowered to this share.
const CUT: f64 = 0.8;
/// Fewer answers in a phase are none.
const RESPONSES_MIN: f64 = 4.0;
/// Below this a limit of one is meant, and from one nothing can be learned.
const ESTIMATE_MIN: f64 = 1.5;

#[derive(Debug)]
pub(super) struct Estimate {
    value: f64,
    /// How much faster low phases have been lately, as a logarithm, since answers take more than their share of the deadline;
    /// negative if they have.
    faster: f64,
    range: Range,
    without: Option<EbbPart>,
}

impl Estimate {
    pub(super) fn new(policy: &EbbPolicy) -> Self {
        let mut estimate = Self {
            value: f64::from(policy.initial.get()),
            faster: 0.0,
            range: range(policy),
            without: policy.without,
        };
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

    /// Learns from a pair of phases. Says whether it agreed with what was thought before. The deadline is in seconds.
    pub(super) fn learn(&mut self, high: &Sums, low: &Sums, deadline: f64) -> bool {
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
        let innovation = self.innovation(high, low, deadline);
        let variance = 1.0 / high.responses + 1.0 / low.responses;
        self.set(self.value * libm::exp(PRIOR / (PRIOR + variance) * innovation));
        innovation.abs() <= AGREES
    }

    /// What a pair says, as the logarithm of the knee (times the bias) over the estimate.
    fn innovation(&mut self, high: &Sums, low: &Sums, deadline: f64) -> f64 {
        // One: nothing queues. So says what is no number.
        let ratio = low.response_time() / high.response_time().max(1e-9);
        let ratio = if ratio.is_nan() { 1.0 } else { ratio.min(RATIO_MAX) };
        let queueing = high.response_time() / (DEADLINE_SHARE * deadline).max(1e-9);
        let (growth, faster) = if queueing > 1.0 && self.has(EbbPart::DeadlineShare) {
            self.faster += (libm::log(ratio.max(RATIO_MIN)) - self.faster) / PAIRS;
            let told = self.faster.min(0.0) * queueing * queueing;
            (libm::log(BIAS) / queueing, libm::log(ratio).min(told))
        } else {
            self.faster = 0.0;
            (libm::log(BIAS), libm::log(ratio))
        };
        let most = if self.has(EbbPart::StepMax) { STEP_MAX } else { f64::INFINITY };
        (libm::log(high.in_flight() / self.value) + growth + faster).clamp(-most, most)
    }

    /// The first pair is next. What was found is kept, but not what the last ones said together.
    pub(super) fn begin(&mut self) {
        self.faster = 0.0;
    }

    /// More than `self.value()`, up to twice as much, was in flight: the estimate is at least what it was, and follows as
    /// far as it paid. See [`Doubled`](super::room::Doubled).
    pub(super) fn rise(&mut self, in_flight: f64, ratio: f64) {
        self.set((BIAS * in_flight * ratio).min(in_flight).max(self.value));
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
        assert!(there.learn(&high, &low, LARGE));
        near(there.value(), 14.0);
    }

    #[test]
    fn where_nothing_queues_it_grows() {
        // Thirty answers each: a gain of .545.
        let (high, low) = (phase(1.0, 30.0, 30.0), phase(1.5, 20.0, 20.0));
        let mut limit = estimate(30.0);
        near(limit.innovation(&high, &low, LARGE), 0.336);
        assert!(!limit.learn(&high, &low, LARGE));
        near(limit.value() / 30.0, 1.201);
    }

    #[test]
    fn where_both_queue_it_falls_and_faster_near_the_deadline() {
        let (high, low) = (phase(1.0, 20.0, 500.0), phase(1.0, 13.0, 500.0));
        near(estimate(20.0).innovation(&high, &low, LARGE), -0.094);
        // A response time of 160 ms is 1.6 times a quarter of 400 ms.
        let (high, low) = (phase(1.0, 20.0, 125.0), phase(1.0, 13.0, 125.0));
        let mut limit = estimate(20.0);
        near(limit.innovation(&high, &low, 0.4), 0.336 / 1.6 - 0.431);
        (0..20).for_each(|_| _ = limit.innovation(&high, &low, 0.4));
        near(limit.innovation(&high, &low, 0.4), -STEP_MAX);
    }

    /// Half of the deadline is what answers take there: low phases are now faster, now slower, and on the whole neither.
    #[test]
    fn near_the_deadline_noise_does_not_lower_it() {
        let high = phase(1.0, 20.0, 100.0);
        let mut limit = estimate(20.0);
        // In runs, as noise comes.
        let runs = [false, false, false, true, true, false, true, true, true, false];
        for faster in runs.repeat(10) {
            let low = phase(1.0, 13.0, if faster { 80.0 } else { 53.0 });
            limit.learn(&high, &low, 0.4);
        }
        assert!(limit.value() > 18.0, "{}", limit.value());
    }

    /// A pair into which a standstill fell says no more than that all of it queued, and is forgotten by and by.
    #[test]
    fn one_broken_pair_does_not_empty_it() {
        let mut limit = estimate(20.0);
        limit.learn(&phase(1.0, 20.0, 80.0), &phase(1.0, 13.0, 5_000.0), 0.4);
        assert_eq!(limit.value(), 20.0, "that is a change");
        limit.learn(&phase(1.0, 20.0, 60.0), &phase(1.0, 2.0, 60.0), 0.4);
        let (high, low) = (phase(1.0, 20.0, 100.0), phase(1.0, 13.0, 65.0));
        (0..20).for_each(|_| _ = limit.learn(&high, &low, 0.4));
        assert!(limit.value() > 10.0, "{}", limit.value());
    }

    /// Four gateways before one service. When one yields a third, less than a tenth less is in it.
    #[test]
    fn near_the_deadline_a_little_faster_is_enough_to_lower_it() {
        let mut limit = estimate(20.0);
        let (high, low) = (phase(1.0, 20.0, 80.0), phase(1.0, 13.0, 57.0));
        for _ in 0..20 {
            limit.learn(&high, &low, 0.4);
        }
        assert!(limit.value() < 20.0, "{}", limit.value());
        let mut far_from_it = estimate(20.0);
        (0..20).for_each(|_| _ = far_from_it.learn(&high, &low, LARGE));
        assert!(far_from_it.value() > 20.0, "{}", far_from_it.value());
    }

    #[test]
    fn an_upstream_that_changed_in_between_teaches_nothing() {
        let mut limit = estimate(20.0);
        assert!(!limit.learn(&phase(1.0, 20.0, 100.0), &phase(1.0, 13.0, 140.0), LARGE));
        assert_eq!(limit.value(), 20.0);
    }

    #[test]
    fn clients_that_give_up_lower_it_and_never_below_its_floor() {
        let high = Sums::of(1.0, 20.0, 75.0, 25.0);
        let mut limit = estimate(20.0);
        assert!(!limit.learn(&high, &phase(1.0, 13.0, 75.0), LARGE));
        near(limit.value(), 16.0);
        for _ in 0..100 {
            limit.learn(&high, &phase(1.0, 13.0, 75.0), LARGE);
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
                let high = Sums::of(first, second, 100.0, 0.0);
                let low = Sums::of(second, first, 100.0, 0.0);
                numbers.iter().for_each(|deadline| _ = limit.learn(&high, &low, *deadline));
                assert!(
                    (ESTIMATE_MIN..=4000.0).contains(&limit.value()),
                    "{first} {second}: {}",
                    limit.value()
                );
            }
        }
    }
}
