//! What requests are taken for, and whose word counts.

use super::*;
use http::Request;
use proptest::prelude::*;

const POLICY: &str = r#"
[server]
trusted_proxies = ["10.0.0.0/8"]
prefetch_priority = "background"
urgency = true
untrusted_tenants = false
[[upstream]]
name = "service"
endpoints = ["http://127.0.0.1:8103"]
[[tenant]]
name = "acme"
weight = 3
[[route]]
path = "/claimed"
priority = "header:x-class"
tenant = "header:x-tenant"
cost = 2
[[route]]
path = "/critical"
priority = "critical"
tenant = "client-ip"
[[route]]
path = "/*"
"#;
const CLAIMED: usize = 0;
const CRITICAL: usize = 1;
const PLAIN: usize = 2;

fn classes(text: &str) -> Classes {
    Classes::new(&Policy::parse(text, "policy.toml").unwrap().policy, None)
}

fn head(method: &str, target: &str, fields: &[&str]) -> request::Parts {
    let mut request = Request::builder().method(method).uri(target);
    for field in fields {
        let (name, value) = field.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(()).unwrap().into_parts().0
}

const fn from(last: u8, trusted: bool) -> Source {
    Source { address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, last)), trusted }
}

#[track_caller]
fn ranks(route: usize, fields: &[&str], untrusted: (u8, Grounds), trusted: (u8, Grounds)) {
    let classes = classes(POLICY);
    for (source, expected) in [(from(1, false), untrusted), (from(1, true), trusted)] {
        let class = classes.of(route, &head("GET", "/", fields), source);
        assert_eq!((class.priority.0, class.grounds), expected, "{fields:?} from {source:?}");
    }
}

/// C11: what a client claims counts up to the ceiling, what a trusted proxy says counts.
#[test]
fn claims_are_capped() {
    use Grounds::*;
    ranks(CLAIMED, &["x-class: critical"], (1, Capped(Priority(0))), (0, Claimed));
    ranks(CLAIMED, &["X-Class: Background"], (2, Claimed), (2, Claimed));
    ranks(CLAIMED, &["x-class: platinum"], (1, Unknown), (1, Unknown));
    ranks(CLAIMED, &["x-class: "], (1, Unknown), (1, Unknown));
    ranks(CLAIMED, &[], (1, Unsaid), (1, Unsaid));
    // What a route says itself is nobody's claim, and no header changes it.
    ranks(CRITICAL, &["x-class: background"], (0, Route), (0, Route));
    ranks(PLAIN, &["x-class: critical"], (1, Route), (1, Route));
}

/// C8: fields that are listed in `Connection` to be stripped have been looked at before that.
#[test]
fn connection_strips_nothing_that_counts() {
    let fields = ["connection: x-class, x-tenant", "x-class: background", "x-tenant: acme"];
    ranks(CLAIMED, &fields, (2, Grounds::Claimed), (2, Grounds::Claimed));
    let class = classes(POLICY).of(CLAIMED, &head("GET", "/", &fields), from(1, true));
    assert_eq!(class.tenant.unwrap().weight.get(), 3);
}

/// A proxy is trusted to say who its client is, and not for what its client says: browsers send `u=0` of their own.
#[test]
fn urgency_only_lowers() {
    use Grounds::*;
    ranks(PLAIN, &["priority: u=0"], (1, Route), (1, Route));
    ranks(PLAIN, &["priority: u=2, i"], (1, Route), (1, Route));
    ranks(PLAIN, &["priority: i, u=5"], (2, Urgency(5)), (2, Urgency(5)));
    ranks(CRITICAL, &["priority: u=4"], (1, Urgency(4)), (1, Urgency(4)));
    ranks(CRITICAL, &["priority: u=7;x=1"], (2, Urgency(7)), (2, Urgency(7)));
    for nothing in ["u=3", "i", "u=8", "u", "u=-1", "u=77", "u=?1", "U=7"] {
        ranks(PLAIN, &[&format!("priority: {nothing}")], (1, Route), (1, Route));
    }
    ranks(PLAIN, &["priority: u=1", "priority: u=7"], (2, Urgency(7)), (2, Urgency(7)));
}

#[test]
fn a_prefetch_is_at_most_what_prefetches_are() {
    use Grounds::*;
    for field in ["sec-purpose: prefetch", "sec-purpose: prefetch;prerender", "purpose: Prefetch"] {
        ranks(CRITICAL, &[field], (2, Prefetch), (2, Prefetch));
    }
    ranks(CRITICAL, &["purpose: preview"], (0, Route), (0, Route));
    // It is there already.
    ranks(CLAIMED, &["x-class: background", "purpose: prefetch"], (2, Claimed), (2, Claimed));
}

/// Without being asked for, neither counts.
#[test]
fn by_default_wishes_count_for_nothing() {
    let text = "[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n";
    let head = head("GET", "/", &["priority: u=7", "sec-purpose: prefetch"]);
    assert_eq!(classes(text).of(0, &head, from(1, true)).priority, Priority(1));
}

#[test]
fn tenants() {
    let classes = classes(POLICY);
    let of = |route, fields: &[&str], source| classes.of(route, &head("GET", "/", fields), source).tenant;
    let named = |name: &str, trusted| of(CLAIMED, &[&format!("x-tenant: {name}")], from(1, trusted)).unwrap();
    assert_eq!(named("acme", true), of(CLAIMED, &["x-tenant: acme"], from(2, true)).unwrap());
    assert_ne!(named("acme", true).id, named("other", true).id);
    assert_eq!((named("acme", true).weight.get(), named("other", true).weight.get()), (3, 1));
    // C11: whose word does not count is one of those who say nothing.
    let nameless = of(CLAIMED, &[], from(1, true)).unwrap();
    assert_eq!(named("acme", false), nameless);
    assert_ne!(nameless.id, named("", true).id);
    // By address, and an address is no name.
    assert_eq!(of(CRITICAL, &["x-tenant: acme"], from(1, false)), of(CRITICAL, &[], from(1, true)));
    assert_ne!(of(CRITICAL, &[], from(1, false)), of(CRITICAL, &[], from(2, false)));
    assert_ne!(of(CRITICAL, &[], from(1, true)).unwrap().id, named("192.0.2.1", true).id);
    assert_eq!(of(PLAIN, &["x-tenant: acme"], from(1, true)), None);
}

/// A tenant is who it was after a reload, and in another process is somebody else.
#[test]
fn the_secret_stays_with_the_process() {
    let policy = Policy::parse(POLICY, "policy.toml").unwrap().policy;
    let before = Classes::new(&policy, None);
    let head = head("GET", "/", &["x-tenant: acme", "cookie: a=1"]);
    let known = |classes: &Classes| {
        let class = classes.of(CLAIMED, &head, from(1, true));
        (class.tenant.unwrap().id, class.fingerprint.unwrap())
    };
    assert_eq!(known(&before), known(&Classes::new(&policy, Some(&before))));
    assert_ne!(known(&before), known(&Classes::new(&policy, None)));
}

/// What the engine is told is what was found.
#[test]
fn the_arrival() {
    let fields = ["x-class: background", "x-tenant: acme", "x-envoy-attempt-count: 2", "idempotency-key: 7"];
    let class = classes(POLICY).of(CLAIMED, &head("POST", "/", &fields), from(1, true));
    let arrival = class.arrival(RouteId(9), Some(Timestamp::from_millis(5)));
    assert_eq!((arrival.route, arrival.priority, arrival.cost.get()), (RouteId(9), Priority(2), 2));
    assert_eq!((arrival.attempt, arrival.deadline), (Attempt::Retry, Some(Timestamp::from_millis(5))));
    assert_eq!((arrival.tenant, arrival.fingerprint), (class.tenant, class.fingerprint));
    assert!(arrival.tenant.is_some() && arrival.fingerprint.is_some());
}

/// A crowd behind one address that asks for the same is not one client that does not give up.
#[test]
fn only_what_identifies_its_sender_has_a_fingerprint() {
    let some = |how: &str, method: &str, fields: &[&str]| {
        let text = POLICY.replace("urgency = true", &format!("urgency = true\nfingerprint = \"{how}\""));
        classes(&text).of(PLAIN, &head(method, "/a", fields), from(1, false)).fingerprint.is_some()
    };
    for (fields, identified, keyed) in [
        (&["user-agent: x"][..], false, false),
        (&["x-tenant: acme"], false, false),
        (&["cookie: a=1"], true, false),
        (&["authorization: Bearer t"], true, false),
        (&["idempotency-key: 7"], true, true),
    ] {
        assert_eq!(some("identified", "GET", fields), identified, "{fields:?}");
        assert_eq!(some("idempotency-key", "GET", fields), keyed, "{fields:?}");
        // A body tells these apart, and is not looked at.
        assert_eq!(some("identified", "POST", fields), keyed, "{fields:?}");
        assert!(!some("off", "GET", fields), "{fields:?}");
    }
}

#[test]
fn what_a_fingerprint_tells_apart() {
    let classes = classes(POLICY);
    let print = |method: &str, target: &str, fields: &[&str], last| {
        classes.of(PLAIN, &head(method, target, fields), from(last, false)).fingerprint.unwrap()
    };
    let one = print("GET", "/a?b=1", &["cookie: a=1", "authorization: t"], 1);
    assert_eq!(one, print("GET", "/a?b=1", &["authorization: t", "x: y", "cookie: a=1"], 1));
    for other in [
        print("HEAD", "/a?b=1", &["cookie: a=1", "authorization: t"], 1),
        print("GET", "/a?b=2", &["cookie: a=1", "authorization: t"], 1),
        print("GET", "/b?b=1", &["cookie: a=1", "authorization: t"], 1),
        print("GET", "/a?b=1", &["cookie: a=2", "authorization: t"], 1),
        print("GET", "/a?b=1", &["cookie: a=1", "authorization: u"], 1),
        print("GET", "/a?b=1", &["cookie: a=1", "authorization: t"], 2),
        print("GET", "/a?b=1", &["cookie: a=1", "authorization: t", "range: bytes=0-1"], 1),
    ] {
        assert_ne!(one, other);
    }
    // With a key it is the same from another address, as of a phone that has moved on.
    let keyed = print("POST", "/pay", &["idempotency-key: 7", "authorization: t"], 1);
    assert_eq!(keyed, print("POST", "/pay?x", &["idempotency-key: 7", "authorization: t", "cookie: c"], 2));
    assert_ne!(keyed, print("POST", "/pay", &["idempotency-key: 8", "authorization: t"], 1));
    assert_ne!(keyed, print("POST", "/pay", &["idempotency-key: 7", "authorization: u"], 1));
    assert_ne!(keyed, print("POST", "/refund", &["idempotency-key: 7", "authorization: t"], 1));
}

/// What was not believed here is not passed on for somebody to believe who trusts us.
#[test]
fn what_the_upstream_is_told() {
    let passed_on = |route, fields: &[&str], trusted| {
        let classes = classes(POLICY);
        let mut head = head("GET", "/", fields);
        let class = classes.of(route, &head, from(1, trusted));
        classes.pass_on(route, &class, trusted, &mut head.headers);
        let text =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut told: Vec<String> = head.headers.iter().map(text).collect();
        told.sort();
        told.join(" | ")
    };
    let claims = [
        "x-class: critical",
        "x-class: gold",
        "x-tenant: acme",
        "priority: i, u=0",
        "x-envoy-attempt-count: 3",
    ];
    assert_eq!(
        passed_on(CLAIMED, &claims, false),
        "priority: i, u=0 | x-class: default | x-envoy-attempt-count: 3"
    );
    assert_eq!(
        passed_on(CLAIMED, &claims, true),
        "priority: i, u=0 | x-class: critical | x-envoy-attempt-count: 3 | x-tenant: acme"
    );
    // What the route does not look at is none of our business.
    assert_eq!(
        passed_on(PLAIN, &["x-class: critical", "x-tenant: acme"], false),
        "x-class: critical | x-tenant: acme"
    );
    assert_eq!(passed_on(CLAIMED, &["priority: u=6"], false), "priority: u=6 | x-class: background");
    assert_eq!(passed_on(CLAIMED, &[], false), "x-class: default");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands in the fields, nobody gets more than the ceiling by it, and what is the same stays the same.
    #[test]
    fn no_field_raises_anybody(
        values in prop::collection::vec("(u=[0-9]|critical|default|background|prefetch|attempt=|[0-9]{0,20}|[;, ]|\\PC){0,6}", FIELDS.len()),
        trusted: bool,
    ) {
        let mut head = head("GET", "/a?b", &[]);
        for (name, value) in FIELDS.iter().zip(&values) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                head.headers.append(*name, value);
            }
        }
        let classes = classes(POLICY);
        for (route, most) in [(CLAIMED, u8::from(!trusted)), (CRITICAL, 0), (PLAIN, 1)] {
            let class = classes.of(route, &head, from(1, trusted));
            prop_assert!((most..3).contains(&class.priority.0), "{:?}", head.headers);
            let again = classes.of(route, &head, from(1, trusted));
            prop_assert_eq!(
                (class.priority, class.tenant, class.attempt, class.fingerprint),
                (again.priority, again.tenant, again.attempt, again.fingerprint)
            );
            // What a gateway behind this one is told, of which this one is a trusted proxy, makes nothing more important.
            let mut told = head.headers.clone();
            classes.pass_on(route, &class, trusted, &mut told);
            let (mut behind, ()) = Request::get("/").body(()).unwrap().into_parts();
            behind.headers = told;
            prop_assert!(route != CLAIMED || classes.of(route, &behind, from(2, true)).priority >= class.priority);
        }
    }
}

const FIELDS: [&str; 8] = [
    "x-class",
    "x-tenant",
    "priority",
    "sec-purpose",
    "x-envoy-attempt-count",
    "amz-sdk-request",
    "idempotency-key",
    "cookie",
];
