//! Connections that stop being HTTP.

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Wire;
use crate::service::Script;

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: test\r\n\r\n";
const AGREE: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n";
const UPGRADED: &str = "tidegate_connections{side=\"client\",state=\"upgraded\"}";

/// A connection that speaks another protocol by now.
async fn upgraded(gateway: &Gateway, script: &Script) -> (Wire, Wire) {
    let mut client = sent(gateway.clients, ASK).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send(AGREE).await;
    assert_eq!(client.head().await.status(), 101);
    (client, upstream)
}

/// D3 (CVE-2026-2833). Bytes flow both ways once both have agreed, and not a moment before; the slot is free from then
/// on, however long it lasts.
#[tokio::test]
async fn an_upgrade_is_a_tunnel_without_a_slot() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).limit(1)).await;
    let mut client = sent(gateway.clients, format!("{ASK}early")).await;
    let mut upstream = script.accept().await;
    let head = upstream.head().await;
    assert_eq!((head.field("connection"), head.field("upgrade")), (Some("upgrade"), Some("test")));
    assert_eq!(
        ask(gateway.clients, get("/")).await.reason(),
        "queue_full",
        "it has a slot until it is agreed"
    );
    assert!(upstream.at_hand().is_empty(), "{upstream:?}");

    upstream.send(format!("{AGREE}welcome")).await;
    let head = client.head().await;
    assert_eq!((head.status(), head.field("upgrade")), (101, Some("test")));
    assert_eq!(client.exactly(7).await, b"welcome");
    assert_eq!(upstream.exactly(5).await, b"early");
    gateway.until_idle().await;
    assert_eq!(gateway.metric(UPGRADED).await, 1.0);

    client.send("GET /not-a-request HTTP/1.1\r\n\r\n").await;
    assert_eq!(upstream.exactly(31).await, b"GET /not-a-request HTTP/1.1\r\n\r\n");
    upstream.send([0, 255, 10, 13]).await;
    assert_eq!(client.exactly(4).await, [0, 255, 10, 13]);

    let mut other = sent(gateway.clients, get("/")).await;
    let mut second = script.accept().await;
    second.head().await;
    second.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(other.head().await.status(), 204);

    drop(client);
    upstream.closed().await;
    drop(upstream);
    crate::wait::until("the tunnel's end", async || (gateway.metric(UPGRADED).await == 0.0).then_some(()))
        .await;
}

/// D3. If the upstream does not agree, its answer is an answer like any other, and it never gets what came early.
#[tokio::test]
async fn a_refused_upgrade_is_an_answer() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).limit(1)).await;
    let mut client = sent(gateway.clients, format!("{ASK}\0early")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.text()), (403, "no".into()));
    upstream.closed().await;
    gateway.until_idle().await;
    assert_eq!(gateway.metric(UPGRADED).await, 0.0);
}

/// They have a cap of their own, because they have no slot.
#[tokio::test]
async fn upgrades_have_a_cap() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).server("max_upgrades = 2")).await;
    let (mut first, upstream_of_first) = upgraded(&gateway, &script).await;
    let _second = upgraded(&gateway, &script).await;
    let answer = ask(gateway.clients, ASK).await;
    assert_eq!((answer.status(), answer.reason()), (503, "gateway_overloaded".into()));
    gateway.until_idle().await;
    // Either end may close.
    drop(upstream_of_first);
    first.closed().await;
    drop(first);
    crate::wait::until("a place", async || (gateway.metric(UPGRADED).await == 1.0).then_some(())).await;
    upgraded(&gateway, &script).await;
}

/// HTTP/2 by upgrade is a way past gateways, and is not passed on.
#[tokio::test]
async fn an_upgrade_to_http2_is_ignored() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    let mut client = sent(gateway.clients, request).await;
    let mut upstream = script.accept().await;
    let head = upstream.head().await;
    assert_eq!(
        (head.field("connection"), head.field("upgrade"), head.field("http2-settings")),
        (None, None, None)
    );
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 204);
}
