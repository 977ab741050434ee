//! How good the default limit has to be in the scenarios of `scenarios/limiter/`, over five seeds: its goodput by that of
//! a limit that is told the capacity at every moment, behind the same queue. And how bad others have to be, or the
//! scenarios show nothing.
//!
//! What it must do beside goodput, such as how long refusals take, stands in the scenarios themselves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;

use tidegate_sim::{Control, play_all};
use tidegate_workload::{NamedPolicy, Product, Report, Scenario};

const SEEDS: u64 = 5;

/// Scenario, the least mean ratio, the least ratio of a single seed.
const EBB: [(&str, f64, f64); 88] = [
    ("1-load-0.5x", 0.998, 0.998),
    ("1-load-1.5x", 0.985, 0.97),
    ("1-load-5x", 0.98, 0.965),
    ("1-load-10x", 0.98, 0.97),
    ("1d-constant-1.5x", 0.985, 0.975),
    ("1e-load-0.9x", 0.99, 0.98),
    ("2-drop", 0.985, 0.975),
    ("3-stall-storm", 0.985, 0.97),
    ("5-slow-unsaturated-200", 0.985, 0.975),
    ("5b-slow-unsaturated-400", 0.985, 0.98),
    ("6-bursts", 0.985, 0.975),
    ("7-low-0.5", 0.998, 0.99),
    ("7b-low-5", 0.998, 0.99),
    ("8-cv2-1.5x", 0.985, 0.975),
    ("8-cv5-0.6x", 0.998, 0.99),
    ("8-cv5-1.5x", 0.98, 0.965),
    ("9-mix-0.6x", 0.998, 0.99),
    ("9-mix-1.5x", 0.98, 0.925),
    ("10-gc-0.6x", 0.99, 0.98),
    ("10-gc-1.5x", 0.98, 0.97),
    ("11-four-gateways", 0.975, 0.965),
    ("11b-four-gateways-3x", 0.985, 0.975),
    ("12-c1", 0.985, 0.97),
    ("12-c1-0.5x", 0.99, 0.98),
    ("12-c2", 0.985, 0.98),
    ("12-c100", 0.985, 0.975),
    ("12-c1000", 0.985, 0.975),
    ("13-down", 0.995, 0.99),
    ("14-workers-10-2-10", 0.98, 0.96),
    ("14b-workers-200-20-200", 0.965, 0.95),
    ("15-sharing-hard", 0.98, 0.965),
    ("15b-sharing-soft", 0.985, 0.93),
    ("16-slow-saturated", 0.98, 0.97),
    ("n1-diurnal", 0.985, 0.975),
    ("n2-upstream-queue", 0.98, 0.955),
    ("n3-sawtooth", 0.985, 0.97),
    ("n4-cold-start", 0.975, 0.965),
    ("n5-delay", 0.985, 0.97),
    ("n6-stall-storm-cancels", 0.985, 0.975),
    ("n7-batches", 0.985, 0.97),
    ("n8-deadlines", 0.975, 0.935),
    ("p1-workers-10-2-10-minute", 0.98, 0.965),
    ("p2-one-millisecond", 0.98, 0.975),
    ("p4-autoscale", 0.97, 0.95),
    ("p5-stall-storm-10s", 0.98, 0.965),
    ("p6-hang", 0.985, 0.98),
    ("p7-sharing-stall-storm", 0.965, 0.94),
    ("q1-slow-dependency", 0.985, 0.98),
    ("q2-cold-start-c1", 0.985, 0.98),
    ("q3-constant-5x", 0.985, 0.975),
    ("r1-cold-1.5x", 0.98, 0.965),
    ("r2-cold-5x", 0.98, 0.97),
    ("r3-cold-10x", 0.98, 0.97),
    ("r4-drop", 0.985, 0.975),
    ("r5-drop-hasty", 0.985, 0.975),
    ("r6-stall-storm-400ms", 0.985, 0.975),
    ("r7-stall-storm-1s", 0.985, 0.975),
    ("r8-slow-dependency", 0.985, 0.97),
    ("r9-cold-c1", 0.965, 0.925),
    ("r10-light", 0.998, 0.998),
    ("s1-slow-5x", 0.985, 0.98),
    ("s2-slow-20x", 0.915, 0.75),
    ("s3-slow-constant", 0.985, 0.97),
    ("s4-cold-c3", 0.985, 0.98),
    ("s5-cold-c40", 0.98, 0.965),
    ("s6-two-gateways-cold", 0.985, 0.97),
    ("s7-drop-twice", 0.98, 0.97),
    ("s8-slow-ramp", 0.985, 0.98),
    ("s9-slow-and-full", 0.975, 0.955),
    ("s10-cold-constant-5x", 0.975, 0.96),
    ("s11-autoscale-constant", 0.965, 0.905),
    ("s12-flash-crowd", 0.97, 0.96),
    ("s13-hover", 0.985, 0.98),
    ("s14-four-gateways-slow", 0.98, 0.965),
    ("s15-slow-near-full", 0.965, 0.94),
    ("t1-slow-15x", 0.94, 0.89),
    ("t2-slow-12x-constant", 0.96, 0.95),
    ("t3-slow-8x-scattered", 0.98, 0.965),
    ("t4-cold-c1-fast", 0.985, 0.975),
    ("t5-cold-c1-slow", 0.955, 0.825),
    ("t6-cold-c2", 0.985, 0.96),
    ("t7-two-gateways-1.2x", 0.985, 0.975),
    ("t8-three-gateways-cold", 0.98, 0.97),
    ("t9-slow-near-full-constant", 0.955, 0.88),
    ("t10-slow-twice", 0.975, 0.95),
    ("t11-near-the-deadline", 0.91, 0.805),
    ("t12-near-the-deadline-constant", 0.815, 0.63),
    ("t13-hasty-crowd", 0.885, 0.86),
];

/// Too long for a test; its ranges stand in the scenario.
const NOT_HERE: [&str; 1] = ["4-long-3x"];

#[test]
fn the_default_limit_is_nearly_as_good_as_one_that_is_told() {
    let mut missed = Vec::new();
    for (name, mean_least, seed_least) in EBB {
        let scenario = read(name);
        let ebb = policy(&scenario, "ebb");
        let ratios = ratios(&scenario, &Control::Policy(Box::new(ebb.clone())), ebb);
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        if mean < mean_least || worst < seed_least {
            missed.push(format!("{name}: {mean:.3} and {worst:.3}, not {mean_least} and {seed_least}"));
        }
    }
    assert!(missed.is_empty(), "{} rows:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn every_scenario_has_a_row() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/limiter");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let listed = EBB.iter().any(|(row, ..)| *row == name) || NOT_HERE.contains(&name.as_str());
            assert!(listed, "{name}");
        }
    }
}

/// Nothing is refused of what can be served. A dependency that is slow is not a service that is full.
#[test]
fn where_nothing_is_full_hardly_anything_is_refused() {
    let most_percent = [
        ("1-load-0.5x", 0.1),
        ("7-low-0.5", 0.1),
        ("7b-low-5", 0.1),
        // So many come in a row that even the best static limit refuses some.
        ("8-cv5-0.6x", 0.8),
        ("r10-light", 0.1),
        ("5b-slow-unsaturated-400", 1.0),
        ("q1-slow-dependency", 1.0),
        ("r8-slow-dependency", 1.5),
        ("5-slow-unsaturated-200", 2.0),
    ];
    let mut missed = Vec::new();
    for (name, most) in most_percent {
        let scenario = read(name);
        let ebb = Control::Policy(Box::new(policy(&scenario, "ebb").clone()));
        let reports = (0..SEEDS).map(|seed| played(&scenario, seed, std::slice::from_ref(&ebb)).remove(0));
        let (refused, offered) = reports.fold((0, 0), |(refused, offered), report| {
            (refused + report.all.rejected.iter().sum::<u64>(), offered + report.all.offered)
        });
        let percent = 100.0 * refused as f64 / offered as f64;
        if percent > most {
            missed.push(format!("{name}: {percent:.2} %, not {most} %"));
        }
    }
    assert!(missed.is_empty(), "too much is refused:\n{}", missed.join("\n"));
}

/// If these were good too, the scenarios would ask nothing of anybody. They grow by one or by a root at a time.
#[test]
fn others_are_too_slow_for_a_thousand_workers() {
    let scenario = read("12-c1000");
    let ebb = policy(&scenario, "ebb");
    let arc = Control::Model(Product::Arc, Box::new(policy(&scenario, &Product::Arc.shown()).clone()));
    let gradient = Control::Policy(Box::new(policy(&scenario, "gradient2").clone()));
    for control in [arc, gradient] {
        let report = played(&scenario, 0, &[control, Control::BestStaticBehind(Box::new(ebb.clone()))]);
        let ratio = report[0].all.goodput as f64 / report[1].all.goodput as f64;
        assert!(ratio < 0.15, "{}: {ratio}", report[0].policy);
    }
}

/// As far as the model shows it. Behind the same queue, and with slots that stay taken, it comes through the other stalls.
#[test]
fn envoy_does_not_come_through_a_stall_of_a_shared_service() {
    let scenario = read("p7-sharing-stall-storm");
    let envoy = policy(&scenario, &Product::Envoy.shown()).clone();
    let ratios =
        ratios(&scenario, &Control::Model(Product::Envoy, Box::new(envoy)), policy(&scenario, "ebb"));
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!(mean < 0.85, "{mean}");
}

fn read(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/limiter/{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap();
    Scenario::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"))
}

fn policy<'a>(scenario: &'a Scenario, name: &str) -> &'a NamedPolicy {
    scenario.policies.iter().find(|policy| policy.name == name).unwrap()
}

/// Seed by seed, goodput by that of the best static limit behind this queue.
fn ratios(scenario: &Scenario, control: &Control, queue: &NamedPolicy) -> Vec<f64> {
    let controls = [control.clone(), Control::BestStaticBehind(Box::new(queue.clone()))];
    let one = |seed| {
        let reports = played(scenario, seed, &controls);
        reports[0].all.goodput as f64 / reports[1].all.goodput as f64
    };
    (0..SEEDS).map(one).collect()
}

fn played(scenario: &Scenario, seed: u64, controls: &[Control]) -> Vec<Report> {
    let scenario = Scenario { seed: scenario.seed + seed, runs: 1, ..scenario.clone() };
    play_all(&scenario, controls, 2, &|_, _| {}).unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}
