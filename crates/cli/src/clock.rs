//! The one place in this crate that reads a clock: for what the demo measures.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
