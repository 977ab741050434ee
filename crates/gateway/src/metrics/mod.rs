//! Counters and histograms. Whoever counts holds a reference to the very counter: there are no look-ups by label on
//! the path of a request, and the number of series is fixed by the policy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_engine::{PRIORITIES_MAX, Priority, Reason};

mod histogram;
pub(crate) use histogram::Histogram;

mod spread;
pub(crate) use spread::{BUCKETS, Spread, percentile};

mod names;
#[cfg(feature = "otlp")]
pub(crate) use names::{Kind, Metric};

mod page;
pub(crate) use page::Format;

mod expose;
pub(crate) use expose::expose;
#[cfg(feature = "otlp")]
pub(crate) use expose::fill;

mod stats;
pub(crate) use stats::stats;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Adds a time, in nanoseconds.
    pub(crate) fn add_duration(&self, duration: Duration) {
        self.add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How many connections of a side are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenConnections(Arc<AtomicI64>);

/// Counts one open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<AtomicI64>);

impl OpenConnections {
    pub(crate) fn open(&self) -> Open {
        self.0.fetch_add(1, Relaxed);
        Open(self.0.clone())
    }

    pub(crate) fn now_open(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// How a request ended, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client has had the upstream's answer.
    Success,
    /// The same, but it was a 5xx.
    ServerError,
    /// Refused before anything was sent to the upstream.
    Rejected,
    /// The upstream could not be reached, broke off, or took too long.
    Failed,
    /// The client left first.
    ClientLeft,
    /// It was no request that we could pass on.
    BadRequest,
}

impl Ending {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Success, "success"),
        (Self::ServerError, "server_error"),
        (Self::Rejected, "rejected"),
        (Self::Failed, "failed"),
        (Self::ClientLeft, "client_left"),
        (Self::BadRequest, "bad_request"),
    ];
}

/// What one route has counted in one class.
#[derive(Debug, Default)]
pub(crate) struct RouteStats {
    /// Requests whose class is known.
    pub(crate) arrived: Counter,
    /// Answers of status 2xx or 3xx that reached a client still waiting.
    pub(crate) goodput: Counter,
    endings: [Counter; Ending::ALL.len()],
    rejected: [Counter; Reason::ALL.len()],
}

impl RouteStats {
    /// Whether there is anything to show.
    pub(crate) fn has_counted(&self) -> bool {
        self.arrived.get() > 0 || self.endings.iter().any(|counter| counter.get() > 0)
    }

    pub(crate) fn ended_total(&self) -> u64 {
        self.endings.iter().map(Counter::get).sum()
    }

    pub(crate) fn rejected(&self, reason: Reason) -> u64 {
        self.rejected[reason as usize].get()
    }

    pub(crate) fn ended(&self, ending: Ending, reason: Option<Reason>) {
        self.endings[ending as usize].add(1);
        if let Some(reason) = reason {
            self.rejected[reason as usize].add(1);
        }
    }
}

/// What one upstream has counted, beside its gate.
#[derive(Debug, Default)]
pub(crate) struct UpstreamStats {
    /// Requests that a route sent here.
    pub(crate) received: Counter,
    /// Requests that were sent on.
    pub(crate) forwarded: Counter,
    /// Answers that went through to their end.
    pub(crate) completed: Counter,
    /// Requests that did not get an answer from upstream, by reason.
    pub(crate) rejected: [Counter; Reason::ALL.len()],
    /// The same by class, without clients that left.
    pub(crate) refused_by_class: ByClass,
    /// How long requests waited that had to.
    pub(crate) queue_wait: Histogram,
    /// How many of them waited for most of the time that they might.
    pub(crate) queue_waits_long: Counter,
    /// From the dispatch to the head of the answer.
    pub(crate) answering: Histogram,
    /// Nanoseconds that the upstream spent on answers that nobody waited for.
    pub(crate) wasted: Counter,
    /// Answers of status 2xx or 3xx that reached a client still waiting.
    pub(crate) goodput: Counter,
    /// From the arrival of a request to the end of its answer.
    pub(crate) whole: Spread,
    /// From the dispatch to the head of the answer.
    pub(crate) head: Spread,
    /// The waits in the queue of each class, the most important first.
    pub(crate) waits: [Waits; PRIORITIES_MAX],
}

impl UpstreamStats {
    /// A request of this class has waited so long, of so long that it might.
    pub(crate) fn waited(&self, class: Priority, wait: Duration, budget: Duration) {
        self.queue_wait.observe(wait);
        if is_long(wait, budget) {
            self.queue_waits_long.add(1);
        }
        if let Some(waits) = self.waits.get(usize::from(class.0)) {
            waits.observe(wait);
        }
    }
}

/// More than four fifths of the budget. Counted here, because the bounds of a histogram are the same whatever the budget is,
/// and between two of them nobody knows who was over it.
const fn is_long(wait: Duration, budget: Duration) -> bool {
    wait.as_nanos() * 5 > budget.as_nanos() * 4
}

/// Waits that are over.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) count: Counter,
    pub(crate) nanos: Counter,
    longest: AtomicU64,
}

impl Waits {
    pub(crate) fn observe(&self, wait: Duration) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.count.add(1);
        self.nanos.add(nanos);
        self.longest.fetch_max(nanos, Relaxed);
    }

    /// The longest since this was last asked. There is one who asks: the history.
    pub(crate) fn take_longest(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Relaxed))
    }
}

/// How many of something there are, and the most that there ever were.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    now: AtomicU64,
    most: AtomicU64,
}

impl Occupancy {
    pub(crate) fn enter(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        // Read first: the highest mark is rarely passed, and a write takes the line from the other workers.
        if now > self.most.load(Relaxed) {
            self.most.fetch_max(now, Relaxed);
        }
    }

    pub(crate) fn leave(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    pub(crate) fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }
}

/// One counter for each class. Whoever counts holds the counter; names are looked up at a reload only, and one that comes
/// back goes on with what it had counted.
#[derive(Debug, Default)]
pub(crate) struct ByClass(Mutex<BTreeMap<String, Arc<Counter>>>);

/// Names of at most so many classes are kept, those of earlier policies included.
const CLASSES_KEPT_MAX: usize = 64;

impl ByClass {
    pub(crate) fn counter(&self, name: &str) -> Arc<Counter> {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= CLASSES_KEPT_MAX && !counters.contains_key(name) {
            // Those in use are held by more than this table.
            let unused = counters.iter().find(|(_, counter)| Arc::strong_count(counter) == 1);
            if let Some(name) = unused.map(|(name, _)| name.clone()) {
                counters.remove(&name);
            }
        }
        counters.entry(name.to_owned()).or_default().clone()
    }

    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.iter().map(|(name, counter)| (name.clone(), counter.get())).collect()
    }
}

/// What belongs to no route and no upstream.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) client_connections: OpenConnections,
    pub(crate) upstream_connections: OpenConnections,
    pub(crate) accept_errors: Counter,
    pub(crate) goodput: Counter,
    /// Requests that were refused before they had a route.
    pub(crate) unrouted: RouteStats,
    /// Nanoseconds that upstreams spent on answers that nobody waited for, those of earlier policies included.
    pub(crate) wasted: Counter,
    pub(crate) rejection: Histogram,
    pub(crate) reloads_done: Counter,
    pub(crate) reloads_refused: Counter,
    pub(crate) spans: Spans,
}

/// What became of spans for a collector.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    /// It has taken them.
    pub(crate) exported: Counter,
    /// Too many waited to be sent.
    pub(crate) dropped: Counter,
    /// It would not take them, or was not there.
    pub(crate) failed: Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_its_own_index() {
        for (index, (ending, _)) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize, index, "{ending:?}");
        }
    }

    /// Three in a hundred wait a little longer than a bound of the histogram, which is no more than half of their time.
    #[test]
    fn long_waits_are_counted_by_the_budget_and_not_by_bounds() {
        let (stats, budget) = (UpstreamStats::default(), Duration::from_millis(500));
        let wait = |millis: u64, times: usize| {
            (0..times).for_each(|_| stats.waited(Priority(0), Duration::from_millis(millis), budget));
        };
        wait(250, 97);
        wait(260, 3);
        wait(400, 1);
        assert_eq!(stats.queue_waits_long.get(), 0);
        wait(401, 1);
        wait(500, 2);
        assert_eq!((stats.queue_waits_long.get(), stats.waits[0].count.get()), (3, 104));
        stats.waited(Priority(u8::MAX), Duration::MAX, Duration::ZERO);
        assert_eq!(stats.queue_waits_long.get(), 4);
    }

    /// C6: names of classes come from the policy, but a policy can be reloaded for ever.
    #[test]
    fn classes_are_kept_within_a_bound_and_never_lost_while_in_use() {
        let classes = ByClass::default();
        let held = classes.counter("a");
        held.add(1);
        for round in 0..10 * CLASSES_KEPT_MAX {
            classes.counter(&format!("b{round}")).add(1);
        }
        assert_eq!(classes.all().len(), CLASSES_KEPT_MAX);
        assert_eq!(classes.counter("a").get(), 1);
    }
}
