//! From samples to the figures that a case asks for, and how each is shown.

use std::time::Duration;

use super::case::{Case, Figure, Goal};
use super::load::{Ending, Sample};
use super::measure::{goodput, latencies, percentile, recovery, share};

/// What one run of one case left behind.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// What was tried.
    pub(crate) case: &'a Case,
    /// Answers a second that the service can give, one number for each phase.
    pub(crate) capacities: &'a [f64],
    /// One list for each kind of client.
    pub(crate) samples: &'a [Vec<Sample>],
}

/// In what a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Ratio,
    Share,
    Millis,
    Seconds,
    Times,
}

impl Run<'_> {
    /// The value of a figure, in its unit. Not a number when there was nothing to measure, infinite for never.
    pub(crate) fn value(&self, figure: Figure) -> f64 {
        let (whole, all) = (self.case.span(), self.samples.concat());
        let millis = |took: Option<Duration>| took.map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
        let refusal = |share| millis(percentile(&latencies(&all, Ending::Refused, &whole), share));
        match figure {
            Figure::Goodput { phase: Some(phase) } => {
                goodput(&all, &self.case.span_of(phase)) / self.possible(phase)
            }
            Figure::Goodput { phase: None } => {
                let seconds = |phase| {
                    let span = self.case.span_of(phase);
                    (span.end - span.start).as_secs_f64()
                };
                let possible: f64 =
                    (0..self.case.phases.len()).map(|phase| self.possible(phase) * seconds(phase)).sum();
                goodput(&all, &whole) * (whole.end - whole.start).as_secs_f64() / possible
            }
            Figure::ShareOfCapacity { kind, phase } => {
                goodput(&self.samples[kind], &self.case.span_of(phase)) / self.capacity(phase)
            }
            Figure::Served { kind, phase } => {
                share(&self.samples[kind], Ending::Good, &self.case.span_of(phase)).unwrap_or(f64::NAN)
            }
            Figure::Slowdown { kind } => {
                let tail = |phase| {
                    let took = latencies(&self.samples[kind], Ending::Good, &self.case.span_of(phase));
                    millis(percentile(&took, 0.99))
                };
                // Nobody served at all is as slow as can be.
                Some(tail(1) / tail(0)).filter(|times| !times.is_nan()).unwrap_or(f64::INFINITY)
            }
            Figure::AnswerMedian => millis(percentile(&latencies(&all, Ending::Good, &whole), 0.5)),
            Figure::RefusalMedian => refusal(0.5),
            Figure::RefusalTail => refusal(0.99),
            Figure::RefusalMax => refusal(1.0),
            Figure::Refused => share(&all, Ending::Refused, &whole).unwrap_or(f64::NAN),
            Figure::GaveUp => share(&all, Ending::GaveUp, &whole).unwrap_or(f64::NAN),
            Figure::Recovery => {
                let last = self.case.phases.len().saturating_sub(1);
                let (begin, rate) = (self.case.span_of(last).start, self.possible(last) * 0.95);
                recovery(&all, begin, whole.end, rate).map_or(f64::INFINITY, |took| took.as_secs_f64())
            }
        }
    }

    fn capacity(&self, phase: usize) -> f64 {
        self.capacities.get(phase).copied().unwrap_or(f64::NAN)
    }

    fn possible(&self, phase: usize) -> f64 {
        self.case.possible(phase, self.capacity(phase))
    }
}

impl Figure {
    /// What it is called in the table.
    pub(crate) fn title(self, case: &Case) -> String {
        let name = |kind: usize| case.kinds.get(kind).map_or("?", |kind| kind.name);
        match self {
            Self::Goodput { phase: None } => "goodput ÷ possible".to_owned(),
            Self::Goodput { phase: Some(phase) } => format!("goodput ÷ possible, phase {}", phase + 1),
            Self::ShareOfCapacity { kind, .. } => format!("{}, share of capacity", name(kind)),
            Self::Served { kind, .. } => format!("{} served", name(kind)),
            Self::Slowdown { kind } => format!("{}, p99 to quiet p99", name(kind)),
            Self::AnswerMedian => "answer, median".to_owned(),
            Self::RefusalMedian => "refusal, median".to_owned(),
            Self::RefusalTail => "refusal, p99".to_owned(),
            Self::RefusalMax => "refusal, slowest".to_owned(),
            Self::Refused => "refused".to_owned(),
            Self::GaveUp => "clients that gave up".to_owned(),
            Self::Recovery => "back at 95 % after".to_owned(),
        }
    }

    /// The value as it is shown.
    pub(crate) fn shown(self, value: f64) -> String {
        match self.unit() {
            _ if value.is_nan() => "–".to_owned(),
            _ if value.is_infinite() => "never".to_owned(),
            Unit::Ratio => format!("{value:.3}"),
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::Millis if value < 10.0 => format!("{value:.2} ms"),
            Unit::Millis => format!("{value:.0} ms"),
            Unit::Seconds => format!("{value:.1} s"),
            Unit::Times => format!("× {value:.1}"),
        }
    }

    /// The goal as it is shown.
    pub(crate) fn goal_shown(self, goal: Option<Goal>) -> String {
        let short = |value: f64| match self.unit() {
            Unit::Ratio => format!("{value:.2}"),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Millis => format!("{value:.0} ms"),
            Unit::Seconds => format!("{value:.0} s"),
            Unit::Times => format!("× {value:.0}"),
        };
        match goal {
            None => String::new(),
            Some(Goal::AtLeast(least)) => format!("≥ {}", short(least)),
            Some(Goal::AtMost(most)) => format!("≤ {}", short(most)),
        }
    }

    const fn unit(self) -> Unit {
        match self {
            Self::Goodput { .. } | Self::ShareOfCapacity { .. } => Unit::Ratio,
            Self::Served { .. } | Self::Refused | Self::GaveUp => Unit::Share,
            Self::AnswerMedian | Self::RefusalMedian | Self::RefusalTail | Self::RefusalMax => Unit::Millis,
            Self::Recovery => Unit::Seconds,
            Self::Slowdown { .. } => Unit::Times,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::overload;

    fn stall() -> Case {
        overload::cases(false).into_iter().find(|case| case.name == "stall").unwrap()
    }

    /// Good answers at `rate` a second in each of these spans of whole seconds.
    fn good(spans: &[(u64, u64, u64)]) -> Vec<Sample> {
        let sample = |planned| Sample {
            planned,
            lag: Duration::ZERO,
            took: Duration::ZERO,
            ending: Ending::Good,
            repetition: 0,
        };
        let span = |&(from, to, rate): &(u64, u64, u64)| {
            (0..(to - from) * rate)
                .map(move |n| Duration::from_secs(from) + Duration::from_secs_f64(n as f64 / rate as f64))
        };
        spans.iter().flat_map(span).map(sample).collect()
    }

    #[test]
    fn goodput_is_compared_with_what_the_phases_allow() {
        let case = stall();
        // Everybody is served, but for the stall and the second after it: 16 s of the 17 s in which that is possible.
        let samples = [good(&[(0, 6, 400), (10, 20, 400)])];
        let run = Run { case: &case, capacities: &[471.0, 20.0, 471.0], samples: &samples };
        assert!((run.value(Figure::Goodput { phase: None }) - 16.0 / 17.0).abs() < 1e-6);
        assert!((run.value(Figure::Goodput { phase: Some(2) }) - 10.0 / 11.0).abs() < 1e-6);
        assert_eq!(run.value(Figure::Recovery), 1.0);
        assert_eq!(Figure::Recovery.shown(f64::INFINITY), "never");
    }

    #[test]
    fn a_service_that_cannot_do_what_is_offered_is_measured_by_what_it_can() {
        let case = stall();
        let samples = [good(&[(0, 6, 190), (9, 20, 190)])];
        let run = Run { case: &case, capacities: &[200.0, 20.0, 200.0], samples: &samples };
        assert!((run.value(Figure::Goodput { phase: None }) - 0.95).abs() < 1e-6);
    }

    #[test]
    fn values_have_units_and_nothing_has_a_dash() {
        let shown = |figure: Figure, value| figure.shown(value);
        assert_eq!(shown(Figure::RefusalMedian, 0.2345), "0.23 ms");
        assert_eq!(shown(Figure::RefusalMax, 300.4), "300 ms");
        assert_eq!(shown(Figure::RefusalMedian, f64::NAN), "–");
        assert_eq!(shown(Figure::Refused, 0.0123), "1.2 %");
        assert_eq!(Figure::Refused.goal_shown(Some(Goal::AtMost(0.01))), "≤ 1 %");
        assert_eq!(Figure::Goodput { phase: None }.goal_shown(Some(Goal::AtLeast(0.98))), "≥ 0.98");
    }
}
