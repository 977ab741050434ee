//! The simulator against queueing theory: where there is a formula, it has to come out, whichever way the waiting is
//! done, in the service or in the gateway before it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;

use tidegate_sim::{Control, play};
use tidegate_workload::{Report, Scenario};

/// A service, and clients who come as a Poisson process. The first policy has as many slots as there are workers.
fn played(service: &str, slots: u32, rate: f64, control: usize) -> Report {
    let text = format!(
        r#"
        story = "Theory."
        duration = "4000s"
        warmup = "100s"
        [[service]]
        {service}
        [[clients]]
        name = "everybody"
        rate = "{rate}/s"
        [[policy]]
        name = "in the gateway"
        text = '''
        [[upstream]]
        name = "service"
        endpoints = ["http://127.0.0.1:8103"]
        timeout = "10m"
        [upstream.concurrency]
        limit = {slots}
        [upstream.queue]
        wait = "10m"
        capacity = 100000
        '''
        "#
    );
    let scenario = Scenario::parse(&text, Path::new("theory.toml")).unwrap_or_else(|error| panic!("{error}"));
    play(&scenario, &Control::all(&scenario)[control], 11).unwrap()
}

fn assert_mean(report: &Report, should: f64, what: &str) {
    let is = report.all.served.mean().as_secs_f64();
    let (off, tolerance) = ((is / should - 1.0).abs(), 0.02);
    assert!(
        off < tolerance,
        "{what}: the mean time is {is:.5} s, theory says {should:.5} s: {:.1} % off",
        off * 100.0
    );
    assert_eq!(report.all.refusals(), 0, "{what}: nobody is refused");
}

/// The probability that somebody has to wait (Erlang C), for an offered load in erlangs.
fn erlang_c(servers: u32, load: f64) -> f64 {
    // By the recursion of Erlang B, which cannot overflow.
    let blocked = (1..=servers).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked));
    let utilisation = load / f64::from(servers);
    blocked / (1.0 - utilisation * (1.0 - blocked))
}

#[test]
fn erlang_c_has_its_known_values() {
    // Tables of 1917: one server waits as often as it is busy; 10 servers at 8 erlangs, 0.409.
    assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-12);
    assert!((erlang_c(10, 8.0) - 0.4092).abs() < 1e-4);
}

/// M/M/c: mean time = service + C(c, a) / (c·μ − λ).
#[test]
fn several_workers_with_exponential_times() {
    for (workers, rate) in [(1_u32, 60.0), (5, 350.0), (10, 800.0)] {
        let service = 0.01;
        let wait = erlang_c(workers, rate * service) / (f64::from(workers) / service - rate);
        let described = format!("workers = {workers}\ntime = {{ exponential = \"10ms\" }}");
        for control in [0, 1] {
            let report = played(&described, workers, rate, control);
            assert_mean(&report, service + wait, &format!("M/M/{workers}, {}", report.policy));
        }
    }
}

/// M/D/1: mean time = service + ρ·service / (2·(1 − ρ)) (Pollaczek and Khinchine).
#[test]
fn one_worker_with_a_constant_time() {
    for rate in [50.0, 80.0] {
        let (service, busy) = (0.01, rate * 0.01);
        let wait = busy * service / (2.0 * (1.0 - busy));
        for control in [0, 1] {
            let report = played("workers = 1\ntime = \"10ms\"", 1, rate, control);
            assert_mean(&report, service + wait, &format!("M/D/1 at {busy}, {}", report.policy));
        }
    }
}

/// Processor sharing: mean time = service / (1 − ρ), whatever the distribution of the times.
#[test]
fn a_shared_service_with_any_times() {
    for time in ["\"10ms\"", "{ exponential = \"10ms\" }", "{ lognormal = { mean = \"10ms\", sigma = 1.0 } }"]
    {
        let report = played(&format!("shared = {{ knee = 1.0 }}\ntime = {time}"), 1, 60.0, 0);
        assert_mean(&report, 0.01 / 0.4, &format!("sharing with {time}"));
    }
}

/// Little's law, which needs no assumption: what is there on average is the rate times the mean time.
#[test]
fn littles_law() {
    let report = played("workers = 10\ntime = { exponential = \"10ms\" }", 10, 800.0, 0);
    let whole = report
        .series
        .sum(tidegate_workload::Window { from: std::time::Duration::ZERO, until: std::time::Duration::MAX });
    let there = whole.mean(whole.in_flight);
    let should = 800.0 * report.all.served.mean().as_secs_f64();
    // It is looked 480 times only, which is what is not exact here.
    assert!((there / should - 1.0).abs() < 0.06, "{there} there, and the law says {should}");
}
