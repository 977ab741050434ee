//! Everything that can be wrong with a line: it is counted, shown with its place, and reading goes on.

use expect_test::{Expect, expect};
use tidegate_workload::access_log::{Choice, Format, Options};

use super::{fixture, read};

/// Reads a good log with bad lines after it, and shows what is said of those.
#[track_caller]
fn check_bad(format: Format, log: &str, bad: &[&str], expected: &Expect) {
    let good = fixture(log);
    let count = good.iter().filter(|&&byte| byte == b'\n').count();
    let bytes = [good, bad.join("\n").into_bytes()].concat();
    let (entries, tally, _) = read(bytes, Options { format: Choice::Known(format), ..Options::default() });
    assert_eq!((entries.len(), tally.unreadable), (count, bad.len() as u64));
    let shown: Vec<_> = tally.unreadable_first.iter().map(|unreadable| format!("{unreadable}\n")).collect();
    expected.assert_eq(&shown.concat());
}

#[test]
fn combined() {
    check_bad(
        Format::Combined,
        "nginx-combined.log",
        &[
            "127.0.0.1",
            "127.0.0.1 - - [30/Nov/2026:05:54:55 +0000 \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"",
            "127.0.0.1 - - [31/Nov/2026:05:54:55 +0000] \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"",
            "127.0.0.1 - - [soon] \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"",
            "127.0.0.1 - - [30/Nov/2026:05:54:55 +0000] \"GET / HTTP/1.1\" 2000 3 \"-\" \"-\"",
            "127.0.0.1 - - [30/Nov/2026:05:54:55 +0000] \"GET / HTTP/1.1\" 200 x \"-\" \"-\"",
            "127.0.0.1 - - [30/Nov/2026:05:54:55 +0000] \"GET / HTTP/1.1\" 200 3 \"-\" \"cut off",
            "127.0.0.1 - - [30/Nov/2026:05:54:55 +0000] \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"127.0.0.9",
            "127.0.0.1 - - [-] \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"",
        ],
        &expect![[r#"
            line 29, column 1: there is no " " after client, near `<address>`
            line 30, column 16: there is no "] \"" after time, near `<address> - - [30/Nov/2026:05:54:55 +00…`
            line 31, column 16: time is not a time, near `<address> - - [31/Nov/2026:05:54:55 +00…`
            line 32, column 16: time is not a time, near `<address> - - [soon] "GET / HTTP/1.1" 2…`
            line 33, column 61: status is not a status, near `…+0000] "GET / HTTP/1.1" 2000 3 "-" "-"`
            line 34, column 65: bytes is not a number of bytes, near `…0] "GET / HTTP/1.1" 200 x "-" "-"`
            line 35, column 72: there is no "\"" after user agent, near `… / HTTP/1.1" 200 3 "-" "cut off`
            line 36, column 74: there is text after the last field, near `… HTTP/1.1" 200 3 "-" "-"<address>`
            line 37, column 16: time is not a time, near `<address> - - [-] "GET / HTTP/1.1" 200 …`
        "#]],
    );
}

#[test]
fn haproxy() {
    check_bad(
        Format::Haproxy,
        "haproxy.log",
        &[
            "Proxy web started.",
            "127.0.0.1:1 [30/Nov/2026:05:55:01.1] web orders/one 0/0/0/6/6 200 117",
            "127.0.0.1:1 [30/Nov/2026:25:55:01.1] web orders/one 0/0/0/6/6 200 117 - - ---- 1/1/0/0/0 0/0 \"GET /\"",
            "127.0.0.1:1 [30/Nov/2026:05:55:01.1] web orders/one 0/x/0/6/6 200 117 - - ---- 1/1/0/0/0 0/0 \"GET /\"",
            "127.0.0.1:1 [30/Nov/2026:05:55:01.1] web orders/one 0/0/0/6/6 OK 117 - - ---- 1/1/0/0/0 0/0 \"GET /\"",
            "127.0.0.1:1 [30/Nov/2026:05:55:01.1] web orders/one 0/0/0/6/6 200 117 - - ---- 1/1/0/0/0 0/0 GET /",
            "127.0.0.1:1 [30/Nov/2026:05:55:01.1] web orders/one 0/0/0/6/6 200 117 - - ---- 1/1/0/0/0 0/0 x \"GET /\"",
            "<134>Nov 30 05:55:01 host haproxy[1]: 127.0.0.1:1 [now] web orders/one 0/0/0/6/6 200 117 - -",
        ],
        &expect![[r#"
            line 29, column 1: there is no " [" after client, near `Proxy web started.`
            line 30, column 67: there is no " " after bytes, near `…rders/one 0/0/0/6/6 200 117`
            line 31, column 14: time is not a time, near `<address>:1 [30/Nov/2026:25:55:01.1] …`
            line 32, column 55: Tw is not a duration, near `…:01.1] web orders/one 0/x/0/6/6 200 117 - - ----…`
            line 33, column 63: status is not a status, near `…eb orders/one 0/0/0/6/6 OK 117 - - ---- 1/1/0/0/…`
            line 34, column 94: there is no request, near `… - - ---- 1/1/0/0/0 0/0 GET /`
            line 35, column 94: expected "{", near `… - - ---- 1/1/0/0/0 0/0 x "GET /"`
            line 36, column 52: time is not a time, near `…aproxy[1]: <address>:1 [now] web orders/one 0/0/…`
        "#]],
    );
}

#[test]
fn envoy() {
    check_bad(
        Format::EnvoyText,
        "envoy.log",
        &[
            "[2026-11-30T05:55:13.668] GET",
            "[2026-11-30] \"GET / HTTP/1.1\" 200 - 0 3 10 7 \"-\" \"-\" \"-\" \"-\" \"-\"",
            "[2026-11-30T05:55:13.668Z] \"GET / HTTP/1.1\" 200 - 0 3 ten 7 \"-\" \"-\" \"-\" \"-\" \"-\"",
        ],
        &expect![[r#"
            line 29, column 2: there is no "] \"" after ISO start time, near `[2026-11-30T05:55:13.668]…`
            line 30, column 2: ISO start time is not a time, near `[2026-11-30] "GET / HTTP/…`
            line 31, column 55: duration is not a duration, near `…T / HTTP/1.1" 200 - 0 3 ten 7 "-" "-" "-" "-" "-…`
        "#]],
    );
}

#[test]
fn alb() {
    check_bad(
        Format::AwsAlb,
        "alb.log",
        &[
            "ftp 2025-03-14T08:26:53.512345Z app",
            "http 2025-03-14T08:26:53.512345Z app 127.0.0.1:1 - -1 -1",
            "http yesterday app 127.0.0.1:1 - -1 -1 -1 503 - 1 1 \"GET / HTTP/1.1\" \"x\" - - - \"-\" \"-\"",
            "http 2025-03-14T08:26:53.512345Z app 127.0.0.1:1 - -1 -1 -1 503 - 1 1 \"GET / HTTP/1.1",
        ],
        &expect![[r#"
            line 6, column 1: type is not a type of request, near `ftp 2025-03-14T08:26:53.…`
            line 7, column 57: there is no response_processing_time, near `… app <address>:1 - -1 -1`
            line 8, column 6: time is not a time, near `http yesterday app <address>:…`
            line 9, column 71: a quoted field does not end on this line, near `…:1 - -1 -1 -1 503 - 1 1 "GET / HTTP/1.1`
        "#]],
    );
}

#[test]
fn json() {
    check_bad(
        Format::CaddyJson,
        "caddy.log",
        &[
            "{\"ts\":1,",
            "{\"ts\":1}}",
            "[1]",
            "plain",
            "{\"level\":\"info\",\"ts\":1796018106.1,\"msg\":\"serving initial configuration\"}",
            "{\"ts\":\"late\",\"request\":{},\"duration\":1,\"status\":200}",
            "{\"ts\":null,\"request\":{},\"duration\":1,\"status\":200}",
            "{\"ts\":1.5,\"request\":{},\"duration\":\"long\",\"status\":200}",
            "{\"ts\":1.5,\"request\":{},\"duration\":1,\"status\":{}}}",
        ],
        &expect![[r#"
            line 28, column 8: the JSON ends too early, near `{"ts":1,`
            line 29, column 9: this is not JSON, near `{"ts":1}}`
            line 30, column 1: it is JSON, but not an object, near `[1]`
            line 31, column 1: this is not JSON, near `plain`
            line 32: there is no key "request"
            line 33: ts is not a time
            line 34: there is no time
            line 35: duration is not a duration
            line 36, column 49: this is not JSON, near `…duration":1,"status":{}}}`
        "#]],
    );
}

#[test]
fn a_line_beyond_the_bound_is_not_read_but_counted() {
    let long =
        format!("127.0.0.1 - - [30/Nov/2026:05:54:55 +0000] \"GET /{} HTTP/1.1\" 200 3", "x".repeat(70_000));
    check_bad(
        Format::Common,
        "apache-common.log",
        &[&long],
        &expect![[r#"
        line 11: it has 70065 bytes, and at most 65536 are read
    "#]],
    );
}

#[test]
fn only_the_first_are_kept_and_all_are_counted() {
    let bytes = [fixture("apache-common.log"), b"junk\n".repeat(1_000)].concat();
    let options = Options { format: Choice::Known(Format::Common), unreadable_kept: 3, ..Options::default() };
    let (entries, tally, _) = read(bytes, options);
    let kept: Vec<u64> = tally.unreadable_first.iter().map(|unreadable| unreadable.line).collect();
    assert_eq!((entries.len(), tally.unreadable, kept), (10, 1_000, vec![11, 12, 13]));
}
