//! What is refused, and the answer to it.

use expect_test::expect;
use tidegate_policy::{Policy, Style};

use crate::{UPSTREAM, refuse, refuse_briefly};

/// The example of the design, word for word.
pub(crate) const DESIGN: &str = include_str!("design.toml");

#[test]
fn the_design_example_names_what_is_not_built() {
    refuse(
        DESIGN,
        expect![[r#"
        error: `algorithm`: "ebb" is not supported by this version of tidegate
          --> policy.toml:19:13
           |
        19 | algorithm = "ebb"                    # the default (notes/limiter.md); to compare with: aimd, gradient2, vegas
           |             ^^^^^
           |
           = help: write "aimd", or leave the key out

        error: `priority` is not supported by this version of tidegate
          --> policy.toml:27:3
           |
        27 | [[priority]]                         # most important first; without any: critical, default, background
           |   ^^^^^^^^
           |
           = help: remove it; it would not be in force

        error: `priority` is not supported by this version of tidegate
          --> policy.toml:39:1
           |
        39 | priority = "critical"                # a name, or "header:NAME" whose value is a name; unknown or missing: the class "default", else...
           | ^^^^^^^^
           |
           = help: remove it; it would not be in force

        error: `tenant` is not supported by this version of tidegate
          --> policy.toml:40:1
           |
        40 | tenant   = "header:x-tenant"         # whom to be fair between (also client-ip)
           | ^^^^^^
           |
           = help: remove it; it would not be in force

    "#]],
    );
}

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
           = help: This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.

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
fn a_bare_number_where_a_unit_is_needed() {
    refuse_briefly(
        &[
            "timeout = 500",
            "timeout = 0.5",
            "timeout = \"500\"",
            "timeout = -1",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = 10",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"10\"",
        ],
        expect![[r#"
            timeout = 500
                `timeout`: a duration needs a unit
                    write "500ms" or "500s"
            timeout = 0.5
                `timeout`: a duration needs a unit
                    write "0.5ms" or "0.5s"
            timeout = "500"
                `timeout`: a duration needs a unit
                    write "500ms" or "500s"
            timeout = -1
                `timeout`: a string with a unit, such as "500ms", is needed, this is an integer
            [[rate_limit]] / name = "x" / key = "global" / rate = 10
                `rate`: a rate needs a period
                    write "10/s" or "10/min"
            [[rate_limit]] / name = "x" / key = "global" / rate = "10"
                `rate`: a rate needs a period
                    write "10/s" or "10/min"
        "#]],
    );
}

#[test]
fn durations() {
    refuse_briefly(
        &[
            r#"timeout = "2 s""#,
            r#"timeout = "2 sec""#,
            r#"timeout = "-2s""#,
            r#"timeout = "1.2.3s""#,
            r#"timeout = ".5s""#,
            r#"timeout = "5.s""#,
            r#"timeout = "1e3s""#,
            r#"timeout = "s""#,
            r#"timeout = """#,
            r#"timeout = "0s""#,
            r#"timeout = "500us""#,
            r#"timeout = "2h""#,
            r#"timeout = "99999999999999999999999s""#,
            r#"timeout = "9999999999999999999h""#,
            r#"timeout = "1.0000000000000000000000000000001s""#,
            r#"timeout = "0.1230000001us""#,
            r#"timeout = ["2s"]"#,
            r#"timeout = 07:32:00"#,
            "[upstream.queue]\nwait = \"11m\"",
        ],
        expect![[r#"
            timeout = "2 s"
                `timeout`: `s` is not a unit of time
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "2 sec"
                `timeout`: `sec` is not a unit of time
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "-2s"
                `timeout`: a duration cannot be negative
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "1.2.3s"
                `timeout`: `1.2.3` is not a number
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = ".5s"
                `timeout`: `.5` is not a number
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "5.s"
                `timeout`: `5.` is not a number
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "1e3s"
                `timeout`: `e3s` is not a unit of time
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "s"
                `timeout`: this is not a duration
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = ""
                `timeout`: this is not a duration
                    a duration is a number and a unit (us, ms, s, m, h), such as "500ms" or "1.5s"
            timeout = "0s"
                `timeout`: shorter than 1ms, the least that is allowed
            timeout = "500us"
                `timeout`: shorter than 1ms, the least that is allowed
            timeout = "2h"
                `timeout`: longer than 1h, the most that is allowed
            timeout = "99999999999999999999999s"
                `timeout`: longer than any duration that is allowed
            timeout = "9999999999999999999h"
                `timeout`: longer than any duration that is allowed
            timeout = "1.0000000000000000000000000000001s"
                `timeout`: finer than a nanosecond
                    leave out the last digits
            timeout = "0.1230000001us"
                `timeout`: finer than a nanosecond
                    leave out the last digits
            timeout = ["2s"]
                `timeout`: a string with a unit, such as "500ms", is needed, this is a list
            timeout = 07:32:00
                `timeout`: a string with a unit, such as "500ms", is needed, this is a date or a time
            [upstream.queue] / wait = "11m"
                `wait`: longer than 10m, the most that is allowed
        "#]],
    );
}

#[test]
fn numbers_that_are_none() {
    refuse_briefly(
        &[
            "[upstream.concurrency]\ntolerance = nan",
            "[upstream.concurrency]\ntolerance = inf",
            "[upstream.concurrency]\ntolerance = -inf",
            "[upstream.concurrency]\ntolerance = 1e400",
            "[upstream.concurrency]\ntolerance = -2.0",
            "[upstream.concurrency]\ntolerance = 1.0",
            "[upstream.concurrency]\ntolerance = 100.1",
            "[upstream.concurrency]\ntolerance = \"2\"",
            "[upstream.concurrency]\nlimit = nan",
            "[upstream.concurrency]\nlimit = 1e400",
            "[upstream.concurrency]\nlimit = 4.0",
            "[upstream.concurrency]\nlimit = \"4\"",
            "[upstream.concurrency]\nlimit = \"auto\"",
            "[upstream.concurrency]\nlimit = -4",
            "[upstream.concurrency]\nlimit = 1_000_001",
            "[upstream.concurrency]\nlimit = 0xffff_ffff_ffff",
            "[upstream.queue]\ncapacity = inf",
            "[upstream.queue]\ncapacity = 100_001",
            "max_idle_connections = 340282366920938463463374607431768211456",
            "timeout = nan",
            "timeout = 1e400",
        ],
        expect![[r#"
            [upstream.concurrency] / tolerance = nan
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = inf
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = -inf
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = 1e400
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = -2.0
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = 1.0
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = 100.1
                `tolerance`: the number must be more than 1.0, at most 100.0
            [upstream.concurrency] / tolerance = "2"
                `tolerance`: a number is needed, this is a string
            [upstream.concurrency] / limit = nan
                `limit`: "adaptive" or a whole number is needed, this is a float
            [upstream.concurrency] / limit = 1e400
                `limit`: "adaptive" or a whole number is needed, this is a float
            [upstream.concurrency] / limit = 4.0
                `limit`: "adaptive" or a whole number is needed, this is a float
                    write 4
            [upstream.concurrency] / limit = "4"
                `limit`: a number in quotes is a string
                    write 4 without quotes
            [upstream.concurrency] / limit = "auto"
                `limit`: `auto` is not a limit
                    write "adaptive", or a number that you have measured
            [upstream.concurrency] / limit = -4
                `limit`: must be from 1 to 1_000_000
            [upstream.concurrency] / limit = 1_000_001
                `limit`: must be from 1 to 1_000_000
            [upstream.concurrency] / limit = 0xffff_ffff_ffff
                `limit`: must be from 1 to 1_000_000
            [upstream.queue] / capacity = inf
                `capacity`: a whole number is needed, this is a float
            [upstream.queue] / capacity = 100_001
                `capacity`: must be from 0 to 100_000
            max_idle_connections = 340282366920938463463374607431768211456
                `max_idle_connections`: must be from 0 to 100_000
            timeout = nan
                `timeout`: a string with a unit, such as "500ms", is needed, this is a float
            timeout = 1e400
                `timeout`: a string with a unit, such as "500ms", is needed, this is a float
        "#]],
    );
}

/// Whatever would let nothing through, for ever.
#[test]
fn zeros() {
    refuse_briefly(
        &[
            "[upstream.concurrency]\nlimit = 0",
            "[upstream.concurrency]\nmin = 0",
            "[upstream.concurrency]\nmax = 0",
            "[upstream.concurrency]\ninitial = 0",
            "[upstream.concurrency]\nbaseline = \"0s\"",
            "[upstream.concurrency]\nwindow = 0",
            "[upstream.concurrency]\ncooldown = \"0s\"",
            "[upstream.queue]\nwait = \"0ms\"",
            "[upstream.queue]\nwait = \"0ms\"\ncapacity = 1",
            "[[route]]\npath = \"/*\"\nconcurrency = 0",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"0/s\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"1/0s\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"1/s\"\nburst = 0",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"1/s\"\nmax_keys = 0",
            "[server]\nmax_connections = 0",
            "[server]\nretry_after_max = \"0s\"",
        ],
        expect![[r#"
            [upstream.concurrency] / limit = 0
                `limit`: 0 is not allowed: no request would ever be let through
                    it can be 1 to 1_000_000
            [upstream.concurrency] / min = 0
                `min`: 0 is not allowed: a limit of 0 lets nothing through, so nothing would ever raise it again
                    it can be 1 to 1_000_000
            [upstream.concurrency] / max = 0
                `max`: 0 is not allowed: no request would ever be let through
                    it can be 1 to 1_000_000
            [upstream.concurrency] / initial = 0
                `initial`: 0 is not allowed: no request would ever be let through
                    it can be 1 to 1_000_000
            [upstream.concurrency] / baseline = "0s"
                `baseline`: 0 is not allowed: every answer would be slow
                    it can be 1us to 1h
            [upstream.concurrency] / window = 0
                `window`: 0 is not allowed: the limit would rise without an answer
                    it can be 1 to 1_000_000
            [upstream.concurrency] / cooldown = "0s"
                `cooldown`: 0 is not allowed: one burst of slow answers would take the limit to its minimum
                    it can be 1ms to 1h
            [upstream.queue] / wait = "0ms"
                `wait`: 0 is not allowed with a queue: nobody in it would ever be served
                    give `capacity = 0` as well to refuse at once whatever finds no free slot
            [upstream.queue] / wait = "0ms" / capacity = 1
                `wait`: 0 is not allowed with a queue: nobody in it would ever be served
                    give `capacity = 0` as well to refuse at once whatever finds no free slot
            [[route]] / path = "/*" / concurrency = 0
                `concurrency`: 0 is not allowed: every request of the route would be refused
                    it can be 1 to 1_000_000
            [[rate_limit]] / name = "x" / key = "global" / rate = "0/s"
                `rate`: a rate of 0 would refuse every request
                    to refuse a path altogether, leave it without a route
            [[rate_limit]] / name = "x" / key = "global" / rate = "1/0s"
                `rate`: a period of 0 has no rate
                    a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
            [[rate_limit]] / name = "x" / key = "global" / rate = "1/s" / burst = 0
                `burst`: 0 is not allowed: every request would be refused
                    it can be 1 to 1_000_000_000
            [[rate_limit]] / name = "x" / key = "global" / rate = "1/s" / max_keys = 0
                `max_keys`: 0 is not allowed: nobody could be counted
                    it can be 1 to 10_000_000
            [server] / max_connections = 0
                `max_connections`: 0 is not allowed: no client could connect
                    it can be 1 to 1_000_000
            [server] / retry_after_max = "0s"
                `retry_after_max`: shorter than 1s, the least that is allowed
        "#]],
    );
}

#[test]
fn rates() {
    let rate = |rate: &str| format!("[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = {rate}");
    let rates = [
        "\"0.5/s\"",
        "\"-1/s\"",
        "\"10/fortnight\"",
        "\"10/\"",
        "\"/s\"",
        "\"1e3/s\"",
        "\"10 / s\"",
        "\"1/1.5s\"",
        "\"1/400d\"",
        "\"1/99999999999999999999s\"",
        "\"4294967296/s\"",
        "\"2000000000/s\"",
        "\"fast\"",
        "nan",
        "\"1/day\"\nburst = 1_000_000_000",
    ]
    .map(rate);
    refuse_briefly(
        &rates.each_ref().map(String::as_str),
        expect![[r#"
        [[rate_limit]] / name = "x" / key = "global" / rate = "0.5/s"
            `rate`: the count of a rate is a whole number
                for less than one in a period, lengthen the period: "1/2s" is one every two seconds
        [[rate_limit]] / name = "x" / key = "global" / rate = "-1/s"
            `rate`: a rate cannot be negative
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "10/fortnight"
            `rate`: `fortnight` is not a period
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "10/"
            `rate`: `` is not a period
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "/s"
            `rate`: `` is not a count
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "1e3/s"
            `rate`: `1e3` is not a count
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "10 / s"
            `rate`: `10 ` is not a count
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "1/1.5s"
            `rate`: `1.5s` is not a period
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "1/400d"
            `rate`: the period is longer than 366 days
                is the unit the right one?
        [[rate_limit]] / name = "x" / key = "global" / rate = "1/99999999999999999999s"
            `rate`: `99999999999999999999s` is not a period
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "4294967296/s"
            `rate`: faster than any rate that is allowed
                the highest rate is "1000000000/s"
        [[rate_limit]] / name = "x" / key = "global" / rate = "2000000000/s"
            `rate`: more than a thousand million a second cannot be told apart
                is the unit the right one?
        [[rate_limit]] / name = "x" / key = "global" / rate = "fast"
            `rate`: this is not a rate
                a rate is a count, `/` and a period (s, min, h, day), such as "10/s", "600/min" or "5/10s"
        [[rate_limit]] / name = "x" / key = "global" / rate = nan
            `rate`: a string with a period, such as "10/s", is needed, this is a float
        [[rate_limit]] / name = "x" / key = "global" / rate = "1/day" / burst = 1_000_000_000
            `burst`: at this rate the burst would take more than a hundred years to come back
                is the unit the right one?
    "#]],
    );
}

#[test]
fn unknown_keys_and_the_nearest_known() {
    refuse_briefly(
        &[
            "Timeout = \"2s\"",
            "time-out = \"2s\"",
            "colour = \"red\"",
            "[upstream.queue]\ncapacty = 4",
            "[upstream.queues]\nwait = \"1s\"",
            "[servers]\nlisten = \"127.0.0.1:1\"",
            "[[rate-limit]]\nname = \"x\"",
            "\"\\u001b[31mred\" = 1",
        ],
        expect![[r#"
            Timeout = "2s"
                `Timeout` is not known in [[upstream]]
                    did you mean `timeout`?
            time-out = "2s"
                `time-out` is not known in [[upstream]]
                    did you mean `timeout`?
            colour = "red"
                `colour` is not known in [[upstream]]
                    known are `name`, `endpoints`, `timeout`, `connect_timeout`, `cancels_work`, `orphan_max`, `max_idle_connections`, `idle_timeout`, `concurrency`, `queue`
            [upstream.queue] / capacty = 4
                `capacty` is not known in [upstream.queue]
                    did you mean `capacity`?
            [upstream.queues] / wait = "1s"
                `queues` is not known in [[upstream]]
                    did you mean `queue`?
            [servers] / listen = "127.0.0.1:1"
                `servers` is not known in a policy
                    did you mean `server`?
            [[rate-limit]] / name = "x"
                `rate-limit` is not known in a policy
                    did you mean `rate_limit`?
            "\u001b[31mred" = 1
                `\u{1b}[31mred` is not known in [[upstream]]
                    known are `name`, `endpoints`, `timeout`, `connect_timeout`, `cancels_work`, `orphan_max`, `max_idle_connections`, `idle_timeout`, `concurrency`, `queue`
        "#]],
    );
}

#[test]
fn what_is_designed_and_not_built() {
    refuse_briefly(
        &[
            "[[priority]]\nname = \"critical\"",
            "[[route]]\npath = \"/*\"\npriority = \"critical\"\ntenant = \"client-ip\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"tenant\"\nrate = \"1/s\"",
            "[upstream.concurrency]\nalgorithm = \"vegas\"",
            "[upstream.concurrency]\nalgorithm = \"gradient2\"",
            "[upstream.concurrency]\nalgorithm = \"codel\"",
        ],
        expect![[r#"
            [[priority]] / name = "critical"
                `priority` is not supported by this version of tidegate
                    remove it; it would not be in force
            [[route]] / path = "/*" / priority = "critical" / tenant = "client-ip"
                `priority` is not supported by this version of tidegate
                    remove it; it would not be in force
                `tenant` is not supported by this version of tidegate
                    remove it; it would not be in force
            [[rate_limit]] / name = "x" / key = "tenant" / rate = "1/s"
                `key`: a limit for each tenant is not supported by this version of tidegate
                    use "header:NAME" with the tenant's header
            [upstream.concurrency] / algorithm = "vegas"
                `algorithm`: "vegas" is not supported by this version of tidegate
                    write "aimd", or leave the key out
            [upstream.concurrency] / algorithm = "gradient2"
                `algorithm`: "gradient2" is not supported by this version of tidegate
                    write "aimd", or leave the key out
            [upstream.concurrency] / algorithm = "codel"
                `algorithm`: `codel` is none of the words that it can be
                    write "aimd"
        "#]],
    );
}

#[test]
fn wrong_types_and_shapes() {
    refuse_briefly(
        &[
            "cancels_work = \"true\"",
            "cancels_work = 1",
            "[server]\ntrusted_proxies = \"10.0.0.0/8\"",
            "[server]\ntrusted_proxies = [1]",
            "[server]\nworkers = true",
            "[server]\naccess_log = true",
            "[server]\naccess_log = \"refuse\"",
            "[[server]]\nworkers = 1",
            "[route]\npath = \"/*\"",
            "queue = 4",
            "[[upstream.queue]]\nwait = \"1s\"",
        ],
        expect![[r#"
            cancels_work = "true"
                `cancels_work`: true or false is needed, this is a string
                    write true without quotes
            cancels_work = 1
                `cancels_work`: true or false is needed, this is an integer
            [server] / trusted_proxies = "10.0.0.0/8"
                `trusted_proxies`: a list of strings (address or network) is needed, this is a string
                    write it in brackets: ["…"]
            [server] / trusted_proxies = [1]
                `trusted_proxies`: a string is needed, this is an integer
                    write it in quotes
            [server] / workers = true
                `workers`: a whole number is needed, this is true or false
            [server] / access_log = true
                `access_log`: a string is needed, this is true or false
                    write it in quotes
            [server] / access_log = "refuse"
                `access_log`: `refuse` is none of the words that it can be
                    did you mean "refused"? It can be "off" or "refused" or "all"
            [[server]] / workers = 1
                `server` is a table, this is a list
                    write [server] on a line of its own, and its keys below
            [route] / path = "/*"
                `route` is a list of tables, this is a table
                    write [[route]] with two brackets, once for each
            queue = 4
                `queue` is a table, this is an integer
                    write [upstream.queue] on a line of its own, and its keys below
            [[upstream.queue]] / wait = "1s"
                `queue` is a table, this is a list
                    write [upstream.queue] on a line of its own, and its keys below
        "#]],
    );
    refuse(
        "upstream = 1\n",
        expect![[r#"
        error: `upstream` is a list of tables, this is an integer
         --> policy.toml:1:12
          |
        1 | upstream = 1
          |            ^
          |
          = help: write [[upstream]] with two brackets, once for each

    "#]],
    );
    refuse(
        "route = [1, {}]\nupstream = [{ name = \"x\", endpoints = [] }]\n",
        expect![[r#"
        error: `route` is a list of tables, this is an integer
         --> policy.toml:1:10
          |
        1 | route = [1, {}]
          |          ^
          |
          = help: write [[route]] with two brackets, once for each

        error: `path` is missing in [[route]]
         --> policy.toml:1:13
          |
        1 | route = [1, {}]
          |             ^^
          |
          = help: This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.

        error: `endpoints`: a list of 0 where 1 to 64 are allowed
         --> policy.toml:2:39
          |
        2 | upstream = [{ name = "x", endpoints = [] }]
          |                                       ^^

    "#]],
    );
}

#[test]
fn names_and_references() {
    refuse_briefly(
        &[
            UPSTREAM,
            "[[upstream]]\nname = \"b\"\nendpoints = [\"http://b\"]",
            "[[upstream]]\nname = \"b\"\nendpoints = [\"http://b\"]\n[[route]]\npath = \"/*\"",
            "[[upstream]]\nname = \"\"\nendpoints = []\n[[route]]\npath = \"/*\"\nupstream = \"orders\"",
            "[[upstream]]\nendpoints = [\"http://b\"]\n[[route]]\npath = \"/*\"\nupstream = \"b\"",
            "[[route]]\npath = \"/*\"\nupstream = \"order\"",
            "[[route]]\npath = \"/*\"\nupstream = \"payments\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"global\"\nrate = \"1/s\"\n\
             [[rate_limit]]\nname = \"x\"\nkey = \"route\"\nrate = \"1/s\"",
            "[[rate_limit]]\nname = \"a b\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"client_ip\"\nrate = \"1/s\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"header:\"\nrate = \"1/s\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"header:a b\"\nrate = \"1/s\"",
            "[[rate_limit]]\nname = \"x\"\nkey = \"cookie:sid\"\nrate = \"1/s\"",
        ],
        expect![[r#"
            [[upstream]] / name = "orders" / endpoints = ["http://127.0.0.1:8103"]
                there are several upstreams and no route that chooses between them
                    write [[route]] with a path and an upstream, at least once
                `name`: `orders` is taken by an earlier one
                    give each a name of its own
            [[upstream]] / name = "b" / endpoints = ["http://b"]
                there are several upstreams and no route that chooses between them
                    write [[route]] with a path and an upstream, at least once
            [[upstream]] / name = "b" / endpoints = ["http://b"] / [[route]] / path = "/*"
                `upstream` is missing in [[route]], and there are several
                    say where the route goes: one of "orders", "b"
            [[upstream]] / name = "" / endpoints = [] / [[route]] / path = "/*" / upstream = "orders"
                `name`: a name cannot be empty
                    a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`
                `endpoints`: a list of 0 where 1 to 64 are allowed
            [[upstream]] / endpoints = ["http://b"] / [[route]] / path = "/*" / upstream = "b"
                `name` is missing in [[upstream]]
                    Its name in routes, metrics and logs; no other has it.
            [[route]] / path = "/*" / upstream = "order"
                `upstream`: there is no upstream named `order`
                    did you mean "orders"?
            [[route]] / path = "/*" / upstream = "payments"
                `upstream`: there is no upstream named `payments`
                    there is "orders"
            [[rate_limit]] / name = "x" / key = "global" / rate = "1/s" / [[rate_limit]] / name = "x" / key = "route" / rate = "1/s"
                `name`: `x` is taken by an earlier one
                    give each a name of its own
            [[rate_limit]] / name = "a b"
                `key` is missing in [[rate_limit]]
                    Who is counted: each client address (IPv6 by /64), each value of a header, each route, or everybody together.
                `rate` is missing in [[rate_limit]]
                    How often, in the long run.
                `name`: ' ' cannot stand in a name
                    a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`
            [[rate_limit]] / name = "x" / key = "client_ip" / rate = "1/s"
                `key`: `client_ip` is nothing that can be counted
                    did you mean "client-ip"? write "client-ip", "header:NAME", "route" or "global"
            [[rate_limit]] / name = "x" / key = "header:" / rate = "1/s"
                `key`: this is not the name of a header
                    write it like "header:x-api-key"
            [[rate_limit]] / name = "x" / key = "header:a b" / rate = "1/s"
                `key`: this is not the name of a header
                    write it like "header:x-api-key"
            [[rate_limit]] / name = "x" / key = "cookie:sid" / rate = "1/s"
                `key`: `cookie:sid` is nothing that can be counted
                    write "client-ip", "header:NAME", "route" or "global"
        "#]],
    );
}

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
        "api", "", "*", "/*/x", "/x*", "/x/**", "//", "/a//b", "/a/./b", "/a/../b", "/..", "/a?b=c", "/a#b",
        "/a b", "/é", "/%41", "/%c3", "/%", "/%+1", "/%é", "/a\\\\b", "/{id}",
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
            `path`: `?` ends a path, and what follows it is not matched
                leave out what begins with `?`
        [[route]] / path = "/a#b"
            `path`: `#` ends a path, and what follows it is not matched
                leave out what begins with `#`
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
            `path`: '\\' cannot stand in a path as it is
                write it as %5C
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
        ],
        expect![[r#"
            [[route]]
                `path` is missing in [[route]]
                    This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.
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
        "#]],
    );
}

#[test]
fn limits_that_contradict_themselves() {
    refuse_briefly(
        &[
            "[upstream.concurrency]\nlimit = 4\nmin = 1\nbaseline = \"5ms\"\nalgorithm = \"aimd\"",
            "[upstream.concurrency]\nmax = 1",
            "[upstream.concurrency]\nmin = 2000",
            "[upstream.concurrency]\nmin = 9\nmax = 8",
            "[upstream.concurrency]\ninitial = 1",
            "[upstream.concurrency]\nmin = 5\nmax = 10\ninitial = 11",
        ],
        expect![[r#"
            [upstream.concurrency] / limit = 4 / min = 1 / baseline = "5ms" / algorithm = "aimd"
                `min`: this belongs to the adaptive limit, and `limit` is a number
                    remove it, or write limit = "adaptive"
                `baseline`: this belongs to the adaptive limit, and `limit` is a number
                    remove it, or write limit = "adaptive"
                `algorithm`: this belongs to the adaptive limit, and `limit` is a number
                    remove it, or write limit = "adaptive"
            [upstream.concurrency] / max = 1
                `max`: `min` is 2 and `max` is 1: nothing lies between
                    give `min` as well
            [upstream.concurrency] / min = 2000
                `min`: `min` is 2000 and `max` is 1000: nothing lies between
                    give `max` as well
            [upstream.concurrency] / min = 9 / max = 8
                `max`: `min` is 9 and `max` is 8: nothing lies between
            [upstream.concurrency] / initial = 1
                `initial`: 1 is not within `min` and `max`
                    write a number from 2 to 1000
            [upstream.concurrency] / min = 5 / max = 10 / initial = 11
                `initial`: 11 is not within `min` and `max`
                    write a number from 5 to 10
        "#]],
    );
}

#[test]
fn addresses_and_networks() {
    refuse_briefly(
        &[
            "[server]\nlisten = \":8080\"",
            "[server]\nlisten = \"localhost:8080\"",
            "[server]\nlisten = \"127.0.0.1\"",
            "[server]\nlisten = \"127.0.0.1:99999\"",
            "[server]\nlisten = \"127.0.0.1:80\"\nadmin = \"127.0.0.1:80\"",
            "[server]\nlisten = \"127.0.0.1:8101\"",
            "[server]\ntrusted_proxies = [\"10.0.0.1/8\", \"10.0.0.0/33\", \"proxy\", \"::1\", \"::1\"]",
            "[server]\naccess_log_file = \"\"",
        ],
        expect![[r#"
            [server] / listen = ":8080"
                `listen`: this is not an address with a port
                    write "0.0.0.0:8080" for every interface
            [server] / listen = "localhost:8080"
                `listen`: this is not an address with a port
                    write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"
            [server] / listen = "127.0.0.1"
                `listen`: this is not an address with a port
                    write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"
            [server] / listen = "127.0.0.1:99999"
                `listen`: this is not an address with a port
                    write an address and a port, such as "127.0.0.1:8102" or "[::1]:8102"
            [server] / listen = "127.0.0.1:80" / admin = "127.0.0.1:80"
                `admin`: `listen` and `admin` are the same address
                    give each a port of its own
            [server] / listen = "127.0.0.1:8101"
                `listen`: `listen` and `admin` are the same address
                    give each a port of its own
            [server] / trusted_proxies = ["10.0.0.1/8", "10.0.0.0/33", "proxy", "::1", "::1"]
                `trusted_proxies`: the address has bits beyond the prefix
                    write "10.0.0.0/8" for the network, or the address alone
                `trusted_proxies`: this is neither an address nor a network
                    write "10.0.0.7", "10.0.0.0/8" or "fd00::/8"
                `trusted_proxies`: this is neither an address nor a network
                    write "10.0.0.7", "10.0.0.0/8" or "fd00::/8"
                `trusted_proxies`: this is in the list twice
                    leave it out
            [server] / access_log_file = ""
                `access_log_file`: this is not the path of a file
                    leave the key out for standard output
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
        error: this is not TOML: duplicate key
         --> policy.toml:5:1
          |
        5 | timeout = "2s"
          | ^^^^^^^

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
         = help: known are `server`, `upstream`, `route`, `rate_limit`

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
    refuse_briefly_tail(&[
        &routes,
        &limits,
        &format!("{upstreams}[[route]]\npath = \"/*\"\nupstream = \"n1\"\n"),
    ]);
}

#[track_caller]
fn refuse_briefly_tail(texts: &[&str]) {
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
