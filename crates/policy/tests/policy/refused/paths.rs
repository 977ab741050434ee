//! Endpoints and routes that are refused.

use expect_test::expect;

use crate::refuse_briefly;

#[test]
fn endpoints() {
    let endpoint = |endpoint: &str| {
        format!(
            "[[upstream]]\nname = \"x\"\nendpoints = [\"{endpoint}\"]\n[[route]]\npath = \"/*\"\nupstream = \"x\""
        )
    };
    let endpoints = [
        "https://orders:443",
        "ftp://orders",
        "orders:80",
        "http://orders/api",
        "http://orders?x",
        "http://me:pw@orders",
        "http://",
        "http://:80",
        "http://orders:0",
        "http://orders:65536",
        "http://orders:+80",
        "http://orders:",
        "http://256.1.1.1",
        "http://[::1",
        "http://[nonsense]:80",
        "http://::1:80",
        "http://-x",
        "http://a..b",
        "http://a b",
    ]
    .map(endpoint);
    refuse_briefly(
        &endpoints.each_ref().map(String::as_str),
        expect![[r#"
        [[upstream]] / name = "x" / endpoints = ["https://orders:443"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: TLS to upstreams is not supported by this version of tidegate
                use http://, on a network that you trust
        [[upstream]] / name = "x" / endpoints = ["ftp://orders"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `ftp` is not a scheme that tidegate speaks
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["orders:80"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: the scheme is missing
                write "http://orders:80"
        [[upstream]] / name = "x" / endpoints = ["http://orders/api"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: an endpoint has no path
                end it after the port; the client's path is passed on
        [[upstream]] / name = "x" / endpoints = ["http://orders?x"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: an endpoint has no path
                end it after the port; the client's path is passed on
        [[upstream]] / name = "x" / endpoints = ["http://me:pw@orders"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: an endpoint has no user or password
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["http://"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://:80"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://orders:0"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: the port is not a number from 1 to 65_535
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["http://orders:65536"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: the port is not a number from 1 to 65_535
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["http://orders:+80"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: the port is not a number from 1 to 65_535
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["http://orders:"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: the port is not a number from 1 to 65_535
                write it like "http://127.0.0.1:8103"
        [[upstream]] / name = "x" / endpoints = ["http://256.1.1.1"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `256.1.1.1` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://[::1"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `[:` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://[nonsense]:80"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `[nonsense]` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://::1:80"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `::1` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://-x"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `-x` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://a..b"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `a..b` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
        [[upstream]] / name = "x" / endpoints = ["http://a b"] / [[route]] / path = "/*" / upstream = "x"
            `endpoints`: `a b` is not a host
                write a name, an IPv4 address, or an IPv6 address in brackets
    "#]],
    );
    refuse_briefly(
        &[
            "[[upstream]]\nname = \"x\"\nendpoints = [\"http://a\", \"http://A:80/\"]\n[[route]]\npath = \"/*\"\nupstream = \"x\"",
        ],
        expect![[r#"
            [[upstream]] / name = "x" / endpoints = ["http://a", "http://A:80/"] / [[route]] / path = "/*" / upstream = "x"
                `endpoints`: this is in the list twice
                    leave it out
        "#]],
    );
}

#[test]
fn routes() {
    let path = |path: &str| format!("[[route]]\npath = \"{path}\"");
    let paths = [
        "api",
        "",
        "*",
        "/*/x",
        "/x*",
        "/x/**",
        "//",
        "/a//b",
        "/a/./b",
        "/a/../b",
        "/..",
        "/a?b=c",
        "/a#b",
        "/a;v=1",
        "/a\\u0007",
        "/%00",
        "/%5C",
        "/a b",
        "/é",
        "/%41",
        "/%c3",
        "/%",
        "/%+1",
        "/%é",
        "/a\\\\b",
        "/{id}",
    ]
    .map(path);
    refuse_briefly(
        &paths.each_ref().map(String::as_str),
        expect![[r#"
            [[route]] / path = "api"
                `path`: a path begins with `/`
                    write "/api"
            [[route]] / path = ""
                `path`: a path begins with `/`
                    write "/"
            [[route]] / path = "*"
                `path`: a path begins with `/`
                    write "/*"
            [[route]] / path = "/*/x"
                `path`: `*` can only be the last segment, alone
                    write "/x/*" for everything under /x; "/*" for every path
            [[route]] / path = "/x*"
                `path`: `*` can only be the last segment, alone
                    write "/x/*" for everything under /x; "/*" for every path
            [[route]] / path = "/x/**"
                `path`: `*` can only be the last segment, alone
                    write "/x/*" for everything under /x; "/*" for every path
            [[route]] / path = "//"
                `path`: an empty segment (`//`) never matches
                    write one `/`
            [[route]] / path = "/a//b"
                `path`: an empty segment (`//`) never matches
                    write one `/`
            [[route]] / path = "/a/./b"
                `path`: the segment `.` never matches
                    write the path that it stands for
            [[route]] / path = "/a/../b"
                `path`: the segment `..` never matches
                    write the path that it stands for
            [[route]] / path = "/.."
                `path`: the segment `..` never matches
                    write the path that it stands for
            [[route]] / path = "/a?b=c"
                `path`: what follows `?` is not matched
                    leave out what begins with `?`
            [[route]] / path = "/a#b"
                `path`: what follows `#` is not matched
                    leave out what begins with `#`
            [[route]] / path = "/a;v=1"
                `path`: what follows `;` is not matched
                    leave out what begins with `;`
            [[route]] / path = "/a\u0007"
                `path`: a request with '\u{7}' in its path is refused
                    leave it out
            [[route]] / path = "/%00"
                `path`: a request with `%00` in its path is refused
                    leave it out
            [[route]] / path = "/%5C"
                `path`: a request with `%5C` in its path is refused
                    leave it out
            [[route]] / path = "/a b"
                `path`: ' ' cannot stand in a path as it is
                    write it as %20
            [[route]] / path = "/é"
                `path`: 'é' cannot stand in a path as it is
                    write it as %C3%A9
            [[route]] / path = "/%41"
                `path`: `%41` never matches
                    write `A`
            [[route]] / path = "/%c3"
                `path`: `%c3` never matches
                    write `%C3`
            [[route]] / path = "/%"
                `path`: `%` must be followed by two hexadecimal digits
                    write `%25` for a percent sign
            [[route]] / path = "/%+1"
                `path`: `%` must be followed by two hexadecimal digits
                    write `%25` for a percent sign
            [[route]] / path = "/%é"
                `path`: `%` must be followed by two hexadecimal digits
                    write `%25` for a percent sign
            [[route]] / path = "/a\\b"
                `path`: a request with '\\' in its path is refused
                    leave it out
            [[route]] / path = "/{id}"
                `path`: '{' cannot stand in a path as it is
                    write it as %7B
        "#]],
    );
    refuse_briefly(
        &[
            "[[route]]",
            "[[route]]\npath = \"/x\"\n[[route]]\npath = \"/x\"",
            "[[route]]\npath = \"/x\"\nmethods = [\"get\", \"POST\"]\n[[route]]\npath = \"/x\"\nmethods = [\"post\", \"get\"]",
            "[[route]]\npath = \"/x\"\nmethods = [\"GET\", \"get\"]",
            "[[route]]\npath = \"/x\"\nmethods = [\"GET POST\"]",
            "[[route]]\npath = \"/x\"\nexempt = true\nconcurrency = 4",
            "[[route]]\npath = \"/x\"\nconcurrency_status = 429",
            "[[route]]\npath = \"/x\"\nconcurrency = 4\nconcurrency_status = 500",
            "[[route]]\npath = \"/x\"\nconcurrency = 4\nconcurrency_status = \"429\"",
        ],
        expect![[r#"
            [[route]]
                `path` is missing in [[route]]
                    add `path`. This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.
            [[route]] / path = "/x" / [[route]] / path = "/x"
                `path`: an earlier route is already for /x
                    the first that matches wins: remove this one, or give it another path or other methods
            [[route]] / path = "/x" / methods = ["get", "POST"] / [[route]] / path = "/x" / methods = ["post", "get"]
                `path`: an earlier route is already for GET,POST /x
                    the first that matches wins: remove this one, or give it another path or other methods
            [[route]] / path = "/x" / methods = ["GET", "get"]
                `methods`: this is in the list twice
                    leave it out
            [[route]] / path = "/x" / methods = ["GET POST"]
                `methods`: this is not the name of a method
                    write a method such as "GET"; leave `methods` out for all
            [[route]] / path = "/x" / exempt = true / concurrency = 4
                `concurrency`: the route is exempt, and an exempt route is never limited
                    remove one of `exempt` and `concurrency`
            [[route]] / path = "/x" / concurrency_status = 429
                `concurrency_status`: the route has no `concurrency` that could be exceeded
                    write `concurrency`, or remove this
            [[route]] / path = "/x" / concurrency = 4 / concurrency_status = 500
                `concurrency_status`: must be one of `429`, `503`
            [[route]] / path = "/x" / concurrency = 4 / concurrency_status = "429"
                `concurrency_status`: a whole number is needed, this is a string
                    write 429 without quotes
        "#]],
    );
}
