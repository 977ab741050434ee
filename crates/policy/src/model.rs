//! The checked policy: what the rest of tidegate reads. Plain data; an invalid one is never handed out.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use tidegate_engine::{
    AdmissionPolicy, BreakerPolicy, LimitPolicy, PriorityPolicy, QueuePolicy, Quota, RetryPolicy, RouteId,
};

/// Everything a policy file says, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The gateway itself: addresses, bounds, timeouts, log.
    pub server: Server,
    /// The services protected. Never empty; names are unique.
    pub upstreams: Vec<Upstream>,
    /// The classes, the most important first: one to eight. Names are unique.
    pub priorities: Vec<PriorityClass>,
    /// Tenants that may have more than others. Names are unique.
    pub tenants: Vec<TenantWeight>,
    /// Which request goes where; the first that matches wins. Never empty.
    pub routes: Vec<Route>,
    /// Rate limits, in the order they are checked. Names are unique.
    pub rate_limits: Vec<RateLimit>,
}

impl Policy {
    /// The class of what nobody says anything about, as an index into the classes: the one called `default`, or the last.
    #[must_use]
    pub fn default_priority(&self) -> usize {
        let named = self.priorities.iter().position(|class| class.name == PriorityClass::DEFAULT);
        named.unwrap_or_else(|| self.priorities.len().saturating_sub(1))
    }

    /// What the engine is told to do for the upstream of this number, with these bulkheads.
    #[must_use]
    pub fn admission(&self, upstream: usize, bulkheads: Vec<(RouteId, NonZeroU32)>) -> AdmissionPolicy {
        let upstream = &self.upstreams[upstream];
        AdmissionPolicy {
            bulkheads,
            priorities: self.priorities.iter().map(|class| PriorityPolicy { floor: class.floor }).collect(),
            tenant_share: upstream.tenant_share,
            retries: Some(upstream.retries),
            breaker: upstream.breaker.as_ref().map(|breaker| breaker.policy),
            ..AdmissionPolicy::new(upstream.limit.clone(), upstream.queue)
        }
    }
}

/// `[[priority]]`: a class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorityClass {
    /// Its name in routes, headers, metrics and logs.
    pub name: String,
    /// The share of the capacity that it has even under overload, from 0.
    pub floor: f64,
}

impl PriorityClass {
    /// The class of what nobody says anything about, if there is one of this name.
    pub(crate) const DEFAULT: &str = "default";
}

/// `[[tenant]]`: a tenant that may have more than others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantWeight {
    /// The value of the header that names it.
    pub name: String,
    /// How much it may have beside others, who have 1.
    pub weight: NonZeroU32,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where metrics, statistics and health are served; never limited.
    pub admin: SocketAddr,
    /// The file that holds what whoever changes something over the admin address has to know; nobody can if `None`.
    pub admin_token_file: Option<PathBuf>,
    /// Names that the admin side answers to beside `localhost` and addresses, in lower case.
    pub admin_hosts: Vec<String>,
    /// Event-loop threads; 0 means one for each core.
    pub workers: u16,
    /// Client connections open at once; the excess waits in the kernel's backlog.
    pub max_connections: u32,
    /// Upgraded connections (WebSocket) open at once.
    pub max_upgrades: u32,
    /// How long running requests may take to end after SIGTERM.
    pub drain: Duration,
    /// How long a client may take to send a request head.
    pub header_timeout: Duration,
    /// How long a connection without a request is kept.
    pub idle_timeout: Duration,
    /// How long a body may make no progress, in either direction, before its connection is closed.
    pub body_timeout: Duration,
    /// The largest request head, in bytes.
    pub max_header_bytes: u32,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Fields in which clients say how long they wait, in lower case.
    pub deadline_headers: Vec<String>,
    /// The most important class that a header may name, unless it comes from a trusted proxy; an index into
    /// [`Policy::priorities`].
    pub priority_ceiling: usize,
    /// The class of what is only prefetched, unless it would be in a lesser one.
    pub prefetch_priority: Option<usize>,
    /// Whether `Priority: u=N` (RFC 9218) counts.
    pub urgency: bool,
    /// Whether the header that names a tenant is believed of anybody, and not of trusted proxies only.
    pub untrusted_tenants: bool,
    /// Fields in which clients say that a request was tried before, in lower case.
    pub attempt_headers: Vec<String>,
    /// How a retry that does not say so is known.
    pub fingerprint: Fingerprint,
    /// The longest `Retry-After` ever sent.
    pub retry_after_max: Duration,
    /// In which words callers are told of their rate limits.
    pub ratelimit_headers: RateLimitHeaders,
    /// Whether on every answer to a request that a rate limit applies to, and not only on every 429.
    pub ratelimit_headers_on_all: bool,
    /// Which requests are logged.
    pub access_log: AccessLog,
    /// Where the log goes; standard output when `None`.
    pub access_log_file: Option<PathBuf>,
    /// Where traces and metrics are sent; nowhere when `None`.
    pub otlp: Option<Otlp>,
}

/// `[server.otlp]`: an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The collector.
    pub endpoint: Endpoint,
    /// What the gateway is called there.
    pub service_name: String,
    /// The share of the requests without a trace of their own that are traced, from 0 to 1.
    pub sample: f64,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// Fields for the collector, each on a line as `name: value`.
    pub headers_file: Option<PathBuf>,
    /// More of them, which stand in no file of ours.
    pub headers: Vec<(String, String)>,
}

impl Otlp {
    /// A collector at this URL, with all else as it is by default: for what the environment says without a policy file.
    pub fn at(endpoint: &str) -> Result<Self, String> {
        let endpoint = crate::values::endpoint(endpoint).map_err(|wrong| wrong.message)?;
        Ok(Self {
            endpoint,
            service_name: "tidegate".to_owned(),
            sample: 1.0,
            metrics_interval: Duration::from_secs(15),
            headers_file: None,
            headers: Vec::new(),
        })
    }
}

/// How a retry that does not say that it is one is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    /// Not at all.
    Off,
    /// By its `Idempotency-Key`.
    IdempotencyKey,
    /// Without one, also by its client's address and credentials, its method and its target.
    Identified,
}

/// In which words callers are told of their rate limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimitHeaders {
    /// In none.
    Off,
    /// draft-ietf-httpapi-ratelimit-headers-11.
    Draft,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset`, the last in seconds from now.
    XRateLimit,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// None.
    Off,
    /// Those that did not get the upstream's answer, at most a hundred a second.
    Refused,
    /// Every one.
    All,
}

/// `[[upstream]]`: one service, protected by one admission.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name in routes, metrics and logs.
    pub name: String,
    /// Where it listens. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// Longest time from the dispatch to the response head; then 504.
    pub timeout: Duration,
    /// Longest time to open a connection; then 502.
    pub connect_timeout: Duration,
    /// Whether closing the connection stops the work. If not, a timed-out exchange keeps its slot.
    pub cancels_work: bool,
    /// Longest time that an abandoned exchange may keep its slot.
    pub orphan_max: Duration,
    /// Idle connections kept for reuse, for each endpoint and worker.
    pub max_idle_connections: u32,
    /// How long an idle connection is kept; shorter than the upstream's own keep-alive time.
    pub idle_timeout: Duration,
    /// Whether clients are told how much may be in flight.
    pub advertise_limit: bool,
    /// `[upstream.concurrency]`
    pub limit: LimitPolicy,
    /// How busy it may say that it is before its limit has a ceiling; `None` if nobody looks.
    pub orca_utilization: Option<f64>,
    /// `[upstream.queue]`
    pub queue: QueuePolicy,
    /// `tenant_share` of `[upstream.fairness]`: the most of the limit that a tenant may hold while it binds.
    pub tenant_share: Option<f64>,
    /// `[upstream.retries]`
    pub retries: RetryPolicy,
    /// `[upstream.breaker]`, one for each endpoint; `None` when it is turned off.
    pub breaker: Option<Breaker>,
    /// `[upstream.health_check]`; `None` unless it is written.
    pub health_check: Option<HealthCheck>,
}

/// `[upstream.breaker]`
#[derive(Clone, Debug, PartialEq)]
pub struct Breaker {
    /// When it opens by what it sees itself, and how it closes.
    pub policy: BreakerPolicy,
    /// When it opens because the other endpoints do better; `None` for never.
    pub ejection: Option<Ejection>,
}

/// When an endpoint is ejected because the others do better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ejection {
    /// How much larger the share of its requests that went badly must be, from 0 to 1.
    pub worse_by: f64,
    /// The largest share of the endpoints that may be out after one has been ejected, from 0 to 1.
    pub max_ejected: f64,
}

/// `[upstream.health_check]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked for: a path, perhaps with a query, in plain ASCII.
    pub path: String,
    /// Whom it is asked for in the field `Host`; `None` for the endpoint itself.
    pub host: Option<String>,
    /// From one question to the next.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many good answers in a row make an endpoint healthy.
    pub healthy_after: NonZeroU32,
    /// So many questions in a row without a good answer make it unhealthy.
    pub unhealthy_after: NonZeroU32,
}

/// Where an upstream listens: `http://host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name to be looked up, or an address.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// As it stands in a `Host` field: `host:port`, where an IPv6 address is in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// The host of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// A name, looked up when a connection is opened.
    Name(String),
}

/// `[[route]]`: which requests go to which upstream, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its label in metrics and logs: the pattern, with the methods in front if it names any.
    pub label: String,
    /// Which paths.
    pub path: PathPattern,
    /// Which methods, in upper case; empty means all.
    pub methods: Vec<String>,
    /// Index into [`Policy::upstreams`].
    pub upstream: usize,
    /// How important its requests are.
    pub priority: RoutePriority,
    /// On whose behalf its requests come; `None` where nobody is told from anybody.
    pub tenant: Option<TenantKey>,
    /// How many slots each of its requests takes.
    pub cost: NonZeroU32,
    /// The bound on this route's own requests, if it has one.
    pub bulkhead: Option<Bulkhead>,
    /// How long an answer is of use, whatever the client says.
    pub deadline: Option<Duration>,
    /// Never limited, never sampled: health checks.
    pub exempt: bool,
}

/// `priority` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutePriority {
    /// All of its requests are in this class, an index into [`Policy::priorities`].
    Class(usize),
    /// The value of this header (lower case) is the name of a class. Where it is missing or names none, it is
    /// [`Policy::default_priority`].
    Header(String),
}

/// `tenant` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantKey {
    /// Each value of this header (lower case). Requests without it are one tenant.
    Header(String),
    /// Each client address; IPv6 by /64.
    ClientIp,
}

/// `concurrency` of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulkhead {
    /// At most so many of the route's requests wait or are in flight.
    pub max: NonZeroU32,
    /// Whether the excess is over a quota (429) rather than over what the service can take (503).
    pub is_quota: bool,
}

/// A path, or everything under one. `/api/*` covers `/api`, `/api/` and whatever lies below; `/*` covers all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This very path.
    Exact(String),
    /// The path without its `/*`: `/api` for `/api/*`, empty for `/*`.
    Under(String),
}

/// `[[rate_limit]]`
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimit {
    /// Its name in metrics, logs and answers.
    pub name: String,
    /// Who is counted.
    pub key: RateKey,
    /// How often.
    pub quota: Quota,
    /// How many keys are told apart at once.
    pub max_keys: NonZeroU32,
    /// Whether values of a header that is counted by are shown whole to whoever looks at the gateway.
    pub show_key: bool,
    /// Which paths; empty means every route.
    pub paths: Vec<PathPattern>,
}

/// Who a rate limit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// Each client address; IPv6 by /64.
    ClientIp,
    /// Each value of this header (lower case). Requests without it share one bucket.
    Header(String),
    /// Each tenant, as the request's route names it. Requests without one share one bucket.
    Tenant,
    /// Each route.
    Route,
    /// Everybody together.
    Global,
}
