//! Every file in `scenarios/` is played as it is written, and what it promises has to come out. And the promises mean
//! something: with no control at all at least one policy's must be broken.
//!
//! With `--nocapture` it prints the numbers, which is where those in `scenarios/README.md` come from.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tidegate_engine::Reason;
use tidegate_sim::{Control, play_all};
use tidegate_workload::{Expectation, Missed, NO_CONTROL, Report, Scenario, Totals};

/// Scenarios whose every promise is kept with no control as well, each with the reason why that is right.
const NO_CONTROL_IS_AS_GOOD: [(&str, &str); 0] = [];

/// A scenario, and what came of it under everything that it compares.
struct Played {
    scenario: Scenario,
    controls: Vec<Control>,
    reports: Vec<Report>,
}

impl Played {
    fn report(&self, policy: &str) -> Option<&Report> {
        self.reports.iter().find(|report| report.policy == policy)
    }

    fn promises<'a>(&'a self, policy: &'a str) -> impl Iterator<Item = &'a Expectation> {
        self.scenario.expectations.iter().filter(move |expectation| expectation.policy == policy)
    }
}

/// All of them, played once for all tests.
static PLAYED: LazyLock<Vec<Played>> = LazyLock::new(|| {
    let played: Vec<Played> = files().iter().map(|file| play_file(file)).collect();
    assert!(!played.is_empty(), "there are no scenarios in {}", directory().display());
    played
});

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    files
}

fn play_file(file: &Path) -> Played {
    let text = std::fs::read_to_string(file).unwrap();
    let scenario = Scenario::parse(&text, file).unwrap_or_else(|error| panic!("{error}"));
    let controls = Control::all(&scenario);
    let reports = played(&scenario, &controls);
    Played { scenario, controls, reports }
}

fn played(scenario: &Scenario, controls: &[Control]) -> Vec<Report> {
    play_all(scenario, controls, 2, &|_, _| {}).unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

#[test]
fn every_promise_is_kept() {
    let mut missed = Vec::new();
    for played in PLAYED.iter() {
        print(played);
        for expectation in &played.scenario.expectations {
            let Some(report) = played.report(&expectation.policy) else {
                missed.push(format!("{}: `{}` is not played", played.scenario.name, expectation.policy));
                continue;
            };
            if let Err(found) = expectation.check(report) {
                missed.push(format!("{}: {found}", played.scenario.name));
            }
        }
    }
    assert!(missed.is_empty(), "{} of them are not:\n{}", missed.len(), missed.join("\n"));
}

/// A scenario says what it expects of each of its policies, and of no control, or it compares nothing.
#[test]
fn every_policy_has_a_promise_to_keep() {
    for played in PLAYED.iter() {
        let policies = played.scenario.policies.iter().map(|policy| policy.name.as_str());
        for policy in policies.chain([NO_CONTROL]) {
            assert!(
                played.promises(policy).next().is_some(),
                "{}: nothing is expected of `{policy}`",
                played.scenario.name
            );
        }
    }
}

/// A check that cannot fail proves nothing. What is expected of at least one policy must not come out with no control.
#[test]
fn with_no_control_a_promise_is_broken() {
    for played in PLAYED.iter() {
        let name = played.scenario.name.as_str();
        let without = played.report(NO_CONTROL).unwrap();
        let broken: Vec<Missed> = played
            .reports
            .iter()
            .filter(|report| report.policy != NO_CONTROL)
            .flat_map(|report| played.promises(&report.policy))
            .filter_map(|expectation| expectation.check(without).err())
            .collect();
        let excused = NO_CONTROL_IS_AS_GOOD.iter().any(|(excused, _)| *excused == name);
        assert_eq!(broken.is_empty(), excused, "{name}: with no control these are broken: {broken:?}");
    }
}

#[test]
fn played_again_everything_is_the_same() {
    for played in PLAYED.iter() {
        let again = self::played(&played.scenario, &played.controls);
        for (first, second) in played.reports.iter().zip(&again) {
            let what = format!("{}, {}", played.scenario.name, first.policy);
            assert_eq!((first.events, first.trace), (second.events, second.trace), "{what}");
            assert_eq!(first.to_json(), second.to_json(), "{what}");
        }
    }
}

/// Every request and every attempt ends in one way, or is still under way.
#[test]
fn nothing_is_lost_and_nothing_counted_twice() {
    for played in PLAYED.iter() {
        for report in &played.reports {
            let what = format!("{}, {}", played.scenario.name, report.policy);
            conserved(&report.all, &what);
            for parts in [&report.classes, &report.tenants] {
                for (name, totals) in parts {
                    conserved(totals, &format!("{what}, {name}"));
                }
                // Without a second tenant there is no list of them.
                if !parts.is_empty() {
                    adds_up(&report.all, parts, &what);
                }
            }
        }
    }
}

fn conserved(totals: &Totals, what: &str) {
    let known = totals.goodput + totals.failed;
    assert!(known <= totals.offered, "{what}: {} requests, and {known} have ended", totals.offered);
    let ended = totals.goodput + totals.rejected.iter().sum::<u64>() + totals.left + totals.broken;
    let under_way = totals.attempts.checked_sub(ended);
    // Who waits for the next try has no attempt under way, and nobody has two.
    assert!(
        under_way.is_some_and(|under_way| under_way <= totals.pending()),
        "{what}: {} attempts, {ended} have ended, and {} requests have not",
        totals.attempts,
        totals.pending()
    );
    assert_eq!(totals.served.count(), totals.goodput, "{what}");
    assert_eq!(totals.refused.count(), totals.refusals(), "{what}");
    assert!(totals.told_admitted <= totals.told && totals.told <= totals.attempts, "{what}");
}

fn adds_up(all: &Totals, parts: &[(String, Totals)], what: &str) {
    let mut sum = Totals::default();
    for (_, part) in parts {
        sum.add(part);
    }
    let counts = |totals: &Totals| {
        let Totals { offered, goodput, failed, attempts, left, broken, late, .. } = *totals;
        ([offered, goodput, failed, attempts, left, broken, late], totals.rejected)
    };
    assert_eq!(counts(&sum), counts(all), "{what}");
}

/// The table of contents is kept by hand, so it is looked after.
#[test]
fn the_readme_lists_every_scenario() {
    let readme = std::fs::read_to_string(directory().join("README.md")).unwrap();
    let listed: BTreeSet<&str> = readme
        .split('`')
        .filter(|word| word.ends_with(".toml") && !word.contains([' ', '*', '\n']))
        .collect();
    let files = files();
    let there: BTreeSet<&str> =
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(listed, there);
}

/// The numbers of one scenario, per run.
fn print(played: &Played) {
    let Scenario { name, runs, seed, .. } = &played.scenario;
    println!("\n{name} (runs: {runs}, from seed {seed})");
    println!(
        "{:38} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}  refused because",
        "", "offered", "goodput", "share", "attempts", "late", "p50 ms", "p99 ms", "ref. p99"
    );
    for report in &played.reports {
        print_row(&report.policy, &report.all, report.runs);
        if report.classes.len() > 1 {
            for (class, totals) in &report.classes {
                print_row(&format!("  {class}"), totals, report.runs);
            }
        }
    }
}

fn print_row(name: &str, totals: &Totals, runs: u32) {
    let per_run = |count: u64| count as f64 / f64::from(runs);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let reasons = Reason::ALL.into_iter().filter(|reason| totals.rejected[*reason as usize] > 0);
    let reasons: Vec<String> = reasons
        .map(|reason| format!("{} {}", reason.name(), per_run(totals.rejected[reason as usize])))
        .chain((totals.broken > 0).then(|| format!("by the service {}", per_run(totals.broken))))
        .collect();
    println!(
        "{name:38} {:8.1} {:8.1} {:6.3} {:8.1} {:8.1} {:8.1} {:8.1} {:8.1}  {}",
        per_run(totals.offered),
        per_run(totals.goodput),
        totals.goodput_share(),
        per_run(totals.attempts),
        per_run(totals.late),
        millis(totals.served.quantile(0.5)),
        millis(totals.served.quantile(0.99)),
        millis(totals.refused.quantile(0.99)),
        reasons.join(", ")
    );
}
