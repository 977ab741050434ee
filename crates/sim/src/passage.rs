//! How a request passes a gateway: its route, and what the engine is told of it.
//!
//! The gateway reads this in fields of the head. Here the scenario says what would stand in them, and the policy, as in
//! the gateway, what is looked at and what is believed.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{Arrival, Attempt, Priority, RouteId, Tenant, Timestamp};
use tidegate_policy::{Policy, RateKey, RateLimit, Route, RoutePriority, TenantKey};
use tidegate_workload::{Clients, Kind, Scenario};

/// Kept back for the way of the answer, as in the gateway: a fiftieth of what is left, at most so much.
const MARGIN_MAX: Duration = Duration::from_millis(5);
const MARGIN_SHARE: u32 = 50;

/// How one kind of request passes a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    pub(crate) route: RouteId,
    pub(crate) exempt: bool,
    priority: Priority,
    tenant: Option<Whose>,
    cost: NonZeroU32,
    /// The route's own.
    deadline: Option<Duration>,
    /// Whether it is looked how long its sender waits, and whether it was tried before.
    hears_deadlines: bool,
    hears_attempts: bool,
    /// Whether a key of its own tells it from others when it comes again.
    keyed: bool,
    /// The rate limits that apply, as indices into the policy's.
    limits: Vec<(usize, Counted)>,
}

/// Whose a request is taken to be.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// Its sender's, who weighs so much.
    Senders(NonZeroU32),
    /// Nobody is believed, so all are one.
    Everybodys,
}

/// What a rate limit counts it as.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// One of its sender.
    Senders,
    /// One of this key.
    Key(u64),
}

/// What one request says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    /// Who sends it.
    pub(crate) sender: u64,
    /// When its sender gives up, if that is said.
    pub(crate) deadline: Option<Timestamp>,
    /// That it was tried before.
    pub(crate) attempt: Attempt,
    /// What is the same in all of its tries.
    pub(crate) key: Option<u64>,
}

impl Passage {
    /// On the only route there is, with nothing asked.
    pub(crate) const fn plain() -> Self {
        Self {
            route: RouteId(0),
            exempt: false,
            priority: Priority(0),
            tenant: None,
            cost: NonZeroU32::MIN,
            deadline: None,
            hears_deadlines: false,
            hears_attempts: false,
            keyed: false,
            limits: Vec::new(),
        }
    }

    /// On the route that a kind takes, as in the gateway: the first that matches.
    ///
    /// Whoever asks on a route that the policy does not have gets a 404, which no scenario is about; it goes through.
    pub(crate) fn of(policy: &Policy, clients: &Clients, kind: &Kind) -> Self {
        let matches = |route: &Route| {
            route.path.matches(&kind.path)
                && (route.methods.is_empty() || route.methods.contains(&kind.method))
        };
        let Some(index) = policy.routes.iter().position(matches) else {
            return Self { exempt: true, ..Self::plain() };
        };
        let route = &policy.routes[index];
        Self {
            route: RouteId(index as u32),
            exempt: route.exempt,
            priority: priority(policy, route, &kind.class),
            tenant: route.tenant.as_ref().map(|key| whose(policy, key, &kind.tenant)),
            cost: route.cost,
            deadline: route.deadline,
            hears_deadlines: !policy.server.deadline_headers.is_empty(),
            hears_attempts: !policy.server.attempt_headers.is_empty(),
            keyed: clients.identified && policy.server.fingerprint != tidegate_policy::Fingerprint::Off,
            limits: limits(policy, index, &kind.path),
        }
    }

    /// When the answer is of no use any more, if anybody says so. A client can shorten what the route says, and not
    /// lengthen it.
    pub(crate) fn deadline(&self, began: Timestamp, says: Says) -> Option<Timestamp> {
        let said = says.deadline.filter(|_| self.hears_deadlines);
        said.into_iter().chain(self.deadline.map(|time| began.after(time))).min()
    }

    /// The request, in the engine's words.
    pub(crate) fn arrival(&self, now: Timestamp, says: Says) -> Arrival {
        let mut arrival = Arrival::new(self.route)
            .with_priority(self.priority)
            .with_cost(self.cost)
            .with_attempt(if self.hears_attempts { says.attempt } else { Attempt::Unsaid });
        if let Some(whose) = self.tenant {
            arrival = arrival.with_tenant(match whose {
                Whose::Senders(weight) => Tenant { id: says.sender, weight },
                Whose::Everybodys => Tenant::new(0),
            });
        }
        if let Some(deadline) = self.deadline(now, says) {
            arrival = arrival.with_deadline(deadline);
        }
        match says.key.filter(|_| self.keyed) {
            Some(key) => arrival.with_fingerprint(key),
            None => arrival,
        }
    }

    /// The rate limits that apply, as indices into the policy's, each with the key that the request has there.
    pub(crate) fn limits(&self, says: Says) -> impl Iterator<Item = (usize, u64)> {
        self.limits.iter().map(move |&(index, counted)| match counted {
            Counted::Senders => (index, says.sender),
            Counted::Key(key) => (index, key),
        })
    }
}

/// What whoever is asked next is told of a deadline that is due then.
pub(crate) fn passed_on(now: Timestamp, deadline: Timestamp) -> Timestamp {
    let left = deadline.since(now);
    now.after(left.saturating_sub((left / MARGIN_SHARE).min(MARGIN_MAX)))
}

/// By what one of so many tenants of this name is known. Always the same for the same tenant.
pub(crate) fn sender(tenant: &str, number: usize) -> u64 {
    // FNV-1a: names of a scenario are not chosen by an enemy.
    let name = tenant.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    key(name ^ key(number as u64))
}

/// By what the request of this number is known, whenever it comes: all bits depend on all others (SplitMix64), since the
/// engine takes it for a hash.
pub(crate) const fn key(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// How each kind of request passes, clients by clients.
pub(crate) fn all(scenario: &Scenario, passage: impl Fn(&Clients, &Kind) -> Passage) -> Vec<Vec<Passage>> {
    let clients = scenario.clients.iter();
    clients.map(|clients| clients.mix.iter().map(|kind| passage(clients, kind)).collect()).collect()
}

/// A class of the scenario is what stands in the header, if the route looks at one.
fn priority(policy: &Policy, route: &Route, class: &str) -> Priority {
    let index = match &route.priority {
        RoutePriority::Class(index) => *index,
        RoutePriority::Header(_) => {
            let known = policy.priorities.iter().position(|known| known.name.eq_ignore_ascii_case(class));
            match known {
                None => policy.default_priority(),
                // The less important, the higher the number.
                Some(claimed) if is_believed(policy) => claimed,
                Some(claimed) => claimed.max(policy.server.priority_ceiling),
            }
        }
    };
    Priority(u8::try_from(index).unwrap_or(u8::MAX))
}

fn whose(policy: &Policy, key: &TenantKey, tenant: &str) -> Whose {
    let weight = || policy.tenants.iter().find(|known| known.name == tenant).map(|known| known.weight);
    match key {
        TenantKey::ClientIp => Whose::Senders(NonZeroU32::MIN),
        TenantKey::Header(_) if is_believed(policy) || policy.server.untrusted_tenants => {
            Whose::Senders(weight().unwrap_or(NonZeroU32::MIN))
        }
        TenantKey::Header(_) => Whose::Everybodys,
    }
}

/// Where a policy trusts somebody, the clients of a scenario are taken to come by way of them.
fn is_believed(policy: &Policy) -> bool {
    !policy.server.trusted_proxies.is_empty()
}

fn limits(policy: &Policy, route: usize, path: &str) -> Vec<(usize, Counted)> {
    let applies =
        |limit: &RateLimit| limit.paths.is_empty() || limit.paths.iter().any(|pattern| pattern.matches(path));
    let limits = policy.rate_limits.iter().enumerate().filter(|(_, limit)| applies(limit));
    // A tenant is one caller, with an address and a key of its own.
    let counted = |limit: &RateLimit| match limit.key {
        RateKey::ClientIp | RateKey::Header(_) => Counted::Senders,
        RateKey::Tenant if policy.routes[route].tenant.is_some() => Counted::Senders,
        RateKey::Route => Counted::Key(route as u64),
        RateKey::Tenant | RateKey::Global => Counted::Key(0),
    };
    limits.map(|(index, limit)| (index, counted(limit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SECOND: Timestamp = Timestamp::from_millis(1_000);
    const SAYS: Says = Says { sender: 7, deadline: None, attempt: Attempt::Retry, key: Some(9) };

    /// How somebody passes who claims to be critical, at a gateway with this policy.
    fn passage(server: &str, route: &str) -> Passage {
        let text = format!(
            r#"
            story = "A passage."
            duration = "1s"
            [[service]]
            workers = 1
            time = "1ms"
            [[clients]]
            name = "ann"
            class = "critical"
            rate = "1/s"
            identified = true
            [[policy]]
            name = "policy"
            text = '''
            [server]
            {server}
            [[upstream]]
            name = "service"
            endpoints = ["http://127.0.0.1:8103"]
            [[tenant]]
            name = "ann"
            weight = 3
            [[route]]
            path = "/*"
            {route}
            '''
            "#
        );
        let scenario = Scenario::parse(&text, Path::new("passage.toml")).unwrap_or_else(|it| panic!("{it}"));
        let clients = &scenario.clients[0];
        Passage::of(&scenario.policies[0].policy, clients, &clients.mix[0])
    }

    #[test]
    fn a_class_is_the_routes_or_is_claimed_as_far_as_that_is_believed() {
        let [critical, default, background] = [0, 1, 2].map(Priority);
        for (server, route, priority) in [
            ("", "", default),
            ("", "priority = \"background\"", background),
            ("", "priority = \"header:x-class\"", default),
            ("trusted_proxies = [\"10.0.0.0/8\"]", "priority = \"header:x-class\"", critical),
            ("priority_ceiling = \"critical\"", "priority = \"header:x-class\"", critical),
        ] {
            let arrival = passage(server, route).arrival(SECOND, SAYS);
            assert_eq!(arrival.priority, priority, "{server} {route}");
        }
    }

    #[test]
    fn a_tenant_is_whoever_the_policy_takes_it_for() {
        let weighs = |weight| Tenant { id: 7, weight: NonZeroU32::new(weight).unwrap() };
        for (server, route, tenant) in [
            ("", "", None),
            ("", "tenant = \"client-ip\"", Some(weighs(1))),
            ("", "tenant = \"header:x-tenant\"", Some(weighs(3))),
            ("untrusted_tenants = false", "tenant = \"header:x-tenant\"", Some(Tenant::new(0))),
        ] {
            assert_eq!(passage(server, route).arrival(SECOND, SAYS).tenant, tenant, "{server} {route}");
        }
        assert_eq!(sender("ann", 3), sender("ann", 3));
        assert_ne!(sender("ann", 3), sender("ann", 4));
        assert_ne!(sender("ann", 0), sender("ben", 0));
    }

    #[test]
    fn what_is_said_counts_as_far_as_somebody_listens() {
        let said = passage("", "cost = 4").arrival(SECOND, SAYS);
        assert_eq!((said.attempt, said.fingerprint, said.cost.get()), (Attempt::Retry, Some(9), 4));
        let deaf = passage("attempt_headers = []\nfingerprint = \"off\"", "").arrival(SECOND, SAYS);
        assert_eq!((deaf.attempt, deaf.fingerprint, deaf.cost.get()), (Attempt::Unsaid, None, 1));
    }

    /// A client can shorten what the route says, and not lengthen it; what is passed on is less.
    #[test]
    fn a_deadline_only_shrinks() {
        let at = Timestamp::from_millis;
        let says = |millis| Says { deadline: Some(at(millis)), ..SAYS };
        let route = "deadline = \"500ms\"";
        for (server, route, says, deadline) in [
            ("", "", SAYS, None),
            ("", route, SAYS, Some(at(1_500))),
            ("", route, says(1_200), Some(at(1_200))),
            ("", route, says(9_000), Some(at(1_500))),
            ("deadline_headers = []", route, says(1_200), Some(at(1_500))),
        ] {
            let passage = passage(server, route);
            assert_eq!(passage.deadline(SECOND, says), deadline, "{server} {route}");
            assert_eq!(passage.arrival(SECOND, says).deadline, deadline);
        }
        assert_eq!(passed_on(SECOND, at(1_100)), at(1_098));
        assert_eq!(passed_on(SECOND, at(9_000)), at(8_995));
        assert_eq!(passed_on(SECOND, at(900)), SECOND, "nothing is left");
    }
}
