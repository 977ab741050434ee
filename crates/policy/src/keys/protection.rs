//! What keeps requests away from endpoints that do not answer, as far as a policy file can say: the breaker, the health
//! check, and how often the gateway itself tries again.

use std::time::Duration;

use tidegate_engine::PROBES_MAX;

use super::Absent::{Default, Means, Required};
use super::{Form, Key, Kind, Section, Shape};

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) static BREAKER: Section = Section {
    name: "breaker",
    path: "upstream.breaker",
    shape: Shape::One,
    doc: "When an endpoint of the upstream above is asked no more for a while. Timeouts, 503, 504 and 429 are no failures \
          here: to those the concurrency limit answers.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "enabled",
            Kind::Switch,
            Default("true"),
            "Whether there is a breaker before each endpoint at all. With `false`, no other key may be given.",
        ),
        Key::new(
            "connect_failures",
            Kind::Integer { min: 1, max: 10_000 },
            Default("5"),
            "It opens when so many connections in a row could not be made.",
        )
        .zero("it would open without any failure"),
        Key::new(
            "failure_ratio",
            Kind::Factor { above: 0.0, max: 1.0 },
            Default("0.8"),
            "It opens when this share of the requests within `window` got an error (5xx but 503 and 504), a connection \
             that broke, or none.",
        ),
        Key::new(
            "min_requests",
            Kind::Integer { min: 1, max: 1_000_000 },
            Default("20"),
            "With fewer requests within `window`, their shares say nothing.",
        )
        .zero("it would open on nothing"),
        Key::new(
            "window",
            Kind::Duration { min: Duration::from_millis(10), max: HOUR },
            Default("\"3s\""),
            "How far back requests are counted.",
        )
        .zero("there would be nothing to count"),
        Key::new(
            "open",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"250ms\""),
            "How long it is open at first; twice as long each time that it opens again.",
        )
        .zero("it would not be open at all"),
        Key::new(
            "open_max",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"1s\""),
            "The longest that it is open.",
        )
        .zero("it would not be open at all"),
        Key::new(
            "probes",
            Kind::Integer { min: 1, max: PROBES_MAX },
            Default("3"),
            "After that so many requests at once are let through as probes. When as many have succeeded, it closes; when \
             one fails, it opens again.",
        )
        .zero("it would never close"),
        Key::new(
            "probe_timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Means("the upstream's `timeout`"),
            "A probe of which nothing is heard for so long gives its place to another.",
        )
        .zero("there would be no bound on the probes"),
        Key::new(
            "eject",
            Kind::Switch,
            Default("true"),
            "Whether it opens also before an endpoint that does much worse than the others. Here timeouts, 503 and 504 \
             count too.",
        ),
        Key::new(
            "worse_by",
            Kind::Factor { above: 0.0, max: 1.0 },
            Default("0.3"),
            "How much worse: the share of its requests that went badly, less that of the others.",
        ),
        Key::new(
            "max_ejected",
            Kind::Factor { above: 0.0, max: 1.0 },
            Default("0.5"),
            "No endpoint is ejected if more than this share of them would then be out, for whatever reason; the last never.",
        ),
    ],
};

pub(crate) static HEALTH_CHECK: Section = Section {
    name: "health_check",
    path: "upstream.health_check",
    shape: Shape::One,
    doc: "Asks every endpoint of the upstream above now and then, if this is written. An endpoint that is not healthy gets \
          no requests, unless more than half of them are not: then the check is thought to be wrong, and all get some.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "path",
            Kind::Text(Form::Target),
            Required,
            "What is asked for, with GET. An answer 2xx says that the endpoint is healthy.",
        ),
        Key::new(
            "host",
            Kind::Text(Form::Host),
            Means("the endpoint's own address"),
            "What the field `Host` says, for a service that tells several hosts apart.",
        ),
        Key::new(
            "interval",
            Kind::Duration { min: Duration::from_millis(10), max: HOUR },
            Default("\"5s\""),
            "How long from one question to the next, for each endpoint.",
        )
        .zero("it would ask all the time"),
        Key::new(
            "timeout",
            Kind::Duration { min: Duration::from_millis(1), max: HOUR },
            Default("\"1s\""),
            "An answer that has not come by then is none.",
        )
        .zero("no endpoint would ever be healthy"),
        Key::new(
            "healthy_after",
            Kind::Integer { min: 1, max: 1_000 },
            Default("2"),
            "An endpoint is healthy again after so many good answers in a row. At first all are, until the first answer, which counts by itself.",
        )
        .zero("no endpoint would ever be unhealthy"),
        Key::new(
            "unhealthy_after",
            Kind::Integer { min: 1, max: 1_000 },
            Default("3"),
            "An endpoint is unhealthy after so many questions in a row without a good answer.",
        )
        .zero("no endpoint would ever be healthy"),
    ],
};
