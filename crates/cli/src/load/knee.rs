//! `tidegate load URL --find-knee`: tries rates until it knows the highest at which the thresholds hold.

use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::json;
use tidegate_load::{Knee, Settings, Stages, Target, Verdict};
use tidegate_workload::{KneeReport, Limited, MadeBy, Probe, Report, Threshold};

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

pub(super) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let target = Target::parse(&args.what).map_err(Failure::usage)?;
    let goal = goal(args)?;
    let (least, most) = bounds(args)?;
    let mut knee = Knee::new(least, most, f64::from(args.goal.precision) / 100.0, PROBES_MAX);
    while let Some(rate) = knee.next_rate() {
        let probe = probe(args, &target, &goal, rate)?;
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
        // Nobody knows what a target does that was missed by a generator's own lateness. But where that is a small part of
        // what answers took, it is not what the goal was missed by; nor is waiting for connections that a full target holds.
        limited: !met
            && sending.is_some_and(|sending| {
                let late = matches!(sending.limited(), Some(Limited::Late(_)));
                late && sending.lag.quantile(0.99) * LATE_PART > report.all.served.quantile(0.99)
            }),
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
