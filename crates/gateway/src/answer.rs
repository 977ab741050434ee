//! Why a request does not get its upstream's answer. What it gets instead, for reasons of the engine, is the table of
//! [`tidegate_tower::answer`].

use tidegate_engine::{Reason, Rejection};

use crate::route::BadRequest;

/// Why a request does not get its upstream's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// For a reason of the table.
    Rejected(Rejection),
    /// No route matches.
    NotFound,
    /// The request is not one that we can pass on.
    Bad(BadRequest),
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::Rejected(Rejection { reason, retry_after: std::time::Duration::ZERO })
    }
}

impl From<BadRequest> for Refusal {
    fn from(bad: BadRequest) -> Self {
        Self::Bad(bad)
    }
}
