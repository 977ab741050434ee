//! The generic cell rate algorithm: a token bucket in one number.
//!
//! Instead of counting tokens, it keeps the *theoretical arrival time* (TAT): when the next request would come if all
//! came at exactly the allowed rate. A request of cost n moves it by n emission intervals, and is allowed if it does
//! not get further ahead of the clock than a whole burst (ITU-T I.371, appendix on the virtual scheduling algorithm).
//! A TAT in the past is a full bucket, so a key that was silent long enough carries no information at all.
//!
//! Times here are ticks: nanoseconds, or a power-of-two part of one for fast rates, so that rounding the emission
//! interval costs less than a thousandth of the rate. It is rounded up: the rate is never exceeded.

use core::time::Duration;

use crate::rate::Quota;
use crate::time::nanos;

/// With at least so many ticks to an interval, rounding it up costs less than a thousandth.
const TICKS_MIN: u64 = 1024;
const SHIFT_MAX: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gcra {
    /// Ticks are nanoseconds shifted left by this.
    pub(super) shift: u32,
    /// The emission interval, in ticks.
    pub(super) interval: u64,
    /// A whole burst, in ticks: how far the TAT may be ahead.
    pub(super) span: u64,
}

/// What the algorithm says of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Allowed; the TAT to store.
    Conforms(u64),
    /// Not before so many ticks have passed.
    Wait(u64),
}

impl Gcra {
    pub(super) fn new(quota: &Quota) -> Self {
        let (period, count) = (u128::from(nanos(quota.period())), u128::from(quota.count().get()));
        let mut shift = 0;
        while shift < SHIFT_MAX && (period << shift) / count < u128::from(TICKS_MIN) {
            shift += 1;
        }
        // The quota bounds the period to 2^55 ns and burst · period / count to 2^62 ns; only slow rates, which are
        // not shifted, come near.
        let interval = (period << shift).div_ceil(count);
        let span = interval * u128::from(quota.burst().get());
        Self { shift, interval: saturate(interval), span: saturate(span) }
    }

    /// Whether a request of `cost` conforms at `now`, for a key with this TAT.
    pub(super) fn check(&self, now: u64, tat: u64, cost: u32) -> Verdict {
        let next = tat.max(now).saturating_add(self.interval.saturating_mul(cost.into()));
        match next.saturating_sub(now).checked_sub(self.span) {
            None | Some(0) => Verdict::Conforms(next),
            Some(excess) => Verdict::Wait(excess),
        }
    }

    /// How many requests of cost 1 conform at `now`, one after the other, for a key with this TAT.
    pub(super) fn left(&self, now: u64, tat: u64) -> u32 {
        let free = self.span.saturating_sub(tat.saturating_sub(now));
        u32::try_from(free / self.interval.max(1)).unwrap_or(u32::MAX)
    }

    /// The time that so many ticks are, rounded up: a wait must never end a tick too early.
    pub(super) const fn duration(&self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.div_ceil(1 << self.shift))
    }

    /// A TAT of `old` carried over to this quota: what was used stays used, up to a whole burst.
    pub(super) fn carry_over(&self, old: &Self, old_now: u64, tat: u64, now: u64) -> u64 {
        let used =
            u128::from(tat.saturating_sub(old_now)) * u128::from(self.interval) / u128::from(old.interval);
        now.saturating_add(saturate(used).min(self.span))
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;

    fn gcra(count: u32, period: Duration, burst: u32) -> Gcra {
        let number = |n| NonZeroU32::new(n).unwrap();
        Gcra::new(&Quota::new(number(count), period, number(burst)).unwrap())
    }

    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_burst_and_then_the_rate() {
        let gcra = gcra(10, SECOND, 3);
        let mut tat = 0;
        for _ in 0..3 {
            let Verdict::Conforms(next) = gcra.check(0, tat, 1) else { panic!("within the burst") };
            tat = next;
        }
        assert_eq!(gcra.check(0, tat, 1), Verdict::Wait(100_000_000));
        assert_eq!(gcra.check(99_999_999, tat, 1), Verdict::Wait(1));
        assert!(matches!(gcra.check(100_000_000, tat, 1), Verdict::Conforms(_)));
    }

    /// B4 (governor#203, envoy#16407). From one a day to one a nanosecond, rounding costs less than a thousandth and never
    /// exceeds the rate.
    #[test]
    fn every_rate_is_kept_within_a_thousandth() {
        for (count, period) in
            [(1, DAY), (7, DAY), (700, DAY), (1, SECOND), (700, SECOND), (3_000, SECOND), (60_001, SECOND)]
                .into_iter()
                .chain(
                    [999_983, 7_000_001, 300_000_007, 700_000_000, 999_999_937, 1_000_000_000]
                        .map(|n| (n, SECOND)),
                )
        {
            let gcra = gcra(count, period, 1);
            let exact = period.as_nanos() as f64 / f64::from(count);
            let kept = gcra.interval as f64 / f64::from(1u32 << gcra.shift);
            assert!(kept >= exact * (1.0 - 1e-12), "{count} per {period:?} would be exceeded");
            assert!(kept <= exact * 1.001, "{count} per {period:?}: {kept} instead of {exact} ns");
        }
    }

    #[test]
    fn impossible_quotas_cannot_be_built() {
        use crate::rate::QuotaError::{Burst, Period, Rate};
        let quota = |count, period, burst| {
            Quota::new(NonZeroU32::new(count).unwrap(), period, NonZeroU32::new(burst).unwrap()).map(|_| ())
        };
        assert_eq!(quota(1, Duration::ZERO, 1), Err(Period));
        assert_eq!(quota(1, Duration::MAX, 1), Err(Period));
        assert_eq!(quota(1_000_000_001, SECOND, 1), Err(Rate));
        assert_eq!(quota(1, DAY, u32::MAX), Err(Burst));
        assert_eq!(quota(1, SECOND, u32::MAX), Err(Burst));
        assert_eq!(quota(2, SECOND, u32::MAX), Ok(()));
        assert_eq!(quota(1_000_000_000, SECOND, u32::MAX), Ok(()));
    }
}
