//! Where one message ends and the next begins: what a gateway that answers early, and before others, must never get
//! wrong. The service before which these tests stand sees every byte.

use crate::client::{ask, connect, get, post, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::{End, Message, Wire};
use crate::service::{Script, Service};

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: shop.example\r\n\r\n";

/// A gateway that refuses everything but the one request that has its slot.
async fn full(service: &Service) -> (Gateway, Wire) {
    let gateway = Gateway::start(&Policy::before(service.address).limit(1)).await;
    let first = sent(gateway.clients, get("/first")).await;
    service.until_asked(1).await;
    (gateway, first)
}

/// D5 (CVE-2025-4366). The body of a request that was refused is never taken for the next request: not if it came
/// together with its head, and the connection goes on;
#[tokio::test]
async fn a_refused_requests_body_is_not_a_request() {
    let service = Service::held().await;
    let (gateway, mut first) = full(&service).await;
    let mut client = connect(gateway.clients).await;
    let request = post("/refused", SMUGGLED.len()) + SMUGGLED;
    client.send(&request).await;
    assert_eq!(client.message().await.reason(), "queue_full");
    // Whatever was read of the body, the next answer is to the next request.
    service.release(5);
    assert_eq!(first.message().await.status(), 200);
    gateway.until_idle().await;
    let answer = client.get("/next").await;
    assert_eq!((answer.status(), answer.text()), (200, "done\n".into()));

    // All in one piece: three requests, three answers, and then nothing.
    client
        .send(request + &get("/last") + "GET /close HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await;
    for _ in 0..3 {
        assert_eq!(client.message().await.status(), 200);
    }
    client.closed().await;
    assert_eq!(service.targets(), ["/first", "/next", "/refused", "/last", "/close"]);
}

/// D5. nor if it comes after the refusal, when the connection is closed instead;
#[tokio::test]
async fn a_refused_requests_late_body_is_not_a_request() {
    let service = Service::held().await;
    let (gateway, mut first) = full(&service).await;
    for late in [SMUGGLED.repeat(2), SMUGGLED.repeat(2000)] {
        let mut client = sent(gateway.clients, post("/refused", SMUGGLED.len())).await;
        let answer = client.message().await;
        assert_eq!((answer.reason(), answer.head.field("connection")), ("queue_full".into(), Some("close")));
        // It may be gone by now, and that is right too.
        let _ = client.try_send(late).await;
        client.closed().await;
    }
    service.release(2);
    assert_eq!(first.message().await.status(), 200);
    gateway.until_idle().await;
    gateway.serves("/last").await;
    assert_eq!(service.targets(), ["/first", "/last"]);
}

/// D5. nor if it is chunked, nor if a rate limit refused it.
#[tokio::test]
async fn a_rate_limited_requests_body_is_not_a_request() {
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 1";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rule)).await;
    gateway.serves("/first").await;
    let known = post("/refused", SMUGGLED.len());
    let chunked = "POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let in_chunks = format!("{:x}\r\n{SMUGGLED}\r\n0\r\n\r\n", SMUGGLED.len());
    for (head, body) in [(known.as_str(), SMUGGLED), (chunked, in_chunks.as_str())] {
        let mut client = sent(gateway.clients, format!("{head}{body}")).await;
        assert_eq!(client.message().await.status(), 429);
        client.send("GET /close HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert_eq!(client.message().await.status(), 429);
        client.closed().await;
    }
    assert_eq!(service.targets(), ["/first"]);
}

/// D6 (CVE-2024-24791). Who waits to be told to go on is told the final answer instead, and the connection is not
/// used again, whether or not the body comes after all.
#[tokio::test]
async fn an_expectation_is_met_with_the_refusal() {
    let service = Service::held().await;
    let (gateway, mut first) = full(&service).await;
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        SMUGGLED.len()
    );
    for body in ["", SMUGGLED] {
        let mut client = sent(gateway.clients, &head).await;
        let answer = client.message().await;
        assert_eq!((answer.status(), answer.reason()), (503, "queue_full".into()), "no 100 before it");
        assert_eq!(answer.head.field("connection"), Some("close"));
        let _ = client.try_send(body).await;
        client.closed().await;
    }
    service.release(2);
    assert_eq!(first.message().await.status(), 200);
    gateway.until_idle().await;

    // And who is let in is told to go on.
    let mut client = sent(gateway.clients, &head).await;
    assert_eq!(client.head().await.status(), 100);
    client.send(SMUGGLED).await;
    assert_eq!(client.message().await.status(), 200);
    let seen = service.seen();
    assert_eq!((seen.len(), seen[1].text()), (2, SMUGGLED.into()));
    assert_eq!(seen[1].head.field("expect"), None, "the expectation has been met here");
}

/// A small body that came with its head is read, so that its client can go on with the connection.
#[tokio::test]
async fn a_refused_small_post_keeps_its_connection() {
    let service = Service::held().await;
    let (gateway, mut first) = full(&service).await;
    let mut client = connect(gateway.clients).await;
    for _ in 0..5 {
        client.send(post("/", 100) + &"x".repeat(100)).await;
        let answer = client.message().await;
        assert_eq!((answer.reason(), answer.head.field("connection")), ("queue_full".into(), None));
    }
    service.release(2);
    assert_eq!(first.message().await.status(), 200);
    gateway.until_idle().await;
    client.send(post("/", 100) + &"x".repeat(100)).await;
    assert_eq!(client.message().await.status(), 200);
}

/// D5 (hyper#3078, #2384). A client that is still sending its large body sees the refusal and then an orderly end:
/// what it sends is read on for a while, because the kernel answers what nobody reads with a reset, which on some
/// systems takes the answer away with it.
#[tokio::test]
async fn a_refused_large_post_sees_its_refusal() {
    let service = Service::held().await;
    let (gateway, _first) = full(&service).await;
    let mut client = sent(gateway.clients, post("/", 1024 * 1024)).await;
    assert_eq!(client.message().await.reason(), "queue_full");
    assert_eq!(client.closed().await, End::Closed);
    for _ in 0..64 {
        client.send([b'x'; 8 * 1024]).await;
    }

    // Past the bound of reading on, it is told that nobody listens, but it has its answer all the same.
    let body = vec![b'x'; 4 * 1024 * 1024];
    let mut client = sent(gateway.clients, post("/", body.len())).await;
    let _ = client.try_send(&body).await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.reason()), (503, "queue_full".into()));
}

/// D7. An upstream that answers before it has read the request: its answer is relayed, and the connection, in which
/// the rest of the body would be taken for a request, is not used again.
#[tokio::test]
async fn an_early_answer_is_relayed_and_its_connection_is_not_reused() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, post("/upload", 1024 * 1024) + "begun").await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch").await;
    let answer = client.message().await;
    assert_eq!((answer.status(), answer.text()), (413, "much".into()));

    let mut second = sent(gateway.clients, get("/second")).await;
    let mut fresh = script.accept().await;
    assert_eq!(fresh.head().await.target(), "/second");
    fresh.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(second.head().await.status(), 204);
    drop(client);
    let (rest, _) = upstream.until_end().await;
    assert!(b"begun".starts_with(&rest[..rest.len().min(5)]), "{rest:?}");
    gateway.until_idle().await;
}

/// What is refused before anything of it reaches the upstream.
const MALFORMED: &[(&str, &str)] = &[
    ("no host", "GET / HTTP/1.1\r\n\r\n"),
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    ("a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    ("a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a control character in the target", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("above the root", "GET /../etc HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a broken escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a server's options", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a folded field", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    ("a space before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n"),
    ("a NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    ("a bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
    ("a length with a plus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx"),
    ("a length in hexadecimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx"),
    ("a length with a space", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\nx"),
    ("an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n"),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\nx"),
    ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
    ("too large a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\nx"),
    ("an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    (
        "chunked, but not last",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    ("a coding beneath", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    (
        "chunked in chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a coding of nothing", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \r\n\r\n0\r\n\r\n"),
    ("chunked in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
];

/// D1, D4, D9. A head that two readers could read in two ways is answered 400, or 501 for a coding that is not known
/// here, and the connection is closed.
#[tokio::test]
async fn an_ambiguous_head_reaches_nobody() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let mut wrong = Vec::new();
    for (what, request) in MALFORMED {
        let mut client = sent(gateway.clients, format!("{request}{SMUGGLED}")).await;
        let answer = client.message().await;
        let rest = client.what_follows(&answer).await;
        if !matches!(answer.status(), 400 | 501) || !rest.is_empty() || !service.seen().is_empty() {
            wrong.push((
                what,
                answer.status(),
                String::from_utf8_lossy(&rest).into_owned(),
                service.targets(),
            ));
            service.forget();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    gateway.serves("/").await;
}

/// D1. With both a length and chunks, the chunks count (RFC 9112 section 6.3), the upstream sees them alone, and the
/// connection is closed, so that nobody's other reading of it matters.
#[tokio::test]
async fn chunks_override_a_length_and_end_the_connection() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let (length, chunked) = ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n");
    for fields in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        service.forget();
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n1\r\nx\r\n0\r\n\r\n{SMUGGLED}");
        let mut client = sent(gateway.clients, request).await;
        assert_eq!(client.message().await.status(), 200);
        client.closed().await;
        let seen = service.seen();
        assert_eq!((seen.len(), seen[0].text(), seen[0].head.field("content-length")), (1, "x".into(), None));
    }
}

/// D9. What a client keeps to itself is not passed on.
#[tokio::test]
async fn a_fragment_goes_no_further() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    gateway.serves("/a?b#c").await;
    assert_eq!(service.targets(), ["/a?b"]);
}

/// D9. There is no tunnel here.
#[tokio::test]
async fn connect_is_not_done() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let mut client = sent(gateway.clients, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n").await;
    assert_eq!(client.message().await.status(), 501);
    client.send(SMUGGLED).await;
    client.closed().await;
    assert!(service.seen().is_empty());
}

/// What is no chunk.
const BAD_CHUNKS: &[(&str, &str)] = &[
    ("negative", "-1\r\nx\r\n0\r\n\r\n"),
    ("with a prefix", "0x1\r\nx\r\n0\r\n\r\n"),
    ("with a plus", "+1\r\nx\r\n0\r\n\r\n"),
    ("with a space before", " 1\r\nx\r\n0\r\n\r\n"),
    ("with an underscore", "1_0\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n"),
    ("too large", "fffffffffffffffff\r\nx\r\n0\r\n\r\n"),
    ("ended by a bare LF", "1\nx\r\n0\r\n\r\n"),
    ("with data that is too long", "1\r\nxy\r\n0\r\n\r\n"),
    ("with a bare LF in an extension", "1;a\nb\r\nx\r\n0\r\n\r\n"),
    ("last, ended by a bare LF", "1\r\nx\r\n0\n\r\n"),
];

/// D2. A body that is chunked wrongly is never a whole one to the upstream, and what follows it is not a request.
#[tokio::test]
async fn a_broken_chunk_ends_both_connections() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut wrong = Vec::new();
    for (what, chunks) in BAD_CHUNKS {
        let mut client = sent(gateway.clients, format!("{head}{chunks}{SMUGGLED}")).await;
        let mut upstream = script.accept().await;
        let (received, _) = upstream.rest_of_request().await;
        let answer = client.try_message().await.map(|answer| answer.status());
        let (rest, _) = client.until_end().await;
        if received.ends_with(b"0\r\n\r\n") || answer.is_ok_and(|status| status < 400) || !rest.is_empty() {
            wrong.push((what, String::from_utf8_lossy(&received).into_owned(), answer));
        }
        drop((client, upstream));
        gateway.until_idle().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// D12. An answer whose end cannot be told is not passed on, and its connection is not used again.
#[tokio::test]
async fn an_ambiguous_answer_is_a_502() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/9.1 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
    ] {
        let mut client = sent(gateway.clients, get("/")).await;
        let mut upstream = script.accept().await;
        upstream.head().await;
        upstream.send(answer).await;
        let got = client.message().await;
        assert_eq!((got.status(), got.reason()), (502, "upstream_reset".into()), "{answer:?}");
        upstream.closed().await;
    }
    gateway.until_idle().await;
}

/// C10. However a path is spelled, the rule for it counts, and the upstream is asked for what was matched.
#[tokio::test]
async fn a_path_has_one_spelling() {
    let service = Service::prompt().await;
    let rest = "[[route]]\npath = \"/*\"\n\
                [[rate_limit]]\nname = \"api\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 1\npaths = [\"/api/*\"]";
    let spellings = [
        "/api/x",
        "//api/x",
        "/./api/x",
        "/%61pi/x",
        "/%61%70%69/x",
        "/y/../api/x",
        "/y/%2e%2e/api/x",
        "/%2E/api/x",
        "/api//x",
        "/api/./x",
        "http://elsewhere.example/api/x",
    ];
    for spelling in spellings {
        let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
        service.forget();
        gateway.serves(spelling).await;
        assert_eq!(service.targets(), ["/api/x"], "{spelling}");
        for again in spellings.into_iter().chain(["/api;v=1/x", "/api"]) {
            assert_eq!(ask(gateway.clients, get(again)).await.status(), 429, "{spelling}, then {again}");
        }
        // Another path, which is not meant.
        gateway.serves("/API/x").await;
        gateway.serves("/apix").await;
        if spelling != spellings[0] {
            continue;
        }
        gateway.serves("/a%2fb%20c?q=/../%61").await;
        assert_eq!(service.targets().last().unwrap(), "/a%2Fb%20c?q=/../%61");
        // What would be the path of the rule for whoever drops the parameters first.
        for nameless in ["/x/..;/api/x", "/;/api/x", "/api/;/x"] {
            assert_eq!(ask(gateway.clients, get(nameless)).await.status(), 400, "{nameless}");
        }
    }
}

/// An answer's chunks count, whatever length it states beside them; nothing of it is cut off.
#[tokio::test]
async fn chunks_of_an_answer_override_its_length() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
    upstream.send(format!("{answer}9\r\nnine char\r\n0\r\n\r\n")).await;
    assert_eq!(client.message().await.body, b"nine char");
}

/// What lies beneath the chunks would reach the client without its name.
#[tokio::test]
async fn an_answer_with_another_transfer_coding_is_a_502() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let mut client = sent(gateway.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n").await;
    let got = client.message().await;
    assert_eq!((got.status(), got.reason()), (502, "upstream_reset".into()));
    gateway.until_idle().await;
}

/// A GET may have a body, of a length that nobody has stated; it is sent on with it.
#[tokio::test]
async fn a_get_keeps_its_body() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let request =
        "GET /_search HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nquery\r\n0\r\n\r\n";
    assert_eq!(ask(gateway.clients, request).await.status(), 200);
    assert_eq!(service.seen()[0].body, b"query");
}

/// D7. Whoever is answered in the middle of a large upload sees the answer, not a reset that overtakes it.
#[tokio::test]
async fn an_early_answer_to_a_large_upload_is_seen() {
    let script = Script::start().await;
    let gateway = Gateway::start(&Policy::before(script.address)).await;
    let body = vec![b'x'; 1024 * 1024];
    let mut client = sent(gateway.clients, post("/upload", 8 * 1024 * 1024)).await;
    let mut upstream = script.accept().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    // It goes on sending for a while, as clients do, whether or not anybody reads.
    let _ = client.try_send(&body).await;
    assert_eq!(client.message().await.status(), 413);
    gateway.until_idle().await;
}

impl Wire {
    /// What comes after a message: nothing, if it says that the connection ends, else the next answer.
    async fn what_follows(&mut self, last: &Message) -> Vec<u8> {
        if last.head.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return self.until_end().await.0;
        }
        self.message().await.body
    }

    /// The bytes of a chunked request, up to its end or that of its connection.
    async fn rest_of_request(&mut self) -> (Vec<u8>, bool) {
        let mut received = Vec::new();
        while !received.ends_with(b"0\r\n\r\n") {
            match self.some().await {
                Some(bytes) => received.extend(bytes),
                None => return (received, false),
            }
        }
        (received, true)
    }
}
