//! Lints of who goes before whom: classes, tenants, disciplines.

use tidegate_engine::{Capacity, Discipline, LimitPolicy};

use super::{At, LintCode, Lints};
use crate::keys::{FAIRNESS, PRIORITY, QUEUE, RATE_LIMIT, ROUTE, SERVER, TENANT};
use crate::model::{Policy, RateKey, Route, RoutePriority, TenantKey};

pub(super) fn check(policy: &Policy, lints: &mut Lints<'_>) {
    classes(policy, lints);
    claims(policy, lints);
    for index in 0..policy.upstreams.len() {
        upstream(index, policy, lints);
    }
    tenants(policy, lints);
}

/// An exempt route has no class and no tenant: it passes all of that by.
fn limited(policy: &Policy) -> impl Iterator<Item = (usize, &Route)> {
    policy.routes.iter().enumerate().filter(|(_, route)| !route.exempt)
}

fn server(key: &'static str) -> At {
    At { section: &SERVER, index: 0, key }
}

fn classes(policy: &Policy, lints: &mut Lints<'_>) {
    if policy.priorities.first().is_some_and(|class| class.floor > 0.0) {
        lints.warn(
            LintCode::UselessFloor,
            At { section: &PRIORITY, index: 0, key: "floor" },
            "this is the most important class, from which nothing is taken for others but their floors",
            "remove it: floors are for the classes below",
        );
    }
    let by_header = limited(policy).any(|(_, route)| matches!(route.priority, RoutePriority::Header(_)));
    for (index, class) in policy.priorities.iter().enumerate() {
        let used = by_header
            || policy.server.urgency
            || policy.server.prefetch_priority == Some(index)
            || limited(policy).any(|(_, route)| route.priority == RoutePriority::Class(index));
        let at = At { section: &PRIORITY, index, key: "name" };
        // The classes that are there without being written are there for whoever wants them.
        if !used && lints.given(at).is_some() {
            lints.warn(
                LintCode::ClassUnused,
                at,
                format!("no request is ever in the class `{}`", class.name),
                format!("remove it, or write priority = \"{}\" in a [[route]]", class.name),
            );
        }
    }
}

/// What clients claim in headers.
fn claims(policy: &Policy, lints: &mut Lints<'_>) {
    let nobody_trusted = policy.server.trusted_proxies.is_empty();
    let ceiling = server("priority_ceiling");
    let default = policy.default_priority();
    for (index, route) in limited(policy) {
        if let (RoutePriority::Header(header), true) = (&route.priority, nobody_trusted) {
            if policy.server.priority_ceiling < default {
                let class = &policy.priorities[policy.server.priority_ceiling].name;
                lints.warn(
                    LintCode::HighCeiling,
                    ceiling,
                    format!("anybody who sends `{header}: {class}` is in the class `{class}`"),
                    "name the proxies that set this header in `trusted_proxies`, and leave the ceiling out",
                );
                return;
            }
            if lints.given(ceiling).is_none() && default > 0 {
                lints.warn(
                    LintCode::ClaimIgnored,
                    At { section: &ROUTE, index, key: "priority" },
                    format!(
                        "nobody is trusted, so that `{header}` can only make requests less important than `{}`",
                        policy.priorities[default].name
                    ),
                    "name the proxies that set it in `trusted_proxies`, or say so with `priority_ceiling`",
                );
                return;
            }
        }
    }
}

fn upstream(index: usize, policy: &Policy, lints: &mut Lints<'_>) {
    let upstream = &policy.upstreams[index];
    let queue = |key| At { section: &QUEUE, index, key };
    let share = At { section: &FAIRNESS, index, key: "tenant_share" };
    let routes: Vec<(usize, &Route)> = limited(policy).filter(|(_, route)| route.upstream == index).collect();
    if upstream.queue.capacity == Capacity::Fixed(0) {
        let several = routes.iter().any(|(_, route)| route.priority != routes[0].1.priority)
            || routes.iter().any(|(_, route)| matches!(route.priority, RoutePriority::Header(_)));
        if several || lints.given(queue("discipline")).is_some() {
            lints.warn(
                LintCode::NobodyWaits,
                queue("capacity"),
                "nobody waits here, so that nobody goes before anybody",
                "give the queue some places, or leave `capacity` out",
            );
        }
    }
    let looks = matches!(upstream.queue.discipline, Discipline::Forecast | Discipline::Codel);
    if !looks && lints.given(queue("standing_wait")).is_some() {
        lints.warn(
            LintCode::StandingWaitUnused,
            queue("standing_wait"),
            "only the disciplines \"forecast\" and \"codel\" look at it",
            "remove one of `standing_wait` and `discipline`",
        );
    }
    let changes = |route: &Route| {
        let safe = |method: &String| ["GET", "HEAD", "OPTIONS"].contains(&method.as_str());
        route.methods.is_empty() || !route.methods.iter().all(safe)
    };
    if upstream.queue.discipline == Discipline::AdaptiveLifo
        && let Some((_, route)) = routes.iter().find(|(_, route)| changes(route))
    {
        lints.warn(
            LintCode::OrderLost,
            queue("discipline"),
            format!("requests to `{}` that change something may overtake each other", route.label),
            "take it where order does not matter, and give the route the methods that only read",
        );
    }
    if upstream.tenant_share.is_some() && routes.iter().all(|(_, route)| route.tenant.is_none()) {
        lints.warn(
            LintCode::ShareUnused,
            share,
            format!("no route to `{}` tells tenants apart", upstream.name),
            "write `tenant` in a [[route]], or remove this",
        );
    }
    let LimitPolicy::Fixed(limit) = upstream.limit else { return };
    for (index, _) in routes.iter().filter(|(_, route)| route.cost > limit) {
        lints.warn(
            LintCode::CostBeyondLimit,
            At { section: &ROUTE, index: *index, key: "cost" },
            format!("`{}` has {limit} slots: the request takes all of them, and no more", upstream.name),
            format!("write {limit} or less"),
        );
    }
}

fn tenants(policy: &Policy, lints: &mut Lints<'_>) {
    let nobody_trusted = policy.server.trusted_proxies.is_empty();
    let is_header = |route: &Route| matches!(route.tenant, Some(TenantKey::Header(_)));
    for (index, route) in limited(policy) {
        let at = At { section: &ROUTE, index, key: "tenant" };
        let local = policy.server.listen.ip().to_canonical().is_loopback();
        if route.tenant == Some(TenantKey::ClientIp) && nobody_trusted && local {
            lints.warn(
                LintCode::TenantsAlike,
                at,
                format!("clients of {} are on this machine, and have one address", policy.server.listen),
                "name the proxy that they come through in `trusted_proxies`, such as \"127.0.0.1\"",
            );
        }
        if is_header(route) && nobody_trusted && !policy.server.untrusted_tenants {
            lints.warn(
                LintCode::TenantClaimIgnored,
                at,
                "with untrusted_tenants = false and without `trusted_proxies` nobody's header counts",
                "name the proxies that set it in `trusted_proxies`",
            );
        }
    }
    if !limited(policy).any(|(_, route)| is_header(route)) && !policy.tenants.is_empty() {
        lints.warn(
            LintCode::TenantUnused,
            At { section: &TENANT, index: 0, key: "name" },
            "no route takes its tenants from a header, so that no request is ever on behalf of this one",
            "write tenant = \"header:NAME\" in a [[route]], or remove it",
        );
    }
    for (index, limit) in policy.rate_limits.iter().enumerate() {
        let applies = |route: &Route| {
            limit.paths.is_empty() || limit.paths.iter().any(|path| path.overlaps(&route.path))
        };
        let mut told_apart = limited(policy).filter(|(_, route)| applies(route) && route.tenant.is_some());
        if limit.key == RateKey::Tenant && told_apart.next().is_none() {
            lints.warn(
                LintCode::RateLimitTenantUnknown,
                At { section: &RATE_LIMIT, index, key: "key" },
                "no route that it applies to tells tenants apart, so that all requests share one bucket",
                "write `tenant` in a [[route]], or take another key",
            );
        }
    }
}
