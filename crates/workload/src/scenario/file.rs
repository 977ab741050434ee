//! The scenario file as it is written. What it means, and whether it makes sense, is read from it elsewhere.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use toml::Spanned;

use super::value::{Range, Rate, Span};
use super::{Product, ServiceTime};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) story: String,
    pub(super) duration: Spanned<Span>,
    #[serde(default = "no_time")]
    pub(super) warmup: Spanned<Span>,
    #[serde(default = "one_seed")]
    pub(super) seed: u64,
    #[serde(default = "one")]
    pub(super) runs: Spanned<u32>,
    #[serde(default = "one")]
    pub(super) gateways: Spanned<u32>,
    #[serde(default)]
    pub(super) service: Vec<Spanned<Service>>,
    #[serde(default)]
    pub(super) clients: Vec<Spanned<Clients>>,
    #[serde(default)]
    pub(super) policy: Vec<Spanned<Policy>>,
    #[serde(default)]
    pub(super) expect: Vec<Spanned<Expect>>,
}

fn no_time() -> Spanned<Span> {
    Spanned::new(0..0, Span(std::time::Duration::ZERO))
}

fn one_seed() -> u64 {
    1
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

/// `[[service]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    pub(super) name: Option<String>,
    pub(super) workers: Option<u32>,
    pub(super) shared: Option<Shared>,
    pub(super) elastic: Option<Elastic>,
    pub(super) time: ServiceTime,
    pub(super) queue: Option<u32>,
    /// Each way, between whoever asks and the service.
    pub(super) delay: Option<Span>,
    /// The fixed limit that is best for it, where that is not the number of its workers.
    pub(super) best: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) fails: f64,
    #[serde(default)]
    pub(super) cancels_work: bool,
    #[serde(default)]
    pub(super) calls: Vec<String>,
    #[serde(default)]
    pub(super) change: Vec<ServiceChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shared {
    pub(super) knee: f64,
    #[serde(default)]
    pub(super) hard: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Elastic {
    pub(super) slope: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceChange {
    pub(super) at: Span,
    pub(super) workers: Option<u32>,
    pub(super) slowdown: Option<f64>,
    pub(super) fails: Option<f64>,
    pub(super) pause: Option<Span>,
}

/// `[[clients]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clients {
    pub(super) name: String,
    pub(super) rate: Option<Rate>,
    #[serde(default)]
    pub(super) spacing: Spacing,
    /// So many come at once.
    pub(super) batch: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) change: Vec<RateChange>,
    pub(super) burst: Option<Vec<Burst>>,
    pub(super) users: Option<u32>,
    pub(super) think: Option<ServiceTime>,
    pub(super) from: Option<Span>,
    pub(super) until: Option<Span>,
    pub(super) timeout: Option<Span>,
    /// Whether they tell the gateway how long they wait.
    #[serde(default)]
    pub(super) tells_deadline: bool,
    /// Whether all tries of a request carry the same key.
    #[serde(default)]
    pub(super) identified: bool,
    #[serde(default)]
    pub(super) retry: Retry,
    #[serde(default)]
    pub(super) mix: Vec<Kind>,
    pub(super) path: Option<String>,
    pub(super) method: Option<String>,
    /// Fields of the head of every request.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
    pub(super) class: Option<String>,
    pub(super) tenant: Option<String>,
    /// So many tenants in the place of one.
    pub(super) tenants: Option<NonZeroU32>,
    pub(super) cost: Option<f64>,
    pub(super) service: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Spacing {
    Even,
    #[default]
    Poisson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateChange {
    pub(super) at: Span,
    pub(super) rate: Rate,
    /// The rate gets there evenly from the change before.
    #[serde(default)]
    pub(super) ramp: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Burst {
    pub(super) at: Span,
    pub(super) count: u32,
}

/// What clients do about a failure.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    pub(super) attempts: Option<u32>,
    pub(super) backoff: Option<Backoff>,
    pub(super) base: Option<Span>,
    pub(super) cap: Option<Span>,
    /// Each with a budget and a breaker of its own.
    pub(super) callers: Option<NonZeroU32>,
    pub(super) budget_percent: Option<u32>,
    pub(super) breaker_percent: Option<u32>,
    pub(super) breaker_window: Option<Span>,
    pub(super) breaker_min_tries: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) honours_retry_after: bool,
    #[serde(default)]
    pub(super) slows_down: bool,
    /// Whether they say so when a request was tried before.
    #[serde(default)]
    pub(super) marked: bool,
    /// So many callers with tidegate's own client.
    pub(super) resilient: Option<NonZeroU32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Backoff {
    #[default]
    None,
    Fixed,
    Exponential,
    FullJitter,
}

/// One of several kinds of requests of the same clients. What is left out is as the clients say.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) share: Option<f64>,
    pub(super) path: Option<String>,
    pub(super) method: Option<String>,
    /// Fields of the head of every request.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
    pub(super) class: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) cost: Option<f64>,
    pub(super) service: Option<String>,
}

/// `[[policy]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) name: String,
    /// The limiter of this product stands in the place of the policy's own.
    pub(super) model: Option<Product>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) file: Option<Spanned<String>>,
}

/// `[[expect]]`
#[derive(Deserialize)]
pub(super) struct Expect {
    pub(super) policy: String,
    pub(super) class: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) from: Option<Span>,
    pub(super) until: Option<Span>,
    #[serde(flatten)]
    pub(super) metrics: BTreeMap<String, Range>,
}
