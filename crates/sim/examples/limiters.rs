//! Plays the scenarios of `scenarios/limiter/` and prints what each limiter makes of them: the one command behind every
//! table of limiters.
//!
//! ```sh
//! cargo run --release -p tidegate-sim --example limiters -- [--runs N] [--seed N] [--parts] [--limiter NAME] [--only NAME…]
//! ```
//!
//! With `--parts` it compares Ebb with itself, each time without one of its parts; with `--limiter` it plays one only.
//!
//! It compares and judges nothing: what has to hold is tested elsewhere.

use std::cmp::Ordering;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_engine::{EbbPart, LimitPolicy};
use tidegate_sim::{Control, play_all};
use tidegate_workload::{Change, NamedPolicy, Report, Scenario};

/// The policy whose queue stands before the limit that is best.
const QUEUE_OF: &str = "ebb";
/// A limiter is good in a scenario from this ratio on.
const GOOD: f64 = 0.97;
/// It has recovered when so much of what comes is useful again.
const RECOVERED: f64 = 0.95;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read(std::env::args().skip(1))?;
    let mut columns: Vec<Column> = Vec::new();
    for file in files()? {
        let scenario = Scenario::parse(&std::fs::read_to_string(&file)?, &file)?;
        let name = &scenario.name;
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| name.contains(only.as_str())) {
            continue;
        }
        let row = Row::play(&scenario, &arguments)?;
        if columns.is_empty() {
            columns = row.cells.iter().map(|cell| Column::new(&cell.policy)).collect();
            row.print_head();
        }
        row.print();
        for (column, cell) in columns.iter_mut().zip(&row.cells) {
            column.add(name, cell);
        }
    }
    print_foot(&columns);
    Ok(())
}

struct Arguments {
    runs: u32,
    seed: Option<u64>,
    parts: bool,
    limiter: Option<String>,
    only: Vec<String>,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self { runs: 4, seed: None, parts: false, limiter: None, only: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--runs" => arguments.runs = words.next().ok_or("--runs needs a number")?.parse()?,
                "--seed" => arguments.seed = Some(words.next().ok_or("--seed needs a number")?.parse()?),
                "--parts" => arguments.parts = true,
                "--limiter" => arguments.limiter = Some(words.next().ok_or("--limiter needs a name")?),
                "--only" => arguments.only.extend(words.by_ref()),
                _ => {
                    return Err(
                        format!("`{word}` is none of --runs, --seed, --parts, --limiter and --only").into()
                    );
                }
            }
        }
        arguments.runs = arguments.runs.max(1);
        Ok(arguments)
    }
}

/// The scenarios, in the order of their names, of which 2 comes before 10.
fn files() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/limiter");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort_by(|one, other| by_number(one, other));
    Ok(files)
}

fn by_number(one: &Path, other: &Path) -> Ordering {
    let key = |path: &Path| {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let rest = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number: u32 = name[..name.len() - rest.len()].parse().unwrap_or(u32::MAX);
        (number, rest.to_owned())
    };
    key(one).cmp(&key(other))
}

/// One scenario.
struct Row {
    name: String,
    /// Useful answers of the best static limit, in percent of what was offered.
    best_percent: f64,
    best_recovery: Recovery,
    cells: Vec<Cell>,
}

/// One limiter in it.
struct Cell {
    policy: String,
    /// Goodput by that of the best static limit, seed by seed.
    ratios: Vec<f64>,
    recovery: Recovery,
}

/// How long after the end of a disturbance goodput is back, seed by seed, in seconds; infinite where it never is. Empty
/// without a disturbance.
struct Recovery(Vec<f64>);

impl Row {
    fn play(scenario: &Scenario, arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let queue = scenario.policies.iter().find(|policy| policy.name == QUEUE_OF);
        let queue = queue.ok_or_else(|| format!("{}: no policy `{QUEUE_OF}`", scenario.name))?;
        let mut controls = vec![Control::BestStaticBehind(Box::new(queue.clone()))];
        if arguments.parts {
            controls.push(Control::Policy(Box::new(queue.clone())));
            controls.extend(EbbPart::ALL.iter().map(|part| without(queue, *part)));
        } else {
            controls.extend(
                Control::all(scenario)
                    .into_iter()
                    .filter(|control| matches!(control, Control::Policy(_) | Control::Model(..)))
                    .filter(|control| arguments.limiter.as_ref().is_none_or(|name| control.name() == name)),
            );
        }
        if controls.len() == 1 {
            return Err("there is no such limiter".into());
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut played: Vec<Vec<Report>> = controls.iter().map(|_| Vec::new()).collect();
        for run in 0..u64::from(arguments.runs) {
            let seed = arguments.seed.unwrap_or(scenario.seed).wrapping_add(run);
            let scenario = Scenario { seed, runs: 1, ..scenario.clone() };
            for (list, report) in played.iter_mut().zip(play_all(&scenario, &controls, threads, &|_, _| {})?)
            {
                list.push(report);
            }
        }
        let end = disturbance_end(scenario);
        let best = played.remove(0);
        let cell = |reports: &Vec<Report>| Cell {
            policy: reports[0].policy.clone(),
            ratios: reports.iter().zip(&best).map(|(report, best)| ratio(report, best)).collect(),
            recovery: Recovery::of(reports, end),
        };
        Ok(Self {
            name: scenario.name.clone(),
            best_percent: 100.0 * mean(best.iter().map(|report| report.all.goodput_share())),
            best_recovery: Recovery::of(&best, end),
            cells: played.iter().map(cell).collect(),
        })
    }

    fn print_head(&self) {
        print!("{:28} {:>18}", "scenario", "best static good %");
        for cell in &self.cells {
            print!(" {:>23}", cell.policy);
        }
        println!(
            "\n{:28} {:>18}{}",
            "",
            "(back after s)",
            " mean/worst   (back s)  ".repeat(self.cells.len())
        );
    }

    fn print(&self) {
        print!("{:28} {:>10.1} {:7}", self.name, self.best_percent, self.best_recovery.mean());
        for cell in &self.cells {
            let worst = cell.ratios.iter().copied().fold(f64::INFINITY, f64::min);
            print!(" {:6.3}/{worst:5.3} {:10}", mean(cell.ratios.iter().copied()), cell.recovery.shown());
        }
        println!();
    }
}

/// This policy with an Ebb that does without a part.
fn without(policy: &NamedPolicy, part: EbbPart) -> Control {
    let mut policy = policy.clone();
    policy.name = format!("no {part:?}");
    for upstream in &mut policy.policy.upstreams {
        if let LimitPolicy::Ebb(ebb) = &mut upstream.limit {
            ebb.without = Some(part);
        }
    }
    Control::Policy(Box::new(policy))
}

fn ratio(report: &Report, best: &Report) -> f64 {
    report.all.goodput as f64 / best.all.goodput.max(1) as f64
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0_u32), |(sum, count), number| (sum + number, count + 1));
    sum / f64::from(count.max(1))
}

/// When the only disturbance of a scenario is over: something about its service changes and changes back, once.
fn disturbance_end(scenario: &Scenario) -> Option<Duration> {
    let changes = &scenario.services[0].changes;
    let workers = match scenario.services[0].capacity {
        tidegate_workload::Capacity::Workers(workers) => workers,
        _ => 0,
    };
    let ends = changes.iter().filter_map(|(at, change)| match *change {
        Change::Workers(number) => (number == workers).then_some(*at),
        Change::Slowdown(times) => (times == 1.0).then_some(*at),
        Change::Pause(pause) => Some(*at + pause),
        Change::Fails(_) => None,
    });
    let mut ends: Vec<Duration> = ends.collect();
    ends.dedup();
    match ends[..] {
        [end] => Some(end),
        _ => None,
    }
}

impl Recovery {
    fn of(reports: &[Report], end: Option<Duration>) -> Self {
        let Some(end) = end else { return Self(Vec::new()) };
        Self(reports.iter().map(|report| recovery(report, end)).collect())
    }

    fn mean(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("({:.1})", mean(self.0.iter().copied())) }
    }

    fn shown(&self) -> String {
        let worst = self.0.iter().copied().fold(0.0, f64::max);
        if self.0.is_empty() {
            String::new()
        } else {
            format!("({:.1}/{worst:.1})", mean(self.0.iter().copied()))
        }
    }
}

/// From the end of the disturbance to the first stretch of time in which nearly all that comes is served in time.
fn recovery(report: &Report, end: Duration) -> f64 {
    let every = report.series.every;
    let after =
        report.series.buckets.iter().enumerate().map(|(index, bucket)| (every * index as u32, bucket));
    let back = after
        .filter(|(from, _)| *from + every > end)
        .find(|(_, bucket)| bucket.offered > 0 && bucket.goodput as f64 >= RECOVERED * bucket.offered as f64);
    back.map_or(f64::INFINITY, |(from, _)| from.saturating_sub(end).as_secs_f64())
}

/// A limiter over all scenarios.
struct Column {
    policy: String,
    rows: u32,
    /// The sum of the means, of which none counts for more than one.
    sum: f64,
    good: u32,
    worst: (f64, String),
}

impl Column {
    fn new(policy: &str) -> Self {
        Self { policy: policy.to_owned(), rows: 0, sum: 0.0, good: 0, worst: (f64::INFINITY, String::new()) }
    }

    fn add(&mut self, scenario: &str, cell: &Cell) {
        let mean = mean(cell.ratios.iter().copied());
        self.rows += 1;
        self.sum += mean.min(1.0);
        self.good += u32::from(mean >= GOOD);
        if mean < self.worst.0 {
            self.worst = (mean, scenario.to_owned());
        }
    }
}

fn print_foot(columns: &[Column]) {
    println!("\n{:16} {:>6} {:>12}  worst row", "limiter", "mean", format!("rows >= {GOOD}"));
    for Column { policy, rows, sum, good, worst: (worst, scenario) } in columns {
        let mean = sum / f64::from((*rows).max(1));
        println!("{policy:16} {mean:6.4} {:>12}  {worst:.3} {scenario}", format!("{good} of {rows}"));
    }
}
