//! How it stands: plain data for metrics and pages. Not serializable here; wire formats belong to the shell.

use core::time::Duration;

use crate::breaker::BreakerState;
use crate::decision::Reason;
use crate::policy::PRIORITIES_MAX;

/// How an [`Admission`](crate::Admission) stands at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// How much may be in flight.
    pub limit: u32,
    /// Slots taken, orphans included.
    pub in_flight: u32,
    /// The most slots ever taken at once.
    pub max_in_flight: u32,
    /// Slots whose client has had its answer while the work goes on.
    pub orphans: u32,
    /// How many wait.
    pub queue_depth: u32,
    /// The most that ever waited at once.
    pub max_queue_depth: u32,
    /// How many may wait; a derived capacity as it is now.
    pub queue_capacity: u32,
    /// How many of each class wait, the most important first.
    pub waiting_by_priority: [u32; PRIORITIES_MAX],
    /// How many slots each class takes.
    pub in_flight_by_priority: [u32; PRIORITIES_MAX],
    /// Retries that could be let in now; `None` where the policy does nothing about them.
    pub retries_left: Option<u32>,
    /// How the breaker stands; `None` where there is none.
    pub breaker: Option<BreakerState>,
    /// How long a slot stays taken, smoothed; `None` until the first is free again.
    pub service_time: Option<Duration>,
    /// What has happened so far.
    pub counts: Counts,
}

/// Counters, since the admission was made.
///
/// `arrived = admitted + rejected + cancelled + waiting`, where a request that was granted after waiting counts as
/// admitted and one refused after waiting as rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests seen.
    pub arrived: u64,
    /// Requests that got a slot.
    pub admitted: u64,
    /// Slots given back.
    pub completed: u64,
    /// Slots abandoned: the client was answered while the work may go on.
    pub abandoned: u64,
    /// Requests that left the queue by themselves.
    pub cancelled: u64,
    pub(crate) rejected: [u64; Reason::ALL.len()],
}

impl Counts {
    /// Requests refused for this reason.
    pub const fn rejected(&self, reason: Reason) -> u64 {
        self.rejected[reason as usize]
    }

    /// Requests refused, for whatever reason.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().sum()
    }
}
