//! What came of it: a table or JSON, and files for whoever wants them.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use tidegate_workload::{Crossed, MadeBy, Report, Scenario, WireError, page, table};

use super::args::LoadArgs;
use super::compare::Earlier;
use crate::exit::Failure;

/// What is shown, and how that was asked for.
pub(super) struct Shown<'a> {
    pub(super) args: &'a LoadArgs,
    pub(super) scenario: &'a Scenario,
    /// The last of them was measured.
    pub(super) reports: &'a [Report],
    pub(super) crossed: &'a [Crossed],
    pub(super) earlier: Option<Earlier>,
}

impl Shown<'_> {
    pub(super) fn show(&self) -> Result<(), Failure> {
        let output = &self.args.output;
        let mut out = io::stdout();
        if output.json {
            writeln!(out, "{:#}", self.to_json())?;
        } else {
            write!(out, "{}", table(self.scenario, self.reports))?;
            if let (Some(earlier), Some(now)) = (&self.earlier, self.reports.last()) {
                write!(out, "{}", earlier.beside(now))?;
            }
            write!(out, "{}", self.thresholds())?;
        }
        if let Some(path) = &output.html {
            let command = command();
            let made_by = MadeBy { command: &command, version: env!("CARGO_PKG_VERSION") };
            write_file(path, &page(self.scenario, self.reports, &made_by))?;
            let _ = writeln!(io::stderr(), "tidegate: the report is in {}", path.display());
        }
        if let (Some(path), Some(measured)) = (&output.hdr, self.reports.last()) {
            write_file(path, &measured.all.served.percentiles())?;
        }
        Ok(())
    }

    /// What had to hold, and whether it did.
    fn thresholds(&self) -> String {
        let thresholds = &self.args.goal.threshold;
        if thresholds.is_empty() {
            return String::new();
        }
        let mut text = String::from("\nThresholds\n");
        for threshold in thresholds {
            let crossed = self.crossed.iter().find(|crossed| crossed.is_of(threshold));
            text += &match crossed {
                None => format!("  met     {threshold}\n"),
                Some(crossed) => format!("  missed  {crossed}\n"),
            };
        }
        text
    }

    fn to_json(&self) -> Value {
        let thresholds = self.args.goal.threshold.iter().map(|threshold| {
            let crossed = self.crossed.iter().find(|crossed| crossed.is_of(threshold));
            json!({
                "threshold": threshold.to_string(),
                "met": crossed.is_none(),
                "message": crossed.map(Crossed::to_string),
            })
        });
        json!({
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "reports": self.reports.iter().map(Report::to_json).collect::<Vec<_>>(),
            "thresholds": thresholds.collect::<Vec<_>>(),
        })
    }
}

/// Why nothing can be said about the target, if no connection to it could be opened at all.
pub(super) fn nobody_there(report: &Report) -> Option<String> {
    let sending = report.sending.as_ref()?;
    let refused = [WireError::Connect, WireError::Exhausted].map(|error| sending.errors[error as usize]);
    let refused: u64 = refused.iter().sum();
    (sending.statuses.is_empty() && refused > 0 && refused == report.all.attempts)
        .then(|| format!("no connection could be opened, in {refused} attempts"))
}

pub(super) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::runtime(format_args!("cannot write {}: {error}", path.display())))
}

/// What was typed.
pub(super) fn command() -> String {
    let quoted = |text: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    let typed = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("tidegate".to_owned()).chain(typed).collect::<Vec<_>>().join(" ")
}
