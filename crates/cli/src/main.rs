//! The `tidegate` command. It parses what was typed, calls one function, and turns its result into an exit code.
#![forbid(unsafe_code)]

mod args;
mod check;
mod clock;
mod demo;
mod exit;
mod explain;
mod lab;
mod load;
mod otel;
mod replay;
mod run;
mod schema;
mod simulate;
mod size;
mod top;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Upstream(args) => lab::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "tidegate", &mut std::io::stdout());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
