//! The one place that asks what time it is.

use std::time::SystemTime;

use tidegate_engine::Timestamp;
use tokio::time::Instant;

/// Turns the monotonic clock into the engine's timestamps. Copies share an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
impl Clock {
    /// A clock whose epoch is now.
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    /// The time now. Never goes back.
    pub(crate) fn now(self) -> Timestamp {
        self.timestamp(Instant::now())
    }
}

impl Clock {
    /// The timestamp of an instant; those before the epoch are the epoch.
    pub(crate) fn timestamp(self, instant: Instant) -> Timestamp {
        Timestamp::ZERO.after(instant.saturating_duration_since(self.epoch))
    }

    /// The instant that a timestamp of this clock stands for; far ones are clamped to thirty years from the epoch.
    pub(crate) fn instant(self, at: Timestamp) -> Instant {
        const FAR: Timestamp = Timestamp::from_millis(30 * 365 * 86_400_000);
        self.epoch + at.min(FAR).since(Timestamp::ZERO)
    }
}

/// The instant now, for deadlines that are made before anybody has a [`Clock`].
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The time of day, for answers that name one and do not say what time it is where they come from.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
