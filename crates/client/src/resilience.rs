//! What is known of all upstreams, shared by everybody who calls them: clones, layers, adapters.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HOST;
use http::{Extensions, HeaderMap, Method, Uri};
use tidegate_engine::Timestamp;

use crate::ambient::{self, Ambient};
use crate::clock::Clock;
use crate::deadline::{self, Deadline};
use crate::dice::Dice;
use crate::drive::Ask;
use crate::policy::Policy;
use crate::upstream::{Snapshot, Upstream};

/// The name of what the upstreams share that there was no room to tell apart.
const OTHERS: &str = "(others)";

/// What is known of all upstreams. Cloning gives another handle to the same, so that several layers and clients can have
/// one budget, one breaker and one limit for each upstream together.
#[derive(Clone)]
pub struct Resilience {
    shared: Arc<Shared>,
}

struct Shared {
    policy: Policy,
    clock: Clock,
    dice: Dice,
    /// By authority. One lock for a look-up; each upstream has its own for what it decides.
    upstreams: Mutex<HashMap<Box<str>, Arc<Upstream>>>,
}

impl Resilience {
    /// Nothing is known yet.
    pub fn new(policy: Policy) -> Self {
        Self::with_dice(policy, Dice::new())
    }

    /// The same, with jitter that can be repeated.
    pub fn seeded(policy: Policy, seed: u64) -> Self {
        Self::with_dice(policy, Dice::seeded(seed))
    }

    fn with_dice(policy: Policy, dice: Dice) -> Self {
        Self { shared: Arc::new(Shared { policy, clock: Clock::start(), dice, upstreams: Mutex::default() }) }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// How the upstream of this authority (`host:port`, as in the URI; empty for requests without one) stands; `None` if it
    /// has not been called.
    pub fn snapshot(&self, authority: &str) -> Option<Snapshot> {
        let upstream = self.upstreams().get(&*name(authority)).map(Arc::clone);
        upstream.map(|upstream| upstream.snapshot())
    }

    /// How all of them stand, in the order of their names.
    pub fn snapshots(&self) -> Vec<(String, Snapshot)> {
        let upstreams: Vec<_> =
            self.upstreams().iter().map(|(name, one)| (name.clone(), Arc::clone(one))).collect();
        let mut list: Vec<_> =
            upstreams.into_iter().map(|(name, upstream)| (name.into_string(), upstream.snapshot())).collect();
        list.sort_by(|(one, _), (other, _)| one.cmp(other));
        list
    }

    fn upstreams(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Upstream>>> {
        self.shared.upstreams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn upstream(&self, uri: &Uri, headers: &HeaderMap) -> Arc<Upstream> {
        let host = || headers.get(HOST).and_then(|host| host.to_str().ok());
        let authority = uri.authority().map(|authority| authority.as_str()).or_else(host).unwrap_or_default();
        let authority = &*name(authority);
        let mut upstreams = self.upstreams();
        if let Some(known) = upstreams.get(authority) {
            return Arc::clone(known);
        }
        let fits = upstreams.len() < self.shared.policy.upstreams_max;
        let name = if fits { authority } else { OTHERS };
        let new = || {
            let dice = Dice::seeded(self.shared.dice.roll());
            Arc::new(Upstream::new(name, &self.shared.policy, self.shared.clock, dice))
        };
        Arc::clone(upstreams.entry(name.into()).or_insert_with(new))
    }

    /// What a call is, read from its request and from the request that is being served.
    pub(crate) fn ask(&self, method: &Method, headers: &HeaderMap, extensions: &Extensions) -> Ask {
        let policy = &self.shared.policy;
        let ambient = extensions.get::<Ambient>().cloned().or_else(Ambient::current);
        let own = ambient::attempt(headers, &policy.attempt_field);
        let attempt = ambient.as_ref().map_or(1, Ambient::attempt).max(own);
        let now = self.shared.clock.now();
        let said = deadline::said(&policy.deadline_fields, headers).map(|left| now.after(left));
        let told = [extensions.get::<Deadline>().copied(), ambient.as_ref().and_then(Ambient::deadline)];
        let told = told.into_iter().flatten().map(|deadline| self.shared.clock.timestamp(deadline.0));
        let deadline: Timestamp = told.chain(said).fold(now.after(policy.timeout), Timestamp::min);
        let has_key = policy.idempotency_fields.iter().any(|name| headers.contains_key(name));
        Ask {
            deadline,
            try_timeout: policy.try_timeout,
            idempotent: method.is_idempotent() || has_key,
            // Whoever is inside another's retry, or before somebody who retries, does not.
            may_retry: attempt == 1 && !policy.upstream_retries,
            attempt,
            ambient,
        }
    }
}

/// The name of an upstream: host and port, in small letters. Whoever calls may have put a password before them, which must
/// not get into logs and metrics, and does not make it another upstream.
fn name(authority: &str) -> Cow<'_, str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

impl fmt::Debug for Resilience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resilience").field(&self.snapshots()).finish()
    }
}
