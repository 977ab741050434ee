//! `cargo xtask test`: every check that a change has to pass, one after the other, with the reason for each.
//!
//! Running and reporting only; what each step does is in [`step`].

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum as _;

mod no_std;
mod step;

use step::{Outcome, Step};

use crate::clock;

/// What `cargo xtask test` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Without names every step is run, in the order above. The first failure ends the run."
)]
pub(crate) struct Args {
    /// The steps to run; all of them when left out.
    #[arg(value_name = "STEP")]
    steps: Vec<Step>,
    /// Run the remaining steps after a failure too, and list all failures at the end.
    #[arg(long)]
    keep_going: bool,
}

/// Run the chosen steps, then print what came of each.
pub(crate) fn run(args: &Args) -> Result<()> {
    let steps = chosen(&args.steps);
    let mut results = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let result = run_one(*step, index + 1, steps.len());
        let failed = result.verdict.is_failure();
        results.push(result);
        if failed && !args.keep_going {
            break;
        }
    }
    summarize(&results, steps.len())
}

/// The steps asked for, each once; all of them when none was named.
fn chosen(named: &[Step]) -> Vec<Step> {
    let asked = if named.is_empty() { Step::value_variants() } else { named };
    let mut steps = Vec::new();
    for step in asked {
        if !steps.contains(step) {
            steps.push(*step);
        }
    }
    steps
}

/// What came of one step, and how long it took.
struct StepResult {
    step: Step,
    verdict: Verdict,
    took: Duration,
}

enum Verdict {
    Ok,
    Skipped(String),
    Failed(String),
}

impl Verdict {
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

fn run_one(step: Step, number: usize, of: usize) -> StepResult {
    println!("\n==> {number}/{of} {}: {}", step.name(), step.what());
    println!("    why: {}", step.why());
    let start = clock::now();
    let verdict = match step.run() {
        Ok(Outcome::Passed) => Verdict::Ok,
        Ok(Outcome::Skipped(reason)) => Verdict::Skipped(reason),
        Err(error) => Verdict::Failed(format!("{error:#}")),
    };
    let took = start.elapsed();
    match &verdict {
        Verdict::Ok => println!("    {} ok in {:.1} s", step.name(), took.as_secs_f64()),
        Verdict::Skipped(reason) => println!("    {} skipped: {reason}", step.name()),
        Verdict::Failed(why) => {
            println!("    {} FAILED after {:.1} s: {why}", step.name(), took.as_secs_f64())
        }
    }
    StepResult { step, verdict, took }
}

/// Print the table of steps. Its closing line counts steps, in words that no reader takes for a count of tests.
fn summarize(results: &[StepResult], planned: usize) -> Result<()> {
    println!("\n==> summary");
    for StepResult { step, verdict, took } in results {
        let (word, detail) = match verdict {
            Verdict::Ok => ("ok", ""),
            Verdict::Skipped(reason) => ("skipped", reason.as_str()),
            Verdict::Failed(why) => ("FAILED", why.as_str()),
        };
        println!("    {:<9}{word:<9}{:>7.1} s  {detail}", step.name(), took.as_secs_f64());
    }
    if results.len() < planned {
        println!(
            "    {} steps were not reached (--keep-going runs them all the same)",
            planned - results.len()
        );
    }
    let failed: Vec<_> = results
        .iter()
        .filter(|result| result.verdict.is_failure())
        .map(|result| result.step.name())
        .collect();
    if !failed.is_empty() {
        let again = failed.join(" ");
        bail!("failing steps: {}; to run them again: cargo xtask test {again}", failed.join(", "));
    }
    let total: Duration = results.iter().map(|result| result.took).sum();
    println!("    all {} steps done in {:.1} s", results.len(), total.as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(step: Step, verdict: Verdict) -> StepResult {
        StepResult { step, verdict, took: Duration::from_millis(1) }
    }

    #[test]
    fn no_name_means_every_step_and_a_name_counts_once() {
        assert_eq!(chosen(&[]).len(), Step::value_variants().len());
        assert_eq!(chosen(&[Step::Clippy, Step::Fmt, Step::Clippy]), [Step::Clippy, Step::Fmt]);
    }

    #[test]
    fn one_failure_fails_the_run_and_names_the_step() {
        let results = [
            result(Step::Fmt, Verdict::Ok),
            result(Step::Loom, Verdict::Skipped("not there".into())),
            result(Step::Clippy, Verdict::Failed("a lint".into())),
        ];
        let error = summarize(&results, 3).unwrap_err().to_string();
        assert_eq!(error, "failing steps: clippy; to run them again: cargo xtask test clippy");
        assert!(summarize(&results[..2], 2).is_ok());
    }
}
