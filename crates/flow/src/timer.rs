//! A timer that a waiting future carries. Nothing runs in the background: whichever future waits brings its own.

#[cfg(not(tidegate_loom))]
use std::future::Future;
use std::task::Context;

use tidegate_engine::Timestamp;

use crate::clock::Clock;

/// Set when it is first polled, so that a future that never waits costs no timer.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    #[cfg(not(tidegate_loom))]
    sleep: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

impl Timer {
    /// Whether `until` has come; if not, the task is woken then.
    #[cfg(not(tidegate_loom))]
    pub(crate) fn is_up(&mut self, clock: Clock, until: Timestamp, cx: &mut Context<'_>) -> bool {
        let sleep =
            self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(clock.instant(until))));
        sleep.as_mut().poll(cx).is_ready()
    }

    /// Under loom there is no time.
    #[cfg(tidegate_loom)]
    pub(crate) fn is_up(&mut self, _: Clock, _: Timestamp, _: &mut Context<'_>) -> bool {
        false
    }
}
