//! The developer's commands of this repository: `cargo xtask test`, `cargo xtask bench` and `cargo xtask peers`.
//!
//! This is no part of tidegate and is never published. The house rules (layers, tidy, advisories) are not commands
//! but ordinary tests in `tests/`, so that `cargo test` alone keeps them.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod clock;
mod packages;
mod peers;
mod test;
mod workspace;

/// The developer's commands of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check that a change has to pass, step by step.
    Test(test::Args),
    /// Measure, and compare with others in the same run.
    Bench(bench::Args),
    /// Overload tidegate and others alike, on real sockets, and compare what comes of it.
    Peers(peers::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Peers(args) => peers::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
