//! What came of an attempt, in the words of tidegate's own client, for the clients of a scenario that have it.
//!
//! It reads a status as `tidegate-client` does. What is done about it is the engine's to decide.

use std::time::Duration;

use tidegate_engine::{Advice, Reply, Timestamp};
use tidegate_workload::WireError;

/// An answer that is of use.
pub(crate) const SUCCESS: (Reply, Advice) = (Reply::Success, Advice::Unsaid);

/// The moment so long after the beginning.
pub(crate) const fn moment(at: Duration) -> Timestamp {
    Timestamp::ZERO.after(at)
}

pub(crate) const fn reply(status: u16) -> Reply {
    match status {
        429 => Reply::Refused,
        502 | 503 => Reply::Unavailable,
        504 => Reply::TimedOut,
        500..=599 => Reply::Failed,
        _ => Reply::Success,
    }
}

pub(crate) const fn reply_to(error: WireError) -> Reply {
    match error {
        WireError::Connect | WireError::Exhausted => Reply::NoConnection,
        WireError::Closed | WireError::Malformed => Reply::Broken,
        WireError::Timeout => Reply::TimedOut,
    }
}
