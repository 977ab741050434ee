//! The one place in this crate that reads a wall clock, for the log. Decisions use the gate's monotonic clock.

use jiff::Timestamp;

/// The time of day, as it is written into the log.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn wall() -> Timestamp {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}
