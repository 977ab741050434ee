//! What was measured, beside what the article had.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::burst::Shot;

/// The rows of one story.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    article: String,
    value: Value,
}

impl Table {
    /// A row for each kind of answer among these, with the article's words for each in the order that they have here:
    /// by status, then by reason.
    pub(super) fn shots(mut self, shots: &[Shot], article: &[&str]) -> Self {
        let mut kinds: BTreeMap<(u16, &str), Vec<Duration>> = BTreeMap::new();
        for shot in shots {
            kinds.entry((shot.status, &shot.reason)).or_default().push(shot.took);
        }
        for (index, ((status, reason), mut times)) in kinds.into_iter().enumerate() {
            times.sort();
            let [p50, p99, max] = [50, 99, 100].map(|percent| millis(percentile(&times, percent)));
            let count = times.len();
            self.rows.push(Row {
                what: format!("{status} {reason}").trim_end().to_string(),
                measured: format!("{count:>4}   p50 {p50:>7.1} ms   p99 {p99:>7.1} ms   max {max:>7.1} ms"),
                article: article.get(index).copied().unwrap_or_default().to_string(),
                value: json!({
                    "status": status, "reason": reason, "count": count,
                    "p50_ms": p50, "p99_ms": p99, "max_ms": max,
                }),
            });
        }
        self
    }

    /// A row for one number.
    pub(super) fn fact(self, what: &str, measured: impl Into<Value>, article: &str) -> Self {
        let measured = measured.into();
        let shown = measured.to_string();
        self.statement(what, &shown, measured, article)
    }

    /// A row for something that is told in a few words, and in figures for a program.
    pub(super) fn statement(mut self, what: &str, shown: &str, measured: Value, article: &str) -> Self {
        self.rows.push(Row {
            what: what.to_string(),
            measured: format!("{shown:>4}"),
            article: article.to_string(),
            value: json!({ "what": what, "measured": measured }),
        });
        self
    }

    /// A line above the rows of one of several bursts.
    pub(super) fn heading(mut self, text: &str) -> Self {
        let (measured, article) = (String::new(), String::new());
        self.rows.push(Row {
            what: format!("{text}:"),
            measured,
            article,
            value: json!({ "heading": text }),
        });
        self
    }

    pub(super) fn to_json(&self) -> Value {
        self.rows.iter().map(|row| row.value.clone()).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: fn(&Row) -> &str, least: usize| {
            self.rows.iter().map(|row| column(row).chars().count()).max().unwrap_or(0).max(least)
        };
        let (what, measured) = (width(|row| &row.what, 0), width(|row| &row.measured, 8));
        writeln!(f, "   {:what$}   {:measured$}   the article had", "", "measured")?;
        for row in &self.rows {
            writeln!(f, "   {:what$}   {:measured$}   {}", row.what, row.measured, row.article)?;
        }
        Ok(())
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}
