//! Policies that show most of what one can say, as a whole.

use expect_test::expect;
use tidegate_policy::Policy;

use crate::{FULL, accept};

#[test]
fn every_key_at_once() {
    accept(
        FULL,
        Policy::clone,
        expect![[r#"
            Policy {
                server: Server {
                    listen: 0.0.0.0:8080,
                    admin: 127.0.0.1:9090,
                    admin_token_file: Some(
                        "/run/tidegate/token",
                    ),
                    admin_hosts: [
                        "gateway.internal",
                    ],
                    workers: 4,
                    max_connections: 20000,
                    max_upgrades: 500,
                    drain: 30s,
                    header_timeout: 5s,
                    idle_timeout: 60s,
                    body_timeout: 90s,
                    max_header_bytes: 16384,
                    trusted_proxies: [
                        10.0.0.0/8,
                        fd00::1/128,
                    ],
                    deadline_headers: [
                        "grpc-timeout",
                        "request-timeout",
                    ],
                    priority_ceiling: 1,
                    prefetch_priority: Some(
                        2,
                    ),
                    urgency: true,
                    untrusted_tenants: false,
                    attempt_headers: [
                        "x-envoy-attempt-count",
                        "x-tries",
                    ],
                    fingerprint: IdempotencyKey,
                    retry_after_max: 120s,
                    ratelimit_headers: XRateLimit,
                    ratelimit_headers_on_all: true,
                    access_log: All,
                    access_log_file: Some(
                        "/var/log/tidegate.log",
                    ),
                    otlp: Some(
                        Otlp {
                            endpoint: Endpoint {
                                host: Name(
                                    "collector.internal",
                                ),
                                port: 4318,
                            },
                            service_name: "edge",
                            sample: 0.25,
                            metrics_interval: 60s,
                            headers_file: Some(
                                "/run/tidegate/otlp-headers",
                            ),
                            headers: [],
                        },
                    ),
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
                            Endpoint {
                                host: Ip(
                                    ::1,
                                ),
                                port: 8103,
                            },
                            Endpoint {
                                host: Name(
                                    "orders.internal",
                                ),
                                port: 80,
                            },
                        ],
                        timeout: 1.5s,
                        connect_timeout: 250ms,
                        cancels_work: false,
                        orphan_max: 120s,
                        max_idle_connections: 32,
                        idle_timeout: 15s,
                        advertise_limit: true,
                        limit: Aimd(
                            AimdPolicy {
                                min: 4,
                                max: 200,
                                initial: 10,
                                slow: 75ms,
                                window: 50,
                                cooldown: 500ms,
                            },
                        ),
                        orca_utilization: Some(
                            0.9,
                        ),
                        queue: QueuePolicy {
                            wait: 250ms,
                            capacity: Fixed(
                                64,
                            ),
                            standing_wait: 150ms,
                            discipline: Codel,
                        },
                        tenant_share: Some(
                            0.5,
                        ),
                        retries: RetryPolicy {
                            damp: true,
                            percent: 5,
                            burst: 50,
                            per_second: 2,
                        },
                        breaker: Some(
                            Breaker {
                                policy: BreakerPolicy {
                                    connect_failures: 3,
                                    failure_ratio: 0.9,
                                    min_requests: 50,
                                    window: 30s,
                                    open: 500ms,
                                    open_max: 60s,
                                    probes: 2,
                                    probe_timeout: 3s,
                                },
                                ejection: Some(
                                    Ejection {
                                        worse_by: 0.2,
                                        max_ejected: 0.34,
                                    },
                                ),
                            },
                        ),
                        health_check: Some(
                            HealthCheck {
                                path: "/healthz?deep=1",
                                host: Some(
                                    "orders.internal",
                                ),
                                interval: 2s,
                                timeout: 500ms,
                                healthy_after: 3,
                                unhealthy_after: 2,
                            },
                        ),
                    },
                    Upstream {
                        name: "search",
                        endpoints: [
                            Endpoint {
                                host: Ip(
                                    127.0.0.1,
                                ),
                                port: 8104,
                            },
                        ],
                        timeout: 2s,
                        connect_timeout: 1s,
                        cancels_work: true,
                        orphan_max: 60s,
                        max_idle_connections: 256,
                        idle_timeout: 30s,
                        advertise_limit: false,
                        limit: Fixed(
                            4,
                        ),
                        orca_utilization: None,
                        queue: QueuePolicy {
                            wait: 0ns,
                            capacity: Fixed(
                                0,
                            ),
                            standing_wait: 0ns,
                            discipline: Forecast,
                        },
                        tenant_share: None,
                        retries: RetryPolicy {
                            damp: true,
                            percent: 10,
                            burst: 20,
                            per_second: 1,
                        },
                        breaker: None,
                        health_check: None,
                    },
                    Upstream {
                        name: "stock",
                        endpoints: [
                            Endpoint {
                                host: Ip(
                                    127.0.0.1,
                                ),
                                port: 8105,
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
                                deadline: 800ms,
                                without: None,
                            },
                        ),
                        orca_utilization: None,
                        queue: QueuePolicy {
                            wait: 500ms,
                            capacity: Derived,
                            standing_wait: 50ms,
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
                                ejection: None,
                            },
                        ),
                        health_check: None,
                    },
                ],
                priorities: [
                    PriorityClass {
                        name: "interactive",
                        floor: 0.0,
                    },
                    PriorityClass {
                        name: "default",
                        floor: 0.2,
                    },
                    PriorityClass {
                        name: "batch",
                        floor: 0.05,
                    },
                ],
                tenants: [
                    TenantWeight {
                        name: "Acme & Co.",
                        weight: 3,
                    },
                ],
                routes: [
                    Route {
                        label: "/stock/*",
                        path: Under(
                            "/stock",
                        ),
                        methods: [],
                        upstream: 2,
                        priority: Class(
                            0,
                        ),
                        tenant: None,
                        cost: 1,
                        bulkhead: None,
                        deadline: None,
                        exempt: false,
                    },
                    Route {
                        label: "GET,POST /checkout/*",
                        path: Under(
                            "/checkout",
                        ),
                        methods: [
                            "GET",
                            "POST",
                        ],
                        upstream: 0,
                        priority: Header(
                            "x-priority",
                        ),
                        tenant: Some(
                            Header(
                                "x-tenant",
                            ),
                        ),
                        cost: 2,
                        bulkhead: Some(
                            Bulkhead {
                                max: 40,
                                is_quota: true,
                            },
                        ),
                        deadline: Some(
                            800ms,
                        ),
                        exempt: false,
                    },
                    Route {
                        label: "/healthz",
                        path: Exact(
                            "/healthz",
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
                        exempt: true,
                    },
                    Route {
                        label: "/*",
                        path: Under(
                            "",
                        ),
                        methods: [],
                        upstream: 1,
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
                rate_limits: [
                    RateLimit {
                        name: "per-client",
                        key: ClientIp,
                        quota: Quota {
                            count: 10,
                            period: 1s,
                            burst: 20,
                        },
                        max_keys: 50000,
                        show_key: false,
                        paths: [
                            Under(
                                "/checkout",
                            ),
                        ],
                    },
                    RateLimit {
                        name: "per-key",
                        key: Header(
                            "x-api-key",
                        ),
                        quota: Quota {
                            count: 600,
                            period: 60s,
                            burst: 10,
                        },
                        max_keys: 100000,
                        show_key: true,
                        paths: [],
                    },
                ],
            }
        "#]],
    );
}

/// The example of the design, word for word. None of its routes is for what can wait.
#[test]
fn the_design_example() {
    let parsed = Policy::parse(include_str!("design.toml"), "policy.toml").unwrap();
    let lints: Vec<&str> = parsed.lints.iter().map(|lint| lint.code().as_str()).collect();
    assert_eq!(lints, ["TG020"]);
    expect![[r#"
        (
            [
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
            [
                Route {
                    label: "POST /checkout/*",
                    path: Under(
                        "/checkout",
                    ),
                    methods: [
                        "POST",
                    ],
                    upstream: 0,
                    priority: Class(
                        0,
                    ),
                    tenant: Some(
                        Header(
                            "x-tenant",
                        ),
                    ),
                    cost: 1,
                    bulkhead: Some(
                        Bulkhead {
                            max: 40,
                            is_quota: false,
                        },
                    ),
                    deadline: None,
                    exempt: false,
                },
                Route {
                    label: "/healthz",
                    path: Exact(
                        "/healthz",
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
                    exempt: true,
                },
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
            [
                RateLimit {
                    name: "per-client",
                    key: ClientIp,
                    quota: Quota {
                        count: 10,
                        period: 1s,
                        burst: 20,
                    },
                    max_keys: 100000,
                    show_key: false,
                    paths: [
                        Under(
                            "/api",
                        ),
                    ],
                },
            ],
        )
    "#]]
    .assert_eq(&format!(
        "{:#?}\n",
        (&parsed.policy.priorities, &parsed.policy.routes, &parsed.policy.rate_limits)
    ));
}
