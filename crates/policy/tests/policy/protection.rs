//! Breakers, health checks and retries: what is refused, and what is warned of.

use expect_test::expect;

use crate::{UPSTREAM, refuse_briefly, warn};

#[test]
fn breakers_that_contradict_themselves() {
    refuse_briefly(
        &[
            "[upstream.breaker]\nenabled = false\nopen = \"2s\"",
            "[upstream.breaker]\neject = false\nworse_by = 0.5",
            "[upstream.breaker]\nopen = \"1m\"",
            "[upstream.breaker]\nopen = \"10s\"\nopen_max = \"5s\"",
            "[upstream.breaker]\nconnect_failures = 0\nfailure_ratio = 0.0\nprobes = 17\nmax_ejected = 1.1",
            "[upstream.breaker]\nfailure_ratio = 80",
            "[upstream.breaker]\nopen_for = \"1s\"",
        ],
        expect![[r#"
            [upstream.breaker] / enabled = false / open = "2s"
                `open`: this has no effect with `enabled = false`
                    remove one of the two
            [upstream.breaker] / eject = false / worse_by = 0.5
                `worse_by`: this has no effect with `eject = false`
                    remove one of the two
            [upstream.breaker] / open = "1m"
                `open`: `open` is longer than `open_max`
                    give `open_max` as well
            [upstream.breaker] / open = "10s" / open_max = "5s"
                `open_max`: `open` is longer than `open_max`
            [upstream.breaker] / connect_failures = 0 / failure_ratio = 0.0 / probes = 17 / max_ejected = 1.1
                `connect_failures`: 0 is not allowed: it would open without any failure
                    it can be 1 to 10_000
                `failure_ratio`: the number must be more than 0.0, at most 1.0
                `probes`: must be from 1 to 16
                `max_ejected`: the number must be more than 0.0, at most 1.0
            [upstream.breaker] / failure_ratio = 80
                `failure_ratio`: the number must be more than 0.0, at most 1.0
            [upstream.breaker] / open_for = "1s"
                `open_for` is not known in [upstream.breaker]
                    known are `enabled`, `connect_failures`, `failure_ratio`, `min_requests`, `window`, `open`, `open_max`, `probes`, `probe_timeout`, `eject`, `worse_by`, `max_ejected`
        "#]],
    );
}

#[test]
fn health_checks_and_retries_that_cannot_be() {
    refuse_briefly(
        &[
            "[upstream.health_check]",
            "[upstream.health_check]\npath = \"healthz\"\ninterval = \"0s\"",
            "[upstream.health_check]\npath = \"/a b\"\nunhealthy_after = 0",
            "[upstream.health_check]\npath = \"/a\\r\\nX: y\"",
            "[upstream.health_check]\npath = \"/\"\nhost = \"a\\r\\nX: y\"",
            "[upstream.health_check]\npath = \"/\"\nhost = \"shop.example/\"",
            "[upstream.retries]\npercent = 101",
            "[upstream.retries]\npercent = 0.2",
        ],
        expect![[r#"
            [upstream.health_check]
                `path` is missing in [upstream.health_check]
                    add `path`. What is asked for, with GET. An answer 2xx says that the endpoint is healthy.
            [upstream.health_check] / path = "healthz" / interval = "0s"
                `path`: this cannot be asked for
                    write a path such as "/healthz", in plain ASCII, at most 256 characters
                `interval`: 0 is not allowed: it would ask all the time
                    it can be 10ms to 1h
            [upstream.health_check] / path = "/a b" / unhealthy_after = 0
                `path`: this cannot be asked for
                    write a path such as "/healthz", in plain ASCII, at most 256 characters
                `unhealthy_after`: 0 is not allowed: no endpoint would ever be healthy
                    it can be 1 to 1_000
            [upstream.health_check] / path = "/a\r\nX: y"
                `path`: this cannot be asked for
                    write a path such as "/healthz", in plain ASCII, at most 256 characters
            [upstream.health_check] / path = "/" / host = "a\r\nX: y"
                `host`: this is not a host
                    write it like "shop.example", with a port if it is not 80
            [upstream.health_check] / path = "/" / host = "shop.example/"
                `host`: this is not a host
                    write it like "shop.example", with a port if it is not 80
            [upstream.retries] / percent = 101
                `percent`: must be from 0 to 100
            [upstream.retries] / percent = 0.2
                `percent`: a whole number is needed, this is a float
        "#]],
    );
}

#[test]
fn health_checks() {
    let two = UPSTREAM.replace("8103\"", "8103\", \"http://127.0.0.1:8104\"");
    let checked = |keys: &str| format!("{two}[upstream.health_check]\npath = \"/healthz\"\n{keys}");
    warn(
        &checked("interval = \"1s\"\ntimeout = \"2s\"\n"),
        expect![[r#"
            warning[TG030]: `timeout`: `timeout` (2s) is longer than `interval` (1s): an endpoint that does not answer is asked less often
             --> policy.toml:7:11
              |
            7 | timeout = "2s"
              |           ^^^^
              |
              = help: write a `timeout` below `interval`
        "#]],
    );
    warn(
        &checked("interval = \"500ms\"\n"),
        expect![[r#"
            warning[TG030]: `interval`: `timeout` (1s) is longer than `interval` (500ms): an endpoint that does not answer is asked less often
             --> policy.toml:6:12
              |
            6 | interval = "500ms"
              |            ^^^^^^^
              |
              = help: write a `timeout` below `interval`
        "#]],
    );
    warn(&checked("interval = \"1s\"\ntimeout = \"1s\"\n"), expect![[""]]);
    warn(
        &format!("{UPSTREAM}[upstream.health_check]\npath = \"/healthz\"\n"),
        expect![[r#"
            warning[TG031]: `path`: there is only one endpoint, and it gets all requests whether or not it is healthy
             --> policy.toml:5:8
              |
            5 | path = "/healthz"
              |        ^^^^^^^^^^
              |
              = help: give more endpoints; without others, the breaker is what keeps requests away
        "#]],
    );
}
