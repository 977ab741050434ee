//! Time, for tests: bounded waits for events, and a stopwatch for the few rows that are about time.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard};

/// How long anything may take before the test gives up. Far longer than it does take, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must come.
pub(crate) async fn patiently<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, event).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}

/// Looks again and again until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    patiently(what, async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await
}

#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the one clock of these tests")]
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::start().0.duration_since(self.0)
    }
}

/// Tests that measure the machine's time, or use much of it, take turns.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}
