//! The layers: in front of made-up services on a paused clock, and of real servers on real sockets.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test that cannot go on has failed")]

mod admission;
mod bodies;
mod calls;
mod classes;
mod deadlines;
mod events;
mod rates;
mod servers;
mod sockets;
mod support;
