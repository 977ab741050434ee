//! Whoever is counted in is counted out, whichever way it ends. The most common fatal fault of this field is a count
//! that goes up and, on one path, does not come down: the gateway then refuses for ever.

use crate::client::{ask, connect, get, post, sent};
use crate::gateway::{Gateway, Policy};
use crate::http2;
use crate::message::{End, Wire};
use crate::service::{Script, Service, nobody};
use crate::wait::turn;

/// One slot, taken by a request that the service holds, and room to wait behind it.
async fn one_slot_taken(service: &Service) -> (Gateway, Wire) {
    let gateway = Gateway::start(&Policy::before(service.address).limit(1).queue(8, "10s")).await;
    let first = sent(gateway.clients, get("/first")).await;
    service.until_asked(1).await;
    (gateway, first)
}

/// Somebody waits, is seen to leave while nothing has come free, and is never heard of again.
async fn leaves_the_queue(waits: impl AsyncFnOnce(&mut Wire), leave: impl FnOnce(Wire)) {
    let service = Service::held().await;
    let (gateway, mut first) = one_slot_taken(&service).await;
    let mut second = connect(gateway.clients).await;
    waits(&mut second).await;
    gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;

    leave(second);
    let stats = gateway.until("nobody in the queue", |stats| stats.get("queue_depth") == 0).await;
    assert_eq!((stats.get("in_flight"), stats.get("completed")), (1, 0), "no slot has come free yet");
    assert_eq!(stats.get("forwarded"), 1);
    gateway.until("it to be counted", |stats| stats.get("client_left") == 1).await;

    service.release(2);
    assert_eq!(first.message().await.status(), 200);
    gateway.serves("/third").await;
    assert_eq!(service.targets(), ["/first", "/third"]);
    gateway.until_idle().await;
}

/// A2. A place in the queue is not kept for a client that has gone.
#[tokio::test]
async fn a_queued_get_leaves_when_its_client_does() {
    leaves_the_queue(async |wire| wire.send(get("/second")).await, drop).await;
}

/// A3. Nor if its body was not read, which is when hyper does not look.
#[tokio::test]
async fn a_queued_post_with_an_unread_body_leaves_when_its_client_does() {
    let begun = async |wire: &mut Wire| {
        wire.send(post("/second", 1024 * 1024)).await;
        wire.send([b'x'; 32 * 1024]).await;
    };
    leaves_the_queue(begun, drop).await;
}

/// A3. Nor if all of a mebibyte was sent before the close, which the kernel cannot show before somebody has read that.
#[tokio::test]
async fn a_queued_post_with_a_mebibyte_behind_it_leaves_when_its_client_does() {
    let whole = async |wire: &mut Wire| {
        wire.send(post("/second", 1024 * 1024)).await;
        wire.send(vec![b'x'; 1024 * 1024]).await;
    };
    leaves_the_queue(whole, drop).await;
}

/// What was read ahead of a body while it waited comes first, and nothing of it is lost or twice there.
#[tokio::test]
async fn a_body_that_waited_arrives_as_it_was_sent() {
    let service = Service::held().await;
    let (gateway, mut first) = one_slot_taken(&service).await;
    let body: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut second = connect(gateway.clients).await;
    second.send(post("/second", body.len())).await;
    second.send(&body[..700_000]).await;
    gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;
    service.release(2);
    second.send(&body[700_000..]).await;
    assert_eq!((first.message().await.status(), second.message().await.status()), (200, 200));
    let seen = service.seen();
    assert!(seen[1].body == body, "{} bytes arrived", seen[1].body.len());
    gateway.until_idle().await;
}

/// A3. Nor if the next request is in the pipe already.
#[tokio::test]
async fn a_queued_get_with_another_behind_it_leaves_when_its_client_does() {
    let both = async |wire: &mut Wire| wire.send(get("/second") + &get("/pipelined")).await;
    leaves_the_queue(both, drop).await;
}

/// A2. Over HTTP/2 a reset of the stream is enough; the connection goes on.
#[tokio::test]
async fn a_queued_stream_leaves_when_it_is_reset() {
    let service = Service::held().await;
    let (gateway, _first) = one_slot_taken(&service).await;
    let mut connection = http2::Connection::open(gateway.clients).await;
    let (answer, mut stream) = connection.send(http2::get("/second"), true).await;
    gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;
    stream.send_reset(h2::Reason::CANCEL);
    drop(answer);
    let stats = gateway.until("nobody in the queue", |stats| stats.get("queue_depth") == 0).await;
    assert_eq!((stats.get("in_flight"), stats.get("completed")), (1, 0));
    service.release(2);
    assert_eq!(connection.ask(http2::get("/third")).await.head.status(), 200);
    assert_eq!(service.targets(), ["/first", "/third"]);
}

/// Somebody leaves while the upstream works on its request. `cancels_work` says what becomes of that.
async fn leaves_in_flight(cancels_work: bool, over_http2: bool) {
    let script = Script::start().await;
    let upstream = format!("timeout = \"60s\"\ncancels_work = {cancels_work}");
    let gateway = Gateway::start(&Policy::before(script.address).limit(1).upstream(&upstream)).await;
    let mut upstream = if over_http2 {
        let mut connection = http2::Connection::open(gateway.clients).await;
        let (answer, mut stream) = connection.send(http2::get("/work"), true).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        upstream
    } else {
        let client = sent(gateway.clients, get("/work")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        drop(client);
        upstream
    };
    if cancels_work {
        upstream.closed().await;
    } else {
        let stats = gateway.until("an orphan", |stats| stats.get("orphans") == 1).await;
        assert_eq!(stats.get("in_flight"), 1);
        assert_eq!(ask(gateway.clients, get("/next")).await.reason(), "queue_full");
        assert!(upstream.at_hand().is_empty(), "the connection is left alone");
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").await;
    }
    let stats = gateway.until_idle().await;
    assert_eq!((stats.get("orphans"), stats.get("completed")), (0, 0));
}

/// A4. Work that can be stopped is: the connection is closed and the slot is free.
#[tokio::test]
async fn leaving_stops_work_that_can_be_stopped() {
    leaves_in_flight(true, false).await;
    leaves_in_flight(true, true).await;
}

/// A4. Work that cannot be stopped keeps its slot until it has ended.
#[tokio::test]
async fn leaving_does_not_free_the_slot_of_work_that_goes_on() {
    leaves_in_flight(false, false).await;
    leaves_in_flight(false, true).await;
}

/// An orphan whose upstream never answers is given up after `orphan_max`.
#[tokio::test]
async fn an_orphan_is_given_up_in_the_end() {
    let script = Script::start().await;
    let upstream = "timeout = \"50ms\"\norphan_max = \"100ms\"";
    let gateway = Gateway::start(&Policy::before(script.address).limit(1).upstream(upstream)).await;
    let answer = ask(gateway.clients, get("/never")).await;
    assert_eq!((answer.status(), answer.reason()), (504, "upstream_timeout".into()));
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream.closed().await;
    assert_eq!(gateway.until_idle().await.get("orphans"), 0);
}

/// A7, G3. Nobody listens.
#[tokio::test]
async fn a_refused_connection_is_a_502_and_gives_the_slot_back() {
    let gateway = Gateway::start(&Policy::before(nobody().await).limit(1)).await;
    for _ in 0..3 {
        let answer = ask(gateway.clients, get("/")).await;
        assert_eq!((answer.status(), answer.reason()), (502, "upstream_connect".into()));
    }
    gateway.until_idle().await;
}

/// A7, G3. The connection is reset, or closed, before there is an answer. What was sent may have been done, so it is
/// not sent again.
#[tokio::test]
async fn a_connection_lost_before_the_head_is_a_502_and_gives_the_slot_back() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).limit(1)).await;
    for lose in [Wire::reset, |wire| drop(wire)] {
        let mut client = sent(gateway.clients, get("/")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        lose(upstream);
        let answer = client.message().await;
        assert_eq!((answer.status(), answer.reason()), (502, "upstream_reset".into()));
        assert_eq!(gateway.until_idle().await.get("orphans"), 0);
    }
}

/// A7, G1. An answer that breaks off must not look like a whole one.
#[tokio::test]
async fn an_answer_that_breaks_off_is_cut_off_for_the_client_too() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address).limit(1)).await;
    let known = ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "half");
    let chunked = ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "4\r\nhalf\r\n");
    for (begun, relayed) in [known, chunked] {
        for lose in [Wire::reset, |wire| drop(wire)] {
            let mut client = sent(gateway.clients, get("/")).await;
            let mut upstream = script.accept().await;
            upstream.message().await;
            upstream.send(begun).await;
            assert_eq!(client.head().await.status(), 200);
            assert_eq!(client.exactly(relayed.len()).await, relayed.as_bytes());
            lose(upstream);
            client.closed().await;
            gateway.until_idle().await;
        }
    }
    assert_eq!(gateway.stats().await.get("completed"), 0);

    let mut connection = http2::Connection::open(gateway.clients).await;
    let (answer, _stream) = connection.send(http2::get("/"), true).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream.send(chunked.0).await;
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), "half");
    drop(upstream);
    let error = body.data().await.expect("not the end of a whole answer").unwrap_err();
    assert!(error.is_reset(), "{error}");
    gateway.until_idle().await;
}

/// A request whose answer has begun, and another that waits for its slot.
async fn streaming(upstream: &str) -> (Script, Gateway, Wire, Wire, Wire) {
    let script = Script::start().await;
    let policy = Policy::before(script.address).upstream(upstream).limit(1).queue(8, "10s");
    let gateway = Gateway::start(&policy).await;
    let mut first = sent(gateway.clients, get("/first")).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    first.head().await;
    assert_eq!(first.chunk().await, b"hello");
    let second = sent(gateway.clients, get("/second")).await;
    let stats = gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;
    assert_eq!(stats.get("in_flight"), 1);
    (script, gateway, upstream, first, second)
}

/// A8. A slot is taken until the body has ended, not until the head has come.
#[tokio::test]
async fn a_slot_is_held_until_the_body_has_ended() {
    let (_script, gateway, mut upstream, mut first, mut second) = streaming("").await;
    upstream.send("5\r\nworld\r\n").await;
    assert_eq!(first.chunk().await, b"world");
    let stats = gateway.stats().await;
    assert_eq!((stats.get("in_flight"), stats.get("queue_depth"), stats.get("forwarded")), (1, 1, 1));
    assert!(upstream.at_hand().is_empty());

    upstream.send("0\r\n\r\n").await;
    assert!(first.chunk().await.is_empty());
    assert_eq!(upstream.head().await.target(), "/second");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(second.head().await.status(), 204);
    gateway.until_idle().await;
}

/// A8. It is free when the upstream breaks off.
#[tokio::test]
async fn a_slot_is_free_when_the_body_breaks_off() {
    let (script, gateway, upstream, mut first, mut second) = streaming("").await;
    upstream.reset();
    first.closed().await;
    let mut upstream = script.accept().await;
    assert_eq!(upstream.head().await.target(), "/second");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(second.head().await.status(), 204);
    gateway.until_idle().await;
}

/// A8. It is free when the client drops the body, at once if that stops the work, else when the work has ended.
#[tokio::test]
async fn a_slot_is_free_when_the_client_drops_the_body() {
    let (script, gateway, mut upstream, first, mut second) = streaming("cancels_work = true").await;
    drop(first);
    assert_eq!(upstream.closed().await, End::Closed);
    let mut upstream = script.accept().await;
    assert_eq!(upstream.head().await.target(), "/second");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(second.head().await.status(), 204);
    gateway.until_idle().await;

    let (_script, gateway, mut upstream, first, mut second) = streaming("").await;
    drop(first);
    let stats = gateway.until("an orphan", |stats| stats.get("orphans") == 1).await;
    assert_eq!((stats.get("in_flight"), stats.get("queue_depth")), (1, 1));
    upstream.send("0\r\n\r\n").await;
    assert_eq!(upstream.head().await.target(), "/second");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(second.head().await.status(), 204);
    gateway.until_idle().await;
}

/// A9. What one control refuses holds nothing of another.
#[tokio::test]
async fn a_refusal_by_one_control_leaks_nothing_of_another() {
    let service = Service::held().await;
    let rest = "[[route]]\npath = \"/narrow\"\nconcurrency = 1\n[[route]]\npath = \"/health\"\nexempt = true\n\
                [[route]]\npath = \"/*\"\n\
                [[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 7";
    let gateway = Gateway::start(&Policy::before(service.address).limit(2).rest(rest)).await;
    let mut narrow = sent(gateway.clients, get("/narrow")).await;
    service.until_asked(1).await;
    for _ in 0..2 {
        assert_eq!(ask(gateway.clients, get("/narrow")).await.reason(), "route_limit");
    }
    let mut wide = sent(gateway.clients, get("/wide")).await;
    service.until_asked(2).await;
    for _ in 0..2 {
        assert_eq!(ask(gateway.clients, get("/wide")).await.reason(), "queue_full");
    }
    let stats = gateway.stats().await;
    assert_eq!((stats.get("in_flight"), stats.get("max_in_flight"), stats.get("queue_depth")), (2, 2, 0));

    service.release(3);
    assert_eq!((narrow.message().await.status(), wide.message().await.status()), (200, 200));
    gateway.until_idle().await;
    // Route and upstream have room again, and the bucket has one left.
    gateway.serves("/narrow").await;
    for _ in 0..3 {
        assert_eq!(ask(gateway.clients, get("/narrow")).await.reason(), "rate_limited");
    }
    service.release(1);
    gateway.serves("/health").await;
    let stats = gateway.until_idle().await;
    assert_eq!((stats.rejected("route_limit"), stats.rejected("queue_full")), (2, 2));
    assert_eq!((stats.get("rate_limited"), stats.get("completed")), (3, 4));
}

/// A route's bulkhead may be meant as a share that callers are over, and then says so.
#[tokio::test]
async fn a_bulkhead_may_be_a_quota() {
    let service = Service::held().await;
    let rest = "[[route]]\npath = \"/*\"\nconcurrency = 1\nconcurrency_status = 429";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
    let mut first = sent(gateway.clients, get("/")).await;
    service.until_asked(1).await;
    let refused = ask(gateway.clients, get("/")).await;
    assert_eq!((refused.status(), refused.reason().as_str()), (429, "route_limit"));
    assert!(refused.head.field("retry-after").is_some(), "{refused:?}");
    let grpc = "GET / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n";
    assert_eq!(sent(gateway.clients, grpc).await.head().await.field("grpc-status"), Some("8"));
    service.release(1);
    assert_eq!(first.message().await.status(), 200);
}

/// A14 (haproxy#3290). On an idle server nobody waits for a wake-up that does not come: twenty rounds of 200 requests,
/// through 16 slots.
#[tokio::test]
async fn nobody_is_forgotten_in_the_queue() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let policy = Policy::before(service.address).workers(2).limit(16).queue(200, "10s");
    let gateway = Gateway::start(&policy).await;
    let mut wires = Vec::new();
    for _ in 0..200 {
        wires.push(connect(gateway.clients).await);
    }
    for round in 0..20 {
        for wire in &mut wires {
            wire.send(get("/")).await;
        }
        for wire in &mut wires {
            let answer = wire.message().await;
            assert_eq!(answer.status(), 200, "round {round}: {}", answer.text());
        }
        gateway.until_idle().await;
    }
    let stats = gateway.stats().await;
    assert_eq!((stats.get("completed"), stats.get("shed"), stats.get("queue_timed_out")), (4000, 0, 0));
    assert!(stats.get("max_in_flight") <= 16);
}

/// A15 (haproxy#2404). A full queue is told in full, and the connection is of use afterwards.
#[tokio::test]
async fn a_full_queue_is_a_full_answer() {
    let service = Service::held().await;
    let gateway = Gateway::start(&Policy::before(service.address).limit(1)).await;
    let mut first = sent(gateway.clients, get("/")).await;
    service.until_asked(1).await;
    let mut second = connect(gateway.clients).await;
    let answer = second.get("/").await;
    assert_eq!(answer.head.start, "HTTP/1.1 503 Service Unavailable");
    let field = |name| answer.head.field(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    assert_eq!(field("content-type"), "application/problem+json");
    assert_eq!(field("content-length"), answer.body.len().to_string());
    assert_eq!(field("proxy-status"), "tidegate; error=connection_limit_reached; details=\"queue_full\"");
    assert!(field("retry-after").parse::<u64>().unwrap() >= 1);
    assert!(field("retry-after-ms").parse::<u64>().unwrap() >= 1);
    assert_eq!(answer.head.field("connection"), None);
    assert_eq!((answer.json()["status"].as_u64(), answer.reason()), (Some(503), "queue_full".into()));

    service.release(2);
    assert_eq!(first.message().await.status(), 200);
    gateway.until_idle().await;
    assert_eq!(second.get("/").await.status(), 200);
}
