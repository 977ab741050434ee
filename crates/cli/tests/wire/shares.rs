//! Who gets a slot and who a place, over real sockets: classes, their floors, and tenants.
//!
//! The service holds every answer until it is told to let one go, so the order of things is that of the test.

use crate::client::{ask, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Wire;
use crate::service::Service;

/// Those of the batch have half of the capacity, whatever the others want.
const ROUTES: &str = r#"
[[priority]]
name = "critical"
[[priority]]
name = "background"
floor = 0.5
[[route]]
path = "/checkout/*"
priority = "critical"
[[route]]
path = "/batch/*"
priority = "background"
"#;

fn request(target: &str, tenant: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nX-Tenant: {tenant}\r\n\r\n")
}

/// One after the other, each at the service or in the queue before the next comes.
async fn come(gateway: &Gateway, targets: &[String]) -> Vec<Wire> {
    let mut wires = Vec::new();
    for (before, target) in targets.iter().enumerate() {
        wires.push(sent(gateway.clients, request(target, "")).await);
        let inside = before as u64 + 1;
        gateway
            .until("one more inside", |stats| stats.get("in_flight") + stats.get("queue_depth") == inside)
            .await;
    }
    wires
}

/// When the queue is full, whoever is more important has the place of the least important who came last.
#[tokio::test]
async fn an_important_arrival_pushes_out_a_lesser() {
    let service = Service::held().await;
    let policy = Policy::before(service.address).limit(1).queue(3, "1m");
    let gateway = Gateway::start(&policy.rest(&ROUTES.replace("0.5", "0"))).await;
    let targets = ["/batch/0", "/batch/1", "/batch/2", "/batch/3"].map(String::from);
    let mut wires = come(&gateway, &targets).await;
    let mut important = sent(gateway.clients, request("/checkout/4", "")).await;
    let pushed_out = wires.remove(3).message().await;
    assert_eq!((pushed_out.status(), pushed_out.reason().as_str()), (503, "pushed_out"));
    assert_eq!(ask(gateway.clients, request("/batch/5", "")).await.reason(), "queue_full");
    service.release(4);
    assert_eq!(important.message().await.status(), 200);
    for wire in &mut wires {
        assert_eq!(wire.message().await.status(), 200);
    }
    assert_eq!(service.targets(), ["/batch/0", "/checkout/4", "/batch/1", "/batch/2"]);
}

/// Those who are less important have what their floor says while more important ones could use all of it.
#[tokio::test]
async fn a_floor_is_held_under_overload() {
    // The first of the batch comes within five others, or after all ten.
    for (floor, earliest, latest) in [("0.5", 1, 5), ("0", 10, 10)] {
        let service = Service::held().await;
        let policy = Policy::before(service.address).limit(1).queue(20, "1m");
        let gateway = Gateway::start(&policy.rest(&ROUTES.replace("0.5", floor))).await;
        let mut targets: Vec<String> = (0..10).map(|n| format!("/checkout/{n}")).collect();
        targets.extend((0..3).map(|n| format!("/batch/{n}")));
        let mut wires = come(&gateway, &targets).await;
        service.release(targets.len());
        for wire in &mut wires {
            assert_eq!(wire.message().await.status(), 200);
        }
        let order = service.targets();
        let first = order.iter().position(|target| target.starts_with("/batch")).unwrap();
        assert!((earliest..=latest).contains(&first), "with a floor of {floor}: {order:?}");
    }
}

/// A tenant that has its share is told so, and another waits and is next.
#[tokio::test]
async fn a_tenant_has_its_share_at_most() {
    let service = Service::held().await;
    let rest =
        "[upstream.fairness]\ntenant_share = 0.5\n[[route]]\npath = \"/*\"\ntenant = \"header:x-tenant\"\n";
    let policy = Policy::before(service.address).limit(4).queue(9, "1m").rest(rest);
    let gateway = Gateway::start(&policy).await;
    let mut wires = Vec::new();
    // As long as there is room it may have all of it.
    for number in 1..=4 {
        wires.push(sent(gateway.clients, request("/big", "big")).await);
        gateway.until("it at the service", |stats| stats.get("in_flight") == number).await;
    }
    let refused = ask(gateway.clients, request("/big", "big")).await;
    assert_eq!((refused.status(), refused.reason().as_str()), (429, "tenant_limit"));
    let mut small = sent(gateway.clients, request("/small", "small")).await;
    gateway.until("the other in the queue", |stats| stats.get("queue_depth") == 1).await;
    service.release(5);
    assert_eq!(small.message().await.status(), 200);
    for wire in &mut wires {
        assert_eq!(wire.message().await.status(), 200);
    }
    assert_eq!(service.targets(), ["/big", "/big", "/big", "/big", "/small"]);
    assert_eq!(gateway.until_idle().await.rejected("tenant_limit"), 1);
}
