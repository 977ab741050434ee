//! `[[upstream]]` with its queue.

use std::time::Duration;

use tidegate_engine::{Capacity, Discipline, QueuePolicy, RetryPolicy};

use super::section::{Found, Section, choice, duration, factor, integer, switch, text};
use super::{Places, concurrency, protection, unique};
use crate::keys::{BREAKER, CONCURRENCY, FAIRNESS, HEALTH_CHECK, QUEUE, RETRIES, UPSTREAM};
use crate::model::Upstream;
use crate::problem::Report;
use crate::values::{self, nearest, show};

/// The names that routes may refer to, as they stand in the file: right or wrong, so that one wrong name is one
/// problem and not one for each route.
#[derive(Debug)]
pub(crate) struct Names<'d> {
    names: Vec<Option<&'d str>>,
}

impl<'d> Names<'d> {
    pub(crate) fn of(upstreams: &[Found<'d>]) -> Self {
        let name = |found: &Found<'d>| found.table.get("name").and_then(|name| name.get_ref().as_str());
        Self { names: upstreams.iter().map(name).collect() }
    }

    /// These, which are in no file.
    pub(crate) fn fixed(names: &[&'static str]) -> Self {
        Self { names: names.iter().map(|name| Some(*name)).collect() }
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == Some(name))
    }

    /// The index of what a key refers to by its name; `None` if there is nothing of that name, which is reported.
    pub(crate) fn refer(
        &self,
        section: &mut Section<'_, '_>,
        key: &'static str,
        what: &str,
        name: &str,
    ) -> Option<usize> {
        let index = self.index(name);
        // Without a name of each, one that is not found may be the missing one.
        let are_complete = !self.names.is_empty() && self.names.iter().all(Option::is_some);
        if index.is_none() && are_complete {
            let help = nearest(name, self.names.iter().copied().flatten()).map_or_else(
                || format!("there is {}", self.all()),
                |near| format!("did you mean \"{near}\"?"),
            );
            section.contradiction(key, format!("there is no {what} named `{}`", show(name)), help);
        }
        index
    }

    /// All names, for a message.
    pub(crate) fn all(&self) -> String {
        let shown = self.names.iter().flatten().map(|name| format!("\"{}\"", show(name)));
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// `None` after a problem was reported.
pub(crate) fn read(
    upstreams: &[Found<'_>],
    report: &mut Report,
    places: &mut Places,
) -> Option<Vec<Upstream>> {
    let list: Vec<Option<Upstream>> =
        upstreams.iter().enumerate().map(|(index, found)| one(index, found, report, places)).collect();
    let names = list.iter().enumerate().filter_map(|(index, upstream)| {
        upstream.as_ref().map(|upstream| (upstream.name.as_str(), places.of(&UPSTREAM, index, "name")))
    });
    unique(names, report);
    list.into_iter().collect()
}

fn one(index: usize, found: &Found<'_>, report: &mut Report, places: &mut Places) -> Option<Upstream> {
    let mut section = Section::open(&UPSTREAM, index, Some(found.clone()), report, places);
    let name = section.required("name", |_, value| values::name(text(value)?));
    let endpoints = section.list("endpoints", values::endpoint);
    let timeout = section.duration("timeout");
    let connect_timeout = section.duration("connect_timeout");
    let cancels_work = section.value("cancels_work", switch);
    let orphan_max = section.duration("orphan_max");
    let max_idle_connections = section.value("max_idle_connections", integer);
    let idle_timeout = section.duration("idle_timeout");
    let advertise_limit = section.value("advertise_limit", switch);
    let concurrency = section.child(&CONCURRENCY);
    let queue = section.child(&QUEUE);
    let breaker = section.child(&BREAKER);
    let health_check = section.child(&HEALTH_CHECK);
    let fairness = section.child(&FAIRNESS);
    let retries = section.child(&RETRIES);
    section.close();
    let (limit, orca_utilization) = concurrency::read(index, concurrency, timeout, report, places);
    Some(Upstream {
        advertise_limit,
        limit,
        orca_utilization,
        queue: read_queue(index, queue, timeout, report, places),
        breaker: protection::breaker(index, breaker, timeout, report, places),
        health_check: protection::health_check(index, health_check, report, places),
        tenant_share: read_fairness(index, fairness, report, places),
        retries: read_retries(index, retries, report, places),
        name: name?,
        endpoints,
        timeout,
        connect_timeout,
        cancels_work,
        orphan_max,
        max_idle_connections,
        idle_timeout,
    })
}

fn read_queue(
    index: usize,
    found: Option<Found<'_>>,
    timeout: Duration,
    report: &mut Report,
    places: &mut Places,
) -> QueuePolicy {
    let mut section = Section::open(&QUEUE, index, found, report, places);
    let wait = section.duration("wait");
    let capacity = section.optional("capacity", integer).map_or(Capacity::Derived, Capacity::Fixed);
    if wait.is_zero() && capacity != Capacity::Fixed(0) && section.is_sound() {
        section.contradiction(
            "wait",
            "0 is not allowed with a queue: nobody in it would ever be served",
            "give the queue a capacity of 0 as well, and whatever finds no free slot is refused at once",
        );
    }
    let standing_wait = section.optional("standing_wait", duration);
    let discipline = DISCIPLINES[section.value("discipline", choice)];
    if standing_wait.is_some() && capacity != Capacity::Derived && discipline != Discipline::Codel {
        section.contradiction(
            "standing_wait",
            "`capacity` says how long the queue may be, and then this has no effect",
            "remove one of the two",
        );
    }
    section.close();
    QueuePolicy {
        standing_wait: standing_wait.unwrap_or(timeout / 10).min(wait),
        discipline,
        ..QueuePolicy::of(wait, capacity)
    }
}

/// In the order of the words in the key table.
const DISCIPLINES: [Discipline; 4] =
    [Discipline::Forecast, Discipline::Fifo, Discipline::AdaptiveLifo, Discipline::Codel];

fn read_fairness(
    index: usize,
    found: Option<Found<'_>>,
    report: &mut Report,
    places: &mut Places,
) -> Option<f64> {
    let mut section = Section::open(&FAIRNESS, index, found, report, places);
    let share = section.optional("tenant_share", factor);
    section.close();
    share
}

fn read_retries(
    index: usize,
    found: Option<Found<'_>>,
    report: &mut Report,
    places: &mut Places,
) -> RetryPolicy {
    let mut section = Section::open(&RETRIES, index, found, report, places);
    let policy = RetryPolicy {
        damp: section.value("damp", switch),
        percent: section.value("percent", integer),
        burst: section.value("burst", integer),
        per_second: section.value("per_second", integer),
    };
    section.close();
    policy
}
