//! Values that are refused one by one: durations, rates, numbers, addresses.

use expect_test::expect;

use crate::refuse_briefly;

/// B9 (actix-governor#49): a number without a unit is never guessed at.
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
            r#"timeout = "2sec""#,
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
                `timeout`: no space stands in a duration
                    write "2s"
            timeout = "2sec"
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
                `timeout`: must be from 1ms to 1h
            timeout = "500us"
                `timeout`: must be from 1ms to 1h
            timeout = "2h"
                `timeout`: must be from 1ms to 1h
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
                `wait`: must be from 0s to 10m
        "#]],
    );
}

/// B11: what is no number, or none that makes sense, is an error.
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
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = inf
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = -inf
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = 1e400
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = -2.0
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = 1.0
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = 100.1
                `tolerance`: the number must be more than 1.0, at most 100.0
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / tolerance = "2"
                `tolerance`: a number is needed, this is a string
                `tolerance`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
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

/// A11 (cowprotocol#4804, redis-cell#41): a zero that would let nobody through is an error, not a deadlock.
/// Whatever would let nothing through, for ever.
#[test]
fn names_that_the_admin_side_answers_to() {
    refuse_briefly(
        &[
            "[server]\nadmin_hosts = [\"10.0.0.1\"]",
            "[server]\nadmin_hosts = [\"gateway:8101\"]",
            "[server]\nadmin_hosts = [\"*\"]",
            "[server]\nadmin_hosts = [\"a.example\", \"A.example\"]",
        ],
        expect![[r#"
            [server] / admin_hosts = ["10.0.0.1"]
                `admin_hosts`: this is an address
                    addresses are answered anyway; write names
            [server] / admin_hosts = ["gateway:8101"]
                `admin_hosts`: `gateway:8101` is not the name of a host
                    write it like "gateway.example", without a port
            [server] / admin_hosts = ["*"]
                `admin_hosts`: `*` is not the name of a host
                    write it like "gateway.example", without a port
            [server] / admin_hosts = ["a.example", "A.example"]
                `admin_hosts`: this is in the list twice
                    leave it out
        "#]],
    );
}

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
                `baseline`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / window = 0
                `window`: 0 is not allowed: the limit would rise without an answer
                    it can be 1 to 1_000_000
                `window`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / cooldown = "0s"
                `cooldown`: 0 is not allowed: one burst of slow answers would take the limit to its minimum
                    it can be 1ms to 1h
                `cooldown`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.queue] / wait = "0ms"
                `wait`: 0 is not allowed with a queue: nobody in it would ever be served
                    give the queue a capacity of 0 as well, and whatever finds no free slot is refused at once
            [upstream.queue] / wait = "0ms" / capacity = 1
                `wait`: 0 is not allowed with a queue: nobody in it would ever be served
                    give the queue a capacity of 0 as well, and whatever finds no free slot is refused at once
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
                `retry_after_max`: must be from 1s to 1h
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
                `rate`: no space stands in a rate
                    write "10/s"
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
