//! What is warned of, and what is not.

use expect_test::expect;
use tidegate_policy::LintCode;

use crate::{UPSTREAM, warn};

fn route(path: &str, methods: &str) -> String {
    format!("[[route]]\npath = \"{path}\"\nmethods = [{methods}]\n")
}

#[test]
fn codes_are_in_order_and_distinct() {
    let codes: Vec<&str> = LintCode::ALL.iter().map(|code| code.as_str()).collect();
    let expected: Vec<String> = (1..=codes.len()).map(|n| format!("TG{n:03}")).collect();
    assert_eq!(codes, expected);
    assert!(LintCode::ALL.iter().all(|code| code.summary().ends_with('.')));
}

#[test]
fn unreachable_routes() {
    let text = format!("{UPSTREAM}{}{}", route("/api/*", ""), route("/api/users", "\"GET\""));
    warn(
        &text,
        expect![[r#"
        warning[TG001]: `path`: no request gets here: `/api/*` above takes them all
         --> policy.toml:8:8
          |
        8 | path = "/api/users"
          |        ^^^^^^^^^^^^
          |
          = help: the first route that matches wins: put this one further up, or remove it
    "#]],
    );
    let together = [
        route("/a/*", "\"GET\""),
        route("/*", "\"POST\", \"PUT\""),
        route("/a/b", "\"GET\", \"POST\""),
        route("/a/b", ""),
        route("/a/b", "\"GET\", \"DELETE\""),
    ];
    warn(
        &format!("{UPSTREAM}{}", together.concat()),
        expect![[r#"
        warning[TG001]: `path`: no request gets here: `GET /a/*` and `POST,PUT /*` above takes them all
          --> policy.toml:11:8
           |
        11 | path = "/a/b"
           |        ^^^^^^
           |
           = help: the first route that matches wins: put this one further up, or remove it

        warning[TG001]: `path`: no request gets here: `/a/b` above takes them all
          --> policy.toml:17:8
           |
        17 | path = "/a/b"
           |        ^^^^^^
           |
           = help: the first route that matches wins: put this one further up, or remove it
    "#]],
    );
    let reachable = [route("/a", ""), route("/a/*", "\"GET\""), route("/ab", ""), route("/*", "")];
    warn(&format!("{UPSTREAM}{}", reachable.concat()), expect![[""]]);
}

#[test]
fn queues() {
    let fixed = format!("{UPSTREAM}[upstream.concurrency]\nlimit = 4\n[upstream.queue]\nwait = \"100ms\"\n");
    warn(
        &format!("{fixed}capacity = 401\n"),
        expect![[r#"
        warning[TG002]: `capacity`: even at 1 ms a request, 4 slots serve only 400 within `wait` (100ms): nobody further back is served
         --> policy.toml:8:12
          |
        8 | capacity = 401
          |            ^^^
          |
          = help: write 400 or less, or leave it out and it follows the measured service time
    "#]],
    );
    warn(&format!("{fixed}capacity = 400\n"), expect![[""]]);
    warn(
        &format!("{UPSTREAM}[upstream.queue]\nwait = \"11s\"\n"),
        expect![[r#"
            warning[TG003]: `wait`: few clients wait for 11s: most have gone before they are served
             --> policy.toml:5:8
              |
            5 | wait = "11s"
              |        ^^^^^
              |
              = help: write less than what your clients wait for, such as "500ms"
        "#]],
    );
}

#[test]
fn upstreams() {
    warn(
        &format!("{UPSTREAM}timeout = \"30s\"\norphan_max = \"10s\"\nconnect_timeout = \"30s\"\n"),
        expect![[r#"
            warning[TG015]: `drain`: requests to `orders` may take 30s, and are cut off after 20s
            --> policy.toml
             = help: write "30s" or more

            warning[TG004]: `orphan_max`: 10s is shorter than `timeout` (30s): the slot is given away while the upstream still works
             --> policy.toml:5:14
              |
            5 | orphan_max = "10s"
              |              ^^^^^
              |
              = help: allow the longest time that the upstream may go on with a request that was given up

            warning[TG013]: `connect_timeout`: `timeout` (30s) includes the time to connect and ends first
             --> policy.toml:6:19
              |
            6 | connect_timeout = "30s"
              |                   ^^^^^
              |
              = help: write less than `timeout`, or leave it out
        "#]],
    );
    warn(
        &format!("{UPSTREAM}cancels_work = true\norphan_max = \"10s\"\n"),
        expect![[r#"
        warning[TG005]: `orphan_max`: it has no effect with `cancels_work = true`: a timeout frees the slot at once
         --> policy.toml:5:14
          |
        5 | orphan_max = "10s"
          |              ^^^^^
          |
          = help: remove one of the two
    "#]],
    );
    // A default that has no effect is nobody's mistake.
    warn(&format!("{UPSTREAM}timeout = \"500ms\"\ncancels_work = true\n"), expect![[""]]);
    let second = "[[upstream]]\nname = \"idle\"\nendpoints = [\"http://b\"]\n[[route]]\npath = \"/*\"\nupstream = \"orders\"\n";
    warn(
        &format!("{UPSTREAM}{second}"),
        expect![[r#"
        warning[TG016]: `name`: no route leads to `idle`
         --> policy.toml:5:8
          |
        5 | name = "idle"
          |        ^^^^^^
          |
          = help: remove it, or write a [[route]] with upstream = "idle"
    "#]],
    );
}

#[test]
fn limits() {
    warn(
        &format!("{UPSTREAM}[upstream.concurrency]\nalgorithm = \"aimd\"\ntolerance = 3.0\n"),
        expect![[r#"
            warning[TG010]: `tolerance`: it has no effect without `baseline`
             --> policy.toml:6:13
              |
            6 | tolerance = 3.0
              |             ^^^
              |
              = help: give `baseline`, the time of an answer when the upstream is not busy, or remove `tolerance`
        "#]],
    );
    warn(
        &format!("{UPSTREAM}[upstream.concurrency]\nalgorithm = \"aimd\"\nbaseline = \"1s\"\n"),
        expect![[r#"
            warning[TG011]: `baseline`: times `tolerance` it is 2s, and `timeout` is 2s: no answer in time is ever slow
             --> policy.toml:6:12
              |
            6 | baseline = "1s"
              |            ^^^^
              |
              = help: lower `baseline` or `tolerance`, or raise `timeout`
        "#]],
    );
    warn(
        &format!("{UPSTREAM}[upstream.concurrency]\nalgorithm = \"aimd\"\nbaseline = \"999ms\"\n"),
        expect![[""]],
    );
}

#[test]
fn servers() {
    let server = "[server]\nadmin = \"[::]:1\"\ntrusted_proxies = [\"10.0.0.0/8\", \"::/0\"]\naccess_log = \"off\"\n\
                  access_log_file = \"x\"\ndrain = \"1s\"\n";
    warn(
        &format!("{server}{UPSTREAM}"),
        expect![[r#"
            warning[TG007]: `admin`: :: can be reached from other machines, and asks for no password
             --> policy.toml:2:9
              |
            2 | admin = "[::]:1"
              |         ^^^^^^^^
              |
              = help: listen on 127.0.0.1, or see to it that only your own machines can connect

            warning[TG006]: `trusted_proxies`: ::/0 is everybody: anybody can choose the address that they are counted by
             --> policy.toml:3:19
              |
            3 | trusted_proxies = ["10.0.0.0/8", "::/0"]
              |                   ^^^^^^^^^^^^^^^^^^^^^^
              |
              = help: name the networks of your own proxies

            warning[TG014]: `access_log_file`: nothing is written to it with access_log = "off"
             --> policy.toml:5:19
              |
            5 | access_log_file = "x"
              |                   ^^^
              |
              = help: remove it, or write access_log = "refused"

            warning[TG015]: `drain`: requests to `orders` may take 2s, and are cut off after 1s
             --> policy.toml:6:9
              |
            6 | drain = "1s"
              |         ^^^^
              |
              = help: write "2s" or more
        "#]],
    );
    warn(&format!("{UPSTREAM}[server]\nadmin = \"127.0.0.2:1\"\n"), expect![[""]]);
    // The drain was left out, so the section is named.
    warn(
        &format!("{UPSTREAM}timeout = \"30s\"\n"),
        expect![[r#"
            warning[TG015]: `drain`: requests to `orders` may take 30s, and are cut off after 20s
            --> policy.toml
             = help: write "30s" or more
        "#]],
    );
}

#[test]
fn rate_limits() {
    let limit = "[[rate_limit]]\nname = \"x\"\nkey = \"client-ip\"\nrate = \"100/s\"\nburst = 5\npaths = [\"/admin/*\"]\n";
    warn(
        &format!("{UPSTREAM}{}{limit}", route("/api/*", "")),
        expect![[r#"
        warning[TG008]: `burst`: 5 at once is less than a second's worth of the rate: clients that send in bursts are refused early
          --> policy.toml:11:9
           |
        11 | burst = 5
           |         ^
           |
           = help: write 100 or more, or leave it out

        warning[TG009]: `paths`: no route that is limited has any of these paths
          --> policy.toml:12:9
           |
        12 | paths = ["/admin/*"]
           |         ^^^^^^^^^^^^
           |
           = help: take the paths from your routes; leave the key out for every route
    "#]],
    );
    let exempt = "[[route]]\npath = \"/admin/x\"\nexempt = true\n";
    warn(
        &format!("{UPSTREAM}{exempt}{}", limit.replace("burst = 5\n", "")),
        expect![[r#"
        warning[TG009]: `paths`: no route that is limited has any of these paths
          --> policy.toml:11:9
           |
        11 | paths = ["/admin/*"]
           |         ^^^^^^^^^^^^
           |
           = help: take the paths from your routes; leave the key out for every route
    "#]],
    );
    let overlap = route("/admin/users", "");
    warn(&format!("{UPSTREAM}{overlap}{}", limit.replace("burst = 5\n", "burst = 100\n")), expect![[""]]);
}

#[test]
fn bulkheads() {
    let fixed = format!("{UPSTREAM}[upstream.concurrency]\nlimit = 4\n[upstream.queue]\ncapacity = 10\n");
    warn(
        &format!("{fixed}[[route]]\npath = \"/*\"\nconcurrency = 14\n"),
        expect![[r#"
        warning[TG012]: `concurrency`: `orders` never has more than 14 in flight and waiting, so this has no effect
          --> policy.toml:10:15
           |
        10 | concurrency = 14
           |               ^^
           |
           = help: write less than 14, or remove it
    "#]],
    );
    warn(&format!("{fixed}[[route]]\npath = \"/*\"\nconcurrency = 13\n"), expect![[""]]);
}
