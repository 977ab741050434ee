//! `cargo xtask peers`: the same overload against tidegate and others, on real sockets, side by side in one table.
//!
//! Everybody meets the same traffic from the same seed, on the same machine, in the same minutes, before the same
//! service, whose capacity is measured in between. All of it stays on loopback.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Subcommand;

mod capacity;
mod case;
mod configs;
mod contender;
mod envoy;
mod fairness;
mod figure;
mod load;
mod measure;
mod overload;
mod plan;
mod play;
mod priorities;
mod report;

use self::case::{Case, Figure};
use self::contender::Contender;
use self::figure::Run;
use self::load::{Ending, Sample};
use self::play::Entrant;
use self::report::{Column, Outcome, Round};
use crate::bench::lab::{self, Lab};
use crate::bench::tidegate;
use crate::packages;

/// What `cargo xtask peers` takes.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A service that is asked for more than it can do: overload, a drop of its capacity, a stall, and what must not be
    /// taken for it.
    Overload(Options),
    /// An important route beside an unimportant one that wants everything.
    Priorities(Options),
    /// Three modest tenants beside one that wants everything.
    Fairness(Options),
}

#[derive(clap::Args)]
struct Options {
    /// Which cases to play, by name. All of them when left out.
    #[arg(long, value_delimiter = ',', value_name = "CASE,...")]
    only: Vec<String>,
    /// Whom to compare. All, as far as they can be had, when left out.
    #[arg(long, value_delimiter = ',', value_name = "PEER,...")]
    peers: Vec<Contender>,
    /// How often everything is played; the medians are shown.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Half as long: for a first look.
    #[arg(long)]
    quick: bool,
    /// Fail when tidegate misses one of its goals.
    #[arg(long)]
    check: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Play what was asked for, and print what came of it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (name, options, cases) = match &args.what {
        What::Overload(options) => ("overload", options, overload::cases(options.quick)),
        What::Priorities(options) => ("priorities", options, priorities::cases(options.quick)),
        What::Fairness(options) => ("fairness", options, fairness::cases(options.quick)),
    };
    let cases = chosen(&options.only, cases)?;
    for program in packages::UTIL_LINUX {
        packages::ensure(program)?;
    }
    let mut left_out = Vec::new();
    let binary = tidegate::build()?;
    let entrants = entrants(options, &binary, &mut left_out)?;
    let lab = Lab::open()?;
    lab::stay_on(lab.load_core)?;
    let mut outcomes: Vec<_> = cases.into_iter().map(|case| empty(case, &entrants)).collect();
    for round in 0..options.rounds {
        for outcome in &mut outcomes {
            play_round(options, &lab, &binary, &entrants, round, outcome, &mut left_out)?;
        }
    }
    print(name, options, &entrants, &outcomes, &left_out);
    let misses: Vec<_> = outcomes.iter().flat_map(Outcome::misses).collect();
    if options.check && !misses.is_empty() {
        let miss = |miss: &report::Miss| format!("{} was {}, to be {}", miss.what, miss.was, miss.goal);
        bail!("tidegate misses {}", misses.iter().map(miss).collect::<Vec<_>>().join("; "));
    }
    ensure!(left_out.is_empty(), "not everything could run: {}", left_out.join("; "));
    Ok(())
}

fn chosen(only: &[String], cases: Vec<Case>) -> Result<Vec<Case>> {
    for name in only {
        if !cases.iter().any(|case| case.name == name) {
            let names: Vec<_> = cases.iter().map(|case| case.name).collect();
            bail!("there is no case {name:?}; there is {}", names.join(", "));
        }
    }
    Ok(cases
        .into_iter()
        .filter(|case| only.is_empty() || only.iter().any(|name| name == case.name))
        .collect())
}

fn entrants(options: &Options, binary: &Path, left_out: &mut Vec<String>) -> Result<Vec<Entrant>> {
    let mut found = Vec::new();
    for contender in Contender::ALL {
        if !options.peers.is_empty() && !options.peers.contains(&contender) {
            continue;
        }
        match contender.program(binary) {
            Ok(program) => found.push(Entrant { contender, program }),
            Err(error) => leave_out(contender, "", &error, left_out),
        }
    }
    ensure!(!found.is_empty(), "nobody is left to compare: {}", left_out.join("; "));
    Ok(found)
}

/// What could not run is told, and the others go on.
fn leave_out(contender: Contender, case: &str, error: &anyhow::Error, left_out: &mut Vec<String>) {
    let [who, how] = contender.heading();
    let why = format!("{who} {how} {case} ({error:#})");
    eprintln!("    left out: {why}");
    left_out.push(why);
}

fn empty(case: Case, entrants: &[Entrant]) -> Outcome {
    let column = |entrant: &Entrant| Column { contender: entrant.contender, rounds: Vec::new() };
    Outcome { case, capacities: Vec::new(), columns: entrants.iter().map(column).collect() }
}

fn play_round(
    options: &Options,
    lab: &Lab,
    binary: &Path,
    entrants: &[Entrant],
    round: u32,
    outcome: &mut Outcome,
    left_out: &mut Vec<String>,
) -> Result<()> {
    let Outcome { case, capacities, columns } = outcome;
    let length = Duration::from_secs(if options.quick { 2 } else { 4 });
    let measured = play::capacities(lab, binary, case, length)
        .with_context(|| format!("cannot measure what the service can do in {}", case.name))?;
    let shown: Vec<_> = measured.iter().map(|rate| format!("{rate:.0}/s")).collect();
    let shown = if shown.is_empty() { String::new() } else { format!("; capacity {}", shown.join(" → ")) };
    eprintln!("    round {} of {}: {}{shown}", round + 1, options.rounds, case.title);
    // Whoever is first meets the machine as it was left, so the order rotates.
    for turn in 0..entrants.len() {
        let index = (turn + round as usize) % entrants.len();
        let (entrant, column) = (&entrants[index], &mut columns[index]);
        let ordinary = measured.first().copied().unwrap_or_else(|| case.nominal_capacity(0));
        match play::play(lab, binary, entrant, case, ordinary, u64::from(round)) {
            Ok(samples) => {
                let run = Run { case, capacities: &measured, samples: &samples };
                let round = summed_up(&run);
                eprintln!("      {:<20} {}", entrant.contender.heading().join(" "), in_short(case, &round));
                column.rounds.push(round);
            }
            Err(error) => leave_out(entrant.contender, case.name, &error, left_out),
        }
    }
    capacities.push(measured);
    Ok(())
}

fn summed_up(run: &Run<'_>) -> Round {
    let values = run.case.figures.iter().map(|asked| run.value(asked.figure)).collect();
    let all = || run.samples.iter().flatten();
    let mut lags: Vec<_> = all().map(|sample: &Sample| sample.lag).collect();
    lags.sort_unstable();
    let lag = measure::percentile(&lags, 0.99).unwrap_or_default();
    let unsent = all().filter(|sample| sample.ending == Ending::Unsent).count();
    Round { values, lag_millis: lag.as_secs_f64() * 1e3, unsent }
}

fn in_short(case: &Case, round: &Round) -> String {
    let value = |(asked, value): (&case::Asked, &f64)| {
        format!("{} {}", asked.figure.title(case), Figure::shown(asked.figure, *value))
    };
    let values: Vec<_> = case.figures.iter().zip(&round.values).map(value).collect();
    format!("{}; lag {:.2} ms", values.join(", "), round.lag_millis)
}

fn print(name: &str, options: &Options, entrants: &[Entrant], outcomes: &[Outcome], left_out: &[String]) {
    let versions: Vec<_> =
        entrants.iter().filter_map(|entrant| entrant.contender.version(&entrant.program)).collect();
    if options.json {
        let cases: Vec<_> = outcomes.iter().map(Outcome::to_json).collect();
        println!("{:#}", serde_json::json!({ "cases": cases, "versions": versions, "left_out": left_out }));
        return;
    }
    let contenders: Vec<_> = entrants.iter().map(|entrant| entrant.contender).collect();
    print!("\n{}", report::heading(&contenders));
    for outcome in outcomes {
        print!("\n{outcome}");
    }
    println!();
    for line in report::legend(outcomes) {
        println!("{line}");
    }
    let quick = if options.quick { " --quick" } else { "" };
    println!("measured by: cargo xtask peers {name}{quick} --rounds {}", options.rounds);
    println!("versions: {}", versions.join("; "));
    for why in left_out {
        println!("left out: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(quick: bool) -> Vec<Case> {
        [overload::cases(quick), priorities::cases(quick), fairness::cases(quick)].concat()
    }

    #[test]
    fn every_case_says_what_happens_in_each_of_its_phases() {
        for case in all(false).iter().chain(&all(true)) {
            let phases = case.phases.len();
            assert!(phases > 0 && !case.kinds.is_empty() && !case.figures.is_empty(), "{}", case.name);
            assert!(case.kinds.iter().all(|kind| kind.rates.len() == phases), "{}", case.name);
            assert!(case.figures.iter().any(|asked| asked.goal.is_some()), "{} has no goal", case.name);
        }
    }

    /// More clients than connections would be a test of the generator.
    #[test]
    fn no_case_needs_more_connections_than_there_are() {
        for case in all(false) {
            let most = (0..case.phases.len()).map(|phase| case.offered(phase)).fold(0.0, f64::max);
            let tries = f64::from(1 + case.patience.repetitions);
            let waiting = most * case.patience.timeout.as_secs_f64() * tries;
            assert!(waiting < load::CONNECTIONS_MAX as f64, "{}: {waiting}", case.name);
        }
    }

    #[test]
    fn cases_are_chosen_by_name_and_a_wrong_name_is_told() {
        let names = |only: &[&str]| {
            let only: Vec<_> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(&only, overload::cases(false))
                .map(|cases| cases.iter().map(|case| case.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["stall", "drop"]).unwrap(), ["drop", "stall"]);
        assert_eq!(names(&[]).unwrap().len(), overload::cases(false).len());
        assert!(names(&["stahl"]).unwrap_err().to_string().contains("overload-1.5, overload-5"));
    }
}
