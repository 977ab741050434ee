//! The policy in force, for a page: what it says, where each value comes from, and what an operator has set meanwhile.

use serde_json::{Value, json};
use tidegate_engine::LimitPolicy;
use tidegate_policy::{ValueSource, words};

use crate::gateway::Shared;
use crate::live::Live;

pub(super) fn json(shared: &Shared) -> Value {
    let live = shared.live();
    let policy = &live.policy;
    let upstreams: Vec<Value> = (0..policy.upstreams.len()).map(|index| upstream(&live, index)).collect();
    let rate_limits: Vec<Value> = policy
        .rate_limits
        .iter()
        .map(|limit| {
            json!({
                "name": limit.name,
                "count": limit.quota.count(),
                "period_ms": limit.quota.period().as_secs_f64() * 1e3,
                "burst": limit.quota.burst(),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "stage": shared.stage_name(),
        "can_change": policy.server.admin_token_file.is_some(),
        "priorities": policy.priorities.iter().map(|class| &class.name).collect::<Vec<_>>(),
        "upstreams": upstreams,
        "rate_limits": rate_limits,
        "settings": settings(&live),
    })
}

fn upstream(live: &Live, index: usize) -> Value {
    let upstream = &live.policy.upstreams[index];
    let routes = live.policy.routes.iter().filter(|route| route.upstream == index);
    json!({
        "name": upstream.name,
        "limit": limit(&upstream.limit),
        "algorithm": words::algorithm(&upstream.limit),
        "policy_limit": limit(&live.limits[index]),
        "is_set": upstream.limit != live.limits[index],
        "wait_ms": upstream.queue.wait.as_secs_f64() * 1e3,
        "timeout_ms": upstream.timeout.as_secs_f64() * 1e3,
        "endpoints": live.upstreams[index].endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "routes": routes.map(|route| &route.label).collect::<Vec<_>>(),
    })
}

fn limit(limit: &LimitPolicy) -> Value {
    match limit {
        LimitPolicy::Fixed(limit) => json!(limit),
        _ => json!("adaptive"),
    }
}

fn settings(live: &Live) -> Vec<Value> {
    let set_by_operator = |section: &str, of: &str, key: &str| {
        let is_limit = section == "[upstream.concurrency]" && key == "limit";
        let index = live.policy.upstreams.iter().position(|upstream| upstream.name == of)?;
        let set = &live.policy.upstreams[index].limit;
        (is_limit && *set != live.limits[index]).then(|| limit(set).to_string())
    };
    let one = |setting: &tidegate_policy::Setting| {
        let set = set_by_operator(&setting.section, &setting.of, setting.key);
        let from = if set.is_some() { &ValueSource::Operator } else { &setting.from };
        json!({
            "section": setting.section,
            "of": setting.of,
            "key": setting.key,
            "value": set.as_ref().unwrap_or(&setting.value),
            "from": source(from),
            "doc": setting.doc,
        })
    };
    live.settings.iter().map(one).collect()
}

fn source(from: &ValueSource) -> Value {
    match from {
        ValueSource::Line { file, line } => json!({ "kind": "line", "file": file, "line": line }),
        ValueSource::Flag(flag) => json!({ "kind": "flag", "flag": flag }),
        ValueSource::Environment(variable) => json!({ "kind": "environment", "variable": variable }),
        ValueSource::Operator => json!({ "kind": "operator" }),
        ValueSource::Default => json!({ "kind": "default" }),
        ValueSource::LeftOut => json!({ "kind": "left_out" }),
    }
}
