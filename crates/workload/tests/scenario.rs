//! What is wrong with a scenario file is said with its line; whatever the file holds, nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tidegate_workload::{Arrivals, Product, Scenario};

const GOOD: &str = r#"story = "A story."
duration = "10s"

[[service]]
workers = 10
time = "100ms"
change = [{ at = "5s", workers = 2 }]

[[clients]]
name = "all"
rate = "50/s"
timeout = "1s"
retry = { attempts = 3, backoff = "full-jitter" }

[[policy]]
name = "four"
text = '''
[[upstream]]
name = "service"
endpoints = ["http://127.0.0.1:8103"]
[upstream.concurrency]
limit = 4
'''

[[expect]]
policy = "four"
goodput = [100, 500]
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("story.toml")).map_err(|error| error.to_string())
}

/// Puts something else in the place of a part of the good file.
fn broken(part: &str, other: &str, message: &Expect) {
    assert!(GOOD.contains(part), "{part}");
    let error = parse(&GOOD.replacen(part, other, 1)).expect_err("this is wrong");
    message.assert_eq(error.trim_end());
}

/// What the clients say holds for all of their kinds, unless a kind says otherwise; names of fields have no case.
#[test]
fn fields_and_bodies_of_kinds() {
    let mix = r#"name = "all"
headers = { "X-Tenant" = "acme", accept = "*/*" }
body = "all"
mix = [{ method = "POST", body = "{}", headers = { "x-tenant" = "other" } }, {}]"#;
    let scenario = parse(&GOOD.replacen("name = \"all\"", mix, 1)).unwrap_or_else(|error| panic!("{error}"));
    let [own, alike] = &scenario.clients[0].mix[..] else { panic!("two kinds") };
    let fields = |tenant: &str| vec![("accept".into(), "*/*".into()), ("x-tenant".into(), tenant.into())];
    assert_eq!((&own.headers, own.body.as_str()), (&fields("other"), "{}"));
    assert_eq!((&alike.headers, alike.body.as_str()), (&fields("acme"), "all"));

    broken(
        "name = \"all\"",
        "name = \"all\"\nheaders = { content-length = \"3\" }",
        &expect![[r#"
            error: `content-length` is written by whoever sends the message
             --> story.toml:9:1
              |
            9 | [[clients]]
              | ^^^^^^^^^^^"#]],
    );
}

#[test]
fn a_good_one_is_read() {
    let scenario = parse(GOOD).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((scenario.name.as_str(), scenario.runs, scenario.seed), ("story", 1, 1));
    assert_eq!((scenario.services.len(), scenario.policies.len(), scenario.expectations.len()), (1, 1, 1));
    let Arrivals::Open { pieces, .. } = &scenario.clients[0].arrivals else { panic!("they come at a rate") };
    assert_eq!((pieces.len(), pieces[0].rate), (1, 50.0));
}

#[test]
fn what_clients_say_of_themselves_is_read() {
    let clients = |text: &str| parse(text).unwrap_or_else(|error| panic!("{error}")).clients.remove(0);
    let silent = clients(GOOD);
    assert!(!silent.tells_deadline && !silent.identified && !silent.retry.marked);
    assert_eq!(silent.tenants.get(), 1);
    let text =
        GOOD.replacen("timeout", "tells_deadline = true\nidentified = true\ntenants = 2000\ntimeout", 1);
    let open = clients(&text.replacen("attempts = 3", "attempts = 3, marked = true", 1));
    assert!(open.tells_deadline && open.identified && open.retry.marked);
    assert_eq!(open.tenants.get(), 2000);
}

#[test]
fn what_clients_say_of_themselves_makes_sense() {
    broken(
        "timeout = \"1s\"",
        "tells_deadline = true",
        &expect![[r#"
        error: `tells_deadline` without a `timeout`: there is nothing to tell
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^
          |
          = help: write how long they wait"#]],
    );
    broken(
        "timeout = \"1s\"",
        "tenants = 1_000_001",
        &expect![[r#"
        error: `tenants` is at most 1000000
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^"#]],
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    broken(
        "workers = 10",
        "worker = 10",
        &expect![[r#"
        error: unknown field `worker`, expected one of `name`, `workers`, `shared`, `elastic`, `time`, `queue`, `delay`, `best`, `fails`, `cancels_work`, `calls`, `change`
         --> story.toml:5:1
          |
        5 | worker = 10
          | ^^^^^^"#]],
    );
    broken(
        "\"100ms\"",
        "100",
        &expect![[r#"
        error: invalid type: integer `100`, expected a duration such as "100ms", or a table with `exponential`, `lognormal` or `uniform`
         --> story.toml:6:8
          |
        6 | time = 100
          |        ^^^"#]],
    );
    broken(
        "\"100ms\"",
        "\"100\"",
        &expect![[r#"
        error: a duration needs a unit: write "100ms" or "100s"
         --> story.toml:6:8
          |
        6 | time = "100"
          |        ^^^^^"#]],
    );
    broken(
        "\"50/s\"",
        "\"50\"",
        &expect![[r#"
        error: `50` is not a rate; write it as "150/s" or "600/min"
          --> story.toml:11:8
           |
        11 | rate = "50"
           |        ^^^^"#]],
    );
    broken(
        "workers = 10",
        "workers = 0",
        &expect![[r#"
        error: `workers` is from 1 to 100000
         --> story.toml:4:1
          |
        4 | [[service]]
          | ^^^^^^^^^^^"#]],
    );
}

#[test]
fn what_is_wrong_with_clients_and_policies_is_said_with_its_line() {
    broken(
        "attempts = 3",
        "attempts = 0",
        &expect![[r#"
        error: `attempts` is from 1 to 100
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^"#]],
    );
    broken(
        "limit = 4",
        "limit = \"four\"",
        &expect![[r#"
        error: `limit`: `four` is not a limit
          --> story.toml:22:9
           |
        22 | limit = "four"
           |         ^^^^^^
           |
           = help: write "adaptive", or a number that you have measured"#]],
    );
    broken(
        "policy = \"four\"",
        "policy = \"for\"",
        &expect![[r#"
        error: there is no policy named `for`
          --> story.toml:25:1
           |
        25 | [[expect]]
           | ^^^^^^^^^^"#]],
    );
    broken(
        "goodput = ",
        "goodputt = ",
        &expect![[r#"
            error: a report has no `goodputt`
              --> story.toml:25:1
               |
            25 | [[expect]]
               | ^^^^^^^^^^
               |
               = help: it has offered, goodput, goodput_share, failed, pending, attempts, amplification, rejected, retries, retry_share, retries_let_in, retries_let_in_share, overtaken_share, broken, late, told_admitted, served_p50_ms, served_p99_ms, served_max_ms, refused_p50_ms, refused_p99_ms, refused_max_ms, limit, in_flight, queue, rate_limited, tenant_limit, route_limit, queue_full, wait_too_long, queue_timeout, pushed_out, deadline, retry_budget, breaker_open, upstream_timeout, upstream_connect, upstream_reset, gateway_overloaded, draining, client_left"#]],
    );
    broken(
        "[100, 500]",
        "[500, 100]",
        &expect![[r#"
        error: the first of the two is the lower
          --> story.toml:25:1
           |
        25 | [[expect]]
           | ^^^^^^^^^^"#]],
    );
    broken(
        "duration = \"10s\"",
        "duration = \"10s",
        &expect![[r#"
        error: invalid basic string, expected `"`
         --> story.toml:2:16
          |
        2 | duration = "10s
          |                ^"#]],
    );
    broken(
        "{ at = \"5s\", workers = 2 }",
        "{ at = \"5s\" }",
        &expect![[r#"
        error: the change at 5s is none
         --> story.toml:4:1
          |
        4 | [[service]]
          | ^^^^^^^^^^^
          |
          = help: write one of `workers` (if it has any), `slowdown`, `fails` (from 0 to 1) and `pause`"#]],
    );
    broken(
        "rate = \"50/s\"",
        "rate = \"50/s\"\nusers = 3",
        &expect![[r#"
        error: clients come by one of `rate`, `burst` and `users`
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^
          |
          = help: write `rate = "100/s"`"#]],
    );
}

#[test]
fn clients_with_our_own_client_have_their_own_ways() {
    broken(
        "attempts = 3",
        "resilient = 3",
        &expect![[r#"
        error: clients that are `resilient` have their own back-off, budget and breaker, and do as they are told
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^
          |
          = help: beside `resilient` there may be `attempts` and `marked`"#]],
    );
    broken(
        "attempts = 3, backoff = \"full-jitter\"",
        "resilient = 10001",
        &expect![[r#"
        error: `resilient` is how many of them there are, at most 10000
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^"#]],
    );
}

#[test]
fn callers_and_their_breakers_are_read() {
    let retry = |keys: &str| {
        let text = GOOD.replacen("attempts = 3", &format!("attempts = 3{keys}"), 1);
        parse(&text).unwrap_or_else(|error| panic!("{error}")).clients[0].retry
    };
    assert_eq!((retry("").callers.get(), retry("").breaker), (1, None));
    let usual = retry(", breaker_percent = 10").breaker.unwrap();
    assert_eq!((usual.percent, usual.window.as_secs(), usual.min_tries.get()), (10, 10, 1));
    let most = ", callers = 10000, breaker_percent = 99, breaker_window = \"1h\", breaker_min_tries = 10000";
    let own = retry(most).breaker.unwrap();
    assert_eq!((own.percent, own.window.as_secs(), own.min_tries.get()), (99, 3_600, 10_000));
    assert_eq!(retry(most).callers.get(), 10_000);
    assert_eq!(retry(", callers = 20, budget_percent = 5").callers.get(), 20);
}

#[test]
fn callers_and_their_breakers_have_bounds() {
    for (keys, message) in [
        ("callers = 10001, breaker_percent = 10", "`callers` is at most 10000"),
        ("callers = 0, breaker_percent = 10", "invalid value: integer `0`, expected a nonzero u32"),
        ("breaker_min_tries = 5", "`breaker_window` and `breaker_min_tries` belong to `breaker_percent`"),
        ("breaker_percent = 0", "`breaker_percent` is from 1 to 99"),
        ("breaker_percent = 100", "`breaker_percent` is from 1 to 99"),
        ("breaker_percent = 10, breaker_window = \"9ms\"", "`breaker_window` is from 10ms to 3600s"),
        ("breaker_percent = 10, breaker_window = \"3601s\"", "`breaker_window` is from 10ms to 3600s"),
        ("breaker_percent = 10, breaker_min_tries = 10001", "`breaker_min_tries` is at most 10000"),
    ] {
        let error = parse(&GOOD.replacen("attempts = 3", &format!("attempts = 3, {keys}"), 1));
        let error = error.map(|_| ()).expect_err(keys);
        assert!(error.starts_with(&format!("error: {message}\n")), "{keys}: {error}");
    }
}

#[test]
fn what_belongs_to_a_breaker_needs_one() {
    broken(
        "attempts = 3",
        "attempts = 3, callers = 100",
        &expect![[r#"
        error: `callers` without a budget or a breaker: there is nothing that each has of its own
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^
          |
          = help: write `budget_percent` or `breaker_percent`"#]],
    );
    broken(
        "attempts = 3",
        "attempts = 3, breaker_window = \"5s\"",
        &expect![[r#"
        error: `breaker_window` and `breaker_min_tries` belong to `breaker_percent`
         --> story.toml:9:1
          |
        9 | [[clients]]
          | ^^^^^^^^^^^
          |
          = help: write above which share of failures nothing is tried again"#]],
    );
    for own in [
        "callers = 5, budget_percent = 1",
        "breaker_percent = 5",
        "breaker_window = \"5s\"",
        "breaker_min_tries = 5",
    ] {
        let resilient = format!("resilient = 3, {own}");
        let error = parse(&GOOD.replacen("attempts = 3, backoff = \"full-jitter\"", &resilient, 1));
        let error = error.map(|_| ()).expect_err(own);
        assert!(error.contains("`resilient` have their own back-off, budget and breaker"), "{own}: {error}");
    }
}

#[test]
fn what_is_wrong_with_a_model_is_said_with_its_line() {
    broken(
        "name = \"four\"",
        "name = \"four\"\nmodel = \"nginx\"",
        &expect![[r#"
            error: unknown variant `nginx`, expected one of `arc`, `codel`, `envoy`
              --> story.toml:17:9
               |
            17 | model = "nginx"
               |         ^^^^^^^"#]],
    );
    broken(
        "name = \"four\"",
        "name = \"four\"\nmodel = \"arc\"",
        &expect![[r#"
            error: `four` is not what this is a model of
              --> story.toml:15:1
               |
            15 | [[policy]]
               | ^^^^^^^^^^
               |
               = help: write name = "ARC""#]],
    );
    broken(
        "name = \"four\"",
        "name = \"model: ARC\"",
        &expect![[r#"
            error: a name that begins with `model: ` is that of a model
              --> story.toml:15:1
               |
            15 | [[policy]]
               | ^^^^^^^^^^"#]],
    );
    broken(
        "timeout = \"1s\"\nretry",
        "batch = 0\ntimeout = \"1s\"\nretry",
        &expect![[r#"
            error: invalid value: integer `0`, expected a nonzero u32
              --> story.toml:12:9
               |
            12 | batch = 0
               |         ^"#]],
    );
    broken(
        "rate = \"50/s\"",
        "users = 3\nbatch = 3",
        &expect![[r#"
            error: `batch` belongs to a `rate`
             --> story.toml:9:1
              |
            9 | [[clients]]
              | ^^^^^^^^^^^
              |
              = help: write how many come at once in `burst`"#]],
    );
}

#[test]
fn a_model_has_the_name_of_a_model_and_expectations_may_ask_for_it() {
    let text = GOOD.replacen("name = \"four\"", "name = \"ARC\"\nmodel = \"arc\"", 1).replacen(
        "policy = \"four\"",
        "policy = \"model: ARC\"",
        1,
    );
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (scenario.policies[0].name.as_str(), scenario.policies[0].model),
        ("model: ARC", Some(Product::Arc))
    );
    assert_eq!(parse(GOOD).unwrap().policies[0].model, None);
}

#[test]
fn what_is_said_of_a_service_holds_from_the_beginning() {
    let text = GOOD.replacen("time = \"100ms\"", "time = \"100ms\"\ndelay = \"30ms\"\nbest = 16", 1);
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let service = &scenario.services[0];
    assert_eq!((service.delay.as_millis(), service.best.map(u32::from)), (30, Some(16)));
    let plain = &parse(GOOD).unwrap().services[0];
    assert_eq!((plain.delay.as_millis(), plain.best), (0, None));
}

proptest! {
    /// Any text at all.
    #[test]
    fn nothing_panics(text in "\\PC{0,400}") {
        let _ = parse(&text);
    }

    /// Text that is nearly right, which gets further.
    #[test]
    fn nothing_panics_on_a_damaged_file(at in 0..GOOD.len(), removed in 0..40_usize, put in "[-0-9a-z\"'\\[\\]{}.,= \n]{0,12}") {
        let begin = GOOD.floor_char_boundary(at);
        let end = GOOD.floor_char_boundary((begin + removed).min(GOOD.len()));
        let text = format!("{}{put}{}", &GOOD[..begin], &GOOD[end..]);
        if let Err(error) = parse(&text) {
            prop_assert!(!error.trim().is_empty());
        }
    }
}
