//! What whoever is refused is told: one table from a reason to an answer, and how its rows are written over HTTP and
//! gRPC.
//!
//! The layers of this crate and tidegate's gateway answer by it, so that a caller need not know which of them said no.
//! To answer by it from elsewhere:
//!
//! ```
//! use std::time::Duration;
//! use tidegate_tower::answer::{self, Manner};
//! use tidegate_tower::engine::{Reason, Rejection};
//!
//! let rejection = Rejection { reason: Reason::QueueFull, retry_after: Duration::from_millis(1500) };
//! let response = answer::refuse(Manner::Http, rejection);
//! assert_eq!(response.status(), 503);
//! assert_eq!(response.headers()["retry-after"], "2");
//! ```

mod table;
pub use table::{Retry, Row};

mod reply;
pub use reply::{Answer, Manner, Whole, over_the_rate, problem, refuse};
pub(crate) use reply::{GRPC_STATUS, RETRY_AFTER_MAX};
