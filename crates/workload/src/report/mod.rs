//! What came of it: the Report, filled in the same way by the simulator and by the load generator.
//!
//! Everything in it has a fixed size, however long it is filled. What is counted is counted twice: in all, and by the
//! class of the request; by tenant as far as there is room for names.

mod axis;
mod chart;
mod figure;
mod html;
mod json;
mod knee;
mod latency;
mod meter;
mod sending;
mod series;
mod sheet;
mod table;
mod verdict;
mod wire;
mod words;

#[cfg(test)]
pub(crate) mod sample;

pub use html::{MadeBy, page};
pub use knee::{KneeReport, Probe};
pub use latency::Latencies;
pub use meter::{Gauges, Meter, Try, Who};
pub use sending::{Limited, Sending, WireError};
pub use series::{Bucket, Series, Window};
pub use table::table;
pub use verdict::{Found, Verdict, judge};

use std::time::Duration;

use tidegate_engine::Reason;

/// What came of a scenario under one policy.
#[derive(Clone, Debug)]
pub struct Report {
    /// The policy's name.
    pub policy: String,
    /// How often it was played. Numbers are sums over all runs, unless they say otherwise.
    pub runs: u32,
    /// How long it was counted, in each run.
    pub watched: Duration,
    /// All requests.
    pub all: Totals,
    /// By class, in the order of the scenario.
    pub classes: Vec<(String, Totals)>,
    /// By tenant, in the order of the scenario; empty if there is only one.
    pub tenants: Vec<(String, Totals)>,
    /// From an attempt to its slot, for those that a gateway let through; empty if nothing stands before the service.
    pub waited: Latencies,
    /// How it went over time.
    pub series: Series,
    /// What there is to say of a run on real sockets besides; `None` in virtual time.
    pub sending: Option<Box<Sending>>,
    /// Useful answers of each run.
    pub goodput_of_runs: Vec<u64>,
    /// Events that were played; 0 for a real run.
    pub events: u64,
    /// The same for the same events in the same order, and for no others; 0 for a real run.
    pub trace: u64,
}

/// Counts and times of some of the requests.
///
/// A *request* is what its client wants, in one or several *attempts*. `offered = goodput + failed + pending`.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Requests that clients wanted an answer to.
    pub offered: u64,
    /// Requests answered successfully before their client gave up.
    pub goodput: u64,
    /// Requests whose client has given up.
    pub failed: u64,
    /// Attempts.
    pub attempts: u64,
    /// Attempts whose client left before there was an answer.
    pub left: u64,
    /// Attempts that a service refused or broke off by itself.
    pub broken: u64,
    /// Attempts that were let through to their service.
    pub let_in: u64,
    /// Attempts that were not the first of their request.
    pub retries: u64,
    /// Of those, the ones that were let through.
    pub retries_let_in: u64,
    /// Attempts that were let through after one of the same kind that had come later.
    pub overtaken: u64,
    /// Attempts that a gateway refused, by reason.
    pub rejected: [u64; Reason::ALL.len()],
    /// Work that a service has finished for somebody who was not there any more.
    pub late: u64,
    /// Attempts made when the client had been told to come back.
    pub told: u64,
    /// Of those, the ones that were not refused.
    pub told_admitted: u64,
    /// From the first attempt of a request to its useful answer.
    pub served: Latencies,
    /// From an attempt to its refusal.
    pub refused: Latencies,
}

impl Totals {
    /// Attempts that a gateway refused, for whatever reason. A timeout of the upstream is none.
    pub fn refusals(&self) -> u64 {
        let refusals = Reason::ALL.into_iter().filter(|reason| *reason != Reason::UpstreamTimeout);
        refusals.map(|reason| self.rejected[reason as usize]).sum()
    }

    /// Requests still under way at the end.
    pub fn pending(&self) -> u64 {
        self.offered.saturating_sub(self.goodput + self.failed)
    }

    /// Useful answers as a share of what was offered; 1 if nothing was.
    pub fn goodput_share(&self) -> f64 {
        share(self.goodput, self.offered)
    }

    /// Attempts for each request; 1 if there were none.
    pub fn amplification(&self) -> f64 {
        share(self.attempts, self.offered)
    }

    /// Of those who came back at the time they were told, the share that was not refused again; `None` if nobody did.
    pub fn told_admitted_share(&self) -> Option<f64> {
        (self.told > 0).then(|| share(self.told_admitted, self.told))
    }

    /// Retries as a share of the attempts; `None` if there were none.
    pub fn retry_share(&self) -> Option<f64> {
        (self.attempts > 0).then(|| share(self.retries, self.attempts))
    }

    /// Retries let through for each first try that was; `None` if no first try was.
    pub fn retries_let_in_share(&self) -> Option<f64> {
        let first = self.let_in.saturating_sub(self.retries_let_in);
        (first > 0).then(|| share(self.retries_let_in, first))
    }

    /// Of those who were let through, the share that somebody overtook who had come later.
    pub fn overtaken_share(&self) -> Option<f64> {
        (self.let_in > 0).then(|| share(self.overtaken, self.let_in))
    }

    /// Adds what another run has counted.
    pub fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.offered, other.offered),
            (&mut self.goodput, other.goodput),
            (&mut self.failed, other.failed),
            (&mut self.attempts, other.attempts),
            (&mut self.left, other.left),
            (&mut self.broken, other.broken),
            (&mut self.late, other.late),
            (&mut self.let_in, other.let_in),
            (&mut self.retries, other.retries),
            (&mut self.retries_let_in, other.retries_let_in),
            (&mut self.overtaken, other.overtaken),
            (&mut self.told, other.told),
            (&mut self.told_admitted, other.told_admitted),
        ];
        for (count, more) in counts {
            *count += more;
        }
        for (count, more) in self.rejected.iter_mut().zip(other.rejected) {
            *count += more;
        }
        self.served.add(&other.served);
        self.refused.add(&other.refused);
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

impl Report {
    /// Adds another run of the same scenario under the same policy.
    pub fn add(&mut self, other: &Self) {
        debug_assert_eq!(
            (&self.policy, self.watched),
            (&other.policy, other.watched),
            "two runs of the same"
        );
        self.runs += other.runs;
        self.all.add(&other.all);
        for (mine, others) in [(&mut self.classes, &other.classes), (&mut self.tenants, &other.tenants)] {
            for ((_, totals), (_, more)) in mine.iter_mut().zip(others) {
                totals.add(more);
            }
        }
        self.waited.add(&other.waited);
        self.series.add(&other.series);
        match (&mut self.sending, &other.sending) {
            (Some(mine), Some(more)) => mine.add(more),
            (mine, more) => *mine = mine.take().or_else(|| more.clone()),
        }
        self.goodput_of_runs.extend(&other.goodput_of_runs);
        self.events += other.events;
        self.trace = self.trace.rotate_left(1) ^ other.trace;
    }

    /// The totals of a class.
    pub fn class(&self, name: &str) -> Option<&Totals> {
        self.classes.iter().find(|(class, _)| class == name).map(|(_, totals)| totals)
    }

    /// The totals of a tenant.
    pub fn tenant(&self, name: &str) -> Option<&Totals> {
        self.tenants.iter().find(|(tenant, _)| tenant == name).map(|(_, totals)| totals)
    }
}
