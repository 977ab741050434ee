//! Classes, tenants, disciplines and retries: what is taken, refused, and warned of.

use expect_test::expect;
use tidegate_engine::{Discipline, RetryPolicy};
use tidegate_policy::{Policy, QuickStart, RoutePriority};

use crate::{UPSTREAM, accept, refuse_briefly, warn};

fn parse(text: &str) -> Policy {
    Policy::parse(&format!("{UPSTREAM}{text}"), "policy.toml").unwrap().policy
}

/// Three classes, everything in the middle one, and a little kept for the last.
#[test]
fn without_a_word_there_are_three_classes() {
    let started = Policy::for_upstream(&QuickStart::new("http://127.0.0.1:3000")).unwrap().policy;
    for policy in [parse(""), started] {
        let classes: Vec<_> = policy.priorities.iter().map(|class| (&*class.name, class.floor)).collect();
        assert_eq!(classes, [("critical", 0.0), ("default", 0.0), ("background", 0.05)]);
        assert_eq!(policy.routes[0].priority, RoutePriority::Class(1));
        assert_eq!((policy.default_priority(), policy.server.priority_ceiling), (1, 1));
        let admission = policy.admission(0, Vec::new());
        assert_eq!(
            admission.priorities.iter().map(|class| class.floor).collect::<Vec<_>>(),
            [0.0, 0.0, 0.05]
        );
        assert_eq!(
            admission.retries,
            Some(RetryPolicy { damp: true, percent: 10, burst: 20, per_second: 1 })
        );
        assert_eq!((admission.tenant_share, admission.queue.discipline), (None, Discipline::Forecast));
    }
}

/// The class of what nobody says anything about is the one called `default`, wherever it stands; else the last.
#[test]
fn the_default_class() {
    let classes = |names: &[&str]| {
        let text: String = names.iter().map(|name| format!("[[priority]]\nname = \"{name}\"\n")).collect();
        let policy = parse(&format!("{text}[[route]]\npath = \"/*\"\n"));
        assert_eq!(policy.routes[0].priority, RoutePriority::Class(policy.default_priority()));
        policy.default_priority()
    };
    assert_eq!(classes(&["default", "bulk"]), 0);
    assert_eq!(classes(&["gold", "silver"]), 1);
    assert_eq!(classes(&["a", "b", "c", "d", "e", "f", "g", "h"]), 7);
}

#[test]
fn what_is_handed_to_the_engine() {
    accept(
        &format!(
            "{UPSTREAM}
            queue = {{ discipline = \"adaptive-lifo\" }}
            fairness = {{ tenant_share = 0.25 }}
            retries = {{ percent = 0, burst = 1, per_second = 0 }}
            [[priority]]
            name = \"users\"
            [[priority]]
            name = \"crawlers\"
            floor = 0.5
            [[route]]
            path = \"/*\"
            methods = [\"GET\"]
            priority = \"users\"
            tenant = \"header:X-Tenant\"
            cost = 3
            [[route]]
            path = \"/robots/*\"
            methods = [\"HEAD\"]
            "
        ),
        |policy| policy.admission(0, Vec::new()),
        expect![[r#"
            AdmissionPolicy {
                limit: Ebb(
                    EbbPolicy {
                        min: 2,
                        max: 1000,
                        initial: 10,
                        deadline: 2s,
                        without: None,
                    },
                ),
                queue: QueuePolicy {
                    wait: 500ms,
                    capacity: Derived,
                    standing_wait: 200ms,
                    discipline: AdaptiveLifo,
                },
                bulkheads: [],
                priorities: [
                    PriorityPolicy {
                        floor: 0.0,
                    },
                    PriorityPolicy {
                        floor: 0.5,
                    },
                ],
                tenant_share: Some(
                    0.25,
                ),
                retries: Some(
                    RetryPolicy {
                        damp: true,
                        percent: 0,
                        burst: 1,
                        per_second: 0,
                    },
                ),
                breaker: Some(
                    BreakerPolicy {
                        connect_failures: 5,
                        failure_ratio: 0.8,
                        min_requests: 20,
                        window: 3s,
                        open: 250ms,
                        open_max: 1s,
                        probes: 3,
                        probe_timeout: 2s,
                    },
                ),
            }
        "#]],
    );
    let retries = parse("retries = { damp = false }").admission(0, Vec::new()).retries;
    assert!(retries.is_some_and(|retries| !retries.damp && retries.percent == 10), "{retries:?}");
}

#[test]
fn what_is_refused() {
    let floors = |floors: &[f64]| -> String {
        let class = |(index, floor)| format!("[[priority]]\nname = \"c{index}\"\nfloor = {floor}\n");
        floors.iter().enumerate().map(class).collect()
    };
    refuse_briefly(
        &[
            &floors(&[0.0, 0.3, 0.21]),
            &floors(&[0.0, 0.6]),
            &floors(&[-0.1]),
            &floors(&[f64::NAN]),
            &floors(&[0.0; 9]),
            "[[priority]]\nname = \"Gold!\"\n[[route]]\npath = \"/*\"\npriority = \"gold\"",
            "[[priority]]\nfloor = 0.1",
            "[[priority]]\nname = \"a\"\n[[priority]]\nname = \"a\"",
            "[server]\npriority_ceiling = \"defualt\"\nprefetch_priority = \"never\"",
            "[server]\nfingerprint = \"always\"",
            "[[route]]\npath = \"/*\"\npriority = \"header:x y\"\ntenant = \"header:\"\ncost = 0",
            "[[route]]\npath = \"/*\"\npriority = 1\ntenant = \"ip\"\ncost = 1001",
            "[[route]]\npath = \"/*\"\nexempt = true\npriority = \"critical\"\ntenant = \"client-ip\"\ncost = 2",
            "[[tenant]]\nname = \"a\\nb\"\n[[tenant]]\nname = \" a\"\nweight = 0",
            "[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"a\"\nweight = 101",
            "fairness = { tenant_share = 0 }",
            "queue = { discipline = \"lifo\" }",
            "[[rate_limit]]\nname = \"x\"\nkey = \"tenants\"\nrate = \"1/s\"",
        ],
        expect![[r#"
            [[priority]] / name = "c0" / floor = 0 / [[priority]] / name = "c1" / floor = 0.3 / [[priority]] / name = "c2" / floor = 0.21
                `floor`: all floors together are more than 0.5
                    what is set aside is missing where it matters most: lower this one or another
            [[priority]] / name = "c0" / floor = 0 / [[priority]] / name = "c1" / floor = 0.6
                `floor`: the number must be 0 to 0.5
            [[priority]] / name = "c0" / floor = -0.1
                `floor`: the number must be 0 to 0.5
            [[priority]] / name = "c0" / floor = NaN
                this is not TOML: invalid float, expected `nan`
            [[priority]] / name = "c0" / floor = 0 / [[priority]] / name = "c1" / floor = 0 / [[priority]] / name = "c2" / floor = 0 / [[priority]] / name = "c3" / floor = 0 / [[priority]] / name = "c4" / floor = 0 / [[priority]] / name = "c5" / floor = 0 / [[priority]] / name = "c6" / floor = 0 / [[priority]] / name = "c7" / floor = 0 / [[priority]] / name = "c8" / floor = 0
                more than 8 of [[priority]]
            [[priority]] / name = "Gold!" / [[route]] / path = "/*" / priority = "gold"
                `name`: 'G' cannot stand in a name
                    a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`
                `priority`: there is no class named `gold`
                    there is "Gold!"
            [[priority]] / floor = 0.1
                `name` is missing in [[priority]]
                    add `name`. Its name in routes, metrics and logs; no other has it.
            [[priority]] / name = "a" / [[priority]] / name = "a"
                `name`: `a` is taken by an earlier one
                    give each a name of its own
            [server] / priority_ceiling = "defualt" / prefetch_priority = "never"
                `priority_ceiling`: there is no class named `defualt`
                    did you mean "default"?
                `prefetch_priority`: there is no class named `never`
                    there is "critical", "default", "background"
            [server] / fingerprint = "always"
                `fingerprint`: `always` is none of the words that it can be
                    write "off" or "idempotency-key" or "identified"
            [[route]] / path = "/*" / priority = "header:x y" / tenant = "header:" / cost = 0
                `priority`: this is not the name of a header
                    write it like "header:x-api-key"
                `tenant`: this is not the name of a header
                    write it like "header:x-api-key"
                `cost`: 0 is not allowed: the route would have no limit; for health checks, write `exempt`
                    it can be 1 to 1_000
            [[route]] / path = "/*" / priority = 1 / tenant = "ip" / cost = 1001
                `priority`: a string is needed, this is an integer
                    write it in quotes
                `tenant`: `ip` tells no tenants apart
                    write "header:NAME" or "client-ip"
                `cost`: must be from 1 to 1_000
            [[route]] / path = "/*" / exempt = true / priority = "critical" / tenant = "client-ip" / cost = 2
                `priority`: the route is exempt, and an exempt route is never limited
                    remove one of `exempt` and `priority`
                `tenant`: the route is exempt, and an exempt route is never limited
                    remove one of `exempt` and `tenant`
                `cost`: the route is exempt, and an exempt route is never limited
                    remove one of `exempt` and `cost`
            [[tenant]] / name = "a\nb" / [[tenant]] / name = " a" / weight = 0
                `name`: `a\nb` cannot be the name of a tenant
                    it has 1 to 256 printable characters of ASCII, and no blank at its ends
                `name`: ` a` cannot be the name of a tenant
                    it has 1 to 256 printable characters of ASCII, and no blank at its ends
                `weight`: 0 is not allowed: the tenant would never be served while others wait
                    it can be 1 to 100
            [[tenant]] / name = "a" / [[tenant]] / name = "a" / weight = 101
                `name`: `a` is taken by an earlier one
                    give each a name of its own
                `weight`: must be from 1 to 100
            fairness = { tenant_share = 0 }
                `tenant_share`: the number must be more than 0.0, at most 1.0
            queue = { discipline = "lifo" }
                `discipline`: `lifo` is none of the words that it can be
                    did you mean "fifo"? It can be "forecast" or "fifo" or "adaptive-lifo" or "codel"
            [[rate_limit]] / name = "x" / key = "tenants" / rate = "1/s"
                `key`: `tenants` is nothing that can be counted
                    did you mean "tenant"? write "client-ip", "header:NAME", "tenant", "route" or "global"
        "#]],
    );
}

/// Floors are sums of what people write, and 0.5 - 0.15 - 0.25 is less than 0.1 by the last bit.
#[test]
fn floors_may_add_up_to_half() {
    let classes = [("a", 0.15), ("b", 0.25), ("c", 0.1)];
    let text: String = classes
        .iter()
        .map(|(name, floor)| format!("[[priority]]\nname = \"{name}\"\nfloor = {floor}\n"))
        .collect();
    assert_eq!(parse(&text).priorities.len(), 3);
}

#[test]
fn what_is_warned_of() {
    let policies = [
        // A floor for those who need none, and a class for nobody.
        "[[priority]]\nname = \"a\"\nfloor = 0.1\n[[priority]]\nname = \"b\"\n[[priority]]\nname = \"c\"\n",
        // Claims that everybody can make, or nobody.
        "[server]\npriority_ceiling = \"critical\"\n[[route]]\npath = \"/*\"\npriority = \"header:x-class\"\n",
        "[[route]]\npath = \"/*\"\npriority = \"header:x-class\"\n",
        "[server]\nuntrusted_tenants = false\n[[route]]\npath = \"/*\"\ntenant = \"header:x-tenant\"\n",
        // Order where nobody waits, and an order that loses the order.
        "queue = { wait = \"0ms\", capacity = 0, discipline = \"fifo\" }\n",
        "queue = { discipline = \"adaptive-lifo\", standing_wait = \"10ms\" }\n",
        // Tenants that nobody can tell apart.
        "fairness = { tenant_share = 0.5 }\n[[tenant]]\nname = \"acme\"\n[[rate_limit]]\nname = \"x\"\nkey = \"tenant\"\nrate = \"1/s\"\n",
        "[[route]]\npath = \"/*\"\ntenant = \"client-ip\"\n",
        // More than there is.
        "concurrency = { limit = 4 }\n[[route]]\npath = \"/*\"\ncost = 5\n",
    ];
    for (policy, expected) in policies.iter().zip([
        expect![[r#"
            warning[TG020]: `name`: no request is ever in the class `a`
             --> policy.toml:5:8
              |
            5 | name = "a"
              |        ^^^
              |
              = help: remove it, or write priority = "a" in a [[route]]

            warning[TG017]: `floor`: this is the most important class, from which nothing is taken for others but their floors
             --> policy.toml:6:9
              |
            6 | floor = 0.1
              |         ^^^
              |
              = help: remove it: floors are for the classes below

            warning[TG020]: `name`: no request is ever in the class `b`
             --> policy.toml:8:8
              |
            8 | name = "b"
              |        ^^^
              |
              = help: remove it, or write priority = "b" in a [[route]]
        "#]],
        expect![[r#"
            warning[TG018]: `priority_ceiling`: anybody who sends `x-class: critical` is in the class `critical`
             --> policy.toml:5:20
              |
            5 | priority_ceiling = "critical"
              |                    ^^^^^^^^^^
              |
              = help: name the proxies that set this header in `trusted_proxies`, and leave the ceiling out
        "#]],
        expect![[r#"
            warning[TG019]: `priority`: nobody is trusted, so that `x-class` can only make requests less important than `default`
             --> policy.toml:6:12
              |
            6 | priority = "header:x-class"
              |            ^^^^^^^^^^^^^^^^
              |
              = help: name the proxies that set it in `trusted_proxies`, or say so with `priority_ceiling`
        "#]],
        expect![[r#"
            warning[TG023]: `tenant`: with untrusted_tenants = false and without `trusted_proxies` nobody's header counts
             --> policy.toml:8:10
              |
            8 | tenant = "header:x-tenant"
              |          ^^^^^^^^^^^^^^^^^
              |
              = help: name the proxies that set it in `trusted_proxies`
        "#]],
        expect![[r#"
            warning[TG021]: `capacity`: nobody waits here, so that nobody goes before anybody
             --> policy.toml:4:36
              |
            4 | queue = { wait = "0ms", capacity = 0, discipline = "fifo" }
              |                                    ^
              |
              = help: give the queue some places, or leave `capacity` out
        "#]],
        expect![[r#"
            warning[TG027]: `discipline`: requests to `/*` that change something may overtake each other
             --> policy.toml:4:24
              |
            4 | queue = { discipline = "adaptive-lifo", standing_wait = "10ms" }
              |                        ^^^^^^^^^^^^^^^
              |
              = help: take it where order does not matter, and give the route the methods that only read

            warning[TG028]: `standing_wait`: only the disciplines "forecast" and "codel" look at it
             --> policy.toml:4:57
              |
            4 | queue = { discipline = "adaptive-lifo", standing_wait = "10ms" }
              |                                                         ^^^^^^
              |
              = help: remove one of `standing_wait` and `discipline`
        "#]],
        expect![[r#"
            warning[TG025]: `tenant_share`: no route to `orders` tells tenants apart
             --> policy.toml:4:29
              |
            4 | fairness = { tenant_share = 0.5 }
              |                             ^^^
              |
              = help: write `tenant` in a [[route]], or remove this

            warning[TG024]: `name`: no route takes its tenants from a header, so that no request is ever on behalf of this one
             --> policy.toml:6:8
              |
            6 | name = "acme"
              |        ^^^^^^
              |
              = help: write tenant = "header:NAME" in a [[route]], or remove it

            warning[TG026]: `key`: no route that it applies to tells tenants apart, so that all requests share one bucket
             --> policy.toml:9:7
              |
            9 | key = "tenant"
              |       ^^^^^^^^
              |
              = help: write `tenant` in a [[route]], or take another key
        "#]],
        expect![[r#"
            warning[TG022]: `tenant`: clients of 127.0.0.1:8102 are on this machine, and have one address
             --> policy.toml:6:10
              |
            6 | tenant = "client-ip"
              |          ^^^^^^^^^^^
              |
              = help: name the proxy that they come through in `trusted_proxies`, such as "127.0.0.1"
        "#]],
        expect![[r#"
            warning[TG029]: `cost`: `orders` has 4 slots: the request takes all of them, and no more
             --> policy.toml:7:8
              |
            7 | cost = 5
              |        ^
              |
              = help: write 4 or less
        "#]],
    ]) {
        warn(&format!("{UPSTREAM}{policy}"), expected);
    }
}

/// What would be warned of is not, where somebody has said what is meant.
#[test]
fn what_is_not_warned_of() {
    for text in [
        "[server]\ntrusted_proxies = [\"10.0.0.1\"]\npriority_ceiling = \"critical\"\n[[route]]\npath = \"/*\"\npriority = \"header:x-class\"",
        "[server]\npriority_ceiling = \"default\"\n[[route]]\npath = \"/*\"\npriority = \"header:x-class\"",
        "[server]\nlisten = \"0.0.0.0:80\"\n[[route]]\npath = \"/*\"\ntenant = \"client-ip\"",
        "queue = { discipline = \"adaptive-lifo\" }\n[[route]]\npath = \"/*\"\nmethods = [\"GET\", \"HEAD\"]",
        "queue = { wait = \"0ms\", capacity = 0 }",
        "[server]\nurgency = true\n[[priority]]\nname = \"a\"\n[[priority]]\nname = \"b\"",
        "concurrency = { limit = 4 }\n[[route]]\npath = \"/*\"\ncost = 4",
    ] {
        warn(&format!("{UPSTREAM}{text}\n"), expect![[""]]);
    }
}
