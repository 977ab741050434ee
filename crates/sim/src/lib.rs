//! Plays a scenario against a policy, in virtual time, with the very engine that the gateway runs.
//!
//! It is deterministic: the same scenario, policy and seed give the same [`Report`](tidegate_workload::Report), down to
//! the order of events. It has no clock, opens no socket and starts no thread but those that play runs side by side.
//!
//! ```
//! use std::path::Path;
//! use tidegate_sim::{Control, play};
//! use tidegate_workload::Scenario;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     story = "Half again as much as ten workers can do."
//!     duration = "60s"
//!     [[service]]
//!     workers = 10
//!     time = "100ms"
//!     [[clients]]
//!     name = "everybody"
//!     rate = "150/s"
//!     timeout = "2s"
//!     "#,
//!     Path::new("overload.toml"),
//! )?;
//! let report = play(&scenario, &Control::Nothing, 1)?;
//! // It works as hard as it can, and hardly anybody gets anything of it.
//! assert!(report.all.goodput < 1_000 && report.all.late > 5_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod agenda;
mod call;
mod client;
mod control;
mod ending;
mod gate;
mod model;
mod passage;
mod play;
mod sharing;
mod table;
mod world;

pub use control::Control;
pub use play::{Progress, play, play_all};

mod station;
pub use station::{Look, Place, Station};

pub use world::TooMany;

mod replay;
pub use replay::{Recorded, Replay};
