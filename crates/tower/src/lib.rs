//! The engine of tidegate with a clock and waiters: what a service or a gateway calls before it does the work.
//!
//! A service that gets more than it can do does not get slower for some; it gets useless for all. So it lets in what it
//! can do, lets a few wait, and tells the others at once when to come back. Three things, each with another answer:
//!
//! | question | here | who is too much gets |
//! |---|---|---|
//! | May this caller send this much? | [`RateLimitLayer`] | 429 |
//! | Can the service take more now? | [`GateLayer`], [`CallLayer`], [`Gate`] | a place in line, or 503 |
//! | Does anybody still wait for the answer? | [`deadline`] | 504 |
//!
//! # In a service
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//! use axum::{Router, http::Response, routing::get};
//! use tidegate_tower::answer::Whole;
//! use tidegate_tower::engine::*;
//! use tidegate_tower::{Gate, GateLayer, deadline};
//!
//! async fn order() -> Result<&'static str, Response<Whole>> {
//!     // First step, and then: does anybody still wait?
//!     deadline::check()?;
//!     Ok("ordered")
//! }
//!
//! // Nobody has to know how much the service can take: the limit finds out. Nobody waits longer than half a second.
//! let number = |number| NonZeroU32::new(number).unwrap();
//! let limit = LimitPolicy::Ebb(EbbPolicy {
//!     min: number(2),
//!     max: number(1000),
//!     initial: number(20),
//!     deadline: Duration::from_secs(2),
//!     without: None,
//! });
//! let queue = QueuePolicy::of(Duration::from_millis(500), Capacity::Derived);
//! let gate = GateLayer::new(Gate::new(AdmissionPolicy::new(limit, queue)));
//!
//! let router = Router::new()
//!     .route("/order", get(order).layer(gate))
//!     .route("/healthz", get(|| async { "well" }));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, router).await?;
//! # Ok(())
//! # }
//! ```
//!
//! tonic takes the same layer (`Server::builder().layer(gate)`), and so does whatever else takes a layer of tower. In
//! which order with other layers, and what to mind, is in `docs/tower.md` of the repository.
//!
//! # By hand
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//! use tidegate_tower::Gate;
//! use tidegate_tower::engine::*;
//!
//! // Four at a time, eight may wait, nobody longer than half a second.
//! let gate = Gate::new(AdmissionPolicy::new(
//!     LimitPolicy::Fixed(NonZeroU32::new(4).unwrap()),
//!     QueuePolicy::of(Duration::from_millis(500), Capacity::Fixed(8)),
//! ));
//! match gate.admit(Arrival::new(RouteId(0))).await {
//!     Ok(admitted) => {
//!         // Do the work, and say how it went. Dropping the guard frees the slot too.
//!         admitted.complete(Outcome::Success);
//!     }
//!     Err(Rejection { reason, retry_after }) => println!("{reason}: come back in {retry_after:?}"),
//! }
//! # }
//! ```
//!
//! # What this is not
//!
//! There is no decision in this crate; all of them are the engine's. It starts no task and no thread: what waits has a
//! timer of its own.
//!
//! The layers, the answers and the deadlines are the feature `http`, which is on by default. Without it there is the
//! gate alone, on tokio and the engine. Of other crates' types, those of `http`, `http-body`, `bytes`, `tower-layer` and
//! `tower-service` are part of what is promised here, and no others but tokio's `Instant` in [`Clock::instant`].

pub use tidegate_engine as engine;

mod clock;
pub use clock::Clock;

mod gate;
pub use gate::{Entry, Gate, Waiting};

mod admitted;
pub use admitted::{Admitted, Orphan};

mod sync;
mod waiters;

#[cfg(feature = "http")]
mod layers;
#[cfg(feature = "http")]
pub use layers::{
    AnswerBody, CallError, CallFuture, CallLayer, CallService, Class, GateEvent, GateFuture, GateLayer,
    GateService, Key, RateLimit, RateLimitFuture, RateLimitLayer, RateLimitService, answer, deadline,
    outcome_of, quota,
};
