//! The engine of tidegate with a clock and waiters: what a service or a gateway calls before it does the work.
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
//! There is no decision in this crate; all of them are the engine's.

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
pub use layers::{answer, deadline, quota};
