//! Time as the engine knows it: a number handed in by whoever drives it.
//!
//! This is not a clock. Nothing here can ask what time it is, so every decision can be replayed.

use core::fmt;
use core::time::Duration;

/// A moment, in nanoseconds since an epoch of the driver's choice; wraps nowhere, saturates everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, about 584 years after the epoch. Used where a moment is never reached.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This moment moved forward by `duration`, at most to [`Timestamp::MAX`].
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// How long ago `earlier` was, seen from here; zero when it lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A duration in nanoseconds, clamped to what 64 bits hold (584 years).
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    }
}
