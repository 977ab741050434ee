//! Traces: what passes to the upstream, what is told to a collector, and that nobody waits for one that is not there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy, TIDEGATE, fresh_path};
use crate::ran::run;
use crate::service::{Script, Service, nobody};
use crate::wait::{Stopwatch, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traced(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")
}

fn telling(service: &Service, collector: SocketAddr, more: &str) -> Policy {
    let otlp = format!("[server.otlp]\nendpoint = \"http://{collector}\"\nmetrics_interval = \"1s\"\n{more}");
    Policy::before(service.address).limit(1).queue(1, "10s").server(&otlp)
}

/// One span, as the collector got it.
#[derive(Debug, Clone)]
struct Span(Value);

impl Span {
    fn text(&self, member: &str) -> &str {
        self.0[member].as_str().unwrap_or_default()
    }

    fn number(&self, member: &str) -> u64 {
        self.text(member).parse().unwrap_or_else(|_| panic!("{member}: {}", self.0))
    }

    fn attributes(&self) -> BTreeMap<String, String> {
        let all = self.0["attributes"].as_array().unwrap().iter();
        let text =
            |value: &Value| value.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        all.map(|one| (one["key"].as_str().unwrap().to_owned(), text(&one["value"]))).collect()
    }
}

/// Everything that the collector has been told of, however often it was asked.
fn spans(collector: &Service) -> Vec<Span> {
    let mut all = Vec::new();
    for request in collector.seen().iter().filter(|request| request.head.target() == "/v1/traces") {
        assert_eq!(request.head.field("content-type"), Some("application/json"));
        let body = request.json();
        let resource = &body["resourceSpans"][0];
        all.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned().map(Span));
    }
    all
}

async fn until_told(collector: &Service, count: usize) -> Vec<Span> {
    until("spans at the collector", async || {
        let spans = spans(collector);
        (spans.len() >= count).then_some(spans)
    })
    .await
}

fn now_nanos() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "spans tell the time of day")]
    let now = std::time::SystemTime::now();
    u64::try_from(now.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// Whoever tells nobody changes nothing: the fields pass as they came, right or wrong, and none is added.
#[tokio::test]
async fn without_a_collector_trace_context_passes_untouched() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let mut wire = connect(gateway.clients).await;
    for fields in [
        format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntracestate: a=1,b=2\r\n"),
        "traceparent: nonsense\r\ntracestate: c=3\r\n".to_owned(),
        String::new(),
    ] {
        wire.send(traced("/", &fields)).await;
        assert_eq!(wire.message().await.status(), 200);
        let seen = service.seen().pop().unwrap();
        let passed =
            seen.head.fields.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("trace"));
        let passed: String =
            passed.map(|(name, value)| format!("{}: {value}\r\n", name.to_ascii_lowercase())).collect();
        assert_eq!(passed, fields);
    }
}

/// A request that waits and is served: three spans, one below the other, in their times and with what they say.
#[tokio::test]
async fn a_request_is_told_of_as_three_spans() {
    let (service, collector) = (Service::held().await, Service::prompt().await);
    let began = now_nanos();
    let gateway = Gateway::start(&telling(&service, collector.address, "service_name = \"edge\"\n")).await;
    let mut first = sent(gateway.clients, get("/first")).await;
    service.until_asked(1).await;
    let fields = format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntracestate: a=1\r\n");
    let mut second = sent(gateway.clients, traced("/second?secret=1", &fields)).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    service.release(2);
    assert_eq!((first.message().await.status(), second.message().await.status()), (200, 200));
    let spans = until_told(&collector, 5).await;
    let ended = now_nanos();

    let ours: Vec<&Span> = spans.iter().filter(|span| span.text("traceId") == TRACE).collect();
    let named = |name: &str| {
        let found = ours.iter().find(|span| span.text("name") == name);
        (*found.unwrap_or_else(|| panic!("{ours:#?}"))).clone()
    };
    let (whole, queue, exchange) = (named("GET /*"), named("queue"), named("GET"));
    assert_eq!(ours.len(), 3);
    assert_eq!(
        (whole.0["kind"].as_u64(), queue.0["kind"].as_u64(), exchange.0["kind"].as_u64()),
        (Some(2), Some(1), Some(3))
    );
    // The tree, whose root is the caller's and whose end is what the upstream was told.
    assert_eq!((whole.text("parentSpanId"), whole.text("traceState")), (SPAN, "a=1"));
    assert_eq!(queue.text("parentSpanId"), whole.text("spanId"));
    assert_eq!(exchange.text("parentSpanId"), whole.text("spanId"));
    let told = service.seen().pop().unwrap();
    assert_eq!(
        told.head.field("traceparent"),
        Some(format!("00-{TRACE}-{}-01", exchange.text("spanId")).as_str())
    );
    assert_eq!(told.head.field("tracestate"), Some("a=1"));
    // It waited first and was sent then, all within the whole, and at this time of day.
    let times = |span: &Span| (span.number("startTimeUnixNano"), span.number("endTimeUnixNano"));
    let ((from, to), (queued, left), (sent, answered)) = (times(&whole), times(&queue), times(&exchange));
    assert!(
        from == queued && queued < left && left <= sent && sent < answered && answered == to,
        "{ours:#?}"
    );
    // The clocks are read one after the other, and not at once.
    assert!(began - 1_000_000_000 < from && to < ended + 1_000_000_000, "{began} {from} {to} {ended}");

    words(&whole, &exchange, service.address);
    assert!(spans.iter().all(|span| !span.0.to_string().contains("secret") && span.0["status"].is_null()));
    let seen = collector.seen();
    let traces = seen.iter().find(|request| request.head.target() == "/v1/traces").unwrap().json();
    let resource = traces["resourceSpans"][0]["resource"].to_string();
    assert!(
        resource.contains("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"edge\"}}"),
        "{resource}"
    );
    // The other came without a trace: it has one of its own, and no parent.
    let other: Vec<&Span> = spans.iter().filter(|span| span.text("traceId") != TRACE).collect();
    assert_eq!(
        (other.len(), other.iter().filter(|span| span.text("parentSpanId").is_empty()).count()),
        (2, 1)
    );
}

/// What the spans of a request to `/second` say.
fn words(whole: &Span, exchange: &Span, service: SocketAddr) {
    let attributes = whole.attributes();
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/*"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("url.path", "/second"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("tidegate.upstream", "service"),
        ("tidegate.priority", "default"),
    ] {
        assert_eq!(attributes.get(key).map(String::as_str), Some(value), "{key}");
    }
    let attributes = exchange.attributes();
    assert_eq!(attributes["server.port"], service.port().to_string());
    assert_eq!(
        (attributes["server.address"].as_str(), attributes["http.response.status_code"].as_str()),
        ("127.0.0.1", "200")
    );
}

/// What went wrong is told by its reason, and where it was: in the queue, at the upstream, or before either.
#[tokio::test]
async fn what_went_wrong_is_told() {
    let (service, collector) = (Service::held().await, Service::prompt().await);
    let gateway = Gateway::start(&telling(&service, collector.address, "")).await;
    let in_flight = sent(gateway.clients, get("/in-flight")).await;
    service.until_asked(1).await;
    let leaving = sent(gateway.clients, get("/leaving")).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    assert_eq!(ask(gateway.clients, get("/refused")).await.reason(), "queue_full");
    drop(leaving);
    gateway.until("it to have left", |stats| stats.get("client_left") == 1).await;
    assert_eq!(ask(gateway.clients, "BREW /%zz HTTP/1.1\r\nHost: a\r\n\r\n").await.status(), 400);
    drop(in_flight);
    gateway.until("an orphan", |stats| stats.get("orphans") == 1).await;
    service.release(1);
    gateway.until_idle().await;
    service.turn_to(500);
    service.release(1);
    assert_eq!(ask(gateway.clients, get("/broken")).await.status(), 500);

    let spans = until_told(&collector, 8).await;
    let of = |path: &str| -> Vec<&Span> {
        let whole = |span: &&Span| span.attributes().get("url.path").is_some_and(|at| at == path);
        let whole = spans.iter().find(whole).unwrap_or_else(|| panic!("{path} in {spans:#?}"));
        spans.iter().filter(|span| span.text("traceId") == whole.text("traceId")).collect()
    };
    let said = |path: &str| -> Vec<String> {
        let word = |span: &&Span| {
            let attributes = span.attributes();
            let of = |key: &str| attributes.get(key).cloned().unwrap_or_else(|| "-".into());
            let bad = if span.0["status"]["code"] == 2 { "!" } else { "" };
            format!("{} {} {}{bad}", span.text("name"), of("http.response.status_code"), of("error.type"))
        };
        of(path).iter().map(word).collect()
    };
    assert_eq!(said("/refused"), ["GET /* 503 queue_full!"]);
    assert_eq!(said("/leaving"), ["GET /* - client_left!", "queue - client_left!"]);
    assert_eq!(said("/in-flight"), ["GET /* - client_left!", "GET - client_left!"]);
    assert_eq!(said("/broken"), ["GET /* 500 500!", "GET 500 500!"]);
    assert_eq!(said("/%zz"), ["HTTP 400 -"]);
    assert_eq!(of("/%zz")[0].attributes()["http.request.method"], "_OTHER");
}

/// The caller's decision not to be traced is respected, and passed on; so is the share of those who have none.
#[tokio::test]
async fn who_is_not_sampled_is_not_told_of() {
    let (service, collector) = (Service::prompt().await, Service::prompt().await);
    let gateway = Gateway::start(&telling(&service, collector.address, "sample = 0\n")).await;
    let not = traced("/not", &format!("traceparent: 00-{TRACE}-{SPAN}-00\r\n"));
    assert_eq!(ask(gateway.clients, not).await.status(), 200);
    let told = service.seen().pop().unwrap();
    let field = told.head.field("traceparent").unwrap().to_owned();
    assert!(
        field.starts_with(&format!("00-{TRACE}-")) && field.ends_with("-00") && !field.contains(SPAN),
        "{field}"
    );
    gateway.serves("/without").await;
    assert!(service.seen().pop().unwrap().head.field("traceparent").unwrap().ends_with("-00"));
    let wanted = traced("/wanted", &format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n"));
    assert_eq!(ask(gateway.clients, wanted).await.status(), 200);
    let spans = until_told(&collector, 2).await;
    assert!(
        spans
            .iter()
            .all(|span| !["/not", "/without"].contains(&span.attributes().get("url.path").map_or("", |p| p)))
    );
    assert_eq!(spans.len(), 2);
}

/// Metrics are told too, with the values of `/metrics` and names that a collector makes the same again.
#[tokio::test]
async fn metrics_are_told() {
    let (service, collector) = (Service::prompt().await, Service::prompt().await);
    let gateway = Gateway::start(&telling(&service, collector.address, "sample = 0\n")).await;
    gateway.serves("/").await;
    let point = |body: &Value, name: &str, kind: &str| -> Option<Value> {
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array()?.clone();
        let family = metrics.into_iter().find(|metric| metric["name"] == name)?;
        family[kind]["dataPoints"][0].is_object().then(|| family[kind].clone())
    };
    let body = until("metrics that show the request", async || {
        let seen = collector.seen();
        let bodies = seen
            .iter()
            .filter(|request| request.head.target() == "/v1/metrics")
            .map(|request| request.json());
        bodies.into_iter().find(|body| {
            point(body, "tidegate_goodput", "sum").is_some_and(|sum| sum["dataPoints"][0]["asDouble"] == 1.0)
        })
    })
    .await;
    let goodput = point(&body, "tidegate_goodput", "sum").unwrap();
    assert_eq!((&goodput["isMonotonic"], &goodput["aggregationTemporality"]), (&true.into(), &2.into()));
    let limit = point(&body, "tidegate_limit", "gauge").unwrap();
    assert_eq!(limit["dataPoints"][0]["asDouble"], 1.0);
    assert_eq!(limit["dataPoints"][0]["attributes"][0]["value"]["stringValue"], "service");
    let upstream = point(&body, "tidegate_upstream", "histogram").unwrap();
    let histogram = &upstream["dataPoints"][0];
    let counts: Vec<u64> = histogram["bucketCounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| count.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!((histogram["count"].as_str(), counts.iter().sum::<u64>()), (Some("1"), 1));
    assert_eq!(counts.len(), histogram["explicitBounds"].as_array().unwrap().len() + 1);
}

/// A collector that is not there holds nobody up: requests are served, the queue has a bound, and what is lost is counted.
#[tokio::test]
async fn nobody_waits_for_a_collector() {
    let service = Service::prompt().await;
    // It takes connections and says nothing.
    let silent = Script::start().await;
    let policy = telling(&service, silent.address, "").limit(100);
    let mut gateway = Gateway::start(&policy).await;
    let mut wire = connect(gateway.clients).await;
    for _ in 0..6_000 {
        wire.send(get("/")).await;
        assert_eq!(wire.message().await.status(), 200);
    }
    // 4,096 requests wait and 256 are being told of; there are two spans of each.
    let dropped = gateway.metric("tidegate_spans_total{result=\"dropped\"}").await;
    assert!(
        (2.0 * (6_000.0 - 4_096.0 - 2.0 * 256.0)..=12_000.0 - 2.0 * 4_096.0).contains(&dropped),
        "{dropped}"
    );

    // Nor does it keep the gateway from ending, be it silent or not there at all.
    let gone = nobody().await;
    let mut other = Gateway::start(&telling(&service, gone, "")).await;
    other.serves("/").await;
    for gateway in [&mut gateway, &mut other] {
        drop(std::mem::replace(&mut wire, connect(service.address).await));
        let watch = Stopwatch::start();
        gateway.process.signal("TERM");
        assert_eq!(gateway.process.ended().await.code(), Some(0));
        assert!(watch.elapsed() < Duration::from_secs(12), "{:?}", watch.elapsed());
    }
}

/// What cannot be told to anybody is said at the start, without what may be a secret.
#[tokio::test]
async fn a_collector_that_cannot_be_told_is_an_error_at_the_start() {
    let service = Service::prompt().await;
    let (secrets, policy) = (fresh_path("headers"), fresh_path("toml"));
    std::fs::write(&secrets, "authorization Bearer s3cret\n").unwrap();
    for file in [secrets.clone(), "/nonexistent/headers".into()] {
        let more = format!("headers_file = \"{}\"\n", file.display());
        std::fs::write(&policy, telling(&service, service.address, &more).text()).unwrap();
        let ran = run(&["run", "--config", policy.to_str().unwrap()]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains("[server.otlp]") && !ran.err.contains("s3cret"), "{}", ran.err);
    }
    for file in [secrets, policy] {
        std::fs::remove_file(file).unwrap();
    }
}

/// A collector that has too much to do is asked again, and gets all of it; one that says no is not.
#[tokio::test]
async fn a_collector_is_asked_again() {
    let (service, collector) = (Service::prompt().await, Service::prompt().await);
    collector.turn_to(503);
    let gateway = Gateway::start(&telling(&service, collector.address, "")).await;
    gateway.serves("/").await;
    let told = async |times: usize| {
        until("the spans to be told again", async || {
            let seen = collector.seen();
            let traces = seen.iter().filter(|request| request.head.target() == "/v1/traces").count();
            (traces >= times).then_some(())
        })
        .await;
    };
    told(2).await;
    collector.turn_to(200);
    let exported = "tidegate_spans_total{result=\"exported\"}";
    until("all to be taken", async || (gateway.metric(exported).await == 2.0).then_some(())).await;
    assert_eq!(gateway.metric("tidegate_spans_total{result=\"failed\"}").await, 0.0);
    collector.turn_to(400);
    gateway.serves("/").await;
    let failed = "tidegate_spans_total{result=\"failed\"}";
    until("it to be given up", async || (gateway.metric(failed).await == 2.0).then_some(())).await;
    assert_eq!(gateway.metric(exported).await, 2.0);
}

/// What was not told yet is told when the gateway ends; and where a collector is may stand in the environment.
#[tokio::test]
async fn the_last_words_are_said() {
    let (service, collector) = (Service::prompt().await, Service::prompt().await);
    let mut command = Command::new(TIDEGATE);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=one%20two");
    let mut gateway = Gateway::start_with(&Policy::before(service.address), command).await;
    gateway.serves("/").await;
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.ended().await.code(), Some(0));
    assert_eq!(spans(&collector).len(), 2);
    let last = collector.seen().pop().unwrap();
    assert_eq!(last.head.field("x-token"), Some("one two"));
    assert!(collector.targets().contains(&"/v1/metrics".to_owned()));
}

/// The log names the trace, be it the caller's or the gateway's own, so that one leads to the other.
#[tokio::test]
async fn the_log_names_the_trace() {
    let (service, file) = (Service::prompt().await, fresh_path("log"));
    let log = format!("access_log = \"all\"\naccess_log_file = \"{}\"", file.display());
    let gateway = Gateway::start(&Policy::before(service.address).server(&log)).await;
    for fields in
        [format!("traceparent: 00-{TRACE}-{SPAN}-00\r\n"), "traceparent: 00-x\r\n".into(), String::new()]
    {
        assert_eq!(ask(gateway.clients, traced("/", &fields)).await.status(), 200);
    }
    let lines: Vec<Value> = until("three lines", async || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        (text.lines().count() == 3 && text.ends_with('\n'))
            .then(|| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    })
    .await;
    let traces: Vec<&Value> = lines.iter().map(|line| &line["trace"]).collect();
    assert_eq!(traces, [&Value::from(TRACE), &Value::Null, &Value::Null]);
    std::fs::remove_file(file).unwrap();
}
