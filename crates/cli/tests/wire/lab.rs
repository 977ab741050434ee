//! The lab's upstream itself: what it can be told while it runs.

use crate::client::{ask, get, post, sent};
use crate::gateway::Lab;
use crate::wait::until;

/// Who waits for a worker works as the service does by then, not as it did when the request came.
#[tokio::test]
async fn a_new_service_time_counts_for_those_who_wait_already() {
    // An hour: only a shorter time can end it.
    let lab = Lab::start(&["--workers", "1", "--service-time", "1h", "--cancels-work"]).await;
    let first = sent(lab.address, get("/work?ms=3600000")).await;
    until("the first at work", async || (lab.stat("inFlight").await == 1).then_some(())).await;
    let mut second = sent(lab.address, get("/work/second")).await;
    until("the second in line", async || (lab.stat("inFlight").await == 2).then_some(())).await;
    assert_eq!(ask(lab.address, post("/set?service_time=1ms", 0)).await.status(), 200);
    drop(first);
    assert_eq!(second.message().await.status(), 200);
}

#[tokio::test]
async fn a_service_time_needs_a_unit_and_a_post() {
    let lab = Lab::start(&["--service-time", "1ms"]).await;
    for (request, status) in [
        (post("/set?service_time=90", 0), 400),
        (post("/set?time=90ms", 0), 400),
        (get("/set?service_time=1h"), 404),
        // None of them changed anything.
        (get("/work"), 200),
        (get("/works"), 404),
    ] {
        assert_eq!(ask(lab.address, &request).await.status(), status, "{request}");
    }
}
