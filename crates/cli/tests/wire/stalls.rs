//! One end stops reading, or stops sending, and the other must not be kept for ever, nor cut off for it.

use bytes::Bytes;

use crate::client::{post, sent};
use crate::gateway::{Gateway, Policy};
use crate::http2;
use crate::service::{Script, Service};
use crate::wait::until;

/// More than all the buffers between two ends hold.
const MUCH: usize = 32 * 1024 * 1024;

fn long_answer() -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {MUCH}\r\n\r\n")
}

/// A second upstream, `lively`, with routes that tell the two apart.
fn beside(lively: std::net::SocketAddr) -> String {
    format!(
        "[[upstream]]\nname = \"lively\"\nendpoints = [\"http://{lively}\"]\n\n\
         [[route]]\npath = \"/lively\"\nupstream = \"lively\"\n\n[[route]]\npath = \"/*\"\nupstream = \"service\"\n"
    )
}

/// Over HTTP/2 an answer that its client does not take gives its slot back although its siblings on the same
/// connection move all the while, and they are not disturbed.
#[tokio::test]
async fn a_stalled_stream_is_not_hidden_by_its_siblings() {
    let (script, lively) = (Script::start().await, Service::prompt().await);
    let policy = Policy::before(script.address)
        .upstream("cancels_work = true")
        .server("body_timeout = \"300ms\"")
        .rest(&beside(lively.address));
    let gateway = Gateway::start(&policy).await;
    let mut connection = http2::Connection::open(gateway.clients).await;
    let (stalled, _stream) = connection.send(http2::get("/stalled"), true).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send(long_answer()).await;
    // Its window is never opened again.
    let mut stalled = stalled.await.unwrap().into_body();
    let sending = tokio::spawn(async move {
        let _ = upstream.try_send(vec![b'x'; MUCH]).await;
    });
    let mut siblings = 0;
    until("the stalled stream's slot to be free", async || {
        assert_eq!(connection.ask(http2::get("/lively")).await.body, b"done\n");
        siblings += 1;
        (gateway.stats().await.get("in_flight") == 0).then_some(())
    })
    .await;
    assert!(siblings > 1);
    // The stream is reset, the connection is as good as before.
    while let Some(Ok(_)) = stalled.data().await {}
    assert_eq!(connection.ask(http2::get("/lively")).await.body, b"done\n");
    sending.await.unwrap();
}

/// A client may send all of a long request before it reads the first byte of an answer that has begun long ago.
#[tokio::test]
async fn an_early_answer_does_not_stop_the_upload() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, post("/", MUCH)).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send(long_answer()).await;
    upstream.send_until_stuck(&vec![b'a'; MUCH]).await;
    // Nobody takes more of the answer now, and the request must go through all the same.
    let (_, received) = tokio::join!(client.send(vec![b'r'; MUCH]), upstream.exactly(MUCH));
    assert_eq!(received.len(), MUCH);
    assert_eq!(client.head().await.status(), 200);
    drop(upstream);
    client.until_end().await;
    gateway.until_idle().await;
}

/// After a 504 the client may still be sending the request that was answered. That is no request head that takes too
/// long, and the upstream gets all of it.
#[tokio::test]
async fn an_upload_goes_on_after_its_timeout_was_answered() {
    let script = Script::start().await;
    let policy = Policy::before(script.address)
        .upstream("timeout = \"100ms\"")
        .server("header_timeout = \"200ms\"\nidle_timeout = \"300ms\"\nbody_timeout = \"800ms\"");
    let gateway = Gateway::start(&policy).await;
    let mut client = sent(gateway.clients, post("/", 10)).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    client.send(b"0").await;
    assert_eq!(client.message().await.status(), 504);
    for _ in 1..9 {
        client.send(b"1").await;
        upstream.exactly(1).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(gateway.stats().await.get("orphans"), 1);
    client.send(b"1").await;
    upstream.exactly(2).await;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    gateway.until_idle().await;
}

/// Over HTTP/2, what the client sends is progress too: a call that only streams up is not a stalled one.
#[tokio::test]
async fn a_stream_that_only_sends_is_not_stalled() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).server("body_timeout = \"300ms\"")).await;
    let mut connection = http2::Connection::open(gateway.clients).await;
    let request = http::Request::post("http://shop.example/").body(()).unwrap();
    let (answer, mut stream) = connection.send(request, false).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
    let answer = answer.await.unwrap();
    for _ in 0..15 {
        stream.send_data(Bytes::from_static(b"x"), false).unwrap();
        assert_eq!(upstream.chunk().await, b"x");
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    stream.send_data(Bytes::new(), true).unwrap();
    assert!(upstream.chunk().await.is_empty());
    upstream.send("0\r\n\r\n").await;
    let (mut body, mut received) = (answer.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        received.extend(data.unwrap());
    }
    assert_eq!(received, b"ok");
    gateway.until_idle().await;
}
