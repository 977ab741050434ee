//! What stands before the services: nothing, a policy, or a fixed limit that is right at every moment.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{AdmissionPolicy, Capacity, LimitPolicy, QueuePolicy, RouteId};
use tidegate_policy::{Policy, RateLimit};
use tidegate_workload as workload;
use tidegate_workload::{BEST_STATIC, Change, NO_CONTROL, NamedPolicy, Product, Scenario, Service};

use crate::passage::{self, Passage};

/// What a scenario is played against.
#[derive(Clone, Debug)]
pub enum Control {
    /// Every request goes straight to its service.
    Nothing,
    /// A policy.
    Policy(Box<NamedPolicy>),
    /// A model of the limiter of another product, in the place of a policy's own.
    Model(Product, Box<NamedPolicy>),
    /// A fixed limit that somebody set who knows the capacity at every moment, and the queue that is best for it.
    BestStatic,
    /// The same limit in the place of a policy's own, and the queue of that policy.
    BestStaticBehind(Box<NamedPolicy>),
}

impl Control {
    /// All that a scenario compares: nothing, its policies, and the best static limit where it can be known.
    pub fn all(scenario: &Scenario) -> Vec<Self> {
        let mut controls = vec![Self::Nothing];
        controls.extend(scenario.policies.iter().map(|named| match named.model {
            Some(product) => Self::Model(product, Box::new(named.clone())),
            None => Self::Policy(Box::new(named.clone())),
        }));
        if scenario.services.iter().all(|service| best_limit(service).is_some()) {
            controls.push(Self::BestStatic);
        }
        controls
    }

    /// Its name in tables.
    pub fn name(&self) -> &str {
        match self {
            Self::Nothing => NO_CONTROL,
            Self::Policy(named) | Self::Model(_, named) => &named.name,
            Self::BestStatic | Self::BestStaticBehind(_) => BEST_STATIC,
        }
    }

    /// The product whose limiter says the limit, if one does.
    pub(crate) const fn product(&self) -> Option<Product> {
        match self {
            Self::Model(product, _) => Some(*product),
            Self::Nothing | Self::Policy(_) | Self::BestStatic | Self::BestStaticBehind(_) => None,
        }
    }

    /// Whether somebody sets the limit anew whenever another is best.
    pub(crate) const fn knows_best(&self) -> bool {
        matches!(self, Self::BestStatic | Self::BestStaticBehind(_))
    }
}

/// The gateway's settings before one service.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) admission: AdmissionPolicy,
    pub(crate) timeout: Duration,
    pub(crate) cancels_work: bool,
    pub(crate) orphan_max: Duration,
    pub(crate) retry_after_max: Duration,
    pub(crate) rate_limits: Vec<RateLimit>,
    /// For each kind of request of the scenario, clients by clients, how it passes.
    pub(crate) passages: Vec<Vec<Passage>>,
}

/// The gateway before a service; `None` if nothing stands there.
pub(crate) fn setup(scenario: &Scenario, control: &Control, service: usize) -> Option<Setup> {
    match control {
        Control::Nothing => None,
        Control::Policy(named) | Control::Model(_, named) => of_policy(scenario, &named.policy, service),
        Control::BestStatic => best_static(scenario, service),
        Control::BestStaticBehind(named) => {
            let mut setup = of_policy(scenario, &named.policy, service)?;
            setup.admission.limit = best_share(scenario, service)?;
            Some(setup)
        }
    }
}

/// A policy protects the service that has the name of one of its upstreams; a scenario with a single service is protected
/// by the first, whatever that is called.
fn of_policy(scenario: &Scenario, policy: &Policy, service: usize) -> Option<Setup> {
    let name = &scenario.services[service].name;
    let named = policy.upstreams.iter().position(|upstream| upstream.name == *name);
    let index = named.or_else(|| (scenario.services.len() == 1).then_some(0))?;
    let upstream = &policy.upstreams[index];
    let bulkheads =
        policy.routes.iter().enumerate().filter(|(_, route)| route.upstream == index).filter_map(
            |(number, route)| route.bulkhead.map(|bulkhead| (RouteId(number as u32), bulkhead.max)),
        );
    Some(Setup {
        admission: policy.admission(index, bulkheads.collect()),
        timeout: upstream.timeout,
        cancels_work: upstream.cancels_work,
        orphan_max: upstream.orphan_max,
        retry_after_max: policy.server.retry_after_max,
        rate_limits: policy.rate_limits.clone(),
        passages: passage::all(scenario, |clients, kind| Passage::of(policy, clients, kind)),
    })
}

fn best_static(scenario: &Scenario, service: usize) -> Option<Setup> {
    let described = &scenario.services[service];
    let patience = scenario.clients.iter().filter_map(|clients| clients.timeout).min();
    let patience = patience.unwrap_or(Duration::from_secs(10));
    // Who waits longer than this has no time left to be served.
    let served = described.time.mean() * 3 + described.delay * 2;
    let wait = patience.saturating_sub(served).max(patience / 10);
    let setup = Setup {
        admission: AdmissionPolicy::new(
            best_share(scenario, service)?,
            QueuePolicy {
                standing_wait: (patience / 10).min(wait),
                ..QueuePolicy::of(wait, Capacity::Derived)
            },
        ),
        timeout: patience,
        cancels_work: described.cancels_work,
        orphan_max: scenario.duration,
        retry_after_max: Duration::from_secs(60),
        rate_limits: Vec::new(),
        passages: passage::all(scenario, |_, _| Passage::plain()),
    };
    Some(setup)
}

/// What each gateway has of the limit that is best at first.
fn best_share(scenario: &Scenario, service: usize) -> Option<LimitPolicy> {
    // Only the service that clients ask has several gateways before it.
    let gateways = if service == 0 { scenario.gateways } else { 1 };
    let limit = best_limit(&scenario.services[service])?;
    NonZeroU32::new(limit.get().div_ceil(gateways)).map(LimitPolicy::Fixed)
}

/// The limit that is best for a service at first, where that can be known.
fn best_limit(service: &Service) -> Option<NonZeroU32> {
    service.best.or_else(|| match service.capacity {
        workload::Capacity::Workers(workers) => NonZeroU32::new(workers),
        workload::Capacity::Shared { knee, .. } => NonZeroU32::new(knee as u32),
        workload::Capacity::Elastic { .. } => None,
    })
}

/// The limit that is best after a change, if it is another.
pub(crate) fn best_limit_after(change: Change, gateways: u32) -> Option<LimitPolicy> {
    let Change::Workers(workers) = change else { return None };
    NonZeroU32::new(workers.div_ceil(gateways)).map(LimitPolicy::Fixed)
}
