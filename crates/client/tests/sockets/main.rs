//! The client on real sockets: three services in a chain, a storm, connections that die, reqwest, and tonic.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod chain;
mod connections;
mod example;
#[cfg(feature = "reqwest")]
mod reqwest;
mod server;
mod storm;
mod tonic;
