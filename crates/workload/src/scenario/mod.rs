//! A scenario: what happens to which service, under which policies, and what is expected of it. Plain data.
//!
//! A file is read by [`Scenario::parse`]; whoever holds a [`Scenario`] need not check it again. It says nothing of how
//! it is played: the simulator does so in virtual time, the load generator on a socket.

mod draw;
mod fields;
mod file;
mod model;
mod read;
mod retry;
mod value;

pub use fields::check as check_field;
pub use model::Product;
pub use read::{BEST_STATIC, NO_CONTROL, ScenarioError};

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_policy::Policy;

use crate::expect::Expectation;
use crate::retry::RetryPolicy;

/// One story, with everything that is needed to play it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, which is that of the file.
    pub name: String,
    /// What it is about, for a reader.
    pub story: String,
    /// The first seed.
    pub seed: u64,
    /// How many seeds are played, one after the other.
    pub runs: u32,
    /// How long clients come, and how long it is watched.
    pub duration: Duration,
    /// How long at the beginning nothing is counted.
    pub warmup: Duration,
    /// How many gateways stand before the first service, each with a limit of its own.
    pub gateways: u32,
    /// The services. Never empty; clients ask the first, unless their kind says another.
    pub services: Vec<Service>,
    /// Who comes. Never empty.
    pub clients: Vec<Clients>,
    /// The policies to be compared, in this order.
    pub policies: Vec<NamedPolicy>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
}

/// A policy with the name that it has in the scenario.
#[derive(Clone, Debug)]
pub struct NamedPolicy {
    /// Its name in tables.
    pub name: String,
    /// What it says.
    pub policy: Policy,
    /// The product whose limiter stands in the place of this policy's own, if one does. The queue and all else are the
    /// policy's.
    pub model: Option<Product>,
}

/// A service that is protected.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name; a policy protects it under this name.
    pub name: String,
    /// How much it works on at once.
    pub capacity: Capacity,
    /// How long the work on one request takes.
    pub time: ServiceTime,
    /// How many may wait in it; `None` for no bound.
    pub queue: Option<u32>,
    /// How long a request is under way to it, and its answer on the way back.
    pub delay: Duration,
    /// The limit that is best for it, if somebody has said so.
    pub best: Option<NonZeroU32>,
    /// The share of its answers that are failures, from 0 to 1.
    pub fails: f64,
    /// Whether it stops working when its client leaves.
    pub cancels_work: bool,
    /// Whom it asks after its own work, one after the other.
    pub calls: Vec<usize>,
    /// What changes, in the order of time.
    pub changes: Vec<(Duration, Change)>,
}

/// How much a service works on at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// So many at a time, the others wait in their order. A worker is busy until the calls of its request are answered.
    Workers(u32),
    /// All at the same time, sharing what the service can do: up to the knee each at full speed.
    Shared {
        /// From here on there is not more throughput.
        knee: f64,
        /// How fast throughput falls beyond the knee: it is multiplied by (knee/n) to this power. 0: it stays.
        hard: f64,
    },
    /// All at the same time, each slower by `slope` for every other one that is there when it begins.
    Elastic {
        /// Added to the time, as a share of it.
        slope: f64,
    },
}

/// How long the work on one request takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always so long.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Lognormal with this mean; sigma is that of the logarithm.
    Lognormal(Duration, f64),
    /// Uniform between the two.
    Uniform(Duration, Duration),
    /// As was recorded, drawn at random; in nanoseconds, never empty.
    Recorded(Vec<u64>),
}

/// What may change about a service while it is watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// So many workers from now on; those that are busy finish.
    Workers(u32),
    /// The work that begins from now on takes so many times as long as at first.
    Slowdown(f64),
    /// This share of its answers are failures from now on.
    Fails(f64),
    /// It stands still for so long.
    Pause(Duration),
}

/// Clients of one sort.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Their name.
    pub name: String,
    /// When they come.
    pub arrivals: Arrivals,
    /// How long they wait for an answer before they leave.
    pub timeout: Option<Duration>,
    /// Whether they say so to whom they ask.
    pub tells_deadline: bool,
    /// Whether all tries of a request carry a key that tells it from others.
    pub identified: bool,
    /// So many tenants hide behind the name of each tenant, and each request is of one of them.
    pub tenants: NonZeroU32,
    /// What they do about a failure.
    pub retry: RetryPolicy,
    /// What they ask for. Never empty.
    pub mix: Vec<Kind>,
}

/// When clients come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At a rate, whatever becomes of them.
    Open {
        /// How they are spaced.
        spacing: Spacing,
        /// So many come at each of the moments, which are the fewer.
        together: NonZeroU32,
        /// The rate from each moment on, in the order of time.
        pieces: Vec<Piece>,
    },
    /// So many at once, at these moments.
    Bursts(Vec<(Duration, u32)>),
    /// So many users, each of whom asks again a while after the answer.
    Closed {
        /// How many.
        users: u32,
        /// How long each thinks between an answer and the next request.
        think: ServiceTime,
        /// When the first requests come.
        from: Duration,
        /// From when on nobody asks any more.
        until: Duration,
    },
    /// As somebody hands them in.
    Recorded,
}

/// How arrivals at a rate are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Even,
    /// As independent clients come: the gaps are exponential.
    Poisson,
}

/// A stretch of time with a rate that is constant or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
    /// Arrivals a second at its beginning.
    pub rate: f64,
    /// Arrivals a second at its end.
    pub rate_at_end: f64,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// How often, relative to the other kinds.
    pub share: f64,
    /// The name it is counted under.
    pub class: String,
    /// Whose it is.
    pub tenant: String,
    /// What is asked for.
    pub method: String,
    /// What is asked for.
    pub path: String,
    /// Fields of the head, in lower case, besides those that every request has.
    pub headers: Vec<(String, String)>,
    /// What is sent along; empty for nothing.
    pub body: String,
    /// How much more work it is than others.
    pub cost: f64,
    /// Index into [`Scenario::services`].
    pub service: usize,
}
