//! What is refused, and the answer to it.

mod keys;
mod paths;
mod values;

use expect_test::expect;
use tidegate_policy::{Policy, Style};

use crate::{UPSTREAM, refuse};

#[test]
fn an_empty_file() {
    refuse(
        "",
        expect![[r#"
        error: there is no upstream to protect
        --> policy.toml
         = help: write [[upstream]] with a name and endpoints = ["http://127.0.0.1:8103"]

    "#]],
    );
}

#[test]
fn everything_is_reported_at_once() {
    let text = r#"
[server]
listen = "localhost:80"
max_conections = 10
workers = -1

[[upstream]]
name = "Orders"
endpoints = ["https://10.0.0.1", "10.0.0.1:80"]
timeout = 2

[upstream.concurrency]
limit = 0

[[route]]
upstream = "orders"
"#;
    refuse(
        text,
        expect![[r#"
            error: `listen`: this is not an address with a port
             --> policy.toml:3:10
              |
            3 | listen = "localhost:80"
              |          ^^^^^^^^^^^^^^
              |
              = help: write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"

            error: `max_conections` is not known in [server]
             --> policy.toml:4:1
              |
            4 | max_conections = 10
              | ^^^^^^^^^^^^^^
              |
              = help: did you mean `max_connections`?

            error: `workers`: must be from 0 to 256
             --> policy.toml:5:11
              |
            5 | workers = -1
              |           ^^

            error: `name`: 'O' cannot stand in a name
             --> policy.toml:8:8
              |
            8 | name = "Orders"
              |        ^^^^^^^^
              |
              = help: a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`

            error: `endpoints`: TLS to upstreams is not supported by this version of tidegate
             --> policy.toml:9:14
              |
            9 | endpoints = ["https://10.0.0.1", "10.0.0.1:80"]
              |              ^^^^^^^^^^^^^^^^^^
              |
              = help: use http://, on a network that you trust

            error: `endpoints`: the scheme is missing
             --> policy.toml:9:34
              |
            9 | endpoints = ["https://10.0.0.1", "10.0.0.1:80"]
              |                                  ^^^^^^^^^^^^^
              |
              = help: write "http://10.0.0.1:80"

            error: `timeout`: a duration needs a unit
              --> policy.toml:10:11
               |
            10 | timeout = 2
               |           ^
               |
               = help: write "2ms" or "2s"

            error: `limit`: 0 is not allowed: no request would ever be let through
              --> policy.toml:13:9
               |
            13 | limit = 0
               |         ^
               |
               = help: it can be 1 to 1_000_000

            error: `path` is missing in [[route]]
              --> policy.toml:15:1
               |
            15 | [[route]]
               | ^^^^^^^^^
               |
               = help: add `path`. This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.

            error: `upstream`: there is no upstream named `orders`
              --> policy.toml:16:12
               |
            16 | upstream = "orders"
               |            ^^^^^^^^
               |
               = help: did you mean "Orders"?

        "#]],
    );
}

#[test]
fn text_that_is_not_toml() {
    refuse(
        "[[upstream]\nname = orders\nname = \"x\"\nname = \"y\"\n",
        expect![[r#"
        error: this is not TOML: unclosed array table, expected `]`
         --> policy.toml:1:12
          |
        1 | [[upstream]
          |            ^

    "#]],
    );
    refuse(
        &format!("{UPSTREAM}timeout = \"1s\"\ntimeout = \"2s\"\n"),
        expect![[r#"
            error: this is given twice
             --> policy.toml:5:1
              |
            5 | timeout = "2s"
              | ^^^^^^^
              |
              = help: keep one of the two

        "#]],
    );
    refuse(
        "a = b\nc = [1, 2\n\n[d\ne = 'x\n",
        expect![[r#"
            error: this is not TOML: string values must be quoted, expected literal string
             --> policy.toml:1:5
              |
            1 | a = b
              |     ^

            error: this is not TOML: missing comma between array elements, expected `,`
             --> policy.toml:4:1
              |
            4 | [d
              | ^

            error: this is not TOML: missing comma between array elements, expected `,`
             --> policy.toml:5:1
              |
            5 | e = 'x
              | ^

        "#]],
    );
    refuse(
        "a = \"never closed",
        expect![[r#"
        error: this is not TOML: invalid basic string, expected `"`
         --> policy.toml:1:18
          |
        1 | a = "never closed
          |                  ^

    "#]],
    );
}

#[test]
fn the_column_counts_characters() {
    let text =
        "upstream = [{ name = \"é日本🌊\", endpoints = [\"http://a\"], timeout = 5 }]\r\nroute = 1\r\n";
    refuse(
        text,
        expect![[r#"
        error: `name`: 'é' cannot stand in a name
         --> policy.toml:1:22
          |
        1 | upstream = [{ name = "é日本🌊", endpoints = ["http://a"], timeout = 5 }]
          |                      ^^^^^^^^^
          |
          = help: a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`

        error: `timeout`: a duration needs a unit
         --> policy.toml:1:66
          |
        1 | upstream = [{ name = "é日本🌊", endpoints = ["http://a"], timeout = 5 }]
          |                                                                     ^
          |
          = help: write "5ms" or "5s"

        error: `route` is a list of tables, this is an integer
         --> policy.toml:2:9
          |
        2 | route = 1
          |         ^
          |
          = help: write [[route]] with two brackets, once for each

    "#]],
    );
    let errors = Policy::parse(text, "policy.toml").unwrap_err();
    let at: Vec<_> = errors.problems().iter().map(|problem| (problem.line(), problem.column())).collect();
    assert_eq!(at, [(Some(1), Some(22)), (Some(1), Some(66)), (Some(2), Some(9))]);
}

#[test]
fn a_file_that_is_too_large() {
    refuse(
        &"#".repeat(2 * 1_048_576),
        expect![[r#"
        error: the file has 2097152 bytes; a policy has at most 1048576
        --> policy.toml
         = help: is this the right file?

    "#]],
    );
}

/// A hostile file is answered within bounds: the problems are counted, a long line is not quoted.
#[test]
fn very_many_problems_on_a_very_long_line() {
    let keys: Vec<String> = (0..30_000).map(|n| format!("k{n} = 1")).collect();
    let text = format!("x = {{ {} }}\n{}", keys.join(", "), keys.join("\n"));
    let errors = Policy::parse(&text, "policy.toml").unwrap_err();
    assert_eq!(errors.problems().len(), 100);
    assert_eq!(errors.more(), 29_902);
    assert!(errors.render(Style::Colour).len() < 100_000);

    let text = format!("x = 1 # {}", "x".repeat(1_000_000));
    refuse(
        &text,
        expect![[r#"
            error: there is no upstream to protect
            --> policy.toml
             = help: write [[upstream]] with a name and endpoints = ["http://127.0.0.1:8103"]

            error: `x` is not known in a policy
            --> policy.toml:1:1
             = help: known are `server`, `upstream`, `priority`, `tenant`, `route`, `rate_limit`

        "#]],
    );
}

#[test]
fn more_than_can_be_counted() {
    let routes: String = (0..1_001).map(|n| format!("[[route]]\npath = \"/{n}\"\n")).collect();
    let limits: String = (0..257)
        .map(|n| format!("[[rate_limit]]\nname = \"n{n}\"\nkey = \"route\"\nrate = \"1/s\"\n"))
        .collect();
    let upstreams: String =
        (0..256).map(|n| format!("[[upstream]]\nname = \"n{n}\"\nendpoints = [\"http://n\"]\n")).collect();
    refuse_as_too_many(&[
        &routes,
        &limits,
        &format!("{upstreams}[[route]]\npath = \"/*\"\nupstream = \"n1\"\n"),
    ]);
}

#[track_caller]
fn refuse_as_too_many(texts: &[&str]) {
    for text in texts {
        let errors = Policy::parse(&format!("{UPSTREAM}{text}"), "policy.toml").unwrap_err();
        assert_eq!(errors.problems().len(), 1, "{errors}");
        assert!(errors.problems()[0].message().starts_with("more than "), "{errors}");
    }
}

#[test]
fn colours_are_only_added() {
    let errors = Policy::parse(&format!("{UPSTREAM}timeout = 5\n"), "policy.toml").unwrap_err();
    let colour = errors.render(Style::Colour);
    assert!(colour.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = colour.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    assert_eq!(plain, errors.to_string());
}
