//! A policy without a file.

use expect_test::{Expect, expect};
use tidegate_policy::{Policy, QuickStart, Style};

#[track_caller]
fn check(quick: &QuickStart, expect: Expect) {
    let answer = match Policy::for_upstream(quick) {
        Ok(parsed) => {
            let from_file = Policy::parse(&quick.to_toml(), "policy.toml").expect("the text says the same");
            assert_eq!(from_file.policy, parsed.policy);
            let lints: String = parsed.lints.iter().map(|lint| lint.render(Style::Plain)).collect();
            format!("{}{lints}", quick.to_toml())
        }
        Err(errors) => {
            assert!(
                errors.problems().iter().all(|problem| problem.flag().is_some() && problem.line().is_none())
            );
            errors.to_string()
        }
    };
    expect.assert_eq(&answer);
}

#[test]
fn an_upstream_is_enough() {
    check(
        &QuickStart::new("http://127.0.0.1:3000"),
        expect![[r#"
        [[upstream]]
        name = "upstream"
        endpoints = ["http://127.0.0.1:3000"]
    "#]],
    );
    let policy = Policy::for_upstream(&QuickStart::new("http://localhost")).unwrap().policy;
    assert_eq!(policy.upstreams[0].endpoints[0].port, 80);
    assert_eq!((policy.upstreams[0].name.as_str(), policy.routes[0].label.as_str()), ("upstream", "/*"));
    assert_eq!(policy.rate_limits, []);
}

#[test]
fn every_flag() {
    let quick = QuickStart {
        limit: Some("4".to_owned()),
        queue: Some("64".to_owned()),
        wait: Some("200ms".to_owned()),
        timeout: Some("1s".to_owned()),
        listen: Some("0.0.0.0:80".to_owned()),
        admin: Some("0.0.0.0:81".to_owned()),
        ..QuickStart::new("http://[::1]:3000")
    };
    check(
        &quick,
        expect![[r#"
        [server]
        listen = "0.0.0.0:80"
        admin = "0.0.0.0:81"
        [[upstream]]
        name = "upstream"
        endpoints = ["http://[::1]:3000"]
        timeout = "1s"
        [upstream.concurrency]
        limit = 4
        [upstream.queue]
        wait = "200ms"
        capacity = 64
        warning[TG007]: --admin: 0.0.0.0 can be reached from other machines, and asks for no password
         |
         = help: listen on 127.0.0.1, or see to it that only your own machines can connect
    "#]],
    );
}

#[test]
fn wrong_flags_are_named() {
    let quick = QuickStart {
        limit: Some("0".to_owned()),
        queue: Some("many".to_owned()),
        wait: Some("200".to_owned()),
        timeout: Some("1 s".to_owned()),
        listen: Some("\"\n\\".to_owned()),
        admin: Some(String::new()),
        ..QuickStart::new("https://localhost:3000")
    };
    check(
        &quick,
        expect![[r#"
            error: --listen: this is not an address with a port
             |
             = help: write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"

            error: --admin: this is not an address with a port
             |
             = help: write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"

            error: --upstream: TLS to upstreams is not supported by this version of tidegate
             |
             = help: use http://, on a network that you trust

            error: --timeout: no space stands in a duration
             |
             = help: write "1s"

            error: --limit: 0 is not allowed: no request would ever be let through
             |
             = help: it can be 1 to 1_000_000

            error: --wait: a duration needs a unit
             |
             = help: write "200ms" or "200s"

            error: --queue: `many` is not a whole number

        "#]],
    );
    let quick =
        QuickStart { limit: Some("007".to_owned()), queue: Some("-1".to_owned()), ..QuickStart::new("") };
    check(
        &quick,
        expect![[r#"
            error: --upstream: the scheme is missing
             |
             = help: write "http://"

            error: --queue: must be from 0 to 100_000

        "#]],
    );
    check(
        &QuickStart { wait: Some("0s".to_owned()), ..QuickStart::new("http://a") },
        expect![[r#"
            error: --wait: 0 is not allowed with a queue: nobody in it would ever be served
             |
             = help: give the queue a capacity of 0 as well, and whatever finds no free slot is refused at once

        "#]],
    );
}
