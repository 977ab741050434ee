//! How long there is, as the handler sees it, and what happens when it is over.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use tidegate_tower::answer::Whole;
use tidegate_tower::deadline::{self, Deadline};
use tidegate_tower::engine::*;
use tidegate_tower::{Class, GateLayer};
use tokio::time::{advance, sleep};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, service_fn};

use crate::support::*;

fn within(timeout: &str) -> Asked {
    Request::get("/").header("grpc-timeout", timeout).body(Empty::new()).unwrap()
}

fn free() -> GateLayer {
    GateLayer::new(gate(4, 8, 60_000))
}

#[tokio::test(start_paused = true)]
async fn the_handler_knows_how_long_there_is() {
    let service = free().layer(service_fn(|asked: Asked| async move {
        let extension = *asked.extensions().get::<Deadline>().unwrap();
        assert_eq!((deadline::remaining(), extension.remaining()), (Some(millis(100)), millis(100)));
        sleep(millis(30)).await;
        assert_eq!((deadline::remaining(), extension.remaining()), (Some(millis(70)), millis(70)));
        assert!(deadline::check().is_ok());
        sleep(millis(70)).await;
        assert_eq!((deadline::remaining(), extension.remaining()), (Some(millis(0)), millis(0)));
        assert!(extension.check().is_err());
        Ok::<_, Infallible>(Response::<Whole>::from(deadline::check().unwrap_err()))
    }));
    let answered = service.oneshot(within("100m")).await.unwrap();
    assert_eq!(answered.status(), 504);
    let text = answered.into_body().collect().await.unwrap().to_bytes();
    assert!(text.starts_with(b"{\"reason\":\"deadline\",\"status\":504"), "{text:?}");
    assert!(deadline::current().is_none(), "only while it works");
}

/// H6.
#[tokio::test(start_paused = true)]
async fn who_asked_over_grpc_is_told_so_in_grpc() {
    let service = free().layer(service_fn(|_: Asked| async {
        sleep(millis(100)).await;
        Ok::<_, Infallible>(Response::<Whole>::from(deadline::check().unwrap_err()))
    }));
    let mut asked = within("100m");
    asked.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    let answered = service.oneshot(asked).await.unwrap();
    assert_eq!(
        (answered.status().as_u16(), &answered.headers()["grpc-status"]),
        (200, &"4".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn who_states_none_has_none() {
    let service = free().layer(service_fn(|asked: Asked| async move {
        assert!(asked.extensions().get::<Deadline>().is_none());
        assert_eq!((deadline::remaining(), deadline::check().is_ok()), (None, true));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("fine")))
    }));
    assert_eq!(read(service.oneshot(within("nonsense")).await.unwrap()).await.1, "fine");
}

/// H2. It is not its turn that ends the wait.
#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_deadline() {
    let (work, gate) = (Work::new(), gate(1, 8, 60_000));
    let service = work.behind(&GateLayer::new(gate.clone()));
    let _held = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    let began = gate.clock().now();
    let refused = service.clone().oneshot(within("100m")).await.unwrap();
    assert!(gate.clock().now().since(began) <= millis(101));
    assert_eq!(reason(refused).await, (504, "deadline".into()));
    let late = service.oneshot(within("0m")).await.unwrap();
    assert_eq!((reason(late).await, work.working()), ((504, "deadline".into()), 1));
}

/// H3. Whatever an inner layer is heard, it has no more time than the one outside.
#[tokio::test(start_paused = true)]
async fn a_deadline_only_shrinks() {
    let patient = free().with_classifier(|_| Class::default().with_patience(millis(5_000)));
    let seen = service_fn(|asked: Asked| async move {
        let extension = asked.extensions().get::<Deadline>().unwrap().remaining();
        assert_eq!(deadline::remaining(), Some(extension));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(format!("{}", extension.as_millis()))))
    });
    let stacked = ServiceBuilder::new().layer(free()).layer(patient.clone()).service(seen);
    let answered = stacked.oneshot(within("100m")).await.unwrap();
    assert_eq!(answered.into_body().collect().await.unwrap().to_bytes(), "100");
    // The same where the layers are in two tasks, and only the extension gets across.
    let apart = ServiceBuilder::new().layer(free()).buffer(1).layer(patient.clone()).service(seen);
    let answered = apart.oneshot(within("100m")).await.unwrap();
    assert_eq!(answered.into_body().collect().await.unwrap().to_bytes(), "100");
    assert_eq!(read(patient.layer(seen).oneshot(get("/")).await.unwrap()).await.1, "5000");
}

/// A classifier says what kind of request it is; that it says nothing of a deadline does not mean that there is none.
#[tokio::test(start_paused = true)]
async fn a_stated_deadline_counts_whatever_the_classifier_says() {
    let seen = service_fn(|asked: Asked| async move {
        let extension = asked.extensions().get::<Deadline>().map(Deadline::remaining);
        let text = extension.map_or_else(|| "none".into(), |left| left.as_millis().to_string());
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))
    });
    let silent = free().with_classifier(|_| Class::default());
    let patient = free().with_classifier(|_| Class::default().with_patience(millis(5_000)));
    let hasty = free().with_classifier(|_| Class::default().with_patience(millis(30)));
    let exempt = free().with_classifier(|_| Class::exempt());
    let reads = |asked: &http::request::Parts| Class::default().with_stated_deadline(&asked.headers);
    for (layer, left) in [
        (free(), "100"),
        (silent.clone(), "100"),
        (patient.clone(), "100"),
        (hasty.clone(), "30"),
        (exempt, "100"),
        (free().with_classifier(reads), "100"),
        (free().without_stated_deadlines(), "none"),
        (silent.without_stated_deadlines(), "none"),
        (patient.without_stated_deadlines(), "5000"),
        (hasty.without_stated_deadlines(), "30"),
        (free().with_classifier(reads).without_stated_deadlines(), "100"),
    ] {
        assert_eq!(read(layer.layer(seen).oneshot(within("100m")).await.unwrap()).await.1, left);
    }
    let mut asked = get("/");
    asked.headers_mut().insert("x-envoy-expected-rq-timeout-ms", "70".parse().unwrap());
    let silent = free().with_classifier(|_| Class::default());
    assert_eq!(read(silent.layer(seen).oneshot(asked).await.unwrap()).await.1, "70");
}

/// A body that is made bit by bit has the deadline too, and another task if it is given it.
#[tokio::test(start_paused = true)]
async fn a_body_and_another_task_have_it_too() {
    let service = free().layer(service_fn(|_: Asked| async {
        let elsewhere = deadline::current().unwrap().scope(async { deadline::remaining() });
        assert_eq!(tokio::spawn(elsewhere).await.unwrap(), Some(millis(100)));
        assert_eq!(tokio::spawn(async { deadline::remaining() }).await.unwrap(), None);
        let body = Full::<Bytes>::from("x").map_frame(|frame| {
            assert_eq!(deadline::remaining(), Some(millis(60)));
            frame
        });
        Ok::<_, Infallible>(Response::new(body))
    }));
    let answered = service.oneshot(within("100m")).await.unwrap();
    advance(millis(40)).await;
    assert_eq!(answered.into_body().collect().await.unwrap().to_bytes(), "x");
}

/// The work is stopped, and the slot is free.
#[tokio::test(start_paused = true)]
async fn a_timeout_stops_the_work() {
    let (work, gate, heard) = (Work::new(), gate(1, 0, 500), Heard::default());
    let layer = heard.listen(GateLayer::new(gate.clone())).with_timeout(millis(300));
    let service = work.behind(&layer);
    let began = gate.clock().now();
    let answered = service.clone().oneshot(get("/")).await.unwrap();
    assert_eq!(gate.clock().now().since(began).as_millis(), 300);
    assert_eq!(reason(answered).await, (504, "upstream_timeout".into()));
    assert_eq!((work.stopped(), gate.snapshot().in_flight), (1, 0));
    assert_eq!(heard.outcomes(), [Outcome::Overload]);
    let answered = service.clone().oneshot(within("100m")).await.unwrap();
    assert_eq!(gate.clock().now().since(began).as_millis(), 400);
    assert_eq!(reason(answered).await, (504, "deadline".into()));
    work.finish(1);
    assert_eq!(read(service.oneshot(get("/")).await.unwrap()).await.0, 200, "who is quick is not cut off");
}

/// Without a timeout nobody is cut off: the handler may ask, or not.
#[tokio::test(start_paused = true)]
async fn without_a_timeout_the_deadline_cuts_nothing_off() {
    let work = Work::new();
    let call = tokio::spawn(work.behind(&free()).oneshot(within("100m")));
    settle().await;
    advance(millis(500)).await;
    settle().await;
    assert_eq!((work.working(), call.is_finished()), (1, false));
    work.finish(1);
    assert_eq!(read(call.await.unwrap().unwrap()).await.0, 200);
}
