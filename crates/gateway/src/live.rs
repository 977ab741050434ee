//! The policy in force, with what belongs to it: upstreams, rules, counters. Replaced as a whole by a reload.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_engine::{LimitPolicy, RouteId};
use tidegate_policy::{Policy, Setting};
use tidegate_tower::Clock;

use crate::classify::Classes;
use crate::deadline::Field;
use crate::metrics::{Occupancy, RouteStats};
use crate::rate::Rule;
use crate::upstream::Upstream;

pub(crate) struct Live {
    pub(crate) policy: Policy,
    /// In the order of the policy, as are the others.
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    pub(crate) routes: Vec<LiveRoute>,
    pub(crate) rules: Vec<Rule>,
    /// What kind of request is what.
    pub(crate) classes: Classes,
    /// Where clients say how long they wait.
    pub(crate) deadline_fields: Vec<Field>,
    /// What routes and classes of earlier policies have counted, so that no counter of a metric ever goes back: by the
    /// route's label and the name of the class. Bounded by [`RETIRED_MAX`].
    pub(crate) retired: BTreeMap<(String, String), Arc<RouteStats>>,
    /// Where the values of the policy come from, as far as that is known.
    pub(crate) settings: Arc<Vec<Setting>>,
    /// The limits of the upstreams as the policy has them, whatever operators have set since.
    pub(crate) limits: Vec<LimitPolicy>,
    /// The number to give to the next route that is new.
    next_route_id: u32,
}

/// Counters of at most so many routes and classes are kept after they have gone from the policy.
const RETIRED_MAX: usize = 1_000;

/// What a route has besides its policy.
pub(crate) struct LiveRoute {
    /// Its name to the engine: the same for the same label across reloads.
    pub(crate) id: RouteId,
    /// For each class.
    pub(crate) stats: Vec<Arc<RouteStats>>,
    /// Its requests that have not ended yet. Goes on across reloads, as the number does.
    pub(crate) open: Arc<Occupancy>,
}

impl Live {
    /// Brings a policy to life, going on with what the one before has learned, holds and counts.
    pub(crate) fn new(policy: Policy, settings: Vec<Setting>, before: Option<&Self>, clock: Clock) -> Self {
        let limits = policy.upstreams.iter().map(|upstream| upstream.limit.clone()).collect();
        Self::with(policy, Arc::new(settings), limits, before, clock)
    }

    /// The same policy with this limit for the upstream of this number, or with that of the policy again.
    pub(crate) fn with_limit(&self, upstream: usize, limit: Option<NonZeroU32>, clock: Clock) -> Self {
        let mut policy = self.policy.clone();
        policy.upstreams[upstream].limit =
            limit.map_or_else(|| self.limits[upstream].clone(), LimitPolicy::Fixed);
        Self::with(policy, self.settings.clone(), self.limits.clone(), Some(self), clock)
    }

    fn with(
        policy: Policy,
        settings: Arc<Vec<Setting>>,
        limits: Vec<LimitPolicy>,
        before: Option<&Self>,
        clock: Clock,
    ) -> Self {
        let mut retired = before.map(|before| before.retired.clone()).unwrap_or_default();
        if let Some(before) = before {
            let key = |label: &str, class: &str| (label.to_owned(), class.to_owned());
            retired.extend(before.counted().map(|(label, class, stats)| (key(label, class), stats.clone())));
        }
        let mut next_route_id = before.map_or(0, |before| before.next_route_id);
        let mut routes = Vec::with_capacity(policy.routes.len());
        for route in &policy.routes {
            let known = before.and_then(|before| before.route(&route.label));
            let id = known.map(|known| known.id).unwrap_or_else(|| {
                next_route_id = next_route_id.wrapping_add(1);
                RouteId(next_route_id)
            });
            let stats = policy
                .priorities
                .iter()
                .map(|class| retired.remove(&(route.label.clone(), class.name.clone())).unwrap_or_default());
            let open = known.map(|known| known.open.clone()).unwrap_or_default();
            routes.push(LiveRoute { id, stats: stats.collect(), open });
        }
        while retired.len() > RETIRED_MAX {
            retired.pop_first();
        }
        let upstreams = (0..policy.upstreams.len())
            .map(|index| {
                let upstream = policy.upstreams[index].clone();
                let mut admission = policy.admission(index, bulkheads(&policy, index, &routes));
                // An only endpoint has a breaker of its own, which sees more.
                admission.breaker = admission.breaker.filter(|_| upstream.endpoints.len() > 1);
                let known = before.and_then(|before| before.upstream(&upstream.name));
                Arc::new(Upstream::new(upstream, admission, &policy.priorities, known, clock))
            })
            .collect();
        let rule = |rule: &tidegate_policy::RateLimit| {
            let known = before.and_then(|before| before.rules.iter().find(|known| known.name == rule.name));
            Rule::new(rule, known, clock.now())
        };
        let rules = policy.rate_limits.iter().map(rule).collect();
        let deadline_fields = Field::all(&policy);
        let classes = Classes::new(&policy, before.map(|before| &before.classes));
        Self {
            policy,
            upstreams,
            routes,
            rules,
            classes,
            deadline_fields,
            retired,
            settings,
            limits,
            next_route_id,
        }
    }

    /// What each route has counted in each class, with their names. Classes that a route has never had are left out, but
    /// for the one that it is for.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&str, &str, &Arc<RouteStats>)> {
        let routes = self.policy.routes.iter().zip(&self.routes).enumerate();
        routes.flat_map(|(index, (policy, route))| {
            let usual = usize::from(self.classes.usual(index).0);
            let classes = self.policy.priorities.iter().zip(&route.stats).enumerate();
            let had = classes.filter(move |(class, (_, stats))| *class == usual || stats.has_counted());
            had.map(|(_, (class, stats))| (policy.label.as_str(), class.name.as_str(), stats))
        })
    }

    fn route(&self, label: &str) -> Option<&LiveRoute> {
        let index = self.policy.routes.iter().position(|route| route.label == label)?;
        self.routes.get(index)
    }

    fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.upstreams.iter().map(Arc::as_ref).find(|upstream| upstream.policy.name == name)
    }
}

fn bulkheads(policy: &Policy, upstream: usize, routes: &[LiveRoute]) -> Vec<(RouteId, NonZeroU32)> {
    let of_upstream = policy.routes.iter().zip(routes).filter(|(route, _)| route.upstream == upstream);
    of_upstream.filter_map(|(route, live)| route.bulkhead.map(|bulkhead| (live.id, bulkhead.max))).collect()
}
