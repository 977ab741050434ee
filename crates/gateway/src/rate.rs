//! The rate limits that a request has to pass: all of them, or it counts against none.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::HeaderName;
use tidegate_engine::{Quota, RateLimiter, Rejection, RouteId, Timestamp};
use tidegate_policy::{PathPattern, RateKey, RateLimit};
use tidegate_tower::{answer, quota};

use crate::client_addr::{customer, limit_key};
use crate::mask::Mask;
use crate::metrics::Counter;
use crate::top::Top;

/// One `[[rate_limit]]` of the policy, and the buckets behind it.
pub(crate) struct Rule {
    pub(crate) name: String,
    key: Key,
    /// Whether values of a header that is counted by are nothing to hide.
    show_key: bool,
    paths: Vec<PathPattern>,
    max_keys: NonZeroU32,
    quota: Quota,
    /// What answers say of it, ready to be sent.
    pub(crate) advert: String,
    pub(crate) problem: Bytes,
    /// Shared with the rule of this name in the next policy: a reload fills no bucket.
    buckets: Arc<Buckets>,
}

struct Buckets {
    limiter: Mutex<RateLimiter>,
    /// Secret, so that nobody can choose names that collide.
    seed: RandomState,
    refused: Counter,
}

/// What those are called together who have no tenant that is believed.
pub(crate) const WITHOUT_TENANT: &str = "(without a tenant)";

enum Key {
    ClientIp,
    Header(HeaderName),
    Tenant,
    Route,
    Global,
}

/// What rules look at.
pub(crate) struct Asking<'a> {
    pub(crate) client: IpAddr,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) path: &'a str,
    pub(crate) route: RouteId,
    /// The hash of the tenant; `None` where nobody is told from anybody.
    pub(crate) tenant: Option<u64>,
}

impl Rule {
    /// Makes the rule of this policy, going on with the buckets of the one before it.
    pub(crate) fn new(policy: &RateLimit, before: Option<&Self>, now: Timestamp) -> Self {
        let key = match &policy.key {
            RateKey::ClientIp => Key::ClientIp,
            RateKey::Header(name) => match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) => Key::Header(name),
                // The policy has checked that it is one.
                Err(_) => Key::Global,
            },
            RateKey::Tenant => Key::Tenant,
            RateKey::Route => Key::Route,
            RateKey::Global => Key::Global,
        };
        let buckets = match before {
            Some(before) if before.max_keys == policy.max_keys => {
                before.buckets.lock().reconfigure(now, policy.quota);
                before.buckets.clone()
            }
            _ => Arc::new(Buckets {
                limiter: Mutex::new(RateLimiter::new(policy.quota, policy.max_keys)),
                seed: RandomState::new(),
                refused: Counter::default(),
            }),
        };
        Self {
            name: policy.name.clone(),
            key,
            show_key: policy.show_key,
            paths: policy.paths.clone(),
            max_keys: policy.max_keys,
            quota: policy.quota,
            advert: quota::advert(&policy.name, policy.quota),
            problem: answer::over_the_rate(&policy.name),
            buckets,
        }
    }

    pub(crate) const fn quota(&self) -> Quota {
        self.quota
    }

    /// How many keys have used some of their quota lately.
    pub(crate) fn keys_in_use(&self, now: Timestamp) -> usize {
        self.buckets.lock().keys_in_use(now)
    }

    /// How many checks found the table full, and were decided more strictly than the policy says.
    pub(crate) fn overflowed(&self) -> u64 {
        self.buckets.lock().overflowed()
    }

    /// How many requests it has refused.
    pub(crate) fn refused(&self) -> u64 {
        self.buckets.refused.get()
    }

    /// It has refused this request: counts that, for all and for whose key it was.
    ///
    /// What stands in a header may be the key of a customer, and whoever reaches the admin address sees the list.
    pub(crate) fn count_refusal(
        &self,
        now: Timestamp,
        asking: &Asking<'_>,
        tenant: impl FnOnce() -> Option<String>,
        top: &Top,
        mask: &Mask,
    ) {
        self.buckets.refused.add(1);
        let said = |name: &HeaderName| asking.headers.get(name).map(|value| value.as_bytes());
        top.refused(now, &self.name, self.key(asking), || match &self.key {
            Key::ClientIp => customer(asking.client),
            Key::Header(name) => match said(name) {
                Some(value) if self.show_key => format!("{name}: {}", String::from_utf8_lossy(value)),
                Some(value) => format!("{name}: {}", mask.cover(value)),
                None => format!("without {name}"),
            },
            Key::Tenant => tenant().unwrap_or_else(|| WITHOUT_TENANT.to_owned()),
            Key::Route => "the route".to_owned(),
            Key::Global => "all together".to_owned(),
        });
    }

    fn applies(&self, path: &str) -> bool {
        applies(&self.paths, path)
    }

    /// The key's hash. Requests without the header share one bucket: leaving it out must not be a way round.
    fn key(&self, asking: &Asking<'_>) -> u64 {
        match &self.key {
            Key::ClientIp => self.buckets.seed.hash_one(limit_key(asking.client)),
            Key::Header(name) => {
                self.buckets.seed.hash_one(asking.headers.get(name).map(|value| value.as_bytes()))
            }
            Key::Tenant => self.buckets.seed.hash_one(asking.tenant),
            Key::Route => self.buckets.seed.hash_one(asking.route),
            Key::Global => 0,
        }
    }
}

impl Buckets {
    fn lock(&self) -> MutexGuard<'_, RateLimiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a rule for these paths is for a request to this one.
pub(crate) fn applies(paths: &[PathPattern], path: &str) -> bool {
    paths.is_empty() || paths.iter().any(|pattern| pattern.matches(path))
}

/// How a rule stands that a request was counted against.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Its index in the policy.
    pub(crate) rule: usize,
    /// How many more it would let through at once.
    pub(crate) left: u32,
}

/// Counts a request against every rule that applies, or refuses it and counts it against none. Nobody is told to stay
/// away for longer than `longest`. With `standings` it says how the rules stand then.
///
/// With several rules all their locks are held at once, always taken in the order of the buckets' addresses: the order
/// of the policy would change with a reload that changes it, while buckets are shared by the policies before and after.
pub(crate) fn check(
    rules: &[Rule],
    now: Timestamp,
    asking: &Asking<'_>,
    longest: Duration,
    standings: bool,
) -> Result<Vec<Standing>, Over> {
    let path = crate::path::without_parameters(asking.path);
    let mut applying = rules.iter().enumerate().filter(|(_, rule)| rule.applies(&path));
    let Some(first) = applying.next() else { return Ok(Vec::new()) };
    let Some(second) = applying.next() else {
        let (index, rule) = first;
        let key = rule.key(asking);
        let mut limiter = rule.buckets.lock();
        return match limiter.check(now, key, NonZeroU32::MIN) {
            Ok(()) if standings => Ok(vec![Standing { rule: index, left: limiter.left(now, key) }]),
            Ok(()) => Ok(Vec::new()),
            Err(refusal) => {
                let rejection = limiter.rejection(now, key, NonZeroU32::MIN, refusal, longest);
                Err(Over { rule: index, rejection })
            }
        };
    };
    let mut all: Vec<(usize, &Rule)> = [first, second].into_iter().chain(applying).collect();
    all.sort_by_key(|(_, rule)| Arc::as_ptr(&rule.buckets));
    let mut limiters = Vec::with_capacity(all.len());
    let mut reservations = Vec::with_capacity(all.len());
    // Whoever is over several comes back in vain before the last of them lets it in.
    let mut over: Option<Over> = None;
    for (index, rule) in all {
        let key = rule.key(asking);
        let mut limiter = rule.buckets.lock();
        match limiter.peek(now, key, NonZeroU32::MIN) {
            Ok(reservation) => {
                reservations.push(reservation);
                limiters.push((limiter, index, key));
            }
            Err(refusal) => {
                let rejection = limiter.rejection(now, key, NonZeroU32::MIN, refusal, longest);
                let later = |over: &Over| over.rejection.retry_after < rejection.retry_after;
                if over.as_ref().is_none_or(later) {
                    over = Some(Over { rule: index, rejection });
                }
            }
        }
    }
    if let Some(over) = over {
        return Err(over);
    }
    for ((limiter, ..), reservation) in limiters.iter_mut().zip(reservations) {
        limiter.commit(reservation);
    }
    if !standings {
        return Ok(Vec::new());
    }
    let standing = |(limiter, rule, key): &mut (MutexGuard<'_, RateLimiter>, usize, u64)| Standing {
        rule: *rule,
        left: limiter.left(now, *key),
    };
    let mut all: Vec<Standing> = limiters.iter_mut().map(standing).collect();
    // In the order of the policy, whatever that of the locks was.
    all.sort_by_key(|standing| standing.rule);
    Ok(all)
}

/// A rule that a request is over.
#[derive(Debug)]
pub(crate) struct Over {
    /// Its index in the policy.
    pub(crate) rule: usize,
    pub(crate) rejection: Rejection,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(key: RateKey, burst: u32, before: Option<&Rule>) -> Rule {
        let burst = NonZeroU32::new(burst).unwrap();
        let policy = RateLimit {
            name: "test".into(),
            key,
            quota: Quota::new(NonZeroU32::MIN, Duration::from_secs(3600), burst).unwrap(),
            max_keys: NonZeroU32::new(100).unwrap(),
            show_key: false,
            paths: vec![PathPattern::Under("/api".into())],
        };
        Rule::new(&policy, before, Timestamp::ZERO)
    }

    fn admitted(rules: &[Rule], client: &str, header: Option<&str>, times: usize) -> usize {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert("x-key", value.parse().unwrap());
        }
        let asking = Asking {
            client: client.parse().unwrap(),
            headers: &headers,
            path: "/api/x",
            route: RouteId(0),
            tenant: None,
        };
        (0..times).filter(|_| check(rules, Timestamp::ZERO, &asking, Duration::MAX, false).is_ok()).count()
    }

    /// envoy#25139: what one rule refuses uses up nothing of another.
    #[test]
    fn a_refusal_counts_against_no_rule() {
        let rules = [rule(RateKey::Global, 5, None), rule(RateKey::ClientIp, 2, None)];
        assert_eq!(admitted(&rules, "1.1.1.1", None, 100), 2);
        assert_eq!(admitted(&rules, "2.2.2.2", None, 100), 2);
        assert_eq!(admitted(&rules, "3.3.3.3", None, 100), 1, "the global bucket has one left");
    }

    /// B6. Whoever is over two limits is told when the later of them lets it in, whichever is asked first.
    #[test]
    fn over_several_the_latest_counts() {
        let quick = Quota::new(NonZeroU32::MIN, Duration::from_secs(1), NonZeroU32::MIN).unwrap();
        // Locks are taken in the order of addresses, so both orders come up.
        for _ in 0..8 {
            let rules = [rule(RateKey::Global, 1, None), rule(RateKey::ClientIp, 1, None)];
            rules[0].buckets.lock().reconfigure(Timestamp::ZERO, quick);
            let headers = HeaderMap::new();
            let client = "1.1.1.1".parse().unwrap();
            let asking =
                Asking { client, headers: &headers, path: "/api/x", route: RouteId(0), tenant: None };
            assert!(check(&rules, Timestamp::ZERO, &asking, Duration::MAX, false).is_ok());
            let over = check(&rules, Timestamp::ZERO, &asking, Duration::MAX, false).unwrap_err();
            assert_eq!((over.rule, over.rejection.retry_after), (1, Duration::from_secs(3600)));
        }
    }

    #[test]
    fn keys_are_told_apart_and_a_missing_header_is_one_of_them() {
        let rules = [rule(RateKey::Header("x-key".into()), 2, None)];
        assert_eq!(admitted(&rules, "1.1.1.1", Some("a"), 9), 2);
        assert_eq!(admitted(&rules, "1.1.1.1", Some("b"), 9), 2);
        assert_eq!(admitted(&rules, "1.1.1.1", None, 9), 2);
        assert_eq!(admitted(&rules, "2.2.2.2", None, 9), 0);
    }

    /// Whoever reaches the admin address may look, and may not come to know the keys of customers.
    #[test]
    fn a_key_that_is_refused_is_shown_only_if_the_policy_says_so() {
        let mut headers = HeaderMap::new();
        headers.insert("x-key", "sk-live-0123456789abcdef".parse().unwrap());
        let client = "1.1.1.1".parse().unwrap();
        let asking = Asking { client, headers: &headers, path: "/api/x", route: RouteId(0), tenant: None };
        let shown = |show_key| {
            let rule = Rule { show_key, ..rule(RateKey::Header("x-key".into()), 1, None) };
            let top = Top::default();
            rule.count_refusal(Timestamp::ZERO, &asking, || None, &top, &Mask::default());
            top.list(Timestamp::ZERO).remove(0).name
        };
        assert_eq!(shown(true), "x-key: sk-live-0123456789abcdef");
        let covered = shown(false);
        assert!(covered.starts_with("x-key: sk-l… (") && !covered.contains("live"), "{covered}");
    }

    #[test]
    fn a_reload_goes_on_with_the_buckets() {
        let before = rule(RateKey::Global, 3, None);
        assert_eq!(admitted(std::slice::from_ref(&before), "1.1.1.1", None, 9), 3);
        let after = rule(RateKey::Global, 3, Some(&before));
        assert_eq!(admitted(std::slice::from_ref(&after), "1.1.1.1", None, 9), 0);
    }
}
