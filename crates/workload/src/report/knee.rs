//! Goodput and latency against the load that was offered: what a search for the knee tried, as a table for a terminal and
//! as a page.

use std::fmt::Write as _;
use std::time::Duration;

use super::axis::Axis;
use super::chart::{Line, LineChart};
use super::html::{self, MadeBy};
use super::{figure, words};

/// How long the longest bar of a terminal is.
const BAR_WIDTH: usize = 24;

/// What came of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// What was offered each second.
    pub rate: f64,
    /// Useful answers each second.
    pub goodput: f64,
    /// Useful answers of what was offered.
    pub share: f64,
    /// The median of useful answers.
    pub p50: Duration,
    /// Their 99th percentile.
    pub p99: Duration,
    /// How late the generator was for 99 in a hundred.
    pub lag_p99: Duration,
    /// Whether the goal was met.
    pub met: bool,
    /// Whether the generator was the limit, so that it says nothing about the target.
    pub limited: bool,
}

/// What was looked for, and what was tried, in the order of rates.
#[derive(Clone, Copy, Debug)]
pub struct KneeReport<'a> {
    /// Whom it is about.
    pub target: &'a str,
    /// What had to hold.
    pub goal: &'a str,
    /// What was found, in words.
    pub found: &'a str,
    /// The highest rate at which the goal was met.
    pub knee: Option<f64>,
    /// What was tried.
    pub probes: &'a [Probe],
}

impl KneeReport<'_> {
    /// For a reader at a terminal: each rate with its goodput and its 99th percentile as bars.
    pub fn table(&self) -> String {
        let mut out = format!("{}\n\nGoal: {}\n\n", self.target, self.goal);
        let _ = writeln!(
            out,
            "{:>10}  {:>10}  {:>6}  {:>8}  {:>8}  {:>8}  {:13}  {:BAR_WIDTH$}  p99",
            "offered/s", "goodput/s", "share", "p50", "p99", "lag p99", "goal", "goodput/s"
        );
        let most = self.probes.iter().map(|probe| probe.rate).fold(1.0, f64::max);
        let micros = |probe: &Probe| probe.p99.as_micros().max(1) as f64;
        let longest = self.probes.iter().map(micros).fold(1.0, f64::max);
        for probe in self.probes {
            let time =
                |time: Duration| if probe.goodput > 0.0 { words::time(time) } else { words::NONE.to_owned() };
            // Times differ by orders of magnitude: a bar is as long as their logarithms.
            let tall = if probe.goodput > 0.0 { micros(probe).ln() / longest.ln().max(1.0) } else { 0.0 };
            let goal = match probe {
                Probe { limited: true, .. } => "no: generator",
                Probe { met: true, .. } => "met",
                _ => "missed",
            };
            let row = format!(
                "{:>10}  {:>10}  {:>6}  {:>8}  {:>8}  {:>8}  {goal:13}  {:BAR_WIDTH$}  {}",
                words::count(probe.rate),
                words::count(probe.goodput),
                words::percent(probe.share),
                time(probe.p50),
                time(probe.p99),
                words::time(probe.lag_p99),
                bar(probe.goodput / most),
                bar(tall),
            );
            let _ = writeln!(out, "{}", row.trim_end());
        }
        let _ = writeln!(out, "\n{}", self.found);
        out
    }

    /// The same as a page, with charts.
    pub fn page(&self, made_by: &MadeBy<'_>) -> String {
        html::whole(self.target, "tidegate load: the knee", |out| {
            let [goal, found] = [self.goal, self.found].map(html::escape);
            let _ = writeln!(
                out,
                "<p class=\"story\">{found}</p>\n<p class=\"facts\">Goal: {goal}</p>\n</header>"
            );
            html::section("Against the load", out, |out| html::figures("whole", self.charts(), out));
            html::section("What was tried", out, |out| {
                let _ = writeln!(out, "<pre>{}</pre>", html::escape(self.table().trim()));
            });
            let (version, command) = (html::escape(made_by.version), html::escape(made_by.command));
            let _ = writeln!(out, "<footer>\n<p>tidegate {version}</p>\n<pre>{command}</pre>\n</footer>");
        })
    }

    fn charts(&self) -> Vec<figure::Figure> {
        let answered: Vec<&Probe> = self.probes.iter().filter(|probe| probe.goodput > 0.0).collect();
        let highest = self.probes.iter().map(|probe| probe.rate).fold(0.0, f64::max);
        let marks: Vec<(f64, String)> =
            self.knee.into_iter().map(|knee| (knee, "the knee".to_owned())).collect();
        let line = |name: &str, class: &str, of: &dyn Fn(&Probe) -> f64| Line {
            name: name.to_owned(),
            class: class.to_owned(),
            filled: false,
            points: answered.iter().map(|probe| (probe.rate, Some(of(probe)))).collect(),
        };
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let chart = |title: &str, note: &str, y: Axis, lines: Vec<Line>| {
            let svg = LineChart {
                title,
                description: format!("{note} {}", self.found),
                size: figure::WHOLE,
                x: Axis::counts(highest, 8, figure::WHOLE_X),
                y,
                lines,
                shaded: None,
                marks: &marks,
            };
            figure::Figure { title: title.to_owned(), note: note.to_owned(), svg: svg.svg() }
        };
        let times = || answered.iter().flat_map(|probe| [probe.p50, probe.p99]);
        let latencies = Axis::latencies(
            times().min().unwrap_or_default(),
            times().max().unwrap_or(Duration::from_millis(1)),
            figure::WHOLE_Y,
        );
        vec![
            chart(
                "Goodput",
                "Useful answers each second; across, requests offered each second.",
                Axis::counts(highest, 5, figure::WHOLE_Y),
                vec![
                    line("offered", "offered", &|probe| probe.rate),
                    line("goodput", "goodput", &|probe| probe.goodput),
                ],
            ),
            chart(
                "Time to a useful answer",
                "On a logarithmic scale; across, requests offered each second.",
                latencies,
                vec![
                    line("p50", "p0", &|probe| micros(probe.p50)),
                    line("p99", "p1", &|probe| micros(probe.p99)),
                ],
            ),
        ]
    }
}

fn bar(share: f64) -> String {
    let length = (share.clamp(0.0, 1.0) * BAR_WIDTH as f64).round() as usize;
    // Only nothing is shown as nothing.
    "█".repeat(if share > 0.0 { length.max(1) } else { 0 })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn report(probes: &[Probe]) -> KneeReport<'_> {
        KneeReport {
            target: "127.0.0.1:8102",
            goal: "p99<200ms, goodput>99%",
            found: "The knee is between 200 and 400 a second.",
            knee: Some(200.0),
            probes,
        }
    }

    fn probe(rate: f64, goodput: f64, p99: u64) -> Probe {
        let (p50, p99) = (Duration::from_millis(p99 / 2), Duration::from_millis(p99));
        let lag_p99 = Duration::from_micros(200);
        let (share, met) = (goodput / rate, goodput == rate);
        Probe { rate, goodput, share, p50, p99, lag_p99, met, limited: false }
    }

    #[test]
    fn what_was_tried_for_a_terminal_and_as_a_page() {
        let probes = [
            probe(100.0, 100.0, 20),
            probe(200.0, 200.0, 40),
            probe(400.0, 240.0, 990),
            probe(800.0, 0.0, 0),
        ];
        let report = report(&probes);
        expect![[r#"
            127.0.0.1:8102

            Goal: p99<200ms, goodput>99%

             offered/s   goodput/s   share       p50       p99   lag p99  goal           goodput/s                 p99
                   100         100    100%   10.0 ms   20.0 ms    200 µs  met            ███                       █████████████████
                   200         200    100%   20.0 ms   40.0 ms    200 µs  met            ██████                    ██████████████████
                   400         240   60.0%    495 ms    990 ms    200 µs  missed         ███████                   ████████████████████████
                   800           0      0%         –         –    200 µs  missed

            The knee is between 200 and 400 a second.
        "#]].assert_eq(&report.table());
        let page = report.page(&MadeBy { command: "tidegate load <x>", version: "0.0.0" });
        assert!(page.contains("the knee") && page.contains("tidegate load &lt;x&gt;"), "{page}");
        for loading in ["src=", "href=", "url(", "<script", "http:", "NaN", "inf\""] {
            assert!(!page.contains(loading), "{loading}");
        }
        assert_eq!(page.matches("role=\"img\"").count(), 2);
        let nothing = KneeReport { probes: &[], knee: None, ..report };
        assert!(!nothing.page(&MadeBy { command: "", version: "" }).contains("NaN"));
    }
}
