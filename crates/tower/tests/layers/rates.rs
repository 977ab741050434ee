//! Rate limits in front of a service.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, request};
use http_body_util::Empty;
use tidegate_tower::engine::Quota;
use tidegate_tower::{Key, RateLimit, RateLimitLayer, RateLimitService};
use tokio::sync::Semaphore;
use tokio::time::advance;
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, ServiceExt as _};

use crate::support::*;

fn quota(count: u32, seconds: u64, burst: u32) -> Quota {
    Quota::new(number(count), Duration::from_secs(seconds), number(burst)).unwrap()
}

fn by_caller(head: &request::Parts) -> Option<Key> {
    (head.uri.path() != "/free").then(|| Key::of(head.headers.get("x-key").map(HeaderValue::as_bytes)))
}

fn from(key: &'static str) -> Asked {
    Request::get("/").header("x-key", key).body(Empty::new()).unwrap()
}

/// A service that is done at once.
fn limited(layer: &RateLimitLayer) -> RateLimitService<Inner> {
    let work = Work::new();
    work.finish(10_000);
    layer.layer(work.service())
}

/// B6.
#[tokio::test(start_paused = true)]
async fn a_burst_then_429_and_whoever_comes_back_when_told_gets_in() {
    let layer = RateLimitLayer::new([RateLimit::new("per-caller", quota(2, 1, 3), by_caller)]);
    let service = limited(&layer);
    let ask = |asked| service.clone().oneshot(asked);
    for _ in 0..3 {
        assert_eq!(read(ask(from("a")).await.unwrap()).await.0, 200);
    }
    let refused = ask(from("a")).await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &HeaderValue::from(1)));
    assert_eq!(refused.headers()["retry-after-ms"], "500", "exactly");
    let (status, text) = read(refused).await;
    assert!(status == 429 && text.contains("\"violated-policies\":[\"per-caller\"]"), "{text}");
    assert_eq!(ask(from("b")).await.unwrap().status(), 200, "another caller has its own");
    assert_eq!(ask(get("/free")).await.unwrap().status(), 200, "and this one is not limited");
    advance(millis(499)).await;
    assert_eq!(ask(from("a")).await.unwrap().status(), 429, "too early");
    advance(millis(1)).await;
    assert_eq!(ask(from("a")).await.unwrap().status(), 200);
}

/// H10. Each is told a time of its own.
#[tokio::test(start_paused = true)]
async fn those_who_are_refused_are_not_told_the_same() {
    let layer = RateLimitLayer::new([RateLimit::new("all", quota(10, 1, 1), |_| Some(Key::ALL))]);
    let service = limited(&layer);
    assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 200);
    for told in ["100", "200", "300"] {
        let refused = service.clone().oneshot(get("/")).await.unwrap();
        assert_eq!(refused.headers()["retry-after-ms"], told);
    }
}

/// B7 (envoy#25139), and over several the latest counts.
#[tokio::test(start_paused = true)]
async fn what_one_quota_refuses_uses_up_nothing_of_another() {
    let layer = RateLimitLayer::new([
        RateLimit::new("all", quota(1, 3600, 5), |_| Some(Key::ALL)),
        RateLimit::new("per-caller", quota(1, 60, 2), by_caller),
    ])
    .with_retry_after_max(Duration::from_secs(7200));
    let service = limited(&layer);
    let mut passed = Vec::new();
    for key in ["a", "b", "c"] {
        let mut count = 0;
        for _ in 0..100 {
            count += u32::from(service.clone().oneshot(from(key)).await.unwrap().status() == 200);
        }
        passed.push(count);
    }
    assert_eq!(passed, [2, 2, 1], "the one that all share has five");
    advance(Duration::from_secs(120)).await;
    let (_, text) = read(service.clone().oneshot(from("a")).await.unwrap()).await;
    assert!(text.contains("[\"all\"]"), "its own quota has come back, the other has not: {text}");
}

/// H6.
#[tokio::test(start_paused = true)]
async fn over_grpc_it_is_resource_exhausted_with_a_pushback() {
    let layer = RateLimitLayer::new([RateLimit::new("all", quota(1, 2, 1), |_| Some(Key::ALL))]);
    let service = limited(&layer);
    assert_eq!(service.clone().oneshot(grpc("/a.B/C")).await.unwrap().status(), 200);
    let refused = service.oneshot(grpc("/a.B/C")).await.unwrap();
    let field = |name: &str| refused.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((field("grpc-status"), field("grpc-retry-pushback-ms")), ("8".into(), "2000".into()));
}

#[tokio::test(start_paused = true)]
async fn refusals_may_say_which_limit_it_was() {
    let limit = RateLimit::new("per caller\"", quota(10, 1, 20), by_caller);
    let layer = RateLimitLayer::new([limit]).with_ratelimit_fields();
    let service = limited(&layer);
    for _ in 0..20 {
        let passed = service.clone().oneshot(get("/")).await.unwrap();
        assert!(!passed.headers().contains_key("ratelimit"));
    }
    let refused = service.oneshot(get("/")).await.unwrap();
    assert_eq!(refused.headers()["ratelimit-policy"], "\"per_caller_\";q=20;w=2");
    assert_eq!(refused.headers()["ratelimit"], "\"per_caller_\";r=0;t=1");
}

/// Whichever service it is, and however often the layer was applied, there is one set of buckets.
#[tokio::test(start_paused = true)]
async fn services_of_one_layer_share_the_buckets() {
    let layer = RateLimitLayer::new([RateLimit::new("all", quota(1, 60, 1), |_| Some(Key::ALL))]);
    assert_eq!(limited(&layer).oneshot(get("/")).await.unwrap().status(), 200);
    assert_eq!(limited(&layer.clone()).oneshot(get("/")).await.unwrap().status(), 429);
}

/// What is behind the limits is asked only for who has passed them.
#[tokio::test(start_paused = true)]
async fn whoever_is_refused_holds_nothing_of_what_is_behind() {
    let (work, behind) = (Work::new(), Arc::new(Semaphore::new(1)));
    work.finish(1);
    let layer = RateLimitLayer::new([RateLimit::new("all", quota(1, 60, 1), |_| Some(Key::ALL))]);
    let mut service = layer.layer(ConcurrencyLimit::with_semaphore(work.service(), behind.clone()));
    service.ready().await.unwrap();
    assert_eq!(behind.available_permits(), 1);
    assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 200);
    assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 429);
    assert_eq!(behind.available_permits(), 1);
}

/// C1, C3. A flood of names finds the table full, which restricts and does not let in.
#[tokio::test(start_paused = true)]
async fn a_flood_of_names_does_not_go_round_it() {
    let limit = RateLimit::new("per-path", quota(1, 3600, 1), |head| Some(Key::of(head.uri.path())));
    let layer = RateLimitLayer::new([limit.with_max_keys(number(64))]);
    let service = limited(&layer);
    let mut passed = 0;
    for n in 0..20_000 {
        let answered = service.clone().oneshot(get(&format!("/{n}"))).await.unwrap();
        passed += u32::from(answered.status() == 200);
    }
    assert!(layer.overflowed() > 0);
    assert!(passed < 10_000, "{passed}");
}
