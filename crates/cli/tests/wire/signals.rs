//! What answers say about limits, whether it is true, and what upstreams say about themselves.

use std::time::Duration;

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Message;
use crate::service::{Script, Service};
use crate::wait::turn;

const LIMIT: &str = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/h\"\nburst = 2\n";

/// The lines of these fields.
fn fields(answer: &Message, names: &[&str]) -> Vec<String> {
    let named = |name: &str| names.iter().any(|wanted| name.eq_ignore_ascii_case(wanted));
    let lines = answer.head.fields.iter().filter(|(name, _)| named(name));
    lines.map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase())).collect()
}

const DRAFT: [&str; 2] = ["ratelimit-policy", "ratelimit"];
const OLDER: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// By default a 429 says which limit it was, how much that lets through, and when to come back; in the body too.
#[tokio::test]
async fn a_429_says_what_was_exceeded() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address).rest(LIMIT)).await;
    for _ in 0..2 {
        assert!(fields(&ask(gateway.clients, get("/")).await, &DRAFT).is_empty(), "only refusals do");
    }
    let refusal = ask(gateway.clients, get("/")).await;
    assert_eq!(refusal.status(), 429);
    assert_eq!(
        fields(&refusal, &DRAFT),
        ["ratelimit-policy: \"all\";q=2;w=7200", "ratelimit: \"all\";r=0;t=60"]
    );
    assert_eq!(refusal.head.field("retry-after"), Some("60"), "and does not contradict itself");
    let problem = refusal.json();
    assert_eq!(problem["violated-policies"], serde_json::json!(["all"]));
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["reason"], "rate_limited");

    let silent = Policy::before(service.address).server("ratelimit_headers = \"off\"").rest(LIMIT);
    let gateway = Gateway::start(&silent).await;
    for _ in 0..3 {
        assert!(fields(&ask(gateway.clients, get("/")).await, &[DRAFT[0], DRAFT[1], OLDER[0]]).is_empty());
    }
}

/// By policy every answer says what is left, of each limit that applies; what the upstream says of its own stays.
#[tokio::test]
async fn answers_say_what_is_left() {
    let script = Script::start().await;
    let rules =
        format!("{LIMIT}[[rate_limit]]\nname = \"b\"\nkey = \"client-ip\"\nrate = \"10/s\"\nburst = 20\n");
    let policy = Policy::before(script.address).rest(&rules);
    let gateway = Gateway::start(&policy.clone().server("ratelimit_headers_on = \"all\"")).await;
    let mut client = sent(gateway.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nRateLimit: \"theirs\";r=1;t=9\r\nRateLimit-Policy: \"theirs\";q=1;w=9\r\nContent-Length: 0\r\n\r\n")
        .await;
    let answer = client.message().await;
    let mut said = fields(&answer, &DRAFT);
    said.sort();
    assert_eq!(
        said,
        [
            "ratelimit-policy: \"all\";q=2;w=7200",
            "ratelimit-policy: \"b\";q=20;w=2",
            "ratelimit-policy: \"theirs\";q=1;w=9",
            "ratelimit: \"all\";r=1;t=3600",
            "ratelimit: \"b\";r=19;t=2",
            "ratelimit: \"theirs\";r=1;t=9",
        ]
    );

    // The older fields know one limit, and the upstream's own word stands.
    let older = "ratelimit_headers_on = \"all\"\nratelimit_headers = \"x-ratelimit\"";
    let gateway = Gateway::start(&policy.server(older)).await;
    let mut client = connect(gateway.clients).await;
    for (own, expected) in [
        ("", &["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1", "x-ratelimit-reset: 3600"][..]),
        ("X-RateLimit-Remaining: 7\r\n", &["x-ratelimit-remaining: 7"]),
    ] {
        client.send(get("/")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        upstream
            .send(format!("HTTP/1.1 200 OK\r\n{own}Connection: close\r\nContent-Length: 0\r\n\r\n"))
            .await;
        let mut said = fields(&client.message().await, &OLDER);
        said.sort();
        assert_eq!(said, expected);
    }
    let refusal = client.get("/").await;
    assert_eq!((refusal.status(), refusal.head.field("x-ratelimit-remaining")), (429, Some("0")));
    assert_eq!(refusal.head.field("x-ratelimit-reset"), refusal.head.field("retry-after"));
}

/// Where the policy says so, clients learn how much may be in flight, and how much of it is free.
#[tokio::test]
async fn the_limit_is_told_where_it_is_to_be() {
    let service = Service::held().await;
    let policy = Policy::before(service.address).limit(2);
    let gateway = Gateway::start(&policy.clone().upstream("timeout = \"20s\"\nadvertise_limit = true")).await;
    let mut held = sent(gateway.clients, get("/1")).await;
    service.until_asked(1).await;
    let mut second = sent(gateway.clients, get("/2")).await;
    service.until_asked(2).await;
    let refusal = ask(gateway.clients, get("/3")).await;
    assert_eq!(refusal.status(), 503);
    let policy_says = "ratelimit-policy: \"concurrency:service\";q=2;qu=\"concurrent-requests\"";
    assert_eq!(fields(&refusal, &DRAFT), [policy_says, "ratelimit: \"concurrency:service\";r=0"]);
    service.release(2);
    assert!(fields(&held.message().await, &DRAFT).is_empty());
    assert_eq!(second.message().await.status(), 200);

    let quiet = Gateway::start(&policy.limit(1)).await;
    let mut held = sent(quiet.clients, get("/1")).await;
    service.until_asked(3).await;
    assert!(fields(&ask(quiet.clients, get("/2")).await, &DRAFT).is_empty(), "strangers need not know");
    service.release(1);
    assert_eq!(held.message().await.status(), 200);
}

/// H10. Whoever is refused beside others is told another time than they are, to the millisecond.
#[tokio::test]
async fn those_who_are_refused_together_are_told_different_times() {
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"1/s\"\nburst = 1\n";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rule)).await;
    let mut wire = connect(gateway.clients).await;
    assert_eq!(wire.get("/").await.status(), 200);
    let mut told: Vec<u64> = Vec::new();
    for _ in 0..100 {
        let refusal = wire.get("/").await;
        if refusal.status() == 429 {
            told.push(refusal.head.field("retry-after-ms").unwrap().parse().unwrap());
        }
    }
    assert!(told.len() >= 70, "{} of a hundred in less than thirty seconds", told.len());
    assert!(told.iter().all(|told| *told <= 60_000));
    // A second apart, less the time that has passed; beyond the longest, all over the second half of it.
    assert!(told[..30].is_sorted_by(|one, next| next > one), "{told:?}");
    let beyond = &told[60..];
    assert!(beyond.iter().all(|told| *told >= 30_000), "{beyond:?}");
    let mut apart = beyond.to_vec();
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), beyond.len(), "{beyond:?}");
}

/// H4. What the upstream says in `Retry-After`, be it nonsense, is for its clients: it is not acted upon here and passes as
/// it came, and our own refusals say what they say.
#[tokio::test]
async fn the_upstreams_retry_after_is_its_own() {
    let script = Script::start().await;
    let gateway =
        Gateway::start(&Policy::before(script.address).rest(LIMIT.replace("= 2", "= 8").as_str())).await;
    let dates = ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"];
    let mut client = connect(gateway.clients).await;
    for value in ["0", "9223372037", "1e30", "12x", "-1", ""].into_iter().chain(dates) {
        client.send(get("/")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        let head = format!("Retry-After: {value}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        upstream.send(format!("HTTP/1.1 503 Service Unavailable\r\n{head}")).await;
        let answer = client.message().await;
        assert_eq!((answer.status(), answer.head.field("retry-after")), (503, Some(value)));
    }
    assert_eq!(client.get("/").await.head.field("retry-after"), Some("60"));
}

/// What is measured: whoever comes back when told to and is let in, or refused again, and whoever comes before.
#[tokio::test]
async fn who_comes_back_when_told_is_counted() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"header:x-key\"\nrate = \"2/s\"\nburst = 1\n";
    let gateway = Gateway::start(&Policy::before(service.address).rest(rule)).await;
    let count = async |status: &str, result: &str| {
        let name = format!("tidegate_told_returns_total{{status=\"{status}\",result=\"{result}\"}}");
        gateway.metric(&name).await
    };
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\nCookie: me\r\n\r\n");
    let mut wire = connect(gateway.clients).await;
    wire.send(request("/")).await;
    assert_eq!(wire.message().await.status(), 200);
    // Nobody has been told anything so far, and whoever is another request was not.
    wire.send(request("/mine")).await;
    let refusal = wire.message().await;
    assert_eq!(refusal.status(), 429);
    let millis: u64 = refusal.head.field("retry-after-ms").unwrap().parse().unwrap();
    wire.send(request("/another")).await;
    assert_eq!(wire.message().await.status(), 429);
    assert_eq!(count("429", "early").await, 0.0);
    tokio::time::sleep(Duration::from_millis(millis + 1)).await;
    wire.send(request("/mine")).await;
    assert_eq!(wire.message().await.status(), 200);
    assert_eq!(count("429", "admitted").await, 1.0);
    // This one is another request, and takes no notice of what it was told.
    for _ in 0..2 {
        wire.send(request("/rude")).await;
        assert_eq!(wire.message().await.status(), 429);
    }
    assert_eq!(count("429", "early").await, 1.0);
    assert_eq!((count("429", "refused").await, count("503", "admitted").await), (0.0, 0.0));
}

/// A report that the upstream is too busy lowers the limit, whatever else it says; and clients do not get to see it.
#[tokio::test]
async fn a_busy_upstream_says_so() {
    let script = Script::start().await;
    let policy = Policy::before(script.address);
    let listening = policy.clone().adaptive("initial = 8\nmax = 8\norca_utilization = 0.5");
    let gateway = Gateway::start(&listening).await;
    let limit = async || gateway.metric("tidegate_limit{upstream=\"service\"}").await;
    let mut client = connect(gateway.clients).await;
    let long = format!("TEXT cpu_utilization=5, named_metrics.x={}", "1".repeat(10_000));
    let mut answer = async |report: &str| {
        client.send(get("/")).await;
        let mut upstream = script.accept().await;
        upstream.message().await;
        let head =
            format!("endpoint-load-metrics: {report}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        upstream.send(format!("HTTP/1.1 200 OK\r\n{head}")).await;
        let answer = client.message().await;
        assert_eq!(answer.status(), 200, "{report}");
        assert_eq!(answer.head.field("endpoint-load-metrics"), None);
    };
    for nonsense in ["TEXT cpu_utilization=NaN", "TEXT cpu_utilization=-1", "JSON {", "BIN AAAA", &long] {
        answer(nonsense).await;
        assert_eq!(limit().await, 8.0, "{nonsense}");
    }
    // The first report counts as it is; those after it are smoothed over time.
    answer("JSON {\"application_utilization\": 5.0, \"cpu_utilization\": 0.1}").await;
    answer("TEXT cpu_utilization=1e308").await;
    assert_eq!(limit().await, 1.0, "one in flight at ten times what it should be, and never less than one");

    // Who does not ask for it is not affected, and passes it on.
    let deaf = Gateway::start(&policy).await;
    let mut client = sent(deaf.clients, get("/")).await;
    let mut upstream = script.accept().await;
    upstream.message().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nEndpoint-Load-Metrics: TEXT cpu_utilization=9\r\nContent-Length: 0\r\n\r\n")
        .await;
    let answer = client.message().await;
    assert_eq!(answer.head.field("endpoint-load-metrics"), Some("TEXT cpu_utilization=9"));
    assert_eq!(deaf.metric("tidegate_limit{upstream=\"service\"}").await, 4.0);
}
