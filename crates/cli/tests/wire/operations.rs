//! What operators see and do: probes, numbers and the log under load, draining, and what gRPC clients are told.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpStream;

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy, fresh_path};
use crate::http2;
use crate::message::Wire;
use crate::service::Service;
use crate::wait::{Stopwatch, until};

/// A request in flight, another waiting, and a connection without one.
async fn busy(service: &Service, server: &str) -> (Gateway, [Wire; 3]) {
    let policy = Policy::before(service.address).limit(1).queue(8, "10s").server(server);
    let gateway = Gateway::start(&policy).await;
    let in_flight = sent(gateway.clients, get("/in-flight")).await;
    service.until_asked(1).await;
    let waiting = sent(gateway.clients, get("/waiting")).await;
    let idle = connect(gateway.clients).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    (gateway, [in_flight, waiting, idle])
}

async fn until_draining(gateway: &Gateway) {
    until("readiness to be red", async || {
        let ready = gateway.admin("/readyz").await;
        (ready.status() == 503).then(|| assert_eq!(ready.text(), "draining\n"))
    })
    .await;
}

/// K1. After SIGTERM it is not ready, takes no new connection, and lets what runs and what waits be answered; then it
/// ends in good order.
#[tokio::test]
async fn sigterm_drains() {
    let service = Service::held().await;
    let (mut gateway, [mut in_flight, mut waiting, mut idle]) =
        busy(&service, "drain = \"60s\"\nheader_timeout = \"60s\"").await;
    assert_eq!(gateway.admin("/readyz").await.status(), 200);
    gateway.process.signal("TERM");
    until_draining(&gateway).await;
    until("new connections to be refused", async || {
        TcpStream::connect(gateway.clients).await.is_err().then_some(())
    })
    .await;
    idle.closed().await;
    assert_eq!(gateway.admin("/livez").await.status(), 200, "it is alive all the same");
    let stats = gateway.stats().await;
    assert_eq!((stats.get("in_flight"), stats.get("queue_depth")), (1, 1));

    service.release(2);
    for wire in [&mut in_flight, &mut waiting] {
        let answer = wire.message().await;
        assert_eq!((answer.status(), answer.head.field("connection")), (200, Some("close")));
        wire.closed().await;
    }
    assert_eq!(gateway.process.ended().await.code(), Some(0));
}

/// K1. What has not ended when the time for it is up is cut off.
#[tokio::test]
async fn draining_has_an_end() {
    let service = Service::held().await;
    let (mut gateway, [mut in_flight, mut waiting, _]) = busy(&service, "drain = \"1s\"").await;
    let watch = Stopwatch::start();
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.ended().await.code(), Some(0));
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(6)).contains(&watch.elapsed()),
        "{:?}",
        watch.elapsed()
    );
    in_flight.closed().await;
    waiting.closed().await;
}

/// K2. A second SIGTERM ends it at once, and says so by its exit code.
#[tokio::test]
async fn a_second_sigterm_ends_at_once() {
    let service = Service::held().await;
    let (mut gateway, [mut in_flight, ..]) = busy(&service, "drain = \"1h\"").await;
    gateway.process.signal("TERM");
    until_draining(&gateway).await;
    gateway.process.signal("INT");
    assert_eq!(gateway.process.ended().await.code(), Some(1));
    in_flight.closed().await;
}

/// K8. The operators' side answers while the clients' side is full.
#[tokio::test]
async fn the_admin_side_answers_under_load() {
    let service = Service::held().await;
    let policy = Policy::before(service.address).queue(100, "10s").server("max_connections = 150");
    let gateway = Gateway::start(&policy).await;
    let mut clients = Vec::new();
    for _ in 0..150 {
        clients.push(sent(gateway.clients, get("/")).await);
    }
    let stats = gateway.until("all decided", |stats| stats.get("shed") == 46).await;
    assert_eq!((stats.get("in_flight"), stats.get("queue_depth")), (4, 100));
    for (target, status) in
        [("/livez", 200), ("/readyz", 200), ("/metrics", 200), ("/", 200), ("/nothing", 404)]
    {
        assert_eq!(gateway.admin(target).await.status(), status, "{target}");
    }
    let refused = "tidegate_rejected_total{route=\"/*\",priority=\"default\",reason=\"queue_full\"}";
    assert_eq!(gateway.metric(refused).await, 46.0);
    assert_eq!(
        gateway.metric("tidegate_queue_depth{upstream=\"service\",priority=\"default\"}").await,
        100.0
    );
    let post = ask(gateway.admin, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!((post.status(), post.head.field("allow")), (405, Some("GET, HEAD")));
}

/// H6 (envoy#4660). gRPC clients are told in their own way: a head that is the whole answer, with a status and, if it
/// makes sense to come back, when.
#[tokio::test]
async fn grpc_clients_are_told_in_their_way() {
    let service = Service::held().await;
    let rest = "[[rate_limit]]\nname = \"limited\"\nkey = \"global\"\nrate = \"1/day\"\nburst = 1\n\
                paths = [\"/limited.Service/*\"]";
    let policy = Policy::before(service.address).limit(1).upstream("timeout = \"200ms\"").rest(rest);
    let gateway = Gateway::start(&policy).await;
    let mut connection = http2::Connection::open(gateway.clients).await;
    let call = |path: &str| {
        let request = http::Request::post(format!("http://a{path}"));
        request.header("content-type", "application/grpc+proto").header("te", "trailers").body(()).unwrap()
    };
    // The slot is taken by a call that times out after 200 ms, and stays taken.
    let (first, _stream) = connection.send(call("/limited.Service/Call"), true).await;
    service.until_asked(1).await;
    for (path, status, message, pushback) in [
        ("/a.Service/Call", "14", "The service is at capacity and the queue is full", true),
        ("/limited.Service/Call", "8", "Over the rate limit", true),
    ] {
        let (answer, _stream) = connection.send(call(path), false).await;
        let answer = http2::whole(answer).await;
        let field = |name: &str| answer.head.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!((answer.head.status().as_u16(), answer.head_only), (200, true), "{answer:?}");
        assert_eq!((field("grpc-status"), field("grpc-message")), (Some(status), Some(message)));
        assert_eq!(field("content-type"), Some("application/grpc"));
        assert_eq!(field("grpc-retry-pushback-ms").is_some(), pushback);
    }
    let first = http2::whole(first).await;
    assert_eq!((first.head.headers()["grpc-status"].as_bytes(), first.head_only), (&b"4"[..], true));
    service.release(1);
    gateway.until_idle().await;
}

async fn lines(file: &Path, count: usize) -> Vec<Value> {
    until("lines in the log", async || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        (text.ends_with('\n') && text.lines().count() >= count)
            .then(|| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    })
    .await
}

fn logging(service: &Service, which: &str, file: &Path) -> Policy {
    let server = format!("access_log = \"{which}\"\naccess_log_file = \"{}\"", file.display());
    Policy::before(service.address).limit(1).server(&server)
}

/// Every request has one line, with how it ended and what it waited for.
#[tokio::test]
async fn the_log_tells_how_each_request_ended() {
    let (service, file) = (Service::held().await, fresh_path("log"));
    let policy = logging(&service, "all", &file).queue(1, "10s");
    let gateway = Gateway::start(&policy).await;
    let mut first = sent(gateway.clients, get("/first?a=b")).await;
    service.until_asked(1).await;
    let mut second = sent(gateway.clients, get("/second")).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    assert_eq!(ask(gateway.clients, get("/third")).await.reason(), "queue_full");
    service.release(2);
    first.message().await;
    second.message().await;
    let lines = lines(&file, 3).await;
    let line = |target: &str| {
        lines.iter().find(|line| line["target"] == target).unwrap_or_else(|| panic!("{lines:?}"))
    };
    let (first, second, third) = (line("/first?a=b"), line("/second"), line("/third"));
    assert_eq!((&first["status"], &first["reason"], &first["bytes"]), (&200.into(), &"".into(), &5.into()));
    assert_eq!((&first["queue_ms"], &first["client"]), (&Value::Null, &"127.0.0.1".into()));
    assert_eq!(
        (&first["route"], &first["upstream"], &first["method"]),
        (&"/*".into(), &"service".into(), &"GET".into())
    );
    assert!(second["queue_ms"].as_f64().unwrap() > 0.0 && second["upstream_ms"].as_f64().unwrap() > 0.0);
    assert!(second["total_ms"].as_f64() >= second["queue_ms"].as_f64());
    assert_eq!(
        (&third["status"], &third["reason"], &third["flag"]),
        (&503.into(), &"queue_full".into(), &"UO".into())
    );
    assert_eq!(lines.len(), 3);
    std::fs::remove_file(file).unwrap();
}

/// Of a client that stands in the queue and leaves, the time that it stood there is counted and logged.
#[tokio::test]
async fn the_wait_of_a_client_that_leaves_is_counted() {
    let (service, file) = (Service::held().await, fresh_path("log"));
    let gateway = Gateway::start(&logging(&service, "refused", &file).queue(8, "10s")).await;
    let mut first = sent(gateway.clients, get("/first")).await;
    service.until_asked(1).await;
    let second = sent(gateway.clients, get("/second")).await;
    gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;
    drop(second);
    let line = lines(&file, 1).await.remove(0);
    assert_eq!((&line["target"], &line["reason"]), (&"/second".into(), &"client_left".into()));
    assert!(line["queue_ms"].as_f64().is_some_and(|wait| wait > 0.0), "{line}");
    assert_eq!(gateway.metric("tidegate_queue_wait_seconds_count{upstream=\"service\"}").await, 1.0);
    service.release(1);
    assert_eq!(first.message().await.status(), 200);
    std::fs::remove_file(file).unwrap();
}

/// Whoever is over a rate limit can be told which one, out of several.
#[tokio::test]
async fn the_log_names_the_rate_limit() {
    let (service, file) = (Service::prompt().await, fresh_path("log"));
    let limit = |name: &str, burst: u32| {
        format!("[[rate_limit]]\nname = \"{name}\"\nkey = \"global\"\nrate = \"1/h\"\nburst = {burst}\n")
    };
    let policy = logging(&service, "refused", &file).rest(&(limit("wide", 9) + &limit("narrow", 1)));
    let gateway = Gateway::start(&policy).await;
    gateway.serves("/").await;
    assert_eq!(ask(gateway.clients, get("/")).await.status(), 429);
    let line = lines(&file, 1).await.remove(0);
    assert_eq!((&line["reason"], &line["rate_limit"]), (&"rate_limited".into(), &"narrow".into()));
    std::fs::remove_file(file).unwrap();
}

/// A log that was renamed goes on under its own name after SIGHUP, and no line is lost between the two.
#[tokio::test]
async fn the_log_is_rotated_by_a_reload() {
    let (service, file) = (Service::prompt().await, fresh_path("log"));
    let policy = logging(&service, "all", &file);
    let gateway = Gateway::start(&policy).await;
    gateway.serves("/before").await;
    assert_eq!(lines(&file, 1).await[0]["target"], "/before");
    let renamed = fresh_path("log");
    std::fs::rename(&file, &renamed).unwrap();
    gateway.serves("/between").await;
    gateway.reload(&policy).await;
    gateway.serves("/after").await;
    let (before, after) = (lines(&renamed, 2).await, lines(&file, 1).await);
    assert_eq!((before.len(), &before[1]["target"]), (2, &"/between".into()));
    assert_eq!((after.len(), &after[0]["target"]), (1, &"/after".into()));
    for file in [file, renamed] {
        std::fs::remove_file(file).unwrap();
    }
}

/// A flood of refusals is not a flood of lines: a hundred a second, and a count of the others.
#[tokio::test]
async fn the_log_of_refusals_is_bounded() {
    let (service, file) = (Service::held().await, fresh_path("log"));
    let gateway = Gateway::start(&logging(&service, "refused", &file)).await;
    let mut served = sent(gateway.clients, get("/served")).await;
    service.until_asked(1).await;
    let watch = Stopwatch::start();
    let mut wire = connect(gateway.clients).await;
    for _ in 0..1000 {
        assert_eq!(wire.get("/refused").await.reason(), "queue_full");
    }
    // The seconds of its clock that this may have touched.
    let most = 100 * (watch.elapsed().as_secs() as usize + 2);
    service.release(1);
    served.message().await;
    let skipped = gateway.metric("tidegate_log_lines_skipped_total").await as usize;
    let lines = lines(&file, 1000 - skipped).await;
    assert!((100..=most).contains(&lines.len()), "{} of at most {most}", lines.len());
    assert_eq!(lines.len() + skipped, 1000);
    assert!(lines.iter().all(|line| line["target"] == "/refused" && line["flag"] == "UO"));
    std::fs::remove_file(file).unwrap();
}

/// Off is off: there is not a line.
#[tokio::test]
async fn no_log_is_no_log() {
    let (service, file) = (Service::prompt().await, fresh_path("log"));
    let mut gateway = Gateway::start(&logging(&service, "off", &file)).await;
    gateway.serves("/").await;
    ask(gateway.clients, get("/%zz")).await;
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.ended().await.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), "");
    let _ = std::fs::remove_file(file);
}
