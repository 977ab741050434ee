//! The explanation for programs. Times are in milliseconds; what does not apply is null.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_engine::{Capacity, LimitPolicy};
use tidegate_policy::{Policy, TenantKey, Upstream, words};

use super::{Explained, Explanation};

/// What is said of a request, as one object.
#[must_use]
pub fn explained_json(policy: &Policy, explained: &Explained) -> Value {
    match explained {
        Explained::Refused { status, why } => json!({ "status": status, "why": why }),
        Explained::NotFound { path } => json!({ "status": 404, "reason": "not_found", "path": path }),
        Explained::Routed(found) => routed(policy, found),
    }
}

fn routed(policy: &Policy, found: &Explanation) -> Value {
    let route = &policy.routes[found.route];
    let upstream = &policy.upstreams[route.upstream];
    let rate_limits: Vec<Value> = found
        .rate_limits
        .iter()
        .map(|limit| {
            let rule = &policy.rate_limits[limit.rule];
            json!({
                "name": rule.name,
                "counted": limit.counted,
                "count": rule.quota.count(),
                "period_ms": millis(rule.quota.period()),
                "burst": rule.quota.burst(),
            })
        })
        .collect();
    json!({
        "route": route.label,
        "target": found.target,
        "client": found.client,
        "trusted": found.trusted,
        "exempt": route.exempt,
        "priority": {
            "name": policy.priorities[found.priority].name,
            "floor": policy.priorities[found.priority].floor,
            "because": found.because,
        },
        "tenant": found.tenant.as_ref().map(|tenant| json!({
            "header": match &tenant.key {
                TenantKey::Header(name) => Some(name),
                TenantKey::ClientIp => None,
            },
            "name": tenant.name,
            "weight": tenant.weight,
        })),
        "cost": found.cost,
        "retry": found.retry,
        "recognised": found.recognised,
        "rate_limits": rate_limits,
        "bulkhead": route.bulkhead.map(|bulkhead| json!({
            "max": bulkhead.max,
            "status": if bulkhead.is_quota { 429 } else { 503 },
        })),
        "deadline_ms": found.deadline.map(millis),
        "deadline_from": found.deadline_from,
        "upstream": describe(upstream),
    })
}

fn describe(upstream: &Upstream) -> Value {
    let limit = match upstream.limit {
        LimitPolicy::Fixed(limit) => json!(limit),
        _ => json!("adaptive"),
    };
    let capacity = match upstream.queue.capacity {
        Capacity::Fixed(places) => json!(places),
        Capacity::Derived => Value::Null,
    };
    json!({
        "name": upstream.name,
        "timeout_ms": millis(upstream.timeout),
        "limit": limit,
        "algorithm": words::algorithm(&upstream.limit),
        "wait_ms": millis(upstream.queue.wait),
        "capacity": capacity,
        "discipline": words::discipline(upstream.queue.discipline),
        "tenant_share": upstream.tenant_share,
        "breaker": upstream.breaker.as_ref().map(|breaker| json!({
            "connect_failures": breaker.policy.connect_failures,
            "failure_ratio": breaker.policy.failure_ratio,
            "min_requests": breaker.policy.min_requests,
            "window_ms": millis(breaker.policy.window),
        })),
        "retries": {
            "damp": upstream.retries.damp,
            "percent": upstream.retries.percent,
            "burst": upstream.retries.burst,
            "per_second": upstream.retries.per_second,
        },
    })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
