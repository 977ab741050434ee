//! Rate limits: may this caller send this much? A policy decided in advance, kept per key.
//!
//! A [`RateLimiter`] is a token bucket for each of many keys, in a table of fixed size. What it is not: a protection
//! of the service, which an unexpected number of well-behaved callers can still flood. That is
//! [`Admission`](crate::Admission)'s work.

mod quota;
pub use quota::{Quota, QuotaError};

mod gcra;
mod limiter;
pub use limiter::{RateLimiter, RateRefusal, Reservation};

mod sketch;
mod table;

mod turns;
pub(crate) use turns::Turns;
