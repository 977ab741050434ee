//! What happens at a layer, one call for each thing that happens: for metrics and logs, in whatever library the service
//! has. How a gate stands at one moment is [`Gate::snapshot`](crate::Gate::snapshot)'s.

use std::time::Duration;

use tidegate_engine::{Outcome, Priority, Reason, RouteId};

/// Something that has happened to a request at a layer with a gate.
///
/// Each request that is not exempt has exactly one [`Admitted`](Self::Admitted) or [`Refused`](Self::Refused), and each
/// that was admitted has one [`Ended`](Self::Ended) later on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateEvent {
    /// It has a slot.
    Admitted {
        /// Where it goes.
        route: RouteId,
        /// Its class.
        priority: Priority,
        /// How long it was in the queue; zero if it did not have to wait.
        waited: Duration,
    },
    /// It has none. [`Reason::ClientLeft`] if it left the queue by itself.
    Refused {
        /// Where it would have gone.
        route: RouteId,
        /// Its class.
        priority: Priority,
        /// Why.
        reason: Reason,
        /// How long it was in the queue.
        waited: Duration,
    },
    /// Its slot is free again.
    Ended {
        /// Where it went.
        route: RouteId,
        /// Its class.
        priority: Priority,
        /// How it went; [`Outcome::Ignore`] if its client left before it had the whole answer.
        outcome: Outcome,
        /// From the slot taken to the slot free.
        took: Duration,
    },
}
