//! Whether what was expected has come: each expectation of a scenario, beside what was found.

use std::time::Duration;

use super::Report;
use super::words;
use crate::expect::{Expectation, Missed, Part};
use crate::scenario::Scenario;

/// An expectation and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict<'a> {
    /// What was expected.
    pub expectation: &'a Expectation,
    /// What was found.
    pub found: Found,
}

/// What was found where something was expected.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// This, which is right.
    Met(f64),
    /// Something else.
    Missed(Missed),
    /// Nothing: there is no report under that name.
    NotPlayed,
}

/// Compares every expectation of a scenario with the report of its policy, in the order of the scenario.
pub fn judge<'a>(scenario: &'a Scenario, reports: &[Report]) -> Vec<Verdict<'a>> {
    let verdict = |expectation: &'a Expectation| {
        let report = reports.iter().find(|report| report.policy == expectation.policy);
        let found = match report.map(|report| (expectation.check(report), report)) {
            None => Found::NotPlayed,
            Some((Err(missed), _)) => Found::Missed(missed),
            Some((Ok(()), report)) => {
                Found::Met(expectation.of.value(expectation.metric, report).unwrap_or_default())
            }
        };
        Verdict { expectation, found }
    };
    scenario.expectations.iter().map(verdict).collect()
}

/// How it went, in one line; `None` if nothing was expected.
pub(super) fn summary(verdicts: &[Verdict<'_>]) -> Option<String> {
    let count = |of: fn(&Found) -> bool| verdicts.iter().filter(|verdict| of(&verdict.found)).count();
    let met = count(|found| matches!(found, Found::Met(_)));
    let missed = count(|found| matches!(found, Found::Missed(_)));
    let mut skipped: Vec<&str> = Vec::new();
    for Verdict { expectation, found } in verdicts {
        if *found == Found::NotPlayed && !skipped.contains(&expectation.policy.as_str()) {
            skipped.push(&expectation.policy);
        }
    }
    let mut text = match (verdicts.len(), missed) {
        (0, _) => return None,
        (_, 0) => format!("{met} of {} expectations are met", met + missed),
        (_, 1) => format!("1 of {} expectations is not met", met + 1),
        (_, missed) => format!("{missed} of {} expectations are not met", met + missed),
    };
    if !skipped.is_empty() {
        text += &format!("; not played: {}", skipped.join(", "));
    }
    Some(text)
}

/// What a number is expected of, for a reader; empty if of everything.
pub(super) fn part(of: &Part) -> String {
    let until = |time| if time == Duration::MAX { "the end".to_owned() } else { words::length(time) };
    match of {
        Part::All => String::new(),
        Part::Class(class) => format!("class {class}"),
        Part::Tenant(tenant) => format!("tenant {tenant}"),
        Part::Window(window) => format!("{} to {}", words::length(window.from), until(window.until)),
    }
}

/// The range that is right, for a reader.
pub(super) fn range(expectation: &Expectation) -> String {
    let Expectation { least, most, .. } = expectation;
    if least == most { format!("{least}") } else { format!("{least} to {most}") }
}
