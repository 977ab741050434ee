//! The one place in this crate that reads a wall clock, for the log. Decisions use the gate's monotonic clock.

use jiff::Timestamp;

/// The time of day, as it is written into the log.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn wall() -> Timestamp {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// How many nanoseconds after 1970 a clock of ours began that shows this now.
#[cfg(feature = "otlp")]
pub(crate) fn offset(now: tidegate_engine::Timestamp) -> u64 {
    let nanos = u64::try_from(wall().as_nanosecond()).unwrap_or(0);
    nanos.saturating_sub(now.as_nanos())
}
