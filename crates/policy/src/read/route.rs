//! `[[route]]`

use std::collections::HashSet;
use std::num::NonZeroU32;

use super::Places;
use super::priority;
use super::section::{Found, Section, duration, integer, nonzero, one_of, switch, text};
use super::upstream::Names;
use crate::keys::ROUTE;
use crate::model::{Bulkhead, PathPattern, Route, RoutePriority};
use crate::problem::{Raw, Report};
use crate::values::{self, show};

/// What routes refer to by name.
#[derive(Debug)]
pub(crate) struct Targets<'d> {
    pub(crate) upstreams: Names<'d>,
    pub(crate) classes: Names<'d>,
}

/// `None` after a problem was reported.
pub(crate) fn read(
    routes: &[Found<'_>],
    targets: &Targets<'_>,
    report: &mut Report,
    places: &mut Places,
) -> Option<Vec<Route>> {
    if routes.is_empty() {
        return everything(targets, report);
    }
    let list: Vec<Option<Route>> =
        routes.iter().enumerate().map(|(index, found)| one(index, found, targets, report, places)).collect();
    let mut labels = HashSet::new();
    for (index, route) in list.iter().enumerate() {
        let Some(route) = route else { continue };
        if !labels.insert(route.label.as_str()) {
            report.push(Raw {
                span: places.of(&ROUTE, index, "path"),
                subject: Some("path"),
                message: format!("an earlier route is already for {}", show(&route.label)),
                help:
                    "the first that matches wins: remove this one, or give it another path or other methods"
                        .to_owned(),
            });
        }
    }
    list.into_iter().collect()
}

/// Without any route everything goes to the only upstream.
fn everything(targets: &Targets<'_>, report: &mut Report) -> Option<Vec<Route>> {
    if targets.upstreams.count() > 1 {
        report.push(Raw {
            span: None,
            subject: None,
            message: "there are several upstreams and no route that chooses between them".to_owned(),
            help: "write [[route]] with a path and an upstream, at least once".to_owned(),
        });
        return None;
    }
    let path = PathPattern::Under(String::new());
    let label = label(&path, &[]);
    Some(vec![Route {
        label,
        path,
        methods: Vec::new(),
        upstream: 0,
        priority: RoutePriority::Class(priority::default(&targets.classes)),
        tenant: None,
        cost: NonZeroU32::MIN,
        bulkhead: None,
        deadline: None,
        exempt: false,
    }])
}

fn one(
    index: usize,
    found: &Found<'_>,
    targets: &Targets<'_>,
    report: &mut Report,
    places: &mut Places,
) -> Option<Route> {
    let mut section = Section::open(&ROUTE, index, Some(found.clone()), report, places);
    let path = section.required("path", |_, value| PathPattern::parse(text(value)?));
    let mut methods = section.list("methods", values::method);
    methods.sort();
    let upstream = read_upstream(&mut section, &targets.upstreams);
    let priority = read_priority(&mut section, &targets.classes);
    let tenant = section.optional("tenant", |_, value| values::tenant_key(text(value)?));
    let cost = section.count("cost");
    let concurrency = section.optional("concurrency", integer).map(nonzero);
    let concurrency_status = section.optional("concurrency_status", one_of);
    let deadline = section.optional("deadline", duration);
    let exempt = section.value("exempt", switch);
    for key in ["concurrency", "priority", "tenant", "cost"] {
        if exempt && section.has(key) {
            section.contradiction(
                key,
                "the route is exempt, and an exempt route is never limited",
                format!("remove one of `exempt` and `{key}`"),
            );
        }
    }
    if concurrency.is_none() && concurrency_status.is_some() && !section.has("concurrency") {
        section.contradiction(
            "concurrency_status",
            "the route has no `concurrency` that could be exceeded",
            "write `concurrency`, or remove this",
        );
    }
    section.close();
    let path = path?;
    let bulkhead = concurrency.map(|max| Bulkhead { max, is_quota: concurrency_status == Some(429) });
    let label = label(&path, &methods);
    let upstream = upstream?;
    Some(Route { label, path, methods, upstream, priority, tenant, cost, bulkhead, deadline, exempt })
}

fn read_priority(section: &mut Section<'_, '_>, classes: &Names<'_>) -> RoutePriority {
    let source = section.optional("priority", |_, value| {
        let source = text(value)?;
        let header = values::header_named(source).transpose()?;
        Ok(header.map_or_else(|| Err(source.to_owned()), Ok))
    });
    match source {
        None => RoutePriority::Class(priority::default(classes)),
        Some(Ok(header)) => RoutePriority::Header(header),
        Some(Err(class)) => RoutePriority::Class(priority::refer(section, "priority", &class, classes)),
    }
}

fn read_upstream(section: &mut Section<'_, '_>, upstreams: &Names<'_>) -> Option<usize> {
    let given = section.has("upstream");
    let name = section.optional("upstream", |_, value| Ok(text(value)?.to_owned()));
    let Some(name) = name else {
        if !given && upstreams.count() > 1 {
            section.missing(
                "`upstream` is missing in [[route]], and there are several",
                format!("say where the route goes: one of {}", upstreams.all()),
            );
        }
        return Some(0);
    };
    upstreams.refer(section, "upstream", "upstream", &name)
}

/// The pattern, with the methods in front if there are any.
fn label(path: &PathPattern, methods: &[String]) -> String {
    if methods.is_empty() { path.to_string() } else { format!("{} {path}", methods.join(",")) }
}
