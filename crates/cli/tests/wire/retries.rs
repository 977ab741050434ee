//! The gateway's own second tries: only where nothing can be done twice that must not be, at most one, and within a
//! budget.

use crate::client::{ask, connect, get, post, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Wire;
use crate::service::{Script, Service, nobody};

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone";

async fn decided(gateway: &Gateway, decision: &str) -> f64 {
    gateway.metric(&format!("tidegate_retries_total{{upstream=\"service\",decision=\"{decision}\"}}")).await
}

/// A gateway with a kept connection to the service.
async fn kept(script: &Script) -> (Gateway, Wire) {
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, get("/first")).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream.send(DONE).await;
    assert_eq!(client.message().await.status(), 200);
    gateway.until_idle().await;
    (gateway, upstream)
}

/// G5. A request that may be done twice, on a kept connection that dies before a byte of the answer: it is sent again.
#[tokio::test]
async fn what_may_be_done_twice_is_sent_again() {
    for request in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        let script = Script::start().await;
        let (gateway, mut upstream) = kept(&script).await;
        let request = format!("{request} /again HTTP/1.1\r\nHost: a\r\nX-Mark: here\r\n\r\n");
        let mut client = sent(gateway.clients, &request).await;
        let first = upstream.message().await;
        upstream.reset();
        let mut upstream = script.accept().await;
        let second = upstream.message().await;
        assert_eq!((&first.head.start, &first.head.fields), (&second.head.start, &second.head.fields));
        upstream.send(DONE).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(decided(&gateway, "retried").await, 1.0);
        gateway.until_idle().await;
        assert_eq!(gateway.stats().await.endpoint(0, "lately")["failures"], 0, "a kept connection may die");
    }
}

/// A body that nobody has read yet is as good as none: its client has not sent it when the kept connection dies.
#[tokio::test]
async fn a_body_that_was_not_read_is_sent_with_the_second_try() {
    let script = Script::start().await;
    let (gateway, mut upstream) = kept(&script).await;
    let put = "PUT /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    let mut client = sent(gateway.clients, put).await;
    assert_eq!(upstream.head().await.target(), "/slow");
    upstream.reset();
    let mut upstream = script.accept().await;
    let head = upstream.head().await;
    assert_eq!((head.target(), head.field("content-length")), ("/slow", Some("4")));
    client.send("body").await;
    assert_eq!(upstream.rest(head).await.body, b"body");
    upstream.send(DONE).await;
    assert_eq!(client.message().await.status(), 200);
    assert_eq!(decided(&gateway, "retried").await, 1.0);

    // Both connections are of use afterwards.
    client.send(get("/after")).await;
    assert_eq!(upstream.message().await.head.target(), "/after");
    upstream.send(DONE).await;
    assert_eq!(client.message().await.status(), 200);
    gateway.until_idle().await;
}

/// D5. If there is no second try, the client with the body that nobody read sees its answer nevertheless.
#[tokio::test]
async fn a_body_that_was_not_read_and_is_not_sent_again_is_left_as_ever() {
    let script = Script::start().await;
    // Open for so long that a slow machine sees no probe.
    let none = "[upstream.retries]\npercent = 0\nper_second = 0\nburst = 0\n\
                [upstream.breaker]\nopen = \"60s\"\nopen_max = \"60s\"";
    let gateway = Gateway::start(&Policy::before(script.address).rest(none)).await;
    let mut client = sent(gateway.clients, get("/first")).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream.send(DONE).await;
    assert_eq!(client.message().await.status(), 200);
    let mut client =
        sent(gateway.clients, "PUT /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
    upstream.head().await;
    upstream.reset();
    assert_eq!(client.message().await.reason(), "upstream_reset");
    // Its client goes on sending, and is not reset before it has read the answer.
    let _ = client.try_send(vec![b'x'; 100_000]).await;
    gateway.until_idle().await;
    assert_eq!((decided(&gateway, "budget").await, decided(&gateway, "retried").await), (1.0, 0.0));
}

/// G5, H8. What may have been done is not done again: a POST, anything whose body was sent, an answer that has begun.
#[tokio::test]
async fn what_must_not_be_done_twice_is_not_sent_again() {
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    let patch = "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (request, begun) in [
        (post("/", 0), ""),
        (post("/", 4) + "body", ""),
        (put.into(), ""),
        (patch.into(), ""),
        (get("/"), "H"),
        (get("/"), "HTTP/1.1 103 Early Hints\r\n\r\n"),
    ] {
        let script = Script::start().await;
        let (gateway, mut upstream) = kept(&script).await;
        let mut client = sent(gateway.clients, &request).await;
        let head = upstream.head().await;
        let _body = upstream.rest(head).await;
        upstream.send(begun).await;
        drop(upstream);
        let answer = client.message().await;
        assert_eq!((answer.status(), answer.reason().as_str()), (502, "upstream_reset"), "{request}");
        assert_eq!((decided(&gateway, "retried").await, decided(&gateway, "not_safe").await), (0.0, 1.0));
        // The next connection is for the next request.
        let mut client = sent(gateway.clients, get("/next")).await;
        let mut upstream = script.accept().await;
        assert_eq!(upstream.message().await.head.target(), "/next");
        upstream.send(DONE).await;
        assert_eq!(client.message().await.status(), 200);
    }
}

/// At most one: the second try is the last, whatever kind of connection it dies on.
#[tokio::test]
async fn there_is_no_third_try() {
    let script = Script::start().await;
    let (gateway, mut upstream) = kept(&script).await;
    let mut client = sent(gateway.clients, get("/")).await;
    upstream.message().await;
    drop(upstream);
    let mut upstream = script.accept().await;
    upstream.message().await;
    drop(upstream);
    assert_eq!(client.message().await.reason(), "upstream_reset");
    assert_eq!((decided(&gateway, "retried").await, decided(&gateway, "second").await), (1.0, 1.0));

    // Two of three endpoints are not there: whoever meets both is told so.
    let service = Service::prompt().await;
    let policy = Policy::before(nobody().await).and(nobody().await).and(service.address);
    let gateway = Gateway::start(&policy).await;
    let mut told = 0;
    for _ in 0..30 {
        told += u32::from(ask(gateway.clients, get("/")).await.status() == 502);
    }
    assert_eq!(f64::from(told), decided(&gateway, "second").await);
    assert!(told <= 5, "{told}: the breakers see to the rest");
    assert_eq!(service.seen().len(), 30 - told as usize);
}

/// H5 (envoy#30205). Before an upstream that kills every connection that it has answered on once, there are no more tries
/// than the budget says; and a budget of nothing is none.
#[tokio::test]
async fn the_budget_bounds_the_tries() {
    let script = Script::start().await;
    let address = script.address;
    let killed = tokio::spawn(async move {
        let mut tries = 0_usize;
        loop {
            let mut wire = script.accept().await;
            // A try that is answered, and one that dies on the same connection; or the end of the test.
            while let Ok(message) = wire.try_message().await {
                if message.head.target() == "/end" {
                    return tries;
                }
                tries += 1;
                if tries.is_multiple_of(2) {
                    break;
                }
                wire.send(DONE).await;
            }
        }
    });
    let budget =
        "[upstream.breaker]\nenabled = false\n[upstream.retries]\npercent = 20\nper_second = 0\nburst = 1";
    let gateway = Gateway::start(&Policy::before(address).rest(budget)).await;
    let mut client = connect(gateway.clients).await;
    for _ in 0..200 {
        client.get("/").await;
    }
    let (retried, refused) = (decided(&gateway, "retried").await, decided(&gateway, "budget").await);
    let mut end = sent(gateway.clients, get("/end")).await;
    assert_eq!(end.message().await.status(), 502);
    let tries = killed.await.unwrap();
    assert!(tries <= 200 + 40 + 1 && retried <= 41.0, "{tries} tries, {retried} retried");
    println!(
        "{tries} tries for 200 requests, {retried} of them second ones, {refused} refused by the budget"
    );
    assert!(retried >= 20.0 && refused >= 20.0, "{retried} retried, {refused} refused by the budget");
}

/// H5. With a budget of nothing there is no second try.
#[tokio::test]
async fn a_budget_of_nothing_is_none() {
    let service = Service::prompt().await;
    let policy = Policy::before(nobody().await).and(service.address);
    // Open for so long that a slow machine sees no probe.
    let none = "[upstream.retries]\npercent = 0\nper_second = 0\nburst = 0\n\
                [upstream.breaker]\nopen = \"60s\"\nopen_max = \"60s\"";
    let gateway = Gateway::start(&policy.rest(none)).await;
    for _ in 0..20 {
        ask(gateway.clients, get("/")).await;
    }
    assert_eq!((decided(&gateway, "retried").await, decided(&gateway, "budget").await), (0.0, 5.0));
    assert_eq!(gateway.metric("tidegate_retry_budget{upstream=\"service\"}").await, 0.0);
}

/// H6. What the service refuses is not asked again.
#[tokio::test]
async fn a_refusal_is_an_answer() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    for status in [429, 503] {
        service.turn_to(status);
        assert_eq!(ask(gateway.clients, get("/")).await.status(), status);
    }
    assert_eq!(service.seen().len(), 2);
}

/// H7 (linkerd#2369). For a client that has gone nothing is tried again.
#[tokio::test]
async fn nothing_is_tried_for_a_client_that_has_gone() {
    let script = Script::start().await;
    let (gateway, mut upstream) = kept(&script).await;
    let client = sent(gateway.clients, get("/gone")).await;
    upstream.message().await;
    drop(client);
    gateway.until("the client to have left", |stats| stats.get("client_left") == 1).await;
    drop(upstream);
    gateway.until_idle().await;
    let mut client = sent(gateway.clients, get("/next")).await;
    let mut upstream = script.accept().await;
    assert_eq!(upstream.message().await.head.target(), "/next");
    upstream.send(DONE).await;
    assert_eq!(client.message().await.status(), 200);
    assert_eq!(decided(&gateway, "retried").await, 0.0);
}
