//! The table itself. Read from here to learn what a policy file can say.

use std::time::Duration;

use tidegate_engine::{LIMIT_MAX, QUEUE_CAPACITY_MAX};

use super::Absent::{Default, Means, Required};
use super::{
    BREAKER, FAIRNESS, Form, HEALTH_CHECK, Key, Kind, OTLP, PRIORITY, RETRIES, Section, Shape, TENANT,
};

const UPSTREAMS_MAX: usize = 256;
const ROUTES_MAX: usize = 1_000;
const RATE_LIMITS_MAX: usize = 256;

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) static ROOT: Section = Section {
    name: "",
    path: "",
    shape: Shape::One,
    doc: "The policy of one gateway.",
    keys: &[],
    inner: &[&SERVER, &UPSTREAM, &PRIORITY, &TENANT, &ROUTE, &RATE_LIMIT],
    not_yet: &[],
};

pub(crate) static SERVER: Section = Section {
    name: "server",
    path: "server",
    shape: Shape::One,
    doc: "The gateway itself: where it listens, its bounds, its log.",
    inner: &[&OTLP],
    not_yet: &[],
    keys: &[
        Key::new(
            "listen",
            Kind::Text(Form::Address),
            Default("\"127.0.0.1:8102\""),
            "Where clients connect.",
        ),
        Key::new(
            "admin",
            Kind::Text(Form::Address),
            Default("\"127.0.0.1:8101\""),
            "Where metrics, statistics, health and the dashboard are served. Nothing there is ever limited, and whoever \
             reaches it can read everything.",
        ),
        Key::new(
            "admin_token_file",
            Kind::Text(Form::FilePath),
            Means("nothing can be changed over the admin address"),
            "A file with one line, 16 to 256 characters, that whoever drains the gateway or sets a limit over the admin \
             address has to know (`Authorization: Bearer`). It is read each time, so it can be exchanged at any time.",
        ),
        Key::new(
            "admin_hosts",
            Kind::List { of: Form::HostName, min: 0, max: 64 },
            Default("[]"),
            "Names that the dashboard and its data answer to, beside addresses and `localhost`: any other may be one that \
             somebody has made to point here. With none given, a single `admin` address that is no loopback address answers \
             to every name.",
        ),
        Key::new(
            "workers",
            Kind::Integer { min: 0, max: 256 },
            Default("0"),
            "Threads, each with an event loop of its own; 0 means one for each core.",
        ),
        Key::new(
            "max_connections",
            Kind::Integer { min: 1, max: 1_000_000 },
            Default("10_000"),
            "Client connections open at once; the excess waits in the kernel's backlog.",
        )
        .zero("no client could connect"),
        Key::new(
            "max_upgrades",
            Kind::Integer { min: 0, max: 1_000_000 },
            Default("1_000"),
            "Upgraded connections (WebSocket) open at once; 0 refuses every upgrade.",
        ),
        Key::new(
            "drain",
            Kind::Duration { min: Duration::ZERO, max: HOUR },
            Default("\"20s\""),
            "How long running requests may take to end after SIGTERM.",
        ),
        Key::new(
            "header_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"10s\""),
            "How long a client may take to send a request head.",
        ),
        Key::new(
            "idle_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"75s\""),
            "How long a client's connection is kept without a request.",
        ),
        Key::new(
            "body_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"60s\""),
            "How long a body may make no progress, in either direction, before its connection is closed.",
        ),
        Key::new(
            "max_header_bytes",
            Kind::Integer { min: 8_192, max: 1_048_576 },
            Default("65_536"),
            "The largest request head, in bytes; up to twice as much may pass, since it bounds a buffer.",
        ),
        Key::new(
            "trusted_proxies",
            Kind::List { of: Form::Network, min: 0, max: 1_000 },
            Default("[]"),
            "Peers whose `X-Forwarded-For` is believed.",
        ),
        Key::new(
            "deadline_headers",
            Kind::List { of: Form::Header, min: 0, max: 16 },
            Means("`grpc-timeout` and `x-envoy-expected-rq-timeout-ms`"),
            "Fields in which clients say how long they wait: `grpc-timeout` as gRPC has it, names that end in `-ms` in \
             milliseconds, others in seconds. The earliest counts; what cannot be answered by then is refused, and the \
             upstream is told what is left. `[]` looks at none.",
        ),
        Key::new(
            "priority_ceiling",
            Kind::Text(Form::Class),
            Means("the class `default`, or the last"),
            "The most important class that a client may claim in a header, unless it is one of `trusted_proxies`.",
        ),
        Key::new(
            "prefetch_priority",
            Kind::Text(Form::Class),
            Means("a prefetch is like any other request"),
            "What a browser only prefetches (`Sec-Purpose` or `Purpose: prefetch`) is in this class, unless it would be in \
             a lesser one.",
        ),
        Key::new(
            "urgency",
            Kind::Switch,
            Default("false"),
            "Whether `Priority: u=N` of RFC 9218 counts: for each step of N above 3, the default, a request is one class \
             lower. It never raises one.",
        ),
        Key::new(
            "untrusted_tenants",
            Kind::Switch,
            Default("true"),
            "Whether the header that names a tenant is believed of anybody. If not, it counts only when it comes from one of \
             `trusted_proxies`, and is not passed on otherwise.",
        ),
        Key::new(
            "attempt_headers",
            Kind::List { of: Form::Header, min: 0, max: 16 },
            Means(
                "`x-envoy-attempt-count`, `grpc-previous-rpc-attempts`, `amz-sdk-request` and `x-stainless-retry-count`",
            ),
            "Fields in which clients say that a request was tried before: `amz-sdk-request` as AWS has it, names that end \
             in `attempt-count` with the number of this try, others with the number of tries before it. `[]` looks at \
             none.",
        ),
        Key::new(
            "fingerprint",
            Kind::Choice { of: &["off", "idempotency-key", "identified"], not_yet: &[] },
            Default("\"identified\""),
            "How a retry that does not say so is known: not at all, by its `Idempotency-Key`, or without one also by \
             address, method, target and `Authorization` or `Cookie`. Requests that have none of these are never taken \
             for retries, and without a key neither is POST or PATCH.",
        ),
        Key::new(
            "retry_after_max",
            Kind::Duration { min: Duration::from_secs(1), max: HOUR },
            Default("\"60s\""),
            "The longest `Retry-After` that is ever sent.",
        ),
        Key::new(
            "ratelimit_headers",
            Kind::Choice { of: &["off", "draft", "x-ratelimit"], not_yet: &[] },
            Default("\"draft\""),
            "In which words callers are told of their rate limits: `RateLimit` and `RateLimit-Policy` of the IETF draft, \
             or the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`.",
        ),
        Key::new(
            "ratelimit_headers_on",
            Kind::Choice { of: &["refused", "all"], not_yet: &[] },
            Default("\"refused\""),
            "Which answers have these fields: every 429, or every answer to a request that a rate limit applies to.",
        ),
        Key::new(
            "access_log",
            Kind::Choice { of: &["off", "refused", "all"], not_yet: &[] },
            Default("\"refused\""),
            "Which requests are logged: none, those that did not get the upstream's answer, or every one.",
        ),
        Key::new(
            "access_log_file",
            Kind::Text(Form::FilePath),
            Means("standard output"),
            "The file that the log is appended to.",
        ),
    ],
};

pub(crate) static UPSTREAM: Section = Section {
    name: "upstream",
    path: "upstream",
    shape: Shape::Many { max: UPSTREAMS_MAX },
    doc: "One service, protected by one concurrency limit and one queue. At least one is needed.",
    inner: &[&CONCURRENCY, &QUEUE, &FAIRNESS, &RETRIES, &BREAKER, &HEALTH_CHECK],
    not_yet: &[],
    keys: &[
        Key::new(
            "name",
            Kind::Text(Form::Name),
            Required,
            "Its name in routes, metrics and logs; no other has it.",
        ),
        Key::new(
            "endpoints",
            Kind::List { of: Form::Endpoint, min: 1, max: 64 },
            Required,
            "Where it listens. Without a port it is 80. TLS is not supported by this version.",
        ),
        Key::new(
            "timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"2s\""),
            "The longest time from the dispatch of a request to the head of its response; then 504.",
        ),
        Key::new(
            "connect_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"1s\""),
            "The longest time to open a connection; then 502.",
        ),
        Key::new(
            "cancels_work",
            Kind::Switch,
            Default("false"),
            "Whether closing the connection stops the work. If it does not, a timed-out request keeps its slot until \
             its answer has come.",
        ),
        Key::new(
            "orphan_max",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"60s\""),
            "How long a timed-out exchange may stay open, its slot taken.",
        ),
        Key::new(
            "max_idle_connections",
            Kind::Integer { min: 0, max: 100_000 },
            Default("256"),
            "Idle connections kept for reuse, for each endpoint and worker; 0 opens one for every request.",
        ),
        Key::new(
            "idle_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"30s\""),
            "How long an idle connection is kept. It should be shorter than the upstream's own keep-alive time.",
        ),
        Key::new(
            "advertise_limit",
            Kind::Switch,
            Default("false"),
            "Whether clients are told in `RateLimit` fields, in the unit `concurrent-requests`, how much may be in flight \
             and how much of it is free, on 503 and, by `ratelimit_headers_on`, on every answer. It tells strangers how \
             much the service can take.",
        ),
    ],
};

/// The adaptive limits, by their names.
pub(crate) const ALGORITHMS: [&str; 4] = ["ebb", "aimd", "gradient2", "vegas"];

pub(crate) static CONCURRENCY: Section = Section {
    name: "concurrency",
    path: "upstream.concurrency",
    shape: Shape::One,
    doc: "How many requests may be in flight to the upstream above. With a number as `limit`, no other key may be \
          given.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "limit",
            Kind::AdaptiveOr { min: 1, max: LIMIT_MAX },
            Default("\"adaptive\""),
            "A number that you have measured, or one that follows the upstream.",
        )
        .zero("no request would ever be let through"),
        Key::new(
            "algorithm",
            Kind::Choice { of: &ALGORITHMS, not_yet: &[] },
            Default("\"ebb\""),
            "How the adaptive limit moves. `ebb` needs no number; `aimd` is additive increase, multiplicative decrease; \
             `gradient2` and `vegas` are those of Netflix, to compare with.",
        ),
        Key::new(
            "min",
            Kind::Integer { min: 1, max: LIMIT_MAX },
            Default("2"),
            "The adaptive limit never falls below this.",
        )
        .zero("a limit of 0 lets nothing through, so nothing would ever raise it again"),
        Key::new(
            "max",
            Kind::Integer { min: 1, max: LIMIT_MAX },
            Default("1000"),
            "The adaptive limit never rises above this.",
        )
        .zero("no request would ever be let through"),
        Key::new(
            "initial",
            Kind::Integer { min: 1, max: LIMIT_MAX },
            Means("10 for `ebb`, 20 for the others, or the nearest that `min` and `max` allow"),
            "Where the adaptive limit starts.",
        )
        .zero("no request would ever be let through"),
        Key::new(
            "deadline",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Means("the upstream's `timeout`"),
            "For `ebb`: when an answer is too late for its client. The less time there is, the less may queue in the \
             upstream.",
        )
        .zero("every answer would be too late"),
        Key::new(
            "baseline",
            Kind::Duration { min: Duration::from_micros(1), max: HOUR },
            Means("answers count as slow after half the upstream's `timeout`"),
            "For `aimd`: how long an answer takes when the upstream is not busy.",
        )
        .zero("every answer would be slow"),
        Key::new(
            "tolerance",
            Kind::Factor { above: 1.0, max: 100.0 },
            Default("2.0"),
            "For `aimd`: an answer that takes longer than `tolerance` times `baseline` is slow, and lowers the limit.",
        ),
        Key::new(
            "window",
            Kind::Integer { min: 1, max: LIMIT_MAX },
            Default("100"),
            "For `aimd`: so many healthy answers in a row raise the limit by one.",
        )
        .zero("the limit would rise without an answer"),
        Key::new(
            "cooldown",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"1s\""),
            "For `aimd`: the limit is lowered at most once in this time, so that one burst of slow answers counts once.",
        )
        .zero("one burst of slow answers would take the limit to its minimum"),
        Key::new(
            "orca_utilization",
            Kind::Factor { above: 0.0, max: 10.0 },
            Means("what answers report is not looked at, and passes to clients"),
            "How busy the upstream may say it is, in the field `endpoint-load-metrics` (ORCA) of its answers, 1.0 being \
             all that it has. While it reports more, the limit has a ceiling that comes down until it does not.",
        ),
    ],
};

/// Who goes first in a queue, by name.
pub(crate) const DISCIPLINES: [&str; 4] = ["forecast", "fifo", "adaptive-lifo", "codel"];

pub(crate) static QUEUE: Section = Section {
    name: "queue",
    path: "upstream.queue",
    shape: Shape::One,
    doc: "How requests wait for the upstream above when the limit is reached.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "wait",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(600) },
            Default("\"500ms\""),
            "The wait budget: nobody waits longer, and whoever would is refused on arrival. 0 only together with \
             `capacity = 0`.",
        ),
        Key::new(
            "standing_wait",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(600) },
            Means("a tenth of the upstream's `timeout`, at most `wait`"),
            "The wait budget while there is a queue all the time, when waiting gains nothing. For the discipline `codel` it is what counts as a long wait. Not together with \
             `capacity`, but for `codel`.",
        ),
        Key::new(
            "capacity",
            Kind::Integer { min: 0, max: QUEUE_CAPACITY_MAX },
            Means(
                "as many as can be served within `wait`, by the measured service time; at most 10_000, also until that is known",
            ),
            "How many may wait; 0 means that a request is handed over at once or refused.",
        ),
        Key::new(
            "discipline",
            Kind::Choice { of: &DISCIPLINES, not_yet: &[] },
            Default("\"forecast\""),
            "Who of a tenant's requests in a class goes first, and who is sent away early. `forecast` and `fifo` keep the \
             order of arrival, the first refusing on arrival whoever would wait too long, the second only when there is no \
             place or no time left. `adaptive-lifo` turns the order round while there is a queue all the time; `codel` keeps \
             it, and then sends away whoever has waited for more than a short time.",
        ),
    ],
};

pub(crate) static ROUTE: Section = Section {
    name: "route",
    path: "route",
    shape: Shape::Many { max: ROUTES_MAX },
    doc: "Which request goes where. The first route that matches wins; a request without a route gets 404. Without \
          any route, everything goes to the only upstream.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "path",
            Kind::Text(Form::Path),
            Required,
            "This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.",
        ),
        Key::new(
            "methods",
            Kind::List { of: Form::Method, min: 0, max: 32 },
            Default("[]"),
            "Which methods; none given means all.",
        ),
        Key::new(
            "upstream",
            Kind::Text(Form::Reference),
            Means("the only upstream; required if there are several"),
            "Where it goes.",
        ),
        Key::new(
            "priority",
            Kind::Text(Form::ClassSource),
            Means("the class `default`, or the last"),
            "How important its requests are: a class, or a header whose value is the name of one. Where the header is missing \
             or names no class, it is as if nothing was said. The upstream is told the class in that header.",
        ),
        Key::new(
            "tenant",
            Kind::Text(Form::TenantSource),
            Means("nobody is told from anybody"),
            "Whom to be fair between: each value of a header (requests without it are one tenant), or each client address \
             (IPv6 by /64).",
        ),
        Key::new(
            "cost",
            Kind::Integer { min: 1, max: 1_000 },
            Default("1"),
            "How many slots each of its requests takes; more than the limit counts as the limit.",
        )
        .zero("the route would have no limit; for health checks, write `exempt`"),
        Key::new(
            "concurrency",
            Kind::Integer { min: 1, max: LIMIT_MAX },
            Means("no bound but the upstream's"),
            "Bulkhead: at most so many of this route's requests wait or are in flight.",
        )
        .zero("every request of the route would be refused"),
        Key::new(
            "concurrency_status",
            Kind::OneOf(&[429, 503]),
            Means("503"),
            "What the excess gets: 503, as from a service that is busy, or 429, as for callers that are over their \
             share.",
        ),
        Key::new(
            "deadline",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Means("what the client says, and the upstream's `timeout`"),
            "How long an answer is of use to clients of this route, from the moment that the request was read.",
        )
        .zero("no request of the route could be answered in time"),
        Key::new(
            "exempt",
            Kind::Switch,
            Default("false"),
            "For health checks: takes no slot and uses no rate limit, and the adaptive limit does not learn from it; at most 256 \
             at once.",
        ),
    ],
};

pub(crate) static RATE_LIMIT: Section = Section {
    name: "rate_limit",
    path: "rate_limit",
    shape: Shape::Many { max: RATE_LIMITS_MAX },
    doc: "How much each caller may send. Checked in the order of the file; the excess gets 429.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new("name", Kind::Text(Form::Name), Required, "Its name in metrics; no other has it."),
        Key::new(
            "key",
            Kind::Text(Form::RateKey),
            Required,
            "Who is counted: each client address (IPv6 by /64), each value of a header (requests without it share one), \
             each tenant as its route names it (requests without one share one), each route, or everybody together.",
        ),
        Key::new("rate", Kind::Rate, Required, "How often, in the long run."),
        Key::new(
            "burst",
            Kind::Integer { min: 1, max: 1_000_000_000 },
            Means("what `rate` lets through in a second, rounded up"),
            "How many may come at once after a pause.",
        )
        .zero("every request would be refused"),
        Key::new(
            "max_keys",
            Kind::Integer { min: 1, max: 10_000_000 },
            Default("100_000"),
            "How many callers are told apart at once; it bounds the memory.",
        )
        .zero("nobody could be counted"),
        Key::new(
            "show_key",
            Kind::Switch,
            Default("false"),
            "Whether values of the header that `key` names are shown whole to whoever looks who is refused most. They may be \
             credentials, so they are shown by their beginning and a hash.",
        ),
        Key::new(
            "paths",
            Kind::List { of: Form::Path, min: 0, max: 256 },
            Default("[]"),
            "Which paths; none given means every route.",
        ),
    ],
};
