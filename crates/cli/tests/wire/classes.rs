//! Classes, tenants and attempts on their way through the gateway: what is counted, logged, and passed on.
//!
//! What the engine does with them is told in its own stories.

use serde_json::{Value, json};

use crate::client::{ask, connect, connect_from};
use crate::gateway::{Gateway, Policy, fresh_path};
use crate::service::Service;
use crate::wait::until;

/// A request with these fields.
fn with(target: &str, fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")
}

const ROUTES: &str = r#"
[[route]]
path = "/checkout/*"
priority = "critical"
[[route]]
path = "/claimed/*"
priority = "header:x-class"
tenant = "header:x-tenant"
[[route]]
path = "/*"
"#;

fn counted(route: &str, priority: &str, outcome: &str) -> String {
    format!("tidegate_requests_total{{route=\"{route}\",priority=\"{priority}\",outcome=\"{outcome}\"}}")
}

/// Each request counts under its own class, in the metrics, the statistics and the log.
#[tokio::test]
async fn requests_are_counted_by_class() {
    let (service, file) = (Service::prompt().await, fresh_path("log"));
    let rule = "[[rate_limit]]\nname = \"few\"\nkey = \"route\"\nrate = \"1/h\"\nburst = 2\npaths = [\"/claimed/*\"]";
    let log = format!("access_log = \"all\"\naccess_log_file = \"{}\"", file.display());
    let policy = Policy::before(service.address).server(&log).rest(&format!("{ROUTES}{rule}"));
    let gateway = Gateway::start(&policy).await;
    let mut wire = connect(gateway.clients).await;
    for (request, status) in [
        (with("/checkout/1", &[]), 200),
        (with("/claimed/2", &["X-Class: background", "x-envoy-attempt-count: 2"]), 200),
        (with("/claimed/3", &["X-Class: critical"]), 200),
        (with("/claimed/4", &["X-Class: background"]), 429),
        (with("/else/5", &[]), 200),
    ] {
        wire.send(request).await;
        assert_eq!(wire.message().await.status(), status);
    }
    let malformed = ask(gateway.clients, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await;
    assert_eq!(malformed.status(), 400);
    // A record is written when the answer has gone out.
    let metrics = until("all to be counted", async || {
        let text = gateway.admin("/metrics").await.text();
        text.contains(&format!("{} 1\n", counted("", "", "bad_request"))).then_some(text)
    })
    .await;
    for (route, priority, outcome, count) in [
        ("/checkout/*", "critical", "success", 1),
        ("/claimed/*", "background", "success", 1),
        ("/claimed/*", "default", "success", 1),
        ("/claimed/*", "background", "rejected", 1),
        ("/*", "default", "success", 1),
    ] {
        let line = format!("{} {count}\n", counted(route, priority, outcome));
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    let refused =
        "tidegate_rejected_total{route=\"/claimed/*\",priority=\"background\",reason=\"rate_limited\"} 1\n";
    assert!(metrics.contains(refused), "{metrics}");
    // Series that nothing was counted in are there only for the class that a route is for.
    assert!(!metrics.contains(&counted("/checkout/*", "default", "success")), "{metrics}");
    let stats = gateway.admin("/api/stats").await.json();
    let by_class = &stats["upstreams"]["service"]["rejected_by_priority"];
    assert_eq!(*by_class, json!({ "critical": 0, "default": 0, "background": 1 }));

    let logged = until("six lines", async || {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (lines.len() == 6).then_some(lines)
    })
    .await;
    let seen: Vec<(&str, &str)> = logged
        .iter()
        .map(|line| (line["priority"].as_str().unwrap(), line["attempt"].as_str().unwrap()))
        .collect();
    let expected = [
        ("critical", ""),
        ("background", "retry"),
        ("default", ""),
        ("background", ""),
        ("default", ""),
        ("", ""),
    ];
    assert_eq!(seen, expected);
    std::fs::remove_file(file).unwrap();
}

/// C8, C11. A client cannot have more than the ceiling, nor hide from the next hop what it was given.
#[tokio::test]
async fn claims_are_passed_on_as_they_were_taken() {
    let service = Service::prompt().await;
    let policy = Policy::before(service.address).rest(ROUTES);
    let told = async |gateway: &Gateway, fields: &[&str]| {
        service.forget();
        assert_eq!(ask(gateway.clients, with("/claimed/1", fields)).await.status(), 200);
        service.seen()[0].head.field("x-class").map(str::to_owned)
    };
    let gateway = Gateway::start(&policy).await;
    for (fields, class) in [
        (&["X-Class: critical"][..], "default"),
        (&["X-Class: background"], "background"),
        (&["X-Class: background", "Connection: X-Class"], "background"),
        (&["X-Class: critical", "X-Class: critical"], "default"),
        (&[], "default"),
    ] {
        assert_eq!(told(&gateway, fields).await.as_deref(), Some(class), "{fields:?}");
    }
    let trusting = Gateway::start(&policy.server("trusted_proxies = [\"127.0.0.1\"]")).await;
    assert_eq!(told(&trusting, &["X-Class: critical"]).await.as_deref(), Some("critical"));
    // Somebody else is still nobody.
    service.forget();
    let mut wire = connect_from("127.0.0.2", trusting.clients).await;
    wire.send(with("/claimed/1", &["X-Class: critical"])).await;
    assert_eq!(wire.message().await.status(), 200);
    assert_eq!(service.seen()[0].head.field("x-class"), Some("default"));
}

/// A rate limit by tenant counts each, and all who name none as one.
#[tokio::test]
async fn a_rate_limit_by_tenant() {
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"each\"\nkey = \"tenant\"\nrate = \"1/h\"\nburst = 1";
    let gateway = Gateway::start(&Policy::before(service.address).rest(&format!("{ROUTES}{rule}"))).await;
    let status =
        async |target: &str, fields: &[&str]| ask(gateway.clients, with(target, fields)).await.status();
    for (target, fields, expected) in [
        ("/claimed/1", &["X-Tenant: a"][..], 200),
        ("/claimed/2", &["X-Tenant: a", "Connection: X-Tenant"], 429),
        ("/claimed/3", &["X-Tenant: b"], 200),
        ("/claimed/4", &[], 200),
        ("/claimed/5", &[], 429),
        // Routes that tell nobody apart share one more.
        ("/else", &["X-Tenant: c"], 200),
        ("/checkout/1", &[], 429),
    ] {
        assert_eq!(status(target, fields).await, expected, "{target} {fields:?}");
    }
}

/// No counter goes back when classes come and go with a reload.
#[tokio::test]
async fn counters_by_class_outlive_a_reload() {
    let service = Service::prompt().await;
    let classes = |names: &[&str]| -> String {
        let classes: String = names.iter().map(|name| format!("[[priority]]\nname = \"{name}\"\n")).collect();
        let rule = "[[rate_limit]]\nname = \"none\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 1\n";
        format!("{classes}[[route]]\npath = \"/*\"\npriority = \"{}\"\n{rule}", names[0])
    };
    let policy = Policy::before(service.address);
    let gateway = Gateway::start(&policy.clone().rest(&classes(&["gold", "tin"]))).await;
    gateway.serves("/").await;
    let refused = async |times: u32| {
        for _ in 0..times {
            assert_eq!(ask(gateway.clients, with("/", &[])).await.status(), 429);
        }
    };
    let count = async |class: &str| {
        let name =
            format!("tidegate_rejected_total{{route=\"/*\",priority=\"{class}\",reason=\"rate_limited\"}}");
        let stats = gateway.admin("/api/stats").await.json();
        let by_class = stats["upstreams"]["service"]["rejected_by_priority"][class].as_f64().unwrap();
        (gateway.metric(&name).await, by_class)
    };
    refused(2).await;
    assert_eq!(count("gold").await, (2.0, 2.0));
    gateway.reload(&policy.clone().rest(&classes(&["iron", "tin"]))).await;
    refused(1).await;
    assert_eq!((count("gold").await, count("iron").await), ((2.0, 2.0), (1.0, 1.0)));
    gateway.reload(&policy.rest(&classes(&["tin", "gold"]))).await;
    gateway.reload(&Policy::before(service.address).rest(&classes(&["gold"]))).await;
    refused(1).await;
    assert_eq!((count("gold").await, count("iron").await), ((3.0, 3.0), (1.0, 1.0)));
}
