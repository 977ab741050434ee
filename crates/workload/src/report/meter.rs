//! Fills in a report: the one place where what happened becomes numbers.

use std::time::Duration;

use tidegate_engine::Reason;

use super::{Latencies, Report, Sending, Series, Totals};
use crate::scenario::Scenario;

/// So many tenants are told apart; the others are counted as one.
const TENANTS_MAX: usize = 256;

/// Whose request it is, as places in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    class: u16,
    tenant: u16,
    /// It came after the warm-up.
    counts: bool,
}

/// What there is to say of an attempt besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Try {
    /// Its client was told to come back now.
    pub told: bool,
    /// It is not the first of its request.
    pub retry: bool,
}

/// How things stand at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// How much may be in flight.
    pub limit: f64,
    /// What is, orphans included.
    pub in_flight: f64,
    /// Who waits before the service.
    pub queue: f64,
    /// Who waits in it.
    pub service_queue: f64,
}

/// Counts what happens in one run. Times are from the beginning of the scenario. A request that came before the end of the
/// warm-up is not counted whenever it ends, or the sums would not add up; over time everything is.
#[derive(Clone, Debug)]
pub struct Meter {
    report: Report,
    warmup: Duration,
    end: Duration,
}

impl Meter {
    /// Nothing has happened yet.
    pub fn new(scenario: &Scenario, policy: &str) -> Self {
        let kinds = || scenario.clients.iter().flat_map(|clients| &clients.mix);
        let tenants = named(kinds().map(|kind| kind.tenant.as_str()), TENANTS_MAX);
        let report = Report {
            policy: policy.to_owned(),
            runs: 1,
            watched: scenario.duration.saturating_sub(scenario.warmup),
            all: Totals::default(),
            classes: named(kinds().map(|kind| kind.class.as_str()), usize::from(u16::MAX)),
            tenants: if tenants.len() > 1 { tenants } else { Vec::new() },
            waited: Latencies::default(),
            series: Series::new(scenario.duration),
            sending: None,
            goodput_of_runs: Vec::new(),
            events: 0,
            trace: 0,
        };
        Self {
            report,
            warmup: scenario.warmup,
            end: scenario.duration.saturating_add(Duration::from_nanos(1)),
        }
    }

    /// The places of a class and a tenant of the scenario.
    pub fn who(&self, class: &str, tenant: &str) -> Who {
        let place = |list: &[(String, Totals)], name: &str| {
            let last = list.len().saturating_sub(1);
            list.iter().position(|(known, _)| known == name).unwrap_or(last) as u16
        };
        Who {
            class: place(&self.report.classes, class),
            tenant: place(&self.report.tenants, tenant),
            counts: true,
        }
    }

    /// A client wants something. What happens to this request is counted under the name that comes back.
    pub fn offered(&mut self, now: Duration, who: Who) -> Who {
        let who = Who { counts: now >= self.warmup, ..who };
        self.report.series.at(now).offered += 1;
        self.count(who, |totals| totals.offered += 1);
        who
    }

    /// It asks for it.
    pub fn attempted(&mut self, who: Who, one: Try) {
        self.count(who, |totals| {
            totals.attempts += 1;
            totals.told += u64::from(one.told);
            totals.retries += u64::from(one.retry);
        });
    }

    /// An attempt was let through to its service. `overtaken`: after one of the same kind that had come later.
    pub fn let_in(&mut self, who: Who, one: Try, overtaken: bool) {
        self.count(who, |totals| {
            totals.let_in += 1;
            totals.told_admitted += u64::from(one.told);
            totals.retries_let_in += u64::from(one.retry);
            totals.overtaken += u64::from(overtaken);
        });
    }

    /// That took a gateway so long.
    pub fn waited(&mut self, who: Who, wait: Duration) {
        if who.counts {
            self.report.waited.record(wait);
        }
    }

    /// It has its answer, so long after it first asked.
    pub fn served(&mut self, now: Duration, who: Who, took: Duration) {
        // A generator waits for the last answers: those of a time in which nobody comes any more have no place in it.
        if now < self.end {
            self.report.series.at(now).goodput += 1;
        }
        self.count(who, |totals| {
            totals.goodput += 1;
            totals.served.record(took);
        });
    }

    /// An attempt was refused, so long after it was made.
    pub fn rejected(&mut self, now: Duration, who: Who, reason: Reason, took: Duration) {
        if reason != Reason::UpstreamTimeout && now < self.end {
            self.report.series.at(now).rejected += 1;
        }
        self.count(who, |totals| {
            totals.rejected[reason as usize] += 1;
            if reason != Reason::UpstreamTimeout {
                totals.refused.record(took);
            }
        });
    }

    /// An attempt was refused or broken off by the service.
    pub fn broken(&mut self, who: Who) {
        self.count(who, |totals| totals.broken += 1);
    }

    /// The client of an attempt has left.
    pub fn left(&mut self, who: Who) {
        self.count(who, |totals| totals.left += 1);
    }

    /// A client has given up.
    pub fn gave_up(&mut self, who: Who) {
        self.count(who, |totals| totals.failed += 1);
    }

    /// Work was finished for nobody.
    pub fn late(&mut self, now: Duration, who: Who) {
        self.report.series.at(now).late += 1;
        self.count(who, |totals| totals.late += 1);
    }

    /// Looks how things stand.
    pub fn look(&mut self, now: Duration, gauges: Gauges) {
        let bucket = self.report.series.at(now);
        bucket.looks += 1;
        bucket.limit += gauges.limit;
        bucket.in_flight += gauges.in_flight;
        bucket.queue += gauges.queue;
        bucket.service_queue += gauges.service_queue;
    }

    /// What a generator on real sockets has to say besides. Without a call to this, a report is one of virtual time.
    pub fn sending(&mut self) -> &mut Sending {
        self.report.sending.get_or_insert_default()
    }

    /// Whether what happens to this request is counted: it came after the warm-up.
    pub fn counts(who: Who) -> bool {
        who.counts
    }

    /// How it stands so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// It ends now, which may be before the end of the scenario.
    pub fn cut_short(&mut self, now: Duration) {
        self.report.watched = self.report.watched.min(now.saturating_sub(self.warmup));
    }

    /// The report, after `events` events with this trace.
    pub fn finish(mut self, events: u64, trace: u64) -> Report {
        self.report.goodput_of_runs = vec![self.report.all.goodput];
        self.report.events = events;
        self.report.trace = trace;
        self.report
    }

    fn count(&mut self, who: Who, count: impl Fn(&mut Totals)) {
        if !who.counts {
            return;
        }
        count(&mut self.report.all);
        if let Some((_, totals)) = self.report.classes.get_mut(usize::from(who.class)) {
            count(totals);
        }
        if let Some((_, totals)) = self.report.tenants.get_mut(usize::from(who.tenant)) {
            count(totals);
        }
    }
}

/// Empty totals for each of these names, each once, in their order. The last is for all that there was no room for.
fn named<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> Vec<(String, Totals)> {
    let mut list: Vec<(String, Totals)> = Vec::new();
    for name in names {
        if list.iter().any(|(known, _)| known == name) {
            continue;
        }
        if list.len() + 1 == most {
            list.push(("(others)".to_owned(), Totals::default()));
            break;
        }
        list.push((name.to_owned(), Totals::default()));
    }
    list
}
