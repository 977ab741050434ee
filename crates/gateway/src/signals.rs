//! What answers say about limits, for clients that slow down by themselves: `RateLimit` and `RateLimit-Policy` of
//! draft-ietf-httpapi-ratelimit-headers-11, or the older `X-RateLimit-*`.
//!
//! Both fields of the draft are lists of structured fields (RFC 9651), which may stand on several lines. What the upstream
//! says there of limits of its own stays, and ours are added: an intermediary must not make a policy look more permissive
//! (section 7.2). Of the older fields there can be only one, so there the upstream's own are left alone.
//!
//! `t` is the time in which no more than `r` should be sent. After a refusal that is what `Retry-After` says. Otherwise it is
//! as long as so many take at the rate, so that whoever spreads them over it keeps to the rate (section 8.5 asks for that).

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};
use tidegate_engine::{Snapshot, whole_seconds};
use tidegate_policy::RateLimitHeaders;
use tidegate_tower::quota::refilled_in;

use crate::live::Live;
use crate::rate::{Rule, Standing};
use crate::upstream::Upstream;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Whether it has to be found out what is left of a quota to a request that was let through.
pub(crate) fn wants_standing(live: &Live) -> bool {
    let server = &live.policy.server;
    server.ratelimit_headers_on_all && server.ratelimit_headers != RateLimitHeaders::Off
}

/// A refusal: by this rule, if it was one; on a route to this upstream; to come back after so long.
pub(crate) fn on_refusal(
    headers: &mut HeaderMap,
    live: &Live,
    (status, wait): (StatusCode, Option<Duration>),
    over: Option<&Rule>,
    upstream: Option<&Upstream>,
) {
    let dialect = live.policy.server.ratelimit_headers;
    if let (Some(rule), Some(wait)) = (over, wait) {
        let limit = Limit { rule, left: 0, within: whole_seconds(wait).max(1) };
        limits(headers, dialect, &[limit]);
    } else if let (StatusCode::SERVICE_UNAVAILABLE, Some(upstream)) = (status, upstream) {
        concurrency(headers, dialect, upstream);
    }
}

/// The upstream's answer to a request that was let through by rules which stand like this.
pub(crate) fn on_answer(headers: &mut HeaderMap, live: &Live, standings: &[Standing], upstream: &Upstream) {
    if !wants_standing(live) {
        return;
    }
    let dialect = live.policy.server.ratelimit_headers;
    let limit = |standing: &Standing| {
        let rule = &live.rules[standing.rule];
        Limit { rule, left: standing.left, within: refilled_in(rule.quota(), standing.left) }
    };
    if !standings.is_empty() {
        limits(headers, dialect, &standings.iter().map(limit).collect::<Vec<_>>());
    }
    concurrency(headers, dialect, upstream);
}

/// How a rate limit stands.
struct Limit<'a> {
    rule: &'a Rule,
    left: u32,
    /// In seconds.
    within: u64,
}

fn limits(headers: &mut HeaderMap, dialect: RateLimitHeaders, limits: &[Limit<'_>]) {
    match dialect {
        RateLimitHeaders::Off => {}
        RateLimitHeaders::Draft => {
            for Limit { rule, left, within } in limits {
                add(headers, POLICY, &rule.advert);
                add(headers, LIMIT, &format!("\"{}\";r={left};t={within}", rule.name));
            }
        }
        RateLimitHeaders::XRateLimit => {
            // One can be told, and that is the one that ends first.
            let Some(Limit { rule, left, within }) = limits.iter().min_by_key(|limit| limit.left) else {
                return;
            };
            if [X_LIMIT, X_REMAINING, X_RESET].iter().any(|name| headers.contains_key(name)) {
                return;
            }
            headers.insert(X_LIMIT, HeaderValue::from(rule.quota().burst().get()));
            headers.insert(X_REMAINING, HeaderValue::from(*left));
            headers.insert(X_RESET, HeaderValue::from(*within));
        }
    }
}

/// How much may be in flight, and how much of it is free. The older fields have no word for that.
fn concurrency(headers: &mut HeaderMap, dialect: RateLimitHeaders, upstream: &Upstream) {
    if !upstream.policy.advertise_limit || dialect != RateLimitHeaders::Draft {
        return;
    }
    let Snapshot { limit, in_flight, .. } = upstream.gate.snapshot();
    let name = &upstream.policy.name;
    add(headers, POLICY, &format!("\"concurrency:{name}\";q={limit};qu=\"concurrent-requests\""));
    add(headers, LIMIT, &format!("\"concurrency:{name}\";r={}", limit.saturating_sub(in_flight)));
}

/// Adds a member to a list, on a line of its own.
fn add(headers: &mut HeaderMap, name: HeaderName, member: &str) {
    // Names of a policy are letters, digits, `_` and `-`, so that nothing need be quoted.
    if let Ok(member) = HeaderValue::from_str(member) {
        headers.append(name, member);
    }
}
