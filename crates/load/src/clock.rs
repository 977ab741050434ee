//! The one place in this crate that reads clocks: a monotonic one for what is measured, and that on the wall for dates in
//! `Retry-After`.

use std::time::{Duration, Instant, SystemTime};

/// Time from the beginning of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// It begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago it began.
    pub(crate) fn elapsed(self) -> Duration {
        Self::start().0.saturating_duration_since(self.0)
    }
}

/// How long it is from now until this date; zero if it is over.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn until(date: SystemTime) -> Duration {
    date.duration_since(SystemTime::now()).unwrap_or_default()
}
