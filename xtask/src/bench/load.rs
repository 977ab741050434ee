//! `cargo xtask bench load`: what `tidegate load` measures, beside wrk and hey, on the same service in the same run.
//!
//! On a service below saturation all have to agree. On one that stands still for a second they do not: wrk and hey wait for
//! answers before they send again, so of the second they see as many requests as they have connections (coordinated
//! omission), and `tidegate load` sees all that would have come.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Signal, kill_process_group};
use serde_json::Value;

use super::lab::{self, Lab};
use super::process::Running;
use super::tidegate;
use crate::{clock, packages};

/// So many wait for answers, of those who do.
const USERS: u32 = 20;
/// How long the service works on each request, however many there are.
const WORK: &str = "20ms";
/// How long it stands still, and after how long.
const STALL: Duration = Duration::from_secs(1);

/// What `cargo xtask bench load` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each generator runs, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(4..=60))]
    seconds: u32,
    /// How often `tidegate load` tries to send 30,000 a second; the best counts, since the machine may be busy.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    tries: u32,
}

/// What a generator says it has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// Answers each second.
    rate: f64,
    /// In milliseconds.
    p50: f64,
    p99: f64,
}

/// Which generator, and how it sends.
#[derive(Clone, Copy)]
enum Generator {
    Wrk,
    Hey,
    /// `tidegate load` with users who wait for answers, as the others do.
    Users,
    /// `tidegate load` at this rate, whatever becomes of it.
    Open(f64),
}

/// See the module.
struct Bench {
    lab: Lab,
    tidegate: PathBuf,
    wrk: PathBuf,
    hey: PathBuf,
    seconds: u32,
    service: Running,
    address: SocketAddr,
}

/// Run it and print the tables.
pub(crate) fn run(args: &Args) -> Result<()> {
    for program in packages::UTIL_LINUX {
        packages::ensure(program)?;
    }
    let (wrk, hey) = (packages::ensure(packages::WRK)?, packages::ensure(packages::HEY)?);
    let tidegate = tidegate::build()?;
    let lab = Lab::open()?;
    let address = Lab::free_address()?;
    let port = address.port().to_string();
    let service_args = ["upstream", "--port", &port, "--service-time", WORK];
    let mut service = Running::start(lab.gateway_core, &tidegate, &service_args, lab.path("service.log"))?;
    lab::wait_until_it_answers(&mut service, "the service", address)?;
    let bench = Bench { lab, tidegate, wrk, hey, seconds: args.seconds, service, address };

    let first = bench.measure(Generator::Wrk, None)?;
    let open = Generator::Open((first.rate * 0.9).round());
    let rows = [Generator::Hey, Generator::Users, open]
        .map(|generator| Ok((generator, bench.measure(generator, None)?)));
    let rows = std::iter::once(Ok((Generator::Wrk, first))).chain(rows).collect::<Result<Vec<_>>>()?;
    println!("{}", table(&format!("A service that takes {WORK} for each request"), &rows));

    let rows = [Generator::Wrk, Generator::Hey, Generator::Users, open]
        .map(|generator| Ok((generator, bench.measure(generator, Some(STALL))?)));
    let rows = rows.into_iter().collect::<Result<Vec<_>>>()?;
    println!("{}", table("The same, standing still for a second", &rows));
    bench.fast(args.tries)
}

impl Bench {
    /// One run of a generator, in the middle of which the service may stand still.
    fn measure(&self, generator: Generator, stall: Option<Duration>) -> Result<Measured> {
        let seconds = self.seconds;
        let url = format!("http://{}/work", self.address);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (users, length) = (USERS.to_string(), format!("{seconds}s"));
        let (program, args): (&Path, Vec<String>) = match generator {
            Generator::Wrk => (&self.wrk, words(&["-t1", "-c", &users, "-d", &length, "--latency", &url])),
            Generator::Hey => (&self.hey, words(&["-c", &users, "-z", &length, &url])),
            Generator::Users => {
                let scenario = self.lab.write("users.toml", &scenario(seconds))?;
                let target = format!("http://{}", self.address);
                let file = scenario.display().to_string();
                (&self.tidegate, words(&["load", &file, "--target", &target, "--json"]))
            }
            Generator::Open(rate) => {
                let rate = format!("{rate}:{length}");
                (&self.tidegate, words(&["load", &url, "--rate", &rate, "--json"]))
            }
        };
        let mut running = Running::start(self.lab.load_core, program, &args, self.lab.path("load.log"))?;
        if let Some(stall) = stall {
            clock::sleep(Duration::from_secs(u64::from(seconds)) / 2);
            // The process stops, and the kernel takes what comes for it, as for one that collects its garbage.
            kill_process_group(self.service.group(), Signal::STOP)?;
            clock::sleep(stall);
            kill_process_group(self.service.group(), Signal::CONT)?;
        }
        let limit = Duration::from_secs(u64::from(seconds) + 40);
        let status = clock::wait_for("the generator to end", limit, || running.ended())?;
        let printed = running.printed();
        if !status.success() {
            bail!("{} failed ({status}): {printed}", program.display());
        }
        let measured = match generator {
            Generator::Wrk => of_wrk(&printed),
            Generator::Hey => of_hey(&printed),
            Generator::Users | Generator::Open(_) => of_tidegate(&printed),
        };
        measured.with_context(|| {
            format!("{} printed something else than expected:\n{printed}", program.display())
        })
    }

    /// How far one core gets, against the service on the other, which answers this path at once.
    fn fast(&self, tries: u32) -> Result<()> {
        let url = format!("http://{}/stats", self.address);
        let mut best: Option<(f64, String)> = None;
        for _ in 0..tries {
            let args = ["load", &url, "--rate", "30000:5s", "--warmup", "1s", "--json"];
            let mut running =
                Running::start(self.lab.load_core, &self.tidegate, &args, self.lab.path("load.log"))?;
            clock::wait_for("the generator to end", Duration::from_secs(60), || running.ended())?;
            let whole: Value = serde_json::from_str(&running.printed()).context("it printed no JSON")?;
            let report = &whole["reports"][0];
            let number = |at: &str| report.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN);
            let lag = number("/sending/lag_ms/p99");
            let said = format!(
                "{} of {} answered; lag p50 {:.2} ms, p99 {lag:.2} ms, most {:.1} ms; never sent {}",
                number("/goodput"),
                number("/offered"),
                number("/sending/lag_ms/p50"),
                number("/sending/lag_ms/max"),
                number("/sending/unsent"),
            );
            if best.as_ref().is_none_or(|(least, _)| lag < *least) {
                best = Some((lag, said));
            }
        }
        let said = best.map_or_else(String::new, |(_, said)| said);
        println!("30,000 a second from one core for five seconds, the best of {tries}: {said}");
        Ok(())
    }
}

/// Users who ask, wait and ask again, as those of wrk and hey do.
fn scenario(seconds: u32) -> String {
    format!(
        "story = \"Users who wait.\"\nduration = \"{seconds}s\"\n[[service]]\nelastic = {{ slope = 0.0 }}\n\
         time = \"{WORK}\"\n[[clients]]\nname = \"users\"\nusers = {USERS}\npath = \"/work\"\n"
    )
}

fn table(title: &str, rows: &[(Generator, Measured)]) -> String {
    let mut out =
        format!("\n{title}\n\n| generator | answers a second | p50, ms | p99, ms |\n|---|---|---|---|\n");
    for (generator, Measured { rate, p50, p99 }) in rows {
        let name = match generator {
            Generator::Wrk => format!("wrk, {USERS} connections"),
            Generator::Hey => format!("hey, {USERS} connections"),
            Generator::Users => format!("tidegate load, {USERS} users"),
            Generator::Open(rate) => format!("tidegate load, {rate} a second"),
        };
        let _ = writeln!(out, "| {name} | {rate:.1} | {p50:.2} | {p99:.2} |");
    }
    out
}

fn of_wrk(printed: &str) -> Option<Measured> {
    let field = |name: &str| {
        let line = printed.lines().find(|line| line.trim_start().starts_with(name))?;
        line.split_whitespace().last()
    };
    Some(Measured {
        rate: field("Requests/sec:")?.parse().ok()?,
        p50: wrk_millis(field("50%")?)?,
        p99: wrk_millis(field("99%")?)?,
    })
}

/// wrk chooses the unit.
fn wrk_millis(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (unit, millis) = units.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * millis)
}

fn of_hey(printed: &str) -> Option<Measured> {
    let quantile = |name: &str| {
        let line = printed.lines().find(|line| line.trim_start().starts_with(name))?;
        line.split_whitespace().nth(2)?.parse::<f64>().ok().map(|seconds| seconds * 1e3)
    };
    let rate = printed.lines().find(|line| line.trim_start().starts_with("Requests/sec:"))?;
    Some(Measured {
        rate: rate.split_whitespace().last()?.parse().ok()?,
        // Some versions write `50%` and some `50%%`.
        p50: quantile("50%")?,
        p99: quantile("99%")?,
    })
}

fn of_tidegate(printed: &str) -> Option<Measured> {
    let whole: Value = serde_json::from_str(printed).ok()?;
    let report = &whole["reports"][0];
    let number = |at: &str| report.pointer(at)?.as_f64();
    Some(Measured {
        rate: number("/goodput")? / number("/watched_s")?,
        p50: number("/served_ms/p50")?,
        p99: number("/served_ms/p99")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_generators_print() {
        let wrk = "  Latency Distribution\n     50%   21.07ms\n     75%   21.4ms\n     90%   22ms\n     99%    1.02s\n\
            \x20 9000 requests in 10.00s, 1MB read\nRequests/sec:    934.51\n";
        assert_eq!(of_wrk(wrk), Some(Measured { rate: 934.51, p50: 21.07, p99: 1020.0 }));
        let hey = "Summary:\n  Requests/sec:\t901.2\n\nLatency distribution:\n  10%% in 0.0205 secs\n\
            \x20 50%% in 0.0211 secs\n  99%% in 0.0250 secs\n";
        let found = of_hey(hey).unwrap();
        assert_eq!((found.rate, found.p50.round(), found.p99.round()), (901.2, 21.0, 25.0));
        let tidegate =
            "{\"reports\": [{\"goodput\": 90, \"watched_s\": 2.0, \"served_ms\": {\"p50\": 1, \"p99\": 2}}]}";
        assert_eq!(of_tidegate(tidegate), Some(Measured { rate: 45.0, p50: 1.0, p99: 2.0 }));
        assert_eq!((of_wrk(""), of_hey("x"), of_tidegate("{}")), (None, None, None));
    }
}
