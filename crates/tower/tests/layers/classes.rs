//! What a classifier says, and what follows from it.

use http::request;
use tidegate_tower::engine::*;
use tidegate_tower::{Class, Gate, GateLayer};
use tower::ServiceExt as _;

use crate::support::*;

const CHECKOUT: RouteId = RouteId(1);
const REPORTS: RouteId = RouteId(2);

fn bulkheads() -> Gate {
    let mut policy = policy(4, 0, 500);
    policy.bulkheads = vec![(REPORTS, number(1))];
    Gate::new(policy)
}

/// Article 003: the cheaper workload cannot crowd out the important one.
#[tokio::test(start_paused = true)]
async fn a_bulkhead_holds_one_route_and_not_the_other() {
    let (work, gate) = (Work::new(), bulkheads());
    let layer = GateLayer::new(gate.clone());
    let reports = work.behind(&layer.for_route(REPORTS));
    let checkout = work.behind(&layer.for_route(CHECKOUT));
    let _held = tokio::spawn(reports.clone().oneshot(get("/")));
    settle().await;
    assert_eq!(reason(reports.oneshot(get("/")).await.unwrap()).await, (503, "route_limit".into()));
    let quota = work.behind(&layer.for_route(REPORTS).with_bulkhead_as_quota());
    assert_eq!(reason(quota.clone().oneshot(get("/")).await.unwrap()).await, (429, "route_limit".into()));
    assert_eq!(quota.oneshot(grpc("/")).await.unwrap().headers()["grpc-status"], "8");
    let calls: Vec<_> = (0..3).map(|_| tokio::spawn(checkout.clone().oneshot(get("/")))).collect();
    settle().await;
    assert_eq!((gate.snapshot().in_flight, work.working()), (4, 4), "one gate for both");
    work.finish(4);
    for call in calls {
        assert_eq!(read(call.await.unwrap().unwrap()).await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_classifier_may_name_the_route_too() {
    let (work, gate) = (Work::new(), bulkheads());
    let layer = GateLayer::new(gate).with_classifier(|head| match head.uri.path() {
        "/reports" => Class::default().with_route(REPORTS),
        _ => Class::default(),
    });
    let service = work.behind(&layer);
    let _held = tokio::spawn(service.clone().oneshot(get("/reports")));
    settle().await;
    let refused = service.clone().oneshot(get("/reports")).await.unwrap();
    assert_eq!(reason(refused).await, (503, "route_limit".into()));
    work.finish(2);
    assert_eq!(read(service.oneshot(get("/other")).await.unwrap()).await.0, 200);
}

fn by_path(head: &request::Parts) -> Class {
    match head.uri.path() {
        "/healthz" => Class::exempt(),
        "/heavy" => Class::default().with_cost(number(3)),
        "/background" => Class::default().with_priority(Priority(1)),
        path => Class::default().with_tenant(path),
    }
}

fn two_classes(limit: u32) -> Gate {
    let mut policy = policy(limit, 8, 60_000);
    policy.priorities = vec![PriorityPolicy::default(); 2];
    Gate::new(policy)
}

#[tokio::test(start_paused = true)]
async fn the_more_important_goes_first() {
    let (work, gate) = (Work::new(), two_classes(1));
    let service = work.behind(&GateLayer::new(gate.clone()).with_classifier(by_path));
    let call = |path: &str| tokio::spawn(service.clone().oneshot(get(path)));
    let first = call("/a");
    settle().await;
    let background = call("/background");
    settle().await;
    let critical = call("/b");
    settle().await;
    assert_eq!(gate.snapshot().waiting_by_priority[..2], [1, 1]);
    work.finish(1);
    assert_eq!(read(first.await.unwrap().unwrap()).await.0, 200);
    settle().await;
    assert_eq!(gate.snapshot().waiting_by_priority[..2], [0, 1]);
    work.finish(2);
    assert_eq!(read(critical.await.unwrap().unwrap()).await.0, 200);
    assert_eq!(read(background.await.unwrap().unwrap()).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_heavy_request_takes_as_many_slots_as_it_costs() {
    let (work, gate) = (Work::new(), two_classes(4));
    let service = work.behind(&GateLayer::new(gate.clone()).with_classifier(by_path));
    let call = tokio::spawn(service.oneshot(get("/heavy")));
    settle().await;
    assert_eq!(gate.snapshot().in_flight, 3);
    work.finish(1);
    drop(call.await.unwrap().unwrap());
    assert_eq!(gate.snapshot().in_flight, 0);
}

/// K8. A health check of a busy service is answered by it.
#[tokio::test(start_paused = true)]
async fn who_is_exempt_goes_past_a_full_gate() {
    let (work, mut full) = (Work::new(), policy(1, 0, 500));
    full.breaker = None;
    let gate = Gate::new(full);
    let service = work.behind(&GateLayer::new(gate.clone()).with_classifier(by_path));
    let _held = tokio::spawn(service.clone().oneshot(get("/a")));
    settle().await;
    assert_eq!(service.clone().oneshot(get("/b")).await.unwrap().status(), 503);
    let arrived = gate.snapshot().counts.arrived;
    let check = tokio::spawn(service.oneshot(get("/healthz")));
    settle().await;
    assert_eq!((work.working(), gate.snapshot().in_flight), (2, 1));
    work.finish(2);
    assert_eq!(read(check.await.unwrap().unwrap()).await.0, 200);
    assert_eq!(gate.snapshot().counts.arrived, arrived, "it is not counted either");
}

/// Everybody is served in turn, by the time that they take, however much one of them asks for.
#[tokio::test(start_paused = true)]
async fn tenants_are_told_apart() {
    let (work, gate) = (Work::new(), two_classes(1));
    let service = work.behind(&GateLayer::new(gate).with_classifier(by_path));
    let call = |path: &'static str| {
        let call = service.clone().oneshot(get(path));
        tokio::spawn(async move {
            drop(call.await.unwrap());
            path
        })
    };
    let mut calls = tokio::task::JoinSet::new();
    for path in ["/greedy", "/greedy", "/greedy", "/greedy", "/modest"] {
        let call = call(path);
        calls.spawn(async move { call.await.unwrap() });
        settle().await;
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        tokio::time::advance(millis(100)).await;
        work.finish(1);
        order.push(calls.join_next().await.unwrap().unwrap());
    }
    let turn = order.iter().position(|path| *path == "/modest").unwrap();
    assert!(turn <= 2, "its turn came {turn} calls later: {order:?}");
}
