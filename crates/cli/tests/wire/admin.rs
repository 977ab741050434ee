//! The admin address for those who use it, and for those who should not: tokens, browsers of others, questions.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy, fresh_path};
use crate::message::Message;
use crate::service::Service;
use crate::wait::until;

const TOKEN: &str = "0123456789abcdef-token";

fn request(method: &str, target: &str, fields: &str, body: &str) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn with_token(service: &Service, token: &str) -> (Policy, PathBuf) {
    let file = fresh_path("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    (Policy::before(service.address).server(&format!("admin_token_file = {file:?}")), file)
}

async fn change(gateway: &Gateway, target: &str, token: &str) -> Message {
    let fields = format!("Authorization: Bearer {token}\r\n");
    ask(gateway.admin, request("POST", target, &fields, "")).await
}

/// K9. A limit is set and given back, by whoever knows the token and by nobody else; the token can be exchanged.
#[tokio::test]
async fn a_limit_is_set_with_the_token_only() {
    let service = Service::prompt().await;
    let (policy, file) = with_token(&service, TOKEN);
    let gateway = Gateway::start(&policy).await;
    let target = "/api/limit?upstream=service&limit=7";
    let plain = ask(gateway.admin, request("POST", target, "", "")).await;
    assert_eq!(
        (plain.status(), plain.head.field("www-authenticate")),
        (401, Some("Bearer realm=\"tidegate\""))
    );
    for wrong in ["x", "0123456789abcdef-tokeN", "0123456789abcdef-token0", "0123456789abcdef-toke"] {
        assert_eq!(change(&gateway, target, wrong).await.status(), 403, "{wrong}");
    }
    let elsewhere = format!("Authorization: Bearer {TOKEN}\r\nOrigin: http://evil.example\r\n");
    assert_eq!(ask(gateway.admin, request("POST", target, &elsewhere, "")).await.status(), 403);
    assert_eq!(gateway.stats().await.get("limit"), 4);
    assert_eq!(change(&gateway, target, TOKEN).await.status(), 200);
    assert_eq!(gateway.stats().await.get("limit"), 7);
    let policy = gateway.admin("/api/policy").await.json();
    assert_eq!(
        (&policy["upstreams"][0]["is_set"], &policy["upstreams"][0]["policy_limit"]),
        (&true.into(), &4.into())
    );
    let limit = |it: &&Value| it["section"] == "[upstream.concurrency]" && it["key"] == "limit";
    let setting = policy["settings"].as_array().unwrap().iter().find(limit).unwrap();
    assert_eq!((&setting["value"], &setting["from"]), (&"7".into(), &json!({ "kind": "operator" })));
    // Another thread writes it.
    let said = "127.0.0.1 set the limit of service over the admin address to 7";
    until(said, async || gateway.process.said().contains(said).then_some(())).await;

    std::fs::write(&file, "another-token-of-24-chars\n").unwrap();
    let back = "/api/limit?upstream=service&limit=policy";
    assert_eq!(change(&gateway, back, TOKEN).await.status(), 403);
    assert_eq!(change(&gateway, back, "another-token-of-24-chars").await.status(), 200);
    assert_eq!(gateway.stats().await.get("limit"), 4);
    for wrong in ["limit=0", "limit=x", "limit=1000001", "limit="] {
        let answer =
            change(&gateway, &format!("/api/limit?upstream=service&{wrong}"), "another-token-of-24-chars")
                .await;
        assert_eq!(answer.status(), 400, "{wrong}");
    }
    let nobody = change(&gateway, "/api/limit?upstream=nobody&limit=1", "another-token-of-24-chars").await;
    assert_eq!(nobody.status(), 404);
    std::fs::write(&file, "short\n").unwrap();
    assert_eq!(change(&gateway, back, "short").await.status(), 503, "a token that is too short is none");
    std::fs::remove_file(file).unwrap();
    assert_eq!(change(&gateway, back, "short").await.status(), 503);
}

/// What an operator sets outlives no reload.
#[tokio::test]
async fn a_reload_ends_what_was_set() {
    let service = Service::prompt().await;
    let (policy, file) = with_token(&service, TOKEN);
    let gateway = Gateway::start(&policy).await;
    change(&gateway, "/api/limit?upstream=service&limit=7", TOKEN).await;
    gateway.reload(&policy.clone().limit(5)).await;
    assert_eq!(gateway.stats().await.get("limit"), 5);
    std::fs::remove_file(file).unwrap();
}

/// K1. To drain over the admin address is what SIGTERM is: what runs ends, and then the process does.
#[tokio::test]
async fn it_drains_and_ends() {
    let service = Service::held().await;
    let (policy, file) = with_token(&service, TOKEN);
    let mut gateway = Gateway::start(&policy).await;
    let mut served = sent(gateway.clients, get("/served")).await;
    service.until_asked(1).await;
    assert_eq!(change(&gateway, "/api/drain", "0123456789abcdef-nokey").await.status(), 403);
    assert_eq!(gateway.admin("/readyz").await.status(), 200);
    assert_eq!(change(&gateway, "/api/drain", TOKEN).await.json()["stage"], "draining");
    assert_eq!(gateway.admin("/readyz").await.status(), 503);
    service.release(1);
    assert_eq!(served.message().await.status(), 200);
    assert_eq!(gateway.process.ended().await.code(), Some(0));
    std::fs::remove_file(file).unwrap();
}

/// Without a token nothing can be changed, and whoever tries is told how that is allowed.
#[tokio::test]
async fn nothing_is_changed_without_a_token() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    for target in ["/api/drain", "/api/limit?upstream=service&limit=1"] {
        let answer = change(&gateway, target, "").await;
        assert_eq!(answer.status(), 403);
        assert!(answer.text().contains("admin_token_file"), "{}", answer.text());
        assert_eq!(gateway.admin(target).await.head.field("allow"), Some("POST"));
    }
    assert_eq!(gateway.stats().await.get("limit"), 4);
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE"] {
        let answer = ask(gateway.admin, request(method, "/api/drain", "", "")).await;
        assert_eq!((answer.status(), answer.head.field("allow")), (405, Some("GET, HEAD, POST")), "{method}");
    }
    assert_eq!(ask(gateway.admin, request("POST", "/api/stats", "", "")).await.status(), 405);
    assert_eq!(gateway.admin("/readyz").await.status(), 200);
}

/// K9, CVE-2018-5702. A name that somebody has made to point here does not open the page; probes come by any name.
#[tokio::test]
async fn another_name_is_not_us() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let by = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for target in ["/", "/api/live", "/api/history", "/api/policy", "/api/top?by=tenant", "/assets/main.js"] {
        assert_eq!(ask(gateway.admin, by(target, "evil.example:8101")).await.status(), 421, "{target}");
    }
    let asked = "POST /api/explain HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(ask(gateway.admin, asked).await.status(), 421);
    for target in ["/livez", "/readyz", "/metrics", "/api/stats"] {
        assert_eq!(ask(gateway.admin, by(target, "gateway.internal")).await.status(), 200, "{target}");
    }
    for host in ["localhost", "127.0.0.1:8101", "[::1]:8101"] {
        assert_eq!(ask(gateway.admin, by("/", host)).await.status(), 200, "{host}");
    }
}

/// K9. An address that stands for all of them has that on loopback among them; a name that the policy has is us.
#[tokio::test]
async fn on_every_address_only_known_names_are_us() {
    let service = Service::prompt().await;
    let known = "admin_hosts = [\"gateway.internal\"]";
    let every = "0.0.0.0:0".parse().unwrap();
    let gateway = Gateway::start(&Policy::before(service.address).admin(every).server(known)).await;
    let by = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (host, status) in
        [("evil.example:8101", 421), ("gateway.internal:8101", 200), ("localhost", 200), ("127.0.0.1", 200)]
    {
        assert_eq!(ask(gateway.admin, by("/api/policy", host)).await.status(), status, "{host}");
        assert_eq!(ask(gateway.admin, by("/metrics", host)).await.status(), 200, "{host}");
    }
}

/// Everything is sent with what keeps a browser from taking text for code; the page is sent once.
#[tokio::test]
async fn browsers_are_told_what_to_trust() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    for target in ["/", "/assets/main.js", "/api/policy", "/api/stats", "/livez", "/nowhere"] {
        let answer = gateway.admin(target).await;
        let policy = answer.head.field("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{target}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.head.field(name), Some(value), "{target}");
        }
    }
    let page = gateway.admin("/assets/main.js").await;
    assert_eq!(page.head.field("content-type"), Some("text/javascript; charset=utf-8"));
    let tag = page.head.field("etag").unwrap();
    let again = format!(
        "GET /assets/main.js HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"other\", {tag}\r\nConnection: close\r\n\r\n"
    );
    let mut wire = sent(gateway.admin, again).await;
    assert_eq!(wire.head().await.status(), 304);
    let mut wire =
        sent(gateway.admin, "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    let head = wire.head().await;
    assert_eq!((head.status(), head.field("content-type")), (200, Some("text/html; charset=utf-8")));
    wire.closed().await;
}

async fn question(gateway: &Gateway, target: &str, question: &Value) -> Message {
    let fields = "Content-Type: application/json\r\n";
    ask(gateway.admin, request("POST", target, fields, &question.to_string())).await
}

/// The same as `tidegate explain`, of the policy in force.
#[tokio::test]
async fn a_request_is_explained() {
    let service = Service::prompt().await;
    let rest = "[[route]]\npath = \"/checkout/*\"\nmethods = [\"POST\"]\npriority = \"critical\"\n\
                [[route]]\npath = \"/*\"\n[[rate_limit]]\nname = \"each\"\nkey = \"client-ip\"\nrate = \"10/s\"\n";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
    let asked = json!({ "request": "curl -d x=1 http://shop/checkout/1?a=b", "client": "192.0.2.7" });
    let said = question(&gateway, "/api/explain", &asked).await.json();
    assert_eq!(said["route"], "POST /checkout/*");
    assert_eq!(said["priority"]["name"], "critical");
    assert_eq!(said["rate_limits"][0]["counted"], "the client 192.0.2.7");
    let nowhere = question(&gateway, "/api/explain", &json!({ "request": "GET /a/%zz" })).await.json();
    assert_eq!(nowhere["status"], 400);
    for wrong in [
        json!({}),
        json!({ "request": "checkout" }),
        json!({ "request": "/", "client": "nobody" }),
        json!([1]),
    ] {
        let answer = question(&gateway, "/api/explain", &wrong).await;
        assert_eq!(answer.status(), 400, "{wrong}");
        assert!(answer.json()["error"].is_string());
    }
    let form = request("POST", "/api/explain", "Content-Type: text/plain\r\n", "{\"request\":\"/\"}");
    assert_eq!(ask(gateway.admin, form).await.status(), 415, "a page of another origin can send that");
    let long = json!({ "request": "x".repeat(20_000) });
    assert_eq!(question(&gateway, "/api/explain", &long).await.status(), 413);
    let broken = request("POST", "/api/explain", "Content-Type: application/json\r\n", "{");
    assert_eq!(ask(gateway.admin, broken).await.status(), 400);
}

/// What came is played again: as many as came, and none of those that a rate limit refused or that come on an exempt route;
/// and that is also what is said to have happened.
#[tokio::test]
async fn what_came_is_played_again() {
    let service = Service::prompt().await;
    let rest = "[[route]]\npath = \"/health\"\nexempt = true\n\
                [[route]]\npath = \"/a\"\npriority = \"critical\"\n[[route]]\npath = \"/*\"\n\
                [[rate_limit]]\nname = \"b\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 3\npaths = [\"/b\"]\n";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
    let nothing = question(&gateway, "/api/whatif", &json!({ "upstream": "service" })).await;
    assert_eq!(nothing.status(), 400);
    assert!(nothing.json()["error"].as_str().unwrap().starts_with("nobody has come"), "{}", nothing.text());
    for _ in 0..6 {
        gateway.serves("/a").await;
        ask(gateway.clients, get("/b")).await;
        gateway.serves("/health").await;
    }
    let asked = json!({ "upstream": "service", "limit": "adaptive", "wait_ms": 50, "priorities": ["background", "default", "critical"] });
    // Who has come is seen ten times a second, and what happened once.
    let said = until("all of them to be seen", async || {
        let said = question(&gateway, "/api/whatif", &asked).await.json();
        let happened = said["happened"]["goodput"].as_f64().is_some_and(|goodput| goodput >= 9.0);
        (said["as_it_is"]["arrivals"] == 9 && happened).then_some(said)
    })
    .await;
    let happened = &said["happened"];
    assert_eq!(
        (&happened["goodput"], &happened["arrivals"], &happened["refused"]),
        (&json!(9.0), &json!(9.0), &json!(0.0))
    );
    assert_eq!(happened["classes"]["default"]["goodput"], 3.0);
    for played in ["as_it_is", "changed"] {
        assert_eq!(said[played]["classes"]["critical"]["arrivals"], 6, "{played}");
        assert_eq!(said[played]["classes"]["default"]["arrivals"], 3, "{played}");
        assert_eq!(said[played]["series"]["goodput"].as_array().unwrap().len(), 120);
    }
    assert_eq!(said["happened"]["series"]["goodput"].as_array().unwrap().len(), 120);
    for wrong in [
        json!({}),
        json!({ "upstream": "service", "limit": 0 }),
        json!({ "upstream": "service", "priorities": ["x"] }),
    ] {
        assert_eq!(question(&gateway, "/api/whatif", &wrong).await.status(), 400, "{wrong}");
    }
}
