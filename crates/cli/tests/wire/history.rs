//! What has happened lately, as operators and their tools read it: samples, events, who is refused most.

use serde_json::Value;

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy, operators_get};
use crate::message::Wire;
use crate::service::Service;
use crate::wait::until;

/// The next event with data, and its number.
async fn event(wire: &mut Wire) -> (u64, Value) {
    let mut lines = String::new();
    while !lines.contains("data: ") {
        lines.push_str(&String::from_utf8(wire.chunk().await).unwrap());
    }
    // Each event is sent whole.
    let event = lines.rsplit_once("event: sample\n").unwrap().1;
    let (id, data) = event.split_once("\ndata: ").unwrap();
    let data = data.strip_suffix("\n\n").unwrap();
    assert!(!data.contains('\n'), "{data}");
    (id.strip_prefix("id: ").unwrap().parse().unwrap(), serde_json::from_str(data).unwrap())
}

/// Samples follow one another, and say together what `/api/stats` counts: nothing is lost and nothing is counted twice.
#[tokio::test]
async fn events_add_up_to_the_counters() {
    let service = Service::held().await;
    let rest = "[[route]]\npath = \"/*\"\npriority = \"critical\"\n";
    let gateway = Gateway::start(&Policy::before(service.address).limit(1).queue(1, "20s").rest(rest)).await;
    let mut follower = sent(gateway.admin, operators_get("/api/live")).await;
    let head = follower.head().await;
    assert_eq!((head.status(), head.field("content-type")), (200, Some("text/event-stream")));
    assert!(follower.chunk().await.starts_with(b"retry: 2000\n"));
    let (before, _) = event(&mut follower).await;
    let mut served = sent(gateway.clients, get("/served")).await;
    service.until_asked(1).await;
    let mut waiting = sent(gateway.clients, get("/waiting")).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    for _ in 0..5 {
        assert_eq!(ask(gateway.clients, get("/refused")).await.reason(), "queue_full");
    }
    let mut sums = [0.0; 4];
    let mut last = before;
    let paths = ["/arrivals", "/refused", "/rejected/queue_full", "/routes/~1*/refused"];
    while sums != [7.0, 5.0, 5.0, 5.0] {
        let (id, sample) = event(&mut follower).await;
        assert_eq!(id, last + 1, "a sample is missing");
        assert_eq!(sample["id"], id);
        last = id;
        let seconds = sample["seconds"].as_f64().unwrap();
        let upstream = &sample["upstreams"]["service"];
        for (sum, path) in sums.iter_mut().zip(paths) {
            *sum = (*sum + upstream.pointer(path).unwrap().as_f64().unwrap() * seconds).round();
        }
        assert!(id < before + 15, "{sums:?} of {sample:#}");
        if sums[0] == 7.0 {
            assert_eq!(upstream["in_flight"], 1);
            assert_eq!((&upstream["queue"]["now"], &upstream["queue"]["capacity"]), (&1.into(), &1.into()));
            assert_eq!(upstream["priorities"]["critical"]["waiting"], 1);
            assert_eq!(
                (&upstream["routes"]["/*"]["now"], &upstream["routes"]["/*"]["max"]),
                (&2.into(), &3.into())
            );
        }
    }
    service.release(2);
    served.message().await;
    waiting.message().await;
    let history = until("the whole in the history", async || {
        let history = gateway.admin("/api/history").await.json();
        let goodput = history["upstreams"]["service"]["goodput"].as_array()?.clone();
        let seconds = history["seconds"].as_array()?.clone();
        let times = goodput.iter().zip(&seconds).map(|(a, b)| a.as_f64().unwrap() * b.as_f64().unwrap());
        (times.sum::<f64>().round() == 2.0).then_some(history)
    })
    .await;
    let length = history["samples"].as_u64().unwrap() as usize;
    assert_eq!(history["id"][0], 1, "the first second is there");
    for path in ["/id", "/at", "/upstreams/service/latency_ms/minute/p99", "/upstreams/service/little/l"] {
        assert_eq!(history.pointer(path).unwrap().as_array().unwrap().len(), length, "{path}");
    }
    // Words are words here too. How full it was in five seconds is a matter of when they began.
    let words = |path: &str| history.pointer(path).unwrap().as_array().unwrap().clone();
    let kinds = words("/upstreams/service/verdict/kind");
    assert_eq!(kinds.len(), length);
    assert!(kinds.contains(&"refuses".into()) || kinds.contains(&"full".into()), "{kinds:?}");
    assert!(words("/upstreams/service/verdict/reason").contains(&"queue_full".into()), "{history:#}");
    let minute = history.pointer("/upstreams/service/latency_ms/minute/p50").unwrap().as_array().unwrap();
    assert!(minute.last().unwrap().as_f64().is_some_and(|p50| p50 > 0.0), "{minute:?}");
    let last = gateway.admin("/api/history?seconds=2").await.json();
    assert_eq!(last["samples"], 2);
    assert_eq!(gateway.admin("/api/history?seconds=x").await.status(), 400);
}

/// Those who follow have a bound of their own, and its places come back.
#[tokio::test]
async fn so_many_follow_and_no_more() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let mut followers = Vec::new();
    for _ in 0..32 {
        let mut follower = sent(gateway.admin, operators_get("/api/live")).await;
        assert_eq!(follower.head().await.status(), 200);
        followers.push(follower);
    }
    let refused = gateway.admin("/api/live").await;
    assert_eq!((refused.status(), refused.head.field("retry-after")), (503, Some("10")));
    assert_eq!(gateway.admin("/livez").await.status(), 200);
    drop(followers);
    until("a place", async || {
        let mut follower = sent(gateway.admin, operators_get("/api/live")).await;
        (follower.head().await.status() == 200).then_some(())
    })
    .await;
}

/// Names of tenants and keys are whatever clients send: they come out as data, cut to a length.
#[tokio::test]
async fn whoever_is_refused_most_is_named() {
    let service = Service::prompt().await;
    let rest = "[[route]]\npath = \"/*\"\ntenant = \"header:x-tenant\"\n\
                [[rate_limit]]\nname = \"each\"\nkey = \"tenant\"\nrate = \"1/h\"\nburst = 1\n";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rest)).await;
    let from = |tenant: &str| format!("GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: {tenant}\r\n\r\n");
    let (hostile, long) = ("<script>alert(1)</script>", "x".repeat(5000));
    for (tenant, times) in [(hostile, 4), (long.as_str(), 3), ("quiet", 1)] {
        for _ in 0..times {
            ask(gateway.clients, from(tenant)).await;
        }
    }
    for (by, group, name) in [("rate_limit", "rate_limit", "each"), ("tenant", "upstream", "service")] {
        let top = gateway.admin(&format!("/api/top?by={by}")).await.json()["top"].as_array().unwrap().clone();
        let keys: Vec<_> =
            top.iter().map(|it| (it["key"].as_str().unwrap(), it["refused"].as_f64().unwrap())).collect();
        let cut = format!("{}…", "x".repeat(64));
        assert_eq!(keys, [(hostile, 3.0), (cut.as_str(), 2.0)]);
        assert_eq!(top[0][group], name);
    }
    assert_eq!(gateway.admin("/api/top?by=path").await.status(), 400);
}

/// What may be a credential is told apart, and is not told to whoever reaches the admin address.
#[tokio::test]
async fn keys_of_customers_are_not_shown() {
    let service = Service::prompt().await;
    let rest = "[[route]]\npath = \"/*\"\ntenant = \"header:authorization\"\n\
                [[rate_limit]]\nname = \"each\"\nkey = \"header:x-api-key\"\nrate = \"1/h\"\nburst = 1\n\
                [[rate_limit]]\nname = \"tenants\"\nkey = \"tenant\"\nrate = \"1/d\"\nburst = 2\n";
    let gateway =
        Gateway::start(&Policy::before(service.address).server("untrusted_tenants = true").rest(rest)).await;
    let from = |key: &str| {
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nAuthorization: Bearer secret-of-{key}\r\n\r\n"
        )
    };
    for key in ["sk-live-0123456789abcdef", "sk-live-fedcba9876543210"] {
        for _ in 0..2 {
            ask(gateway.clients, from(key)).await;
        }
    }
    // With a fresh key each time, so that it is the tenant who is over the limit.
    for number in 0..3 {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Api-Key: {number}\r\n\
             Authorization: Bearer secret-of-sk-live-0123456789abcdef\r\n\r\n"
        );
        ask(gateway.clients, request).await;
    }
    for (by, count, beginning) in
        [("rate_limit", 3, ["x-api-key: sk-l… (", "Bear… ("]), ("tenant", 2, ["Bear… (", "Bear… ("])]
    {
        let answer = gateway.admin(&format!("/api/top?by={by}")).await;
        assert!(!answer.text().contains("live") && !answer.text().contains("secret"), "{}", answer.text());
        let top = answer.json()["top"].as_array().unwrap().clone();
        let mut keys: Vec<&str> = top.iter().map(|it| it["key"].as_str().unwrap()).collect();
        assert!(keys.iter().all(|key| beginning.iter().any(|it| key.starts_with(it))), "{keys:?}");
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "{keys:?}");
    }
}
