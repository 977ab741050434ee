//! All that was measured as one table, contenders side by side, or as JSON.
//!
//! What is shown is the median of the rounds; JSON has each of them.

use std::fmt;

use serde_json::{Value, json};

use super::case::{Asked, Case};
use super::contender::Contender;
use super::measure::median;

/// The generator's own lag, at the 99th percentile, above which a figure is marked.
pub(crate) const LAG_MAX_MILLIS: f64 = 5.0;

const TITLE: usize = 28;
const GOAL: usize = 10;
const CELL: usize = 11;

/// A case, and what came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was tried.
    pub(crate) case: Case,
    /// What the service could do, one list a round, one number a phase.
    pub(crate) capacities: Vec<Vec<f64>>,
    /// Contender by contender, in the order of the table.
    pub(crate) columns: Vec<Column>,
}

/// What came of a case with one contender.
#[derive(Debug)]
pub(crate) struct Column {
    /// Who.
    pub(crate) contender: Contender,
    /// One a round.
    pub(crate) rounds: Vec<Round>,
}

/// One round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// In the order in which the case asks.
    pub(crate) values: Vec<f64>,
    /// How late the generator was, at the 99th percentile.
    pub(crate) lag_millis: f64,
    /// How many requests the generator had no connection for.
    pub(crate) unsent: usize,
}

/// A goal of tidegate's that was missed.
#[derive(Debug, PartialEq)]
pub(crate) struct Miss {
    /// In which case, and what.
    pub(crate) what: String,
    /// What it should have been.
    pub(crate) goal: String,
    /// What it was.
    pub(crate) was: String,
}

impl Column {
    fn value(&self, index: usize) -> f64 {
        median(self.rounds.iter().filter_map(|round| round.values.get(index).copied()))
    }

    /// The generator could not do what it was to do, so the figures are about it rather than about the gateway.
    fn is_doubtful(&self) -> bool {
        self.rounds.iter().any(|round| round.lag_millis > LAG_MAX_MILLIS || round.unsent > 0)
    }
}

impl Outcome {
    /// The goals that tidegate missed.
    pub(crate) fn misses(&self) -> Vec<Miss> {
        let columns = self.columns.iter().filter(|column| column.contender == Contender::Tidegate);
        let each = columns.flat_map(|column| {
            self.case.figures.iter().enumerate().map(|(index, asked)| (*asked, column.value(index)))
        });
        each.filter(|(asked, value)| asked.is_missed(*value))
            .map(|(Asked { figure, goal }, value)| Miss {
                what: format!("{}: {}", self.case.name, figure.title(&self.case)),
                goal: figure.goal_shown(goal),
                was: figure.shown(value),
            })
            .collect()
    }

    /// The same numbers for a program.
    pub(crate) fn to_json(&self) -> Value {
        let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
        let columns = self.columns.iter().map(|column| {
            let figures = self.case.figures.iter().enumerate().map(|(index, asked)| {
                let rounds = column.rounds.iter().filter_map(|round| round.values.get(index));
                json!({
                    "figure": asked.figure.title(&self.case),
                    "goal": asked.figure.goal_shown(asked.goal),
                    "median": number(column.value(index)),
                    "shown": asked.figure.shown(column.value(index)),
                    "rounds": rounds.map(|value| number(*value)).collect::<Vec<_>>(),
                })
            });
            json!({
                "contender": column.contender.heading().join(" "),
                "figures": figures.collect::<Vec<_>>(),
                "generator_lag_ms_p99": column.rounds.iter().map(|round| round.lag_millis).collect::<Vec<_>>(),
                "unsent": column.rounds.iter().map(|round| round.unsent).collect::<Vec<_>>(),
            })
        });
        json!({
            "case": self.case.name,
            "title": self.case.title,
            "capacity_per_second": self.capacities,
            "contenders": columns.collect::<Vec<_>>(),
        })
    }

    fn capacity_shown(&self) -> String {
        let phases = self.capacities.first().map_or(0, Vec::len);
        let of = |phase: usize| median(self.capacities.iter().filter_map(|round| round.get(phase).copied()));
        let shown: Vec<_> = (0..phases).map(|phase| format!("{:.0}", of(phase))).collect();
        if shown.is_empty() {
            String::new()
        } else {
            format!("; measured capacity {}/s", shown.join(" → "))
        }
    }
}

impl Asked {
    fn is_missed(&self, value: f64) -> bool {
        self.goal.is_some_and(|goal| !goal.is_met(value))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{}", self.case.title, self.capacity_shown())?;
        for (index, asked) in self.case.figures.iter().enumerate() {
            let Asked { figure, goal } = asked;
            let title = figure.title(&self.case);
            write!(f, "  {title:<TITLE$}{:>GOAL$}", figure.goal_shown(*goal))?;
            for column in &self.columns {
                let value = column.value(index);
                let missed = column.contender == Contender::Tidegate && asked.is_missed(value);
                let mark = if missed { "✗" } else { " " };
                let doubt = if column.is_doubtful() { "?" } else { "" };
                let cell = format!("{}{doubt}{mark}", figure.shown(value));
                write!(f, "{cell:>CELL$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The heading of the table: two lines.
pub(crate) fn heading(contenders: &[Contender]) -> String {
    let mut lines = String::new();
    for line in 0..2 {
        let goal = if line == 0 { "tidegate's" } else { "goal" };
        lines.push_str(&format!("  {:<TITLE$}{goal:>GOAL$}", ""));
        for contender in contenders {
            // The mark of a miss stands behind the number, so the heading ends before it.
            lines.push_str(&format!("{:>width$} ", contender.heading()[line], width = CELL - 1));
        }
        lines.truncate(lines.trim_end().len());
        lines.push('\n');
    }
    lines
}

/// What a mark means, if any was printed.
pub(crate) fn legend(outcomes: &[Outcome]) -> Vec<String> {
    let mut lines = Vec::new();
    if outcomes.iter().any(|outcome| !outcome.misses().is_empty()) {
        lines.push("✗ tidegate misses its goal".to_owned());
    }
    let columns = || outcomes.iter().flat_map(|outcome| &outcome.columns);
    if columns().any(Column::is_doubtful) {
        let lag = columns().flat_map(|column| &column.rounds).map(|round| round.lag_millis);
        let unsent: usize = columns().flat_map(|column| &column.rounds).map(|round| round.unsent).sum();
        lines.push(format!(
            "? the load generator could not hold its schedule: up to {:.0} ms late at the 99th percentile, {unsent} \
             requests unsent for want of a connection",
            lag.fold(0.0, f64::max),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::case::Figure;
    use crate::peers::overload;

    fn outcome(goodputs: &[f64], lag_millis: f64) -> Outcome {
        let case = overload::cases(false).swap_remove(0);
        let values = |goodput| {
            let of = |asked: &Asked| match asked.figure {
                Figure::Goodput { .. } => goodput,
                Figure::RefusalMedian => 0.25,
                _ => f64::NAN,
            };
            case.figures.iter().map(of).collect()
        };
        let round = |goodput: &f64| Round { values: values(*goodput), lag_millis, unsent: 0 };
        let rounds = goodputs.iter().map(round).collect();
        let columns = vec![Column { contender: Contender::Tidegate, rounds }];
        Outcome { case, capacities: vec![vec![471.2]], columns }
    }

    #[test]
    fn a_row_has_its_goal_and_the_median_of_the_rounds() {
        let table = outcome(&[0.99, 0.5, 1.0], 0.1).to_string();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["goodput", "÷", "possible", "≥", "0.98", "0.990"]);
        assert!(
            table.starts_with("1.5× overload") && table.lines().next().unwrap().ends_with("471/s"),
            "{table}"
        );
    }

    #[test]
    fn a_miss_is_marked_named_and_explained() {
        let outcome = outcome(&[0.97], 0.1);
        assert!(outcome.to_string().contains("0.970✗"), "{outcome}");
        let miss = Miss {
            what: "overload-1.5: goodput ÷ possible".to_owned(),
            goal: "≥ 0.98".to_owned(),
            was: "0.970".to_owned(),
        };
        assert_eq!(outcome.misses(), [miss]);
        assert_eq!(legend(&[outcome]).len(), 1);
    }

    #[test]
    fn a_late_generator_is_marked_and_explained() {
        let outcome = outcome(&[0.99], 7.0);
        assert!(outcome.to_string().contains("0.990?"), "{outcome}");
        assert!(outcome.misses().is_empty());
        assert!(legend(&[outcome])[0].contains("up to 7 ms late"));
    }

    #[test]
    fn the_columns_stand_below_their_headings() {
        let heading = heading(&[Contender::Tidegate]);
        let line = outcome(&[0.99], 0.1).to_string();
        let end = |text: &str| text.trim_end().chars().count();
        assert_eq!(end(heading.lines().next().unwrap()), end(line.lines().nth(1).unwrap()));
    }
}
