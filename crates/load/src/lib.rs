//! Plays a scenario against a real address, and fills in the same [`Report`](tidegate_workload::Report) as the simulator.
//!
//! Open loop: when a request is sent was decided before the first one was. Each has an intended moment, its latency counts
//! from that, and a request that is sent later than intended is written down as lag, never left out. Who comes when, for
//! what, and what they do about a failure is said by the client models of `workload`; here are sockets and a clock.
//!
//! ```no_run
//! use tidegate_load::{Settings, Stages, Target, run};
//!
//! let target = Target::parse("http://127.0.0.1:8102/work")?;
//! let scenario = Stages::parse("100..5000:60s", None)?.scenario(&target);
//! let report = run(&scenario, "measured", &Settings::new(target), &mut |_| {})?;
//! println!("{} of {} useful answers", report.all.goodput, report.all.offered);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is to be sent and what came of it is decided by one state machine without sockets (`play.rs`); the driver
//! (`drive.rs`) gives it the time, and `wire/` has the two protocols.
#![forbid(unsafe_code)]

mod target;
pub use target::{BadTarget, Target};

mod stages;
pub use stages::{BadRate, Stages};

mod settings;
pub use settings::{Names, Protocol, Settings, Stop};

mod request;

mod agenda;

mod own;
mod play;
pub use play::Snapshot;

mod pacer;

mod wire;

mod drive;
pub use drive::{Failure, run};

mod knee;
pub use knee::{Knee, Verdict};

mod clock;
