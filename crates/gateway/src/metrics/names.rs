//! Every metric name, once, with its type and what it means.

/// A metric: name, type, help.
pub(super) type Name = (&'static str, &'static str, &'static str);

pub(super) const REQUESTS: Name = ("tidegate_requests_total", "counter", "Requests by how they ended.");
pub(super) const REJECTED: Name =
    ("tidegate_rejected_total", "counter", "Requests that did not get their upstream's answer, by reason.");
pub(super) const IN_FLIGHT: Name =
    ("tidegate_in_flight", "gauge", "Slots taken at the upstream, orphans included.");
pub(super) const ORPHANS: Name =
    ("tidegate_orphans", "gauge", "Slots whose client is gone while the upstream works on.");
pub(super) const LIMIT: Name = ("tidegate_limit", "gauge", "How much may be in flight.");
pub(super) const QUEUE_DEPTH: Name = ("tidegate_queue_depth", "gauge", "Requests waiting for a slot.");
pub(super) const QUEUE_CAPACITY: Name =
    ("tidegate_queue_capacity", "gauge", "Requests that may wait for a slot.");
pub(super) const QUEUE_WAIT: Name =
    ("tidegate_queue_wait_seconds", "histogram", "Time in the queue, of requests that had to wait.");
pub(super) const REJECTION: Name =
    ("tidegate_rejection_seconds", "histogram", "Time from the arrival of a request to its refusal.");
pub(super) const UPSTREAM: Name = (
    "tidegate_upstream_seconds",
    "histogram",
    "Time from the dispatch to the head of the upstream's answer.",
);
pub(super) const DEADLINE: Name =
    ("tidegate_deadline_exceeded_total", "counter", "Requests that ran out of time, by where.");
pub(super) const CONNECTIONS: Name = ("tidegate_connections", "gauge", "Connections by side and state.");
pub(super) const BACKLOG: Name =
    ("tidegate_listener_backlog", "gauge", "Connections that wait in the kernel to be accepted.");
pub(super) const ACCEPT_ERRORS: Name = (
    "tidegate_accept_errors_total",
    "counter",
    "Times that a connection could not be accepted for lack of resources.",
);
pub(super) const GOODPUT: Name = (
    "tidegate_goodput_total",
    "counter",
    "Answers of status 2xx or 3xx that reached a client still waiting.",
);
pub(super) const WASTED: Name =
    ("tidegate_wasted_seconds_total", "counter", "Upstream time spent on answers that nobody waited for.");
pub(super) const BREAKER_STATE: Name = (
    "tidegate_breaker_state",
    "gauge",
    "How the best of an upstream's endpoints stands: 0 closed, 1 half open, 2 open.",
);
pub(super) const RETRIES: Name =
    ("tidegate_retries_total", "counter", "Tries without an answer, by what was decided about another.");
pub(super) const RETRY_BUDGET: Name = (
    "tidegate_retry_budget",
    "gauge",
    "Retries that the budget allows just now, clients' and the gateway's own together.",
);
pub(super) const RATE_LIMIT_KEYS: Name =
    ("tidegate_rate_limit_keys", "gauge", "Keys that have used some of their quota lately.");
pub(super) const RATE_LIMIT_OVERFLOWED: Name = (
    "tidegate_rate_limit_overflowed_total",
    "counter",
    "Checks that found the table of keys full, and were stricter than the policy says.",
);
pub(super) const TOLD_RETURNS: Name = (
    "tidegate_told_returns_total",
    "counter",
    "Requests that came back at the time that a 429 or 503 had told, or before it, by what became of them.",
);
pub(super) const RELOADS: Name =
    ("tidegate_config_reloads_total", "counter", "Reloads of the policy by result.");
pub(super) const LOG_LOST: Name =
    ("tidegate_log_lines_lost_total", "counter", "Log lines lost because the log could not keep up.");
pub(super) const LOG_SKIPPED: Name =
    ("tidegate_log_lines_skipped_total", "counter", "Log lines beyond the bound on lines a second.");
pub(super) const BUILD_INFO: Name =
    ("tidegate_build_info", "gauge", "Always 1; the version is in the label.");
