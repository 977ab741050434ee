//! Keys that are unknown, not built yet, of the wrong type, or at odds with each other.

use expect_test::expect;

use crate::{UPSTREAM, refuse, refuse_briefly};

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
                    known are `name`, `endpoints`, `timeout`, `connect_timeout`, `cancels_work`, `orphan_max`, `max_idle_connections`, `idle_timeout`, `advertise_limit`, `concurrency`, `queue`, `fairness`, `retries`, `breaker`, `health_check`
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
                    known are `name`, `endpoints`, `timeout`, `connect_timeout`, `cancels_work`, `orphan_max`, `max_idle_connections`, `idle_timeout`, `advertise_limit`, `concurrency`, `queue`, `fairness`, `retries`, `breaker`, `health_check`
        "#]],
    );
}

#[test]
fn what_belongs_to_something_else() {
    refuse_briefly(
        &[
            "[upstream.concurrency]\nalgorithm = \"codel\"",
            "[upstream.queue]\ncapacity = 4\nstanding_wait = \"50ms\"",
            "[upstream.concurrency]\nbaseline = \"5ms\"\nwindow = 3",
            "[upstream.concurrency]\nalgorithm = \"vegas\"\ndeadline = \"1s\"",
        ],
        expect![[r#"
            [upstream.concurrency] / algorithm = "codel"
                `algorithm`: `codel` is none of the words that it can be
                    write "ebb" or "aimd" or "gradient2" or "vegas"
            [upstream.queue] / capacity = 4 / standing_wait = "50ms"
                `standing_wait`: `capacity` says how long the queue may be, and then this has no effect
                    remove one of the two
            [upstream.concurrency] / baseline = "5ms" / window = 3
                `baseline`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
                `window`: this belongs to the algorithm "aimd", and "ebb" does not look at it
                    remove it, or write algorithm = "aimd"
            [upstream.concurrency] / algorithm = "vegas" / deadline = "1s"
                `deadline`: this belongs to the algorithm "ebb", and "vegas" does not look at it
                    remove it, or write algorithm = "ebb"
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
              = help: add `path`. This very path, or everything under one: `/x/*` covers `/x`, `/x/` and whatever lies below.

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
                    add `name`. Its name in routes, metrics and logs; no other has it.
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
                    add `key`. Who is counted: each client address (IPv6 by /64), each value of a header (requests without it share one), each tenant as its route names it (requests without one share one), each route, or everybody together.
                `rate` is missing in [[rate_limit]]
                    add `rate`. How often, in the long run.
                `name`: ' ' cannot stand in a name
                    a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`
            [[rate_limit]] / name = "x" / key = "client_ip" / rate = "1/s"
                `key`: `client_ip` is nothing that can be counted
                    did you mean "client-ip"? write "client-ip", "header:NAME", "tenant", "route" or "global"
            [[rate_limit]] / name = "x" / key = "header:" / rate = "1/s"
                `key`: this is not the name of a header
                    write it like "header:x-api-key"
            [[rate_limit]] / name = "x" / key = "header:a b" / rate = "1/s"
                `key`: this is not the name of a header
                    write it like "header:x-api-key"
            [[rate_limit]] / name = "x" / key = "cookie:sid" / rate = "1/s"
                `key`: `cookie:sid` is nothing that can be counted
                    write "client-ip", "header:NAME", "tenant", "route" or "global"
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
