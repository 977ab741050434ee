//! From text to a checked policy, in one pass that reports everything it finds.
//!
//! A wrong value is reported and then taken as left out, so that reading goes on. Nothing that was reported upon
//! ever leaves: [`read`] hands out a policy only if there is no problem at all.

mod concurrency;
mod otlp;
mod priority;
mod protection;
mod rate_limit;
mod route;
mod section;
mod server;
mod upstream;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use toml::de::DeTable;

use crate::keys;
use crate::lint::lint;
use crate::model::Policy;
use crate::problem::{PolicyErrors, Raw, Report, Source};
use crate::settings::settings;
use crate::values::show;
use crate::{Lint, Parsed};

use section::{Found, Section};

pub(crate) fn read(source: Source) -> Result<Parsed, PolicyErrors> {
    let source = Arc::new(source);
    let mut report = Report::new(Arc::clone(&source));
    let mut places = Places::default();
    let policy = document(&source.text, &mut report, &mut places);
    let policy = report.finish(policy)?;
    let lints: Vec<Lint> = lint(&policy, &places, &source);
    let settings = settings(&source, &places);
    Ok(Parsed { policy, lints, settings })
}

fn document(text: &str, report: &mut Report, places: &mut Places) -> Option<Policy> {
    if text.len() > Policy::FILE_SIZE_MAX {
        let message =
            format!("the file has {} bytes; a policy has at most {}", text.len(), Policy::FILE_SIZE_MAX);
        report.push(Raw { span: None, subject: None, message, help: "is this the right file?".to_owned() });
        return None;
    }
    let (table, mut errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The parser reports in two passes.
        errors.sort_by_key(|error| error.span().map(|span| span.start));
        syntax(text, &errors, report);
        return None;
    }
    let found = Found { table: table.get_ref(), span: None };
    let mut root = Section::open(&keys::ROOT, 0, Some(found), report, places);
    let server = root.child(&keys::SERVER);
    let upstreams = root.children(&keys::UPSTREAM);
    let classes = root.children(&keys::PRIORITY);
    let tenants = root.children(&keys::TENANT);
    let routes = root.children(&keys::ROUTE);
    let rate_limits = root.children(&keys::RATE_LIMIT);
    if upstreams.is_empty() && !root.has("upstream") {
        root.missing(
            "there is no upstream to protect",
            "write [[upstream]] with a name and endpoints = [\"http://127.0.0.1:8103\"]",
        );
    }
    root.close();

    let names =
        route::Targets { upstreams: upstream::Names::of(&upstreams), classes: priority::names(&classes) };
    let server = server::read(server, &names.classes, report, places);
    let upstreams = upstream::read(&upstreams, report, places);
    let priorities = priority::read(&classes, report, places);
    let tenants = priority::read_tenants(&tenants, report, places);
    let routes = route::read(&routes, &names, report, places);
    let rate_limits = rate_limit::read(&rate_limits, report, places);
    Some(Policy {
        server,
        upstreams: upstreams?,
        priorities: priorities?,
        tenants: tenants?,
        routes: routes?,
        rate_limits: rate_limits?,
    })
}

/// The errors come in the order of the file. Only the first of a line is reported: those behind it mostly follow
/// from it.
fn syntax(text: &str, errors: &[toml::de::Error], report: &mut Report) {
    let mut told_up_to = 0;
    for error in errors {
        let span = error.span().map(|span| span.start.min(text.len())..span.end.min(text.len()));
        if let Some(span) = &span {
            if span.start < told_up_to {
                continue;
            }
            let rest = &text.as_bytes()[span.start..];
            let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            told_up_to = span.start + line + 1;
        }
        let (message, help) = match error.message() {
            "duplicate key" => ("this is given twice".to_owned(), "keep one of the two"),
            other => (format!("this is not TOML: {other}"), ""),
        };
        report.push(Raw { span, subject: None, message, help: help.to_owned() });
    }
}

/// Where the keys of a file stand, for what is noticed only when everything is read.
#[derive(Debug, Default)]
pub(crate) struct Places {
    keys: HashMap<(&'static str, usize, &'static str), Range<usize>>,
    /// The sections that were read, also those that the file does not have, in that order.
    opened: Vec<(&'static keys::Section, usize)>,
}

impl Places {
    /// The value of a key in the section of this number, if it was given.
    pub(crate) fn of(
        &self,
        section: &keys::Section,
        index: usize,
        key: &'static str,
    ) -> Option<Range<usize>> {
        self.keys.get(&(section.path, index, key)).cloned()
    }

    /// The sections that were read, each with its number.
    pub(crate) fn opened(&self) -> &[(&'static keys::Section, usize)] {
        &self.opened
    }

    /// The header of the section of this number.
    pub(crate) fn header(&self, section: &keys::Section, index: usize) -> Option<Range<usize>> {
        self.of(section, index, "")
    }
}

/// Reports every name that an earlier section of the list already has.
fn unique<'n>(names: impl Iterator<Item = (&'n str, Option<Range<usize>>)>, report: &mut Report) {
    let mut seen = HashSet::new();
    for (name, span) in names {
        if !seen.insert(name) {
            report.push(Raw {
                span,
                subject: Some("name"),
                message: format!("`{}` is taken by an earlier one", show(name)),
                help: "give each a name of its own".to_owned(),
            });
        }
    }
}
