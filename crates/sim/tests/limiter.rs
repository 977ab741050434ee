//! What is expected of the scenarios of `scenarios/limiter/` holds. Some of them are played against everything that they
//! compare: twice the same comes out, and nothing is lost under a model.
//!
//! How good each limiter is, is printed by `examples/limiters.rs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tidegate_sim::{Control, play_all};
use tidegate_workload::{BEST_STATIC, Product, Report, Scenario};

/// These are played against everything. They are short and have between them everything that a scenario can have.
const PLAYED: [&str; 10] = [
    "1-load-0.5x",
    "3-stall-storm",
    "9-mix-0.6x",
    "10-gc-0.6x",
    "11-four-gateways",
    "12-c1-0.5x",
    "13-down",
    "n2-upstream-queue",
    "n6-stall-storm-cancels",
    "n7-batches",
];

struct Played {
    scenario: Scenario,
    controls: Vec<Control>,
    reports: Vec<Report>,
}

static SOME: LazyLock<Vec<Played>> = LazyLock::new(|| {
    let scenarios = all().into_iter().filter(|scenario| PLAYED.contains(&scenario.name.as_str()));
    scenarios.map(play_one).collect()
});

fn all() -> Vec<Scenario> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/limiter");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        Scenario::parse(&text, file).unwrap_or_else(|error| panic!("{error}"))
    };
    files.iter().map(read).collect()
}

fn play_one(scenario: Scenario) -> Played {
    let queue = Box::new(scenario.policies[0].clone());
    let mut controls = Control::all(&scenario);
    controls.push(Control::BestStaticBehind(queue));
    let reports = played(&scenario, &controls);
    Played { scenario, controls, reports }
}

fn played(scenario: &Scenario, controls: &[Control]) -> Vec<Report> {
    play_all(scenario, controls, 2, &|_, _| {}).unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

/// The table compares columns, so every scenario has the same, and a best static limit to compare with.
#[test]
fn every_scenario_compares_the_same() {
    let all = all();
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.policies.iter().map(|policy| policy.name.clone()).collect()
    };
    for scenario in &all {
        assert_eq!(names(scenario), names(&all[0]), "{}", scenario.name);
        assert_eq!(scenario.policies[0].name, "ebb", "{}", scenario.name);
        let controls = Control::all(scenario);
        assert_eq!(controls.last().map(Control::name), Some(BEST_STATIC), "{}", scenario.name);
        for product in Product::LIMITERS {
            let models = scenario.policies.iter().filter(|policy| policy.model == Some(product)).count();
            assert_eq!(models, 1, "{}: {}", scenario.name, product.name());
        }
    }
    for name in PLAYED {
        assert!(all.iter().any(|scenario| scenario.name == name), "there is no {name}");
    }
}

/// In every scenario, of those policies that something is expected of.
#[test]
fn what_is_expected_holds() {
    let mut missed = Vec::new();
    for scenario in all() {
        let asked = |control: &Control| {
            scenario.expectations.iter().any(|expectation| expectation.policy == control.name())
        };
        let controls: Vec<Control> = Control::all(&scenario).into_iter().filter(asked).collect();
        let reports = played(&scenario, &controls);
        for expectation in &scenario.expectations {
            let report = reports.iter().find(|report| report.policy == expectation.policy).unwrap();
            missed.extend(expectation.check(report).err().map(|found| format!("{}: {found}", scenario.name)));
        }
    }
    assert!(missed.is_empty(), "{} do not:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn played_again_everything_is_the_same() {
    for Played { scenario, controls, reports } in SOME.iter() {
        for (first, second) in reports.iter().zip(&played(scenario, controls)) {
            let what = format!("{}, {}", scenario.name, first.policy);
            assert_eq!((first.events, first.trace), (second.events, second.trace), "{what}");
            assert_eq!(first.to_json(), second.to_json(), "{what}");
        }
    }
}

/// What the engine promises of its own slots is asserted in it; here what became of everybody.
#[test]
fn nothing_is_lost_under_any_limit() {
    for Played { scenario, reports, .. } in SOME.iter() {
        for report in reports {
            let (what, all) = (format!("{}, {}", scenario.name, report.policy), &report.all);
            assert!(all.offered > 0 && all.goodput + all.failed <= all.offered, "{what}: {all:?}");
            let ended = all.goodput + all.rejected.iter().sum::<u64>() + all.left + all.broken;
            let under_way = all.attempts.checked_sub(ended);
            assert!(under_way.is_some_and(|some| some <= all.pending()), "{what}: {all:?}");
        }
    }
}

/// A model that never moved would be a fixed limit under another name.
#[test]
fn models_move() {
    for Played { scenario, reports, .. } in
        SOME.iter().filter(|played| played.scenario.name == "3-stall-storm")
    {
        let models = reports.iter().filter(|report| report.policy.starts_with("model: "));
        let moved = models.filter(|report| {
            let limits = report.series.buckets.iter().map(|bucket| bucket.mean(bucket.limit));
            let (least, most) =
                limits.fold((f64::MAX, 0.0_f64), |(least, most), limit| (least.min(limit), most.max(limit)));
            most > 2.0 * least
        });
        assert_eq!(moved.count(), Product::LIMITERS.len(), "{}", scenario.name);
    }
}

fn small(service: &str, clients: &str) -> Report {
    let text = format!(
        "story = \"\"\nduration = \"10s\"\n[[service]]\nworkers = 10\ntime = \"20ms\"\n{service}\n\
         [[clients]]\nname = \"all\"\ntimeout = \"400ms\"\n{clients}\n"
    );
    let scenario = Scenario::parse(&text, Path::new("small.toml")).unwrap_or_else(|error| panic!("{error}"));
    played(&scenario, &[Control::BestStatic]).remove(0)
}

#[test]
fn a_delay_is_there_and_back() {
    let report = small("delay = \"30ms\"\nbest = 40", "rate = \"100/s\"\nspacing = \"even\"");
    let millis = report.all.served.max().as_millis();
    assert!((79..=81).contains(&millis), "{millis} ms");
    // Ten workers and forty on the way: what can be done is not less than without the delay.
    let full = small("delay = \"30ms\"\nbest = 40", "rate = \"750/s\"");
    assert!((4_900..=5_000).contains(&full.all.goodput), "{}", full.all.goodput);
}

#[test]
fn whoever_leaves_on_the_way_costs_a_place_for_as_long_as_the_way_takes() {
    let report = small("delay = \"300ms\"", "rate = \"10/s\"\nspacing = \"even\"");
    assert_eq!((report.all.goodput, report.all.rejected.iter().sum::<u64>() + report.all.left), (0, 96));
    assert!(report.all.late >= 90, "the answers come back all the same: {}", report.all.late);
    let stops = small("delay = \"300ms\"\ncancels_work = true", "rate = \"10/s\"\nspacing = \"even\"");
    assert_eq!((stops.all.goodput, stops.all.late), (0, 0));
}

#[test]
fn batches_come_at_one_moment() {
    let report = small("", "rate = \"100/s\"\nspacing = \"even\"\nbatch = 20");
    assert_eq!((report.all.offered, report.all.goodput), (1_000, 980));
    // Twenty at once on ten workers: the second half waits for the first.
    assert_eq!(report.all.served.max().as_millis(), 40);
}
