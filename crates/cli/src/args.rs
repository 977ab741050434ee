//! What can be typed. Nothing is opened or decided here.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use tidegate_policy::parse_duration;

/// Keeps a service's useful answers at its capacity, however much arrives.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  tidegate demo                                     see it work, in a minute
  tidegate run --upstream http://127.0.0.1:3000     protect a service, no file needed
  tidegate run --config tidegate.toml               the same, by a policy of your own
  tidegate check tidegate.toml                      is the policy right, and is it wise?
  tidegate explain tidegate.toml --request 'POST /checkout'
  tidegate size --workers 4 --service-time 200ms --wait 500ms
  tidegate simulate scenarios/article-003.toml      what would a policy have done?
  tidegate load http://127.0.0.1:8102/ --rate 500   what does it do on real sockets?
  tidegate top                                      how does the running gateway stand?

Exit codes: 0 done; 1 failure at run time; 2 usage; 69 cannot bind; 78 bad policy;
99 an expectation or a threshold was not met."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Runs the gateway.
    Run(RunArgs),
    /// Plays the overload stories on this machine and prints what it measured.
    Demo(DemoArgs),
    /// Checks a policy file and says what is unwise about it.
    Check(CheckArgs),
    /// Says what a policy would do with a request, and why.
    Explain(ExplainArgs),
    /// Calculates how long a queue may be, and what a queue means in waiting time.
    Size(SizeArgs),
    /// Plays an access log against policies, in virtual time: what would they have done to it?
    Replay(Box<crate::replay::ReplayArgs>),
    /// Plays a scenario against policies, in virtual time, and shows what came of it.
    Simulate(SimulateArgs),
    /// Sends requests when they are due, whatever becomes of them, and shows what came of it.
    Load(Box<crate::load::LoadArgs>),
    /// Shows how a running gateway stands, second by second, in the terminal.
    Top(TopArgs),
    /// Runs the lab's slow upstream, which takes on whatever comes.
    Upstream(UpstreamArgs),
    /// Prints the JSON schema of the policy file, for editors.
    Schema(SchemaArgs),
    /// Prints a completion script for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate run --upstream http://127.0.0.1:3000
  tidegate run --upstream http://127.0.0.1:3000 --limit 4 --queue 8 --wait 500ms
  tidegate run --config /etc/tidegate.toml

SIGTERM or Ctrl-C: takes no new connections and lets running requests end,
at most for the policy's `drain`. A second one ends at once, with exit code 1.
SIGHUP reads the policy file again; if it is not right, the one before stays
in force.", group = clap::ArgGroup::new("what").required(true).args(["config", "upstream"]))]
pub(crate) struct RunArgs {
    /// The policy file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The service to protect, as http://host:port, instead of a policy file.
    #[arg(long, short, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where clients connect [default: the policy's, else 127.0.0.1:8102].
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where metrics, statistics and health are served [default: the policy's, else 127.0.0.1:8101].
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// How many requests the service is given at once: a number or "adaptive" (with --upstream).
    #[arg(long, value_name = "N", conflicts_with = "config")]
    pub(crate) limit: Option<String>,
    /// How many requests may wait (with --upstream).
    #[arg(long, value_name = "N", conflicts_with = "config")]
    pub(crate) queue: Option<String>,
    /// How long a request may wait, such as 500ms (with --upstream).
    #[arg(long, value_name = "TIME", conflicts_with = "config")]
    pub(crate) wait: Option<String>,
    /// How long the service may take to answer, such as 2s (with --upstream).
    #[arg(long, value_name = "TIME", conflicts_with = "config")]
    pub(crate) timeout: Option<String>,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate demo            plays all stories, about ten seconds, then the show
  tidegate demo --show     only the show: two services alike, one behind tidegate, on the dashboard
  tidegate demo --once     only the stories, as without a terminal
  tidegate demo --stay     keeps the gateway and the upstream running afterwards, for requests of your own
  tidegate demo --json     the measured numbers, for a script")]
pub(crate) struct DemoArgs {
    /// Plays the show at once and nothing else, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["stay", "json", "once"])]
    pub(crate) show: bool,
    /// Ends after the stories.
    #[arg(long)]
    pub(crate) once: bool,
    /// Keeps running after the stories, until Ctrl-C, with nobody but you who asks for anything.
    #[arg(long, conflicts_with = "once")]
    pub(crate) stay: bool,
    /// Prints the numbers as JSON.
    #[arg(long, conflicts_with = "stay")]
    pub(crate) json: bool,
    /// Takes free ports instead of 8101, 8102 and 8103.
    #[arg(long)]
    pub(crate) any_port: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate check tidegate.toml
  tidegate check --strict --json tidegate.toml     for CI: warnings fail too

Exit codes: 0 right; 78 wrong, or unwise and --strict.")]
pub(crate) struct CheckArgs {
    /// The policy file.
    pub(crate) file: PathBuf,
    /// Warnings count as errors.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Prints the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate explain tidegate.toml --request 'POST /checkout'
  tidegate explain tidegate.toml --request 'POST /checkout' -H 'x-tenant: acme' -H 'grpc-timeout: 200m'
  tidegate explain tidegate.toml --request 'GET /search?q=x' --client 203.0.113.7
  tidegate explain tidegate.toml --request 'GET /search' --json

Nothing is sent. It says which limits apply, and not how full they are.

Exit codes: 0 explained, also if the answer would be 404; 2 no request; 78 bad policy.")]
pub(crate) struct ExplainArgs {
    /// The policy file.
    pub(crate) file: PathBuf,
    /// The request line, such as 'POST /checkout'; without a method it is GET.
    #[arg(long, short, value_name = "REQUEST")]
    pub(crate) request: String,
    /// A field of the request, as 'NAME: VALUE'; may be given more than once.
    #[arg(long, short = 'H', value_name = "FIELD")]
    pub(crate) header: Vec<String>,
    /// The address that the connection comes from, which may be a proxy's.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) client: IpAddr,
    /// Prints the explanation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate size --workers 4 --service-time 200ms --wait 500ms      how many may wait?
  tidegate size --workers 4 --service-time 200ms --queue 46        how long does the last one wait?
  tidegate size --workers 10 --service-time 100ms --wait 1s --rate 150/s --burst 100
  tidegate size --deadline 1s --hop 4x200ms --hop 10x20ms          a chain of services, end to end")]
pub(crate) struct SizeArgs {
    /// How many requests the service works on at once.
    #[arg(long, value_name = "N", required_unless_present = "deadline", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: Option<u32>,
    /// How long it works on one.
    #[arg(long, value_name = "TIME", required_unless_present = "deadline", value_parser = parse_duration)]
    pub(crate) service_time: Option<Duration>,
    /// How long a request may wait.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, required_unless_present_any = ["queue", "deadline"])]
    pub(crate) wait: Option<Duration>,
    /// How many wait, to see what that means.
    #[arg(long, value_name = "N", conflicts_with = "wait")]
    pub(crate) queue: Option<u32>,
    /// How many requests come, such as 150/s: how busy is it then, and how long does the queue last?
    #[arg(long, value_name = "RATE", value_parser = crate::size::parse_rate)]
    pub(crate) rate: Option<crate::size::Rate>,
    /// How many come at once: how many of them are served, and how long does that take?
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst: Option<u32>,
    /// For a chain: how long the client waits for the answer, end to end.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "hop", conflicts_with_all = ["workers", "service_time", "wait", "queue", "rate", "burst"])]
    pub(crate) deadline: Option<Duration>,
    /// For a chain: a service as WORKERSxTIME; once for each, in order.
    #[arg(long, value_name = "NxTIME", value_parser = crate::size::parse_hop, requires = "deadline")]
    pub(crate) hop: Vec<crate::size::Hop>,
    /// Prints the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate simulate scenarios/article-003.toml
  tidegate simulate scenarios/article-003.toml --policy tidegate.toml      is mine any better?
  tidegate simulate scenarios/article-003.toml --runs 20 --html report.html
  tidegate simulate scenarios/article-003.toml --only 'queue of 20' --json

The same scenario, policies and seed give the same numbers, on any number of
threads. docs/simulating.md has the keys of scenario files.

Exit codes: 0 done; 78 bad scenario or policy; 99 an expectation was not met.")]
pub(crate) struct SimulateArgs {
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// A policy file to play as well, under the name of the file; may be given more than once.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// Plays only the policy of this name; may be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// The first seed, instead of the scenario's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many seeds to play, instead of the scenario's number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// How many runs are played at the same time [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Prints the numbers as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes a page with charts into this file as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate top                                   the gateway on this machine
  tidegate top --admin 10.0.0.7:8101             another one
  tidegate top --once                            one frame, as plain text
  tidegate top --json | jq .upstreams            samples, a line each

Keys: q ends, u or the arrows go from upstream to upstream, p holds the picture,
? explains the words. With NO_COLOR set there are no colours. It only reads, and
goes on trying when the gateway goes away.")]
pub(crate) struct TopArgs {
    /// The gateway's admin address.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8101")]
    pub(crate) admin: SocketAddr,
    /// Prints one frame as plain text, or with --json one sample, and ends.
    #[arg(long)]
    pub(crate) once: bool,
    /// Prints samples as they come, as JSON, a line each.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate upstream                                        every request takes 200 ms, all at once
  tidegate upstream --workers 4 --service-time 200ms       four at a time, the others wait without a bound
  curl 'http://127.0.0.1:8103/work?ms=50'                  this one takes 50 ms
  curl http://127.0.0.1:8103/stats
  curl -X POST 'http://127.0.0.1:8103/set?service_time=2s' from now on the work takes two seconds

GET /work takes ?ms=N (time), ?status=N and ?bytes=N (the answer); /work/NAME is
the same, so that a policy can tell routes apart. Work goes on when its client
leaves, as it does in most services, unless --cancels-work is given.
POST /reset begins to count anew. POST /set?service_time=TIME makes the service
slower or faster while it runs, also for those who wait already. All of it is
for this machine only: the upstream listens on 127.0.0.1 and nowhere else.")]
pub(crate) struct UpstreamArgs {
    /// The port to listen on, on 127.0.0.1.
    #[arg(long, default_value_t = 8103)]
    pub(crate) port: u16,
    /// How many requests are worked on at once; 0 means all of them.
    #[arg(long, default_value_t = 0)]
    pub(crate) workers: u32,
    /// How long the work on a request takes that does not say.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration)]
    pub(crate) service_time: Duration,
    /// Work stops when its client leaves.
    #[arg(long)]
    pub(crate) cancels_work: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  tidegate schema > tidegate.schema.json
  tidegate schema --markdown                               every key, as a page to read

Put `#:schema tidegate.schema.json` on the first line of a policy, and editors
that know TOML complete and check it.")]
pub(crate) struct SchemaArgs {
    /// Prints the reference of all keys in Markdown instead.
    #[arg(long)]
    pub(crate) markdown: bool,
}
