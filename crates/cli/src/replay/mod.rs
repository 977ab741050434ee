//! `tidegate replay`: what would these policies have done to last night's traffic?
//!
//! The log is read twice: `survey` sees what is in it, then every request is handed to the simulator as it was logged,
//! against nothing and against each policy. Neither reading keeps more than a fixed amount, so a log may be larger than
//! memory.

mod args;
mod busy;
mod callers;
mod kinds;
mod moment;
mod notes;
mod offer;
mod page;
mod progress;
mod setting;
mod show;
mod source;
mod survey;

pub(crate) use args::ReplayArgs;

use std::io::{self, Write as _};
use std::path::PathBuf;

use tidegate_sim::{Control, Recorded, Replay, TooMany};
use tidegate_workload::access_log::{AccessLog, Options};
use tidegate_workload::{NamedPolicy, Report, Scenario};

use self::kinds::Kinds;
use self::offer::Offers;
use self::progress::Progress;
use self::source::Source;
use self::survey::Survey;
use crate::check;
use crate::exit::Failure;

/// The most policies that are compared at once.
const POLICIES_MAX: usize = 16;

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    // A policy that is wrong is found before an hour is spent on the log.
    let policies = policies(&args.policies)?;
    let options = args.options()?;
    let source = Source::open(&args.log)?;
    let mut progress = Progress::new(&source);

    let mut kinds = Kinds::new(&policies, args.speed);
    let mut log = open(&source, &options)?;
    let _ = writeln!(io::stderr(), "{}: {}", source.name, log.recognised());
    let survey = Survey::take(&mut log, &mut kinds, args.seed, || progress.step())?;
    if survey.requests == 0 {
        progress.finish();
        show::tally(&log);
        return Err(Failure::runtime(show::nothing(&log)));
    }
    let scenario = Scenario {
        name: source.name.clone(),
        story: show::summary(&log, &survey),
        ..setting::scenario(args, &survey, &kinds, &policies)?
    };
    let mistaken = kinds.rewind();
    let reports = play(args, &survey, &mut kinds, &scenario, open(&source, &options)?, &mut progress);
    progress.finish();
    show::tally(&log);
    let mut reports = reports.map_err(Failure::runtime)?;
    for report in &mut reports {
        // Callers have numbers for names, and there may be very many.
        report.tenants.clear();
    }
    let notes = notes::of(args, &survey, &kinds, mistaken, &policies);
    let shown = show::Shown {
        args,
        source: &source,
        log: &log,
        survey: &survey,
        scenario: &scenario,
        reports: &reports,
        notes: &notes,
    };
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{:#}", shown.to_json())?;
    } else {
        write!(out, "{}", shown.to_text())?;
    }
    if let Some(path) = &args.html {
        page::write(path, &shown)?;
        let _ = writeln!(io::stderr(), "tidegate: the report is in {}", path.display());
    }
    // What was read has been played; that it was not all is a failure all the same.
    log.failure().map_or(Ok(()), |error| Err(Failure::runtime(error)))
}

fn policies(files: &[PathBuf]) -> Result<Vec<NamedPolicy>, Failure> {
    if files.len() > POLICIES_MAX {
        return Err(Failure::runtime(format_args!("at most {POLICIES_MAX} policies are compared at once")));
    }
    let mut policies: Vec<NamedPolicy> = Vec::new();
    for file in files {
        // What is unwise about it is for `tidegate check` to say: the model of an old system often is.
        let parsed = check::load(file)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_taken = policies.iter().any(|named| named.name == stem);
        let name = if is_taken { file.display().to_string() } else { stem };
        policies.push(NamedPolicy { name, policy: parsed.policy, model: None });
    }
    Ok(policies)
}

fn open(source: &Source, options: &Options) -> Result<AccessLog, Failure> {
    AccessLog::open(source.reader()?, options.clone())
        .map_err(|error| Failure::runtime(format_args!("{}: {error}", source.name)))
}

/// The second reading: every request is offered to all worlds at its time.
fn play(
    args: &ReplayArgs,
    survey: &Survey,
    kinds: &mut Kinds<'_>,
    scenario: &Scenario,
    log: AccessLog,
    progress: &mut Progress<'_>,
) -> Result<Vec<Report>, TooMany> {
    let mut controls = vec![Control::Nothing];
    controls.extend(scenario.policies.iter().cloned().map(Box::new).map(Control::Policy));
    let mut replay = Replay::new(scenario, &controls, args.seed);
    let mut offers = Offers::new(args.scale, args.seed);
    let mut ready = Vec::new();
    for entry in log {
        let at = setting::at_speed(entry.arrived.since(survey.first), args.speed);
        let work = survey::work(&entry);
        offers.push(Recorded { at, kind: kinds.of(&entry), work }, &mut ready);
        for request in ready.drain(..) {
            replay.offer(request)?;
        }
        progress.step();
    }
    offers.finish(&mut ready);
    for request in ready.drain(..) {
        replay.offer(request)?;
    }
    replay.finish()
}
