//! `tidegate load`: clients on real sockets, who come when they come.
//!
//! It reads what was typed, has the load generator play, and shows what came of it, in the report of the simulator.

mod args;
pub(crate) use args::LoadArgs;

mod plan;

mod gauges;
mod interrupt;
mod lab;
mod service;

mod knee;

mod compare;
mod live;
mod show;

use tidegate_load::{Settings, run as play};
use tidegate_workload::{Crossed, Report, Scenario, Threshold};

use crate::exit::Failure;
use compare::Earlier;
use live::View;
use show::Shown;

pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    if args.goal.find_knee && plan::is_url(&args.what) {
        return knee::run(args);
    }
    // Before anything is sent: whoever waits for a run wants it compared.
    let earlier = args.output.compare.as_deref().map(Earlier::read).transpose()?;
    if args.lab.lab && !plan::is_url(&args.what) {
        let scenario = plan::of_scenario(args)?;
        known_classes(&args.goal.threshold, &scenario)?;
        let reports = lab::run(args, &scenario)?;
        return finish(args, &scenario, &reports, earlier);
    }
    let (scenario, target) = if plan::is_url(&args.what) {
        plan::of_url(args)?
    } else {
        let scenario = plan::of_scenario(args)?;
        let target = args.lab.target.as_deref().ok_or_else(|| {
            Failure::usage("a scenario is sent somewhere: say where with --target URL, or use --lab")
        })?;
        (scenario, tidegate_load::Target::parse(target).map_err(Failure::usage)?)
    };
    let settings = plan::settings(args, &scenario, target);
    known_classes(&args.goal.threshold, &scenario)?;
    let report = measure(args, &scenario, "measured", &settings)?;
    finish(args, &scenario, &[report], earlier)
}

/// Plays, with a view of how it goes.
fn measure(args: &LoadArgs, scenario: &Scenario, name: &str, settings: &Settings) -> Result<Report, Failure> {
    let view = View::new(&format!("{}: {name}", scenario.name), scenario.duration, args.output.quiet);
    let report = play(scenario, name, settings, &mut |snapshot| view.show(snapshot)).map_err(failure);
    view.end();
    report
}

fn failure(failure: tidegate_load::Failure) -> Failure {
    match failure {
        tidegate_load::Failure::Target(_) | tidegate_load::Failure::System(_) => Failure::runtime(failure),
        tidegate_load::Failure::Request(_) => Failure::usage(failure),
    }
}

/// Shows the reports, of which the last was measured, and says how it went.
fn finish(
    args: &LoadArgs,
    scenario: &Scenario,
    reports: &[Report],
    earlier: Option<Earlier>,
) -> Result<(), Failure> {
    let measured = reports.last().ok_or_else(|| Failure::runtime("nothing was played"))?;
    let crossed: Vec<Crossed> =
        args.goal.threshold.iter().filter_map(|threshold| threshold.check(measured).err()).collect();
    let nobody = show::nobody_there(measured);
    Shown { args, scenario, reports, crossed: &crossed, earlier }.show()?;
    match (crossed.len(), nobody) {
        (0, Some(what)) => Err(Failure::runtime(what)),
        (0, None) if interrupt::stop().is_set() => {
            Err(Failure::runtime(format_args!("ended early, after {:.1?}", measured.watched)))
        }
        (0, None) => Ok(()),
        (1, _) => Err(Failure::missed("a threshold is missed")),
        (count, _) => Err(Failure::missed(format_args!("{count} thresholds are missed"))),
    }
}

/// A threshold of a class that is not there would be missed after a long time for nothing.
fn known_classes(thresholds: &[Threshold], scenario: &Scenario) -> Result<(), Failure> {
    let kinds = || scenario.clients.iter().flat_map(|clients| &clients.mix);
    for threshold in thresholds {
        if let Some(class) = threshold.class()
            && !kinds().any(|kind| kind.class == class)
        {
            return Err(Failure::usage(format_args!("`{threshold}`: there is no class named `{class}`")));
        }
    }
    Ok(())
}
