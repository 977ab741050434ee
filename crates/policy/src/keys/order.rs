//! The part of the table about who goes before whom: classes, tenants, retries.

use tidegate_engine::PRIORITIES_MAX;

use super::Absent::{Default, Means, Required};
use super::{Form, Key, Kind, Section, Shape};

const TENANTS_MAX: usize = 1_000;
/// All floors together, and so each alone: the most important class must not find half of its capacity gone.
pub(crate) const FLOORS_MAX: f64 = 0.5;

pub(crate) static PRIORITY: Section = Section {
    name: "priority",
    path: "priority",
    shape: Shape::Many { max: PRIORITIES_MAX },
    doc: "The classes of requests, the most important first. Without any there are `critical`, `default` and \
          `background`, the last with a floor of 0.05. What no route says anything about is in the class `default`, or \
          in the last if there is none of that name.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "name",
            Kind::Text(Form::Name),
            Required,
            "Its name in routes, metrics and logs; no other has it.",
        ),
        Key::new(
            "floor",
            Kind::Share { max: FLOORS_MAX },
            Default("0.0"),
            "This share of the capacity is for the class even if more important ones could use all of it; what it does \
             not use, others do. All floors together are at most 0.5.",
        ),
    ],
};

pub(crate) static TENANT: Section = Section {
    name: "tenant",
    path: "tenant",
    shape: Shape::Many { max: TENANTS_MAX },
    doc: "A tenant that may have more than others. Tenants need not be listed: those that are not have a weight of 1.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "name",
            Kind::Text(Form::TenantName),
            Required,
            "What stands in the header that names the tenant, letter by letter; no other has it.",
        ),
        Key::new(
            "weight",
            Kind::Integer { min: 1, max: 100 },
            Default("1"),
            "A tenant of weight 3 may have three times as much as one of weight 1, while both want more.",
        )
        .zero("the tenant would never be served while others wait"),
    ],
};

pub(crate) static FAIRNESS: Section = Section {
    name: "fairness",
    path: "upstream.fairness",
    shape: Shape::One,
    doc: "How the upstream above is shared between tenants, beside serving them in turn.",
    inner: &[],
    not_yet: &[],
    keys: &[Key::new(
        "tenant_share",
        Kind::Factor { above: 0.0, max: 1.0 },
        Means("no cap: being served in turn is enough"),
        "While the limit binds, no tenant may hold more than this share of it; two slots always. The excess is refused \
         with `tenant_limit`.",
    )],
};

pub(crate) static RETRIES: Section = Section {
    name: "retries",
    path: "upstream.retries",
    shape: Shape::One,
    doc: "How many retries the upstream above is given, by clients and by the gateway itself together. Clients' retries \
          rank below first tries of their class, and what exceeds the budget is refused with `retry_budget`, which tells \
          clients not to try again. The gateway itself sends a request again at most once, and only if nothing of it was \
          sent, or if doing it twice is as good as once (GET, HEAD, OPTIONS, TRACE, PUT, DELETE, without a body or with \
          an unread one), a kept connection died under it, and no byte of an answer had come.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "damp",
            Kind::Switch,
            Default("true"),
            "Whether anything is done about clients' retries. If not, they are requests like any other, and the budget is \
             for the gateway's own.",
        ),
        Key::new(
            "percent",
            Kind::Integer { min: 0, max: 100 },
            Default("10"),
            "So many retries for a hundred first tries are let in.",
        ),
        Key::new(
            "burst",
            Kind::Integer { min: 0, max: 100_000 },
            Default("20"),
            "So many can be saved up for when they are needed; what a second brings can be in any case. 0 here and for the \
             other two means no retries at all.",
        ),
        Key::new(
            "per_second",
            Kind::Integer { min: 0, max: 100_000 },
            Default("1"),
            "So many a second are let in besides, however few first tries there are.",
        ),
    ],
};
