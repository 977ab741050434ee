//! From what was typed to what is played: a scenario and the settings to play it with.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use tidegate_engine::Backoff;
use tidegate_load::{Protocol, Settings, Stages, Target};
use tidegate_workload::{Arrivals, RetryPolicy, Scenario, Spacing, check_field};

use super::args::{BackoffArg, ClientArgs, LoadArgs, RequestArgs, SendingArgs};
use super::interrupt;
use crate::exit::Failure;

/// The parser of scenarios refuses what is longer; one byte more shows it that there is more.
const SCENARIO_MAX: u64 = 1024 * 1024 + 1;
/// The longest body that is read from a file.
const BODY_MAX: u64 = 16 * 1024 * 1024;
const RATE: &str = "50";
const TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN_MAX: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// What obedient clients spend on retries, for a hundred first tries.
const BUDGET_PERCENT: u32 = 10;
const BACKOFF_BASE: Duration = Duration::from_millis(100);
const BACKOFF_CAP: Duration = Duration::from_secs(10);

/// Whether a URL was typed rather than a file.
pub(super) fn is_url(what: &str) -> bool {
    what.contains("://")
}

/// What is typed is a URL: one sort of clients come to it, at the rate that was typed.
pub(super) fn of_url(args: &LoadArgs) -> Result<(Scenario, Target), Failure> {
    let target = Target::parse(&args.what).map_err(Failure::usage)?;
    let rate = args.sending.rate.as_deref().unwrap_or(RATE);
    let stages = Stages::parse(rate, args.sending.duration).map_err(Failure::usage)?;
    Ok((with_clients(args, &stages, &target)?, target))
}

/// The clients that were typed, at this rate.
pub(super) fn with_clients(args: &LoadArgs, stages: &Stages, target: &Target) -> Result<Scenario, Failure> {
    let LoadArgs { sending, request, clients: typed, lab, .. } = args;
    if lab.lab || lab.target.is_some() {
        return Err(Failure::usage("--lab and --target belong to a scenario, not to a URL"));
    }
    let mut scenario = stages.scenario(target);
    scenario.seed = sending.seed.unwrap_or(scenario.seed);
    scenario.warmup = warmup(sending, &scenario)?.unwrap_or_default();
    for clients in &mut scenario.clients {
        if let (Arrivals::Open { spacing, .. }, true) = (&mut clients.arrivals, sending.poisson) {
            *spacing = Spacing::Poisson;
        }
        clients.timeout = Some(typed.timeout.unwrap_or(TIMEOUT));
        clients.tells_deadline = typed.tell_deadline;
        clients.retry = retry(typed);
        for kind in &mut clients.mix {
            kind.body = body(request)?;
            let posts = !kind.body.is_empty();
            let method = request.method.as_deref().unwrap_or(if posts { "POST" } else { "GET" });
            kind.method = method.to_owned();
            kind.headers = headers(request)?;
        }
    }
    Ok(scenario)
}

/// What is typed is a file.
pub(super) fn of_scenario(args: &LoadArgs) -> Result<Scenario, Failure> {
    refuse_what_is_of_urls(args)?;
    let path = Path::new(&args.what);
    let unreadable =
        |error: io::Error| Failure::policy(format_args!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(SCENARIO_MAX).read_to_string(&mut text).map_err(unreadable)?;
    let mut scenario = Scenario::parse(&text, path).map_err(Failure::policy)?;
    scenario.seed = args.sending.seed.unwrap_or(scenario.seed);
    scenario.warmup = warmup(&args.sending, &scenario)?.unwrap_or(scenario.warmup);
    // Real time does not repeat itself: one run, and what is expected of virtual time is not expected here.
    scenario.runs = 1;
    scenario.expectations.clear();
    Ok(scenario)
}

/// How it is played.
pub(super) fn settings(args: &LoadArgs, scenario: &Scenario, target: Target) -> Settings {
    let mut settings = Settings::new(target);
    settings.protocol = if args.sending.http2 { Protocol::Http2 } else { Protocol::Http1 };
    settings.connections_max = args.sending.connections as usize;
    settings.stop = interrupt::stop();
    settings.outstanding_max = args.sending.outstanding as usize;
    let patience = scenario.clients.iter().map(|clients| clients.timeout.unwrap_or(DRAIN_MAX)).max();
    let patience = patience.unwrap_or(DRAIN_MAX).min(DRAIN_MAX);
    settings.drain = args.sending.drain.unwrap_or(patience);
    settings
}

fn refuse_what_is_of_urls(args: &LoadArgs) -> Result<(), Failure> {
    let LoadArgs { sending, request, clients, goal, .. } = args;
    let typed = [
        ("--rate", sending.rate.is_some()),
        ("--duration", sending.duration.is_some()),
        ("--poisson", sending.poisson),
        ("--method", request.method.is_some()),
        ("--header", !request.header.is_empty()),
        ("--body", request.body.is_some()),
        ("--timeout", clients.timeout.is_some()),
        ("--retries", clients.retries.is_some()),
        ("--backoff", clients.backoff.is_some()),
        ("--backoff-base", clients.backoff_base.is_some()),
        ("--obedient", clients.obedient),
        ("--rude", clients.rude),
        ("--find-knee", goal.find_knee),
    ];
    match typed.into_iter().find(|(_, typed)| *typed) {
        Some((flag, _)) => {
            Err(Failure::usage(format_args!("{flag} belongs to a URL; a scenario says this by itself")))
        }
        None => Ok(()),
    }
}

fn warmup(sending: &SendingArgs, scenario: &Scenario) -> Result<Option<Duration>, Failure> {
    match sending.warmup {
        Some(warmup) if warmup >= scenario.duration => {
            Err(Failure::usage("--warmup is as long as everything, so nothing would be counted"))
        }
        warmup => Ok(warmup),
    }
}

fn retry(typed: &ClientArgs) -> RetryPolicy {
    let base = typed.backoff_base.unwrap_or(BACKOFF_BASE);
    let default = if typed.obedient { BackoffArg::FullJitter } else { BackoffArg::None };
    let several = typed.obedient || typed.rude || typed.backoff.is_some();
    RetryPolicy {
        attempts: 1 + typed.retries.unwrap_or(if several { RETRIES } else { 0 }),
        backoff: match typed.backoff.unwrap_or(default) {
            BackoffArg::None => Backoff::None,
            BackoffArg::Fixed => Backoff::Fixed(base),
            BackoffArg::Exponential => Backoff::Exponential { base, cap: BACKOFF_CAP.max(base) },
            BackoffArg::FullJitter => Backoff::FullJitter { base, cap: BACKOFF_CAP.max(base) },
        },
        budget_percent: typed.obedient.then_some(BUDGET_PERCENT),
        honours_retry_after: typed.obedient,
        marked: typed.obedient,
        ..RetryPolicy::NONE
    }
}

fn headers(request: &RequestArgs) -> Result<Vec<(String, String)>, Failure> {
    let field = |text: &String| {
        let (name, value) = text.split_once(':').ok_or_else(|| {
            Failure::usage(format_args!("`{text}` is not a field; write it as 'NAME: VALUE'"))
        })?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        check_field(&name, &value).map_err(Failure::usage)?;
        Ok((name, value))
    };
    request.header.iter().map(field).collect()
}

fn body(request: &RequestArgs) -> Result<String, Failure> {
    let Some(body) = &request.body else { return Ok(String::new()) };
    let Some(path) = body.strip_prefix('@') else { return Ok(body.clone()) };
    let unreadable = |error: io::Error| Failure::usage(format_args!("cannot read {path}: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(BODY_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > BODY_MAX {
        return Err(Failure::usage(format_args!("{path} is longer than {BODY_MAX} bytes")));
    }
    Ok(text)
}
