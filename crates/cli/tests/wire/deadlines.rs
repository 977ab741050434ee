//! A client that says how long it waits is not answered later, not kept waiting in vain, and the upstream is told what
//! is left.

use std::time::Duration;

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::service::Service;
use crate::wait::{Stopwatch, turn};

/// A GET request with one more field.
fn with(target: &str, field: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{field}\r\n\r\n")
}

fn millis(text: &str) -> u64 {
    text.trim_end_matches('m').parse().unwrap_or_else(|_| panic!("{text}"))
}

/// C11, H3. What the upstream is told is what is left, in the field that the client used, and never more.
#[tokio::test]
async fn the_upstream_is_told_what_is_left() {
    let service = Service::prompt().await;
    let server =
        "deadline_headers = [\"grpc-timeout\", \"x-envoy-expected-rq-timeout-ms\", \"request-timeout\"]";
    let gateway = Gateway::start(&Policy::before(service.address).server(server)).await;
    for field in ["grpc-timeout: 5S", "X-Envoy-Expected-Rq-Timeout-Ms: 5000", "Request-Timeout: 5"] {
        assert_eq!(ask(gateway.clients, with("/", field)).await.status(), 200);
    }
    let told: Vec<String> = service
        .seen()
        .iter()
        .flat_map(|request| {
            ["grpc-timeout", "x-envoy-expected-rq-timeout-ms", "request-timeout"]
                .map(|name| request.head.field(name).unwrap_or_default().to_string())
        })
        .collect();
    let grpc = millis(&told[0]);
    assert!((1..5000).contains(&grpc) && told[0].ends_with('m'), "{told:?}");
    assert!((1..5000).contains(&millis(&told[4])), "{told:?}");
    let seconds: f64 = told[8].parse().unwrap();
    assert!(seconds < 5.0, "{told:?}");
    assert_eq!(told.iter().filter(|value| !value.is_empty()).count(), 3, "nothing is added: {told:?}");

    // What cannot be read is no deadline, and passes as it came.
    assert_eq!(ask(gateway.clients, with("/", "grpc-timeout: soon")).await.status(), 200);
    assert_eq!(service.seen()[3].head.field("grpc-timeout"), Some("soon"));
}

/// An answer that comes too late for its client is a 504 on time; the work that goes on keeps its slot.
#[tokio::test]
async fn the_deadline_ends_the_wait_for_the_upstream() {
    let _turn = turn().await;
    let service = Service::held().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let watch = Stopwatch::start();
    let answer = ask(gateway.clients, with("/", "grpc-timeout: 200m")).await;
    let took = watch.elapsed();
    assert_eq!((answer.status(), answer.reason().as_str()), (504, "deadline"));
    assert!(took >= Duration::from_millis(200) && took < Duration::from_secs(2), "{took:?}");
    assert_eq!(gateway.stats().await.get("orphans"), 1);

    let grpc = with("/", "grpc-timeout: 100m\r\nContent-Type: application/grpc");
    let head = sent(gateway.clients, grpc).await.head().await;
    assert_eq!((head.status(), head.field("grpc-status")), (200, Some("4")));
    service.release(2);
    gateway.until_idle().await;
    assert_eq!(gateway.metric("tidegate_deadline_exceeded_total{where=\"client\"}").await, 2.0);
}

/// Time runs from the first byte of the head: whoever takes longer to send it than to wait for the answer has none left.
#[tokio::test]
async fn a_slow_head_uses_up_the_time() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let request = with("/slow", "grpc-timeout: 50m");
    let (first, rest) = request.split_at(8);
    let mut client = sent(gateway.clients, first).await;
    // However much longer it takes, the outcome is the same.
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.send(rest).await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.reason().as_str()), (504, "deadline"));
    // The next request on the connection has a time of its own.
    client.send(with("/next", "grpc-timeout: 5S")).await;
    assert_eq!(client.message().await.status(), 200);
    assert_eq!(service.targets(), ["/next"]);
}

/// H2. Nobody waits in the queue beyond a deadline, whatever the wait budget is.
#[tokio::test]
async fn the_deadline_ends_the_wait_in_the_queue() {
    let _turn = turn().await;
    let service = Service::held().await;
    let gateway = Gateway::start(&Policy::before(service.address).limit(1).queue(8, "10s")).await;
    let mut first = sent(gateway.clients, get("/first")).await;
    service.until_asked(1).await;
    let watch = Stopwatch::start();
    let answer = ask(gateway.clients, with("/second", "x-envoy-expected-rq-timeout-ms: 150")).await;
    assert_eq!((answer.status(), answer.reason().as_str()), (504, "deadline"));
    assert!(watch.elapsed() < Duration::from_secs(2), "{:?}", watch.elapsed());
    let past = ask(gateway.clients, with("/third", "x-envoy-expected-rq-timeout-ms: 0")).await;
    assert_eq!((past.status(), past.reason().as_str()), (504, "deadline"));
    service.release(1);
    assert_eq!(first.message().await.status(), 200);
    assert_eq!(service.targets(), ["/first"]);
    gateway.until_idle().await;
}

/// A route may say for its clients how long they wait; they can shorten that, and not lengthen it.
#[tokio::test]
async fn a_client_can_shorten_and_not_lengthen() {
    let _turn = turn().await;
    let service = Service::held().await;
    let rest = "[[route]]\npath = \"/*\"\ndeadline = \"300ms\"";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
    for (field, least) in [("X-Other: 1", 300), ("grpc-timeout: 1H", 300), ("grpc-timeout: 50m", 50)] {
        let watch = Stopwatch::start();
        let answer = ask(gateway.clients, with("/", field)).await;
        assert_eq!((answer.status(), answer.reason().as_str()), (504, "deadline"), "{field}");
        let took = watch.elapsed();
        assert!(
            took >= Duration::from_millis(least) && took < Duration::from_millis(least + 1500),
            "{field}: {took:?}"
        );
    }
    // Where the policy looks at no field, none counts.
    let deaf = Gateway::start(&Policy::before(service.address).server("deadline_headers = []")).await;
    let patient = sent(deaf.clients, with("/patient", "grpc-timeout: 1m")).await;
    service.until_asked(4).await;
    service.release(4);
    let mut patient = patient;
    assert_eq!(patient.message().await.status(), 200);
}
