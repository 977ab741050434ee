//! Metrics as others read them: what there is, in which formats, and that no client can add to it.

use std::collections::BTreeSet;

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Message;
use crate::service::Service;

/// A policy in which every metric has something to show.
fn everything(service: &Service) -> Policy {
    let rest = "[[route]]\npath = \"/api/*\"\nupstream = \"service\"\npriority = \"header:x-class\"\ntenant = \"header:x-tenant\"\n\
                [[route]]\npath = \"/*\"\nupstream = \"service\"\n\
                [[rate_limit]]\nname = \"each\"\nkey = \"header:x-key\"\nrate = \"1/h\"\nburst = 1\nmax_keys = 100\n";
    Policy::before(service.address).limit(1).queue(2, "10s").rest(rest)
}

async fn exposition(gateway: &Gateway, accept: &str) -> Message {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
    ask(gateway.admin, request).await
}

/// The series of a page, with their labels and without their values.
fn series(page: &str) -> BTreeSet<String> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// Name and labels of each metric, its buckets and sums taken together.
fn families(page: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut described = (String::new(), String::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            described = (name.to_owned(), kind.to_owned());
        } else if !line.starts_with('#') {
            let (name, kind) = &described;
            let part = line.strip_prefix(name.as_str()).unwrap_or_else(|| panic!("{line} under {name}"));
            let (part, rest) = part.split_at(part.find(['{', ' ']).unwrap());
            let expected: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(expected.contains(&part), "{line} under {name}");
            let labels: Vec<&str> = rest
                .split_once('}')
                .map(|(labels, _)| {
                    labels
                        .trim_start_matches('{')
                        .split("\",")
                        .map(|one| one.split('=').next().unwrap())
                        .collect()
                })
                .unwrap_or_default();
            let labels = labels.into_iter().filter(|label| *label != "le").collect::<Vec<_>>().join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            all.insert(format!("{name}{labels} {kind}"));
            line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
        }
    }
    all
}

/// The page that tells operators what there is says what there is: names, labels and types.
#[tokio::test]
async fn every_metric_is_in_the_manual_and_every_one_of_the_manual_is_there() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&everything(&service)).await;
    gateway.serves("/").await;
    // So that there is a refusal too: the second with this key.
    let keyed = "GET / HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\n\r\n";
    let statuses = [ask(gateway.clients, keyed).await.status(), ask(gateway.clients, keyed).await.status()];
    assert_eq!(statuses, [200, 429]);
    let page = exposition(&gateway, "*/*").await;
    assert_eq!(page.head.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let manual = include_str!("../../../../docs/metrics.md");
    let rows = manual.lines().filter(|line| line.starts_with("| `tidegate_"));
    let told: BTreeSet<String> = rows
        .map(|row| {
            let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
            let (name, kind) = (cells.next().unwrap().trim_matches('`'), cells.next().unwrap());
            format!("{name} {kind}")
        })
        .collect();
    assert_eq!(families(&page.text()), told);
}

/// What alerts subtract is there before it happens: a series that begins with what it has counted has no rate.
#[tokio::test]
async fn what_alerts_ask_for_is_there_from_the_start() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    for reason in ["rate_limited", "tenant_limit", "gateway_overloaded"] {
        let name =
            format!("tidegate_rejected_total{{route=\"/*\",priority=\"default\",reason=\"{reason}\"}}");
        assert_eq!(gateway.metric(&name).await, 0.0);
    }
}

/// A wait that used up its budget was a long one, and one that ended soon was not.
#[tokio::test]
async fn long_waits_are_counted_by_the_budget() {
    let service = Service::held().await;
    let long = "tidegate_queue_waits_long_total{upstream=\"service\"}";
    let waits = "tidegate_queue_wait_seconds_count{upstream=\"service\"}";
    for (budget, counted) in [("200ms", 1.0), ("10m", 0.0)] {
        let gateway = Gateway::start(&Policy::before(service.address).limit(1).queue(8, budget)).await;
        assert_eq!(gateway.metric(long).await, 0.0, "it is there before it happens");
        let _first = sent(gateway.clients, get("/first")).await;
        gateway.until("the first at work", |stats| stats.get("in_flight") == 1).await;
        let mut second = sent(gateway.clients, get("/second")).await;
        if counted > 0.0 {
            assert_eq!(second.message().await.reason(), "queue_timeout");
        } else {
            gateway.until("the second in the queue", |stats| stats.get("queue_depth") == 1).await;
            drop(second);
            gateway.until("it to leave", |stats| stats.get("client_left") == 1).await;
        }
        assert_eq!((gateway.metric(waits).await, gateway.metric(long).await), (1.0, counted), "{budget}");
    }
}

/// Whoever asks for OpenMetrics gets it, and the same series in it.
#[tokio::test]
async fn openmetrics_has_the_same_series() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&everything(&service)).await;
    gateway.serves("/").await;
    let text = exposition(&gateway, "text/plain").await;
    let open = exposition(&gateway, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5").await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((open.head.field("content-type"), open.head.field("vary")), (Some(kind), Some("accept")));
    assert!(open.text().ends_with("\n# EOF\n"));
    assert!(open.text().contains("# TYPE tidegate_requests counter\n"));
    assert!(open.text().contains("# UNIT tidegate_upstream_seconds seconds\n"));
    assert_eq!(series(&text.text()), series(&open.text()));
}

/// What may stand in labels: what the policy names, and words of closed lists.
const VALUES: &[(&str, &[&str])] = &[
    ("route", &["", "/api/*", "/*"]),
    ("priority", &["", "critical", "default", "background"]),
    ("outcome", &["success", "server_error", "rejected", "failed", "client_left", "bad_request"]),
    (
        "reason",
        &[
            "rate_limited",
            "queue_full",
            "pushed_out",
            "wait_too_long",
            "queue_timeout",
            "client_left",
            "tenant_limit",
            "gateway_overloaded",
        ],
    ),
    ("upstream", &["service"]),
    ("where", &["client", "upstream"]),
    ("decision", &["retried", "budget", "not_safe", "nowhere", "second", "late"]),
    ("rule", &["each"]),
    ("status", &["429", "503"]),
    ("result", &["admitted", "refused", "early", "ok", "exported", "dropped", "failed"]),
    ("side", &["client", "upstream"]),
    ("state", &["open", "upgraded"]),
    ("version", &[env!("CARGO_PKG_VERSION")]),
];

/// C6. Nothing that a client sends becomes a label: not its path, method, class, tenant, key or host.
#[tokio::test]
async fn clients_cannot_add_series() {
    let service = Service::held().await;
    let gateway = Gateway::start(&everything(&service)).await;
    let in_flight = sent(gateway.clients, get("/")).await;
    service.until_asked(1).await;
    for number in 0..50 {
        let name = format!("N{number}");
        for path in ["/api/", "/", "/..%00/", "*"] {
            let head = format!("X-Class: {name}\r\nX-Tenant: {name}\r\nX-Key: {name}\r\n");
            let request = format!("{name} {path}{name} HTTP/1.1\r\nHost: {name}\r\n{head}\r\n");
            drop(sent(gateway.clients, request).await);
        }
    }
    gateway.until("nobody to wait", |stats| stats.get("queue_depth") == 0).await;
    drop(in_flight);
    let page = exposition(&gateway, "*/*").await.text();
    for series in series(&page) {
        let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        for pair in labels.split(',').filter(|pair| !pair.is_empty() && !pair.starts_with("le=")) {
            let (label, value) = pair.split_once('=').unwrap();
            let allowed =
                VALUES.iter().find(|(name, _)| *name == label).unwrap_or_else(|| panic!("{series}")).1;
            assert!(allowed.contains(&value.trim_matches('"')), "{series}");
        }
    }
    assert!(page.contains("reason=\"client_left\""), "they were seen: {page}");
    // Whoever stood in line when the slot came free was sent on.
    service.release(1_000);
    gateway.until_idle().await;
}
