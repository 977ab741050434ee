//! The one place that asks what time it is.

use tidegate_engine::Timestamp;
use tokio::time::Instant;

/// Turns the monotonic clock into timestamps. Copies share an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
impl Clock {
    /// A clock whose epoch is now.
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    /// The time now. Never goes back.
    pub fn now(&self) -> Timestamp {
        Timestamp::ZERO.after(Instant::now().duration_since(self.epoch))
    }

    /// The instant that a timestamp of this clock stands for; far ones are clamped to thirty years from the epoch.
    #[cfg(not(tidegate_loom))]
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        const FAR: Timestamp = Timestamp::from_millis(30 * 365 * 86_400_000);
        self.epoch + at.min(FAR).since(Timestamp::ZERO)
    }
}
