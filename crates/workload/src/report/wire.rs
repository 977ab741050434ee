//! Tables of what a load generator says of itself and saw on the wire. There are none of a run in virtual time.

use super::sheet::{Column, Sheet, column, each_run, quantile};
use super::words::{NONE, count, time};
use super::{Report, Sending, WireError};

/// How much later answers are than they seem, and how late the generator was itself.
pub(super) fn times(reports: &[Report]) -> Sheet {
    let columns = [
        ("from the intended sending", "p50"),
        ("from the intended sending", "p99"),
        ("from the actual sending", "p50"),
        ("from the actual sending", "p99"),
        ("", "hidden at p99"),
        ("the generator's lag", "p50"),
        ("the generator's lag", "p99"),
        ("the generator's lag", "most"),
        ("connections", "opened"),
        ("connections", "most"),
        ("waited for one", "count"),
        ("waited for one", "p99"),
    ];
    let row = |(report, sending): (&Report, &Sending)| {
        let served = &report.all.served;
        let hidden = served.quantile(0.99).saturating_sub(sending.naive.quantile(0.99));
        let cells = vec![
            quantile(served, 0.5),
            quantile(served, 0.99),
            quantile(&sending.naive, 0.5),
            quantile(&sending.naive, 0.99),
            if served.count() == 0 { NONE.to_owned() } else { time(hidden) },
            quantile(&sending.lag, 0.5),
            quantile(&sending.lag, 0.99),
            if sending.lag.count() == 0 { NONE.to_owned() } else { time(sending.lag.max()) },
            each_run(sending.connections, report),
            count(sending.connections_most as f64),
            each_run(sending.held.count(), report),
            quantile(&sending.held, 0.99),
        ];
        (report.policy.clone(), cells)
    };
    Sheet {
        title: "Times, and the generator itself".to_owned(),
        corner: "policy",
        columns: columns.map(|(group, name)| column(group, name)).into(),
        rows: measured(reports).map(row).collect(),
    }
}

/// Answers by status, and attempts that had none.
pub(super) fn answers(reports: &[Report]) -> Sheet {
    let mut statuses: Vec<u16> =
        measured(reports).flat_map(|(_, sending)| sending.statuses.keys().copied()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let failed = |error: &WireError| measured(reports).any(|(_, it)| it.errors[*error as usize] > 0);
    let errors: Vec<WireError> = WireError::ALL.into_iter().filter(failed).collect();
    let unsent = measured(reports).any(|(_, sending)| sending.unsent > 0);
    let resent = measured(reports).any(|(_, sending)| sending.resent > 0);
    let mut columns: Vec<Column> =
        statuses.iter().map(|status| column("answers by status", &status.to_string())).collect();
    columns.extend(errors.iter().map(|error| column("without an answer", error.name())));
    columns.extend(unsent.then(|| column("without an answer", "never sent")));
    columns.extend(resent.then(|| column("", "sent again silently")));
    let row = |(report, sending): (&Report, &Sending)| {
        let status = |status: &u16| sending.statuses.get(status).copied().unwrap_or_default();
        let cells = statuses
            .iter()
            .map(status)
            .chain(errors.iter().map(|error| sending.errors[*error as usize]))
            .chain(unsent.then_some(sending.unsent))
            .chain(resent.then_some(sending.resent));
        (report.policy.clone(), cells.map(|count| each_run(count, report)).collect())
    };
    Sheet {
        title: "Answers and errors".to_owned(),
        corner: "policy",
        columns,
        rows: measured(reports).map(row).collect(),
    }
}

/// Where the generator was the limit, in words.
pub(super) fn limited(reports: &[Report]) -> impl Iterator<Item = String> {
    let several = measured(reports).nth(1).is_some();
    measured(reports).filter_map(move |(report, sending)| {
        let words = sending.limited_in_words()?;
        Some(if several { format!("{}: {words}", report.policy) } else { words })
    })
}

fn measured(reports: &[Report]) -> impl Iterator<Item = (&Report, &Sending)> {
    reports.iter().filter_map(|report| Some((report, report.sending.as_deref()?)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::super::{sample, table};
    use super::*;

    /// What a run on sockets has besides stands below the first table, and what limited it in words.
    #[test]
    fn a_measured_report_says_what_it_saw_on_the_wire() {
        let scenario = sample::scenario();
        let mut reports = sample::reports();
        reports.truncate(2);
        let mut sending =
            Sending { connections: 7, connections_most: 4, connections_max: 4, ..Sending::default() };
        for number in 0..150 {
            sending.naive.record(Duration::from_millis(1));
            let late = Duration::from_millis(if number < 50 { 80 } else { 0 });
            sending.lag.record(late);
            if number < 50 {
                sending.held.record(late);
            }
        }
        sending.statuses.extend([(200, 150), (503, 140)]);
        sending.failed(WireError::Timeout);
        sending.resent = 2;
        reports[1].sending = Some(sending.into());
        let text = table(&scenario, &reports);
        let shown = |from: &str| {
            text[text.find(from).unwrap_or_default()..].lines().take(4).collect::<Vec<_>>().join("\n")
        };
        expect![[r#"
            The generator was the limit: 50 attempts waited for one of its 4 connections, and 1 in 100 was sent 80.1 ms late or later. Allow more (--connections).

            Goodput over time: 10 s, full height 18/s
            no control  │▃  ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃   ▃    │"#]].assert_eq(&shown("The generator was"));
        expect![[r#"
            Times, and the generator itself
                    from the intended sending  from the actual sending                   the generator's lag   connections
            policy                p50     p99             p50      p99  hidden at p99  p50      p99     most  opened  most
            gate               249 ms  397 ms         1.00 ms  1.00 ms         396 ms    0  80.1 ms  80.1 ms       7     4"#]].assert_eq(&shown("Times, and"));
        expect![[r#"
            Answers and errors
                    answers by status  without an answer
            policy           200  503            timeout  sent again silently
            gate             150  140                  1                    2"#]]
        .assert_eq(&shown("Answers and"));
        assert!(!table(&scenario, &sample::reports()).contains("The generator"));
    }
}
