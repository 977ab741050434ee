//! What is taken, and what becomes of it.

use expect_test::expect;
use tidegate_policy::Policy;

use crate::{UPSTREAM, accept};

#[test]
fn the_shortest_policy_has_every_default() {
    accept(
        UPSTREAM,
        Policy::clone,
        expect![[r#"
            Policy {
                server: Server {
                    listen: 127.0.0.1:8102,
                    admin: 127.0.0.1:8101,
                    admin_token_file: None,
                    admin_hosts: [],
                    workers: 0,
                    max_connections: 10000,
                    max_upgrades: 1000,
                    drain: 20s,
                    header_timeout: 10s,
                    idle_timeout: 75s,
                    body_timeout: 60s,
                    max_header_bytes: 65536,
                    trusted_proxies: [],
                    deadline_headers: [
                        "grpc-timeout",
                        "x-envoy-expected-rq-timeout-ms",
                    ],
                    priority_ceiling: 1,
                    prefetch_priority: None,
                    urgency: false,
                    untrusted_tenants: true,
                    attempt_headers: [
                        "x-envoy-attempt-count",
                        "grpc-previous-rpc-attempts",
                        "amz-sdk-request",
                        "x-stainless-retry-count",
                    ],
                    fingerprint: Identified,
                    retry_after_max: 60s,
                    ratelimit_headers: Draft,
                    ratelimit_headers_on_all: false,
                    access_log: Refused,
                    access_log_file: None,
                    otlp: None,
                },
                upstreams: [
                    Upstream {
                        name: "orders",
                        endpoints: [
                            Endpoint {
                                host: Ip(
                                    127.0.0.1,
                                ),
                                port: 8103,
                            },
                        ],
                        timeout: 2s,
                        connect_timeout: 1s,
                        cancels_work: false,
                        orphan_max: 60s,
                        max_idle_connections: 256,
                        idle_timeout: 30s,
                        advertise_limit: false,
                        limit: Ebb(
                            EbbPolicy {
                                min: 2,
                                max: 1000,
                                initial: 10,
                                deadline: 2s,
                                without: None,
                            },
                        ),
                        orca_utilization: None,
                        queue: QueuePolicy {
                            wait: 500ms,
                            capacity: Derived,
                            standing_wait: 200ms,
                            discipline: Forecast,
                        },
                        tenant_share: None,
                        retries: RetryPolicy {
                            damp: true,
                            percent: 10,
                            burst: 20,
                            per_second: 1,
                        },
                        breaker: Some(
                            Breaker {
                                policy: BreakerPolicy {
                                    connect_failures: 5,
                                    failure_ratio: 0.8,
                                    min_requests: 20,
                                    window: 3s,
                                    open: 250ms,
                                    open_max: 1s,
                                    probes: 3,
                                    probe_timeout: 2s,
                                },
                                ejection: Some(
                                    Ejection {
                                        worse_by: 0.3,
                                        max_ejected: 0.5,
                                    },
                                ),
                            },
                        ),
                        health_check: None,
                    },
                ],
                priorities: [
                    PriorityClass {
                        name: "critical",
                        floor: 0.0,
                    },
                    PriorityClass {
                        name: "default",
                        floor: 0.0,
                    },
                    PriorityClass {
                        name: "background",
                        floor: 0.05,
                    },
                ],
                tenants: [],
                routes: [
                    Route {
                        label: "/*",
                        path: Under(
                            "",
                        ),
                        methods: [],
                        upstream: 0,
                        priority: Class(
                            1,
                        ),
                        tenant: None,
                        cost: 1,
                        bulkhead: None,
                        deadline: None,
                        exempt: false,
                    },
                ],
                rate_limits: [],
            }
        "#]],
    );
}

#[test]
fn windows_line_ends_and_a_byte_order_mark() {
    let text = format!("\u{feff}{}", UPSTREAM.replace('\n', "\r\n"));
    accept(
        &text,
        |policy| policy.upstreams[0].name.clone(),
        expect![[r#"
        "orders"
    "#]],
    );
}

#[test]
fn durations() {
    let durations = ["250us", "500ms", "1.5s", "2s", "1m", "0.5h", "1h", "0.000001s", "1.000000s"];
    let timeouts: Vec<_> = durations
        .map(|duration| {
            let text = format!("{UPSTREAM}[upstream.queue]\nwait = \"{duration}\"\n");
            Policy::parse(&text, "policy.toml").map(|parsed| parsed.policy.upstreams[0].queue.wait).ok()
        })
        .into();
    expect!["[Some(250µs), Some(500ms), Some(1.5s), Some(2s), Some(60s), None, None, Some(1µs), Some(1s)]"]
        .assert_eq(&format!("{timeouts:?}"));
}

#[test]
fn rates_and_the_burst_that_follows() {
    let rates = [
        "10/s",
        "10/sec",
        "10/second",
        "600/min",
        "600/m",
        "90/minute",
        "100/h",
        "100/hour",
        "1/day",
        "1/d",
        "5/10s",
        "1000000000/s",
    ];
    let quotas: Vec<String> = rates
        .map(|rate| {
            let text =
                format!("{UPSTREAM}[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"{rate}\"\n");
            let quota = Policy::parse(&text, "policy.toml").unwrap().policy.rate_limits[0].quota;
            format!("{rate}: {} in {:?}, burst {}", quota.count(), quota.period(), quota.burst())
        })
        .into();
    expect![[r#"
        10/s: 10 in 1s, burst 10
        10/sec: 10 in 1s, burst 10
        10/second: 10 in 1s, burst 10
        600/min: 600 in 60s, burst 10
        600/m: 600 in 60s, burst 10
        90/minute: 90 in 60s, burst 2
        100/h: 100 in 3600s, burst 1
        100/hour: 100 in 3600s, burst 1
        1/day: 1 in 86400s, burst 1
        1/d: 1 in 86400s, burst 1
        5/10s: 5 in 10s, burst 1
        1000000000/s: 1000000000 in 1s, burst 1000000000"#]]
    .assert_eq(&quotas.join("\n"));
}

#[test]
fn a_queue_of_zero_needs_no_wait() {
    let text = format!("{UPSTREAM}[upstream.queue]\nwait = \"0s\"\ncapacity = 0\n");
    accept(
        &text,
        |policy| policy.upstreams[0].queue,
        expect![[r#"
            QueuePolicy {
                wait: 0ns,
                capacity: Fixed(
                    0,
                ),
                standing_wait: 0ns,
                discipline: Forecast,
            }
        "#]],
    );
}

/// Left out, the start follows the range.
#[test]
fn the_initial_limit_is_clamped() {
    for (range, initial) in [("max = 5", 5), ("min = 50", 50), ("", 10)] {
        let text = format!("{UPSTREAM}[upstream.concurrency]\n{range}\n");
        let policy = Policy::parse(&text, "policy.toml").unwrap().policy;
        let tidegate_engine::LimitPolicy::Ebb(ebb) = &policy.upstreams[0].limit else { panic!("adaptive") };
        assert_eq!(ebb.initial.get(), initial, "{range}");
    }
}

/// As they stand in a `Host` field, and in an address after `http://`.
#[test]
fn endpoints_in_words() {
    let text = "[[upstream]]\nname = \"x\"\nendpoints = [\"http://10.0.0.1:80\", \"http://[2001:db8::1]:8080/\", \
                \"HTTP://Orders_1.internal\"]\n";
    accept(
        text,
        |policy| policy.upstreams[0].endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        expect![[r#"
            [
                "10.0.0.1:80",
                "[2001:db8::1]:8080",
                "orders_1.internal:80",
            ]
        "#]],
    );
}

#[test]
fn endpoints() {
    let text = "[[upstream]]\nname = \"x\"\nendpoints = [\"http://10.0.0.1:80\", \"http://[2001:db8::1]:8080/\", \
                \"HTTP://Orders_1.internal\", \"http://localhost:65535\"]\n";
    accept(
        text,
        |policy| policy.upstreams[0].endpoints.clone(),
        expect![[r#"
        [
            Endpoint {
                host: Ip(
                    10.0.0.1,
                ),
                port: 80,
            },
            Endpoint {
                host: Ip(
                    2001:db8::1,
                ),
                port: 8080,
            },
            Endpoint {
                host: Name(
                    "orders_1.internal",
                ),
                port: 80,
            },
            Endpoint {
                host: Name(
                    "localhost",
                ),
                port: 65535,
            },
        ]
    "#]],
    );
}

#[test]
fn patterns_match_and_cover() {
    let pattern = |path: &str| {
        let text = format!("{UPSTREAM}[[route]]\npath = \"{path}\"\n");
        Policy::parse(&text, "policy.toml").unwrap().policy.routes[0].path.clone()
    };
    let (all, api, users, exact) =
        (pattern("/*"), pattern("/api/*"), pattern("/api/users/*"), pattern("/api"));
    assert_eq!([&all, &api, &exact].map(ToString::to_string), ["/*", "/api/*", "/api"]);
    for path in ["/", "/x", "/api/x"] {
        assert!(all.matches(path), "{path}");
    }
    for (path, matches) in
        [("/api", true), ("/api/", true), ("/api/x/y", true), ("/apis", false), ("/", false)]
    {
        assert_eq!(api.matches(path), matches, "{path}");
    }
    assert!(all.covers(&api) && api.covers(&users) && api.covers(&exact) && exact.covers(&exact));
    assert!(!api.covers(&all) && !exact.covers(&api) && !users.covers(&exact));
    assert!(api.overlaps(&all) && users.overlaps(&api) && !users.overlaps(&exact));
}

/// Patterns in the one spelling that a normalised request path has.
#[test]
fn escapes_and_unusual_characters() {
    for path in ["/caf%C3%A9", "/a,b=c/@x:y!$&'()+,=", "/x/", "/", "/-._~", "/%2F"] {
        let text = format!("{UPSTREAM}[[route]]\npath = \"{path}\"\n");
        assert!(Policy::parse(&text, "policy.toml").is_ok(), "{path}");
    }
}

#[test]
fn durations_of_a_command_line() {
    assert_eq!(tidegate_policy::parse_duration("1.5s"), Ok(std::time::Duration::from_millis(1_500)));
    expect!["a duration needs a unit: write \"5ms\" or \"5s\""]
        .assert_eq(&tidegate_policy::parse_duration("5").unwrap_err());
}
