//! Which samples there are, and where their values come from. How they are written is `page.rs`'s affair.

use tidegate_engine::{Reason, Snapshot};
use tidegate_policy::Upstream;

use super::Ending;
use super::names::{self, Metric};
use super::page::{Format, Page};
use crate::gateway::Shared;
use crate::live::Live;
use crate::returns::Asked;
use crate::upstream::Decision;

/// Everything, as text.
pub(crate) fn expose(shared: &Shared, format: Format) -> String {
    fill(shared, format).end()
}

/// Everything, in any format.
pub(crate) fn fill(shared: &Shared, format: Format) -> Page {
    let live = shared.live();
    let mut page = Page::new(format);
    routes(&mut page, shared, &live);
    upstreams(&mut page, &live);
    times(&mut page, shared, &live);
    protection(&mut page, shared, &live);
    gateway(&mut page, shared);
    page
}

/// What alerts take for no loss, and what they take for one of the gateway's own.
const ASKED_FOR: [Reason; 3] = [Reason::RateLimited, Reason::TenantLimit, Reason::GatewayOverloaded];

fn routes(page: &mut Page, shared: &Shared, live: &Live) {
    let current = live.counted().map(|(route, class, stats)| (route, class, stats.as_ref()));
    let retired =
        live.retired.iter().map(|((route, class), stats)| (route.as_str(), class.as_str(), &**stats));
    // What had no route has no class.
    let all: Vec<_> = current.chain(retired).chain([("", "", &shared.metrics.unrouted)]).collect();
    page.head(&names::REQUESTS);
    for (route, class, stats) in &all {
        for (ending, outcome) in Ending::ALL {
            let count = stats.endings[ending as usize].get();
            page.sample(&names::REQUESTS, [route, class, outcome], count as f64);
        }
    }
    page.head(&names::REJECTED);
    for (route, class, stats) in &all {
        for reason in Reason::ALL {
            let count = stats.rejected[reason as usize].get();
            // Most reasons never occur on most routes; those are left out. Not those that alerts ask for: a series that
            // begins with what it has counted already has no rate.
            if count > 0 || ASKED_FOR.contains(&reason) {
                page.sample(&names::REJECTED, [route, class, reason.name()], count as f64);
            }
        }
    }
    page.single(&names::GOODPUT, shared.metrics.goodput.get() as f64);
    page.head(&names::DEADLINE);
    let total = |reason: Reason| {
        all.iter().map(|(_, _, stats)| stats.rejected[reason as usize].get()).sum::<u64>() as f64
    };
    for (place, reason) in [("client", Reason::Deadline), ("upstream", Reason::UpstreamTimeout)] {
        page.sample(&names::DEADLINE, [place], total(reason));
    }
    page.single(&names::WASTED, shared.metrics.wasted.get() as f64 / 1e9);
}

fn upstreams(page: &mut Page, live: &Live) {
    let snapshots: Vec<_> = live.upstreams.iter().map(|one| (&one.policy, one.gate.snapshot())).collect();
    type Value = fn(&Upstream, &Snapshot) -> f64;
    let gauge = |page: &mut Page, metric: &Metric, value: Value| {
        page.head(metric);
        for (upstream, snapshot) in &snapshots {
            page.sample(metric, [&upstream.name], value(upstream, snapshot));
        }
    };
    gauge(page, &names::IN_FLIGHT, |_, snapshot| snapshot.in_flight.into());
    gauge(page, &names::ORPHANS, |_, snapshot| snapshot.orphans.into());
    gauge(page, &names::LIMIT, |_, snapshot| snapshot.limit.into());
    gauge(page, &names::LIMIT_MIN, |upstream, _| upstream.limit.least().get().into());
    gauge(page, &names::LIMIT_MAX, |upstream, _| upstream.limit.most().get().into());
    page.head(&names::QUEUE_DEPTH);
    for (upstream, snapshot) in &snapshots {
        for (class, depth) in live.policy.priorities.iter().zip(snapshot.waiting_by_priority) {
            page.sample(&names::QUEUE_DEPTH, [&upstream.name, &class.name], depth.into());
        }
    }
    gauge(page, &names::QUEUE_CAPACITY, |_, snapshot| snapshot.queue_capacity.into());
    gauge(page, &names::QUEUE_BUDGET, |upstream, _| upstream.queue.wait.as_secs_f64());
}

fn times(page: &mut Page, shared: &Shared, live: &Live) {
    page.head(&names::QUEUE_WAIT);
    for one in &live.upstreams {
        page.histogram(&names::QUEUE_WAIT, [&one.policy.name], &one.stats.queue_wait);
    }
    page.head(&names::QUEUE_LONG);
    for one in &live.upstreams {
        page.sample(&names::QUEUE_LONG, [&one.policy.name], one.stats.queue_waits_long.get() as f64);
    }
    page.head(&names::UPSTREAM);
    for one in &live.upstreams {
        page.histogram(&names::UPSTREAM, [&one.policy.name], &one.stats.answering);
    }
    page.head(&names::REJECTION);
    page.histogram(&names::REJECTION, [], &shared.metrics.rejection);
}

fn protection(page: &mut Page, shared: &Shared, live: &Live) {
    let now = shared.clock.now();
    page.head(&names::BREAKER_STATE);
    for one in &live.upstreams {
        let state = f64::from(one.breaker_state(now) as u8);
        page.sample(&names::BREAKER_STATE, [&one.policy.name], state);
    }
    page.head(&names::RETRIES);
    for one in &live.upstreams {
        for (decision, name) in Decision::ALL {
            let count = one.retries.decided(decision) as f64;
            page.sample(&names::RETRIES, [&one.policy.name, name], count);
        }
    }
    page.head(&names::RETRY_BUDGET);
    for one in &live.upstreams {
        let left = one.gate.snapshot().retries_left.unwrap_or_default();
        page.sample(&names::RETRY_BUDGET, [&one.policy.name], left.into());
    }
    page.head(&names::RATE_LIMIT_KEYS);
    for rule in &live.rules {
        page.sample(&names::RATE_LIMIT_KEYS, [&rule.name], rule.keys_in_use(now) as f64);
    }
    page.head(&names::RATE_LIMIT_OVERFLOWED);
    for rule in &live.rules {
        page.sample(&names::RATE_LIMIT_OVERFLOWED, [&rule.name], rule.overflowed() as f64);
    }
    page.head(&names::TOLD_RETURNS);
    for asked in Asked::ALL {
        let counts = shared.returns.counts(asked);
        for (result, counter) in
            [("admitted", &counts.admitted), ("refused", &counts.refused), ("early", &counts.early)]
        {
            page.sample(&names::TOLD_RETURNS, [asked.status(), result], counter.get() as f64);
        }
    }
}

fn gateway(page: &mut Page, shared: &Shared) {
    let metrics = &shared.metrics;
    page.head(&names::CONNECTIONS);
    for (side, connections) in
        [("client", &metrics.client_connections), ("upstream", &metrics.upstream_connections)]
    {
        page.sample(&names::CONNECTIONS, [side, "open"], connections.now_open() as f64);
    }
    let upgraded = shared.upgrades_max.saturating_sub(shared.upgrades.available_permits());
    page.sample(&names::CONNECTIONS, ["client", "upgraded"], upgraded as f64);
    if let Some(backlog) = crate::listen::backlog(shared.port) {
        page.single(&names::BACKLOG, f64::from(backlog));
    }
    page.single(&names::ACCEPT_ERRORS, metrics.accept_errors.get() as f64);
    page.single(&names::DRAINING, f64::from(u8::from(!shared.is_serving())));
    page.head(&names::RELOADS);
    for (result, counter) in [("ok", &metrics.reloads_done), ("refused", &metrics.reloads_refused)] {
        page.sample(&names::RELOADS, [result], counter.get() as f64);
    }
    page.head(&names::SPANS);
    let spans = &metrics.spans;
    for (result, counter) in
        [("exported", &spans.exported), ("dropped", &spans.dropped), ("failed", &spans.failed)]
    {
        page.sample(&names::SPANS, [result], counter.get() as f64);
    }
    page.single(&names::LOG_LOST, shared.log.lost.get() as f64);
    page.single(&names::LOG_SKIPPED, shared.log.skipped.get() as f64);
    page.head(&names::BUILD_INFO);
    page.sample(&names::BUILD_INFO, [env!("CARGO_PKG_VERSION")], 1.0);
}
