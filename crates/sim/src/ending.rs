//! How an exchange with a service ended, as far as the gateway before it sees that. What the engine is told of it is said
//! here; the models of other products are told the ending itself, since they make other differences.

use tidegate_engine::Outcome;

/// How an exchange ended for whoever waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the answer.
    Answered,
    /// The service had no room, or one that it asks was overloaded.
    Broken,
    /// The service has an error, which says nothing about its load.
    Failed,
    /// The gateway's own time for it was over.
    Overdue,
    /// Nobody waits any more.
    Left,
}

impl Ending {
    /// What the engine is told.
    pub(crate) const fn outcome(self) -> Outcome {
        match self {
            Self::Answered => Outcome::Success,
            Self::Broken | Self::Overdue => Outcome::Overload,
            Self::Failed => Outcome::Failure,
            Self::Left => Outcome::Ignore,
        }
    }
}
