//! Whether it is worth while to come back when told to: of those who do, how many are let in.
//!
//! Every 429 and 503 tells a time. What was told is remembered by a fingerprint of the request, in a sketch of fixed size,
//! and whoever comes back with the same fingerprint at that time, or up to two seconds later, is counted once, by what
//! became of it. It is a measurement: nothing is decided here.
//!
//! A request costs one look at an atomic each while nobody is to come back, and a hash and a look-up under a short lock
//! while somebody is.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use http::{HeaderValue, StatusCode, request};
use tidegate_engine::{Return, Timestamp, Told};

use crate::answer::Refusal;
use crate::metrics::Counter;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// So many may be told something at the same time before strangers are taken for them too often: 2.7 MiB each for 429 and
/// 503, of which the kernel gives what is used.
const KEYS: NonZeroU32 = NonZeroU32::new(65_536).expect("it is not zero");
/// So much of a field tells requests from each other.
const BYTES: usize = 1_024;

/// Who was told to come back, and what became of those who did.
pub(crate) struct Returns {
    /// Secret, so that nobody can choose requests that pass for others.
    seed: RandomState,
    told: [Memory; Asked::ALL.len()],
}

/// By what answer somebody was asked to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    TooManyRequests,
    ServiceUnavailable,
}

impl Asked {
    pub(crate) const ALL: [Self; 2] = [Self::TooManyRequests, Self::ServiceUnavailable];

    pub(crate) const fn status(self) -> &'static str {
        match self {
            Self::TooManyRequests => "429",
            Self::ServiceUnavailable => "503",
        }
    }

    fn by(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Some(Self::TooManyRequests),
            StatusCode::SERVICE_UNAVAILABLE => Some(Self::ServiceUnavailable),
            _ => None,
        }
    }
}

struct Memory {
    sketch: Mutex<Told>,
    /// In nanoseconds: until then somebody who was told something is remembered.
    awake_until: AtomicU64,
    counts: Counts,
}

/// How those who were told something came back.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// On time, and were let in.
    pub(crate) admitted: Counter,
    /// On time, and were refused again.
    pub(crate) refused: Counter,
    /// Before their time.
    pub(crate) early: Counter,
}

impl Returns {
    pub(crate) fn new() -> Self {
        let told = Asked::ALL.map(|_| Memory {
            sketch: Mutex::new(Told::new(KEYS)),
            awake_until: AtomicU64::new(0),
            counts: Counts::default(),
        });
        Self { seed: RandomState::new(), told }
    }

    pub(crate) fn counts(&self, asked: Asked) -> &Counts {
        &self.told[asked as usize].counts
    }

    /// What tells this very request from others when it comes again, where the engine does not know it by anything.
    pub(crate) fn fingerprint(&self, client: IpAddr, head: &request::Parts) -> u64 {
        let mut hasher = self.seed.build_hasher();
        match client {
            IpAddr::V4(address) => hasher.write_u32(address.into()),
            IpAddr::V6(address) => hasher.write_u128(address.into()),
        }
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        let fields = [AUTHORIZATION, COOKIE, IDEMPOTENCY_KEY].map(|name| head.headers.get(name));
        let fields = fields.map(|value| value.map_or(&b""[..], HeaderValue::as_bytes));
        // So that what ends one part cannot pass for the beginning of the next. Short writes cost as much as long ones,
        // so it is one for all parts.
        let mut lengths = 0_u64;
        for part in [head.method.as_str().as_bytes(), target.as_bytes()].into_iter().chain(fields) {
            let part = &part[..part.len().min(BYTES)];
            lengths = lengths << 12 | part.len() as u64;
            if !part.is_empty() {
                hasher.write(part);
            }
        }
        hasher.write_u64(lengths);
        hasher.finish()
    }

    /// A request comes. By what answer it was asked to come now, if it was. Its fingerprint is asked for only while
    /// somebody is to come back.
    pub(crate) fn comes(&self, now: Timestamp, mut fingerprint: impl FnMut() -> u64) -> Option<Asked> {
        Asked::ALL.into_iter().find(|asked| {
            let memory = &self.told[*asked as usize];
            if memory.awake_until.load(Relaxed) <= now.as_nanos() {
                return false;
            }
            let come = memory.sketch().comes(now, fingerprint());
            if come == Some(Return::Early) {
                memory.counts.early.add(1);
            }
            come == Some(Return::OnTime)
        })
    }

    /// What became of somebody who came when asked to. A client that left meanwhile was neither let in nor refused.
    pub(crate) fn became<T>(&self, asked: Option<Asked>, outcome: &Result<T, Refusal>) {
        let Some(counts) = asked.map(|asked| self.counts(asked)) else { return };
        match outcome {
            Ok(_) => counts.admitted.add(1),
            Err(_) => counts.refused.add(1),
        }
    }

    /// A request is refused with this status, and told to come back after `wait`.
    pub(crate) fn tell(&self, now: Timestamp, fingerprint: u64, status: StatusCode, wait: Duration) {
        let Some(asked) = Asked::by(status) else { return };
        let memory = &self.told[asked as usize];
        let until = now.after(wait);
        memory.sketch().tell(now, fingerprint, until);
        memory.awake_until.fetch_max(until.after(Told::GRACE).as_nanos(), Relaxed);
    }
}

impl Memory {
    fn sketch(&self) -> MutexGuard<'_, Told> {
        self.sketch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(target: &str, field: Option<(&str, &str)>) -> request::Parts {
        let request = Request::get(target);
        let request = field.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.body(()).unwrap().into_parts().0
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn whoever_comes_when_told_is_counted_once() {
        let (returns, client) = (Returns::new(), "1.1.1.1".parse().unwrap());
        let asked = head("/a?b=1", None);
        let tell = |now, status, wait| {
            returns.tell(at(now), returns.fingerprint(client, &asked), status, Duration::from_millis(wait));
        };
        let comes = |now, client: IpAddr, head: &request::Parts| {
            returns.comes(at(now), || returns.fingerprint(client, head))
        };
        assert_eq!(comes(0, client, &asked), None);
        tell(0, StatusCode::TOO_MANY_REQUESTS, 500);
        tell(0, StatusCode::GATEWAY_TIMEOUT, 0);
        assert_eq!(comes(499, client, &asked), None);
        assert_eq!(comes(500, client, &asked), Some(Asked::TooManyRequests));
        assert_eq!(comes(501, client, &asked), None);
        tell(501, StatusCode::SERVICE_UNAVAILABLE, 500);
        for other in [head("/a?b=2", None), head("/a?b=1", Some(("cookie", "a=1")))] {
            assert_eq!(comes(1100, client, &other), None, "{}", other.uri);
        }
        assert_eq!(comes(1100, "1.1.1.2".parse().unwrap(), &asked), None);
        assert_eq!(comes(1100, client, &asked), Some(Asked::ServiceUnavailable));
        tell(2000, StatusCode::SERVICE_UNAVAILABLE, 500);
        assert_eq!(comes(4500, client, &asked), None, "that was of its own accord");
        let early = Asked::ALL.map(|asked| returns.counts(asked).early.get());
        assert_eq!(early, [1, 0]);
    }

    #[test]
    fn what_became_of_them() {
        let returns = Returns::new();
        let asked = Some(Asked::ServiceUnavailable);
        returns.became(asked, &Ok(()));
        returns.became(None, &Ok(()));
        returns.became::<()>(asked, &Err(Refusal::NotFound));
        let counts = returns.counts(Asked::ServiceUnavailable);
        assert_eq!((counts.admitted.get(), counts.refused.get()), (1, 1));
    }
}
