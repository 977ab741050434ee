//! `tidegate load`: what it sends, what it counts of services that answer in every way there is, and what it says of
//! itself.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::gateway::{Gateway, Lab, Policy, TIDEGATE, fresh_path};
use crate::message::Wire;
use crate::ran::{File, Ran, run};
use crate::service::{Script, Service, nobody};
use crate::wait::{Stopwatch, turn};

/// Runs the command beside the services of the test, which share its thread.
async fn load(arguments: &[&str]) -> Ran {
    let arguments: Vec<String> = ["load"].iter().chain(arguments).map(|it| (*it).to_owned()).collect();
    let ran = spawn_blocking(move || run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    ran.await.unwrap()
}

/// The report of a run that prints JSON.
fn report(ran: &Ran) -> Value {
    let whole: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    whole["reports"][0].clone()
}

async fn report_of(to: SocketAddr, arguments: &[&str]) -> Value {
    let url = format!("http://{to}/work");
    let ran = load(&[&[url.as_str(), "--json"], arguments].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    report(&ran)
}

fn count(report: &Value, at: &str) -> u64 {
    report.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {at} in {report:#}"))
}

fn millis(report: &Value, at: &str) -> f64 {
    report.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {at} in {report:#}"))
}

/// A service that sends these bytes for each request, and closes the connection after that if it is to.
async fn sends(answer: &'static str, close: bool) -> SocketAddr {
    let script = Script::start().await;
    let address = script.address;
    tokio::spawn(async move {
        loop {
            let wire = script.accept().await;
            tokio::spawn(answer_all(wire, answer, close));
        }
    });
    address
}

async fn answer_all(mut wire: Wire, answer: &'static str, close: bool) {
    while wire.readable().await && wire.try_message().await.is_ok() {
        if wire.try_send(answer).await.is_err() || close {
            return;
        }
    }
}

/// On a single connection, a service that stands still for a second keeps a hundred requests waiting, each shorter than
/// the one before. Whoever counts from the sending sees one slow answer in three hundred, and none at the 99th percentile
/// (coordinated omission).
#[tokio::test]
async fn a_stall_is_not_hidden_by_waiting_for_it() {
    let _turn = turn().await;
    let lab = Lab::start(&[]).await;
    let scenario = File::with(
        r#"story = "A stall."
        duration = "3s"
        [[service]]
        workers = 1
        time = "1ms"
        [[clients]]
        name = "steady"
        rate = "100/s"
        spacing = "even"
        path = "/work?ms=0"
        [[clients]]
        name = "the stall"
        burst = [{ at = "1s", count = 1 }]
        path = "/work?ms=1000""#,
    );
    let target = format!("http://{}", lab.address);
    let ran = load(&[
        scenario.path(),
        "--target",
        &target,
        "--connections",
        "1",
        "--json",
        "--threshold",
        "lag<100ms",
        "--threshold",
        "goodput>=100%",
    ])
    .await;
    assert_eq!(ran.code, 99, "{ran:?}");
    assert_eq!(ran.err, "tidegate: a threshold is missed\n");
    let report = report(&ran);
    assert_eq!((count(&report, "/offered"), count(&report, "/goodput")), (301, 301));
    let (corrected, naive) = (millis(&report, "/served_ms/p99"), millis(&report, "/sending/naive_ms/p99"));
    assert!((900.0..1_800.0).contains(&corrected), "{corrected}");
    assert!(naive < 300.0 && millis(&report, "/sending/naive_ms/max") >= 1_000.0, "{naive}");
    // It was the cap that made it late, and that is said.
    assert!(
        millis(&report, "/sending/lag_ms/p99") >= 800.0 && count(&report, "/sending/held_ms/count") >= 80
    );
    let limited = report["sending"]["limited"].as_str().unwrap_or_default();
    assert!(limited.contains("waited for one of its 1 connections"), "{limited}");
    let whole: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&whole["thresholds"][0]["met"], &whole["thresholds"][1]["met"]),
        (&false.into(), &true.into())
    );

    // With connections enough nothing is held back, and both figures say the same: one slow answer, on its own connection.
    let ran = load(&[scenario.path(), "--target", &target, "--threshold", "goodput>=100%"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.out.contains("waited for one of its"), "{}", ran.out);
    assert!(ran.out.contains("  met     goodput>=100%\n"), "{}", ran.out);
}

/// Of a burst, what waits for one of the connections is late from the first moment on, when none of them is open yet.
#[tokio::test]
async fn a_burst_waits_for_the_cap() {
    let _turn = turn().await;
    let lab = Lab::start(&["--workers", "1000", "--service-time", "200ms"]).await;
    let scenario = File::with(
        r#"story = "A burst."
        duration = "4s"
        [[service]]
        workers = 1000
        time = "200ms"
        [[clients]]
        name = "all"
        burst = [{ at = "0s", count = 1000 }]
        path = "/work""#,
    );
    let target = format!("http://{}", lab.address);
    let ran = load(&[scenario.path(), "--target", &target, "--connections", "100", "--json"]).await;
    let report = report(&ran);
    assert_eq!(count(&report, "/goodput"), 1_000, "{report:#}");
    // Nine of ten waited, for one to nine times what the service takes.
    assert!(count(&report, "/sending/held_ms/count") >= 900, "{report:#}");
    assert!(millis(&report, "/sending/lag_ms/p50") >= 600.0, "{report:#}");
    assert!(millis(&report, "/sending/lag_ms/p99") >= 1_600.0, "{report:#}");
    let limited = report["sending"]["limited"].as_str().unwrap_or_default();
    assert!(limited.contains("waited for one of its 100 connections"), "{limited}");
}

/// What is typed arrives: method, fields, body, and the schedule's number of requests. Nobody at a terminal, no view.
#[tokio::test]
async fn what_is_typed_is_what_is_sent() {
    let service = Service::prompt().await;
    let url = format!("http://{}/order?a=b", service.address);
    let ran = load(&[
        &url,
        "--rate",
        "20:500ms,20..40:1s,0:100ms",
        "-H",
        "X-Tenant: acme",
        "-H",
        "Cookie: a=1",
        "-H",
        "Cookie: b=2",
        "-d",
        "{}",
    ])
    .await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let seen = service.seen();
    assert_eq!(seen.len(), 40);
    for request in &seen {
        assert_eq!((request.head.target(), request.text().as_str()), ("/order?a=b", "{}"));
        assert_eq!(request.head.field("x-tenant"), Some("acme"));
        let twice = request.head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        assert!(twice.map(|(_, value)| value.as_str()).eq(["a=1", "b=2"]), "{:?}", request.head);
        assert!(request.head.start.starts_with("POST "), "{}", request.head.start);
        assert!(request.head.field("host").is_some_and(|host| url.contains(host)));
    }
    assert!(ran.out.contains("Answers and errors"), "{}", ran.out);
}

/// Nobody is there: failures, counted and said, no panic; and nothing to say about the target.
#[tokio::test]
async fn nobody_listens() {
    let url = format!("http://{}/", nobody().await);
    let ran = load(&[&url, "--rate", "20:500ms", "--rude", "--retries", "1", "--json"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.err, "tidegate: no connection could be opened, in 20 attempts\n");
    let report = report(&ran);
    let counts = ["/offered", "/failed", "/attempts", "/sending/errors/no_connection"];
    assert_eq!(counts.map(|at| count(&report, at)), [10, 10, 20, 20]);
}

/// Each answer may be the last of its connection, said or unsaid, and come in any of the forms of RFC 9112.
#[tokio::test]
async fn answers_of_every_form() {
    for (answer, close) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", true),
        ("HTTP/1.0 200 OK\r\n\r\n", true),
        ("HTTP/1.1 204 No Content\r\n\r\n", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
            false,
        ),
        ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
    ] {
        let report = report_of(sends(answer, close).await, &["--rate", "40:500ms"]).await;
        assert_eq!(count(&report, "/goodput"), 20, "{answer:?}: {report:#}");
        let opened = count(&report, "/sending/connections");
        assert_eq!(opened == 20, close, "{answer:?}: {opened} connections");
    }
}

/// What is no answer is an error with a name, and so is one that breaks off.
#[tokio::test]
async fn what_is_no_answer() {
    for (answer, close, error) in [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", false, "no_answer_but_bytes"),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false, "no_answer_but_bytes"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", true, "connection_closed"),
        ("HTTP/1.1 200 OK\r\nContent", true, "connection_closed"),
        ("", true, "connection_closed"),
    ] {
        let report = report_of(sends(answer, close).await, &["--rate", "20:500ms"]).await;
        let counts = ["/failed", "/broken", &format!("/sending/errors/{error}")].map(|at| count(&report, at));
        assert_eq!(counts, [10, 10, 10], "{answer:?}: {report:#}");
    }
}

/// G5. A kept connection on which a second request is read and not answered: what may come twice is sent again, what may not
/// is a failure, and the service has seen it once.
#[tokio::test]
async fn what_must_not_come_twice() {
    for (method, twice) in [("GET", true), ("POST", false)] {
        let script = Script::start().await;
        let (address, seen) = (script.address, Arc::new(AtomicU64::new(0)));
        let for_service = seen.clone();
        tokio::spawn(async move {
            loop {
                let (mut wire, seen) = (script.accept().await, for_service.clone());
                tokio::spawn(async move {
                    for answer in [true, false] {
                        if !wire.readable().await || wire.try_message().await.is_err() {
                            return;
                        }
                        seen.fetch_add(1, SeqCst);
                        if answer {
                            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                        }
                    }
                });
            }
        });
        // One after the other: so each second one is the second on its connection.
        let report = report_of(address, &["--rate", "20:500ms", "-X", method, "--connections", "1"]).await;
        let (resent, closed) =
            (count(&report, "/sending/resent"), count(&report, "/sending/errors/connection_closed"));
        assert_eq!(count(&report, "/goodput") + closed, 10, "{method}: {report:#}");
        assert_eq!(seen.load(SeqCst), 10 + resent, "{method}");
        // On a machine that was away for long, the end of a connection may seem to have nothing to do with the sending.
        assert!(if twice { resent >= 5 } else { resent == 0 && closed == 5 }, "{method}: {report:#}");
    }
}

/// G5. A kept connection that ends long after the request was written was no connection that was being closed: what was asked
/// may have been done, and what came of it is a failure, and no lag.
#[tokio::test]
async fn what_was_out_for_long_is_not_sent_again() {
    let script = Script::start().await;
    let address = script.address;
    tokio::spawn(async move {
        loop {
            let mut wire = script.accept().await;
            tokio::spawn(async move {
                if !wire.readable().await || wire.try_message().await.is_err() {
                    return;
                }
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                if wire.readable().await && wire.try_message().await.is_ok() {
                    // What it does takes this long, and then it fails.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            });
        }
    });
    let report = report_of(address, &["--rate", "2:1s", "--connections", "1"]).await;
    assert_eq!(count(&report, "/sending/errors/connection_closed"), 1, "{report:#}");
    assert_eq!([count(&report, "/goodput"), count(&report, "/sending/resent")], [1, 0], "{report:#}");
}

/// Over HTTP/2, a connection that takes no more (GOAWAY) while a stream on it is still open: what comes next goes out on
/// another, at once, and the stream ends well.
#[tokio::test]
async fn after_goaway_the_rest_goes_elsewhere() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0_u32.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve_http2(stream, number == 0));
        }
    });
    let report = report_of(address, &["--rate", "20:1s", "--http2"]).await;
    assert_eq!(count(&report, "/goodput"), 20, "{report:#}");
    assert_eq!(count(&report, "/sending/errors/connection_closed"), 0, "{report:#}");
    assert_eq!(count(&report, "/sending/connections"), 2, "{report:#}");
}

/// Answers at once; or else answers the first request after half a second, and says before that that it takes no more.
async fn serve_http2(stream: tokio::net::TcpStream, leaves: bool) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        if leaves {
            connection.graceful_shutdown();
        }
        tokio::spawn(async move {
            if leaves {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let _ = respond.send_response(http::Response::new(()), true);
        });
    }
}

/// A service that takes everything and answers nothing: each client leaves when its time is over, and then it is over.
#[tokio::test]
async fn a_service_that_never_answers() {
    let service = Service::held().await;
    let began = Stopwatch::start();
    let report = report_of(service.address, &["--rate", "20:500ms", "--timeout", "200ms"]).await;
    assert_eq!([count(&report, "/failed"), count(&report, "/left")], [10, 10]);
    assert_eq!(count(&report, "/sending/errors/timeout"), 10);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

/// Over HTTP/2 all share a connection, and a refusal of the gateway is known by its reason.
#[tokio::test]
async fn http2_with_the_gateways_reasons() {
    let lab = Lab::start(&["--workers", "1", "--service-time", "500ms"]).await;
    let gateway = Gateway::start(&Policy::before(lab.address).limit(1)).await;
    let report = report_of(gateway.clients, &["--rate", "20:500ms", "--http2"]).await;
    assert_eq!(count(&report, "/sending/connections"), 1, "{report:#}");
    let (good, refused) = (count(&report, "/goodput"), count(&report, "/rejected/queue_full"));
    assert!(good >= 1 && good + refused == 10, "{report:#}");
    assert_eq!(count(&report, "/sending/statuses/503"), refused);
}

/// The obedient come back when they were told to, and are let in; the rude come back at once.
#[tokio::test]
async fn whoever_is_told_when_to_come_back() {
    for (flag, told, least) in [("--obedient", 1, 1_000.0), ("--rude", 0, 0.0)] {
        let script = Script::start().await;
        let address = script.address;
        tokio::spawn(async move {
            let mut wire = script.accept().await;
            wire.message().await;
            wire.send("HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n").await;
            answer_all(wire, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).await;
        });
        let report = report_of(address, &["--rate", "2:500ms", flag, "--connections", "1"]).await;
        assert_eq!([count(&report, "/goodput"), count(&report, "/attempts")], [1, 2], "{flag}: {report:#}");
        assert_eq!([count(&report, "/told"), count(&report, "/told_admitted")], [told, told], "{flag}");
        let took = millis(&report, "/served_ms/max");
        assert!((least..least + 900.0).contains(&took), "{flag}: {took}");
    }
}

/// A page, percentiles and a comparison with the run before.
#[tokio::test]
async fn what_is_kept_of_a_run() {
    let service = Service::prompt().await;
    let url = format!("http://{}/", service.address);
    let (page, percentiles) = (fresh_path("html"), fresh_path("hgrm"));
    let before = load(&[&url, "--rate", "20:500ms", "--json"]).await;
    let kept = File::of_kind("json", &before.out);
    let files = ["--html", page.to_str().unwrap(), "--hdr", percentiles.to_str().unwrap()];
    let ran =
        load(&[&[url.as_str(), "--rate", "40:500ms", "--compare", kept.path()], &files[..]].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = ran.out.lines().find(|line| line.starts_with("goodput   ")).unwrap_or_default();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["goodput", "20.0/s", "40.0/s", "+100.0%"],
        "{}",
        ran.out
    );
    let text = std::fs::read_to_string(&percentiles).unwrap();
    assert!(text.contains("1/(1-Percentile)") && text.contains("Total count    =           20]"), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Times, and the generator itself") && html.contains("--compare"), "{html}");
    for file in [page, percentiles] {
        std::fs::remove_file(file).unwrap();
    }

    let other = File::of_kind("json", "{\"reports\": [{}]}");
    let ran = load(&[&url, "--compare", other.path()]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// Ctrl-C ends a run early, and what there is until then is shown.
#[tokio::test]
async fn ended_early() {
    let service = Service::prompt().await;
    let url = format!("http://{}/", service.address);
    let mut command = Command::new(TIDEGATE);
    command.args(["load", &url, "--rate", "50:600s", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    service.until_asked(5).await;
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("tidegate: ended early, after "), "{said}");
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((5..3_000).contains(&count(&whole["reports"][0], "/offered")), "{whole:#}");
}

/// Of a service that can do much more, two connections carry forty a second. What was sent was answered in time, so that is no
/// knee of the service.
#[tokio::test]
async fn the_generators_connections_are_no_knee() {
    let _turn = turn().await;
    let lab = Lab::start(&["--workers", "1000", "--service-time", "50ms"]).await;
    let url = format!("http://{}/work", lab.address);
    let looking = ["--find-knee", "--rate", "20..320", "--step", "2s", "--connections", "2", "--json"];
    let ran = load(&[&[url.as_str(), "--threshold", "p99<300ms"], &looking[..]].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let words = found["found"].as_str().unwrap_or_default();
    assert!(words.contains("Beyond that the generator was the limit"), "{found:#}");
    assert!(found["probes"].as_array().unwrap().iter().any(|probe| probe["limited"] == true), "{found:#}");
}

/// Two workers of 20 ms can do a hundred a second, a little less with a timer that rounds up. What a rate that was too much
/// has left in line is over before the next is tried.
#[tokio::test]
async fn the_knee_is_found() {
    let _turn = turn().await;
    let lab = Lab::start(&["--workers", "2", "--service-time", "20ms"]).await;
    let url = format!("http://{}/work", lab.address);
    let ran = load(&[
        &url,
        "--find-knee",
        "--rate",
        "20..400",
        "--step",
        "1500ms",
        "--precision",
        "15",
        "--json",
        "--threshold",
        "p99<150ms",
        "--threshold",
        "goodput>99%",
    ])
    .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let knee = found["knee"].as_f64().unwrap();
    assert!((70.0..=105.0).contains(&knee), "{found:#}");
    let rates: Vec<f64> =
        found["probes"].as_array().unwrap().iter().filter_map(|it| it["rate"].as_f64()).collect();
    assert!(rates.len() >= 3 && rates.is_sorted(), "{rates:?}");
}

#[test]
fn what_makes_no_sense_is_said_before_anything_is_sent() {
    let scenario = File::with(
        "story = \"\"\nduration = \"1s\"\n[[service]]\nworkers = 1\ntime = \"1ms\"\n[[clients]]\nname = \"all\"\nrate = \"1/s\"\n",
    );
    let url = "http://127.0.0.1:9/";
    for (arguments, code, message) in [
        (vec![url, "--rate", "100:10"], 2, "needs a unit"),
        (vec![url, "--rate", "many"], 2, "is not a rate"),
        (vec![url, "--rate", "5:1s", "--duration", "2s"], 2, "--duration"),
        (vec![url, "--threshold", "p99<300"], 2, "p99<300"),
        (vec![url, "--threshold", "nobody:p99<1s"], 2, "there is no class named `nobody`"),
        (vec![url, "-H", "no colon"], 2, "is not a field"),
        (vec![url, "-H", "content-length: 3"], 2, "content-length"),
        (vec![url, "-X", "NO GET"], 2, "is not a method"),
        (vec![url, "-d", "@/nowhere"], 2, "cannot read /nowhere"),
        (vec![url, "--lab"], 2, "belong to a scenario"),
        (vec![url, "--obedient", "--rude"], 2, "cannot be used with"),
        (vec!["https://127.0.0.1:9/"], 2, "TLS"),
        (vec!["/nowhere.toml"], 78, "cannot read /nowhere.toml"),
        (vec![scenario.path()], 2, "--target"),
        (vec![scenario.path(), "--lab", "--rate", "5"], 2, "--rate belongs to a URL"),
        (vec![scenario.path(), "--lab", "--backoff-base", "1s"], 2, "--backoff-base belongs to a URL"),
        (vec![scenario.path(), "--lab", "--only", "nothing"], 2, "there is `no control`"),
    ] {
        let ran = run(&[&["load"], &arguments[..]].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(message), "{arguments:?}: {}", ran.err);
    }
}
