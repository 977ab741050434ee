//! What became of one try, as the generator writes it down. What it means is asked in [`measure`](super::super::measure).

use std::time::Duration;

/// One try of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When it was to be sent, from the beginning of the load.
    pub(crate) planned: Duration,
    /// How much later than that it was sent: the generator's own fault.
    pub(crate) lag: Duration,
    /// From when it was planned to its end. So a generator that is late makes latencies worse, never better.
    pub(crate) took: Duration,
    /// How it ended.
    pub(crate) ending: Ending,
    /// 0 for the first try, 1 for the first repetition.
    pub(crate) repetition: u32,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// 200, in time.
    Good,
    /// 503 or 429: told that there is no room.
    Refused,
    /// The client gave up waiting, and closed the connection.
    GaveUp,
    /// Any other answer, or a connection that failed.
    Failed,
    /// There was no connection left to send it on: the generator's own fault.
    Unsent,
}

impl Sample {
    /// When it ended, from the beginning of the load.
    pub(crate) fn ended(&self) -> Duration {
        self.planned + self.took
    }
}
