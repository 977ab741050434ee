//! What tells a request from others when it comes again without a word about it: a hash of what identifies it.
//!
//! Two requests that are alike are not therefore one that is repeated. A thousand clients behind one address that ask for
//! the same page would all be taken for somebody who does not give up, so only what identifies its sender has a
//! fingerprint. And since a body is not looked at, a method whose requests differ by their body has none without a key.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

use http::{HeaderValue, Method, request};
use tidegate_policy::Fingerprint;

use super::Kind;
use crate::fields::{Fields, Name};

static AUTHORIZATION: Name = Name::of("authorization");
static COOKIE: Name = Name::of("cookie");
static IDEMPOTENCY_KEY: Name = Name::of("idempotency-key");
static RANGE: Name = Name::of("range");

/// `None` for what cannot be told from others.
pub(super) fn of(
    how: Fingerprint,
    seed: &RandomState,
    head: &request::Parts,
    fields: Fields<'_>,
    client: IpAddr,
) -> Option<u64> {
    if how == Fingerprint::Off {
        return None;
    }
    let bytes = |name: &Name| fields.get(name).map(HeaderValue::as_bytes);
    let mut hasher = seed.build_hasher();
    if let Some(key) = bytes(&IDEMPOTENCY_KEY) {
        // The key is its sender's own choice, so that another sender's is another request.
        (Kind::Keyed, key, bytes(&AUTHORIZATION)).hash(&mut hasher);
        (head.method.as_str(), head.uri.path()).hash(&mut hasher);
        return Some(hasher.finish());
    }
    if how == Fingerprint::IdempotencyKey || matches!(head.method, Method::POST | Method::PATCH) {
        return None;
    }
    let authorization = bytes(&AUTHORIZATION);
    let mut cookies = fields.all(&COOKIE).into_iter().flatten().peekable();
    if authorization.is_none() && cookies.peek().is_none() {
        return None;
    }
    (Kind::Identified, client, authorization, bytes(&RANGE)).hash(&mut hasher);
    // HTTP/2 may split them, and then each client does so in its own way every time.
    cookies.for_each(|cookie| cookie.as_bytes().hash(&mut hasher));
    (head.method.as_str(), head.uri.path(), head.uri.query()).hash(&mut hasher);
    Some(hasher.finish())
}
