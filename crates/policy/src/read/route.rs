//! `[[route]]`

use std::collections::HashSet;

use super::Places;
use super::section::{Found, Section, duration, integer, nonzero, one_of, switch, text};
use super::upstream::Names;
use crate::keys::ROUTE;
use crate::model::{Bulkhead, PathPattern, Route};
use crate::problem::{Raw, Report};
use crate::values::{self, nearest, show};

/// `None` after a problem was reported.
pub(crate) fn read(
    routes: &[Found<'_>],
    upstreams: &Names<'_>,
    report: &mut Report,
    places: &mut Places,
) -> Option<Vec<Route>> {
    if routes.is_empty() {
        return everything(upstreams, report);
    }
    let list: Vec<Option<Route>> = routes
        .iter()
        .enumerate()
        .map(|(index, found)| one(index, found, upstreams, report, places))
        .collect();
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
fn everything(upstreams: &Names<'_>, report: &mut Report) -> Option<Vec<Route>> {
    if upstreams.count() > 1 {
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
        bulkhead: None,
        deadline: None,
        exempt: false,
    }])
}

fn one(
    index: usize,
    found: &Found<'_>,
    upstreams: &Names<'_>,
    report: &mut Report,
    places: &mut Places,
) -> Option<Route> {
    let mut section = Section::open(&ROUTE, index, Some(found.clone()), report, places);
    let path = section.required("path", |_, value| PathPattern::parse(text(value)?));
    let mut methods = section.list("methods", values::method);
    methods.sort();
    let upstream = read_upstream(&mut section, upstreams);
    let concurrency = section.optional("concurrency", integer).map(nonzero);
    let concurrency_status = section.optional("concurrency_status", one_of);
    let deadline = section.optional("deadline", duration);
    let exempt = section.value("exempt", switch);
    if exempt && concurrency.is_some() {
        section.contradiction(
            "concurrency",
            "the route is exempt, and an exempt route is never limited",
            "remove one of `exempt` and `concurrency`",
        );
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
    Some(Route { label, path, methods, upstream: upstream?, bulkhead, deadline, exempt })
}

fn read_upstream(section: &mut Section<'_, '_>, upstreams: &Names<'_>) -> Option<usize> {
    let all = || upstreams.iter().map(|name| format!("\"{}\"", show(name))).collect::<Vec<_>>().join(", ");
    let given = section.has("upstream");
    let name = section.optional("upstream", |_, value| Ok(text(value)?.to_owned()));
    let Some(name) = name else {
        if !given && upstreams.count() > 1 {
            section.missing(
                "`upstream` is missing in [[route]], and there are several",
                format!("say where the route goes: one of {}", all()),
            );
        }
        return Some(0);
    };
    if let Some(index) = upstreams.index(&name) {
        return Some(index);
    }
    if upstreams.are_complete() {
        let help = nearest(&name, upstreams.iter())
            .map_or_else(|| format!("there is {}", all()), |near| format!("did you mean \"{near}\"?"));
        section.contradiction("upstream", format!("there is no upstream named `{}`", show(&name)), help);
    }
    None
}

/// The pattern, with the methods in front if there are any.
fn label(path: &PathPattern, methods: &[String]) -> String {
    if methods.is_empty() { path.to_string() } else { format!("{} {path}", methods.join(",")) }
}
