//! The words of a breaker: what it is told, what it answers, how it stands. Types only.

use core::time::Duration;

use crate::decision::Outcome;

/// What a request has shown of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It answered. An answer that says "you send too much" (429) is one of these: whoever says so is well.
    Success,
    /// It timed out, or said itself that it has too much to do.
    Overload,
    /// It answered with an error, or broke off.
    Failure,
    /// There was no connection: nobody is there.
    NoConnection,
    /// Nothing: the client left, or the failure was of our own.
    Nothing,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Overload => Self::Overload,
            Outcome::Failure => Self::Failure,
            Outcome::Ignore => Self::Nothing,
        }
    }
}

/// How a breaker stands. `state as u8` is its number in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Everybody may pass.
    Closed,
    /// A few may pass, to see how it is now.
    HalfOpen,
    /// Nobody may pass.
    Open,
}

impl BreakerState {
    /// Its name in metrics and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// The right to ask once. It ends in [`Breaker::complete`](super::Breaker::complete); one that never does is given up after
/// a time, so losing it is a pity and no catastrophe. There is no way to copy it.
#[derive(Debug)]
#[must_use = "a pass without a verdict teaches the breaker nothing"]
pub struct Pass {
    pub(super) generation: u64,
    /// Its lease, if it is a probe.
    pub(super) probe: Option<u64>,
}

impl Pass {
    /// Whether it is let through to see how the other end is now.
    pub const fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

/// Nobody may pass now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When trying again makes sense: not before the breaker lets a probe through, and not for all at the same moment.
    pub retry_after: Duration,
}
