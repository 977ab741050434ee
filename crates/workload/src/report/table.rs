//! The report for a terminal: tables of plain text, at most 120 columns wide.

use std::fmt::Write as _;

use super::sheet::{self, Column, Sheet};
use super::verdict::{self, Found, judge};
use super::{Report, wire, words};
use crate::scenario::Scenario;

/// How wide a table may be.
const WIDTH: usize = 120;
/// How much of a name is shown.
const NAME_WIDTH: usize = 28;
/// How many rows of one table are shown; a page and JSON have all of them.
const ROWS_MAX: usize = 24;
/// How many characters a course over time has.
const COURSE_WIDTH: usize = 60;

/// What came of a scenario, for a reader at a terminal: its story, the tables, and what was expected and not found.
pub fn table(scenario: &Scenario, reports: &[Report]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", scenario.name);
    if !scenario.story.is_empty() {
        let _ = writeln!(out, "{}\n", scenario.story);
    }
    let _ = writeln!(out, "{}\n", played(scenario));
    draw(&sheet::overview(reports), &mut out);
    for text in wire::limited(reports) {
        let _ = writeln!(out, "\n{text}");
    }
    courses(scenario, reports, &mut out);
    for sheet in sheet::details(reports) {
        let _ = writeln!(out, "\n{}", sheet.title);
        draw(&sheet, &mut out);
    }
    expectations(scenario, reports, &mut out);
    out
}

/// How it was played: how long, with which seeds, and what the counts are.
pub(super) fn played(scenario: &Scenario) -> String {
    let mut text = words::length(scenario.duration);
    if !scenario.warmup.is_zero() {
        text += &format!(", of which the first {} are not counted", words::length(scenario.warmup));
    }
    match scenario.runs {
        1 => text + &format!("; seed {}", scenario.seed),
        runs => {
            let last = scenario.seed.wrapping_add(u64::from(runs) - 1);
            text + &format!("; {runs} runs, seeds {} to {last}; counts are means of a run", scenario.seed)
        }
    }
}

fn draw(sheet: &Sheet, out: &mut String) {
    let name = |name: &str| words::cut(name, NAME_WIDTH);
    let names = sheet.rows.iter().map(|(row, _)| name(row).chars().count());
    let first = names.chain([sheet.corner.len()]).max().unwrap_or(0);
    let widths = widths(sheet);
    let mut begin = 0;
    while begin < widths.len() {
        if begin > 0 {
            out.push('\n');
        }
        let end = begin + fitting(&sheet.columns[begin..], &widths[begin..], WIDTH - first);
        let (columns, widths) = (&sheet.columns[begin..end], &widths[begin..end]);
        groups(columns, widths, first, out);
        let _ = write!(out, "{:first$}", sheet.corner);
        for (column, width) in columns.iter().zip(widths) {
            let _ = write!(out, "  {:>width$}", column.name);
        }
        out.push('\n');
        for (row, cells) in sheet.rows.iter().take(ROWS_MAX) {
            let _ = write!(out, "{:first$}", name(row));
            for (cell, width) in cells[begin..end].iter().zip(widths) {
                let _ = write!(out, "  {cell:>width$}");
            }
            out.push('\n');
        }
        begin = end;
    }
    if let Some(more @ 1..) = sheet.rows.len().checked_sub(ROWS_MAX) {
        let _ = writeln!(out, "… and {more} more");
    }
}

/// How wide each column has to be for its cells, its name, and the name of its group.
fn widths(sheet: &Sheet) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..sheet.columns.len())
        .map(|index| {
            let cells = sheet.rows.iter().map(|(_, cells)| cells[index].chars().count());
            cells.chain([sheet.columns[index].name.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut begin = 0;
    for group in sheet.columns.chunk_by(|one, next| one.group == next.group) {
        let width = spanned(&widths[begin..begin + group.len()]);
        let wanted = words::cut(&group[0].group, NAME_WIDTH).chars().count();
        widths[begin] += wanted.saturating_sub(width);
        begin += group.len();
    }
    widths
}

/// The width of columns together, with the gaps between them.
fn spanned(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// How many columns fit beside each other; a group is not torn apart unless it is too wide by itself.
fn fitting(columns: &[Column], widths: &[usize], room: usize) -> usize {
    let mut count = 0;
    for group in columns.chunk_by(|one, next| one.group == next.group && !one.group.is_empty()) {
        if spanned(&widths[..count + group.len()]) + 2 > room {
            break;
        }
        count += group.len();
    }
    let alone = || (1..widths.len()).take_while(|count| spanned(&widths[..=*count]) + 2 <= room).count() + 1;
    if count == 0 { alone() } else { count }
}

/// The line above the names of columns that belong together.
fn groups(columns: &[Column], widths: &[usize], first: usize, out: &mut String) {
    if columns.iter().all(|column| column.group.is_empty()) {
        return;
    }
    let mut line = " ".repeat(first);
    let mut begin = 0;
    for group in columns.chunk_by(|one, next| one.group == next.group) {
        let width = spanned(&widths[begin..begin + group.len()]);
        let _ = write!(line, "  {:>width$}", words::cut(&group[0].group, NAME_WIDTH));
        begin += group.len();
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// How goodput went over time, one line for each policy, all with the same full height.
fn courses(scenario: &Scenario, reports: &[Report], out: &mut String) {
    let course = |report: &Report| -> Vec<f64> {
        let buckets = &report.series.buckets;
        let stretches = buckets.chunks(buckets.len().div_ceil(COURSE_WIDTH).max(1));
        stretches
            .map(|stretch| {
                let seconds = report.series.every.as_secs_f64() * stretch.len() as f64;
                let goodput: u64 = stretch.iter().map(|bucket| bucket.goodput).sum();
                goodput as f64 / f64::from(report.runs.max(1)) / seconds
            })
            .collect()
    };
    let courses: Vec<_> =
        reports.iter().map(|report| (words::cut(&report.policy, NAME_WIDTH), course(report))).collect();
    let most = courses.iter().flat_map(|(_, course)| course).copied().fold(0.0, f64::max);
    if most == 0.0 {
        return;
    }
    let name = courses.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let length = words::length(scenario.duration);
    let _ = writeln!(out, "\nGoodput over time: {length}, full height {}/s", words::count(most));
    for (policy, course) in courses {
        let bars: String = course.iter().map(|rate| bar(rate / most)).collect();
        let _ = writeln!(out, "{policy:name$}  │{bars}│");
    }
}

/// A block as high as this share of a line. Only nothing is shown as nothing.
fn bar(share: f64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = (share * 8.0).round().clamp(if share > 0.0 { 1.0 } else { 0.0 }, 8.0);
    BARS[height as usize]
}

fn expectations(scenario: &Scenario, reports: &[Report], out: &mut String) {
    let verdicts = judge(scenario, reports);
    let Some(summary) = verdict::summary(&verdicts) else { return };
    let missed: Vec<_> = verdicts
        .iter()
        .filter_map(|verdict| if let Found::Missed(missed) = &verdict.found { Some(missed) } else { None })
        .collect();
    let _ = writeln!(out, "\n{summary}{}", if missed.is_empty() { "." } else { ":" });
    for missed in missed {
        let _ = writeln!(out, "  {missed}");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::sample;
    use super::*;

    #[test]
    fn two_policies_side_by_side() {
        expect![[r#"
            sample

            Two kinds of requests come for ten seconds.

            10 s; seed 1

                                                                                            served         refused
            policy             offered  goodput  share  too late  rejected  failed     p50     p99     p50     p99  tries
            no control             300       15   5.0%       285         0     285  240 ms  380 ms       –       –  ×1.00
            gate                   300      150  50.0%         0       150     150  249 ms  397 ms  148 µs  296 µs  ×1.00
            best static limit      300      200  66.7%         0       100     100  249 ms  396 ms  147 µs  294 µs  ×1.00

            Goodput over time: 10 s, full height 24/s
            no control         │▂  ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂   ▂    │
            gate               │▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▄▆▂│
            best static limit  │█▆▆█▆▆█▆▆█▆▆█▆▆█▆▆██▆▆█▆▆█▆▆█▆▆█▆▆█▆▆█▆█▆█▆▆█▆▆█▆▆█▆▆█▆▆█▆▆▄│

            Waits, refusals and other endings
                               refused by reason  told to return
            policy                    queue_full    came  let in
            no control                         0       0       –
            gate                             150       6      0%
            best static limit                100       0       –

            By class
                                           no control                    gate       best static limit
            class     offered  goodput  share     p99  goodput  share     p99  goodput  share     p99
            checkout      100        5   5.0%  340 ms       50  50.0%  397 ms        0     0%       –
            search        200       10   5.0%  380 ms      100  50.0%  395 ms      200   100%  396 ms

            Refused, by class
            policy and class             queue_full
            gate: checkout                       50
            gate: search                        100
            best static limit: checkout         100

            1 of 3 expectations is not met:
              best static limit: failed is 100.000, not 0
        "#]].assert_eq(&table(&sample::scenario(), &sample::reports()));
    }

    #[test]
    fn several_runs_are_shown_as_their_mean() {
        let mut scenario = sample::scenario();
        scenario.runs = 2;
        let mut reports = sample::reports();
        for (report, other) in reports.iter_mut().zip(sample::reports()) {
            report.add(&other);
        }
        let text = table(&scenario, &reports);
        let once = table(&sample::scenario(), &sample::reports());
        let row = |text: &str| text.lines().find(|line| line.starts_with("gate")).map(str::to_owned);
        assert_eq!(row(&text), row(&once), "{text}");
        assert!(text.contains("2 runs, seeds 1 to 2") && text.contains("Goodput of 2 runs"), "{text}");
    }

    #[test]
    fn however_many_policies_no_line_is_too_long() {
        let mut reports = sample::reports();
        for number in 0..12 {
            let mut report = reports[1].clone();
            report.policy = format!("a policy with quite a long name, number {number}");
            reports.push(report);
        }
        let text = table(&sample::scenario(), &reports);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
