//! Every metric, once: its name, its type, its unit, its labels and what it means. `docs/metrics.md` has the same table,
//! and a test compares the two with what is exposed.
//!
//! Labels are names that stand in the policy, or words of closed lists. Nothing that a client sends is ever one.

/// What a metric does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts times by how long they were.
    Histogram,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether it is measured in seconds, which its name then says; all others count things.
    pub(crate) seconds: bool,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

impl Metric {
    const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind, seconds: false, labels, help }
    }

    const fn seconds(self) -> Self {
        Self { seconds: true, ..self }
    }
}

/// Writes the constants and the list of all of them, so that none can be missing there.
macro_rules! metrics {
    ($($constant:ident = $metric:expr;)*) => {
        $(pub(super) const $constant: Metric = $metric;)*

        /// All of them.
        #[cfg(test)]
        pub(super) const ALL: &[Metric] = &[$($constant),*];
    };
}

use Kind::{Counter, Gauge, Histogram};

metrics! {
    REQUESTS = Metric::new(
        "tidegate_requests_total",
        Counter,
        &["route", "priority", "outcome"],
        "Requests by how they ended.",
    );
    REJECTED = Metric::new(
        "tidegate_rejected_total",
        Counter,
        &["route", "priority", "reason"],
        "Requests that did not get their upstream's answer, by reason.",
    );
    GOODPUT = Metric::new(
        "tidegate_goodput_total",
        Counter,
        &[],
        "Answers of status 2xx or 3xx that reached a client still waiting.",
    );
    DEADLINE = Metric::new(
        "tidegate_deadline_exceeded_total",
        Counter,
        &["where"],
        "Requests that ran out of time, by where.",
    );
    WASTED = Metric::new(
        "tidegate_wasted_seconds_total",
        Counter,
        &[],
        "Upstream time spent on answers that nobody waited for.",
    ).seconds();
    IN_FLIGHT = Metric::new(
        "tidegate_in_flight",
        Gauge,
        &["upstream"],
        "Slots taken at the upstream, orphans included.",
    );
    ORPHANS = Metric::new(
        "tidegate_orphans",
        Gauge,
        &["upstream"],
        "Slots whose client is gone while the upstream works on.",
    );
    LIMIT = Metric::new("tidegate_limit", Gauge, &["upstream"], "How much may be in flight.");
    LIMIT_MIN = Metric::new(
        "tidegate_limit_min",
        Gauge,
        &["upstream"],
        "The least that an adaptive limit may come down to; the limit itself where it is a number.",
    );
    LIMIT_MAX = Metric::new(
        "tidegate_limit_max",
        Gauge,
        &["upstream"],
        "The most that an adaptive limit may rise to; the limit itself where it is a number.",
    );
    QUEUE_DEPTH = Metric::new(
        "tidegate_queue_depth",
        Gauge,
        &["upstream", "priority"],
        "Requests waiting for a slot.",
    );
    QUEUE_CAPACITY = Metric::new(
        "tidegate_queue_capacity",
        Gauge,
        &["upstream"],
        "Requests that may wait for a slot.",
    );
    QUEUE_BUDGET = Metric::new(
        "tidegate_queue_wait_budget_seconds",
        Gauge,
        &["upstream"],
        "How long a request may wait for a slot, by the policy.",
    ).seconds();
    QUEUE_WAIT = Metric::new(
        "tidegate_queue_wait_seconds",
        Histogram,
        &["upstream"],
        "Time in the queue, of requests that had to wait.",
    ).seconds();
    QUEUE_LONG = Metric::new(
        "tidegate_queue_waits_long_total",
        Counter,
        &["upstream"],
        "Requests that waited in the queue for more than 0.8 of the time that they might.",
    );
    UPSTREAM = Metric::new(
        "tidegate_upstream_seconds",
        Histogram,
        &["upstream"],
        "Time from the dispatch to the head of the upstream's answer.",
    ).seconds();
    REJECTION = Metric::new(
        "tidegate_rejection_seconds",
        Histogram,
        &[],
        "Time from the arrival of a request to its refusal.",
    ).seconds();
    BREAKER_STATE = Metric::new(
        "tidegate_breaker_state",
        Gauge,
        &["upstream"],
        "How the best of an upstream's endpoints stands: 0 closed, 1 half open, 2 open.",
    );
    RETRIES = Metric::new(
        "tidegate_retries_total",
        Counter,
        &["upstream", "decision"],
        "Tries without an answer, by what was decided about another.",
    );
    RETRY_BUDGET = Metric::new(
        "tidegate_retry_budget",
        Gauge,
        &["upstream"],
        "Retries that the budget allows just now, clients' and the gateway's own together.",
    );
    RATE_LIMIT_KEYS = Metric::new(
        "tidegate_rate_limit_keys",
        Gauge,
        &["rule"],
        "Keys that have used some of their quota lately.",
    );
    RATE_LIMIT_OVERFLOWED = Metric::new(
        "tidegate_rate_limit_overflowed_total",
        Counter,
        &["rule"],
        "Checks that found the table of keys full, and were stricter than the policy says.",
    );
    TOLD_RETURNS = Metric::new(
        "tidegate_told_returns_total",
        Counter,
        &["status", "result"],
        "Requests that came back at the time that a 429 or 503 had told, or before it, by what became of them.",
    );
    CONNECTIONS = Metric::new(
        "tidegate_connections",
        Gauge,
        &["side", "state"],
        "Connections by side and state.",
    );
    BACKLOG = Metric::new(
        "tidegate_listener_backlog",
        Gauge,
        &[],
        "Connections that wait in the kernel to be accepted.",
    );
    ACCEPT_ERRORS = Metric::new(
        "tidegate_accept_errors_total",
        Counter,
        &[],
        "Times that a connection could not be accepted for lack of resources.",
    );
    DRAINING = Metric::new(
        "tidegate_draining",
        Gauge,
        &[],
        "1 while no new connections are taken and what runs is let end, else 0.",
    );
    RELOADS = Metric::new(
        "tidegate_config_reloads_total",
        Counter,
        &["result"],
        "Reloads of the policy by result.",
    );
    SPANS = Metric::new(
        "tidegate_spans_total",
        Counter,
        &["result"],
        "Spans for a collector, by what became of them.",
    );
    LOG_LOST = Metric::new(
        "tidegate_log_lines_lost_total",
        Counter,
        &[],
        "Log lines lost because the log could not keep up.",
    );
    LOG_SKIPPED = Metric::new(
        "tidegate_log_lines_skipped_total",
        Counter,
        &[],
        "Log lines beyond the bound on lines a second.",
    );
    BUILD_INFO = Metric::new(
        "tidegate_build_info",
        Gauge,
        &["version"],
        "Always 1; the version is in the label.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prometheus asks of names, and the specification of OpenMetrics besides.
    #[test]
    fn names_say_their_type_and_unit() {
        for metric in ALL {
            let Metric { name, kind, seconds, labels, help } = *metric;
            let base = name.strip_suffix("_total").unwrap_or(name);
            assert_eq!(name.ends_with("_total"), kind == Counter, "{name}");
            assert_eq!(base.ends_with("_seconds"), seconds, "{name}");
            assert!(name.starts_with("tidegate_") && help.ends_with('.') && !help.contains('\n'), "{name}");
            // Prometheus keeps these to itself.
            assert!(!labels.iter().any(|label| ["le", "job", "instance"].contains(label)), "{name}");
            assert_eq!(ALL.iter().filter(|other| other.name == name).count(), 1, "{name}");
        }
    }

    /// The page that tells operators what there is: each metric is there as it is here, and nothing else is.
    #[test]
    fn the_page_has_this_table() {
        let page = include_str!("../../../../docs/metrics.md");
        let mut told: Vec<String> = Vec::new();
        for row in page.lines().filter(|line| line.starts_with("| `tidegate_")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            told.push(format!("{} {} {}", cells[0].trim_matches('`'), cells[1], cells[2]));
        }
        let row = |metric: &Metric| {
            let labels = if metric.labels.is_empty() {
                String::new()
            } else {
                format!("{{{}}}", metric.labels.join(","))
            };
            format!(
                "{}{labels} {} {}",
                metric.name,
                metric.kind.name(),
                if metric.seconds { "seconds" } else { "–" }
            )
        };
        assert_eq!(told, ALL.iter().map(row).collect::<Vec<_>>());
    }
}
