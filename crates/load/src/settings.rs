//! How a scenario is played: against whom, in which protocol, and within which bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tidegate_policy::{Policy, RoutePriority, TenantKey};

use crate::target::Target;

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on each connection.
    Http1,
    /// HTTP/2 over plain TCP, known to be understood (RFC 9113, section 3.3).
    Http2,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whom to ask.
    pub target: Target,
    /// In which protocol.
    pub protocol: Protocol,
    /// So many connections may be open at once. What would need another waits, and that is lag.
    pub connections_max: usize,
    /// So many requests may be outstanding at once. What would be one more is not sent, and the report says so.
    pub outstanding_max: usize,
    /// How long it waits for answers when nobody comes any more; what is under way then is pending.
    pub drain: Duration,
    /// What fields are called.
    pub names: Names,
    /// Set by somebody else to end it early.
    pub stop: Stop,
}

impl Settings {
    /// A thousand connections of HTTP/1.1, and answers are waited for as long as clients do.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            protocol: Protocol::Http1,
            connections_max: 1_000,
            outstanding_max: 100_000,
            drain: Duration::from_secs(30),
            names: Names::default(),
            stop: Stop::default(),
        }
    }
}

/// A wish to end early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// It is to end now.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether somebody wants it to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// By which fields clients say who they are and how long they wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Names the class; not said where there is none.
    pub class: Option<String>,
    /// Names the tenant.
    pub tenant: Option<String>,
    /// How many milliseconds a client waits that tells its deadline.
    pub deadline: String,
    /// Which try it is, of clients that mark theirs.
    pub attempt: String,
    /// How much more work it is than others: for the lab's upstream, which believes it.
    pub cost: Option<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            class: None,
            tenant: None,
            deadline: "x-envoy-expected-rq-timeout-ms".to_owned(),
            attempt: "x-envoy-attempt-count".to_owned(),
            cost: None,
        }
    }
}

impl Names {
    /// The fields that a policy looks at, of the first route that looks at any.
    pub fn of(policy: &Policy) -> Self {
        let class = policy.routes.iter().find_map(|route| match &route.priority {
            RoutePriority::Header(name) => Some(name.clone()),
            RoutePriority::Class(_) => None,
        });
        let tenant = policy.routes.iter().find_map(|route| match &route.tenant {
            Some(TenantKey::Header(name)) => Some(name.clone()),
            Some(TenantKey::ClientIp) | None => None,
        });
        Self { class, tenant, ..Self::default() }
    }
}
