//! `cargo xtask bench`: numbers that compare, taken in one run.
//!
//! The machines that run this are shared and noisy, so an absolute number means little. What counts is the ratio to a
//! peer that was measured in the same minutes.

use anyhow::Result;
use clap::Subcommand;

pub(crate) mod configs;
mod cpu;
pub(crate) mod http;
pub(crate) mod lab;
mod load;
mod memory;
mod peers;
pub(crate) mod process;
mod proxy;
mod report;
mod rss;
pub(crate) mod tidegate;
mod upstream;
mod wrk;

use crate::workspace::{self, cargo};

/// What `cargo xtask bench` takes.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Time one admission decision, beside other limiters (cargo bench of the tower crate).
    Decisions {
        /// Passed on to the benchmark, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Time a call through the client, beside tower's own retry (cargo bench of the client crate).
    Calls {
        /// Passed on to the benchmark, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Time one item from producer to consumer, beside tokio's channel (cargo bench of the flow crate).
    Flow {
        /// Passed on to the benchmark, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Time a call through the layers, beside tower's own and tower_governor (cargo bench of the tower crate).
    Layers {
        /// Passed on to the benchmark, after `--`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// CPU time for each proxied request and for each rejection: tidegate, nginx and HAProxy.
    Proxy(proxy::Args),
    /// What `tidegate load` measures, beside wrk and hey: on a service that is well, and on one that stalls.
    Load(load::Args),
    /// Memory for each queued request and for each rate-limit key.
    Memory(memory::Args),
}

/// Run the chosen benchmark.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.bench {
        Bench::Decisions { args } => of("tidegate-tower", "decisions", args),
        Bench::Layers { args } => of("tidegate-tower", "layers", args),
        Bench::Calls { args } => of("tidegate-client", "calls", args),
        Bench::Flow { args } => of("tidegate-flow", "channels", args),
        Bench::Proxy(args) => proxy::run(args),
        Bench::Load(args) => load::run(args),
        Bench::Memory(args) => memory::run(args),
    }
}

fn of(package: &str, bench: &str, args: &[String]) -> Result<()> {
    let mut command = cargo(["bench", "-p", package, "--bench", bench, "--"]);
    workspace::run(command.args(args))
}
