//! The same numbers as JSON, by upstream, for people and scripts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_engine::{PRIORITIES_MAX, Reason, Timestamp};

use crate::gateway::Shared;
use crate::live::Live;
use crate::upstream::{Decision, Upstream};

/// Everything, as JSON.
pub(crate) fn stats(shared: &Shared) -> Value {
    let live = shared.live();
    let upstreams: Map<String, Value> = live
        .upstreams
        .iter()
        .map(|upstream| (upstream.policy.name.clone(), one(&live, upstream, shared.clock.now())))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "stage": shared.stage_name(),
        "connections": {
            "client": shared.metrics.client_connections.now_open(),
            "upstream": shared.metrics.upstream_connections.now_open(),
        },
        "goodput": shared.metrics.goodput.get(),
        "upstreams": upstreams,
    })
}

fn one(live: &Live, upstream: &Upstream, now: Timestamp) -> Value {
    let (stats, snapshot) = (&upstream.stats, upstream.gate.snapshot());
    let rejected = |reason: Reason| stats.rejected[reason as usize].get();
    let shed = [
        Reason::TenantLimit,
        Reason::RouteLimit,
        Reason::QueueFull,
        Reason::WaitTooLong,
        Reason::PushedOut,
        Reason::BreakerOpen,
        Reason::Deadline,
        Reason::RetryBudget,
        Reason::GatewayOverloaded,
        Reason::Draining,
    ];
    let by_reason: Map<String, Value> = Reason::ALL
        .into_iter()
        .filter(|reason| rejected(*reason) > 0)
        .map(|reason| (reason.name().to_string(), rejected(reason).into()))
        .collect();
    let by_priority = |numbers: [u32; PRIORITIES_MAX]| -> BTreeMap<&str, u32> {
        live.policy.priorities.iter().map(|class| class.name.as_str()).zip(numbers).collect()
    };
    json!({
        "received": stats.received.get(),
        "forwarded": stats.forwarded.get(),
        "completed": stats.completed.get(),
        "goodput": stats.goodput.get(),
        "rate_limited": rejected(Reason::RateLimited),
        "shed": shed.into_iter().map(rejected).sum::<u64>(),
        "queue_timed_out": rejected(Reason::QueueTimeout),
        "upstream_timed_out": rejected(Reason::UpstreamTimeout),
        "client_left": rejected(Reason::ClientLeft),
        "in_flight": snapshot.in_flight,
        "max_in_flight": snapshot.max_in_flight,
        "orphans": snapshot.orphans,
        "in_flight_by_priority": by_priority(snapshot.in_flight_by_priority),
        "queue_depth": snapshot.queue_depth,
        "queue_depth_by_priority": by_priority(snapshot.waiting_by_priority),
        "max_queue_depth": snapshot.max_queue_depth,
        "queue_capacity": snapshot.queue_capacity,
        "limit": snapshot.limit,
        "service_ms": snapshot.service_time.map(|time| time.as_secs_f64() * 1e3),
        "retried": upstream.retries.decided(Decision::Retried),
        "endpoints": upstream.endpoints.iter().map(|endpoint| endpoint.stats(now)).collect::<Vec<_>>(),
        "wasted_seconds": stats.wasted.get() as f64 / 1e9,
        "rejected": by_reason,
        "rejected_by_priority": stats.refused_by_class.all().into_iter().collect::<BTreeMap<_, _>>(),
    })
}
