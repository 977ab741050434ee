//! What kind of request it is: its class, its tenant, what it costs, whether it was tried before.
//!
//! It looks at the head, at who sent it, and at the policy, and remembers nothing: the same request is always the same.
//! What follows from it is the engine's decision. What a client says of itself is believed where it can only lose by it;
//! what it would gain by is believed of trusted proxies, and of others as far as the policy says.

mod attempt;

mod fingerprint;

mod wish;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::NonZeroU32;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, request};
use tidegate_engine::{Arrival, Attempt, Priority, RouteId, Tenant, Timestamp};
use tidegate_policy::{Fingerprint, Policy, Route, RoutePriority, TenantKey};

use crate::client_addr::limit_key;
use crate::fields::{Fields, Name};
use attempt::AttemptField;

/// What the engine is told of a request, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    pub(crate) priority: Priority,
    pub(crate) grounds: Grounds,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) cost: NonZeroU32,
    pub(crate) attempt: Attempt,
    pub(crate) fingerprint: Option<u64>,
}

/// What decided about the class of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grounds {
    /// Its route.
    Route,
    /// The header that its route names.
    Claimed,
    /// That header claims this class, which is more than this client may have.
    Capped(Priority),
    /// That header names no class.
    Unknown,
    /// That header is not there.
    Unsaid,
    /// `Priority: u=N`.
    Urgency(u8),
    /// It is only a prefetch.
    Prefetch,
}

/// Who sends a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The client's address, as far as trusted proxies tell it.
    pub(crate) address: IpAddr,
    /// The peer of the socket is a trusted proxy.
    pub(crate) trusted: bool,
}

/// What the policy says about all of this.
pub(crate) struct Classes {
    /// The names of the classes, the most important first, as they stand in fields.
    names: Vec<HeaderValue>,
    default: Priority,
    ceiling: Priority,
    prefetch: Option<Priority>,
    urgency: bool,
    routes: Vec<Rule>,
    untrusted_tenants: bool,
    /// By the hash of their names. Tenants that are not in here have a weight of 1.
    weights: HashMap<u64, NonZeroU32>,
    attempts: Vec<AttemptField>,
    fingerprint: Fingerprint,
    /// Secret, so that nobody can choose names that collide; the same across reloads, so that everybody stays who they are.
    seed: RandomState,
}

/// What a route says.
struct Rule {
    /// The header that claims a class; where there is none, all are in `class`.
    header: Option<Name>,
    class: Priority,
    tenant: Option<TenantField>,
    cost: NonZeroU32,
}

enum TenantField {
    Header(Name),
    ClientIp,
}

impl Classes {
    pub(crate) fn new(policy: &Policy, before: Option<&Self>) -> Self {
        let server = &policy.server;
        let default = priority(policy.default_priority());
        let seed = before.map(|before| before.seed.clone()).unwrap_or_default();
        let id = |name: &str| tenant_id(&seed, Some(name.as_bytes()));
        Self {
            names: policy
                .priorities
                .iter()
                .filter_map(|class| HeaderValue::from_str(&class.name).ok())
                .collect(),
            default,
            ceiling: priority(server.priority_ceiling),
            prefetch: server.prefetch_priority.map(priority),
            urgency: server.urgency,
            routes: policy.routes.iter().map(|route| Rule::new(route, default)).collect(),
            untrusted_tenants: server.untrusted_tenants,
            weights: policy.tenants.iter().map(|tenant| (id(&tenant.name), tenant.weight)).collect(),
            attempts: server.attempt_headers.iter().filter_map(|name| AttemptField::named(name)).collect(),
            fingerprint: server.fingerprint,
            seed,
        }
    }

    /// What a request on the route of this index is.
    pub(crate) fn of(&self, route: usize, head: &request::Parts, source: Source) -> Class {
        let (rule, fields) = (&self.routes[route], Fields::of(&head.headers));
        let (priority, grounds) = self.priority(rule, fields, source.trusted);
        let retry = attempt::said(&self.attempts, fields).is_some();
        Class {
            priority,
            grounds,
            tenant: self.tenant(rule, fields, source),
            cost: rule.cost,
            attempt: if retry { Attempt::Retry } else { Attempt::Unsaid },
            fingerprint: fingerprint::of(self.fingerprint, &self.seed, head, fields, source.address),
        }
    }

    /// The class of a request on the route of this index that says nothing.
    pub(crate) fn usual(&self, route: usize) -> Priority {
        self.routes[route].class
    }

    /// The field that says that the request was tried before.
    pub(crate) fn retry_field(&self, headers: &HeaderMap) -> Option<&HeaderName> {
        attempt::said(&self.attempts, Fields::of(headers))
    }

    /// Tells the upstream the class, in the header that claims one, and leaves out a tenant that was not believed: what was
    /// not believed here must not be believed further on, where it comes from us, a proxy. All else passes unchanged,
    /// attempts too.
    ///
    /// To be called when the fields are gone that `Connection` lists, so that a client cannot list ours (CVE-2024-45410).
    pub(crate) fn pass_on(&self, route: usize, class: &Class, trusted: bool, headers: &mut HeaderMap) {
        let rule = &self.routes[route];
        if let Some(name) = &rule.header
            && let Some(value) = self.names.get(usize::from(class.priority.0))
        {
            headers.insert(name.name.clone(), value.clone());
        }
        if let (Some(TenantField::Header(name)), false) = (&rule.tenant, self.untrusted_tenants || trusted) {
            headers.remove(&name.name);
        }
    }

    fn priority(&self, rule: &Rule, fields: Fields<'_>, trusted: bool) -> (Priority, Grounds) {
        let (mut priority, mut grounds) = self.claim(rule, fields, trusted);
        if self.urgency
            && let Some(urgency) = wish::urgency(fields)
        {
            let least = u8::try_from(self.names.len().saturating_sub(1)).unwrap_or(u8::MAX);
            // Its client says so, however trusted the proxy that hands it on, and so it can only lower.
            let steps = urgency.saturating_sub(wish::URGENCY_DEFAULT);
            let lowered = Priority(priority.0.saturating_add(steps).min(least));
            if lowered > priority {
                (priority, grounds) = (lowered, Grounds::Urgency(urgency));
            }
        }
        if let Some(prefetch) = self.prefetch.filter(|prefetch| *prefetch > priority)
            && wish::is_prefetch(fields)
        {
            (priority, grounds) = (prefetch, Grounds::Prefetch);
        }
        (priority, grounds)
    }

    fn claim(&self, rule: &Rule, fields: Fields<'_>, trusted: bool) -> (Priority, Grounds) {
        let Some(name) = &rule.header else { return (rule.class, Grounds::Route) };
        let Some(value) = fields.get(name) else { return (self.default, Grounds::Unsaid) };
        let known = self.names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(value.as_bytes()));
        match known.map(priority) {
            None => (self.default, Grounds::Unknown),
            // The less important, the higher the number.
            Some(claimed) if claimed < self.ceiling && !trusted => (self.ceiling, Grounds::Capped(claimed)),
            Some(claimed) => (claimed, Grounds::Claimed),
        }
    }

    fn tenant(&self, rule: &Rule, fields: Fields<'_>, source: Source) -> Option<Tenant> {
        let id = match rule.tenant.as_ref()? {
            TenantField::ClientIp => self.seed.hash_one((Kind::Address, limit_key(source.address))),
            TenantField::Header(name) => {
                let value = fields.get(name).filter(|_| source.trusted || self.untrusted_tenants);
                // Without it they are one tenant: leaving it out must not be a way round.
                tenant_id(&self.seed, value.map(HeaderValue::as_bytes))
            }
        };
        let weight = if self.weights.is_empty() { None } else { self.weights.get(&id).copied() };
        Some(Tenant { id, weight: weight.unwrap_or(NonZeroU32::MIN) })
    }
}

impl Rule {
    fn new(route: &Route, default: Priority) -> Self {
        let (header, class) = match &route.priority {
            RoutePriority::Class(index) => (None, priority(*index)),
            // The policy has checked that it is a name.
            RoutePriority::Header(name) => (Name::named(name), default),
        };
        let tenant = match &route.tenant {
            None => None,
            Some(TenantKey::ClientIp) => Some(TenantField::ClientIp),
            Some(TenantKey::Header(name)) => Name::named(name).map(TenantField::Header),
        };
        Self { header, class, tenant, cost: route.cost }
    }
}

impl Class {
    /// The request, in the engine's words.
    pub(crate) fn arrival(&self, route: RouteId, deadline: Option<Timestamp>) -> Arrival {
        let mut arrival =
            Arrival::new(route).with_priority(self.priority).with_cost(self.cost).with_attempt(self.attempt);
        if let Some(tenant) = self.tenant {
            arrival = arrival.with_tenant(tenant);
        }
        if let Some(deadline) = deadline {
            arrival = arrival.with_deadline(deadline);
        }
        if let Some(fingerprint) = self.fingerprint {
            arrival = arrival.with_fingerprint(fingerprint);
        }
        arrival
    }
}

/// What a hash is of: what is the same text in two places is not the same thing.
#[derive(Hash)]
enum Kind {
    Tenant,
    Address,
    Keyed,
    Identified,
}

fn tenant_id(seed: &RandomState, name: Option<&[u8]>) -> u64 {
    seed.hash_one((Kind::Tenant, name))
}

/// There are at most eight classes.
fn priority(index: usize) -> Priority {
    Priority(u8::try_from(index).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests;
