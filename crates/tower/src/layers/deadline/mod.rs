//! How long the answer is still of use, for those who work on it.
//!
//! A service that is cut off at its deadline has done its work for nothing. So the layers tell the handler how long
//! there is, and it can ask before each expensive step:
//!
//! ```
//! use tidegate_tower::deadline::{self, Expired};
//!
//! async fn report() -> Result<String, Expired> {
//!     let rows = query().await;
//!     deadline::check()?; // Nobody waits for it any more: leave it at that.
//!     Ok(render(rows).await)
//! }
//! # async fn query() -> u32 { 3 }
//! # async fn render(rows: u32) -> String { rows.to_string() }
//! # #[tokio::main(flavor = "current_thread")] async fn main() { assert_eq!(report().await.unwrap(), "3") }
//! ```
//!
//! The functions here ask for the deadline of the request that the current task works on. A task or a thread that the
//! handler starts is another one: give it the deadline with [`Deadline::scope`], or take it along from the request's
//! extensions, where it is too. A request that states no deadline has none, and everything is in time.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use http::Response;
use tidegate_engine::{Reason, Rejection, Timestamp};

use crate::clock::Clock;
use crate::layers::answer::{self, Manner, Whole};

mod stated;
pub use stated::{Unit, stated, stated_in};

tokio::task_local! {
    static CURRENT: Deadline;
}

/// When the answer to a request is of no use any more.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    clock: Clock,
    at: Timestamp,
    /// How whoever asked wants to be told that it has passed.
    manner: Manner,
}

impl Deadline {
    /// The earlier of what a client says that it waits, from now on, and of what is known already.
    pub(crate) fn earliest(
        clock: Clock,
        patience: Option<Duration>,
        known: [Option<Self>; 2],
        manner: Manner,
    ) -> Option<Self> {
        let known = known.into_iter().flatten().map(|deadline| deadline.remaining());
        let shortest = known.chain(patience).min()?;
        Some(Self { clock, at: clock.now().after(shortest), manner })
    }

    pub(crate) const fn at(&self) -> Timestamp {
        self.at
    }

    /// How long there still is; zero if it has passed.
    pub fn remaining(&self) -> Duration {
        self.at.since(self.clock.now())
    }

    /// An error if it has passed.
    pub fn check(&self) -> Result<(), Expired> {
        if self.remaining().is_zero() { Err(Expired { manner: self.manner }) } else { Ok(()) }
    }

    /// Makes it the deadline of this future, for [`remaining`] and [`check`] in it.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// The same for something that does not wait, such as one poll.
    pub(crate) fn during<T>(this: Option<&Self>, act: impl FnOnce() -> T) -> T {
        match this {
            Some(deadline) => CURRENT.sync_scope(*deadline, act),
            None => act(),
        }
    }
}

/// The deadline of the request that the current task works on; `None` if it has none.
pub fn current() -> Option<Deadline> {
    CURRENT.try_get().ok()
}

/// How long there still is for the request that the current task works on: zero if its deadline has passed, `None` if
/// it has none.
pub fn remaining() -> Option<Duration> {
    current().map(|deadline| deadline.remaining())
}

/// An error if the request that the current task works on is of no use any more.
pub fn check() -> Result<(), Expired> {
    current().map_or(Ok(()), |deadline| deadline.check())
}

/// The deadline has passed: nobody waits for the answer.
///
/// As a response it is 504, or `DEADLINE_EXCEEDED` for who has asked over gRPC. A handler of axum may return
/// `Result<_, Response<Whole>>` and use `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    manner: Manner,
}

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl std::error::Error for Expired {}

impl From<Expired> for Response<Whole> {
    fn from(expired: Expired) -> Self {
        answer::refuse(expired.manner, Rejection { reason: Reason::Deadline, retry_after: Duration::ZERO })
    }
}
