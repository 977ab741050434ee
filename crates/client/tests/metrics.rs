//! What the facade `metrics` is told, and that no name of a secret gets into it.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tidegate_client::{Policy, ReplayBody, ResilientLayer};
use tower::{Layer, Service, service_fn};

/// Remembers counters.
#[derive(Default)]
struct Book(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Counter::from_arc(Arc::clone(self.0.lock().unwrap().entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn what_is_counted() {
    let book = Book::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&book, || runtime.block_on(play()));
    let counted: Vec<String> =
        book.0.lock().unwrap().iter().map(|(name, count)| format!("{name} {}", count.load(SeqCst))).collect();
    expect_test::expect![[r#"
        tidegate_client_calls_total upstream=orders end=answered 1
        tidegate_client_refused_total upstream=orders reason=no_room 1
        tidegate_client_retries_total upstream=orders 1
        tidegate_client_tries_total upstream=orders reply=success 1
        tidegate_client_tries_total upstream=orders reply=unavailable 1"#]]
    .assert_eq(&counted.join("\n"));
}

/// One call that is tried twice, and while its answer is being read another for which there is no room.
async fn play() {
    let upstream = service_fn(|request: Request<ReplayBody<Empty<Bytes>>>| async move {
        let first = request.headers()["x-envoy-attempt-count"] == "1";
        let response = Response::builder().status(if first { 503 } else { 200 });
        Ok::<_, Infallible>(response.body(http_body_util::Full::new(Bytes::from_static(b"answer"))).unwrap())
    });
    let mut policy = Policy::careful(Duration::from_secs(1));
    (policy.room.calls, policy.room.waiting) = (1, 0);
    let mut client = ResilientLayer::new(policy).layer(upstream);
    let request = || Request::get("http://user:secret@orders/").body(Empty::new()).unwrap();
    let answer = client.call(request()).await.unwrap();
    assert!(client.call(request()).await.is_err());
    drop(answer);
}
