//! Short stories told to an admission: what happens when, and what it decides. One helper, [`check`], so that a
//! change of the interface touches one place.
//!
//! A line of a story is `<time>ms <verb> <names>`. Verbs: `arrive`, `done`, `overload`, `fail`, `ignore` (completions),
//! `abandon`, `leave` (a waiter), `tick`, `limit <n>`. `a..f` stands for the names a, b, c, d, e, f.
//!
//! What is known of a request stands behind its name; see [`teller`].
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod classes;
mod queue;
mod teller;
