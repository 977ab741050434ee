//! What is shown in tables: names and numbers as text, the same in a terminal and on a page.
//!
//! Counts are those of one run: with several, their mean. It knows nothing of how a table is drawn.

use tidegate_engine::Reason;

use super::words::{NONE, count, percent, time};
use super::{Latencies, Report, Totals, wire};

/// A table.
pub(super) struct Sheet {
    pub(super) title: String,
    /// What the rows are.
    pub(super) corner: &'static str,
    pub(super) columns: Vec<Column>,
    /// Each with a cell for each column.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// What a column shows.
#[derive(Clone, PartialEq)]
pub(super) struct Column {
    /// What it has in common with the columns beside it; may be empty.
    pub(super) group: String,
    pub(super) name: String,
}

pub(super) fn column(group: &str, name: &str) -> Column {
    Column { group: group.to_owned(), name: name.to_owned() }
}

/// The table that answers most: what came of it under each policy.
pub(super) fn overview(reports: &[Report]) -> Sheet {
    let columns = [
        ("", "offered"),
        ("", "goodput"),
        ("", "share"),
        ("", "too late"),
        ("", "rejected"),
        ("", "failed"),
        ("served", "p50"),
        ("served", "p99"),
        ("refused", "p50"),
        ("refused", "p99"),
        ("", "tries"),
    ];
    let row = |report: &Report| {
        let Totals { offered, goodput, failed, late, served, refused, .. } = &report.all;
        let each = |number: u64| each_run(number, report);
        let cells = vec![
            each(*offered),
            each(*goodput),
            percent(report.all.goodput_share()),
            // From outside nobody can see what a service does for clients that have left.
            if report.sending.is_some() && *late == 0 { NONE.to_owned() } else { each(*late) },
            each(report.all.refusals()),
            each(*failed),
            quantile(served, 0.5),
            quantile(served, 0.99),
            quantile(refused, 0.5),
            quantile(refused, 0.99),
            format!("×{:.2}", report.all.amplification()),
        ];
        (report.policy.clone(), cells)
    };
    Sheet {
        title: "What came of it".to_owned(),
        corner: "policy",
        columns: columns.map(|(group, name)| column(group, name)).into(),
        rows: reports.iter().map(row).collect(),
    }
}

/// All tables that there is something in, but for the first.
pub(super) fn details(reports: &[Report]) -> Vec<Sheet> {
    let mut sheets = vec![wire::times(reports), wire::answers(reports), endings(reports), runs(reports)];
    for (title, rows, parts) in [
        ("By class", "class", (|report| &report.classes) as fn(&Report) -> &Vec<(String, Totals)>),
        ("By tenant", "tenant", |report| &report.tenants),
    ] {
        sheets.push(by_part(title, rows, reports, parts));
    }
    // Unless the scenario says otherwise, each sort of clients is a class and a tenant of its own.
    if let [.., classes, tenants] = &sheets[..]
        && classes.rows == tenants.rows
    {
        sheets.pop();
    }
    sheets.push(refused_by_class(reports));
    sheets.retain(|sheet| !sheet.columns.is_empty() && !sheet.rows.is_empty());
    sheets
}

/// A cell, and whether there is anything in it.
type Cell = Box<dyn Fn(&Report) -> (bool, String)>;

/// How attempts went and ended that are not in the first table, as far as any did.
fn endings(reports: &[Report]) -> Sheet {
    fn counted(of: impl Fn(&Totals) -> u64 + 'static) -> Cell {
        Box::new(move |report| (of(&report.all) > 0, each_run(of(&report.all), report)))
    }
    fn waited(share: f64) -> Cell {
        Box::new(move |report| (!report.waited.max().is_zero(), quantile(&report.waited, share)))
    }
    let told = |report: &Report| {
        let share = report.all.told_admitted_share();
        (share.is_some(), share.map_or_else(|| NONE.to_owned(), percent))
    };
    let refused = |reason: Reason| {
        let cell = counted(move |totals| totals.rejected[reason as usize]);
        (column("refused by reason", reason.name()), cell)
    };
    // A timeout of the service is no refusal, but it has a reason's name.
    let (timeouts, refusals): (Vec<_>, Vec<_>) =
        Reason::ALL.into_iter().partition(|reason| *reason == Reason::UpstreamTimeout);
    let mut columns: Vec<(Column, Cell)> = vec![
        (column("waited for a slot", "p50"), waited(0.5)),
        (column("waited for a slot", "p99"), waited(0.99)),
    ];
    columns.extend(refusals.into_iter().map(refused));
    columns.extend(timeouts.into_iter().map(|reason| (column("", reason.name()), refused(reason).1)));
    columns.extend([
        (column("", "broken off"), counted(|totals| totals.broken)),
        (column("", "client left"), counted(|totals| totals.left)),
        (column("", "pending"), counted(Totals::pending)),
        (column("told to return", "came"), counted(|totals| totals.told)),
        (column("told to return", "let in"), Box::new(told)),
        (column("retries", "came"), counted(|totals| totals.retries)),
        (column("retries", "let in"), counted(|totals| totals.retries_let_in)),
        (column("", "overtaken"), counted(|totals| totals.overtaken)),
    ]);
    columns.retain(|(_, cell)| reports.iter().any(|report| cell(report).0));
    let row =
        |report: &Report| (report.policy.clone(), columns.iter().map(|(_, cell)| cell(report).1).collect());
    Sheet {
        title: "Waits, refusals and other endings".to_owned(),
        corner: "policy",
        rows: reports.iter().map(row).collect(),
        columns: columns.into_iter().map(|(column, _)| column).collect(),
    }
}

/// How far the runs lie apart, if there are several.
fn runs(reports: &[Report]) -> Sheet {
    let row = |report: &Report| {
        let runs = &report.goodput_of_runs;
        let least = runs.iter().min().copied().unwrap_or_default();
        let most = runs.iter().max().copied().unwrap_or_default();
        let mean = runs.iter().sum::<u64>() as f64 / runs.len().max(1) as f64;
        let squares: f64 = runs.iter().map(|run| (*run as f64 - mean).powi(2)).sum();
        let deviation = (squares / runs.len().saturating_sub(1).max(1) as f64).sqrt();
        let cells = [mean, least as f64, most as f64, deviation].map(count);
        (report.policy.clone(), cells.into())
    };
    let several = reports.iter().map(|report| report.runs).max().filter(|runs| *runs > 1);
    Sheet {
        title: format!("Goodput of {} runs", several.unwrap_or(1)),
        corner: "policy",
        columns: ["mean", "lowest", "highest", "deviation"].map(|name| column("", name)).into(),
        rows: if several.is_some() { reports.iter().map(row).collect() } else { Vec::new() },
    }
}

/// Goodput and its times for each class or tenant, if there are several, under each policy.
fn by_part(
    title: &str,
    corner: &'static str,
    reports: &[Report],
    parts: fn(&Report) -> &Vec<(String, Totals)>,
) -> Sheet {
    let names: Vec<&str> =
        reports.first().into_iter().flat_map(parts).map(|(name, _)| name.as_str()).collect();
    let mut columns = vec![column("", "offered")];
    for report in reports {
        columns.extend(["goodput", "share", "p99"].map(|name| column(&report.policy, name)));
    }
    let row = |(index, name): (usize, &&str)| {
        let of = |report| parts(report).get(index).map(|(_, totals)| totals);
        let offered = reports.first().and_then(|report| Some(each_run(of(report)?.offered, report)));
        let mut cells = vec![offered.unwrap_or_default()];
        for report in reports {
            cells.extend(match of(report) {
                Some(totals) => [
                    each_run(totals.goodput, report),
                    percent(totals.goodput_share()),
                    quantile(&totals.served, 0.99),
                ],
                None => [NONE; 3].map(str::to_owned),
            });
        }
        ((*name).to_owned(), cells)
    };
    Sheet {
        title: title.to_owned(),
        corner,
        columns,
        rows: if names.len() > 1 { names.iter().enumerate().map(row).collect() } else { Vec::new() },
    }
}

/// Why attempts of each class were refused, if there are several and any were.
fn refused_by_class(reports: &[Report]) -> Sheet {
    let classes = || reports.iter().flat_map(|report| report.classes.iter().map(move |it| (report, it)));
    let several = reports.first().is_some_and(|report| report.classes.len() > 1);
    let known = |reason: &Reason| {
        several
            && *reason != Reason::UpstreamTimeout
            && classes().any(|(_, (_, totals))| totals.rejected[*reason as usize] > 0)
    };
    let reasons: Vec<Reason> = Reason::ALL.into_iter().filter(known).collect();
    let refused = classes().filter(|(_, (_, totals))| totals.refusals() > 0);
    let row = |(report, (class, totals)): (&Report, &(String, Totals))| {
        let cells = reasons.iter().map(|reason| each_run(totals.rejected[*reason as usize], report));
        (format!("{}: {class}", report.policy), cells.collect())
    };
    Sheet {
        title: "Refused, by class".to_owned(),
        corner: "policy and class",
        columns: reasons.iter().map(|reason| column("", reason.name())).collect(),
        rows: refused.map(row).collect(),
    }
}

pub(super) fn each_run(number: u64, report: &Report) -> String {
    count(number as f64 / f64::from(report.runs.max(1)))
}

pub(super) fn quantile(latencies: &Latencies, share: f64) -> String {
    if latencies.count() == 0 { NONE.to_owned() } else { time(latencies.quantile(share)) }
}
