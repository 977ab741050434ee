//! Which endpoint gets a request, and whether any does.
//!
//! Three things keep requests away from an endpoint: its breaker, which sees that it does not answer or does much worse
//! than the others; the health check, which asks; and that others have less to do. The first knows from the requests
//! themselves, so against an endpoint that nobody can connect to there is nothing to be said, and if all are like that
//! the request is refused before it waits for anything. The other two are opinions: when they leave nobody, or the check
//! thinks ill of more than half, they are not followed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidegate_engine::{BreakerState, Reason, Rejection, Timestamp, Verdict};
use tidegate_policy::Ejection;

use super::Upstream;
use super::endpoint::{Endpoint, Visit};

/// In which order endpoints are taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its breaker wants to know how it is. First, since nobody else would ask.
    Probe,
    Well,
    /// The same as the first, where another endpoint has failed this request already.
    LaterProbe,
    /// It is said to be unhealthy, or was ejected because others do better.
    LastResort,
}

impl Upstream {
    /// Refuses a request that nobody could be asked for now, before it takes or waits for anything.
    pub(crate) fn refusal(&self, now: Timestamp) -> Option<Rejection> {
        if self.policy.breaker.is_none() || self.endpoints.iter().any(|one| one.is_closed()) {
            return None;
        }
        let mut soonest = std::time::Duration::MAX;
        for endpoint in &self.endpoints {
            match endpoint.check(now) {
                Err(refused) if !endpoint.is_outlier() => soonest = soonest.min(refused.retry_after),
                _ => return None,
            }
        }
        Some(Rejection { reason: Reason::BreakerOpen, retry_after: soonest })
    }

    /// The endpoint for a request, which `tried` has failed already: of those of the best rank the one with the least in
    /// flight, and among equals each in turn.
    pub(super) fn choose(&self, now: Timestamp, tried: Option<&Arc<Endpoint>>) -> Option<Visit> {
        let turn = self.turn.fetch_add(1, Relaxed) as usize % self.endpoints.len().max(1);
        let heeds_health = self.heeds_health();
        // Whoever was tried, or had no place for a probe after all. A policy has at most 64 endpoints.
        let mut out = 0_u64;
        loop {
            let in_turn = (turn..self.endpoints.len()).chain(0..turn).filter(|at| out & bit(*at) == 0);
            let ranked = in_turn.filter_map(|at| {
                let one = &self.endpoints[at];
                let rank = self.rank(now, one, heeds_health, tried)?;
                Some((rank, one.in_flight(), at))
            });
            let (rank, _, at) = ranked.min_by_key(|(rank, in_flight, _)| (*rank, *in_flight))?;
            let endpoint = &self.endpoints[at];
            if self.policy.breaker.is_none() {
                return Some(endpoint.enter());
            }
            match endpoint.try_enter(now) {
                Ok(visit) => return Some(visit),
                Err(_) if rank == Rank::LastResort && endpoint.is_outlier() => return Some(endpoint.enter()),
                Err(_) => out |= bit(at),
            }
        }
    }

    fn rank(
        &self,
        now: Timestamp,
        one: &Arc<Endpoint>,
        heeds_health: bool,
        tried: Option<&Arc<Endpoint>>,
    ) -> Option<Rank> {
        if tried.is_some_and(|tried| Arc::ptr_eq(tried, one)) {
            return None;
        }
        let is_unhealthy = heeds_health && !one.is_healthy();
        if self.policy.breaker.is_none() || one.is_closed() {
            return Some(if is_unhealthy { Rank::LastResort } else { Rank::Well });
        }
        match one.check(now) {
            Ok(()) if is_unhealthy => Some(Rank::LastResort),
            Ok(()) if tried.is_some() => Some(Rank::LaterProbe),
            Ok(()) => Some(Rank::Probe),
            Err(_) => one.is_outlier().then_some(Rank::LastResort),
        }
    }

    /// Whether the health check is to be believed. When it finds more than half unwell, it is the check that is likely to
    /// be wrong, and even if not, the few that are left could not bear it (Envoy's panic threshold).
    fn heeds_health(&self) -> bool {
        let unhealthy = || self.endpoints.iter().filter(|one| !one.is_healthy()).count();
        self.policy.health_check.is_some() && unhealthy() * 2 <= self.endpoints.len()
    }

    /// What came of an exchange: its endpoint's breaker hears it, and it is seen how the others do.
    pub(super) fn report(&self, now: Timestamp, visit: &mut Visit, verdict: Verdict) {
        visit.say(now, verdict);
        if matches!(verdict, Verdict::Success | Verdict::Nothing) {
            return;
        }
        let ejection = self.policy.breaker.as_ref().and_then(|breaker| breaker.ejection);
        if let Some(ejection) = ejection
            && visit.endpoint().is_closed()
            && self.is_much_worse(now, visit.endpoint(), ejection)
            && self.can_spare(visit.endpoint(), ejection)
        {
            visit.endpoint().trip(now);
        }
    }

    /// Whether a much larger share of its requests goes badly than of those of the others together. What is wrong with
    /// all of them is wrong with what is behind them, and ejecting one would only load the others more.
    fn is_much_worse(&self, now: Timestamp, endpoint: &Arc<Endpoint>, ejection: Ejection) -> bool {
        let Some(breaker) = &self.policy.breaker else { return false };
        let enough = breaker.policy.min_requests.get();
        let own = endpoint.tally(now);
        if own.requests < enough || own.badness() < ejection.worse_by {
            return false;
        }
        let others = self.endpoints.iter().filter(|one| !Arc::ptr_eq(one, endpoint));
        let others = others.map(|one| one.tally(now)).reduce(|sum, one| sum.plus(one)).unwrap_or_default();
        others.requests >= enough && own.badness() - others.badness() >= ejection.worse_by
    }

    /// Whether few enough are out, for whatever reason, that this one may be too.
    fn can_spare(&self, endpoint: &Arc<Endpoint>, ejection: Ejection) -> bool {
        let is_out = |one: &&Arc<Endpoint>| {
            Arc::ptr_eq(one, endpoint)
                || !one.is_closed()
                || (self.policy.health_check.is_some() && !one.is_healthy())
        };
        let (out, all) = (self.endpoints.iter().filter(is_out).count(), self.endpoints.len());
        out < all && out as f64 <= ejection.max_ejected * all as f64
    }

    /// How the best of the endpoints' breakers stands, or that of all of them together if it is worse.
    pub(crate) fn breaker_state(&self, now: Timestamp) -> BreakerState {
        let best = self.endpoints.iter().map(|one| one.state(now)).min();
        let all = self.gate.snapshot().breaker;
        match self.policy.breaker {
            Some(_) => best.max(all).unwrap_or(BreakerState::Closed),
            None => BreakerState::Closed,
        }
    }
}

const fn bit(at: usize) -> u64 {
    1 << (at % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::Policy;
    use tidegate_tower::Clock;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn upstream(endpoints: usize, rest: &str) -> Upstream {
        let endpoints: Vec<String> = (1..=endpoints).map(|n| format!("http://127.0.0.1:{n}")).collect();
        let text = format!(
            "[[upstream]]\nname = \"a\"\nendpoints = {endpoints:?}\n[upstream.breaker]\nmin_requests = 10\n{rest}"
        );
        let policy = Policy::parse(&text, "policy.toml").unwrap().policy;
        let admission = policy.admission(0, Vec::new());
        Upstream::new(policy.upstreams[0].clone(), admission, &policy.priorities, None, Clock::start())
    }

    /// Ten requests at the endpoint of this number.
    fn ten(upstream: &Upstream, at: usize, verdict: Verdict) {
        for _ in 0..10 {
            if let Ok(mut visit) = upstream.endpoints[at].try_enter(NOW) {
                upstream.report(NOW, &mut visit, verdict);
            }
        }
    }

    /// Who gets the next requests, each of which is held until all are sent; in the order of the endpoints.
    fn spread(upstream: &Upstream, requests: usize) -> Vec<usize> {
        let visits: Vec<Visit> = (0..requests).filter_map(|_| upstream.choose(NOW, None)).collect();
        let at =
            |one: &Arc<Endpoint>| visits.iter().filter(|visit| Arc::ptr_eq(visit.endpoint(), one)).count();
        upstream.endpoints.iter().map(at).collect()
    }

    #[test]
    fn no_more_are_ejected_than_may_be() {
        let upstream = upstream(4, "failure_ratio = 1.0\nmax_ejected = 0.5");
        for well in 0..4 {
            ten(&upstream, well, Verdict::Success);
            ten(&upstream, well, Verdict::Success);
        }
        for bad in 0..3 {
            ten(&upstream, bad, Verdict::Overload);
            ten(&upstream, bad, Verdict::Overload);
            ten(&upstream, bad, Verdict::Overload);
        }
        assert_eq!(spread(&upstream, 8), [0, 0, 4, 4]);
        assert!(upstream.refusal(NOW).is_none());
    }

    /// A single endpoint has nobody to be worse than, and two that do equally badly are not ejected.
    #[test]
    fn worse_is_worse_than_the_others() {
        for alike in [1, 2] {
            let upstream = upstream(alike, "failure_ratio = 1.0");
            for _ in 0..5 {
                (0..alike).for_each(|at| ten(&upstream, at, Verdict::Overload));
            }
            assert!(upstream.endpoints.iter().all(|one| one.is_closed()));
        }
    }

    /// With the others down, one that was ejected still answers in part; one that is down does not.
    #[test]
    fn an_ejected_endpoint_is_the_last_resort() {
        let upstream = upstream(2, "");
        ten(&upstream, 1, Verdict::Success);
        ten(&upstream, 0, Verdict::Overload);
        assert_eq!(spread(&upstream, 4), [0, 4]);
        ten(&upstream, 1, Verdict::NoConnection);
        assert_eq!(spread(&upstream, 4), [4, 0]);
        assert!(upstream.refusal(NOW).is_none());

        let upstream = self::upstream(2, "");
        (0..2).for_each(|at| ten(&upstream, at, Verdict::NoConnection));
        assert_eq!(spread(&upstream, 4), [0, 0]);
        let refusal = upstream.refusal(NOW).unwrap();
        assert_eq!((refusal.reason, refusal.retry_after.as_millis() >= 250), (Reason::BreakerOpen, true));
    }

    /// An endpoint that wants a probe gets it first, but not from a request that has failed once already.
    #[test]
    fn probes_go_first_and_second_tries_do_not_probe() {
        let upstream = upstream(2, "probes = 2");
        ten(&upstream, 0, Verdict::NoConnection);
        let later = NOW.after(std::time::Duration::from_secs(2));
        let second = upstream.choose(later, Some(&upstream.endpoints[1]));
        assert!(Arc::ptr_eq(second.unwrap().endpoint(), &upstream.endpoints[0]), "better than none");
        let visits: Vec<Visit> = (0..4).filter_map(|_| upstream.choose(later, None)).collect();
        let probes =
            visits.iter().filter(|visit| Arc::ptr_eq(visit.endpoint(), &upstream.endpoints[0])).count();
        assert_eq!((visits.len(), probes), (4, 2));
        drop(visits);

        let three = self::upstream(3, "");
        ten(&three, 0, Verdict::NoConnection);
        let second = three.choose(later, Some(&three.endpoints[1])).unwrap();
        assert!(Arc::ptr_eq(second.endpoint(), &three.endpoints[2]));
    }

    /// Half may be unhealthy; when it is more, the check is not believed. Whoever is unhealthy is still better than nobody.
    #[test]
    fn a_check_that_thinks_ill_of_most_is_not_believed() {
        let upstream = upstream(4, "[upstream.health_check]\npath = \"/\"");
        upstream.endpoints[0].found(NOW, false);
        upstream.endpoints[1].found(NOW, false);
        assert_eq!(spread(&upstream, 4), [0, 0, 2, 2]);
        (2..4).for_each(|at| ten(&upstream, at, Verdict::NoConnection));
        assert_eq!(spread(&upstream, 4), [2, 2, 0, 0]);

        let upstream = self::upstream(4, "[upstream.health_check]\npath = \"/\"");
        (0..3).for_each(|at| upstream.endpoints[at].found(NOW, false));
        assert_eq!(spread(&upstream, 4), [1, 1, 1, 1]);
    }
}
