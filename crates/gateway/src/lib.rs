//! The reverse proxy of tidegate, as a library.
//!
//! The file list is the life of a request, and `request.rs` holds it:
//!
//! ```text
//! socket → listen → connection → request → route → classify → rate → Gate → upstream → body → client
//!                                   │                           │      │        │         │
//!                                 reply ◄───429─────────────────┴─503──┴─502/4──┘    end of body:
//!                                                                                  the slot is free
//! ```
//!
//! There is no decision about admission in this crate; those are the engine's. This crate turns requests into
//! arrivals, rejections into answers, and sees to it that what the engine counts is what really happens: that a place
//! in the queue is not kept for a client that has left, and that a slot stays taken until the work has ended.

mod gateway;
pub use gateway::{Gateway, Given, Listening, ReloadError, StartError};

mod explain;
pub use explain::{Explained, ExplainedLimit, ExplainedTenant, Explanation, explain, explained_json};

mod listen;

mod connection;

mod socket;
mod stream;

mod ahead;

mod request;

mod fields;
mod path;
mod route;

mod client_addr;

mod classify;

mod deadline;
mod rate;
mod returns;

mod head;

mod orca;
mod upstream;

mod body;
mod upgrade;

mod answer;
mod reply;
mod signals;

mod live;

mod admin;
mod history;
mod log;
mod mask;
mod metrics;
mod record;
mod top;
mod trace;
mod whatif;

mod clock;
mod worker;
