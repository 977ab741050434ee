//! Two runs beside each other: this one, and one of which the JSON was kept.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use tidegate_workload::Report;

use crate::exit::Failure;

/// A report in JSON has some ten kilobytes for each class and policy.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// A number of a report: what it is called, where it stands in JSON, and what it is.
struct Number {
    name: &'static str,
    at: &'static str,
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Count,
    Rate,
    Share,
    Millis,
}

const fn number(name: &'static str, at: &'static str, unit: Unit) -> Number {
    Number { name, at, unit }
}

/// What is compared. Counts depend on how long it was watched, so they are compared for each second.
const NUMBERS: [Number; 14] = [
    number("offered", "/offered", Unit::Rate),
    number("goodput", "/goodput", Unit::Rate),
    number("goodput, share", "/goodput", Unit::Share),
    number("failed", "/failed", Unit::Rate),
    number("attempts", "/attempts", Unit::Rate),
    number("served p50", "/served_ms/p50", Unit::Millis),
    number("served p90", "/served_ms/p90", Unit::Millis),
    number("served p99", "/served_ms/p99", Unit::Millis),
    number("served p99.9", "/served_ms/p999", Unit::Millis),
    number("served, most", "/served_ms/max", Unit::Millis),
    number("refused p50", "/refused_ms/p50", Unit::Millis),
    number("refused p99", "/refused_ms/p99", Unit::Millis),
    number("lag p99", "/sending/lag_ms/p99", Unit::Millis),
    number("connections", "/sending/connections", Unit::Count),
];

/// An earlier run.
pub(super) struct Earlier(Value);

impl Earlier {
    /// Reads what `--json` has printed. The last report in it is the one that was measured.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: &dyn std::fmt::Display| {
            Failure::usage(format_args!("cannot compare with {}: {what}", path.display()))
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| wrong(&error))?;
        file.take(FILE_MAX).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let last = value["reports"].as_array().and_then(|reports| reports.last().cloned());
        let report = last.filter(|report| report["watched_s"].is_number());
        report.map(Self).ok_or_else(|| wrong(&"it is not what `tidegate load --json` prints"))
    }

    /// A table of both, and of what has changed.
    pub(super) fn beside(&self, now: &Report) -> String {
        let now = now.to_json();
        let mut text =
            format!("\nCompared with the earlier run\n{:16}  {:>12}  {:>12}  change\n", "", "earlier", "now");
        for Number { name, at, unit } in NUMBERS {
            let [before, after] = [&self.0, &now].map(|report| value(report, at, unit));
            let [shown_before, shown_after] = [before, after].map(|number| shown(number, unit));
            let _ = writeln!(
                text,
                "{name:16}  {shown_before:>12}  {shown_after:>12}  {}",
                change(before, after, unit)
            );
        }
        text
    }
}

fn value(report: &Value, at: &str, unit: Unit) -> Option<f64> {
    let found = report.pointer(at)?.as_f64()?;
    match unit {
        Unit::Count | Unit::Millis => Some(found),
        Unit::Rate => {
            let seconds = report["watched_s"].as_f64()? * report["runs"].as_f64()?;
            (seconds > 0.0).then(|| found / seconds)
        }
        Unit::Share => {
            let offered = report["offered"].as_f64()?;
            (offered > 0.0).then(|| found / offered)
        }
    }
}

fn shown(number: Option<f64>, unit: Unit) -> String {
    let Some(number) = number else { return "–".to_owned() };
    match unit {
        Unit::Count => format!("{number:.0}"),
        Unit::Rate => format!("{number:.1}/s"),
        Unit::Share => format!("{:.2}%", number * 100.0),
        Unit::Millis => format!("{number:.2} ms"),
    }
}

fn change(before: Option<f64>, after: Option<f64>, unit: Unit) -> String {
    match (before, after, unit) {
        (Some(before), Some(after), Unit::Share) => format!("{:+.2} points", (after - before) * 100.0),
        (Some(before), Some(after), _) if before > 0.0 => format!("{:+.1}%", (after / before - 1.0) * 100.0),
        (Some(_), Some(0.0), _) => "none".to_owned(),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_changed_is_said_for_each_second() {
        let report = |goodput: u64, seconds: f64| json!({ "goodput": goodput, "offered": 1000, "watched_s": seconds, "runs": 1 });
        let (before, after) = (report(500, 10.0), report(900, 20.0));
        let [rate, share] = [Unit::Rate, Unit::Share]
            .map(|unit| [&before, &after].map(|report| value(report, "/goodput", unit)));
        assert_eq!(rate, [Some(50.0), Some(45.0)]);
        assert_eq!(change(rate[0], rate[1], Unit::Rate), "-10.0%");
        assert_eq!(change(share[0], share[1], Unit::Share), "+40.00 points");
        assert_eq!(
            (value(&before, "/served_ms/p50", Unit::Millis), shown(None, Unit::Millis)),
            (None, "–".into())
        );
    }
}
