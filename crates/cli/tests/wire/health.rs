//! Health checks: an endpoint that is not healthy gets no requests, and gets them again when it is.

use std::time::Duration;

use crate::client::{ask, get};
use crate::gateway::{Gateway, Policy};
use crate::service::{Service, nobody_yet};
use crate::wait::{Stopwatch, until};

const CHECK: &str = "[upstream.breaker]\nenabled = false\n[upstream.health_check]\npath = \"/healthz\"\n\
                     interval = \"20ms\"\n";

/// How often it was asked for this.
fn asked(service: &Service, target: &str) -> usize {
    service.targets().iter().filter(|seen| *seen == target).count()
}

async fn until_healthy(gateway: &Gateway, endpoint: usize, healthy: bool) {
    gateway.until("the endpoint's health", |stats| stats.endpoint(endpoint, "healthy") == healthy).await;
}

#[tokio::test]
async fn an_unhealthy_endpoint_gets_no_requests_until_it_is_well() {
    let (one, other) = (Service::prompt().await, Service::prompt().await);
    let gateway = Gateway::start(&Policy::before(one.address).and(other.address).rest(CHECK)).await;
    one.turn_to(500);
    until_healthy(&gateway, 0, false).await;
    other.forget();
    for _ in 0..10 {
        gateway.serves("/work").await;
    }
    assert_eq!((asked(&one, "/work"), asked(&other, "/work")), (0, 10));

    one.turn_to(204);
    until_healthy(&gateway, 0, true).await;
    one.turn_to(200);
    for _ in 0..10 {
        gateway.serves("/work").await;
    }
    assert_eq!(asked(&one, "/work"), 5);
    // The checks are nobody's requests.
    let stats = gateway.stats().await;
    assert_eq!((stats.get("received"), stats.get("forwarded")), (20, 20));
}

/// What is asked is a plain request, on a connection of its own that is closed afterwards.
#[tokio::test]
async fn a_check_is_a_plain_request() {
    let (one, other) = (Service::prompt().await, Service::prompt().await);
    let _gateway = Gateway::start(&Policy::before(one.address).and(other.address).rest(CHECK)).await;
    one.until_asked(1).await;
    let check = &one.seen()[0];
    assert_eq!(check.head.start, "GET /healthz HTTP/1.1");
    assert_eq!(check.head.field("host"), Some(one.address.to_string().as_str()));
    assert_eq!(check.head.field("connection"), Some("close"));
}

/// A service that tells hosts apart is asked as the one that the policy names.
#[tokio::test]
async fn a_check_says_for_whom_it_asks() {
    let service = Service::prompt().await;
    let rest = format!("{CHECK}host = \"shop.example:8080\"\n");
    let _gateway = Gateway::start(&Policy::before(service.address).rest(&rest)).await;
    service.until_asked(1).await;
    assert_eq!(service.seen()[0].head.field("host"), Some("shop.example:8080"));
}

/// All are asked at once at the start, and the first answer counts by itself: with an hour to the next question it is the
/// only one.
#[tokio::test]
async fn the_first_answer_decides() {
    let (one, other, third) = (Service::prompt().await, Service::prompt().await, Service::prompt().await);
    other.turn_to(500);
    let policy = Policy::before(one.address).and(other.address).and(third.address);
    let gateway = Gateway::start(&policy.rest(&CHECK.replace("20ms", "1h"))).await;
    until_healthy(&gateway, 1, false).await;
    for service in [&one, &other, &third] {
        service.until_asked(1).await;
    }
    until_healthy(&gateway, 0, true).await;
    for _ in 0..10 {
        gateway.serves("/work").await;
    }
    assert_eq!((asked(&one, "/work") + asked(&third, "/work"), asked(&other, "/work")), (10, 0));
}

/// When more than half are unhealthy, it is the check that is likely to be wrong: then all of them are used.
#[tokio::test]
async fn a_check_that_finds_nobody_well_is_not_believed() {
    let (one, other) = (Service::prompt().await, Service::prompt().await);
    let gateway = Gateway::start(&Policy::before(one.address).and(other.address).rest(CHECK)).await;
    one.turn_to(500);
    other.turn_to(500);
    until_healthy(&gateway, 0, false).await;
    until_healthy(&gateway, 1, false).await;
    for _ in 0..10 {
        assert_eq!(ask(gateway.clients, get("/work")).await.reason(), "");
    }
    assert_eq!((asked(&one, "/work"), asked(&other, "/work")), (5, 5));
}

/// An endpoint that is not there is unhealthy; and when it is healthy again, its breaker lets a request through at once.
#[tokio::test]
async fn an_endpoint_that_is_back_need_not_wait_for_its_breaker() {
    let (address, other) = (nobody_yet().await, Service::prompt().await);
    let rest = "[upstream.breaker]\nopen = \"1h\"\nopen_max = \"1h\"\n[upstream.health_check]\npath = \"/healthz\"\n\
                interval = \"20ms\"";
    let gateway = Gateway::start(&Policy::before(address).and(other.address).rest(rest)).await;
    // The breaker opens before the check has found anything out, or else nobody would ask there.
    for _ in 0..12 {
        gateway.serves("/work").await;
    }
    until_healthy(&gateway, 0, false).await;
    let service = Service::prompt_at(address).await;
    until_healthy(&gateway, 0, true).await;
    until("a request at the endpoint", async || {
        gateway.serves("/work").await;
        (asked(&service, "/work") > 0).then_some(())
    })
    .await;
}

/// However many workers there are, an endpoint is asked once in each interval; and a reload ends what was asked before.
#[tokio::test]
async fn the_checks_run_once_and_end_with_their_policy() {
    let (one, other) = (Service::prompt().await, Service::prompt().await);
    let policy = Policy::before(one.address).and(other.address).workers(3);
    let watch = Stopwatch::start();
    let gateway = Gateway::start(&policy.clone().rest(CHECK)).await;
    one.until_asked(10).await;
    let (asked_for, elapsed) = (one.seen().len(), watch.elapsed());
    let most = elapsed.as_nanos() / Duration::from_millis(20).as_nanos() + 2;
    assert!(asked_for as u128 <= most, "asked {asked_for} times in {elapsed:?}");

    gateway.reload(&policy.clone().rest(&CHECK.replace("healthz", "ready"))).await;
    until("the new question", async || (asked(&one, "/ready") > 0).then_some(())).await;
    one.forget();
    one.until_asked(5).await;
    assert_eq!(asked(&one, "/healthz"), 0, "{:?}", one.targets());

    // Without a check, what the last one has found counts no more.
    one.turn_to(500);
    until_healthy(&gateway, 0, false).await;
    gateway.reload(&policy.rest("[upstream.breaker]\nenabled = false")).await;
    one.turn_to(200);
    one.forget();
    for _ in 0..10 {
        gateway.serves("/work").await;
    }
    assert_eq!(asked(&one, "/work"), 5);
}
