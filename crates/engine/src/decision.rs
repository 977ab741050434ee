//! The vocabulary: what is asked of the engine, and what it answers. Types only.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::breaker::Pass;
use crate::linked::Key;
use crate::time::Timestamp;

/// A route, as the driver numbers them. The engine only compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// How important a request is: the index of its class in [`AdmissionPolicy::priorities`](crate::AdmissionPolicy),
/// so 0 is the most important. An index beyond the last class means the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

/// Whom to be fair to. The engine sees a number in the place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// A hash of its name by a key that nobody outside knows, or a tenant could choose a name that collides.
    pub id: u64,
    /// How much it may have beside others: a tenant of weight 2 twice as much as one of weight 1.
    pub weight: NonZeroU32,
}

impl Tenant {
    /// A tenant like any other.
    pub const fn new(id: u64) -> Self {
        Self { id, weight: NonZeroU32::MIN }
    }
}

/// Whether a request was tried before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Attempt {
    /// Nothing is said. If the caller is known to have been refused a moment ago, it ranks as another try.
    #[default]
    Unsaid,
    /// It says of itself that it was tried before. It ranks below first tries, and the retry budget pays for it.
    Retry,
}

/// All that the engine knows of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// Where it goes; matters for bulkheads.
    pub route: RouteId,
    /// Its class.
    pub priority: Priority,
    /// On whose behalf it comes; `None` where nobody is told from anybody.
    pub tenant: Option<Tenant>,
    /// How many slots it takes while it is worked on. More than the limit counts as the limit.
    pub cost: NonZeroU32,
    /// When its client gives up, if that is known.
    pub deadline: Option<Timestamp>,
    /// Whether it was tried before.
    pub attempt: Attempt,
    /// What tells this very request from others when it comes again: a hash of what identifies it.
    pub fingerprint: Option<u64>,
}

impl Arrival {
    /// A first try on `route`, of the most important class, whose client has all the time in the world.
    pub const fn new(route: RouteId) -> Self {
        Self {
            route,
            priority: Priority(0),
            tenant: None,
            cost: NonZeroU32::MIN,
            deadline: None,
            attempt: Attempt::Unsaid,
            fingerprint: None,
        }
    }

    /// The same request, of this class.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// The same request, on behalf of this tenant.
    #[must_use]
    pub const fn with_tenant(self, tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// The same request, which takes so many slots.
    #[must_use]
    pub const fn with_cost(self, cost: NonZeroU32) -> Self {
        Self { cost, ..self }
    }

    /// The same request, of no use to its client after `deadline`.
    #[must_use]
    pub const fn with_deadline(self, deadline: Timestamp) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The same request, first or tried before.
    #[must_use]
    pub const fn with_attempt(self, attempt: Attempt) -> Self {
        Self { attempt, ..self }
    }

    /// The same request, known by this hash when it comes again.
    #[must_use]
    pub const fn with_fingerprint(self, fingerprint: u64) -> Self {
        Self { fingerprint: Some(fingerprint), ..self }
    }
}

/// The answer to an arrival.
#[derive(Debug)]
#[must_use = "a permit that is dropped here occupies its slot for ever"]
pub enum Decision {
    /// Go ahead.
    Admit(Permit),
    /// Wait; an [`Event`] will name this ticket.
    Queue(Ticket),
    /// No.
    Reject(Rejection),
}

/// The right to occupy one slot. It ends in [`Admission::complete`](crate::Admission::complete), exactly once:
/// there is no way to copy it, and completing consumes it.
#[derive(Debug)]
#[must_use = "a permit that is not completed occupies its slot for ever"]
pub struct Permit {
    pub(crate) key: Key,
    pub(crate) since: Timestamp,
    /// When it came; earlier than `since` if it had to wait. `None` if its client has said how long it waits, and so need
    /// not be watched.
    pub(crate) arrived: Option<Timestamp>,
    /// The limit has already learned from this request.
    pub(crate) sampled: bool,
    pub(crate) orphan: bool,
    /// The breaker wants to hear how it went.
    pub(crate) pass: Option<Pass>,
}

impl Permit {
    /// When the slot was taken.
    pub const fn since(&self) -> Timestamp {
        self.since
    }
}

/// A place in the queue. It ends as granted or refused, which an [`Event`] tells, or by
/// [`Admission::cancel`](crate::Admission::cancel).
#[derive(Debug)]
pub struct Ticket {
    pub(crate) key: Key,
    pub(crate) until: Timestamp,
}

impl Ticket {
    /// What events call this ticket.
    pub const fn id(&self) -> TicketId {
        TicketId(self.key)
    }

    /// When the wait ends at the latest: by then the ticket is granted or refused.
    pub const fn until(&self) -> Timestamp {
        self.until
    }
}

/// The name of a [`Ticket`] in events. Never used twice at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TicketId(pub(crate) Key);

impl TicketId {
    /// A small number, below the highest number of tickets ever waiting at once, that no other waiting ticket has:
    /// an index for the driver's table of waiters.
    pub const fn index(self) -> usize {
        self.0.index()
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketId({})", self.index())
    }
}

/// A refusal. It is a value, not an error: refusing is what the engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why.
    pub reason: Reason,
    /// When trying again makes sense; zero where nothing is known.
    pub retry_after: Duration,
}

/// Why a request did not get its upstream's answer. One list for the engine, the answers, the log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The caller has used up its quota.
    RateLimited,
    /// The tenant holds all it may hold.
    TenantLimit,
    /// The route holds all it may hold (a bulkhead).
    RouteLimit,
    /// No free slot, and no free place to wait.
    QueueFull,
    /// The predicted wait is longer than the wait budget.
    WaitTooLong,
    /// The wait budget ran out while waiting.
    QueueTimeout,
    /// A more important request took the place.
    PushedOut,
    /// The client's deadline has passed or cannot be met.
    Deadline,
    /// This is a retry, and the budget for retries is spent.
    RetryBudget,
    /// The upstream is known to be down.
    BreakerOpen,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// No connection to the upstream.
    UpstreamConnect,
    /// The upstream closed the connection before its answer.
    UpstreamReset,
    /// The gateway itself is out of descriptors, memory or places.
    GatewayOverloaded,
    /// The gateway is shutting down.
    Draining,
    /// The client left before it had its answer.
    ClientLeft,
}

impl Reason {
    /// Every reason, in the order of the table of answers. `reason as usize` is its index here.
    pub const ALL: [Self; 16] = [
        Self::RateLimited,
        Self::TenantLimit,
        Self::RouteLimit,
        Self::QueueFull,
        Self::WaitTooLong,
        Self::QueueTimeout,
        Self::PushedOut,
        Self::Deadline,
        Self::RetryBudget,
        Self::BreakerOpen,
        Self::UpstreamTimeout,
        Self::UpstreamConnect,
        Self::UpstreamReset,
        Self::GatewayOverloaded,
        Self::Draining,
        Self::ClientLeft,
    ];

    /// Its name in answers, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::TenantLimit => "tenant_limit",
            Self::RouteLimit => "route_limit",
            Self::QueueFull => "queue_full",
            Self::WaitTooLong => "wait_too_long",
            Self::QueueTimeout => "queue_timeout",
            Self::PushedOut => "pushed_out",
            Self::Deadline => "deadline",
            Self::RetryBudget => "retry_budget",
            Self::BreakerOpen => "breaker_open",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamConnect => "upstream_connect",
            Self::UpstreamReset => "upstream_reset",
            Self::GatewayOverloaded => "gateway_overloaded",
            Self::Draining => "draining",
            Self::ClientLeft => "client_left",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a completion says about the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It answered. How fast, the limit sees from the times.
    Success,
    /// It timed out, or said itself that it has too much to do.
    Overload,
    /// It failed: no connection, or one that broke, or an error for an answer. That says nothing about how much it can
    /// take, but the breaker counts it.
    Failure,
    /// Nothing: the client left.
    Ignore,
}

/// What became of a ticket.
#[derive(Debug)]
pub enum Event {
    /// Its turn has come.
    Granted {
        /// Whose.
        ticket: TicketId,
        /// The slot it got.
        permit: Permit,
    },
    /// It waited in vain.
    Refused {
        /// Whose.
        ticket: TicketId,
        /// Why.
        rejection: Rejection,
    },
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn a_reason_is_its_own_index() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{reason}");
        }
    }
}
