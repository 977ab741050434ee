//! Connections, as clients open them and leave them open: how long, how many, and what of it costs whom.

use std::process::Command;
use std::time::Duration;

use crate::client::{connect, get, post, sent};
use crate::gateway::{Gateway, Policy, TIDEGATE};
use crate::http2;
use crate::message::Wire;
use crate::service::{Script, Service};
use crate::wait::{Stopwatch, turn, until};

/// What is cut off after a second is cut off by a timer of one second, and not by one of several.
fn assert_about_a_second(watch: Stopwatch) {
    let elapsed = watch.elapsed();
    assert!((Duration::from_millis(950)..Duration::from_secs(5)).contains(&elapsed), "{elapsed:?}");
}

/// E1, E2 (vouch#1127). A connection that says nothing, or that never comes to the end of a head, is closed when the
/// time for a head is up, however steadily its bytes drip.
#[tokio::test]
async fn a_head_has_to_come_in_time() {
    let service = Service::prompt().await;
    let policy = Policy::before(service.address).server("header_timeout = \"1s\"\nidle_timeout = \"60s\"");
    let gateway = Gateway::start(&policy).await;
    let watch = Stopwatch::start();
    let silent = connect(gateway.clients).await;
    let half = sent(gateway.clients, "GET / HTTP/1.1\r\nHost: a\r\nX").await;
    let mut dripping = sent(gateway.clients, "GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
    let mut half_of_a_second = connect(gateway.clients).await;
    half_of_a_second.get("/").await;
    half_of_a_second.send("GET ").await;
    // The drip ends when the connection does.
    while watch.elapsed() < Duration::from_secs(10) && dripping.try_send("x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_about_a_second(watch);
    for mut wire in [silent, half, dripping, half_of_a_second] {
        wire.closed().await;
    }
    assert_about_a_second(watch);
    until("no connection", async || (gateway.connections().await == 0).then_some(())).await;
    assert_eq!(service.seen().len(), 1);
}

/// A connection without a request is closed when the time for that is up; one with a request is not.
#[tokio::test]
async fn an_idle_connection_is_closed_in_time() {
    let service = Service::held().await;
    let gateway = Gateway::start(
        &Policy::before(service.address).server("idle_timeout = \"1s\"").rest("[[route]]\npath = \"/busy\""),
    )
    .await;
    let mut busy = sent(gateway.clients, get("/busy")).await;
    service.until_asked(1).await;
    let mut idle = connect(gateway.clients).await;
    // No route takes this, so it is answered while the other is held.
    assert_eq!(idle.get("/nowhere").await.status(), 404);
    let watch = Stopwatch::start();
    idle.closed().await;
    assert_about_a_second(watch);
    service.release(1);
    assert_eq!(busy.message().await.status(), 200);
}

/// E3. A request body that stands still is given up, and its slot is free.
#[tokio::test]
async fn a_body_that_stands_still_is_given_up() {
    let script = Script::start().await;
    let policy = Policy::before(script.address)
        .limit(1)
        .server("body_timeout = \"1s\"")
        .upstream("timeout = \"100ms\"\ncancels_work = true");
    let gateway = Gateway::start(&policy).await;
    let watch = Stopwatch::start();
    let mut client = sent(gateway.clients, post("/", 100) + "begun").await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    assert_eq!(upstream.exactly(5).await, b"begun");
    upstream.closed().await;
    assert!(watch.elapsed() < Duration::from_secs(5));
    assert_eq!(client.message().await.reason(), "upstream_timeout");
    client.closed().await;
    gateway.until_idle().await;
}

/// E4. A client that does not read its answer is cut off when nothing has moved for the time that a body may stand
/// still, and its slot is free.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let script = Script::start().await;
    let policy = Policy::before(script.address)
        .limit(1)
        .server("body_timeout = \"1s\"")
        .upstream("cancels_work = true");
    let gateway = Gateway::start(&policy).await;
    let mut client = sent(gateway.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    const LARGE: usize = 64 * 1024 * 1024;
    upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")).await;
    let watch = Stopwatch::start();
    let body = vec![b'x'; LARGE];
    assert!(upstream.try_send(body).await.is_err(), "it is cut off before it is done");
    assert!(
        (Duration::from_millis(900)..Duration::from_secs(8)).contains(&watch.elapsed()),
        "{:?}",
        watch.elapsed()
    );
    gateway.until_idle().await;
    assert_eq!(client.head().await.status(), 200);
    assert!(client.until_end().await.0.len() < LARGE);
}

/// E7. At the cap, the next connection waits in the kernel, costs nothing, and is served when another has closed.
#[tokio::test]
async fn connections_beyond_the_cap_wait_in_the_kernel() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address).server("max_connections = 10")).await;
    let mut open = Vec::new();
    for _ in 0..10 {
        let mut wire = connect(gateway.clients).await;
        assert_eq!(wire.get("/").await.status(), 200);
        open.push(wire);
    }
    let mut eleventh = sent(gateway.clients, get("/eleventh")).await;
    until("it to be seen in the backlog", async || {
        (gateway.metric("tidegate_listener_backlog").await == 1.0).then_some(())
    })
    .await;
    assert_eq!(gateway.connections().await, 10);
    assert_eq!(open[5].get("/").await.status(), 200, "those that are open are served");
    assert_eq!(service.targets().iter().filter(|target| *target == "/eleventh").count(), 0);
    open.pop();
    assert_eq!(eleventh.message().await.status(), 200);
}

/// E8 (RUSTSEC-2024-0376). With few descriptors and many connections it serves those that it can, and all again when
/// they have gone.
#[tokio::test]
async fn running_out_of_descriptors_is_survived() {
    let service = Service::prompt().await;
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", TIDEGATE]);
    let gateway = Gateway::start_with(&Policy::before(service.address), limited).await;
    assert!(gateway.process.said().contains("raise the limit (ulimit -n)"), "{}", gateway.process.said());
    for _ in 0..2 {
        let mut open = Vec::new();
        for _ in 0..200 {
            open.push(connect(gateway.clients).await);
        }
        assert_eq!(open[0].get("/").await.status(), 200);
        assert_eq!(gateway.admin("/livez").await.status(), 200);
        drop(open);
        gateway.serves("/").await;
    }
    until("none but the last", async || (gateway.connections().await <= 1).then_some(())).await;
}

/// E9 (envoy#41867). Connections that come and go, in whatever state, leave nothing in the count.
#[tokio::test]
async fn connections_that_go_are_counted_out() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address).limit(1)).await;
    for round in 0..100 {
        let nothing = connect(gateway.clients).await;
        let half = sent(gateway.clients, "GET /").await;
        let garbage = sent(gateway.clients, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
        let unread = sent(gateway.clients, post("/", 1_000_000)).await;
        let asked = sent(gateway.clients, get("/")).await;
        if round % 2 == 0 {
            [nothing, half, garbage, unread, asked].into_iter().for_each(Wire::reset);
        }
    }
    until("no connection", async || (gateway.connections().await == 0).then_some(())).await;
    gateway.until_idle().await;
    gateway.serves("/").await;
    assert!(!gateway.process.said().contains("panicked"), "{}", gateway.process.said());
}

/// HTTP/2 from the first byte: many requests on one connection, each with a place of its own in the queue.
#[tokio::test]
async fn http2_requests_are_admitted_one_by_one() {
    let service = Service::held().await;
    let gateway = Gateway::start(&Policy::before(service.address).queue(8, "10s")).await;
    let mut connection = http2::Connection::open(gateway.clients).await;
    let mut answers = Vec::new();
    for _ in 0..50 {
        answers.push(connection.send(http2::get("/"), true).await.0);
    }
    let stats = gateway.until("all decided", |stats| stats.get("shed") == 38).await;
    assert_eq!((stats.get("in_flight"), stats.get("queue_depth")), (4, 8));
    service.release(12);
    let (mut served, mut refused) = (0, 0);
    for answer in answers {
        let answer = http2::whole(answer).await;
        match answer.head.status().as_u16() {
            200 => {
                assert_eq!(answer.body, b"done\n");
                served += 1;
            }
            503 => {
                assert!(answer.head.headers().contains_key("retry-after"));
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((served, refused), (12, 38));
    assert_eq!(gateway.stats().await.get("max_in_flight"), 4);
}

/// HTTP/2 is told by its first bytes, however they are cut; what only begins like it is HTTP/1.1.
#[tokio::test]
async fn http2_is_told_by_its_first_bytes() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let mut client = sent(gateway.clients, "PRI * HT").await;
    // It has been read by the time that another is served by the only worker.
    gateway.serves("/").await;
    client.send("TP/2.0\r\n\r\nSM\r\n\r\n").await;
    client.send(SETTINGS).await;
    assert_eq!(client.exactly(9).await[3], 4, "the server's SETTINGS");

    let mut client = sent(gateway.clients, "P").await;
    gateway.serves("/").await;
    client.send("UT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.message().await.status(), 200);
}

/// A kept upstream connection that was closed meanwhile is replaced, unseen: nothing had been sent on it.
#[tokio::test]
async fn a_kept_connection_that_has_died_is_replaced() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = connect(gateway.clients).await;
    for _ in 0..3 {
        client.send(get("/")).await;
        let mut upstream = script.accept().await;
        upstream.head().await;
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        assert_eq!(client.message().await.status(), 200);
        drop(upstream);
    }
}
