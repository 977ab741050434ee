//! What kind of request it is, as the service sees it. Plain data; what follows from it is the engine's decision.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use http::HeaderMap;
use tidegate_engine::{Arrival, Attempt, Priority, RouteId, Tenant, Timestamp};

use crate::layers::deadline;
use crate::layers::key::Key;

/// What a classifier says of a request. The default is a first try of the most important class, of cost 1, on behalf of
/// nobody in particular, whose client has all the time in the world.
///
/// ```
/// use tidegate_tower::Class;
/// use tidegate_tower::engine::Priority;
///
/// fn classify(head: &http::request::Parts) -> Class {
///     if head.uri.path() == "/healthz" {
///         return Class::exempt();
///     }
///     let class = match head.headers.get("x-tenant") {
///         Some(name) => Class::default().with_tenant(name.as_bytes()),
///         None => Class::default(),
///     };
///     if head.uri.path().starts_with("/reports") { class.with_priority(Priority(2)) } else { class }
/// }
/// # let (head, ()) = http::Request::get("/reports/1").body(()).unwrap().into_parts();
/// # assert_eq!(classify(&head).priority, Priority(2));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Class {
    /// It goes past the gate: never limited, never sampled. For health checks, which must not fail because the service
    /// is busy.
    pub exempt: bool,
    /// Where it goes; `None` for the route of the layer.
    pub route: Option<RouteId>,
    /// How important it is: the index of its class in the gate's policy.
    pub priority: Priority,
    /// On whose behalf it comes; `None` where nobody is told from anybody.
    pub tenant: Option<Tenant>,
    /// How many slots it takes.
    pub cost: NonZeroU32,
    /// How long its client waits, from now on; `None` if that is not known. [`GateLayer`](crate::GateLayer) reads by itself
    /// what the request states.
    pub patience: Option<Duration>,
    /// Whether it was tried before.
    pub attempt: Attempt,
    /// What tells this very request from others when it comes again: a hash of what identifies it.
    pub fingerprint: Option<u64>,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            exempt: false,
            route: None,
            priority: Priority(0),
            tenant: None,
            cost: NonZeroU32::MIN,
            patience: None,
            attempt: Attempt::Unsaid,
            fingerprint: None,
        }
    }
}

impl Class {
    /// A request that goes past the gate.
    pub fn exempt() -> Self {
        Self { exempt: true, ..Self::default() }
    }

    /// The same request, on this route, whichever the layer is for.
    #[must_use]
    pub const fn with_route(self, route: RouteId) -> Self {
        Self { route: Some(route), ..self }
    }

    /// The same request, of this class.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// The same request, on behalf of whoever has this name, which is hashed with a secret seed.
    #[must_use]
    pub fn with_tenant(self, name: impl Hash) -> Self {
        Self { tenant: Some(Tenant::new(Key::of(name).number())), ..self }
    }

    /// The same request, which takes so many slots.
    #[must_use]
    pub const fn with_cost(self, cost: NonZeroU32) -> Self {
        Self { cost, ..self }
    }

    /// The same request, whose client waits so long, or shorter if it is known to wait shorter.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        let shortest = self.patience.map_or(patience, |known| known.min(patience));
        Self { patience: Some(shortest), ..self }
    }

    /// The same request, whose client waits as long as it says in `grpc-timeout` or `x-envoy-expected-rq-timeout-ms`. For
    /// where [`GateLayer`](crate::GateLayer) is not, or not for every request, to look at these itself. Of
    /// what it says in other fields, [`deadline::stated_in`] is what to give to [`with_patience`](Self::with_patience).
    #[must_use]
    pub fn with_stated_deadline(self, headers: &HeaderMap) -> Self {
        match deadline::stated(headers) {
            Some(patience) => self.with_patience(patience),
            None => self,
        }
    }

    /// The same request, first or tried before.
    #[must_use]
    pub const fn with_attempt(self, attempt: Attempt) -> Self {
        Self { attempt, ..self }
    }

    /// The same request, known when it comes again by what is given here, which is hashed with a secret seed.
    #[must_use]
    pub fn with_fingerprint(self, identity: impl Hash) -> Self {
        Self { fingerprint: Some(Key::of(identity).number()), ..self }
    }

    /// The request, in the engine's words.
    pub(crate) fn arrival(&self, route: RouteId, deadline: Option<Timestamp>) -> Arrival {
        let mut arrival =
            Arrival::new(route).with_priority(self.priority).with_cost(self.cost).with_attempt(self.attempt);
        arrival.tenant = self.tenant;
        arrival.deadline = deadline;
        arrival.fingerprint = self.fingerprint;
        arrival
    }
}
