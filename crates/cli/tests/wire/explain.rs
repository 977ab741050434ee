//! `explain`: what a policy would do with a request, for readers and for programs.

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::ran::{File, Ran, run};

const POLICY: &str = r#"
[server]
trusted_proxies = ["10.0.0.0/8"]
prefetch_priority = "background"
[[upstream]]
name = "orders"
endpoints = ["http://127.0.0.1:8103"]
[upstream.fairness]
tenant_share = 0.5
[[upstream]]
name = "reports"
endpoints = ["http://127.0.0.1:8104"]
timeout = "10s"
[upstream.concurrency]
limit = 4
[upstream.queue]
capacity = 16
discipline = "codel"
[upstream.retries]
damp = false
[[tenant]]
name = "acme"
weight = 3
[[route]]
path = "/checkout/*"
methods = ["POST"]
upstream = "orders"
priority = "critical"
tenant = "header:x-tenant"
concurrency = 40
deadline = "800ms"
[[route]]
path = "/healthz"
upstream = "orders"
exempt = true
[[route]]
path = "/reports/*"
upstream = "reports"
priority = "header:x-class"
cost = 2
[[rate_limit]]
name = "per-tenant"
key = "tenant"
rate = "10/s"
burst = 20
paths = ["/checkout/*"]
[[rate_limit]]
name = "per-client"
key = "client-ip"
rate = "600/min"
"#;

fn explain(arguments: &[&str]) -> Ran {
    let file = File::with(POLICY);
    run(&[&["explain", file.path()], arguments].concat())
}

#[track_caller]
fn says(arguments: &[&str], expected: Expect) {
    let ran = explain(arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    expected.assert_eq(&ran.out);
}

#[test]
fn what_becomes_of_a_request() {
    says(
        &["--request", "POST /x/..//checkout/7?a=1", "-H", "X-Tenant: acme"],
        expect![[r#"
            POST /x/..//checkout/7?a=1

              route         POST /checkout/*, to orders
              passed on as  /checkout/7?a=1
              client        127.0.0.1
              class         critical (1 of 3): that of the route
              tenant        acme, by `x-tenant`, of weight 3
              cost          1 slot
              attempt       the first; nothing would tell another try from another request
              rate limit    per-tenant: 10 in 1s, 20 at once, for the tenant acme
              rate limit    per-client: 600 in 60s, 10 at once, for the client 127.0.0.1
              bulkhead      at most 40 of the route inside, then 503
              deadline      800ms, says the route; the upstream has 2s to answer, then 504
              breaker       opens after 5 connections in a row that fail, or when 0.8 of at least 20 requests in 3s fail; then 503
              limit         adaptive (ebb), from 2 to 1000, at first 10
              queue         at most 500ms, as many places as can be served in that time, discipline forecast
              tenant share  at most 0.5 of the limit while it binds
        "#]],
    );
    says(
        &[
            "--request",
            "POST /checkout",
            "--client",
            "2001:db8::7",
            "-H",
            "x-envoy-attempt-count: 2",
            "-H",
            "grpc-timeout: 200m",
        ],
        expect![[r#"
            POST /checkout

              route         POST /checkout/*, to orders
              passed on as  /checkout
              client        2001:db8::7
              class         critical (1 of 3): that of the route
              tenant        one with all who have no `x-tenant` that is believed
              cost          1 slot
              attempt       a retry by `x-envoy-attempt-count`: it ranks below first tries, and a budget of 10 % and 1 a second pays for it
              rate limit    per-tenant: 10 in 1s, 20 at once, for all without a tenant
              rate limit    per-client: 600 in 60s, 10 at once, for the client 2001:db8::/64
              bulkhead      at most 40 of the route inside, then 503
              deadline      200ms, says grpc-timeout; the upstream has 2s to answer, then 504
              breaker       opens after 5 connections in a row that fail, or when 0.8 of at least 20 requests in 3s fail; then 503
              limit         adaptive (ebb), from 2 to 1000, at first 10
              queue         at most 500ms, as many places as can be served in that time, discipline forecast
              tenant share  at most 0.5 of the limit while it binds
        "#]],
    );
    // Whom a trusted proxy speaks for, and what it says.
    says(
        &[
            "--request",
            "/reports/1",
            "--client",
            "10.1.2.3",
            "-H",
            "x-forwarded-for: 203.0.113.7",
            "-H",
            "x-class: critical",
            "-H",
            "cookie: a=1",
        ],
        expect![[r#"
            GET /reports/1

              route         /reports/*, to reports
              passed on as  /reports/1
              client        203.0.113.7, as a trusted proxy tells it
              class         critical (1 of 3): `x-class` says so
              tenant        nobody is told from anybody
              cost          2 slots
              attempt       first or not makes no difference
              rate limit    per-client: 600 in 60s, 10 at once, for the client 203.0.113.7
              deadline      none is said; the upstream has 10s to answer, then 504
              breaker       opens after 5 connections in a row that fail, or when 0.8 of at least 20 requests in 3s fail; then 503
              limit         4 slots
              queue         at most 500ms, 16 places, discipline codel
        "#]],
    );
    says(
        &["--request", "GET /reports/1", "-H", "x-class: critical"],
        expect![[r#"
            GET /reports/1

              route         /reports/*, to reports
              passed on as  /reports/1
              client        127.0.0.1
              class         default (2 of 3): `x-class` says critical, and a client that is no trusted proxy may claim at most default
              tenant        nobody is told from anybody
              cost          2 slots
              attempt       first or not makes no difference
              rate limit    per-client: 600 in 60s, 10 at once, for the client 127.0.0.1
              deadline      none is said; the upstream has 10s to answer, then 504
              breaker       opens after 5 connections in a row that fail, or when 0.8 of at least 20 requests in 3s fail; then 503
              limit         4 slots
              queue         at most 500ms, 16 places, discipline codel
        "#]],
    );
    says(
        &["--request", "GET /healthz HTTP/1.1", "-H", "sec-purpose: prefetch"],
        expect![[r#"
            GET /healthz

              route         /healthz, to orders
              passed on as  /healthz
              client        127.0.0.1
              exempt        it takes no slot and uses no rate limit; at most 256 at once
              deadline      none is said; the upstream has 2s to answer, then 504
        "#]],
    );
}

#[test]
fn what_is_refused_before_it_has_a_route() {
    says(
        &["--request", "GET /checkout"],
        expect![[r#"
        GET /checkout

          route         none is for /checkout
          answer        404 with the reason `not_found`; nothing is sent to any upstream
    "#]],
    );
    says(
        &["--request", "CONNECT example:80"],
        expect![[r#"
        CONNECT example:80

          answer        501: CONNECT asks for a tunnel; this is a gateway
    "#]],
    );
    says(
        &["--request", "GET /%00"],
        expect![[r#"
        GET /%00

          answer        400: the path has a control character or a backslash
    "#]],
    );
}

#[test]
fn for_programs() {
    let json = |arguments: &[&str]| -> Value { explain(&[arguments, &["--json"]].concat()).json() };
    expect![[r#"
        {
          "bulkhead": {
            "max": 40,
            "status": 503
          },
          "client": "127.0.0.1",
          "cost": 1,
          "deadline_from": "the route",
          "deadline_ms": 800.0,
          "exempt": false,
          "priority": {
            "because": "that of the route",
            "floor": 0.0,
            "name": "critical"
          },
          "rate_limits": [
            {
              "burst": 20,
              "count": 10,
              "counted": "the tenant acme",
              "name": "per-tenant",
              "period_ms": 1000.0
            },
            {
              "burst": 10,
              "count": 600,
              "counted": "the client 127.0.0.1",
              "name": "per-client",
              "period_ms": 60000.0
            }
          ],
          "recognised": false,
          "retry": null,
          "route": "POST /checkout/*",
          "target": "/checkout/7",
          "tenant": {
            "header": "x-tenant",
            "name": "acme",
            "weight": 3
          },
          "trusted": false,
          "upstream": {
            "algorithm": "ebb",
            "breaker": {
              "connect_failures": 5,
              "failure_ratio": 0.8,
              "min_requests": 20,
              "window_ms": 3000.0
            },
            "capacity": null,
            "discipline": "forecast",
            "limit": "adaptive",
            "name": "orders",
            "retries": {
              "burst": 20,
              "damp": true,
              "per_second": 1,
              "percent": 10
            },
            "tenant_share": 0.5,
            "timeout_ms": 2000.0,
            "wait_ms": 500.0
          }
        }
    "#]]
    .assert_eq(&format!("{:#}\n", json(&["--request", "POST /checkout/7", "-H", "x-tenant: acme"])));
    let nowhere = json(&["--request", "GET /nowhere"]);
    assert_eq!((&nowhere["status"], &nowhere["reason"]), (&404.into(), &"not_found".into()));
}

#[test]
fn what_is_no_request() {
    for (arguments, says) in [
        (&["--request", ""][..], "is not a request"),
        (&["--request", "GET"], "is not a request"),
        (&["--request", "GET / HTTP/1.1 x"], "is not a request"),
        (&["--request", "G@T /"], "is not a request"),
        (&["--request", "GET /a b"], "is not a request"),
        (&["--request", "GET /", "-H", "x-tenant"], "is not a field"),
        (&["--request", "GET /", "-H", "x tenant: a"], "is not a field"),
        (&["--request", "GET /", "--client", "here"], "--client"),
        (&[], "--request"),
    ] {
        let ran = explain(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.err.contains(says), "{arguments:?}: {}", ran.err);
    }
    let wrong = File::with("[[upstream]]");
    assert_eq!(run(&["explain", wrong.path(), "--request", "GET /"]).code, 78);
    assert_eq!(run(&["explain", "/nowhere.toml", "--request", "GET /"]).code, 78);
}
