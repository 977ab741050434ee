//! Writes all metrics in the Prometheus text format, version 0.0.4.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use tidegate_engine::{Reason, Snapshot};

use super::names::{self, Name};
use super::{Ending, Histogram};
use crate::gateway::Shared;
use crate::live::Live;
use crate::returns::Asked;
use crate::upstream::Decision;

/// Everything, as text.
pub(crate) fn expose(shared: &Shared) -> String {
    let live = shared.live();
    let mut page = Page { text: String::with_capacity(16 * 1024) };
    routes(&mut page, shared, &live);
    upstreams(&mut page, &live);
    protection(&mut page, shared, &live);
    gateway(&mut page, shared, &live);
    page.text
}

struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, (name, kind, help): Name) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if index == 0 { '{' } else { ',' });
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn single(&mut self, name: Name, value: f64) {
        self.head(name);
        self.sample(name.0, &[], value);
    }

    fn histogram(&mut self, name: Name, histogram: &Histogram) {
        self.head(name);
        let bucket = format!("{}_bucket", name.0);
        let cumulative = histogram.cumulative();
        for (bound, count) in &cumulative {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_string() };
            self.sample(&bucket, &[("le", &bound)], *count as f64);
        }
        self.sample(&format!("{}_sum", name.0), &[], histogram.seconds());
        self.sample(
            &format!("{}_count", name.0),
            &[],
            cumulative.last().map_or(0, |(_, count)| *count) as f64,
        );
    }
}

fn routes(page: &mut Page, shared: &Shared, live: &Live) {
    let current = live.counted().map(|(route, class, stats)| (route, class, stats.as_ref()));
    let retired =
        live.retired.iter().map(|((route, class), stats)| (route.as_str(), class.as_str(), &**stats));
    // What had no route has no class.
    let all: Vec<_> = current.chain(retired).chain([("", "", &shared.metrics.unrouted)]).collect();
    page.head(names::REQUESTS);
    for (route, class, stats) in &all {
        for (ending, outcome) in Ending::ALL {
            let labels = [("route", *route), ("priority", *class), ("outcome", outcome)];
            page.sample(names::REQUESTS.0, &labels, stats.endings[ending as usize].get() as f64);
        }
    }
    page.head(names::REJECTED);
    for (route, class, stats) in &all {
        for reason in Reason::ALL {
            let count = stats.rejected[reason as usize].get();
            // Most reasons never occur on most routes; those are left out.
            if count > 0 {
                let labels = [("route", *route), ("priority", *class), ("reason", reason.name())];
                page.sample(names::REJECTED.0, &labels, count as f64);
            }
        }
    }
    page.head(names::DEADLINE);
    let total = |reason: Reason| {
        all.iter().map(|(_, _, stats)| stats.rejected[reason as usize].get()).sum::<u64>() as f64
    };
    for (place, reason) in [("client", Reason::Deadline), ("upstream", Reason::UpstreamTimeout)] {
        page.sample(names::DEADLINE.0, &[("where", place)], total(reason));
    }
}

fn upstreams(page: &mut Page, live: &Live) {
    let snapshots: Vec<_> =
        live.upstreams.iter().map(|one| (one.policy.name.as_str(), one.gate.snapshot())).collect();
    type Value = fn(&Snapshot) -> u32;
    let rows: [(Name, Value); 4] = [
        (names::IN_FLIGHT, |snapshot| snapshot.in_flight),
        (names::ORPHANS, |snapshot| snapshot.orphans),
        (names::LIMIT, |snapshot| snapshot.limit),
        (names::QUEUE_CAPACITY, |snapshot| snapshot.queue_capacity),
    ];
    for (name, value) in rows {
        page.head(name);
        for (upstream, snapshot) in &snapshots {
            page.sample(name.0, &[("upstream", *upstream)], f64::from(value(snapshot)));
        }
    }
    page.head(names::QUEUE_DEPTH);
    for (upstream, snapshot) in &snapshots {
        for (class, depth) in live.policy.priorities.iter().zip(snapshot.waiting_by_priority) {
            let labels = [("upstream", *upstream), ("priority", class.name.as_str())];
            page.sample(names::QUEUE_DEPTH.0, &labels, f64::from(depth));
        }
    }
}

fn protection(page: &mut Page, shared: &Shared, live: &Live) {
    let now = shared.clock.now();
    page.head(names::BREAKER_STATE);
    for one in &live.upstreams {
        let state = f64::from(one.breaker_state(now) as u8);
        page.sample(names::BREAKER_STATE.0, &[("upstream", &one.policy.name)], state);
    }
    page.head(names::RETRIES);
    for one in &live.upstreams {
        for (decision, name) in Decision::ALL {
            let labels = [("upstream", one.policy.name.as_str()), ("decision", name)];
            page.sample(names::RETRIES.0, &labels, one.retries.decided(decision) as f64);
        }
    }
    page.head(names::RETRY_BUDGET);
    for one in &live.upstreams {
        let left = one.gate.snapshot().retries_left.unwrap_or_default();
        page.sample(names::RETRY_BUDGET.0, &[("upstream", &one.policy.name)], left.into());
    }
}

fn gateway(page: &mut Page, shared: &Shared, live: &Live) {
    let metrics = &shared.metrics;
    page.histogram(names::QUEUE_WAIT, &metrics.queue_wait);
    page.histogram(names::REJECTION, &metrics.rejection);
    page.histogram(names::UPSTREAM, &metrics.upstream);
    page.head(names::CONNECTIONS);
    for (side, connections) in
        [("client", &metrics.client_connections), ("upstream", &metrics.upstream_connections)]
    {
        let labels = [("side", side), ("state", "open")];
        page.sample(names::CONNECTIONS.0, &labels, connections.0.load(Relaxed) as f64);
    }
    let upgraded = shared.upgrades_max.saturating_sub(shared.upgrades.available_permits());
    page.sample(names::CONNECTIONS.0, &[("side", "client"), ("state", "upgraded")], upgraded as f64);
    if let Some(backlog) = crate::listen::backlog(shared.port) {
        page.single(names::BACKLOG, f64::from(backlog));
    }
    page.single(names::ACCEPT_ERRORS, metrics.accept_errors.get() as f64);
    page.single(names::GOODPUT, metrics.goodput.get() as f64);
    page.single(names::WASTED, metrics.wasted.get() as f64 / 1e9);
    page.head(names::RATE_LIMIT_KEYS);
    for rule in &live.rules {
        let keys = rule.keys_in_use(shared.clock.now()) as f64;
        page.sample(names::RATE_LIMIT_KEYS.0, &[("rule", &rule.name)], keys);
    }
    page.head(names::RATE_LIMIT_OVERFLOWED);
    for rule in &live.rules {
        page.sample(names::RATE_LIMIT_OVERFLOWED.0, &[("rule", &rule.name)], rule.overflowed() as f64);
    }
    page.head(names::TOLD_RETURNS);
    for asked in Asked::ALL {
        let counts = shared.returns.counts(asked);
        for (result, counter) in
            [("admitted", &counts.admitted), ("refused", &counts.refused), ("early", &counts.early)]
        {
            let labels = [("status", asked.status()), ("result", result)];
            page.sample(names::TOLD_RETURNS.0, &labels, counter.get() as f64);
        }
    }
    page.head(names::RELOADS);
    for (result, counter) in [("ok", &metrics.reloads_done), ("refused", &metrics.reloads_refused)] {
        page.sample(names::RELOADS.0, &[("result", result)], counter.get() as f64);
    }
    page.single(names::LOG_LOST, shared.log.lost.get() as f64);
    page.single(names::LOG_SKIPPED, shared.log.skipped.get() as f64);
    page.head(names::BUILD_INFO);
    page.sample(names::BUILD_INFO.0, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}
