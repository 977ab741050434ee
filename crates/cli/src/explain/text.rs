//! The explanation for readers: one line for each thing that is decided, in the order in which it is.

use std::fmt::Write as _;

use tidegate_engine::{Capacity, LimitPolicy};
use tidegate_gateway::{Explained, Explanation};
use tidegate_policy::{Policy, TenantKey, Upstream, words};

pub(crate) fn of(policy: &Policy, asked: &str, explained: &Explained) -> String {
    let mut text = format!("{}\n\n", plain(asked));
    match explained {
        Explained::Refused { status, why } => {
            line(&mut text, "answer", &format!("{status}: {why}"));
        }
        Explained::NotFound { path } => {
            line(&mut text, "route", &format!("none is for {}", plain(path)));
            line(&mut text, "answer", "404 with the reason `not_found`; nothing is sent to any upstream");
        }
        Explained::Routed(found) => routed(&mut text, policy, found),
    }
    text
}

fn routed(text: &mut String, policy: &Policy, found: &Explanation) {
    let route = &policy.routes[found.route];
    let upstream = &policy.upstreams[route.upstream];
    line(text, "route", &format!("{}, to {}", route.label, upstream.name));
    line(text, "passed on as", &plain(&found.target));
    let by = if found.trusted { ", as a trusted proxy tells it" } else { "" };
    line(text, "client", &format!("{}{by}", found.client));
    if route.exempt {
        line(text, "exempt", "it takes no slot and uses no rate limit; at most 256 at once");
        line(text, "deadline", &deadline(found, upstream));
        return;
    }
    let class = &policy.priorities[found.priority];
    let floor = if class.floor > 0.0 { format!(", with a floor of {}", class.floor) } else { String::new() };
    let place = format!("{} of {}", found.priority + 1, policy.priorities.len());
    line(text, "class", &format!("{} ({place}{floor}): {}", class.name, plain(&found.because)));
    line(text, "tenant", &tenant(found));
    line(text, "cost", &slots(found.cost.get()));
    line(text, "attempt", &attempt(found, upstream));
    for limit in &found.rate_limits {
        let rule = &policy.rate_limits[limit.rule];
        let (count, period, burst) = (rule.quota.count(), rule.quota.period(), rule.quota.burst());
        let counted = plain(&limit.counted);
        line(
            text,
            "rate limit",
            &format!("{}: {count} in {period:?}, {burst} at once, for {counted}", rule.name),
        );
    }
    if let Some(bulkhead) = route.bulkhead {
        let status = if bulkhead.is_quota { 429 } else { 503 };
        line(text, "bulkhead", &format!("at most {} of the route inside, then {status}", bulkhead.max));
    }
    line(text, "deadline", &deadline(found, upstream));
    line(text, "breaker", &breaker(upstream));
    line(text, "limit", &limit(upstream));
    line(text, "queue", &queue(upstream));
    if let Some(share) = upstream.tenant_share {
        line(text, "tenant share", &format!("at most {share} of the limit while it binds"));
    }
}

fn tenant(found: &Explanation) -> String {
    let Some(tenant) = &found.tenant else { return "nobody is told from anybody".to_owned() };
    match (&tenant.key, &tenant.name) {
        (TenantKey::ClientIp, name) => format!("{}, by address", name.as_deref().unwrap_or_default()),
        (TenantKey::Header(header), Some(name)) => {
            format!("{}, by `{header}`, of weight {}", plain(name), tenant.weight)
        }
        (TenantKey::Header(header), None) => format!("one with all who have no `{header}` that is believed"),
    }
}

fn attempt(found: &Explanation, upstream: &Upstream) -> String {
    let budget = upstream.retries;
    if !budget.damp {
        return "first or not makes no difference".to_owned();
    }
    if let Some(field) = &found.retry {
        return format!(
            "a retry by `{field}`: it ranks below first tries, and a budget of {} % and {} a second pays for it",
            budget.percent, budget.per_second
        );
    }
    let known = if found.recognised {
        "if it is refused and comes back, it is known and counts as a retry"
    } else {
        "nothing would tell another try from another request"
    };
    format!("the first; {known}")
}

fn deadline(found: &Explanation, upstream: &Upstream) -> String {
    let timeout = format!("the upstream has {:?} to answer, then 504", upstream.timeout);
    match (found.deadline, &found.deadline_from) {
        (Some(deadline), Some(from)) => format!("{deadline:?}, says {from}; {timeout}"),
        _ => format!("none is said; {timeout}"),
    }
}

fn breaker(upstream: &Upstream) -> String {
    let Some(breaker) = &upstream.breaker else { return "none".to_owned() };
    let policy = &breaker.policy;
    format!(
        "opens after {} connections in a row that fail, or when {} of at least {} requests in {:?} fail; then 503",
        policy.connect_failures, policy.failure_ratio, policy.min_requests, policy.window
    )
}

fn limit(upstream: &Upstream) -> String {
    let range = |min, max, initial| format!("from {min} to {max}, at first {initial}");
    let words = match &upstream.limit {
        LimitPolicy::Fixed(limit) => return slots(limit.get()),
        LimitPolicy::Ebb(ebb) => range(ebb.min, ebb.max, ebb.initial),
        LimitPolicy::Aimd(aimd) => range(aimd.min, aimd.max, aimd.initial),
        LimitPolicy::Vegas(it) | LimitPolicy::Gradient2(it) => range(it.min, it.max, it.initial),
    };
    format!("adaptive ({}), {words}", words::algorithm(&upstream.limit).unwrap_or_default())
}

fn queue(upstream: &Upstream) -> String {
    let queue = &upstream.queue;
    let places = match queue.capacity {
        Capacity::Fixed(0) => return "none: what finds no free slot is refused at once".to_owned(),
        Capacity::Fixed(places) => format!("{places} places"),
        Capacity::Derived => "as many places as can be served in that time".to_owned(),
    };
    format!("at most {:?}, {places}, discipline {}", queue.wait, words::discipline(queue.discipline))
}

fn slots(number: u32) -> String {
    if number == 1 { "1 slot".to_owned() } else { format!("{number} slots") }
}

fn line(text: &mut String, what: &str, says: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "  {what:<13} {says}");
}

/// Without anything that a terminal would obey.
fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
