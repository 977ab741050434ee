//! `tidegate simulate`: a scenario against policies, in virtual time.
//!
//! It reads files, has the simulator play, and shows what came of it. It decides nothing about a request.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use tidegate_policy::Parsed;
use tidegate_sim::{Control, Progress, TooMany, play_all};
use tidegate_workload::{
    Expectation, Found, MadeBy, Missed, NamedPolicy, Part, Report, Scenario, Window, judge, page, table,
};

use crate::args::SimulateArgs;
use crate::exit::Failure;
use crate::{check, clock};

/// The parser refuses what is longer; one byte more shows it that there is more.
const READ_MAX: u64 = 1024 * 1024 + 1;
/// Whoever waits for longer than this wants to see how far it has come.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let scenario = scenario(args)?;
    let controls = controls(args, &scenario)?;
    let runs = controls.len() * scenario.runs as usize;
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, |threads| threads as usize).min(runs).max(1);

    let begun = clock::now();
    let reports = with_progress(runs, |progress| play_all(&scenario, &controls, threads, progress));
    let reports = reports.map_err(Failure::runtime)?;
    let effort = Effort::new(&reports, clock::now().duration_since(begun), threads);

    let missed = missed(args, &scenario, &reports);
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{:#}", to_json(&scenario, &reports, &missed, &effort))?;
    } else {
        write!(out, "{}", table(&scenario, &reports))?;
        writeln!(out, "\n{effort}")?;
    }
    if let Some(path) = &args.html {
        let made_by = MadeBy { command: &command(args), version: env!("CARGO_PKG_VERSION") };
        std::fs::write(path, page(&scenario, &reports, &made_by))
            .map_err(|error| Failure::runtime(format_args!("cannot write {}: {error}", path.display())))?;
        let _ = writeln!(io::stderr(), "tidegate: the report is in {}", path.display());
    }
    match missed.len() {
        0 => Ok(()),
        1 => Err(Failure::missed("an expectation is not met")),
        count => Err(Failure::missed(format_args!("{count} expectations are not met"))),
    }
}

/// Reads the scenario, with what was typed in the place of what is written.
fn scenario(args: &SimulateArgs) -> Result<Scenario, Failure> {
    let path = &args.scenario;
    let unreadable =
        |error: io::Error| Failure::policy(format_args!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(READ_MAX).read_to_string(&mut text).map_err(unreadable)?;
    let mut scenario = Scenario::parse(&text, path).map_err(Failure::policy)?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.runs = args.runs.unwrap_or(scenario.runs);
    Ok(scenario)
}

/// What it is played against: all that the scenario compares and the policies that were typed, or those of them that
/// were asked for.
fn controls(args: &SimulateArgs, scenario: &Scenario) -> Result<Vec<Control>, Failure> {
    let mut controls = Control::all(scenario);
    for path in &args.policy {
        let Parsed { policy, lints, .. } = check::load(path)?;
        check::warn(&lints);
        let name = name(path, &controls)?;
        warn_if_it_protects_nothing(&name, &policy, scenario);
        controls.push(Control::Policy(Box::new(NamedPolicy { name, policy, model: None })));
    }
    let names = controls.iter().map(|control| format!("`{}`", control.name())).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = args.only.iter().find(|only| !controls.iter().any(|known| known.name() == **only))
    {
        return Err(Failure::usage(format_args!(
            "there is no policy named `{unknown}` to play; there is {names}"
        )));
    }
    if !args.only.is_empty() {
        controls.retain(|control| args.only.iter().any(|only| only == control.name()));
    }
    Ok(controls)
}

/// A policy is named after its file, by its whole path if there is another of that name.
fn name(path: &Path, others: &[Control]) -> Result<String, Failure> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let names = [stem.unwrap_or_default(), path.display().to_string()];
    let free = |name: &String| !others.iter().any(|other| other.name() == name);
    names
        .into_iter()
        .find(free)
        .ok_or_else(|| Failure::usage(format_args!("{} is given twice", path.display())))
}

/// Only where there are several services does the name of an upstream matter.
fn warn_if_it_protects_nothing(name: &str, policy: &tidegate_policy::Policy, scenario: &Scenario) {
    let services = || scenario.services.iter().map(|service| service.name.as_str());
    let known = policy.upstreams.iter().any(|upstream| services().any(|service| service == upstream.name));
    if !known && services().count() > 1 {
        let services = services().collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            io::stderr(),
            "warning: the policy {name} protects nothing here: none of its upstreams has the name of a service ({services})"
        );
    }
}

/// Plays, and shows how far it has come if it takes long and somebody sits at a terminal.
fn with_progress(
    runs: usize,
    play: impl FnOnce(Progress<'_>) -> Result<Vec<Report>, TooMany>,
) -> Result<Vec<Report>, TooMany> {
    // It draws nothing until it is told where, nor where there is no terminal.
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::hidden());
    let (playing, ended) = sync_channel::<()>(0);
    let watched = bar.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) && io::stderr().is_terminal() {
                if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {elapsed}") {
                    watched.set_style(style);
                }
                watched.set_draw_target(ProgressDrawTarget::stderr());
                watched.enable_steady_tick(Duration::from_millis(200));
            }
            let _ = ended.recv();
            watched.finish_and_clear();
        });
        let reports = play(&|played, _| bar.set_position(played as u64));
        drop(playing);
        reports
    })
}

/// What was expected and not found. If only some of the policies were asked for, nothing is expected of the others.
fn missed(args: &SimulateArgs, scenario: &Scenario, reports: &[Report]) -> Vec<Missed> {
    let verdicts = judge(scenario, reports).into_iter();
    verdicts
        .filter_map(|verdict| match verdict.found {
            Found::Missed(missed) => Some(missed),
            Found::NotPlayed if args.only.is_empty() => {
                Some(Missed { expectation: verdict.expectation.clone(), found: None })
            }
            Found::NotPlayed | Found::Met(_) => None,
        })
        .collect()
}

/// What it took.
struct Effort {
    events: u64,
    seconds: f64,
    threads: usize,
}

impl Effort {
    fn new(reports: &[Report], took: Duration, threads: usize) -> Self {
        let events = reports.iter().map(|report| report.events).sum();
        // A clock that does not tell two moments apart must not give an endless speed.
        Self { events, seconds: took.as_secs_f64().max(1e-6), threads }
    }

    fn per_second(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

impl std::fmt::Display for Effort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { events, seconds, threads } = self;
        let rough = |number: f64| match number {
            number if number < 1e4 => format!("{number:.0}"),
            number if number < 1e6 => format!("{:.0} thousand", number / 1e3),
            number => format!("{:.1} million", number / 1e6),
        };
        write!(
            f,
            "{} events in {seconds:.2} s: {} a second on {threads} thread{}.",
            rough(*events as f64),
            rough(self.per_second()),
            if *threads == 1 { "" } else { "s" },
        )
    }
}

fn to_json(scenario: &Scenario, reports: &[Report], missed: &[Missed], effort: &Effort) -> Value {
    let missed = missed.iter().map(|missed| {
        let Expectation { policy, of, metric, least, most } = &missed.expectation;
        let of = match of {
            Part::All => Value::Null,
            Part::Class(class) => json!({ "class": class }),
            Part::Tenant(tenant) => json!({ "tenant": tenant }),
            Part::Window(Window { from, until }) => {
                // Until the end, whenever that is.
                let until = (*until < scenario.duration).then_some(until.as_secs_f64());
                json!({ "from_s": from.as_secs_f64(), "until_s": until })
            }
        };
        json!({
            "policy": policy,
            "metric": metric.to_string(),
            "of": of,
            "least": least,
            "most": most,
            "found": missed.found,
            "message": missed.to_string(),
        })
    });
    json!({
        "scenario": scenario.name,
        "seed": scenario.seed,
        "runs": scenario.runs,
        "reports": reports.iter().map(Report::to_json).collect::<Vec<_>>(),
        "missed": missed.collect::<Vec<_>>(),
        "events": effort.events,
        "seconds": effort.seconds,
        "threads": effort.threads,
        "events_per_second": effort.per_second(),
    })
}

/// What to type to have the same again.
fn command(args: &SimulateArgs) -> String {
    let quoted = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.to_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    let mut words = vec!["tidegate simulate".to_owned(), quoted(&args.scenario.display().to_string())];
    for path in &args.policy {
        words.push(format!("--policy {}", quoted(&path.display().to_string())));
    }
    for only in &args.only {
        words.push(format!("--only {}", quoted(only)));
    }
    words.extend(args.seed.map(|seed| format!("--seed {seed}")));
    words.extend(args.runs.map(|runs| format!("--runs {runs}")));
    words.join(" ")
}
