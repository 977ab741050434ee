//! What a layer tells of what happens: every request that is not exempt once, and once more when it has ended.

use tidegate_tower::engine::*;
use tidegate_tower::{GateEvent, GateLayer};
use tokio::time::{advance, timeout};
use tower::ServiceExt as _;

use crate::support::*;

const ROUTE: RouteId = RouteId(7);
const MOST: Priority = Priority(0);

#[tokio::test(start_paused = true)]
async fn each_thing_that_happens_is_told_once() {
    let (work, gate, heard) = (Work::new(), gate(1, 1, 500), Heard::default());
    let layer = heard.listen(GateLayer::new(gate.clone()).for_route(ROUTE));
    let service = work.behind(&layer);
    let first = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    let admitted = |waited| GateEvent::Admitted { route: ROUTE, priority: MOST, waited: millis(waited) };
    assert_eq!(heard.take(), [admitted(0)]);

    let second = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    assert_eq!(heard.take(), [], "whoever waits has not been decided on");
    assert_eq!(service.clone().oneshot(get("/")).await.unwrap().status(), 503);
    let refused =
        |reason, waited| GateEvent::Refused { route: ROUTE, priority: MOST, reason, waited: millis(waited) };
    assert_eq!(heard.take(), [refused(Reason::QueueFull, 0)]);

    advance(millis(200)).await;
    work.finish(1);
    drop(first.await.unwrap().unwrap());
    settle().await;
    let took = |outcome, took| GateEvent::Ended { route: ROUTE, priority: MOST, outcome, took: millis(took) };
    assert_eq!(heard.take(), [took(Outcome::Ignore, 200), admitted(200)], "its body was not read");

    let third = tokio::spawn(timeout(millis(100), service.oneshot(get("/"))));
    settle().await;
    assert!(third.await.unwrap().is_err());
    assert_eq!(heard.take(), [refused(Reason::ClientLeft, 100)]);
    work.finish(1);
    assert_eq!(read(second.await.unwrap().unwrap()).await.0, 200);
    assert_eq!(heard.take(), [took(Outcome::Success, 100)]);
}
