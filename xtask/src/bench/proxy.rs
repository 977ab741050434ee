//! `cargo xtask bench proxy`: CPU time for each proxied request and for each rejection, beside nginx and HAProxy.
//!
//! CPU time rather than requests a second, because it says what a request costs whoever else is on the machine. All are
//! measured in one run, in short rounds whose order rotates, so that a slow minute hits each of them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::cpu::CpuTime;
use super::lab::Lab;
use super::peers::{self, Gateway, Peer, Task};
use super::report::{Report, Row, Sample};
use super::wrk;
use crate::{clock, packages};

/// What `bench proxy` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each gateway is loaded in each round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// How many rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Whom to measure; a peer that is named has to run. All, as far as they can be had, when left out.
    #[arg(long, value_delimiter = ',', value_name = "PEER,...")]
    only: Vec<Peer>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// One that can be measured: who, and where its program is.
type Contender = (Peer, PathBuf);

/// Measure both tasks and print a table for each.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut left_out = Vec::new();
    let contenders = contenders(args, &mut left_out)?;
    let nginx = packages::ensure(packages::NGINX).context("the common upstream is an nginx")?;
    let wrk = packages::ensure(packages::WRK)?;
    for program in packages::UTIL_LINUX {
        packages::ensure(program)?;
    }
    let lab = Lab::open()?;
    let (_upstream, upstream_address) = peers::start_upstream(&lab, &nginx)?;
    let mut reports = Vec::new();
    for task in [Task::Proxy, Task::Reject] {
        let mut gateways = Vec::new();
        for (peer, program) in &contenders {
            match peer.start(&lab, program, task, upstream_address) {
                Ok(gateway) => gateways.push(gateway),
                Err(error) => leave_out(args, *peer, error, &mut left_out)?,
            }
        }
        let rows = measure(args, &lab, &wrk, task, gateways)?;
        reports.push(Report { task, seconds: args.seconds, rounds: args.rounds, rows });
    }
    print(args, &contenders, &reports, &left_out);
    Ok(())
}

fn print(args: &Args, contenders: &[Contender], reports: &[Report], left_out: &[String]) {
    let versions: Vec<_> = contenders.iter().map(|(peer, program)| peer.version(program)).collect();
    if args.json {
        let reports: Vec<_> = reports.iter().map(Report::to_json).collect();
        let all = serde_json::json!({ "reports": reports, "versions": versions, "left_out": left_out });
        println!("{all:#}");
        return;
    }
    for report in reports {
        print!("\n{report}");
    }
    println!("\nmeasured by: cargo xtask bench proxy --seconds {} --rounds {}", args.seconds, args.rounds);
    println!("versions: {}", versions.join("; "));
    for why in left_out {
        println!("left out: {why}");
    }
}

fn contenders(args: &Args, left_out: &mut Vec<String>) -> Result<Vec<Contender>> {
    let all = [Peer::Tidegate, Peer::Nginx, Peer::Haproxy];
    let mut found = Vec::new();
    for peer in all.into_iter().filter(|peer| args.only.is_empty() || args.only.contains(peer)) {
        match peer.program() {
            Ok(program) => found.push((peer, program)),
            Err(error) => leave_out(args, peer, error, left_out)?,
        }
    }
    ensure!(!found.is_empty(), "nobody is left to measure: {}", left_out.join("; "));
    Ok(found)
}

/// A peer that was asked for by name has to be there; any other is left out, and the report says so.
fn leave_out(args: &Args, peer: Peer, error: anyhow::Error, left_out: &mut Vec<String>) -> Result<()> {
    if args.only.contains(&peer) {
        return Err(error);
    }
    let why = format!("{} ({error:#})", peer.name());
    // The same reason for both tasks is one reason.
    if !left_out.contains(&why) {
        eprintln!("    left out: {why}");
        left_out.push(why);
    }
    Ok(())
}

fn measure(args: &Args, lab: &Lab, wrk: &Path, task: Task, gateways: Vec<Gateway>) -> Result<Vec<Row>> {
    ensure!(!gateways.is_empty(), "no gateway started");
    let mut rows: Vec<_> = gateways.into_iter().map(|gateway| (gateway, Vec::new())).collect();
    for (gateway, _) in &rows {
        // Connections to the upstream are opened and caches filled before anything counts.
        wrk::load(lab, wrk, gateway.address, 1)?;
    }
    for round in 0..args.rounds {
        eprintln!("    {}: round {} of {}", task.title(), round + 1, args.rounds);
        rows.rotate_left(1);
        for (gateway, samples) in &mut rows {
            samples.push(sample(args, lab, wrk, task, gateway)?);
        }
    }
    let mut rows: Vec<_> =
        rows.into_iter().map(|(gateway, samples)| Row { peer: gateway.peer, samples }).collect();
    rows.sort_by_key(|row| row.peer as u8);
    Ok(rows)
}

fn sample(args: &Args, lab: &Lab, wrk: &Path, task: Task, gateway: &Gateway) -> Result<Sample> {
    let name = gateway.peer.name();
    let group = gateway.running.group();
    let (start, before) = (clock::now(), CpuTime::of_group(group)?);
    let count = wrk::load(lab, wrk, gateway.address, args.seconds)?;
    let cpu =
        CpuTime::of_group(group).with_context(|| format!("{name} ended: {}", gateway.running.printed()))?;
    let sample = Sample { requests: count.requests, took: start.elapsed(), cpu: cpu - before };
    ensure!(count.requests > 0 && count.errors == 0, "{name} did not answer as it should: {count:?}");
    match task {
        Task::Proxy => ensure!(count.refused == 0, "{name} was to forward everything: {count:?}"),
        Task::Reject => ensure!(
            // One a second is let through, by design.
            count.requests - count.refused <= u64::from(args.seconds) + 2,
            "{name} was to refuse nearly everything: {count:?}"
        ),
    }
    Ok(sample)
}
