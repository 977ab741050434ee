//! A gate before what is no HTTP.

use std::convert::Infallible;

use tidegate_tower::deadline;
use tidegate_tower::engine::*;
use tidegate_tower::{CallError, CallLayer, Class, Gate};
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::*;

#[derive(Debug, PartialEq)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed")
    }
}

impl std::error::Error for Failed {}

/// A job: how long it takes, and how long its client waits.
#[derive(Clone, Copy)]
struct Job {
    takes: u64,
    patience: u64,
}

async fn perform(job: Job) -> Result<u128, Failed> {
    sleep(millis(job.takes)).await;
    if job.takes == 13 { Err(Failed) } else { Ok(deadline::remaining().unwrap().as_millis()) }
}

fn layer(gate: &Gate, heard: &Heard) -> CallLayer<Job> {
    CallLayer::new(gate.clone())
        .with_classifier(|job: &Job| Class::default().with_patience(millis(job.patience)))
        .with_observer(heard.hear())
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_a_typed_error_and_others_pass() {
    let (gate, heard) = (gate(1, 0, 500), Heard::default());
    let service = layer(&gate, &heard).layer(service_fn(perform));
    let call = |takes, patience| service.clone().oneshot(Job { takes, patience });
    let (first, second) = tokio::join!(call(100, 1000), call(100, 1000));
    assert_eq!(first.unwrap(), 900);
    let Err(CallError::Rejected(rejection)) = second else { panic!("{second:?}") };
    assert_eq!(rejection.reason, Reason::QueueFull);
    let failed = call(13, 1000).await.unwrap_err();
    assert_eq!((failed.to_string(), &failed), ("it failed".to_owned(), &CallError::Service(Failed)));
    assert_eq!(second.unwrap_err().to_string(), "rejected: queue_full");
    let Err(CallError::Rejected(late)) = call(1, 0).await else { panic!() };
    assert_eq!(late.reason, Reason::Deadline);
    assert_eq!(heard.outcomes(), [Outcome::Success, Outcome::Failure]);
    assert_eq!(gate.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn it_waits_in_the_same_queue_and_is_cut_off_in_time() {
    let (gate, heard) = (gate(1, 8, 60_000), Heard::default());
    let timed = layer(&gate, &heard).with_timeout(millis(200)).for_route(RouteId(3));
    let service = timed.layer(service_fn(perform));
    let call = |takes, patience| service.clone().oneshot(Job { takes, patience });
    let (first, second) = tokio::join!(call(100, 1000), call(100, 1000));
    assert_eq!((first.unwrap(), second.unwrap()), (900, 800), "one after the other");
    for (patience, reason) in [(1000, Reason::UpstreamTimeout), (150, Reason::Deadline)] {
        let Err(CallError::Rejected(rejection)) = call(5000, patience).await else { panic!() };
        assert_eq!(rejection.reason, reason);
    }
    assert_eq!(heard.outcomes()[2..], [Outcome::Overload, Outcome::Overload]);
    assert_eq!(gate.snapshot().in_flight, 0);
}

/// The request need not be `Clone`, nor anything of HTTP.
#[tokio::test(start_paused = true)]
async fn any_request_will_do() {
    struct Opaque(u32);
    let gate = gate(1, 0, 500);
    let service =
        CallLayer::new(gate).layer(service_fn(|it: Opaque| async move { Ok::<_, Infallible>(it.0) }));
    assert_eq!(service.clone().oneshot(Opaque(7)).await, Ok(7));
}
