//! Backpressure in the strict sense: how much a producer may send is decided by the consumer's demand, and told to the
//! producer by whether it has to wait.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_flow::{Policy, Publisher};
//!
//! // Sixteen lines may wait, which together weigh at most a megabyte.
//! let publisher = Publisher::new(Policy::new(16).with_bytes(1 << 20, |line: &String| line.len() as u64));
//! let mut subscription = publisher.subscribe();
//!
//! let consumer = tokio::spawn(async move {
//!     let mut lines = 0;
//!     // Asks for ten, takes ten, asks again: what it has not asked for, it does not get.
//!     subscription.request(10);
//!     while let Some(line) = subscription.next().await {
//!         println!("{}", line?);
//!         lines += 1;
//!         if lines % 10 == 0 {
//!             subscription.request(10);
//!         }
//!     }
//!     Ok::<_, tidegate_flow::Failure>(lines)
//! });
//!
//! for number in 0..100 {
//!     // Waits whenever the buffer is full.
//!     publisher.submit(format!("line {number}")).await?;
//! }
//! publisher.complete();
//! assert_eq!(consumer.await??, 100);
//! # Ok(()) }
//! ```
//!
//! | the producer | when there is no room | use |
//! |---|---|---|
//! | slows down | waits, first come, first served | [`Publisher::submit`] |
//! | decides itself | gets its item back | [`Publisher::try_submit`] |
//! | goes on | the newest or the oldest is dropped, and counted | [`Publisher::offer`] |
//!
//! [`Workers`] are the same for tasks: a bounded executor with a policy for the excess, and a deadline for each task.
//!
//! It follows the rules of Reactive Streams where they apply in Rust; the page `docs/flow.md` lists them. What it is not: a
//! library of operators on streams (use `futures` for these, through [`adapters`]), a channel across processes, or a
//! rate limit.
#![forbid(unsafe_code)]

pub use tidegate_engine::Timestamp;

mod policy;
pub use policy::{Drops, Policy, Slowest};

mod publisher;
pub use publisher::Publisher;

mod submit;
pub use submit::Submit;

mod subscription;
pub use subscription::{Demand, Subscription};

mod signal;
pub use signal::{Failure, Refused, Why};

mod workers;
pub use workers::{
    Handle, Lost, NotTaken, RefusedTask, Task, TaskCounts, WhenFull, Worker, Workers, WorkersPolicy,
    WorkersSnapshot,
};

mod snapshot;
pub use snapshot::{Counts, Snapshot};

#[cfg(feature = "metrics")]
mod export;
#[cfg(feature = "metrics")]
pub use export::{export_flow, export_workers};

mod clock;
pub use clock::Clock;

pub mod adapters;

mod buffer;
mod parcel;
mod state;
mod sync;
mod timer;
mod waiters;
