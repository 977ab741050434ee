//! The command from outside: the real binary, on loopback sockets, before services that do what a test tells them.
//!
//! Tests are ordered by events, never by sleeps: a test goes on when it has read what it waits for from a socket, or
//! when `/api/stats` says what it waits for. Every wait has a bound, after which the test fails and says what did not
//! come. Where a time is asserted, the lower bound is exact and the upper one leaves room for a busy machine.
//!
//! The identifiers in the tests' comments (A2, D5, …) are those of `docs/hazards.md`: what has gone wrong in other
//! gateways.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

// The harness.
mod browser;
mod client;
mod gateway;
mod http2;
mod message;
mod ran;
mod service;
mod wait;

// The tests.
mod accounting;
mod admin;
mod article;
mod balance;
mod bodies;
mod breaker;
mod classes;
mod command;
mod connections;
mod dashboard;
mod deadlines;
mod deploy;
mod explain;
mod framing;
mod health;
mod history;
mod lab;
mod limits;
mod load;
mod metrics;
mod operations;
mod prometheus;
mod reload;
mod replay;
mod retries;
mod shares;
mod signals;
mod simulate;
mod size;
mod stalls;
mod top;
mod tracing;
mod upgrade;
