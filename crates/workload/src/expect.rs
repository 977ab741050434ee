//! What is expected of a scenario: numbers of the report, each within a range.

use std::fmt;
use std::time::Duration;

use tidegate_engine::Reason;

use crate::report::{Report, Totals, Window};

/// One number of one report, and the range that it has to be in.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Of which policy.
    pub policy: String,
    /// Of which requests.
    pub of: Part,
    /// Which number.
    pub metric: Metric,
    /// The lowest that is right.
    pub least: f64,
    /// The highest that is right.
    pub most: f64,
}

/// Which part of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    All,
    /// One class.
    Class(String),
    /// One tenant.
    Tenant(String),
    /// A stretch of time.
    Window(Window),
}

/// A number of a report. Counts are per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Requests.
    Offered,
    /// Useful answers.
    Goodput,
    /// Useful answers as a share of the requests.
    GoodputShare,
    /// Requests given up.
    Failed,
    /// Requests under way at the end.
    Pending,
    /// Attempts.
    Attempts,
    /// Attempts for each request.
    Amplification,
    /// Attempts refused by a gateway.
    Rejected,
    /// Attempts refused for one reason.
    RejectedFor(Reason),
    /// Attempts that were not the first.
    Retries,
    /// Those as a share of the attempts.
    RetryShare,
    /// Retries that were let in.
    RetriesLetIn,
    /// Those for each first try that was let in.
    RetriesLetInShare,
    /// Of those who were let in, the share that was overtaken by somebody of the same kind.
    OvertakenShare,
    /// Attempts refused or broken off by a service.
    Broken,
    /// Work finished for nobody.
    Late,
    /// Of those who came back when told to, the share that was not refused again.
    ToldAdmitted,
    /// A quantile of the time to a useful answer, in milliseconds.
    ServedMillis(Quantile),
    /// A quantile of the time to a refusal, in milliseconds.
    RefusedMillis(Quantile),
    /// The mean limit.
    Limit,
    /// The mean number in flight.
    InFlight,
    /// The mean number waiting before the service.
    Queue,
}

/// Which quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The median.
    P50,
    /// 99 in a hundred are below.
    P99,
    /// The highest.
    Max,
}

impl Metric {
    /// Their names in scenario files, without those of reasons.
    const NAMES: [(&'static str, Self); 25] = [
        ("offered", Self::Offered),
        ("goodput", Self::Goodput),
        ("goodput_share", Self::GoodputShare),
        ("failed", Self::Failed),
        ("pending", Self::Pending),
        ("attempts", Self::Attempts),
        ("amplification", Self::Amplification),
        ("rejected", Self::Rejected),
        ("retries", Self::Retries),
        ("retry_share", Self::RetryShare),
        ("retries_let_in", Self::RetriesLetIn),
        ("retries_let_in_share", Self::RetriesLetInShare),
        ("overtaken_share", Self::OvertakenShare),
        ("broken", Self::Broken),
        ("late", Self::Late),
        ("told_admitted", Self::ToldAdmitted),
        ("served_p50_ms", Self::ServedMillis(Quantile::P50)),
        ("served_p99_ms", Self::ServedMillis(Quantile::P99)),
        ("served_max_ms", Self::ServedMillis(Quantile::Max)),
        ("refused_p50_ms", Self::RefusedMillis(Quantile::P50)),
        ("refused_p99_ms", Self::RefusedMillis(Quantile::P99)),
        ("refused_max_ms", Self::RefusedMillis(Quantile::Max)),
        ("limit", Self::Limit),
        ("in_flight", Self::InFlight),
        ("queue", Self::Queue),
    ];

    /// The metric of this name; a reason's name is the number of attempts refused for it.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, metric)| metric);
        let reason = || Reason::ALL.into_iter().find(|reason| reason.name() == name).map(Self::RejectedFor);
        known.or_else(reason)
    }

    /// Every name there is.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(name, _)| name).chain(Reason::ALL.map(Reason::name))
    }

    /// Whether it can be told of a stretch of time.
    pub const fn has_windows(self) -> bool {
        matches!(
            self,
            Self::Offered
                | Self::Goodput
                | Self::GoodputShare
                | Self::Rejected
                | Self::Late
                | Self::Limit
                | Self::InFlight
                | Self::Queue
        )
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::RejectedFor(reason) = self {
            return f.write_str(reason.name());
        }
        let known = Self::NAMES.into_iter().find(|(_, metric)| metric == self);
        f.write_str(known.map_or("", |(name, _)| name))
    }
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// Which.
    pub expectation: Expectation,
    /// The number; `None` if the report has none.
    pub found: Option<f64>,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expectation { policy, of, metric, least, most } = &self.expectation;
        write!(f, "{policy}: {metric}")?;
        match of {
            Part::All => {}
            Part::Class(class) => write!(f, " of class {class}")?,
            Part::Tenant(tenant) => write!(f, " of tenant {tenant}")?,
            Part::Window(window) if window.until == Duration::MAX => write!(f, " from {:?} on", window.from)?,
            Part::Window(window) => write!(f, " from {:?} to {:?}", window.from, window.until)?,
        }
        match self.found {
            Some(found) => write!(f, " is {found:.3}, ")?,
            None => f.write_str(" is not known, ")?,
        }
        if least == most { write!(f, "not {least}") } else { write!(f, "not from {least} to {most}") }
    }
}

impl Expectation {
    /// Compares with the report of its policy.
    pub fn check(&self, report: &Report) -> Result<(), Missed> {
        let found = self.of.value(self.metric, report);
        match found {
            Some(found) if (self.least..=self.most).contains(&found) => Ok(()),
            _ => Err(Missed { expectation: self.clone(), found }),
        }
    }
}

impl Part {
    /// The number, if this part of the report has it.
    pub fn value(&self, metric: Metric, report: &Report) -> Option<f64> {
        let whole = Window { from: Duration::ZERO, until: Duration::MAX };
        match self {
            Self::All => {
                of_totals(metric, &report.all, report.runs).or_else(|| of_window(metric, report, whole))
            }
            Self::Class(class) => of_totals(metric, report.class(class)?, report.runs),
            Self::Tenant(tenant) => of_totals(metric, report.tenant(tenant)?, report.runs),
            Self::Window(window) => of_window(metric, report, *window),
        }
    }
}

fn of_totals(metric: Metric, totals: &Totals, runs: u32) -> Option<f64> {
    let per_run = |count: u64| count as f64 / f64::from(runs.max(1));
    let millis = |latencies: &crate::report::Latencies, quantile| {
        let time = match quantile {
            Quantile::P50 => latencies.quantile(0.5),
            Quantile::P99 => latencies.quantile(0.99),
            Quantile::Max => latencies.max(),
        };
        time.as_secs_f64() * 1e3
    };
    Some(match metric {
        Metric::Offered => per_run(totals.offered),
        Metric::Goodput => per_run(totals.goodput),
        Metric::GoodputShare => totals.goodput_share(),
        Metric::Failed => per_run(totals.failed),
        Metric::Pending => per_run(totals.pending()),
        Metric::Attempts => per_run(totals.attempts),
        Metric::Amplification => totals.amplification(),
        Metric::Rejected => per_run(totals.refusals()),
        Metric::RejectedFor(reason) => per_run(totals.rejected[reason as usize]),
        Metric::Retries => per_run(totals.retries),
        Metric::RetryShare => totals.retry_share()?,
        Metric::RetriesLetIn => per_run(totals.retries_let_in),
        Metric::RetriesLetInShare => totals.retries_let_in_share()?,
        Metric::OvertakenShare => totals.overtaken_share()?,
        Metric::Broken => per_run(totals.broken),
        Metric::Late => per_run(totals.late),
        Metric::ToldAdmitted => totals.told_admitted_share()?,
        Metric::ServedMillis(quantile) => millis(&totals.served, quantile),
        Metric::RefusedMillis(quantile) => millis(&totals.refused, quantile),
        Metric::Limit | Metric::InFlight | Metric::Queue => return None,
    })
}

fn of_window(metric: Metric, report: &Report, window: Window) -> Option<f64> {
    let sum = report.series.sum(window);
    let per_run = |count: u64| count as f64 / f64::from(report.runs.max(1));
    Some(match metric {
        Metric::Offered => per_run(sum.offered),
        Metric::Goodput => per_run(sum.goodput),
        Metric::GoodputShare if sum.offered > 0 => sum.goodput as f64 / sum.offered as f64,
        Metric::Rejected => per_run(sum.rejected),
        Metric::Late => per_run(sum.late),
        Metric::Limit => sum.mean(sum.limit),
        Metric::InFlight => sum.mean(sum.in_flight),
        Metric::Queue => sum.mean(sum.queue),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_and_every_name_a_metric() {
        for name in Metric::names() {
            let metric = Metric::from_name(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(metric.to_string(), name);
        }
        assert_eq!(Metric::from_name("goodputt"), None);
    }
}
