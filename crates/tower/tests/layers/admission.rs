//! Who gets a slot, when, and what becomes of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tidegate_tower::GateLayer;
use tidegate_tower::engine::*;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, Service as _, ServiceBuilder, ServiceExt as _, service_fn};

use crate::support::*;

/// vector#26457: what is made ready and then not used holds nothing, of the gate's and of what is behind it.
#[tokio::test(start_paused = true)]
async fn ready_without_a_call_holds_nothing() {
    let (work, gate, behind) = (Work::new(), gate(1, 0, 500), Arc::new(Semaphore::new(1)));
    let inner = ConcurrencyLimit::with_semaphore(work.service(), behind.clone());
    let service = GateLayer::new(gate.clone()).layer(inner);
    let mut idle: Vec<_> = (0..16).map(|_| service.clone()).collect();
    for service in &mut idle {
        service.ready().await.unwrap();
    }
    assert_eq!((gate.snapshot().in_flight, behind.available_permits()), (0, 1));
    let call = idle[7].call(get("/"));
    assert_eq!(gate.snapshot().in_flight, 0, "nor does a call that nobody has polled");
    work.finish(1);
    assert_eq!(read(call.await.unwrap()).await, (200, "done".into()));
}

/// Tower's own limit does hold it, or the test above would show nothing.
#[tokio::test(start_paused = true)]
async fn towers_own_limit_is_held_by_who_is_ready() {
    let behind = Arc::new(Semaphore::new(1));
    let mut idle = ConcurrencyLimit::with_semaphore(Work::new().service(), behind.clone());
    idle.ready().await.unwrap();
    assert_eq!(behind.available_permits(), 0);
}

/// A12. On real threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clones_do_not_over_admit() {
    let (work, gate) = (Work::new(), gate(3, 1000, 60_000));
    let service = work.behind(&GateLayer::new(gate.clone()));
    work.finish(200);
    let call = || {
        let call = service.clone().oneshot(get("/"));
        tokio::spawn(async move { read(call.await.unwrap()).await })
    };
    let calls: Vec<_> = (0..200).map(|_| call()).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().0, 200);
    }
    assert!(work.most() <= 3, "{}", work.most());
    let end = gate.snapshot();
    assert_eq!((end.counts.completed, end.in_flight, end.queue_depth), (200, 0, 0));
    assert!(end.max_in_flight <= 3);
}

/// A2, A5.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_passes_its_place_on() {
    let (work, gate) = (Work::new(), gate(1, 8, 60_000));
    let service = work.behind(&GateLayer::new(gate.clone()));
    let call = || tokio::spawn(service.clone().oneshot(get("/")));
    let (first, second, third) = (call(), call(), call());
    settle().await;
    assert_eq!((work.working(), gate.snapshot().queue_depth), (1, 2));
    second.abort();
    settle().await;
    assert_eq!(gate.snapshot().queue_depth, 1);
    work.finish(2);
    assert_eq!(read(first.await.unwrap().unwrap()).await.0, 200);
    assert_eq!(read(third.await.unwrap().unwrap()).await.0, 200);
    assert_eq!((gate.snapshot().in_flight, gate.snapshot().counts.cancelled), (0, 1));
}

/// A4. In here the work stops with its future, and the slot is free only then.
#[tokio::test(start_paused = true)]
async fn who_leaves_while_the_service_works_stops_the_work_and_frees_the_slot() {
    let (work, gate, heard) = (Work::new(), gate(1, 8, 60_000), Heard::default());
    let service = work.behind(&heard.listen(GateLayer::new(gate.clone())));
    let call = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    assert_eq!((work.working(), gate.snapshot().in_flight), (1, 1));
    call.abort();
    settle().await;
    assert_eq!((work.working(), work.stopped(), gate.snapshot().in_flight), (0, 1, 0));
    assert_eq!(heard.outcomes(), [Outcome::Ignore]);
    work.finish(1);
    assert_eq!(read(service.oneshot(get("/")).await.unwrap()).await.0, 200);
}

/// A4. Whoever is let in next does not find the work of the one before still going on.
#[tokio::test(start_paused = true)]
async fn the_work_stops_before_its_slot_is_free() {
    struct Leaving(tidegate_tower::Gate, Arc<std::sync::Mutex<Vec<u32>>>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.snapshot().in_flight);
        }
    }
    let (gate, seen) = (gate(1, 0, 500), Arc::default());
    let (inside, told) = (gate.clone(), Arc::clone(&seen));
    let works = service_fn(move |_: Asked| {
        let leaving = Leaving(inside.clone(), Arc::clone(&told));
        async move {
            std::future::pending::<()>().await;
            drop(leaving);
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        }
    });
    let layer = GateLayer::new(gate.clone());
    let left = tokio::time::timeout(millis(10), layer.layer(works.clone()).oneshot(get("/"))).await;
    assert!(left.is_err());
    let cut_off = layer.with_timeout(millis(10)).layer(works).oneshot(get("/")).await.unwrap();
    assert_eq!((cut_off.status().as_u16(), gate.snapshot().in_flight), (504, 0));
    assert_eq!(*seen.lock().unwrap(), [1, 1], "the slot was taken while the work was dropped");
}

/// A7. A panic is a failure, and the slot is free.
#[tokio::test(start_paused = true)]
async fn a_panic_frees_the_slot() {
    let (gate, heard) = (gate(1, 0, 500), Heard::default());
    let layer = heard.listen(GateLayer::new(gate.clone()));
    let service = layer.layer(service_fn(|asked: Asked| async move {
        assert_ne!(asked.uri().path(), "/panic", "as it is meant to");
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("well")))
    }));
    let panicked = tokio::spawn(service.clone().oneshot(get("/panic"))).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Failure]));
    assert_eq!(read(service.oneshot(get("/")).await.unwrap()).await, (200, "well".into()));
}

/// A13. Who is not served in time is refused when the budget is used up, not when a slot happens to be free.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_on_time() {
    let (work, gate) = (Work::new(), gate(1, 8, 500));
    let service = work.behind(&GateLayer::new(gate.clone()));
    let _held = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    let began = gate.clock().now();
    let refused = service.oneshot(get("/")).await.unwrap();
    let took = gate.clock().now().since(began);
    assert_eq!(reason(refused).await, (503, "queue_timeout".into()));
    assert!((500..=502).contains(&took.as_millis()), "{took:?}");
}

/// H6. The manner of the question is that of the answer.
#[tokio::test(start_paused = true)]
async fn who_is_refused_is_told_in_the_way_it_asked() {
    let (work, gate) = (Work::new(), gate(1, 0, 500));
    let service = work.behind(&GateLayer::new(gate.clone()));
    let _held = tokio::spawn(service.clone().oneshot(get("/")));
    settle().await;
    let refused = service.clone().oneshot(get("/")).await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(reason(refused).await, (503, "queue_full".into()));
    let refused = service.oneshot(grpc("/a.B/C")).await.unwrap();
    let field = |name: &str| refused.headers()[name].to_str().unwrap();
    assert_eq!((refused.status().as_u16(), field("grpc-status")), (200, "14"));
    assert!(field("grpc-retry-pushback-ms").parse::<u64>().unwrap() >= 1);
    assert_eq!(read(refused).await.1, "");
}

/// What is behind the gate is asked whether it is ready when there is a slot for it, and on the clone that is called.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_is_waited_for_with_the_slot() {
    let (work, gate, behind) = (Work::new(), gate(2, 0, 500), Arc::new(Semaphore::new(0)));
    let inner = ConcurrencyLimit::with_semaphore(work.service(), behind.clone());
    let service = GateLayer::new(gate.clone()).layer(inner);
    let call = tokio::spawn(service.oneshot(get("/")));
    settle().await;
    assert_eq!((gate.snapshot().in_flight, work.working()), (1, 0));
    behind.add_permits(1);
    work.finish(1);
    assert_eq!(read(call.await.unwrap().unwrap()).await.0, 200);
    assert_eq!((gate.snapshot().in_flight, behind.available_permits()), (0, 1));
}

#[derive(Clone)]
struct Broken;

impl tower::Service<Asked> for Broken {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Err("it is broken"))
    }

    fn call(&mut self, _: Asked) -> Self::Future {
        std::future::ready(Err("it was not ready"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_will_never_be_ready_is_an_error_of_the_call() {
    let (gate, heard) = (gate(1, 0, 500), Heard::default());
    let mut service = heard.listen(GateLayer::new(gate.clone())).layer(Broken);
    service.ready().await.unwrap();
    assert_eq!(service.call(get("/")).await.unwrap_err(), "it is broken");
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Failure]));
}

/// Under a buffer, over one, in a task that waits for readiness, inside a load shedder: no slot is held for nobody, and
/// nobody is shed by those who do not know the gate (router#9034).
#[tokio::test(start_paused = true)]
async fn other_middleware_beside_it() {
    let (work, gate) = (Work::new(), gate(1, 8, 60_000));
    let layer = GateLayer::new(gate.clone());
    let stack = ServiceBuilder::new()
        .load_shed()
        .buffer(16)
        .layer_fn(tower::spawn_ready::SpawnReady::new)
        .layer(layer)
        .buffer(8)
        .service(work.service());
    let mut idle = stack.clone();
    idle.ready().await.unwrap();
    settle().await;
    assert_eq!(gate.snapshot().in_flight, 0);
    let calls: Vec<_> = (0..8).map(|_| tokio::spawn(stack.clone().oneshot(get("/")))).collect();
    settle().await;
    assert_eq!((gate.snapshot().in_flight, gate.snapshot().queue_depth), (1, 7));
    work.finish(8);
    for call in calls {
        assert_eq!(read(call.await.unwrap().unwrap()).await.0, 200);
    }
    assert_eq!((gate.snapshot().in_flight, work.most()), (0, 1));
}
