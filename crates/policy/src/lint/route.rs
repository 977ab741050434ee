//! Lints of `[[route]]` and `[[rate_limit]]`.

use std::collections::HashSet;

use tidegate_engine::{Capacity, LimitPolicy};

use super::{At, LintCode, Lints};
use crate::keys::{RATE_LIMIT, ROUTE};
use crate::model::{Policy, RateLimit, Route};
use crate::values::{Rate, grouped};

pub(super) fn check(policy: &Policy, lints: &mut Lints<'_>) {
    for (index, route) in policy.routes.iter().enumerate() {
        reachable(index, route, &policy.routes[..index], lints);
        bulkhead(index, route, policy, lints);
    }
    for (index, limit) in policy.rate_limits.iter().enumerate() {
        rate_limit(index, limit, &policy.routes, lints);
    }
}

fn reachable(index: usize, route: &Route, earlier: &[Route], lints: &mut Lints<'_>) {
    let mut left: HashSet<&str> = route.methods.iter().map(String::as_str).collect();
    let mut takers = Vec::new();
    for other in earlier.iter().filter(|other| other.path.covers(&route.path)) {
        let takes_some = if other.methods.is_empty() {
            left.clear();
            true
        } else {
            let before = left.len();
            left.retain(|method| !other.methods.iter().any(|taken| taken == method));
            left.len() < before
        };
        if takes_some {
            takers.push(format!("`{}`", other.label));
        }
        // A route for all methods is out of reach only behind another for all methods.
        let out_of_reach = left.is_empty() && (other.methods.is_empty() || !route.methods.is_empty());
        if out_of_reach {
            let takers =
                if other.methods.is_empty() { format!("`{}`", other.label) } else { takers.join(" and ") };
            lints.warn(
                LintCode::UnreachableRoute,
                At { section: &ROUTE, index, key: "path" },
                format!("no request gets here: {takers} above takes them all"),
                "the first route that matches wins: put this one further up, or remove it",
            );
            return;
        }
    }
}

fn bulkhead(index: usize, route: &Route, policy: &Policy, lints: &mut Lints<'_>) {
    let Some(bulkhead) = route.bulkhead else { return };
    let upstream = &policy.upstreams[route.upstream];
    let (LimitPolicy::Fixed(limit), Capacity::Fixed(capacity)) = (&upstream.limit, upstream.queue.capacity)
    else {
        return;
    };
    let room = limit.get().saturating_add(capacity);
    if bulkhead.max.get() >= room {
        lints.warn(
            LintCode::BulkheadUnused,
            At { section: &ROUTE, index, key: "concurrency" },
            format!(
                "`{}` never has more than {} in flight and waiting, so this has no effect",
                upstream.name,
                grouped(room)
            ),
            format!("write less than {}, or remove it", grouped(room)),
        );
    }
}

fn rate_limit(index: usize, limit: &RateLimit, routes: &[Route], lints: &mut Lints<'_>) {
    let at = |key| At { section: &RATE_LIMIT, index, key };
    let quota = &limit.quota;
    let per_second = Rate { count: quota.count(), period: quota.period() }.per_second();
    if quota.burst() < per_second {
        lints.warn(
            LintCode::SmallBurst,
            at("burst"),
            format!(
                "{} at once is less than a second's worth of the rate: clients that send in bursts are refused early",
                grouped(quota.burst().get())
            ),
            format!("write {} or more, or leave it out", grouped(per_second.get())),
        );
    }
    let mut limited = routes.iter().filter(|route| !route.exempt);
    let in_use = limit.paths.is_empty()
        || limited.any(|route| limit.paths.iter().any(|path| path.overlaps(&route.path)));
    if !in_use {
        lints.warn(
            LintCode::RateLimitUnused,
            at("paths"),
            "no route that is limited has any of these paths",
            "take the paths from your routes; leave the key out for every route",
        );
    }
}
