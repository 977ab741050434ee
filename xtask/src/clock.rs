//! The only place of the tooling that reads a clock or waits.
//!
//! It times steps and benchmarks; nothing here decides anything about a request.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The time now, for measuring how long something took.
#[expect(clippy::disallowed_methods, reason = "the clock module: everything else asks here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Block the calling thread. The tooling has no runtime whose thread this could stall.
#[expect(clippy::disallowed_methods, reason = "the clock module: no runtime runs in the tooling")]
pub(crate) fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Ask `ready` again and again until it answers `Some`, for at most `limit`; `what` names it in the error.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = now() + limit;
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if now() >= end {
            bail!("waited {} s in vain for {what}", limit.as_secs());
        }
        sleep(Duration::from_millis(20));
    }
}
