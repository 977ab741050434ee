//! The samples of the proxy benchmark as a table, or as JSON.
//!
//! A ratio is taken within each round, where both sides had the same minute, and the median of the rounds is shown.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::cpu::CpuTime;
use super::peers::{Peer, Task};
use super::wrk::CONNECTIONS;

/// What was measured of one gateway in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Answers.
    pub(crate) requests: u64,
    /// How long the load lasted.
    pub(crate) took: Duration,
    /// What the gateway used meanwhile.
    pub(crate) cpu: CpuTime,
}

/// One gateway, and its samples in the order of the rounds.
#[derive(Debug)]
pub(crate) struct Row {
    /// Which it is.
    pub(crate) peer: Peer,
    /// One a round.
    pub(crate) samples: Vec<Sample>,
}

/// One task: all gateways beside each other.
#[derive(Debug)]
pub(crate) struct Report {
    /// What they had to do.
    pub(crate) task: Task,
    /// How long each sample was to last.
    pub(crate) seconds: u32,
    /// How many samples each has.
    pub(crate) rounds: u32,
    /// The gateways.
    pub(crate) rows: Vec<Row>,
}

impl Task {
    /// What is counted.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Proxy => "proxied request",
            Self::Reject => "rejection",
        }
    }
}

impl Sample {
    /// Microseconds of `part` for each request.
    fn micros(&self, part: Duration) -> f64 {
        part.as_secs_f64() * 1e6 / self.requests as f64
    }

    fn cost(&self) -> f64 {
        self.micros(self.cpu.total())
    }
}

impl Row {
    fn median(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(value).collect())
    }

    fn least(&self) -> f64 {
        self.samples.iter().map(Sample::cost).fold(f64::INFINITY, f64::min)
    }

    fn per_second(&self) -> f64 {
        self.median(|sample| sample.requests as f64 / sample.took.as_secs_f64())
    }

    /// How much of its core it used.
    fn busy(&self) -> f64 {
        self.median(|sample| sample.cpu.total().as_secs_f64() / sample.took.as_secs_f64())
    }

    /// What it costs as a multiple of what `other` costs.
    fn ratio(&self, other: &Self) -> f64 {
        median(
            self.samples.iter().zip(&other.samples).map(|(own, other)| own.cost() / other.cost()).collect(),
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

impl Report {
    fn row(&self, peer: Peer) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }

    /// The same numbers for a program.
    pub(crate) fn to_json(&self) -> Value {
        let ratio = |row: &Row, peer| self.row(peer).map(|other| row.ratio(other));
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "gateway": row.peer.name(),
                    "cpu_micros_median": row.median(Sample::cost),
                    "cpu_micros_min": row.least(),
                    "cpu_micros_rounds": row.samples.iter().map(Sample::cost).collect::<Vec<_>>(),
                    "user_micros_median": row.median(|sample| sample.micros(sample.cpu.user)),
                    "system_micros_median": row.median(|sample| sample.micros(sample.cpu.system)),
                    "per_second_median": row.per_second(),
                    "core_busy_median": row.busy(),
                    "ratio_to_nginx": ratio(row, Peer::Nginx),
                    "ratio_to_haproxy": ratio(row, Peer::Haproxy),
                })
            })
            .collect();
        json!({ "per": self.task.title(), "seconds": self.seconds, "rounds": self.rounds, "gateways": rows })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, seconds, rounds, rows } = self;
        writeln!(
            f,
            "CPU time for each {}, in µs: {rounds} × {seconds} s, {CONNECTIONS} connections, one core each",
            task.title()
        )?;
        writeln!(
            f,
            "{:<10}{:>8}{:>8}{:>8}{:>8}{:>10}{:>7}{:>10}{:>12}",
            "", "median", "min", "user", "system", "per s", "busy", "to nginx", "to HAProxy"
        )?;
        for row in rows {
            let ratio = |peer| {
                self.row(peer).map_or_else(|| "-".to_owned(), |other| format!("{:.2}", row.ratio(other)))
            };
            writeln!(
                f,
                "{:<10}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>10.0}{:>6.0}%{:>10}{:>12}",
                row.peer.name(),
                row.median(Sample::cost),
                row.least(),
                row.median(|sample| sample.micros(sample.cpu.user)),
                row.median(|sample| sample.micros(sample.cpu.system)),
                row.per_second(),
                row.busy() * 100.0,
                ratio(Peer::Nginx),
                ratio(Peer::Haproxy),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway that uses `micros` for each of its requests in each round, half of them in the kernel.
    fn row(peer: Peer, micros: &[u64]) -> Row {
        let half = |micros| Duration::from_micros(micros * 1000 / 2);
        let sample = |micros| Sample {
            requests: 1000,
            took: Duration::from_secs(1),
            cpu: CpuTime { user: half(micros), system: half(micros) },
        };
        Row { peer, samples: micros.iter().copied().map(sample).collect() }
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), 3.0);
        assert!(median(vec![]).is_nan());
    }

    #[test]
    fn a_ratio_compares_within_the_round() {
        // Twice as slow in the last round, both of them: the ratio does not see it.
        let (own, other) = (row(Peer::Tidegate, &[10, 10, 20]), row(Peer::Nginx, &[20, 20, 40]));
        assert_eq!(own.ratio(&other), 0.5);
    }

    #[test]
    fn the_table_shows_cost_split_and_ratios() {
        let rows = vec![row(Peer::Tidegate, &[12, 10, 14]), row(Peer::Nginx, &[16, 16, 16])];
        let report = Report { task: Task::Proxy, seconds: 1, rounds: 3, rows };
        let table = report.to_string();
        let words: Vec<_> = table.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(words, ["tidegate", "12.00", "10.00", "6.00", "6.00", "1000", "1%", "0.75", "-"]);
        assert_eq!(report.to_json()["gateways"][0]["ratio_to_haproxy"], Value::Null);
    }
}
