//! Kinds of requests: two requests are of one kind if no policy tells them apart.
//!
//! The simulator wants to know all kinds before it begins. The log decides which there are; the policies decide what
//! makes two of them different: the routes and rate limits that apply, and who asks, if a rate limit counts callers.

use std::collections::HashMap;

use tidegate_policy::Route;
use tidegate_workload::access_log::Entry;
use tidegate_workload::{Kind, NamedPolicy};

use super::callers::Callers;
use crate::exit::Failure;

/// So many kinds there may be.
const KINDS_MAX: usize = u16::MAX as usize;
/// So many callers are told apart at once, at most.
const SEATS_MAX: usize = 32_768;
/// The class of what the policy has no route for.
pub(crate) const NO_ROUTE: &str = "(no route)";

/// What the policies make of a request: for each the number of its route, one beyond the last for none; then 0 or 1 for
/// each rate limit that is for certain paths only.
type Signs = Box<[u16]>;

/// All kinds of requests in a log.
#[derive(Debug)]
pub(crate) struct Kinds<'a> {
    policies: &'a [NamedPolicy],
    /// Nobody has taken a seat yet; `None` if no rate limit counts callers.
    empty: Option<Callers>,
    callers: Option<Callers>,
    /// The kinds by what the policies make of them, then by the seat of who asks.
    known: HashMap<Signs, HashMap<u32, u16>>,
    /// The kinds, each with the method and path of the first request of it.
    pub(crate) kinds: Vec<Kind>,
    /// The names of the services; a kind's `service` is an index into them.
    pub(crate) services: Vec<String>,
    /// For each policy, how many requests have no route there.
    pub(crate) without_route: Vec<u64>,
    /// Requests for which there was no room for a kind.
    crowded_out: u64,
}

impl<'a> Kinds<'a> {
    /// None yet. Time is played so many times as fast.
    pub(crate) fn new(policies: &'a [NamedPolicy], speed: f64) -> Self {
        let several = policies.iter().find(|named| named.policy.upstreams.len() > 1);
        let services = several.map_or_else(
            || vec!["service".to_owned()],
            |named| named.policy.upstreams.iter().map(|upstream| upstream.name.clone()).collect(),
        );
        // Each caller may ask for something on every route.
        let routes: usize = policies.iter().map(|named| named.policy.routes.len() + 1).sum();
        let callers = Callers::new(policies, (KINDS_MAX / routes.max(1)).min(SEATS_MAX), speed);
        Self {
            policies,
            empty: callers.clone(),
            callers,
            known: HashMap::new(),
            kinds: Vec::new(),
            services,
            without_route: vec![0; policies.len()],
            crowded_out: 0,
        }
    }

    /// Takes in a request of the log, in the order of arrival.
    pub(crate) fn take(&mut self, entry: &Entry) -> Result<(), Failure> {
        let (signs, seat) = (self.signs(entry), self.seat(entry));
        for ((count, named), sign) in self.without_route.iter_mut().zip(self.policies).zip(&signs) {
            *count += u64::from(usize::from(*sign) >= named.policy.routes.len());
        }
        if self.find(&signs, seat).is_some() {
            return Ok(());
        }
        if self.kinds.len() >= KINDS_MAX {
            self.crowded_out += 1;
            return Ok(());
        }
        let kind = self.kind(entry, &signs, seat)?;
        self.known.entry(signs).or_default().insert(seat, self.kinds.len() as u16);
        self.kinds.push(kind);
        Ok(())
    }

    /// Everything is taken in, and the log is read once more from its beginning. Says how often a request was counted
    /// against the rate limit of somebody else.
    pub(crate) fn rewind(&mut self) -> u64 {
        let too_early = self.callers.as_ref().map_or(0, |callers| callers.too_early);
        self.callers = self.empty.clone();
        too_early + self.crowded_out
    }

    /// The kind of the next request, as an index.
    pub(crate) fn of(&mut self, entry: &Entry) -> u16 {
        let (signs, seat) = (self.signs(entry), self.seat(entry));
        let like_it = || self.known.get(&signs).and_then(|seats| seats.values().min().copied());
        self.find(&signs, seat).or_else(like_it).unwrap_or(0)
    }

    fn find(&self, signs: &[u16], seat: u32) -> Option<u16> {
        self.known.get(signs)?.get(&seat).copied()
    }

    fn seat(&mut self, entry: &Entry) -> u32 {
        self.callers.as_mut().map_or(0, |callers| callers.seat(entry))
    }

    fn kind(&self, entry: &Entry, signs: &[u16], seat: u32) -> Result<Kind, Failure> {
        let mut class = None;
        let mut service = None;
        for (named, sign) in self.policies.iter().zip(signs) {
            let Some(route) = named.policy.routes.get(usize::from(*sign)) else { continue };
            class.get_or_insert_with(|| route.label.clone());
            // One service alone is protected by the first upstream, whatever that is called.
            let upstream = named.policy.upstreams[route.upstream].name.as_str();
            let index = if self.services.len() == 1 { Some(0) } else { self.place(upstream) };
            if index.is_none() || service.is_some_and(|known| Some(known) != index) {
                return Err(Failure::runtime(format_args!(
                    "the policies do not send {} to the same upstream; policies with several upstreams can be \
                     compared if their names and routes say the same",
                    route.label
                )));
            }
            service = index;
        }
        Ok(Kind {
            share: 1.0,
            class: class.unwrap_or_else(|| NO_ROUTE.to_owned()),
            tenant: format!("caller {}", seat + 1),
            method: entry.method.as_deref().unwrap_or("GET").to_owned(),
            path: entry.path.to_string(),
            headers: Vec::new(),
            body: String::new(),
            cost: 1.0,
            service: service.unwrap_or(0),
        })
    }

    fn place(&self, upstream: &str) -> Option<usize> {
        self.services.iter().position(|name| name == upstream)
    }

    fn signs(&self, entry: &Entry) -> Signs {
        let method = entry.method.as_deref().unwrap_or("GET");
        let applies = |route: &Route| {
            let methods = &route.methods;
            route.path.matches(&entry.path)
                && (methods.is_empty() || methods.iter().any(|known| known == method))
        };
        let policies = || self.policies.iter().map(|named| &named.policy);
        let routes = policies().map(|policy| {
            let route = policy.routes.iter().position(applies).unwrap_or(policy.routes.len());
            u16::try_from(route).unwrap_or(u16::MAX)
        });
        let limits =
            policies().flat_map(|policy| &policy.rate_limits).filter(|limit| !limit.paths.is_empty());
        let limited = limits.map(|limit| u16::from(limit.paths.iter().any(|path| path.matches(&entry.path))));
        routes.chain(limited).collect()
    }
}
