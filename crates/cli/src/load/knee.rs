//! `tidegate load URL --find-knee`: tries rates until it knows the highest at which the thresholds hold.

use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::json;
use tidegate_load::{Knee, Settings, Stages, Target, Verdict};
use tidegate_workload::{KneeReport, Limited, MadeBy, Probe, Report, RetryPolicy, Threshold};

use super::args::LoadArgs;
use super::{interrupt, known_classes, measure, plan, show};
use crate::exit::Failure;

/// Where it looks if nobody says.
const RATES: (f64, f64) = (10.0, 100_000.0);
/// What has to hold if nobody says.
const GOAL: [&str; 2] = ["p99<500ms", "goodput>99%"];
const PROBES_MAX: usize = 40;
/// How much of each try is not counted, as a part of it.
const WARMUP: u32 = 5;
/// The generator's lag counts as the reason when it is more than one part in so many of what answers took.
const LATE_PART: u32 = 4;
/// Two requests, a quarter of a second from each other, show whether a target is calm.
const CALM_RATE: f64 = 4.0;
const CALM_STEP: Duration = Duration::from_millis(500);
/// So long one of them is waited for, and so often it is tried: half a minute altogether at most.
const CALM_MAX: Duration = Duration::from_secs(1);
const CALM_TRIES: u32 = 20;
/// It is calm again when a request takes less than twice as long as at first, and this.
const CALM_SLACK: Duration = Duration::from_millis(10);

pub(super) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let target = Target::parse(&args.what).map_err(Failure::usage)?;
    let goal = goal(args)?;
    let (least, most) = bounds(args)?;
    let mut knee = Knee::new(least, most, f64::from(args.goal.precision) / 100.0, PROBES_MAX);
    let idle = calm(args, &target)?;
    while let Some(rate) = knee.next_rate() {
        let probe = probe(args, &target, &goal, rate)?;
        if !probe.met && !probe.limited {
            recover(args, &target, idle)?;
        }
        if interrupt::stop().is_set() {
            return Err(Failure::runtime("ended early, before the knee was found"));
        }
        knee.tried(probe);
    }
    let probes = knee.probes();
    let found = in_words(knee.verdict());
    let goal = goal.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let at = match knee.verdict() {
        Verdict::Between(rate, _) | Verdict::Above(rate) | Verdict::Generator(Some(rate)) => Some(rate),
        Verdict::Below(_) | Verdict::Generator(None) => None,
    };
    let report = KneeReport { target: &args.what, goal: &goal, found: &found, knee: at, probes: &probes };
    let mut out = io::stdout();
    if args.output.json {
        writeln!(out, "{:#}", to_json(&report))?;
    } else {
        write!(out, "{}", report.table())?;
    }
    if let Some(path) = &args.output.html {
        let command = show::command();
        show::write_file(
            path,
            &report.page(&MadeBy { command: &command, version: env!("CARGO_PKG_VERSION") }),
        )?;
        let _ = writeln!(io::stderr(), "tidegate: the report is in {}", path.display());
    }
    match knee.verdict() {
        Verdict::Below(_) => Err(Failure::missed(found)),
        Verdict::Generator(None) => Err(Failure::runtime(found)),
        _ => Ok(()),
    }
}

/// Waits until the target has got over a rate that was too much for it, so that the next rate is not blamed for what the last has
/// left: until a request by itself is answered about as fast as before, or for so many tries.
fn recover(args: &LoadArgs, target: &Target, idle: Option<Duration>) -> Result<(), Failure> {
    // It did not answer before either.
    let Some(idle) = idle else { return Ok(()) };
    for _ in 0..CALM_TRIES {
        let calm = calm(args, target)?;
        if interrupt::stop().is_set() || calm.is_some_and(|took| took <= idle * 2 + CALM_SLACK) {
            break;
        }
    }
    Ok(())
}

/// How long the target takes for a request by itself; `None` if it does not answer that.
fn calm(args: &LoadArgs, target: &Target) -> Result<Option<Duration>, Failure> {
    let mut scenario = plan::with_clients(args, &Stages::constant(CALM_RATE, CALM_STEP), target)?;
    scenario.warmup = Duration::ZERO;
    for clients in &mut scenario.clients {
        clients.timeout = clients.timeout.map(|timeout| timeout.min(CALM_MAX));
        clients.retry = RetryPolicy::NONE;
    }
    let settings = plan::settings(args, &scenario, target.clone());
    let report = measure(args, &scenario, "one by itself", &settings)?;
    let all = &report.all;
    Ok((all.offered > 0 && all.goodput == all.offered).then(|| all.served.max()))
}

/// Whether it was not the target by which the goal was missed.
fn is_generators(report: &Report, goal: &[Threshold]) -> bool {
    let Some(sending) = report.sending.as_deref() else { return false };
    match sending.limited() {
        // What was sent was answered in time: what made it late was that so few were sent at once. Where it was not, the target
        // is full, and its answers are what the connections are busy with.
        Some(Limited::Connections(_)) => {
            let times: Vec<bool> =
                goal.iter().filter_map(|threshold| threshold.check_times(report, &sending.naive)).collect();
            !times.is_empty() && times.iter().all(|met| *met)
        }
        // Nobody knows what a target does that was missed by a generator's own lateness. But where that is a small part of what
        // answers took, it is not what the goal was missed by.
        Some(Limited::Late(late)) => late * LATE_PART > report.all.served.quantile(0.99),
        Some(Limited::Exhausted(_)) => true,
        Some(Limited::Unsent(_)) | None => false,
    }
}

fn goal(args: &LoadArgs) -> Result<Vec<Threshold>, Failure> {
    if !args.goal.threshold.is_empty() {
        return Ok(args.goal.threshold.clone());
    }
    GOAL.into_iter().map(|text| Threshold::parse(text).map_err(Failure::usage)).collect()
}

fn bounds(args: &LoadArgs) -> Result<(f64, f64), Failure> {
    let Some(rate) = &args.sending.rate else { return Ok(RATES) };
    if rate.contains([',', ':']) || args.sending.duration.is_some() {
        return Err(Failure::usage(
            "with --find-knee, --rate is where to look, as 100..5000; --step is how long",
        ));
    }
    let (least, most) = Stages::parse(rate, None).map_err(Failure::usage)?.bounds();
    // A single rate is the highest that is to be tried.
    let least = if rate.contains("..") { least } else { RATES.0 };
    match least > 0.0 && least <= most {
        true => Ok((least, most)),
        false => Err(Failure::usage("with --find-knee, --rate begins above 0 and does not fall")),
    }
}

fn probe(args: &LoadArgs, target: &Target, goal: &[Threshold], rate: f64) -> Result<Probe, Failure> {
    let mut scenario = plan::with_clients(args, &Stages::constant(rate, args.goal.step), target)?;
    scenario.warmup = args.sending.warmup.unwrap_or(args.goal.step / WARMUP);
    known_classes(goal, &scenario)?;
    let settings: Settings = plan::settings(args, &scenario, target.clone());
    let report: Report = measure(args, &scenario, &format!("{rate:.0} a second"), &settings)?;
    if let Some(what) = show::nobody_there(&report) {
        return Err(Failure::runtime(what));
    }
    let seconds = report.watched.as_secs_f64().max(1e-9);
    let sending = report.sending.as_deref();
    let met = goal.iter().all(|threshold| threshold.check(&report).is_ok());
    Ok(Probe {
        rate,
        goodput: report.all.goodput as f64 / seconds,
        share: report.all.goodput_share(),
        p50: report.all.served.quantile(0.5),
        p99: report.all.served.quantile(0.99),
        lag_p99: sending.map_or(Duration::ZERO, |sending| sending.lag.quantile(0.99)),
        met,
        limited: !met && is_generators(&report, goal),
    })
}

fn in_words(verdict: Verdict) -> String {
    match verdict {
        Verdict::Between(met, missed) => {
            format!("The knee is at {met:.0} a second: there the goal is met, and at {missed:.0} it is not.")
        }
        Verdict::Above(most) => {
            format!("The goal is met at {most:.0} a second, the highest rate that was to be tried.")
        }
        Verdict::Below(least) => {
            format!("The goal is not met at {least:.0} a second, the lowest rate that was to be tried.")
        }
        Verdict::Generator(Some(met)) => {
            format!("The goal is met at {met:.0} a second. Beyond that the generator was the limit.")
        }
        Verdict::Generator(None) => "The generator was the limit at the lowest rate already.".to_owned(),
    }
}

fn to_json(report: &KneeReport<'_>) -> serde_json::Value {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let probes = report.probes.iter().map(|probe| {
        json!({
            "rate": probe.rate, "goodput": probe.goodput, "share": probe.share, "p50_ms": millis(probe.p50),
            "p99_ms": millis(probe.p99), "lag_p99_ms": millis(probe.lag_p99), "met": probe.met,
            "limited": probe.limited,
        })
    });
    json!({
        "target": report.target,
        "goal": report.goal,
        "found": report.found,
        "knee": report.knee,
        "probes": probes.collect::<Vec<_>>(),
    })
}
