//! What was logged and what came of it, side by side: as a table and as JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_workload::access_log::AccessLog;
use tidegate_workload::{Latencies, Report, Scenario};

use super::args::ReplayArgs;
use super::source::Source;
use super::survey::Survey;

/// So many reports stand beside each other in a table.
const COLUMNS_MAX: usize = 5;
/// So many characters of a policy's name are shown.
const NAME_MAX: usize = 20;

/// Everything there is to show.
pub(crate) struct Shown<'a> {
    pub(crate) args: &'a ReplayArgs,
    pub(crate) source: &'a Source,
    /// Read to its end.
    pub(crate) log: &'a AccessLog,
    pub(crate) survey: &'a Survey,
    pub(crate) scenario: &'a Scenario,
    pub(crate) reports: &'a [Report],
    pub(crate) notes: &'a [String],
}

/// Says on standard error what became of lines that are not played.
pub(crate) fn tally(log: &AccessLog) {
    let tally = log.tally();
    let mut err = io::stderr();
    for line in &tally.unreadable_first {
        let _ = writeln!(err, "  {line}");
    }
    let more = tally.unreadable - tally.unreadable_first.len() as u64;
    if tally.unreadable > 0 {
        let and_more = if more > 0 { format!(", {more} of them not shown") } else { String::new() };
        let _ = writeln!(err, "{} of {} lines could not be read{and_more}.", tally.unreadable, tally.lines);
    }
    if tally.late > 0 {
        let _ = writeln!(
            err,
            "{} requests came out of order by more than is looked ahead, and come when the one before them did.",
            tally.late
        );
    }
}

/// That there is nothing to play, and why.
pub(crate) fn nothing(log: &AccessLog) -> String {
    let tally = log.tally();
    let filtered = tally.filtered;
    format!(
        "no request is left to play: of {} lines {} could not be read, and {} requests were not wanted (time {}, path \
         {}, status {}, method {}, host {}, route {})",
        tally.lines,
        tally.unreadable,
        filtered.total(),
        filtered.time,
        filtered.path,
        filtered.status,
        filtered.method,
        filtered.host,
        filtered.route
    )
}

/// What the log has in it, in a sentence.
pub(crate) fn summary(log: &AccessLog, survey: &Survey) -> String {
    let span = survey.span();
    let mut text = format!("{} requests", thousands(survey.requests));
    if !span.is_zero() {
        let rate = survey.requests as f64 / span.as_secs_f64();
        let _ = write!(text, " in {}, {rate:.2} a second", span_text(span));
    }
    let filtered = log.tally().filtered.total();
    if filtered > 0 {
        let _ = write!(text, "; {} others were not wanted", thousands(filtered));
    }
    text + "."
}

impl Shown<'_> {
    /// The tables of every report, then those numbers that the log has too, then what is to be known of them.
    pub(crate) fn to_text(&self) -> String {
        let mut text = tidegate_workload::table(self.scenario, self.reports);
        for reports in self.reports.chunks(COLUMNS_MAX) {
            let _ = write!(text, "\nBeside the log\n{}", Self { reports, ..*self }.beside());
        }
        for note in self.notes {
            text.push('\n');
            text.push_str(&wrapped(note));
        }
        text
    }

    /// What was logged, for a text without tables.
    pub(crate) fn logged_in_words(&self) -> String {
        let Survey { refused, failed, left, queued, total, worked, .. } = self.survey;
        let mut parts = vec![format!(
            "As logged: {} refused, {} answered with 5xx, {} clients left",
            thousands(*refused),
            thousands(*failed),
            thousands(*left)
        )];
        for (name, times) in [("waits", queued), ("the service's work", worked), ("answers after", total)] {
            let shown = PERCENTILES
                .iter()
                .filter_map(|(name, share)| Some(format!("{name} {}", millis(at(times, *share)?))));
            let shown: Vec<String> = shown.collect();
            if !shown.is_empty() {
                parts.push(format!("{name}: {}", shown.join(", ")));
            }
        }
        parts.join("; ") + "."
    }

    /// One row for each number, one column for each report, the log's first.
    fn beside(&self) -> String {
        let mut rows =
            vec![self.row("", "as logged".into(), |report| report.policy.chars().take(NAME_MAX).collect())];
        rows.extend(self.counts());
        for (name, logged, simulated) in [
            ("waited", &self.survey.queued, (|report| &report.waited) as fn(&Report) -> &Latencies),
            ("answered after", &self.survey.total, |report| &report.all.served),
        ] {
            if logged.count() > 0 || self.reports.iter().any(|report| simulated(report).count() > 0) {
                rows.extend(PERCENTILES.iter().map(|(percentile, share)| {
                    let shown = |times: &Latencies| at(times, *share).map_or_else(|| "–".to_owned(), millis);
                    self.row(&format!("{name}, {percentile}"), shown(logged), |report| {
                        shown(simulated(report))
                    })
                }));
            }
        }
        rows.extend(PERCENTILES.iter().filter_map(|(percentile, share)| {
            let worked = at(&self.survey.worked, *share)?;
            Some(self.row(&format!("service worked, {percentile}"), millis(worked), |_| String::new()))
        }));
        aligned(&rows)
    }

    fn counts(&self) -> Vec<Vec<String>> {
        let survey = self.survey;
        let useful = survey.requests.saturating_sub(survey.refused + survey.failed + survey.left);
        let count = |count: u64| thousands(count);
        let mut rows = vec![
            self.row("requests", count(survey.requests), |report| count(report.all.offered)),
            self.row("useful answers", count(useful), |report| count(report.all.goodput)),
            self.row("refused", count(survey.refused), |report| count(report.all.refusals())),
        ];
        if survey.failed > 0 {
            rows.push(self.row("answered with 5xx", count(survey.failed), |_| "–".into()));
        }
        rows.push(self.row("client left", count(survey.left), |report| count(report.all.left)));
        rows
    }

    fn row(&self, name: &str, logged: String, simulated: impl Fn(&Report) -> String) -> Vec<String> {
        let mut row = vec![name.to_owned(), logged];
        row.extend(self.reports.iter().map(simulated));
        row
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self { args, survey, .. } = self;
        let (recognised, tally) = (self.log.recognised(), self.log.tally());
        let unreadable: Vec<String> = tally.unreadable_first.iter().map(ToString::to_string).collect();
        json!({
            "log": {
                "name": self.source.name,
                "format": recognised.format,
                "recognised": recognised.to_string(),
                "lines": tally.lines,
                "skipped": tally.skipped,
                "unreadable": tally.unreadable,
                "unreadable_first": unreadable,
                "not_wanted": tally.filtered.total(),
                "late": tally.late,
                "first_s": survey.first.as_nanos() as f64 / 1e9,
                "span_s": survey.span().as_secs_f64(),
                "requests": survey.requests,
                "refused": survey.refused,
                "failed": survey.failed,
                "left": survey.left,
                "unserved": survey.unserved,
                "time_drawn": survey.drawn,
                "most_at_work": survey.most_at_work(),
                "limit": survey.limit().map(|(limit, share)| json!({ "at_work": limit, "share": share })),
                "waited_ms": times_json(&survey.queued),
                "worked_ms": times_json(&survey.worked),
                "answered_ms": times_json(&survey.total),
            },
            "seed": args.seed,
            "speed": args.speed,
            "scale": args.scale,
            "workers": args.workers,
            "timeout_ms": args.timeout.map(|time| time.as_secs_f64() * 1e3),
            "waits": self.reports.iter().map(|report| {
                json!({ "policy": report.policy, "waited_ms": times_json(&report.waited) })
            }).collect::<Vec<_>>(),
            "notes": self.notes,
            "reports": self.reports.iter().map(Report::to_json).collect::<Vec<_>>(),
        })
    }
}

const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];

/// A percentile; `None` if there are no times.
fn at(times: &Latencies, share: f64) -> Option<Duration> {
    (times.count() > 0).then(|| if share < 1.0 { times.quantile(share) } else { times.max() })
}

fn times_json(times: &Latencies) -> Value {
    if times.count() == 0 {
        return Value::Null;
    }
    let mut value = json!({ "count": times.count(), "mean": times.mean().as_secs_f64() * 1e3 });
    for (name, share) in PERCENTILES {
        value[name] = json!(at(times, share).unwrap_or_default().as_secs_f64() * 1e3);
    }
    value
}

/// Columns under each other: names to the left, numbers to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ =
                if index == 0 { write!(line, "  {cell:width$}") } else { write!(line, "   {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis > 0.0 && millis < 10.0 {
        return format!("{millis:.2} ms");
    }
    format!("{} ms", thousands(millis.round() as u64))
}

fn span_text(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", span.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A paragraph of lines that fit a terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 98;
    let mut out = String::from("-");
    let mut length = 1;
    for word in text.split_whitespace() {
        if length + 1 + word.chars().count() > WIDTH {
            out.push_str("\n ");
            length = 1;
        }
        out.push(' ');
        out.push_str(word);
        length += 1 + word.chars().count();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let shown = [0, 1_500, 9_999, 67_886_000].map(|micros| millis(Duration::from_micros(micros)));
        assert_eq!(shown, ["0 ms", "1.50 ms", "10.00 ms", "67,886 ms"]);
        let spans = [3, 63, 3_599, 7_300].map(|seconds| span_text(Duration::from_secs(seconds)));
        assert_eq!(spans, ["3.0 s", "1 min 3 s", "59 min 59 s", "2 h 1 min"]);
    }
}
