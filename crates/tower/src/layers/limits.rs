//! Several quotas together: a request is counted against all of those that are for it, or against none.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, request};
use tidegate_engine::{Quota, RateLimiter, Rejection};

use crate::clock::Clock;
use crate::layers::answer;
use crate::layers::key::Key;
use crate::layers::quota;

/// So many keys are told apart, unless somebody says otherwise: 3 MB.
const MAX_KEYS: NonZeroU32 = NonZeroU32::new(100_000).expect("it is not zero");

/// A quota, and whom it counts requests against.
pub struct RateLimit {
    name: String,
    quota: Quota,
    key: KeyOf,
    max_keys: NonZeroU32,
}

type KeyOf = Box<dyn Fn(&request::Parts) -> Option<Key> + Send + Sync>;

impl RateLimit {
    /// A quota of this name for each key, and who has which; `None` for requests that it is not for.
    ///
    /// A request without what names its caller needs a key too, or leaving that out is a way round. The name is told to
    /// callers; of its characters, those that are not letters, digits, `_` or `-` become `_`.
    pub fn new(
        name: &str,
        quota: Quota,
        key: impl Fn(&request::Parts) -> Option<Key> + Send + Sync + 'static,
    ) -> Self {
        let plain = |it: char| if it.is_ascii_alphanumeric() || matches!(it, '_' | '-') { it } else { '_' };
        let name = name.chars().map(plain).collect();
        Self { name, quota, key: Box::new(key), max_keys: MAX_KEYS }
    }

    /// The same quota, for at least so many keys at a time; when left out, 100,000. About 29 bytes for each are
    /// allocated once; the keys beyond share what can only restrict them too much.
    #[must_use]
    pub fn with_max_keys(self, max_keys: NonZeroU32) -> Self {
        Self { max_keys, ..self }
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, quota, max_keys, .. } = self;
        let mut shown = f.debug_struct("RateLimit");
        shown.field("name", name).field("quota", quota).field("max_keys", max_keys).finish_non_exhaustive()
    }
}

pub(crate) struct Limits {
    clock: Clock,
    rules: Vec<Rule>,
    /// By the index of their rules. One lock, so that a request is counted against all or none.
    limiters: Mutex<Vec<RateLimiter>>,
}

pub(crate) struct Rule {
    limit: RateLimit,
    pub(crate) advert: Option<HeaderValue>,
    pub(crate) problem: Bytes,
}

/// A quota that a request is over.
pub(crate) struct Over<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) rejection: Rejection,
}

impl Rule {
    pub(crate) fn name(&self) -> &str {
        &self.limit.name
    }
}

impl Limits {
    pub(crate) fn new(limits: impl IntoIterator<Item = RateLimit>) -> Self {
        let rule = |limit: RateLimit| Rule {
            advert: HeaderValue::try_from(quota::advert(&limit.name, limit.quota)).ok(),
            problem: answer::over_the_rate(&limit.name),
            limit,
        };
        let rules: Vec<Rule> = limits.into_iter().map(rule).collect();
        let limiters = rules.iter().map(|Rule { limit, .. }| RateLimiter::new(limit.quota, limit.max_keys));
        let limiters = Mutex::new(limiters.collect());
        Self { clock: Clock::start(), rules, limiters }
    }

    pub(crate) fn overflowed(&self) -> u64 {
        self.lock().iter().map(RateLimiter::overflowed).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RateLimiter>> {
        self.limiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is told to stay away for longer than `longest`.
    pub(crate) fn check(&self, head: &request::Parts, longest: Duration) -> Result<(), Over<'_>> {
        // The keys are made before the lock is taken: they are the service's own code.
        let one = |index: usize| (self.rules[index].limit.key)(head).map(|key| (index, key.number()));
        let mut keys = (0..self.rules.len()).filter_map(one);
        let Some(first) = keys.next() else { return Ok(()) };
        let Some(second) = keys.next() else { return self.check_one(first, longest) };
        let now = self.clock.now();
        let keys: Vec<(usize, u64)> = [first, second].into_iter().chain(keys).collect();
        let mut limiters = self.lock();
        let mut reservations = Vec::with_capacity(keys.len());
        // Whoever is over several comes back in vain before the last of them lets it in.
        let mut over: Option<Over<'_>> = None;
        for (index, key) in keys {
            let limiter = &mut limiters[index];
            match limiter.peek(now, key, NonZeroU32::MIN) {
                Ok(reservation) => reservations.push((index, reservation)),
                Err(refusal) => {
                    let rejection = limiter.rejection(now, key, NonZeroU32::MIN, refusal, longest);
                    let later = |over: &Over<'_>| over.rejection.retry_after < rejection.retry_after;
                    if over.as_ref().is_none_or(later) {
                        over = Some(Over { rule: &self.rules[index], rejection });
                    }
                }
            }
        }
        if let Some(over) = over {
            return Err(over);
        }
        for (index, reservation) in reservations {
            limiters[index].commit(reservation);
        }
        Ok(())
    }

    /// The same with one key, as most are, and without a list.
    fn check_one(&self, (index, key): (usize, u64), longest: Duration) -> Result<(), Over<'_>> {
        let now = self.clock.now();
        let mut limiters = self.lock();
        let limiter = &mut limiters[index];
        limiter.check(now, key, NonZeroU32::MIN).map_err(|refusal| {
            let rejection = limiter.rejection(now, key, NonZeroU32::MIN, refusal, longest);
            Over { rule: &self.rules[index], rejection }
        })
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.limit)).finish()
    }
}
