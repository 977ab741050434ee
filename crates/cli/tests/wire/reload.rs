//! A new policy under way: nobody is sent away, nothing that was counted is forgotten.

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::service::Service;

/// A10. A limit that falls below what is in flight lets nobody in until that has drained; one that rises wakes those
/// who wait.
#[tokio::test]
async fn a_lowered_limit_drains_and_a_raised_one_wakes() {
    let service = Service::held().await;
    let policy = Policy::before(service.address).queue(8, "10s");
    let gateway = Gateway::start(&policy).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(sent(gateway.clients, get("/")).await);
    }
    service.until_asked(4).await;
    for _ in 0..3 {
        clients.push(sent(gateway.clients, get("/")).await);
    }
    gateway.until("three in the queue", |stats| stats.get("queue_depth") == 3).await;

    gateway.reload(&policy.clone().limit(2)).await;
    let stats = gateway.stats().await;
    assert_eq!((stats.get("limit"), stats.get("in_flight"), stats.get("queue_depth")), (2, 4, 3));
    for left in [3, 2] {
        service.release(1);
        let stats = gateway.until("one fewer in flight", |stats| stats.get("in_flight") == left).await;
        assert_eq!(stats.get("queue_depth"), 3, "nobody is let in above the limit");
    }
    service.release(1);
    let stats = gateway.until("the next one's turn", |stats| stats.get("queue_depth") == 2).await;
    assert_eq!(stats.get("in_flight"), 2);

    gateway.reload(&policy.clone().limit(10)).await;
    let stats = gateway.until("nobody in the queue", |stats| stats.get("queue_depth") == 0).await;
    assert_eq!(stats.get("in_flight"), 4);
    service.until_asked(7).await;
    service.release(4);
    for mut client in clients {
        assert_eq!(client.message().await.status(), 200);
    }
    gateway.until_idle().await;
}

/// B10 (hookaido#239). A reload does not fill the buckets: a hundred of them during traffic give away nothing.
#[tokio::test]
async fn a_reload_fills_no_bucket() {
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 30";
    let policy = Policy::before(service.address).rest(rule);
    let gateway = Gateway::start(&policy).await;
    let mut wire = connect(gateway.clients).await;
    let mut admitted = 0;
    for _ in 0..100 {
        gateway.reload(&policy).await;
        for _ in 0..3 {
            admitted += u32::from(wire.get("/").await.status() == 200);
        }
    }
    assert_eq!(admitted, 30);

    // A rule that has changed counts from the next request on (scality#6046).
    gateway.reload(&policy.clone().rest(&rule.replace("1/h", "1000/s"))).await;
    let mut answer = wire.get("/").await;
    while answer.status() == 429 {
        answer = wire.get("/").await;
    }
    assert_eq!(answer.status(), 200);
}

/// K3. A policy that is not right changes nothing, and is told of.
#[tokio::test]
async fn a_bad_policy_leaves_the_one_before_in_force() {
    let service = Service::prompt().await;
    let policy = Policy::before(service.address).limit(7);
    let gateway = Gateway::start(&policy).await;
    let refused = "tidegate_config_reloads_total{result=\"refused\"}";
    for (count, bad) in [policy.clone().limit(0), policy.clone().workers(2)].into_iter().enumerate() {
        gateway.offer(&bad);
        crate::wait::until("the policy to be refused", async || {
            (gateway.metric(refused).await == count as f64 + 1.0).then_some(())
        })
        .await;
        assert_eq!(gateway.stats().await.get("limit"), 7);
        gateway.serves("/").await;
    }
    let said = gateway.process.said();
    assert!(said.contains("limit = 0") && said.contains("a change of workers needs a restart"), "{said}");
}

/// A rule that is new is in force for connections that were open before it.
#[tokio::test]
async fn a_new_rule_counts_for_open_connections() {
    let service = Service::prompt().await;
    let policy = Policy::before(service.address);
    let gateway = Gateway::start(&policy).await;
    let mut wire = connect(gateway.clients).await;
    assert_eq!(wire.get("/").await.status(), 200);
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 1";
    gateway.reload(&policy.rest(rule)).await;
    assert_eq!(wire.get("/").await.status(), 200);
    assert_eq!(wire.get("/").await.status(), 429);
    assert_eq!(ask(gateway.clients, get("/")).await.status(), 429);
}
