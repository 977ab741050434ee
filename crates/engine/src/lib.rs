//! The deterministic engine of tidegate: it decides, and does nothing else.
//!
//! Three questions are kept apart, because each has another answer for whoever asks too much:
//!
//! | question | type | the excess gets |
//! |---|---|---|
//! | May this caller send this much? | [`RateLimiter`] | 429 |
//! | Can the service absorb more *now*? | [`Admission`] | 503 |
//! | How long may somebody wait for that? | [`Admission`]'s queue | a place, or 503 on arrival |
//!
//! The engine has no clock, no sockets, no threads, no randomness and no logger. Time is an argument; hash keys
//! come from the driver. So the gateway, a middleware and a simulator run the very same code, and a run can be
//! repeated exactly. It knows no HTTP either: an [`Arrival`] is all it sees of a request.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//! use tidegate_engine::*;
//!
//! // One slot, one place in the queue, half a second of patience.
//! let mut admission = Admission::new(AdmissionPolicy::new(
//!     LimitPolicy::Fixed(NonZeroU32::MIN),
//!     QueuePolicy::of(Duration::from_millis(500), Capacity::Fixed(1)),
//! ));
//! let at = Timestamp::from_millis;
//!
//! let Decision::Admit(first) = admission.arrive(at(0), Arrival::new(RouteId(0))) else { panic!() };
//! let Decision::Queue(second) = admission.arrive(at(10), Arrival::new(RouteId(0))) else { panic!() };
//! let Decision::Reject(third) = admission.arrive(at(20), Arrival::new(RouteId(0))) else { panic!() };
//! assert_eq!(third.reason, Reason::QueueFull);
//!
//! // A slot is free again: the one who waits gets it.
//! admission.complete(at(200), first, Outcome::Success);
//! let Some(Event::Granted { ticket, permit }) = admission.poll_event() else { panic!() };
//! assert_eq!(ticket, second.id());
//! admission.complete(at(400), permit, Outcome::Success);
//! assert_eq!(admission.snapshot().in_flight, 0);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod time;
pub use time::Timestamp;

mod decision;
pub use decision::{
    Arrival, Attempt, Decision, Event, Outcome, Permit, Priority, Reason, Rejection, RouteId, Tenant, Ticket,
    TicketId,
};

mod policy;
pub use policy::{
    AdmissionPolicy, AimdPolicy, BreakerPolicy, Capacity, Discipline, EbbPart, EbbPolicy, LIMIT_MAX,
    LimitPolicy, PRIORITIES_MAX, PROBES_MAX, PriorityPolicy, QUEUE_CAPACITY_DERIVED_MAX, QUEUE_CAPACITY_MAX,
    QueuePolicy, RangePolicy, RetryPolicy,
};

mod rate;
pub use rate::{Quota, QuotaError, RateLimiter, RateRefusal, Reservation};

mod retry;
pub use retry::{Backoff, RetryBudget};

mod told;
pub use told::{Return, Told};

mod breaker;
pub use breaker::{Breaker, BreakerState, Pass, Refused, Tally, Verdict};

mod caller;
pub use caller::{
    Advice, BudgetPolicy, Caller, CallerCounts, CallerPolicy, CallerSnapshot, Declined, Ended, HedgePolicy,
    Pause, Reply, Sent, Step, Stop, ThrottlePolicy,
};

mod deadline_text;
pub use deadline_text::DeadlineUnit;

mod admission;
pub use admission::Admission;

mod snapshot;
pub use snapshot::{Counts, Snapshot};

mod bulkhead;
mod codel;
mod comeback;
pub use comeback::{whole_millis, whole_seconds};
mod damping;
mod flight;
mod forecast;
mod lately;
mod limit;

mod linked;
mod patience;
mod queue;
mod standing;
