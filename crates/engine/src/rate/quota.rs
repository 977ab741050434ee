//! How often: so many per period, and how many of them at once.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::time::nanos;

/// A rate and a burst. An impossible quota cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    count: NonZeroU32,
    period: Duration,
    burst: NonZeroU32,
}

/// Why a quota cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaError {
    /// The period is zero, or longer than [`Quota::PERIOD_MAX`].
    Period,
    /// More than one per nanosecond: [`Quota::RATE_MAX`].
    Rate,
    /// The bucket would take longer than [`Quota::FILL_MAX`] to fill.
    Burst,
}

impl Quota {
    /// The longest period: 366 days.
    pub const PERIOD_MAX: Duration = Duration::from_secs(366 * 86_400);
    /// The highest rate, per second.
    pub const RATE_MAX: u32 = 1_000_000_000;
    /// The longest time that an empty bucket may take to fill: a hundred years. Whoever asks for more has mistaken a
    /// unit, and the arithmetic would run out of bits.
    pub const FILL_MAX: Duration = Duration::from_secs(36_600 * 86_400);

    /// `count` per `period`, of which `burst` may come at once.
    pub const fn new(count: NonZeroU32, period: Duration, burst: NonZeroU32) -> Result<Self, QuotaError> {
        let period_nanos = nanos(period);
        if period_nanos == 0 || period_nanos > nanos(Self::PERIOD_MAX) {
            return Err(QuotaError::Period);
        }
        if count.get() as u64 > period_nanos {
            return Err(QuotaError::Rate);
        }
        if burst.get() as u128 * period_nanos as u128 / count.get() as u128 > nanos(Self::FILL_MAX) as u128 {
            return Err(QuotaError::Burst);
        }
        Ok(Self { count, period, burst })
    }

    /// How many may come in a [`period`](Self::period).
    pub const fn count(&self) -> NonZeroU32 {
        self.count
    }

    /// The period that [`count`](Self::count) is counted over.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// How many may come at once.
    pub const fn burst(&self) -> NonZeroU32 {
        self.burst
    }
}
