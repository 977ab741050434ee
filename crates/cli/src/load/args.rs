//! What can be typed after `tidegate load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use tidegate_policy::parse_duration;
use tidegate_workload::Threshold;

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate load http://127.0.0.1:8102/work --rate 500                    500 a second for ten seconds
  tidegate load http://127.0.0.1:8102/work --rate 100..5000:60s --timeout 2s
  tidegate load http://127.0.0.1:8102/work --rate 100:10s,100..5000:60s,0:5s --html report.html
  tidegate load http://127.0.0.1:8102/order -r 50 -X POST -H 'content-type: application/json' -d @order.json
  tidegate load http://127.0.0.1:8102/work -r 800 --rude                 clients who try again at once
  tidegate load http://127.0.0.1:8102/work -r 800 --threshold 'p99<300ms' --threshold 'goodput>95%' --threshold 'lag<5ms'
  tidegate load http://127.0.0.1:8102/work --find-knee --threshold 'p99<200ms' --threshold 'goodput>99%'
  tidegate load http://127.0.0.1:8102/work -r 800 --compare yesterday.json
  tidegate load scenarios/article-003.toml --target http://127.0.0.1:8102
  tidegate load scenarios/lab-overload.toml --lab --predict --html report.html

Requests are sent when the schedule says, whatever became of those before them,
and their times count from then. How late the generator was itself is in the
report as lag; docs/load.md says how it counts and what it bounds.

--lab starts the scenario's first service and a gateway with the scenario's
policy on this machine, and sends the scenario to it; --predict plays the same
in virtual time and shows both.

Exit codes: 0 done; 1 failure at run time, or no connection could be opened;
2 usage; 78 bad scenario or policy; 99 a threshold was missed.")]
pub(crate) struct LoadArgs {
    /// Whom to send to, as http://host:port/path; or a scenario file.
    #[arg(value_name = "URL|SCENARIO")]
    pub(crate) what: String,

    #[command(flatten)]
    pub(crate) sending: SendingArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    #[command(flatten)]
    pub(crate) goal: GoalArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "How much, and how")]
pub(crate) struct SendingArgs {
    /// Requests a second: 500, a ramp as 100..5000:60s, or stages as 100:10s,100..5000:60s,0:5s [default: 50].
    #[arg(long, short, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// How long a rate without a length of its own is kept [default: 10s].
    #[arg(long, short = 'z', value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Requests come as those of independent clients do, instead of evenly.
    #[arg(long)]
    pub(crate) poisson: bool,
    /// How much at the beginning is not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) warmup: Option<Duration>,
    /// The seed of everything that is drawn.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many connections may be open; what would need more waits, which counts as lag.
    #[arg(long, short, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: u32,
    /// How many requests may be outstanding; what would be more is not sent, and the report says so.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) outstanding: u32,
    /// Speaks HTTP/2 over plain TCP, known to be understood.
    #[arg(long)]
    pub(crate) http2: bool,
    /// How long to wait for the last answers [default: as long as clients do, at most 30s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) drain: Option<Duration>,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "The request (with a URL)")]
pub(crate) struct RequestArgs {
    /// The method.
    #[arg(long, short = 'X', value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A field of the head, as 'NAME: VALUE'; may be given more than once.
    #[arg(long, short = 'H', value_name = "FIELD")]
    pub(crate) header: Vec<String>,
    /// What is sent along: the text itself, or the content of a file as @FILE.
    #[arg(long, short = 'd', value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "The clients (with a URL)")]
pub(crate) struct ClientArgs {
    /// How long a client waits for an answer before it leaves [default: 10s].
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Clients say how long they wait.
    #[arg(long, requires = "timeout")]
    pub(crate) tell_deadline: bool,
    /// How often a client tries again after a failure.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=99))]
    pub(crate) retries: Option<u32>,
    /// How long it waits before that; with --rude it does not.
    #[arg(long, value_name = "KIND")]
    pub(crate) backoff: Option<BackoffArg>,
    /// The first wait of a back-off [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) backoff_base: Option<Duration>,
    /// Clients come back when they are told to, back off with full jitter, and spend no more than a tenth on retries;
    /// three of them unless --retries says otherwise.
    #[arg(long, conflicts_with = "rude")]
    pub(crate) obedient: bool,
    /// Clients try again at once, whatever they are told; three times unless --retries says otherwise.
    #[arg(long, conflicts_with = "backoff")]
    pub(crate) rude: bool,
}

/// How long clients wait before they try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackoffArg {
    /// Not at all.
    None,
    /// Always equally long.
    Fixed,
    /// Twice as long each time.
    Exponential,
    /// At random, up to twice as long each time.
    FullJitter,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "A scenario")]
pub(crate) struct LabArgs {
    /// Whom a scenario is sent to, as http://host:port.
    #[arg(long, value_name = "URL", conflicts_with = "lab")]
    pub(crate) target: Option<String>,
    /// Starts the scenario's service and a gateway on this machine, and sends to that.
    #[arg(long)]
    pub(crate) lab: bool,
    /// The policy of the scenario that is put in force with --lab, or `no control` for none [default: its first].
    #[arg(long, value_name = "NAME", requires = "lab")]
    pub(crate) only: Option<String>,
    /// Plays the same in virtual time, and shows both.
    #[arg(long, requires = "lab")]
    pub(crate) predict: bool,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "Goals")]
pub(crate) struct GoalArgs {
    /// What has to hold: p99<300ms, mean<50ms, max<1s, goodput>95%, goodput>=400/s, failed<1%, refused<5%, lag<5ms;
    /// of one class as checkout:p99<300ms. May be given more than once.
    #[arg(long, value_name = "WHAT", value_parser = Threshold::parse)]
    pub(crate) threshold: Vec<Threshold>,
    /// Looks for the highest rate at which the thresholds hold [default: p99<500ms, goodput>99%], between the bounds of
    /// --rate [default: 10..100000].
    #[arg(long, conflicts_with_all = ["lab", "target", "compare", "hdr"])]
    pub(crate) find_knee: bool,
    /// How long each rate is tried with --find-knee.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration, requires = "find_knee")]
    pub(crate) step: Duration,
    /// How near to each other the highest rate that holds and the lowest that does not have to be, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50), requires = "find_knee")]
    pub(crate) precision: u32,
}

#[derive(ClapArgs)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct OutputArgs {
    /// Prints the numbers as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes a page with charts into this file as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the percentiles of useful answers into this file, as HdrHistogram prints them (.hgrm; it is no interval log).
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,
    /// Compares with an earlier run, of which --json was kept in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) compare: Option<PathBuf>,
    /// Shows nothing while it runs.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
