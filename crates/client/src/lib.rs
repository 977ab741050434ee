//! Calls other services without making their bad moments worse.
//!
//! What a call goes through, and what it gets where others get trouble:
//!
//! | | here |
//! |---|---|
//! | what may be tried again | idempotent methods, or an `Idempotency-Key`; bodies up to a bound; never a 500 or a 504 |
//! | when | full jitter; what `Retry-After` (and its kin) says is the earliest, and callers who are told the same are spread behind it |
//! | how often | a tenth of the *successes* and a few a minute, counted when they are decided on |
//! | until when | one deadline for the call with all its tries; what would come too late is not begun |
//! | by whom | one layer: who is inside another's retry does not retry, and who has tried in vain says so |
//! | what stops it | a breaker if nothing gets through, a throttle if little does; 429 is neither |
//! | how many at once | a bound, and a bounded wait, in front of the connection pool |
//! | the slow ones | a second request after a percentile, paid for out of the same budget |
//!
//! It comes in three shapes, which share what they know of an upstream if they are given the same [`Resilience`]:
//! [`ResilientLayer`] for any tower service, [`Client`] on hyper (feature `hyper`, on), `ResilientMiddleware` for
//! `reqwest-middleware` (feature `reqwest`).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use http::{Request, Response};
//! use http_body_util::Empty;
//! use tidegate_client::{Policy, ReplayBody, ResilientLayer};
//! use tower::{Layer, Service, ServiceExt, service_fn};
//!
//! // Any service that can be cloned. This one says 503 to the first try.
//! let upstream = service_fn(|request: Request<ReplayBody<Empty<bytes::Bytes>>>| async move {
//!     let first = request.headers()["x-envoy-attempt-count"] == "1";
//!     let response = Response::builder().status(if first { 503 } else { 200 });
//!     Ok::<_, Infallible>(response.body(Empty::<bytes::Bytes>::new()).unwrap())
//! });
//! let mut client = ResilientLayer::new(Policy::careful(Duration::from_secs(1))).layer(upstream);
//!
//! for path in ["/a", "/b"] {
//!     let request = Request::get(path).body(Empty::new()).unwrap();
//!     match client.ready().await.unwrap().call(request).await {
//!         Ok(response) => assert!(response.status().is_success()),
//!         Err(error) => println!("{error}; something was sent: {}", error.was_sent()),
//!     }
//! }
//! let now = client.resilience().snapshot("").unwrap();
//! assert_eq!((now.caller.counts.calls, now.caller.counts.retries), (2, 2));
//! # }
//! ```
//!
//! All decisions are the engine's ([`tidegate_engine::Caller`]), which simulated clients use as well, so that what a policy
//! does in a storm can be seen before it is in one.
#![forbid(unsafe_code)]

pub use tidegate_engine as engine;

mod policy;
pub use policy::Policy;

mod deadline;
pub use deadline::{Deadline, DeadlineField, Unit};

mod ambient;
pub use ambient::{Ambient, AmbientLayer, AmbientService};

mod resilience;
pub use resilience::Resilience;

mod room;
pub use room::RoomPolicy;

mod upstream;
pub use upstream::Snapshot;

mod layer;
pub use layer::{Answering, Resilient, ResilientLayer};

mod replay;
pub use replay::ReplayBody;

mod answer;
pub use answer::AnswerBody;

mod error;
pub use error::{BoxError, Error, Refusal};

#[cfg(feature = "hyper")]
mod client;
#[cfg(feature = "hyper")]
pub use client::{Body, Client};

#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "reqwest")]
pub use self::reqwest::ResilientMiddleware;

mod advice;
mod clock;
mod dice;
mod drive;
mod meter;
mod reading;
