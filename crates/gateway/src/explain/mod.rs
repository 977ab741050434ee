//! What would be done with a request, without doing it: the very functions that serve one, asked in the same order.
//!
//! It knows the policy and not how things stand, so it says which limits apply and not whether they would refuse.

mod json;
pub use json::explained_json;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderMap, Request};
use tidegate_engine::{Attempt, Timestamp};
use tidegate_policy::{Policy, RateKey, Route, RoutePriority, TenantKey};

use crate::classify::{Classes, Grounds, Source};
use crate::client_addr::{client_address, customer, is_trusted};
use crate::path::without_parameters;
use crate::route::{self, BadRequest};
use crate::{deadline, rate};

/// What would become of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// It is refused as malformed, or as a kind that is not served here.
    Refused {
        /// 400 or 501.
        status: u16,
        /// Why.
        why: &'static str,
    },
    /// No route is for it: 404.
    NotFound {
        /// Its path, as it is compared with routes.
        path: String,
    },
    /// It takes a route.
    Routed(Box<Explanation>),
}

/// What the gateway finds out about a request, and what of the policy applies to it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// Its target, as it is passed on.
    pub target: String,
    /// The client's address, as far as trusted proxies tell it.
    pub client: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub trusted: bool,
    /// The index of its route in the policy.
    pub route: usize,
    /// The index of its class.
    pub priority: usize,
    /// Why it is in that class.
    pub because: String,
    /// On whose behalf it comes, if its route tells tenants apart.
    pub tenant: Option<ExplainedTenant>,
    /// How many slots it takes.
    pub cost: NonZeroU32,
    /// The field that says that it was tried before.
    pub retry: Option<String>,
    /// Whether it would be known again if it were refused and came back.
    pub recognised: bool,
    /// The rate limits that apply, in the order of the policy.
    pub rate_limits: Vec<ExplainedLimit>,
    /// How long its answer is of use from the moment that it was read, if anybody says.
    pub deadline: Option<Duration>,
    /// Who says so: the name of a field, or `deadline` of the route.
    pub deadline_from: Option<String>,
}

/// On whose behalf a request comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedTenant {
    /// What tells tenants apart.
    pub key: TenantKey,
    /// Its name; `None` for all those who have none.
    pub name: Option<String>,
    /// What it may have beside others.
    pub weight: NonZeroU32,
}

/// A rate limit that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedLimit {
    /// Its index in the policy.
    pub rule: usize,
    /// Who is counted, in words.
    pub counted: String,
}

/// What `policy` has the gateway do with a request that comes from `peer`.
#[must_use]
pub fn explain(policy: &Policy, request: Request<()>, peer: IpAddr) -> Explained {
    let (mut head, ()) = request.into_parts();
    match route::prepare(&mut head) {
        Ok(()) => {}
        Err(BadRequest::Malformed(why)) => return Explained::Refused { status: 400, why },
        Err(BadRequest::NotImplemented(why)) => return Explained::Refused { status: 501, why },
    }
    let path = without_parameters(head.uri.path());
    let Some(index) = route::find(&policy.routes, &head.method, head.uri.path()) else {
        return Explained::NotFound { path: path.into_owned() };
    };
    let route = &policy.routes[index];
    let proxies = &policy.server.trusted_proxies;
    let trusted = is_trusted(peer, proxies);
    let client = client_address(peer, &head.headers, proxies);
    let classes = Classes::new(policy, None);
    let class = classes.of(index, &head, Source { address: client, trusted });
    let believed = trusted || policy.server.untrusted_tenants;
    let tenant = class.tenant.zip(route.tenant.as_ref()).map(|(tenant, key)| ExplainedTenant {
        key: key.clone(),
        name: tenant_name(key, &head.headers, client, believed),
        weight: tenant.weight,
    });
    let limits = policy.rate_limits.iter().enumerate().filter(|_| !route.exempt);
    let rate_limits = limits
        .filter(|(_, limit)| rate::applies(&limit.paths, &path))
        .map(|(rule, limit)| ExplainedLimit {
            rule,
            counted: counted(&limit.key, &head.headers, client, route, tenant.as_ref()),
        })
        .collect();
    let fields = deadline::Field::all(policy);
    let deadline = deadline::of(&fields, &head.headers, route.deadline, Timestamp::ZERO)
        .map(|at| at.since(Timestamp::ZERO));
    let said = deadline::said(&fields, &head.headers).find(|(_, time)| Some(*time) == deadline);
    let retry = classes.retry_field(&head.headers).filter(|_| class.attempt == Attempt::Retry);
    Explained::Routed(Box::new(Explanation {
        target: route::origin_form(&head.uri).to_string(),
        client,
        trusted,
        route: index,
        priority: class.priority.0.into(),
        because: because(class.grounds, policy, route),
        tenant,
        cost: class.cost,
        retry: retry.map(ToString::to_string),
        recognised: class.fingerprint.is_some(),
        rate_limits,
        deadline,
        deadline_from: deadline
            .map(|_| said.map_or_else(|| "the route".to_owned(), |(name, _)| name.to_string())),
    }))
}

fn because(grounds: Grounds, policy: &Policy, route: &Route) -> String {
    let header = match &route.priority {
        RoutePriority::Header(name) => name.as_str(),
        RoutePriority::Class(_) => "",
    };
    let class = |index: usize| policy.priorities.get(index).map_or("", |class| class.name.as_str());
    match grounds {
        Grounds::Route => "that of the route".to_owned(),
        Grounds::Claimed => format!("`{header}` says so"),
        Grounds::Capped(claimed) => format!(
            "`{header}` says {}, and a client that is no trusted proxy may claim at most {}",
            class(claimed.0.into()),
            class(policy.server.priority_ceiling)
        ),
        Grounds::Unknown => format!("`{header}` names no class"),
        Grounds::Unsaid => format!("there is no `{header}`"),
        Grounds::Urgency(urgency) => format!("`priority: u={urgency}`"),
        Grounds::Prefetch => "it is only a prefetch".to_owned(),
    }
}

pub(crate) fn tenant_name(
    key: &TenantKey,
    headers: &HeaderMap,
    client: IpAddr,
    believed: bool,
) -> Option<String> {
    match key {
        TenantKey::ClientIp => Some(customer(client)),
        TenantKey::Header(name) => value(headers, name).filter(|_| believed),
    }
}

fn counted(
    key: &RateKey,
    headers: &HeaderMap,
    client: IpAddr,
    route: &Route,
    tenant: Option<&ExplainedTenant>,
) -> String {
    match key {
        RateKey::ClientIp => format!("the client {}", customer(client)),
        RateKey::Header(name) => match value(headers, name) {
            Some(value) => format!("`{name}: {value}`"),
            None => format!("all without `{name}`"),
        },
        RateKey::Tenant => match tenant.and_then(|tenant| tenant.name.as_ref()) {
            Some(name) => format!("the tenant {name}"),
            None => "all without a tenant".to_owned(),
        },
        RateKey::Route => format!("the route {}", route.label),
        RateKey::Global => "all together".to_owned(),
    }
}

fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
