//! Endpoints that do not answer are asked no more for a while, and whoever would have to be sent there is told so at
//! once.

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::service::{Script, Service, nobody, nobody_yet};
use crate::wait::until;

/// A breaker that opens for a short time.
const SHORT: &str = "[upstream.breaker]\nopen = \"100ms\"\nopen_max = \"200ms\"\nmin_requests = 5\n";

const STATE: &str = "tidegate_breaker_state{upstream=\"service\"}";

/// Opens the breaker before a service that is not there.
async fn open(gateway: &Gateway) {
    for _ in 0..5 {
        assert_eq!(ask(gateway.clients, get("/")).await.reason(), "upstream_connect");
    }
}

/// Nobody listens: after five connections that could not be made nobody tries any more, and refusals say so, before they
/// take a slot or wait for one. When the service is back, it is asked again.
#[tokio::test]
async fn a_service_that_is_down_is_asked_no_more() {
    let address = nobody_yet().await;
    let breaker = "[upstream.breaker]\nopen = \"1m\"\nopen_max = \"1m\"";
    let policy = Policy::before(address).limit(1).queue(8, "10s").rest(breaker);
    let gateway = Gateway::start(&policy).await;
    assert_eq!(gateway.metric(STATE).await, 0.0);
    open(&gateway).await;
    assert_eq!(gateway.metric(STATE).await, 2.0);

    let mut client = connect(gateway.clients).await;
    for _ in 0..200 {
        let answer = client.get("/").await;
        assert_eq!((answer.status(), answer.reason().as_str()), (503, "breaker_open"));
        let field = |name| answer.head.field(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
        assert_eq!(
            field("proxy-status"),
            "tidegate; error=destination_unavailable; details=\"breaker_open\""
        );
        let after: u64 = field("retry-after").parse().unwrap();
        // Each is told another time, of which sixty seconds is the longest.
        assert!((30..=60).contains(&after), "{after}");
    }
    let stats = gateway.stats().await;
    assert_eq!((stats.rejected("breaker_open"), stats.get("forwarded")), (200, 5));
    assert_eq!((stats.get("max_in_flight"), stats.get("max_queue_depth")), (1, 0));

    // It comes back, and the breaker is told to look sooner.
    let _service = Service::prompt_at(address).await;
    gateway.reload(&policy.rest(SHORT)).await;
    until("the service to be asked again", async || {
        (ask(gateway.clients, get("/")).await.status() == 200).then_some(())
    })
    .await;
    gateway.serves("/").await;
    gateway.serves("/").await;
    assert_eq!(gateway.metric(STATE).await, 0.0);
    gateway.until_idle().await;
}

/// A service that is down for good is tried again and again, never by more than its probes.
#[tokio::test]
async fn a_breaker_that_opens_again_is_not_stuck() {
    let gateway = Gateway::start(&Policy::before(nobody().await).rest(SHORT)).await;
    open(&gateway).await;
    let mut client = connect(gateway.clients).await;
    let mut probes = 0;
    until("three more probes", async || {
        probes += u32::from(client.get("/").await.reason() == "upstream_connect");
        (probes == 3).then_some(())
    })
    .await;
    let stats = gateway.until_idle().await;
    assert_eq!(stats.endpoint(0, "opened"), 4, "{stats:?}");
}

/// One of two fails: requests go to the other, and come back when it is well.
#[tokio::test]
async fn requests_go_to_the_endpoint_that_does_not_fail() {
    let (bad, good) = (Service::prompt().await, Service::prompt().await);
    bad.turn_to(500);
    let policy = Policy::before(bad.address).and(good.address).rest(SHORT);
    let gateway = Gateway::start(&policy).await;
    let mut failed = 0;
    for _ in 0..60 {
        failed += u32::from(ask(gateway.clients, get("/")).await.status() == 500);
    }
    assert!(failed >= 5, "{failed}");
    let stats = gateway.stats().await;
    let opened = stats.endpoint(0, "opened").as_u64().unwrap();
    assert!(opened >= 1, "{stats:?}");
    // Five to open it, and one for each time that it was tried again.
    assert_eq!(u64::from(failed), 5 + opened - 1, "{stats:?}");
    assert_eq!(stats.rejected("breaker_open"), 0);

    bad.turn_to(200);
    until("the endpoint to be well", async || {
        gateway.serves("/").await;
        (gateway.stats().await.endpoint(0, "breaker") == "closed").then_some(())
    })
    .await;
    bad.forget();
    for _ in 0..10 {
        gateway.serves("/").await;
    }
    assert_eq!(bad.seen().len(), 5);
}

/// G1. An answer that breaks off is none, however well it began.
#[tokio::test]
async fn answers_that_break_off_open_it() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).rest(SHORT)).await;
    let known = ("Content-Length: 100", "half");
    let chunked = ("Transfer-Encoding: chunked", "4\r\nhalf\r\n");
    for (field, body) in [known, chunked, known, chunked, known] {
        assert_eq!(gateway.stats().await.endpoint(0, "opened"), 0);
        let mut client = sent(gateway.clients, get("/")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        upstream.send(&format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n{body}")).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.exactly(body.len()).await, body.as_bytes());
        drop(upstream);
        client.closed().await;
        gateway.until_idle().await;
    }
    assert_eq!(gateway.stats().await.endpoint(0, "opened"), 1);
    assert_eq!(ask(gateway.clients, get("/")).await.reason(), "breaker_open");
}

/// What is too much for an endpoint is for the limit to answer; but if the others are not overloaded, it is the endpoint.
#[tokio::test]
async fn an_endpoint_that_does_worse_than_the_others_is_ejected() {
    let (bad, good) = (Service::prompt().await, Service::prompt().await);
    bad.turn_to(503);
    let policy = Policy::before(bad.address).and(good.address);
    let gateway = Gateway::start(&policy.clone().rest(SHORT)).await;
    for _ in 0..20 {
        ask(gateway.clients, get("/")).await;
    }
    let stats = gateway.stats().await;
    assert!(stats.endpoint(0, "opened").as_u64() >= Some(1), "{stats:?}");
    assert!(bad.seen().len() < 10);

    // Both of them: then it is what is behind them, and everybody goes where they went before.
    good.turn_to(503);
    let gateway = Gateway::start(&policy.rest(SHORT)).await;
    bad.forget();
    for _ in 0..40 {
        assert_eq!(ask(gateway.clients, get("/")).await.reason(), "");
    }
    assert_eq!(bad.seen().len(), 20);
}

/// Whoever says "you send too much" is well.
#[tokio::test]
async fn a_service_that_says_429_is_not_down() {
    let service = Service::prompt().await;
    service.turn_to(429);
    let gateway = Gateway::start(&Policy::before(service.address).rest(SHORT)).await;
    for _ in 0..60 {
        let answer = ask(gateway.clients, get("/")).await;
        assert_eq!((answer.status(), answer.reason().as_str()), (429, ""));
    }
    assert_eq!(service.seen().len(), 60);
    assert_eq!(gateway.stats().await.endpoint(0, "opened"), 0);
}

/// A service that answers one time in four, and an error otherwise, still answers; one that never does does not.
#[tokio::test]
async fn errors_open_it_only_when_there_is_hardly_anything_else() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address).rest(SHORT)).await;
    for round in 0..40 {
        service.turn_to(if round % 4 == 0 { 200 } else { 500 });
        assert_eq!(ask(gateway.clients, get("/")).await.reason(), "");
    }
    service.turn_to(500);
    let mut client = connect(gateway.clients).await;
    until("it to open", async || (client.get("/").await.reason() == "breaker_open").then_some(())).await;
}

/// H9 (resilience4j#544, #903, #935). A probe whose client leaves makes room for another at once.
#[tokio::test]
async fn a_probe_whose_client_leaves_does_not_keep_it_shut() {
    let address = nobody_yet().await;
    let breaker = "[upstream.breaker]\nopen = \"100ms\"\nprobes = 1\nprobe_timeout = \"1h\"";
    let policy = Policy::before(address).rest(breaker);
    let gateway = Gateway::start(&policy).await;
    open(&gateway).await;
    let service = Service::held_at(address).await;
    let probe = until("a probe at the service", async || {
        let mut probe = sent(gateway.clients, get("/probe")).await;
        tokio::select! {
            answer = probe.message() => {
                assert_eq!(answer.reason(), "breaker_open");
                None
            }
            () = service.until_asked(1) => Some(probe),
        }
    })
    .await;
    assert_eq!(ask(gateway.clients, get("/")).await.reason(), "breaker_open");

    drop(probe);
    gateway.until("the client to have left", |stats| stats.get("client_left") == 1).await;
    let mut next = sent(gateway.clients, get("/next")).await;
    service.until_asked(2).await;
    assert_eq!(gateway.stats().await.get("orphans"), 1, "the work of the first goes on");
    service.release(2);
    assert_eq!(next.message().await.status(), 200);
    gateway.until_idle().await;
    assert_eq!(gateway.metric(STATE).await, 0.0);
}

/// H9 (resilience4j#1432). However many come at once, over however many workers, only the probes get through; and all
/// others are told so at once, though the probes are still under way.
#[tokio::test]
async fn only_the_probes_get_through() {
    let address = nobody_yet().await;
    let breaker = "[upstream.breaker]\nopen = \"100ms\"\nprobes = 3\nprobe_timeout = \"1h\"";
    let gateway = Gateway::start(&Policy::before(address).workers(2).limit(100).rest(breaker)).await;
    open(&gateway).await;
    let service = Service::held_at(address).await;
    gateway.until("its time to be over", |stats| stats.endpoint(0, "breaker") == "half_open").await;
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(sent(gateway.clients, get("/")).await);
    }
    let stats = gateway.until("the others to be refused", |stats| stats.rejected("breaker_open") == 61).await;
    assert_eq!((stats.get("in_flight"), stats.get("received")), (3, 5 + 64));
    service.until_asked(3).await;
    service.release(3);
    let mut served = 0;
    for client in &mut clients {
        served += u32::from(client.message().await.status() == 200);
    }
    assert_eq!((served, service.seen().len()), (3, 3));
    gateway.until_idle().await;
    assert_eq!(gateway.metric(STATE).await, 0.0);
}

/// It can be turned off.
#[tokio::test]
async fn without_a_breaker_everybody_is_sent() {
    let policy = Policy::before(nobody().await).rest("[upstream.breaker]\nenabled = false");
    let gateway = Gateway::start(&policy).await;
    for _ in 0..20 {
        assert_eq!(ask(gateway.clients, get("/")).await.reason(), "upstream_connect");
    }
}
