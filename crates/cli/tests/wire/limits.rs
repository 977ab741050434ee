//! Rate limits over the wire: who is counted together, whatever somebody writes into a request to be counted apart.

use std::net::SocketAddr;

use crate::client::{ask, connect, connect_from, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::service::Service;
use crate::wait::turn;

/// A rule that lets one request of each key through, practically for ever.
fn once(key: &str, more: &str) -> String {
    format!("[[rate_limit]]\nname = \"{key}\"\nkey = \"{key}\"\nrate = \"1/day\"\nburst = 1\n{more}\n")
        .replacen("name = \"header:", "name = \"header-", 1)
}

async fn limited(service: &Service, rules: &str) -> Gateway {
    Gateway::start(&Policy::before(service.address).rest(rules)).await
}

fn get_with(target: &str, fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

async fn status(to: SocketAddr, request: impl AsRef<[u8]>) -> u16 {
    ask(to, request).await.status()
}

/// Each address by itself, whatever connection it comes on.
#[tokio::test]
async fn by_client_address() {
    let service = Service::prompt().await;
    let gateway = limited(&service, &once("client-ip", "")).await;
    for (from, expected) in [("127.0.0.1", 200), ("127.0.0.2", 200), ("127.0.0.1", 429), ("127.0.0.2", 429)] {
        let mut wire = connect_from(from, gateway.clients).await;
        assert_eq!(wire.get("/").await.status(), expected, "{from}");
        assert_eq!(wire.get("/").await.status(), 429, "{from}");
    }
}

/// Each value of a header by itself; to leave it out is to be one of those who do.
#[tokio::test]
async fn by_header() {
    let service = Service::prompt().await;
    let gateway = limited(&service, &once("header:x-key", "")).await;
    let with = |fields: &[&str]| get_with("/", fields);
    for (fields, expected) in [
        (&["X-Key: a"][..], 200),
        (&["x-key: a"], 429),
        (&["X-Key: b"], 200),
        (&["X-Key: A"], 200),
        (&[], 200),
        (&[], 429),
        (&["X-Key:"], 200),
    ] {
        assert_eq!(status(gateway.clients, with(fields)).await, expected, "{fields:?}");
    }
    let mut other = connect_from("127.0.0.2", gateway.clients).await;
    assert_eq!(other.get("/").await.status(), 429, "those without it share a bucket");
}

/// Each route by itself; everybody together.
#[tokio::test]
async fn by_route_and_globally() {
    let service = Service::prompt().await;
    let routes = "[[route]]\npath = \"/a/*\"\n[[route]]\npath = \"/*\"\n";
    let gateway = limited(&service, &format!("{routes}{}", once("route", ""))).await;
    for (path, expected) in [("/a/1", 200), ("/a/2", 429), ("/b/1", 200), ("/b/2", 429), ("/a", 429)] {
        assert_eq!(status(gateway.clients, get(path)).await, expected, "{path}");
    }
    let gateway = limited(&service, &format!("{routes}{}", once("global", "paths = [\"/a/*\"]"))).await;
    for (path, expected) in [("/a/1", 200), ("/a/2", 429), ("/b/1", 200), ("/b/2", 200)] {
        assert_eq!(status(gateway.clients, get(path)).await, expected, "{path}");
    }
}

/// B7 (envoy#25139). What one rule refuses uses up nothing of another.
#[tokio::test]
async fn a_refusal_counts_against_no_rule() {
    let service = Service::prompt().await;
    let both = once("global", "").replace("burst = 1", "burst = 2") + &once("header:x-key", "");
    let gateway = limited(&service, &both).await;
    let with = |key: &str| get_with("/", &[&format!("X-Key: {key}")]);
    for (key, expected) in [("a", 200), ("a", 429), ("a", 429), ("b", 200), ("c", 429)] {
        assert_eq!(status(gateway.clients, with(key)).await, expected, "{key}");
    }
}

/// C7 (CVE-2025-41235). `X-Forwarded-For` from somebody we have no reason to believe is not read.
#[tokio::test]
async fn nobody_chooses_their_own_address() {
    let service = Service::prompt().await;
    let gateway = limited(&service, &once("client-ip", "")).await;
    assert_eq!(status(gateway.clients, get_with("/", &["X-Forwarded-For: 1.1.1.1"])).await, 200);
    for fields in [
        &["X-Forwarded-For: 2.2.2.2"][..],
        &["X-Forwarded-For: 2.2.2.2", "X-Forwarded-For: 3.3.3.3"],
        &["Forwarded: for=2.2.2.2"],
        &["X-Real-IP: 2.2.2.2"],
        &["X-Forwarded-For: garbage"],
        &[],
    ] {
        assert_eq!(status(gateway.clients, get_with("/", fields)).await, 429, "{fields:?}");
    }
}

/// C7, C9. From a trusted proxy, the right-most hop that is not one counts, in whatever way it is written.
#[tokio::test]
async fn trusted_proxies_are_believed_from_right_to_left() {
    let service = Service::prompt().await;
    let policy = Policy::before(service.address)
        .server("trusted_proxies = [\"127.0.0.0/8\", \"10.0.0.0/8\"]")
        .rest(&once("client-ip", ""));
    let gateway = Gateway::start(&policy).await;
    let hops = vec!["10.1.1.1"; 50].join(", ");
    let fifty = format!("5.5.5.5, {hops}");
    for (lines, expected) in [
        (&["1.1.1.1"][..], 200),
        // What stands to the left of it, the client may have written.
        (&["9.9.9.1, 1.1.1.1"], 429),
        (&["9.9.9.2, 1.1.1.1, 10.0.0.7"], 429),
        (&["9.9.9.3", "1.1.1.1, 10.0.0.7"], 429),
        (&["1.1.1.1:4711"], 429),
        (&["::ffff:1.1.1.1"], 429),
        (&["[::ffff:101:101]:4711"], 429),
        (&["2.2.2.2, 10.0.0.7"], 200),
        (&["2.2.2.2"], 429),
        (&[&fifty], 200),
        (&["5.5.5.5"], 429),
        // One customer's IPv6 network is one.
        (&["2001:db8:0:1::a"], 200),
        (&["2001:db8:0:1::b"], 429),
        (&["[2001:db8:0:1::c]:443"], 429),
        (&["2001:db8:0:1::d%eth0"], 429),
        (&["2001:db8:0:2::a"], 200),
        // It ends with 1.1.1.1, but it is not that.
        (&["2001:db8::1.1.1.1"], 200),
        // What cannot be read ends the walk at the peer, whoever names it.
        (&["9.9.9.4, unknown"], 200),
        (&["9.9.9.5, garbage"], 429),
        (&["9.9.9.6,"], 429),
        (&[""], 429),
        (&[], 429),
    ] {
        let fields: Vec<String> = lines.iter().map(|line| format!("X-Forwarded-For: {line}")).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(status(gateway.clients, get_with("/", &fields)).await, expected, "{lines:?}");
    }
}

/// C8. To name a field in `Connection` does not hide it from a rule.
#[tokio::test]
async fn keys_cannot_be_listed_away() {
    let service = Service::prompt().await;
    let gateway = limited(&service, &once("header:x-key", "")).await;
    assert_eq!(status(gateway.clients, get_with("/", &["X-Key: a"])).await, 200);
    let hidden = get_with("/", &["X-Key: a", "Connection: X-Key"]);
    assert_eq!(status(gateway.clients, hidden).await, 429);
    let policy = Policy::before(service.address)
        .server("trusted_proxies = [\"127.0.0.0/8\"]")
        .rest(&once("client-ip", ""));
    let gateway = Gateway::start(&policy).await;
    let hidden = get_with("/", &["X-Forwarded-For: 1.1.1.1", "Connection: X-Forwarded-For"]);
    assert_eq!(status(gateway.clients, &hidden).await, 200);
    assert_eq!(status(gateway.clients, hidden).await, 429);
    assert_eq!(status(gateway.clients, get_with("/", &["X-Forwarded-For: 1.1.1.1"])).await, 429);
}

/// Sends requests in batches on one connection and says how many were answered with each of 200 and 429.
async fn flood(to: SocketAddr, count: usize, request: impl Fn(usize) -> String) -> (usize, usize) {
    let (mut wire, mut admitted, mut refused) = (connect(to).await, 0, 0);
    for first in (0..count).step_by(100) {
        let batch: String = (first..count.min(first + 100)).map(&request).collect();
        wire.send(batch).await;
        for _ in first..count.min(first + 100) {
            match wire.message().await.status() {
                200 => admitted += 1,
                429 => refused += 1,
                other => panic!("{other}"),
            }
        }
    }
    (admitted, refused)
}

/// C1, C3. Whoever changes its name with every request gets no more than the table and the sketch behind it have
/// places, costs no memory, and takes nothing away from a client that keeps its name.
#[tokio::test]
async fn many_names_are_of_no_use() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let rule = once("header:x-key", "max_keys = 100").replace("burst = 1", "burst = 2");
    let gateway = limited(&service, &rule).await;
    let with = |key: String| get_with("/", &[&format!("X-Key: {key}")]);
    assert_eq!(status(gateway.clients, with("good".into())).await, 200);
    let (before, _) = gateway.process.memory();

    // A table for 100 keys has 160 places, and four rows of 256 are behind it; each lets two through.
    const PLACES: usize = 2 * (160 + 4 * 256);
    let (first, _) = flood(gateway.clients, 3000, |index| with(format!("a{index}"))).await;
    let (second, refused) = flood(gateway.clients, 3000, |index| with(format!("b{index}"))).await;
    assert!((100..=PLACES).contains(&(first + second)), "{first} + {second}");
    assert!(refused > 2000, "by then all places are taken: {refused}");

    assert_eq!(status(gateway.clients, with("good".into())).await, 200, "its second of two");
    assert_eq!(status(gateway.clients, with("good".into())).await, 429);
    let (_, most) = gateway.process.memory();
    assert!(most < before + 8 * 1024, "{before} KiB before, {most} KiB at most");
}

/// C6 (aisix#451). Ten thousand paths, methods, hosts and keys add no line to the metrics.
#[tokio::test]
async fn names_from_the_wire_are_no_labels() {
    let _turn = turn().await;
    let service = Service::prompt().await;
    let gateway = limited(&service, &once("global", "")).await;
    gateway.serves("/").await;
    assert_eq!(status(gateway.clients, get("/")).await, 429);
    let lines = async || gateway.admin("/metrics").await.text().lines().count();
    let stats = async || gateway.admin("/api/stats").await.text().lines().count();
    let before = (lines().await, stats().await);
    let request =
        |index| format!("M{index} /{index}?{index} HTTP/1.1\r\nHost: h{index}\r\nX-Key: {index}\r\n\r\n");
    assert_eq!(flood(gateway.clients, 10_000, request).await, (0, 10_000));
    assert_eq!((lines().await, stats().await), before);
}

/// B6. Who waits for as long as it was told, and no longer, is let in.
#[tokio::test]
async fn retry_after_is_kept() {
    let service = Service::prompt().await;
    let rule = "[[rate_limit]]\nname = \"all\"\nkey = \"global\"\nrate = \"5/s\"\nburst = 1";
    let gateway = limited(&service, rule).await;
    let mut wire = sent(gateway.clients, get("/")).await;
    assert_eq!(wire.message().await.status(), 200);
    for _ in 0..5 {
        let refusal = wire.get("/").await;
        if refusal.status() == 429 {
            assert_eq!(refusal.head.field("retry-after"), Some("1"));
            let millis: u64 = refusal.head.field("retry-after-ms").unwrap().parse().unwrap();
            assert!((1..=200).contains(&millis), "{millis}");
            tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            assert_eq!(wire.get("/").await.status(), 200);
        }
    }
}
