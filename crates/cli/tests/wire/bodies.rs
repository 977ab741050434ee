//! Heads and bodies on their way through: what is added, what is taken off, what is left alone, and that nothing is
//! kept back.

use expect_test::expect;

use crate::client::{ask, connect, get, post, sent};
use crate::gateway::{Gateway, Policy};
use crate::http2;
use crate::message::{End, Head};
use crate::service::{Script, Service};
use crate::wait::turn;

/// A head, one line each, the ports of this run made out.
fn shown(head: &Head, gateway: &Gateway) -> String {
    let mut lines: Vec<String> =
        head.fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    lines.sort();
    format!("{}\n{}", head.start, lines.concat()).replace(&gateway.clients.port().to_string(), "PORT")
}

/// C8 (CVE-2024-45410). What the upstream is told of its client comes from here; a client can neither forge it nor
/// have it taken off by naming it in `Connection`. Hop-by-hop fields go no further.
#[tokio::test]
async fn what_the_upstream_sees() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let forged = "GET /path?query HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nX-Forwarded-For: 6.6.6.6\r\n\
        X-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\nX-Private: 1\r\nAuthorization: Bearer t\r\n\
        Connection: X-Forwarded-For, Forwarded, X-Private, Host, Authorization, Via\r\nKeep-Alive: timeout=5\r\n\
        Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nTE: gzip, trailers\r\nVia: 1.1 front\r\n\r\n";
    assert_eq!(ask(gateway.clients, forged).await.status(), 200);
    expect![[r#"
        GET /path?query HTTP/1.1
        authorization: Bearer t
        forwarded: for=127.0.0.1;proto=http
        host: shop.example
        te: trailers
        user-agent: test
        via: 1.1 tidegate
        x-forwarded-for: 127.0.0.1
        x-forwarded-host: shop.example
        x-forwarded-port: PORT
        x-forwarded-proto: http
    "#]]
    .assert_eq(&shown(&service.seen()[0].head, &gateway));

    let mut connection = http2::Connection::open(gateway.clients).await;
    let request =
        http::Request::get("http://shop.example/path").header("cookie", "a=1").header("cookie", "b=2");
    connection.ask(request.body(()).unwrap()).await;
    expect![[r#"
        GET /path HTTP/1.1
        cookie: a=1; b=2
        forwarded: for=127.0.0.1;proto=http
        host: shop.example
        via: 2 tidegate
        x-forwarded-for: 127.0.0.1
        x-forwarded-host: shop.example
        x-forwarded-port: PORT
        x-forwarded-proto: http
    "#]]
    .assert_eq(&shown(&service.seen()[1].head, &gateway));
}

/// A body is handed on as it comes, in both directions at once: neither end waits for the end of the other.
#[tokio::test]
async fn chunks_pass_as_they_come() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = sent(gateway.clients, format!("{head}5\r\nfirst\r\n")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    assert_eq!(upstream.chunk().await, b"first");
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n").await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.chunk().await, b"one");
    client.send("6\r\nsecond\r\n").await;
    assert_eq!(upstream.chunk().await, b"second");
    upstream.send("3\r\ntwo\r\n").await;
    assert_eq!(client.chunk().await, b"two");
    client.send("0\r\n\r\n").await;
    assert!(upstream.chunk().await.is_empty());
    upstream.send("0\r\n\r\n").await;
    assert!(client.chunk().await.is_empty());
    gateway.until_idle().await;
}

/// Fields after the body pass too, in both directions, and as HTTP/2 trailers.
#[tokio::test]
async fn trailers_pass() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
        2\r\nup\r\n0\r\nX-Sum: 1\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\ndown\r\n0\r\nX-Sum: 2\r\n\r\n";
    let mut client = sent(gateway.clients, request).await;
    let mut upstream = script.accept().await;
    let received = upstream.message().await;
    assert_eq!((received.text(), received.trailers), ("up".into(), vec![("x-sum".into(), "1".into())]));
    upstream.send(answer).await;
    let received = client.message().await;
    assert_eq!((received.text(), received.trailers), ("down".into(), vec![("x-sum".into(), "2".into())]));

    let mut connection = http2::Connection::open(gateway.clients).await;
    let request = http::Request::post("http://a/").header("te", "trailers").body(()).unwrap();
    let (received, _stream) = connection.send(request, true).await;
    assert_eq!(upstream.message().await.head.field("te"), Some("trailers"));
    upstream.send(answer).await;
    let received = http2::whole(received).await;
    assert_eq!((received.body, received.trailers.unwrap()["x-sum"].as_bytes()), (b"down".into(), &b"2"[..]));
    let stats = gateway.until_idle().await;
    assert_eq!((stats.get("completed"), stats.get("client_left")), (2, 0));
}

/// Answers without a body leave the connection in order, whatever their fields say.
#[tokio::test]
async fn answers_without_a_body() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = connect(gateway.clients).await;
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut upstream = script.accept().await;
    for (answer, status, length) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200, Some("1000")),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, None),
        // The length of a body that is not sent may be left out (RFC 9110 section 8.6), and hyper does.
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n", 304, None),
    ] {
        upstream.head().await;
        upstream.send(answer).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.field("content-length")), (status, length));
        gateway.until_idle().await;
        client.send(get("/next")).await;
    }
    assert_eq!(upstream.head().await.target(), "/next");
}

/// An HTTP/1.0 client knows no chunks and keeps no connection: the end of the connection is the end of the body.
#[tokio::test]
async fn an_old_client_gets_a_body_that_ends_with_its_connection() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, "GET / HTTP/1.0\r\n\r\n").await;
    let mut upstream = script.accept().await;
    let head = upstream.head().await;
    assert_eq!((head.start.as_str(), head.field("via")), ("GET / HTTP/1.1", Some("1.0 tidegate")));
    assert_eq!(head.field("host"), Some(""), "RFC 9112 section 3.2");
    upstream
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        .await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.text()), (200, "onetwo".into()));
    assert_eq!(answer.head.field("transfer-encoding"), None);
    assert_eq!(client.closed().await, End::Closed);
}

/// A body of unknown length from an upstream that closes is passed on, and does not count as broken off.
#[tokio::test]
async fn a_body_that_ends_with_the_upstreams_connection() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 200 OK\r\n\r\nall of it").await;
    drop(upstream);
    assert_eq!(client.message().await.text(), "all of it");
    assert_eq!(gateway.until_idle().await.get("completed"), 1);
}

const LARGE: usize = 20 * 1024 * 1024;

/// Bodies are streamed, never kept: 20 MiB up to a service that does not read yet, and 20 MiB down to a client that
/// does not.
#[tokio::test]
async fn large_bodies_pass_through_little_memory() {
    let _turn = turn().await;
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    gateway.stats().await;
    let (before, _) = gateway.process.memory();
    let body: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();

    let mut client = sent(gateway.clients, post("/", LARGE)).await;
    let mut upstream = script.accept().await;
    let head = upstream.head().await;
    // Only what the kernel's buffers take goes out before anybody reads.
    let at = client.send_until_stuck(&body).await;
    assert!(at < LARGE, "the client is held back by the upstream");
    let (rest, received) = (body[at..].to_vec(), upstream.rest(head));
    let sending = tokio::spawn(async move {
        client.send(rest).await;
        client
    });
    assert!(received.await.body == body);
    let mut client = sending.await.unwrap();

    upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")).await;
    let at = upstream.send_until_stuck(&body).await;
    assert!(at < LARGE, "the upstream is held back by the client");
    let rest = body[at..].to_vec();
    let sending = tokio::spawn(async move { upstream.send(rest).await });
    assert!(client.message().await.body == body);
    sending.await.unwrap();

    let (_, most) = gateway.process.memory();
    assert!(most < before + 32 * 1024, "{before} KiB before, {most} KiB at most");
    gateway.until_idle().await;
}
